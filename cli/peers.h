/* cli/peers.h - peers and introduced agents, straight from the store. */
#ifndef CLI_PEERS_H
#define CLI_PEERS_H

#include "agent/folder.h"
#include "agent/roster.h"
#include "cli/cli.h"
#include "net/ident.h"
#include "store/restored.h"
#include "store/store.h"

/* The key of a peer named by the owner: roster_resolve(), or a whole id that is not known yet. */
int cli_peer_key(struct store *s, const char *text, uint8_t key[STORE_KEY], struct err *e);
/* Whom a restored store waits for, each with what is known of it: of one that was forgotten its key
 * alone.  Release *out. */
MUST_CHECK int cli_waited_for(struct store *s, const struct store_restored *r, struct roster *out,
			      struct err *e);
/* Private training waits for the owner, and there was some, or agent.yaml asks for it: nobody else
 * need hear of that. */
MUST_CHECK int cli_training_held(const struct folder *f, const struct store_restored *r, bool *out,
				 struct err *e);

/* The line that the owner of an introduced agent would have sent, by its whole id, but without its
 * signing key (zeros), which others cannot know.  ERR_NOTFOUND, ERR_USAGE. */
MUST_CHECK int cli_introduced_line(struct cli *cli, const char *id, char line[NET_INVITE_TEXT],
				   struct err *e);

#endif

/* tests/hostile/member.c - the agent's own process, but for what it sends in rounds, or tells of
 * others.
 *
 *   member FOLDER STATUS_FILE random|scaled|silent|ID
 *
 * random: rows of numbers in the range of first rows; scaled: -10 times its own; silent: it joins
 * whatever is proposed, keeps its link alive, and sends nothing else.  ID: in its member record,
 * which it signs with its own key, stands this agent's X25519 key instead of its own.  The linker
 * puts __wrap_X() in the place of X() (meson.build); the shipped program has no such seam. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "agent/core/member.h"
#include "agent/process.h"
#include "base/rng.h"
#include "fed/round_internal.h"
#include "net/ident.h"
#include "net/uv/hub.h"

bool __real_fed_up(struct fed_part *p, unsigned stage, const struct fed_item *it, float *row);
bool __wrap_fed_up(struct fed_part *p, unsigned stage, const struct fed_item *it, float *row);
int __real_net_hub_send(struct net_hub *h, const uint8_t *key, const void *bytes, size_t len);
int __wrap_net_hub_send(struct net_hub *h, const uint8_t *key, const void *bytes, size_t len);

void __real_agent_member_sign(const struct agent_member *m, const uint8_t secret[64],
			      struct buf *out);
void __wrap_agent_member_sign(const struct agent_member *m, const uint8_t secret[64],
			      struct buf *out);

static enum { RANDOM, SCALED, SILENT, MODES } mode;
static uint8_t introduced[NET_KEY_BYTES];

bool __wrap_fed_up(struct fed_part *p, unsigned stage, const struct fed_item *it, float *row)
{
	size_t floats;
	float range = p->emb->range;

	fed_row(p->emb, it, &floats);
	if (!__real_fed_up(p, stage, it, row))
		return false;
	for (size_t k = 0; k < floats && mode < SILENT; k++)
		row[k] = mode == RANDOM ? rng_range(&p->rng, -range, range) : -10 * row[k];
	return true;
}

/* What a round needs beyond who takes part. */
static bool is_work(const void *bytes, size_t len)
{
	struct net_msg m;
	struct err e = { 0 };
	bool work;

	if (net_msg_decode(&m, bytes, len, NULL) != 0)
		return false;
	work = m.type == NET_MSG_ROUND &&
	       net_get_uint(&m.body, "k", 0, NET_ROUND_ACCOUNT, &e) > NET_ROUND_OUT;
	net_msg_release(&m);
	return work;
}

int __wrap_net_hub_send(struct net_hub *h, const uint8_t *key, const void *bytes, size_t len)
{
	if (mode == SILENT && is_work(bytes, len))
		return 0;
	return __real_net_hub_send(h, key, bytes, len);
}

void __wrap_agent_member_sign(const struct agent_member *m, const uint8_t secret[64],
			      struct buf *out)
{
	struct agent_member told = *m;

	if (mode == MODES) { /* with a name and an address that no line may have */
		net_key_format(told.key, told.name);
		snprintf(told.address, sizeof(told.address), "0.0.0.0:1");
		memcpy(told.key, introduced, sizeof(told.key));
	}
	__real_agent_member_sign(&told, secret, out);
}

int main(int argc, char **argv)
{
	static const char *const word[MODES] = { "random", "scaled", "silent" };
	struct process_options o = { 0 };
	struct err e = { 0 };
	int rc;

	for (mode = 0; argc == 4 && mode < MODES && strcmp(argv[3], word[mode]) != 0; mode++)
		;
	if (argc != 4 || sodium_init() < 0 ||
	    (mode == MODES && net_key_parse(argv[3], introduced, &e) != 0))
		return ERR_USAGE;
	o.folder = argv[1];
	o.status_file = argv[2];
	rc = process_run(&o, &e);
	if (rc != 0)
		fprintf(stderr, "%s\n", e.text);
	return rc;
}

/* agent/process_links.c - the hub and the core: who may connect, what links bring. */

#include "agent/process_internal.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "agent/listen.h"
#include "agent/supervisor.h"
#include "net/gate.h"
#include "net/ident.h"

enum { RETRY_MAX_MS = 15000, STRANGER_MS = 5000 };

/* ---- what the core asks of links ---- */

static int io_send(void *ctx, const uint8_t peer[AGENT_KEY], const uint8_t *bytes, size_t n)
{
	struct process *p = ctx;

	return net_hub_send(p->hub, peer, bytes, n);
}

/* The port; 0: it cannot be dialled. */
static uint16_t dial_place(const char *address, char host[256])
{
	uint16_t port = 0;
	struct err e = { 0 };

	if (address != NULL && *address != '\0' && config_address(address, host, &port, &e) != 0)
		log_warn("%s", e.text);
	return port;
}

static void io_connect(void *ctx, const uint8_t peer[AGENT_KEY], const char *address)
{
	struct process *p = ctx;
	char host[256] = "";
	uint16_t port = dial_place(address, host);
	struct err e = { 0 };

	if (invites_ticket(&p->invites, peer) != NULL)
		net_hub_show(p->hub, peer, invites_ticket(&p->invites, peer));
	if (net_hub_peer(p->hub, peer, port != 0 ? host : NULL, port, &e) != 0)
		log_warn("%s", e.text);
}

static void io_move(void *ctx, const uint8_t peer[AGENT_KEY], const char *address)
{
	struct process *p = ctx;
	char host[256] = "";
	uint16_t port = dial_place(address, host);

	net_hub_moved(p->hub, peer, host, port);
}

/* The core takes the link for down from here on and asks for it again if it wants it. */
static void io_disconnect(void *ctx, const uint8_t peer[AGENT_KEY])
{
	struct process *p = ctx;
	const struct store_peer *r = roster_find(&p->roster, peer);
	bool partner = r != NULL && r->status == STORE_LISTED;
	const char *why;

	if (agent_core_shuts_out(p->core, peer, &why))
		net_hub_forget(p->hub, peer, "it broke the protocol");
	else
		net_hub_forget(p->hub, peer, partner ? "not for now" : "not a partner any more");
}

void process_link_effects(struct agent_io *io)
{
	io->send = io_send;
	io->connect = io_connect;
	io->move = io_move;
	io->disconnect = io_disconnect;
}

/* Somebody who shows the federation's secret and a ticket that is good is in, if the owner says so.
 */
static bool may_invite_himself(const struct process *p)
{
	return p->folder.config.federation.accept == CONFIG_ACCEPT_INVITED && p->has_psk;
}

static bool hub_allow(void *ctx, const uint8_t key[NET_KEY_BYTES],
		      const uint8_t ticket[NET_TICKET_BYTES])
{
	struct process *p = ctx;
	bool invited = may_invite_himself(p) && roster_listed(&p->roster) < AGENT_PEERS_MAX &&
		       invites_good(&p->invites, ticket, process_wall_ms()) != NULL;
	const char *why;

	return !agent_core_shuts_out(p->core, key, &why) &&
	       roster_lets_in(&p->roster, key, invited);
}

static enum net_pair hub_pair(void *ctx, const uint8_t key[NET_KEY_BYTES],
			      const struct net_greet_card *card, uint8_t pair[NET_PAIR_SECRET])
{
	const struct process *p = ctx;
	const struct invites *v = &p->invites;
	const uint8_t *known = invites_dial(v, key);

	if (card == NULL && known == NULL)
		return NET_PAIR_NONE;
	if (card == NULL) {
		memcpy(pair, known, NET_PAIR_SECRET);
		return NET_PAIR_THIS;
	}
	if (sodium_is_zero(card->pair_id, NET_PAIR_ID))
		return invites_proven(v, key) ? NET_PAIR_OTHER : NET_PAIR_NONE;
	return invites_named(v, p->folder.identity->key, key, card->pair_id, pair) ? NET_PAIR_THIS
										   : NET_PAIR_OTHER;
}

/* ---- links come and go ---- */

static void hub_up(void *ctx, const uint8_t key[NET_KEY_BYTES])
{
	struct process *p = ctx;
	struct net_greet_card card;

	net_hub_shown(p->hub, key, &card);
	if (process_lists(p, key) && newcomers_find(&p->newcomers, key) == NULL)
		process_partner_up(p, key, &card);
	else
		process_newcomer_up(p, key, &card);
}

static void hub_down(void *ctx, const uint8_t key[NET_KEY_BYTES], int code, const char *why)
{
	struct process *p = ctx;
	struct newcomer *x = newcomers_find(&p->newcomers, key);
	char id[NET_KEY_TEXT];

	if (x != NULL) {
		process_newcomer_down(p, x);
		return;
	}
	log_limit_line(&p->log, key, NET_KEY_BYTES, "down", LOG_INFO, uv_now(&p->loop),
		       "link to %s is down: %s", process_name_of(p, key, id), why);
	process_post_down(p, key, code);
}

static void hub_message(void *ctx, const uint8_t key[NET_KEY_BYTES], const uint8_t *bytes,
			size_t len)
{
	struct process *p = ctx;
	struct newcomer *x = newcomers_find(&p->newcomers, key);
	struct agent_event event = { .kind = AGENT_EVENT_MESSAGE, .bytes = bytes, .n = len };

	if (x != NULL) {
		process_newcomer_says(p, x, bytes, len);
		return;
	}
	memcpy(event.peer, key, AGENT_KEY);
	process_post(p, &event);
}

static void hub_writable(void *ctx, const uint8_t key[NET_KEY_BYTES])
{
	process_post_peer(ctx, AGENT_EVENT_WRITABLE, key);
}

static void hub_failed(void *ctx, const uint8_t key[NET_KEY_BYTES], int code, const char *why,
		       uint64_t retry_ms)
{
	struct process *p = ctx;
	char id[NET_KEY_TEXT];

	(void)code;
	log_limit_line(&p->log, key, NET_KEY_BYTES, "failed", LOG_INFO, uv_now(&p->loop),
		       "no link to %s: %s; again in %.1f s", process_name_of(p, key, id), why,
		       (double)retry_ms / 1000);
}

/* A few at once, then one now and then: `fkge peer pending` has them all. */
static void log_stranger(struct process *p, const uint8_t key[NET_KEY_BYTES], const char *address,
			 bool waits)
{
	uint64_t now = uv_now(&p->loop);
	char id[NET_KEY_TEXT], more[48] = "";

	if (p->stranger_ms < now)
		p->stranger_ms = now;
	if (p->stranger_ms > now + (uint64_t)8 * STRANGER_MS) {
		p->strangers_untold++;
		return;
	}
	p->stranger_ms += STRANGER_MS;
	if (p->strangers_untold > 0)
		snprintf(more, sizeof(more), " (and %zu more before it)", p->strangers_untold);
	p->strangers_untold = 0;
	net_key_format(key, id);
	process_say(p, "stranger", LOG_WARN,
		    "a key that is not listed was refused, from %s: %s%s%s", address, id,
		    waits ? "; to let it in: fkge peer accept" : "", more);
}

static void hub_stranger(void *ctx, const uint8_t key[NET_KEY_BYTES], const char *address)
{
	struct process *p = ctx;
	char source[NET_SOURCE_TEXT];
	struct store_batch b = { 0 };
	const struct ledger_rotation *replaced;
	enum roster_knocked how;
	char id[NET_KEY_TEXT];
	const char *why;

	if (agent_core_shuts_out(p->core, key, &why)) {
		figures_refuse(&p->figures, FIGURES_SHUT_OUT);
		log_limit_line(&p->log, key, NET_KEY_BYTES, "shut out", LOG_WARN, uv_now(&p->loop),
			       "%s was refused, from %s: it %s", process_name_of(p, key, id),
			       address, why);
		return;
	}
	figures_refuse(&p->figures, FIGURES_NOT_LISTED);
	replaced = ledger_rotations_proved(&p->roster.rotations, key);
	if (replaced != NULL) {
		log_limit_line(&p->log, key, NET_KEY_BYTES, "replaced", LOG_WARN, uv_now(&p->loop),
			       "a key was refused, from %s, that its owner has replaced: %s",
			       address, process_name_of(p, key, id));
		return;
	}
	net_gate_source_of(address, source);
	how = roster_knock(&p->roster, key, source, process_wall_ms());
	if (how != KNOCK_AGAIN)
		log_stranger(p, key, address, how == KNOCK_NEW);
	if (how != KNOCK_KNOWN)
		store_batch_peer(&b, roster_find(&p->roster, key));
	process_add_trimmed(p, &b);
	if (b.n > 0)
		process_put_chore(p, &b, NULL);
	p->changed = true;
}

static void hub_slowed(void *ctx, const uint8_t key[NET_KEY_BYTES])
{
	struct process *p = ctx;
	char id[NET_KEY_TEXT];

	log_limit_line(&p->log, key, NET_KEY_BYTES, "slowed", LOG_WARN, uv_now(&p->loop),
		       "%s sends more than its share of this agent's time can take: it is read "
		       "from more slowly",
		       process_name_of(p, key, id));
}

static void hub_rejected(void *ctx, const char *address, int code, const char *why)
{
	struct process *p = ctx;
	char source[NET_SOURCE_TEXT]; /* who has one address of a network often has them all */

	(void)code;
	figures_refuse(&p->figures, FIGURES_GREETING);
	net_gate_source_of(address, source);
	log_limit_line(&p->log, source, strlen(source), "rejected", LOG_WARN, uv_now(&p->loop),
		       "a connection from %s was refused: %s", address, why);
}

/* ---- opening ---- */

static int adopt_socket(struct process *p, int fd, struct err *e)
{
	const char *setting = p->folder.config.listen;
	char host[NET_HUB_HOST];
	int rc = net_hub_adopt(p->hub, fd, e);

	if (rc != 0)
		return rc;
	agent_core_socket_given(p->core);
	net_hub_host(p->hub, host);
	snprintf(p->handed, sizeof(p->handed), strchr(host, ':') != NULL ? "[%s]:%u" : "%s:%u",
		 host, net_hub_port(p->hub));
	if (listen_reaches_further(host, setting))
		process_say(p, "trouble", LOG_WARN,
			    "the service manager's socket is open at %s, to more than listen in "
			    "agent.yaml (%s) allows: change ListenStream= of the socket unit, or "
			    "disable that",
			    p->handed, setting);
	return 0;
}

int process_open_hub(struct process *p, struct err *e)
{
	const struct net_hub_config config = {
		.secret = p->folder.identity->secret,
		.psk = p->has_psk ? p->psk : NULL,
		.on = { .allow = hub_allow,
			.pair = hub_pair,
			.up = hub_up,
			.down = hub_down,
			.message = hub_message,
			.writable = hub_writable,
			.failed = hub_failed,
			.stranger = hub_stranger,
			.slowed = hub_slowed,
			.rejected = hub_rejected },
		.ctx = p,
		.retry_max_ms = RETRY_MAX_MS,
	};
	char host[256];
	uint16_t port;
	int rc = net_hub_new(&p->loop, &config, &p->hub, e), fd;

	if (rc == 0)
		rc = supervisor_socket(&fd, e);
	if (rc == 0 && fd >= 0)
		return adopt_socket(p, fd, e);
	if (rc != 0 || strcmp(p->folder.config.listen, "off") == 0)
		return rc;
	rc = config_address(p->folder.config.listen, host, &port, e);
	return rc != 0 ? rc : net_hub_listen(p->hub, host, port, e);
}

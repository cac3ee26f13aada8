/* A listed partner that does not keep to the protocol, with the keys of an agent's folder.
 *
 *   partner IDENTITY PORT KEY MODE
 *
 * IDENTITY is an identity.key, KEY and PORT are the victim's, on 127.0.0.1.  MODE:
 *   keys   floods messages of 48 KB that are many small keys, as fast as the link takes them
 *   hold   wants sessions, accepts them, and then says "still working" and nothing else
 *   flap   closes each link as soon as it is up
 * Goes on until it is killed; prints "up", "down", "refused" and "busy", and "held" and "over" of
 * sessions, a line each time. */
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "agent/core/core_internal.h"
#include "agent/core/member.h"
#include "agent/core/session_internal.h"
#include "net/ident.h"
#include "net/uv/hub.h"
#include "store/identity.h"

enum { WORKING_MS = 300, FLOOD = 64 };

struct partner {
	struct store_identity *self;
	uint8_t key[NET_KEY_BYTES], sign[NET_SIGN_BYTES];
	bool heard; /* its HELLO, with its signing key */
	const char *mode;
	uint16_t port;
	struct net_hub *hub;
	uv_loop_t loop;
	uv_timer_t timer;
	bool in_session;
	uint8_t session[NET_SESSION_BYTES];
	uint64_t serial;
};

static void say(const char *word)
{
	printf("%s\n", word);
	fflush(stdout);
}

static bool is_mode(const struct partner *p, const char *mode)
{
	return strcmp(p->mode, mode) == 0;
}

static int send_message(struct partner *p, struct buf *b)
{
	int rc = net_hub_send(p->hub, p->key, b->base, b->len);

	buf_release(b);
	return rc;
}

static void send_hello(struct partner *p)
{
	struct buf b = { 0 };
	struct net_writer w;
	uint8_t version[32] = { 7 }, proof[64];

	agent_keys_sign(p->self->key, p->self->sign_secret, proof);
	net_write_begin(&w, &b, NET_MSG_HELLO, NULL);
	net_put_uint(&w, "v", AGENT_PROTOCOL);
	net_put_str(&w, "n", "evil");
	net_put_bin(&w, "g", p->self->sign_key, 32);
	net_put_bin(&w, "gs", proof, 64);
	net_put_uint(&w, "s", ++p->serial);
	net_put_bin(&w, "a", version, 32);
	net_write_close(&w);
	send_message(p, &b);
}

static void send_signal(struct partner *p)
{
	struct buf b = { 0 };
	struct net_writer w;

	net_write_begin(&w, &b, NET_MSG_SIGNAL, NULL);
	net_put_uint(&w, "s", ++p->serial);
	net_write_close(&w);
	send_message(p, &b);
}

/* As a client that has everything and needs no ledger entries: an empty chain. */
static void send_accept(struct partner *p)
{
	struct ledger_chain chain;
	struct buf b = { 0 };
	struct net_writer w;
	uint8_t version[32] = { 7 };

	ledger_chain_init(&chain, p->self->sign_key, p->sign);
	net_write_begin(&w, &b, NET_MSG_ACCEPT, p->session);
	net_put_uint(&w, "ef", 16);
	net_put_uint(&w, "rf", 16);
	net_put_bin(&w, "a", version, 32);
	net_put_uint(&w, "q", chain.sequence);
	net_put_bin(&w, "h", chain.head, 32);
	net_put_uint(&w, "w", 0);
	net_put_bool(&w, "vn", false);
	net_put_bool(&w, "p", true);
	net_put_uint(&w, "s", p->serial);
	net_write_close(&w);
	send_message(p, &b);
	ledger_chain_release(&chain);
}

static void send_working(struct partner *p)
{
	struct buf b = { 0 };
	struct net_writer w;

	net_write_begin(&w, &b, NET_MSG_CONV, p->session);
	net_put_uint(&w, "c", CONV_STILL_WORKING);
	net_write_close(&w);
	send_message(p, &b);
}

/* 8000 keys of three letters, 250 a map, in a list: 40 KB. */
static void make_keys(struct buf *b)
{
	static const uint8_t head[] = {
		0x93, NET_MSG_MEMBERS, 0xc4, 0, 0x81, 0xa1, 'm', 0xdc, 0, 32
	};

	buf_add(b, head, sizeof(head));
	for (unsigned map = 0; map < 32; map++) {
		const uint8_t open[] = { 0xde, 0, 250 };

		buf_add(b, open, sizeof(open));
		for (unsigned k = 0; k < 250; k++) {
			const uint8_t pair[] = { 0xa3, 'k', (uint8_t)('a' + k % 16),
						 (uint8_t)('a' + k / 16), 0 };

			buf_add(b, pair, sizeof(pair));
		}
	}
}

static void flood(struct partner *p)
{
	for (int i = 0; i < FLOOD; i++) {
		struct buf b = { 0 };

		make_keys(&b);
		if (send_message(p, &b) != 0)
			return;
	}
}

static void on_up(void *ctx, const uint8_t *key)
{
	struct partner *p = ctx;

	(void)key;
	say("up");
	p->in_session = false;
	send_hello(p);
	if (is_mode(p, "keys"))
		flood(p);
	if (is_mode(p, "flap")) {
		net_hub_forget(p->hub, p->key, "again");
		if (net_hub_peer(p->hub, p->key, "127.0.0.1", p->port, NULL) != 0)
			abort();
	}
}

static void on_down(void *ctx, const uint8_t *key, int code, const char *why)
{
	(void)ctx, (void)key, (void)code, (void)why;
	say("down");
}

static void on_failed(void *ctx, const uint8_t *key, int code, const char *why, uint64_t retry_ms)
{
	(void)ctx, (void)key, (void)why, (void)retry_ms;
	say(code == ERR_REFUSED ? "refused" : code == ERR_BUSY ? "busy" : "failed");
}

static void heard_hello(struct partner *p, const struct net_msg *m)
{
	struct err e = { 0 };

	net_get_fixed(&m->body, "g", p->sign, sizeof(p->sign), &e);
	p->heard = e.code == 0;
}

static void on_message(void *ctx, const uint8_t *key, const uint8_t *bytes, size_t n)
{
	struct partner *p = ctx;
	struct net_msg m;

	(void)key;
	if (net_msg_decode(&m, bytes, n, NULL) != 0)
		return;
	if (m.type == NET_MSG_HELLO)
		heard_hello(p, &m);
	if (m.type == NET_MSG_ABORT && p->in_session) {
		say("over");
		p->in_session = false;
	}
	if (m.type == NET_MSG_PROPOSE && p->heard && is_mode(p, "hold")) {
		memcpy(p->session, m.session, sizeof(p->session));
		p->in_session = true;
		say("held");
		send_accept(p);
	}
	net_msg_release(&m);
}

static void on_timer(uv_timer_t *t)
{
	struct partner *p = t->data;

	if (!net_hub_is_up(p->hub, p->key))
		return;
	if (is_mode(p, "keys"))
		flood(p);
	else if (p->in_session)
		send_working(p);
	else if (is_mode(p, "hold"))
		send_signal(p);
}

int main(int argc, char **argv)
{
	static struct partner p;
	struct net_hub_config c = {
		.ctx = &p,
		.on = { .up = on_up, .down = on_down, .failed = on_failed, .message = on_message },
		.retry_min_ms = 5,
		.retry_max_ms = 200
	};
	struct err e = { 0 };

	signal(SIGPIPE, SIG_IGN); /* as the agent does */
	if (argc != 5 || sodium_init() < 0 || store_identity_load(&p.self, argv[1], &e) != 0 ||
	    net_key_parse(argv[3], p.key, &e) != 0) {
		fprintf(stderr, "usage: partner IDENTITY PORT KEY keys|hold|flap (%s)\n", e.text);
		return 2;
	}
	p.mode = argv[4];
	p.port = (uint16_t)atoi(argv[2]);
	c.secret = p.self->secret;
	uv_loop_init(&p.loop);
	if (net_hub_new(&p.loop, &c, &p.hub, &e) != 0 ||
	    net_hub_peer(p.hub, p.key, "127.0.0.1", p.port, &e) != 0) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	uv_timer_init(&p.loop, &p.timer);
	p.timer.data = &p;
	uv_timer_start(&p.timer, on_timer, WORKING_MS, is_mode(&p, "keys") ? 20 : WORKING_MS);
	return uv_run(&p.loop, UV_RUN_DEFAULT);
}

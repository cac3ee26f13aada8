/* Hubs over loopback, two or three in one loop, real sockets and no sleeps: a test
 * turns the loop until what it waits for has happened. */
#include "tests/test.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <signal.h>
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "base/mem.h"
#include "net/frame.h"
#include "net/greet.h"
#include "net/gate.h"
#include "net/uv/hub.h"

enum { PATIENCE_MS = 20000, FAILS_MAX = 64 };

static uv_loop_t loop;

struct node {
	uint8_t secret[32], key[32], psk[32];
	struct net_hub_config config;
	struct net_hub *hub;
	bool closed;
	uint8_t allow[4][32];
	size_t n_allow;
	/* what happened */
	unsigned ups, downs, fails, strangers, rejects, messages, writables;
	int down_code, fail_code, reject_code;
	char why[256];
	uint64_t retry[FAILS_MAX];
	uint8_t stranger[32];
	size_t bytes;
	uint32_t next; /* number that the next message must begin with */
	bool pause_each, close_on_message;
	uint64_t burn_ms; /* each message */
	unsigned slowed;
	const uint8_t *timed; /* how long the longest message of this key took, by the clock: */
	uint64_t longest_ms;
	const uint8_t *dials_with, *knows; /* secrets of the pair; NULL: none */
	bool proven;			   /* no link goes without it */
	bool has_ticket;		   /* who shows this one is let in */
	uint8_t ticket[NET_TICKET_BYTES];
};

static const uint8_t no_ticket[NET_TICKET_BYTES];

static bool on_allow(void *ctx, const uint8_t *key, const uint8_t *ticket)
{
	struct node *n = ctx;

	if (n->has_ticket && memcmp(n->ticket, ticket, NET_TICKET_BYTES) == 0)
		return true;
	for (size_t i = 0; i < n->n_allow; i++)
		if (memcmp(n->allow[i], key, 32) == 0)
			return true;
	return false;
}

static enum net_pair on_pair(void *ctx, const uint8_t *key, const struct net_greet_card *card,
			     uint8_t pair[NET_PAIR_SECRET])
{
	const struct node *n = ctx;
	const uint8_t *secret = card == NULL ? n->dials_with : n->knows;
	uint8_t id[NET_PAIR_ID] = { 0 };

	(void)key;
	if (secret != NULL) {
		memcpy(pair, secret, NET_PAIR_SECRET);
		net_greet_pair_id(secret, id);
	}
	if (card == NULL)
		return secret != NULL ? NET_PAIR_THIS : NET_PAIR_NONE;
	if (sodium_is_zero(card->pair_id, NET_PAIR_ID))
		return n->proven ? NET_PAIR_OTHER : NET_PAIR_NONE;
	return memcmp(id, card->pair_id, sizeof(id)) == 0 ? NET_PAIR_THIS : NET_PAIR_OTHER;
}

static void on_up(void *ctx, const uint8_t *key)
{
	struct node *n = ctx;

	assert_true(net_hub_is_up(n->hub, key));
	n->ups++;
}

static void on_down(void *ctx, const uint8_t *key, int code, const char *why)
{
	struct node *n = ctx;

	(void)key;
	n->downs++;
	n->down_code = code;
	snprintf(n->why, sizeof(n->why), "%s", why);
}

static void on_hub_closed(void *ctx)
{
	((struct node *)ctx)->closed = true;
}

static void burn(uint64_t ms)
{
	uint64_t until = uv_hrtime() + ms * 1000000;

	while (uv_hrtime() < until)
		;
}

static void on_slowed(void *ctx, const uint8_t *key)
{
	(void)key;
	((struct node *)ctx)->slowed++;
}

static void costly(struct node *n, const uint8_t *key)
{
	uint64_t began = uv_hrtime(), took;

	burn(n->burn_ms);
	took = (uv_hrtime() - began) / 1000000;
	if (n->timed != NULL && memcmp(n->timed, key, 32) == 0 && took > n->longest_ms)
		n->longest_ms = took;
}

static void on_message(void *ctx, const uint8_t *key, const uint8_t *bytes, size_t len)
{
	struct node *n = ctx;
	uint32_t number;

	n->messages++;
	n->bytes += len;
	if (n->burn_ms > 0) {
		costly(n, key);
	} else if (len >= 4) {
		memcpy(&number, bytes, 4);
		assert_int_equal(number, n->next);
		n->next++;
		for (size_t i = 4; i < len; i += 997)
			assert_int_equal(bytes[i], (uint8_t)(i + number));
	}
	if (n->pause_each)
		net_hub_pause(n->hub, key, true);
	if (n->close_on_message)
		net_hub_close(n->hub, on_hub_closed);
}

static void on_writable(void *ctx, const uint8_t *key)
{
	struct node *n = ctx;
	struct net_hub_stats s;

	net_hub_stats(n->hub, key, &s);
	assert_true(s.queued <= n->config.queue_max / 2);
	n->writables++;
}

static void on_failed(void *ctx, const uint8_t *key, int code, const char *why, uint64_t retry_ms)
{
	struct node *n = ctx;

	(void)key;
	if (n->fails < FAILS_MAX)
		n->retry[n->fails] = retry_ms;
	n->fails++;
	n->fail_code = code;
	snprintf(n->why, sizeof(n->why), "%s", why);
}

static void on_stranger(void *ctx, const uint8_t *key, const char *address)
{
	struct node *n = ctx;

	assert_non_null(strchr(address, ' '));
	n->strangers++;
	memcpy(n->stranger, key, 32);
}

static void on_rejected(void *ctx, const char *address, int code, const char *why)
{
	struct node *n = ctx;

	assert_true(address[0] != '\0');
	n->rejects++;
	n->reject_code = code;
	snprintf(n->why, sizeof(n->why), "%s", why);
}

static void node_init(struct node *n)
{
	memset(n, 0, sizeof(*n));
	crypto_box_keypair(n->key, n->secret);
	n->config = (struct net_hub_config){
		.secret = n->secret,
		.on = { on_allow, on_pair, on_up, on_down, on_message, on_writable, on_failed,
			on_stranger, on_rejected, on_slowed },
		.ctx = n,
		.retry_min_ms = 8,
		.retry_max_ms = 200,
	};
}

static void node_start(struct node *n)
{
	assert_int_equal(net_hub_new(&loop, &n->config, &n->hub, NULL), 0);
	n->closed = false;
}

static void node_listen(struct node *n, uint16_t port)
{
	struct err e = { 0 };

	if (net_hub_listen(n->hub, "127.0.0.1", port, &e) != 0)
		fail_msg("%s", e.text);
	assert_true(net_hub_port(n->hub) != 0);
}

static void node_allow(struct node *n, const struct node *other)
{
	memcpy(n->allow[n->n_allow++], other->key, 32);
}

static void node_dial(struct node *n, const struct node *other, uint16_t port)
{
	assert_int_equal(net_hub_peer(n->hub, other->key, "127.0.0.1", port, NULL), 0);
}

/* ---- a name with two addresses, the first of which is silent; names whose servers are ---- */

enum {
	LATE = 8, /* names: more than are looked up at a time */
	LATE_ANSWERS = 1000,
};

static sem_t answers; /* one for each look-up of late.test */

static int libc_addresses(const char *host, const char *service, const struct addrinfo *hints,
			  struct addrinfo **out)
{
	int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
	void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");

	memcpy(&next, &symbol, sizeof(next));
	return next(host, service, hints, out);
}

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
		struct addrinfo **out)
{
	struct addrinfo *last;
	int rc;

	if (host != NULL && strcmp(host, "late.test") == 0) {
		while (sem_wait(&answers) != 0)
			;
		return libc_addresses("127.0.0.1", service, hints, out);
	}
	if (host == NULL || strcmp(host, "two.test") != 0)
		return libc_addresses(host, service, hints, out);
	rc = libc_addresses("127.0.0.2", service, hints, out);
	for (last = *out; rc == 0 && last->ai_next != NULL; last = last->ai_next)
		;
	return rc != 0 ? rc : libc_addresses("127.0.0.1", service, hints, &last->ai_next);
}

static void late_names_answer(void)
{
	for (int i = 0; i < LATE_ANSWERS; i++)
		assert_int_equal(sem_post(&answers), 0);
}

/* Takes connections and says nothing; full: the system takes none of them. */
struct silent {
	int fd, in_line[4];
};

static void silent_open(struct silent *s, uint16_t port, bool full)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, "127.0.0.2", &sa.sin_addr);
	s->fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(s->fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(s->fd, full ? 0 : 16), 0);
	for (size_t i = 0; i < 4; i++) {
		s->in_line[i] = full ? socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0) : -1;
		if (full)
			(void)!connect(s->in_line[i], (struct sockaddr *)&sa, sizeof(sa));
	}
}

static void silent_close(struct silent *s)
{
	for (size_t i = 0; i < 4; i++)
		if (s->in_line[i] >= 0)
			close(s->in_line[i]);
	close(s->fd);
}

/* ---- turning the loop ---- */

static bool late;

static void on_late(uv_timer_t *t)
{
	(void)t;
	late = true;
}

#define TURN_UNTIL(what)                                                                           \
	do {                                                                                       \
		uv_timer_t guard_;                                                                 \
		late = false;                                                                      \
		uv_timer_init(&loop, &guard_);                                                     \
		uv_timer_start(&guard_, on_late, PATIENCE_MS, 0);                                  \
		while (!(what) && !late)                                                           \
			uv_run(&loop, UV_RUN_ONCE);                                                \
		uv_close((uv_handle_t *)&guard_, NULL);                                            \
		uv_run(&loop, UV_RUN_NOWAIT);                                                      \
		if (late)                                                                          \
			fail_msg("%s:%d: never happened: %s", __FILE__, __LINE__, #what);          \
	} while (0)

static void turn_for(uint64_t ms)
{
	uint64_t until = uv_now(&loop) + ms;

	TURN_UNTIL(uv_now(&loop) >= until);
}

static void node_stop(struct node *n)
{
	if (n->hub == NULL)
		return;
	net_hub_close(n->hub, on_hub_closed);
	TURN_UNTIL(n->closed);
	n->hub = NULL;
}

static int setup(void **state)
{
	(void)state;
	if (sem_init(&answers, 0, 0) != 0)
		return 1;
	return uv_loop_init(&loop);
}

/* Nothing may be left in the loop: not a handle, not a request. */
static int teardown(void **state)
{
	(void)state;
	late_names_answer(); /* also where a test has failed: libuv waits for them at exit */
	uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(uv_loop_close(&loop), 0);
	return 0;
}

/* a listens and waits for b, who only dials. */
static void pair_init(struct node *a, struct node *b)
{
	node_init(a);
	node_init(b);
	node_allow(a, b);
	node_allow(b, a);
}

static void pair_start(struct node *a, struct node *b)
{
	node_start(a);
	node_start(b);
	node_listen(a, 0);
	assert_int_equal(net_hub_peer(a->hub, b->key, NULL, 0, NULL), 0);
	node_dial(b, a, net_hub_port(a->hub));
}

static void pair_up(struct node *a, struct node *b)
{
	pair_init(a, b);
	pair_start(a, b);
	TURN_UNTIL(a->ups == 1 && b->ups == 1);
}

static int send_numbered(struct node *from, const struct node *to, uint32_t number, size_t len)
{
	uint8_t *m = malloc(len);
	int rc;

	memcpy(m, &number, 4);
	for (size_t i = 4; i < len; i++)
		m[i] = (uint8_t)(i + number);
	rc = net_hub_send(from->hub, to->key, m, len);
	free(m);
	return rc;
}

/* ---- hubs among themselves ---- */

/* b cannot be dialled: everything goes over the link that b opened. */
static void test_both_ways_outbound_only(void **state)
{
	struct node a, b;
	struct net_hub_stats sa, sb;
	char address[80];

	(void)state;
	pair_up(&a, &b);
	assert_int_equal(net_hub_port(b.hub), 0);
	for (uint32_t i = 0; i < 20; i++) {
		assert_int_equal(send_numbered(&a, &b, i, 4 + i * 5000), 0);
		assert_int_equal(send_numbered(&b, &a, i, i == 7 ? NET_MESSAGE_MAX : 4), 0);
	}
	TURN_UNTIL(a.messages == 20 && b.messages == 20);
	assert_int_equal(a.bytes, 19 * 4 + NET_MESSAGE_MAX);
	net_hub_stats(a.hub, b.key, &sa);
	net_hub_stats(b.hub, a.key, &sb);
	assert_int_equal(sa.messages_in, 20);
	assert_int_equal(sa.messages_out, 20);
	assert_true(sa.up && sa.links == 1 && sa.queued == 0);
	assert_true(sa.bytes_in > NET_MESSAGE_MAX && sa.bytes_in == sb.bytes_out);
	assert_true(sa.bytes_out == sb.bytes_in);
	net_hub_address(a.hub, b.key, address, sizeof(address));
	assert_memory_equal(address, "127.0.0.1 ", 10);
	node_stop(&b);
	TURN_UNTIL(a.downs == 1);
	assert_int_equal(a.down_code, ERR_CANCELED);
	assert_string_equal(a.why, "shutting down");
	net_hub_stats(a.hub, b.key, &sa);
	assert_string_equal(sa.why, "shutting down");
	assert_true(sa.why_ms > 0);
	node_stop(&a);
}

static void test_send_refuses(void **state)
{
	struct node a, b;
	uint8_t *big = calloc(1, NET_MESSAGE_MAX + 1);

	(void)state;
	pair_init(&a, &b);
	pair_start(&a, &b);
	assert_int_equal(net_hub_send(b.hub, a.key, "x", 1), ERR_UNREACHABLE);
	TURN_UNTIL(a.ups == 1 && b.ups == 1);
	assert_int_equal(net_hub_send(b.hub, a.key, big, NET_MESSAGE_MAX + 1), ERR_TOOBIG);
	assert_int_equal(net_hub_send(b.hub, a.key, big, 0), ERR_TOOBIG);
	assert_int_equal(net_hub_send(b.hub, b.key, "x", 1), ERR_UNREACHABLE);
	assert_int_equal(net_hub_peer(b.hub, b.key, "127.0.0.1", 1, NULL), ERR_USAGE);
	assert_int_equal(net_hub_listen(a.hub, "127.0.0.1", 0, NULL), ERR_USAGE);
	assert_int_equal(net_hub_listen(b.hub, "127.0.0.1", net_hub_port(a.hub), NULL), ERR_IO);
	assert_true(net_hub_is_up(a.hub, b.key)); /* none of it hurt the link */
	free(big);
	node_stop(&a);
	node_stop(&b);
}

static void test_unlisted_key(void **state)
{
	struct node a, b;
	struct net_hub_stats s;

	(void)state;
	pair_init(&a, &b);
	a.n_allow = 0;
	pair_start(&a, &b);
	TURN_UNTIL(b.fails >= 3);
	assert_int_equal(b.fail_code, ERR_REFUSED);
	assert_int_equal(a.strangers, 1); /* reported once, not at every try */
	assert_memory_equal(a.stranger, b.key, 32);
	assert_int_equal(a.ups + b.ups + a.rejects, 0);
	net_hub_stats(a.hub, b.key, &s);
	assert_int_equal(s.links + s.bytes_in, 0);
	net_hub_stats(b.hub, a.key, &s);
	assert_string_equal(s.why, "the peer has not accepted our key (yet)");
	assert_true(s.why_ms > 0);
	node_allow(&a, &b); /* the owner accepts: the next try succeeds */
	TURN_UNTIL(a.ups == 1 && b.ups == 1);
	net_hub_stats(b.hub, a.key, &s);
	assert_true(s.why[0] == '\0' && s.why_ms == 0);
	node_stop(&a);
	node_stop(&b);
}

/* What the dialler shows is sealed for the acceptor alone, who decides what it is worth. */
static void test_ticket(void **state)
{
	static const uint8_t good[NET_TICKET_BYTES] = { 7 }, bad[NET_TICKET_BYTES] = { 8 };
	struct net_greet_card shown;
	struct node a, b;

	(void)state;
	pair_init(&a, &b);
	a.n_allow = 0;
	a.has_ticket = true;
	memcpy(a.ticket, good, sizeof(good));
	pair_start(&a, &b);
	net_hub_show(b.hub, a.key, bad);
	TURN_UNTIL(b.fails >= 2);
	assert_int_equal(a.ups, 0);
	net_hub_show(b.hub, a.key, good);
	TURN_UNTIL(a.ups == 1 && b.ups == 1);
	net_hub_shown(a.hub, b.key, &shown);
	assert_memory_equal(shown.ticket, good, sizeof(good));
	net_hub_shown(b.hub, a.key, &shown); /* who dialled was shown none */
	assert_memory_equal(shown.ticket, no_ticket, sizeof(shown.ticket));
	node_stop(&a);
	node_stop(&b);
}

/* Let through by what it shows, and no partner after all: nothing of it stays but what its source
 * is charged. */
static void test_refused_newcomer(void **state)
{
	static const uint8_t good[NET_TICKET_BYTES] = { 7 };
	struct net_hub_stats s;
	struct node a, b;

	(void)state;
	pair_init(&a, &b);
	a.n_allow = 0;
	a.has_ticket = true;
	memcpy(a.ticket, good, sizeof(good));
	pair_start(&a, &b);
	net_hub_show(b.hub, a.key, good);
	for (unsigned n = 1; n <= 3; n++) {
		TURN_UNTIL(a.ups == n && b.ups == n);
		net_hub_stats(a.hub, b.key, &s);
		assert_int_equal(s.links, 1); /* it was not remembered */
		net_hub_refuse(a.hub, b.key, "not this one");
		assert_false(net_hub_is_up(a.hub, b.key));
		TURN_UNTIL(b.downs == n);
		assert_int_equal(b.down_code, ERR_CANCELED);
		assert_int_equal(a.downs, 0); /* as with net_hub_forget() */
	}
	node_stop(&a);
	node_stop(&b);
}

/* The secret of two agents goes into the keys of their link; which one is meant is on the card. */
static void test_pair_secret(void **state)
{
	static const uint8_t first[NET_PAIR_SECRET] = { 1 }, second[NET_PAIR_SECRET] = { 2 };
	struct net_greet_card a_card, b_card;
	struct node a, b;

	(void)state;
	pair_init(&a, &b);
	a.knows = first;
	a.proven = true;
	pair_start(&a, &b);
	TURN_UNTIL(b.fails >= 1); /* without one */
	b.dials_with = second;
	TURN_UNTIL(b.fails >= 4); /* with another */
	assert_int_equal(a.ups, 0);
	assert_int_equal(b.fail_code, ERR_IDENTITY);
	assert_non_null(strstr(b.why, "new invitation"));
	b.dials_with = first;
	TURN_UNTIL(a.ups == 1 && b.ups == 1);
	net_hub_shown(a.hub, b.key, &a_card);
	net_hub_shown(b.hub, a.key, &b_card);
	assert_false(sodium_is_zero(a_card.pair_id, NET_PAIR_ID));
	assert_memory_equal(a_card.pair_id, b_card.pair_id, NET_PAIR_ID);
	node_stop(&a);
	node_stop(&b);
}

/* Who knows the keys and what the card says, but not the secret, opens nothing. */
static void test_pair_secret_is_in_the_keys(void **state)
{
	static const struct net_greet_card blank;
	uint8_t secret[3][NET_PAIR_SECRET], out[GREET_ANSWER], ask[GREET_ASK],
		federation[32] = { 3 };
	struct net_noise dialler, acceptor;
	struct net_greet_card card = blank;
	struct node a, b;

	(void)state;
	node_init(&a);
	node_init(&b);
	randombytes_buf(secret, sizeof(secret));
	memcpy(secret[2], secret[0], NET_PAIR_SECRET);
	secret[2][NET_PAIR_SECRET - 1] ^= 1; /* all bits but one are the same */
	for (int with = 0; with < 2; with++) {
		struct net_greet_keys theirs = { b.secret, with ? federation : NULL, NET_VERSION };
		struct net_greet_keys ours = { a.secret, with ? federation : NULL, NET_VERSION };

		for (int said = -1; said < 3; said++) { /* -1: none */
			const uint8_t *pair = said < 0 ? NULL : secret[said];

			assert_int_equal(
				net_greet_ask(&dialler, &theirs, a.key, no_ticket, secret[0], ask),
				0);
			assert_int_equal(net_greet_hear(&acceptor, &ours, ask + GREET_HEAD, &card),
					 0);
			assert_int_equal(net_greet_answer(&acceptor, &ours, pair, out), 0);
			assert_int_equal(net_greet_finish(&dialler, out + GREET_HEAD),
					 said == 0 ? 0 : ERR_IDENTITY);
			net_noise_release(&dialler);
			net_noise_release(&acceptor);
		}
		/* another federation is told at the first message */
		ours.psk = with ? NULL : federation;
		assert_int_equal(net_greet_ask(&dialler, &theirs, a.key, no_ticket, NULL, ask), 0);
		assert_int_equal(net_greet_hear(&acceptor, &ours, ask + GREET_HEAD, &card),
				 ERR_IDENTITY);
		net_noise_release(&dialler);
		net_noise_release(&acceptor);
	}
}

/* The dialler asks its own list as well. */
static void test_not_on_the_diallers_list(void **state)
{
	struct node a, b;

	(void)state;
	pair_init(&a, &b);
	b.n_allow = 0;
	pair_start(&a, &b);
	TURN_UNTIL(b.fails >= 2 && a.downs >= 1);
	assert_int_equal(b.ups, 0);
	assert_int_equal(b.fail_code, ERR_REFUSED);
	net_hub_forget(b.hub, a.key, "not wanted");
	node_stop(&a);
	node_stop(&b);
}

static void secret_case(const char *psk_a, const char *psk_b)
{
	struct node a, b;

	pair_init(&a, &b);
	a.config.psk = (const uint8_t *)psk_a;
	b.config.psk = (const uint8_t *)psk_b;
	pair_start(&a, &b);
	TURN_UNTIL(b.fails >= 1 && a.rejects >= 1);
	assert_int_equal(b.fail_code, ERR_IDENTITY);
	assert_int_equal(a.reject_code, ERR_IDENTITY);
	assert_int_equal(a.ups + b.ups, 0);
	node_stop(&a);
	node_stop(&b);
}

static void test_wrong_secret(void **state)
{
	static const char one[33] = "the federation's secret, 32 byte";
	static const char two[33] = "the federation's secret, another";
	struct node a, b;

	(void)state;
	secret_case(one, two);
	secret_case(one, NULL);
	secret_case(NULL, two);
	pair_init(&a, &b);
	a.config.psk = b.config.psk = (const uint8_t *)one;
	pair_start(&a, &b);
	TURN_UNTIL(a.ups == 1 && b.ups == 1);
	node_stop(&a);
	node_stop(&b);
}

/* b believes that a has another key. */
static void test_wrong_key(void **state)
{
	struct node a, b, other;

	(void)state;
	pair_init(&a, &b);
	node_init(&other);
	node_allow(&b, &other);
	node_start(&a);
	node_start(&b);
	node_listen(&a, 0);
	node_dial(&b, &other, net_hub_port(a.hub));
	TURN_UNTIL(b.fails >= 1);
	assert_int_equal(b.fail_code, ERR_IDENTITY);
	assert_int_equal(a.strangers, 0);
	node_stop(&a);
	node_stop(&b);
}

static void test_other_version(void **state)
{
	char ours[32];
	struct node a, b;

	(void)state;
	snprintf(ours, sizeof(ours), "version %d", NET_VERSION);
	pair_init(&a, &b);
	b.config.version = 99;
	pair_start(&a, &b);
	TURN_UNTIL(b.fails >= 1 && a.rejects >= 1);
	assert_int_equal(b.fail_code, ERR_VERSION);
	assert_int_equal(a.reject_code, ERR_VERSION);
	assert_non_null(strstr(a.why, "version 99"));
	assert_non_null(strstr(b.why, ours));
	node_stop(&a);
	node_stop(&b);
}

/* Both dial at once, again and again: one link in the end, the same for both. */
static void test_simultaneous_dial(void **state)
{
	(void)state;
	for (int round = 0; round < 30; round++) {
		struct node a, b;
		char at_a[80], at_b[80];
		unsigned sent = 0;

		pair_init(&a, &b);
		node_start(&a);
		node_start(&b);
		node_listen(&a, 0);
		node_listen(&b, 0);
		node_dial(&a, &b, net_hub_port(b.hub));
		node_dial(&b, &a, net_hub_port(a.hub));
		TURN_UNTIL(net_hub_is_up(a.hub, b.key) && net_hub_is_up(b.hub, a.key) &&
			   a.ups - a.downs == 1 && b.ups - b.downs == 1);
		turn_for(20);
		assert_int_equal(a.ups - a.downs, 1);
		assert_int_equal(b.ups - b.downs, 1);
		assert_true(a.ups <= 2 && b.ups <= 2);
		/* exactly one of the two sees the other's listening port */
		net_hub_address(a.hub, b.key, at_a, sizeof(at_a));
		net_hub_address(b.hub, a.key, at_b, sizeof(at_b));
		assert_true((strtoul(at_a + 10, NULL, 10) == net_hub_port(b.hub)) !=
			    (strtoul(at_b + 10, NULL, 10) == net_hub_port(a.hub)));
		for (; sent < 5; sent++) {
			assert_int_equal(send_numbered(&a, &b, sent, 100), 0);
			assert_int_equal(send_numbered(&b, &a, sent, 100), 0);
		}
		TURN_UNTIL(a.messages == 5 && b.messages == 5);
		node_stop(&a);
		node_stop(&b);
	}
}

static void test_reconnects(void **state)
{
	struct node a, b;
	uint16_t port;

	(void)state;
	pair_up(&a, &b);
	port = net_hub_port(a.hub);
	for (unsigned round = 1; round <= 3; round++) {
		node_stop(&a);
		TURN_UNTIL(b.downs == round && b.fails > 0);
		assert_int_equal(b.fail_code, ERR_UNREACHABLE);
		b.fails = 0;
		node_start(&a);
		node_listen(&a, port);
		TURN_UNTIL(b.ups == 1 + round && a.ups == 1 + round);
	}
	assert_int_equal(send_numbered(&a, &b, 0, 9), 0);
	TURN_UNTIL(b.messages == 1);
	node_stop(&a);
	node_stop(&b);
}

/* b comes back with the same key while a still holds the old link. */
static void test_restarted_peer_replaces(void **state)
{
	struct node a, b, again;

	(void)state;
	pair_up(&a, &b);
	again = b;
	again.config.ctx = &again;
	again.config.secret = again.secret;
	again.ups = 0;
	node_start(&again);
	node_dial(&again, &a, net_hub_port(a.hub));
	TURN_UNTIL(again.ups == 1 && a.ups == 2);
	assert_int_equal(a.downs, 1);
	assert_int_equal(a.down_code, ERR_EXISTS);
	net_hub_forget(b.hub, a.key, "enough");
	node_stop(&b);
	node_stop(&again);
	node_stop(&a);
}

static void test_backoff_grows(void **state)
{
	struct node a, b;
	uint16_t port;

	(void)state;
	pair_init(&a, &b);
	node_start(&a);
	node_listen(&a, 0);
	port = net_hub_port(a.hub);
	node_stop(&a); /* nobody is there now */
	node_start(&b);
	node_dial(&b, &a, port);
	TURN_UNTIL(b.fails == 8);
	assert_int_equal(b.fail_code, ERR_UNREACHABLE);
	for (unsigned i = 0; i < 8; i++) {
		uint64_t top = 8U << i < 200 ? 8U << i : 200;

		assert_true(b.retry[i] >= top / 2 && b.retry[i] <= top);
	}
	node_stop(&b);
}

static void test_waits_are_drawn(void **state)
{
	struct node a, b;
	unsigned differ = 0;
	uint16_t port;

	(void)state;
	pair_init(&a, &b);
	node_start(&a);
	node_listen(&a, 0);
	port = net_hub_port(a.hub);
	node_stop(&a);
	b.config.retry_min_ms = b.config.retry_max_ms = 20;
	node_start(&b);
	node_dial(&b, &a, port);
	TURN_UNTIL(b.fails == 20);
	for (unsigned i = 0; i < 20; i++) {
		assert_true(b.retry[i] >= 10 && b.retry[i] <= 20);
		differ += b.retry[i] != b.retry[0];
	}
	assert_true(differ > 0); /* or who lost each other at one moment would come at one */
	node_stop(&b);
}

/* After a link that was short the waits go on where they were; after a stable one they begin anew.
 */
static void wait_after_link(uint64_t stable_ms, uint64_t least, uint64_t most)
{
	struct node a, b;
	uint16_t port;

	pair_init(&a, &b);
	node_start(&a);
	node_listen(&a, 0);
	port = net_hub_port(a.hub);
	node_stop(&a);
	b.config.retry_max_ms = 400;
	b.config.stable_ms = stable_ms;
	node_start(&b);
	node_dial(&b, &a, port);
	TURN_UNTIL(b.fails == 6);
	node_start(&a);
	node_listen(&a, port);
	TURN_UNTIL(b.ups == 1 && a.ups == 1);
	turn_for(5);
	node_stop(&a);
	TURN_UNTIL(b.downs == 1 && b.fails == 7);
	assert_true(b.retry[6] >= least && b.retry[6] <= most);
	node_stop(&b);
}

static void test_stable_links_start_over(void **state)
{
	(void)state;
	wait_after_link(10000, 200, 400);
	wait_after_link(1, 8, 16);
}

/* Who is told another address does not wait for the time of the old one. */
static void test_another_address_is_tried_at_once(void **state)
{
	struct node a, b;
	uint16_t port;

	(void)state;
	pair_init(&a, &b);
	node_start(&a);
	node_listen(&a, 0);
	port = net_hub_port(a.hub);
	node_stop(&a);
	b.config.retry_min_ms = b.config.retry_max_ms = 4 * PATIENCE_MS;
	node_start(&b);
	node_dial(&b, &a, port);
	TURN_UNTIL(b.fails == 1);
	node_start(&a);
	node_listen(&a, 0);
	node_dial(&b, &a, net_hub_port(a.hub));
	TURN_UNTIL(a.ups == 1 && b.ups == 1);
	node_stop(&b);
	node_stop(&a);
}

/* Who says himself that he is elsewhere is called there when it is time, and that a dial is under
 * way changes nothing. */
static void test_moves_hurry_nothing(void **state)
{
	struct node a, b;
	uint16_t port;

	(void)state;
	pair_init(&a, &b);
	node_start(&a);
	node_listen(&a, 0);
	port = net_hub_port(a.hub);
	node_stop(&a);
	b.config.retry_min_ms = b.config.retry_max_ms = 4000;
	node_start(&b);
	net_hub_moved(b.hub, a.key, "127.0.0.1", port); /* nobody wants a link to it */
	assert_int_equal(net_hub_peer(b.hub, a.key, NULL, 0, NULL), 0);
	net_hub_moved(b.hub, a.key, "127.0.0.1", port);
	TURN_UNTIL(b.fails == 1);
	for (int i = 0; i < 15; i++) {
		net_hub_moved(b.hub, a.key, i % 2 == 0 ? "127.0.0.3" : "127.0.0.1", port);
		burn(5);
		uv_run(&loop, UV_RUN_NOWAIT);
	}
	assert_int_equal(b.fails, 1);
	node_start(&a);
	node_listen(&a, 0);
	net_hub_moved(b.hub, a.key, "127.0.0.1", net_hub_port(a.hub));
	TURN_UNTIL(a.ups == 1 && b.ups == 1);
	assert_int_equal(b.fails, 1);
	assert_true(net_hub_called(a.hub, b.key) && !net_hub_called(b.hub, a.key));
	node_stop(&b);
	node_stop(&a);
}

static void test_links_are_not_too_many(void **state)
{
	struct node a, b, c;

	(void)state;
	pair_init(&a, &b);
	node_init(&c);
	node_allow(&a, &c);
	node_allow(&c, &a);
	a.config.links_max = 1;
	pair_start(&a, &b);
	TURN_UNTIL(a.ups == 1 && b.ups == 1);
	node_start(&c);
	node_dial(&c, &a, net_hub_port(a.hub));
	TURN_UNTIL(c.fails > 0);
	assert_int_equal(c.fail_code, ERR_BUSY);
	assert_true(net_hub_is_up(a.hub, b.key) && a.ups == 1);
	node_stop(&b); /* which leaves room */
	TURN_UNTIL(a.ups == 2 && c.ups == 1);
	node_stop(&c);
	node_stop(&a);
}

/* Who does not hear that we leave keeps no link of ours for long. */
static void test_leaves_who_does_not_listen(void **state)
{
	struct node a, b;

	(void)state;
	pair_up(&a, &b);
	net_hub_pause(b.hub, a.key, true);
	node_stop(&a);
	assert_int_equal(b.downs, 0);
	node_stop(&b);
}

static void test_forget(void **state)
{
	struct node a, b;

	(void)state;
	pair_up(&a, &b);
	b.n_allow = 0;
	net_hub_forget(b.hub, a.key, "the owner \u202erevoked you");
	assert_false(net_hub_is_up(b.hub, a.key));
	TURN_UNTIL(a.downs == 1);
	assert_int_equal(a.down_code, ERR_CANCELED);
	assert_string_equal(a.why, "the owner ???revoked you"); /* as a log shows it */
	turn_for(60);
	assert_int_equal(b.ups, 1); /* does not dial again */
	assert_int_equal(b.downs, 0);
	node_stop(&a);
	node_stop(&b);
}

/* The reader stops; the writer is told, waits, and goes on; nothing is lost. */
static void test_back_pressure(void **state)
{
	struct node a, b;
	uint32_t sent = 0;
	struct net_hub_stats s;

	(void)state;
	pair_init(&a, &b);
	b.config.queue_max = 1 << 20;
	pair_start(&a, &b);
	TURN_UNTIL(a.ups == 1 && b.ups == 1);
	net_hub_pause(a.hub, b.key, true);
	/* the system's own buffers fill first */
	for (int turns = 0; turns < 2000; turns++) {
		int rc = send_numbered(&b, &a, sent, 50000);

		assert_true(rc == 0 || rc == ERR_BUSY);
		sent += rc == 0;
		uv_run(&loop, UV_RUN_NOWAIT);
	}
	assert_int_equal(send_numbered(&b, &a, sent, 50000), ERR_BUSY);
	net_hub_stats(b.hub, a.key, &s);
	assert_true(s.queued > (1 << 20) / 2 && s.queued <= 1 << 20);
	assert_int_equal(a.messages, 0);
	b.writables = 0;
	net_hub_pause(a.hub, b.key, false);
	TURN_UNTIL(b.writables > 0);
	assert_int_equal(send_numbered(&b, &a, sent++, 50000), 0);
	TURN_UNTIL(a.messages == sent);
	assert_int_equal(a.next, sent);
	node_stop(&a);
	node_stop(&b);
}

/* Who is told to wait waits for that link: a new one has room from the start, and says no word of
 * it. */
static void test_another_link_has_room(void **state)
{
	struct node a, b;
	uint32_t sent = 0;

	(void)state;
	pair_init(&a, &b);
	b.config.queue_max = 1 << 20;
	pair_start(&a, &b);
	TURN_UNTIL(a.ups == 1 && b.ups == 1);
	net_hub_pause(a.hub, b.key, true);
	for (int rc = 0; rc == 0; sent++) {
		rc = send_numbered(&b, &a, sent, 50000);
		assert_true(rc == 0 || rc == ERR_BUSY);
	}
	net_hub_forget(b.hub, a.key, "again");
	node_dial(&b, &a, net_hub_port(a.hub));
	TURN_UNTIL(a.ups == 2 && b.ups == 2);
	a.next = a.messages = 0;
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(send_numbered(&b, &a, i, 100), 0);
	TURN_UNTIL(a.messages == 3);
	assert_int_equal(b.writables, 0);
	node_stop(&a);
	node_stop(&b);
}

/* One message at a time: pausing inside the callback holds the rest back. */
static void test_pause_in_callback(void **state)
{
	struct node a, b;

	(void)state;
	pair_up(&a, &b);
	a.pause_each = true;
	for (uint32_t i = 0; i < 50; i++)
		assert_int_equal(send_numbered(&b, &a, i, 100), 0);
	for (unsigned i = 1; i <= 50; i++) {
		TURN_UNTIL(a.messages >= i);
		turn_for(2);
		assert_int_equal(a.messages, i);
		net_hub_pause(a.hub, b.key, false);
		assert_int_equal(a.messages, i); /* not from inside the call */
	}
	node_stop(&a);
	node_stop(&b);
}

/* What was not read because of us is no silence. */
static void test_a_pause_is_no_silence(void **state)
{
	struct node a, b;

	(void)state;
	pair_init(&a, &b);
	a.config.keepalive_ms = 20;
	a.config.dead_ms = 80;
	pair_start(&a, &b);
	TURN_UNTIL(a.ups == 1 && b.ups == 1);
	net_hub_pause(a.hub, b.key, true);
	turn_for(200);
	assert_int_equal(send_numbered(&b, &a, 0, 100), 0);
	net_hub_pause(a.hub, b.key, false);
	TURN_UNTIL(a.messages == 1 || a.downs > 0);
	assert_int_equal(a.downs, 0);
	node_stop(&a);
	node_stop(&b);
}

static void test_close_in_callback(void **state)
{
	struct node a, b;

	(void)state;
	pair_up(&a, &b);
	a.close_on_message = true;
	send_numbered(&b, &a, 0, 100);
	send_numbered(&b, &a, 1, 100);
	TURN_UNTIL(a.closed && b.downs >= 1);
	assert_int_equal(a.messages, 1);
	node_stop(&b);
}

/* Idle for many times dead_ms: pings keep it up.  Rekeyed on the way. */
static void test_idle_stays_up(void **state)
{
	struct node a, b;

	(void)state;
	pair_init(&a, &b);
	a.config.keepalive_ms = b.config.keepalive_ms = 20;
	a.config.dead_ms = b.config.dead_ms = 120;
	a.config.rekey_every = b.config.rekey_every = 3;
	pair_start(&a, &b);
	TURN_UNTIL(a.ups == 1 && b.ups == 1);
	turn_for(500);
	assert_int_equal(a.downs + b.downs, 0);
	send_numbered(&a, &b, 0, 100);
	TURN_UNTIL(b.messages == 1);
	node_stop(&a);
	node_stop(&b);
}

/* A loop that was away for longer than dead_ms has not listened: what came meanwhile counts, and
 * who was away, too, has time to answer. */
static void test_late_loop(void **state)
{
	struct node a, b;

	(void)state;
	pair_init(&a, &b);
	a.config.keepalive_ms = b.config.keepalive_ms = 20;
	a.config.dead_ms = b.config.dead_ms = 120;
	pair_start(&a, &b);
	TURN_UNTIL(a.ups == 1 && b.ups == 1);
	for (uint32_t i = 0; i < 3; i++) {
		burn(150);
		send_numbered(&a, &b, i, 100);
		TURN_UNTIL(b.messages == i + 1);
	}
	assert_int_equal(a.downs + b.downs, 0);
	node_stop(&a);
	node_stop(&b);
}

static void test_names_and_v6(void **state)
{
	struct node a, b;

	(void)state;
	pair_init(&a, &b);
	node_start(&a);
	node_start(&b);
	if (net_hub_listen(a.hub, "::1", 0, NULL) != 0) {
		node_stop(&a);
		node_stop(&b);
		skip();
	}
	assert_int_equal(net_hub_peer(b.hub, a.key, "::1", net_hub_port(a.hub), NULL), 0);
	TURN_UNTIL(a.ups == 1 && b.ups == 1);
	net_hub_forget(b.hub, a.key, "again, by a name that has two addresses");
	TURN_UNTIL(a.downs == 1);
	assert_int_equal(net_hub_peer(b.hub, a.key, "localhost", net_hub_port(a.hub), NULL), 0);
	TURN_UNTIL(a.ups == 2 || b.fails > 0); /* where localhost is v4 alone it fails */
	node_stop(&a);
	node_stop(&b);
}

/* How long until the second address has brought the link up. */
static uint64_t second_address(bool full, uint64_t handshake_ms)
{
	struct node a, b;
	struct silent first;
	uint64_t began;

	pair_init(&a, &b);
	b.config.handshake_ms = handshake_ms;
	node_start(&a);
	node_start(&b);
	node_listen(&a, 0);
	silent_open(&first, net_hub_port(a.hub), full);
	uv_update_time(&loop);
	began = uv_now(&loop);
	assert_int_equal(net_hub_peer(b.hub, a.key, "two.test", net_hub_port(a.hub), NULL), 0);
	TURN_UNTIL(a.ups == 1 && b.ups == 1);
	assert_int_equal(b.fails, 0);
	began = uv_now(&loop) - began;
	node_stop(&a);
	node_stop(&b);
	silent_close(&first);
	return began;
}

static void test_silent_first_address(void **state)
{
	(void)state;
	second_address(false, 1000);
}

/* Two addresses have half of the time each to be connected to. */
static void test_unreachable_first_address(void **state)
{
	(void)state;
	assert_in_range(second_address(true, 4000), 1500, 3900);
}

static void refuse_caller(uv_stream_t *server, int status)
{
	uv_tcp_t *caller = server->data;
	uint8_t head[GREET_HEAD];
	uv_buf_t b = uv_buf_init((char *)head, sizeof(head));

	if (status != 0 || caller->data != NULL)
		return;
	caller->data = server; /* the first */
	assert_int_equal(uv_tcp_init(&loop, caller), 0);
	caller->data = server;
	assert_int_equal(uv_accept(server, (uv_stream_t *)caller), 0);
	net_greet_refuse(GREET_REFUSED, NET_VERSION, head);
	assert_int_equal(uv_try_write((uv_stream_t *)caller, &b, 1), sizeof(head));
}

/* What is said before the handshake may be said by anybody who has the address now. */
static void test_refused_at_first_address(void **state)
{
	struct node a, b;
	uv_tcp_t other, caller = { .data = NULL };
	struct sockaddr_in sa;

	(void)state;
	pair_init(&a, &b);
	node_start(&a);
	node_start(&b);
	node_listen(&a, 0);
	uv_ip4_addr("127.0.0.2", net_hub_port(a.hub), &sa);
	uv_tcp_init(&loop, &other);
	other.data = &caller;
	assert_int_equal(uv_tcp_bind(&other, (const struct sockaddr *)&sa, 0), 0);
	assert_int_equal(uv_listen((uv_stream_t *)&other, 4, refuse_caller), 0);
	assert_int_equal(net_hub_peer(b.hub, a.key, "two.test", net_hub_port(a.hub), NULL), 0);
	TURN_UNTIL(a.ups == 1 && b.ups == 1);
	assert_non_null(caller.data);
	assert_int_equal(b.fails, 0);
	uv_close((uv_handle_t *)&other, NULL);
	uv_close((uv_handle_t *)&caller, NULL);
	node_stop(&a);
	node_stop(&b);
}

static void test_unknown_name(void **state)
{
	struct node a, b;

	(void)state;
	pair_init(&a, &b);
	node_start(&b);
	assert_int_equal(net_hub_peer(b.hub, a.key, "no such host", 1, NULL), 0);
	TURN_UNTIL(b.fails >= 1);
	assert_int_equal(b.fail_code, ERR_UNREACHABLE);
	node_stop(&b);
}

/* Partners of whom nothing is known but a name whose servers do not answer. */
static void dial_late_names(struct node *b, uint16_t port)
{
	struct node nobody;

	for (int i = 0; i < LATE; i++) {
		node_init(&nobody);
		assert_int_equal(net_hub_peer(b->hub, nobody.key, "late.test", port, NULL), 0);
	}
}

static void test_numeric_beside_late_names(void **state)
{
	struct node a, b;

	(void)state;
	pair_init(&a, &b);
	node_start(&a);
	node_start(&b);
	node_listen(&a, 0);
	dial_late_names(&b, net_hub_port(a.hub));
	uv_run(&loop, UV_RUN_ONCE); /* they wait before it */
	node_dial(&b, &a, net_hub_port(a.hub));
	TURN_UNTIL(a.ups == 1 && b.ups == 1);
	assert_int_equal(b.fails, 0);
	late_names_answer();
	node_stop(&a);
	node_stop(&b);
}

static void test_late_name_says_so(void **state)
{
	struct node a, b;

	(void)state;
	pair_init(&a, &b);
	b.config.handshake_ms = 20;
	node_start(&b);
	assert_int_equal(net_hub_peer(b.hub, a.key, "late.test", 1, NULL), 0);
	TURN_UNTIL(b.fails >= 1);
	assert_int_equal(b.fail_code, ERR_TIMEOUT);
	assert_string_equal(b.why, "its name is still being looked up");
	late_names_answer();
	node_stop(&b);
}

/* A name that is found after more than the time of a handshake, which a silent peer shows to be
 * over, has all of it. */
static void test_late_name(void **state)
{
	struct node a, b, nobody;
	struct silent silent;

	(void)state;
	pair_init(&a, &b);
	node_init(&nobody);
	b.config.handshake_ms = 500;
	node_start(&a);
	node_start(&b);
	node_listen(&a, 0);
	silent_open(&silent, net_hub_port(a.hub), false);
	assert_int_equal(net_hub_peer(b.hub, a.key, "late.test", net_hub_port(a.hub), NULL), 0);
	uv_run(&loop, UV_RUN_ONCE);
	assert_int_equal(net_hub_peer(b.hub, nobody.key, "127.0.0.2", net_hub_port(a.hub), NULL),
			 0);
	TURN_UNTIL(b.fails == 1);
	assert_string_equal(b.why, "no answer in time");
	net_hub_forget(b.hub, nobody.key, "seen");
	assert_int_equal(sem_post(&answers), 0);
	TURN_UNTIL(a.ups == 1 && b.ups == 1);
	assert_int_equal(b.fails, 1);
	node_stop(&a);
	node_stop(&b);
	silent_close(&silent);
}

/* ---- a client that holds the wire in its own hands ---- */

struct raw {
	uv_tcp_t tcp;
	uv_connect_t connect;
	bool connected, ended, closed;
	struct buf in;
	struct net_noise hs;
	struct net_noise_cipher tx, rx;
	uint8_t ask[GREET_ASK];
	char room[65536];
};

static void raw_alloc(uv_handle_t *h, size_t n, uv_buf_t *b)
{
	struct raw *r = h->data;

	(void)n;
	*b = uv_buf_init(r->room, sizeof(r->room));
}

static void raw_read(uv_stream_t *s, ssize_t n, const uv_buf_t *b)
{
	struct raw *r = s->data;

	if (n > 0)
		buf_add(&r->in, b->base, (size_t)n);
	else if (n < 0)
		r->ended = true;
}

static void raw_connected(uv_connect_t *c, int status)
{
	struct raw *r = c->handle->data;

	assert_int_equal(status, 0);
	r->connected = true;
	uv_read_start(c->handle, raw_alloc, raw_read);
}

static void raw_closed(uv_handle_t *h)
{
	struct raw *r = h->data;

	buf_release(&r->in);
	r->closed = true;
}

static void raw_open(struct raw *r, uint16_t port)
{
	struct sockaddr_in sa;

	memset(r, 0, sizeof(*r));
	uv_tcp_init(&loop, &r->tcp);
	r->tcp.data = r;
	uv_ip4_addr("127.0.0.1", port, &sa);
	uv_tcp_connect(&r->connect, &r->tcp, (struct sockaddr *)&sa, raw_connected);
	TURN_UNTIL(r->connected);
}

static void raw_send(struct raw *r, const void *bytes, size_t n)
{
	uv_buf_t b = uv_buf_init((char *)bytes, (unsigned)n);

	assert_int_equal(uv_try_write((uv_stream_t *)&r->tcp, &b, 1), n);
}

static void raw_close(struct raw *r)
{
	uv_close((uv_handle_t *)&r->tcp, raw_closed);
	TURN_UNTIL(r->closed);
}

static void raw_ask(struct raw *r, const struct node *me, const struct node *to)
{
	struct net_greet_keys keys = { me->secret, NULL, NET_VERSION };

	assert_int_equal(net_greet_ask(&r->hs, &keys, to->key, no_ticket, NULL, r->ask), 0);
	raw_send(r, r->ask, GREET_ASK);
}

/* Seal one frame of any text. */
static size_t raw_seal(struct raw *r, const void *text, size_t n, uint8_t *out)
{
	out[0] = (uint8_t)((n + NOISE_TAG) >> 8);
	out[1] = (uint8_t)(n + NOISE_TAG);
	assert_int_equal(net_noise_seal(&r->tx, NULL, 0, text, n, out + 2), 0);
	return 2 + n + NOISE_TAG;
}

/* The whole greeting up to the proof, which is left in proof[19]. */
static void raw_shake(struct raw *r, const struct node *me, const struct node *to, uint8_t *proof)
{
	raw_ask(r, me, to);
	TURN_UNTIL(r->in.len >= GREET_ANSWER);
	assert_int_equal(r->in.base[6], GREET_OK);
	assert_int_equal(net_greet_finish(&r->hs, r->in.base + GREET_HEAD), 0);
	net_noise_split(&r->hs, &r->tx, &r->rx, NULL);
	assert_int_equal(raw_seal(r, "\x02", 1, proof), 19);
}

/* Message 1 again, then the whole recorded dialogue again: no effect but a rejection. */
static void test_replayed_handshake(void **state)
{
	struct node a, b;
	struct raw first, second, third;
	uint8_t proof[19];
	struct net_hub_stats before, after;

	(void)state;
	pair_init(&a, &b);
	node_start(&a);
	node_listen(&a, 0);
	raw_open(&first, net_hub_port(a.hub));
	raw_shake(&first, &b, &a, proof);
	turn_for(10);
	assert_int_equal(a.ups, 0); /* message 1 alone brings nothing up */
	raw_send(&first, proof, sizeof(proof));
	TURN_UNTIL(a.ups == 1);
	net_hub_stats(a.hub, b.key, &before);

	raw_open(&second, net_hub_port(a.hub));
	raw_send(&second, first.ask, GREET_ASK);
	TURN_UNTIL(second.in.len >= GREET_ANSWER);
	turn_for(10);
	assert_int_equal(a.ups + a.downs, 1); /* the old link stands, no new one */
	raw_send(&second, proof, sizeof(proof));
	TURN_UNTIL(second.ended && a.rejects == 1);
	assert_int_equal(a.reject_code, ERR_IDENTITY);

	raw_open(&third, net_hub_port(a.hub));
	raw_send(&third, first.ask, GREET_ASK);
	raw_send(&third, proof, sizeof(proof));
	TURN_UNTIL(third.ended);
	net_hub_stats(a.hub, b.key, &after);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(a.ups + a.downs, 1);
	raw_close(&first);
	raw_close(&second);
	raw_close(&third);
	node_stop(&a);
}

enum unproven { IS_LATE, IS_PUSHED_OUT, IS_MALFORMED };

/* Message 1 of another, again and again, costs what a refusal costs, however the link ends. */
static void replay_without_end(enum unproven how)
{
	enum { TRIES = 200 };
	struct node a, b;
	struct raw first, *again = mem_array(TRIES, sizeof(*again));
	uint8_t proof[19];
	size_t n = 0;

	pair_init(&a, &b);
	a.config.handshake_ms = how == IS_LATE ? 100 : 60000;
	a.config.pending_source_max = how == IS_PUSHED_OUT ? 2 : 60000;
	a.config.pending_max = 60000;
	node_start(&a);
	node_listen(&a, 0);
	raw_open(&first, net_hub_port(a.hub));
	raw_shake(&first, &b, &a, proof);
	for (bool shut = false; !shut; n++) {
		struct raw *r = &again[n];

		assert_true(n < TRIES);
		raw_open(r, net_hub_port(a.hub));
		raw_send(r, first.ask, GREET_ASK);
		TURN_UNTIL(r->in.len >= GREET_ANSWER || r->ended);
		shut = r->in.len == 0;
		if (how == IS_MALFORMED && !shut)
			raw_send(r, (const uint8_t[2]){ 0 }, 2);
		if (how == IS_MALFORMED || (how == IS_LATE && n % 50 == 49))
			TURN_UNTIL(r->ended);
	}
	assert_int_equal(a.ups, 0);
	assert_true(a.rejects > 0);
	for (size_t i = 0; i < n; i++)
		raw_close(&again[i]);
	raw_close(&first);
	free(again);
	node_stop(&a);
}

static void test_replayed_without_end(void **state)
{
	(void)state;
	replay_without_end(IS_PUSHED_OUT);
	replay_without_end(IS_LATE);
	replay_without_end(IS_MALFORMED);
}

/* Sends one frame with a good or bad seal over a fresh link; what a says of it. */
static int bad_frame(const void *text, size_t n, bool spoil, bool cut)
{
	struct node a, b;
	struct raw r;
	uint8_t proof[19], frame[256];
	size_t len;

	pair_init(&a, &b);
	node_start(&a);
	node_listen(&a, 0);
	raw_open(&r, net_hub_port(a.hub));
	raw_shake(&r, &b, &a, proof);
	raw_send(&r, proof, sizeof(proof));
	TURN_UNTIL(a.ups == 1);
	len = raw_seal(&r, text, n, frame);
	frame[len - 1] ^= spoil;
	raw_send(&r, frame, cut ? len - 3 : len);
	if (cut)
		raw_close(&r);
	TURN_UNTIL(a.downs == 1);
	assert_int_equal(a.messages, 0);
	if (!cut)
		raw_close(&r);
	node_stop(&a);
	return a.down_code;
}

static void test_bad_frames(void **state)
{
	(void)state;
	assert_int_equal(bad_frame("\x01\0\0\0\x01x", 6, true, false), ERR_IDENTITY);
	assert_int_equal(bad_frame("\x01\0\0\0\x01x", 6, false, true), ERR_UNREACHABLE);
	assert_int_equal(bad_frame("\x01\0\x10\0\x01x", 6, false, false), ERR_TOOBIG);
	assert_int_equal(bad_frame("\x09", 1, false, false), ERR_PROTO);
	assert_int_equal(bad_frame("", 0, false, false), ERR_PROTO);
}

/* A good seal is not enough: the first frame is a ping, whoever sends it. */
static void test_first_frame_is_a_ping(void **state)
{
	struct node a, b;
	struct raw r;
	uint8_t proof[19], frame[64];
	size_t n;

	(void)state;
	pair_init(&a, &b);
	node_start(&a);
	node_listen(&a, 0);
	raw_open(&r, net_hub_port(a.hub));
	raw_shake(&r, &b, &a, proof);
	r.tx.nonce = 0;
	n = raw_seal(&r, "\x01\0\0\0\x01x", 6, frame);
	raw_send(&r, frame, n);
	TURN_UNTIL(r.ended);
	assert_int_equal(a.ups + a.messages, 0);
	assert_int_equal(a.reject_code, ERR_IDENTITY);
	raw_close(&r);
	node_stop(&a);
}

static void test_no_fkge(void **state)
{
	struct node a, b;
	struct raw r;

	(void)state;
	pair_init(&a, &b);
	node_start(&a);
	node_listen(&a, 0);
	raw_open(&r, net_hub_port(a.hub));
	raw_send(&r, "GET / HTTP/1.1\r\n\r\n", 18);
	TURN_UNTIL(r.ended);
	assert_int_equal(r.in.len, 0); /* it learns nothing */
	assert_int_equal(a.reject_code, ERR_PROTO);
	raw_close(&r);
	node_stop(&a);
}

static void test_silent_peer_is_dead(void **state)
{
	struct node a, b;
	struct raw r;
	uint8_t proof[19];
	uint64_t began;

	(void)state;
	pair_init(&a, &b);
	a.config.keepalive_ms = 20;
	a.config.dead_ms = 80;
	node_start(&a);
	node_listen(&a, 0);
	raw_open(&r, net_hub_port(a.hub));
	raw_shake(&r, &b, &a, proof);
	began = uv_now(&loop);
	raw_send(&r, proof, sizeof(proof));
	TURN_UNTIL(a.downs == 1);
	assert_int_equal(a.down_code, ERR_TIMEOUT);
	assert_true(r.in.len > GREET_ANSWER); /* it was asked, but not again and again */
	assert_true((r.in.len - GREET_ANSWER) / sizeof(proof) <= (uv_now(&loop) - began) / 20 + 1);
	raw_close(&r);
	node_stop(&a);
}

static unsigned count_ended(const struct raw *r, size_t n)
{
	unsigned ended = 0;

	for (size_t i = 0; i < n; i++)
		ended += r[i].ended;
	return ended;
}

/* More half-open connections than allowed: bounded, timed out, and a friend gets in. */
static void test_half_open(void **state)
{
	static struct raw r[20];
	struct node a, b;

	(void)state;
	pair_init(&a, &b);
	a.config.pending_max = 4;
	a.config.handshake_ms = 2000;
	node_start(&a);
	node_start(&b);
	node_listen(&a, 0);
	for (int i = 0; i < 20; i++)
		raw_open(&r[i], net_hub_port(a.hub));
	TURN_UNTIL(count_ended(r, 20) == 16);
	node_dial(&b, &a, net_hub_port(a.hub));
	TURN_UNTIL(a.ups == 1 && b.ups == 1);
	TURN_UNTIL(r[19].ended); /* its time is up */
	assert_int_equal(a.downs, 0);
	for (int i = 0; i < 20; i++)
		raw_close(&r[i]);
	node_stop(&a);
	node_stop(&b);
}

/* Of one source as many as are allowed, and then the oldest goes. */
static void test_half_open_of_one_source(void **state)
{
	static struct raw r[3];
	struct node a, b;

	(void)state;
	pair_init(&a, &b);
	a.config.pending_source_max = 2;
	a.config.handshake_ms = PATIENCE_MS;
	node_start(&a);
	node_listen(&a, 0);
	for (int i = 0; i < 2; i++)
		raw_open(&r[i], net_hub_port(a.hub));
	turn_for(20);
	assert_int_equal(count_ended(r, 2), 0);
	raw_open(&r[2], net_hub_port(a.hub));
	TURN_UNTIL(count_ended(r, 3) > 0);
	assert_true(r[0].ended && !r[1].ended && !r[2].ended);
	for (int i = 0; i < 3; i++)
		raw_close(&r[i]);
	node_stop(&a);
}

/* A greeting of a key that is not wanted: is it answered? */
static bool is_answered(const struct node *stranger, const struct node *by)
{
	struct raw r;
	bool answered;

	raw_open(&r, net_hub_port(by->hub));
	raw_ask(&r, stranger, by);
	TURN_UNTIL(r.ended);
	answered = r.in.len == GREET_HEAD;
	raw_close(&r);
	return answered;
}

/* Strangers of the source of a partner shut the gate for themselves, once the partner is away. */
static void test_a_partner_keeps_its_source_open(void **state)
{
	struct node a, b, c;
	unsigned more = 0;

	(void)state;
	pair_up(&a, &b);
	node_init(&c);
	for (int k = 0; k < GATE_REFUSED_MAX + 6; k++)
		assert_true(is_answered(&c, &a));
	node_stop(&b);
	TURN_UNTIL(a.downs == 1);
	while (is_answered(&c, &a)) /* one more each half a second */
		assert_true(++more < 20);
	node_stop(&a);
}

/* Who was let in to be looked at, and is not wanted, has cost us as much. */
static void test_refused_newcomers_shut_the_gate(void **state)
{
	struct node a, b, c;
	unsigned more = 0;

	(void)state;
	pair_init(&a, &b);
	node_start(&a);
	node_listen(&a, 0);
	for (unsigned k = 0; k < GATE_REFUSED_MAX; k++) {
		uint8_t proof[19];
		struct raw r;

		node_init(&c);
		a.n_allow = 0;
		node_allow(&a, &c);
		raw_open(&r, net_hub_port(a.hub));
		raw_shake(&r, &c, &a, proof);
		raw_send(&r, proof, sizeof(proof));
		TURN_UNTIL(a.ups == k + 1);
		a.n_allow = 0;
		net_hub_refuse(a.hub, c.key, "not wanted");
		raw_close(&r);
	}
	while (is_answered(&c, &a))
		assert_true(++more < 20);
	node_stop(&a);
}

/* However many others knock: a line a second. */
static void test_rejections_are_told_now_and_then(void **state)
{
	struct node a, b;
	uint64_t began;

	(void)state;
	pair_init(&a, &b);
	node_start(&a);
	node_listen(&a, 0);
	began = uv_now(&loop);
	for (int k = 0; k < 8; k++) {
		struct raw r;

		raw_open(&r, net_hub_port(a.hub));
		raw_send(&r, "GET / HTTP/1.1\r\n\r\n", 18);
		TURN_UNTIL(r.ended);
		raw_close(&r);
	}
	assert_true(a.rejects >= 1 && a.rejects <= 1 + (uv_now(&loop) - began) / 1000);
	node_stop(&a);
}

/* ---- one peer takes what others need ---- */

static uint64_t heard_of(const struct node *n, const struct node *peer)
{
	struct net_hub_stats s;

	net_hub_stats(n->hub, peer->key, &s);
	return s.messages_in;
}

/* Each message costs the loop 10 ms, and 200 of them are under way: another peer's one is heard
 * between them, and in the end nothing is lost. */
static void test_costly_messages(void **state)
{
	enum { MANY = 200, SIZE = 16000 };
	struct node a, b, c;
	struct net_hub_stats s;

	(void)state;
	pair_init(&a, &b);
	node_init(&c);
	node_allow(&a, &c);
	node_allow(&c, &a);
	a.burn_ms = 10;
	a.timed = c.key;
	pair_start(&a, &b);
	node_start(&c);
	node_dial(&c, &a, net_hub_port(a.hub));
	TURN_UNTIL(a.ups == 2 && b.ups == 1 && c.ups == 1);
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(send_numbered(&b, &a, i, SIZE), 0);
	TURN_UNTIL(a.slowed == 1);
	assert_true(heard_of(&a, &b) < MANY / 2);
	assert_int_equal(send_numbered(&c, &a, 0, SIZE), 0);
	TURN_UNTIL(heard_of(&a, &c) == 1);
	assert_true(heard_of(&a, &b) < MANY);
	net_hub_stats(a.hub, b.key, &s);
	assert_true(s.slowed > 0);
	net_hub_stats(a.hub, c.key, &s);
	assert_true(s.slowed == 0 || a.longest_ms > 80); /* the machine had others to run */
	TURN_UNTIL((net_hub_stats(a.hub, b.key, &s), s.slowed >= 2));
	a.burn_ms = 0;
	a.next = (uint32_t)heard_of(&a, &b);
	TURN_UNTIL(heard_of(&a, &b) == MANY);
	assert_int_equal(a.downs, 0);
	assert_int_equal(a.slowed, 1); /* told once a minute at most */
	node_stop(&c);
	node_stop(&b);
	node_stop(&a);
}

/* A key whose links come and go has a few of them, and then hears that we are busy. */
static void test_comes_and_goes(void **state)
{
	struct node a, b;

	(void)state;
	pair_init(&a, &b);
	a.config.retry_min_ms = 60000;
	a.config.retry_max_ms = 60000;
	pair_start(&a, &b);
	for (unsigned k = 1; k <= 8; k++) {
		TURN_UNTIL(a.ups == k && b.ups == k);
		net_hub_forget(b.hub, a.key, "again");
		TURN_UNTIL(a.downs == k);
		node_dial(&b, &a, net_hub_port(a.hub));
	}
	TURN_UNTIL(b.fails > 0);
	assert_int_equal(b.fail_code, ERR_BUSY);
	assert_int_equal(a.ups, 8);
	node_stop(&b);
	node_stop(&a);
}

static void test_config_refused(void **state)
{
	struct node a;
	struct net_hub *h = NULL;

	(void)state;
	node_init(&a);
	a.config.dead_ms = 10;
	a.config.keepalive_ms = 10;
	assert_int_equal(net_hub_new(&loop, &a.config, &h, NULL), ERR_USAGE);
	node_init(&a);
	a.config.secret = NULL;
	assert_int_equal(net_hub_new(&loop, &a.config, &h, NULL), ERR_USAGE);
	assert_null(h);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_both_ways_outbound_only),
		T(test_send_refuses),
		T(test_unlisted_key),
		T(test_ticket),
		T(test_refused_newcomer),
		T(test_pair_secret),
		T(test_pair_secret_is_in_the_keys),
		T(test_not_on_the_diallers_list),
		T(test_wrong_secret),
		T(test_wrong_key),
		T(test_other_version),
		T(test_simultaneous_dial),
		T(test_reconnects),
		T(test_restarted_peer_replaces),
		T(test_backoff_grows),
		T(test_waits_are_drawn),
		T(test_stable_links_start_over),
		T(test_another_address_is_tried_at_once),
		T(test_moves_hurry_nothing),
		T(test_links_are_not_too_many),
		T(test_leaves_who_does_not_listen),
		T(test_forget),
		T(test_back_pressure),
		T(test_another_link_has_room),
		T(test_pause_in_callback),
		T(test_close_in_callback),
		T(test_a_pause_is_no_silence),
		T(test_idle_stays_up),
		T(test_late_loop),
		T(test_names_and_v6),
		T(test_silent_first_address),
		T(test_unreachable_first_address),
		T(test_refused_at_first_address),
		T(test_unknown_name),
		T(test_numeric_beside_late_names),
		T(test_late_name_says_so),
		T(test_late_name),
		T(test_replayed_handshake),
		T(test_replayed_without_end),
		T(test_bad_frames),
		T(test_first_frame_is_a_ping),
		T(test_no_fkge),
		T(test_silent_peer_is_dead),
		T(test_half_open),
		T(test_half_open_of_one_source),
		T(test_a_partner_keeps_its_source_open),
		T(test_refused_newcomers_shut_the_gate),
		T(test_rejections_are_told_now_and_then),
		T(test_costly_messages),
		T(test_comes_and_goes),
		T(test_config_refused),
	};

	signal(SIGPIPE, SIG_IGN); /* as the agent does */
	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* libFuzzer entry for hubs (net/uv/hub.c): three of them, what their owners do, and what the
 * network and a stranger do between them.  libuv is played (fake_net.h).  The input is steps of
 * three bytes, of which the first says what, see take_step().
 *
 * Callbacks come from the loop, never from inside a call.  A key's up() and down() take turns, and
 * only who is allowed comes up.  Messages arrive once, in order, without a gap as long as a link
 * stands; after a pause one more at most.  Whatever has happened, hubs that want each other have
 * links again once the network is good, which then stay; and a hub that is closed goes.  As
 * fuzz_msg.c. */
#include <sodium.h>

#include "net/uv/hub.h"
#include "tests/fuzz/chance.h"
#include "tests/fuzz/fake_net.h"
#include "tests/fuzz/script.h"

enum {
	HUBS = FAKE_HOSTS - 1,
	STRANGER = HUBS, /* whose host has no hub */
	HANDSHAKE_MS = 2000,
	KEEPALIVE_MS = 1500,
	DEAD_MS = 6000,
	RETRY_MAX_MS = 4000,
	SETTLE_MS = 120000,
	LINGER_MS = 1000, /* of net/uv/link.c */
	QUEUE_MAX = 4096,
	REKEY = 5,
	REACTIONS = 40, /* in a run: what callbacks do can call them again */
	SAID_MAX = 8,
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

enum told { TOLD_UP, TOLD_DOWN, TOLD_MESSAGE, TOLD_WRITABLE, TOLD_FAILED, TOLD };

struct other { /* what a hub's owner knows of another hub */
	bool allowed, wanted, up, paused, blocked, has_pair, fresh;
	unsigned after_pause; /* messages */
	uint64_t sent, heard; /* numbers of messages */
};

struct hub {
	struct net_hub *at; /* NULL: none */
	bool closing;
	uint8_t secret[32], key[NET_KEY_BYTES];
	struct other to[HUBS];
	unsigned reaction[TOLD];
};

static struct run {
	struct hub hub[HUBS];
	bool inside;	    /* a call of a hub */
	unsigned reactions; /* left */
	unsigned downs;
	struct buf said[SAID_MAX]; /* greetings, for who says them again */
	size_t n_said;
} run;

/* ---- what an owner does ---- */

static bool call_begin(void)
{
	bool was = run.inside;

	run.inside = true;
	return was;
}

static void note_gone(struct other *o)
{
	o->up = o->paused = o->blocked = false;
}

static void want_hub(struct hub *h, unsigned j, const char *name)
{
	bool was = call_begin();

	must_hold(net_hub_peer(h->at, run.hub[j].key, name[0] != '\0' ? name : NULL, FAKE_PORT,
			       NULL) == 0);
	h->to[j].wanted = true;
	run.inside = was;
}

static void forget_hub(struct hub *h, unsigned j, bool refuse)
{
	bool was = call_begin();

	if (refuse)
		net_hub_refuse(h->at, run.hub[j].key, "refused");
	else
		net_hub_forget(h->at, run.hub[j].key, "forgotten");
	h->to[j].wanted = false;
	note_gone(&h->to[j]);
	must_hold(!net_hub_is_up(h->at, run.hub[j].key));
	run.inside = was;
}

static void fill_message(uint8_t *out, size_t n, uint64_t number)
{
	memcpy(out, &number, sizeof(number));
	for (size_t i = sizeof(number); i < n; i++)
		out[i] = (uint8_t)(number + i);
}

static void send_message(struct hub *h, unsigned j, size_t more)
{
	struct other *o = &h->to[j];
	uint8_t out[sizeof(uint64_t) + 255 * 16];
	size_t n = sizeof(uint64_t) + more % 256 * 16;
	bool was = call_begin(), up = net_hub_is_up(h->at, run.hub[j].key);
	int rc;

	fill_message(out, n, o->sent + 1);
	rc = net_hub_send(h->at, run.hub[j].key, out, n);
	must_hold(rc == 0 || rc == ERR_UNREACHABLE || (up && rc == ERR_BUSY));
	must_hold(up || rc == ERR_UNREACHABLE);
	o->sent += rc == 0;
	o->blocked |= rc == ERR_BUSY;
	run.inside = was;
}

static void pause_link(struct hub *h, unsigned j, bool paused)
{
	bool was = call_begin();

	net_hub_pause(h->at, run.hub[j].key, paused);
	if (!paused || !h->to[j].paused)
		h->to[j].after_pause = 0;
	h->to[j].paused = paused && net_hub_is_up(h->at, run.hub[j].key);
	run.inside = was;
}

static void on_closed(void *ctx)
{
	struct hub *h = ctx;

	must_hold(h->closing);
	h->at = NULL;
	h->closing = false;
}

static void close_hub(struct hub *h)
{
	bool was = call_begin();

	h->closing = true;
	for (unsigned j = 0; j < HUBS; j++)
		note_gone(&h->to[j]);
	net_hub_close(h->at, on_closed);
	run.inside = was;
}

static bool hub_works(const struct hub *h)
{
	return h->at != NULL && !h->closing;
}

static void address_of(unsigned j, bool two, char out[3])
{
	out[0] = two ? 't' : 'h';
	out[1] = (char)('0' + j);
	out[2] = '\0';
}

/* One of the things that an owner can do, with hub j. */
static void act_as_owner(struct hub *h, unsigned what, unsigned j)
{
	char name[3];

	address_of(j, what & 16, name);
	if (!hub_works(h) || &run.hub[j] == h)
		return;
	if (what % 16 == 1)
		send_message(h, j, what);
	else if (what % 16 == 2)
		forget_hub(h, j, (what & 16) != 0);
	else if (what % 16 == 3)
		pause_link(h, j, (what & 16) != 0);
	else if (what % 16 == 4)
		want_hub(h, j, name);
	else if (what % 16 == 5)
		want_hub(h, j, "");
	else if (what % 16 == 6)
		close_hub(h);
	else if (what % 16 == 7)
		h->to[j].allowed = (what & 16) != 0;
	else if (what % 16 == 8)
		h->to[j].has_pair = (what & 16) != 0;
	else if (what % 16 == 9)
		fake.busy_ns += UINT64_C(60000000);
}

/* ---- what a hub tells ---- */

static unsigned index_of(const uint8_t *key)
{
	unsigned j = 0;

	while (j < HUBS && memcmp(run.hub[j].key, key, NET_KEY_BYTES) != 0)
		j++;
	return j;
}

static struct other *who_told(struct hub *h, const uint8_t *key)
{
	unsigned j = index_of(key);

	must_hold(!run.inside && hub_works(h) && j < HUBS && &run.hub[j] != h);
	return &h->to[j];
}

static void react_to(struct hub *h, enum told what, const uint8_t *key)
{
	unsigned reaction = h->reaction[what];

	if (reaction == 0 || run.reactions == 0)
		return;
	run.reactions--;
	act_as_owner(h, reaction % 32, reaction & 32 ? reaction / 64 % HUBS : index_of(key));
}

static bool on_allow(void *ctx, const uint8_t *key, const uint8_t *ticket)
{
	unsigned j = index_of(key);

	(void)ticket;
	return j < HUBS && ((struct hub *)ctx)->to[j].allowed;
}

static enum net_pair on_pair(void *ctx, const uint8_t *key, const struct net_greet_card *card,
			     uint8_t pair[NET_PAIR_SECRET])
{
	unsigned j = index_of(key);
	bool ours = j < HUBS && ((struct hub *)ctx)->to[j].has_pair;
	bool shown = card != NULL && !sodium_is_zero(card->pair_id, sizeof(card->pair_id));

	memset(pair, ours ? 7 : 0, NET_PAIR_SECRET);
	if (card == NULL || ours == shown)
		return ours ? NET_PAIR_THIS : NET_PAIR_NONE;
	return NET_PAIR_OTHER;
}

static void on_up(void *ctx, const uint8_t *key)
{
	struct other *o = who_told(ctx, key);

	must_hold(!o->up && o->allowed && net_hub_is_up(((struct hub *)ctx)->at, key));
	note_gone(o);
	o->up = o->fresh = true;
	react_to(ctx, TOLD_UP, key);
}

static void on_down(void *ctx, const uint8_t *key, int code, const char *why)
{
	struct other *o = who_told(ctx, key);

	must_hold(o->up && code < 0 && why[0] != '\0');
	note_gone(o);
	run.downs++;
	react_to(ctx, TOLD_DOWN, key);
}

static void on_message(void *ctx, const uint8_t *key, const uint8_t *bytes, size_t n)
{
	struct other *o = who_told(ctx, key);
	uint8_t was[sizeof(uint64_t) + 255 * 16];
	uint64_t number;

	must_hold(o->up && n >= sizeof(number) && n <= sizeof(was));
	memcpy(&number, bytes, sizeof(number));
	fill_message(was, n, number);
	must_hold(memcmp(was, bytes, n) == 0);
	must_hold(number > o->heard && (o->fresh || number == o->heard + 1));
	must_hold(!o->paused || ++o->after_pause <= 1);
	o->heard = number;
	o->fresh = false;
	react_to(ctx, TOLD_MESSAGE, key);
}

static void on_writable(void *ctx, const uint8_t *key)
{
	struct other *o = who_told(ctx, key);

	must_hold(o->up && o->blocked);
	o->blocked = false;
	react_to(ctx, TOLD_WRITABLE, key);
}

static void on_failed(void *ctx, const uint8_t *key, int code, const char *why, uint64_t retry_ms)
{
	must_hold(who_told(ctx, key)->wanted && code < 0 && why[0] != '\0');
	must_hold(retry_ms <= RETRY_MAX_MS);
	react_to(ctx, TOLD_FAILED, key);
}

static void on_stranger(void *ctx, const uint8_t *key, const char *address)
{
	struct hub *h = ctx;
	unsigned j = index_of(key);

	must_hold(!run.inside && hub_works(h) && address[0] != '\0');
	must_hold(j == HUBS || !h->to[j].allowed);
}

static void on_rejected(void *ctx, const char *address, int code, const char *why)
{
	(void)address;
	must_hold(!run.inside && hub_works(ctx) && code < 0 && why[0] != '\0');
}

static void on_slowed(void *ctx, const uint8_t *key)
{
	must_hold(who_told(ctx, key)->up);
}

static void open_hub(struct hub *h)
{
	struct net_hub_config c = {
		.secret = h->secret,
		.on = { on_allow, on_pair, on_up, on_down, on_message, on_writable, on_failed,
			on_stranger, on_rejected, on_slowed },
		.ctx = h,
		.queue_max = QUEUE_MAX,
		.pending_max = 4,
		.pending_source_max = 2,
		.handshake_ms = HANDSHAKE_MS,
		.keepalive_ms = KEEPALIVE_MS,
		.dead_ms = DEAD_MS,
		.retry_max_ms = RETRY_MAX_MS,
		.stable_ms = 1000,
		.rekey_every = REKEY,
	};

	for (unsigned j = 0; j < HUBS; j++)
		h->to[j].wanted = false;
	must_hold(net_hub_new(&fake_loops[h - run.hub], &c, &h->at, NULL) == 0);
	must_hold(net_hub_listen(h->at, "here", FAKE_PORT, NULL) == 0);
}

/* ---- the network, and a stranger ---- */

static struct fake_wire *find_wire(unsigned k)
{
	unsigned n = 0;

	for (struct fake_wire *w = fake.wires; w != NULL; w = w->next)
		n++;
	k = n > 0 ? k % n : 0;
	for (struct fake_wire *w = fake.wires; w != NULL; w = w->next, k--)
		if (k == 0)
			return w;
	return NULL;
}

/* The newest first, as they stand in the list. */
static void harm_wire(unsigned k, unsigned how)
{
	struct fake_wire *w = find_wire(k);
	struct buf *in = w != NULL ? &w->in[how % 2] : NULL;

	if (w != NULL && how % 4 < 2)
		w->cut = true;
	else if (w != NULL && in->len > 0)
		in->base[how * 31 % in->len] ^= (uint8_t)(1 << how / 4 % 8);
}

static void keep_greeting(unsigned k)
{
	const struct fake_wire *w = find_wire(k);
	struct buf *to = &run.said[run.n_said % SAID_MAX];

	if (w == NULL || w->in[1].len == 0)
		return;
	run.n_said++;
	buf_clear(to);
	buf_add(to, w->in[1].base, w->in[1].len);
}

/* From a host of its own: what somebody has said, changed or not, or nothing. */
static void call_as_stranger(unsigned i, unsigned how)
{
	struct fake_wire *w = fake_wire_new(how & 1 ? STRANGER : how / 2 % HUBS, i);
	const struct buf *said = &run.said[how / 8 % SAID_MAX];

	w->over[1] = (how & 64) != 0;
	if (said->len == 0)
		return;
	buf_add(&w->in[1], said->base, said->len);
	if (how & 128)
		w->in[1].base[how % said->len] ^= 1;
}

static void set_way(unsigned pair, enum fake_way way)
{
	unsigned a = pair % HUBS, b = (a + 1) % HUBS;

	fake.way[a][b] = fake.way[b][a] = way;
}

/* ---- a run ---- */

static void take_step(unsigned what, unsigned who, unsigned more)
{
	struct hub *h = &run.hub[who % HUBS];
	unsigned j = who / HUBS % HUBS;

	if (what < 10)
		act_as_owner(h, what | (more & 16), j);
	else if (what == 10)
		h->reaction[more % TOLD] = who;
	else if (what == 11)
		fake_wait(more * UINT64_C(30));
	else if (what == 12)
		fake_stand_still(more * UINT64_C(60));
	else if (what == 13)
		harm_wire(who, more);
	else if (what == 14)
		keep_greeting(who);
	else if (what == 15)
		call_as_stranger(who % HUBS, more);
	else if (what == 16)
		set_way(who, (enum fake_way)(more % 3));
	else if (what == 17)
		fake.piece = 1 + (size_t)more * more;
	else if (what == 18 && h->at == NULL)
		open_hub(h);
	else if (what == 19)
		fake_turn();
	else if (what >= 20)
		fake_next(who << 8 | more);
}

static void check_queues(void)
{
	struct net_hub_stats s;

	for (unsigned i = 0; i < HUBS; i++)
		for (unsigned j = 0; j < HUBS && hub_works(&run.hub[i]); j++) {
			net_hub_stats(run.hub[i].at, run.hub[j].key, &s);
			must_hold(s.queued <= QUEUE_MAX + 65536 + 4200);
			must_hold(s.up == run.hub[i].to[j].up);
		}
}

static bool all_up(void)
{
	for (unsigned i = 0; i < HUBS; i++)
		for (unsigned j = 0; j < HUBS; j++)
			if (i != j && !run.hub[i].to[j].up)
				return false;
	return true;
}

static void heal_network(void)
{
	memset(fake.way, 0, sizeof(fake.way));
	fake.piece = SIZE_MAX;
	run.reactions = 0;
	for (struct fake_wire *w = fake.wires; w != NULL; w = w->next)
		w->over[1] |= w->end[0] == NULL;
	fake_turn();
	fake_wait(2 * LINGER_MS);
}

static void want_all(struct hub *h)
{
	char name[3];

	if (h->at == NULL)
		open_hub(h);
	must_hold(hub_works(h));
	for (unsigned j = 0; j < HUBS; j++) {
		h->to[j].allowed = h->to[j].has_pair = true;
		address_of(j, false, name);
		if (&run.hub[j] != h)
			want_hub(h, j, name);
		if (&run.hub[j] != h)
			pause_link(h, j, false);
	}
}

/* Links that come back, stay, and carry what is sent. */
static void settle_links(void)
{
	unsigned downs;

	heal_network();
	for (unsigned i = 0; i < HUBS; i++)
		want_all(&run.hub[i]);
	for (uint64_t ms = 0; ms < SETTLE_MS && !all_up(); ms += 500)
		fake_wait(500);
	must_hold(all_up());
	fake_wait(2 * DEAD_MS);
	must_hold(all_up());
	downs = run.downs;
	for (unsigned i = 0; i < HUBS; i++)
		for (unsigned j = 0; j < HUBS; j++)
			act_as_owner(&run.hub[i], 1, j);
	fake_wait(2 * DEAD_MS);
	must_hold(run.downs == downs);
	for (unsigned i = 0; i < HUBS; i++)
		for (unsigned j = 0; j < HUBS; j++)
			must_hold(i == j || run.hub[j].to[i].heard == run.hub[i].to[j].sent);
}

static void close_all(void)
{
	for (unsigned i = 0; i < HUBS; i++)
		close_hub(&run.hub[i]);
	fake_turn();
	fake_wait(LINGER_MS + 500);
	for (unsigned i = 0; i < HUBS; i++)
		must_hold(run.hub[i].at == NULL);
	for (size_t i = 0; i < SAID_MAX; i++)
		buf_release(&run.said[i]);
	fake_release();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct script s = { bytes, n };

	fuzz_chance_begin();
	memset(&run, 0, sizeof(run));
	run.reactions = REACTIONS;
	fake.piece = SIZE_MAX;
	for (unsigned i = 0; i < HUBS; i++) {
		fuzz_draw_bytes(run.hub[i].secret, 32);
		crypto_scalarmult_base(run.hub[i].key, run.hub[i].secret);
		for (unsigned j = 0; j < HUBS; j++)
			run.hub[i].to[j].allowed = true;
	}
	for (unsigned i = 0; i < HUBS; i++)
		open_hub(&run.hub[i]);
	while (s.left > 0) {
		unsigned what = script_byte(&s) % 28, who = script_byte(&s);

		take_step(what, who, script_byte(&s));
		check_queues();
	}
	settle_links();
	close_all();
	return 0;
}

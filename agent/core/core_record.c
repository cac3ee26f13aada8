/* agent/core/core_record.c - the core's own small record in the store (meta key AGENT_META).
 *
 *   v  version of this record         r  rounds hosted     l  local rounds
 *   s  serial of the best             f  epochs of the first training done
 *   t  the first training is over     b  digest of the best tables
 *   n  number of the next round of many       o  those we took part in
 *   i  those since then that we missed         q  serial of our last proposal
 *   w  validations of rounds without a better score e  epochs since the best
 *   h  rounds have stopped, and why (absent: they have not)
 *   a  comparisons of late that showed harm, a bit each
 *   ca, cw  how far the copy that trains alone was ahead, and choices that it was left out of
 *   cc  comparisons with that copy, while there is one of the first round
 *   u  its tables are as they were drawn      x  digest of the best, as a round was last kept
 *                                             (n, o, i, q, u, m: mode CONFIG_ROUNDS; w, e, x: also
 *                                             pairs that go on from their latest tables)
 *   m  weight of what a round brings, in quarters
 *   fn, fj, fa, fm, fr  frame of the latest tables: name, joined, age, moves, rest (frame.c)
 *   g  times that the best got better
 *   p  list of maps, one a peer:
 *        k  key   d  serial served    a  version of its names at the alignment
 *        j  serial of its proposals up to which we join none
 *        y  how often it broke the protocol    z  what it did last
 *        w  does what it offers wake an agent at rest (enum peer_wakes); absent: if new
 *
 * It rides in the batch of whatever changed it. */
#include <assert.h>
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/best_internal.h"
#include "agent/core/core_internal.h"
#include "agent/core/peers_internal.h"

enum { KEEP_VERSION = 1 };

static void put_rounds(const struct agent_core *c, struct net_writer *w)
{
	net_put_uint(w, "n", c->fed.number);
	net_put_uint(w, "o", c->fed.done);
	net_put_uint(w, "i", c->fed.missed);
	net_put_uint(w, "q", c->fed.serial);
	net_put_bool(w, "u", c->fed.untrained);
	net_put_uint(w, "m", (uint64_t)(c->fed.weight * (FED_WEIGHTS - 1)));
	if (c->fed.compare.hurt != 0)
		net_put_uint(w, "a", c->fed.compare.hurt);
	if (c->fed.compare.choice.ahead != 0 || c->fed.compare.choice.waits > 0) {
		net_put_double(w, "ca", c->fed.compare.choice.ahead);
		net_put_uint(w, "cw", c->fed.compare.choice.waits);
	}
	if (c->fed.compare.from_first)
		net_put_uint(w, "cc", c->fed.compare.comparisons);
	if (c->fed.compare.stopped)
		net_put_str(w, "h", c->fed.compare.why);
}

static void get_rounds(struct agent_core *c, const struct net_map *m, struct err *e)
{
	if (!net_has(m, "n"))
		return;
	c->fed.number = net_get_uint(m, "n", 0, UINT64_MAX, e);
	c->fed.done = net_get_uint(m, "o", 0, UINT64_MAX, e);
	if (net_has(m, "i")) /* older ones counted none */
		c->fed.missed = net_get_uint(m, "i", 0, UINT64_MAX, e);
	if (net_has(m, "q"))
		c->fed.serial = net_get_uint(m, "q", 0, FED_SERIAL_MAX, e);
	c->fed.untrained = net_get_bool(m, "u", e);
	if (net_has(m, "m")) /* older ones took all in */
		c->fed.weight =
			(double)net_get_uint(m, "m", 0, FED_WEIGHTS - 1, e) / (FED_WEIGHTS - 1);
	if (net_has(m, "a"))
		c->fed.compare.hurt = (uint32_t)net_get_uint(m, "a", 0, UINT32_MAX, e);
	if (net_has(m, "ca")) {
		c->fed.compare.choice.ahead = net_get_double(m, "ca", -DBL_MAX, DBL_MAX, e);
		c->fed.compare.choice.waits =
			(uint32_t)net_get_uint(m, "cw", 0, FED_WEIGHT_WAITS_MAX, e);
	}
	c->fed.compare.counted = net_has(m, "cc"); /* older ones have none */
	if (c->fed.compare.counted)
		c->fed.compare.comparisons = (uint32_t)net_get_uint(m, "cc", 0, UINT32_MAX, e);
	c->fed.compare.stopped = net_has(m, "h");
	if (c->fed.compare.stopped)
		net_get_text(m, "h", c->fed.compare.why, sizeof(c->fed.compare.why), e);
}

/* Of what goes on from the tables of the last round. */
static void put_latest(const struct agent_core *c, struct net_writer *w)
{
	net_put_uint(w, "w", c->worse);
	net_put_uint(w, "e", c->tried_epochs);
	net_put_bin(w, "x", c->frames.beside, 32);
	if (c->frames.latest.joined == 0)
		return;
	net_put_bin(w, "fn", c->frames.latest.name, sizeof(c->frames.latest.name));
	net_put_uint(w, "fj", c->frames.latest.joined);
	net_put_uint(w, "fa", c->frames.latest.age);
	net_put_uint(w, "fm", c->frames.latest.moves);
	net_put_uint(w, "fr", c->frames.latest.rest);
}

static void get_frame(struct agent_core *c, const struct net_map *m, struct err *e)
{
	if (!net_has(m, "fn")) /* older ones have none */
		return;
	net_get_fixed(m, "fn", c->frames.latest.name, sizeof(c->frames.latest.name), e);
	c->frames.latest.joined = net_get_uint(m, "fj", 1, NET_JOINED_MAX, e);
	c->frames.latest.age = (uint32_t)net_get_uint(m, "fa", 0, UINT32_MAX, e);
	c->frames.latest.moves = (uint32_t)net_get_uint(m, "fm", 0, UINT32_MAX, e);
	c->frames.latest.rest = c->frames.latest.moves; /* older ones count these alone */
	if (net_has(m, "fr"))
		c->frames.latest.rest =
			(uint32_t)net_get_uint(m, "fr", 0, c->frames.latest.moves, e);
}

static void get_latest(struct agent_core *c, const struct net_map *m, struct err *e)
{
	if (!net_has(m, "x"))
		return;
	c->worse = (uint32_t)net_get_uint(m, "w", 0, UINT32_MAX, e);
	net_get_fixed(m, "x", c->frames.beside, 32, e);
	get_frame(c, m, e);
	if (in_rounds(c) || latest_keeps(c))
		c->tried_epochs = net_get_uint(m, "e", 0, UINT64_MAX, e);
}

static void put_conduct(const struct peer *p, struct net_writer *w)
{
	if (p->conduct.breaches == 0)
		return;
	net_put_uint(w, "y", p->conduct.breaches);
	net_put_str(w, "z", p->conduct.why);
}

static void get_conduct(struct peer *p, const struct net_map *m, struct err *e)
{
	p->conduct.breaches = 0;
	p->conduct.why[0] = '\0';
	if (!net_has(m, "y"))
		return;
	p->conduct.breaches = (uint32_t)net_get_uint(m, "y", 0, UINT32_MAX, e);
	net_get_text(m, "z", p->conduct.why, sizeof(p->conduct.why), e);
}

/* Of a session that may be settled with the next one. */
static void put_last(const struct peer_last *l, struct net_writer *w)
{
	if (!l->counted)
		return;
	net_put_bin(w, "li", l->session, sizeof(l->session));
	net_put_bool(w, "lo", l->over);
	net_put_uint(w, "lx", l->translator);
	net_put_uint(w, "ll", l->labels);
	net_put_uint(w, "lr", l->rows);
	net_put_uint(w, "lf", l->floats);
	net_put_bin(w, "lt", l->transcript, sizeof(l->transcript));
}

static void get_last(struct peer_last *l, const struct net_map *m, struct err *e)
{
	*l = (struct peer_last){ .counted = net_has(m, "li") };
	if (!l->counted) /* older ones have none */
		return;
	net_get_fixed(m, "li", l->session, sizeof(l->session), e);
	l->over = net_get_bool(m, "lo", e);
	l->translator = (enum ledger_translator)net_get_uint(m, "lx", 0, UINT8_MAX, e);
	l->labels = net_get_uint(m, "ll", 0, UINT64_MAX, e);
	l->rows = net_get_uint(m, "lr", 0, UINT64_MAX, e);
	l->floats = net_get_uint(m, "lf", 0, UINT64_MAX, e);
	net_get_fixed(m, "lt", l->transcript, sizeof(l->transcript), e);
}

static void put_peer(const struct peer *p, struct net_writer *w)
{
	net_put_map(w, NULL);
	net_put_bin(w, "k", p->info.key, 32);
	net_put_uint(w, "d", p->used_serial);
	net_put_bin(w, "a", p->aligned_theirs, 32);
	if (p->wakes != PEER_WAKES_NEW)
		net_put_uint(w, "w", p->wakes);
	if (p->fed.joined > 0)
		net_put_uint(w, "j", p->fed.joined);
	if (p->fed.apart.kept_out > 0)
		net_put_uint(w, "o", p->fed.apart.kept_out);
	put_last(&p->last, w);
	put_conduct(p, w);
	net_put_end(w);
}

/* Partners, and of those revoked as many again: the latest, which stand last. */
static void put_peers(const struct agent_core *c, struct net_writer *w)
{
	size_t past = 0;

	for (size_t i = 0; i < c->n_peers; i++)
		if (peer_listed(c->peers[i]))
			put_peer(c->peers[i], w);
	for (size_t i = c->n_peers; i-- > 0 && past < AGENT_PEERS_MAX;)
		if (!peer_listed(c->peers[i])) {
			put_peer(c->peers[i], w);
			past++;
		}
}

void core_record_add(struct agent_core *c, struct store_batch *b)
{
	struct buf out = { 0 };
	struct net_writer w;

	net_write_body(&w, &out);
	net_put_uint(&w, "v", KEEP_VERSION);
	net_put_uint(&w, "r", c->rounds);
	net_put_uint(&w, "l", c->lone_rounds);
	net_put_uint(&w, "g", c->improved);
	net_put_uint(&w, "s", c->served_serial);
	net_put_uint(&w, "f", c->first_done);
	net_put_bool(&w, "t", c->trained);
	net_put_bin(&w, "b", c->best_digest, 32);
	if (in_rounds(c) || c->fed.number > 0)
		put_rounds(c, &w);
	if (c->latest != NULL || c->fed.number > 0)
		put_latest(c, &w);
	net_put_list(&w, "p");
	put_peers(c, &w);
	net_put_end(&w);
	assert(out.len <= STORE_META_SMALL); /* or it would not be loaded */
	if (net_write_end(&w, NULL) == 0)
		store_batch_meta(b, AGENT_META, out.base, out.len);
	buf_release(&out);
}

static void load_peer(struct agent_core *c, const struct net_map *m, struct err *e)
{
	uint8_t key[32], theirs[32];
	uint64_t served = net_get_uint(m, "d", 0, UINT64_MAX, e);
	uint64_t joined = net_has(m, "j") ? net_get_uint(m, "j", 0, FED_SERIAL_MAX, e) : 0;
	struct peer *p;

	net_get_fixed(m, "k", key, 32, e);
	net_get_fixed(m, "a", theirs, 32, e);
	if (e->code != 0)
		return;
	p = peer_find(c, key);
	if (p == NULL)
		return;
	p->used_serial = served;
	if (net_has(m, "w")) /* older ones have none */
		p->wakes = (enum peer_wakes)net_get_uint(m, "w", 0, PEER_WAKES_END - 1, e);
	if (joined > p->fed.joined)
		p->fed.joined = joined;
	p->fed.apart.kept_out = 0;
	if (net_has(m, "o"))
		p->fed.apart.kept_out = (uint32_t)net_get_uint(m, "o", 0, UINT32_MAX, e);
	memcpy(p->aligned_theirs, theirs, 32);
	get_last(&p->last, m, e);
	get_conduct(p, m, e);
}

int core_record_load(struct agent_core *c, const uint8_t *bytes, size_t n, struct err *e)
{
	struct net_body body;
	struct net_list peers;
	struct err bad = { 0 };

	if (net_body_decode(&body, bytes, n, &bad) != 0)
		return err_set(e, ERR_STORE, "the agent's record in the store is damaged: %.200s",
			       bad.text);
	net_get_uint(&body.map, "v", KEEP_VERSION, KEEP_VERSION, &bad);
	c->rounds = net_get_uint(&body.map, "r", 0, UINT64_MAX, &bad);
	c->lone_rounds = net_get_uint(&body.map, "l", 0, UINT64_MAX, &bad);
	if (net_has(&body.map, "g")) /* older ones lack it */
		c->improved = net_get_uint(&body.map, "g", 0, UINT64_MAX, &bad);
	c->served_serial = net_get_uint(&body.map, "s", 0, UINT64_MAX, &bad);
	c->first_done = (uint32_t)net_get_uint(&body.map, "f", 0, UINT32_MAX, &bad);
	c->trained = net_get_bool(&body.map, "t", &bad);
	net_get_fixed(&body.map, "b", c->kept_digest, 32, &bad);
	get_rounds(c, &body.map, &bad);
	get_latest(c, &body.map, &bad);
	peers = net_get_list(&body.map, "p", (size_t)2 * AGENT_PEERS_MAX, &bad);
	/* Where two have one key, as owners replaced one, the partner's counts: it stands first. */
	for (size_t i = peers.n; bad.code == 0 && i-- > 0;) {
		struct net_map m = net_list_map(&peers, i, &bad);

		load_peer(c, &m, &bad);
	}
	net_body_release(&body);
	if (bad.code != 0)
		return err_set(e, ERR_STORE, "the agent's record in the store is damaged: %.200s",
			       bad.text);
	return 0;
}

bool agent_meta_beside(const uint8_t *bytes, size_t n, uint8_t digest[32])
{
	struct net_body body;
	struct err bad = { 0 };

	if (net_body_decode(&body, bytes, n, &bad) != 0)
		return false;
	net_get_fixed(&body.map, "x", digest, 32, &bad);
	net_body_release(&body);
	return bad.code == 0;
}

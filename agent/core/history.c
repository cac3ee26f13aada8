/* The core's side, and how it is written:
 *
 *   v  version      b  has before     s  its score     d  as drawn
 *   h  by hand      e  epochs since   g  list of maps:
 *   f  epochs of the first training; may be missing
 *   n  looks in a row that took nothing in; may be missing
 *   l  digest of the best that trained without partners beside rounds; may be missing
 *   u  list of maps: f from, n epochs
 *   o  list of maps, may be missing: of trainings before those of g, of a partner
 *      k key  n how many  b kept  s gain
 *   k  keys of partners                  t time  a score before  z after  k kept
 *                                        i whose rows were in it, a bit for each of k: where it
 *                                        is missing, p has all
 *                                        p keys of some of them
 *                                        c cosines, n nearest: of their rows; may be missing */
#include "agent/core/history.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/best_internal.h"
#include "agent/core/core_internal.h"
#include "agent/core/learn_internal.h"
#include "agent/core/peers_internal.h"
#include "net/msg.h"

enum { HISTORY_VERSION = 1 };

static_assert((int)AGENT_HISTORY_KEYS == (int)AGENT_PEERS_MAX, "all partners fit one training");

/* ---- who was in it ---- */

static void set_in(struct agent_gain *g, size_t k, bool in)
{
	g->in[k / 8] = (uint8_t)((g->in[k / 8] & ~(1 << k % 8)) | in << k % 8);
}

static bool is_in_any(const struct agent_history *h, size_t k)
{
	for (size_t i = 0; i < h->n; i++)
		if (agent_gain_has(&h->gain[i], k))
			return true;
	return false;
}

/* The last key has its place. */
static void drop_key(struct agent_history *h, size_t k)
{
	size_t last = --h->n_keys;

	memmove(h->key[k], h->key[last], STORE_KEY);
	for (size_t i = 0; i < h->n; i++) {
		set_in(&h->gain[i], k, agent_gain_has(&h->gain[i], last));
		set_in(&h->gain[i], last, false);
	}
}

static void drop_unused_keys(struct agent_history *h)
{
	for (size_t k = h->n_keys; k-- > 0;)
		if (!is_in_any(h, k))
			drop_key(h, k);
}

/* Its place; of too many the one that was in fewest makes room. */
static struct agent_brought *past_of(struct agent_history *h, const uint8_t key[STORE_KEY])
{
	struct agent_brought *least = h->past;

	for (size_t i = 0; i < h->n_past; i++) {
		if (memcmp(h->past[i].key, key, STORE_KEY) == 0)
			return &h->past[i];
		if (h->past[i].trainings < least->trainings)
			least = &h->past[i];
	}
	if (h->n_past < AGENT_HISTORY_KEYS)
		least = &h->past[h->n_past++];
	*least = (struct agent_brought){ 0 };
	memcpy(least->key, key, STORE_KEY);
	return least;
}

static void count_gain(struct agent_brought *b, const struct agent_gain *g)
{
	b->trainings++;
	b->kept += g->kept;
	b->gain += g->kept ? g->after - g->before : 0;
}

static void leave_to_past(struct agent_history *h, const struct agent_gain *g)
{
	for (size_t k = 0; k < h->n_keys; k++)
		if (agent_gain_has(g, k))
			count_gain(past_of(h, h->key[k]), g);
}

void agent_history_add(struct agent_history *h, const struct agent_gain *g)
{
	if (h->n == AGENT_GAINS_MAX) {
		leave_to_past(h, &h->gain[0]);
		memmove(h->gain, h->gain + 1, --h->n * sizeof(*h->gain));
		drop_unused_keys(h);
	}
	h->gain[h->n++] = *g;
}

struct agent_brought agent_history_brought(const struct agent_history *h,
					   const uint8_t key[STORE_KEY])
{
	struct agent_brought b = { 0 };

	for (size_t i = 0; i < h->n_past; i++)
		if (memcmp(h->past[i].key, key, STORE_KEY) ==
		    0) { /* two, once its key was replaced */
			b.trainings += h->past[i].trainings;
			b.kept += h->past[i].kept;
			b.gain += h->past[i].gain;
		}
	memcpy(b.key, key, STORE_KEY);
	for (size_t k = 0; k < h->n_keys; k++)
		for (size_t i = 0; memcmp(h->key[k], key, STORE_KEY) == 0 && i < h->n; i++)
			if (agent_gain_has(&h->gain[i], k))
				count_gain(&b, &h->gain[i]);
	return b;
}

static void forget_oldest_keys(struct agent_history *h)
{
	drop_unused_keys(h);
	for (size_t i = 0; h->n_keys == AGENT_HISTORY_KEYS && i + 1 < h->n; i++) {
		leave_to_past(h, &h->gain[i]);
		memset(h->gain[i].in, 0, sizeof(h->gain[i].in));
		h->gain[i].n_peers = 0;
		drop_unused_keys(h);
	}
	assert(h->n_keys < AGENT_HISTORY_KEYS);
}

static size_t place_of_key(const struct agent_history *h, const uint8_t key[STORE_KEY])
{
	size_t k = 0;

	while (k < h->n_keys && memcmp(h->key[k], key, STORE_KEY) != 0)
		k++;
	return k;
}

void agent_history_note(struct agent_history *h, const uint8_t key[STORE_KEY])
{
	size_t k = place_of_key(h, key);

	assert(h->n > 0);
	if (k == AGENT_HISTORY_KEYS) {
		forget_oldest_keys(h);
		k = h->n_keys;
	}
	if (k == h->n_keys)
		memcpy(h->key[h->n_keys++], key, STORE_KEY);
	set_in(&h->gain[h->n - 1], k, true);
}

/* ---- how long rounds were ---- */

void agent_history_add_round(struct agent_history *h, uint32_t epochs)
{
	const struct agent_unit *last = h->n_units > 0 ? &h->unit[h->n_units - 1] : NULL;

	if (epochs > 0 && (last == NULL || last->epochs != epochs)) {
		if (h->n_units == AGENT_UNITS_MAX)
			memmove(h->unit, h->unit + 1, --h->n_units * sizeof(*h->unit));
		h->unit[h->n_units++] = (struct agent_unit){ h->epochs, epochs };
	}
	h->epochs += epochs;
}

uint64_t agent_history_unit(const struct agent_history *h, const struct config *c, uint64_t after)
{
	uint64_t unit = c->federation.epochs_per_round, end = h->epochs;
	size_t i = 0;

	assert(after < h->epochs);
	while (i < h->n_units && h->unit[i].from <= after)
		i++;
	if (h->n_units > 0) /* of rounds from before the first of these it is the best guess */
		unit = h->unit[i > 0 ? i - 1 : 0].epochs;
	if (i < h->n_units)
		end = h->unit[i].from;
	if (c->federation.mode == CONFIG_ROUNDS) {
		unit = (uint64_t)c->rounds.epochs * c->rounds.eval_every;
		end = h->epochs;
	}
	assert(unit > 0 && after < end);
	return end - after < unit ? end - after : unit;
}

/* ---- as bytes ---- */

static void write_units(struct net_writer *w, const struct agent_history *h)
{
	net_put_list(w, "u");
	for (size_t i = 0; i < h->n_units; i++) {
		net_put_map(w, NULL);
		net_put_uint(w, "f", h->unit[i].from);
		net_put_uint(w, "n", h->unit[i].epochs);
		net_put_end(w);
	}
	net_put_end(w);
}

static void write_brought(struct net_writer *w, const struct agent_history *h)
{
	net_put_list(w, "o");
	for (size_t i = 0; i < h->n_past; i++) {
		net_put_map(w, NULL);
		net_put_bin(w, "k", h->past[i].key, STORE_KEY);
		net_put_uint(w, "n", h->past[i].trainings);
		net_put_uint(w, "b", h->past[i].kept);
		net_put_double(w, "s", h->past[i].gain);
		net_put_end(w);
	}
	net_put_end(w);
}

static void write_gain(struct net_writer *w, const struct agent_gain *g)
{
	net_put_map(w, NULL);
	net_put_uint(w, "t", (uint64_t)g->time_ms);
	net_put_double(w, "a", g->before);
	net_put_double(w, "z", g->after);
	net_put_bool(w, "k", g->kept);
	net_put_bin(w, "i", g->in, sizeof(g->in));
	net_put_bin(w, "p", g->peer, (size_t)g->n_peers * STORE_KEY);
	net_put_bin(w, "c", g->cosine, (size_t)g->n_peers * sizeof(float));
	net_put_bin(w, "n", g->nearest, (size_t)g->n_peers * sizeof(float));
	net_put_end(w);
}

bool agent_history_is_lone(const struct agent_history *h, const uint8_t digest[STORE_DIGEST])
{
	static const uint8_t none[STORE_DIGEST];

	return memcmp(h->lone, digest, sizeof(none)) == 0 &&
	       memcmp(h->lone, none, sizeof(none)) != 0;
}

void agent_history_write(const struct agent_history *h, struct buf *out)
{
	struct net_writer w;

	net_write_body(&w, out);
	net_put_uint(&w, "v", HISTORY_VERSION);
	net_put_bool(&w, "b", h->has_before);
	net_put_double(&w, "s", h->before);
	net_put_bool(&w, "d", h->drawn);
	net_put_bool(&w, "h", h->by_hand);
	net_put_uint(&w, "e", h->epochs);
	net_put_uint(&w, "f", h->first);
	net_put_uint(&w, "n", h->vain);
	net_put_bin(&w, "l", h->lone, sizeof(h->lone));
	net_put_bin(&w, "k", h->key, h->n_keys * STORE_KEY);
	write_units(&w, h);
	write_brought(&w, h);
	net_put_list(&w, "g");
	for (size_t i = 0; i < h->n; i++)
		write_gain(&w, &h->gain[i]);
	net_put_end(&w);
	if (net_write_end(&w, NULL) != 0)
		buf_clear(out);
}

/* One for each partner; older records have none. */
static void read_figures(float out[AGENT_GAIN_PEERS], const char *key, uint32_t n,
			 const struct net_map *m, struct err *e)
{
	struct net_bytes b = { 0 };

	for (size_t i = 0; i < AGENT_GAIN_PEERS; i++)
		out[i] = NAN;
	if (net_has(m, key))
		b = net_get_bin(m, key, n * sizeof(float), n * sizeof(float), e);
	if (e->code == 0 && b.len > 0)
		memcpy(out, b.base, b.len);
}

static void read_gain(struct agent_gain *g, const struct net_map *m, struct err *e)
{
	struct net_bytes peers;

	g->time_ms = (int64_t)net_get_uint(m, "t", 0, INT64_MAX, e);
	g->before = net_get_double(m, "a", -1e300, 1e300, e);
	g->after = net_get_double(m, "z", -1e300, 1e300, e);
	g->kept = net_get_bool(m, "k", e);
	peers = net_get_bin(m, "p", 0, sizeof(g->peer), e);
	if (e->code != 0)
		return;
	g->n_peers = (uint32_t)(peers.len / STORE_KEY);
	if (g->n_peers > 0)
		memcpy(g->peer, peers.base, (size_t)g->n_peers * STORE_KEY);
	read_figures(g->cosine, "c", g->n_peers, m, e);
	read_figures(g->nearest, "n", g->n_peers, m, e);
}

static void read_noted_keys(struct agent_history *h, const struct net_map *map, struct err *e)
{
	struct net_bytes keys = { 0 };

	if (net_has(map, "k")) /* older ones have none */
		keys = net_get_bin(map, "k", 0, sizeof(h->key), e);
	if (e->code != 0 || keys.len == 0)
		return;
	h->n_keys = keys.len / STORE_KEY;
	memcpy(h->key, keys.base, h->n_keys * STORE_KEY);
}

/* In older records these few are all that are known. */
static void read_who(struct agent_history *h, struct agent_gain *g, const struct net_map *m,
		     struct err *e)
{
	if (!net_has(m, "i")) {
		for (uint32_t k = 0; k < g->n_peers; k++)
			agent_history_note(h, g->peer[k]);
		return;
	}
	net_get_fixed(m, "i", g->in, sizeof(g->in), e);
	for (size_t k = h->n_keys; k < AGENT_HISTORY_KEYS; k++)
		set_in(g, k, false);
}

static void read_gains(struct agent_history *h, const struct net_map *map, struct err *e)
{
	struct net_list gains = net_get_list(map, "g", AGENT_GAINS_MAX, e);

	read_noted_keys(h, map, e);

	for (size_t i = 0; e->code == 0 && i < gains.n; i++) {
		struct net_map m = net_list_map(&gains, i, e);

		read_gain(&h->gain[h->n++], &m, e);
		if (e->code == 0)
			read_who(h, &h->gain[h->n - 1], &m, e);
	}
}

/* In the order of their epochs; older records have none. */
static void read_units(struct agent_history *h, const struct net_map *map, struct err *e)
{
	struct net_list units = { 0 };
	uint64_t from = 0;

	if (net_has(map, "u"))
		units = net_get_list(map, "u", AGENT_UNITS_MAX, e);
	for (size_t i = 0; e->code == 0 && i < units.n; i++) {
		struct net_map m = net_list_map(&units, i, e);
		struct agent_unit u = { net_get_uint(&m, "f", from, INT64_MAX, e), 0 };

		u.epochs = (uint32_t)net_get_uint(&m, "n", 1, UINT32_MAX, e);
		from = u.from + 1;
		h->unit[h->n_units++] = u;
	}
}

static void read_brought(struct agent_history *h, const struct net_map *map, struct err *e)
{
	struct net_list past = { 0 };

	if (net_has(map, "o")) /* older records have none */
		past = net_get_list(map, "o", AGENT_HISTORY_KEYS, e);
	for (size_t i = 0; e->code == 0 && i < past.n; i++) {
		struct agent_brought *b = &h->past[h->n_past++];
		struct net_map m = net_list_map(&past, i, e);

		net_get_fixed(&m, "k", b->key, STORE_KEY, e);
		b->trainings = net_get_uint(&m, "n", 1, INT64_MAX, e);
		b->kept = net_get_uint(&m, "b", 0, b->trainings, e);
		b->gain = net_get_double(&m, "s", -1e300, 1e300, e);
	}
}

int agent_history_read(struct agent_history *h, const uint8_t *bytes, size_t n, struct err *e)
{
	struct net_body body;
	struct err bad = { 0 };

	*h = (struct agent_history){ 0 };
	if (n == 0)
		return 0;
	if (net_body_decode(&body, bytes, n, &bad) != 0)
		return err_set(e, ERR_STORE, "the history of gains is damaged: %.200s", bad.text);
	net_get_uint(&body.map, "v", HISTORY_VERSION, HISTORY_VERSION, &bad);
	h->has_before = net_get_bool(&body.map, "b", &bad);
	h->before = net_get_double(&body.map, "s", -1e300, 1e300, &bad);
	h->drawn = net_get_bool(&body.map, "d", &bad);
	h->by_hand = net_get_bool(&body.map, "h", &bad);
	h->epochs = net_get_uint(&body.map, "e", 0, INT64_MAX, &bad);
	if (net_has(&body.map, "f")) /* older ones have none, nor the next */
		h->first = net_get_uint(&body.map, "f", 0, INT64_MAX, &bad);
	if (net_has(&body.map, "n"))
		h->vain = (uint32_t)net_get_uint(&body.map, "n", 0, UINT32_MAX, &bad);
	if (net_has(&body.map, "l"))
		net_get_fixed(&body.map, "l", h->lone, sizeof(h->lone), &bad);
	read_units(h, &body.map, &bad);
	read_brought(h, &body.map, &bad);
	read_gains(h, &body.map, &bad);
	h->anew = !h->has_before && h->n == 0;
	net_body_release(&body);
	return bad.code == 0
		       ? 0
		       : err_set(e, ERR_STORE, "the history of gains is damaged: %.200s", bad.text);
}

/* ---- the core's ---- */

int history_load(struct agent_core *c, const struct store_core *saved, struct err *e)
{
	int status = 0;

	for (size_t i = 0; status == 0 && i < saved->n_meta; i++)
		if (strcmp(saved->meta[i].key, AGENT_META_HISTORY) == 0)
			status = agent_history_read(&c->history, saved->meta[i].base,
						    saved->meta[i].len, e);
	peer_choice_count(c);
	return status;
}

/* What pairs went on from, which may be others than the best: so does the arm without partners. */
static void keep_latest(const struct agent_core *c, struct store_checkpoint info,
			struct store_batch *b)
{
	if (!latest_is_apart(c))
		return;
	info.kind = STORE_ALONE_LATEST;
	info.epochs = 0;      /* since before */
	info.valid_score = 0; /* which nobody knows by now */
	store_batch_checkpoint(b, &info, kge_emb_copy(c->latest));
}

/* Adds the best tables to the batch, once, while no partner has had a part in them. */
void history_begin(struct agent_core *c, struct store_batch *b)
{
	struct store_checkpoint info = { .kind = STORE_BEFORE,
					 .valid_score = c->has_best ? c->best_score : 0,
					 .epochs = c->epochs,
					 .seed = c->config->train.kge.seed,
					 .created_ms = c->wall_ms };

	if (c->history.anew &&
	    dp_charge_needed(c)) { /* without noise later, it would be too late */
		store_batch_meta(b, AGENT_META_HISTORY, "", 0);
		c->history.anew = false;
	}
	if (c->history.has_before || dp_charge_needed(c) ||
	    (!c->history.anew && (c->rounds > 0 || c->fed.done > 1)))
		return;
	c->history.has_before = true;
	c->history.drawn = !c->has_best;
	c->history.before = info.valid_score;
	c->history.first = c->first_done;
	snprintf(info.protocol, sizeof(info.protocol), "%s", c->terms.score_name);
	store_batch_tables(b, &info, kge_emb_copy(c->best), c->best_digest);
	keep_latest(c, info, b);
}

static void note_figures(struct agent_gain *g, const struct peer *p)
{
	if (g->n_peers == AGENT_GAIN_PEERS)
		return;
	g->cosine[g->n_peers] = (float)p->agreement.cosine;
	g->nearest[g->n_peers] = (float)p->agreement.nearest;
	memcpy(g->peer[g->n_peers++], p->info.key, STORE_KEY);
}

/* Figures are kept of a few: of more, of others each round. */
static void add_peers(struct agent_core *c)
{
	struct agent_history *h = &c->history;
	size_t first = c->in_round > AGENT_GAIN_PEERS ? c->rounds % c->n_peers : 0;

	for (size_t i = 0; i < c->n_peers; i++) {
		const struct peer *p = c->peers[(first + i) % c->n_peers];

		if (!p->in_round || judge_left_out(c, p))
			continue;
		agent_history_note(h, p->info.key);
		note_figures(&h->gain[h->n - 1], p);
	}
}

void history_gain(struct agent_core *c, double after, bool kept)
{
	struct agent_history *h = &c->history;

	if (!c->has_best || dp_charge_needed(c))
		return;
	agent_history_add(h, &(struct agent_gain){ .time_ms = c->wall_ms > 0 ? c->wall_ms : 0,
						   .before = c->best_score,
						   .after = after,
						   .kept = kept });
	add_peers(c);
	peer_choice_count(c);
}

void history_count(struct agent_core *c, uint32_t epochs, struct store_batch *b)
{
	struct buf out = { 0 };

	if (c->history.has_before && in_rounds(c))
		c->history.epochs += epochs;
	else if (c->history.has_before)
		agent_history_add_round(&c->history, epochs);
	if (!c->history.has_before && c->history.n == 0)
		return;
	agent_history_write(&c->history, &out);
	store_batch_meta_owned(b, AGENT_META_HISTORY, out.base, out.len);
}

uint64_t agent_core_unit(const struct agent_core *c, uint64_t after)
{
	return agent_history_unit(&c->history, c->config, after);
}

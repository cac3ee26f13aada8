/* tests/sim/rounds.c - agents that run rounds: their settings, how they train, and what must hold.
 *
 * The checks know names and tables of all and ask the agents nothing but what they have
 * committed.  Of each round they keep what local training left at each agent, and what was there
 * when the agent said that the round is over. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/core_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/rounds_internal.h"
#include "base/mem.h"
#include "fed/draw.h"
#include "fed/round.h"
#include "net/msg.h"
#include "tests/sim/inside.h"

enum {
	KIND_JOIN = 2,
	KIND_UP = 8,
	KIND_DOWN = 9,
	KIND_ACCOUNT = 13
};			       /* of a NET_MSG_ROUND: fed/round_internal.h */
enum { WORK_SLACK_MS = 6000 }; /* jobs and commits of a round take less than so much together */
enum { NONE_MS = 60000 };      /* in which there would have been rounds */

static const double near_enough = 4e-6; /* fixed point of 32 bits, 30 members (fed/mask.h) */

/* ---- settings ---- */

static const struct fed_method *method_of(const struct sim *s)
{
	size_t n = 0;

	while (fed_methods[n] != NULL)
		n++;
	assert(n > 0);
	return s->o.method != NULL ? fed_method_find(s->o.method) : fed_methods[s->o.seed % n];
}

static void set_constant(struct config *c, const char *key, const char *value)
{
	int rc = config_set(c, "rounds", key, value, NULL);

	assert(rc == 0);
	(void)rc;
}

/* A method, with constants that tables of four dimensions can bear. */
static void set_method(struct config *c, const struct fed_method *m)
{
	set_constant(c, "method", m->name);
	if (strncmp(m->name, "fedsvd", 6) == 0)
		set_constant(c, "n", "2");
	if (strcmp(m->name, "fedkd") == 0)
		set_constant(c, "dim", "2");
	if (strcmp(m->name, "fedepl") == 0)
		set_constant(c, "dim", "5");
	if (strcmp(m->name, "feds") == 0)
		set_constant(c, "s", "2");
	if (strcmp(m->name, "fedlu") == 0)
		set_constant(c, "warm_up", "1");
	if (m->dense != NULL) {
		set_constant(c, "dim", "2");
		set_constant(c, "steps", "2");
		set_constant(c, "batch", "4");
		set_constant(c, "queries", "2");
	}
}

static void set_terms(struct sim *s, struct node *n, const struct fed_method *m)
{
	static const int words[] = { 0, 0, 1, 2 }; /* of 32 bits, in a masked number */
	struct config *c = &n->config;
	uint64_t lot = s->o.seed / 16;

	if (lot % 3 == 2 || s->o.hosted) {
		c->rounds.topology = FED_HOSTED;
		free(c->rounds.host);
		c->rounds.host = mem_printf("agent-%zu", (size_t)(lot % s->n));
		memcpy(n->rounds_host, s->node[lot % s->n].key, FED_KEY);
	}
	c->rounds.min_holders = lot % 4 == 1 ? 3 : 2;
	c->rounds.secret = m->home != NULL ? 0 : s->o.secret ? 1 : words[lot % 4];
	c->rounds.join_s = 1.5;
	c->rounds.train_s = 2.5;
	c->rounds.stage_s = 1.5;
}

/* One of eight; a method has another each time that it comes round. */
static uint64_t lot_of(const struct sim *s)
{
	return (s->o.seed + s->o.seed / 16) % 8;
}

/* May a member be left out, since its rows hurt by what others score? */
bool sim_rounds_judges(const struct sim *s)
{
	return s->o.real_learning ? s->o.seed % 2 == 1 : lot_of(s) == 1 || lot_of(s) == 3;
}

/* May a row be cut, or left out, since it is far from others? */
static bool bounds(const struct sim *s)
{
	return !s->o.real_learning && lot_of(s) == 3;
}

void sim_rounds_settings(struct sim *s, struct node *n)
{
	struct config *c = &n->config;
	const struct fed_method *m = method_of(s);

	c->federation.mode = CONFIG_ROUNDS;
	c->federation.roles = CONFIG_BOTH_ROLES;
	c->privacy.noisy_rows = false;
	c->federation.share = CONFIG_SHARE_BOTH;
	c->model.dim = 4;
	set_method(c, m);
	set_terms(s, n, m);
	c->rounds.epochs = 1;
	c->rounds.first_epochs = s->o.seed % 3 == 0 && !m->changes ? 2 : 0;
	c->rounds.eval_every = 1 + s->o.seed % 2;
	c->rounds.every_s = s->o.seed % 2 ? 0 : .7;
	c->rounds.equal_start = s->o.seed % 4 != 0 || m->changes;
	c->rounds.propose = (s->o.seed + n->at) % 5 != 0;
	c->rounds.patience = n->at % 3 == 2 ? 2 : 0; /* others go on proposing */
	c->rounds.stop_when_worse = s->o.seed % 5 == 4 ? 2 : 0;
	c->rounds.compare_rounds = (uint32_t)(s->o.seed % 3);
	c->federation.weight = s->o.seed % 4 == 1 ? CONFIG_WEIGHT_VALID : CONFIG_WEIGHT_ALL;
	c->federation.few.weight_from =
		sim_rounds_judges(s) ? 1 : 1 + (uint32_t)(s->o.seed / 4 % 5);
	c->federation.few.judge = !s->o.real_learning || sim_rounds_judges(s);
	c->rounds.bound_rows = bounds(s);
	c->rounds.fraction = s->o.seed % 5 == 3 ? .5 : 1; /* in the next round others */
	c->rounds.min_members = s->o.seed % 7 == 6 ? (uint32_t)s->n : 2;
}

/* ---- training ---- */

static struct kge_trainer *trainer_of(struct node *n, struct kge_emb *emb)
{
	if (n->trainer == NULL)
		n->trainer = kge_trainer_new(&n->train, n->graph, emb);
	return n->trainer;
}

/* A method that brings its own training is trained in earnest: the graphs are tiny. */
int sim_rounds_train_part(void *ctx, struct fed_part *part, uint32_t epochs, struct agent_job *job)
{
	struct node *n = ctx;

	if (part->method->train != NULL || part->method->train_beside != NULL) {
		struct fed_training t = { .graph = n->graph,
					  .config = &n->train,
					  .trainer = trainer_of(n, part->emb),
					  .epochs = epochs,
					  .cancel = &job->cancel };

		return fed_train(part, &t);
	}
	return n->synthetic.train(n, part->emb, epochs, true, job);
}

void sim_rounds_forget_life(struct node *n)
{
	kge_trainer_free(n->trainer); /* of tables that are gone */
	n->trainer = NULL;
	n->in_fed = false;
}

/* ---- what is known of a round ---- */

/* The one that it is in; NULL: in none. */
static const struct fed_round *machine_of(const struct node *n)
{
	return n->core->fed.now != NULL ? n->core->fed.now->machine : NULL;
}

struct sim_round {
	uint8_t id[16];
	/* by agent: the table that travels as local training left it, and at the end */
	struct kge_emb *trained[SIM_AGENTS_MAX], *after[SIM_AGENTS_MAX];
	double weight[SIM_AGENTS_MAX]; /* of what came, in that table (federation.weight) */
	bool over[SIM_AGENTS_MAX];
	int outcome[SIM_AGENTS_MAX];
	uint32_t roster[SIM_AGENTS_MAX];	      /* as it says: bits */
	uint8_t fate[SIM_AGENTS_MAX][SIM_AGENTS_MAX]; /* [who says][of whom], of a roster */
	bool counted;
	/* accounts: when it ended at each, in which life, and of whom that one has one */
	uint32_t place[SIM_AGENTS_MAX], held[SIM_AGENTS_MAX];
	uint64_t life[SIM_AGENTS_MAX];
	bool on_disk[SIM_AGENTS_MAX];
};

static struct sim_round *round_of(struct sim *s, const uint8_t id[16])
{
	struct sim_round *x;

	for (size_t i = s->n_rounds; i > 0; i--)
		if (memcmp(s->round[i - 1]->id, id, 16) == 0)
			return s->round[i - 1];
	s->round = mem_resize(s->round, s->n_rounds + 1, sizeof(struct sim_round *));
	x = s->round[s->n_rounds++] = mem_array(1, sizeof(*x));
	memcpy(x->id, id, 16);
	return x;
}

void sim_rounds_release(struct sim *s)
{
	for (size_t i = 0; i < s->n_rounds; i++) {
		for (size_t a = 0; a < s->n; a++) {
			kge_emb_free(s->round[i]->trained[a]);
			kge_emb_free(s->round[i]->after[a]);
		}
		free(s->round[i]);
	}
	free(s->round);
}

/* ---- names ---- */

static void find_sharing(struct sim *s);

/* Items, by number, and who has them. */
void sim_rounds_name_items(struct sim *s)
{
	config_fed_settings(&s->node[0].config, &s->terms);
	memcpy(s->terms.host, s->node[0].rounds_host, FED_KEY);
	for (size_t a = 0; a < s->n; a++) {
		size_t count;
		struct agent_name *v =
			agent_names_toward(s->node[a].names, s->node[a].key, 1, 1, &count);

		for (size_t i = 0; i < count; i++) {
			char name[80];
			int len = snprintf(name, sizeof(name), "%c %.*s", v[i].tag, (int)v[i].len,
					   v[i].text);
			uint32_t item = graph_vocab_add(s->items, name, (size_t)len);

			s->node[a].item[v[i].tag == 'r'][v[i].id] = item;
			s->holders[item] |= UINT32_C(1) << a;
		}
		free(v);
	}
	find_sharing(s);
}

static bool holds(const struct sim *s, size_t who, uint32_t item)
{
	return (s->holders[item] >> who & 1) != 0;
}

static const struct fed_settings *settings_of(const struct sim *s)
{
	return &s->terms;
}

static size_t host_of(const struct sim *s)
{
	const struct fed_settings *f = settings_of(s);

	return f->topology == FED_HOSTED ? node_by_key(s, f->host) : SIM_NOBODY;
}

/* Of what the method moves, by name: what has none of its own is in no alignment. */
static bool shares(const struct sim *s, size_t who)
{
	const struct node *n = &s->node[who];
	const char *tags = method_of(s)->tags;
	size_t count, held = 0;
	struct agent_name *v = agent_names_toward(n->names, n->key, strchr(tags, 'e') != NULL,
						  strchr(tags, 'r') != NULL, &count);

	for (size_t i = 0; i < count; i++)
		held += (s->holders[n->item[v[i].tag == 'r'][v[i].id]] & ~(UINT32_C(1) << who)) !=
			0;
	free(v);
	return held > 0;
}

/* Somebody whose rounds move something goes on proposing; nobody waits for more than there can
 * be. */
static void let_them_meet(struct sim *s)
{
	struct config *first = NULL;
	uint32_t n = 0;
	bool willing = false;

	for (size_t a = 0; a < s->n; a++) {
		struct config *c = &s->node[a].config;

		if ((s->sharing >> a & 1) == 0)
			continue;
		n++;
		first = first != NULL ? first : c;
		willing = willing || (c->rounds.propose && c->rounds.patience == 0);
	}
	if (first != NULL && !willing) {
		first->rounds.propose = true;
		first->rounds.patience = 0;
	}
	for (size_t a = 0; n >= 2 && a < s->n; a++) {
		struct config_rounds *r = &s->node[a].config.rounds;

		r->min_members = r->min_members < n ? r->min_members : n;
		r->min_holders = r->min_holders < n ? r->min_holders : n;
	}
	s->terms.min_holders = s->node[0].config.rounds.min_holders;
}

/* A host takes part, whatever it holds. */
static void find_sharing(struct sim *s)
{
	for (size_t a = 0; s->o.fed && a < s->n; a++)
		s->sharing |= shares(s, a) ? UINT32_C(1) << a : 0;
	if (s->sharing != 0 && host_of(s) < s->n)
		s->sharing |= UINT32_C(1) << host_of(s);
	let_them_meet(s);
}

/* Rows go up as they are in the table that travels, and the mean of them comes down.  Rows of all
 * members, which no name stands for, are left to tests/fed/test_fedcqa.c. */
static bool means_of_rows(const struct fed_method *m)
{
	return m->shape == NULL && m->up == NULL && m->home == NULL && m->down == NULL &&
	       m->stages == NULL && m->dense == NULL;
}

static bool is_relations(const struct fed_method *m)
{
	return m->tags[0] == 'r';
}

static size_t rows_in(const struct kge_emb *emb, bool rel)
{
	return rel ? emb->n_rel : emb->n_ent;
}

static size_t floats_in(const struct kge_emb *emb, bool rel)
{
	return rel ? emb->rel_floats : emb->ent_floats;
}

static const float *row_in(const struct kge_emb *emb, bool rel, uint32_t id)
{
	return rel ? kge_rel(emb, id) : kge_ent(emb, id);
}

/* ---- on the wire: rows of an item go to those who hold it, and to the host ---- */

static bool may_have(const struct sim *s, size_t from, size_t to, uint32_t item)
{
	uint32_t others = s->holders[item] & ~(UINT32_C(1) << from);

	return to == host_of(s) ? others != 0 : holds(s, to, item);
}

static size_t shared_by(const struct sim *s, size_t from, size_t to, bool rel)
{
	const struct node *n = &s->node[from];
	size_t count = 0;

	for (uint32_t id = 0; id < rows_in(n->start, rel); id++)
		count += may_have(s, from, to, n->item[rel][id]);
	return count;
}

/* A row on the wire: floats, or under masks words. */
static size_t wire_bytes(const struct sim *s, size_t floats)
{
	return floats * (settings_of(s)->secret_bits == 64 ? sizeof(uint64_t) : sizeof(uint32_t));
}

/* The row as it travels without a mask, in a round of so many members; false: it does not. */
static bool write_bare(const struct sim *s, const float *row, size_t n, size_t members,
		       uint8_t *wire)
{
	const struct fed_settings *f = settings_of(s);
	struct fed_mask_ring ring;

	if (f->secret_bits == 0) {
		memcpy(wire, row, wire_bytes(s, n));
		return true;
	}
	return fed_mask_ring_init(&ring, f->secret_bits, f->secret_clip, members, NULL) == 0 &&
	       fed_mask_encode(&ring, row, n, wire, NULL, NULL) == 0;
}

/* Whoever of all takes part. */
static bool is_bare(const struct sim *s, const float *row, size_t n, const uint8_t *wire)
{
	uint8_t *bare = mem_array(wire_bytes(s, n), 1);
	bool is = false;

	for (size_t members = 2; members <= s->n && !is; members++)
		is = write_bare(s, row, n, members, bare) &&
		     memcmp(bare, wire, wire_bytes(s, n)) == 0;
	free(bare);
	return is;
}

/* Whose row is this, of those that `from` has trained; GRAPH_NONE: nobody's. */
static uint32_t item_of_row(const struct node *from, const struct kge_emb *t, bool rel,
			    const uint8_t *row, size_t to)
{
	uint32_t found = GRAPH_NONE;

	for (uint32_t id = 0; id < rows_in(t, rel); id++) {
		uint32_t item = from->item[rel][id];

		if (!is_bare(from->sim, row_in(t, rel, id), floats_in(t, rel), row))
			continue;
		if (may_have(from->sim, from->at, to, item))
			return item;
		found = item;
	}
	return found;
}

static void check_rows_up(struct sim *s, size_t from, size_t to, const struct kge_emb *t,
			  const struct net_bytes *rows)
{
	bool rel = is_relations(method_of(s));
	size_t step = wire_bytes(s, floats_in(t, rel));

	for (size_t at = 0; at + step <= rows->len; at += step) {
		uint32_t item = item_of_row(&s->node[from], t, rel, rows->base + at, to);

		if (settings_of(s)->secret_bits != 0) {
			if (item != GRAPH_NONE)
				sim_fail(s, "agent %zu sends agent %zu a row that no mask hides",
					 from, to);
		} else if (item == GRAPH_NONE || !may_have(s, from, to, item)) {
			sim_fail(s, "agent %zu sends agent %zu a row of what it does not hold",
				 from, to);
		}
		s->report->rows_seen++;
	}
}

static void tell(struct sim *s, uint64_t kind, const struct net_msg *m)
{
	static const char *const kinds[] = { "?",     "PROPOSE", "JOIN",  "DECLINE", "START",
					     "OUT",   "LEAVE",	 "KEY",	  "UP",	     "DOWN",
					     "AGAIN", "SHOW",	 "SHOWN", "ACCOUNT" };
	char why[NET_REASON_MAX + 1] = "";
	struct err e = { 0 };

	if (net_has(&m->body, "r"))
		net_get_text(&m->body, "r", why, sizeof(why), &e);
	sim_log(s, "       %s %s", kind < sizeof(kinds) / sizeof(kinds[0]) ? kinds[kind] : "?",
		why);
}

/* What it signs is what a crash at this moment would leave on its disk. */
static void check_account_sent(struct sim *s, size_t from, size_t to, const struct net_msg *m)
{
	const struct store_round_member *v =
		disk_round_member(&s->node[from].disk, m->session, s->node[to].key);
	struct err e = { 0 };

	s->report->accounts_sent++;
	if (v == NULL || v->rows_out != net_get_uint(&m->body, "ro", 0, INT64_MAX, &e) ||
	    v->rows_in != net_get_uint(&m->body, "ri", 0, INT64_MAX, &e) ||
	    v->floats_out != net_get_uint(&m->body, "fo", 0, INT64_MAX, &e) ||
	    v->floats_in != net_get_uint(&m->body, "fi", 0, INT64_MAX, &e))
		sim_fail(s, "agent %zu signs for agent %zu what is not on its disk", from, to);
}

void sim_rounds_check_send(struct sim *s, size_t from, size_t to, const struct net_msg *m)
{
	struct err e = { 0 };
	uint64_t kind = net_get_uint(&m->body, "k", 0, 255, &e), first, n;
	struct sim_round *x;
	struct net_bytes rows;
	bool rel = is_relations(method_of(s));

	tell(s, kind, m);
	if (e.code == 0 && kind == KIND_ACCOUNT)
		check_account_sent(s, from, to, m);
	if (e.code != 0 || (kind != KIND_UP && kind != KIND_DOWN))
		return;
	first = net_get_uint(&m->body, "o", 0, UINT32_MAX, &e);
	n = net_get_uint(&m->body, "n", 0, UINT32_MAX, &e);
	rows = net_get_bin(&m->body, "p", 0, NET_MESSAGE_MAX, &e);
	x = round_of(s, m->session);
	if (e.code != 0 || x->trained[from] == NULL)
		sim_fail(s, "agent %zu sends rows before it has trained, or none: %s", from,
			 e.text);
	else if (first + n >
		 shared_by(s, kind == KIND_UP ? from : to, kind == KIND_UP ? to : from, rel) +
			 fed_dense(s->node[from].core->fed.part))
		sim_fail(s, "agent %zu sends agent %zu more rows than they share", from, to);
	else if (kind == KIND_UP && means_of_rows(method_of(s)))
		check_rows_up(s, from, to, x->trained[from], &rows);
}

/* ---- a round is over ---- */

static bool took_part(const struct sim_round *x, size_t a, size_t b)
{
	return a == b || ((x->roster[a] >> b & 1) != 0 && x->fate[a][b] == FED_TOOK_PART);
}

static uint32_t holders_in(const struct sim *s, const struct sim_round *x, size_t a, uint32_t item)
{
	return s->holders[item] & x->roster[a];
}

/* All of these have ended the round well, and each says so of each. */
static bool all_well(const struct sim *s, const struct sim_round *x, uint32_t set)
{
	for (size_t a = 0; a < s->n; a++) {
		if ((set >> a & 1) == 0)
			continue;
		if (!x->over[a] || x->outcome[a] != 0)
			return false;
		for (size_t b = 0; b < s->n; b++)
			if ((set >> b & 1) != 0 && !took_part(x, a, b))
				return false;
	}
	return true;
}

static uint32_t id_of(const struct sim *s, size_t who, bool rel, uint32_t item)
{
	const struct node *n = &s->node[who];

	for (uint32_t id = 0; id < rows_in(n->start, rel); id++)
		if (n->item[rel][id] == item)
			return id;
	return GRAPH_NONE;
}

static const float *row_of(const struct sim *s, struct kge_emb *const v[], size_t who, bool rel,
			   uint32_t item)
{
	return v[who] != NULL ? row_in(v[who], rel, id_of(s, who, rel, item)) : NULL;
}

/* Is this the mean over what these had, or as much of it as this agent took in? */
static bool is_mean(const struct sim *s, const struct sim_round *x, uint32_t set, size_t me,
		    bool rel, uint32_t item, const float *row, size_t floats)
{
	const float *own = row_of(s, x->trained, me, rel, item);

	for (size_t i = 0; i < floats; i++) {
		double sum = 0;
		size_t n = 0;

		for (size_t a = 0; a < s->n; a++) {
			const float *r = NULL;

			if ((set >> a & 1) != 0)
				r = row_of(s, x->trained, a, rel, item);
			if ((set >> a & 1) != 0 && r == NULL)
				return false;
			sum += r != NULL ? (double)r[i] : 0;
			n += r != NULL;
		}
		if (!(fabs((1 - x->weight[me]) * (double)own[i] + x->weight[me] * sum / (double)n -
			   (double)row[i]) <= near_enough))
			return false;
	}
	return true;
}

/* Neither more nor less than what these had: of many, whose subsets are too many to try. */
static bool in_hull(const struct sim *s, const struct sim_round *x, uint32_t set, bool rel,
		    uint32_t item, const float *row, size_t floats)
{
	for (size_t i = 0; i < floats; i++) {
		double low = INFINITY, high = -INFINITY;

		for (size_t a = 0; a < s->n; a++) {
			const float *r = NULL;

			if ((set >> a & 1) != 0)
				r = row_of(s, x->trained, a, rel, item);
			low = r != NULL ? fmin(low, (double)r[i]) : low;
			high = r != NULL ? fmax(high, (double)r[i]) : high;
		}
		if (!((double)row[i] >= low - near_enough && (double)row[i] <= high + near_enough))
			return false;
	}
	return true;
}

/* The mean over some of the holders, the agent among them. */
static bool is_some_mean(const struct sim *s, const struct sim_round *x, uint32_t set, size_t me,
			 bool rel, uint32_t item, const float *row, size_t floats)
{
	if (__builtin_popcount(set) > 8)
		return in_hull(s, x, set, rel, item, row, floats);
	for (uint32_t some = set; some != 0; some = (some - 1) & set)
		if ((some >> me & 1) != 0 && is_mean(s, x, some, me, rel, item, row, floats))
			return true;
	return false;
}

/* Whoever may answer for an item is heard by all: the home is a holder, or the host. */
static uint32_t those_who_count(const struct sim *s, uint32_t set)
{
	size_t host = host_of(s);

	return host < s->n ? set | UINT32_C(1) << host : set;
}

/* All holders have taken part: they have one row, the mean of theirs, bit for bit the same where
 * all of it is taken in.  What
 * the host does not hold needs a key besides, which may be late. */
static void check_exact(struct sim *s, const struct sim_round *x, uint32_t set, bool rel,
			uint32_t item, size_t me, size_t floats)
{
	size_t host = host_of(s);
	const float *row = row_of(s, x->after, me, rel, item);

	if (host < s->n && (set >> host & 1) == 0 && !s->o.calm)
		return;
	if (!is_mean(s, x, set, me, rel, item, row, floats))
		sim_fail(s, "agent %zu: a row is not the mean of all that hold it", me);
	for (size_t b = 0; b < s->n; b++) {
		const float *other = (set >> b & 1) != 0 ? row_of(s, x->after, b, rel, item) : row;

		if (x->weight[me] == 1 && x->weight[b] == 1 &&
		    memcmp(other, row, floats * sizeof(float)) != 0)
			sim_fail(s, "agents %zu and %zu: rows of one thing differ after a round",
				 me, b);
	}
}

static void check_row(struct sim *s, const struct sim_round *x, size_t me, bool rel, uint32_t id)
{
	const struct fed_method *m = method_of(s);
	uint32_t item = s->node[me].item[rel][id];
	uint32_t set = holders_in(s, x, me, item), all = those_who_count(s, set);
	size_t floats = floats_in(x->after[me], rel);
	const float *before = row_in(x->trained[me], rel, id), *row = row_in(x->after[me], rel, id);
	bool same = memcmp(before, row, floats * sizeof(float)) == 0;
	bool few = (uint32_t)__builtin_popcount(set) < settings_of(s)->min_holders;

	if (few || rel != is_relations(m)) {
		if (!same)
			sim_fail(s, "agent %zu: a row that nobody else sends has changed", me);
	} else if (!means_of_rows(m)) {
		return;
	} else if (sim_rounds_judges(s) || bounds(s)) { /* of any of them: each home decides */
		if (!in_hull(s, x, set, rel, item, row, floats))
			sim_fail(s, "agent %zu: a row is outside of those that hold it", me);
	} else if (all_well(s, x, all)) {
		check_exact(s, x, set, rel, item, me, floats);
	} else if (!same && !is_some_mean(s, x, set, me, rel, item, row, floats)) {
		sim_fail(s, "agent %zu: a row is no mean of those that hold it", me);
	}
}

static void check_rows(struct sim *s, const struct sim_round *x, size_t me)
{
	for (int rel = 0; rel < 2; rel++)
		for (uint32_t id = 0; id < rows_in(s->node[me].start, rel); id++)
			check_row(s, x, me, rel, id);
}

/* The rows that the methods' means are about, once all has been said of a round. */
static void count_rows(struct sim *s, const struct sim_round *x, size_t me)
{
	bool rel = is_relations(method_of(s));

	for (uint32_t id = 0; means_of_rows(method_of(s)) && id < rows_in(x->after[me], rel);
	     id++) {
		uint32_t set = holders_in(s, x, me, s->node[me].item[rel][id]);

		if ((uint32_t)__builtin_popcount(set) < settings_of(s)->min_holders)
			continue;
		*(all_well(s, x, those_who_count(s, set)) ? &s->report->rows_exact
							  : &s->report->rows_cut) += 1;
	}
}

void sim_rounds_count(struct sim *s)
{
	for (size_t i = 0; i < s->n_rounds; i++)
		for (size_t a = 0; a < s->n; a++)
			if (s->round[i]->after[a] != NULL)
				count_rows(s, s->round[i], a);
}

/* Of those that share something all, or with a fraction those who are in it, if they are enough. */
static bool is_full(const struct sim *s, const struct sim_round *x)
{
	double fraction = s->node[0].config.rounds.fraction;
	int sharing = __builtin_popcount(s->sharing);
	uint32_t in = 0;

	if (!(fraction < 1))
		return all_well(s, x, s->sharing);
	for (size_t a = 0; a < s->n && a < SIM_AGENTS_MAX; a++)
		in |= (uint32_t)(x->after[a] != NULL) << a;
	return (size_t)__builtin_popcount(in) >= fed_draw_count(fraction, (size_t)sharing, 2) &&
	       all_well(s, x, in);
}

/* Full, and none missed another. */
static void count_full(struct sim *s, struct sim_round *x)
{
	if (x->counted || !is_full(s, x))
		return;
	x->counted = true;
	s->report->full_rounds++;
	s->full_since_heal += !s->faults;
}

static void note_fates(struct sim *s, struct sim_round *x, size_t me, const struct store_round *r)
{
	for (size_t i = 0; i < r->n_participants; i++) {
		size_t who = node_by_key(s, r->members[i].key);

		if (who >= s->n)
			continue;
		if (i < r->n_members)
			x->roster[me] |= UINT32_C(1) << who;
		x->fate[me][who] = (uint8_t)r->members[i].fate;
		s->report->missed += who != me && r->members[i].fate != FED_TOOK_PART;
	}
}

/* Did the round that is over leave the copy that has trained alone? */
static bool took_copy(const struct node *n)
{
	const struct round *now = n->core->fed.now;

	return now != NULL && now->weighed.takes_alone &&
	       fed_shared_table(n->core->fed.part) == n->core->work;
}

/* In the first round in which valid decides, or in one that waited for; and bit for bit. */
static void check_copy(const struct node *n)
{
	const struct agent_core *c = n->core;
	uint32_t from = n->config.federation.few.weight_from;
	uint8_t table[32], copy[32];

	if ((c->fed.done != from && !fed_weight_asks_again(c->fed.done, from) &&
	     !c->fed.now->choice.is_last) ||
	    c->fed.compare.choice.waits > 0 || c->fed.weight != 0 ||
	    n->config.federation.weight != CONFIG_WEIGHT_VALID)
		sim_fail(n->sim, "agent %zu: a copy trained alone out of its turn", n->at);
	if (c->fed.compare.alone == NULL)
		return; /* it was for this choice only */
	kge_emb_digest(c->work, table);
	kge_emb_digest(c->fed.compare.alone, copy);
	if (memcmp(table, copy, 32) != 0)
		sim_fail(n->sim, "agent %zu: another table than the copy it took", n->at);
}

static void round_over(struct node *n, const struct store_round *r)
{
	struct sim *s = n->sim;
	struct sim_round *x = round_of(s, r->id);

	if (x->over[n->at])
		sim_fail(s, "agent %zu: one round twice", n->at);
	if ((s->sharing >> n->at & 1) == 0)
		sim_fail(s, "agent %zu: a round, and it shares nothing with anybody", n->at);
	x->over[n->at] = true;
	x->outcome[n->at] = r->outcome;
	x->place[n->at] = ++n->n_over;
	x->life[n->at] = n->life;
	note_fates(s, x, n->at, r);
	s->report->fed_rounds += r->outcome == 0;
	s->report->fed_failed += r->outcome != 0;
	if (r->outcome != 0)
		return;
	x->after[n->at] = kge_emb_copy(fed_shared_table(n->core->fed.part));
	x->weight[n->at] = fed_shared_table(n->core->fed.part) == n->core->work
				   ? n->core->fed.now->weighed.weight
				   : 1;
	if (took_copy(n)) { /* its own: no row of another is in it */
		check_copy(n);
		count_full(s, x);
		return;
	}
	if (x->trained[n->at] == NULL)
		sim_fail(s, "agent %zu: a round without training", n->at);
	else
		check_rows(s, x, n->at);
	count_full(s, x);
}

/* All whom it names took part, as it says: then what each sent it came, also under masks. */
static bool nobody_missing(const struct sim_round *x, size_t me)
{
	for (size_t b = 0; b < SIM_AGENTS_MAX; b++)
		if ((x->roster[me] >> b & 1) != 0 && x->fate[me][b] != FED_TOOK_PART)
			return false;
	return x->outcome[me] == 0;
}

/* What auditors rely on (audit/accounts.h) holds of all honest accounts. */
static void check_account(const struct node *n, const struct sim_round *x,
			  const struct store_round_member *m)
{
	bool all = nobody_missing(x, n->at);

	if (m->their_rows_in > m->rows_out || m->their_floats_in > m->floats_out ||
	    m->their_rows_out < m->rows_in || m->their_floats_out < m->floats_in ||
	    (all && (m->their_rows_out != m->rows_in || m->their_floats_out != m->floats_in)))
		sim_fail(
			n->sim,
			"agent %zu: honest accounts contradict each other: rows %llu out, %llu in; "
			"it says %llu out, %llu in",
			n->at, (unsigned long long)m->rows_out, (unsigned long long)m->rows_in,
			(unsigned long long)m->their_rows_out,
			(unsigned long long)m->their_rows_in);
	n->sim->report->accounts_exact += all;
}

static void note_account(const struct node *n, const uint8_t id[16],
			 const struct store_round_member *m)
{
	size_t who = node_by_key(n->sim, m->key);
	struct sim_round *x = round_of(n->sim, id);

	if (who >= n->sim->n || !m->has_account)
		return;
	x->held[n->at] |= UINT32_C(1) << who;
	check_account(n, x, m);
}

static void round_put(struct node *n, const struct store_round *r)
{
	round_over(n, r);
	for (uint32_t i = 0; i < r->n_participants; i++)
		note_account(n, r->id, &r->members[i]);
}

/* What an agent asks to be written. */
void sim_rounds_asked(struct node *n, const struct store_batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->at[i].kind == STORE_PUT_ROUND)
			round_put(n, &b->at[i].u.round);
		else if (b->at[i].kind == STORE_CHANGE_ROUND)
			note_account(n, b->at[i].u.change.id, &b->at[i].u.change.member);
	for (size_t i = 0; i < n->core->n_peers; i++)
		if (n->core->peers[i]->fed.account[0] != '\0')
			sim_fail(n->sim, "agent %zu: finds fault with an honest account: %s", n->at,
				 n->core->peers[i]->fed.account);
}

/* ---- accounts ---- */

/* One that sent what nobody can read has no link for a while (agent/core/conduct.c), and one that
 * has crashed has none until it is started: accounts wait for the next link. */
static bool have_a_link(const struct sim *s, size_t a, size_t b)
{
	struct agent_core *c = s->node[a].core;
	const struct peer *p = c != NULL ? peer_find(c, s->node[b].key) : NULL;

	return p != NULL && p->greeted;
}

/* Has it taken this account, to be written when what it is doing is over?  After a crash before
 * that, the account comes again. */
static bool has_in_hand(const struct node *n, const uint8_t id[16], const uint8_t of[32])
{
	const struct store_batch *b = &n->core->fed.changed;

	for (size_t i = 0; n->core->doing != DOING_NOTHING && i < b->n; i++)
		if (b->at[i].kind == STORE_CHANGE_ROUND &&
		    memcmp(b->at[i].u.change.id, id, 16) == 0 &&
		    memcmp(b->at[i].u.change.member.key, of, 32) == 0 &&
		    b->at[i].u.change.member.has_account)
			return true;
	return false;
}

/* Both were in it to its end, have it on disk, and it is neither the last one nor long ago: the
 * newest ROUNDS_PAST are heard whatever happens, one more until a restart or a proposal that came
 * to nothing. */
static bool must_sign(const struct sim *s, const struct sim_round *x, size_t a, size_t b)
{
	for (int k = 0; k < 2; k++) {
		size_t i = k == 0 ? a : b;
		uint32_t since = s->node[i].n_over - x->place[i];

		if (!x->over[i] || x->outcome[i] != 0 || !x->on_disk[i] || since == 0 ||
		    since >= ROUNDS_PAST)
			return false;
	}
	return took_part(x, a, b) && took_part(x, b, a) && have_a_link(s, a, b) &&
	       have_a_link(s, b, a);
}

/* What a link lost, or what came when the next round had begun, is there in the end. */
static void check_accounts(struct sim *s)
{
	for (size_t i = 0; i < s->n_rounds; i++)
		for (size_t a = 0; a < s->n; a++)
			for (size_t b = 0; b < s->n; b++) {
				const struct sim_round *x = s->round[i];

				if (a == b || !must_sign(s, x, a, b))
					continue;
				s->report->accounts++;
				s->report->accounts_restarted += x->life[a] != s->node[a].life ||
								 x->life[b] != s->node[b].life;
				if ((x->held[a] >> b & 1) == 0 &&
				    !has_in_hand(&s->node[a], x->id, s->node[b].key))
					sim_fail(s,
						 "agent %zu lacks the account of agent %zu, %u "
						 "rounds ago",
						 a, b, s->node[a].n_over - x->place[a]);
			}
}

/* ---- what must come back after a crash ---- */

void sim_rounds_on_disk(struct node *n, const struct store_batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->at[i].kind == STORE_PUT_ROUND)
			round_of(n->sim, b->at[i].u.round.id)->on_disk[n->at] = true;
		else if (b->at[i].kind == STORE_PUT_CHECKPOINT &&
			 b->at[i].u.checkpoint.info.kind == STORE_LATEST) {
			memcpy(n->latest, b->at[i].u.checkpoint.info.digest, 32);
			n->has_latest = true;
		}
}

/* After a crash an agent holds what its disk does. */
static void reload_accounts(struct node *n)
{
	struct sim *s = n->sim;

	for (size_t i = 0; i < s->n_rounds; i++) {
		struct sim_round *x = s->round[i];

		x->held[n->at] = 0;
		for (size_t b = 0; b < s->n; b++) {
			const struct store_round_member *m =
				disk_round_member(&n->disk, x->id, s->node[b].key);

			if (m != NULL && m->has_account)
				x->held[n->at] |= UINT32_C(1) << b;
		}
	}
}

/* Where its last look was one after which no other may come, a copy that is still to be chosen
 * about is not above what is kept. */
static void check_copy_is_counted(const struct node *n)
{
	const struct agent_core *c = n->core;
	uint32_t patience = c->config->rounds.patience;
	double score = 0;

	if (patience == 0 || c->worse < patience ||
	    c->fed.done % c->config->rounds.eval_every != 0 || c->fed.validation.due ||
	    n->sim->o.real_learning)
		return;
	(void)c->learner->evaluate(c->learner->ctx, c->fed.compare.alone, NULL, &score);
	if (score > c->best_score)
		sim_fail(n->sim, "agent %zu: rounds may end, and its copy is lost", n->at);
}

/* The copy that trains alone, and whether a choice of a weight to come needs it. */
static void check_beside(const struct node *n)
{
	const struct agent_core *c = n->core;
	const struct compare *o = &c->fed.compare;
	uint8_t is[32], disk[32] = { 0 };

	if (o->alone == NULL || !o->from_first || o->ahead > 0)
		return;
	kge_emb_digest(o->alone, is);
	if (n->disk.beside_tables != NULL)
		kge_emb_digest(n->disk.beside_tables, disk);
	if (memcmp(is, disk, 32) != 0)
		sim_fail(n->sim, "agent %zu: its copy is not the one on disk", n->at);
	if (rounds_weigh_copies(c) &&
	    (c->fed.done < c->config->federation.few.weight_from || o->choice.waits > 0))
		check_copy_is_counted(n);
}

static void check_idle(struct node *n)
{
	uint8_t is[32];

	if (!n->has_latest || n->core->doing != DOING_NOTHING || n->core->n_commits > 0)
		return;
	kge_emb_digest(n->core->work, is);
	if (memcmp(is, n->latest, 32) != 0)
		sim_fail(n->sim, "agent %zu: its tables are not those that the last round left",
			 n->at);
	check_beside(n);
}

/* ---- it ends ---- */

/* The table that travels, once local training is over. */
void sim_rounds_before_job(struct node *n)
{
	const struct fed_round *r = machine_of(n);
	struct sim_round *x;

	if (r == NULL || fed_round_want(r) != FED_EXCHANGE)
		return;
	x = round_of(n->sim, fed_round_id(r));
	if (x->trained[n->at] == NULL)
		x->trained[n->at] = kge_emb_copy(fed_shared_table(n->core->fed.part));
}

static uint64_t longest(const struct fed_settings *f)
{
	unsigned ways = f->secret_bits != 0 ? 4 : 2;

	return 2 * (uint64_t)f->join_ms + f->train_ms +
	       (uint64_t)fed_stages(f) * ways * f->stage_ms + WORK_SLACK_MS;
}

void sim_rounds_check_end(struct node *n)
{
	const struct fed_round *r = machine_of(n);
	struct sim *s = n->sim;

	if (r == NULL) {
		n->in_fed = false;
		return;
	}
	if (!n->in_fed || memcmp(n->fed_id, fed_round_id(r), 16) != 0) {
		n->in_fed = true;
		memcpy(n->fed_id, fed_round_id(r), 16);
		n->fed_since_ms = s->now_ms;
	}
	if (!sim_frozen(n) && s->now_ms - n->fed_since_ms > longest(fed_round_settings(r)))
		sim_fail(s, "agent %zu: in a round beyond its deadlines", n->at);
}

void sim_rounds_check_node(struct node *n)
{
	check_idle(n);
	sim_rounds_check_end(n);
}

static bool part_is_kept(const struct node *n)
{
	const struct store_meta *kept = disk_meta(&n->disk, AGENT_META_PART);
	const struct fed_part *part = n->core->fed.part;
	struct buf b = { 0 };
	bool same;

	if (part->method->save == NULL || kept->len == 0) /* as it begins: rounds had stopped */
		return true;
	part->method->save(part, &b); /* what goes before it is the core's own */
	same = kept->len >= b.len &&
	       (b.len == 0 || memcmp(kept->base + kept->len - b.len, b.base, b.len) == 0);
	buf_release(&b);
	return same;
}

void sim_rounds_check_restart(struct node *n)
{
	uint8_t is[32];

	reload_accounts(n);
	if (!n->has_latest)
		return;
	kge_emb_digest(n->core->work, is);
	if (memcmp(is, n->latest, 32) != 0)
		sim_fail(n->sim, "agent %zu: restarted without the tables of its last round",
			 n->at);
	if (disk_meta(&n->disk, AGENT_META_PART) == NULL || !part_is_kept(n))
		sim_fail(n->sim, "agent %zu: restarted without its part in the method", n->at);
}

/* ---- liveness ---- */

static uint64_t sim_rounds_wanted(const struct sim *s)
{
	return s->o.rounds != 0 ? s->o.rounds : 2;
}

/* Once there are no faults, rounds go on, with all. */
bool sim_rounds_goal(const struct sim *s)
{
	if (!s->o.fed || s->faults)
		return false;
	if (s->sharing == 0) /* none can come: a while to see that none does */
		return s->now_ms > s->faults_end_ms + NONE_MS;
	return s->full_since_heal >= sim_rounds_wanted(s);
}

/* Who may be in a round with whom, for whoever looks into a failure. */
void sim_rounds_tell(struct sim *s)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct agent_core *c = s->node[i].core;

		for (size_t k = 0; c != NULL && k < c->n_peers; k++) {
			const struct peer *p = c->peers[k];

			sim_log(s,
				"%zu and %zu: lower %d, linked %d, greeted %d, listed %d, aligned "
				"%d, says so %d, ready %d, proposes %d, differs %d, waits %lld ms, "
				"rests %lld, absent %lld, over %d, deaf %d: %s",
				i, node_by_key(s, p->info.key), memcmp(p->info.key, c->key, 32) < 0,
				p->linked, p->greeted, peer_listed(p), peer_aligned(p),
				p->fed.has_digest, rounds_ready(c, p), p->fed.proposes,
				p->fed.differs, (long long)p->not_before_ms - (long long)s->now_ms,
				(long long)p->rest_ms - (long long)s->now_ms,
				(long long)p->fed.absent_ms - (long long)s->now_ms, p->fed.over,
				p->fed.ack_pending, p->trouble);
		}
	}
}

void sim_rounds_check_quiet(struct sim *s)
{
	if (!sim_rounds_goal(s) && s->sharing != 0)
		sim_fail(s,
			 "rounds do not go on: %llu with all agents, and nothing happens any more",
			 (unsigned long long)s->full_since_heal);
	else
		check_accounts(s);
}

/* ---- planted faults ---- */

/* A row that `to` does not hold, in place of the first one. */
static bool put_foreign(struct node *n, const struct sim_round *x, size_t to, uint8_t *rows,
			size_t len)
{
	bool rel = is_relations(method_of(n->sim));
	const struct kge_emb *t = x->trained[n->at];

	for (uint32_t id = 0; id < rows_in(t, rel); id++) {
		size_t bytes = floats_in(t, rel) * sizeof(float);

		if (may_have(n->sim, n->at, to, n->item[rel][id]) || len < bytes)
			continue;
		memcpy(rows, row_in(t, rel, id), bytes);
		return true;
	}
	return false;
}

static bool put_bare(const struct node *n, const struct sim_round *x, uint8_t *rows, size_t len)
{
	bool rel = is_relations(method_of(n->sim));
	const struct kge_emb *t = x->trained[n->at];
	size_t floats = floats_in(t, rel);

	return len >= wire_bytes(n->sim, floats) &&
	       write_bare(n->sim, row_in(t, rel, 0), floats, n->sim->n, rows);
}

static bool put_wrong(uint8_t *rows, size_t len)
{
	float first;

	if (len < sizeof(first))
		return false;
	memcpy(&first, rows, sizeof(first));
	first += 0.01F;
	memcpy(rows, &first, sizeof(first));
	return true;
}

static bool forge_rows(struct node *n, const struct net_msg *m, size_t to)
{
	const struct sim_round *x = round_of(n->sim, m->session);
	struct err e = { 0 };
	uint64_t kind = net_get_uint(&m->body, "k", 0, 255, &e);
	struct net_bytes p = net_get_bin(&m->body, "p", 0, NET_MESSAGE_MAX, &e);
	uint8_t *rows = (uint8_t *)(uintptr_t)p.base;

	if (e.code != 0 || x->trained[n->at] == NULL)
		return false;
	if (n->sim->o.plant == SIM_WRONG_ANSWER)
		return kind == KIND_DOWN && put_wrong(rows, p.len);
	if (n->sim->o.plant == SIM_LEAKS_ROW)
		return kind == KIND_UP && put_foreign(n, x, to, rows, p.len);
	return kind == KIND_UP && put_bare(n, x, rows, p.len);
}

/* An answer that nobody can read. */
static bool spoil_joining(const struct node *n, const struct net_msg *m)
{
	struct err e = { 0 };
	uint64_t kind = net_get_uint(&m->body, "k", 0, 255, &e);
	struct net_bytes j = net_get_bin(&m->body, "j", 1, NET_MESSAGE_MAX, &e);

	if (e.code != 0 || kind != KIND_JOIN || n->at != 0)
		return false;
	((uint8_t *)(uintptr_t)j.base)[0] ^= 1;
	return true;
}

bool sim_rounds_forge(struct node *n, size_t to, const uint8_t *bytes, size_t len, struct buf *out)
{
	struct sim *s = n->sim;
	struct net_msg m;
	bool done = false;

	if (s->o.plant < SIM_WRONG_ANSWER || s->o.plant > SIM_SHUTS_OUT || s->planted)
		return false;
	buf_add(out, bytes, len); /* what is decoded points into it */
	if (net_msg_decode(&m, out->base, out->len, NULL) != 0)
		return false;
	if (m.type == NET_MSG_ROUND && s->o.plant == SIM_SHUTS_OUT)
		done = spoil_joining(n, &m);
	else if (m.type == NET_MSG_ROUND)
		s->planted = done = forge_rows(n, &m, to);
	net_msg_release(&m);
	return done;
}

#include "fed/local.h"

#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fed/draw.h"
#include "fed/local_net.h"
#include "net/bodies.h"

struct local_agent {
	struct fed_local_agent who;
	struct fed_setup setup;
	struct fed_peer *peers;
	struct fed_part *part;
	struct kge_trainer *trainer; /* made when first needed */
	struct fed_round *round;
	struct rng draws;
	bool dead, busy;
	uint64_t rounds; /* that it was in to the end: an agent's fed.done */
	uint64_t step, works, tick_ms;
	uint64_t line_ms; /* until when its uplink is taken */
};

struct fed_local {
	struct fed_local_config c;
	struct local_agent *agents;
	size_t n;
	struct fed_events events;
	struct rng rng;
	uint64_t now_ms;
	bool judges;
	struct err trouble; /* of local training, code 0: none; no round knows why */
};

/* ---- who shares what: from the names ---- */

struct shared {
	struct graph_vocab *names[2]; /* of all agents: entities, relations */
	uint32_t **local[2];	      /* [agent][name]: its id, or GRAPH_NONE */
	uint32_t *holders[2];	      /* [name] how many agents have it */
};

static const char *own_label(void *ctx, char tag, uint32_t id, size_t *len)
{
	const struct graph *g = ctx;

	return graph_vocab_name(tag == 'e' ? g->entities : g->relations, id, len);
}

static uint32_t count_of(const struct fed_local_agent *a, size_t kind)
{
	return graph_vocab_count(kind == 0 ? a->graph->entities : a->graph->relations);
}

static char tag_of(size_t kind)
{
	return kind == 0 ? 'e' : 'r';
}

static const char *label_of(const struct local_agent *s, size_t kind, uint32_t id, size_t *len)
{
	return s->setup.label(s->setup.label_ctx, tag_of(kind), id, len);
}

static void list_names(const struct fed_local *l, struct shared *x, size_t kind)
{
	x->names[kind] = graph_vocab_new();
	for (size_t a = 0; a < l->n; a++)
		for (uint32_t id = 0; id < count_of(&l->agents[a].who, kind); id++) {
			size_t len;
			const char *name = label_of(&l->agents[a], kind, id, &len);

			graph_vocab_add(x->names[kind], name, len);
		}
}

/* Of two things with one name the first has it, as in agent/core/names.h. */
static void find_local(const struct fed_local *l, struct shared *x, size_t kind, size_t a)
{
	uint32_t n = graph_vocab_count(x->names[kind]);
	uint32_t *local = x->local[kind][a] = mem_array(n, sizeof(*local));

	for (uint32_t k = 0; k < n; k++)
		local[k] = GRAPH_NONE;
	for (uint32_t id = 0; id < count_of(&l->agents[a].who, kind); id++) {
		size_t len;
		const char *name = label_of(&l->agents[a], kind, id, &len);
		uint32_t k = graph_vocab_find(x->names[kind], name, len);

		if (local[k] != GRAPH_NONE)
			continue;
		local[k] = id;
		x->holders[kind][k]++;
	}
}

static void shared_init(struct shared *x, const struct fed_local *l)
{
	for (size_t kind = 0; kind < 2; kind++) {
		list_names(l, x, kind);
		x->local[kind] = mem_array(l->n, sizeof(*x->local[kind]));
		x->holders[kind] = mem_array(graph_vocab_count(x->names[kind]), sizeof(uint32_t));
		for (size_t a = 0; a < l->n; a++)
			find_local(l, x, kind, a);
	}
}

static void shared_release(struct shared *x, size_t n)
{
	for (size_t kind = 0; kind < 2; kind++) {
		for (size_t a = 0; a < n; a++)
			free(x->local[kind][a]);
		free(x->local[kind]);
		free(x->holders[kind]);
		graph_vocab_free(x->names[kind]);
	}
}

/* The alignment of a with b: slots in the order in which names were first seen, which is the same
 * from both sides; the digest stands for the one that an intersection makes. */
static void align(const struct fed_local *l, const struct shared *x, size_t a, size_t b,
		  struct fed_peer *p)
{
	const struct local_agent *other = &l->agents[b];
	struct net_psi_slot *slots =
		mem_array((size_t)count_of(&l->agents[a].who, 0) + count_of(&l->agents[a].who, 1),
			  sizeof(*slots));
	crypto_generichash_state h;

	memcpy(p->key, other->setup.key, FED_KEY);
	memcpy(p->sign_public, other->setup.sign_public, FED_SIGN);
	crypto_generichash_init(&h, NULL, 0, NET_PSI_DIGEST);
	for (size_t kind = 0; kind < 2; kind++)
		for (uint32_t k = 0; k < graph_vocab_count(x->names[kind]); k++) {
			if (x->local[kind][a][k] == GRAPH_NONE ||
			    x->local[kind][b][k] == GRAPH_NONE)
				continue;
			slots[p->n_slots++] = (struct net_psi_slot){ .id = x->local[kind][a][k],
								     .tag = tag_of(kind) };
			crypto_generichash_update(&h, (const uint8_t *)&k, sizeof(k));
		}
	crypto_generichash_final(&h, p->digest, NET_PSI_DIGEST);
	p->slots = slots;
}

static void align_all(struct fed_local *l, const struct shared *x)
{
	for (size_t a = 0; a < l->n; a++) {
		struct local_agent *s = &l->agents[a];

		s->peers = mem_array(l->n - 1, sizeof(*s->peers));
		for (size_t b = 0; b < l->n; b++)
			if (b != a)
				align(l, x, a, b, &s->peers[s->setup.n_peers++]);
		s->setup.peers = s->peers;
	}
}

static void first_row(const struct fed_local *l, size_t a, char tag, uint32_t id, const char *name,
		      size_t len)
{
	struct kge_emb *own = l->agents[a].who.emb, *shared = fed_shared_table(l->agents[a].part);

	fed_first_row(own, tag, id, name, len, l->c.seed);
	if (shared != own)
		fed_first_row(shared, tag, id, name, len, l->c.seed);
}

static void start_row(struct fed_local *l, const struct shared *x, size_t kind, uint32_t k)
{
	size_t len;
	const char *name = graph_vocab_name(x->names[kind], k, &len);

	for (size_t a = 0; a < l->n; a++)
		if (x->local[kind][a][k] != GRAPH_NONE)
			first_row(l, a, tag_of(kind), x->local[kind][a][k], name, len);
}

static void start_equal(struct fed_local *l, const struct shared *x)
{
	const char *moved = l->agents[0].part->method->tags;

	for (size_t kind = 0; kind < 2; kind++) {
		if (l->c.start == FED_START_MOVED && strchr(moved, tag_of(kind)) == NULL)
			continue;
		for (uint32_t k = 0; k < graph_vocab_count(x->names[kind]); k++)
			if (x->holders[kind][k] > 1)
				start_row(l, x, kind, k);
	}
}

/* ---- life ---- */

static void draw_bytes(void *ctx, void *out, size_t n)
{
	uint8_t *at = out;

	for (size_t i = 0; i < n; i++)
		at[i] = (uint8_t)rng_u64(ctx);
}

static void agent_init(struct fed_local *l, size_t i, const struct fed_local_agent *who)
{
	struct local_agent *s = &l->agents[i];
	uint8_t seed[crypto_sign_SEEDBYTES];

	s->who = *who;
	s->draws = rng_stream(&l->rng, 1000 + i);
	draw_bytes(&s->draws, s->setup.key, FED_KEY);
	draw_bytes(&s->draws, seed, sizeof(seed));
	crypto_sign_seed_keypair(s->setup.sign_public, s->setup.sign_secret, seed);
	s->setup.label = who->label != NULL ? who->label : own_label;
	s->setup.label_ctx = who->label != NULL ? who->label_ctx : (void *)(uintptr_t)who->graph;
	s->setup.draw = (struct nn_draw){ draw_bytes, &s->draws };
	s->setup.min_holders = who->min_holders;
	s->setup.secret_only = who->secret_only;
	s->setup.bound = who->bound;
}

static int make_parts(struct fed_local *l, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < l->n; i++) {
		struct local_agent *s = &l->agents[i];

		rc = fed_part_new(&s->part, &l->c.settings, s->who.emb, rng_u64(&s->draws), e);
		s->setup.part = s->part;
	}
	return rc;
}

int fed_local_new(struct fed_local **out, const struct fed_local_config *c,
		  const struct fed_local_agent *agents, size_t n, struct err *e)
{
	struct fed_local *l;
	struct shared x = { 0 };
	int rc;

	*out = NULL;
	if (n < 2 || n > FED_MEMBERS_MAX)
		return err_set(e, ERR_USAGE, "a federation: 2 to %d agents, not %zu",
			       FED_MEMBERS_MAX, n);
	l = mem_array(1, sizeof(*l));
	l->c = *c;
	l->n = n;
	rng_seed(&l->rng, c->seed);
	l->agents = mem_array(n, sizeof(*l->agents));
	for (size_t i = 0; i < n; i++)
		agent_init(l, i, &agents[i]);
	rc = make_parts(l, e);
	if (rc != 0) {
		fed_local_free(l);
		return rc;
	}
	shared_init(&x, l);
	align_all(l, &x);
	if (c->start != FED_START_OWN)
		start_equal(l, &x);
	shared_release(&x, n);
	*out = l;
	return 0;
}

void fed_local_free(struct fed_local *l)
{
	if (l == NULL)
		return;
	for (size_t i = 0; i < l->n; i++) {
		struct local_agent *s = &l->agents[i];

		for (size_t k = 0; s->peers != NULL && k < l->n - 1; k++)
			free((void *)(uintptr_t)s->peers[k].slots);
		free(s->peers);
		fed_round_free(s->round);
		fed_part_free(s->part);
		kge_trainer_free(s->trainer);
	}
	fed_events_release(&l->events);
	free(l->agents);
	free(l);
}

/* ---- the network ---- */

static bool happens(struct fed_local *l, double chance)
{
	return chance > 0 && rng_double(&l->rng) < chance;
}

static void carry(struct fed_local *l, size_t from, size_t to, const struct buf *b)
{
	uint32_t spread = l->c.faults.delay_max_ms;
	uint64_t *line_ms = &l->agents[from].line_ms;

	*line_ms = *line_ms > l->now_ms ? *line_ms : l->now_ms;
	*line_ms += l->c.bytes_a_ms > 0 ? b->len / l->c.bytes_a_ms : 0;
	fed_events_add(&l->events,
		       (struct fed_event){ .at_ms = *line_ms +
						    (l->c.latency_ms > 0 ? l->c.latency_ms : 1) +
						    (spread > 0 ? rng_below(&l->rng, spread) : 0),
					   .kind = FED_EVENT_MESSAGE,
					   .to = to,
					   .from = from,
					   .bytes = mem_copy(b->base, b->len),
					   .n = b->len });
}

static void post(struct fed_local *l, size_t from, size_t to, struct buf *b)
{
	if (happens(l, l->c.faults.lose))
		return;
	if (l->c.tamper != NULL && !l->c.tamper(l->c.ctx, from, to, b))
		return;
	carry(l, from, to, b);
	while (happens(l, l->c.faults.repeat))
		carry(l, from, to, b);
}

static void pull_all(struct fed_local *l, size_t from)
{
	struct buf b = { 0 };

	for (size_t to = 0; to < l->n; to++)
		while (to != from &&
		       fed_round_pull(l->agents[from].round, l->agents[to].setup.key, &b)) {
			post(l, from, to, &b);
			buf_clear(&b);
		}
	buf_release(&b);
}

/* ---- one agent ---- */

static int train(struct fed_local *l, size_t i)
{
	struct local_agent *s = &l->agents[i];
	struct fed_training t = { .graph = s->who.graph,
				  .config = &s->who.train,
				  .epochs = l->c.epochs };
	int rc;

	if (l->c.epochs > 0 && s->trainer == NULL)
		s->trainer = kge_trainer_new(&s->who.train, s->who.graph, s->who.emb);
	if (l->c.epochs > 0)
		kge_trainer_seek(s->trainer, fed_epochs_before(s->part, l->c.epochs));
	t.trainer = s->trainer;
	rc = fed_train(s->part, &t);
	if (t.why.code != 0)
		l->trouble = t.why;
	if (rc == 0 && l->c.trained != NULL)
		l->c.trained(l->c.ctx, i, t.loss);
	return rc;
}

/* Grant what the machine wants.  Work is done at once and is over later. */
static void serve(struct fed_local *l, size_t i)
{
	struct local_agent *s = &l->agents[i];
	enum fed_want want = fed_round_want(s->round);
	uint64_t due;

	if (!s->busy && (want == FED_TRAIN || want == FED_EXCHANGE)) {
		int status = want == FED_TRAIN ? train(l, i) : fed_round_run(s->round);
		uint32_t ms =
			l->c.takes_ms != NULL ? l->c.takes_ms(l->c.ctx, i, s->works) : l->c.work_ms;

		s->busy = true;
		s->works++;
		fed_events_add(&l->events, (struct fed_event){ .at_ms = l->now_ms + ms,
							       .kind = FED_EVENT_WORKED,
							       .to = i,
							       .status = status });
	}
	pull_all(l, i);
	due = fed_round_deadline(s->round);
	if (due == UINT64_MAX || due == s->tick_ms)
		return;
	s->tick_ms = due;
	fed_events_add(&l->events,
		       (struct fed_event){ .at_ms = due, .kind = FED_EVENT_TICK, .to = i });
}

static void invited(struct fed_local *l, const struct fed_event *ev, const struct net_message *m)
{
	struct local_agent *s = &l->agents[ev->to];
	struct fed_proposal p;
	struct buf b = { 0 };
	struct err e = { 0 };

	if (fed_proposal_read(&p, m, &e) != 0)
		return; /* of a round that is not here any more */
	if (fed_round_join(&s->round, &s->setup, &p, l->now_ms, &e) == 0)
		return;
	fed_decline(p.id, e.text, &b);
	post(l, ev->to, ev->from, &b);
	buf_release(&b);
}

static void message_arrived(struct fed_local *l, const struct fed_event *ev)
{
	struct local_agent *s = &l->agents[ev->to];
	struct net_message m;

	net_message_decode(&m, ev->bytes, ev->n, NULL); /* m says what is wrong with it */
	if (s->round == NULL)
		invited(l, ev, &m);
	else
		fed_round_received(s->round, l->agents[ev->from].setup.key, &m, l->now_ms);
}

static void happen(struct fed_local *l, const struct fed_event *ev)
{
	struct local_agent *s = &l->agents[ev->to];

	if (ev->kind == FED_EVENT_MESSAGE) {
		message_arrived(l, ev);
		return;
	}
	if (s->round == NULL)
		return;
	if (ev->kind == FED_EVENT_LOST) {
		fed_round_lost(s->round, l->agents[ev->from].setup.key, l->now_ms);
	} else if (ev->kind == FED_EVENT_WORKED) {
		s->busy = false;
		fed_round_worked(s->round, ev->status, l->now_ms);
	} else {
		fed_round_tick(s->round, l->now_ms);
	}
}

/* The agent is gone, and all others notice. */
static void die(struct fed_local *l, size_t i)
{
	l->agents[i].dead = true;
	for (size_t to = 0; to < l->n; to++)
		if (to != i)
			fed_events_add(&l->events, (struct fed_event){ .at_ms = l->now_ms + 1,
								       .kind = FED_EVENT_LOST,
								       .to = to,
								       .from = i });
}

static void step(struct fed_local *l, const struct fed_event *ev)
{
	struct local_agent *s = &l->agents[ev->to];

	if (s->dead)
		return;
	if (l->c.alive != NULL && !l->c.alive(l->c.ctx, ev->to, s->step++)) {
		die(l, ev->to);
		return;
	}
	happen(l, ev);
	if (s->round != NULL)
		serve(l, ev->to);
}

static void begin(struct fed_local *l)
{
	for (size_t i = 0; i < l->n; i++) {
		struct local_agent *s = &l->agents[i];

		fed_round_free(s->round); /* also of the dead: they are in none of now */
		s->round = NULL;
		if (s->dead)
			continue;
		s->part->rounds = s->rounds;
		s->step = 0;
		s->works = 0;
		s->tick_ms = 0;
	}
}

/* ---- a share of the agents ---- */

static bool hosts_all(const struct fed_local *l, size_t i)
{
	const struct local_agent *a = &l->agents[i];
	const struct fed_settings *s = &a->part->settings;

	return s->topology == FED_HOSTED && memcmp(s->host, a->setup.key, FED_KEY) == 0;
}

/* Of the living that are not in it yet, the first in the order of this round; SIZE_MAX: none. */
static size_t next_drawn(const struct fed_local *l, uint64_t number, const bool *in)
{
	size_t first = SIZE_MAX;

	for (size_t i = 0; i < l->n; i++)
		if (!l->agents[i].dead && !in[i] &&
		    (first == SIZE_MAX ||
		     fed_draw_place(number, l->agents[i].setup.key) <
			     fed_draw_place(number, l->agents[first].setup.key)))
			first = i;
	return first;
}

/* Peers that are drawn come first, and the round knows of no others. */
static void meet_drawn(struct fed_local *l, size_t i, const bool *in)
{
	struct local_agent *s = &l->agents[i];

	s->setup.n_peers = 0;
	for (size_t k = 0; k < l->n - 1; k++) {
		struct fed_peer p = s->peers[k];

		if (!in[fed_local_who(l, p.key)])
			continue;
		s->peers[k] = s->peers[s->setup.n_peers];
		s->peers[s->setup.n_peers++] = p;
	}
}

/* The first of those drawn, who proposes the round. */
static size_t meet_for(struct fed_local *l, uint64_t number)
{
	const struct fed_settings *s = &l->c.settings;
	bool in[FED_MEMBERS_MAX] = { false };
	size_t living = 0, drawn, first = next_drawn(l, number, in);

	for (size_t i = 0; i < l->n; i++)
		living += !l->agents[i].dead;
	drawn = fed_draw_count(s->fraction, living, s->min_holders);
	for (size_t i = 0; i < drawn; i++)
		in[next_drawn(l, number, in)] = true;
	for (size_t i = 0; i < l->n; i++)
		in[i] = in[i] || hosts_all(l, i);
	for (size_t i = 0; i < l->n; i++)
		meet_drawn(l, i, in);
	return first;
}

/* A deadline of a round that is over for this agent, or of nobody: no time has to pass for it. */
static bool is_idle_tick(const struct fed_local *l, const struct fed_event *ev)
{
	const struct local_agent *s = &l->agents[ev->to];

	return ev->kind == FED_EVENT_TICK &&
	       (s->dead || s->round == NULL || fed_round_want(s->round) == FED_OVER);
}

void fed_local_judge(struct fed_local *l, bool judges)
{
	l->judges = judges;
}

/* Whoever is judged has another chance; who is away judges nobody. */
static void begin_judging(struct fed_local *l)
{
	for (size_t i = 0; i < l->n; i++) {
		struct local_agent *s = &l->agents[i];

		if (s->dead)
			continue;
		s->setup.judge = l->judges ? s->who.judge : NULL;
		s->setup.judge_ctx = s->who.judge_ctx;
		for (size_t k = 0; k + 1 < l->n && s->setup.judge != NULL; k++) {
			s->peers[k].doubted = s->peers[k].left_out;
			s->peers[k].left_out = false;
		}
	}
}

/* Whom this round has kept out. */
static void note_kept_out(struct local_agent *s, size_t n_peers)
{
	struct fed_report r = { 0 };

	if (s->round == NULL)
		return;
	fed_round_report(s->round, &r);
	for (unsigned m = 0; m < r.members; m++) {
		const struct fed_account *a = fed_round_account(s->round, m);

		for (size_t k = 0; k < n_peers; k++)
			if (memcmp(s->peers[k].key, a->key, FED_KEY) == 0)
				s->peers[k].kept_out = fed_kept_out_after(s->peers[k].kept_out, a);
	}
}

static void note_verdicts(struct fed_local *l)
{
	for (size_t i = 0; i < l->n; i++) {
		struct local_agent *s = &l->agents[i];
		struct fed_report r = { 0 };

		if (s->setup.judge != NULL && s->round != NULL)
			fed_round_report(s->round, &r);
		for (unsigned m = 0; m < r.members; m++) {
			const struct fed_account *a = fed_round_account(s->round, m);

			for (size_t k = 0; k + 1 < l->n; k++)
				if (memcmp(s->peers[k].key, a->key, FED_KEY) == 0)
					s->peers[k].left_out =
						a->in_turn ? a->judged_out : s->peers[k].doubted;
		}
	}
}

/* Those that were in it to its end have had one more.  0, or what ended it for the first other. */
static int count_own_rounds(struct fed_local *l, struct err *e)
{
	int first = 0;

	for (size_t i = 0; i < l->n; i++) {
		struct local_agent *s = &l->agents[i];
		int rc;

		if (s->dead || s->round == NULL)
			continue;
		rc = fed_round_status(s->round, first == 0 ? e : NULL);
		s->rounds += rc == 0;
		first = first == 0 ? rc : first;
	}
	return first;
}

int fed_local_round(struct fed_local *l, size_t proposer, struct err *e)
{
	uint64_t number = l->c.settings.number++;
	bool all = !(l->c.settings.fraction < 1);
	struct local_agent *p = &l->agents[all ? proposer : meet_for(l, number)];
	struct fed_settings s = p->part->settings;
	struct fed_event ev;
	int rc;

	s.number = number;
	proposer = (size_t)(p - l->agents);
	begin(l);
	begin_judging(l);
	for (size_t i = 0; i < l->n; i++) /* those that are dead are known to be */
		if (l->agents[i].dead && all)
			fed_events_add(&l->events, (struct fed_event){ .at_ms = l->now_ms,
								       .kind = FED_EVENT_LOST,
								       .to = proposer,
								       .from = i });
	rc = fed_round_propose(&p->round, &p->setup, &s, l->now_ms, e);
	if (rc != 0)
		return rc;
	serve(l, proposer);
	while (fed_events_take(&l->events, &ev)) {
		if (is_idle_tick(l, &ev))
			continue;
		l->now_ms = ev.at_ms > l->now_ms ? ev.at_ms : l->now_ms;
		step(l, &ev);
		free(ev.bytes);
	}
	note_verdicts(l);
	for (size_t i = 0; i < l->n; i++)
		if (!l->agents[i].dead)
			note_kept_out(&l->agents[i], l->n - 1);
	rc = count_own_rounds(l, e);
	if (rc != 0 && l->trouble.code != 0)
		return err_set(e, l->trouble.code, "%s", l->trouble.text);
	return rc;
}

/* ---- from one process to the next ---- */

struct saved_federation {
	uint64_t number, now_ms, agents;
	struct rng rng;
};

struct saved_agent {
	struct rng draws, part;
	uint64_t left_out;		    /* of its peers */
	uint32_t kept_out[FED_MEMBERS_MAX]; /* by agent */
	uint64_t n;			    /* bytes of the method's own, which follow */
};

void fed_local_save(const struct fed_local *l, struct buf *out)
{
	const struct saved_federation h = { l->c.settings.number, l->now_ms, l->n, l->rng };

	buf_add(out, &h, sizeof(h));
	for (size_t i = 0; i < l->n; i++) {
		const struct fed_part *p = l->agents[i].part;
		struct saved_agent a = { .draws = l->agents[i].draws, .part = p->rng };
		struct buf own = { 0 };

		for (size_t k = 0; k + 1 < l->n; k++) {
			const struct fed_peer *o = &l->agents[i].peers[k];
			size_t who = fed_local_who(l, o->key);

			a.left_out |= (uint64_t)o->left_out << who;
			a.kept_out[who] = o->kept_out;
		}
		if (p->method->save != NULL)
			p->method->save(p, &own);
		a.n = own.len;
		buf_add(out, &a, sizeof(a));
		buf_add(out, own.base, own.len);
		buf_release(&own);
	}
	for (size_t i = 0; i < l->n; i++)
		buf_add(out, &l->agents[i].rounds, sizeof(l->agents[i].rounds));
}

static int damaged_generator(struct err *e)
{
	return err_set(e, ERR_INPUT, "saved federation: a generator is damaged");
}

static int load_agent(struct fed_local *l, size_t which, const uint8_t **at, const uint8_t *end,
		      struct err *e)
{
	struct local_agent *s = &l->agents[which];
	const struct fed_method *m = s->part->method;
	struct saved_agent a;
	int rc = 0;

	if ((size_t)(end - *at) < sizeof(a))
		return err_set(e, ERR_INPUT, "saved federation: it ends early");
	memcpy(&a, *at, sizeof(a));
	*at += sizeof(a);
	if (a.n > (size_t)(end - *at) || (a.n > 0 && m->load == NULL))
		return err_set(e, ERR_INPUT, "saved federation: not of method %s", m->name);
	for (size_t k = 0; k + 1 < l->n; k++) {
		size_t who = fed_local_who(l, s->peers[k].key);

		s->peers[k].left_out = (a.left_out >> who & 1) != 0;
		s->peers[k].kept_out = a.kept_out[who];
	}
	if (!rng_load(&s->draws, &a.draws) || !rng_load(&s->part->rng, &a.part))
		return damaged_generator(e);
	if (m->load != NULL)
		rc = m->load(s->part, *at, a.n, e);
	*at += a.n;
	return rc;
}

/* What was saved before there was a count: as if each had been in all. */
static int load_own_rounds(struct fed_local *l, const uint8_t *at, const uint8_t *end,
			   struct err *e)
{
	const size_t one = sizeof(l->agents[0].rounds);

	if (at != end && (size_t)(end - at) != l->n * one)
		return err_set(e, ERR_INPUT, "saved federation: bytes are left over");
	for (size_t i = 0; i < l->n; i++)
		if (at == end)
			l->agents[i].rounds = l->c.settings.number;
		else
			memcpy(&l->agents[i].rounds, at + i * one, one);
	return 0;
}

int fed_local_load(struct fed_local *l, const uint8_t *bytes, size_t n, struct err *e)
{
	const uint8_t *at = bytes + sizeof(struct saved_federation), *end = bytes + n;
	struct saved_federation h;
	int rc = 0;

	if (n < sizeof(h))
		return err_set(e, ERR_INPUT, "saved federation: it ends early");
	memcpy(&h, bytes, sizeof(h));
	if (h.agents != l->n)
		return err_set(e, ERR_INPUT, "saved federation: of %llu agents, not %zu",
			       (unsigned long long)h.agents, l->n);
	if (!rng_load(&l->rng, &h.rng))
		return damaged_generator(e);
	l->c.settings.number = h.number;
	l->now_ms = h.now_ms;
	for (size_t i = 0; i < l->n && rc == 0; i++)
		rc = load_agent(l, i, &at, end, e);
	return rc == 0 ? load_own_rounds(l, at, end, e) : rc;
}

const struct fed_round *fed_local_last(const struct fed_local *l, size_t agent)
{
	return l->agents[agent].round;
}

struct fed_part *fed_local_part(const struct fed_local *l, size_t agent)
{
	return l->agents[agent].part;
}

const uint8_t *fed_local_key(const struct fed_local *l, size_t agent)
{
	return l->agents[agent].setup.key;
}

size_t fed_local_who(const struct fed_local *l, const uint8_t key[FED_KEY])
{
	for (size_t i = 0; i < l->n; i++)
		if (memcmp(l->agents[i].setup.key, key, FED_KEY) == 0)
			return i;
	return SIZE_MAX;
}

bool fed_local_alive(const struct fed_local *l, size_t agent)
{
	return !l->agents[agent].dead;
}

void fed_local_set_alive(struct fed_local *l, size_t agent, bool alive)
{
	struct local_agent *s = &l->agents[agent];

	s->dead = !alive;
	s->busy = false; /* what it was at when it went is lost */
}

uint64_t fed_local_now_ms(const struct fed_local *l)
{
	return l->now_ms;
}

void fed_local_wait_until(struct fed_local *l, uint64_t ms)
{
	if (ms > l->now_ms)
		l->now_ms = ms;
}

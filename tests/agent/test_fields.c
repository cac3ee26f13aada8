/* One bad field at a time, in what a partner proposes and accepts: PROPOSE and ACCEPT of a
 * session, the terms of its translation, HELLO.  Each is refused for its reason, and nothing comes
 * of it: no session goes on, no entry, no row, no label.
 *
 * The victim is agent 0, the partner that lies agent 2; only one of them proposes. */
#include "tests/test.h"

#include "dp/lattice.h"
#include "ppat/session.h"
#include "tests/agent/table.h"
#include "tests/edit.h"

enum { VICTIM, HONEST, HOSTILE };

/* Which message is spoiled. */
enum aim { AIM_PROPOSE, AIM_ACCEPT, AIM_TERMS, AIM_TERMS_ACCEPT, AIM_HELLO };

struct row {
	const char *what;
	struct edit edit;
	void (*terms)(struct ppat_config *c); /* AIM_TERMS: instead of an edit */
	void (*setup)(struct table *t);	      /* before anything starts */
	int code;
	const char *says;		    /* part of the reason that is given */
	void (*meanwhile)(struct table *t); /* just before the message arrives */
};

struct spoil {
	enum aim aim;
	const struct row *row;
	size_t spoiled;
	/* what the victim said after that */
	int code;
	char says[NET_REASON_MAX + 1];
	size_t refusals, moves; /* other messages of a session */
	uint64_t entries;	/* of its chain, when it was spoiled */
};

static struct agent_core *victim(struct table *t)
{
	return t->agent[VICTIM].core;
}

static bool is_aim(enum aim aim, const struct net_msg *m)
{
	switch (aim) {
	case AIM_PROPOSE:
		return m->type == NET_MSG_PROPOSE && net_has(&m->body, "t");
	case AIM_TERMS:
		return m->type == NET_MSG_PROPOSE && !net_has(&m->body, "t");
	case AIM_ACCEPT:
		return m->type == NET_MSG_ACCEPT && !net_has(&m->body, "c");
	case AIM_TERMS_ACCEPT:
		return m->type == NET_MSG_ACCEPT && net_has(&m->body, "c");
	default:
		return m->type == NET_MSG_HELLO;
	}
}

static void change_terms(const struct net_msg *m, struct buf *b, const struct row *row)
{
	struct err e = { 0 };
	struct net_bytes old = net_get_bin(&m->body, "c", 1, 4096, &e);
	struct edit put = { .key = "c", .how = EDIT_COPY };
	struct ppat_config c;
	struct buf terms = { 0 };

	assert_int_equal(ppat_config_decode(&c, old.base, old.len, &e), 0);
	row->terms(&c);
	ppat_config_encode(&c, &terms);
	put.bytes = terms.base;
	put.number = terms.len;
	edit_message(b, &put);
	buf_release(&terms);
}

static void spoil(struct spoil *s, struct table *t, const struct net_msg *m, struct buf *b)
{
	s->entries = table_peer(t, VICTIM, HOSTILE)->chain.sequence;
	s->spoiled++;
	if (s->row->meanwhile != NULL)
		s->row->meanwhile(t);
	if (s->row->terms != NULL)
		change_terms(m, b, s->row);
	else if (s->row->edit.key != NULL)
		edit_message(b, &s->row->edit);
}

/* What the victim says once it has got the bad message. */
static void listen(struct spoil *s, const struct net_msg *m)
{
	struct err e = { 0 };

	if (m->type == NET_MSG_REFUSE || m->type == NET_MSG_ABORT) {
		s->refusals++;
		s->code = (int)net_get_int(&m->body, "code", INT32_MIN, INT32_MAX, &e);
		net_get_text(&m->body, "why", s->says, sizeof(s->says), &e);
	} else if (m->type != NET_MSG_HELLO && m->type != NET_MSG_LEDGER_PULL &&
		   m->type != NET_MSG_SIGNAL && m->type != NET_MSG_MEMBERS &&
		   m->type != NET_MSG_BYE) {
		s->moves++;
	}
}

/* The other direction proposes nothing: a SIGNAL is what a proposal follows from. */
static bool kept_back(enum aim aim, size_t from, const struct net_msg *m)
{
	bool victim_hosts = aim == AIM_ACCEPT || aim == AIM_TERMS_ACCEPT;

	return m->type == NET_MSG_SIGNAL && from == (victim_hosts ? VICTIM : HOSTILE);
}

static void tamper(void *ctx, struct table *t, size_t from, size_t to, struct buf *b)
{
	struct spoil *s = ctx;
	struct net_msg m;

	assert_int_equal(net_msg_decode(&m, b->base, b->len, NULL), 0);
	if (from == VICTIM && to == HOSTILE && s->spoiled > 0)
		listen(s, &m);
	if (kept_back(s->aim, from, &m) || (s->spoiled > 0 && from == HOSTILE))
		buf_clear(b);
	else if (from == HOSTILE && to == VICTIM && is_aim(s->aim, &m))
		spoil(s, t, &m, b);
	net_msg_release(&m);
}

/* Until the bad message is there, and all that comes of it. */
static void play(struct table *t, struct spoil *s)
{
	table_init(t, 1);
	for (size_t i = 0; i < AGENTS; i++)
		t->agent[i].config.federation.translator = CONFIG_PROCRUSTES;
	if (s->row->setup != NULL)
		s->row->setup(t);
	t->tamper = tamper;
	t->ctx = s;
	table_start(t);
	table_link(t, VICTIM, HOSTILE, true);
	table_run(t, 4000, 100000);
	if (s->spoiled != 1)
		fail_msg("%s: the message came %zu times", s->row->what, s->spoiled);
}

static void refused(struct table *t, const struct spoil *s)
{
	const struct row *row = s->row;

	if (s->refusals != 1 || s->code != row->code || strstr(s->says, row->says) == NULL)
		fail_msg("%s: refused %zu times, with code %d and '%s'; not %d and '%s'", row->what,
			 s->refusals, s->code, s->says, row->code, row->says);
	if (s->moves != 0)
		fail_msg("%s: and it went on, with %zu messages", row->what, s->moves);
	if (table_peer(t, VICTIM, HOSTILE)->chain.sequence != s->entries)
		fail_msg("%s: there is an entry of it", row->what);
	if (session_first(victim(t)) != NULL)
		fail_msg("%s: the session goes on", row->what);
}

static void table_of_rows(enum aim aim, const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct spoil s = { .aim = aim, .row = &rows[i] };
		struct table t;

		play(&t, &s);
		refused(&t, &s);
		table_release(&t);
	}
}

#define ROWS(rows) rows, sizeof(rows) / sizeof((rows)[0])

/* ---- what an owner has set ---- */

static void noisy(struct table *t)
{
	t->agent[VICTIM].config.privacy.noisy_rows = true;
	t->agent[VICTIM].config.privacy.release_noise = 20;
}

static void both_noisy(struct table *t)
{
	for (size_t i = 0; i < AGENTS; i++) {
		t->agent[i].config.privacy.noisy_rows = true;
		t->agent[i].config.privacy.release_noise = 20;
	}
}

/* Its owner restarts it so. */
static void rows_stay_here(struct table *t)
{
	t->agent[VICTIM].config.federation.roles = CONFIG_HOST_ONLY;
}

static void spent(struct table *t)
{
	t->agent[VICTIM].config.privacy.epsilon_per_peer = 1e-4;
}

/* No agent starts so; with other partners it comes to that. */
static void noisy_and_spent(struct table *t)
{
	noisy(t);
	t->started = spent;
}

static void map(struct table *t)
{
	for (size_t i = 0; i < AGENTS; i++) {
		t->agent[i].config.federation.translator = CONFIG_MAP;
		t->agent[i].config.privacy.release_noise = 20;
	}
}

static void noisy_and_map(struct table *t)
{
	noisy(t);
	t->agent[HOSTILE].config.federation.translator = CONFIG_MAP;
	t->agent[HOSTILE].config.privacy.release_noise = 20;
}

static void noisy_and_ppat(struct table *t)
{
	noisy(t);
	t->agent[HOSTILE].config.federation.translator = CONFIG_PPAT;
}

static void ppat(struct table *t)
{
	for (size_t i = 0; i < AGENTS; i++)
		t->agent[i].config.federation.translator = CONFIG_PPAT;
}

static void common(struct table *t)
{
	for (size_t i = 0; i < AGENTS; i++) {
		t->agent[i].config.federation.after = CONFIG_AFTER_KEEP;
		t->agent[i].config.federation.frame = CONFIG_FRAME_COMMON;
	}
}

static void lengths_stay_here(struct table *t)
{
	t->agent[VICTIM].config.federation.unit_rows = true;
}

static void entities(struct table *t)
{
	t->agent[VICTIM].config.federation.share = CONFIG_SHARE_ENTITIES;
}

static void relations(struct table *t)
{
	t->agent[VICTIM].config.federation.share = CONFIG_SHARE_RELATIONS;
}

/* ---- PROPOSE and ACCEPT: what each side says of itself ---- */

#define SIDE_ROWS                                                                                  \
	{ .what = "no width of entity rows",                                                       \
	  .edit = NOT_THERE("ef"),                                                                 \
	  .code = ERR_PROTO,                                                                       \
	  .says = "ef" },                                                                          \
		{ .what = "entity rows of no floats",                                              \
		  .edit = NUMBER("ef", 0),                                                         \
		  .code = ERR_PROTO,                                                               \
		  .says = "ef" },                                                                  \
		{ .what = "entity rows too wide",                                                  \
		  .edit = NUMBER("ef", PPAT_DIM_MAX + 1),                                          \
		  .code = ERR_PROTO,                                                               \
		  .says = "ef" },                                                                  \
		{ .what = "no width of relation rows",                                             \
		  .edit = NOT_THERE("rf"),                                                         \
		  .code = ERR_PROTO,                                                               \
		  .says = "rf" },                                                                  \
		{ .what = "relation rows too wide",                                                \
		  .edit = NUMBER("rf", PPAT_DIM_MAX + 1),                                          \
		  .code = ERR_PROTO,                                                               \
		  .says = "rf" },                                                                  \
		{ .what = "no version of names",                                                   \
		  .edit = NOT_THERE("a"),                                                          \
		  .code = ERR_PROTO,                                                               \
		  .says = "'a'" },                                                                 \
		{ .what = "a version too short",                                                   \
		  .edit = LENGTH("a", 31),                                                         \
		  .code = ERR_PROTO,                                                               \
		  .says = "'a'" },                                                                 \
		{ .what = "no count of entries",                                                   \
		  .edit = NOT_THERE("q"),                                                          \
		  .code = ERR_PROTO,                                                               \
		  .says = "'q'" },                                                                 \
		{ .what = "too many entries",                                                      \
		  .edit = NUMBER("q", LEDGER_COUNT_MAX + 1),                                       \
		  .code = ERR_PROTO,                                                               \
		  .says = "'q'" },                                                                 \
		{ .what = "no head", .edit = NOT_THERE("h"), .code = ERR_PROTO, .says = "'h'" },   \
		{ .what = "a head too long",                                                       \
		  .edit = LENGTH("h", 33),                                                         \
		  .code = ERR_PROTO,                                                               \
		  .says = "'h'" },                                                                 \
		{ .what = "another head",                                                          \
		  .edit = FLIPPED("h"),                                                            \
		  .code = ERR_LEDGER,                                                              \
		  .says = "diverged" },                                                            \
		{ .what = "no count of what waits",                                                \
		  .edit = NOT_THERE("w"),                                                          \
		  .code = ERR_PROTO,                                                               \
		  .says = "'w'" },                                                                 \
		{ .what = "more waits than a chain holds",                                         \
		  .edit = NUMBER("w", LEDGER_TAIL_MAX + 1),                                        \
		  .code = ERR_PROTO,                                                               \
		  .says = "'w'" },                                                                 \
		{ .what = "not said whether neighbours",                                           \
		  .edit = NOT_THERE("vn"),                                                         \
		  .code = ERR_PROTO,                                                               \
		  .says = "vn" },                                                                  \
		{ .what = "neighbours by number",                                                  \
		  .edit = NUMBER("vn", 1),                                                         \
		  .code = ERR_PROTO,                                                               \
		  .says = "vn" },                                                                  \
		{ .what = "noise of nothing",                                                      \
		  .edit = REAL("rn", 0),                                                           \
		  .code = ERR_PROTO,                                                               \
		  .says = "rn" },                                                                  \
		{ .what = "noise that is no number",                                               \
		  .edit = REAL("rn", NAN),                                                         \
		  .code = ERR_PROTO,                                                               \
		  .says = "rn" },                                                                  \
		{ .what = "too much noise",                                                        \
		  .edit = REAL("rn", 2 * DP_MULTIPLIER_MAX),                                       \
		  .code = ERR_PROTO,                                                               \
		  .says = "rn" },                                                                  \
		{ .what = "a clip of nothing",                                                     \
		  .edit = REAL("rc", 0),                                                           \
		  .setup = both_noisy,                                                             \
		  .code = ERR_PROTO,                                                               \
		  .says = "rc" },                                                                  \
		{ .what = "too large a clip",                                                      \
		  .edit = REAL("rc", 101),                                                         \
		  .setup = both_noisy,                                                             \
		  .code = ERR_PROTO,                                                               \
		  .says = "rc" },                                                                  \
		{ .what = "a frame of a model without a name",                                     \
		  .edit = LENGTH("fm", 0),                                                         \
		  .setup = common,                                                                 \
		  .code = ERR_PROTO,                                                               \
		  .says = "fm" },                                                                  \
		{ .what = "a frame of a model by number",                                          \
		  .edit = NUMBER("fm", 1),                                                         \
		  .setup = common,                                                                 \
		  .code = ERR_PROTO,                                                               \
		  .says = "fm" },                                                                  \
		{ .what = "unit rows by number",                                                   \
		  .edit = NUMBER("ur", 1),                                                         \
		  .code = ERR_PROTO,                                                               \
		  .says = "ur" },                                                                  \
	{                                                                                          \
		.what = "noise without a clip", .edit = REAL("rn", 1), .code = ERR_PROTO,          \
		.says = "rc"                                                                       \
	}

static void test_proposal(void **state)
{
	static const struct row rows[] = {
		SIDE_ROWS,
		{ .what = "of one whose rows stay where they are",
		  .code = ERR_REFUSED,
		  .says = "federation.roles",
		  .meanwhile = rows_stay_here },
		{ .what = "no translator", .edit = TEXT("t"), .code = ERR_PROTO, .says = "'t'" },
		{ .what = "a translator that is none",
		  .edit = NUMBER("t", AGENT_ALIGN + 1),
		  .code = ERR_PROTO,
		  .says = "'t'" },
		{ .what = "of rounds, in pairs",
		  .edit = NUMBER("t", AGENT_ALIGN),
		  .code = ERR_REFUSED,
		  .says = "federation.mode" },
		{ .what = "no digest", .edit = NOT_THERE("d"), .code = ERR_PROTO, .says = "'d'" },
		{ .what = "a digest too long",
		  .edit = LENGTH("d", 33),
		  .code = ERR_PROTO,
		  .says = "'d'" },
		{ .what = "labels of one who sends noisy rows alone",
		  .setup = noisy_and_ppat,
		  .code = ERR_REFUSED,
		  .says = "noisy_rows" },
		{ .what = "a map of one who sends noisy rows alone",
		  .setup = noisy_and_map,
		  .code = ERR_REFUSED,
		  .says = "noisy_rows" },
		{ .what = "noisy rows of one who has none left",
		  .setup = noisy_and_spent,
		  .code = ERR_BUDGET,
		  .says = "no release of our rows" },
	};

	(void)state;
	table_of_rows(AIM_PROPOSE, ROWS(rows));
}

static void test_acceptance(void **state)
{
	static const struct row rows[] = {
		SIDE_ROWS,
		{ .what = "not said whether to intersect",
		  .edit = NOT_THERE("p"),
		  .code = ERR_PROTO,
		  .says = "'p'" },
		{ .what = "intersect by number",
		  .edit = NUMBER("p", 1),
		  .code = ERR_PROTO,
		  .says = "'p'" },
		{ .what = "no serial", .edit = NOT_THERE("s"), .code = ERR_PROTO, .says = "'s'" },
		{ .what = "a serial of nothing",
		  .edit = NUMBER("s", 0),
		  .code = ERR_PROTO,
		  .says = "'s'" },
	};

	(void)state;
	table_of_rows(AIM_ACCEPT, ROWS(rows));
}

/* ---- terms ---- */

#define SET(name, change)                                                                          \
	static void name(struct ppat_config *c)                                                    \
	{                                                                                          \
		change;                                                                            \
	}

/* What the two agreed on, and what only this side knows of itself. */
SET(other_translator, (c->translator = PPAT_MAP, c->multiplier = 20, c->scale = PPAT_SCALE_UNIT,
		       c->short_rows = false))
SET(other_slots, c->slots++)
SET(other_client_dim, c->client_dim++)
SET(other_host_dim, c->host_dim++)
SET(what_both, c->what = PPAT_BOTH)
SET(what_entities, c->what = PPAT_ENTITIES)
SET(no_noise, c->multiplier = 0)
SET(half_the_noise, c->multiplier = 10)
SET(other_clip, c->clip = 5)
SET(some_noise, (c->multiplier = 20, c->short_rows = false))
SET(some_neighbours, c->max_virtual = 4)
SET(lengths, c->scale = PPAT_SCALE_NONE)
SET(lengths_by_a_factor, c->scale = PPAT_SCALE_RMS)

/* What no terms may say. */
SET(bad_translator, c->translator = 3)
SET(bad_student, c->student = 2)
SET(bad_mechanism, c->mechanism = 2)
SET(bad_mode, c->mode = 2)
SET(bad_loss, c->loss = 2)
SET(no_what, c->what = 0)
SET(bad_what, c->what = 4)
SET(bad_scale, c->scale = PPAT_SCALES)
SET(bad_center, (c->center = 2, c->what = PPAT_ENTITIES))
SET(no_client_dim, c->client_dim = 0)
SET(big_client_dim, c->client_dim = PPAT_DIM_MAX + 1)
SET(no_host_dim, c->host_dim = 0)
SET(big_host_dim, c->host_dim = PPAT_DIM_MAX + 1)
SET(no_slots, c->slots = 0)
SET(many_slots, c->slots = PPAT_SLOTS_MAX + 1)
SET(many_floats, (c->slots = PPAT_SLOTS_MAX, c->client_dim = c->host_dim = PPAT_DIM_MAX))
SET(no_teachers, c->teachers = 0)
SET(many_teachers, c->teachers = PPAT_TEACHERS_MAX + 1)
SET(no_teacher_hidden, c->teacher_hidden = 0)
SET(big_teacher_hidden, c->teacher_hidden = PPAT_HIDDEN_MAX + 1)
SET(no_student_hidden, c->student_hidden = 0)
SET(big_student_hidden, c->student_hidden = PPAT_HIDDEN_MAX + 1)
SET(many_weights, (c->teachers = PPAT_TEACHERS_MAX, c->teacher_hidden = PPAT_HIDDEN_MAX,
		   c->host_dim = PPAT_DIM_MAX))
SET(no_batch, c->batch = 0)
SET(big_batch, (c->batch = PPAT_BATCH_MAX + 1, c->reserve_labels = 2 * PPAT_BATCH_MAX))
SET(small_pool, (c->mode = PPAT_MODE_BUDGET, c->pool = c->batch))
SET(big_pool, (c->mode = PPAT_MODE_BUDGET, c->pool = PPAT_CHUNK_MAX))
SET(many_steps, c->steps = PPAT_STEPS_MAX + 1)
SET(small_reserve, c->reserve_labels = c->batch - 1)
SET(many_neighbours, c->max_virtual = PPAT_VIRTUAL_MAX + 1)
SET(no_teacher_steps, (c->mode = PPAT_MODE_BUDGET, c->teacher_steps = 0))
SET(many_teacher_steps, (c->mode = PPAT_MODE_BUDGET, c->teacher_steps = PPAT_TEACHER_STEPS_MAX + 1))
SET(no_student_steps, (c->mode = PPAT_MODE_BUDGET, c->student_steps = 0))
SET(many_student_steps, (c->mode = PPAT_MODE_BUDGET, c->student_steps = PPAT_STUDENT_STEPS_MAX + 1))
SET(no_generator_steps, (c->mode = PPAT_MODE_BUDGET, c->generator_steps = 0))
SET(many_generator_steps,
    (c->mode = PPAT_MODE_BUDGET, c->generator_steps = PPAT_GENERATOR_STEPS_MAX + 1))
SET(no_vote_noise, c->noise = 0)
SET(nan_vote_noise, c->noise = NAN)
SET(little_vote_noise, c->noise = 21)
SET(little_gauss, (c->mechanism = PPAT_GAUSSIAN, c->noise = 1e-4))
SET(much_gauss, (c->mechanism = PPAT_GAUSSIAN, c->noise = 1e10))
SET(bad_lr, c->lr = 11)
SET(nan_lr, c->lr = NAN)
SET(bad_momentum, c->momentum = 1)
SET(bad_beta, c->beta = 0.6)
SET(no_share, c->aligned_share = 0)
SET(big_share, c->aligned_share = 1.5)
SET(no_clip, c->clip = 0)
SET(big_clip, c->clip = 101)
SET(nan_clip, c->clip = NAN)
SET(small_multiplier, c->multiplier = DP_MULTIPLIER_MIN / 2)
SET(big_multiplier, c->multiplier = 2 * DP_MULTIPLIER_MAX)
SET(nan_multiplier, c->multiplier = NAN)
SET(big_product, (c->multiplier = DP_MULTIPLIER_MAX, c->clip = 11))

/* Hours of a client's work between two batches of labels. */
SET(long_work,
    (c->mode = PPAT_MODE_BUDGET, c->pool = 0, c->batch = c->reserve_labels = PPAT_BATCH_MAX,
     c->student_hidden = PPAT_HIDDEN_MAX, c->student_steps = PPAT_STUDENT_STEPS_MAX))

/* Combinations. */
SET(centred_noise, (c->center = 1, c->what = PPAT_ENTITIES))
SET(rms_noise, c->scale = PPAT_SCALE_RMS)
SET(neighbours_beside_noise, c->max_virtual = 4)
SET(bare_map, c->multiplier = 0)
SET(paper_pool, c->pool = c->batch + 1)
SET(paper_teacher_steps, c->teacher_steps = 2)
SET(paper_student_steps, c->student_steps = 2)
SET(paper_generator_steps, c->generator_steps = 2)
SET(labels_of_procrustes, c->max_labels = 4)
SET(centred_relations, (c->center = 1, c->what = PPAT_BOTH))
SET(centred_neighbours, (c->center = 1, c->what = PPAT_ENTITIES, c->max_virtual = 4))
SET(ppat_centred, c->center = 1)
SET(short_rows, c->short_rows = true)
SET(ppat_rms, c->scale = PPAT_SCALE_RMS)
SET(ppat_released, c->multiplier = 20)
SET(unrotated, c->unrotated = true)
SET(rotated, c->unrotated = false)
SET(unrotated_unit, c->scale = PPAT_SCALE_UNIT)

#define FRAME_ROWS                                                                                 \
	{ .what = "no frame of unrotated rows",                                                    \
	  .edit = NOT_THERE("fn"),                                                                 \
	  .setup = common,                                                                         \
	  .code = ERR_PROTO,                                                                       \
	  .says = "'fn'" },                                                                        \
		{ .what = "a frame's name too short",                                              \
		  .edit = LENGTH("fn", 31),                                                        \
		  .setup = common,                                                                 \
		  .code = ERR_PROTO,                                                               \
		  .says = "'fn'" },                                                                \
		{ .what = "a frame that nobody joined",                                            \
		  .edit = NUMBER("fj", 0),                                                         \
		  .setup = common,                                                                 \
		  .code = ERR_PROTO,                                                               \
		  .says = "'fj'" },                                                                \
		{ .what = "a frame that too many joined",                                          \
		  .edit = NUMBER("fj", NET_JOINED_MAX + 1),                                        \
		  .setup = common,                                                                 \
		  .code = ERR_PROTO,                                                               \
		  .says = "'fj'" },                                                                \
	{                                                                                          \
		.what = "a frame of no age", .edit = NOT_THERE("fa"), .setup = common,             \
		.code = ERR_PROTO, .says = "'fa'"                                                  \
	}

static void test_terms(void **state)
{
#define T(name, when, number, text)                                                                \
	{                                                                                          \
		.what = #name, .terms = name, .setup = when, .code = number, .says = text          \
	}
#define BAD(name, says) T(name, NULL, ERR_USAGE, says)
	static const struct row rows[] = {
		T(other_translator, NULL, ERR_PROTO, "another translator than was proposed"),
		T(other_slots, NULL, ERR_PROTO, "other tables than ours"),
		T(other_client_dim, NULL, ERR_PROTO, "other tables than ours"),
		T(other_host_dim, NULL, ERR_PROTO, "other tables than ours"),
		T(what_both, entities, ERR_REFUSED, "rows that we do not share"),
		T(what_both, relations, ERR_REFUSED, "rows that we do not share"),
		T(what_entities, relations, ERR_REFUSED, "rows that we do not share"),
		T(no_noise, noisy, ERR_REFUSED, "another noise on our rows"),
		T(half_the_noise, noisy, ERR_REFUSED, "another noise on our rows"),
		T(other_clip, noisy, ERR_REFUSED, "another noise on our rows"),
		T(some_noise, NULL, ERR_REFUSED, "another noise on our rows"),
		T(some_neighbours, NULL, ERR_REFUSED, "virtual neighbours"),
		T(lengths, lengths_stay_here, ERR_REFUSED, "federation.unit_rows"),
		T(lengths_by_a_factor, lengths_stay_here, ERR_REFUSED, "federation.unit_rows"),
		T(lengths, ppat, ERR_REFUSED, "length 1"),
		T(lengths, map, ERR_REFUSED, "length 1"),
		BAD(bad_translator, "translator"),
		BAD(bad_student, "student"),
		BAD(bad_mechanism, "mechanism"),
		BAD(bad_mode, "mode"),
		BAD(bad_loss, "loss"),
		BAD(no_what, "what"),
		BAD(bad_what, "what"),
		BAD(bad_scale, "scale"),
		BAD(bad_center, "center is 2"),
		BAD(no_client_dim, "client_dim"),
		BAD(big_client_dim, "client_dim"),
		BAD(no_host_dim, "host_dim"),
		BAD(big_host_dim, "host_dim"),
		BAD(no_slots, "slots"),
		BAD(many_slots, "slots"),
		BAD(many_floats, "slots * dim"),
		BAD(no_teachers, "teachers"),
		BAD(many_teachers, "teachers"),
		BAD(no_teacher_hidden, "teacher_hidden"),
		BAD(big_teacher_hidden, "teacher_hidden"),
		BAD(no_student_hidden, "student_hidden"),
		BAD(big_student_hidden, "student_hidden"),
		BAD(many_weights, "teachers * teacher_hidden"),
		BAD(no_batch, "batch"),
		BAD(big_batch, "batch"),
		BAD(small_pool, "pool"),
		BAD(big_pool, "pool"),
		BAD(many_steps, "steps"),
		BAD(small_reserve, "reserve_labels"),
		BAD(many_neighbours, "max_virtual"),
		BAD(no_teacher_steps, "teacher_steps"),
		BAD(many_teacher_steps, "teacher_steps"),
		BAD(no_student_steps, "student_steps"),
		BAD(many_student_steps, "student_steps"),
		BAD(no_generator_steps, "generator_steps"),
		BAD(many_generator_steps, "generator_steps"),
		T(long_work, ppat, ERR_USAGE, "ppat.student_steps"),
		BAD(no_vote_noise, "noise"),
		BAD(nan_vote_noise, "noise"),
		BAD(little_vote_noise, "noise"),
		BAD(little_gauss, "noise"),
		BAD(much_gauss, "noise"),
		BAD(bad_lr, "lr"),
		BAD(nan_lr, "lr"),
		BAD(bad_momentum, "momentum"),
		BAD(bad_beta, "beta"),
		BAD(no_share, "share"),
		BAD(big_share, "share"),
		BAD(no_clip, "clip"),
		BAD(big_clip, "clip"),
		BAD(nan_clip, "clip"),
		BAD(small_multiplier, "multiplier"),
		BAD(big_multiplier, "multiplier"),
		BAD(nan_multiplier, "multiplier"),
		T(big_product, noisy, ERR_USAGE, "their product"),
		T(centred_noise, noisy, ERR_USAGE, "a release is about one"),
		T(rms_noise, noisy, ERR_USAGE, "a release is about one"),
		T(neighbours_beside_noise, noisy, ERR_USAGE, "without the noise"),
		T(bare_map, map, ERR_USAGE, "a map is released with noise"),
		T(centred_noise, map, ERR_USAGE, "a release is about one"),
		BAD(paper_pool, "mode is paper"),
		BAD(paper_teacher_steps, "mode is paper"),
		BAD(paper_student_steps, "mode is paper"),
		BAD(paper_generator_steps, "mode is paper"),
		BAD(labels_of_procrustes, "only PPAT draws labels"),
		BAD(centred_relations, "entity rows alone"),
		BAD(centred_neighbours, "entity rows alone"),
		T(short_rows, ppat, ERR_USAGE, "short_rows is for procrustes"),
		T(short_rows, map, ERR_USAGE, "short_rows is for procrustes"),
		T(short_rows, noisy, ERR_USAGE, "short_rows is for procrustes without noise"),
		T(ppat_centred, ppat, ERR_USAGE, "reach every teacher"),
		T(ppat_rms, ppat, ERR_USAGE, "reach every teacher"),
		T(ppat_released, ppat, ERR_USAGE, "PPAT sends labels"),
		T(unrotated, NULL, ERR_REFUSED, "federation.frame"),
		T(unrotated, noisy, ERR_USAGE, "procrustes without noise"),
		T(unrotated_unit, common, ERR_USAGE, "rows as they are"),
		T(rotated, common, ERR_PROTO, "rows that are rotated"),
		FRAME_ROWS,
		{ .what = "of one whose rows stay where they are",
		  .code = ERR_REFUSED,
		  .says = "federation.roles",
		  .meanwhile = rows_stay_here },
		{ .what = "empty terms", .edit = LENGTH("c", 0), .code = ERR_PROTO, .says = "'c'" },
		{ .what = "terms of five bytes",
		  .edit = COPIED("c", "\3\0\0\0x"),
		  .code = ERR_PROTO,
		  .says = "5 bytes" },
		{ .what = "three bytes of terms",
		  .edit = LENGTH("c", 3),
		  .code = ERR_PROTO,
		  .says = "3 bytes" },
		{ .what = "terms of another version",
		  .edit = COPIED("c", "\13\0\0\0"),
		  .code = ERR_VERSION,
		  .says = "version" },
		{ .what = "not said how many entries come first",
		  .edit = NOT_THERE("e"),
		  .code = ERR_PROTO,
		  .says = "'e'" },
		{ .what = "three entries come first",
		  .edit = NUMBER("e", 3),
		  .code = ERR_PROTO,
		  .says = "'e'" },
	};

	(void)state;
	table_of_rows(AIM_TERMS, ROWS(rows));
}

static void test_terms_accepted(void **state)
{
	static const struct row rows[] = {
		{ .what = "other terms than ours",
		  .edit = FLIPPED("c"),
		  .code = ERR_PROTO,
		  .says = "other terms were accepted" },
		{ .what = "no terms", .edit = LENGTH("c", 31), .code = ERR_PROTO, .says = "'c'" },
		FRAME_ROWS,
		{ .what = "other terms, before labels",
		  .edit = FLIPPED("c"),
		  .setup = ppat,
		  .code = ERR_PROTO,
		  .says = "other terms were accepted" },
		{ .what = "other terms, before a map",
		  .edit = FLIPPED("c"),
		  .setup = map,
		  .code = ERR_PROTO,
		  .says = "other terms were accepted" },
	};

	(void)state;
	table_of_rows(AIM_TERMS_ACCEPT, ROWS(rows));
}

/* With nothing spoiled each of these goes through: or the rows above would show nothing. */
static void test_nothing_spoiled(void **state)
{
	void (*const setups[])(struct table * t) = {
		NULL, noisy, map, ppat, entities, relations, lengths_stay_here
	};

	(void)state;
	for (size_t i = 0; i < sizeof(setups) / sizeof(setups[0]); i++) {
		struct table t;

		table_init(&t, 1);
		for (size_t k = 0; k < AGENTS; k++)
			t.agent[k].config.federation.translator = CONFIG_PROCRUSTES;
		if (setups[i] != NULL)
			setups[i](&t);
		table_start(&t);
		table_link(&t, VICTIM, HOSTILE, true);
		table_run(&t, 60000, 100000);
		assert_true(victim(&t)->sessions >= 2);
		table_release(&t);
	}
}

/* ---- HELLO ---- */

static void rounds(struct table *t)
{
	for (size_t i = 0; i < AGENTS; i++)
		t->agent[i].config.federation.mode = CONFIG_ROUNDS;
}

/* A HELLO on its way is kept instead of sent. */
static void take_hello(void *ctx, struct table *t, size_t from, size_t to, struct buf *b)
{
	(void)t;
	if (from == HOSTILE && to == VICTIM)
		buf_add(ctx, b->base, b->len);
	buf_clear(b);
}

/* What a HELLO may change of a peer and of the count of our proposals. */
struct heard {
	uint8_t version[32];
	struct peer_rounds fed;
	struct peer_handback back;
	enum config_roles roles;
	uint64_t serial;
	char name[sizeof(((struct store_peer *)0)->name)];
	bool queued, greeted, other_mode;
};

static struct heard heard(struct table *t)
{
	struct peer *p = table_peer(t, VICTIM, HOSTILE);
	struct heard h;

	memset(&h, 0, sizeof(h)); /* it is compared as bytes */
	memcpy(h.version, p->version_theirs, sizeof(h.version));
	h.fed = p->fed;
	h.back = p->back;
	h.roles = p->roles;
	h.serial = victim(t)->fed.serial;
	memcpy(h.name, p->info.name, sizeof(h.name));
	h.queued = p->queued;
	h.greeted = p->greeted;
	h.other_mode = p->other_mode;
	return h;
}

/* One field of a HELLO, everything else in it unlike what was said before: none of it is taken. */
static void hello_row(const struct row *row, bool first)
{
	struct spoil s = { .aim = AIM_HELLO, .row = row };
	struct buf b = { 0 };
	struct heard before, after;
	struct table t;
	struct peer *p;

	table_init(&t, 1);
	if (row->setup != NULL)
		row->setup(&t);
	table_start(&t);
	table_link(&t, VICTIM, HOSTILE, true);
	for (size_t i = 0; i < 6; i++)
		table_step(&t);
	if (first) /* nothing of its was heard on this link so far */
		table_peer(&t, VICTIM, HOSTILE)->greeted = false;
	p = table_peer(&t, HOSTILE, VICTIM);
	p->version[0] ^= 1;
	t.agent[HOSTILE].core->served_serial += 5;
	t.agent[HOSTILE].core->signal.serial += 5;
	t.agent[HOSTILE].core->fed.number += 7;
	p->fed.joined += 9;
	t.tamper = take_hello;
	t.ctx = &b;
	peer_say_hello(t.agent[HOSTILE].core, p);
	t.tamper = NULL;
	spoil(&s, &t, NULL, &b);
	before = heard(&t);
	table_deliver(&t, HOSTILE, VICTIM, &b);
	after = heard(&t);
	p = table_peer(&t, VICTIM, HOSTILE);
	if (strstr(p->trouble, row->says) == NULL && strstr(p->conduct.why, row->says) == NULL)
		fail_msg("%s: the owner is told '%s' and '%s', not '%s'", row->what, p->trouble,
			 p->conduct.why, row->says);
	if (memcmp(&before, &after, sizeof(before)) != 0)
		fail_msg("%s: some of it was taken", row->what);
	buf_release(&b);
	table_release(&t);
}

static void test_hello(void **state)
{
	static const struct row rows[] = {
#define PAIRS_AND_ROUNDS(when)                                                                     \
	{ .what = "no protocol", .edit = NOT_THERE("v"), .setup = when, .says = "'v'" },           \
		{ .what = "another protocol",                                                      \
		  .edit = NUMBER("v", AGENT_PROTOCOL + 1),                                         \
		  .setup = when,                                                                   \
		  .says = "speaks protocol" },                                                     \
		{ .what = "no name", .edit = NOT_THERE("n"), .setup = when, .says = "'n'" },       \
		{ .what = "a name that is none",                                                   \
		  .edit = NUMBER("n", 1),                                                          \
		  .setup = when,                                                                   \
		  .says = "'n'" },                                                                 \
		{ .what = "no key to sign with",                                                   \
		  .edit = NOT_THERE("g"),                                                          \
		  .setup = when,                                                                   \
		  .says = "'g'" },                                                                 \
		{ .what = "a key too short",                                                       \
		  .edit = LENGTH("g", 31),                                                         \
		  .setup = when,                                                                   \
		  .says = "'g'" },                                                                 \
		{ .what = "no proof of the key",                                                   \
		  .edit = NOT_THERE("gs"),                                                         \
		  .setup = when,                                                                   \
		  .says = "'gs'" },                                                                \
		{ .what = "a proof too short",                                                     \
		  .edit = LENGTH("gs", 63),                                                        \
		  .setup = when,                                                                   \
		  .says = "'gs'" },                                                                \
		{ .what = "another key",                                                           \
		  .edit = FLIPPED("g"),                                                            \
		  .setup = when,                                                                   \
		  .says = "signs with another" },                                                  \
		{ .what = "no serial", .edit = NOT_THERE("s"), .setup = when, .says = "'s'" },     \
		{ .what = "a serial that is none",                                                 \
		  .edit = TEXT("s"),                                                               \
		  .setup = when,                                                                   \
		  .says = "'s'" },                                                                 \
		{ .what = "no version of names",                                                   \
		  .edit = NOT_THERE("a"),                                                          \
		  .setup = when,                                                                   \
		  .says = "'a'" },                                                                 \
		{ .what = "a version too long",                                                    \
		  .edit = LENGTH("a", 33),                                                         \
		  .setup = when,                                                                   \
		  .says = "'a'" },                                                                 \
		{ .what = "a clock that is none",                                                  \
		  .edit = TEXT("z"),                                                               \
		  .setup = when,                                                                   \
		  .says = "'z'" },                                                                 \
		{ .what = "a count of entries that is none",                                       \
		  .edit = TEXT("lc"),                                                              \
		  .setup = when,                                                                   \
		  .says = "'lc'" },                                                                \
		{ .what = "roles that are none",                                                   \
		  .edit = NUMBER("ro", CONFIG_CLIENT_ONLY + 1),                                    \
		  .setup = when,                                                                   \
		  .says = "'ro'" }
		PAIRS_AND_ROUNDS(NULL),
		PAIRS_AND_ROUNDS(rounds),
		{ .what = "a mode that is none",
		  .edit = NUMBER("m", CONFIG_ROUNDS + 1),
		  .setup = rounds,
		  .says = "'m'" },
		{ .what = "no number of a round",
		  .edit = NOT_THERE("r"),
		  .setup = rounds,
		  .says = "'r'" },
		{ .what = "not said whether it proposes",
		  .edit = NOT_THERE("w"),
		  .setup = rounds,
		  .says = "'w'" },
		{ .what = "proposes by number",
		  .edit = NUMBER("w", 1),
		  .setup = rounds,
		  .says = "'w'" },
		{ .what = "over by number",
		  .edit = NUMBER("o", 1),
		  .setup = rounds,
		  .says = "'o'" },
		{ .what = "no digest", .edit = NOT_THERE("d"), .setup = rounds, .says = "'d'" },
		{ .what = "a digest too long",
		  .edit = LENGTH("d", 33),
		  .setup = rounds,
		  .says = "'d'" },
		{ .what = "too long a training",
		  .edit = NUMBER("t", (uint64_t)FED_TIME_MAX_MS + 1),
		  .setup = rounds,
		  .says = "'t'" },
		{ .what = "half a digest",
		  .edit = LENGTH("d", 16),
		  .setup = rounds,
		  .says = "'d'" },
		{ .what = "not said whether it has heard ours",
		  .edit = NOT_THERE("h"),
		  .setup = rounds,
		  .says = "'h'" },
		{ .what = "no serial that it joined",
		  .edit = NOT_THERE("j"),
		  .setup = rounds,
		  .says = "'j'" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int first = 0; first < 2; first++)
			hello_row(&rows[i], first != 0);
}

/* The same HELLO unspoiled is taken: so the rows above show something. */
static void test_hello_unspoiled(void **state)
{
	void (*const setups[])(struct table * t) = { NULL, rounds };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct buf b = { 0 };
		struct heard before, after;
		struct table t;

		table_init(&t, 1);
		if (setups[i] != NULL)
			setups[i](&t);
		table_start(&t);
		table_link(&t, VICTIM, HOSTILE, true);
		for (size_t k = 0; k < 6; k++)
			table_step(&t);
		table_peer(&t, HOSTILE, VICTIM)->version[0] ^= 1;
		table_peer(&t, HOSTILE, VICTIM)->chain.countersigned += 3;
		t.agent[HOSTILE].core->fed.number += 7;
		t.tamper = take_hello;
		t.ctx = &b;
		peer_say_hello(t.agent[HOSTILE].core, table_peer(&t, HOSTILE, VICTIM));
		t.tamper = NULL;
		before = heard(&t);
		table_deliver(&t, HOSTILE, VICTIM, &b);
		after = heard(&t);
		assert_true(after.greeted);
		assert_memory_not_equal(before.version, after.version, 32);
		assert_int_equal(after.back.claims, before.back.claims + 3);
		assert_int_equal(after.fed.number, before.fed.number + (i == 1 ? 7 : 0));
		buf_release(&b);
		table_release(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_spoiled), cmocka_unit_test(test_proposal),
		cmocka_unit_test(test_acceptance),	cmocka_unit_test(test_terms),
		cmocka_unit_test(test_terms_accepted),	cmocka_unit_test(test_hello),
		cmocka_unit_test(test_hello_unspoiled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

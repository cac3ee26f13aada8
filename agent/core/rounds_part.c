/* agent/core/rounds_part.c - what an agent in rounds keeps from one round to the next.
 *
 * Three sets of tables: best, which only gets better; latest, as the last round left
 * them; work, in which the round under way trains and takes over rows.  A round that
 * comes to nothing is undone: work becomes latest bit for bit, and the part of the
 * method (fed/method.h) is made anew from what was saved with these tables. */
#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/best_internal.h"
#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "agent/core/labels_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/rounds_internal.h"
#include "base/mem.h"
#include "graph/graph.h"

static void rounds_recall(struct agent_core *c, const struct store_core *saved);

static const char tables_of_before[] = "they are not those of our last round";

/* ---- the part ---- */

static int new_part(struct agent_core *c, struct err *e)
{
	uint64_t seed;
	int rc;

	memcpy(&seed, c->key, sizeof(seed)); /* each agent draws its own */
	fed_part_free(c->fed.part);
	rc = fed_part_new(&c->fed.part, &c->fed.settings, c->work, c->config->train.kge.seed ^ seed,
			  e);
	if (rc == 0)
		c->fed.part->before = c->first_done;
	if (rc == 0 && c->fed.saved.len > 0)
		rc = fed_part_load(c->fed.part, c->fed.saved.base, c->fed.saved.len, e);
	if (rc == 0)
		scores_note_encoder(c);
	return rc;
}

/* What was kept begins anew where it is of another method, or of other constants or tables. */
static int load_part(struct agent_core *c, struct err *e)
{
	struct err why = { 0 };

	if (new_part(c, &why) == 0)
		return 0;
	if (c->fed.saved.len == 0)
		return err_set(e, why.code, "%s", why.text);
	buf_clear(&c->fed.saved);
	core_notice(c, AGENT_NOTICE_TROUBLE, NULL, ERR_INPUT,
		    "what the rounds' method had kept is not used: %s", why.text);
	return new_part(c, e);
}

static void renew_part(struct agent_core *c)
{
	int rc = load_part(c, NULL);

	assert(rc == 0); /* one without what was kept was made of the same before */
	(void)rc;
}

void rounds_restore(struct agent_core *c)
{
	kge_emb_assign(c->work, c->latest);
	renew_part(c);
}

void rounds_restart(struct agent_core *c)
{
	kge_emb_assign(c->latest, c->best);
	buf_clear(&c->fed.saved);
	c->fed.untrained = c->fed.untrained && c->first_done == 0;
	c->fed.apart = c->fed.done > 0 ? tables_of_before : NULL;
	c->fed.weight = 1;
	c->tried_epochs = 0;
	rounds_restore(c);
}

/* ---- the start ---- */

/* A method that sends changes for fewer numbers may send more of them. */
static void say_cost(struct agent_core *c)
{
	const struct fed_settings *s = &c->fed.settings;
	struct fed_shape shape;

	fed_shape(s, 2, 0, &shape);
	if (!c->fed.part->method->changes || shape.up_ent < s->ent_floats)
		return;
	core_notice(c, AGENT_NOTICE_TROUBLE, NULL, ERR_INPUT,
		    "%s sends %u numbers for a row of %u, which fede sends as it is: fewer travel "
		    "with a smaller rounds.rank or a larger model.dim",
		    s->method, shape.up_ent, s->ent_floats);
}

int rounds_load(struct agent_core *c, const struct agent_parts *parts, struct err *e)
{
	const struct fed_method *method = fed_method_find(c->fed.settings.method);
	bool on;
	int rc;

	if (!in_rounds(c))
		return 0;
	if (c->learner->train_part == NULL &&
	    (method->train != NULL || method->train_beside != NULL))
		return err_set(e, ERR_USAGE, "this learner cannot train for the rounds' method");
	labels_make(c);
	for (size_t k = 0; k < parts->saved->n_rounds; k++)
		rounds_remember(c, parts->saved->rounds[k]);
	rounds_recall(c, parts->saved);
	on = latest_goes_on(c);
	if (c->latest == NULL || !on) {
		c->fed.apart = c->fed.done > 0 ? tables_of_before : NULL;
		kge_emb_free(c->latest);
		c->latest = kge_emb_copy(c->best);
		c->fed.weight = 1;
	}
	if (!c->has_best)
		c->fed.untrained = true;
	else if (memcmp(c->kept_digest, c->best_digest, 32) != 0)
		c->fed.untrained = false;
	if (!on || memcmp(c->frames.beside, c->best_digest, 32) != 0)
		c->tried_epochs = 0;
	kge_emb_assign(c->work, c->latest);
	if (on && parts->part != NULL && parts->part->len > 0)
		buf_add(&c->fed.saved, parts->part->base, parts->part->len);
	rc = load_part(c, e);
	if (rc != 0)
		return rc;
	memcpy(c->fed.settings.model, c->fed.part->settings.model, FED_MODEL_MAX);
	rounds_validate_load(c, parts->validation, on);
	rounds_compare_load(c, on ? parts->beside : NULL);
	c->fed.settings.gamma = c->fed.part->settings.gamma;
	c->fed.settings.ent_floats = c->fed.part->floats[0];
	c->fed.settings.rel_floats = c->fed.part->floats[1];
	say_cost(c);
	return 0;
}

void rounds_release(struct agent_core *c)
{
	round_free(c->fed.now);
	round_free(c->fed.last);
	for (size_t i = 0; i < ROUNDS_PAST; i++)
		round_free(c->fed.past[i]);
	fed_part_free(c->fed.part);
	buf_release(&c->fed.saved);
	rounds_validate_release(&c->fed.validation);
	rounds_compare_release(c);
	free(c->fed.invitation);
	store_batch_release(&c->fed.changed);
}

/* ---- the first round ---- */

static void begin_row(struct agent_core *c, const struct store_slot *s)
{
	struct kge_emb *shared = fed_shared_table(c->fed.part);
	size_t len;
	const char *name;

	if (s->id >= (s->tag == 'e' ? c->work->n_ent : c->work->n_rel))
		return;
	name = labels_name(c, s->tag, s->id, &len);
	fed_first_row(c->work, s->tag, s->id, name, len, c->config->rounds.start_seed);
	if (shared != c->work)
		fed_first_row(shared, s->tag, s->id, name, len, c->config->rounds.start_seed);
}

/* Rows of what is shared, as if a server had drawn them; in tables that nobody has trained. */
void rounds_begin_equal(struct agent_core *c)
{
	if (!c->config->rounds.equal_start || !c->fed.untrained)
		return;
	for (size_t i = 0; i < c->n_peers; i++)
		for (uint32_t k = 0; peer_aligned(c->peers[i]) && k < c->peers[i]->n_slots; k++)
			begin_row(c, &c->peers[i]->slots[k]);
}

/* Tables that began by themselves, or rounds that were without us. */
static const char *apart_before(const struct agent_core *c, uint64_t number)
{
	if (c->fed.done == 0 && !(c->fed.untrained && c->config->rounds.equal_start))
		return "they were trained, or drawn, before the first round";
	if (number > c->fed.number)
		return "rounds were without us";
	return c->fed.apart;
}

void rounds_say_apart(struct agent_core *c, uint64_t number)
{
	const struct fed_method *m = c->fed.part->method;
	const char *why = apart_before(c, number);

	if (!m->changes || why == NULL || c->fed.said_apart)
		return;
	c->fed.said_apart = true;
	core_notice(c, AGENT_NOTICE_TROUBLE, NULL, ERR_INPUT,
		    "%s: our shared rows stay as far from the others' as they are, since %s, and "
		    "changes travel; a round of all by rounds.method fede brings them together",
		    m->name, why);
}

/* ---- the end of a round ---- */

static void record_signed(struct store_round_member *m, const struct fed_signed *x)
{
	m->has_account = x != NULL;
	if (x == NULL)
		return;
	m->their_rows_out = x->t.rows_out;
	m->their_rows_in = x->t.rows_in;
	m->their_floats_out = x->t.floats_out;
	m->their_floats_in = x->t.floats_in;
	memcpy(m->signature, x->signature, sizeof(m->signature));
	snprintf(m->refused, sizeof(m->refused), "%s", x->refused);
}

static struct store_round_member record_member(const struct fed_round *m, unsigned participant)
{
	const struct fed_account *a = fed_round_account(m, participant);
	struct store_round_member v = { .fate = (int)a->fate,
					.rows_out = a->rows_out,
					.rows_in = a->rows_in,
					.floats_out = a->floats_out,
					.floats_in = a->floats_in,
					.bytes_out = a->bytes_out,
					.bytes_in = a->bytes_in,
					.compared = a->distance.rows,
					.distance = fed_distance_apart(&a->distance),
					.cosine = fed_distance_cosine(&a->distance) };

	memcpy(v.key, a->key, STORE_KEY);
	record_signed(&v, fed_round_theirs(m, participant));
	return v;
}

static struct store_round_member *record_members(const struct fed_round *m, unsigned n)
{
	struct store_round_member *v = mem_array((size_t)n + 1, sizeof(*v));

	for (unsigned i = 0; i < n; i++)
		v[i] = record_member(m, i);
	return v;
}

_Static_assert((int)STORE_REFUSED_MAX == (int)FED_REFUSED_MAX,
	       "one text, at a round and on record");

/* The fault of the account that the member has signed, for the owner; "": none, or the member was
 * late or lost, and less came. */
static void check_account(const struct round *r, const struct store_round_member *m,
			  char why[STORE_REFUSED_MAX])
{
	const struct fed_traffic ours = { m->rows_out, m->rows_in, m->floats_out, m->floats_in };
	const struct fed_traffic theirs = { m->their_rows_out, m->their_rows_in,
					    m->their_floats_out, m->their_floats_in };
	bool all_came = fed_round_status(r->machine, NULL) == 0 && m->fate == FED_TOOK_PART &&
			fed_round_settings(r->machine)->secret_bits == 0;

	snprintf(why, STORE_REFUSED_MAX, "%s", m->refused);
	if (why[0] == '\0' && m->has_account)
		fed_account_clashes(&ours, &theirs, all_came, why);
}

static void note_account(struct agent_core *c, const struct round *r,
			 const struct store_round_member *m)
{
	struct peer *p = peer_find(c, m->key);

	if (p == NULL || !m->has_account)
		return;
	p->info.has_signed = true;
	check_account(r, m, p->fed.account);
	if (p->fed.account[0] != '\0')
		peer_trouble(c, p, m->refused[0] != '\0' ? ERR_IDENTITY : ERR_PROTO,
			     "its account of round %llu %s: %.100s",
			     (unsigned long long)fed_round_settings(r->machine)->number,
			     m->refused[0] != '\0' ? "is refused" : "contradicts ours",
			     p->fed.account);
}

void rounds_record(struct agent_core *c, struct round *r, struct store_batch *b)
{
	const struct fed_settings *s = fed_round_settings(r->machine);
	const struct fed_report *o = &c->fed.report;
	struct err e = { 0 };
	struct store_round x = {
		.number = s->number,
		.hosted = s->topology == FED_HOSTED,
		.secret_bits = s->secret_bits,
		.started_ms = r->started_wall_ms,
		.finished_ms = c->wall_ms,
		.train_ms = r->train_ms,
		.outcome = fed_round_status(r->machine, &e),
		.items = o->items,
		.answered = o->answered,
		.homed = o->homed,
		.params_up = o->params_up,
		.params_down = o->params_down,
		.clipped = o->clipped,
		.spoiled = o->spoiled,
		.scored = r->validation.validated,
		.score = r->validation.score,
		.compared = r->validation.scored && !fed_own_stays(s),
		.own_score = r->validation.own_score,
		.merged_score = r->validation.merged_score,
		.has_alone = r->validation.scored && r->validation.has_alone,
		.alone_score = r->validation.alone_score,
		.n_members = o->members,
		.n_participants = o->participants,
		.members = record_members(r->machine, o->participants),
	};

	memcpy(x.id, fed_round_id(r->machine), STORE_ROUND);
	memcpy(x.proposer, r->proposer != NULL ? r->proposer->info.key : c->key, STORE_KEY);
	snprintf(x.method, sizeof(x.method), "%s", s->method);
	snprintf(x.reason, sizeof(x.reason), "%.250s", e.text);
	store_batch_round(b, &x);
	free(r->kept);
	r->kept = x.members;
	r->n_kept = x.n_participants;
	r->news = true;
	for (uint32_t i = 0; i < r->n_kept; i++)
		note_account(c, r, &r->kept[i]);
}

void rounds_record_again(struct agent_core *c, struct round *r)
{
	for (uint32_t i = 0; r != NULL && i < r->n_kept; i++) {
		struct store_round_member *was = &r->kept[i], is = record_member(r->machine, i);

		if (is.has_account == was->has_account && is.bytes_out == was->bytes_out)
			continue; /* with rows there are bytes; none come in any more */
		is.fate = was->fate;
		r->news =
			r->news || is.rows_out != was->rows_out || is.floats_out != was->floats_out;
		if (!was->has_account)
			note_account(c, r, &is);
		*was = is;
		store_batch_round_member(&c->fed.changed, fed_round_id(r->machine), &is);
	}
}

void rounds_recorded(struct round *r)
{
	for (uint32_t i = 0; i < r->n_kept; i++) {
		const struct store_round_member *m = &r->kept[i];
		const struct fed_traffic t = { m->rows_out, m->rows_in, m->floats_out,
					       m->floats_in };

		fed_round_recorded(r->machine, i, &t);
	}
}

/* ---- rounds of before a restart ---- */

static struct fed_recalled recall_member(const struct store_round_member *m)
{
	struct fed_recalled v = { .account = { .fate = (enum fed_fate)m->fate,
					       .rows_out = m->rows_out,
					       .rows_in = m->rows_in,
					       .floats_out = m->floats_out,
					       .floats_in = m->floats_in,
					       .bytes_out = m->bytes_out,
					       .bytes_in = m->bytes_in },
				  .has_account = m->has_account,
				  .theirs = { .t = { m->their_rows_out, m->their_rows_in,
						     m->their_floats_out, m->their_floats_in } } };

	memcpy(v.account.key, m->key, FED_KEY);
	memcpy(v.theirs.signature, m->signature, sizeof(m->signature));
	snprintf(v.theirs.refused, sizeof(v.theirs.refused), "%s", m->refused);
	return v;
}

static struct fed_round *recall_machine(const struct fed_setup *s, const struct store_round *x)
{
	struct fed_account_head h = { .number = x->number,
				      .method = x->method,
				      .hosted = x->hosted,
				      .secret_bits = x->secret_bits };
	struct fed_recalled *participants =
		mem_array((size_t)x->n_participants + 1, sizeof(*participants));
	struct fed_round *machine;
	struct err e = { 0 };

	memcpy(h.id, x->id, FED_ID);
	if (x->outcome != 0)
		err_set(&e, x->outcome, "%s", x->reason);
	for (uint32_t i = 0; i < x->n_participants; i++)
		participants[i] = recall_member(&x->members[i]);
	machine = fed_round_recall(s, &h, &e, participants, x->n_members, x->n_participants);
	free(participants);
	return machine;
}

/* NULL: not one that we were in. */
static struct round *recall(const struct agent_core *c, const struct store_round *x)
{
	struct round *r = mem_array(1, sizeof(*r));

	r->peers = mem_array(c->n_peers + 1, sizeof(*r->peers));
	r->setup = (struct fed_setup){ .peers = r->peers, .on_record = true };
	rounds_who_we_are(c, &r->setup);
	for (size_t i = 0; i < c->n_peers; i++) {
		struct fed_peer *p = &r->peers[r->setup.n_peers++];

		memcpy(p->key, c->peers[i]->info.key, FED_KEY);
		memcpy(p->sign_public, c->peers[i]->info.sign_key, FED_SIGN);
	}
	r->machine = recall_machine(&r->setup, x);
	r->closed = true;
	r->n_kept = x->n_participants;
	r->kept = mem_copy(x->members, x->n_participants * sizeof(*r->kept));
	if (r->machine != NULL)
		return r;
	round_free(r);
	return NULL;
}

/* The newest ones on record, which hear and tell accounts again. */
static void rounds_recall(struct agent_core *c, const struct store_core *saved)
{
	size_t n = 0;

	if (saved->late.n > 0)
		c->fed.train_ms = c->fed.measured_ms = saved->late.at[0].train_ms;
	for (size_t k = 1; k < saved->late.n; k++)
		rounds_note_least(c, saved->late.at[k - 1].train_ms, saved->late.at[k].train_ms);
	for (size_t k = 0; k < saved->late.n && n < ROUNDS_PAST; k++) {
		struct round *r = recall(c, &saved->late.at[k]);

		if (r != NULL)
			c->fed.past[n++] = r;
	}
}

void rounds_make(struct agent_core *c, struct round *r)
{
	const struct kge_emb *left =
		r->validation.stops ? rounds_compare_back_to(c, &r->validation) : c->work;

	kge_emb_assign(c->latest, left);
	r->latest.disk = kge_emb_copy(left);
	kge_emb_digest(left, r->latest.digest);
	buf_clear(&c->fed.saved);
	if (!r->validation.stops)
		fed_part_save(c->fed.part, &c->fed.saved);
	if (c->fed.saved.len > 0)
		buf_add(&r->part, c->fed.saved.base, c->fed.saved.len);
	rounds_validate_make(c, &r->validation);
	rounds_compare_make(c, r);
	if (r->validation.interrupted)
		rounds_validate_save(&r->validation, fed_round_id(r->machine), r->latest.digest,
				     &r->interrupted);
}

void rounds_keep(struct agent_core *c, struct round *r, struct store_batch *b)
{
	struct store_checkpoint info = { .kind = STORE_LATEST,
					 .valid_score = rounds_stopped(c) ? c->best_score
							: r->validation.validated
								? r->validation.score
								: 0,
					 .epochs = c->epochs + c->tried_epochs,
					 .seed = c->config->train.kge.seed,
					 .created_ms = c->wall_ms };

	snprintf(info.protocol, sizeof(info.protocol), "%s", c->terms.score_name);
	memcpy(c->frames.beside, c->best_digest, 32);
	store_batch_tables(b, &info, r->latest.disk, r->latest.digest);
	r->latest = (struct tables_made){ 0 };
	rounds_compare_keep(c, r, &info, b);
	store_batch_meta_owned(b, AGENT_META_PART, r->part.base, r->part.len);
	r->part = (struct buf){ 0 };
	rounds_validate_clear(c, b);
	if (r->validation.interrupted)
		store_batch_meta_owned(b, AGENT_META_VALIDATION, r->interrupted.base,
				       r->interrupted.len);
	r->interrupted = (struct buf){ 0 };
	c->fed.untrained = false;
}

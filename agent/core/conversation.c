/* agent/core/conversation.c - the conversations inside a session: which names do we share, and the
 * translation of the client's rows.  Grants what a conversation wants (base/conv.h). */
#include <assert.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/best_internal.h"
#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/session_internal.h"
#include "base/mem.h"
#include "dp/useful.h"
#include "net/psi.h"
#include "ppat/virtual.h"

enum {
	VIRTUAL_PER_SLOT = 4,
	MEASURED_ROWS = 500, /* CSLS is quadratic: some 20 ms at 128 floats */
};

/* ---- intersection ---- */

/* Who compares with whom (net/psi.h): of the host's key and the client's, which the link proves. */
static void between_keys(const struct session *s, uint8_t out[NET_PSI_BETWEEN])
{
	const uint8_t *ours = s->core->key, *theirs = s->peer->info.key;
	bool host = s->role == AGENT_HOST;
	uint8_t in[2 * AGENT_KEY];

	memcpy(in, host ? ours : theirs, AGENT_KEY);
	memcpy(in + AGENT_KEY, host ? theirs : ours, AGENT_KEY);
	crypto_generichash(out, NET_PSI_BETWEEN, in, sizeof(in),
			   (const uint8_t *)"fkge psi between", 16);
}

void conversation_psi(struct session *s)
{
	uint8_t between[NET_PSI_BETWEEN];
	struct agent_core *c = s->core;
	struct net_psi_config config = {
		.role = s->role == AGENT_HOST ? NET_PSI_INITIATOR : NET_PSI_RESPONDER,
		.threads = 1,
		.between = between,
		.draw = c->io.draw,
		.draw_ctx = c->io.ctx,
	};
	struct err e = { 0 };
	size_t n;
	int rc;
	struct agent_name *own = agent_names_toward(c->names, peer_names_key(c, s->peer->info.key),
						    peer_shares(c, 'e'), peer_shares(c, 'r'), &n);
	struct net_psi_name *names = mem_array(n + 1, sizeof(*names));

	for (size_t i = 0; i < n; i++)
		names[i] = (struct net_psi_name){ own[i].tag, own[i].id, own[i].text, own[i].len };
	s->conv_number = CONV_PSI;
	between_keys(s, between);
	config.limit_theirs = intersect_names_max(c, n);
	rc = net_psi_new(&config, names, n, &s->conv, &e);
	free(names);
	free(own);
	if (rc != 0)
		session_abort(s, true, e.code, "%s", e.text);
	else
		conversation_drive(s);
}

static void alignment_on_disk(struct session *s)
{
	session_ready(s);
	session_goto(s, PHASE_ALIGNED);
	session_then(s, SESSION_ALIGNED);
}

/* Of another digest than before: other rows can be had of it. */
static void note_names(struct peer *p, const uint8_t digest[32])
{
	if (p->aligned && memcmp(p->digest, digest, 32) != 0)
		p->wakes = PEER_WAKES;
	else if (p->wakes == PEER_WOKE_BY_NAMES)
		p->wakes = PEER_WOKE;
}

static void psi_over(struct session *s)
{
	struct agent_core *c = s->core;
	struct peer *p = s->peer;
	const struct net_psi_result *r = net_psi_result(s->conv);
	struct store_alignment a = { .n = (uint32_t)r->n_slots };
	struct store_slot *slots = mem_array(r->n_slots + 1, sizeof(*slots));
	struct store_batch b = { 0 };

	for (size_t i = 0; i < r->n_slots; i++)
		slots[i] = (struct store_slot){ r->slots[i].id, r->slots[i].tag };
	note_names(p, r->digest);
	peer_align(p, p->version, p->version_theirs, r->digest, slots, a.n);
	memcpy(a.peer, p->info.key, 32);
	memcpy(a.version, p->version, 32);
	memcpy(a.digest, r->digest, 32);
	a.slots = slots;
	store_batch_alignment(&b, &a);
	intersect_done(s, &b, r->n_slots);
	core_record_add(c, &b);
	conv_free(s->conv);
	s->conv = NULL;
	free(slots);
	session_wait(s);
	core_commit_session(s, &b, alignment_on_disk);
	peer_queue_offered(c, p);
}

/* ---- terms of a translation ---- */

/* Relation rows join the entities' matrix if they are as wide, on both sides. */
static bool relations_fit(const struct session *s)
{
	const struct agent_core *c = s->core;

	return c->best->rel_floats == c->best->ent_floats &&
	       s->their_rel_floats == s->their_ent_floats;
}

static uint32_t what_fits(const struct session *s)
{
	const struct agent_core *c = s->core;
	const struct peer *p = s->peer;
	uint32_t what = 0;

	if (peer_shares(c, 'e') && p->n_ent > 0)
		what |= PPAT_ENTITIES;
	if (peer_shares(c, 'r') && p->n_rel > 0 && relations_fit(s))
		what |= PPAT_RELATIONS;
	return what;
}

/* A client's noise is for rows as they are, or of length 1: no mean is taken from them. */
static void terms_procrustes(const struct session *s, struct ppat_config *t)
{
	const struct agent_core *c = s->core;

	if (c->config->federation.center_rows && s->their_noise == 0)
		t->center = 1;
	if (c->config->federation.unit_rows || s->their_unit)
		t->scale = PPAT_SCALE_UNIT;
	t->short_rows =
		c->config->federation.aligned.bits == CONFIG_ROW_BITS_16 && s->their_noise == 0;
	t->multiplier = s->their_noise;
	t->clip = s->their_noise > 0 ? s->their_clip : t->clip;
	t->unrotated = latest_frame_common(c) && s->their_common && s->their_noise == 0 &&
		       t->client_dim == t->host_dim;
}

/* ---- is it worth its price? ---- */

static int useless(struct err *e, const char *what)
{
	return err_set(e, ERR_REFUSED,
		       "%s: nothing useful, so nothing is spent (see fkge ledger quote, and "
		       "privacy.useless_sessions)",
		       what);
}

/* A check of counts and sizes alone, so both sides may know its result. */
static int check_labels_worth(const struct agent_core *c, const struct ledger_mechanism *m,
			      uint64_t labels, struct err *e)
{
	const struct dp_mechanism vote = { m->noise == LEDGER_GAUSSIAN ? DP_GAUSSIAN : DP_LAPLACE,
					   m->param, m->teachers };
	struct dp_useful u;
	char what[120];

	if (c->config->privacy.useless_sessions == CONFIG_SPEND_USELESS)
		return 0;
	dp_useful(&vote, labels, m->dim, &u);
	snprintf(what, sizeof(what),
		 "%llu labels are worth %.1f without noise, %u numbers a row need %.0f",
		 (unsigned long long)labels, u.unanimous_worth, m->dim, u.direction);
	return u.worth == DP_WORTH_NOTHING ? useless(e, what) : 0;
}

static int check_map_worth(const struct agent_core *c, const struct ledger_mechanism *m,
			   uint32_t rows, struct err *e)
{
	double need = dp_useful_map_rows(m->param, m->dim);
	char what[120];

	if (c->config->privacy.useless_sessions == CONFIG_SPEND_USELESS || rows >= need)
		return 0;
	snprintf(what, sizeof(what), "a map of %u shared rows, which with its noise needs %.0f",
		 rows, need);
	return useless(e, what);
}

static int terms_map(struct session *s, struct ppat_config *t, uint32_t rows, struct err *e)
{
	struct agent_core *c = s->core;
	struct ledger_mechanism m = session_ledger_release(c);

	if (session_ledger_left(c, s->peer, &m) == 0)
		return err_set(e, ERR_BUDGET,
			       "privacy budget exhausted: no release of a map is left");
	t->multiplier = m.param;
	t->clip = c->config->privacy.release_clip;
	return check_map_worth(c, &m, rows, e);
}

/* The contract fixes what a label costs (methods 3.3, C7); the settings the rest. */
static int terms_ppat(struct session *s, struct ppat_config *t, uint32_t rows, struct err *e)
{
	struct agent_core *c = s->core;
	struct ledger_mechanism m = session_ledger_votes(c, s->peer, rows);
	uint64_t left, most;

	if (!session_ledger_knows(c, &m)) {
		session_ledger_price(s, &m);
		return err_set(e, ERR_BUSY, "what a label costs is worked out first");
	}
	left = session_ledger_left(c, s->peer, &m);
	if (m.dim != t->host_dim)
		return err_set(e, ERR_REFUSED,
			       "the contract is about rows of %u floats and ours have %u now: go "
			       "back to that dimension, or translate with procrustes",
			       m.dim, t->host_dim);
	if (left < m.batch)
		return err_set(e, ERR_BUDGET,
			       "privacy budget exhausted: no labels are left for a batch of %u",
			       m.batch);
	t->teachers = m.teachers;
	t->batch = m.batch;
	t->mechanism = m.noise == LEDGER_GAUSSIAN ? PPAT_GAUSSIAN : PPAT_LAPLACE;
	t->noise = m.param;
	config_ppat_terms(c->config, t);
	most = (uint64_t)t->steps * t->batch;
	t->max_labels = (uint32_t)(left < most ? left : most);
	return check_labels_worth(c, &m, t->max_labels, e);
}

static enum ppat_translator translator_of(enum config_translator t)
{
	static const enum ppat_translator translators[] = { [CONFIG_PROCRUSTES] = PPAT_PROCRUSTES,
							    [CONFIG_PPAT] = PPAT_PPAT,
							    [CONFIG_MAP] = PPAT_MAP };

	return translators[t];
}

int conversation_terms(struct session *s, struct err *e)
{
	struct agent_core *c = s->core;
	struct peer *p = s->peer;
	struct ppat_config *t = &s->terms;
	uint32_t what = what_fits(s), rows = 0;

	if (what == 0)
		return err_set(e, ERR_NOTFOUND, "nothing is shared");
	rows += what & PPAT_ENTITIES ? p->n_ent : 0;
	rows += what & PPAT_RELATIONS ? p->n_rel : 0;
	ppat_config_defaults(t, translator_of(c->config->federation.translator), p->n_slots,
			     s->their_ent_floats, (uint32_t)c->best->ent_floats);
	t->what = what;
	t->aligned_share = c->config->federation.aligned.share;
	t->lasting = t->aligned_share < 1 && c->config->federation.aligned.draw == CONFIG_DRAW_PAIR;
	t->student_seed = core_random(c);
	t->select_seed = core_random(c);
	if (c->config->federation.neighbours && s->their_virtual)
		t->max_virtual = VIRTUAL_PER_SLOT * p->n_slots < PPAT_VIRTUAL_MAX
					 ? VIRTUAL_PER_SLOT * p->n_slots
					 : PPAT_VIRTUAL_MAX;
	if (t->translator == PPAT_PROCRUSTES)
		terms_procrustes(s, t);
	else if (t->translator == PPAT_MAP && terms_map(s, t, rows, e) != 0)
		return e->code;
	else if (t->translator == PPAT_PPAT && terms_ppat(s, t, rows, e) != 0)
		return e->code;
	return ppat_config_check(t, e);
}

/* What ppat and map send has no lengths, whatever we have set. */
static bool lengths_leave(const struct agent_core *c, const struct ppat_config *t)
{
	return t->scale != PPAT_SCALE_UNIT &&
	       (c->config->federation.unit_rows || t->translator != PPAT_PROCRUSTES);
}

int conversation_check_terms(struct session *s, const struct ppat_config *t, struct err *e)
{
	struct agent_core *c = s->core;
	static const uint32_t proposed[] = { [LEDGER_PPAT] = PPAT_PPAT,
					     [LEDGER_PROCRUSTES] = PPAT_PROCRUSTES,
					     [LEDGER_MAP] = PPAT_MAP };
	double noise = c->config->privacy.noisy_rows ? agent_terms_noise(&c->terms, c->config) : 0;

	if (c->config->federation.roles == CONFIG_HOST_ONLY)
		return err_set(e, ERR_REFUSED, "federation.roles: we send none of our rows");
	if (t->translator != proposed[s->record.translator])
		return err_set(e, ERR_PROTO, "another translator than was proposed");
	if (t->slots != s->peer->n_slots || t->client_dim != c->best->ent_floats ||
	    t->host_dim != s->their_ent_floats)
		return err_set(e, ERR_PROTO, "terms for other tables than ours");
	if ((t->what & ~what_fits(s)) != 0)
		return err_set(e, ERR_REFUSED, "terms ask for rows that we do not share");
	if (t->translator == PPAT_PROCRUSTES &&
	    (t->multiplier != noise || (noise > 0 && t->clip != c->config->privacy.release_clip)))
		return err_set(e, ERR_REFUSED, "terms of another noise on our rows than we said");
	if (lengths_leave(c, t))
		return err_set(e, ERR_REFUSED,
			       "terms ask for rows that are not of length 1, as ours leave with "
			       "federation.unit_rows, and all with ppat and map");
	if (t->unrotated && !(latest_frame_common(c) && s->their_common))
		return err_set(e, ERR_REFUSED,
			       "terms ask for our rows unrotated (federation.frame)");
	if (t->max_virtual > 0 && !c->config->federation.neighbours)
		return err_set(e, ERR_REFUSED, "we do not send virtual neighbours");
	return 0;
}

/* ---- the translator ---- */

/* Relation rows of another width stay zero: `what` leaves them out. */
static void gather_rows(const struct agent_core *c, const struct kge_emb *tables,
			const struct peer *p, float *rows, uint8_t *tags, uint64_t *ids)
{
	size_t dim = tables->ent_floats;

	for (uint32_t i = 0; i < p->n_slots; i++) {
		const struct store_slot *k = &p->slots[i];
		const float *row = NULL;

		tags[i] = (uint8_t)k->tag;
		ids[i] = (uint64_t)(uint8_t)k->tag << 32 | k->id;
		if (k->tag == 'e')
			row = kge_ent(tables, k->id);
		else if (c->best->rel_floats == dim)
			row = kge_rel(tables, k->id);
		if (row)
			memcpy(rows + (size_t)i * dim, row, dim * sizeof(*rows));
	}
}

/* BLAKE2b of both keys, ascending, and the name that both have for it: the same whoever hosts. */
static uint64_t place_of_name(const struct session *s, const struct agent_name *name)
{
	const uint8_t *ours = s->core->key, *theirs = s->peer->info.key;
	bool first = memcmp(ours, theirs, AGENT_KEY) < 0;
	crypto_generichash_state h;
	uint8_t tag = (uint8_t)name->tag, out[16];
	uint64_t place = 0;

	crypto_generichash_init(&h, NULL, 0, sizeof(out));
	crypto_generichash_update(&h, first ? ours : theirs, AGENT_KEY);
	crypto_generichash_update(&h, first ? theirs : ours, AGENT_KEY);
	crypto_generichash_update(&h, &tag, 1);
	crypto_generichash_update(&h, (const uint8_t *)name->text, name->len);
	crypto_generichash_final(&h, out, sizeof(out));
	for (size_t i = 0; i < 8; i++)
		place = place << 8 | out[i];
	return place;
}

/* Of each slot, where a share is lasting; NULL: it is not. */
static uint64_t *gather_places(const struct session *s)
{
	const struct agent_core *c = s->core;
	const struct peer *p = s->peer;
	uint32_t n_ent = graph_vocab_count(c->graph->entities);
	uint64_t *of = NULL, *places = NULL;
	struct agent_name *own;
	size_t n;

	if (!s->terms.lasting)
		return NULL;
	of = mem_array((size_t)n_ent + graph_vocab_count(c->graph->relations) + 1, sizeof(*of));
	places = mem_array((size_t)p->n_slots + 1, sizeof(*places));
	own = agent_names_toward(c->names, peer_names_key(c, p->info.key), peer_shares(c, 'e'),
				 peer_shares(c, 'r'), &n);
	for (size_t i = 0; i < n; i++)
		of[own[i].id + (own[i].tag == 'r' ? n_ent : 0)] = place_of_name(s, &own[i]);
	for (uint32_t i = 0; i < p->n_slots; i++)
		places[i] = of[p->slots[i].id + (p->slots[i].tag == 'r' ? n_ent : 0)];
	free(of);
	free(own);
	return places;
}

static struct ppat_virtual *gather_neighbours(const struct session *s)
{
	const struct agent_core *c = s->core;
	const struct peer *p = s->peer;
	uint32_t *ent, *rel;
	struct ppat_virtual *v;

	if (s->role != AGENT_CLIENT || s->terms.max_virtual == 0)
		return NULL;
	peer_slot_ids(p->slots, p->n_slots, &ent, &rel);
	v = ppat_virtual_gather(c->graph, latest_served(c), ent, rel, p->n_slots,
				s->terms.max_virtual);
	free(ent);
	free(rel);
	return v;
}

int conversation_open(struct session *s, struct err *e)
{
	struct agent_core *c = s->core;
	bool of_work = s->role == AGENT_HOST && !latest_keeps(c); /* what it has merged so far */
	const struct kge_emb *tables = of_work ? c->work : latest_served(c);
	size_t n = s->peer->n_slots, dim = tables->ent_floats;
	struct ppat_env env = { .draw = { c->io.draw, c->io.ctx }, .measure = MEASURED_ROWS };
	float *rows = mem_array(n * dim + 1, sizeof(*rows));
	uint8_t *tags = mem_array(n + 1, 1);
	uint64_t *ids = mem_array(n + 1, sizeof(*ids));
	uint64_t *places = gather_places(s);
	struct ppat_rows in = { rows, tags, ids, n, dim, places };

	assert(s->role == AGENT_HOST || c->config->federation.roles != CONFIG_HOST_ONLY);
	gather_rows(c, tables, s->peer, rows, tags, ids);
	s->neighbours = gather_neighbours(s);
	env.neighbours = s->neighbours;
	env.same_frame = s->role == AGENT_HOST && frame_is_theirs(s);
	s->conv_number = CONV_TRANSLATE;
	s->moves = c->frames.latest.moves;
	s->conv =
		ppat_open(s->role == AGENT_HOST ? PPAT_HOST : PPAT_CLIENT, &s->terms, &in, &env, e);
	if (s->role == AGENT_HOST && !s->in_turn) {
		s->own = rows;
		rows = NULL;
	}
	free(rows);
	free(tags);
	free(ids);
	free(places);
	if (s->conv)
		return 0;
	return e->code ? e->code : err_set(e, ERR_FAIL, "the translator did not open");
}

/* ---- granting wishes ---- */

static int run_conv(struct agent_job *job)
{
	struct conv *conv = job->subject;

	return conv->ops->work(conv, &job->cancel);
}

static void conversation_send(struct session *s)
{
	struct conv_message m = s->conv->ops->outgoing(s->conv);
	struct net_conv b = { .conversation = s->conv_number,
			      .has_part = true,
			      .part = { m.kind, { m.base, m.len } } };
	struct buf out = { 0 };
	struct net_writer w;

	if (s->conv_number == CONV_PSI && m.kind == NET_PSI_BLINDED)
		intersect_begun(s);
	session_begin_message(s, &w, &out, NET_MSG_CONV);
	net_conv_put(&w, &b);
	session_send(s, &w, &out);
	s->conv->ops->done(s->conv, 0);
	session_ledger_note(s);
}

static void conversation_over(struct session *s)
{
	struct err e = { 0 };
	int status = s->conv->ops->status(s->conv, &e);

	if (status != 0 && s->work_failed)
		session_abort_private(s, status, e.text[0] ? e.text : err_text(status));
	else if (status == ERR_TOOBIG && s->conv_number == CONV_PSI)
		session_abort(s, true, status,
			      "%s (federation.names_max of who refuses says how many)", e.text);
	else if (status != 0)
		session_abort(s, true, status, "%s: %s", s->conv->ops->name,
			      e.text[0] ? e.text : err_text(status));
	else if (s->conv_number == CONV_PSI)
		psi_over(s);
	else if (s->role == AGENT_HOST)
		session_ledger_settle(s);
	/* the client waits for the settle entry */
}

static bool conversing(const struct session *s)
{
	return !s->over && s->conv && !s->waiting && (s->entry != ENTRY_SENT || s->entry_beside) &&
	       (s->phase == PHASE_PSI || s->phase == PHASE_TRANSLATE);
}

bool conversation_blocked(const struct session *s)
{
	return conversing(s) && conv_want(s->conv) == CONV_SEND;
}

void conversation_drive(struct session *s)
{
	while (conversing(s)) {
		session_ledger_ahead(s);
		if (!conversing(s))
			return;
		switch (conv_want(s->conv)) {
		case CONV_RECV:
			return;
		case CONV_SEND:
			if (s->peer->outbox.first)
				return; /* until the link is writable */
			conversation_send(s);
			break;
		case CONV_CHARGE:
			if (!session_ledger_charge(s, s->conv->ops->cost(s->conv).labels))
				return;
			break;
		case CONV_WORK:
			session_wait(s);
			core_start_session_job(s, AGENT_JOB_CONV, run_conv, s->conv);
			return;
		case CONV_OVER:
			conversation_over(s);
			return;
		}
	}
}

void conversation_job_done(struct session *s, struct agent_job *job)
{
	assert(s && s->conv == job->subject);
	session_ready(s);
	s->work_failed = job->status != 0;
	s->conv->ops->done(s->conv, job->status);
	conversation_drive(s);
}

void conversation_received(struct session *s, const struct net_message *m)
{
	const struct net_conv_part *b = &m->conv.part;
	struct err e = m->wrong;

	if (e.code == 0 && m->conv.conversation == CONV_STILL_WORKING)
		return;
	if (e.code == 0 && !m->conv.has_part)
		err_set(&e, ERR_PROTO, "key 'k' is missing");
	if (e.code == 0 && (!conversing(s) || m->conv.conversation != s->conv_number ||
			    conv_want(s->conv) != CONV_RECV))
		err_set(&e, ERR_PROTO, "a message of a conversation that does not wait for one");
	if (e.code != 0) {
		session_abort(s, true, e.code, "%s", e.text);
		return;
	}
	s->conv->ops->received(s->conv, (uint8_t)b->kind, b->body.base, b->body.len);
	if (s->conv_number == CONV_PSI)
		s->psi_points = net_psi_points(s->conv);
	if (s->phase == PHASE_TRANSLATE) {
		session_ledger_note(s);
		if (ppat_spends(&s->terms, s->role == AGENT_HOST ? PPAT_CLIENT : PPAT_HOST) &&
		    session_ledger_check_labels(s, &e) != 0) {
			session_abort(s, true, e.code, "%s", e.text);
			return;
		}
	}
	conversation_drive(s);
}

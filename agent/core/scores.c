/* agent/core/scores.c - whose scores are added up, and the encoder that gives ours. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/core_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/scores_internal.h"
#include "base/mem.h"
#include "fed/methods/fedcqa.h"

/* ---- members ---- */

static int compare_member_keys(const void *a, const void *b)
{
	return memcmp(a, b, FED_KEY);
}

static bool members_of_round(const struct round *r, struct score_members *m)
{
	struct fed_report report;

	if (r == NULL || fed_round_status(r->machine, NULL) != 0)
		return false;
	fed_round_report(r->machine, &report);
	if (report.members < 2 || report.members > FED_MEMBERS_MAX)
		return false;
	m->n = report.members;
	for (unsigned i = 0; i < report.members; i++)
		memcpy(m->key + (size_t)i * FED_KEY, fed_round_account(r->machine, i)->key,
		       FED_KEY);
	qsort(m->key, m->n, FED_KEY, compare_member_keys);
	return true;
}

bool scores_last_members(const struct agent_core *c, struct score_members *m)
{
	*m = (struct score_members){ 0 };
	if (!in_rounds(c) || members_of_round(c->fed.last, m))
		return m->n > 0;
	for (size_t i = 0; i < ROUNDS_PAST; i++)
		if (members_of_round(c->fed.past[i], m))
			return true;
	return false;
}

/* As it is now: the alignment may change while the question is under way. */
static void share_with(const struct peer *p, struct fed_peer *out)
{
	struct net_psi_slot *slots = mem_array((size_t)p->n_slots + 1, sizeof(*slots));

	for (uint32_t k = 0; k < p->n_slots; k++)
		slots[k] = (struct net_psi_slot){ .id = p->slots[k].id, .tag = p->slots[k].tag };
	memcpy(out->key, p->info.key, FED_KEY);
	memcpy(out->sign_public, p->info.sign_key, FED_SIGN);
	memcpy(out->digest, p->digest, NET_PSI_DIGEST);
	out->slots = slots;
	out->n_slots = p->n_slots;
}

int scores_members_open(struct agent_core *c, struct score_members *m, struct err *e)
{
	size_t n = 0;

	assert(m->n >= 2 && m->of == NULL);
	for (size_t i = 0; i < m->n; i++) {
		struct peer *p = peer_find(c, m->key + i * FED_KEY);

		if (memcmp(m->key + i * FED_KEY, c->key, FED_KEY) == 0)
			continue;
		if (p == NULL || !peer_listed(p))
			return err_set(e, ERR_BUSY,
				       "a member of the last round is no partner any more: the "
				       "next round changes that");
		if (!peer_aligned(p))
			return err_set(e, ERR_BUSY, "names are to be compared with %.60s first",
				       p->info.name);
		m->peer[n++] = p;
	}
	assert(n == m->n - 1);
	m->of = mem_array(m->n, sizeof(*m->of));
	for (size_t i = 0; i < n; i++) {
		share_with(m->peer[i], &m->of[i]);
		m->at[i] = &m->of[i];
	}
	return 0;
}

void scores_members_release(struct score_members *m)
{
	for (size_t i = 0; m->of != NULL && i + 1 < m->n; i++)
		free((void *)(uintptr_t)m->of[i].slots);
	free(m->of);
	m->of = NULL;
}

/* ---- the encoder ---- */

static struct encode_model *copy_encoder(const struct encode_model *from)
{
	struct encode_model *m;
	struct rng r;

	rng_seed(&r, 0);
	m = encode_model_new(&from->is, from->entities, from->relations, &r);
	memcpy(m->ent, from->ent, encode_ent_floats(from) * sizeof(float));
	memcpy(m->rel, from->rel, encode_rel_floats(from) * sizeof(float));
	memcpy(m->op, from->op, from->op_floats * sizeof(float));
	return m;
}

/* Rounds change the part on a worker: it is looked at between their jobs. */
const struct encode_model *scores_encoder_now(struct agent_core *c)
{
	struct step_encoder *kept = &c->answers.encoder;
	struct encode_model best;
	struct fedcqa_head head;

	if (c->job != NULL || c->answers.job != NULL || c->fed.part == NULL ||
	    !fedcqa_best(c->fed.part, &best, &head) ||
	    (kept->m != NULL && kept->step == head.step && kept->mrr == head.valid.mrr))
		return kept->m;
	encode_model_free(kept->m);
	*kept = (struct step_encoder){ copy_encoder(&best), head.step, head.valid.mrr, true };
	return kept->m;
}

void scores_note_encoder(struct agent_core *c)
{
	struct encode_model best;
	struct fedcqa_head head;

	assert(c->job == NULL);
	c->answers.encoder.noted = c->fed.part != NULL && fedcqa_best(c->fed.part, &best, &head);
}

/* After a start nothing is copied yet, and a training may take long.  A relation that the copy does
 * not have stays away. */
int scores_no_encoder(const struct agent_core *c, struct err *e)
{
	bool works = c->job != NULL || c->answers.job != NULL;

	if (works && c->answers.encoder.m == NULL && c->answers.encoder.noted)
		return err_set(e, ERR_BUSY,
			       "a worker is at its encoder of queries: ask again later");
	return err_set(e, ERR_REFUSED, "it has no encoder of queries");
}

void scores_encoder_release(struct agent_core *c)
{
	encode_model_free(c->answers.encoder.m);
	c->answers.encoder.m = NULL;
}

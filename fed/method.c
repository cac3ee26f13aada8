#include "fed/method.h"

#include <assert.h>
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fed/mask.h"
#include "kge/mutual.h"
#include "kge/terms.h"

/* The names come from fed/meson.build; each file methods/NAME.c defines fed_NAME. */
#define X(name) extern const struct fed_method fed_##name;
FED_METHODS
#undef X

#define X(name) &fed_##name,
const struct fed_method *const fed_methods[] = { FED_METHODS NULL };
#undef X

#define X(name) #name,
const char *const fed_method_names[] = { FED_METHODS NULL };
#undef X

const struct fed_method *fed_method_find(const char *name)
{
	for (size_t i = 0; fed_methods[i] != NULL; i++)
		if (strcmp(fed_methods[i]->name, name) == 0)
			return fed_methods[i];
	return NULL;
}

/* ---- settings ---- */

void fed_settings_init(struct fed_settings *s, const struct fed_method *m)
{
	*s = (struct fed_settings){
		.topology = FED_SHARDED,
		.min_holders = 2,
		.fraction = 1,
		.join_ms = 30000,
		.train_ms = 3600000,
		.stage_ms = 300000,
		.secret_clip = 8,
	};
	memcpy(s->method, m->name, strlen(m->name));
	for (size_t i = 0; i < FED_VALUES_MAX && m->constant[i].key != NULL; i++)
		s->value[i] = m->constant[i].byword;
}

/* The key's place among the method's constants, or -1. */
static int find_constant(const struct fed_method *m, const char *key)
{
	for (int i = 0; i < FED_VALUES_MAX && m->constant[i].key != NULL; i++)
		if (strcmp(m->constant[i].key, key) == 0)
			return i;
	return -1;
}

static int check_constant(const struct fed_method *m, const struct fed_constant *c, double value,
			  struct err *e)
{
	if (isfinite(value) && value >= c->min && value <= c->max)
		return 0;
	return err_set(e, ERR_USAGE, "method %s, %s (%s): must be %g to %g, not %g", m->name,
		       c->key, c->help, c->min, c->max, value);
}

int fed_settings_set(struct fed_settings *s, const char *key, double value, struct err *e)
{
	const struct fed_method *m = fed_method_find(s->method);
	int at = find_constant(m, key);

	if (at < 0)
		return err_set(e, ERR_USAGE, "method %s has no constant %s%s%s", m->name, key,
			       m->constant[0].key != NULL ? "; its first is " : "; it has none",
			       m->constant[0].key != NULL ? m->constant[0].key : "");
	s->value[at] = value + 0.0; /* -0 is 0 */
	return check_constant(m, &m->constant[at], value, e);
}

double fed_constant(const struct fed_settings *s, const char *key)
{
	int at = find_constant(fed_method_find(s->method), key);

	assert(at >= 0);
	return s->value[at];
}

bool fed_has_reg_only(const struct fed_settings *s)
{
	int at = find_constant(fed_method_find(s->method), "reg_only");

	return at >= 0 && s->value[at] > 0;
}

bool fed_own_stays(const struct fed_settings *s)
{
	return fed_method_find(s->method)->shared_table != NULL || fed_has_reg_only(s);
}

static int check_ms(const char *key, uint32_t ms, struct err *e)
{
	if (ms >= 1 && ms <= FED_TIME_MAX_MS)
		return 0;
	return err_set(e, ERR_USAGE, "round, %s: must be 1 ms to a day, not %u ms", key, ms);
}

static int check_floats(const char *what, uint32_t floats, struct err *e)
{
	if (floats >= 1 && floats <= FED_FLOATS_MAX)
		return 0;
	return err_set(e, ERR_USAGE, "round: a row of %s must have 1 to %d floats, not %u", what,
		       FED_FLOATS_MAX, floats);
}

/* Masks hide rows and show sums, so a home that must see rows cannot have them. */
static int check_secret(const struct fed_settings *s, const struct fed_method *m, struct err *e)
{
	struct fed_mask_ring r;

	if (s->secret_bits == 0)
		return 0;
	if (m->home != NULL || m->note_up != NULL)
		return err_set(e, ERR_USAGE,
			       "method %s: its homes compute with single rows, so secret "
			       "aggregation, which shows them sums alone, cannot go with it",
			       m->name);
	return fed_mask_ring_init(&r, s->secret_bits, s->secret_clip, FED_MEMBERS_MAX, e);
}

int fed_settings_check(const struct fed_settings *s, struct err *e)
{
	const struct fed_method *m = fed_method_find(s->method);
	int rc = 0;

	if (m == NULL)
		return err_set(e, ERR_USAGE, "round: this fkge knows no method of that name");
	for (size_t i = 0; rc == 0 && i < FED_VALUES_MAX && m->constant[i].key != NULL; i++)
		rc = check_constant(m, &m->constant[i], s->value[i], e);
	if (rc == 0 && s->topology != FED_SHARDED && s->topology != FED_HOSTED)
		rc = err_set(e, ERR_USAGE, "round: topology must be sharded or hosted");
	if (rc == 0 && (s->min_holders < 2 || s->min_holders > FED_MEMBERS_MAX))
		rc = err_set(e, ERR_USAGE, "round, min_holders: must be 2 to %d, not %u",
			     FED_MEMBERS_MAX, s->min_holders);
	if (rc == 0 && !(s->fraction > 0 && s->fraction <= 1))
		rc = err_set(e, ERR_USAGE, "round, fraction: must be above 0 and at most 1, not %g",
			     s->fraction);
	if (rc == 0)
		rc = check_floats("an entity", s->ent_floats, e);
	if (rc == 0)
		rc = check_floats("a relation", s->rel_floats, e);
	if (rc == 0)
		rc = check_ms("join_ms", s->join_ms, e);
	if (rc == 0)
		rc = check_ms("train_ms", s->train_ms, e);
	if (rc == 0)
		rc = check_ms("stage_ms", s->stage_ms, e);
	if (rc == 0)
		rc = check_secret(s, m, e);
	return rc;
}

/* ---- parts ---- */

int fed_part_new(struct fed_part **out, const struct fed_settings *s, struct kge_emb *emb,
		 uint64_t seed, struct err *e)
{
	const struct fed_method *m = fed_method_find(s->method);
	struct fed_part *p;
	int rc = 0;

	*out = NULL;
	if (m == NULL)
		return err_set(e, ERR_USAGE, "round: this fkge knows no method of that name");
	p = mem_array(1, m->part_size > 0 ? m->part_size : sizeof(*p));
	p->method = m;
	p->settings = *s;
	p->emb = emb;
	p->floats[0] = (uint32_t)emb->ent_floats;
	p->floats[1] = (uint32_t)emb->rel_floats;
	rng_seed(&p->rng, seed);
	if (m->init != NULL)
		rc = m->init(p, e);
	if (rc != 0) {
		fed_part_free(p);
		return rc;
	}
	snprintf(p->settings.model, sizeof(p->settings.model), "%s",
		 m->beside ? "" : emb->model->name);
	p->settings.gamma = m->beside ? 0 : (double)emb->gamma;
	p->settings.ent_floats = p->floats[0];
	p->settings.rel_floats = p->floats[1];
	*out = p;
	return 0;
}

void fed_part_free(struct fed_part *p)
{
	if (p == NULL)
		return;
	if (p->method->release != NULL)
		p->method->release(p);
	free(p);
}

/* The method, what its memory depends on, the generator; then its memory. */
enum { MARK = 16, HEAD = FED_METHOD_MAX + MARK + 32 };

/* Values that mean the same are the same bytes: 0 where there is no constant, and -0 is 0. */
static void write_head(const struct fed_part *p, uint8_t head[HEAD])
{
	crypto_generichash_state h;
	double value[FED_VALUES_MAX] = { 0 };
	uint8_t *at = head + FED_METHOD_MAX;

	for (size_t i = 0; i < FED_VALUES_MAX && p->method->constant[i].key != NULL; i++)
		value[i] = p->settings.value[i] + 0.0;
	memset(head, 0, FED_METHOD_MAX);
	memcpy(head, p->method->name, strlen(p->method->name));
	crypto_generichash_init(&h, NULL, 0, MARK);
	crypto_generichash_update(&h, (const uint8_t *)value, sizeof(value));
	crypto_generichash_update(&h, (const uint8_t *)p->floats, sizeof(p->floats));
	crypto_generichash_final(&h, at, MARK);
	memcpy(at + MARK, p->rng.s, sizeof(p->rng.s));
}

void fed_part_save(const struct fed_part *p, struct buf *out)
{
	write_head(p, buf_extend(out, HEAD));
	if (p->method->save != NULL)
		p->method->save(p, out);
}

int fed_part_load(struct fed_part *p, const uint8_t *bytes, size_t n, struct err *e)
{
	uint8_t head[HEAD];

	write_head(p, head);
	if (n < HEAD || memcmp(head, bytes, HEAD - sizeof(p->rng.s)) != 0)
		return err_set(e, ERR_INPUT,
			       "saved part: not of %s with these constants and tables",
			       p->method->name);
	if (!rng_load(&p->rng, bytes + HEAD - sizeof(p->rng)))
		return err_set(e, ERR_INPUT, "saved part: its generator is damaged");
	if (p->method->load != NULL)
		return p->method->load(p, bytes + HEAD, n - HEAD, e);
	return 0;
}

/* ---- what a method leaves out ---- */

int fed_train_plain(struct fed_part *p, struct fed_training *t)
{
	int rc = 0;

	(void)p;
	if (t->epochs > 0)
		kge_trainer_reset_optimizer(t->trainer);
	for (uint32_t i = 0; rc == 0 && i < t->epochs; i++)
		rc = kge_trainer_epoch(t->trainer, &t->loss, t->cancel);
	return rc;
}

int fed_train_with(struct fed_part *p, struct fed_training *t, const struct kge_terms *terms)
{
	int rc = kge_terms_check(terms, t->config, &t->why);

	if (rc != 0 || t->epochs == 0)
		return rc;
	kge_trainer_set_terms(t->trainer, terms);
	rc = fed_train_plain(p, t);
	kge_trainer_set_terms(t->trainer, NULL);
	return rc;
}

/* ---- two tables ---- */

void fed_pair_release(struct fed_pair *pair)
{
	kge_mutual_free(pair->both);
	kge_emb_free(pair->other);
	buf_release(&pair->moments);
}

/* The number of bytes of the moments, 8 bytes, and then the moments. */
void fed_pair_save(const struct fed_pair *pair, struct buf *out)
{
	struct buf now = { 0 };
	const struct buf *kept = pair->both != NULL ? &now : &pair->moments;
	uint64_t n;

	if (!pair->keep_moments)
		return;
	if (pair->both != NULL)
		kge_mutual_save_local(pair->both, &now);
	n = kept->len;
	buf_add(out, &n, sizeof(n));
	buf_add(out, kept->base, kept->len);
	buf_release(&now);
}

bool fed_pair_load(struct fed_pair *pair, const uint8_t *bytes, size_t n)
{
	uint64_t kept;

	if (!pair->keep_moments)
		return n == 0;
	if (n < sizeof(kept))
		return false;
	memcpy(&kept, bytes, sizeof(kept));
	buf_clear(&pair->moments);
	buf_add(&pair->moments, bytes + sizeof(kept), n - sizeof(kept));
	return kept == n - sizeof(kept);
}

uint64_t fed_epochs_before(const struct fed_part *p, uint32_t epochs)
{
	return p->before + p->rounds * epochs;
}

/* Moments that are of another graph, optimizer or number of threads begin anew, as without
 * keep_moments. */
static void open_pair(struct fed_part *p, struct fed_training *t, struct fed_pair *pair)
{
	struct buf *kept = &pair->moments;
	struct err why = { 0 };

	uint64_t before = fed_epochs_before(p, t->epochs);

	if (pair->both != NULL && !pair->keep_moments)
		kge_mutual_seek(pair->both, before);
	if (pair->both != NULL)
		return;
	pair->both = kge_mutual_new(t->config, t->graph, p->emb, pair->other, pair->own_relations);
	if (kept->len == 0 || kge_mutual_load_local(pair->both, kept->base, kept->len, &why) != 0)
		kge_mutual_seek(pair->both, before);
	buf_release(kept);
}

int fed_train_pair(struct fed_part *p, struct fed_training *t, struct fed_pair *pair,
		   const struct kge_terms *own, const struct kge_terms *other)
{
	double loss[2] = { 0 };
	int rc = kge_terms_check(own, t->config, &t->why);

	if (rc == 0)
		rc = kge_terms_check(other, t->config, &t->why);
	if (rc != 0 || t->epochs == 0)
		return rc;
	open_pair(p, t, pair);
	kge_mutual_set_terms(pair->both, own, other);
	kge_mutual_reset_optimizer(pair->both, !pair->keep_moments);
	for (uint32_t i = 0; rc == 0 && i < t->epochs; i++)
		rc = kge_mutual_epoch(pair->both, loss, t->cancel);
	t->loss = loss[0];
	return rc;
}

int fed_train(struct fed_part *p, struct fed_training *t)
{
	const struct fed_method *m = p->method;
	int rc = m->train != NULL ? m->train(p, t) : fed_train_plain(p, t);

	return rc == 0 ? fed_train_beside(p, t) : rc;
}

int fed_train_beside(struct fed_part *p, struct fed_training *t)
{
	const struct fed_method *m = p->method;

	return t->epochs > 0 && m->train_beside != NULL ? m->train_beside(p, t) : 0;
}

struct kge_emb *fed_shared_table(const struct fed_part *p)
{
	return p->method->shared_table != NULL ? p->method->shared_table(p) : p->emb;
}

struct kge_emb *fed_global_table(const struct fed_part *p)
{
	return p->method->avatar ? fed_shared_table(p) : NULL;
}

uint32_t fed_dense(const struct fed_part *p)
{
	return p->method->dense != NULL ? p->method->dense(p) : 0;
}

unsigned fed_stages(const struct fed_settings *s)
{
	const struct fed_method *m = fed_method_find(s->method);
	unsigned n = m->stages != NULL ? m->stages(s) : 1;

	assert(n >= 1 && n <= FED_STAGES_MAX);
	return n;
}

void fed_shape(const struct fed_settings *s, unsigned members, unsigned stage,
	       struct fed_shape *out)
{
	const struct fed_method *m = fed_method_find(s->method);

	*out = (struct fed_shape){
		.up_ent = s->ent_floats,
		.up_rel = s->rel_floats,
		.down_ent = s->ent_floats,
		.down_rel = s->rel_floats,
	};
	if (m->shape != NULL)
		m->shape(s, members, stage, out);
}

float *fed_row(const struct kge_emb *emb, const struct fed_item *it, size_t *floats)
{
	*floats = it->tag == 'e' ? emb->ent_floats : emb->rel_floats;
	return it->tag == 'e' ? kge_ent(emb, it->id) : kge_rel(emb, it->id);
}

/* A row that is no number would pass for an attack at its home. */
static bool row_is_sound(const float *row, size_t floats)
{
	for (size_t i = 0; i < floats; i++)
		if (!(fabsf(row[i]) <= (float)FED_VALUE_MAX))
			return false;
	return true;
}

static bool fill_row(struct fed_part *p, unsigned stage, const struct fed_item *it, float *row)
{
	size_t floats;
	const float *from;

	if (p->method->up != NULL)
		return p->method->up(p, stage, it, row);
	from = fed_row(fed_shared_table(p), it, &floats);
	memcpy(row, from, floats * sizeof(*row));
	return true;
}

bool fed_up(struct fed_part *p, unsigned stage, const struct fed_item *it, float *row)
{
	struct fed_shape s;

	fed_shape(&p->settings, p->members, stage, &s);
	return fill_row(p, stage, it, row) &&
	       row_is_sound(row, it->tag == 'e' ? s.up_ent : s.up_rel);
}

/* The mean over the holders whose rows came: FedE (methods 4). */
bool fed_mean(const struct fed_upload *u, float *out, size_t floats)
{
	size_t n = 0;

	for (unsigned m = 0; m < u->members; m++)
		n += u->row[m] != NULL;
	for (size_t i = 0; n > 0 && i < floats; i++) {
		double sum = 0;

		for (unsigned m = 0; m < u->members; m++)
			sum += u->row[m] != NULL ? (double)u->row[m][i] : 0.0;
		out[i] = (float)(sum / (double)n);
	}
	return n > 0;
}

bool fed_answer(struct fed_part *p, const struct fed_upload *u, unsigned to, float *answer)
{
	struct fed_shape shape;
	size_t floats;
	bool any;

	fed_shape(&p->settings, u->members, u->stage, &shape);
	floats = u->item->tag == 'e' ? shape.down_ent : shape.down_rel;
	any = p->method->home != NULL ? p->method->home(p, u, to, answer)
				      : fed_mean(u, answer, floats);
	/* A sum, or a product, of rows that may travel each. */
	return any && row_is_sound(answer, floats);
}

void fed_down(struct fed_part *p, unsigned stage, const struct fed_item *it, const float *row)
{
	size_t floats;
	float *to;

	if (p->method->down != NULL) {
		p->method->down(p, stage, it, row);
		return;
	}
	to = fed_row(fed_shared_table(p), it, &floats);
	memcpy(to, row, floats * sizeof(*to));
}

uint64_t fed_count(const struct fed_settings *s, unsigned stage, bool up, uint64_t items,
		   uint64_t rows, uint64_t floats)
{
	const struct fed_method *m = fed_method_find(s->method);

	return m->count != NULL ? m->count(s, stage, up, items, rows, floats) : floats;
}

/* ---- the start ---- */

void fed_first_row(struct kge_emb *emb, char tag, uint32_t id, const void *label, size_t len,
		   uint64_t seed)
{
	const struct fed_item it = { .tag = tag, .id = id };
	crypto_generichash_state h;
	uint8_t kind = (uint8_t)tag, out[16];
	uint64_t drawn;
	struct rng r;
	size_t floats;
	float *row = fed_row(emb, &it, &floats);

	crypto_generichash_init(&h, NULL, 0, sizeof(out));
	crypto_generichash_update(&h, (const uint8_t *)&seed, sizeof(seed));
	crypto_generichash_update(&h, &kind, 1);
	crypto_generichash_update(&h, label, len);
	crypto_generichash_final(&h, out, sizeof(out));
	memcpy(&drawn, out, sizeof(drawn));
	rng_seed(&r, drawn);
	for (size_t i = 0; i < floats; i++)
		row[i] = rng_range(&r, -emb->range, emb->range);
	if (tag == 'r' && emb->model->init != NULL)
		emb->model->init(row, emb);
}

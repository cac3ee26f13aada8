#include "kge/unlearn.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kge/mutual.h"

/* ---- settings ---- */

enum { BATCH_MAX = 256, NEGATIVES = 256, CHUNK = 64 };

static struct kge_train_config training_of(const struct kge_train_config *trained)
{
	struct kge_train_config c = *trained;

	c.update = KGE_UPDATE_EXACT;
	if (c.negatives == 0) {
		c.negatives = NEGATIVES;
		c.shared_chunk = CHUNK;
		c.relation_weight = 0; /* these are of all entities at once */
		c.query_answers = 0;
		c.rare_weight = 1;
		c.precision = KGE_FLOAT32;
		if (c.reg == KGE_REG_DURA)
			c.reg = KGE_REG_NONE;
	}
	if (c.sampling == KGE_SAMPLING_BERNOULLI) /* draws the side: here both are asked */
		c.sampling = KGE_SAMPLING_UNIFORM;
	c.corrupt = KGE_CORRUPT_BOTH;
	if (c.batch > BATCH_MAX)
		c.batch = BATCH_MAX;
	c.schedule = KGE_SCHEDULE_CONSTANT;
	return c;
}

void kge_unlearn_defaults(struct kge_unlearn_config *c, const struct kge_train_config *trained,
			  enum kge_unlearn_variant v)
{
	bool code = v == KGE_UNLEARN_CODE;

	*c = (struct kge_unlearn_config){
		.train = training_of(trained),
		.interference = { .forgotten = code ? 5.0f : 1.0f,
				  .negatives = code ? 0.5f : 1.0f,
				  .soft = 0.1f,
				  .soft_norm = code,
				  .even = !code },
		.distill = 2.0f,
		.interference_epochs = code ? 20 : 10,
		.decay_epochs = 10,
		.decay_patience = 1,
		.protocol = kge_protocol_find("standard"),
	};
}

int kge_unlearn_check(const struct kge_unlearn_config *c, struct err *e)
{
	struct kge_terms t = { .distill = c->distill, .interfere = &c->interference };
	int rc = kge_train_check(&c->train, e);

	return rc == 0 ? kge_terms_check(&t, &c->train, e) : rc;
}

/* ---- what is kept, what is forgotten ---- */

static bool *marks_of(const struct graph *g, const uint32_t *forget, size_t n)
{
	bool *gone = mem_array(g->split[GRAPH_TRAIN].n + 1, sizeof(*gone));

	for (size_t i = 0; i < n; i++) {
		assert(forget[i] < g->split[GRAPH_TRAIN].n && !gone[forget[i]]);
		gone[forget[i]] = true;
	}
	return gone;
}

struct graph kge_kept_of(const struct graph *g, const uint32_t *forget, size_t n)
{
	const struct graph_triples *train = &g->split[GRAPH_TRAIN];
	bool *gone = marks_of(g, forget, n);
	struct graph kept = *g;
	struct graph_triples *out = &kept.split[GRAPH_TRAIN];

	out->at = mem_array(train->n - n + 1, sizeof(*out->at));
	out->n = 0;
	for (size_t i = 0; i < train->n; i++)
		if (!gone[i])
			out->at[out->n++] = train->at[i];
	free(gone);
	return kept;
}

void kge_kept_release(struct graph *kept)
{
	free(kept->split[GRAPH_TRAIN].at);
	kept->split[GRAPH_TRAIN] = (struct graph_triples){ 0 };
}

static struct graph_triples picked(const struct graph_triples *from, const uint32_t *positions,
				   size_t n)
{
	struct graph_triples t = { mem_array(n, sizeof(*t.at)), n };

	for (size_t i = 0; i < n; i++)
		t.at[i] = from->at[positions[i]];
	return t;
}

static struct graph_triples joined(const struct graph_triples *a, const struct graph_triples *b)
{
	struct graph_triples t = { mem_array(a->n + b->n + 1, sizeof(*t.at)), a->n + b->n };

	if (a->n > 0)
		memcpy(t.at, a->at, a->n * sizeof(*t.at));
	if (b->n > 0)
		memcpy(t.at + a->n, b->at, b->n * sizeof(*t.at));
	return t;
}

int kge_evaluate_forgotten(const struct kge_emb *emb, const struct graph *g, const uint32_t *forget,
			   size_t n, const struct kge_protocol *p, const struct kge_eval_options *o,
			   struct kge_metrics *out)
{
	struct graph seen = kge_kept_of(g, forget, n);
	struct kge_protocol by = *p;
	int rc;

	/* the forgotten triples stand where test does, and test beside valid */
	by.filter = 1u << GRAPH_TRAIN | 1u << GRAPH_VALID;
	seen.split[GRAPH_VALID] = joined(&g->split[GRAPH_VALID], &g->split[GRAPH_TEST]);
	seen.split[GRAPH_TEST] = picked(&g->split[GRAPH_TRAIN], forget, n);
	rc = kge_evaluate(emb, &seen, GRAPH_TEST, &by, o, out);
	free(seen.split[GRAPH_VALID].at);
	free(seen.split[GRAPH_TEST].at);
	kge_kept_release(&seen);
	return rc;
}

/* ---- the two phases ---- */

struct forgetting {
	const struct kge_unlearn_config *c;
	struct kge_emb *local, *global;
	struct graph kept;
	struct kge_unlearn_valid from; /* shares are of these */
	const atomic_bool *cancel;
};

static int table_valid_mrr(const struct forgetting *f, const struct kge_emb *emb, double *mrr)
{
	struct kge_eval_options o = { .threads = f->c->train.threads,
				      .limit = f->c->valid_limit,
				      .seed = f->c->train.seed,
				      .cancel = f->cancel };
	struct kge_metrics m = { 0 };
	int rc = 0;

	if (emb != NULL && f->kept.split[GRAPH_VALID].n > 0)
		rc = kge_evaluate(emb, &f->kept, GRAPH_VALID, f->c->protocol, &o, &m);
	*mrr = m.mrr;
	return rc;
}

static int valid_mrr(const struct forgetting *f, struct kge_unlearn_valid *v)
{
	int rc = table_valid_mrr(f, f->local, &v->local);

	return rc == 0 ? table_valid_mrr(f, f->global, &v->global) : rc;
}

static double share_left(double now, double before)
{
	return before > 0 ? now / before : 1;
}

double kge_unlearn_left(const struct kge_unlearn_valid *now, const struct kge_unlearn_valid *before)
{
	double local = share_left(now->local, before->local);

	return before->global > 0 ? fmin(local, share_left(now->global, before->global)) : local;
}

static struct kge_terms terms_of(const struct forgetting *f)
{
	return (struct kge_terms){ .distill = f->c->distill, .freeze_relations = true };
}

static int ask_enough(const struct forgetting *f, uint32_t epoch, bool *enough)
{
	*enough = false;
	return f->c->enough != NULL && epoch % f->c->check_every == 0
		       ? f->c->enough(f->c->enough_ctx, enough)
		       : 0;
}

static int interfere_until(const struct forgetting *f, struct kge_mutual *m, uint32_t *epochs)
{
	bool enough;
	int rc = ask_enough(f, 0, &enough);

	*epochs = 0;
	while (rc == 0 && !enough && *epochs < f->c->interference_epochs) {
		rc = kge_mutual_epoch(m, NULL, f->cancel);
		if (rc == 0)
			rc = ask_enough(f, ++*epochs, &enough);
	}
	return rc;
}

static int interfere(const struct forgetting *f, const struct graph *g, const uint32_t *forget,
		     size_t n, uint32_t *epochs)
{
	struct kge_mutual *m = kge_mutual_new(&f->c->train, g, f->local, f->global, false);
	struct kge_terms t = terms_of(f);
	int rc;

	t.interfere = &f->c->interference;
	kge_mutual_set_terms(m, &t, &t);
	kge_mutual_only(m, forget, n);
	rc = interfere_until(f, m, epochs);
	kge_mutual_free(m);
	return rc;
}

/* The tables as they were after the best epoch. */
struct best {
	struct kge_emb *local, *global;
	struct kge_unlearn_valid valid;
	double left;
	uint32_t epochs; /* of which there were so many */
};

static void keep_best(struct best *b, const struct forgetting *f,
		      const struct kge_unlearn_valid *valid, uint32_t epochs)
{
	kge_emb_assign(b->local, f->local);
	if (f->global != NULL)
		kge_emb_assign(b->global, f->global);
	b->valid = *valid;
	b->left = kge_unlearn_left(valid, &f->from);
	b->epochs = epochs;
}

/* Epochs until so many in a row do not raise what is left of valid's MRR. */
static int decay_until(struct kge_mutual *m, struct best *b, const struct forgetting *f)
{
	bool judged = f->kept.split[GRAPH_VALID].n > 0;
	uint32_t flat = 0;
	struct kge_unlearn_valid now;
	int rc = 0;

	for (uint32_t i = 0; i < f->c->decay_epochs && flat < f->c->decay_patience; i++) {
		rc = kge_mutual_epoch(m, NULL, f->cancel);
		if (rc == 0)
			rc = valid_mrr(f, &now);
		if (rc != 0)
			break;
		flat = judged && i > 0 && !(kge_unlearn_left(&now, &f->from) > b->left) ? flat + 1
											: 0;
		if (flat == 0)
			keep_best(b, f, &now, i + 1);
	}
	return rc;
}

static int decay(const struct forgetting *f, struct best *b)
{
	struct kge_mutual *m = kge_mutual_new(&f->c->train, &f->kept, f->local, f->global, false);
	struct kge_terms t = terms_of(f);
	int rc;

	b->local = kge_emb_copy(f->local);
	b->global = f->global != NULL ? kge_emb_copy(f->global) : NULL;
	kge_mutual_set_terms(m, &t, &t);
	rc = decay_until(m, b, f);
	kge_mutual_free(m);
	if (rc == 0) {
		kge_emb_assign(f->local, b->local);
		if (f->global != NULL)
			kge_emb_assign(f->global, b->global);
	}
	kge_emb_free(b->local);
	kge_emb_free(b->global);
	return rc;
}

int kge_unlearn(const struct kge_unlearn_config *c, const struct graph *g, const uint32_t *forget,
		size_t n, struct kge_emb *local, struct kge_emb *global,
		struct kge_unlearn_report *report, const atomic_bool *cancel)
{
	struct forgetting f = {
		c, local, global, kge_kept_of(g, forget, n), c->valid_from, cancel
	};
	struct kge_unlearn_report r = { 0 };
	struct best best = { 0 };
	int rc;

	assert(n > 0);
	rc = valid_mrr(&f, &r.valid_before);
	if (f.from.local <= 0)
		f.from = r.valid_before;
	if (rc == 0)
		rc = interfere(&f, g, forget, n, &r.interference_epochs);
	if (rc == 0)
		rc = valid_mrr(&f, &r.valid_interfered);
	if (rc == 0)
		rc = decay(&f, &best);
	r.decay_epochs = best.epochs;
	r.valid_after = best.epochs > 0 ? best.valid : r.valid_interfered;
	if (rc == 0 && report != NULL)
		*report = r;
	kge_kept_release(&f.kept);
	return rc;
}

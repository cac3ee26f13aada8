/* cli/unlearn.c - take triples back: out of the tables, the store and what else the folder keeps.
 *
 *   the triples to forget, found by name            graph/find.h
 *   the best tables forget them, and FedLU's        lab/forget.h
 *     global one, each teaching the other, until they
 *     rank like unseen ones, or nothing is changed    cli/verdict.h
 *   names that nothing has any more go, ids close up
 *   files made with the old graph go
 *   one transaction: graph, tables, signed receipt, store_forget(), cli/receipt.h
 *     hashes that a later import is held against    cli/unlearned.h
 *   the receipt's file                              folder_put_receipt()
 *   what was deleted is overwritten                 store_scrub()
 *   what may still hold their names is listed       cli/leftovers.h
 *
 * The receipt cannot be made again, so it is on disk with what it is about: whatever ends the
 * process later, the next opening for writing makes the file, and scrubs.
 * Up to the transaction nothing is changed, so an interrupt leaves everything as it was. */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/command.h"
#include "agent/core/learner.h"
#include "agent/core/unsettled.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/secret.h"
#include "base/sink.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/leftovers.h"
#include "cli/place.h"
#include "cli/receipt.h"
#include "cli/unlearned.h"
#include "cli/verdict.h"
#include "disk/trainer.h"
#include "graph/find.h"
#include "lab/forget.h"
#include "net/ident.h"
#include "store/proved.h"

struct unlearn_options {
	const char *path, *verify, *receipt;
	struct graph_load_options load;
	enum kge_unlearn_variant variant;
	uint32_t epochs, decay; /* 0: the default */
	uint32_t passes;
	double least_valid;
	bool retrain, drop, anyway;
};

struct figures {
	bool has;
	struct kge_metrics forgotten, test;
};

/* Triples to forget that the tables may have learnt. */
struct learnt {
	uint32_t *at; /* positions in full's train */
	size_t n;
	struct graph_triples joined; /* full's train, where held-out ones are among them */
};

struct unlearning {
	struct cli *cli;
	const struct unlearn_options *o;
	struct work work;
	struct graph_found found;
	/* the old names and ids; train with what is forgotten and without it */
	struct graph full, kept;
	struct learnt learnt;
	/* what the store shall have */
	struct graph *left;
	uint32_t *ent, *rel; /* new id by old one, GRAPH_NONE: gone */
	double score;
	/* how it went */
	struct forget forget;
	struct kge_unseen *unseen;
	struct verdict verdict;
	struct figures before, after, retrained;
	/* FedLU's global table, in what rounds have kept; NULL: there is none */
	struct fed_part *part;
	struct kge_emb *global; /* the part's */
	struct figures global_before, global_after;
	uint8_t digest[2][STORE_DIGEST]; /* of the tables, before and after */
	uint8_t global_digest[2][STORE_DIGEST];
	size_t states; /* deleted */
	json_t *files; /* deleted */
	json_t *leftovers;
	json_t *receipt;
	char *name;	      /* of its file, where no other is asked for */
	struct agent_job job; /* training anew; a signal sets its flag, which all work looks at */
};

/* ---- arguments ---- */

enum {
	KEY_LITERALS = 0x4000,
	KEY_RETRAIN,
	KEY_VARIANT,
	KEY_EPOCHS,
	KEY_DECAY,
	KEY_RECEIPT,
	KEY_VERIFY,
	KEY_DROP,
	KEY_PASSES,
	KEY_LEAST_VALID,
	KEY_ANYWAY
};

static const char *const format_words[] = {
	[GRAPH_ANY] = "auto",	   [GRAPH_TSV] = "tsv",
	[GRAPH_OPENKE] = "openke", [GRAPH_NTRIPLES] = "ntriples",
	[GRAPH_TURTLE] = "turtle", [GRAPH_NQUADS] = "nquads",
	[GRAPH_TRIG] = "trig",	   NULL
};
static const char *const variant_words[] = { "paper", "code", NULL };

static const struct argp_option unlearn_options[] = {
	{ "format", 'f', "WORD", 0,
	  "tsv, openke, ntriples, turtle, nquads or trig (default auto: by the name, else by the "
	  "content)",
	  0 },
	{ "keep-literals", KEY_LITERALS, NULL, 0, "RDF: as the graph was imported", 0 },
	{ "variant", KEY_VARIANT, "WORD", 0,
	  "weights of FedLU's paper, its negatives weighed alike, or of its released code, where "
	  "they weigh as in train.loss (default code)",
	  0 },
	{ "passes", KEY_PASSES, "N", 0, "of unlearning, each stronger, at most (default 12)", 0 },
	{ "epochs", KEY_EPOCHS, "N", 0,
	  "of interference in the first pass, at most (default 10, of code 20)", 0 },
	{ "decay", KEY_DECAY, "N", 0, "epochs at most on what is kept, a pass (default 10)", 0 },
	{ "least-valid", KEY_LEAST_VALID, "SHARE", 0,
	  "of valid's MRR that must be left, in each table (default 0.8)", 0 },
	{ "retrain", KEY_RETRAIN, NULL, 0,
	  "train anew on what is kept first, and compare with that: costs a whole training", 0 },
	{ "anyway", KEY_ANYWAY, NULL, 0,
	  "where unlearning does not succeed, take them out of the graph all the same", 0 },
	{ "drop-tables", KEY_DROP, NULL, 0,
	  "delete all embeddings instead, and train anew afterwards: the certain way", 0 },
	{ "receipt", KEY_RECEIPT, "FILE", 0,
	  "where the receipt goes (default unlearn-TIME.json in the agent's folder)", 0 },
	{ "verify", KEY_VERIFY, "RECEIPT", 0,
	  "check a receipt's signature; with FILE, that it is about these triples", 0 },
	{ 0 },
};

static void check_together(const struct argp_state *state, const struct unlearn_options *o)
{
	if (o->path == NULL && o->verify == NULL)
		argp_usage(state);
	if (o->verify != NULL && (o->retrain || o->drop || o->receipt != NULL))
		argp_error(state, "--verify only looks: leave out what forgets");
	if (o->drop && (o->retrain || o->anyway))
		argp_error(state, "--drop-tables leaves nothing to compare: leave out --retrain "
				  "and --anyway");
}

static error_t parse_unlearn(int key, char *arg, struct argp_state *state)
{
	struct unlearn_options *o = state->input;

	switch (key) {
	case 'f':
		o->load.format = (enum graph_format)cli_word(state, arg, "--format", format_words);
		return 0;
	case KEY_LITERALS:
		o->load.keep_literals = true;
		return 0;
	case KEY_VARIANT:
		o->variant =
			(enum kge_unlearn_variant)cli_word(state, arg, "--variant", variant_words);
		return 0;
	case KEY_EPOCHS:
		o->epochs = (uint32_t)cli_count(state, arg, "--epochs", 1, 10000);
		return 0;
	case KEY_DECAY:
		o->decay = (uint32_t)cli_count(state, arg, "--decay", 1, 10000);
		return 0;
	case KEY_PASSES:
		o->passes = (uint32_t)cli_count(state, arg, "--passes", 1, 100);
		return 0;
	case KEY_LEAST_VALID:
		o->least_valid = cli_number(state, arg, "--least-valid", 0, 1);
		return 0;
	case KEY_ANYWAY:
		o->anyway = true;
		return 0;
	case KEY_RETRAIN:
		o->retrain = true;
		return 0;
	case KEY_DROP:
		o->drop = true;
		return 0;
	case KEY_RECEIPT:
		o->receipt = arg;
		return 0;
	case KEY_VERIFY:
		o->verify = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (o->path != NULL)
			return ARGP_ERR_UNKNOWN;
		o->path = arg;
		return 0;
	case ARGP_KEY_END:
		check_together(state, o);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- what is kept ---- */

/* Of a split, the triples whose positions are not in the ascending list. */
static struct graph_triples without(const struct graph_triples *t, const uint32_t *positions,
				    size_t n)
{
	struct graph_triples out = { mem_array(t->n - n + 1, sizeof(*out.at)), 0 };

	for (size_t i = 0, k = 0; i < t->n; i++)
		if (k < n && positions[k] == i)
			k++;
		else
			out.at[out.n++] = t->at[i];
	return out;
}

static void make_views(struct unlearning *u)
{
	u->full = u->kept = *u->work.graph;
	for (int s = 0; s < GRAPH_SPLITS; s++)
		u->kept.split[s] =
			without(&u->work.graph->split[s], u->found.positions[s], u->found.n[s]);
	u->full.split[GRAPH_VALID] = u->kept.split[GRAPH_VALID];
	u->full.split[GRAPH_TEST] = u->kept.split[GRAPH_TEST];
}

/* All that may be in the tables has to be forgotten: the triples of train, and those of valid and
 * test where nothing shows that the tables never had them in train.  Those count as of train. */
static void list_learnt(struct unlearning *u, bool held_out)
{
	const struct graph_triples *train = &u->work.graph->split[GRAPH_TRAIN];
	size_t n = u->found.n[GRAPH_TRAIN];

	u->learnt.at = mem_array(u->found.triples.n + 1, sizeof(*u->learnt.at));
	for (u->learnt.n = 0; u->learnt.n < n; u->learnt.n++)
		u->learnt.at[u->learnt.n] = u->found.positions[GRAPH_TRAIN][u->learnt.n];
	if (!held_out)
		return;
	u->learnt.joined.at = mem_array(train->n + u->found.triples.n, sizeof(*train->at));
	memcpy(u->learnt.joined.at, train->at, train->n * sizeof(*train->at));
	u->learnt.joined.n = train->n;
	for (int s = GRAPH_VALID; s <= GRAPH_TEST; s++)
		for (size_t i = 0; i < u->found.n[s]; i++) {
			u->learnt.at[u->learnt.n++] = (uint32_t)u->learnt.joined.n;
			u->learnt.joined.at[u->learnt.joined.n++] =
				u->work.graph->split[s].at[u->found.positions[s][i]];
		}
	u->full.split[GRAPH_TRAIN] = u->learnt.joined;
}

static void release_views(struct unlearning *u)
{
	free(u->learnt.at);
	free(u->learnt.joined.at);
	for (int s = 0; s < GRAPH_SPLITS && u->kept.entities != NULL; s++)
		free(u->kept.split[s].at);
}

static void mark_names(const struct graph *g, bool *ent, bool *rel)
{
	for (int s = 0; s < GRAPH_SPLITS; s++)
		for (size_t i = 0; i < g->split[s].n; i++) {
			struct graph_triple t = g->split[s].at[i];

			ent[t.head] = ent[t.tail] = rel[t.rel] = true;
		}
}

/* The names that stay, under new ids: those that had a triple and have none now go. */
static uint32_t *close_up(const struct graph_vocab *from, const bool *had, const bool *has,
			  struct graph_vocab *to)
{
	uint32_t n = graph_vocab_count(from), *ids = mem_array((size_t)n + 1, sizeof(*ids));

	for (uint32_t i = 0; i < n; i++) {
		size_t len;
		const char *name = graph_vocab_name(from, i, &len);

		ids[i] = had[i] && !has[i] ? GRAPH_NONE : graph_vocab_add(to, name, len);
	}
	return ids;
}

static void make_left(struct unlearning *u)
{
	const struct graph *g = u->work.graph;
	size_t n_ent = (size_t)graph_vocab_count(g->entities) + 1;
	size_t n_rel = (size_t)graph_vocab_count(g->relations) + 1;
	bool *had = mem_array(n_ent + n_rel, 1), *has = mem_array(n_ent + n_rel, 1);

	mark_names(g, had, had + n_ent);
	mark_names(&u->kept, has, has + n_ent);
	u->left = graph_new();
	u->ent = close_up(g->entities, had, has, u->left->entities);
	u->rel = close_up(g->relations, had + n_ent, has + n_ent, u->left->relations);
	for (int s = 0; s < GRAPH_SPLITS; s++)
		for (size_t i = 0; i < u->kept.split[s].n; i++) {
			struct graph_triple t = u->kept.split[s].at[i];

			graph_add(u->left, (enum graph_split)s,
				  (struct graph_triple){ u->ent[t.head], u->rel[t.rel],
							 u->ent[t.tail] });
		}
	free(had);
	free(has);
}

static void keep_rows(float *to, const float *from, const uint32_t *ids, uint32_t n, size_t floats)
{
	for (uint32_t i = 0; i < n; i++)
		if (ids[i] != GRAPH_NONE)
			memcpy(to + ids[i] * floats, from + i * floats, floats * sizeof(*to));
}

static void keep_all_rows(const struct unlearning *u, struct kge_emb *to,
			  const struct kge_emb *from)
{
	keep_rows(to->ent, from->ent, u->ent, from->n_ent, from->ent_floats);
	keep_rows(to->rel, from->rel, u->rel, from->n_rel, from->rel_floats);
}

/* The tables with the rows of names that stay. */
static struct kge_emb *tables_left(const struct unlearning *u)
{
	const struct kge_emb *old = u->work.emb;
	struct rng any;
	struct kge_emb *e;

	rng_seed(&any, 0);
	e = kge_emb_new_dims(old->model, old->dim, old->model->own_rel_dim ? old->rel_dim : 0,
			     old->gamma, graph_vocab_count(u->left->entities),
			     graph_vocab_count(u->left->relations), &any);
	e->range = old->range;
	keep_all_rows(u, e, old);
	return e;
}

/* The part beside these.  Moments that were kept go: they have seen the triples. */
static struct fed_part *part_left(struct unlearning *u, struct kge_emb *emb)
{
	struct fed_part *p;
	int rc = fed_part_new(&p, &u->part->settings, emb, 0, NULL);

	assert(rc == 0); /* it was made of the same before */
	(void)rc;
	p->rng = u->part->rng;
	keep_all_rows(u, fed_global_table(p), u->global);
	kge_emb_digest(fed_global_table(p), u->global_digest[1]);
	return p;
}

/* ---- figures ---- */

/* Ranks of the forgotten triples that train had, and of test; forgotten ones hide nobody. */
static int score_figures(struct unlearning *u, const struct kge_emb *emb, struct figures *f)
{
	const struct config *c = &u->work.folder.config;
	const struct kge_protocol *p = config_protocol(c);
	struct kge_eval_options o = { .threads = c->train.kge.threads, .cancel = &u->job.cancel };
	int rc = 0;

	*f = (struct figures){ .has = true };
	if (u->learnt.n > 0)
		rc = kge_evaluate_forgotten(emb, &u->full, u->learnt.at, u->learnt.n, p, &o,
					    &f->forgotten);
	if (rc == 0 && u->kept.split[GRAPH_TEST].n > 0)
		rc = kge_evaluate(emb, &u->kept, GRAPH_TEST, p, &o, &f->test);
	return rc;
}

/* As the running agent will judge them. */
static int score_of(struct unlearning *u, const struct graph *g, const struct kge_emb *emb,
		    double *score)
{
	const struct config *c = &u->work.folder.config;
	struct agent_learner_kge *l =
		agent_learner_new(&c->train.kge, g, config_protocol(c), c->eval.valid_limit);
	const struct agent_learner *ops = agent_learner_ops(l);
	struct agent_job job = { 0 };
	int rc = ops->evaluate(ops->ctx, emb, &job, score);

	agent_learner_free(l);
	return rc;
}

/* ---- tables that never saw the triples ---- */

struct anew {
	struct agent_learner_kge *learner;
	struct kge_emb *emb, *best;
	double top;
	uint32_t worse; /* validations since the best */
};

static int judge_anew(struct unlearning *u, struct anew *a)
{
	const struct agent_learner *ops = agent_learner_ops(a->learner);
	double score;
	int rc = ops->evaluate(ops->ctx, a->emb, &u->job, &score);

	if (rc != 0)
		return rc;
	a->worse = score > a->top ? 0 : a->worse + 1;
	if (a->worse == 0) {
		a->top = score;
		kge_emb_assign(a->best, a->emb);
	}
	return 0;
}

/* Epochs are counted in the verdict. */
static int train_anew(struct unlearning *u, struct anew *a)
{
	const struct config_train *t = &u->work.folder.config.train;
	const struct agent_learner *ops = agent_learner_ops(a->learner);
	uint64_t *done = &u->verdict.retrain_epochs;
	int rc = 0;

	while (rc == 0 && *done < t->epochs && (t->patience == 0 || a->worse < t->patience)) {
		rc = ops->train(ops->ctx, a->emb, 1, false, &u->job);
		if (rc != 0)
			break;
		++*done;
		if (*done % t->eval_every == 0 || *done == t->epochs)
			rc = judge_anew(u, a);
	}
	return rc;
}

/* Train as `fkge train --fresh` does, on the old ids, so that forgotten names have a row. */
static int retrain(struct unlearning *u)
{
	const struct config *c = &u->work.folder.config;
	struct anew a = { .emb = lab_work_new_tables(c, &u->kept), .top = -1 };
	int rc;

	a.best = kge_emb_copy(a.emb);
	a.learner =
		agent_learner_new(&c->train.kge, &u->kept, config_protocol(c), c->eval.valid_limit);
	rc = train_anew(u, &a);
	if (rc == 0)
		rc = score_figures(u, a.best, &u->retrained);
	if (rc == 0)
		rc = kge_unseen_set_retrained(u->unseen, a.best, c->train.kge.threads,
					      &u->job.cancel);
	u->verdict.retrained = rc == 0;
	agent_learner_free(a.learner);
	kge_emb_free(a.emb);
	kge_emb_free(a.best);
	return rc;
}

/* ---- forgetting ---- */

static int open_tables(struct unlearning *u, struct err *e)
{
	struct err none = { 0 };
	int rc = lab_work_load(&u->work, 0, &none);

	if (rc == ERR_NOTFOUND)
		return 0;
	if (rc != 0)
		return err_set(e, rc, "%s", none.text);
	if (u->work.folder.config.train.kge.dp.epsilon > 0)
		return err_set(e, ERR_USAGE,
			       "train.dp: unlearning looks at the triples without noise, so the "
			       "tables would be private no more; take --drop-tables, then train");
	rc = forget_open_part(&u->part, &u->work, e);
	u->global = u->part != NULL ? fed_global_table(u->part) : NULL;
	return rc;
}

static void settle(struct unlearning *u)
{
	const struct config *c = &u->work.folder.config;

	forget_init(&u->forget, c, &c->train.kge, u->o->variant);
	if (u->o->epochs > 0)
		u->forget.config.interference_epochs = u->o->epochs;
	if (u->o->decay > 0)
		u->forget.config.decay_epochs = u->o->decay;
}

static int evaluate_both(struct unlearning *u, struct figures *own, struct figures *global)
{
	int rc = score_figures(u, u->work.emb, own);

	return rc == 0 && u->global != NULL ? score_figures(u, u->global, global) : rc;
}

/* Test, which nothing here decides by, stays out of sight. */
static struct graph blind_of(const struct unlearning *u)
{
	struct graph blind = u->full;

	blind.split[GRAPH_TEST] = (struct graph_triples){ 0 };
	return blind;
}

static int too_few(const struct unlearning *u, struct err *e)
{
	return err_set(e, ERR_FAIL,
		       "valid has %zu triples to compare with, and %d are needed to see whether "
		       "unlearning works; nothing was changed. With --retrain tables that are "
		       "trained anew without the triples are compared with (%llu epochs or so); "
		       "--drop-tables forgets for certain",
		       u->verdict.counts.held_out, KGE_UNSEEN_LEAST,
		       (unsigned long long)u->work.info.epochs);
}

/* The reference that the forgotten triples are compared with. */
static int find_unseen(struct unlearning *u, struct err *e)
{
	const struct config *c = &u->work.folder.config;
	struct graph blind = blind_of(u);

	u->unseen = kge_unseen_new(&blind, u->learnt.at, u->learnt.n, u->ent, u->rel,
				   config_protocol(c), c->train.kge.seed);
	kge_unseen_count(u->unseen, &u->verdict.counts);
	if (u->verdict.counts.queries == 0)
		return 0;
	if (u->o->retrain)
		return retrain(u);
	return u->verdict.counts.held_out < KGE_UNSEEN_LEAST ? too_few(u, e) : 0;
}

static int forget_both(struct unlearning *u, struct err *e)
{
	struct graph blind = blind_of(u);
	int rc = find_unseen(u, e);

	u->verdict.word = VERDICT_NAMES_GONE;
	if (rc != 0 || u->verdict.counts.queries == 0)
		return rc;
	rc = forget_until(&u->forget, &blind, u->learnt.at, u->learnt.n, u->unseen, u->o->passes,
			  u->o->least_valid, u->work.emb, u->global, &u->verdict.how,
			  &u->job.cancel, e);
	u->verdict.word = verdict_of_passes(&u->verdict.how);
	return rc;
}

static void find_learnt(struct unlearning *u)
{
	size_t held_out = u->found.n[GRAPH_VALID] + u->found.n[GRAPH_TEST];
	uint8_t graph[STORE_DIGEST];
	bool only;

	store_graph_digest(u->work.graph, graph);
	only = u->global == NULL && lab_work_learnt_only(&u->work, u->digest[0], graph);
	list_learnt(u, !only && held_out > 0);
	if (u->learnt.joined.at != NULL)
		lab_note(&u->cli->notes,
			 "Nothing shows that the embeddings never had the %zu triples of valid and "
			 "test in train (partners' rows, an import of embeddings or another split "
			 "may bring them): they are unlearned as those of train are; --drop-tables "
			 "forgets for certain\n",
			 held_out);
}

static int change_tables(struct unlearning *u, struct err *e)
{
	int rc;

	settle(u);
	kge_emb_digest(u->work.emb, u->digest[0]);
	find_learnt(u);
	if (u->global != NULL)
		kge_emb_digest(u->global, u->global_digest[0]);
	rc = evaluate_both(u, &u->before, &u->global_before);
	u->verdict.word = VERDICT_NOT_TRAINED;
	if (rc == 0 && u->learnt.n > 0)
		rc = forget_both(u, e);
	if (rc == 0)
		rc = evaluate_both(u, &u->after, &u->global_after);
	return rc;
}

/* ---- the receipt ---- */

static json_t *metrics_json(const struct kge_metrics *m)
{
	json_t *j = json_object();

	json_object_set_new(j, "queries", json_integer((json_int_t)m->queries));
	json_object_set_new(j, "mrr", store_json_of_number(m->queries > 0 ? m->mrr : NAN));
	json_object_set_new(j, "hits1", store_json_of_number(m->queries > 0 ? m->hits1 : NAN));
	return j;
}

static json_t *figures_json(const struct figures *f)
{
	json_t *j = json_object();

	if (!f->has) {
		json_decref(j);
		return json_null();
	}
	json_object_set_new(j, "forgotten", metrics_json(&f->forgotten));
	json_object_set_new(j, "test", metrics_json(&f->test));
	return j;
}

static json_t *set_json(const struct unlearning *u)
{
	uint8_t salt[RECEIPT_SALT], digest[RECEIPT_DIGEST];
	json_t *j = json_object();

	secret_draw(NULL, salt, sizeof(salt));
	receipt_digest(u->work.graph, u->found.triples.at, u->found.triples.n, salt, digest);
	json_object_set_new(j, "triples", json_integer((json_int_t)u->found.triples.n));
	for (int s = 0; s < GRAPH_SPLITS; s++)
		json_object_set_new(j, graph_split_words[s],
				    json_integer((json_int_t)u->found.n[s]));
	json_object_set_new(j, "salt", store_json_of_hex(salt, sizeof(salt)));
	json_object_set_new(j, "digest", store_json_of_hex(digest, sizeof(digest)));
	return j;
}

static json_t *settings_json(const struct unlearning *u)
{
	const struct kge_unlearn_config *c = &u->forget.config;

	return json_pack(
		"{s:s, s:o, s:o, s:o, s:s, s:i, s:i, s:i, s:i, s:o, s:b}", "variant",
		variant_words[u->o->variant], "forgotten_weight",
		store_json_of_number((double)c->interference.forgotten), "negatives_weight",
		store_json_of_number((double)c->interference.negatives), "soft_weight",
		store_json_of_number((double)c->interference.soft), "soft",
		c->interference.soft_norm ? "norm" : "mean", "interference_epochs",
		(int)u->forget.report.interference_epochs, "decay_epochs",
		(int)u->forget.report.decay_epochs, "batch", (int)c->train.batch, "negatives",
		(int)c->train.negatives, "lr", store_json_of_number((double)c->train.lr),
		"global_table", (int)(u->global != NULL));
}

static uint32_t gone(const struct graph_vocab *before, const struct graph_vocab *after)
{
	return graph_vocab_count(before) - graph_vocab_count(after);
}

static json_t *global_json(const struct unlearning *u)
{
	if (u->global == NULL)
		return json_null();
	return json_pack("{s:o, s:o}", "before",
			 store_json_of_hex(u->global_digest[0], STORE_DIGEST), "after",
			 store_json_of_hex(u->global_digest[1], STORE_DIGEST));
}

static json_t *tables_json(const struct unlearning *u)
{
	json_t *j;

	if (u->work.emb == NULL)
		return json_null();
	j = json_object();
	json_object_set_new(j, "before", store_json_of_hex(u->digest[0], STORE_DIGEST));
	json_object_set_new(j, "after", store_json_of_hex(u->digest[1], STORE_DIGEST));
	json_object_set_new(j, "valid_score", store_json_of_number(u->score));
	json_object_set_new(j, "global", global_json(u));
	json_object_set_new(j, "settings", settings_json(u));
	return j;
}

static json_t *graph_json(const struct unlearning *u)
{
	const struct graph *g = u->work.graph;
	uint8_t digest[STORE_DIGEST];
	json_t *j = json_object();

	store_graph_digest(u->left, digest);
	json_object_set_new(j, "after", store_json_of_hex(digest, sizeof(digest)));
	json_object_set_new(j, "entities_removed",
			    json_integer(gone(g->entities, u->left->entities)));
	json_object_set_new(j, "relations_removed",
			    json_integer(gone(g->relations, u->left->relations)));
	return j;
}

/* The changes to the graph, the tables and the saved states. */
static void put_changes(json_t *j, const struct unlearning *u)
{
	json_object_set_new(j, "graph", graph_json(u));
	json_object_set_new(j, "tables", tables_json(u));
	json_object_set_new(j, "states_deleted", json_integer((json_int_t)u->states));
}

static json_t *make_receipt(struct unlearning *u)
{
	json_t *j = json_object(), *figures = json_object();

	json_object_set_new(j, "fkge_unlearn", json_integer(RECEIPT_VERSION));
	json_object_set_new(j, "time_ms", json_integer(lab_work_wall_ms()));
	json_object_set_new(j, "set", set_json(u));
	json_object_set_new(j, "verdict", verdict_json(&u->verdict));
	if (u->verdict.applied)
		put_changes(j, u);
	json_object_set_new(j, "leftovers", json_incref(u->leftovers));
	json_object_set_new(j, "protocol",
			    lab_work_protocol_json(config_protocol(&u->work.folder.config)));
	json_object_set_new(figures, "before", figures_json(&u->before));
	json_object_set_new(figures, "after", figures_json(&u->after));
	json_object_set_new(figures, "global_before", figures_json(&u->global_before));
	json_object_set_new(figures, "global_after", figures_json(&u->global_after));
	json_object_set_new(figures, "retrained", figures_json(&u->retrained));
	json_object_set_new(j, "figures", figures);
	receipt_sign(j, u->work.folder.identity);
	return j;
}

/* The text of the signed receipt; free() it. */
static char *sign_receipt(struct unlearning *u)
{
	json_int_t time_ms;

	u->receipt = make_receipt(u);
	time_ms = json_integer_value(json_object_get(u->receipt, "time_ms"));
	u->name = mem_printf("unlearn-%lld.json", (long long)time_ms);
	return json_dumps(u->receipt,
			  JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(17));
}

/* Into the same transaction: the name of its file, LF, and the file's contents. */
static void add_receipt(struct unlearning *u, struct store_batch *b)
{
	char *text = sign_receipt(u);
	struct buf kept = { 0 };

	buf_printf(&kept, "%s\n%s", u->name, text);
	store_batch_meta(b, FOLDER_META_RECEIPT, kept.base, kept.len);
	buf_release(&kept);
	free(text);
}

/* Prefixes, and the labels of names that stay. */
static int add_words(struct unlearning *u, struct store_batch *b, struct err *e)
{
	struct buf saved = { 0 };
	int rc = lab_work_load_words(&u->work, e);

	if (rc == 0 && u->work.words != NULL) {
		graph_words_save(u->work.words, u->left, &saved);
		store_batch_meta(b, FOLDER_META_WORDS, saved.base, saved.len);
	}
	buf_release(&saved);
	return rc;
}

/* ---- the transaction ---- */

/* So that no import brings them back. */
static int add_unlearned(struct unlearning *u, struct store_batch *b, struct err *e)
{
	struct unlearned all;
	int rc = unlearned_load(&all, u->work.folder.store, e);

	if (rc == 0) {
		unlearned_add(&all, u->work.graph, &u->found.triples);
		unlearned_put(&all, b);
	}
	unlearned_release(&all);
	return rc;
}

static int count_states(struct unlearning *u, struct err *e)
{
	struct store_checkpoint *all;
	int rc = store_checkpoints(u->work.folder.store, &all, &u->states, e);

	free(all);
	return rc;
}

/* Rounds go on from tables that are the best ones, with the part that was kept beside them. */
static void add_part(struct unlearning *u, struct store_batch *b, struct store_checkpoint *info,
		     struct kge_emb *emb)
{
	struct fed_part *p = part_left(u, emb);
	struct buf saved = { 0 };

	info->kind = STORE_LATEST;
	store_batch_tables(b, info, kge_emb_copy(emb), u->digest[1]);
	fed_part_save(p, &saved);
	store_batch_meta_owned(b, AGENT_META_PART, saved.base, saved.len);
	fed_part_free(p);
}

static void keep_learnt_mark(const struct unlearning *u, struct store_batch *b)
{
	uint8_t graph[STORE_DIGEST];

	store_graph_digest(u->left, graph);
	lab_work_put_learnt(b, u->digest[1], graph);
}

static int add_tables(struct unlearning *u, struct store_batch *b)
{
	struct store_checkpoint info = { .kind = STORE_BEST,
					 .created_ms = lab_work_wall_ms(),
					 .epochs = u->work.info.epochs,
					 .seed = u->work.folder.config.train.kge.seed };
	struct kge_emb *emb = tables_left(u);
	int rc = score_of(u, u->left, emb, &u->score);

	info.valid_score = u->score;
	config_score_name(&u->work.folder.config, info.protocol);
	store_batch_checkpoint(b, &info, emb);
	memcpy(u->digest[1], b->at[0].u.checkpoint.info.digest, STORE_DIGEST);
	if (u->verdict.word == VERDICT_NOT_TRAINED) /* and so it is with what is kept */
		keep_learnt_mark(u, b);
	if (u->global != NULL)
		add_part(u, b, &info, emb);
	return rc;
}

static int change_store(struct unlearning *u, struct err *e)
{
	struct store_batch b = { 0 };
	struct store_kept k = { .kept = u->left,
				.ent = u->ent,
				.rel = u->rel,
				.n_ent = graph_vocab_count(u->work.graph->entities),
				.n_rel = graph_vocab_count(u->work.graph->relations),
				.anew = &b,
				.keep_meta = { AGENT_META, AGENT_META_CLOSE, STORE_META_RESTORED,
					       AGENT_META_UNSETTLED, FOLDER_META_BLANKS,
					       STORE_META_PROVED } };
	int rc = count_states(u, e);

	if (rc == 0 && u->work.emb != NULL)
		rc = add_tables(u, &b);
	if (rc == 0)
		rc = add_words(u, &b, e);
	if (rc == 0)
		rc = add_unlearned(u, &b, e);
	if (rc == 0) {
		add_receipt(u, &b);
		rc = store_forget(u->work.folder.store, &k, e);
	}
	store_batch_release(&b);
	return rc;
}

/* ---- files that were made with the old graph ---- */

static int remove_file(struct unlearning *u, const char *folder, const char *name, struct err *e)
{
	char *path = file_join(folder, name);
	int rc = 0;

	if (unlink(path) == 0)
		json_array_append_new(u->files, store_json_of_text(path));
	else if (errno != ENOENT)
		rc = err_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	free(path);
	return rc;
}

/* NAME.state, and what a writer that was killed has left: NAME.state.part (base/sink.h), of older
 * ones NAME.state.PID.tmp (base/file.h). */
static bool is_state(const char *name)
{
	return file_ends_in(name, ".state") || file_ends_in(name, ".state" SINK_ASIDE) ||
	       (file_ends_in(name, ".tmp") && strstr(name, ".state.") != NULL);
}

/* States in a folder that may not be there. */
static int remove_states(struct unlearning *u, const char *folder, struct err *e)
{
	DIR *d = opendir(folder);
	struct dirent *entry;
	int rc = 0;

	while (d != NULL && rc == 0 && (entry = readdir(d)) != NULL)
		if (is_state(entry->d_name))
			rc = remove_file(u, folder, entry->d_name, e);
	if (d != NULL)
		closedir(d);
	return rc;
}

static void note_gone(void *ctx, const char *path)
{
	struct unlearning *u = ctx;

	json_array_append_new(u->files, store_json_of_text(path));
}

/* Of an agent that was killed while train.command ran; what the last run printed. */
static int remove_runs(struct unlearning *u, struct err *e)
{
	int rc = command_clear(u->work.folder.path, note_gone, u, e);

	return rc == 0 ? remove_file(u, u->work.folder.path, FOLDER_COMMAND_LOG, e) : rc;
}

/* What is there under its name and is something else is the owner's, and may be a leftover. */
static int remove_encoder(struct unlearning *u, const char *name, struct err *e)
{
	static const struct place_kind kind = { "encoder", "fkgerun1" };
	const char *folder = u->work.folder.path;
	char *path = file_join(folder, name);
	struct stat st;
	bool is = lstat(path, &st) == 0 && S_ISREG(st.st_mode) &&
		  cli_check_place(path, &kind, NULL) == 0;

	free(path);
	return is ? remove_file(u, folder, name, e) : 0;
}

/* An interrupted training, interrupted trials of a search; tables trained past memory; what was
 * trained on answers of the graph. */
static int remove_files(struct unlearning *u, struct err *e)
{
	const char *folder = u->work.folder.path;
	char *tune = file_join(folder, "tune"), *parts = file_join(folder, FOLDER_PARTITIONS);
	int rc = remove_states(u, folder, e);

	if (rc == 0)
		rc = remove_states(u, tune, e);
	if (rc == 0)
		rc = remove_file(u, folder, FOLDER_TABLES, e);
	if (rc == 0)
		rc = remove_file(u, folder, FOLDER_TABLES SINK_ASIDE, e);
	if (rc == 0)
		rc = remove_encoder(u, FOLDER_ENCODER, e);
	if (rc == 0)
		rc = remove_encoder(u, FOLDER_ENCODER SINK_ASIDE, e);
	disk_trainer_clear(parts);
	if (rc == 0 && file_exists(parts))
		rc = err_set(e, ERR_IO, "%s: cannot be removed", parts);
	if (rc == 0)
		rc = remove_runs(u, e);
	free(tune);
	free(parts);
	return rc;
}

static int write_receipt(struct unlearning *u, struct err *e)
{
	char *own = file_join(u->work.folder.path, u->name);
	const char *path = u->o->receipt != NULL ? u->o->receipt : own;
	struct err why = { 0 };
	int rc = folder_put_receipt(&u->work.folder, path, &why);

	if (rc == 0) {
		cli_put(u->cli, "receipt_file", store_json_of_text(path));
		cli_say(u->cli, "receipt: %s\n", path);
	} else {
		err_set(e, rc,
			"%s; the triples are forgotten and the receipt is kept: the next command "
			"that writes to the folder (train, serve) makes %s",
			why.text, own);
	}
	free(own);
	return rc;
}

/* ---- what it came to ---- */

enum { FIGURES_TEXT = 64 };

/* Where all that is forgotten was of test, there is nothing to rank. */
static void figures_text(const struct kge_metrics *m, char out[FIGURES_TEXT])
{
	if (m->queries == 0)
		snprintf(out, FIGURES_TEXT, "(none to rank)");
	else
		snprintf(out, FIGURES_TEXT, "MRR %.4f Hits@1 %.4f", m->mrr, m->hits1);
}

static void say_figures(const struct unlearning *u, const char *when, const struct figures *f)
{
	char forgotten[FIGURES_TEXT], test[FIGURES_TEXT];

	if (!f->has)
		return;
	figures_text(&f->forgotten, forgotten);
	figures_text(&f->test, test);
	cli_say(u->cli, "%-14s forgotten %s   test %s\n", when, forgotten, test);
}

static void say_leftovers(const struct unlearning *u)
{
	size_t n = json_array_size(u->leftovers);

	if (n > 0)
		cli_say(u->cli, "%zu files of the folder may still hold them:\n", n);
	for (size_t i = 0; i < n; i++) {
		const json_t *f = json_array_get(u->leftovers, i);

		cli_say(u->cli, "  %s (%s)\n", json_string_value(json_object_get(f, "file")),
			json_string_value(json_object_get(f, "kind")));
	}
}

static void say_outcome(struct unlearning *u)
{
	const struct graph *g = u->work.graph;

	cli_say(u->cli,
		"taken out of the graph: %zu triples (%zu of train, %zu of valid, %zu of test); %u "
		"entities and "
		"%u relations occur no more\n",
		u->found.triples.n, u->found.n[GRAPH_TRAIN], u->found.n[GRAPH_VALID],
		u->found.n[GRAPH_TEST], gone(g->entities, u->left->entities),
		gone(g->relations, u->left->relations));
	say_figures(u, "before", &u->before);
	say_figures(u, "after", &u->after);
	say_figures(u, "global, before", &u->global_before);
	say_figures(u, "global, after", &u->global_after);
	say_figures(u, "retrained", &u->retrained);
	cli_say(u->cli, "deleted: %zu states of the embeddings, %zu files\n", u->states,
		json_array_size(u->files));
	say_leftovers(u);
	verdict_say(u->cli, json_object_get(u->receipt, "verdict"));
	if (u->work.emb != NULL)
		cli_say(u->cli,
			"The changed tables are the best state now, valid score %.4f; partners "
			"hear "
			"of it when the agent runs again. What they have averaged in before is not "
			"taken back.\n",
			u->score);
	else
		cli_say(u->cli, "There are no embeddings now: train anew.\n");
}

static int finish_unlearning(struct unlearning *u, struct err *e)
{
	cli_put(u->cli, "files_deleted", json_incref(u->files));
	cli_put(u->cli, "receipt", json_incref(u->receipt));
	say_outcome(u);
	return write_receipt(u, e);
}

/* ---- when it did not work ---- */

/* The receipt says so; nothing else is written. */
static int write_failure(struct unlearning *u, struct err *e)
{
	char *text = sign_receipt(u);
	char *own = file_join(u->work.folder.path, u->name);
	const char *path = u->o->receipt != NULL ? u->o->receipt : own;
	int rc = file_write_atomic(path, text, strlen(text), 0600, e);

	cli_put(u->cli, "receipt", json_incref(u->receipt));
	verdict_say(u->cli, json_object_get(u->receipt, "verdict"));
	if (rc == 0) {
		cli_put(u->cli, "receipt_file", store_json_of_text(path));
		cli_say(u->cli, "receipt: %s\n", path);
	}
	free(own);
	free(text);
	return rc;
}

static int did_not_work(const struct unlearning *u, struct err *e)
{
	const char *why = u->verdict.word == VERDICT_HURT
				  ? "the embeddings forget only with too great a loss on valid"
				  : "the embeddings still rank the triples above unseen ones";
	char word[TEXT_WORD];

	if (u->verdict.applied)
		return err_set(e, ERR_FAIL,
			       "%s; the graph has them no more, so train anew: fkge -d %s "
			       "train --fresh",
			       why, text_word(u->work.folder.path, word));
	return err_set(e, ERR_FAIL,
		       "%s; nothing was changed. The certain way is --drop-tables, then fkge -d %s "
		       "train; --passes, --epochs and --least-valid let it try harder",
		       why, text_word(u->work.folder.path, word));
}

/* The receipt of an attempt that changed nothing may be replaced; one of triples that are gone, a
 * file of the agent's or the list of triples itself may not. */
static int refuse_other_file(const char *path, const struct stat *st, struct err *e)
{
	struct err why = { 0 };
	json_t *receipt = NULL;
	bool fits = !S_ISREG(st->st_mode) || st->st_size == 0;

	if (!fits && receipt_read(&receipt, path, &why) == 0)
		fits = json_object_get(receipt, "graph") == NULL;
	json_decref(receipt);
	return fits ? 0
		    : err_set(e, ERR_EXISTS, "--receipt %s: is there already; name another file",
			      path);
}

/* When the triples are gone the receipt cannot be made again, so its place is looked at first. */
static int check_receipt_path(const char *path, struct err *e)
{
	char *copy = mem_strdup(path);
	struct stat st;
	bool there = stat(path, &st) == 0;
	int rc = 0;

	if (there && S_ISDIR(st.st_mode))
		rc = err_set(e, ERR_IO, "--receipt %s: is a folder; name a file", path);
	else if (access(dirname(copy), W_OK | X_OK) != 0)
		rc = err_set(e, ERR_IO, "--receipt %s: %s", path, strerror(errno));
	else if (there)
		rc = refuse_other_file(path, &st, e);
	free(copy);
	return rc;
}

/* By the names that the file's nodes have in this folder. */
static int find_triples(struct unlearning *u, struct err *e)
{
	struct graph_load_options how = u->o->load;
	uint8_t key[GRAPH_BLANK_KEY];
	bool has;
	int rc = folder_blank_key(&u->work.folder, key, &has, e);

	how.blank_key = has ? key : NULL;
	if (rc == 0)
		rc = graph_find(&u->found, u->work.graph, u->o->path, &how, e);
	sodium_memzero(key, sizeof(key));
	return rc;
}

static int prepare(struct unlearning *u, struct err *e)
{
	int rc = find_triples(u, e);

	if (rc == 0 && u->o->receipt != NULL)
		rc = check_receipt_path(u->o->receipt, e);
	if (rc != 0)
		return rc;
	make_views(u);
	if (u->kept.split[GRAPH_TRAIN].n == 0)
		return err_set(e, ERR_INPUT,
			       "these are all triples of train: nothing would be left; to forget "
			       "everything, delete the agent's folder");
	make_left(u);
	u->verdict.word = u->o->drop ? VERDICT_TABLES_GONE : VERDICT_NO_TABLES;
	u->verdict.passes_max = u->o->passes;
	u->verdict.least_valid = u->o->least_valid;
	return u->o->drop ? 0 : open_tables(u, e);
}

/* Up to here nothing is changed, from here on everything. */
static int change(struct unlearning *u, struct err *e)
{
	int rc;

	u->verdict.applied = true;
	/* First the files: if anything fails here, the same command can be given again. */
	rc = remove_files(u, e);
	u->leftovers = leftovers_find(u->work.folder.path, u->work.graph, u->found.triples.at,
				      u->found.triples.n);
	return rc == 0 ? change_store(u, e) : rc;
}

static int forget_them(struct unlearning *u, struct err *e)
{
	struct waiting *wait = lab_waiting_begin(&u->cli->notes, "unlearning");
	int rc = u->work.emb != NULL ? change_tables(u, e) : 0;

	if (rc == ERR_CANCELED)
		err_set(e, rc, "stopped; nothing was changed");
	if (rc == 0 && (verdict_reached(&u->verdict) || u->o->anyway))
		rc = change(u, e);
	lab_waiting_end(wait);
	return rc;
}

static int unlearn(struct unlearning *u, struct err *e)
{
	struct err why = { 0 };
	int rc = prepare(u, e), scrubbed;

	if (rc != 0)
		return rc;
	lab_work_watch_interrupts(&u->job.cancel);
	rc = forget_them(u, e);
	if (rc != 0)
		return rc;
	if (!u->verdict.applied) {
		rc = write_failure(u, e);
		return rc == 0 ? did_not_work(u, e) : rc;
	}
	rc = finish_unlearning(u, e);
	scrubbed = store_scrub(u->work.folder.store, &why);
	if (rc == 0 && scrubbed != 0)
		rc = err_set(e, scrubbed,
			     "the triples are forgotten, but their bytes are not overwritten yet: "
			     "the next command that writes to the folder does so first: %s",
			     why.text);
	return rc == 0 && !verdict_reached(&u->verdict) ? did_not_work(u, e) : rc;
}

/* ---- receipts ---- */

/* As `fkge id` of who signed shows it. */
static void say_key(const struct cli *cli, const json_t *receipt)
{
	const char *hex = json_string_value(json_object_get(receipt, "sign_key"));
	uint8_t key[LEDGER_KEY];
	char id[NET_KEY_TEXT];

	static_assert((int)LEDGER_KEY == (int)NET_KEY_BYTES, "one kind of key");
	if (sodium_hex2bin(key, sizeof(key), hex, strlen(hex), NULL, NULL, NULL) != 0)
		abort(); /* the signature was checked by it */
	net_key_format(key, id);
	cli_say(cli, "the signature fits the signing key %s\n", id);
}

static void say_receipt(const struct cli *cli, const json_t *receipt)
{
	const json_t *set = json_object_get(receipt, "set"), *figures;
	static const char *const when[][2] = { { "before", "before" },
					       { "after", "after" },
					       { "global_before", "global, before" },
					       { "global_after", "global, after" },
					       { "retrained", "retrained" } };

	say_key(cli, receipt);
	cli_say(cli, "%lld triples to be forgotten\n",
		(long long)json_integer_value(json_object_get(set, "triples")));
	figures = json_object_get(receipt, "figures");
	for (size_t i = 0; i < sizeof(when) / sizeof(when[0]); i++) {
		const json_t *f = json_object_get(figures, when[i][0]);
		const json_t *u = json_object_get(f, "forgotten"), *t = json_object_get(f, "test");

		if (json_is_object(f))
			cli_say(cli, "%-14s forgotten MRR %.4f   test MRR %.4f\n", when[i][1],
				json_number_value(json_object_get(u, "mrr")),
				json_number_value(json_object_get(t, "mrr")));
	}
	verdict_say(cli, json_object_get(receipt, "verdict"));
}

static int check_file(const json_t *receipt, const struct unlearn_options *o, struct err *e)
{
	struct err why = { 0 };
	struct graph *g;
	int rc = graph_load(&g, o->path, &o->load, NULL, e);

	if (rc != 0)
		return rc;
	rc = receipt_check_set(receipt, g, &why);
	if (rc != 0)
		err_set(e, rc, "%.200s, %.200s: %.400s", o->path, o->verify, why.text);
	graph_free(g);
	return rc;
}

static int verify(struct cli *cli, const struct unlearn_options *o, struct err *e)
{
	json_t *receipt;
	int rc = receipt_read(&receipt, o->verify, e);

	if (rc != 0)
		return rc;
	if (o->path != NULL)
		rc = check_file(receipt, o, e);
	if (rc == 0)
		say_receipt(cli, receipt);
	if (rc == 0 && o->path != NULL)
		cli_say(cli, "it is about the triples of %s\n", o->path);
	cli_put(cli, "receipt", receipt);
	return rc;
}

static const char unlearn_doc[] =
	"Forget the triples of FILE: the best embeddings unlearn them, and graph, "
	"saved states, copies of the store and interrupted trainings lose them, and an "
	"encoder of fkge queries train goes. All must be in the graph, a first line of column "
	"names too. The agent must not be "
	"running.\v"
	"Names that no triple has any more go too, and with them their rows; "
	"alignments are then made again in the next sessions. A signed receipt "
	"names the set by a digest (whoever sees it can try guesses of the set) and "
	"says how the forgotten triples and the test "
	"split ranked before and after.  It is on disk with the change: where "
	"something ends the command before its file is written, the next one that "
	"writes to the folder (train, serve) leaves it there as "
	"unlearn-TIME.json.\n\n"
	"With federation.mode rounds, the tables of the last round go too, and the "
	"next one begins from the unlearned best ones. FedLU's global table forgets "
	"together with the best one, each teaching the other, and the next round "
	"takes its rows to the other holders; the receipt has figures of both. What "
	"else a method keeps (FedE-KD's narrow table) begins anew.\n\n"
	"Did it work? The forgotten triples are ranked beside triples of their kind "
	"that were never seen: held-out ones of valid, by relation and degree, or "
	"(--retrain, which costs a whole training) the same ones in tables trained "
	"anew without them. Passes of unlearning go on, each stronger, until the "
	"mean reciprocal rank of the forgotten is at most a tenth above that of the "
	"unseen. Triples of valid and test are ranked and unlearned, too, but where the store "
	"shows that the tables have learnt nothing but train as it is. Where the last pass ends "
	"above, or valid falls under "
	"--least-valid, "
	"nothing is changed (but with --anyway), the receipt says so and the exit "
	"status is 1. The verdict is about the mean of all: it says nothing about a "
	"single triple, nor about who has tables of before. --drop-tables forgets "
	"for certain.\n\n"
	"Not done: what partners have averaged into their own embeddings, copies of "
	"the folder, and files that you exported or put there stay as they are; "
	"those in the folder that may hold the triples' names are listed. Signed "
	"records of queries' steps (fkge queries list) go on naming their relations. "
	"In rounds "
	"the next mean brings back what partners' rows still hold of it.\n\n"
	"A later fkge import leaves the triples out and says how many they are: the store keeps a "
	"hash of each, under a key beside it, by which guesses of single triples can be tried.\n\n"
	"Examples:\n  fkge -d acme unlearn withdrawn.tsv --retrain\n"
	"  fkge unlearn --verify unlearn-1767225600000.json withdrawn.tsv";

/* What training past memory leaves holds triples and rows, and would go on holding them. */
static int refuse_past(const struct folder *f, struct err *e)
{
	char *path = file_join(f->path, FOLDER_PARTITIONS);
	int rc = folder_refuse_tables(f, "forgetting", e);

	if (rc == 0 && file_exists(path))
		rc = err_set(e, ERR_USAGE,
			     "%s holds triples of a training that was interrupted: let it end, or "
			     "take --drop-tables, and train anew then",
			     path);
	free(path);
	return rc;
}

int cmd_unlearn(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct unlearn_options o = { .variant = KGE_UNLEARN_CODE,
				     .passes = KGE_UNLEARN_PASSES,
				     .least_valid = .8 };
	struct unlearning u = { .cli = cli, .o = &o };
	const struct cli_syntax s = {
		.options = unlearn_options,
		.parse = parse_unlearn,
		.args = "[FILE]",
		.doc = unlearn_doc,
		.input = &o,
	};
	int rc;

	graph_load_defaults(&o.load);
	o.load.valid_share = o.load.test_share = 0;
	o.load.keep_header = true; /* a triple that is passed over would not be forgotten */
	cli_parse(cli, &s, argc, argv);
	if (o.verify != NULL)
		return verify(cli, &o, e);
	rc = lab_work_open(&u.work, cli->folder, FOLDER_IDENTITY | FOLDER_WRITE, e);
	if (rc != 0)
		return rc;
	u.files = json_array();
	rc = o.drop ? 0 : refuse_past(&u.work.folder, e);
	if (rc == 0)
		rc = unlearn(&u, e);
	json_decref(u.files);
	json_decref(u.leftovers);
	kge_unseen_free(u.unseen);
	json_decref(u.receipt);
	free(u.name);
	release_views(&u);
	graph_free(u.left);
	free(u.ent);
	free(u.rel);
	graph_found_release(&u.found);
	fed_part_free(u.part);
	lab_work_close(&u.work);
	return rc;
}

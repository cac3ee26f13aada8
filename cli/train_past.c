/* cli/train_past.c - `fkge train` past memory: the tables are in partitions on disk (disk/).
 *
 * Beside training.state lies the folder of partitions, whose files it names.  What valid likes best
 * is kept there, too, and becomes the agent's tables (disk/table.h) when the training ends, however
 * it ends. */
#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/train_internal.h"
#include "disk/order.h"
#include "disk/table.h"

static struct kge_emb past_shape(const struct training *t)
{
	const struct config *c = &t->work.folder.config;

	return kge_emb_shape(config_model(c), c->model.dim, c->model.rel_dim,
			     (float)config_gamma(c), t->size.entities, t->size.relations);
}

/* How many queries a look at valid ranks. */
static size_t queries_of_valid(const struct training *t)
{
	const struct config *c = &t->work.folder.config;
	size_t all = t->size.valid, some = c->eval.valid_limit;

	return (some > 0 && some < all ? some : all) *
	       (config_protocol(c)->sides == KGE_SIDES_BOTH ? 2 : 1);
}

json_t *train_past_plan(const struct training *t)
{
	json_int_t ranks = t->past.comm != NULL ? (json_int_t)t->past.comm->size : 0;

	if (t->past.whole)
		return json_pack("{s:I}", "ranks", ranks);
	return !t->past.on ? json_false()
			   : json_pack("{s:I, s:I, s:I}", "parts", (json_int_t)t->past.plan.parts,
				       "buffer", (json_int_t)t->past.plan.buffer, "ranks", ranks);
}

/* As it began: what memory there is now does not matter.  Older states do not say. */
static bool saved_plan(struct training *t, const json_t *j)
{
	json_int_t parts = json_integer_value(json_object_get(j, "parts"));
	json_int_t buffer = json_integer_value(json_object_get(j, "buffer"));

	t->past.on = json_is_object(j);
	if (json_is_false(j))
		return true;
	if (buffer < 2 || buffer > DISK_BUFFER_MAX || parts < buffer || parts > DISK_PARTS_MAX ||
	    parts > (json_int_t)t->size.entities)
		return false;
	t->past.plan = (struct disk_plan){ .parts = (uint32_t)parts, .buffer = (uint32_t)buffer };
	return true;
}

int train_past_resume(struct training *t, const struct saved *s, struct err *e)
{
	const json_t *plan = json_object_get(s->head, "partitions");
	json_int_t ranks = json_integer_value(json_object_get(plan, "ranks"));
	int rc = train_ranks_check_saved(t, ranks > 0 ? (uint32_t)ranks : 0, e);

	if (rc != 0)
		return rc;
	if (plan == NULL || ranks > 0)
		return train_past_decide(t, e);
	return saved_plan(t, plan) ? 0 : err_set(e, ERR_INPUT, "%s: no such partitions", s->path);
}

int train_past_decide(struct training *t, struct err *e)
{
	const struct config *c = &t->work.folder.config;
	struct disk_need need = { .c = &c->train.kge,
				  .shape = past_shape(t),
				  .triples = t->size.train,
				  .queries = queries_of_valid(t),
				  .limited = c->train.memory_mib > 0 };
	double bytes;
	int rc;

	if (t->past.comm != NULL)
		return train_ranks_decide(t, e);
	t->past.on =
		config_past_memory(c, t->size.entities, t->size.relations, t->size.train, &bytes);
	if (!t->past.on)
		return 0;
	rc = disk_plan_make(&t->past.plan, &need, bytes, c->train.partitions, e);
	if (rc == 0)
		lab_note(&t->cli->notes,
			 "Training past memory: %u of %u partitions at a time, about %.0f MiB\n",
			 t->past.plan.buffer, t->past.plan.parts, t->past.plan.bytes / (1 << 20));
	return rc;
}

/* Names and triples take memory that the partitions are to have. */
static void drop_graph(struct training *t)
{
	graph_free(t->work.graph);
	t->work.graph = NULL;
	malloc_trim(0);
}

static int make_disk(struct training *t, const struct kge_protocol *protocol,
		     const struct kge_emb *shape, struct err *e)
{
	const struct config *c = &t->work.folder.config;
	const struct kge_eval_options o = { .threads = c->train.kge.threads,
					    .limit = c->eval.valid_limit,
					    .seed = c->train.kge.seed };
	char *folder = file_join(t->work.folder.path, FOLDER_PARTITIONS);
	int rc = disk_trainer_new(&t->past.trainer, &c->train.kge, shape, &t->past.plan, folder,
				  &t->work.graph->split[GRAPH_TRAIN], e);

	free(folder);
	if (rc == 0)
		t->past.ranking = kge_ranking_new(t->work.graph, GRAPH_VALID, protocol, &o);
	return rc;
}

int train_past_make(struct training *t, struct err *e)
{
	const struct kge_protocol protocol = lab_work_valid_protocol(&t->work.folder.config);
	struct kge_emb shape = past_shape(t);
	int rc = t->past.comm != NULL ? train_ranks_make(t, &protocol, &shape, e)
				      : make_disk(t, &protocol, &shape, e);

	if (rc == 0)
		drop_graph(t);
	return rc;
}

bool train_past_made(const struct training *t)
{
	return t->past.trainer != NULL || t->past.ranks != NULL;
}

/* ---- where to begin ---- */

int train_check_tables(const struct training *t, struct err *e)
{
	const struct config *c = &t->work.folder.config;
	const struct kge_emb *m = t->work.emb;

	if (config_fits(c, m) && (double)fabsf(m->gamma - (float)config_gamma(c)) < 1e-6)
		return 0;
	return err_set(e, ERR_USAGE,
		       "the best state is %s of dim %zu, rel_dim %zu and gamma %g, %s %s, %u, %u, "
		       "%g: put the old values back, or begin again with --fresh",
		       m->model->name, m->dim, m->rel_dim, (double)m->gamma,
		       config_who_says_model(c), c->model.kind, c->model.dim, c->model.rel_dim,
		       config_gamma(c));
}

/* Of the agent's tables, if it has some that fit.  ERR_NOTFOUND: it has none. */
static int open_own_tables(struct training *t, struct disk_table *head, struct err *e)
{
	const struct folder *f = &t->work.folder;
	int rc = folder_has_tables(f)
			 ? disk_table_open(f->path, FOLDER_TABLES, head, &t->work.emb, e)
			 : ERR_NOTFOUND;

	if (rc != 0)
		return rc;
	if (!disk_table_is_of(head, t->past.names, t->graph_digest) ||
	    head->n_ent != t->size.entities || head->n_rel != t->size.relations)
		return err_set(e, ERR_USAGE,
			       "%s/" FOLDER_TABLES " is of another graph: import the old one "
			       "again, or begin again with --fresh",
			       f->path);
	return train_check_tables(t, e);
}

static int refuse_best(const struct training *t, struct err *e)
{
	struct store_checkpoint best;
	int rc = store_find_best(t->work.folder.store, &best, e);

	return rc != 0 || best.id == 0
		       ? rc
		       : err_set(e, ERR_USAGE,
				 "the best state was trained in memory, where it would begin: "
				 "begin again with --fresh, which keeps it as a saved one");
}

int train_past_check(struct training *t, bool fresh, struct err *e)
{
	struct kge_emb shape = past_shape(t);
	struct disk_table head;
	int rc = t->past.comm != NULL ? train_ranks_check(t, &shape, e) : 0;

	if (rc != 0 || fresh || t->past.stored)
		return rc;
	rc = open_own_tables(t, &head, e);
	kge_emb_free(t->work.emb);
	t->work.emb = NULL;
	return rc == ERR_NOTFOUND ? refuse_best(t, e) : rc;
}

static bool read_own_head(const struct training *t, struct disk_table *head)
{
	struct err ignored = { 0 };
	struct kge_emb *emb;
	int rc = disk_table_open(t->work.folder.path, FOLDER_TABLES, head, &emb, &ignored);

	kge_emb_free(emb);
	return rc == 0;
}

bool train_past_diverged(const struct training *t)
{
	struct err ignored = { 0 };
	struct disk_table head;
	struct kge_emb *emb;
	bool finite =
		disk_table_open(t->work.folder.path, FOLDER_TABLES, &head, &emb, &ignored) != 0 ||
		kge_emb_finite(emb);

	kge_emb_free(emb);
	if (!finite)
		lab_note(&t->cli->notes,
			 "%s/" FOLDER_TABLES " is of a training that diverged (a number is not "
			 "finite): beginning anew\n",
			 t->work.folder.path);
	return !finite;
}

/* The best state, if there is one, stays until there is another one. */
static int note_replaced(struct training *t, struct err *e)
{
	struct store_checkpoint best;
	struct disk_table head;
	int rc = store_find_best(t->work.folder.store, &best, e);

	if (rc != 0)
		return rc;
	t->replaced.stays = best.id != 0 || folder_has_tables(&t->work.folder);
	if (best.id != 0) {
		folder_drop_tables(&t->work.folder); /* that were left behind it */
		memcpy(t->replaced.digest, best.digest, DIGEST);
	} else if (read_own_head(t, &head)) {
		memcpy(t->replaced.digest, head.tables, DIGEST);
	}
	return 0;
}

static int begin_new(struct training *t, bool fresh, struct err *e)
{
	struct rng r;
	int rc = fresh ? note_replaced(t, e) : 0;

	if (rc != 0)
		return rc;
	rng_seed(&r, t->work.folder.config.train.kge.seed);
	return train_past_first(t, &r, NULL, e);
}

int train_past_begin(struct training *t, bool fresh, bool *rescore, struct err *e)
{
	char name[CONFIG_SCORE_NAME];
	struct disk_table head;
	int rc = fresh ? ERR_NOTFOUND : open_own_tables(t, &head, e);

	*rescore = false;
	if (rc == ERR_NOTFOUND)
		return begin_new(t, fresh, e);
	if (rc == 0)
		rc = train_past_first(t, NULL, t->work.emb, e);
	kge_emb_free(t->work.emb);
	t->work.emb = NULL;
	if (rc != 0)
		return rc;
	config_score_name(&t->work.folder.config, name);
	*rescore = strcmp(name, head.protocol) != 0 ||
		   memcmp(head.graph, t->graph_digest, DIGEST) != 0;
	if (*rescore)
		lab_note(&t->cli->notes,
			 "The score of " FOLDER_TABLES " was of protocol %s, or on other triples; "
			 "judging it by %s on these: too well, where triples of valid were in "
			 "train before (--fresh begins anew)\n",
			 head.protocol, name);
	t->has_best = !*rescore;
	t->score = head.score;
	t->epochs = t->epochs_best = head.epochs;
	return train_past_keep_best(t, e);
}

static bool is_best_of(const json_t *state, double score, uint64_t epochs)
{
	return score == json_number_value(json_object_get(state, "score")) &&
	       (json_int_t)epochs == json_integer_value(json_object_get(state, "epochs_best"));
}

/* Is what the state calls its best the agent's best?  That is in the store, where ranks had memory
 * for it, or in the file of tables. */
static bool is_among_tables(const struct training *t, const json_t *state)
{
	struct store_checkpoint best;
	struct err ignored = { 0 };
	struct disk_table head;

	if (store_find_best(t->work.folder.store, &best, &ignored) != 0)
		return false;
	if (best.id != 0)
		return is_best_of(state, best.valid_score, best.epochs);
	return read_own_head(t, &head) && is_best_of(state, head.score, head.epochs);
}

int train_past_refuse(const struct training *t, const char *path, struct err *e)
{
	struct err ignored = { 0 };
	struct saved s;
	bool lost;

	if (saved_open(&s, path, &ignored) != 0)
		return 0;
	lost = json_object_get(json_object_get(s.head, "partitions"), "parts") != NULL &&
	       json_is_true(json_object_get(s.head, "has_best")) && !is_among_tables(t, s.head);
	saved_close(&s);
	if (!lost)
		return 0;
	return err_set(e, ERR_USAGE,
		       "a training past memory was cut off in %s, and its best tables are "
		       "in " FOLDER_PARTITIONS
		       " alone: go on with --resume, or drop them with --fresh",
		       t->work.folder.path);
}

/* Whether a state of the store has these tables, as after fkge checkpoint save. */
static bool is_stored(const struct training *t, const struct disk_table *head)
{
	struct store_checkpoint *all = NULL;
	struct err ignored = { 0 };
	bool is = false;
	size_t n = 0;

	if (store_checkpoints(t->work.folder.store, &all, &n, &ignored) != 0)
		return false;
	for (size_t k = 0; k < n; k++)
		is |= memcmp(all[k].digest, head->tables, DIGEST) == 0;
	free(all);
	return is;
}

int train_past_keep(const struct training *t, struct err *e)
{
	const char *path = t->work.folder.path;
	struct disk_table head;
	char word[TEXT_WORD];

	if (!folder_has_tables(&t->work.folder) || !read_own_head(t, &head) || is_stored(t, &head))
		return 0;
	return err_set(e, ERR_USAGE,
		       "the best tables are of a training past memory (%s/" FOLDER_TABLES
		       "), and would be lost, for no saved state has them: keep them with fkge -d "
		       "%s checkpoint save; or copy that file first, or fkge export them, if they "
		       "are of this graph, and add --drop-tables",
		       path, text_word(path, word));
}

/* ---- while it trains ---- */

int train_past_first(struct training *t, struct rng *r, const struct kge_emb *from, struct err *e)
{
	struct past *p = &t->past;

	return p->ranks != NULL ? ranks_trainer_first(p->ranks, r, from, e)
				: disk_trainer_first(p->trainer, r, from, e);
}

int train_past_load(struct training *t, const uint8_t *bytes, size_t n, struct err *e)
{
	struct past *p = &t->past;

	return p->ranks != NULL ? ranks_trainer_load(p->ranks, bytes, n, e)
				: disk_trainer_load(p->trainer, bytes, n, e);
}

int train_past_epoch(struct training *t, disk_pause_fn *pause, struct err *e)
{
	struct past *p = &t->past;
	struct agent_job *job = &t->job;

	return p->ranks != NULL
		       ? ranks_trainer_epoch(p->ranks, &job->loss, &job->cancel, pause, t, e)
		       : disk_trainer_epoch(p->trainer, &job->loss, &job->cancel, pause, t, e);
}

int train_past_rank(struct training *t, double *score, struct err *e)
{
	struct past *p = &t->past;
	int rc = p->ranks != NULL ? ranks_trainer_rank(p->ranks, &p->metrics, e)
				  : disk_trainer_rank(p->trainer, p->ranking, &t->job.cancel,
						      &p->metrics, e);

	*score = rc != 0 ? 0 : p->metrics.diverged ? (double)NAN : p->metrics.mrr;
	return rc;
}

int train_past_keep_best(struct training *t, struct err *e)
{
	struct past *p = &t->past;

	return p->ranks != NULL ? ranks_trainer_keep_best(p->ranks, e)
				: disk_trainer_keep_best(p->trainer, e);
}

static void put_past_state(void *ctx, void (*to_file)(void *to, const void *bytes, size_t n),
			   void *to)
{
	struct past *p = ctx;

	if (p->ranks != NULL)
		ranks_trainer_save(p->ranks, to_file, to);
	else
		disk_trainer_save(p->trainer, to_file, to);
}

int train_past_save(struct training *t, const char *name, const json_t *head, struct err *e)
{
	struct past *p = &t->past;
	int rc = p->ranks != NULL ? ranks_trainer_flush(p->ranks, e)
				  : disk_trainer_flush(p->trainer, e);

	if (rc == 0)
		rc = saved_write_body(t->work.folder.path, name, head, put_past_state, p, e);
	if (rc == 0 && p->ranks != NULL)
		ranks_trainer_saved(p->ranks);
	if (rc == 0 && p->ranks == NULL)
		disk_trainer_saved(p->trainer);
	return rc;
}

/* ---- how it ends ---- */

/* Behind a best state in the store, but one that is to be replaced, the file would be nobody's. */
static int refuse_behind(const struct training *t, struct err *e)
{
	struct store_checkpoint best;
	int rc = store_find_best(t->work.folder.store, &best, e);

	if (rc != 0 || best.id == 0 || t->replaced.stays)
		return rc;
	return err_set(e, ERR_REFUSED,
		       "the tables were trained past memory, and state %llu of the store of %s "
		       "has become the best one since",
		       (unsigned long long)best.id, t->work.folder.path);
}

/* As one file, which is not the store's (disk/table.h).  Where the store has a best state of
 * before, that file is nobody's until it is a saved one. */
static int write_past_file(struct training *t, const struct kge_emb *shape, struct err *e)
{
	const struct config *c = &t->work.folder.config;
	struct past *p = &t->past;
	struct disk_best best =
		p->ranks != NULL ? ranks_trainer_best(p->ranks) : disk_trainer_best(p->trainer);
	struct disk_table head = { .score = t->score,
				   .epochs = t->epochs_best,
				   .seed = c->train.kge.seed,
				   .created_ms = lab_work_wall_ms() };
	char name[CONFIG_SCORE_NAME];
	int rc;

	config_score_name(c, name);
	snprintf(head.protocol, sizeof(head.protocol), "%s", name);
	memcpy(head.graph, t->graph_digest, DIGEST);
	memcpy(head.names, t->past.names, DIGEST);
	rc = disk_table_write(t->work.folder.path, FOLDER_TABLES, &head, shape, &best, e);
	memcpy(t->digest, head.tables, DIGEST);
	return rc;
}

/* The file is what the training began from, and nothing was better. */
static bool is_first(const struct training *t, const struct disk_table *head)
{
	return t->improved == 0 && head->score == t->score && head->epochs == t->epochs_best;
}

/* Where an older state went on, its best tables may be worse than those that were put in place
 * before: these stay, but where they are the ones to be replaced, or their score is of other
 * triples.  So do those that are the best still.  Sets what the best are then. */
static bool file_stays(struct training *t)
{
	char name[CONFIG_SCORE_NAME];
	struct disk_table head;

	config_score_name(&t->work.folder.config, name);
	if (!read_own_head(t, &head) || !disk_table_is_of(&head, t->past.names, t->graph_digest) ||
	    memcmp(head.graph, t->graph_digest, DIGEST) != 0 || strcmp(head.protocol, name) != 0 ||
	    !(is_first(t, &head) || head.score > t->score) ||
	    (t->replaced.stays && memcmp(head.tables, t->replaced.digest, DIGEST) == 0))
		return false;
	if (!is_first(t, &head))
		lab_note(&t->cli->notes,
			 "The tables in %s/" FOLDER_TABLES " are better (valid MRR %.4f) than the "
			 "best of this training (%.4f), and stay\n",
			 t->work.folder.path, head.score, t->score);
	t->score = head.score;
	t->epochs_best = head.epochs;
	memcpy(t->digest, head.tables, DIGEST);
	return true;
}

static int publish_file(struct training *t, const struct kge_emb *shape, struct err *e)
{
	int rc = refuse_behind(t, e);

	if (rc == 0 && !file_stays(t))
		rc = write_past_file(t, shape, e);
	return rc == 0 && t->replaced.stays ? store_demote_best(t->work.folder.store, e) : rc;
}

int train_past_publish(struct training *t, struct err *e)
{
	struct kge_emb shape = past_shape(t);

	return t->past.stored ? train_ranks_gather(t, &shape, e) : publish_file(t, &shape, e);
}

void train_past_put(struct training *t)
{
	struct disk_figures f;

	if (t->past.comm != NULL)
		train_ranks_put(t);
	if (t->past.trainer == NULL)
		return;
	f = disk_trainer_figures(t->past.trainer);
	cli_put(t->cli, "past_memory",
		json_pack("{s:I, s:I, s:I, s:I, s:I}", "partitions", (json_int_t)t->past.plan.parts,
			  "buffer", (json_int_t)t->past.plan.buffer, "swaps", (json_int_t)f.swaps,
			  "read_bytes", (json_int_t)f.read_bytes, "written_bytes",
			  (json_int_t)f.written_bytes));
}

void train_past_release(struct training *t)
{
	disk_trainer_free(t->past.trainer);
	kge_ranking_free(t->past.ranking);
	ranks_trainer_free(t->past.ranks);
	ranks_whole_free(t->past.among);
}

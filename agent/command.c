#include "agent/command.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/command_run.h"
#include "agent/folder.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "config/config.h"
#include "kge/optimizer.h"

#define FRESH ".XXXXXX" /* of mkdtemp() */

enum {
	PATIENCE_MS = 15000, /* mpirun takes some seconds to end its ranks */
	LATE_MS = 3000,	     /* and a rank up to one, to see that mpirun is gone */
	AGAIN_MS = 100,	     /* until one that still runs has made its folder again */
	NO_SCORE = -1,	     /* of the state that a run begins from: below any */
};

struct command {
	struct agent_training training;
	const struct config *config;
	struct graph graph; /* borrowed, but for what the program is not given */
	char *folder;	    /* of a run, but for the end of its name, which is new each time */
	char *log;
};

/* ---- what it is given ---- */

/* Fresh moments and the order of the first epoch each time would train the same batches again and
 * again, so each run has a seed of its own; the first one has the agent's.  draws: once asks for
 * the same. */
static uint64_t seed_after(const struct kge_train_config *c, uint64_t before)
{
	struct rng r;

	if (before == 0 || c->draws == KGE_DRAWS_ONCE)
		return c->seed;
	rng_seed(&r, c->seed);
	r = rng_stream(&r, before);
	return rng_u64(&r);
}

/* Borrows from c.  The rate of a schedule is the one that it has come to, for the whole run. */
static struct config run_settings(const struct config *c, uint32_t epochs, uint64_t before)
{
	static char no_command[] = "";
	struct config own = *c;
	struct kge_train_config *train = &own.train.kge;

	own.model.preset = CONFIG_PRESET_NONE; /* what it has chosen is said */
	own.train.epochs = own.train.eval_every = epochs;
	own.train.patience = own.train.partitions = 0;
	own.train.command = no_command;
	own.eval.valid_limit = 1;
	train->seed = seed_after(train, before);
	train->lr = fmaxf(train->lr * kge_schedule_at(train, (double)before), 1e-9f);
	train->schedule = KGE_SCHEDULE_CONSTANT;
	return own;
}

static int write_run_settings(const struct folder *f, const struct config *c, struct err *e)
{
	struct buf text = { 0 };
	int rc;

	buf_printf(&text, "name: training\nlisten: \"off\"\n");
	config_print_section(c, "model", &text);
	config_print_section(c, "train", &text);
	config_print_section(c, "eval", &text);
	rc = file_write_unsynced(f->config_path, text.base, text.len, 0600, e);
	buf_release(&text);
	return rc;
}

/* The tables themselves go to the store, not a copy. */
static int put_begin(struct store *s, const struct config *c, struct kge_emb *tables,
		     const uint8_t digest[STORE_DIGEST], struct err *e)
{
	struct store_checkpoint info = { .kind = STORE_BEST,
					 .valid_score = NO_SCORE,
					 .seed = c->train.kge.seed };
	struct store_batch b = { 0 };
	int rc;

	config_score_name(c, info.protocol);
	store_batch_tables(&b, &info, tables, digest);
	rc = store_apply(s, &b, e);
	b.at[0].u.checkpoint.emb = NULL;
	store_batch_release(&b);
	return rc;
}

static int open_run_store(struct store **s, const struct folder *f, const uint8_t *owner,
			  struct err *e)
{
	const struct store_options o = { .mode = STORE_OWN, .owner = owner };

	return store_open(s, f->store_path, &o, e);
}

static int fill_folder(struct folder *f, const struct command *c, const struct config *settings,
		       struct kge_emb *tables, const uint8_t digest[STORE_DIGEST], struct err *e)
{
	int rc;

	f->identity = store_identity_new();
	rc = store_identity_save(f->identity, f->identity_path, e);
	if (rc == 0)
		rc = write_run_settings(f, settings, e);
	if (rc == 0)
		rc = open_run_store(&f->store, f, f->identity->account, e);
	if (rc == 0)
		rc = store_put_graph(f->store, &c->graph, NULL, e);
	if (rc == 0)
		rc = put_begin(f->store, settings, tables, digest, e);
	store_close(f->store);
	f->store = NULL;
	return rc;
}

/* ---- what it has left ---- */

static bool same_shape(const struct kge_emb *a, const struct kge_emb *b)
{
	return a->model == b->model && a->dim == b->dim && a->rel_dim == b->rel_dim &&
	       a->n_ent == b->n_ent && a->n_rel == b->n_rel;
}

static bool is_finite(const float *at, size_t n)
{
	bool finite = true;

	for (size_t i = 0; i < n && finite; i++)
		finite = isfinite(at[i]);
	return finite;
}

static int check_left(const struct kge_emb *got, const struct kge_emb *tables, struct err *e)
{
	if (!same_shape(got, tables))
		return err_set(e, ERR_INPUT,
			       "train.command: it has left tables of %u entities and %u relations, "
			       "%s of dim %zu; they were of %u and %u, %s of dim %zu",
			       got->n_ent, got->n_rel, got->model->name, got->dim, tables->n_ent,
			       tables->n_rel, tables->model->name, tables->dim);
	if (!is_finite(got->ent, got->n_ent * got->ent_floats) ||
	    !is_finite(got->rel, got->n_rel * got->rel_floats))
		return err_set(e, ERR_INPUT,
			       "train.command: it has left rows that are not finite: a lower "
			       "train.lr may help");
	return 0;
}

static int take_left(const struct folder *f, struct kge_emb *tables, struct err *e)
{
	struct store_checkpoint info;
	struct kge_emb *got = NULL;
	struct store *s;
	int rc = open_run_store(&s, f, NULL, e);

	if (rc != 0)
		return rc;
	rc = store_restore(s, 0, &got, &info, e);
	store_close(s);
	if (rc == 0 && !(info.valid_score > NO_SCORE))
		rc = err_set(e, ERR_INPUT,
			     "train.command: it has left no state of its own; it is to train the "
			     "agent in {folder}");
	if (rc == 0)
		rc = check_left(got, tables, e);
	if (rc == 0)
		kge_emb_assign(tables, got);
	kge_emb_free(got);
	return rc;
}

/* ---- a run ---- */

static int run_program(const struct command *c, const char *path, uint32_t epochs,
		       struct agent_job *job)
{
	char *whole = realpath(path, NULL); /* ranks may begin in other folders */
	struct command_fill fill = { whole != NULL ? whole : path, epochs, PATIENCE_MS };
	int rc = command_run(c->config->train.command, &fill, c->log, &job->cancel, &job->why);

	free(whole);
	return rc;
}

static int run_in(const struct command *c, const char *path, struct kge_emb *tables,
		  uint32_t epochs, uint64_t before, struct agent_job *job)
{
	struct config settings = run_settings(c->config, epochs, before);
	uint8_t digest[STORE_DIGEST];
	struct folder f;
	int rc;

	folder_paths(&f, path);
	kge_emb_digest(tables, digest);
	rc = fill_folder(&f, c, &settings, tables, digest, &job->why);
	if (rc == 0)
		rc = run_program(c, f.path, epochs, job);
	if (rc == 0)
		rc = take_left(&f, tables, &job->why);
	folder_close(&f);
	return rc;
}

static void pause_for(long ms)
{
	const struct timespec pause = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	nanosleep(&pause, NULL);
}

/* Ranks on other machines may be ending still, and write meanwhile. */
static void remove_run(const char *path)
{
	file_remove_folder(path);
	pause_for(AGAIN_MS);
	if (!file_exists(path))
		return;
	pause_for(LATE_MS);
	file_remove_folder(path);
	if (file_exists(path))
		log_warn("train.command: %s cannot be removed, or something that the command has "
			 "left running still writes there",
			 path);
}

/* What an earlier program has left running writes to a folder that is no more. */
static int train_by_command(void *ctx, struct kge_emb *tables, uint32_t epochs, uint64_t before,
			    struct agent_job *job)
{
	struct command *c = ctx;
	char *path;
	int rc;

	if (atomic_load(&job->cancel))
		return ERR_CANCELED;
	path = mem_strdup(c->folder);
	if (mkdtemp(path) != NULL) {
		rc = run_in(c, path, tables, epochs, before, job);
		remove_run(path);
	} else {
		rc = err_set(&job->why, ERR_IO, "%s: %s", path, strerror(errno));
	}
	free(path);
	return rc;
}

/* ---- life ---- */

struct command *command_new(const struct config *config, const struct graph *g, const char *folder)
{
	struct command *c = mem_array(1, sizeof(*c));

	*c = (struct command){ .training = { c, train_by_command },
			       .config = config,
			       .graph = *g,
			       .folder = file_join(folder, FOLDER_COMMAND FRESH),
			       .log = file_join(folder, FOLDER_COMMAND_LOG) };
	c->graph.split[GRAPH_VALID].n = 1;
	c->graph.split[GRAPH_TEST] = (struct graph_triples){ 0 };
	return c;
}

void command_free(struct command *c)
{
	if (c == NULL)
		return;
	free(c->folder);
	free(c->log);
	free(c);
}

const struct agent_training *command_training(struct command *c)
{
	return &c->training;
}

static bool is_of_run(const char *name)
{
	static const char begins[] = FOLDER_COMMAND ".";

	return strncmp(name, begins, sizeof(begins) - 1) == 0 &&
	       strlen(name) == sizeof(FOLDER_COMMAND FRESH) - 1;
}

static int clear_one(const char *folder, const char *name,
		     void (*gone)(void *ctx, const char *path), void *ctx, struct err *e)
{
	char *path = file_join(folder, name), *whole = realpath(path, NULL);
	int rc = 0;

	if (whole != NULL) /* what was killed may have left its command running */
		command_end_strays(whole);
	free(whole);
	file_remove_folder(path);
	if (file_exists(path))
		rc = err_set(e, ERR_IO, "%s: cannot be removed", path);
	else if (gone != NULL)
		gone(ctx, path);
	free(path);
	return rc;
}

int command_clear(const char *folder, void (*gone)(void *ctx, const char *path), void *ctx,
		  struct err *e)
{
	DIR *d = opendir(folder);
	struct dirent *entry;
	int rc = 0;

	while (d != NULL && (entry = readdir(d)) != NULL)
		if (is_of_run(entry->d_name) && clear_one(folder, entry->d_name, gone, ctx, e) != 0)
			rc = ERR_IO;
	if (d != NULL)
		closedir(d);
	return rc;
}

/* Training by a command: what it comes to, and every way in which it does not.  The commands are
 * `fkge train` and, with a word of play_part(), this program again.
 *
 *   test_agent_command FKGE */
#include "tests/folder.h"
#include "tests/test.h"

#include <dirent.h>
#include <math.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sodium.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/command.h"
#include "agent/command_run.h"
#include "agent/folder.h"
#include "base/file.h"
#include "base/log.h"
#include "config/config.h"
#include "tests/agent/small_graph.h"

enum { ENTITIES = 40, RELATIONS = 3, TRIPLES = 400, EPOCHS = 3 };

static const char *fkge;
static char self[4096];

/* ---- an agent that trains by a command ---- */

struct agent {
	struct config config;
	struct graph *graph;
	struct kge_emb *tables;
	struct agent_learner_kge *learner; /* NULL in by: it trains itself */
	struct command *command;
	struct agent_job job;
};

static struct graph *make_graph(void)
{
	struct graph *g = small_graph(ENTITIES, RELATIONS);
	struct rng r;

	rng_seed(&r, 5);
	for (size_t i = 0; i < TRIPLES; i++)
		graph_add(g, i % 8 == 0 ? GRAPH_VALID : GRAPH_TRAIN,
			  (struct graph_triple){ rng_below(&r, ENTITIES), rng_below(&r, RELATIONS),
						 rng_below(&r, ENTITIES) });
	return g;
}

static void set(struct config *c, const char *section, const char *name, const char *value)
{
	struct err e = { 0 };
	int rc = config_set(c, section, name, value, &e);

	if (rc != 0)
		fail_msg("%s", e.text);
}

/* command NULL: the agent trains itself. */
static void open_agent(struct agent *a, const char *command, const char *schedule)
{
	struct kge_train_config train;
	struct rng r;

	memset(a, 0, sizeof(*a));
	config_init(&a->config);
	set(&a->config, "model", "dim", "8");
	set(&a->config, "train", "threads", "1");
	set(&a->config, "train", "batch", "32");
	set(&a->config, "train", "lr", "0.02");
	set(&a->config, "train", "negatives", "4");
	set(&a->config, "train", "seed", "18446744073709551615");
	set(&a->config, "train", "schedule", schedule);
	if (command != NULL)
		set(&a->config, "train", "command", command);
	assert_int_equal(config_check(&a->config, "here", NULL), 0);
	a->graph = make_graph();
	config_suit_any(&a->config);
	train = config_training(&a->config);
	rng_seed(&r, 6);
	a->tables = config_tables(&a->config, ENTITIES, RELATIONS, &r);
	a->learner = agent_learner_new(&train, a->graph, config_protocol(&a->config), 0);
	if (command == NULL)
		return;
	a->command = command_new(&a->config, a->graph, folder);
	agent_learner_train_by(a->learner, command_training(a->command));
}

static void close_agent(struct agent *a)
{
	agent_learner_free(a->learner);
	command_free(a->command);
	kge_emb_free(a->tables);
	graph_free(a->graph);
	config_release(&a->config);
}

static int train(struct agent *a)
{
	const struct agent_learner *l = agent_learner_ops(a->learner);

	memset(&a->job.why, 0, sizeof(a->job.why));
	return l->train(l->ctx, a->tables, EPOCHS, true, &a->job);
}

static char *words(const char *first, const char *rest)
{
	return mem_printf("%s %s", first, rest);
}

static void digest_of(const struct agent *a, uint8_t out[32])
{
	kge_emb_digest(a->tables, out);
}

static bool same_tables(const struct agent *a, const struct agent *b)
{
	uint8_t x[32], y[32];

	digest_of(a, x);
	digest_of(b, y);
	return memcmp(x, y, 32) == 0;
}

/* Folders of runs, whatever their last letters. */
static size_t count_folders(void)
{
	DIR *d = opendir(folder);
	struct dirent *entry;
	size_t n = 0;

	assert_non_null(d);
	while ((entry = readdir(d)) != NULL)
		n += strncmp(entry->d_name, FOLDER_COMMAND, strlen(FOLDER_COMMAND)) == 0;
	closedir(d);
	return n;
}

static void assert_folder_is_gone(void)
{
	assert_int_equal(count_folders(), 0);
}

/* ---- what it comes to ---- */

/* The first run has the agent's own bits; each other one draws otherwise, and the same again. */
static void test_trains_as_the_agent_does(void **state)
{
	char *by_fkge = words(fkge, "-q -d {folder} train --epochs {epochs}");
	struct agent own, a, b;

	(void)state;
	open_agent(&own, NULL, "constant");
	open_agent(&a, by_fkge, "constant");
	open_agent(&b, by_fkge, "constant");
	assert_int_equal(train(&own), 0);
	if (train(&a) != 0)
		fail_msg("%s", a.job.why.text);
	assert_true(same_tables(&own, &a));
	assert_int_equal(a.job.done, EPOCHS);
	assert_true(isnan(a.job.loss));
	assert_folder_is_gone();
	assert_int_equal(train(&b), 0);
	assert_int_equal(train(&a), 0);
	assert_int_equal(train(&b), 0);
	assert_true(same_tables(&a, &b));
	assert_int_equal(train(&own), 0); /* its second epochs are drawn by one generator */
	assert_false(same_tables(&own, &a));
	close_agent(&own);
	close_agent(&a);
	close_agent(&b);
	free(by_fkge);
}

/* A second run whose draws were those of the first would be no training of new batches. */
static void test_draws_anew(void **state)
{
	char *by_fkge = words(fkge, "-q -d {folder} train");
	struct agent a, b;

	(void)state;
	open_agent(&a, by_fkge, "constant");
	open_agent(&b, by_fkge, "constant");
	assert_int_equal(train(&a), 0);
	kge_emb_assign(b.tables, a.tables); /* and begins with draws of its first epoch */
	assert_int_equal(train(&b), 0);
	assert_int_equal(train(&a), 0);
	assert_false(same_tables(&a, &b));
	close_agent(&a);
	close_agent(&b);
	free(by_fkge);
}

/* How far the tables move in a run after so many others. */
static double step_after(const char *by_fkge, const char *schedule, int runs)
{
	struct agent a;
	struct kge_emb *before;
	double sum = 0;

	open_agent(&a, by_fkge, schedule);
	set(&a.config, "train", "schedule_epochs", "6");
	for (int i = 0; i < runs; i++)
		assert_int_equal(train(&a), 0);
	before = kge_emb_copy(a.tables);
	assert_int_equal(train(&a), 0);
	for (size_t i = 0; i < a.tables->n_ent * a.tables->ent_floats; i++)
		sum += fabs((double)(a.tables->ent[i] - before->ent[i]));
	kge_emb_free(before);
	close_agent(&a);
	return sum;
}

static void test_takes_the_rate_of_its_schedule(void **state)
{
	char *by_fkge = words(fkge, "-q -d {folder} train");

	(void)state;
	assert_true(step_after(by_fkge, "constant", 0) == step_after(by_fkge, "linear", 0));
	assert_true(step_after(by_fkge, "constant", 2) > 20 * step_after(by_fkge, "linear", 2));
	free(by_fkge);
}

static struct fed_part *part_of(struct kge_emb *emb, uint64_t number)
{
	struct fed_settings s;
	struct fed_part *p;

	fed_settings_init(&s, fed_method_find("fede"));
	assert_int_equal(fed_part_new(&p, &s, emb, 9, NULL), 0);
	p->rounds = number;
	return p;
}

static void train_round(struct agent *a, uint64_t number)
{
	const struct agent_learner *l = agent_learner_ops(a->learner);
	struct fed_part *p = part_of(a->tables, number);

	if (l->train_part(l->ctx, p, EPOCHS, &a->job) != 0)
		fail_msg("%s", a->job.why.text);
	assert_int_equal(a->job.done, EPOCHS);
	fed_part_free(p);
}

/* A round's draws follow from its number, as the agent's own do. */
static void test_trains_a_part(void **state)
{
	char *by_fkge = words(fkge, "-q -d {folder} train");
	struct agent own, a, b, alone;
	struct fed_part *p;

	(void)state;
	open_agent(&own, NULL, "constant");
	open_agent(&a, by_fkge, "constant");
	open_agent(&b, by_fkge, "constant");
	open_agent(&alone, by_fkge, "constant");
	train_round(&own, 0);
	train_round(&a, 0);
	assert_true(same_tables(&own, &a));
	kge_emb_assign(b.tables, a.tables);
	kge_emb_assign(alone.tables, a.tables);
	train_round(&b, 4);
	train_round(&a, 4);
	assert_true(same_tables(&a, &b));
	kge_emb_assign(b.tables, alone.tables);
	train_round(&b, 5);
	assert_false(same_tables(&a, &b));
	p = part_of(alone.tables, 4);
	assert_int_equal(agent_learner_ops(alone.learner)
				 ->train_alone(agent_learner_ops(alone.learner)->ctx, alone.tables,
					       EPOCHS, fed_epochs_before(p, EPOCHS), &alone.job),
			 0);
	assert_true(same_tables(&a, &alone));
	fed_part_free(p);
	close_agent(&own);
	close_agent(&a);
	close_agent(&b);
	close_agent(&alone);
	free(by_fkge);
}

/* An honest run may come to nothing: a state with a score is one, whatever it holds. */
static void test_takes_the_same_tables(void **state)
{
	char *same = words(self, "same {folder}");
	uint8_t before[32], after[32];
	struct agent a;

	(void)state;
	open_agent(&a, same, "constant");
	digest_of(&a, before);
	if (train(&a) != 0)
		fail_msg("%s", a.job.why.text);
	digest_of(&a, after);
	assert_memory_equal(before, after, 32);
	assert_int_equal(a.job.done, EPOCHS);
	close_agent(&a);
	free(same);
}

/* ---- what it does not come to ---- */

/* The tables are as they were, and its words say why. */
static void refuse(const char *command, int status, const char *text)
{
	struct agent a;
	uint8_t before[32], after[32];

	open_agent(&a, command, "constant");
	digest_of(&a, before);
	assert_int_equal(train(&a), status);
	if (strstr(a.job.why.text, text) == NULL)
		fail_msg("'%s' is not in '%s'", text, a.job.why.text);
	digest_of(&a, after);
	assert_memory_equal(before, after, 32);
	assert_int_equal(a.job.done, 0);
	assert_folder_is_gone();
	close_agent(&a);
}

static void refuse_part(const char *part, int status, const char *text)
{
	char *rest = mem_printf("%s {folder}", part), *command = words(self, rest);

	refuse(command, status, text);
	free(command);
	free(rest);
}

static void test_says_what_has_failed(void **state)
{
	char *fails = words(self, "fail {folder} {epochs}");
	char *dies = words(self, "die {folder}");
	char *wrong = words(fkge, "-q -d {folder} train --resume");

	(void)state;
	refuse("fkge-that-is-not-there {folder}", ERR_NOTFOUND, "No such file or directory");
	refuse(fails, ERR_FAIL,
	       "ended with status 7: it is 3 epochs; no more (its words are in "
	       "command.log)");
	refuse(dies, ERR_FAIL, "was ended by signal 9");
	refuse(wrong, ERR_FAIL, "no training was interrupted");
	free(fails);
	free(dies);
	free(wrong);
}

/* An ignored SIGCHLD, which whoever starts an agent may hand down, has nobody hear of its end. */
static void test_hears_where_nobody_would(void **state)
{
	char *fails = words(self, "fail {folder} {epochs}");

	(void)state;
	signal(SIGCHLD, SIG_IGN);
	refuse(fails, ERR_FAIL, "ended with status 7");
	signal(SIGCHLD, SIG_DFL);
	free(fails);
}

/* fkge ignores it (cli/main.c), and the program has what the system gives. */
static void test_ends_at_the_limit_of_files(void **state)
{
	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	refuse_part("large", ERR_FAIL, "was ended by signal 25");
	signal(SIGXFSZ, SIG_DFL);
}

static void test_takes_no_other_tables(void **state)
{
	(void)state;
	refuse_part("keep", ERR_INPUT, "it has left no state of its own");
	refuse_part("spoil", ERR_INPUT, "not finite");
	refuse_part("shrink", ERR_INPUT, "they were of 40 and 3");
	refuse_part("empty", ERR_STORE, "store.db");
}

/* Once the child says who it is. */
static void *cancel_then(void *job)
{
	struct timespec pause = { .tv_nsec = 20 * 1000000L };
	char *path = file_join(folder, "child");

	while (!file_exists(path))
		nanosleep(&pause, NULL);
	atomic_store(&((struct agent_job *)job)->cancel, true);
	free(path);
	return NULL;
}

/* The number that a part has written into this file of the folder, for once. */
static pid_t pid_in(const char *name)
{
	char *path = file_join(folder, name);
	struct buf text = { 0 };
	pid_t pid;

	assert_int_equal(file_read(path, 100, &text, NULL), 0);
	unlink(path);
	buf_add(&text, "", 1);
	pid = (pid_t)strtol((const char *)text.base, NULL, 10);
	buf_release(&text);
	free(path);
	return pid;
}

static bool is_running(pid_t pid)
{
	char *path = mem_printf("/proc/%d/stat", (int)pid);
	struct buf text = { 0 };
	bool running = file_read(path, 4096, &text, NULL) == 0 &&
		       strstr((buf_add(&text, "", 1), (const char *)text.base), ") Z") == NULL;

	buf_release(&text);
	free(path);
	return running;
}

/* It has got its signal; how soon it is gone is the system's to say. */
static void assert_ends(const char *name)
{
	struct timespec pause = { .tv_nsec = 20 * 1000000L };
	pid_t pid = pid_in(name);

	for (int i = 0; i < 500 && is_running(pid); i++)
		nanosleep(&pause, NULL);
	assert_false(is_running(pid));
}

static void test_ends_what_hangs(void **state)
{
	char *hangs = words(self, "hang {folder}/.."), *heard = file_join(folder, "heard");
	struct agent a;
	pthread_t t;

	(void)state;
	open_agent(&a, hangs, "constant");
	assert_int_equal(pthread_create(&t, NULL, cancel_then, &a.job), 0);
	assert_int_equal(train(&a), ERR_CANCELED);
	pthread_join(t, NULL);
	assert_true(file_exists(heard));
	unlink(heard);
	assert_ends("parent");
	assert_ends("child");
	assert_folder_is_gone();
	assert_int_equal(train(&a), ERR_CANCELED); /* before it begins */
	close_agent(&a);
	free(hangs);
	free(heard);
}

/* One that does not hear, with a child of its own. */
static void test_kills_what_does_not_hear(void **state)
{
	struct command_fill fill = { folder, 1, 200 };
	char *deaf = words(self, "deaf {folder}"), *log = file_join(folder, "log");
	struct agent_job job = { 0 };
	struct err e = { 0 };
	pthread_t t;

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, cancel_then, &job), 0);
	assert_int_equal(command_run(deaf, &fill, log, &job.cancel, &e), ERR_CANCELED);
	pthread_join(t, NULL);
	assert_ends("parent");
	assert_ends("child");
	free(deaf);
	free(log);
}

/* Once it is under way, and its end waits for this. */
static void *ignore_then(void *unused)
{
	struct timespec pause = { .tv_nsec = 20 * 1000000L };
	char *path = file_join(folder, "child");

	while (!file_exists(path))
		nanosleep(&pause, NULL);
	signal(SIGCHLD, SIG_IGN);
	unlink(path);
	free(path);
	return unused;
}

static void test_knows_no_end(void **state)
{
	struct command_fill fill = { folder, 1, 200 };
	char *waits = words(self, "wait {folder}"), *log = file_join(folder, "log");
	const atomic_bool never = false;
	struct err e = { 0 };
	pthread_t t;

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, ignore_then, NULL), 0);
	assert_int_equal(command_run(waits, &fill, log, &never, &e), ERR_IO);
	pthread_join(t, NULL);
	signal(SIGCHLD, SIG_DFL);
	assert_non_null(strstr(e.text, "how it has ended is not known: No child processes"));
	free(waits);
	free(log);
}

/* Words are words: nothing in them is run, and what is left behind is ended. */
static void test_runs_no_shell(void **state)
{
	static const char odd[] = "  'a;b' $(id) >{folder}|\t--epochs={epochs}{folder} {epoch}  ";
	struct command_fill fill = { folder, 12, 200 };
	char *rest = mem_printf("say %s", odd), *says = words(self, rest);
	char *leaves = words(self, "leave {folder}"), *log = file_join(folder, "log");
	char *goes = words(self, "away {folder}");
	char *want = mem_printf("['a;b']\n[$(id)]\n[>%s|]\n[--epochs=12%s]\n[{epoch}]\n", folder,
				folder);
	const atomic_bool never = false;
	struct buf said = { 0 };

	(void)state;
	assert_int_equal(command_run(says, &fill, log, &never, NULL), 0);
	assert_int_equal(file_read(log, 10000, &said, NULL), 0);
	assert_int_equal(said.len, strlen(want));
	assert_memory_equal(said.base, want, said.len);
	assert_int_equal(command_run(leaves, &fill, log, &never, NULL), 0);
	assert_ends("child");
	assert_int_equal(command_run(goes, &fill, log, &never, NULL), 0);
	assert_ends("child"); /* in a session of its own */
	buf_release(&said);
	free(goes);
	free(rest);
	free(says);
	free(leaves);
	free(log);
	free(want);
}

/* ---- its folder ---- */

/* The folder that the last run of "name" had. */
static char *last_folder(void)
{
	char *log = file_join(folder, FOLDER_COMMAND_LOG);
	struct buf said = { 0 };

	assert_int_equal(file_read(log, 10000, &said, NULL), 0);
	buf_add(&said, "", 1);
	free(log);
	return (char *)said.base;
}

/* What an earlier one has left running cannot write into it. */
static void test_has_a_new_folder_each_time(void **state)
{
	char *names = words(self, "name {folder}"), *first, *second;
	struct agent a;

	(void)state;
	open_agent(&a, names, "constant");
	assert_int_equal(train(&a), ERR_INPUT);
	first = last_folder();
	assert_int_equal(train(&a), ERR_INPUT);
	second = last_folder();
	assert_non_null(strstr(first, "/" FOLDER_COMMAND "."));
	assert_string_not_equal(first, second);
	close_agent(&a);
	free(first);
	free(second);
	free(names);
}

static void count_gone(void *ctx, const char *path)
{
	assert_false(file_exists(path));
	++*(int *)ctx;
}

static void make_file(const char *where)
{
	char *path = file_join(folder, where), *inside = file_join(path, "store.db");

	assert_int_equal(file_make_folder(path, 0700, NULL), 0);
	assert_int_equal(file_write_unsynced(inside, "x", 1, 0600, NULL), 0);
	free(inside);
	free(path);
}

/* Plays a part with this alone in its environment, beside what is left of a run: its status. */
static int part_beside_a_run(const char *part, const char *variable, bool cleared)
{
	char *path = file_join(folder, FOLDER_COMMAND ".a1B2c3"), *note = file_join(path, "child");
	char *whole, *word;
	struct err e = { 0 };
	int status;
	pid_t pid;

	make_file(FOLDER_COMMAND ".a1B2c3");
	whole = realpath(path, NULL);
	word = mem_printf("%s=%s", variable, whole);
	pid = fork();
	if (pid == 0) {
		char *env[] = { word, NULL };

		execle(self, self, part, whole, NULL, env);
		_exit(1);
	}
	while (cleared && !file_exists(note))
		usleep(1000);
	if (cleared)
		assert_int_equal(command_clear(folder, NULL, NULL, &e), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_folder_is_gone();
	free(path);
	free(note);
	free(whole);
	free(word);
	return status;
}

/* The command of an agent that was killed goes on, and is ended by the next start; not who only
 * speaks of it, nor who starts, as from a shell that the command has left. */
static void test_ends_what_was_left_running(void **state)
{
	int status = part_beside_a_run("wait", "FKGE_COMMAND", true);

	(void)state;
	assert_true(WIFSIGNALED(status)); /* it would end by itself with its folder */
	status = part_beside_a_run("wait", "NOT_FKGE_COMMAND", true);
	assert_true(WIFEXITED(status));
	status = part_beside_a_run("clear", "FKGE_COMMAND", false);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Of whoever was killed; nothing of the owner's. */
static void test_clears_what_is_left(void **state)
{
	static const char owners[] = FOLDER_COMMAND ".of-mine";
	char *path = file_join(folder, owners);
	struct err e = { 0 };
	int gone = 0;

	(void)state;
	make_file(FOLDER_COMMAND ".a1B2c3");
	make_file(FOLDER_COMMAND ".zzzzzz");
	make_file(owners);
	assert_int_equal(command_clear(folder, count_gone, &gone, &e), 0);
	assert_int_equal(gone, 2);
	assert_int_equal(count_folders(), 1);
	file_remove_folder(path);
	assert_int_equal(command_clear(folder, NULL, NULL, &e), 0);
	free(path);
}

static const char late_over[] = "late-over"; /* beside the folders of runs */

/* A rank on another machine is not reached, and writes once more. */
static void test_removes_what_is_written_late(void **state)
{
	char *over = file_join(folder, late_over);

	(void)state;
	refuse_part("late", ERR_INPUT, "no state of its own");
	while (!file_exists(over)) /* it has written */
		usleep(1000);
	assert_folder_is_gone();
	assert_int_equal(remove(over), 0);
	free(over);
}

/* ---- the program as a command ---- */

static int put_rows(const char *path, struct kge_emb *emb)
{
	struct store_options o = { .mode = STORE_OWN };
	struct store_checkpoint info = { .kind = STORE_BEST, .valid_score = 0.5 };
	struct store_batch b = { 0 };
	struct store *s;
	int rc = store_open(&s, path, &o, NULL);

	snprintf(info.protocol, sizeof(info.protocol), "standard/1");
	store_batch_checkpoint(&b, &info, emb);
	if (rc == 0)
		rc = store_apply(s, &b, NULL);
	store_batch_release(&b);
	store_close(s);
	return rc != 0;
}

enum harm { HARM_NONE, HARM_SHAPE, HARM_NUMBER };

static int put_again(const char *path, enum harm harm)
{
	struct store_options o = { .mode = STORE_OWN };
	struct store_checkpoint info;
	struct store *s;
	struct kge_emb *emb;
	struct rng r;

	rng_seed(&r, 1);
	if (store_open(&s, path, &o, NULL) != 0 || store_restore(s, 0, &emb, &info, NULL) != 0)
		return 1;
	store_close(s);
	if (harm == HARM_SHAPE) {
		kge_emb_free(emb);
		emb = kge_emb_new(kge_model_find("transe"), 4, 4.0f, ENTITIES, RELATIONS, &r);
	} else if (harm == HARM_NUMBER) {
		emb->ent[ENTITIES] = (float)NAN;
	}
	return put_rows(path, emb);
}

static void note_pid(const char *where, const char *name)
{
	char *path = file_join(where, name), *text = mem_printf("%d", (int)getpid());

	if (file_write_unsynced(path, text, strlen(text), 0600, NULL) != 0)
		_exit(1);
	free(path);
	free(text);
}

static const char *heard_at;

static void on_term(int signal)
{
	(void)signal;
	_exit(close(creat(heard_at, 0600)));
}

/* With a child: the two write who they are, and that they heard SIGTERM.  Only the child stays
 * where the parent does not. */
static int stay(const char *where, bool deaf, bool parent_stays, bool apart)
{
	int said[2];
	char ready;

	heard_at = file_join(where, "heard");
	signal(SIGTERM, deaf ? SIG_IGN : on_term);
	note_pid(where, "parent");
	if (pipe(said) != 0)
		return 1;
	if (fork() == 0) {
		if (apart && setsid() < 0)
			_exit(1);
		note_pid(where, "child");
		sleep(write(said[1], "", 1) == 1 ? 60 : 0);
		_exit(0);
	}
	if (read(said[0], &ready, 1) != 1)
		return 1;
	return parent_stays ? (int)sleep(60) : 0;
}

/* Until somebody has taken note. */
static int await_note(const char *where)
{
	char *path = file_join(where, "child");

	note_pid(where, "child");
	while (file_exists(path))
		usleep(10000);
	free(path);
	return 0;
}

static int clear_beside(const char *where)
{
	char *beside = mem_printf("%.*s", (int)(strrchr(where, '/') - where), where);
	int rc = command_clear(beside, NULL, NULL, NULL);

	free(beside);
	return rc;
}

/* As a rank on another machine, which nothing here reaches. */
static void hide_from_agent(void)
{
	for (char **at = environ; *at != NULL; at++)
		memset(*at, 0, strlen(*at));
	if (setsid() < 0)
		_exit(1);
}

/* After its parent's end: as soon as the folder is gone it makes it again. */
static int write_late(const char *where)
{
	char *path = file_join(where, "late"), *over = mem_printf("%s/../%s", where, late_over);
	char ready;
	int said[2];

	if (pipe(said) != 0)
		return 1;
	if (fork() == 0) {
		hide_from_agent();
		if (write(said[1], "", 1) != 1)
			_exit(1);
		for (int i = 0; i < 20000 && mkdir(where, 0700) != 0; i++) /* 20 s */
			usleep(1000);
		(void)!file_write_unsynced(path, "x", 1, 0600, NULL);
		(void)!file_write_unsynced(over, "x", 1, 0600, NULL);
		_exit(0);
	}
	free(path);
	free(over);
	return read(said[0], &ready, 1) != 1;
}

static int play_part(const char *part, char **rest, const char *where)
{
	char *store = file_join(where, "store.db");
	int rc = 0;

	if (strcmp(part, "fail") == 0)
		rc = fprintf(stderr, "it is %s epochs; no more\n----\n", rest[1]) > 0 ? 7 : 0;
	else if (strcmp(part, "die") == 0)
		rc = raise(SIGKILL);
	else if (strcmp(part, "large") == 0)
		rc = raise(SIGXFSZ) == 0 ? 7 : 0;
	else if (strcmp(part, "spoil") == 0)
		rc = put_again(store, HARM_NUMBER);
	else if (strcmp(part, "shrink") == 0)
		rc = put_again(store, HARM_SHAPE);
	else if (strcmp(part, "same") == 0)
		rc = put_again(store, HARM_NONE);
	else if (strcmp(part, "late") == 0)
		rc = write_late(where);
	else if (strcmp(part, "name") == 0)
		printf("%s\n", where);
	else if (strcmp(part, "empty") == 0)
		file_remove_folder(where);
	else if (strcmp(part, "hang") == 0 || strcmp(part, "deaf") == 0)
		rc = stay(where, part[0] == 'd', true, part[0] == 'd');
	else if (strcmp(part, "wait") == 0)
		rc = await_note(where);
	else if (strcmp(part, "clear") == 0)
		rc = clear_beside(where);
	else if (strcmp(part, "leave") == 0 || strcmp(part, "away") == 0)
		rc = stay(where, true, false, part[0] == 'a');
	for (; strcmp(part, "say") == 0 && *rest != NULL; rest++)
		printf("[%s]\n", *rest);
	free(store);
	return rc;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trains_as_the_agent_does),
		cmocka_unit_test(test_draws_anew),
		cmocka_unit_test(test_takes_the_rate_of_its_schedule),
		cmocka_unit_test(test_trains_a_part),
		cmocka_unit_test(test_takes_the_same_tables),
		cmocka_unit_test(test_says_what_has_failed),
		cmocka_unit_test(test_hears_where_nobody_would),
		cmocka_unit_test(test_ends_at_the_limit_of_files),
		cmocka_unit_test(test_takes_no_other_tables),
		cmocka_unit_test(test_ends_what_hangs),
		cmocka_unit_test(test_kills_what_does_not_hear),
		cmocka_unit_test(test_knows_no_end),
		cmocka_unit_test(test_has_a_new_folder_each_time),
		cmocka_unit_test(test_clears_what_is_left),
		cmocka_unit_test(test_ends_what_was_left_running),
		cmocka_unit_test(test_removes_what_is_written_late),
		cmocka_unit_test(test_runs_no_shell),
	};

	if (argc < 2 || sodium_init() < 0)
		return 2;
	if (argc > 2)
		return play_part(argv[1], argv + 2, argv[2]);
	fkge = argv[1];
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return 2;
	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

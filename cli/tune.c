/* cli/tune.c - tune: which settings suit this graph, judged on valid alone.
 *
 *   space.yaml -> trials (lab/search.h) -> rungs: each trial trains on to the rung's
 *   epochs, the best go on to the next -> a table, and the best settings
 *
 * The test split is taken off the graph before anything looks at it, so not
 * even a filter sees it.
 *
 * A search can be killed at any moment and goes on when it is started again:
 * in its folder lie
 *
 *   tune.json        what every trial has come to, after each rung that one ended
 *   trial-N.state    a trial's tables, moments and counters (lab/saved.h)
 *
 * A trial's state is written first, so tune.json never says more than there is;
 * where it says less, the trial is at its goal already and is only counted. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/tune_show.h"

enum { KEY_QUICK = 0x7000, KEY_SECONDS, QUICK_S = 180 };

struct tune_options {
	const char *space, *folder;
	bool fresh, apply, quick;
	double seconds; /* 0: not said */
};

static const struct argp_option tune_options[] = {
	{ "out", 'o', "DIR", 0, "where the search is kept (default: tune in the agent's folder)",
	  0 },
	{ "fresh", 'f', NULL, 0, "forget what is kept there and begin again", 0 },
	{ "quick", KEY_QUICK, NULL, 0,
	  "without a SPACE.yaml: a few settings of training that decide most, for some minutes",
	  0 },
	{ "seconds", KEY_SECONDS, "N", 0, "of --quick: begin nothing after so long (default 180)",
	  0 },
	{ "apply", 'a', NULL, 0, "write the best settings into agent.yaml", 0 },
	{ 0 },
};

static error_t parse_tune(int key, char *arg, struct argp_state *state)
{
	struct tune_options *o = state->input;

	switch (key) {
	case 'o':
		o->folder = arg;
		return 0;
	case 'f':
		o->fresh = true;
		return 0;
	case 'a':
		o->apply = true;
		return 0;
	case KEY_QUICK:
		o->quick = true;
		return 0;
	case KEY_SECONDS:
		o->seconds = cli_number(state, arg, "--seconds", 0.001, 1e6);
		return 0;
	case ARGP_KEY_ARG:
		if (o->space != NULL)
			return ARGP_ERR_UNKNOWN;
		o->space = arg;
		return 0;
	case ARGP_KEY_END:
		if ((o->space == NULL) != o->quick)
			argp_error(state, "give a SPACE.yaml or --quick, one of the two");
		if (o->seconds > 0 && !o->quick)
			argp_error(state, "--seconds goes with --quick; in a SPACE.yaml it is "
					  "search: {budget: EPOCHS}");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* The name covers all that changes a trial's figures; a setting that the space varies is not taken
 * from agent.yaml, so --apply leaves the search as it is. */
static int name_search(struct tune *u, const struct buf *space, struct err *e)
{
	struct buf text = { 0 };
	uint8_t graph[STORE_DIGEST];
	crypto_generichash_state h;
	struct config c;
	int rc = tune_load_config(u, &u->trials[0], &c, e);

	if (rc != 0)
		return rc;
	rc = tune_set_values(u, &u->trials[0], &c, e);
	config_suit(&c, u->work.graph);
	config_print_section(&c, "model", &text);
	config_print_section(&c, "train", &text);
	config_print_section(&c, "eval", &text);
	store_graph_digest(u->work.graph, graph);
	crypto_generichash_init(&h, NULL, 0, TUNE_DIGEST);
	crypto_generichash_update(&h, space->base, space->len);
	crypto_generichash_update(&h, text.base, text.len);
	crypto_generichash_update(&h, graph, sizeof(graph));
	crypto_generichash_final(&h, u->name, TUNE_DIGEST);
	buf_release(&text);
	config_release(&c);
	return rc;
}

/* ---- rungs ---- */

static bool within_budget(const struct tune *u, size_t k, uint32_t goal)
{
	uint64_t more = goal - u->trials[k].epochs;

	return u->search.budget == 0 || u->spent + more <= u->search.budget;
}

static int run_rung(struct tune *u, const bool *in, uint32_t goal, struct err *e)
{
	int rc = 0;

	for (size_t k = 0; k < u->n && rc == 0; k++) {
		uint32_t own = tune_goal_of(&u->trials[k], goal);

		if (!in[k] || u->trials[k].epochs >= own)
			continue;
		u->out_of_budget = !within_budget(u, k, own);
		u->out_of_time = tune_is_late(u);
		if (u->out_of_budget || u->out_of_time)
			return 0;
		rc = tune_run_trial(u, k, own, e);
		if (rc == ERR_TIMEOUT) {
			u->out_of_time = true;
			return 0;
		}
	}
	return rc;
}

/* The trials that go on.  A search that was taken up again may find trials on a later rung already;
 * their scores of now are not those by which they were chosen, but that they are there says that
 * they were, and the others' places follow from the scores that they still have. */
static size_t next_rung(struct tune *u, bool *in, uint32_t goal)
{
	double *scores = mem_array(u->n, sizeof(*scores));
	size_t n;

	for (size_t k = 0; k < u->n; k++)
		scores[k] = u->trials[k].epochs > goal ? (double)INFINITY : u->trials[k].score;
	n = search_keep(&u->search, scores, in, u->n);
	if (u->quick && !in[0] && u->trials[0].refused[0] == '\0') { /* to compare with */
		in[0] = true;
		n++;
	}
	for (size_t k = 0; k < u->n; k++)
		if (!in[k])
			tune_remove_state(u, k);
	free(scores);
	return n;
}

static size_t first_rung(struct tune *u, bool *in)
{
	size_t n = 0;

	for (size_t k = 0; k < u->n; k++) {
		in[k] = u->trials[k].refused[0] == '\0';
		n += in[k];
	}
	return n;
}

/* A quick search ends on its third rung: with one trial, or with trial 1 beside it. */
static bool is_last_rung(const struct tune *u, uint32_t rung, size_t n)
{
	return n == 1 || u->search.method == SEARCH_RANDOM || (u->quick && rung == 2);
}

static void plan_epochs(struct tune *u, size_t n)
{
	uint32_t had = 0;

	for (uint32_t rung = 0; n > 0; rung++) {
		uint32_t goal = search_rung_epochs(&u->search, rung);

		for (size_t k = 0; rung == 0 && k < u->n; k++)
			if (u->trials[k].refused[0] == '\0')
				u->planned += tune_goal_of(&u->trials[k], goal);
		u->planned += rung > 0 ? (double)n * (goal - had) : 0;
		had = goal;
		if (is_last_rung(u, rung, n))
			break;
		n = (n / u->search.eta > 0 ? n / u->search.eta : 1) + u->quick;
	}
	if (u->search.budget > 0 && u->planned > (double)u->search.budget)
		u->planned = (double)u->search.budget;
}

static int run_search(struct tune *u, struct err *e)
{
	bool *in = mem_array(u->n, sizeof(*in));
	size_t n = first_rung(u, in);
	int rc = 0;

	plan_epochs(u, n);
	for (uint32_t rung = 0; n > 0 && rc == 0; rung++) {
		uint32_t goal = search_rung_epochs(&u->search, rung);

		rc = run_rung(u, in, goal, e);
		if (rc != 0 || u->out_of_budget || u->out_of_time || is_last_rung(u, rung, n))
			break;
		n = next_rung(u, in, goal);
	}
	for (size_t k = 0; k < u->n && rc == 0 && !u->out_of_time; k++)
		tune_remove_state(u, k); /* with more time, the same command goes on */
	free(in);
	return rc;
}

/* ---- from the command to the search ---- */

static void make_trials(struct tune *u)
{
	u->n = search_draw(&u->search, &u->values);
	u->trials = mem_array(u->n, sizeof(*u->trials));
	for (size_t k = 0; k < u->n; k++) {
		u->trials[k].values = u->values + k * u->search.n_keys;
		u->trials[k].score = u->trials[k].last = (double)NAN;
	}
	if (u->n < u->search.trials)
		lab_note(u->notes, "The space holds %zu trials, not %u\n", u->n, u->search.trials);
}

/* Values that do not go together make no trial; which do depends on the space alone. */
static void check_trial(const struct tune *u, struct tune_trial *t)
{
	struct err e = { 0 };
	struct config c;

	if (tune_config_of(u, t, &c, &e) != 0) {
		memcpy(t->refused, e.text, sizeof(e.text));
		return;
	}
	if (tune_has_preset(u, t)) /* its rate has fallen by then */
		t->most_epochs = c.train.epochs;
	config_release(&c);
}

static int get_space(const struct tune *u, const struct tune_options *o, struct buf *text,
		     struct err *e)
{
	char *own;

	if (!u->quick)
		return file_read(u->space_path, TUNE_FILE_MAX, text, e);
	own = tune_quick_space(u, o->seconds);
	buf_printf(text, "%s", own);
	free(own);
	return 0;
}

static int read_space(struct tune *u, const struct tune_options *o, struct err *e)
{
	struct buf text = { 0 };
	int rc = get_space(u, o, &text, e);

	if (rc == 0)
		rc = search_parse(&u->search, (const char *)text.base, text.len, u->space_path, e);
	if (rc == 0)
		make_trials(u);
	if (rc == 0 && u->quick)
		rc = tune_quick_begin(u, e);
	if (rc == 0) {
		for (size_t k = 0; k < u->n; k++)
			check_trial(u, &u->trials[k]);
		rc = name_search(u, &text, e);
	}
	buf_release(&text);
	return rc;
}

static int lock_folder(struct tune *u, struct err *e)
{
	char *path = file_join(u->folder, "lock");
	int rc = file_make_folder(u->folder, 0700, e);

	if (rc == 0) {
		u->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (u->lock < 0 || flock(u->lock, LOCK_EX | LOCK_NB) != 0)
			rc = err_set(e, errno == EWOULDBLOCK ? ERR_BUSY : ERR_IO, "%s: %s", path,
				     errno == EWOULDBLOCK ? "another search is at work here"
							  : strerror(errno));
	}
	free(path);
	return rc;
}

static void forget_search(const struct tune *u)
{
	char *path = file_join(u->folder, "tune.json");

	remove(path);
	free(path);
	for (size_t k = 0; k < SEARCH_TRIALS_MAX; k++)
		tune_remove_state(u, k);
}

static int tune(struct cli *cli, struct tune *u, const struct tune_options *o, struct err *e)
{
	int rc;

	u->work.graph->split[GRAPH_TEST].n = 0;
	if (u->work.graph->split[GRAPH_VALID].n == 0)
		return err_set(e, ERR_INPUT,
			       "the graph has no triple in valid, so no trial can be "
			       "judged: import it again, with --replace and --valid 0.1");
	u->folder =
		o->folder != NULL ? mem_strdup(o->folder) : file_join(u->work.folder.path, "tune");
	u->space_path = mem_strdup(o->quick ? "--quick" : o->space);
	u->quick = o->quick;
	u->floor = (double)NAN;
	rc = read_space(u, o, e);
	if (rc == 0)
		rc = lock_folder(u, e);
	if (rc == 0 && o->fresh)
		forget_search(u);
	if (rc == 0)
		rc = tune_read_record(u, e);
	if (rc != 0)
		return rc;
	u->deadline_s = u->quick ? lab_work_now_s() + o->seconds : 0;
	u->bar = lab_progress_begin(u->notes, "tuning");
	lab_work_watch_interrupts(&u->job.cancel);
	rc = run_search(u, e);
	lab_progress_end(&u->bar);
	if (rc == ERR_CANCELED)
		return err_set(e, rc, "stopped; the same command goes on");
	if (rc == 0)
		rc = tune_say(cli, u, e);
	return rc == 0 && o->apply ? tune_apply(cli, u, e) : rc;
}

int cmd_tune(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct tune_options o = { 0 };
	struct tune u = { .notes = &cli->notes, .lock = -1 };
	const struct cli_syntax s = {
		.options = tune_options,
		.parse = parse_tune,
		.args = "[SPACE.yaml]",
		.doc = "Search for settings that suit the own graph, judged on valid alone.\v"
		       "The file says what is varied, below the sections of agent.yaml, and how "
		       "it is searched.  Killed at any moment, the same command goes on.  "
		       "Example of a file:\n\n"
		       "  search: {method: halving, trials: 9, epochs: 10, eta: 3, budget: 400}\n"
		       "  model:\n    dim: [64, 128]\n"
		       "  train:\n    lr: {from: 1e-4, to: 0.1, scale: log}\n"
		       "    margin: {from: 1, to: 8}\n\n"
		       "halving: each trial trains for `epochs`, the best 1/eta of them on to "
		       "eta times as many, until one is left.  random: each trains for "
		       "`epochs`.  No more than `budget` epochs in all.  A model.preset trains as "
		       "long as it says, if that is less.\n\n"
		       "--quick is halving over sides, rate, loss, negatives and the unit ball, "
		       "nothing that partners must agree on, on 1000 triples of valid at most. "
		       "Trial 1 is agent.yaml as it is.  With the same --seconds, the same "
		       "command goes on where the time was up.\n\n"
		       "Examples:\n  fkge -d acme tune --quick --apply\n"
		       "  fkge -d acme tune space.yaml --apply",
		.input = &o,
	};
	int rc;

	cli_parse(cli, &s, argc, argv);
	o.seconds = o.seconds > 0 ? o.seconds : QUICK_S;
	rc = lab_work_open(&u.work, cli->folder, FOLDER_READ | FOLDER_FILES, e);
	if (rc != 0)
		return rc;
	rc = tune(cli, &u, &o, e);
	if (u.lock >= 0)
		close(u.lock);
	search_free_values(&u.search, u.values, u.n);
	search_release(&u.search);
	free(u.trials);
	free(u.folder);
	free(u.space_path);
	lab_work_close(&u.work);
	return rc;
}

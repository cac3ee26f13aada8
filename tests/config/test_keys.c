/* Every key of agent.yaml does something: it is changed, alone, in the file of one of a few agents
 * around a table (tests/agent/table.h), which learn in earnest and start as agent/start.c starts
 * them; and what their cores ask for is not what it was.
 *
 * The keys are those of the table in config/table.c: a new one without a row here fails. */
#include "tests/test.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <sodium.h>

#include "agent/core/learner.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/config.h"
#include "config/table_internal.h"
#include "kge/product.h"
#include "tests/agent/table.h"

enum { CHANGED, OTHER, THIRD }; /* who has the changed file, and who is with it */
enum { SETTINGS_MAX = 64 };

/* What is looked at. */
enum story {
	ALONE,	/* one agent, from its first training to its sleep */
	PAIR,	/* two that meet */
	NAMES,	/* ... and again, when one of them has other names */
	THREE,	/* three that meet */
	MEMBER, /* three in rounds */
	ASKED,	/* two, of which the other then asks for steps of queries */
	SCRIPT, /* by processes: this script in tests/cli names the key */
};

struct row {
	const char *key, *value;
	enum story story;
	const char *with; /* settings that it needs to matter, of all in the story; the script */
};

/* ---- files ---- */

/* Small and quick, and once without what draws from libsodium. */
static const char base[] =
	"model.dim=4 model.gamma=4 train.epochs=2 train.eval_every=1 train.threads=1 train.batch=8 "
	"train.negatives=4 train.lr=0.05 federation.epochs_per_round=1 federation.local_rounds=0 "
	"federation.max_rounds=3 federation.names_every_s=0 federation.gather_s=0 "
	"federation.sleep_s=0 federation.lease_s=5 federation.session_s=60 federation.share=both "
	"privacy.useless_sessions=spend privacy.reserve_labels=8 ppat.steps=3 ppat.batch=4 "
	"ppat.pool=6 ppat.hidden=4 ppat.teachers=2 ppat.teacher_steps=2 ppat.student_steps=2 "
	"federation.weight=all rounds.compare_rounds=0 "
	"rounds.stop_when_worse=0 rounds.max=3 "
	"rounds.epochs=1 "
	"rounds.join_s=1 rounds.train_s=2 rounds.stage_s=1";

struct setting {
	char section[32], name[32], value[64];
};

struct file {
	struct setting at[SETTINGS_MAX];
	size_t n;
};

static void set(struct file *f, const char *section, const char *name, const char *value)
{
	size_t i = 0;

	while (i < f->n &&
	       (strcmp(f->at[i].section, section) != 0 || strcmp(f->at[i].name, name) != 0))
		i++;
	assert_true(i < SETTINGS_MAX);
	f->n += i == f->n;
	snprintf(f->at[i].section, sizeof(f->at[i].section), "%s", section);
	snprintf(f->at[i].name, sizeof(f->at[i].name), "%s", name);
	snprintf(f->at[i].value, sizeof(f->at[i].value), "%s", value);
}

/* "section.name", which is split at its last dot. */
static void set_key(struct file *f, const char *key, const char *value)
{
	const char *dot = strrchr(key, '.');
	char section[32];

	snprintf(section, sizeof(section), "%.*s", dot != NULL ? (int)(dot - key) : 0, key);
	set(f, section, dot != NULL ? dot + 1 : key, value);
}

/* "section.name=value ..." */
static void set_all(struct file *f, const char *settings)
{
	char *text = mem_strdup(settings), *rest = text, *word;

	while ((word = strtok_r(rest, " ", &rest)) != NULL) {
		char *equal = strchr(word, '=');

		assert_non_null(equal);
		*equal = '\0';
		set_key(f, word, equal + 1);
	}
	free(text);
}

static void print_section(const struct file *f, const char *section, int indent, struct buf *out)
{
	for (size_t i = 0; i < f->n; i++)
		if (strcmp(f->at[i].section, section) == 0)
			buf_printf(out, "%*s%s: %s\n", indent, "", f->at[i].name, f->at[i].value);
}

static void print_file(const struct file *f, struct buf *out)
{
	static const char *const sections[] = { "model",  "train",   "eval", "federation",
						"rounds", "privacy", "ppat", "query" };

	print_section(f, "", 0, out);
	for (size_t k = 0; k < sizeof(sections) / sizeof(sections[0]); k++) {
		buf_printf(out, "%s:\n", sections[k]);
		print_section(f, sections[k], 2, out);
		if (strcmp(sections[k], "train") == 0) {
			buf_printf(out, "  dp:\n");
			print_section(f, "train.dp", 4, out);
		}
	}
}

/* ---- stories ---- */

/* Threads that were begun: the same sums, whoever makes them. */
static uint64_t n_threads;

int pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*run)(void *), void *ctx)
{
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	void *next = dlsym(RTLD_NEXT, "pthread_create");

	memcpy(&real, &next, sizeof(real));
	n_threads++;
	return real(id, attributes, run, ctx);
}

/* In rounds, whose turn it is to propose: the lowest key. */
static size_t who_changes(const struct table *t, enum story story)
{
	size_t at = CHANGED;

	for (size_t i = 0; story == MEMBER && i < AGENTS; i++)
		at = memcmp(t->agent[i].key, t->agent[at].key, 32) < 0 ? i : at;
	return at;
}

/* Some queries come more often than others, which weights and draws may go by. */
static void add_triples(struct graph *g)
{
	for (uint32_t k = 1; k < 9; k++) {
		struct graph_triple x = { 0, 0, k };

		graph_add(g, GRAPH_TRAIN, x);
	}
}

static void read_settings(struct table_agent *s, const struct file *f)
{
	struct buf text = { 0 };
	struct err e = { 0 };

	print_file(f, &text);
	config_release(&s->config);
	if (config_parse(&s->config, (const char *)text.base, text.len, "agent.yaml", &e) != 0)
		fail_msg("%s\n%s", e.text, (const char *)text.base);
	config_suit(&s->config, s->graph);
	if (s->config.rounds.topology == FED_HOSTED)
		memcpy(s->rounds_host, s->table->agent[who_changes(s->table, MEMBER)].key, FED_KEY);
	buf_release(&text);
}

/* As agent/start.c makes it. */
static struct agent_learner_kge *learn_in_earnest(struct table_agent *s)
{
	struct kge_train_config train = config_training(&s->config);
	struct agent_learner_kge *l = agent_learner_new(
		&train, s->graph, config_protocol(&s->config), s->config.eval.valid_limit);

	s->by_settings = true;
	s->learner = *agent_learner_ops(l);
	return l;
}

static void meet(struct table *t, enum story story)
{
	table_link(t, CHANGED, OTHER, true);
	if (story == THREE) /* it has heard of the other by then */
		table_run(t, t->now_ms + 40, 60000);
	if (story == THREE || story == MEMBER) {
		table_link(t, CHANGED, THIRD, true);
		table_link(t, OTHER, THIRD, true);
	}
	table_run(t, t->now_ms + 30000, 60000);
}

/* Its owner wants a round now. */
static void train_now(struct table *t, size_t at)
{
	struct agent_event e = { .kind = AGENT_EVENT_TRAIN, .now_ms = t->now_ms };

	agent_core_event(t->agent[at].core, &e);
}

/* Its owner names one entity otherwise; the trainer was of the tables of before. */
static void rename_and_meet(struct table *t, struct agent_learner_kge **learner)
{
	table_kill(t, OTHER);
	agent_learner_free(*learner);
	*learner = learn_in_earnest(&t->agent[OTHER]);
	agent_names_alias(t->agent[OTHER].names, NULL, 'e', 11, "eleven", 6);
	table_restart(t, OTHER);
	table_link(t, CHANGED, OTHER, true);
	for (int i = 0; i < 5; i++) {
		train_now(t, OTHER);
		train_now(t, CHANGED);
		table_run(t, t->now_ms + 10000, 60000);
	}
}

static void ask_twice(struct table *t)
{
	struct agent_point points[] = { { 0, 1 }, { 1, .5f } };
	struct agent_ask ask = {
		.relation = "likes", .points = points, .n = 2, .want = 5, .patience_ms = 1000
	};

	for (int i = 0; i < 2; i++) {
		struct agent_event e = { .kind = AGENT_EVENT_ASK,
					 .now_ms = t->now_ms,
					 .wall_ms = (int64_t)t->now_ms + 1700000000000,
					 .ask = &ask };

		agent_core_event(t->agent[OTHER].core, &e);
		table_run(t, t->now_ms + 3000, 60000);
	}
}

/* What its owner sees of rounds: what was compared asks for nothing. */
static uint64_t trace_status(const struct agent_core *c)
{
	struct agent_status st;
	const struct agent_round_status *r = &st.round;
	uint64_t hash[2];
	struct {
		double own, merged, alone;
		double weight;
		uint64_t compared, has_alone, stopped, weighed;
	} is;

	agent_core_status(c, &st);
	memset(&is, 0, sizeof(is));
	is.own = r->own_score;
	is.merged = r->merged_score;
	is.alone = r->alone_score;
	is.compared = r->compared;
	is.has_alone = r->has_alone;
	is.stopped = r->stopped;
	is.weight = r->weight;
	is.weighed = r->weighed;
	agent_status_release(&st);
	crypto_generichash((uint8_t *)hash, sizeof(hash), (const uint8_t *)&is, sizeof(is), NULL,
			   0);
	return hash[0];
}

/* A hash of all that the cores asked for. */
static uint64_t tell(enum story story, const struct file *changed, const struct file *others)
{
	struct agent_learner_kge *learner[AGENTS];
	struct table t;
	uint64_t trace = 0;
	size_t who;

	n_threads = 0;

	table_init(&t, 3);
	who = who_changes(&t, story);
	for (size_t i = 0; i < AGENTS; i++) {
		add_triples(t.agent[i].graph);
		read_settings(&t.agent[i], i == who ? changed : others);
		learner[i] = learn_in_earnest(&t.agent[i]);
	}
	table_start(&t);
	table_run(&t, t.now_ms + 2000, 20000);
	if (story != ALONE)
		meet(&t, story);
	if (story == ASKED)
		ask_twice(&t);
	if (story == NAMES)
		rename_and_meet(&t, &learner[OTHER]);
	for (size_t i = 0; i < AGENTS; i++)
		trace = trace * 31 + t.agent[i].trace + trace_status(t.agent[i].core);
	table_release(&t);
	for (size_t i = 0; i < AGENTS; i++)
		agent_learner_free(learner[i]);
	return trace * 31 + n_threads;
}

/* ---- the rows ---- */

#define IN_ROUNDS "federation.mode=rounds"
#define LABELS	  "federation.translator=ppat"
#define PRIVATE	  "train.dp.epsilon=4 train.filtered=false train.shared_chunk=0"

static const struct row rows[] = {
	{ "name", "somebody", PAIR, "" },
	{ "listen", "'off'", SCRIPT, "keys.sh" },
	{ "advertise", "'a.example:7447'", PAIR, "" },
	{ "http.listen", "'[::1]:0'", SCRIPT, "keys.sh" },
	{ "model.preset", "fast", ALONE, "" },
	{ "model.kind", "distmult", ALONE, "" },
	{ "model.dim", "6", ALONE, "" },
	{ "model.rel_dim", "3", ALONE, "model.kind=transr" },
	{ "model.gamma", "7", ALONE, "" },
	{ "train.epochs", "4", ALONE, "" },
	{ "train.optimizer", "sgd", ALONE, "" },
	{ "train.momentum", "0.5", ALONE, "train.optimizer=momentum" },
	{ "train.schedule", "linear", ALONE, "train.schedule_epochs=2" },
	{ "train.schedule_epochs", "2", ALONE, "train.schedule=linear" },
	{ "train.update", "racing", ALONE, "train.shared_chunk=0" },
	{ "train.lr", "0.25", ALONE, "" },
	{ "train.negatives", "3", ALONE, "" },
	{ "train.batch", "5", ALONE, "" },
	{ "train.loss", "margin", ALONE, "" },
	{ "train.margin", "3", ALONE, "train.loss=margin" },
	{ "train.temperature", "3", ALONE, "" },
	{ "train.reg", "l2", ALONE, "train.reg_weight=0.5" },
	{ "train.reg_weight", "0.5", ALONE, "train.reg=l2" },
	{ "train.relation_weight", "1", ALONE,
	  "model.kind=complex train.loss=softmax train.negatives=0" },
	{ "train.query_answers", "1", ALONE, "train.loss=softmax train.negatives=0" },
	{ "train.rare_weight", "0.5", ALONE, "train.loss=softmax train.negatives=0" },
	{ "train.precision", "bfloat16", ALONE,
	  "model.kind=complex train.loss=softmax train.negatives=0" },
	{ "train.corrupt", "tail", ALONE, "" },
	{ "train.sampling", "uniform", ALONE, "" },
	{ "train.draws", "once", ALONE, "" },
	{ "train.subsampling", "true", ALONE, "" },
	{ "train.filtered", "false", ALONE, "" },
	{ "train.normalize", "true", ALONE, "train.lr=5" },
	{ "train.shared_chunk", "0", ALONE, "" },
	{ "train.threads", "2", ALONE, "" },
	{ "train.seed", "2", ALONE, "" },
	{ "train.eval_every", "2", ALONE, "" },
	{ "train.patience", "1", ALONE, "train.epochs=40 train.lr=3" },
	{ "train.partitions", "8", SCRIPT, "past.sh" },
	{ "train.memory_mib", "26", SCRIPT, "past.sh" },
	{ "train.command", "'fkge -d {folder} train'", SCRIPT, "command.sh" },
	{ "train.dp.epsilon", "5", ALONE, PRIVATE },
	{ "train.dp.delta", "1e-6", ALONE, PRIVATE },
	{ "train.dp.clip", "2", ALONE, PRIVATE },
	{ "train.dp.noise", "9", ALONE, PRIVATE },
	{ "train.dp.rate", "0.2", ALONE, PRIVATE },
	{ "train.dp.triples", "30", ALONE, PRIVATE },
	{ "eval.protocol", "tail", ALONE, "" },
	{ "eval.valid_limit", "1", ALONE, "" },
	{ "federation.mode", "rounds", PAIR, "" },
	{ "federation.translator", "ppat", PAIR, "" },
	{ "federation.roles", "host", PAIR, "" },
	{ "federation.accept", "invited", SCRIPT, "keys.sh" },
	{ "federation.introduce", "true", THREE, "" },
	{ "federation.names_max", "1", PAIR, "" },
	{ "federation.names_every_s", "600", NAMES, "federation.after=back" },
	{ "federation.share", "entities", PAIR, "" },
	{ "federation.aligned_share", "0.5", PAIR, "" },
	{ "federation.aligned_draw", "session", PAIR, "federation.aligned_share=0.5" },
	{ "federation.row_bits", "32", PAIR, "" },
	{ "federation.aggregate", "replace", PAIR, "" },
	{ "federation.queue", "each", THREE, "federation.gather_s=3" },
	{ "federation.student", "host", PAIR, LABELS },
	{ "federation.unit_rows", "true", PAIR, "" },
	{ "federation.center_rows", "true", PAIR, "federation.share=entities" },
	{ "federation.neighbours", "true", PAIR, "" },
	{ "federation.reset_optimizer", "false", PAIR, "" },
	{ "federation.after", "back", PAIR, "" },
	{ "federation.frame", "common", PAIR, "" },
	{ "federation.patience", "1", PAIR, "federation.after=keep federation.max_rounds=9" },
	{ "federation.epochs_per_round", "2", PAIR, "" },
	{ "federation.max_rounds", "1", PAIR, "federation.after=keep" },
	{ "federation.local_rounds", "1", ALONE, "" },
	{ "federation.control", "true", SCRIPT, "report.sh" },
	{ "federation.gather_s", "3", THREE, "" },
	{ "federation.sleep_s", "60", ALONE, "" },
	{ "federation.sessions", "1", THREE, "" },
	{ "federation.links", "1", THREE, "" },
	{ "federation.partners", "1", THREE, "federation.gather_s=3" },
	{ "federation.lease_s", "6", PAIR, "" },
	{ "federation.session_s", "5", PAIR, "" },
	{ "federation.psk_file", "other.key", SCRIPT, "keys.sh" },
	{ "federation.weight", "valid", MEMBER, IN_ROUNDS },
	{ "federation.weight_from", "3", SCRIPT, "../agent/test_rounds.c" },
	{ "federation.bound_rows", "false", SCRIPT, "../agent/test_judge.c" },
	{ "federation.judge", "false", PAIR, "" },
	{ "federation.quarantine", "3", SCRIPT, "../agent/test_judge.c" },
	{ "rounds.method", "fedep", MEMBER, IN_ROUNDS },
	{ "rounds.epochs", "2", MEMBER, IN_ROUNDS },
	{ "rounds.first_epochs", "2", MEMBER, IN_ROUNDS },
	{ "rounds.eval_every", "2", MEMBER, IN_ROUNDS },
	{ "rounds.patience", "1", MEMBER, IN_ROUNDS " train.lr=3 rounds.max=9" },
	{ "rounds.max", "2", MEMBER, IN_ROUNDS },
	{ "rounds.min_members", "3", PAIR, IN_ROUNDS },
	{ "rounds.fraction", "0.5", MEMBER, IN_ROUNDS },
	{ "rounds.propose", "false", MEMBER, IN_ROUNDS },
	{ "rounds.stop_when_worse", "1", MEMBER, IN_ROUNDS " train.lr=3" },
	{ "rounds.compare_rounds", "9", MEMBER, IN_ROUNDS " rounds.stop_when_worse=3" },
	{ "rounds.compare_limit", "1", MEMBER, IN_ROUNDS " rounds.compare_rounds=9" },
	{ "rounds.bound_rows", "false", SCRIPT, "../hostile/poison.sh" },
	{ "rounds.every_s", "2", MEMBER, IN_ROUNDS },
	{ "rounds.equal_start", "false", MEMBER, IN_ROUNDS },
	{ "rounds.start_seed", "9", MEMBER, IN_ROUNDS },
	{ "rounds.topology", "hosted", MEMBER, IN_ROUNDS " rounds.host=own" },
	{ "rounds.host", "nobody", SCRIPT, "keys.sh" },
	{ "rounds.min_holders", "3", MEMBER, IN_ROUNDS },
	{ "rounds.secret_bits", "32", MEMBER, IN_ROUNDS },
	{ "rounds.secret_clip", "4", MEMBER, IN_ROUNDS " rounds.secret_bits=32" },
	{ "rounds.join_s", "2", MEMBER, IN_ROUNDS },
	{ "rounds.train_s", "3", MEMBER, IN_ROUNDS },
	{ "rounds.stage_s", "2", MEMBER, IN_ROUNDS },
	{ "ppat.mode", "paper", PAIR, LABELS },
	{ "ppat.teachers", "3", PAIR, LABELS },
	{ "ppat.noise", "laplace", PAIR, LABELS },
	{ "ppat.lambda", "0.1", PAIR, LABELS " ppat.noise=laplace" },
	{ "ppat.sigma", "50", PAIR, LABELS },
	{ "ppat.steps", "2", PAIR, LABELS },
	{ "ppat.batch", "5", PAIR, LABELS },
	{ "ppat.pool", "7", PAIR, LABELS },
	{ "ppat.teacher_steps", "3", PAIR, LABELS },
	{ "ppat.student_steps", "3", PAIR, LABELS },
	{ "ppat.generator_steps", "2", PAIR, LABELS },
	{ "ppat.hidden", "5", PAIR, LABELS },
	{ "ppat.lr", "0.5", PAIR, LABELS },
	{ "ppat.momentum", "0.5", PAIR, LABELS },
	{ "ppat.beta", "0.1", PAIR, LABELS },
	{ "ppat.loss", "non_saturating", PAIR, LABELS },
	{ "privacy.delta", "1e-6", PAIR, LABELS },
	{ "privacy.epsilon_per_peer", "1", PAIR, LABELS },
	{ "privacy.epsilon_total", "2.5", PAIR, LABELS },
	{ "privacy.accountant", "gnmax", PAIR, LABELS },
	{ "privacy.useless_sessions", "refuse", PAIR, LABELS },
	{ "privacy.reserve_labels", "16", PAIR, LABELS },
	{ "privacy.noisy_rows", "true", PAIR, "" },
	{ "privacy.release_epsilon", "0.5", PAIR, "privacy.noisy_rows=true" },
	{ "privacy.release_noise", "9", PAIR, "privacy.noisy_rows=true" },
	{ "privacy.release_clip", "0.5", PAIR, "privacy.noisy_rows=true" },
	{ "log.level", "error", SCRIPT, "keys.sh" },
	{ "log.format", "json", SCRIPT, "keys.sh" },
	{ "query.answer", "facts", ASKED, "query.answer=soft" },
	{ "query.rules", "'nothing * likes'", ASKED, "query.answer=soft" },
	{ "query.steps_per_day", "1", ASKED, "query.answer=soft" },
	{ "query.rows_per_day", "7", ASKED, "query.answer=soft" },
	{ "query.score_holders", "3", SCRIPT, "scores.sh" },
	{ "query.ways", "false", ASKED, "query.answer=soft" },
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* What the others do as it was, one run for all rows with the same story. */
static struct {
	enum story story;
	const char *with;
	uint64_t trace;
} told[ROWS];
static size_t n_told, n_same;

static uint64_t tell_unchanged(enum story story, const char *with, const struct file *f)
{
	for (size_t i = 0; i < n_told; i++)
		if (told[i].story == story && strcmp(told[i].with, with) == 0)
			return told[i].trace;
	told[n_told].story = story;
	told[n_told].with = with;
	told[n_told].trace = tell(story, f, f);
	return told[n_told++].trace;
}

static void change(const struct row *r)
{
	struct file was = { 0 }, is;

	set_all(&was, base);
	set_all(&was, r->with);
	is = was;
	set_key(&is, r->key, r->value);
	if (strcmp(r->key, "train.precision") == 0 && !kge_product_is_fast()) {
		print_message("%s: this processor has no such numbers\n", r->key);
		return;
	}
	if (tell(r->story, &is, &was) == tell_unchanged(r->story, r->with, &was))
		print_error("%s: %s changes nothing\n", r->key, r->value), n_same++;
}

/* Those that tables of four numbers can bear. */
static const char *constants_of(const char *method)
{
	if (strncmp(method, "fedsvd", 6) == 0)
		return IN_ROUNDS " rounds.n=2 rounds.rank=2";
	if (strcmp(method, "fedkd") == 0)
		return IN_ROUNDS " rounds.dim=2";
	if (strncmp(method, "fedcqa", 6) == 0)
		return IN_ROUNDS " rounds.dim=4 rounds.steps=2 rounds.batch=4 rounds.queries=2";
	return strcmp(method, "fedepl") == 0 ? IN_ROUNDS " rounds.dim=5" : IN_ROUNDS;
}

/* Refused, with file, line and the method that does not go with these tables. */
static bool is_refused(const struct file *f, const char *method)
{
	struct buf text = { 0 };
	struct config c;
	struct err e = { 0 };
	int rc;

	print_file(f, &text);
	rc = config_parse(&c, (const char *)text.base, text.len, "agent.yaml", &e);
	buf_release(&text);
	if (rc == 0)
		config_release(&c);
	else if (strncmp(e.text, "agent.yaml:", 11) != 0 || strstr(e.text, method) == NULL)
		fail_msg("%s", e.text);
	return rc != 0;
}

static void change_constant(const char *method, const struct fed_constant *k)
{
	const char *with = constants_of(method);
	char key[40], value[40];
	struct file was = { 0 }, is;
	bool shape = strcmp(k->key, "dim") == 0 || strcmp(k->key, "n") == 0 ||
		     strcmp(k->key, "rank") == 0;

	snprintf(key, sizeof(key), "rounds.%s", k->key);
	snprintf(value, sizeof(value), "%.17g",
		 shape		      ? k->min
		 : k->byword < k->max ? fmin(k->max, k->byword + 1)
				      : fmax(k->min, k->byword - 1));
	set_all(&was, base);
	set_all(&was, with);
	set_key(&was, "rounds.method", method);
	is = was;
	set_key(&is, key, value);
	if (is_refused(&is, method) || tell(MEMBER, &is, &was) != tell(MEMBER, &was, &was))
		return;
	print_error("%s: %s: %s changes nothing\n", method, key, value);
	n_same++;
}

static void change_all(enum story from, enum story to)
{
	n_same = 0;
	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].story >= from && rows[i].story <= to)
			change(&rows[i]);
	assert_int_equal(n_same, 0);
}

/* ---- tests ---- */

/* The same files, the same story: what differs is the key. */
static void stories_repeat(void **state)
{
	static const char *const with[] = { "", "", "", "", IN_ROUNDS, "query.answer=soft" };

	(void)state;
	for (int s = ALONE; s <= ASKED; s++) {
		struct file f = { 0 };

		set_all(&f, base);
		set_all(&f, with[s]);
		assert_true(tell((enum story)s, &f, &f) ==
			    tell_unchanged((enum story)s, with[s], &f));
	}
}

static const struct row *row_of(const char *key)
{
	for (size_t i = 0; i < ROWS; i++)
		if (strcmp(rows[i].key, key) == 0)
			return &rows[i];
	return NULL;
}

static void key_name(const struct config_key *k, char out[64])
{
	snprintf(out, 64, "%s%s%s", k->section != NULL ? k->section : "",
		 k->section != NULL ? "." : "", k->name);
}

/* A line of the script says so. */
static bool is_looked_at(const char *script, const char *key)
{
	char path[512], words[80];
	struct buf text = { 0 };
	struct err e = { 0 };
	bool found;

	snprintf(path, sizeof(path), "%s/%s", KEYS_SCRIPTS, script);
	snprintf(words, sizeof(words), "key %s ", key);
	assert_int_equal(file_read(path, 1 << 20, &text, &e), 0);
	buf_printf(&text, "%s", "");
	found = strstr((const char *)text.base, words) != NULL;
	buf_release(&text);
	return found;
}

static void every_key_has_a_row(void **state)
{
	char key[64];

	(void)state;
	for (size_t i = 0; i < CONFIG_KEYS; i++) {
		const struct row *r;

		key_name(&config_keys[i], key);
		r = row_of(key);
		if (r == NULL)
			fail_msg("%s: no row says what it changes", key);
		if (r->story == SCRIPT && !is_looked_at(r->with, key))
			fail_msg("%s: tests/cli/%s has no line for it", key, r->with);
	}
	assert_int_equal(ROWS, CONFIG_KEYS);
}

/* A file that says only this, on its line 3 or 4. */
static void refused(const struct config_key *k, const char *value)
{
	const char *inner = k->section != NULL ? strchr(k->section, '.') : NULL;
	struct buf text = { 0 };
	struct config c;
	struct err e = { 0 };
	char key[64], where[96];
	int line = inner != NULL ? 4 : k->section != NULL ? 3 : 2;

	buf_printf(&text, "# one\n");
	if (k->section != NULL)
		buf_printf(&text, "%.*s:\n", (int)strcspn(k->section, "."), k->section);
	if (inner != NULL)
		buf_printf(&text, "  %s:\n", inner + 1);
	buf_printf(&text, "%*s%s: \"%s\"\n", 2 * (line - 2), "", k->name, value);
	key_name(k, key);
	snprintf(where, sizeof(where), "agent.yaml:%d: %s: '", line, key);
	if (config_parse(&c, (const char *)text.base, text.len, "agent.yaml", &e) != ERR_USAGE)
		fail_msg("%s: %.40s is taken", key, value);
	if (strncmp(e.text, where, strlen(where)) != 0)
		fail_msg("%s, not %s", e.text, where);
	buf_release(&text);
}

static void what_is_not_allowed_names_key_and_line(void **state)
{
	char number[64], *large = mem_array(CONFIG_TEXT_MAX + 2, 1);

	(void)state;
	memset(large, 'x', CONFIG_TEXT_MAX + 1);
	for (size_t i = 0; i < CONFIG_KEYS; i++) {
		const struct config_key *k = &config_keys[i];

		refused(k, k->kind == KEY_TEXT || k->kind == KEY_AGENT_NAME
				   ? large
				   : "no such word: at all");
		if (k->kind != KEY_COUNT && k->kind != KEY_NUMBER && k->kind != KEY_NUMBER32)
			continue;
		snprintf(number, sizeof(number), "%.17g", 2 * k->max + 1);
		refused(k, number);
		snprintf(number, sizeof(number), "%.17g", k->min > 0 ? k->min / 2 : -1);
		refused(k, number);
	}
	free(large);
}

static void keys_of_training(void **state)
{
	(void)state;
	change_all(ALONE, ALONE);
}

static void keys_of_pairs(void **state)
{
	(void)state;
	change_all(PAIR, THREE);
}

static void keys_of_queries(void **state)
{
	(void)state;
	change_all(ASKED, ASKED);
}

static void keys_of_rounds(void **state)
{
	(void)state;
	change_all(MEMBER, MEMBER);
}

/* Of each method: partners hear of another value. */
static void constants_of_methods(void **state)
{
	(void)state;
	n_same = 0;
	for (size_t m = 0; fed_methods[m] != NULL; m++) {
		const struct fed_constant *k = fed_methods[m]->constant;

		for (size_t i = 0; i < FED_VALUES_MAX && k[i].key != NULL; i++)
			change_constant(fed_methods[m]->name, &k[i]);
	}
	assert_int_equal(n_same, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_has_a_row),
		cmocka_unit_test(what_is_not_allowed_names_key_and_line),
		cmocka_unit_test(stories_repeat),
		cmocka_unit_test(keys_of_training),
		cmocka_unit_test(keys_of_pairs),
		cmocka_unit_test(keys_of_rounds),
		cmocka_unit_test(keys_of_queries),
		cmocka_unit_test(constants_of_methods),
	};

	if (sodium_init() < 0)
		return 1;
	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests_name("config/keys", tests, NULL, NULL);
}

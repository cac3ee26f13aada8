/* lab/experiment_folders.c - agents' folders for a run whose agents are processes.
 *
 *   OUT/runs/VARIANT-seedN.agents/
 *     lock       held while somebody is at work here
 *     run.json   whose run it is, who its agents are, what it has taken; there from the moment when
 *                all of them are made and know each other
 *     AGENT/     as `fkge init` and `fkge import` leave it, with agent.yaml by the variant's
 *                settings; AGENT.log: what its commands said
 *
 * The agents listen on an address in 127/8 that follows from our process's number, each at a port
 * that is free when we begin.  After an interruption somebody else may be there, so both are chosen
 * anew and written where agents know them from: each one's agent.yaml and list of peers. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "agent/folder.h"
#include "agent/roster.h"
#include "base/file.h"
#include "base/mem.h"
#include "lab/child.h"
#include "lab/experiment_run.h"
#include "lab/work.h"
#include "net/ident.h"

enum {
	JOIN_S = 60,
	TRAIN_S = 86400, /* nobody is given up for being slow on a busy machine */
	STAGE_S = 3600,
	LEASE_S = 600,
	POLL_MS = 20,
	WORDS_MAX = 8,
};

static const char head_name[] = "run.json";

/* ---- paths ---- */

char *experiment_folders_path(const struct folders *f, const struct run *r, size_t agent,
			      const char *suffix)
{
	return mem_printf("%s/%s%s", f->path, r->at[agent].name, suffix);
}

void experiment_remove_agents(const char *out, const struct exp_variant *v, uint64_t seed)
{
	char *path = experiment_agents_path(out, v, seed);

	file_remove_folder(path);
	free(path);
}

/* A path that an agent's control socket can have. */
static int check_paths(const struct folders *f, const struct run *r, struct err *e)
{
	const size_t most = sizeof(((struct sockaddr_un *)NULL)->sun_path);

	for (size_t i = 0; i < r->n; i++) {
		char *path = experiment_folders_path(f, r, i, "/control.sock");
		bool fits = strlen(path) < most;

		if (!fits)
			err_set(e, ERR_USAGE,
				"%s: longer than the %zu bytes that a socket's path may have; give "
				"a shorter --out",
				path, most - 1);
		free(path);
		if (!fits)
			return ERR_USAGE;
	}
	return 0;
}

/* ---- who shares anything ---- */

static const struct graph_vocab *vocab_by_tag(const struct client *c, char tag)
{
	return tag == 'e' ? c->graph->entities : c->graph->relations;
}

static bool knows_name(const struct client *c, char tag, const char *name, size_t len)
{
	uint32_t id;

	if (tag == 'e' && c->names != NULL && graph_alias_find(c->names, name, len) != GRAPH_NONE)
		return true;
	id = graph_vocab_find(vocab_by_tag(c, tag), name, len);
	return id != GRAPH_NONE && (tag != 'e' || graph_alias_of(c->names, id, NULL) == NULL);
}

static bool share_a_name(const struct client *a, const struct client *b, char tag)
{
	const struct graph_vocab *v = vocab_by_tag(a, tag);

	for (uint32_t id = 0; id < graph_vocab_count(v); id++) {
		size_t len;
		const char *name = tag == 'e' ? graph_alias_of(a->names, id, &len) : NULL;

		if (name == NULL)
			name = graph_vocab_name(v, id, &len);
		if (knows_name(b, tag, name, len))
			return true;
	}
	return false;
}

static bool shares_with_any(const struct run *r, size_t i, const char *tags)
{
	for (; *tags != '\0'; tags++)
		for (size_t k = 0; k < r->n; k++)
			if (k != i && share_a_name(&r->at[i], &r->at[k], *tags))
				return true;
	return false;
}

/* An agent that shares nothing is in no round, and all others would wait for it. */
static int check_all_share(const struct run *r, struct err *e)
{
	const struct fed_settings *s = &r->v->settings;
	const char *tags;

	if (r->v->kind == EXP_PAIRS)
		return 0;
	tags = fed_method_find(s->method)->tags;
	for (size_t i = s->topology == FED_HOSTED ? 1 : 0; i < r->n; i++)
		if (!shares_with_any(r, i, tags))
			return err_set(e, ERR_USAGE,
				       "agent %s shares no %s with any other, so it is in no "
				       "round and as a process all wait for it; take its folder "
				       "out of %s, or say agents: simulated",
				       r->at[i].name,
				       strcmp(tags, "r") == 0 ? "relation" : "entity", r->x->data);
	return 0;
}

/* ---- commands in an agent's folder ---- */

static int run_words(const struct folders *f, const struct run *r, size_t i,
		     const char *const *words, json_t **result, struct err *e)
{
	char *folder = experiment_folders_path(f, r, i, ""),
	     *log = experiment_folders_path(f, r, i, ".log");
	int rc = child_run(folder, words, log, result, e);

	free(folder);
	free(log);
	if (experiment_canceled(r)) /* from a terminal the command was interrupted too */
		return ERR_CANCELED;
	return rc != 0 ? err_prefix(e, "agent %s", r->at[i].name) : 0;
}

/* ---- agent.yaml ---- */

static json_t *agent_of(const struct folders *f, size_t i)
{
	return json_array_get(json_object_get(f->head, "agents"), i);
}

static const char *text_of(const json_t *j, const char *key)
{
	const char *text = json_string_value(json_object_get(j, key));

	return text != NULL ? text : "";
}

static struct config config_of_pairs(const struct folders *f, const struct run *r, size_t i,
				     uint32_t max)
{
	struct config c = *r->at[i].own;

	c.name = r->at[i].name;
	c.listen = (char *)(uintptr_t)text_of(agent_of(f, i), "listen");
	c.federation.lease_s = LEASE_S;
	c.federation.names.every_s = 0; /* one that an end breaks off begins anew at once */
	if (c.federation.max_rounds > max)
		c.federation.max_rounds = max;
	return c;
}

/* The variant's settings as one agent has them.  Borrows all its texts. */
static struct config config_of(const struct folders *f, const struct run *r, size_t i, uint32_t max)
{
	const struct exp_variant *v = r->v;
	struct config c = v->config;

	c.name = r->at[i].name;
	c.listen = (char *)(uintptr_t)text_of(agent_of(f, i), "listen");
	c.train.kge.seed = experiment_seed_of(r, i);
	c.federation.mode = CONFIG_ROUNDS;
	c.federation.weight =
		v->taken.weight == EXP_WEIGHT_VALID ? CONFIG_WEIGHT_VALID : CONFIG_WEIGHT_ALL;
	c.federation.few.weight_from = v->taken.weight_from;
	c.federation.lease_s = LEASE_S;
	c.federation.names.every_s = 0; /* one that an end breaks off begins anew at once */
	c.rounds.method = (char *)(uintptr_t)v->settings.method;
	memcpy(c.rounds.value, v->settings.value, sizeof(c.rounds.value));
	c.rounds.epochs = v->epochs;
	c.rounds.first_epochs = 0;
	c.rounds.eval_every = v->eval_every;
	c.rounds.stop_when_worse = 0; /* as the papers have it */
	c.rounds.compare_rounds = v->taken.compare_rounds;
	c.rounds.patience = v->patience;
	c.rounds.bound_rows = v->taken.bound;
	c.federation.few.judge = v->taken.judge;
	c.rounds.max = max;
	c.rounds.min_members = (uint32_t)r->n;
	c.rounds.topology = v->settings.topology;
	if (v->settings.topology == FED_HOSTED) /* as in one process: the first agent */
		c.rounds.host = (char *)(uintptr_t)text_of(agent_of(f, 0), "id");
	c.rounds.min_holders = v->settings.min_holders;
	c.rounds.secret = (int)(v->settings.secret_bits / 32);
	c.rounds.secret_clip = v->settings.secret_clip;
	c.rounds.join_s = JOIN_S;
	c.rounds.train_s = TRAIN_S;
	c.rounds.stage_s = STAGE_S;
	c.rounds.equal_start = v->start != FED_START_OWN;
	c.rounds.start_seed = r->seed;
	return c;
}

static int write_settings(const struct folders *f, const struct run *r, size_t i, uint32_t max,
			  struct err *e)
{
	struct config c =
		r->v->kind == EXP_PAIRS ? config_of_pairs(f, r, i, max) : config_of(f, r, i, max);
	char *path = experiment_folders_path(f, r, i, "/agent.yaml");
	struct buf text = { 0 };
	int rc = config_check(&c, path, e);

	config_print(&c, &text);
	if (rc == 0)
		rc = file_write_atomic(path, text.base, text.len, 0600, e);
	buf_release(&text);
	free(path);
	return rc;
}

int experiment_folders_settle(const struct folders *f, const struct run *r, uint32_t max,
			      struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < r->n && rc == 0; i++)
		rc = write_settings(f, r, i, max, e);
	return rc;
}

/* ---- making them ---- */

/* Of all that there are on loopback, one that other experiments do not use. */
static uint32_t own_address(void)
{
	uint32_t pid = (uint32_t)getpid() & 0x3fffff;

	return 127u << 24 | 64u << 16 | pid;
}

static bool is_taken(const json_t *agents, const char *listen)
{
	const json_t *a;
	size_t i;

	json_array_foreach(agents, i, a) if (strcmp(text_of(a, "listen"), listen) == 0) return true;
	return false;
}

static int choose_listen(const json_t *agents, char out[32], struct err *e)
{
	uint32_t a = own_address();
	uint16_t port;
	int rc;

	do {
		rc = child_free_port(a, &port, e);
		snprintf(out, 32, "%u.%u.%u.%u:%u", a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255,
			 port);
	} while (rc == 0 && is_taken(agents, out));
	return rc;
}

static int init_agent(struct folders *f, const struct run *r, size_t i, struct err *e)
{
	json_t *agents = json_object_get(f->head, "agents"), *made = NULL;
	char listen[32];
	const char *words[] = { "init", "--name", r->at[i].name, NULL };
	int rc = choose_listen(agents, listen, e);

	if (rc == 0)
		rc = run_words(f, r, i, words, &made, e);
	if (rc == 0)
		json_array_append_new(agents, json_pack("{s:o, s:s, s:s}", "name",
							store_json_of_text(r->at[i].name), "id",
							text_of(made, "id"), "listen", listen));
	json_decref(made);
	return rc;
}

static int import_data(const struct folders *f, const struct run *r, size_t i, struct err *e)
{
	char *graph = file_join(r->x->data, r->at[i].name);
	char *names = experiment_names_path(r->x, r->at[i].name);
	const char *import[] = { "import", graph, NULL };
	const char *alias[] = { "import", "--alias", names, NULL };
	int rc = run_words(f, r, i, import, NULL, e);

	if (rc == 0 && names != NULL)
		rc = run_words(f, r, i, alias, NULL, e);
	free(graph);
	free(names);
	return rc;
}

static int befriend(const struct folders *f, const struct run *r, size_t a, size_t b, struct err *e)
{
	char *line = experiment_folders_path(f, r, b, ".invitation");
	const char *invite[] = {
		"invite", "--for", text_of(agent_of(f, b), "id"), "-o", line, NULL
	};
	const char *join[] = { "join", line, NULL };
	int rc = run_words(f, r, a, invite, NULL, e);

	if (rc == 0)
		rc = run_words(f, r, b, join, NULL, e);
	unlink(line);
	free(line);
	return rc;
}

int experiment_folders_save(const struct folders *f, struct err *e)
{
	char *path = file_join(f->path, head_name);
	char *text = json_dumps(f->head, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
	int rc = file_write_atomic(path, text, strlen(text), 0644, e);

	free(text);
	free(path);
	return rc;
}

static int make_all(struct folders *f, const struct run *r, struct err *e)
{
	int rc = 0;

	f->head = json_pack("{s:s, s:s, s:I, s:o, s:[]}", "fkge", FKGE_VERSION, "data_digest",
			    r->x->digest, "seed", (json_int_t)r->seed, "settings",
			    experiment_settings_json(r->x, r->v), "agents");
	for (size_t i = 0; i < r->n && rc == 0; i++)
		rc = init_agent(f, r, i, e);
	if (rc == 0)
		rc = experiment_folders_settle(f, r, r->v->rounds, e);
	for (size_t i = 0; i < r->n && rc == 0; i++)
		rc = import_data(f, r, i, e);
	for (size_t i = 0; i < r->n; i++)
		for (size_t k = i + 1; k < r->n && rc == 0; k++)
			rc = befriend(f, r, i, k, e);
	return rc == 0 ? experiment_folders_save(f, e) : rc;
}

/* ---- what is there already ---- */

static int take_lock(struct folders *f, struct err *e)
{
	char *path = file_join(f->path, "lock");

	f->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (f->lock < 0)
		err_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	else if (flock(f->lock, LOCK_EX | LOCK_NB) != 0)
		err_set(e, ERR_BUSY, "%s: another experiment is at work on this run", path);
	else
		e->code = 0;
	free(path);
	return e->code;
}

static bool wait_for_end(const struct folder *f, int ms)
{
	const struct timespec pause = { .tv_nsec = POLL_MS * 1000000L };

	for (; ms > 0; ms -= POLL_MS) {
		if (folder_holder(f) == 0)
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

/* Of an experiment that was killed: its agents end with it, but need not have done so yet. */
static int end_stray(const struct folders *f, const struct run *r, size_t i, struct err *e)
{
	static const struct {
		int signal, patience_ms;
	} steps[] = { { 0, 2000 }, { SIGTERM, 20000 }, { SIGKILL, 20000 } };
	char *path = experiment_folders_path(f, r, i, "");
	struct folder folder;
	bool ended = false;

	folder_paths(&folder, path);
	for (size_t k = 0; k < 3 && !ended; k++) {
		pid_t pid = folder_holder(&folder);

		if (pid > 0)
			kill(pid, steps[k].signal);
		ended = pid == 0 || wait_for_end(&folder, steps[k].patience_ms);
	}
	if (!ended)
		err_set(e, ERR_BUSY, "%s: the agent that runs there (process %lld) does not end",
			path, (long long)folder_holder(&folder));
	folder_close(&folder);
	free(path);
	return ended ? 0 : ERR_BUSY;
}

static int read_head(struct folders *f, const struct run *r)
{
	char *path = file_join(f->path, head_name);

	f->head = json_load_file(path, 0, NULL);
	free(path);
	if (f->head == NULL)
		return ERR_NOTFOUND;
	if (experiment_is_head_of(r, r->v, f->head) &&
	    json_array_size(json_object_get(f->head, "agents")) == r->n)
		return 0;
	lab_note(r->notes, "%s: begins anew: %s is of other settings or data\n", r->v->name,
		 f->path);
	json_decref(f->head);
	f->head = NULL;
	return ERR_NOTFOUND;
}

/* ---- new addresses ---- */

/* Where this key's agent listens; NULL: it is none of them. */
static const char *listen_of(const struct folders *f, const uint8_t peer[STORE_KEY])
{
	const json_t *a;
	uint8_t key[STORE_KEY];
	size_t i;

	json_array_foreach(json_object_get(f->head, "agents"), i,
			   a) if (net_key_parse(text_of(a, "id"), key, NULL) == 0 &&
				  memcmp(key, peer, STORE_KEY) == 0) return text_of(a, "listen");
	return NULL;
}

/* One that is not dialled stays so. */
static int move_peers(const struct folders *f, struct store *s, struct err *e)
{
	struct roster peers = { 0 };
	struct store_batch b = { 0 };
	int rc = folder_load_roster(s, &peers, e);

	for (size_t i = 0; i < peers.n && rc == 0; i++) {
		struct store_peer *p = &peers.at[i];
		const char *listen = listen_of(f, p->key);

		if (listen == NULL || p->address[0] == '\0')
			continue;
		snprintf(p->address, sizeof(p->address), "%s", listen);
		store_batch_peer(&b, p);
	}
	if (rc == 0)
		rc = store_apply(s, &b, e);
	store_batch_release(&b);
	roster_release(&peers);
	return rc;
}

static int move_agent(const struct folders *f, const struct run *r, size_t i, struct err *e)
{
	char *path = experiment_folders_path(f, r, i, "");
	struct folder folder;
	int rc = folder_open(&folder, path, FOLDER_CONFIG | FOLDER_IDENTITY | FOLDER_WRITE, e);

	free(path);
	if (rc == 0) {
		rc = move_peers(f, folder.store, e);
		folder_close(&folder);
	}
	return rc != 0 ? err_prefix(e, "agent %s", r->at[i].name) : 0;
}

/* Peers are moved by their keys, so an interrupted run can move all of them again. */
static int move_all(struct folders *f, const struct run *r, struct err *e)
{
	json_t *agents = json_object_get(f->head, "agents");
	char listen[32];
	int rc = 0;

	for (size_t i = 0; i < r->n && rc == 0; i++) {
		rc = choose_listen(agents, listen, e);
		json_object_set_new(agent_of(f, i), "listen", json_string(listen));
	}
	for (size_t i = 0; i < r->n && rc == 0; i++)
		rc = move_agent(f, r, i, e);
	return rc == 0 ? experiment_folders_save(f, e) : rc;
}

/* All but the lock, which we hold. */
static void clear(const struct folders *f, const struct run *r)
{
	char *head = file_join(f->path, head_name);

	unlink(head);
	free(head);
	for (size_t i = 0; i < r->n; i++) {
		char *path = experiment_folders_path(f, r, i, "");

		file_remove_folder(path);
		free(path);
	}
}

int experiment_folders_open(struct folders *f, struct run *r, struct err *e)
{
	int rc;

	*f = (struct folders){ .path = experiment_agents_path(r->out, r->v, r->seed), .lock = -1 };
	rc = check_paths(f, r, e);
	if (rc == 0)
		rc = check_all_share(r, e);
	if (rc == 0)
		rc = file_make_folder(f->path, 0755, e);
	if (rc == 0)
		rc = take_lock(f, e);
	for (size_t i = 0; i < r->n && rc == 0; i++)
		rc = end_stray(f, r, i, e);
	if (rc != 0)
		return rc;
	if (read_head(f, r) == 0)
		return move_all(f, r, e);
	clear(f, r);
	return make_all(f, r, e);
}

void experiment_folders_close(struct folders *f)
{
	if (f->lock >= 0)
		close(f->lock);
	json_decref(f->head);
	free(f->path);
	*f = (struct folders){ .lock = -1 };
}

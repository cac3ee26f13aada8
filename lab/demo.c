/* lab/demo.c - `fkge demo`: several companies on one machine, and what each gains.
 *
 *   data/NAME/          what the company knows: train, valid, test; aliases.tsv
 *   before/NAME/        its agent, trained alone
 *   procrustes/, ppat/  copies that are joined and served as processes on loopback
 *   control-.../NAME/   copies that train on without partners, as many rounds as those
 *   report.md, report.json */
#include "lab/demo.h"

#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/parallel.h"

atomic_bool demo_interrupted;

char *demo_path(const struct demo *d, const char *arm, uint32_t agent, const char *suffix)
{
	return mem_printf("%s/%s/%s%s", d->folder, arm, d->world->agent[agent].name, suffix);
}

/* ---- the same command for every company, as many at a time as there are cores ---- */

static int run_each(struct demo *d, const char *arm, const char *const *words, json_t **result,
		    struct err *e)
{
	struct child child[WORLD_AGENTS_MAX] = { { 0 } };
	uint32_t n = d->world->n, cores = (uint32_t)parallel_cores(), begun = 0;
	int rc = 0;

	for (uint32_t i = 0; i < n; i++) {
		for (; rc == 0 && begun < n && begun < i + cores; begun++) {
			char *folder = demo_path(d, arm, begun, "");
			char *log = demo_path(d, arm, begun, ".log");

			rc = child_start(&child[begun], folder, words, log, true, e);
			free(folder);
			free(log);
		}
		if (i < begun && child[i].pid != 0) {
			struct err own;
			int ended =
				child_finish(&child[i], result != NULL ? &result[i] : NULL, &own);

			if (ended != 0 && rc == 0)
				rc = err_set(e, ended, "%s: %s", d->world->agent[i].name, own.text);
		}
	}
	return rc;
}

static void release_each(json_t **result)
{
	for (uint32_t i = 0; i < WORLD_AGENTS_MAX; i++)
		json_decref(result[i]);
}

static int run_one(struct demo *d, const char *arm, uint32_t agent, const char *const *words,
		   json_t **result, struct err *e)
{
	char *folder = demo_path(d, arm, agent, ""), *log = demo_path(d, arm, agent, ".log");
	int rc = child_run(folder, words, log, result, e);

	free(folder);
	free(log);
	return rc != 0 ? err_prefix(e, "%s", d->world->agent[agent].name) : 0;
}

/* ---- agent.yaml ---- */

static const char model[] = "transe_l2, dim 64, gamma 6";

static int write_config(const struct demo *d, const char *arm, uint32_t agent, const char *listen,
			struct err *e)
{
	char *path = demo_path(d, arm, agent, "/agent.yaml");
	struct buf yaml = { 0 };
	int rc;

	buf_printf(&yaml, "name: %s\nlisten: %s\n", d->world->agent[agent].name, listen);
	buf_printf(&yaml, "model: {kind: transe_l2, dim: 64, gamma: 6}\n");
	buf_printf(&yaml,
		   "train: {epochs: %u, lr: 0.005, negatives: 32, batch: 256, threads: 1, "
		   "seed: %u, eval_every: 10, patience: 0}\n",
		   d->epochs, agent + 1);
	buf_printf(&yaml, "eval: {protocol: standard}\n");
	/* names_every_s: a comparison that kill -9 breaks off is begun anew at once */
	buf_printf(&yaml,
		   "federation: {translator: %s, share: entities, aggregate: mean, "
		   "epochs_per_round: %u, max_rounds: %u, sleep_s: 0, "
		   "names_every_s: 0}\n",
		   strcmp(arm, "ppat") == 0 ? "ppat" : "procrustes", d->round_epochs, d->rounds);
	buf_printf(&yaml, "ppat: {mode: paper}\n");
	if (agent == 0)
		buf_printf(&yaml, "query: {rules: \"facts * targets\"}\n");
	buf_printf(&yaml, "privacy: {delta: 1e-5, epsilon_per_peer: 2.73, epsilon_total: 20, "
			  "accountant: exact, useless_sessions: spend}\n");
	if (d->dashboard)
		buf_printf(&yaml, "http: {listen: 127.0.0.1:0}\n");
	rc = file_write_atomic(path, yaml.base, yaml.len, 0600, e);
	buf_release(&yaml);
	free(path);
	return rc;
}

/* ---- before ---- */

static int write_data(struct demo *d, uint32_t agent, struct err *e)
{
	char *graph = demo_path(d, "data", agent, "");
	char *table = demo_path(d, "data", agent, ".aliases.tsv");
	int rc = world_write_graph(&d->world->agent[agent], graph, e);

	if (rc == 0 && d->world->agent[agent].has_aliases)
		rc = world_write_aliases(&d->world->agent[agent], table, e);
	free(graph);
	free(table);
	return rc;
}

static int make_agent(struct demo *d, uint32_t agent, struct err *e)
{
	const struct world_agent *a = &d->world->agent[agent];
	char *graph = demo_path(d, "data", agent, "");
	char *table = demo_path(d, "data", agent, ".aliases.tsv");
	const char *init[] = { "init", "--name", a->name, NULL };
	const char *import[] = { "import", graph, NULL };
	const char *alias[] = { "import", "--alias", table, NULL };
	int rc = run_one(d, "before", agent, init, NULL, e);

	if (rc == 0)
		rc = write_config(d, "before", agent, "off", e);
	if (rc == 0)
		rc = run_one(d, "before", agent, import, NULL, e);
	if (rc == 0 && a->has_aliases)
		rc = run_one(d, "before", agent, alias, NULL, e);
	free(graph);
	free(table);
	return rc;
}

static json_t *describe_agent(const struct world_agent *a)
{
	const struct graph *g = a->graph;
	char triples[64];

	snprintf(triples, sizeof(triples), "%zu / %zu / %zu", g->split[GRAPH_TRAIN].n,
		 g->split[GRAPH_VALID].n, g->split[GRAPH_TEST].n);
	return json_pack("{s:s, s:s, s:I, s:s, s:s, s:b}", "name", a->name, "about", a->about,
			 "entities", (json_int_t)graph_vocab_count(g->entities), "triples", triples,
			 "asks",
			 graph_vocab_name(g->relations, g->split[GRAPH_TEST].at[0].rel, NULL),
			 "aliases", a->has_aliases);
}

/* ---- figures ---- */

static json_t *score_of(const json_t *metrics)
{
	json_t *j = json_object();
	static const char *const keys[] = { "mrr", "hits1", "hits10", "mr", "queries" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		json_object_set(j, keys[i], json_object_get(metrics, keys[i]));
	return j;
}

/* Test scores of an arm into the report, and the valid score that chose its state. */
static int put_scores(struct demo *d, const char *arm, bool with_floor, struct err *e)
{
	static const char *const words[] = { "eval",	 "--split", "test", "--protocol",
					     "standard", "--floor", NULL };
	json_t *result[WORLD_AGENTS_MAX] = { NULL }, *agents = json_object_get(d->report, "agents");
	int rc = run_each(d, arm, words, result, e);

	for (uint32_t i = 0; i < d->world->n && rc == 0; i++) {
		json_t *agent = json_array_get(agents, i);
		json_t *score = score_of(json_object_get(result[i], "metrics"));

		json_object_set(
			score, "valid",
			json_object_get(json_object_get(result[i], "checkpoint"), "valid_score"));
		json_object_set_new(agent, arm, score);
		if (with_floor)
			json_object_set_new(agent, "floor",
					    score_of(json_object_get(result[i], "floor")));
	}
	release_each(result);
	return rc;
}

/* ---- arms without partners ---- */

static int make_folder(const struct demo *d, const char *name, struct err *e)
{
	char *path = file_join(d->folder, name);
	int rc = file_make_folder(path, 0700, e);

	free(path);
	return rc;
}

static int before(struct demo *d, struct err *e)
{
	static const char *const train[] = { "train", NULL };
	json_t *agents = json_array();
	int rc = make_folder(d, "before", e);

	json_object_set_new(d->report, "agents", agents);
	for (uint32_t i = 0; i < d->world->n && rc == 0; i++) {
		json_array_append_new(agents, describe_agent(&d->world->agent[i]));
		rc = write_data(d, i, e);
		if (rc == 0)
			rc = make_agent(d, i, e);
	}
	lab_note(d->notes, "Each company trains alone: %u epochs\n", d->epochs);
	if (rc == 0)
		rc = run_each(d, "before", train, NULL, e);
	return rc != 0 ? rc : put_scores(d, "before", true, e);
}

static int copy_agents(struct demo *d, const char *arm, struct err *e)
{
	char *from = file_join(d->folder, "before"), *to = file_join(d->folder, arm);
	int rc = child_copy(from, to, e);

	free(from);
	free(to);
	return rc;
}

/* ---- control arm ---- */

static int train_on(struct demo *d, const char *arm, uint32_t agent, long long n, struct err *e)
{
	char rounds[24], epochs[16];
	const char *train[] = { "train", "--rounds", rounds, "--epochs", epochs, NULL };

	snprintf(rounds, sizeof(rounds), "%lld", n);
	snprintf(epochs, sizeof(epochs), "%u", d->round_epochs);
	return n > 0 ? run_one(d, arm, agent, train, NULL, e) : 0;
}

/* Every round that an agent trained in a federation: after partners, and alone. */
static long long rounds_of(const json_t *status, uint32_t agent)
{
	const json_t *s = json_array_get(status, agent);

	return json_integer_value(json_object_get(s, "rounds")) +
	       json_integer_value(json_object_get(s, "local_rounds"));
}

/* The scores of each company after as many rounds alone as it made in this federation. */
static int control(struct demo *d, const char *of, const json_t *status, struct err *e)
{
	char arm[32];
	int rc;

	snprintf(arm, sizeof(arm), "control-%s", of);
	lab_note(d->notes, "Control arm: as many rounds of %u epochs, no partners\n",
		 d->round_epochs);
	rc = copy_agents(d, arm, e);
	for (uint32_t i = 0; i < d->world->n && rc == 0; i++)
		rc = train_on(d, arm, i, rounds_of(status, i), e);
	if (rc == 0)
		rc = put_scores(d, arm, false, e);
	for (uint32_t i = 0; i < d->world->n && rc == 0; i++) {
		json_t *agent = json_array_get(json_object_get(d->report, "agents"), i);
		long long n = rounds_of(status, i);

		json_object_set_new(json_object_get(agent, of), "rounds", json_integer(n));
		json_object_set_new(json_object_get(agent, arm), "rounds", json_integer(n));
	}
	return rc;
}

/* ---- a federation ---- */

static int invite_and_join(struct demo *d, const char *arm, uint32_t host, uint32_t guest,
			   const char *address, const char *guest_id, struct err *e)
{
	char *line = demo_path(d, arm, guest, ".invitation");
	const char *invite[] = {
		"invite", "--for", guest_id, "--address", address, "-o", line, NULL
	};
	const char *join[] = { "join", line, NULL };
	int rc = run_one(d, arm, host, invite, NULL, e);

	if (rc == 0)
		rc = run_one(d, arm, guest, join, NULL, e);
	unlink(line);
	free(line);
	return rc;
}

/* Everybody with everybody, each on a port of its own. */
static int join_all(struct demo *d, const char *arm, json_t *const *id, struct err *e)
{
	char address[WORLD_AGENTS_MAX][32];
	int rc = 0;

	for (uint32_t i = 0; i < d->world->n && rc == 0; i++) {
		uint16_t port = 0;

		rc = child_free_port(INADDR_LOOPBACK, &port, e);
		snprintf(address[i], sizeof(address[i]), "127.0.0.1:%u", port);
		if (rc == 0)
			rc = write_config(d, arm, i, address[i], e);
	}
	for (uint32_t i = 0; i < d->world->n; i++)
		for (uint32_t j = i + 1; j < d->world->n && rc == 0; j++)
			rc = invite_and_join(d, arm, i, j, address[i],
					     json_string_value(json_object_get(id[j], "id")), e);
	return rc;
}

/* ---- what each pair spent ---- */

static const json_t *find_pair(const json_t *list, const char *key, const json_t *value)
{
	const json_t *j;
	size_t i;

	json_array_foreach(list, i, j) if (json_equal(json_object_get(j, key), value)) return j;
	return NULL;
}

static json_int_t count_of(const json_t *j, const char *key)
{
	return json_integer_value(json_object_get(j, key));
}

static bool is_word(const json_t *j, const char *key, const char *word)
{
	const char *text = json_string_value(json_object_get(j, key));

	return text != NULL && strcmp(text, word) == 0;
}

/* From the host's exported ledger: mechanism, sessions, and their time from reserve to settle. */
static void add_entries(json_t *pair, const json_t *entries, const json_t *host,
			const json_t *client)
{
	const json_t *x, *reserved = NULL;
	json_int_t sessions = 0, took_ms = 0;
	size_t i;

	json_array_foreach(entries, i, x)
	{
		if (!json_equal(json_object_get(x, "host"), host) ||
		    !json_equal(json_object_get(x, "client"), client))
			continue;
		if (is_word(x, "kind", "contract")) {
			json_object_set(pair, "noise", json_object_get(x, "noise"));
			json_object_set(pair, "param", json_object_get(x, "param"));
			json_object_set(pair, "teachers", json_object_get(x, "teachers"));
			json_object_set(pair, "batch", json_object_get(x, "batch"));
			json_object_set(pair, "delta", json_object_get(x, "delta"));
		} else if (is_word(x, "kind", "reserve")) {
			if (reserved == NULL || !json_equal(json_object_get(reserved, "session"),
							    json_object_get(x, "session")))
				reserved = x;
		} else if (is_word(x, "kind", "settle") && reserved != NULL) {
			took_ms += count_of(x, "time") - count_of(reserved, "time");
			sessions++;
			reserved = NULL;
		}
	}
	json_object_set_new(pair, "sessions", json_integer(sessions));
	json_object_set_new(pair, "seconds", json_real((double)took_ms / 1000));
}

/* Bytes from client to host, by whichever of the two has counted longer. */
static void add_links(json_t *pair, const json_t *host_status, const json_t *client_status)
{
	const json_t *in = find_pair(json_object_get(host_status, "peers"), "id",
				     json_object_get(client_status, "id"));
	const json_t *out = find_pair(json_object_get(client_status, "peers"), "id",
				      json_object_get(host_status, "id"));
	json_int_t came = count_of(in, "bytes_in"), went = count_of(out, "bytes_out");

	json_object_set_new(pair, "bytes", json_integer(came > went ? came : went));
	json_object_set(pair, "shared", json_object_get(in, "shared_entities"));
}

static json_t *describe_pair(struct demo *d, const char *arm, uint32_t host, uint32_t client,
			     json_t *const *id, const json_t *shown, const json_t *exported)
{
	const json_t *status = json_object_get(
		json_array_get(json_object_get(d->report, "arms"),
			       json_array_size(json_object_get(d->report, "arms")) - 1),
		"status");
	const json_t *chain = find_pair(json_object_get(shown, "chains"), "partner_key",
					json_object_get(id[client], "sign_key"));
	const json_t *account = json_object_get(chain, "as_host");
	json_t *pair =
		json_pack("{s:s, s:s, s:s}", "translator", arm, "host", d->world->agent[host].name,
			  "client", d->world->agent[client].name);

	json_object_set(pair, "labels", json_object_get(account, "labels"));
	json_object_set(pair, "labels_cap", json_object_get(account, "labels_cap"));
	json_object_set(pair, "rows", json_object_get(account, "rows_disclosed_by_client"));
	json_object_set(pair, "floats", json_object_get(account, "floats_disclosed_by_client"));
	add_entries(pair, json_object_get(exported, "entries"),
		    json_object_get(id[host], "sign_key"), json_object_get(id[client], "sign_key"));
	add_links(pair, json_array_get(status, host), json_array_get(status, client));
	return pair;
}

static int export_ledger(struct demo *d, const char *arm, uint32_t agent, json_t **out,
			 struct err *e)
{
	char *file = demo_path(d, arm, agent, ".ledger");
	const char *words[] = { "ledger", "export", file, NULL };
	int rc = run_one(d, arm, agent, words, NULL, e);

	*out = rc == 0 ? json_load_file(file, 0, NULL) : NULL;
	if (rc == 0 && *out == NULL)
		rc = err_set(e, ERR_INPUT, "%s: not the ledger that was just written", file);
	free(file);
	return rc;
}

static int put_pairs(struct demo *d, const char *arm, json_t *const *id, struct err *e)
{
	static const char *const show[] = { "ledger", "show", NULL };
	json_t *pairs = json_object_get(d->report, "pairs");
	json_t *shown[WORLD_AGENTS_MAX] = { NULL };
	int rc = run_each(d, arm, show, shown, e);

	for (uint32_t host = 0; host < d->world->n && rc == 0; host++) {
		json_t *exported;

		rc = export_ledger(d, arm, host, &exported, e);
		for (uint32_t client = 0; client < d->world->n && rc == 0; client++)
			if (client != host)
				json_array_append_new(pairs, describe_pair(d, arm, host, client, id,
									   shown[host], exported));
		json_decref(exported);
	}
	release_each(shown);
	return rc;
}

/* Every two exports against each other, as an auditor would. */
static bool ledgers_agree(struct demo *d, const char *arm)
{
	bool agree = true;

	for (uint32_t i = 0; i < d->world->n; i++) {
		for (uint32_t j = i + 1; j < d->world->n; j++) {
			char *a = demo_path(d, arm, i, ".ledger"),
			     *b = demo_path(d, arm, j, ".ledger");
			const char *words[] = { "ledger", "verify", a, b, NULL };
			struct err e;

			agree &= run_one(d, arm, i, words, NULL, &e) == 0;
			free(a);
			free(b);
		}
	}
	return agree;
}

static int settle(struct demo *d, const char *arm, json_t *arm_report, json_t *const *id,
		  struct err *e)
{
	int rc = put_pairs(d, arm, id, e);

	if (rc == 0)
		json_object_set_new(arm_report, "ledgers", json_boolean(ledgers_agree(d, arm)));
	if (rc == 0)
		rc = put_scores(d, arm, false, e);
	if (rc == 0)
		rc = control(d, arm, json_object_get(arm_report, "status"), e);
	json_object_del(arm_report, "status");
	return rc;
}

static int federation(struct demo *d, const char *arm, struct err *e)
{
	static const char *const who[] = { "id", NULL };
	json_t *id[WORLD_AGENTS_MAX] = { NULL };
	json_t *arm_report = json_pack("{s:s}", "translator", arm);
	int rc = copy_agents(d, arm, e);

	json_array_append_new(json_object_get(d->report, "arms"), arm_report);
	if (rc == 0)
		rc = run_each(d, arm, who, id, e);
	if (rc == 0)
		rc = join_all(d, arm, id, e);
	lab_note(d->notes,
		 "Federation by %s: %u processes on loopback, at most %u rounds with partners\n",
		 arm, d->world->n, d->rounds);
	if (rc == 0)
		rc = demo_serve(d, arm, arm_report, e);
	if (rc == 0 && !d->dashboard)
		rc = settle(d, arm, arm_report, id, e);
	release_each(id);
	return rc;
}

/* ---- the report ---- */

/* text: the report for people. */
static int write_report(struct demo *d, struct buf *text, struct err *e)
{
	char *md = file_join(d->folder, "report.md"), *js = file_join(d->folder, "report.json");
	char *json = json_dumps(d->report, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
	int rc;

	demo_report_print(d->report, text);
	rc = file_write_atomic(md, text->base, text->len, 0644, e);
	if (rc == 0)
		rc = file_write_atomic(js, json, strlen(json), 0644, e);
	lab_note(d->notes, "The report is in %s and %s\n", md, js);
	free(json);
	free(md);
	free(js);
	return rc;
}

static void begin_report(struct demo *d)
{
	d->report =
		json_pack("{s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:s, s:o, s:o}", "seed",
			  (json_int_t)d->config.seed, "percent", (json_int_t)d->config.percent,
			  "epochs", (json_int_t)d->epochs, "rounds", (json_int_t)d->rounds,
			  "round_epochs", (json_int_t)d->round_epochs, "model", model, "protocol",
			  "standard (both sides, filtered by all splits, all entities, "
			  "realistic ties)",
			  "version", FKGE_VERSION, "pairs", json_array(), "arms", json_array());
}

int demo_play(struct demo *d, struct buf *text, struct err *e)
{
	int rc;

	begin_report(d);
	d->world = world_new(&d->config);
	rc = before(d, e);
	if (rc == 0)
		rc = federation(d, "procrustes", e);
	d->asks = true;
	if (rc == 0 && !d->dashboard)
		rc = federation(d, "ppat", e);
	if (rc == 0 && !d->dashboard)
		rc = write_report(d, text, e);
	world_free(d->world);
	return rc;
}

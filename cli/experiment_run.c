/* cli/experiment_run.c - one variant with one seed: all agents, in this process. */
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli/experiment.h"
#include "cli/report.h"
#include "cli/work.h"
#include "fed/local.h"
#include "kge/alias.h"
#include "kge/eval.h"

struct client {
	char *name;
	struct kge_graph *graph, blind; /* blind: without test */
	struct kge_aliases *names;	/* of entities; relations go by their own */
	struct kge_emb *emb;		/* what is trained */
	struct kge_emb *looked, *best;	/* at the last look; at the best one */
	/* The table that travels, where the method has one of its own (FedLU's global one); else
	 * NULL */
	const struct kge_emb *shared;
	struct kge_emb *shared_looked, *shared_best;
	struct kge_metrics valid, test, shared_test;
	struct kge_trainer *trainer; /* of the control arm */
};

struct run {
	struct cli *cli;
	const struct experiment *x;
	const struct exp_variant *v;
	uint64_t seed;
	const atomic_bool *cancel;
	struct client *at;
	size_t n;
	struct progress bar;
	bool looking; /* this round ends with a look at valid */
	double loss;  /* mean over the agents, of the last local epoch */
	/* what has gone over the wire, all agents, both ways: as the papers count, and as sent */
	uint64_t params, bytes, most_bytes;
	uint64_t *bytes_of; /* [n] through one agent */
	json_t *curve;
	double best;
	uint32_t best_round, worse, round;
};

/* ---- the agents ---- */

static const char *label(void *ctx, char tag, uint32_t id, size_t *len)
{
	const struct client *c = ctx;
	const char *alias = tag == 'e' ? kge_alias_of(c->names, id, len) : NULL;

	return alias != NULL ? alias
			     : kge_vocab_name(tag == 'e' ? c->graph->entities : c->graph->relations,
					      id, len);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The folders in `data`, by name; free() each and the list. */
static int list_agents(const char *data, char ***out, size_t *n, struct err *e)
{
	DIR *d = opendir(data);
	struct dirent *f;

	*out = NULL;
	*n = 0;
	if (d == NULL)
		return err_set(e, ERR_NOTFOUND, "%s: no such folder (experiment.data)", data);
	while ((f = readdir(d)) != NULL) {
		char *path = file_join(data, f->d_name);
		char *tsv = file_join(path, "train.tsv"), *gz = file_join(path, "train.tsv.gz");

		if (f->d_name[0] != '.' && (file_exists(tsv) || file_exists(gz))) {
			*out = mem_resize(*out, *n + 1, sizeof(**out));
			(*out)[(*n)++] = mem_strdup(f->d_name);
		}
		free(path);
		free(tsv);
		free(gz);
	}
	closedir(d);
	if (*n > 1)
		qsort(*out, *n, sizeof(**out), compare_names);
	if (*n >= 2 && *n <= FED_MEMBERS_MAX)
		return 0;
	return err_set(
		e, ERR_INPUT,
		"%s: %zu folders with a train.tsv; an experiment needs 2 to %d, one an agent", data,
		*n, FED_MEMBERS_MAX);
}

static int load_names(struct client *c, const char *folder, struct err *e)
{
	char *file, *path;
	int rc;

	if (folder[0] == '\0')
		return 0;
	file = mem_array(strlen(c->name) + 5, 1);
	memcpy(file, c->name, strlen(c->name));
	memcpy(file + strlen(c->name), ".tsv", 5);
	path = file_join(folder, file);
	rc = kge_aliases_load(&c->names, path, c->graph->entities, false, NULL, e);
	free(file);
	free(path);
	return rc;
}

static int load_agent(struct run *r, struct client *c, struct err *e)
{
	char *path = file_join(r->x->data, c->name);
	int rc = kge_graph_load(&c->graph, path, NULL, NULL, e);

	free(path);
	if (rc != 0)
		return rc;
	c->blind = *c->graph;
	c->blind.split[KGE_TEST] = (struct kge_triples){ 0 };
	if (c->blind.split[KGE_VALID].n == 0)
		return err_set(e, ERR_INPUT, "%s/%s: no valid triples, so nothing can be chosen",
			       r->x->data, c->name);
	return load_names(c, r->x->names, e);
}

static int load_agents(struct run *r, struct err *e)
{
	char **names;
	int rc = list_agents(r->x->data, &names, &r->n, e);

	r->at = mem_array(r->n + 1, sizeof(*r->at));
	r->bytes_of = mem_array(r->n + 1, sizeof(*r->bytes_of));
	for (size_t i = 0; i < r->n; i++) {
		r->at[i].name = names[i];
		if (rc == 0)
			rc = load_agent(r, &r->at[i], e);
	}
	free(names);
	return rc;
}

static void run_release(struct run *r)
{
	for (size_t i = 0; i < r->n; i++) {
		struct client *c = &r->at[i];

		kge_trainer_free(c->trainer);
		kge_emb_free(c->emb);
		kge_emb_free(c->looked);
		kge_emb_free(c->best);
		kge_emb_free(c->shared_looked);
		kge_emb_free(c->shared_best);
		kge_aliases_free(c->names);
		if (c->graph != NULL)
			kge_graph_free(c->graph);
		free(c->name);
	}
	free(r->at);
	free(r->bytes_of);
	json_decref(r->curve);
}

/* Agents' tables and orders differ, and follow from the seed. */
static uint64_t seed_of(const struct run *r, size_t agent)
{
	return r->seed * 1000 + agent;
}

static struct kge_train_config training_of(const struct run *r, size_t agent)
{
	struct kge_train_config c = r->v->config.train.kge;

	c.seed = seed_of(r, agent);
	return c;
}

static void make_tables(struct run *r, size_t i)
{
	struct client *c = &r->at[i];
	struct rng g;

	rng_seed(&g, seed_of(r, i));
	c->emb = config_tables(&r->v->config, kge_vocab_count(c->graph->entities),
			       kge_vocab_count(c->graph->relations), &g);
	c->looked = kge_emb_copy(c->emb);
	c->best = kge_emb_copy(c->emb);
}

/* ---- looks at valid ---- */

static bool canceled(const struct run *r)
{
	return r->cancel != NULL && atomic_load(r->cancel);
}

static void rank(const struct run *r, const struct kge_emb *emb, const struct kge_graph *g,
		 enum kge_split split, struct kge_metrics *out)
{
	const struct config *c = &r->v->config;
	struct kge_protocol p = split == KGE_VALID ? work_valid_protocol(c) : *config_protocol(c);
	struct kge_eval_options o = { .threads = c->train.kge.threads,
				      .limit = split == KGE_VALID ? c->eval.valid_limit : 0,
				      .seed = r->seed };

	kge_evaluate(emb, g, split, &p, &o, out);
}

static void look_at(struct run *r, size_t agent, const struct kge_emb *emb)
{
	struct client *c = &r->at[agent];

	kge_emb_assign(c->looked, emb);
	if (c->shared != NULL)
		kge_emb_assign(c->shared_looked, c->shared);
	rank(r, emb, &c->blind, KGE_VALID, &c->valid);
}

enum figures { OF_VALID, OF_TEST, OF_SHARED_TEST };

/* Each triple of a split is as many queries, also of those that a sample of valid leaves out. */
static double weight_of(const struct run *r, size_t i, enum figures of)
{
	const struct kge_triples *split = r->at[i].graph->split;

	return r->x->average == EXP_PLAIN ? 1
	       : r->x->average == EXP_TRIPLES
		       ? (double)split[KGE_TRAIN].n
		       : (double)split[of == OF_VALID ? KGE_VALID : KGE_TEST].n;
}

static void mean_of(const struct run *r, enum figures of, struct kge_metrics *out)
{
	struct kge_metrics m[FED_MEMBERS_MAX];
	double w[FED_MEMBERS_MAX];

	for (size_t i = 0; i < r->n; i++) {
		m[i] = of == OF_VALID  ? r->at[i].valid
		       : of == OF_TEST ? r->at[i].test
				       : r->at[i].shared_test;
		w[i] = weight_of(r, i, of);
	}
	kge_metrics_average(m, w, r->n, out);
}

/* All have been looked at.  False: it is time to stop. */
static bool judge(struct run *r)
{
	struct kge_metrics m;

	mean_of(r, OF_VALID, &m);
	json_array_append_new(r->curve,
			      json_pack("{s:I, s:o, s:o, s:o, s:I, s:I}", "round",
					(json_int_t)r->round, "valid_mrr", cli_json_number(m.mrr),
					"valid_hits10", cli_json_number(m.hits10), "loss",
					cli_json_number(r->loss), "params", (json_int_t)r->params,
					"bytes", (json_int_t)r->bytes));
	if (!(m.mrr > r->best))
		return r->v->patience == 0 || ++r->worse < r->v->patience;
	r->best = m.mrr;
	r->best_round = r->round;
	r->worse = 0;
	for (size_t i = 0; i < r->n; i++) {
		kge_emb_assign(r->at[i].best, r->at[i].looked);
		if (r->at[i].shared != NULL)
			kge_emb_assign(r->at[i].shared_best, r->at[i].shared_looked);
	}
	return true;
}

static bool is_look(const struct run *r)
{
	return r->round % r->v->eval_every == 0 || r->round == r->v->rounds;
}

static void show_progress(struct run *r)
{
	progress_at(&r->bar, (double)r->round / r->v->rounds, "round %u, best valid MRR %.4f at %u",
		    r->round, r->best, r->best_round);
}

/* ---- each alone ---- */

static int train_alone(struct run *r, size_t i)
{
	struct client *c = &r->at[i];
	struct kge_train_config t = training_of(r, i);
	double loss = 0;
	int rc = 0;

	if (c->trainer == NULL)
		c->trainer = kge_trainer_new(&t, &c->blind, c->emb);
	for (uint32_t k = 0; k < r->v->epochs && rc == 0; k++)
		rc = kge_trainer_epoch(c->trainer, &loss, r->cancel);
	r->loss += loss / (double)r->n;
	return rc;
}

static int run_single(struct run *r)
{
	int rc = 0;

	for (r->round = 1; rc == 0 && r->round <= r->v->rounds; r->round++) {
		r->loss = 0;
		for (size_t i = 0; i < r->n && rc == 0; i++)
			rc = train_alone(r, i);
		for (size_t i = 0; i < r->n && rc == 0 && is_look(r); i++)
			look_at(r, i, r->at[i].emb);
		if (rc == 0 && is_look(r) && !judge(r))
			break;
		show_progress(r);
	}
	return rc;
}

/* ---- all in one ---- */

struct pool {
	struct kge_graph *graph;
	struct kge_emb *emb;
	uint32_t **ent, **rel; /* [agent][local id]: id in the pool */
};

static uint32_t *pool_ids(struct kge_vocab *pool, struct client *c, char tag)
{
	uint32_t n = kge_vocab_count(tag == 'e' ? c->graph->entities : c->graph->relations);
	uint32_t *ids = mem_array(n, sizeof(*ids));

	for (uint32_t id = 0; id < n; id++) {
		size_t len;
		const char *name = label(c, tag, id, &len);

		ids[id] = kge_vocab_add(pool, name, len);
	}
	return ids;
}

static int compare_triples(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct kge_triple));
}

/* What two agents both know stands there once. */
static void drop_repeats(struct kge_triples *t)
{
	size_t n = 0;

	if (t->n == 0)
		return;
	qsort(t->at, t->n, sizeof(*t->at), compare_triples);
	for (size_t i = 1; i < t->n; i++)
		if (compare_triples(&t->at[n], &t->at[i]) != 0)
			t->at[++n] = t->at[i];
	t->n = n + 1;
}

static void pool_init(struct pool *p, struct run *r)
{
	p->graph = kge_graph_new();
	p->ent = mem_array(r->n, sizeof(*p->ent));
	p->rel = mem_array(r->n, sizeof(*p->rel));
	for (size_t i = 0; i < r->n; i++) {
		const struct kge_triples *t = &r->at[i].graph->split[KGE_TRAIN];

		p->ent[i] = pool_ids(p->graph->entities, &r->at[i], 'e');
		p->rel[i] = pool_ids(p->graph->relations, &r->at[i], 'r');
		for (size_t k = 0; k < t->n; k++)
			kge_graph_add(p->graph, KGE_TRAIN,
				      (struct kge_triple){ p->ent[i][t->at[k].head],
							   p->rel[i][t->at[k].rel],
							   p->ent[i][t->at[k].tail] });
	}
	drop_repeats(&p->graph->split[KGE_TRAIN]);
}

static void pool_release(struct pool *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(p->ent[i]);
		free(p->rel[i]);
	}
	free(p->ent);
	free(p->rel);
	kge_emb_free(p->emb);
	kge_graph_free(p->graph);
}

/* An agent's rows of the pool's tables. */
static void pool_take(const struct pool *p, struct run *r, size_t i)
{
	struct kge_emb *to = r->at[i].emb;

	for (uint32_t id = 0; id < to->n_ent; id++)
		memcpy(kge_ent(to, id), kge_ent(p->emb, p->ent[i][id]),
		       to->ent_floats * sizeof(float));
	for (uint32_t id = 0; id < to->n_rel; id++)
		memcpy(kge_rel(to, id), kge_rel(p->emb, p->rel[i][id]),
		       to->rel_floats * sizeof(float));
}

static int run_collective(struct run *r)
{
	const struct config *c = &r->v->config;
	struct kge_train_config t = training_of(r, 0);
	struct pool p = { 0 };
	struct kge_trainer *trainer;
	struct rng g;
	int rc = 0;

	pool_init(&p, r);
	rng_seed(&g, seed_of(r, 0));
	p.emb = config_tables(c, kge_vocab_count(p.graph->entities),
			      kge_vocab_count(p.graph->relations), &g);
	trainer = kge_trainer_new(&t, p.graph, p.emb);
	for (r->round = 1; rc == 0 && r->round <= r->v->rounds; r->round++) {
		for (uint32_t k = 0; k < r->v->epochs && rc == 0; k++)
			rc = kge_trainer_epoch(trainer, &r->loss, r->cancel);
		for (size_t i = 0; i < r->n && rc == 0 && is_look(r); i++) {
			pool_take(&p, r, i);
			look_at(r, i, r->at[i].emb);
		}
		if (rc == 0 && is_look(r) && !judge(r))
			break;
		show_progress(r);
	}
	kge_trainer_free(trainer);
	pool_release(&p, r->n);
	return rc;
}

/* ---- rounds ---- */

static bool scores_own(const struct run *r)
{
	return fed_method_find(r->v->settings.method)->scored == FED_SCORED_OWN;
}

static void trained(void *ctx, size_t agent, double loss)
{
	struct run *r = ctx;

	r->loss += loss / (double)r->n;
	if (r->looking && scores_own(r))
		look_at(r, agent, r->at[agent].emb);
}

static void count_traffic(struct run *r, const struct fed_local *l)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct fed_round *round = fed_local_last(l, i);
		struct fed_report report;

		if (round == NULL)
			continue;
		fed_round_report(round, &report);
		r->params += report.params_up + report.params_down;
		for (unsigned seat = 0; seat < report.seats; seat++) {
			const struct fed_account *a = fed_round_account(round, seat);

			r->bytes += seat == report.me ? 0 : a->bytes_out;
			r->bytes_of[i] += seat == report.me ? 0 : a->bytes_out + a->bytes_in;
		}
	}
}

static int play_rounds(struct run *r, struct fed_local *l, struct err *e)
{
	int rc = 0;

	for (r->round = 1; rc == 0 && r->round <= r->v->rounds; r->round++) {
		r->looking = is_look(r);
		r->loss = 0;
		rc = canceled(r) ? ERR_CANCELED : fed_local_round(l, (r->round - 1) % r->n, e);
		if (rc != 0)
			break;
		count_traffic(r, l);
		for (size_t i = 0; i < r->n && r->looking && !scores_own(r); i++)
			look_at(r, i, r->at[i].emb);
		if (r->looking && !judge(r))
			break;
		show_progress(r);
	}
	return rc;
}

/* Hosted, the first agent is home to all. */
static void choose_host(const struct run *r, struct fed_local *l)
{
	for (size_t i = 0; i < r->n && r->v->settings.topology == FED_HOSTED; i++)
		memcpy(fed_local_part(l, i)->settings.host, fed_local_key(l, 0), FED_KEY);
}

/* Tables of other widths are not compared (FedE-KD's narrow one). */
static void watch_shared(struct run *r, struct fed_local *l)
{
	for (size_t i = 0; i < r->n; i++) {
		struct client *c = &r->at[i];
		const struct kge_emb *t = fed_shared_table(fed_local_part(l, i));

		if (t == c->emb || t->dim != c->emb->dim)
			continue;
		c->shared = t;
		c->shared_looked = kge_emb_copy(t);
		c->shared_best = kge_emb_copy(t);
	}
}

static int run_rounds(struct run *r, struct err *e)
{
	struct fed_local_agent *agents = mem_array(r->n, sizeof(*agents));
	struct fed_local_config c = { .settings = r->v->settings,
				      .epochs = r->v->epochs,
				      .work_ms = 1,
				      .seed = r->seed,
				      .equal_start = r->v->equal_start,
				      .trained = trained,
				      .ctx = r };
	struct fed_local *l = NULL;
	int rc;

	for (size_t i = 0; i < r->n; i++)
		agents[i] = (struct fed_local_agent){ .graph = &r->at[i].blind,
						      .emb = r->at[i].emb,
						      .train = training_of(r, i),
						      .label = label,
						      .label_ctx = &r->at[i] };
	rc = fed_local_new(&l, &c, agents, r->n, e);
	if (rc == 0) {
		choose_host(r, l);
		watch_shared(r, l);
		rc = play_rounds(r, l, e);
	}
	for (size_t i = 0; i < r->n; i++)
		r->at[i].shared = NULL;
	fed_local_free(l);
	free(agents);
	return rc;
}

/* ---- the record ---- */

static json_t *metrics_json(const struct kge_metrics *m)
{
	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "queries", (json_int_t)m->queries,
			 "mrr", cli_json_number(m->mrr), "mr", cli_json_number(m->mr), "hits1",
			 cli_json_number(m->hits1), "hits3", cli_json_number(m->hits3), "hits5",
			 cli_json_number(m->hits5), "hits10", cli_json_number(m->hits10));
}

static json_t *agents_json(struct run *r)
{
	json_t *all = json_array();

	for (size_t i = 0; i < r->n; i++) {
		struct client *c = &r->at[i];
		struct kge_metrics floor;
		const struct kge_eval_options o = { .threads = r->v->config.train.kge.threads };

		rank(r, c->best, c->graph, KGE_TEST, &c->test);
		if (c->shared_best != NULL)
			rank(r, c->shared_best, c->graph, KGE_TEST, &c->shared_test);
		kge_evaluate_frequency(c->graph, KGE_TEST, config_protocol(&r->v->config), &o,
				       &floor);
		json_array_append_new(
			all,
			json_pack("{s:o, s:I, s:I, s:o, s:o, s:I}", "agent", cli_json_text(c->name),
				  "train_triples", (json_int_t)c->graph->split[KGE_TRAIN].n,
				  "entities", (json_int_t)kge_vocab_count(c->graph->entities),
				  "test", metrics_json(&c->test), "floor_mrr",
				  cli_json_number(floor.mrr), "bytes", (json_int_t)r->bytes_of[i]));
	}
	return all;
}

json_t *experiment_settings_json(const struct experiment *x, const struct exp_variant *v)
{
	static const char *const averages[] = { "queries", "triples", "plain" };
	struct buf text = { 0 };
	json_t *j = json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:i}", "data", x->data, "names",
			      x->names, "average", averages[x->average], "rounds", (int)v->rounds,
			      "epochs", (int)v->epochs, "eval_every", (int)v->eval_every,
			      "patience", (int)v->patience);

	if (v->kind == EXP_ROUNDS) {
		const struct fed_method *m = fed_method_find(v->settings.method);

		json_object_set_new(j, "method", json_string(m->name));
		json_object_set_new(
			j, "topology",
			json_string(v->settings.topology == FED_HOSTED ? "hosted" : "sharded"));
		json_object_set_new(j, "min_holders", json_integer(v->settings.min_holders));
		json_object_set_new(j, "equal_start", json_boolean(v->equal_start));
		json_object_set_new(j, "secret_bits", json_integer(v->settings.secret_bits));
		for (size_t i = 0; i < FED_VALUES_MAX && m->constant[i].key != NULL; i++)
			json_object_set_new(j, m->constant[i].key,
					    cli_json_number(v->settings.value[i]));
	} else {
		json_object_set_new(j, "method",
				    json_string(v->kind == EXP_SINGLE ? "single" : "collective"));
	}
	config_print_section(&v->config, "model", &text);
	config_print_section(&v->config, "train", &text);
	config_print_section(&v->config, "eval", &text);
	json_object_set_new(j, "settings", json_stringn((const char *)text.base, text.len));
	buf_release(&text);
	return j;
}

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static json_t *record_of(struct run *r, double began_s, double began_cpu_s)
{
	json_t *agents = agents_json(r), *record;
	struct kge_metrics test;
	struct kge_protocol p = *config_protocol(&r->v->config);

	mean_of(r, OF_TEST, &test);
	for (size_t i = 0; i < r->n; i++)
		r->most_bytes = r->bytes_of[i] > r->most_bytes ? r->bytes_of[i] : r->most_bytes;
	record = json_pack(
		"{s:s, s:s, s:I, s:s, s:o, s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:I, s:I, "
		"s:I, s:o, s:o}",
		"experiment", r->x->name, "variant", r->v->name, "seed", (json_int_t)r->seed,
		"fkge", FKGE_VERSION, "settings", experiment_settings_json(r->x, r->v), "protocol",
		work_protocol_json(&p), "rounds",
		(json_int_t)(r->round > r->v->rounds ? r->v->rounds : r->round), "best_round",
		(json_int_t)r->best_round, "best_valid_mrr", cli_json_number(r->best), "test",
		metrics_json(&test), "agents", agents, "curve", json_incref(r->curve), "params",
		(json_int_t)r->params, "bytes", (json_int_t)r->bytes, "most_bytes_through_one",
		(json_int_t)r->most_bytes, "seconds", cli_json_number(work_now_s() - began_s),
		"cpu_seconds", cli_json_number(cpu_s() - began_cpu_s));
	if (r->at[0].shared_best != NULL) {
		mean_of(r, OF_SHARED_TEST, &test);
		json_object_set_new(record, "test_shared", metrics_json(&test));
	}
	return record;
}

int experiment_run(struct cli *cli, const struct experiment *x, const struct exp_variant *v,
		   uint64_t seed, const atomic_bool *cancel, json_t **record, struct err *e)
{
	double began_s = work_now_s(), began_cpu_s = cpu_s();
	char title[96];
	struct run r = { .cli = cli,
			 .x = x,
			 .v = v,
			 .seed = seed,
			 .cancel = cancel,
			 .curve = json_array(),
			 .best = -1 };
	int rc = load_agents(&r, e);

	*record = NULL;
	snprintf(title, sizeof(title), "%s, seed %llu", v->name, (unsigned long long)seed);
	r.bar = progress_begin(cli, title);
	for (size_t i = 0; i < r.n && rc == 0; i++)
		make_tables(&r, i);
	if (rc == 0)
		rc = v->kind == EXP_SINGLE	 ? run_single(&r)
		     : v->kind == EXP_COLLECTIVE ? run_collective(&r)
						 : run_rounds(&r, e);
	progress_end(&r.bar);
	if (rc == 0)
		*record = record_of(&r, began_s, began_cpu_s);
	run_release(&r);
	return rc == ERR_CANCELED ? err_set(e, rc, "stopped; the same command goes on") : rc;
}

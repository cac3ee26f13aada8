/* cli/queries_encoder.c - queries encoder: the best encoder of this agent's rounds, as a file. */
#include <assert.h>
#include <stdlib.h>

#include "agent/core/core.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/place.h"
#include "fed/methods/fedcqa.h"
#include "lab/encoders.h"
#include "lab/work.h"

struct encoder_command {
	const char *output;
};

static const struct argp_option encoder_command_options[] = {
	{ "output", 'o', "FILE", 0, "(default: encoder.rounds in the agent's folder)", 0 },
	{ 0 },
};

static error_t parse_encoder_command(int key, char *arg, struct argp_state *state)
{
	struct encoder_command *o = state->input;

	if (key != 'o')
		return ARGP_ERR_UNKNOWN;
	o->output = arg;
	return 0;
}

/* What the method of its rounds has kept, over tables of this shape. */
static int open_encoder_part(struct fed_part **out, const struct work *w, struct kge_emb *shape,
			     struct err *e)
{
	struct fed_settings s;
	struct buf saved = { 0 };
	struct err why = { 0 };
	int rc = store_meta(w->folder.store, AGENT_META_PART, &saved, &why);

	config_fed_settings(&w->folder.config, &s);
	if (rc != 0)
		rc = err_set(e, rc, "this agent has kept nothing of a round: %s", why.text);
	else
		rc = fed_part_new(out, &s, shape, 0, e);
	if (rc == 0)
		rc = fed_part_load(*out, saved.base, saved.len, e);
	buf_release(&saved);
	return rc;
}

static json_t *best_head(const struct fed_part *p, const struct fedcqa_head *h)
{
	json_t *j = json_object();

	json_object_set_new(j, "method", json_string(p->method->name));
	json_object_set_new(j, "queries", json_integer((json_int_t)h->queries));
	json_object_set_new(j, "valid_queries", json_integer((json_int_t)h->valid_queries));
	json_object_set_new(j, "best_step", json_integer((json_int_t)h->step));
	json_object_set_new(j, "valid", encoders_figures_json(&h->valid));
	return j;
}

static int write_encoder(struct cli *cli, const struct work *w, const struct fed_part *p,
			 const char *path, struct err *e)
{
	struct encode_model m;
	struct fedcqa_head h;
	json_t *head;
	int rc;

	if (!fedcqa_best(p, &m, &h))
		return err_set(e, ERR_NOTFOUND,
			       "no encoder yet: there was no look (rounds.eval_every), or "
			       "rounds.method %s trains none",
			       p->method->name);
	head = best_head(p, &h);
	rc = encoders_write(path, &m, w->graph, head, e);
	if (rc == 0) {
		json_object_update(cli->result, head);
		cli_put_text(cli, "file", path);
		cli_say(cli, "The best %s, of step %llu, is in %s: valid MRR %.4f\n",
			encode_kind_words[m.is.kind], (unsigned long long)h.step, path,
			h.valid.mrr);
	}
	json_decref(head);
	return rc;
}

static int take_encoder(struct cli *cli, const struct work *w, const char *path, struct err *e)
{
	struct kge_emb *shape = lab_work_new_tables(&w->folder.config, w->graph);
	struct fed_part *p = NULL;
	int rc = open_encoder_part(&p, w, shape, e);

	if (rc == 0) {
		assert(p != NULL);
		rc = write_encoder(cli, w, p, path, e);
	}
	fed_part_free(p);
	kge_emb_free(shape);
	return rc;
}

int cmd_queries_encoder(struct cli *cli, int argc, char **argv, struct err *e)
{
	static const struct place_kind kind = { "encoder", "fkgerun1" };
	struct encoder_command o = { 0 };
	const struct cli_syntax s = {
		.options = encoder_command_options,
		.parse = parse_encoder_command,
		.doc = "Write the best encoder of queries that this agent's rounds have trained "
		       "(rounds.method fedcqa or fedcqa_r) to FILE, for `query --batch FILE "
		       "--evaluate --encoder`.\v"
		       "Best is which ranks answers best that need a triple of valid, of the "
		       "encoders at each look (rounds.eval_every). The agent may run meanwhile.\n\n"
		       "Examples:\n  fkge queries encoder\n"
		       "  fkge queries encoder -o gqe.encoder",
		.input = &o,
	};
	struct work w;
	char *path;
	int rc;

	cli_parse(cli, &s, argc, argv);
	rc = lab_work_open(&w, cli->folder, FOLDER_READ | FOLDER_FILES, e);
	if (rc != 0)
		return rc;
	path = o.output != NULL ? mem_strdup(o.output) : file_join(cli->folder, "encoder.rounds");
	rc = cli_check_place(path, &kind, e);
	if (rc == 0)
		rc = take_encoder(cli, &w, path, e);
	free(path);
	lab_work_close(&w);
	return rc;
}

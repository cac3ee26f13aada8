#include "cli/tune_show.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli/change.h"
#include "kge/product.h"
#include "lab/table.h"

static const struct tune_trial *best_of(const struct tune *u)
{
	const struct tune_trial *best = NULL;

	for (size_t k = 0; k < u->n; k++)
		if (!isnan(u->trials[k].score) &&
		    (best == NULL || u->trials[k].score > best->score))
			best = &u->trials[k];
	return best;
}

static int by_score(const void *a, const void *b)
{
	const struct tune_trial *x = *(const struct tune_trial *const *)a;
	const struct tune_trial *y = *(const struct tune_trial *const *)b;
	double p = isnan(x->score) ? -1 : x->score, q = isnan(y->score) ? -1 : y->score;

	if (p != q)
		return p > q ? -1 : 1;
	return x < y ? -1 : x > y;
}

static void add_row(struct table *t, const struct tune *u, const struct tune_trial *x,
		    size_t columns)
{
	table_add(t, "%zu", (size_t)(x - u->trials) + 1);
	if (isnan(x->score))
		table_add(t, x->refused[0] != '\0' ? "refused" : "");
	else
		table_add(t, "%.4f", x->score);
	table_add(t, "%u", x->best_epoch);
	table_add(t, "%u", x->epochs);
	for (size_t i = 0; i < columns; i++)
		table_add(t, "%s", x->values[i]);
}

/* The best first; so many keys as there is room for. */
static void say_table(const struct cli *cli, const struct tune *u)
{
	const struct tune_trial **order = mem_array(u->n, sizeof(const struct tune_trial *));
	size_t columns =
		u->search.n_keys < TABLE_COLUMNS_MAX - 4 ? u->search.n_keys : TABLE_COLUMNS_MAX - 4;
	struct buf text = { 0 };
	struct table t;

	table_init(&t, 4 + columns);
	table_add(&t, "trial");
	table_add(&t, "valid MRR");
	table_add(&t, "best epoch");
	table_add(&t, "epochs");
	for (size_t i = 0; i < columns; i++)
		table_add(&t, "%s", u->search.keys[i].name);
	for (size_t k = 0; k < u->n; k++)
		order[k] = &u->trials[k];
	qsort(order, u->n, sizeof(const struct tune_trial *), by_score);
	for (size_t k = 0; k < u->n; k++)
		add_row(&t, u, order[k], columns);
	table_print(&t, &text);
	buf_printf(&text, "%s", "");
	cli_say(cli, "%s\n", (const char *)text.base);
	table_release(&t);
	buf_release(&text);
	free(order);
}

static void print_fragment(const struct tune *u, const struct tune_trial *best, struct buf *out)
{
	static const char *const sections[] = { "model", "train" };

	buf_printf(out,
		   "# best of %zu trials: valid MRR %.4f after %u epochs (%s, test not read)\n",
		   u->n, best->score, best->best_epoch, u->work.folder.config.eval.protocol);
	for (size_t s = 0; s < 2; s++) {
		bool begun = false;

		for (size_t i = 0; i < u->search.n_keys; i++) {
			if (strcmp(u->search.keys[i].section, sections[s]) != 0)
				continue;
			buf_printf(out, "%s%s", begun ? "" : sections[s], begun ? "" : ":\n");
			buf_printf(out, "  %s: %s\n", u->search.keys[i].name, best->values[i]);
			begun = true;
		}
	}
}

static void put_plan(struct cli *cli, struct tune *u)
{
	const struct config *c = &u->work.folder.config;
	struct kge_protocol p = lab_work_valid_protocol(c);

	cli_put_text(cli, "method", u->search.method == SEARCH_RANDOM ? "random" : "halving");
	cli_put_count(cli, "search_seed", u->search.seed);
	cli_put_count(cli, "seed", c->train.kge.seed);
	cli_put_count(cli, "spent_epochs", u->spent);
	cli_put(cli, "out_of_budget", json_boolean(u->out_of_budget));
	cli_put(cli, "out_of_time", json_boolean(u->out_of_time));
	cli_put_number(cli, "valid_floor", u->floor);
	cli_put(cli, "protocol", lab_work_protocol_json(&p));
	cli_put_count(cli, "valid_limit", tune_valid_limit(u, c));
	cli_put_text(cli, "arithmetic", kge_arithmetic(c->train.kge.precision == KGE_BFLOAT16));
	cli_put(cli, "trials", tune_trials_json(u));
}

int tune_say(struct cli *cli, struct tune *u, struct err *e)
{
	const struct tune_trial *best = best_of(u);
	struct buf text = { 0 };

	put_plan(cli, u);
	if (best == NULL && u->out_of_budget)
		return err_set(e, ERR_USAGE,
			       "no trial has come to a score: search.budget (%llu) is below what "
			       "the next one trains; raise it in %s",
			       (unsigned long long)u->search.budget, u->space_path);
	if (best == NULL)
		return err_set(e, ERR_USAGE, "no trial has come to a score%s%s",
			       u->n > 0 && u->trials[0].refused[0] != '\0' ? "; the first: " : "",
			       u->n > 0 ? u->trials[0].refused : "");
	print_fragment(u, best, &text);
	say_table(cli, u);
	if (u->out_of_time)
		cli_say(cli, "The time is up; the same command goes on.\n\n");
	if (u->quick && best == u->trials)
		cli_say(cli, "Nothing was better than agent.yaml as it is (trial 1).\n\n");
	if (!isnan(u->floor))
		cli_say(cli, "Counting, which learns nothing, has %.4f%s.\n\n", u->floor,
			best->score < u->floor
				? ": more than any of these (model.kind is what else may help)"
				: "");
	if (u->out_of_budget)
		cli_say(cli, "The budget of %llu epochs is spent.\n\n",
			(unsigned long long)u->search.budget);
	cli_say(cli, "%s", (const char *)text.base);
	cli_put(cli, "best", tune_trial_json(u, (size_t)(best - u->trials)));
	cli_put_text(cli, "yaml", (const char *)text.base);
	buf_release(&text);
	return 0;
}

static int write_best_settings(void *ctx, const char *path, struct err *e)
{
	const struct tune *u = ctx;
	const struct tune_trial *best = best_of(u);
	struct buf text = { 0 };
	int rc = file_read(path, TUNE_FILE_MAX, &text, e);

	if (rc == 0)
		rc = tune_edit_preset(u, best, &text, e);
	for (size_t i = 0; i < u->search.n_keys && rc == 0; i++)
		rc = config_edit(&text, u->search.keys[i].section, u->search.keys[i].name,
				 best->values[i], path, e);
	if (rc == 0)
		rc = file_write_atomic(path, text.base, text.len, 0600, e);
	buf_release(&text);
	return rc;
}

int tune_apply(const struct cli *cli, struct tune *u, struct err *e)
{
	const char *path = u->work.folder.config_path;
	int rc = cli_change_in_turn(path, write_best_settings, u, e);

	if (rc == 0)
		lab_note(&cli->notes,
			 "%s has these settings now; fkge train --fresh trains by them\n", path);
	return rc;
}

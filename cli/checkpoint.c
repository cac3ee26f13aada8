/* cli/checkpoint.c - saved states of the embeddings: list, save, restore. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/commands.h"
#include "cli/work.h"

static void say_checkpoint(const struct cli *cli, const struct store_checkpoint *c)
{
	time_t seconds = (time_t)(c->created_ms / 1000);
	struct tm tm;
	char when[32] = "";

	if (gmtime_r(&seconds, &tm) != NULL)
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	cli_say(cli, "%6llu  %-6s  %-19s  %-9s  %6llu epochs  %s %.4f\n", (unsigned long long)c->id,
		work_checkpoint_kind(c), when, c->model, (unsigned long long)c->epochs, c->protocol,
		c->valid_score);
}

int cmd_checkpoint_list(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words words = { .max = 0 };
	struct store_checkpoint *all = NULL;
	struct folder f;
	json_t *list = json_array();
	size_t n = 0;
	int rc;

	cli_parse_words(cli, "",
			"List the saved states, the newest first.\vExample:\n  fkge -d acme "
			"checkpoint list",
			&words, argc, argv);
	cli_put(cli, "checkpoints", list);
	rc = folder_open(&f, cli->folder, FOLDER_CONFIG | FOLDER_READ, e);
	if (rc != 0)
		return rc;
	rc = store_checkpoints(f.store, &all, &n, e);
	for (size_t k = 0; k < n; k++) {
		json_array_append_new(list, work_checkpoint_json(&all[k]));
		say_checkpoint(cli, &all[k]);
	}
	if (rc == 0 && n == 0)
		cli_note(cli, "Nothing is saved yet; fkge train makes the first state.\n");
	free(all);
	folder_close(&f);
	return rc;
}

/* Write w->emb again, as another kind of checkpoint. */
static int put_again(struct work *w, enum store_checkpoint_kind kind, struct err *e)
{
	struct store_checkpoint info = w->info;
	struct store_batch b = { 0 };

	info.kind = kind;
	info.created_ms = work_wall_ms();
	store_batch_checkpoint(&b, &info, kge_emb_copy(w->emb));
	return work_apply(w, &b, e);
}

int cmd_checkpoint_save(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words words = { .max = 0 };
	struct work w;
	int rc;

	cli_parse_words(cli, "",
			"Keep the best state: later ones do not replace it.\vExample:\n  fkge -d "
			"acme checkpoint save",
			&words, argc, argv);
	rc = work_open(&w, cli, FOLDER_IDENTITY | FOLDER_WRITE, e);
	if (rc != 0)
		return rc;
	rc = work_load(&w, 0, e);
	if (rc == 0)
		rc = put_again(&w, STORE_MANUAL, e);
	if (rc == 0) {
		cli_put(cli, "checkpoint", work_checkpoint_json(&w.info));
		cli_say(cli, "saved the best state, valid score %.4f\n", w.info.valid_score);
	}
	work_close(&w);
	return rc;
}

static int restore(struct work *w, uint64_t id, struct err *e)
{
	int rc = work_load(w, id, e);

	if (rc != 0 || w->info.kind == STORE_BEST)
		return rc;
	rc = store_demote_best(w->folder.store, e);
	return rc != 0 && rc != ERR_NOTFOUND ? rc : put_again(w, STORE_BEST, e);
}

int cmd_checkpoint_restore(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words words = { .min = 1, .max = 1 };
	struct work w;
	uint64_t id;
	char *end;
	int rc;

	cli_parse_words(
		cli, "ID",
		"Make a saved state the best one again, bit for bit; the best so far is kept "
		"as a saved one.\vExample:\n  fkge -d acme checkpoint restore 7",
		&words, argc, argv);
	id = strtoull(words.at[0], &end, 10);
	if (*words.at[0] < '1' || *words.at[0] > '9' || *end != '\0')
		return err_set(e, ERR_USAGE,
			       "'%.40s' is no number of a state; see fkge checkpoint list",
			       words.at[0]);
	rc = work_open(&w, cli, FOLDER_IDENTITY | FOLDER_WRITE, e);
	if (rc != 0)
		return rc;
	rc = restore(&w, id, e);
	if (rc == 0) {
		cli_put(cli, "checkpoint", work_checkpoint_json(&w.info));
		cli_say(cli, "state %llu is the best one now, valid score %.4f\n",
			(unsigned long long)id, w.info.valid_score);
	}
	work_close(&w);
	return rc;
}

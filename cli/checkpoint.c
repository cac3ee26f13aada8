/* cli/checkpoint.c - saved states of the embeddings: list, save, restore. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/commands.h"
#include "lab/work.h"

static void say_checkpoint(const struct cli *cli, const struct store_checkpoint *c)
{
	time_t seconds = (time_t)(c->created_ms / 1000);
	struct tm tm;
	char when[32] = "", score[WORK_SCORE_TEXT];

	if (gmtime_r(&seconds, &tm) != NULL)
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	if (config_score_is_private(c->protocol))
		lab_work_score_text(c->protocol, c->valid_score, score);
	else
		snprintf(score, sizeof(score), "%s %.4f", c->protocol, c->valid_score);
	cli_say(cli, "%6llu  %-6s  %-19s  %-9s  %6llu epochs  %s  %s\n", (unsigned long long)c->id,
		lab_work_checkpoint_kind(c), when, c->model, (unsigned long long)c->epochs, score,
		c->label);
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
		json_array_append_new(list, lab_work_checkpoint_json(&all[k]));
		say_checkpoint(cli, &all[k]);
	}
	if (rc == 0 && folder_has_tables(&f))
		lab_note(&cli->notes,
			 "The best tables were trained past memory; they are in " FOLDER_TABLES
			 ", not in the store.\n");
	else if (rc == 0 && n == 0)
		lab_note(&cli->notes, "Nothing is saved yet; fkge train makes the first state.\n");
	free(all);
	folder_close(&f);
	return rc;
}

/* ---- by name ---- */

/* A name is told from a number, and from an option. */
static int check_label(const char *label, struct err *e)
{
	static const char *const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					   "0123456789._-";
	size_t n = strlen(label);

	if (n == 0 || n >= STORE_WORD_MAX || strspn(label, allowed) != n || label[0] == '-' ||
	    strspn(label, "0123456789") == n)
		return err_set(e, ERR_USAGE,
			       "'%.40s' cannot be a state's name: 1 to %d letters, digits, '.', "
			       "'_' and '-', no number",
			       label, STORE_WORD_MAX - 1);
	return 0;
}

static int refuse_taken(struct store *store, const char *label, struct err *e)
{
	uint64_t id;
	int rc = lab_work_find_label(store, label, &id, e);

	if (rc != 0 || id == 0)
		return rc;
	return err_set(e, ERR_EXISTS, "state %llu is called '%s' already; see fkge checkpoint list",
		       (unsigned long long)id, label);
}

/* Write w->emb again, as another kind of checkpoint. */
static int put_again(struct work *w, enum store_checkpoint_kind kind, const char *label,
		     struct err *e)
{
	struct store_checkpoint info = w->info;
	struct store_batch b = { 0 };

	info.kind = kind;
	info.anew = kind == STORE_BEST;
	snprintf(info.label, sizeof(info.label), "%s", label);
	info.created_ms = lab_work_wall_ms();
	store_batch_checkpoint(&b, &info, kge_emb_copy(w->emb));
	return lab_work_apply(w, &b, e);
}

int cmd_checkpoint_save(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words words = { .max = 1 };
	struct work w;
	const char *label;
	char score[WORK_SCORE_TEXT];
	int rc;

	cli_parse_words(cli, "[NAME]",
			"Keep the best state, under a name if one is given: later ones do not "
			"replace it.\vExample:\n  fkge -d acme checkpoint save before-globex",
			&words, argc, argv);
	label = words.n > 0 ? words.at[0] : "";
	if (words.n > 0 && check_label(label, e) != 0)
		return ERR_USAGE;
	rc = lab_work_open(&w, cli->folder, FOLDER_IDENTITY | FOLDER_WRITE, e);
	if (rc != 0)
		return rc;
	if (words.n > 0)
		rc = refuse_taken(w.folder.store, label, e);
	if (rc == 0)
		rc = lab_work_load(&w, 0, e);
	if (rc == 0)
		rc = put_again(&w, STORE_MANUAL, label, e);
	if (rc == 0) {
		snprintf(w.info.label, sizeof(w.info.label), "%s", label);
		cli_put(cli, "checkpoint", lab_work_checkpoint_json(&w.info));
		lab_work_score_text(w.info.protocol, w.info.valid_score, score);
		cli_say(cli, "saved the best state, %s\n", score);
	}
	lab_work_close(&w);
	return rc;
}

static int restore(struct work *w, uint64_t id, struct err *e)
{
	int rc = lab_work_load(w, id, e);

	if (rc != 0 || w->info.kind == STORE_BEST)
		return rc;
	return put_again(w, STORE_BEST, "", e);
}

int cmd_checkpoint_restore(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words words = { .min = 1, .max = 1 };
	struct work w;
	uint64_t id;
	char score[WORK_SCORE_TEXT];
	int rc;

	cli_parse_words(
		cli, "ID|NAME",
		"Make a saved state the best one again, bit for bit; the best so far is kept "
		"as a saved one.\vExample:\n  fkge -d acme checkpoint restore 7",
		&words, argc, argv);
	rc = lab_work_open(&w, cli->folder, FOLDER_IDENTITY | FOLDER_WRITE, e);
	if (rc != 0)
		return rc;
	rc = folder_refuse_tables(&w.folder, "a saved state", e);
	if (rc == 0)
		rc = lab_work_find_state(w.folder.store, words.at[0], &id, e);
	if (rc == 0)
		rc = restore(&w, id, e);
	if (rc == 0) {
		cli_put(cli, "checkpoint", lab_work_checkpoint_json(&w.info));
		lab_work_score_text(w.info.protocol, w.info.valid_score, score);
		cli_say(cli, "state %llu is the best one now, %s\n", (unsigned long long)id, score);
	}
	lab_work_close(&w);
	return rc;
}

/* cli/config.c - agent.yaml by single keys: config get, set, unset, check, diff; and reload, by
 * which a running agent takes it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/ask.h"
#include "agent/folder.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/control.h"
#include "cli/change.h"
#include "config/config.h"
#include "lab/work.h"

enum { YAML_MAX = 1 << 20 };

/* "train.dp.epsilon" is key epsilon of section train.dp; "name" one of the top level. */
struct key_name {
	char *section; /* NULL: the top level */
	const char *name;
};

static struct key_name split_key(const char *text)
{
	const char *dot = strrchr(text, '.');
	struct key_name k = { NULL, dot != NULL ? dot + 1 : text };

	if (dot != NULL)
		k.section = mem_printf("%.*s", (int)(dot - text), text);
	return k;
}

/* *path: by free(), also after an error. */
static int find_config(const struct cli *cli, bool write, char **path, struct err *e)
{
	struct folder f;
	int rc;

	folder_paths(&f, cli->folder);
	rc = folder_inhabited(&f, e);
	if (rc == 0 && write)
		rc = folder_refuse_root(&f, e);
	*path = mem_strdup(f.config_path);
	folder_close(&f);
	return rc;
}

/* ---- get ---- */

struct key_list {
	struct cli *cli;
	const char *section; /* its keys alone; "": all */
	json_t *all;
};

static void list_key(void *ctx, const struct config_difference *d)
{
	const struct key_list *l = ctx;
	size_t n = strlen(l->section);

	if (n > 0 && (strncmp(d->key, l->section, n) != 0 || d->key[n] != '.'))
		return;
	cli_say(l->cli, "%s: %s\n", d->key, d->is);
	json_array_append_new(l->all, json_pack("{s:s, s:s}", "key", d->key, "value", d->is));
}

/* false: nothing is called so. */
static bool list_section(struct cli *cli, const struct config *c, const char *section)
{
	struct key_list l = { cli, section, json_array() };
	bool found;

	config_differ(NULL, c, list_key, &l);
	found = json_array_size(l.all) > 0;
	if (found)
		cli_put(cli, "settings", json_incref(l.all));
	json_decref(l.all);
	return found;
}

static int get_key(struct cli *cli, const struct config *c, const char *text, struct err *e)
{
	struct key_name k = split_key(text);
	struct buf value = { 0 };
	int rc = config_get(c, k.section, k.name, &value, e);

	if (rc == 0) {
		cli_say(cli, "%s\n", (const char *)value.base);
		cli_put_text(cli, "key", text);
		cli_put_text(cli, "value", (const char *)value.base);
	}
	buf_release(&value);
	free(k.section);
	return rc;
}

/* With a graph, values are those that the preset chooses, and why is said. */
static void apply_preset(struct cli *cli, struct config *c)
{
	struct err why = { 0 };
	struct work w;

	if (c->model.preset == CONFIG_PRESET_NONE)
		return;
	if (lab_work_open(&w, cli->folder, FOLDER_READ, &why) != 0) {
		lab_note(&cli->notes, "model.preset chooses by the graph: %s\n", why.text);
		return;
	}
	config_suit(c, w.graph);
	cli_put_text(cli, "suited", c->suited != NULL ? c->suited : "");
	if (c->suited != NULL && !cli->json)
		lab_note(&cli->notes, "%s\n", c->suited);
	lab_work_close(&w);
}

int cmd_config_get(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words w = { .max = 1 };
	char *path = NULL;
	struct config c;
	int rc;

	cli_parse_words(
		cli, "[KEY]",
		"Show a setting as it would stand in agent.yaml, its default where the file "
		"does not have it, or what model.preset chooses for the agent's graph; of a "
		"section all its keys, without KEY all of them.\v"
		"Examples:\n  fkge -d acme config get train.lr\n  fkge -d acme config get train\n"
		"  fkge -d acme config get",
		&w, argc, argv);
	rc = find_config(cli, false, &path, e);
	if (rc == 0)
		rc = config_load(&c, path, e);
	free(path);
	if (rc != 0)
		return rc;
	apply_preset(cli, &c);
	if (!list_section(cli, &c, w.n > 0 ? w.at[0] : ""))
		rc = get_key(cli, &c, w.at[0], e);
	config_release(&c);
	return rc;
}

/* ---- set ---- */

/* What the change means for a running agent. */
struct setting_change {
	struct cli *cli;
	const char *key; /* that was asked for: others may differ with it */
	bool any, live;
	bool tables; /* those that are there do not fit any more ... */
	bool scores; /* ... or their score is of another protocol */
};

static bool wants_tables(const char *key)
{
	return strcmp(key, "model.kind") == 0 || strcmp(key, "model.dim") == 0 ||
	       strcmp(key, "model.rel_dim") == 0 || strcmp(key, "model.gamma") == 0;
}

static void tell_setting(void *ctx, const struct config_difference *d)
{
	struct setting_change *s = ctx;
	bool first = !s->any;

	s->live = d->live && (s->live || !s->any);
	s->any = true;
	s->tables |= wants_tables(d->key);
	s->scores |= strncmp(d->key, "eval.", 5) == 0;
	cli_say(s->cli, "%s: %s, was %s\n", d->key, d->is, d->was);
	if (first || strcmp(d->key, s->key) == 0)
		cli_put_text(s->cli, "was", d->was);
}

/* What each one's preset chooses where the file does not say. */
static void suit_both(const struct cli *cli, struct config *was, struct config *is)
{
	struct work w;

	if ((is->model.preset == CONFIG_PRESET_NONE && was->model.preset == CONFIG_PRESET_NONE) ||
	    lab_work_open(&w, cli->folder, FOLDER_READ, NULL) != 0)
		return;
	config_suit(was, w.graph);
	config_suit(is, w.graph);
	lab_work_close(&w);
}

/* A key that was taken out was in the file, though nothing comes of it. */
static void tell_same(const struct cli *cli, const char *key, const struct config *is, bool unset)
{
	struct key_name k = split_key(key);
	struct buf value = { 0 };

	if (!unset || config_get(is, k.section, k.name, &value, NULL) != 0)
		lab_note(&cli->notes, "it has that value already\n");
	else
		lab_note(&cli->notes,
			 "it is not in agent.yaml any more; its default is the same value, %s\n",
			 (const char *)value.base);
	buf_release(&value);
	free(k.section);
}

static void tell_change(struct cli *cli, const char *key, struct config *was, struct config *is,
			bool unset)
{
	struct setting_change s = { .cli = cli, .key = key };

	suit_both(cli, was, is);

	cli_put(cli, "was", json_null());
	config_differ(was, is, tell_setting, &s);
	if (!s.any)
		tell_same(cli, key, is, unset);
	else if (s.tables)
		lab_note(&cli->notes,
			 "tables trained with another value do not fit it: fkge stop, if the agent "
			 "runs, then fkge train --fresh\n");
	else if (s.scores)
		lab_note(&cli->notes,
			 "tables are judged by it from the next training on: fkge stop, if the "
			 "agent runs, then fkge train --rounds 1\n");
	else
		lab_note(&cli->notes, "a running agent takes it by: fkge reload%s\n",
			 s.live ? "" : " --restart");
	cli_put(cli, "live", json_boolean(s.live));
}

/* With a preset, what goes together shows once the graph is there: the agent's own, if it has one.
 */
static int check_with_graph(const struct cli *cli, const char *path, const struct buf *text,
			    struct err *e)
{
	struct config c;
	struct work w;
	int rc = config_parse(&c, (const char *)text->base, text->len, path, e);

	if (rc != 0)
		return rc;
	if (c.model.preset != CONFIG_PRESET_NONE &&
	    lab_work_open(&w, cli->folder, FOLDER_READ, NULL) == 0) {
		config_suit(&c, w.graph);
		rc = config_check(&c, path, e);
		lab_work_close(&w);
	}
	config_release(&c);
	return rc;
}

/* Nothing is said before it is on disk. */
static int write_setting(struct cli *cli, const char *path, const char *key, struct config *was,
			 const struct buf *text, bool unset, struct err *e)
{
	struct config is;
	int rc = check_with_graph(cli, path, text, e);

	if (rc == 0)
		rc = config_parse(&is, (const char *)text->base, text->len, path, e);
	if (rc != 0)
		return rc;
	rc = file_write_atomic(path, text->base, text->len, 0600, e);
	if (rc == 0)
		tell_change(cli, key, was, &is, unset);
	config_release(&is);
	return rc;
}

/* Without this a file of `fkge init` would say all that the preset is asked to choose. */
static void tell_freed(const struct cli *cli, size_t n)
{
	if (n > 0)
		lab_note(&cli->notes,
			 "%zu keys that stood at their defaults are comments now, so that the "
			 "preset chooses them; others in the file win\n",
			 n);
}

/* The value as it would stand in the file, quoted where that is needed. */
static int change_setting(struct cli *cli, const char *path, const char *key, const char *value,
			  struct err *e)
{
	struct key_name k = split_key(key);
	struct buf text = { 0 }, typed = { 0 };
	struct config was, is;
	size_t freed = 0;
	int rc = config_load(&was, path, e);

	if (rc != 0)
		return free(k.section), rc;
	config_init(&is);
	rc = config_set(&is, "rounds", "method", was.rounds.method, e); /* it has constants */
	if (rc == 0)
		rc = config_set(&is, k.section, k.name, value, e);
	if (rc == 0)
		rc = config_get(&is, k.section, k.name, &typed, e);
	if (rc == 0)
		rc = file_read(path, YAML_MAX, &text, e);
	if (rc == 0)
		rc = config_edit(&text, k.section, k.name, (const char *)typed.base, path, e);
	if (rc == 0 && strcmp(key, "model.preset") == 0 && strcmp(value, "none") != 0)
		freed = config_edit_free_preset(&text, path);
	if (rc == 0)
		rc = write_setting(cli, path, key, &was, &text, false, e);
	if (rc == 0) {
		tell_freed(cli, freed);
		cli_put_text(cli, "key", key);
		cli_put_text(cli, "value", (const char *)typed.base);
	}
	buf_release(&text);
	buf_release(&typed);
	config_release(&is);
	config_release(&was);
	free(k.section);
	return rc;
}

/* A key that the file does not have: an error only where nothing is called so. */
static int tell_default(struct cli *cli, const struct key_name *k, struct err *e)
{
	struct buf value = { 0 };
	struct config c;
	int rc;

	config_init(&c);
	rc = config_get(&c, k->section, k->name, &value, e);
	if (rc == 0)
		lab_note(&cli->notes, "agent.yaml does not have it: its default is %s\n",
			 (const char *)value.base);
	buf_release(&value);
	config_release(&c);
	return rc;
}

/* The file may be wrong before: by this very key. */
static int write_without(struct cli *cli, const char *path, const char *key, const struct buf *text,
			 struct err *e)
{
	struct config was;
	int rc;

	if (config_load(&was, path, NULL) == 0) {
		rc = write_setting(cli, path, key, &was, text, true, e);
		config_release(&was);
		return rc;
	}
	rc = file_write_atomic(path, text->base, text->len, 0600, e);
	if (rc == 0)
		lab_note(&cli->notes, "agent.yaml is good now\n");
	return rc;
}

static int unset_key(struct cli *cli, const char *path, const char *key, struct err *e)
{
	struct key_name k = split_key(key);
	struct buf text = { 0 };
	int rc = file_read(path, YAML_MAX, &text, e);

	if (rc == 0)
		rc = config_edit_unset(&text, k.section, k.name, path, e);
	if (rc == ERR_NOTFOUND)
		rc = tell_default(cli, &k, e);
	else if (rc == 0)
		rc = write_without(cli, path, key, &text, e);
	if (rc == 0)
		cli_put_text(cli, "key", key);
	buf_release(&text);
	free(k.section);
	return rc;
}

/* value NULL: the key goes. */
struct setting_words {
	struct cli *cli;
	const char *key, *value;
};

static int change_by_words(void *ctx, const char *path, struct err *e)
{
	const struct setting_words *w = ctx;

	return w->value == NULL ? unset_key(w->cli, path, w->key, e)
				: change_setting(w->cli, path, w->key, w->value, e);
}

int cmd_config_set(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words w = { .min = 2, .max = 2 };
	struct setting_words setting = { .cli = cli };
	char *path;
	int rc;

	cli_parse_words(cli, "KEY VALUE",
			"Change one value in agent.yaml, or add it: comments, order and all other "
			"bytes stay. A value that is not allowed, alone or beside the others, "
			"changes nothing.\v"
			"Example:\n  fkge -d acme config set privacy.epsilon_total 6",
			&w, argc, argv);
	setting.key = w.at[0];
	setting.value = w.at[1];
	rc = find_config(cli, true, &path, e);
	if (rc == 0)
		rc = cli_change_in_turn(path, change_by_words, &setting, e);
	free(path);
	return rc;
}

int cmd_config_unset(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words w = { .min = 1, .max = 1 };
	struct setting_words setting = { .cli = cli };
	char *path;
	int rc;

	cli_parse_words(cli, "KEY",
			"Take a key out of agent.yaml, so that its default counts: its line goes, "
			"all other bytes stay. Where what is left is not allowed, nothing "
			"changes. A constant of rounds.method goes so before another method "
			"comes.\v"
			"Example:\n  fkge -d acme config unset rounds.mu",
			&w, argc, argv);
	setting.key = w.at[0];
	rc = find_config(cli, true, &path, e);
	if (rc == 0)
		rc = cli_change_in_turn(path, change_by_words, &setting, e);
	free(path);
	return rc;
}

/* ---- check, diff ---- */

static void count_key(void *ctx, const struct config_difference *d)
{
	(void)d;
	++*(size_t *)ctx;
}

/* An agent that opens is one whose settings go with its graph; one without a graph has no say. */
static int check_own_file(const struct cli *cli, bool own, struct err *e)
{
	struct err why = { 0 };
	struct work w;

	if (!own)
		return 0;
	if (lab_work_open(&w, cli->folder, FOLDER_READ, &why) == 0)
		lab_work_close(&w);
	else if (why.code == ERR_USAGE) {
		if (e != NULL)
			*e = why;
		return ERR_USAGE;
	}
	return 0;
}

int cmd_config_check(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words w = { .max = 1 };
	char *path = NULL;
	struct config c, defaults;
	size_t n = 0;
	int rc = 0;

	cli_parse_words(cli, "[FILE]",
			"Check agent.yaml, or FILE as one: every key and value, and those that do "
			"not go together. An error names file, line and key; status 2.\v"
			"Example:\n  fkge -d acme config check new.yaml",
			&w, argc, argv);
	if (w.n > 0)
		path = mem_strdup(w.at[0]);
	else
		rc = find_config(cli, false, &path, e);
	if (rc == 0)
		rc = check_own_file(cli, w.n == 0, e);
	if (rc == 0)
		rc = config_load(&c, path, e);
	if (rc == 0) {
		config_init(&defaults);
		config_differ(&defaults, &c, count_key, &n);
		cli_put_text(cli, "file", path);
		cli_put_count(cli, "differ", n);
		cli_say(cli, "%s is good; %zu keys are not as by default\n", path, n);
		config_release(&defaults);
		config_release(&c);
	}
	free(path);
	return rc;
}

struct listing {
	struct cli *cli;
	const char *path;
	json_t *all;
};

static void list_difference(void *ctx, const struct config_difference *d)
{
	struct listing *l = ctx;
	char line[32] = "";

	if (d->line > 0)
		snprintf(line, sizeof(line), "line %u", d->line);
	cli_say(l->cli, "%-32s %s, not %s%s%s\n", d->key, d->is, d->was,
		*line != '\0' ? "  # " : "", line);
	json_array_append_new(l->all,
			      json_pack("{s:s, s:s, s:s, s:i, s:b}", "key", d->key, "was", d->was,
					"is", d->is, "line", (int)d->line, "live", d->live));
}

int cmd_config_diff(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words w = { .max = 1 };
	struct config base, c;
	struct listing l = { .cli = cli };
	char *path;
	int rc;

	cli_parse_words(cli, "[FILE]",
			"Show which settings are not as by default; with FILE, not as in that "
			"agent.yaml.\v"
			"Examples:\n  fkge -d acme config diff\n"
			"  fkge -d acme config diff /safe/acme-2026-11-22/agent.yaml",
			&w, argc, argv);
	rc = find_config(cli, false, &path, e);
	if (rc == 0)
		rc = config_load(&c, path, e);
	free(path);
	if (rc != 0)
		return rc;
	if (w.n > 0)
		rc = config_load(&base, w.at[0], e);
	else
		config_init(&base);
	if (rc == 0) {
		l.all = json_array();
		config_differ(&base, &c, list_difference, &l);
		cli_put(cli, "differences", l.all);
		config_release(&base);
	}
	config_release(&c);
	return rc;
}

/* ---- reload ---- */

static void say_reloaded(const struct cli *cli, const json_t *keys, const char *what)
{
	const json_t *d;
	size_t i;

	json_array_foreach(keys, i, d)
	{
		cli_say(cli, "%s: %s%s, was %s\n", json_string_value(json_object_get(d, "key")),
			json_string_value(json_object_get(d, "is")), what,
			json_string_value(json_object_get(d, "was")));
	}
}

static error_t parse_reload(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	if (key != 'r')
		return ARGP_ERR_UNKNOWN;
	*(bool *)state->input = true;
	return 0;
}

int cmd_reload(struct cli *cli, int argc, char **argv, struct err *e)
{
	static const struct argp_option options[] = {
		{ "restart", 'r', NULL, 0,
		  "start anew, in the same process, where a changed key wants that", 0 },
		{ 0 },
	};
	bool restart = false;
	const struct cli_syntax s = {
		.options = options,
		.parse = parse_reload,
		.doc = "Let the running agent read agent.yaml again, whole or not at all.\v"
		       "Limits, times, budgets and the log count at once (the guide, operation, "
		       "has "
		       "the list); of other keys this says that they wait. With --restart the "
		       "agent "
		       "ends its work in order and begins anew with all of them, if there are any; "
		       "its partners link again. SIGHUP does the same as --restart. Partners are "
		       "not in agent.yaml: fkge peer changes them at once.\n\n"
		       "Example:\n  fkge -d acme config set log.level debug && fkge -d acme reload",
		.input = &restart,
	};
	json_t *request, *reply;
	const json_t *warning;
	size_t i;
	bool anew;
	int rc;

	cli_parse(cli, &s, argc, argv);
	request = json_pack("{s:s, s:b}", "do", "reload", "restart", restart);
	rc = agent_ask(cli->folder, request, &reply, e);
	json_decref(request);
	if (rc != 0)
		return rc;
	anew = json_is_true(json_object_get(reply, "anew"));
	say_reloaded(cli, json_object_get(reply, "changed"), " now");
	say_reloaded(cli, json_object_get(reply, "waits"),
		     anew ? " now" : " from the next start on (fkge reload --restart)");
	json_array_foreach(json_object_get(reply, "warnings"), i, warning)
		cli_say_wrapped(cli, 2, "! %s", json_string_value(warning));
	if (anew)
		cli_say(cli, "the agent starts anew\n");
	else if (json_array_size(json_object_get(reply, "changed")) == 0 &&
		 json_array_size(json_object_get(reply, "waits")) == 0)
		cli_say(cli, "nothing has changed\n");
	control_put(cli, reply);
	return 0;
}

/* lab/experiment_agents.c - the agents of an experiment: whose data, which names, what is to be
 * forgotten. */
#include <dirent.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"
#include "kge/unlearn.h"
#include "lab/experiment_run.h"
#include "lab/work.h"

enum { FILE_MAX = 1 << 30 };

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names in a folder that are wanted, in their order; free() each and the list. */
static int list_names(const char *folder, bool (*wanted)(const char *folder, const char *name),
		      char ***out, size_t *n)
{
	DIR *d = opendir(folder);
	struct dirent *f;

	*out = NULL;
	*n = 0;
	if (d == NULL)
		return ERR_NOTFOUND;
	while ((f = readdir(d)) != NULL)
		if (f->d_name[0] != '.' && wanted(folder, f->d_name)) {
			*out = mem_resize(*out, *n + 1, sizeof(**out));
			(*out)[(*n)++] = mem_strdup(f->d_name);
		}
	closedir(d);
	if (*n > 1)
		qsort(*out, *n, sizeof(**out), compare_names);
	return 0;
}

/* As `fkge import` would read it. */
static bool is_agent(const char *folder, const char *name)
{
	char *path = file_join(folder, name);
	struct graph_load_report unused;
	bool is = graph_look_at_folder(path, &unused, NULL) == 0;

	free(path);
	return is;
}

/* The folders in `data`, by name. */
static int list_agents(const char *data, char ***out, size_t *n, struct err *e)
{
	if (list_names(data, is_agent, out, n) != 0)
		return err_set(e, ERR_NOFILE, "%s: no such folder (experiment.data)", data);
	if (*n >= 2 && *n <= FED_MEMBERS_MAX)
		return 0;
	return err_set(e, ERR_INPUT,
		       "%s: %zu folders whose train can be read (train.tsv or another form of fkge "
		       "import); "
		       "an experiment needs 2 to %d, one an agent",
		       data, *n, FED_MEMBERS_MAX);
}

static void free_names(char **names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

static bool is_folder(const char *folder, const char *name)
{
	char *path = file_join(folder, name);
	DIR *d = opendir(path);

	free(path);
	return d != NULL && closedir(d) == 0;
}

static bool same_folder(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

void experiment_note_folders(const struct lab_out *notes, const struct experiment *x)
{
	char **names;
	size_t n;

	if (list_names(x->data, is_folder, &names, &n) != 0)
		return;
	for (size_t i = 0; i < n; i++) {
		char *path = file_join(x->data, names[i]), *before = mem_printf("%s/", path);
		struct graph_load_report r;
		struct err why = { 0 };

		if (graph_look_at_folder(path, &r, &why) == 0)
			lab_work_note_unread(notes, before, &r);
		else if (x->names[0] == '\0' || !same_folder(path, x->names))
			lab_note(notes, "Not an agent: %s\n", why.text);
		free(before);
		free(path);
	}
	free_names(names, n);
}

char *experiment_names_path(const struct experiment *x, const char *agent)
{
	return x->names[0] != '\0' ? mem_printf("%s/%s.tsv", x->names, agent) : NULL;
}

/* ---- what the data is, wherever it lies ---- */

static bool is_one_of(const char *name, const char *const *beginnings)
{
	for (; *beginnings != NULL; beginnings++)
		if (strncmp(name, *beginnings, strlen(*beginnings)) == 0)
			return name[strlen(name) - 1] != '~';
	return false;
}

static bool is_split(const char *folder, const char *name)
{
	static const char *const splits[] = { "train.", "valid.", "test.", NULL };

	(void)folder;
	return is_one_of(name, splits);
}

/* Of OpenKE's layout. */
static bool is_id_file(const char *folder, const char *name)
{
	static const char *const files[] = { "train2id.txt",  "valid2id.txt",	 "test2id.txt",
					     "entity2id.txt", "relation2id.txt", NULL };

	(void)folder;
	return is_one_of(name, files);
}

static bool is_openke(const char *folder)
{
	static const char *const files[] = { "train2id.txt", "train2id.txt.gz",
					     "train2id.txt.zst" };
	bool is = false;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]) && !is; i++) {
		char *path = file_join(folder, files[i]);

		is = file_exists(path);
		free(path);
	}
	return is;
}

/* Each name and each file with its length, so that nothing can move from one to the next. */
static void add_bytes(crypto_generichash_state *h, const void *bytes, size_t n)
{
	uint64_t length = n;

	crypto_generichash_update(h, (const uint8_t *)&length, sizeof(length));
	crypto_generichash_update(h, bytes, n);
}

static int add_file(crypto_generichash_state *h, const char *path, struct err *e)
{
	struct buf bytes = { 0 };
	int rc = file_read(path, FILE_MAX, &bytes, e);

	if (rc == 0)
		add_bytes(h, bytes.base, bytes.len);
	buf_release(&bytes);
	return rc;
}

static int add_agent(crypto_generichash_state *h, const struct experiment *x, const char *name,
		     struct err *e)
{
	char *folder = file_join(x->data, name), *names = experiment_names_path(x, name), **files;
	size_t n;
	int rc = list_names(folder, is_openke(folder) ? is_id_file : is_split, &files, &n);

	add_bytes(h, name, strlen(name));
	for (size_t i = 0; i < n && rc == 0; i++) {
		char *path = file_join(folder, files[i]);

		add_bytes(h, files[i], strlen(files[i]));
		rc = add_file(h, path, e);
		free(path);
	}
	if (rc == 0 && names != NULL)
		rc = add_file(h, names, e);
	free_names(files, n);
	free(folder);
	free(names);
	return rc;
}

static int check_holders(const struct experiment *x, size_t agents, struct err *e)
{
	for (size_t i = 0; i < x->n; i++)
		if (x->at[i].kind == EXP_ROUNDS && x->at[i].settings.min_holders > agents)
			return err_set(e, ERR_USAGE,
				       "variant %s: min_holders is %u, and %s has %zu agents: no "
				       "row would move",
				       x->at[i].name, x->at[i].settings.min_holders, x->data,
				       agents);
	return 0;
}

static bool has_agent(char *const *names, size_t n, const char *agent)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i], agent) == 0)
			return true;
	return false;
}

/* What a variant says of one agent is of one that is there. */
static int check_named(const struct experiment *x, char *const *names, size_t n, struct err *e)
{
	for (size_t i = 0; i < x->n; i++) {
		const struct exp_variant *v = &x->at[i];
		const char *lost = NULL;

		for (size_t k = 0; k < v->n_pace; k++)
			lost = has_agent(names, n, v->pace[k].agent) ? lost : v->pace[k].agent;
		for (size_t k = 0; k < v->n_own; k++)
			lost = has_agent(names, n, v->own[k].agent) ? lost : v->own[k].agent;
		if (lost != NULL)
			return err_set(e, ERR_USAGE,
				       "variant %s: slow, away or own: %s has no agent '%s'",
				       v->name, x->data, lost);
	}
	return 0;
}

int experiment_digest(struct experiment *x, struct err *e)
{
	uint8_t digest[EXPERIMENT_DIGEST / 2];
	crypto_generichash_state h;
	char **names;
	size_t n;
	int rc = list_agents(x->data, &names, &n, e);

	if (rc == 0)
		rc = check_holders(x, n, e);
	if (rc == 0)
		rc = check_named(x, names, n, e);
	crypto_generichash_init(&h, NULL, 0, sizeof(digest));
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = add_agent(&h, x, names[i], e);
	crypto_generichash_final(&h, digest, sizeof(digest));
	if (rc == 0)
		sodium_bin2hex(x->digest, sizeof(x->digest), digest, sizeof(digest));
	free_names(names, n);
	return rc;
}

/* ---- graphs ---- */

/* What of a file of names says nothing, or takes a name away. */
static json_t *said_of_names(const struct client *c, const struct graph_alias_report *report)
{
	size_t own = graph_vocab_count(c->graph->entities) - report->linked;

	return json_pack("{s:I, s:I, s:I, s:I, s:I}", "lines", (json_int_t)report->lines, "shared",
			 (json_int_t)report->linked, "own", (json_int_t)own, "strangers",
			 (json_int_t)report->strangers, "shadowed", (json_int_t)report->shadowed);
}

static int load_names(const struct run *r, struct client *c, struct err *e)
{
	char *path = experiment_names_path(r->x, c->name);
	struct graph_alias_report report = { 0 };
	int rc;

	if (path == NULL)
		return 0;
	rc = graph_aliases_load(&c->names, path, c->graph->entities, false, GRAPH_MATCH_REFUSE,
				&report, e);
	if (rc == 0)
		c->named = said_of_names(c, &report);
	else if (report.conflicts.n > 0)
		lab_note(r->notes, "%s: %zu in conflict:\n%.*s", path, report.conflicts.n,
			 (int)report.conflicts.text.len, (const char *)report.conflicts.text.base);
	graph_alias_report_release(&report);
	free(path);
	return rc;
}

bool experiment_has_forgotten(const struct run *r)
{
	return r->at[0].forget != NULL;
}

static int choose_forgotten(const struct run *r, struct client *c, struct err *e)
{
	size_t train = c->graph->split[GRAPH_TRAIN].n;

	if (!experiment_forgets(r->x, r->v))
		return 0;
	if (train < 2)
		return err_set(e, ERR_INPUT, "%s/%s: too few triples to forget some (forget)",
			       r->x->data, c->name);
	c->forget =
		experiment_choose_forgotten(r->x->forget, r->seed, c->name, train, &c->n_forget);
	if (!r->v->retained)
		return 0;
	c->blind = kge_kept_of(&c->blind, c->forget, c->n_forget);
	c->lacks = true;
	return 0;
}

static int load_agent(const struct run *r, struct client *c, struct err *e)
{
	char *path = file_join(r->x->data, c->name);
	int rc = graph_load(&c->graph, path, NULL, NULL, e);

	free(path);
	if (rc != 0)
		return rc;
	c->blind = *c->graph;
	c->blind.split[GRAPH_TEST] = (struct graph_triples){ 0 };
	if (c->blind.split[GRAPH_VALID].n == 0)
		return err_set(e, ERR_INPUT, "%s/%s: no valid triples, so nothing can be chosen",
			       r->x->data, c->name);
	rc = load_names(r, c, e);
	return rc == 0 ? choose_forgotten(r, c, e) : rc;
}

int experiment_load_agents(struct run *r, struct err *e)
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

/* libFuzzer entry for files of settings.  The first byte says which: 'c' agent.yaml, 's' a space of
 * `fkge tune`, 'x' an experiment; 'e' a line with a key and one with a value, then an agent.yaml in
 * which that is set, and taken out.  What was read is written, and comes back; a change changes
 * that key alone; what is refused has words, with the file's name.  As fuzz_msg.c. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "config/config.h"
#include "config/table_internal.h"
#include "lab/experiment.h"
#include "lab/search.h"
#include "tests/fuzz/must_hold.h"
#include "tests/fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check_refused(const struct err *e, int rc, const char *where)
{
	must_hold(rc == ERR_USAGE && e->code == rc);
	must_hold(strncmp(e->text, where, strlen(where)) == 0 && strlen(e->text) > strlen(where));
}

/* Of a text that is good. */
static struct config read_again(const struct buf *text)
{
	struct config c;

	must_hold(config_parse(&c, (const char *)text->base, text->len, "f", NULL) == 0);
	return c;
}

/* In all bits: what is printed could be what both have lost. */
static bool same_value(const struct config *a, const struct config *b, const struct config_key *k)
{
	static const size_t sizes[] = {
		[KEY_WORD] = sizeof(int),      [KEY_COUNT] = sizeof(uint32_t),
		[KEY_NUMBER] = sizeof(double), [KEY_NUMBER32] = sizeof(float),
		[KEY_SWITCH] = sizeof(bool),   [KEY_SEED] = sizeof(uint64_t)
	};
	const char *at = (const char *)a + k->offset, *bt = (const char *)b + k->offset;

	if (sizes[k->kind] == 0)
		return strcmp(*(char *const *)(const void *)at, *(char *const *)(const void *)bt) ==
		       0;
	return memcmp(at, bt, sizes[k->kind]) == 0;
}

static void poke_config(const char *text, size_t n)
{
	struct config c, back;
	struct buf out = { 0 };
	struct err e = { 0 };
	int rc = config_parse(&c, text, n, "f", &e);

	if (rc != 0) {
		check_refused(&e, rc, "f:");
		return;
	}
	config_print(&c, &out);
	back = read_again(&out);
	for (size_t i = 0; i < CONFIG_KEYS; i++)
		must_hold(same_value(&c, &back, &config_keys[i]));
	must_hold(memcmp(c.rounds.value, back.rounds.value, sizeof(c.rounds.value)) == 0);
	config_release(&c);
	config_release(&back);
	buf_release(&out);
}

/* ---- one key ---- */

struct change {
	char *key; /* "train.dp.epsilon" */
	const char *section, *name;
	bool all; /* others may change with it */
};

static void check_difference(void *ctx, const struct config_difference *d)
{
	const struct change *k = ctx;

	must_hold(k->all || strcmp(d->key, k->key) == 0);
}

/* An old name is its new one where settings are compared. */
static void split_key(struct change *k, const char *key)
{
	const char *dot = strrchr(key, '.');

	*k = (struct change){ .key = mem_strdup(strcmp(key, "federation.rows_share") == 0
							? "federation.aligned_share"
							: key),
			      .name = dot != NULL ? dot + 1 : key };
	if (dot != NULL)
		k->section = mem_printf("%.*s", (int)(dot - key), key);
	k->all = strcmp(key, "ppat.mode") == 0 || strcmp(key, "rounds.method") == 0;
}

/* As `fkge config set` does it: the value as it would stand in the file. */
static bool set_key(const struct change *k, const char *value, const struct config *was,
		    struct buf *text)
{
	struct config is, after;
	struct buf typed = { 0 }, now = { 0 };
	struct err e = { 0 };
	int rc;

	config_init(&is);
	must_hold(config_set(&is, "rounds", "method", was->rounds.method, NULL) == 0);
	rc = config_set(&is, k->section, k->name, value, &e);
	must_hold((rc == 0) == (e.text[0] == '\0'));
	if (rc == 0) {
		must_hold(config_get(&is, k->section, k->name, &typed, NULL) == 0);
		rc = config_edit(text, k->section, k->name, (char *)typed.base, "f", &e);
		if (rc != 0)
			check_refused(&e, rc, "f:");
	}
	if (rc == 0) {
		after = read_again(text);
		config_differ(was, &after, check_difference, (void *)(uintptr_t)k);
		must_hold(config_get(&after, k->section, k->name, &now, NULL) == 0);
		must_hold(strcmp((char *)now.base, (char *)typed.base) == 0 ||
			  (k->section != NULL && strcmp(k->section, "ppat") == 0 &&
			   after.ppat.mode == PPAT_MODE_PAPER));
		config_take_live(&after, was);
		config_release(&after);
	}
	config_release(&is);
	buf_release(&typed);
	buf_release(&now);
	return rc == 0;
}

static void free_preset(struct buf *text)
{
	struct config was = read_again(text), is;
	struct change none = { .key = (char[]){ "" } };

	(void)config_edit_free_preset(text, "f");
	is = read_again(text);
	config_differ(&was, &is, check_difference, &none);
	config_release(&was);
	config_release(&is);
}

/* was NULL: the text was not good. */
static void unset_key(const struct change *k, const struct config *was, struct buf *text)
{
	struct config after;
	struct err e = { 0 };
	int rc = config_edit_unset(text, k->section, k->name, "f", &e);

	must_hold((rc == 0 || rc == ERR_NOTFOUND) == (e.text[0] == '\0'));
	if (rc != 0)
		return;
	after = read_again(text);
	if (was != NULL)
		config_differ(was, &after, check_difference, (void *)(uintptr_t)k);
	config_release(&after);
	must_hold(config_edit_unset(text, k->section, k->name, "f", &e) == ERR_NOTFOUND);
}

static void edit_text(const struct change *k, const char *value, const char *text, size_t n)
{
	struct buf set = { 0 }, unset = { 0 };
	struct config was;
	bool good = config_parse(&was, text, n, "f", NULL) == 0;

	buf_add(&set, text, n);
	buf_add(&unset, text, n);
	unset_key(k, good ? &was : NULL, &unset);
	if (good && set_key(k, value, &was, &set))
		free_preset(&set);
	if (good)
		config_release(&was);
	buf_release(&set);
	buf_release(&unset);
}

/* Up to the next line end; NULL: there is none, or a NUL before it. */
static char *take_line(const char **text, size_t *n)
{
	const char *end = memchr(*text, '\n', *n);
	size_t len = end != NULL ? (size_t)(end - *text) : 0;
	char *line;

	if (end == NULL || memchr(*text, '\0', len) != NULL)
		return NULL;
	line = mem_printf("%.*s", (int)len, *text);
	*n -= len + 1;
	*text += len + 1;
	return line;
}

static void poke_edit(const char *text, size_t n)
{
	char *key = take_line(&text, &n), *value = key != NULL ? take_line(&text, &n) : NULL;
	struct change k;

	if (value != NULL) {
		split_key(&k, key);
		edit_text(&k, value, text, n);
		free(k.key);
		free((void *)(uintptr_t)k.section);
	}
	free(key);
	free(value);
}

/* ---- spaces and experiments ---- */

static void check_drawn(const struct search_key *k, const char *value, struct config *c)
{
	double x = strtod(value, NULL);

	must_hold(config_set(c, k->section, k->name, value, NULL) == 0);
	must_hold(k->kind == SEARCH_LIST || (x >= k->from && x <= k->to));
}

static void check_space(struct search *s)
{
	struct config c;
	char **values;
	size_t trials;

	s->trials = s->trials < 8 ? s->trials : 8; /* each is compared with all before it */
	trials = search_draw(s, &values);
	must_hold(trials >= 1 && s->n_keys >= 1);
	config_init(&c);
	for (size_t k = 0; k < trials; k++)
		for (size_t i = 0; i < s->n_keys; i++)
			check_drawn(&s->keys[i], values[k * s->n_keys + i], &c);
	config_release(&c);
	search_free_values(s, values, trials);
}

static void poke_space(const char *text, size_t n)
{
	struct search s;
	struct err e = { 0 };
	int rc = search_parse(&s, text, n, "f", &e);

	if (rc != 0) {
		check_refused(&e, rc, "f:");
		must_hold(s.n_keys == 0);
		return;
	}
	check_space(&s);
	search_release(&s);
}

static void check_experiment(const struct experiment *x)
{
	must_hold(x->n >= 1 && x->n_seeds >= 1 && x->n_seeds <= EXPERIMENT_SEEDS_MAX);
	must_hold(x->data[0] != '\0');
	for (size_t i = 0; i < x->n; i++) {
		const struct exp_variant *v = &x->at[i];

		must_hold(experiment_find(x, v->name) == v && v->rounds >= 1 && v->epochs >= 1);
		must_hold(config_check(&v->config, "f", NULL) == 0);
		must_hold(v->config.train.command[0] == '\0'); /* it runs no program */
		for (size_t k = 0; v->kind == EXP_PAIRS && k < v->n_own; k++) {
			struct config c;

			must_hold(experiment_own_settings(v, v->own[k].agent, &c, NULL) == 0);
			must_hold(c.train.command[0] == '\0');
			config_release(&c);
		}
	}
}

static void poke_experiment(const uint8_t *bytes, size_t n)
{
	struct experiment x;
	struct err e = { 0 };
	const char *path;
	int rc;

	scratch_make();
	scratch_put_whole("x.yaml", bytes, n);
	path = scratch_file("x.yaml");
	rc = experiment_read(&x, path, &e);
	if (rc == 0)
		check_experiment(&x);
	else
		check_refused(&e, rc, path);
	experiment_release(&x);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	const char *text = (const char *)bytes + 1;

	log_set_level(LOG_ERROR);
	if (n == 0)
		return 0;
	if (bytes[0] == 'c')
		poke_config(text, n - 1);
	else if (bytes[0] == 'e')
		poke_edit(text, n - 1);
	else if (bytes[0] == 's')
		poke_space(text, n - 1);
	else if (bytes[0] == 'x')
		poke_experiment(bytes + 1, n - 1);
	return 0;
}

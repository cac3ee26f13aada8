/* lib/words.c - errors, and words of the form key=value. */
#include <errno.h>
#include <locale.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "config/config.h"
#include "lib/lib_internal.h"

/* ---- errors ---- */

static _Thread_local struct err last;

const char *fkge_version(void)
{
	return FKGE_VERSION;
}

const char *fkge_error(void)
{
	return last.text;
}

static bool sodium_runs;

static void start_sodium(void)
{
	sodium_runs = sodium_init() >= 0;
}

/* Numbers have a point here, whatever the program around has set for its own. */
static locale_t plain;
static _Thread_local locale_t theirs;

static void start_once(void)
{
	start_sodium();
	plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
}

int lib_begin(struct err *e)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, start_once);
	if (theirs == (locale_t)0 && plain != (locale_t)0)
		theirs = uselocale(plain);
	return sodium_runs ? 0 : err_set(e, ERR_FAIL, "no source of randomness on this machine");
}

/* The codes that fkge.h names are those of base/err.h. */
static int told_status(int rc)
{
	static const enum fkge_status told[] = { FKGE_OK,    FKGE_USAGE,  FKGE_INPUT,
						 FKGE_STORE, FKGE_NEWER,  FKGE_TOOBIG,
						 FKGE_IO,    FKGE_EXISTS, FKGE_NOTFOUND,
						 FKGE_NOFILE };

	_Static_assert(FKGE_FAIL == (int)ERR_FAIL && FKGE_USAGE == (int)ERR_USAGE &&
			       FKGE_INPUT == (int)ERR_INPUT && FKGE_STORE == (int)ERR_STORE &&
			       FKGE_NEWER == (int)ERR_NEWER && FKGE_TOOBIG == (int)ERR_TOOBIG &&
			       FKGE_IO == (int)ERR_IO && FKGE_NOTFOUND == (int)ERR_NOTFOUND &&
			       FKGE_NOFILE == (int)ERR_NOFILE && FKGE_EXISTS == (int)ERR_EXISTS,
		       "fkge.h has the codes of base/err.h");
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++)
		if (rc == (int)told[i])
			return rc;
	return FKGE_FAIL;
}

int lib_end(int rc, const struct err *e)
{
	if (theirs != (locale_t)0)
		uselocale(theirs);
	theirs = (locale_t)0;
	if (rc != 0)
		err_set(&last, rc, "%s", e->text[0] != '\0' ? e->text : err_text(rc));
	return told_status(rc);
}

/* ---- words ---- */

int lib_each_word(const char *text, lib_word_fn *fn, void *ctx, struct err *e)
{
	char *words, *rest = NULL, *word;
	int rc = 0;

	if (text == NULL)
		return 0;
	if (strnlen(text, LIB_WORDS_MAX + 1) > LIB_WORDS_MAX)
		return err_set(e, ERR_TOOBIG, "settings: more than %d bytes", LIB_WORDS_MAX);
	words = mem_strdup(text);
	word = strtok_r(words, " \t\r\n", &rest);
	for (; word != NULL && rc == 0; word = strtok_r(NULL, " \t\r\n", &rest)) {
		char *equals = strchr(word, '=');

		if (equals == NULL) {
			rc = err_set(e, ERR_USAGE, "'%.100s': write key=value", word);
			break;
		}
		*equals = '\0';
		rc = fn(ctx, word, equals + 1, e);
	}
	free(words);
	return rc;
}

int lib_take_choice(const char *key, const char *value, const char *const *words, int *out,
		    struct err *e)
{
	struct buf all = { 0 };

	for (*out = 0; words[*out] != NULL; (*out)++)
		if (strcmp(words[*out], value) == 0)
			return 0;
	for (int k = 0; words[k] != NULL; k++)
		buf_printf(&all, "%s%s", k > 0 ? ", " : "", words[k]);
	err_set(e, ERR_USAGE, "%s: '%.100s' is not allowed here; allowed: %s", key, value,
		(const char *)all.base);
	buf_release(&all);
	return ERR_USAGE;
}

int lib_take_count(const char *key, const char *value, uint64_t min, uint64_t max, uint64_t *out,
		   struct err *e)
{
	char *end;

	errno = 0;
	*out = strtoull(value, &end, 10);
	if (*value >= '0' && *value <= '9' && *end == '\0' && errno == 0 && *out >= min &&
	    *out <= max)
		return 0;
	return err_set(e, ERR_USAGE, "%s: '%.100s' is not a whole number from %llu to %llu", key,
		       value, (unsigned long long)min, (unsigned long long)max);
}

int lib_take_share(const char *key, const char *value, double max, double *out, struct err *e)
{
	char *end;

	*out = strtod(value, &end);
	if (end != value && *end == '\0' && *out >= 0 && *out <= max)
		return 0;
	return err_set(e, ERR_USAGE, "%s: '%.100s' is not a number from 0 to %g", key, value, max);
}

int lib_take_switch(const char *key, const char *value, bool *out, struct err *e)
{
	static const char *const words[] = { "false", "true", NULL };
	int k;
	int rc = lib_take_choice(key, value, words, &k, e);

	*out = k == 1;
	return rc;
}

int lib_unknown_word(const char *key, const char *known, struct err *e)
{
	return err_set(e, ERR_USAGE, "unknown key '%.100s'; known are: %s", key, known);
}

/* ---- settings ---- */

int lib_take_setting(struct config *c, const char *key, const char *value, struct err *e)
{
	static const char *const sections[] = { "model", "train", "eval", "train.dp" };
	const char *dot = strrchr(key, '.');
	char section[16] = "";
	bool known = false;

	if (dot != NULL && (size_t)(dot - key) < sizeof(section))
		memcpy(section, key, (size_t)(dot - key));
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++)
		known |= strcmp(section, sections[i]) == 0;
	if (!known)
		return err_set(e, ERR_USAGE,
			       "unknown key '%.100s'; known are those of the sections model, train "
			       "and eval of agent.yaml, such as model.kind",
			       key);
	return config_set(c, section, dot + 1, value, e);
}

static int take_config_word(void *c, const char *key, const char *value, struct err *e)
{
	return lib_take_setting(c, key, value, e);
}

/* From the text that agent.yaml would be. */
static int copy_settings(struct config *c, const struct config *from, struct err *e)
{
	struct buf text = { 0 };
	int rc;

	config_print(from, &text);
	rc = config_parse(c, (const char *)text.base, text.len, "settings", e);
	buf_release(&text);
	return rc;
}

int lib_configure(struct config *c, const struct config *from, const char *settings, struct err *e)
{
	int rc = 0;

	if (from != NULL)
		rc = copy_settings(c, from, e);
	else
		config_init(c);
	if (rc != 0)
		return rc;
	rc = lib_each_word(settings, take_config_word, c, e);
	if (rc == 0)
		rc = config_check_before_graph(c, "settings", e);
	if (rc != 0)
		config_release(c);
	return rc;
}

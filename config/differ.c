/* config/differ.c - where two settings differ, and which of that a running agent takes as it is. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/config.h"
#include "config/table_internal.h"

/* Keys that are read where they are used, by the loop alone, and that nobody else has been told:
 * neither a contract, nor a round or a session that is under way. */
static const struct {
	const char *section, *name;
} live_keys[] = {
	{ "federation", "names_max" },
	{ "federation", "names_every_s" },
	{ "federation", "patience" },
	{ "federation", "max_rounds" },
	{ "federation", "epochs_per_round" },
	{ "federation", "gather_s" },
	{ "federation", "partners" },
	{ "federation", "links" },
	{ "federation", "sleep_s" },
	{ "federation", "lease_s" },
	{ "federation", "session_s" },
	{ "rounds", "patience" },
	{ "rounds", "max" },
	{ "rounds", "every_s" },
	{ "privacy", "epsilon_per_peer" },
	{ "privacy", "epsilon_total" },
	{ "query", "answer" },
	{ "query", "rules" },
	{ "query", "steps_per_day" },
	{ "query", "rows_per_day" },
	{ "query", "score_holders" },
	{ "query", "ways" },
	{ "log", "level" },
	{ "log", "format" },
};

static bool is_live(const struct config_key *k)
{
	for (size_t i = 0; i < sizeof(live_keys) / sizeof(live_keys[0]); i++)
		if (k->section != NULL && strcmp(k->section, live_keys[i].section) == 0 &&
		    strcmp(k->name, live_keys[i].name) == 0)
			return true;
	return false;
}

static void tell_if_differs(const struct config *was, const struct config *is,
			    const struct config_key *k, uint32_t line, config_differ_fn *fn,
			    void *ctx)
{
	struct buf a = { 0 }, b = { 0 };
	char *key =
		k->section != NULL ? mem_printf("%s.%s", k->section, k->name) : mem_strdup(k->name);

	if (was != NULL)
		config_key_print(&a, was, k);
	config_key_print(&b, is, k);
	if (was == NULL || strcmp((const char *)a.base, (const char *)b.base) != 0)
		fn(ctx, &(struct config_difference){ .key = key,
						     .was = was != NULL ? (const char *)a.base : "",
						     .is = (const char *)b.base,
						     .line = line,
						     .live = is_live(k) });
	free(key);
	buf_release(&a);
	buf_release(&b);
}

void config_differ(const struct config *was, const struct config *is, config_differ_fn *fn,
		   void *ctx)
{
	bool one_method = was == NULL || strcmp(was->rounds.method, is->rounds.method) == 0;
	struct config_key k;

	for (size_t i = 0; i < CONFIG_KEYS; i++)
		tell_if_differs(was, is, &config_keys[i],
				is->source != NULL ? is->source->line[i] : 0, fn, ctx);
	/* constants of another method are others, and the method says so */
	for (size_t i = 0; one_method && config_key_constant(is, i, &k); i++)
		tell_if_differs(was, is, &k, 0, fn, ctx);
}

/* What a value of the table prints can be set, but for texts, which it prints in quotes. */
static void take_live_key(struct config *c, const struct config *fresh, const struct config_key *k)
{
	struct buf value = { 0 };

	if (k->kind == KEY_TEXT)
		buf_printf(&value, "%s", *(char *const *)((const char *)fresh + k->offset));
	else
		config_key_print(&value, fresh, k);
	if (config_key_set(c, k, (const char *)value.base) != 0)
		abort(); /* tests/config/test_differ.c */
	buf_release(&value);
}

void config_take_live(struct config *c, const struct config *fresh)
{
	for (size_t i = 0; i < CONFIG_KEYS; i++)
		if (is_live(&config_keys[i]))
			take_live_key(c, fresh, &config_keys[i]);
}

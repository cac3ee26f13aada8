#include "cli/verdict.h"

#include <string.h>

static const char *const words[] = {
	[VERDICT_LIKE_UNSEEN] = "like_unseen",	  [VERDICT_BELOW_UNSEEN] = "below_unseen",
	[VERDICT_REMEMBERED] = "remembered",	  [VERDICT_HURT] = "hurt",
	[VERDICT_NOT_TRAINED] = "not_trained",	  [VERDICT_NAMES_GONE] = "names_gone",
	[VERDICT_TABLES_GONE] = "tables_dropped", [VERDICT_NO_TABLES] = "no_tables",
};

static const char *const meanings[] = {
	[VERDICT_LIKE_UNSEEN] = "forgotten: they rank like triples that were never seen",
	[VERDICT_BELOW_UNSEEN] = "forgotten: they rank below triples that were never seen, which "
				 "by itself may tell them apart",
	[VERDICT_REMEMBERED] = "NOT forgotten: they still rank above triples that were never seen",
	[VERDICT_HURT] = "NOT forgotten: only with too great a loss on what is kept",
	[VERDICT_NOT_TRAINED] =
		"forgotten: none was of train, and the embeddings have learnt nothing "
		"but that train",
	[VERDICT_NAMES_GONE] = "forgotten: each has a name that nothing has any more, and its row "
			       "is gone",
	[VERDICT_TABLES_GONE] = "forgotten: no embeddings are left that saw them",
	[VERDICT_NO_TABLES] = "forgotten: there were no embeddings",
};

static bool has_passes(enum verdict_word w)
{
	return w <= VERDICT_HURT;
}

bool verdict_reached(const struct verdict *v)
{
	return v->word != VERDICT_REMEMBERED && v->word != VERDICT_HURT;
}

enum verdict_word verdict_of_passes(const struct kge_until_report *how)
{
	bool global = how->global_after.reference_mrr > 0;

	if (how->reached)
		return how->after.below || (global && how->global_after.below)
			       ? VERDICT_BELOW_UNSEEN
			       : VERDICT_LIKE_UNSEEN;
	return how->after.like && (!global || how->global_after.like) ? VERDICT_HURT
								      : VERDICT_REMEMBERED;
}

/* ---- as JSON ---- */

static json_t *figures_json(const struct kge_unseen_figures *f)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b}", "mrr",
			 store_json_of_number(f->mrr), "hits1", store_json_of_number(f->hits1),
			 "reference_mrr", store_json_of_number(f->reference_mrr), "reference_hits1",
			 store_json_of_number(f->reference_hits1), "difference",
			 store_json_of_number(f->difference.mean), "low",
			 store_json_of_number(f->difference.low), "high",
			 store_json_of_number(f->difference.high), "like_unseen", (int)f->like,
			 "below_unseen", (int)f->below);
}

static json_t *table_json(const struct kge_unseen_figures *before,
			  const struct kge_unseen_figures *after)
{
	return json_pack("{s:o, s:o}", "before", figures_json(before), "after",
			 figures_json(after));
}

static json_t *reference_json(const struct verdict *v)
{
	json_t *j = json_object();

	json_object_set_new(j, "kind", json_string(v->retrained ? "retrained" : "held_out"));
	json_object_set_new(j, "asked", json_integer((json_int_t)v->counts.queries));
	if (v->retrained) {
		json_object_set_new(j, "epochs", json_integer((json_int_t)v->retrain_epochs));
		return j;
	}
	json_object_set_new(j, "by_relation", json_integer((json_int_t)v->counts.by_relation));
	json_object_set_new(j, "triples", json_integer((json_int_t)v->counts.held_out));
	return j;
}

static json_t *valid_json(const struct verdict *v)
{
	const struct kge_unlearn_valid *before = &v->how.valid_before, *after = &v->how.valid_after;
	json_t *global =
		before->global > 0
			? json_pack("{s:o, s:o}", "before", store_json_of_number(before->global),
				    "after", store_json_of_number(after->global))
			: json_null();

	return json_pack("{s:o, s:o, s:o, s:o}", "before", store_json_of_number(before->local),
			 "after", store_json_of_number(after->local), "global", global,
			 "least_share", store_json_of_number(v->least_valid));
}

static void put_passes(json_t *j, const struct verdict *v)
{
	json_object_set_new(j, "statistic",
			    json_string("mean reciprocal rank of the forgotten less that of their "
					"reference, filtered by train and valid"));
	json_object_set_new(j, "reference", reference_json(v));
	json_object_set_new(j, "local", table_json(&v->how.before, &v->how.after));
	json_object_set_new(j, "global",
			    v->how.global_before.reference_mrr > 0
				    ? table_json(&v->how.global_before, &v->how.global_after)
				    : json_null());
	json_object_set_new(j, "passes", json_integer((json_int_t)v->how.passes));
	json_object_set_new(j, "passes_max", json_integer((json_int_t)v->passes_max));
	json_object_set_new(j, "valid", valid_json(v));
}

json_t *verdict_json(const struct verdict *v)
{
	json_t *j = json_object();

	json_object_set_new(j, "reached", json_boolean(verdict_reached(v)));
	json_object_set_new(j, "verdict", json_string(words[v->word]));
	json_object_set_new(j, "applied", json_boolean(v->applied));
	if (has_passes(v->word))
		put_passes(j, v);
	return j;
}

/* ---- for people ---- */

static double number(const json_t *j, const char *key)
{
	return json_number_value(json_object_get(j, key));
}

static long long json_count(const json_t *j, const char *key)
{
	return (long long)json_integer_value(json_object_get(j, key));
}

static void say_table(const struct cli *cli, const char *table, const char *when, const json_t *f)
{
	if (json_is_object(f))
		cli_say(cli,
			"%-6s %-6s  forgotten %.4f  unseen %.4f  difference %+.4f (%+.4f to "
			"%+.4f)\n",
			table, when, number(f, "mrr"), number(f, "reference_mrr"),
			number(f, "difference"), number(f, "low"), number(f, "high"));
}

static void say_reference(const struct cli *cli, const json_t *r)
{
	const char *kind = json_string_value(json_object_get(r, "kind"));

	if (kind != NULL && strcmp(kind, "retrained") == 0)
		cli_say(cli,
			"unseen: the same %lld triples in tables trained anew without them, %lld "
			"epochs, no partners\n",
			json_count(r, "asked"), json_count(r, "epochs"));
	else
		cli_say(cli,
			"unseen: %lld held-out triples of valid; %lld of %lld forgotten ones have "
			"some of their own relation and like degrees, others of like degrees\n",
			json_count(r, "triples"), json_count(r, "by_relation"),
			json_count(r, "asked"));
}

static void say_passes(const struct cli *cli, const json_t *v)
{
	static const char *const tables[] = { "local", "global" };
	const json_t *valid = json_object_get(v, "valid"),
		     *global = json_object_get(valid, "global");

	for (int k = 0; k < 2; k++) {
		const json_t *t = json_object_get(v, tables[k]);

		say_table(cli, tables[k], "before", json_object_get(t, "before"));
		say_table(cli, tables[k], "after", json_object_get(t, "after"));
	}
	say_reference(cli, json_object_get(v, "reference"));
	cli_say(cli, "passes: %lld of at most %lld; valid MRR %.4f before, %.4f after\n",
		json_count(v, "passes"), json_count(v, "passes_max"), number(valid, "before"),
		number(valid, "after"));
	if (json_is_object(global))
		cli_say(cli, "global table: valid MRR %.4f before, %.4f after\n",
			number(global, "before"), number(global, "after"));
}

void verdict_say(const struct cli *cli, const json_t *verdict)
{
	const char *word = json_string_value(json_object_get(verdict, "verdict"));

	if (word == NULL) {
		cli_say(cli, "verdict: none; this receipt does not say whether it worked\n");
		return;
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i], word) == 0)
			cli_say(cli, "verdict: %s\n", meanings[i]);
	if (json_is_object(json_object_get(verdict, "local")))
		say_passes(cli, verdict);
	if (json_is_false(json_object_get(verdict, "applied")))
		cli_say(cli, "nothing was changed\n");
}

/* config/suit.c - settings that the graph decides, and whether they suit it.
 *
 * What an agent of its own is asked for most, and what its relations make easy, is what training
 * should ask (docs/results/defaults.md has the measurements):
 *
 *   scores ask tails alone, and LEAN times as many triples lean to the tail as to the head: tails
 *   else: each relation draws its side (Wang et al. 2014, section 3.2): bernoulli
 *
 * Before that model.preset chooses, where it is set (config/preset.c).
 *
 * Past memory (disk/) and by several ranks no relation draws its side, since the triples are never
 * together; against all entities each rank has them all.
 *
 * The choice is of single keys and never a third one's: what does not go with the rest of the file
 * (kge_train_check()) is not taken. */
#include <stdlib.h>

#include "config/table_internal.h"
#include "kge/portion.h"
#include "kge/suit.h"

enum { LEAN = 4 };

void config_suit_any(struct config *c)
{
	c->train.corrupt_auto = c->train.sampling_auto = false;
}

static bool asks_tails(const struct config *c)
{
	return config_protocol(c)->sides == KGE_SIDES_TAIL;
}

/* Takes what is free to choose, where it goes with the other settings. */
static bool choose_if_allowed(struct config *c, bool past, enum kge_corrupt corrupt,
			      enum kge_sampling sampling)
{
	struct kge_train_config with = c->train.kge;

	if (c->train.corrupt_auto)
		with.corrupt = corrupt;
	if (c->train.sampling_auto)
		with.sampling = sampling;
	if (with.corrupt != corrupt || with.sampling != sampling ||
	    kge_train_check(&with, NULL) != 0 || (past && kge_portion_check(&with, NULL) != 0))
		return false;
	c->train.kge = with;
	config_suit_any(c);
	return true;
}

static void print_value(struct buf *out, const struct config *c, const char *name)
{
	buf_printf(out, "%s ", name);
	config_key_print(out, c, config_key_find("train", name));
	buf_printf(out, ", ");
}

static void say_choice(struct config *c, const struct kge_relations *r, const char *why)
{
	double percent = r->triples > 0 ? (double)r->triples / 100 : 1;
	struct buf out = { 0 };

	if (c->suited != NULL)
		buf_printf(&out, "%s; ", c->suited);
	buf_printf(&out, "train.");
	print_value(&out, c, "corrupt");
	print_value(&out, c, "sampling");
	buf_printf(&out,
		   "by the graph: %s (%u of %u relations are many-to-one, %u one-to-many; %.0f %% "
		   "of the triples lean to the tail, %.0f %% to the head)",
		   why, r->many_to_one, r->n, r->one_to_many, (double)r->to_tail / percent,
		   (double)r->to_head / percent);
	free(c->suited);
	c->suited = (char *)out.base;
}

void config_suit(struct config *c, const struct graph *g)
{
	struct kge_relations r;

	config_preset_apply(c, g);
	if (c->train.corrupt_auto && !(c->train.kge.dp.epsilon > 0)) {
		bool parted = c->train.in_parts || c->train.command[0] != '\0';
		bool past = (parted && c->train.kge.negatives > 0) ||
			    config_past_memory(c, graph_vocab_count(g->entities),
					       graph_vocab_count(g->relations),
					       g->split[GRAPH_TRAIN].n, NULL);

		kge_relations_of(g, &r);
		c->no_many_to_one = r.many_to_one == 0;
		if (asks_tails(c) && r.to_tail >= LEAN * r.to_head &&
		    choose_if_allowed(c, past, KGE_CORRUPT_TAIL, c->train.kge.sampling))
			say_choice(c, &r, "eval.protocol asks for tails alone");
		else if (choose_if_allowed(c, past, KGE_CORRUPT_ALTERNATE, KGE_SAMPLING_BERNOULLI))
			say_choice(c, &r,
				   "each relation asks more for the side with fewer answers");
	}
	config_suit_any(c);
}

/* What may help, and nothing that would be refused. */
static void advise_owner(const struct config *c, bool past, struct buf *out)
{
	if (c->model.preset != CONFIG_PRESET_NONE && !(c->train.kge.dp.epsilon > 0)) {
		buf_printf(out, "another model.preset%s",
			   past ? ""
				: ", which fkge tune finds in a space of them "
				  "(docs/guide/training.md, A preset)");
		return;
	}
	if (c->train.kge.corrupt != KGE_CORRUPT_TAIL && !c->no_many_to_one)
		buf_printf(out, "train.corrupt tail where relations are many-to-one");
	if (!past)
		buf_printf(out, "%sfkge tune --quick looks for them", out->len > 0 ? ", or " : "");
}

bool config_below_floor(const struct config *c, const struct graph *g, double score, double floor,
			struct buf *why)
{
	struct buf advice = { 0 };

	if (!(score < floor))
		return false;
	advise_owner(c,
		     config_past_memory(c, graph_vocab_count(g->entities),
					graph_vocab_count(g->relations), g->split[GRAPH_TRAIN].n,
					NULL),
		     &advice);
	buf_printf(
		why,
		"valid MRR %.4f is below counting (%.4f), which ranks by how often a name stands "
		"on that side of a relation and learns nothing; other settings may suit this "
		"graph better%s%s",
		score, floor, advice.len > 0 ? ": " : "",
		advice.len > 0 ? (const char *)advice.base : "");
	buf_release(&advice);
	return true;
}

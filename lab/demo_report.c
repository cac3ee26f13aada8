#include "lab/demo.h"

#include <math.h>
#include <string.h>

#include "dp/accountant.h"
#include "lab/table.h"

static const char *text_of(const json_t *j, const char *key)
{
	const char *text = json_string_value(json_object_get(j, key));

	return text != NULL ? text : "";
}

static double number_of(const json_t *j, const char *key)
{
	const json_t *v = json_object_get(j, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

static long long count_of(const json_t *j, const char *key)
{
	return (long long)json_integer_value(json_object_get(j, key));
}

/* ---- scores ---- */

static const struct {
	const char *key, *title, *control; /* control: the arm to compare with, or NULL */
} arms[] = {
	{ "floor", "frequency floor", NULL },
	{ "before", "before", NULL },
	{ "control-procrustes", "control arm", NULL },
	{ "procrustes", "federated, Procrustes", "control-procrustes" },
	{ "control-ppat", "control arm", NULL },
	{ "ppat", "federated, PPAT", "control-ppat" },
};
enum { ARMS = sizeof(arms) / sizeof(arms[0]) };

static double gain(const json_t *agent, const char *arm, const char *control, const char *metric)
{
	return number_of(json_object_get(agent, arm), metric) -
	       number_of(json_object_get(agent, control), metric);
}

static void add_gain(struct table *t, const json_t *agent, size_t arm, const char *metric)
{
	if (arms[arm].control == NULL)
		table_add(t, " ");
	else
		table_add(t, "%+.3f", gain(agent, arms[arm].key, arms[arm].control, metric));
}

static void add_score(struct table *t, const json_t *agent, size_t arm)
{
	const json_t *s = json_object_get(agent, arms[arm].key);

	if (s == NULL)
		return;
	table_add(t, "%s", text_of(agent, "name"));
	if (json_object_get(s, "rounds") != NULL)
		table_add(t, "%s, rounds: %lld", arms[arm].title, count_of(s, "rounds"));
	else
		table_add(t, "%s", arms[arm].title);
	table_add(t, "%.3f", number_of(s, "mrr"));
	table_add(t, "%.3f", number_of(s, "hits1"));
	table_add(t, "%.3f", number_of(s, "hits10"));
	add_gain(t, agent, arm, "mrr");
	add_gain(t, agent, arm, "hits1");
	add_gain(t, agent, arm, "hits10");
}

static void print_scores(const json_t *report, struct buf *out)
{
	static const char *const head[] = { "company", "arm",  "MRR",	  "Hits@1",
					    "Hits@10", "+MRR", "+Hits@1", "+Hits@10" };
	struct table t;
	const json_t *agent;
	size_t i;

	table_init(&t, 8);
	for (size_t k = 0; k < 8; k++)
		table_add(&t, "%s", head[k]);
	json_array_foreach(json_object_get(report, "agents"), i,
			   agent) for (size_t k = 0; k < ARMS; k++) add_score(&t, agent, k);
	table_print(&t, out);
	table_release(&t);
}

static void print_companies(const json_t *report, struct buf *out)
{
	struct table t;
	const json_t *agent;
	size_t i;

	table_init(&t, 5);
	table_add(&t, "company");
	table_add(&t, "is a");
	table_add(&t, "entities");
	table_add(&t, "train / valid / test");
	table_add(&t, "asks");
	json_array_foreach(json_object_get(report, "agents"), i, agent)
	{
		table_add(&t, "%s", text_of(agent, "name"));
		table_add(&t, "%s", text_of(agent, "about"));
		table_add(&t, "%lld", count_of(agent, "entities"));
		table_add(&t, "%s", text_of(agent, "triples"));
		table_add(&t, "%s", text_of(agent, "asks"));
	}
	table_print(&t, out);
	table_release(&t);
}

/* The verdict of the figures, better or worse. */
static void print_verdict(const json_t *report, size_t arm, struct buf *out)
{
	const json_t *agent, *agents = json_object_get(report, "agents");
	const char *key = arms[arm].key, *control = arms[arm].control;
	double mrr = 0, hits1 = 0, hits10 = 0;
	size_t i, n = json_array_size(agents), better = 0;

	if (control == NULL || json_object_get(json_array_get(agents, 0), key) == NULL)
		return;
	json_array_foreach(agents, i, agent)
	{
		mrr += gain(agent, key, control, "mrr") / (double)n;
		hits1 += gain(agent, key, control, "hits1") / (double)n;
		hits10 += gain(agent, key, control, "hits10") / (double)n;
		better += gain(agent, key, control, "mrr") > 0;
	}
	buf_printf(out,
		   "- %s against its control arm, mean over companies: MRR %+.3f, Hits@1 %+.3f, "
		   "Hits@10 %+.3f; MRR is better in %zu of %zu.%s\n",
		   arms[arm].title, mrr, hits1, hits10, better, n,
		   better == 0 ? " It did not help here." : "");
}

/* ---- pairs ---- */

/* Public epsilon of the pair's labels by one accountant; none where it cannot judge. */
static void add_epsilon(struct table *t, const json_t *pair, enum dp_accountant a)
{
	struct dp_mechanism m = { .param = number_of(pair, "param"),
				  .teachers = (uint32_t)count_of(pair, "teachers") };
	uint64_t labels = (uint64_t)count_of(pair, "labels");

	if (labels == 0)
		table_add(t, "0");
	else if (dp_noise_find(text_of(pair, "noise"), &m.noise) != 0 ||
		 dp_accountant_check(a, &m, NULL) != 0)
		table_add(t, "n/a");
	else
		table_add(t, "%.3f", dp_epsilon_public(a, &m, labels, number_of(pair, "delta")));
}

/* The epsilon that the paper would print: one query a batch, whatever is in it. */
static void add_published(struct table *t, const json_t *pair)
{
	struct dp_mechanism m = { DP_LAPLACE, number_of(pair, "param"),
				  (uint32_t)count_of(pair, "teachers") };
	uint64_t labels = (uint64_t)count_of(pair, "labels");

	if (labels > 0 && strcmp(text_of(pair, "noise"), "laplace") == 0)
		table_add(t, "%.3f",
			  dp_epsilon_published(&m, labels, (uint32_t)count_of(pair, "batch"),
					       number_of(pair, "delta")));
	else
		table_add(t, labels > 0 ? "n/a" : "0");
}

/* Accountants that can judge some pair's noise; `exact` judges all. */
static bool has_epsilon(const json_t *report, const char *noise)
{
	const json_t *pair;
	size_t i;

	json_array_foreach(json_object_get(report, "pairs"), i,
			   pair) if (strcmp(text_of(pair, "noise"), noise) == 0) return true;
	return false;
}

static void add_pair(struct table *t, const json_t *pair, bool laplace, bool gaussian)
{
	table_add(t, "%s", text_of(pair, "translator"));
	table_add(t, "%s <- %s", text_of(pair, "host"), text_of(pair, "client"));
	table_add(t, "%lld", count_of(pair, "shared"));
	table_add(t, "%lld", count_of(pair, "sessions"));
	table_add(t, "%lld", count_of(pair, "labels"));
	add_epsilon(t, pair, DP_EXACT);
	if (laplace) {
		add_epsilon(t, pair, DP_PAPER);
		add_published(t, pair);
	}
	if (gaussian)
		add_epsilon(t, pair, DP_GNMAX);
	table_add(t, "%lld", count_of(pair, "rows"));
	table_add(t, "%lld", count_of(pair, "floats"));
	table_add(t, "%.2f", (double)count_of(pair, "bytes") / 1e6);
	table_add(t, "%.2f", number_of(pair, "seconds"));
}

static void print_pairs(const json_t *report, struct buf *out)
{
	static const char *const head[] = { "translator", "host <- client", "shared",
					    "sessions",	  "labels",	    "eps exact",
					    "eps paper",  "published",	    "eps gnmax",
					    "rows sent",  "numbers sent",   "MB",
					    "seconds" };
	bool laplace = has_epsilon(report, "laplace"), gaussian = has_epsilon(report, "gaussian");
	struct table t;
	const json_t *pair;
	size_t i;

	table_init(&t, 10U + (laplace ? 2U : 0U) + (gaussian ? 1U : 0U));
	for (size_t k = 0; k < sizeof(head) / sizeof(head[0]); k++)
		if (((k != 6 && k != 7) || laplace) && (k != 8 || gaussian))
			table_add(&t, "%s", head[k]);
	json_array_foreach(json_object_get(report, "pairs"), i, pair)
		add_pair(&t, pair, laplace, gaussian);
	table_print(&t, out);
	table_release(&t);
}

/* ---- arms ---- */

static void print_killed(const json_t *killed, struct buf *out)
{
	if (!json_is_object(killed))
		return;
	buf_printf(out,
		   "  %s was ended by kill -9 in the middle and started again; its best state was "
		   "%s.\n",
		   text_of(killed, "agent"),
		   json_is_true(json_object_get(killed, "same")) ? "the same, bit for bit"
								 : "NOT the same");
}

static void print_arms(const json_t *report, struct buf *out)
{
	const json_t *arm;
	size_t i;

	json_array_foreach(json_object_get(report, "arms"), i, arm)
	{
		buf_printf(out, "- %s: %.1f s from start to rest; ledgers of all pairs %s.\n",
			   text_of(arm, "translator"), number_of(arm, "seconds"),
			   json_is_true(json_object_get(arm, "ledgers")) ? "verify and agree"
									 : "DO NOT AGREE");
		print_killed(json_object_get(arm, "killed"), out);
	}
}

static void print_opening(const json_t *r, struct buf *out)
{
	buf_printf(out, "# What the companies gained from each other, and what it cost\n\n");
	buf_printf(
		out,
		"An invented world (seed %lld, size %lld %%): facts follow hidden pathways which "
		"no company sees whole,\nand what one asks about, another knows better. No asked "
		"pair stands in a partner's graph.\n"
		"World and settings were chosen, with seeds 1 and 3, so that partners can help: "
		"this "
		"shows a federation at work,\nand says nothing about other graphs. For real ones "
		"see docs/results/dbp-5l.md.\n",
		count_of(r, "seed"), count_of(r, "percent"));
	buf_printf(out,
		   "Model %s; %lld epochs alone, then up to %lld rounds with partners,\nof %lld "
		   "epochs, each kept only when valid says so.\n\n",
		   text_of(r, "model"), count_of(r, "epochs"), count_of(r, "rounds"),
		   count_of(r, "round_epochs"));
}

/* ---- the question ---- */

/* An answer and its edges, on one line. */
static void print_answer(const json_t *answer, struct buf *out)
{
	const json_t *edge;
	size_t i;

	buf_printf(out, "%lld. **%s**", count_of(answer, "rank"), text_of(answer, "name"));
	json_array_foreach(json_object_get(answer, "edges"), i, edge)
		buf_printf(out, "%s %s %s %s (%s %s)", i == 0 ? ":" : ",", text_of(edge, "head"),
			   text_of(edge, "relation"), text_of(edge, "tail"), text_of(edge, "agent"),
			   json_is_true(json_object_get(edge, "known")) ? "knows" : "predicts");
	buf_printf(out, "\n");
}

static void print_question(const json_t *q, struct buf *out)
{
	const json_t *one;
	size_t i;

	if (!json_is_object(q))
		return;
	buf_printf(out, "\n## A question that no company answers alone\n\n    %s\n\n",
		   text_of(q, "text"));
	json_array_foreach(json_object_get(q, "alone"), i,
			   one) if (json_is_string(json_object_get(one, "says")))
		buf_printf(out, "- %s alone: %s\n", text_of(one, "name"), text_of(one, "says"));
	else buf_printf(out, "- %s alone: %lld answers\n", text_of(one, "name"),
			count_of(one, "answers"));
	buf_printf(out,
		   "\nTogether, asked by %s, whose partner lets it have facts of this one "
		   "relation:\n\n",
		   text_of(q, "asker"));
	json_array_foreach(json_object_get(q, "answers"), i, one) print_answer(one, out);
	json_array_foreach(json_object_get(q, "missing"), i, one)
		buf_printf(out, "Missing: %s over %s: %s\n", text_of(one, "name"),
			   text_of(one, "relation"), text_of(one, "why"));
}

void demo_report_print(const json_t *r, struct buf *out)
{
	print_opening(r, out);
	print_companies(r, out);
	buf_printf(out,
		   "\n## Scores on test\n\nProtocol %s.\nThe control arm made as many rounds of as "
		   "many epochs, without partners, and kept its best.\n\n",
		   text_of(r, "protocol"));
	print_scores(r, out);
	buf_printf(out, "\n");
	for (size_t k = 0; k < ARMS; k++)
		print_verdict(r, k, out);
	buf_printf(out, "\n## Cost of each pair\n\n");
	print_pairs(r, out);
	buf_printf(out,
		   "\nRows and numbers: what the client disclosed of its own table, turned by a "
		   "secret rotation or linear map.\nPublished: what the paper would print, one "
		   "query a batch.\nEpsilon is the public one at the contract's "
		   "delta: what the client can learn about one aligned row of the host.\nIt "
		   "protects no triple, no entity, and no row of the client. Procrustes releases "
		   "nothing computed from the host's rows.\n\n## Runs\n\n");
	print_arms(r, out);
	print_question(json_object_get(r, "question"), out);
}

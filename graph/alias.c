#include "graph/alias.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/lines.h"

/* The other name of a pair: for refuse and unique the first one, else the one that counts. */
struct claim {
	uint32_t other; /* GRAPH_NONE: nothing */
	bool many;	/* with something else later */
	size_t line;
};

struct graph_aliases {
	struct graph_vocab *shared;
	struct claim *of_own; /* by own id */
	struct claim *of_shared;
	uint32_t own_count, shared_cap;
};

struct scored {
	uint32_t own, shared;
	double score;
};

/* The file that is being read. */
struct alias_reader {
	struct graph_aliases *a;
	const struct graph_vocab *own;
	struct graph_lines *lines;
	enum graph_match match;
	bool own_second;
	struct graph_alias_report *report;
	struct scored *at; /* of best: distinct pairs, but for those since the last squeeze */
	size_t n, cap;
};

/* ---- pairs ---- */

static struct claim *claim_of_shared(struct graph_aliases *a, uint32_t shared)
{
	if (shared >= a->shared_cap) {
		uint32_t had = a->shared_cap;

		a->shared_cap = shared * 2 + 64;
		a->of_shared = mem_resize(a->of_shared, a->shared_cap, sizeof *a->of_shared);
		for (uint32_t i = had; i < a->shared_cap; i++)
			a->of_shared[i] = (struct claim){ .other = GRAPH_NONE };
	}
	return &a->of_shared[shared];
}

static void link_pair(struct graph_aliases *a, uint32_t own, uint32_t shared, size_t line)
{
	struct claim *theirs = claim_of_shared(a, shared);

	assert(a->of_own[own].other == GRAPH_NONE && theirs->other == GRAPH_NONE);
	a->of_own[own] = (struct claim){ .other = shared, .line = line };
	*theirs = (struct claim){ .other = own, .line = line };
}

static void tell_conflict(struct alias_reader *r, uint32_t own, uint32_t shared)
{
	const struct claim *mine = &r->a->of_own[own], *theirs = &r->a->of_shared[shared];
	const char *path = graph_lines_path(r->lines);
	const char *name = graph_vocab_name(r->own, own, NULL);
	const char *text = graph_vocab_name(r->a->shared, shared, NULL);
	size_t line = graph_lines_number(r->lines);

	if (mine->other != shared)
		graph_conflicts_add(&r->report->conflicts,
				    "%s:%zu: '%.100s' is '%.100s' here and '%.100s' in line %zu",
				    path, line, name, text,
				    graph_vocab_name(r->a->shared, mine->other, NULL), mine->line);
	else
		graph_conflicts_add(&r->report->conflicts,
				    "%s:%zu: '%.100s' is of '%.100s' here and of '%.100s' in line "
				    "%zu",
				    path, line, text, name,
				    graph_vocab_name(r->own, theirs->other, NULL), theirs->line);
}

/* refuse, unique: names remember the first that they are paired with, and whether there are more */
static void claim_pair(struct alias_reader *r, uint32_t own, uint32_t shared)
{
	struct claim *mine = &r->a->of_own[own], *theirs = claim_of_shared(r->a, shared);
	size_t line = graph_lines_number(r->lines);

	if (mine->other == GRAPH_NONE)
		*mine = (struct claim){ .other = shared, .line = line };
	if (theirs->other == GRAPH_NONE)
		*theirs = (struct claim){ .other = own, .line = line };
	if (mine->other == shared && theirs->other == own) {
		r->report->duplicates += mine->line != line;
		return;
	}
	tell_conflict(r, own, shared);
	mine->many = mine->many || mine->other != shared;
	theirs->many = theirs->many || theirs->other != own;
}

static void take_first(struct alias_reader *r, uint32_t own, uint32_t shared)
{
	const struct claim *mine = &r->a->of_own[own], *theirs = claim_of_shared(r->a, shared);

	if (mine->other == GRAPH_NONE && theirs->other == GRAPH_NONE)
		link_pair(r->a, own, shared, graph_lines_number(r->lines));
	else
		r->report->duplicates += mine->other == shared;
}

/* ---- best ---- */

/* The same pair together, its highest score first. */
static int by_pair(const void *pa, const void *pb)
{
	const struct scored *a = pa, *b = pb;

	if (a->own != b->own)
		return a->own < b->own ? -1 : 1;
	if (a->shared != b->shared)
		return a->shared < b->shared ? -1 : 1;
	return graph_match_order(a->score, b->score);
}

/* Names decide between equal scores: ids follow the order of the lines. */
static int by_alias_score(const void *pa, const void *pb, void *ctx)
{
	const struct alias_reader *r = ctx;
	const struct scored *a = pa, *b = pb;
	int order = graph_match_order(a->score, b->score);

	if (order == 0)
		order = strcmp(graph_vocab_name(r->own, a->own, NULL),
			       graph_vocab_name(r->own, b->own, NULL));
	if (order == 0)
		order = strcmp(graph_vocab_name(r->a->shared, a->shared, NULL),
			       graph_vocab_name(r->a->shared, b->shared, NULL));
	return order;
}

static void squeeze_scored(struct alias_reader *r)
{
	size_t kept = 0;

	if (r->n > 0)
		qsort(r->at, r->n, sizeof(*r->at), by_pair);
	for (size_t i = 0; i < r->n; i++)
		if (kept == 0 || r->at[kept - 1].own != r->at[i].own ||
		    r->at[kept - 1].shared != r->at[i].shared)
			r->at[kept++] = r->at[i];
	r->report->duplicates += r->n - kept;
	r->n = kept;
}

static void add_scored(struct alias_reader *r, struct scored pair)
{
	if (r->n == r->cap) {
		squeeze_scored(r); /* so that repeats take no memory */
		if (r->n >= r->cap / 2) {
			r->cap = r->cap > 0 ? 2 * r->cap : 1024;
			r->at = mem_resize(r->at, r->cap, sizeof(*r->at));
		}
	}
	r->at[r->n++] = pair;
}

static void link_best(struct alias_reader *r)
{
	squeeze_scored(r);
	if (r->n > 0)
		qsort_r(r->at, r->n, sizeof(*r->at), by_alias_score, r);
	for (size_t i = 0; i < r->n; i++)
		if (r->a->of_own[r->at[i].own].other == GRAPH_NONE &&
		    claim_of_shared(r->a, r->at[i].shared)->other == GRAPH_NONE)
			link_pair(r->a, r->at[i].own, r->at[i].shared, 0);
}

/* ---- the file ---- */

static int want_score(const struct alias_reader *r, const char *line, struct err *e)
{
	const char *tab = strchr(line, '\t');

	if (tab == NULL || strchr(tab + 1, '\t') != NULL)
		return 0; /* graph_lines_fields() says what is wrong, if anything */
	return graph_lines_bad(r->lines, e, "no third column: best wants a score there");
}

static int read_alias_line(struct alias_reader *r, char *line, size_t len, struct err *e)
{
	static const char *const own_first[] = { "own name", "shared name", "score" };
	static const char *const own_second[] = { "shared name", "own name", "score" };
	const char *const *columns = r->own_second ? own_second : own_first;
	struct lines_field f[3];
	const struct lines_field *mine = &f[r->own_second], *theirs = &f[!r->own_second];
	bool best = r->match == GRAPH_MATCH_BEST;
	struct scored pair = { 0 };
	int rc = best ? want_score(r, line, e) : 0;

	if (rc == 0)
		rc = graph_lines_fields(r->lines, line, len, f, columns, best ? 3 : 2, e);
	if (rc == 0 && best)
		rc = graph_match_score(r->lines, &f[2], &pair.score, e);
	if (rc != 0)
		return rc;
	pair.own = graph_vocab_find(r->own, mine->text, mine->len);
	if (pair.own == GRAPH_NONE) {
		r->report->strangers++; /* kept nowhere: such lines take no memory */
		return 0;
	}
	if (graph_vocab_count(r->a->shared) >= UINT32_MAX / 4)
		return graph_lines_bad(r->lines, e, "more than %u names", UINT32_MAX / 4);
	pair.shared = graph_vocab_add(r->a->shared, theirs->text, theirs->len);
	if (best)
		add_scored(r, pair);
	else if (r->match == GRAPH_MATCH_FIRST)
		take_first(r, pair.own, pair.shared);
	else
		claim_pair(r, pair.own, pair.shared);
	return 0;
}

static int read_alias_lines(struct alias_reader *r, struct err *e)
{
	char *line;
	size_t len;
	int rc;

	while ((rc = graph_lines_next(r->lines, &line, &len, e)) == 1) {
		r->report->lines++;
		rc = read_alias_line(r, line, len, e);
		if (rc != 0)
			return rc;
	}
	return rc;
}

/* Of the claims, those stay that nobody disputes. */
static void drop_disputed(struct graph_aliases *a)
{
	for (uint32_t id = 0; id < a->own_count; id++) {
		struct claim *mine = &a->of_own[id];

		if (mine->other != GRAPH_NONE && (mine->many || a->of_shared[mine->other].many ||
						  a->of_shared[mine->other].other != id))
			mine->other = GRAPH_NONE;
	}
	for (uint32_t i = 0; i < a->shared_cap; i++) {
		struct claim *theirs = &a->of_shared[i];

		if (theirs->other != GRAPH_NONE && a->of_own[theirs->other].other != i)
			theirs->other = GRAPH_NONE;
	}
}

static void count_links(struct alias_reader *r)
{
	struct graph_alias_report *report = r->report;

	for (uint32_t id = 0; id < r->a->own_count; id++) {
		size_t len;
		const char *name = graph_alias_of(r->a, id, &len);
		uint32_t other;

		if (name == NULL)
			continue;
		report->linked++;
		other = graph_vocab_find(r->own, name, len);
		report->shadowed += other != GRAPH_NONE && other != id &&
				    graph_alias_of(r->a, other, NULL) == NULL;
	}
	assert(report->lines >= report->linked + report->strangers + report->duplicates);
	report->clashes = report->lines - report->linked - report->strangers - report->duplicates;
}

static int match_names(struct alias_reader *r, struct err *e)
{
	size_t n = r->report->conflicts.n;

	if (r->match == GRAPH_MATCH_REFUSE && n > 0)
		return err_set(e, ERR_INPUT,
			       "%s: %zu line%s pair%s a name that an earlier line pairs "
			       "otherwise, the first: %.*s",
			       graph_lines_path(r->lines), n, n == 1 ? "" : "s", n == 1 ? "s" : "",
			       (int)strcspn((const char *)r->report->conflicts.text.base, "\n"),
			       (const char *)r->report->conflicts.text.base);
	if (r->match == GRAPH_MATCH_UNIQUE)
		drop_disputed(r->a);
	else if (r->match == GRAPH_MATCH_BEST)
		link_best(r);
	count_links(r);
	return 0;
}

static struct graph_aliases *aliases_new(const struct graph_vocab *own)
{
	struct graph_aliases *a = mem_array(1, sizeof *a);

	a->shared = graph_vocab_new();
	a->own_count = graph_vocab_count(own);
	a->of_own = mem_array((size_t)a->own_count + 1, sizeof *a->of_own);
	for (uint32_t id = 0; id < a->own_count; id++)
		a->of_own[id].other = GRAPH_NONE;
	return a;
}

int graph_aliases_load(struct graph_aliases **out, const char *path, const struct graph_vocab *own,
		       bool own_second, enum graph_match match, struct graph_alias_report *report,
		       struct err *e)
{
	struct graph_alias_report unread = { 0 };
	struct alias_reader r = { .own = own,
				  .own_second = own_second,
				  .match = match,
				  .report = report != NULL ? report : &unread };
	int rc = graph_lines_open(&r.lines, path, e);

	*out = NULL;
	*r.report = unread;
	if (rc != 0)
		return rc;
	r.a = aliases_new(own);
	rc = read_alias_lines(&r, e);
	if (rc == 0)
		rc = match_names(&r, e);
	graph_lines_close(r.lines);
	free(r.at);
	graph_alias_report_release(&unread);
	if (rc != 0)
		graph_aliases_free(r.a);
	else
		*out = r.a;
	return rc;
}

void graph_alias_report_release(struct graph_alias_report *r)
{
	graph_conflicts_release(&r->conflicts);
}

void graph_aliases_free(struct graph_aliases *a)
{
	if (a == NULL)
		return;
	graph_vocab_free(a->shared);
	free(a->of_own);
	free(a->of_shared);
	free(a);
}

const char *graph_alias_of(const struct graph_aliases *a, uint32_t id, size_t *len)
{
	if (a == NULL || id >= a->own_count || a->of_own[id].other == GRAPH_NONE)
		return NULL;
	return graph_vocab_name(a->shared, a->of_own[id].other, len);
}

uint32_t graph_alias_find(const struct graph_aliases *a, const char *name, size_t len)
{
	uint32_t shared = a == NULL ? (uint32_t)GRAPH_NONE : graph_vocab_find(a->shared, name, len);

	return shared == GRAPH_NONE || shared >= a->shared_cap ? (uint32_t)GRAPH_NONE
							       : a->of_shared[shared].other;
}

#include "graph/align.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"
#include "graph/graph.h"

/* ---- data ---- */

struct align_graph {
	char *name;
	struct graph_vocab *names;
	uint32_t *node; /* by the name's id */
	uint32_t cap;
	uint32_t first, count; /* once nodes are in order: its nodes */
};

/* One entity.  Nodes are in the order of arrival while files are read, then in that of graph and
 * name as bytes, so that nothing afterwards depends on the order of lines. */
struct node {
	uint32_t graph, id;
	uint32_t parent; /* of its class; the class's least node is its own */
};

struct pair {
	uint32_t a, b; /* a < b */
	uint32_t file; /* the least place where it stands */
	size_t line;
	double score; /* the highest that it has */
};

struct graph_align {
	struct align_graph *graph;
	struct node *node;
	struct pair *pair;
	char **path;
	uint32_t n_graphs, n_files;
	uint32_t n_nodes, node_cap;
	size_t n_pairs, pair_cap; /* distinct ones, but for those since the last squeeze */
	size_t lines;
};

struct graph_align *graph_align_new(void)
{
	return mem_array(1, sizeof(struct graph_align));
}

void graph_align_free(struct graph_align *a)
{
	if (a == NULL)
		return;
	for (uint32_t i = 0; i < a->n_graphs; i++) {
		free(a->graph[i].name);
		graph_vocab_free(a->graph[i].names);
		free(a->graph[i].node);
	}
	for (uint32_t i = 0; i < a->n_files; i++)
		free(a->path[i]);
	free(a->graph);
	free(a->node);
	free(a->pair);
	free(a->path);
	free(a);
}

void graph_align_report_release(struct graph_align_report *r)
{
	graph_conflicts_release(&r->conflicts);
}

static const char *node_name(const struct graph_align *a, uint32_t node, size_t *len)
{
	return graph_vocab_name(a->graph[a->node[node].graph].names, a->node[node].id, len);
}

static const char *node_graph(const struct graph_align *a, uint32_t node)
{
	return a->graph[a->node[node].graph].name;
}

/* ---- reading ---- */

static int check_graph_name(const char *name, struct err *e)
{
	size_t n = strlen(name);

	if (n >= 1 && n <= GRAPH_ALIGN_NAME_MAX && name[0] != '.' && strpbrk(name, "/:") == NULL &&
	    text_printable(name, n))
		return 0;
	return err_set(e, ERR_USAGE,
		       "'%.100s' is no name of a graph: 1 to %d bytes, not with '.' in front, nor "
		       "with '/' or ':' in it",
		       name, GRAPH_ALIGN_NAME_MAX);
}

static int find_graph(struct graph_align *a, const char *name, uint32_t *out, struct err *e)
{
	int rc = check_graph_name(name, e);

	if (rc != 0)
		return rc;
	for (*out = 0; *out < a->n_graphs; ++*out)
		if (strcmp(a->graph[*out].name, name) == 0)
			return 0;
	if (a->n_graphs == GRAPH_ALIGN_MAX)
		return err_set(e, ERR_USAGE, "more than %d graphs", GRAPH_ALIGN_MAX);
	a->graph = mem_resize(a->graph, a->n_graphs + 1, sizeof(*a->graph));
	a->graph[a->n_graphs++] =
		(struct align_graph){ .name = mem_strdup(name), .names = graph_vocab_new() };
	return 0;
}

static uint32_t find_node(struct graph_align *a, uint32_t graph, const struct lines_field *f)
{
	struct align_graph *g = &a->graph[graph];
	uint32_t had = graph_vocab_count(g->names), id = graph_vocab_add(g->names, f->text, f->len);

	assert(id >= had || g->node != NULL);
	if (id < had)
		return g->node[id];
	if (id >= g->cap) {
		g->cap = g->cap > 0 ? 2 * g->cap : 256;
		g->node = mem_resize(g->node, g->cap, sizeof(*g->node));
	}
	if (a->n_nodes == a->node_cap) {
		a->node_cap = a->node_cap > 0 ? 2 * a->node_cap : 1024;
		a->node = mem_resize(a->node, a->node_cap, sizeof(*a->node));
	}
	a->node[a->n_nodes] = (struct node){ .graph = graph, .id = id };
	g->node[id] = a->n_nodes;
	return a->n_nodes++;
}

static int by_ends(const void *pa, const void *pb)
{
	const struct pair *x = pa, *y = pb;

	if (x->a != y->a)
		return x->a < y->a ? -1 : 1;
	return (x->b > y->b) - (x->b < y->b);
}

/* Whether x stands before y: by the files' paths, then by line. */
static bool stands_before(const struct graph_align *a, const struct pair *x, const struct pair *y)
{
	int order = x->file == y->file ? 0 : strcmp(a->path[x->file], a->path[y->file]);

	return order != 0 ? order < 0 : x->line < y->line;
}

/* The same pair once: its highest score, the least place where it stands. */
static void squeeze_pairs(struct graph_align *a)
{
	size_t kept = 0;

	if (a->n_pairs > 0)
		qsort(a->pair, a->n_pairs, sizeof(*a->pair), by_ends);
	for (size_t i = 0; i < a->n_pairs; i++) {
		const struct pair *x = &a->pair[i];
		struct pair *last = kept > 0 ? &a->pair[kept - 1] : NULL;

		if (last == NULL || by_ends(last, x) != 0) {
			a->pair[kept++] = *x;
			continue;
		}
		last->score = x->score > last->score ? x->score : last->score;
		if (stands_before(a, x, last)) {
			last->file = x->file;
			last->line = x->line;
		}
	}
	a->n_pairs = kept;
}

static void add_align_pair(struct graph_align *a, struct pair p)
{
	if (p.a > p.b) {
		uint32_t b = p.a;

		p.a = p.b;
		p.b = b;
	}
	if (a->n_pairs == a->pair_cap) {
		squeeze_pairs(a); /* so that repeats take no memory */
		if (a->n_pairs >= a->pair_cap / 2) {
			a->pair_cap = a->pair_cap > 0 ? 2 * a->pair_cap : 1024;
			a->pair = mem_resize(a->pair, a->pair_cap, sizeof(*a->pair));
		}
	}
	a->pair[a->n_pairs++] = p;
}

static int read_align_line(struct graph_align *a, const uint32_t graph[2], struct graph_lines *l,
			   char *line, size_t len, size_t columns, struct err *e)
{
	static const char *const what[] = { "name in the first graph", "name in the second graph",
					    "score" };
	struct pair p = { .file = a->n_files - 1, .line = graph_lines_number(l), .score = 1 };
	struct lines_field f[3];
	int rc = graph_lines_fields(l, line, len, f, what, columns, e);

	if (rc == 0 && columns == 3)
		rc = graph_match_score(l, &f[2], &p.score, e);
	for (size_t i = 0; i < 2 && rc == 0; i++) /* each may come to stand first in its file */
		if (!graph_lines_may_begin(f[i].text, f[i].len))
			rc = graph_lines_bad(l, e,
					     "column %zu (%s) begins with what no file of names "
					     "may begin with, such as a byte-order mark",
					     i + 1, what[i]);
	if (rc == 0 && a->n_nodes >= UINT32_MAX / 4)
		rc = graph_lines_bad(l, e, "more than %u names", UINT32_MAX / 4);
	if (rc != 0)
		return rc;
	p.a = find_node(a, graph[0], &f[0]);
	p.b = find_node(a, graph[1], &f[1]);
	add_align_pair(a, p);
	a->lines++;
	return 0;
}

/* Three columns in the first line: each line has a score. */
static size_t count_columns(const char *line, size_t len)
{
	size_t tabs = 0;

	for (size_t i = 0; i < len; i++)
		tabs += line[i] == '\t';
	return tabs == 2 ? 3 : 2;
}

int graph_align_read(struct graph_align *a, const char *first, const char *second, const char *path,
		     struct err *e)
{
	struct graph_lines *l = NULL;
	uint32_t graph[2];
	size_t len, columns = 0;
	char *line;
	int rc = find_graph(a, first, &graph[0], e);

	if (rc == 0)
		rc = find_graph(a, second, &graph[1], e);
	if (rc == 0 && graph[0] == graph[1])
		rc = err_set(e, ERR_USAGE, "%s: pairs of '%s' with itself", path, first);
	if (rc == 0)
		rc = graph_lines_open(&l, path, e);
	if (rc != 0)
		return rc;
	a->path = mem_resize(a->path, a->n_files + 1, sizeof(*a->path));
	a->path[a->n_files++] = mem_strdup(path);
	while ((rc = graph_lines_next(l, &line, &len, e)) == 1) {
		columns = columns > 0 ? columns : count_columns(line, len);
		rc = read_align_line(a, graph, l, line, len, columns, e);
		if (rc != 0)
			break;
	}
	graph_lines_close(l);
	return rc;
}

/* ---- nodes in order ---- */

static int by_graph_name(const void *pa, const void *pb)
{
	const struct align_graph *x = pa, *y = pb;

	return strcmp(x->name, y->name);
}

struct named {
	const char *text;
	uint32_t id;
};

static int by_name_bytes(const void *pa, const void *pb)
{
	const struct named *x = pa, *y = pb;

	return strcmp(x->text, y->text); /* names hold no NUL */
}

/* The graph's nodes get numbers from `first` on; rank[old] = new. */
static void order_graph(const struct align_graph *g, uint32_t *rank)
{
	struct named *at = mem_array((size_t)g->count + 1, sizeof(*at));

	for (uint32_t id = 0; id < g->count; id++)
		at[id] = (struct named){ graph_vocab_name(g->names, id, NULL), id };
	qsort(at, g->count, sizeof(*at), by_name_bytes);
	for (uint32_t i = 0; i < g->count; i++)
		rank[g->node[at[i].id]] = g->first + i;
	free(at);
}

static void order_nodes(struct graph_align *a)
{
	uint32_t *rank = mem_array((size_t)a->n_nodes + 1, sizeof(*rank));
	uint32_t first = 0;

	if (a->n_graphs > 0)
		qsort(a->graph, a->n_graphs, sizeof(*a->graph), by_graph_name);
	for (uint32_t i = 0; i < a->n_graphs; i++) {
		struct align_graph *g = &a->graph[i];

		g->first = first;
		g->count = graph_vocab_count(g->names);
		first += g->count;
		order_graph(g, rank);
	}
	assert(first == a->n_nodes);
	for (size_t i = 0; i < a->n_pairs; i++) {
		uint32_t x = rank[a->pair[i].a], y = rank[a->pair[i].b];

		a->pair[i].a = x < y ? x : y;
		a->pair[i].b = x < y ? y : x;
	}
	for (uint32_t i = 0; i < a->n_graphs; i++)
		for (uint32_t id = 0; id < a->graph[i].count; id++) {
			uint32_t *x = &a->graph[i].node[id];

			*x = rank[*x];
			a->node[*x] = (struct node){ i, id, *x };
		}
	free(rank);
	squeeze_pairs(a);
}

/* ---- classes ---- */

static uint32_t find_root(struct graph_align *a, uint32_t x)
{
	while (a->node[x].parent != x) {
		a->node[x].parent = a->node[a->node[x].parent].parent;
		x = a->node[x].parent;
	}
	return x;
}

static void join_nodes(struct graph_align *a, uint32_t x, uint32_t y)
{
	x = find_root(a, x);
	y = find_root(a, y);
	if (x < y)
		a->node[y].parent = x;
	else
		a->node[x].parent = y;
}

/* Nodes by class, classes by their least node; a class's nodes ascend, so those of one graph stand
 * together. */
struct classes {
	uint32_t *at;	 /* nodes */
	uint32_t *begin; /* of the class of this root; n_nodes + 1 of them, of other nodes empty */
};

static struct classes classes_of(struct graph_align *a)
{
	struct classes c = { mem_array((size_t)a->n_nodes + 1, sizeof(uint32_t)),
			     mem_array((size_t)a->n_nodes + 2, sizeof(uint32_t)) };

	for (uint32_t x = 0; x < a->n_nodes; x++)
		c.begin[find_root(a, x) + 2]++;
	for (uint32_t x = 1; x <= a->n_nodes; x++)
		c.begin[x + 1] += c.begin[x];
	for (uint32_t x = 0; x < a->n_nodes; x++) /* begin[root + 1] moves up to the next one's */
		c.at[c.begin[find_root(a, x) + 1]++] = x;
	return c;
}

static void classes_release(struct classes *c)
{
	free(c->at);
	free(c->begin);
}

/* The place in c->at of the first node whose neighbour there is of the same graph; the class's end
 * if there is none. */
static uint32_t find_double(const struct graph_align *a, const struct classes *c, uint32_t root)
{
	for (uint32_t i = c->begin[root]; i + 1 < c->begin[root + 1]; i++)
		if (a->node[c->at[i]].graph == a->node[c->at[i + 1]].graph)
			return i;
	return c->begin[root + 1];
}

/* ---- neighbours ---- */

/* By node: the pairs it is in, in the order of the other node. */
struct neighbours {
	size_t *begin; /* n_nodes + 1 */
	struct neighbour {
		uint32_t node;
		size_t pair;
	} * at;
};

static struct neighbours neighbours_of(const struct graph_align *a)
{
	struct neighbours n = { mem_array((size_t)a->n_nodes + 2, sizeof(size_t)),
				mem_array(2 * a->n_pairs + 1, sizeof(struct neighbour)) };

	for (size_t i = 0; i < a->n_pairs; i++) {
		n.begin[a->pair[i].a + 2]++;
		n.begin[a->pair[i].b + 2]++;
	}
	for (uint32_t x = 1; x <= a->n_nodes; x++)
		n.begin[x + 1] += n.begin[x];
	/* pairs ascend by a, then b: first each node's smaller neighbours, then its larger ones */
	for (size_t i = 0; i < a->n_pairs; i++)
		n.at[n.begin[a->pair[i].b + 1]++] = (struct neighbour){ a->pair[i].a, i };
	for (size_t i = 0; i < a->n_pairs; i++)
		n.at[n.begin[a->pair[i].a + 1]++] = (struct neighbour){ a->pair[i].b, i };
	return n;
}

static void neighbours_release(struct neighbours *n)
{
	free(n->begin);
	free(n->at);
}

static bool is_neighbour(const struct neighbours *n, uint32_t x, uint32_t of)
{
	size_t from = n->begin[of], to = n->begin[of + 1];

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (n->at[middle].node == x)
			return true;
		if (n->at[middle].node < x)
			from = middle + 1;
		else
			to = middle;
	}
	return false;
}

/* How many entities both are paired with. */
static size_t count_common(const struct neighbours *n, uint32_t x, uint32_t y)
{
	size_t common = 0;

	if (n->begin[x + 1] - n->begin[x] > n->begin[y + 1] - n->begin[y])
		return count_common(n, y, x);
	for (size_t i = n->begin[x]; i < n->begin[x + 1]; i++)
		common += is_neighbour(n, n->at[i].node, y);
	return common;
}

/* ---- conflicts in words ---- */

struct walk {
	const struct graph_align *a;
	const struct neighbours *n;
	size_t *by;	 /* node -> pair by which it was reached + 1; 0: not */
	uint32_t *queue; /* nodes in the order of being reached */
	uint32_t reached;
};

static uint32_t other_end(const struct pair *p, uint32_t node)
{
	assert(p->a == node || p->b == node);
	return p->a == node ? p->b : p->a;
}

/* Breadth first from a node to the nearest other one of its graph, which the class has. */
static uint32_t walk_to_double(struct walk *w, uint32_t from)
{
	const struct neighbours *n = w->n;
	uint32_t graph = w->a->node[from].graph;

	w->by[from] = SIZE_MAX;
	w->queue[w->reached++] = from;
	for (uint32_t at = 0; at < w->reached; at++) {
		uint32_t x = w->queue[at];

		for (size_t i = n->begin[x]; i < n->begin[x + 1]; i++) {
			uint32_t y = n->at[i].node;

			if (w->by[y] != 0)
				continue;
			w->by[y] = n->at[i].pair + 1;
			w->queue[w->reached++] = y;
			if (w->a->node[y].graph == graph)
				return y;
		}
	}
	assert(false && "the class has no other node of that graph");
	return from;
}

/* Of a way over n nodes the shortest part that begins and ends in one graph. */
static void cut_way(const struct graph_align *a, const uint32_t *way, size_t n, size_t *from,
		    size_t *to)
{
	size_t *last = mem_array(a->n_graphs, sizeof(*last)); /* place + 1 */

	*from = 0;
	*to = n - 1;
	for (size_t i = 0; i < n; i++) {
		uint32_t g = a->node[way[i]].graph;

		if (last[g] > 0 && i + 1 - last[g] < *to - *from) {
			*from = last[g] - 1;
			*to = i;
		}
		last[g] = i + 1;
	}
	free(last);
}

static void tell_way(const struct walk *w, const uint32_t *way, size_t from, size_t to,
		     struct graph_conflicts *out)
{
	enum { STEPS_SHOWN = 8 };
	const struct graph_align *a = w->a;
	struct buf text = { 0 };

	buf_printf(&text, "two of %s are one: %.100s", node_graph(a, way[from]),
		   node_name(a, way[from], NULL));
	for (size_t i = from + 1; i <= to; i++) {
		const struct pair *p = &a->pair[w->by[way[i]] - 1];

		if (i - from == STEPS_SHOWN && to - i > 1) {
			buf_printf(&text, " = ... (%zu more)", to - i);
			i = to - 1;
			continue;
		}
		buf_printf(&text, " = %s:%.100s (%s:%zu)", node_graph(a, way[i]),
			   node_name(a, way[i], NULL), a->path[p->file], p->line);
	}
	graph_conflicts_add(out, "%s", (const char *)text.base);
	buf_release(&text);
}

/* The class holds two of one graph, one of them `from`: which pairs say so. */
static void tell_double(struct walk *w, uint32_t from, struct graph_conflicts *out)
{
	uint32_t *way;
	size_t n = 1, first, last;
	uint32_t to;

	if (out->n >= GRAPH_CONFLICTS_SHOWN) {
		graph_conflicts_add(out, "not shown");
		return;
	}
	w->reached = 0;
	to = walk_to_double(w, from);
	for (uint32_t x = to; x != from; x = other_end(&w->a->pair[w->by[x] - 1], x))
		n++;
	way = mem_array(n, sizeof(*way));
	for (size_t i = n; i-- > 0;) {
		way[i] = to;
		if (i > 0)
			to = other_end(&w->a->pair[w->by[to] - 1], to);
	}
	cut_way(w->a, way, n, &first, &last);
	tell_way(w, way, first, last, out);
	free(way);
	for (uint32_t i = 0; i < w->reached; i++)
		w->by[w->queue[i]] = 0;
}

static void tell_conflicts(const struct graph_align *a, const struct classes *c,
			   const struct neighbours *n, struct graph_conflicts *out)
{
	struct walk w = { .a = a,
			  .n = n,
			  .by = mem_array((size_t)a->n_nodes + 1, sizeof(size_t)),
			  .queue = mem_array((size_t)a->n_nodes + 1, sizeof(uint32_t)) };

	for (uint32_t root = 0; root < a->n_nodes; root++) {
		uint32_t at = find_double(a, c, root);

		if (at < c->begin[root + 1])
			tell_double(&w, c->at[at], out);
	}
	free(w.by);
	free(w.queue);
}

/* ---- rules ---- */

/* Every node of the class is alone again. */
static void part_class(struct graph_align *a, const struct classes *c, uint32_t root)
{
	for (uint32_t i = c->begin[root]; i < c->begin[root + 1]; i++)
		a->node[c->at[i]].parent = c->at[i];
}

struct candidate {
	double score;
	size_t common;
	size_t pair; /* pairs are in the order of their names */
};

static int by_merit(const void *pa, const void *pb)
{
	const struct candidate *x = pa, *y = pb;
	int order = graph_match_order(x->score, y->score);

	if (order == 0)
		order = (x->common < y->common) - (x->common > y->common);
	return order != 0 ? order : (x->pair > y->pair) - (x->pair < y->pair);
}

/* Classes that grow pair by pair: the nodes of each, by its root. */
struct growing {
	struct graph_align *a;
	uint32_t *next, *last; /* by node: the next of its class, GRAPH_NONE; of a root: the last */
	size_t *stamp;	       /* by graph */
	size_t now;
};

static bool would_double(struct growing *w, uint32_t x, uint32_t y)
{
	w->now++;
	for (uint32_t i = x; i != GRAPH_NONE; i = w->next[i])
		w->stamp[w->a->node[i].graph] = w->now;
	for (uint32_t i = y; i != GRAPH_NONE; i = w->next[i])
		if (w->stamp[w->a->node[i].graph] == w->now)
			return true;
	return false;
}

static void grow_class(struct growing *w, uint32_t x, uint32_t y)
{
	x = find_root(w->a, x);
	y = find_root(w->a, y);
	if (x == y || would_double(w, x, y))
		return;
	if (x > y) {
		uint32_t less = y;

		y = x;
		x = less;
	}
	w->next[w->last[x]] = y; /* at most one node a graph: these lists are short */
	w->last[x] = w->last[y];
	join_nodes(w->a, x, y);
}

static void join_best(struct growing *w, const struct classes *c, const struct neighbours *n,
		      uint32_t root)
{
	struct candidate *at;
	size_t count = 0, k = 0;

	for (uint32_t i = c->begin[root]; i < c->begin[root + 1]; i++)
		count += n->begin[c->at[i] + 1] - n->begin[c->at[i]];
	at = mem_array(count + 1, sizeof(*at));
	for (uint32_t i = c->begin[root]; i < c->begin[root + 1]; i++) {
		uint32_t x = c->at[i];

		w->next[x] = GRAPH_NONE;
		w->last[x] = x;
		for (size_t j = n->begin[x]; j < n->begin[x + 1]; j++)
			if (n->at[j].node > x)
				at[k++] = (struct candidate){ w->a->pair[n->at[j].pair].score,
							      count_common(n, x, n->at[j].node),
							      n->at[j].pair };
	}
	assert(2 * k == count);
	qsort(at, k, sizeof(*at), by_merit);
	for (size_t i = 0; i < k; i++)
		grow_class(w, w->a->pair[at[i].pair].a, w->a->pair[at[i].pair].b);
	free(at);
}

/* Classes with two of one graph are parted; of best, joined anew. */
static void settle_classes(struct graph_align *a, const struct classes *c,
			   const struct neighbours *n, enum graph_match match)
{
	struct growing w = { .a = a,
			     .next = mem_array((size_t)a->n_nodes + 1, sizeof(uint32_t)),
			     .last = mem_array((size_t)a->n_nodes + 1, sizeof(uint32_t)),
			     .stamp = mem_array((size_t)a->n_graphs + 1, sizeof(size_t)) };

	for (uint32_t root = 0; root < a->n_nodes; root++) {
		if (find_double(a, c, root) == c->begin[root + 1])
			continue;
		part_class(a, c, root);
		if (match == GRAPH_MATCH_BEST)
			join_best(&w, c, n, root);
	}
	free(w.next);
	free(w.last);
	free(w.stamp);
}

static int refuse_doubles(const struct graph_conflicts *c, struct err *e)
{
	return err_set(e, ERR_INPUT, "%zu thing%s would have two entities of one graph", c->n,
		       c->n == 1 ? "" : "s");
}

/* ---- shared names ---- */

enum { PREFIX_LEN = sizeof "shared:" - 1 };

static bool is_linked(const struct graph_align *a, const struct classes *c, uint32_t x)
{
	uint32_t root = a->node[x].parent;

	return c->begin[root + 1] - c->begin[root] > 1;
}

/* Parents become roots, or GRAPH_NONE where a node is alone in its class. */
static int name_classes(struct graph_align *a, struct graph_align_report *r, struct err *e)
{
	struct classes c;
	int rc = 0;

	for (uint32_t x = 0; x < a->n_nodes; x++)
		a->node[x].parent = find_root(a, x);
	c = classes_of(a);
	for (uint32_t x = 0; x < a->n_nodes && rc == 0; x++) {
		size_t len;

		if (a->node[x].parent != x || !is_linked(a, &c, x))
			continue;
		assert(find_double(a, &c, x) == c.begin[x + 1]);
		r->classes++;
		node_name(a, x, &len);
		if (PREFIX_LEN + strlen(node_graph(a, x)) + 1 + len > GRAPH_NAME_MAX)
			rc = err_set(e, ERR_INPUT,
				     "the name '%.60s...' of %s is too long for a shared name: %zu "
				     "bytes",
				     node_name(a, x, NULL), node_graph(a, x), len);
	}
	for (uint32_t x = a->n_nodes; x-- > 0;)
		if (!is_linked(a, &c, x))
			a->node[x].parent = GRAPH_NONE;
	classes_release(&c);
	return rc;
}

int graph_align_join(struct graph_align *a, enum graph_match match, struct graph_align_report *r,
		     struct err *e)
{
	struct classes c;
	struct neighbours n;
	int rc = 0;

	assert(match != GRAPH_MATCH_FIRST);
	order_nodes(a);
	*r = (struct graph_align_report){ .lines = a->lines, .pairs = a->n_pairs };
	for (size_t i = 0; i < a->n_pairs; i++)
		join_nodes(a, a->pair[i].a, a->pair[i].b);
	c = classes_of(a);
	n = neighbours_of(a);
	tell_conflicts(a, &c, &n, &r->conflicts);
	if (match == GRAPH_MATCH_REFUSE && r->conflicts.n > 0)
		rc = refuse_doubles(&r->conflicts, e);
	else
		settle_classes(a, &c, &n, match);
	classes_release(&c);
	neighbours_release(&n);
	if (rc == 0)
		rc = name_classes(a, r, e);
	for (size_t i = 0; i < a->n_pairs && rc == 0; i++) {
		uint32_t x = a->node[a->pair[i].a].parent, y = a->node[a->pair[i].b].parent;

		r->left_out += x != y || x == GRAPH_NONE;
	}
	return rc;
}

/* ---- what came out ---- */

uint32_t graph_align_count(const struct graph_align *a)
{
	return a->n_graphs;
}

const char *graph_align_name(const struct graph_align *a, uint32_t graph)
{
	assert(graph < a->n_graphs);
	return a->graph[graph].name;
}

size_t graph_align_named(const struct graph_align *a, uint32_t graph)
{
	assert(graph < a->n_graphs);
	return a->graph[graph].count;
}

size_t graph_align_linked(const struct graph_align *a, uint32_t graph)
{
	const struct align_graph *g = &a->graph[graph];
	size_t n = 0;

	for (uint32_t x = g->first; x < g->first + g->count; x++)
		n += a->node[x].parent != GRAPH_NONE;
	return n;
}

void graph_align_write(const struct graph_align *a, uint32_t graph, struct buf *out)
{
	const struct align_graph *g = &a->graph[graph];

	assert(graph < a->n_graphs);
	for (uint32_t x = g->first; x < g->first + g->count; x++) {
		uint32_t root = a->node[x].parent;

		if (root != GRAPH_NONE)
			buf_printf(out, "%s\tshared:%s:%s\n", node_name(a, x, NULL),
				   node_graph(a, root), node_name(a, root, NULL));
	}
}

#include "lab/report.h"

#include <math.h>
#include <sodium.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>

#include "base/file.h"
#include "base/sink.h"
#include "kge/product.h"
#include "lab/child.h"
#include "lab/table.h"

enum { DRAWN_MAX = 1000 }; /* points of a curve in a picture */

uint64_t report_peak_bytes(void)
{
	struct rusage u;

	return getrusage(RUSAGE_SELF, &u) == 0 ? (uint64_t)u.ru_maxrss * 1024 : 0;
}

static int write_file(const char *folder, const char *name, const struct buf *text, struct err *e)
{
	struct sink s;
	int rc = sink_open(&s, folder, name, SINK_SHARED, e);

	if (rc != 0)
		return rc;
	(void)fwrite(text->base, 1, text->len, s.f);
	return sink_close(&s, e);
}

/* ---- the picture ---- */

/* gnuplot's blocks of data: every point, or evenly so many, and always the last. */
static size_t print_losses(struct buf *out, const struct curve *c)
{
	size_t step = c->n / DRAWN_MAX + 1, n = 0;

	buf_printf(out, "$loss << END\n");
	for (size_t i = 0; i < c->n; i++) {
		if (((i + 1) % step != 0 && i + 1 != c->n) || !isfinite(c->at[i].loss))
			continue;
		buf_printf(out, "%zu %.9g\n", i + 1, c->at[i].loss);
		n++;
	}
	buf_printf(out, "END\n");
	return n;
}

static size_t print_valid(struct buf *out, const struct curve *c)
{
	size_t n = 0;

	buf_printf(out, "$valid << END\n");
	for (size_t i = 0; i < c->n; i++) {
		const struct kge_metrics *m = &c->at[i].valid;

		if (!c->at[i].validated)
			continue;
		buf_printf(out, "%zu %.6f %.6f %.6f\n", i + 1, m->mrr, m->hits1, m->hits10);
		n++;
	}
	buf_printf(out, "END\n");
	return n;
}

/* The position of the best validation: of equal ones the first, which was kept. */
static size_t best_valid(const struct curve *c)
{
	size_t best = 0;

	for (size_t i = 0; i < c->n; i++)
		if (c->at[i].validated &&
		    (best == 0 || c->at[i].valid.mrr > c->at[best - 1].valid.mrr))
			best = i + 1;
	return best;
}

/* In gnuplot's single quotes. */
static void print_title(struct buf *out, const struct report *r)
{
	const struct config *c = &r->work->folder.config;

	buf_printf(out, "set title '");
	for (const char *p = c->name; *p != '\0'; p++)
		buf_printf(out, *p == '\'' ? "''" : "%c", *p);
	buf_printf(out, ": %s, dim %u, seed %llu' noenhanced\n", c->model.kind, c->model.dim,
		   (unsigned long long)c->train.kge.seed);
}

/* Returns whether there is something to draw: a training that diverged may have no loss. */
static bool print_script(struct buf *out, const struct report *r)
{
	size_t n_loss, n_valid;

	buf_printf(out, "set terminal svg size 840,720 dynamic font 'sans-serif,14' "
			"background '#ffffff'\n"
			"set datafile missing 'nan'\nset grid lc '#dddddd'\nset border 3\n"
			"set tics nomirror out\nset lmargin 13\nset rmargin 3\n");
	n_loss = print_losses(out, r->curve);
	n_valid = print_valid(out, r->curve);
	buf_printf(out, "set multiplot layout %d,1\nset xrange [0:%zu]\n",
		   n_loss > 0 && n_valid > 0 ? 2 : 1, r->curve->n);
	print_title(out, r);
	if (n_loss > 0)
		buf_printf(out, "set ylabel 'loss on train'\nset key off\n"
				"plot $loss using 1:2 with lines lw 2 lc '#0072b2'\nunset title\n");
	if (n_valid == 0)
		return n_loss > 0;
	buf_printf(out,
		   "set xlabel 'epochs'\nset ylabel 'valid, %s protocol' noenhanced\n"
		   "set key outside top center horizontal\nset yrange [0:*]\n"
		   "set arrow from %zu, graph 0 to %zu, graph 1 nohead dt 2 lc '#888888'\n"
		   "plot $valid using 1:4 title 'Hits\\@10' with linespoints lw 2 pt 7 ps 0.4 lc "
		   "'#009e73', '' using 1:2 title 'MRR' with linespoints lw 2 pt 7 ps 0.4 lc "
		   "'#0072b2', '' using 1:3 title 'Hits\\@1' with linespoints lw 2 pt 7 ps 0.4 lc "
		   "'#d55e00', NaN title 'best MRR' with lines dt 2 lc '#888888'\n",
		   r->work->folder.config.eval.protocol, best_valid(r->curve),
		   best_valid(r->curve));
	return true;
}

static int draw_picture(const struct lab_out *notes, const char *folder, const struct report *r,
			bool *drawn, struct err *e)
{
	static const char *const gnuplot[] = { "gnuplot", "-", NULL };
	struct buf script = { 0 }, picture = { 0 };
	struct err why = { 0 };
	bool has_points = print_script(&script, r);
	int rc = has_points ? child_filter(gnuplot, &script, &picture, &why)
			    : err_set(&why, ERR_FAIL, "no loss is finite");
	*drawn = rc == 0 && picture.len > 0;
	if (*drawn)
		rc = write_file(folder, "curves.svg", &picture, e);
	else
		lab_note(notes, "No picture: %s; curves.tsv holds the figures%s\n",
			 rc != 0 ? why.text : "gnuplot drew nothing",
			 !has_points ? "" : " (Debian: gnuplot-nox)");
	buf_release(&script);
	buf_release(&picture);
	return *drawn ? rc : 0;
}

/* ---- the text ---- */

static void row(struct table *t, const char *what, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void row(struct table *t, const char *what, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	table_add(t, "%s", what);
	table_add(t, "%s", text);
}

static void add_result(struct table *t, const struct report *r)
{
	char digest[65];

	row(t, "ended", "%s", r->ending);
	row(t, "epochs trained", "%zu", r->curve->n);
	if (!r->has_best)
		return;
	row(t, "best MRR on valid", "%.4f", r->score);
	if (!isnan(r->floor))
		row(t, "MRR on valid by counting", "%.4f%s", r->floor,
		    r->score < r->floor ? ", which is better" : "");
	row(t, "best epoch", "%llu", (unsigned long long)r->epochs_best);
	row(t, "improved", "%u times", r->improved);
	row(t, "digest of the tables", "%s", sodium_bin2hex(digest, sizeof(digest), r->digest, 32));
}

static void add_graph(struct table *t, const struct report *r)
{
	const struct graph *g = r->work->graph;
	char hex[2 * STORE_DIGEST + 1];

	row(t, "entities", "%u", graph_vocab_count(g->entities));
	row(t, "relations", "%u", graph_vocab_count(g->relations));
	row(t, "train, valid, test triples", "%zu, %zu, %zu", g->split[GRAPH_TRAIN].n,
	    g->split[GRAPH_VALID].n, r->n_test);
	row(t, "digest of the graph", "%s",
	    sodium_bin2hex(hex, sizeof(hex), r->graph_digest, STORE_DIGEST));
}

static void add_costs(struct table *t, const struct report *r)
{
	const struct kge_train_config *c = &r->work->folder.config.train.kge;

	row(t, "seconds an epoch (median)", "%.4f", curve_median_seconds(r->curve));
	row(t, "peak memory", "%.1f MiB", (double)report_peak_bytes() / (1 << 20));
	row(t, "threads", "%u", c->threads);
	row(t, "arithmetic", "%s, fkge %s", kge_arithmetic(c->precision == KGE_BFLOAT16),
	    FKGE_VERSION);
}

static void print_report(struct buf *out, const struct report *r, bool drawn)
{
	const struct config *c = &r->work->folder.config;
	struct kge_protocol p = lab_work_valid_protocol(c);
	char protocol[WORK_PROTOCOL_TEXT];
	struct table t;

	lab_work_protocol_text(&p, protocol);
	table_init(&t, 2);
	row(&t, "training", "%s", c->name);
	add_result(&t, r);
	row(&t, "protocol on valid", "%s", protocol);
	row(&t, "valid triples looked at",
	    c->eval.valid_limit > 0 ? "at most %u, by the seed" : "all", c->eval.valid_limit);
	row(&t, "seed", "%llu", (unsigned long long)c->train.kge.seed);
	add_graph(&t, r);
	add_costs(&t, r);
	table_print(&t, out);
	table_release(&t);
	if (drawn)
		buf_printf(out, "\n![loss on train, ranks on valid](curves.svg)\n");
	buf_printf(out, "\nEach epoch stands in curves.tsv.  Nothing of test was read.  "
			"Settings:\n\n```yaml\n");
	config_print_section(c, "model", out);
	config_print_section(c, "train", out);
	config_print_section(c, "eval", out);
	buf_printf(out, "```\n");
}

int report_write(const struct lab_out *notes, const char *folder, const struct report *r,
		 struct err *e)
{
	struct buf curves = { 0 }, text = { 0 };
	bool drawn = false;
	int rc = file_make_folder(folder, 0755, e);

	curve_print(r->curve, &curves);
	if (rc == 0)
		rc = write_file(folder, "curves.tsv", &curves, e);
	if (rc == 0)
		rc = draw_picture(notes, folder, r, &drawn, e);
	print_report(&text, r, drawn);
	if (rc == 0)
		rc = write_file(folder, "report.md", &text, e);
	buf_release(&curves);
	buf_release(&text);
	return rc;
}

/* lab/experiment_figures.c - figures of an experiment's records, and of papers, for its tables. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "lab/experiment_show.h"

enum { CSV_FIELDS_MAX = 12 };

const json_t *experiment_record_of(const struct show *s, size_t variant, size_t seed)
{
	return s->record[variant * s->x->n_seeds + seed];
}

double experiment_number(const json_t *j, const char *a, const char *b)
{
	const json_t *at = json_object_get(j, a);

	if (b != NULL)
		at = json_object_get(at, b);
	return json_is_number(at) ? json_number_value(at) : (double)NAN;
}

/* ---- mean and spread over the seeds ---- */

struct spread experiment_spread_in(const struct show *s, size_t variant, const char *under,
				   const char *a, const char *b)
{
	struct spread out = { 0 };
	double x[EXPERIMENT_SEEDS_MAX], squares = 0;

	for (size_t k = 0; k < s->x->n_seeds; k++) {
		const json_t *r = experiment_record_of(s, variant, k);

		if (r != NULL && under != NULL)
			r = json_object_get(r, under);
		if (r != NULL)
			out.mean += x[out.n++] = experiment_number(r, a, b);
	}
	if (out.n == 0)
		return out;
	out.mean /= (double)out.n;
	for (size_t k = 0; k < out.n; k++)
		squares += pow(x[k] - out.mean, 2);
	out.deviation = out.n > 1 ? sqrt(squares / (double)(out.n - 1)) : 0;
	return out;
}

void experiment_add_spread(struct table *t, const struct spread *p, int digits)
{
	if (p->n == 0)
		table_add(t, "-");
	else if (p->n == 1)
		table_add(t, "%.*f", digits, p->mean);
	else
		table_add(t, "%.*f ± %.*f", digits, p->mean, digits, p->deviation);
}

/* How far it is where none is over; free() it. */
static char *how_far(const struct show *s, size_t v)
{
	json_int_t most = -1;

	for (size_t k = 0; k < s->x->n_seeds; k++) {
		json_t *head = experiment_under_way(s->x, &s->x->at[v], s->out, s->x->seeds[k]);
		json_int_t done =
			head == NULL ? -1 : json_integer_value(json_object_get(head, "done"));

		most = done > most ? done : most;
		json_decref(head);
	}
	if (most > 0)
		return mem_printf("under way, round %lld", (long long)most);
	return mem_strdup(most == 0 ? "under way" : s->strays[v] > 0 ? "none" : "not run");
}

void experiment_add_runs(struct table *t, const struct show *s, size_t v, size_t n)
{
	char *there = n > 0 ? mem_printf("%zu", n) : how_far(s, v);
	char *other = s->other[v] > 0 ? mem_printf(", %zu of other settings", s->other[v])
				      : mem_strdup("");
	char *strays = s->strays[v] > 0 ? mem_printf(", %zu of other data left out", s->strays[v])
					: mem_strdup("");

	table_add(t, "%s%s%s", there, other, strays);
	free(there);
	free(other);
	free(strays);
}

/* ---- CSV ---- */

/* In quotes where it has what ends a field, a quote in it twice. */
static void add_field(struct buf *out, const char *text)
{
	if (strpbrk(text, ",\"\r\n") == NULL) {
		buf_printf(out, "%s", text);
		return;
	}
	buf_printf(out, "\"");
	for (; *text != '\0'; text++) {
		if (*text == '"')
			buf_add(out, "\"", 1);
		buf_add(out, text, 1);
	}
	buf_printf(out, "\"");
}

void experiment_begin_csv(struct buf *out, const struct show *s, const json_t *record,
			  const char *agent)
{
	add_field(out, s->x->name);
	buf_printf(out, ",%s,%lld,", json_string_value(json_object_get(record, "variant")),
		   (long long)json_integer_value(json_object_get(record, "seed")));
	add_field(out, agent);
	buf_printf(out, ",");
}

/* ---- figures of the papers ---- */

/* Splits one line of CSV in place; returns how many fields. */
static size_t split_csv(char *line, char *field[CSV_FIELDS_MAX])
{
	size_t n = 0;
	char *from = line;

	while (n < CSV_FIELDS_MAX) {
		bool quoted = *from == '"';
		char *end = from += quoted;

		while (*end != '\0' && (quoted ? *end != '"' : *end != ','))
			end++;
		field[n++] = from;
		if (quoted && *end == '"')
			*end++ = '\0';
		if (*end != ',')
			return *end = '\0', n;
		*end = '\0';
		from = end + 1;
	}
	return n;
}

struct published {
	const char *dataset, *model, *method, *metric;
	uint32_t clients; /* 0: any */
	double value;	  /* out; NAN */
};

/* paper,table,dataset,clients,kge_model,method,metric,value,unit,... */
static void match_line(char *line, struct published *p)
{
	char *f[CSV_FIELDS_MAX];
	size_t n = split_csv(line, f);

	if (n < 9 || strcasecmp(f[2], p->dataset) != 0 || strcasecmp(f[4], p->model) != 0 ||
	    strcasecmp(f[5], p->method) != 0 || strcasecmp(f[6], p->metric) != 0 ||
	    (p->clients > 0 && strtoul(f[3], NULL, 10) != p->clients))
		return;
	p->value = strtod(f[7], NULL) / (strcmp(f[8], "percent") == 0 ? 100 : 1);
}

const char *experiment_model_of(const struct exp_variant *v)
{
	return v->kind == EXP_ENCODERS ? encode_kind_words[v->queries.encoder]
				       : v->config.model.kind;
}

double experiment_published(const struct show *s, const struct exp_variant *v, const char *method,
			    const char *metric)
{
	struct published p = { s->x->dataset, experiment_model_of(v), method,
			       metric,	      s->x->clients,	      (double)NAN };
	char *text, *line, *rest;

	if (s->published.len == 0)
		return p.value;
	text = mem_copy(s->published.base, s->published.len + 1);
	text[s->published.len] = '\0';
	for (line = strtok_r(text, "\r\n", &rest); line != NULL && isnan(p.value);
	     line = strtok_r(NULL, "\r\n", &rest))
		match_line(line, &p);
	free(text);
	return p.value;
}

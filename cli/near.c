#include "cli/near.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"

enum { NEAR_NAMES = 3, SHOWN = 80 };

size_t near_distance(const char *a, const char *b)
{
	size_t n = strlen(b), row[NEAR_WORD_MAX + 1];

	if (n > NEAR_WORD_MAX)
		return n;
	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 1; *a != '\0'; a++, i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			size_t best = diagonal + (tolower((unsigned char)*a) !=
						  tolower((unsigned char)b[j - 1]));

			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[n];
}

/* ---- names ---- */

struct like {
	size_t cost, len;
	const char *name;
};

/* The last part of a URI or of a name with a prefix; of anything else, all of it. */
static const char *local_part(const char *name)
{
	static const char *const ends = "/#:";
	const char *at = name + strcspn(name, ends), *last = name;

	for (; *at != '\0'; at += strcspn(at, ends))
		last = ++at;
	return *last != '\0' ? last : name;
}

/* Lengths alone may say that it is too far. */
static size_t letters_between(const char *a, const char *b, size_t limit)
{
	size_t n = strlen(a), m = strlen(b);

	if ((n > m ? n - m : m - n) > limit || m > NEAR_WORD_MAX)
		return limit + 1;
	return near_distance(a, b);
}

static size_t cost_of(const char *wanted, const char *name, size_t limit)
{
	size_t whole, local;

	if (strcasecmp(wanted, name) == 0 || strcasecmp(local_part(wanted), local_part(name)) == 0)
		return 0;
	if (strcasestr(name, wanted) != NULL)
		return 1;
	whole = letters_between(wanted, name, limit);
	local = letters_between(local_part(wanted), local_part(name), limit);
	return whole < local ? whole : local;
}

static bool nearer(const struct like *a, const struct like *b)
{
	return a->cost != b->cost ? a->cost < b->cost : a->len < b->len;
}

static void keep_nearest(struct like *best, size_t *n, struct like x)
{
	size_t at = *n;

	while (at > 0 && nearer(&x, &best[at - 1]))
		at--;
	if (at == NEAR_NAMES)
		return;
	*n += *n < NEAR_NAMES;
	memmove(best + at + 1, best + at, (*n - at - 1) * sizeof(*best));
	best[at] = x;
}

static size_t nearest_names(const struct graph_vocab *v, const char *wanted, struct like *best)
{
	size_t limit = strlen(local_part(wanted)) / 3, n = 0;

	if (limit < 1)
		limit = 1;
	for (uint32_t id = 0; id < graph_vocab_count(v); id++) {
		struct like x = { .name = graph_vocab_name(v, id, &x.len) };

		x.cost = cost_of(wanted, x.name, limit);
		if (x.cost <= limit)
			keep_nearest(best, &n, x);
	}
	return n;
}

int near_find(const struct graph_vocab *v, const char *what, const char *name, uint32_t *id,
	      struct err *e)
{
	struct like best[NEAR_NAMES + 1];
	struct buf words = { 0 };
	size_t n;

	*id = graph_vocab_find(v, name, strlen(name));
	if (*id != GRAPH_NONE)
		return 0;
	n = nearest_names(v, name, best);
	buf_printf(&words, "%s", n > 0 ? "; did you mean " : "");
	for (size_t i = 0; i < n; i++) /* of long names the end: there they differ */
		buf_printf(&words, "%s'%s%s'", i > 0 ? ", " : "", best[i].len > SHOWN ? "..." : "",
			   best[i].name + (best[i].len > SHOWN ? best[i].len - SHOWN : 0));
	err_set(e, ERR_NOTFOUND, "the graph has no %s '%.150s'%s%s", what, name,
		(const char *)words.base, n > 0 ? "?" : "");
	buf_release(&words);
	return ERR_NOTFOUND;
}

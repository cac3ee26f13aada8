/* query/pattern.c - the query types of the literature: building them, finding them out. */
#include <assert.h>
#include <string.h>

#include "query/tree.h"

static const struct {
	const char *name, *shape;
} patterns[QUERY_PATTERNS] = {
	[QUERY_1P] = { "1p", "ep" },	     [QUERY_2P] = { "2p", "epp" },
	[QUERY_3P] = { "3p", "eppp" },	     [QUERY_2I] = { "2i", "epepi" },
	[QUERY_3I] = { "3i", "epepepI" },    [QUERY_IP] = { "ip", "epepip" },
	[QUERY_PI] = { "pi", "eppepi" },     [QUERY_2U] = { "2u", "epepu" },
	[QUERY_UP] = { "up", "epepup" },     [QUERY_2IN] = { "2in", "epepni" },
	[QUERY_3IN] = { "3in", "epepepnI" }, [QUERY_INP] = { "inp", "epepnip" },
	[QUERY_PIN] = { "pin", "eppepni" },  [QUERY_PNI] = { "pni", "eppnepi" },
};
enum { SHAPE_MAX = 8 };

const char *const query_pattern_words[] = {
	"1p", "2p",  "3p",  "2i",  "3i",  "ip",	 "pi",	  "2u",
	"up", "2in", "3in", "inp", "pin", "pni", "other", NULL
};

const char *query_pattern_shape(enum query_pattern p)
{
	assert(p < QUERY_PATTERNS);
	return patterns[p].shape;
}

static uint32_t count_letters(enum query_pattern p, char letter)
{
	uint32_t n = 0;

	for (const char *s = query_pattern_shape(p); *s != '\0'; s++)
		n += *s == letter;
	return n;
}

uint32_t query_pattern_anchors(enum query_pattern p)
{
	return count_letters(p, 'e');
}

uint32_t query_pattern_steps(enum query_pattern p)
{
	return count_letters(p, 'p');
}

static struct query_node node_of(char letter)
{
	switch (letter) {
	case 'e':
		return (struct query_node){ .kind = QUERY_ANCHOR };
	case 'p':
		return (struct query_node){ .kind = QUERY_STEP };
	case 'n':
		return (struct query_node){ .kind = QUERY_NOT };
	case 'u':
		return (struct query_node){ .kind = QUERY_OR, .children = 2 };
	default:
		return (struct query_node){ .kind = QUERY_AND, .children = letter == 'I' ? 3 : 2 };
	}
}

void query_pattern_build(struct query_tree *t, enum query_pattern p, const uint32_t *anchors,
			 const struct query_step *steps)
{
	t->n = 0;
	for (const char *s = query_pattern_shape(p); *s != '\0'; s++) {
		struct query_node node = node_of(*s);
		int rc;

		if (node.kind == QUERY_ANCHOR)
			node.id = *anchors++;
		if (node.kind == QUERY_STEP) {
			node.id = steps->rel;
			node.inverse = steps++->inverse;
		}
		rc = query_tree_push(t, node, NULL);
		assert(rc == 0);
		(void)rc;
	}
}

/* The tree with all names alike, its branches in one order. */
static void strip_names(struct query_tree *t)
{
	for (uint32_t i = 0; i < t->n; i++) {
		t->at[i].id = 0;
		t->at[i].inverse = false;
	}
	query_tree_sort(t);
}

enum query_pattern query_pattern_of(const struct query_tree *t)
{
	static const uint32_t anchors[QUERY_ANCHORS_MAX];
	static const struct query_step steps[QUERY_STEPS_MAX];
	struct query_tree tree, pattern;

	if (t->n > SHAPE_MAX)
		return QUERY_OTHER;
	tree = *t;
	strip_names(&tree);
	for (int p = 0; p < QUERY_PATTERNS; p++) {
		query_pattern_build(&pattern, (enum query_pattern)p, anchors, steps);
		query_tree_sort(&pattern);
		if (query_tree_compare(&tree, &pattern) == 0)
			return (enum query_pattern)p;
	}
	return QUERY_OTHER;
}

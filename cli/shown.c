#include "cli/shown.h"

#include <string.h>

#include "cli/near.h"
#include "store/json.h"

const char *shown_name(const struct graph_words *words, const char *name, struct buf *out)
{
	const char *label = graph_words_label(words, name), *text;
	struct buf brief = { 0 };

	if (label == NULL)
		return graph_words_short(words, name, out);
	text = graph_words_short(words, name, &brief);
	buf_clear(out);
	buf_printf(out, "%s  \"%s\"", text, label);
	buf_release(&brief);
	return (const char *)out->base;
}

void shown_put_label(json_t *j, const struct graph_words *words, const char *name)
{
	const char *label = graph_words_label(words, name);

	if (label != NULL)
		json_object_set_new(j, "label", store_json_of_text(label));
}

int shown_find(const struct graph_words *words, const struct graph_vocab *v, const char *what,
	       const char *name, uint32_t *id, struct err *e)
{
	struct buf whole = { 0 };
	bool own = graph_vocab_find(v, name, strlen(name)) != GRAPH_NONE;
	int rc = near_find(
		v, what,
		!own && graph_words_expand(words, name, &whole) ? (const char *)whole.base : name,
		id, e);

	buf_release(&whole);
	return rc;
}

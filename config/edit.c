/* config/edit.c - one value of agent.yaml changed, every other byte as the owner wrote it. */
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/mem.h"
#include "config/config.h"

/* libyaml counts characters, we count bytes. */
static size_t offset_of(const struct buf *text, const yaml_mark_t *m)
{
	size_t at = 0;

	for (size_t line = 0; line < m->line && at < text->len; at++)
		line += text->base[at] == '\n';
	for (size_t column = 0; column < m->column && at < text->len; column++)
		do
			at++;
		while (at < text->len && (text->base[at] & 0xc0) == 0x80);
	return at;
}

static void splice(struct buf *text, size_t at, size_t gone, const char *in)
{
	struct buf out = { 0 };

	buf_add(&out, text->base, at);
	buf_add(&out, in, strlen(in));
	buf_add(&out, text->base + at + gone, text->len - at - gone);
	buf_release(text);
	*text = out;
}

static void splice_line(struct buf *text, size_t at, size_t indent, const char *name,
			const char *value)
{
	char *line = mem_printf("%*s%s: %s\n", (int)indent, "", name, value);

	splice(text, at, 0, line);
	free(line);
}

static const yaml_node_pair_t *find_pair(yaml_document_t *doc, const yaml_node_t *map,
					 const char *name)
{
	for (const yaml_node_pair_t *p = map->data.mapping.pairs.start;
	     p < map->data.mapping.pairs.top; p++) {
		const yaml_node_t *key = yaml_document_get_node(doc, p->key);

		if (key->type == YAML_SCALAR_NODE &&
		    strcmp((const char *)key->data.scalar.value, name) == 0)
			return p;
	}
	return NULL;
}

static void end_line(struct buf *text)
{
	if (text->len > 0 && text->base[text->len - 1] != '\n')
		buf_add(text, "\n", 1);
}

static void append_section(struct buf *text, const char *section, const char *name,
			   const char *value)
{
	end_line(text);
	buf_printf(text, "\n%s:\n  %s: %s\n", section, name, value);
}

/* `train:` with nothing below it. */
static void fill_section(struct buf *text, const yaml_node_t *key, const char *name,
			 const char *value)
{
	size_t at = offset_of(text, &key->end_mark);

	while (at < text->len && text->base[at] != '\n')
		at++;
	if (at == text->len)
		end_line(text);
	splice_line(text, at + 1, key->start_mark.column + 2, name, value);
}

static void add_to_map(struct buf *text, yaml_document_t *doc, const yaml_node_t *map,
		       const char *name, const char *value)
{
	bool empty = map->data.mapping.pairs.start == map->data.mapping.pairs.top;
	const yaml_node_t *first;
	char *in;

	if (map->data.mapping.style == YAML_FLOW_MAPPING_STYLE || empty) {
		in = mem_printf("%s: %s%s", name, value, empty ? "" : ", ");
		splice(text, offset_of(text, &map->start_mark) + 1, 0, in);
		free(in);
		return;
	}
	first = yaml_document_get_node(doc, map->data.mapping.pairs.start->key);
	splice_line(text, offset_of(text, &first->start_mark) - first->start_mark.column,
		    first->start_mark.column, name, value);
}

static int edit(struct buf *text, yaml_document_t *doc, const char *section, const char *name,
		const char *value, struct err *e)
{
	const yaml_node_t *root = yaml_document_get_root_node(doc), *map, *old;
	const yaml_node_pair_t *p;

	if (root == NULL)
		return append_section(text, section, name, value), 0;
	if (root->type != YAML_MAPPING_NODE || root->data.mapping.style == YAML_FLOW_MAPPING_STYLE)
		return err_set(e, ERR_USAGE, "write the sections on lines of their own");
	p = find_pair(doc, root, section);
	if (p == NULL)
		return append_section(text, section, name, value), 0;
	map = yaml_document_get_node(doc, p->value);
	if (map->type != YAML_MAPPING_NODE)
		return fill_section(text, yaml_document_get_node(doc, p->key), name, value), 0;
	p = find_pair(doc, map, name);
	if (p == NULL)
		return add_to_map(text, doc, map, name, value), 0;
	old = yaml_document_get_node(doc, p->value);
	splice(text, offset_of(text, &old->start_mark),
	       offset_of(text, &old->end_mark) - offset_of(text, &old->start_mark), value);
	return 0;
}

int config_edit(struct buf *text, const char *section, const char *name, const char *value,
		const char *where, struct err *e)
{
	struct config check;
	yaml_parser_t parser;
	yaml_document_t doc;
	int rc = config_parse(&check, (const char *)text->base, text->len, where, e);

	if (rc != 0) /* what cannot be read is not written to */
		return rc;
	config_release(&check);
	if (!yaml_parser_initialize(&parser))
		abort();
	yaml_parser_set_input_string(&parser, text->base, text->len);
	if (!yaml_parser_load(&parser, &doc))
		abort(); /* it was read above */
	rc = edit(text, &doc, section, name, value, e);
	yaml_document_delete(&doc);
	yaml_parser_delete(&parser);
	if (rc != 0)
		return err_prefix(e, "%s", where);
	rc = config_parse(&check, (const char *)text->base, text->len, where, e);
	if (rc == 0)
		config_release(&check);
	return rc;
}

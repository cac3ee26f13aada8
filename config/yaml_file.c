#include "config/yaml_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int parse_failed(const yaml_parser_t *parser, const char *where, struct err *e)
{
	return err_set(e, ERR_USAGE, "%s:%zu: not YAML: %s", where, parser->problem_mark.line + 1,
		       parser->problem != NULL ? parser->problem : "unreadable");
}

/* Text after the first document would be read by nobody. */
static int check_end(yaml_parser_t *parser, const char *where, struct err *e)
{
	yaml_document_t next;
	const yaml_node_t *root;
	int rc = 0;

	if (!yaml_parser_load(parser, &next))
		return parse_failed(parser, where, e);
	root = yaml_document_get_root_node(&next);
	if (root != NULL)
		rc = err_set(e, ERR_USAGE, "%s:%zu: a second document: write one", where,
			     root->start_mark.line + 1);
	yaml_document_delete(&next);
	return rc;
}

enum { KEYS_MAX = 1000 }; /* each is compared with all before it */

/* Of two equal keys the earlier or the later one would be read: nothing says which. */
static int check_map(struct yaml_file *f, const yaml_node_t *map)
{
	const yaml_node_pair_t *p = map->data.mapping.pairs.start;

	if (map->data.mapping.pairs.top - p > KEYS_MAX)
		return yaml_file_fail(f, map, "more than %d keys here", KEYS_MAX);
	for (; p < map->data.mapping.pairs.top; p++) {
		const yaml_node_t *name = yaml_file_node(f, p->key);

		if (yaml_file_find(f, map, yaml_file_text(name)) != yaml_file_node(f, p->value))
			return yaml_file_fail(f, name, "%s is given twice; remove one",
					      yaml_file_text(name));
	}
	return 0;
}

static int check_keys(struct yaml_file *f)
{
	const yaml_node_t *n = f->doc.nodes.start;
	int rc = 0;

	for (; rc == 0 && n < f->doc.nodes.top; n++)
		if (n->type == YAML_MAPPING_NODE)
			rc = check_map(f, n);
	return rc;
}

int yaml_file_open(struct yaml_file *f, const void *text, size_t len, const char *where,
		   struct err *e)
{
	yaml_parser_t parser;
	int rc = 0;

	f->where = where;
	f->e = e;
	if (!yaml_parser_initialize(&parser))
		abort();
	yaml_parser_set_input_string(&parser, len > 0 ? text : "", len); /* it takes no NULL */
	if (!yaml_parser_load(&parser, &f->doc)) {
		rc = parse_failed(&parser, where, e);
	} else {
		rc = check_end(&parser, where, e);
		if (rc == 0)
			rc = check_keys(f);
		if (rc != 0)
			yaml_document_delete(&f->doc);
	}
	yaml_parser_delete(&parser);
	return rc;
}

void yaml_file_close(struct yaml_file *f)
{
	yaml_document_delete(&f->doc);
}

int yaml_file_fail(const struct yaml_file *f, const yaml_node_t *at, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(f->e, ERR_USAGE, "%s:%zu: %s", f->where, at->start_mark.line + 1, text);
}

const yaml_node_t *yaml_file_root(struct yaml_file *f)
{
	return yaml_document_get_root_node(&f->doc);
}

const yaml_node_t *yaml_file_node(struct yaml_file *f, int id)
{
	return yaml_document_get_node(&f->doc, id);
}

const char *yaml_file_scalar(const yaml_node_t *n)
{
	const char *text = (const char *)n->data.scalar.value;

	if (n->type != YAML_SCALAR_NODE || strlen(text) != n->data.scalar.length)
		return NULL;
	return text;
}

const char *yaml_file_text(const yaml_node_t *n)
{
	const char *text = yaml_file_scalar(n);

	return text != NULL ? text : "";
}

const yaml_node_t *yaml_file_find(struct yaml_file *f, const yaml_node_t *map, const char *key)
{
	for (const yaml_node_pair_t *p = map->data.mapping.pairs.start;
	     p < map->data.mapping.pairs.top; p++)
		if (strcmp(yaml_file_text(yaml_file_node(f, p->key)), key) == 0)
			return yaml_file_node(f, p->value);
	return NULL;
}

int yaml_file_each(struct yaml_file *f, const yaml_node_t *map, const char *what,
		   yaml_file_pair_fn *fn, void *ctx)
{
	int rc = 0;

	if (map->type != YAML_MAPPING_NODE)
		return yaml_file_fail(f, map, "%s: write lines of the form key: value", what);
	for (const yaml_node_pair_t *p = map->data.mapping.pairs.start;
	     rc == 0 && p < map->data.mapping.pairs.top; p++)
		rc = fn(f, ctx, yaml_file_node(f, p->key), yaml_file_node(f, p->value));
	return rc;
}

int yaml_file_count(const struct yaml_file *f, const yaml_node_t *n, const char *name, uint64_t min,
		    uint64_t max, uint64_t *out)
{
	const char *text = yaml_file_text(n);
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	if (*text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && *out >= min &&
	    *out <= max)
		return 0;
	return yaml_file_fail(f, n,
			      "%s: '%.100s' is not allowed here; allowed: a whole number from %llu "
			      "to %llu",
			      name, text, (unsigned long long)min, (unsigned long long)max);
}

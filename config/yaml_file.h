/* config/yaml_file.h - a YAML file of settings, read with errors that name file and line: the one
 * reader of YAML.
 *
 * A reader's own struct begins with a struct yaml_file, so that what is called for each
 * pair can find it. */
#ifndef CONFIG_YAML_FILE_H
#define CONFIG_YAML_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <yaml.h>

#include "base/err.h"

struct yaml_file {
	yaml_document_t doc;
	const char *where; /* the file's name, for errors */
	struct err *e;
};

/* ERR_USAGE when it is no YAML; then there is nothing to close. */
MUST_CHECK int yaml_file_open(struct yaml_file *f, const void *text, size_t len, const char *where,
			      struct err *e);
void yaml_file_close(struct yaml_file *f);

/* ERR_USAGE with the line of this node. */
int yaml_file_fail(const struct yaml_file *f, const yaml_node_t *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
const yaml_node_t *yaml_file_root(struct yaml_file *f); /* NULL: the file is empty */
const yaml_node_t *yaml_file_node(struct yaml_file *f, int id);
/* A scalar's text, or NULL if it is none or holds a NUL. */
const char *yaml_file_scalar(const yaml_node_t *n);
/* "" for a node that is no such scalar: no key and no value is called that. */
const char *yaml_file_text(const yaml_node_t *n);
/* The value of a key of a map, or NULL. */
const yaml_node_t *yaml_file_find(struct yaml_file *f, const yaml_node_t *map, const char *key);

typedef int yaml_file_pair_fn(struct yaml_file *f, void *ctx, const yaml_node_t *name,
			      const yaml_node_t *value);
/* Calls fn for each pair of a map, `what` being what it is called, until one fails. */
MUST_CHECK int yaml_file_each(struct yaml_file *f, const yaml_node_t *map, const char *what,
			      yaml_file_pair_fn *fn, void *ctx);
/* A whole number within limits, or the error with the key's name. */
int yaml_file_count(const struct yaml_file *f, const yaml_node_t *n, const char *name, uint64_t min,
		    uint64_t max, uint64_t *out);

#endif

/* config/read.c - agent.yaml read by the table. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/config.h"
#include "config/table_internal.h"
#include "config/yaml_file.h"

enum { FILE_MAX = 1 << 20 };

struct reader {
	struct yaml_file f; /* first: yaml_file_each() gives it back */
	struct config *c;
	/* Of section rounds: what may be constants, when the method is known. */
	const yaml_node_t *constant[FED_VALUES_MAX][2]; /* name, value */
	size_t n_constants;
};

static int fail_unknown(struct reader *r, const char *section, const yaml_node_t *at,
			const char *name)
{
	struct buf known = { 0 };

	config_key_known(&known, r->c, section);
	yaml_file_fail(&r->f, at, "unknown key '%.100s'%s%s; known are: %s", name,
		       section != NULL ? " in " : "", section != NULL ? section : "",
		       (const char *)known.base);
	buf_release(&known);
	return ERR_USAGE;
}

/* A constant stays in the file when the method changes. */
static int fail_constant(struct reader *r, const yaml_node_t *at, const char *name)
{
	if (!config_key_is_constant(name))
		return fail_unknown(r, "rounds", at, name);
	return yaml_file_fail(&r->f, at,
			      "rounds.%s is a constant of other methods, %s has none of this name; "
			      "take it out first: fkge config unset rounds.%s",
			      name, r->c->rounds.method, name);
}

static int fail_value(struct reader *r, const struct config_key *k, const yaml_node_t *at)
{
	const char *text = yaml_file_scalar(at);
	struct buf allowed = { 0 };

	config_key_allowed(&allowed, k);
	yaml_file_fail(&r->f, at, "%s%s%s: '%.100s' is not allowed here; allowed: %s",
		       k->section != NULL ? k->section : "", k->section != NULL ? "." : "", k->name,
		       text != NULL		      ? text
		       : at->type == YAML_SCALAR_NODE ? (const char *)at->data.scalar.value
						      : "a list or map",
		       (const char *)allowed.base);
	buf_release(&allowed);
	return ERR_USAGE;
}

static int read_key(struct reader *r, const struct config_key *k, const yaml_node_t *name,
		    const yaml_node_t *value)
{
	uint32_t *line = &r->c->source->line[k - config_keys];

	if (*line != 0) /* under two names: yaml_file_open() has seen to the rest */
		return yaml_file_fail(&r->f, name, "%s is given twice, as %s, too; remove one",
				      k->name, config_old_name(k->section, k->name));
	*line = (uint32_t)name->start_mark.line + 1;
	if (yaml_file_scalar(value) == NULL ||
	    config_key_set(r->c, k, yaml_file_scalar(value)) != 0)
		return fail_value(r, k, value);
	return 0;
}

static const struct config_key *find_renamed(struct reader *r, const char *section,
					     const char *text, const yaml_node_t *name)
{
	const struct config_old_key *old = config_old_key(section, text);

	if (old == NULL)
		return NULL;
	log_warn("%s:%zu: %s.%s is called %s.%s now: the old name is read, and will not be for "
		 "ever",
		 r->f.where, name->start_mark.line + 1, section, old->old, section, old->name);
	return config_key_find(section, old->name);
}

static int read_pair(struct yaml_file *f, void *ctx, const yaml_node_t *name,
		     const yaml_node_t *value)
{
	struct reader *r = (struct reader *)f;
	const char *section = ctx, *text = yaml_file_scalar(name);
	const struct config_key *k = text != NULL ? config_key_find(section, text) : NULL;
	const char *inner = text != NULL ? config_key_section(section, text) : NULL;

	if (k == NULL && text != NULL)
		k = find_renamed(r, section, text, name);
	if (k != NULL)
		return read_key(r, k, name, value);
	if (inner == NULL && text != NULL && config_same_section(section, "rounds") &&
	    r->n_constants < FED_VALUES_MAX) {
		r->constant[r->n_constants][0] = name;
		r->constant[r->n_constants++][1] = value;
		return 0;
	}
	if (inner == NULL)
		return fail_unknown(r, section, name, text != NULL ? text : "(not a word)");
	if (value->type == YAML_SCALAR_NODE && value->data.scalar.length == 0)
		return 0; /* `train:` with all its keys commented out */
	if (value->type != YAML_MAPPING_NODE)
		return yaml_file_fail(f, value, "%s is a section: write its keys below it", text);
	return yaml_file_each(f, value, inner, read_pair, (void *)(uintptr_t)inner);
}

static int read_constant(struct reader *r, const yaml_node_t *name, const yaml_node_t *value)
{
	struct config_key k;

	if (!config_key_find_constant(r->c, yaml_file_text(name), &k))
		return fail_constant(r, name, yaml_file_text(name));
	if (yaml_file_scalar(value) == NULL ||
	    config_key_set(r->c, &k, yaml_file_scalar(value)) != 0)
		return fail_value(r, &k, value);
	return 0;
}

static int read_document(struct reader *r)
{
	const yaml_node_t *root = yaml_file_root(&r->f);
	int rc;

	if (root == NULL || (root->type == YAML_SCALAR_NODE && root->data.scalar.length == 0))
		return 0; /* an empty file: all defaults */
	if (root->type != YAML_MAPPING_NODE)
		return yaml_file_fail(&r->f, root, "expected lines of the form key: value");
	rc = yaml_file_each(&r->f, root, "agent.yaml", read_pair, NULL);
	for (size_t i = 0; i < r->n_constants && rc == 0; i++)
		rc = read_constant(r, r->constant[i][0], r->constant[i][1]);
	return rc;
}

int config_parse(struct config *c, const char *text, size_t len, const char *where, struct err *e)
{
	struct reader r = { .c = c };
	int rc;

	config_init(c);
	c->source = mem_array(1, sizeof(*c->source));
	c->source->where = mem_strdup(where);
	rc = yaml_file_open(&r.f, text, len, where, e);
	if (rc == 0) {
		rc = read_document(&r);
		yaml_file_close(&r.f);
	}
	config_fix_paper(c);
	if (rc == 0)
		rc = config_check_before_graph(c, where, e);
	if (rc != 0)
		config_release(c);
	return rc;
}

int config_load(struct config *c, const char *path, struct err *e)
{
	struct buf text = { 0 };
	int rc = file_read(path, FILE_MAX, &text, e);

	memset(c, 0, sizeof(*c));
	if (rc == 0)
		rc = config_parse(c, (const char *)text.base, text.len, path, e);
	buf_release(&text);
	return rc;
}

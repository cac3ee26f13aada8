#include "agent/reload.h"

#include <string.h>

#include "base/file.h"

enum { YAML_MAX = 1 << 20 };

static void note_difference(void *ctx, const struct config_difference *d)
{
	struct reload *r = ctx;

	json_array_append_new(
		d->live ? r->changed : r->waits,
		json_pack("{s:s, s:s, s:s}", "key", d->key, "was", d->was, "is", d->is));
}

static uint32_t relation_width(const struct config_model *m)
{
	return m->rel_dim > 0 ? m->rel_dim : m->dim;
}

/* A preset's choice is nothing that the owner has written. */
static int check_same_model(const struct config *now, const struct config *fresh, const char *path,
			    struct err *e)
{
	const struct config_model *m = &now->model, *next = &fresh->model;

	if (strcmp(next->kind, m->kind) == 0 && next->dim == m->dim &&
	    relation_width(next) == relation_width(m))
		return 0;
	return err_set(e, ERR_USAGE,
		       "%s: model.kind, dim and rel_dim are those of the tables: %s %s of %u and "
		       "%u numbers, not %s of %u and %u; to change them: fkge stop, fkge train "
		       "--fresh",
		       path, config_who_says_model(fresh), next->kind, next->dim,
		       relation_width(next), m->kind, m->dim, relation_width(m));
}

int reload_read(struct reload *r, const struct config *now, const struct graph *g, const char *path,
		struct err *e)
{
	int rc;

	memset(r, 0, sizeof(*r));
	rc = file_read(path, YAML_MAX, &r->text, e);
	if (rc == 0)
		rc = config_parse(&r->fresh, (const char *)r->text.base, r->text.len, path, e);
	if (rc != 0)
		return buf_release(&r->text), rc;
	config_suit(&r->fresh, g);
	r->changed = json_array();
	r->waits = json_array();
	config_differ(now, &r->fresh, note_difference, r);
	rc = check_same_model(now, &r->fresh, path, e);
	if (rc != 0)
		reload_release(r);
	return rc;
}

int reload_take(const struct reload *r, struct config *now, const char *path, struct err *e)
{
	struct config was;
	int rc;

	config_init(&was);
	config_take_live(&was, now);
	config_take_live(now, &r->fresh);
	rc = config_check(now, path, e);
	if (rc != 0)
		config_take_live(now, &was);
	config_release(&was);
	return rc;
}

void reload_release(struct reload *r)
{
	buf_release(&r->text);
	config_release(&r->fresh);
	json_decref(r->changed);
	json_decref(r->waits);
	memset(r, 0, sizeof(*r));
}

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
	if (strcmp(r->fresh.model.kind, now->model.kind) == 0 &&
	    r->fresh.model.dim == now->model.dim)
		return 0;
	reload_release(r);
	return err_set(e, ERR_USAGE,
		       "%s: model.kind and model.dim are those of the tables; to change them: "
		       "fkge stop, fkge train --fresh",
		       path);
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

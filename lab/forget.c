#include "lab/forget.h"

#include <stdlib.h>
#include <string.h>

#include "agent/core/core.h"

void forget_init(struct forget *f, const struct config *c, const struct kge_train_config *trained,
		 enum kge_unlearn_variant v)
{
	*f = (struct forget){ .valid = lab_work_valid_protocol(c) };
	kge_unlearn_defaults(&f->config, trained, v);
	f->config.protocol = &f->valid;
	f->config.valid_limit = c->eval.valid_limit;
}

int forget_triples(struct forget *f, const struct graph *g, const uint32_t *positions, size_t n,
		   struct kge_emb *emb, struct kge_emb *global, const atomic_bool *cancel,
		   struct err *e)
{
	int rc = kge_unlearn_check(&f->config, e);

	return rc == 0 ? kge_unlearn(&f->config, g, positions, n, emb, global, &f->report, cancel)
		       : rc;
}

int forget_until(struct forget *f, const struct graph *g, const uint32_t *positions, size_t n,
		 const struct kge_unseen *unseen, uint32_t passes, double least_valid,
		 struct kge_emb *emb, struct kge_emb *global, struct kge_until_report *how,
		 const atomic_bool *cancel, struct err *e)
{
	struct kge_until_config until = { f->config, passes, least_valid };
	int rc = kge_unlearn_check(&f->config, e);

	if (rc == 0)
		rc = kge_unlearn_until(&until, g, positions, n, unseen, emb, global, how, cancel);
	f->report.interference_epochs = how->interference_epochs;
	f->report.decay_epochs = how->decay_epochs;
	return rc;
}

/* ---- what an agent in rounds has kept ---- */

static int find_latest(const struct work *w, struct store_checkpoint *latest, bool *found,
		       struct err *e)
{
	struct store_checkpoint *all = NULL;
	size_t n = 0;
	int rc = store_checkpoints(w->folder.store, &all, &n, e);

	*found = false;
	for (size_t i = 0; i < n && rc == 0; i++)
		if (all[i].kind == STORE_LATEST) {
			*latest = all[i];
			*found = true;
		}
	free(all);
	return rc;
}

static int read_meta(const struct work *w, const char *key, struct buf *out, struct err *e)
{
	struct err why = { 0 };
	int rc = store_meta(w->folder.store, key, out, &why);

	return rc == 0 || rc == ERR_NOTFOUND ? 0 : err_set(e, rc, "%s", why.text);
}

/* As the running agent will see it (agent/core/rounds_part.c). */
static int goes_on(const struct work *w, bool *on, struct err *e)
{
	struct store_checkpoint latest;
	struct buf record = { 0 };
	uint8_t beside[STORE_DIGEST];
	int rc = find_latest(w, &latest, on, e);

	if (rc != 0 || !*on || memcmp(latest.digest, w->info.digest, STORE_DIGEST) == 0)
		return rc;
	rc = read_meta(w, AGENT_META, &record, e);
	*on = rc == 0 && agent_meta_beside(record.base, record.len, beside) &&
	      memcmp(beside, w->info.digest, STORE_DIGEST) == 0;
	buf_release(&record);
	return rc;
}

/* One of another method or with other constants is of no use to the running agent either. */
static int load_part(struct fed_part **out, const struct work *w, struct err *e)
{
	struct fed_settings s;
	struct buf saved = { 0 };
	int rc = read_meta(w, AGENT_META_PART, &saved, e);

	config_fed_settings(&w->folder.config, &s);
	if (rc == 0 && saved.len > 0 && fed_part_new(out, &s, w->emb, 0, NULL) == 0 &&
	    (fed_global_table(*out) == NULL ||
	     fed_part_load(*out, saved.base, saved.len, NULL) != 0)) {
		fed_part_free(*out);
		*out = NULL;
	}
	buf_release(&saved);
	return rc;
}

int forget_open_part(struct fed_part **out, const struct work *w, struct err *e)
{
	bool on;
	int rc;

	*out = NULL;
	if (w->folder.config.federation.mode != (int)CONFIG_ROUNDS)
		return 0;
	rc = goes_on(w, &on, e);
	return rc == 0 && on ? load_part(out, w, e) : rc;
}

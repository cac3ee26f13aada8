#include "kge/mutual.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct kge_mutual {
	struct kge_trainer *t[2]; /* local, global */
	size_t n;
	struct kge_emb *local, *global;
	struct kge_emb seen; /* the global table, with the relations that it learns by */
	bool own_relations;
};

struct kge_mutual *kge_mutual_new(const struct kge_train_config *c, const struct graph *g,
				  struct kge_emb *local, struct kge_emb *global, bool own_relations)
{
	struct kge_mutual *m = mem_array(1, sizeof(*m));

	m->local = local;
	m->global = global;
	m->own_relations = own_relations;
	m->t[m->n++] = kge_trainer_new(c, g, local);
	if (global != NULL) {
		assert(own_relations || local->rel_floats == global->rel_floats);
		m->seen = *global;
		if (!own_relations)
			m->seen.rel = local->rel;
		m->t[m->n++] = kge_trainer_new(c, g, &m->seen);
	}
	kge_mutual_set_terms(m, NULL, NULL);
	return m;
}

void kge_mutual_free(struct kge_mutual *m)
{
	if (m == NULL)
		return;
	for (size_t i = 0; i < m->n; i++)
		kge_trainer_free(m->t[i]);
	free(m);
}

void kge_mutual_set_terms(struct kge_mutual *m, const struct kge_terms *local,
			  const struct kge_terms *global)
{
	struct kge_terms t[2] = { 0 };

	if (local != NULL)
		t[0] = *local;
	if (global != NULL)
		t[1] = *global;
	if (m->n == 1)
		t[0].distill = 0;
	t[0].teacher = &m->seen;
	t[1].teacher = m->local;
	t[1].freeze_relations |= !m->own_relations;
	for (size_t i = 0; i < m->n; i++)
		kge_trainer_set_terms(m->t[i], &t[i]);
}

void kge_mutual_only(struct kge_mutual *m, const uint32_t *positions, size_t n)
{
	for (size_t i = 0; i < m->n; i++)
		kge_trainer_only(m->t[i], positions, n);
}

void kge_mutual_reset_optimizer(struct kge_mutual *m, bool local_too)
{
	for (size_t i = local_too ? 0 : 1; i < m->n; i++)
		kge_trainer_reset_optimizer(m->t[i]);
}

void kge_mutual_save_local(const struct kge_mutual *m, struct buf *out)
{
	kge_trainer_save(m->t[0], out);
}

int kge_mutual_load_local(struct kge_mutual *m, const uint8_t *bytes, size_t n, struct err *e)
{
	int rc = kge_trainer_load(m->t[0], bytes, n, e);

	for (size_t i = 1; rc == 0 && i < m->n; i++)
		kge_trainer_seek(m->t[i], kge_trainer_epochs(m->t[0]));
	return rc;
}

void kge_mutual_seek(struct kge_mutual *m, uint64_t epochs)
{
	for (size_t i = 0; i < m->n; i++)
		kge_trainer_seek(m->t[i], epochs);
}

int kge_mutual_epoch(struct kge_mutual *m, double loss[2], const atomic_bool *cancel)
{
	int rc;

	if (m->n == 1)
		return kge_trainer_epoch(m->t[0], loss, cancel);
	rc = kge_trainer_epoch_pair(m->t, loss, cancel);
	if (!m->own_relations)
		memcpy(m->global->rel, m->local->rel,
		       (size_t)m->local->n_rel * m->local->rel_floats * sizeof(float));
	return rc;
}

#include "graph/alias.h"

#include <stdlib.h>

#include "base/mem.h"
#include "graph/lines.h"

struct kge_aliases {
	struct kge_vocab *shared;
	uint32_t *shared_of; /* own id -> shared id, KGE_NONE */
	uint32_t *own_of;    /* shared id -> own id; KGE_NONE while unused */
	uint32_t own_count, own_cap;
};

static void set_own(struct kge_aliases *a, uint32_t shared, uint32_t own)
{
	if (shared >= a->own_cap) {
		uint32_t had = a->own_cap;

		a->own_cap = shared * 2 + 64;
		a->own_of = mem_resize(a->own_of, a->own_cap, sizeof *a->own_of);
		for (uint32_t i = had; i < a->own_cap; i++)
			a->own_of[i] = KGE_NONE;
	}
	a->own_of[shared] = own;
}

static int link_names(struct kge_aliases *a, const struct kge_vocab *own, struct lines *l,
		      const struct lines_field *mine, const struct lines_field *theirs,
		      struct kge_alias_report *report, struct err *e)
{
	uint32_t id = kge_vocab_find(own, mine->text, mine->len), shared, had;

	if (id == KGE_NONE) {
		report->strangers++; /* kept nowhere: such lines take no memory */
		return 0;
	}
	shared = kge_vocab_add(a->shared, theirs->text, theirs->len);
	had = a->shared_of[id];
	if (had != KGE_NONE && had != shared)
		return lines_bad(l, e,
				 "'%.100s' has the shared name '%.100s' already, and now "
				 "'%.100s': keep one",
				 mine->text, kge_vocab_name(a->shared, had, NULL), theirs->text);
	if (had == shared) {
		report->duplicates++;
	} else if (shared < a->own_cap && a->own_of[shared] != KGE_NONE) {
		report->clashes++;
	} else {
		a->shared_of[id] = shared;
		set_own(a, shared, id);
		report->linked++;
	}
	return 0;
}

static int load(struct kge_aliases *a, struct lines *l, const struct kge_vocab *own,
		bool own_second, struct kge_alias_report *report, struct err *e)
{
	static const char *const own_first_columns[] = { "own name", "shared name" };
	static const char *const own_second_columns[] = { "shared name", "own name" };
	struct lines_field f[2];
	char *line;
	size_t len;
	int rc;

	while ((rc = lines_next(l, &line, &len, e)) == 1) {
		report->lines++;
		rc = lines_fields(l, line, len, f,
				  own_second ? own_second_columns : own_first_columns, 2, e);
		if (rc == 0)
			rc = link_names(a, own, l, &f[own_second], &f[!own_second], report, e);
		if (rc != 0)
			return rc;
	}
	return rc;
}

int kge_aliases_load(struct kge_aliases **out, const char *path, const struct kge_vocab *own,
		     bool own_second, struct kge_alias_report *report, struct err *e)
{
	struct kge_alias_report mine;
	struct kge_aliases *a;
	struct lines *l;
	int rc = lines_open(&l, path, e);

	*out = NULL;
	if (rc != 0)
		return rc;
	report = report != NULL ? report : &mine;
	*report = (struct kge_alias_report){ 0 };
	a = mem_array(1, sizeof *a);
	a->shared = kge_vocab_new();
	a->own_count = kge_vocab_count(own);
	a->shared_of = mem_array((size_t)a->own_count + 1, sizeof *a->shared_of);
	for (uint32_t id = 0; id < a->own_count; id++)
		a->shared_of[id] = KGE_NONE;
	rc = load(a, l, own, own_second, report, e);
	lines_close(l);
	if (rc != 0) {
		kge_aliases_free(a);
		return rc;
	}
	*out = a;
	return 0;
}

void kge_aliases_free(struct kge_aliases *a)
{
	if (a == NULL)
		return;
	kge_vocab_free(a->shared);
	free(a->shared_of);
	free(a->own_of);
	free(a);
}

const char *kge_alias_of(const struct kge_aliases *a, uint32_t id, size_t *len)
{
	if (a == NULL || id >= a->own_count || a->shared_of[id] == KGE_NONE)
		return NULL;
	return kge_vocab_name(a->shared, a->shared_of[id], len);
}

uint32_t kge_alias_find(const struct kge_aliases *a, const char *name, size_t len)
{
	uint32_t shared = a == NULL ? (uint32_t)KGE_NONE : kge_vocab_find(a->shared, name, len);

	return shared == KGE_NONE || shared >= a->own_cap ? (uint32_t)KGE_NONE : a->own_of[shared];
}

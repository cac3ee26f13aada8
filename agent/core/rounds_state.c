/* agent/core/rounds_state.c - a round as the core has it: its end, and which ones it knows. */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/core_internal.h"
#include "agent/core/rounds_internal.h"

static void drop_tables(struct round *r)
{
	for (size_t i = 0; i < r->setup.n_peers; i++) {
		free((void *)(uintptr_t)r->peers[i].slots);
		r->peers[i].slots = NULL;
	}
	rounds_validate_release(&r->validation);
	kge_emb_free(r->latest.disk);
	kge_emb_free(r->beside.disk);
	r->latest.disk = r->beside.disk = NULL;
	buf_release(&r->part);
	buf_release(&r->interrupted);
}

/* The round sends no more rows, and takes little room from here on. */
void round_close(struct round *r)
{
	if (r == NULL || r->closed)
		return;
	r->closed = true;
	fed_round_close(r->machine);
	drop_tables(r);
}

void round_free(struct round *r)
{
	if (r == NULL)
		return;
	fed_round_free(r->machine);
	drop_tables(r);
	free(r->peers);
	free(r->kept);
	sodium_memzero(r, sizeof(*r));
	free(r);
}

void rounds_who_we_are(const struct agent_core *c, struct fed_setup *s)
{
	memcpy(s->key, c->key, FED_KEY);
	memcpy(s->sign_public, c->sign_public, FED_SIGN);
	memcpy(s->sign_secret, c->sign_secret, FED_SIGN_SECRET);
}

bool rounds_joined(const struct agent_core *c, const uint8_t id[FED_ID])
{
	for (size_t i = 0; i < c->fed.n_seen && i < STORE_ROUNDS_MAX; i++)
		if (memcmp(c->fed.seen[i], id, FED_ID) == 0)
			return true;
	return false;
}

void rounds_remember(struct agent_core *c, const uint8_t id[FED_ID])
{
	memcpy(c->fed.seen[c->fed.n_seen++ % STORE_ROUNDS_MAX], id, FED_ID);
}

#include "agent/core/unsettled.h"

#include <assert.h>
#include <string.h>

#include "agent/core/core_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/unsettled_internal.h"
#include "base/mem.h"

enum { VERSION = 1, ONE = sizeof(struct agent_unsettled) };

static_assert(ONE == LEDGER_KEY + 16 + 3 * sizeof(uint64_t), "no padding goes to disk");
static_assert(1 + AGENT_UNSETTLED_MAX * ONE <= STORE_META_SMALL, "or it would not be loaded");

int agent_unsettled_read(struct agent_unsettled_list *u, const uint8_t *bytes, size_t n,
			 struct err *e)
{
	bool sound = n == 0 || (bytes[0] == VERSION && (n - 1) % ONE == 0 &&
				(n - 1) / ONE <= AGENT_UNSETTLED_MAX);

	memset(u, 0, sizeof(*u));
	if (sound && n > 1) {
		u->n = (n - 1) / ONE;
		memcpy(u->at, bytes + 1, n - 1);
	}
	for (size_t i = 0; sound && i < u->n; i++)
		sound = u->at[i].exact <= 1 && u->at[i].rows <= LEDGER_COUNT_MAX &&
			u->at[i].lost <= LEDGER_COUNT_MAX;
	if (sound)
		return 0;
	memset(u, 0, sizeof(*u));
	return err_set(e, ERR_STORE, "what is counted of rows that are not settled is damaged");
}

static size_t find_unsettled(const struct agent_unsettled_list *u, const uint8_t host[LEDGER_KEY])
{
	size_t i = 0;

	while (i < u->n && memcmp(u->at[i].host, host, LEDGER_KEY) != 0)
		i++;
	return i;
}

static uint64_t bounded_sum(uint64_t a, uint64_t b)
{
	return b < LEDGER_COUNT_MAX - a ? a + b : LEDGER_COUNT_MAX;
}

static bool is_open_at(const struct ledger_chain *c, const uint8_t host[LEDGER_KEY],
		       const uint8_t session[16])
{
	int side = ledger_chain_side(c, host);

	for (size_t k = 0; k < c->n_open; k++)
		if (c->open[k].host == side && memcmp(c->open[k].session, session, 16) == 0)
			return true;
	return false;
}

/* A settle that has come by another way, handed back, says what went. */
static uint64_t not_settled_of(const struct agent_unsettled *o, const struct ledger_chain *c)
{
	return is_open_at(c, o->host, o->session) ? bounded_sum(o->lost, o->rows) : o->lost;
}

uint64_t agent_unsettled_rows(const struct agent_unsettled_list *u, const struct ledger_chain *c,
			      const uint8_t host[LEDGER_KEY])
{
	size_t at = find_unsettled(u, host);

	return at < u->n ? not_settled_of(&u->at[at], c) : 0;
}

/* ---- the core's ---- */

int unsettled_load(struct agent_core *c, const struct store_core *saved, struct err *e)
{
	c->dp.unsettled = mem_array(1, sizeof(*c->dp.unsettled));
	for (size_t i = 0; i < saved->n_meta; i++)
		if (strcmp(saved->meta[i].key, AGENT_META_UNSETTLED) == 0)
			return agent_unsettled_read(c->dp.unsettled, saved->meta[i].base,
						    saved->meta[i].len, e);
	return 0;
}

static void write_unsettled(const struct agent_core *c, struct store_batch *b)
{
	struct buf out = { 0 };

	buf_add(&out, &(uint8_t){ VERSION }, 1);
	buf_add(&out, c->dp.unsettled->at, c->dp.unsettled->n * ONE);
	store_batch_meta_owned(b, AGENT_META_UNSETTLED, out.base, out.len);
}

void unsettled_note(struct agent_core *c, const struct peer *p, const uint8_t session[16],
		    uint64_t rows, bool exact, struct store_batch *b)
{
	struct agent_unsettled_list *u = c->dp.unsettled;
	const uint8_t *host = store_peer_account(&p->info);
	size_t at = find_unsettled(u, host);
	struct agent_unsettled *o;

	if (rows == 0 || at == AGENT_UNSETTLED_MAX || !is_open_at(&p->chain, host, session))
		return;
	o = &u->at[at];
	if (at == u->n)
		memcpy(u->at[u->n++].host, host, LEDGER_KEY);
	o->lost = not_settled_of(o, &p->chain);
	memcpy(o->session, session, sizeof(o->session));
	o->rows = rows < LEDGER_COUNT_MAX ? rows : LEDGER_COUNT_MAX;
	o->exact = exact;
	write_unsettled(c, b);
}

/* After a crash of ours its word is taken, unless it says nothing. */
void unsettled_settle(struct agent_core *c, const struct peer *p, const struct ledger_entry *settle,
		      struct store_batch *b)
{
	size_t at = find_unsettled(c->dp.unsettled, store_peer_account(&p->info));
	struct agent_unsettled *o = &c->dp.unsettled->at[at];

	if (at == c->dp.unsettled->n ||
	    memcmp(o->session, settle->session, sizeof(o->session)) != 0)
		return;
	if (settle->rows < o->rows && (o->exact || settle->rows == 0))
		o->lost = bounded_sum(o->lost, o->rows - settle->rows);
	o->rows = 0;
	write_unsettled(c, b);
}

#include "agent/core/votes.h"

#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/core_internal.h"
#include "agent/core/votes_internal.h"
#include "base/mem.h"

/* ---- on disk ---- */

enum {
	VERSION = 1,
	ONE = LEDGER_KEY + 2 * sizeof(uint32_t) + sizeof(double) + sizeof(uint64_t) +
	      DP_ACCOUNT_ORDERS * sizeof(double),
};

static void write_client(const struct agent_votes *v, struct buf *out)
{
	uint32_t noise = v->mechanism.noise, teachers = v->mechanism.teachers;

	buf_add(out, v->client, sizeof(v->client));
	buf_add(out, &noise, sizeof(noise));
	buf_add(out, &teachers, sizeof(teachers));
	buf_add(out, &v->mechanism.param, sizeof(v->mechanism.param));
	buf_add(out, &v->voted, sizeof(v->voted));
	buf_add(out, v->noted, sizeof(v->noted));
}

static void write_votes(const struct agent_votes_list *v, struct buf *out)
{
	buf_add(out, &(uint8_t){ VERSION }, 1);
	for (size_t i = 0; i < v->n; i++)
		write_client(&v->at[i], out);
}

static void read_bytes(const uint8_t **at, void *out, size_t n)
{
	memcpy(out, *at, n);
	*at += n;
}

static bool read_client(struct agent_votes *v, const uint8_t *at)
{
	uint32_t noise, teachers;
	bool sound = true;

	read_bytes(&at, v->client, sizeof(v->client));
	read_bytes(&at, &noise, sizeof(noise));
	read_bytes(&at, &teachers, sizeof(teachers));
	read_bytes(&at, &v->mechanism.param, sizeof(v->mechanism.param));
	read_bytes(&at, &v->voted, sizeof(v->voted));
	read_bytes(&at, v->noted, sizeof(v->noted));
	v->mechanism.noise = noise == DP_LAPLACE ? DP_LAPLACE : DP_GAUSSIAN;
	v->mechanism.teachers = teachers;
	for (size_t i = 0; i < DP_ACCOUNT_ORDERS; i++)
		sound = sound && isfinite(v->noted[i]) && v->noted[i] >= 0;
	return sound && noise <= DP_GAUSSIAN && v->voted <= DP_LABELS_MAX;
}

int agent_votes_read(struct agent_votes_list *v, const uint8_t *bytes, size_t n, struct err *e)
{
	size_t all = n > 0 ? (n - 1) / ONE : 0;
	bool sound = n == 0 || (bytes[0] == VERSION && (n - 1) % ONE == 0);

	memset(v, 0, sizeof(*v));
	for (size_t i = 0; sound && i < all && i < AGENT_VOTES_MAX; i++)
		sound = read_client(&v->at[v->n++], bytes + 1 + i * ONE);
	if (sound)
		return 0;
	memset(v, 0, sizeof(*v));
	return err_set(e, ERR_STORE, "what is noted of votes is damaged");
}

/* ---- an account ---- */

static size_t find_client(const struct agent_votes_list *v, const uint8_t client[LEDGER_KEY])
{
	size_t i = 0;

	while (i < v->n && memcmp(v->at[i].client, client, LEDGER_KEY) != 0)
		i++;
	return i;
}

static bool same_votes(const struct dp_mechanism *a, const struct dp_mechanism *b)
{
	return a->noise == b->noise && a->param == b->param && a->teachers == b->teachers;
}

/* Without a cap: the ledger has decided. */
static int open_account(const struct ledger_mechanism *votes, uint64_t labels,
			struct dp_account *out)
{
	struct dp_mechanism m = { votes->noise == LEDGER_LAPLACE ? DP_LAPLACE : DP_GAUSSIAN,
				  votes->param, votes->teachers };
	enum dp_accountant by = m.noise == DP_LAPLACE ? DP_PAPER : DP_GNMAX;

	if (dp_account_init(out, by, &m, (double)INFINITY, votes->delta, NULL) != 0)
		return ERR_STORE;
	return dp_account_charge(out, labels, NULL) == 0 ? 0 : ERR_STORE;
}

int agent_votes_account(const struct agent_votes_list *v, const struct ledger_account *spent,
			const uint8_t client[LEDGER_KEY], struct dp_account *out)
{
	const struct ledger_mechanism *votes = ledger_account_votes(spent);
	size_t at = find_client(v, client);
	int rc;

	if (votes == NULL)
		return ERR_NOTFOUND;
	rc = open_account(votes, ledger_account_count(spent, NULL), out);
	if (rc != 0 || at == v->n)
		return rc;
	if (!same_votes(&v->at[at].mechanism, &out->mechanism) || v->at[at].voted > out->labels)
		return ERR_STORE;
	out->voted = v->at[at].voted;
	memcpy(out->noted, v->at[at].noted, sizeof(out->noted));
	return 0;
}

/* ---- the core's ---- */

int votes_load(struct agent_core *c, const struct store_core *saved, struct err *e)
{
	c->dp.votes = mem_array(1, sizeof(*c->dp.votes));
	for (size_t i = 0; i < saved->n_meta; i++)
		if (strcmp(saved->meta[i].key, AGENT_META_VOTES) == 0)
			return agent_votes_read(c->dp.votes, saved->meta[i].base,
						saved->meta[i].len, e);
	return 0;
}

void votes_release(struct agent_core *c)
{
	if (c->dp.votes != NULL)
		sodium_memzero(c->dp.votes, sizeof(*c->dp.votes));
	free(c->dp.votes);
	c->dp.votes = NULL;
}

/* The account goes on where it was; one that does not fit what is on the ledger begins anew, its
 * labels at their public cost. */
static struct agent_votes *noted_of(struct agent_votes_list *all, const uint8_t *client,
				    const struct ledger_account *spent, struct dp_account *a)
{
	int rc = agent_votes_account(all, spent, client, a);
	size_t at = find_client(all, client);

	if ((rc != 0 && rc != ERR_STORE) || at == AGENT_VOTES_MAX)
		return NULL;
	all->n += at == all->n;
	memcpy(all->at[at].client, client, LEDGER_KEY);
	return &all->at[at];
}

void votes_note(struct agent_core *c, const uint8_t client[LEDGER_KEY],
		const struct ledger_account *spent, const struct ppat_result *r)
{
	struct dp_account a = { 0 };
	struct agent_votes *v;
	struct buf out = { 0 };

	if (r->n_votes == 0 || r->labels_drawn == 0)
		return;
	v = noted_of(c->dp.votes, client, spent, &a);
	if (v == NULL || a.labels == 0 || dp_account_note(&a, r->votes, r->n_votes, NULL) != 0)
		return;
	v->mechanism = a.mechanism;
	v->voted = a.voted;
	memcpy(v->noted, a.noted, sizeof(v->noted));
	write_votes(c->dp.votes, &out);
	store_batch_meta_owned(&c->signatures, AGENT_META_VOTES, out.base, out.len);
}

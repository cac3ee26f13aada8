#include "agent/roster.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "net/ident.h"

enum { PREFIX_MIN = 4 };

void roster_release(struct roster *r)
{
	free(r->at);
	ledger_rotations_release(&r->rotations);
	*r = (struct roster){ 0 };
}

struct store_peer *roster_find(const struct roster *r, const uint8_t key[STORE_KEY])
{
	for (size_t i = 0; i < r->n; i++)
		if (memcmp(r->at[i].key, key, STORE_KEY) == 0)
			return &r->at[i];
	return NULL;
}

struct store_peer *roster_put(struct roster *r, const struct store_peer *p)
{
	struct store_peer *at = roster_find(r, p->key);

	if (at == NULL) {
		r->at = mem_resize(r->at, r->n + 1, sizeof(*r->at));
		at = &r->at[r->n++];
	}
	if (at != p)
		*at = *p;
	return at;
}

void roster_add_replaced(struct roster *r)
{
	size_t n = r->n;

	for (size_t k = 0; k < r->rotations.n; k++) {
		const struct ledger_rotation *x = &r->rotations.at[k];
		struct store_peer was = { .status = STORE_REVOKED };

		if (!x->proved) /* it has signed nothing here, and may be another agent's */
			continue;
		for (size_t i = 0; i < n; i++)
			if (memcmp(store_peer_account(&r->at[i]), x->account, STORE_KEY) == 0)
				memcpy(was.name, r->at[i].name, sizeof(was.name));
		memcpy(was.key, x->old_key, STORE_KEY);
		memcpy(was.sign_key, x->old_sign, STORE_KEY);
		roster_put(r, &was);
	}
}

void roster_remove(struct roster *r, const uint8_t key[STORE_KEY])
{
	struct store_peer *p = roster_find(r, key);

	if (p == NULL)
		return;
	memmove(p, p + 1, (size_t)(r->at + r->n - (p + 1)) * sizeof(*p));
	r->n--;
}

const char *roster_standing(const struct store_peer *p)
{
	static const char *const words[] = { [STORE_PENDING] = "pending",
					     [STORE_LISTED] = "partner",
					     [STORE_REJECTED] = "rejected",
					     [STORE_REVOKED] = "revoked" };

	return words[p->status];
}

/* Does the id begin with the text, of so many characters at least, hyphens and case aside? */
static bool id_begins(const uint8_t key[STORE_KEY], const char *text, size_t least)
{
	char id[NET_KEY_TEXT];
	const char *p = id;
	size_t n = 0;

	net_key_format(key, id);
	for (; *text != '\0'; text++) {
		if (*text == '-')
			continue;
		if (*p == '-')
			p++;
		if (tolower((unsigned char)*text) != *p++)
			return false;
		n++;
	}
	return n >= least;
}

bool roster_spells(const uint8_t key[STORE_KEY], const char *text)
{
	return id_begins(key, text, ROSTER_ID_LEAST);
}

int roster_resolve(const struct roster *r, const char *text, struct store_peer **out, struct err *e)
{
	bool id = net_is_key(text); /* whatever others call themselves */
	size_t fits = 0;

	*out = NULL;
	for (size_t i = 0; i < r->n; i++) {
		if ((id || strcmp(r->at[i].name, text) != 0) &&
		    !id_begins(r->at[i].key, text, PREFIX_MIN))
			continue;
		*out = &r->at[i];
		fits++;
	}
	if (fits == 1)
		return 0;
	if (fits > 1)
		return err_set(e, ERR_USAGE,
			       "'%.80s' fits %zu peers: write the id (fkge peer list)", text, fits);
	return err_set(e, ERR_NOTFOUND,
		       "no peer '%.80s' is known (fkge peer list, fkge peer pending%s)", text,
		       strlen(text) < PREFIX_MIN ? "; of an id four characters at least" : "");
}

int roster_decide(struct store_peer *p, enum roster_verb verb, struct err *e)
{
	static const enum store_peer_status after[] = { [ROSTER_ACCEPT] = STORE_LISTED,
							[ROSTER_REJECT] = STORE_REJECTED,
							[ROSTER_REVOKE] = STORE_REVOKED };

	if (verb == ROSTER_REJECT && p->status == STORE_LISTED)
		return err_set(e, ERR_USAGE,
			       "this peer is a partner: to end that, fkge peer revoke");
	if (verb == ROSTER_REJECT && p->status == STORE_REVOKED)
		return err_set(e, ERR_USAGE, "this peer is revoked, so it is refused already");
	if (verb == ROSTER_REVOKE && p->status != STORE_LISTED)
		return err_set(e, ERR_USAGE, "this peer is %s, not a partner", roster_standing(p));
	p->status = after[verb];
	return 0;
}

int roster_may_forget(const struct store_peer *p, struct err *e)
{
	if (p->status == STORE_LISTED)
		return err_set(e, ERR_USAGE,
			       "this peer is a partner: end that first (fkge peer revoke)");
	if (p->has_ledger)
		return err_set(e, ERR_USAGE,
			       "the ledger has entries with this peer, and keeps them; so its "
			       "name is kept, too: it stays %s",
			       roster_standing(p));
	if (p->has_signed)
		return err_set(e, ERR_USAGE,
			       "this peer has signed accounts of rounds that are on record (fkge "
			       "rounds list), which nobody can check without its key: it stays %s",
			       roster_standing(p));
	return 0;
}

static size_t count_status(const struct roster *r, enum store_peer_status status)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		n += r->at[i].status == status;
	return n;
}

size_t roster_listed(const struct roster *r)
{
	return count_status(r, STORE_LISTED);
}

bool roster_lets_in(const struct roster *r, const uint8_t key[STORE_KEY], bool invited)
{
	const struct store_peer *p = roster_find(r, key);

	if (ledger_rotations_proved(&r->rotations, key) != NULL)
		return false;
	if (p != NULL && p->status != STORE_PENDING)
		return p->status == STORE_LISTED;
	return invited;
}

bool roster_sign_key_taken(const struct roster *r, const uint8_t key[STORE_KEY],
			   const uint8_t sign[STORE_KEY])
{
	const struct store_peer *p = roster_find(r, key);

	if (p != NULL && memcmp(p->sign_key, sign, STORE_KEY) == 0)
		return false;
	for (size_t i = 0; i < r->n; i++)
		if (memcmp(r->at[i].sign_key, sign, STORE_KEY) == 0)
			return true;
	return ledger_rotations_know(&r->rotations, sign);
}

/* ---- strangers, and what is forgotten ---- */

enum roster_knocked roster_knock(struct roster *r, const uint8_t key[STORE_KEY], const char *source,
				 int64_t wall_ms)
{
	struct store_peer p = { .status = STORE_PENDING }, *known = roster_find(r, key);

	if (known != NULL && known->status != STORE_PENDING)
		return KNOCK_KNOWN;
	if (known == NULL)
		memcpy(p.key, key, STORE_KEY);
	else
		p = *known;
	snprintf(p.source, sizeof(p.source), "%s", source);
	p.seen_ms = wall_ms;
	roster_put(r, &p);
	return known == NULL ? KNOCK_NEW : KNOCK_AGAIN;
}

/* A clock that was ahead and was put right makes nothing last for ever. */
static bool older_than(const struct store_peer *p, int64_t wall_ms, int64_t age_ms)
{
	if (p->seen_ms == 0) /* never seen: the owner's own entry */
		return false;
	return wall_ms - p->seen_ms > age_ms || p->seen_ms - wall_ms > age_ms;
}

static bool too_old(const struct store_peer *p, int64_t wall_ms)
{
	if (p->status == STORE_PENDING)
		return older_than(p, wall_ms, ROSTER_PENDING_MS);
	return p->status == STORE_REJECTED && older_than(p, wall_ms, ROSTER_REJECTED_MS);
}

static bool may_go(const struct store_peer *p)
{
	return p->status != STORE_LISTED && !p->has_ledger && !p->has_signed;
}

static size_t of_source(const struct roster *r, const struct store_peer *like)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		n += r->at[i].status == STORE_PENDING && strcmp(r->at[i].source, like->source) == 0;
	return n;
}

/* The oldest of the source that has most. */
static struct store_peer *crowded(const struct roster *r)
{
	struct store_peer *worst = NULL;
	size_t most = 0;

	for (size_t i = 0; i < r->n; i++) {
		struct store_peer *p = &r->at[i];
		size_t n = p->status == STORE_PENDING ? of_source(r, p) : 0;

		if (n == 0 || n < most || (n == most && p->seen_ms >= worst->seen_ms))
			continue;
		worst = p;
		most = n;
	}
	return most > ROSTER_SOURCE_MAX || count_status(r, STORE_PENDING) > ROSTER_PENDING_MAX
		       ? worst
		       : NULL;
}

static struct store_peer *oldest_over(const struct roster *r, enum store_peer_status status,
				      size_t limit)
{
	struct store_peer *oldest = NULL;
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++) {
		struct store_peer *p = &r->at[i];

		if (p->status != status || !may_go(p))
			continue;
		n++;
		if (oldest == NULL || p->seen_ms < oldest->seen_ms)
			oldest = p;
	}
	return n > limit ? oldest : NULL;
}

static struct store_peer *next_to_go(const struct roster *r, int64_t wall_ms)
{
	struct store_peer *p = NULL;

	for (size_t i = 0; i < r->n; i++)
		if (may_go(&r->at[i]) && too_old(&r->at[i], wall_ms))
			return &r->at[i];
	p = crowded(r);
	if (p == NULL)
		p = oldest_over(r, STORE_REJECTED, ROSTER_REJECTED_MAX);
	return p != NULL ? p : oldest_over(r, STORE_REVOKED, ROSTER_REVOKED_MAX);
}

bool roster_trim(struct roster *r, int64_t wall_ms, uint8_t key[STORE_KEY])
{
	const struct store_peer *p = next_to_go(r, wall_ms);

	if (p == NULL)
		return false;
	memcpy(key, p->key, STORE_KEY);
	roster_remove(r, key);
	return true;
}

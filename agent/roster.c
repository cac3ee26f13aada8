#include "agent/roster.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "net/ident.h"

enum { PREFIX_MIN = 4 };

void roster_release(struct roster *r)
{
	free(r->at);
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

const char *roster_standing(const struct store_peer *p)
{
	static const char *const words[] = { [STORE_PENDING] = "pending",
					     [STORE_LISTED] = "partner",
					     [STORE_REJECTED] = "rejected",
					     [STORE_REVOKED] = "revoked" };

	return words[p->status];
}

/* Does the id begin with the text, hyphens and case aside? */
static bool id_begins(const uint8_t key[STORE_KEY], const char *text)
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
	return n >= PREFIX_MIN;
}

int roster_resolve(const struct roster *r, const char *text, struct store_peer **out, struct err *e)
{
	uint8_t key[STORE_KEY];
	struct err why = { 0 };
	size_t fits = 0;

	*out = NULL;
	if (net_key_parse(text, key, &why) == 0 && (*out = roster_find(r, key)) != NULL)
		return 0;
	for (size_t i = 0; i < r->n; i++) {
		if (strcmp(r->at[i].name, text) != 0 && !id_begins(r->at[i].key, text))
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
		       "no peer '%.80s' is known (fkge peer list, fkge peer pending)", text);
}

int roster_decide(struct store_peer *p, enum roster_verb verb, struct err *e)
{
	static const enum store_peer_status after[] = { [ROSTER_ACCEPT] = STORE_LISTED,
							[ROSTER_REJECT] = STORE_REJECTED,
							[ROSTER_REVOKE] = STORE_REVOKED };

	if (verb == ROSTER_REJECT && p->status == STORE_LISTED)
		return err_set(e, ERR_USAGE,
			       "this peer is a partner: to end that, fkge peer revoke");
	if (verb == ROSTER_REVOKE && p->status != STORE_LISTED)
		return err_set(e, ERR_USAGE, "this peer is %s, not a partner", roster_standing(p));
	p->status = after[verb];
	return 0;
}

static size_t count(const struct roster *r, enum store_peer_status status)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		n += r->at[i].status == status;
	return n;
}

size_t roster_listed(const struct roster *r)
{
	return count(r, STORE_LISTED);
}

struct store_peer *roster_knock(struct roster *r, const uint8_t key[STORE_KEY], int64_t wall_ms)
{
	struct store_peer p = { .status = STORE_PENDING, .seen_ms = wall_ms };

	if (roster_find(r, key) != NULL || count(r, STORE_PENDING) >= ROSTER_PENDING_MAX)
		return NULL;
	memcpy(p.key, key, STORE_KEY);
	return roster_put(r, &p);
}

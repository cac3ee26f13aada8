#include "agent/invites.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/secret.h"

void invites_load(struct invites *v, const struct store_core *saved)
{
	memset(v, 0, sizeof(*v));
	v->n_made = saved->n_invitations;
	v->n_held = saved->n_tickets;
	v->made = mem_array(v->n_made + 1, sizeof(*v->made));
	v->held = mem_array(v->n_held + 1, sizeof(*v->held));
	if (v->n_made > 0)
		memcpy(v->made, saved->invitations, v->n_made * sizeof(*v->made));
	if (v->n_held > 0)
		memcpy(v->held, saved->tickets, v->n_held * sizeof(*v->held));
}

void invites_release(struct invites *v)
{
	if (v->held != NULL)
		sodium_memzero(v->held, v->n_held * sizeof(*v->held));
	free(v->made);
	free(v->held);
	memset(v, 0, sizeof(*v));
}

/* ---- those made here ---- */

static void hash_of(const uint8_t ticket[STORE_TICKET], uint8_t out[STORE_DIGEST])
{
	crypto_generichash(out, STORE_DIGEST, ticket, STORE_TICKET,
			   (const uint8_t *)"fkge ticket 1   ", 16);
}

static bool is_good(const struct store_invitation *i, int64_t now_ms)
{
	return !i->revoked && i->used < i->uses && now_ms < i->until_ms;
}

const char *invites_state(const struct store_invitation *i, int64_t now_ms)
{
	if (i->revoked)
		return "revoked";
	if (i->used >= i->uses)
		return "used up";
	return now_ms < i->until_ms ? "good" : "expired";
}

/* Room for one more: the oldest that is of no more use goes. */
static bool make_room(struct invites *v, int64_t now_ms)
{
	size_t k = 0;

	if (v->n_made < INVITES_MAX)
		return true;
	while (k < v->n_made && is_good(&v->made[k], now_ms))
		k++;
	if (k == v->n_made)
		return false;
	memmove(&v->made[k], &v->made[k + 1], (v->n_made - k - 1) * sizeof(*v->made));
	v->n_made--;
	return true;
}

const struct store_invitation *invites_make(struct invites *v, uint32_t uses, int64_t now_ms,
					    int64_t until_ms, uint8_t ticket[STORE_TICKET])
{
	struct store_invitation *i;

	if (!make_room(v, now_ms))
		return NULL;
	v->made = mem_resize(v->made, v->n_made + 1, sizeof(*v->made));
	i = &v->made[v->n_made++];
	*i = (struct store_invitation){ .made_ms = now_ms, .until_ms = until_ms, .uses = uses };
	secret_draw(NULL, ticket, STORE_TICKET);
	hash_of(ticket, i->hash);
	return i;
}

struct store_invitation *invites_good(const struct invites *v, const uint8_t ticket[STORE_TICKET],
				      int64_t now_ms)
{
	uint8_t hash[STORE_DIGEST];

	if (sodium_is_zero(ticket, STORE_TICKET))
		return NULL;
	hash_of(ticket, hash);
	for (size_t k = 0; k < v->n_made; k++)
		if (memcmp(v->made[k].hash, hash, sizeof(hash)) == 0)
			return is_good(&v->made[k], now_ms) ? &v->made[k] : NULL;
	return NULL;
}

void invites_id(const struct store_invitation *i, char out[INVITES_ID_TEXT])
{
	sodium_bin2hex(out, INVITES_ID_TEXT, i->hash, (INVITES_ID_TEXT - 1) / 2);
}

int invites_find(const struct invites *v, const char *id, struct store_invitation **out,
		 struct err *e)
{
	char text[INVITES_ID_TEXT];

	for (size_t k = 0; k < v->n_made; k++) {
		*out = &v->made[k];
		invites_id(*out, text);
		if (strcmp(text, id) == 0)
			return 0;
	}
	*out = NULL;
	return err_set(e, ERR_NOTFOUND, "no invitation '%.40s' was made here (fkge invite --list)",
		       id);
}

/* ---- those of others ---- */

const uint8_t *invites_ticket(const struct invites *v, const uint8_t peer[STORE_KEY])
{
	for (size_t k = 0; k < v->n_held; k++)
		if (memcmp(v->held[k].peer, peer, STORE_KEY) == 0)
			return v->held[k].ticket;
	return NULL;
}

void invites_hold(struct invites *v, const struct store_ticket *t)
{
	size_t k = 0;

	while (k < v->n_held && memcmp(v->held[k].peer, t->peer, STORE_KEY) != 0)
		k++;
	if (k == v->n_held)
		v->held = mem_resize(v->held, ++v->n_held, sizeof(*v->held));
	v->held[k] = *t;
}

#include "agent/invites.h"

#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/secret.h"
#include "net/greet.h"

static_assert((int)STORE_PAIR == (int)NET_PAIR_SECRET, "one size");

void invites_load(struct invites *v, const struct store_core *saved)
{
	memset(v, 0, sizeof(*v));
	v->n_made = saved->n_invitations;
	v->n_held = saved->tickets.n;
	v->made = mem_array(v->n_made + 1, sizeof(*v->made));
	v->held = mem_array(v->n_held + 1, sizeof(*v->held));
	if (v->n_made > 0)
		memcpy(v->made, saved->invitations, v->n_made * sizeof(*v->made));
	if (v->n_held > 0)
		memcpy(v->held, saved->tickets.at, v->n_held * sizeof(*v->held));
	v->n_seeds = saved->secrets.n_seeds;
	v->n_pairs = saved->secrets.n_pairs;
	v->seeds = mem_array(v->n_seeds + 1, sizeof(*v->seeds));
	v->pairs = mem_array(v->n_pairs + 1, sizeof(*v->pairs));
	if (v->n_seeds > 0)
		memcpy(v->seeds, saved->secrets.seeds, v->n_seeds * sizeof(*v->seeds));
	if (v->n_pairs > 0)
		memcpy(v->pairs, saved->secrets.pairs, v->n_pairs * sizeof(*v->pairs));
}

void invites_release(struct invites *v)
{
	if (v->held != NULL)
		sodium_memzero(v->held, v->n_held * sizeof(*v->held));
	if (v->seeds != NULL)
		sodium_memzero(v->seeds, v->n_seeds * sizeof(*v->seeds));
	if (v->pairs != NULL)
		sodium_memzero(v->pairs, v->n_pairs * sizeof(*v->pairs));
	free(v->seeds);
	free(v->pairs);
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

size_t invites_revoke_all(const struct store_core *saved, struct store_batch *b)
{
	size_t n = 0;

	for (size_t k = 0; k < saved->n_invitations; k++) {
		struct store_invitation i = saved->invitations[k];

		n += !i.revoked;
		i.revoked = true;
		store_batch_invitation(b, &i);
	}
	return n;
}

void invites_id(const struct store_invitation *i, char out[INVITES_ID_TEXT])
{
	sodium_bin2hex(out, INVITES_ID_TEXT, i->hash, (INVITES_ID_TEXT - 1) / 2);
}

void invites_ticket_id(const uint8_t ticket[STORE_TICKET], char out[INVITES_ID_TEXT])
{
	struct store_invitation i = { 0 };

	hash_of(ticket, i.hash);
	invites_id(&i, out);
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

/* ---- secrets of pairs ---- */

/* A list of secrets grows without leaving a copy behind. */
static void *grow_secrets(void *old, size_t n, size_t size)
{
	uint8_t *new = mem_array(n + 1, size);

	if (n > 0) {
		memcpy(new, old, n * size);
		sodium_memzero(old, n * size);
	}
	free(old);
	return new;
}

static void derive_secret(const uint8_t seed[STORE_PAIR], const uint8_t inviter[STORE_KEY],
			  const uint8_t guest[STORE_KEY], uint8_t out[STORE_PAIR])
{
	uint8_t keys[2 * STORE_KEY];

	memcpy(keys, inviter, STORE_KEY);
	memcpy(keys + STORE_KEY, guest, STORE_KEY);
	crypto_generichash(out, STORE_PAIR, keys, sizeof(keys), seed, STORE_PAIR);
}

void invites_seed(struct invites *v, int64_t now_ms, struct store_seed *out)
{
	*out = (struct store_seed){ .made_ms = now_ms };
	secret_draw(NULL, out->seed, STORE_PAIR);
	if (v->n_seeds == STORE_SEEDS)
		memmove(v->seeds, v->seeds + 1, --v->n_seeds * sizeof(*v->seeds));
	v->seeds = grow_secrets(v->seeds, v->n_seeds, sizeof(*v->seeds));
	v->seeds[v->n_seeds++] = *out;
}

static struct store_pair *known_secret(const struct invites *v, const uint8_t peer[STORE_KEY],
				       bool proven)
{
	for (size_t k = 0; k < v->n_pairs; k++)
		if (v->pairs[k].proven == proven && memcmp(v->pairs[k].peer, peer, STORE_KEY) == 0)
			return &v->pairs[k];
	return NULL;
}

/* In the place of the one of its kind. */
static void keep_secret(struct invites *v, const struct store_pair *x)
{
	struct store_pair *p = known_secret(v, x->peer, x->proven);

	if (p == NULL) {
		v->pairs = grow_secrets(v->pairs, v->n_pairs, sizeof(*v->pairs));
		p = &v->pairs[v->n_pairs++];
	}
	*p = *x;
}

static void drop_secret(struct invites *v, struct store_pair *p)
{
	if (p == NULL)
		return;
	*p = v->pairs[--v->n_pairs];
	sodium_memzero(&v->pairs[v->n_pairs], sizeof(*p));
}

void invites_join(struct invites *v, const uint8_t own[STORE_KEY], const uint8_t peer[STORE_KEY],
		  const uint8_t seed[STORE_PAIR], struct store_pair *out)
{
	*out = (struct store_pair){ .proven = false };
	memcpy(out->peer, peer, STORE_KEY);
	derive_secret(seed, peer, own, out->secret);
	keep_secret(v, out);
}

const uint8_t *invites_dial(const struct invites *v, const uint8_t peer[STORE_KEY])
{
	const struct store_pair *p = known_secret(v, peer, false);

	if (p == NULL)
		p = known_secret(v, peer, true);
	return p != NULL ? p->secret : NULL;
}

bool invites_proven(const struct invites *v, const uint8_t peer[STORE_KEY])
{
	return known_secret(v, peer, true) != NULL;
}

static bool card_names(const uint8_t secret[STORE_PAIR], const uint8_t id[NET_PAIR_ID])
{
	uint8_t of[NET_PAIR_ID];

	net_greet_pair_id(secret, of);
	return sodium_memcmp(of, id, NET_PAIR_ID) == 0;
}

/* The seed that the proven secret of this peer was made of, counted from 1; 0: none that is here,
 * so all that are came later, or the peer made the line. */
static size_t proven_seed(const struct invites *v, const uint8_t own[STORE_KEY],
			  const uint8_t peer[STORE_KEY])
{
	const struct store_pair *p = known_secret(v, peer, true);
	uint8_t made[STORE_PAIR];
	size_t k = p != NULL ? v->n_seeds : 0;

	for (; k > 0; k--) {
		derive_secret(v->seeds[k - 1].seed, own, peer, made);
		if (sodium_memcmp(made, p->secret, sizeof(made)) == 0)
			break;
	}
	sodium_memzero(made, sizeof(made));
	return k;
}

bool invites_named(const struct invites *v, const uint8_t own[STORE_KEY],
		   const uint8_t peer[STORE_KEY], const uint8_t id[NET_PAIR_ID],
		   uint8_t out[STORE_PAIR])
{
	for (int proven = 0; proven < 2; proven++) {
		const struct store_pair *p = known_secret(v, peer, proven == 1);

		if (p != NULL && card_names(p->secret, id)) {
			memcpy(out, p->secret, STORE_PAIR);
			return true;
		}
	}
	for (size_t k = v->n_seeds, proven = proven_seed(v, own, peer); k-- > proven;) {
		derive_secret(v->seeds[k].seed, own, peer, out);
		if (card_names(out, id))
			return true;
	}
	sodium_memzero(out, STORE_PAIR);
	return false;
}

bool invites_prove(struct invites *v, const uint8_t own[STORE_KEY], const uint8_t peer[STORE_KEY],
		   const uint8_t id[NET_PAIR_ID], struct store_pair *out)
{
	const struct store_pair *known = known_secret(v, peer, true);

	*out = (struct store_pair){ .proven = true };
	if (sodium_is_zero(id, NET_PAIR_ID) || (known != NULL && card_names(known->secret, id)) ||
	    !invites_named(v, own, peer, id, out->secret))
		return false;
	memcpy(out->peer, peer, STORE_KEY);
	drop_secret(v, known_secret(v, peer, false));
	keep_secret(v, out);
	return true;
}

void invites_unpair(struct invites *v, const uint8_t peer[STORE_KEY])
{
	drop_secret(v, known_secret(v, peer, false));
	drop_secret(v, known_secret(v, peer, true));
}

#include "agent/newcomers.h"

#include <sodium.h>
#include <string.h>

void newcomers_let_go(struct newcomer *x)
{
	message_queue_release(&x->said);
	sodium_memzero(x, sizeof(*x));
}

void newcomers_release(struct newcomers *v)
{
	while (v->n > 0)
		newcomers_let_go(&v->at[--v->n]);
}

struct newcomer *newcomers_find(struct newcomers *v, const uint8_t key[NET_KEY_BYTES])
{
	for (size_t k = 0; k < v->n; k++)
		if (memcmp(v->at[k].key, key, NET_KEY_BYTES) == 0)
			return &v->at[k];
	return NULL;
}

static bool newcomer_fits(const struct newcomers *v, const struct net_greet_card *card)
{
	size_t of_ticket = 0;

	for (size_t k = 0; k < v->n; k++)
		of_ticket += memcmp(v->at[k].card.ticket, card->ticket, NET_TICKET_BYTES) == 0;
	return v->n < NEWCOMERS_MAX && of_ticket < NEWCOMERS_OF_TICKET;
}

struct newcomer *newcomers_up(struct newcomers *v, const uint8_t key[NET_KEY_BYTES],
			      const struct net_greet_card *card, uint64_t now_ms)
{
	struct newcomer *x = newcomers_find(v, key);

	if (x == NULL && !newcomer_fits(v, card))
		return NULL;
	if (x == NULL) {
		x = &v->at[v->n++];
		*x = (struct newcomer){ 0 };
		memcpy(x->key, key, NET_KEY_BYTES);
	}
	message_queue_release(&x->said); /* of a link that is gone */
	x->card = *card;
	x->since_ms = now_ms;
	x->up = true;
	return x;
}

bool newcomers_keep(struct newcomer *x, const uint8_t *bytes, size_t n)
{
	if (n > NEWCOMERS_BYTES - x->said.bytes)
		return false;
	message_queue_add(&x->said, bytes, n);
	return x->said.bytes <= NEWCOMERS_BYTES;
}

bool newcomers_take(struct newcomers *v, const uint8_t key[NET_KEY_BYTES], struct newcomer *out)
{
	struct newcomer *x = newcomers_find(v, key);

	if (x == NULL)
		return false;
	*out = *x;
	*x = v->at[--v->n];
	sodium_memzero(&v->at[v->n], sizeof(v->at[v->n]));
	return true;
}

struct newcomer *newcomers_late(struct newcomers *v, uint64_t now_ms)
{
	for (size_t k = 0; k < v->n; k++)
		if (!v->at[k].joins && now_ms - v->at[k].since_ms >= NEWCOMERS_HELLO_MS)
			return &v->at[k];
	return NULL;
}

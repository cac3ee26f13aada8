#include "store/restored.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

enum { VERSION = 1, HEADER = 10, TRAINING = 1, FRESH = 2 };

void store_restored_release(struct store_restored *r)
{
	free(r->waits);
	memset(r, 0, sizeof(*r));
}

static int damaged(struct err *e)
{
	return err_set(e, ERR_STORE,
		       "what the store says of the backup that it was restored from is damaged: "
		       "restore the backup once more");
}

int store_restored_read(struct store_restored *r, const uint8_t *bytes, size_t n, struct err *e)
{
	uint64_t time = 0;

	memset(r, 0, sizeof(*r));
	if (n == 0)
		return 0;
	if (n < HEADER || (n - HEADER) % STORE_KEY != 0 || bytes[0] != VERSION ||
	    (bytes[1] & ~(TRAINING | FRESH)) != 0)
		return damaged(e);
	for (int k = 0; k < 8; k++)
		time |= (uint64_t)bytes[2 + k] << (8 * k);
	r->is = true;
	r->training = (bytes[1] & TRAINING) != 0;
	r->fresh = (bytes[1] & FRESH) != 0;
	r->time_ms = (int64_t)time;
	for (size_t at = HEADER; at < n; at += STORE_KEY)
		store_restored_add(r, bytes + at);
	return 0;
}

void store_batch_restored(struct store_batch *b, const struct store_restored *r)
{
	size_t n = HEADER + r->n_waits * STORE_KEY;
	uint8_t *bytes = mem_array(n, 1);

	bytes[0] = VERSION;
	bytes[1] = (uint8_t)((r->training ? TRAINING : 0) | (r->fresh ? FRESH : 0));
	for (int k = 0; k < 8; k++)
		bytes[2 + k] = (uint8_t)((uint64_t)r->time_ms >> (8 * k));
	if (r->n_waits > 0)
		memcpy(bytes + HEADER, r->waits, r->n_waits * STORE_KEY);
	store_batch_meta_owned(b, STORE_META_RESTORED, bytes, n);
}

static size_t place_of(const struct store_restored *r, const uint8_t key[STORE_KEY])
{
	size_t k = 0;

	while (k < r->n_waits && memcmp(r->waits[k], key, STORE_KEY) != 0)
		k++;
	return k;
}

bool store_restored_waits(const struct store_restored *r, const uint8_t key[STORE_KEY])
{
	return place_of(r, key) < r->n_waits;
}

void store_restored_add(struct store_restored *r, const uint8_t key[STORE_KEY])
{
	if (store_restored_waits(r, key))
		return;
	r->waits = mem_resize(r->waits, r->n_waits + 1, sizeof(*r->waits));
	memcpy(r->waits[r->n_waits++], key, STORE_KEY);
}

bool store_restored_drop(struct store_restored *r, const uint8_t key[STORE_KEY])
{
	size_t k = place_of(r, key);

	if (k == r->n_waits)
		return false;
	memmove(r->waits[k], r->waits[k + 1], (--r->n_waits - k) * STORE_KEY);
	return true;
}

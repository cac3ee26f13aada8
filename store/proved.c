#include "store/proved.h"

#include <string.h>

enum { KEY = STORE_PROVED_BYTES / 2 };

/* The newest counts: one that was forgotten may sign with another key since. */
const uint8_t *store_proved_sign(const struct buf *proved, const uint8_t key[32])
{
	for (size_t k = proved->len / STORE_PROVED_BYTES; k-- > 0;) {
		const uint8_t *at = proved->base + k * STORE_PROVED_BYTES;

		if (memcmp(at, key, KEY) == 0)
			return at + KEY;
	}
	return NULL;
}

bool store_proved_both(const struct buf *proved, const uint8_t key[32], const uint8_t sign[32])
{
	const uint8_t *by = store_proved_sign(proved, key);

	return by != NULL && memcmp(by, sign, KEY) == 0;
}

bool store_proved_add(struct buf *proved, const uint8_t key[32], const uint8_t sign[32])
{
	const size_t most = (size_t)STORE_PROVED_MAX * STORE_PROVED_BYTES;

	if (store_proved_both(proved, key, sign))
		return false;
	if (proved->len >= most) {
		memmove(proved->base, proved->base + STORE_PROVED_BYTES, most - STORE_PROVED_BYTES);
		proved->len = most - STORE_PROVED_BYTES;
	}
	buf_add(proved, key, KEY);
	buf_add(proved, sign, KEY);
	return true;
}

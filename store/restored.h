/* store/restored.h - what a store that was put back from a backup has to learn first.
 *
 * The spending after the backup is not in the store.  Partners hold the entries that both have
 * signed and hand them back (agent/core/handback.c); until each of them has been asked, nothing
 * more may be spent: the totals toward all partners would be wrong.  Nobody else holds statements
 * of private training.  The store says so under STORE_META_RESTORED:
 *
 *   offset size
 *        0    1  version, 1
 *        1    1  bits: 1 statements may be missing; 2 serial numbers of rounds are not raised yet
 *        2    8  Unix time of the backup in ms, little-endian; 0: not known, an older copy was put
 *                back by hand
 *       10   32  X25519 key of a partner that has not been asked; and so on
 *
 * The value stays when nobody has to be asked any more: exports of such a store are put into the
 * order in which entries were written (store/ledger.c).  Pure: bytes alone. */
#ifndef STORE_RESTORED_H
#define STORE_RESTORED_H

#include "store/batch.h"

#define STORE_META_RESTORED "restored"

struct store_restored {
	bool is;       /* false: nothing was ever put back, and the rest is zero */
	bool training; /* nothing is trained privately: statements may be missing */
	bool fresh;    /* the serial numbers of rounds are to be raised */
	int64_t time_ms;
	uint8_t (*waits)[STORE_KEY];
	size_t n_waits;
};

void store_restored_release(struct store_restored *r); /* zero afterwards */
/* n 0: never put back.  ERR_STORE: damaged. */
MUST_CHECK int store_restored_read(struct store_restored *r, const uint8_t *bytes, size_t n,
				   struct err *e);
/* Adds the value to the batch. */
void store_batch_restored(struct store_batch *b, const struct store_restored *r);
bool store_restored_waits(const struct store_restored *r, const uint8_t key[STORE_KEY]);
void store_restored_add(struct store_restored *r, const uint8_t key[STORE_KEY]); /* once */
/* false: it was not waited for. */
bool store_restored_drop(struct store_restored *r, const uint8_t key[STORE_KEY]);

#endif

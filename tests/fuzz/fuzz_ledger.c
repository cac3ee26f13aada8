/* libFuzzer entry for what a partner or an auditor's friend may hand over: ledger entries
 * as they are on the wire and on disk, and exports.  As fuzz_msg.c. */
#include <stdlib.h>
#include <string.h>

#include "store/ledger/entry.h"
#include "store/ledger/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* What is refused says why. */
static void good_or_refused(int code, const struct err *e)
{
	if (code != 0 && (e->code != code || e->text[0] == '\0'))
		abort();
}

static void poke_entry(const uint8_t *bytes, size_t n)
{
	struct ledger_signed s = { 0 };
	uint8_t again[LEDGER_ENTRY_BYTES];
	struct ledger_chain c;
	struct err e = { 0 };

	good_or_refused(ledger_wire_decode(&s, NULL, bytes, n, &e), &e);
	if (n < LEDGER_ENTRY_BYTES || ledger_decode(&s.entry, bytes, LEDGER_ENTRY_BYTES, NULL) != 0)
		return;
	ledger_encode(&s.entry, again);
	if (memcmp(again, bytes, LEDGER_ENTRY_BYTES) != 0)
		abort(); /* one entry, one encoding */
	ledger_chain_init(&c, s.entry.host, s.entry.client);
	ledger_hash(&s.entry, s.hash);
	e = (struct err){ 0 };
	good_or_refused(ledger_chain_replay(&c, &s, &e), &e);
	ledger_chain_release(&c);
}

static void poke_export(const uint8_t *bytes, size_t n)
{
	struct ledger_export x = { 0 };
	const struct ledger_request request = { .nonce = "fuzz" };
	struct ledger_report r = { 0 };
	struct err e = { 0 };

	good_or_refused(store_export_read(&x, bytes, n, &e), &e);
	if (e.code != 0)
		return;
	if (ledger_audit(&x, 1, &request, &r) == 0)
		abort(); /* no export answers to that nonce */
	ledger_report_release(&r);
	ledger_export_release(&x);
}

/* A signature cannot be guessed, so the bytes are looked at with and without their text. */
static void poke_rotation(const uint8_t *bytes, size_t n)
{
	struct ledger_rotation r;
	uint8_t again[LEDGER_ROTATION_BYTES];
	struct ledger_rotations all = { 0 };
	struct err e = { 0 };

	good_or_refused(ledger_rotation_parse(&r, (const char *)bytes, n, &e), &e);
	if (ledger_rotation_decode(&r, bytes, n, NULL) == 0) {
		ledger_rotation_encode(&r, again);
		if (memcmp(again, bytes, n) != 0)
			abort();
	}
	e = (struct err){ 0 };
	if (r.number > 0)
		good_or_refused(ledger_rotations_add(&all, &r, &e), &e);
	ledger_rotations_release(&all);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	if (n > 4 && (memcmp(bytes, "fkgeR", 5) == 0 || memcmp(bytes, "fkge-", 5) == 0))
		poke_rotation(bytes, n);
	else if (n > 0 && bytes[0] == 'f')
		poke_entry(bytes, n);
	else
		poke_export(bytes, n);
	return 0;
}

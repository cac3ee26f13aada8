/* store/ledger/verify_internal.h - findings, for the files of the verifier: verify.c, seal.c. */
#ifndef STORE_LEDGER_VERIFY_INTERNAL_H
#define STORE_LEDGER_VERIFY_INTERNAL_H

#include <stdio.h>

#include "store/ledger/verify.h"

#define ULL(x) ((unsigned long long)(x))

struct ledger_name {
	char text[LEDGER_NAME_TEXT];
};
/* As the report's owner wants them named. */
struct ledger_name ledger_name_of(const struct ledger_report *r, const uint8_t key[LEDGER_KEY]);

/* About the chain c; without its text, which the caller writes.  sequence 0: all of it. */
struct ledger_finding *ledger_report_add(struct ledger_report *r, const struct ledger_chain *c,
					 enum ledger_fault fault, uint64_t sequence, bool note);

#define FIND(r, c, fault, sequence, note, ...)                                                     \
	snprintf(ledger_report_add(r, c, fault, sequence, note)->text, ERR_TEXT_MAX, __VA_ARGS__)

#endif

/* cli/steps.h - steps of queries on record, as JSON, and exports of them. */
#ifndef CLI_STEPS_H
#define CLI_STEPS_H

#include <jansson.h>

#include "cli/cli.h"
#include "store/ledger/step.h"

/* Versions, the second where keys of one of those in it were replaced; bytes of a file. */
enum { STEPS_EXPORT = 1, STEPS_ROTATED = 2, STEPS_EXPORT_MAX = 256 << 20 };

/* Adds the signature of all else in the object. */
void steps_sign(json_t *export, const uint8_t secret[64]);

#endif

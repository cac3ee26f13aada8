/* cli/steps.h - steps of queries on record, as JSON, and exports of them. */
#ifndef CLI_STEPS_H
#define CLI_STEPS_H

#include <jansson.h>

#include "cli/cli.h"
#include "store/ledger/step.h"

/* Versions of a file: the first; where keys of one of those in it were replaced; with the time and
 * what is no longer kept, and replaced keys where there are any: what is written now. */
enum { STEPS_EXPORT = 1, STEPS_ROTATED = 2, STEPS_DATED = 3 };
enum { STEPS_EXPORT_MAX = 256 << 20 }; /* bytes */

/* Adds the signature of all else in the object. */
void steps_sign(json_t *export, const uint8_t secret[64]);

#endif

/* fed/home.h - where an item is aggregated: rendezvous hashing (methods 4.4).
 *
 * The home of an item is that holder for whom
 *
 *	BLAKE2b(seed, item's name, member's key)
 *
 * is highest, of the holders that may be home (fed_plan_new()).  A member that knows the holders
 * computes the same home and asks nobody; when a holder goes, only its own items find another home;
 * every holder is home to about the same share.
 * The seed is the roster's, to which all members have added, none of them knowing what the others
 * add, so nobody chooses alone whose home it is (fed/round_roster.c). */
#ifndef FED_HOME_H
#define FED_HOME_H

#include <stddef.h>
#include <stdint.h>

#include "fed/method.h"

enum { FED_SEED = 32 };

/* The first 8 bytes of the hash; name is tag and label. */
uint64_t fed_home_weight(const uint8_t seed[FED_SEED], const uint8_t member[FED_KEY], char tag,
			 const void *label, size_t len);
/* Number of the home among keys[m], m in the set `holders` (not empty).  Of equal weights the
 * lowest number has it. */
unsigned fed_home_of(const uint8_t seed[FED_SEED], const uint8_t (*keys)[FED_KEY], uint64_t holders,
		     char tag, const void *label, size_t len);

#endif

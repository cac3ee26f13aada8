/* fed/draw.h - who is in a round that only a share of the members takes part in (the client
 *fraction C of FedAvg; PFedEG's F, its 4.5).
 *
 * All members bring each other into one order, new for each round's number: by
 *
 *	BLAKE2b(number, member's key)
 *
 * The first of the order are in the round.  Everybody computes that alike who sees the same
 *members, and nobody is asked; in the long run each is in as many rounds as any other. */
#ifndef FED_DRAW_H
#define FED_DRAW_H

#include <stddef.h>
#include <stdint.h>

#include "fed/method.h"

/* Before another key's in the order of this round: lower.  The first 8 bytes of the hash. */
uint64_t fed_draw_place(uint64_t number, const uint8_t member[FED_KEY]);
/* How many of so many members are in it: fraction of them, rounded up, `least` if that is more, and
 * all if there are fewer. */
size_t fed_draw_count(double fraction, size_t members, size_t least);

#endif

/* lab/pace.h - how long things take in virtual time.
 *
 * A model, not a measurement: numbers that are touched, times a constant, times how slow the agent
 * is; a link has a latency and its sender an uplink.  So virtual time is a function of a file and
 * a seed, the same on every machine, and rounds and pairs are measured with one clock.  The
 * constants are near one core of a desktop machine of 2020 and a line of 100 Mbit/s. */
#ifndef LAB_PACE_H
#define LAB_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "graph/graph.h"
#include "kge/eval.h"
#include "kge/model.h"
#include "kge/train.h"

enum {
	PACE_LATENCY_MS = 10,
	PACE_BYTES_A_MS = 12500, /* of an agent's uplink, which its messages share */
	PACE_STEP_MS = 20,	 /* any work with rows: of an exchange, of a conversation */
	PACE_DISK_MS = 2,
};

struct pace {
	double slow;   /* 1: like the others; 10: whatever it computes takes ten times as long */
	double away_s; /* there for so many seconds, without a network for as many, and so on; 0:
			* always there */
};

/* An epoch over so many triples of tables like these. */
double pace_epoch_ms(const struct kge_train_config *t, size_t triples, const struct kge_emb *like);
/* Ranking `triples` of a split, against all entities. */
double pace_ranking_ms(const struct kge_protocol *p, size_t triples, const struct kge_emb *like);
/* What that is for this agent: whole milliseconds, one at least. */
uint64_t pace_takes_ms(const struct pace *p, double ms);

bool pace_is_away(const struct pace *p, uint64_t now_ms);
/* When it goes or comes next; UINT64_MAX: never. */
uint64_t pace_turns_ms(const struct pace *p, uint64_t now_ms);

#endif

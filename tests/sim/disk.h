/* tests/sim/disk.h - a disk in memory with the store's batch semantics: what was
 * applied is there after a crash, in order, and nothing else is. */
#ifndef SIM_DISK_H
#define SIM_DISK_H

#include "graph/graph.h"
#include "store/store.h"

struct disk {
	struct store_peer *peers;
	size_t n_peers;
	struct store_signal *queue;
	size_t n_queue;
	struct store_session *sessions;
	size_t n_sessions;
	struct store_alignment *alignments;
	size_t n_alignments;
	struct store_intersection *intersections;
	size_t n_intersections;
	struct ledger_signed *entries; /* of all pairs, as written */
	size_t n_entries;
	struct store_step *steps; /* the oldest first */
	size_t n_steps;
	struct store_step_day *step_days;
	size_t n_step_days;
	struct store_judgement *judgements;
	size_t n_judgements;
	struct ledger_training training; /* what the statements come to */
	bool has_best, has_latest;
	bool no_steps, no_days; /* planted: it keeps none of what it answered, or no sums */
	bool no_verdicts;	/* planted: no judgements */
	bool keeps_first;	/* planted: it keeps the first of the latest tables */
	struct store_checkpoint best, latest;
	struct kge_emb *tables, *latest_tables; /* of the best, and of the last round ... */
	struct kge_emb *beside_tables;		/* ... and the copy beside it; NULL: none */
	struct kge_emb *arm_tables; /* STORE_ALONE_LATEST, for the owner alone; NULL: none */
	struct store_meta meta[6];
	size_t n_meta;
	struct store_round *rounds; /* as they came first; each owns its members */
	size_t n_rounds;
	struct store *real; /* may be NULL: the same batches in SQLite */
};

void disk_release(struct disk *d);
/* A backup: all of it but the real store; to is released before. */
void disk_copy(struct disk *to, const struct disk *from);
/* 0, or what the real store said. */
int disk_apply(struct disk *d, const struct store_batch *b, struct err *e);
/* What a restarting core is given; disk_unload() afterwards. */
void disk_load(const struct disk *d, const uint8_t sign_public[32], struct store_core *out);
void disk_unload(const struct disk *d, struct store_core *core);
/* What the store's store_chain_entries() gives; returns how many.  out has room for max. */
size_t disk_entries(const struct disk *d, const uint8_t a[32], const uint8_t b[32], uint64_t first,
		    size_t max, struct ledger_signed *out);
/* NULL: it has none. */
const struct store_meta *disk_meta(const struct disk *d, const char *key);
/* NULL: none of this peer's rows. */
const struct store_judgement *disk_judgement(const struct disk *d, const uint8_t peer[32]);
/* What is on record of a member of a round; NULL: nothing. */
const struct store_round_member *
disk_round_member(const struct disk *d, const uint8_t id[STORE_ROUND], const uint8_t key[32]);
/* Entries of the pair (a, b) by Ed25519 keys, in order; at most max, returns how many. */
size_t disk_chain(const struct disk *d, const uint8_t a[32], const uint8_t b[32],
		  const struct ledger_signed **out, size_t max);

#endif

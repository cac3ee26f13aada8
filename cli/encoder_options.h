/* cli/encoder_options.h - what every command that trains encoders of queries is told. */
#ifndef CLI_ENCODER_OPTIONS_H
#define CLI_ENCODER_OPTIONS_H

#include "cli/cli.h"
#include "encode/train.h"

struct encoder_options {
	struct encode_settings is;
	struct encode_train_options how; /* threads 0: agent.yaml's, or 1 */
	uint64_t count, valid_count;	 /* queries to be drawn, of a type (and owner) */
	uint64_t answers;		 /* of a query, at most */
	uint64_t patience;		 /* looks without a better one; 0: any */
};

extern const struct encoder_options encoder_options_default; /* but for counts and patience */

enum {
	KEY_DIM = 0x5800,
	KEY_PARTICLES,
	KEY_BATCH,
	KEY_RATE,
	KEY_DECAY,
	KEY_SMOOTHING,
	KEY_DROPOUT,
	KEY_THREADS,
	KEY_SEED,
	KEY_COUNT,
	KEY_VALID_COUNT,
	KEY_ANSWERS,
	KEY_PATIENCE,
};

/* Rows of a command's options; its defaults of --count, --valid-count and --patience as texts. */
#define ENCODER_OPTIONS(count, valid, patience)                                                     \
	{ "encoder", 'e', "WORD", 0, "gqe (default), q2p or tree-lstm", 0 },                        \
		{ "dim", KEY_DIM, "N", 0, "numbers of a vector (default 400)", 0 },                 \
		{ "particles", KEY_PARTICLES, "N", 0, "q2p: vectors of a query (default 2)", 0 },   \
		{ "batch", KEY_BATCH, "N", 0, "queries a step (default 512)", 0 },                  \
		{ "lr", KEY_RATE, "X", 0, "learning rate of AdamW (default 0.001)", 0 },            \
		{ "decay", KEY_DECAY, "X", 0, "weight decay (default 0.01)", 0 },                   \
		{ "smoothing", KEY_SMOOTHING, "X", 0, "of labels (default 0.1)", 0 },               \
		{ "dropout", KEY_DROPOUT, "X", 0, "(default 0.1)", 0 },                             \
		{ "threads", KEY_THREADS, "N", 0, "(default: train.threads)", 0 },                  \
		{ "seed", KEY_SEED, "N", 0, "of all draws (default 1)", 0 },                        \
		{ "count",                                                                          \
		  KEY_COUNT,                                                                        \
		  "N",                                                                              \
		  0,                                                                                \
		  "train queries to draw, of each type and graph (default " count ")",              \
		  0 },                                                                              \
		{ "valid-count",                                                                    \
		  KEY_VALID_COUNT,                                                                  \
		  "N",                                                                              \
		  0,                                                                                \
		  "valid queries to draw, as well (default " valid ")",                             \
		  0 },                                                                              \
		{ "answers", KEY_ANSWERS, "N", 0, "draw no query with more answers (default 1000)", \
		  0 },                                                                              \
		{ "patience",                                                                       \
		  KEY_PATIENCE,                                                                     \
		  "N",                                                                              \
		  0,                                                                                \
		  "looks without a better one (default " patience "; 0: any)",                      \
		  0 },

/* ARGP_ERR_UNKNOWN where the key is no one's here. */
error_t encoder_options_parse(struct encoder_options *o, int key, char *arg,
			      const struct argp_state *state);

#endif

#include "cli/encoder_options.h"

#include "base/parallel.h"

const struct encoder_options encoder_options_default = {
	.is = { ENCODE_GQE, 400, 2 },
	.how = { 512, 0.001f, 0.01f, 0.1f, 0.1f, 0, 1 },
	.answers = 1000,
};

static error_t parse_draws(struct encoder_options *o, int key, const char *arg,
			   const struct argp_state *state)
{
	switch (key) {
	case KEY_COUNT:
		o->count = cli_count(state, arg, "--count", 1, 10000000);
		return 0;
	case KEY_VALID_COUNT:
		o->valid_count = cli_count(state, arg, "--valid-count", 1, 1000000);
		return 0;
	case KEY_ANSWERS:
		o->answers = cli_count(state, arg, "--answers", 1, UINT32_MAX);
		return 0;
	case KEY_PATIENCE:
		o->patience = cli_count(state, arg, "--patience", 0, UINT32_MAX);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

error_t encoder_options_parse(struct encoder_options *o, int key, char *arg,
			      const struct argp_state *state)
{
	switch (key) {
	case 'e':
		o->is.kind = (enum encode_kind)cli_word(state, arg, "--encoder", encode_kind_words);
		return 0;
	case KEY_DIM:
		o->is.dim = (uint32_t)cli_count(state, arg, "--dim", 2, ENCODE_DIM_MAX);
		if (o->is.dim % 2 != 0)
			argp_error(state, "--dim: an even number is wanted");
		return 0;
	case KEY_PARTICLES:
		o->is.particles =
			(uint32_t)cli_count(state, arg, "--particles", 1, ENCODE_PARTICLES_MAX);
		return 0;
	case KEY_BATCH:
		o->how.batch = (uint32_t)cli_count(state, arg, "--batch", 1, 1 << 16);
		return 0;
	case KEY_RATE:
		o->how.lr = (float)cli_number(state, arg, "--lr", 1e-8, 1);
		return 0;
	case KEY_DECAY:
		o->how.decay = (float)cli_number(state, arg, "--decay", 0, 1);
		return 0;
	case KEY_SMOOTHING:
		o->how.smoothing = (float)cli_number(state, arg, "--smoothing", 0, 0.99);
		return 0;
	case KEY_DROPOUT:
		o->how.dropout = (float)cli_number(state, arg, "--dropout", 0, 0.99);
		return 0;
	case KEY_THREADS:
		o->how.threads = (uint32_t)cli_count(state, arg, "--threads", 1, PARALLEL_MAX);
		return 0;
	case KEY_SEED:
		o->how.seed = cli_count(state, arg, "--seed", 0, INT64_MAX);
		return 0;
	default:
		return parse_draws(o, key, arg, state);
	}
}

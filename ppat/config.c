/* ppat/config.c - defaults, limits and the canonical encoding of a contract. */
#include "ppat/config.h"

#include <math.h>
#include <string.h>

#include <sodium.h>

#include "dp/lattice.h"

/* The same fields; versions of their own say that the client's rows travel unrotated, that a
 * share of the rows is lasting, and that they travel in 16 bits a value. */
enum {
	CONFIG_VERSION = 3,
	CONFIG_UNROTATED = 1,
	CONFIG_LASTING = 2,
	CONFIG_SHORT = 4,
	CONFIG_LAST = CONFIG_VERSION + CONFIG_UNROTATED + CONFIG_LASTING + CONFIG_SHORT,
};

/* Order on the wire; append only, with a new version. */
#define U32_FIELDS(X)                                                                              \
	X(translator)                                                                              \
	X(student)                                                                                 \
	X(mechanism)                                                                               \
	X(loss)                                                                                    \
	X(what)                                                                                    \
	X(scale)                                                                                   \
	X(center)                                                                                  \
	X(client_dim)                                                                              \
	X(host_dim)                                                                                \
	X(slots)                                                                                   \
	X(teachers)                                                                                \
	X(teacher_hidden)                                                                          \
	X(student_hidden)                                                                          \
	X(batch)                                                                                   \
	X(steps)                                                                                   \
	X(max_labels)                                                                              \
	X(reserve_labels)                                                                          \
	X(max_virtual)                                                                             \
	X(mode)                                                                                    \
	X(pool)                                                                                    \
	X(teacher_steps)                                                                           \
	X(student_steps)                                                                           \
	X(generator_steps)
#define F64_FIELDS(X) X(noise) X(lr) X(momentum) X(beta) X(aligned_share) X(multiplier) X(clip)
#define U64_FIELDS(X) X(student_seed) X(select_seed)

#define COUNT(name) +1 /* NOLINT(bugprone-macro-parentheses): terms of one sum */
enum {
	ENCODED = 4 + 4 * (U32_FIELDS(COUNT)) + 8 * (F64_FIELDS(COUNT)) + 8 * (U64_FIELDS(COUNT)),
};

void ppat_config_defaults(struct ppat_config *c, enum ppat_translator t, uint32_t slots,
			  uint32_t client_dim, uint32_t host_dim)
{
	*c = (struct ppat_config){
		.translator = t,
		.student = PPAT_STUDENT_CLIENT,
		.mechanism = PPAT_LAPLACE,
		.loss = PPAT_SATURATING,
		.what = PPAT_ENTITIES,
		.scale = t == PPAT_PROCRUSTES ? PPAT_SCALE_NONE : PPAT_SCALE_UNIT,
		.client_dim = client_dim,
		.host_dim = host_dim,
		.slots = slots,
		.teachers = 4,
		.teacher_hidden = 128,
		.student_hidden = 128,
		.batch = 32,
		.steps = t == PPAT_PPAT ? 1000 : 0,
		.max_labels = t == PPAT_PPAT ? 32000 : 0,
		.reserve_labels = 1024,
		.mode = PPAT_MODE_PAPER,
		.teacher_steps = 1,
		.student_steps = 1,
		.generator_steps = 1,
		.noise = 0.05,
		.lr = 0.02,
		.momentum = 0.9,
		.beta = 0.01,
		.aligned_share = 1.0,
		.multiplier = t == PPAT_MAP ? 1.6 : 0,
		.clip = 1.0,
		.student_seed = 1,
		.select_seed = 1,
	};
}

/* Generated rows that fit into one message: the most that batch and pool can be. */
static uint32_t ppat_config_fit(const struct ppat_config *c)
{
	uint32_t fit = PPAT_CHUNK_MAX / (4 * (c->host_dim > 0 ? c->host_dim : 1));
	return fit < PPAT_BATCH_MAX ? fit : PPAT_BATCH_MAX;
}

void ppat_config_budget(struct ppat_config *c, uint32_t pool, uint32_t teacher_steps,
			uint32_t student_steps, uint32_t generator_steps)
{
	uint32_t fit = ppat_config_fit(c);
	c->mode = PPAT_MODE_BUDGET;
	pool = pool < fit ? pool : fit;
	c->pool = pool > c->batch ? pool : 0;
	c->teacher_steps = teacher_steps;
	c->student_steps = student_steps;
	c->generator_steps = generator_steps;
}

double ppat_config_sigma(uint32_t teachers)
{
	return teachers > 80 ? teachers / 2.0 : 40.0;
}

bool ppat_config_large(struct ppat_config *c, uint32_t rows)
{
	if (rows < 500)
		return false;
	c->teachers = rows / 50 < 250 ? rows / 50 : 250;
	c->mechanism = PPAT_GAUSSIAN;
	c->noise = ppat_config_sigma(c->teachers);
	return true;
}

struct bound {
	const char *field;
	uint64_t value, low, high;
};

static int check_bounds(const struct bound *b, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (b[i].value < b[i].low || b[i].value > b[i].high)
			return err_set(e, ERR_USAGE,
				       "translation setting %s is %llu, allowed are %llu to %llu",
				       b[i].field, (unsigned long long)b[i].value,
				       (unsigned long long)b[i].low, (unsigned long long)b[i].high);
	return 0;
}

/* v in [low, high]; a NaN is in no interval. */
static int check_real(const char *field, double v, double low, double high, struct err *e)
{
	if (v >= low && v <= high)
		return 0;
	return err_set(e, ERR_USAGE, "translation setting %s is %g, allowed are %g to %g", field, v,
		       low, high);
}

static int check_integers(const struct ppat_config *c, struct err *e)
{
	const struct bound bounds[] = {
		{ "translator", c->translator, PPAT_PPAT, PPAT_MAP },
		{ "student", c->student, PPAT_STUDENT_CLIENT, PPAT_STUDENT_HOST },
		{ "mechanism", c->mechanism, PPAT_LAPLACE, PPAT_GAUSSIAN },
		{ "mode", c->mode, PPAT_MODE_PAPER, PPAT_MODE_BUDGET },
		{ "teacher_steps", c->teacher_steps, 1, PPAT_TEACHER_STEPS_MAX },
		{ "student_steps", c->student_steps, 1, PPAT_STUDENT_STEPS_MAX },
		{ "generator_steps", c->generator_steps, 1, PPAT_GENERATOR_STEPS_MAX },
		{ "loss", c->loss, PPAT_SATURATING, PPAT_NON_SATURATING },
		{ "what", c->what, PPAT_ENTITIES, PPAT_BOTH },
		{ "scale", c->scale, 0, PPAT_SCALES - 1 },
		{ "center", c->center, 0, 1 },
		{ "client_dim", c->client_dim, 1, PPAT_DIM_MAX },
		{ "host_dim", c->host_dim, 1, PPAT_DIM_MAX },
		{ "slots", c->slots, 1, PPAT_SLOTS_MAX },
		{ "slots * dim", (uint64_t)c->slots * (c->client_dim + (uint64_t)c->host_dim), 1,
		  PPAT_FLOATS_MAX },
		{ "teachers", c->teachers, 1, PPAT_TEACHERS_MAX },
		{ "teacher_hidden", c->teacher_hidden, 1, PPAT_HIDDEN_MAX },
		{ "student_hidden", c->student_hidden, 1, PPAT_HIDDEN_MAX },
		{ "teachers * teacher_hidden * host_dim",
		  (uint64_t)c->teachers * c->teacher_hidden * c->host_dim, 1, PPAT_WEIGHTS_MAX },
		{ "batch", c->batch, 1, ppat_config_fit(c) },
		{ "pool", c->pool, c->pool == 0 ? 0 : (uint64_t)c->batch + 1, ppat_config_fit(c) },
		{ "steps", c->steps, 0, PPAT_STEPS_MAX },
		{ "reserve_labels", c->reserve_labels, c->batch, UINT32_MAX },
		{ "max_virtual", c->max_virtual, 0, PPAT_VIRTUAL_MAX },
	};
	return check_bounds(bounds, sizeof(bounds) / sizeof(*bounds), e);
}

static int check_reals(const struct ppat_config *c, struct err *e)
{
	double low = c->mechanism == PPAT_LAPLACE ? 1e-6 : PPAT_SIGMA_MIN;
	double high = c->mechanism == PPAT_LAPLACE ? 20 : 1e9;
	int rc;
	if ((rc = check_real("noise", c->noise, low, high, e)) != 0)
		return rc;
	if ((rc = check_real("lr", c->lr, 0, 10, e)) != 0)
		return rc;
	if ((rc = check_real("momentum", c->momentum, 0, 0.9999, e)) != 0)
		return rc;
	if ((rc = check_real("beta", c->beta, 0, 0.5, e)) != 0)
		return rc;
	if ((rc = check_real("aligned_share", c->aligned_share, 1e-9, 1, e)) != 0)
		return rc;
	if ((rc = check_real("clip", c->clip, 1e-3, 100, e)) != 0 || c->multiplier == 0)
		return rc;
	return check_real("multiplier", c->multiplier, DP_MULTIPLIER_MIN, DP_MULTIPLIER_MAX, e);
}

/* A release must depend on one row at a time, and be all that is sent. */
static int check_release(const struct ppat_config *c, struct err *e)
{
	if (c->translator == PPAT_MAP && c->multiplier == 0)
		return err_set(e, ERR_USAGE,
			       "translation setting multiplier is 0: a map is released with noise");
	if (!ppat_config_releases(c))
		return c->multiplier == 0 ? 0
					  : err_set(e, ERR_USAGE,
						    "translation setting multiplier is for "
						    "procrustes and map: PPAT sends labels");
	if (c->center != 0 || c->scale == PPAT_SCALE_RMS)
		return err_set(e, ERR_USAGE,
			       "translation settings center and scale rms are computed from all "
			       "rows, and a release is about one: it allows none and unit");
	if (c->translator == PPAT_PROCRUSTES && c->max_virtual > 0)
		return err_set(e, ERR_USAGE,
			       "translation setting max_virtual is %u, but virtual neighbours "
			       "would travel without the noise that the rows have",
			       c->max_virtual);
	if (c->multiplier * c->clip > PPAT_SIZE_MAX)
		return err_set(e, ERR_USAGE,
			       "translation setting multiplier is %g with a clip of %g: their "
			       "product may be %g",
			       c->multiplier, c->clip, PPAT_SIZE_MAX);
	return 0;
}

/* Unrotated rows are on the client's axes: a change of each row, or by one matrix, loses the
 * axes. */
static int check_unrotated(const struct ppat_config *c, struct err *e)
{
	if (!c->unrotated)
		return 0;
	if (c->translator != PPAT_PROCRUSTES || c->multiplier != 0)
		return err_set(e, ERR_USAGE,
			       "translation setting unrotated is for procrustes without noise");
	if (c->client_dim != c->host_dim)
		return err_set(e, ERR_USAGE,
			       "translation setting unrotated is for rows of one width, not of %u "
			       "and %u",
			       c->client_dim, c->host_dim);
	if (c->center != 0 || c->scale != PPAT_SCALE_NONE)
		return err_set(e, ERR_USAGE,
			       "translation setting unrotated is for rows as they are: center 0, "
			       "scale none");
	return 0;
}

/* Combinations that would break the guarantee or make no sense. */
static int check_together(const struct ppat_config *c, struct err *e)
{
	if (c->translator == PPAT_PPAT && (c->center != 0 || c->scale == PPAT_SCALE_RMS))
		return err_set(
			e, ERR_USAGE,
			"translation settings center and scale rms are computed from all rows "
			"and would let one row reach every teacher: PPAT allows none and unit");
	if (c->mode == PPAT_MODE_PAPER && (c->pool != 0 || c->teacher_steps != 1 ||
					   c->student_steps != 1 || c->generator_steps != 1))
		return err_set(e, ERR_USAGE,
			       "translation setting mode is paper, where every label is used once: "
			       "pool must be 0, and teacher_steps, student_steps and "
			       "generator_steps 1");
	if (c->translator != PPAT_PPAT && c->max_labels != 0)
		return err_set(
			e, ERR_USAGE,
			"translation setting max_labels is %u, but only PPAT draws labels: 0",
			c->max_labels);
	if (c->center != 0 && (c->what != PPAT_ENTITIES || c->max_virtual > 0))
		return err_set(e, ERR_USAGE,
			       "translation setting center is for entity rows alone: relation rows "
			       "are differences and have no place to be moved");
	if (c->short_rows && (c->translator != PPAT_PROCRUSTES || c->multiplier != 0))
		return err_set(e, ERR_USAGE,
			       "translation setting short_rows is for procrustes without noise");
	if (check_unrotated(c, e) != 0)
		return e->code;
	return check_release(c, e);
}

/* What else is done with each weight and each value takes the time of so many rows, or columns,
 * of a product. */
static const double beside_products = 32;

/* Multiplications and additions of the client's steps (adversarial_client.c, student.c). */
static double client_work(const struct ppat_config *c)
{
	bool square = c->client_dim == c->host_dim; /* W is made orthogonal */
	double rows = c->batch + beside_products;
	double student = 4.0 * c->student_hidden * rows * (c->host_dim + beside_products);
	double generator =
		4.0 * c->client_dim * c->host_dim * (rows + (square ? c->host_dim : 0.0));

	if (c->translator != PPAT_PPAT)
		return 0;
	if (c->student == PPAT_STUDENT_HOST)
		return generator;
	return c->student_steps * student + c->generator_steps * (generator + student);
}

int ppat_config_check_work(const struct ppat_config *c, struct err *e)
{
	double work = client_work(c);
	if (work <= PPAT_CLIENT_WORK_MAX)
		return 0;
	return err_set(e, ERR_USAGE,
		       "a batch of labels takes the client %.2g operations, %.2g at most: lower "
		       "ppat.student_steps (%u), ppat.generator_steps (%u), ppat.hidden (%u) or "
		       "ppat.batch (%u) of the host",
		       work, PPAT_CLIENT_WORK_MAX, c->student_steps, c->generator_steps,
		       c->student_hidden, c->batch);
}

int ppat_config_check(const struct ppat_config *c, struct err *e)
{
	int rc = check_integers(c, e);
	if (rc == 0)
		rc = check_reals(c, e);
	if (rc == 0)
		rc = check_together(c, e);
	return rc != 0 ? rc : ppat_config_check_work(c, e);
}

bool ppat_config_releases(const struct ppat_config *c)
{
	return c->translator != PPAT_PPAT && c->multiplier > 0;
}

double ppat_config_clip(const struct ppat_config *c)
{
	return c->scale == PPAT_SCALE_UNIT && c->clip > 1 ? 1 : c->clip;
}

uint32_t ppat_config_pool(const struct ppat_config *c)
{
	return c->pool > 0 ? c->pool : c->batch;
}

uint32_t ppat_config_steps(const struct ppat_config *c)
{
	if (c->translator != PPAT_PPAT)
		return 0;
	uint32_t paid = c->max_labels / c->batch;
	return paid < c->steps ? paid : c->steps;
}

static void put_le(struct buf *out, uint64_t v, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		uint8_t b = (uint8_t)(v >> (8 * i));
		buf_add(out, &b, 1);
	}
}

static uint64_t get_le(const uint8_t **at, size_t bytes)
{
	uint64_t v = 0;
	for (size_t i = 0; i < bytes; i++)
		v |= (uint64_t)(*at)[i] << (8 * i);
	*at += bytes;
	return v;
}

static uint64_t bits_of(double v)
{
	uint64_t u;
	memcpy(&u, &v, sizeof(u));
	return u;
}

static double double_of(uint64_t u)
{
	double v;
	memcpy(&v, &u, sizeof(v));
	return v;
}

void ppat_config_encode(const struct ppat_config *c, struct buf *out)
{
	uint32_t version = CONFIG_VERSION;
	version += c->unrotated ? CONFIG_UNROTATED : 0;
	version += c->lasting ? CONFIG_LASTING : 0;
	version += c->short_rows ? CONFIG_SHORT : 0;
	put_le(out, version, 4);
#define PUT32(name)  put_le(out, c->name, 4);
#define PUTF64(name) put_le(out, bits_of(c->name), 8);
#define PUT64(name)  put_le(out, c->name, 8);
	U32_FIELDS(PUT32)
	F64_FIELDS(PUTF64)
	U64_FIELDS(PUT64)
}

int ppat_config_decode(struct ppat_config *c, const uint8_t *bytes, size_t n, struct err *e)
{
	if (n < 4)
		return err_set(e, ERR_PROTO, "translation settings have %zu bytes, want %d", n,
			       (int)ENCODED);
	uint64_t version = get_le(&bytes, 4);
	if (version < CONFIG_VERSION || version > CONFIG_LAST)
		return err_set(e, ERR_VERSION, "translation settings have version %llu, ours is %d",
			       (unsigned long long)version, (int)CONFIG_LAST);
	if (n != ENCODED)
		return err_set(e, ERR_PROTO, "translation settings have %zu bytes, want %d", n,
			       (int)ENCODED);
	version -= CONFIG_VERSION;
	*c = (struct ppat_config){ .unrotated = (version & CONFIG_UNROTATED) != 0,
				   .lasting = (version & CONFIG_LASTING) != 0,
				   .short_rows = (version & CONFIG_SHORT) != 0 };
#define GET32(name)  c->name = (uint32_t)get_le(&bytes, 4);
#define GETF64(name) c->name = double_of(get_le(&bytes, 8));
#define GET64(name)  c->name = get_le(&bytes, 8);
	U32_FIELDS(GET32)
	F64_FIELDS(GETF64)
	U64_FIELDS(GET64)
	return ppat_config_check(c, e);
}

void ppat_config_hash(const struct ppat_config *c, uint8_t out[32])
{
	struct buf b;
	buf_init(&b);
	ppat_config_encode(c, &b);
	crypto_generichash(out, 32, b.base, b.len, NULL, 0);
	buf_release(&b);
}

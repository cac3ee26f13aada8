#include <arpa/inet.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/text.h"
#include "config/table_internal.h"
#include "dp/pld.h"
#include "dp/release.h"
#include "dp/subsampled.h"
#include "kge/dp_train.h"

/* ---- time ---- */

uint64_t config_ms(double seconds)
{
	return (uint64_t)(seconds * 1000.0 + 0.5);
}

/* ---- votes and releases ---- */

uint32_t config_teachers(const struct config *c, uint64_t rows)
{
	uint64_t t = rows / 50;

	return c->ppat.teachers > 0 ? c->ppat.teachers : t < 4 ? 4 : t > 250 ? 250 : (uint32_t)t;
}

double config_votes_noise(const struct config *c, uint32_t teachers)
{
	if (c->ppat.noise == PPAT_LAPLACE)
		return c->ppat.lambda;
	return c->ppat.sigma > 0 ? c->ppat.sigma : ppat_config_sigma(teachers);
}

double config_release_noise(const struct config *c)
{
	if (c->privacy.release_noise > 0)
		return c->privacy.release_noise;
	if (c->privacy.accountant == CONFIG_PLD)
		return dp_pld_release_multiplier(DP_RELEASE_DISCRETE, c->privacy.release_epsilon,
						 c->privacy.delta);
	return dp_release_multiplier(DP_RELEASE_DISCRETE, c->privacy.release_epsilon,
				     c->privacy.delta);
}

/* ---- rounds ---- */

uint32_t config_min_members(const struct config *c)
{
	return c->rounds.min_members > c->rounds.min_holders ? c->rounds.min_members
							     : c->rounds.min_holders;
}

void config_fed_settings(const struct config *c, struct fed_settings *out)
{
	fed_settings_init(out, fed_method_find(c->rounds.method));
	memcpy(out->value, c->rounds.value, sizeof(out->value));
	out->topology = c->rounds.topology;
	out->min_holders = c->rounds.min_holders;
	out->fraction = c->rounds.fraction;
	out->join_ms = (uint32_t)config_ms(c->rounds.join_s);
	out->train_ms = (uint32_t)config_ms(c->rounds.train_s);
	out->stage_ms = (uint32_t)config_ms(c->rounds.stage_s);
	out->secret_bits = (uint32_t)c->rounds.secret * 32;
	out->secret_clip = c->rounds.secret_clip;
	out->equal_start = c->rounds.equal_start;
	out->start_seed = c->rounds.start_seed;
}

/* ---- ppat ---- */

void config_ppat_terms(const struct config *c, struct ppat_config *t)
{
	t->student = c->federation.student;
	t->teacher_hidden = t->student_hidden = c->ppat.hidden;
	t->steps = c->ppat.steps;
	if (c->ppat.mode == PPAT_MODE_BUDGET)
		ppat_config_budget(t, c->ppat.pool, c->ppat.teacher_steps, c->ppat.student_steps,
				   c->ppat.generator_steps);
	t->lr = c->ppat.lr;
	t->momentum = c->ppat.momentum;
	t->beta = c->ppat.beta;
	t->loss = c->ppat.loss; /* methods 3.2, step 4 */
	t->reserve_labels =
		c->privacy.reserve_labels > t->batch ? c->privacy.reserve_labels : t->batch;
	if (c->federation.unit_rows)
		t->scale = PPAT_SCALE_UNIT;
}

void config_fix_paper(struct config *c)
{
	if (c->ppat.mode != PPAT_MODE_PAPER)
		return;
	c->ppat.teachers = 4;
	c->ppat.noise = PPAT_LAPLACE;
	c->ppat.lambda = 0.05;
	c->ppat.batch = 32;
	c->ppat.pool = 0;
	c->ppat.teacher_steps = c->ppat.student_steps = c->ppat.generator_steps = 1;
}

/* ---- model, training, scores ---- */

const struct kge_model *config_model(const struct config *c)
{
	return kge_model_find(c->model.kind);
}

/* At 10, which suits L1, models with the L2 distance hardly learn. */
double config_gamma(const struct config *c)
{
	if (c->model.gamma > 0)
		return c->model.gamma;
	return config_model(c)->metric == KGE_L2 ? 1 : 10;
}

static struct kge_emb tables_shape(const struct config *c, uint32_t n_ent, uint32_t n_rel)
{
	return kge_emb_shape(config_model(c), c->model.dim, c->model.rel_dim,
			     (float)config_gamma(c), n_ent, n_rel);
}

static double training_bytes(const struct config *c, const struct kge_emb *shape, size_t triples)
{
	return kge_train_bytes(&c->train.kge, shape, triples) + KGE_TRIPLE_BYTES * (double)triples;
}

static double limit_of(const struct config *c)
{
	return (double)c->train.memory_mib * (1 << 20);
}

bool config_rel_dim_fits(const struct config *c)
{
	return c->model.rel_dim == 0 || c->model.rel_dim == c->model.dim ||
	       config_model(c)->own_rel_dim;
}

/* Nothing has the size of tables that cannot be. */
static double bytes_to_train(const struct config *c, uint32_t n_ent, uint32_t n_rel, size_t triples)
{
	struct kge_emb shape;

	if (!config_rel_dim_fits(c))
		return 0;
	shape = tables_shape(c, n_ent, n_rel);
	return training_bytes(c, &shape, triples);
}

bool config_past_memory(const struct config *c, uint32_t n_ent, uint32_t n_rel, size_t triples,
			double *bytes)
{
	double takes = bytes_to_train(c, n_ent, n_rel, triples), ram = mem_ram_bytes();
	double limit = limit_of(c);

	if (bytes != NULL)
		*bytes = limit > 0 || takes <= ram ? limit : 0.75 * ram;
	return c->train.partitions > 0 || takes > (limit > 0 ? limit : ram);
}

static int check_bytes(const struct kge_emb *shape, const char *what, double bytes, struct err *e)
{
	const char *lower = shape->model->own_rel_dim ? "model.dim or model.rel_dim" : "model.dim";
	const double gib = 1 << 30, most = mem_most_bytes();

	if (!(bytes > most))
		return 0;
	return err_set(e, ERR_USAGE,
		       "model.dim: %s has %zu numbers for each of %u entities and %zu for each of "
		       "%u relations here; %s %.1f GiB of memory, and there are %.1f: lower %s",
		       shape->model->name, shape->ent_floats, shape->n_ent, shape->rel_floats,
		       shape->n_rel, what, bytes / gib, most / gib, lower);
}

int config_check_tables(const struct config *c, uint32_t n_ent, uint32_t n_rel, struct err *e)
{
	struct kge_emb shape = tables_shape(c, n_ent, n_rel);
	double floats =
		(double)n_ent * (double)shape.ent_floats + (double)n_rel * (double)shape.rel_floats;

	return check_bytes(&shape, "they take", floats * sizeof(float), e);
}

/* Settings that shrink what a batch takes. */
static const char *lower_batch(const struct config *c)
{
	const struct kge_train_config *k = &c->train.kge;

	if (k->negatives == 0)
		return "lower train.batch or train.threads";
	if (k->shared_chunk > 1 || k->sampling == KGE_SAMPLING_TYPED ||
	    config_model(c)->project != NULL)
		return "lower train.batch, train.negatives or train.threads";
	return "lower train.batch, train.negatives or train.threads, or let positives share "
	       "negatives (train.shared_chunk)";
}

/* Tables are to blame where they are too large without any batch. */
static int check_batch_size(const struct config *c, const struct kge_emb *shape, size_t triples,
			    struct err *e)
{
	const struct kge_train_config *k = &c->train.kge;
	const double gib = 1 << 30, most = mem_most_bytes(),
		     all = training_bytes(c, shape, triples),
		     tables = kge_train_table_bytes(k, shape) + KGE_TRIPLE_BYTES * (double)triples;

	if (tables > most || !(all > most))
		return check_bytes(shape, "training them takes", all, e);
	return err_set(e, ERR_USAGE,
		       "train.batch: %zu at a time with %u threads take %.1f GiB of memory, tables "
		       "and triples %.1f, and there are %.1f: %s",
		       kge_train_batch_most(k, shape->n_ent, triples), k->threads,
		       (all - tables) / gib, tables / gib, most / gib, lower_batch(c));
}

int config_check_size(const struct config *c, uint32_t n_ent, uint32_t n_rel, size_t triples,
		      struct err *e)
{
	struct kge_emb shape = tables_shape(c, n_ent, n_rel);
	double bytes = training_bytes(c, &shape, triples), limit = limit_of(c);
	int rc = check_batch_size(c, &shape, triples, e);

	if (rc != 0)
		return rc;
	if (c->train.partitions > 0)
		return err_set(
			e, ERR_USAGE,
			"train.partitions: only fkge train trains past memory; leave it out");
	if (limit > 0 && bytes > limit)
		return err_set(
			e, ERR_USAGE,
			"train.memory_mib: only fkge train trains past memory; leave it out, "
			"or let it be %.0f at least",
			bytes / (1 << 20) + 1);
	return kge_train_check_size(&c->train.kge, n_ent, e);
}

struct kge_emb *config_tables(const struct config *c, uint32_t n_ent, uint32_t n_rel, struct rng *r)
{
	struct kge_emb *tables = kge_emb_new_dims(config_model(c), c->model.dim, c->model.rel_dim,
						  (float)config_gamma(c), n_ent, n_rel, r);

	if (c->train.kge.dp.epsilon > 0)
		kge_dp_first_rows(tables, NULL, NULL);
	return tables;
}

bool config_fits(const struct config *c, const struct kge_emb *tables)
{
	uint32_t rel_dim = c->model.rel_dim > 0 ? c->model.rel_dim : c->model.dim;

	return strcmp(tables->model->name, c->model.kind) == 0 && tables->dim == c->model.dim &&
	       tables->rel_dim == rel_dim;
}

const struct kge_protocol *config_protocol(const struct config *c)
{
	return kge_protocol_find(c->eval.protocol);
}

bool config_rows_charged(const struct config *c)
{
	return c->privacy.noisy_rows || (c->federation.roles == CONFIG_HOST_ONLY &&
					 c->federation.translator != CONFIG_PROCRUSTES);
}

double config_dp_noise(const struct config *c)
{
	const struct kge_dp_config *dp = &c->train.kge.dp;

	if (!(dp->epsilon > 0) || c->train.dp_noise > 0)
		return c->train.dp_noise;
	return dp_subsampled_noise(dp->rate, (uint64_t)c->train.epochs * kge_dp_epoch_steps(dp),
				   dp->epsilon, dp->delta);
}

struct kge_train_config config_training(const struct config *c)
{
	struct kge_train_config train = c->train.kge;

	train.dp.noise = config_dp_noise(c);
	return train;
}

void config_score_name(const struct config *c, char out[CONFIG_SCORE_NAME])
{
	if (c->train.kge.dp.epsilon > 0)
		snprintf(out, CONFIG_SCORE_NAME, CONFIG_SCORE_PRIVATE);
	else if (c->eval.valid_limit == 0)
		snprintf(out, CONFIG_SCORE_NAME, "%s", c->eval.protocol);
	else
		snprintf(out, CONFIG_SCORE_NAME, "%s/%u", c->eval.protocol, c->eval.valid_limit);
}

bool config_score_is_private(const char *name)
{
	return strcmp(name, CONFIG_SCORE_PRIVATE) == 0 || strcmp(name, CONFIG_SCORE_ORDERED) == 0;
}

/* Names but localhost are not looked up: what they stand for may change. */
static bool is_loopback(const char *host)
{
	struct in_addr four;
	struct in6_addr six;

	if (inet_pton(AF_INET, host, &four) == 1)
		return ntohl(four.s_addr) >> 24 == 127;
	return inet_pton(AF_INET6, host, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

int config_http_place(const char *text, struct config_http_place *out, struct err *e)
{
	*out = (struct config_http_place){ .path = text };
	if (strcmp(text, "off") == 0)
		return 0;
	if (strchr(text, '/') != NULL) {
		out->kind = CONFIG_HTTP_SOCKET;
		return 0;
	}
	out->kind = CONFIG_HTTP_LOOPBACK;
	if (config_address(text, out->host, &out->port, NULL) != 0)
		return err_set(e, ERR_USAGE,
			       "'%.200s' is neither host:port nor a path; write 127.0.0.1:7448, a "
			       "path with a /, or off",
			       text);
	if (strcmp(out->host, "localhost") == 0)
		strcpy(out->host, "127.0.0.1");
	if (!is_loopback(out->host))
		return err_set(e, ERR_USAGE,
			       "other machines may reach '%.200s', and HTTP is for this one alone; "
			       "write 127.0.0.1, [::1] or localhost, or the path of a Unix socket, "
			       "and let others in by a tunnel",
			       text);
	return 0;
}

int config_address(const char *text, char host[256], uint16_t *port, struct err *e)
{
	const char *colon = strrchr(text, ':');
	size_t n = colon != NULL ? (size_t)(colon - text) : 0;
	const char *begin = text;
	char *end;
	long p;

	if (n >= 2 && text[0] == '[' && text[n - 1] == ']') {
		begin++;
		n -= 2;
	} else if (n > 0 && memchr(text, ':', n) != NULL) {
		n = 0; /* an IPv6 address needs its brackets */
	}
	if (n == 0 || n > 255 || colon[1] < '0' || colon[1] > '9' || !text_printable(begin, n) ||
	    memchr(begin, ' ', n) != NULL)
		return err_set(e, ERR_USAGE, "'%.300s' is no address: write host:port", text);
	p = strtol(colon + 1, &end, 10);
	if (*end != '\0' || p > 65535)
		return err_set(e, ERR_USAGE, "'%.300s': a port is a number from 0 to 65535", text);
	memcpy(host, begin, n);
	host[n] = '\0';
	*port = (uint16_t)p;
	return 0;
}

bool config_is_wildcard(const char *host)
{
	static const struct in6_addr every = IN6ADDR_ANY_INIT;
	struct in6_addr six;
	struct in_addr four;

	if (inet_aton(host, &four) != 0)
		return four.s_addr == INADDR_ANY;
	if (inet_pton(AF_INET6, host, &six) != 1)
		return false;
	if (IN6_IS_ADDR_V4MAPPED(&six)) /* ::ffff:0.0.0.0 */
		return memcmp(&six.s6_addr[12], &every.s6_addr[12], 4) == 0;
	return memcmp(&six, &every, sizeof(six)) == 0;
}

/* Also one that is written as ::ffff:127.0.0.1. */
static bool is_for_others(const char *host)
{
	const char *plain = strncasecmp(host, "::ffff:", 7) == 0 ? host + 7 : host;

	return !config_is_wildcard(host) && !is_loopback(plain) &&
	       strcasecmp(host, "localhost") != 0;
}

const char *config_told_address(const struct config *c)
{
	char host[256];
	uint16_t port;

	if (c->advertise[0] != '\0')
		return c->advertise;
	if (config_address(c->listen, host, &port, NULL) != 0 || port == 0 || !is_for_others(host))
		return "";
	return c->listen;
}

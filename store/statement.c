#include "store/statement.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

#include "dp/subsampled.h"
#include "store/codec.h"

#define ULL(x) ((unsigned long long)(x))

static const char magic[8] = { 'f', 'k', 'g', 'e', 'S', 'T', 'M', '1' };
static const char domain[] = "fkge ledger statement 1";

const char *ledger_sampled_name(enum ledger_sampled s)
{
	static const char *const names[] = { "?", "gaussian", "discrete gaussian" };

	return (size_t)s < sizeof(names) / sizeof(names[0]) ? names[s] : "?";
}

/* ---- bytes ---- */

void ledger_statement_encode(const struct ledger_statement *s, uint8_t out[LEDGER_STATEMENT_BYTES])
{
	uint8_t *at = out;

	put_bytes(&at, magic, sizeof(magic));
	put_uint(&at, s->sampled, 1);
	put_uint(&at, s->adjacency, 1);
	put_uint(&at, 0, 6);
	put_bytes(&at, s->agent, LEDGER_KEY);
	put_bytes(&at, s->lineage, 32);
	put_uint(&at, s->sequence, 8);
	put_bytes(&at, s->previous, LEDGER_HASH);
	put_uint(&at, (uint64_t)s->time_ms, 8);
	put_uint(&at, s->steps, 8);
	put_uint(&at, s->records, 8);
	put_double(&at, s->rate);
	put_double(&at, s->noise);
	put_double(&at, s->clip);
	put_double(&at, s->delta);
	put_bytes(&at, s->tables, 32);
	assert(at == out + LEDGER_STATEMENT_BYTES);
}

static void take_fields(struct reader *r, struct ledger_statement *s)
{
	s->sampled = (enum ledger_sampled)take_max(r, 1, LEDGER_SAMPLED_DISCRETE, "noise");
	s->adjacency = (enum ledger_adjacency)take_max(r, 1, LEDGER_TRIPLE, "adjacency");
	take_max(r, 6, 0, "padding");
	take_bytes(r, s->agent, LEDGER_KEY);
	take_bytes(r, s->lineage, 32);
	s->sequence = take_count(r, "sequence");
	take_bytes(r, s->previous, LEDGER_HASH);
	s->time_ms = (int64_t)take_count(r, "time");
	s->steps = take_count(r, "steps");
	s->records = take_count(r, "records");
	s->rate = take_double(r, "rate");
	s->noise = take_double(r, "noise");
	s->clip = take_double(r, "clip");
	s->delta = take_double(r, "delta");
	take_bytes(r, s->tables, 32);
}

int ledger_statement_decode(struct ledger_statement *s, const uint8_t *bytes, size_t n,
			    struct err *err)
{
	struct reader r = { bytes + sizeof(magic), NULL };

	memset(s, 0, sizeof(*s));
	if (n != LEDGER_STATEMENT_BYTES || memcmp(bytes, magic, sizeof(magic)) != 0)
		return err_set(err, ERR_LEDGER, "not a statement about training, version 1");
	take_fields(&r, s);
	if (r.bad != NULL)
		return err_set(err, ERR_LEDGER, "statement %llu: field %s is out of range",
			       ULL(s->sequence), r.bad);
	return 0;
}

/* ---- hash and signature ---- */

void ledger_statement_hash(const struct ledger_statement *s, uint8_t out[LEDGER_HASH])
{
	uint8_t bytes[LEDGER_STATEMENT_BYTES];

	ledger_statement_encode(s, bytes);
	crypto_generichash(out, LEDGER_HASH, bytes, sizeof(bytes), NULL, 0);
}

enum { DOMAIN = sizeof(domain) - 1, SIGNED_BYTES = DOMAIN + LEDGER_HASH };

static void signed_bytes(uint8_t out[SIGNED_BYTES], const uint8_t hash[LEDGER_HASH])
{
	memcpy(out, domain, DOMAIN);
	memcpy(out + DOMAIN, hash, LEDGER_HASH);
}

void ledger_statement_sign(struct ledger_stated *out, const struct ledger_stated *all, size_t n,
			   const uint8_t key[LEDGER_SECRET])
{
	uint8_t text[SIGNED_BYTES];

	out->statement.sequence = n > 0 ? all[n - 1].statement.sequence + 1 : 1;
	memset(out->statement.previous, 0, LEDGER_HASH);
	if (n > 0)
		memcpy(out->statement.previous, all[n - 1].hash, LEDGER_HASH);
	ledger_statement_hash(&out->statement, out->hash);
	signed_bytes(text, out->hash);
	crypto_sign_detached(out->signature, NULL, text, sizeof(text), key);
}

int ledger_statement_check_signature(const struct ledger_stated *s, struct err *err)
{
	uint8_t hash[LEDGER_HASH], text[SIGNED_BYTES];

	ledger_statement_hash(&s->statement, hash);
	if (memcmp(hash, s->hash, sizeof(hash)) != 0)
		return err_set(err, ERR_LEDGER,
			       "statement %llu was edited: its contents do not give its hash",
			       ULL(s->statement.sequence));
	signed_bytes(text, hash);
	if (crypto_sign_verify_detached(s->signature, text, sizeof(text), s->statement.agent) != 0)
		return err_set(err, ERR_LEDGER, "statement %llu: bad signature of its agent",
			       ULL(s->statement.sequence));
	return 0;
}

/* ---- the rules ---- */

static int check_figures(const struct ledger_statement *s, struct err *err)
{
	const struct dp_subsampled m = { s->rate, s->noise };
	int rc;

	if (s->sampled == 0 || s->adjacency != LEDGER_TRIPLE || !(s->clip > 0) || s->steps == 0 ||
	    s->steps > DP_STEPS_MAX || !(s->delta > 0 && s->delta < 1))
		return err_set(err, ERR_LEDGER, "statement %llu: its figures are not complete",
			       ULL(s->sequence));
	rc = dp_subsampled_check(&m, err);
	if (rc != 0) {
		err_prefix(err, "statement %llu", ULL(s->sequence));
		return ERR_LEDGER;
	}
	return 0;
}

int ledger_statement_check(const struct ledger_stated *before, const struct ledger_stated *s,
			   struct err *err)
{
	static const uint8_t none[LEDGER_HASH];
	uint64_t want = before != NULL ? before->statement.sequence + 1 : 1;

	if (s->statement.sequence != want)
		return err_set(err, ERR_LEDGER,
			       "statement %llu stands where statement %llu must: one was deleted "
			       "or moved",
			       ULL(s->statement.sequence), ULL(want));
	if (memcmp(s->statement.previous, before != NULL ? before->hash : none, LEDGER_HASH) != 0)
		return err_set(err, ERR_LEDGER,
			       "statement %llu does not continue the one before it", ULL(want));
	if (before != NULL && memcmp(s->statement.agent, before->statement.agent, LEDGER_KEY) != 0)
		return err_set(err, ERR_LEDGER, "statement %llu is of another agent", ULL(want));
	return check_figures(&s->statement, err);
}

/* ---- what it comes to ---- */

static bool counts(const struct ledger_stated *s, const uint8_t *lineage)
{
	return lineage == NULL || memcmp(s->statement.lineage, lineage, 32) == 0;
}

static bool same_step(const struct ledger_stated *a, const struct ledger_stated *b)
{
	return a->statement.rate == b->statement.rate && a->statement.noise == b->statement.noise;
}

static void add_curve(double sum[DP_ORDERS], const struct dp_subsampled *m, uint64_t steps)
{
	double some[DP_ORDERS];

	dp_rdp_subsampled(m, steps, some);
	for (size_t o = 0; o < DP_ORDERS; o++)
		sum[o] += some[o];
}

int ledger_statements_epsilon(const struct ledger_stated *at, size_t n, const uint8_t *lineage,
			      double *epsilon, double *delta, struct err *err)
{
	double sum[DP_ORDERS] = { 0 };
	uint64_t steps = 0;

	*epsilon = 0;
	*delta = 1;
	for (size_t k = 0; k < n; k++) {
		const struct ledger_statement *s = &at[k].statement;
		struct dp_subsampled m = { s->rate, s->noise };

		if (!counts(&at[k], lineage))
			continue;
		if (dp_subsampled_check(&m, err) != 0)
			return ERR_USAGE;
		*delta = s->delta < *delta ? s->delta : *delta;
		steps += s->steps;
		/* Trainings that go on as before are one curve. */
		if (k + 1 < n && counts(&at[k + 1], lineage) && same_step(&at[k], &at[k + 1]))
			continue;
		add_curve(sum, &m, steps);
		steps = 0;
	}
	if (*delta < 1)
		*epsilon = dp_rdp_tight(sum, *delta).epsilon;
	return 0;
}

#include "store/ledger/statement.h"

#include <assert.h>
#include <math.h>
#include <sodium.h>
#include <string.h>

#include "dp/pld_steps.h"
#include "dp/subsampled.h"
#include "store/ledger/chain_internal.h"
#include "store/ledger/codec_internal.h"

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
	put_double(&at, s->epsilon);
	put_uint(&at, s->total, 8);
	put_uint(&at, 0, 8);
	put_uint(&at, 0, 8);
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
	s->epsilon = take_double(r, "epsilon");
	s->total = take_count(r, "total");
	take_max(r, 8, 0, "padding");
	take_max(r, 8, 0, "padding");
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

void ledger_statement_sign(struct ledger_stated *s, const uint8_t key[LEDGER_SECRET])
{
	uint8_t text[SIGNED_BYTES];

	ledger_statement_hash(&s->statement, s->hash);
	signed_bytes(text, s->hash);
	crypto_sign_detached(s->signature, NULL, text, sizeof(text), key);
}

int ledger_statement_check_signature(const struct ledger_stated *s, struct ledger_keys *agent,
				     struct err *err)
{
	uint8_t hash[LEDGER_HASH], text[SIGNED_BYTES];

	ledger_statement_hash(&s->statement, hash);
	if (memcmp(hash, s->hash, sizeof(hash)) != 0)
		return err_set(err, ERR_LEDGER,
			       "statement %llu was edited: its contents do not give its hash",
			       ULL(s->statement.sequence));
	signed_bytes(text, hash);
	return ledger_keys_check(agent, s->signature, text, sizeof(text), s->statement.agent,
				 "statement", s->statement.sequence, "signature of its agent", err);
}

/* ---- the account ---- */

double ledger_training_delta(const struct ledger_training *t, double delta)
{
	return t->delta > 0 ? fmin(t->delta, delta) : delta;
}

static double epsilon_at(const struct ledger_training *t, double delta)
{
	return t->steps > 0 ? dp_rdp_tight(t->rdp, delta).epsilon : 0;
}

double ledger_training_epsilon(const struct ledger_training *t, double delta)
{
	return epsilon_at(t, ledger_training_delta(t, delta));
}

/* Statements of the same rate and noise add up.  Returns how many others there are; one more than
 * out[] has room for if they are too many, or too many steps. */
static size_t gather_steps(const struct ledger_stated *at, size_t n,
			   struct dp_pld_steps out[LEDGER_PRICES_MAX])
{
	size_t found = 0, k;

	for (size_t i = 0; i < n; i++) {
		const struct dp_subsampled m = { at[i].statement.rate, at[i].statement.noise };

		for (k = 0; k < found; k++)
			if (out[k].mechanism.rate == m.rate && out[k].mechanism.noise == m.noise)
				break;
		if (k == LEDGER_PRICES_MAX || at[i].statement.steps > DP_STEPS_MAX)
			return LEDGER_PRICES_MAX + 1;
		if (k == found)
			out[found++] = (struct dp_pld_steps){ m, 0 };
		out[k].steps += at[i].statement.steps;
	}
	return found;
}

double ledger_training_epsilon_pld(const struct ledger_stated *at, size_t n, double delta)
{
	struct dp_pld_steps steps[LEDGER_PRICES_MAX];
	size_t found = gather_steps(at, n, steps);
	struct ledger_training curves = { 0 };

	for (size_t i = 0; i < n; i++)
		ledger_training_force(&curves, &at[i]);
	if (found > LEDGER_PRICES_MAX)
		return ledger_training_epsilon(&curves, delta);
	return fmin(ledger_training_epsilon(&curves, delta),
		    dp_pld_steps_epsilon(steps, found, ledger_training_delta(&curves, delta)));
}

uint64_t ledger_training_left(const struct ledger_training *t, const struct ledger_statement *like)
{
	const struct dp_subsampled m = { like->rate, like->noise };
	uint64_t fit = dp_subsampled_steps(&m, t->rdp, like->epsilon,
					   ledger_training_delta(t, like->delta));

	return fit < DP_STEPS_MAX - t->steps ? fit : DP_STEPS_MAX - t->steps;
}

/* Statements mostly repeat the mechanism of the one before. */
static void add_steps(struct ledger_training *t, const struct ledger_statement *s)
{
	const struct dp_subsampled m = { s->rate, s->noise };

	if (t->sequence == 0 || s->rate != t->last.rate || s->noise != t->last.noise)
		dp_rdp_subsampled(&m, 1, t->step);
	for (int i = 0; i < DP_ORDERS; i++)
		t->rdp[i] += (double)s->steps * t->step[i];
	t->steps += s->steps;
}

/* Figures that have a price. */
static int check_figures(const struct ledger_statement *s, struct err *err)
{
	const struct dp_subsampled m = { s->rate, s->noise };

	if (s->sampled == 0 || s->adjacency != LEDGER_TRIPLE || !(s->clip > 0) || s->steps == 0 ||
	    s->steps > DP_STEPS_MAX || !(s->delta > 0 && s->delta < 1) || !(s->epsilon > 0))
		return err_set(err, ERR_USAGE, "its figures are not complete");
	return dp_subsampled_check(&m, err);
}

int ledger_training_next(struct ledger_statement *s, const struct ledger_training *t,
			 const struct ledger_statement *like, uint64_t steps, int64_t time_ms,
			 struct err *err)
{
	uint64_t left;
	int rc;

	*s = *like;
	s->sequence = t->sequence + 1;
	memcpy(s->previous, t->head, LEDGER_HASH);
	s->time_ms = time_ms > 0 ? time_ms : 0;
	s->steps = steps;
	s->total = t->steps + steps;
	rc = check_figures(s, err);
	if (rc != 0)
		return rc;
	left = ledger_training_left(t, like);
	return steps <= left
		       ? 0
		       : err_set(err, ERR_BUDGET,
				 "private training has spent epsilon %.4f of %.4f at delta "
				 "%g: %llu steps do not fit, %llu do; the tables stay "
				 "as they are, or train.dp.epsilon must allow more",
				 ledger_training_epsilon(t, like->delta), like->epsilon,
				 ledger_training_delta(t, like->delta), ULL(steps), ULL(left));
}

static int check_place(const struct ledger_training *t, const struct ledger_statement *s,
		       struct err *err)
{
	if (s->sequence != t->sequence + 1)
		return err_set(err, ERR_LEDGER,
			       "statement %llu stands where statement %llu must: one was deleted "
			       "or moved",
			       ULL(s->sequence), ULL(t->sequence + 1));
	if (memcmp(s->previous, t->head, LEDGER_HASH) != 0)
		return err_set(err, ERR_LEDGER,
			       "statement %llu does not continue the one before it",
			       ULL(s->sequence));
	if (t->sequence > 0 && memcmp(s->agent, t->agent, LEDGER_KEY) != 0)
		return err_set(err, ERR_LEDGER, "statement %llu is of another agent",
			       ULL(s->sequence));
	if (s->total != t->steps + s->steps)
		return err_set(err, ERR_LEDGER,
			       "statement %llu: %llu steps and %llu before them are not %llu",
			       ULL(s->sequence), ULL(s->steps), ULL(t->steps), ULL(s->total));
	return 0;
}

int ledger_training_check(const struct ledger_training *t, const struct ledger_statement *s,
			  struct err *err)
{
	struct ledger_training after = *t;
	int rc = check_place(t, s, err);
	double delta = t->sealed ? s->delta : ledger_training_delta(t, s->delta), epsilon;

	if (rc != 0)
		return rc;
	if (check_figures(s, err) != 0) {
		err_prefix(err, "statement %llu", ULL(s->sequence));
		return ERR_LEDGER;
	}
	add_steps(&after, s);
	epsilon = epsilon_at(&after, delta);
	if (epsilon <= s->epsilon * (1 + 1e-9)) /* the last digits are the machine's */
		return 0;
	return err_set(err, ERR_BUDGET,
		       "statement %llu: %llu steps cost epsilon %.4f at delta %g, its cap is %.4f",
		       ULL(s->sequence), ULL(after.steps), epsilon, delta, s->epsilon);
}

void ledger_training_force(struct ledger_training *t, const struct ledger_stated *s)
{
	const struct ledger_statement *x = &s->statement;

	if (t->sequence == 0)
		memcpy(t->agent, x->agent, LEDGER_KEY);
	if (check_figures(x, NULL) == 0) {
		add_steps(t, x);
		t->delta = ledger_training_delta(t, x->delta);
		t->last = *x;
	}
	t->sequence = x->sequence;
	memcpy(t->head, s->hash, LEDGER_HASH);
}

int ledger_training_add(struct ledger_training *t, const struct ledger_stated *s,
			struct ledger_keys *agent, struct err *err)
{
	int rc = ledger_training_check(t, &s->statement, err);

	if (rc == 0)
		rc = ledger_statement_check_signature(s, agent, err);
	if (rc == 0)
		ledger_training_force(t, s);
	return rc;
}

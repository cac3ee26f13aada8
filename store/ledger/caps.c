#include "store/ledger/verify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "dp/accountant.h"
#include "dp/pld.h"
#include "dp/rdp.h"
#include "dp/release.h"
#include "store/ledger/chain_internal.h"

#define ULL(x) ((unsigned long long)(x))

/* The price that an accountant of dp/ is asked about: of votes, or of releases. */
struct price {
	bool release;
	enum dp_accountant accountant;
	struct dp_mechanism votes;
	enum dp_release noise;
	double param, delta;
};

static int release_price(const struct ledger_mechanism *m, struct price *out, struct err *err)
{
	out->release = true;
	out->noise = m->noise == LEDGER_RELEASE ? DP_RELEASE_GAUSSIAN : DP_RELEASE_DISCRETE;
	out->accountant = m->accountant == LEDGER_PLD ? DP_PLD : DP_EXACT;
	if (m->accountant != LEDGER_EXACT && m->accountant != LEDGER_PLD)
		return err_set(err, ERR_USAGE,
			       "accountant %s judges votes only; releases: exact or pld",
			       ledger_accountant_name(m->accountant));
	return dp_release_check(m->param, err);
}

/* The ledger's numbers are for ever, dp's may change: translated here alone. */
static int to_dp(const struct ledger_mechanism *m, struct price *out, struct err *err)
{
	static const enum dp_accountant accountants[] = { DP_EXACT, DP_EXACT, DP_PAPER, DP_GNMAX,
							  DP_PLD };

	*out = (struct price){ .param = m->param, .delta = m->delta };
	if (m->noise == LEDGER_NO_NOISE || m->accountant == LEDGER_NO_ACCOUNTANT)
		return err_set(err, ERR_USAGE, "a mechanism without noise or accountant");
	if (!(m->delta > 0 && m->delta < 1))
		return err_set(err, ERR_USAGE, "delta must be between 0 and 1, it is %g", m->delta);
	if (ledger_is_release(m->noise))
		return release_price(m, out, err);
	out->votes.noise = m->noise == LEDGER_LAPLACE ? DP_LAPLACE : DP_GAUSSIAN;
	out->votes.param = m->param;
	out->votes.teachers = m->teachers;
	out->accountant = accountants[m->accountant];
	return dp_accountant_check(out->accountant, &out->votes, err);
}

static double releases_epsilon(const void *ctx, uint64_t count)
{
	const struct price *p = ctx;
	double epsilon = dp_release_epsilon(p->noise, p->param, count, p->delta);

	if (p->accountant != DP_PLD)
		return epsilon;
	return fmin(epsilon,
		    dp_pld_epsilon(NULL, 0, dp_pld_releases(p->noise, p->param, count), p->delta));
}

static double price_epsilon(const struct price *p, uint64_t count)
{
	return p->release ? releases_epsilon(p, count)
			  : dp_epsilon_public(p->accountant, &p->votes, count, p->delta);
}

static uint64_t price_within(const struct price *p, double epsilon)
{
	return p->release ? dp_count_within(releases_epsilon, p, epsilon)
			  : dp_labels_within(&p->votes, p->accountant, epsilon, p->delta);
}

static void price_curve(const struct price *p, double one[DP_ORDERS])
{
	if (p->release)
		dp_release_rdp(p->param, 1, one);
	else
		dp_rdp_vote(&p->votes, one);
}

bool ledger_is_dear(const struct ledger_mechanism *m)
{
	return m->accountant == LEDGER_PLD && !ledger_is_release(m->noise);
}

bool ledger_same_price(const struct ledger_mechanism *a, const struct ledger_mechanism *b)
{
	return a->noise == b->noise && a->accountant == b->accountant && a->param == b->param &&
	       a->teachers == b->teachers && a->delta == b->delta;
}

bool ledger_counts_with(const struct ledger_mechanism *a, const struct ledger_mechanism *b)
{
	if (ledger_is_release(a->noise) || ledger_is_release(b->noise))
		return ledger_same_price(a, b);
	return true;
}

/* ---- the sum over partners ---- */

static void add_spend(struct ledger_lineage *l, const struct ledger_mechanism *m, uint64_t labels)
{
	size_t k = 0;

	if (labels == 0)
		return;
	while (k < l->n && !ledger_same_price(&l->at[k].mechanism, m))
		k++;
	if (k == l->n) {
		l->at = mem_resize(l->at, l->n + 1, sizeof(*l->at));
		l->at[l->n++] = (struct ledger_spend){ *m, 0 };
	}
	l->at[k].labels += labels;
}

static bool of_this_lineage(const uint8_t of[32], const uint8_t *lineage)
{
	return lineage == NULL || memcmp(of, lineage, 32) == 0;
}

static void add_account(struct ledger_lineage *l, const struct ledger_account *a,
			const uint8_t *lineage)
{
	for (size_t k = 0; k < a->n_lineages; k++)
		if (of_this_lineage(a->lineages[k].id, lineage))
			add_spend(l, &a->lineages[k].mechanism, a->lineages[k].labels);
}

static void add_waiting(struct ledger_lineage *l, const struct ledger_account *a,
			const uint8_t *lineage)
{
	for (size_t k = 0; k < a->n_waiting; k++)
		if (of_this_lineage(a->waiting[k].lineage, lineage))
			add_spend(l, &a->waiting[k].mechanism, a->waiting[k].labels);
}

/* As totals of entries say. */
static void account_sum(struct ledger_lineage *l, const struct ledger_account *a)
{
	memset(l, 0, sizeof(*l));
	memcpy(l->id, a->lineage, sizeof(l->id));
	for (size_t k = 0; k < a->n_prices; k++)
		add_spend(l, &a->prices[k].mechanism, a->prices[k].labels);
}

void ledger_account_sum(struct ledger_lineage *l, const struct ledger_account *a)
{
	account_sum(l, a);
	add_waiting(l, a, NULL);
}

void ledger_lineage_sum(struct ledger_lineage *l, const uint8_t id[32],
			const uint8_t host[LEDGER_KEY], const struct ledger_chain *const *chains,
			size_t n)
{
	memset(l, 0, sizeof(*l));
	memcpy(l->id, id, sizeof(l->id));
	for (size_t k = 0; k < n; k++) {
		int side = ledger_chain_side(chains[k], host);

		if (side >= 0)
			add_account(l, &chains[k]->account[side], id);
	}
}

void ledger_lineage_spent(struct ledger_lineage *l, const uint8_t *id,
			  const uint8_t host[LEDGER_KEY], const struct ledger_chain *const *chains,
			  size_t n)
{
	memset(l, 0, sizeof(*l));
	if (id != NULL)
		memcpy(l->id, id, sizeof(l->id));
	for (size_t k = 0; k < n; k++) {
		int side = ledger_chain_side(chains[k], host);

		if (side < 0)
			continue;
		add_account(l, &chains[k]->account[side], id);
		add_waiting(l, &chains[k]->account[side], id);
	}
}

void ledger_lineage_release(struct ledger_lineage *l)
{
	free(l->at);
	l->at = NULL;
	l->n = 0;
}

uint64_t ledger_lineage_count(const struct ledger_lineage *l, const struct ledger_mechanism *m)
{
	uint64_t labels = 0;

	for (size_t k = 0; k < l->n; k++)
		if (ledger_counts_with(&l->at[k].mechanism, m))
			labels += l->at[k].labels;
	return labels;
}

uint64_t ledger_lineage_labels(const struct ledger_lineage *l)
{
	static const struct ledger_mechanism votes;

	return ledger_lineage_count(l, &votes);
}

/* ---- epsilon ---- */

/* Each mechanism's own Renyi curve is a true bound whichever accountant its contract
 * names, and curves add up. */
static int epsilon_of_several(const struct ledger_spend *at, size_t n, double *epsilon,
			      struct err *err)
{
	double sum[DP_ORDERS] = { 0 }, one[DP_ORDERS], delta = 1;

	for (size_t k = 0; k < n; k++) {
		struct price p;
		int rc = to_dp(&at[k].mechanism, &p, err);

		if (rc != 0)
			return rc;
		price_curve(&p, one);
		for (size_t o = 0; o < DP_ORDERS; o++)
			sum[o] += (double)at[k].labels * one[o];
		delta = fmin(delta, at[k].mechanism.delta);
	}
	*epsilon = dp_rdp_tight(sum, delta).epsilon;
	return 0;
}

/* What dp/pld.h is asked for; free votes. */
struct losses {
	struct dp_pld_votes *votes;
	size_t n;
	double releases, delta;
};

static int losses_of(const struct ledger_spend *at, size_t n, struct losses *out, struct err *err)
{
	int rc = 0;

	*out = (struct losses){ .votes = mem_array(n + 1, sizeof(*out->votes)), .delta = 1 };
	for (size_t k = 0; k < n && rc == 0; k++) {
		struct price p;

		rc = to_dp(&at[k].mechanism, &p, err);
		out->delta = fmin(out->delta, p.delta);
		if (rc == 0 && p.release)
			out->releases += dp_pld_releases(p.noise, p.param, at[k].labels);
		else if (rc == 0)
			out->votes[out->n++] = (struct dp_pld_votes){ p.votes, at[k].labels };
	}
	return rc;
}

int ledger_epsilon_pld(const struct ledger_spend *at, size_t n, double *epsilon, struct err *err)
{
	struct losses l;
	int rc = losses_of(at, n, &l, err);

	*epsilon = 0;
	if (rc == 0 && n > 0)
		rc = epsilon_of_several(at, n, epsilon, err);
	if (rc == 0 && n > 0)
		*epsilon = fmin(*epsilon, dp_pld_epsilon(l.votes, l.n, l.releases, l.delta));
	free(l.votes);
	return rc;
}

static bool all_name_pld(const struct ledger_spend *at, size_t n)
{
	for (size_t k = 0; k < n; k++)
		if (at[k].mechanism.accountant != LEDGER_PLD)
			return false;
	return true;
}

int ledger_epsilon(const struct ledger_spend *at, size_t n, double *epsilon, struct err *err)
{
	struct price p;
	int rc;

	*epsilon = 0;
	if (n == 0)
		return 0;
	if (n > 1)
		return all_name_pld(at, n) ? ledger_epsilon_pld(at, n, epsilon, err)
					   : epsilon_of_several(at, n, epsilon, err);
	rc = to_dp(&at->mechanism, &p, err);
	if (rc == 0)
		*epsilon = price_epsilon(&p, at->labels);
	return rc;
}

int ledger_epsilon_up_to(const struct ledger_spend *at, size_t n, double cap, double *epsilon,
			 struct err *err)
{
	if (n > 1 && epsilon_of_several(at, n, epsilon, NULL) == 0 && *epsilon <= cap)
		return 0;
	return ledger_epsilon(at, n, epsilon, err);
}

int ledger_epsilon_now(const struct ledger_spend *at, size_t n, double *epsilon, struct err *err)
{
	struct losses l = { 0 };
	bool known = n == 0 || !all_name_pld(at, n) || losses_of(at, n, &l, NULL) != 0 ||
		     dp_pld_is_known(l.votes, l.n, l.releases, l.delta);

	free(l.votes);
	if (known)
		return ledger_epsilon(at, n, epsilon, err);
	return epsilon_of_several(at, n, epsilon, err) != 0
		       ? ERR_USAGE
		       : err_set(err, ERR_BUSY, "it takes a while to work out");
}

int ledger_caps_from(const struct ledger_mechanism *m, double epsilon_pair, double epsilon_lineage,
		     struct ledger_caps *out, struct err *err)
{
	struct price p;
	int rc;

	if (m->teachers > LEDGER_TEACHERS_MAX)
		return err_set(err, ERR_USAGE, "votes of %u teachers: no session has more than %d",
			       m->teachers, LEDGER_TEACHERS_MAX);
	rc = to_dp(m, &p, err);
	if (rc != 0)
		return rc;
	if (!(isfinite(epsilon_pair) && epsilon_pair >= 0 && isfinite(epsilon_lineage) &&
	      epsilon_lineage >= 0))
		return err_set(err, ERR_USAGE, "an epsilon must be a number from 0 up");
	out->epsilon_pair = epsilon_pair;
	out->epsilon_lineage = epsilon_lineage;
	out->pair = price_within(&p, epsilon_pair);
	out->lineage = price_within(&p, epsilon_lineage);
	return 0;
}

void ledger_caps_lower(struct ledger_caps *c, const struct ledger_caps *other)
{
	c->pair = other->pair < c->pair ? other->pair : c->pair;
	c->lineage = other->lineage < c->lineage ? other->lineage : c->lineage;
	c->epsilon_pair = fmin(c->epsilon_pair, other->epsilon_pair);
	c->epsilon_lineage = fmin(c->epsilon_lineage, other->epsilon_lineage);
}

/* The sum with some labels more; free the array. */
static struct ledger_lineage with_more(const struct ledger_lineage *l,
				       const struct ledger_mechanism *m, uint64_t labels)
{
	struct ledger_lineage after = { .n = l->n };

	after.at = mem_array(l->n + 1, sizeof(*after.at));
	if (l->n > 0)
		memcpy(after.at, l->at, l->n * sizeof(*after.at));
	add_spend(&after, m, labels);
	return after;
}

int ledger_account_epsilon(const struct ledger_account *a, uint64_t more, double *epsilon,
			   struct err *err)
{
	struct ledger_lineage l, after;
	int rc;

	ledger_account_sum(&l, a);
	after = with_more(&l, &a->mechanism, more);
	rc = ledger_epsilon(after.at, after.n, epsilon, err);
	ledger_lineage_release(&after);
	ledger_lineage_release(&l);
	return rc;
}

int ledger_quote(const struct ledger_chain *c, const uint8_t host[LEDGER_KEY],
		 const struct ledger_lineage *lineage, uint64_t labels, struct ledger_quote *out,
		 struct err *e)
{
	int side = ledger_chain_side(c, host), rc;
	const struct ledger_account *a = &c->account[side < 0 ? 0 : side];
	struct ledger_lineage after, pair;

	memset(out, 0, sizeof(*out));
	if (side < 0 || !a->contracted || labels > LEDGER_COUNT_MAX)
		return err_set(e, ERR_NOTFOUND, "there is no contract for labels with this peer");
	ledger_account_sum(&pair, a);
	after = with_more(lineage, &a->mechanism, labels);
	out->labels = labels;
	out->pair_spent = a->spent;
	out->pair_cap = a->caps.pair;
	out->lineage_spent = ledger_lineage_count(lineage, &a->mechanism);
	out->lineage_cap = a->caps.lineage;
	rc = ledger_account_epsilon(a, 0, &out->pair_epsilon, e);
	if (rc == 0)
		rc = ledger_account_epsilon(a, labels, &out->pair_epsilon_after, e);
	if (rc == 0)
		rc = ledger_epsilon(lineage->at, lineage->n, &out->lineage_epsilon, e);
	if (rc == 0)
		rc = ledger_epsilon(after.at, after.n, &out->lineage_epsilon_after, e);
	out->fits = rc == 0 && !a->closed && a->spent + labels <= a->caps.pair &&
		    out->lineage_spent + labels <= a->caps.lineage &&
		    (pair.n <= 1 || out->pair_epsilon_after <= a->caps.epsilon_pair) &&
		    (after.n <= 1 || out->lineage_epsilon_after <= a->caps.epsilon_lineage);
	ledger_lineage_release(&after);
	ledger_lineage_release(&pair);
	return rc;
}

/* ---- the lineage's rule, and the pair's where prices differ ---- */

/* The number of labels that e adds to the lineage's, and the number that it takes away. */
static void change_of(const struct ledger_chain *c, const struct ledger_entry *e, uint64_t *plus,
		      uint64_t *minus)
{
	const struct ledger_open *o = ledger_chain_open(c, e->host, e->session);

	*plus = e->kind == LEDGER_RESERVE ? e->count : 0;
	*minus = e->kind == LEDGER_SETTLE && o != NULL ? o->labels - e->count : 0;
}

static int check_mixed(const struct ledger_lineage *l, const struct ledger_entry *e, double cap,
		       const char *of_what, struct err *err)
{
	struct ledger_lineage after = with_more(l, &e->mechanism, e->count);
	double epsilon;
	int rc = 0;

	if (after.n > LEDGER_PRICES_MAX) {
		rc = err_set(err, ERR_LEDGER, "%s was spent at too many different prices", of_what);
	} else if (after.n > 1) {
		rc = ledger_epsilon_up_to(after.at, after.n, cap, &epsilon, err);
		if (rc == 0 && !(epsilon <= cap))
			rc = err_set(err, ERR_BUDGET,
				     "%llu labels more would bring %s to epsilon %.4g, the cap is "
				     "%.4g",
				     ULL(e->count), of_what, epsilon, cap);
	}
	ledger_lineage_release(&after);
	return rc;
}

int ledger_pair_check(const struct ledger_account *a, const struct ledger_entry *e, struct err *err)
{
	struct ledger_lineage l;
	int rc;

	account_sum(&l, a);
	rc = check_mixed(&l, e, e->caps.epsilon_pair, "what this peer has seen", err);
	ledger_lineage_release(&l);
	return rc;
}

int ledger_lineage_check(const struct ledger_lineage *l, const struct ledger_chain *c,
			 const struct ledger_entry *e, struct err *err)
{
	uint64_t plus, minus, want;

	change_of(c, e, &plus, &minus);
	want = ledger_lineage_count(l, &e->mechanism) + plus - minus;
	if (e->total_lineage != want)
		return err_set(err, ERR_LEDGER,
			       "entry %llu (%s): %llu labels of the lineage in total, but its "
			       "chains say %llu",
			       ULL(e->sequence), ledger_kind_name(e->kind), ULL(e->total_lineage),
			       ULL(want));
	return plus > 0 ? check_mixed(l, e, e->caps.epsilon_lineage, "this data toward all peers",
				      err)
			: 0;
}

/* Spends that are back at zero go: they are of no sum, and their delta counts no more. */
static void take_back(struct ledger_lineage *l, const struct ledger_mechanism *m, uint64_t labels)
{
	size_t k = 0;

	while (k < l->n && !ledger_same_price(&l->at[k].mechanism, m))
		k++;
	if (k == l->n)
		return;
	l->at[k].labels -= labels < l->at[k].labels ? labels : l->at[k].labels;
	if (l->at[k].labels == 0)
		memmove(&l->at[k], &l->at[k + 1], (--l->n - k) * sizeof(*l->at));
}

void ledger_lineage_take(struct ledger_lineage *l, const struct ledger_chain *c,
			 const struct ledger_entry *e)
{
	uint64_t plus, minus;

	change_of(c, e, &plus, &minus);
	add_spend(l, &e->mechanism, plus);
	if (minus > 0)
		take_back(l, &e->mechanism, minus);
}

/* ---- drafts ---- */

/* The draft with these terms, and the totals of what is counted together with them. */
static void draft(struct ledger_entry *e, const struct ledger_chain *c,
		  const struct ledger_draft *d, enum ledger_kind kind,
		  const struct ledger_mechanism *m, const struct ledger_caps *caps)
{
	int side = ledger_chain_side(c, d->host);

	memset(e, 0, sizeof(*e));
	e->kind = kind;
	e->translator = d->translator;
	memcpy(e->host, d->host, LEDGER_KEY);
	memcpy(e->client, c->key[side == 0 ? 1 : 0], LEDGER_KEY);
	memcpy(e->lineage, d->lineage->id, sizeof(e->lineage));
	memcpy(e->session, d->session, sizeof(e->session));
	e->sequence = c->sequence + 1;
	memcpy(e->previous, c->head, LEDGER_HASH);
	e->time_ms = d->time_ms > 0 ? d->time_ms : 0;
	e->mechanism = *m;
	e->caps = *caps;
	e->total_pair = side < 0 ? 0 : ledger_account_count(&c->account[side], m);
	e->total_lineage = ledger_lineage_count(d->lineage, m);
}

/* Terms of an account without a contract, and of entries that are about no labels. */
static const struct ledger_account nothing;

static const struct ledger_account *own_account(const struct ledger_chain *c,
						const struct ledger_draft *d)
{
	int side = ledger_chain_side(c, d->host);

	return side < 0 ? &nothing : &c->account[side]; /* ledger_chain_check() will say so */
}

static int round_caps(const struct ledger_entry *e, const struct ledger_chain *c,
		      const struct ledger_draft *d, struct err *err)
{
	int rc = ledger_chain_check(c, e, err);

	return rc != 0 ? rc : ledger_lineage_check(d->lineage, c, e, err);
}

int ledger_contract(struct ledger_entry *e, const struct ledger_chain *c,
		    const struct ledger_draft *d, const struct ledger_mechanism *m,
		    const struct ledger_caps *caps, struct err *err)
{
	draft(e, c, d, LEDGER_CONTRACT, m, caps);
	return round_caps(e, c, d, err);
}

int ledger_reserve(struct ledger_entry *e, const struct ledger_chain *c,
		   const struct ledger_draft *d, uint64_t labels, struct err *err)
{
	const struct ledger_account *a = labels > 0 ? own_account(c, d) : &nothing;

	draft(e, c, d, LEDGER_RESERVE, &a->mechanism, &a->caps);
	if (labels > LEDGER_COUNT_MAX - e->total_pair ||
	    labels > LEDGER_COUNT_MAX - e->total_lineage)
		return err_set(err, ERR_BUDGET, "more labels than any cap");
	e->count = labels;
	e->total_pair += labels;
	e->total_lineage += labels;
	return round_caps(e, c, d, err);
}

int ledger_settle(struct ledger_entry *e, const struct ledger_chain *c,
		  const struct ledger_draft *d, uint64_t released, uint64_t rows, uint64_t floats,
		  const uint8_t transcript[32], struct err *err)
{
	const struct ledger_open *o = ledger_chain_open(c, d->host, d->session);
	const struct ledger_account *a = own_account(c, d);
	bool labels = o != NULL && o->labels > 0;
	bool renewed = labels && !ledger_same_terms(&o->mechanism, &a->mechanism);

	draft(e, c, d, LEDGER_SETTLE, labels ? &o->mechanism : &nothing.mechanism,
	      renewed  ? &o->caps
	      : labels ? &a->caps
		       : &nothing.caps);
	e->count = released;
	e->rows = rows;
	e->floats = floats;
	memcpy(e->transcript, transcript, sizeof(e->transcript));
	if (labels && released <= o->labels) {
		e->total_pair -= o->labels - released;
		e->total_lineage -= o->labels - released;
	}
	return round_caps(e, c, d, err);
}

int ledger_refuse(struct ledger_entry *e, const struct ledger_chain *c,
		  const struct ledger_draft *d, uint64_t labels, struct err *err)
{
	const struct ledger_account *a = own_account(c, d);

	draft(e, c, d, LEDGER_REFUSE, &a->mechanism, &a->caps);
	e->count = labels;
	return round_caps(e, c, d, err);
}

int ledger_close(struct ledger_entry *e, const struct ledger_chain *c, const struct ledger_draft *d,
		 struct err *err)
{
	const struct ledger_account *a = own_account(c, d);

	draft(e, c, d, LEDGER_CLOSE, &a->mechanism, &a->caps);
	return round_caps(e, c, d, err);
}

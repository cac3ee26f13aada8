#include "store/ledger/verify.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/ledger/chain_internal.h"
#include "store/ledger/verify_internal.h"

void ledger_export_release(struct ledger_export *x)
{
	free(x->at);
	free(x->stated);
	free(x->parties);
	free(x->chains);
	ledger_rotations_release(&x->rotations);
	memset(x, 0, sizeof(*x));
}

void ledger_report_release(struct ledger_report *r)
{
	free(r->at);
	memset(r, 0, sizeof(*r));
}

/* ---- findings ---- */

struct ledger_name ledger_name_of(const struct ledger_report *r, const uint8_t key[LEDGER_KEY])
{
	struct ledger_name n;

	if (r->name != NULL)
		r->name(r->name_ctx, key, n.text);
	else
		sodium_bin2hex(n.text, sizeof(n.text), key, 6);
	return n;
}

struct ledger_finding *ledger_report_add(struct ledger_report *r, const struct ledger_chain *c,
					 enum ledger_fault fault, uint64_t sequence, bool note)
{
	struct ledger_finding *f;

	if ((r->n & (r->n - 1)) == 0) /* full: the next power of two */
		r->at = mem_resize(r->at, r->n > 0 ? 2 * r->n : 1, sizeof(*r->at));
	f = &r->at[r->n++];
	memset(f, 0, sizeof(*f));
	f->fault = fault;
	f->note = note;
	f->sequence = sequence;
	memcpy(f->low, c->key[0], LEDGER_KEY);
	memcpy(f->high, c->key[1], LEDGER_KEY);
	if (!note)
		r->faults++;
	return f;
}

/* ---- entries by chain and by lineage ----
 *
 * An export may be large and hostile, so nothing here looks through it once for
 * each of its entries. */

static const uint8_t *low_key(const struct ledger_entry *e)
{
	return memcmp(e->host, e->client, LEDGER_KEY) <= 0 ? e->host : e->client;
}

static const uint8_t *high_key(const struct ledger_entry *e)
{
	return low_key(e) == e->host ? e->client : e->host;
}

static int by_chain(const struct ledger_entry *a, const struct ledger_entry *b)
{
	int low = memcmp(low_key(a), low_key(b), LEDGER_KEY);

	return low != 0 ? low : memcmp(high_key(a), high_key(b), LEDGER_KEY);
}

static int by_lineage(const struct ledger_entry *a, const struct ledger_entry *b)
{
	return memcmp(a->lineage, b->lineage, sizeof(a->lineage));
}

typedef int (*compare_fn)(const struct ledger_entry *a, const struct ledger_entry *b);

static int in_order(const void *a, const void *b, void *by)
{
	const struct ledger_signed *x = *(const struct ledger_signed *const *)a;
	const struct ledger_signed *y = *(const struct ledger_signed *const *)b;
	int c = (*(compare_fn *)by)(&x->entry, &y->entry);

	return c != 0 ? c : (x > y) - (x < y);
}

/* The entries of x sorted, equal ones as they stand in the file; by free(). */
static const struct ledger_signed **sorted(const struct ledger_export *x, compare_fn by)
{
	const struct ledger_signed **at = mem_array(x->n, sizeof(struct ledger_signed *));

	for (size_t k = 0; k < x->n; k++)
		at[k] = &x->at[k];
	qsort_r(at, x->n, sizeof(struct ledger_signed *), in_order, &by);
	return at;
}

/* Which group entry k is of, groups counted 0, 1 ... as they first appear; by free(). */
static size_t *group_entries(const struct ledger_export *x, compare_fn by, size_t *n)
{
	const struct ledger_signed **at = sorted(x, by), *first = NULL;
	size_t *of = mem_array(x->n, sizeof(*of));

	*n = 0;
	for (size_t k = 0; k < x->n; k++) {
		if (first == NULL || by(&first->entry, &at[k]->entry) != 0)
			first = at[k];
		of[at[k] - x->at] = (size_t)(first - x->at);
	}
	for (size_t k = 0; k < x->n; k++) /* the first one of a group comes before the others */
		of[k] = of[k] == k ? (*n)++ : of[of[k]];
	free(at);
	return of;
}

/* ---- one export ---- */

struct walk { /* one chain on the way through an export */
	struct ledger_chain chain;
	uint8_t last_hash[LEDGER_HASH];
	uint64_t last, agreed; /* last number seen; last one that is countersigned */
	bool foreign[2];       /* has this side named another lineage than its own? */
	uint64_t rows;	       /* that a session sent, by its settle: the most of any */
	double delta[2];       /* the largest of this side's contracts so far */
};

/* Anybody can write contracts that are dear to price (ledger_is_dear()). */
enum { DEAR_PRICES_MAX = 32 };

struct priced { /* a contract of an export: what its mechanism and epsilon allow, or why nothing */
	struct ledger_mechanism mechanism;
	double epsilon_pair, epsilon_lineage;
	struct ledger_caps caps;
	struct err why;
};

struct walks {
	const struct ledger_export *export;
	struct priced *dear; /* [n_dear of DEAR_PRICES_MAX] */
	size_t n_dear;
	struct walk *at;
	size_t *of; /* of each entry: which walk */
	size_t n;
	uint64_t *unsent;		/* of each entry: what it gives back, if it is a settle */
	struct ledger_lineage *lineage; /* what the owner has spent so far */
	size_t *lineage_of;		/* of each entry */
	size_t n_lineages;
	bool torn; /* a fault was met: lineage sums no longer mean anything */
};

static void walks_init(struct walks *w, const struct ledger_export *x)
{
	memset(w, 0, sizeof(*w));
	w->export = x;
	w->dear = mem_array(DEAR_PRICES_MAX, sizeof(*w->dear));
	w->of = group_entries(x, by_chain, &w->n);
	w->at = mem_array(w->n, sizeof(*w->at));
	w->unsent = mem_array(x->n, sizeof(*w->unsent));
	for (size_t k = 0; k < x->n; k++)
		ledger_chain_init(&w->at[w->of[k]].chain, x->at[k].entry.host,
				  x->at[k].entry.client);
	for (size_t k = 0; k < w->n; k++)
		ledger_chain_follow(&w->at[k].chain, &x->rotations);
	w->lineage_of = group_entries(x, by_lineage, &w->n_lineages);
	w->lineage = mem_array(w->n_lineages, sizeof(*w->lineage));
	for (size_t k = 0; k < x->n; k++)
		memcpy(w->lineage[w->lineage_of[k]].id, x->at[k].entry.lineage, 32);
}

static void walks_release(struct walks *w)
{
	for (size_t k = 0; k < w->n; k++)
		ledger_chain_release(&w->at[k].chain);
	for (size_t k = 0; k < w->n_lineages; k++)
		ledger_lineage_release(&w->lineage[k]);
	free(w->dear);
	free(w->at);
	free(w->of);
	free(w->unsent);
	free(w->lineage);
	free(w->lineage_of);
}

/* What ledger_check_signature() says of s is worth more than "bad" where a key was replaced. */
static void find_signature(struct ledger_report *r, const struct walk *w,
			   const struct ledger_signed *s, enum ledger_fault fault)
{
	const struct ledger_entry *e = &s->entry;
	bool host = fault == LEDGER_BAD_SIGNATURE;
	const uint8_t *who = host ? e->host : e->client;
	bool replaced = w->chain.keys[ledger_chain_side(&w->chain, who)].n > 0;

	FIND(r, &w->chain, fault, e->sequence, false, "entry %llu: bad %s by the %s %s%s",
	     ULL(e->sequence), host ? "signature" : "countersignature", host ? "host" : "client",
	     ledger_name_of(r, who).text,
	     replaced ? ", or with a key that its owner had replaced" : "");
}

static void check_signatures(struct ledger_report *r, struct walk *w, const struct ledger_signed *s)
{
	const struct ledger_entry *e = &s->entry;
	struct ledger_keys *host = &w->chain.keys[ledger_chain_side(&w->chain, e->host)];
	struct ledger_keys *client = &w->chain.keys[ledger_chain_side(&w->chain, e->client)];
	uint8_t hash[LEDGER_HASH];

	ledger_hash(e, hash);
	if (memcmp(hash, s->hash, LEDGER_HASH) != 0)
		FIND(r, &w->chain, LEDGER_EDITED, e->sequence, false,
		     "entry %llu was edited: its contents do not give its hash", ULL(e->sequence));
	else if (ledger_check_signature(s, host, NULL) != 0)
		find_signature(r, w, s, LEDGER_BAD_SIGNATURE);
	if (s->countersigned && ledger_check_countersign(s, s->countersignature, client, NULL) != 0)
		find_signature(r, w, s, LEDGER_BAD_COUNTERSIGN);
}

static void find_gap(struct ledger_report *r, const struct walk *w, uint64_t sequence)
{
	if (sequence == w->last + 2)
		FIND(r, &w->chain, LEDGER_DELETED, w->last + 1, false,
		     "entry %llu was deleted: %llu follows %llu", ULL(w->last + 1), ULL(sequence),
		     ULL(w->last));
	else
		FIND(r, &w->chain, LEDGER_DELETED, w->last + 1, false,
		     "entries %llu to %llu were deleted: %llu follows %llu", ULL(w->last + 1),
		     ULL(sequence - 1), ULL(sequence), ULL(w->last));
}

/* Does s stand where it must?  If not, the rules about totals cannot be asked of it. */
static bool check_place(struct ledger_report *r, const struct walk *w,
			const struct ledger_signed *s)
{
	const struct ledger_entry *e = &s->entry;

	if (e->sequence > w->last + 1) {
		find_gap(r, w, e->sequence);
		return false;
	}
	if (e->sequence <= w->last) {
		FIND(r, &w->chain, LEDGER_FORKED, e->sequence, false,
		     "entry %llu stands behind entry %llu: numbers must count up", ULL(e->sequence),
		     ULL(w->last));
		return false;
	}
	if (memcmp(e->previous, w->last_hash, LEDGER_HASH) != 0) {
		FIND(r, &w->chain, LEDGER_BROKEN_CHAIN, e->sequence, false,
		     "the chain is broken at entry %llu: it does not continue entry %llu",
		     ULL(e->sequence), ULL(w->last));
		return false;
	}
	return true;
}

/* What a settle gives back; 0 for others. */
static uint64_t unsent_by(const struct ledger_chain *c, const struct ledger_entry *e)
{
	const struct ledger_open *o = ledger_chain_open(c, e->host, e->session);

	return e->kind == LEDGER_SETTLE && o != NULL && e->count <= o->labels ? o->labels - e->count
									      : 0;
}

/* The total that the entries before allow. */
static uint64_t expected_total(const struct ledger_chain *c, const struct ledger_entry *e)
{
	uint64_t spent =
		ledger_account_count(&c->account[ledger_chain_side(c, e->host)], &e->mechanism);

	return e->kind == LEDGER_RESERVE ? spent + e->count : spent - unsent_by(c, e);
}

/* Rules of the pair's chain; returns whether they hold. */
static bool check_rules(struct ledger_report *r, struct walk *w, const struct ledger_signed *s)
{
	const struct ledger_entry *e = &s->entry;
	uint64_t want = expected_total(&w->chain, e);
	struct err why = { 0 };
	int rc;

	if (e->total_pair < want) {
		FIND(r, &w->chain, LEDGER_UNDERCOUNT, e->sequence, false,
		     "entry %llu says %llu labels in total, but %llu were reserved and not settled "
		     "as unsent",
		     ULL(e->sequence), ULL(e->total_pair), ULL(want));
		return false;
	}
	rc = ledger_chain_check(&w->chain, e, &why);
	if (rc == ERR_BUDGET)
		FIND(r, &w->chain, LEDGER_CAP_PASSED, e->sequence, false,
		     "entry %llu passes a cap: %.300s", ULL(e->sequence), why.text);
	else if (rc != 0)
		ledger_report_add(r, &w->chain, LEDGER_RULE, e->sequence, false);
	if (rc != 0 && rc != ERR_BUDGET)
		memcpy(r->at[r->n - 1].text, why.text, ERR_TEXT_MAX);
	return rc == 0;
}

static bool is_priced(const struct priced *p, const struct ledger_entry *e)
{
	return ledger_same_terms(&p->mechanism, &e->mechanism) &&
	       p->epsilon_pair == e->caps.epsilon_pair &&
	       p->epsilon_lineage == e->caps.epsilon_lineage;
}

/* What this contract's epsilon allows: each dear price is worked out once, and so many at most,
 * whatever comes of it. */
static int price_contract(struct walks *ws, const struct ledger_entry *e, struct ledger_caps *out,
			  struct err *why)
{
	struct priced *p = ws->dear;

	if (!ledger_is_dear(&e->mechanism))
		return ledger_caps_from(&e->mechanism, e->caps.epsilon_pair,
					e->caps.epsilon_lineage, out, why);
	while (p < ws->dear + ws->n_dear && !is_priced(p, e))
		p++;
	if (p == ws->dear + DEAR_PRICES_MAX)
		return err_set(why, ERR_TOOBIG,
			       "more than %d contracts of different terms by pld in one export",
			       DEAR_PRICES_MAX);
	if (p == ws->dear + ws->n_dear) {
		*p = (struct priced){ .mechanism = e->mechanism,
				      .epsilon_pair = e->caps.epsilon_pair,
				      .epsilon_lineage = e->caps.epsilon_lineage };
		err_ignore(ledger_caps_from(&p->mechanism, p->epsilon_pair, p->epsilon_lineage,
					    &p->caps, &p->why));
		ws->n_dear++;
	}
	*out = p->caps;
	*why = p->why;
	return p->why.code;
}

static void check_epsilon(struct ledger_report *r, struct walks *ws, const struct walk *w,
			  const struct ledger_entry *e)
{
	const struct ledger_caps *have = &e->caps;
	struct ledger_caps want;
	struct err why = { 0 };

	if (e->kind != LEDGER_CONTRACT)
		return;
	if (price_contract(ws, e, &want, &why) != 0)
		FIND(r, &w->chain, LEDGER_EPSILON, e->sequence, false,
		     "entry %llu: no epsilon for this mechanism: %.300s", ULL(e->sequence),
		     why.text);
	else if (have->pair > want.pair || have->lineage > want.lineage)
		FIND(r, &w->chain, LEDGER_EPSILON, e->sequence, false,
		     "entry %llu: caps of %llu and %llu labels, but epsilon %g and %g allow %llu "
		     "and %llu",
		     ULL(e->sequence), ULL(have->pair), ULL(have->lineage), have->epsilon_pair,
		     have->epsilon_lineage, ULL(want.pair), ULL(want.lineage));
}

/* Said once of a side: all its entries name the same, or it would have had to close a contract. */
static void check_own_lineage(struct ledger_report *r, struct walk *w, const struct ledger_entry *e)
{
	bool *foreign = &w->foreign[ledger_chain_side(&w->chain, e->host) == 1];
	struct err why = { 0 };

	if (*foreign || ledger_check_lineage(e, &why) == 0)
		return;
	*foreign = true;
	FIND(r, &w->chain, LEDGER_RULE, e->sequence, false, "%s", why.text);
}

/* The owner's own entries are held against all its chains together. */
static void check_lineage(struct ledger_report *r, struct walks *ws, size_t k)
{
	const struct ledger_export *x = ws->export;
	const struct ledger_entry *e = &x->at[k].entry;
	const struct walk *w = &ws->at[ws->of[k]];
	struct ledger_lineage *l = &ws->lineage[ws->lineage_of[k]];
	struct err why = { 0 };
	int rc;

	if (!x->whole || memcmp(e->host, x->owner.sign_key, LEDGER_KEY) != 0)
		return;
	rc = ledger_lineage_check(l, &w->chain, e, &why);
	if (rc != 0)
		FIND(r, &w->chain, rc == ERR_BUDGET ? LEDGER_CAP_PASSED : LEDGER_UNDERCOUNT,
		     e->sequence, false, "%s", why.text);
	else
		ledger_lineage_take(l, &w->chain, e);
}

/* Each writer has a clock of its own, so its entries are held against its own alone. */
static void note_clock(struct ledger_report *r, const struct walk *w, const struct ledger_entry *e)
{
	int64_t back = ledger_clock_back(&w->chain, e->host, e->time_ms);

	if (back > 0)
		FIND(r, &w->chain, LEDGER_CLOCK, e->sequence, true,
		     "entry %llu: the clock of %s was set back: the entry is dated %lld s before "
		     "the one that it wrote before",
		     ULL(e->sequence), ledger_name_of(r, e->host).text, (long long)(back / 1000));
}

static void visit(struct ledger_report *r, struct walks *ws, size_t k)
{
	const struct ledger_signed *s = &ws->export->at[k];
	struct walk *w = &ws->at[ws->of[k]];
	size_t before = r->faults;
	bool placed;

	check_signatures(r, w, s);
	if (r->faults == before) /* what nobody has signed is worth no work */
		check_epsilon(r, ws, w, &s->entry);
	check_own_lineage(r, w, &s->entry);
	placed = check_place(r, w, s);
	if (s->entry.sequence <= w->last)
		return; /* stands twice: the first one counts */
	if (placed && check_rules(r, w, s) && !ws->torn)
		check_lineage(r, ws, k);
	ws->torn |= r->faults > before;
	note_clock(r, w, &s->entry);
	if (s->entry.kind == LEDGER_SETTLE && s->entry.rows > w->rows)
		w->rows = s->entry.rows;
	ws->unsent[k] = unsent_by(&w->chain, &s->entry);
	ledger_chain_force(&w->chain, s);
	/* The next entry is asked whether it continues what is stated here. */
	memcpy(w->last_hash, s->hash, LEDGER_HASH);
	memcpy(w->chain.head, s->hash, LEDGER_HASH);
	w->last = s->entry.sequence;
	if (s->countersigned)
		w->agreed = w->last;
}

static void check_waiting(struct ledger_report *r, const struct walk *w,
			  const struct ledger_signed *s, uint64_t unsent)
{
	char gives[96] = "";

	if (unsent > 0)
		snprintf(gives, sizeof(gives),
			 ": the %llu %s%s that it gives back count%s as spent until then",
			 ULL(unsent),
			 ledger_is_release(s->entry.mechanism.noise) ? "release" : "label",
			 unsent == 1 ? "" : "s", unsent == 1 ? "s" : "");
	if (s->countersigned)
		return;
	if (s->entry.sequence < w->agreed)
		FIND(r, &w->chain, LEDGER_NOT_COUNTERSIGNED, s->entry.sequence, false,
		     "entry %llu: missing countersignature by the client %s",
		     ULL(s->entry.sequence), ledger_name_of(r, s->entry.client).text);
	else
		FIND(r, &w->chain, LEDGER_NOT_COUNTERSIGNED, s->entry.sequence, true,
		     "entry %llu waits for the countersignature of the client %s%s",
		     ULL(s->entry.sequence), ledger_name_of(r, s->entry.client).text, gives);
}

/* A delta that says little, as note_delta(): settles say of how many rows; said once of each delta
 * of a side. */
static void note_contract(struct ledger_report *r, struct walk *w, const struct ledger_entry *e)
{
	double *before = &w->delta[ledger_chain_side(&w->chain, e->host) == 1];
	double delta = e->mechanism.delta;

	if (e->kind != LEDGER_CONTRACT || delta <= *before)
		return;
	*before = delta;
	if (delta * (double)w->rows >= 1)
		FIND(r, &w->chain, LEDGER_DELTA, e->sequence, true,
		     "entry %llu names delta %g, which is not below 1 / %llu rows that a session "
		     "sent: at such a delta an aligned row of %s may be told as it is, whatever "
		     "epsilon says",
		     ULL(e->sequence), delta, ULL(w->rows), ledger_name_of(r, e->host).text);
}

static void note_unsettled(struct ledger_report *r, const struct walk *w)
{
	char session[33];

	for (size_t k = 0; k < w->chain.n_open; k++) {
		sodium_bin2hex(session, sizeof(session), w->chain.open[k].session, 16);
		FIND(r, &w->chain, LEDGER_UNSETTLED, 0, true,
		     "session %s has not settled: what it reserved counts as spent: %llu; rows "
		     "that its "
		     "client has sent are not counted",
		     session, ULL(w->chain.open[k].labels));
	}
}

/* ---- the owner's statements ---- */

static struct ledger_finding *add_stated(struct ledger_report *r, const struct ledger_export *x,
					 const struct ledger_stated *s, bool note)
{
	struct ledger_chain own;

	ledger_chain_init(&own, x->owner.sign_key, x->owner.sign_key);
	return ledger_report_add(r, &own, LEDGER_STATED, s->statement.sequence, note);
}

static void find_stated(struct ledger_report *r, const struct ledger_export *x,
			const struct ledger_stated *s, const char *text)
{
	snprintf(add_stated(r, x, s, false)->text, ERR_TEXT_MAX, "%s", text);
}

/* A delta that says little: what a larger one makes of the same noise is a smaller epsilon. */
static void note_delta(struct ledger_report *r, const struct ledger_export *x,
		       const struct ledger_training *before, const struct ledger_stated *s)
{
	const struct ledger_statement *t = &s->statement;

	if (before->delta > 0 && t->delta > before->delta)
		snprintf(add_stated(r, x, s, true)->text, ERR_TEXT_MAX,
			 "statement %llu names delta %g, one before it %g: all of them are "
			 "counted at the smaller one",
			 ULL(t->sequence), t->delta, before->delta);
	if (t->delta * (double)t->records >= 1 && t->delta > before->delta)
		snprintf(add_stated(r, x, s, true)->text, ERR_TEXT_MAX,
			 "statement %llu names delta %g, which is not below 1 / %llu triples: at "
			 "such a delta a triple may be told as it is, whatever epsilon says",
			 ULL(t->sequence), t->delta, ULL(t->records));
}

static void check_stated(struct ledger_report *r, const struct ledger_export *x)
{
	struct ledger_training account = { 0 };
	struct ledger_keys keys;

	ledger_keys_of(&keys, &x->rotations, x->owner.sign_key);
	for (size_t k = 0; k < x->n_stated; k++) {
		const struct ledger_stated *s = &x->stated[k];
		struct err why = { 0 };

		if (ledger_statement_check_signature(s, &keys, &why) != 0)
			find_stated(r, x, s, why.text);
		if (ledger_training_check(&account, &s->statement, &why) != 0)
			find_stated(r, x, s, why.text);
		note_delta(r, x, &account, s);
		ledger_training_force(&account, s);
		if (memcmp(s->statement.agent, x->owner.sign_key, LEDGER_KEY) != 0)
			find_stated(r, x, s, "a statement about the training of another agent");
	}
	ledger_keys_release(&keys);
	r->statements += x->n_stated;
}

static void visit_all(struct ledger_report *r, struct walks *ws)
{
	const struct ledger_export *x = ws->export;

	for (size_t k = 0; k < x->n; k++)
		if (memcmp(x->at[k].entry.host, x->at[k].entry.client, LEDGER_KEY) != 0)
			visit(r, ws, k);
		else
			FIND(r, &ws->at[ws->of[k]].chain, LEDGER_RULE, x->at[k].entry.sequence,
			     false, "entry %llu: host and client are the same",
			     ULL(x->at[k].entry.sequence));
	for (size_t k = 0; k < x->n; k++) {
		check_waiting(r, &ws->at[ws->of[k]], &x->at[k], ws->unsent[k]);
		note_contract(r, &ws->at[ws->of[k]], &x->at[k].entry);
	}
	for (size_t k = 0; k < ws->n; k++)
		note_unsettled(r, &ws->at[k]);
}

int ledger_verify(const struct ledger_export *x, struct ledger_report *r)
{
	struct walks ws;

	walks_init(&ws, x);
	visit_all(r, &ws);
	check_stated(r, x);
	r->entries += x->n;
	r->chains += ws.n;
	walks_release(&ws);
	return r->faults > 0 ? ERR_LEDGER : 0;
}

/* ---- two exports ---- */

static bool in_chain(const struct ledger_chain *c, const struct ledger_entry *e)
{
	int side = ledger_chain_side(c, e->host);

	return side >= 0 && memcmp(c->key[1 - side], e->client, LEDGER_KEY) == 0;
}

static int by_number(const struct ledger_entry *a, const struct ledger_entry *b)
{
	int chain = by_chain(a, b);

	return chain != 0 ? chain : (a->sequence > b->sequence) - (a->sequence < b->sequence);
}

/* The first one of n sorted ones with the chain and number of e; NULL: none. */
static const struct ledger_signed *find_entry(const struct ledger_signed *const *at, size_t n,
					      const struct ledger_entry *e)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (by_number(&at[middle]->entry, e) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < n && by_number(&at[low]->entry, e) == 0 ? at[low] : NULL;
}

static uint64_t last_of(const struct ledger_export *x, const struct ledger_chain *c)
{
	uint64_t last = 0;

	for (size_t k = 0; k < x->n; k++)
		if (in_chain(c, &x->at[k].entry) && x->at[k].entry.sequence > last)
			last = x->at[k].entry.sequence;
	return last;
}

static void check_fork(struct ledger_report *r, const struct ledger_chain *c,
		       const struct ledger_export *a, const struct ledger_export *b)
{
	const struct ledger_signed **at = sorted(b, by_number);

	for (size_t k = 0; k < a->n; k++) {
		const struct ledger_signed *s = &a->at[k], *t;

		if (!in_chain(c, &s->entry))
			continue;
		t = find_entry(at, b->n, &s->entry);
		if (t == NULL || memcmp(s->hash, t->hash, LEDGER_HASH) == 0)
			continue;
		FIND(r, c, LEDGER_FORKED, s->entry.sequence, false,
		     "the two ledgers diverge at entry %llu: another one on either side",
		     ULL(s->entry.sequence));
		break;
	}
	free(at);
}

/* `lacking` ends before `having` does: has its owner signed what it lacks? */
static void check_end(struct ledger_report *r, const struct ledger_chain *c,
		      const struct ledger_export *lacking, const struct ledger_export *having)
{
	uint64_t end = last_of(lacking, c), last = last_of(having, c);

	for (size_t k = 0; k < having->n; k++) {
		const struct ledger_signed *s = &having->at[k];

		if (!in_chain(c, &s->entry) || s->entry.sequence <= end ||
		    !ledger_signed_by(c, s, lacking->owner.sign_key))
			continue;
		FIND(r, c, LEDGER_SHORTER, s->entry.sequence, false,
		     "the ledger of %s was rolled back or cut, or this export of it is older: it "
		     "ends at entry %llu, but its owner signed entry %llu",
		     ledger_name_of(r, lacking->owner.sign_key).text, ULL(end),
		     ULL(s->entry.sequence));
		return;
	}
	if (last > end)
		FIND(r, c, LEDGER_BEHIND, end + 1, true,
		     "the ledger of %s ends at entry %llu; its partner has %llu more that it has "
		     "not signed",
		     ledger_name_of(r, lacking->owner.sign_key).text, ULL(end), ULL(last - end));
}

/* An export of one pair says nothing about another one. */
static bool is_about(struct ledger_report *r, const struct ledger_chain *c,
		     const struct ledger_export *x, const struct ledger_export *other)
{
	if (x->whole || memcmp(x->peer, other->owner.sign_key, LEDGER_KEY) == 0)
		return true;
	FIND(r, c, LEDGER_RULE, 0, false,
	     "the export of %s holds its entries with %s alone, not those with %s",
	     ledger_name_of(r, x->owner.sign_key).text, ledger_name_of(r, x->peer).text,
	     ledger_name_of(r, other->owner.sign_key).text);
	return false;
}

/* A partner that has not accepted a rotation yet knows fewer of them; two under one number are of
 * two who hold the old keys. */
static void follow_both(struct ledger_report *r, struct ledger_chain *c,
			const struct ledger_export *a, const struct ledger_export *b)
{
	struct ledger_rotations all;

	ledger_rotations_copy(&all, &a->rotations);
	for (size_t k = 0; k < b->rotations.n; k++) {
		const struct ledger_rotation *x = &b->rotations.at[k];
		struct err why = { 0 };

		if (ledger_rotations_have(&all, x) || ledger_rotations_add(&all, x, &why) == 0)
			continue;
		FIND(r, c, LEDGER_PARTY, 0, false,
		     "the two exports differ in what keys of %s were replaced by: %.300s",
		     ledger_name_of(r, x->account).text, why.text);
	}
	ledger_chain_follow(c, &all);
	ledger_rotations_release(&all);
}

int ledger_verify_pair(const struct ledger_export *a, const struct ledger_export *b,
		       struct ledger_report *r)
{
	struct ledger_chain c;

	ledger_chain_init(&c, a->owner.sign_key, b->owner.sign_key);
	follow_both(r, &c, a, b);
	err_ignore(ledger_verify(a, r)); /* r counts them all */
	err_ignore(ledger_verify(b, r));
	if (memcmp(a->owner.sign_key, b->owner.sign_key, LEDGER_KEY) == 0) {
		FIND(r, &c, LEDGER_RULE, 0, false,
		     "both exports are of one owner, %s: give its partner's as the second one",
		     ledger_name_of(r, a->owner.sign_key).text);
	} else if (is_about(r, &c, a, b) && is_about(r, &c, b, a)) {
		check_fork(r, &c, a, b);
		check_end(r, &c, a, b);
		check_end(r, &c, b, a);
	}
	ledger_chain_release(&c);
	return r->faults > 0 ? ERR_LEDGER : 0;
}

/* ---- chains of an intact export ---- */

static void chains_release(struct ledger_chain **at, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		ledger_chain_release(at[k]);
		free(at[k]);
	}
	free(at);
}

int ledger_export_chains(const struct ledger_export *x, struct ledger_chain ***out, size_t *n,
			 struct err *e)
{
	size_t *of = group_entries(x, by_chain, n);
	struct ledger_chain **at = mem_array(*n, sizeof(struct ledger_chain *));
	int rc = 0;

	for (size_t k = 0; k < *n; k++)
		at[k] = mem_array(1, sizeof(**at));
	for (size_t k = 0; k < x->n; k++)
		ledger_chain_init(at[of[k]], x->at[k].entry.host, x->at[k].entry.client);
	for (size_t k = 0; k < *n; k++)
		ledger_chain_follow(at[k], &x->rotations);
	for (size_t k = 0; k < x->n && rc == 0; k++)
		rc = ledger_chain_add(at[of[k]], &x->at[k], e);
	free(of);
	*out = rc == 0 ? at : NULL;
	if (rc != 0) {
		chains_release(at, *n);
		*n = 0;
	}
	return rc;
}

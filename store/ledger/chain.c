#include "store/ledger/entry.h"

#include <assert.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/ledger/chain_internal.h"

#define ULL(x) ((unsigned long long)(x))

/* ---- finding by key ----
 *
 * A chain may be long and its writer hostile.  The trees of tsearch() are balanced, so that no
 * choice of keys makes them slow. */

struct slot {
	uint8_t key[33];
	size_t at;
};

static int by_key(const void *a, const void *b)
{
	return memcmp(((const struct slot *)a)->key, ((const struct slot *)b)->key,
		      sizeof(((const struct slot *)a)->key));
}

static struct slot *find_slot(void *root, const struct slot *like)
{
	struct slot **found = tfind(like, &root, by_key);

	return found != NULL ? *found : NULL;
}

static void put_slot(void **root, const struct slot *p)
{
	if (tsearch(mem_copy(p, sizeof(*p)), root, by_key) == NULL)
		abort(); /* no memory: as base/mem.h */
}

static void drop_slot(void **root, const struct slot *like)
{
	struct slot *p = find_slot(*root, like);

	if (p != NULL)
		tdelete(p, root, by_key);
	free(p);
}

static struct slot of_session(size_t side, const uint8_t session[16], size_t at)
{
	struct slot p = { .key = { (uint8_t)side }, .at = at };

	memcpy(p.key + 1, session, 16);
	return p;
}

static struct slot of_lineage(const uint8_t id[32], size_t at)
{
	struct slot p = { .at = at };

	memcpy(p.key, id, 32);
	return p;
}

void ledger_chain_init(struct ledger_chain *c, const uint8_t a[LEDGER_KEY],
		       const uint8_t b[LEDGER_KEY])
{
	bool swap = memcmp(a, b, LEDGER_KEY) > 0;

	memset(c, 0, sizeof(*c));
	memcpy(c->key[0], swap ? b : a, LEDGER_KEY);
	memcpy(c->key[1], swap ? a : b, LEDGER_KEY);
}

void ledger_chain_release(struct ledger_chain *c)
{
	free(c->open);
	free(c->tail);
	tdestroy(c->by_session, free);
	for (int k = 0; k < 2; k++) {
		ledger_keys_release(&c->keys[k]);
		free(c->account[k].prices);
		free(c->account[k].lineages);
		free(c->account[k].waiting);
		tdestroy(c->account[k].by_lineage, free);
	}
	memset(c, 0, sizeof(*c));
}

int ledger_chain_side(const struct ledger_chain *c, const uint8_t host[LEDGER_KEY])
{
	for (int k = 0; k < 2; k++)
		if (memcmp(c->key[k], host, LEDGER_KEY) == 0)
			return k;
	return -1;
}

/* Arrays have room for a power of two. */
static void *copy_array(const void *at, size_t n, size_t size)
{
	size_t room = 1;
	void *to;

	if (n == 0)
		return NULL;
	while (room < n)
		room *= 2;
	to = mem_array(room, size);
	memcpy(to, at, n * size);
	return to;
}

/* Room for one element behind n. */
static void *grow(void *at, size_t n, size_t size)
{
	return (n & (n - 1)) != 0 ? at : mem_resize(at, n > 0 ? 2 * n : 1, size);
}

/* The first of a lineage in lineages[], NULL if there is none; and the next one. */
static struct ledger_lineage_spent *first_of(const struct ledger_account *a, const uint8_t id[32])
{
	struct slot like = of_lineage(id, 0), *p = find_slot(a->by_lineage, &like);

	return p != NULL ? &a->lineages[p->at] : NULL;
}

static struct ledger_lineage_spent *next_of(const struct ledger_account *a,
					    const struct ledger_lineage_spent *l)
{
	return l->next > 0 ? &a->lineages[l->next - 1] : NULL;
}

static void copy_account(struct ledger_account *to, const struct ledger_account *from)
{
	to->prices = copy_array(from->prices, from->n_prices, sizeof(*from->prices));
	to->lineages = copy_array(from->lineages, from->n_lineages, sizeof(*from->lineages));
	to->waiting = copy_array(from->waiting, from->n_waiting, sizeof(*from->waiting));
	to->by_lineage = NULL;
	for (size_t k = 0; k < to->n_lineages; k++) {
		struct slot p = of_lineage(from->lineages[k].id, k);

		if (first_of(from, p.key) == &from->lineages[k])
			put_slot(&to->by_lineage, &p);
	}
}

void ledger_chain_copy(struct ledger_chain *to, const struct ledger_chain *from)
{
	*to = *from;
	to->open = copy_array(from->open, from->n_open, sizeof(*from->open));
	to->tail = copy_array(from->tail, from->n_tail, sizeof(*from->tail));
	to->by_session = NULL;
	for (size_t k = 0; k < to->n_open; k++) {
		struct slot p = of_session(to->open[k].host, to->open[k].session, k);

		put_slot(&to->by_session, &p);
	}
	for (int k = 0; k < 2; k++) {
		copy_account(&to->account[k], &from->account[k]);
		if (from->keys[k].n > 0)
			to->keys[k].at = mem_copy(from->keys[k].at,
						  from->keys[k].n * sizeof(*from->keys[k].at));
	}
}

/* Counted together with labels of m; of one lineage, or (NULL) of all. */
static uint64_t count_labels(const struct ledger_account *a, const struct ledger_mechanism *m,
			     const uint8_t *lineage)
{
	const struct ledger_lineage_spent *l = lineage != NULL ? first_of(a, lineage) : NULL;
	uint64_t labels = 0;

	for (; l != NULL; l = next_of(a, l))
		if (ledger_counts_with(&l->mechanism, m))
			labels += l->labels;
	for (size_t k = 0; lineage == NULL && k < a->n_prices; k++)
		if (ledger_counts_with(&a->prices[k].mechanism, m))
			labels += a->prices[k].labels;
	return labels;
}

static const struct ledger_mechanism no_mechanism;
static const struct ledger_caps no_caps;

uint64_t ledger_account_count(const struct ledger_account *a, const struct ledger_mechanism *m)
{
	return count_labels(a, m != NULL ? m : &no_mechanism, NULL);
}

uint64_t ledger_account_spent(const struct ledger_account *a, const struct ledger_mechanism *m)
{
	uint64_t labels = ledger_account_count(a, m);

	m = m != NULL ? m : &no_mechanism;
	for (size_t k = 0; k < a->n_waiting; k++)
		if (ledger_counts_with(&a->waiting[k].mechanism, m))
			labels += a->waiting[k].labels;
	return labels;
}

const struct ledger_mechanism *ledger_account_votes(const struct ledger_account *a)
{
	for (size_t k = 0; k < a->n_prices; k++)
		if (a->prices[k].labels > 0 && !ledger_is_release(a->prices[k].mechanism.noise))
			return &a->prices[k].mechanism;
	return NULL;
}

struct ledger_open *ledger_chain_open(const struct ledger_chain *c, const uint8_t host[LEDGER_KEY],
				      const uint8_t session[16])
{
	int side = ledger_chain_side(c, host);
	struct slot like = of_session((size_t)side, session, 0);
	struct slot *p = side >= 0 ? find_slot(c->by_session, &like) : NULL;

	return p != NULL ? &c->open[p->at] : NULL;
}

uint64_t ledger_reserved(const struct ledger_chain *c, const uint8_t host[LEDGER_KEY],
			 const uint8_t session[16])
{
	const struct ledger_open *o = ledger_chain_open(c, host, session);

	return o != NULL ? o->labels : 0;
}

bool ledger_session_is_open(const struct ledger_chain *c, const uint8_t session[16])
{
	return ledger_chain_open(c, c->key[0], session) != NULL ||
	       ledger_chain_open(c, c->key[1], session) != NULL;
}

bool ledger_is_newest(const struct ledger_chain *c, const uint8_t host[LEDGER_KEY],
		      const uint8_t session[16])
{
	const struct ledger_open *of = ledger_chain_open(c, host, session);

	for (size_t k = 0; k < c->n_open && of != NULL; k++)
		if (c->open[k].host == of->host && c->open[k].sequence > of->sequence)
			return false;
	return of != NULL;
}

/* ---- the rules ---- */

bool ledger_same_terms(const struct ledger_mechanism *a, const struct ledger_mechanism *b)
{
	return a->noise == b->noise && a->accountant == b->accountant &&
	       a->adjacency == b->adjacency && a->teachers == b->teachers && a->batch == b->batch &&
	       a->dim == b->dim && a->param == b->param && a->delta == b->delta;
}

static bool same_caps(const struct ledger_caps *a, const struct ledger_caps *b)
{
	return a->pair == b->pair && a->lineage == b->lineage &&
	       a->epsilon_pair == b->epsilon_pair && a->epsilon_lineage == b->epsilon_lineage;
}

static int broken(const struct ledger_entry *e, struct err *err, const char *what)
{
	return err_set(err, ERR_LEDGER, "entry %llu (%s): %s", ULL(e->sequence),
		       ledger_kind_name(e->kind), what);
}

/* Rule (1). */
static int check_link(const struct ledger_chain *c, const struct ledger_entry *e, struct err *err)
{
	int side = ledger_chain_side(c, e->host);

	if (side < 0 || memcmp(c->key[1 - side], e->client, LEDGER_KEY) != 0)
		return broken(e, err, "it is not between the two agents of this chain");
	if (e->sequence != c->sequence + 1)
		return err_set(err, ERR_LEDGER, "entry %llu (%s): the next one here is %llu",
			       ULL(e->sequence), ledger_kind_name(e->kind), ULL(c->sequence + 1));
	if (memcmp(e->previous, c->head, LEDGER_HASH) != 0)
		return broken(e, err, "it does not continue the entry before it");
	if (c->n_tail >= LEDGER_TAIL_MAX)
		return broken(e, err, "too many entries before it wait for the partner");
	return 0;
}

static int has_terms(const struct ledger_entry *e, const struct ledger_mechanism *m,
		     const struct ledger_caps *caps, struct err *err)
{
	if (!ledger_same_terms(&e->mechanism, m))
		return broken(e, err, "the mechanism is not the contract's");
	if (!same_caps(&e->caps, caps))
		return broken(e, err, "the caps are not the contract's");
	return 0;
}

/* Entries about labels repeat the contract's terms; others have none. */
static int check_terms(const struct ledger_account *a, const struct ledger_entry *e, bool labels,
		       struct err *err)
{
	if (labels && !a->contracted)
		return broken(e, err, "labels without a contract");
	return has_terms(e, labels ? &a->mechanism : &no_mechanism, labels ? &a->caps : &no_caps,
			 err);
}

/* Rule (2): what this entry adds to, or (settle) takes from, the totals. */
static int check_totals(const struct ledger_account *a, const struct ledger_entry *e, uint64_t plus,
			uint64_t minus, struct err *err)
{
	uint64_t pair = count_labels(a, &e->mechanism, NULL) + plus - minus;
	uint64_t lineage = count_labels(a, &e->mechanism, e->lineage) + plus - minus;

	if (e->total_pair != pair)
		return err_set(err, ERR_LEDGER,
			       "entry %llu (%s): %llu labels in total, but the entries before say "
			       "%llu",
			       ULL(e->sequence), ledger_kind_name(e->kind), ULL(e->total_pair),
			       ULL(pair));
	if (e->total_lineage < lineage)
		return err_set(err, ERR_LEDGER,
			       "entry %llu (%s): %llu labels of the lineage in total, but this "
			       "pair alone has %llu",
			       ULL(e->sequence), ledger_kind_name(e->kind), ULL(e->total_lineage),
			       ULL(lineage));
	return 0;
}

/* Checks the fields of votes and of releases; dp judges what they cost. */
static bool valid_mechanism(const struct ledger_mechanism *m)
{
	bool votes = !ledger_is_release(m->noise);

	return m->noise != LEDGER_NO_NOISE && m->accountant != LEDGER_NO_ACCOUNTANT &&
	       m->adjacency != LEDGER_NO_ADJACENCY &&
	       (votes ? m->teachers > 0 && m->batch > 0 : m->teachers == 0) && m->param > 0 &&
	       m->delta > 0 && m->delta < 1;
}

static int check_contract(const struct ledger_account *a, const struct ledger_entry *e,
			  struct err *err)
{
	const struct ledger_mechanism *votes = ledger_account_votes(a);

	if (e->count != 0)
		return broken(e, err, "a contract counts no labels");
	if (!valid_mechanism(&e->mechanism))
		return broken(e, err, "the mechanism is not complete");
	if (e->mechanism.adjacency != LEDGER_ROW_REPLACED)
		return broken(e, err, "between two agents it is a row that is protected");
	/* Rule (4). */
	if (!ledger_is_release(e->mechanism.noise) && votes != NULL &&
	    !ledger_same_price(&e->mechanism, votes))
		return broken(e, err,
			      "labels were spent under another mechanism, which stays for this "
			      "pair");
	return check_totals(a, e, 0, 0, err);
}

/* Rule (3). */
static int check_caps(const struct ledger_entry *e, struct err *err)
{
	if (e->total_pair > e->caps.pair)
		return err_set(err, ERR_BUDGET,
			       "%llu labels more would make %llu toward this peer, the cap is %llu",
			       ULL(e->count), ULL(e->total_pair), ULL(e->caps.pair));
	if (e->total_lineage > e->caps.lineage)
		return err_set(err, ERR_BUDGET,
			       "%llu labels more would make %llu of this data toward all peers, "
			       "the cap is %llu",
			       ULL(e->count), ULL(e->total_lineage), ULL(e->caps.lineage));
	return 0;
}

/* May one more price come?  A price that was settled to nothing leaves its place. */
static bool price_fits(const struct ledger_account *a, const struct ledger_mechanism *m)
{
	size_t live = 0;

	for (size_t k = 0; k < a->n_prices; k++) {
		if (ledger_same_price(&a->prices[k].mechanism, m))
			return true;
		live += a->prices[k].labels > 0;
	}
	return live < LEDGER_PRICES_MAX;
}

static bool other_terms(const struct ledger_open *o, const struct ledger_entry *e)
{
	return memcmp(o->lineage, e->lineage, 32) != 0 ||
	       (o->labels > 0 && e->count > 0 && !ledger_same_terms(&o->mechanism, &e->mechanism));
}

static int check_reserve(const struct ledger_chain *c, const struct ledger_account *a,
			 const struct ledger_entry *e, struct err *err)
{
	const struct ledger_open *o = ledger_chain_open(c, e->host, e->session);
	int rc = check_terms(a, e, e->count > 0, err);

	if (rc != 0)
		return rc;
	if (e->count > 0 && a->closed)
		return broken(e, err, "the contract is closed");
	if (e->count > 0 && memcmp(a->lineage, e->lineage, 32) != 0)
		return broken(e, err, "the data is not the contract's");
	if (o != NULL && other_terms(o, e))
		return broken(e, err, "the session is already open with other terms");
	if (e->count > 0 && !price_fits(a, &e->mechanism))
		return broken(e, err, "labels were spent at too many different prices");
	rc = check_totals(a, e, e->count, 0, err);
	if (rc == 0 && e->count > 0)
		rc = check_caps(e, err);
	/* What all of it costs was worked out when it came, and takes its time. */
	return rc == 0 && e->count > 0 && !c->sealed ? ledger_pair_check(a, e, err) : rc;
}

/* A settle has the terms of its reserve, with the caps of today if they were renewed. */
static int check_settle_terms(const struct ledger_account *a, const struct ledger_open *o,
			      const struct ledger_entry *e, struct err *err)
{
	if (o->labels == 0 || ledger_same_terms(&o->mechanism, &a->mechanism))
		return check_terms(a, e, o->labels > 0, err);
	return has_terms(e, &o->mechanism, &o->caps, err);
}

/* Rule (5). */
static int check_settle(const struct ledger_chain *c, const struct ledger_account *a,
			const struct ledger_entry *e, struct err *err)
{
	const struct ledger_open *o = ledger_chain_open(c, e->host, e->session);
	int rc;

	if (o == NULL)
		return broken(e, err, "its session has nothing reserved");
	if (e->count > o->labels)
		return broken(e, err, "more labels left than were reserved");
	if (memcmp(o->lineage, e->lineage, 32) != 0)
		return broken(e, err, "the data is not that of the reserve");
	rc = check_settle_terms(a, o, e, err);
	return rc != 0 ? rc : check_totals(a, e, 0, o->labels - e->count, err);
}

static int check_refuse(const struct ledger_account *a, const struct ledger_entry *e,
			struct err *err)
{
	int rc = check_terms(a, e, a->contracted, err);

	return rc != 0 ? rc : check_totals(a, e, 0, 0, err);
}

static int check_close(const struct ledger_account *a, const struct ledger_entry *e,
		       struct err *err)
{
	int rc;

	if (!a->contracted || a->closed)
		return broken(e, err, "there is no open contract");
	if (e->count != 0)
		return broken(e, err, "a close counts no labels");
	rc = check_terms(a, e, true, err);
	return rc != 0 ? rc : check_totals(a, e, 0, 0, err);
}

static bool zeros(const uint8_t *at, size_t n)
{
	uint8_t all = 0;

	for (size_t k = 0; k < n; k++)
		all |= at[k];
	return all == 0;
}

int ledger_chain_check(const struct ledger_chain *c, const struct ledger_entry *e, struct err *err)
{
	const struct ledger_account *a;
	int rc = check_link(c, e, err);

	if (rc != 0)
		return rc;
	if (e->kind != LEDGER_SETTLE &&
	    (e->rows != 0 || e->floats != 0 || !zeros(e->transcript, sizeof(e->transcript))))
		return broken(e, err, "only a settle says what was disclosed");
	a = &c->account[ledger_chain_side(c, e->host)];
	switch (e->kind) {
	case LEDGER_CONTRACT:
		return check_contract(a, e, err);
	case LEDGER_RESERVE:
		return check_reserve(c, a, e, err);
	case LEDGER_SETTLE:
		return check_settle(c, a, e, err);
	case LEDGER_REFUSE:
		return check_refuse(a, e, err);
	case LEDGER_CLOSE:
		return check_close(a, e, err);
	}
	return broken(e, err, "unknown kind");
}

/* ---- taking an entry ---- */

/* Of this lineage at this price.  Where nothing is spent any more, another price may come. */
static struct ledger_lineage_spent *the_spent(struct ledger_account *a, const uint8_t id[32],
					      const struct ledger_mechanism *m)
{
	struct ledger_lineage_spent *first = first_of(a, id), *empty = NULL, *l;
	struct slot p = of_lineage(id, a->n_lineages);
	size_t behind = first != NULL ? (size_t)(first - a->lineages) : 0;

	for (l = first; l != NULL; l = next_of(a, l)) {
		if (ledger_same_price(&l->mechanism, m))
			return l;
		empty = l->labels == 0 ? l : empty;
	}
	if (empty == NULL) {
		a->lineages = grow(a->lineages, a->n_lineages, sizeof(*a->lineages));
		empty = &a->lineages[a->n_lineages++];
		*empty = (struct ledger_lineage_spent){ .labels = 0 };
		memcpy(empty->id, id, 32);
		if (first == NULL) {
			put_slot(&a->by_lineage, &p);
		} else { /* behind the first one, which stays where it is known */
			empty->next = a->lineages[behind].next;
			a->lineages[behind].next = a->n_lineages;
		}
	}
	empty->mechanism = *m;
	return empty;
}

static struct ledger_spend *the_price(struct ledger_account *a, const struct ledger_mechanism *m)
{
	struct ledger_spend *empty = NULL;

	for (size_t k = 0; k < a->n_prices; k++) {
		if (ledger_same_price(&a->prices[k].mechanism, m)) {
			if (a->prices[k].labels == 0)
				a->prices[k].mechanism = *m; /* batch and dim, too */
			return &a->prices[k];
		}
		empty = a->prices[k].labels == 0 ? &a->prices[k] : empty;
	}
	if (empty == NULL) {
		a->prices = grow(a->prices, a->n_prices, sizeof(*a->prices));
		empty = &a->prices[a->n_prices++];
	}
	*empty = (struct ledger_spend){ *m, 0 };
	return empty;
}

static void spend(struct ledger_account *a, const uint8_t lineage[32],
		  const struct ledger_mechanism *m, uint64_t labels)
{
	if (!price_fits(a, m))
		return; /* ledger_chain_force() alone: the fault is known */
	the_spent(a, lineage, m)->labels += labels;
	the_price(a, m)->labels += labels;
}

static void give_back(struct ledger_account *a, const uint8_t lineage[32],
		      const struct ledger_mechanism *m, uint64_t labels)
{
	struct ledger_lineage_spent *l = the_spent(a, lineage, m);
	uint64_t less = labels < l->labels ? labels : l->labels;

	l->labels -= less;
	the_price(a, m)->labels -= less;
}

static void take_contract(struct ledger_account *a, const struct ledger_entry *e)
{
	a->contracted = true;
	a->closed = false;
	memcpy(a->lineage, e->lineage, 32);
	a->mechanism = e->mechanism;
	a->caps = e->caps;
}

static struct ledger_open *open_session(struct ledger_chain *c, const struct ledger_entry *e)
{
	struct ledger_open *o;

	struct slot p;

	c->open = grow(c->open, c->n_open, sizeof(*c->open));
	o = &c->open[c->n_open];
	memset(o, 0, sizeof(*o));
	memcpy(o->session, e->session, 16);
	memcpy(o->lineage, e->lineage, 32);
	o->host = (uint8_t)ledger_chain_side(c, e->host);
	o->translator = (uint8_t)e->translator;
	p = of_session(o->host, o->session, c->n_open++);
	put_slot(&c->by_session, &p);
	return o;
}

/* The last one takes its place. */
static void close_session(struct ledger_chain *c, struct ledger_open *o)
{
	struct ledger_open *last = &c->open[c->n_open - 1];
	struct slot gone = of_session(o->host, o->session, 0);
	struct slot moved = of_session(last->host, last->session, 0);

	find_slot(c->by_session, &moved)->at = (size_t)(o - c->open);
	drop_slot(&c->by_session, &gone);
	*o = *last;
	c->n_open--;
}

static void take_reserve(struct ledger_chain *c, struct ledger_account *a,
			 const struct ledger_entry *e)
{
	struct ledger_open *o = ledger_chain_open(c, e->host, e->session);

	if (o == NULL)
		o = open_session(c, e);
	o->sequence = e->sequence;
	if (e->count == 0)
		return;
	spend(a, e->lineage, &e->mechanism, e->count);
	if (e->translator == LEDGER_MAP)
		a->maps += e->count;
	o->mechanism = e->mechanism;
	o->caps = e->caps;
	o->labels += e->count;
}

/* Until then: ledger_waiting. */
static void wait_for_client(struct ledger_account *a, const struct ledger_open *o,
			    uint64_t sequence, uint64_t labels)
{
	struct ledger_waiting *w;

	a->waiting = grow(a->waiting, a->n_waiting, sizeof(*a->waiting));
	w = &a->waiting[a->n_waiting++];
	*w = (struct ledger_waiting){ .sequence = sequence,
				      .mechanism = o->mechanism,
				      .labels = labels,
				      .map = o->translator == LEDGER_MAP };
	memcpy(w->lineage, o->lineage, sizeof(w->lineage));
}

/* The client has countersigned all up to this entry. */
static void wait_no_more(struct ledger_account *a, uint64_t sequence)
{
	size_t left = 0;

	for (size_t k = 0; k < a->n_waiting; k++) {
		const struct ledger_waiting *w = &a->waiting[k];

		if (w->sequence > sequence)
			a->waiting[left++] = *w;
		else if (w->map)
			a->maps -= w->labels < a->maps ? w->labels : a->maps;
	}
	a->n_waiting = left;
	a->spent = ledger_account_spent(a, &a->mechanism);
}

static void take_settle(struct ledger_chain *c, struct ledger_account *a,
			const struct ledger_entry *e)
{
	struct ledger_open *o = ledger_chain_open(c, e->host, e->session);
	const struct ledger_open *own = ledger_chain_open(c, e->client, e->session);
	uint64_t unsent;

	a->rows += e->rows;
	a->floats += e->floats;
	/* the client has charged its rows in this session: they went with noise */
	if (own != NULL && own->labels > 0 && ledger_is_release(own->mechanism.noise))
		a->noisy_rows += e->rows;
	if (e->translator == LEDGER_UNROTATED)
		a->unrotated_rows += e->rows;
	if (o == NULL)
		return; /* ledger_chain_force() alone, which may also say what cannot be */
	unsent = o->labels > e->count ? o->labels - e->count : 0;
	if (unsent > 0) {
		give_back(a, o->lineage, &o->mechanism, unsent);
		wait_for_client(a, o, e->sequence, unsent);
	}
	close_session(c, o);
}

static void take_tail(struct ledger_chain *c, const struct ledger_signed *s)
{
	if (s->countersigned) {
		assert(c->n_tail == 0);
		c->countersigned = s->entry.sequence;
		memcpy(c->agreed, s->hash, LEDGER_HASH);
		return;
	}
	c->tail = grow(c->tail, c->n_tail, sizeof(*c->tail));
	c->tail[c->n_tail++] = *s;
}

static void take(struct ledger_chain *c, const struct ledger_signed *s)
{
	const struct ledger_entry *e = &s->entry;
	struct ledger_account *a = &c->account[ledger_chain_side(c, e->host)];

	if (e->kind == LEDGER_CONTRACT)
		take_contract(a, e);
	else if (e->kind == LEDGER_RESERVE)
		take_reserve(c, a, e);
	else if (e->kind == LEDGER_SETTLE)
		take_settle(c, a, e);
	else if (e->kind == LEDGER_CLOSE)
		a->closed = true;
	wait_no_more(a, s->countersigned ? e->sequence : c->countersigned);
	a->time_ms = e->time_ms;
	c->sequence = e->sequence;
	memcpy(c->head, s->hash, LEDGER_HASH);
	take_tail(c, s);
}

/* Make the account's total what the entry states. */
static void believe_total(struct ledger_account *a, const struct ledger_entry *e)
{
	const struct ledger_mechanism *m = &e->mechanism;
	uint64_t have = count_labels(a, m, NULL), less;

	if (e->total_pair > have)
		spend(a, e->lineage, m, e->total_pair - have);
	for (size_t k = 0; k < a->n_lineages && have > e->total_pair; k++) {
		if (!ledger_counts_with(&a->lineages[k].mechanism, m))
			continue;
		less = have - e->total_pair;
		if (less > a->lineages[k].labels)
			less = a->lineages[k].labels;
		give_back(a, a->lineages[k].id, &a->lineages[k].mechanism, less);
		have -= less;
	}
	a->spent = ledger_account_spent(a, &a->mechanism);
}

void ledger_chain_force(struct ledger_chain *c, const struct ledger_signed *s)
{
	struct ledger_signed as_agreed = *s;

	as_agreed.countersigned = true;
	c->n_tail = 0;
	take(c, &as_agreed);
	believe_total(&c->account[ledger_chain_side(c, s->entry.host)], &s->entry);
}

int ledger_chain_replay(struct ledger_chain *c, const struct ledger_signed *s, struct err *err)
{
	uint8_t hash[LEDGER_HASH];
	int rc;

	ledger_hash(&s->entry, hash);
	if (memcmp(hash, s->hash, LEDGER_HASH) != 0)
		return err_set(err, ERR_LEDGER,
			       "entry %llu was edited: its contents do not give its hash",
			       ULL(s->entry.sequence));
	rc = ledger_chain_check(c, &s->entry, err);
	if (rc != 0)
		return rc;
	if (s->countersigned && c->n_tail > 0)
		return err_set(err, ERR_LEDGER, "entry %llu: missing countersignature",
			       ULL(c->tail[0].entry.sequence));
	take(c, s);
	return 0;
}

int ledger_wire_decode(struct ledger_signed *s, const struct ledger_chain *c, const uint8_t *bytes,
		       size_t n, struct err *err)
{
	struct ledger_keys host = { 0 };
	int rc, side;

	memset(s, 0, sizeof(*s));
	if (n != LEDGER_WIRE)
		return err_set(err, ERR_LEDGER, "a signed ledger entry has %d bytes, this has %zu",
			       LEDGER_WIRE, n);
	rc = ledger_decode(&s->entry, bytes, LEDGER_ENTRY_BYTES, err);
	if (rc != 0)
		return rc;
	ledger_hash(&s->entry, s->hash);
	memcpy(s->signature, bytes + LEDGER_ENTRY_BYTES, LEDGER_SIGNATURE);
	side = c != NULL ? ledger_chain_side(c, s->entry.host) : -1;
	if (side >= 0)
		host = c->keys[side];
	return ledger_check_signature(s, &host, err);
}

/* Signatures are looked at with copies of the keys, which share their arrays: what is used of them
 * changes once all holds. */
int ledger_chain_add(struct ledger_chain *c, const struct ledger_signed *s, struct err *err)
{
	int side = ledger_chain_side(c, s->entry.host), rc;
	struct ledger_keys host = c->keys[side == 1], client = c->keys[side != 1];

	rc = ledger_check_signature(s, &host, err);
	if (rc == 0 && s->countersigned)
		rc = ledger_check_countersign(s, s->countersignature, &client, err);
	if (rc == 0)
		rc = ledger_chain_replay(c, s, err);
	if (rc != 0)
		return rc;
	c->keys[side == 1].used = host.used;
	c->keys[side != 1].used = client.used;
	return 0;
}

int ledger_chain_countersign(struct ledger_chain *c, const uint8_t hash[LEDGER_HASH],
			     const uint8_t signature[LEDGER_SIGNATURE], struct err *err)
{
	struct ledger_keys *client;
	int rc;

	if (c->n_tail == 0 || memcmp(c->tail[0].hash, hash, LEDGER_HASH) != 0)
		return err_set(err, ERR_LEDGER,
			       "a countersignature for an entry that does not wait for one");
	client = &c->keys[ledger_chain_side(c, c->tail[0].entry.client) == 1];
	rc = ledger_check_countersign(&c->tail[0], signature, client, err);
	if (rc != 0)
		return rc;
	c->countersigned = c->tail[0].entry.sequence;
	memcpy(c->agreed, hash, LEDGER_HASH);
	wait_no_more(&c->account[ledger_chain_side(c, c->tail[0].entry.host) == 1],
		     c->countersigned);
	memmove(c->tail, c->tail + 1, --c->n_tail * sizeof(*c->tail));
	return 0;
}

bool ledger_signed_by(const struct ledger_chain *c, const struct ledger_signed *s,
		      const uint8_t key[LEDGER_KEY])
{
	int side = ledger_chain_side(c, key);
	struct ledger_keys keys = { 0 };

	if (side >= 0)
		keys = c->keys[side];
	keys.used = 0; /* whenever it was */
	if (memcmp(s->entry.host, key, LEDGER_KEY) == 0)
		return ledger_check_signature(s, &keys, NULL) == 0;
	return memcmp(s->entry.client, key, LEDGER_KEY) == 0 && s->countersigned &&
	       ledger_check_countersign(s, s->countersignature, &keys, NULL) == 0;
}

int64_t ledger_clock_back(const struct ledger_chain *c, const uint8_t host[LEDGER_KEY],
			  int64_t time_ms)
{
	int side = ledger_chain_side(c, host);
	int64_t back = side < 0 ? 0 : c->account[side].time_ms - time_ms;

	return back > LEDGER_CLOCK_MS ? back : 0;
}

/* ---- heads ---- */

static const uint8_t *hash_at(const struct ledger_chain *c, uint64_t sequence)
{
	assert(sequence >= c->countersigned && sequence <= c->sequence);
	if (sequence == c->countersigned)
		return c->agreed;
	return c->tail[sequence - c->countersigned - 1].hash;
}

static enum ledger_heads behind(const struct ledger_chain *c, const uint8_t us[LEDGER_KEY],
				uint64_t sequence, struct err *err)
{
	const struct ledger_signed *next;

	if (sequence >= c->countersigned) {
		next = &c->tail[sequence - c->countersigned];
		if (memcmp(next->entry.host, us, LEDGER_KEY) == 0)
			return LEDGER_THEY_LACK;
	}
	err_set(err, ERR_LEDGER,
		"the peer's ledger was rolled back: it ends at entry %llu, and entry %llu bears "
		"its "
		"signature",
		ULL(sequence), ULL(sequence + 1));
	return LEDGER_ROLLED_BACK;
}

enum ledger_heads ledger_compare(const struct ledger_chain *c, const uint8_t us[LEDGER_KEY],
				 uint64_t sequence, const uint8_t head[LEDGER_HASH],
				 struct err *err)
{
	if (sequence > c->sequence)
		return LEDGER_WE_LACK;
	if (sequence >= c->countersigned && memcmp(hash_at(c, sequence), head, LEDGER_HASH) != 0) {
		err_set(err, ERR_LEDGER,
			"the two ledgers diverged: another entry %llu on either side",
			ULL(sequence));
		return LEDGER_DIVERGED;
	}
	return sequence == c->sequence ? LEDGER_SAME : behind(c, us, sequence, err);
}

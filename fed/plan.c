#include "fed/plan.h"

#include <assert.h>
#include <endian.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static bool travels(const struct fed_plan *p, char tag)
{
	return strchr(fed_method_find(p->settings->method)->tags, tag) != NULL;
}

unsigned fed_plan_host(const struct fed_plan *p)
{
	if (p->settings->topology == FED_HOSTED)
		for (unsigned m = 0; m < p->members; m++)
			if (memcmp(p->key[m], p->settings->host, FED_KEY) == 0)
				return m;
	return p->members;
}

/* ---- items ---- */

struct draft {
	uint64_t *holders[2];  /* [n] by id, of entities and of relations */
	uint32_t *position[2]; /* [n] in items, or GRAPH_NONE */
	uint32_t n[2];
};

static size_t kind_of(char tag)
{
	return tag == 'e' ? 0 : 1;
}

static void draft_init(struct draft *d, const struct kge_emb *emb)
{
	d->n[0] = emb->n_ent;
	d->n[1] = emb->n_rel;
	for (size_t k = 0; k < 2; k++) {
		d->holders[k] = mem_array(d->n[k], sizeof(*d->holders[k]));
		d->position[k] = mem_array(d->n[k], sizeof(*d->position[k]));
	}
}

static void draft_release(struct draft *d)
{
	for (size_t k = 0; k < 2; k++) {
		free(d->holders[k]);
		free(d->position[k]);
	}
}

/* Whether the slot names something of ours that travels. */
static bool slot_counts(const struct fed_plan *p, const struct draft *d,
			const struct net_psi_slot *s)
{
	return (s->tag == 'e' || s->tag == 'r') && travels(p, s->tag) &&
	       s->id < d->n[kind_of(s->tag)];
}

static void note_holders(const struct fed_plan *p, const struct fed_peer *const *peers,
			 struct draft *d)
{
	for (unsigned m = 0; m < p->members; m++)
		for (size_t i = 0; m != p->me && i < peers[m]->n_slots; i++) {
			const struct net_psi_slot *s = &peers[m]->slots[i];

			if (slot_counts(p, d, s))
				d->holders[kind_of(s->tag)][s->id] |=
					UINT64_C(1) << m | UINT64_C(1) << p->me;
		}
}

void fed_item_name(struct fed_item_name *out, const struct fed_setup *s, const struct fed_item *it)
{
	uint32_t entities = s->part->emb->n_ent;

	out->tag = it->tag;
	if (it->tag != 'e' || it->id < entities) {
		out->text = s->label(s->label_ctx, it->tag, it->id, &out->len);
		return;
	}
	out->tag = FED_DENSE; /* no entity is called so */
	out->len = (size_t)snprintf(out->number, sizeof(out->number), "%u", it->id - entities);
	out->text = out->number;
}

static unsigned set_size(uint64_t members)
{
	return (unsigned)__builtin_popcountll(members);
}

static bool may_be_home(const struct fed_plan *p, unsigned m, uint64_t holders)
{
	unsigned n = set_size(holders), against = set_size(p->against[m] & holders);

	return 2 * against < n || (2 * against == n && 2 * set_size(p->against[m]) <= p->members);
}

/* Of an item's holders those that may be its home: not whom more than half of the holders have kept
 * out, or just half and more than half of all members; all, if nobody else is left.  So who does
 * not hold the item decides nothing but what its holders leave open. */
static uint64_t homes_among(const struct fed_plan *p, uint64_t holders)
{
	uint64_t homes = 0;

	for (unsigned m = 0; m < p->members; m++)
		if ((holders >> m & 1) != 0 && may_be_home(p, m, holders))
			homes |= UINT64_C(1) << m;
	return homes != 0 ? homes : holders;
}

static unsigned home_of(const struct fed_plan *p, const struct fed_setup *s,
			const struct fed_item *it)
{
	unsigned host = fed_plan_host(p);
	struct fed_item_name name;

	if (host < p->members)
		return host;
	fed_item_name(&name, s, it);
	return fed_home_of(p->seed, p->key, homes_among(p, it->holders), name.tag, name.text,
			   name.len);
}

/* Behind all that has a name: [first_dense, n_own). */
static void list_dense(struct fed_plan *p, const struct fed_setup *s)
{
	uint32_t n = p->members >= p->settings->min_holders ? fed_dense(s->part) : 0;

	p->first_dense = p->n_items;
	for (uint32_t i = 0; i < n; i++) {
		struct fed_item *it = &p->items[p->n_items++];

		*it = (struct fed_item){ .holders = p->members < 64
							    ? (UINT64_C(1) << p->members) - 1
							    : UINT64_MAX,
					 .id = s->part->emb->n_ent + i,
					 .tag = 'e' };
		it->home = (uint8_t)home_of(p, s, it);
	}
}

static void count_shared(struct fed_plan *p, const struct draft *d)
{
	for (uint32_t id = 0; id < d->n[0]; id++)
		for (unsigned m = 0; m < p->members; m++)
			p->shared[m] += (uint32_t)(d->holders[0][id] >> m & 1);
}

static void list_items(struct fed_plan *p, const struct fed_setup *s, struct draft *d)
{
	p->items = mem_array((size_t)d->n[0] + d->n[1] + fed_dense(s->part), sizeof(*p->items));
	for (size_t k = 0; k < 2; k++)
		for (uint32_t id = 0; id < d->n[k]; id++) {
			struct fed_item *it = &p->items[p->n_items];
			uint64_t holders = d->holders[k][id];

			d->position[k][id] = GRAPH_NONE;
			if (set_size(holders) < p->settings->min_holders)
				continue;
			*it = (struct fed_item){ .holders = holders,
						 .id = id,
						 .tag = k == 0 ? 'e' : 'r' };
			it->home = (uint8_t)home_of(p, s, it);
			d->position[k][id] = (uint32_t)p->n_items++;
		}
	list_dense(p, s);
	p->n_own = p->n_items;
}

/* ---- routes ---- */

static void route_add(struct fed_route *l, uint32_t item)
{
	l->item[l->n++] = item;
	l->plain = l->n;
}

static void route_begin(struct fed_route *l, size_t most)
{
	l->item = mem_array(most, sizeof(*l->item));
}

/* A place of a route between us and member m, if the item has its home at one of the two: its
 * number among what the two share, which is the same at both. */
static void route_item(struct fed_plan *p, unsigned m, uint32_t item, char kind, size_t number,
		       crypto_generichash_state *h)
{
	const uint8_t home = p->items[item].home;
	const uint8_t place[] = { (uint8_t)kind,	   home,
				  (uint8_t)number,	   (uint8_t)(number >> 8),
				  (uint8_t)(number >> 16), (uint8_t)(number >> 24) };

	assert(number <= UINT32_MAX);
	if (home != m && home != p->me)
		return;
	route_add(home == m ? &p->out[m] : &p->in[m], item);
	crypto_generichash_update(h, place, sizeof(place));
}

static void routes_of_all(struct fed_plan *p, unsigned m, crypto_generichash_state *h)
{
	for (size_t i = p->first_dense; i < p->n_own; i++)
		route_item(p, m, (uint32_t)i, FED_DENSE, i - p->first_dense, h);
}

static const uint8_t routes_tag[] = "fkge round routes 1";

/* Both routes between us and member m: of one kind after the other, by slot. */
static void routes_with(struct fed_plan *p, unsigned m, const struct fed_peer *peer,
			const struct draft *d)
{
	size_t most = peer->n_slots + (p->n_own - p->first_dense);
	crypto_generichash_state h;

	crypto_generichash_init(&h, p->seed, FED_SEED, NET_ROUTE_BYTES);
	crypto_generichash_update(&h, routes_tag, sizeof(routes_tag));
	route_begin(&p->out[m], most);
	route_begin(&p->in[m], most);
	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < peer->n_slots; i++) {
			const struct net_psi_slot *s = &peer->slots[i];
			uint32_t at;

			if (!slot_counts(p, d, s) || kind_of(s->tag) != k)
				continue;
			at = d->position[k][s->id];
			if (at != GRAPH_NONE)
				route_item(p, m, at, s->tag, i, &h);
		}
	routes_of_all(p, m, &h);
	crypto_generichash_final(&h, p->routes[m], NET_ROUTE_BYTES);
}

static void routes_with_self(struct fed_plan *p)
{
	route_begin(&p->out[p->me], p->n_items);
	route_begin(&p->in[p->me], p->n_items);
	for (size_t i = 0; i < p->n_items; i++)
		if (p->items[i].home == p->me) {
			route_add(&p->out[p->me], (uint32_t)i);
			route_add(&p->in[p->me], (uint32_t)i);
		}
}

struct fed_plan *fed_plan_new(const struct fed_setup *s, const struct fed_settings *settings,
			      const uint8_t seed[FED_SEED], const struct fed_peer *const *peers,
			      unsigned members, unsigned me,
			      const uint64_t against[FED_MEMBERS_MAX])
{
	struct fed_plan *p = mem_array(1, sizeof(*p));
	struct draft d;

	p->members = members;
	p->me = me;
	p->settings = settings;
	memcpy(p->against, against, members * sizeof(*against));
	memcpy(p->seed, seed, FED_SEED);
	for (unsigned m = 0; m < members; m++)
		memcpy(p->key[m], m == me ? s->key : peers[m]->key, FED_KEY);
	draft_init(&d, s->part->emb);
	note_holders(p, peers, &d);
	count_shared(p, &d);
	list_items(p, s, &d);
	for (unsigned m = 0; m < members; m++)
		if (m != me)
			routes_with(p, m, peers[m], &d);
	routes_with_self(p);
	draft_release(&d);
	return p;
}

void fed_plan_free(struct fed_plan *p)
{
	if (p == NULL)
		return;
	for (unsigned m = 0; m < p->members; m++) {
		free(p->out[m].item);
		free(p->out[m].name);
		free(p->in[m].item);
		free(p->in[m].name);
	}
	free(p->items);
	free(p);
}

char fed_route_tag(const struct fed_plan *p, const struct fed_route *l, size_t position)
{
	assert(position < l->n);
	if (position < l->plain)
		return p->items[l->item[position]].tag;
	return position - l->plain < l->n_ent ? 'e' : 'r';
}

/* ---- names, when there is a host ---- */

struct named {
	uint8_t name[FED_NAME];
	uint32_t item;
};

static int by_name(const void *a, const void *b)
{
	return memcmp(((const struct named *)a)->name, ((const struct named *)b)->name, FED_NAME);
}

static void name_of(uint8_t out[FED_NAME], const uint8_t key[FED_NAME_KEY],
		    const struct fed_setup *s, const struct fed_item *it)
{
	crypto_generichash_state h;
	struct fed_item_name item;
	uint8_t kind;

	fed_item_name(&item, s, it);
	kind = (uint8_t)item.tag;
	crypto_generichash_init(&h, key, FED_NAME_KEY, FED_NAME);
	crypto_generichash_update(&h, &kind, 1);
	crypto_generichash_update(&h, (const uint8_t *)item.text, item.len);
	crypto_generichash_final(&h, out, FED_NAME);
}

/* Append the named items of one kind, in the order of their names. */
static size_t route_name(const struct fed_plan *p, struct fed_route *l, struct named *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_name);
	for (size_t i = 0; i < n; i++) {
		uint64_t holders = htole64(p->items[v[i].item].holders);

		memcpy(l->name[l->n - l->plain], v[i].name, FED_NAME);
		memcpy(l->name[l->n - l->plain] + FED_NAME, &holders, sizeof(holders));
		l->item[l->n++] = v[i].item;
	}
	return n;
}

void fed_plan_name(struct fed_plan *p, const struct fed_setup *s, const uint8_t key[FED_NAME_KEY])
{
	unsigned host = fed_plan_host(p);
	struct fed_route *l = &p->out[host];
	struct named *v = mem_array(p->n_items, sizeof(*v));

	assert(host < p->members && host != p->me && l->n == l->plain);
	l->item = mem_resize(l->item, p->n_items, sizeof(*l->item));
	l->name = mem_array(p->n_items, FED_NAMED);
	for (size_t k = 0; k < 2; k++) {
		size_t n = 0;

		for (size_t i = 0; i < p->n_items; i++) {
			const struct fed_item *it = &p->items[i];

			if (kind_of(it->tag) != k || (it->holders >> host & 1) != 0)
				continue;
			name_of(v[n].name, key, s, it);
			v[n++].item = (uint32_t)i;
		}
		*(k == 0 ? &l->n_ent : &l->n_rel) = route_name(p, l, v, n);
	}
	free(v);
}

/* ---- at the host ---- */

struct claim { /* member `from` has sent a row under this name */
	uint8_t name[FED_NAME];
	uint64_t with;	   /* the members that it holds it with, by its word */
	uint32_t position; /* in its route */
	uint8_t from;
	char tag;
};

static int by_claim(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;
	int c = (x->tag > y->tag) - (x->tag < y->tag);

	if (c == 0)
		c = memcmp(x->name, y->name, FED_NAME);
	return c != 0 ? c : (x->from > y->from) - (x->from < y->from);
}

static struct claim *list_claims(const struct fed_plan *p, uint64_t present, size_t *n)
{
	struct claim *v;

	*n = 0;
	for (unsigned m = 0; m < p->members; m++)
		*n += (present >> m & 1) != 0 ? p->in[m].n - p->in[m].plain : 0;
	v = mem_array(*n, sizeof(*v));
	*n = 0;
	for (unsigned m = 0; m < p->members; m++) {
		const struct fed_route *l = &p->in[m];

		for (size_t i = l->plain; (present >> m & 1) != 0 && i < l->n; i++) {
			const uint8_t *name = l->name[i - l->plain];

			v[*n] = (struct claim){ .position = (uint32_t)i,
						.from = (uint8_t)m,
						.tag = fed_route_tag(p, l, i) };
			memcpy(&v[*n].with, name + FED_NAME, sizeof(v[*n].with));
			v[*n].with = le64toh(v[*n].with);
			memcpy(v[(*n)++].name, name, FED_NAME);
		}
	}
	return v;
}

/* By member: with whom it holds what n claims of one name mean, by the word of both. */
static void list_mutual(const struct claim *v, size_t n, uint64_t mutual[FED_MEMBERS_MAX])
{
	for (size_t i = 0; i < n; i++) {
		mutual[v[i].from] = 0;
		for (size_t k = 0; k < n; k++)
			if ((v[i].with >> v[k].from & 1) != 0 && (v[k].with >> v[i].from & 1) != 0)
				mutual[v[i].from] |= UINT64_C(1) << v[k].from;
	}
}

/* A member, those that it holds it with, those that they hold it with ... */
static uint64_t find_together(const uint64_t mutual[FED_MEMBERS_MAX], unsigned first)
{
	uint64_t held = UINT64_C(1) << first, next = held;

	while (next != 0) {
		unsigned m = (unsigned)__builtin_ctzll(next);

		next &= next - 1;
		next |= mutual[m] & ~held;
		held |= mutual[m];
	}
	return held;
}

/* The n claims of one name: an item for each group of members that hold it with one another. */
static void meet_by_name(struct fed_plan *p, const struct claim *v, size_t n)
{
	uint64_t mutual[FED_MEMBERS_MAX];
	size_t first = p->n_items;

	list_mutual(v, n, mutual);
	for (size_t i = 0; i < n; i++) {
		size_t at = first;

		while (at < p->n_items && (p->items[at].holders >> v[i].from & 1) == 0)
			at++;
		if (at == p->n_items)
			p->items[p->n_items++] = (struct fed_item){
				.id = GRAPH_NONE,
				.tag = v[i].tag,
				.home = (uint8_t)p->me,
				.holders = find_together(mutual, v[i].from),
			};
		p->in[v[i].from].item[v[i].position] = (uint32_t)at;
	}
}

static bool is_same_name(const struct claim *a, const struct claim *b)
{
	return a->tag == b->tag && memcmp(a->name, b->name, FED_NAME) == 0;
}

void fed_plan_meet(struct fed_plan *p, uint64_t present)
{
	size_t n, end;
	struct claim *v = list_claims(p, present, &n);

	p->items = mem_resize(p->items, p->n_own + n, sizeof(*p->items));
	p->n_items = p->n_own;
	qsort(v, n, sizeof(*v), by_claim);
	for (size_t i = 0; i < n; i = end) {
		end = i + 1;
		while (end < n && is_same_name(&v[i], &v[end]))
			end++;
		meet_by_name(p, &v[i], end - i);
	}
	free(v);
}

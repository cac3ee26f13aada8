/* fed/plan.h - who sends which rows to whom in a round: read-only once made.
 *
 * Items are what we share with other members, and rows that all members hold (fed_dense()).  A
 * route is the list of items that go from one holder to one home, in an order that both ends know:
 * entities, then relations, each by slot, then the rows of all.  Hosted, a route to the host ends
 * with what the host does not hold, entities and then relations, each by its round name. */
#ifndef FED_PLAN_H
#define FED_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fed/home.h"
#include "fed/round.h"

/* Bytes: of a name; of a name with the members that its sender holds the item with, itself among
 * them, a bit each by number, little-endian. */
enum { FED_NAME = 16, FED_NAMED = FED_NAME + 8, FED_NAME_KEY = 32, FED_DENSE = 'd' };

struct fed_route {
	uint32_t *item; /* [n] into items */
	size_t n;
	size_t plain;		    /* of them by slot; then come the named ones */
	size_t n_ent, n_rel;	    /* named */
	uint8_t (*name)[FED_NAMED]; /* [n - plain] */
};

struct fed_plan {
	unsigned members, me;
	const struct fed_settings *settings;
	uint8_t seed[FED_SEED];
	uint8_t key[FED_MEMBERS_MAX][FED_KEY]; /* ascending */
	uint32_t shared[FED_MEMBERS_MAX];      /* entities of the alignment with each */
	uint64_t against[FED_MEMBERS_MAX];     /* who has kept it out: [members] */
	struct fed_item *items; /* ours, entities first, rows of all last; then a host's foreign */
	size_t n_items, n_own, first_dense;    /* rows of all: up to n_own */
	struct fed_route out[FED_MEMBERS_MAX]; /* ours, by home */
	struct fed_route in[FED_MEMBERS_MAX];  /* that we are home to, by holder; our own too */
	/* By member: of both routes with it, as far as they go by slot.  Equal at both where the
	 * two mean the same places (of one who says different things of what it holds, they do
	 * not). */
	uint8_t routes[FED_MEMBERS_MAX][NET_ROUTE_BYTES];
};

/* peers[m] belongs to member m, NULL for ourselves; keys ascend.  Whom more than half of an item's
 * holders are against, or just half and more than half of all members, is not its home. */
struct fed_plan *fed_plan_new(const struct fed_setup *s, const struct fed_settings *settings,
			      const uint8_t seed[FED_SEED], const struct fed_peer *const *peers,
			      unsigned members, unsigned me,
			      const uint64_t against[FED_MEMBERS_MAX]);
void fed_plan_free(struct fed_plan *p); /* NULL is fine */

/* Number of the host, or `members` when sharded. */
unsigned fed_plan_host(const struct fed_plan *p);
/* Hosted, at a member that is not the host: add to our route what goes by name. */
void fed_plan_name(struct fed_plan *p, const struct fed_setup *s, const uint8_t key[FED_NAME_KEY]);
/* At the host: find out which names are the same thing; `present` are the members whose
 * routes are there whole.  Fills the named parts of their routes.  Members meet under a name where
 * each holds it with the other, or with one that does: whoever sends a name that nobody has shared
 * with it is alone there. */
void fed_plan_meet(struct fed_plan *p, uint64_t present);

/* What an item is called wherever its home or its masks follow from that: the owner's name for it,
 * and 'e' or 'r'; or FED_DENSE and the number of a row of all. */
struct fed_item_name {
	char tag;
	const char *text;
	size_t len;
	char number[12];
};
void fed_item_name(struct fed_item_name *out, const struct fed_setup *s, const struct fed_item *it);

/* 'e' or 'r' of the item at a position in a route, named ones included. */
char fed_route_tag(const struct fed_plan *p, const struct fed_route *l, size_t position);

#endif

/* net/psi.h - which names do we share?  Private set intersection (methods 6).
 *
 * A conversation (base/conv.h) between an initiator with names X and a
 * responder with names Y.  H hashes a tagged name, for these two and their
 * roles, to a ristretto255 point; a and b are fresh secret scalars.  Each line
 * is one or more messages:
 *
 *   initiator                       responder    what the receiver learns
 *     SIZE |X|               ->                  the other's set size
 *                            <-    SIZE |Y|      the same
 *     BLINDED aH(x), sorted  ->                  random points: to learn a name
 *                            <-    BLINDED bH(y)   from one means solving DDH
 *                            <-    DOUBLE b(aH(x)) which of its own x are in Y
 *     CHECK C                ->                  a random point
 *                            <-    ANSWER bC     whether DOUBLE was answers
 *     DOUBLE a(bH(y))        ->                  which of its own y are in X
 *                            <-    CHECK D       a random point
 *     ANSWER aD              ->                  whether DOUBLE was answers
 *     CONFIRM count, digest  ->                  that both hold the same slots
 *                            <-    CONFIRM       the same
 *
 * BLINDED goes out in increasing byte order.  The order of pseudo-random
 * points says nothing about the order of the names, so sorting is the shuffle,
 * and a list that is not strictly increasing is refused: a peer cannot send a
 * name twice.  DOUBLE comes back in the order received, which tells the owner
 * of the points, and nobody else, which of them are shared; values for names
 * outside the intersection cannot be linked to anything on the other side.
 * Both learn the intersection and the other's set size, nothing else.
 *
 * Without CHECK, the side that answers last could send back the values that it
 * was sent itself, and the other would take names that it alone has for shared
 * ones.  So each side takes its points aH(x) that seem shared, and what came
 * back for them, and sums up both, each by a fresh secret weight.  The first
 * sum is its CHECK, a uniform point that says nothing, not even whether
 * anything is shared: else it is a random point.  Who multiplied all of those
 * points by one scalar knows the second sum: it is CHECK by that scalar.  Who
 * gave other answers does not: beside the first sum the second one is still
 * uniform, and where all answers are multiples of one point, to tell it is the
 * Diffie-Hellman problem.
 *
 * The initiator tests before it lets go of its DOUBLE, so a responder that is
 * caught has learned nothing.
 *
 * The test does not show that the scalar is the one of the peer's own points.
 * By others it makes nothing seem shared, or a part of what is, and still knows
 * all of it.  CHECK may be any point, so a peer gets the answer to one name more
 * than it said.
 *
 * H differs for each two sides and their roles (`between`), by the keys that
 * their link proves.  Else one peer, or two together, could hand the messages
 * of two conversations on into each other: who is a side of both would compare
 * its names with its own, and find all of them shared.
 *
 * What it costs: a name is mapped and multiplied once, and multiplied once by
 * the other side; one that seems shared is weighed twice.
 *
 * Model: peers that do what they like.  Bad points, wrong counts, duplicates,
 * false answers to names that seem shared: refused.  Not prevented: a peer puts
 * in names that it only guesses (its set size is on view, and limited), breaks
 * off when it knows enough, or lets nothing seem shared.
 *
 * A side streams its parts without waiting for answers, so messages arrive
 * while the other works: the caller of the conversation keeps them in order
 * until the side wants one (or pauses the link).
 *
 * Slots: the intersection sorted by its double-blinded values abH(x), which
 * are equal on both sides, so slot k means the same name to both.  The digest
 * covers those values in that order with their tags. */
#ifndef NET_PSI_H
#define NET_PSI_H

#include <stddef.h>
#include <stdint.h>

#include "base/conv.h"
#include "base/err.h"
#include "base/secret.h"

enum {
	NET_PSI_POINT = 32, /* bytes of an encoded point */
	NET_PSI_DIGEST = 32,
	NET_PSI_BETWEEN = 32,
	NET_PSI_NAME_MAX = 4096, /* bytes of one canonical name */
	NET_PSI_STEP = 4096,	 /* points a work() step takes on */
	NET_PSI_PART = 8192,	 /* points a message carries: 256 KiB */
	NET_PSI_LIMIT = 4000000, /* default for either side's set size */
};

enum net_psi_role { NET_PSI_INITIATOR, NET_PSI_RESPONDER };

enum net_psi_kind {			 /* conv_message.kind; bodies are msgpack maps */
		    NET_PSI_SIZE = 1,	 /* "n" uint: how many names */
		    NET_PSI_BLINDED = 2, /* "i" uint: index of the first point, "p" bin: points */
		    NET_PSI_DOUBLE = 3,	 /* the same */
		    NET_PSI_CONFIRM = 4, /* "n" uint: slots, "d" bin 32: H(role, digest) */
		    NET_PSI_CHECK = 5,	 /* "p" bin 32: a point */
		    NET_PSI_ANSWER = 6,	 /* "p" bin 32: that point by the sender's scalar */
};

struct net_psi_name {
	char tag;	  /* 'e' entity, 'r' relation: part of what must be equal */
	uint32_t id;	  /* the caller's; comes back in the slots */
	const char *text; /* canonical name, len bytes, needs no NUL */
	size_t len;
};

struct net_psi_config {
	enum net_psi_role role;
	size_t threads;		/* that work() may use; 0 counts as 1 */
	size_t limit;		/* of either side's set; 0: NET_PSI_LIMIT */
	size_t limit_theirs;	/* of the other's alone, refused before any point of ours leaves; 0:
				   limit */
	const uint8_t *between; /* [NET_PSI_BETWEEN] who compares with whom: the same for these two
				   in these roles, and for no others; copied */
	/* Uniform random bytes for the scalar: secret_draw() in
	 * production, a seeded generator in the simulator. */
	secret_draw_fn *draw;
	void *draw_ctx;
};

struct net_psi_slot {
	uint32_t id; /* of the local name */
	char tag;
};

struct net_psi_result { /* owned by the conversation */
	const struct net_psi_slot *slots;
	size_t n_slots;
	size_t n_mine; /* my set size as sent: without duplicates */
	size_t n_theirs;
	size_t n_duplicates;		/* local names left out since an earlier one is equal */
	uint8_t digest[NET_PSI_DIGEST]; /* equal on both sides */
};

/* Names are copied.  Of equal names the first stands (n_duplicates counts the
 * others).  ERR_TOOBIG for more names than the limit or a longer one than
 * NET_PSI_NAME_MAX, ERR_INPUT for an empty one.  On success *out is freed with
 * conv_free(), which wipes the scalar. */
MUST_CHECK int net_psi_new(const struct net_psi_config *config, const struct net_psi_name *names,
			   size_t n, struct conv **out, struct err *e);

/* Names of both sets, duplicates of ours left out; 0 as long as the other's size is not known.
 * Not while work() runs. */
size_t net_psi_points(const struct conv *c);

/* NULL until the conversation is OVER with status 0; dies with it. */
const struct net_psi_result *net_psi_result(const struct conv *c);

/* How many names either side has put in, as far as that is known: also of a set that was refused.
 */
void net_psi_sets(const struct conv *c, size_t *mine, size_t *theirs);

#endif

/* store/ledger/entry.h - the privacy ledger without its disk: entries, chains, caps.
 *
 * A pair of agents shares ONE chain of entries, held by both.  Each entry is
 * written and signed by its `host`, the side whose rows vote or are released, and
 * countersigned by the other, its `client`.  As a rule that is the host of the
 * session; a client that sends noisy rows of its own charges itself, by entries of
 * its own under the same session.  An entry records mechanism, parameters and counts,
 * so that anyone can recompute every epsilon; votes, seeds and the
 * data-dependent epsilon are the host's secret and have no field here.
 *
 *   contract   mechanism and caps for labels of this host toward this client
 *   reserve    `count` labels are about to be drawn.  They count as spent from
 *              here on, whether or not they are ever drawn
 *   settle     the session is over: `count` of its reserved labels left the
 *              host; totals fall by the rest, which the transcript shows unsent
 *   refuse     `count` labels were asked for and a cap forbade it
 *   close      the contract ends; totals stay for ever.  (A contract ends the one before it too:
 *              an agent closes one so, for nobody may write outside of a session)
 *
 * Sessions without labels (Procrustes) are a reserve of 0 and a settle that
 * says what the client disclosed; they need no contract.  Others begin with a
 * reserve of 0, too: from there on the client's rows may have left.
 *
 * Rules, checked by ledger_chain_check() for writer, partner, disk and auditor alike:
 *  (1) sequence counts 1, 2, 3 ...; `previous` is the hash of the entry before
 *      (zeros before the first); host and client are the chain's two keys;
 *  (2) totals are what the entries before say, and no entry but settle lowers one;
 *  (3) after a reserve, no total is above its cap;
 *  (4) votes of one side of a pair are of one mechanism, batch and dim aside: no contract names
 *      another once they have been spent under one.  Releases may differ from session to session,
 *      under LEDGER_PRICES_MAX prices at most;
 *  (5) a settle never releases more than its writer reserved in this session, and
 *      for its writer the session is over: it reserves nothing again unless it is
 *      a new one.
 *
 * Caps are whole numbers of labels, fixed in the contract from an epsilon
 * (ledger_caps_from()), one for the pair (labels of this host toward this
 * client, whatever the lineage) and one for the host's data lineage (labels
 * toward everybody).  A batch that would pass one is refused whole, and the
 * decision depends on public counts alone.  Totals add up what may be counted
 * together: all votes with one another, releases with those of the same noise.
 * Counts that may not be added up are held against the epsilons themselves, by summed Renyi curves.
 *
 * Pure: no disk, no clock, no randomness.
 *
 * The encoding, all numbers little-endian, no padding:
 *
 *   offset size
 *        0    8  "fkgeLDG1"
 *        8    1  kind             1 contract 2 reserve 3 settle 4 refuse 5 close
 *        9    1  translator       0 none 1 ppat 2 procrustes 3 map
 *                                 4 procrustes of unrotated rows
 *       10    1  noise            0 none 1 laplace 2 gaussian (of votes)
 *                                 3 release 4 discrete_release
 *       11    1  accountant       0 none 1 exact 2 paper 3 gnmax 4 pld
 *       12    1  adjacency        0 none 1 one aligned row replaced
 *                                 2 one triple added or removed (in no pair's chain)
 *       13    3  zero
 *       16   32  host             its account: the Ed25519 key that it began with
 *       48   32  client           the same
 *       80   32  lineage          ledger_lineage_of() the host
 *      112    8  sequence
 *      120   32  previous         hash of the entry before
 *      152    8  time             Unix time in ms; recorded, decides nothing
 *      160   16  session
 *      176    4  teachers         0 for releases
 *      180    4  batch            labels in one step
 *      184    4  dim              floats in one row that is voted on
 *      188    4  zero
 *      192    8  param            IEEE double: lambda (laplace), sigma (gaussian), or the
 *                                 noise multiplier sigma / L2 sensitivity (releases)
 *      200    8  delta            IEEE double
 *      208    8  count            labels, see above
 *      216    8  total_pair       labels of host toward client, after this entry
 *      224    8  total_lineage    labels of the lineage toward all, after this entry
 *      232    8  cap_pair         labels
 *      240    8  cap_lineage      labels
 *      248    8  epsilon_pair     IEEE double: what cap_pair was computed from
 *      256    8  epsilon_lineage  IEEE double
 *      264    8  rows             disclosed by the client in this session (settle)
 *      272    8  floats           disclosed by the client in this session (settle)
 *      280   32  transcript       BLAKE2b-256 over the session's messages (settle)
 *      312       end
 *
 * hash = BLAKE2b-256 of these 312 bytes.  The signature is Ed25519 over
 * "fkge ledger entry 1" and the hash, the countersignature over
 * "fkge ledger countersign 1" and the hash (domain strings without their NUL), with the account's
 * key or the one that has taken its place (store/ledger/rotation.h). */
#ifndef STORE_LEDGER_ENTRY_H
#define STORE_LEDGER_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
	LEDGER_ENTRY_BYTES = 312, /* bytes of an encoded entry */
	LEDGER_KEY = 32,	  /* Ed25519 public key */
	LEDGER_SECRET = 64,	  /* Ed25519 secret key as libsodium holds it */
	LEDGER_HASH = 32,
	LEDGER_SIGNATURE = 64,
	LEDGER_WIRE = LEDGER_ENTRY_BYTES + LEDGER_SIGNATURE, /* entry as it is sent */
};
/* Teachers of no session are more (ppat/config.h): what votes of a million cost would take minutes
 * to work out. */
enum { LEDGER_TEACHERS_MAX = 1000 };
#define LEDGER_COUNT_MAX (UINT64_C(1) << 53) /* no count is larger: exact in JSON and double */

enum ledger_kind {
	LEDGER_CONTRACT = 1,
	LEDGER_RESERVE,
	LEDGER_SETTLE,
	LEDGER_REFUSE,
	LEDGER_CLOSE,
};
enum ledger_translator {
	LEDGER_NO_TRANSLATOR,
	LEDGER_PPAT,
	LEDGER_PROCRUSTES,
	LEDGER_MAP,
	LEDGER_UNROTATED, /* Procrustes of rows that the client sent as they are */
};
enum ledger_noise {
	LEDGER_NO_NOISE,
	LEDGER_LAPLACE,
	LEDGER_GAUSSIAN,
	LEDGER_RELEASE,
	LEDGER_DISCRETE_RELEASE,
};
enum ledger_accountant {
	LEDGER_NO_ACCOUNTANT,
	LEDGER_EXACT,
	LEDGER_PAPER,
	LEDGER_GNMAX,
	LEDGER_PLD,
};
enum ledger_adjacency { LEDGER_NO_ADJACENCY, LEDGER_ROW_REPLACED, LEDGER_TRIPLE };
/* The last ones, for decoders and readers. */
enum {
	LEDGER_LAST_TRANSLATOR = LEDGER_UNROTATED,
	LEDGER_LAST_NOISE = LEDGER_DISCRETE_RELEASE,
	LEDGER_LAST_ACCOUNTANT = LEDGER_PLD,
	LEDGER_LAST_ADJACENCY = LEDGER_TRIPLE,
};

const char *ledger_kind_name(enum ledger_kind k); /* "reserve"; "?" if unknown */
const char *ledger_translator_name(enum ledger_translator t);
const char *ledger_noise_name(enum ledger_noise n);
const char *ledger_accountant_name(enum ledger_accountant a);
const char *ledger_adjacency_name(enum ledger_adjacency a);
bool ledger_is_release(enum ledger_noise n); /* of vectors and matrices; else one-bit votes */
/* By whom releases are judged where votes are judged by this one, who may judge votes alone. */
enum ledger_accountant ledger_release_accountant(enum ledger_accountant of_votes);

/* The price of one label: everything that an accountant needs besides the count.  All said of
 * labels holds for releases (one count: one noisy vector or matrix) as well. */
struct ledger_mechanism {
	enum ledger_noise noise;
	enum ledger_accountant accountant;
	enum ledger_adjacency adjacency;
	uint32_t teachers, batch, dim;
	double param; /* lambda, sigma, or the noise multiplier */
	double delta;
};

/* Equal in every field. */
bool ledger_same_terms(const struct ledger_mechanism *a, const struct ledger_mechanism *b);
/* Does it take long, up to a second, to work out what labels cost by it? */
bool ledger_is_dear(const struct ledger_mechanism *m);
/* Do labels of a and b cost the same? */
bool ledger_same_price(const struct ledger_mechanism *a, const struct ledger_mechanism *b);

struct ledger_caps {
	uint64_t pair, lineage; /* labels */
	double epsilon_pair, epsilon_lineage;
};

struct ledger_entry {
	enum ledger_kind kind;
	enum ledger_translator translator;
	uint8_t host[LEDGER_KEY], client[LEDGER_KEY], lineage[32];
	uint64_t sequence;
	uint8_t previous[LEDGER_HASH];
	int64_t time_ms;
	uint8_t session[16];
	struct ledger_mechanism mechanism; /* all zero in sessions without labels */
	uint64_t count, total_pair, total_lineage;
	struct ledger_caps caps;
	uint64_t rows, floats;
	uint8_t transcript[32];
};

struct ledger_signed {
	struct ledger_entry entry;
	uint8_t hash[LEDGER_HASH];
	uint8_t signature[LEDGER_SIGNATURE]; /* the host's */
	bool countersigned;
	uint8_t countersignature[LEDGER_SIGNATURE]; /* the client's; zeros if not */
};

/* ---- bytes, hash, signatures ---- */

void ledger_encode(const struct ledger_entry *e, uint8_t out[LEDGER_ENTRY_BYTES]);
/* Strict: exactly LEDGER_ENTRY_BYTES bytes, known values, zeros where zeros belong,
 * finite non-negative numbers.  ERR_LEDGER says which field. */
MUST_CHECK int ledger_decode(struct ledger_entry *e, const uint8_t *bytes, size_t n,
			     struct err *err);
void ledger_hash(const struct ledger_entry *e, uint8_t out[LEDGER_HASH]);
/* The one lineage that this account's entries name: BLAKE2b-256 of "fkge lineage 1" (without its
 * NUL) and the account.  A second one would be a second cap over all partners. */
void ledger_lineage_of(const uint8_t account[LEDGER_KEY], uint8_t out[32]);
/* Does this entry name it?  ERR_LEDGER. */
MUST_CHECK int ledger_check_lineage(const struct ledger_entry *e, struct err *err);

/* Fill hash and signature of s->entry; not countersigned.  key is the host's. */
void ledger_sign(struct ledger_signed *s, const uint8_t key[LEDGER_SECRET]);
/* Keys that have followed the one that an agent's entries name (store/ledger/rotation.h). */
struct ledger_keys {
	uint8_t (*at)[LEDGER_KEY]; /* in their order; NULL: none */
	size_t n;
	size_t used; /* so many of them had followed when the newest signature was made */
};
void ledger_keys_release(struct ledger_keys *k);
/* Hash and host's signature: by the newest of its keys that has signed so far, or one that followed
 * it, which is used from here on.  host: NULL if its key was never replaced.  ERR_LEDGER, also
 * where only an older one fits. */
MUST_CHECK int ledger_check_signature(const struct ledger_signed *s, struct ledger_keys *host,
				      struct err *err);
/* Sign over hash with the client's key; sets countersigned. */
void ledger_countersign(struct ledger_signed *s, const uint8_t key[LEDGER_SECRET]);
/* Is this the client's countersignature of s?  Keys as above; ERR_LEDGER. */
MUST_CHECK int ledger_check_countersign(const struct ledger_signed *s,
					const uint8_t signature[LEDGER_SIGNATURE],
					struct ledger_keys *client, struct err *err);

/* An entry on the wire: the encoding, then the host's signature.  Decoding checks both: by the keys
 * of the chain that it is for; c may be NULL: by the key that the entry names. */
void ledger_wire_encode(const struct ledger_signed *s, uint8_t out[LEDGER_WIRE]);
struct ledger_chain;
MUST_CHECK int ledger_wire_decode(struct ledger_signed *s, const struct ledger_chain *c,
				  const uint8_t *bytes, size_t n, struct err *err);

/* ---- one pair's chain: its state after some entries ---- */

struct ledger_spend {
	struct ledger_mechanism mechanism;
	uint64_t labels;
};

/* Different prices under which one side of a pair, or one lineage, may have spent. */
enum { LEDGER_PRICES_MAX = 256 };

struct ledger_lineage_spent {
	uint8_t id[32];
	struct ledger_mechanism mechanism;
	uint64_t labels;
	size_t next; /* private to chain.c: the next of the same lineage, + 1; 0: none */
};

/* What a settle gives back.  Its writer alone says so until the client has countersigned it, so
 * till then the totals of entries are lower by it, and what is shown and may be spent is not. */
struct ledger_waiting {
	uint64_t sequence; /* of the settle */
	uint8_t lineage[32];
	struct ledger_mechanism mechanism;
	uint64_t labels;
	bool map;
};

/* One direction: labels of one host toward the other agent. */
struct ledger_account {
	bool contracted, closed; /* has there been a contract; is the last one closed */
	uint8_t lineage[32];	 /* of the last contract */
	struct ledger_mechanism mechanism;
	struct ledger_caps caps;
	/* Labels counted together with the last contract's, reserved ones and those in waiting[]
	 * included. */
	uint64_t spent;
	struct ledger_spend *prices; /* all labels, by price: at most LEDGER_PRICES_MAX ... */
	size_t n_prices;
	struct ledger_lineage_spent *lineages; /* ... and by lineage and price */
	size_t n_lineages;
	void *by_lineage;		/* private to chain.c: where in lineages[] */
	struct ledger_waiting *waiting; /* in neither of both */
	size_t n_waiting;
	uint64_t rows, floats;	 /* disclosed by the client, all sessions ... */
	uint64_t noisy_rows;	 /* ... and those of them that it sent with noise ... */
	uint64_t unrotated_rows; /* ... or as they are, without a secret rotation either */
	uint64_t maps;	 /* releases that were maps; the other ones are noisy rows of its own */
	int64_t time_ms; /* of the host's last entry; 0: none yet */
};

struct ledger_open { /* a session in which one side reserved and has not settled */
	uint8_t session[16];
	uint8_t host; /* index into account[]: which side */
	uint8_t translator;
	uint8_t lineage[32];
	struct ledger_mechanism mechanism; /* of the labels, if there are any ... */
	struct ledger_caps caps;	   /* ... and the caps then */
	uint64_t labels;
	uint64_t sequence; /* of its last reserve */
};

struct ledger_chain {
	uint8_t key[2][LEDGER_KEY];	  /* the two accounts, ascending */
	struct ledger_account account[2]; /* [k]: key[k] hosts */
	uint64_t sequence;		  /* of the last entry; 0: empty */
	uint8_t head[LEDGER_HASH];	  /* its hash; zeros when empty */
	uint64_t countersigned;		  /* entries 1..this are countersigned */
	uint8_t agreed[LEDGER_HASH];	  /* hash of the last of those; zeros: none */
	struct ledger_open *open;
	size_t n_open;
	void *by_session;	    /* private to chain.c: where in open[] */
	struct ledger_signed *tail; /* the entries after `countersigned` */
	size_t n_tail;
	struct ledger_keys keys[2]; /* that followed key[] */
	bool sealed; /* entries to come are our disk's: the newest signature stands for all */
};

/* A writer's clock may step back by this much, as clocks do that are kept right by others,
 * before anybody says that it was set back. */
enum { LEDGER_CLOCK_MS = 1000 };
/* Is this time earlier than that of the host's last entry, by more than that?  Returns by
 * how many ms; 0: no.  It decides nothing. */
int64_t ledger_clock_back(const struct ledger_chain *c, const uint8_t host[LEDGER_KEY],
			  int64_t time_ms);

enum { LEDGER_TAIL_MAX = 64 }; /* a chain with more waiting is not written to */

void ledger_chain_init(struct ledger_chain *c, const uint8_t a[LEDGER_KEY],
		       const uint8_t b[LEDGER_KEY]);
void ledger_chain_copy(struct ledger_chain *to, const struct ledger_chain *from); /* deep */
void ledger_chain_release(struct ledger_chain *c);
/* Which account is it when this key hosts: 0 or 1; -1: neither. */
int ledger_chain_side(const struct ledger_chain *c, const uint8_t host[LEDGER_KEY]);
/* Labels that this side has reserved in the session and not settled. */
uint64_t ledger_reserved(const struct ledger_chain *c, const uint8_t host[LEDGER_KEY],
			 const uint8_t session[16]);
/* Has one of both reserved in a session of this id, if only nothing, and not settled it? */
bool ledger_session_is_open(const struct ledger_chain *c, const uint8_t session[16]);
/* Is it the session in which this side has reserved last, and has it not settled it? */
bool ledger_is_newest(const struct ledger_chain *c, const uint8_t host[LEDGER_KEY],
		      const uint8_t session[16]);

/* May e be the next entry?  0; ERR_LEDGER with the rule that it breaks; ERR_BUDGET
 * when a total would pass its cap. */
MUST_CHECK int ledger_chain_check(const struct ledger_chain *c, const struct ledger_entry *e,
				  struct err *err);
/* Check rules and signatures (the countersignature too, if it has one), then
 * take it; on failure the chain is as it was. */
MUST_CHECK int ledger_chain_add(struct ledger_chain *c, const struct ledger_signed *s,
				struct err *err);
/* The same without looking at signatures: for entries that were checked when they came. */
MUST_CHECK int ledger_chain_replay(struct ledger_chain *c, const struct ledger_signed *s,
				   struct err *err);
/* The oldest entry that waits for it is countersigned now.  ERR_LEDGER if hash
 * is not that entry's or the signature not the client's. */
MUST_CHECK int ledger_chain_countersign(struct ledger_chain *c, const uint8_t hash[LEDGER_HASH],
					const uint8_t signature[LEDGER_SIGNATURE], struct err *err);

/* ---- heads: are both sides' chains the same? ---- */

enum ledger_heads {
	LEDGER_SAME,
	LEDGER_THEY_LACK,   /* they have not seen our tail: send it (chain.tail) */
	LEDGER_WE_LACK,	    /* they are ahead: let them send what we lack */
	LEDGER_ROLLED_BACK, /* they lack an entry that they have signed: stop */
	LEDGER_DIVERGED,    /* another entry under the same number: stop */
};

/* Compares their head (sequence 0 and zeros: an empty chain) with our chain.
 * LEDGER_WE_LACK is provisional: their entries must pass ledger_chain_add(); if
 * they show one that bears our signature, it is us who were rolled back
 * (ledger_signed_by()). */
enum ledger_heads ledger_compare(const struct ledger_chain *c, const uint8_t us[LEDGER_KEY],
				 uint64_t sequence, const uint8_t head[LEDGER_HASH],
				 struct err *err);
/* Has this one of c's two agents written or countersigned s, with any key of its account? */
bool ledger_signed_by(const struct ledger_chain *c, const struct ledger_signed *s,
		      const uint8_t key[LEDGER_KEY]);

/* ---- caps ---- */

/* The spending of a lineage toward everybody, or of an account in all, by price. */
struct ledger_lineage {
	uint8_t id[32];
	struct ledger_spend *at;
	size_t n;
};

/* Sum over this host's chains: what totals of entries say.  Release at the end. */
void ledger_lineage_sum(struct ledger_lineage *l, const uint8_t id[32],
			const uint8_t host[LEDGER_KEY], const struct ledger_chain *const *chains,
			size_t n);
/* The same and what waits for a countersignature: what is shown, and what is held against a cap
 * before more is spent.  id NULL: of all lineages. */
void ledger_lineage_spent(struct ledger_lineage *l, const uint8_t *id,
			  const uint8_t host[LEDGER_KEY], const struct ledger_chain *const *chains,
			  size_t n);
void ledger_lineage_release(struct ledger_lineage *l);
/* All that one account has spent, whatever the lineage, with what waits.  Release at the end. */
void ledger_account_sum(struct ledger_lineage *l, const struct ledger_account *a);
/* How many are counted together with labels of m; NULL: votes.  The first: as totals of entries
 * say; the second: with what waits. */
uint64_t ledger_account_count(const struct ledger_account *a, const struct ledger_mechanism *m);
uint64_t ledger_account_spent(const struct ledger_account *a, const struct ledger_mechanism *m);
uint64_t ledger_lineage_count(const struct ledger_lineage *l, const struct ledger_mechanism *m);
uint64_t ledger_lineage_labels(const struct ledger_lineage *l); /* votes */
/* The mechanism that rule (4) leaves for votes; NULL: none were spent. */
const struct ledger_mechanism *ledger_account_votes(const struct ledger_account *a);

/* Does the entry, written by the lineage's host, say of the lineage what the sum over
 * all its chains (before this entry) says?  ERR_LEDGER.  With labels of more than
 * one price, whole numbers no longer add up, so a reserve is held against
 * epsilon_lineage itself: ERR_BUDGET. */
MUST_CHECK int ledger_lineage_check(const struct ledger_lineage *l, const struct ledger_chain *c,
				    const struct ledger_entry *e, struct err *err);

/* The public epsilon of these spends together, at the smallest delta among them: of one
 * mechanism by its own accountant, of several by the sum of their exact Renyi curves
 * (methods 3.3), or ledger_epsilon_pld() if all of them name it.  ERR_USAGE for a mechanism that
 * dp/ does not know. */
MUST_CHECK int ledger_epsilon(const struct ledger_spend *at, size_t n, double *epsilon,
			      struct err *err);
/* The same; or, where that takes no time and is within the cap, a bound that may be above it. */
MUST_CHECK int ledger_epsilon_up_to(const struct ledger_spend *at, size_t n, double cap,
				    double *epsilon, struct err *err);
/* The same where it takes no time; else ERR_BUSY, and *epsilon is a bound that may be above it. */
MUST_CHECK int ledger_epsilon_now(const struct ledger_spend *at, size_t n, double *epsilon,
				  struct err *err);
/* The same by their privacy loss (dp/pld.h) whatever accountants they name, or by the sum of
 * their curves where that is less: the smallest that can be shown, and a bound as the others. */
MUST_CHECK int ledger_epsilon_pld(const struct ledger_spend *at, size_t n, double *epsilon,
				  struct err *err);
/* Of all that one account has spent, and so many labels of its contract more. */
MUST_CHECK int ledger_account_epsilon(const struct ledger_account *a, uint64_t more,
				      double *epsilon, struct err *err);
/* The whole numbers of labels that stay within these epsilons. */
MUST_CHECK int ledger_caps_from(const struct ledger_mechanism *m, double epsilon_pair,
				double epsilon_lineage, struct ledger_caps *out, struct err *err);
/* Each of the four lowered to that of the other where it is less. */
void ledger_caps_lower(struct ledger_caps *c, const struct ledger_caps *other);

/* ---- the next entry, ready to be signed ---- */

struct ledger_draft {		/* what all of them need */
	const uint8_t *host;	/* LEDGER_KEY bytes: the writer */
	const uint8_t *session; /* 16 bytes */
	const struct ledger_lineage *lineage;
	enum ledger_translator translator;
	int64_t time_ms;
};

/* 0; ERR_BUDGET (reserve: a cap would be passed; the words say which); ERR_LEDGER. */
MUST_CHECK int ledger_contract(struct ledger_entry *e, const struct ledger_chain *c,
			       const struct ledger_draft *d, const struct ledger_mechanism *m,
			       const struct ledger_caps *caps, struct err *err);
MUST_CHECK int ledger_reserve(struct ledger_entry *e, const struct ledger_chain *c,
			      const struct ledger_draft *d, uint64_t labels, struct err *err);
/* released: labels that left this host in the session. */
MUST_CHECK int ledger_settle(struct ledger_entry *e, const struct ledger_chain *c,
			     const struct ledger_draft *d, uint64_t released, uint64_t rows,
			     uint64_t floats, const uint8_t transcript[32], struct err *err);
MUST_CHECK int ledger_refuse(struct ledger_entry *e, const struct ledger_chain *c,
			     const struct ledger_draft *d, uint64_t labels, struct err *err);
MUST_CHECK int ledger_close(struct ledger_entry *e, const struct ledger_chain *c,
			    const struct ledger_draft *d, struct err *err);

#endif

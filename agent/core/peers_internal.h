/* agent/core/peers_internal.h - partners: what is known of them, links, signals.  For agent/core/
 * and its tests alone. */
#ifndef AGENT_CORE_PEERS_INTERNAL_H
#define AGENT_CORE_PEERS_INTERNAL_H

#include "agent/core/core.h"
#include "agent/core/member.h"
#include "agent/core/steps_internal.h"
#include "base/buf.h"
#include "base/message_queue.h"
#include "fed/round.h"
#include "net/bodies.h"
#include "store/store.h"

struct agent_core;
struct session;

enum {
	OUTBOX_MAX = 4 << 20, /* bytes that wait for a link with a full queue */
	MEMBERS_MAX = 128,    /* records of members that we keep */
	GOSSIP_BYTES = 200000,
	TELL_EVERY_MS = 1000, /* a peer's troubles and records of members: no more often */
	BREACHES_MAX = 5,     /* of the protocol, by a partner: then it is one no more */
	CONDUCT_WHY_MAX = 96, /* NUL included */
	COST_TIMES = 2,	      /* who has held a session in vain rests so many times as long ... */
	COST_LIMITS = 8,      /* ... and at most for so many limits of a session */
};

/* Does what a partner offers wake an agent at rest?  Once, and again for a reason alone, so that
 * patience ends a federation. */
enum peer_wakes {
	PEER_WAKES_NEW, /* if no round has had it, as far as is known, or its names or ours changed
			 */
	PEER_WAKES,	/* it does: it was in quarantine, or other names are shared than before */
	PEER_WOKE,	/* it has, or a round has had it: only if names changed, ... */
	PEER_WOKE_BY_NAMES, /* ... for which it has as well: not until they are compared */
	PEER_WAKES_END
};

/* The part of a HELLO about rounds that is said again when it changes. */
struct rounds_hello {
	uint64_t number;     /* to all ... */
	bool proposes, over; /* over: we take part in no more */
	uint8_t digest[32];  /* of the alignment; zeros: none that is current */
	bool heard;	     /* the peer has said the same */
};

/* Of the last round: far from the others' rows; what it sent was not used (fed/round_bound.c). */
enum peer_rows { PEER_ROWS_NEAR, PEER_ROWS_FAR, PEER_ROWS_KEPT_OUT };

struct peer_apart {
	double distance,
		cosine; /* of its rows from the others', in the last round; -1: not known */
	enum peer_rows rows;
	uint32_t kept_out; /* fed_peer.kept_out */
};

/* Of a peer, in mode CONFIG_ROUNDS. */
struct peer_rounds {
	bool proposes; /* it says that it may propose rounds */
	bool over; /* it says that it takes part in none any more: not asked until it says else */
	uint64_t number;    /* of the next round, as it says ... */
	uint64_t number_ms; /* ... since then, or since it greeted */
	uint8_t digest[32];
	bool has_digest;  /* it says that this is its alignment with us, and current */
	bool ack_pending; /* it has not heard yet that ours is the same */
	bool was_ready;	  /* before its last HELLO */
	struct rounds_hello hello_sent; /* our last HELLO to it */
	uint64_t greeted_ms;		/* first since our last round */
	uint32_t aligns;		/* since then */
	bool awaited;			/* since our last round */
	uint32_t awaits;		/* waited for its alignment, in vain; not again ... */
	uint64_t await_from;		/* ... before so many rounds are done */
	bool differs;	    /* its settings are not ours: no rounds of either are joined */
	bool passed;	    /* its turn has passed without a proposal: nobody waits for it */
	uint64_t absent_ms; /* not asked before: it did not answer, declined or was late ... */
	uint32_t absent;    /* ... so often in a row */
	uint64_t train_ms;  /* that it says its last training took; 0: it does not say */
	uint32_t slow;	    /* rounds of ours that it needed more time for */
	uint64_t rest_ms;   /* its proposals are not joined before: they came to nothing ... */
	uint32_t failed;    /* ... so often in a row */
	uint64_t joined; /* the highest serial of its proposals that we have joined; on disk for all
			  * rounds on record */
	/* in the last round that it was asked for, for the owner */
	bool seen;
	uint64_t fate_number; /* which that was */
	enum fed_fate fate;
	char why[AGENT_TEXT_MAX];
	char account[STORE_REFUSED_MAX]; /* what is wrong with the last one it has signed */
	struct peer_apart apart;
};

/* Of a peer: ledger entries that both have signed and one of the two has lost (handback.c). */
struct peer_handback {
	bool answers;	 /* it says how many entries both have signed: it can be asked ... */
	uint64_t claims; /* ... and so many they are */
	bool asking;	 /* our question is under way; nothing else is done with it meanwhile */
	bool failed;	 /* on this link it had no answer that holds: no session, no question */
	char why[AGENT_TEXT_MAX];	 /* ... for this reason, which it is told, too */
	uint8_t question[AGENT_SESSION]; /* random: an answer repeats it */
	size_t returned;		 /* entries that have come, on this link */
	/* Where two ledgers that differ part: equal at `same`, not equal at `differs`; 0: not
	 * looked for. */
	uint64_t same, differs, from; /* from: what our question is about */
	/* its question, while the store is read; and ours, for a hash of our own */
	uint64_t ticket, own_ticket; /* 0: none */
	uint8_t their_question[AGENT_SESSION], their_hash[32];
	uint64_t their_from;
	uint32_t their_max;
	uint64_t n_questions; /* on this link */
};

/* Of a peer: names it put into intersections (intersect.c). */
struct peer_names {
	uint64_t compared;		/* so often, as far as the store remembers */
	struct store_intersection last; /* when compared > 0 */
	uint64_t before;		/* its names in the one before that; 0: there was none */
	uint32_t broken_off;		/* so many in a row, the last ones, were */
	int64_t begun_ms;		/* the last one, on the clock of now_ms: before 0 */
	char warning[AGENT_TEXT_MAX];	/* what is odd about the last one; "": nothing */
};

struct allowance { /* so many at once, so many a second: conduct.c */
	uint64_t at_ms;
	uint32_t used;
};

/* How a partner keeps to the protocol. */
struct conduct {
	uint32_t breaches; /* on disk; none in a day: forgotten */
	uint64_t breach_ms;
	bool shut;	   /* no link to it ... */
	uint64_t until_ms; /* ... before */
	bool announced;	   /* the link is closed, the owner told */
	int code;
	char why[CONDUCT_WHY_MAX]; /* of the last breach; on disk */
	struct allowance plain, stray;
};

/* The last session with it that got past the tails: its settle may come with the next one.  On disk
 * where it was cut off; a crash of ours takes it, and a backup has none of later. */
struct peer_last {
	bool counted; /* there is one, and this is what the other side may settle of it */
	bool over;    /* our side of the conversation was, so the transcript is whole */
	uint8_t session[AGENT_SESSION];
	enum ledger_translator translator;
	uint64_t labels, rows, floats;
	uint8_t transcript[32];
};

/* Of a peer's link that we keep, its turn: where there are more partners than links. */
struct peer_link {
	uint64_t new_ms;  /* until then: it was dialled a moment ago */
	uint32_t vain;	  /* such turns without a HELLO, in a row: no other for its news ... */
	uint64_t from_ms; /* ... before */
	bool called;	  /* the last one was dialled by the peer */
};

struct peer {
	struct store_peer info;
	bool kept; /* we dial it, or wait for it to dial; else it may come, all the same */
	struct peer_link link;
	bool linked;
	bool overflow; /* does not take what we send: the link must go */
	bool greeted;  /* its HELLO came on this link */
	bool proven;   /* ... or on one before: by it, that it has the key that it signs with */
	struct message_queue outbox;
	struct ledger_chain chain;
	/* Of its last contracts, the newest first: it may have votes and a release in turn. */
	struct fair_price fair[2];
	struct fair_price lowered; /* its contract's, by a lower budget of now, for status */
	bool closing; /* our contract stands no more, as its owner said: AGENT_META_CLOSE */
	struct agent_agreement agreement;
	struct store_judgement judgement; /* of its rows, as on disk (judge.c) */
	bool doubted; /* in rounds left out until the next look (rounds_judge.c), in pairs as the
		       * round began (judge.c) */
	struct peer_last last;
	/* alignment: current when the versions are those of now */
	uint8_t version[32]; /* of our names toward it */
	bool aligned;
	uint8_t aligned_ours[32], aligned_theirs[32], digest[32];
	struct store_slot *slots;
	uint32_t n_slots, n_ent, n_rel;
	bool unusable;		    /* nothing of it can be translated */
	uint8_t version_theirs[32]; /* as last heard */
	/* its signal in our queue */
	bool queued, in_round;
	enum peer_wakes wakes;	    /* on disk */
	bool has_rows;		    /* that a session has brought and no round has taken in yet */
	bool signal_pending;	    /* we deferred it: tell it when we are free ... */
	uint64_t signal_pending_ms; /* ... since then */
	uint64_t queue_position;    /* in the queue: lower goes first */
	uint64_t not_before_ms;
	uint32_t failures;	     /* in a row, deferrals included: for the backoff */
	uint32_t failed_row;	     /* sessions that failed in a row */
	uint64_t offered;	     /* serial of its best that it last told us of, ... */
	uint64_t signalled;	     /* ... and for which it was put into the queue */
	uint64_t used_serial;	     /* serial of its best that we last made use of */
	uint64_t using_serial;	     /* ... in the round under way */
	uint64_t heard_round;	     /* of ours, when its last news came ... */
	uint64_t heard_ms, every_ms; /* ... then, and so long after those before; 0: not known */
	/* rounds in the history with its rows in them, and those that were better for it or not */
	uint32_t rounds_had, rounds_better;
	/* what it may not do before: a partner may be broken or hostile */
	uint64_t spent_ms;	 /* be queued: all that our budget allows was spent on it */
	uint64_t hurry_ms;	 /* make us forget the backoff by a signal ... */
	uint32_t hurries;	 /* ... which it did so often since a session with it was done */
	uint64_t rest_ms;	 /* have a session, after one that came to nothing */
	uint64_t serve_ms;	 /* have our tables again */
	uint64_t contract_ms;	 /* have a contract looked at whose price is not known */
	uint64_t members_ms;	 /* tell us of members */
	uint64_t records_ms;	 /* of which each record costs some time: gossip.c */
	uint64_t told_ms;	 /* be told of members again, if there is news of one */
	bool tell_members;	 /* there is */
	uint64_t notice_ms;	 /* be told of to the owner, but for a few in advance */
	uint64_t sent_serial;	 /* serial of our best that it last had ... */
	uint32_t sent_again;	 /* ... and how often again */
	int64_t clock_off_ms;	 /* of its clock, less ours, by its last HELLO */
	bool other_mode;	 /* pairs where we do rounds, or the other way round */
	enum config_roles roles; /* as it says of itself */
	struct peer_rounds fed;
	/* Time that its sessions have taken from others and come to nothing: halved by one that
	 * did not.  It rests for so long, and for so long from then on others go first. */
	uint64_t cost_ms, cost_from_ms;
	struct conduct conduct;
	uint8_t over_session[AGENT_SESSION]; /* the last session that it was told is over */
	struct peer_handback back;
	struct peer_names names;
	struct peer_steps steps;
	/* for the owner */
	char trouble[AGENT_TEXT_MAX];
	uint64_t sessions, failed, bytes_in, bytes_out;
};

struct member_record {
	struct agent_member member;
	struct buf record;  /* as it was signed */
	bool told;	    /* partners have been told of it since it said this name and address */
	uint64_t news_ms;   /* not to be news again before */
	uint8_t teller[32]; /* the partner that told of it; all zero: heard before our start */
	bool contested;	    /* another one tells of other signing keys; the owner knows */
};

/* ---- peers_queue.c ---- */

/* false: it rests, max_rounds are over, client only */
bool peer_queue_hosts(const struct agent_core *c);
bool peer_queue_takes(const struct agent_core *c, const struct peer *p); /* ... of this one */

/* ---- peers_choice.c ---- */

/* What partners have brought, from the history as it is now. */
void peer_choice_count(struct agent_core *c);
/* One of these, by what they have brought, or a new one.  They are put in another order. */
struct peer *peer_choose(struct agent_core *c, struct peer **of, size_t n);
/* The same where they are more than a round has (federation.partners); else NULL. */
struct peer *peer_choose_next(struct agent_core *c, struct peer **of, size_t n);
bool peers_round_full(const struct agent_core *c); /* the round under way has all that it may */
void peer_choice_in_vain(struct agent_core *c);	   /* a session as host has come to nothing */

/* ---- peers_links.c ---- */

/* Links at the start: to all partners, or to as many as federation.links. */
void peers_links_start(struct agent_core *c);
/* Where there are more partners than that: links to those with which nothing is shared go, else one
 * does, and others have their turn.  false: not now, as all that could go have a session, are in a
 * round, or were dialled a moment ago. */
bool peers_links_turn(struct agent_core *c);
void peers_links_again(struct agent_core *c); /* federation.links may be another number */
/* Before it sleeps: to one whose news waits, or where all that are there are of no use.  Returns in
 * how many ms another look pays; UINT64_MAX: not before something happens. */
uint64_t peers_links_search(struct agent_core *c);
void peer_link_anew(struct agent_core *c, struct peer *p); /* it goes, and comes again if kept */

/* ---- peers.c ---- */

bool peer_shares(const struct agent_core *c, char tag); /* names of this kind, with anybody */
/* Key of the alias tables used toward a peer: its own, or nobody's where one name must do for
 * all. */
const uint8_t *peer_names_key(const struct agent_core *c, const uint8_t key[AGENT_KEY]);
uint64_t
peer_offered(const struct agent_core *c); /* serial of what a partner may come for; 0: nothing */
void peer_names_version(const struct agent_core *c, struct peer *p); /* of ours toward it, anew */
/* ms that something waits which has come to nothing so often in a row. */
uint64_t peer_backoff_ms(const struct agent_core *c, uint32_t times);
/* Local ids by slot, GRAPH_NONE where the slot is of the other kind; free() both. */
void peer_slot_ids(const struct store_slot *slots, uint32_t n, uint32_t **ent, uint32_t **rel);
struct peer *peer_find(struct agent_core *c, const uint8_t key[AGENT_KEY]);
/* Where it is dialled: as our owner said, else as it says itself, signed.  "": not known. */
const char *peer_address(const struct agent_core *c, const struct peer *p);
/* It may say another address than before, which counts where our owner has given none. */
void peer_moved(struct agent_core *c, struct peer *p);
size_t peers_listed(const struct agent_core *c);
void peer_new_chain(const struct agent_core *c, struct peer *p); /* empty, for its accounts */
struct peer *peer_new(struct agent_core *c, const struct store_peer *info);
void peer_free(struct peer *p);
static inline bool peer_listed(const struct peer *p)
{
	return p->info.status == STORE_LISTED;
}
void peer_send(struct agent_core *c, struct peer *p, struct buf *message); /* releases it */
bool peer_send_waiting(struct agent_core *c, struct peer *p); /* true: nothing waits any more */
/* One message with this body; session: 16 bytes or NULL. */
void peer_say(struct agent_core *c, struct peer *p, enum net_msg_type type, const uint8_t *session,
	      enum net_body_kind kind, const void *body);
void peer_link_up(struct agent_core *c, struct peer *p, bool called);
void peer_link_down(struct agent_core *c, struct peer *p);
void peer_writable(struct agent_core *c, struct peer *p);
void peer_hello(struct agent_core *c, struct peer *p, const struct net_message *m);
void peer_signal(struct agent_core *c, struct peer *p, const struct net_message *m);
void peer_added(struct agent_core *c, const struct agent_event *e);
void peer_revoked(struct agent_core *c, const struct agent_event *e);
void peer_trouble(struct agent_core *c, struct peer *p, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* ... that is said once: no state of this partner. */
bool peer_warn(struct agent_core *c, struct peer *p, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Alignment known and, as far as we have heard, current. */
bool peer_aligned(const struct peer *p);
bool peer_sends(const struct peer *p);	  /* its rows, as it says */
bool peer_has_news(const struct peer *p); /* it is queued, and sends */
bool peer_nothing_shared(const struct peer *p);
/* Put the alignment in place; slots are copied. */
void peer_align(struct peer *p, const uint8_t ours[32], const uint8_t theirs[32],
		const uint8_t digest[32], const struct store_slot *slots, uint32_t n);
/* When we may propose a session to it. */
uint64_t peer_proposed_from(const struct agent_core *c, const struct peer *p);
/* The peer whose signal is next, NULL if none can be served now; *wait_ms is when
 * another look pays (UINT64_MAX: not before something happens). */
struct peer *peer_queue_next(struct agent_core *c, uint64_t *wait_ms);
void peer_queue_put(struct agent_core *c, struct peer *p, uint64_t serial);
/* What it had said while nothing of it was taken in: it need not say that again. */
void peer_queue_offered(struct agent_core *c, struct peer *p);
void peer_queue_offered_all(struct agent_core *c);
void peer_queue_wake(struct agent_core *c); /* from rest, as its owner wants; commits */
void peer_queue_drop(struct agent_core *c, struct peer *p); /* commits */
void peer_queue_later(struct agent_core *c, struct peer *p, uint64_t at_least_ms);
/* We have waited for it for so many ms in vain: others go first.  Returns for how many ms we should
 * not propose to it. */
uint64_t peer_note_cost(struct agent_core *c, struct peer *p, uint64_t theirs_ms);
/* The same of a session that came to nothing: it and we rest from each other, for longer each
 * time. */
void peer_rest(struct agent_core *c, struct peer *p, uint64_t theirs_ms);
/* It has cost others time, and not as much has passed since its rest. */
bool peer_goes_last(const struct agent_core *c, const struct peer *p);
/* It goes last, and somebody who does not waits for us to be free. */
bool peer_yields(const struct agent_core *c, const struct peer *p);
/* The partner has had our tables of this serial: again at once when they are better, else ever
 * later. */
void peer_note_sent(struct agent_core *c, struct peer *p, uint64_t serial);
/* How long it has to wait before it may be our host; 0: not at all. */
uint64_t peer_must_wait(const struct agent_core *c, const struct peer *p);
void peers_signal_all(struct agent_core *c);
/* Those that we deferred hear that we are free, so that they need not guess when. */
void peers_signal_pending(struct agent_core *c);

/* ---- peers_hello.c ---- */

void peer_say_hello(struct agent_core *c, struct peer *p);
void peer_say_changes(struct agent_core *c); /* who is linked hears what has changed of our HELLO */

/* ---- receive.c ---- */

void receive_message(struct agent_core *c, struct peer *p, const uint8_t *bytes, size_t n);

/* ---- conduct.c ---- */

/* The one place where messages are decoded; false: it can't be read, which is held against p. */
bool conduct_decode(struct agent_core *c, struct peer *p, const uint8_t *bytes, size_t n,
		    struct net_message *m);
void conduct_unreadable(struct agent_core *c, struct peer *p, const struct err *e);
void conduct_say_rest(struct agent_core *c, struct peer *p); /* for the owner: its link rests ... */
void conduct_say_out(struct peer *p);			     /* ... or it is revoked */

/* The partner has done what no honest agent does: its link goes before anything else is heard of
 * it. */
void conduct_breach(struct agent_core *c, struct peer *p, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Close the links of those that broke the protocol, open those that have rested. */
void peers_links_rest(struct agent_core *c);
void conduct_clear(struct peer *p); /* the owner wants it */
void conduct_load(struct peer *p);  /* its count is as it is on disk */

/* ---- gossip.c ---- */

void gossip_load(struct agent_core *c, const struct store_core *saved);
void gossip_release(struct agent_core *c);
void gossip_send(struct agent_core *c, struct peer *p);
/* Tells whoever has not been told of a new partner, as far as it is time. */
void gossip_turn(struct agent_core *c);
void gossip_members(struct agent_core *c, struct peer *p, const struct net_message *m);

/* ---- intersect.c ---- */

/* Of a partner in one intersection, when we put in `ours`. */
size_t intersect_names_max(const struct agent_core *c, size_t ours);
/* How long no intersection with p may begin; 0: one may now. */
uint64_t intersect_wait_ms(const struct agent_core *c, const struct peer *p);
void intersect_load(struct agent_core *c, const struct store_core *saved);
void intersect_start(struct agent_core *c); /* the event START: the time is known */
void intersect_begun(struct session *s);    /* our points are about to leave; commits */
/* The intersection is over, so many names are shared: adds to the batch, tells the owner. */
void intersect_done(struct session *s, struct store_batch *b, uint64_t shared);
/* The session has failed: an intersection of it that is not done was broken off, unless this agent
 * is stopping.  Codes do not tell who did it: partners choose those of their ABORT. */
void intersect_ended(struct session *s);

#endif

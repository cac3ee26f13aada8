/* net/sizes.h - every size that a peer can reach, in one place. */
#ifndef NET_SIZES_H
#define NET_SIZES_H

#include <stdint.h>

enum {
	NET_VERSION = 3,	     /* of everything on the wire; in preamble and prologue */
	NET_KEY_BYTES = 32,	     /* an agent's X25519 static public key: how a peer is known */
	NET_TICKET_BYTES = 16,	     /* an invitation's, shown in a greeting */
	NET_PAIR_SECRET = 32,	     /* what two agents alone know (net/greet.h) */
	NET_PAIR_ID = 8,	     /* which secret of a pair is meant */
	NET_SESSION_BYTES = 16,	     /* a session's random id */
	NET_MESSAGE_MAX = 1 << 20,   /* one message, encoded */
	NET_CONV_PART_MAX = 1 << 18, /* payload of one part of a conversation (256 KiB) */
	NET_DEPTH_MAX = 8,	     /* containers within containers in a body */
	NET_MSG_DEPTH_MAX = 5,	     /* ... in a message; itself and its body are two */
	NET_ITEMS_MAX = 16384,	     /* values of all kinds in a body; net/msg.h: in a message */
	NET_PAIRS_MAX = 64,	     /* keys in one map */
	NET_REASON_MAX = 200,	     /* bytes of a reason given by a peer */
};

/* Limits of fields (net/bodies.def).  Folders above have names of their own for most of them and
 * assert that they are these. */
enum {
	NET_HASH_BYTES = 32,
	NET_SIGNATURE_BYTES = 64,
	NET_HELLO_NAME_MAX = 127, /* bytes of an agent's name, as readers take it */
	NET_RECORD_MAX = 4096,	  /* bytes of a member's record ... */
	NET_RECORDS_MAX = 129,	  /* ... and so many at once */
	NET_DIM_MAX = 4096,	  /* floats in a row that is translated */
	NET_TERMS_MAX = 4096,	  /* bytes of a translation's terms */
	NET_TRANSLATORS = 4,	  /* the last of them: an intersection alone */
	NET_ENTRY_BYTES = 376,	  /* a ledger entry and its signature */
	NET_TAIL_MAX = 64,	  /* entries that wait for a countersignature */
	NET_ENTRIES_BACK = 128,	  /* entries handed back at once */
	/* rounds */
	NET_PROPOSAL_MAX = 16384, /* bytes */
	NET_JOINING_MAX = 4096,
	NET_ROUND_MEMBERS_MAX = 64,
	NET_ROUTE_BYTES = 16, /* digest of what goes between two members */
	NET_ROUND_STAGES_MAX = 4,
	NET_ROUND_VALUES = 8, /* constants of a method */
	NET_METHOD_NAME_MAX = 15,
	NET_MODEL_NAME_MAX = 31,
	NET_ROW_FLOATS_MAX = 8192,
	NET_ROW_VALUE_MAX = 1000000,
	NET_TIME_MAX_MS = 86400000, /* a day */
	/* steps of queries */
	NET_RELATION_MAX = 512, /* bytes of a relation's name */
	NET_POINTS_MAX = 1024,	/* entities asked from; rows by known edges; predicted ones */
	NET_POINT_BYTES = 8,	/* of an entity asked from, at most: a slot, a truth */
	NET_ROW_BYTES = 10,	/* of a row, at most: a slot, a place, a truth */
	NET_PATIENCE_MAX_MS = 600000,
	/* scores under masks (fed/score.h) */
	NET_VECTORS_MAX = 24,	    /* of a question, as an encoder makes them */
	NET_SCORE_SHOWN = 96,	    /* a mask key and its signature */
	NET_SCORE_WORDS = 1 << 17,  /* of 8 bytes, less 1024, in one message ... */
	NET_SCORE_FOLLOW = 4000000, /* ... and in those that follow it, at most */
	/* conversations */
	NET_POINTS_BYTES = 1 << 18, /* of blinded names in one message */
	NET_SLOTS_MAX = 16 << 20,   /* rows of a tensor */
};

#define NET_COUNT_MAX	   (UINT64_C(1) << 53) /* of ledger entries, labels: exact in a double */
#define NET_JOINED_MAX	   0x100000	       /* agents that have joined a frame */
#define NET_SERIAL_MAX	   (UINT64_C(1) << 62) /* of proposals */
#define NET_CLOCK_MAX_MS   (INT64_C(1) << 53)
#define NET_MULTIPLIER_MIN 0.01 /* of noise, against the clip */
#define NET_MULTIPLIER_MAX 1000.0
#define NET_CLIP_MIN	   1e-3
#define NET_CLIP_MAX	   100.0

#endif

/* net/sizes.h - every size that a peer can reach, in one place. */
#ifndef NET_SIZES_H
#define NET_SIZES_H

enum {
	NET_VERSION = 2,	     /* of everything on the wire; in preamble and prologue */
	NET_KEY_BYTES = 32,	     /* an agent's X25519 static public key: how a peer is known */
	NET_TICKET_BYTES = 16,	     /* an invitation's, shown in a greeting */
	NET_SESSION_BYTES = 16,	     /* a session's random id */
	NET_MESSAGE_MAX = 1 << 20,   /* one message, encoded */
	NET_CONV_PART_MAX = 1 << 18, /* payload of one part of a conversation (256 KiB) */
	NET_DEPTH_MAX = 8,	     /* containers within containers in a body */
	NET_MSG_DEPTH_MAX = 5,	     /* ... in a message; itself and its body are two */
	NET_ITEMS_MAX = 16384,	     /* values of all kinds in a body; net/msg.h: in a message */
	NET_PAIRS_MAX = 64,	     /* keys in one map */
	NET_REASON_MAX = 200,	     /* bytes of a reason given by a peer */
};

#endif

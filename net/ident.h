/* net/ident.h - keys and invitations as text that people read and paste.
 *
 * Pure.  Text is lower-case base32 (RFC 4648 alphabet without padding), with
 * check characters, so that a mistyped key is refused rather than unknown. */
#ifndef NET_IDENT_H
#define NET_IDENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "net/sizes.h"

enum {
	NET_SIGN_BYTES = 32, /* Ed25519 public key */
	NET_PSK_BYTES = 32,  /* federation secret */
	NET_HOST_MAX = 255,  /* bytes of a host name */
	NET_NAME_MAX = 64,   /* bytes of an agent's name */
	NET_ID_TEXT = 35,    /* short id with its NUL: 7 groups of 4 joined by '-' */
	NET_KEY_TEXT = 60,   /* a whole key with its NUL */
	NET_INVITE_TEXT = 1024,
};

/* Is this a name that peers take?  1..NET_NAME_MAX bytes of UTF-8 without control characters,
 * those of direction too, or spaces at its ends, and no key.  ERR_USAGE with the reason.  All who
 * set an agent's name ask this. */
MUST_CHECK int net_name_check(const char *name, struct err *e);

/* The public half of an agent. */
struct net_ident {
	uint8_t noise[NET_KEY_BYTES]; /* X25519: links */
	uint8_t sign[NET_SIGN_BYTES]; /* Ed25519: ledger, member records; zeros in a line: not known
				       */
};

/* "abcd-efgh-...": 120 bits of BLAKE2b over both keys and four check characters.
 * For people to compare; not parsed back. */
void net_ident_short(const struct net_ident *id, char out[NET_ID_TEXT]);
/* True if text is a well-formed short id (check characters fit). */
bool net_ident_short_valid(const char *text);

/* Would it be read as a key, with or without '-' in it?  No name is such a text. */
bool net_is_key(const char *text);

/* One 32-byte key: 52 characters and 4 of check.  ERR_INPUT with the reason. */
void net_key_format(const uint8_t key[NET_KEY_BYTES], char out[NET_KEY_TEXT]);
MUST_CHECK int net_key_parse(const char *text, uint8_t key[NET_KEY_BYTES], struct err *e);

/* One line that brings an agent into touch: `fkge join LINE`. */
struct net_invite {
	struct net_ident from;
	char name[NET_NAME_MAX + 1]; /* may be empty */
	char host[NET_HOST_MAX + 1]; /* advertised address; empty: it only dials */
	uint16_t port;		     /* 0 with an empty host */
	bool has_psk;
	uint8_t psk[NET_PSK_BYTES];
	bool has_ticket; /* lets its holder in, if the inviter has it so */
	uint8_t ticket[NET_TICKET_BYTES];
	bool has_seed; /* of the pair's secret (agent/invites.h) */
	uint8_t seed[NET_PAIR_SECRET];
	bool bound; /* made for one key alone, which need not be accepted again */
	uint8_t to[NET_KEY_BYTES];
};

/* "fkge1:<base32 of a msgpack map and a check>".  ERR_USAGE for a host without a
 * port or the reverse.  A line with a psk or a seed is a secret: keep it out of logs. */
MUST_CHECK int net_invite_format(const struct net_invite *in, char out[NET_INVITE_TEXT],
				 struct err *e);
/* Spaces and line ends around it are allowed.  ERR_INPUT, ERR_VERSION. */
MUST_CHECK int net_invite_parse(const char *line, struct net_invite *out, struct err *e);

#endif

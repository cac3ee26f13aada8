/* net/gate.h - what strangers of one source may cost, and how many of their keys are heard.
 *
 * A source is an IPv4 address, or the /64 of an IPv6 address, which is what one customer of a
 * network has.  Each has a bucket of greetings that were refused; a source that has emptied its
 * bucket is not read until the bucket fills again.  Of the keys that knock, so many of one source
 * are told to the owner each minute, and so many in all.  Pure: the caller says what time it is. */
#ifndef NET_GATE_H
#define NET_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/sizes.h"

enum {
	NET_SOURCE_TEXT = 48,	  /* a source as text, with its NUL */
	GATE_REFUSED_MAX = 64,	  /* refused greetings that one source has in advance, */
	GATE_REFUSED_MS = 500,	  /* and one more each */
	GATE_SOURCES = 256,	  /* sources remembered; the one idle for longest goes */
	GATE_KEYS = 1024,	  /* keys reported in GATE_KEY_MS, of all sources, */
	GATE_KEYS_OF_SOURCE = 16, /* and of one */
	GATE_KEY_MS = 60000,
};

struct net_gate_source {
	char source[NET_SOURCE_TEXT]; /* "": free */
	uint64_t empty_ms; /* its bucket is full GATE_REFUSED_MAX * GATE_REFUSED_MS later */
};

struct net_gate_key {
	uint8_t key[NET_KEY_BYTES];
	char source[NET_SOURCE_TEXT];
	uint64_t at_ms; /* 0: free */
};

struct net_gate { /* all zero: nobody has knocked yet */
	struct net_gate_source sources[GATE_SOURCES];
	struct net_gate_key keys[GATE_KEYS];
};

/* The source of an address as text, "host" or "host port"; an address that is none (a name) is its
 * own source. */
void net_gate_source_of(const char *address, char out[NET_SOURCE_TEXT]);
/* May a connection from there be read?  now_ms > 0, never falling, as below. */
bool net_gate_open(const struct net_gate *g, const char *source, uint64_t now_ms);
/* A greeting from there was refused. */
void net_gate_refused(struct net_gate *g, const char *source, uint64_t now_ms);
/* Is the owner to be told of this key?  Each key once in GATE_KEY_MS. */
bool net_gate_tells(struct net_gate *g, const uint8_t key[NET_KEY_BYTES], const char *source,
		    uint64_t now_ms);

#endif

/* agent/log_limit.h - what a peer can make happen again and again is a few lines in the log.
 *
 * A line is about a subject (a peer's key, an address) and a cause, which is words of ours: what a
 * peer has chosen may be in the text, never in the cause.  The first line of a pair is
 * printed at once; those that follow it too soon are kept, equal ones as one with a count, and
 * told after GAP_MIN_MS and then after twice as long each time, up to GAP_MAX_MS, with how long
 * ago the last of them was: what has happened since may stand above them.  Of texts that differ the
 * first ones are kept and the last one, LOG_LIMIT_TEXTS in all, so that new words each time are no
 * flood either.  After a pause of some times that long it begins anew.  Memory is fixed: the pair
 * that was quiet for longest makes room, once what it holds was told. */
#ifndef AGENT_LOG_LIMIT_H
#define AGENT_LOG_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"

enum {
	LOG_LIMIT_PAIRS = 128,
	LOG_LIMIT_TEXT = 320,
	LOG_LIMIT_TEXTS = 4, /* of a pair, at a time */
	LOG_LIMIT_GAP_MIN_MS = 10000,
	LOG_LIMIT_GAP_MAX_MS = 3600000,
};

/* Lines that were not printed yet. */
struct log_limit_held {
	uint64_t n;	/* 0: none */
	uint64_t at_ms; /* of the last one */
	bool mixed;	/* their texts differ; this is the last one's */
	enum log_level level;
	char text[LOG_LIMIT_TEXT];
};

struct log_limit_pair {
	uint64_t id; /* of subject and cause; 0: free */
	uint64_t last_ms, next_ms, gap_ms;
	struct log_limit_held held[LOG_LIMIT_TEXTS]; /* in the order in which they came */
};

struct log_limit {
	struct log_limit_pair pair[LOG_LIMIT_PAIRS];
	void (*print)(void *ctx, enum log_level level, const char *text);
	void *ctx;
};

/* subject: n bytes.  cause: words of ours, such as a format.  now_ms never falls. */
void log_limit_line(struct log_limit *l, const void *subject, size_t n, const char *cause,
		    enum log_level level, uint64_t now_ms, const char *fmt, ...)
	__attribute__((format(printf, 7, 8)));
/* Now and then: tell what was counted. */
void log_limit_tick(struct log_limit *l, uint64_t now_ms);
/* At the end: all of it. */
void log_limit_flush(struct log_limit *l, uint64_t now_ms);

#endif

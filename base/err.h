/* base/err.h - one error space for the whole agent.
 *
 * 0 is success and every failure is negative.  libuv's codes (UV_E*, all in
 * -1..-4095) pass through untouched inside net/ and agent/; ours lie below
 * -10000, so the two can never meet.  SQLite's codes stop inside store/.
 *
 * A function that can say more than a code takes a `struct err *` as its last
 * argument and fills it through err_set(): what went wrong, where (file, line,
 * peer, key), and what the owner can do about it.  The pointer may be NULL. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stddef.h>

/* Of a function whose result says whether it failed: a caller that does not look is a warning. */
#define MUST_CHECK __attribute__((warn_unused_result))

#define ERR_MAP(X)                                                                                 \
	X(ERR_FAIL, -10001, "failed")                                                              \
	X(ERR_USAGE, -10002, "wrong usage or configuration")                                       \
	X(ERR_TIMEOUT, -10003, "timed out")                                                        \
	X(ERR_INPUT, -10004, "bad input file")                                                     \
	X(ERR_UNREACHABLE, -10005, "peer unreachable")                                             \
	X(ERR_IDENTITY, -10006, "peer is not who it must be")                                      \
	X(ERR_VERSION, -10007, "version mismatch")                                                 \
	X(ERR_BUDGET, -10008, "privacy budget would be passed")                                    \
	X(ERR_STORE, -10009, "store damaged or locked")                                            \
	X(ERR_NEWER, -10010, "store was written by a newer fkge")                                  \
	X(ERR_PROTO, -10011, "peer broke the protocol")                                            \
	X(ERR_TOOBIG, -10012, "larger than its limit")                                             \
	X(ERR_CANCELED, -10013, "cancelled")                                                       \
	X(ERR_IO, -10014, "input or output failed")                                                \
	X(ERR_EXISTS, -10015, "exists already")                                                    \
	X(ERR_NOTFOUND, -10016, "not found")                                                       \
	X(ERR_BUSY, -10017, "busy")                                                                \
	X(ERR_REFUSED, -10018, "refused")                                                          \
	X(ERR_LEDGER, -10019, "ledger does not verify")                                            \
	X(ERR_NOFILE, -10020, "no such file")                                                      \
	X(ERR_OLDER, -10021, "store was written by an older fkge")

enum err_code {
#define X(name, code, text) name = (code),
	ERR_MAP(X)
#undef X
};

enum { ERR_TEXT_MAX = 512 };

struct err {
	int code;		 /* 0 or one of the above */
	char text[ERR_TEXT_MAX]; /* one sentence; control characters stand as \xNN */
};

/* The general meaning of a code; static, never NULL. */
const char *err_text(int code);

/* Fill *e (if not NULL) and return code, so that `return err_set(...)` reads well. */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Put "prefix: " before the text that is there; returns e->code. */
int err_prefix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* For a failure that changes nothing for the caller; a comment there says why. */
static inline void err_ignore(int code)
{
	(void)code;
}

/* The exit status of the command for this code (docs/reference/exit-status.md). */
int err_exit_status(int code);

#endif

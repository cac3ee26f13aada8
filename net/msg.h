/* net/msg.h - messages between agents: msgpack arrays [type, session, body].
 *
 *   type     uint in one byte, one of NET_MSG_TYPES; anything else is refused
 *   session  bin of 16 bytes, or of 0 for messages outside a session
 *   body     map with text keys, at most NET_PAIRS_MAX in any map; keys that the reader does not
 *            ask for are ignored, a key given twice is refused
 *
 * Writing never fails for honest sizes: net_write_begin(), one net_put_*() a
 * key, net_write_end().  Reading never trusts a length: the whole message is
 * scanned (depth, number of values against the limit of its type, every length
 * against the bytes that are there, no bytes left over) before msgpack-c may take
 * memory for it.  Decoded values point into the caller's bytes and live as long as those bytes.
 *
 * The getters share one `struct err`: the first failure stays in it and later
 * getters do nothing, so a decoder asks for all its keys and looks once:
 *
 *	struct err e = {0};
 *	uint64_t kind = net_get_uint(body, "k", 0, 255, &e);
 *	struct net_bytes b = net_get_bin(body, "b", 0, NET_CONV_PART_MAX, &e);
 *	if (e.code != 0)
 *		return e.code;
 */
#ifndef NET_MSG_H
#define NET_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "net/sizes.h"

/* name, number on the wire, largest encoded message of this type, most values in it (containers,
 * keys and all that they hold) */
#define NET_MSG_TYPES(X)                                                                           \
	X(HELLO, 1, 16384, 128)                                                                    \
	X(SIGNAL, 2, 4096, 32)                                                                     \
	X(PROPOSE, 3, 16384, 128)                                                                  \
	X(ACCEPT, 4, 16384, 128)                                                                   \
	X(DEFER, 5, 4096, 32)                                                                      \
	X(REFUSE, 6, 4096, 32)                                                                     \
	X(CONV, 7, NET_MESSAGE_MAX, 64)                                                            \
	X(LEDGER_ENTRY, 8, 65536, 64)                                                              \
	X(LEDGER_ACK, 9, 16384, 64)                                                                \
	X(DONE, 10, 65536, 64)                                                                     \
	X(ABORT, 11, 4096, 32)                                                                     \
	X(MEMBERS, 12, 262144, 512)                                                                \
	X(BYE, 13, 4096, 32)                                                                       \
	X(ROUND, 14, NET_MESSAGE_MAX, 1024)                                                        \
	X(LEDGER_PULL, 15, 4096, 32)                                                               \
	X(LEDGER_BACK, 16, 65536, 32)                                                              \
	X(ASK, 17, 16384, 32)                                                                      \
	X(ANSWER, 18, 32768, 32)                                                                   \
	X(SCORE, 19, 49152, 32)                                                                    \
	X(SCORE_KEY, 20, 4096, 32)                                                                 \
	X(SCORE_KEYS, 21, 8192, 32)                                                                \
	X(SCORED, 22, NET_MESSAGE_MAX, 32)

enum net_msg_type {
#define X(name, number, limit, values) NET_MSG_##name = (number),
	NET_MSG_TYPES(X)
#undef X
};

const char *net_msg_name(unsigned type); /* "PROPOSE", or "?" */
size_t net_msg_values(unsigned type);	 /* values in it; 0 for an unknown type */

/* ---- reading ---- */

struct net_map { /* a view; copy freely; dies with its message */
	const void *items;
	size_t n;
};

struct net_list { /* as net_map */
	const void *items;
	size_t n;
};

struct net_bytes { /* into the message; not NUL-terminated */
	const uint8_t *base;
	size_t len;
};

struct net_tensor { /* float32, row-major, little-endian, perhaps not aligned */
	const uint8_t *base;
	size_t rows, cols;
};

struct net_msg {
	enum net_msg_type type;
	bool has_session;
	uint8_t session[NET_SESSION_BYTES]; /* zero without one */
	struct net_map body;
	void *zone; /* private */
};

/* The part of a message before the body. */
struct net_msg_head {
	enum net_msg_type type;
	bool has_session;
	uint8_t session[NET_SESSION_BYTES]; /* zero without one */
};

/* The first few bytes alone, in constant time: a message that nobody waits for is refused
 * by this, and its body is never looked at.  Errors as of net_msg_decode(). */
MUST_CHECK int net_msg_head(struct net_msg_head *h, const uint8_t *base, size_t len, struct err *e);

/* Decode one message.  ERR_TOOBIG above the limit of its type, ERR_PROTO
 * otherwise; m needs no release after an error.  base must outlive m. */
MUST_CHECK int net_msg_decode(struct net_msg *m, const uint8_t *base, size_t len, struct err *e);
void net_msg_release(struct net_msg *m);

struct net_body { /* a map standing alone: the body of a conversation's message */
	struct net_map map;
	void *zone; /* private */
};

/* As net_msg_decode, at most NET_MESSAGE_MAX bytes. */
MUST_CHECK int net_body_decode(struct net_body *b, const uint8_t *base, size_t len, struct err *e);
void net_body_release(struct net_body *b);

bool net_has(const struct net_map *m, const char *key);

/* Each returns the value, or zero with *e set (ERR_PROTO: absent, of another
 * type or outside its bounds; the key is named).  Does nothing when e->code
 * is set already.  e is never NULL. */
uint64_t net_get_uint(const struct net_map *m, const char *key, uint64_t min, uint64_t max,
		      struct err *e);
int64_t net_get_int(const struct net_map *m, const char *key, int64_t min, int64_t max,
		    struct err *e);
bool net_get_bool(const struct net_map *m, const char *key, struct err *e);
/* Finite and within [min, max]; an integer will do. */
double net_get_double(const struct net_map *m, const char *key, double min, double max,
		      struct err *e);
/* UTF-8 without control characters, at most max bytes. */
struct net_bytes net_get_str(const struct net_map *m, const char *key, size_t max, struct err *e);
/* As net_get_str, copied into out[size] with a NUL; at most size - 1 bytes. */
void net_get_text(const struct net_map *m, const char *key, char *out, size_t size, struct err *e);
struct net_bytes net_get_bin(const struct net_map *m, const char *key, size_t min, size_t max,
			     struct err *e);
/* Exactly n bytes, copied; out is zeroed on an error. */
void net_get_fixed(const struct net_map *m, const char *key, void *out, size_t n, struct err *e);
/* [[rows, cols], bin]: both within the limits given, the bytes exactly rows*cols*4, all finite. */
struct net_tensor net_get_tensor(const struct net_map *m, const char *key, size_t rows_max,
				 size_t cols_max, struct err *e);
/* Exactly rows x cols, copied into out. */
void net_get_matrix(const struct net_map *m, const char *key, float *out, size_t rows, size_t cols,
		    struct err *e);
struct net_list net_get_list(const struct net_map *m, const char *key, size_t max, struct err *e);

/* Elements of a list, i < n. */
double net_list_double(const struct net_list *l, size_t i, double min, double max, struct err *e);
struct net_bytes net_list_bin(const struct net_list *l, size_t i, size_t min, size_t max,
			      struct err *e);
struct net_map net_list_map(const struct net_list *l, size_t i, struct err *e);

void net_tensor_copy(const struct net_tensor *t, float *out); /* rows * cols floats */

/* ---- writing ---- */

struct net_writer {
	struct buf *out;
	/* private */
	size_t depth; /* containers open */
	size_t start; /* of this message in out */
	size_t limit;
	struct {
		size_t head;  /* offset of the container's count in out */
		size_t count; /* pairs or elements so far */
		bool list;
	} open[NET_DEPTH_MAX];
};

/* Begin a message, appended to out; session is 16 bytes or NULL. */
void net_write_begin(struct net_writer *w, struct buf *out, enum net_msg_type type,
		     const uint8_t *session);
/* Begin a map standing alone (a conversation's body). */
void net_write_body(struct net_writer *w, struct buf *out);
/* Close what is open.  0, or ERR_TOOBIG when it is over its limit (the bytes are taken back). */
MUST_CHECK int net_write_end(struct net_writer *w, struct err *e);
/* The same of a message whose size depends on nobody but its writer, and is below the limit. */
void net_write_close(struct net_writer *w);

/* key NULL: an element of the list that is open. */
void net_put_uint(struct net_writer *w, const char *key, uint64_t v);
void net_put_int(struct net_writer *w, const char *key, int64_t v);
void net_put_bool(struct net_writer *w, const char *key, bool v);
void net_put_double(struct net_writer *w, const char *key, double v);
/* A part of s that readers would refuse, such as a character that was cut, is marked:
 * text_mark(). */
void net_put_str(struct net_writer *w, const char *key, const char *s);
void net_put_bin(struct net_writer *w, const char *key, const void *bytes, size_t n);
void net_put_tensor(struct net_writer *w, const char *key, const float *v, size_t rows,
		    size_t cols);
/* Containers within: what is put until the matching net_put_end() goes inside. */
void net_put_map(struct net_writer *w, const char *key);
void net_put_list(struct net_writer *w, const char *key);
void net_put_end(struct net_writer *w);

#endif

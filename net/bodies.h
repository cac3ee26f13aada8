/* net/bodies.h - what messages say, as structs: net/bodies.def has all of them.
 *
 * A message is decoded once, by net_message_decode(); its receiver gets the struct.  A body that is
 * not what it must be is decoded up to the fault: `wrong` says which, the fields before it are
 * there, the rest is zero.  Each body has, typed:
 *
 *	net_hello_put(&w, &hello);		into a map that is open
 *	net_hello_get(&map, &hello, &e);	out of one; as the getters of net/msg.h
 */
#ifndef NET_BODIES_H
#define NET_BODIES_H

#include "net/msg.h"

#define NET_DECLARE_uint(field, min, max)   uint64_t field
#define NET_DECLARE_int(field, min, max)    int64_t field
#define NET_DECLARE_flag(field, min, max)   bool field
#define NET_DECLARE_real(field, min, max)   double field
#define NET_DECLARE_text(field, min, max)   char field[(max) + 1]
#define NET_DECLARE_words(field, min, max)  char field[(max) + 1]
#define NET_DECLARE_bytes(field, min, max)  struct net_bytes field
#define NET_DECLARE_fixed(field, min, max)  uint8_t field[max]
#define NET_DECLARE_tensor(field, min, max) struct net_tensor field
#define NET_DECLARE_list(field, min, max)                                                          \
	struct net_bytes field[min];                                                               \
	size_t n_##field
#define NET_DECLARE_reals(field, min, max) double field[min]

#define BODY(name, section)		 struct net_##name {
#define INNER(name, section)		 struct net_##name {
#define MUST(kind, field, key, min, max) NET_DECLARE_##kind(field, min, max);
#define MAY(kind, field, key, min, max)                                                            \
	bool has_##field;                                                                          \
	NET_DECLARE_##kind(field, min, max);
#define PART(name, field) struct net_##name field;
#define PART_IF(name, field, key)                                                                  \
	bool has_##field;                                                                          \
	struct net_##name field;
#define END(name)                                                                                  \
	}                                                                                          \
	;
#include "net/bodies.def"

enum net_body_kind {
	NET_BODY_none, /* BYE, or a kind that there is not */
#define BODY(name, section)  NET_BODY_##name,
#define INNER(name, section) NET_BODY_##name,
#define MUST(kind, field, key, min, max)
#define MAY(kind, field, key, min, max)
#define PART(name, field)
#define PART_IF(name, field, key)
#define END(name)
#include "net/bodies.def"
	NET_BODIES
};

/* Kinds of ROUND: its "k". */
enum net_round_kind {
	NET_ROUND_PROPOSE = 1,
	NET_ROUND_JOIN,
	NET_ROUND_DECLINE,
	NET_ROUND_START,
	NET_ROUND_OUT,
	NET_ROUND_LEAVE,
	NET_ROUND_KEY,
	NET_ROUND_UP,
	NET_ROUND_DOWN,
	NET_ROUND_AGAIN,
	NET_ROUND_SHOW,
	NET_ROUND_SHOWN,
	NET_ROUND_ACCOUNT,
	NET_ROUND_KINDS
};

struct net_message {
	enum net_msg_type type;
	bool has_session;
	uint8_t session[NET_SESSION_BYTES]; /* zero without one */
	const uint8_t *base;		    /* as it came: views point into it */
	size_t n;
	enum net_round_kind round; /* ROUND: its kind, 0 if it is none */
	enum net_body_kind kind;   /* which of these is there */
	struct err wrong;	   /* what is wrong with the body; code 0: nothing */
	union {
#define BODY(name, section) struct net_##name name;
#define INNER(name, section)
#define MUST(kind, field, key, min, max)
#define MAY(kind, field, key, min, max)
#define PART(name, field)
#define PART_IF(name, field, key)
#define END(name)
#include "net/bodies.def"
	};
};

/* Needs no release; base must outlive m.  Errors as of net_msg_decode(), which are in m->wrong,
 * too, with type 0 or as far as the head could be read; 0: an envelope, whose body may be wrong. */
int net_message_decode(struct net_message *m, const uint8_t *base, size_t n, struct err *e);
/* With bytes of its own, to be free()d; memory: what that takes. */
struct net_message *net_message_copy(const struct net_message *m, size_t *memory);

/* Of any body, into or out of a map: use the typed ones below. */
void net_body_put(struct net_writer *w, enum net_body_kind kind, const void *body);
void net_body_get(const struct net_map *m, enum net_body_kind kind, void *body, struct err *e);
/* The body's views point into a copy, at `to`, of the bytes at `from`. */
void net_body_move(enum net_body_kind kind, void *body, const uint8_t *from, const uint8_t *to);

/* Exactly rows x cols, copied; ERR_PROTO as net_get_matrix(). */
void net_tensor_read(const struct net_tensor *t, const char *key, float *out, size_t rows,
		     size_t cols, struct err *e);
static inline struct net_tensor net_tensor_of(const float *v, size_t rows, size_t cols)
{
	return (struct net_tensor){ (const uint8_t *)v, rows, cols };
}

#define NET_TYPED(name)                                                                            \
	static inline void net_##name##_put(struct net_writer *w, const struct net_##name *b)      \
	{                                                                                          \
		net_body_put(w, NET_BODY_##name, b);                                               \
	}                                                                                          \
	static inline void net_##name##_get(const struct net_map *m, struct net_##name *b,         \
					    struct err *e)                                         \
	{                                                                                          \
		net_body_get(m, NET_BODY_##name, b, e);                                            \
	}
#define BODY(name, section)  NET_TYPED(name)
#define INNER(name, section) NET_TYPED(name)
#define MUST(kind, field, key, min, max)
#define MAY(kind, field, key, min, max)
#define PART(name, field)
#define PART_IF(name, field, key)
#define END(name)
#include "net/bodies.def"

#endif

/* tests/edit.h - one field of a message made wrong, the rest kept byte for byte in meaning: for
 * tables of one bad field at a time. */
#ifndef TESTS_EDIT_H
#define TESTS_EDIT_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum edit_how {
	EDIT_REMOVE, /* the field is not there */
	EDIT_UINT,   /* `number` */
	EDIT_TEXT,   /* "x", where no text belongs */
	EDIT_REAL,   /* `real` */
	EDIT_BYTES,  /* `number` bytes of 7 */
	EDIT_FLIP,   /* a bit of the first byte of what is there */
	EDIT_COPY,   /* `bytes`, `number` of them */
};

struct edit {
	const char *key;
	enum edit_how how;
	uint64_t number;
	double real;
	const void *bytes;
};

/* In rows of a table. */
#define NOT_THERE(k)                                                                               \
	{                                                                                          \
		.key = k, .how = EDIT_REMOVE                                                       \
	}
#define NUMBER(k, n)                                                                               \
	{                                                                                          \
		.key = k, .how = EDIT_UINT, .number = n                                            \
	}
#define REAL(k, x)                                                                                 \
	{                                                                                          \
		.key = k, .how = EDIT_REAL, .real = x                                              \
	}
#define TEXT(k)                                                                                    \
	{                                                                                          \
		.key = k, .how = EDIT_TEXT                                                         \
	}
#define LENGTH(k, n)                                                                               \
	{                                                                                          \
		.key = k, .how = EDIT_BYTES, .number = n                                           \
	}
#define FLIPPED(k)                                                                                 \
	{                                                                                          \
		.key = k, .how = EDIT_FLIP                                                         \
	}
#define COPIED(k, b)                                                                               \
	{                                                                                          \
		.key = k, .how = EDIT_COPY, .number = sizeof(b) - 1, .bytes = b                    \
	}

/* In place.  message: [type, session, body]; body: a map.  Fails the test when the key is not
 * there, unless it is set to something. */
void edit_message(struct buf *message, const struct edit *e);
void edit_body(struct buf *body, const struct edit *e);
/* The second member of a message. */
void edit_session(struct buf *message, const uint8_t *id, size_t n);

#endif

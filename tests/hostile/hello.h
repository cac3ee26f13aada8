/* tests/hostile/hello.h - the first message of somebody who is new: a signing key of its own. */
#ifndef TESTS_HOSTILE_HELLO_H
#define TESTS_HOSTILE_HELLO_H

#include "base/buf.h"

void hello_write(struct buf *out); /* appended; random keys */

#endif

/* net/uv/must.h - libuv's calls that fail only when they are used wrongly: timers, handles that are
 * initialised, work that is queued.  Whatever the system can refuse is an error of its caller's. */
#ifndef NET_UV_MUST_H
#define NET_UV_MUST_H

#include <assert.h>

static inline void uv_must(int code)
{
	assert(code == 0);
	(void)code;
}

#endif

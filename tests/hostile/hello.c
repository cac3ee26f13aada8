#include "tests/hostile/hello.h"

#include <sodium.h>

#include "agent/core/core_internal.h"
#include "net/bodies.h"

void hello_write(struct buf *out)
{
	struct net_hello h = { .version = AGENT_PROTOCOL, .name = "knock" };
	struct net_writer w;

	randombytes_buf(h.sign_key, sizeof(h.sign_key));
	randombytes_buf(h.names, sizeof(h.names));
	net_write_begin(&w, out, NET_MSG_HELLO, NULL);
	net_hello_put(&w, &h);
	net_write_close(&w);
}

#include "tests/hostile/hello.h"

#include <sodium.h>
#include <string.h>

#include "agent/core/core_internal.h"
#include "agent/core/member.h"
#include "net/bodies.h"

void hello_write(struct buf *out, const uint8_t key[NET_KEY_BYTES], const uint8_t *claimed)
{
	struct net_hello h = { .version = AGENT_PROTOCOL, .name = "knock" };
	struct net_writer w;
	uint8_t secret[crypto_sign_SECRETKEYBYTES];

	crypto_sign_keypair(h.sign_key, secret);
	agent_keys_sign(key, secret, h.keys_proof);
	if (claimed != NULL)
		memcpy(h.sign_key, claimed, sizeof(h.sign_key));
	randombytes_buf(h.names, sizeof(h.names));
	net_write_begin(&w, out, NET_MSG_HELLO, NULL);
	net_hello_put(&w, &h);
	net_write_close(&w);
}

/* agent/core/peers_hello.c - what a HELLO of ours says, and when it is said again. */
#include <stdio.h>
#include <string.h>

#include "agent/core/core_internal.h"
#include "agent/core/member.h"
#include "agent/core/peers_internal.h"
#include "agent/core/rounds_internal.h"

void peer_say_hello(struct agent_core *c, struct peer *p)
{
	struct net_hello h = { .version = AGENT_PROTOCOL,
			       .serial = peer_offered(c),
			       .has_countersigned = true,
			       .countersigned = p->chain.countersigned,
			       .has_roles = c->config->federation.roles != CONFIG_BOTH_ROLES,
			       .roles = c->config->federation.roles,
			       .has_clock_ms = true,
			       .clock_ms = c->wall_ms };

	snprintf(h.name, sizeof(h.name), "%s", c->config->name);
	memcpy(h.sign_key, c->sign_public, sizeof(h.sign_key));
	agent_keys_sign(c->key, c->sign_secret, h.keys_proof);
	memcpy(h.names, p->version, sizeof(h.names));
	rounds_say_hello(c, p, &h);
	peer_say(c, p, NET_MSG_HELLO, NULL, NET_BODY_hello, &h);
}

void peer_say_changes(struct agent_core *c)
{
	const struct rounds_hello to_all = rounds_hello_to_all(c);

	for (size_t i = 0; i < c->n_peers; i++) {
		struct peer *p = c->peers[i];

		if (p->linked && rounds_hello_changed(c, p, &to_all))
			peer_say_hello(c, p);
	}
}

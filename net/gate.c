#include "net/gate.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

/* ---- sources ---- */

static void source_v6(struct in6_addr *a, char out[NET_SOURCE_TEXT])
{
	char text[INET6_ADDRSTRLEN];

	if (IN6_IS_ADDR_V4MAPPED(a)) {
		inet_ntop(AF_INET, a->s6_addr + 12, out, NET_SOURCE_TEXT);
		return;
	}
	memset(a->s6_addr + 8, 0, 8);
	inet_ntop(AF_INET6, a, text, sizeof(text));
	snprintf(out, NET_SOURCE_TEXT, "%.40s/64", text);
}

void net_gate_source_of(const char *address, char out[NET_SOURCE_TEXT])
{
	struct in6_addr v6;
	char host[NET_SOURCE_TEXT];
	size_t n = strcspn(address, " %"); /* a zone is no part of it */

	snprintf(host, sizeof(host), "%.*s", (int)(n < sizeof(host) ? n : sizeof(host) - 1),
		 address);
	if (inet_pton(AF_INET6, host, &v6) == 1)
		source_v6(&v6, out);
	else
		memcpy(out, host, NET_SOURCE_TEXT);
}

static const struct net_gate_source *find_source(const struct net_gate *g, const char *source)
{
	for (size_t i = 0; i < GATE_SOURCES; i++)
		if (strcmp(g->sources[i].source, source) == 0)
			return &g->sources[i];
	return NULL;
}

/* A free place, or that of the source whose bucket was full first. */
static struct net_gate_source *place_for(struct net_gate *g)
{
	struct net_gate_source *idle = &g->sources[0];

	for (size_t i = 0; i < GATE_SOURCES; i++) {
		struct net_gate_source *s = &g->sources[i];

		if (s->source[0] == '\0')
			return s;
		if (s->empty_ms < idle->empty_ms)
			idle = s;
	}
	return idle;
}

/* ---- the bucket of refused greetings ----
 *
 * empty_ms is the time at which the bucket would have been empty had nothing been taken since: what
 * is in it is (now - empty_ms) / GATE_REFUSED_MS, at most GATE_REFUSED_MAX. */

enum { FULL_MS = GATE_REFUSED_MAX * GATE_REFUSED_MS };

bool net_gate_open(const struct net_gate *g, const char *source, uint64_t now_ms)
{
	const struct net_gate_source *s = find_source(g, source);

	return s == NULL || s->source[0] == '\0' || s->empty_ms + GATE_REFUSED_MS <= now_ms;
}

void net_gate_refused(struct net_gate *g, const char *source, uint64_t now_ms)
{
	struct net_gate_source *s = (struct net_gate_source *)find_source(g, source);
	uint64_t full = now_ms > FULL_MS ? now_ms - FULL_MS : 0;

	if (source[0] == '\0')
		return;
	if (s == NULL) {
		s = place_for(g);
		snprintf(s->source, sizeof(s->source), "%s", source);
		s->empty_ms = full;
	}
	if (s->empty_ms < full)
		s->empty_ms = full;
	s->empty_ms += GATE_REFUSED_MS;
}

/* ---- keys that are told to the owner ---- */

bool net_gate_tells(struct net_gate *g, const uint8_t key[NET_KEY_BYTES], const char *source,
		    uint64_t now_ms)
{
	struct net_gate_key *room = NULL;
	size_t same = 0;

	for (size_t i = 0; i < GATE_KEYS; i++) {
		struct net_gate_key *k = &g->keys[i];
		bool fresh = k->at_ms != 0 && now_ms - k->at_ms < GATE_KEY_MS;

		if (!fresh) {
			room = k;
			continue;
		}
		if (memcmp(k->key, key, NET_KEY_BYTES) == 0)
			return false;
		same += strcmp(k->source, source) == 0;
	}
	if (room == NULL || same >= GATE_KEYS_OF_SOURCE)
		return false;
	memcpy(room->key, key, NET_KEY_BYTES);
	snprintf(room->source, sizeof(room->source), "%s", source);
	room->at_ms = now_ms;
	return true;
}

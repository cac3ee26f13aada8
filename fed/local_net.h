/* fed/local_net.h - what is still to happen in fed/local.h's virtual time, earliest first. */
#ifndef FED_LOCAL_NET_H
#define FED_LOCAL_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fed_event_kind { FED_EVENT_MESSAGE, FED_EVENT_WORKED, FED_EVENT_TICK, FED_EVENT_LOST };

struct fed_event {
	uint64_t at_ms, serial; /* of equal times the earlier made comes first */
	enum fed_event_kind kind;
	size_t to, from;
	int status;	/* WORKED */
	uint8_t *bytes; /* MESSAGE: owned */
	size_t n;
};

struct fed_events {
	struct fed_event *at; /* a heap */
	size_t n, cap;
	uint64_t serial;
};

void fed_events_add(struct fed_events *v, struct fed_event e);
bool fed_events_take(struct fed_events *v, struct fed_event *out);
void fed_events_release(struct fed_events *v);

#endif

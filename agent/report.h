/* agent/report.h - what a running agent says about itself, as JSON (docs: cli/README.md). */
#ifndef AGENT_REPORT_H
#define AGENT_REPORT_H

#include <jansson.h>

#include "agent/core/core.h"
#include "agent/folder.h"
#include "agent/roster.h"
#include "net/uv/hub.h"

struct report_parts {
	const struct agent_core *core;
	const struct folder *folder;
	const struct roster *roster;
	const struct net_hub *hub;
	const char *listen; /* where, as it is */
	uint16_t port;
	const char *http;      /* where HTTP is answered; "": nowhere */
	int64_t started_ms;    /* Unix time */
	uint64_t newest_event; /* its number, by agent/events.h */
	bool control;	       /* federation.control: there is an arm without partners ... */
	bool alone;	       /* ... that has begun, with so many epochs done */
	uint64_t alone_epochs;
	double alone_score;
	double floor;		   /* on valid, of counting; NAN: not known */
	const char *floor_warning; /* the best score is below it, and what helps; "": it is not */
};

json_t *report_json(const struct report_parts *p); /* a new reference */

#endif

#include "agent/events.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"

enum { WAIT_MS = 20000 };

struct happening {
	int64_t wall_ms;
	const char *kind;
	char text[EVENTS_TEXT];
};

struct events {
	struct happening at[EVENTS_KEPT]; /* number n is at n % EVENTS_KEPT */
	int64_t run;
	uint64_t last; /* the newest one's number; 0: none yet */
	struct waiting {
		struct control_call *call; /* NULL: free */
		uint64_t after, since_ms;
	} waiting[EVENTS_WAITING_MAX];
};

struct events *events_new(int64_t run)
{
	struct events *v = mem_array(1, sizeof(*v));

	v->run = run;
	return v;
}

void events_free(struct events *v)
{
	free(v);
}

static void tell_events(const struct events *v, struct control_call *call, uint64_t after)
{
	uint64_t kept = v->last < EVENTS_KEPT ? v->last : EVENTS_KEPT;
	uint64_t first = after < v->last - kept ? v->last - kept + 1 : after + 1;
	json_t *all = json_array();

	for (uint64_t n = first; n <= v->last; n++) {
		const struct happening *h = &v->at[n % EVENTS_KEPT];

		json_array_append_new(all, json_pack("{s:I, s:I, s:s, s:s}", "seq", (json_int_t)n,
						     "time_ms", (json_int_t)h->wall_ms, "kind",
						     h->kind, "text", h->text));
	}
	control_reply(call,
		      json_pack("{s:o, s:I, s:I, s:I}", "events", all, "run", (json_int_t)v->run,
				"last", (json_int_t)v->last, "missed",
				(json_int_t)(first <= v->last ? first - after - 1 : 0)),
		      0, NULL);
}

static void answer_waiting(struct events *v, uint64_t now_ms, bool all)
{
	for (size_t i = 0; i < EVENTS_WAITING_MAX; i++) {
		struct waiting *w = &v->waiting[i];

		if (w->call == NULL ||
		    (!all && w->after >= v->last && now_ms - w->since_ms < WAIT_MS))
			continue;
		tell_events(v, w->call, w->after);
		w->call = NULL;
	}
}

void events_add(struct events *v, int64_t wall_ms, const char *kind, const char *text)
{
	struct happening *h = &v->at[++v->last % EVENTS_KEPT];

	h->wall_ms = wall_ms;
	h->kind = kind;
	snprintf(h->text, sizeof(h->text), "%s", text);
	text_mark(h->text);
}

uint64_t events_last(const struct events *v)
{
	return v->last;
}

void events_ask(struct events *v, struct control_call *call, struct events_wish wish,
		uint64_t now_ms)
{
	bool other = wish.run != 0 && wish.run != v->run;
	uint64_t after = other || wish.after > v->last ? 0 : wish.after;
	size_t i = 0;

	if (!wish.wait || after < v->last) {
		tell_events(v, call, after);
		return;
	}
	while (i < EVENTS_WAITING_MAX && v->waiting[i].call != NULL)
		i++;
	if (i == EVENTS_WAITING_MAX)
		control_reply(call, json_object(), ERR_REFUSED,
			      "as many follow the events already as may");
	else
		v->waiting[i] = (struct waiting){ call, after, now_ms };
}

void events_tick(struct events *v, uint64_t now_ms)
{
	answer_waiting(v, now_ms, false);
}

void events_end(struct events *v)
{
	answer_waiting(v, 0, true);
}

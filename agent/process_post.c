/* agent/process_post.c - what the rest of the process says to the owner and to the core. */

#include "agent/process_internal.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "agent/supervisor.h"
#include "net/ident.h"

int64_t process_wall_ms(void)
{
	uv_timeval64_t t;

	uv_must(uv_gettimeofday(&t));
	return t.tv_sec * 1000 + t.tv_usec / 1000;
}

/* ---- what the owner hears ---- */

void process_say(struct process *p, const char *kind, enum log_level level, const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_at(level, "%s", text);
	events_add(p->events, process_wall_ms(), kind, text);
}

const char *process_name_of(const struct process *p, const uint8_t key[NET_KEY_BYTES],
			    char id[NET_KEY_TEXT])
{
	const struct store_peer *r = roster_find(&p->roster, key);

	net_key_format(key, id);
	return r != NULL && r->name[0] != '\0' ? r->name : id;
}

/* ---- events in ---- */

void process_post(struct process *p, struct agent_event *event)
{
	uv_update_time(&p->loop);
	event->now_ms = uv_now(&p->loop);
	event->wall_ms = process_wall_ms();
	agent_core_event(p->core, event);
	p->changed = true;
}

void process_post_kind(struct process *p, enum agent_event_kind kind)
{
	process_post(p, &(struct agent_event){ .kind = kind });
}

void process_post_peer(struct process *p, enum agent_event_kind kind, const uint8_t key[AGENT_KEY])
{
	struct agent_event event = { .kind = kind, .called = net_hub_called(p->hub, key) };

	memcpy(event.peer, key, AGENT_KEY);
	process_post(p, &event);
}

void process_post_down(struct process *p, const uint8_t key[AGENT_KEY], int status)
{
	struct agent_event event = { .kind = AGENT_EVENT_LINK_DOWN, .status = status };

	memcpy(event.peer, key, AGENT_KEY);
	process_post(p, &event);
}

void process_post_added(struct process *p, const struct store_peer *peer)
{
	struct agent_event event = { .kind = AGENT_EVENT_PEER_ADDED,
				     .name = peer->name,
				     .address = peer->address };

	memcpy(event.peer, peer->key, AGENT_KEY);
	memcpy(event.sign, peer->sign_key, AGENT_KEY);
	process_post(p, &event);
}

void process_stop(struct process *p)
{
	if (p->stopping)
		return;
	p->stopping = true;
	atomic_store(&p->arm.job.cancel, true);
	counting_cancel(&p->counting);
	process_say(p, "stop", LOG_INFO, "stopping");
	if (p->again)
		supervisor_reloading();
	else
		supervisor_stopping();
	process_post_kind(p, AGENT_EVENT_STOP);
}

/* For good: a new start that was under way (process_on_hangup()) does not come. */
void process_end(struct process *p)
{
	p->again = false;
	if (p->stopping)
		supervisor_stopping();
	process_stop(p);
}

void process_fail(struct process *p, int code, const char *text)
{
	if (p->failed.code == 0)
		err_set(&p->failed, code, "%s", text);
	process_say(p, "trouble", LOG_ERROR, "%s", text);
}

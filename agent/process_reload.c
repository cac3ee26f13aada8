/* agent/process_reload.c - agent.yaml, read again: live keys count at once, for others the agent
 * starts anew. */

#include "agent/process_internal.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/listen.h"
#include "agent/reload.h"
#include "agent/supervisor.h"
#include "store/json.h"

/* The command line goes before agent.yaml. */
void process_set_log(const struct process_options *o, const struct config *c)
{
	log_set_name(c->name);
	if (!o->keeps_level)
		log_set_level(c->log.level);
	log_set_format(o->log == PROCESS_LOG_SET    ? c->log.format
		       : o->log == PROCESS_LOG_JSON ? LOG_JSON
						    : LOG_TEXT);
	log_set_journal(o->log == PROCESS_LOG_JOURNAL || log_to_journal());
}

/* Of keys, in words: for the log. */
static void say_keys(struct process *p, const json_t *keys, const char *what)
{
	const json_t *d;
	size_t i;

	json_array_foreach(keys, i, d)
	{
		process_say(p, "settings", LOG_INFO, "%s is %s%s, was %s",
			    json_string_value(json_object_get(d, "key")),
			    json_string_value(json_object_get(d, "is")), what,
			    json_string_value(json_object_get(d, "was")));
	}
}

/* This agent ends cleanly and starts anew in the same process.  By this text, which was checked,
 * and is taken over: nothing that is written into the file meanwhile can keep it from that. */
static void start_anew(struct process *p, struct buf *yaml)
{
	p->next_yaml = *yaml;
	*yaml = (struct buf){ 0 };

	if (signals_listen(p->signals) != 0)
		log_warn("SIGHUP: one more before the agent has started anew ends it");
	process_say(p, "settings", LOG_INFO, "%s is read again: the agent starts anew",
		    p->folder.config_path);
	p->again = true;
	process_stop(p);
}

static bool is_guests_place(const struct config *c, const char *host, uint16_t port)
{
	struct config_http_place place;

	return port != 0 && config_http_place(c->http.listen, &place, NULL) == 0 &&
	       place.kind == CONFIG_HTTP_LOOPBACK && place.port == port &&
	       listen_same_host(host, place.host);
}

/* Does an address that this agent holds now, or its guest, stand in the way there?  By then it is
 * free. */
static bool stands_in_own_way(const struct process *p, const char *host, uint16_t port)
{
	const struct process_guest *g = p->options->guest;
	struct config_http_place place;
	char own[NET_HUB_HOST];

	net_hub_host(p->hub, own);
	if (port == net_hub_port(p->hub) && listen_same_host(host, own))
		return true;
	return g != NULL && port == g->port(g->ctx) &&
	       config_http_place(p->folder.config.http.listen, &place, NULL) == 0 &&
	       listen_same_host(host, place.host);
}

/* Whether another program stands in the way beside the agent itself (of 0.0.0.0, at 127.0.0.2) is
 * seen when the agent has let go: process.c, settle_run(). */
static int may_listen(struct process *p, const struct config *fresh, bool names, struct err *e)
{
	char host[256];
	uint16_t port;
	int why = 0, rc;

	if (strcmp(fresh->listen, "off") == 0)
		return 0;
	rc = config_address(fresh->listen, host, &port, e);
	if (rc != 0)
		return rc;
	if (is_guests_place(fresh, host, port))
		return err_set(e, ERR_USAGE, "listen and http.listen are both at port %u", port);
	if (strcmp(fresh->listen, p->folder.config.listen) != 0 &&
	    (names || listen_is_number(host)))
		why = listen_trial(host, port);
	if (why == 0 || (why == EADDRINUSE && stands_in_own_way(p, host, port)))
		return 0;
	return err_set(e, ERR_IO, "listen: %s cannot be used: %s; choose another address in %s",
		       fresh->listen, listen_why(why), p->folder.config_path);
}

static int may_open_ports(struct process *p, const struct folder *f, bool names, struct err *e)
{
	const struct process_guest *g = p->options->guest;
	char host[NET_HUB_HOST] = "";
	uint16_t port = 0;
	int fd, rc = supervisor_socket(&fd, e);

	if (rc != 0)
		return rc;
	if (fd >= 0) { /* handed over: the setting does not count, and the port stays held */
		close(fd);
	} else {
		rc = may_listen(p, &f->config, names, e);
		net_hub_host(p->hub, host);
		port = net_hub_port(p->hub);
	}
	return rc == 0 && g != NULL ? g->may_open(g->ctx, f, host, port, e) : rc;
}

/* The folder as it lies there now, its keys read anew; the store is its thread's, so it is read
 * beside that. */
static int may_load(struct process *p, const struct folder *f, struct err *e)
{
	uint8_t psk[32];
	bool has;
	int rc = folder_check_writable(f, e);

	if (rc == 0)
		rc = folder_psk(f, &has, psk, e);
	sodium_memzero(psk, sizeof(psk));
	if (rc == 0)
		rc = folder_check_keys(f, e);
	return rc == 0 ? start_check(f, p->start.graph, &p->roster, e) : rc;
}

/* What an agent that starts anew would end of, while this one can still go on.  names: hosts are
 * looked up, which may take seconds. */
static int may_start_anew(struct process *p, const struct config *fresh, bool names, struct err *e)
{
	struct folder f;
	int rc = folder_open(&f, p->folder.path, FOLDER_IDENTITY | FOLDER_READ, e);

	if (rc != 0)
		return rc;
	f.config = *fresh; /* borrowed */
	rc = may_load(p, &f, e);
	if (rc == 0)
		rc = may_open_ports(p, &f, names, e);
	folder_close(&f);
	return rc;
}

/* Beside one worker for each session's conversation: for our own job, for training alone beside it,
 * for a partner's query, and one that is free for names to be looked up. */
enum { WORKERS_BESIDE = 4 };

/* With workers of their own: libuv makes these once in a process.  0: it has not yet, or the
 * environment has said how many. */
static unsigned sessions_at_first;

/* The environment may say another number. */
void process_size_pool(const struct process *p)
{
	char n[16];

	if (getenv("UV_THREADPOOL_SIZE") != NULL)
		return;
	sessions_at_first = p->folder.config.federation.sessions;
	snprintf(n, sizeof(n), "%u", sessions_at_first + WORKERS_BESIDE);
	setenv("UV_THREADPOOL_SIZE", n, 0);
}

static void warn_of(struct process *p, json_t *warnings, const char *text)
{
	process_say(p, "settings", LOG_WARN, "%s", text);
	json_array_append_new(warnings, store_json_of_text(text));
}

/* What a new start with these settings does not bring, or ends of; may_start_anew() has been asked
 * where it is now. */
static json_t *warn_of_next_start(struct process *p, const struct reload *r, bool anew)
{
	json_t *warnings = json_array();
	struct err e = { 0 }, why = { 0 };

	if (!anew && json_array_size(r->waits) > 0 &&
	    may_start_anew(p, &r->fresh, false, &why) != 0) {
		err_set(&e, why.code, "with these settings the agent cannot start again: %s",
			why.text);
		warn_of(p, warnings, e.text);
	}
	if (sessions_at_first > 0 && r->fresh.federation.sessions > sessions_at_first) {
		err_set(&e, ERR_USAGE,
			"federation.sessions: %u have no workers of their own in this process, "
			"which has made those of %u: stop the agent and start it",
			r->fresh.federation.sessions, sessions_at_first);
		warn_of(p, warnings, e.text);
	}
	return warnings;
}

/* The settings in agent.yaml now are taken whole or not at all.  restart: where live keys alone
 * have changed nothing starts anew; else, or where nothing has (a file that agent.yaml names may
 * have), the agent does. */
int process_read_again(struct process *p, bool restart, json_t *reply, struct err *e)
{
	struct config *c = &p->folder.config;
	struct reload r;
	int rc = reload_read(&r, c, p->start.graph, p->folder.config_path, e);
	bool anew;

	if (rc != 0)
		return rc;
	anew = restart && (json_array_size(r.waits) > 0 || json_array_size(r.changed) == 0);
	if (anew)
		rc = may_start_anew(p, &r.fresh, true, e);
	if (rc == 0)
		json_object_set_new(reply, "warnings", warn_of_next_start(p, &r, anew));
	if (anew && rc == 0) {
		start_anew(p, &r.text);
	} else if (!anew) {
		rc = reload_take(&r, c, p->folder.config_path, e);
		if (rc == 0) {
			process_set_log(p->options, c);
			process_post_kind(p, AGENT_EVENT_SETTINGS); /* more rounds, more patience */
			say_keys(p, r.changed, " now");
			say_keys(p, r.waits, " from the next start on");
		}
	}
	json_object_set(reply, "changed", r.changed);
	json_object_set(reply, "waits", r.waits);
	json_object_set_new(reply, "anew", json_boolean(anew));
	reload_release(&r);
	return rc;
}

static void hear_hangup(struct process *p)
{
	json_t *unread = json_object();
	struct err e = { 0 };

	if (!p->stopping && process_read_again(p, true, unread, &e) != 0)
		process_say(p, "trouble", LOG_ERROR,
			    "SIGHUP: the agent goes on with the settings that it has: %s", e.text);
	json_decref(unread);
}

void process_on_hangup(uv_signal_t *h, int number)
{
	struct process *p = h->data;

	signals_seen(p->signals, number);
	hear_hangup(p);
}

/* While there was no loop. */
void process_take_signals(struct process *p)
{
	bool hangup, ending;

	signals_take(p->signals, &hangup, &ending);
	if (ending)
		process_end(p);
	else if (hangup)
		hear_hangup(p);
}

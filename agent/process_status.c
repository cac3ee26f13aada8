/* agent/process_status.c - what the agent is now, as JSON: for commands, the guest and the status
 * file. */

#include "agent/process_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/report.h"
#include "base/file.h"
#include "base/mem.h"

enum { STATUS_REFRESH_MS = 10000, GUEST_REFRESH_MS = 1000 };

/* By counting; NAN: not known yet. */
static double counted_floor(const struct process *p)
{
	double floor = agent_learner_floor(p->start.learner);

	return isnan(floor) ? p->counting.mrr : floor;
}

/* A socket that was handed over is where it is, whatever the settings say. */
const char *process_listens_at(const struct process *p)
{
	return p->handed[0] != '\0' ? p->handed : p->folder.config.listen;
}

json_t *process_status(const struct process *p)
{
	const struct report_parts parts = { .core = p->core,
					    .folder = &p->folder,
					    .roster = &p->roster,
					    .hub = p->hub,
					    .listen = process_listens_at(p),
					    .port = net_hub_port(p->hub),
					    .http = p->where,
					    .started_ms = p->started_ms,
					    .newest_event = events_last(p->events),
					    .control = p->folder.config.federation.control,
					    .alone = p->arm.alone != NULL,
					    .alone_epochs = p->arm.epochs,
					    .alone_score = p->arm.score,
					    .floor = counted_floor(p),
					    .floor_warning = p->floor_warning != NULL
								     ? p->floor_warning
								     : "" };

	return report_json(&parts);
}

/* When the status was written, and by whom: a reader tells from it whether the agent still runs. */
static void write_status_file(struct process *p, json_t *status)
{
	char when[32];
	struct err e = { 0 };
	char *text;
	time_t now = (time_t)(process_wall_ms() / 1000);
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	json_object_set_new(status, "written_at", json_string(when));
	json_object_set_new(status, "pid", json_integer(getpid()));
	text = json_dumps(status, JSON_INDENT(1));
	if (file_write_unsynced(p->options->status_file, text, strlen(text), 0644, &e) != 0)
		log_warn("%s", e.text);
	free(text);
	p->shown_ms = uv_now(&p->loop);
}

bool process_status_is_old(const struct process *p)
{
	return uv_now(&p->loop) - p->shown_ms >= STATUS_REFRESH_MS;
}

static void show_guest(struct process *p, const json_t *status)
{
	json_t *figures = figures_tell(&p->figures);

	p->options->guest->show(p->options->guest->ctx, status, figures);
	json_decref(figures);
	p->guest_ms = uv_now(&p->loop);
}

bool process_guest_waits(const struct process *p)
{
	return p->where[0] != '\0' && uv_now(&p->loop) - p->guest_ms >= GUEST_REFRESH_MS;
}

void process_show_status(struct process *p)
{
	json_t *j;
	char *text;

	if (p->options->status_file == NULL && p->where[0] == '\0')
		return;
	j = process_status(p);
	json_object_set_new(j, "running", json_boolean(!p->closing));
	if (p->where[0] != '\0')
		show_guest(p, j);
	if (p->options->status_file == NULL) {
		json_decref(j);
		return;
	}
	text = json_dumps(j, JSON_INDENT(1));
	if (p->shown == NULL || strcmp(p->shown, text) != 0 || process_status_is_old(p))
		write_status_file(p, j);
	json_decref(j);
	free(p->shown);
	p->shown = text;
}

/* Says once in a run that the tables, once they have been trained, do worse than counting. */
void process_look_at_floor(struct process *p, const struct agent_status *s)
{
	double floor = counted_floor(p);
	struct buf why = { 0 };

	free(p->floor_warning);
	p->floor_warning = NULL;
	if (agent_core_has_settled(p->core) &&
	    config_below_floor(&p->folder.config, p->start.graph, s->best_score, floor, &why))
		p->floor_warning = mem_strdup((const char *)why.base);
	buf_release(&why);
	if (p->floor_warning == NULL || p->floor_told)
		return;
	process_say(p, "trouble", LOG_WARN, "%s", p->floor_warning);
	p->floor_told = p->changed = true;
}

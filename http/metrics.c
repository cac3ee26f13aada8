#include "http/metrics.h"

#include <assert.h>
#include <dirent.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

enum { LABELS_MAX = 3 };

struct label {
	const char *name, *value;
};

/* ---- lines ---- */

static void write_family(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_printf(out, "# TYPE fkge_%s %s\n# HELP fkge_%s %s\n", name, type, name, help);
}

static void write_escaped(struct buf *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '\\' || *text == '"')
			buf_printf(out, "\\%c", *text);
		else if (*text == '\n')
			buf_printf(out, "\\n");
		else
			buf_printf(out, "%c", *text);
	}
}

static void write_sample(struct buf *out, const char *name, const struct label labels[LABELS_MAX],
			 double value)
{
	buf_printf(out, "fkge_%s", name);
	for (int i = 0; i < LABELS_MAX && labels[i].name != NULL; i++) {
		buf_printf(out, "%s%s=\"", i == 0 ? "{" : ",", labels[i].name);
		write_escaped(out, labels[i].value);
		buf_printf(out, "\"");
	}
	buf_printf(out, "%s %.17g\n", labels[0].name != NULL ? "}" : "", value);
}

static const struct label no_labels[LABELS_MAX] = { { NULL, NULL } };

/* One label, or none. */
static void write_labelled(struct buf *out, const char *name, const char *label, const char *value,
			   double x)
{
	write_sample(out, name, (struct label[LABELS_MAX]){ { label, value } }, x);
}

/* ---- figures of the whole agent ---- */

/* The member that a path like "privacy.epsilon" names, or NULL; null counts as none. */
static const json_t *status_at(const json_t *j, const char *path)
{
	const char *dot = strchr(path, '.');
	const json_t *at;

	if (dot == NULL)
		at = json_object_get(j, path);
	else
		at = json_object_getn(j, path, (size_t)(dot - path));
	return dot == NULL || at == NULL ? at : status_at(at, dot + 1);
}

static double value_of(const json_t *j)
{
	return json_is_boolean(j) ? json_is_true(j) : json_number_value(j);
}

static bool has_figure(const json_t *j)
{
	return json_is_number(j) || json_is_boolean(j);
}

struct figure {
	const char *name, *type; /* of the family */
	const char *help;
	const char *label;
	const struct figure_at {
		const char *value, *path; /* of the label; in the status */
	} * at;				  /* ends with path NULL */
};

#define ONE(path) ((const struct figure_at[]){ { NULL, path }, { NULL, NULL } })
#define EACH(...) ((const struct figure_at[]){ __VA_ARGS__, { NULL, NULL } })

static const struct figure agent_figures[] = {
	{ "rounds", "counter", "Rounds that were tried: with partners' rows, and local ones.",
	  "kind", EACH({ "partners", "rounds" }, { "local", "local_rounds" }) },
	{ "improved", "counter", "Best tables that were better than those before.", NULL,
	  ONE("improved") },
	{ "sessions", "counter", "Sessions that came to their end.", NULL, ONE("sessions") },
	{ "sessions_now", "gauge", "Sessions under way.", NULL, ONE("sessions_now") },
	{ "queue", "gauge", "Partners whose news waits to be taken in.", NULL, ONE("queued") },
	{ "job_done", "gauge", "Steps of the job under way that are done.", NULL, ONE("job.done") },
	{ "job_steps", "gauge", "Steps of the job under way; 0: there is none.", NULL,
	  ONE("job.total") },
	{ "labels_spent", "gauge", "Labels spent toward all partners.", NULL,
	  ONE("privacy.labels_spent") },
	{ "labels_cap", "gauge", "Labels that may be spent toward all partners.", NULL,
	  ONE("privacy.labels_cap") },
	{ "epsilon_spent", "gauge", "Epsilon spent toward all partners.", NULL,
	  ONE("privacy.epsilon") },
	{ "rows_sent", "counter", "Rows sent in pairs: bare, of these not even rotated, noisy.",
	  "kind",
	  EACH({ "bare", "privacy.rows_sent" }, { "unrotated", "privacy.unrotated_rows_sent" },
	       { "noisy", "privacy.noisy_rows_sent" }) },
	{ "private_steps", "counter", "Steps of private training that were charged.", NULL,
	  ONE("privacy.private_steps") },
	{ "private_epsilon", "gauge", "Epsilon of private training so far.", NULL,
	  ONE("privacy.private_epsilon") },
	{ "round", "gauge", "Number of the round under way, else of the next one.", NULL,
	  ONE("round.number") },
	{ "round_under_way", "gauge", "1 while a round is under way.", NULL,
	  ONE("round.under_way") },
	{ "rounds_done", "counter", "Rounds of many that this agent took part in.", NULL,
	  ONE("round.done") },
	{ "rounds_missed", "counter", "Rounds of many that this agent missed.", NULL,
	  ONE("round.missed") },
	{ "round_members", "gauge", "Members of this round, or of the last one.", NULL,
	  ONE("round.members") },
	{ "round_rows", "gauge", "Rows shared with members of the round, and those answered.",
	  "kind", EACH({ "shared", "round.items" }, { "answered", "round.answered" }) },
};

static bool is_counter(const struct figure *f)
{
	return strcmp(f->type, "counter") == 0;
}

/* A family with no figure in the status is left out. */
static void write_figure(struct buf *out, const json_t *status, const struct figure *f)
{
	char name[64];
	bool begun = false;

	snprintf(name, sizeof(name), "%s%s", f->name, is_counter(f) ? "_total" : "");
	for (const struct figure_at *at = f->at; at->path != NULL; at++) {
		const json_t *x = status_at(status, at->path);

		if (!has_figure(x))
			continue;
		if (!begun)
			write_family(out, f->name, f->type, f->help);
		begun = true;
		write_labelled(out, name, f->label, at->value, value_of(x));
	}
}

/* Nothing is known of what is left of a cap where what was spent is null. */
static bool is_left_known(const json_t *cap, const json_t *spent)
{
	return json_is_number(cap) && json_is_number(spent);
}

/* What is left of a cap, and no less than nothing. */
static double left_of(const json_t *cap, const json_t *spent)
{
	double left = json_number_value(cap) - json_number_value(spent);

	return left > 0 ? left : 0;
}

static void write_whole(struct buf *out, const json_t *status)
{
	static const char *const states[] = { "busy", "ready", "sleep", "stopped" };
	const char *state = json_string_value(json_object_get(status, "state"));
	const json_t *cap = status_at(status, "privacy.epsilon_cap");
	const json_t *spent = status_at(status, "privacy.epsilon");

	write_family(out, "build", "info", "The program.");
	write_labelled(out, "build_info", "version",
		       json_string_value(json_object_get(status, "version")), 1);
	write_family(out, "start_time_seconds", "gauge", "When the agent started, Unix time.");
	write_sample(out, "start_time_seconds", no_labels,
		     json_number_value(json_object_get(status, "started_ms")) / 1000);
	write_family(out, "state", "stateset", "What the agent is.");
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		write_labelled(out, "state", "fkge_state", states[i],
			       state != NULL && strcmp(state, states[i]) == 0);
	for (size_t i = 0; i < sizeof(agent_figures) / sizeof(agent_figures[0]); i++)
		write_figure(out, status, &agent_figures[i]);
	if (!is_left_known(cap, spent))
		return;
	write_family(out, "epsilon_left", "gauge", "Epsilon left under privacy.epsilon_total.");
	write_sample(out, "epsilon_left", no_labels, left_of(cap, spent));
}

static const struct figure score_figure = {
	"valid_mrr", "gauge",
	"Score on valid: of the best tables, before partners, alone, with them, of "
	"counting.",
	"arm",
	EACH({ "best", "best.valid_score" }, { "before", "arms.before" }, { "alone", "arms.alone" },
	     { "with_partners", "arms.with_partners" }, { "counting", "best.valid_floor" })
};

/* Under private training valid is not looked at, and a score is the number of steps. */
static void write_scores(struct buf *out, const json_t *status)
{
	if (json_integer_value(status_at(status, "privacy.private_steps")) == 0)
		write_figure(out, status, &score_figure);
}

/* ---- of each peer ---- */

struct peer_figure {
	const char *name, *type, *help, *label;
	const struct figure_at *at;
	double scale;
};

static const struct peer_figure peer_figures[] = {
	{ "peer_up", "gauge", "1 while there is a link to the partner.", NULL, ONE("linked"), 1 },
	{ "peer_clock_off_seconds", "gauge", "How far the partner's clock is ahead of ours.", NULL,
	  ONE("clock_off_s"), 1 },
	{ "peer_shared_names", "gauge", "Names that both have.", "kind",
	  EACH({ "entities", "shared_entities" }, { "relations", "shared_relations" }), 1 },
	{ "peer_sessions", "counter", "Sessions with the partner, by how they ended.", "outcome",
	  EACH({ "done", "sessions" }, { "failed", "failed" }), 1 },
	{ "peer_queued", "gauge", "1 while the partner's news waits.", NULL, ONE("queued"), 1 },
	{ "peer_epsilon_spent", "gauge", "Epsilon spent toward the partner.", NULL, ONE("epsilon"),
	  1 },
	{ "peer_rows_sent", "counter", "Rows sent to the partner in pairs.", "kind",
	  EACH({ "bare", "rows_sent" }, { "unrotated", "unrotated_rows_sent" },
	       { "noisy", "noisy_rows_sent" }),
	  1 },
	{ "peer_bytes", "counter", "Bytes over links with the peer since the start.", "direction",
	  EACH({ "in", "bytes_in" }, { "out", "bytes_out" }), 1 },
	{ "peer_links", "counter", "Links with the peer since the start.", NULL, ONE("links"), 1 },
	{ "peer_slowed", "counter", "Times that the peer was read from more slowly.", NULL,
	  ONE("slowed"), 1 },
};

static const char *text_in(const json_t *j, const char *key)
{
	const char *text = json_string_value(json_object_get(j, key));

	return text != NULL ? text : "";
}

static void write_peer_sample(struct buf *out, const char *name, const json_t *peer,
			      const char *label, const char *value, double x)
{
	write_sample(out, name,
		     (struct label[LABELS_MAX]){ { "peer", text_in(peer, "id") },
						 { "name", text_in(peer, "name") },
						 { label, value } },
		     x);
}

/* Or was one, which alone has an epsilon: whoever else calls would put labels of its own into the
 * owner's time series. */
static bool is_partner_of_ours(const json_t *peer)
{
	return strcmp(text_in(peer, "standing"), "partner") == 0 ||
	       json_object_get(peer, "epsilon") != NULL ||
	       json_integer_value(json_object_get(peer, "links")) > 0;
}

static void write_peer_figure(struct buf *out, const json_t *peers, const struct peer_figure *f)
{
	bool counts = strcmp(f->type, "counter") == 0, begun = false;
	const json_t *p;
	char name[64];
	size_t i;

	snprintf(name, sizeof(name), "%s%s", f->name, counts ? "_total" : "");
	json_array_foreach(peers, i, p)
	{
		for (const struct figure_at *at = f->at; at->path != NULL; at++) {
			const json_t *x = json_object_get(p, at->path);

			if (!has_figure(x) || !is_partner_of_ours(p))
				continue;
			if (!begun)
				write_family(out, f->name, f->type, f->help);
			begun = true;
			write_peer_sample(out, name, p, f->label, at->value,
					  value_of(x) * f->scale);
		}
	}
}

static void write_standings(struct buf *out, const json_t *peers)
{
	static const char *const words[] = { "partner", "pending", "rejected", "revoked" };
	const json_t *p;
	size_t i;

	write_family(out, "peers", "gauge", "Peers by standing.");
	for (size_t k = 0; k < sizeof(words) / sizeof(words[0]); k++) {
		unsigned n = 0;

		json_array_foreach(peers, i, p) n += strcmp(text_in(p, "standing"), words[k]) == 0;
		write_labelled(out, "peers", "standing", words[k], n);
	}
}

/* Now, of who is there. */
static void write_last_seen(struct buf *out, const json_t *peers)
{
	bool begun = false;
	const json_t *p;
	size_t i;

	json_array_foreach(peers, i, p)
	{
		double at_s = json_number_value(json_object_get(p, "link_ms")) / 1000;

		if (json_is_true(json_object_get(p, "linked")))
			at_s = (double)time(NULL);
		if (!(at_s > 0))
			continue;
		if (!begun)
			write_family(out, "peer_last_seen_seconds", "gauge",
				     "When there was last a link to the peer, Unix time.");
		begun = true;
		write_peer_sample(out, "peer_last_seen_seconds", p, NULL, NULL, at_s);
	}
}

static void write_peers(struct buf *out, const json_t *peers)
{
	const json_t *p;
	bool begun = false;
	size_t i;

	write_standings(out, peers);
	for (size_t k = 0; k < sizeof(peer_figures) / sizeof(peer_figures[0]); k++)
		write_peer_figure(out, peers, &peer_figures[k]);
	write_last_seen(out, peers);
	json_array_foreach(peers, i, p)
	{
		const json_t *cap = json_object_get(p, "epsilon_cap");
		const json_t *spent = json_object_get(p, "epsilon");

		if (!is_left_known(cap, spent))
			continue;
		if (!begun)
			write_family(out, "peer_epsilon_left", "gauge",
				     "Epsilon left under privacy.epsilon_per_peer.");
		begun = true;
		write_peer_sample(out, "peer_epsilon_left", p, NULL, NULL, left_of(cap, spent));
	}
}

/* ---- of the process ---- */

static void write_counts(struct buf *out, const char *family, const char *help, const char *label,
			 json_t *counts)
{
	const char *key;
	json_t *n;
	char name[64];

	write_family(out, family, "counter", help);
	snprintf(name, sizeof(name), "%s_total", family);
	json_object_foreach(counts, key, n)
		write_labelled(out, name, label, key, json_number_value(n));
}

/* Buckets of OpenMetrics hold all that is smaller, too. */
static void write_loop(struct buf *out, const json_t *loop)
{
	const json_t *turns = json_object_get(loop, "turns"), *n;
	double sum = 0;
	size_t i;

	write_family(out, "loop_busy_seconds", "histogram",
		     "Turns of the event loop, by how long they kept it from the next one.");
	json_array_foreach(turns, i, n)
	{
		const json_t *bound = json_array_get(json_object_get(loop, "bounds_s"), i);
		char text[32] = "+Inf";

		if (bound != NULL)
			snprintf(text, sizeof(text), "%g", json_number_value(bound));
		sum += json_number_value(n);
		write_labelled(out, "loop_busy_seconds_bucket", "le", text, sum);
	}
	write_sample(out, "loop_busy_seconds_count", no_labels, sum);
	write_sample(out, "loop_busy_seconds_sum", no_labels,
		     json_number_value(json_object_get(loop, "busy_s")));
}

static void write_known(struct buf *out, const char *name, const char *help, double x)
{
	if (x < 0)
		return;
	write_family(out, name, "gauge", help);
	write_sample(out, name, no_labels, x);
}

static void write_process(struct buf *out, const struct http_metrics_more *more)
{
	json_t *figures = json_loads(more->figures, 0, NULL);
	const json_t *round_s;

	write_counts(out, "refused", "Connections that were refused.", "reason",
		     json_object_get(figures, "refused"));
	write_counts(out, "sessions_failed", "Sessions that came to nothing.", "reason",
		     json_object_get(figures, "sessions_failed"));
	write_loop(out, json_object_get(figures, "loop"));
	round_s = json_object_get(figures, "round_s");
	if (round_s != NULL)
		write_known(out, "round_seconds", "How long the last round took.",
			    json_number_value(round_s));
	json_decref(figures);
	write_family(out, "http_answers", "counter", "Answers of HTTP, by status.");
	for (int i = 0; i < HTTP_METRICS_STATUS; i++) {
		char code[12];

		snprintf(code, sizeof(code), "%d", 100 + i);
		if (more->answers[i] > 0)
			write_labelled(out, "http_answers_total", "code", code,
				       (double)more->answers[i]);
	}
	write_known(out, "store_bytes", "Size of the store and its log.", more->store_bytes);
	write_known(out, "resident_bytes", "Memory of the process.", more->resident_bytes);
	write_known(out, "descriptors", "Open descriptors of the process.", more->descriptors);
}

void http_metrics_write(const char *status, const struct http_metrics_more *more, struct buf *out)
{
	json_t *j = json_loads(status, 0, NULL);

	assert(j != NULL && more->figures != NULL);
	write_whole(out, j);
	/* chains and statements are checked as the store is opened (store/store.h) */
	write_known(out, "ledger_verified_at_seconds",
		    "When the ledger was last verified, Unix "
		    "time.",
		    json_number_value(json_object_get(j, "started_ms")) / 1000);
	write_scores(out, j);
	write_peers(out, json_object_get(j, "peers"));
	write_process(out, more);
	buf_printf(out, "# EOF\n");
	json_decref(j);
}

/* ---- what the machine knows ---- */

static double size_of(const char *path, const char *end)
{
	char *whole = mem_printf("%s%s", path, end);
	struct stat st;
	double n = stat(whole, &st) == 0 ? (double)st.st_size : -1;

	free(whole);
	return n;
}

static double resident_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	char line[128];
	const char *second = NULL; /* in pages */

	if (f == NULL)
		return -1;
	if (fgets(line, sizeof(line), f) != NULL)
		second = strchr(line, ' ');
	fclose(f);
	return second == NULL ? -1 : strtod(second, NULL) * (double)sysconf(_SC_PAGESIZE);
}

static double open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	double n = -3; /* ".", ".." and that of the folder itself */

	if (d == NULL)
		return -1;
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

void http_metrics_look(struct http_metrics_more *more, const char *store_path)
{
	double log = size_of(store_path, "-wal");

	more->store_bytes = size_of(store_path, "");
	if (more->store_bytes >= 0 && log > 0)
		more->store_bytes += log;
	more->resident_bytes = resident_bytes();
	more->descriptors = open_descriptors();
}

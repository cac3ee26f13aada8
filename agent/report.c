#include "agent/report.h"

#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/admin.h"
#include "base/mem.h"
#include "base/text.h"
#include "fed/round.h"
#include "net/ident.h"

static const char *state_name(enum agent_state s)
{
	static const char *const words[] = { [AGENT_BUSY] = "busy",
					     [AGENT_READY] = "ready",
					     [AGENT_SLEEP] = "sleep",
					     [AGENT_STOPPED] = "stopped" };

	return words[s];
}

static void put_count(json_t *j, const char *key, uint64_t n)
{
	json_object_set_new(j, key, json_integer((json_int_t)n));
}

static void put_number(json_t *j, const char *key, double x)
{
	json_object_set_new(j, key, isfinite(x) ? json_real(x) : json_null());
}

static void put_text(json_t *j, const char *key, const char *text)
{
	char *plain = mem_strdup(text);

	text_mark(plain); /* names of peers may be cut within a character */
	json_object_set_new(j, key, json_string(plain));
	free(plain);
}

/* Under private training nobody looks at valid: its steps stand for a score. */
static bool scores_are_steps(const struct report_parts *p)
{
	return p->folder->config.train.kge.dp.epsilon > 0;
}

static void put_valid(json_t *j, const char *key, const struct report_parts *p, double x)
{
	put_number(j, key, scores_are_steps(p) ? (double)NAN : x);
}

static json_t *best_json(const struct report_parts *p, const struct agent_status *s)
{
	uint8_t digest[32];
	char hex[65];
	json_t *j;

	if (!s->has_best)
		return json_null();
	j = json_object();
	agent_core_best_digest(p->core, digest);
	put_valid(j, "valid_score", p, s->best_score);
	if (scores_are_steps(p))
		put_number(j, "private_steps", s->best_score);
	put_number(j, "valid_floor", p->floor);
	put_text(j, "floor_warning", p->floor_warning);
	put_count(j, "serial", s->served_serial);
	if (s->private_steps == 0) /* it is over rows in the order of ids, which triples make */
		put_text(j, "digest", sodium_bin2hex(hex, sizeof(hex), digest, sizeof(digest)));
	return j;
}

/* As federation.roles has them. */
static const char *roles_word(enum config_roles r)
{
	static const char *const words[] = { [CONFIG_BOTH_ROLES] = "both",
					     [CONFIG_HOST_ONLY] = "host",
					     [CONFIG_CLIENT_ONLY] = "client" };

	return words[r];
}

/* The last intersection: what each side put in; shared is null when it did not come to its end. */
static void put_names(json_t *j, const struct agent_peer_status *s)
{
	put_count(j, "names_compared", s->names_compared);
	if (s->names_compared == 0)
		return;
	json_object_set_new(j, "names_compared_ms", json_integer(s->names.time_ms));
	put_count(j, "names_theirs", s->names.theirs);
	put_count(j, "names_ours", s->names.ours);
	json_object_set_new(j, "names_shared",
			    s->names.done ? json_integer((json_int_t)s->names.shared)
					  : json_null());
	put_text(j, "names_warning", s->names_warning);
}

/* Of its rows in the last session that this agent hosted; nothing, where there was none. */
static void put_agreement(json_t *j, const struct agent_agreement *a)
{
	if (a->rows == 0)
		return;
	put_count(j, "agreement_rows", a->rows);
	put_number(j, "agreement_cosine", a->cosine);
	put_number(j, "agreement_csls", a->csls);
	put_number(j, "agreement_nearest", a->nearest);
}

/* Adds the core's knowledge of a partner, over that of the roster. */
static void add_partner(json_t *j, const struct report_parts *p, const struct agent_peer_status *s)
{
	put_text(j, "address", s->address);
	json_object_set_new(j, "linked", json_boolean(s->linked));
	json_object_set_new(j, "clock_off_s", json_integer(s->clock_off_ms / 1000));
	put_text(j, "role", !s->in_session ? "" : s->role == AGENT_HOST ? "host" : "client");
	put_text(j, "phase", s->phase != NULL ? s->phase : "");
	put_text(j, "trouble", s->trouble);
	json_object_set_new(j, "trouble_passes", json_boolean(s->trouble_passes));
	json_object_set_new(j, "queued", json_boolean(s->queued));
	json_object_set_new(j, "aligned", json_boolean(s->aligned));
	put_count(j, "shared_entities", s->shared_entities);
	put_count(j, "shared_relations", s->shared_relations);
	put_names(j, s);
	put_count(j, "sessions", s->sessions);
	put_count(j, "failed", s->failed);
	put_agreement(j, &s->agreement);
	admin_put_judgement(j, &s->judgement);
	put_count(j, "labels_spent", s->labels_spent);
	put_count(j, "labels_cap", s->labels_cap);
	put_number(j, "epsilon", s->epsilon);
	put_number(j, "epsilon_cap", p->folder->config.privacy.epsilon_per_peer);
	put_count(j, "rows_sent", s->sent.bare);
	put_count(j, "noisy_rows_sent", s->sent.noisy);
	put_count(j, "unrotated_rows_sent", s->sent.unrotated);
	put_text(j, "roles", roles_word(s->roles));
	put_text(j, "round_fate", s->round_fate >= 0 ? fed_fate_name(s->round_fate) : "");
	put_count(j, "round_fate_number", s->round_fate_number);
	put_text(j, "round_why", s->round_why);
	put_text(j, "round_account", s->round_account);
	json_object_set_new(j, "round_over", json_boolean(s->round_over));
	if (s->round_distance >= 0) {
		put_number(j, "round_distance", s->round_distance);
		put_number(j, "round_cosine", s->round_cosine);
		json_object_set_new(j, "round_far", json_boolean(s->round_far));
		json_object_set_new(j, "round_kept_out", json_boolean(s->round_kept_out));
	}
}

static void add_link(json_t *j, const struct report_parts *p, const uint8_t key[STORE_KEY])
{
	struct net_hub_stats stats;

	net_hub_stats(p->hub, key, &stats);
	put_count(j, "bytes_in", stats.bytes_in);
	put_count(j, "bytes_out", stats.bytes_out);
	put_count(j, "links", stats.links);
	json_object_set_new(j, "link_ms", json_integer(stats.link_ms));
	put_count(j, "slowed", stats.slowed);
	put_text(j, "down_why", stats.why);
	json_object_set_new(j, "down_ms", json_integer(stats.why_ms));
}

static json_t *peers_json(const struct report_parts *p, const struct agent_status *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < p->roster->n; i++) {
		const struct store_peer *r = &p->roster->at[i];
		json_t *j = admin_peer_json(r);

		for (size_t k = 0; k < s->n_peers; k++)
			if (memcmp(s->peer[k].key, r->key, STORE_KEY) == 0)
				add_partner(j, p, &s->peer[k]);
		add_link(j, p, r->key);
		json_array_append_new(list, j);
	}
	return list;
}

static json_t *privacy_json(const struct report_parts *p, const struct agent_status *s)
{
	json_t *j = json_object();

	put_count(j, "labels_spent", s->labels_spent);
	put_count(j, "labels_cap", s->labels_cap);
	put_number(j, "epsilon", s->spent.epsilon);
	put_number(j, "epsilon_cap", p->folder->config.privacy.epsilon_total);
	put_text(j, "roles", roles_word(s->roles));
	put_count(j, "rows_sent", s->sent.bare);
	put_count(j, "noisy_rows_sent", s->sent.noisy);
	put_count(j, "unrotated_rows_sent", s->sent.unrotated);
	put_count(j, "private_steps", s->private_steps);
	put_number(j, "private_epsilon", s->private_epsilon);
	return j;
}

static json_t *frame_json(const struct agent_status *s)
{
	char name[FRAME_SHORT];
	json_t *j;

	if (s->frame.joined == 0)
		return json_null();
	frame_short(&s->frame, name);
	j = json_object();
	put_text(j, "name", name);
	put_count(j, "joined", s->frame.joined);
	put_count(j, "age", s->frame.age);
	put_count(j, "moves", s->frame.moves);
	return j;
}

static void add_work(json_t *j, const struct report_parts *p, const struct agent_status *s)
{
	put_text(j, "state", state_name(s->state));
	put_text(j, "doing", s->doing != NULL ? s->doing : "");
	json_object_set_new(j, "job",
			    json_pack("{s:I, s:I}", "done", (json_int_t)s->job_done, "total",
				      (json_int_t)s->job_total));
	json_object_set_new(j, "gains_nothing", json_boolean(s->looks.vain));
	put_count(j, "rounds", s->rounds);
	put_count(j, "local_rounds", s->lone_rounds);
	put_count(j, "improved", s->improved);
	put_count(j, "sessions", s->sessions);
	put_count(j, "sessions_now", s->sessions_now);
	put_count(j, "queued", s->queued);
	json_object_set_new(j, "privacy", privacy_json(p, s));
	json_object_set_new(j, "frame", frame_json(s));
}

static json_t *round_json(const struct report_parts *p, const struct agent_status *s)
{
	const struct agent_round_status *r = &s->round;
	json_t *j = json_object();

	put_text(j, "method", p->folder->config.rounds.method);
	json_object_set_new(j, "under_way", json_boolean(r->under_way));
	put_count(j, "number", r->number);
	put_count(j, "done", r->done);
	put_count(j, "missed", r->missed);
	put_count(j, "looks_without_better", r->worse);
	json_object_set_new(j, "proposes", json_boolean(r->proposes));
	json_object_set_new(j, "over", json_boolean(r->over));
	json_object_set_new(j, "stopped", json_boolean(r->stopped));
	put_text(j, "stopped_why", r->stopped_why);
	json_object_set_new(j, "masked", json_boolean(r->masked));
	if (r->compared && r->averaged) {
		put_number(j, "valid_own", r->own_score);
		put_number(j, "valid_merged", r->merged_score);
	}
	if (r->compared && r->has_alone)
		put_number(j, "valid_alone", r->alone_score);
	if (r->weighed)
		put_number(j, "weight", r->weight);
	put_count(j, "members", r->members);
	put_count(j, "items", r->items);
	put_count(j, "answered", r->answered);
	put_text(j, "trouble", r->trouble);
	put_text(j, "waits", r->waits);
	return j;
}

/* Scores on valid before partners had any part, alone, and with them. */
static json_t *arms_json(const struct report_parts *p, const struct agent_status *s)
{
	json_t *j;

	if (!s->has_before)
		return json_null();
	j = json_object();
	put_valid(j, "before", p, s->before_score);
	json_object_set_new(j, "with_partners", json_null());
	if (!s->best_is_lone) /* rounds that hurt: the best has trained beside them */
		put_valid(j, "with_partners", p, s->best_score);
	put_count(j, "epochs", s->epochs_since);
	json_object_set_new(j, "alone", json_null());
	if (p->control && p->alone) {
		put_valid(j, "alone", p, p->alone_score);
		put_count(j, "alone_epochs", p->alone_epochs);
		put_count(j, "alone_behind",
			  s->epochs_since > p->alone_epochs ? s->epochs_since - p->alone_epochs
							    : 0);
	}
	return j;
}

json_t *report_json(const struct report_parts *p)
{
	struct agent_status s = { 0 };
	char id[NET_KEY_TEXT];
	json_t *j = json_object();

	agent_core_status(p->core, &s);
	net_key_format(p->folder->identity->key, id);
	json_object_set_new(j, "running", json_true());
	put_count(j, "pid", (uint64_t)getpid());
	put_text(j, "version", FKGE_VERSION);
	put_text(j, "name", p->folder->config.name);
	put_text(j, "id", id);
	put_text(j, "listen", p->listen);
	put_count(j, "port", p->port);
	put_text(j, "http", p->http);
	json_object_set_new(j, "started_ms", json_integer(p->started_ms));
	put_count(j, "newest_event", p->newest_event);
	add_work(j, p, &s);
	put_text(j, "suited", p->folder->config.suited != NULL ? p->folder->config.suited : "");
	json_object_set_new(j, "best", best_json(p, &s));
	json_object_set_new(j, "arms", arms_json(p, &s));
	if (p->folder->config.federation.mode == CONFIG_ROUNDS)
		json_object_set_new(j, "round", round_json(p, &s));
	json_object_set_new(j, "peers", peers_json(p, &s));
	agent_status_release(&s);
	return j;
}

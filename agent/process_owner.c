/* agent/process_owner.c - the requests of the owner's commands, by the control socket. */

#include "agent/process_internal.h"

#include <stdlib.h>
#include <string.h>

#include "agent/steps.h"
#include "base/mem.h"

/* The changes by the owner's request, kept until the request is through. */
struct change {
	struct process *of;
	struct store_batch batch; /* beside the peer */
	bool any, forgotten, trusts;
	uint8_t trusted[STORE_KEY]; /* with trusts */
	struct store_peer peer, before;
	bool known; /* before: it was in the roster */
};

/* Before anything is kept: the core would say it in its notices alone, when all has been. */
static int core_may_list(void *ctx, const struct store_peer *peer, struct err *e)
{
	const struct change *c = ctx;

	return agent_core_may_list(c->of->core, peer, e);
}

static int peer_changed(void *ctx, const struct store_peer *peer, const struct store_peer *before,
			struct err *e)
{
	struct change *c = ctx;

	(void)e;
	c->any = true;
	c->peer = *peer;
	c->known = before != NULL;
	if (before != NULL)
		c->before = *before;
	return 0;
}

static int peer_forgotten(void *ctx, const struct store_peer *peer, struct err *e)
{
	((struct change *)ctx)->forgotten = true;
	return peer_changed(ctx, peer, peer, e);
}

static int peer_trusted(void *ctx, const struct store_judgement *j, struct err *e)
{
	struct change *c = ctx;

	(void)e;
	c->trusts = true;
	memcpy(c->trusted, j->peer, sizeof(c->trusted));
	return 0;
}

static int keep_beside(void *ctx, struct store_batch *b, struct err *e)
{
	(void)e;
	store_batch_move(&((struct change *)ctx)->batch, b);
	return 0;
}

static void ticket_held(void *ctx, const struct store_ticket *t)
{
	net_hub_show(((struct change *)ctx)->of->hub, t->peer, t->ticket);
}

/* The core writes the records of partners by itself; those of others are ours. */
static void carry_out(struct process *p, struct change *c, const struct asker *asker)
{
	struct store_batch b = { 0 };

	if (c->any && c->peer.status == STORE_LISTED) {
		process_admit(p, &c->peer, c->known ? &c->before : NULL, &c->batch, asker);
		return;
	}
	store_batch_move(&b, &c->batch);
	if (c->trusts) /* the core commits it: before this batch */
		process_post_peer(p, AGENT_EVENT_PEER_TRUSTED, c->trusted);
	if (c->forgotten) {
		store_batch_unpeer(&b, c->peer.key);
		process_post_peer(p, AGENT_EVENT_PEER_FORGOTTEN, c->peer.key);
	} else if (c->any && c->peer.status == STORE_REVOKED &&
		   !process_newcomer_joins(p, c->peer.key)) {
		process_end_partnership(p, c->peer.key);
	} else if (c->any) {
		store_batch_peer(&b, &c->peer);
	}
	process_add_trimmed(p, &b);
	process_put_chore(p, &b, asker);
}

/* What the owner has decided, by free(); NULL: a question.  An invitation's line holds secrets. */
static char *decision_of(const json_t *request)
{
	static const char *const of_peer[] = { "accept", "reject", "revoke",
					       "forget", "add",	   "trust" };
	const char *what = json_string_value(json_object_get(request, "do"));
	const char *peer = json_string_value(json_object_get(request, "peer"));

	for (size_t i = 0; i < sizeof(of_peer) / sizeof(of_peer[0]); i++)
		if (strcmp(what, of_peer[i]) == 0)
			return mem_printf("%s %.80s", what, peer != NULL ? peer : "");
	if (strcmp(what, "invite") == 0 || strcmp(what, "uninvite") == 0 ||
	    strcmp(what, "join") == 0)
		return mem_strdup(what);
	return NULL;
}

static struct store_judgement *judgements_of(const struct process *p, size_t *n)
{
	struct store_judgement *all;
	struct agent_status s;

	agent_core_status(p->core, &s);
	all = mem_array(s.n_peers + 1, sizeof(*all));
	for (size_t i = 0; i < s.n_peers; i++)
		if (s.peer[i].judgement.judged > 0)
			all[(*n)++] = s.peer[i].judgement;
	agent_status_release(&s);
	return all;
}

static void answer_admin(struct process *p, struct control_call *call, const json_t *request)
{
	struct change change = { .of = p };
	struct admin a = { .folder = &p->folder,
			   .roster = &p->roster,
			   .invites = &p->invites,
			   .now_ms = process_wall_ms(),
			   .port = net_hub_port(p->hub),
			   .running = true,
			   .has_psk = p->has_psk,
			   .psk = p->psk,
			   .ctx = &change,
			   .may_list = core_may_list,
			   .changed = peer_changed,
			   .forgotten = peer_forgotten,
			   .trusted = peer_trusted,
			   .keep = keep_beside,
			   .ticket_held = ticket_held };
	json_t *reply = json_object();
	struct err e = { 0 };
	int rc;

	for (size_t i = 0; i < p->roster.n; i++)
		agent_core_catch_up(p->core, &p->roster.at[i]);
	a.judgements = judgements_of(p, &a.n_judgements);
	rc = admin_run(&a, request, reply, &e);
	free((void *)(uintptr_t)a.judgements);
	p->changed = true;
	if (rc != 0) {
		store_batch_release(&change.batch);
		control_reply(call, reply, rc, e.text);
	} else { /* answered once it is on disk */
		carry_out(p, &change, &(struct asker){ call, reply, decision_of(request) });
	}
}

static void answer_reload(struct process *p, struct control_call *call, bool restart)
{
	json_t *reply = json_object();
	struct err e = { 0 };
	int rc = process_read_again(p, restart, reply, &e);

	control_reply(call, reply, rc, e.text);
}

/* ---- steps of queries ---- */

static void answer_step_request(struct process *p, struct control_call *call, const json_t *request)
{
	struct agent_ask ask;
	struct err e = { 0 };
	int rc = steps_read(&ask, request, graph_vocab_count(p->start.graph->entities), &e);

	if (rc != 0) {
		control_reply(call, json_object(), rc, e.text);
		return;
	}
	ask.ticket = (uint64_t)(uintptr_t)call; /* it waits for io_answered() */
	process_post(p, &(struct agent_event){ .kind = AGENT_EVENT_ASK, .ask = &ask });
	steps_release(&ask);
}

static void io_answered(void *ctx, uint64_t ticket, const struct agent_answer *answers, size_t n)
{
	(void)ctx;
	control_reply((struct control_call *)(uintptr_t)ticket, steps_json(answers, n), 0, NULL);
}

static void answer_scores_request(struct process *p, struct control_call *call,
				  const json_t *request)
{
	struct agent_score_ask ask;
	struct err e = { 0 };
	int rc = steps_scores_read(&ask, request, &e);

	if (rc != 0) {
		control_reply(call, json_object(), rc, e.text);
		return;
	}
	ask.ticket = (uint64_t)(uintptr_t)call; /* it waits for io_scored() */
	process_post(p, &(struct agent_event){ .kind = AGENT_EVENT_SCORE, .score = &ask });
	steps_scores_release(&ask);
}

static void io_scored(void *ctx, uint64_t ticket, const struct agent_scores *scores)
{
	(void)ctx;
	control_reply((struct control_call *)(uintptr_t)ticket, steps_scores_json(scores), 0, NULL);
}

void process_owner_effects(struct agent_io *io)
{
	io->answered = io_answered;
	io->scored = io_scored;
}

void process_request(void *ctx, struct control_call *call, const json_t *request)
{
	struct process *p = ctx;
	const char *what = json_string_value(json_object_get(request, "do"));

	if (what != NULL && strcmp(what, "stop") == 0) {
		control_reply(call, json_object(), 0, NULL);
		process_end(p);
	} else if (what != NULL && strcmp(what, "events") == 0) {
		events_ask(p->events, call,
			   (struct events_wish){
				   (uint64_t)json_integer_value(json_object_get(request, "after")),
				   json_integer_value(json_object_get(request, "run")),
				   json_is_true(json_object_get(request, "wait")) },
			   uv_now(&p->loop));
	} else if (what == NULL || p->stopping || p->closing) {
		control_reply(call, json_object(), what == NULL ? ERR_PROTO : ERR_BUSY,
			      what == NULL ? "a request has a member do" : "the agent is stopping");
	} else if (admin_knows(request)) {
		answer_admin(p, call, request);
	} else if (strcmp(what, "status") == 0) {
		control_reply(call, process_status(p), 0, NULL);
	} else if (strcmp(what, "reload") == 0) {
		answer_reload(p, call, json_is_true(json_object_get(request, "restart")));
	} else if (strcmp(what, "step") == 0) {
		answer_step_request(p, call, request);
	} else if (strcmp(what, "scores") == 0) {
		answer_scores_request(p, call, request);
	} else if (strcmp(what, "train") == 0) {
		process_post_kind(p, AGENT_EVENT_TRAIN);
		control_reply(call, json_object(), 0, NULL);
	} else if (strcmp(what, "resume") == 0) {
		process_post_kind(p, AGENT_EVENT_RESUME);
		process_put_chore(p, &(struct store_batch){ 0 },
				  &(struct asker){ .call = call, .reply = json_object() });
	} else {
		control_reply(call, json_object(), ERR_USAGE,
			      "this agent does not know that request");
	}
}

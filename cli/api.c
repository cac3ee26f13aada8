/* cli/api.c - HTTP's answers, by the functions of the commands. */
#include "cli/api.h"

#include <stdlib.h>

#include "agent/ask.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/commands.h"

enum { ROUNDS_DEFAULT = 20 };

struct api {
	char *folder;
	struct api_tables *tables;
	struct api_turn reading; /* what reads the store does so one at a time */
	struct api_turn asking;	 /* and so what asks the loop, which may be long in coming to it */
};

static int open_api(void *ctx, const char *folder, struct err *e)
{
	struct api *a = ctx;

	a->folder = mem_strdup(folder);
	return api_tables_new(&a->tables, folder, e);
}

static void close_api(void *ctx)
{
	struct api *a = ctx;

	api_tables_free(a->tables);
	free(a->folder);
	a->tables = NULL;
	a->folder = NULL;
}

/* Through the agent's own socket, as the commands ask: the loop answers when it comes to it. */
static int ask_running(struct api *a, const struct http_question *q,
		       const struct http_caller *caller, json_t *reply, struct err *e)
{
	json_t *request, *got = NULL;
	int rc = api_turn_take(&a->asking, caller, e);

	if (rc != 0)
		return rc;
	if (q->what == HTTP_EVENTS)
		request = json_pack("{s:s, s:I, s:I}", "do", "events", "after",
				    (json_int_t)q->after, "run", (json_int_t)q->run);
	else
		request = json_pack("{s:s, s:s, s:b}", "do",
				    q->what == HTTP_ACCEPT ? "accept" : "reject", "peer", q->name,
				    "known", 1);
	rc = agent_ask(a->folder, request, &got, e);
	api_turn_give_back(&a->asking);
	json_decref(request);
	if (rc == 0)
		json_object_update(reply, got);
	json_decref(got);
	return rc;
}

/* The command, quietly, with what it would print in reply. */
static int tell_command(struct api *a, const struct http_question *q,
			const struct http_caller *caller, json_t *reply, struct err *e)
{
	struct cli cli = {
		.folder = a->folder, .json = true, .notes = { .quiet = true }, .result = reply
	};
	int rc = api_turn_take(&a->reading, caller, e);

	if (rc != 0)
		return rc;
	if (q->what == HTTP_LEDGER)
		rc = ledger_tell(&cli, e);
	else if (q->what == HTTP_ROUNDS)
		rc = rounds_tell(&cli, q->limit > 0 ? q->limit : ROUNDS_DEFAULT, caller, e);
	else
		rc = arms_tell(&cli, e);
	api_turn_give_back(&a->reading);
	return api_turn_blame_files(rc, e);
}

static int tell_names(struct api *a, const struct http_question *q, const struct http_best *best,
		      const struct http_caller *caller, json_t *reply, struct err *e)
{
	const struct kge_ask_options how = { q->top, q->known, q->typed };
	const struct kge_near_options near = { q->top, q->far ? KGE_DISTANCE : KGE_COSINE,
					       q->relations, q->typed };
	struct predict_tables t;
	int rc = api_tables_take(a->tables, best, caller, &t, e);

	if (rc != 0)
		return rc;
	if (q->what == HTTP_PREDICT)
		rc = predict_tell(&t, q->triple, &how, reply, e);
	else
		rc = predict_tell_similar(&t, q->name, &near, reply, e);
	api_tables_give_back(a->tables);
	return rc;
}

static int tell_query(struct api *a, const struct http_question *q, const struct http_best *best,
		      const struct http_caller *caller, json_t *reply, struct err *e)
{
	struct api_search *s;
	int rc = api_tables_begin_search(a->tables, best, caller, &s, e);

	if (rc != 0)
		return rc;
	rc = api_search_tell(s, q, caller, reply, e);
	api_tables_end_search(a->tables);
	return rc;
}

static int tell_api(void *ctx, const struct http_question *q, const struct http_best *best,
		    const struct http_caller *caller, json_t *reply, struct err *e)
{
	struct api *a = ctx;

	if (q->what == HTTP_PREDICT || q->what == HTTP_SIMILAR)
		return tell_names(a, q, best, caller, reply, e);
	if (q->what == HTTP_QUERY)
		return tell_query(a, q, best, caller, reply, e);
	if (q->what == HTTP_EVENTS || q->what == HTTP_ACCEPT || q->what == HTTP_REJECT)
		return ask_running(a, q, caller, reply, e);
	return tell_command(a, q, caller, reply, e);
}

struct http_source api_source_new(void)
{
	struct api *a = mem_array(1, sizeof(*a));

	api_turn_init(&a->reading);
	api_turn_init(&a->asking);
	return (struct http_source){
		.ctx = a, .open = open_api, .close = close_api, .tell = tell_api
	};
}

void api_source_free(struct http_source *s)
{
	struct api *a = s->ctx;

	api_turn_destroy(&a->reading);
	api_turn_destroy(&a->asking);
	free(a);
	s->ctx = NULL;
}

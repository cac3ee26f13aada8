/* cli/api_search.c - questions over several steps by tables that stay for many of them. */
#include <stdlib.h>

#include "base/mem.h"
#include "cli/api.h"
#include "cli/query.h"

enum { BEAM = 64, CACHE_MIB = 64 };

struct api_search {
	struct cli cli; /* its result is the reply of the question at hand */
	struct work work;
	struct query_command how;
	struct query_session session;
	struct query_answerer *answerer;
	struct query_stop stop;
	const struct http_caller *caller; /* of the question at hand */
};

static bool is_for_nobody(void *ctx)
{
	const struct api_search *s = ctx;

	return s->caller->is_gone(s->caller->ctx);
}

struct api_search *api_search_new(const struct work *w, struct kge_emb *emb,
				  const struct store_checkpoint *info)
{
	struct api_search *s = mem_array(1, sizeof(*s));

	s->cli = (struct cli){ .json = true, .notes = { .quiet = true } };
	s->work = (struct work){ .graph = w->graph, .words = w->words, .emb = emb, .info = *info };
	/* one thread: the others are for training */
	s->stop = (struct query_stop){ is_for_nobody, s };
	s->how = (struct query_command){ .known = -1,
					 .format = -1,
					 .beam = BEAM,
					 .cache_mb = CACHE_MIB,
					 .threads = 1,
					 .stop = &s->stop };
	query_session_begin(&s->session, &s->cli, &s->work, &s->how, "all");
	s->answerer = query_answerer_new(&s->session);
	return s;
}

void api_search_free(struct api_search *s)
{
	if (s == NULL)
		return;
	query_answerer_free(s->answerer);
	query_session_end(&s->session);
	free(s);
}

int api_search_tell(struct api_search *s, const struct http_question *question,
		    const struct http_caller *caller, json_t *reply, struct err *e)
{
	struct query_sparql q;
	uint64_t top;
	json_t *answers;
	int rc;

	s->how.text = question->name;
	s->how.explain = question->explain;
	s->how.top = question->top;
	s->caller = caller;
	rc = query_text_read(&s->work, &s->how, &q, e);
	if (rc != 0)
		return rc;
	s->cli.result = reply;
	query_text_put(&s->cli, &s->work, &q, false);
	top = query_shown(&s->how, &q, HTTP_TOP_DEFAULT);
	answers = query_answer(s->answerer, &q.tree, top < HTTP_TOP_MAX ? top : HTTP_TOP_MAX);
	if (answers != NULL) {
		cli_put(&s->cli, "answers", answers);
		query_session_put(&s->session);
	}
	s->cli.result = NULL;
	return answers == NULL ? api_turn_for_nobody(e) : 0;
}

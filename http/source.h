/* http/source.h - where answers come from that are not in the status: the command line's own words.
 *
 * cli/ has them (cli/api.h), so that HTTP and the command line cannot say two things. */
#ifndef HTTP_SOURCE_H
#define HTTP_SOURCE_H

#include "http/question.h"

/* The best tables as the loop knows them. */
struct http_best {
	uint64_t improved; /* how often they have changed in this run */
	double score;	   /* as the store has it; NAN: there are none */
};

/* Who waits for an answer. */
struct http_caller {
	/* Has hung up, or the agent is stopping: what takes long may end with ERR_CANCELED. */
	bool (*is_gone)(void *ctx);
	void *ctx;
};

struct http_source {
	void *ctx;
	/* When an agent opens its folder, and after the last tell(). */
	int (*open)(void *ctx, const char *folder, struct err *e);
	void (*close)(void *ctx);
	/* Puts what is asked for into `reply`, an object.  On threads of HTTP, several at a time.
	 * ERR_USAGE, ERR_NOTFOUND: the question is wrong; ERR_BUSY: not now. */
	int (*tell)(void *ctx, const struct http_question *q, const struct http_best *best,
		    const struct http_caller *caller, json_t *reply, struct err *e);
};

#endif

/* lab/child.h - our own program, run again as a process of its own.
 *
 * `fkge demo` and `fkge experiment` play several owners: what an owner types, they run.  A
 * child ends when its parent does, whatever becomes of the parent. */
#ifndef LAB_CHILD_H
#define LAB_CHILD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

enum { CHILD_WORDS_MAX = 16 };

struct child {
	pid_t pid; /* 0: none */
	int out;   /* its standard output, or -1 */
	char what[64];
};

/* fkge --json -d FOLDER words... (NULL at the end); standard error goes to the file
 * `log`, behind what is there.  With `keep_output` its result can be had afterwards; without, it
 * runs beside us, and Ctrl-C in a terminal reaches us alone: we end it, with one signal. */
int child_start(struct child *c, const char *folder, const char *const *words, const char *log,
		bool keep_output, struct err *e);

/* Wait for the end.  *result (may be NULL) is the object that it printed, to be
 * json_decref()ed.  An exit status other than 0 is the error that it printed. */
int child_finish(struct child *c, json_t **result, struct err *e);

/* Both in one. */
int child_run(const char *folder, const char *const *words, const char *log, json_t **result,
	      struct err *e);

/* Whether it has ended; then *status is as of waitpid() and c->pid is 0. */
bool child_has_ended(struct child *c, int *status);
void child_kill(struct child *c, int signal); /* and, for SIGKILL, wait for its end */

/* Another program: `text` goes to its standard input, what it prints is appended to *out.
 * ERR_NOTFOUND when there is no such program; ERR_FAIL when its status is not 0. */
int child_filter(const char *const *argv, const struct buf *text, struct buf *out, struct err *e);

/* A TCP port that nobody uses now at this IPv4 address of ours, as INADDR_LOOPBACK. */
int child_free_port(uint32_t address, uint16_t *port, struct err *e);

/* cp -R. */
int child_copy(const char *from, const char *to, struct err *e);

#endif

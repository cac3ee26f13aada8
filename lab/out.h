/* lab/out.h - what long work says to people while it runs, on standard error. */
#ifndef LAB_OUT_H
#define LAB_OUT_H

#include <stdbool.h>
#include <stdint.h>

struct lab_out {
	bool quiet;
};

void lab_note(const struct lab_out *notes, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

struct progress {
	const struct lab_out *notes;
	const char *label;
	uint64_t begun_ms, drawn_ms;
	bool shown;
	bool lines; /* set by who begins it: where stderr is no terminal, a line now and then */
};

/* Nothing is drawn during the first second.  When stderr is no terminal nothing is, or a line each
 * half a minute (lines). */
struct progress lab_progress_begin(const struct lab_out *notes, const char *label);
void lab_progress_at(struct progress *p, double part, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void lab_progress_end(struct progress *p);

/* For work that does not say how far it is: its seconds, under the same conditions. */
struct waiting *lab_waiting_begin(const struct lab_out *notes,
				  const char *label); /* NULL: not shown */
void lab_waiting_end(struct waiting *w);

#endif

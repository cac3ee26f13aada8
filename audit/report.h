/* audit/report.h - what an audit has looked at, and the verdict.
 *
 * A line is one measurement.  Of a *control* the audited thing is wrong on purpose: an
 * audit that finds nothing wrong with it could not have found anything in the real one
 * either.  So the verdict is
 *
 *   failed         something was found in what ships
 *   not resolved   nothing was, and a control was missed as well, or there was none
 *   passed         nothing was found in what ships, and every control was found */
#ifndef AUDIT_REPORT_H
#define AUDIT_REPORT_H

#include <stdbool.h>
#include <stddef.h>

enum { AUDIT_TEXT = 200 };

struct audit_line {
	char kind;    /* 'A' non-interference, 'B' labels, 'C' released matrices, 'D' private
			 training, 'E' the source of random bytes */
	bool control; /* wrong on purpose */
	bool found;   /* the audit found it wrong */
	double lower; /* measured lower bound on epsilon; NAN where nothing is measured */
	double upper; /* accounted epsilon that it must not pass; NAN likewise */
	char what[AUDIT_TEXT], seen[AUDIT_TEXT];
};

struct audit_report {
	struct audit_line *at;
	size_t n;
};

/* A new line, not found wrong and without figures; `what` by a format.  The report's until
 * the next call. */
struct audit_line *audit_report_add(struct audit_report *r, char kind, bool control,
				    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void audit_report_release(struct audit_report *r);

bool audit_line_good(const struct audit_line *l); /* found == control */
enum audit_verdict { AUDIT_PASSED, AUDIT_FAILED, AUDIT_NOT_RESOLVED };
enum audit_verdict audit_report_verdict(const struct audit_report *r);
const char *audit_verdict_name(enum audit_verdict v); /* "not resolved" */

#endif

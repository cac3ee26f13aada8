/* audit/report.c - lines and the verdict. */
#include "audit/report.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

struct audit_line *audit_report_add(struct audit_report *r, char kind, bool control,
				    const char *fmt, ...)
{
	va_list ap;
	r->at = mem_resize(r->at, r->n + 1, sizeof(*r->at));
	struct audit_line *l = &r->at[r->n++];
	*l = (struct audit_line){ .kind = kind, .control = control, .lower = NAN, .upper = NAN };
	va_start(ap, fmt);
	vsnprintf(l->what, sizeof(l->what), fmt, ap);
	va_end(ap);
	return l;
}

void audit_report_release(struct audit_report *r)
{
	free(r->at);
	*r = (struct audit_report){ 0 };
}

bool audit_line_good(const struct audit_line *l)
{
	return l->found == l->control;
}

enum audit_verdict audit_report_verdict(const struct audit_report *r)
{
	size_t real = 0, planted = 0, good = 0;

	for (size_t i = 0; i < r->n; i++) {
		if (!r->at[i].control && r->at[i].found)
			return AUDIT_FAILED;
		real += !r->at[i].control;
		planted += r->at[i].control;
		good += audit_line_good(&r->at[i]);
	}
	return real > 0 && planted > 0 && good == r->n ? AUDIT_PASSED : AUDIT_NOT_RESOLVED;
}

const char *audit_verdict_name(enum audit_verdict v)
{
	static const char *const names[] = { "passed", "failed", "not resolved" };

	return names[v];
}

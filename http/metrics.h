/* http/metrics.h - the figures of an agent as OpenMetrics text 1.0.
 *
 * All are made of what `fkge status --json` shows, so the two agree; a figure that the status does
 * not have is left out, not 0.  docs/reference/http.md lists them. */
#ifndef HTTP_METRICS_H
#define HTTP_METRICS_H

#include <stdint.h>

#include "base/buf.h"

#define HTTP_METRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* What is not in the status; below 0: not known. */
struct http_metrics_more {
	const char *figures; /* agent/figures.h */
	double store_bytes, resident_bytes, descriptors;
	const uint64_t *answers; /* by status of HTTP from 100 on: HTTP_METRICS_STATUS of them */
};
enum { HTTP_METRICS_STATUS = 500 };

/* Appends; `status` and the figures are JSON of our own making. */
void http_metrics_write(const char *status, const struct http_metrics_more *more, struct buf *out);

/* Of this process and its store, as they are now. */
void http_metrics_look(struct http_metrics_more *more, const char *store_path);

#endif

/* http/deadlines.h - no connection takes longer than it may.
 *
 * A client that sends a byte now and then is never idle, so an idle timeout does not end it.  Here
 * each connection has a time by which something must be whole; a thread shuts those that are late.
 * Where there are too many, the oldest that has shown no key makes room, so that programs without
 * one do not keep the owner out. */
#ifndef HTTP_DEADLINES_H
#define HTTP_DEADLINES_H

struct http_deadlines;
struct http_deadline;

struct http_deadlines *http_deadlines_new(unsigned most);
/* When all connections are gone. */
void http_deadlines_free(struct http_deadlines *d);
/* fd stays open until http_deadlines_remove(). */
struct http_deadline *http_deadlines_add(struct http_deadlines *d, int fd, unsigned ms);
void http_deadlines_set(struct http_deadlines *d, struct http_deadline *at, unsigned ms);
/* It has shown a key. */
void http_deadlines_know(struct http_deadlines *d, struct http_deadline *at);
void http_deadlines_remove(struct http_deadlines *d, struct http_deadline *at);

#endif

#include "base/message_queue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { ALLOCATION = 32 }; /* bytes that an allocation takes beside what was asked for, about */

static size_t queued_bytes(size_t n)
{
	return sizeof(struct queued_message) + ALLOCATION + n;
}

void message_queue_add(struct message_queue *q, const uint8_t *bytes, size_t n)
{
	struct queued_message *m = mem_array(1, sizeof(*m) + n);

	assert((q->first == NULL) == (q->bytes == 0));
	assert(bytes != NULL || n == 0);
	m->n = n;
	memcpy(m->bytes, bytes, n);
	if (q->first == NULL)
		q->end = &q->first;
	*q->end = m;
	q->end = &m->next;
	q->bytes += queued_bytes(n);
}

struct queued_message *message_queue_take(struct message_queue *q)
{
	struct queued_message *m = q->first;

	if (m == NULL)
		return NULL;
	assert(q->bytes >= queued_bytes(m->n));
	q->first = m->next;
	q->bytes -= queued_bytes(m->n);
	assert(q->first != NULL || q->bytes == 0);
	return m;
}

void message_queue_release(struct message_queue *q)
{
	struct queued_message *m;

	while ((m = message_queue_take(q)) != NULL)
		free(m);
}

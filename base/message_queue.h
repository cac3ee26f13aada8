/* base/message_queue.h - messages that wait, first in, first out. */
#ifndef BASE_MESSAGE_QUEUE_H
#define BASE_MESSAGE_QUEUE_H

#include <stddef.h>
#include <stdint.h>

struct queued_message {
	struct queued_message *next;
	size_t n;
	uint8_t bytes[];
};

/* Zeros: empty. */
struct message_queue {
	struct queued_message *first, **end;
	size_t bytes; /* of memory, what the allocator adds included: bounds are on this */
};

void message_queue_add(struct message_queue *q, const uint8_t *bytes, size_t n);
/* The oldest, to be free()d by the caller; NULL: empty. */
struct queued_message *message_queue_take(struct message_queue *q);
void message_queue_release(struct message_queue *q); /* empty afterwards */

#endif

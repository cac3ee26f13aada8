/* disk/order.h - in which order partitions meet in memory (BETA: Mohoney et al., OSDI 2021).
 *
 * Each pair of partitions has to be in the buffer together once an epoch, and a swap that brings a
 * partition to slots - 1 others makes at most so many pairs new.  BETA comes near to that: all
 * partitions but one stay while every other partition takes the last position in turn; by then
 * those that stayed have met everybody, and as many new ones take their positions. */
#ifndef DISK_ORDER_H
#define DISK_ORDER_H

#include <stddef.h>
#include <stdint.h>

enum { DISK_PARTS_MAX = 512, DISK_BUFFER_MAX = 63 };

/* Partitions are named by labels, 0..parts - 1; at the begin position k holds label k. */
struct disk_swap {
	uint16_t position, in; /* where it goes, the label that comes */
};

struct disk_order {
	uint32_t parts, buffer; /* positions; 2 <= buffer <= parts */
	size_t n;
	struct disk_swap *swaps;
};

void disk_order_init(struct disk_order *o, uint32_t parts, uint32_t buffer);
void disk_order_release(struct disk_order *o);
/* How many swaps that is, by the closed form. */
size_t disk_order_swaps(uint32_t parts, uint32_t buffer);

#endif

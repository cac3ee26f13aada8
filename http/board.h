/* http/board.h - what the loop shows, for threads that read it.
 *
 * The loop puts sheets up and never waits for a reader; a sheet does not change, and is there until
 * the last reader has dropped it. */
#ifndef HTTP_BOARD_H
#define HTTP_BOARD_H

#include <stdbool.h>
#include <stdint.h>

#include "http/source.h"

struct http_board;

struct http_sheet {
	uint64_t number; /* from 1 */
	uint64_t at_ms;	 /* when it was put up, by http_board_now_ms() */
	char *status;	 /* what `fkge status --json` shows, but for `exit` */
	char *figures;	 /* agent/figures.h */
	struct http_best best;
	unsigned readers;
};

struct http_board *http_board_new(void);
/* After http_board_end() and the end of all readers. */
void http_board_free(struct http_board *b);
/* Takes both texts over. */
void http_board_put(struct http_board *b, char *status, char *figures, struct http_best best);
/* Nothing comes any more: who waits in http_board_next() comes back. */
void http_board_end(struct http_board *b);

/* The newest one, or NULL before the first.  To be dropped. */
struct http_sheet *http_board_read(struct http_board *b);
/* One that is newer than `number`, as soon as there is one; NULL after so long, and at the end. */
struct http_sheet *http_board_next(struct http_board *b, uint64_t number, unsigned wait_ms);
bool http_board_has_ended(struct http_board *b);
void http_board_drop(struct http_board *b, struct http_sheet *sheet); /* NULL is fine */

uint64_t http_board_now_ms(void); /* of a clock that nobody sets */

#endif

#include "http/stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "http/keys.h"
#include "http/server.h"

struct http_stream {
	struct http_board *board;
	struct http_deadlines *deadlines;
	struct http_deadline *deadline;
	atomic_uint *n;
	uint64_t number;  /* of the newest sheet that was looked at */
	char *told;	  /* the status as it was told last; NULL: not yet */
	struct buf waits; /* to be sent */
	const char *folder;
	uint8_t key[HTTP_KEY_HASH]; /* that was shown */
};

struct http_stream *http_stream_new(struct http_board *b, struct http_deadlines *d,
				    struct http_deadline *at, atomic_uint *n, const char *folder,
				    const char *shown)
{
	struct http_stream *s;

	if (atomic_fetch_add(n, 1) >= HTTP_STREAMS_MAX) {
		atomic_fetch_sub(n, 1);
		return NULL;
	}
	s = mem_array(1, sizeof(*s));
	*s = (struct http_stream){
		.board = b, .deadlines = d, .deadline = at, .n = n, .folder = folder
	};
	http_keys_hash(shown, s->key);
	return s;
}

void http_stream_free(struct http_stream *s)
{
	atomic_fetch_sub(s->n, 1);
	buf_release(&s->waits);
	free(s->told);
	free(s);
}

/* Sheets come more often than the status changes. */
static void take_sheet(struct http_stream *s, struct http_sheet *sheet)
{
	s->number = sheet->number;
	if (s->told != NULL && strcmp(s->told, sheet->status) == 0)
		return;
	free(s->told);
	s->told = mem_strdup(sheet->status);
	buf_printf(&s->waits, "event: status\ndata: %s\n\n", s->told);
}

static bool stream_has_ended(const struct http_stream *s)
{
	return http_board_has_ended(s->board) || !http_keys_holds(s->folder, HTTP_KEY_API, s->key);
}

static void wait_for_news(struct http_stream *s)
{
	uint64_t until_ms = http_board_now_ms() + HTTP_STREAM_QUIET_MS;

	while (s->waits.len == 0 && !stream_has_ended(s)) {
		uint64_t now_ms = http_board_now_ms();
		struct http_sheet *sheet = now_ms < until_ms
						   ? http_board_next(s->board, s->number,
								     (unsigned)(until_ms - now_ms))
						   : NULL;

		if (sheet != NULL)
			take_sheet(s, sheet);
		else
			buf_printf(&s->waits, ": still here\n\n");
		http_board_drop(s->board, sheet);
	}
}

size_t http_stream_read(struct http_stream *s, char *out, size_t max)
{
	size_t n;

	if (s->waits.len == 0)
		wait_for_news(s);
	http_deadlines_set(s->deadlines, s->deadline, HTTP_ANSWER_MS);
	if (stream_has_ended(s))
		return 0;
	n = s->waits.len < max ? s->waits.len : max;
	memcpy(out, s->waits.base, n);
	buf_consume(&s->waits, n);
	return n;
}

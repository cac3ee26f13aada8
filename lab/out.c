#include "lab/out.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

void lab_note(const struct lab_out *notes, const char *fmt, ...)
{
	va_list ap;

	if (notes->quiet)
		return;
	fflush(stdout); /* both may end in one file: what was said first stands first */
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
}

/* ---- progress ---- */

enum { PATIENCE_MS = 1000, REDRAW_MS = 100, LINE_MS = 30000, BAR = 30 };

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

struct progress lab_progress_begin(const struct lab_out *notes, const char *label)
{
	return (struct progress){ .notes = notes, .label = label, .begun_ms = now_ms() };
}

static void draw_bar(const char *label, double part, uint64_t since_ms)
{
	char bar[BAR + 1];
	double left_s = part > 0.01 ? (double)since_ms / 1000 * (1 - part) / part : -1;

	for (int i = 0; i < BAR; i++)
		bar[i] = i < (int)(part * BAR) ? '#' : '.';
	bar[BAR] = '\0';
	fprintf(stderr, "\r\033[K%s [%s] %3.0f%%", label, bar, 100 * part);
	if (left_s >= 0)
		fprintf(stderr, " %.0fs left", left_s);
}

/* On a terminal; else as a line of its own. */
static bool is_worth_drawing(const struct progress *p, uint64_t now, bool terminal)
{
	uint64_t last_ms = p->drawn_ms > 0 ? p->drawn_ms : p->begun_ms;

	if (p->notes->quiet)
		return false;
	if (!terminal)
		return p->lines && now - last_ms >= LINE_MS;
	return now - p->begun_ms >= PATIENCE_MS && now - p->drawn_ms >= REDRAW_MS;
}

void lab_progress_at(struct progress *p, double part, const char *fmt, ...)
{
	bool terminal = isatty(STDERR_FILENO);
	uint64_t now = now_ms();
	va_list ap;

	if (!is_worth_drawing(p, now, terminal))
		return;
	part = part < 0 ? 0 : part > 1 ? 1 : part;
	p->drawn_ms = now;
	p->shown = terminal;
	if (terminal)
		draw_bar(p->label, part, now - p->begun_ms);
	else
		fprintf(stderr, "%s: %.0f %%, %.0f s", p->label, 100 * part,
			(double)(now - p->begun_ms) / 1000);
	fputs(terminal ? "  " : ", ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputs(terminal ? "" : "\n", stderr);
	fflush(stderr);
}

void lab_progress_end(struct progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
	p->shown = false;
}

/* ---- work of which nobody knows how far it is ---- */

struct waiting {
	const char *label;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t over;
	bool ended;
};

static void *show_waiting(void *arg)
{
	struct waiting *w = arg;
	struct timespec until;
	unsigned seconds = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	pthread_mutex_lock(&w->lock);
	while (!w->ended) {
		until.tv_sec++;
		if (pthread_cond_timedwait(&w->over, &w->lock, &until) != ETIMEDOUT || w->ended)
			continue;
		fprintf(stderr, "\r\033[K%s, %u s", w->label, ++seconds);
	}
	pthread_mutex_unlock(&w->lock);
	if (seconds > 0)
		fputs("\r\033[K", stderr);
	return NULL;
}

struct waiting *lab_waiting_begin(const struct lab_out *notes, const char *label)
{
	struct waiting *w;

	if (notes->quiet || !isatty(STDERR_FILENO))
		return NULL;
	w = mem_array(1, sizeof(*w));
	w->label = label;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->over, NULL);
	if (pthread_create(&w->thread, NULL, show_waiting, w) == 0)
		return w;
	free(w);
	return NULL;
}

void lab_waiting_end(struct waiting *w)
{
	if (w == NULL)
		return;
	pthread_mutex_lock(&w->lock);
	w->ended = true;
	pthread_cond_signal(&w->over);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->over);
	free(w);
}

#include "agent/signals.h"

#include <signal.h>

#include "net/uv/must.h"

static void on_signal(uv_signal_t *h, int number)
{
	struct signals *s = h->data;

	if (number == SIGHUP)
		s->hangups++;
	else
		s->ends++;
}

/* Takes the signals that the kernel has handed over by now. */
static void hear(struct signals *s)
{
	if (s->on)
		(void)uv_run(&s->loop, UV_RUN_NOWAIT); /* whether it has handles: it has */
}

void signals_seen(struct signals *s, int number)
{
	unsigned *n = number == SIGHUP ? &s->hangups : &s->ends;

	hear(s);
	*n -= *n > 0;
}

int signals_listen(struct signals *s)
{
	int rc = s->on ? 0 : uv_loop_init(&s->loop);

	if (s->on || rc != 0)
		return rc;
	rc = uv_signal_init(&s->loop, &s->hangup); /* which needs descriptors; the others none */
	if (rc != 0) {
		uv_must(uv_loop_close(&s->loop));
		return rc;
	}
	s->on = true;
	uv_must(uv_signal_init(&s->loop, &s->interrupt));
	uv_must(uv_signal_init(&s->loop, &s->terminate));
	s->hangup.data = s->interrupt.data = s->terminate.data = s;
	rc = uv_signal_start(&s->hangup, on_signal, SIGHUP);
	if (rc == 0)
		rc = uv_signal_start(&s->interrupt, on_signal, SIGINT);
	return rc == 0 ? uv_signal_start(&s->terminate, on_signal, SIGTERM) : rc;
}

void signals_take(struct signals *s, bool *hangup, bool *end)
{
	hear(s);
	*hangup = s->hangups > 0;
	*end = s->ends > 0;
	s->hangups = s->ends = 0;
}

void signals_close(struct signals *s)
{
	if (!s->on)
		return;
	uv_close((uv_handle_t *)&s->hangup, NULL);
	uv_close((uv_handle_t *)&s->interrupt, NULL);
	uv_close((uv_handle_t *)&s->terminate, NULL);
	uv_must(uv_run(&s->loop, UV_RUN_DEFAULT));
	uv_must(uv_loop_close(&s->loop));
	s->on = false;
}

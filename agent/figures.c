#include "agent/figures.h"

#include "base/err.h"
#include "net/uv/must.h"

static const double bounds_s[FIGURES_BOUNDS] = { .0001, .0005, .001, .005, .01,
						 .025,	.05,   .1,   .25,  1 };
static const char *const reasons[FIGURES_REASONS] = {
	[FIGURES_NOT_LISTED] = "not_listed",
	[FIGURES_SHUT_OUT] = "shut_out",
	[FIGURES_GREETING] = "greeting",
	[FIGURES_NEWCOMER] = "newcomer",
};

/* Before the loop waits: what it has not been idle since the last time, it was busy. */
static void end_turn(uv_prepare_t *h)
{
	struct figures *f = h->data;
	uint64_t now = uv_hrtime(), idle = uv_metrics_idle_time(h->loop);
	uint64_t took = now - f->since_ns, waited = idle - f->idle_ns;
	double busy_s = took > waited ? (double)(took - waited) / 1e9 : 0;
	size_t i = 0;

	while (i < FIGURES_BOUNDS && busy_s > bounds_s[i])
		i++;
	f->turns[i]++;
	f->busy_s += busy_s;
	f->since_ns = now;
	f->idle_ns = idle;
}

void figures_begin(struct figures *f, uv_loop_t *loop)
{
	uv_must(uv_loop_configure(loop, UV_METRICS_IDLE_TIME));
	uv_must(uv_prepare_init(loop, &f->turn));
	f->turn.data = f;
	f->round_s = -1;
	f->since_ns = uv_hrtime();
	uv_must(uv_prepare_start(&f->turn, end_turn));
	uv_unref((uv_handle_t *)&f->turn);
}

void figures_end(struct figures *f)
{
	uv_close((uv_handle_t *)&f->turn, NULL);
}

void figures_refuse(struct figures *f, enum figures_refused why)
{
	f->refused[why]++;
}

void figures_session(struct figures *f, int code)
{
	size_t i = 0;

	if (code == 0)
		return;
	while (i < f->n_failed && f->failed[i].code != code)
		i++;
	if (i == FIGURES_CODES)
		i--; /* the last one stands for all that found no room */
	f->n_failed += i == f->n_failed;
	f->failed[i].code = code;
	f->failed[i].n++;
}

void figures_round(struct figures *f, int64_t started_ms, int64_t finished_ms)
{
	f->round_s = (double)(finished_ms - started_ms) / 1000;
}

json_t *figures_tell(const struct figures *f)
{
	json_t *bounds = json_array(), *turns = json_array(), *refused = json_object();
	json_t *failed = json_object(), *all;

	for (int i = 0; i <= FIGURES_BOUNDS; i++) {
		if (i < FIGURES_BOUNDS)
			json_array_append_new(bounds, json_real(bounds_s[i]));
		json_array_append_new(turns, json_integer((json_int_t)f->turns[i]));
	}
	for (int i = 0; i < FIGURES_REASONS; i++)
		json_object_set_new(refused, reasons[i], json_integer((json_int_t)f->refused[i]));
	for (size_t i = 0; i < f->n_failed; i++) {
		const char *text = err_text(f->failed[i].code);
		json_int_t so_far = json_integer_value(json_object_get(failed, text));

		json_object_set_new(failed, text,
				    json_integer(so_far + (json_int_t)f->failed[i].n));
	}
	all = json_pack("{s:{s:o, s:o, s:f}, s:o, s:o}", "loop", "bounds_s", bounds, "turns", turns,
			"busy_s", f->busy_s, "refused", refused, "sessions_failed", failed);
	if (f->round_s >= 0)
		json_object_set_new(all, "round_s", json_real(f->round_s));
	return all;
}

#include "tests/ppat/pair.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void pair_init(struct pair *p, enum ppat_translator t, uint64_t seed)
{
	memset(p, 0, sizeof(*p));
	ppat_config_defaults(&p->cfg, t, 80, 6, 8);
	p->cfg.teachers = 3;
	p->cfg.teacher_hidden = p->cfg.student_hidden = 8;
	p->cfg.batch = 8;
	p->cfg.steps = t == PPAT_PPAT ? 5 : 0;
	p->cfg.max_labels = p->cfg.steps * p->cfg.batch;
	p->cfg.reserve_labels = 16;
	rng_seed(&p->host_rng, seed);
	rng_seed(&p->client_rng, seed + 1);
	p->host_env.draw = driver_draw(&p->host_rng);
	p->client_env.draw = driver_draw(&p->client_rng);
}

void pair_budget(struct pair *p)
{
	p->cfg.mode = PPAT_MODE_BUDGET;
	p->cfg.pool = 12;
	p->cfg.teacher_steps = 2;
	p->cfg.student_steps = 3;
	p->cfg.generator_steps = 4;
}

static float *random_rows(size_t n, size_t d, uint64_t seed)
{
	struct rng r;
	rng_seed(&r, seed);
	float *x = mem_array(n * d, sizeof(float));
	for (size_t i = 0; i < n * d; i++)
		x[i] = (float)rng_normal(&r);
	return x;
}

void pair_rows(struct pair *p, uint64_t y_seed)
{
	p->x = random_rows(p->cfg.slots, p->cfg.client_dim, 1000);
	p->y = random_rows(p->cfg.slots, p->cfg.host_dim, y_seed);
}

static int pinned_label(void *ctx, uint32_t ones, uint32_t zeros)
{
	(void)ones;
	(void)zeros;
	return (int)rng_below(ctx, 2);
}

void pair_pin_labels(struct pair *p, uint64_t seed)
{
	rng_seed(&p->label_rng, seed);
	p->pinned = (struct ppat_labeller){ pinned_label, &p->label_rng };
	p->host_env.labeller = &p->pinned;
}

void pair_run(struct pair *p)
{
	struct ppat_rows hr = { p->y, p->tags, p->ids, p->cfg.slots, p->cfg.host_dim, NULL };
	struct ppat_rows cr = { p->x, p->tags, NULL, p->cfg.slots, p->cfg.client_dim, NULL };
	p->host = ppat_open(PPAT_HOST, &p->cfg, &hr, &p->host_env, NULL);
	p->client = ppat_open(PPAT_CLIENT, &p->cfg, &cr, &p->client_env, NULL);
	assert(p->host != NULL && p->client != NULL);
	driver_run(&p->d, p->host, p->client);
	ppat_result(p->host, &p->h);
	ppat_result(p->client, &p->c);
}

void pair_release(struct pair *p)
{
	conv_free(p->host);
	conv_free(p->client);
	driver_release(&p->d);
	free(p->x);
	free(p->y);
}

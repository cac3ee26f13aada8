/* ppat/adversarial.c - PPAT: a generator at the client against discriminators at the host
 * (methods 3.2).
 *
 * Student at the client (default).  With the student at the host LABELS becomes GRAD, and the
 * update uses what it carries:
 *
 *      client                                host
 *      ------                                ----
 *   +> WORK   Z = X_b W'                     RECV <---------------------+
 *   |  SEND   --------- BATCH --------->     WORK  teachers vote        |
 *   |  RECV                                   |    charged rows left?   |
 *   |   |                                    CHARGE reserve_labels      |
 *   |   |                                     |          | refused      |
 *   |   |                                    WORK labels SEND STOP -> rows
 *   |   |     <--------- LABELS --------     SEND                       |
 *   |   |                                     +-------------------------+
 *   +- WORK   student's steps, generator's          until the step limit
 *
 * Votes stay at the host; labels drawn of them wait for their charge, in one WORK with the votes if
 * the charge is there.  In mode BUDGET the generator takes several steps for one batch of labels.
 * With the student at the client all steps are inside its WORK; with the student at the host each
 * further step is a PROBE of unlabelled rows, answered by PROBE_GRAD.  That answer is computed from
 * the student alone and is never charged: labels are in LABELS and GRAD only.
 *
 * Then X-hat = X W' goes in ROWS and ACK, and virtual neighbours in VIRTUAL and ACK, if agreed. */
#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "ppat/adversarial_internal.h"
#include "ppat/rows_internal.h"

void ppat_training_count_step(struct ppat_training *a)
{
	const struct ppat_config *c = &a->side.cfg;
	if (c->student == PPAT_STUDENT_HOST)
		a->generator_step = (a->generator_step + 1) % c->generator_steps;
	a->steps += a->generator_step == 0;
	assert(a->steps <= a->steps_max);
}

static void begin_training(struct ppat_training *a)
{
	const struct ppat_config *c = &a->side.cfg;
	bool student_is_here = (c->student == PPAT_STUDENT_CLIENT) == (a->side.role == PPAT_CLIENT);
	a->pool = ppat_config_pool(c);
	a->z = mem_array((size_t)a->pool * c->host_dim, sizeof(float));
	a->dz = mem_array((size_t)c->batch * c->host_dim, sizeof(float));
	a->label = mem_array(c->batch, sizeof(float));
	if (student_is_here)
		ppat_student_init(&a->student, c);
	a->has_student = student_is_here;
}

static unsigned adversarial_begin(struct ppat_side *s, const struct ppat_env *env)
{
	struct ppat_training *a = ppat_training_of(s);
	s->wire.dim = s->cfg.host_dim;
	a->steps_max = ppat_config_steps(&s->cfg);
	if (a->steps_max > 0)
		begin_training(a);
	return s->role == PPAT_HOST ? ppat_adversarial_begin_host(a, env)
				    : ppat_adversarial_begin_client(a, env);
}

static uint32_t adversarial_cost(const struct ppat_side *s)
{
	bool spends = s->role == PPAT_HOST && s->phase != PPAT_OVER && !s->account.refused;
	return spends ? ppat_adversarial_next_charge(s) : 0;
}

static void adversarial_report(const struct ppat_side *s, struct ppat_result *out)
{
	out->steps = ppat_const_training_of(s)->steps;
	out->generated = ppat_const_training_of(s)->generated;
	out->votes = ppat_const_training_of(s)->voting.fallen;
	out->n_votes = out->votes != NULL ? s->cfg.teachers + (size_t)1 : 0;
}

static void adversarial_release(struct ppat_side *s)
{
	struct ppat_training *a = ppat_training_of(s);
	if (a->has_student)
		ppat_student_release(&a->student);
	if (a->voting.has_teachers)
		ppat_teachers_release(&a->voting.teachers);
	if (a->voting.ones != NULL)
		sodium_memzero(a->voting.ones, s->cfg.batch * sizeof(*a->voting.ones));
	free(a->voting.ones);
	if (a->voting.fallen != NULL)
		sodium_memzero(a->voting.fallen,
			       (s->cfg.teachers + (size_t)1) * sizeof(*a->voting.fallen));
	free(a->voting.fallen);
	free(a->generator.walk);
	free(a->generator.x_batch);
	free(a->generator.gradient);
	nn_sgd_release(&a->generator.sgd);
	free(a->z);
	free(a->dz);
	free(a->label);
	ppat_rows_release(s);
}

static const struct conv_ops adversarial_conv = PPAT_CONV_OPS("ppat");

const struct ppat_machine ppat_adversarial = {
	.conv = &adversarial_conv,
	.bytes = sizeof(struct ppat_training),
	.phases = { [PPAT_HOST] = ppat_adversarial_host, [PPAT_CLIENT] = ppat_adversarial_client },
	.begin = adversarial_begin,
	.cost = adversarial_cost,
	.report = adversarial_report,
	.release = adversarial_release,
};

/* ppat/session.c - opens a session of any translator, and says what has come of it. */
#include "ppat/session.h"

#include <math.h>

#include "base/mem.h"
#include "dp/lattice.h"
#include "nn/mlp.h"
#include "ppat/rows_internal.h"

/* ---- beginning ---- */

static int check_size(enum ppat_role role, const struct ppat_config *c, const struct ppat_rows *in,
		      struct err *e)
{
	size_t dim = role == PPAT_HOST ? c->host_dim : c->client_dim;
	if (in->n != c->slots || in->dim != dim)
		return err_set(e, ERR_USAGE,
			       "have %zu aligned rows of %zu floats, agreed are %u of %zu", in->n,
			       in->dim, c->slots, dim);
	if (c->lasting && in->places == NULL)
		return err_set(e, ERR_USAGE,
			       "a lasting share of the aligned rows goes by their places, and none "
			       "are given");
	return 0;
}

static int check_neighbours(const struct ppat_config *c, const struct ppat_env *env, struct err *e)
{
	const struct ppat_virtual *v = env->neighbours;
	if (v == NULL)
		return 0;
	if (c->max_virtual == 0 || v->slots != c->slots || v->dim != c->client_dim ||
	    v->n_ent + v->n_rel > c->max_virtual || v->n_triples > c->max_virtual)
		return err_set(
			e, ERR_USAGE,
			"virtual neighbours do not fit what was agreed (%u rows of %u floats)",
			c->max_virtual, c->client_dim);
	return 0;
}

static struct ppat_side *new_side(enum ppat_role role, const struct ppat_config *c,
				  const struct ppat_env *env)
{
	static const struct ppat_machine *const machines[] = {
		[PPAT_PPAT] = &ppat_adversarial,
		[PPAT_PROCRUSTES] = &ppat_procrustes,
		[PPAT_MAP] = &ppat_map,
	};
	const struct ppat_machine *m = machines[c->translator];
	struct ppat_side *s = mem_array(1, m->bytes);
	s->conv.ops = m->conv;
	s->machine = m;
	s->phases = m->phases[role];
	s->role = role;
	s->cfg = *c;
	s->draw = env->draw;
	s->noise = dp_lattice_noise;
	s->measure = env->measure;
	s->same_frame = env->same_frame;
	s->neighbours.own = env->neighbours;
	s->translated.mean_cosine = s->translated.mean_csls = s->translated.csls_nearest = NAN;
	return s;
}

struct conv *ppat_open(enum ppat_role role, const struct ppat_config *c, const struct ppat_rows *in,
		       const struct ppat_env *env, struct err *e)
{
	if (ppat_config_check(c, e) != 0 || check_size(role, c, in, e) != 0 ||
	    check_neighbours(c, env, e) != 0)
		return NULL;
	struct ppat_side *s = new_side(role, c, env);
	if (ppat_rows_gather(s, in, e) != 0) {
		conv_free(&s->conv);
		return NULL;
	}
	nn_blas_single();
	ppat_machine_begin_transcript(s);
	s->phase = s->machine->begin(s, env);
	return &s->conv;
}

bool ppat_spends(const struct ppat_config *c, enum ppat_role role)
{
	if (c->translator == PPAT_PROCRUSTES)
		return role == PPAT_CLIENT && ppat_config_releases(c);
	return role == PPAT_HOST;
}

void ppat_plant_noise(struct conv *c, ppat_noise_fn *noise)
{
	((struct ppat_side *)c)->noise = noise;
}

/* ---- what has come of it ---- */

void ppat_result(const struct conv *c, struct ppat_result *out)
{
	const struct ppat_side *s = (const struct ppat_side *)c;
	bool good = s->phase == PPAT_OVER && s->err.code == 0;
	crypto_generichash_state copy = s->out.transcript;
	*out = (struct ppat_result){
		.n = s->own.n,
		.dim = s->cfg.host_dim,
		.slots = s->own.slots,
		.rows = good ? s->translated.rows : NULL,
		.agreement = good ? s->translated.agreement : NULL,
		.neighbours = good ? s->neighbours.received : NULL,
		.labels_drawn =
			ppat_spends(&s->cfg, s->role) ? s->account.drawn : s->account.received,
		.labels_charged = s->account.charged,
		.refused = s->account.refused,
		.bytes_sent = s->out.bytes_sent,
		.bytes_received = s->out.bytes_received,
		.map = s->map.at,
		.as_received = s->translated.as_received,
		.mean_cosine = s->translated.mean_cosine,
		.mean_csls = s->translated.mean_csls,
		.csls_nearest = s->translated.csls_nearest,
	};
	if (s->machine->report != NULL)
		s->machine->report(s, out);
	crypto_generichash_final(&copy, out->transcript, sizeof(out->transcript));
}

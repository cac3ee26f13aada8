/* kge/kernel_step_internal.h - the vector kernels of the optimisers' steps; a part of
 * kge/kernel_simd_internal.h. */

static void sgd(float *restrict w, const float *restrict g, const struct kge_step *s, size_t n)
{
	V lr = v_set(-s->lr);

	for (size_t i = 0; i < n; i += LANES) {
		M m = v_mask(n - i < LANES ? n - i : LANES);

		v_storem(w + i, m, v_fma(lr, v_loadm(g + i, m), v_loadm(w + i, m)));
	}
}

static void momentum(float *restrict w, float *restrict m, const float *restrict g,
		     const struct kge_step *s, size_t n)
{
	V lr = v_set(-s->lr), keep = v_set(s->beta1);

	for (size_t i = 0; i < n; i += LANES) {
		M k = v_mask(n - i < LANES ? n - i : LANES);
		V x = v_fma(keep, v_loadm(m + i, k), v_loadm(g + i, k));

		v_storem(m + i, k, x);
		v_storem(w + i, k, v_fma(lr, x, v_loadm(w + i, k)));
	}
}

/* sqrt(x) for x >= 0 without the slow instruction. */
INLINE V v_root(V x)
{
	return v_mul(x, v_rsqrt(x));
}

static void adagrad(float *restrict w, float *restrict v, const float *restrict g,
		    const struct kge_step *s, size_t n)
{
	V lr = v_set(-s->lr), eps = v_set(s->eps);

	for (size_t i = 0; i < n; i += LANES) {
		M m = v_mask(n - i < LANES ? n - i : LANES);
		V a = v_loadm(g + i, m), b = v_fma(a, a, v_loadm(v + i, m));
		V step = v_mul(a, v_recip(v_add(v_root(b), eps)));

		v_storem(v + i, m, b);
		v_storem(w + i, m, v_fma(lr, step, v_loadm(w + i, m)));
	}
}

INLINE V adam_step(V *mean, V *var, V g, const struct kge_step *s)
{
	*mean = v_fma(v_set(s->beta1), *mean, v_mul(v_set(1.0f - s->beta1), g));
	*var = v_fma(v_set(s->beta2), *var, v_mul(v_set(1.0f - s->beta2), v_mul(g, g)));
	return v_mul(*mean, v_recip(v_fma(v_root(*var), v_set(s->scale2), v_set(s->eps))));
}

static void adam(float *restrict w, float *restrict m, float *restrict v, const float *restrict g,
		 const struct kge_step *s, size_t n)
{
	V lr = v_set(-s->lr);

	for (size_t i = 0; i < n; i += LANES) {
		M k = v_mask(n - i < LANES ? n - i : LANES);
		V mean = v_loadm(m + i, k), var = v_loadm(v + i, k);
		V step = adam_step(&mean, &var, v_loadm(g + i, k), s);

		v_storem(m + i, k, mean);
		v_storem(v + i, k, var);
		v_storem(w + i, k, v_fma(lr, step, v_loadm(w + i, k)));
	}
}

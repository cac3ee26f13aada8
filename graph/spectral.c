/* graph/spectral.c - things with affinities into groups: eigenvectors, then k-means. */
#include <cblas.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "graph/parts.h"

enum { RESTARTS = 20, ROUNDS_MAX = 300 };

/* LAPACK's, in OpenBLAS (nn/lapack.h says why): by columns, with the lengths of characters last. */
void dsyevr_(const char *job, const char *range, const char *half, const int *n, double *a,
	     const int *lda, const double *low, const double *high, const int *first,
	     const int *last, const double *tolerance, int *found, double *values, double *z,
	     const int *ldz, int *support, double *work, const int *lwork, int *iwork,
	     const int *liwork, int *info, size_t job_length, size_t range_length,
	     size_t half_length);

/* ---- coordinates ---- */

/* m becomes D^-1/2 m D^-1/2; scale[i] = d_i^-1/2. */
static void normalize(double *m, uint32_t n, double *scale)
{
	for (uint32_t i = 0; i < n; i++) {
		double sum = 0;

		for (uint32_t j = 0; j < n; j++)
			sum += m[(size_t)i * n + j];
		scale[i] = 1 / sqrt(sum);
	}
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < n; j++)
			m[(size_t)i * n + j] *= scale[i] * scale[j];
}

/* z [k x n] = the eigenvectors of the k largest values of m [n x n], which is destroyed.  Returns
 * LAPACK's word for how it went, 0 for well. */
static int last_vectors(double *m, uint32_t n, uint32_t k, double *z)
{
	double *values = mem_array(n, sizeof(*values)), *work = NULL, wanted;
	int *support = mem_array((size_t)2 * n, sizeof(*support)), *iwork = NULL, iwanted;
	int size = (int)n, first = (int)(n - k + 1), found = 0, info;
	int length = -1, ilength = -1;
	const double unused = 0;

	dsyevr_("V", "I", "L", &size, m, &size, &unused, &unused, &first, &size, &unused, &found,
		values, z, &size, support, &wanted, &length, &iwanted, &ilength, &info, 1, 1, 1);
	if (info == 0) {
		length = (int)wanted;
		ilength = iwanted;
		work = mem_array((size_t)length, sizeof(*work));
		iwork = mem_array((size_t)ilength, sizeof(*iwork));
		dsyevr_("V", "I", "L", &size, m, &size, &unused, &unused, &first, &size, &unused,
			&found, values, z, &size, support, work, &length, iwork, &ilength, &info, 1,
			1, 1);
	}
	free(values);
	free(support);
	free(work);
	free(iwork);
	return info != 0 || found == (int)k ? info : -1;
}

/* at [n x k]: the first eigenvectors of the Laplacian are the last ones of m. */
static int embed(double *m, uint32_t n, uint32_t k, double *at, struct err *e)
{
	double *scale = mem_array(n, sizeof(*scale)), *z = mem_array((size_t)n * k, sizeof(*z));
	int info;

	openblas_set_num_threads(1);
	normalize(m, n, scale);
	info = last_vectors(m, n, k, z);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t c = 0; c < k; c++)
			at[(size_t)i * k + c] = z[(size_t)c * n + i] * scale[i];
	free(scale);
	free(z);
	if (info != 0)
		return err_set(e, ERR_FAIL, "LAPACK's dsyevr found no %u eigenvectors (info %d)", k,
			       info);
	return 0;
}

/* ---- k-means ---- */

struct means {
	const double *at; /* n x k */
	uint32_t n, k;
	double *center; /* k x k */
	double *far;	/* of every point: its squared distance to its centre */
	uint32_t *group, *size;
};

static double distance(const double *a, const double *b, uint32_t k)
{
	double sum = 0;

	for (uint32_t c = 0; c < k; c++)
		sum += (a[c] - b[c]) * (a[c] - b[c]);
	return sum;
}

static void put_center(struct means *s, uint32_t c, uint32_t point)
{
	for (uint32_t i = 0; i < s->k; i++)
		s->center[c * s->k + i] = s->at[(size_t)point * s->k + i];
}

/* A point drawn in proportion to far[]; any if all stand on centres. */
static uint32_t draw_point(const struct means *s, struct rng *r)
{
	double sum = 0, stop;

	for (uint32_t i = 0; i < s->n; i++)
		sum += s->far[i];
	stop = rng_double(r) * sum;
	for (uint32_t i = 0; i < s->n; i++) {
		stop -= s->far[i];
		if (stop < 0)
			return i;
	}
	return rng_below(r, s->n);
}

/* k-means++ (Arthur and Vassilvitskii 2007). */
static void first_centers(struct means *s, struct rng *r)
{
	put_center(s, 0, rng_below(r, s->n));
	for (uint32_t i = 0; i < s->n; i++)
		s->far[i] = INFINITY;
	for (uint32_t c = 1; c < s->k; c++) {
		for (uint32_t i = 0; i < s->n; i++)
			s->far[i] =
				fmin(s->far[i], distance(s->at + (size_t)i * s->k,
							 s->center + (size_t)(c - 1) * s->k, s->k));
		put_center(s, c, draw_point(s, r));
	}
}

/* Every point to its nearest centre; true if any moved. */
static bool assign(struct means *s)
{
	bool moved = false;

	for (uint32_t i = 0; i < s->n; i++) {
		uint32_t best = 0;

		s->far[i] = INFINITY;
		for (uint32_t c = 0; c < s->k; c++) {
			double d = distance(s->at + (size_t)i * s->k, s->center + (size_t)c * s->k,
					    s->k);

			if (d < s->far[i]) {
				s->far[i] = d;
				best = c;
			}
		}
		moved |= s->group[i] != best;
		s->group[i] = best;
	}
	return moved;
}

/* An empty group takes the point that is farthest from its centre, of a group with others. */
static void fill_empty(struct means *s)
{
	for (uint32_t c = 0; c < s->k; c++)
		s->size[c] = 0;
	for (uint32_t i = 0; i < s->n; i++)
		s->size[s->group[i]]++;
	for (uint32_t c = 0; c < s->k; c++) {
		uint32_t worst = GRAPH_NONE;

		if (s->size[c] > 0)
			continue;
		for (uint32_t i = 0; i < s->n; i++)
			if (s->size[s->group[i]] > 1 &&
			    (worst == GRAPH_NONE || s->far[i] > s->far[worst]))
				worst = i;
		s->size[s->group[worst]]--;
		s->size[c]++;
		s->group[worst] = c;
		s->far[worst] = 0;
	}
}

static void move_centers(struct means *s)
{
	for (uint32_t i = 0; i < s->k * s->k; i++)
		s->center[i] = 0;
	for (uint32_t i = 0; i < s->n; i++)
		for (uint32_t j = 0; j < s->k; j++)
			s->center[s->group[i] * s->k + j] +=
				s->at[(size_t)i * s->k + j] / s->size[s->group[i]];
}

/* One run; returns the sum of squared distances. */
static double run_means(struct means *s, struct rng *r)
{
	double sum = 0;

	first_centers(s, r);
	for (uint32_t i = 0; i < s->n; i++)
		s->group[i] = GRAPH_NONE;
	for (int round = 0; round < ROUNDS_MAX && assign(s); round++) {
		fill_empty(s);
		move_centers(s);
	}
	fill_empty(s);
	for (uint32_t i = 0; i < s->n; i++)
		sum += s->far[i];
	return sum;
}

/* Numbers in the order of first members, so that they do not depend on the draw. */
static void renumber(uint32_t *group, uint32_t n, uint32_t k)
{
	uint32_t *to = mem_array(k, sizeof(*to)), next = 1; /* 0: none yet */

	for (uint32_t i = 0; i < n; i++) {
		if (to[group[i]] == 0)
			to[group[i]] = next++;
		group[i] = to[group[i]] - 1;
	}
	free(to);
}

void graph_means(const double *at, uint32_t n, uint32_t k, uint64_t seed, uint32_t *group)
{
	struct means s = { .at = at, .n = n, .k = k };
	double best = INFINITY;
	struct rng root;

	s.center = mem_array((size_t)k * k, sizeof(*s.center));
	s.far = mem_array(n, sizeof(*s.far));
	s.group = mem_array(n, sizeof(*s.group));
	s.size = mem_array(k, sizeof(*s.size));
	rng_seed(&root, seed);
	for (uint64_t i = 0; i < RESTARTS; i++) {
		struct rng r = rng_stream(&root, i);
		double sum = run_means(&s, &r);

		for (uint32_t p = 0; p < n && (i == 0 || sum < best); p++)
			group[p] = s.group[p];
		best = i == 0 || sum < best ? sum : best;
	}
	free(s.center);
	free(s.far);
	free(s.group);
	free(s.size);
}

int graph_cluster(double *m, uint32_t n, uint32_t k, uint64_t seed, uint32_t *group, struct err *e)
{
	double *at = mem_array((size_t)n * k, sizeof(*at));
	int rc = embed(m, n, k, at, e);

	if (rc == 0) {
		graph_means(at, n, k, seed, group);
		renumber(group, n, k);
	}
	free(at);
	return rc;
}

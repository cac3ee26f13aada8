/* nn/lapack.c - row-major matrices to LAPACK's by columns, and back. */
#include "nn/lapack.h"

#include <assert.h>
#include <sodium.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"

/* Fortran's; characters are followed by their lengths, after all arguments. */
void dgeqrf_(const int *m, const int *n, double *a, const int *lda, double *tau, double *work,
	     const int *lwork, int *info);
void dorgqr_(const int *m, const int *n, const int *k, double *a, const int *lda, const double *tau,
	     double *work, const int *lwork, int *info);
void dgesdd_(const char *job, const int *m, const int *n, double *a, const int *lda, double *s,
	     double *u, const int *ldu, double *vt, const int *ldvt, double *work, const int *lwork,
	     int *iwork, int *info, size_t job_length);

/* out [columns x rows] = a' of a [rows x columns] */
static void transpose(double *out, const double *a, size_t rows, size_t columns)
{
	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < columns; j++)
			out[j * rows + i] = a[i * columns + j];
}

/* LAPACK says how many numbers it works best with. */
static double *work_array(double wanted, int *length)
{
	*length = (int)wanted;
	return mem_array((size_t)*length, sizeof(double));
}

static int qr_by_columns(double *a, double *r, int n)
{
	double *tau = mem_array((size_t)n, sizeof(*tau)), *work = NULL, wanted;
	int length = -1, info;

	dgeqrf_(&n, &n, a, &n, tau, &wanted, &length, &info);
	if (info == 0) {
		work = work_array(wanted, &length);
		dgeqrf_(&n, &n, a, &n, tau, work, &length, &info);
		sodium_memzero(work, (size_t)length * sizeof(*work)); /* of secret rotations */
		free(work);
	}
	for (int i = 0; i < n; i++)
		r[i] = a[(size_t)i * (size_t)n + (size_t)i];
	length = -1;
	if (info == 0)
		dorgqr_(&n, &n, &n, a, &n, tau, &wanted, &length, &info);
	if (info == 0) {
		work = work_array(wanted, &length);
		dorgqr_(&n, &n, &n, a, &n, tau, work, &length, &info);
		sodium_memzero(work, (size_t)length * sizeof(*work));
		free(work);
	}
	sodium_memzero(tau, (size_t)n * sizeof(*tau));
	free(tau);
	return info == 0 ? 0 : -1;
}

int nn_lapack_qr(double *a, double *q, double *r, size_t n)
{
	int rc;

	assert(n > 0 && n <= INT32_MAX);
	transpose(q, a, n, n);
	rc = qr_by_columns(q, r, (int)n);
	transpose(a, q, n, n);
	for (size_t i = 0; i < n * n; i++)
		q[i] = a[i];
	return rc;
}

int nn_lapack_svd(const double *a, size_t m, size_t n, double *u, double *s, double *vt)
{
	assert(m > 0 && n > 0 && m <= INT32_MAX && n <= INT32_MAX);
	size_t k = m < n ? m : n;
	double *by_columns = mem_array(m * n, sizeof(double)),
	       *left = mem_array(m * k, sizeof(double));
	double *right = mem_array(k * n, sizeof(double)), *work = NULL, wanted;
	int rows = (int)m, columns = (int)n, least = (int)k, length = -1, info;
	int *iwork = mem_array(8 * k, sizeof(*iwork));

	transpose(by_columns, a, m, n);
	dgesdd_("S", &rows, &columns, by_columns, &rows, s, left, &rows, right, &least, &wanted,
		&length, iwork, &info, 1);
	if (info == 0) {
		work = work_array(wanted, &length);
		dgesdd_("S", &rows, &columns, by_columns, &rows, s, left, &rows, right, &least,
			work, &length, iwork, &info, 1);
	}
	transpose(u, left, k, m);
	transpose(vt, right, n, k);
	free(by_columns);
	free(left);
	free(right);
	free(iwork);
	free(work);
	return info == 0 ? 0 : -1;
}

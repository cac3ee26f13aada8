/* kge/product.c - which product; by sgemm, and the plain one in bfloat16. */
#include "kge/product.h"

#include <assert.h>
#include <cblas.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef KGE_X86
#include <cpuid.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "base/mem.h"
#include "kge/kernel.h"

/* ---- which ---- */

#ifdef KGE_X86
static const struct kge_product_kernel *best; /* of this machine; NULL: none */

/* AMX's tile registers are a process's own once the system has allowed it them (arch_prctl(2)); it
 * does not where it does not know them, or where a signal's stack has no room for them. */
static bool amx_is_allowed(void)
{
	enum { REQUEST = 0x1023, TILE_DATA = 18, BF16 = 1 << 22, TILE = 1 << 24 };
	unsigned a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & BF16) && (d & TILE) &&
	       syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}

static void find_best(void)
{
	if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512vl") ||
	    !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512bf16"))
		return;
	best = amx_is_allowed() ? &kge_product_amx : &kge_product_avx512;
}

#endif

/* What FKGE_ISA names is the most that may be used (kge/kernel.h). */
static const struct kge_product_kernel *kernel_here(void)
{
	const struct kge_product_kernel *kernel = NULL;
#ifdef KGE_X86
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const char *want = getenv("FKGE_ISA");

	pthread_once(&once, find_best);
	kernel = best;
	if (best != NULL && want != NULL && kge_kernels_find(want) != NULL)
		kernel = strcmp(want, "avx512") == 0 ? &kge_product_avx512 : NULL;
#endif
	return kernel;
}

bool kge_product_is_fast(void)
{
	return kernel_here() != NULL;
}

const char *kge_arithmetic(bool rounded)
{
	return rounded && kernel_here() != NULL ? kernel_here()->name : kge_kernels_pick()->isa;
}

size_t kge_product_room(void)
{
	size_t room = sizeof(float) * KGE_PRODUCT_INNER * (KGE_PRODUCT_ROWS + KGE_PRODUCT_COLUMNS);

#ifdef KGE_X86
	if (room < kge_product_avx512.room)
		room = kge_product_avx512.room;
	if (room < kge_product_amx.room)
		room = kge_product_amx.room;
#endif
	return room;
}

/* Where one stride is 1 and the other is not, the matrix is as it is or turned; where both are, it
 * is a row or a column, and stands as what its neighbours' distance allows. */
static void by_sgemm(const struct kge_product *p)
{
	bool a_turned = p->a.row < p->inner, b_turned = p->b.row < p->columns;

	cblas_sgemm(CblasRowMajor, a_turned ? CblasTrans : CblasNoTrans,
		    b_turned ? CblasTrans : CblasNoTrans, (int)p->rows, (int)p->columns,
		    (int)p->inner, 1, p->a.at, (int)(a_turned ? p->a.column : p->a.row), p->b.at,
		    (int)(b_turned ? p->b.column : p->b.row), p->add ? 1 : 0, p->c, (int)p->stride);
}

void kge_product(const struct kge_product *p, void *room)
{
	const struct kge_product_kernel *kernel = room != NULL ? kernel_here() : NULL;

	if (room == NULL)
		by_sgemm(p);
	else if (kernel != NULL)
		kernel->product(p, room);
	else
		kge_product_plain(p, room);
}

/* ---- b packed once ---- */

struct kge_packed {
	const struct kge_product_kernel *kernel;
	uint32_t *at;
	size_t inner, columns;
};

struct kge_packed *kge_packed_new(const struct kge_matrix *b, size_t inner, size_t columns)
{
	const struct kge_product_kernel *kernel = kernel_here();
	struct kge_packed *x;

	if (kernel == NULL)
		return NULL;
	x = mem_array(1, sizeof(*x));
	x->kernel = kernel;
	x->inner = inner;
	x->columns = columns;
	x->at = mem_aligned(kernel->packed_size(inner, columns), sizeof(*x->at));
	kernel->pack(x->at, b, inner, columns);
	return x;
}

void kge_packed_free(struct kge_packed *b)
{
	if (b == NULL)
		return;
	free(b->at);
	free(b);
}

size_t kge_packed_room(const struct kge_packed *b)
{
	return b->kernel->packed_room;
}

void kge_product_packed(const struct kge_product *p, const struct kge_packed *b, void *room)
{
	assert(p->inner == b->inner && p->columns == b->columns);
	b->kernel->product_packed(p, b->at, room);
}

/* ---- plain ---- */

/* To the nearest, of two as near the even one; what is no number stays none. */
static float bfloat_of(float x)
{
	uint32_t bits;

	if (x != x)
		return x;
	memcpy(&bits, &x, sizeof(bits));
	bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
	memcpy(&x, &bits, sizeof(x));
	return x;
}

static void round_block(float *out, const struct kge_matrix *m, size_t row, size_t column,
			size_t rows, size_t columns)
{
	const float *x = m->at + row * m->row + column * m->column;

	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < columns; j++)
			out[i * columns + j] = bfloat_of(x[i * m->row + j * m->column]);
}

static size_t part_of(size_t a, size_t b)
{
	return a < b ? a : b;
}

void kge_product_plain(const struct kge_product *p, void *room)
{
	float *some_a = room, *some_b = some_a + (size_t)KGE_PRODUCT_INNER * KGE_PRODUCT_ROWS;

	for (size_t j = 0; j < p->columns; j += KGE_PRODUCT_COLUMNS)
		for (size_t k = 0; k < p->inner; k += KGE_PRODUCT_INNER) {
			size_t nj = part_of(KGE_PRODUCT_COLUMNS, p->columns - j);
			size_t nk = part_of(KGE_PRODUCT_INNER, p->inner - k);

			round_block(some_b, &p->b, k, j, nk, nj);
			for (size_t i = 0; i < p->rows; i += KGE_PRODUCT_ROWS) {
				size_t ni = part_of(KGE_PRODUCT_ROWS, p->rows - i);
				struct kge_product block = {
					.a = { some_a, nk, 1 },
					.b = { some_b, nj, 1 },
					.rows = ni,
					.columns = nj,
					.inner = nk,
					.c = p->c + i * p->stride + j,
					.stride = p->stride,
					.add = k > 0 || p->add,
				};

				round_block(some_a, &p->a, i, k, ni, nk);
				by_sgemm(&block);
			}
		}
}

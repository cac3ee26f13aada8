/* kge/product.h - matrix products, in floats or with operands rounded to bfloat16.
 *
 * In bfloat16 both operands are rounded to the nearest number of eight bits of mantissa; products
 * are summed in floats.  So an entry is off by at most 2^-7 of the sum of |x y|, and usually by far
 * less, since roundings are as often up as down.  With AVX-512 BF16 that is up to 1.6 times as fast
 * as sgemm, with AMX many times (docs/results/engine.md); on other processors the same is made with
 * sgemm, in some 1.4 times its time. */
#ifndef KGE_PRODUCT_H
#define KGE_PRODUCT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Entry (i, j) is at[i * row + j * column]; one of the two is 1. */
struct kge_matrix {
	const float *at;
	size_t row, column;
};

struct kge_product {
	struct kge_matrix a, b; /* rows x inner, inner x columns */
	size_t rows, columns, inner;
	float *c;      /* rows x columns: a b, */
	size_t stride; /* a row behind the one before it */
	bool add;      /* to what is there */
};

/* room: kge_product_room() bytes on a 64-byte boundary, for this product alone. */
typedef void kge_product_fn(const struct kge_product *p, void *room);

/* Whether this processor has instructions for it. */
bool kge_product_is_fast(void);
/* Which instructions training or scoring goes by, for reports: kge/kernel.h's name, and where
 * products are of bfloat16 (rounded) and there are some for those, "avx512+bf16" or "avx512+amx".
 * Bits are the same where it is the same, and OpenBLAS's processor. */
const char *kge_arithmetic(bool rounded);
/* By those instructions where they are there, else as the plain version; room NULL: by sgemm,
 * nothing rounded. */
kge_product_fn kge_product;
kge_product_fn kge_product_plain;
size_t kge_product_room(void);

/* The b of many products, rounded and laid out once: inner x columns numbers of two bytes. */
struct kge_packed;
/* Reads b during the call.  NULL: this processor has no instructions for it. */
struct kge_packed *kge_packed_new(const struct kge_matrix *b, size_t inner, size_t columns);
void kge_packed_free(struct kge_packed *b); /* NULL is fine */
/* The bits of kge_product() with that b; p->b is not read.  room: kge_packed_room() bytes, as
 * above. */
size_t kge_packed_room(const struct kge_packed *b);
void kge_product_packed(const struct kge_product *p, const struct kge_packed *b, void *room);

/* ---- inside: an instruction set's kernel ---- */

enum {
	KGE_PRODUCT_INNER = 256,    /* of both operands at a time, */
	KGE_PRODUCT_ROWS = 128,	    /* of a, */
	KGE_PRODUCT_COLUMNS = 1920, /* and of b: the plain version's, and AVX-512's */
};
struct kge_product_kernel {
	const char *name;
	size_t room, packed_room; /* bytes */
	kge_product_fn *product;
	/* b laid out: so many numbers of four bytes */
	size_t (*packed_size)(size_t inner, size_t columns);
	void (*pack)(uint32_t *out, const struct kge_matrix *b, size_t inner, size_t columns);
	void (*product_packed)(const struct kge_product *p, const uint32_t *b, void *room);
};
extern const struct kge_product_kernel kge_product_avx512, kge_product_amx;

#endif

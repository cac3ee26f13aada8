/* kge/product_amx.c - c = a b by AMX: tiles of 16 x 16 sums, 32 entries of the inner dimension at a
 * time.
 *
 * Two tiles of a by two of b are what eight tile registers have room for; so a panel is SIDE rows
 * of a, or SIDE columns of b.  One of each, as long as the first cache has room for, adds to a
 * square of sums.  The squares of a block of c stay in the second cache until all of a's and b's
 * blocks are in them.  The system has to allow a process these registers (kge/product.c). */
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "kge/product_pack.h"

enum {
	SIDE = 2 * LANES,
	STEP = 2 * LANES,	      /* of the inner dimension: a row of a tile in bfloat16 */
	STEP_PANEL = STEP / 2 * SIDE, /* a panel's pairs of one step */
	LENGTH = 256,		      /* of a panel, along the inner dimension */
	INNER = 2048,		      /* of a block of a and of b, */
	ROWS = 1024,		      /* rows of a, */
	COLUMNS = 512,		      /* columns of b, */
	HIGH = 512,		      /* and rows of c, COLUMNS wide */
	ROW_BYTES = 64,		      /* of a tile */
	SQUARE = SIDE * SIDE,
};

/* As LDTILECFG reads it: all eight tiles are 16 rows of 64 bytes. */
struct tile_config {
	uint8_t palette, start_row, reserved[14];
	uint16_t row_bytes[16];
	uint8_t rows[16];
};
_Static_assert(sizeof(struct tile_config) == 64, "LDTILECFG reads 64 bytes");

static void begin_tiles(void)
{
	struct tile_config c = { .palette = 1 };

	for (int i = 0; i < 8; i++) {
		c.row_bytes[i] = ROW_BYTES;
		c.rows[i] = LANES;
	}
	__asm__ volatile("" ::"r"(&c)
			 : "memory"); /* all of c is read, whatever the compiler thinks */
	_tile_loadconfig(&c);
}

static size_t steps_of(size_t inner)
{
	return (inner + STEP - 1) / STEP;
}

static size_t panels_of(size_t lanes)
{
	return (lanes + SIDE - 1) / SIDE;
}

/* ---- blocks in panels; of a, each step's first sixteen rows and then the others, a tile each ----
 */

/* Tile rows of sixteen rows of a, `n` of them there, from their k-th entry on. */
static void tile_of_rows(uint32_t *out, const struct kge_matrix *a, size_t i, size_t k, size_t n,
			 size_t inner)
{
	__m512i r[LANES];

	for (size_t l = 0; l < LANES; l++)
		if (a->column == 1) {
			r[l] = l < n ? pairs_from(entry_at(a, i + l, 0), k, inner)
				     : _mm512_setzero_si512();
		} else {
			__mmask16 there = first_lanes(k + 2 * l < inner ? n : 0);
			const float *at = entry_at(a, i, k + 2 * l);

			r[l] = pairs_across(at, k + 2 * l + 1 < inner ? at + a->column : NULL,
					    there);
		}
	if (a->column != 1)
		turn_block(r);
	for (size_t l = 0; l < LANES; l++)
		_mm512_storeu_si512(out + l * LANES, r[l]);
}

/* A block, length by length. */
static void tiles_of_rows(uint32_t *out, const struct kge_matrix *a, size_t first, size_t rows,
			  size_t begin, size_t end)
{
	for (size_t k = begin; k < end; k += LENGTH)
		for (size_t i = 0; i < rows; i += SIDE)
			for (size_t s = k; s < fits_in(k + LENGTH, end); s += STEP)
				for (size_t h = i; h < i + SIDE; h += LANES, out += STEP_PANEL / 2)
					tile_of_rows(out, a, first + h, s,
						     h < rows ? fits_in(LANES, rows - h) : 0, end);
}

static void panels_of_columns(uint32_t *out, const struct kge_matrix *b, size_t begin, size_t end,
			      size_t j, size_t columns)
{
	for (size_t k = begin; k < end; k += LENGTH) {
		size_t length = fits_in(LENGTH, end - k), pairs = steps_of(length) * STEP / 2;

		pack_lanes(out, entry_at(b, k, j), b->column, b->row, SIDE, columns, length, pairs);
		out += panels_of(columns) * pairs * SIDE;
	}
}

/* ---- panels multiplied ---- */

/* A square of sums, from zero or from what is there. */
static void add_panels(float *sums, const uint32_t *a, const uint32_t *b, size_t steps, bool first)
{
	float *below = sums + (size_t)LANES * SIDE;

	if (first) {
		_tile_zero(0);
		_tile_zero(1);
		_tile_zero(2);
		_tile_zero(3);
	} else {
		_tile_loadd(0, sums, 2 * ROW_BYTES);
		_tile_loadd(1, sums + LANES, 2 * ROW_BYTES);
		_tile_loadd(2, below, 2 * ROW_BYTES);
		_tile_loadd(3, below + LANES, 2 * ROW_BYTES);
	}
	for (size_t s = 0; s < steps; s++, a += STEP_PANEL, b += STEP_PANEL) {
		_tile_loadd(4, a, ROW_BYTES);
		_tile_loadd(6, b, 2 * ROW_BYTES);
		_tile_loadd(7, b + LANES, 2 * ROW_BYTES);
		_tile_dpbf16ps(0, 4, 6);
		_tile_dpbf16ps(1, 4, 7);
		_tile_loadd(5, a + STEP_PANEL / 2, ROW_BYTES);
		_tile_dpbf16ps(2, 5, 6);
		_tile_dpbf16ps(3, 5, 7);
	}
	_tile_stored(0, sums, 2 * ROW_BYTES);
	_tile_stored(1, sums + LANES, 2 * ROW_BYTES);
	_tile_stored(2, below, 2 * ROW_BYTES);
	_tile_stored(3, below + LANES, 2 * ROW_BYTES);
}

/* Tiles are read and stored behind the compiler's back. */
static void memory_is_as_written(void)
{
	__asm__ volatile("" ::: "memory");
}

/* `columns` of a row of c, at most a square's, from sums; added to what is there, or in place of
 * it. */
static void store_row(float *c, const float *sums, size_t columns, bool add)
{
	for (size_t j = 0; j < columns; j += LANES) {
		__mmask16 there = first_lanes(columns - j);
		__m512 x = _mm512_load_ps(sums + j);

		if (add)
			x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(there, c + j));
		_mm512_mask_storeu_ps(c + j, there, x);
	}
}

/* The packed blocks of `all` rows by columns: rows first..first + rows - 1 of c. */
struct blocks {
	const uint32_t *a, *b;
	size_t all, first, rows, columns, inner;
};

/* A length of both, the k-th entry the first of it; squares stand as c's columns do. */
static void multiply_length(float *squares, const struct blocks *x, size_t k)
{
	size_t steps = steps_of(fits_in(LENGTH, x->inner - k)), panel = steps * STEP_PANEL;
	const uint32_t *a = x->a + (k / 2 * panels_of(x->all) * SIDE) + x->first / SIDE * panel;
	const uint32_t *b = x->b + k / 2 * panels_of(x->columns) * SIDE;

	for (size_t j = 0; j < x->columns; j += SIDE, b += panel)
		for (size_t i = 0; i < panels_of(x->rows); i++, squares += SQUARE)
			add_panels(squares, a + i * panel, b, steps, k == 0);
}

static void add_blocks(float *c, size_t stride, const struct blocks *x, float *squares, bool add)
{
	memory_is_as_written();
	for (size_t k = 0; k < x->inner; k += LENGTH)
		multiply_length(squares, x, k);
	memory_is_as_written();
	for (size_t i = 0; i < x->rows; i++)
		for (size_t j = 0; j < x->columns; j += SIDE) {
			size_t square = j / SIDE * panels_of(x->rows) + i / SIDE;

			store_row(c + i * stride + j, squares + square * SQUARE + i % SIDE * SIDE,
				  fits_in(SIDE, x->columns - j), add);
		}
}

/* Where blocks are, in floats' places of room. */
enum {
	BLOCK_A = INNER / 2 * ROWS,
	BLOCK_B = INNER / 2 * COLUMNS,
	SQUARES = HIGH * COLUMNS,
};

/* A block of b by a's; c: of their first row and column. */
static void add_rows_of_blocks(float *c, size_t stride, struct blocks x, float *squares, bool add)
{
	for (x.first = 0; x.first < x.all; x.first += HIGH) {
		x.rows = fits_in(HIGH, x.all - x.first);
		add_blocks(c + x.first * stride, stride, &x, squares, add);
	}
}

static size_t size_in_panels(size_t inner, size_t columns)
{
	return panels_of(columns) * steps_of(inner) * STEP_PANEL;
}

/* packed: all of b, or NULL, and then room for a block of it is behind the rest. */
static void multiply_tiles(const struct kge_product *p, const uint32_t *packed, uint32_t *room)
{
	float *squares = (float *)room + BLOCK_A;
	uint32_t *block = room + BLOCK_A + SQUARES;

	begin_tiles();
	for (size_t i = 0; i < p->rows; i += ROWS) {
		const uint32_t *b = packed;

		for (size_t k = 0; k < p->inner; k += INNER) {
			struct blocks x = { .a = room,
					    .all = fits_in(ROWS, p->rows - i),
					    .inner = fits_in(INNER, p->inner - k) };

			tiles_of_rows(room, &p->a, i, x.all, k, k + x.inner);
			for (size_t j = 0; j < p->columns; j += COLUMNS) {
				x.columns = fits_in(COLUMNS, p->columns - j);
				x.b = packed != NULL ? b : block;
				if (packed == NULL)
					panels_of_columns(block, &p->b, k, k + x.inner, j,
							  x.columns);
				else
					b += size_in_panels(x.inner, x.columns);
				add_rows_of_blocks(p->c + i * p->stride + j, p->stride, x, squares,
						   k > 0 || p->add);
			}
		}
	}
	_tile_release();
}

static void amx_product(const struct kge_product *p, void *room)
{
	multiply_tiles(p, NULL, room);
}

/* ---- b packed once ---- */

static size_t amx_packed_size(size_t inner, size_t columns)
{
	size_t steps = inner / INNER * steps_of(INNER) + steps_of(inner % INNER);

	return panels_of(columns) * steps * STEP_PANEL;
}

static void amx_pack(uint32_t *out, const struct kge_matrix *b, size_t inner, size_t columns)
{
	for (size_t k = 0; k < inner; k += INNER)
		for (size_t j = 0; j < columns; j += COLUMNS) {
			size_t nk = fits_in(INNER, inner - k), nj = fits_in(COLUMNS, columns - j);

			panels_of_columns(out, b, k, k + nk, j, nj);
			out += size_in_panels(nk, nj);
		}
}

static void amx_product_packed(const struct kge_product *p, const uint32_t *b, void *room)
{
	multiply_tiles(p, b, room);
}

const struct kge_product_kernel kge_product_amx = {
	.name = "avx512+amx",
	.room = sizeof(uint32_t) * (BLOCK_A + SQUARES + BLOCK_B),
	.packed_room = sizeof(uint32_t) * (BLOCK_A + SQUARES),
	.product = amx_product,
	.packed_size = amx_packed_size,
	.pack = amx_pack,
	.product_packed = amx_product_packed,
};

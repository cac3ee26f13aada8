/* kge/npy.c - tables as NumPy arrays, with the names of their rows beside them. */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "kge/table_internal.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "rows are written as they lie in memory");

/* ---- out ---- */

/* NPY 1.0: magic, version, header length in two bytes, a Python literal padded
 * with spaces so that the data begin at a multiple of 64, a newline. */
static void write_npy_header(FILE *f, size_t rows, size_t floats)
{
	char text[128];
	int n = snprintf(text, sizeof text,
			 "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %zu), }", rows,
			 floats);
	int padded = (10 + n + 1 + 63) / 64 * 64 - 10;

	fwrite("\x93NUMPY\x01\x00", 1, 8, f);
	fputc(padded & 0xff, f);
	fputc(padded >> 8, f);
	fprintf(f, "%s%*s\n", text, padded - n - 1, "");
}

int kge_table_write_npy(const char *folder, const struct table *t, struct err *e)
{
	size_t rows = graph_vocab_count(t->names);
	struct sink s;

	if (kge_table_open(&s, folder, t->what, ".npy", e) != 0)
		return ERR_IO;
	write_npy_header(s.f, rows, t->floats);
	fwrite(t->rows, t->floats * sizeof(float), rows, s.f);
	return sink_close(&s, e);
}

/* ---- in ---- */

/* The value of a key in the header's literal, past its colon and spaces. */
static const char *npy_value(const char *header, const char *key)
{
	const char *at = strstr(header, key);

	if (at == NULL)
		return "";
	at += strlen(key);
	at += strspn(at, " ");
	at += *at == ':';
	return at + strspn(at, " ");
}

static int npy_bad(const char *path, struct err *e, const char *what)
{
	return err_set(e, ERR_INPUT,
		       "%s: %s: write it with numpy.save() from a C-ordered "
		       "array of type '<f4'",
		       path, what);
}

enum { NPY_HEADER_MAX = 4096 };

/* Versions 1 (two bytes of length) and 2, 3 (four bytes). */
static int read_npy_header(FILE *f, const char *path, size_t *rows, size_t *floats, struct err *e)
{
	char header[NPY_HEADER_MAX + 1];
	unsigned char start[12];
	char end[2];
	long r, c;
	size_t len;

	if (fread(start, 1, 10, f) != 10 || memcmp(start, "\x93NUMPY", 6) != 0)
		return npy_bad(path, e, "not a NumPy file");
	len = start[8] | (size_t)start[9] << 8;
	if (start[6] > 1) {
		if (start[6] > 3 || fread(start + 10, 1, 2, f) != 2)
			return npy_bad(path, e, "of an unknown version");
		len |= (size_t)start[10] << 16 | (size_t)start[11] << 24;
	}
	if (len > NPY_HEADER_MAX || fread(header, 1, len, f) != len)
		return npy_bad(path, e, "has a damaged header");
	header[len] = '\0';
	if (strncmp(npy_value(header, "'descr'"), "'<f4'", 5) != 0 ||
	    strncmp(npy_value(header, "'fortran_order'"), "False", 5) != 0)
		return npy_bad(path, e, "has another type or order of numbers");
	/* ten digits cannot overflow; NOLINTNEXTLINE(cert-err34-c) */
	if (sscanf(npy_value(header, "'shape'"), "(%10ld, %10ld%1[)]", &r, &c, end) != 3 || r < 0 ||
	    c < 0)
		return npy_bad(path, e, "is not a table");
	*rows = (size_t)r;
	*floats = (size_t)c;
	return 0;
}

static int read_npy_rows(FILE *f, const char *path, struct table *t, const uint32_t *order,
			 struct err *e)
{
	size_t want = graph_vocab_count(t->names), rows = 0, floats = 0;
	int rc = read_npy_header(f, path, &rows, &floats, e);

	if (rc != 0)
		return rc;
	if (rows != want || floats != t->floats)
		return err_set(e, ERR_INPUT,
			       "%s: %zu rows of %zu numbers where %zu of %zu are wanted", path,
			       rows, floats, want, t->floats);
	for (size_t k = 0; k < rows; k++) {
		float *row = t->rows + order[k] * floats;

		if (fread(row, sizeof *row, floats, f) != floats)
			return err_set(e, ERR_INPUT, "%s: ends in row %zu of %zu", path, k, rows);
		for (size_t i = 0; i < floats; i++)
			if (!isfinite(row[i]))
				return err_set(e, ERR_INPUT,
					       "%s: row %zu has a number that is not "
					       "finite",
					       path, k);
	}
	if (fgetc(f) != EOF)
		return err_set(e, ERR_INPUT, "%s: more bytes after its %zu rows", path, rows);
	return 0;
}

int kge_table_read_npy(const char *folder, struct table *t, bool rotate, bool *have, struct err *e)
{
	uint32_t *order = mem_array((size_t)graph_vocab_count(t->names) + 1, sizeof *order);
	char *path = kge_table_path(folder, rotate ? t->one : t->what,
				    rotate ? "_embedding.npy" : ".npy");
	int rc = kge_table_read_names(folder, t, have, order, e);
	FILE *f = rc == 0 ? fopen(path, "rb") : NULL;

	if (rc == 0 && f == NULL)
		rc = file_unreadable(path, errno, e);
	if (rc == 0)
		rc = read_npy_rows(f, path, t, order, e);
	if (f != NULL)
		fclose(f);
	free(path);
	free(order);
	return rc;
}

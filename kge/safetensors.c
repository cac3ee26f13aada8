/* kge/safetensors.c - both tables in one file of Hugging Face's format, with what they are.
 *
 *   8 bytes   length n of the header, little-endian
 *   n bytes   JSON: each tensor's dtype, shape and place; "__metadata__" with words
 *   the rest  the tensors, one after the other, without holes
 *
 * Other programs' tables come in by the names of their tensors (struct dialect), as far as their
 * rows are ours but for the order of numbers and of rows. */
#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/place.h"
#include "kge/safetensors_internal.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "rows are written as they lie in memory");

enum { HEADER_MAX = 1 << 20, TENSORS_MAX = 1024, RANK_MAX = 8, DIGEST_BYTES = 32 };
static const char file_name[] = "model.safetensors";

/* ---- dialects ---- */

/* Where a reciprocal relation's second row stands, if rows have one half only. */
enum second { WITHIN, BEHIND, BETWEEN }; /* in the same row; row n + r; row 2 r + 1 */

struct dialect {
	const char *program;
	const char *tensor[2]; /* entities, relations */
	bool pairs;	       /* complex numbers as (real, imaginary), not halves of a row */
	enum second second;
	const char *const *kinds; /* of model.kind, scored as we do; NULL at the end; NULL: all */
};

static const char *const translations_and_products[] = {
	"transe", "transe_l2", "distmult", "complex", "distmult_reciprocal", "complex_reciprocal",
	NULL
};
/* ssl-relation-prediction calls tables so in its ComplEx alone: its TransE squares the distance. */
static const char *const complex_alone[] = { "complex", "complex_reciprocal", NULL };

static const struct dialect dialects[] = {
	{ "fkge", { "entities", "relations" }, false, WITHIN, NULL },
	{ "PyKEEN",
	  { "entity_representations.0._embeddings.weight",
	    "relation_representations.0._embeddings.weight" },
	  true,
	  BETWEEN,
	  translations_and_products },
	{ "LibKGE",
	  { "_entity_embedder._embeddings.weight", "_relation_embedder._embeddings.weight" },
	  false,
	  BEHIND,
	  translations_and_products },
	{ "LibKGE",
	  { "_base_model._entity_embedder._embeddings.weight",
	    "_base_model._relation_embedder._embeddings.weight" },
	  false,
	  BEHIND,
	  translations_and_products },
	{ "ssl-relation-prediction",
	  { "embeddings.0.weight", "embeddings.1.weight" },
	  false,
	  BEHIND,
	  complex_alone },
};

static bool is_complex(const struct kge_model *m)
{
	return strncmp(m->name, "complex", 7) == 0 || strcmp(m->name, "rotate") == 0;
}

static bool is_reciprocal(const struct kge_model *m)
{
	return strstr(m->name, "_reciprocal") != NULL;
}

/* What of a table's row is one row of the file. */
struct piece {
	size_t floats, parts; /* of a row of the file; rows of the file for one of ours */
	bool pairs;
};

static struct piece piece_of(const struct dialect *d, const struct kge_emb *m, int table)
{
	size_t floats = table == 0 ? m->ent_floats : m->rel_floats;
	bool split = table == 1 && d->second != WITHIN && is_reciprocal(m->model);

	return (struct piece){ .floats = split ? floats / 2 : floats,
			       .parts = split ? 2 : 1,
			       .pairs = d->pairs && is_complex(m->model) };
}

/* Halves to pairs, or back. */
static void turn_row(float *restrict to, const float *restrict from, size_t floats, bool to_pairs)
{
	size_t half = floats / 2;

	for (size_t i = 0; i < half; i++) {
		to[to_pairs ? 2 * i : i] = from[to_pairs ? i : 2 * i];
		to[to_pairs ? 2 * i + 1 : half + i] = from[to_pairs ? half + i : 2 * i + 1];
	}
}

/* The programs whose formulas are others than ours: their scores would not be ours. */
static int check_dialect(const struct dialect *d, const struct kge_model *m, const char *path,
			 struct err *e)
{
	if (d->kinds == NULL)
		return 0;
	for (size_t i = 0; d->kinds[i] != NULL; i++)
		if (strcmp(d->kinds[i], m->name) == 0)
			return 0;
	return err_set(
		e, ERR_USAGE,
		"%s: %s scores %s by another formula than ours, or keeps it in other tables, "
		"so its figures would differ",
		path, d->program, m->name);
}

/* ---- out ---- */

static void put_word(json_t *j, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void put_word(json_t *j, const char *key, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_object_set_new(j, key, json_string(text));
}

static const char *layout_of(const struct dialect *d, const struct kge_model *m)
{
	if (strcmp(m->name, "rotate") == 0)
		return "entities: real halves, then imaginary halves; relations: angle * (gamma + "
		       "2) "
		       "/ (pi * dim)";
	if (is_complex(m))
		return d->pairs ? "complex numbers as pairs (real, imaginary)"
				: "real halves, then imaginary halves";
	return m->project != NULL ? "the translation first, then what projects" : "plain";
}

/* Words alone: the format allows nothing else. */
static json_t *metadata_of(const struct dialect *d, const struct kge_emb *m,
			   const struct kge_told *told)
{
	uint8_t digest[DIGEST_BYTES];
	char hex[2 * DIGEST_BYTES + 1];
	json_t *j = json_object();

	kge_emb_digest(m, digest);
	sodium_bin2hex(hex, sizeof(hex), digest, sizeof(digest));
	put_word(j, "format", "fkge/1");
	put_word(j, "model", "%s", m->model->name);
	put_word(j, "dim", "%zu", m->dim);
	put_word(j, "rel_dim", "%zu", m->rel_dim);
	put_word(j, "gamma", "%.9g", (double)m->gamma);
	put_word(j, "conventions", "%s", d->program);
	put_word(j, "layout", "%s", layout_of(d, m->model));
	if (is_reciprocal(m->model))
		put_word(j, "reciprocal", "%s",
			 d->second == WITHIN ? "a relation's row: for tails, then for heads"
					     : "row 2 r: for tails; row 2 r + 1: for heads");
	put_word(j, "digest", "%s", hex);
	if (told != NULL && told->protocol != NULL) {
		put_word(j, "valid_protocol", "%s", told->protocol);
		if (told->private_steps > 0)
			put_word(j, "private_steps", "%llu",
				 (unsigned long long)told->private_steps);
		if (isfinite(told->valid_score))
			put_word(j, "valid_score", "%.17g", told->valid_score);
		put_word(j, "epochs", "%llu", (unsigned long long)told->epochs);
	}
	return j;
}

static json_t *tensor_json(size_t rows, size_t floats, size_t begin)
{
	size_t end = begin + rows * floats * sizeof(float);

	return json_pack("{s:s, s:[I, I], s:[I, I]}", "dtype", "F32", "shape", (json_int_t)rows,
			 (json_int_t)floats, "data_offsets", (json_int_t)begin, (json_int_t)end);
}

static void write_header(FILE *f, const json_t *header)
{
	char *text = json_dumps(header, JSON_COMPACT | JSON_PRESERVE_ORDER);
	size_t n = strlen(text), padded = (n + 7) / 8 * 8;

	for (int i = 0; i < 8; i++)
		fputc((int)(padded >> 8 * i & 0xff), f);
	fprintf(f, "%s%*s", text, (int)(padded - n), "");
	free(text);
}

/* In the order of the file's rows. */
static void write_rows(FILE *f, const struct dialect *d, const struct piece *p, const float *rows,
		       size_t n)
{
	float *turned = mem_array(p->floats + 1, sizeof(*turned));

	for (size_t k = 0; k < n * p->parts; k++) {
		size_t id = d->second == BEHIND ? k % n : k / p->parts;
		size_t part = d->second == BEHIND ? k / n : k % p->parts;
		const float *row = rows + (id * p->parts + part) * p->floats;

		if (p->pairs)
			turn_row(turned, row, p->floats, true);
		fwrite(p->pairs ? turned : row, sizeof(*row), p->floats, f);
	}
	free(turned);
}

static int write_tensors(const struct kge_emb *m, const char *folder, const struct dialect *d,
			 json_t *metadata, struct err *e)
{
	const size_t n[2] = { m->n_ent, m->n_rel };
	json_t *header = json_object();
	struct sink s;
	size_t begin = 0;

	json_object_set(header, "__metadata__", metadata);
	for (int i = 0; i < 2; i++) {
		struct piece p = piece_of(d, m, i);

		json_object_set_new(header, d->tensor[i],
				    tensor_json(n[i] * p.parts, p.floats, begin));
		begin += n[i] * p.parts * p.floats * sizeof(float);
	}
	if (kge_table_open(&s, folder, file_name, "", e) != 0) {
		json_decref(header);
		return ERR_IO;
	}
	write_header(s.f, header);
	json_decref(header);
	for (int i = 0; i < 2; i++) {
		struct piece p = piece_of(d, m, i);

		write_rows(s.f, d, &p, i == 0 ? m->ent : m->rel, n[i]);
	}
	return sink_close(&s, e);
}

static int write_tensors_config(const char *folder, const json_t *metadata, struct err *e)
{
	char *text = json_dumps(metadata, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
	struct sink s;
	int rc = kge_table_open(&s, folder, "config", ".json", e);

	if (rc == 0) {
		fprintf(s.f, "%s\n", text);
		rc = sink_close(&s, e);
	}
	free(text);
	return rc;
}

/* The card that Hugging Face shows of a folder. */
static int write_card(const char *folder, const struct kge_emb *m, const json_t *metadata,
		      struct err *e)
{
	const char *key;
	json_t *value;
	struct sink s;

	if (kge_table_open(&s, folder, "README", ".md", e) != 0)
		return ERR_IO;
	fprintf(s.f,
		"---\nlibrary_name: fkge\ntags:\n- knowledge-graph-embedding\n- %s\n---\n\n"
		"# Embeddings of a knowledge graph\n\n"
		"%u entities, %u relations, by fkge. `%s` has the rows, and in its header:\n\n"
		"| key | value |\n|---|---|\n",
		m->model->name, m->n_ent, m->n_rel, file_name);
	json_object_foreach((json_t *)(uintptr_t)metadata, key, value)
		fprintf(s.f, "| %s | %s |\n", key, json_string_value(value));
	fprintf(s.f, "\nRow k is that of name k of the files of names beside. Back into fkge:\n\n"
		     "    fkge import --embeddings FOLDER\n");
	return sink_close(&s, e);
}

/* What a folder may have of its own. */
static int check_card(const char *folder, struct err *e)
{
	static const struct {
		const char *name;
		struct place_kind kind;
	} files[] = {
		{ "README.md", { "card of embeddings", "--- library_name: fkge" } },
		{ "config.json", { "config.json of embeddings", "{\"format\": \"fkge/" } },
	};
	int rc = 0;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]) && rc == 0; i++) {
		char *path = file_join(folder, files[i].name);

		rc = place_check(path, &files[i].kind, e);
		free(path);
	}
	return rc;
}

int kge_safetensors_may_write(const struct kge_emb *m, const char *folder, bool pykeen,
			      struct err *e)
{
	int rc = check_dialect(&dialects[pykeen], m->model, folder, e);

	return rc == 0 ? check_card(folder, e) : rc;
}

int kge_safetensors_write(const struct kge_emb *m, const char *folder, bool pykeen,
			  const struct kge_told *told, struct err *e)
{
	const struct dialect *d = &dialects[pykeen];
	json_t *metadata = metadata_of(d, m, told);
	int rc = write_tensors(m, folder, d, metadata, e);

	if (rc == 0)
		rc = write_tensors_config(folder, metadata, e);
	if (rc == 0)
		rc = write_card(folder, m, metadata, e);
	json_decref(metadata);
	return rc;
}

/* ---- in ---- */

struct tensors {
	char *path;
	FILE *f;
	json_t *header;
	uint64_t data, size;	 /* where tensors begin, and their bytes */
	struct kge_digest *seen; /* of the rows as they are read; NULL: none is asked for */
};

struct tensor {
	uint64_t begin, end, rows, floats;
};

static int bad_tensors(const struct tensors *t, struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int bad_tensors(const struct tensors *t, struct err *e, const char *fmt, ...)
{
	char text[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(e, ERR_INPUT, "%s: %s", t->path, text);
}

static void close_tensors(struct tensors *t)
{
	if (t->f != NULL)
		fclose(t->f);
	if (t->seen != NULL)
		kge_digest_end(t->seen, (uint8_t[DIGEST_BYTES]){ 0 });
	json_decref(t->header);
	free(t->path);
}

static int read_tensors_header(struct tensors *t, uint64_t bytes, struct err *e)
{
	unsigned char length[8];
	uint64_t n = 0;
	char *text;

	if (bytes < 8 || fread(length, 1, 8, t->f) != 8)
		return bad_tensors(t, e, "not a safetensors file: it has %llu bytes",
				   (unsigned long long)bytes);
	for (int i = 0; i < 8; i++)
		n |= (uint64_t)length[i] << 8 * i;
	if (n > bytes - 8 || n > HEADER_MAX)
		return bad_tensors(
			t, e,
			"its header is to have %llu bytes; the file has %llu, and at most "
			"%d are read",
			(unsigned long long)n, (unsigned long long)bytes, HEADER_MAX);
	text = mem_array((size_t)n + 1, 1);
	if (fread(text, 1, (size_t)n, t->f) == n)
		t->header = json_loadb(text, (size_t)n, JSON_REJECT_DUPLICATES, NULL);
	free(text);
	t->data = 8 + n;
	t->size = bytes - t->data;
	return json_is_object(t->header) ? 0 : bad_tensors(t, e, "its header is no JSON object");
}

static bool take_number(const json_t *j, uint64_t *out)
{
	if (!json_is_integer(j) || json_integer_value(j) < 0)
		return false;
	*out = (uint64_t)json_integer_value(j);
	return true;
}

static uint64_t width_of(const char *dtype)
{
	static const struct {
		const char *name;
		uint64_t bytes;
	} types[] = {
		{ "F64", 8 }, { "I64", 8 }, { "U64", 8 },  { "F32", 4 },     { "I32", 4 },
		{ "U32", 4 }, { "F16", 2 }, { "BF16", 2 }, { "I16", 2 },     { "U16", 2 },
		{ "I8", 1 },  { "U8", 1 },  { "BOOL", 1 }, { "F8_E4M3", 1 }, { "F8_E5M2", 1 }
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i].name, dtype) == 0)
			return types[i].bytes;
	return 0;
}

/* Its place, which is within the data and as long as its shape says. */
static bool read_place(const struct tensors *t, const json_t *j, struct tensor *out)
{
	const json_t *shape = json_object_get(j, "shape");
	const json_t *offsets = json_object_get(j, "data_offsets");
	const char *dtype = json_string_value(json_object_get(j, "dtype"));
	uint64_t bytes = dtype != NULL ? width_of(dtype) : 0;
	size_t rank = json_array_size(shape);

	if (bytes == 0 || !json_is_array(shape) || rank > RANK_MAX ||
	    json_array_size(offsets) != 2 ||
	    !take_number(json_array_get(offsets, 0), &out->begin) ||
	    !take_number(json_array_get(offsets, 1), &out->end) || out->begin > out->end ||
	    out->end > t->size)
		return false;
	for (size_t i = 0; i < rank; i++) {
		uint64_t n;

		if (!take_number(json_array_get(shape, i), &n) ||
		    __builtin_mul_overflow(bytes, n, &bytes))
			return false;
	}
	return bytes == out->end - out->begin;
}

static int by_begin(const void *a, const void *b)
{
	const struct tensor *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return (x->end > y->end) - (x->end < y->end);
}

/* Every tensor's place; together they are all of the data, each byte once. */
static int check_places(const struct tensors *t, struct err *e)
{
	struct tensor at[TENSORS_MAX];
	size_t n = 0;
	uint64_t end = 0;
	const char *key;
	json_t *value;

	json_object_foreach(t->header, key, value)
	{
		if (strcmp(key, "__metadata__") == 0)
			continue;
		if (n == TENSORS_MAX)
			return bad_tensors(t, e, "more than %d tensors", TENSORS_MAX);
		if (!read_place(t, value, &at[n++]))
			return bad_tensors(
				t, e, "'%.100s' does not say its place in the %llu bytes of data",
				key, (unsigned long long)t->size);
	}
	qsort(at, n, sizeof(at[0]), by_begin);
	for (size_t i = 0; i < n; i++) {
		if (at[i].begin != end)
			return bad_tensors(
				t, e, "two tensors overlap, or bytes are nobody's, at %llu",
				(unsigned long long)(at[i].begin < end ? at[i].begin : end));
		end = at[i].end;
	}
	return end == t->size ? 0
			      : bad_tensors(t, e, "bytes are nobody's from %llu of the data on",
					    (unsigned long long)end);
}

static int open_tensors(struct tensors *t, const char *folder, struct err *e)
{
	struct stat st;
	int rc;

	*t = (struct tensors){ .path = file_join(folder, file_name) };
	t->f = fopen(t->path, "rb");
	if (t->f == NULL || fstat(fileno(t->f), &st) != 0)
		return file_unreadable(t->path, errno, e);
	if (!S_ISREG(st.st_mode))
		return bad_tensors(t, e, "not a file");
	rc = read_tensors_header(t, (uint64_t)st.st_size, e);
	return rc == 0 ? check_places(t, e) : rc;
}

static const struct dialect *find_dialect(const struct tensors *t, struct err *e)
{
	for (size_t i = 0; i < sizeof(dialects) / sizeof(dialects[0]); i++)
		if (json_object_get(t->header, dialects[i].tensor[0]) != NULL &&
		    json_object_get(t->header, dialects[i].tensor[1]) != NULL)
			return &dialects[i];
	bad_tensors(
		t, e,
		"no tensors of tables: fkge's are named entities and relations; those of PyKEEN, "
		"LibKGE and ssl-relation-prediction are known, too");
	return NULL;
}

/* ---- what the file says of itself ---- */

static const char *said_word(const struct tensors *t, const char *key)
{
	return json_string_value(json_object_get(json_object_get(t->header, "__metadata__"), key));
}

static bool says_other(const char *word, double is)
{
	return word != NULL && !(fabs(strtod(word, NULL) - is) <= 1e-6 * fabs(is));
}

static int check_metadata(const struct tensors *t, const struct kge_emb *m, struct err *e)
{
	const char *model = said_word(t, "model"), *dim = said_word(t, "dim");
	const char *gamma = said_word(t, "gamma"), *rel_dim = said_word(t, "rel_dim");

	if (model != NULL && strcmp(model, m->model->name) != 0)
		return bad_tensors(t, e, "it is of model %.50s, not %s (model.kind)", model,
				   m->model->name);
	if (says_other(dim, (double)m->dim))
		return bad_tensors(t, e, "it is of dimension %.20s, not %zu (model.dim)", dim,
				   m->dim);
	if (says_other(rel_dim, (double)m->rel_dim))
		return bad_tensors(t, e,
				   "its relations are of dimension %.20s, not %zu (model.rel_dim)",
				   rel_dim, m->rel_dim);
	if (says_other(gamma, (double)m->gamma))
		return bad_tensors(t, e, "it is of gamma %.20s, not %g (model.gamma)", gamma,
				   (double)m->gamma);
	return 0;
}

int kge_safetensors_shape(const char *folder, struct kge_shape *out, struct err *e)
{
	struct tensors t;
	int rc = open_tensors(&t, folder, e);

	*out = (struct kge_shape){ 0 };
	if (rc == 0 && said_word(&t, "model") != NULL && said_word(&t, "dim") != NULL) {
		snprintf(out->model, sizeof(out->model), "%s", said_word(&t, "model"));
		snprintf(out->dim, sizeof(out->dim), "%s", said_word(&t, "dim"));
		snprintf(out->rel_dim, sizeof(out->rel_dim), "%s",
			 said_word(&t, "rel_dim") != NULL ? said_word(&t, "rel_dim") : "");
		snprintf(out->gamma, sizeof(out->gamma), "%s",
			 said_word(&t, "gamma") != NULL ? said_word(&t, "gamma") : "");
	}
	close_tensors(&t);
	return rc;
}

/* What an export of ours says its rows are; NULL: it does not.  Other programs' files have no such
 * word. */
static const char *said_digest(const struct tensors *t, const struct dialect *d)
{
	const char *format = said_word(t, "format"), *whose = said_word(t, "conventions");
	bool ours = format != NULL && strncmp(format, "fkge/", 5) == 0 && whose != NULL &&
		    strcmp(whose, d->program) == 0;

	return ours ? said_word(t, "digest") : NULL;
}

/* By the file's own gamma, which need not be ours to the last bit. */
static struct kge_digest *begin_seen(const struct tensors *t, const struct kge_emb *m,
				     const size_t n[2])
{
	const char *gamma = said_word(t, "gamma");
	struct kge_emb shape = kge_emb_shape(m->model, m->dim, m->rel_dim,
					     gamma != NULL ? strtof(gamma, NULL) : m->gamma,
					     (uint32_t)n[0], (uint32_t)n[1]);

	return kge_digest_new(&shape);
}

static int check_seen(struct tensors *t, const struct dialect *d, struct err *e)
{
	uint8_t digest[DIGEST_BYTES];
	char hex[2 * DIGEST_BYTES + 1];

	kge_digest_end(t->seen, digest);
	t->seen = NULL;
	sodium_bin2hex(hex, sizeof(hex), digest, sizeof(digest));
	if (strcmp(hex, said_digest(t, d)) == 0)
		return 0;
	return bad_tensors(t, e,
			   "its rows are not those that its digest was made of: export them anew; "
			   "if they were changed on purpose, take 'digest' out of the header's "
			   "__metadata__");
}

/* ---- rows ---- */

/* Row by row in the order of the file. */
static int read_tensor_rows(const struct tensors *t, const struct tensor *at, const struct piece *p,
			    const struct dialect *d, struct kge_safetensors_names *names,
			    float *rows, struct err *e)
{
	float *raw = mem_array(p->floats + 1, sizeof(*raw));
	int rc = 0;

	if (fseeko(t->f, (off_t)(t->data + at->begin), SEEK_SET) != 0)
		rc = bad_tensors(t, e, "it cannot be read");
	for (size_t k = 0; k < names->n * p->parts && rc == 0; k++) {
		size_t id = d->second == BEHIND ? k % names->n : k / p->parts;
		size_t part = d->second == BEHIND ? k / names->n : k % p->parts;
		float *row = rows + (names->order[id] * p->parts + part) * p->floats;

		if (fread(raw, sizeof(*raw), p->floats, t->f) != p->floats)
			rc = bad_tensors(t, e, "it ends in row %zu", k);
		for (size_t i = 0; i < p->floats && rc == 0; i++)
			if (!isfinite(raw[i]))
				rc = bad_tensors(t, e, "row %zu has a number that is not finite",
						 k);
		if (p->pairs)
			turn_row(row, raw, p->floats, false);
		else
			memcpy(row, raw, p->floats * sizeof(*raw));
		if (t->seen != NULL)
			kge_digest_add(t->seen, row, p->floats);
	}
	free(raw);
	return rc;
}

static int check_tensor(const struct tensors *t, const char *name, const struct piece *p, size_t n,
			struct tensor *at, struct err *e)
{
	const json_t *j = json_object_get(t->header, name);
	const json_t *shape = json_object_get(j, "shape");
	const char *dtype = json_string_value(json_object_get(j, "dtype"));

	if (!read_place(t, j, at) || strcmp(dtype, "F32") != 0 || json_array_size(shape) < 2)
		return bad_tensors(t, e,
				   "'%s' is no table of F32: in Python, save it by "
				   "tensor.to(torch.float32)",
				   name);
	at->rows = (uint64_t)json_integer_value(json_array_get(shape, 0));
	at->floats = at->rows > 0 ? (at->end - at->begin) / sizeof(float) / at->rows : p->floats;
	if (at->rows != n * p->parts || at->floats != p->floats)
		return bad_tensors(t, e,
				   "'%s' has %llu rows of %llu numbers where %zu of %zu are "
				   "wanted",
				   name, (unsigned long long)at->rows,
				   (unsigned long long)at->floats, n * p->parts, p->floats);
	return 0;
}

/* Whose the file's tables are, and where: of the shape's model, widths and, by n, rows. */
static int find_tensors(struct tensors *t, const struct kge_emb *shape, const size_t n[2],
			const struct dialect **of, struct tensor at[2], struct err *e)
{
	const struct dialect *d = find_dialect(t, e);
	int rc = d == NULL ? ERR_INPUT : check_dialect(d, shape->model, t->path, e);

	if (rc == 0)
		rc = check_metadata(t, shape, e);
	for (int i = 0; i < 2 && rc == 0; i++) {
		struct piece p = piece_of(d, shape, i);

		rc = check_tensor(t, d->tensor[i], &p, n[i], &at[i], e);
	}
	*of = d;
	return rc;
}

int kge_safetensors_fits(const struct kge_emb *shape, const char *folder, struct err *e)
{
	const size_t n[2] = { shape->n_ent, shape->n_rel };
	const struct dialect *d;
	struct tensor at[2] = { 0 };
	struct tensors t;
	int rc = open_tensors(&t, folder, e);

	if (rc == 0)
		rc = find_tensors(&t, shape, n, &d, at, e);
	close_tensors(&t);
	return rc;
}

int kge_safetensors_read(struct kge_emb *m, const char *folder,
			 struct kge_safetensors_names names[2], struct err *e)
{
	const size_t n[2] = { names[0].n, names[1].n };
	const struct dialect *d = NULL;
	struct tensor at[2] = { 0 };
	struct tensors t;
	int rc = open_tensors(&t, folder, e);

	if (rc == 0)
		rc = find_tensors(&t, m, n, &d, at, e);
	if (rc == 0 && said_digest(&t, d) != NULL)
		t.seen = begin_seen(&t, m, n);
	for (int i = 0; i < 2 && rc == 0; i++) {
		struct piece p = piece_of(d, m, i);

		rc = read_tensor_rows(&t, &at[i], &p, d, &names[i], i == 0 ? m->ent : m->rel, e);
	}
	if (rc == 0 && t.seen != NULL)
		rc = check_seen(&t, d, e);
	close_tensors(&t);
	return rc;
}

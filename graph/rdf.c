/* graph/rdf.c - triples of N-Triples, Turtle, N-Quads and TriG, parsed by serd (graph/graph.h says
 * what becomes of IRIs, literals, blank nodes and the names of graphs).
 *
 * serd is given the file byte by byte, so that the line of graph_lines_byte() is the
 * line of whatever it tells us.  It bounds neither what it keeps of one
 * statement nor its recursion for nested [ and (, so both are bounded here:
 * bytes from one callback to the next, and the stack that its calls have taken
 * when it calls back, which it does at each level before it goes deeper. */
#include <assert.h>
#include <serd/serd.h>
#include <sodium.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"
#include "graph/load_internal.h"
#include "graph/words.h"

#define RDFS_LABEL "http://www.w3.org/2000/01/rdf-schema#label"

enum {
	STATEMENT_MAX = 16 * 1024 * 1024, /* bytes; a literal may be a book */
	STACK_MAX = 1024 * 1024,
	PREFIXES_MAX = 4096, /* serd looks a prefix up in a list */
};

struct rdf {
	struct loading *in;
	SerdReader *reader;
	SerdEnv *env;
	struct graph_vocab *prefixes; /* to count them */
	size_t since;	     /* bytes since the last callback, from the first that counts */
	bool in_comment;     /* while none does */
	char window[4];	     /* the last bytes */
	bool small_b, big_b; /* _:b1, _:B1 were seen, any number for 1 */
	bool keeps_labels;   /* the syntax is one that serd renames no label of */
	uintptr_t stack;     /* where ours was when serd was called */
	struct buf name[3];  /* of the statement's nodes */
	int rc;		     /* the first error, and its text */
	struct err *e;
};

/* ---- bytes for serd ---- */

/* But in N-Quads, where every node has a label, serd writes the label b1 as B1 and keeps b1 for
 * nodes without a label, so that after it the two cannot be told apart: remember which is there. */
static void watch_labels(struct rdf *r, unsigned char byte)
{
	memmove(r->window, r->window + 1, 3);
	r->window[3] = (char)byte;
	if (byte < '0' || byte > '9' || r->window[0] != '_' || r->window[1] != ':')
		return;
	r->small_b |= r->window[2] == 'b';
	r->big_b |= r->window[2] == 'B';
}

/* Between statements serd keeps nothing: what ends one, space and comments do not count there. */
static void count_byte(struct rdf *r, unsigned char byte)
{
	if (r->since > 0 || (!r->in_comment && strchr("# \t\r\n.,;])}", byte) == NULL))
		r->since++;
	else
		r->in_comment = byte == '#' || (r->in_comment && byte != '\n' && byte != '\r');
}

/* As fread(); serd asks for one byte. */
static size_t give_byte(void *to, size_t size, size_t n, void *stream)
{
	struct rdf *r = stream;
	unsigned char byte;
	int rc;

	(void)size;
	(void)n;
	if (r->rc != 0)
		return 0;
	rc = graph_lines_byte(r->in->lines, &byte, r->e);
	if (rc == 1)
		count_byte(r, byte);
	if (rc == 1 && r->since > STATEMENT_MAX)
		rc = graph_lines_bad(
			r->in->lines, r->e,
			"a statement or string of more than %d bytes: is a \" or > missing?",
			STATEMENT_MAX);
	if (rc < 0)
		r->rc = rc;
	if (rc != 1)
		return 0;
	watch_labels(r, byte);
	memcpy(to, &byte, 1);
	return 1;
}

static int has_failed(void *stream)
{
	const struct rdf *r = stream;

	return r->rc != 0;
}

static int say_clash(const struct rdf *r)
{
	return graph_lines_bad(
		r->in->lines, r->e,
		"blank nodes _:b and _:B with numbers cannot be told apart here: rename "
		"one kind");
}

/* The first complaint of serd is the cause, later ones its consequences. */
static SerdStatus note_error(void *handle, const SerdError *error)
{
	struct rdf *r = handle;
	char text[256];

	if (r->rc != 0)
		return SERD_SUCCESS;
	vsnprintf(text, sizeof text, error->fmt, *error->args);
	text[strcspn(text, "\n")] = '\0';
	for (char *c = text; *c != '\0'; c++) /* it repeats bytes of the file */
		if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
			*c = '?';
	if (strcmp(text, "invalid IRI character (escape %FFFFFFFF)") == 0) /* EOF is no byte */
		snprintf(text, sizeof text, "the file ends within an IRI: is it whole?");
	r->rc = error->status == SERD_ERR_ID_CLASH
			? say_clash(r)
			: graph_lines_bad(r->in->lines, r->e, "%s", text);
	return SERD_SUCCESS;
}

/* Every callback begins with this. */
static bool may_go_on(struct rdf *r)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	uintptr_t used = here > r->stack ? here - r->stack : r->stack - here;

	r->since = 0;
	r->in_comment = r->window[3] == '#'; /* serd looks one byte ahead */
	if (r->rc == 0 && used > STACK_MAX)
		r->rc = graph_lines_bad(r->in->lines, r->e, "too many [ or ( within each other");
	return r->rc == 0;
}

static SerdStatus status_of(const struct rdf *r)
{
	return r->rc == 0 ? SERD_SUCCESS : SERD_ERR_UNKNOWN;
}

/* ---- prefixes ---- */

static SerdStatus note_base(void *handle, const SerdNode *uri)
{
	struct rdf *r = handle;

	if (may_go_on(r) && uri->n_bytes > GRAPH_NAME_MAX)
		r->rc = graph_lines_bad(r->in->lines, r->e, "an IRI of %zu bytes, more than %d",
					uri->n_bytes, GRAPH_NAME_MAX);
	if (r->rc == 0 && serd_env_set_base_uri(r->env, uri) != SERD_SUCCESS)
		r->rc = graph_lines_bad(r->in->lines, r->e, "this base IRI cannot be used");
	return status_of(r);
}

static SerdStatus note_prefix(void *handle, const SerdNode *name, const SerdNode *uri)
{
	struct rdf *r = handle;

	if (may_go_on(r) && (uri->n_bytes > GRAPH_NAME_MAX || name->n_bytes > GRAPH_NAME_MAX))
		r->rc = graph_lines_bad(r->in->lines, r->e, "a prefix of more than %d bytes",
					GRAPH_NAME_MAX);
	if (r->rc != 0)
		return status_of(r);
	graph_vocab_add(r->prefixes, (const char *)name->buf, name->n_bytes);
	if (graph_vocab_count(r->prefixes) > PREFIXES_MAX)
		r->rc = graph_lines_bad(r->in->lines, r->e, "more than %d prefixes", PREFIXES_MAX);
	else if (serd_env_set_prefix(r->env, name, uri) != SERD_SUCCESS)
		r->rc = graph_lines_bad(r->in->lines, r->e, "this prefix cannot be used");
	return status_of(r);
}

/* ---- names of nodes ---- */

static int check_name(const struct rdf *r, const struct buf *name)
{
	if (name->len > GRAPH_NAME_MAX)
		return graph_lines_bad(r->in->lines, r->e, "a name of %zu bytes, more than %d",
				       name->len, GRAPH_NAME_MAX);
	if (memchr(name->base, '\t', name->len) != NULL)
		return graph_lines_bad(r->in->lines, r->e,
				       "a TAB in a name: names may not have any");
	return graph_lines_check(r->in->lines, (const char *)name->base, name->len, r->e);
}

static int name_curie(const struct rdf *r, const SerdNode *node, struct buf *name)
{
	SerdChunk before, after;

	if (serd_env_expand(r->env, node, &before, &after) != SERD_SUCCESS)
		return graph_lines_bad(r->in->lines, r->e, "'%.200s': this prefix was not declared",
				       (const char *)node->buf);
	buf_add(name, before.buf, before.len);
	buf_add(name, after.buf, after.len);
	return 0;
}

static int name_relative(const struct rdf *r, const SerdNode *node, struct buf *name)
{
	SerdNode whole = serd_env_expand_node(r->env, node);

	if (whole.buf != NULL)
		buf_add(name, whole.buf, whole.n_bytes);
	serd_node_free(&whole);
	return 0;
}

static int name_iri(const struct rdf *r, const SerdNode *node, struct buf *name)
{
	int rc = 0;

	buf_clear(name);
	if (node->type == SERD_CURIE)
		rc = name_curie(r, node, name);
	else if (serd_uri_string_has_scheme(node->buf))
		buf_add(name, node->buf, node->n_bytes);
	else
		rc = name_relative(r, node, name);
	buf_add(name, "", 1);
	name->len--; /* the NUL is for serd */
	if (rc == 0)
		rc = check_name(r, name);
	if (rc == 0 && !serd_uri_string_has_scheme(name->base))
		rc = graph_lines_bad(r->in->lines, r->e,
				     "<%.200s> is relative, and no @base says to what: add one",
				     (const char *)node->buf);
	return rc;
}

/* The graph's first file once more.  A pipe is not even opened: that would wait for a writer. */
static int hash_file(const struct loading *in, crypto_generichash_state *state, struct err *e)
{
	unsigned char block[4096];
	struct stat st;
	bool plain = stat(in->first, &st) == 0 && S_ISREG(st.st_mode);
	FILE *f = plain ? fopen(in->first, "rb") : NULL;
	size_t n;

	if (f == NULL)
		return graph_lines_bad(
			in->lines, e,
			"a blank node, whose name needs a hash of %s, which cannot be "
			"read twice: import a file",
			in->first);
	while ((n = fread(block, 1, sizeof block, f)) > 0)
		crypto_generichash_update(state, block, n);
	fclose(f);
	return 0;
}

/* What tells blank nodes of two graphs apart: of the key, where there is one, and of the graph's
 * first file, where there is none or the node has no label. */
static int make_mark(struct loading *in, bool labelled, struct err *e)
{
	const uint8_t *key = in->options->blank_key;
	unsigned char hash[crypto_generichash_BYTES_MIN];
	crypto_generichash_state state;
	int rc;

	if (key != NULL && labelled) {
		graph_blank_mark(key, in->mark[labelled]);
		return 0;
	}
	crypto_generichash_init(&state, key, key != NULL ? GRAPH_BLANK_KEY : 0, sizeof hash);
	rc = hash_file(in, &state, e);
	crypto_generichash_final(&state, hash, sizeof hash);
	if (rc == 0)
		sodium_bin2hex(in->mark[labelled], GRAPH_BLANK_MARK + 1, hash,
			       GRAPH_BLANK_MARK / 2);
	return rc;
}

void graph_blank_mark(const uint8_t key[GRAPH_BLANK_KEY], char mark[GRAPH_BLANK_MARK + 1])
{
	unsigned char hash[crypto_generichash_BYTES_MIN];

	crypto_generichash(hash, sizeof hash, NULL, 0, key, GRAPH_BLANK_KEY);
	sodium_bin2hex(mark, GRAPH_BLANK_MARK + 1, hash, GRAPH_BLANK_MARK / 2);
}

bool graph_is_blank(const char *name, size_t len, bool *placed)
{
	*placed = len > 2 && name[2] == '.';
	if (len < 3 + 1 + GRAPH_BLANK_MARK || memcmp(name, "_:", 2) != 0 ||
	    name[len - GRAPH_BLANK_MARK - 1] != '@')
		return false;
	for (size_t i = len - GRAPH_BLANK_MARK; i < len; i++)
		if (!(name[i] >= '0' && name[i] <= '9') && !(name[i] >= 'a' && name[i] <= 'f'))
			return false;
	return true;
}

/* A label-less node is named by its place, which tells of the triples before it. */
static int refuse_place(const struct rdf *r)
{
	return graph_lines_bad(r->in->lines, r->e,
			       "a blank node without a label, which train.dp cannot hide: its name "
			       "would tell of the triples before it; give it a label (_:name), or "
			       "leave such triples out (--drop-blank-nodes)");
}

/* b1 is serd's own label of a node without one; see watch_labels(). */
static int name_blank(const struct rdf *r, const SerdNode *node, struct buf *name)
{
	const char *label = (const char *)node->buf;
	bool number = !r->keeps_labels && (label[0] == 'b' || label[0] == 'B') && label[1] >= '0' &&
		      label[1] <= '9';
	bool labelled = !number || label[0] != 'b';
	const char *mark = r->in->mark[labelled];
	int rc;

	if (!labelled && r->in->options->by_names)
		return refuse_place(r);
	rc = mark[0] == '\0' ? make_mark(r->in, labelled, r->e) : 0;
	if (rc != 0)
		return rc;
	buf_clear(name);
	if (!labelled)
		buf_printf(name, "_:.%d.%s@%s", (int)r->in->split, label + 1, mark);
	else if (number && r->small_b && r->big_b)
		return say_clash(r);
	else
		buf_printf(name, "_:%s%s@%s", number && r->small_b ? "b" : "",
			   number && r->small_b ? label + 1 : label, mark);
	return check_name(r, name);
}

/* With control characters (C0, DEL, C1) as what stands for them. */
static void add_escaped(struct buf *name, const uint8_t *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t control = text_control((const char *)text + i, n - i);
		const char *short_form = text[i] == '"'	   ? "\\\""
					 : text[i] == '\\' ? "\\\\"
					 : text[i] == '\n' ? "\\n"
					 : text[i] == '\r' ? "\\r"
					 : text[i] == '\t' ? "\\t"
							   : NULL;

		if (short_form != NULL)
			buf_add(name, short_form, 2);
		else if (control == 1)
			buf_printf(name, "\\u%04X", text[i]);
		else if (control == 2)
			buf_printf(name, "\\u%04X", text[++i]);
		else
			buf_add(name, text + i, 1);
	}
}

/* As in N-Triples.  Empty if it is too long. */
static int name_literal(const struct rdf *r, const SerdNode *node, const SerdNode *datatype,
			const SerdNode *lang, struct buf *name)
{
	struct buf iri = { 0 };
	int rc = 0;

	buf_clear(name);
	if (node->n_bytes > GRAPH_NAME_MAX)
		return 0;
	buf_add(name, "\"", 1);
	add_escaped(name, node->buf, node->n_bytes);
	buf_add(name, "\"", 1);
	if (lang != NULL && lang->type != SERD_NOTHING)
		buf_printf(name, "@%s", (const char *)lang->buf);
	else if (datatype != NULL && datatype->type != SERD_NOTHING) {
		rc = name_iri(r, datatype, &iri);
		buf_printf(name, "^^<%.*s>", (int)iri.len, (const char *)iri.base);
	}
	buf_release(&iri);
	graph_words_literal(name);
	if (rc == 0 && name->len > GRAPH_NAME_MAX)
		buf_clear(name);
	else if (rc == 0)
		rc = check_name(r, name);
	return rc;
}

/* ---- statements ---- */

/* Subject or predicate or an object that is no literal. */
static int name_node(const struct rdf *r, const SerdNode *node, struct buf *name)
{
	if (node->type == SERD_BLANK)
		return name_blank(r, node, name);
	if (node->type == SERD_URI || node->type == SERD_CURIE)
		return name_iri(r, node, name);
	return graph_lines_bad(r->in->lines, r->e, "a literal where an IRI is wanted");
}

static int add_triple(struct rdf *r)
{
	struct loading *in = r->in;
	const struct buf *n = r->name;
	int rc = graph_loading_room(in, r->e);

	if (rc != 0)
		return rc;
	graph_loading_add_named(in,
				(const char *const[]){ (const char *)n[0].base,
						       (const char *)n[1].base,
						       (const char *)n[2].base },
				(const size_t[]){ n[0].len, n[1].len, n[2].len });
	return 0;
}

static bool is_rdfs_label(const struct buf *name)
{
	return name->len == strlen(RDFS_LABEL) && memcmp(name->base, RDFS_LABEL, name->len) == 0;
}

/* Where labels are wanted, none is a triple, in whatever language.  1: it was one. */
static int take_rdfs_label(struct rdf *r, const SerdNode *s, const SerdNode *p, const SerdNode *o,
			   const SerdNode *lang)
{
	const struct graph_load_options *how = r->in->options;
	bool has_lang = lang != NULL && lang->type != SERD_NOTHING;
	int rc = name_node(r, p, &r->name[1]);

	assert(how->words != NULL);
	if (rc != 0 || !is_rdfs_label(&r->name[1]))
		return rc;
	rc = name_node(r, s, &r->name[0]);
	if (rc != 0)
		return rc;
	graph_words_add(how->words, (const char *)r->name[0].base, r->name[0].len,
			(const char *)o->buf, o->n_bytes,
			graph_words_rank(how->labels, has_lang ? (const char *)lang->buf : NULL));
	r->in->report->literals++;
	return 1;
}

/* Named or left out, but broken names are errors also in what is left out. */
static int take(struct rdf *r, const SerdNode *s, const SerdNode *p, const SerdNode *o,
		const SerdNode *datatype, const SerdNode *lang)
{
	const struct graph_load_options *how = r->in->options;
	bool blank = s->type == SERD_BLANK || o->type == SERD_BLANK;
	bool literal = o->type == SERD_LITERAL;
	int rc = 0;

	r->in->report->lines++;
	if (p->type == SERD_BLANK)
		return graph_lines_bad(r->in->lines, r->e,
				       "a blank node where a relation is wanted");
	if (blank && how->drop_blanks) {
		r->in->report->blanks++;
		return 0;
	}
	if (literal && how->labels != NULL)
		rc = take_rdfs_label(r, s, p, o, lang);
	if (rc != 0)
		return rc > 0 ? 0 : rc;
	if (literal && how->keep_literals)
		rc = name_literal(r, o, datatype, lang, &r->name[2]);
	else if (!literal)
		rc = name_node(r, o, &r->name[2]);
	if (rc == 0)
		rc = name_node(r, s, &r->name[0]);
	if (rc == 0)
		rc = name_node(r, p, &r->name[1]);
	if (rc == 0 && literal && (!how->keep_literals || r->name[2].len == 0))
		r->in->report->literals++;
	else if (rc == 0)
		rc = add_triple(r);
	return rc;
}

/* serd reads them in N-Quads all the same, as b1, b2 ..., which are labels there. */
static int refuse_brackets(const struct rdf *r)
{
	return graph_lines_bad(
		r->in->lines, r->e,
		"N-Quads have no [ ] or ( ): give the node a label (_:name), or call "
		"the file .trig if that is what it is");
}

static SerdStatus take_statement(void *handle, SerdStatementFlags flags, const SerdNode *graph,
				 const SerdNode *s, const SerdNode *p, const SerdNode *o,
				 const SerdNode *datatype, const SerdNode *lang)
{
	struct rdf *r = handle;

	(void)graph;
	if (may_go_on(r))
		r->rc = r->keeps_labels && flags != 0 ? refuse_brackets(r)
						      : take(r, s, p, o, datatype, lang);
	return status_of(r);
}

/* Statement by statement. */
static SerdStatus read_chunks(struct rdf *r)
{
	SerdStatus st;

	st = serd_reader_start_source_stream(r->reader, give_byte, has_failed, r, NULL, 1);
	while (st == SERD_SUCCESS && r->rc == 0)
		st = serd_reader_read_chunk(r->reader);
	serd_reader_end_stream(r->reader);
	return st;
}

/* serd reads chunks as Turtle or TriG; N-Quads it knows as a whole document alone. */
static void read_all(struct rdf *r, SerdSyntax syntax)
{
	SerdStatus st;

	r->stack = (uintptr_t)__builtin_frame_address(0);
	serd_reader_set_strict(r->reader, true);
	serd_reader_set_error_sink(r->reader, note_error, r);
	st = syntax == SERD_NQUADS
		     ? serd_reader_read_source(r->reader, give_byte, has_failed, r, NULL, 1)
		     : read_chunks(r);
	if (r->rc == 0 && st > SERD_FAILURE)
		r->rc = graph_lines_bad(r->in->lines, r->e, "%s", (const char *)serd_strerror(st));
}

static int read_rdf(struct loading *in, SerdSyntax syntax, struct err *e)
{
	struct rdf r = { .in = in, .e = e, .keeps_labels = syntax == SERD_NQUADS };

	in->report->rdf = true;
	r.env = serd_env_new(NULL);
	r.prefixes = graph_vocab_new();
	r.reader = serd_reader_new(syntax, &r, NULL, note_base, note_prefix, take_statement, NULL);
	read_all(&r, syntax);
	serd_reader_free(r.reader);
	serd_env_free(r.env);
	graph_vocab_free(r.prefixes);
	for (int i = 0; i < 3; i++)
		buf_release(&r.name[i]);
	return r.rc;
}

int graph_load_rdf(struct loading *in, struct err *e)
{
	return read_rdf(in, SERD_TURTLE, e);
}

int graph_load_nquads(struct loading *in, struct err *e)
{
	return read_rdf(in, SERD_NQUADS, e);
}

int graph_load_trig(struct loading *in, struct err *e)
{
	return read_rdf(in, SERD_TRIG, e);
}

#include "graph/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"
#include "graph/graph.h"

enum { IN_BYTES = 64 * 1024, OUT_BYTES = 2 * LINES_MAX, WINDOW_LOG_MAX = 27 };
enum packing { PLAIN, GZIP, ZSTANDARD };

struct graph_lines {
	char *path;
	int fd;
	enum packing packing;
	uint8_t in[IN_BYTES];
	size_t in_at, in_end;
	bool in_over;  /* the file has no more bytes */
	bool open_end; /* inside a packed member or frame */
	uint64_t read, unpacked;
	z_stream gz;
	ZSTD_DStream *zstd;
	char out[OUT_BYTES + 1]; /* one more for the NUL */
	size_t out_at, out_end;
	size_t number;
	bool line_over; /* graph_lines_byte() gave its LF */
};

/* ---- bytes of the file ---- */

static int fill_in(struct graph_lines *l, struct err *e)
{
	while (l->in_at == l->in_end && !l->in_over) {
		ssize_t n = read(l->fd, l->in, IN_BYTES);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return file_unreadable(l->path, errno, e);
		l->in_over = n == 0;
		l->in_at = 0;
		l->in_end = (size_t)n;
		l->read += (size_t)n;
	}
	return 0;
}

/* The first bytes decide; a name that promises packing must keep its word. */
static int choose_packing(struct graph_lines *l, struct err *e)
{
	static const uint8_t gzip[] = { 0x1f, 0x8b }, zstd[] = { 0x28, 0xb5, 0x2f, 0xfd };

	if (l->in_end >= sizeof gzip && memcmp(l->in, gzip, sizeof gzip) == 0)
		l->packing = GZIP;
	else if (l->in_end >= sizeof zstd && memcmp(l->in, zstd, sizeof zstd) == 0)
		l->packing = ZSTANDARD;
	if (file_ends_in(l->path, ".gz") && l->packing != GZIP)
		return err_set(e, ERR_INPUT,
			       "%s: not gzip data: pack it with gzip, or drop .gz "
			       "from its name",
			       l->path);
	if (file_ends_in(l->path, ".zst") && l->packing != ZSTANDARD)
		return err_set(e, ERR_INPUT,
			       "%s: not zstd data: pack it with zstd, or drop .zst "
			       "from its name",
			       l->path);
	return 0;
}

static int start_packing(struct graph_lines *l)
{
	if (l->packing == GZIP && inflateInit2(&l->gz, 15 + 16) != Z_OK)
		return ERR_FAIL;
	if (l->packing == ZSTANDARD) {
		l->zstd = ZSTD_createDStream();
		if (l->zstd == NULL || ZSTD_isError(ZSTD_DCtx_setParameter(
					       l->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX)))
			return ERR_FAIL;
	}
	return 0;
}

static int open_file(struct graph_lines *l, struct err *e)
{
	struct stat st;

	if (l->fd < 0)
		l->fd = file_open_read(l->path);
	if (l->fd < 0)
		return file_unreadable(l->path, errno, e);
	if (fstat(l->fd, &st) == 0 && S_ISDIR(st.st_mode))
		return err_set(e, ERR_INPUT, "%s: a folder where a file is wanted", l->path);
	return fill_in(l, e);
}

int graph_lines_open(struct graph_lines **out, const char *path, struct err *e)
{
	return graph_lines_open_fd(out, -1, path, e);
}

int graph_lines_open_fd(struct graph_lines **out, int fd, const char *path, struct err *e)
{
	struct graph_lines *l = mem_array(1, sizeof *l);
	int rc;

	l->path = mem_strdup(path);
	l->fd = fd;
	rc = open_file(l, e);
	if (rc == 0)
		rc = choose_packing(l, e);
	if (rc == 0 && start_packing(l) != 0)
		rc = err_set(e, ERR_FAIL, "%s: could not start unpacking", path);
	if (rc != 0) {
		graph_lines_close(l);
		return rc;
	}
	*out = l;
	return 0;
}

void graph_lines_close(struct graph_lines *l)
{
	if (l == NULL)
		return;
	if (l->packing == GZIP)
		inflateEnd(&l->gz);
	ZSTD_freeDStream(l->zstd);
	if (l->fd >= 0)
		close(l->fd);
	free(l->path);
	free(l);
}

const char *graph_lines_path(const struct graph_lines *l)
{
	return l->path;
}

size_t graph_lines_number(const struct graph_lines *l)
{
	return l->number;
}

int graph_lines_bad(const struct graph_lines *l, struct err *e, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	return err_set(e, ERR_INPUT, "%s:%zu: %s", l->path, l->number > 0 ? l->number : 1, text);
}

/* ---- unpacking, into the free end of l->out ---- */

static int damaged(struct graph_lines *l, struct err *e, const char *why)
{
	l->number++;
	return graph_lines_bad(l, e, "packed data is damaged (%s): fetch or pack the file again",
			       why);
}

static int inflate_some(struct graph_lines *l, struct err *e)
{
	int rc;

	if (!l->open_end && inflateReset(&l->gz) != Z_OK)
		return damaged(l, e, "gzip member");
	l->open_end = true;
	l->gz.next_in = l->in + l->in_at;
	l->gz.avail_in = (uInt)(l->in_end - l->in_at);
	l->gz.next_out = (uint8_t *)l->out + l->out_end;
	l->gz.avail_out = (uInt)(OUT_BYTES - l->out_end);
	rc = inflate(&l->gz, Z_NO_FLUSH);
	l->in_at = l->in_end - l->gz.avail_in;
	l->out_end = OUT_BYTES - l->gz.avail_out;
	if (rc == Z_STREAM_END)
		l->open_end = false;
	else if (rc != Z_OK && rc != Z_BUF_ERROR)
		return damaged(l, e, l->gz.msg != NULL ? l->gz.msg : "gzip");
	return 0;
}

static int unzstd_some(struct graph_lines *l, struct err *e)
{
	ZSTD_inBuffer in = { l->in, l->in_end, l->in_at };
	ZSTD_outBuffer out = { l->out, OUT_BYTES, l->out_end };
	size_t rc = ZSTD_decompressStream(l->zstd, &out, &in);

	l->in_at = in.pos;
	l->out_end = out.pos;
	if (ZSTD_isError(rc))
		return damaged(l, e, ZSTD_getErrorName(rc));
	l->open_end = rc != 0;
	return 0;
}

static int copy_some(struct graph_lines *l)
{
	size_t n = l->in_end - l->in_at;

	if (n > OUT_BYTES - l->out_end)
		n = OUT_BYTES - l->out_end;
	memcpy(l->out + l->out_end, l->in + l->in_at, n);
	l->in_at += n;
	l->out_end += n;
	return 0;
}

static int unpack_some(struct graph_lines *l, struct err *e)
{
	size_t had = l->out_end;
	int rc = l->packing == GZIP	   ? inflate_some(l, e)
		 : l->packing == ZSTANDARD ? unzstd_some(l, e)
					   : copy_some(l);

	if (rc != 0)
		return rc;
	l->unpacked += l->out_end - had;
	if (l->packing != PLAIN && l->unpacked > LINES_FREE &&
	    l->unpacked / LINES_RATIO > l->read) {
		l->number++;
		return graph_lines_bad(
			l, e,
			"unpacks to more than %d times its size, which no graph does: "
			"unpack it yourself if you trust it",
			LINES_RATIO);
	}
	return 0;
}

/* Add bytes to l->out.  *over: there will be no more. */
static int fill_out(struct graph_lines *l, bool *over, struct err *e)
{
	size_t had = l->out_end;

	while (l->out_end == had) {
		bool flush = l->packing != PLAIN && l->open_end; /* held back by the unpacker */
		int rc = fill_in(l, e);

		if (rc != 0)
			return rc;
		if (l->in_at == l->in_end && !flush) {
			*over = true;
			return 0;
		}
		rc = unpack_some(l, e);
		if (rc != 0)
			return rc;
		if (l->in_over && l->in_at == l->in_end && l->out_end == had && l->open_end)
			return damaged(l, e, "it ends too early");
	}
	return 0;
}

/* ---- lines ---- */

int graph_lines_check(const struct graph_lines *l, const char *text, size_t len, struct err *e)
{
	for (size_t i = 0; i < len;) {
		size_t step = text_step(text + i, len - i),
		       control = text_control(text + i, len - i);

		if (step == 0)
			return graph_lines_bad(
				l, e, "byte %zu is not UTF-8: convert the file with iconv", i + 1);
		if (control == 1 && text[i] != '\t')
			return graph_lines_bad(
				l, e,
				"control character 0x%02x at byte %zu: names may not "
				"have any",
				(uint8_t)text[i], i + 1);
		if (control == 2) /* a terminal may obey it */
			return graph_lines_bad(
				l, e,
				"control character U+%04X at byte %zu: names may not "
				"have any",
				(uint8_t)text[i + 1], i + 1);
		i += step;
	}
	return 0;
}

/* Formats that are often given in place of text, and what to do then: without these the error would
 * be about one of the bytes. */
static const struct {
	const char *begins;
	size_t n;
	const char *says;
} foreign[] = {
	{ "\xff\xfe", 2, "UTF-16: convert the file with iconv -f UTF-16 -t UTF-8" },
	{ "\xfe\xff", 2, "UTF-16: convert the file with iconv -f UTF-16 -t UTF-8" },
	{ "\xfd\x37zXZ", 5, "packed with xz: unpack it first" },
	{ "BZh91AY&SY", 10, "packed with bzip2: unpack it first" },
	{ "PK\x03\x04", 4, "a zip archive: unpack it first" },
	{ "7z\xbc\xaf", 4, "a 7z archive: unpack it first" },
	{ "<?xml version", 13, "XML, and " GRAPH_RDF_XML },
	{ "<!DOCTYPE ", 10, "XML, and " GRAPH_RDF_XML },
	{ "<!--", 4, "XML, and " GRAPH_RDF_XML },
};
static const char byte_order_mark[] = "\xef\xbb\xbf";

static bool begins_with(const char *line, size_t len, const char *with, size_t n)
{
	return len >= n && memcmp(line, with, n) == 0;
}

/* What a file is that begins like this; NULL: text, for all that is known. */
static const char *foreign_format(const char *line, size_t len)
{
	static const char root[] = "<rdf:RDF"; /* with attributes, unlike an IRI */
	size_t n = sizeof root - 1;

	for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
		if (begins_with(line, len, foreign[i].begins, foreign[i].n))
			return foreign[i].says;
	if (begins_with(line, len, root, n) && (len == n || strchr(" \r\n", line[n]) != NULL))
		return "XML, and " GRAPH_RDF_XML;
	return NULL;
}

static int refuse_strangers(const struct graph_lines *l, const char *line, size_t len,
			    struct err *e)
{
	const char *says = foreign_format(line, len);

	return says != NULL ? graph_lines_bad(l, e, "this is %s", says) : 0;
}

bool graph_lines_may_begin(const char *line, size_t len)
{
	return foreign_format(line, len) == NULL && !begins_with(line, len, byte_order_mark, 3);
}

static int check_line(const struct graph_lines *l, const char *line, size_t len, struct err *e)
{
	if (l->number == 1 && refuse_strangers(l, line, len, e) != 0)
		return ERR_INPUT;
	if (begins_with(line, len, byte_order_mark,
			3)) /* files one behind the other have several */
		return graph_lines_bad(l, e,
				       "begins with a byte-order mark: remove it, for example with "
				       "sed -i '%ss/^\\xef\\xbb\\xbf//'",
				       l->number == 1 ? "1" : "");
	if (len > 0 && line[len - 1] == '\r')
		return graph_lines_bad(l, e,
				       "ends in CR LF: convert the file, for example with "
				       "sed -i 's/\\r$//'");
	return graph_lines_check(l, line, len, e);
}

/* The end of the line that begins at out_at, or NULL if it is not in l->out yet. */
static char *line_end(struct graph_lines *l, size_t from)
{
	return memchr(l->out + from, '\n', l->out_end - from);
}

static void make_room(struct graph_lines *l)
{
	memmove(l->out, l->out + l->out_at, l->out_end - l->out_at);
	l->out_end -= l->out_at;
	l->out_at = 0;
}

int graph_lines_next(struct graph_lines *l, char **line, size_t *len, struct err *e)
{
	size_t seen = l->out_at;
	bool over = false;
	char *end;

	while ((end = line_end(l, seen)) == NULL && !over) {
		int rc;

		if (l->out_end - l->out_at > LINES_MAX)
			break;
		seen = l->out_end - l->out_at;
		make_room(l);
		rc = fill_out(l, &over, e);
		if (rc != 0)
			return rc;
	}
	if (end == NULL && l->out_at == l->out_end)
		return 0;
	l->number++;
	*line = l->out + l->out_at;
	*len = (size_t)((end != NULL ? end : l->out + l->out_end) - *line);
	if (*len > LINES_MAX)
		return graph_lines_bad(l, e, "longer than %d bytes: is this a list of triples?",
				       LINES_MAX);
	l->out_at += *len + (end != NULL);
	(*line)[*len] = '\0';
	return check_line(l, *line, *len, e) == 0 ? 1 : ERR_INPUT;
}

void graph_lines_peek(struct graph_lines *l, const char **text, size_t *len)
{
	bool over = false;

	while (!over && l->out_end < LINES_MAX && fill_out(l, &over, NULL) == 0)
		;
	l->number = 0; /* a failed fill_out() named the next line */
	*text = l->out;
	*len = l->out_end;
}

int graph_lines_byte(struct graph_lines *l, unsigned char *byte, struct err *e)
{
	if (l->out_at == l->out_end) {
		bool over = false;
		int rc;

		make_room(l);
		rc = fill_out(l, &over, e);
		if (rc != 0 || over)
			return rc;
	}
	l->number += l->number == 0 || l->line_over;
	if (l->number == 1 && l->out_at == 0 && refuse_strangers(l, l->out, l->out_end, e) != 0)
		return ERR_INPUT;
	*byte = (unsigned char)l->out[l->out_at++];
	l->line_over = *byte == '\n';
	if (*byte == '\0')
		return graph_lines_bad(l, e, "control character 0x00: this is no text");
	return 1;
}

int graph_lines_split(const struct graph_lines *l, char *line, size_t len, char separator,
		      struct lines_field *out, const char *const *what, size_t want, struct err *e)
{
	size_t got = 1;

	if (len == 0)
		return graph_lines_bad(l, e, "empty line: remove it");
	for (size_t i = 0; i < len; i++)
		got += line[i] == separator;
	if (got != want)
		return graph_lines_bad(
			l, e, "%zu column%s where %zu are wanted, with one %s between two%s", got,
			got == 1 ? "" : "s", want, separator == '\t' ? "TAB" : "space",
			separator == '\t' && got == 1 && strchr(line, ',') != NULL
				? ", not a comma: write CSV as TSV first"
				: "");
	for (size_t i = 0; i < want; i++) {
		char *end = strchr(line, separator);

		out[i].text = line;
		out[i].len = end != NULL ? (size_t)(end - line) : strlen(line);
		if (out[i].len == 0)
			return graph_lines_bad(l, e, "column %zu (%s) is empty", i + 1, what[i]);
		if (out[i].len > GRAPH_NAME_MAX)
			return graph_lines_bad(l, e, "column %zu (%s) has %zu bytes, more than %d",
					       i + 1, what[i], out[i].len, GRAPH_NAME_MAX);
		if (begins_with(line, out[i].len, byte_order_mark, 3))
			return graph_lines_bad(
				l, e,
				"column %zu (%s) begins with a byte-order mark, which looks "
				"like nothing: remove it, for example with sed -i "
				"'s/\\xef\\xbb\\xbf//g'",
				i + 1, what[i]);
		line[out[i].len] = '\0';
		line += out[i].len + 1;
	}
	return 0;
}

int graph_lines_fields(const struct graph_lines *l, char *line, size_t len, struct lines_field *out,
		       const char *const *what, size_t want, struct err *e)
{
	return graph_lines_split(l, line, len, '\t', out, what, want, e);
}

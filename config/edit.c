/* config/edit.c - one value of agent.yaml changed, every other byte as the owner wrote it. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/config.h"
#include "config/table_internal.h"
#include "config/yaml_file.h"

static bool has_bytes_at(const struct buf *text, size_t at, const char *bytes)
{
	return text->len - at >= strlen(bytes) &&
	       memcmp(text->base + at, bytes, strlen(bytes)) == 0;
}

/* libyaml ends lines at these as well; here they would be in the middle of one. */
static bool is_odd_line_end(const struct buf *text, size_t at)
{
	return (text->base[at] == '\r' && !has_bytes_at(text, at, "\r\n")) ||
	       has_bytes_at(text, at, "\xc2\x85") || has_bytes_at(text, at, "\xe2\x80\xa8") ||
	       has_bytes_at(text, at, "\xe2\x80\xa9");
}

/* Is it text of which bytes can be changed where libyaml says that something stands? */
static int check_lines(const struct buf *text, const char *where, struct err *e)
{
	unsigned line = 1;

	if (text->len > 0 &&
	    (has_bytes_at(text, 0, "\xff\xfe") || has_bytes_at(text, 0, "\xfe\xff")))
		return err_set(e, ERR_USAGE, "%s:1: it is UTF-16: write it as UTF-8", where);
	for (size_t at = 0; at < text->len; at++) {
		if (is_odd_line_end(text, at))
			return err_set(e, ERR_USAGE,
				       "%s:%u: a line ends by another character than a newline: "
				       "write one there, or change the file by hand",
				       where, line);
		line += text->base[at] == '\n';
	}
	return 0;
}

/* libyaml counts characters, and no mark of UTF-8 before them; we count bytes. */
static size_t offset_of(const struct buf *text, const yaml_mark_t *m)
{
	size_t at = m->line == 0 && has_bytes_at(text, 0, "\xef\xbb\xbf") ? 3 : 0;

	for (size_t line = 0; line < m->line && at < text->len; at++)
		line += text->base[at] == '\n';
	for (size_t column = 0; column < m->column && at < text->len; column++)
		do
			at++;
		while (at < text->len && (text->base[at] & 0xc0) == 0x80);
	return at;
}

static void splice(struct buf *text, size_t at, size_t gone, const char *in)
{
	struct buf out = { 0 };

	buf_add(&out, text->base, at);
	buf_add(&out, in, strlen(in));
	buf_add(&out, text->base + at + gone, text->len - at - gone);
	buf_release(text);
	*text = out;
}

static void splice_line(struct buf *text, size_t at, size_t indent, const char *name,
			const char *value)
{
	char *line = mem_printf("%*s%s: %s\n", (int)indent, "", name, value);

	splice(text, at, 0, line);
	free(line);
}

/* Of a key by its name, or by its old one (NULL: it has none). */
static const yaml_node_pair_t *find_pair(struct yaml_file *f, const yaml_node_t *map,
					 const char *name, const char *old)
{
	const yaml_node_pair_t *p = map->data.mapping.pairs.start;

	for (; p < map->data.mapping.pairs.top; p++) {
		const char *key = yaml_file_text(yaml_file_node(f, p->key));

		if (strcmp(key, name) == 0 || (old != NULL && strcmp(key, old) == 0))
			return p;
	}
	return NULL;
}

static void end_line(struct buf *text)
{
	if (text->len > 0 && text->base[text->len - 1] != '\n')
		buf_add(text, "\n", 1);
}

static void append_section(struct buf *text, const char *section, const char *name,
			   const char *value)
{
	end_line(text);
	buf_printf(text, "\n%s:\n  %s: %s\n", section, name, value);
}

/* `train:` with nothing below it. */
static void fill_section(struct buf *text, const yaml_node_t *key, const char *name,
			 const char *value)
{
	size_t at = offset_of(text, &key->end_mark);

	while (at < text->len && text->base[at] != '\n')
		at++;
	if (at == text->len)
		end_line(text);
	splice_line(text, at + 1, key->start_mark.column + 2, name, value);
}

static void add_to_map(struct buf *text, struct yaml_file *f, const yaml_node_t *map,
		       const char *name, const char *value)
{
	bool empty = map->data.mapping.pairs.start == map->data.mapping.pairs.top;
	const yaml_node_t *first;
	char *in;

	if (map->data.mapping.style == YAML_FLOW_MAPPING_STYLE || empty) {
		in = mem_printf("%s: %s%s", name, value, empty ? "" : ", ");
		splice(text, offset_of(text, &map->start_mark) + 1, 0, in);
		free(in);
		return;
	}
	first = yaml_file_node(f, map->data.mapping.pairs.start->key);
	splice_line(text, offset_of(text, &first->start_mark) - first->start_mark.column,
		    first->start_mark.column, name, value);
}

static int set_in_map(struct buf *text, struct yaml_file *f, const yaml_node_t *map,
		      const char *section, const char *name, const char *value)
{
	const yaml_node_pair_t *p = find_pair(f, map, name, config_old_name(section, name));
	const yaml_node_t *old;

	if (p == NULL)
		return add_to_map(text, f, map, name, value), 0;
	old = yaml_file_node(f, p->value);
	splice(text, offset_of(text, &old->start_mark),
	       offset_of(text, &old->end_mark) - offset_of(text, &old->start_mark), value);
	return 0;
}

/* The map of the section; NULL: there was none, and the key has been written with it. */
static const yaml_node_t *map_of_section(struct buf *text, struct yaml_file *f,
					 const yaml_node_t *outer, const char *section,
					 const char *name, const char *value)
{
	const yaml_node_pair_t *p = find_pair(f, outer, section, NULL);
	const yaml_node_t *map;
	char *flow;

	if (p == NULL && outer == yaml_file_root(f))
		return append_section(text, section, name, value), NULL;
	if (p == NULL) {
		flow = mem_printf("{%s: %s}", name, value);
		add_to_map(text, f, outer, section, flow);
		free(flow);
		return NULL;
	}
	map = yaml_file_node(f, p->value);
	if (map->type == YAML_MAPPING_NODE)
		return map;
	fill_section(text, yaml_file_node(f, p->key), name, value);
	return NULL;
}

/* section: "train.dp". */
static int edit_inner(struct buf *text, struct yaml_file *f, const char *section, const char *name,
		      const char *value)
{
	const char *inner = strchr(section, '.') + 1;
	char *outer = mem_printf("%.*s", (int)(inner - section - 1), section);
	char *flow = mem_printf("{%s: %s}", name, value);
	const yaml_node_t *map = map_of_section(text, f, yaml_file_root(f), outer, inner, flow);

	free(outer);
	free(flow);
	if (map != NULL)
		map = map_of_section(text, f, map, inner, name, value);
	return map != NULL ? set_in_map(text, f, map, section, name, value) : 0;
}

static int edit(struct buf *text, struct yaml_file *f, const char *section, const char *name,
		const char *value)
{
	const yaml_node_t *root = yaml_file_root(f), *map;

	if (root == NULL && section == NULL)
		return end_line(text), buf_printf(text, "%s: %s\n", name, value), 0;
	if (root == NULL && strchr(section, '.') == NULL)
		return append_section(text, section, name, value), 0;
	if (root == NULL)
		return buf_printf(text, "%.*s:\n  %s:\n    %s: %s\n", (int)strcspn(section, "."),
				  section, strchr(section, '.') + 1, name, value),
		       0;
	if (root->type != YAML_MAPPING_NODE || root->data.mapping.style == YAML_FLOW_MAPPING_STYLE)
		return yaml_file_fail(f, root, "write the sections on lines of their own");
	if (section == NULL)
		return set_in_map(text, f, root, NULL, name, value);
	if (strchr(section, '.') != NULL)
		return edit_inner(text, f, section, name, value);
	map = map_of_section(text, f, root, section, name, value);
	return map != NULL ? set_in_map(text, f, map, section, name, value) : 0;
}

/* ---- a key taken out ---- */

static bool is_room(uint8_t c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Key and value of a map on one line, and the comma that is then too much. */
static void cut_flow(struct buf *text, size_t from, size_t to)
{
	size_t next = to;

	while (next < text->len && is_room(text->base[next]))
		next++;
	if (next < text->len && text->base[next] == ',') {
		for (to = next + 1; to < text->len && is_room(text->base[to]);)
			to++;
	} else {
		while (from > 0 && is_room(text->base[from - 1]))
			from--;
		from -= from > 0 && text->base[from - 1] == ',';
	}
	splice(text, from, to - from, "");
}

/* Its lines, with a comment behind the value. */
static void cut_lines(struct buf *text, size_t from, size_t to)
{
	while (from > 0 && text->base[from - 1] != '\n')
		from--;
	while (to < text->len && text->base[to - 1] != '\n')
		to++;
	splice(text, from, to - from, "");
}

/* The map that a section is; NULL: the file has none. */
static const yaml_node_t *find_map(struct yaml_file *f, const char *section)
{
	const yaml_node_t *map = yaml_file_root(f);

	while (map != NULL && map->type == YAML_MAPPING_NODE && section != NULL) {
		char *word = mem_printf("%.*s", (int)strcspn(section, "."), section);
		const yaml_node_pair_t *p = find_pair(f, map, word, NULL);

		map = p != NULL ? yaml_file_node(f, p->value) : NULL;
		section = strchr(section, '.') != NULL ? strchr(section, '.') + 1 : NULL;
		free(word);
	}
	return map != NULL && map->type == YAML_MAPPING_NODE ? map : NULL;
}

/* Of nothing behind the colon libyaml says that it stands where the next key does. */
static size_t end_of_value(const struct buf *text, const yaml_node_t *key, const yaml_node_t *value)
{
	size_t at = offset_of(text, &key->end_mark);

	if (value->start_mark.index != value->end_mark.index)
		return offset_of(text, &value->end_mark);
	while (at < text->len && text->base[at] != ':')
		at++;
	return at < text->len ? at + 1 : at;
}

static int unset(struct buf *text, struct yaml_file *f, const char *section, const char *name)
{
	const yaml_node_t *map = find_map(f, section), *key, *value;
	const yaml_node_pair_t *p =
		map != NULL ? find_pair(f, map, name, config_old_name(section, name)) : NULL;
	size_t from, to;

	if (p == NULL)
		return ERR_NOTFOUND;
	key = yaml_file_node(f, p->key);
	value = yaml_file_node(f, p->value);
	if (value->type != YAML_SCALAR_NODE)
		return yaml_file_fail(f, key, "%s is a section: say which of its keys", name);
	from = offset_of(text, &key->start_mark);
	to = end_of_value(text, key, value);
	if (map->data.mapping.style == YAML_FLOW_MAPPING_STYLE)
		cut_flow(text, from, to);
	else
		cut_lines(text, from, to);
	return 0;
}

int config_edit_unset(struct buf *text, const char *section, const char *name, const char *where,
		      struct err *e)
{
	struct config check;
	struct yaml_file f;
	int rc = yaml_file_open(&f, text->base, text->len, where, e);

	if (rc != 0)
		return rc;
	rc = check_lines(text, where, e);
	if (rc == 0)
		rc = unset(text, &f, section, name);
	yaml_file_close(&f);
	if (rc == 0)
		rc = config_parse(&check, (const char *)text->base, text->len, where, e);
	if (rc == 0)
		config_release(&check);
	return rc;
}

/* ---- keys that a preset chooses ---- */

/* Where line n (from 1) begins. */
static size_t offset_of_line(const struct buf *text, uint32_t n)
{
	size_t at = 0;

	while (n > 1 && at < text->len)
		n -= text->base[at++] == '\n';
	return at;
}

/* Of a section on lines of its own; a flow map keeps its key. */
static bool comment_key_out(struct buf *text, uint32_t line, const char *name)
{
	size_t at = offset_of_line(text, line), n = strlen(name);

	while (at < text->len && text->base[at] == ' ')
		at++;
	if (text->len - at <= n || memcmp(text->base + at, name, n) != 0 ||
	    text->base[at + n] != ':')
		return false;
	splice(text, at, 0, "# ");
	return true;
}

size_t config_edit_free_preset(struct buf *text, const char *where)
{
	struct config c;
	struct buf is = { 0 };
	size_t n = 0;

	if (check_lines(text, where, NULL) != 0 ||
	    config_parse(&c, (const char *)text->base, text->len, where, NULL) != 0)
		return 0;
	for (size_t i = 0; i < CONFIG_KEYS; i++) {
		const struct config_key *k = &config_keys[i];

		if (c.source->line[i] == 0 || !config_preset_takes(k))
			continue;
		buf_clear(&is);
		config_key_print(&is, &c, k);
		if (strcmp((const char *)is.base, k->def) == 0)
			n += comment_key_out(text, c.source->line[i], k->name);
	}
	buf_release(&is);
	config_release(&c);
	return n;
}

int config_edit(struct buf *text, const char *section, const char *name, const char *value,
		const char *where, struct err *e)
{
	struct config check;
	struct yaml_file f;
	int rc = config_parse(&check, (const char *)text->base, text->len, where, e);

	if (rc != 0) /* what cannot be read is not written to */
		return rc;
	config_release(&check);
	if (yaml_file_open(&f, text->base, text->len, where, e) != 0)
		abort(); /* it was read above */
	rc = check_lines(text, where, e);
	if (rc == 0)
		rc = edit(text, &f, section, name, value);
	yaml_file_close(&f);
	if (rc != 0)
		return rc;
	rc = config_parse(&check, (const char *)text->base, text->len, where, e);
	if (rc == 0)
		config_release(&check);
	return rc;
}

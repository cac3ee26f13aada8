#include <assert.h>
#include <string.h>

#include "config/config.h"
#include "config/table_internal.h"

/* How far a section's keys stand in. */
static int indent_of(const char *section)
{
	return section == NULL ? 0 : strchr(section, '.') == NULL ? 2 : 4;
}

static void print_section_name(struct buf *out, const char *section)
{
	const char *inner = strchr(section, '.');

	if (inner != NULL)
		buf_printf(out, "  %s:\n", inner + 1);
	else
		buf_printf(out, "%s:\n", section);
}

/* Below the method: which constants each has, and what they are when nothing is said. */
static void print_constants(struct buf *out)
{
	buf_printf(out, "%-36s #   and below here its constants, as in mu: 0.1\n", "");
	for (size_t m = 0; fed_methods[m] != NULL; m++) {
		const struct fed_constant *k = fed_methods[m]->constant;

		if (k[0].key == NULL)
			continue;
		buf_printf(out, "%-36s #   %s:", "", fed_methods[m]->name);
		for (size_t i = 0; i < FED_VALUES_MAX && k[i].key != NULL; i++)
			buf_printf(out, "%s %s %g", i > 0 ? "," : "", k[i].key, k[i].byword);
		buf_printf(out, "\n");
	}
}

/* out_of_force: as a comment, so that the file does not say it. */
static void print_line(struct buf *out, const struct config_key *k, const char *value,
		       bool out_of_force)
{
	struct buf line = { 0 };

	buf_printf(&line, "%*s%s%s: ", indent_of(k->section), "", out_of_force ? "# " : "",
		   k->name);
	if (config_key_quoted(k))
		config_print_quoted(&line, value);
	else
		buf_printf(&line, "%s", value);
	buf_printf(out, "%-36s # %s\n", (const char *)line.base, k->help);
	buf_release(&line);
	if (config_key_quoted(k) || k->kind == KEY_SEED)
		return;
	buf_printf(out, "%-36s #   (", "");
	config_key_allowed(out, k);
	buf_printf(out, ")\n");
	if (k->offset == offsetof(struct config, rounds.method))
		print_constants(out);
}

void config_print_default(struct buf *out, const char *name, const char *listen, const char *preset)
{
	const char *section = NULL;

	buf_printf(out, "# What this agent is and does.  Every key may be left out; these are the "
			"defaults.\n");
	for (size_t i = 0; i < CONFIG_KEYS; i++) {
		const struct config_key *k = &config_keys[i];
		const char *value = k->def;

		if (k->offset == offsetof(struct config, name) && name != NULL)
			value = name;
		if (k->offset == offsetof(struct config, listen) && listen != NULL)
			value = listen;
		if (k->offset == offsetof(struct config, model.preset) && preset != NULL)
			value = preset;
		if (!config_same_section(k->section, section))
			buf_printf(out, indent_of(k->section) == 4 ? "" : "\n"),
				print_section_name(out, k->section);
		section = k->section;
		print_line(out, k, value, preset != NULL && config_preset_takes(k));
	}
}

/* ---- the reference in docs/ ---- */

/* The words of text as one item of a list of Markdown, in lines of at most 118 columns. */
static void print_item(struct buf *out, const char *text)
{
	size_t column = 1;

	buf_printf(out, "*");
	while (*text != '\0') {
		size_t n = strcspn(text, " ");

		if (column + 1 + n > 118) {
			buf_printf(out, "\n ");
			column = 1;
		}
		buf_printf(out, " %.*s", (int)n, text);
		column += 1 + n;
		text += n + strspn(text + n, " ");
	}
	buf_printf(out, "\n");
}

static void print_reference_key(struct buf *out, const struct config_key *k, const char *def)
{
	struct buf item = { 0 };

	buf_printf(&item, "`%s: %s`: %s. Allowed: ", k->name, def[0] != '\0' ? def : "\"\"",
		   k->help);
	config_key_allowed(&item, k);
	buf_printf(&item, ".");
	print_item(out, (const char *)item.base);
	buf_release(&item);
}

static void print_reference_method(struct buf *out, const struct fed_method *m)
{
	struct config c;
	struct config_key k;
	int rc;

	config_init(&c);
	rc = config_set(&c, "rounds", "method", m->name, NULL);
	assert(rc == 0);
	(void)rc;
	for (size_t i = 0; config_key_constant(&c, i, &k); i++) {
		struct buf def = { 0 };

		if (i == 0)
			buf_printf(out, "\n## rounds, with `method: %s`\n\n", m->name);
		config_key_print(&def, &c, &k);
		print_reference_key(out, &k, (const char *)def.base);
		buf_release(&def);
	}
	config_release(&c);
}

void config_print_reference(struct buf *out)
{
	const char *section = NULL;

	buf_printf(out, "# agent.yaml: every key\n\n"
			"`fkge init --reference` writes this file from the table of keys in "
			"`config/table.c`. A key stands\nhere with its default. Each may be left "
			"out.\n\n## Top level\n\n");
	for (size_t i = 0; i < CONFIG_KEYS; i++) {
		if (!config_same_section(config_keys[i].section, section))
			buf_printf(out, "\n## %s\n\n", config_keys[i].section);
		section = config_keys[i].section;
		print_reference_key(out, &config_keys[i], config_keys[i].def);
	}
	for (size_t i = 0; fed_methods[i] != NULL; i++)
		print_reference_method(out, fed_methods[i]);
}

void config_print_section(const struct config *c, const char *section, struct buf *out)
{
	const char *last = NULL;
	struct config_key k;

	for (size_t i = 0; i < CONFIG_KEYS; i++) {
		const char *s = config_keys[i].section;

		if (!config_same_section(s, section) && config_section_within(s, section) == NULL)
			continue;
		if (!config_same_section(s, last))
			print_section_name(out, s);
		last = s;
		buf_printf(out, "%*s%s: ", indent_of(s), "", config_keys[i].name);
		config_key_print(out, c, &config_keys[i]);
		buf_printf(out, "\n");
	}
	for (size_t i = 0; strcmp(section, "rounds") == 0 && config_key_constant(c, i, &k); i++) {
		buf_printf(out, "  %s: ", k.name);
		config_key_print(out, c, &k);
		buf_printf(out, "\n");
	}
}

void config_print(const struct config *c, struct buf *out)
{
	const char *last = NULL;

	for (size_t i = 0; i < CONFIG_KEYS; i++) {
		const char *s = config_keys[i].section;

		if (s == NULL) {
			buf_printf(out, "%s: ", config_keys[i].name);
			config_key_print(out, c, &config_keys[i]);
			buf_printf(out, "\n");
		} else if (strchr(s, '.') == NULL && !config_same_section(s, last)) {
			config_print_section(c, s, out);
			last = s;
		}
	}
}

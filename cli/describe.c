#include "cli/describe.h"

#include <stdio.h>
#include <string.h>

bool describe_asked(int argc, char **argv)
{
	return argc == 2 && strcmp(argv[1], "--describe") == 0;
}

/* Keys above ASCII stand for long options alone. */
static json_t *json_of_option(const struct argp_option *o)
{
	char letter[2] = { o->key > ' ' && o->key < 127 ? (char)o->key : '\0', '\0' };

	return json_pack("{s:s?, s:s, s:s?, s:b, s:s?}", "name", o->name, "letter", letter,
			 "argument", o->arg, "optional", (o->flags & OPTION_ARG_OPTIONAL) != 0,
			 "about", o->doc);
}

static bool ends_options(const struct argp_option *o)
{
	return o->name == NULL && o->key == 0 && o->doc == NULL;
}

static json_t *json_of_options(const struct argp_option *o)
{
	json_t *all = json_array();

	for (; o != NULL && !ends_options(o); o++)
		if ((o->flags & OPTION_HIDDEN) == 0)
			json_array_append_new(all, json_of_option(o));
	return all;
}

static json_t *json_of_commands(const struct command *table)
{
	json_t *all = json_array();

	for (const struct command *c = table; c->name != NULL; c++) {
		json_t *one = json_pack("{s:s, s:s}", "name", c->name, "about", c->about);

		if (c->sub != NULL)
			json_object_set_new(one, "commands", json_of_commands(c->sub));
		json_array_append_new(all, one);
	}
	return all;
}

static void print_description(json_t *j)
{
	json_dumpf(j, stdout, JSON_INDENT(1));
	putchar('\n');
	json_decref(j);
}

void describe_syntax(const struct cli_syntax *s, const char *path)
{
	print_description(json_pack("{s:s, s:s?, s:s?, s:o}", "path", path, "arguments", s->args,
				    "text", s->doc, "options", json_of_options(s->options)));
}

void describe_commands(const struct command *table, const struct argp_option *global,
		       const char *exits)
{
	print_description(json_pack("{s:s, s:s, s:o, s:o}", "version", FKGE_VERSION, "exits", exits,
				    "options", json_of_options(global), "commands",
				    json_of_commands(table)));
}

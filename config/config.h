/* config/config.h - agent.yaml: settings (config/settings.h) read from a file and written to one.
 *
 * An unknown key, a key given twice or a value that is not allowed is ERR_USAGE, naming file,
 * line, key and what is allowed.  A key's old name is read with a warning. */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include "config/settings.h"

/* Defaults, then the file's keys over them.  On an error *c is released.
 * ERR_NOFILE when there is none. */
MUST_CHECK int config_load(struct config *c, const char *path, struct err *e);
/* The same from memory; `where` stands for the file's name in errors. */
MUST_CHECK int config_parse(struct config *c, const char *text, size_t len, const char *where,
			    struct err *e);

/* A commented agent.yaml with every key at its default, but for the name and
 * the address to listen on (NULL: the default).  preset: of model.preset; what it may choose is
 * there as a comment. */
void config_print_default(struct buf *out, const char *name, const char *listen,
			  const char *preset);

/* All keys as lists of Markdown, with defaults and limits: docs/reference/agent-yaml.md. */
void config_print_reference(struct buf *out);

/* Appends "section:" and its keys with their values, as they would stand in the file. */
void config_print_section(const struct config *c, const char *section, struct buf *out);

/* Change one value in the text of an agent.yaml, or add it where it is missing; comments and
 * all other bytes stay.  The text must be good before, and is afterwards, or ERR_USAGE
 * (config/edit.c). */
/* section: NULL for the top level, "train.dp" for a section within another. */
MUST_CHECK int config_edit(struct buf *text, const char *section, const char *name,
			   const char *value, const char *where, struct err *e);

/* Take a key out: its line, or what stands of it in {}; comments on other lines and all other bytes
 * stay.  The text is good afterwards, or ERR_USAGE; ERR_NOTFOUND, without words: it has no such
 * key. It need not be good before: so a key that is not allowed can be taken out. */
MUST_CHECK int config_edit_unset(struct buf *text, const char *section, const char *name,
				 const char *where, struct err *e);

/* Lines of keys that model.preset may choose, and that are at their defaults, become comments: so
 * the file does not say them any more.  The text must be good.  Returns how many. */
size_t config_edit_free_preset(struct buf *text, const char *where);

/* ---- two settings beside each other ---- */

/* A key as "section.name" with both values as they would stand in the file. */
struct config_difference {
	const char *key, *was, *is;
	uint32_t line; /* of the file of `is`; 0: not in it */
	bool live;     /* config_take_live() takes it */
};
typedef void config_differ_fn(void *ctx, const struct config_difference *d);

/* Calls fn for each key that differs, in the order of the file; good during the call.  was NULL:
 * for each key. */
void config_differ(const struct config *was, const struct config *is, config_differ_fn *fn,
		   void *ctx);
/* Takes the values of the keys that a running agent need not start anew for: limits, times,
 * budgets, the log.  What comes of it may go against a rule: config_check(). */
void config_take_live(struct config *c, const struct config *fresh);

/* All of it, as a file. */
void config_print(const struct config *c, struct buf *out);

#endif

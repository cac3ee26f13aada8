/* config/table_internal.h - the table of agent.yaml's keys, for the files of this folder. */
#ifndef CONFIG_TABLE_INTERNAL_H
#define CONFIG_TABLE_INTERNAL_H

#include "config/settings.h"

enum { CONFIG_KEYS = 145, CONFIG_TEXT_MAX = 1024 };

enum config_key_kind {
	KEY_TEXT,
	KEY_AGENT_NAME,
	KEY_ADDRESS,
	KEY_WORD,
	KEY_NAME,
	KEY_COUNT,
	KEY_NUMBER,
	KEY_NUMBER32,
	KEY_SWITCH,
	KEY_SEED,
};

struct config_key {
	const char *section; /* NULL: top level */
	const char *name;
	enum config_key_kind kind;
	size_t offset;
	const char *def;	  /* default, as it would stand in the file */
	double min, max;	  /* KEY_COUNT, KEY_NUMBER, KEY_NUMBER32 */
	const char *const *words; /* KEY_WORD: its number, KEY_NAME: itself; NULL at the end */
	const char *help;
};

/* The keys, in the order of the file that `fkge init` writes. */
extern const struct config_key config_keys[CONFIG_KEYS];

/* A key that has been renamed: a value under `old` in a file is read as that of `name`. */
struct config_old_key {
	const char *section, *old, *name;
};
const struct config_old_key *config_old_key(const char *section, const char *old);
/* The old name of a key, or NULL. */
const char *config_old_name(const char *section, const char *name);

/* A key that may say auto: it holds `until` until the graph has decided (config/suit.c). */
struct config_auto {
	size_t key, flag; /* offsets: of the key's value, of the bool that says auto */
	const char *until;
};
/* NULL: it may not. */
const struct config_auto *config_key_auto(const struct config_key *k);

/* Of which file the values are, and on which lines of it. */
struct config_source {
	char *where;
	uint32_t line[CONFIG_KEYS]; /* 0: not in the file */
};

/* NULL: there is none. */
const struct config_key *config_key_find(const char *section, const char *name);
/* The section of this name within `outer`, NULL: there is none. */
const char *config_key_section(const char *outer, const char *name);
/* The name of section s as it stands in `outer` (NULL: the top level): "dp" of "train.dp" in
 * "train"; NULL where it does not stand there. */
const char *config_section_within(const char *s, const char *outer);
bool config_same_section(const char *a, const char *b);
/* A constant as if it stood in the table: number i of the method's; false: it has no more. */
bool config_key_constant(const struct config *c, size_t i, struct config_key *out);
bool config_key_find_constant(const struct config *c, const char *name, struct config_key *out);
/* Has any method a constant of this name? */
bool config_key_is_constant(const char *name);
/* Appends keys of a section, and sections within it, in the order of the table; constants. */
void config_key_known(struct buf *out, const struct config *c, const char *section);

/* ---- derived.c ---- */

/* Whether the model has tables of model.rel_dim. */
bool config_rel_dim_fits(const struct config *c);

/* ---- rules.c ---- */

/* ERR_USAGE says what is wrong with query.rules. */
int config_rules_check(const char *rules, struct err *e);

/* ---- preset.c ---- */

extern const char *const config_preset_words[]; /* by enum config_preset; NULL at the end */
/* Whether some preset may choose the key. */
bool config_preset_takes(const struct config_key *k);
void config_preset_apply(struct config *c, const struct graph *g);

/* ---- value.c ---- */

/* Was it set, by a file or config_set()? */
bool config_key_said(const struct config *c, const struct config_key *k);
/* As config_key_set(), but nobody has said so. */
int config_key_choose(struct config *c, const struct config_key *k, const char *value);

/* ERR_USAGE: not allowed. */
int config_key_set(struct config *c, const struct config_key *k, const char *value);
/* Is what it holds what could be set? */
bool config_key_within(const struct config *c, const struct config_key *k);
/* Append what is allowed, in words; the value, as it would stand in the file. */
void config_key_allowed(struct buf *out, const struct config_key *k);
void config_key_print(struct buf *out, const struct config *c, const struct config_key *k);
bool config_key_quoted(const struct config_key *k);
/* Text in double quotes, as YAML wants it. */
void config_print_quoted(struct buf *out, const char *text);

#endif

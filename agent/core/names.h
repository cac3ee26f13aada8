/* agent/core/names.h - the names by which a peer and we may recognise the same thing.
 *
 * The canonical name of an entity or relation toward a peer is its alias in
 * the table for that peer, else its alias in the table for everybody, else its
 * own name.  Names are opaque bytes.  If two things have one canonical name,
 * the one whose own name comes first in the order of bytes has it and the other has none. */
#ifndef AGENT_CORE_NAMES_H
#define AGENT_CORE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct graph;
struct agent_names;

/* Borrows the graph until freed. */
struct agent_names *agent_names_new(const struct graph *g);
void agent_names_free(struct agent_names *n);

/* Add an alias (copied); a later one for the same thing and peer wins.
 * peer: 32 bytes, or NULL for everybody.  tag: 'e' or 'r'. */
void agent_names_alias(struct agent_names *n, const uint8_t *peer, char tag, uint32_t id,
		       const char *alias, size_t len);

struct agent_name {
	const char *text; /* the graph's or the alias table's: good until a change or free */
	size_t len;
	uint32_t id;
	char tag; /* 'e' or 'r' */
};

/* All canonical names toward a peer: entities by id, then relations by id.  The
 * array is new, to be freed by the caller; *n of them. */
struct agent_name *agent_names_toward(const struct agent_names *names, const uint8_t peer[32],
				      int entities, int relations, size_t *n);

/* A relation's canonical name toward a peer, with a NUL; false: it has none, or a longer one. */
bool agent_names_relation(const struct agent_names *names, const uint8_t peer[32], uint32_t id,
			  char *out, size_t size);
/* The relation of this canonical name toward a peer; GRAPH_NONE: none has it. */
uint32_t agent_names_find_relation(const struct agent_names *names, const uint8_t peer[32],
				   const char *text);

/* Changes if and only if the set above changes.  Keyed with a secret of ours, so that
 * it tells a peer nothing but "changed" (methods 6: a plain hash of names would be
 * open to a dictionary). */
void agent_names_version(const struct agent_names *names, const uint8_t peer[32], int entities,
			 int relations, const uint8_t secret[32], uint8_t out[32]);

#endif

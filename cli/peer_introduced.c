/* cli/peer_introduced.c - agents that partners know: peer introduced, and their lines for peer add.
 */
#include <stdio.h>
#include <string.h>

#include "agent/core/member.h"
#include "agent/folder.h"
#include "agent/roster.h"
#include "cli/commands.h"
#include "cli/peers.h"
#include "config/config.h"
#include "net/ident.h"

static json_t *introduced_json(const struct agent_member *m)
{
	char id[NET_KEY_TEXT];
	json_t *j = json_object();

	net_key_format(m->key, id);
	json_object_set_new(j, "id", json_string(id));
	json_object_set_new(j, "name", store_json_of_text(m->name));
	json_object_set_new(j, "address", store_json_of_text(m->address));
	json_object_set_new(j, "time_ms", json_integer((json_int_t)m->time_ms));
	return j;
}

/* take() for each record whose agent is no peer of ours so far; it says when it has seen enough. */
static int each_introduced(struct cli *cli, bool (*take)(void *ctx, const struct agent_member *m),
			   void *ctx, struct err *e)
{
	struct store_core core = { 0 };
	struct roster r = { 0 };
	struct agent_member m;
	struct folder f;
	int rc = folder_open(&f, cli->folder, FOLDER_READ, e);

	if (rc != 0)
		return rc;
	rc = folder_load_roster(f.store, &r, e);
	if (rc == 0)
		rc = store_load_core(f.store, &core, e);
	for (size_t i = 0; rc == 0 && i < core.n_members; i++)
		if (agent_member_check(&m, core.members[i].record, core.members[i].len, NULL) ==
			    0 &&
		    roster_find(&r, m.key) == NULL && !take(ctx, &m))
			break;
	store_core_release(&core);
	roster_release(&r);
	folder_close(&f);
	return rc;
}

struct introduced_list {
	const struct cli *cli;
	json_t *list;
};

static bool show_introduced(void *ctx, const struct agent_member *m)
{
	struct introduced_list *l = ctx;
	json_t *j = introduced_json(m);

	json_array_append_new(l->list, j);
	cli_say(l->cli, "%s  %-20s  %s\n", json_string_value(json_object_get(j, "id")),
		m->name[0] != '\0' ? m->name : "-", m->address[0] != '\0' ? m->address : "-");
	return true;
}

int cmd_peer_introduced(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words w = { .max = 0 };
	struct introduced_list l = { cli, NULL };
	int rc;

	cli_parse_words(
		cli, "",
		"List the agents that partners know and that are no peers here: whole id, name, "
		"address, as partners tell them.\v"
		"Partners with federation.introduce: true tell of their own partners. Compare "
		"the id with what its owner tells you, then: fkge peer add ID.\n\n"
		"Example:\n  fkge -d acme peer introduced",
		&w, argc, argv);
	l.list = json_array();
	rc = each_introduced(cli, show_introduced, &l, e);
	if (rc == 0 && json_array_size(l.list) == 0)
		lab_note(&cli->notes, "Nobody was introduced.\n");
	cli_put(cli, "introduced", l.list);
	return rc;
}

struct introduced_choice {
	uint8_t key[NET_KEY_BYTES];
	struct agent_member found;
	bool any;
};

static bool match_introduced(void *ctx, const struct agent_member *m)
{
	struct introduced_choice *x = ctx;

	if (memcmp(m->key, x->key, sizeof(x->key)) != 0)
		return true;
	x->found = *m;
	x->any = true;
	return false;
}

/* That of a peer, by its id or name, or our own: another command is meant. */
static int refuse_known(const struct cli *cli, const char *text, struct err *e)
{
	struct roster r = { 0 };
	struct store_peer *p;
	uint8_t key[NET_KEY_BYTES];
	struct folder f;
	int rc = folder_open(&f, cli->folder, FOLDER_IDENTITY | FOLDER_READ, e);

	if (rc != 0)
		return rc;
	rc = folder_load_roster(f.store, &r, e);
	if (rc == 0 && net_key_parse(text, key, NULL) == 0 &&
	    memcmp(key, f.identity->key, sizeof(key)) == 0)
		rc = err_set(e, ERR_USAGE,
			     "that is this agent's own id: peer add takes another agent's, which "
			     "adds this one (fkge peer introduced, fkge id --line)");
	else if (rc == 0 && roster_resolve(&r, text, &p, NULL) == 0)
		rc = err_set(e, ERR_EXISTS, "%.60s is known here (%s): %s", text,
			     roster_standing(p),
			     p->status == STORE_LISTED
				     ? "fkge peer show has more, fkge join FILE takes a new address"
				     : "fkge peer accept makes it a partner");
	roster_release(&r);
	folder_close(&f);
	return rc;
}

/* The whole id: whoever introduces can make keys until one begins as another's does.  How the agent
 * signs stays open until it says so itself: its X25519 key has signed nothing of the record. */
int cli_introduced_line(struct cli *cli, const char *id, char line[NET_INVITE_TEXT], struct err *e)
{
	struct introduced_choice x = { 0 };
	struct net_invite v = { 0 };
	int rc = refuse_known(cli, id, e);

	if (rc != 0)
		return rc;
	if (net_key_parse(id, x.key, e) != 0)
		return err_set(e, ERR_USAGE,
			       "'%.80s' is no line of an agent, nor a whole id as fkge peer "
			       "introduced lists them",
			       id);
	rc = each_introduced(cli, match_introduced, &x, e);
	if (rc != 0)
		return rc;
	if (!x.any)
		return err_set(e, ERR_NOTFOUND,
			       "no partner has introduced %.60s (fkge peer introduced)", id);
	memcpy(v.from.noise, x.found.key, NET_KEY_BYTES);
	/* What no line may say is left out: whoever told it may lie, and must not keep the owner
	 * from adding that agent. */
	if (strlen(x.found.name) < sizeof(v.name) && !net_is_key(x.found.name))
		memcpy(v.name, x.found.name, strlen(x.found.name));
	if (config_address(x.found.address, v.host, &v.port, NULL) != 0 || v.port == 0 ||
	    config_is_wildcard(v.host))
		v.host[0] = '\0', v.port = 0;
	return net_invite_format(&v, line, e);
}

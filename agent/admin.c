#include "agent/admin.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "net/ident.h"

typedef int admin_fn(struct admin *a, const json_t *request, json_t *reply, struct err *e);

static const char *text_of(const json_t *request, const char *key)
{
	return json_string_value(json_object_get(request, key)); /* NULL if absent */
}

json_t *admin_peer_json(const struct store_peer *p)
{
	char id[NET_KEY_TEXT];
	json_t *j = json_object();

	net_key_format(p->key, id);
	json_object_set_new(j, "id", json_string(id));
	json_object_set_new(j, "name", json_string(p->name));
	json_object_set_new(j, "standing", json_string(roster_standing(p)));
	json_object_set_new(j, "address", json_string(p->address));
	json_object_set_new(j, "seen_ms", json_integer(p->seen_ms));
	return j;
}

static int list_peers(struct admin *a, const json_t *request, json_t *reply, struct err *e)
{
	json_t *list = json_array();

	(void)request;
	(void)e;
	for (size_t i = 0; i < a->roster->n; i++)
		json_array_append_new(list, admin_peer_json(&a->roster->at[i]));
	json_object_set_new(reply, "peers", list);
	return 0;
}

/* ---- decisions ---- */

/* Put the new record into the roster; take it out again if it cannot be kept. */
static int keep(struct admin *a, const struct store_peer *p, json_t *reply, struct err *e)
{
	struct store_peer *at = roster_find(a->roster, p->key);
	struct store_peer before = { 0 };
	bool known = at != NULL;
	int rc;

	if (known)
		before = *at;
	at = roster_put(a->roster, p);
	rc = a->changed(a->ctx, at, e);
	if (rc == 0)
		json_object_set_new(reply, "peer", admin_peer_json(at));
	else if (known)
		*at = before;
	else
		a->roster->n--;
	return rc;
}

/* Whom the request names; a whole id that is new makes a new record. */
static int named_peer(struct admin *a, const json_t *request, struct store_peer *out, struct err *e)
{
	const char *text = text_of(request, "peer");
	struct store_peer *found;
	int rc;

	memset(out, 0, sizeof(*out));
	if (text == NULL)
		return err_set(e, ERR_USAGE, "which peer?");
	rc = roster_resolve(a->roster, text, &found, e);
	if (rc == 0)
		*out = *found;
	else if (net_key_parse(text, out->key, NULL) == 0)
		return 0;
	return rc;
}

static int is_self(const struct admin *a, const uint8_t key[STORE_KEY], struct err *e)
{
	if (memcmp(key, a->folder->identity->key, STORE_KEY) == 0)
		return err_set(e, ERR_USAGE, "that is this agent's own key");
	return 0;
}

static int decide(struct admin *a, const json_t *request, json_t *reply, enum roster_verb verb,
		  struct err *e)
{
	struct store_peer p;
	int rc = named_peer(a, request, &p, e);

	if (rc == 0)
		rc = is_self(a, p.key, e);
	if (rc == 0)
		rc = roster_decide(&p, verb, e);
	return rc == 0 ? keep(a, &p, reply, e) : rc;
}

static int accept_peer(struct admin *a, const json_t *request, json_t *reply, struct err *e)
{
	return decide(a, request, reply, ROSTER_ACCEPT, e);
}

static int reject_peer(struct admin *a, const json_t *request, json_t *reply, struct err *e)
{
	return decide(a, request, reply, ROSTER_REJECT, e);
}

static int revoke_peer(struct admin *a, const json_t *request, json_t *reply, struct err *e)
{
	return decide(a, request, reply, ROSTER_REVOKE, e);
}

/* ---- invitations ---- */

void admin_card(const struct folder *f, struct net_invite *v)
{
	memcpy(v->from.noise, f->identity->key, NET_KEY_BYTES);
	memcpy(v->from.sign, f->identity->sign_key, NET_SIGN_BYTES);
	snprintf(v->name, sizeof(v->name), "%s", f->config.name);
}

static bool is_wildcard(const char *host)
{
	return strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}

/* The address that others shall dial: asked for, advertised, or where we listen if
 * that says anything. */
static int choose_address(const struct admin *a, const char *asked, struct net_invite *v,
			  struct err *e)
{
	const struct config *c = &a->folder->config;
	const char *text = asked != NULL	     ? asked
			   : c->advertise[0] != '\0' ? c->advertise
						     : c->listen;
	char host[256];

	if (strcmp(text, "off") == 0)
		return 0; /* it can only call others */
	if (config_address(text, host, &v->port, e) != 0)
		return ERR_USAGE;
	if (text == c->listen && is_wildcard(host))
		return err_set(e, ERR_USAGE,
			       "this agent listens on every address (%s): say by which one others "
			       "reach it, with --address HOST:PORT or advertise in %s",
			       text, a->folder->config_path);
	if (v->port == 0)
		v->port = a->port;
	if (v->port == 0)
		return err_set(
			e, ERR_USAGE,
			"the port is known only while the agent runs (%s): start it, or give "
			"--address HOST:PORT",
			text);
	snprintf(v->host, sizeof(v->host), "%s", host);
	return 0;
}

/* host:port, [v6]:port, or "" */
static void print_address(const struct net_invite *v, char out[STORE_ADDRESS_MAX])
{
	out[0] = '\0';
	if (v->port != 0)
		snprintf(out, STORE_ADDRESS_MAX, strchr(v->host, ':') != NULL ? "[%s]:%u" : "%s:%u",
			 v->host, v->port);
}

/* An invitation for one key is the owner's yes to that key. */
static int accept_guest(struct admin *a, const char *guest, struct net_invite *v, struct err *e)
{
	struct store_peer p = { 0 };
	struct store_peer *known;
	json_t *unused;
	int rc = net_key_parse(guest, v->to, e);

	if (rc == 0)
		rc = is_self(a, v->to, e);
	if (rc != 0)
		return rc;
	v->bound = true;
	known = roster_find(a->roster, v->to);
	if (known != NULL)
		p = *known;
	memcpy(p.key, v->to, STORE_KEY);
	p.status = STORE_LISTED;
	unused = json_object();
	rc = keep(a, &p, unused, e);
	json_decref(unused);
	return rc;
}

static int invite(struct admin *a, const json_t *request, json_t *reply, struct err *e)
{
	const char *guest = text_of(request, "guest");
	struct net_invite v = { 0 };
	char line[NET_INVITE_TEXT], address[STORE_ADDRESS_MAX];
	int rc = choose_address(a, text_of(request, "address"), &v, e);

	admin_card(a->folder, &v);
	if (rc == 0)
		rc = folder_psk(a->folder, &v.has_psk, v.psk, e);
	if (rc == 0 && guest != NULL)
		rc = accept_guest(a, guest, &v, e);
	if (rc == 0)
		rc = net_invite_format(&v, line, e);
	if (rc == 0) {
		print_address(&v, address);
		json_object_set_new(reply, "line", json_string(line));
		json_object_set_new(reply, "address", json_string(address));
		json_object_set_new(reply, "secret", json_boolean(v.has_psk));
	}
	sodium_memzero(&v, sizeof(v));
	sodium_memzero(line, sizeof(line));
	return rc;
}

/* ---- joining ---- */

static int take_secret(struct admin *a, const struct net_invite *v, struct err *e)
{
	if (!v->has_psk)
		return 0;
	if (!a->running)
		return folder_put_psk(a->folder, v->psk, e);
	if (a->has_psk && sodium_memcmp(a->psk, v->psk, 32) == 0)
		return 0;
	return err_set(
		e, ERR_BUSY,
		"this invitation brings another secret of a federation than the running agent "
		"uses: fkge stop, then join again");
}

/* A key that signs differently than before is somebody else's. */
static int check_sign_key(const struct admin *a, const struct net_invite *v, struct err *e)
{
	const struct store_peer *known = roster_find(a->roster, v->from.noise);

	if (known == NULL || sodium_is_zero(known->sign_key, STORE_KEY) ||
	    memcmp(known->sign_key, v->from.sign, STORE_KEY) == 0)
		return 0;
	return err_set(e, ERR_IDENTITY,
		       "%s is known with another signing key: ask its owner what happened",
		       known->name);
}

static int check_invitation(const struct admin *a, const struct net_invite *v, struct err *e)
{
	if (v->bound && memcmp(v->to, a->folder->identity->key, STORE_KEY) != 0)
		return err_set(e, ERR_IDENTITY, "this invitation was made for another agent's key");
	if (is_self(a, v->from.noise, e) != 0)
		return ERR_USAGE;
	return check_sign_key(a, v, e);
}

static int join(struct admin *a, const json_t *request, json_t *reply, struct err *e)
{
	const char *line = text_of(request, "line");
	struct net_invite v = { 0 };
	struct store_peer p = { .status = STORE_LISTED };
	char own[NET_KEY_TEXT];
	int rc = line == NULL ? err_set(e, ERR_USAGE, "join needs the invitation's line")
			      : net_invite_parse(line, &v, e);

	if (rc == 0)
		rc = check_invitation(a, &v, e);
	if (rc == 0)
		rc = take_secret(a, &v, e);
	memcpy(p.key, v.from.noise, STORE_KEY);
	memcpy(p.sign_key, v.from.sign, STORE_KEY);
	snprintf(p.name, sizeof(p.name), "%s", v.name);
	print_address(&v, p.address);
	if (rc == 0)
		rc = keep(a, &p, reply, e);
	net_key_format(a->folder->identity->key, own);
	json_object_set_new(reply, "own_id", json_string(own));
	json_object_set_new(reply, "accepted", json_boolean(v.bound));
	sodium_memzero(&v, sizeof(v));
	return rc;
}

/* ---- by name ---- */

static const struct {
	const char *name;
	admin_fn *run;
} requests[] = {
	{ "peers", list_peers },   { "accept", accept_peer }, { "reject", reject_peer },
	{ "revoke", revoke_peer }, { "invite", invite },      { "join", join },
};

static admin_fn *find_request(const json_t *request)
{
	const char *name = text_of(request, "do");

	for (size_t i = 0; name != NULL && i < sizeof(requests) / sizeof(requests[0]); i++)
		if (strcmp(requests[i].name, name) == 0)
			return requests[i].run;
	return NULL;
}

bool admin_knows(const json_t *request)
{
	return find_request(request) != NULL;
}

int admin_run(struct admin *a, const json_t *request, json_t *reply, struct err *e)
{
	return find_request(request)(a, request, reply, e);
}

#include "agent/admin.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/core.h"
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
	json_object_set_new(j, "source", json_string(p->source));
	return j;
}

static const struct store_judgement *judgement_of(const struct admin *a,
						  const uint8_t key[STORE_KEY])
{
	for (size_t i = 0; i < a->n_judgements; i++)
		if (memcmp(a->judgements[i].peer, key, STORE_KEY) == 0)
			return &a->judgements[i];
	return NULL;
}

void admin_put_judgement(json_t *peer, const struct store_judgement *j)
{
	if (j->judged == 0)
		return;
	json_object_set_new(peer, "rounds_judged", json_integer((json_int_t)j->judged));
	json_object_set_new(peer, "rounds_hurt", json_integer((json_int_t)j->hurt));
	json_object_set_new(peer, "reputation", json_real(j->reputation));
	if (!j->quarantined)
		return;
	json_object_set_new(peer, "quarantine", json_string(j->why));
	json_object_set_new(peer, "quarantine_ms", json_integer(j->since_ms));
}

static int list_peers(struct admin *a, const json_t *request, json_t *reply, struct err *e)
{
	json_t *list = json_array();

	(void)request;
	(void)e;
	for (size_t i = 0; i < a->roster->n; i++) {
		const uint8_t *key = a->roster->at[i].key;
		const struct store_judgement *judgement = judgement_of(a, key);
		json_t *peer = admin_peer_json(&a->roster->at[i]);

		json_object_set_new(peer, "pair_secret",
				    json_boolean(invites_proven(a->invites, key)));
		if (judgement != NULL)
			admin_put_judgement(peer, judgement);
		json_array_append_new(list, peer);
	}
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
	rc = a->changed(a->ctx, at, known ? &before : NULL, e);
	if (rc == 0)
		json_object_set_new(reply, "peer", admin_peer_json(at));
	else if (known)
		*at = before;
	else
		a->roster->n--;
	return rc;
}

/* The peer that the request names; a whole id that is new makes a new record. */
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

/* A key that its owner has replaced may be a thief's. */
static int check_replaced(const struct admin *a, const uint8_t key[STORE_KEY], struct err *e)
{
	const struct ledger_rotation *r = ledger_rotations_proved(&a->roster->rotations, key);
	char id[NET_KEY_TEXT];

	if (r == NULL)
		return 0;
	net_key_format(r->new_key, id);
	return err_set(e, ERR_REFUSED, "its owner has replaced this key, by %s", id);
}

static int check_known(const struct admin *a, const uint8_t key[STORE_KEY], struct err *e)
{
	if (roster_find(a->roster, key) == NULL)
		return err_set(e, ERR_NOTFOUND, "this key is not known here");
	return 0;
}

/* A core starts with no more partners; one that runs knows more of them than the roster. */
static int may_list(const struct admin *a, const struct store_peer *p, struct err *e)
{
	const struct store_peer *known = roster_find(a->roster, p->key);

	if ((known == NULL || known->status != STORE_LISTED) &&
	    roster_listed(a->roster) >= AGENT_PEERS_MAX)
		return err_set(e, ERR_REFUSED,
			       "there are %d partners, as many as can be: fkge peer revoke ends "
			       "the partnership with one",
			       AGENT_PEERS_MAX);
	return a->may_list != NULL ? a->may_list(a->ctx, p, e) : 0;
}

/* Names, and keys that begin as another does, are made by whoever wants to be taken for it. */
static int check_spelt(const struct store_peer *p, const char *text, struct err *e)
{
	if (p->status == STORE_LISTED || roster_spells(p->key, text))
		return 0;
	return err_set(e, ERR_USAGE,
		       "of a key that is no partner yet write the id, whole or its first %d "
		       "characters, as its owner reads it out: anybody can choose a name, or make "
		       "keys until one begins with these few (fkge peer pending)",
		       ROSTER_ID_LEAST);
}

static int may_accept(const struct admin *a, const struct store_peer *p, const char *text,
		      struct err *e)
{
	int rc = check_spelt(p, text, e);

	if (rc == 0)
		rc = check_replaced(a, p->key, e);
	return rc == 0 ? may_list(a, p, e) : rc;
}

static int decide(struct admin *a, const json_t *request, json_t *reply, enum roster_verb verb,
		  struct err *e)
{
	struct store_peer p;
	int rc = named_peer(a, request, &p, e);

	if (rc == 0)
		rc = is_self(a, p.key, e);
	if (rc == 0 && verb == ROSTER_ACCEPT)
		rc = may_accept(a, &p, text_of(request, "peer"), e);
	if (rc == 0 && json_is_true(json_object_get(request, "known")))
		rc = check_known(a, p.key, e);
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

static int forget_peer(struct admin *a, const json_t *request, json_t *reply, struct err *e)
{
	struct store_peer p;
	int rc = named_peer(a, request, &p, e);

	if (rc == 0)
		rc = check_known(a, p.key, e);
	if (rc == 0)
		rc = roster_may_forget(&p, e);
	if (rc == 0)
		rc = a->forgotten(a->ctx, &p, e);
	if (rc != 0)
		return rc;
	json_object_set_new(reply, "peer", admin_peer_json(&p));
	roster_remove(a->roster, p.key);
	invites_unpair(a->invites, p.key);
	return 0;
}

/* Out of quarantine, and judged anew from now on. */
static int trust_peer(struct admin *a, const json_t *request, json_t *reply, struct err *e)
{
	struct store_judgement fresh = { .reputation = 1 };
	const struct store_judgement *j;
	struct store_peer p;
	int rc = named_peer(a, request, &p, e);

	j = rc == 0 ? judgement_of(a, p.key) : NULL;
	if (rc == 0 && (j == NULL || !j->quarantined))
		rc = err_set(e, ERR_USAGE, "this peer is not in quarantine (fkge peer list)");
	memcpy(fresh.peer, p.key, STORE_KEY);
	if (rc == 0)
		rc = a->trusted(a->ctx, &fresh, e);
	if (rc == 0)
		json_object_set_new(reply, "peer", admin_peer_json(&p));
	return rc;
}

/* ---- invitations ---- */

void admin_card(const struct folder *f, struct net_invite *v)
{
	memcpy(v->from.noise, f->identity->key, NET_KEY_BYTES);
	memcpy(v->from.sign, f->identity->sign_key, NET_SIGN_BYTES);
	snprintf(v->name, sizeof(v->name), "%s", f->config.name);
}

static int refuse_wildcard(const struct admin *a, const char *text, bool listens, struct err *e)
{
	return err_set(e, ERR_USAGE,
		       "%s (%s): say by which one others reach it, with --address HOST:PORT or "
		       "advertise in %s",
		       listens ? "this agent listens on every address"
			       : "that stands for every address of a machine",
		       text, a->folder->config_path);
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
	if (config_is_wildcard(host))
		return refuse_wildcard(a, text, text == c->listen, e);
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
	if (rc == 0)
		rc = check_replaced(a, v->to, e);
	if (rc != 0)
		return rc;
	known = roster_find(a->roster, v->to);
	if (known != NULL)
		p = *known;
	memcpy(p.key, v->to, STORE_KEY);
	p.status = STORE_LISTED;
	unused = json_object();
	rc = may_list(a, &p, e);
	if (rc == 0)
		rc = keep(a, &p, unused, e);
	json_decref(unused);
	return rc;
}

static int number_of(const json_t *request, const char *key, json_int_t otherwise, json_int_t most,
		     json_int_t *out, struct err *e)
{
	const json_t *j = json_object_get(request, key);

	*out = j == NULL ? otherwise : json_integer_value(j);
	if (*out >= 1 && *out <= most)
		return 0;
	return err_set(e, ERR_USAGE, "%s: a whole number from 1 to %lld", key, (long long)most);
}

/* Every holder of the line is let in, as often and as long as the owner says. */
static int add_ticket(struct admin *a, const json_t *request, struct net_invite *v, json_t *reply,
		      struct err *e)
{
	const struct store_invitation *i;
	struct store_batch b = { 0 };
	char id[INVITES_ID_TEXT];
	json_int_t uses, days;
	int rc = number_of(request, "uses", 1, INVITES_USES_MAX, &uses, e);

	if (rc == 0)
		rc = number_of(request, "days", 30, INVITES_DAYS_MAX, &days, e);
	if (rc != 0)
		return rc;
	i = invites_make(a->invites, (uint32_t)uses, a->now_ms, a->now_ms + days * INVITES_DAY_MS,
			 v->ticket);
	if (i == NULL)
		return err_set(e, ERR_BUSY,
			       "%d invitations are still good: revoke some (fkge invite --list)",
			       INVITES_MAX);
	v->has_ticket = true;
	invites_id(i, id);
	json_object_set_new(reply, "invitation", json_string(id));
	json_object_set_new(reply, "uses", json_integer(uses));
	json_object_set_new(reply, "days", json_integer(days));
	for (size_t k = 0; k < a->invites->n_made; k++) /* all: some may have gone for it */
		store_batch_invitation(&b, &a->invites->made[k]);
	return a->keep(a->ctx, &b, e);
}

/* For the secret of the pair that joins by this line. */
static int add_seed(struct admin *a, struct net_invite *v, struct err *e)
{
	struct store_batch b = { 0 };
	struct store_seed seed;

	invites_seed(a->invites, a->now_ms, &seed);
	v->has_seed = true;
	memcpy(v->seed, seed.seed, sizeof(v->seed));
	store_batch_seed(&b, &seed);
	sodium_memzero(&seed, sizeof(seed));
	return a->keep(a->ctx, &b, e);
}

static bool holder_is_let_in(const struct admin *a, const struct net_invite *v)
{
	return a->folder->config.federation.accept == CONFIG_ACCEPT_INVITED && v->has_psk &&
	       !v->bound;
}

/* An owner shall not send a line that does less than was asked for. */
static int check_lets_in(const struct admin *a, const json_t *request, const struct net_invite *v,
			 struct err *e)
{
	const struct config *c = &a->folder->config;

	if (holder_is_let_in(a, v))
		return 0;
	if (c->federation.accept == CONFIG_ACCEPT_INVITED && !v->bound)
		return err_set(e, ERR_USAGE,
			       "federation.accept is invited, and no secret of the federation is "
			       "in %s, without which no invitation lets its holder in: draw one "
			       "(fkge stop, fkge secret), invite one key (--for ID), or accept "
			       "peers yourself (federation.accept: listed)",
			       c->federation.psk_file);
	if (json_object_get(request, "uses") != NULL || json_object_get(request, "days") != NULL)
		return err_set(e, ERR_USAGE,
			       "--uses and --days are for invitations that let their holder in: "
			       "with federation.accept invited, and without --for");
	return 0;
}

/* The secret that partners' links need.  A running agent has the one that it began with. */
static int invited_psk(const struct admin *a, struct net_invite *v, struct err *e)
{
	int rc = folder_psk(a->folder, &v->has_psk, v->psk, e);

	if (rc != 0 || !a->running ||
	    (v->has_psk == a->has_psk &&
	     (!v->has_psk || sodium_memcmp(v->psk, a->psk, sizeof(v->psk)) == 0)))
		return rc;
	return err_set(e, ERR_BUSY,
		       "the federation's secret in %s is another one than the running agent began "
		       "with: fkge reload --restart takes it",
		       a->folder->config.federation.psk_file);
}

static int invite(struct admin *a, const json_t *request, json_t *reply, struct err *e)
{
	const char *guest = text_of(request, "guest");
	struct net_invite v = { 0 };
	char line[NET_INVITE_TEXT], address[STORE_ADDRESS_MAX];
	int rc = choose_address(a, text_of(request, "address"), &v, e);

	admin_card(a->folder, &v);
	if (rc == 0)
		rc = invited_psk(a, &v, e);
	v.bound = guest != NULL;
	if (rc == 0)
		rc = check_lets_in(a, request, &v, e);
	if (rc == 0 && guest != NULL)
		rc = accept_guest(a, guest, &v, e);
	if (rc == 0 && holder_is_let_in(a, &v))
		rc = add_ticket(a, request, &v, reply, e);
	if (rc == 0)
		rc = add_seed(a, &v, e);
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

static int list_invitations(struct admin *a, const json_t *request, json_t *reply, struct err *e)
{
	json_t *list = json_array();
	char id[INVITES_ID_TEXT];

	(void)request;
	(void)e;
	for (size_t k = 0; k < a->invites->n_made; k++) {
		const struct store_invitation *i = &a->invites->made[k];

		invites_id(i, id);
		json_array_append_new(
			list, json_pack("{s:s, s:s, s:I, s:I, s:I, s:I}", "id", id, "state",
					invites_state(i, a->now_ms), "made_ms",
					(json_int_t)i->made_ms, "until_ms", (json_int_t)i->until_ms,
					"uses", (json_int_t)i->uses, "used", (json_int_t)i->used));
	}
	json_object_set_new(reply, "invitations", list);
	return 0;
}

static int uninvite(struct admin *a, const json_t *request, json_t *reply, struct err *e)
{
	const char *id = text_of(request, "id");
	struct store_invitation *i;
	struct store_batch b = { 0 };
	int rc;

	if (id == NULL)
		return err_set(e, ERR_USAGE, "which invitation?");
	rc = invites_find(a->invites, id, &i, e);
	if (rc != 0)
		return rc;
	i->revoked = true;
	store_batch_invitation(&b, i);
	json_object_set_new(reply, "invitation", json_string(id));
	json_object_set_new(reply, "used", json_integer((json_int_t)i->used));
	return a->keep(a->ctx, &b, e);
}

/* ---- joining ---- */

/* From the moment that it counts, partners who have not been given it have no link. */
static int refuse_secret(const struct admin *a, bool has, struct err *e)
{
	const char *file = a->folder->config.federation.psk_file;
	size_t n = roster_listed(a->roster);

	return err_set(
		e, ERR_USAGE,
		"this line brings the secret of a federation, and %s%s: %zu partner%s would "
		"have no link until given a line with that secret, too; an agent is in one "
		"federation (make another for this one), or fkge join --replace-secret%s%s%s",
		has ? "another one is in " : "this agent has none in ", file, n, n == 1 ? "" : "s",
		has ? " (which keeps the old one in " : "", has ? file : "",
		has ? FOLDER_PSK_BEFORE ")" : "");
}

/* Not by a line alone, whoever it says that it is from: nobody signs it. */
static int check_other_secret(const struct admin *a, const struct net_invite *v, bool replace,
			      struct err *e)
{
	uint8_t psk[32];
	bool has;
	int rc = folder_check_psk(a->folder, e);

	if (rc == 0)
		rc = folder_old_psk(a->folder, &has, psk, e);
	if (rc == 0 && !replace &&
	    (has ? sodium_memcmp(psk, v->psk, sizeof(psk)) != 0 : roster_listed(a->roster) > 0))
		rc = refuse_secret(a, has, e);
	sodium_memzero(psk, sizeof(psk));
	return rc;
}

/* Before anything of the line is kept. */
static int check_line_secret(const struct admin *a, const struct net_invite *v, bool replace,
			     struct err *e)
{
	if (!v->has_psk || (a->running && a->has_psk && sodium_memcmp(a->psk, v->psk, 32) == 0))
		return 0;
	if (a->running)
		return err_set(e, ERR_BUSY,
			       "this invitation brings another secret of a federation than the "
			       "running agent uses: fkge stop, then join again, which says what "
			       "becomes of the partners that it has");
	return check_other_secret(a, v, replace, e);
}

/* A running agent has it already. */
static void take_secret(struct admin *a, const struct net_invite *v)
{
	if (!v->has_psk || a->running)
		return;
	a->brought_psk = true;
	memcpy(a->new_psk, v->psk, sizeof(a->new_psk));
}

/* A line without an address, a name or a signing key says nothing of them: what is known stands. */
static void keep_known(const struct admin *a, struct store_peer *p)
{
	const struct store_peer *known = roster_find(a->roster, p->key);

	if (known == NULL)
		return;
	if (p->address[0] == '\0')
		memcpy(p->address, known->address, sizeof(p->address));
	if (p->name[0] == '\0')
		memcpy(p->name, known->name, sizeof(p->name));
	if (sodium_is_zero(p->sign_key, STORE_KEY))
		memcpy(p->sign_key, known->sign_key, STORE_KEY);
	p->seen_ms = known->seen_ms;
	p->has_ledger = known->has_ledger;
	p->has_signed = known->has_signed;
	memcpy(p->account, known->account, sizeof(p->account));
}

/* A key that signs differently than before is somebody else's. */
static int check_sign_key(const struct admin *a, const struct net_invite *v, struct err *e)
{
	const struct store_peer *known = roster_find(a->roster, v->from.noise);

	if (sodium_is_zero(v->from.sign, NET_SIGN_BYTES)) /* it says itself how it signs */
		return 0;
	if (known == NULL || sodium_is_zero(known->sign_key, STORE_KEY)) {
		if (memcmp(v->from.sign, a->folder->identity->sign_key, STORE_KEY) == 0 ||
		    roster_sign_key_taken(a->roster, v->from.noise, v->from.sign))
			return err_set(e, ERR_IDENTITY,
				       "the signing key of this invitation is, or was, that of "
				       "another agent that is known here, or ours: ask its owner "
				       "what happened");
		return 0;
	}
	if (memcmp(known->sign_key, v->from.sign, STORE_KEY) == 0)
		return 0;
	return err_set(e, ERR_IDENTITY,
		       "%s is known with another signing key: ask its owner what happened",
		       known->name);
}

static int check_invitation(const struct admin *a, const struct net_invite *v, bool replace,
			    struct err *e)
{
	int rc;

	if (v->bound && memcmp(v->to, a->folder->identity->key, STORE_KEY) != 0)
		return err_set(e, ERR_IDENTITY, "this invitation was made for another agent's key");
	if (is_self(a, v->from.noise, e) != 0)
		return ERR_USAGE;
	if (check_replaced(a, v->from.noise, e) != 0)
		return ERR_REFUSED;
	if (net_is_key(v->name))
		return err_set(e, ERR_INPUT,
			       "the name in this line is an agent's id, which no agent may have as "
			       "its name: ask its owner what happened");
	if (config_is_wildcard(v->host))
		return err_set(e, ERR_INPUT,
			       "the address in it, %s, stands for every address of a machine, and "
			       "this one would dial itself: ask for a line made with fkge invite "
			       "--address HOST:PORT",
			       v->host);
	rc = check_line_secret(a, v, replace, e);
	return rc == 0 ? check_sign_key(a, v, e) : rc;
}

/* To be shown to the inviter when it is dialled. */
static int hold_ticket(struct admin *a, const struct net_invite *v, struct err *e)
{
	struct store_ticket t = { 0 };
	struct store_batch b = { 0 };

	if (!v->has_ticket)
		return 0;
	memcpy(t.peer, v->from.noise, STORE_KEY);
	memcpy(t.ticket, v->ticket, STORE_TICKET);
	invites_hold(a->invites, &t);
	if (a->ticket_held != NULL)
		a->ticket_held(a->ctx, &t);
	store_batch_ticket(&b, &t);
	return a->keep(a->ctx, &b, e);
}

static int hold_secret(struct admin *a, const struct net_invite *v, struct err *e)
{
	struct store_pair pair;
	struct store_batch b = { 0 };

	if (!v->has_seed)
		return 0;
	invites_join(a->invites, a->folder->identity->key, v->from.noise, v->seed, &pair);
	store_batch_pair(&b, &pair);
	sodium_memzero(&pair, sizeof(pair));
	return a->keep(a->ctx, &b, e);
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
		rc = check_invitation(a, &v, json_is_true(json_object_get(request, "replace")), e);
	memcpy(p.key, v.from.noise, STORE_KEY);
	memcpy(p.sign_key, v.from.sign, STORE_KEY);
	snprintf(p.name, sizeof(p.name), "%s", v.name);
	print_address(&v, p.address);
	keep_known(a, &p);
	if (rc == 0)
		rc = may_list(a, &p, e);
	if (rc == 0)
		rc = hold_ticket(a, &v, e);
	if (rc == 0)
		rc = hold_secret(a, &v, e);
	if (rc == 0)
		rc = keep(a, &p, reply, e);
	if (rc == 0)
		take_secret(a, &v);
	net_key_format(a->folder->identity->key, own);
	json_object_set_new(reply, "own_id", json_string(own));
	json_object_set_new(reply, "accepted", json_boolean(v.bound || v.has_ticket));
	sodium_memzero(&v, sizeof(v));
	return rc;
}

/* ---- by name ---- */

static const struct {
	const char *name;
	admin_fn *run;
} requests[] = {
	{ "peers", list_peers },   { "accept", accept_peer }, { "reject", reject_peer },
	{ "revoke", revoke_peer }, { "forget", forget_peer }, { "invite", invite },
	{ "trust", trust_peer },   { "join", join },	      { "invitations", list_invitations },
	{ "uninvite", uninvite },
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

bool admin_only_reads(const json_t *request)
{
	admin_fn *run = find_request(request);

	return run == list_peers || run == list_invitations;
}

int admin_run(struct admin *a, const json_t *request, json_t *reply, struct err *e)
{
	return find_request(request)(a, request, reply, e);
}

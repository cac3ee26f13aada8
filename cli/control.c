#include "cli/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sodium.h>

#include "agent/admin.h"
#include "agent/ask.h"
#include "cli/peers.h"

/* ---- beside a stopped agent ---- */

/* What the request changes is kept until it is through, and written at once: a partner without the
 * secret of its line, or the other way round, would be nobody's decision. */
static int add_peer(void *ctx, const struct store_peer *p, const struct store_peer *before,
		    struct err *e)
{
	(void)before; /* the caller takes it back */
	(void)e;
	store_batch_peer(ctx, p);
	return 0;
}

static int add_forgotten(void *ctx, const struct store_peer *p, struct err *e)
{
	(void)e;
	store_batch_unpeer(ctx, p->key);
	return 0;
}

static int add_trust(void *ctx, const struct store_judgement *j, struct err *e)
{
	(void)e;
	store_batch_judgement(ctx, j);
	return 0;
}

static int add_batch(void *ctx, struct store_batch *b, struct err *e)
{
	(void)e;
	store_batch_move(ctx, b);
	return 0;
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int admin_here(struct folder *f, const json_t *request, json_t *reply, struct err *e)
{
	struct roster roster = { 0 };
	struct invites invites = { 0 };
	struct store_core core = { 0 };
	struct store_batch b = { 0 };
	struct admin a = { .folder = f,
			   .roster = &roster,
			   .ctx = &b,
			   .changed = add_peer,
			   .forgotten = add_forgotten,
			   .trusted = add_trust,
			   .keep = add_batch,
			   .invites = &invites,
			   .now_ms = now_ms() };
	char *kept = NULL;
	int rc = store_load_core(f->store, &core, e);

	if (rc == 0) {
		for (size_t i = 0; i < core.n_peers; i++)
			roster_put(&roster, &core.peers[i]);
		ledger_rotations_copy(&roster.rotations, &core.rotations);
		invites_load(&invites, &core);
		a.judgements = core.judgements.at;
		a.n_judgements = core.judgements.n;
		rc = admin_run(&a, request, reply, e);
		store_core_release(&core);
	}
	if (rc == 0)
		rc = store_apply(f->store, &b, e);
	if (rc == 0 && a.brought_psk)
		rc = folder_replace_psk(f, a.new_psk, &kept, e);
	if (kept != NULL)
		json_object_set_new(reply, "old_secret", json_string(kept));
	free(kept);
	sodium_memzero(a.new_psk, sizeof(a.new_psk));
	store_batch_release(&b);
	invites_release(&invites);
	roster_release(&roster);
	return rc;
}

/* ---- who does not answer ---- */

static pid_t holder_of(const struct cli *cli)
{
	struct folder f;
	pid_t pid;

	folder_paths(&f, cli->folder);
	pid = folder_holder(&f);
	folder_close(&f);
	return pid;
}

void control_process_text(pid_t holder, char out[CONTROL_PROCESS_TEXT])
{
	if (holder > 0)
		snprintf(out, CONTROL_PROCESS_TEXT, "process %ld", (long)holder);
	else
		snprintf(out, CONTROL_PROCESS_TEXT, "a process that is not known");
}

int control_ask(const struct cli *cli, const json_t *request, json_t **reply, pid_t *holder,
		struct err *e)
{
	struct err why = { 0 };
	char who[CONTROL_PROCESS_TEXT];
	int rc = agent_ask(cli->folder, request, reply, &why);

	*holder = rc == ERR_UNREACHABLE || rc == ERR_TIMEOUT || rc == ERR_BUSY ? holder_of(cli) : 0;
	if (rc != 0 && *holder == 0)
		return err_set(e, rc, "%s", why.text);
	control_process_text(*holder, who);
	if (rc == ERR_UNREACHABLE && *holder < 0)
		return err_set(e, ERR_BUSY,
			       "no agent answers, and whether a process holds the folder cannot be "
			       "seen by its file lock");
	if (rc == ERR_UNREACHABLE)
		return err_set(e, ERR_BUSY,
			       "%s holds the folder but does not answer: an agent that "
			       "starts or ends, or a command that writes",
			       who);
	if (rc != 0)
		err_set(e, rc, "%s holds the folder but does not answer%s: %s", who,
			rc == ERR_TIMEOUT ? ", it hangs or was stopped" : "", why.text);
	return rc;
}

int control_admin(const struct cli *cli, const json_t *request, json_t **reply, struct err *e)
{
	struct folder f;
	int rc = agent_ask(cli->folder, request, reply, e);

	if (rc != ERR_UNREACHABLE)
		return rc;
	*e = (struct err){ 0 };
	rc = folder_open(&f, cli->folder,
			 FOLDER_CONFIG | FOLDER_IDENTITY |
				 (admin_only_reads(request) ? FOLDER_READ : FOLDER_WRITE),
			 e);
	if (rc != 0)
		return rc;
	*reply = json_object();
	rc = admin_here(&f, request, *reply, e);
	folder_close(&f);
	if (rc != 0) {
		json_decref(*reply);
		*reply = NULL;
	}
	return rc;
}

void control_put(struct cli *cli, json_t *reply)
{
	json_object_update(cli->result, reply);
	json_decref(reply);
}

/* ---- peers of the store ---- */

int cli_peer_key(struct store *s, const char *text, uint8_t key[STORE_KEY], struct err *e)
{
	struct roster r = { 0 };
	struct store_peer *p;
	int rc = folder_load_roster(s, &r, e);

	if (rc == 0)
		rc = roster_resolve(&r, text, &p, e);
	if (rc == 0)
		memcpy(key, p->key, STORE_KEY);
	else if (net_key_parse(text, key, NULL) == 0)
		rc = 0;
	roster_release(&r);
	return rc;
}

int cli_waited_for(struct store *s, const struct store_restored *r, struct roster *out,
		   struct err *e)
{
	struct roster all = { 0 };
	int rc = folder_load_roster(s, &all, e);

	*out = (struct roster){ 0 };
	for (size_t i = 0; rc == 0 && i < r->n_waits; i++) {
		const struct store_peer *known = roster_find(&all, r->waits[i]);
		struct store_peer p = { .status = STORE_REVOKED };

		memcpy(p.key, r->waits[i], STORE_KEY);
		roster_put(out, known != NULL ? known : &p);
	}
	roster_release(&all);
	return rc;
}

int cli_training_held(const struct folder *f, const struct store_restored *r, bool *out,
		      struct err *e)
{
	struct ledger_training spent = { 0 };
	int rc = r->training ? store_training(f->store, &spent, e) : 0;

	*out = r->training && (spent.sequence > 0 || f->config.train.kge.dp.epsilon > 0);
	return rc;
}

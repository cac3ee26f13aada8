/* agent/process_newcomers.c - newcomers until they are partners (agent/newcomers.h), and a new
 * partner, by an invitation or by the owner's word. */

#include "agent/process_internal.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "net/ident.h"

/* ---- partners ---- */

bool process_lists(const struct process *p, const uint8_t key[NET_KEY_BYTES])
{
	const struct store_peer *r = roster_find(&p->roster, key);

	return r != NULL && r->status == STORE_LISTED;
}

/* From now on no link of this pair goes without its secret. */
static void prove_pair(struct process *p, const uint8_t key[NET_KEY_BYTES],
		       const struct net_greet_card *card)
{
	struct store_pair pair;
	struct store_batch b = { 0 };

	if (invites_prove(&p->invites, p->folder.identity->key, key, card->pair_id, &pair)) {
		store_batch_pair(&b, &pair);
		process_put_chore(p, &b, NULL);
	}
	sodium_memzero(&pair, sizeof(pair));
}

void process_partner_up(struct process *p, const uint8_t key[NET_KEY_BYTES],
			const struct net_greet_card *card)
{
	char id[NET_KEY_TEXT];

	prove_pair(p, key, card);
	log_limit_line(&p->log, key, NET_KEY_BYTES, "up", LOG_INFO, uv_now(&p->loop),
		       "link to %s is up", process_name_of(p, key, id));
	process_post_peer(p, AGENT_EVENT_LINK_UP, key);
}

/* ---- newcomers ---- */

/* Its invitation, if it has one here, is as good as before. */
static void refuse_newcomer(struct process *p, const uint8_t key[NET_KEY_BYTES], const char *why)
{
	struct newcomer x;
	char id[NET_KEY_TEXT];

	if (!newcomers_take(&p->newcomers, key, &x))
		return;
	net_key_format(x.key, id); /* key may have been that of the list */
	figures_refuse(&p->figures, FIGURES_NEWCOMER);
	log_limit_line(&p->log, x.card.ticket, sizeof(x.card.ticket), "newcomer", LOG_WARN,
		       uv_now(&p->loop), "%s came with an invitation and was refused: it %s", id,
		       why);
	net_hub_refuse(p->hub, x.key, why);
	newcomers_let_go(&x);
}

void process_newcomer_up(struct process *p, const uint8_t key[NET_KEY_BYTES],
			 const struct net_greet_card *card)
{
	struct newcomer *x = newcomers_up(&p->newcomers, key, card, uv_now(&p->loop));

	if (x == NULL)
		net_hub_refuse(p->hub, key, "too many newcomers at a time: come again");
	else if (x->joins)
		net_hub_pause(p->hub, key, true);
}

void process_newcomer_down(struct process *p, struct newcomer *x)
{
	struct newcomer gone;

	x->up = false;
	if (x->joins || !newcomers_take(&p->newcomers, x->key, &gone))
		return;
	net_hub_refuse(p->hub, gone.key, "");
	newcomers_let_go(&gone);
}

static int meet_newcomer(struct process *p, const struct newcomer *x, const uint8_t *bytes,
			 size_t n, struct store_peer *peer, struct store_invitation **i,
			 struct err *e)
{
	struct agent_newcomer met;
	int rc = agent_core_meet(p->core, x->key, bytes, n, &met, e);

	if (rc != 0)
		return rc;
	*i = invites_good(&p->invites, x->card.ticket, process_wall_ms());
	if (*i == NULL || !roster_lets_in(&p->roster, x->key, true) ||
	    roster_sign_key_taken(&p->roster, x->key, met.sign))
		return err_set(e, ERR_REFUSED, "came after the invitation was used or ended");
	if (roster_listed(&p->roster) >= AGENT_PEERS_MAX)
		return err_set(e, ERR_REFUSED, "came when there were as many partners as can be");
	*peer = (struct store_peer){ .status = STORE_LISTED, .seen_ms = process_wall_ms() };
	memcpy(peer->key, x->key, STORE_KEY);
	memcpy(peer->sign_key, met.sign, STORE_KEY);
	snprintf(peer->name, sizeof(peer->name), "%s", met.name);
	return 0;
}

static void make_partner(struct process *p, struct newcomer *x, const struct store_peer *peer,
			 struct store_invitation *i);

void process_newcomer_says(struct process *p, struct newcomer *x, const uint8_t *bytes, size_t n)
{
	struct store_invitation *i = NULL;
	struct store_peer peer;
	struct err e = { 0 };

	if (!x->joins && meet_newcomer(p, x, bytes, n, &peer, &i, &e) != 0)
		refuse_newcomer(p, x->key, e.text);
	else if (!newcomers_keep(x, bytes, n))
		net_hub_forget(p->hub, x->key, "sent too much before it was answered");
	else if (!x->joins)
		make_partner(p, x, &peer, i);
}

void process_look_at_newcomers(struct process *p)
{
	struct newcomer *x;

	while ((x = newcomers_late(&p->newcomers, uv_now(&p->loop))) != NULL)
		refuse_newcomer(p, x->key, "said no HELLO in time");
}

/* It is a partner: what it has said goes to the core now. */
static void let_in(struct process *p, const uint8_t key[NET_KEY_BYTES])
{
	struct newcomer x;
	struct queued_message *m;

	if (!newcomers_take(&p->newcomers, key, &x))
		return;
	if (x.up) {
		net_hub_pause(p->hub, key, false);
		process_partner_up(p, key, &x.card);
	}
	while (x.up && (m = message_queue_take(&x.said)) != NULL) {
		struct agent_event event = { .kind = AGENT_EVENT_MESSAGE,
					     .bytes = m->bytes,
					     .n = m->n };

		memcpy(event.peer, key, AGENT_KEY);
		process_post(p, &event);
		free(m);
	}
	newcomers_let_go(&x);
}

/* ---- a new partner ---- */

void process_end_partnership(struct process *p, const uint8_t key[STORE_KEY])
{
	struct store_peer *r = roster_find(&p->roster, key);

	if (r != NULL)
		agent_core_catch_up(p->core, r);
	process_post_peer(p, AGENT_EVENT_PEER_REVOKED, key);
}

/* A new partner: first what we call things toward it, read where the store is; then
 * the core is told; then, when that is on disk, the owner has his answer.  A newcomer is on disk
 * before the core is told, with the use of its invitation and the pair's secret, in one
 * transaction, which comes last: so what fails has written nothing. */
struct admission {
	struct store_thread_task task;
	struct process *of;
	struct store_peer peer, before; /* before: as the roster had it */
	bool known;			/* ... if it had */
	struct store_batch batch;
	struct start_aliases aliases;
	struct asker asker;		  /* without a call: a newcomer */
	uint8_t invitation[STORE_DIGEST]; /* of a newcomer */
};

static int read_admission(struct store *s, struct store_thread_task *t, struct err *e)
{
	struct admission *a = (struct admission *)t;
	int rc = start_read_aliases(&a->aliases, s, a->of->start.graph, a->peer.key, e);

	return rc != 0 || a->batch.n == 0 ? rc : store_apply(s, &a->batch, e);
}

/* A newcomer that is no partner so far, and about to be one: the core does not know it. */
bool process_newcomer_joins(struct process *p, const uint8_t key[STORE_KEY])
{
	const struct newcomer *x = newcomers_find(&p->newcomers, key);

	return x != NULL && x->joins;
}

static void admit_partner(struct process *p, struct admission *a)
{
	bool listed = process_lists(p, a->peer.key);

	/* And the owner's request has written that: process_owner.c, carry_out(). */
	if (!listed && process_newcomer_joins(p, a->peer.key)) {
		refuse_newcomer(p, a->peer.key, "was taken off the list meanwhile");
		return;
	}
	start_use_aliases(&p->start, &a->aliases);
	process_post_added(p, &a->peer);
	if (listed)
		let_in(p, a->peer.key);
	else /* its owner has changed his mind meanwhile */
		process_end_partnership(p, a->peer.key);
}

/* It is not on disk, so it was not; what its owner has said meanwhile stands. */
static void undo_admission(struct process *p, const struct admission *a)
{
	if (process_lists(p, a->peer.key) && a->known)
		roster_put(&p->roster, &a->before);
	else if (process_lists(p, a->peer.key))
		roster_remove(&p->roster, a->peer.key);
}

static void refuse_admission(struct process *p, const struct admission *a, const struct err *e)
{
	struct invites *v = &p->invites;

	log_error("%s", e->text);
	for (size_t k = 0; k < v->n_made; k++)
		if (memcmp(v->made[k].hash, a->invitation, STORE_DIGEST) == 0)
			v->made[k].used--;
	invites_unpair(v, a->peer.key);
	refuse_newcomer(p, a->peer.key, "could not be written down here");
}

static void admission_done(struct store_thread_task *t, int status, const struct err *e)
{
	struct admission *a = (struct admission *)t;
	struct process *p = a->of;

	if (status == 0)
		admit_partner(p, a);
	else
		undo_admission(p, a);
	if (status != 0 && a->asker.call == NULL)
		refuse_admission(p, a, e);
	else if (status != 0 && a->batch.n > 0) /* what came with it is not undone */
		process_end_undecided(p, &a->asker, status, e->text);
	else if (status != 0)
		process_answer_asker(p, &a->asker, status, e->text);
	else if (a->asker.call != NULL)
		process_put_chore(p, &(struct store_batch){ 0 }, &a->asker);
	start_aliases_release(&a->aliases);
	store_batch_release(&a->batch);
	free(a);
}

static struct admission *admission_of(struct process *p, const struct store_peer *peer,
				      const struct store_peer *before)
{
	struct admission *a = mem_array(1, sizeof(*a));

	a->task = (struct store_thread_task){ read_admission, admission_done, STORE_THREAD_WRITES };
	a->of = p;
	a->peer = *peer;
	a->known = before != NULL;
	if (before != NULL)
		a->before = *before;
	return a;
}

void process_admit(struct process *p, const struct store_peer *peer,
		   const struct store_peer *before, struct store_batch *batch,
		   const struct asker *asker)
{
	struct admission *a = admission_of(p, peer, before);

	a->asker = *asker;
	store_batch_move(&a->batch, batch);
	store_thread_put(p->store_thread, &a->task);
}

/* Its use, its record and the pair's secret are written together; it hears from us after that. */
static void make_partner(struct process *p, struct newcomer *x, const struct store_peer *peer,
			 struct store_invitation *i)
{
	struct admission *a = admission_of(p, peer, roster_find(&p->roster, peer->key));
	struct store_pair pair;
	char id[NET_KEY_TEXT], name[INVITES_ID_TEXT];

	memcpy(a->invitation, i->hash, sizeof(a->invitation));
	i->used++;
	store_batch_invitation(&a->batch, i);
	store_batch_peer(&a->batch, peer);
	if (invites_prove(&p->invites, p->folder.identity->key, x->key, x->card.pair_id, &pair))
		store_batch_pair(&a->batch, &pair);
	sodium_memzero(&pair, sizeof(pair));
	roster_put(&p->roster, peer);
	x->joins = true;
	net_hub_pause(p->hub, x->key, true);
	net_key_format(x->key, id);
	invites_id(i, name);
	process_say(p, "peer", LOG_INFO,
		    "%s is a partner by invitation %s, which is good for %u more", id, name,
		    i->uses - i->used);
	store_thread_put(p->store_thread, &a->task);
}

/* tests/sim/check.c - what must hold after every event (design 3). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/best_internal.h"
#include "agent/core/core_internal.h"
#include "agent/core/session_internal.h"
#include "base/mem.h"
#include "net/msg.h"
#include "net/psi.h"
#include "tests/sim/inside.h"

/* ---- (1) charge before release ---- */

static struct released *released_in(struct sim *s, const uint8_t session[16], size_t host,
				    size_t client)
{
	struct released *r;

	for (size_t i = 0; i < s->n_released; i++)
		if (s->released[i].host == host && memcmp(s->released[i].session, session, 16) == 0)
			return &s->released[i];
	s->released = mem_resize(s->released, s->n_released + 1, sizeof(*r));
	r = &s->released[s->n_released++];
	*r = (struct released){ .host = host, .client = client };
	memcpy(r->session, session, 16);
	return r;
}

/* Labels of one side of a session that a disk knows to be reserved (with the countersignature,
 * or at all), and settled (or UINT64_MAX).  host: the Ed25519 key of that side. */
static uint64_t reserved(const struct disk *d, const uint8_t session[16], const uint8_t host[32],
			 bool countersigned, uint64_t *settled)
{
	uint64_t sum = 0;

	*settled = UINT64_MAX;
	for (size_t i = 0; i < d->n_entries; i++) {
		const struct ledger_signed *e = &d->entries[i];

		if (memcmp(e->entry.session, session, 16) != 0 ||
		    memcmp(e->entry.host, host, 32) != 0)
			continue;
		if (e->entry.kind == LEDGER_SETTLE)
			*settled = e->entry.count;
		if (e->entry.kind == LEDGER_RESERVE && (e->countersigned || !countersigned))
			sum += e->entry.count;
	}
	return sum;
}

/* Kind of a message of a translation; 0: of something else. */
static uint64_t kind_of(const struct net_map *m)
{
	struct err e = { 0 };
	uint64_t c = net_get_uint(m, "c", 0, 255, &e), k;

	if (e.code || c != CONV_TRANSLATE)
		return 0;
	k = net_get_uint(m, "k", 0, 255, &e);
	return e.code ? 0 : k;
}

/* Labels, or releases, in a message.  Each answer of a host is about one batch, whichever way
 * it is put; maps and noisy rows here are small enough for one message. */
static uint64_t spent_in(const struct sim *s, size_t from, const struct net_map *m)
{
	const struct config *c = &s->node[from].config;
	uint64_t k = kind_of(m);

	if (k == PPAT_MSG_LABELS || k == PPAT_MSG_GRAD)
		return c->ppat.batch;
	return k == PPAT_MSG_MAP || (k == PPAT_MSG_ROWS && c->privacy.noisy_rows);
}

/* An intersection begins with the initiator's SIZE, and has two of them. */
static void count_intersections(struct sim *s, const struct net_msg *m)
{
	struct err e = { 0 };
	uint64_t c = net_get_uint(&m->body, "c", 0, 255, &e);

	if (c == CONV_PSI && net_get_uint(&m->body, "k", 0, 255, &e) == NET_PSI_SIZE && !e.code)
		s->report->sizes_sent++;
}

/* The session under way that m is of.  A message that waited for its link may leave when that has
 * ended: NULL. */
static const struct session *session_of(const struct node *n, const struct net_msg *m)
{
	for (size_t i = 0; i < n->core->n_open; i++)
		if (memcmp(n->core->open[i]->id, m->session, sizeof(m->session)) == 0)
			return n->core->open[i];
	return NULL;
}

/* Is an entry on its way in the session that message m is of? */
static bool entry_under_way(const struct node *n, const struct net_msg *m)
{
	const struct session *s = session_of(n, m);

	return s != NULL && s->entry != ENTRY_NONE;
}

static void check_labels(struct sim *s, size_t from, size_t to, const struct net_msg *m)
{
	uint64_t n = spent_in(s, from, &m->body), settled, host, client;
	struct released *r;

	if (n == 0)
		return;
	r = released_in(s, m->session, from, to);
	r->labels += n;
	r->release = kind_of(&m->body) == PPAT_MSG_MAP || kind_of(&m->body) == PPAT_MSG_ROWS;
	*(r->release ? &s->report->releases_seen : &s->report->labels_seen) += n;
	if (!r->release && entry_under_way(&s->node[from], m))
		s->report->labels_beside += n;
	host = reserved(&s->node[from].disk, m->session, s->node[from].sign_public, false,
			&settled);
	client = reserved(&s->node[to].disk, m->session, s->node[from].sign_public, true, &settled);
	if (r->labels > host || (r->labels > client && !s->node[to].behind))
		sim_fail(s,
			 "release before charge: agent %zu sends label %llu of a session, its "
			 "disk has %llu reserved, agent %zu's has %llu countersigned",
			 from, (unsigned long long)r->labels, (unsigned long long)host, to,
			 (unsigned long long)client);
}

/* What a translation's client sends is its rows, or made of them. */
static void check_roles(struct sim *s, size_t from, const struct net_msg *m)
{
	const struct session *now = session_of(&s->node[from], m);
	struct err e = { 0 };
	bool client;

	if (now == NULL || net_get_uint(&m->body, "c", 0, 255, &e) != CONV_TRANSLATE || e.code != 0)
		return;
	client = now->role == AGENT_CLIENT;
	s->report->from_clients += client;
	if (s->node[from].config.federation.roles ==
	    (client ? CONFIG_HOST_ONLY : CONFIG_CLIENT_ONLY))
		sim_fail(s, "agent %zu %s, which its owner does not want", from,
			 client ? "sends its rows" : "takes rows in");
}

/* What a peer is told of a failure is nothing about our rows. */
static void check_words(struct sim *s, size_t from, const struct net_msg *m)
{
	char why[NET_REASON_MAX + 1] = "";
	struct err e = { 0 };

	net_get_text(&m->body, "why", why, sizeof(why), &e);
	if (strstr(why, "slot") != NULL || strstr(why, "NaN") != NULL)
		sim_fail(s, "agent %zu tells of its rows: %s", from, why);
	s->report->private_ends += strstr(why, "own log") != NULL;
}

void check_send(struct sim *s, size_t from, size_t to, const uint8_t *bytes, size_t n)
{
	struct net_msg m;
	struct err e = { 0 };

	if (net_msg_decode(&m, bytes, n, &e) != 0) {
		sim_fail(s, "agent %zu sends what cannot be decoded: %s", from, e.text);
		return;
	}
	sim_log(s, "%zu -> %zu %s %02x%02x (%zu bytes)", from, to, net_msg_name(m.type),
		m.session[0], m.session[1], n);
	if (m.type == NET_MSG_CONV) {
		count_intersections(s, &m);
		check_labels(s, from, to, &m);
		check_roles(s, from, &m);
	}
	if (m.type == NET_MSG_ROUND)
		sim_rounds_check_send(s, from, to, &m);
	sim_scores_check_send(s, from, &m);
	if (m.type == NET_MSG_ABORT)
		check_words(s, from, &m);
	if (!s->node[from].lists[to])
		sim_fail(s, "agent %zu sends to agent %zu, which its owner has revoked", from, to);
	net_msg_release(&m);
}

/* Among honest agents no session ends because somebody broke the protocol or the
 * ledger's rules, whatever links and crashes do. */
void check_notice(struct node *n, const struct agent_notice *notice)
{
	bool broken = notice->code == ERR_PROTO || notice->code == ERR_LEDGER ||
		      notice->code == ERR_STORE;

	if (n->sim->odd_replays > 0 || n->sim->o.plant >= SIM_LIES_LABELS)
		return; /* no link like TCP's would do that; or they are not honest */
	if (notice->kind == AGENT_NOTICE_SESSION && broken)
		sim_fail(n->sim, "agent %zu: %s", n->at, notice->text);
}

/* ---- (2) caps, counted from the entries themselves ---- */

struct count { /* of one host: labels [0], releases [1] */
	uint64_t pair[2][SIM_CROWD_MAX], all[2], cap_pair[2][SIM_CROWD_MAX], cap_all[2];
};

/* Returns toward whom it is; SIM_NOBODY: it is the partner's. */
static size_t count_entry(const struct sim *s, const struct disk *d, const struct node *n,
			  const struct ledger_entry *e, struct count *c)
{
	size_t to = node_by_sign(s, e->client), k = ledger_is_release(e->mechanism.noise);
	uint64_t settled;

	if (memcmp(e->host, n->sign_public, 32) != 0 || to == SIM_NOBODY)
		return SIM_NOBODY;
	if (e->kind == LEDGER_CONTRACT) {
		c->cap_pair[k][to] = e->caps.pair;
		c->cap_all[k] = e->caps.lineage > c->cap_all[k] ? e->caps.lineage : c->cap_all[k];
	} else if (e->kind == LEDGER_RESERVE) {
		c->pair[k][to] += e->count;
		c->all[k] += e->count;
	} else if (e->kind == LEDGER_SETTLE) {
		uint64_t was = reserved(d, e->session, e->host, false, &settled);

		c->pair[k][to] -= was - e->count;
		c->all[k] -= was - e->count;
	}
	return to;
}

static void check_caps(struct sim *s, struct node *n)
{
	struct count c = { 0 };
	uint64_t seen[2] = { 0 };

	for (size_t i = 0; i < n->disk.n_entries; i++) {
		size_t to = count_entry(s, &n->disk, n, &n->disk.entries[i].entry, &c);

		for (size_t k = 0; to != SIM_NOBODY && k < 2; k++)
			if (c.pair[k][to] > c.cap_pair[k][to])
				sim_fail(s, "agent %zu: cap toward %zu passed: %llu of %llu", n->at,
					 to, (unsigned long long)c.pair[k][to],
					 (unsigned long long)c.cap_pair[k][to]);
	}
	for (size_t i = 0; i < s->n_released; i++)
		if (s->released[i].host == n->at)
			seen[s->released[i].release] += s->released[i].labels;
	for (size_t k = 0; k < 2; k++)
		if (c.all[k] > c.cap_all[k] || (seen[k] > c.all[k] && !n->behind))
			sim_fail(s, "agent %zu: %llu %s seen, %llu on its ledger, cap %llu", n->at,
				 (unsigned long long)seen[k], k ? "releases" : "labels",
				 (unsigned long long)c.all[k], (unsigned long long)c.cap_all[k]);
}

/* What a disk counts as spent in one session by this host: what is settled, or all that
 * is reserved. */
static uint64_t counted_in(const struct disk *d, const uint8_t session[16], const uint8_t host[32])
{
	uint64_t settled, sum = reserved(d, session, host, false, &settled);

	return settled != UINT64_MAX ? settled : sum;
}

/* What a client's disk must count.  One that was put back has what both have signed, as the host's
 * disk knows; an entry whose countersignature the host has lost comes with their next session. */
static uint64_t owed_by_client(const struct released *r, const struct node *host,
			       const struct node *client)
{
	uint64_t settled, agreed;

	if (!client->put_back)
		return r->labels;
	agreed = reserved(&host->disk, r->session, host->sign_public, true, &settled);
	return agreed < r->labels ? agreed : r->labels;
}

/* At the end: no label was on a wire that the disks of both do not count. */
static void check_spent(struct sim *s)
{
	for (size_t i = 0; i < s->n_released; i++) {
		const struct released *r = &s->released[i];
		const struct node *host = &s->node[r->host], *client = &s->node[r->client];
		uint64_t at_host = counted_in(&host->disk, r->session, host->sign_public);
		uint64_t at_client = counted_in(&client->disk, r->session, host->sign_public);

		if (r->labels > at_host || owed_by_client(r, host, client) > at_client)
			sim_fail(s,
				 "%llu labels of a session were on the wire; agent %zu counts "
				 "%llu, agent %zu %llu",
				 (unsigned long long)r->labels, r->host,
				 (unsigned long long)at_host, r->client,
				 (unsigned long long)at_client);
	}
}

/* ---- (4) both ledgers tell the same story ---- */

enum { CHAIN_MAX = 4096 };

static void check_pair(struct sim *s, struct node *a, struct node *b)
{
	static const struct ledger_signed *ca[CHAIN_MAX], *cb[CHAIN_MAX];
	size_t na = disk_chain(&a->disk, a->sign_public, b->sign_public, ca, CHAIN_MAX);
	size_t nb = disk_chain(&b->disk, a->sign_public, b->sign_public, cb, CHAIN_MAX);
	size_t both = na < nb ? na : nb, longer = na > nb ? na : nb;
	const struct ledger_signed *ahead;
	const struct node *has;

	for (size_t i = 0; i < both; i++) {
		if (memcmp(ca[i]->hash, cb[i]->hash, 32) != 0)
			sim_fail(s, "ledgers of %zu and %zu differ at entry %zu", a->at, b->at,
				 i + 1);
		if (i + 1 < longer && !a->behind && !b->behind &&
		    (!ca[i]->countersigned || !cb[i]->countersigned))
			sim_fail(s, "ledgers of %zu and %zu: entry %zu goes on an unsigned one",
				 a->at, b->at, i + 2);
	}
	if (a->behind || b->behind) /* what is there is the same: the rest is handed back */
		return;
	if (longer > both + 1)
		sim_fail(s, "ledgers of %zu and %zu: more than one entry in flight", a->at, b->at);
	if (longer == both)
		return;
	ahead = na > nb ? ca[both] : cb[both];
	has = na > nb ? a : b;
	if (ahead->countersigned || memcmp(ahead->entry.host, has->sign_public, 32) != 0)
		sim_fail(s, "ledgers of %zu and %zu: an entry is on one side only, signed by both",
			 a->at, b->at);
}

static bool settled_on(const struct disk *d, const uint8_t session[16], const uint8_t host[32])
{
	for (size_t i = 0; i < d->n_entries; i++)
		if (d->entries[i].entry.kind == LEDGER_SETTLE && d->entries[i].countersigned &&
		    memcmp(d->entries[i].entry.host, host, 32) == 0 &&
		    memcmp(d->entries[i].entry.session, session, 16) == 0)
			return true;
	return false;
}

/* A rotation leaves the client's rows as wide as they are. */
static void check_disclosed(struct sim *s, const struct ledger_entry *e)
{
	size_t client = node_by_sign(s, e->client);

	if (e->kind == LEDGER_SETTLE && client != SIM_NOBODY &&
	    (e->translator == LEDGER_PROCRUSTES || e->translator == LEDGER_UNROTATED) &&
	    e->floats != e->rows * s->node[client].start->ent_floats)
		sim_fail(s, "%llu numbers on the ledger for %llu rows of agent %zu",
			 (unsigned long long)e->floats, (unsigned long long)e->rows, client);
}

/* From this session of its disk on. */
static void check_sessions(struct sim *s, struct node *n, size_t first)
{
	if (n->disk.n_entries > 0)
		check_disclosed(s, &n->disk.entries[n->disk.n_entries - 1].entry);
	for (size_t i = first; i < n->disk.n_sessions; i++) {
		const struct store_session *r = &n->disk.sessions[i];
		size_t peer = node_by_key(s, r->peer);
		const uint8_t *host =
			r->role == STORE_HOST ? n->sign_public : s->node[peer].sign_public;

		if (s->o.fed || r->state != STORE_DONE || r->outcome != 0 || n->behind ||
		    s->node[peer].behind)
			continue;
		if (!settled_on(&n->disk, r->id, host))
			sim_fail(s, "agent %zu: a finished session without a receipt", n->at);
		if (r->role == STORE_HOST && !settled_on(&s->node[peer].disk, r->id, host))
			sim_fail(s, "agent %zu: finished, but %zu has no receipt", n->at, peer);
	}
}

/* ---- (3) best, (5) Busy ---- */

static void check_best(struct sim *s, struct node *n)
{
	uint8_t said[32], is[32];
	double score = n->core->has_best ? n->core->best_score : -1.0;

	agent_core_best_digest(n->core, said);
	kge_emb_digest(agent_core_best(n->core), is);
	if (memcmp(said, is, 32) != 0)
		sim_fail(s, "agent %zu: the best tables are not what they were", n->at);
	if (n->disk.has_best && score < n->disk.best.valid_score)
		sim_fail(s, "agent %zu: best fell from %.6f to %.6f", n->at,
			 n->disk.best.valid_score, score);
	if (n->disk.has_best && n->disk.best.valid_score < n->best_seen)
		sim_fail(s, "agent %zu: best on disk fell", n->at);
	if (n->disk.has_best)
		n->best_seen = n->disk.best.valid_score;
	if (n->disk.has_best && n->core->n_commits == 0) {
		kge_emb_digest(n->disk.tables, is);
		if (memcmp(said, is, 32) != 0)
			sim_fail(s, "agent %zu: best in memory is not best on disk", n->at);
	}
}

/* What is tried next begins with the best, or with what the last round has left: on disk, too. */
static void check_begins_with(struct sim *s, struct node *n)
{
	const struct agent_core *c = n->core;
	uint8_t work[32], should[32];

	if (s->o.fed || !c->trained || c->doing != DOING_NOTHING || c->in_round != 0)
		return;
	kge_emb_digest(c->work, work);
	kge_emb_digest(latest_served(c), should);
	if (memcmp(work, should, 32) != 0)
		sim_fail(s,
			 "agent %zu: backtracking was lost, what is tried next does not begin "
			 "with the %s tables",
			 n->at, latest_keeps(c) ? "latest" : "best");
	if (!latest_keeps(c) || c->n_commits > 0 || c->rounds + c->lone_rounds == 0)
		return;
	kge_emb_digest(n->disk.latest_tables, should);
	if (memcmp(work, should, 32) != 0)
		sim_fail(s, "agent %zu: the latest tables are not those on disk", n->at);
}

/* Each with another peer, half of them as host at most, and no more than the owner allows. */
static void check_open(struct sim *s, struct node *n)
{
	const struct agent_core *c = n->core;
	size_t hosts = 0, in_turn = 0;
	size_t most = session_hosts_beside(c) ? n->config.federation.sessions / 2 : 1;

	for (size_t i = 0; i < c->n_open; i++) {
		hosts += c->open[i]->role == AGENT_HOST;
		in_turn += c->open[i]->in_turn;
		for (size_t k = 0; k < i; k++)
			if (c->open[i]->peer == c->open[k]->peer)
				sim_fail(s, "agent %zu: two sessions with one peer", n->at);
	}
	if (c->n_open + c->detached_jobs > (s->o.fed ? 1 : n->config.federation.sessions))
		sim_fail(s, "agent %zu: %zu sessions at a time", n->at,
			 c->n_open + c->detached_jobs);
	if (hosts > most || in_turn != (c->doing == DOING_SESSION))
		sim_fail(s, "agent %zu: host of %zu sessions, %zu of them what it does", n->at,
			 hosts, in_turn);
	if (c->n_open > s->report->most_sessions)
		s->report->most_sessions = c->n_open;
	s->report->beside += in_turn < c->n_open && c->doing != DOING_NOTHING;
}

/* When the check has first seen this session. */
static uint64_t since_ms(const struct sim *s, struct node *n, uint64_t serial)
{
	struct sim_seen *free_one = NULL;

	for (size_t i = 0; i < CONFIG_SESSIONS_MAX; i++) {
		if (n->seen[i].serial == serial)
			return n->seen[i].since_ms;
		if (n->seen[i].serial == 0)
			free_one = &n->seen[i];
	}
	assert(free_one != NULL);
	*free_one = (struct sim_seen){ serial, s->now_ms };
	return s->now_ms;
}

static void forget_ended(struct node *n)
{
	const struct agent_core *c = n->core;

	for (size_t i = 0; i < CONFIG_SESSIONS_MAX; i++) {
		bool open = false;

		for (size_t k = 0; k < c->n_open; k++)
			open |= c->open[k]->serial == n->seen[i].serial;
		if (!open)
			n->seen[i].serial = 0;
	}
}

static void check_busy(struct sim *s, struct node *n)
{
	const struct agent_core *c = n->core;
	bool idle = c->job == NULL && c->detached_jobs == 0 && c->n_commits == 0 &&
		    c->n_open == 0 && c->fed.now == NULL;
	size_t jobs = (c->job != NULL) + c->detached_jobs + (c->answers.job != NULL);

	if (idle && c->doing != DOING_NOTHING && n->started && !c->stopped)
		sim_fail(s, "agent %zu: busy with nothing", n->at);
	check_open(s, n);
	forget_ended(n);
	for (size_t i = 0; i < c->n_open; i++) {
		const struct session *o = c->open[i];

		jobs += o->job != NULL;
		if (s->now_ms - since_ms(s, n, o->serial) >
			    config_ms(n->config.federation.session_s) &&
		    !sim_frozen(n))
			sim_fail(s, "agent %zu: busy beyond its lease, in phase '%s'", n->at,
				 session_phase_name(o->phase));
	}
	if (jobs != n->n_jobs)
		sim_fail(s, "agent %zu: lost count of its jobs", n->at);
}

/* The queue in memory and on disk, once nothing is under way between them. */
static void check_queue(struct sim *s, struct node *n)
{
	size_t queued = 0;

	if (n->core->n_commits > 0)
		return;
	for (size_t i = 0; i < n->core->n_peers; i++)
		queued += n->core->peers[i]->queued;
	if (queued != n->disk.n_queue)
		sim_fail(s, "agent %zu: %zu signals queued, %zu on disk", n->at, queued,
			 n->disk.n_queue);
}

/* What has come of partners' rows is on disk, and a reputation is one. */
static void check_judgements(struct sim *s, struct node *n)
{
	static const struct store_judgement none;

	for (size_t i = 0; i < n->core->n_peers; i++) {
		const struct peer *p = n->core->peers[i];
		const struct store_judgement *j = &p->judgement;
		const struct store_judgement *disk = disk_judgement(&n->disk, p->info.key);

		if (j->hurt > j->judged || !(j->reputation >= 0 && j->reputation <= 1) ||
		    (j->quarantined && j->hurt == 0))
			sim_fail(s, "agent %zu: a judgement that cannot be", n->at);
		if (j->quarantined && (p->queued || p->in_round))
			sim_fail(s, "agent %zu takes in rows of one in quarantine", n->at);
		disk = disk != NULL ? disk : &none;
		if (n->core->n_commits == 0 && p->info.status == STORE_LISTED &&
		    (j->judged != disk->judged || j->hurt != disk->hurt ||
		     j->quarantined != disk->quarantined ||
		     (j->judged > 0 && j->reputation != disk->reputation)))
			sim_fail(s, "agent %zu: %llu verdicts on a partner, %llu on disk", n->at,
				 (unsigned long long)j->judged, (unsigned long long)disk->judged);
	}
}

static void count_verdicts(const struct sim *s)
{
	for (size_t i = 0; i < s->n; i++)
		for (size_t k = 0; k < s->node[i].disk.n_judgements; k++) {
			const struct store_judgement *j = &s->node[i].disk.judgements[k];

			s->report->verdicts += j->judged;
			s->report->hurt += j->hurt;
			s->report->quarantined += j->quarantined;
		}
}

/* Until its store says that it waits for nobody, an agent that was put back spends nothing. */
static void check_behind(struct sim *s, struct node *n)
{
	const struct store_meta *m = disk_meta(&n->disk, STORE_META_RESTORED);
	struct store_restored r;

	if (!n->behind || m == NULL)
		return;
	for (size_t i = 0; i < n->core->n_open; i++)
		if (n->core->open[i]->role == AGENT_HOST && !s->o.fed &&
		    n->core->restored.n_waits > 0)
			sim_fail(s, "agent %zu hosts a session before all partners were asked",
				 n->at);
	if (store_restored_read(&r, m->base, m->len, NULL) != 0)
		sim_fail(s, "agent %zu: meta restored does not read", n->at);
	n->behind = r.n_waits > 0;
	store_restored_release(&r);
}

void check_node(struct node *n)
{
	struct sim *s = n->sim;

	if (s->report->failed)
		return;
	check_behind(s, n);
	check_best(s, n);
	check_begins_with(s, n);
	sim_frames_check_node(n);
	if (s->o.fed)
		sim_rounds_check_node(n);
	sim_scores_check_node(n);
	check_busy(s, n);
	if (!sim_crowd(s))
		check_caps(s, n);
	check_queue(s, n);
	check_judgements(s, n);
}

/* ---- a crowd: after each event what has changed, and one other agent ---- */

bool sim_crowd(const struct sim *s)
{
	return s->n > SIM_AGENTS_MAX;
}

static void check_pair_of(struct sim *s, struct node *n, const struct ledger_entry *e)
{
	bool ours = memcmp(e->host, n->sign_public, 32) == 0;
	size_t with = node_by_sign(s, ours ? e->client : e->host);
	struct node *other = &s->node[with];

	check_pair(s, with < n->at ? other : n, with < n->at ? n : other);
}

static void check_crowd(struct sim *s, struct node *n)
{
	struct node *other = &s->node[s->report->events % s->n];

	if (other->alive)
		check_busy(s, other);
	if (n->disk.n_entries == n->checked_entries && n->disk.n_sessions == n->checked_sessions)
		return;
	if (n->disk.n_entries > n->checked_entries)
		check_pair_of(s, n, &n->disk.entries[n->disk.n_entries - 1].entry);
	check_sessions(s, n, n->disk.n_sessions > 8 ? n->disk.n_sessions - 8 : 0);
	n->checked_entries = n->disk.n_entries;
	n->checked_sessions = n->disk.n_sessions;
}

/* What was not looked at after each event. */
static void check_crowd_quiet(struct sim *s)
{
	for (size_t i = 0; sim_crowd(s) && i < s->n; i++) {
		check_caps(s, &s->node[i]);
		check_sessions(s, &s->node[i], 0);
		for (size_t k = 0; k < s->node[i].disk.n_entries; k++)
			check_pair_of(s, &s->node[i], &s->node[i].disk.entries[k].entry);
	}
}

void check_all(struct sim *s)
{
	struct node *n = &s->node[s->current];

	if (s->report->failed)
		return;
	if (sim_crowd(s)) {
		check_crowd(s, n);
		return;
	}
	for (size_t i = 0; i < s->n; i++) {
		if (s->node[i].alive)
			check_busy(s, &s->node[i]);
		if (s->node[i].alive && s->o.fed)
			sim_rounds_check_end(&s->node[i]);
		if (&s->node[i] != n)
			check_pair(s, i < n->at ? &s->node[i] : n, i < n->at ? n : &s->node[i]);
	}
	check_sessions(s, n, 0);
}

/* ---- (7) a crash loses at most the job that was not finished ---- */

void check_restart(struct node *n)
{
	struct agent_status st;

	agent_core_status(n->core, &st);
	if (st.has_best != n->disk.has_best ||
	    (st.has_best && st.best_score != n->disk.best.valid_score))
		sim_fail(n->sim, "agent %zu: restarted without its best", n->at);
	if (st.queued > n->disk.n_queue)
		sim_fail(n->sim, "agent %zu: restarted with another queue", n->at);
	agent_status_release(&st);
	check_best(n->sim, n);
	check_begins_with(n->sim, n);
	sim_frames_check_restart(n);
	if (n->sim->o.fed)
		sim_rounds_check_restart(n);
}

/* ---- liveness ---- */

/* To which it keeps links, whoever else comes. */
static size_t links_of(const struct sim *s, size_t at)
{
	uint32_t links = s->node[at].config.federation.few.links;

	return links == 0 || s->o.fed ? SIZE_MAX : links;
}

void check_quiet(struct sim *s)
{
	check_spent(s);
	check_crowd_quiet(s);
	count_verdicts(s);
	if (s->o.fed) {
		sim_rounds_check_quiet(s);
		return;
	}
	for (size_t i = 0; i < s->n; i++) {
		struct agent_status st;

		if (!s->node[i].alive) {
			sim_fail(s, "agent %zu is down at the end", i);
			return;
		}
		if (s->node[i].behind)
			sim_fail(s, "agent %zu still waits for what its backup lacks", i);
		agent_core_status(s->node[i].core, &st);
		if (st.state != AGENT_READY && st.state != AGENT_SLEEP)
			sim_fail(s, "agent %zu is busy at the end: %s", i, st.doing);
		if (st.queued > 0 || s->node[i].disk.n_queue > 0)
			sim_fail(s, "agent %zu still has %zu signals queued at the end", i,
				 st.queued);
		for (size_t p = 0; p < st.n_peers && st.n_peers <= links_of(s, i); p++)
			if (!st.peer[p].linked)
				sim_fail(s, "agent %zu has lost peer %zu for good", i, p);
		s->report->sessions += st.sessions;
		agent_status_release(&st);
	}
	if (s->o.frames)
		sim_frames_check_quiet(s);
}

#include "tests/sim/sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/core/core_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/rounds_internal.h"
#include "base/mem.h"
#include "tests/sim/inside.h"

enum {
	FAULTS_MS = 60000,
	PATIENCE_MS = 900000,
	EVENTS_MAX = 400000,
	FROZEN_MAX_MS = 20000,
	SILENCE_MS = 5000, /* of a link, before keepalive calls it dead */
};

/* ---- the clock ---- */

static bool before(const struct event *a, const struct event *b)
{
	return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->order < b->order;
}

static void swap(struct event *a, struct event *b)
{
	struct event t = *a;

	*a = *b;
	*b = t;
}

static void push(struct sim *s, struct event e)
{
	size_t i = s->n_heap++;

	if (s->n_heap > s->cap_heap) {
		s->cap_heap = s->cap_heap ? 2 * s->cap_heap : 256;
		s->heap = mem_resize(s->heap, s->cap_heap, sizeof(*s->heap));
	}
	s->heap[i] = e;
	for (; i > 0 && before(&s->heap[i], &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&s->heap[i], &s->heap[(i - 1) / 2]);
}

void sim_at(struct sim *s, uint64_t delay_ms, struct event e)
{
	e.at_ms = s->now_ms + delay_ms;
	e.order = ++s->order;
	push(s, e);
}

static struct event pop(struct sim *s)
{
	struct event first = s->heap[0];
	size_t i = 0;

	s->heap[0] = s->heap[--s->n_heap];
	for (;;) {
		size_t least = i, l = 2 * i + 1, r = l + 1;

		if (l < s->n_heap && before(&s->heap[l], &s->heap[least]))
			least = l;
		if (r < s->n_heap && before(&s->heap[r], &s->heap[least]))
			least = r;
		if (least == i)
			return first;
		swap(&s->heap[i], &s->heap[least]);
		i = least;
	}
}

/* ---- saying ---- */

void sim_log(struct sim *s, const char *fmt, ...)
{
	va_list ap;

	if (!s->o.verbose)
		return;
	printf("%9.3f ", (double)s->now_ms / 1000.0);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

void sim_fail(struct sim *s, const char *fmt, ...)
{
	char why[SIM_WHY_MAX / 2];
	va_list ap;

	if (s->report->failed)
		return;
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	s->report->failed = true;
	snprintf(s->report->why, sizeof(s->report->why), "seed %llu, event %llu, %.3f s: %s",
		 (unsigned long long)s->o.seed, (unsigned long long)s->report->events,
		 (double)s->now_ms / 1000.0, why);
	sim_log(s, "FAILED: %s", why);
}

bool sim_chance(struct sim *s, uint32_t in_10000)
{
	return s->faults && rng_below(&s->rng, 10000) < in_10000;
}

/* ---- agents ---- */

bool sim_frozen(const struct node *n)
{
	return n->alive && n->sim->now_ms < n->frozen_until_ms;
}

/* Keys are hashes, or like them. */
static size_t place_of(const uint8_t key[32])
{
	return ((size_t)key[0] | (size_t)key[1] << 8) % KEYS_MAX;
}

size_t node_by_key(const struct sim *s, const uint8_t key[32])
{
	for (size_t i = place_of(key); s->by_key[i] != 0; i = (i + 1) % KEYS_MAX)
		if (memcmp(s->node[s->by_key[i] - 1].key, key, 32) == 0)
			return s->by_key[i] - 1U;
	return SIM_NOBODY;
}

size_t node_by_sign(const struct sim *s, const uint8_t sign[32])
{
	for (size_t i = place_of(sign); s->by_sign[i] != 0; i = (i + 1) % KEYS_MAX)
		if (memcmp(s->node[s->by_sign[i] - 1].sign_public, sign, 32) == 0)
			return s->by_sign[i] - 1U;
	return SIM_NOBODY;
}

static void put_key(uint16_t table[KEYS_MAX], const uint8_t key[32], size_t at)
{
	size_t i = place_of(key);

	while (table[i] != 0)
		i = (i + 1) % KEYS_MAX;
	table[i] = (uint16_t)(at + 1);
}

void sim_know_keys(struct sim *s)
{
	for (size_t i = 0; i < s->n; i++) {
		put_key(s->by_key, s->node[i].key, i);
		put_key(s->by_sign, s->node[i].sign_public, i);
	}
}

static void crash(struct node *n)
{
	struct sim *s = n->sim;

	sim_log(s, "%zu: CRASH", n->at);
	s->report->crashes++;
	s->full_since_heal = 0;
	n->alive = n->doomed = n->started = false;
	memset(n->seen, 0, sizeof(n->seen));
	n->frozen_until_ms = 0;
	shell_drop(n, true);
	if (s->o.plant == SIM_FORGETS_ENTRY && n->disk.n_entries > 0)
		n->disk.n_entries--;
	for (size_t other = 0; other < s->n; other++) {
		n->keeps[other] = false;
		if (other != n->at)
			link_cut(s, n->at, other, true);
	}
	sim_at(s, 100 + rng_below(&s->rng, 6000),
	       (struct event){ .what = EV_RESTART, .node = n->at });
}

double sim_cpu_s(const struct sim *s)
{
	struct timespec t;

	if (!s->o.timed)
		return 0;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void node_event(struct node *n, struct agent_event *e)
{
	double before_s;

	if (!n->alive || sim_frozen(n))
		return;
	e->now_ms = n->sim->now_ms;
	e->wall_ms = (int64_t)(1700000000000 + n->sim->now_ms);
	n->sim->current = n->at;
	n->effects_before = n->effects;
	before_s = sim_cpu_s(n->sim);
	agent_core_event(n->core, e);
	n->sim->report->cpu_s += sim_cpu_s(n->sim) - before_s;
	n->started = true;
	if (n->doomed)
		crash(n);
	else
		check_node(n);
}

/* A command of the owner that was not on disk yet is forgotten. */
static void lists_from_disk(struct node *n)
{
	for (size_t i = 0; i < n->disk.n_peers; i++) {
		size_t peer = node_by_key(n->sim, n->disk.peers[i].key);

		n->lists[peer] = n->disk.peers[i].status == STORE_LISTED;
	}
}

/* Planted: what the disk gives back is not what it was given. */
static const struct store_meta *tear(struct store_meta *out, const struct store_meta *m)
{
	*out = *m;
	out->base = mem_copy(m->base, m->len);
	out->base[m->len - 1] ^= 1;
	return out;
}

static void birth(struct node *n)
{
	struct store_meta torn = { 0 };
	struct store_core saved;
	struct err e = { 0 };
	struct agent_parts parts = { .config = &n->planted,
				     .io = &n->io,
				     .learner =
					     n->real ? agent_learner_ops(n->real) : &n->synthetic,
				     .graph = n->graph,
				     .names = n->names,
				     .saved = &saved,
				     .key = n->key,
				     .sign_public = n->sign_public,
				     .sign_secret = n->sign_secret,
				     .lineage = n->lineage,
				     .rounds_host = n->rounds_host,
				     .retry_min_ms = 50,
				     .retry_max_ms = 3000 };
	struct agent_event start = { .kind = AGENT_EVENT_START };

	n->life++;
	n->planted = n->config;
	lists_from_disk(n);
	rng_seed(&n->draw, n->sim->o.seed * 1000003 + n->at * 1009 + n->life);
	disk_load(&n->disk, n->sign_public, &saved);
	parts.best = kge_emb_copy(n->disk.has_best ? n->disk.tables : n->start);
	parts.latest = n->disk.has_latest ? kge_emb_copy(n->disk.latest_tables) : NULL;
	parts.beside = n->disk.beside_tables;
	parts.part = disk_meta(&n->disk, AGENT_META_PART);
	parts.validation = disk_meta(&n->disk, AGENT_META_VALIDATION);
	if (n->sim->o.plant == SIM_TORN_PART && parts.part != NULL)
		parts.part = tear(&torn, parts.part);
	if (n->sim->o.plant == SIM_TORN_DISK && n->disk.has_best)
		parts.best->ent[1] += 1e-6F;
	if (n->sim->o.plant == SIM_TORN_LATEST && parts.latest != NULL)
		parts.latest->ent[1] += 1e-6F;
	if (n->sim->o.plant == SIM_FORGETS_ROLE)
		n->planted.federation.roles = CONFIG_BOTH_ROLES; /* the checks read the node's */
	if (agent_core_new(&n->core, &parts, &e) != 0) {
		sim_fail(n->sim, "agent %zu does not start: %s", n->at, e.text);
		disk_unload(&n->disk, &saved);
		free(torn.base);
		return;
	}
	disk_unload(&n->disk, &saved);
	free(torn.base);
	n->alive = true;
	sim_log(n->sim, "%zu: started, life %llu", n->at, (unsigned long long)n->life);
	check_restart(n);
	node_event(n, &start);
}

/* ---- the story's faults ---- */

static size_t other_than(struct sim *s, size_t a)
{
	return (a + 1 + rng_below(&s->rng, (uint32_t)s->n - 1)) % s->n;
}

static void partition(struct sim *s, bool apart)
{
	uint32_t group = rng_below(&s->rng, 1u << s->n);

	for (size_t a = 0; a < s->n; a++) {
		for (size_t b = a + 1; b < s->n; b++) {
			struct link *l = link_of(s, a, b);

			l->apart = apart && ((group >> a) & 1) != ((group >> b) & 1);
			if (l->apart && l->up)
				link_cut(s, a, b, false);
			net_link_dial(s, a, b);
		}
	}
	sim_log(s, "partition %s", apart ? "begins" : "ends");
}

/* A key that nobody knows, or that the owner has revoked. */
static void unlisted_key(struct sim *s, const struct node *n, uint8_t out[32])
{
	memset(out, 0x5a, 32);
	for (size_t i = 0; i < s->n; i++)
		if (i != n->at && !n->lists[i])
			memcpy(out, s->node[i].key, 32);
}

/* It comes by with a message that it has picked up somewhere. */
static void stranger(struct sim *s, struct node *n)
{
	struct agent_event up = { .kind = AGENT_EVENT_LINK_UP },
			   m = { .kind = AGENT_EVENT_MESSAGE };
	uint64_t effects = n->effects;
	struct link *l = link_of(s, n->at, other_than(s, n->at));

	if (!n->alive || sim_frozen(n))
		return;
	unlisted_key(s, n, up.peer);
	unlisted_key(s, n, m.peer);
	s->report->strangers++;
	node_event(n, &up);
	if (n->alive && l->n_old[0] > 0) {
		m.bytes = l->old[0][0].bytes;
		m.n = l->old[0][0].n;
		node_event(n, &m);
	}
	if (n->alive && n->effects != effects)
		sim_fail(s, "agent %zu: a stranger caused %llu effects", n->at,
			 (unsigned long long)(n->effects - effects));
}

static void revoke_or_add(struct sim *s, size_t a, size_t b)
{
	struct node *n = &s->node[a], *peer = &s->node[b];
	bool added = !n->lists[b];
	struct agent_event e = { .kind = added ? AGENT_EVENT_PEER_ADDED : AGENT_EVENT_PEER_REVOKED,
				 .name = "again",
				 .address = "sim" };

	if (!n->alive || sim_frozen(n))
		return;
	n->lists[b] = true; /* until it has said so to its partner */
	memcpy(e.peer, peer->key, 32);
	memcpy(e.sign, peer->sign_public, 32);
	sim_log(s, "%zu: owner %s %zu", a, added ? "adds" : "revokes", b);
	node_event(n, &e);
	n->lists[b] = added;
}

static void garbage(struct sim *s, struct node *n)
{
	uint8_t bytes[48];
	size_t from = other_than(s, n->at), len = rng_below(&s->rng, sizeof(bytes));
	struct agent_event e = { .kind = AGENT_EVENT_MESSAGE, .bytes = bytes, .n = len };

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)rng_u64(&s->rng);
	bytes[0] = 0x93; /* looks like the beginning of a message */
	memcpy(e.peer, s->node[from].key, 32);
	node_event(n, &e);
}

/* Its process is stopped, and goes on later (SIGSTOP, SIGCONT).  Its links stay up until keepalive
 * notices; what happens to it meanwhile waits. */
static void stop_for_a_while(struct sim *s, struct node *n)
{
	uint64_t most = s->faults_end_ms - s->now_ms, ms = 100 + rng_below(&s->rng, FROZEN_MAX_MS);

	if (!n->alive || sim_frozen(n))
		return;
	ms = ms < most ? ms : most;
	n->frozen_until_ms = s->now_ms + ms;
	n->fed_since_ms += ms; /* its deadlines pass, and it cannot know */
	sim_scores_frozen(s, n, ms);
	for (size_t i = 0; i < CONFIG_SESSIONS_MAX; i++)
		n->seen[i].since_ms += ms;
	s->report->freezes++;
	sim_log(s, "%zu: FROZEN for %.1f s", n->at, (double)ms / 1000.0);
	sim_at(s, SILENCE_MS, (struct event){ .what = EV_SILENCE, .node = n->at, .life = n->life });
}

static void trouble(struct sim *s)
{
	size_t a = rng_below(&s->rng, (uint32_t)s->n), b = other_than(s, a);
	struct link *l = link_of(s, a, b);
	struct agent_event train = { .kind = AGENT_EVENT_TRAIN };

	switch (s->o.plant == SIM_STUCK_BUSY ? 2 : rng_below(&s->rng, s->o.fed ? 11 : 10)) {
	case 0:
		link_cut(s, a, b, false);
		break;
	case 1:
	case 2:
		l->silent[rng_below(&s->rng, 2)] = true; /* a black hole, until it is cut */
		sim_log(s, "%zu-%zu silent", a, b);
		break;
	case 3:
		partition(s, true);
		break;
	case 4:
		partition(s, false);
		break;
	case 5:
		if (s->node[a].alive)
			crash(&s->node[a]);
		break;
	case 6:
		stranger(s, &s->node[a]);
		break;
	case 7:
		revoke_or_add(s, a, b);
		break;
	case 8:
		garbage(s, &s->node[a]);
		break;
	case 10:
		stop_for_a_while(s, &s->node[a]);
		break;
	default:
		node_event(&s->node[a], &train);
	}
}

static void silence_noticed(struct sim *s, const struct node *n)
{
	for (size_t other = 0; other < s->n; other++)
		if (other != n->at && link_of(s, n->at, other)->up)
			link_cut(s, n->at, other, false);
}

/* In its order with all else that waits. */
static void wait_for_thaw(struct sim *s, struct event *e)
{
	const struct link *l = link_of(s, e->node, e->from);

	if (e->what == EV_MESSAGE && l->up && e->epoch == l->epoch)
		e->late = true;
	e->at_ms = s->node[e->node].frozen_until_ms;
	push(s, *e);
	e->bytes = NULL;
}

static bool waits_for_thaw(const struct sim *s, const struct event *e)
{
	return sim_frozen(&s->node[e->node]) && e->what != EV_DIAL && e->what != EV_SILENCE &&
	       e->what != EV_TROUBLE && e->what != EV_HEAL && e->what != EV_BACKUP &&
	       e->what != EV_PUT_BACK && e->what != EV_SCORES;
}

/* From now on nothing goes wrong any more. */
static void heal(struct sim *s)
{
	sim_log(s, "HEAL");
	s->faults = false;
	partition(s, false);
	for (size_t a = 0; a < s->n; a++)
		for (size_t b = 0; b < s->n; b++)
			if (world_lists(s, a, b) && !s->node[a].lists[b] && s->node[a].alive)
				revoke_or_add(s, a, b);
	for (size_t a = 0; a < s->n; a++) {
		for (size_t b = a + 1; b < s->n; b++) {
			struct link *l = link_of(s, a, b);

			if (l->silent[0] || l->silent[1]) /* keepalive has noticed */
				link_cut(s, a, b, false);
		}
	}
}

/* ---- backups ---- */

enum { BACKUPS_END_MS = 5000 }; /* before the end of all faults */

static bool all_listed(const struct node *n)
{
	for (size_t i = 0; i < n->disk.n_peers; i++)
		if (n->disk.peers[i].status != STORE_LISTED)
			return false;
	return n->disk.n_peers == n->sim->n - 1;
}

/* Not of one that has to be completed itself. */
static void back_up(struct sim *s, struct node *n)
{
	if (n->behind || !all_listed(n))
		return;
	disk_copy(&n->backup, &n->disk);
	n->has_backup = true;
	sim_log(s, "%zu: BACKUP, %zu entries", n->at, n->disk.n_entries);
}

/* As agent/backup.c marks a store; that nothing was trained since, its owner knows. */
static void mark_restored(struct node *n, bool training)
{
	struct store_restored r = { .is = true, .fresh = true, .training = training };
	struct store_batch b = { 0 };

	for (size_t i = 0; i < n->disk.n_peers; i++)
		store_restored_add(&r, n->disk.peers[i].key);
	store_batch_restored(&b, &r);
	disk_apply(&n->disk, &b, NULL);
	store_batch_release(&b);
	store_restored_release(&r);
}

static bool anybody_behind(const struct sim *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->node[i].behind)
			return true;
	return false;
}

/* One at a time: what two have lost nobody has. */
static void put_back(struct sim *s, struct node *n)
{
	bool trained = n->disk.training.sequence != n->backup.training.sequence;

	if (!n->has_backup || anybody_behind(s))
		return;
	sim_log(s, "%zu: PUT BACK, %zu entries of %zu", n->at, n->backup.n_entries,
		n->disk.n_entries);
	if (n->alive)
		crash(n);
	disk_copy(&n->disk, &n->backup);
	n->behind = s->o.plant != SIM_FORGETS_BACKUP;
	n->put_back = true;
	if (n->behind)
		mark_restored(n, trained);
	n->best_seen = n->disk.has_best ? n->disk.best.valid_score : -1.0;
	s->report->restored++;
	for (size_t i = 0; i < s->n; i++)
		s->report->agent[i].effects_put_back = s->node[i].effects;
}

static void backup_event(struct sim *s, const struct event *e)
{
	struct event next = { .what = EV_BACKUP };

	if (e->what == EV_BACKUP)
		back_up(s, &s->node[e->node]);
	else
		put_back(s, &s->node[e->node]);
	if (!s->o.restores || s->now_ms + BACKUPS_END_MS > s->faults_end_ms)
		return;
	if (rng_below(&s->backups, 2) == 0)
		next.what = EV_PUT_BACK;
	next.node = rng_below(&s->backups, (uint32_t)s->n);
	sim_at(s, 200 + rng_below(&s->backups, 4000), next);
}

static void plan_backups(struct sim *s)
{
	rng_seed(&s->backups, s->o.seed ^ 0xbac);
	if (s->o.restores)
		sim_at(s, 1000, (struct event){ .what = EV_BACKUP });
	if (s->o.put_back_ms == 0)
		return;
	sim_at(s, s->o.backup_ms, (struct event){ .what = EV_BACKUP });
	sim_at(s, s->o.put_back_ms, (struct event){ .what = EV_PUT_BACK });
}

/* ---- running ---- */

static void restart(struct sim *s, struct node *n)
{
	birth(n);
	for (size_t b = 0; b < s->n; b++)
		if (b != n->at && s->node[b].keeps[n->at]) /* it has gone on dialling */
			net_link_dial(s, n->at, b);
	for (size_t b = 0; !s->faults && b < s->n; b++)
		if (world_lists(s, n->at, b) && !n->lists[b])
			revoke_or_add(s, n->at, b);
}

static void step_event(struct sim *s, struct event *e)
{
	struct node *n = &s->node[e->node];

	switch (e->what) {
	case EV_DIAL:
		link_event(s, e);
		break;
	case EV_LINK_UP:
	case EV_LINK_DOWN:
	case EV_MESSAGE:
	case EV_WRITABLE:
		if (n->alive && e->life == n->life)
			link_event(s, e);
		break;
	case EV_TIMER:
		if (n->alive && e->life == n->life && e->epoch == n->timer[e->timer]) {
			struct agent_event t = { .kind = AGENT_EVENT_TIMER,
						 .timer = (enum agent_timer)e->timer };

			node_event(n, &t);
		}
		break;
	case EV_COMMIT:
		if (n->alive && e->life == n->life && n->n_commits > 0)
			shell_commit_due(n);
		break;
	case EV_JOB:
		if (n->alive && e->life == n->life)
			shell_job_due(n, e->job);
		break;
	case EV_ENTRIES:
		if (n->alive && e->life == n->life)
			shell_entries_due(n, e);
		break;
	case EV_BACKUP:
	case EV_PUT_BACK:
		backup_event(s, e);
		break;
	case EV_RESTART:
		if (!n->alive)
			restart(s, n);
		break;
	case EV_SILENCE:
		if (sim_frozen(n) && e->life == n->life)
			silence_noticed(s, n);
		break;
	case EV_TROUBLE:
		if (s->faults)
			trouble(s);
		if (s->faults)
			sim_at(s, 200 + rng_below(&s->rng, 2500),
			       (struct event){ .what = EV_TROUBLE });
		break;
	case EV_HEAL:
		heal(s);
		break;
	case EV_SCORES:
		sim_scores_ask(s, n);
		break;
	}
}

/* Rounds that hurt have stopped: its owner wants them again, sooner or later. */
static void owner_resumes(struct sim *s, struct node *n)
{
	struct agent_event resume = { .kind = AGENT_EVENT_RESUME };

	if (!n->alive || sim_frozen(n) || !rounds_stopped(n->core))
		return;
	s->report->stopped++;
	if (!s->faults || rng_below(&s->rng, 16) == 0)
		node_event(n, &resume);
}

static bool step_once(struct sim *s)
{
	struct event e;

	if (s->n_heap == 0 || s->report->failed)
		return false;
	e = pop(s);
	s->now_ms = e.at_ms;
	s->report->events++;
	if (waits_for_thaw(s, &e))
		wait_for_thaw(s, &e);
	else
		step_event(s, &e);
	if (s->o.fed && !s->report->failed)
		owner_resumes(s, &s->node[e.node]);
	free(e.bytes);
	check_all(s);
	if (s->now_ms > s->faults_end_ms + PATIENCE_MS ||
	    s->report->events > EVENTS_MAX * (1 + s->n / SIM_AGENTS_MAX))
		sim_fail(s, "not quiet after %.0f s without faults",
			 (double)(s->now_ms - s->faults_end_ms) / 1000.0);
	return true;
}

static void report_sums(struct sim *s, const struct node *n)
{
	s->report->score += n->disk.best.valid_score / (double)s->n;
	if (sim_learning(s))
		s->report->mrr += sim_learning_mrr(n) / (double)s->n;
	if (!n->alive)
		return;
	s->report->rounds += n->core->rounds + n->core->lone_rounds;
	for (size_t i = 0; i < n->core->n_peers; i++)
		s->report->intersections += n->core->peers[i]->names.compared;
}

static void report(struct sim *s)
{
	s->report->seconds = (double)s->now_ms / 1000.0;
	sim_rounds_count(s);
	if (s->report->failed && s->o.fed)
		sim_rounds_tell(s);
	for (size_t i = 0; i < s->n; i++)
		report_sums(s, &s->node[i]);
	for (size_t i = 0; i < s->n && i < SIM_AGENTS_MAX; i++) {
		struct sim_agent_report *r = &s->report->agent[i];
		struct agent_status st;

		r->effects = s->node[i].effects;
		if (!s->node[i].alive)
			continue;
		agent_core_status(s->node[i].core, &st);
		r->state = (int)st.state;
		r->queued = st.queued;
		r->rounds = st.rounds;
		r->sessions = st.sessions;
		r->improved = st.improved;
		r->labels_spent = st.labels_spent;
		for (size_t p = 0; p < s->node[i].core->n_peers; p++)
			r->unsettled += s->node[i].core->peers[p]->chain.n_open;
		if (st.n_peers > 0) {
			r->shared = st.peer[0].shared_entities + st.peer[0].shared_relations;
			snprintf(r->trouble, sizeof(r->trouble), "%s", st.peer[0].trouble);
		}
		agent_status_release(&st);
	}
}

static void release(struct sim *s)
{
	s->faults = false;
	for (size_t i = 0; i < s->n; i++) {
		if (s->node[i].alive)
			shell_drop(&s->node[i], false);
		world_release(&s->node[i]);
	}
	while (s->n_heap > 0)
		free(s->heap[--s->n_heap].bytes);
	links_release(s);
	free(s->node);
	free(s->heap);
	free(s->released);
	sim_rounds_release(s);
	sim_scores_release(s);
	graph_vocab_free(s->items);
}

void sim_run(const struct sim_options *o, struct sim_report *r)
{
	struct sim *s = mem_array(1, sizeof(*s));

	memset(r, 0, sizeof(*r));
	s->o = *o;
	s->report = r;
	s->n = o->agents;
	s->node = mem_array(s->n, sizeof(*s->node));
	s->link = mem_array(s->n * s->n, sizeof(struct link *));
	s->faults_end_ms = o->calm ? 0 : FAULTS_MS;
	rng_seed(&s->rng, o->seed);
	world_make(s);
	s->faults = !o->calm;
	if (s->faults) {
		sim_at(s, 500, (struct event){ .what = EV_TROUBLE });
		sim_at(s, s->faults_end_ms, (struct event){ .what = EV_HEAL });
	}
	plan_backups(s);
	sim_scores_begin(s);
	for (size_t i = 0; i < s->n; i++)
		sim_at(s, rng_below(&s->rng, 50), (struct event){ .what = EV_RESTART, .node = i });
	while (!(sim_rounds_goal(s) && sim_scores_goal(s)) && step_once(s))
		;
	if (!r->failed)
		check_quiet(s);
	report(s);
	release(s);
	free(s);
}

#include "tests/sim/disk.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void disk_release(struct disk *d)
{
	for (size_t i = 0; i < d->n_alignments; i++)
		free(d->alignments[i].slots);
	free(d->peers);
	free(d->queue);
	free(d->alignments);
	free(d->intersections);
	free(d->sessions);
	free(d->entries);
	free(d->steps);
	free(d->step_days);
	free(d->judgements);
	for (size_t i = 0; i < d->n_meta; i++)
		free(d->meta[i].base);
	store_rounds_release(d->rounds, d->n_rounds);
	kge_emb_free(d->tables);
	kge_emb_free(d->latest_tables);
	kge_emb_free(d->beside_tables);
	kge_emb_free(d->arm_tables);
	store_close(d->real);
	memset(d, 0, sizeof(*d));
}

static void *copy(const void *p, size_t n)
{
	return n ? mem_copy(p, n) : NULL;
}

static struct store_round copy_round(const struct store_round *r)
{
	struct store_round x = *r;

	x.members = mem_array((size_t)r->n_participants + 1, sizeof(*x.members));
	memcpy(x.members, r->members, r->n_participants * sizeof(*x.members));
	return x;
}

void disk_copy(struct disk *to, const struct disk *from)
{
	disk_release(to);
	*to = *from;
	to->real = NULL;
	to->peers = copy(from->peers, from->n_peers * sizeof(*from->peers));
	to->queue = copy(from->queue, from->n_queue * sizeof(*from->queue));
	to->alignments = copy(from->alignments, from->n_alignments * sizeof(*from->alignments));
	to->intersections =
		copy(from->intersections, from->n_intersections * sizeof(*from->intersections));
	to->sessions = copy(from->sessions, from->n_sessions * sizeof(*from->sessions));
	to->entries = copy(from->entries, from->n_entries * sizeof(*from->entries));
	to->steps = copy(from->steps, from->n_steps * sizeof(*from->steps));
	to->step_days = copy(from->step_days, from->n_step_days * sizeof(*from->step_days));
	to->judgements = copy(from->judgements, from->n_judgements * sizeof(*from->judgements));
	for (size_t i = 0; i < from->n_alignments; i++)
		to->alignments[i].slots =
			mem_copy(from->alignments[i].slots,
				 ((size_t)from->alignments[i].n + 1) * sizeof(struct store_slot));
	for (size_t i = 0; i < from->n_meta; i++)
		to->meta[i].base = mem_copy(from->meta[i].base, from->meta[i].len);
	to->tables = from->tables ? kge_emb_copy(from->tables) : NULL;
	to->latest_tables = from->latest_tables ? kge_emb_copy(from->latest_tables) : NULL;
	to->beside_tables = from->beside_tables ? kge_emb_copy(from->beside_tables) : NULL;
	to->arm_tables = from->arm_tables ? kge_emb_copy(from->arm_tables) : NULL;
	to->rounds = mem_array(from->n_rounds + 1, sizeof(*to->rounds));
	for (size_t i = 0; i < from->n_rounds; i++)
		to->rounds[i] = copy_round(&from->rounds[i]);
}

static void put_signal(struct disk *d, const struct store_signal *s)
{
	for (size_t i = 0; i < d->n_queue; i++)
		if (memcmp(d->queue[i].peer, s->peer, 32) == 0)
			return;
	d->queue = mem_resize(d->queue, d->n_queue + 1, sizeof(*d->queue));
	d->queue[d->n_queue++] = *s;
}

static void remove_signal(struct disk *d, const uint8_t peer[32])
{
	for (size_t i = 0; i < d->n_queue; i++) {
		if (memcmp(d->queue[i].peer, peer, 32) != 0)
			continue;
		d->n_queue--;
		memmove(&d->queue[i], &d->queue[i + 1], (d->n_queue - i) * sizeof(d->queue[0]));
		return;
	}
}

static void put_peer(struct disk *d, const struct store_peer *p)
{
	size_t i = 0;

	while (i < d->n_peers && memcmp(d->peers[i].key, p->key, 32) != 0)
		i++;
	if (i == d->n_peers)
		d->peers = mem_resize(d->peers, ++d->n_peers, sizeof(*d->peers));
	d->peers[i] = *p;
}

static void remove_peer(struct disk *d, const uint8_t key[32])
{
	for (size_t i = 0; i < d->n_peers; i++)
		if (memcmp(d->peers[i].key, key, 32) == 0)
			d->peers[i] = d->peers[--d->n_peers];
	for (size_t i = 0; i < d->n_judgements; i++)
		if (memcmp(d->judgements[i].peer, key, 32) == 0)
			d->judgements[i] = d->judgements[--d->n_judgements];
}

static bool is_same_session(const struct store_session *a, const struct store_session *b)
{
	return memcmp(a->id, b->id, sizeof(a->id)) == 0 &&
	       memcmp(a->peer, b->peer, sizeof(a->peer)) == 0 && a->role == b->role &&
	       a->started_ms == b->started_ms;
}

static void put_session(struct disk *d, const struct store_session *s)
{
	for (size_t i = 0; i < d->n_sessions; i++)
		if (is_same_session(&d->sessions[i], s)) {
			d->sessions[i] = *s;
			return;
		}
	d->sessions = mem_resize(d->sessions, d->n_sessions + 1, sizeof(*s));
	d->sessions[d->n_sessions++] = *s;
}

static void put_alignment(struct disk *d, const struct store_alignment *a)
{
	size_t i = 0;

	while (i < d->n_alignments && memcmp(d->alignments[i].peer, a->peer, 32) != 0)
		i++;
	if (i == d->n_alignments)
		d->alignments =
			mem_resize(d->alignments, ++d->n_alignments, sizeof(*d->alignments));
	else
		free(d->alignments[i].slots);
	d->alignments[i] = *a;
	d->alignments[i].slots = mem_array((size_t)a->n + 1, sizeof(*a->slots));
	if (a->n)
		memcpy(d->alignments[i].slots, a->slots, a->n * sizeof(*a->slots));
}

static void add_entry(struct disk *d, const struct ledger_signed *s)
{
	d->entries = mem_resize(d->entries, d->n_entries + 1, sizeof(*s));
	d->entries[d->n_entries++] = *s;
}

static void countersign(struct disk *d, const struct store_countersign *c)
{
	for (size_t i = 0; i < d->n_entries; i++) {
		if (memcmp(d->entries[i].hash, c->hash, 32) != 0)
			continue;
		d->entries[i].countersigned = true;
		memcpy(d->entries[i].countersignature, c->signature, sizeof(c->signature));
	}
}

static void add_statement(struct disk *d, const struct ledger_stated *s)
{
	int status = ledger_training_add(&d->training, s, NULL, NULL);

	assert(status == 0);
	(void)status;
}

static void put_checkpoint(struct disk *d, const struct store_checkpoint *info,
			   const struct kge_emb *emb)
{
	bool latest = info->kind == STORE_LATEST;
	struct kge_emb **tables = latest ? &d->latest_tables : &d->tables;

	if (info->kind == STORE_ALONE_LATEST) {
		kge_emb_free(d->arm_tables);
		d->arm_tables = kge_emb_copy(emb);
	}
	if (info->kind == STORE_BEFORE || info->kind == STORE_ALONE_LATEST)
		return; /* the core gives them to nobody but the owner */
	if (latest && d->keeps_first && d->has_latest)
		return;
	if (latest || info->kind == STORE_BESIDE) {
		kge_emb_free(d->beside_tables);
		d->beside_tables = latest ? NULL : kge_emb_copy(emb);
	}
	if (info->kind == STORE_BESIDE)
		return;
	kge_emb_free(*tables);
	*tables = kge_emb_copy(emb);
	*(latest ? &d->latest : &d->best) = *info;
	*(latest ? &d->has_latest : &d->has_best) = true;
}

static void put_round(struct disk *d, const struct store_round *r)
{
	size_t i = 0;

	while (i < d->n_rounds && memcmp(d->rounds[i].id, r->id, STORE_ROUND) != 0)
		i++;
	if (i < d->n_rounds)
		free(d->rounds[i].members);
	else
		d->rounds = mem_resize(d->rounds, ++d->n_rounds, sizeof(*d->rounds));
	d->rounds[i] = copy_round(r);
}

const struct store_round_member *
disk_round_member(const struct disk *d, const uint8_t id[STORE_ROUND], const uint8_t key[32])
{
	for (size_t i = d->n_rounds; i > 0; i--) {
		const struct store_round *r = &d->rounds[i - 1];

		for (uint32_t k = 0; memcmp(r->id, id, STORE_ROUND) == 0 && k < r->n_participants;
		     k++)
			if (memcmp(r->members[k].key, key, 32) == 0)
				return &r->members[k];
	}
	return NULL;
}

/* All but its fate. */
static void change_round(struct disk *d, const uint8_t id[STORE_ROUND],
			 const struct store_round_member *m)
{
	struct store_round_member *was =
		(struct store_round_member *)(uintptr_t)disk_round_member(d, id, m->key);
	int fate = was != NULL ? was->fate : 0;

	if (was == NULL)
		return;
	*was = *m;
	was->fate = fate;
}

/* Of each peer the last one: no core asks for more. */
static void put_intersection(struct disk *d, const struct store_intersection *x)
{
	size_t i = 0;

	while (i < d->n_intersections && memcmp(d->intersections[i].peer, x->peer, 32) != 0)
		i++;
	if (i == d->n_intersections)
		d->intersections = mem_resize(d->intersections, ++d->n_intersections,
					      sizeof(*d->intersections));
	d->intersections[i] = *x;
}

static void add_step_to(struct disk *d, const struct store_step *x)
{
	d->steps = mem_resize(d->steps, d->n_steps + 1, sizeof(*d->steps));
	d->steps[d->n_steps++] = *x;
}

static void put_step_day_to(struct disk *d, const struct store_step_day *x)
{
	size_t i = 0;

	while (i < d->n_step_days && memcmp(d->step_days[i].peer, x->peer, 32) != 0)
		i++;
	if (i == d->n_step_days)
		d->step_days = mem_resize(d->step_days, ++d->n_step_days, sizeof(*d->step_days));
	d->step_days[i] = *x;
}

static void put_judgement_to(struct disk *d, const struct store_judgement *x)
{
	size_t i = 0;

	while (i < d->n_judgements && memcmp(d->judgements[i].peer, x->peer, 32) != 0)
		i++;
	if (i == d->n_judgements)
		d->judgements =
			mem_resize(d->judgements, ++d->n_judgements, sizeof(*d->judgements));
	d->judgements[i] = *x;
}

const struct store_judgement *disk_judgement(const struct disk *d, const uint8_t peer[32])
{
	for (size_t i = 0; i < d->n_judgements; i++)
		if (memcmp(d->judgements[i].peer, peer, 32) == 0)
			return &d->judgements[i];
	return NULL;
}

static void load_judgements(const struct disk *d, struct store_core *out)
{
	out->judgements.at = mem_array(d->n_judgements + 1, sizeof(*out->judgements.at));
	out->judgements.n = d->n_judgements;
	for (size_t i = 0; i < d->n_judgements; i++)
		out->judgements.at[i] = d->judgements[i];
}

static void load_steps(const struct disk *d, struct store_core *out)
{
	out->steps.days = mem_array(d->n_step_days + 1, sizeof(*out->steps.days));
	out->steps.n_days = d->n_step_days;
	for (size_t i = 0; i < d->n_step_days; i++)
		out->steps.days[i] = d->step_days[i];
	out->steps.ids = mem_array(STORE_STEPS_LATE, sizeof(*out->steps.ids));
	for (size_t i = d->n_steps; i-- > 0 && out->steps.n_ids < STORE_STEPS_LATE;)
		if (!d->steps[i].ours)
			memcpy(out->steps.ids[out->steps.n_ids++], d->steps[i].step.id,
			       LEDGER_STEP_ID);
}

static void put_meta(struct disk *d, const struct store_meta *m)
{
	size_t i = 0;

	while (i < d->n_meta && strcmp(d->meta[i].key, m->key) != 0)
		i++;
	assert(i < sizeof(d->meta) / sizeof(d->meta[0]));
	if (i == d->n_meta)
		d->n_meta++;
	else
		free(d->meta[i].base);
	d->meta[i] = *m;
	d->meta[i].base = mem_copy(m->base, m->len);
}

static void apply_write(struct disk *d, const struct store_write *w)
{
	switch (w->kind) {
	case STORE_PUT_SIGNAL:
		put_signal(d, &w->u.signal);
		break;
	case STORE_REMOVE_SIGNAL:
		remove_signal(d, w->u.signal.peer);
		break;
	case STORE_PUT_PEER:
		put_peer(d, &w->u.peer);
		break;
	case STORE_REMOVE_PEER:
		remove_peer(d, w->u.peer.key);
		break;
	case STORE_PUT_MEMBER:
		break; /* the core gives it back to nobody but the owner */
	case STORE_PUT_SESSION:
		put_session(d, &w->u.session);
		break;
	case STORE_ADD_ENTRY:
	case STORE_RETURN_ENTRY:
		add_entry(d, &w->u.entry);
		break;
	case STORE_ADD_COUNTERSIGN:
		countersign(d, &w->u.countersign);
		break;
	case STORE_ADD_STATEMENT:
		add_statement(d, &w->u.statement);
		break;
	case STORE_PUT_CHECKPOINT:
		put_checkpoint(d, &w->u.checkpoint.info, w->u.checkpoint.emb);
		break;
	case STORE_PUT_ALIGNMENT:
		put_alignment(d, &w->u.alignment);
		break;
	case STORE_PUT_INVITATION:
	case STORE_PUT_TICKET:
	case STORE_PUT_SEED:
	case STORE_PUT_PAIR:
		break; /* the process's, not the core's */
	case STORE_PUT_INTERSECTION:
		put_intersection(d, &w->u.intersection);
		break;
	case STORE_PUT_META:
		put_meta(d, &w->u.meta);
		break;
	case STORE_PUT_ROUND:
		put_round(d, &w->u.round);
		break;
	case STORE_CHANGE_ROUND:
		change_round(d, w->u.change.id, &w->u.change.member);
		break;
	case STORE_SCORE_ROUND:
	case STORE_WRITE_KINDS:
		break; /* for the owner alone */
	case STORE_ADD_STEP:
		if (!d->no_steps || w->u.step.ours)
			add_step_to(d, &w->u.step);
		break;
	case STORE_PUT_STEP_DAY:
		if (!d->no_days)
			put_step_day_to(d, &w->u.step_day);
		break;
	case STORE_PUT_JUDGEMENT:
		if (!d->no_verdicts)
			put_judgement_to(d, &w->u.judgement);
		break;
	}
}

int disk_apply(struct disk *d, const struct store_batch *b, struct err *e)
{
	int status = d->real ? store_apply(d->real, b, e) : 0;

	for (size_t i = 0; status == 0 && i < b->n; i++)
		apply_write(d, &b->at[i]);
	return status;
}

/* ---- giving it back ---- */

static bool of_pair(const struct ledger_entry *e, const uint8_t a[32], const uint8_t b[32])
{
	return (memcmp(e->host, a, 32) == 0 && memcmp(e->client, b, 32) == 0) ||
	       (memcmp(e->host, b, 32) == 0 && memcmp(e->client, a, 32) == 0);
}

size_t disk_chain(const struct disk *d, const uint8_t a[32], const uint8_t b[32],
		  const struct ledger_signed **out, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n_entries && n < max; i++)
		if (of_pair(&d->entries[i].entry, a, b))
			out[n++] = &d->entries[i];
	return n;
}

size_t disk_entries(const struct disk *d, const uint8_t a[32], const uint8_t b[32], uint64_t first,
		    size_t max, struct ledger_signed *out)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n_entries && n < max; i++)
		if (of_pair(&d->entries[i].entry, a, b) && d->entries[i].entry.sequence >= first)
			out[n++] = d->entries[i];
	return n;
}

static struct ledger_chain *load_chain(const struct disk *d, const uint8_t a[32],
				       const uint8_t b[32])
{
	struct ledger_chain *c = mem_array(1, sizeof(*c));

	ledger_chain_init(c, a, b);
	for (size_t i = 0; i < d->n_entries; i++) {
		int status = of_pair(&d->entries[i].entry, a, b)
				     ? ledger_chain_replay(c, &d->entries[i], NULL)
				     : 0;

		assert(status == 0);
		(void)status;
	}
	return c;
}

const struct store_meta *disk_meta(const struct disk *d, const char *key)
{
	for (size_t i = 0; i < d->n_meta; i++)
		if (strcmp(d->meta[i].key, key) == 0)
			return &d->meta[i];
	return NULL;
}

static void load_rounds(const struct disk *d, struct store_core *out)
{
	out->n_rounds = d->n_rounds;
	out->late.n = d->n_rounds < STORE_ROUNDS_LATE ? d->n_rounds : STORE_ROUNDS_LATE;
	out->rounds = mem_array(out->n_rounds + 1, sizeof(*out->rounds));
	for (size_t i = 0; i < d->n_rounds; i++)
		memcpy(out->rounds[i], d->rounds[i].id, STORE_ROUND);
	out->late.at = mem_array(out->late.n + 1, sizeof(*out->late.at));
	for (size_t i = 0; i < out->late.n; i++)
		out->late.at[i] = copy_round(&d->rounds[d->n_rounds - 1 - i]);
}

void disk_load(const struct disk *d, const uint8_t sign_public[32], struct store_core *out)
{
	memset(out, 0, sizeof(*out));
	if (d->real) {
		struct err e = { 0 };
		int status = store_load_core(d->real, out, &e);

		assert(status == 0);
		(void)status;
		return;
	}
	out->peers = copy(d->peers, d->n_peers * sizeof(*d->peers));
	out->n_peers = d->n_peers;
	out->queue = copy(d->queue, d->n_queue * sizeof(*d->queue));
	out->n_queue = d->n_queue;
	for (size_t i = 0; i < d->n_sessions; i++) {
		if (d->sessions[i].state != STORE_OPEN)
			continue;
		out->open = mem_resize(out->open, out->n_open + 1, sizeof(*out->open));
		out->open[out->n_open++] = d->sessions[i];
	}
	out->alignments = copy(d->alignments, d->n_alignments * sizeof(*d->alignments));
	out->n_alignments = d->n_alignments;
	out->intersections = copy(d->intersections, d->n_intersections * sizeof(*d->intersections));
	out->n_intersections = d->n_intersections;
	out->chains = mem_array(d->n_peers + 1, sizeof(*out->chains));
	for (size_t i = 0; i < d->n_peers; i++)
		out->chains[out->n_chains++] = load_chain(d, sign_public, d->peers[i].sign_key);
	out->training = d->training;
	out->has_best = d->has_best;
	out->best = d->best;
	out->meta = copy(d->meta, d->n_meta * sizeof(*d->meta));
	out->n_meta = d->n_meta;
	load_rounds(d, out);
	load_steps(d, out);
	load_judgements(d, out);
}

void disk_unload(const struct disk *d, struct store_core *core)
{
	if (d->real) {
		store_core_release(core);
		return;
	}
	for (size_t i = 0; i < core->n_chains; i++) {
		ledger_chain_release(core->chains[i]);
		free(core->chains[i]);
	}
	free(core->chains);
	free(core->peers);
	free(core->queue);
	free(core->open);
	free(core->ended.at);
	free(core->alignments); /* slots and meta are the disk's */
	free(core->intersections);
	free(core->meta);
	free(core->rounds);
	free(core->steps.ids);
	free(core->steps.days);
	free(core->judgements.at);
	store_rounds_release(core->late.at, core->late.n);
}

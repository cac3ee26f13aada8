#include "store/store.h"

#include <assert.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static void batch_init(struct store_batch *b)
{
	memset(b, 0, sizeof(*b));
}

static void write_release(struct store_write *w)
{
	if (w->kind == STORE_PUT_MEMBER)
		free(w->u.member.record);
	else if (w->kind == STORE_PUT_CHECKPOINT)
		kge_emb_free(w->u.checkpoint.emb);
	else if (w->kind == STORE_PUT_ALIGNMENT)
		free(w->u.alignment.slots);
	else if (w->kind == STORE_PUT_META)
		free(w->u.meta.base);
	else if (w->kind == STORE_PUT_ROUND)
		free(w->u.round.members);
}

void store_batch_release(struct store_batch *b)
{
	for (size_t k = 0; k < b->n; k++)
		write_release(&b->at[k]);
	free(b->at);
	batch_init(b);
}

static void reserve(struct store_batch *b, size_t more)
{
	assert(b->n <= b->cap);
	if (b->n + more <= b->cap)
		return;
	b->cap = 2 * b->cap > b->n + more ? 2 * b->cap : b->n + more;
	b->at = mem_resize(b->at, b->cap, sizeof(*b->at));
}

void store_batch_move(struct store_batch *to, struct store_batch *from)
{
	assert(to != from && from->n <= from->cap);
	if (from->n > 0) {
		reserve(to, from->n);
		memcpy(to->at + to->n, from->at, from->n * sizeof(*to->at));
		to->n += from->n;
	}
	free(from->at);
	batch_init(from);
}

static struct store_write *add(struct store_batch *b, enum store_write_kind kind)
{
	struct store_write *w;

	reserve(b, 1);
	w = &b->at[b->n++];
	memset(w, 0, sizeof(*w));
	w->kind = kind;
	return w;
}

void store_batch_invitation(struct store_batch *b, const struct store_invitation *i)
{
	add(b, STORE_PUT_INVITATION)->u.invitation = *i;
}

void store_batch_step(struct store_batch *b, const struct store_step *s)
{
	add(b, STORE_ADD_STEP)->u.step = *s;
}

void store_batch_step_day(struct store_batch *b, const struct store_step_day *d)
{
	add(b, STORE_PUT_STEP_DAY)->u.step_day = *d;
}

void store_batch_judgement(struct store_batch *b, const struct store_judgement *j)
{
	add(b, STORE_PUT_JUDGEMENT)->u.judgement = *j;
}

void store_batch_ticket(struct store_batch *b, const struct store_ticket *t)
{
	add(b, STORE_PUT_TICKET)->u.ticket = *t;
}

void store_batch_seed(struct store_batch *b, const struct store_seed *x)
{
	add(b, STORE_PUT_SEED)->u.seed = *x;
}

void store_batch_pair(struct store_batch *b, const struct store_pair *x)
{
	add(b, STORE_PUT_PAIR)->u.pair = *x;
}

void store_batch_intersection(struct store_batch *b, const struct store_intersection *i)
{
	add(b, STORE_PUT_INTERSECTION)->u.intersection = *i;
}

void store_batch_signal(struct store_batch *b, const uint8_t peer[STORE_KEY], int64_t time_ms)
{
	struct store_write *w = add(b, STORE_PUT_SIGNAL);

	memcpy(w->u.signal.peer, peer, STORE_KEY);
	w->u.signal.time_ms = time_ms;
}

void store_batch_unsignal(struct store_batch *b, const uint8_t peer[STORE_KEY])
{
	memcpy(add(b, STORE_REMOVE_SIGNAL)->u.signal.peer, peer, STORE_KEY);
}

void store_batch_peer(struct store_batch *b, const struct store_peer *peer)
{
	add(b, STORE_PUT_PEER)->u.peer = *peer;
}

void store_batch_unpeer(struct store_batch *b, const uint8_t key[STORE_KEY])
{
	memcpy(add(b, STORE_REMOVE_PEER)->u.peer.key, key, STORE_KEY);
}

void store_batch_member(struct store_batch *b, const uint8_t key[STORE_KEY], const void *record,
			size_t len)
{
	struct store_write *w = add(b, STORE_PUT_MEMBER);

	assert(len <= STORE_RECORD_MAX);
	memcpy(w->u.member.key, key, STORE_KEY);
	w->u.member.record = len > 0 ? mem_copy(record, len) : NULL;
	w->u.member.len = len;
}

void store_batch_session(struct store_batch *b, const struct store_session *s)
{
	add(b, STORE_PUT_SESSION)->u.session = *s;
}

void store_batch_entry(struct store_batch *b, const struct ledger_signed *entry)
{
	add(b, STORE_ADD_ENTRY)->u.entry = *entry;
}

void store_batch_return_entry(struct store_batch *b, const struct ledger_signed *entry)
{
	assert(entry->countersigned);
	add(b, STORE_RETURN_ENTRY)->u.entry = *entry;
}

void store_batch_countersign(struct store_batch *b, const uint8_t hash[LEDGER_HASH],
			     const uint8_t signature[LEDGER_SIGNATURE])
{
	struct store_write *w = add(b, STORE_ADD_COUNTERSIGN);

	memcpy(w->u.countersign.hash, hash, LEDGER_HASH);
	memcpy(w->u.countersign.signature, signature, LEDGER_SIGNATURE);
}

void store_batch_statement(struct store_batch *b, const struct ledger_stated *s)
{
	add(b, STORE_ADD_STATEMENT)->u.statement = *s;
}

void store_batch_tables(struct store_batch *b, const struct store_checkpoint *info,
			struct kge_emb *emb, const uint8_t digest[STORE_DIGEST])
{
	struct store_write *w = add(b, STORE_PUT_CHECKPOINT);
	struct store_checkpoint *c = &w->u.checkpoint.info;

	*c = *info;
	snprintf(c->model, sizeof(c->model), "%s", emb->model->name);
	c->dim = (uint32_t)emb->dim;
	c->rel_dim = (uint32_t)emb->rel_dim;
	c->n_ent = emb->n_ent;
	c->n_rel = emb->n_rel;
	c->gamma = emb->gamma;
	memcpy(c->digest, digest, STORE_DIGEST);
	w->u.checkpoint.emb = emb;
}

void store_batch_checkpoint(struct store_batch *b, const struct store_checkpoint *info,
			    struct kge_emb *emb)
{
	uint8_t digest[STORE_DIGEST];

	kge_emb_digest(emb, digest);
	store_batch_tables(b, info, emb, digest);
}

void store_batch_alignment(struct store_batch *b, const struct store_alignment *a)
{
	struct store_write *w = add(b, STORE_PUT_ALIGNMENT);

	w->u.alignment = *a;
	w->u.alignment.slots = mem_array(a->n > 0 ? a->n : 1, sizeof(*a->slots));
	if (a->n > 0)
		memcpy(w->u.alignment.slots, a->slots, a->n * sizeof(*a->slots));
}

void store_batch_meta_owned(struct store_batch *b, const char *key, uint8_t *bytes, size_t len)
{
	struct store_write *w = add(b, STORE_PUT_META);

	assert(strlen(key) < STORE_WORD_MAX && len <= STORE_META_MAX);
	snprintf(w->u.meta.key, sizeof(w->u.meta.key), "%s", key);
	w->u.meta.base = bytes;
	w->u.meta.len = len;
}

void store_batch_meta(struct store_batch *b, const char *key, const void *bytes, size_t len)
{
	store_batch_meta_owned(b, key, mem_copy(bytes, len), len);
}

void store_batch_round(struct store_batch *b, const struct store_round *r)
{
	struct store_write *w = add(b, STORE_PUT_ROUND);

	assert(r->n_members <= r->n_participants && r->n_participants <= STORE_MEMBERS_MAX);
	w->u.round = *r;
	w->u.round.members = mem_array(r->n_participants + (size_t)1, sizeof(*r->members));
	if (r->n_participants > 0)
		memcpy(w->u.round.members, r->members, r->n_participants * sizeof(*r->members));
}

/* Here rather than in core.c: the core frees what it was given and links no database. */
void store_rounds_release(struct store_round *rounds, size_t n)
{
	for (size_t k = 0; k < n; k++)
		free(rounds[k].members);
	free(rounds);
}

static void free_secrets(void *secrets, size_t n)
{
	if (n > 0)
		sodium_memzero(secrets, n);
	free(secrets);
}

void store_core_release(struct store_core *c)
{
	for (size_t k = 0; k < c->n_members; k++)
		free(c->members[k].record);
	for (size_t k = 0; k < c->n_alignments; k++)
		free(c->alignments[k].slots);
	for (size_t k = 0; k < c->n_meta; k++)
		free(c->meta[k].base);
	for (size_t k = 0; k < c->n_chains; k++) {
		ledger_chain_release(c->chains[k]);
		free(c->chains[k]);
	}
	free(c->peers);
	free(c->members);
	free(c->queue);
	free(c->open);
	free(c->ended.at);
	free(c->alignments);
	free(c->intersections);
	free(c->invitations);
	free(c->tickets.at);
	free_secrets(c->secrets.seeds, c->secrets.n_seeds * sizeof(*c->secrets.seeds));
	free_secrets(c->secrets.pairs, c->secrets.n_pairs * sizeof(*c->secrets.pairs));
	free(c->steps.ids);
	free(c->steps.days);
	free(c->judgements.at);
	free(c->chains);
	ledger_rotations_release(&c->rotations);
	free(c->meta);
	free(c->rounds);
	store_rounds_release(c->late.at, c->late.n);
	memset(c, 0, sizeof(*c));
}

void store_batch_round_score(struct store_batch *b, const uint8_t id[STORE_ROUND], double score)
{
	struct store_write *w = add(b, STORE_SCORE_ROUND);

	memcpy(w->u.scored.id, id, STORE_ROUND);
	w->u.scored.score = score;
}

void store_batch_round_member(struct store_batch *b, const uint8_t id[STORE_ROUND],
			      const struct store_round_member *m)
{
	struct store_write *w = add(b, STORE_CHANGE_ROUND);

	memcpy(w->u.change.id, id, STORE_ROUND);
	w->u.change.member = *m;
}

const uint8_t *store_peer_account(const struct store_peer *p)
{
	static const uint8_t none[STORE_KEY];

	return memcmp(p->account, none, STORE_KEY) != 0 ? p->account : p->sign_key;
}

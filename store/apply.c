#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "store/db_internal.h"

static int put_signal(struct store *s, const struct store_signal *x, struct err *e)
{
	return db_do(s, e, "INSERT OR IGNORE INTO signal (peer, time_ms) VALUES (?, ?)", "bi",
		     (const void *)x->peer, sizeof(x->peer), x->time_ms);
}

static int remove_signal(struct store *s, const struct store_signal *x, struct err *e)
{
	return db_do(s, e, "DELETE FROM signal WHERE peer = ?", "b", (const void *)x->peer,
		     sizeof(x->peer));
}

/* A signing key that is not known now takes none away: the ledger may name it. */
static int put_peer(struct store *s, const struct store_peer *p, struct err *e)
{
	return db_do(s, e,
		     "INSERT OR REPLACE INTO peer (key, sign_key, name, address, status, seen_ms,"
		     " source) VALUES (?1, coalesce(nullif(?2, zeroblob(32)),"
		     " (SELECT sign_key FROM peer WHERE key = ?1), ?2), ?3, ?4, ?5, ?6, ?7)",
		     "bbttiit", (const void *)p->key, sizeof(p->key), (const void *)p->sign_key,
		     sizeof(p->sign_key), p->name, p->address, (int64_t)p->status, p->seen_ms,
		     p->source);
}

/* A peer that the ledger names keeps its record: its name, and that it is revoked.  So does one
 * that has signed accounts of rounds: without its key nobody can check them. */
static int remove_peer(struct store *s, const uint8_t key[STORE_KEY], struct err *e)
{
	static const char *const sql[] = {
		("DELETE FROM peer WHERE key = ? AND NOT EXISTS (SELECT 1 FROM ledger_entry"
		 " WHERE low = peer.sign_key OR high = peer.sign_key)"
		 /* nor one whose account is that of entries (store/ledger/rotation.h: new_sign) */
		 " AND NOT EXISTS (SELECT 1 FROM ledger_rotation"
		 " WHERE substr(bytes, 153, 32) = peer.sign_key)"
		 " AND (sign_key = zeroblob(32) OR NOT EXISTS (SELECT 1 FROM round_member m"
		 " WHERE m.key = peer.key AND m.signature IS NOT NULL))"),
		"DELETE FROM alignment WHERE peer = ?",
		"DELETE FROM signal WHERE peer = ?",
		"DELETE FROM intersection WHERE peer = ?",
		"DELETE FROM judgement WHERE peer = ?",
		"DELETE FROM ticket WHERE peer = ?",
		"DELETE FROM pair_secret WHERE peer = ?",
	};
	int rc = db_do(s, e, sql[0], "b", (const void *)key, (size_t)STORE_KEY);

	if (rc == 0 && sqlite3_changes(s->db) == 0)
		return 0;
	for (size_t k = 1; k < sizeof(sql) / sizeof(sql[0]) && rc == 0; k++)
		rc = db_do(s, e, sql[k], "b", (const void *)key, (size_t)STORE_KEY);
	return rc;
}

static int put_member(struct store *s, const struct store_member *m, struct err *e)
{
	if (m->len == 0)
		return db_do(s, e, "DELETE FROM member WHERE key = ?", "b", (const void *)m->key,
			     sizeof(m->key));
	return db_do(s, e, "INSERT OR REPLACE INTO member VALUES (?, ?)", "bb",
		     (const void *)m->key, sizeof(m->key), (const void *)m->record, m->len);
}

static int put_session(struct store *s, const struct store_session *x, struct err *e)
{
	/* the host chooses the id: it makes no other session's record out of this one */
	return db_do(s, e,
		     "INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
		     " ON CONFLICT (id, peer, role, started_ms) DO UPDATE SET"
		     " state = excluded.state,"
		     " finished_ms = excluded.finished_ms, bytes_in = excluded.bytes_in,"
		     " bytes_out = excluded.bytes_out, seconds = excluded.seconds,"
		     " outcome = excluded.outcome, reason = excluded.reason,"
		     " translator = excluded.translator",
		     "bbiiiiiiifit", (const void *)x->id, sizeof(x->id), (const void *)x->peer,
		     sizeof(x->peer), (int64_t)x->role, (int64_t)x->translator, (int64_t)x->state,
		     x->started_ms, x->finished_ms, (int64_t)x->bytes_in, (int64_t)x->bytes_out,
		     x->seconds, (int64_t)x->outcome, x->reason);
}

static int put_invitation(struct store *s, const struct store_invitation *i, struct err *e)
{
	return db_do(s, e, "INSERT OR REPLACE INTO invitation VALUES (?, ?, ?, ?, ?, ?)", "biiiii",
		     (const void *)i->hash, sizeof(i->hash), i->made_ms, i->until_ms,
		     (int64_t)i->uses, (int64_t)i->used, (int64_t)i->revoked);
}

static int put_ticket(struct store *s, const struct store_ticket *t, struct err *e)
{
	return db_do(s, e, "INSERT OR REPLACE INTO ticket VALUES (?, ?)", "bb",
		     (const void *)t->peer, sizeof(t->peer), (const void *)t->ticket,
		     sizeof(t->ticket));
}

static int put_pair_seed(struct store *s, const struct store_seed *x, struct err *e)
{
	int rc = db_do(s, e, "INSERT OR REPLACE INTO pair_seed VALUES (?, ?)", "bi",
		       (const void *)x->seed, sizeof(x->seed), x->made_ms);

	return rc != 0 ? rc
		       : db_do(s, e,
			       "DELETE FROM pair_seed WHERE seed NOT IN (SELECT seed FROM pair_seed"
			       " ORDER BY made_ms DESC, seed DESC LIMIT ?)",
			       "i", (int64_t)STORE_SEEDS);
}

static int put_pair_secret(struct store *s, const struct store_pair *x, struct err *e)
{
	int rc = db_do(s, e, "DELETE FROM pair_secret WHERE peer = ? AND proven <= ?", "bi",
		       (const void *)x->peer, sizeof(x->peer), (int64_t)x->proven);

	return rc != 0 ? rc
		       : db_do(s, e, "INSERT INTO pair_secret VALUES (?, ?, ?)", "bib",
			       (const void *)x->peer, sizeof(x->peer), (int64_t)x->proven,
			       (const void *)x->secret, sizeof(x->secret));
}

static int add_step(struct store *s, const struct store_step *x, struct err *e)
{
	const struct ledger_step *p = &x->step;
	int rc = db_do(
		s, e,
		"INSERT INTO step (peer, ours, id, asker, owner, relation, inverse, norm, points,"
		" want, asked_ms, answered_ms, alignment, frontier, answer, policy, rows, ways,"
		" asker_signature, owner_signature)"
		" VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		"bibbbbiiiiiibbbiiibb", (const void *)x->peer, sizeof(x->peer), (int64_t)x->ours,
		(const void *)p->id, sizeof(p->id), (const void *)p->asker, sizeof(p->asker),
		(const void *)p->owner, sizeof(p->owner), (const void *)p->relation,
		strlen(p->relation), (int64_t)p->inverse, (int64_t)p->norm, (int64_t)p->points,
		(int64_t)p->want, p->asked_ms, p->answered_ms, (const void *)p->alignment,
		sizeof(p->alignment), (const void *)p->frontier, sizeof(p->frontier),
		(const void *)p->answer, sizeof(p->answer), (int64_t)p->policy, (int64_t)p->rows,
		(int64_t)p->ways, (const void *)p->asker_signature, sizeof(p->asker_signature),
		(const void *)p->owner_signature, sizeof(p->owner_signature));

	if (rc != 0)
		return rc;
	return db_do(s, e,
		     "DELETE FROM step WHERE position <= (SELECT max(position) FROM step) - ?", "i",
		     (int64_t)STORE_STEPS_MAX);
}

static int put_step_day(struct store *s, const struct store_step_day *d, struct err *e)
{
	return db_do(s, e, "INSERT OR REPLACE INTO step_day VALUES (?, ?, ?, ?)", "biii",
		     (const void *)d->peer, sizeof(d->peer), d->day, (int64_t)d->steps,
		     (int64_t)d->rows);
}

static int put_judgement(struct store *s, const struct store_judgement *j, struct err *e)
{
	return db_do(s, e, "INSERT OR REPLACE INTO judgement VALUES (?, ?, ?, ?, ?, ?, ?)",
		     "biifiit", (const void *)j->peer, sizeof(j->peer), (int64_t)j->judged,
		     (int64_t)j->hurt, j->reputation, (int64_t)j->quarantined, j->since_ms, j->why);
}

static int put_intersection(struct store *s, const struct store_intersection *i, struct err *e)
{
	int rc = db_do(s, e, "INSERT OR REPLACE INTO intersection VALUES (?, ?, ?, ?, ?, ?)",
		       "biiiii", (const void *)i->peer, sizeof(i->peer), i->time_ms,
		       (int64_t)i->ours, (int64_t)i->theirs, (int64_t)i->shared, (int64_t)i->done);

	if (rc != 0)
		return rc;
	return db_do(s, e,
		     "DELETE FROM intersection WHERE peer = ?1 AND time_ms < (SELECT min(time_ms)"
		     " FROM (SELECT time_ms FROM intersection WHERE peer = ?1"
		     " ORDER BY time_ms DESC LIMIT ?2))",
		     "bi", (const void *)i->peer, sizeof(i->peer), (int64_t)STORE_INTERSECTIONS);
}

/* What is known of a peer. */
static int put_kept_of_peer(struct store *s, const struct store_write *w, struct err *e)
{
	if (w->kind == STORE_PUT_INTERSECTION)
		return put_intersection(s, &w->u.intersection, e);
	return w->kind == STORE_PUT_STEP_DAY ? put_step_day(s, &w->u.step_day, e)
					     : put_judgement(s, &w->u.judgement, e);
}

enum { SLOT_BYTES = 5 }; /* tag, id little-endian */

static int put_alignment(struct store *s, const struct store_alignment *a, struct err *e)
{
	struct buf b = { 0 };
	uint8_t *at = buf_extend(&b, (size_t)a->n * SLOT_BYTES);
	int rc;

	for (uint32_t k = 0; k < a->n; k++) {
		*at++ = (uint8_t)a->slots[k].tag;
		for (int byte = 0; byte < 4; byte++)
			*at++ = (uint8_t)(a->slots[k].id >> (8 * byte));
	}
	rc = db_do(s, e, "INSERT OR REPLACE INTO alignment VALUES (?, ?, ?, ?, ?)", "bbbib",
		   (const void *)a->peer, sizeof(a->peer), (const void *)a->version,
		   sizeof(a->version), (const void *)a->digest, sizeof(a->digest), (int64_t)a->n,
		   (const void *)b.base, b.len);
	buf_release(&b);
	return rc;
}

/* The pieces behind the first of a value that is replaced go with that first piece. */
static int put_meta(struct store *s, const struct store_meta *m, struct err *e)
{
	size_t at = m->len < s->piece_max ? m->len : s->piece_max, n;
	int rc = db_do(s, e, "INSERT OR REPLACE INTO meta VALUES (?, ?)", "tb", m->key,
		       (const void *)m->base, at);

	assert(s->piece_max > 0);
	for (int64_t k = 1; at < m->len && rc == 0; k++, at += n) {
		n = m->len - at < s->piece_max ? m->len - at : s->piece_max;
		rc = db_do(s, e, "INSERT INTO meta_piece VALUES (?, ?, ?)", "tib", m->key, k,
			   (const void *)(m->base + at), n);
	}
	return rc;
}

static int put_member_of(struct store *s, const struct store_round *r, uint32_t participant,
			 struct err *e)
{
	const struct store_round_member *m = &r->members[participant];

	assert(participant < r->n_participants);
	return db_do(
		s, e,
		"INSERT INTO round_member VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
		"?, ?, ?, ?)",
		"bibiiiiiiiiiiibtiff", (const void *)r->id, sizeof(r->id), (int64_t)participant,
		(const void *)m->key, sizeof(m->key), (int64_t)m->fate, (int64_t)m->rows_out,
		(int64_t)m->rows_in, (int64_t)m->floats_out, (int64_t)m->floats_in,
		(int64_t)m->bytes_out, (int64_t)m->bytes_in, (int64_t)m->their_rows_out,
		(int64_t)m->their_rows_in, (int64_t)m->their_floats_out,
		(int64_t)m->their_floats_in, m->has_account ? (const void *)m->signature : NULL,
		sizeof(m->signature), m->refused, (int64_t)m->compared, m->distance, m->cosine);
}

/* Of a round that is there no more nothing is changed. */
static int change_member_of(struct store *s, const uint8_t id[STORE_ROUND],
			    const struct store_round_member *m, struct err *e)
{
	return db_do(s, e,
		     "UPDATE round_member SET rows_out = ?, rows_in = ?, floats_out = ?,"
		     " floats_in = ?, bytes_out = ?, bytes_in = ?, said_rows_out = ?,"
		     " said_rows_in = ?, said_floats_out = ?, said_floats_in = ?, signature = ?,"
		     " refused = ?"
		     " WHERE round = ? AND key = ?",
		     "iiiiiiiiiibtbb", (int64_t)m->rows_out, (int64_t)m->rows_in,
		     (int64_t)m->floats_out, (int64_t)m->floats_in, (int64_t)m->bytes_out,
		     (int64_t)m->bytes_in, (int64_t)m->their_rows_out, (int64_t)m->their_rows_in,
		     (int64_t)m->their_floats_out, (int64_t)m->their_floats_in,
		     m->has_account ? (const void *)m->signature : NULL, sizeof(m->signature),
		     m->refused, (const void *)id, (size_t)STORE_ROUND, (const void *)m->key,
		     sizeof(m->key));
}

static int score_round(struct store *s, const uint8_t id[STORE_ROUND], double score, struct err *e)
{
	return db_do(s, e, "UPDATE round SET score = ?, scored = 1 WHERE id = ?", "fb", score,
		     (const void *)id, (size_t)STORE_ROUND);
}

/* The round's members go with the row that is replaced. */
static int put_round(struct store *s, const struct store_round *r, struct err *e)
{
	int rc = db_do(
		s, e,
		"INSERT OR REPLACE INTO round VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
		"?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		"bitiibiiiitiiiiiiifiifff", (const void *)r->id, sizeof(r->id), (int64_t)r->number,
		r->method, (int64_t)r->hosted, (int64_t)r->secret_bits, (const void *)r->proposer,
		sizeof(r->proposer), r->started_ms, r->finished_ms, (int64_t)r->train_ms,
		(int64_t)r->outcome, r->reason, (int64_t)r->items, (int64_t)r->answered,
		(int64_t)r->homed, (int64_t)r->params_up, (int64_t)r->params_down,
		(int64_t)r->clipped, (int64_t)r->spoiled, r->scored ? r->score : 0.0,
		(int64_t)r->scored, (int64_t)r->n_members, r->compared ? r->own_score : -1.0,
		r->compared ? r->merged_score : -1.0, r->has_alone ? r->alone_score : -1.0);

	for (uint32_t participant = 0; participant < r->n_participants && rc == 0; participant++)
		rc = put_member_of(s, r, participant, e);
	return rc == 0 ? db_fold_rounds(s, e) : rc;
}

static int write_one(struct store *s, const struct store_write *w, struct err *e)
{
	switch (w->kind) {
	case STORE_PUT_SIGNAL:
		return put_signal(s, &w->u.signal, e);
	case STORE_REMOVE_SIGNAL:
		return remove_signal(s, &w->u.signal, e);
	case STORE_PUT_PEER:
		return put_peer(s, &w->u.peer, e);
	case STORE_REMOVE_PEER:
		return remove_peer(s, w->u.peer.key, e);
	case STORE_PUT_MEMBER:
		return put_member(s, &w->u.member, e);
	case STORE_PUT_SESSION:
		return put_session(s, &w->u.session, e);
	case STORE_ADD_ENTRY:
		return db_add_entry(s, &w->u.entry, e);
	case STORE_RETURN_ENTRY:
		return db_return_entry(s, &w->u.entry, e);
	case STORE_ADD_COUNTERSIGN:
		return db_add_countersign(s, &w->u.countersign, e);
	case STORE_ADD_STATEMENT:
		return db_add_statement(s, &w->u.statement, e);
	case STORE_PUT_CHECKPOINT:
		return db_put_checkpoint(s, &w->u.checkpoint.info, w->u.checkpoint.emb, e);
	case STORE_PUT_ALIGNMENT:
		return put_alignment(s, &w->u.alignment, e);
	case STORE_PUT_INVITATION:
		return put_invitation(s, &w->u.invitation, e);
	case STORE_PUT_TICKET:
		return put_ticket(s, &w->u.ticket, e);
	case STORE_PUT_SEED:
		return put_pair_seed(s, &w->u.seed, e);
	case STORE_PUT_PAIR:
		return put_pair_secret(s, &w->u.pair, e);
	case STORE_PUT_META:
		return put_meta(s, &w->u.meta, e);
	case STORE_PUT_ROUND:
		return put_round(s, &w->u.round, e);
	case STORE_SCORE_ROUND:
		return score_round(s, w->u.scored.id, w->u.scored.score, e);
	case STORE_ADD_STEP:
		return add_step(s, &w->u.step, e);
	case STORE_PUT_INTERSECTION:
	case STORE_PUT_STEP_DAY:
	case STORE_PUT_JUDGEMENT:
		return put_kept_of_peer(s, w, e);
	case STORE_WRITE_KINDS:
		break;
	case STORE_CHANGE_ROUND:
		return change_member_of(s, w->u.change.id, &w->u.change.member, e);
	}
	return err_set(e, ERR_FAIL, "unknown kind of write");
}

int db_write_all(struct store *s, const struct store_batch *b, struct err *e)
{
	int rc = 0;

	for (size_t k = 0; k < b->n && rc == 0; k++)
		rc = write_one(s, &b->at[k], e);
	return rc;
}

static int write_batch(struct store *s, void *ctx, struct err *e)
{
	return db_write_all(s, ctx, e);
}

int store_apply(struct store *s, const struct store_batch *b, struct err *e)
{
	int rc = b->n > 0 ? db_transaction(s, write_batch, (void *)(uintptr_t)b, e) : 0;

	/* The chains in memory may be ahead of a disk that was rolled back. */
	if (rc != 0)
		db_forget_chains(s);
	return rc;
}

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "store/db_internal.h"

enum { SLOT_BYTES = 5 };

/* Rows of one table into an array of records.  read() fills one from the row. */
struct table {
	const char *sql;
	size_t size;
	int (*read)(sqlite3_stmt *st, void *record);
};

static int load_rows(struct store *s, sqlite3_stmt *st, const struct table *t, void **out,
		     size_t *n, struct err *e)
{
	int rc = 0;

	while (rc == 0 && (rc = db_step(s, st, e)) > 0) {
		uint8_t *record;

		*out = mem_resize(*out, *n + 1, t->size);
		record = (uint8_t *)*out + *n * t->size;
		memset(record, 0, t->size);
		rc = t->read(st, record);
		(*n)++;
		if (rc != 0)
			db_damaged(s, e, "a row does not have its shape");
	}
	return rc;
}

static int load_table(struct store *s, const struct table *t, int64_t limit, void **out, size_t *n,
		      struct err *e)
{
	sqlite3_stmt *st;
	int rc = db_query(s, &st, e, t->sql, "i", limit);

	if (rc == 0)
		rc = load_rows(s, st, t, out, n, e);
	sqlite3_finalize(st);
	return rc;
}

#define ROW_OK(good) ((good) ? 0 : ERR_STORE)

static int read_peer(sqlite3_stmt *st, void *record)
{
	struct store_peer *p = record;
	bool good = db_text(st, 2, p->name, sizeof(p->name));

	if (good) /* of before they were refused */
		text_mark_bidi(p->name);
	p->status = (enum store_peer_status)sqlite3_column_int64(st, 4);
	p->seen_ms = sqlite3_column_int64(st, 5);
	p->has_signed = sqlite3_column_int64(st, 7) != 0;
	return ROW_OK(good && db_bytes(st, 0, p->key, sizeof(p->key)) &&
		      db_bytes(st, 1, p->sign_key, sizeof(p->sign_key)) &&
		      db_text(st, 3, p->address, sizeof(p->address)) &&
		      db_text(st, 6, p->source, sizeof(p->source)) && p->status <= STORE_REVOKED);
}

static int read_member(sqlite3_stmt *st, void *record)
{
	struct store_member *m = record;
	size_t len = (size_t)sqlite3_column_bytes(st, 1);

	if (len > STORE_RECORD_MAX || !db_bytes(st, 0, m->key, sizeof(m->key)))
		return ERR_STORE;
	m->record = mem_copy(len > 0 ? sqlite3_column_blob(st, 1) : "", len);
	m->len = len;
	return 0;
}

static int read_signal(sqlite3_stmt *st, void *record)
{
	struct store_signal *x = record;

	x->time_ms = sqlite3_column_int64(st, 1);
	return ROW_OK(db_bytes(st, 0, x->peer, sizeof(x->peer)));
}

static int read_session(sqlite3_stmt *st, void *record)
{
	struct store_session *x = record;

	x->role = (enum store_role)sqlite3_column_int64(st, 2);
	x->translator = (enum ledger_translator)sqlite3_column_int64(st, 3);
	x->state = (enum store_session_state)sqlite3_column_int64(st, 4);
	x->started_ms = sqlite3_column_int64(st, 5);
	x->finished_ms = sqlite3_column_int64(st, 6);
	x->bytes_in = (uint64_t)sqlite3_column_int64(st, 7);
	x->bytes_out = (uint64_t)sqlite3_column_int64(st, 8);
	x->seconds = sqlite3_column_double(st, 9);
	x->outcome = (int)sqlite3_column_int64(st, 10);
	return ROW_OK(db_bytes(st, 0, x->id, sizeof(x->id)) &&
		      db_bytes(st, 1, x->peer, sizeof(x->peer)) &&
		      db_text(st, 11, x->reason, sizeof(x->reason)));
}

static int read_session_count(sqlite3_stmt *st, void *record)
{
	struct store_session_count *x = record;

	x->done = (uint64_t)sqlite3_column_int64(st, 1);
	x->aborted = (uint64_t)sqlite3_column_int64(st, 2);
	return ROW_OK(db_bytes(st, 0, x->peer, sizeof(x->peer)));
}

static int read_alignment(sqlite3_stmt *st, void *record)
{
	struct store_alignment *a = record;
	int64_t n = sqlite3_column_int64(st, 3);
	const uint8_t *at = sqlite3_column_blob(st, 4);

	if (n < 0 || n > UINT32_MAX || sqlite3_column_bytes(st, 4) != n * SLOT_BYTES ||
	    !db_bytes(st, 0, a->peer, sizeof(a->peer)) ||
	    !db_bytes(st, 1, a->version, sizeof(a->version)) ||
	    !db_bytes(st, 2, a->digest, sizeof(a->digest)))
		return ERR_STORE;
	a->n = (uint32_t)n;
	a->slots = mem_array((size_t)n + 1, sizeof(*a->slots));
	for (uint32_t k = 0; k < a->n; k++, at += SLOT_BYTES) {
		a->slots[k].tag = (char)at[0];
		a->slots[k].id = (uint32_t)at[1] | (uint32_t)at[2] << 8 | (uint32_t)at[3] << 16 |
				 (uint32_t)at[4] << 24;
	}
	return 0;
}

static int read_intersection(sqlite3_stmt *st, void *record)
{
	struct store_intersection *i = record;

	i->time_ms = sqlite3_column_int64(st, 1);
	i->ours = (uint64_t)sqlite3_column_int64(st, 2);
	i->theirs = (uint64_t)sqlite3_column_int64(st, 3);
	i->shared = (uint64_t)sqlite3_column_int64(st, 4);
	i->done = sqlite3_column_int64(st, 5) != 0;
	return ROW_OK(db_bytes(st, 0, i->peer, sizeof(i->peer)));
}

static int read_invitation(sqlite3_stmt *st, void *record)
{
	struct store_invitation *i = record;

	i->made_ms = sqlite3_column_int64(st, 1);
	i->until_ms = sqlite3_column_int64(st, 2);
	i->uses = (uint32_t)sqlite3_column_int64(st, 3);
	i->used = (uint32_t)sqlite3_column_int64(st, 4);
	i->revoked = sqlite3_column_int64(st, 5) != 0;
	return ROW_OK(db_bytes(st, 0, i->hash, sizeof(i->hash)));
}

static int read_ticket(sqlite3_stmt *st, void *record)
{
	struct store_ticket *t = record;

	return ROW_OK(db_bytes(st, 0, t->peer, sizeof(t->peer)) &&
		      db_bytes(st, 1, t->ticket, sizeof(t->ticket)));
}

static int read_pair_seed(sqlite3_stmt *st, void *record)
{
	struct store_seed *x = record;

	x->made_ms = sqlite3_column_int64(st, 1);
	return ROW_OK(db_bytes(st, 0, x->seed, sizeof(x->seed)));
}

static int read_pair_secret(sqlite3_stmt *st, void *record)
{
	struct store_pair *x = record;

	x->proven = sqlite3_column_int64(st, 1) != 0;
	return ROW_OK(db_bytes(st, 0, x->peer, sizeof(x->peer)) &&
		      db_bytes(st, 2, x->secret, sizeof(x->secret)));
}

static int read_meta(sqlite3_stmt *st, void *record)
{
	struct store_meta *m = record;

	if (!db_text(st, 0, m->key, sizeof(m->key)))
		return ERR_STORE;
	m->len = (size_t)sqlite3_column_bytes(st, 1);
	m->base = mem_copy(m->len > 0 ? sqlite3_column_blob(st, 1) : "", m->len);
	return 0;
}

static const struct table peers = {
	"SELECT key, sign_key, name, address, status, seen_ms, source, sign_key <> zeroblob(32)"
	" AND key IN (SELECT key FROM round_member WHERE signature IS NOT NULL)"
	" FROM peer WHERE ? > 0 ORDER BY rowid",
	sizeof(struct store_peer), read_peer
};
static const struct table members = { "SELECT * FROM member ORDER BY rowid LIMIT ?",
				      sizeof(struct store_member), read_member };
static const struct table queue = { "SELECT peer, time_ms FROM signal ORDER BY position LIMIT ?",
				    sizeof(struct store_signal), read_signal };
static const struct table open_sessions = {
	"SELECT * FROM session WHERE state = 0 ORDER BY started_ms LIMIT ?",
	sizeof(struct store_session), read_session
};
static const struct table all_sessions = {
	"SELECT * FROM session ORDER BY started_ms DESC, rowid DESC LIMIT ?",
	sizeof(struct store_session), read_session
};
static const struct table ended_sessions = {
	"SELECT peer, sum(state = 1), sum(state = 2) FROM session GROUP BY peer LIMIT ?",
	sizeof(struct store_session_count), read_session_count
};
static const struct table alignments = { "SELECT * FROM alignment ORDER BY rowid LIMIT ?",
					 sizeof(struct store_alignment), read_alignment };
static int read_step_id(sqlite3_stmt *st, void *record)
{
	return ROW_OK(db_bytes(st, 0, record, LEDGER_STEP_ID));
}

static int read_step_day(sqlite3_stmt *st, void *record)
{
	struct store_step_day *d = record;

	d->day = sqlite3_column_int64(st, 1);
	d->steps = (uint64_t)sqlite3_column_int64(st, 2);
	d->rows = (uint64_t)sqlite3_column_int64(st, 3);
	return ROW_OK(db_bytes(st, 0, d->peer, sizeof(d->peer)));
}

static int read_judgement(sqlite3_stmt *st, void *record)
{
	struct store_judgement *j = record;

	j->judged = (uint64_t)sqlite3_column_int64(st, 1);
	j->hurt = (uint64_t)sqlite3_column_int64(st, 2);
	j->reputation = sqlite3_column_double(st, 3);
	j->quarantined = sqlite3_column_int64(st, 4) != 0;
	j->since_ms = sqlite3_column_int64(st, 5);
	return ROW_OK(db_bytes(st, 0, j->peer, sizeof(j->peer)) &&
		      db_text(st, 6, j->why, sizeof(j->why)) && j->reputation >= 0 &&
		      j->reputation <= 1);
}

static bool relation_of_step(sqlite3_stmt *st, int column, char out[LEDGER_RELATION_MAX + 1])
{
	const void *bytes = sqlite3_column_blob(st, column);
	int n = sqlite3_column_bytes(st, column);

	if (n < 1 || n > LEDGER_RELATION_MAX)
		return false;
	memcpy(out, bytes, (size_t)n);
	out[n] = '\0';
	return true;
}

static int read_whole_step(sqlite3_stmt *st, void *record)
{
	struct store_step *x = record;
	struct ledger_step *p = &x->step;

	x->ours = sqlite3_column_int64(st, 2) != 0;
	p->inverse = sqlite3_column_int64(st, 7) != 0;
	p->norm = (uint32_t)sqlite3_column_int64(st, 8);
	p->points = (uint32_t)sqlite3_column_int64(st, 9);
	p->want = (uint32_t)sqlite3_column_int64(st, 10);
	p->asked_ms = sqlite3_column_int64(st, 11);
	p->answered_ms = sqlite3_column_int64(st, 12);
	p->policy = (enum ledger_policy)sqlite3_column_int64(st, 16);
	p->rows = (uint32_t)sqlite3_column_int64(st, 17);
	p->ways = sqlite3_column_int64(st, 18) != 0;
	return ROW_OK(db_bytes(st, 1, x->peer, sizeof(x->peer)) &&
		      db_bytes(st, 3, p->id, sizeof(p->id)) &&
		      db_bytes(st, 4, p->asker, sizeof(p->asker)) &&
		      db_bytes(st, 5, p->owner, sizeof(p->owner)) &&
		      relation_of_step(st, 6, p->relation) &&
		      db_bytes(st, 13, p->alignment, sizeof(p->alignment)) &&
		      db_bytes(st, 14, p->frontier, sizeof(p->frontier)) &&
		      db_bytes(st, 15, p->answer, sizeof(p->answer)) && p->policy <= LEDGER_FACTS &&
		      db_bytes(st, 19, p->asker_signature, sizeof(p->asker_signature)) &&
		      db_bytes(st, 20, p->owner_signature, sizeof(p->owner_signature)));
}

static const struct table step_ids = {
	"SELECT id FROM step WHERE ours = 0 ORDER BY position DESC LIMIT ?", LEDGER_STEP_ID,
	read_step_id
};
static const struct table step_days = { "SELECT * FROM step_day LIMIT ?",
					sizeof(struct store_step_day), read_step_day };
static const struct table judgements = { "SELECT * FROM judgement LIMIT ?",
					 sizeof(struct store_judgement), read_judgement };
static const struct table whole_steps = { "SELECT * FROM step ORDER BY position DESC LIMIT ?",
					  sizeof(struct store_step), read_whole_step };
static const struct table intersections = { "SELECT * FROM intersection ORDER BY time_ms LIMIT ?",
					    sizeof(struct store_intersection), read_intersection };
static const struct table invitations = { "SELECT * FROM invitation ORDER BY made_ms, hash LIMIT ?",
					  sizeof(struct store_invitation), read_invitation };
static const struct table tickets = { "SELECT * FROM ticket ORDER BY peer LIMIT ?",
				      sizeof(struct store_ticket), read_ticket };
static const struct table seeds = { "SELECT * FROM pair_seed ORDER BY made_ms, seed LIMIT ?",
				    sizeof(struct store_seed), read_pair_seed };
static const struct table pairs = { "SELECT * FROM pair_secret ORDER BY peer, proven LIMIT ?",
				    sizeof(struct store_pair), read_pair_secret };
static const struct table small_meta = {
	"SELECT key, value FROM meta WHERE length(value) <= ? AND NOT EXISTS"
	" (SELECT 1 FROM meta_piece p WHERE p.key = meta.key) ORDER BY key",
	sizeof(struct store_meta), read_meta
};

static int load_chains(struct store *s, struct store_core *out, struct err *e)
{
	int rc = db_chains(s, e);

	if (rc != 0)
		return rc;
	out->chains = mem_array(s->n_chains + 1, sizeof(struct ledger_chain *));
	for (size_t k = 0; k < s->n_chains; k++) {
		out->chains[k] = mem_array(1, sizeof(struct ledger_chain));
		ledger_chain_copy(out->chains[k], s->chains[k]);
		out->n_chains++;
	}
	return 0;
}

/* Which peers do the chains name, and by which account? */
static void mark_ledgers(struct store_core *out)
{
	for (size_t i = 0; i < out->n_peers; i++) {
		struct store_peer *p = &out->peers[i];

		memcpy(p->account, ledger_rotations_account(&out->rotations, p->sign_key),
		       STORE_KEY);
		p->has_ledger = memcmp(p->account, p->sign_key, STORE_KEY) != 0;
	}
	for (size_t i = 0; i < out->n_peers; i++)
		for (size_t k = 0; k < out->n_chains && !out->peers[i].has_ledger; k++)
			out->peers[i].has_ledger =
				out->chains[k]->sequence > 0 &&
				ledger_chain_side(out->chains[k], out->peers[i].account) >= 0;
}

static int read_round_id(sqlite3_stmt *st, void *record)
{
	return ROW_OK(db_bytes(st, 0, record, STORE_ROUND));
}

static const struct table round_ids = { "SELECT id FROM round ORDER BY rowid LIMIT ?", STORE_ROUND,
					read_round_id };

static int load_all(struct store *s, struct store_core *out, struct err *e)
{
	struct {
		const struct table *table;
		int64_t limit;
		void *array; /* address of the pointer in out */
		size_t *n;
	} parts[] = {
		{ &peers, 1, &out->peers, &out->n_peers },
		{ &members, -1, &out->members, &out->n_members },
		{ &queue, -1, &out->queue, &out->n_queue },
		{ &open_sessions, -1, &out->open, &out->n_open },
		{ &ended_sessions, -1, &out->ended.at, &out->ended.n },
		{ &invitations, -1, &out->invitations, &out->n_invitations },
		{ &tickets, -1, &out->tickets.at, &out->tickets.n },
		{ &seeds, -1, &out->secrets.seeds, &out->secrets.n_seeds },
		{ &pairs, -1, &out->secrets.pairs, &out->secrets.n_pairs },
		{ &intersections, -1, &out->intersections, &out->n_intersections },
		{ &step_ids, STORE_STEPS_LATE, &out->steps.ids, &out->steps.n_ids },
		{ &step_days, -1, &out->steps.days, &out->steps.n_days },
		{ &judgements, -1, &out->judgements.at, &out->judgements.n },
		{ &alignments, -1, &out->alignments, &out->n_alignments },
		{ &small_meta, STORE_META_SMALL, &out->meta, &out->n_meta },
		{ &round_ids, -1, &out->rounds, &out->n_rounds },
	};
	int rc = 0;

	for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]) && rc == 0; k++) {
		void *array = NULL;

		rc = load_table(s, parts[k].table, parts[k].limit, &array, parts[k].n, e);
		memcpy(parts[k].array, &array, sizeof(array));
	}
	if (rc == 0)
		rc = db_best(s, &out->best, &out->has_best, e);
	if (rc == 0)
		rc = store_training(s, &out->training, e);
	if (rc == 0)
		rc = store_rounds(s, STORE_ROUNDS_LATE, &out->late.at, &out->late.n, e);
	if (rc == 0)
		rc = load_chains(s, out, e);
	if (rc == 0)
		rc = store_rotations(s, &out->rotations, e);
	if (rc == 0)
		mark_ledgers(out);
	return rc;
}

int store_load_core(struct store *s, struct store_core *out, struct err *e)
{
	int rc;

	memset(out, 0, sizeof(*out));
	rc = db_do(s, e, "BEGIN", ""); /* all of one moment, while its owner writes */
	if (rc != 0)
		return rc;
	rc = db_sums_check(s, e);
	if (rc == 0)
		rc = load_all(s, out, e);
	err_ignore(db_do(s, NULL, "COMMIT", "")); /* nothing was written */
	if (rc != 0)
		store_core_release(out);
	return rc;
}

int store_steps(struct store *s, size_t limit, struct store_step **out, size_t *n, struct err *e)
{
	void *array = NULL;
	int rc;

	*n = 0;
	rc = load_table(s, &whole_steps, limit < INT64_MAX ? (int64_t)limit : -1, &array, n, e);
	if (rc != 0) {
		free(array);
		array = NULL;
		*n = 0;
	}
	*out = array;
	return rc;
}

int store_steps_older(struct store *s, uint64_t *n, struct err *e)
{
	int64_t older; /* positions count on from 1, and only the oldest go */
	int rc = db_number(s, &older, e, "SELECT coalesce(max(position), 0) - count(*) FROM step");

	*n = rc == 0 && older > 0 ? (uint64_t)older : 0;
	return rc;
}

int store_sessions(struct store *s, size_t limit, struct store_session **out, size_t *n,
		   struct err *e)
{
	void *array = NULL;
	int rc;

	*n = 0;
	rc = load_table(s, &all_sessions, limit < INT64_MAX ? (int64_t)limit : -1, &array, n, e);
	if (rc != 0) {
		free(array);
		array = NULL;
		*n = 0;
	}
	*out = array;
	return rc;
}

int store_intersections(struct store *s, const uint8_t peer[STORE_KEY],
			struct store_intersection **out, size_t *n, struct err *e)
{
	sqlite3_stmt *st;
	void *array = NULL;
	int rc = db_query(s, &st, e,
			  "SELECT * FROM intersection WHERE peer = ? ORDER BY time_ms DESC", "b",
			  (const void *)peer, (size_t)STORE_KEY);

	*n = 0;
	if (rc == 0)
		rc = load_rows(s, st, &intersections, &array, n, e);
	sqlite3_finalize(st);
	if (rc != 0) {
		free(array);
		array = NULL;
		*n = 0;
	}
	*out = array;
	return rc;
}

/* ---- rounds ---- */

static int read_round(sqlite3_stmt *st, void *record)
{
	struct store_round *r = record;

	r->number = (uint64_t)sqlite3_column_int64(st, 1);
	r->hosted = sqlite3_column_int64(st, 3) != 0;
	r->secret_bits = (uint32_t)sqlite3_column_int64(st, 4);
	r->started_ms = sqlite3_column_int64(st, 6);
	r->finished_ms = sqlite3_column_int64(st, 7);
	r->train_ms = (uint64_t)sqlite3_column_int64(st, 8);
	r->outcome = (int)sqlite3_column_int64(st, 9);
	r->items = (uint64_t)sqlite3_column_int64(st, 11);
	r->answered = (uint64_t)sqlite3_column_int64(st, 12);
	r->homed = (uint64_t)sqlite3_column_int64(st, 13);
	r->params_up = (uint64_t)sqlite3_column_int64(st, 14);
	r->params_down = (uint64_t)sqlite3_column_int64(st, 15);
	r->clipped = (uint64_t)sqlite3_column_int64(st, 16);
	r->spoiled = (uint64_t)sqlite3_column_int64(st, 17);
	r->score = sqlite3_column_double(st, 18);
	r->scored = sqlite3_column_int64(st, 19) != 0;
	r->n_members = (uint32_t)sqlite3_column_int64(st, 20);
	r->own_score = sqlite3_column_double(st, 21);
	r->merged_score = sqlite3_column_double(st, 22);
	r->alone_score = sqlite3_column_double(st, 23);
	r->compared = r->own_score >= 0 && r->merged_score >= 0;
	r->has_alone = r->alone_score >= 0;
	return ROW_OK(db_bytes(st, 0, r->id, sizeof(r->id)) &&
		      db_text(st, 2, r->method, sizeof(r->method)) &&
		      db_bytes(st, 5, r->proposer, sizeof(r->proposer)) &&
		      db_text(st, 10, r->reason, sizeof(r->reason)));
}

static int read_participant(sqlite3_stmt *st, void *record)
{
	struct store_round_member *m = record;

	m->fate = (int)sqlite3_column_int64(st, 1);
	m->rows_out = (uint64_t)sqlite3_column_int64(st, 2);
	m->rows_in = (uint64_t)sqlite3_column_int64(st, 3);
	m->floats_out = (uint64_t)sqlite3_column_int64(st, 4);
	m->floats_in = (uint64_t)sqlite3_column_int64(st, 5);
	m->bytes_out = (uint64_t)sqlite3_column_int64(st, 6);
	m->bytes_in = (uint64_t)sqlite3_column_int64(st, 7);
	m->their_rows_out = (uint64_t)sqlite3_column_int64(st, 8);
	m->their_rows_in = (uint64_t)sqlite3_column_int64(st, 9);
	m->their_floats_out = (uint64_t)sqlite3_column_int64(st, 10);
	m->their_floats_in = (uint64_t)sqlite3_column_int64(st, 11);
	m->has_account = sqlite3_column_type(st, 12) != SQLITE_NULL;
	m->compared = (uint64_t)sqlite3_column_int64(st, 14);
	m->distance = sqlite3_column_double(st, 15);
	m->cosine = sqlite3_column_double(st, 16);
	return ROW_OK(db_bytes(st, 0, m->key, sizeof(m->key)) &&
		      db_text(st, 13, m->refused, sizeof(m->refused)) &&
		      (!m->has_account || db_bytes(st, 12, m->signature, sizeof(m->signature))));
}

static int load_participants(struct store *s, struct store_round *r, struct err *e)
{
	static const struct table participants = {
		"SELECT key, fate, rows_out, rows_in, floats_out, floats_in, bytes_out, bytes_in,"
		" said_rows_out, said_rows_in, said_floats_out, said_floats_in, signature, refused,"
		" compared, distance, cosine"
		" FROM round_member WHERE round = ? ORDER BY seat",
		sizeof(struct store_round_member), read_participant
	};
	sqlite3_stmt *st;
	void *array = NULL;
	size_t n = 0;
	int rc = db_query(s, &st, e, participants.sql, "b", (const void *)r->id, sizeof(r->id));

	if (rc == 0)
		rc = load_rows(s, st, &participants, &array, &n, e);
	sqlite3_finalize(st);
	r->members = array;
	r->n_participants = (uint32_t)n;
	if (rc == 0 && r->n_members > r->n_participants)
		rc = db_damaged(s, e, "a round lacks members");
	return rc;
}

/* By when they were written: the clock may have been set back. */
int store_rounds(struct store *s, size_t limit, struct store_round **out, size_t *n, struct err *e)
{
	static const struct table rounds = { "SELECT * FROM round ORDER BY rowid DESC LIMIT ?",
					     sizeof(struct store_round), read_round };
	void *array = NULL;
	int rc;

	*n = 0;
	rc = load_table(s, &rounds, limit < INT64_MAX ? (int64_t)limit : -1, &array, n, e);
	*out = array;
	for (size_t k = 0; k < *n && rc == 0; k++)
		rc = load_participants(s, &(*out)[k], e);
	if (rc != 0) {
		store_rounds_release(*out, *n);
		*out = NULL;
		*n = 0;
	}
	return rc;
}

static void add_piece(sqlite3_stmt *st, struct buf *out)
{
	size_t n = (size_t)sqlite3_column_bytes(st, 0);

	buf_add(out, n > 0 ? sqlite3_column_blob(st, 0) : "", n);
}

static int add_pieces(struct store *s, const char *key, struct buf *out, struct err *e)
{
	sqlite3_stmt *st;
	int64_t k = 0;
	int rc = db_query(s, &st, e,
			  "SELECT bytes, position FROM meta_piece WHERE key = ? ORDER BY position",
			  "t", key);

	while (rc == 0 && (rc = db_step(s, st, e)) > 0) {
		add_piece(st, out);
		rc = sqlite3_column_int64(st, 1) == ++k
			     ? 0
			     : db_damaged(s, e, "a meta value lacks a piece");
	}
	sqlite3_finalize(st);
	return rc;
}

int store_meta(struct store *s, const char *key, struct buf *out, struct err *e)
{
	sqlite3_stmt *st;
	int rc = db_query(s, &st, e, "SELECT value FROM meta WHERE key = ?", "t", key);

	if (rc != 0)
		return rc;
	rc = db_step(s, st, e);
	if (rc > 0)
		add_piece(st, out);
	else if (rc == 0)
		rc = err_set(e, ERR_NOTFOUND, "%s keeps nothing under %s", s->path, key);
	sqlite3_finalize(st);
	return rc > 0 ? add_pieces(s, key, out, e) : rc;
}

/* ---- the slow look ---- */

static int check_pages(struct store *s, struct err *e)
{
	sqlite3_stmt *st;
	int rc = db_query(s, &st, e, "PRAGMA integrity_check(1)", "");

	if (rc != 0)
		return rc;
	rc = db_step(s, st, e);
	if (rc > 0) {
		const char *words = (const char *)sqlite3_column_text(st, 0);

		rc = words != NULL && strcmp(words, "ok") == 0
			     ? 0
			     : db_damaged(s, e, words != NULL ? words : "?");
	}
	sqlite3_finalize(st);
	if (rc != 0)
		return rc;
	rc = db_query(s, &st, e, "PRAGMA foreign_key_check", "");
	if (rc != 0)
		return rc;
	rc = db_step(s, st, e);
	sqlite3_finalize(st);
	return rc > 0 ? db_damaged(s, e, "a row refers to one that is gone") : rc;
}

static int check_ledger(struct store *s, struct err *e)
{
	struct ledger_report r = { 0 };
	struct ledger_export x;
	int rc = store_ledger(s, NULL, &x, e);

	if (rc != 0)
		return rc;
	rc = ledger_verify(&x, &r);
	for (size_t k = 0; k < r.n; k++)
		if (!r.at[k].note) {
			err_set(e, ERR_LEDGER, "%s: %s", s->path, r.at[k].text);
			break;
		}
	ledger_report_release(&r);
	ledger_export_release(&x);
	return rc;
}

static int check_checkpoints(struct store *s, struct err *e)
{
	struct store_checkpoint *all;
	size_t n;
	int rc = store_checkpoints(s, &all, &n, e);

	for (size_t k = 0; k < n && rc == 0; k++) {
		struct kge_emb *emb;

		rc = store_restore(s, all[k].id, &emb, NULL, e);
		kge_emb_free(emb);
	}
	free(all);
	return rc;
}

static int check_graph(struct store *s, struct err *e)
{
	struct graph *g = NULL;
	struct err why = { 0 };
	int rc = store_load_graph(s, &g, &why);

	graph_free(g);
	return rc == 0 || rc == ERR_NOTFOUND ? 0 : err_set(e, rc, "%s", why.text);
}

/* As one moment has it: its owner may be writing. */
static int check_sums(struct store *s, struct err *e)
{
	int rc = db_do(s, e, "BEGIN", "");

	if (rc == 0)
		rc = db_sums_check(s, e);
	err_ignore(db_do(s, NULL, "COMMIT", "")); /* nothing was written */
	return rc;
}

int store_check(struct store *s, struct err *e)
{
	int rc = check_sums(s, e); /* first: it names the table */

	if (rc == 0)
		rc = check_pages(s, e);
	if (rc == 0)
		rc = check_graph(s, e);
	if (rc == 0)
		rc = check_ledger(s, e);
	return rc == 0 ? check_checkpoints(s, e) : rc;
}

/* store/fold.c - rounds whose records are too many: the oldest become sums.
 *
 * The counts of all that travelled, and of that between us and each peer, are then as true as
 * before; the round of each is gone. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/db_internal.h"

/* ?1: how many go.  By when they were written: the clock may have been set back. */
#define THE_OLDEST "(SELECT id FROM round ORDER BY rowid LIMIT ?1)"

static const char add_members[] =
	"INSERT INTO round_folded_member SELECT m.key, sum(m.seat < r.members),"
	" sum(m.seat < r.members AND m.fate = 0), sum(m.rows_out), sum(m.rows_in),"
	" sum(m.floats_out), sum(m.floats_in), sum(m.bytes_out), sum(m.bytes_in)"
	" FROM round_member m JOIN round r ON r.id = m.round WHERE r.id IN " THE_OLDEST
	" GROUP BY m.key ON CONFLICT (key) DO UPDATE SET rounds = rounds + excluded.rounds,"
	" took_part = took_part + excluded.took_part, rows_out = rows_out + excluded.rows_out,"
	" rows_in = rows_in + excluded.rows_in, floats_out = floats_out + excluded.floats_out,"
	" floats_in = floats_in + excluded.floats_in, bytes_out = bytes_out + excluded.bytes_out,"
	" bytes_in = bytes_in + excluded.bytes_in";

static const char add_rounds[] =
	"INSERT INTO round_folded SELECT 1, count(*), sum(outcome <> 0), min(started_ms),"
	" max(finished_ms), sum(train_ms), sum(params_up), sum(params_down), sum(clipped),"
	" sum(spoiled) FROM round WHERE id IN " THE_OLDEST
	" ON CONFLICT (one) DO UPDATE SET rounds = rounds + excluded.rounds,"
	" failed = failed + excluded.failed, first_ms = min(first_ms, excluded.first_ms),"
	" last_ms = max(last_ms, excluded.last_ms), train_ms = train_ms + excluded.train_ms,"
	" params_up = params_up + excluded.params_up,"
	" params_down = params_down + excluded.params_down, clipped = clipped + excluded.clipped,"
	" spoiled = spoiled + excluded.spoiled";

int db_fold_rounds(struct store *s, struct err *e)
{
	int64_t n;
	int rc = db_number(s, &n, e, "SELECT count(*) FROM round");

	n -= s->rounds_max;
	if (rc != 0 || n <= 0)
		return rc;
	rc = db_do(s, e, add_members, "i", n);
	if (rc == 0)
		rc = db_do(s, e, add_rounds, "i", n);
	return rc == 0 ? db_do(s, e, "DELETE FROM round WHERE id IN " THE_OLDEST, "i", n) : rc;
}

/* ---- reading ---- */

static uint64_t count_at(sqlite3_stmt *st, int column)
{
	return (uint64_t)sqlite3_column_int64(st, column);
}

static int read_sums(struct store *s, struct store_folded *f, struct err *e)
{
	sqlite3_stmt *st;
	int rc = db_query(s, &st, e, "SELECT * FROM round_folded", "");

	if (rc == 0 && (rc = db_step(s, st, e)) > 0) {
		f->rounds = count_at(st, 1);
		f->failed = count_at(st, 2);
		f->first_ms = sqlite3_column_int64(st, 3);
		f->last_ms = sqlite3_column_int64(st, 4);
		f->train_ms = count_at(st, 5);
		f->params_up = count_at(st, 6);
		f->params_down = count_at(st, 7);
		f->clipped = count_at(st, 8);
		f->spoiled = count_at(st, 9);
		rc = 0;
	}
	sqlite3_finalize(st);
	return rc;
}

static int read_member(struct store *s, sqlite3_stmt *st, struct store_folded *f, struct err *e)
{
	struct store_folded_member *m;

	f->members = mem_resize(f->members, f->n_members + 1, sizeof(*f->members));
	m = &f->members[f->n_members++];
	*m = (struct store_folded_member){ .rounds = count_at(st, 1),
					   .took_part = count_at(st, 2),
					   .sum = { .rows_out = count_at(st, 3),
						    .rows_in = count_at(st, 4),
						    .floats_out = count_at(st, 5),
						    .floats_in = count_at(st, 6),
						    .bytes_out = count_at(st, 7),
						    .bytes_in = count_at(st, 8) } };
	return db_bytes(st, 0, m->sum.key, STORE_KEY) ? 0 : db_damaged(s, e, "a sum of rounds");
}

int store_folded(struct store *s, struct store_folded *out, struct err *e)
{
	sqlite3_stmt *st;
	int rc;

	*out = (struct store_folded){ 0 };
	rc = read_sums(s, out, e);
	if (rc == 0)
		rc = db_query(s, &st, e, "SELECT * FROM round_folded_member ORDER BY key", "");
	if (rc != 0)
		return rc;
	while (rc == 0 && (rc = db_step(s, st, e)) > 0)
		rc = read_member(s, st, out, e);
	sqlite3_finalize(st);
	if (rc != 0)
		store_folded_release(out);
	return rc;
}

void store_folded_release(struct store_folded *f)
{
	free(f->members);
	*f = (struct store_folded){ 0 };
}

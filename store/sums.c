/* store/sums.c - is each table as it was written?
 *
 * Beside the tables stands, for each, the sum (exclusive or) of the hashes of its rows and how many
 * there are.  Triggers keep it, in the transaction that changes the table, so no write can forget
 * it; one flipped bit in any value, a row too many or too few, and the sum is another one.  This
 * finds disks and programs that spoil a store.  The sum is no seal: a program that can write the
 * file can write the sum as well.
 *
 * Not covered, since they have digests of their own: the ledger (signatures), rows of embeddings
 * (their blocks' hashes), names and triples (the graph's digest). */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/db_internal.h"

enum { SUM = 32 };

/* ---- functions for SQL ----
 *
 * sum_row(table, values...): BLAKE2b-256 of the values, each with its type and length.
 * sum_xor(a, b): of two of these.  tests/cli/storedb.py has the same in Python. */

static void add_u64(crypto_generichash_state *h, uint64_t v)
{
	uint8_t bytes[8];

	for (int k = 0; k < 8; k++)
		bytes[k] = (uint8_t)(v >> (8 * k));
	crypto_generichash_update(h, bytes, sizeof(bytes));
}

static void add_bytes(crypto_generichash_state *h, const void *bytes, int n)
{
	add_u64(h, (uint64_t)n);
	crypto_generichash_update(h, n > 0 ? bytes : (const void *)"", (unsigned long long)n);
}

static void add_value(crypto_generichash_state *h, sqlite3_value *v)
{
	int type = sqlite3_value_type(v);
	uint8_t tag = (uint8_t)type;
	uint64_t bits;
	double x;

	crypto_generichash_update(h, &tag, 1);
	if (type == SQLITE_INTEGER) {
		add_u64(h, (uint64_t)sqlite3_value_int64(v));
	} else if (type == SQLITE_FLOAT) {
		x = sqlite3_value_double(v);
		memcpy(&bits, &x, sizeof(bits));
		add_u64(h, bits);
	} else if (type == SQLITE_TEXT) {
		const void *text = sqlite3_value_text(v);

		add_bytes(h, text, sqlite3_value_bytes(v));
	} else if (type == SQLITE_BLOB) {
		const void *blob = sqlite3_value_blob(v);

		add_bytes(h, blob, sqlite3_value_bytes(v));
	}
}

static void sum_row(sqlite3_context *c, int n, sqlite3_value **v)
{
	crypto_generichash_state h;
	uint8_t out[SUM];

	crypto_generichash_init(&h, NULL, 0, SUM);
	for (int k = 0; k < n; k++)
		add_value(&h, v[k]);
	crypto_generichash_final(&h, out, SUM);
	sqlite3_result_blob(c, out, SUM, SQLITE_TRANSIENT);
}

static void sum_xor(sqlite3_context *c, int n, sqlite3_value **v)
{
	uint8_t out[SUM];
	const uint8_t *a = sqlite3_value_blob(v[0]), *b = sqlite3_value_blob(v[1]);

	(void)n;
	if (a == NULL || b == NULL || sqlite3_value_bytes(v[0]) != SUM ||
	    sqlite3_value_bytes(v[1]) != SUM) {
		sqlite3_result_null(c); /* what is NOT NULL refuses it */
		return;
	}
	for (int k = 0; k < SUM; k++)
		out[k] = a[k] ^ b[k];
	sqlite3_result_blob(c, out, SUM, SQLITE_TRANSIENT);
}

int db_sum_functions(sqlite3 *db)
{
	const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
	int code = sqlite3_create_function(db, "sum_row", -1, flags, NULL, sum_row, NULL, NULL);

	return code != SQLITE_OK ? code
				 : sqlite3_create_function(db, "sum_xor", 2, flags, NULL, sum_xor,
							   NULL, NULL);
}

/* ---- which tables, which columns ---- */

static const char tables_sql[] =
	"SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE"
	" '\\' AND name NOT LIKE 'ledger\\_%' ESCAPE '\\'"
	" AND name NOT IN ('block', 'name', 'triples', 'table_sum') ORDER BY name";

/* Calls each(s, table) for all of them. */
static int each_table(struct store *s,
		      int (*each)(struct store *s, const char *table, struct err *e), struct err *e)
{
	sqlite3_stmt *st;
	int rc = db_query(s, &st, e, tables_sql, "");
	char *names[64];
	size_t n = 0;

	while (rc == 0 && (rc = db_step(s, st, e)) > 0 && n < 64) {
		names[n++] = mem_strdup((const char *)sqlite3_column_text(st, 0));
		rc = 0;
	}
	sqlite3_finalize(st);
	for (size_t k = 0; k < n; k++) {
		if (rc == 0)
			rc = each(s, names[k], e);
		free(names[k]);
	}
	return rc;
}

/* "sum_row('peer', NEW.key, ...)": of row `of`, "NEW.", "OLD." or "". */
static int add_row_call(struct store *s, const char *table, const char *of, struct buf *sql,
			struct err *e)
{
	sqlite3_stmt *st;
	int rc = db_query(s, &st, e, "SELECT name, type FROM pragma_table_info(?) ORDER BY cid",
			  "t", table);

	buf_printf(sql, "sum_row('%s'", table);
	while (rc == 0 && (rc = db_step(s, st, e)) > 0) {
		const char *column = (const char *)sqlite3_column_text(st, 0);
		bool real = strcmp((const char *)sqlite3_column_text(st, 1), "REAL") == 0;

		buf_printf(sql, real ? ", CAST(%s\"%s\" AS REAL)" : ", %s\"%s\"", of, column);
		rc = 0;
	}
	sqlite3_finalize(st);
	buf_printf(sql, ")");
	return rc;
}

/* ---- keeping them ---- */

static int add_trigger(struct store *s, const char *table, const char *event, const char *change,
		       const char *const *rows, struct buf *sql, struct err *e)
{
	int rc = 0;

	buf_printf(sql,
		   "CREATE TRIGGER sum_%s_%s AFTER %s ON \"%s\" BEGIN UPDATE table_sum SET rows ="
		   " rows %s, sum = ",
		   table, event, event, table, change);
	for (size_t k = 0; rows[k] != NULL; k++)
		buf_printf(sql, "sum_xor(");
	buf_printf(sql, "sum");
	for (size_t k = 0; rows[k] != NULL && rc == 0; k++) {
		buf_printf(sql, ", ");
		rc = add_row_call(s, table, rows[k], sql, e);
		buf_printf(sql, ")");
	}
	buf_printf(sql, " WHERE name = '%s'; END;", table);
	return rc;
}

static int run(struct store *s, const struct buf *sql, struct err *e)
{
	return sqlite3_exec(s->db, (const char *)sql->base, NULL, NULL, NULL) == SQLITE_OK
		       ? 0
		       : db_fail(s, e);
}

/* The sum of the rows as they are now. */
static int sum_now(struct store *s, const char *table, uint8_t sum[SUM], int64_t *rows,
		   struct err *e)
{
	struct buf sql = { 0 };
	sqlite3_stmt *st = NULL;
	int rc;

	memset(sum, 0, SUM);
	*rows = 0;
	buf_printf(&sql, "SELECT ");
	rc = add_row_call(s, table, "", &sql, e);
	buf_printf(&sql, " FROM \"%s\"", table);
	if (rc == 0)
		rc = db_query(s, &st, e, (const char *)sql.base, "");
	while (rc == 0 && (rc = db_step(s, st, e)) > 0) {
		const uint8_t *row = sqlite3_column_blob(st, 0);

		for (int k = 0; k < SUM; k++)
			sum[k] ^= row[k];
		++*rows;
		rc = 0;
	}
	sqlite3_finalize(st);
	buf_release(&sql);
	return rc;
}

static int make_one(struct store *s, const char *table, struct err *e)
{
	static const char *const inserted[] = { "NEW.", NULL }, *const deleted[] = { "OLD.", NULL },
				 *const updated[] = { "OLD.", "NEW.", NULL };
	struct buf sql = { 0 };
	uint8_t sum[SUM];
	int64_t rows;
	int rc = add_trigger(s, table, "insert", "+ 1", inserted, &sql, e);

	if (rc == 0)
		rc = add_trigger(s, table, "delete", "- 1", deleted, &sql, e);
	if (rc == 0)
		rc = add_trigger(s, table, "update", "+ 0", updated, &sql, e);
	if (rc == 0)
		rc = run(s, &sql, e);
	if (rc == 0)
		rc = sum_now(s, table, sum, &rows, e);
	if (rc == 0)
		rc = db_do(s, e, "INSERT INTO table_sum (name, sum, rows) VALUES (?, ?, ?)", "tbi",
			   table, (const void *)sum, sizeof(sum), rows);
	buf_release(&sql);
	return rc;
}

int db_sums_drop(struct store *s, struct err *e)
{
	struct buf sql = { 0 };
	sqlite3_stmt *st;
	int rc = db_query(s, &st, e,
			  "SELECT name FROM sqlite_schema WHERE type = 'trigger'"
			  " AND name LIKE 'sum\\_%' ESCAPE '\\'",
			  "");

	buf_printf(&sql, "DELETE FROM table_sum;");
	while (rc == 0 && (rc = db_step(s, st, e)) > 0) {
		buf_printf(&sql, "DROP TRIGGER \"%s\";", sqlite3_column_text(st, 0));
		rc = 0;
	}
	sqlite3_finalize(st);
	if (rc == 0)
		rc = run(s, &sql, e);
	buf_release(&sql);
	return rc;
}

int db_sums_make(struct store *s, struct err *e)
{
	return each_table(s, make_one, e);
}

/* ---- checking them ---- */

static int differs(struct store *s, const char *table, struct err *e)
{
	char what[120];

	snprintf(what, sizeof(what), "table %.40s is not as it was written", table);
	return db_damaged(s, e, what);
}

static int check_one(struct store *s, const char *table, struct err *e)
{
	uint8_t now[SUM], then[SUM];
	int64_t rows, kept = -1;
	sqlite3_stmt *st;
	bool whole = false;
	int rc = db_query(s, &st, e, "SELECT sum, rows FROM table_sum WHERE name = ?", "t", table);

	if (rc == 0 && (rc = db_step(s, st, e)) > 0) {
		whole = db_bytes(st, 0, then, SUM);
		kept = sqlite3_column_int64(st, 1);
		rc = 0;
	}
	sqlite3_finalize(st);
	if (rc == 0 && whole)
		rc = sum_now(s, table, now, &rows, e);
	if (rc != 0)
		return rc;
	return whole && rows == kept && memcmp(now, then, SUM) == 0 ? 0 : differs(s, table, e);
}

/* Sums of tables that are none. */
static int check_strays(struct store *s, struct err *e)
{
	int64_t strays;
	int rc = db_number(s, &strays, e,
			   "SELECT count(*) FROM table_sum WHERE name NOT IN"
			   " (SELECT name FROM sqlite_schema WHERE type = 'table')");

	return rc == 0 && strays > 0 ? differs(s, "table_sum", e) : rc;
}

int db_sums_check(struct store *s, struct err *e)
{
	int rc = each_table(s, check_one, e);

	return rc == 0 ? check_strays(s, e) : rc;
}

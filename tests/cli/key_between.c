/* tests/cli/key_between.c - a partner that replaces its keys twice, and says of the keys in between
 * that their X25519 key is one that it does not hold: another agent's, or none.  Its own folder
 * goes on with the newest keys; the text for its partners is written to standard output.
 *
 *   key_between FOLDER ID|none */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/folder.h"
#include "base/mem.h"
#include "net/ident.h"

static void end_unless_done(int rc, const struct err *e)
{
	if (rc == 0)
		return;
	fprintf(stderr, "key_between: %s\n", e->text);
	exit(1);
}

static void replace_by(struct folder *f, const struct store_identity *was, const uint8_t key[32],
		       const struct store_identity *next)
{
	struct ledger_rotations all = { 0 };
	struct ledger_rotation r = { .time_ms = 1700000000000 };
	char text[LEDGER_ROTATION_TEXT];
	struct err e = { 0 };

	end_unless_done(store_rotations(f->store, &all, &e), &e);
	ledger_rotation_after(&r, ledger_rotations_last(&all, was->account));
	memcpy(r.account, was->account, LEDGER_KEY);
	memcpy(r.old_key, all.n > 0 ? all.at[all.n - 1].new_key : was->key, LEDGER_KEY);
	memcpy(r.old_sign, was->sign_key, LEDGER_KEY);
	memcpy(r.new_key, key, LEDGER_KEY);
	memcpy(r.new_sign, next->sign_key, LEDGER_KEY);
	ledger_rotation_sign(&r, was->sign_secret, next->sign_secret);
	end_unless_done(store_rotate_own(f->store, &r, &e), &e);
	ledger_rotation_format(&r, text);
	puts(text);
	ledger_rotations_release(&all);
}

int main(int argc, char **argv)
{
	struct store_identity *between, *last;
	struct folder f;
	struct err e = { 0 };
	uint8_t key[32] = { 0 };
	char *path;

	if (argc != 3 || sodium_init() < 0)
		return 2;
	if (strcmp(argv[2], "none") != 0)
		end_unless_done(net_key_parse(argv[2], key, &e), &e);
	end_unless_done(
		folder_open(&f, argv[1], FOLDER_CONFIG | FOLDER_IDENTITY | FOLDER_WRITE, &e), &e);
	between = store_identity_next(f.identity);
	last = store_identity_next(between);
	replace_by(&f, f.identity, key, between);
	replace_by(&f, between, last->key, last);
	path = mem_printf("%s/identity.key", argv[1]);
	remove(path);
	end_unless_done(store_identity_save(last, path, &e), &e);
	free(path);
	store_identity_free(between);
	store_identity_free(last);
	folder_close(&f);
	return 0;
}

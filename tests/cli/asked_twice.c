/* tests/cli/asked_twice.c - what an asker leaves that puts questions under an id that it has had:
 * in the owner's store its newest answered step twice more, once as it was asked and once asked
 * anew, both rightly signed.  The asker keeps no record of them.
 *
 *   asked_twice OWNER_FOLDER ASKER_FOLDER */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/folder.h"

static void end_unless_done(int rc, const struct err *e)
{
	if (rc == 0)
		return;
	fprintf(stderr, "asked_twice: %s\n", e->text);
	exit(1);
}

static void answer_again(struct folder *owner, struct store_step *s)
{
	struct store_batch b = { 0 };
	struct err e = { 0 };

	s->step.answered_ms++;
	ledger_step_answer(&s->step, owner->identity->sign_secret);
	store_batch_step(&b, s);
	end_unless_done(store_apply(owner->store, &b, &e), &e);
	store_batch_release(&b);
}

int main(int argc, char **argv)
{
	const unsigned needs = FOLDER_CONFIG | FOLDER_IDENTITY | FOLDER_WRITE;
	struct folder owner, asker;
	struct store_step *newest;
	struct err e = { 0 };
	size_t n;

	if (argc != 3 || sodium_init() < 0)
		return 2;
	end_unless_done(folder_open(&owner, argv[1], needs, &e), &e);
	end_unless_done(folder_open(&asker, argv[2], needs, &e), &e);
	end_unless_done(store_steps(owner.store, 1, &newest, &n, &e), &e);
	if (n != 1 || newest->ours) {
		fprintf(stderr, "asked_twice: %s has answered no step last\n", argv[1]);
		return 1;
	}
	answer_again(&owner, newest);
	newest->step.want++;
	ledger_step_ask(&newest->step, asker.identity->sign_secret);
	answer_again(&owner, newest);
	free(newest);
	folder_close(&owner);
	folder_close(&asker);
	return 0;
}

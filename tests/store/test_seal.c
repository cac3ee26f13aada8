/* tests/store/test_seal.c - an export as a whole: whatever is done to the file is found, and
 * named; what no file can show is said. */
#include "tests/test.h"

#include <jansson.h>

#include "base/mem.h"
#include "tests/store/world.h"

static const struct ledger_request nothing = { .nonce = NULL };

/* Agent 0 hosts for 1 and 2 and is a client of 1; it has trained with noise twice. */
static void some_history(struct world *w)
{
	world_init(w);
	world_add(w, LEDGER_CONTRACT, 0, 1, 1, 0);
	world_add(w, LEDGER_CONTRACT, 0, 2, 1, 0);
	world_add(w, LEDGER_RESERVE, 0, 1, 2, 32);
	world_add(w, LEDGER_RESERVE, 0, 2, 3, 40);
	world_add(w, LEDGER_SETTLE, 0, 1, 2, 30);
	world_add(w, LEDGER_SETTLE, 0, 2, 3, 40);
	world_add(w, LEDGER_RESERVE, 1, 0, 4, 0);
	world_add(w, LEDGER_SETTLE, 1, 0, 4, 0);
}

static void add_training(struct ledger_export *x, const struct world *w, const char *nonce)
{
	const struct ledger_statement like = { .sampled = LEDGER_SAMPLED_GAUSSIAN,
					       .adjacency = LEDGER_TRIPLE,
					       .records = 1000,
					       .rate = 0.1,
					       .noise = 2,
					       .clip = 1,
					       .delta = 1e-5,
					       .epsilon = 4 };
	struct ledger_training t = { 0 };

	x->stated = mem_array(2, sizeof(*x->stated));
	for (x->n_stated = 0; x->n_stated < 2; x->n_stated++) {
		struct ledger_stated *s = &x->stated[x->n_stated];
		struct ledger_statement now = like;

		memcpy(now.agent, world_key(w, 0), LEDGER_KEY);
		assert_int_equal(ledger_training_next(&s->statement, &t, &now, 10, 1000, NULL), 0);
		ledger_statement_sign(s, w->id[0]->sign_secret);
		assert_int_equal(ledger_training_add(&t, s, NULL, NULL), 0);
	}
	ledger_export_seal(x, w->time_ms, nonce, w->id[0]->sign_secret);
}

/* What an agent hands over: agent 0's with everything in it. */
static json_t *file_of(const struct ledger_export *x)
{
	struct buf text = { 0 };
	json_t *root;

	store_export_write(x, &text);
	root = json_loadb((const char *)text.base, text.len, 0, NULL);
	buf_release(&text);
	assert_non_null(root);
	return root;
}

static json_t *whole_file(struct world *w)
{
	struct ledger_export x;
	json_t *root;

	some_history(w);
	x = world_sealed(w, 0, -1, NULL);
	add_training(&x, w, "audit");
	root = file_of(&x);
	ledger_export_release(&x);
	return root;
}

/* As `fkge ledger verify FILE` sees this text; words: what was found, one behind the other. */
static int check(const char *text, size_t n, struct buf *words)
{
	struct ledger_report r = { 0 };
	struct ledger_export x;
	struct err e = { 0 };
	int rc = store_export_read(&x, text, n, &e);

	if (rc != 0) {
		buf_printf(words, "%s", e.text);
		return rc;
	}
	rc = ledger_audit(&x, 1, &nothing, &r);
	for (size_t k = 0; k < r.n; k++)
		buf_printf(words, "%s%s\n", r.at[k].note ? "" : "FAULT: ", r.at[k].text);
	ledger_report_release(&r);
	ledger_export_release(&x);
	return rc;
}

/* Status 9; but 4 where what stands there is no value of its key, or the file no export at all, and
 * 7 for a version that is not known. */
static bool is_status(int rc, const char *words)
{
	if (rc == ERR_INPUT)
		return strstr(words, "must be ") != NULL || strstr(words, "not a ledger") != NULL;
	return rc == ERR_LEDGER || (rc == ERR_VERSION && strstr(words, "version") != NULL);
}

/* It is refused, in a sentence with these words in it. */
static void refused_text(const char *text, size_t n, const char *what, const char *word)
{
	struct buf words = { 0 };
	int rc = check(text, n, &words);

	buf_add(&words, "", 1);
	if (!is_status(rc, (const char *)words.base))
		fail_msg("%s: status %d: %s", what, rc, (const char *)words.base);
	if (strstr((const char *)words.base, word) == NULL)
		fail_msg("%s: \"%s\" is not in \"%s\"", what, word, (const char *)words.base);
	buf_release(&words);
}

static void refused(const json_t *root, const char *what, const char *word)
{
	char *text = json_dumps(root, JSON_REAL_PRECISION(17));

	assert_non_null(text);
	refused_text(text, strlen(text), what, word);
	free(text);
}

static void an_untouched_export_holds(void **state)
{
	struct world w;
	json_t *root = whole_file(&w);
	char *text = json_dumps(root, JSON_REAL_PRECISION(17));
	struct buf words = { 0 };

	(void)state;
	assert_non_null(text);
	if (check(text, strlen(text), &words) != 0)
		fail_msg("%.*s", (int)words.len, (const char *)words.base);
	free(text);
	buf_release(&words);
	json_decref(root);
	world_release(&w);
}

/* ---- every key ---- */

/* Another value of the same kind. */
static json_t *another(const json_t *v)
{
	if (json_is_null(v))
		return json_string(
			"0000000000000000000000000000000000000000000000000000000000000000");
	if (json_is_integer(v))
		return json_integer(json_integer_value(v) + 1);
	if (json_is_real(v))
		return json_real(json_real_value(v) * 2 + 1);
	if (json_is_string(v)) {
		char *text = mem_strdup(json_string_value(v));
		json_t *o;

		if (text[0] != '\0')
			text[0] = text[0] == '0' ? '1' : '0';
		o = json_string(text[0] != '\0' ? text : "0");
		free(text);
		return o;
	}
	return json_boolean(!json_is_true(v));
}

/* Each value of an object, one at a time: changed, null, renamed, dropped. */
static void each_value(json_t *root, json_t *o, const char *where)
{
	json_t *keep = json_copy(o), *v;
	const char *key;
	char what[160], renamed[80];

	json_object_foreach(keep, key, v)
	{
		snprintf(what, sizeof(what), "%s.%s", where, key);
		if (!json_is_array(v) && !json_is_object(v)) {
			json_object_set_new(o, key, another(v));
			refused(root, what, "");
		}
		if (!json_is_null(v)) {
			json_object_set_new(o, key, json_null());
			refused(root, what, "");
		}
		json_object_del(o, key);
		/* without its own first key it is no export at all */
		refused(root, what, strcmp(what, "root.fkge_ledger") == 0 ? "not a ledger" : key);
		snprintf(renamed, sizeof(renamed), "%s_", key);
		json_object_set(o, renamed, v);
		refused(root, what, strcmp(what, "root.fkge_ledger") == 0 ? "not a ledger" : key);
		json_object_set(o, key, v);
		refused(root, what, renamed); /* one more that is none */
		json_object_del(o, renamed);
	}
	json_decref(keep);
}

static void every_key_is_needed_and_no_other(void **state)
{
	static const char *const objects[] = { "owner", "training" };
	static const char *const lists[] = { "parties", "chains", "entries", "statements" };
	struct world w;
	json_t *root = whole_file(&w);

	(void)state;
	each_value(root, root, "root");
	for (size_t k = 0; k < 2; k++)
		each_value(root, json_object_get(root, objects[k]), objects[k]);
	for (size_t k = 0; k < 4; k++) {
		json_t *list = json_object_get(root, lists[k]);

		for (size_t i = 0; i < json_array_size(list); i++)
			each_value(root, json_array_get(list, i), lists[k]);
	}
	json_decref(root);
	world_release(&w);
}

/* Of a key that stands twice some readers take the first, others the last. */
static void no_key_stands_twice(void **state)
{
	struct world w;
	json_t *root = whole_file(&w), *v;
	const char *key;

	(void)state;
	json_object_foreach(root, key, v)
	{
		char *text = json_dumps(root, JSON_REAL_PRECISION(17)), *value, name[80];
		struct buf twice = { 0 };

		value = json_dumps(v, JSON_REAL_PRECISION(17) | JSON_ENCODE_ANY);
		assert_true(text != NULL && value != NULL);
		buf_printf(&twice, "{\"%s\": %s, %s", key, value, text + 1);
		snprintf(name, sizeof(name), "%s", key);
		refused_text((const char *)twice.base, twice.len, key, name);
		free(text);
		free(value);
		buf_release(&twice);
	}
	json_decref(root);
	world_release(&w);
}

/* Each list: cut at either end, emptied, turned round, an element twice. */
static void every_list_is_whole_and_in_order(void **state)
{
	static const char *const lists[] = { "parties", "chains", "entries", "statements" };
	struct world w;
	json_t *root = whole_file(&w);

	(void)state;
	for (size_t k = 0; k < 4; k++) {
		json_t *list = json_object_get(root, lists[k]), *now;
		size_t n = json_array_size(list);
		const char *word = k == 0   ? "whom it names as its owner"
				   : k == 3 ? "statements about training"
					    : "entries with";

		assert_true(n >= 2);
		for (int how = 0; how < 5; how++) {
			now = json_copy(list);
			if (how == 0)
				json_array_remove(now, n - 1);
			else if (how == 1)
				json_array_remove(now, 0);
			else if (how == 2)
				json_array_clear(now);
			else if (how == 3)
				json_array_append(now, json_array_get(list, 0));
			else if (how == 4) {
				json_array_set(now, 0, json_array_get(list, n - 1));
				json_array_set(now, n - 1, json_array_get(list, 0));
			}
			json_incref(list);
			json_object_set_new(root, lists[k], now);
			refused(root, lists[k], how < 4 ? word : "whom it names as its owner");
			json_object_set_new(root, lists[k], list);
		}
	}
	json_decref(root);
	world_release(&w);
}

/* ---- what somebody may be after ---- */

/* Audit of one or two; exactly these words, in a fault or (note) not. */
static void found(const struct ledger_export *x, size_t n, const struct ledger_request *request,
		  enum ledger_fault fault, bool note, const char *words)
{
	struct ledger_report r = { 0 };
	int rc = ledger_audit(x, n, request, &r);

	assert_int_equal(rc, r.faults > 0 ? ERR_LEDGER : 0);
	for (size_t k = 0; k < r.n; k++)
		if (r.at[k].fault == fault && r.at[k].note == note &&
		    strstr(r.at[k].text, words) != NULL) {
			ledger_report_release(&r);
			return;
		}
	for (size_t k = 0; k < r.n; k++)
		print_message("# %s\n", r.at[k].text);
	fail_msg("not found: %s", words);
}

static void unsaid(const struct ledger_export *x, const struct ledger_request *request,
		   const char *words)
{
	struct ledger_report r = { 0 };

	assert_int_equal(ledger_audit(x, 1, request, &r), 0);
	for (size_t k = 0; k < r.n; k++)
		assert_null(strstr(r.at[k].text, words));
	ledger_report_release(&r);
}

/* A cut copy of one's own export, with the partner's key as its owner. */
static void a_copy_under_another_name_is_found(void **state)
{
	struct ledger_export x[2];
	struct world w;

	(void)state;
	some_history(&w);
	x[0] = world_sealed(&w, 0, -1, NULL);
	x[0].n -= 2;
	x[1] = world_sealed(&w, 0, -1, NULL);
	x[1].n -= 2;
	found(x, 1, &nothing, LEDGER_CUT, false, "was cut: it had");
	x[1].owner = world_party(&w, 1);
	found(x, 2, &nothing, LEDGER_SEAL, false, "whom it names as its owner");
	/* Signed anew by who has cut it, who has no other key than its own. */
	ledger_export_seal(&x[1], w.time_ms, NULL, w.id[0]->sign_secret);
	found(x, 2, &nothing, LEDGER_SEAL, false, "whom it names as its owner");
	found(x + 1, 1, &nothing, LEDGER_SEAL, false, "whom it names as its owner");
	ledger_export_release(&x[0]);
	ledger_export_release(&x[1]);
	world_release(&w);
}

/* Cut and signed anew by its owner: the partner's export has what is gone. */
static void an_owner_who_cuts_is_found_by_its_partner(void **state)
{
	struct ledger_export x[2];
	struct world w;

	(void)state;
	some_history(&w);
	x[0] = world_sealed(&w, 0, -1, NULL);
	x[0].n -= 2;
	ledger_export_seal(&x[0], w.time_ms, NULL, w.id[0]->sign_secret);
	x[1] = world_sealed(&w, 1, -1, NULL);
	found(x, 1, &nothing, LEDGER_NOT_CHECKED, true, "no export of that partner was given");
	found(x, 2, &nothing, LEDGER_SHORTER, false, "was rolled back or cut");
	ledger_export_release(&x[0]);
	ledger_export_release(&x[1]);
	world_release(&w);
}

static void two_of_one_owner_are_no_two(void **state)
{
	struct ledger_export x[2];
	struct world w;

	(void)state;
	some_history(&w);
	x[0] = world_sealed(&w, 0, -1, NULL);
	x[1] = world_sealed(&w, 0, 1, NULL);
	found(x, 2, &nothing, LEDGER_RULE, false, "both exports are of one owner");
	ledger_export_release(&x[0]);
	ledger_export_release(&x[1]);
	world_release(&w);
}

/* Without a partner's chain nothing of it is there that could be cut. */
static void partners_left_out_whole_may_be(void **state)
{
	struct ledger_export x;
	struct world w;

	(void)state;
	some_history(&w);
	x = world_sealed(&w, 0, -1, NULL);
	found(&x, 1, &nothing, LEDGER_NOT_CHECKED, true, "has had other partners");
	x.n = 0;
	ledger_export_seal(&x, w.time_ms, NULL, w.id[0]->sign_secret);
	found(&x, 1, &nothing, LEDGER_NOT_CHECKED, true, "has had other partners");
	ledger_export_release(&x);
	world_release(&w);
}

static void an_export_of_one_pair_says_so(void **state)
{
	struct ledger_export x[2];
	struct world w;

	(void)state;
	some_history(&w);
	x[0] = world_sealed(&w, 0, 1, NULL);
	x[1] = world_sealed(&w, 1, -1, NULL);
	found(x, 1, &nothing, LEDGER_NOT_CHECKED, true, "the export is of one pair alone");
	found(x, 2, &nothing, LEDGER_NOT_CHECKED, true, "the export is of one pair alone");
	ledger_export_release(&x[1]);
	x[1] = world_sealed(&w, 2, -1, NULL);
	found(x, 2, &nothing, LEDGER_RULE, false, "holds its entries with");
	x[0].whole = true; /* the bytes that are signed have a peer, or none */
	memset(x[0].peer, 0, LEDGER_KEY);
	found(x, 1, &nothing, LEDGER_SEAL, false, "whom it names as its owner");
	ledger_export_release(&x[0]);
	x[0] = world_sealed(&w, 0, -1, NULL);
	memcpy(x[0].peer, world_key(&w, 1), LEDGER_KEY);
	x[0].whole = false; /* an owner who says so of entries with others, too */
	ledger_export_seal(&x[0], w.time_ms, NULL, w.id[0]->sign_secret);
	found(x, 1, &nothing, LEDGER_FOREIGN, false, "is of its pair with");
	ledger_export_release(&x[0]);
	ledger_export_release(&x[1]);
	world_release(&w);
}

static void entries_of_others_are_found(void **state)
{
	struct ledger_export x;
	struct world w;

	(void)state;
	some_history(&w);
	x = world_sealed(&w, 2, -1, NULL);
	for (size_t k = 0; k < w.n; k++)
		if (memcmp(w.entry[k].entry.client, world_key(&w, 1), LEDGER_KEY) == 0)
			x.at[x.n++] = w.entry[k];
	ledger_export_seal(&x, w.time_ms, NULL, w.id[2]->sign_secret);
	found(&x, 1, &nothing, LEDGER_FOREIGN, false, "which is none of its own");
	ledger_export_release(&x);
	world_release(&w);
}

/* An old export is as good as on its day; only what the auditor asks for tells it. */
static void an_old_export_is_told_by_nonce_and_time(void **state)
{
	struct ledger_export x, bare;
	struct world w;

	(void)state;
	some_history(&w);
	x = world_sealed(&w, 0, -1, "spring");
	bare = world_sealed(&w, 0, -1, NULL);
	found(&x, 1, &nothing, LEDGER_NOT_CHECKED, true, "is not an old one");
	found(&x, 1, &(struct ledger_request){ .nonce = "summer" }, LEDGER_NONCE, false,
	      "with the nonce 'spring', not 'summer'");
	found(&bare, 1, &(struct ledger_request){ .nonce = "summer" }, LEDGER_NONCE, false,
	      "without a nonce");
	found(&x, 1, &(struct ledger_request){ .since_ms = w.time_ms + 5000 }, LEDGER_NONCE, false,
	      "is old: it was made 5 s before");
	found(&x, 1, &(struct ledger_request){ .since_ms = w.time_ms }, LEDGER_NOT_CHECKED, true,
	      "but by its owner's clock: only a nonce shows it");
	unsaid(&x, &(struct ledger_request){ .nonce = "spring" }, "is not an old one");
	unsaid(&x, &(struct ledger_request){ .fresh = true }, "is not an old one");
	/* made in advance, for the day on which it is asked for */
	found(&x, 1,
	      &(struct ledger_request){ .since_ms = w.time_ms, .now_ms = w.time_ms - 300001 },
	      LEDGER_NONCE, false, "is dated 300 s later than now");
	unsaid(&x, &(struct ledger_request){ .now_ms = w.time_ms - 300000 }, "later than now");
	found(&x, 1, &(struct ledger_request){ .nonce = "spring", .since_ms = w.time_ms },
	      LEDGER_NOT_CHECKED, true, "since it was made");
	snprintf(x.nonce, sizeof(x.nonce), "summer");
	found(&x, 1, &(struct ledger_request){ .nonce = "summer" }, LEDGER_SEAL, false,
	      "signed it");
	ledger_export_release(&x);
	ledger_export_release(&bare);
	world_release(&w);
}

/* Who signs for whom is what fingerprints are compared for. */
static void keys_of_partners_are_compared(void **state)
{
	struct ledger_export x[2];
	struct world w;

	(void)state;
	some_history(&w);
	x[0] = world_sealed(&w, 0, -1, NULL);
	x[1] = world_sealed(&w, 1, -1, NULL);
	x[0].parties[0].key[0] ^= 1; /* agent 1's, as its partner has it */
	ledger_export_seal(&x[0], w.time_ms, NULL, w.id[0]->sign_secret);
	found(x, 2, &nothing, LEDGER_PARTY, false, "has other keys of");
	x[0].parties[0] = x[0].parties[1];
	ledger_export_seal(&x[0], w.time_ms, NULL, w.id[0]->sign_secret);
	found(x, 1, &nothing, LEDGER_PARTY, false, "twice among its parties");
	ledger_export_release(&x[0]);
	ledger_export_release(&x[1]);
	world_release(&w);
}

static void what_two_exports_leave_unchecked_is_said(void **state)
{
	struct ledger_report r = { 0 };
	struct ledger_export x[2];
	struct world w;
	size_t unchecked = 0;

	(void)state;
	some_history(&w);
	x[0] = world_sealed(&w, 0, -1, "now");
	x[1] = world_sealed(&w, 1, -1, "now");
	assert_int_equal(ledger_audit(x, 2, &(struct ledger_request){ .nonce = "now" }, &r), 0);
	for (size_t k = 0; k < r.n; k++)
		unchecked += r.at[k].fault == LEDGER_NOT_CHECKED;
	/* agent 0 with agent 2; other partners of each; what each did since; keys */
	assert_int_equal(unchecked, 6);
	ledger_report_release(&r);
	ledger_export_release(&x[0]);
	ledger_export_release(&x[1]);
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_untouched_export_holds),
		cmocka_unit_test(every_key_is_needed_and_no_other),
		cmocka_unit_test(no_key_stands_twice),
		cmocka_unit_test(every_list_is_whole_and_in_order),
		cmocka_unit_test(a_copy_under_another_name_is_found),
		cmocka_unit_test(an_owner_who_cuts_is_found_by_its_partner),
		cmocka_unit_test(two_of_one_owner_are_no_two),
		cmocka_unit_test(partners_left_out_whole_may_be),
		cmocka_unit_test(an_export_of_one_pair_says_so),
		cmocka_unit_test(entries_of_others_are_found),
		cmocka_unit_test(an_old_export_is_told_by_nonce_and_time),
		cmocka_unit_test(keys_of_partners_are_compared),
		cmocka_unit_test(what_two_exports_leave_unchecked_is_said),
	};

	return cmocka_run_group_tests_name("store/seal", tests, NULL, NULL);
}

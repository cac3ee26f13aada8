/* tests/store/test_rotation.c - keys that an owner replaces: the text, who may sign with what, and
 * a store that goes on. */
#include "tests/folder.h"
#include "tests/test.h"

#include "base/file.h"
#include "base/mem.h"
#include "graph/graph.h"
#include "store/db_internal.h"
#include "store/proved.h"
#include "store/restored.h"
#include "tests/store/world.h"

/* The next rotation of who, whose keys become those of `next`. */
static struct ledger_rotation rotation(const struct ledger_rotations *all,
				       const struct store_identity *who,
				       const struct store_identity *next)
{
	struct ledger_rotation r = { .time_ms = 1700000000000 };

	ledger_rotation_after(&r, ledger_rotations_last(all, who->account));
	memcpy(r.account, who->account, LEDGER_KEY);
	memcpy(r.old_key, who->key, LEDGER_KEY);
	memcpy(r.old_sign, who->sign_key, LEDGER_KEY);
	memcpy(r.new_key, next->key, LEDGER_KEY);
	memcpy(r.new_sign, next->sign_key, LEDGER_KEY);
	ledger_rotation_sign(&r, who->sign_secret, next->sign_secret);
	return r;
}

static int taken(struct ledger_rotations *all, const struct ledger_rotation *r, const char *why)
{
	struct err e = { 0 };
	int rc = ledger_rotations_add(all, r, &e);

	if (rc != 0 && strstr(e.text, why) == NULL)
		fail_msg("'%s' is not in: %s", why, e.text);
	return rc;
}

/* ---- the text ---- */

static void a_text_says_all_and_no_byte_can_change(void **state)
{
	struct ledger_rotations none = { 0 };
	struct store_identity *a = store_identity_new(), *b = store_identity_next(a);
	struct ledger_rotation r = rotation(&none, a, b), back;
	uint8_t bytes[LEDGER_ROTATION_BYTES], again[LEDGER_ROTATION_BYTES];
	char text[LEDGER_ROTATION_TEXT];
	struct err e = { 0 };

	(void)state;
	ledger_rotation_format(&r, text);
	assert_int_equal(ledger_rotation_parse(&back, text, strlen(text), &e), 0);
	ledger_rotation_encode(&r, bytes);
	ledger_rotation_encode(&back, again);
	assert_memory_equal(bytes, again, sizeof(bytes));
	for (size_t k = 0; k < sizeof(bytes); k++) {
		bytes[k] ^= 1;
		assert_int_equal(ledger_rotation_decode(&back, bytes, sizeof(bytes), NULL),
				 ERR_LEDGER);
		bytes[k] ^= 1;
	}
	assert_int_equal(ledger_rotation_decode(&back, bytes, sizeof(bytes) - 1, NULL), ERR_LEDGER);
	assert_int_equal(ledger_rotation_parse(&back, text, strlen(text) - 1, NULL), ERR_INPUT);
	assert_int_equal(ledger_rotation_parse(&back, "fkge1:abc", 9, NULL), ERR_INPUT);
	assert_int_equal(ledger_rotation_parse(&back, "", 0, NULL), ERR_INPUT);
	store_identity_free(a);
	store_identity_free(b);
}

static void each_follows_the_one_before(void **state)
{
	struct ledger_rotations all = { 0 }, none = { 0 };
	struct store_identity *a = store_identity_new(), *b = store_identity_next(a),
			      *c = store_identity_next(b), *thief = store_identity_next(a);
	struct ledger_rotation one = rotation(&none, a, b), two, other = rotation(&none, a, thief);

	(void)state;
	assert_int_equal(taken(&all, &one, ""), 0);
	two = rotation(&all, b, c);
	assert_int_equal(taken(&none, &two, "before it are missing"), ERR_LEDGER);
	assert_int_equal(taken(&all, &other, "two who hold the old keys"), ERR_LEDGER);
	assert_int_equal(taken(&all, &one, "two who hold the old keys"), ERR_LEDGER);
	assert_true(ledger_rotations_have(&all, &one));
	assert_false(ledger_rotations_have(&all, &other));
	/* by the thief's keys, of the right number */
	other = rotation(&all, thief, c);
	assert_int_equal(taken(&all, &other, "does not follow"), ERR_LEDGER);
	/* back to a key that was replaced */
	other = rotation(&all, b, a);
	assert_int_equal(taken(&all, &other, "known already"), ERR_LEDGER);
	assert_int_equal(all.n, 1);
	assert_int_equal(taken(&all, &two, ""), 0);
	assert_memory_equal(ledger_rotations_signer(&all, a->account), c->sign_key, LEDGER_KEY);
	assert_memory_equal(ledger_rotations_account(&all, c->sign_key), a->account, LEDGER_KEY);
	assert_memory_equal(ledger_rotations_account(&all, thief->sign_key), thief->sign_key,
			    LEDGER_KEY);
	assert_ptr_equal(ledger_rotations_replaced(&all, b->key), &all.at[1]);
	assert_null(ledger_rotations_replaced(&all, c->key));
	ledger_rotations_release(&all);
	store_identity_free(a);
	store_identity_free(b);
	store_identity_free(c);
	store_identity_free(thief);
}

/* Else chains, totals and caps of the account would begin anew. */
static void an_account_begins_once(void **state)
{
	struct ledger_rotations all = { 0 }, none = { 0 };
	struct store_identity *a = store_identity_new(), *z = store_identity_next(a),
			      *w = store_identity_next(z);
	struct ledger_rotation first = rotation(&none, a, z), again;

	(void)state;
	memcpy(z->account, z->sign_key, LEDGER_KEY);
	again = rotation(&none, z, w);
	assert_int_equal(taken(&all, &first, ""), 0);
	assert_int_equal(taken(&all, &again, "is no account"), ERR_LEDGER);
	assert_int_equal(all.n, 1);
	ledger_rotations_release(&all);
	/* the other way round */
	assert_int_equal(taken(&all, &again, ""), 0);
	assert_int_equal(taken(&all, &first, "known already"), ERR_LEDGER);
	assert_int_equal(all.n, 1);
	ledger_rotations_release(&all);
	store_identity_free(a);
	store_identity_free(z);
	store_identity_free(w);
}

/* ---- entries ---- */

/* Agent 0's keys become others; its account stays, and what signs for it changes. */
static struct store_identity *replace(struct world *w, struct ledger_rotations *all)
{
	struct store_identity *was = w->id[0], *next = store_identity_next(was);
	struct ledger_rotation r = rotation(all, was, next);

	assert_int_equal(taken(all, &r, ""), 0);
	for (int k = 0; k < WORLD_AGENTS; k++)
		ledger_chain_follow(&w->chain[k], all);
	w->id[0] = next;
	return was;
}

static void what_was_spent_is_spent_with_any_key(void **state)
{
	struct ledger_rotations all = { 0 };
	struct store_identity *was;
	struct ledger_signed *s;
	struct ledger_chain *c;
	struct world w;

	(void)state;
	world_init(&w);
	world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0);
	world_add(&w, LEDGER_RESERVE, 0, 1, 1, 100);
	world_add(&w, LEDGER_SETTLE, 0, 1, 1, 100);
	was = replace(&w, &all);
	s = world_add(&w, LEDGER_RESERVE, 0, 1, 2, 50);
	c = world_chain(&w, 0, 1);
	assert_int_equal(s->entry.total_pair, 150);
	assert_memory_equal(s->entry.host, was->sign_key, LEDGER_KEY);
	assert_int_equal(ledger_check_signature(s, NULL, NULL),
			 ERR_LEDGER); /* not with the first key */
	assert_true(ledger_signed_by(c, s, was->account));
	assert_int_equal(s->entry.caps.pair, w.caps.pair);
	store_identity_free(was);
	ledger_rotations_release(&all);
	world_release(&w);
}

static void the_old_key_signs_nothing_after_the_new_one(void **state)
{
	struct ledger_rotations all = { 0 };
	struct store_identity *was;
	struct ledger_signed forged;
	struct ledger_chain *c;
	struct world w;
	struct err e = { 0 };

	(void)state;
	world_init(&w);
	world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0);
	was = replace(&w, &all);
	c = world_chain(&w, 0, 1);
	/* on the way when the keys changed: still good */
	assert_int_equal(world_draft(&w, &forged.entry, LEDGER_RESERVE, 0, 1, 2, 10, &e), 0);
	ledger_sign(&forged, was->sign_secret);
	ledger_countersign(&forged, w.id[1]->sign_secret);
	assert_int_equal(ledger_chain_add(c, &forged, &e), 0);
	world_add(&w, LEDGER_SETTLE, 0, 1, 2, 10);
	assert_int_equal(world_draft(&w, &forged.entry, LEDGER_RESERVE, 0, 1, 3, 10, &e), 0);
	ledger_sign(&forged, was->sign_secret);
	assert_int_equal(ledger_chain_add(c, &forged, &e), ERR_LEDGER);
	assert_non_null(strstr(e.text, "replaced before"));
	/* as client, too */
	world_add(&w, LEDGER_CONTRACT, 1, 0, 4, 0);
	assert_int_equal(world_draft(&w, &forged.entry, LEDGER_RESERVE, 1, 0, 5, 10, &e), 0);
	ledger_sign(&forged, w.id[1]->sign_secret);
	ledger_countersign(&forged, was->sign_secret);
	assert_int_equal(ledger_chain_add(c, &forged, &e), ERR_LEDGER);
	assert_non_null(strstr(e.text, "countersignature"));
	store_identity_free(was);
	ledger_rotations_release(&all);
	world_release(&w);
}

static void exports_before_and_after_hold(void **state)
{
	const struct ledger_request ask = { 0 };
	struct ledger_report r = { 0 };
	struct ledger_export x;
	struct store_identity *was;
	struct world w;
	struct buf json = { 0 };
	struct ledger_export back;
	struct err e = { 0 };

	(void)state;
	world_init(&w);
	world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0);
	x = world_sealed(&w, 0, -1, NULL);
	ledger_export_release(&x);
	was = replace(&w, &x.rotations);
	world_add(&w, LEDGER_RESERVE, 0, 1, 2, 10);
	world_add(&w, LEDGER_SETTLE, 0, 1, 2, 10);
	back = x;
	x = world_sealed(&w, 0, -1, NULL);
	x.rotations = back.rotations;
	memcpy(x.owner.sign_key, was->account, LEDGER_KEY);
	for (size_t k = 0; k < w.n && k < WORLD_ENTRIES; k++)
		x.at[k] = w.entry[k];
	x.n = w.n;
	ledger_export_seal(&x, w.time_ms, NULL, w.id[0]->sign_secret);
	store_export_write(&x, &json);
	assert_non_null(strstr((const char *)json.base, "\"fkge_ledger\": 3"));
	assert_int_equal(store_export_read(&back, json.base, json.len, &e), 0);
	if (ledger_audit(&back, 1, &ask, &r) != 0)
		fail_msg("%s", r.at[0].text);
	ledger_report_release(&r);
	/* sealed with the key of before */
	ledger_export_seal(&back, w.time_ms, NULL, was->sign_secret);
	assert_int_equal(ledger_audit(&back, 1, &ask, &r), ERR_LEDGER);
	assert_int_equal(r.at[0].fault, LEDGER_SEAL);
	ledger_report_release(&r);
	/* without what says that the new key may sign */
	ledger_rotations_release(&back.rotations);
	ledger_export_seal(&back, w.time_ms, NULL, was->sign_secret);
	assert_int_equal(ledger_audit(&back, 1, &ask, &r), ERR_LEDGER);
	assert_int_equal(r.at[0].fault, LEDGER_BAD_SIGNATURE);
	ledger_report_release(&r);
	buf_release(&json);
	ledger_export_release(&back);
	ledger_export_release(&x);
	store_identity_free(was);
	world_release(&w);
}

/* ---- the store ---- */

static struct store *must_open(const char *path, const uint8_t *owner)
{
	struct store_options o = { .owner = owner };
	struct store *s;
	struct err e = { 0 };

	if (store_open(&s, path, &o, &e) != 0)
		fail_msg("%s", e.text);
	return s;
}

static void put(struct store *s, struct store_batch *b)
{
	struct err e = { 0 };

	if (store_apply(s, b, &e) != 0)
		fail_msg("%s", e.text);
	store_batch_release(b);
}

/* Where the key stands, and the same bytes as a frame's name. */
enum { KEY_AT = 13, FRAME_AT = KEY_AT + LEDGER_KEY + 5 };

/* As net/ writes {"f": 196, "p": [{"k": key, "fn": the same bytes}]}: 82 a map of two, a1 a string
 * of one byte, c4 bytes. */
static size_t agent_record(const struct store_identity *id, uint8_t out[128])
{
	static const uint8_t head[] = { 0x82, 0xa1, 'f', 0xcc, 0xc4, 0xa1, 'p' },
			     peer[] = { 0x91, 0x82, 0xa1, 'k', 0xc4, LEDGER_KEY },
			     name[] = { 0xa2, 'f', 'n', 0xc4, LEDGER_KEY };
	struct buf b = { 0 };
	size_t n;

	buf_add(&b, head, sizeof(head));
	buf_add(&b, peer, sizeof(peer));
	buf_add(&b, id->key, LEDGER_KEY);
	buf_add(&b, name, sizeof(name));
	buf_add(&b, id->key, LEDGER_KEY);
	assert_true(b.len <= 128);
	memcpy(out, b.base, n = b.len);
	buf_release(&b);
	return n;
}

static void put_partner(struct store *s, const struct store_identity *id)
{
	struct store_peer p = { .name = "agent 0", .status = STORE_LISTED };
	struct store_judgement j = { .judged = 7, .reputation = .5 };
	struct store_batch b = { 0 };
	uint8_t record[128], restored[10 + 2 * STORE_KEY] = { 1 };
	size_t n = agent_record(id, record);

	memcpy(p.key, id->key, STORE_KEY);
	memcpy(p.sign_key, id->sign_key, STORE_KEY);
	memcpy(j.peer, id->key, STORE_KEY);
	memcpy(restored + 10 + STORE_KEY, id->key, STORE_KEY);
	store_batch_peer(&b, &p);
	store_batch_judgement(&b, &j);
	store_batch_meta(&b, "agent", record, n);
	store_batch_meta(&b, "history", record, n);
	store_batch_meta(&b, "look", record, n);
	store_batch_meta(&b, STORE_META_RESTORED, restored, sizeof(restored));
	put(s, &b);
}

static void check_bytes_at(struct store *s, const char *key, size_t at,
			   const uint8_t want[STORE_KEY])
{
	struct buf meta = { 0 };
	struct err e = { 0 };

	assert_int_equal(store_meta(s, key, &meta, &e), 0);
	assert_true(at + STORE_KEY <= meta.len);
	assert_memory_equal(meta.base + at, want, STORE_KEY);
	buf_release(&meta);
}

/* Keys of a peer, where they stand, and nothing else that has the same bytes. */
static void check_renamed(struct store *s, const struct store_identity *was,
			  const struct store_identity *now)
{
	check_bytes_at(s, "agent", KEY_AT, now->key);
	check_bytes_at(s, "agent", FRAME_AT, was->key);
	check_bytes_at(s, "history", KEY_AT, now->key);
	check_bytes_at(s, "look", KEY_AT, was->key);
	check_bytes_at(s, STORE_META_RESTORED, 10 + STORE_KEY, now->key);
}

/* At agent 1: its partner 0 has other keys, and all goes on. */
static void a_partner_has_other_keys(void **state)
{
	char *path = file_join(folder, "partner.db");
	struct ledger_rotations all = { 0 };
	struct store_core core;
	struct store_identity *was;
	struct store_batch b = { 0 };
	struct world w;
	struct store *s;
	struct err e = { 0 };

	(void)state;
	world_init(&w);
	s = must_open(path, world_key(&w, 1));
	put_partner(s, w.id[0]);
	store_batch_entry(&b, world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0));
	store_batch_entry(&b, world_add(&w, LEDGER_RESERVE, 0, 1, 1, 100));
	put(s, &b);
	was = replace(&w, &all);
	/* of no peer here, and of one that is not ours to replace */
	assert_int_equal(store_rotate_own(s, &all.at[0], &e), ERR_LEDGER);
	assert_int_equal(store_rotate_peer(s, &all.at[0], 1, w.id[1]->key, &e), 0);
	assert_int_equal(store_rotate_peer(s, &all.at[0], 1, w.id[1]->key, &e), ERR_LEDGER);
	store_batch_entry(&b, world_add(&w, LEDGER_SETTLE, 0, 1, 1, 60));
	put(s, &b);
	store_close(s);

	s = must_open(path, world_key(&w, 1)); /* replays, and checks the last signatures */
	assert_int_equal(store_check(s, &e), 0);
	assert_int_equal(store_load_core(s, &core, &e), 0);
	assert_int_equal(core.n_peers, 1);
	assert_memory_equal(core.peers[0].key, w.id[0]->key, STORE_KEY);
	assert_memory_equal(core.peers[0].sign_key, w.id[0]->sign_key, STORE_KEY);
	assert_memory_equal(store_peer_account(&core.peers[0]), was->sign_key, STORE_KEY);
	assert_true(core.peers[0].has_ledger);
	assert_int_equal(core.n_chains, 1);
	assert_int_equal(
		core.chains[0]->account[ledger_chain_side(core.chains[0], was->account)].spent, 60);
	assert_memory_equal(core.judgements.at[0].peer, w.id[0]->key, STORE_KEY);
	check_renamed(s, was, w.id[0]);
	store_core_release(&core);
	/* its name stays, whatever is forgotten */
	store_batch_unpeer(&b, w.id[0]->key);
	put(s, &b);
	assert_int_equal(store_load_core(s, &core, &e), 0);
	assert_int_equal(core.n_peers, 1);
	store_core_release(&core);
	store_close(s);
	store_identity_free(was);
	ledger_rotations_release(&all);
	world_release(&w);
	free(path);
}

struct kind {
	uint8_t head[5];
	size_t n;      /* bytes of the head */
	size_t filled; /* bytes that follow it, none of which begins an element */
};

/* Such an element, the name k, and a key; returns where the key begins. */
static size_t add_behind(struct buf *b, const struct kind *x, const uint8_t key[LEDGER_KEY])
{
	static const uint8_t name[] = { 0xa1, 'k', 0xc4, LEDGER_KEY };
	size_t at;

	buf_add(b, x->head, x->n);
	memset(buf_extend(b, x->filled), 0xc1, x->filled);
	buf_add(b, name, sizeof(name));
	at = b->len;
	buf_add(b, key, LEDGER_KEY);
	return at;
}

/* Each kind of element that net/ writes, a key behind each; and three that it does not, behind
 * which nothing is read. */
static void keys_are_found_behind_anything(void **state)
{
	static const struct kind written[] = {
		{ { 0x00 }, 1, 0 },
		{ { 0x7f }, 1, 0 },
		{ { 0xe0 }, 1, 0 },
		{ { 0x80 }, 1, 0 },
		{ { 0x9f }, 1, 0 },
		{ { 0xa0 }, 1, 0 },
		{ { 0xbf }, 1, 31 },
		{ { 0xc0 }, 1, 0 },
		{ { 0xc2 }, 1, 0 },
		{ { 0xc3 }, 1, 0 },
		{ { 0xc4, 5 }, 2, 5 },
		{ { 0xc5, 1, 0 }, 3, 256 },
		{ { 0xc6, 0, 0, 1, 2 }, 5, 258 },
		{ { 0xca }, 1, 4 },
		{ { 0xcb }, 1, 8 },
		{ { 0xcc }, 1, 1 },
		{ { 0xcd }, 1, 2 },
		{ { 0xce }, 1, 4 },
		{ { 0xcf }, 1, 8 },
		{ { 0xd0 }, 1, 1 },
		{ { 0xd1 }, 1, 2 },
		{ { 0xd2 }, 1, 4 },
		{ { 0xd3 }, 1, 8 },
		{ { 0xd9, 3 }, 2, 3 },
		{ { 0xda, 1, 1 }, 3, 257 },
		{ { 0xdb, 0, 0, 0, 2 }, 5, 2 },
		{ { 0xdc, 0, 0xc1 }, 3, 0 },
		{ { 0xdd, 0, 0, 0, 0xc1 }, 5, 0 },
		{ { 0xde, 0, 0xc1 }, 3, 0 },
		{ { 0xdf, 0, 0, 0, 0xc1 }, 5, 0 },
	};
	static const struct kind others[] = { { { 0xc1 }, 1, 0 },
					      { { 0xc7, 1, 0 }, 3, 1 },
					      { { 0xd8 }, 1, 17 } };
	enum { N = sizeof(written) / sizeof(*written) };
	char *path = file_join(folder, "behind.db");

	(void)state;
	for (size_t other = 0; other < sizeof(others) / sizeof(*others); other++) {
		struct ledger_rotations all = { 0 };
		struct buf history = { 0 }, agent = { 0 };
		struct store_batch b = { 0 };
		struct store_identity *was;
		struct err e = { 0 };
		struct world w;
		struct store *s;
		size_t at[N], behind;

		(void)!unlink(path);
		world_init(&w);
		s = must_open(path, world_key(&w, 1));
		put_partner(s, w.id[0]);
		buf_add(&history, (uint8_t[]){ 0xc4, LEDGER_KEY }, 2); /* under no name */
		buf_add(&history, w.id[0]->key, LEDGER_KEY);
		for (size_t k = 0; k < N; k++)
			at[k] = add_behind(&history, &written[k], w.id[0]->key);
		behind = add_behind(&agent, &others[other], w.id[0]->key);
		store_batch_meta(&b, "history", history.base, history.len);
		store_batch_meta(&b, "agent", agent.base, agent.len);
		put(s, &b);
		was = replace(&w, &all);
		assert_int_equal(store_rotate_peer(s, &all.at[0], 1, w.id[1]->key, &e), 0);
		for (size_t k = 0; k < N; k++)
			check_bytes_at(s, "history", at[k], w.id[0]->key);
		check_bytes_at(s, "history", 2, was->key);
		check_bytes_at(s, "agent", behind, was->key);
		store_close(s);
		store_identity_free(was);
		ledger_rotations_release(&all);
		buf_release(&history);
		buf_release(&agent);
		world_release(&w);
	}
	free(path);
}

/* What stands in a value and is no key: 16 bytes of a session's id that a partner has chosen, how
 * many rows went to it, and that they were counted (agent/core/unsettled.h).  Not even a partner
 * that says that these bytes were its key for a while changes them. */
static void what_is_no_key_stays(void **state)
{
	char *path = file_join(folder, "no-key.db");
	const uint8_t counted[32] = { 9, 9, 9, 9, [16] = 50, [24] = 1 };
	struct ledger_rotation two[2];
	struct ledger_rotations all = { 0 };
	struct store_identity *between, *next;
	struct store_batch b = { 0 };
	struct buf meta = { 0 };
	struct world w;
	struct store *s;
	struct err e = { 0 };

	(void)state;
	world_init(&w);
	s = must_open(path, world_key(&w, 1));
	put_partner(s, w.id[0]);
	store_batch_meta(&b, "unsettled", counted, sizeof(counted));
	put(s, &b);
	between = store_identity_next(w.id[0]);
	next = store_identity_next(between);
	memcpy(between->key, counted, LEDGER_KEY);
	two[0] = rotation(&all, w.id[0], between);
	assert_int_equal(taken(&all, &two[0], ""), 0);
	two[1] = rotation(&all, between, next);
	print_message("# taken: %d\n", store_rotate_peer(s, two, 2, w.id[1]->key, &e));
	assert_int_equal(store_meta(s, "unsettled", &meta, &e), 0);
	assert_memory_equal(meta.base, counted, sizeof(counted));
	buf_release(&meta);
	store_close(s);
	store_identity_free(between);
	store_identity_free(next);
	ledger_rotations_release(&all);
	world_release(&w);
	free(path);
}

/* The newest entry bears no signature of agent 0 yet: one before it says which key it has used. */
static void used_keys_are_known_after_a_restart(void **state)
{
	char *path = file_join(folder, "used.db");
	struct ledger_rotations all = { 0 };
	struct store_identity *was;
	struct ledger_signed open;
	struct store_batch b = { 0 };
	struct world w;
	struct store *s;
	struct err e = { 0 };

	(void)state;
	world_init(&w);
	s = must_open(path, world_key(&w, 1));
	put_partner(s, w.id[0]);
	store_batch_entry(&b, world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0));
	put(s, &b);
	was = replace(&w, &all);
	assert_int_equal(store_rotate_peer(s, &all.at[0], 1, w.id[1]->key, &e), 0);
	store_batch_entry(&b, world_add(&w, LEDGER_RESERVE, 0, 1, 1, 100));
	w.countersign = false;
	open = *world_add(&w, LEDGER_CONTRACT, 1, 0, 2, 0);
	assert_false(open.countersigned);
	store_batch_entry(&b, &open);
	put(s, &b);
	store_close(s);

	s = must_open(path, world_key(&w, 1));
	ledger_countersign(&open, was->sign_secret);
	store_batch_countersign(&b, open.hash, open.countersignature);
	assert_int_equal(store_apply(s, &b, &e), ERR_LEDGER);
	assert_non_null(strstr(e.text, "replaced before"));
	store_batch_release(&b);
	ledger_countersign(&open, w.id[0]->sign_secret);
	store_batch_countersign(&b, open.hash, open.countersignature);
	put(s, &b);
	assert_int_equal(store_check(s, &e), 0);
	store_close(s);
	store_identity_free(was);
	ledger_rotations_release(&all);
	world_release(&w);
	free(path);
}

static void new_keys_are_nobody_elses(void **state)
{
	char *path = file_join(folder, "others.db");
	struct ledger_rotations none = { 0 };
	struct ledger_rotation r;
	struct store_peer p = { .name = "agent 2", .status = STORE_LISTED };
	struct store_batch b = { 0 };
	struct world w;
	struct store *s;
	struct err e = { 0 };

	(void)state;
	world_init(&w);
	s = must_open(path, world_key(&w, 1));
	r = rotation(&none, w.id[0], w.id[2]);
	assert_int_equal(store_rotate_peer(s, &r, 1, w.id[1]->key, &e), ERR_NOTFOUND);
	put_partner(s, w.id[0]);
	memcpy(p.key, w.id[2]->key, STORE_KEY);
	store_batch_peer(&b, &p);
	put(s, &b);
	assert_int_equal(store_rotate_peer(s, &r, 1, w.id[1]->key, &e), ERR_LEDGER);
	assert_non_null(strstr(e.text, "another peer"));
	p.status = STORE_PENDING; /* it has knocked with its new key */
	store_batch_peer(&b, &p);
	put(s, &b);
	assert_int_equal(store_rotate_peer(s, &r, 1, w.id[1]->key, &e), 0);
	store_close(s);
	world_release(&w);
	free(path);
}

/* A link has shown these two of one agent. */
static void put_proved(struct store *s, const uint8_t key[32], const uint8_t sign[32])
{
	struct store_batch b = { 0 };
	struct buf proved = { 0 };
	struct err e = { 0 };

	assert_int_equal(db_meta(s, STORE_META_PROVED, &proved, &e), 0);
	assert_true(store_proved_add(&proved, key, sign));
	assert_false(store_proved_add(&proved, key, sign));
	store_batch_meta(&b, STORE_META_PROVED, proved.base, proved.len);
	put(s, &b);
	buf_release(&proved);
}

static void put_day(struct store *s, const uint8_t key[STORE_KEY], int64_t day, uint64_t rows)
{
	struct store_step_day d = { .day = day, .steps = 1, .rows = rows };
	struct store_batch b = { 0 };

	memcpy(d.peer, key, STORE_KEY);
	store_batch_step_day(&b, &d);
	put(s, &b);
}

static void put_folded(struct store *s, const uint8_t key[STORE_KEY], int64_t n)
{
	struct err e = { 0 };

	assert_int_equal(db_do(s, &e,
			       "INSERT INTO round_folded_member VALUES (?1, ?2, ?2, ?2, ?2, ?2,"
			       " ?2, ?2, ?2)",
			       "bi", (const void *)key, (size_t)STORE_KEY, n),
			 0);
}

static struct graph *two_names(void)
{
	struct graph *g = graph_new();

	graph_vocab_add(g->entities, "a", 1);
	graph_vocab_add(g->entities, "b", 1);
	graph_vocab_add(g->relations, "likes", 5);
	graph_add(g, GRAPH_TRAIN, (struct graph_triple){ 0, 0, 1 });
	return g;
}

/* What a store has of a day of each key comes to so much of the later one. */
static void join_days(int64_t of_old, int64_t of_new, uint64_t rows)
{
	struct store_alias was[] = { { 'e', 0, "old", 3 } },
			   is[] = { { 'e', 0, "new", 3 }, { 'e', 1, "old", 3 } };
	char *path = file_join(folder, "left.db");
	struct ledger_rotations none = { 0 };
	struct graph *g = two_names();
	struct store_names names;
	struct store_folded folded;
	struct store_core core;
	struct ledger_rotation r;
	struct world w;
	struct store *s;
	struct err e = { 0 };

	unlink(path);
	world_init(&w);
	s = must_open(path, world_key(&w, 1));
	assert_int_equal(store_put_graph(s, g, NULL, &e), 0);
	put_partner(s, w.id[0]);
	put_day(s, w.id[0]->key, of_old, 100);
	put_day(s, w.id[2]->key, of_new, 20);
	put_folded(s, w.id[0]->key, 3);
	put_folded(s, w.id[2]->key, 4);
	assert_int_equal(store_put_aliases(s, w.id[0]->key, was, 1, &e), 0);
	assert_int_equal(store_put_aliases(s, w.id[2]->key, is, 2, &e), 0);
	r = rotation(&none, w.id[0], w.id[2]);
	assert_int_equal(store_rotate_peer(s, &r, 1, w.id[1]->key, &e), ERR_LEDGER);
	assert_non_null(strstr(e.text, "aliases are kept")); /* whose, is a mere word */
	put_proved(s, w.id[2]->key, w.id[0]->sign_key);
	assert_int_equal(store_rotate_peer(s, &r, 1, w.id[1]->key, &e), ERR_LEDGER);
	assert_non_null(strstr(e.text, "another agent, which has been on a link"));
	put_proved(s, w.id[2]->key, w.id[2]->sign_key);
	if (store_rotate_peer(s, &r, 1, w.id[1]->key, &e) != 0)
		fail_msg("%s", e.text);
	assert_int_equal(store_check(s, &e), 0);
	assert_int_equal(store_load_core(s, &core, &e), 0);
	assert_int_equal(core.steps.n_days, 1);
	assert_memory_equal(core.steps.days[0].peer, w.id[2]->key, STORE_KEY);
	assert_int_equal(core.steps.days[0].day, 7);
	assert_int_equal(core.steps.days[0].rows, rows);
	assert_int_equal(store_folded(s, &folded, &e), 0);
	assert_int_equal(folded.n_members, 1);
	assert_int_equal(folded.members[0].rounds, 7);
	assert_int_equal(store_load_names(s, g, w.id[2]->key, &names, &e), 0);
	assert_string_equal(names.ent[0], "old"); /* the partner's table, not a mixture */
	assert_string_equal(names.ent[1], "b");	  /* of the graph */
	store_names_release(&names);
	store_folded_release(&folded);
	store_core_release(&core);
	store_close(s);
	graph_free(g);
	world_release(&w);
	free(path);
}

/* It was let in with its new key, and sent away: what that has left is of the same agent. */
static void what_the_new_key_has_left_is_joined(void **state)
{
	(void)state;
	join_days(7, 6, 100);
	join_days(7, 7, 120);
	join_days(6, 7, 20);
}

/* Twice replaced while we were away: in one text or in two, what is said of the key in between
 * touches nothing that is kept of it, and it is not held for the partner's own. */
static void between_in(bool two_texts)
{
	char *path = file_join(folder, "between.db");
	struct store_peer waits = { .name = "", .status = STORE_PENDING };
	struct ledger_rotations all = { 0 };
	struct ledger_rotation r[2];
	struct store_identity *between, *next;
	struct store_batch b = { 0 };
	struct store_core core;
	struct world w;
	struct store *s;
	struct err e = { 0 };

	unlink(path);
	world_init(&w);
	s = must_open(path, world_key(&w, 1));
	put_partner(s, w.id[0]);
	put_proved(s, w.id[0]->key, w.id[0]->sign_key);
	between = store_identity_next(w.id[0]);
	memcpy(between->key, w.id[2]->key, LEDGER_KEY);
	next = store_identity_next(between);
	r[0] = rotation(&all, w.id[0], between);
	assert_int_equal(taken(&all, &r[0], ""), 0);
	r[1] = rotation(&all, between, next);
	memcpy(waits.key, between->key, STORE_KEY);
	store_batch_peer(&b, &waits);
	put(s, &b);
	put_day(s, w.id[0]->key, 7, 100);
	put_day(s, between->key, 7, 20);
	for (size_t k = 0; two_texts && k < 2; k++)
		assert_int_equal(store_rotate_peer(s, &r[k], 1, w.id[1]->key, &e), 0);
	if (!two_texts)
		assert_int_equal(store_rotate_peer(s, r, 2, w.id[1]->key, &e), 0);
	check_renamed(s, w.id[0], next);
	assert_int_equal(store_load_core(s, &core, &e), 0);
	assert_int_equal(core.n_peers, two_texts ? 1 : 2);
	assert_int_equal(core.steps.n_days, two_texts ? 1 : 2);
	for (size_t k = 0; k < core.steps.n_days; k++)
		if (memcmp(core.steps.days[k].peer, next->key, STORE_KEY) == 0)
			assert_int_equal(core.steps.days[k].rows, two_texts ? 120 : 100);
		else
			assert_memory_equal(core.steps.days[k].peer, between->key, STORE_KEY);
	assert_non_null(ledger_rotations_proved(&core.rotations, w.id[0]->key));
	assert_non_null(ledger_rotations_replaced(&core.rotations, between->key));
	assert_null(ledger_rotations_proved(&core.rotations, between->key));
	store_core_release(&core);
	store_close(s);
	store_identity_free(between);
	store_identity_free(next);
	ledger_rotations_release(&all);
	world_release(&w);
	free(path);
}

static void a_key_in_between_is_a_mere_word(void **state)
{
	(void)state;
	between_in(false);
	between_in(true);
}

/* A check says what the taking would, and of several that do not all hold none is taken. */
static void all_or_none(void **state)
{
	char *path = file_join(folder, "several.db");
	struct ledger_rotations all = { 0 };
	struct ledger_rotation r[2], back;
	struct store_identity *second;
	struct store_peer p = { .name = "other", .status = STORE_LISTED };
	struct store_core core;
	struct store_batch b = { 0 };
	struct world w;
	struct store *s;
	struct err e = { 0 };

	(void)state;
	world_init(&w);
	second = store_identity_next(w.id[0]);
	s = must_open(path, world_key(&w, 1));
	put_partner(s, w.id[0]);
	memcpy(p.key, w.id[2]->key, STORE_KEY);
	store_batch_peer(&b, &p);
	put(s, &b);
	r[0] = rotation(&all, w.id[0], second);
	assert_int_equal(taken(&all, &r[0], ""), 0);
	r[1] = rotation(&all, second, w.id[2]); /* which is another peer */
	for (int take = 0; take < 2; take++) {
		assert_int_equal(take ? store_rotate_peer(s, r, 2, w.id[1]->key, &e)
				      : store_check_rotations(s, r, 2, w.id[1]->key, &e),
				 ERR_LEDGER);
		assert_non_null(strstr(e.text, "another peer"));
	}
	/* the first one's old X25519 key is not the peer's */
	back = r[0];
	memset(back.old_key, 5, LEDGER_KEY);
	ledger_rotation_sign(&back, w.id[0]->sign_secret, second->sign_secret);
	assert_int_equal(store_check_rotations(s, &back, 1, w.id[1]->key, &e), ERR_NOTFOUND);
	assert_int_equal(store_rotate_peer(s, &back, 1, w.id[1]->key, &e), ERR_NOTFOUND);
	assert_int_equal(store_load_core(s, &core, &e), 0);
	assert_int_equal(core.rotations.n, 0);
	assert_int_equal(core.n_peers, 2);
	for (size_t k = 0; k < 2; k++)
		assert_memory_not_equal(core.peers[k].key, second->key, STORE_KEY);
	store_core_release(&core);
	/* both hold once the other is gone */
	store_batch_unpeer(&b, w.id[2]->key);
	put(s, &b);
	assert_int_equal(store_check_rotations(s, r, 2, w.id[1]->key, &e), 0);
	assert_int_equal(store_rotate_peer(s, r, 2, w.id[1]->key, &e), 0);
	assert_int_equal(store_load_core(s, &core, &e), 0);
	assert_int_equal(core.rotations.n, 2);
	assert_int_equal(core.n_peers, 1);
	assert_memory_equal(core.peers[0].key, w.id[2]->key, STORE_KEY);
	store_core_release(&core);
	store_close(s);
	store_identity_free(second);
	ledger_rotations_release(&all);
	world_release(&w);
	free(path);
}

static void new_keys_are_not_our_own(void **state)
{
	char *path = file_join(folder, "own-key.db");
	struct ledger_rotations none = { 0 };
	struct ledger_rotation r;
	struct store_identity *next;
	struct store_batch b = { 0 };
	struct world w;
	struct store *s;
	struct err e = { 0 };

	(void)state;
	world_init(&w);
	s = must_open(path, world_key(&w, 1));
	put_partner(s, w.id[0]);
	next = store_identity_next(w.id[0]);
	memcpy(next->key, w.id[1]->key, LEDGER_KEY);
	r = rotation(&none, w.id[0], next);
	assert_int_equal(store_rotate_peer(s, &r, 1, w.id[1]->key, &e), ERR_LEDGER);
	assert_non_null(strstr(e.text, "this agent itself"));
	next->key[0] ^= 1; /* which signs with ours */
	memcpy(next->sign_key, w.id[1]->sign_key, LEDGER_KEY);
	r = rotation(&none, w.id[0], next);
	assert_int_equal(store_rotate_peer(s, &r, 1, w.id[1]->key, &e), ERR_LEDGER);
	assert_non_null(strstr(e.text, "this agent itself"));
	/* an account with entries, of which no peer is left */
	store_batch_entry(&b, world_add(&w, LEDGER_CONTRACT, 1, 2, 1, 0));
	put(s, &b);
	r = rotation(&none, w.id[0], w.id[2]);
	assert_int_equal(store_rotate_peer(s, &r, 1, w.id[1]->key, &e), ERR_LEDGER);
	assert_non_null(strstr(e.text, "account of its own"));
	store_close(s);
	store_identity_free(next);
	world_release(&w);
	free(path);
}

static void statements_go_on(void **state)
{
	struct ledger_rotations all = { 0 };
	struct store_identity *was = store_identity_new(), *next = store_identity_next(was);
	struct ledger_rotation r = rotation(&all, was, next);
	struct ledger_statement terms = { .sampled = LEDGER_SAMPLED_GAUSSIAN,
					  .adjacency = LEDGER_TRIPLE,
					  .records = 100,
					  .rate = .1,
					  .noise = 2,
					  .clip = 1,
					  .delta = 1e-5,
					  .epsilon = 8 };
	char *path = file_join(folder, "own.db");
	struct ledger_training spent = { 0 };
	struct ledger_stated one = { 0 }, two = { 0 };
	struct store_batch b = { 0 };
	struct store *s = must_open(path, was->account);
	struct err e = { 0 };

	(void)state;
	memcpy(terms.agent, was->account, LEDGER_KEY);
	assert_int_equal(ledger_training_next(&one.statement, &spent, &terms, 5, 1, &e), 0);
	ledger_statement_sign(&one, was->sign_secret);
	ledger_training_force(&spent, &one);
	store_batch_statement(&b, &one);
	put(s, &b);
	assert_int_equal(store_rotate_own(s, &r, &e), 0);
	assert_int_equal(ledger_training_next(&two.statement, &spent, &terms, 6, 2, &e), 0);
	ledger_statement_sign(&two, next->sign_secret);
	store_batch_statement(&b, &two);
	put(s, &b);
	store_close(s);
	s = must_open(path, next->account);
	assert_int_equal(store_training(s, &spent, &e), 0);
	assert_int_equal(spent.steps, 11);
	store_close(s);
	store_identity_free(was);
	store_identity_free(next);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_says_all_and_no_byte_can_change),
		cmocka_unit_test(each_follows_the_one_before),
		cmocka_unit_test(an_account_begins_once),
		cmocka_unit_test(what_was_spent_is_spent_with_any_key),
		cmocka_unit_test(the_old_key_signs_nothing_after_the_new_one),
		cmocka_unit_test(exports_before_and_after_hold),
		cmocka_unit_test(a_partner_has_other_keys),
		cmocka_unit_test(keys_are_found_behind_anything),
		cmocka_unit_test(what_is_no_key_stays),
		cmocka_unit_test(used_keys_are_known_after_a_restart),
		cmocka_unit_test(new_keys_are_nobody_elses),
		cmocka_unit_test(what_the_new_key_has_left_is_joined),
		cmocka_unit_test(a_key_in_between_is_a_mere_word),
		cmocka_unit_test(all_or_none),
		cmocka_unit_test(new_keys_are_not_our_own),
		cmocka_unit_test(statements_go_on),
	};

	return cmocka_run_group_tests_name("store/rotation", tests, make_folder, remove_folder);
}

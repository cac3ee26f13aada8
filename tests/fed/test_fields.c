/* tests/fed/test_fields.c - one bad field at a time in what makes a round: the proposal, a joining,
 * the roster.  Each is made as a member could make it, with its own signature over what is wrong,
 * so that the signature is not what gives it away.  It is refused for its reason, and whoever got
 * it is in no round of that kind.  Members 0, who proposes, 1 and 2, by hand. */
#include "tests/test.h"

#include <sodium.h>

#include "fed/round.h"
#include "net/msg.h"
#include "tests/fed/as_bytes.h"
#include "tests/edit.h"

enum { MEMBERS = 3, ITEMS = 4, DIM = 2, SIGNATURE = 64 };

struct table {
	struct fed_setup setup[MEMBERS];
	struct fed_peer peer[MEMBERS][MEMBERS - 1];
	struct net_psi_slot slot[ITEMS];
	struct kge_emb *emb[MEMBERS];
	struct fed_settings settings;
	struct fed_round *round[MEMBERS];
	struct rng rng;
};

/* ---- setting ---- */

static const char *label(void *ctx, char tag, uint32_t id, size_t *len)
{
	(void)ctx, (void)tag;
	*len = 1;
	return &"abcd"[id];
}

static void draw(void *ctx, void *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *)out)[i] = (uint8_t)rng_u64(ctx);
}

static void meet(struct table *t, size_t a, size_t b)
{
	struct fed_peer *p = &t->peer[a][t->setup[a].n_peers++];

	memcpy(p->key, t->setup[b].key, FED_KEY);
	memcpy(p->sign_public, t->setup[b].sign_public, FED_SIGN);
	p->digest[0] = (uint8_t)(a + b);
	p->slots = t->slot;
	p->n_slots = ITEMS;
}

static void init(struct table *t)
{
	struct rng r;

	*t = (struct table){ 0 };
	rng_seed(&t->rng, 6);
	fed_settings_init(&t->settings, fed_method_find("fede"));
	for (uint32_t k = 0; k < ITEMS; k++)
		t->slot[k] = (struct net_psi_slot){ .id = k, .tag = 'e' };
	for (size_t i = 0; i < MEMBERS; i++) {
		struct fed_setup *s = &t->setup[i];

		memset(s->key, (int)(10 * (i + 1)), FED_KEY);
		crypto_sign_keypair(s->sign_public, s->sign_secret);
		rng_seed(&r, i);
		t->emb[i] = kge_emb_new(kge_model_find("transe"), DIM, 8, ITEMS, 1, &r);
		assert_int_equal(fed_part_new(&s->part, &t->settings, t->emb[i], i, NULL), 0);
		s->label = label;
		s->draw = (struct nn_draw){ draw, &t->rng };
	}
	t->settings = t->setup[0].part->settings;
	for (size_t i = 0; i < MEMBERS; i++) {
		for (size_t j = 0; j < MEMBERS; j++)
			if (j != i)
				meet(t, i, j);
		t->setup[i].peers = t->peer[i];
	}
}

static void release(struct table *t)
{
	for (size_t i = 0; i < MEMBERS; i++) {
		fed_round_free(t->round[i]);
		fed_part_free(t->setup[i].part);
		kge_emb_free(t->emb[i]);
	}
}

/* ---- what a member signs ---- */

static void digest_of(uint8_t out[32], const char *tag, const struct buf *b)
{
	crypto_generichash_state h;

	crypto_generichash_init(&h, NULL, 0, 32);
	crypto_generichash_update(&h, (const uint8_t *)tag, strlen(tag) + 1);
	crypto_generichash_update(&h, b->base, b->len);
	crypto_generichash_final(&h, out, 32);
}

static void sign(uint8_t out[SIGNATURE], const char *tag, const struct buf *b,
		 const struct fed_setup *who)
{
	uint8_t digest[32];

	digest_of(digest, tag, b);
	crypto_sign_detached(out, NULL, digest, 32, who->sign_secret);
}

static void take_part(const struct buf *message, const char *key, struct buf *out)
{
	struct err e = { 0 };
	struct net_bytes b;
	struct net_msg m;

	assert_int_equal(net_msg_decode(&m, message->base, message->len, &e), 0);
	b = net_get_bin(&m.body, key, 1, 16384, &e);
	assert_int_equal(e.code, 0);
	buf_clear(out);
	buf_add(out, b.base, b.len);
	net_msg_release(&m);
}

static void put_part(struct buf *message, const char *key, const void *bytes, size_t n)
{
	struct edit e = { .key = key, .how = EDIT_COPY, .bytes = bytes, .number = n };

	edit_message(message, &e);
}

/* ---- rows ---- */

struct row {
	const char *what;
	struct edit body;    /* of what is signed */
	struct edit message; /* around it */
	void (*setup)(struct table *t);
	int code;
	const char *says;
};

#define NONE                                                                                       \
	{                                                                                          \
		0                                                                                  \
	}

static void as_expected(const struct row *row, int code, const char *text)
{
	if (code != row->code || strstr(text, row->says) == NULL)
		fail_msg("%s: %d, '%s'; not %d, '%s'", row->what, code, text, row->code, row->says);
}

/* ---- the proposal ---- */

#define K10                                                                                        \
	"\12\12\12\12\12\12\12\12\12\12\12\12\12\12\12\12\12\12\12\12\12\12\12\12\12\12\12\12\12"  \
	"\12\12\12"
#define K20                                                                                        \
	"\24\24\24\24\24\24\24\24\24\24\24\24\24\24\24\24\24\24\24\24\24\24\24\24\24\24\24\24\24"  \
	"\24\24\24"
#define K30                                                                                        \
	"\36\36\36\36\36\36\36\36\36\36\36\36\36\36\36\36\36\36\36\36\36\36\36\36\36\36\36\36\36"  \
	"\36\36\36"

static void wants_three_holders(struct table *t)
{
	t->setup[1].min_holders = 3;
}

static void wants_secret(struct table *t)
{
	t->setup[1].secret_only = true;
}

static void does_another(struct table *t)
{
	static struct fed_method other;

	other = *fed_method_find("fede");
	other.name = "other";
	t->setup[1].part->method = &other;
}

static void knows_nobody(struct table *t)
{
	t->setup[1].n_peers = 0;
}

/* The first message of member 0 to 1, with a row's fault, under its own id and signature. */
static void spoil_proposal(struct table *t, const struct row *row, struct buf *b)
{
	uint8_t digest[32], signature[SIGNATURE];
	struct buf body = { 0 };

	assert_true(fed_round_pull(t->round[0], t->setup[1].key, b));
	take_part(b, "p", &body);
	if (row->body.key != NULL)
		edit_body(&body, &row->body);
	digest_of(digest, "fkge round id 1", &body);
	edit_session(b, digest, FED_ID);
	sign(signature, "fkge round proposal 1", &body, &t->setup[0]);
	put_part(b, "p", body.base, body.len);
	put_part(b, "s", signature, SIGNATURE);
	if (row->message.key != NULL)
		edit_message(b, &row->message);
	buf_release(&body);
}

static void proposal_row(const struct row *row)
{
	struct err e = { 0 };
	struct buf b = { 0 };
	struct table t;
	int rc;

	init(&t);
	if (row->setup != NULL)
		row->setup(&t);
	assert_int_equal(fed_round_propose(&t.round[0], &t.setup[0], &t.settings, 1000, NULL), 0);
	spoil_proposal(&t, row, &b);
	rc = join_bytes(&t.round[1], &t.setup[1], b.base, b.len, 1000, &e);
	as_expected(row, rc, e.text);
	if (rc != 0)
		assert_null(t.round[1]);
	buf_release(&b);
	release(&t);
}

static void proposals(void **state)
{
	static const struct row rows[] = {
		{ "nothing", NONE, NONE, NULL, 0, "" },
		{ "no serial", NOT_THERE("q"), NONE, NULL, ERR_PROTO, "'q'" },
		{ "a serial too high", NUMBER("q", UINT64_MAX), NONE, NULL, ERR_PROTO, "'q'" },
		{ "no proposer", NOT_THERE("w"), NONE, NULL, ERR_PROTO, "'w'" },
		{ "a proposer that is no candidate", LENGTH("w", 32), NONE, NULL, ERR_PROTO,
		  "does not take part" },
		{ "in another's name", COPIED("w", K30), NONE, NULL, ERR_IDENTITY,
		  "not signed by its proposer" },
		{ "no candidates", NOT_THERE("a"), NONE, NULL, ERR_PROTO, "'a'" },
		{ "half a candidate", LENGTH("a", 48), NONE, NULL, ERR_PROTO, "keys of 48" },
		{ "too many candidates", LENGTH("a", 65 * 32), NONE, NULL, ERR_PROTO, "'a'" },
		{ "a candidate twice", COPIED("a", K10 K10), NONE, NULL, ERR_PROTO, "ascend" },
		{ "candidates in disorder", COPIED("a", K20 K10), NONE, NULL, ERR_PROTO, "ascend" },
		{ "without us", COPIED("a", K10 K30), NONE, NULL, ERR_PROTO, "we are not in it" },
		{ "no method", NOT_THERE("m"), NONE, NULL, ERR_PROTO, "'m'" },
		{ "a method that is none", TEXT("m"), NONE, NULL, ERR_USAGE, "no method" },
		{ "no constants", NOT_THERE("c"), NONE, NULL, ERR_PROTO, "'c'" },
		{ "no number", NOT_THERE("n"), NONE, NULL, ERR_PROTO, "'n'" },
		{ "no topology", NOT_THERE("t"), NONE, NULL, ERR_PROTO, "'t'" },
		{ "a topology that is none", NUMBER("t", FED_HOSTED + 1), NONE, NULL, ERR_PROTO,
		  "'t'" },
		{ "no host", NOT_THERE("h"), NONE, NULL, ERR_PROTO, "'h'" },
		{ "half a host", LENGTH("h", 16), NONE, NULL, ERR_PROTO, "'h'" },
		{ "a model by number", NUMBER("mo", 1), NONE, NULL, ERR_PROTO, "'mo'" },
		{ "a gamma that is no number", REAL("g", NAN), NONE, NULL, ERR_PROTO, "'g'" },
		{ "a gamma below 0", REAL("g", -1), NONE, NULL, ERR_PROTO, "'g'" },
		{ "no width of entities", NOT_THERE("fe"), NONE, NULL, ERR_PROTO, "'fe'" },
		{ "entities of no floats", NUMBER("fe", 0), NONE, NULL, ERR_PROTO, "'fe'" },
		{ "entities too wide", NUMBER("fe", FED_FLOATS_MAX + 1), NONE, NULL, ERR_PROTO,
		  "'fe'" },
		{ "entities of another width", NUMBER("fe", DIM + 1), NONE, NULL, ERR_REFUSED,
		  "our rows have" },
		{ "relations of no floats", NUMBER("fr", 0), NONE, NULL, ERR_PROTO, "'fr'" },
		{ "relations too wide", NUMBER("fr", FED_FLOATS_MAX + 1), NONE, NULL, ERR_PROTO,
		  "'fr'" },
		{ "relations of another width", NUMBER("fr", DIM + 1), NONE, NULL, ERR_REFUSED,
		  "our rows have" },
		{ "one holder", NUMBER("o", 1), NONE, NULL, ERR_PROTO, "'o'" },
		{ "too many holders", NUMBER("o", FED_MEMBERS_MAX + 1), NONE, NULL, ERR_PROTO,
		  "'o'" },
		{ "fewer holders than we ask for", NUMBER("o", 2), NONE, wants_three_holders,
		  ERR_REFUSED, "we ask for 3 holders" },
		{ "no time to join", NUMBER("tj", 0), NONE, NULL, ERR_PROTO, "'tj'" },
		{ "too much time to join", NUMBER("tj", FED_TIME_MAX_MS + 1), NONE, NULL, ERR_PROTO,
		  "'tj'" },
		{ "no time to train", NUMBER("tt", 0), NONE, NULL, ERR_PROTO, "'tt'" },
		{ "too much time to train", NUMBER("tt", FED_TIME_MAX_MS + 1), NONE, NULL,
		  ERR_PROTO, "'tt'" },
		{ "no time for a stage", NUMBER("ts", 0), NONE, NULL, ERR_PROTO, "'ts'" },
		{ "too much time for a stage", NUMBER("ts", FED_TIME_MAX_MS + 1), NONE, NULL,
		  ERR_PROTO, "'ts'" },
		{ "too many secret bits", NUMBER("sb", 65), NONE, NULL, ERR_PROTO, "'sb'" },
		{ "no secret where we ask for one", NUMBER("sb", 0), NONE, wants_secret,
		  ERR_REFUSED, "secret aggregation only" },
		{ "a secret clip that is no number", REAL("sc", NAN), NONE, NULL, ERR_PROTO,
		  "'sc'" },
		{ "a secret clip below 0", REAL("sc", -1), NONE, NULL, ERR_PROTO, "'sc'" },
		{ "another method than ours", NONE, NONE, does_another, ERR_REFUSED,
		  "we do other" },
		{ "a fraction above 1", REAL("cf", 1.5), NONE, NULL, ERR_PROTO, "'cf'" },
		{ "a fraction of nobody", REAL("cf", 0), NONE, NULL, ERR_USAGE, "fraction" },
		{ "a seed that is none", TEXT("ss"), NONE, NULL, ERR_PROTO, "'ss'" },
		{ "the signature", NONE, FLIPPED("s"), NULL, ERR_IDENTITY,
		  "not signed by its proposer" },
		{ "half a signature", NONE, LENGTH("s", 32), NULL, ERR_PROTO, "'s'" },
		{ "under another round's id", NONE, FLIPPED("p"), NULL, ERR_PROTO, "" },
		{ "no proposal", NONE, NUMBER("k", 2), NULL, ERR_PROTO, "'k'" },
		{ "of nobody that we know", NONE, NONE, knows_nobody, ERR_REFUSED,
		  "not aligned with the proposer" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		proposal_row(&rows[i]);
}

/* A message of another type with all of a proposal in it. */
static void another_type(void **state)
{
	static const struct row none = { "nothing", NONE, NONE, NULL, ERR_PROTO, "is no proposal" };
	struct err e = { 0 };
	struct buf b = { 0 };
	struct table t;

	(void)state;
	init(&t);
	assert_int_equal(fed_round_propose(&t.round[0], &t.setup[0], &t.settings, 1000, NULL), 0);
	spoil_proposal(&t, &none, &b);
	assert_int_equal(b.base[1], NET_MSG_ROUND);
	b.base[1] = NET_MSG_CONV;
	as_expected(&none, join_bytes(&t.round[1], &t.setup[1], b.base, b.len, 1000, &e), e.text);
	buf_release(&b);
	release(&t);
}

/* Signed as it should be, and sent under the id of another round. */
static void another_id(void **state)
{
	static const struct row none = { "nothing", NONE,      NONE,
					 NULL,	    ERR_PROTO, "another round's id" };
	uint8_t id[FED_ID] = { 1 };
	struct err e = { 0 };
	struct buf b = { 0 };
	struct table t;

	(void)state;
	init(&t);
	assert_int_equal(fed_round_propose(&t.round[0], &t.setup[0], &t.settings, 1000, NULL), 0);
	spoil_proposal(&t, &none, &b);
	edit_session(&b, id, FED_ID);
	as_expected(&none, join_bytes(&t.round[1], &t.setup[1], b.base, b.len, 1000, &e), e.text);
	buf_release(&b);
	release(&t);
}

/* ---- a joining, at the proposer ---- */

static void masked(struct table *t)
{
	t->settings.secret_bits = 32;
}

static void joins(struct table *t, size_t who, struct buf *joining)
{
	struct buf b = { 0 };

	assert_true(fed_round_pull(t->round[0], t->setup[who].key, &b));
	assert_int_equal(join_bytes(&t->round[who], &t->setup[who], b.base, b.len, 1000, NULL), 0);
	buf_clear(joining);
	assert_true(fed_round_pull(t->round[who], t->setup[0].key, joining));
	buf_release(&b);
}

static void spoil_joining(struct table *t, const struct row *row, struct buf *b)
{
	uint8_t signature[SIGNATURE];
	struct buf body = { 0 };

	take_part(b, "j", &body);
	if (row->body.key != NULL)
		edit_body(&body, &row->body);
	sign(signature, "fkge round joining 1", &body, &t->setup[1]);
	put_part(b, "j", body.base, body.len);
	put_part(b, "s", signature, SIGNATURE);
	if (row->message.key != NULL)
		edit_message(b, &row->message);
	buf_release(&body);
}

static const struct fed_account *account_of(const struct table *t, size_t at, size_t who)
{
	struct fed_report r;

	fed_round_report(t->round[at], &r);
	for (unsigned i = 0; i < r.participants; i++)
		if (memcmp(fed_round_account(t->round[at], i)->key, t->setup[who].key, FED_KEY) ==
		    0)
			return fed_round_account(t->round[at], i);
	fail_msg("no such member");
	return NULL;
}

static void joining_row(const struct row *row)
{
	struct buf b = { 0 };
	struct fed_report r;
	struct table t;

	init(&t);
	if (row->setup != NULL)
		row->setup(&t);
	assert_int_equal(fed_round_propose(&t.round[0], &t.setup[0], &t.settings, 1000, NULL), 0);
	joins(&t, 1, &b);
	spoil_joining(&t, row, &b);
	receive_bytes(t.round[0], t.setup[1].key, b.base, b.len, 1000);
	joins(&t, 2, &b);
	receive_bytes(t.round[0], t.setup[2].key, b.base, b.len, 1000);
	fed_round_report(t.round[0], &r);
	assert_int_equal(r.members, row->code == 0 ? MEMBERS : MEMBERS - 1);
	as_expected(row, account_of(&t, 0, 1)->trouble.code, account_of(&t, 0, 1)->trouble.text);
	if (row->code != 0)
		assert_int_equal(account_of(&t, 0, 1)->fate, FED_BROKE);
	buf_release(&b);
	release(&t);
}

static void joinings(void **state)
{
	static const struct row rows[] = {
		{ "nothing", NONE, NONE, NULL, 0, "" },
		{ "nothing, under masks", NONE, NONE, masked, 0, "" },
		{ "no digest", NOT_THERE("d"), NONE, NULL, ERR_PROTO, "'d'" },
		{ "of another proposal", FLIPPED("d"), NONE, NULL, ERR_PROTO, "another proposal" },
		{ "of nobody", NOT_THERE("w"), NONE, NULL, ERR_PROTO, "'w'" },
		{ "in another's name", COPIED("w", K30), NONE, NULL, ERR_IDENTITY,
		  "in the name of another" },
		{ "no nonce", NOT_THERE("x"), NONE, NULL, ERR_PROTO, "'x'" },
		{ "half a nonce", LENGTH("x", 16), NONE, NULL, ERR_PROTO, "'x'" },
		{ "no marks", NOT_THERE("m"), NONE, NULL, ERR_PROTO, "'m'" },
		{ "a mark too few", LENGTH("m", 32), NONE, NULL, ERR_PROTO, "'m'" },
		{ "a mark too many", LENGTH("m", 64), NONE, NULL, ERR_PROTO, "'m'" },
		{ "no key for masks", NOT_THERE("y"), NONE, masked, ERR_PROTO, "'y'" },
		{ "a key of no group",
		  COPIED("y", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
			      "\0\0\0\0\0\0\0\0"),
		  NONE, masked, ERR_PROTO, "" },
		{ "the signature", NONE, FLIPPED("s"), NULL, ERR_IDENTITY, "not the member's" },
		{ "half a signature", NONE, LENGTH("s", 32), NULL, ERR_PROTO, "'s'" },
		{ "no joining", NONE, NOT_THERE("j"), NULL, ERR_PROTO, "'j'" },
		{ "an empty one", NONE, LENGTH("j", 0), NULL, ERR_PROTO, "'j'" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		joining_row(&rows[i]);
}

/* ---- the roster, at member 1 ---- */

/* The joinings of all three, in the order of their keys, and who signs the whole. */
struct roster {
	struct buf joining[MEMBERS + 1];
	uint8_t signature[MEMBERS + 1][SIGNATURE];
	size_t n;
	bool odd; /* one half of a joining more */
	const struct fed_setup *signer;
	struct edit message;
};

struct roster_row {
	const char *what;
	void (*change)(struct table *t, struct roster *r);
	void (*setup)(struct table *t);
	int code;
	const char *says;
};

/* Member 0 starts with both; its START has the joinings as they were signed. */
static void read_start(struct table *t, const struct buf *start, struct roster *r)
{
	struct err e = { 0 };
	struct net_list l;
	struct net_msg m;

	assert_int_equal(net_msg_decode(&m, start->base, start->len, &e), 0);
	l = net_get_list(&m.body, "l", 2 * MEMBERS, &e);
	assert_int_equal(l.n, 2 * MEMBERS);
	for (size_t i = 0; i < MEMBERS; i++) {
		struct net_bytes j = net_list_bin(&l, 2 * i, 1, 4096, &e);
		struct net_bytes s = net_list_bin(&l, 2 * i + 1, SIGNATURE, SIGNATURE, &e);

		assert_int_equal(e.code, 0);
		buf_add(&r->joining[i], j.base, j.len);
		memcpy(r->signature[i], s.base, SIGNATURE);
	}
	r->n = MEMBERS;
	r->signer = &t->setup[0];
	net_msg_release(&m);
}

static void sign_again(struct table *t, struct roster *r, size_t who)
{
	sign(r->signature[who], "fkge round joining 1", &r->joining[who], &t->setup[who]);
}

static void write_start(const struct roster *r, const uint8_t id[FED_ID], struct buf *out)
{
	struct buf all = { 0 };
	struct net_writer w;
	uint8_t signature[SIGNATURE];

	buf_add(&all, id, FED_ID);
	buf_clear(out);
	net_write_begin(&w, out, NET_MSG_ROUND, id);
	net_put_uint(&w, "k", 4);
	net_put_list(&w, "l");
	for (size_t i = 0; i < r->n; i++) {
		buf_add(&all, r->joining[i].base, r->joining[i].len);
		buf_add(&all, r->signature[i], SIGNATURE);
		net_put_bin(&w, NULL, r->joining[i].base, r->joining[i].len);
		net_put_bin(&w, NULL, r->signature[i], SIGNATURE);
	}
	if (r->odd)
		net_put_bin(&w, NULL, r->joining[0].base, r->joining[0].len);
	net_put_end(&w);
	sign(signature, "fkge round roster 1", &all, r->signer);
	net_put_bin(&w, "s", signature, SIGNATURE);
	assert_int_equal(net_write_end(&w, NULL), 0);
	if (r->message.key != NULL)
		edit_message(out, &r->message);
	buf_release(&all);
}

static void drop(struct roster *r, size_t who)
{
	buf_release(&r->joining[who]);
	for (size_t i = who; i + 1 < r->n; i++) {
		r->joining[i] = r->joining[i + 1];
		memcpy(r->signature[i], r->signature[i + 1], SIGNATURE);
	}
	r->joining[--r->n] = (struct buf){ 0 };
}

static void edit_joining(struct table *t, struct roster *r, size_t who, struct edit e)
{
	edit_body(&r->joining[who], &e);
	sign_again(t, r, who);
}

static void nothing(struct table *t, struct roster *r)
{
	(void)t, (void)r;
}

static void without_us(struct table *t, struct roster *r)
{
	(void)t;
	drop(r, 1);
}

static void without_proposer(struct table *t, struct roster *r)
{
	(void)t;
	drop(r, 0);
}

static void we_alone(struct table *t, struct roster *r)
{
	without_proposer(t, r);
	drop(r, 1);
}

static void of_two(struct table *t, struct roster *r)
{
	(void)t;
	drop(r, 2);
}

static void odd(struct table *t, struct roster *r)
{
	(void)t;
	r->odd = true;
}

static void one_twice(struct table *t, struct roster *r)
{
	(void)t;
	buf_add(&r->joining[r->n], r->joining[2].base, r->joining[2].len);
	memcpy(r->signature[r->n++], r->signature[2], SIGNATURE);
}

static void other_of_ours(struct table *t, struct roster *r)
{
	r->joining[1].base[r->joining[1].len - 1] ^= 1; /* as long as it was */
	sign_again(t, r, 1);
}

static void longer_of_ours(struct table *t, struct roster *r)
{
	edit_joining(t, r, 1, (struct edit)NUMBER("z", 1));
}

static void of_other_proposal(struct table *t, struct roster *r)
{
	edit_joining(t, r, 2, (struct edit)FLIPPED("d"));
}

/* Who has seen the joinings of all could look for a nonce that makes it home of what it likes. */
static void other_nonce(struct table *t, struct roster *r)
{
	edit_joining(t, r, 0, (struct edit)FLIPPED("x"));
}

static void not_aligned(struct table *t, struct roster *r)
{
	edit_joining(t, r, 2, (struct edit)LENGTH("m", 48));
}

static void of_nobody(struct table *t, struct roster *r)
{
	edit_joining(t, r, 2, (struct edit)LENGTH("w", 32));
}

static void not_its_signature(struct table *t, struct roster *r)
{
	(void)t;
	r->signature[2][0] ^= 1;
}

static void signed_by_another(struct table *t, struct roster *r)
{
	r->signer = &t->setup[2];
}

static void no_signature(struct table *t, struct roster *r)
{
	(void)t;
	r->message = (struct edit)NOT_THERE("s");
}

static void no_list(struct table *t, struct roster *r)
{
	(void)t;
	r->message = (struct edit)NOT_THERE("l");
}

static void three_at_least(struct table *t)
{
	t->setup[1].min_members = 3;
}

static void two_hosts_all(struct table *t)
{
	t->settings.topology = FED_HOSTED;
	memcpy(t->settings.host, t->setup[2].key, FED_KEY);
}

static bool makes_start(struct table *t, struct buf *b)
{
	for (size_t who = 1; who < MEMBERS; who++) {
		joins(t, who, b);
		receive_bytes(t->round[0], t->setup[who].key, b->base, b->len, 1000);
	}
	buf_clear(b);
	return fed_round_pull(t->round[0], t->setup[1].key, b);
}

static void session_of(const struct buf *b, uint8_t id[FED_ID])
{
	struct net_msg m;

	assert_int_equal(net_msg_decode(&m, b->base, b->len, NULL), 0);
	memcpy(id, m.session, FED_ID);
	net_msg_release(&m);
}

/* Who is in no round of that roster says so to all, and whose fault it is. */
static void check_told(struct table *t, const struct roster_row *row)
{
	bool blames = row->code != ERR_REFUSED && row->change != not_its_signature;

	assert_int_equal(account_of(t, 1, 0)->fate, blames ? FED_BROKE : FED_TOOK_PART);
	assert_int_equal(account_of(t, 1, 2)->fate, FED_TOOK_PART);
	for (size_t to = 0; to < MEMBERS; to += 2) {
		struct net_message m;
		struct buf b = { 0 };

		if (!fed_round_pull(t->round[1], t->setup[to].key, &b))
			fail_msg("%s: %zu is not told", row->what, to);
		net_message_decode(&m, b.base, b.len, NULL);
		assert_int_equal(m.round, NET_ROUND_LEAVE);
		buf_release(&b);
	}
}

static void roster_row(const struct roster_row *row)
{
	struct row expected = { .what = row->what, .code = row->code, .says = row->says };
	struct roster r = { 0 };
	struct buf b = { 0 };
	uint8_t id[FED_ID];
	struct err e = { 0 };
	struct fed_report report;
	struct table t;

	init(&t);
	if (row->setup != NULL)
		row->setup(&t);
	assert_int_equal(fed_round_propose(&t.round[0], &t.setup[0], &t.settings, 1000, NULL), 0);
	assert_true(makes_start(&t, &b));
	session_of(&b, id);
	read_start(&t, &b, &r);
	row->change(&t, &r);
	write_start(&r, id, &b);
	receive_bytes(t.round[1], t.setup[0].key, b.base, b.len, 1000);
	fed_round_report(t.round[1], &report);
	as_expected(&expected, fed_round_status(t.round[1], &e), e.text);
	if (row->code != 0) {
		assert_int_equal(fed_round_want(t.round[1]), FED_OVER);
		assert_int_equal(report.members, 0);
		check_told(&t, row);
	} else {
		assert_int_equal(report.members, MEMBERS);
	}
	for (size_t i = 0; i <= MEMBERS; i++)
		buf_release(&r.joining[i]);
	buf_release(&b);
	release(&t);
}

static void rosters(void **state)
{
	static const struct roster_row rows[] = {
		{ "nothing", nothing, NULL, 0, "" },
		{ "nothing, with a host", nothing, two_hosts_all, 0, "" },
		{ "no list", no_list, NULL, ERR_PROTO, "'l'" },
		{ "half a joining", odd, NULL, ERR_PROTO, "of 7 halves" },
		{ "no signature", no_signature, NULL, ERR_PROTO, "'s'" },
		{ "signed by another", signed_by_another, NULL, ERR_IDENTITY,
		  "not signed by its proposer" },
		{ "without us", without_us, NULL, ERR_PROTO, "without us" },
		{ "without its proposer", without_proposer, NULL, ERR_PROTO,
		  "without its proposer" },
		{ "we alone", we_alone, NULL, ERR_PROTO, "roster" },
		{ "without the host", of_two, two_hosts_all, ERR_PROTO, "without the host" },
		{ "fewer than we ask for", of_two, three_at_least, ERR_REFUSED, "min_members" },
		{ "a member twice", one_twice, NULL, ERR_PROTO, "a member twice" },
		{ "another joining of ours", other_of_ours, NULL, ERR_IDENTITY, "not ours" },
		{ "a longer joining of ours", longer_of_ours, NULL, ERR_IDENTITY, "not ours" },
		{ "a joining of another proposal", of_other_proposal, NULL, ERR_PROTO,
		  "another proposal" },
		{ "another nonce than its proposer had drawn", other_nonce, NULL, ERR_PROTO,
		  "drawn another nonce" },
		{ "a member that is not aligned", not_aligned, NULL, ERR_PROTO, "not aligned" },
		{ "a member that nobody knows", of_nobody, NULL, ERR_PROTO, "cannot reach" },
		{ "a joining that its member did not sign", not_its_signature, NULL, ERR_IDENTITY,
		  "not the member's" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		roster_row(&rows[i]);
}

/* Another key of its masks, which no proposal binds a proposer to. */
static void other_key(struct table *t, struct roster *r)
{
	static const uint8_t key[32] = { 9 }; /* X25519's base point */

	edit_joining(t, r, 0,
		     (struct edit){ .key = "y", .how = EDIT_COPY, .bytes = key, .number = 32 });
}

/* What member 1 says of its routes with the proposer, by the round's seed. */
static void routes_after(void (*change)(struct table *t, struct roster *r), uint8_t out[16])
{
	struct roster r = { 0 };
	struct buf b = { 0 }, routes = { 0 };
	uint8_t id[FED_ID];
	struct table t;

	init(&t);
	masked(&t);
	assert_int_equal(fed_round_propose(&t.round[0], &t.setup[0], &t.settings, 1000, NULL), 0);
	assert_true(makes_start(&t, &b));
	session_of(&b, id);
	read_start(&t, &b, &r);
	change(&t, &r);
	write_start(&r, id, &b);
	receive_bytes(t.round[1], t.setup[0].key, b.base, b.len, 1000);
	for (int k = 0; k < 2; k++) { /* training, rows up */
		assert_int_equal(fed_round_run(t.round[1]), 0);
		fed_round_worked(t.round[1], 0, 1000);
	}
	buf_clear(&b);
	assert_true(fed_round_pull(t.round[1], t.setup[0].key, &b));
	take_part(&b, "d", &routes);
	assert_int_equal(routes.len, 16);
	memcpy(out, routes.base, 16);
	for (size_t i = 0; i <= MEMBERS; i++)
		buf_release(&r.joining[i]);
	buf_release(&routes);
	buf_release(&b);
	release(&t);
}

/* The proposer knows what all others have drawn when it says the last word: that moves no home. */
static void a_proposer_chooses_no_homes(void **state)
{
	uint8_t routes[16], after[16];

	(void)state;
	routes_after(nothing, routes);
	routes_after(nothing, after);
	assert_memory_equal(routes, after, sizeof(routes));
	routes_after(other_key, after);
	assert_memory_equal(routes, after, sizeof(routes));
}

/* Who is not the proposer starts nothing, whatever it sends. */
static void only_its_proposer_starts(void **state)
{
	struct roster r = { 0 };
	struct buf b = { 0 };
	uint8_t id[FED_ID];
	struct table t;

	(void)state;
	init(&t);
	assert_int_equal(fed_round_propose(&t.round[0], &t.setup[0], &t.settings, 1000, NULL), 0);
	assert_true(makes_start(&t, &b));
	session_of(&b, id);
	receive_bytes(t.round[1], t.setup[2].key, b.base, b.len, 1000);
	assert_int_equal(fed_round_want(t.round[1]), FED_WAIT);
	assert_int_equal(account_of(&t, 1, 2)->strange, 1);
	receive_bytes(t.round[1], t.setup[0].key, b.base, b.len, 1000);
	assert_int_not_equal(fed_round_want(t.round[1]), FED_OVER);
	(void)r;
	buf_release(&b);
	release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(proposals),
		cmocka_unit_test(another_id),
		cmocka_unit_test(another_type),
		cmocka_unit_test(joinings),
		cmocka_unit_test(rosters),
		cmocka_unit_test(a_proposer_chooses_no_homes),
		cmocka_unit_test(only_its_proposer_starts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

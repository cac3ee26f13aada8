#include "fed/score.h"

#include <assert.h>
#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Scores beyond are cut: those of trained encoders are in the tens. */
static const double score_clip = 0x1p20;

static_assert(FED_SCORE_WORD * FED_SCORE_WORDS_MAX < NET_MESSAGE_MAX - 1024,
	      "words of one member in one message");
static_assert((int)FED_SCORE_SHOWN == (int)FED_MASK_KEY + (int)FED_SIGNATURE, "what is shown");

/* ---- the question ---- */

static const uint8_t *score_member(const struct fed_score_question *q, size_t i)
{
	return q->members + i * FED_KEY;
}

/* As a place among the members; n_members: it is none. */
static size_t score_place(const struct fed_score_question *q, const uint8_t key[FED_KEY])
{
	size_t i = 0;

	while (i < q->n_members && memcmp(score_member(q, i), key, FED_KEY) != 0)
		i++;
	return i;
}

static bool is_away(const struct fed_score_question *q, const uint8_t key[FED_KEY])
{
	size_t i = score_place(q, key);

	return i < q->n_members && (q->away >> i & 1) != 0;
}

static size_t members_asked(const struct fed_score_question *q)
{
	return q->n_members - (size_t)__builtin_popcountll(q->away);
}

static bool members_ascend(const struct fed_score_question *q)
{
	for (size_t i = 1; i < q->n_members; i++)
		if (memcmp(score_member(q, i - 1), score_member(q, i), FED_KEY) >= 0)
			return false;
	return true;
}

/* A larger number could make a score overflow, and whether one does would be told outside of the
 * masks. */
static bool vectors_are_bounded(const struct fed_score_question *q)
{
	for (size_t i = 0; i < q->n * q->dim; i++) {
		float x;

		memcpy(&x, q->vectors + i * sizeof(x), sizeof(x));
		if (!(fabsf(x) <= FED_SCORE_NUMBER_MAX))
			return false;
	}
	return true;
}

int fed_score_check(const struct fed_score_question *q, const uint8_t me[FED_KEY], struct err *e)
{
	if (q->n_members < 2 || q->n_members > FED_MEMBERS_MAX || !members_ascend(q))
		return err_set(e, ERR_PROTO, "asks for scores of members that are not in order");
	if (memcmp(q->asker, me, FED_KEY) == 0 || score_place(q, q->asker) == q->n_members ||
	    score_place(q, me) == q->n_members)
		return err_set(e, ERR_PROTO, "asks for scores of members that we are not among");
	if ((q->n_members < 64 && q->away >> q->n_members != 0) || is_away(q, q->asker) ||
	    is_away(q, me))
		return err_set(e, ERR_PROTO,
			       "asks for scores without members that are none, or us");
	if (q->holders < 2 || q->holders > members_asked(q))
		return err_set(e, ERR_PROTO, "asks for scores of names that %u of %zu members hold",
			       q->holders, members_asked(q));
	if (q->n < 1 || q->dim < 1 || q->n > FED_SCORE_FLOATS_MAX / q->dim ||
	    !vectors_are_bounded(q))
		return err_set(e, ERR_PROTO,
			       "asks for scores by vectors that are none, or of numbers beyond %d",
			       FED_SCORE_NUMBER_MAX);
	return 0;
}

void fed_score_digest(const struct fed_score_question *q, uint8_t out[FED_SCORE_DIGEST])
{
	static const char tag[] = "fkge scores 2";
	const uint32_t numbers[] = { (uint32_t)q->n_members, q->holders, (uint32_t)q->n,
				     (uint32_t)q->dim };
	crypto_generichash_state h;

	crypto_generichash_init(&h, NULL, 0, FED_SCORE_DIGEST);
	crypto_generichash_update(&h, (const uint8_t *)tag, sizeof(tag));
	crypto_generichash_update(&h, q->id, FED_ID);
	crypto_generichash_update(&h, q->asker, FED_KEY);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		const uint8_t le[4] = { (uint8_t)numbers[i], (uint8_t)(numbers[i] >> 8),
					(uint8_t)(numbers[i] >> 16), (uint8_t)(numbers[i] >> 24) };

		crypto_generichash_update(&h, le, sizeof(le));
	}
	for (size_t i = 0; i < 8; i++) {
		const uint8_t byte = (uint8_t)(q->away >> 8 * i);

		crypto_generichash_update(&h, &byte, 1);
	}
	crypto_generichash_update(&h, q->members, q->n_members * FED_KEY);
	crypto_generichash_update(&h, q->vectors, q->n * q->dim * sizeof(float));
	crypto_generichash_final(&h, out, FED_SCORE_DIGEST);
}

/* ---- what members sign: a key for one question ---- */

enum { SHOWN_TAG = 16, SHOWN_TEXT = SHOWN_TAG + FED_SCORE_DIGEST + FED_KEY + FED_MASK_KEY };

static void shown_text(const uint8_t digest[FED_SCORE_DIGEST], const uint8_t member[FED_KEY],
		       const uint8_t key[FED_MASK_KEY], uint8_t out[SHOWN_TEXT])
{
	static const char tag[SHOWN_TAG] = "fkge score key1";

	memcpy(out, tag, SHOWN_TAG);
	memcpy(out + SHOWN_TAG, digest, FED_SCORE_DIGEST);
	memcpy(out + SHOWN_TAG + FED_SCORE_DIGEST, member, FED_KEY);
	memcpy(out + SHOWN_TAG + FED_SCORE_DIGEST + FED_KEY, key, FED_MASK_KEY);
}

static int check_shown_key(const uint8_t digest[FED_SCORE_DIGEST], const uint8_t member[FED_KEY],
			   const uint8_t sign_public[FED_SIGN], const uint8_t *shown, struct err *e)
{
	uint8_t text[SHOWN_TEXT];

	shown_text(digest, member, shown, text);
	return crypto_sign_verify_detached(shown + FED_MASK_KEY, text, sizeof(text), sign_public) ==
			       0
		       ? 0
		       : err_set(e, ERR_IDENTITY,
				 "shows a mask key that its member has not signed for this "
				 "question");
}

/* ---- who holds what ---- */

static bool slot_is_entity(const struct net_psi_slot *s, uint32_t entities)
{
	return s->tag == 'e' && s->id < entities;
}

/* count[entity]: members that hold it, as we know; we are one.  0: one that is away does.
 * *unscored: of those, that enough hold. */
static uint8_t *count_score_holders(const struct fed_score_question *q,
				    const struct fed_peer *const *peers, uint32_t entities,
				    size_t *unscored)
{
	uint8_t *count = mem_array((size_t)entities + 1, sizeof(*count));

	memset(count, 1, entities);
	for (size_t i = 0; i + 1 < q->n_members; i++)
		for (size_t k = 0; k < peers[i]->n_slots; k++)
			if (slot_is_entity(&peers[i]->slots[k], entities))
				count[peers[i]->slots[k].id]++;
	*unscored = 0;
	for (size_t i = 0; i + 1 < q->n_members; i++)
		for (size_t k = 0; is_away(q, peers[i]->key) && k < peers[i]->n_slots; k++)
			if (slot_is_entity(&peers[i]->slots[k], entities)) {
				*unscored += count[peers[i]->slots[k].id] >= q->holders;
				count[peers[i]->slots[k].id] = 0;
			}
	return count;
}

/* What p's slots say, in their order: entities that enough members hold.  mem_array'd. */
static uint32_t *scored_entities(const struct fed_peer *p, const uint8_t *count, uint32_t holders,
				 uint32_t entities, size_t *n)
{
	uint32_t *list = mem_array(p->n_slots + 1, sizeof(*list));

	*n = 0;
	for (size_t k = 0; k < p->n_slots; k++)
		if (slot_is_entity(&p->slots[k], entities) && count[p->slots[k].id] >= holders)
			list[(*n)++] = p->slots[k].id;
	return list;
}

static int check_score_room(size_t n, struct err *e)
{
	return n <= FED_SCORE_NAMES_MAX
		       ? 0
		       : err_set(e, ERR_TOOBIG,
				 "%zu names in common are more than the %d that scores are "
				 "answered for",
				 n, FED_SCORE_NAMES_MAX);
}

static struct fed_mask_ring score_ring(size_t members)
{
	struct fed_mask_ring r;
	int rc = fed_mask_ring_init(&r, 64, score_clip, members - 1, NULL);

	assert(rc == 0); /* 63 members leave 33 bits */
	(void)rc;
	return r;
}

/* ---- a member ---- */

/* Another one that is asked. */
struct score_mate {
	uint8_t key[FED_KEY], sign_public[FED_SIGN];
	uint8_t nonce[FED_MASK_NONCE];
	struct fed_mask_stream stream;
	uint32_t *place; /* [n] of words: what it holds, too, as both count it */
	size_t n;
};

struct fed_score_part {
	uint8_t me[FED_KEY], id[FED_ID], digest[FED_SCORE_DIGEST];
	struct fed_mask_ring ring;
	struct fed_mask_secret secret;
	uint32_t *entity; /* [n]: word i + 1 is of entity[i] */
	size_t n;
	struct score_mate *mate; /* [n_mates] in the members' order; we stand before mate[at] */
	size_t n_mates, at;
	bool taken, spent;
};

/* place[entity]: of its word; 0: none.  The masks are of these slots in common and of no others: of
 * an asker that shows one member another name than the next one, nothing cancels. */
static void place_mate(struct score_mate *m, const uint8_t digest[FED_SCORE_DIGEST],
		       const struct fed_peer *p, const uint32_t *place, uint32_t entities)
{
	uint8_t slots[FED_SCORE_DIGEST];
	crypto_generichash_state h;

	crypto_generichash_init(&h, NULL, 0, sizeof(slots));
	crypto_generichash_update(&h, p->digest, NET_PSI_DIGEST);
	for (int write = 0; write < 2; write++) {
		for (size_t k = m->n = 0; k < p->n_slots; k++) {
			const uint8_t le[4] = { (uint8_t)k, (uint8_t)(k >> 8), (uint8_t)(k >> 16),
						(uint8_t)(k >> 24) };

			if (!slot_is_entity(&p->slots[k], entities) || place[p->slots[k].id] == 0)
				continue;
			if (write) {
				m->place[m->n] = place[p->slots[k].id];
				crypto_generichash_update(&h, le, sizeof(le));
			}
			m->n++;
		}
		if (!write)
			m->place = mem_array(m->n + 1, sizeof(*m->place));
	}
	crypto_generichash_final(&h, slots, sizeof(slots));
	fed_mask_nonce(digest, 's', slots, sizeof(slots), m->nonce);
}

static void add_mates(struct fed_score_part *p, const struct fed_score_question *q,
		      const struct fed_peer *const *peers, uint32_t entities)
{
	uint32_t *place = mem_array((size_t)entities + 1, sizeof(*place));

	for (size_t i = 0; i < p->n; i++)
		place[p->entity[i]] = (uint32_t)i + 1;
	p->mate = mem_array(q->n_members, sizeof(*p->mate));
	for (size_t i = 0; i + 1 < q->n_members; i++) {
		struct score_mate *m = &p->mate[p->n_mates];

		if (memcmp(peers[i]->key, q->asker, FED_KEY) == 0 || is_away(q, peers[i]->key))
			continue;
		memcpy(m->key, peers[i]->key, FED_KEY);
		memcpy(m->sign_public, peers[i]->sign_public, FED_SIGN);
		place_mate(m, p->digest, peers[i], place, entities);
		p->at += memcmp(m->key, p->me, FED_KEY) < 0;
		p->n_mates++;
	}
	free(place);
}

static const struct fed_peer *score_asker(const struct fed_score_question *q,
					  const struct fed_peer *const *peers)
{
	size_t i = 0;

	while (memcmp(peers[i]->key, q->asker, FED_KEY) != 0) {
		i++;
		assert(i + 1 < q->n_members);
	}
	return peers[i];
}

int fed_score_part_new(struct fed_score_part **out, const struct fed_score_question *q,
		       const uint8_t me[FED_KEY], const struct fed_peer *const *peers,
		       uint32_t entities, struct nn_draw draw, struct err *e)
{
	struct fed_score_part *p = mem_array(1, sizeof(*p));
	size_t unscored;
	uint8_t *count = count_score_holders(q, peers, entities, &unscored);
	int rc;

	p->entity = scored_entities(score_asker(q, peers), count, q->holders, entities, &p->n);
	free(count);
	rc = check_score_room(p->n, e);
	if (rc != 0) {
		fed_score_part_free(p);
		*out = NULL;
		return rc;
	}
	memcpy(p->me, me, FED_KEY);
	memcpy(p->id, q->id, FED_ID);
	fed_score_digest(q, p->digest);
	p->ring = score_ring(q->n_members);
	add_mates(p, q, peers, entities);
	fed_mask_secret_draw(&p->secret, draw);
	*out = p;
	return 0;
}

void fed_score_part_free(struct fed_score_part *p)
{
	if (p == NULL)
		return;
	for (size_t i = 0; i < p->n_mates; i++)
		free(p->mate[i].place);
	if (p->mate != NULL)
		sodium_memzero(p->mate, p->n_mates * sizeof(*p->mate));
	free(p->mate);
	free(p->entity);
	sodium_memzero(p, sizeof(*p));
	free(p);
}

size_t fed_score_part_entities(const struct fed_score_part *p)
{
	return p->n;
}

void fed_score_part_show(const struct fed_score_part *p, const uint8_t secret[FED_SIGN_SECRET],
			 uint8_t shown[FED_SCORE_SHOWN])
{
	uint8_t text[SHOWN_TEXT];

	memcpy(shown, p->secret.public, FED_MASK_KEY);
	shown_text(p->digest, p->me, p->secret.public, text);
	crypto_sign_detached(shown + FED_MASK_KEY, NULL, text, sizeof(text), secret);
}

static int take_mate(struct fed_score_part *p, struct score_mate *m, const uint8_t *shown,
		     struct err *e)
{
	int rc = check_shown_key(p->digest, m->key, m->sign_public, shown, e);

	return rc == 0 ? fed_mask_pair(&p->secret, p->id, p->me, m->key, shown, &m->stream, e) : rc;
}

int fed_score_part_take(struct fed_score_part *p, const uint8_t *shown, size_t n, struct err *e)
{
	int rc = 0;

	assert(!p->taken);
	if (n != (p->n_mates + 1) * FED_SCORE_SHOWN)
		return err_set(e, ERR_PROTO, "shows %zu bytes of mask keys of %zu members", n,
			       p->n_mates + 1);
	if (memcmp(shown + p->at * FED_SCORE_SHOWN, p->secret.public, FED_MASK_KEY) != 0)
		return err_set(e, ERR_PROTO, "shows another mask key than ours as ours");
	for (size_t i = 0; i < p->n_mates && rc == 0; i++)
		rc = take_mate(p, &p->mate[i], shown + (i + (i >= p->at)) * FED_SCORE_SHOWN, e);
	sodium_memzero(&p->secret, sizeof(p->secret));
	p->taken = rc == 0;
	return rc;
}

/* The stream's words, each to its place; the first to the first. */
static void add_stream(const struct fed_score_part *p, const struct score_mate *m, uint8_t *words)
{
	uint8_t *stream = mem_array(m->n + 1, FED_SCORE_WORD);

	fed_mask_stream_add(&m->stream, &p->ring, m->nonce, stream, m->n + 1);
	fed_mask_add(&p->ring, words, stream, 1);
	for (size_t k = 0; k < m->n; k++)
		fed_mask_add(&p->ring, words + m->place[k] * (size_t)FED_SCORE_WORD,
			     stream + (k + 1) * FED_SCORE_WORD, 1);
	sodium_memzero(stream, (m->n + 1) * FED_SCORE_WORD);
	free(stream);
}

int fed_score_part_words(struct fed_score_part *p, const float *score, struct buf *out,
			 struct err *e)
{
	float *row = mem_array(p->n + 1, sizeof(*row));
	uint8_t *words = mem_array(p->n + 1, FED_SCORE_WORD);
	int rc;

	assert(p->taken && !p->spent);
	p->spent = true; /* other scores under the same masks would tell their difference */
	for (size_t i = 0; i < p->n; i++)
		row[i + 1] = score[p->entity[i]];
	rc = fed_mask_encode(&p->ring, row, p->n + 1, words, NULL, NULL);
	if (rc != 0) /* no word of which one: the asker reads this */
		rc = err_set(e, ERR_INPUT, "its scores are no numbers");
	for (size_t i = 0; i < p->n_mates && rc == 0; i++)
		add_stream(p, &p->mate[i], words);
	if (rc == 0)
		buf_add(out, words, (p->n + 1) * FED_SCORE_WORD);
	free(words);
	free(row);
	return rc;
}

/* ---- the asker ---- */

struct score_of {
	uint8_t key[FED_KEY], sign_public[FED_SIGN];
	uint32_t *entity;
	size_t n, has; /* words of it that are there: n + 1 in all */
	bool away;
};

struct fed_score_sum {
	uint8_t digest[FED_SCORE_DIGEST];
	struct fed_mask_ring ring;
	struct score_of *of; /* [n_peers] */
	size_t n_peers, unscored;
	uint32_t entities, holders;
	uint8_t *count; /* [entities] */
	uint8_t *words; /* [entities + 1]: of what all have sent; the last is all first ones' */
};

int fed_score_sum_new(struct fed_score_sum **out, const struct fed_score_question *q,
		      const struct fed_peer *const *peers, uint32_t entities, struct err *e)
{
	struct fed_score_sum *s = mem_array(1, sizeof(*s));
	int rc = 0;

	s->ring = score_ring(q->n_members);
	s->entities = entities;
	s->holders = q->holders;
	s->n_peers = q->n_members - 1;
	s->of = mem_array(s->n_peers, sizeof(*s->of));
	s->count = count_score_holders(q, peers, entities, &s->unscored);
	s->words = mem_array((size_t)entities + 1, FED_SCORE_WORD);
	fed_score_digest(q, s->digest);
	for (size_t i = 0; i < s->n_peers && rc == 0; i++) {
		memcpy(s->of[i].key, peers[i]->key, FED_KEY);
		memcpy(s->of[i].sign_public, peers[i]->sign_public, FED_SIGN);
		s->of[i].away = is_away(q, peers[i]->key);
		s->of[i].entity =
			scored_entities(peers[i], s->count, q->holders, entities, &s->of[i].n);
		rc = check_score_room(s->of[i].n, e);
	}
	if (rc != 0) {
		fed_score_sum_free(s);
		s = NULL;
	}
	*out = s;
	return rc;
}

void fed_score_sum_free(struct fed_score_sum *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0; i < s->n_peers; i++)
		free(s->of[i].entity);
	free(s->of);
	free(s->count);
	free(s->words);
	free(s);
}

size_t fed_score_sum_entities(const struct fed_score_sum *s, size_t peer)
{
	assert(peer < s->n_peers);
	return s->of[peer].n;
}

/* A key of small order makes no secret with any other. */
int fed_score_sum_check(const struct fed_score_sum *s, size_t peer,
			const uint8_t shown[FED_SCORE_SHOWN], struct err *e)
{
	static const uint8_t any[crypto_scalarmult_SCALARBYTES] = { 9 };
	uint8_t out[crypto_scalarmult_BYTES];

	assert(peer < s->n_peers);
	if (crypto_scalarmult(out, any, shown) != 0)
		return err_set(e, ERR_PROTO, "shows a mask key that is no usable X25519 key");
	return check_shown_key(s->digest, s->of[peer].key, s->of[peer].sign_public, shown, e);
}

bool fed_score_sum_has(const struct fed_score_sum *s, size_t peer)
{
	assert(peer < s->n_peers);
	return s->of[peer].has == s->of[peer].n + 1;
}

size_t fed_score_sum_unscored(const struct fed_score_sum *s)
{
	return s->unscored;
}

/* The place of its word i. */
static uint8_t *summed_word(const struct fed_score_sum *s, const struct score_of *of, size_t i)
{
	return s->words + (i == 0 ? s->entities : of->entity[i - 1]) * (size_t)FED_SCORE_WORD;
}

int fed_score_sum_add(struct fed_score_sum *s, size_t peer, const uint8_t *words, size_t n,
		      size_t follow, struct err *e)
{
	struct score_of *of = &s->of[peer];
	size_t all = of->has + (n + follow) / FED_SCORE_WORD;

	assert(peer < s->n_peers && !of->away && !fed_score_sum_has(s, peer));
	if (n == 0 || n % FED_SCORE_WORD != 0 || all != of->n + 1)
		return err_set(e, ERR_PROTO,
			       "it scores %zu names where we count %zu that enough members hold: "
			       "names are to be compared anew",
			       all > 0 ? all - 1 : 0, of->n);
	for (size_t i = 0; i < n / FED_SCORE_WORD; i++)
		fed_mask_add(&s->ring, summed_word(s, of, of->has++), words + i * FED_SCORE_WORD,
			     1);
	return 0;
}

int fed_score_sum_close(const struct fed_score_sum *s, float *sum, uint8_t *others, struct err *e)
{
	static const uint8_t nothing[FED_SCORE_WORD];
	int rc = 0;

	for (size_t i = 0; i < s->n_peers; i++)
		assert(s->of[i].away || fed_score_sum_has(s, i));
	if (memcmp(s->words + s->entities * (size_t)FED_SCORE_WORD, nothing, sizeof(nothing)) != 0)
		return err_set(e, ERR_PROTO,
			       "the masks of the scores did not cancel: two members' names were "
			       "compared anew meanwhile, or one of them cheats");
	for (uint32_t v = 0; v < s->entities && rc == 0; v++) {
		bool any = s->count[v] > 1 && s->count[v] >= s->holders;

		others[v] = any ? (uint8_t)(s->count[v] - 1) : 0;
		sum[v] = 0;
		if (any)
			rc = fed_mask_decode(&s->ring, s->words + v * (size_t)FED_SCORE_WORD, 1,
					     others[v], 1, &sum[v], e);
	}
	return rc;
}

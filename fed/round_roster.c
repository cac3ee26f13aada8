/* fed/round_roster.c - who takes part: PROPOSE, JOIN, START.
 *
 * Proposal, joining and roster are signed (Ed25519) over a tag and their bytes.
 * A round's id is a digest of the proposal, so an old id comes with an old proposal only, and that
 * has its proposer's serial number in it.
 *
 * The proposal lists the candidates; a joining answers with one mark for each of them,
 *
 *	BLAKE2b-128(key = digest of the alignment of the two, round's id)
 *
 * or zeros.  Both of a pair make the same mark if and only if they hold the same
 * alignment, and nobody else learns anything from it.  The roster is the
 * joinings themselves, so every member checks that all were asked the same,
 * that all agreed, and that each is aligned with each. */
#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fed/round_internal.h"

static const char proposal_tag[] = "fkge round proposal 1";
static const char id_tag[] = "fkge round id 1";
static const char joining_tag[] = "fkge round joining 1";
static const char roster_tag[] = "fkge round roster 1";

/* ---- letters ---- */

void letter_begin(const struct fed_round *r, struct net_writer *w, struct buf *out,
		  enum fed_message kind)
{
	net_write_begin(w, out, NET_MSG_ROUND, r->id);
	net_put_uint(w, "k", kind);
}

void letter_send(struct seat *s, struct net_writer *w, struct buf *out)
{
	int rc = net_write_end(w, NULL);

	assert(rc == 0); /* all of ours fit */
	(void)rc;
	message_queue_add(&s->queue, out->base, out->len);
	buf_release(out);
}

void letter_reason(const struct fed_round *r, struct seat *s, enum fed_message kind,
		   const char *reason)
{
	struct buf out = { 0 };
	struct net_writer w;
	char text[NET_REASON_MAX + 1];

	snprintf(text, sizeof(text), "%s", reason);
	letter_begin(r, &w, &out, kind);
	net_put_str(&w, "r", text);
	letter_send(s, &w, &out);
}

void fed_decline(const uint8_t id[FED_ID], const char *reason, struct buf *out)
{
	struct net_writer w;
	char text[NET_REASON_MAX + 1];
	int rc;

	snprintf(text, sizeof(text), "%s", reason);
	net_write_begin(&w, out, NET_MSG_ROUND, id);
	net_put_uint(&w, "k", FED_MSG_DECLINE);
	net_put_str(&w, "r", text);
	rc = net_write_end(&w, NULL);
	assert(rc == 0);
	(void)rc;
}

/* ---- signatures ---- */

static void digest_of(uint8_t out[DIGEST], const char *tag, const void *bytes, size_t n)
{
	crypto_generichash_state h;

	crypto_generichash_init(&h, NULL, 0, DIGEST);
	crypto_generichash_update(&h, (const uint8_t *)tag, strlen(tag) + 1);
	crypto_generichash_update(&h, bytes, n);
	crypto_generichash_final(&h, out, DIGEST);
}

void round_sign(uint8_t out[FED_SIGNATURE], const char *tag, const void *bytes, size_t n,
		const struct fed_setup *s)
{
	uint8_t digest[DIGEST];

	digest_of(digest, tag, bytes, n);
	crypto_sign_detached(out, NULL, digest, DIGEST, s->sign_secret);
}

bool round_is_signed(const uint8_t signature[FED_SIGNATURE], const char *tag, const void *bytes,
		     size_t n, const uint8_t key[FED_SIGN])
{
	uint8_t digest[DIGEST];

	digest_of(digest, tag, bytes, n);
	return crypto_sign_verify_detached(signature, digest, DIGEST, key) == 0;
}

/* ---- the proposal ---- */

static void put_settings(struct net_writer *w, const struct fed_settings *s)
{
	net_put_str(w, "m", s->method);
	net_put_list(w, "c");
	for (size_t i = 0; i < FED_VALUES_MAX; i++)
		net_put_double(w, NULL, s->value[i]);
	net_put_end(w);
	net_put_uint(w, "n", s->number);
	net_put_uint(w, "t", s->topology);
	net_put_bin(w, "h", s->host, FED_KEY);
	net_put_str(w, "mo", s->model);
	net_put_double(w, "g", s->gamma);
	net_put_uint(w, "fe", s->ent_floats);
	net_put_uint(w, "fr", s->rel_floats);
	net_put_uint(w, "o", s->min_holders);
	net_put_uint(w, "tj", s->join_ms);
	net_put_uint(w, "tt", s->train_ms);
	net_put_uint(w, "ts", s->stage_ms);
	net_put_uint(w, "sb", s->secret_bits);
	net_put_double(w, "sc", s->secret_clip);
	if (s->equal_start)
		net_put_uint(w, "ss", s->start_seed);
}

static void get_settings(struct fed_settings *s, const struct net_map *m, struct err *e)
{
	struct net_list c;

	memset(s, 0, sizeof(*s));
	net_get_text(m, "m", s->method, sizeof(s->method), e);
	c = net_get_list(m, "c", FED_VALUES_MAX, e);
	if (e->code == 0 && c.n != FED_VALUES_MAX)
		err_set(e, ERR_PROTO, "a proposal names %zu constants, not %d", c.n,
			FED_VALUES_MAX);
	for (size_t i = 0; e->code == 0 && i < FED_VALUES_MAX; i++)
		s->value[i] = net_list_double(&c, i, -1e300, 1e300, e);
	s->number = net_get_uint(m, "n", 0, UINT64_MAX, e);
	s->topology = (enum fed_topology)net_get_uint(m, "t", 0, FED_HOSTED, e);
	net_get_fixed(m, "h", s->host, FED_KEY, e);
	if (net_has(m, "mo")) /* older ones do not say */
		net_get_text(m, "mo", s->model, sizeof(s->model), e);
	if (net_has(m, "g"))
		s->gamma = net_get_double(m, "g", 0, FED_VALUE_MAX, e);
	s->ent_floats = (uint32_t)net_get_uint(m, "fe", 1, FED_FLOATS_MAX, e);
	s->rel_floats = (uint32_t)net_get_uint(m, "fr", 1, FED_FLOATS_MAX, e);
	s->min_holders = (uint32_t)net_get_uint(m, "o", 2, FED_MEMBERS_MAX, e);
	s->join_ms = (uint32_t)net_get_uint(m, "tj", 1, FED_TIME_MAX_MS, e);
	s->train_ms = (uint32_t)net_get_uint(m, "tt", 1, FED_TIME_MAX_MS, e);
	s->stage_ms = (uint32_t)net_get_uint(m, "ts", 1, FED_TIME_MAX_MS, e);
	s->secret_bits = (uint32_t)net_get_uint(m, "sb", 0, 64, e);
	s->secret_clip = net_get_double(m, "sc", 0, FED_VALUE_MAX, e);
	s->equal_start = net_has(m, "ss");
	if (s->equal_start)
		s->start_seed = net_get_uint(m, "ss", 0, UINT64_MAX, e);
}

static void id_of(const void *proposal, size_t n, uint8_t id[FED_ID])
{
	uint8_t digest[DIGEST];

	digest_of(digest, id_tag, proposal, n);
	memcpy(id, digest, FED_ID);
}

static void write_proposal(struct fed_round *r)
{
	uint8_t nonce[NONCE];
	struct net_writer w;
	int rc;

	r->setup->draw.fn(r->setup->draw.ctx, nonce, NONCE);
	net_write_body(&w, &r->proposal);
	net_put_bin(&w, "x", nonce, NONCE);
	net_put_uint(&w, "q", r->setup->serial);
	net_put_bin(&w, "w", r->setup->key, FED_KEY);
	net_put_bin(&w, "a", r->candidate, (size_t)r->n_candidates * FED_KEY);
	put_settings(&w, &r->settings);
	rc = net_write_end(&w, NULL);
	assert(rc == 0);
	(void)rc;
	digest_of(r->proposal_digest, proposal_tag, r->proposal.base, r->proposal.len);
	id_of(r->proposal.base, r->proposal.len, r->id);
}

struct proposal { /* as read; points into the message */
	struct fed_proposal public;
	const uint8_t *bytes;
	size_t n;
	uint8_t signature[64];
};

static void read_proposal_body(struct proposal *p, const struct net_map *m, struct err *e)
{
	struct net_bytes a;

	p->public.serial = net_get_uint(m, "q", 0, FED_SERIAL_MAX, e);
	net_get_fixed(m, "w", p->public.proposer, FED_KEY, e);
	a = net_get_bin(m, "a", FED_KEY, sizeof(p->public.member), e);
	if (e->code == 0 && a.len % FED_KEY != 0)
		err_set(e, ERR_PROTO, "a list of keys of %zu bytes", a.len);
	if (e->code == 0)
		memcpy(p->public.member, a.base, a.len);
	p->public.n_members = a.len / FED_KEY;
	get_settings(&p->public.settings, m, e);
}

/* Candidates ascend, so none is there twice. */
static void check_candidates(const struct proposal *p, struct err *e)
{
	bool proposer = false;

	for (size_t i = 0; e->code == 0 && i < p->public.n_members; i++) {
		if (i > 0 && memcmp(p->public.member[i - 1], p->public.member[i], FED_KEY) >= 0)
			err_set(e, ERR_PROTO, "the keys in a proposal do not ascend");
		if (memcmp(p->public.member[i], p->public.proposer, FED_KEY) == 0)
			proposer = true;
	}
	if (e->code == 0 && !proposer)
		err_set(e, ERR_PROTO, "a proposer that does not take part");
}

static int read_proposal(struct proposal *p, const uint8_t *message, size_t n, struct err *e)
{
	struct err local = { 0 };
	struct net_bytes bytes;
	struct net_body body;
	struct net_msg m;

	memset(p, 0, sizeof(*p));
	if (net_msg_decode(&m, message, n, &local) != 0)
		goto failed;
	net_get_uint(&m.body, "k", FED_MSG_PROPOSE, FED_MSG_PROPOSE, &local);
	bytes = net_get_bin(&m.body, "p", 1, 16384, &local);
	net_get_fixed(&m.body, "s", p->signature, 64, &local);
	p->bytes = bytes.base; /* into message, which outlives m */
	p->n = bytes.len;
	id_of(bytes.base, bytes.len, p->public.id);
	if (local.code == 0 && net_body_decode(&body, bytes.base, bytes.len, &local) == 0) {
		read_proposal_body(p, &body.map, &local);
		net_body_release(&body);
	}
	if (local.code == 0)
		check_candidates(p, &local);
	if (local.code == 0 && (!m.has_session || memcmp(m.session, p->public.id, FED_ID) != 0))
		err_set(&local, ERR_PROTO, "a proposal under another round's id");
	if (local.code == 0 && m.type != NET_MSG_ROUND)
		err_set(&local, ERR_PROTO, "%s is no proposal", net_msg_name(m.type));
	net_msg_release(&m);
failed:
	if (local.code == 0)
		return 0;
	return err_set(e, local.code, "proposal of a round: %s", local.text);
}

int fed_proposal_read(struct fed_proposal *out, const uint8_t *message, size_t n, struct err *e)
{
	struct proposal p;
	int rc = read_proposal(&p, message, n, e);

	*out = p.public;
	return rc;
}

/* ---- joining ---- */

static bool no_mark(const uint8_t mark[MARK])
{
	return sodium_is_zero(mark, MARK);
}

static unsigned candidate_of(const struct fed_round *r, const uint8_t key[FED_KEY])
{
	for (unsigned i = 0; i < r->n_candidates; i++)
		if (memcmp(r->candidate[i], key, FED_KEY) == 0)
			return i;
	return FED_MEMBERS_MAX;
}

static void make_marks(const struct fed_round *r, struct joining *j)
{
	const struct fed_setup *s = r->setup;

	for (size_t i = 0; i < s->n_peers; i++) {
		unsigned c = candidate_of(r, s->peers[i].key);

		if (c < FED_MEMBERS_MAX)
			crypto_generichash(j->mark[c], MARK, r->id, FED_ID, s->peers[i].digest,
					   NET_PSI_DIGEST);
	}
}

/* Our own joining: signed, with a nonce that goes into the round's seed. */
static void join(struct fed_round *r)
{
	struct joining *j = mem_array(1, sizeof(*j));
	struct buf b = { 0 };
	uint8_t nonce[NONCE];
	struct net_writer w;
	int rc;

	r->setup->draw.fn(r->setup->draw.ctx, nonce, NONCE);
	round_draw_secret(r);
	make_marks(r, j);
	net_write_body(&w, &b);
	net_put_bin(&w, "d", r->proposal_digest, DIGEST);
	net_put_bin(&w, "w", r->setup->key, FED_KEY);
	net_put_bin(&w, "x", nonce, NONCE);
	net_put_bin(&w, "m", j->mark, (size_t)r->n_candidates * MARK);
	if (r->secret != NULL)
		net_put_bin(&w, "y", r->secret->mine.public, MASK_KEY);
	rc = net_write_end(&w, NULL);
	assert(rc == 0 && b.len <= JOIN_MAX);
	(void)rc;
	memcpy(j->bytes, b.base, b.len);
	j->n = b.len;
	buf_release(&b);
	round_sign(j->signature, joining_tag, j->bytes, j->n, r->setup);
	r->seats[r->me].joining = j;
	r->seats[r->me].answered = true;
}

/* What a member's joining says; the signature is not looked at. */
static void read_joining(const struct fed_round *r, const struct net_bytes *bytes,
			 struct joining *j, uint8_t key[FED_KEY], struct err *e)
{
	uint8_t digest[DIGEST], nonce[NONCE];
	struct net_bytes marks;
	struct net_body b;

	if (e->code != 0 || net_body_decode(&b, bytes->base, bytes->len, e) != 0)
		return;
	net_get_fixed(&b.map, "d", digest, DIGEST, e);
	net_get_fixed(&b.map, "w", key, FED_KEY, e);
	net_get_fixed(&b.map, "x", nonce, NONCE, e);
	marks = net_get_bin(&b.map, "m", (size_t)r->n_candidates * MARK,
			    (size_t)r->n_candidates * MARK, e);
	if (r->secret != NULL)
		net_get_fixed(&b.map, "y", j->mask_key, MASK_KEY, e);
	if (e->code == 0 && memcmp(digest, r->proposal_digest, DIGEST) != 0)
		err_set(e, ERR_PROTO, "it joins another proposal");
	if (e->code == 0 && r->secret != NULL)
		secret_check(r, key, j->mask_key, e);
	if (e->code == 0) {
		memcpy(j->bytes, bytes->base, bytes->len);
		j->n = bytes->len;
		memcpy(j->mark, marks.base, marks.len);
	}
	net_body_release(&b);
}

static void check_joining(const struct seat *s, const struct joining *j, const uint8_t *key,
			  struct err *e)
{
	if (e->code != 0)
		return;
	if (memcmp(key, s->account.key, FED_KEY) != 0)
		err_set(e, ERR_IDENTITY, "a joining in the name of another member");
	else if (s->peer != NULL &&
		 !round_is_signed(j->signature, joining_tag, j->bytes, j->n, s->peer->sign_public))
		err_set(e, ERR_IDENTITY, "the signature of a joining is not the member's");
}

void roster_joined(struct fed_round *r, struct seat *s, const struct net_map *m)
{
	struct joining *j;
	struct net_bytes bytes;
	struct err e = { 0 };
	uint8_t key[FED_KEY] = { 0 };

	if (r->phase != PROPOSING || s->answered) {
		s->account.strange++;
		return;
	}
	j = mem_array(1, sizeof(*j));
	bytes = net_get_bin(m, "j", 1, JOIN_MAX, &e);
	net_get_fixed(m, "s", j->signature, 64, &e);
	read_joining(r, &bytes, j, key, &e);
	check_joining(s, j, key, &e);
	s->answered = true;
	if (e.code != 0) {
		free(j);
		seat_break(r, s, &e);
		return;
	}
	s->joining = j;
}

void roster_declined(struct fed_round *r, struct seat *s, const struct net_map *m)
{
	struct err e = { 0 };
	char why[NET_REASON_MAX + 1] = "";

	if (r->phase != PROPOSING || s->answered) {
		s->account.strange++;
		return;
	}
	net_get_text(m, "r", why, sizeof(why), &e);
	s->answered = true;
	s->account.fate = FED_DECLINED;
	err_set(&s->account.trouble, ERR_REFUSED, "%s", why);
}

/* ---- the roster ---- */

/* Whether both of them have said that they are aligned, and in the same way. */
static bool pair_agrees(const struct fed_round *r, const struct seat *a, const struct seat *b)
{
	unsigned i = candidate_of(r, a->account.key), j = candidate_of(r, b->account.key);

	return i < FED_MEMBERS_MAX && j < FED_MEMBERS_MAX && !no_mark(a->joining->mark[j]) &&
	       memcmp(a->joining->mark[j], b->joining->mark[i], MARK) == 0;
}

/* With how many of the others a member is not aligned. */
static unsigned disagreements(const struct fed_round *r, unsigned seat)
{
	unsigned n = 0;

	for (unsigned m = 0; m < r->n_seats; m++)
		if (m != seat && r->seats[m].joining != NULL)
			n += !pair_agrees(r, &r->seats[seat], &r->seats[m]);
	return n;
}

static void leave_out(struct fed_round *r, unsigned seat)
{
	struct seat *s = &r->seats[seat];

	free(s->joining);
	s->joining = NULL;
	s->account.fate = FED_DECLINED;
	err_set(&s->account.trouble, ERR_REFUSED,
		"not aligned with all others of this round: run an intersection with them");
	letter_reason(r, s, FED_MSG_OUT, "not aligned with all other members of the round");
}

/* Leave out those that are not aligned with the others, the worst first, until each is
 * aligned with each.  Never ourselves. */
static void settle_roster(struct fed_round *r)
{
	for (;;) {
		unsigned worst = r->me, most = 0;

		for (unsigned m = 0; m < r->n_seats; m++) {
			unsigned n = r->seats[m].joining != NULL ? disagreements(r, m) : 0;

			if (m != r->me && n > 0 && n >= most) {
				worst = m;
				most = n;
			}
		}
		if (worst == r->me)
			return;
		leave_out(r, worst);
	}
}

static unsigned count_joined(const struct fed_round *r)
{
	unsigned n = 0;

	for (unsigned m = 0; m < r->n_seats; m++)
		n += r->seats[m].joining != NULL;
	return n;
}

static bool host_joined(const struct fed_round *r)
{
	if (r->settings.topology == FED_SHARDED)
		return true;
	for (unsigned m = 0; m < r->n_seats; m++)
		if (memcmp(r->seats[m].account.key, r->settings.host, FED_KEY) == 0)
			return r->seats[m].joining != NULL;
	return false;
}

/* The roster as it is signed: all joinings, by key. */
static void roster_bytes(const struct fed_round *r, struct buf *out)
{
	buf_add(out, r->id, FED_ID);
	for (unsigned m = 0; m < r->n_seats; m++)
		if (r->seats[m].joining != NULL) {
			const struct joining *j = r->seats[m].joining;

			buf_add(out, j->bytes, j->n);
			buf_add(out, j->signature, 64);
		}
}

static void put_joinings(const struct fed_round *r, struct net_writer *w)
{
	net_put_list(w, "l");
	for (unsigned m = 0; m < r->n_seats; m++) {
		const struct joining *j = r->seats[m].joining;

		if (j == NULL)
			continue;
		net_put_bin(w, NULL, j->bytes, j->n);
		net_put_bin(w, NULL, j->signature, 64);
	}
	net_put_end(w);
}

static void send_start(struct fed_round *r)
{
	struct buf all = { 0 };
	uint8_t signature[64];

	roster_bytes(r, &all);
	round_sign(signature, roster_tag, all.base, all.len, r->setup);
	buf_release(&all);
	for (unsigned m = 0; m < r->n_seats; m++) {
		struct buf out = { 0 };
		struct net_writer w;

		if (m == r->me || r->seats[m].joining == NULL)
			continue;
		letter_begin(r, &w, &out, FED_MSG_START);
		put_joinings(r, &w);
		net_put_bin(&w, "s", signature, 64);
		letter_send(&r->seats[m], &w, &out);
	}
}

static const char too_few[] = "its roster has fewer members than min_members";

static void call_off(struct fed_round *r, const char *why)
{
	for (unsigned m = 0; m < r->n_seats; m++)
		if (m != r->me && r->seats[m].joining != NULL)
			letter_reason(r, &r->seats[m], FED_MSG_OUT, why);
	round_end(r, ERR_UNREACHABLE, "round %llu: %s", (unsigned long long)r->settings.number,
		  why);
}

void roster_close(struct fed_round *r)
{
	for (unsigned m = 0; m < r->n_seats; m++) {
		struct seat *s = &r->seats[m];

		if (s->gone) { /* joined, and is lost since */
			free(s->joining);
			s->joining = NULL;
		}
		if (s->answered || s->gone)
			continue;
		s->account.fate = FED_DECLINED;
		err_set(&s->account.trouble, ERR_TIMEOUT, "did not answer the proposal in %u ms",
			r->settings.join_ms);
	}
	settle_roster(r);
	if (!host_joined(r)) {
		call_off(r, "the host has not joined");
	} else if (count_joined(r) < 2) {
		call_off(r, "nobody joined");
	} else if (count_joined(r) < r->setup->min_members) {
		call_off(r, too_few);
	} else {
		send_start(r);
		round_run_members(r);
	}
}

/* ---- START, at a member ---- */

static void take_joining(struct fed_round *r, const struct net_list *l, size_t i, struct err *e)
{
	struct joining *j = mem_array(1, sizeof(*j));
	struct net_bytes bytes = net_list_bin(l, i, 1, JOIN_MAX, e);
	struct net_bytes signature = net_list_bin(l, i + 1, 64, 64, e);
	uint8_t key[FED_KEY] = { 0 };
	struct seat *s = NULL;

	if (e->code == 0)
		memcpy(j->signature, signature.base, 64);
	read_joining(r, &bytes, j, key, e);
	if (e->code == 0) {
		s = seat_find(r, key);
		if (s == NULL)
			err_set(e, ERR_PROTO, "the roster holds a member that we cannot reach");
		else if (s->joining != NULL && s != &r->seats[r->me])
			err_set(e, ERR_PROTO, "the roster holds a member twice");
		else
			check_joining(s, j, key, e);
	}
	if (e->code != 0) {
		free(j);
		return;
	}
	assert(s != NULL);
	if (s == &r->seats[r->me]) {
		assert(s->joining != NULL);
		if (j->n != s->joining->n || memcmp(j->bytes, s->joining->bytes, j->n) != 0)
			err_set(e, ERR_IDENTITY, "the roster holds a joining that is not ours");
		s->answered = false; /* it was ours: see check_roster() */
		free(j);
	} else {
		s->joining = j;
	}
}

static void check_roster(struct fed_round *r, const uint8_t signature[64], struct err *e)
{
	const struct seat *proposer = &r->seats[r->proposer];
	struct buf all = { 0 };

	if (r->seats[r->me].answered) {
		err_set(e, ERR_PROTO, "the roster is without us");
		return;
	}
	if (proposer->joining == NULL) { /* a proposal that its proposer is not in is none */
		err_set(e, ERR_PROTO, "the roster is without its proposer");
		return;
	}
	roster_bytes(r, &all);
	if (!round_is_signed(signature, roster_tag, all.base, all.len, proposer->peer->sign_public))
		err_set(e, ERR_IDENTITY, "the roster is not signed by its proposer");
	buf_release(&all);
	for (unsigned m = 0; e->code == 0 && m < r->n_seats; m++)
		if (r->seats[m].joining != NULL && disagreements(r, m) > 0)
			err_set(e, ERR_PROTO, "the roster holds members that are not aligned");
	assert(count_joined(r) >= 2); /* its proposer and we */
	if (e->code == 0 && !host_joined(r))
		err_set(e, ERR_PROTO, "the roster is without the host");
}

void roster_started(struct fed_round *r, struct seat *s, const struct net_map *m)
{
	struct err e = { 0 };
	struct net_list l;
	uint8_t signature[64];

	if (r->phase != JOINED || s != &r->seats[r->proposer]) {
		s->account.strange++;
		return;
	}
	l = net_get_list(m, "l", (size_t)2 * FED_MEMBERS_MAX, &e);
	net_get_fixed(m, "s", signature, 64, &e);
	if (e.code == 0 && l.n % 2 != 0)
		err_set(&e, ERR_PROTO, "a roster of %zu halves", l.n);
	for (size_t i = 0; e.code == 0 && i < l.n; i += 2)
		take_joining(r, &l, i, &e);
	if (e.code == 0)
		check_roster(r, signature, &e);
	if (e.code == 0 && count_joined(r) < r->setup->min_members) {
		fed_round_stop(r, ERR_REFUSED, too_few, r->now_ms);
		return;
	}
	if (e.code == 0) {
		round_run_members(r);
		return;
	}
	seat_break(r, s, &e);
	round_end(r, e.code, "round %llu: %s", (unsigned long long)r->settings.number, e.text);
}

/* ---- making a round ---- */

static int by_key(const void *a, const void *b)
{
	return memcmp(((const struct seat *)a)->account.key, ((const struct seat *)b)->account.key,
		      FED_KEY);
}

static struct fed_round *round_new(const struct fed_setup *s, const struct fed_settings *settings,
				   uint64_t now_ms)
{
	struct fed_round *r = mem_array(1, sizeof(*r));

	r->setup = s;
	r->settings = *settings;
	r->now_ms = now_ms;
	r->n_seats = (unsigned)s->n_peers + 1;
	r->seats = mem_array(r->n_seats, sizeof(*r->seats));
	for (unsigned i = 0; i < r->n_seats; i++) {
		r->seats[i].peer = i < s->n_peers ? &s->peers[i] : NULL;
		memcpy(r->seats[i].account.key, i < s->n_peers ? s->peers[i].key : s->key, FED_KEY);
	}
	qsort(r->seats, r->n_seats, sizeof(*r->seats), by_key);
	for (unsigned i = 0; i < r->n_seats; i++)
		if (r->seats[i].peer == NULL)
			r->me = i;
	return r;
}

static int check_setup(const struct fed_setup *s, const struct fed_settings *settings,
		       struct err *e)
{
	int rc = fed_settings_check(settings, e);

	if (rc != 0)
		return rc;
	if (s->n_peers + 1 > FED_MEMBERS_MAX)
		return err_set(e, ERR_USAGE, "a round has at most %d members, not %zu",
			       FED_MEMBERS_MAX, s->n_peers + 1);
	if (strcmp(s->part->method->name, settings->method) != 0)
		return err_set(e, ERR_REFUSED, "we do %s, not %s", s->part->method->name,
			       settings->method);
	if (s->part->floats[0] != settings->ent_floats ||
	    s->part->floats[1] != settings->rel_floats)
		return err_set(e, ERR_REFUSED, "our rows have %u and %u floats, not %u and %u",
			       s->part->floats[0], s->part->floats[1], settings->ent_floats,
			       settings->rel_floats);
	if (s->min_holders > settings->min_holders)
		return err_set(e, ERR_REFUSED,
			       "we ask for %u holders of what we send, not %u: with few, a mean "
			       "shows them our rows",
			       s->min_holders, settings->min_holders);
	if (s->secret_only && settings->secret_bits == 0)
		return err_set(e, ERR_REFUSED, "we send rows under secret aggregation only");
	return 0;
}

static void send_proposal(struct fed_round *r)
{
	uint8_t signature[64];

	round_sign(signature, proposal_tag, r->proposal.base, r->proposal.len, r->setup);
	for (unsigned m = 0; m < r->n_seats; m++) {
		struct buf out = { 0 };
		struct net_writer w;

		if (m == r->me)
			continue;
		letter_begin(r, &w, &out, FED_MSG_PROPOSE);
		net_put_bin(&w, "p", r->proposal.base, r->proposal.len);
		net_put_bin(&w, "s", signature, 64);
		letter_send(&r->seats[m], &w, &out);
	}
}

int fed_round_propose(struct fed_round **out, const struct fed_setup *s,
		      const struct fed_settings *settings, uint64_t now_ms, struct err *e)
{
	struct fed_round *r;
	int rc = check_setup(s, settings, e);

	*out = NULL;
	if (rc != 0)
		return rc;
	r = round_new(s, settings, now_ms);
	for (unsigned i = 0; i < r->n_seats; i++)
		memcpy(r->candidate[i], r->seats[i].account.key, FED_KEY);
	r->n_candidates = r->n_seats;
	r->proposer = r->me;
	r->phase = PROPOSING;
	r->due_ms = now_ms + settings->join_ms;
	write_proposal(r);
	join(r);
	send_proposal(r);
	if (r->n_seats == 1)
		roster_close(r);
	*out = r;
	return 0;
}

static int check_proposal(const struct fed_setup *s, const struct proposal *p, struct err *e)
{
	for (size_t i = 0; i < s->n_peers; i++) {
		if (memcmp(s->peers[i].key, p->public.proposer, FED_KEY) != 0)
			continue;
		if (!round_is_signed(p->signature, proposal_tag, p->bytes, p->n,
				     s->peers[i].sign_public))
			return err_set(e, ERR_IDENTITY,
				       "proposal of a round: not signed by its proposer");
		return check_setup(s, &p->public.settings, e);
	}
	return err_set(e, ERR_REFUSED, "we are not aligned with the proposer");
}

static void send_joining(struct fed_round *r)
{
	const struct joining *j = r->seats[r->me].joining;
	struct buf out = { 0 };
	struct net_writer w;

	letter_begin(r, &w, &out, FED_MSG_JOIN);
	net_put_bin(&w, "j", j->bytes, j->n);
	net_put_bin(&w, "s", j->signature, 64);
	letter_send(&r->seats[r->proposer], &w, &out);
}

int fed_round_join(struct fed_round **out, const struct fed_setup *s, const uint8_t *message,
		   size_t n, uint64_t now_ms, struct err *e)
{
	struct fed_round *r;
	struct proposal p;
	int rc = read_proposal(&p, message, n, e);

	*out = NULL;
	if (rc == 0)
		rc = check_proposal(s, &p, e);
	if (rc != 0)
		return rc;
	r = round_new(s, &p.public.settings, now_ms);
	memcpy(r->id, p.public.id, FED_ID);
	memcpy(r->candidate, p.public.member, sizeof(r->candidate));
	r->n_candidates = (unsigned)p.public.n_members;
	buf_add(&r->proposal, p.bytes, p.n);
	digest_of(r->proposal_digest, proposal_tag, p.bytes, p.n);
	for (unsigned i = 0; i < r->n_seats; i++)
		if (memcmp(r->seats[i].account.key, p.public.proposer, FED_KEY) == 0)
			r->proposer = i;
	if (candidate_of(r, s->key) >= FED_MEMBERS_MAX) {
		fed_round_free(r);
		return err_set(e, ERR_PROTO, "proposal of a round: we are not in it");
	}
	r->phase = JOINED;
	r->seats[r->proposer].account.bytes_in += n;
	r->due_ms = now_ms + 2 * (uint64_t)r->settings.join_ms;
	join(r);
	send_joining(r);
	*out = r;
	return 0;
}

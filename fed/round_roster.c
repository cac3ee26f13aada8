/* fed/round_roster.c - who takes part: PROPOSE, JOIN, START.
 *
 * Proposal, joining and roster are signed (Ed25519) over a tag and their bytes.
 * A round's id is a digest of the proposal, so an old id comes with an old proposal only, and that
 * has its proposer's serial number in it.
 *
 * All joinings have a nonce for the round's seed.  Its proposer, who sees those of all others
 * before it shows its own, has told its digest in the proposal.
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
static const char nonce_tag[] = "fkge round nonce 1";

/* ---- messages that are no rows ---- */

void fed_message_begin(const struct fed_round *r, struct net_writer *w, struct buf *out,
		       enum net_round_kind kind)
{
	net_write_begin(w, out, NET_MSG_ROUND, r->id);
	net_put_uint(w, "k", kind);
}

void fed_message_send(struct fed_participant *s, struct net_writer *w, struct buf *out)
{
	net_write_close(w);
	message_queue_add(&s->queue, out->base, out->len);
	buf_release(out);
}

void fed_message_send_reason(const struct fed_round *r, struct fed_participant *s,
			     enum net_round_kind kind, const char *reason)
{
	struct net_round_reason b;
	struct buf out = { 0 };
	struct net_writer w;

	snprintf(b.reason, sizeof(b.reason), "%.*s", NET_REASON_MAX, reason);
	fed_message_begin(r, &w, &out, kind);
	net_round_reason_put(&w, &b);
	fed_message_send(s, &w, &out);
}

void fed_decline(const uint8_t id[FED_ID], const char *reason, struct buf *out)
{
	struct net_round_reason b;
	struct net_writer w;

	snprintf(b.reason, sizeof(b.reason), "%.*s", NET_REASON_MAX, reason);
	net_write_begin(&w, out, NET_MSG_ROUND, id);
	net_put_uint(&w, "k", NET_ROUND_DECLINE);
	net_round_reason_put(&w, &b);
	net_write_close(&w);
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

void fed_round_sign(uint8_t out[FED_SIGNATURE], const char *tag, const void *bytes, size_t n,
		    const struct fed_setup *s)
{
	uint8_t digest[DIGEST];

	digest_of(digest, tag, bytes, n);
	crypto_sign_detached(out, NULL, digest, DIGEST, s->sign_secret);
}

bool fed_round_is_signed(const uint8_t signature[FED_SIGNATURE], const char *tag, const void *bytes,
			 size_t n, const uint8_t key[FED_SIGN])
{
	uint8_t digest[DIGEST];

	digest_of(digest, tag, bytes, n);
	return crypto_sign_verify_detached(signature, digest, DIGEST, key) == 0;
}

/* ---- the proposal ---- */

static_assert((int)NET_ROUND_MEMBERS_MAX == (int)FED_MEMBERS_MAX &&
		      (int)NET_ROUND_STAGES_MAX == (int)FED_STAGES_MAX &&
		      (int)NET_ROUND_VALUES == (int)FED_VALUES_MAX &&
		      (int)NET_METHOD_NAME_MAX == FED_METHOD_MAX - 1 &&
		      (int)NET_MODEL_NAME_MAX == FED_MODEL_MAX - 1 &&
		      (int)NET_ROW_FLOATS_MAX == (int)FED_FLOATS_MAX &&
		      (int)NET_ROW_VALUE_MAX == (int)FED_VALUE_MAX &&
		      (int)NET_TIME_MAX_MS == (int)FED_TIME_MAX_MS &&
		      (int)NET_JOINING_MAX == (int)JOIN_MAX &&
		      (int)NET_SIGNATURE_BYTES == (int)FED_SIGNATURE &&
		      (int)NET_KEY_BYTES == (int)FED_MASK_KEY && FED_HOSTED == 1,
	      "limits of net/bodies.def");
/* NOLINTNEXTLINE(misc-redundant-expression): equal today, and to stay so */
static_assert(NET_SERIAL_MAX == FED_SERIAL_MAX, "limits of net/bodies.def");

static struct net_round_settings settings_out(const struct fed_settings *s)
{
	struct net_round_settings o = { .number = s->number,
					.topology = s->topology,
					.has_model = true,
					.has_gamma = true,
					.gamma = s->gamma,
					.ent_floats = s->ent_floats,
					.rel_floats = s->rel_floats,
					.min_holders = s->min_holders,
					.join_ms = s->join_ms,
					.train_ms = s->train_ms,
					.stage_ms = s->stage_ms,
					.secret_bits = s->secret_bits,
					.secret_clip = s->secret_clip,
					.has_start_seed = s->equal_start,
					.start_seed = s->start_seed,
					.has_fraction = s->fraction < 1,
					.fraction = s->fraction };

	memcpy(o.method, s->method, sizeof(o.method));
	memcpy(o.value, s->value, sizeof(o.value));
	memcpy(o.host, s->host, sizeof(o.host));
	memcpy(o.model, s->model, sizeof(o.model));
	return o;
}

/* Older ones do not say a model and its gamma. */
static struct fed_settings settings_in(const struct net_round_settings *o)
{
	struct fed_settings s = { .number = o->number,
				  .topology = (enum fed_topology)o->topology,
				  .gamma = o->gamma,
				  .ent_floats = (uint32_t)o->ent_floats,
				  .rel_floats = (uint32_t)o->rel_floats,
				  .min_holders = (uint32_t)o->min_holders,
				  .join_ms = (uint32_t)o->join_ms,
				  .train_ms = (uint32_t)o->train_ms,
				  .stage_ms = (uint32_t)o->stage_ms,
				  .secret_bits = (uint32_t)o->secret_bits,
				  .secret_clip = o->secret_clip,
				  .equal_start = o->has_start_seed,
				  .start_seed = o->start_seed,
				  .fraction = o->has_fraction ? o->fraction : 1 };

	memcpy(s.method, o->method, sizeof(o->method));
	memcpy(s.value, o->value, sizeof(o->value));
	memcpy(s.host, o->host, sizeof(o->host));
	memcpy(s.model, o->model, sizeof(o->model));
	return s;
}

static void id_of(const void *proposal, size_t n, uint8_t id[FED_ID])
{
	uint8_t digest[DIGEST];

	digest_of(digest, id_tag, proposal, n);
	memcpy(id, digest, FED_ID);
}

static void write_proposal(struct fed_round *r)
{
	struct net_proposal b = { .serial = r->setup->serial,
				  .members = { r->candidate[0], (size_t)r->n_candidates * FED_KEY },
				  .settings = settings_out(&r->settings) };
	struct net_writer w;

	r->setup->draw.fn(r->setup->draw.ctx, r->nonce, sizeof(r->nonce));
	digest_of(r->nonce_digest, nonce_tag, r->nonce, sizeof(r->nonce));
	memcpy(b.nonce, r->nonce_digest, sizeof(b.nonce));
	memcpy(b.proposer, r->setup->key, FED_KEY);
	net_write_body(&w, &r->proposal);
	net_proposal_put(&w, &b);
	net_write_close(&w);
	digest_of(r->proposal_digest, proposal_tag, r->proposal.base, r->proposal.len);
	id_of(r->proposal.base, r->proposal.len, r->id);
}

static void read_proposal_body(struct fed_proposal *p, const struct net_map *map, struct err *e)
{
	struct net_proposal b;

	net_proposal_get(map, &b, e);
	if (e->code == 0 && b.members.len % FED_KEY != 0)
		err_set(e, ERR_PROTO, "a list of keys of %zu bytes", b.members.len);
	if (e->code != 0)
		return;
	p->serial = b.serial;
	memcpy(p->nonce, b.nonce, sizeof(p->nonce));
	memcpy(p->proposer, b.proposer, FED_KEY);
	memcpy(p->member, b.members.base, b.members.len);
	p->n_members = b.members.len / FED_KEY;
	p->settings = settings_in(&b.settings);
}

/* Candidates ascend, so none is there twice. */
static void check_candidates(const struct fed_proposal *p, struct err *e)
{
	bool proposer = false;

	for (size_t i = 0; e->code == 0 && i < p->n_members; i++) {
		if (i > 0 && memcmp(p->member[i - 1], p->member[i], FED_KEY) >= 0)
			err_set(e, ERR_PROTO, "the keys in a proposal do not ascend");
		if (memcmp(p->member[i], p->proposer, FED_KEY) == 0)
			proposer = true;
	}
	if (e->code == 0 && !proposer)
		err_set(e, ERR_PROTO, "a proposer that does not take part");
}

static void read_proposal(struct fed_proposal *p, const struct net_message *m, struct err *e)
{
	struct net_body body;

	memcpy(p->signature, m->round_propose.signature, sizeof(p->signature));
	p->bytes = m->round_propose.proposal.base;
	p->n = m->round_propose.proposal.len;
	p->message_bytes = m->n;
	id_of(p->bytes, p->n, p->id);
	if (net_body_decode(&body, p->bytes, p->n, e) != 0)
		return;
	read_proposal_body(p, &body.map, e);
	net_body_release(&body);
	check_candidates(p, e);
	if (e->code == 0 && (!m->has_session || memcmp(m->session, p->id, FED_ID) != 0))
		err_set(e, ERR_PROTO, "a proposal under another round's id");
}

int fed_proposal_read(struct fed_proposal *out, const struct net_message *m, struct err *e)
{
	struct err why = m->wrong, other = { 0 };

	memset(out, 0, sizeof(*out));
	if (m->type != 0 && m->type != NET_MSG_ROUND)
		err_set(&other, ERR_PROTO, "%s is no proposal", net_msg_name(m->type));
	else if (m->round != 0 && m->round != NET_ROUND_PROPOSE)
		err_set(&other, ERR_PROTO, "'k' is %d: no proposal", m->round);
	if (other.code != 0)
		why = other;
	if (why.code == 0)
		read_proposal(out, m, &why);
	if (why.code == 0)
		return 0;
	return err_set(e, why.code, "proposal of a round: %s", why.text);
}

struct fed_proposal *fed_proposal_copy(const struct fed_proposal *p)
{
	struct fed_proposal *copy = mem_array(sizeof(*copy) + p->n, 1);

	assert(p->bytes != NULL && p->n > 0);
	*copy = *p;
	memcpy(copy + 1, p->bytes, p->n);
	copy->bytes = (const uint8_t *)(copy + 1);
	return copy;
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

/* Under masks nothing: it would be something of our rows. */
static uint64_t kept_out(const struct fed_round *r)
{
	uint64_t all = 0;

	if (r->secret != NULL)
		return 0;
	for (size_t i = 0; i < r->setup->n_peers; i++) {
		unsigned c = candidate_of(r, r->setup->peers[i].key);

		if (c < FED_MEMBERS_MAX && r->setup->peers[i].kept_out > 0)
			all |= bit(c);
	}
	return all;
}

void fed_roster_against(const struct fed_round *r, uint64_t against[FED_MEMBERS_MAX])
{
	for (unsigned m = 0; m < r->members; m++) {
		unsigned c = candidate_of(r, r->participants[m].account.key);

		against[m] = 0;
		for (unsigned k = 0; k < r->members; k++)
			if (c < FED_MEMBERS_MAX &&
			    (r->participants[k].joining->kept_out & bit(c)) != 0)
				against[m] |= bit(k);
	}
}

/* Our own joining: signed, with a nonce that goes into the round's seed. */
static void join(struct fed_round *r)
{
	struct joining *j = mem_array(1, sizeof(*j));
	struct net_joining body = { .marks = { j->mark[0], (size_t)r->n_candidates * MARK } };
	struct buf b = { 0 };
	struct net_writer w;
	int rc;

	if (r->me != r->proposer)
		r->setup->draw.fn(r->setup->draw.ctx, r->nonce, sizeof(r->nonce));
	memcpy(body.nonce, r->nonce, sizeof(body.nonce));
	memcpy(j->nonce, r->nonce, sizeof(j->nonce));
	fed_secret_draw(r);
	make_marks(r, j);
	memcpy(body.digest, r->proposal_digest, sizeof(body.digest));
	memcpy(body.member, r->setup->key, sizeof(body.member));
	body.kept_out = j->kept_out = kept_out(r);
	body.has_kept_out = body.kept_out != 0;
	body.has_mask_key = r->secret != NULL;
	if (r->secret != NULL)
		memcpy(body.mask_key, r->secret->mine.public, sizeof(body.mask_key));
	net_write_body(&w, &b);
	net_joining_put(&w, &body);
	rc = net_write_end(&w, NULL);
	assert(rc == 0 && b.len <= JOIN_MAX);
	(void)rc;
	memcpy(j->bytes, b.base, b.len);
	j->n = b.len;
	buf_release(&b);
	fed_round_sign(j->signature, joining_tag, j->bytes, j->n, r->setup);
	r->participants[r->me].joining = j;
	r->participants[r->me].answered = true;
}

/* Reads a member's joining; the signature is not looked at. */
static void read_joining(const struct fed_round *r, const struct net_bytes *bytes,
			 struct joining *j, uint8_t key[FED_KEY], struct err *e)
{
	struct net_joining x;
	struct net_body b;

	if (e->code != 0 || net_body_decode(&b, bytes->base, bytes->len, e) != 0)
		return;
	net_joining_get(&b.map, &x, e);
	memcpy(key, x.member, FED_KEY);
	if (e->code == 0 && x.marks.len != (size_t)r->n_candidates * MARK)
		err_set(e, ERR_PROTO, "'m' has %zu bytes, not %u marks", x.marks.len,
			r->n_candidates);
	if (e->code == 0 && r->secret != NULL && !x.has_mask_key)
		err_set(e, ERR_PROTO, "key 'y' is missing");
	if (e->code == 0 && memcmp(x.digest, r->proposal_digest, DIGEST) != 0)
		err_set(e, ERR_PROTO, "it joins another proposal");
	memcpy(j->nonce, x.nonce, sizeof(j->nonce));
	memcpy(j->mask_key, x.mask_key, FED_MASK_KEY);
	j->kept_out = x.has_kept_out && r->secret == NULL ? x.kept_out : 0; /* none under masks */
	if (e->code == 0 && r->secret != NULL)
		fed_secret_check(r, key, j->mask_key, e);
	if (e->code == 0) {
		memcpy(j->bytes, bytes->base, bytes->len);
		j->n = bytes->len;
		memcpy(j->mark, x.marks.base, x.marks.len);
	}
	net_body_release(&b);
}

static void check_joining(const struct fed_participant *s, const struct joining *j,
			  const uint8_t *key, struct err *e)
{
	if (e->code != 0)
		return;
	if (memcmp(key, s->account.key, FED_KEY) != 0)
		err_set(e, ERR_IDENTITY, "a joining in the name of another member");
	else if (s->peer != NULL && !fed_round_is_signed(j->signature, joining_tag, j->bytes, j->n,
							 s->peer->sign_public))
		err_set(e, ERR_IDENTITY, "the signature of a joining is not the member's");
}

void fed_roster_joined(struct fed_round *r, struct fed_participant *s, const struct net_message *m)
{
	struct joining *j;
	struct err e = m->wrong;
	uint8_t key[FED_KEY] = { 0 };

	if (r->phase != PROPOSING || s->answered) {
		s->account.strange++;
		return;
	}
	j = mem_array(1, sizeof(*j));
	memcpy(j->signature, m->round_join.signature, sizeof(j->signature));
	read_joining(r, &m->round_join.joining, j, key, &e);
	check_joining(s, j, key, &e);
	s->answered = true;
	if (e.code != 0) {
		free(j);
		fed_participant_break(r, s, &e);
		return;
	}
	s->joining = j;
}

void fed_roster_declined(struct fed_round *r, struct fed_participant *s,
			 const struct net_message *m)
{
	if (r->phase != PROPOSING || s->answered) {
		s->account.strange++;
		return;
	}
	s->answered = true;
	s->account.fate = FED_DECLINED;
	err_set(&s->account.trouble, ERR_REFUSED, "%s", m->round_reason.reason);
}

/* ---- the roster ---- */

/* Does a stand in the way of being aligned with b?  Where both have a mark and these differ, both
 * do; a member that has a mark for another is not blamed if that one has none. */
static bool stands_in_way(const struct fed_round *r, const struct fed_participant *a,
			  const struct fed_participant *b)
{
	unsigned i = candidate_of(r, a->account.key), j = candidate_of(r, b->account.key);

	if (i >= FED_MEMBERS_MAX || j >= FED_MEMBERS_MAX || no_mark(a->joining->mark[j]))
		return true;
	return !no_mark(b->joining->mark[i]) &&
	       memcmp(a->joining->mark[j], b->joining->mark[i], MARK) != 0;
}

/* With how many of the others a member is not aligned by its own saying; with us, by anybody's. */
static unsigned disagreements(const struct fed_round *r, unsigned participant)
{
	const struct fed_participant *of = &r->participants[participant];
	unsigned n = 0;

	for (unsigned m = 0; m < r->n_participants; m++) {
		const struct fed_participant *other = &r->participants[m];

		if (m != participant && other->joining != NULL)
			n += stands_in_way(r, of, other) ||
			     (m == r->me && stands_in_way(r, other, of));
	}
	return n;
}

static void leave_out(struct fed_round *r, unsigned participant)
{
	struct fed_participant *s = &r->participants[participant];

	free(s->joining);
	s->joining = NULL;
	s->account.fate = FED_DECLINED;
	s->account.unaligned = true;
	err_set(&s->account.trouble, ERR_REFUSED,
		"not aligned with all others of this round: run an intersection with them");
	fed_message_send_reason(r, s, NET_ROUND_OUT,
				"not aligned with all other members of the round");
}

/* The member with the most disagreements, of several the one whose turn it is by the round's id:
 * nobody can be kept out of every round by a false mark.  Never ourselves; n_participants: nobody
 * has any. */
static unsigned worst_member(const struct fed_round *r)
{
	unsigned at[FED_MEMBERS_MAX], n = 0, most = 1;

	for (unsigned m = 0; m < r->n_participants; m++) {
		unsigned of =
			m != r->me && r->participants[m].joining != NULL ? disagreements(r, m) : 0;

		if (of > most)
			n = 0;
		if (of >= most) {
			most = of;
			at[n++] = m;
		}
	}
	return n > 0 ? at[r->id[0] % n] : r->n_participants;
}

/* Leave out those that are not aligned with the others, the worst first, until each is
 * aligned with each. */
static void settle_roster(struct fed_round *r)
{
	unsigned worst;

	while ((worst = worst_member(r)) < r->n_participants)
		leave_out(r, worst);
}

static unsigned count_joined(const struct fed_round *r)
{
	unsigned n = 0;

	for (unsigned m = 0; m < r->n_participants; m++)
		n += r->participants[m].joining != NULL;
	return n;
}

static bool host_joined(const struct fed_round *r)
{
	if (r->settings.topology == FED_SHARDED)
		return true;
	for (unsigned m = 0; m < r->n_participants; m++)
		if (memcmp(r->participants[m].account.key, r->settings.host, FED_KEY) == 0)
			return r->participants[m].joining != NULL;
	return false;
}

/* The roster as it is signed: all joinings, by key. */
static void roster_bytes(const struct fed_round *r, struct buf *out)
{
	buf_add(out, r->id, FED_ID);
	for (unsigned m = 0; m < r->n_participants; m++)
		if (r->participants[m].joining != NULL) {
			const struct joining *j = r->participants[m].joining;

			buf_add(out, j->bytes, j->n);
			buf_add(out, j->signature, 64);
		}
}

static void send_start(struct fed_round *r)
{
	struct net_round_start b = { 0 };
	struct buf all = { 0 };

	roster_bytes(r, &all);
	fed_round_sign(b.signature, roster_tag, all.base, all.len, r->setup);
	buf_release(&all);
	for (unsigned m = 0; m < r->n_participants; m++) {
		const struct joining *j = r->participants[m].joining;

		if (j == NULL)
			continue;
		b.joining[b.n_joining++] = (struct net_bytes){ j->bytes, j->n };
		b.joining[b.n_joining++] = (struct net_bytes){ j->signature, 64 };
	}
	for (unsigned m = 0; m < r->n_participants; m++) {
		struct buf out = { 0 };
		struct net_writer w;

		if (m == r->me || r->participants[m].joining == NULL)
			continue;
		fed_message_begin(r, &w, &out, NET_ROUND_START);
		net_round_start_put(&w, &b);
		fed_message_send(&r->participants[m], &w, &out);
	}
}

static const char too_few[] = "its roster has fewer members than min_members";

static void call_off(struct fed_round *r, const char *why)
{
	for (unsigned m = 0; m < r->n_participants; m++)
		if (m != r->me && r->participants[m].joining != NULL)
			fed_message_send_reason(r, &r->participants[m], NET_ROUND_OUT, why);
	fed_round_end(r, ERR_UNREACHABLE, "round %llu: %s", (unsigned long long)r->settings.number,
		      why);
}

void fed_roster_close(struct fed_round *r)
{
	for (unsigned m = 0; m < r->n_participants; m++) {
		struct fed_participant *s = &r->participants[m];

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
		fed_round_run_members(r);
	}
}

/* ---- START, at a member ---- */

/* *two_keys: a member has signed it by another key than it has said to us. */
static void take_joining(struct fed_round *r, const struct net_bytes *bytes,
			 const struct net_bytes *signature, bool *two_keys, struct err *e)
{
	struct joining *j = mem_array(1, sizeof(*j));
	uint8_t key[FED_KEY] = { 0 };
	struct fed_participant *s = NULL;

	if (signature->len != sizeof(j->signature))
		err_set(e, ERR_PROTO, "a signature of %zu bytes", signature->len);
	else
		memcpy(j->signature, signature->base, sizeof(j->signature));
	read_joining(r, bytes, j, key, e);
	if (e->code == 0) {
		s = fed_participant_find(r, key);
		if (s == NULL)
			err_set(e, ERR_PROTO, "the roster holds a member that we cannot reach");
		else if (s->joining != NULL && s != &r->participants[r->me])
			err_set(e, ERR_PROTO, "the roster holds a member twice");
		else
			check_joining(s, j, key, e);
		*two_keys = e->code == ERR_IDENTITY && s != &r->participants[r->proposer];
	}
	if (e->code != 0) {
		free(j);
		return;
	}
	assert(s != NULL);
	if (s == &r->participants[r->me]) {
		assert(s->joining != NULL);
		if (j->n != s->joining->n || memcmp(j->bytes, s->joining->bytes, j->n) != 0)
			err_set(e, ERR_IDENTITY, "the roster holds a joining that is not ours");
		s->answered = false; /* it was ours: see check_roster() */
		free(j);
	} else {
		s->joining = j;
	}
}

/* It has drawn it before it saw those of the others. */
static bool keeps_its_nonce(const struct fed_round *r, const struct fed_participant *proposer)
{
	uint8_t digest[DIGEST];

	digest_of(digest, nonce_tag, proposer->joining->nonce, NONCE);
	return memcmp(digest, r->nonce_digest, sizeof(digest)) == 0;
}

static void check_roster(struct fed_round *r, const uint8_t signature[64], struct err *e)
{
	const struct fed_participant *proposer = &r->participants[r->proposer];
	struct buf all = { 0 };

	if (r->participants[r->me].answered) {
		err_set(e, ERR_PROTO, "the roster is without us");
		return;
	}
	if (proposer->joining == NULL) { /* a proposal that its proposer is not in is none */
		err_set(e, ERR_PROTO, "the roster is without its proposer");
		return;
	}
	roster_bytes(r, &all);
	if (!fed_round_is_signed(signature, roster_tag, all.base, all.len,
				 proposer->peer->sign_public))
		err_set(e, ERR_IDENTITY, "the roster is not signed by its proposer");
	else if (!keeps_its_nonce(r, proposer))
		err_set(e, ERR_PROTO, "its proposer has drawn another nonce since it proposed");
	buf_release(&all);
	for (unsigned m = 0; e->code == 0 && m < r->n_participants; m++)
		if (r->participants[m].joining != NULL && disagreements(r, m) > 0)
			err_set(e, ERR_PROTO, "the roster holds members that are not aligned");
	assert(count_joined(r) >= 2); /* its proposer and we */
	if (e->code == 0 && !host_joined(r))
		err_set(e, ERR_PROTO, "the roster is without the host");
}

/* All are told, the proposer, too, so that nobody waits for us.  A member that has said one key to
 * the proposer and another to us is no fault of the proposer's. */
static void reject_roster(struct fed_round *r, struct fed_participant *proposer, bool two_keys,
			  const struct err *e)
{
	fed_round_stop(r, e->code, e->text, r->now_ms);
	if (two_keys)
		return;
	proposer->account.fate = FED_BROKE;
	proposer->account.trouble = *e;
}

void fed_roster_started(struct fed_round *r, struct fed_participant *s, const struct net_message *m)
{
	const struct net_round_start *b = &m->round_start;
	struct err e = m->wrong;
	bool two_keys = false;

	if (r->phase != JOINED || s != &r->participants[r->proposer]) {
		s->account.strange++;
		return;
	}
	if (e.code == 0 && b->n_joining % 2 != 0)
		err_set(&e, ERR_PROTO, "a roster of %zu halves", b->n_joining);
	for (size_t i = 0; e.code == 0 && i < b->n_joining; i += 2)
		take_joining(r, &b->joining[i], &b->joining[i + 1], &two_keys, &e);
	if (e.code == 0)
		check_roster(r, b->signature, &e);
	if (e.code == 0 && count_joined(r) < r->setup->min_members) {
		fed_round_stop(r, ERR_REFUSED, too_few, r->now_ms);
		return;
	}
	if (e.code == 0) {
		fed_round_run_members(r);
		return;
	}
	reject_roster(r, s, two_keys, &e);
}

/* ---- making a round ---- */

static int by_key(const void *a, const void *b)
{
	return memcmp(((const struct fed_participant *)a)->account.key,
		      ((const struct fed_participant *)b)->account.key, FED_KEY);
}

static struct fed_round *round_new(const struct fed_setup *s, const struct fed_settings *settings,
				   uint64_t now_ms)
{
	struct fed_round *r = mem_array(1, sizeof(*r));

	r->setup = s;
	r->settings = *settings;
	/* Ours decide, whoever proposes: what the part keeps is of these. */
	memcpy(r->settings.value, s->part->settings.value, sizeof(r->settings.value));
	r->now_ms = now_ms;
	r->n_participants = (unsigned)s->n_peers + 1;
	r->participants = mem_array(r->n_participants, sizeof(*r->participants));
	for (unsigned i = 0; i < r->n_participants; i++) {
		r->participants[i].peer = i < s->n_peers ? &s->peers[i] : NULL;
		memcpy(r->participants[i].account.key, i < s->n_peers ? s->peers[i].key : s->key,
		       FED_KEY);
	}
	qsort(r->participants, r->n_participants, sizeof(*r->participants), by_key);
	for (unsigned i = 0; i < r->n_participants; i++)
		if (r->participants[i].peer == NULL)
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
	struct net_round_propose b = { .proposal = { r->proposal.base, r->proposal.len } };

	fed_round_sign(b.signature, proposal_tag, r->proposal.base, r->proposal.len, r->setup);
	for (unsigned m = 0; m < r->n_participants; m++) {
		struct buf out = { 0 };
		struct net_writer w;

		if (m == r->me)
			continue;
		fed_message_begin(r, &w, &out, NET_ROUND_PROPOSE);
		net_round_propose_put(&w, &b);
		fed_message_send(&r->participants[m], &w, &out);
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
	for (unsigned i = 0; i < r->n_participants; i++)
		memcpy(r->candidate[i], r->participants[i].account.key, FED_KEY);
	r->n_candidates = r->n_participants;
	r->proposer = r->me;
	r->phase = PROPOSING;
	r->due_ms = now_ms + settings->join_ms;
	write_proposal(r);
	join(r);
	send_proposal(r);
	if (r->n_participants == 1)
		fed_roster_close(r);
	*out = r;
	return 0;
}

static int check_proposal(const struct fed_setup *s, const struct fed_proposal *p, struct err *e)
{
	for (size_t i = 0; i < s->n_peers; i++) {
		if (memcmp(s->peers[i].key, p->proposer, FED_KEY) != 0)
			continue;
		if (!fed_round_is_signed(p->signature, proposal_tag, p->bytes, p->n,
					 s->peers[i].sign_public))
			return err_set(e, ERR_IDENTITY,
				       "proposal of a round: not signed by its proposer");
		return check_setup(s, &p->settings, e);
	}
	return err_set(e, ERR_REFUSED, "we are not aligned with the proposer");
}

static void send_joining(struct fed_round *r)
{
	const struct joining *j = r->participants[r->me].joining;
	struct net_round_join b = { .joining = { j->bytes, j->n } };
	struct buf out = { 0 };
	struct net_writer w;

	memcpy(b.signature, j->signature, sizeof(b.signature));
	fed_message_begin(r, &w, &out, NET_ROUND_JOIN);
	net_round_join_put(&w, &b);
	fed_message_send(&r->participants[r->proposer], &w, &out);
}

int fed_round_join(struct fed_round **out, const struct fed_setup *s, const struct fed_proposal *p,
		   uint64_t now_ms, struct err *e)
{
	struct fed_round *r;
	int rc = check_proposal(s, p, e);

	*out = NULL;
	if (rc != 0)
		return rc;
	r = round_new(s, &p->settings, now_ms);
	memcpy(r->id, p->id, FED_ID);
	memcpy(r->candidate, p->member, sizeof(r->candidate));
	r->n_candidates = (unsigned)p->n_members;
	buf_add(&r->proposal, p->bytes, p->n);
	digest_of(r->proposal_digest, proposal_tag, p->bytes, p->n);
	memcpy(r->nonce_digest, p->nonce, sizeof(r->nonce_digest));
	for (unsigned i = 0; i < r->n_participants; i++)
		if (memcmp(r->participants[i].account.key, p->proposer, FED_KEY) == 0)
			r->proposer = i;
	if (candidate_of(r, s->key) >= FED_MEMBERS_MAX) {
		fed_round_free(r);
		return err_set(e, ERR_PROTO, "proposal of a round: we are not in it");
	}
	r->phase = JOINED;
	r->participants[r->proposer].account.bytes_in += p->message_bytes;
	r->due_ms = now_ms + 2 * (uint64_t)r->settings.join_ms;
	join(r);
	send_joining(r);
	*out = r;
	return 0;
}

/* fed/round_account.c - what went between two members, as each of them signs it for the other.
 *
 * When a round is over for a member and nothing that it owes another is left to send, it tells that
 * one what it has counted of the two: rows and numbers, out and in.  The other puts the rest
 * of the text beside it (fed_account_text()), since it knows the same round, and keeps the
 * signature if it fits.  A member that was not linked then is told when it is linked again
 * (fed_round_again()), also when we have been restarted meanwhile (fed_round_recall()).  An owner
 * that keeps records has on disk what it signs, before it is sent (fed_round_recorded()).  So each
 * holds the other's word for what left and what came.  Nobody waits for an account, and none of its
 * contents changes what the round came to: owners see which member stays silent or counts
 * otherwise. */
#include <assert.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "fed/round_internal.h"

const char *fed_fate_name(int fate)
{
	static const char *const words[] = { [FED_TOOK_PART] = "took part",
					     [FED_DECLINED] = "declined",
					     [FED_LATE] = "late",
					     [FED_LOST] = "lost",
					     [FED_BROKE] = "broke the protocol",
					     [FED_APART] = "other routes" };

	return fate >= 0 && fate < FED_FATES ? words[fate] : "?";
}

static const char account_tag[] = "fkge round account 1";

void fed_account_text(char out[FED_ACCOUNT_MAX], const struct fed_account_head *h,
		      const uint8_t from[FED_KEY], const uint8_t to[FED_KEY],
		      const struct fed_traffic *t)
{
	char id[2 * FED_ID + 1], a[2 * FED_KEY + 1], b[2 * FED_KEY + 1];
	int n;

	sodium_bin2hex(id, sizeof(id), h->id, FED_ID);
	sodium_bin2hex(a, sizeof(a), from, FED_KEY);
	sodium_bin2hex(b, sizeof(b), to, FED_KEY);
	n = snprintf(out, FED_ACCOUNT_MAX,
		     "round %llu %s\n%s %s secret_bits %u\nfrom %s\nto %s\n"
		     "rows out %llu in %llu floats out %llu in %llu\n",
		     (unsigned long long)h->number, id, h->method, h->hosted ? "hosted" : "sharded",
		     h->secret_bits, a, b, (unsigned long long)t->rows_out,
		     (unsigned long long)t->rows_in, (unsigned long long)t->floats_out,
		     (unsigned long long)t->floats_in);
	assert(n > 0 && n < FED_ACCOUNT_MAX);
	(void)n;
}

bool fed_account_is_signed(const char *text, const uint8_t signature[FED_SIGNATURE],
			   const uint8_t key[FED_SIGN])
{
	return fed_round_is_signed(signature, account_tag, text, strlen(text), key);
}

static void text_of(const struct fed_round *r, const uint8_t from[FED_KEY],
		    const uint8_t to[FED_KEY], const struct fed_traffic *t,
		    char out[FED_ACCOUNT_MAX])
{
	struct fed_account_head h = { .number = r->settings.number,
				      .method = r->settings.method,
				      .hosted = r->settings.topology == FED_HOSTED,
				      .secret_bits = r->settings.secret_bits };

	memcpy(h.id, r->id, FED_ID);
	fed_account_text(out, &h, from, to, t);
}

/* ---- held against each other ---- */

static bool say_clash(char why[FED_REFUSED_MAX], bool ours, const char *what, uint64_t sent,
		      uint64_t got)
{
	snprintf(why, FED_REFUSED_MAX,
		 ours ? "we sent %llu %s and it says that it got %llu"
		      : "it says that it sent %llu %s and we got %llu",
		 (unsigned long long)sent, what, (unsigned long long)got);
	return true;
}

bool fed_account_clashes(const struct fed_traffic *ours, const struct fed_traffic *theirs,
			 bool all_came, char why[FED_REFUSED_MAX])
{
	if (theirs->rows_in > ours->rows_out)
		return say_clash(why, true, "rows", ours->rows_out, theirs->rows_in);
	if (theirs->floats_in > ours->floats_out)
		return say_clash(why, true, "numbers", ours->floats_out, theirs->floats_in);
	if (theirs->rows_out < ours->rows_in || (all_came && theirs->rows_out > ours->rows_in))
		return say_clash(why, false, "rows", theirs->rows_out, ours->rows_in);
	if (theirs->floats_out < ours->floats_in ||
	    (all_came && theirs->floats_out > ours->floats_in))
		return say_clash(why, false, "numbers", theirs->floats_out, ours->floats_in);
	return false;
}

/* ---- ours ---- */

static struct fed_traffic traffic_of(const struct fed_participant *s)
{
	const struct fed_account *a = &s->account;

	return (struct fed_traffic){ a->rows_out, a->rows_in, a->floats_out, a->floats_in };
}

static bool is_recorded(const struct fed_round *r, const struct fed_participant *s)
{
	const struct fed_traffic t = traffic_of(s), *d = &s->on_disk;

	if (!r->setup->on_record)
		return true;
	return s->recorded && t.rows_out == d->rows_out && t.rows_in == d->rows_in &&
	       t.floats_out == d->floats_out && t.floats_in == d->floats_in;
}

/* While a work is under way, out and answer are its own: they are looked at when all is over. */
static bool is_final(const struct fed_round *r, unsigned m)
{
	if (r->phase != OVER || m >= r->members || m == r->me || r->participants[m].account_sent)
		return false;
	return r->err.code != 0 || (r->out[m] == NULL && r->answer[m] == NULL);
}

bool fed_account_is_due(const struct fed_round *r, unsigned m)
{
	return is_final(r, m) && is_recorded(r, &r->participants[m]);
}

void fed_round_recorded(struct fed_round *r, unsigned participant, const struct fed_traffic *t)
{
	r->participants[participant].recorded = true;
	r->participants[participant].on_disk = *t;
}

bool fed_round_signs(const struct fed_round *r)
{
	for (unsigned m = 0; m < r->members; m++)
		if (is_final(r, m) && !is_recorded(r, &r->participants[m]))
			return true;
	return false;
}

void fed_account_send(struct fed_round *r, unsigned m)
{
	struct fed_participant *s = &r->participants[m];
	const struct fed_traffic t = traffic_of(s);
	struct net_round_account b = { .rows_out = t.rows_out,
				       .rows_in = t.rows_in,
				       .floats_out = t.floats_out,
				       .floats_in = t.floats_in };
	char text[FED_ACCOUNT_MAX];
	struct buf out = { 0 };
	struct net_writer w;

	text_of(r, r->setup->key, s->account.key, &t, text);
	fed_round_sign(b.signature, account_tag, text, strlen(text), r->setup);
	fed_message_begin(r, &w, &out, NET_ROUND_ACCOUNT);
	net_round_account_put(&w, &b);
	fed_message_send(s, &w, &out);
	s->account_sent = true;
}

/* ---- theirs ---- */

const char fed_account_forged[] = "the signature is not the member's";

void fed_account_take(struct fed_round *r, struct fed_participant *s, const struct net_message *m,
		      struct err *e)
{
	const struct net_round_account *b = &m->round_account;
	struct fed_signed x = { .t = { b->rows_out, b->rows_in, b->floats_out, b->floats_in } };
	char text[FED_ACCOUNT_MAX];

	if (r->members == 0 || s->has_theirs || s >= r->participants + r->members ||
	    s->peer == NULL) {
		s->account.strange++;
		return;
	}
	s->has_theirs = true;
	*e = m->wrong;
	memcpy(x.signature, b->signature, sizeof(x.signature));
	text_of(r, s->account.key, r->setup->key, &x.t, text);
	if (e->code == 0 && !fed_account_is_signed(text, x.signature, s->peer->sign_public))
		err_set(e, ERR_IDENTITY, "%s", fed_account_forged);
	if (e->code != 0)
		snprintf(x.refused, sizeof(x.refused), "%.*s", FED_REFUSED_MAX - 1, e->text);
	s->theirs = x;
}

const struct fed_signed *fed_round_theirs(const struct fed_round *r, unsigned participant)
{
	return r->participants[participant].has_theirs ? &r->participants[participant].theirs
						       : NULL;
}

/* ---- after a restart ---- */

static const struct fed_peer *peer_of(const struct fed_setup *s, const uint8_t key[FED_KEY])
{
	for (size_t i = 0; i < s->n_peers; i++)
		if (memcmp(s->peers[i].key, key, FED_KEY) == 0)
			return &s->peers[i];
	return NULL;
}

/* Gone until it is here again. */
static void recall_participant(const struct fed_round *r, struct fed_participant *s,
			       const struct fed_recalled *v)
{
	s->account = v->account;
	s->peer = peer_of(r->setup, v->account.key);
	s->has_theirs = v->has_account;
	s->theirs = v->theirs;
	s->gone = s->recorded = true;
	s->on_disk = traffic_of(s);
}

static bool recall_me(struct fed_round *r)
{
	for (r->me = 0; r->me < r->members; r->me++)
		if (memcmp(r->participants[r->me].account.key, r->setup->key, FED_KEY) == 0)
			return true;
	return false;
}

struct fed_round *fed_round_recall(const struct fed_setup *s, const struct fed_account_head *h,
				   const struct err *err, const struct fed_recalled *participants,
				   unsigned members, unsigned n_participants)
{
	struct fed_round *r;

	if (members > FED_MEMBERS_MAX || members > n_participants)
		return NULL;
	r = mem_array(1, sizeof(*r));
	r->setup = s;
	memcpy(r->id, h->id, FED_ID);
	r->settings.number = h->number;
	r->settings.topology = h->hosted ? FED_HOSTED : FED_SHARDED;
	r->settings.secret_bits = h->secret_bits;
	snprintf(r->settings.method, sizeof(r->settings.method), "%s", h->method);
	r->err = *err;
	r->participants = mem_array((size_t)n_participants + 1, sizeof(*r->participants));
	r->n_participants = n_participants;
	r->members = members;
	for (unsigned m = 0; m < n_participants; m++)
		recall_participant(r, &r->participants[m], &participants[m]);
	r->phase = OVER;
	if (recall_me(r))
		return r;
	fed_round_free(r);
	return NULL;
}

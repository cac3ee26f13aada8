/* cli/rounds.c - rounds that this agent took part in: list, show. */
#include <ctype.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/ask.h"
#include "agent/core/core.h"
#include "agent/folder.h"
#include "cli/commands.h"
#include "cli/control.h"
#include "cli/peers.h"
#include "fed/round.h"
#include "http/source.h"
#include "lab/table.h"
#include "net/ident.h"

enum { LIST_DEFAULT = 20, ID_TEXT = 2 * STORE_ROUND + 1 };

/* The rounds, and who the keys in them are. */
struct rounds {
	struct store_round *at;
	size_t n;
	struct store_folded older; /* of which the store has sums alone */
	struct roster roster;
	uint8_t own[STORE_KEY], account[STORE_KEY];
	char own_name[STORE_NAME_MAX];
};

/* ---- reading ---- */

static void rounds_release(struct rounds *r)
{
	store_rounds_release(r->at, r->n);
	store_folded_release(&r->older);
	roster_release(&r->roster);
}

static int rounds_read(struct rounds *r, const struct cli *cli, size_t limit, struct err *e)
{
	struct folder f;
	int rc = folder_open(&f, cli->folder, FOLDER_CONFIG | FOLDER_IDENTITY | FOLDER_READ, e);

	*r = (struct rounds){ 0 };
	if (rc != 0)
		return rc;
	memcpy(r->own, f.identity->key, STORE_KEY);
	memcpy(r->account, f.identity->account, STORE_KEY);
	snprintf(r->own_name, sizeof(r->own_name), "%s", f.config.name);
	rc = folder_load_roster(f.store, &r->roster, e);
	roster_add_replaced(&r->roster);
	if (rc == 0)
		rc = store_rounds(f.store, limit, &r->at, &r->n, e);
	if (rc == 0)
		rc = store_folded(f.store, &r->older, e);
	folder_close(&f);
	if (rc != 0)
		rounds_release(r);
	return rc;
}

/* Ours, now or before it was replaced? */
static bool is_our_key(const struct rounds *r, const uint8_t key[STORE_KEY])
{
	const struct ledger_rotation *x = ledger_rotations_replaced(&r->roster.rotations, key);

	return memcmp(key, r->own, STORE_KEY) == 0 ||
	       (x != NULL && memcmp(x->account, r->account, STORE_KEY) == 0);
}

/* The key that this agent had in a round. */
static const uint8_t *own_in(const struct rounds *all, const struct store_round *r)
{
	for (uint32_t i = 0; i < r->n_participants; i++)
		if (is_our_key(all, r->members[i].key))
			return r->members[i].key;
	return all->own;
}

static const char *name_of(const struct rounds *r, const uint8_t key[STORE_KEY])
{
	const struct store_peer *p = roster_find(&r->roster, key);

	if (is_our_key(r, key))
		return r->own_name;
	return p != NULL ? p->name : "";
}

static void id_of(const struct store_round *r, char out[ID_TEXT])
{
	sodium_bin2hex(out, ID_TEXT, r->id, sizeof(r->id));
}

/* All members together. */
static struct store_round_member sum_of(const struct store_round *r)
{
	struct store_round_member all = { 0 };

	for (uint32_t i = 0; i < r->n_participants; i++) {
		all.rows_out += r->members[i].rows_out;
		all.rows_in += r->members[i].rows_in;
		all.floats_out += r->members[i].floats_out;
		all.floats_in += r->members[i].floats_in;
		all.bytes_out += r->members[i].bytes_out;
		all.bytes_in += r->members[i].bytes_in;
	}
	return all;
}

/* ---- what members have signed ---- */

struct word {
	char text[FED_ACCOUNT_MAX];  /* as it was signed */
	const uint8_t *sign_key;     /* of who signed; NULL: no partner that we know */
	bool fits;		     /* the signature, for this key and this agent */
	bool same;		     /* it counts as we do */
	char wrong[FED_REFUSED_MAX]; /* why it is refused, or cannot be true beside ours; or "" */
};

static struct word word_of(const struct rounds *all, const struct store_round *r,
			   const struct store_round_member *m)
{
	const struct fed_traffic t = { m->their_rows_out, m->their_rows_in, m->their_floats_out,
				       m->their_floats_in };
	const struct fed_traffic ours = { m->rows_out, m->rows_in, m->floats_out, m->floats_in };
	bool all_came = r->outcome == 0 && m->fate == FED_TOOK_PART && r->secret_bits == 0;
	struct fed_account_head h = { .number = r->number,
				      .method = r->method,
				      .hosted = r->hosted,
				      .secret_bits = r->secret_bits };
	const struct store_peer *p = roster_find(&all->roster, m->key);
	struct word w = { .sign_key = p != NULL ? p->sign_key : NULL,
			  .same = t.rows_out == m->rows_in && t.rows_in == m->rows_out &&
				  t.floats_out == m->floats_in && t.floats_in == m->floats_out };

	memcpy(h.id, r->id, sizeof(h.id));
	snprintf(w.wrong, sizeof(w.wrong), "%s", m->refused);
	if (w.wrong[0] == '\0')
		fed_account_clashes(&ours, &t, all_came, w.wrong);
	fed_account_text(w.text, &h, m->key, own_in(all, r), &t);
	w.fits = w.sign_key != NULL && fed_account_is_signed(w.text, m->signature, w.sign_key);
	return w;
}

static const char *word_text(const struct rounds *all, const struct store_round *r,
			     const struct store_round_member *m)
{
	struct word w;

	if (!m->has_account)
		return "-";
	w = word_of(all, r, m);
	/* what cannot be read has no figures that a signature could fit */
	if (strcmp(m->refused, fed_account_forged) == 0 && w.sign_key != NULL && !w.fits)
		return "forged";
	if (m->refused[0] != '\0')
		return "refused";
	if (w.sign_key == NULL)
		return "by no partner";
	return !w.fits ? "forged" : w.same ? "the same" : "otherwise";
}

/* ---- for programs ---- */

static void put_count(json_t *j, const char *key, uint64_t n)
{
	json_object_set_new(j, key, json_integer((json_int_t)n));
}

static void put_real(json_t *j, const char *key, bool known, double x)
{
	json_object_set_new(j, key, known ? store_json_of_number(x) : json_null());
}

static void put_traffic(json_t *j, const struct store_round_member *m)
{
	put_count(j, "rows_out", m->rows_out);
	put_count(j, "rows_in", m->rows_in);
	put_count(j, "floats_out", m->floats_out);
	put_count(j, "floats_in", m->floats_in);
	put_count(j, "bytes_out", m->bytes_out);
	put_count(j, "bytes_in", m->bytes_in);
}

static void put_key(json_t *j, const char *key, const uint8_t of[STORE_KEY])
{
	char text[NET_KEY_TEXT];

	net_key_format(of, text);
	json_object_set_new(j, key, json_string(text));
}

static void put_member(json_t *j, const struct rounds *all, const uint8_t key[STORE_KEY])
{
	put_key(j, "id", key);
	json_object_set_new(j, "name", store_json_of_text(name_of(all, key)));
	json_object_set_new(j, "own", json_boolean(is_our_key(all, key)));
}

/* The account that the member has signed for this agent, so that others can check it. */
static json_t *account_json(const struct rounds *all, const struct store_round *r,
			    const struct store_round_member *m)
{
	struct word w;
	json_t *j;

	if (!m->has_account)
		return json_null();
	w = word_of(all, r, m);
	j = json_object();
	json_object_set_new(j, "text", json_string(w.text));
	json_object_set_new(j, "signature", store_json_of_hex(m->signature, sizeof(m->signature)));
	json_object_set_new(j, "sign_key",
			    w.sign_key != NULL ? store_json_of_hex(w.sign_key, STORE_KEY)
					       : json_null());
	json_object_set_new(j, "fits", json_boolean(w.fits));
	json_object_set_new(j, "same", json_boolean(w.same));
	json_object_set_new(j, "refused",
			    m->refused[0] != '\0' ? json_string(m->refused) : json_null());
	json_object_set_new(j, "wrong", w.wrong[0] != '\0' ? json_string(w.wrong) : json_null());
	return j;
}

static json_t *member_json(const struct rounds *all, const struct store_round *r,
			   uint32_t participant)
{
	const struct store_round_member *m = &r->members[participant];
	json_t *j = json_object();

	put_member(j, all, m->key);
	json_object_set_new(j, "in_roster", json_boolean(participant < r->n_members));
	json_object_set_new(j, "fate", json_string(fed_fate_name(m->fate)));
	put_traffic(j, m);
	put_count(j, "rows_compared", m->compared);
	put_real(j, "distance", m->compared > 0 && m->distance >= 0, m->distance);
	put_real(j, "cosine", m->compared > 0, m->cosine);
	json_object_set_new(j, "account", account_json(all, r, m));
	return j;
}

static void put_head(json_t *j, const struct store_round *r)
{
	char id[ID_TEXT];

	id_of(r, id);
	put_count(j, "number", r->number);
	json_object_set_new(j, "id", json_string(id));
	json_object_set_new(j, "method", json_string(r->method));
	json_object_set_new(j, "topology", json_string(r->hosted ? "hosted" : "sharded"));
	put_count(j, "secret_bits", r->secret_bits);
	put_key(j, "proposer", r->proposer);
	json_object_set_new(j, "started_ms", json_integer(r->started_ms));
	json_object_set_new(j, "finished_ms", json_integer(r->finished_ms));
	put_count(j, "train_ms", r->train_ms);
	json_object_set_new(j, "outcome", json_integer(r->outcome));
	json_object_set_new(j, "reason", store_json_of_text(r->reason));
}

static json_t *round_json(const struct rounds *all, const struct store_round *r)
{
	json_t *j = json_object(), *members = json_array();
	struct store_round_member sum = sum_of(r);

	put_head(j, r);
	put_count(j, "items", r->items);
	put_count(j, "answered", r->answered);
	put_count(j, "homed", r->homed);
	put_count(j, "params_up", r->params_up);
	put_count(j, "params_down", r->params_down);
	put_count(j, "clipped", r->clipped);
	put_count(j, "spoiled", r->spoiled);
	put_traffic(j, &sum);
	put_real(j, "valid_score", r->scored, r->score);
	put_real(j, "valid_before_averaging", r->compared, r->own_score);
	put_real(j, "valid_after_averaging", r->compared, r->merged_score);
	put_real(j, "valid_alone", r->has_alone, r->alone_score);
	for (uint32_t participant = 0; participant < r->n_participants; participant++)
		json_array_append_new(members, member_json(all, r, participant));
	json_object_set_new(j, "members", members);
	return j;
}

static json_t *folded_json(const struct rounds *all)
{
	const struct store_folded *f = &all->older;
	json_t *j = json_object(), *members = json_array();

	put_count(j, "rounds", f->rounds);
	put_count(j, "failed", f->failed);
	json_object_set_new(j, "first_ms", json_integer(f->first_ms));
	json_object_set_new(j, "last_ms", json_integer(f->last_ms));
	put_count(j, "train_ms", f->train_ms);
	put_count(j, "params_up", f->params_up);
	put_count(j, "params_down", f->params_down);
	put_count(j, "clipped", f->clipped);
	put_count(j, "spoiled", f->spoiled);
	for (size_t i = 0; i < f->n_members; i++) {
		const struct store_folded_member *m = &f->members[i];
		json_t *o = json_object();

		put_member(o, all, m->sum.key);
		put_count(o, "rounds", m->rounds);
		put_count(o, "took_part", m->took_part);
		put_traffic(o, &m->sum);
		json_array_append_new(members, o);
	}
	json_object_set_new(j, "members", members);
	return j;
}

/* ---- for people ---- */

static void when_text(int64_t ms, char out[32])
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;

	out[0] = '\0';
	if (gmtime_r(&seconds, &tm) != NULL)
		strftime(out, 32, "%Y-%m-%d %H:%M:%S", &tm);
}

static unsigned took_part(const struct store_round *r)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < r->n_members; i++)
		n += r->members[i].fate == FED_TOOK_PART;
	return n;
}

enum { RESULT_MAX = STORE_REASON_MAX + 64 };

static void result_text(const struct store_round *r, char out[RESULT_MAX])
{
	if (r->outcome != 0)
		snprintf(out, RESULT_MAX, "%s",
			 r->reason[0] != '\0' ? r->reason : err_text(r->outcome));
	else if (r->scored && r->compared)
		snprintf(out, RESULT_MAX, "valid %.4f; averaging: %.4f to %.4f", r->score,
			 r->own_score, r->merged_score);
	else if (r->scored)
		snprintf(out, RESULT_MAX, "valid %.4f", r->score);
	else
		snprintf(out, RESULT_MAX, "done");
}

static void say_table(const struct cli *cli, const struct table *t)
{
	struct buf out = { 0 };

	table_print(t, &out);
	if (out.len > 0)
		cli_say(cli, "%.*s", (int)out.len, (const char *)out.base);
	buf_release(&out);
}

static void head_of(struct table *t, const char *const *words)
{
	table_init(t, 0);
	while (words[t->columns] != NULL)
		t->columns++;
	for (size_t i = 0; i < t->columns; i++)
		table_add(t, "%s", words[i]);
}

static void say_list(const struct cli *cli, const struct rounds *all)
{
	static const char *const head[] = { "round",	"ended (UTC)", "method", "took part",
					    "rows out", "rows in",     "MB out", "MB in",
					    "result",	NULL };
	struct table t;

	head_of(&t, head);
	for (size_t i = 0; i < all->n; i++) {
		const struct store_round *r = &all->at[i];
		struct store_round_member sum = sum_of(r);
		char when[32], result[RESULT_MAX];

		when_text(r->finished_ms, when);
		result_text(r, result);
		table_add(&t, "%llu", (unsigned long long)r->number);
		table_add(&t, "%s", when);
		table_add(&t, "%s", r->method);
		table_add(&t, "%u of %u", took_part(r), r->n_participants);
		table_add(&t, "%llu", (unsigned long long)sum.rows_out);
		table_add(&t, "%llu", (unsigned long long)sum.rows_in);
		table_add(&t, "%.3f", (double)sum.bytes_out / 1e6);
		table_add(&t, "%.3f", (double)sum.bytes_in / 1e6);
		table_add(&t, "%s", result);
	}
	say_table(cli, &t);
	table_release(&t);
}

static void say_folded(const struct cli *cli, const struct store_folded *f)
{
	uint64_t out = 0, in = 0;
	char first[32], last[32];

	if (f->rounds == 0)
		return;
	for (size_t i = 0; i < f->n_members; i++) {
		out += f->members[i].sum.bytes_out;
		in += f->members[i].sum.bytes_in;
	}
	when_text(f->first_ms, first);
	when_text(f->last_ms, last);
	cli_say(cli,
		"and %llu older rounds from %s to %s, of which %llu came to nothing, folded into "
		"sums (--json: by member):\n"
		"%.3f MB out, %.3f MB in; %llu parameters up, %llu down\n",
		(unsigned long long)f->rounds, first, last, (unsigned long long)f->failed,
		(double)out / 1e6, (double)in / 1e6, (unsigned long long)f->params_up,
		(unsigned long long)f->params_down);
}

static void add_distance(struct table *t, const struct store_round_member *m)
{
	bool known = m->compared > 0 && m->distance >= 0;

	if (known) {
		table_add(t, "%.2f", m->distance);
		table_add(t, "%.2f", m->cosine);
	} else {
		table_add(t, "-");
		table_add(t, "-");
	}
}

/* The effect of averaging on the score, where the two were compared. */
static void say_scores(const struct cli *cli, const struct store_round *r)
{
	if (!r->compared && r->has_alone)
		cli_say(cli, "trained alone valid is %.4f\n", r->alone_score);
	if (!r->compared)
		return;
	cli_say(cli, "averaging %s valid from %.4f to %.4f",
		r->merged_score < r->own_score ? "lowered" : "brought", r->own_score,
		r->merged_score);
	if (r->has_alone)
		cli_say(cli, "; trained alone it is %.4f", r->alone_score);
	cli_say(cli, "%s\n",
		r->secret_bits > 0 ? " (rows are masked: nobody sees whose they were)" : "");
}

static void say_members(const struct cli *cli, const struct rounds *all,
			const struct store_round *r)
{
	static const char *const head[] = { "member",	  "fate",      "rows out",  "rows in",
					    "floats out", "floats in", "bytes out", "bytes in",
					    "signs",	  "distance",  "cosine",    NULL };
	struct table t;

	head_of(&t, head);
	for (uint32_t i = 0; i < r->n_participants; i++) {
		const struct store_round_member *m = &r->members[i];
		const uint64_t n[] = { m->rows_out,  m->rows_in,   m->floats_out,
				       m->floats_in, m->bytes_out, m->bytes_in };
		bool own = is_our_key(all, m->key);
		char id[NET_KEY_TEXT];

		net_key_format(m->key, id);
		if (name_of(all, m->key)[0] != '\0')
			table_add(&t, "%s%s", name_of(all, m->key), own ? " (this agent)" : "");
		else
			table_add(&t, "%.9s", id);
		table_add(&t, "%s", fed_fate_name(m->fate));
		for (size_t k = 0; k < sizeof(n) / sizeof(n[0]); k++)
			table_add(&t, "%llu", (unsigned long long)n[k]);
		table_add(&t, "%s", own ? "" : word_text(all, r, m));
		add_distance(&t, m);
	}
	say_table(cli, &t);
	table_release(&t);
}

/* Accounts of members that were refused or contradict ours: the owner must know of these. */
static void say_wrong(const struct cli *cli, const struct rounds *all, const struct store_round *r)
{
	for (uint32_t i = 0; i < r->n_participants; i++) {
		const struct store_round_member *m = &r->members[i];
		struct word w = word_of(all, r, m);
		char id[NET_KEY_TEXT];

		net_key_format(m->key, id);
		if (m->has_account && w.wrong[0] != '\0')
			cli_say(cli, "! the account of %s %s: %s\n",
				name_of(all, m->key)[0] != '\0' ? name_of(all, m->key) : id,
				m->refused[0] != '\0' ? "was refused" : "contradicts ours",
				w.wrong);
	}
}

static void say_round(const struct cli *cli, const struct rounds *all, const struct store_round *r)
{
	char id[ID_TEXT], when[32], result[RESULT_MAX];

	id_of(r, id);
	when_text(r->finished_ms, when);
	result_text(r, result);
	cli_say(cli, "round %llu (%s): %s, %s, ", (unsigned long long)r->number, id, r->method,
		r->hosted ? "hosted" : "sharded");
	if (r->secret_bits > 0)
		cli_say(cli, "secret aggregation in %u bits\n", r->secret_bits);
	else
		cli_say(cli, "plain rows\n");
	cli_say(cli, "ended %s UTC after %.1f s, %.1f s of them training: %s\n", when,
		(double)(r->finished_ms - r->started_ms) / 1000, (double)r->train_ms / 1000,
		result);
	cli_say(cli,
		"%llu shared entities and relations, %llu of them answered; home to %llu\n"
		"parameters as the papers count them: %llu up, %llu down\n",
		(unsigned long long)r->items, (unsigned long long)r->answered,
		(unsigned long long)r->homed, (unsigned long long)r->params_up,
		(unsigned long long)r->params_down);
	if (r->secret_bits > 0)
		cli_say(cli, "%llu values were cut at the clip, %llu rows dropped\n",
			(unsigned long long)r->clipped, (unsigned long long)r->spoiled);
	say_scores(cli, r);
	cli_say(cli, "\n");
	say_members(cli, all, r);
	say_wrong(cli, all, r);
}

/* ---- the commands ---- */

static const char *const none = "No round yet (agent.yaml: federation.mode rounds).\n";

struct list_options {
	size_t limit;
};

static const struct argp_option list_options[] = {
	{ "limit", 'n', "N", 0, "the newest N rounds (default 20; 0: all)", 0 },
	{ 0 },
};

static error_t parse_list(int key, char *arg, struct argp_state *state)
{
	struct list_options *o = state->input;

	if (key != 'n')
		return ARGP_ERR_UNKNOWN;
	o->limit = cli_count(state, arg, "--limit", 0, 1000000000);
	return 0;
}

/* Each signature in it is checked, so a long list takes seconds. */
static int put_records(struct cli *cli, const struct rounds *all, const struct http_caller *caller,
		       struct err *e)
{
	json_t *list = json_array();

	for (size_t i = 0; i < all->n; i++) {
		if (caller != NULL && caller->is_gone(caller->ctx)) {
			json_decref(list);
			return err_set(e, ERR_CANCELED, "nobody waits for the rounds any more");
		}
		json_array_append_new(list, round_json(all, &all->at[i]));
	}
	cli_put(cli, "rounds", list);
	return 0;
}

int rounds_tell(struct cli *cli, size_t limit, const struct http_caller *caller, struct err *e)
{
	struct rounds all;
	int rc = rounds_read(&all, cli, limit, e);

	if (rc != 0)
		return rc;
	rc = put_records(cli, &all, caller, e);
	if (rc != 0) {
		rounds_release(&all);
		return rc;
	}
	cli_put(cli, "folded", folded_json(&all));
	if (all.n > 0)
		say_list(cli, &all);
	say_folded(cli, &all.older);
	if (all.n == 0)
		lab_note(&cli->notes, "%s", none);
	rounds_release(&all);
	return 0;
}

int cmd_rounds_list(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct list_options o = { LIST_DEFAULT };
	const struct cli_syntax s = {
		.options = list_options,
		.parse = parse_list,
		.doc = "List the rounds that this agent took part in, the newest first.\v"
		       "Also those that came to nothing, with the reason. The store keeps the "
		       "newest 4096; older ones are in sums, which stand at the end.\n\n"
		       "Example:\n  fkge -d acme rounds list -n 5",
		.input = &o,
	};

	cli_parse(cli, &s, argc, argv);
	return rounds_tell(cli, o.limit > 0 ? o.limit : SIZE_MAX, NULL, e);
}

/* By its number, the newest of that number; or by the first digits of its id. */
static const struct store_round *find_round(const struct rounds *all, const char *what)
{
	char *end;
	unsigned long long number = strtoull(what, &end, 10);
	size_t n = strlen(what);

	for (size_t i = 0; i < all->n && isdigit((unsigned char)*what) && *end == '\0'; i++)
		if (all->at[i].number == number)
			return &all->at[i];
	for (size_t i = 0; i < all->n && n >= 4; i++) {
		char id[ID_TEXT];

		id_of(&all->at[i], id);
		if (strncasecmp(id, what, n) == 0)
			return &all->at[i];
	}
	return NULL;
}

int cmd_rounds_show(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words w = { .max = 1 };
	const struct store_round *r;
	struct rounds all;
	int rc;

	cli_parse_words(cli, "[ROUND]",
			"Show one round: who took part, and what travelled between them and us.\v"
			"ROUND is its number, or the first digits of its id; without it, the "
			"newest. Rows, numbers and bytes are those between this agent and each "
			"member; parameters are counted as the papers do, through a server.\n\n"
			"When a round is over its members sign for each other what went between "
			"them. 'signs' says what the record has of a member: 'the same' that is "
			"counted here, 'otherwise' (also where one was late or stopped while rows "
			"were under way), 'forged' (another one has signed it), 'refused' "
			"(it could not be read), or '-', nothing: it was silent, or was away or "
			"stopped before it could be heard (what a slow member, a lost link or a "
			"restart holds back comes within eight rounds). Why one was refused, or "
			"what of it contradicts what is counted "
			"here, stands below. --json has what was signed, and the signature.\n\n"
			"Valid before averaging, after it and of a copy trained alone are on the "
			"same triples (rounds.compare_limit). 'distance' and 'cosine' are of a "
			"member's rows against the median of all, where this agent was home and "
			"rows were plain (with two holders, the other's against our own): 0 and 1 "
			"are the same rows, 1.4 and 0 unrelated ones of the same length. Under "
			"masks nobody can see them, and of changes (fedsvd) there are none.\n\n"
			"Example:\n  fkge -d acme rounds show 12 --json",
			&w, argc, argv);
	rc = rounds_read(&all, cli, w.n > 0 ? SIZE_MAX : 1, e);
	if (rc != 0)
		return rc;
	r = w.n > 0 ? find_round(&all, w.at[0]) : all.n > 0 ? all.at : NULL;
	if (r != NULL) {
		cli_put(cli, "round", round_json(&all, r));
		say_round(cli, &all, r);
	} else if (w.n > 0) {
		rc = err_set(e, ERR_NOTFOUND,
			     "no round '%.60s' in the store; fkge rounds list shows what there is",
			     w.at[0]);
	} else {
		rc = err_set(e, ERR_NOTFOUND, "%.*s", (int)strlen(none) - 1, none);
	}
	rounds_release(&all);
	return rc;
}

/* ---- after rounds that hurt ---- */

/* Beside a stopped agent: it finds this at its start. */
static int leave_word(const struct cli *cli, struct err *e)
{
	struct store_batch b = { 0 };
	struct folder f;
	int rc = folder_open(&f, cli->folder, FOLDER_CONFIG | FOLDER_IDENTITY | FOLDER_WRITE, e);

	if (rc != 0)
		return rc;
	store_batch_meta(&b, AGENT_META_RESUME, "\1", 1);
	rc = store_apply(f.store, &b, e);
	store_batch_release(&b);
	folder_close(&f);
	return rc;
}

/* Of rounds alone: a pairs agent has none that could have stopped. */
static int refuse_pairs(const struct cli *cli, struct err *e)
{
	struct folder f;
	int rc = folder_open(&f, cli->folder, FOLDER_CONFIG, e);

	if (rc != 0)
		return rc;
	if (f.config.federation.mode != CONFIG_ROUNDS)
		rc = err_set(
			e, ERR_USAGE,
			"%s: federation.mode is pairs, so there are no rounds that could go on",
			f.config_path);
	folder_close(&f);
	return rc;
}

int cmd_rounds_resume(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words w = { .max = 0 };
	json_t *request, *reply = NULL;
	int rc;

	cli_parse_words(cli, "",
			"Take part in rounds again, after they were stopped since they hurt.\v"
			"An agent leaves the rounds when they keep lowering its score on valid "
			"(rounds.stop_when_worse), and goes back to its best tables; fkge status "
			"says why. Look into that first: fkge rounds list, fkge rounds show, and "
			"fkge peer revoke for whom you trust no more. A stopped agent begins again "
			"at its next start.\n\n"
			"Example:\n  fkge -d acme rounds resume",
			&w, argc, argv);
	rc = refuse_pairs(cli, e);
	if (rc != 0)
		return rc;
	request = json_pack("{s:s}", "do", "resume");
	rc = agent_ask(cli->folder, request, &reply, e);
	json_decref(request);
	if (rc == 0) {
		json_decref(reply);
	} else if (rc == ERR_UNREACHABLE) {
		*e = (struct err){ 0 };
		rc = leave_word(cli, e);
	}
	if (rc == 0)
		cli_say(cli, "This agent takes part in rounds again.\n");
	return rc;
}

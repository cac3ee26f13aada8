/* config/rules.c - query.rules: how steps of queries over our relations are answered. */
#include <string.h>

#include "config/table_internal.h"
#include "net/ident.h"

/* A piece of the text. */
struct piece {
	const char *at;
	size_t n;
};

struct rule {
	enum config_answer answer;
	bool all; /* partners; else the one with this key */
	uint8_t key[NET_KEY_BYTES];
	struct piece relation;
};

static struct piece trim_piece(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t' || *at == '\n'))
		at++;
	while (at < end && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\n'))
		end--;
	return (struct piece){ at, (size_t)(end - at) };
}

static bool piece_is(struct piece p, const char *text)
{
	return p.n == strlen(text) && memcmp(p.at, text, p.n) == 0;
}

/* The first word of *rest, which goes from there. */
static struct piece first_word(struct piece *rest)
{
	const char *end = rest->at + rest->n, *at = rest->at;
	struct piece word;

	while (at < end && *at != ' ' && *at != '\t' && *at != '\n')
		at++;
	word = (struct piece){ rest->at, (size_t)(at - rest->at) };
	*rest = trim_piece(at, end);
	return word;
}

static bool answer_of(struct piece word, enum config_answer *out)
{
	static const char *const words[] = { "nothing", "soft", "facts" };

	for (int i = CONFIG_ANSWER_NOTHING; i <= CONFIG_ANSWER_FACTS; i++)
		if (piece_is(word, words[i])) {
			*out = (enum config_answer)i;
			return true;
		}
	return false;
}

/* The next rule of *text, which moves behind it; false: there is none.  *whole: as it stands. */
static bool next_rule(const char **text, struct piece *whole)
{
	while (**text != '\0') {
		const char *end = strchr(*text, ';');

		end = end != NULL ? end : *text + strlen(*text);
		*whole = trim_piece(*text, end);
		*text = *end == ';' ? end + 1 : end;
		if (whole->n > 0)
			return true;
	}
	return false;
}

static bool read_partner(struct piece p, struct rule *r)
{
	char id[NET_KEY_TEXT];

	r->all = piece_is(p, "*");
	if (r->all)
		return true;
	if (p.n == 0 || p.n >= sizeof(id))
		return false;
	memcpy(id, p.at, p.n);
	id[p.n] = '\0';
	return net_key_parse(id, r->key, NULL) == 0;
}

static int read_rule(struct piece whole, struct rule *out, struct err *e)
{
	struct piece rest = whole, word = first_word(&rest), partner;

	*out = (struct rule){ 0 };
	if (!answer_of(word, &out->answer))
		return err_set(e, ERR_USAGE, "'%.*s' does not begin with nothing, soft or facts",
			       (int)(whole.n < 80 ? whole.n : 80), whole.at);
	partner = first_word(&rest);
	out->relation = rest;
	if (!read_partner(partner, out))
		return err_set(e, ERR_USAGE,
			       "'%.*s': behind the first word stands a partner's whole id (fkge "
			       "peer list), or * for all",
			       (int)(whole.n < 80 ? whole.n : 80), whole.at);
	if (out->relation.n == 0)
		return err_set(e, ERR_USAGE,
			       "'%.*s': behind the partner stands a relation, or * for all",
			       (int)(whole.n < 80 ? whole.n : 80), whole.at);
	return 0;
}

int config_rules_check(const char *rules, struct err *e)
{
	struct piece whole;
	struct rule r;
	bool last = false;
	int rc = 0;

	while (rc == 0 && next_rule(&rules, &whole)) {
		rc = read_rule(whole, &r, e);
		if (rc == 0 && last)
			rc = err_set(e, ERR_USAGE,
				     "'%.*s' never holds: the first rule that fits does, and the "
				     "one before it is for all partners and relations",
				     (int)(whole.n < 80 ? whole.n : 80), whole.at);
		last = r.all && piece_is(r.relation, "*");
	}
	return rc;
}

static bool is_for(const struct rule *r, const uint8_t (*keys)[32], size_t n)
{
	for (size_t i = 0; i < n && !r->all; i++)
		if (memcmp(r->key, keys[i], NET_KEY_BYTES) == 0)
			return true;
	return r->all;
}

enum config_answer config_answer_to(const struct config *c, const uint8_t (*keys)[32], size_t n,
				    const char *relation)
{
	const char *rules = c->query.rules;
	struct piece whole;
	struct rule r;

	while (next_rule(&rules, &whole))
		if (read_rule(whole, &r, NULL) == 0 && is_for(&r, keys, n) &&
		    (piece_is(r.relation, "*") || piece_is(r.relation, relation)))
			return r.answer;
	return c->query.answer;
}

bool config_rule(const struct config *c, size_t i, struct config_rule *out)
{
	const char *rules = c->query.rules;
	struct piece whole;
	struct rule r;

	while (next_rule(&rules, &whole))
		if (read_rule(whole, &r, NULL) == 0 && i-- == 0) {
			*out = (struct config_rule){ .all_partners = r.all,
						     .all_relations = piece_is(r.relation, "*"),
						     .relation = r.relation.at,
						     .relation_len = r.relation.n };
			memcpy(out->key, r.key, sizeof(out->key));
			return true;
		}
	return false;
}

enum config_answer config_answer_most(const struct config *c)
{
	enum config_answer most = c->query.answer;
	const char *rules = c->query.rules;
	struct piece whole;
	struct rule r;

	while (next_rule(&rules, &whole))
		if (read_rule(whole, &r, NULL) == 0 && r.answer > most)
			most = r.answer;
	return most;
}

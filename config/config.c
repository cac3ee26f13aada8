#include "config/config.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"
#include "dp/lattice.h"
#include "dp/pld.h"
#include "dp/release.h"
#include "dp/subsampled.h"
#include "kge/dp_train.h"
#include "net/ident.h"

enum { FILE_MAX = 1 << 20, TEXT_MAX = 1024 };

/* ---- the table ---- */

enum kind { TEXT, AGENT_NAME, ADDRESS, WORD, NAME, COUNT, NUMBER, NUMBER32, SWITCH, SEED };

struct key {
	const char *section; /* NULL: top level */
	const char *name;
	enum kind kind;
	size_t offset;
	const char *def;	  /* default, as it would stand in the file */
	double min, max;	  /* COUNT, NUMBER, NUMBER32 */
	const char *const *words; /* WORD: its number, NAME: itself; NULL at the end */
	const char *help;
};

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define AT(member) offsetof(struct config, member)

static const struct key keys[] = {
	{ NULL, "name", AGENT_NAME, AT(name), "agent", 0, 0, NULL,
	  "shown to partners; a peer is known by its key, never by this" },
	{ NULL, "listen", ADDRESS, AT(listen), "0.0.0.0:7447", 0, 0, NULL,
	  "host:port to listen on; port 0: any free one; off: only call others" },
	{ NULL, "advertise", ADDRESS, AT(advertise), "", 0, 0, NULL,
	  "host:port by which others reach this agent; empty: the address of listen" },

	{ "model", "kind", NAME, AT(model.kind), "transe", 0, 0,
	  WORDS("transe", "transe_l2", "transh", "transh_l2", "transr", "transr_l2", "transd",
		"transd_l2", "distmult", "complex", "rotate", "distmult_reciprocal",
		"complex_reciprocal"),
	  "embedding model; _l2: with that distance, else L1; reciprocal: a relation has a row "
	  "for each side that is asked" },
	{ "model", "dim", COUNT, AT(model.dim), "128", 1, 4096, NULL,
	  "numbers in a row (complex numbers for complex and rotate)" },
	{ "model", "rel_dim", COUNT, AT(model.rel_dim), "0", 0, 4096, NULL,
	  "transr, transd: dimension of the relations' spaces; 0: dim" },
	{ "model", "gamma", NUMBER, AT(model.gamma), "0", 0, 1000, NULL,
	  "margin in the score of distance models; sets the range of the first rows; 0: 1 with "
	  "_l2, "
	  "else 10; rounds of a member with another one are declined" },

	{ "train", "epochs", COUNT, AT(train.epochs), "100", 1, 1e6, NULL,
	  "passes over the train split, at most" },
	{ "train", "optimizer", WORD, AT(train.kge.optimizer), "adam", 0, 0,
	  WORDS("sgd", "adagrad", "adam_dense", "adam", "momentum"),
	  "adam moves only the rows of a batch, adam_dense all rows" },
	{ "train", "momentum", NUMBER32, AT(train.kge.momentum), "0.9", 0, 0.9999, NULL,
	  "of the optimizer of that name" },
	{ "train", "schedule", WORD, AT(train.kge.schedule), "constant", 0, 0,
	  WORDS("constant", "step", "linear", "cosine"),
	  "of lr: step: a tenth from the middle on; others: down to a hundredth" },
	{ "train", "schedule_epochs", COUNT, AT(train.kge.schedule_epochs), "100", 1, 1e6, NULL,
	  "epochs that the schedule takes; after them lr stays" },
	{ "train", "update", WORD, AT(train.kge.update), "exact", 0, 0, WORDS("exact", "racing"),
	  "racing: a step at each true triple, threads wait for nobody (shared_chunk 0)" },
	{ "train", "lr", NUMBER32, AT(train.kge.lr), "0.001", 1e-9, 100, NULL,
	  "learning rate of a step; with sgd, racing wants about lr / batch" },
	{ "train", "negatives", COUNT, AT(train.kge.negatives), "64", 0, 65534, NULL,
	  "wrong triples drawn for each true one; 0: all entities (softmax)" },
	{ "train", "batch", COUNT, AT(train.kge.batch), "256", 1, 32768, NULL,
	  "true triples in one step; queries, where negatives is 0" },
	{ "train", "loss", WORD, AT(train.kge.loss), "self_adversarial", 0, 0,
	  WORDS("self_adversarial", "logistic", "margin", "softmax"),
	  "softmax: against all drawn (or all) entities at once; others: pair by pair" },
	{ "train", "margin", NUMBER32, AT(train.kge.margin), "1", 0, 1000, NULL,
	  "of the margin loss (not gamma, which is in the score)" },
	{ "train", "temperature", NUMBER32, AT(train.kge.temperature), "1", 0, 100, NULL,
	  "of the self-adversarial weights" },
	{ "train", "reg", WORD, AT(train.kge.reg), "none", 0, 0, WORDS("none", "l2", "l3"),
	  "regularizer over the rows of true triples (l3: N3 of Lacroix et al.)" },
	{ "train", "reg_weight", NUMBER32, AT(train.kge.reg_weight), "0", 0, 1000, NULL,
	  "of the regularizer; 0: none" },
	{ "train", "corrupt", WORD, AT(train.kge.corrupt), "alternate", 0, 0,
	  WORDS("alternate", "tail", "both"), "the side at which negatives are drawn" },
	{ "train", "sampling", WORD, AT(train.kge.sampling), "uniform", 0, 0,
	  WORDS("uniform", "bernoulli", "typed"),
	  "bernoulli draws the side by its relation; typed: entities that train has there" },
	{ "train", "draws", WORD, AT(train.kge.draws), "anew", 0, 0, WORDS("anew", "once"),
	  "once: batches and negatives are those of the first epoch (FedLU's code)" },
	{ "train", "subsampling", SWITCH, AT(train.kge.subsampling), "false", 0, 0, NULL,
	  "true triples of frequent queries weigh less (RotatE)" },
	{ "train", "filtered", SWITCH, AT(train.kge.filtered), "true", 0, 0, NULL,
	  "negatives are never triples of train" },
	{ "train", "normalize", SWITCH, AT(train.kge.normalize), "false", 0, 0, NULL,
	  "keep entity rows in the unit ball" },
	{ "train", "shared_chunk", COUNT, AT(train.kge.shared_chunk), "16", 0, 65536, NULL,
	  "true triples that share one block of negatives; 0: none; 64 is faster than 16, most so "
	  "with many negatives" },
	{ "train", "threads", COUNT, AT(train.kge.threads), "2", 1, 64, NULL,
	  "a run repeats bit for bit with its number of threads; racing, only with 1" },
	{ "train", "seed", SEED, AT(train.kge.seed), "1", 0, 0, NULL,
	  "of first rows, order and negatives, but for train.dp; never of what protects privacy" },
	{ "train", "eval_every", COUNT, AT(train.eval_every), "10", 1, 1e6, NULL,
	  "epochs between looks at the valid split" },
	{ "train", "patience", COUNT, AT(train.patience), "5", 0, 1e6, NULL,
	  "looks without a better score before training stops; 0: never stops" },

	{ "train.dp", "epsilon", NUMBER, AT(train.kge.dp.epsilon), "0", 0, 1000, NULL,
	  "above 0: private training (fkge train --help), which never costs more than this" },
	{ "train.dp", "delta", NUMBER, AT(train.kge.dp.delta), "1e-05", 1e-15, 0.1, NULL,
	  "at which epsilon is counted; well below 1 / triples" },
	{ "train.dp", "clip", NUMBER, AT(train.kge.dp.clip), "1", 1e-6, 1e6, NULL,
	  "L2 norm to which the gradient of a triple is clipped" },
	{ "train.dp", "noise", NUMBER, AT(train.dp_noise), "0", 0, 1e6, NULL,
	  "in clips, from 0.3 on; 0: just enough for train.epochs, leaving nothing for rounds" },
	{ "train.dp", "rate", NUMBER, AT(train.kge.dp.rate), "0.1", 1e-6, 1, NULL,
	  "with which a step takes each triple; an epoch is 1 / rate steps" },
	{ "train.dp", "triples", COUNT, AT(train.kge.dp.triples), "0", 0, 4e9, NULL,
	  "number of triples that may be known; 0: those of train, to two digits (which one "
	  "triple more may change)" },

	{ "eval", "protocol", NAME, AT(eval.protocol), "standard", 0, 0,
	  WORDS("standard", "tail", "fedlu", "fede", "openke"),
	  "how answers are ranked; fkge eval says what each means" },
	{ "eval", "valid_limit", COUNT, AT(eval.valid_limit), "0", 0, 1e9, NULL,
	  "valid triples that backtracking looks at; 0: all" },

	{ "federation", "mode", WORD, AT(federation.mode), "pairs", 0, 0, WORDS("pairs", "rounds"),
	  "pairs: rows are translated between two agents; rounds: rows of equal names travel as "
	  "they are, or in masked sums (section rounds)" },
	{ "federation", "translator", WORD, AT(federation.translator), "procrustes", 0, 0,
	  WORDS("procrustes", "ppat", "map"),
	  "how a partner's rows are brought into this agent's space; ppat and map spend of "
	  "privacy" },
	{ "federation", "roles", WORD, AT(federation.roles), "both", 0, 0,
	  WORDS("both", "host", "client"),
	  "host: takes partners' rows in and never sends its own; client: sends its rows and takes "
	  "none in" },
	{ "federation", "accept", WORD, AT(federation.accept), "listed", 0, 0,
	  WORDS("listed", "invited"),
	  "listed: the owner accepts each peer; invited: so does an invitation (fkge invite), for "
	  "one "
	  "key and 30 days unless it says else" },
	{ "federation", "introduce", SWITCH, AT(federation.introduce), "false", 0, 0, NULL,
	  "tell each partner the names, keys and addresses of the others" },
	{ "federation", "names_max", COUNT, AT(federation.names_max), "0", 0, 4000000, NULL,
	  "names that a partner may put into an intersection, each of which may be a guess; 0: 20 "
	  "times as many as ours, 10000 at least" },
	{ "federation", "names_every_s", NUMBER, AT(federation.names_every_s), "600", 0, 86400 * 30,
	  NULL, "seconds between two intersections with the same partner, at least" },
	{ "federation", "share", WORD, AT(federation.share), "entities", 0, 0,
	  WORDS("entities", "relations", "both"), "rows that are translated" },
	{ "federation", "rows_share", NUMBER, AT(federation.rows_share), "1", 0.001, 1, NULL,
	  "part of the aligned rows that is used" },
	{ "federation", "aggregate", WORD, AT(federation.aggregate), "average", 0, 0,
	  WORDS("average", "replace", "weighted", "mean"),
	  "what becomes of an aligned row; mean: own and partners' rows weigh the same" },
	{ "federation", "queue", WORD, AT(federation.queue), "together", 0, 0,
	  WORDS("together", "each"), "train once after all waiting partners, or after each" },
	{ "federation", "student", WORD, AT(federation.student), "client", 0, 0,
	  WORDS("client", "host"), "ppat: where the student runs; host is the paper's placement" },
	{ "federation", "unit_rows", SWITCH, AT(federation.unit_rows), "false", 0, 0, NULL,
	  "bring every row to length 1 before they meet" },
	{ "federation", "center_rows", SWITCH, AT(federation.center_rows), "false", 0, 0, NULL,
	  "procrustes: subtract the mean row before they meet" },
	{ "federation", "neighbours", SWITCH, AT(federation.neighbours), "false", 0, 0, NULL,
	  "send virtual neighbours: discloses edges of the graph" },
	{ "federation", "reset_optimizer", SWITCH, AT(federation.reset_optimizer), "true", 0, 0,
	  NULL, "forget the optimizer's moments at each round, as the papers do" },
	{ "federation", "epochs_per_round", COUNT, AT(federation.epochs_per_round), "30", 1, 1e6,
	  NULL, "of training after an aggregation" },
	{ "federation", "max_rounds", COUNT, AT(federation.max_rounds), "10", 0, 1e6, NULL,
	  "rounds before this agent asks for no more; 0: no limit" },
	{ "federation", "local_rounds", COUNT, AT(federation.local_rounds), "1", 0, 1e6, NULL,
	  "rounds of its own before an agent without partners sleeps" },
	{ "federation", "control", SWITCH, AT(federation.control), "false", 0, 0, NULL,
	  "train the same epochs without partners, when idle (fkge report); doubles the training" },
	{ "federation", "gather_s", NUMBER, AT(federation.gather_s), "5", 0, 86400, NULL,
	  "seconds that a round waits for further partners, after the first, before it trains" },
	{ "federation", "sleep_s", NUMBER, AT(federation.sleep_s), "60", 0, 86400 * 30, NULL,
	  "seconds of sleep before it tells partners again what it has; 0: until a signal" },
	{ "federation", "sessions", COUNT, AT(federation.sessions), "2", 1, CONFIG_SESSIONS_MAX,
	  NULL,
	  "at a time: one as host, others as client, also while it trains; 1: one, and nothing "
	  "beside it" },
	{ "federation", "lease_s", NUMBER, AT(federation.lease_s), "60", 0.05, 86400, NULL,
	  "a session in which the peer is silent for so long is over" },
	{ "federation", "session_s", NUMBER, AT(federation.session_s), "3600", 1, 86400 * 30, NULL,
	  "a session is over after this in any case" },
	{ "federation", "psk_file", TEXT, AT(federation.psk_file), "federation.key", 0, 0, NULL,
	  "the federation's secret, if this file is there (fkge init --secret, fkge join)" },

	{ "rounds", "method", NAME, AT(rounds.method), "fede", 0, 0, fed_method_names,
	  "what travels and what becomes of it; all agents say the same" },
	{ "rounds", "epochs", COUNT, AT(rounds.epochs), "3", 1, 1e6, NULL, "of training, a round" },
	{ "rounds", "first_epochs", COUNT, AT(rounds.first_epochs), "0", 0, 1e6, NULL,
	  "of training alone, before the first round; 0: none" },
	{ "rounds", "eval_every", COUNT, AT(rounds.eval_every), "1", 1, 1e6, NULL,
	  "rounds between looks at valid; the last of max is looked at, too" },
	{ "rounds", "patience", COUNT, AT(rounds.patience), "0", 0, 1e6, NULL,
	  "looks without a better score, after which it proposes no more; 0: never" },
	{ "rounds", "max", COUNT, AT(rounds.max), "0", 0, 1e9, NULL,
	  "rounds, from the first that this agent takes part in, also those that it misses; 0: "
	  "no limit" },
	{ "rounds", "min_members", COUNT, AT(rounds.min_members), "2", 2, FED_MEMBERS_MAX, NULL,
	  "agents, this one among them, without which it proposes no round and is in none of "
	  "others; never fewer than min_holders" },
	{ "rounds", "propose", SWITCH, AT(rounds.propose), "true", 0, 0, NULL,
	  "may propose rounds; else only joins" },
	{ "rounds", "stop_when_worse", COUNT, AT(rounds.stop_when_worse), "3", 0, 16, NULL,
	  "looks that show that rounds hurt, of twice as many, after which it leaves them with its "
	  "best tables (fkge rounds resume); 0: never" },
	{ "rounds", "compare_rounds", COUNT, AT(rounds.compare_rounds), "20", 0, 1e6, NULL,
	  "looks from the first on for which a copy trains alone, too, to compare with; 0: only "
	  "once averaging lowers the score" },
	{ "rounds", "compare_limit", COUNT, AT(rounds.compare_limit), "500", 0, 1e9, NULL,
	  "valid triples on which tables are compared before and after averaging; 0: all" },
	{ "rounds", "every_s", NUMBER, AT(rounds.every_s), "0", 0, 86400 * 30, NULL,
	  "seconds of rest after a round" },
	{ "rounds", "equal_start", SWITCH, AT(rounds.equal_start), "true", 0, 0, NULL,
	  "shared rows begin alike everywhere, as if a server had drawn them; a member without "
	  "it begins as one that has trained alone" },
	{ "rounds", "start_seed", SEED, AT(rounds.start_seed), "0", 0, 0, NULL,
	  "of these rows; rounds of a member with another one are declined" },
	{ "rounds", "topology", WORD, AT(rounds.topology), "sharded", 0, 0,
	  WORDS("sharded", "hosted"),
	  "sharded: every row has its home at one of its holders; hosted: one member is home to "
	  "all" },
	{ "rounds", "host", TEXT, AT(rounds.host), "", 0, 0, NULL,
	  "hosted: the id or name of a peer; own: this agent" },
	{ "rounds", "min_holders", COUNT, AT(rounds.min_holders), "2", 2, FED_MEMBERS_MAX, NULL,
	  "rows that fewer agents hold stay at home; with secret_bits take 3" },
	{ "rounds", "secret_bits", WORD, AT(rounds.secret), "0", 0, 0, WORDS("0", "32", "64"),
	  "of a masked number: homes see sums alone (fed/README.md); 0: homes see rows" },
	{ "rounds", "secret_clip", NUMBER, AT(rounds.secret_clip), "8", 0.001, 1e6, NULL,
	  "masked numbers are cut at plus and minus this" },
	{ "rounds", "join_s", NUMBER, AT(rounds.join_s), "30", 0.001, 86400, NULL,
	  "seconds for answers to a proposal; whose turn it is to propose has twice as long" },
	{ "rounds", "train_s", NUMBER, AT(rounds.train_s), "3600", 0.001, 86400, NULL,
	  "at most so many seconds for the training of a round; proposed are 20 s and three times "
	  "what training takes at the slowest; who needs longer misses from it" },
	{ "rounds", "stage_s", NUMBER, AT(rounds.stage_s), "300", 0.001, 86400, NULL,
	  "at most so many seconds for rows to their homes, and for answers; proposed are 20 s and "
	  "what a slow link takes" },

	{ "ppat", "mode", WORD, AT(ppat.mode), "budget", 0, 0, WORDS("paper", "budget"),
	  "budget: labels are kept and learned from again; paper: as published, whatever the "
	  "keys below say of these: 4 teachers, laplace 0.05, batches of 32, each label used "
	  "once" },
	{ "ppat", "teachers", COUNT, AT(ppat.teachers), "0", 0, 1000, NULL,
	  "0: one for each 50 aligned rows, from 4 to 250" },
	{ "ppat", "noise", WORD, AT(ppat.noise), "gaussian", 0, 0, WORDS("laplace", "gaussian"),
	  "added to the votes of the teachers" },
	{ "ppat", "lambda", NUMBER, AT(ppat.lambda), "0.05", 1e-6, 20, NULL,
	  "laplace: noise of scale 1/lambda" },
	{ "ppat", "sigma", NUMBER, AT(ppat.sigma), "0", 0, 1e6, NULL,
	  "gaussian: standard deviation; 0: half as many as teachers, at least 40" },
	{ "ppat", "steps", COUNT, AT(ppat.steps), "1000", 1, 1e7, NULL,
	  "batches of labels, at most" },
	{ "ppat", "batch", COUNT, AT(ppat.batch), "32", 1, 65536, NULL, "rows in a batch" },
	{ "ppat", "pool", COUNT, AT(ppat.pool), "256", 0, 4096, NULL,
	  "budget: generated rows sent with a batch, as far as they fit into a message; teachers "
	  "train on those that are not asked about; 0: the batch alone" },
	{ "ppat", "teacher_steps", COUNT, AT(ppat.teacher_steps), "20", 1, 1000, NULL,
	  "budget: of each teacher before it votes on a batch" },
	{ "ppat", "student_steps", COUNT, AT(ppat.student_steps), "100", 1, 10000, NULL,
	  "budget: of the student after a batch, on all labels so far" },
	{ "ppat", "generator_steps", COUNT, AT(ppat.generator_steps), "1", 1, 1000, NULL,
	  "budget: of the translation after a batch; more of them turn it further, also away "
	  "from a good one" },
	{ "ppat", "hidden", COUNT, AT(ppat.hidden), "256", 1, 1024, NULL,
	  "units of teachers and student" },
	{ "ppat", "lr", NUMBER, AT(ppat.lr), "0.02", 1e-9, 100, NULL, "of the translation" },
	{ "ppat", "momentum", NUMBER, AT(ppat.momentum), "0.9", 0, 0.9999, NULL,
	  "of the translation" },
	{ "ppat", "beta", NUMBER, AT(ppat.beta), "0.01", 0, 1, NULL,
	  "pull of the translation towards an orthogonal map" },
	{ "privacy", "delta", NUMBER, AT(privacy.delta), "1e-5", 1e-15, 0.1, NULL,
	  "the delta of every epsilon" },
	{ "privacy", "epsilon_per_peer", NUMBER, AT(privacy.epsilon_per_peer), "2.0", 1e-6, 1000,
	  NULL, "cap of what one peer may cost" },
	{ "privacy", "epsilon_total", NUMBER, AT(privacy.epsilon_total), "8.0", 1e-6, 1000, NULL,
	  "cap of what all peers together may cost, retraining included" },
	{ "privacy", "accountant", WORD, AT(privacy.accountant), "exact", 0, 0,
	  WORDS("exact", "gnmax", "pld"),
	  "by what the caps are judged; pld is tighter and buys more labels, but partners "
	  "whose program is older than it refuse such a contract" },
	{ "privacy", "useless_sessions", WORD, AT(privacy.useless_sessions), "refuse", 0, 0,
	  WORDS("refuse", "spend"),
	  "sessions whose labels or map would buy nothing useful (fkge ledger quote says so): "
	  "refuse to host them, or spend on them all the same" },
	{ "privacy", "reserve_labels", COUNT, AT(privacy.reserve_labels), "2048", 1, 1e6, NULL,
	  "labels put on the ledger at a time, before any is drawn; a crash leaves as many "
	  "spent, or half as many again" },
	{ "privacy", "noisy_rows", SWITCH, AT(privacy.noisy_rows), "false", 0, 0, NULL,
	  "own rows leave clipped and with noise, one release a session; partners must use "
	  "procrustes" },
	{ "privacy", "release_epsilon", NUMBER, AT(privacy.release_epsilon), "1", 0.05, 100, NULL,
	  "epsilon of one release: a map (translator map), or noisy rows" },
	{ "privacy", "release_noise", NUMBER, AT(privacy.release_noise), "0", 0, DP_MULTIPLIER_MAX,
	  NULL, "noise of a release over its sensitivity; 0: as release_epsilon wants" },
	{ "privacy", "release_clip", NUMBER, AT(privacy.release_clip), "1", 0.001, 100, NULL,
	  "length that rows are clipped to before a release; map, unit_rows: of rows of length 1" },
};

enum { KEYS = sizeof(keys) / sizeof(keys[0]) };

/* ---- one value ---- */

static void *place(struct config *c, const struct key *k)
{
	return (char *)c + k->offset;
}

static bool is_quoted(const struct key *k)
{
	return k->kind == TEXT || k->kind == AGENT_NAME || k->kind == ADDRESS;
}

static bool holds_text(const struct key *k)
{
	return k->kind == TEXT || k->kind == AGENT_NAME || k->kind == ADDRESS || k->kind == NAME;
}

static int set_text(struct config *c, const struct key *k, const char *v)
{
	char **at = place(c, k);

	if (strlen(v) > TEXT_MAX)
		return ERR_USAGE;
	free(*at);
	*at = mem_strdup(v);
	return 0;
}

static int set_word(struct config *c, const struct key *k, const char *v)
{
	int found = -1;

	for (int i = 0; k->words[i] != NULL; i++)
		if (strcmp(k->words[i], v) == 0)
			found = i;
	if (found < 0)
		return ERR_USAGE;
	if (k->kind == NAME)
		return set_text(c, k, v);
	memcpy(place(c, k), &found, sizeof(found)); /* enums are ints here: see _Static_assert */
	return 0;
}

_Static_assert(sizeof(enum kge_loss) == sizeof(int), "set_word() writes an int");

static int set_number(struct config *c, const struct key *k, const char *v)
{
	char *end;
	double x;
	uint32_t n;
	float f;

	errno = 0;
	x = strtod(v, &end);
	if (end == v || *end != '\0' || errno == ERANGE || !(x >= k->min && x <= k->max))
		return ERR_USAGE;
	n = (uint32_t)x;
	f = (float)x;
	if (k->kind == NUMBER)
		memcpy(place(c, k), &x, sizeof(x));
	else if (k->kind == NUMBER32)
		memcpy(place(c, k), &f, sizeof(f));
	else if ((double)n != x)
		return ERR_USAGE;
	else
		memcpy(place(c, k), &n, sizeof(n));
	return 0;
}

static int set_seed(struct config *c, const struct key *k, const char *v)
{
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(v, &end, 10);
	if (*v < '0' || *v > '9' || *end != '\0' || errno == ERANGE)
		return ERR_USAGE;
	memcpy(place(c, k), &n, sizeof(n));
	return 0;
}

static int set_switch(struct config *c, const struct key *k, const char *v)
{
	bool on = strcmp(v, "true") == 0 || strcmp(v, "on") == 0 || strcmp(v, "yes") == 0;

	if (!on && strcmp(v, "false") != 0 && strcmp(v, "off") != 0 && strcmp(v, "no") != 0)
		return ERR_USAGE;
	memcpy(place(c, k), &on, sizeof(on));
	return 0;
}

static int set_address(struct config *c, const struct key *k, const char *v)
{
	char host[256];
	uint16_t port;
	bool named = *v == '\0' ? *k->def == '\0' : strcmp(v, "off") == 0 && *k->def != '\0';

	if (!named && config_address(v, host, &port, NULL) != 0)
		return ERR_USAGE;
	return set_text(c, k, v);
}

static int set_scalar(struct config *c, const struct key *k, const char *v)
{
	switch (k->kind) {
	case TEXT:
		return set_text(c, k, v);
	case AGENT_NAME:
		return net_name_check(v, NULL) != 0 ? ERR_USAGE : set_text(c, k, v);
	case ADDRESS:
		return set_address(c, k, v);
	case WORD:
	case NAME:
		return set_word(c, k, v);
	case SWITCH:
		return set_switch(c, k, v);
	case SEED:
		return set_seed(c, k, v);
	case COUNT:
	case NUMBER:
	case NUMBER32:
		break;
	}
	return set_number(c, k, v);
}

/* Another method, and its constants are as in its paper. */
static int set_value(struct config *c, const struct key *k, const char *v)
{
	int rc = set_scalar(c, k, v);

	if (rc == 0 && k->offset == AT(rounds.method)) {
		struct fed_settings s;

		fed_settings_init(&s, fed_method_find(v));
		memcpy(c->rounds.value, s.value, sizeof(s.value));
	}
	return rc;
}

/* ---- constants of the method of rounds ---- */

/* A constant as if it stood in the table: number i of the method's; false: it has no more. */
static bool constant_at(const struct config *c, size_t i, struct key *out)
{
	const struct fed_method *m = fed_method_find(c->rounds.method);

	if (i >= FED_VALUES_MAX || m->constant[i].key == NULL)
		return false;
	*out = (struct key){
		.section = "rounds",
		.name = m->constant[i].key,
		.kind = NUMBER,
		.offset = AT(rounds.value) + i * sizeof(double),
		.min = m->constant[i].min,
		.max = m->constant[i].max,
		.help = m->constant[i].help,
	};
	return true;
}

static bool find_constant(const struct config *c, const char *name, struct key *out)
{
	for (size_t i = 0; constant_at(c, i, out); i++)
		if (strcmp(out->name, name) == 0)
			return true;
	return false;
}

/* ---- what is allowed, in words ---- */

static void print_allowed(struct buf *out, const struct key *k)
{
	switch (k->kind) {
	case TEXT:
		buf_printf(out, "text of up to %d bytes", TEXT_MAX);
		break;
	case AGENT_NAME:
		buf_printf(out,
			   "1 to %d bytes of text, without control characters or spaces at its "
			   "ends: peers take no other name",
			   NET_NAME_MAX);
		break;
	case ADDRESS:
		buf_printf(out, "host:port%s", *k->def != '\0' ? " or off" : " or nothing");
		break;
	case WORD:
	case NAME:
		for (int i = 0; k->words[i] != NULL; i++)
			buf_printf(out, "%s%s", i > 0 ? " | " : "", k->words[i]);
		break;
	case COUNT:
		buf_printf(out, "a whole number from %.0f to %.0f", k->min, k->max);
		break;
	case NUMBER:
	case NUMBER32:
		buf_printf(out, "a number from %g to %g", k->min, k->max);
		break;
	case SEED:
		buf_printf(out, "a whole number below 2^64");
		break;
	case SWITCH:
		buf_printf(out, "true or false");
		break;
	}
}

/* The name of section s as it stands in `outer` (NULL: the top level): "dp" of "train.dp" in
 * "train"; NULL where it does not stand there. */
static const char *name_within(const char *s, const char *outer)
{
	size_t n = outer != NULL ? strlen(outer) : 0;

	if (s == NULL || (outer != NULL && (strncmp(s, outer, n) != 0 || s[n] != '.')))
		return NULL;
	s += outer != NULL ? n + 1 : 0;
	return strchr(s, '.') == NULL ? s : NULL;
}

/* Keys of a section, and sections within it, in the order of the table; constants. */
static void print_known(struct buf *out, const struct config *c, const char *section)
{
	const char *last = NULL;
	struct key k;

	for (size_t i = 0; i < KEYS; i++) {
		const char *s = keys[i].section, *inner = name_within(s, section);

		if (section != NULL ? s != NULL && strcmp(s, section) == 0 : s == NULL)
			buf_printf(out, "%s%s", out->len > 0 ? ", " : "", keys[i].name);
		else if (s != NULL && inner != NULL && (last == NULL || strcmp(s, last) != 0))
			buf_printf(out, "%s%s", out->len > 0 ? ", " : "", inner);
		last = s;
	}
	for (size_t i = 0;
	     section != NULL && strcmp(section, "rounds") == 0 && constant_at(c, i, &k); i++)
		buf_printf(out, "%s%s", i > 0 ? ", " : "; and of this method ", k.name);
}

/* ---- a value as it would stand in the file ---- */

/* Text in double quotes, as YAML wants it. */
static void print_quoted(struct buf *out, const char *text)
{
	buf_add(out, "\"", 1);
	for (const char *p = text; *p != '\0'; p++) {
		if (*p == '"' || *p == '\\')
			buf_printf(out, "\\%c", *p);
		else if (text_control(p, 1) == 1)
			buf_printf(out, "\\x%02x", (unsigned char)*p);
		else
			buf_add(out, p, 1);
	}
	buf_printf(out, "\""); /* and a NUL after it */
}

/* The fewest digits that read back as the same number: 10 rather than 1e+01. */
static void print_number(struct buf *out, double x, bool single)
{
	bool plain = fabs(x) >= 1e-4 && fabs(x) < 1e9;
	char text[40];

	for (int digits = 1; digits <= 17; digits++) {
		double back;

		snprintf(text, sizeof(text), "%.*g", digits, x);
		back = single ? (double)strtof(text, NULL) : strtod(text, NULL);
		if (!(back < x || back > x) && !(plain && strchr(text, 'e') != NULL))
			break;
	}
	buf_printf(out, "%s", text);
}

static const void *place_of(const struct config *c, const struct key *k)
{
	return (const char *)c + k->offset;
}

static void print_value(struct buf *out, const struct config *c, const struct key *k)
{
	const void *at = place_of(c, k);

	switch (k->kind) {
	case TEXT:
	case AGENT_NAME:
	case ADDRESS:
		print_quoted(out, *(char *const *)at);
		break;
	case NAME:
		buf_printf(out, "%s", *(char *const *)at);
		break;
	case WORD:
		buf_printf(out, "%s", k->words[*(const int *)at]);
		break;
	case COUNT:
		buf_printf(out, "%u", *(const uint32_t *)at);
		break;
	case NUMBER:
		print_number(out, *(const double *)at, false);
		break;
	case NUMBER32:
		print_number(out, (double)*(const float *)at, true);
		break;
	case SWITCH:
		buf_printf(out, "%s", *(const bool *)at ? "true" : "false");
		break;
	case SEED:
		buf_printf(out, "%llu", (unsigned long long)*(const uint64_t *)at);
		break;
	}
}

static bool same_section(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static const struct key *find_key(const char *section, const char *name)
{
	for (size_t i = 0; i < KEYS; i++)
		if (same_section(keys[i].section, section) && strcmp(keys[i].name, name) == 0)
			return &keys[i];
	return NULL;
}

/* The section of this name within `outer`, NULL: there is none. */
static const char *find_section(const char *outer, const char *name)
{
	for (size_t i = 0; i < KEYS; i++) {
		const char *inner = name_within(keys[i].section, outer);

		if (inner != NULL && strcmp(inner, name) == 0)
			return keys[i].section;
	}
	return NULL;
}

/* ---- the file ---- */

struct reader {
	struct config *c;
	yaml_document_t doc;
	const char *where;
	struct err *e;
	bool seen[KEYS];
	/* Of section rounds: what may be constants, when the method is known. */
	const yaml_node_pair_t *constant[FED_VALUES_MAX];
	size_t n_constants;
};

static size_t line_of(const yaml_node_t *n)
{
	return n->start_mark.line + 1;
}

static int fail_unknown(struct reader *r, const char *section, const yaml_node_t *at,
			const char *name)
{
	struct buf known = { 0 };

	print_known(&known, r->c, section);
	err_set(r->e, ERR_USAGE, "%s:%zu: unknown key '%.100s'%s%s; known are: %s", r->where,
		line_of(at), name, section != NULL ? " in " : "", section != NULL ? section : "",
		(const char *)known.base);
	buf_release(&known);
	return ERR_USAGE;
}

static int fail_value(struct reader *r, const struct key *k, const yaml_node_t *at)
{
	struct buf allowed = { 0 };

	print_allowed(&allowed, k);
	err_set(r->e, ERR_USAGE, "%s:%zu: %s%s%s: '%.100s' is not allowed here; allowed: %s",
		r->where, line_of(at), k->section != NULL ? k->section : "",
		k->section != NULL ? "." : "", k->name,
		at->type == YAML_SCALAR_NODE ? (const char *)at->data.scalar.value
					     : "a list or map",
		(const char *)allowed.base);
	buf_release(&allowed);
	return ERR_USAGE;
}

/* A scalar's text, or NULL if it is none or holds a NUL. */
static const char *scalar(const yaml_node_t *n)
{
	const char *text = (const char *)n->data.scalar.value;

	if (n->type != YAML_SCALAR_NODE || strlen(text) != n->data.scalar.length)
		return NULL;
	return text;
}

static int read_key(struct reader *r, const struct key *k, const yaml_node_t *name,
		    const yaml_node_t *value)
{
	size_t at = (size_t)(k - keys);

	if (r->seen[at])
		return err_set(r->e, ERR_USAGE, "%s:%zu: %s is given twice; remove one", r->where,
			       line_of(name), k->name);
	r->seen[at] = true;
	if (scalar(value) == NULL || set_value(r->c, k, scalar(value)) != 0)
		return fail_value(r, k, value);
	return 0;
}

static int read_map(struct reader *r, const char *section, const yaml_node_t *map);

static int read_pair(struct reader *r, const char *section, const yaml_node_pair_t *p)
{
	const yaml_node_t *name = yaml_document_get_node(&r->doc, p->key);
	const yaml_node_t *value = yaml_document_get_node(&r->doc, p->value);
	const char *text = scalar(name);
	const struct key *k = text != NULL ? find_key(section, text) : NULL;
	const char *inner = text != NULL ? find_section(section, text) : NULL;

	if (k != NULL)
		return read_key(r, k, name, value);
	if (inner == NULL && text != NULL && section != NULL && strcmp(section, "rounds") == 0 &&
	    r->n_constants < FED_VALUES_MAX)
		return r->constant[r->n_constants++] = p, 0;
	if (inner == NULL)
		return fail_unknown(r, section, name, text != NULL ? text : "(not a word)");
	if (value->type == YAML_SCALAR_NODE && value->data.scalar.length == 0)
		return 0; /* `train:` with all its keys commented out */
	if (value->type != YAML_MAPPING_NODE)
		return err_set(r->e, ERR_USAGE, "%s:%zu: %s is a section: write its keys below it",
			       r->where, line_of(value), text);
	return read_map(r, inner, value);
}

static int read_map(struct reader *r, const char *section, const yaml_node_t *map)
{
	const yaml_node_pair_t *p = map->data.mapping.pairs.start;
	int rc = 0;

	for (; rc == 0 && p < map->data.mapping.pairs.top; p++)
		rc = read_pair(r, section, p);
	return rc;
}

static int read_constant(struct reader *r, size_t i)
{
	const yaml_node_t *name = yaml_document_get_node(&r->doc, r->constant[i]->key);
	const yaml_node_t *value = yaml_document_get_node(&r->doc, r->constant[i]->value);
	struct key k;

	if (!find_constant(r->c, scalar(name), &k))
		return fail_unknown(r, "rounds", name, scalar(name));
	for (size_t j = 0; j < i; j++)
		if (strcmp(scalar(yaml_document_get_node(&r->doc, r->constant[j]->key)), k.name) ==
		    0)
			return err_set(r->e, ERR_USAGE, "%s:%zu: %s is given twice; remove one",
				       r->where, line_of(name), k.name);
	if (scalar(value) == NULL || set_value(r->c, &k, scalar(value)) != 0)
		return fail_value(r, &k, value);
	return 0;
}

static int read_document(struct reader *r)
{
	const yaml_node_t *root = yaml_document_get_root_node(&r->doc);
	int rc;

	if (root == NULL || (root->type == YAML_SCALAR_NODE && root->data.scalar.length == 0))
		return 0; /* an empty file: all defaults */
	if (root->type != YAML_MAPPING_NODE)
		return err_set(r->e, ERR_USAGE, "%s:%zu: expected lines of the form key: value",
			       r->where, line_of(root));
	rc = read_map(r, NULL, root);
	for (size_t i = 0; i < r->n_constants && rc == 0; i++)
		rc = read_constant(r, i);
	return rc;
}

/* As agent/core/conversation.c decides it. */
static bool relations_travel(const struct config *c)
{
	const struct kge_model *m = config_model(c);

	return m->relation_floats(c->model.dim,
				  c->model.rel_dim ? c->model.rel_dim : c->model.dim) ==
	       m->entity_floats(c->model.dim);
}

double config_release_noise(const struct config *c)
{
	if (c->privacy.release_noise > 0)
		return c->privacy.release_noise;
	if (c->privacy.accountant == CONFIG_PLD)
		return dp_pld_release_multiplier(DP_RELEASE_DISCRETE, c->privacy.release_epsilon,
						 c->privacy.delta);
	return dp_release_multiplier(DP_RELEASE_DISCRETE, c->privacy.release_epsilon,
				     c->privacy.delta);
}

static double one_release(const struct config *c, double z)
{
	double curve = dp_release_epsilon(DP_RELEASE_DISCRETE, z, 1, c->privacy.delta);

	if (c->privacy.accountant != CONFIG_PLD)
		return curve;
	return fmin(curve, dp_pld_epsilon(NULL, 0, dp_pld_releases(DP_RELEASE_DISCRETE, z, 1),
					  c->privacy.delta));
}

static int check_releases(const struct config *c, const char *where, struct err *e)
{
	double z = config_release_noise(c), one;

	if (c->federation.translator != CONFIG_MAP && !c->privacy.noisy_rows)
		return 0;
	if (!(z >= DP_MULTIPLIER_MIN && z <= DP_MULTIPLIER_MAX))
		return err_set(
			e, ERR_USAGE,
			"%s: privacy.release_epsilon (%g) at delta %g, or release_noise "
			"(%g), means noise of %g times the sensitivity; allowed are %g to %g",
			where, c->privacy.release_epsilon, c->privacy.delta,
			c->privacy.release_noise, z, DP_MULTIPLIER_MIN, DP_MULTIPLIER_MAX);
	one = one_release(c, z);
	if (!(one <= c->privacy.epsilon_per_peer))
		return err_set(
			e, ERR_USAGE,
			"%s: one release costs epsilon %.3g, and privacy.epsilon_per_peer is "
			"%g: no session could be; raise it, or lower release_epsilon",
			where, one, c->privacy.epsilon_per_peer);
	return 0;
}

/* Private training is worth what the least private thing is that leaves the agent. */
static int check_private(const struct config *c, const char *where, struct err *e)
{
	struct dp_subsampled m = { c->train.kge.dp.rate, config_dp_noise(c) };
	struct err why = { 0 };

	if (c->federation.neighbours)
		return err_set(e, ERR_USAGE,
			       "%s: federation.neighbours sends edges of the graph as they are, "
			       "which train.dp is there to hide: turn one of them off",
			       where);
	if (isinf(m.noise))
		return err_set(e, ERR_USAGE,
			       "%s: train.dp: no noise is enough for %u epochs within epsilon %g "
			       "at delta %g: lower train.epochs or train.dp.rate",
			       where, c->train.epochs, c->train.kge.dp.epsilon,
			       c->train.kge.dp.delta);
	if (dp_subsampled_check(&m, &why) != 0)
		return err_set(e, ERR_USAGE, "%s: train.dp.%s", where, why.text);
	return 0;
}

void config_fed_settings(const struct config *c, struct fed_settings *out)
{
	fed_settings_init(out, fed_method_find(c->rounds.method));
	memcpy(out->value, c->rounds.value, sizeof(out->value));
	out->topology = (enum fed_topology)c->rounds.topology;
	out->min_holders = c->rounds.min_holders;
	out->join_ms = (uint32_t)(c->rounds.join_s * 1000 + 0.5);
	out->train_ms = (uint32_t)(c->rounds.train_s * 1000 + 0.5);
	out->stage_ms = (uint32_t)(c->rounds.stage_s * 1000 + 0.5);
	out->secret_bits = (uint32_t)c->rounds.secret * 32;
	out->secret_clip = c->rounds.secret_clip;
}

int config_check_method(const struct config *c, const struct fed_settings *settings, struct err *e)
{
	struct fed_settings s = *settings;
	struct kge_emb *one;
	struct fed_part *part;
	struct rng rng;
	struct err why = { 0 };
	int rc;

	s.ent_floats = s.rel_floats = 1; /* known when there are tables */
	if (fed_settings_check(&s, e) != 0)
		return e->code;
	rng_seed(&rng, 1);
	one = config_tables(c, 1, 1, &rng);
	rc = fed_part_new(&part, &s, one, 1, &why);
	fed_part_free(part);
	kge_emb_free(one);
	if (rc == 0)
		return 0;
	return err_set(e, ERR_USAGE, "%s: change model.dim, or the method's constants", why.text);
}

static int check_rounds(const struct config *c, const char *where, struct err *e)
{
	struct fed_settings s;
	struct err why = { 0 };

	config_fed_settings(c, &s);
	if (config_check_method(c, &s, &why) != 0)
		return err_set(e, ERR_USAGE, "%s: rounds: %s", where, why.text);
	if (s.topology == FED_HOSTED && c->rounds.host[0] == '\0')
		return err_set(e, ERR_USAGE,
			       "%s: rounds.topology hosted needs rounds.host: the id or name of a "
			       "peer, or own",
			       where);
	if (c->train.kge.dp.epsilon > 0)
		return err_set(e, ERR_USAGE,
			       "%s: federation.mode rounds does not go with train.dp: rows leave "
			       "in rounds, and nothing charges for that; take one of them out",
			       where);
	if (c->federation.roles != CONFIG_BOTH)
		return err_set(e, ERR_USAGE,
			       "%s: federation.mode rounds does not go with federation.roles: in "
			       "rounds everybody sends rows and takes rows in; say both, or pairs",
			       where);
	if (c->privacy.noisy_rows)
		return err_set(e, ERR_USAGE,
			       "%s: federation.mode rounds does not go with privacy.noisy_rows: "
			       "rows leave in rounds without noise, and nothing charges for that; "
			       "take one of them out",
			       where);
	return 0;
}

int config_check(const struct config *c, const char *where, struct err *e)
{
	struct err why = { 0 };

	if (c->model.rel_dim != 0 && c->model.rel_dim != c->model.dim &&
	    !config_model(c)->own_rel_dim)
		return err_set(e, ERR_USAGE,
			       "%s: model.rel_dim (%u): relations of %s are in the space of the "
			       "entities (model.dim %u); leave it out",
			       where, c->model.rel_dim, c->model.kind, c->model.dim);
	if (c->privacy.epsilon_total < c->privacy.epsilon_per_peer)
		return err_set(
			e, ERR_USAGE,
			"%s: privacy.epsilon_total (%g) is below privacy.epsilon_per_peer (%g): "
			"raise the first or lower the second",
			where, c->privacy.epsilon_total, c->privacy.epsilon_per_peer);
	if (check_releases(c, where, e) != 0)
		return e->code;
	if (c->privacy.accountant == CONFIG_GNMAX && c->ppat.noise != CONFIG_GAUSSIAN)
		return err_set(e, ERR_USAGE,
			       "%s: privacy.accountant gnmax needs ppat.noise gaussian", where);
	if (c->federation.psk_file[0] == '\0' && c->federation.accept == CONFIG_ACCEPT_INVITED)
		return err_set(e, ERR_USAGE,
			       "%s: federation.accept invited needs federation.psk_file: the "
			       "secret is what shows that somebody was invited",
			       where);
	if (c->federation.share == CONFIG_SHARE_RELATIONS && !relations_travel(c))
		return err_set(e, ERR_USAGE,
			       "%s: federation.share relations: relation rows of %s are not like "
			       "entity rows, so they cannot be translated; say entities",
			       where, c->model.kind);
	if (c->federation.control && c->train.kge.dp.epsilon > 0)
		return err_set(e, ERR_USAGE,
			       "%s: federation.control trains without noise, and train.dp promises "
			       "that nothing does; take one of them out",
			       where);
	if (c->federation.mode == CONFIG_ROUNDS && check_rounds(c, where, e) != 0)
		return e->code;
	if (kge_train_check(&c->train.kge, &why) != 0)
		return err_set(e, ERR_USAGE, "%s: %s", where, why.text);
	return c->train.kge.dp.epsilon > 0 ? check_private(c, where, e) : 0;
}

/* As published (methods 3.2), whatever else the file says of these. */
static void fix_paper(struct config *c)
{
	if (c->ppat.mode != CONFIG_PPAT_PAPER)
		return;
	c->ppat.teachers = 4;
	c->ppat.noise = CONFIG_LAPLACE;
	c->ppat.lambda = 0.05;
	c->ppat.batch = 32;
	c->ppat.pool = 0;
	c->ppat.teacher_steps = c->ppat.student_steps = c->ppat.generator_steps = 1;
}

static int parse_failed(yaml_parser_t *p, const char *where, struct err *e)
{
	return err_set(e, ERR_USAGE, "%s:%zu: not YAML: %s", where, p->problem_mark.line + 1,
		       p->problem != NULL ? p->problem : "unreadable");
}

int config_parse(struct config *c, const char *text, size_t len, const char *where, struct err *e)
{
	struct reader r = { .c = c, .where = where, .e = e };
	yaml_parser_t parser;
	int rc;

	config_init(c);
	if (!yaml_parser_initialize(&parser))
		abort();
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	if (!yaml_parser_load(&parser, &r.doc)) {
		rc = parse_failed(&parser, where, e);
	} else {
		rc = read_document(&r);
		fix_paper(c);
		if (rc == 0)
			rc = config_check(c, where, e);
		yaml_document_delete(&r.doc);
	}
	yaml_parser_delete(&parser);
	if (rc != 0)
		config_release(c);
	return rc;
}

int config_load(struct config *c, const char *path, struct err *e)
{
	struct buf text = { 0 };
	int rc = file_read(path, FILE_MAX, &text, e);

	memset(c, 0, sizeof(*c));
	if (rc == 0)
		rc = config_parse(c, (const char *)text.base, text.len, path, e);
	buf_release(&text);
	return rc;
}

/* ---- defaults ---- */

void config_init(struct config *c)
{
	memset(c, 0, sizeof(*c));
	for (size_t i = 0; i < KEYS; i++)
		if (set_value(c, &keys[i], keys[i].def) != 0)
			abort(); /* the table contradicts itself; tests/config/test_config.c */
}

void config_release(struct config *c)
{
	for (size_t i = 0; i < KEYS; i++)
		if (holds_text(&keys[i]))
			free(*(char **)place(c, &keys[i]));
	memset(c, 0, sizeof(*c));
}

/* How far a section's keys stand in. */
static int indent_of(const char *section)
{
	return section == NULL ? 0 : strchr(section, '.') == NULL ? 2 : 4;
}

static void print_section_name(struct buf *out, const char *section)
{
	const char *inner = strchr(section, '.');

	if (inner != NULL)
		buf_printf(out, "  %s:\n", inner + 1);
	else
		buf_printf(out, "%s:\n", section);
}

/* Below the method: which constants each has, and what they are when nothing is said. */
static void print_constants(struct buf *out)
{
	buf_printf(out, "%-36s #   and below here its constants, as in mu: 0.1\n", "");
	for (size_t m = 0; fed_methods[m] != NULL; m++) {
		const struct fed_constant *k = fed_methods[m]->constant;

		if (k[0].key == NULL)
			continue;
		buf_printf(out, "%-36s #   %s:", "", fed_methods[m]->name);
		for (size_t i = 0; i < FED_VALUES_MAX && k[i].key != NULL; i++)
			buf_printf(out, "%s %s %g", i > 0 ? "," : "", k[i].key, k[i].byword);
		buf_printf(out, "\n");
	}
}

static void print_line(struct buf *out, const struct key *k, const char *value)
{
	struct buf line = { 0 };

	buf_printf(&line, "%*s%s: ", indent_of(k->section), "", k->name);
	if (is_quoted(k))
		print_quoted(&line, value);
	else
		buf_printf(&line, "%s", value);
	buf_printf(out, "%-36s # %s\n", (const char *)line.base, k->help);
	buf_release(&line);
	if (is_quoted(k) || k->kind == SEED)
		return;
	buf_printf(out, "%-36s #   (", "");
	print_allowed(out, k);
	buf_printf(out, ")\n");
	if (k->offset == AT(rounds.method))
		print_constants(out);
}

void config_print_default(struct buf *out, const char *name, const char *listen)
{
	const char *section = NULL;

	buf_printf(out, "# What this agent is and does.  Every key may be left out; these are the "
			"defaults.\n");
	for (size_t i = 0; i < KEYS; i++) {
		const struct key *k = &keys[i];
		const char *value = k->def;

		if (k->offset == AT(name) && name != NULL)
			value = name;
		if (k->offset == AT(listen) && listen != NULL)
			value = listen;
		if (!same_section(k->section, section))
			buf_printf(out, indent_of(k->section) == 4 ? "" : "\n"),
				print_section_name(out, k->section);
		section = k->section;
		print_line(out, k, value);
	}
}

/* ---- the reference in docs/ ---- */

/* The words of text as one item of a list of Markdown, in lines of at most 118 columns. */
static void print_item(struct buf *out, const char *text)
{
	size_t column = 1;

	buf_printf(out, "*");
	while (*text != '\0') {
		size_t n = strcspn(text, " ");

		if (column + 1 + n > 118) {
			buf_printf(out, "\n ");
			column = 1;
		}
		buf_printf(out, " %.*s", (int)n, text);
		column += 1 + n;
		text += n + strspn(text + n, " ");
	}
	buf_printf(out, "\n");
}

static void print_reference_key(struct buf *out, const struct key *k, const char *def)
{
	struct buf item = { 0 };

	buf_printf(&item, "`%s: %s`: %s. Allowed: ", k->name, def[0] != '\0' ? def : "\"\"",
		   k->help);
	print_allowed(&item, k);
	buf_printf(&item, ".");
	print_item(out, (const char *)item.base);
	buf_release(&item);
}

static void print_reference_method(struct buf *out, const struct fed_method *m)
{
	struct config c;
	struct key k;
	int rc;

	config_init(&c);
	rc = config_set(&c, "rounds", "method", m->name, NULL);
	assert(rc == 0);
	(void)rc;
	for (size_t i = 0; constant_at(&c, i, &k); i++) {
		struct buf def = { 0 };

		if (i == 0)
			buf_printf(out, "\n## rounds, with `method: %s`\n\n", m->name);
		print_value(&def, &c, &k);
		print_reference_key(out, &k, (const char *)def.base);
		buf_release(&def);
	}
	config_release(&c);
}

void config_print_reference(struct buf *out)
{
	const char *section = NULL;

	buf_printf(out, "# agent.yaml: every key\n\n"
			"`fkge init --reference` writes this file from the table of keys in "
			"`config/config.c`. A key stands\nhere with its default. Each may be left "
			"out.\n\n## Top level\n\n");
	for (size_t i = 0; i < KEYS; i++) {
		if (!same_section(keys[i].section, section))
			buf_printf(out, "\n## %s\n\n", keys[i].section);
		section = keys[i].section;
		print_reference_key(out, &keys[i], keys[i].def);
	}
	for (size_t i = 0; fed_methods[i] != NULL; i++)
		print_reference_method(out, fed_methods[i]);
}

/* ---- single keys ---- */

/* *constant has room for what is not in the table. */
static const struct key *known_key(const struct config *c, const char *section, const char *name,
				   struct key *constant, struct err *e)
{
	const struct key *k = find_key(section, name);
	struct buf known = { 0 };

	if (k != NULL)
		return k;
	if (strcmp(section, "rounds") == 0 && find_constant(c, name, constant))
		return constant;
	print_known(&known, c, section);
	err_set(e, ERR_USAGE, "unknown key '%.100s' in %s; known are: %s", name, section,
		(const char *)known.base);
	buf_release(&known);
	return NULL;
}

int config_set(struct config *c, const char *section, const char *name, const char *value,
	       struct err *e)
{
	struct key constant;
	const struct key *k = known_key(c, section, name, &constant, e);
	struct buf allowed = { 0 };

	if (k == NULL)
		return ERR_USAGE;
	if (set_value(c, k, value) == 0)
		return 0;
	print_allowed(&allowed, k);
	err_set(e, ERR_USAGE, "%s.%s: '%.100s' is not allowed here; allowed: %s", section, name,
		value, (const char *)allowed.base);
	buf_release(&allowed);
	return ERR_USAGE;
}

int config_get(const struct config *c, const char *section, const char *name, struct buf *out,
	       struct err *e)
{
	struct key constant;
	const struct key *k = known_key(c, section, name, &constant, e);

	if (k == NULL)
		return ERR_USAGE;
	print_value(out, c, k);
	return 0;
}

enum config_range config_range_of(const char *section, const char *name)
{
	const struct key *k = find_key(section, name);

	if (k != NULL && k->kind == COUNT)
		return CONFIG_WHOLE;
	return k != NULL && (k->kind == NUMBER || k->kind == NUMBER32) ? CONFIG_REAL
								       : CONFIG_NO_RANGE;
}

void config_print_section(const struct config *c, const char *section, struct buf *out)
{
	const char *last = NULL;
	struct key k;

	for (size_t i = 0; i < KEYS; i++) {
		const char *s = keys[i].section;

		if (!same_section(s, section) && name_within(s, section) == NULL)
			continue;
		if (!same_section(s, last))
			print_section_name(out, s);
		last = s;
		buf_printf(out, "%*s%s: ", indent_of(s), "", keys[i].name);
		print_value(out, c, &keys[i]);
		buf_printf(out, "\n");
	}
	for (size_t i = 0; strcmp(section, "rounds") == 0 && constant_at(c, i, &k); i++) {
		buf_printf(out, "  %s: ", k.name);
		print_value(out, c, &k);
		buf_printf(out, "\n");
	}
}

void config_print(const struct config *c, struct buf *out)
{
	const char *last = NULL;

	for (size_t i = 0; i < KEYS; i++) {
		const char *s = keys[i].section;

		if (s == NULL) {
			buf_printf(out, "%s: ", keys[i].name);
			print_value(out, c, &keys[i]);
			buf_printf(out, "\n");
		} else if (strchr(s, '.') == NULL && !same_section(s, last)) {
			config_print_section(c, s, out);
			last = s;
		}
	}
}

/* ---- derived ---- */

const struct kge_model *config_model(const struct config *c)
{
	return kge_model_find(c->model.kind);
}

/* At 10, which suits L1, models with the L2 distance hardly learn. */
double config_gamma(const struct config *c)
{
	if (c->model.gamma > 0)
		return c->model.gamma;
	return config_model(c)->metric == KGE_L2 ? 1 : 10;
}

int config_check_size(const struct config *c, uint32_t n_ent, uint32_t n_rel, struct err *e)
{
	struct kge_emb shape = kge_emb_shape(config_model(c), c->model.dim, c->model.rel_dim,
					     (float)config_gamma(c), n_ent, n_rel);
	double bytes = kge_train_bytes(&c->train.kge, &shape), most = mem_most_bytes();
	const char *lower = shape.model->own_rel_dim ? "model.dim or model.rel_dim" : "model.dim";
	const double gib = 1 << 30;

	if (bytes > most)
		return err_set(e, ERR_USAGE,
			       "model.dim: %s has %zu numbers for each of %u entities and %zu for "
			       "each of %u relations here; training them takes %.1f GiB of memory, "
			       "and there are %.1f: lower %s",
			       shape.model->name, shape.ent_floats, n_ent, shape.rel_floats, n_rel,
			       bytes / gib, most / gib, lower);
	return kge_train_check_size(&c->train.kge, n_ent, e);
}

struct kge_emb *config_tables(const struct config *c, uint32_t n_ent, uint32_t n_rel, struct rng *r)
{
	struct kge_emb *tables = kge_emb_new_dims(config_model(c), c->model.dim, c->model.rel_dim,
						  (float)config_gamma(c), n_ent, n_rel, r);

	if (c->train.kge.dp.epsilon > 0)
		kge_dp_first_rows(tables, NULL, NULL);
	return tables;
}

bool config_fits(const struct config *c, const struct kge_emb *tables)
{
	uint32_t rel_dim = c->model.rel_dim > 0 ? c->model.rel_dim : c->model.dim;

	return strcmp(tables->model->name, c->model.kind) == 0 && tables->dim == c->model.dim &&
	       tables->rel_dim == rel_dim;
}

const struct kge_protocol *config_protocol(const struct config *c)
{
	return kge_protocol_find(c->eval.protocol);
}

double config_dp_noise(const struct config *c)
{
	const struct kge_dp_config *dp = &c->train.kge.dp;

	if (!(dp->epsilon > 0) || c->train.dp_noise > 0)
		return c->train.dp_noise;
	return dp_subsampled_noise(dp->rate, (uint64_t)c->train.epochs * kge_dp_epoch_steps(dp),
				   dp->epsilon, dp->delta);
}

struct kge_train_config config_training(const struct config *c)
{
	struct kge_train_config train = c->train.kge;

	train.dp.noise = config_dp_noise(c);
	return train;
}

void config_score_name(const struct config *c, char out[CONFIG_SCORE_NAME])
{
	if (c->train.kge.dp.epsilon > 0)
		snprintf(out, CONFIG_SCORE_NAME, CONFIG_SCORE_PRIVATE);
	else if (c->eval.valid_limit == 0)
		snprintf(out, CONFIG_SCORE_NAME, "%s", c->eval.protocol);
	else
		snprintf(out, CONFIG_SCORE_NAME, "%s/%u", c->eval.protocol, c->eval.valid_limit);
}

bool config_score_is_private(const char *name)
{
	return strcmp(name, CONFIG_SCORE_PRIVATE) == 0 || strcmp(name, CONFIG_SCORE_ORDERED) == 0;
}

int config_address(const char *text, char host[256], uint16_t *port, struct err *e)
{
	const char *colon = strrchr(text, ':');
	size_t n = colon != NULL ? (size_t)(colon - text) : 0;
	const char *begin = text;
	char *end;
	long p;

	if (n >= 2 && text[0] == '[' && text[n - 1] == ']') {
		begin++;
		n -= 2;
	} else if (n > 0 && memchr(text, ':', n) != NULL) {
		n = 0; /* an IPv6 address needs its brackets */
	}
	if (n == 0 || n > 255 || colon[1] < '0' || colon[1] > '9' || !text_printable(begin, n) ||
	    memchr(begin, ' ', n) != NULL)
		return err_set(e, ERR_USAGE, "'%.300s' is no address: write host:port", text);
	p = strtol(colon + 1, &end, 10);
	if (*end != '\0' || p > 65535)
		return err_set(e, ERR_USAGE, "'%.300s': a port is a number from 0 to 65535", text);
	memcpy(host, begin, n);
	host[n] = '\0';
	*port = (uint16_t)p;
	return 0;
}

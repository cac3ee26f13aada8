/* config/settings.h - what an owner may say about his agent: the one struct of settings.
 *
 * One table (config/table.c) names every key with its place, its kind, what is allowed, its
 * default and a line of help.  Reading, checking, the commented file that `fkge init` writes and
 * the texts of errors all come from that table, so they cannot disagree.  The constants of a
 * method of rounds stand in section rounds by their own keys (fed/method.h).
 *
 * The core of an agent (agent/core/core.h) borrows this struct as it is.  A value that follows from
 * settings, such as milliseconds or the number of teachers, is a function here and is kept nowhere
 * else.  Nothing here reads a file: config/config.h does. */
#ifndef CONFIG_SETTINGS_H
#define CONFIG_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "fed/method.h"
#include "kge/eval.h"
#include "kge/model.h"
#include "kge/train.h"
#include "ppat/aggregate.h"
#include "ppat/config.h"

/* Translations between two agents (methods 3), or rows in rounds of many (methods 4, fed/). */
enum config_mode { CONFIG_PAIRS, CONFIG_ROUNDS };
/* In sessions of two: which sides it may be.  The host takes rows in, the client sends its own.
 * Also said in HELLO. */
enum config_roles { CONFIG_BOTH_ROLES, CONFIG_HOST_ONLY, CONFIG_CLIENT_ONLY };
enum config_translator { CONFIG_PROCRUSTES, CONFIG_PPAT, CONFIG_MAP }; /* as in PROPOSE */
enum config_accept { CONFIG_ACCEPT_LISTED, CONFIG_ACCEPT_INVITED };
enum config_share { CONFIG_SHARE_ENTITIES, CONFIG_SHARE_RELATIONS, CONFIG_SHARE_BOTH };
/* The tables that a round of pairs without a better score leaves: those it has come to
 * (agent/core/latest.c), or the best as they were before (methods 3.1). */
enum config_after { CONFIG_AFTER_KEEP, CONFIG_AFTER_BACK };
/* How much of what partners bring is taken in (fed/weight.h). */
enum config_weight { CONFIG_WEIGHT_VALID, CONFIG_WEIGHT_ALL };
enum config_preset {
	CONFIG_PRESET_NONE,
	CONFIG_PRESET_FAST,
	CONFIG_PRESET_BALANCED,
	CONFIG_PRESET_BEST
};
enum config_draw { CONFIG_DRAW_PAIR, CONFIG_DRAW_SESSION }; /* of aligned_share */
enum config_row_bits { CONFIG_ROW_BITS_16, CONFIG_ROW_BITS_32 };
enum config_frame { CONFIG_FRAME_SESSION, CONFIG_FRAME_COMMON };
/* One training for all partners that wait, or one after each. */
enum config_queue { CONFIG_QUEUE_TOGETHER, CONFIG_QUEUE_EACH };
enum config_accountant { CONFIG_EXACT, CONFIG_GNMAX, CONFIG_PLD };
enum config_useless { CONFIG_REFUSE_USELESS, CONFIG_SPEND_USELESS };

/* The default of federation.psk_file: alone under this name a file may be missing. */
#define CONFIG_PSK_FILE "federation.key"

struct config_source;

/* Sections, as in the file. */
enum {
	CONFIG_SESSIONS_MAX = 16,   /* federation.sessions */
	CONFIG_NAMES_MAX = 4000000, /* federation.names_max */
};

struct config_model {
	enum config_preset preset; /* of model and training, by the graph (config_suit()) */
	char *kind;		   /* of kge_models */
	uint32_t dim, rel_dim;	   /* rel_dim 0: dim */
	double gamma;		   /* 0: config_gamma() */
};

struct config_train {
	struct kge_train_config kge;
	/* The graph decides, and has not been asked (config_suit()): until then the value in kge is
	 * the one that suits any graph. */
	bool corrupt_auto, sampling_auto;
	uint32_t epochs;     /* of the first local training, at most */
	uint32_t eval_every; /* epochs between looks at valid */
	double dp_noise;     /* of train.dp, as the file has it; kge.dp.noise stays 0 */
	uint32_t patience;   /* looks without a better score before it stops; 0: never */
	uint32_t partitions, memory_mib; /* config_past_memory() */
	char *command; /* that an agent trains by (agent/command.h); "": by itself */
	bool in_parts; /* by several ranks: config_suit() chooses what goes with partitions, but
			  where negatives is 0 */
};

struct config_eval {
	char *protocol;	      /* of kge_protocol_find() */
	uint32_t valid_limit; /* valid triples looked at by backtracking; 0: all */
};

/* Of many partners, a few. */
struct config_few {
	uint32_t links;	      /* that it dials and keeps, at most; 0: all */
	uint32_t partners;    /* whose rows a round takes in, at most; 0: of all */
	uint32_t weight_from; /* the round from which valid decides how much of these */
	bool bound_rows;      /* of these no row moves ours by more than is plausible */
	bool judge;	      /* of these those whose rows hurt are left out ... */
	uint32_t quarantine;  /* ... after so many rounds of it in a row for good; 0: never */
};

struct config_names {
	uint32_t max;	/* of a partner in an intersection; 0: by ours */
	double every_s; /* between intersections with a partner */
};

struct config_aligned {
	double share; /* part of them, (0, 1] */
	enum config_draw draw;
	enum config_row_bits bits; /* of a value on its way to us */
};

struct config_federation {
	enum config_mode mode;
	enum config_roles roles;
	enum config_translator translator;
	enum config_accept accept;
	enum config_share share;
	enum ppat_combine aggregate;
	enum config_queue queue;
	enum ppat_placement student;
	enum config_after after;
	enum config_weight weight;
	enum config_frame frame;       /* axes on which rows travel */
	uint32_t patience;	       /* keep: rounds without a better score; 0: never rests */
	struct config_aligned aligned; /* rows: which are used, how they travel */
	bool unit_rows, center_rows;   /* before they meet: length 1; mean removed */
	struct config_names names;     /* in intersections */
	bool introduce;		       /* partners hear of each other */
	bool neighbours;	       /* virtual neighbours, methods 3.4 */
	bool reset_optimizer;	       /* forget Adam's moments at each round */
	uint32_t epochs_per_round;     /* of training after an aggregation */
	uint32_t max_rounds;	       /* of both kinds, then only client; 0: no limit */
	uint32_t local_rounds;	       /* own rounds for want of news before sleeping */
	bool control;		       /* trains the same epochs alone, beside it */
	double gather_s;	       /* waits for further partners before a round trains */
	double sleep_s;		       /* of sleep before it looks again; 0: until a signal */
	uint32_t sessions;	       /* at a time */
	struct config_few few;	       /* of many partners */
	double lease_s;		       /* a session in which the peer is silent is over */
	double session_s;	       /* ... and in any case after this */
	char *psk_file;		       /* holds 64 hex digits, if it is there; "": none */
};

struct config_rounds {		       /* federation.mode rounds */
	char *method;		       /* of fed_methods */
	double value[FED_VALUES_MAX];  /* its constants in their order, each by its key */
	uint32_t epochs, first_epochs; /* of training: a round; alone, before the first */
	uint32_t eval_every;	       /* rounds between looks at valid */
	uint32_t patience;	       /* looks without a better score; 0: never stops */
	uint32_t max;		       /* rounds that it takes part in; 0: no limit */
	uint32_t min_members;
	double fraction; /* of the members that are in a round, (0, 1] */
	double every_s;	 /* of rest after a round */
	enum fed_topology topology;
	char *host; /* id or name of a peer, or "own" */
	uint32_t min_holders;
	int secret; /* bits: times 32 */
	double secret_clip;
	double join_s, train_s, stage_s;
	uint32_t stop_when_worse, compare_rounds, compare_limit;
	bool equal_start, propose, bound_rows;
	uint64_t start_seed; /* of equal_start */
};

struct config_ppat {
	uint32_t teachers; /* 0: min(250, rows / 50), at least 4 */
	enum ppat_mechanism noise;
	double lambda, sigma; /* Laplace of scale 1/lambda; Gaussian of deviation sigma,
				 0: by the number of teachers */
	enum ppat_mode mode;  /* PAPER fixes teachers, noise, batch and the next line */
	uint32_t pool, teacher_steps, student_steps, generator_steps;
	uint32_t steps, batch, hidden;
	double lr, momentum, beta;
	enum ppat_loss loss; /* of the generator */
};

/* How partners are answered that ask over our relations (methods 5.4). */
enum config_answer { CONFIG_ANSWER_NOTHING, CONFIG_ANSWER_SOFT, CONFIG_ANSWER_FACTS };

struct config_query {
	enum config_answer answer;	      /* where no rule fits */
	char *rules;			      /* config_answer_to() */
	uint32_t steps_per_day, rows_per_day; /* to a partner */
	uint32_t score_holders; /* masked scores of what so many hold, at least; 0: none */
	bool ways;		/* an answer says where each of its entities comes from */
};

struct config_privacy {
	double delta, epsilon_per_peer, epsilon_total;
	enum config_accountant accountant;
	enum config_useless useless_sessions;
	uint32_t reserve_labels; /* put on the ledger at a time */
	bool noisy_rows;	 /* own rows leave with noise alone, methods 3.6 */
	double release_epsilon, release_noise, release_clip; /* of a map, or of rows */
};

struct config_log { /* of a running agent */
	enum log_level level;
	enum log_format format;
};

struct config_http {
	char *listen; /* as config_http_place() reads it */
};

struct config {
	char *name;	 /* shown to partners; not an identity */
	char *listen;	 /* host:port to listen on; "off": outbound only */
	char *advertise; /* host:port told to others; "": the same as listen */
	struct config_model model;
	struct config_train train;
	struct config_eval eval;
	struct config_federation federation;
	struct config_rounds rounds;
	struct config_ppat ppat;
	struct config_privacy privacy;
	struct config_log log;
	struct config_http http;
	struct config_query query;
	uint64_t said[4];    /* bits of the keys that were set, by a file or config_set() */
	bool no_many_to_one; /* config_suit() has looked, and no relation of the graph is */
	char *suited;	     /* what the graph has decided and why, for the owner; NULL: nothing */
	/* Where the values came from: for errors.  NULL: not from a file. */
	struct config_source *source;
};

/* All defaults.  Free with config_release(). */
void config_init(struct config *c);
void config_release(struct config *c);

/* Every value against the limits of its key, and the rules that concern more than one key.
 * ERR_USAGE names the key, and file and line where the file says it; `where` stands for a file
 * where there is none. */
MUST_CHECK int config_check(const struct config *c, const char *where, struct err *e);
/* The same where the graph is not known yet: with a preset, whether it goes with what that chooses
 * for some graph; config_suit() and config_check() say whether for this one.  c is as it was. */
MUST_CHECK int config_check_before_graph(struct config *c, const char *where, struct err *e);

/* ---- single keys of a section, for code that varies or shows them ---- */

/* As if the file said so.  ERR_USAGE names the key and what is allowed, or known. */
MUST_CHECK int config_set(struct config *c, const char *section, const char *name,
			  const char *value, struct err *e);
/* Appends the value as it would stand in the file; it reads back as the same bits. */
MUST_CHECK int config_get(const struct config *c, const char *section, const char *name,
			  struct buf *out, struct err *e);
enum config_range { CONFIG_NO_RANGE, CONFIG_WHOLE, CONFIG_REAL };
/* Whether values may be taken from a range: whole numbers, others, or none. */
enum config_range config_range_of(const char *section, const char *name);

/* ---- what follows from settings ---- */

uint64_t config_ms(double seconds);
/* Of a round: with fewer than min_holders no row would move. */
uint32_t config_min_members(const struct config *c);
/* The teachers where so many rows are shared, and the noise on their votes: lambda or sigma. */
uint32_t config_teachers(const struct config *c, uint64_t rows);
double config_votes_noise(const struct config *c, uint32_t teachers);
/* The terms of a translation by labels that the settings give.  Widths, teachers, batch and noise
 * of *t are set before: a contract may have fixed them. */
void config_ppat_terms(const struct config *c, struct ppat_config *t);
/* ppat.mode paper: as published (methods 3.2), whatever the keys say of these. */
void config_fix_paper(struct config *c);

/* The settings of rounds, but for the host, the number and the widths of rows. */
void config_fed_settings(const struct config *c, struct fed_settings *out);
/* ERR_USAGE: these settings do not go together, or with the tables that are configured. */
MUST_CHECK int config_check_method(const struct config *c, const struct fed_settings *settings,
				   struct err *e);

/* With train.dp: the noise of a step, worked out from epsilon and train.epochs where the file
 * leaves it at 0; +infinity when none is enough (config_check() refuses that). */
double config_dp_noise(const struct config *c);
/* Rows that leave have noise, or all that leaves is charged by what the peer learns of it: so
 * nothing may leave beside them that is neither. */
bool config_rows_charged(const struct config *c);
/* Training as a learner wants it, that noise filled in; for the caller that charges for it. */
struct kge_train_config config_training(const struct config *c);

enum { CONFIG_SCORE_NAME = 32 };
/* With train.dp valid is not looked at, and a score is the number of private steps so far.  The
 * first word is of tables whose first rows followed the order of the triples: not private. */
#define CONFIG_SCORE_ORDERED "private_steps"
#define CONFIG_SCORE_PRIVATE "private_steps/2"
/* Whether a score of this name is of tables of private training, of either kind. */
bool config_score_is_private(const char *name);
/* The meaning of scores on valid under this config, "standard" or "standard/500" with a limit: two
 * scores compare only when these are equal. */
void config_score_name(const struct config *c, char out[CONFIG_SCORE_NAME]);

/* Noise multiplier of a release (dp/release.h); +infinity where no noise brings it to
 * release_epsilon. */
double config_release_noise(const struct config *c);

/* How the partner with these n keys, now and before, is answered that asks over this relation,
 * named as we call it. */
enum config_answer config_answer_to(const struct config *c, const uint8_t (*keys)[32], size_t n,
				    const char *relation);
/* A rule of query.rules: how one partner, or all, is answered over one relation, or all. */
struct config_rule {
	bool all_partners, all_relations;
	uint8_t key[32];      /* of the one partner */
	const char *relation; /* the one relation, as the text has it: */
	size_t relation_len;
};
/* The i-th of them; false: there is no such rule. */
bool config_rule(const struct config *c, size_t i, struct config_rule *out);
/* The most that anybody is answered over any relation. */
enum config_answer config_answer_most(const struct config *c);

const struct kge_model *config_model(const struct config *c);
/* ERR_USAGE, with the keys to change, when training a graph of so many names and triples of train
 * in memory takes more than there is or train.memory_mib, or a batch too much of it. */
MUST_CHECK int config_check_size(const struct config *c, uint32_t n_ent, uint32_t n_rel,
				 size_t triples, struct err *e);
/* The same when the tables alone take more than there is: for who does not train. */
MUST_CHECK int config_check_tables(const struct config *c, uint32_t n_ent, uint32_t n_rel,
				   struct err *e);
/* Whether entities of such a graph are trained in partitions (disk/), and then (bytes may be NULL)
 * how much memory that may take; 0: as the number of partitions has it. */
bool config_past_memory(const struct config *c, uint32_t n_ent, uint32_t n_rel, size_t triples,
			double *bytes);
double config_gamma(const struct config *c); /* what 0 stands for, too */
/* First tables of that model; kge_emb_free() them.  With train.dp their rows come from the secure
 * source (kge_dp_first_rows()), whatever r is. */
struct kge_emb *config_tables(const struct config *c, uint32_t n_ent, uint32_t n_rel,
			      struct rng *r);
/* Are tables of the model and the dimensions that the config names? */
bool config_fits(const struct config *c, const struct kge_emb *tables);
const struct kge_protocol *config_protocol(const struct config *c);

/* ---- what the graph decides ---- */

/* Replaces what the file leaves to the graph (model.preset, then auto) by what suits it, and says
 * so in c->suited; a key that was set stays, unless it says auto.
 * auto is of train alone, and of how scores ask (eval.protocol); a preset is of model, too, which
 * partners must agree on in rounds.  With
 * train.dp the graph is not looked at, for the choice would tell of it. */
void config_suit(struct config *c, const struct graph *g);
/* Is this key the preset's choice, and not the owner's word? */
bool config_preset_chose(const struct config *c, const char *section, const char *name);
/* Whose word kind and width of the model are: "agent.yaml says" or "model.preset chooses". */
const char *config_who_says_model(const struct config *c);
/* Replaces it by what suits any graph, for who compares several by equal settings. */
void config_suit_any(struct config *c);

/* Whether a score on valid is below what counting reaches there (agent_learner_floor()), as it may
 * be known, or NAN: then appends why that is said and what helps, for the owner.  g may be NULL
 * with NAN. */
bool config_below_floor(const struct config *c, const struct graph *g, double score, double floor,
			struct buf *why);

/* "host:port" or "[v6]:port" into its parts; host has room for 256 bytes.
 * ERR_USAGE without a port, or with one that is no number in 0..65535. */
MUST_CHECK int config_address(const char *text, char host[256], uint16_t *port, struct err *e);
/* Does it stand for every address of a machine, as 0.0.0.0 and :: do?  Who dials it reaches itself.
 * However it is written; a name is not looked up. */
bool config_is_wildcard(const char *host);
/* What others are told of where this agent listens: advertise, else the address of listen where
 * that is one for other machines; "": they cannot call it. */
const char *config_told_address(const struct config *c);

/* What http.listen says: nowhere, an address of this machine alone, or the path of a socket. */
enum config_http_kind { CONFIG_HTTP_OFF, CONFIG_HTTP_LOOPBACK, CONFIG_HTTP_SOCKET };
struct config_http_place {
	enum config_http_kind kind;
	char host[256]; /* LOOPBACK: 127.x.y.z or ::1 */
	uint16_t port;
	const char *path; /* SOCKET: the text itself; relative to the agent's folder */
};
/* ERR_USAGE: an address that other machines reach, a name that is not localhost, or neither. */
MUST_CHECK int config_http_place(const char *text, struct config_http_place *out, struct err *e);

#endif

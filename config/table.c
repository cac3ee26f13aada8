#include "config/table_internal.h"

#include <string.h>

#include "dp/lattice.h"

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })
const char *const config_preset_words[] = { "none", "fast", "balanced", "best", NULL };

#define AT(member) offsetof(struct config, member)

const struct config_key config_keys[CONFIG_KEYS] = {
	{ NULL, "name", KEY_AGENT_NAME, AT(name), "agent", 0, 0, NULL,
	  "shown to partners; a peer is known by its key, never by this" },
	{ NULL, "listen", KEY_ADDRESS, AT(listen), "0.0.0.0:7447", 0, 0, NULL,
	  "host:port to listen on; port 0: any free one; off: only call others" },
	{ NULL, "advertise", KEY_ADDRESS, AT(advertise), "", 0, 0, NULL,
	  "host:port by which others reach this agent; empty: the address of listen, where other "
	  "machines can call that: not 0.0.0.0, a loopback address or port 0" },

	{ "model", "preset", KEY_WORD, AT(model.preset), "none", 0, 0, config_preset_words,
	  "fast, balanced, best: model and training by the size of the graph, for all keys that do "
	  "not stand in this file (fkge config get says which, and why); rounds: members must come "
	  "to the same model" },
	{ "model", "kind", KEY_NAME, AT(model.kind), "transe", 0, 0,
	  WORDS("transe", "transe_l2", "transh", "transh_l2", "transr", "transr_l2", "transd",
		"transd_l2", "distmult", "complex", "rotate", "distmult_reciprocal",
		"complex_reciprocal"),
	  "embedding model; _l2: with that distance, else L1; reciprocal: a relation has a row "
	  "for each side that is asked" },
	{ "model", "dim", KEY_COUNT, AT(model.dim), "128", 1, 4096, NULL,
	  "numbers in a row (complex numbers for complex and rotate)" },
	{ "model", "rel_dim", KEY_COUNT, AT(model.rel_dim), "0", 0, 4096, NULL,
	  "transr, transd: dimension of the relations' spaces; 0: dim" },
	{ "model", "gamma", KEY_NUMBER, AT(model.gamma), "0", 0, 1000, NULL,
	  "margin in the score of distance models; sets the range of the first rows; 0: 1 with "
	  "_l2, "
	  "else 10; rounds of a member with another one are declined" },

	{ "train", "epochs", KEY_COUNT, AT(train.epochs), "100", 1, 1e6, NULL,
	  "passes over the train split, at most" },
	{ "train", "optimizer", KEY_WORD, AT(train.kge.optimizer), "adam", 0, 0,
	  WORDS("sgd", "adagrad", "adam_dense", "adam", "momentum"),
	  "adam moves only the rows of a batch, adam_dense all rows" },
	{ "train", "momentum", KEY_NUMBER32, AT(train.kge.momentum), "0.9", 0, 0.9999, NULL,
	  "of the optimizer of that name" },
	{ "train", "schedule", KEY_WORD, AT(train.kge.schedule), "constant", 0, 0,
	  WORDS("constant", "step", "linear", "cosine"),
	  "of lr: step: a tenth from the middle on; others: down to a hundredth" },
	{ "train", "schedule_epochs", KEY_COUNT, AT(train.kge.schedule_epochs), "100", 1, 1e6, NULL,
	  "epochs that the schedule takes; after them lr stays" },
	{ "train", "update", KEY_WORD, AT(train.kge.update), "exact", 0, 0,
	  WORDS("exact", "racing"),
	  "racing: a step at each true triple, threads wait for nobody (shared_chunk 0)" },
	{ "train", "lr", KEY_NUMBER32, AT(train.kge.lr), "0.001", 1e-9, 100, NULL,
	  "learning rate of a step; with sgd, racing wants about lr / batch" },
	{ "train", "negatives", KEY_COUNT, AT(train.kge.negatives), "64", 0, 65534, NULL,
	  "wrong triples drawn for each true one; 0: all entities (softmax)" },
	{ "train", "batch", KEY_COUNT, AT(train.kge.batch), "256", 1, 32768, NULL,
	  "true triples in one step; queries, where negatives is 0" },
	{ "train", "loss", KEY_WORD, AT(train.kge.loss), "self_adversarial", 0, 0,
	  WORDS("self_adversarial", "logistic", "margin", "softmax"),
	  "softmax: against all drawn (or all) entities at once; others: pair by pair" },
	{ "train", "margin", KEY_NUMBER32, AT(train.kge.margin), "1", 0, 1000, NULL,
	  "of the margin loss (not gamma, which is in the score)" },
	{ "train", "temperature", KEY_NUMBER32, AT(train.kge.temperature), "1", 0, 100, NULL,
	  "of the self-adversarial weights" },
	{ "train", "reg", KEY_WORD, AT(train.kge.reg), "none", 0, 0,
	  WORDS("none", "l2", "l3", "dura"),
	  "regularizer over the rows of true triples (l3: N3 of Lacroix et al.; dura: with "
	  "negatives "
	  "0)" },
	{ "train", "reg_weight", KEY_NUMBER32, AT(train.kge.reg_weight), "0", 0, 1000, NULL,
	  "of the regularizer; 0: none" },
	{ "train", "relation_weight", KEY_NUMBER32, AT(train.kge.relation_weight), "0", 0, 1000,
	  NULL,
	  "of guessing the relation from both entities, beside the softmax over all entities" },
	{ "train", "query_answers", KEY_COUNT, AT(train.kge.query_answers), "0", 0, 65536, NULL,
	  "of a query against all entities in one batch at most, so that a popular one rules none; "
	  "0: all; 4 to 8 gain on dense graphs, for 1.2 to 1.5 times the time" },
	{ "train", "rare_weight", KEY_NUMBER32, AT(train.kge.rare_weight), "1", 1e-6, 1, NULL,
	  "what an answer weighs, against all entities, whose entity is in next to no triple of "
	  "train; "
	  "the most frequent one weighs 1. 0.1 gains on WN18RR, and not on every sparse graph" },
	{ "train", "precision", KEY_WORD, AT(train.kge.precision), "float32", 0, 0,
	  WORDS("float32", "bfloat16"),
	  "of products against all entities, and relations; bfloat16 is faster on processors with "
	  "AVX-512 BF16, and most with AMX" },
	{ "train", "corrupt", KEY_WORD, AT(train.kge.corrupt), "auto", 0, 0,
	  WORDS("alternate", "tail", "both"),
	  "the side at which negatives are drawn; auto, here and in sampling: by the graph's "
	  "relations and eval.protocol (fkge import says how); train.dp, experiment: alternate, "
	  "uniform" },
	{ "train", "sampling", KEY_WORD, AT(train.kge.sampling), "auto", 0, 0,
	  WORDS("uniform", "bernoulli", "typed"),
	  "bernoulli draws the side by its relation; typed: entities that train has there" },
	{ "train", "draws", KEY_WORD, AT(train.kge.draws), "anew", 0, 0, WORDS("anew", "once"),
	  "once: batches and negatives are those of the first epoch (FedLU's code)" },
	{ "train", "subsampling", KEY_SWITCH, AT(train.kge.subsampling), "false", 0, 0, NULL,
	  "true triples of frequent queries weigh less (RotatE)" },
	{ "train", "filtered", KEY_SWITCH, AT(train.kge.filtered), "true", 0, 0, NULL,
	  "negatives are never triples of train" },
	{ "train", "normalize", KEY_SWITCH, AT(train.kge.normalize), "false", 0, 0, NULL,
	  "keep entity rows in the unit ball" },
	{ "train", "shared_chunk", KEY_COUNT, AT(train.kge.shared_chunk), "16", 0, 65536, NULL,
	  "true triples that share one block of negatives; 0: none; 64 is faster than 16, most so "
	  "with many negatives" },
	{ "train", "threads", KEY_COUNT, AT(train.kge.threads), "2", 1, 64, NULL,
	  "a run repeats bit for bit with its number of threads; racing, only with 1" },
	{ "train", "seed", KEY_SEED, AT(train.kge.seed), "1", 0, 0, NULL,
	  "of first rows, order and negatives, but for train.dp; never of what protects privacy" },
	{ "train", "eval_every", KEY_COUNT, AT(train.eval_every), "10", 1, 1e6, NULL,
	  "epochs between looks at the valid split" },
	{ "train", "patience", KEY_COUNT, AT(train.patience), "5", 0, 1e6, NULL,
	  "looks without a better score before training stops; 0: never stops" },
	{ "train", "partitions", KEY_COUNT, AT(train.partitions), "0", 0, 512, NULL,
	  "fkge train keeps entities in so many files and some of them in memory; 0: so does it "
	  "where training takes more than memory_mib" },
	{ "train", "memory_mib", KEY_COUNT, AT(train.memory_mib), "0", 0, 1e8, NULL,
	  "MiB that fkge train may take; 0: what there is" },
	{ "train", "command", KEY_TEXT, AT(train.command), "", 0, 0, NULL,
	  "what fkge serve trains by in place of itself: a program and its words, of which "
	  "{folder} "
	  "and {epochs} are filled in, as in mpirun -n 4 fkge -d {folder} train" },

	{ "train.dp", "epsilon", KEY_NUMBER, AT(train.kge.dp.epsilon), "0", 0, 1000, NULL,
	  "above 0: private training (fkge train --help), which never costs more than this" },
	{ "train.dp", "delta", KEY_NUMBER, AT(train.kge.dp.delta), "1e-05", 1e-15, 0.1, NULL,
	  "at which epsilon is counted; well below 1 / triples" },
	{ "train.dp", "clip", KEY_NUMBER, AT(train.kge.dp.clip), "1", 1e-6, 1e6, NULL,
	  "L2 norm to which the gradient of a triple is clipped" },
	{ "train.dp", "noise", KEY_NUMBER, AT(train.dp_noise), "0", 0, 1e6, NULL,
	  "in clips, from 0.3 on; 0: just enough for train.epochs, leaving nothing for rounds: "
	  "such an agent takes no rows in" },
	{ "train.dp", "rate", KEY_NUMBER, AT(train.kge.dp.rate), "0.1", 1e-6, 1, NULL,
	  "with which a step takes each triple; an epoch is 1 / rate steps" },
	{ "train.dp", "triples", KEY_COUNT, AT(train.kge.dp.triples), "0", 0, 4e9, NULL,
	  "number of triples that may be known; 0: those of train, to two digits (which one "
	  "triple more may change)" },

	{ "eval", "protocol", KEY_NAME, AT(eval.protocol), "standard", 0, 0,
	  WORDS("standard", "tail", "fedlu", "fede", "openke"),
	  "how answers are ranked; fkge eval says what each means" },
	{ "eval", "valid_limit", KEY_COUNT, AT(eval.valid_limit), "0", 0, 1e9, NULL,
	  "valid triples that backtracking looks at; 0: all" },

	{ "federation", "mode", KEY_WORD, AT(federation.mode), "pairs", 0, 0,
	  WORDS("pairs", "rounds"),
	  "pairs: rows are translated between two agents; rounds: rows of equal names travel as "
	  "they are, or in masked sums (section rounds)" },
	{ "federation", "translator", KEY_WORD, AT(federation.translator), "procrustes", 0, 0,
	  WORDS("procrustes", "ppat", "map"),
	  "how a partner's rows are brought into this agent's space; ppat and map spend of "
	  "privacy" },
	{ "federation", "roles", KEY_WORD, AT(federation.roles), "both", 0, 0,
	  WORDS("both", "host", "client"),
	  "host: takes partners' rows in and never sends its own; client: sends its rows and takes "
	  "none in" },
	{ "federation", "accept", KEY_WORD, AT(federation.accept), "listed", 0, 0,
	  WORDS("listed", "invited"),
	  "listed: the owner accepts each peer; invited: so does an invitation (fkge invite), for "
	  "one "
	  "key and 30 days unless it says else; invited needs the federation's secret (psk_file)" },
	{ "federation", "introduce", KEY_SWITCH, AT(federation.introduce), "false", 0, 0, NULL,
	  "tell each partner the names, keys and addresses of the others" },
	{ "federation", "names_max", KEY_COUNT, AT(federation.names.max), "0", 0, CONFIG_NAMES_MAX,
	  NULL,
	  "names that a partner may put into an intersection, each of which may be a guess; 0: 20 "
	  "times as many as ours, 10000 at least" },
	{ "federation", "names_every_s", KEY_NUMBER, AT(federation.names.every_s), "600", 0,
	  86400 * 30, NULL, "seconds between two intersections with the same partner, at least" },
	{ "federation", "share", KEY_WORD, AT(federation.share), "entities", 0, 0,
	  WORDS("entities", "relations", "both"), "rows that are translated" },
	{ "federation", "aligned_share", KEY_NUMBER, AT(federation.aligned.share), "1", 0.001, 1,
	  NULL, "part of the aligned rows that is used" },
	{ "federation", "aligned_draw", KEY_WORD, AT(federation.aligned.draw), "pair", 0, 0,
	  WORDS("pair", "session"),
	  "which rows that part is; pair: the same in all sessions with a partner, as in the "
	  "paper; "
	  "session: others in each, so that in the end all have been used" },
	{ "federation", "row_bits", KEY_WORD, AT(federation.aligned.bits), "16", 0, 0,
	  WORDS("16", "32"),
	  "of each value of a partner's rows on their way to us, procrustes without noise; 16 "
	  "halves what "
	  "travels, and is off by a 65,534th of its row's largest value at most" },
	{ "federation", "aggregate", KEY_WORD, AT(federation.aggregate), "mean", 0, 0,
	  WORDS("average", "replace", "weighted", "mean"),
	  "what becomes of an aligned row; mean: own and partners' rows weigh the same" },
	{ "federation", "queue", KEY_WORD, AT(federation.queue), "together", 0, 0,
	  WORDS("together", "each"), "train once after all waiting partners, or after each" },
	{ "federation", "student", KEY_WORD, AT(federation.student), "client", 0, 0,
	  WORDS("client", "host"), "ppat: where the student runs; host is the paper's placement" },
	{ "federation", "unit_rows", KEY_SWITCH, AT(federation.unit_rows), "false", 0, 0, NULL,
	  "bring every row to length 1 before they meet, those of a partner as well; as client "
	  "none "
	  "leaves with another length, whatever the host has set" },
	{ "federation", "center_rows", KEY_SWITCH, AT(federation.center_rows), "false", 0, 0, NULL,
	  "procrustes: subtract the mean row before they meet" },
	{ "federation", "neighbours", KEY_SWITCH, AT(federation.neighbours), "false", 0, 0, NULL,
	  "send virtual neighbours: discloses edges of the graph" },
	{ "federation", "reset_optimizer", KEY_SWITCH, AT(federation.reset_optimizer), "true", 0, 0,
	  NULL, "forget the optimizer's moments at each round, as the papers do" },
	{ "federation", "after", KEY_WORD, AT(federation.after), "keep", 0, 0,
	  WORDS("keep", "back"),
	  "after a round of pairs without a better score; keep: go on from what it has come to, "
	  "and serve that; back: restore the best tables and serve those, as the paper does" },
	{ "federation", "weight", KEY_WORD, AT(federation.weight), "valid", 0, 0,
	  WORDS("valid", "all"),
	  "how much of what partners bring is taken in; valid: none, a quarter, ... all, whichever "
	  "scores best; all: all of it, as the papers do, and always under train.dp, after: back, "
	  "or when a partner's frame is joined; off, in rounds, with fedsvd, and with fedlu, "
	  "fedkd, "
	  "fedcqa and PFedEG's reg_only, which average nothing into an agent's own table" },
	{ "federation", "weight_from", KEY_COUNT, AT(federation.few.weight_from), "10", 1, 1e6,
	  NULL,
	  "of an agent's own rounds the first in which valid decides the weight and, in rounds, "
	  "who is judged; before, all is taken in (in pairs, unless all came with noise), since "
	  "any mean disturbs tables that are new to each other. In rounds a copy trains alone "
	  "until then, and is in that choice; while all that came catches up with it the choice "
	  "waits. With frame: common they count since it took that frame" },
	{ "federation", "bound_rows", KEY_SWITCH, AT(federation.few.bound_rows), "true", 0, 0, NULL,
	  "in pairs: a partner's row that is further from ours than twice the length of ours, or "
	  "of our typical row where that is longer, is taken for one at this distance; a virtual "
	  "neighbour longer than twice our typical row for one of that length" },
	{ "federation", "judge", KEY_SWITCH, AT(federation.few.judge), "true", 0, 0, NULL,
	  "each partner's rows are scored on valid, without one after another; who hurts is left "
	  "out of that round. In pairs every fourth round, a partner that is doubted in each. "
	  "Never under train.dp" },
	{ "federation", "quarantine", KEY_COUNT, AT(federation.few.quarantine), "8", 0, 1e6, NULL,
	  "judged rounds in a row that a partner's rows clearly hurt, or more with some between, "
	  "after "
	  "which nothing of it is taken in until the owner says so (fkge peer trust); 0: never" },
	{ "federation", "frame", KEY_WORD, AT(federation.frame), "session", 0, 0,
	  WORDS("session", "common"),
	  "keep, procrustes: axes on which rows travel; session: rotated in secret, and mapped in "
	  "each session; common: partners move to one frame (other models than TransE: begin in "
	  "one), and rows go as they are" },
	{ "federation", "patience", KEY_COUNT, AT(federation.patience), "10", 0, 1e6, NULL,
	  "keep: rounds without a better score before this agent takes no more rows in, and only "
	  "serves, until a partner comes that no round has had; 0: never" },
	{ "federation", "epochs_per_round", KEY_COUNT, AT(federation.epochs_per_round), "3", 1, 1e6,
	  NULL, "of training after an aggregation" },
	{ "federation", "max_rounds", KEY_COUNT, AT(federation.max_rounds), "0", 0, 1e6, NULL,
	  "rounds, its own among them, before this agent asks for no more, nor trains by itself; "
	  "0: "
	  "no limit" },
	{ "federation", "local_rounds", KEY_COUNT, AT(federation.local_rounds), "0", 0, 1e6, NULL,
	  "after its start and after each round with partners: rounds of its own before it sleeps, "
	  "each after gather_s without news; at most patience in a row without a better score" },
	{ "federation", "control", KEY_SWITCH, AT(federation.control), "false", 0, 0, NULL,
	  "train the same epochs without partners, when idle (fkge report); doubles the training" },
	{ "federation", "gather_s", KEY_NUMBER, AT(federation.gather_s), "5", 0, 86400, NULL,
	  "seconds that a round waits for further partners, after the first, before it trains" },
	{ "federation", "partners", KEY_COUNT, AT(federation.few.partners), "4", 0, 256, NULL,
	  "whose rows a round takes in, at most: of more with news some at random, by what they "
	  "have brought before; 0: all" },
	{ "federation", "links", KEY_COUNT, AT(federation.few.links), "16", 0, 256, NULL,
	  "pairs: to partners, that this agent dials and keeps, at most; of more it chooses as for "
	  "partners, and exchanges one after each round and each sleep, in 5 s one at most; 0: to "
	  "all" },
	{ "federation", "sleep_s", KEY_NUMBER, AT(federation.sleep_s), "60", 0, 86400 * 30, NULL,
	  "seconds of sleep before it tells partners again what it has; 0: until a signal" },
	{ "federation", "sessions", KEY_COUNT, AT(federation.sessions), "8", 1, CONFIG_SESSIONS_MAX,
	  NULL,
	  "at a time, also while it trains: under after: keep with procrustes half of them as "
	  "host, "
	  "else one; 1: one, and nothing beside it" },
	{ "federation", "lease_s", KEY_NUMBER, AT(federation.lease_s), "60", 0.05, 86400, NULL,
	  "a session in which the peer is silent for so long is over" },
	{ "federation", "session_s", KEY_NUMBER, AT(federation.session_s), "3600", 1, 86400 * 30,
	  NULL, "a session is over after this in any case" },
	{ "federation", "psk_file", KEY_TEXT, AT(federation.psk_file), CONFIG_PSK_FILE, 0, 0, NULL,
	  "the federation's secret (fkge init --secret, fkge secret, fkge join); a file of "
	  "another name must be there, this one need not" },

	{ "rounds", "method", KEY_NAME, AT(rounds.method), "fede", 0, 0, fed_method_names,
	  "what travels and what becomes of it; all agents say the same" },
	{ "rounds", "epochs", KEY_COUNT, AT(rounds.epochs), "3", 1, 1e6, NULL,
	  "of training, a round" },
	{ "rounds", "first_epochs", KEY_COUNT, AT(rounds.first_epochs), "0", 0, 1e6, NULL,
	  "of training alone, before the first round; 0: none, and so with fedsvd, whose rows "
	  "stay as far apart as they begin" },
	{ "rounds", "eval_every", KEY_COUNT, AT(rounds.eval_every), "1", 1, 1e6, NULL,
	  "rounds between looks at valid; the last of max is looked at, too" },
	{ "rounds", "patience", KEY_COUNT, AT(rounds.patience), "0", 0, 1e6, NULL,
	  "looks without a better score, after which it proposes no more; 0: never" },
	{ "rounds", "max", KEY_COUNT, AT(rounds.max), "0", 0, 1e9, NULL,
	  "rounds, from the first that this agent takes part in, also those that it misses; 0: "
	  "no limit" },
	{ "rounds", "min_members", KEY_COUNT, AT(rounds.min_members), "2", 2, FED_MEMBERS_MAX, NULL,
	  "agents, this one among them, without which it proposes no round and is in none of "
	  "others; never fewer than min_holders" },
	{ "rounds", "fraction", KEY_NUMBER, AT(rounds.fraction), "1", 0.001, 1, NULL,
	  "of the members that are in a round, others in the next; all agents say the same" },
	{ "rounds", "propose", KEY_SWITCH, AT(rounds.propose), "true", 0, 0, NULL,
	  "may propose rounds; else only joins" },
	{ "rounds", "stop_when_worse", KEY_COUNT, AT(rounds.stop_when_worse), "3", 0, 16, NULL,
	  "looks that show that rounds hurt, of twice as many, after which it leaves them with its "
	  "best tables (fkge rounds resume); 0: never" },
	{ "rounds", "compare_rounds", KEY_COUNT, AT(rounds.compare_rounds), "20", 0, 1e6, NULL,
	  "looks from the first on for which a copy trains alone, too, to compare with, and to be "
	  "the best tables where it is ahead; 0: only once averaging lowers the score, and for "
	  "federation.weight_from" },
	{ "rounds", "compare_limit", KEY_COUNT, AT(rounds.compare_limit), "500", 0, 1e9, NULL,
	  "valid triples on which tables are compared before and after averaging; 0: all" },
	{ "rounds", "bound_rows", KEY_SWITCH, AT(rounds.bound_rows), "true", 0, 0, NULL,
	  "rows far from the others', or that point elsewhere, are kept out: a home leaves out "
	  "such a member's, cuts of the rest what is further from its own than twice the median "
	  "and than a quarter of a row's length, the further the more, and leaves out what is far "
	  "beyond; answers of such a home are not taken, others are cut at the bound or left out" },
	{ "rounds", "every_s", KEY_NUMBER, AT(rounds.every_s), "0", 0, 86400 * 30, NULL,
	  "seconds of rest after a round" },
	{ "rounds", "equal_start", KEY_SWITCH, AT(rounds.equal_start), "true", 0, 0, NULL,
	  "shared rows begin alike everywhere, as if a server had drawn them; a member without "
	  "it begins as one that has trained alone" },
	{ "rounds", "start_seed", KEY_SEED, AT(rounds.start_seed), "0", 0, 0, NULL,
	  "of these rows; rounds of a member with another one are declined" },
	{ "rounds", "topology", KEY_WORD, AT(rounds.topology), "sharded", 0, 0,
	  WORDS("sharded", "hosted"),
	  "sharded: every row has its home at one of its holders; hosted: one member is home to "
	  "all" },
	{ "rounds", "host", KEY_TEXT, AT(rounds.host), "", 0, 0, NULL,
	  "hosted: the id of a partner, or a name that one alone has; own: this agent" },
	{ "rounds", "min_holders", KEY_COUNT, AT(rounds.min_holders), "2", 2, FED_MEMBERS_MAX, NULL,
	  "rows that fewer agents hold stay at home; with secret_bits take 3" },
	{ "rounds", "secret_bits", KEY_WORD, AT(rounds.secret), "0", 0, 0, WORDS("0", "32", "64"),
	  "of a masked number: homes see sums alone (fed/README.md); 0: homes see rows" },
	{ "rounds", "secret_clip", KEY_NUMBER, AT(rounds.secret_clip), "8", 0.001, 1e6, NULL,
	  "masked numbers are cut at plus and minus this" },
	{ "rounds", "join_s", KEY_NUMBER, AT(rounds.join_s), "30", 0.001, 86400, NULL,
	  "seconds for answers to a proposal; whose turn it is to propose has twice as long" },
	{ "rounds", "train_s", KEY_NUMBER, AT(rounds.train_s), "3600", 0.001, 86400, NULL,
	  "at most so many seconds for the training of a round; proposed are 20 s and three times "
	  "what training takes at the slowest; who needs longer misses from it" },
	{ "rounds", "stage_s", KEY_NUMBER, AT(rounds.stage_s), "300", 0.001, 86400, NULL,
	  "at most so many seconds for rows to their homes, and for answers; proposed are 20 s and "
	  "what a slow link takes" },

	{ "ppat", "mode", KEY_WORD, AT(ppat.mode), "budget", 0, 0, WORDS("paper", "budget"),
	  "budget: labels are kept and learned from again; paper: as published, whatever the "
	  "keys below say of these: 4 teachers, laplace 0.05, batches of 32, each label used "
	  "once" },
	{ "ppat", "teachers", KEY_COUNT, AT(ppat.teachers), "0", 0, 1000, NULL,
	  "0: one for each 50 aligned rows, from 4 to 250" },
	{ "ppat", "noise", KEY_WORD, AT(ppat.noise), "gaussian", 0, 0, WORDS("laplace", "gaussian"),
	  "added to the votes of the teachers" },
	{ "ppat", "lambda", KEY_NUMBER, AT(ppat.lambda), "0.05", 1e-6, 20, NULL,
	  "laplace: noise of scale 1/lambda" },
	{ "ppat", "sigma", KEY_NUMBER, AT(ppat.sigma), "0", 0, 1e6, NULL,
	  "gaussian: standard deviation; 0: half as many as teachers, at least 40" },
	{ "ppat", "steps", KEY_COUNT, AT(ppat.steps), "1000", 1, 1e7, NULL,
	  "batches of labels, at most" },
	{ "ppat", "batch", KEY_COUNT, AT(ppat.batch), "32", 1, PPAT_BATCH_MAX, NULL,
	  "rows in a batch" },
	{ "ppat", "pool", KEY_COUNT, AT(ppat.pool), "256", 0, 4096, NULL,
	  "budget: generated rows sent with a batch, as far as they fit into a message; teachers "
	  "train on those that are not asked about; 0: the batch alone" },
	{ "ppat", "teacher_steps", KEY_COUNT, AT(ppat.teacher_steps), "20", 1, 1000, NULL,
	  "budget: of each teacher before it votes on a batch" },
	{ "ppat", "student_steps", KEY_COUNT, AT(ppat.student_steps), "100", 1, 10000, NULL,
	  "budget: of the student after a batch, on all labels so far; partners refuse a batch "
	  "that "
	  "takes the client more than 1e12 operations" },
	{ "ppat", "generator_steps", KEY_COUNT, AT(ppat.generator_steps), "1", 1, 1000, NULL,
	  "budget: of the translation after a batch; more of them turn it further, also away "
	  "from a good one" },
	{ "ppat", "hidden", KEY_COUNT, AT(ppat.hidden), "256", 1, 1024, NULL,
	  "units of teachers and student" },
	{ "ppat", "lr", KEY_NUMBER, AT(ppat.lr), "0.02", 1e-9, 10, NULL, "of the translation" },
	{ "ppat", "momentum", KEY_NUMBER, AT(ppat.momentum), "0.9", 0, 0.9999, NULL,
	  "of the translation" },
	{ "ppat", "beta", KEY_NUMBER, AT(ppat.beta), "0.01", 0, 0.5, NULL,
	  "pull of the translation towards an orthogonal map" },
	{ "ppat", "loss", KEY_WORD, AT(ppat.loss), "saturating", 0, 0,
	  WORDS("saturating", "non_saturating"),
	  "of the translation, mean log(1 - S) or -mean log S for the student's S; the first is "
	  "the paper's" },
	{ "query", "answer", KEY_WORD, AT(query.answer), "nothing", 0, 0,
	  WORDS("nothing", "soft", "facts"),
	  "what partners that ask over our relations are answered: nothing; soft: how true our "
	  "tables find an edge; facts: our edges as true, the others so" },
	{ "query", "rules", KEY_TEXT, AT(query.rules), "", 0, 0, NULL,
	  "for some relations and partners otherwise: ANSWER PARTNER RELATION; ...  PARTNER: a "
	  "whole id, or *; RELATION: as we call it, or *; the first that fits holds" },
	{ "query", "steps_per_day", KEY_COUNT, AT(query.steps_per_day), "200", 0, 1e6, NULL,
	  "steps answered, or worked at, for a partner in a day (UTC)" },
	{ "query", "rows_per_day", KEY_COUNT, AT(query.rows_per_day), "2000", 0, 1e9, NULL,
	  "entities that answers to a partner name in a day" },
	{ "query", "score_holders", KEY_COUNT, AT(query.score_holders), "0", 0, 64, NULL,
	  "members of rounds that train an encoder of queries get our scores under masks, of what "
	  "at least so many of them hold, who asks and we among them: 3 or more, for with 2 they "
	  "are bare; 0: no scores" },
	{ "query", "ways", KEY_SWITCH, AT(query.ways), "true", 0, 0, NULL,
	  "an answer says from which of the entities asked about each of its own comes" },

	{ "privacy", "delta", KEY_NUMBER, AT(privacy.delta), "1e-5", 1e-15, 0.1, NULL,
	  "the delta of every epsilon; well below 1 / shared rows" },
	{ "privacy", "epsilon_per_peer", KEY_NUMBER, AT(privacy.epsilon_per_peer), "2.0", 1e-6,
	  1000, NULL, "cap of what one peer may cost" },
	{ "privacy", "epsilon_total", KEY_NUMBER, AT(privacy.epsilon_total), "8.0", 1e-6, 1000,
	  NULL, "cap of what all peers together may cost, retraining included" },
	{ "privacy", "accountant", KEY_WORD, AT(privacy.accountant), "exact", 0, 0,
	  WORDS("exact", "gnmax", "pld"),
	  "by what the caps are judged; pld is tighter and buys more labels, but partners "
	  "whose program is older than it refuse such a contract" },
	{ "privacy", "useless_sessions", KEY_WORD, AT(privacy.useless_sessions), "refuse", 0, 0,
	  WORDS("refuse", "spend"),
	  "sessions whose labels or map would buy nothing useful (fkge ledger quote says so): "
	  "refuse to host them, or spend on them all the same" },
	{ "privacy", "reserve_labels", KEY_COUNT, AT(privacy.reserve_labels), "2048", 1, 1e6, NULL,
	  "labels put on the ledger at a time, before any is drawn; a crash leaves as many "
	  "spent, or half as many again" },
	{ "privacy", "noisy_rows", KEY_SWITCH, AT(privacy.noisy_rows), "false", 0, 0, NULL,
	  "own rows leave clipped and with noise, one release a session; partners must use "
	  "procrustes" },
	{ "privacy", "release_epsilon", KEY_NUMBER, AT(privacy.release_epsilon), "1", 0.05, 100,
	  NULL, "epsilon of one release: a map (translator map), or noisy rows" },
	{ "privacy", "release_noise", KEY_NUMBER, AT(privacy.release_noise), "0", 0,
	  DP_MULTIPLIER_MAX, NULL,
	  "noise of a release over its sensitivity; 0: as release_epsilon wants" },
	{ "privacy", "release_clip", KEY_NUMBER, AT(privacy.release_clip), "1", 0.001, 100, NULL,
	  "length that rows are clipped to before a release; map, unit_rows: of rows of length 1" },

	{ "log", "level", KEY_WORD, AT(log.level), "info", 0, 0,
	  WORDS("error", "warn", "info", "debug"),
	  "lines of a running agent's log from this level on; -q and -v go before it" },
	{ "log", "format", KEY_WORD, AT(log.format), "text", 0, 0, WORDS("text", "json"),
	  "of these lines; json: one object a line; systemd's journal gets a priority before "
	  "each" },

	{ "http", "listen", KEY_TEXT, AT(http.listen), "off", 0, 0, NULL,
	  "where programs and browsers of this machine may ask: 127.0.0.1:7448, [::1]:7448, or the "
	  "path of a Unix socket; nothing that other machines reach; off: nowhere" },
};

/* The old name of a key is read, with a warning (config/read.c). */
static const struct config_old_key old_keys[] = {
	{ "federation", "rows_share", "aligned_share" },
};

enum { OLD_KEYS = sizeof(old_keys) / sizeof(old_keys[0]) };

static const struct config_auto autos[] = {
	{ AT(train.kge.corrupt), AT(train.corrupt_auto), "alternate" },
	{ AT(train.kge.sampling), AT(train.sampling_auto), "uniform" },
};

const struct config_auto *config_key_auto(const struct config_key *k)
{
	for (size_t i = 0; i < sizeof(autos) / sizeof(autos[0]); i++)
		if (autos[i].key == k->offset)
			return &autos[i];
	return NULL;
}

/* ---- constants of the method of rounds ---- */

bool config_key_constant(const struct config *c, size_t i, struct config_key *out)
{
	const struct fed_method *m = fed_method_find(c->rounds.method);

	if (i >= FED_VALUES_MAX || m->constant[i].key == NULL)
		return false;
	*out = (struct config_key){
		.section = "rounds",
		.name = m->constant[i].key,
		.kind = KEY_NUMBER,
		.offset = AT(rounds.value) + i * sizeof(double),
		.min = m->constant[i].min,
		.max = m->constant[i].max,
		.help = m->constant[i].help,
	};
	return true;
}

bool config_key_find_constant(const struct config *c, const char *name, struct config_key *out)
{
	for (size_t i = 0; config_key_constant(c, i, out); i++)
		if (strcmp(out->name, name) == 0)
			return true;
	return false;
}

bool config_key_is_constant(const char *name)
{
	for (size_t m = 0; fed_methods[m] != NULL; m++)
		for (size_t i = 0; i < FED_VALUES_MAX && fed_methods[m]->constant[i].key != NULL;
		     i++)
			if (strcmp(fed_methods[m]->constant[i].key, name) == 0)
				return true;
	return false;
}

/* ---- finding ---- */

const char *config_section_within(const char *s, const char *outer)
{
	size_t n = outer != NULL ? strlen(outer) : 0;

	if (s == NULL || (outer != NULL && (strncmp(s, outer, n) != 0 || s[n] != '.')))
		return NULL;
	s += outer != NULL ? n + 1 : 0;
	return strchr(s, '.') == NULL ? s : NULL;
}

bool config_same_section(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

const struct config_key *config_key_find(const char *section, const char *name)
{
	for (size_t i = 0; i < CONFIG_KEYS; i++)
		if (config_same_section(config_keys[i].section, section) &&
		    strcmp(config_keys[i].name, name) == 0)
			return &config_keys[i];
	return NULL;
}

const char *config_key_section(const char *outer, const char *name)
{
	for (size_t i = 0; i < CONFIG_KEYS; i++) {
		const char *inner = config_section_within(config_keys[i].section, outer);

		if (inner != NULL && strcmp(inner, name) == 0)
			return config_keys[i].section;
	}
	return NULL;
}

void config_key_known(struct buf *out, const struct config *c, const char *section)
{
	const char *last = NULL;
	struct config_key k;

	for (size_t i = 0; i < CONFIG_KEYS; i++) {
		const char *s = config_keys[i].section, *inner = config_section_within(s, section);

		if (section != NULL ? s != NULL && strcmp(s, section) == 0 : s == NULL)
			buf_printf(out, "%s%s", out->len > 0 ? ", " : "", config_keys[i].name);
		else if (s != NULL && inner != NULL && (last == NULL || strcmp(s, last) != 0))
			buf_printf(out, "%s%s", out->len > 0 ? ", " : "", inner);
		last = s;
	}
	for (size_t i = 0;
	     section != NULL && strcmp(section, "rounds") == 0 && config_key_constant(c, i, &k);
	     i++)
		buf_printf(out, "%s%s", i > 0 ? ", " : "; and of this method ", k.name);
}

const struct config_old_key *config_old_key(const char *section, const char *old)
{
	for (size_t i = 0; i < OLD_KEYS; i++)
		if (config_same_section(old_keys[i].section, section) &&
		    strcmp(old_keys[i].old, old) == 0)
			return &old_keys[i];
	return NULL;
}

const char *config_old_name(const char *section, const char *name)
{
	for (size_t i = 0; i < OLD_KEYS; i++)
		if (config_same_section(old_keys[i].section, section) &&
		    strcmp(old_keys[i].name, name) == 0)
			return old_keys[i].old;
	return NULL;
}

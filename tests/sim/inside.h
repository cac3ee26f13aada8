/* tests/sim/inside.h - the simulator's own data, shared by its files.
 *
 *   sim.c     the clock, the events, agents that live and die, the story
 *   links.c   the network        shell.c   the effects of one agent
 *   world.c   graphs, names, and how a score comes about
 *   check.c   what must hold after every event
 *   frames.c  agents whose rows come into one frame
 *   learning.c  a world of facts that can be learned
 *   rounds.c  agents that run rounds: settings, training, what must hold
 *   scores.c  owners that ask for masked scores: questions, what must hold */
#ifndef SIM_INSIDE_H
#define SIM_INSIDE_H

#include "agent/core/core.h"
#include "agent/core/learner.h"
#include "agent/core/names.h"
#include "base/rng.h"
#include "graph/graph.h"
#include "kge/model.h"
#include "net/msg.h"
#include "tests/sim/disk.h"
#include "tests/sim/sim.h"

enum { SIM_NOBODY = SIM_CROWD_MAX, KEYS_MAX = 4096 };
enum { ARCHIVE = 12, JOBS_MAX = 16, COMMITS_MAX = 256, ENTITIES = 12, RELATIONS = 3 };

enum what {
	EV_LINK_UP,
	EV_LINK_DOWN,
	EV_MESSAGE,
	EV_WRITABLE,
	EV_DIAL,
	EV_TIMER,
	EV_COMMIT,
	EV_JOB,
	EV_ENTRIES,
	EV_RESTART,
	EV_BACKUP,
	EV_PUT_BACK,
	EV_SILENCE, /* keepalive has noticed that a frozen agent says nothing */
	EV_TROUBLE, /* the story's next fault */
	EV_HEAL,
	EV_SCORES, /* an owner asks for masked scores */
};

struct event {
	uint64_t at_ms, order;
	enum what what;
	size_t node, from;
	uint64_t life;	/* of the node; events of an earlier life are void */
	uint64_t epoch; /* of the link, or of the timer */
	bool late;	/* a message that came while its receiver was frozen */
	uint8_t *bytes;
	size_t n;
	int timer;
	struct agent_job *job;
	/* EV_ENTRIES */
	uint64_t ticket, first;
	size_t max;
	uint8_t key[32];
};

struct link {				     /* of a pair a < b; side 0 is a */
	bool up, dialling, apart, silent[2]; /* silent: what this side sends is lost */
	uint64_t epoch;
	bool announced[2];   /* the core of this side believes it is up */
	uint64_t last_ms[2]; /* of what this side has sent: order is kept */
	bool busy[2];
	struct {
		uint8_t *bytes;
		size_t n;
		uint64_t epoch, life; /* of the link, of the receiver */
	} old[2][ARCHIVE];	      /* sent over earlier links */
	size_t n_old[2];
};

struct commit {
	struct store_batch batch;
	uint64_t ticket;
};

struct sim_seen { /* a session; serial 0: none */
	uint64_t serial, since_ms;
};

struct sim_framed { /* tables that an agent has had to serve, and their frame */
	uint8_t digest[32];
	struct frame frame;
};

struct node {
	struct sim *sim;
	size_t at;
	bool alive, doomed, muted, started;
	uint64_t life;
	uint64_t frozen_until_ms; /* stopped by a signal: what happens to it waits till then */
	uint8_t key[32], sign_public[32], sign_secret[64], lineage[32];
	struct config config;
	struct config planted; /* what the core reads; not config with SIM_FORGETS_ROLE alone */
	uint8_t rounds_host[32];
	struct agent_io io;
	struct agent_learner synthetic;
	struct agent_learner_kge *real;
	struct kge_train_config train;
	struct graph *graph;
	struct agent_names *names;
	struct kge_emb *start, *target; /* target: what the synthetic score is about */
	struct kge_emb *scribble;	/* planted: the work tables */
	struct rng draw;
	struct agent_core *core;
	struct disk disk, backup;
	bool has_backup, put_back; /* ever */
	bool behind; /* put back from its backup, and partners have not all been asked */
	struct commit commits[COMMITS_MAX];
	size_t n_commits;
	struct store_batch late; /* planted: said to be on disk */
	uint64_t commit_ms;	 /* when the last one is due */
	struct agent_job *jobs[JOBS_MAX];
	size_t n_jobs;
	uint64_t timer[AGENT_TIMERS]; /* epoch */
	bool *keeps, *lists;	      /* [n] others: links; what its owner has said */
	uint64_t effects;	      /* that strangers must not cause */
	uint64_t effects_before;      /* the event that is under way */
	/* for the checks */
	double best_seen;
	size_t checked_entries, checked_sessions; /* of a crowd */
	struct frame frame_seen;		  /* of this life */
	uint32_t moves_seen;
	struct sim_framed *framed; /* of all lives */
	size_t n_framed;
	struct sim_seen seen[CONFIG_SESSIONS_MAX]; /* sessions under way */
	/* rounds */
	struct kge_trainer *trainer;	   /* of a method's own training; of this life's tables */
	uint32_t item[2][ENTITIES];	   /* entities, relations: their numbers in the world */
	uint8_t latest[32], part_kept[32]; /* digests of what was said to be on disk */
	bool has_latest, has_part;
	bool in_fed;
	uint8_t fed_id[16];
	uint64_t fed_since_ms;
	uint32_t n_over; /* rounds that ended, of any life */
};

struct released { /* labels, or releases, that were seen on a wire, by session and side */
	uint8_t session[16];
	size_t host, client;
	bool release;
	uint64_t labels;
};

struct sim {
	struct sim_options o;
	struct sim_report *report;
	struct rng rng, backups; /* of their own, so that other stories stay what they were */
	uint64_t now_ms, order, faults_end_ms;
	bool faults;
	struct event *heap;
	size_t n_heap, cap_heap;
	struct node *node;
	size_t n;
	uint16_t by_key[KEYS_MAX], by_sign[KEYS_MAX]; /* hashed: a node, and 1; 0: none */
	struct link **link;			      /* [n * n], made where they are asked for */
	struct released *released;
	size_t n_released;
	uint64_t odd_replays; /* what no link like TCP's does: may break a session */
	size_t current;	      /* node whose event is under way */
	/* rounds */
	struct fed_settings terms; /* as the owners have set them */
	struct sim_round **round;
	size_t n_rounds;
	struct graph_vocab *items; /* names in the world, by number */
	uint32_t holders[SIM_AGENTS_MAX * (ENTITIES + RELATIONS)]; /* who has them: bits */
	uint32_t sharing; /* who can have rounds: has something in common with somebody: bits */
	uint64_t full_since_heal;
	struct sim_scores *scores; /* NULL: nobody asks */
	bool planted;
};

/* sim.c */
void sim_at(struct sim *s, uint64_t delay_ms, struct event e);
double sim_cpu_s(const struct sim *s); /* of this process; 0 where it is not asked for */
bool sim_frozen(const struct node *n);
void sim_log(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sim_fail(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool sim_chance(struct sim *s, uint32_t in_10000); /* false when faults are off */
void node_event(struct node *n, struct agent_event *e);
void sim_know_keys(struct sim *s);				  /* of all nodes, for these: */
size_t node_by_key(const struct sim *s, const uint8_t key[32]);	  /* SIM_NOBODY */
size_t node_by_sign(const struct sim *s, const uint8_t sign[32]); /* the same, by Ed25519 key */

/* links.c */
struct link *link_of(struct sim *s, size_t a, size_t b);
int link_side(size_t self, size_t other);
int net_link_send(struct sim *s, size_t from, size_t to, const uint8_t *bytes, size_t n);
void net_link_dial(struct sim *s, size_t a, size_t b);
void link_cut(struct sim *s, size_t a, size_t b, bool silently_at_a);
void link_event(struct sim *s, struct event *e);
void links_release(struct sim *s);

/* shell.c */
void shell_init(struct node *n);
void shell_commit_due(struct node *n);
void shell_entries_due(struct node *n, const struct event *due);
void shell_job_due(struct node *n, struct agent_job *job);
void shell_drop(struct node *n, bool some_reach_disk); /* at a crash */

/* world.c */
void world_make(struct sim *s);
bool world_lists(const struct sim *s, size_t a, size_t b); /* as their owners want it */
void world_release(struct node *n);

/* check.c */
void check_notice(struct node *n, const struct agent_notice *notice);
void check_send(struct sim *s, size_t from, size_t to, const uint8_t *bytes, size_t n);
void check_all(struct sim *s);
void check_node(struct node *n);
void check_restart(struct node *n);
void check_quiet(struct sim *s);
bool sim_crowd(const struct sim *s); /* too many to look at all after each event */

/* frames.c */
void sim_frames_settings(struct sim *s, const struct node *n, struct config *c);
void sim_frames_target(struct sim *s, struct node *n);
struct kge_emb *sim_frames_target_of(const struct node *n, const struct kge_emb *work);
void sim_frames_asked(struct node *n);
void sim_frames_check_node(struct node *n);
void sim_frames_check_restart(struct node *n);
void sim_frames_check_quiet(struct sim *s);

/* learning.c */
static inline bool sim_learning(const struct sim *s)
{
	return s->o.world == SIM_FACTS;
}
void sim_learning_settings(const struct sim *s, struct config *c);
void sim_learning_train(struct kge_train_config *t);
void sim_learning_graph(struct sim *s, struct node *n);
struct kge_emb *sim_learning_tables(const struct node *n);
double sim_learning_mrr(const struct node *n);

/* rounds.c */
bool sim_rounds_judges(const struct sim *s);
void sim_rounds_settings(struct sim *s, struct node *n);
void sim_rounds_name_items(struct sim *s);
int sim_rounds_train_part(void *ctx, struct fed_part *part, uint32_t epochs, struct agent_job *job);
void sim_rounds_before_job(struct node *n);
void sim_rounds_asked(struct node *n, const struct store_batch *b); /* to be written */
void sim_rounds_on_disk(struct node *n, const struct store_batch *b);
void sim_rounds_forget_life(struct node *n);
void sim_rounds_check_send(struct sim *s, size_t from, size_t to, const struct net_msg *m);
void sim_rounds_check_node(struct node *n);
void sim_rounds_check_end(struct node *n);
void sim_rounds_check_restart(struct node *n);
void sim_rounds_check_quiet(struct sim *s);
bool sim_rounds_goal(const struct sim *s); /* the story has lasted long enough */
bool sim_rounds_forge(struct node *n, size_t to, const uint8_t *bytes, size_t len, struct buf *out);
void sim_rounds_tell(struct sim *s);
void sim_rounds_count(struct sim *s);
void sim_rounds_release(struct sim *s);

/* scores.c */
void sim_scores_settings(const struct sim *s, struct node *n);
bool sim_scores_look(void *ctx, struct fed_part *part, double *score);
void sim_scores_begin(struct sim *s);
void sim_scores_ask(struct sim *s, struct node *n);
void sim_scores_frozen(struct sim *s, const struct node *n, uint64_t ms);
void sim_scores_before_job(struct node *n, const struct agent_job *job);
void sim_scores_after_job(struct node *n, const struct agent_job *job);
void sim_scores_told(void *ctx, uint64_t ticket, const struct agent_scores *x);
void sim_scores_on_disk(struct node *n, const struct store_batch *b);
void sim_scores_check_send(struct sim *s, size_t from, const struct net_msg *m);
void sim_scores_check_node(struct node *n);
bool sim_scores_goal(const struct sim *s);
void sim_scores_release(struct sim *s);

#endif

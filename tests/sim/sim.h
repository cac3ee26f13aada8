/* tests/sim/sim.h - a neighbourhood of agents in one process, on one virtual
 * clock, from one seed.
 *
 * Real: the core, the conversations, the ledger, the codecs.  Simulated: network,
 * disk, clock, entropy and (unless asked otherwise) how a score comes about.
 * Links are like TCP: in order per link, or cut; what was under way is lost.
 * After a link is back, messages of an earlier link may be heard once more.
 * An agent may die before or after any effect; what its disk has is what is left.
 *
 * After each event the checks of check.c look at all agents at once.  A failure
 * prints the command that replays it. */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SIM_AGENTS_MAX = 30,  /* with faults, or in rounds */
	SIM_CROWD_MAX = 1000, /* calm, in pairs */
	SIM_WHY_MAX = 600,
	SIM_EFFECTS_NOTED = 1024
};

enum sim_world {
	SIM_MIXED, /* random overlaps */
	SIM_EQUAL, /* all names equal */
	SIM_ALIAS, /* all names different, equal through alias tables */
	SIM_NONE,  /* nothing in common */
	SIM_ONE,   /* one entity in common */
	SIM_SMALL, /* a small world: each shares with its neighbours, a few with others far off */
	SIM_FACTS, /* all names equal, of facts that can be learned (tests/sim/learning.c) */
};

/* Faults planted in the simulated shell, to see that the checks can fail. */
enum sim_plant {
	SIM_HONEST,
	SIM_EARLY_COMMIT,   /* COMMITTED is reported before the batch is on disk */
	SIM_LOST_BACKTRACK, /* something scribbles on the tables after backtracking */
	SIM_STUCK_BUSY,	    /* lease timers never fire */
	SIM_TORN_DISK,	    /* a checkpoint comes back with one bit changed */
	SIM_FORGETS_ENTRY,  /* the disk loses the newest ledger entry in a crash */
	SIM_BAD_ROWS,	    /* agent 0 has rows that cannot be translated */
	SIM_FORGETS_BACKUP, /* a store that is put back does not say so */
	SIM_FORGETS_ROLE,   /* agents run as if their owners allowed them both roles */
	SIM_LOSES_VERDICT,  /* the disk keeps no judgement of a partner's rows */
	/* of rounds */
	SIM_STUCK_ROUND,  /* timers of rounds never fire */
	SIM_LOSES_LATEST, /* the disk keeps the tables of the first round only */
	SIM_TORN_LATEST,  /* they come back with one bit changed */
	SIM_TORN_PART,	  /* what a method keeps from round to round does */
	SIM_LOST_ROUND,	  /* something scribbles on the tables after a round */
	SIM_WRONG_ANSWER, /* a home answers a mean that is not one */
	SIM_LEAKS_ROW,	  /* a row goes to an agent that does not hold what it is about */
	SIM_BARE_ROW,	  /* a row goes without its mask */
	SIM_SHUTS_OUT,	  /* nobody hears agent 0's answers to proposals */
	SIM_LATE_ACCOUNT, /* one that comes when its round is on record is not put there */
	/* of masked scores */
	SIM_FALSE_SCORE,  /* words of another score than the encoder's */
	SIM_STUCK_SCORES, /* timers of questions never fire */
	SIM_FORGETS_STEP, /* the disk has no records of what it answered */
	SIM_FREE_STEP,	  /* ... and no sum of a day */
	/* A host signs an entry that says something else than its own ledger. */
	SIM_LIES_LABELS, /* a settle of fewer labels than left, also when asked again */
	SIM_LIES_NOISE,	 /* a contract of more noise than the session has */
	SIM_LIES_CAPS,	 /* a contract of more labels than its epsilon allows */
};

/* The process of one agent ends at this effect of its life, counted from its first. */
struct sim_crash {
	uint64_t effect; /* 1, 2, ...; 0: never */
	size_t agent;
	bool after;   /* the effect still happens */
	bool on_disk; /* what it has asked to be written is written, or nothing of it */
};

struct sim_options {
	uint64_t seed;
	size_t agents;
	enum sim_world world;
	enum sim_plant plant;
	bool calm;     /* no faults at all */
	bool restores; /* an agent is put back from a backup, now and then */
	/* calm: agent 0 once, at this time, from a backup of that time; 0: not */
	uint64_t backup_ms, put_back_ms;
	bool fed;	    /* agents run rounds (tests/sim/rounds.c) */
	const char *method; /* of them all; NULL: drawn by seed */
	bool hosted;	    /* rounds with a host; else drawn by seed */
	bool secret;	    /* rounds under masks, where the method allows them; else drawn */
	bool ppat;	    /* every agent translates with PPAT; else drawn by seed */
	bool procrustes;    /* ... with Procrustes */
	bool map;	    /* ... with a released map */
	bool noisy;	    /* every agent sends its rows with noise */
	bool scores;	    /* fed, fedcqa: owners ask for masked scores (tests/sim/scores.c) */
	bool frames;	    /* every agent under federation.frame: common (tests/sim/frames.c) */
	bool roles;	    /* the first agent only hosts, the last one is only a client */
	double multiplier;  /* of a release; 0: one of which two or three fit the caps */
	bool real_store;    /* SQLite in memory beside the plain disk */
	bool real_learning; /* kge/ trains and scores */
	bool verbose;
	bool alone;	   /* nobody lists anybody: each trains its rounds by itself */
	bool timed;	   /* processor time is measured: no two runs are alike */
	uint32_t rounds;   /* each agent hosts so many; 0: drawn by seed.  fed: full rounds that the
			    * story lasts once there are no faults; 0: two */
	uint32_t sessions; /* that an agent may have at a time; 0: the default */
	size_t lists;	   /* each lists so many others, the nearest first; 0: all, 255 at most */
	/* federation.partners, federation.links, where `few` says so */
	bool few;
	uint32_t partners, links;
	struct sim_crash once; /* one crash, here and nowhere else */
};

struct sim_agent_report {
	int state; /* enum agent_state */
	size_t queued;
	uint64_t rounds, sessions, improved;
	uint64_t labels_spent;
	uint64_t unsettled; /* sessions on its ledgers that reserved and have not settled */
	uint64_t effects;
	uint64_t effects_put_back; /* when an agent was put back last */
	/* Of effect k, at [k - 1]: is it the first of its event; does a write wait for the disk
	 * before it, and behind it. */
	bool first[SIM_EFFECTS_NOTED], before[SIM_EFFECTS_NOTED], behind[SIM_EFFECTS_NOTED];
	uint32_t shared; /* slots with the first other agent */
	char trouble[256];
};

struct sim_report {
	bool failed;
	char why[SIM_WHY_MAX];
	uint64_t events, crashes, cuts, replays, strangers, freezes, labels_seen, lies;
	uint64_t stopped;	     /* events after which rounds were stopped, since they hurt */
	uint64_t restored, returned; /* agents put back; entries that partners handed back */
	uint64_t releases_seen;	     /* maps, and noisy rows */
	uint64_t labels_beside;	     /* sent while the next reserve was being written */
	uint64_t private_ends;	     /* aborts that keep the reason for the owner */
	uint64_t sessions;	     /* done, at hosts */
	uint64_t verdicts, hurt, quarantined; /* on partners' rows, as on disks in the end */
	size_t most_sessions;		      /* of one agent at a time */
	uint64_t beside;		      /* events with a session beside what the agent did */
	uint64_t from_clients;		      /* messages of translations that clients sent */
	uint64_t sizes_sent;		      /* two for each intersection */
	uint64_t moves, unrotated; /* to another frame; events with a session of unrotated rows */
	uint64_t extended;	   /* trainings with virtual neighbours */
	/* rounds */
	uint64_t fed_rounds, fed_failed; /* by agents: that ended well, or early */
	uint64_t questions_well, questions_failed,
		questions_spent;	    /* spent: of the last, by budgets */
	uint64_t questions_without;	    /* some member */
	uint64_t score_records, words_seen; /* on disks; on the wire */
	uint64_t full_rounds;		    /* that all agents ended well, nobody missing anybody */
	uint64_t missed;		    /* members that somebody did without */
	uint64_t rows_seen;		    /* on the wire, and looked at */
	uint64_t rows_exact,
		accounts,	    /* that must be there at the end, of members that took part */
		accounts_restarted, /* ... where one of the two has been restarted since */
		accounts_sent,	    /* each is on the sender's disk */
		accounts_exact,	    /* of rounds that nobody missed: equal to the number */
		rows_cut;	    /* after rounds: shared, with all of their holders, or some */
	double seconds;		    /* virtual */
	/* what all agents have had to do */
	uint64_t messages, bytes, links_up; /* sent; links that came up */
	uint64_t rounds;		    /* as hosts, and trained */
	uint64_t intersections;
	double cpu_s; /* processor time of their cores and jobs; where o.timed */
	double score; /* mean of the best scores on valid */
	double mrr;   /* SIM_FACTS: mean over agents, of test, of the best tables on disk */
	struct sim_agent_report agent[SIM_AGENTS_MAX]; /* of the first ones */
};

/* Runs the whole story: faults for a while, then none until all is quiet. */
void sim_run(const struct sim_options *o, struct sim_report *r);

#endif

/* lab/demo.h - what the parts of `fkge demo` share.
 *
 *   demo.c         the play: folders, training alone, control arm, federations
 *   demo_watch.c   a federation's processes while they run: table, patience, kill -9
 *   demo_question.c a question for two of them, while they run
 *   demo_report.c  the closing report, from the figures that are in the result
 *
 * Everything that an owner would type is run as a process of its own (lab/child.h). */
#ifndef LAB_DEMO_H
#define LAB_DEMO_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "lab/child.h"
#include "lab/out.h"
#include "lab/world.h"

struct demo {
	const struct lab_out *notes;
	struct world_config config;
	struct world *world;
	char *folder;
	uint32_t epochs, rounds, round_epochs;
	double limit_s; /* of one federation */
	bool dashboard; /* serve HTTP, one federation alone, until it is interrupted */
	bool asks;	/* this federation ends with the question */
	bool kill;	/* kill -9 one agent in the middle, and start it again */
	json_t *report; /* what report.json will hold: from demo_play() on the caller's */
};

/* folder/arm/agent + suffix; to be freed. */
char *demo_path(const struct demo *d, const char *arm, uint32_t agent, const char *suffix);
/* The whole play, in d->folder, which is there and empty.  text: the report for people. */
int demo_play(struct demo *d, struct buf *text, struct err *e);

/* Set by SIGINT and SIGTERM. */
extern atomic_bool demo_interrupted;

/* Start `fkge serve` in each folder of this arm, wait until nobody works any more, stop them,
 * and put into `arm_report` the seconds, each agent's last status, and what became of a killed one.
 */
int demo_serve(struct demo *d, const char *arm, json_t *arm_report, struct err *e);

/* Where an agent runs, and what it says is added to. */
struct demo_place {
	const char *folder, *log;
};
/* A question that neither of the first two companies can answer alone, asked while they run; into
 * d->report.  Nothing where the world has none. */
int demo_ask(struct demo *d, const struct demo_place place[2], struct err *e);

/* ---- the report (methods 2, 3.6) ----
 *
 * { seed, percent, rounds, epochs, round_epochs, protocol, model,
 *   agents: [{ name, about, entities, triples, asks, before, floor, procrustes, ppat,
 *              control-procrustes, control-ppat }]   each: { mrr, hits1, hits10, valid, rounds }
 *   pairs:  [{ translator, host, client, shared, sessions, labels, noise, param, teachers,
 *              delta, rows, floats, bytes, seconds }]
 *   arms:   [{ translator, seconds, ledgers, killed }]
 *   question: { text, asker, alone: [{ name, answers, says }], answers, missing } }  as `fkge query
 *           --federated --explain` has them */
void demo_report_print(const json_t *report, struct buf *out); /* Markdown */

#endif

/* cli/commands.h - every command, by the file that holds it.  Each returns 0 or an ERR_ code
 * with the reason in *e. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/cli.h"

#define COMMAND(name) int cmd_##name(struct cli *cli, int argc, char **argv, struct err *e)

/* setup.c */
COMMAND(init);
COMMAND(id);
COMMAND(version);
/* data.c */
COMMAND(import);
COMMAND(export);
/* split.c, synth.c */
COMMAND(split);
COMMAND(synth);
/* align.c */
COMMAND(align);
/* train.c */
COMMAND(train);
/* tune.c */
COMMAND(tune);
/* experiment.c */
COMMAND(experiment);
/* eval.c */
COMMAND(eval);
/* arms.c */
COMMAND(report);
/* predict.c */
COMMAND(predict);
COMMAND(similar);
/* query.c */
COMMAND(query);
/* queries.c, queries_train.c, queries_federate.c, queries_encoder.c */
COMMAND(queries_sample);
COMMAND(queries_train);
COMMAND(queries_federate);
COMMAND(queries_encoder);
/* steps.c, steps_verify.c */
COMMAND(queries_list);
COMMAND(queries_show);
COMMAND(queries_export);
COMMAND(queries_verify);
/* serve.c */
COMMAND(serve);
COMMAND(status);
COMMAND(stop);
/* config.c */
COMMAND(config_get);
COMMAND(config_set);
COMMAND(config_unset);
COMMAND(config_check);
COMMAND(config_diff);
COMMAND(reload);
/* events.c */
COMMAND(events);
/* unlearn.c */
COMMAND(unlearn);
/* backup.c */
COMMAND(backup);
COMMAND(restore);
/* http.c */
COMMAND(http_key);
/* doctor.c */
COMMAND(doctor);
/* audit.c */
COMMAND(audit);
/* peer.c */
COMMAND(peer_list);
COMMAND(peer_show);
COMMAND(peer_pending);
COMMAND(peer_add);
COMMAND(peer_introduced);
COMMAND(peer_accept);
COMMAND(peer_reject);
COMMAND(peer_revoke);
COMMAND(peer_trust);
COMMAND(peer_rotate);
COMMAND(key_rotate);
COMMAND(key_show);
COMMAND(peer_forget);
COMMAND(invite);
COMMAND(secret);
COMMAND(join);
/* ledger_show.c, ledger_quote.c, ledger_verify.c, ledger.c */
COMMAND(ledger_show);
COMMAND(ledger_quote);
COMMAND(ledger_verify);
COMMAND(ledger_export);
COMMAND(ledger_close);
/* rounds.c */
COMMAND(rounds_list);
COMMAND(rounds_show);
COMMAND(rounds_resume);
/* accounts.c */
COMMAND(rounds_export);
COMMAND(rounds_verify);
/* checkpoint.c */
COMMAND(checkpoint_list);
COMMAND(checkpoint_save);
COMMAND(checkpoint_restore);

/* demo.c */
COMMAND(demo);

#undef COMMAND

/* cli/ledger_show.c: both directions of one pair, said and as JSON; names by key[0], key[1]. */
struct ledger_chain;
json_t *ledger_pair_json(const struct cli *cli, const struct ledger_chain *c,
			 const char *const names[2]);
/* Has an agent ever trained with noise, since when, and may something of its tables have left
 * before that?  By the clocks of who signed. */
struct ledger_private {
	bool is, sent_before;
	int64_t since_ms;
};
struct ledger_export;
struct ledger_private ledger_private_since(const uint8_t *sign_key, const struct ledger_export *x);
/* One agent toward all: rows sent, what is protected and what is not.  unsettled: rows that it has
 * counted itself (agent/core/unsettled.h). */
json_t *ledger_total_json(const struct cli *cli, const char *who, const uint8_t *sign_key,
			  const struct ledger_chain *const *chains, size_t n,
			  const struct ledger_private *trained, uint64_t unsettled);
/* All that one agent has spent in these chains, of whatever lineage: a line, `whose` at its
 * beginning, with the cap of agent.yaml unless that is NAN; and as JSON. */
json_t *ledger_spent_json(const struct cli *cli, const char *whose, const uint8_t *sign_key,
			  const struct ledger_chain *const *chains, size_t n, double cap);
/* What `rounds list`, `ledger show` and `report` tell of what is on disk, into cli->result, as they
 * say it to people.  limit: the newest so many; caller: who may go while they are told, or NULL. */
struct http_caller;
int rounds_tell(struct cli *cli, size_t limit, const struct http_caller *caller, struct err *e);
int ledger_tell(struct cli *cli, struct err *e);
int arms_tell(struct cli *cli, struct err *e);

/* The statements of an agent on its own training; who: "this agent" or its key.  Says nothing when
 * there are none. */
struct ledger_stated;
json_t *ledger_stated_json(const struct cli *cli, const struct ledger_stated *at, size_t n,
			   const char *who);

#endif

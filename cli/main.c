/* cli/main.c - the table of commands and the way into it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sodium.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/command_run.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/describe.h"
#include "cli/near.h"
#include "kge/blas.h"

static const struct command peer_commands[] = {
	{ "list", "peers with their names, addresses and standing", cmd_peer_list, NULL },
	{ "show", "one peer, and the names it put into intersections", cmd_peer_show, NULL },
	{ "pending", "keys that asked to join and wait for the owner", cmd_peer_pending, NULL },
	{ "introduced", "agents that partners know and we do not", cmd_peer_introduced, NULL },
	{ "add", "make the agent of a line, or an introduced one, a partner", cmd_peer_add, NULL },
	{ "accept", "make a key a partner", cmd_peer_accept, NULL },
	{ "reject", "turn a waiting key away", cmd_peer_reject, NULL },
	{ "revoke", "end a partnership, now", cmd_peer_revoke, NULL },
	{ "trust", "take a partner out of quarantine", cmd_peer_trust, NULL },
	{ "rotate", "go on with a partner whose keys were replaced", cmd_peer_rotate, NULL },
	{ "forget", "keep nothing of a key that is no partner", cmd_peer_forget, NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct command key_commands[] = {
	{ "rotate", "replace the keys of this agent", cmd_key_rotate, NULL },
	{ "show", "the text by which partners go on with it", cmd_key_show, NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct command ledger_commands[] = {
	{ "show", "what has been spent, on whom", cmd_ledger_show, NULL },
	{ "quote", "what a session would spend of what is left", cmd_ledger_quote, NULL },
	{ "verify", "check a ledger, or two partners' exports", cmd_ledger_verify, NULL },
	{ "export", "write the ledger to a file for an auditor", cmd_ledger_export, NULL },
	{ "close", "end a contract, so that the next one is of today's settings", cmd_ledger_close,
	  NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct command checkpoint_commands[] = {
	{ "list", "saved states of the embeddings", cmd_checkpoint_list, NULL },
	{ "save", "keep the best state under a name", cmd_checkpoint_save, NULL },
	{ "restore", "make a saved state the best one again", cmd_checkpoint_restore, NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct command rounds_commands[] = {
	{ "list", "rounds that this agent took part in", cmd_rounds_list, NULL },
	{ "show", "one round: who took part, what travelled", cmd_rounds_show, NULL },
	{ "resume", "take part again, after rounds that hurt were stopped", cmd_rounds_resume,
	  NULL },
	{ "export", "write what members have signed to a file for an auditor", cmd_rounds_export,
	  NULL },
	{ "verify", "check exports of rounds, alone and against each other", cmd_rounds_verify,
	  NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct command http_commands[] = {
	{ "key", "the key that opens HTTP on this machine", cmd_http_key, NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct command queries_commands[] = {
	{ "sample", "draw queries from graphs, for measuring", cmd_queries_sample, NULL },
	{ "train", "an encoder of queries, on this graph", cmd_queries_train, NULL },
	{ "federate", "encoders of several owners, in one process", cmd_queries_federate, NULL },
	{ "encoder", "the best encoder of rounds, as a file", cmd_queries_encoder, NULL },
	{ "list", "steps of queries that went between partners and us", cmd_queries_list, NULL },
	{ "show", "one of them, with both signatures", cmd_queries_show, NULL },
	{ "export", "write them to a file for an auditor", cmd_queries_export, NULL },
	{ "verify", "check exports of them, alone and against each other", cmd_queries_verify,
	  NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct command config_commands[] = {
	{ "get", "one setting, a section, or all", cmd_config_get, NULL },
	{ "set", "change one value in agent.yaml", cmd_config_set, NULL },
	{ "unset", "take a key out of agent.yaml", cmd_config_unset, NULL },
	{ "check", "is agent.yaml, or another file, right", cmd_config_check, NULL },
	{ "diff", "what is not as by default, or as in another file", cmd_config_diff, NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct command commands[] = {
	{ "init", "make an agent in a folder: keys, store, agent.yaml", cmd_init, NULL },
	{ "id", "show this agent's id and keys", cmd_id, NULL },
	{ "import", "read a knowledge graph or an alias table", cmd_import, NULL },
	{ "export", "write embeddings or triples to files", cmd_export, NULL },
	{ "align", "make shared names out of pairs of graphs' names", cmd_align, NULL },
	{ "split", "deal one graph to several agents", cmd_split, NULL },
	{ "synth", "write a generated graph of any size", cmd_synth, NULL },
	{ "train", "train on the own graph, keeping the best state", cmd_train, NULL },
	{ "tune", "search for settings that suit the own graph", cmd_tune, NULL },
	{ "eval", "link prediction and triple classification", cmd_eval, NULL },
	{ "predict", "the likeliest heads, relations or tails", cmd_predict, NULL },
	{ "query", "answers to questions over several steps", cmd_query, NULL },
	{ "similar", "the names whose rows are nearest to one", cmd_similar, NULL },
	{ "queries", "questions over several steps: samples, encoders, records", NULL,
	  queries_commands },
	{ "serve", "run the agent", cmd_serve, NULL },
	{ "status", "what the running agent does", cmd_status, NULL },
	{ "stop", "stop the running agent cleanly", cmd_stop, NULL },
	{ "events", "what the running agent has done, and does", cmd_events, NULL },
	{ "config", "settings: get, set, unset, check, diff", NULL, config_commands },
	{ "reload", "let the running agent take changed settings", cmd_reload, NULL },
	{ "report", "what partners brought: before, alone, with them", cmd_report, NULL },
	{ "unlearn", "forget triples, and sign for it", cmd_unlearn, NULL },
	{ "backup", "copy the agent into a folder, while it runs or not", cmd_backup, NULL },
	{ "restore", "put a backup back; what was spent stays spent", cmd_restore, NULL },
	{ "doctor", "check what could keep the agent from working", cmd_doctor, NULL },
	{ "peer", "who is a partner", NULL, peer_commands },
	{ "invite", "print a line that lets another agent join", cmd_invite, NULL },
	{ "join", "use an invitation", cmd_join, NULL },
	{ "key", "the keys of this agent: rotate, show", NULL, key_commands },
	{ "secret", "draw another secret of the federation", cmd_secret, NULL },
	{ "ledger", "privacy spent: show, quote, verify, export, close", NULL, ledger_commands },
	{ "rounds",
	  "rounds of many (federation.mode rounds): list, show, resume, export, "
	  "verify",
	  NULL, rounds_commands },
	{ "audit", "does this program do what its ledger says", cmd_audit, NULL },
	{ "checkpoint", "saved states: list, save, restore", NULL, checkpoint_commands },
	{ "http", "HTTP on this machine (agent.yaml: http.listen): key", NULL, http_commands },
	{ "experiment", "methods beside each other on one data set", cmd_experiment, NULL },
	{ "demo", "companies of an invented world improve each other", cmd_demo, NULL },
	{ "version", "show the version", cmd_version, NULL },
	{ NULL, NULL, NULL, NULL },
};

/* ---- finding a command ---- */

static const char *nearest(const struct command *table, const char *word)
{
	const char *found = table->name;

	for (const struct command *c = table; c->name != NULL; c++)
		if (near_distance(word, c->name) < near_distance(word, found))
			found = c->name;
	return found;
}

static const struct command *find_command(const struct command *table, const char *word)
{
	for (const struct command *c = table; c->name != NULL; c++)
		if (strcmp(c->name, word) == 0)
			return c;
	return NULL;
}

static const char exits[] =
	"0 done, 1 failed, 2 wrong usage or configuration, 3 timed out,\n"
	"4 bad or missing input file, 5 peer unreachable, 6 identity refused, 7 version mismatch,\n"
	"8 privacy budget exhausted, 9 store damaged or newer.\n";

static void print_table(FILE *to, const struct command *table, const char *path)
{
	fprintf(to, "Usage: %s COMMAND [OPTION...]\n\nCommands:\n", path);
	for (const struct command *c = table; c->name != NULL; c++)
		fprintf(to, "  %-12s %s\n", c->name, c->about);
	fprintf(to, "\n'%s COMMAND --help' explains one of them, with an example.\n", path);
}

static void print_help(FILE *to, const struct command *table, const char *path)
{
	print_table(to, table, path);
	if (table == commands)
		fprintf(to, "\nExit status: %s", exits);
}

/* ---- running it ---- */

static bool asks_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "help") == 0 ||
	       strcmp(word, "--usage") == 0 || strcmp(word, "-?") == 0 || strcmp(word, "-h") == 0;
}

static bool asks_version(const char *word)
{
	return strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0;
}

/* path: "fkge", or "fkge ledger". */
static int no_command(const struct command *table, const char *path, const char *word,
		      struct err *e)
{
	const char *near = nearest(table, word), *group = path + strlen("fkge");

	if (2 * near_distance(word, near) > strlen(near))
		return err_set(e, ERR_USAGE, "no command '%s' (%s --help lists them)", word, path);
	return err_set(e, ERR_USAGE, "no command '%s'; did you mean '%s%s%s'? (%s --help)", word,
		       group + (*group != '\0'), *group != '\0' ? " " : "", near, path);
}

static int run_command(struct cli *cli, const struct command *table, const char *path, int argc,
		       char **argv, struct err *e)
{
	const struct command *c;
	char *full;
	int first, rc;

	if (argc < 1)
		return print_table(stderr, table, path),
		       err_set(e, ERR_USAGE, "%s needs a command", path);
	if (asks_help(argv[0]) && argc == 1)
		return print_help(stdout, table, path), 0;
	if (asks_help(argv[0])) { /* fkge help train */
		static char help[] = "--help";

		argv[0] = argv[1];
		argv[1] = help;
	} else if (table == commands && asks_version(argv[0])) {
		static char version[] = "version";

		argv[0] = version;
	}
	c = find_command(table, argv[0]);
	if (c == NULL) { /* so nobody reads the words behind it */
		cli->json |= cli_json_asked(argc, argv);
		return no_command(table, path, argv[0], e);
	}
	full = mem_printf("%s %s", path, c->name);
	if (c->sub != NULL) {
		argv[0] = full; /* options of all commands may stand before the subcommand, too */
		first = cli_parse_global(cli, argc, argv);
		rc = run_command(cli, c->sub, full, argc - first, argv + first, e);
	} else {
		argv[0] = full;
		rc = c->run(cli, argc, argv, e);
	}
	free(full);
	return rc;
}

/* Results are for programs on stdout, the reason of a failure for people on stderr;
 * with --json it stands in the object too. */
static int print_result(struct cli *cli, int rc, const struct err *e)
{
	int status = err_exit_status(rc);
	const char *text = e->text[0] != '\0' ? e->text : err_text(rc);

	if (rc != 0) {
		fprintf(stderr, "fkge: %s\n", text);
		cli_put_text(cli, "error", text);
	}
	if (cli->json) {
		cli_put(cli, "exit", json_integer(status));
		json_dumpf(cli->result, stdout,
			   (cli->lines ? JSON_COMPACT : JSON_INDENT(2)) | JSON_PRESERVE_ORDER);
		putchar('\n');
	}
	json_decref(cli->result);
	return status;
}

/* Where one of the three was closed by who started this, a file opened here would take its place,
 * and the log go into it.  What stands there instead fails as a closed one does. */
static void hold_closed(void)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/* Whatever was printed has arrived, or the status says that it has not: also of what was flushed
 * on the way, and of argp's help, which ends the process by itself. */
static void close_output(int status, void *unused)
{
	(void)unused;
	errno = 0;
	if ((fflush(stdout) == 0 && !ferror(stdout)) || status != 0)
		return;
	fprintf(stderr, "fkge: standard output: %s\n",
		errno != 0 ? strerror(errno) : "not all could be written");
	_exit(1);
}

/* Keys, rows and votes are in this process's memory: it leaves no core file, and nobody but root
 * may read it.  A sanitizer's leak check must read it, so its builds keep that open. */
static void refuse_dumps(void)
{
	/* The agent finds who is of a run by this in its environment, which a process that may not
	 * be dumped shows to root alone.  1 keeps programs from core files, too: 0 does not. */
	bool of_command = getenv(COMMAND_MARK) != NULL;
	const struct rlimit none = { of_command, of_command };

	(void)setrlimit(RLIMIT_CORE, &none);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	if (!of_command)
		(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
}

int main(int argc, char **argv)
{
	struct cli cli = { .folder = getenv("FKGE_DIR"), .program = argv[0] };
	struct err e = { 0 };
	int first;

	hold_closed();
	on_exit(close_output, NULL);
	if (cli.folder == NULL || *cli.folder == '\0')
		cli.folder = ".";
	kge_blas_restart(argv);
	refuse_dumps();
	/* A write past RLIMIT_FSIZE fails and is told, as on a full disk. */
	(void)signal(SIGXFSZ, SIG_IGN);
	if (sodium_init() < 0) {
		fprintf(stderr, "fkge: no source of randomness on this machine\n");
		return 1;
	}
	if (describe_asked(argc, argv))
		return describe_commands(commands, cli_global_options, exits), 0;
	first = cli_parse_global(&cli, argc, argv);
	cli.result = json_object();
	return print_result(
		&cli, run_command(&cli, commands, "fkge", argc - first, argv + first, &e), &e);
}

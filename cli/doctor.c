/* cli/doctor.c - what could keep an agent from working, and how to put it right.
 *
 * Every check says "ok", "look" (works, but not as it could) or "bad", and what to type. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netdb.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "agent/ask.h"
#include "agent/folder.h"
#include "agent/listen.h"
#include "agent/process.h"
#include "agent/start.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/owner.h"
#include "cli/commands.h"
#include "cli/control.h"
#include "cli/near.h"
#include "cli/peers.h"
#include "http/listen.h"
#include "kge/blas.h"
#include "lab/work.h"

enum verdict { OK, WARN, BAD };
enum { DISK_MIN_MB = 200, DIAL_S = 3 };

struct doctor {
	struct cli *cli;
	struct folder f;
	json_t *checks;
	bool running;
	pid_t holder;			 /* who holds the folder and does not answer, or 0 */
	json_t *peers;			 /* as the running agent has them, or NULL */
	char *further;			 /* where the agent listens, past its settings; or NULL */
	unsigned long long tables_bytes; /* of the best ones */
	size_t bad;
};

static void report(struct doctor *d, enum verdict v, const char *what, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void report(struct doctor *d, enum verdict v, const char *what, const char *fmt, ...)
{
	static const char *const words[] = { "ok", "look", "bad" };
	char text[600];
	va_list ap;
	json_t *j = json_object();

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_object_set_new(j, "check", json_string(what));
	json_object_set_new(j, "verdict", json_string(words[v]));
	json_object_set_new(j, "text", store_json_of_text(text));
	json_array_append_new(d->checks, j);
	d->bad += v == BAD;
	cli_say(d->cli, "%-5s %-10s %s\n", words[v], what, text);
}

/* ---- files ---- */

/* Files that an agent may also have, and nobody else shall read. */
static void check_modes_of_rest(struct doctor *d)
{
	static const char *const names[] = { "http.key",    "metrics.key", "training.state",
					     "tune",	    FOLDER_TABLES, FOLDER_PARTITIONS,
					     FOLDER_ENCODER };
	struct stat st;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char *path = file_join(d->f.path, names[i]);

		if (stat(path, &st) == 0 && (st.st_mode & 077))
			report(d, WARN, "modes", "%s may be read by others; type: chmod go-rwx %s",
			       path, path);
		free(path);
	}
}

static void check_modes(struct doctor *d)
{
	const char *const private[] = { d->f.identity_path, d->f.store_path, d->f.config_path };
	struct stat st;

	if (stat(d->f.path, &st) == 0 && (st.st_mode & 022))
		report(d, BAD, "modes", "others may write in %s; type: chmod go-w %s", d->f.path,
		       d->f.path);
	else if (stat(d->f.path, &st) == 0 && (st.st_mode & 077))
		report(d, WARN, "modes", "others may look into %s; type: chmod 700 %s", d->f.path,
		       d->f.path);
	for (size_t i = 0; i < 3; i++) {
		if (stat(private[i], &st) != 0)
			report(d, BAD, "files", "%s: %s", private[i], strerror(errno));
		else if (st.st_mode & 077)
			report(d, i == 0 ? BAD : WARN, "modes",
			       "%s may be read by others; type: chmod 600 %s", private[i],
			       private[i]);
		else
			report(d, OK, "modes", "%s is private", private[i]);
	}
	check_modes_of_rest(d);
}

static void tell_remains(void *ctx, const char *path)
{
	report(ctx, WARN, "files",
	       "%s is left of a program that was killed, and may hold a secret: fkge serve, when "
	       "it "
	       "starts, or the next command that writes removes it",
	       path);
}

/* Files of the agent that its user cannot use: what a command left there that was typed as root. */
static void look_at_owner(struct doctor *d, const char *name, uid_t who)
{
	char *path = file_join(d->f.path, name), user[OWNER_NAME], agent[OWNER_NAME];
	struct stat st;

	if (lstat(path, &st) == 0 && st.st_uid != who) {
		owner_user(st.st_uid, user);
		owner_user(who, agent);
		report(d, folder_has_name(name) ? BAD : WARN, "owner",
		       "%s is of %s, the agent of %s; type, as root: chown %lu %s", path, user,
		       agent, (unsigned long)who, path);
	}
	free(path);
}

static void look_at_owners(struct doctor *d)
{
	DIR *folder = opendir(d->f.path);
	struct dirent *file;
	uid_t who;

	while (folder != NULL && folder_owner(&d->f, &who) && (file = readdir(folder)) != NULL)
		if (file->d_name[0] != '.')
			look_at_owner(d, file->d_name, who);
	if (folder != NULL)
		closedir(folder);
}

/* A new best state is written beside the old one. */
static void check_disk(struct doctor *d)
{
	struct statvfs v;
	unsigned long long mb, need = DISK_MIN_MB;

	if (statvfs(d->f.path, &v) != 0) {
		report(d, BAD, "disk", "%s: %s", d->f.path, strerror(errno));
		return;
	}
	mb = (unsigned long long)v.f_bavail * v.f_frsize >> 20;
	if (2 * d->tables_bytes >> 20 > need)
		need = 2 * d->tables_bytes >> 20;
	if (v.f_flag & ST_RDONLY)
		report(d, BAD, "disk",
		       "%s is on a read-only file system: commands can read it, no agent can run",
		       d->f.path);
	else if (mb < need)
		report(d, BAD, "disk", "only %llu MB are free; make room for %llu%s", mb, need,
		       need > DISK_MIN_MB ? ", twice the best tables" : "");
	else
		report(d, OK, "disk", "%llu MB are free", mb);
}

/* ---- what was made ---- */

static void check_config(struct doctor *d)
{
	struct err e = { 0 };

	if (config_load(&d->f.config, d->f.config_path, &e) != 0) {
		report(d, BAD, "config", "%s", e.text);
		return;
	}
	d->f.has_config = true;
	report(d, OK, "config", "%s", d->f.config_path);
}

/* The agent refuses to start with one that is damaged, missing or open to others. */
static void check_federation_secret(struct doctor *d)
{
	struct err e = { 0 };
	uint8_t psk[32];
	bool has;

	if (folder_psk(&d->f, &has, psk, &e) != 0)
		report(d, BAD, "secret", "%s", e.text);
	else if (has)
		report(d, OK, "secret", "%s", d->f.config.federation.psk_file);
	sodium_memzero(psk, sizeof(psk));
}

static void check_identity(struct doctor *d)
{
	struct err e = { 0 };

	if (store_identity_load(&d->f.identity, d->f.identity_path, &e) != 0)
		report(d, BAD, "identity", "%s", e.text);
	else
		report(d, OK, "identity", "%s", d->f.identity_path);
}

/* Is what was learnt better than counting?  Not asked of scores by another protocol, nor in private
 * training, which does not look at valid. */
static void check_floor(struct doctor *d, const struct graph *g,
			const struct store_checkpoint *best)
{
	const struct config *c = &d->f.config;
	char name[CONFIG_SCORE_NAME];
	struct agent_learner_kge *l;
	struct buf why = { 0 };
	double floor;

	if (!d->f.has_config || c->train.kge.dp.epsilon > 0)
		return;
	config_score_name(c, name);
	if (strcmp(name, best->protocol) != 0)
		return;
	l = agent_learner_new(&c->train.kge, g, config_protocol(c), c->eval.valid_limit);
	err_ignore(agent_learner_find_floor(l, NULL)); /* nobody cancels it */
	floor = agent_learner_floor(l);
	agent_learner_free(l);
	if (config_below_floor(c, g, best->valid_score, floor, &why))
		report(d, WARN, "floor", "%s", (const char *)why.base);
	else
		report(d, OK, "floor", "valid score %.4f, by counting %.4f", best->valid_score,
		       floor);
	buf_release(&why);
}

static void check_best_tables(struct doctor *d, const struct graph *g)
{
	struct store_checkpoint info;
	struct kge_emb *emb;
	char score[WORK_SCORE_TEXT];
	struct err e = { 0 };
	int rc = folder_load_tables(&d->f, g, &emb, &info, &e);
	bool past = rc != ERR_NOTFOUND;

	if (!past)
		rc = store_restore(d->f.store, 0, &emb, &info, &e);
	if (rc != 0) {
		report(d, past ? BAD : WARN, "best", "%s%s", e.text,
		       past ? "" : "; fkge train or fkge serve make one");
		return;
	}
	d->tables_bytes = sizeof(float) * ((unsigned long long)emb->n_ent * emb->ent_floats +
					   (unsigned long long)emb->n_rel * emb->rel_floats);
	if (!kge_emb_finite(emb)) {
		report(d, BAD, "best",
		       "a number of its tables is not finite, for their training diverged: lower "
		       "train.lr and begin anew with fkge train");
		kge_emb_free(emb);
		return;
	}
	lab_work_score_text(info.protocol, info.valid_score, score);
	report(d, OK, "best", "%s after %llu epochs%s", score, (unsigned long long)info.epochs,
	       past ? ", trained past memory (" FOLDER_TABLES ")" : "");
	if (g->split[GRAPH_VALID].n > 0)
		check_floor(d, g, &info);
	kge_emb_free(emb);
}

/* A rule for a relation that the graph does not have is mistyped: what its owner meant to withhold
 * may leave. */
static void rules_name_relations(struct doctor *d, const struct graph *g)
{
	struct config_rule rule;
	struct err like = { 0 };
	uint32_t id;

	for (size_t i = 0; d->f.has_config && config_rule(&d->f.config, i, &rule); i++) {
		char *name = mem_printf("%.*s", (int)rule.relation_len, rule.relation);

		if (!rule.all_relations &&
		    near_find(g->relations, "relation", name, &id, &like) != 0)
			report(d, WARN, "rules", "a rule of query.rules holds for nothing: %s",
			       like.text);
		free(name);
	}
}

static void check_delta(struct doctor *d, const struct graph *g)
{
	struct err e = { 0 };

	if (d->f.has_config && start_check_delta(&d->f.config, g, &e) != 0)
		report(d, WARN, "delta", "%s", e.text);
}

/* Private training does not look at valid. */
static void check_contents(struct doctor *d)
{
	struct graph *g;
	struct err e = { 0 };
	bool sound;

	if (store_load_graph(d->f.store, &g, &e) != 0) {
		report(d, BAD, "graph", "%s; read one with fkge import", e.text);
		return;
	}
	sound = g->split[GRAPH_VALID].n > 0 || d->f.config.train.kge.dp.epsilon > 0;
	report(d, sound ? OK : BAD, "graph", "%zu train, %zu valid triples%s",
	       g->split[GRAPH_TRAIN].n, g->split[GRAPH_VALID].n,
	       sound ? "" : ": without valid, better cannot be told from worse");
	check_best_tables(d, g);
	rules_name_relations(d, g);
	check_delta(d, g);
	graph_free(g);
}

/* Which partners' chains have an entry of ours from a later time than now? */
static void check_dates(struct doctor *d)
{
	struct store_core core = { 0 };
	int64_t now = (int64_t)time(NULL) * 1000, back = 0;

	if (d->f.identity == NULL || store_load_core(d->f.store, &core, NULL) != 0)
		return;
	for (size_t i = 0; i < core.n_chains; i++) {
		int64_t b = ledger_clock_back(core.chains[i], d->f.identity->account, now);

		back = b > back ? b : back;
	}
	store_core_release(&core);
	if (back > 0)
		report(d, WARN, "clock",
		       "it is %lld s before the last entry of the ledger: it was set back, or was "
		       "ahead then; auditors will see it",
		       (long long)(back / 1000));
}

/* Callbacks that the core may use while it is made: nothing that they give leaves. */
static void no_draw(void *ctx, void *out, size_t n)
{
	(void)ctx;
	memset(out, 0, n);
}

static void no_notice(void *ctx, const struct agent_notice *n)
{
	(void)ctx;
	(void)n;
}

/* Calls the functions that `fkge serve` starts with: it refuses what these functions refuse. */
static void look_at_start(struct doctor *d)
{
	const struct agent_io io = { .draw = no_draw, .notify = no_notice };
	struct agent_core *core = NULL;
	struct start s;
	struct err e = { 0 };
	int rc;

	if (!d->f.has_config || d->f.identity == NULL)
		return;
	rc = start_load(&s, &d->f, &e);
	if (rc == 0) {
		if (s.other_gamma.code != 0)
			report(d, WARN, "start", "%s", s.other_gamma.text);
		if (s.pair_delta.code != 0)
			report(d, WARN, "delta", "%s", s.pair_delta.text);
		if (s.no_host.code != 0)
			report(d, BAD, "rounds", "%s; before that there are none", s.no_host.text);
		rc = start_core(&s, d->f.identity, &io, &core, &e);
		agent_core_free(core);
		start_release(&s);
	}
	if (rc == 0 && d->f.config.suited != NULL)
		report(d, OK, "training", "%s", d->f.config.suited);
	if (rc == 0)
		report(d, OK, "start", "fkge serve can load all of it");
	else
		report(d, BAD, "start", "fkge serve would not start: %s", e.text);
}

/* Each with its whole id: one that was forgotten is listed nowhere else. */
static void list_waited_for(struct doctor *d, const struct store_restored *r)
{
	struct roster waited;
	struct err e = { 0 };

	if (cli_waited_for(d->f.store, r, &waited, &e) != 0)
		report(d, BAD, "backup", "%s", e.text);
	for (size_t i = 0; i < waited.n; i++) {
		const struct store_peer *p = &waited.at[i];
		char id[NET_KEY_TEXT];

		net_key_format(p->key, id);
		report(d, WARN, "backup", "not asked yet: %s%s%s%s", p->name,
		       p->name[0] != '\0' ? ", " : "", id,
		       p->status == STORE_LISTED
			       ? ""
			       : ", which is no partner any more: fkge peer accept, or fkge "
				 "restore --without");
	}
	roster_release(&waited);
}

/* Put back from a backup: what is still missing? */
static void check_restored(struct doctor *d)
{
	struct store_restored r;
	struct err e = { 0 };
	bool held = false;

	if (store_restored(d->f.store, &r, &e) != 0 || cli_training_held(&d->f, &r, &held, &e) != 0)
		report(d, BAD, "backup", "%s", e.text);
	else if (r.n_waits > 0 || held)
		report(d, WARN, "backup",
		       "restored: %zu partners have not been asked yet for what was signed "
		       "since%s; until then nothing is spent (fkge restore --help)",
		       r.n_waits, held ? ", and private training is held back" : "");
	else if (r.is)
		report(d, OK, "backup",
		       "restored, and every partner has been asked what it lacked");
	list_waited_for(d, &r);
	store_restored_release(&r);
}

/* Those that the store goes on with?  Also where a replacement of them was cut off. */
static void check_keys_of_store(struct doctor *d)
{
	struct err e = { 0 };
	char *next;

	if (d->f.identity == NULL)
		return;
	next = folder_next_identity(&d->f);
	if (file_exists(next))
		report(d, WARN, "identity",
		       "fkge key rotate was cut off, and %s is left: the next command that writes, "
		       "or fkge serve, ends it",
		       next);
	free(next);
	if (folder_finish_rotation(&d->f, false, &e) != 0 || folder_check_keys(&d->f, &e) != 0)
		report(d, BAD, "identity", "%s", e.text);
}

static void check_store(struct doctor *d)
{
	struct store_options o = { .mode = STORE_READ };
	struct err e = { 0 };

	if (d->f.identity != NULL)
		o.owner = d->f.identity->account;
	if (folder_check_store(&d->f, &e) != 0 ||
	    store_open(&d->f.store, d->f.store_path, &o, &e) != 0 ||
	    store_check(d->f.store, &e) != 0) {
		report(d, BAD, "store", "%s", e.text);
		return;
	}
	report(d, OK, "store", "pages, sums of tables, guards, signatures and checkpoints hold");
	check_keys_of_store(d);
	check_dates(d);
	check_restored(d);
	check_contents(d);
	look_at_start(d);
}

/* ---- the network ---- */

static struct addrinfo *resolve(const char *host, uint16_t port)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	char service[8];

	snprintf(service, sizeof(service), "%u", port);
	return getaddrinfo(host, service, &hints, &found) == 0 ? found : NULL;
}

static void check_port(struct doctor *d, const char *host, uint16_t port)
{
	int why = listen_trial(host, port);

	if (why == EADDRNOTAVAIL)
		report(d, BAD, "listen", "%s is no address of this machine", host);
	else if (why == EADDRINUSE)
		report(d, BAD, "listen",
		       "%s port %u: %s; change listen in agent.yaml, unless systemd's "
		       "fkge@NAME.socket holds it",
		       host, port, listen_why(why));
	else if (why != 0)
		report(d, BAD, "listen", "%s port %u: %s; change listen in agent.yaml", host, port,
		       listen_why(why));
	else
		report(d, OK, "listen", "%s port %u is free", host, port);
}

static void check_listen(struct doctor *d)
{
	const struct config *c = &d->f.config;
	char host[256];
	uint16_t port;

	if (d->further != NULL) {
		report(d, WARN, "listen",
		       "the agent is open at %s, to more than listen in agent.yaml (%s) allows: "
		       "fkge "
		       "reload --restart, or ListenStream= of its socket unit",
		       d->further, c->listen);
		return;
	}
	if (strcmp(c->listen, "off") == 0) {
		report(d, OK, "listen", "off: this agent calls others");
		return;
	}
	if (config_address(c->listen, host, &port, NULL) != 0)
		return;
	if (d->running)
		report(d, OK, "listen", "the agent is running");
	else if (d->holder != 0)
		report(d, OK, "listen", "not tried: that process may have the port");
	else
		check_port(d, host, port);
	if (config_is_wildcard(host) && c->advertise[0] == '\0')
		report(d, WARN, "address",
		       "others are told no address: set advertise: HOST:PORT in agent.yaml, or use "
		       "fkge invite --address");
}

/* Two names of one address: what config_check() does not look up. */
static bool shares_port(const struct config *c, const struct config_http_place *place)
{
	char host[256];
	uint16_t port;

	return place->kind == CONFIG_HTTP_LOOPBACK && place->port != 0 &&
	       config_address(c->listen, host, &port, NULL) == 0 && port == place->port &&
	       listen_same_host(host, place->host);
}

/* By listening there, and leaving at once: what keeps HTTP from its place keeps the agent, too. */
static void look_at_http(struct doctor *d)
{
	const struct config *c = &d->f.config;
	struct config_http_place place;
	struct http_listen trial;
	struct err e = { 0 };
	char where[PROCESS_WHERE_MAX];

	if (d->running || d->holder != 0 || config_http_place(c->http.listen, &place, NULL) != 0 ||
	    place.kind == CONFIG_HTTP_OFF)
		return;
	if (shares_port(c, &place)) {
		report(d, BAD, "http", "listen and http.listen are both at port %u", place.port);
	} else if (http_listen_open(&trial, &place, d->f.path, where, sizeof(where), &e) != 0) {
		report(d, BAD, "http", "%s", e.text);
	} else {
		close(trial.fd);
		http_listen_release(&trial);
		report(d, OK, "http", "%s is free", c->http.listen);
	}
}

/* Connect within DIAL_S; 0 or errno. */
static int dial(const struct addrinfo *to)
{
	const struct timeval patience = { .tv_sec = DIAL_S };
	int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), why = 0;

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, to->ai_addr, to->ai_addrlen) != 0)
		why = errno == EINPROGRESS ? ETIMEDOUT : errno;
	close(fd);
	return why;
}

/* A partner as the running agent has it, or NULL. */
static const json_t *running_peer(const struct doctor *d, const struct store_peer *p)
{
	char id[NET_KEY_TEXT];
	const json_t *j;
	size_t i;

	net_key_format(p->key, id);
	json_array_foreach(d->peers, i, j)
	{
		if (strcmp(json_string_value(json_object_get(j, "id")), id) == 0)
			return j;
	}
	return NULL;
}

/* An open port may be anybody's: who is there is known by a link alone. */
static void report_open(struct doctor *d, const struct store_peer *p)
{
	const json_t *now = running_peer(d, p);
	const char *why = json_string_value(json_object_get(now, "down_why"));

	if (d->running)
		report(d, WARN, "peer", "%s: the port of %s is open, but there is no link%s%s",
		       p->name, p->address, why != NULL && why[0] != '\0' ? ": " : " yet",
		       why != NULL ? why : "");
	else
		report(d, OK, "peer", "%s: the port of %s is open; fkge serve shows who it is",
		       p->name, p->address);
}

/* Of a partner with a link: it answers, wherever. */
static void report_linked(struct doctor *d, const struct store_peer *p, int why)
{
	if (why == 0)
		report(d, OK, "peer", "%s answers at %s", p->name, p->address);
	else
		report(d, OK, "peer", "%s: linked; its own address %s does not answer from here",
		       p->name, p->address);
}

/* All that the address stands for, in turn. */
static int dial_any(const struct addrinfo *to)
{
	int why = EADDRNOTAVAIL;

	for (; to != NULL && why != 0; to = to->ai_next)
		why = dial(to);
	return why;
}

/* No address of it is known: does it know one of ours? */
static void report_unknown(struct doctor *d, const struct store_peer *p, bool linked)
{
	const struct config *c = &d->f.config;

	if (linked)
		report(d, OK, "peer", "%s: linked; no address of it is known, it called us",
		       p->name);
	else if (d->f.has_config && d->running && strcmp(c->listen, "off") == 0)
		report(d, WARN, "peer",
		       "%s and this agent cannot call each other: no address of it is known, and "
		       "listen is off here; ask its owner for an invitation",
		       p->name);
	else if (d->f.has_config && d->running && config_told_address(c)[0] == '\0')
		report(d, WARN, "peer",
		       "%s must call us: no address of it is known; and this agent tells it none "
		       "(listen: %s): unless it has one from an invitation, neither can call the "
		       "other; set advertise: HOST:PORT here or there, or use fkge invite",
		       p->name, c->listen);
	else
		report(d, OK, "peer",
		       "%s must call us: no address of it is known (fkge join gives one)", p->name);
}

/* Its own owner's, else what it says itself, as the running agent has heard it. */
static void reached_at(const struct doctor *d, const struct store_peer *p,
		       char out[STORE_ADDRESS_MAX])
{
	const char *said = json_string_value(json_object_get(running_peer(d, p), "address"));

	snprintf(out, STORE_ADDRESS_MAX, "%s",
		 p->address[0] != '\0' || said == NULL ? p->address : said);
}

/* What a partner says itself is no fault of our settings. */
static void report_unresolved(struct doctor *d, const struct store_peer *p, bool from_owner)
{
	if (from_owner)
		report(d, BAD, "peer", "%s: %s is no address; ask its owner for a new invitation",
		       p->name, p->address);
	else
		report(d, WARN, "peer",
		       "%s: the address that it says itself, %s, is not found from here; ask its "
		       "owner",
		       p->name, p->address);
}

static void check_reach(struct doctor *d, const struct store_peer *listed)
{
	struct store_peer with_address = *listed;
	const struct store_peer *p = &with_address;
	bool linked = json_is_true(json_object_get(running_peer(d, p), "linked"));
	struct addrinfo *to = NULL;
	char host[256];
	uint16_t port;
	int why;

	reached_at(d, listed, with_address.address);
	if (p->address[0] == '\0') {
		report_unknown(d, p, linked);
		return;
	}
	if (config_address(p->address, host, &port, NULL) == 0)
		to = resolve(host, port);
	if (to == NULL && !linked) {
		report_unresolved(d, p, listed->address[0] != '\0');
		return;
	}
	why = dial_any(to);
	if (to != NULL)
		freeaddrinfo(to);
	if (linked)
		report_linked(d, p, why);
	else if (why != 0)
		report(d, WARN, "peer", "%s at %s: %s; is it running, is the port open?", p->name,
		       p->address, strerror(why));
	else
		report_open(d, p);
}

/* A rule that nobody falls under is a mistyped id, or a partner's that was forgotten. */
static void rules_name_partners(struct doctor *d, const struct roster *r)
{
	char id[NET_KEY_TEXT];
	struct config_rule rule;

	if (!d->f.has_config)
		return;
	for (size_t i = 0; config_rule(&d->f.config, i, &rule); i++) {
		if (rule.all_partners || roster_find(r, rule.key) != NULL ||
		    ledger_rotations_proved(&r->rotations, rule.key) != NULL)
			continue;
		net_key_format(rule.key, id);
		report(d, WARN, "rules",
		       "query.rules names %s, which is no partner: that rule holds for nobody", id);
	}
}

static void check_peers(struct doctor *d)
{
	struct roster r = { 0 };
	size_t listed = 0;

	if (folder_load_roster(d->f.store, &r, NULL) != 0)
		return;
	for (size_t i = 0; i < r.n; i++) {
		if (r.at[i].status == STORE_PENDING)
			report(d, WARN, "peer", "somebody waits: fkge peer pending");
		if (r.at[i].status != STORE_LISTED)
			continue;
		check_reach(d, &r.at[i]);
		listed++;
	}
	if (listed == 0)
		report(d, WARN, "peer", "no partners yet: fkge invite, fkge join");
	rules_name_partners(d, &r);
	roster_release(&r);
}

/* Complaints of the running agent itself: a refused key, a wrong secret, another version.  What is
 * only a matter of time is no failure. */
static void check_troubles(struct doctor *d, const json_t *reply)
{
	const json_t *p;
	size_t i;

	json_array_foreach(json_object_get(reply, "peers"), i, p)
	{
		const char *trouble = json_string_value(json_object_get(p, "trouble"));
		const char *name = json_string_value(json_object_get(p, "name"));
		bool passes = json_is_true(json_object_get(p, "trouble_passes"));

		if (name == NULL || name[0] == '\0')
			name = json_string_value(json_object_get(p, "id"));
		if (trouble != NULL && trouble[0] != '\0')
			report(d, passes ? WARN : BAD, "peer", "%s: %s%s", name, trouble,
			       passes ? ": a normal wait" : "");
	}
}

/* The service manager's socket is where it is, whatever the settings say. */
static void look_where(struct doctor *d, const json_t *status)
{
	const char *at = json_string_value(json_object_get(status, "listen"));
	char host[256];
	uint16_t port;

	if (at != NULL && d->f.has_config && strcmp(at, d->f.config.listen) != 0 &&
	    config_address(at, host, &port, NULL) == 0 &&
	    listen_reaches_further(host, d->f.config.listen))
		d->further = mem_strdup(at);
}

static void check_running(struct doctor *d)
{
	json_t *request = json_pack("{s:s}", "do", "status"), *reply = NULL;
	struct err e = { 0 };
	int rc = control_ask(d->cli, request, &reply, &d->holder, &e);

	json_decref(request);
	d->running = rc == 0;
	if (d->running)
		report(d, OK, "process", "the agent is running");
	else if (d->holder == 0)
		report(d, OK, "process", "the agent is stopped");
	else
		report(d, rc == ERR_TIMEOUT ? BAD : WARN, "process", "%s", e.text);
	check_troubles(d, reply);
	d->peers = json_incref(json_object_get(reply, "peers"));
	look_where(d, reply);
	json_decref(reply);
}

/* ---- the clock: it decides nothing, but auditors read it ---- */

static void check_clock(struct doctor *d)
{
	struct stat st;
	time_t now = time(NULL);

	if (stat(d->f.store_path, &st) == 0 && st.st_mtime > now + 60)
		report(d, BAD, "clock",
		       "it is earlier than the last write to the store: set the clock");
	else if (now < 1700000000)
		report(d, BAD, "clock", "it says a time before this program was written: set it");
	else
		report(d, OK, "clock", "after the last write");
}

/* ---- the processor, as OpenBLAS sees it: that is settled when it is loaded ---- */

static void check_blas(struct doctor *d)
{
	const char *wanted = kge_blas_core_wanted();

	if (wanted == NULL || kge_sgemm_is_fast())
		report(d, OK, "blas", "OpenBLAS uses its kernels for %s", kge_blas_core());
	else
		report(d, WARN, "blas",
		       "OpenBLAS takes this processor for an old one (%s), which halves the speed "
		       "of translators; set OPENBLAS_CORETYPE=%s in the environment, or leave it "
		       "unset",
		       kge_blas_core(), wanted);
}

int cmd_doctor(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words w = { .max = 0 };
	struct doctor d = { .cli = cli, .checks = json_array() };

	cli_parse_words(
		cli, "",
		"Check files, modes, disk, store, port, address, clock, processor and peers, and "
		"say what to do about what fails.\vExample:\n  fkge -d acme doctor",
		&w, argc, argv);
	cli_put(cli, "checks", d.checks);
	folder_paths(&d.f, cli->folder);
	check_modes(&d);
	look_at_owners(&d);
	check_clock(&d);
	check_blas(&d);
	check_config(&d);
	check_identity(&d);
	check_running(&d);
	folder_each_remains(&d.f, tell_remains, &d);
	if (d.f.has_config) {
		check_federation_secret(&d);
		check_listen(&d);
		look_at_http(&d);
	}
	check_store(&d);
	check_disk(&d);
	if (d.f.store != NULL)
		check_peers(&d);
	json_decref(d.peers);
	free(d.further);
	folder_close(&d.f);
	if (d.bad > 0)
		return err_set(e, ERR_FAIL, "%zu check%s failed", d.bad, d.bad > 1 ? "s" : "");
	return 0;
}

#include "lab/work.h"

#include <signal.h>
#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"

/* With a preset a file is whole only now: config_load() asks whether it fits some graph. */
static int suit_config(struct work *w, struct err *e)
{
	struct config *c = &w->folder.config;

	config_suit(c, w->graph);
	return c->model.preset == CONFIG_PRESET_NONE ? 0
						     : config_check(c, w->folder.config_path, e);
}

int lab_work_open(struct work *w, const char *path, unsigned needs, struct err *e)
{
	char word[TEXT_WORD];
	int rc;

	memset(w, 0, sizeof(*w));
	rc = folder_open(&w->folder, path, FOLDER_CONFIG | (needs & ~(unsigned)WORK_IN_PARTS), e);
	if (rc != 0)
		return rc;
	w->folder.config.train.in_parts = (needs & WORK_IN_PARTS) != 0;
	rc = store_load_graph(w->folder.store, &w->graph, e);
	if (rc == ERR_NOTFOUND)
		err_set(e, rc, "%s has no graph yet; read one with: fkge -d %s import GRAPH", path,
			text_word(path, word));
	if (rc == 0)
		rc = suit_config(w, e);
	if (rc != 0)
		lab_work_close(w);
	return rc;
}

int lab_work_load(struct work *w, uint64_t id, struct err *e)
{
	int rc = id == 0 ? folder_load_tables(&w->folder, w->graph, &w->emb, &w->info, e)
			 : ERR_NOTFOUND;
	char word[TEXT_WORD];

	if (rc == ERR_NOTFOUND)
		rc = store_restore(w->folder.store, id, &w->emb, &w->info, e);

	if (rc == ERR_NOTFOUND && id == 0)
		err_set(e, rc, "%s has no embeddings yet; make them with: fkge -d %s train",
			w->folder.path, text_word(w->folder.path, word));
	if (rc == 0 && !store_checkpoint_is_of(&w->info, w->graph))
		return err_set(e, ERR_INPUT,
			       "state %llu is of another graph (%u entities, %u relations), with "
			       "other names: import that one again, or take another state",
			       (unsigned long long)w->info.id, w->emb->n_ent, w->emb->n_rel);
	return rc;
}

int lab_work_find_label(struct store *store, const char *label, uint64_t *id, struct err *e)
{
	struct store_checkpoint *all = NULL;
	size_t n = 0;
	int rc = store_checkpoints(store, &all, &n, e);

	*id = 0;
	for (size_t k = 0; k < n && rc == 0; k++)
		if (strcmp(all[k].label, label) == 0)
			*id = all[k].id;
	free(all);
	return rc;
}

int lab_work_find_state(struct store *store, const char *word, uint64_t *id, struct err *e)
{
	char *end;
	int rc;

	*id = strtoull(word, &end, 10);
	if (*word >= '1' && *word <= '9' && *end == '\0')
		return 0;
	rc = *word != '\0' ? lab_work_find_label(store, word, id, e) : 0;
	if (rc == 0 && *id == 0)
		rc = err_set(
			e, ERR_NOTFOUND,
			"no state has the number or the name '%.40s'; see fkge checkpoint list",
			word);
	return rc;
}

int lab_work_load_state(struct work *w, const char *state, struct err *e)
{
	uint64_t id = 0;
	int rc = state != NULL ? lab_work_find_state(w->folder.store, state, &id, e) : 0;

	return rc == 0 ? lab_work_load(w, id, e) : rc;
}

int lab_work_load_words(struct work *w, struct err *e)
{
	return folder_load_words(&w->folder, &w->words, e);
}

void lab_work_close(struct work *w)
{
	graph_words_free(w->words);
	kge_emb_free(w->emb);
	graph_free(w->graph);
	folder_close(&w->folder);
	w->emb = NULL;
	w->graph = NULL;
	w->words = NULL;
}

bool lab_work_learnt_only(const struct work *w, const uint8_t tables[STORE_DIGEST],
			  const uint8_t graph[STORE_DIGEST])
{
	struct buf said = { 0 };
	bool only = store_meta(w->folder.store, FOLDER_META_LEARNT, &said, NULL) == 0 &&
		    said.len == (size_t)2 * STORE_DIGEST &&
		    memcmp(said.base, tables, STORE_DIGEST) == 0 &&
		    memcmp(said.base + STORE_DIGEST, graph, STORE_DIGEST) == 0;

	buf_release(&said);
	return only;
}

void lab_work_put_learnt(struct store_batch *b, const uint8_t tables[STORE_DIGEST],
			 const uint8_t graph[STORE_DIGEST])
{
	uint8_t both[2 * STORE_DIGEST];

	memcpy(both, tables, STORE_DIGEST);
	memcpy(both + STORE_DIGEST, graph, STORE_DIGEST);
	store_batch_meta(b, FOLDER_META_LEARNT, both, sizeof(both));
}

int lab_work_apply(struct work *w, struct store_batch *b, struct err *e)
{
	int rc = store_apply(w->folder.store, b, e);

	store_batch_release(b);
	return rc;
}

int64_t lab_work_wall_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

double lab_work_now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static atomic_bool *interrupted; /* the flag of the running job, for the signal handler */

static void on_interrupt(int signal)
{
	(void)signal;
	atomic_store(interrupted, true);
}

void lab_work_watch_interrupts(atomic_bool *cancel)
{
	struct sigaction act = { .sa_handler = on_interrupt }, old;

	interrupted = cancel;
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGHUP, NULL, &old);
	if (old.sa_handler != SIG_IGN) /* nohup */
		sigaction(SIGHUP, &act, NULL);
}

struct kge_emb *lab_work_new_tables(const struct config *c, const struct graph *g)
{
	struct rng r;

	rng_seed(&r, c->train.kge.seed);
	return config_tables(c, graph_vocab_count(g->entities), graph_vocab_count(g->relations),
			     &r);
}

void lab_work_note_unread(const struct lab_out *notes, const char *before,
			  const struct graph_load_report *r)
{
	for (int s = GRAPH_VALID; s < GRAPH_SPLITS; s++)
		if (r->unread[s][0] != '\0')
			lab_note(notes,
				 "Warning: %s%s is not read: %s may be .tsv, .txt, .nt, .ttl, .nq "
				 "or .trig (plain, .gz or .zst), in OpenKE's layout %s2id.txt\n",
				 before, r->unread[s], graph_split_words[s], graph_split_words[s]);
}

const char *lab_work_checkpoint_kind(const struct store_checkpoint *c)
{
	switch (c->kind) {
	case STORE_BEST:
		return "best";
	case STORE_MANUAL:
		return "saved";
	case STORE_FORMER:
		return "former";
	case STORE_BEFORE:
		return "before";
	case STORE_ALONE:
		return "alone";
	case STORE_ALONE_LATEST:
		return "alone_latest";
	case STORE_BESIDE:
		return "beside";
	case STORE_LATEST:
		break;
	}
	return "latest";
}

void lab_work_score_text(const char *protocol, double score, char out[WORK_SCORE_TEXT])
{
	if (config_score_is_private(protocol))
		snprintf(out, WORK_SCORE_TEXT, "%.0f private steps", score);
	else
		snprintf(out, WORK_SCORE_TEXT, "%s %.4f",
			 store_score_is_old(protocol) ? "score on other valid triples"
						      : "valid score",
			 score);
}

json_t *lab_work_checkpoint_json(const struct store_checkpoint *c)
{
	bool steps = config_score_is_private(c->protocol);
	json_t *j = json_object();

	json_object_set_new(j, "id", json_integer((json_int_t)c->id));
	json_object_set_new(j, "kind", json_string(lab_work_checkpoint_kind(c)));
	json_object_set_new(j, "name", json_string(c->label));
	json_object_set_new(j, "model", json_string(c->model));
	json_object_set_new(j, "dim", json_integer(c->dim));
	json_object_set_new(j, "rel_dim", json_integer(c->rel_dim));
	json_object_set_new(j, "gamma", store_json_of_number((double)c->gamma));
	json_object_set_new(j, "entities", json_integer(c->n_ent));
	json_object_set_new(j, "relations", json_integer(c->n_rel));
	json_object_set_new(j, "valid_score",
			    store_json_of_number(steps ? (double)NAN : c->valid_score));
	if (steps)
		json_object_set_new(j, "private_steps", store_json_of_number(c->valid_score));
	json_object_set_new(j, "valid_protocol", json_string(c->protocol));
	json_object_set_new(j, "epochs", json_integer((json_int_t)c->epochs));
	json_object_set_new(j, "seed", json_integer((json_int_t)c->seed));
	json_object_set_new(j, "created_ms", json_integer(c->created_ms));
	if (!steps) /* it is over rows in the order of ids */
		json_object_set_new(j, "digest", store_json_of_hex(c->digest, STORE_DIGEST));
	return j;
}

/* ---- protocols ---- */

struct kge_protocol lab_work_valid_protocol(const struct config *c)
{
	struct kge_protocol p = *config_protocol(c);

	p.filter &= ~(1u << GRAPH_TEST);
	return p;
}

json_t *lab_work_protocol_json(const struct kge_protocol *p)
{
	json_t *j = json_object(), *filter = json_array();

	for (int s = GRAPH_TRAIN; s < GRAPH_SPLITS; s++)
		if (p->filter & 1u << s)
			json_array_append_new(filter, json_string(graph_split_words[s]));
	json_object_set_new(j, "name", json_string(p->name));
	json_object_set_new(j, "sides", json_string(kge_sides_words[p->sides]));
	json_object_set_new(j, "filter", filter);
	json_object_set_new(j, "candidates", json_string(kge_candidates_words[p->candidates]));
	json_object_set_new(j, "ties", json_string(kge_ties_words[p->ties]));
	json_object_set_new(j, "table", json_string("local"));
	return j;
}

void lab_work_protocol_text(const struct kge_protocol *p, char out[WORK_PROTOCOL_TEXT])
{
	const char *filter = "some";

	for (int k = 0; kge_filter_words[k] != NULL; k++)
		if (p->filter == kge_filter_bits[k])
			filter = kge_filter_words[k];
	snprintf(out, WORK_PROTOCOL_TEXT, "%s: %s sides, filter %s, %s candidates, %s ties",
		 p->name, kge_sides_words[p->sides], filter, kge_candidates_words[p->candidates],
		 kge_ties_words[p->ties]);
}

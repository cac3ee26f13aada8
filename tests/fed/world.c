#include "tests/fed/world.h"

#include <sodium.h>

static uint32_t mix(uint32_t x)
{
	x = (x ^ x >> 16) * 0x7feb352dU;
	x = (x ^ x >> 15) * 0x846ca68bU;
	return x ^ x >> 16;
}

bool world_has(const struct world *w, size_t i, uint32_t k)
{
	if (w->agent[i].label_ctx != NULL) /* the bare one */
		return false;
	return k % 4 == 0 || mix((uint32_t)i * 1000003U + k) % 2 == 0;
}

uint32_t world_id(const struct world *w, size_t i, uint32_t k)
{
	char name[16];
	int n = snprintf(name, sizeof(name), "e%u", k);

	return graph_vocab_find(w->graph[i]->entities, name, (size_t)n);
}

const float *world_row(const struct world *w, size_t i, uint32_t k)
{
	return kge_ent(w->emb[i], world_id(w, i, k));
}

uint64_t world_holders(const struct world *w, uint32_t k)
{
	uint64_t set = 0;

	for (size_t i = 0; i < w->n; i++)
		if (world_has(w, i, k))
			set |= UINT64_C(1) << i;
	return set;
}

static uint32_t name(struct graph_vocab *v, char c, uint32_t k)
{
	char text[16];

	return graph_vocab_add(v, text, (size_t)snprintf(text, sizeof(text), "%c%u", c, k));
}

/* Items in another order at each agent, and a relation of each one's own beside the shared. */
static struct graph *graph_of(const struct world *w, size_t i, bool bare)
{
	struct graph *g = graph_new();
	uint32_t last = GRAPH_NONE;

	name(g->relations, 'r', 0);
	name(g->relations, 'o', (uint32_t)i);
	name(g->entities, 'z', (uint32_t)i); /* nobody else's */
	for (uint32_t j = 0; j < w->items && !bare; j++) {
		uint32_t k = (uint32_t)((j * 7 + i * 3) % w->items), id;

		if (!world_has(w, i, k))
			continue;
		id = name(g->entities, 'e', k);
		if (last != GRAPH_NONE && last != id)
			graph_add(g, GRAPH_TRAIN, (struct graph_triple){ last, j % 2, id });
		last = id;
	}
	return g;
}

/* An encoder that these graphs can bear. */
static void make_small(struct fed_settings *s)
{
	static const struct {
		const char *key;
		double value;
	} small[] = {
		{ "dim", 8 }, { "steps", 3 }, { "batch", 8 }, { "queries", 6 }, { "lr", .02 }
	};

	for (size_t i = 0; i < sizeof(small) / sizeof(small[0]); i++)
		assert_int_equal(fed_settings_set(s, small[i].key, small[i].value, NULL), 0);
}

void world_init(struct world *w, size_t n, uint32_t items, const char *model, size_t dim,
		const char *method, bool bare)
{
	assert_true(sodium_init() >= 0);
	*w = (struct world){ .n = n, .items = items };
	while (items > 7 && items % 7 == 0) /* 7 j visits all of them */
		w->items = items = items + 1;
	for (size_t i = 0; i < n; i++) {
		bool empty = bare && i == n - 1;
		struct rng r;

		rng_seed(&r, 77 + i);
		w->graph[i] = graph_of(w, i, empty);
		w->emb[i] = kge_emb_new(kge_model_find(model), dim, 8.0f,
					graph_vocab_count(w->graph[i]->entities),
					graph_vocab_count(w->graph[i]->relations), &r);
		w->agent[i] = (struct fed_local_agent){ .graph = w->graph[i], .emb = w->emb[i] };
		if (empty)
			w->agent[i].label_ctx = w;
		kge_train_defaults(&w->agent[i].train);
		w->agent[i].train.threads = 1;
	}
	fed_settings_init(&w->config.settings, fed_method_find(method));
	if (strncmp(method, "fedcqa", 6) == 0)
		make_small(&w->config.settings);
	w->config.work_ms = 5;
	w->config.seed = 3;
}

/* Keys follow from the seed alone, so a federation that is thrown away tells them. */
void world_host(struct world *w, size_t i)
{
	struct fed_local *l;

	assert_int_equal(fed_local_new(&l, &w->config, w->agent, w->n, NULL), 0);
	w->config.settings.topology = FED_HOSTED;
	memcpy(w->config.settings.host, fed_local_key(l, i), FED_KEY);
	fed_local_free(l);
}

void world_open(struct world *w)
{
	struct err e = { 0 };

	if (fed_local_new(&w->local, &w->config, w->agent, w->n, &e) != 0)
		fail_msg("%s", e.text);
}

void world_release(struct world *w)
{
	fed_local_free(w->local);
	for (size_t i = 0; i < w->n; i++) {
		kge_emb_free(w->emb[i]);
		graph_free(w->graph[i]);
	}
}

void world_round(struct world *w)
{
	struct err e = { 0 };

	if (fed_local_round(w->local, 0, &e) != 0)
		fail_msg("%s", e.text);
}

void world_save(const struct world *w, struct kge_emb *out[WORLD_MAX])
{
	for (size_t i = 0; i < w->n; i++)
		out[i] = kge_emb_copy(w->emb[i]);
}

void world_restore(struct world *w, struct kge_emb *from[WORLD_MAX])
{
	for (size_t i = 0; i < w->n; i++)
		kge_emb_assign(w->emb[i], from[i]);
}

void world_free(struct kge_emb *v[WORLD_MAX], size_t n)
{
	for (size_t i = 0; i < n; i++)
		kge_emb_free(v[i]);
}

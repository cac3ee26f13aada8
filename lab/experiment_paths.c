/* lab/experiment_paths.c - where an experiment's runs lie. */
#include <stdlib.h>

#include "base/file.h"
#include "base/mem.h"
#include "lab/experiment.h"

static char *run_path(const char *out, const struct exp_variant *v, uint64_t seed, const char *end)
{
	char *name = mem_printf("runs/%s-seed%llu.%s", v->name, (unsigned long long)seed, end);
	char *path = file_join(out, name);

	free(name);
	return path;
}

char *experiment_record_path(const char *out, const struct exp_variant *v, uint64_t seed)
{
	return run_path(out, v, seed, "json");
}

char *experiment_state_path(const char *out, const struct exp_variant *v, uint64_t seed)
{
	return run_path(out, v, seed, "state");
}

char *experiment_agents_path(const char *out, const struct exp_variant *v, uint64_t seed)
{
	return run_path(out, v, seed, "agents");
}

/* tests/sim/main.c - run seeds by hand, or one that has failed again. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "tests/sim/sim.h"

static void usage(void)
{
	printf("sim --seed N [--seeds COUNT] [--agents K] [--calm] [--restores]\n"
	       "    [--backup MS --put-back MS] [--ppat] "
	       "[--procrustes]\n"
	       "    [--map] [--noisy] [--roles] [--world 0..6] [--plant 0..%d] [--store] [--learn] "
	       "[--verbose]\n"
	       "    [--rounds-mode [--method NAME] [--hosted] [--secret] [--scores]] [--rounds N]\n"
	       "    [--sessions N] [--frames]\n"
	       "    [--partners N --links N] [--lists N] [--alone] [--timed]\n"
	       "more than %d agents, at most %d: --calm, and not --rounds-mode\n",
	       SIM_LIES_CAPS, SIM_AGENTS_MAX, SIM_CROWD_MAX);
	exit(2);
}

static uint64_t number(int *i, int argc, char **argv)
{
	if (*i + 1 >= argc)
		usage();
	return strtoull(argv[++*i], NULL, 10);
}

static const char *word(int *i, int argc, char **argv)
{
	if (*i + 1 >= argc)
		usage();
	return argv[++*i];
}

static void tell_of_rounds(const struct sim_report *r)
{
	printf("ok: %llu events, %.0f s, %llu rounds of agents well and %llu not, %llu with all, "
	       "%llu members missed, %llu rows seen, %llu exact, %llu cut, %llu crashes, %llu "
	       "cuts, "
	       "%llu replays, %llu freezes\n",
	       (unsigned long long)r->events, r->seconds, (unsigned long long)r->fed_rounds,
	       (unsigned long long)r->fed_failed, (unsigned long long)r->full_rounds,
	       (unsigned long long)r->missed, (unsigned long long)r->rows_seen,
	       (unsigned long long)r->rows_exact, (unsigned long long)r->rows_cut,
	       (unsigned long long)r->crashes, (unsigned long long)r->cuts,
	       (unsigned long long)r->replays, (unsigned long long)r->freezes);
}

static void tell_of_work(const struct sim_report *r, size_t agents)
{
	double n = (double)agents;

	printf("an agent: %.0f messages, %.0f bytes, %.1f links, %.1f sessions, %.1f "
	       "intersections, %.1f rounds, %.4f s of processor time, score %.4f\n",
	       (double)r->messages / n, (double)r->bytes / n, (double)r->links_up * 2 / n,
	       (double)r->sessions / n, (double)r->intersections / n, (double)r->rounds / n,
	       r->cpu_s / n, r->score);
	if (r->mrr > 0)
		printf("test MRR, mean over agents: %.4f\n", r->mrr);
}

static int run(struct sim_options *o, uint64_t seeds)
{
	int failed = 0;

	for (uint64_t k = 0; k < seeds; k++, o->seed++) {
		struct sim_report r;

		sim_run(o, &r);
		failed += r.failed;
		if (r.failed)
			printf("FAILED %s\n", r.why);
		else if (o->fed && seeds == 1)
			tell_of_rounds(&r);
		else if (seeds == 1)
			printf("ok: %llu events, %.0f s, %llu sessions, %llu labels, %llu "
			       "releases, "
			       "%llu crashes, "
			       "%llu cuts, %llu replays, %llu with neighbours, at most %zu "
			       "sessions at a time, %llu events with one beside other work\n",
			       (unsigned long long)r.events, r.seconds,
			       (unsigned long long)r.sessions, (unsigned long long)r.labels_seen,
			       (unsigned long long)r.releases_seen, (unsigned long long)r.crashes,
			       (unsigned long long)r.cuts, (unsigned long long)r.replays,
			       (unsigned long long)r.extended, r.most_sessions,
			       (unsigned long long)r.beside);
		if (!r.failed && !o->fed && seeds == 1)
			tell_of_work(&r, o->agents);
	}
	printf("%d of %llu seeds failed\n", failed, (unsigned long long)seeds);
	return failed ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct sim_options o = { .seed = 1, .agents = 3 };
	uint64_t seeds = 1;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--seed") == 0)
			o.seed = number(&i, argc, argv);
		else if (strcmp(argv[i], "--seeds") == 0)
			seeds = number(&i, argc, argv);
		else if (strcmp(argv[i], "--agents") == 0)
			o.agents = number(&i, argc, argv);
		else if (strcmp(argv[i], "--world") == 0)
			o.world = (enum sim_world)number(&i, argc, argv);
		else if (strcmp(argv[i], "--plant") == 0)
			o.plant = (enum sim_plant)number(&i, argc, argv);
		else if (strcmp(argv[i], "--restores") == 0)
			o.restores = true;
		else if (strcmp(argv[i], "--backup") == 0)
			o.backup_ms = number(&i, argc, argv);
		else if (strcmp(argv[i], "--put-back") == 0)
			o.put_back_ms = number(&i, argc, argv);
		else if (strcmp(argv[i], "--calm") == 0)
			o.calm = true;
		else if (strcmp(argv[i], "--ppat") == 0)
			o.ppat = true;
		else if (strcmp(argv[i], "--procrustes") == 0)
			o.procrustes = true;
		else if (strcmp(argv[i], "--map") == 0)
			o.map = true;
		else if (strcmp(argv[i], "--noisy") == 0)
			o.noisy = true;
		else if (strcmp(argv[i], "--frames") == 0)
			o.frames = true;
		else if (strcmp(argv[i], "--roles") == 0)
			o.roles = true;
		else if (strcmp(argv[i], "--store") == 0)
			o.real_store = true;
		else if (strcmp(argv[i], "--learn") == 0)
			o.real_learning = true;
		else if (strcmp(argv[i], "--rounds-mode") == 0)
			o.fed = true;
		else if (strcmp(argv[i], "--method") == 0)
			o.method = word(&i, argc, argv);
		else if (strcmp(argv[i], "--hosted") == 0)
			o.hosted = true;
		else if (strcmp(argv[i], "--secret") == 0)
			o.secret = true;
		else if (strcmp(argv[i], "--scores") == 0)
			o.scores = true, o.method = "fedcqa";
		else if (strcmp(argv[i], "--rounds") == 0)
			o.rounds = (uint32_t)number(&i, argc, argv);
		else if (strcmp(argv[i], "--sessions") == 0)
			o.sessions = (uint32_t)number(&i, argc, argv);
		else if (strcmp(argv[i], "--lists") == 0)
			o.lists = number(&i, argc, argv);
		else if (strcmp(argv[i], "--partners") == 0)
			o.partners = (uint32_t)number(&i, argc, argv), o.few = true;
		else if (strcmp(argv[i], "--links") == 0)
			o.links = (uint32_t)number(&i, argc, argv), o.few = true;
		else if (strcmp(argv[i], "--alone") == 0)
			o.alone = true;
		else if (strcmp(argv[i], "--timed") == 0)
			o.timed = true;
		else if (strcmp(argv[i], "--verbose") == 0)
			o.verbose = true;
		else
			usage();
	}
	if (o.agents < 2 || o.agents > SIM_CROWD_MAX || sodium_init() < 0)
		usage();
	if (o.agents > SIM_AGENTS_MAX && (!o.calm || o.fed || o.plant != SIM_HONEST))
		usage();
	log_set_level(LOG_ERROR);
	return run(&o, seeds);
}

/* fed/judge.h - who of several brings rows that hurt: one after another is left out, and our own
 * valid says (methods 4.6, acceptance by valid).
 *
 *   out  <- none
 *   again: of those that are in, the one without whom the score rises most goes out, if it is by
 *          more than so many standard errors above that with all, and above that without another
 *          one, which is the middle of the others'; until there is none
 *   left:  where even then nothing at all would be clearly better, each by itself: out is who is
 *          clearly below both nothing and the best of the others
 *
 * A mean of graphs that differ disturbs a table at first, whoever is in it: leaving out anybody
 * then looks better, and members that left each other out for it would learn nothing together
 * (FB15k-237-R5: docs/results/reliability.md).  So who goes out must stand out.
 *
 * The last step is for several attackers of whom each alone leaves nothing to be seen of the
 * others.  It costs one score for each contributor that hurts nobody, and one more; at most
 * fed_judge_scores().  Nothing of it is sent. */
#ifndef FED_JUDGE_H
#define FED_JUDGE_H

#include <stddef.h>
#include <stdint.h>

enum {
	FED_JUDGE_ALL = 64, /* contributors, a bit each */
	FED_JUDGE_MAX = 12, /* of them that are judged */
};

/* The most scores that a verdict on so many contributors takes (FED_JUDGE_MAX where they are more):
 * all of them; without one after another, of ever fewer; nothing, each by itself, and who is left.
 */
static inline unsigned fed_judge_scores(unsigned judged)
{
	unsigned n = judged < FED_JUDGE_MAX ? judged : FED_JUDGE_MAX;

	return 1 + n * (n + 1) / 2 + n + 2;
}

/* In standard errors of the mean difference.  One of six honest contributors is beyond the first by
 * chance, so that is for who is doubted; from the second on it is held against it. */
#define FED_JUDGE_OUT	1.0
#define FED_JUDGE_CLEAR 2.0

struct fed_judge {
	uint64_t in;	  /* contributors */
	uint64_t judged;  /* of them; the others stay in.  At most FED_JUDGE_MAX */
	uint64_t spared;  /* of these: they stay in, the others are compared with them */
	uint64_t doubted; /* of them: out from FED_JUDGE_OUT on, the others from FED_JUDGE_CLEAR */
	/* What tables with the rows of these make of each of some units (reciprocal ranks of valid
	 * triples), the same ones every time: *each has *n values and is freed by who asked.  0,
	 * or what ends it. */
	int (*score)(void *ctx, uint64_t with, double **each, size_t *n);
	void *ctx;
};

struct fed_verdict {
	uint64_t out;	/* left out */
	uint64_t hurts; /* of them, clearly */
	/* By so many standard errors it is better without: the lesser of both; 0: not judged. */
	double errors[FED_JUDGE_ALL];
	double with, without; /* mean scores: with all; without those that are out */
	size_t units;	      /* that were scored */
};

/* Of fewer than two units nothing is said: nobody is out. */
int fed_judge_run(const struct fed_judge *j, struct fed_verdict *out);
/* By how many standard errors the mean of a is above that of b, unit by unit; 0 where that is no
 * number, HUGE_VAL where all differences are the same. */
double fed_judge_errors(const double *a, const double *b, size_t n);

/* A reputation, 0 to 1: moves a quarter of the way with each verdict, so that k in a row that hurt
 * take it from 1 to 3/4^k, and one that did not lifts it by a quarter of what is missing. */
double fed_reputation_after(double was, int hurt);
/* Is it as low as k verdicts in a row make it?  0: never. */
int fed_reputation_is_lost(double reputation, uint32_t k);

#endif

/* fed/methods/pfedeg.h - what the two PFedEG methods have in common (methods 4.3).
 *
 *   stage 0  up    rows, and how many entities the agent has
 *            home  to agent c: for every member j its number of entities (*), or the sum over the
 *                  items of this home that both hold of exp(cos(E^c[e], E^j[e])) (+): the small
 *                  extra exchange of 4.4
 *            c now has its row of W: Jaccard's |E_c and E_j| / |E_c or E_j| (*), of their alignment
 *            and so also of names that rounds.min_holders keeps at home; or those sums (+).  Its
 *            own weight is the least of the others' (*) or 1/e (+); the row is divided by its sum
 *   stage 1  up    the row of W
 *            home  to c: sum over holders of W_cj E^j[e], divided by the sum of these W_cj
 *            down  E <- p times that + (1 - p) E = K
 *
 * Training begins at K and adds beta |E - K|, the Frobenius norm over the whole table.  Of the
 * paper's ablations (4.4), beta 0 is PFedEG_Init, and reg_only 1 is PFedEG_Reg: rows stay as they
 * were trained, and K is what the next training is drawn to, and nothing else. */
#ifndef FED_METHODS_PFEDEG_H
#define FED_METHODS_PFEDEG_H

#include "fed/method.h"

struct pfedeg {
	struct fed_part base;
	double *affinity; /* [FED_MEMBERS_MAX] what notes have said of each member */
	double *shared;	  /* [FED_MEMBERS_MAX] entities that we share with it */
	double *pairs;	  /* home: [members x members] sums of stage 0, or numbers of entities */
	double *weight;	  /* [FED_MEMBERS_MAX] our row of W */
	float *begin;	  /* K: the table as training began, but for reg_only */
	/* reg_only: */
	float *k;    /* [n_ent x ent_floats] K, of the rows that the last round answered */
	bool *has_k; /* [n_ent] which ones these are */
};

enum pfedeg_constants { PFEDEG_P, PFEDEG_BETA, PFEDEG_REG_ONLY };

/* Of stage 0, a number of entities or a sum over them, as a note has it.  Divided by a power of
 * two, which loses nothing: so that of thousands of millions it is within FED_VALUE_MAX. */
float pfedeg_to_note(double x);
double pfedeg_of_note(float note);

/* All of a method but its name, its title and what is between stage 0 and 1. */
#define PFEDEG_COMMON                                                                              \
	.tags = "e", .scored = FED_SCORED_OWN,                                                     \
	.constant = { { "p", 0.7, 0, 1, "part of the others' knowledge in K" },                    \
		      { "beta", 3e-3, 0, 1000, "weight of |E - K|" },                              \
		      { "reg_only", 0, 0, 1,                                                       \
			"1: training does not begin at K, and is only drawn to it" } },            \
	.part_size = sizeof(struct pfedeg), .init = pfedeg_init, .release = pfedeg_release,        \
	.save = pfedeg_save, .load = pfedeg_load, .train = pfedeg_train, .stages = pfedeg_stages,  \
	.shape = pfedeg_shape, .choose = pfedeg_choose, .up = pfedeg_up,                           \
	.note_up = pfedeg_note_up, .down = pfedeg_down

int pfedeg_init(struct fed_part *base, struct err *e);
void pfedeg_release(struct fed_part *base);
void pfedeg_save(const struct fed_part *base, struct buf *out);
int pfedeg_load(struct fed_part *base, const uint8_t *bytes, size_t n, struct err *e);
int pfedeg_train(struct fed_part *base, struct fed_training *t);
unsigned pfedeg_stages(const struct fed_settings *s);
void pfedeg_shape(const struct fed_settings *s, unsigned members, unsigned stage,
		  struct fed_shape *out);
void pfedeg_choose(struct fed_part *base, unsigned stage, struct fed_items items);
bool pfedeg_up(struct fed_part *base, unsigned stage, const struct fed_item *it, float *row);
void pfedeg_note_up(struct fed_part *base, unsigned stage, unsigned home, float *note);
void pfedeg_down(struct fed_part *base, unsigned stage, const struct fed_item *it,
		 const float *row);
/* The answer of stage 1; false in stage 0. */
bool pfedeg_answer(const struct fed_part *base, const struct fed_upload *u, unsigned to,
		   float *answer);
/* Our row of W from the others' weights w [members] (0: shares nothing with us) and our own. */
void pfedeg_weigh(struct pfedeg *p, const double *w, double own);

#endif

/* lab/report.h - what `fkge train --report DIR` leaves for people.
 *
 *   report.md    settings, seeds, graph, protocol, result, time, memory
 *   curves.tsv   a line an epoch (lab/curve.h)
 *   curves.svg   the same as a picture, by gnuplot where it is installed
 */
#ifndef LAB_REPORT_H
#define LAB_REPORT_H

#include "base/err.h"
#include "lab/curve.h"
#include "lab/work.h"

struct report {
	const struct work *work;
	const struct curve *curve;
	bool has_best;
	double score;	      /* of the best, on valid */
	double floor;	      /* of counting, on valid; NAN: not known */
	uint64_t epochs_best; /* behind it */
	uint32_t improved;
	const uint8_t *digest; /* of its tables */
	const uint8_t *graph_digest;
	size_t n_test;	    /* its triples, which the graph at hand may lack */
	const char *ending; /* a sentence: how the training ended */
};

/* Highest resident memory of this process so far, in bytes. */
uint64_t report_peak_bytes(void);
/* Makes the folder if need be.  No gnuplot is a note, not an error. */
int report_write(const struct lab_out *notes, const char *folder, const struct report *r,
		 struct err *e);

#endif

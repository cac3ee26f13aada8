/* ranks/comm_internal.h - between comm.c and comm_mpi.c, which is built where MPI is. */
#ifndef RANKS_COMM_INTERNAL_H
#define RANKS_COMM_INTERNAL_H

#include "ranks/comm.h"

/* As ranks_comm_open(), of a process that was started as one of several. */
MUST_CHECK int ranks_mpi_open(struct ranks_comm **out, struct err *e);

#endif

#include "ranks/comm.h"

#include <stdbool.h>
#include <stdlib.h>

#include "ranks/comm_internal.h"

/* What the mpirun of OpenMPI, that of MPICH and Slurm with PMIx leave in the environment. */
static bool is_one_of_several(void)
{
	const char *size = getenv("OMPI_COMM_WORLD_SIZE");

	if (size == NULL)
		size = getenv("PMI_SIZE");
	if (size != NULL)
		return strtoul(size, NULL, 10) > 1;
	return getenv("PMIX_RANK") != NULL;
}

int ranks_comm_open(struct ranks_comm **out, struct err *e)
{
	*out = NULL;
	if (!is_one_of_several())
		return 0;
#ifdef RANKS_MPI
	return ranks_mpi_open(out, e);
#else
	return err_set(e, ERR_USAGE,
		       "several ranks were started, and this fkge was built without MPI: build it "
		       "with libopenmpi-dev there (meson setup -Dmpi=enabled), or start it alone");
#endif
}

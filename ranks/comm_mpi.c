/* ranks/comm_mpi.c - over MPI.  Sums of floats are not MPI's: its order of additions is its own. */
#include <assert.h>
#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/mem.h"
#include "ranks/comm.h"
#include "ranks/comm_internal.h"

enum {
	PIECE = 1 << 18,  /* floats of a slot in a message */
	AHEAD = 4,	  /* such messages that are on their way at a time */
	BYTES = 1 << 28,  /* in one message to all */
	ASKED_FIRST = 20, /* times, before there are pauses */
	PAUSE_NS = 10000, /* the first; they grow, so that a long wait takes little of a core */
	PAUSE_MORE_NS = 500,
	PAUSE_MAX_NS = 500000,
	SLACK_NS = 1000, /* how much longer the kernel may make one; its own choice is 50 us */
};

/* ---- life ---- */

static int open_world(struct ranks_comm *c, struct err *e)
{
	int given, rank, size;

	/* Ranks of a machine may not read each other's memory, for fkge has it kept private. */
	setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
	if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &given) != MPI_SUCCESS ||
	    given < MPI_THREAD_FUNNELED)
		return err_set(e, ERR_USAGE, "MPI does not start, or not with threads beside it");
	(void)prctl(PR_SET_TIMERSLACK, SLACK_NS, 0, 0, 0);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	c->rank = (uint32_t)rank;
	c->size = (uint32_t)size;
	if (c->size <= RANKS_MAX)
		return 0;
	MPI_Finalize();
	return err_set(e, ERR_USAGE, "%u ranks: at most %d", c->size, RANKS_MAX);
}

static void close_world(struct ranks_comm *c)
{
	MPI_Finalize();
	free(c->room);
	free(c);
}

/* MPI's own waiting asks without a pause, which takes the core from whoever is waited for where
 * there are fewer cores than ranks, and from other programs. */
static void wait_for_all(MPI_Request *requests, int n)
{
	struct timespec pause = { 0, PAUSE_NS };
	int done = 0;

	for (int asked = 0;
	     MPI_Testall(n, requests, &done, MPI_STATUSES_IGNORE) == MPI_SUCCESS && !done; asked++)
		if (asked >= ASKED_FIRST) {
			nanosleep(&pause, NULL);
			if (pause.tv_nsec < PAUSE_MAX_NS)
				pause.tv_nsec += PAUSE_MORE_NS;
		}
}

/* ---- to all ---- */

static uint32_t hear_order(struct ranks_comm *c, uint32_t word)
{
	MPI_Request request;

	(void)c;
	MPI_Ibcast(&word, 1, MPI_UINT32_T, 0, MPI_COMM_WORLD, &request);
	wait_for_all(&request, 1);
	return word;
}

static void share_bytes(struct ranks_comm *c, void *bytes, size_t n)
{
	uint8_t *at = bytes;
	MPI_Request request;

	(void)c;
	for (size_t from = 0; from < n; from += BYTES) {
		size_t some = n - from < BYTES ? n - from : BYTES;

		MPI_Ibcast(at + from, (int)some, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
		wait_for_all(&request, 1);
	}
}

static void collect_bytes(struct ranks_comm *c, const void *mine, size_t n, void *all)
{
	MPI_Request request;

	(void)c;
	assert(n <= INT_MAX);
	MPI_Iallgather(mine, (int)n, MPI_BYTE, all, (int)n, MPI_BYTE, MPI_COMM_WORLD, &request);
	wait_for_all(&request, 1);
}

static int agree_on(struct ranks_comm *c, int rc, struct err *e)
{
	int codes[RANKS_MAX];
	char text[ERR_TEXT_MAX] = { 0 };
	uint32_t first = 0;

	collect_bytes(c, &rc, sizeof(rc), codes);
	while (first < c->size && codes[first] == 0)
		first++;
	if (first == c->size)
		return 0;
	if (e != NULL)
		memcpy(text, e->text, sizeof(text));
	MPI_Bcast(text, sizeof(text), MPI_CHAR, (int)first, MPI_COMM_WORLD);
	text[sizeof(text) - 1] = '\0';
	return first == c->rank ? rc : err_set(e, codes[first], "rank %u: %s", first, text);
}

/* ---- numbers ---- */

static void deal_floats(struct ranks_comm *c, const float *out, size_t n, float *in)
{
	MPI_Request request;

	assert(n <= INT_MAX);
	MPI_Ialltoall(out, (int)n, MPI_FLOAT, in, (int)n, MPI_FLOAT, MPI_COMM_WORLD, &request);
	wait_for_all(&request, 1);
	c->related += (c->size - 1) * n * sizeof(float);
}

static void gather_floats(struct ranks_comm *c, const float *mine, size_t n, float *all)
{
	MPI_Request request;

	assert(n <= INT_MAX);
	MPI_Iallgather(mine, (int)n, MPI_FLOAT, all, (int)n, MPI_FLOAT, MPI_COMM_WORLD, &request);
	wait_for_all(&request, 1);
	c->related += (c->size - 1) * n * sizeof(float);
}

static size_t piece_at(size_t from, size_t n)
{
	return n - from < PIECE ? n - from : PIECE;
}

/* What comes waits in the room until what goes from there is away; meanwhile the next pieces are
 * on their way. */
static void move_floats(struct ranks_comm *c, struct ranks_move move, float *at, size_t n)
{
	MPI_Request requests[AHEAD][2];
	size_t pieces = (n + PIECE - 1) / PIECE;

	for (size_t k = 0; k < pieces + AHEAD; k++) {
		size_t from = k * PIECE, lane = k % AHEAD;
		float *room = c->room + lane * PIECE;

		if (k >= AHEAD) {
			size_t came = from - (size_t)AHEAD * PIECE;

			wait_for_all(requests[lane], 2);
			memcpy(at + came, room, piece_at(came, n) * sizeof(float));
		}
		if (k < pieces) {
			int floats = (int)piece_at(from, n);

			MPI_Irecv(room, floats, MPI_FLOAT, (int)move.from, 0, MPI_COMM_WORLD,
				  &requests[lane][0]);
			MPI_Isend(at + from, floats, MPI_FLOAT, (int)move.to, 0, MPI_COMM_WORLD,
				  &requests[lane][1]);
		}
	}
	c->moved += n * sizeof(float);
}

static void reduce_words(void *at, size_t n, MPI_Op op)
{
	uint32_t *words = at;
	MPI_Request request;

	for (size_t from = 0; from < n; from += BYTES / sizeof(*words)) {
		size_t some = n - from < BYTES / sizeof(*words) ? n - from : BYTES / sizeof(*words);

		MPI_Iallreduce(MPI_IN_PLACE, words + from, (int)some, MPI_UINT32_T, op,
			       MPI_COMM_WORLD, &request);
		wait_for_all(&request, 1);
	}
}

static void sum_words(struct ranks_comm *c, uint32_t *at, size_t n)
{
	(void)c;
	reduce_words(at, n, MPI_SUM);
}

static void unite_words(struct ranks_comm *c, float *at, size_t n)
{
	(void)c;
	static_assert(sizeof(float) == sizeof(uint32_t), "rows are united as words");
	reduce_words(at, n, MPI_BOR);
}

static void fill_functions(struct ranks_comm *c)
{
	c->order = hear_order;
	c->share = share_bytes;
	c->collect = collect_bytes;
	c->agree = agree_on;
	c->deal = deal_floats;
	c->gather = gather_floats;
	c->move = move_floats;
	c->sum = sum_words;
	c->unite = unite_words;
	c->close = close_world;
}

int ranks_mpi_open(struct ranks_comm **out, struct err *e)
{
	struct ranks_comm *c;
	int rc;

	*out = NULL;
	c = mem_array(1, sizeof(*c));
	rc = open_world(c, e);
	if (rc == 0 && c->size == 1)
		MPI_Finalize();
	if (rc != 0 || c->size == 1) {
		free(c);
		return rc;
	}
	fill_functions(c);
	c->room = mem_aligned((size_t)AHEAD * PIECE, sizeof(float));
	*out = c;
	return 0;
}

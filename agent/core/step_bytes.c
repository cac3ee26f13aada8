/* agent/core/step_bytes.c - points and rows of a step as they travel (steps_internal.h). */
#include <assert.h>
#include <string.h>

#include "agent/core/core_internal.h"
#include "agent/core/steps_internal.h"

enum { COUNT_BYTES = 4, COUNT_MAX = (1 << 28) - 1 };

void step_put_count(struct step_writer *w, uint32_t n)
{
	assert(n <= COUNT_MAX);
	for (; n >= 0x80; n >>= 7)
		*buf_extend(w->out, 1) = (uint8_t)(n | 0x80);
	*buf_extend(w->out, 1) = (uint8_t)n;
}

void step_put_slot(struct step_writer *w, uint32_t slot)
{
	assert(slot >= w->next);
	step_put_count(w, slot - w->next);
	w->next = slot + 1;
}

void step_put_truth(struct step_writer *w, float truth)
{
	uint8_t *at = buf_extend(w->out, 4);
	uint32_t bits;

	memcpy(&bits, &truth, sizeof(bits));
	for (int k = 0; k < 4; k++)
		at[k] = (uint8_t)(bits >> (8 * k));
}

static bool get_byte(struct step_reader *r, uint8_t *byte)
{
	if (r->left.len == 0)
		return false;
	*byte = *r->left.base++;
	r->left.len--;
	return true;
}

bool step_get_count(struct step_reader *r, uint32_t *n)
{
	uint8_t byte;

	*n = 0;
	for (int k = 0; k < COUNT_BYTES; k++) {
		if (!get_byte(r, &byte))
			return false;
		*n |= (uint32_t)(byte & 0x7f) << (7 * k);
		if ((byte & 0x80) == 0)
			return byte != 0 || k == 0; /* else there were fewer bytes */
	}
	return false;
}

bool step_get_slot(struct step_reader *r, uint32_t *slot)
{
	uint32_t above;

	if (!step_get_count(r, &above) || above > COUNT_MAX - r->next)
		return false;
	*slot = r->next + above;
	r->next = *slot + 1;
	return *slot < COUNT_MAX;
}

bool step_get_truth(struct step_reader *r, float *truth)
{
	uint32_t bits = 0;
	uint8_t byte;

	for (int k = 0; k < 4; k++) {
		if (!get_byte(r, &byte))
			return false;
		bits |= (uint32_t)byte << (8 * k);
	}
	memcpy(truth, &bits, sizeof(*truth));
	return true;
}

int step_get_points(const struct net_bytes *from, struct query_point *out)
{
	struct step_reader r = { .left = *from };
	int n = 0;

	for (; r.left.len > 0; n++)
		if (n == NET_POINTS_MAX || !step_get_slot(&r, &out[n].id) ||
		    !step_get_truth(&r, &out[n].truth))
			return -1;
	return n;
}

void step_hash_asked(struct ledger_step *s, const struct net_bytes *points,
		     const struct query_limits *most)
{
	const size_t numbers[] = { most->beam, most->known, most->predicted };
	uint8_t bytes[sizeof(numbers) / sizeof(numbers[0])][4];

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		for (int k = 0; k < 4; k++)
			bytes[i][k] = (uint8_t)(numbers[i] >> (8 * k));
	ledger_step_hash(s->frontier, points->base, points->len, bytes, sizeof(bytes));
}

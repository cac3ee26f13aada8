#include "base/secret.h"

#include <assert.h>
#include <sodium.h>

void secret_draw(void *ctx, void *out, size_t n)
{
	assert(out != NULL || n == 0);
	(void)ctx;
	randombytes_buf(out, n);
}

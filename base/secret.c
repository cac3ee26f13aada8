#include "base/secret.h"

#include <sodium.h>

void secret_draw(void *ctx, void *out, size_t n)
{
	(void)ctx;
	randombytes_buf(out, n);
}

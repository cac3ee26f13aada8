/* libFuzzer entry: CC=clang meson setup build-fuzz -Dfuzz=true; ./build-fuzz/tests/net/fuzz_msg */
#include "tests/fuzz/poke_msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	poke_msg(bytes, n);
	return 0;
}

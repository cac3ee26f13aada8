/* libFuzzer entry for messages: ./run fuzz builds and runs it, tests/fuzz/meson.build has its test.
 */
#include "tests/fuzz/poke_msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	poke_msg(bytes, n);
	return 0;
}

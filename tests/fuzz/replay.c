/* The main of a libFuzzer entry without libFuzzer: each file that is named is an input.  Status 3:
 * the target counts what it takes (accepted.h), and of a kind none of them was taken. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "tests/fuzz/accepted.h"

#pragma weak fuzz_kinds
#pragma weak fuzz_taken

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void run(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *bytes;
	long n;

	if (f == NULL || fseek(f, 0, SEEK_END) != 0 || (n = ftell(f)) < 0) {
		perror(path);
		exit(2);
	}
	rewind(f);
	/* as long as the input, or a sanitizer would not see what is read past it */
	bytes = mem_array((size_t)n + (n == 0), 1);
	if (fread(bytes, 1, (size_t)n, f) != (size_t)n) {
		perror(path);
		exit(2);
	}
	fclose(f);
	LLVMFuzzerTestOneInput(bytes, (size_t)n);
	free(bytes);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		run(argv[i]);
	if (&fuzz_kinds == NULL || fuzz_taken == fuzz_kinds)
		return 0;
	fprintf(stderr, "of kinds %#x (accepted.h) none is taken\n", fuzz_kinds & ~fuzz_taken);
	return 3;
}

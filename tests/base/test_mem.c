/* Memory for kernels: where it begins, and that all of it is zero. */
#include "tests/test.h"

#include <ftw.h>
#include <math.h>
#include <sys/stat.h>

#include "base/mem.h"

static void test_aligned(void **state)
{
	static const size_t large = (size_t)4 << 20;
	static const size_t sizes[] = { 0, 1, 63, 64, 65, 100000 };

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(*sizes); i++) {
		size_t n = sizes[i / 2] + (i % 2 == 0 ? 0 : large - 64),
		       padded = (n + 63) / 64 * 64;
		unsigned char *p = mem_aligned(n, 1), all = 0;

		assert_int_equal((uintptr_t)p % 64, 0);
		for (size_t k = 0; k < padded; k++)
			all |= p[k];
		assert_int_equal(all, 0);
		memset(p, 0xff, padded); /* kernels may store whole vectors */
		free(p);
	}
}

/* What this machine has is not known here, but the test needs some of it. */
static void test_most(void **state)
{
	(void)state;
	assert_true(mem_ram_bytes() > 1 << 24 && mem_ram_bytes() <= mem_most_bytes());
	assert_true(mem_most_bytes() < (double)((uint64_t)1 << 56));
}

/* ---- control groups ---- */

static char root[] = "/tmp/fkge-mem-XXXXXX";

static void put(const char *path, const char *text)
{
	char *at = mem_printf("%s/%s", root, path);
	FILE *f;

	for (char *slash = at + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
		*slash = '\0';
		mkdir(at, 0700);
		*slash = '/';
	}
	f = fopen(at, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	free(at);
}

static int drop(const char *path, const struct stat *st, int flag, struct FTW *at)
{
	(void)st, (void)flag, (void)at;
	return remove(path);
}

static void test_groups(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(root));
	assert_true(isinf(mem_group_bytes(root))); /* nothing there */
	put("sys/fs/cgroup/memory.max", "7000000\n");
	assert_true(mem_group_bytes(root) == 7e6); /* a container's own */
	put("proc/self/cgroup", "0::/\n");
	assert_true(mem_group_bytes(root) == 7e6);
	put("proc/self/cgroup", "4:memory:/other\n0::/user.slice/work: a.service\n");
	put("sys/fs/cgroup/other/memory.max", "1\n");
	assert_true(mem_group_bytes(root) == 7e6); /* its files are not seen here */
	put("sys/fs/cgroup/user.slice/work: a.service/memory.max", "5000000\n");
	assert_true(mem_group_bytes(root) == 5e6); /* its own */
	put("sys/fs/cgroup/user.slice/memory.max", "3000000\n");
	assert_true(mem_group_bytes(root) == 3e6); /* one above it */
	put("sys/fs/cgroup/user.slice/memory.max", "max\n");
	put("sys/fs/cgroup/memory.max", "max\n");
	assert_true(mem_group_bytes(root) == 5e6);
	put("sys/fs/cgroup/user.slice/work: a.service/memory.max", "max\n");
	assert_true(isinf(mem_group_bytes(root)));
	nftw(root, drop, 8, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_aligned),
		cmocka_unit_test(test_most),
		cmocka_unit_test(test_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

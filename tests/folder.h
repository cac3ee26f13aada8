/* tests/folder.h - a new empty folder for a group of tests, gone after them:
 *
 *   cmocka_run_group_tests(tests, make_folder, remove_folder)
 */
#ifndef TESTS_FOLDER_H
#define TESTS_FOLDER_H

#include <unistd.h>

#include "base/mem.h"
#include "tests/test.h"

static char folder[] = "/tmp/fkge-test-XXXXXX";

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) == NULL;
}

/* A process that a test has left may write in it once more: again until nothing comes. */
static int remove_folder(void **state)
{
	char *command = mem_printf("rm -r %s", folder);
	int rc = system(command);

	(void)state;
	for (int again = 0; rc != 0 && again < 1000; again++) {
		usleep(10000);
		rc = system(command);
	}
	free(command);
	return rc;
}

#endif

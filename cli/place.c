#include "cli/place.h"

#include <libgen.h>
#include <stdbool.h>
#include <stdlib.h>

#include "agent/folder.h"
#include "base/file.h"
#include "base/mem.h"

static bool is_of_agent(const char *path)
{
	char *name = mem_strdup(path), *around = mem_strdup(path);
	bool is = false;

	if (folder_has_name(basename(name))) {
		struct folder f;

		folder_paths(&f, dirname(around));
		is = file_exists(f.config_path) || file_exists(f.identity_path);
		folder_close(&f);
	}
	free(name);
	free(around);
	return is;
}

int cli_check_place(const char *path, const struct place_kind *k, struct err *e)
{
	if (is_of_agent(path))
		return err_set(e, ERR_EXISTS,
			       "%s is a file of the agent's own, and nothing else goes there: name "
			       "another file",
			       path);
	return place_check(path, k, e);
}

int cli_check_place_in(const char *folder, const char *name, const struct place_kind *k,
		       struct err *e)
{
	char *path = file_join(folder, name);
	int rc = cli_check_place(path, k, e);

	free(path);
	return rc;
}

#include "base/owner.h"

#include <libgen.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

void owner_user(uid_t id, char out[OWNER_NAME])
{
	struct passwd user, *found = NULL;
	char room[4096];

	if (getpwuid_r(id, &user, room, sizeof(room), &found) == 0 && found != NULL)
		snprintf(out, OWNER_NAME, "%s", found->pw_name);
	else
		snprintf(out, OWNER_NAME, "#%lu", (unsigned long)id);
}

static uid_t owner_of_folder(const char *path, uid_t otherwise)
{
	char *copy = mem_strdup(path);
	struct stat st;
	bool seen = stat(dirname(copy), &st) == 0;

	free(copy);
	return seen ? st.st_uid : otherwise;
}

int owner_refuse(const char *path, uid_t owner, int code, struct err *e)
{
	uid_t folder = owner_of_folder(path, owner);
	char user[OWNER_NAME], around[OWNER_NAME];

	owner_user(owner, user);
	owner_user(folder, around);
	if (folder == owner)
		return err_set(e, code,
			       "%s is of %s, as its folder is: do this as that user (sudo -u '%s' "
			       "fkge ...)",
			       path, user, user);
	return err_set(e, code, "%s is of %s, its folder of %s; type%s: chown %lu %s", path, user,
		       around, geteuid() == 0 ? "" : ", as root", (unsigned long)folder, path);
}

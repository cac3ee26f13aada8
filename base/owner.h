/* base/owner.h - whose files are, and what to do about those of another user. */
#ifndef BASE_OWNER_H
#define BASE_OWNER_H

#include <sys/types.h>

#include "base/err.h"

enum { OWNER_NAME = 64 };
/* As `sudo -u` takes it: the user's name, or #NUMBER. */
void owner_user(uid_t id, char out[OWNER_NAME]);
/* The error, with this code, for a file that is of `owner` and not of this process's user: a thing
 * to do as that user where the folder around it is that user's, too; else it is to be given to the
 * folder's. */
int owner_refuse(const char *path, uid_t owner, int code, struct err *e);

#endif

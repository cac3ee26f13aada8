#include "agent/listen.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static int bind_once(const struct addrinfo *to)
{
	int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1, why = 0;

	if (fd < 0)
		return errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, to->ai_addr, to->ai_addrlen) != 0)
		why = errno;
	close(fd);
	return why;
}

int listen_trial(const char *host, uint16_t port)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
	struct addrinfo *found = NULL;
	char service[8];
	int why;

	snprintf(service, sizeof(service), "%u", port);
	if (getaddrinfo(host, service, &hints, &found) != 0)
		return EADDRNOTAVAIL;
	why = bind_once(found);
	freeaddrinfo(found);
	return why;
}

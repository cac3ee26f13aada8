#include "agent/listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config/config.h"

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

/* NULL: no host has that name. */
static struct addrinfo *addresses_of(const char *host, uint16_t port)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
	struct addrinfo *found = NULL;
	char service[8];

	snprintf(service, sizeof(service), "%u", port);
	return getaddrinfo(host, service, &hints, &found) == 0 ? found : NULL;
}

bool listen_is_number(const char *host)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST };
	struct addrinfo *found = NULL;
	bool is = getaddrinfo(host, NULL, &hints, &found) == 0;

	if (found != NULL)
		freeaddrinfo(found);
	return is;
}

int listen_trial(const char *host, uint16_t port)
{
	struct addrinfo *found = addresses_of(host, port);
	int why;

	if (found == NULL)
		return LISTEN_NO_HOST;
	why = bind_once(found);
	freeaddrinfo(found);
	return why;
}

const char *listen_why(int why)
{
	return why == LISTEN_NO_HOST ? "no such host" : strerror(why);
}

/* Also one that is written as ::ffff:a.b.c.d. */
static bool is_ipv4(const struct addrinfo *a, struct in_addr *out)
{
	const void *at = a->ai_addr;
	const struct in6_addr *six = &((const struct sockaddr_in6 *)at)->sin6_addr;

	if (a->ai_family == AF_INET)
		*out = ((const struct sockaddr_in *)at)->sin_addr;
	else if (a->ai_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(six))
		memcpy(out, six->s6_addr + 12, sizeof(*out));
	else
		return false;
	return true;
}

/* Does listening there take the other's address, too? */
static bool takes_address(const struct addrinfo *a, const struct addrinfo *b)
{
	const void *at = a->ai_addr;
	struct in_addr x, y;

	if (a->ai_family == AF_INET6 &&
	    IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)at)->sin6_addr))
		return true; /* of both families */
	if (is_ipv4(a, &x) && is_ipv4(b, &y))
		return x.s_addr == htonl(INADDR_ANY) || x.s_addr == y.s_addr;
	return a->ai_family == b->ai_family && a->ai_addrlen == b->ai_addrlen &&
	       memcmp(at, b->ai_addr, b->ai_addrlen) == 0;
}

bool listen_same_host(const char *a, const char *b)
{
	struct addrinfo *x = addresses_of(a, 0), *y = addresses_of(b, 0);
	bool same = x != NULL && y != NULL && (takes_address(x, y) || takes_address(y, x));

	if (x != NULL)
		freeaddrinfo(x);
	if (y != NULL)
		freeaddrinfo(y);
	return same;
}

bool listen_reaches_further(const char *address, const char *setting)
{
	char host[256];
	uint16_t port;

	if (strcmp(setting, "off") == 0)
		return true;
	if (strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0 ||
	    config_address(setting, host, &port, NULL) != 0 || config_is_wildcard(host))
		return false;
	return config_is_wildcard(address) || !listen_same_host(address, host);
}

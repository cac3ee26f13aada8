#include "agent/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#ifdef FKGE_SYSTEMD
#include <systemd/sd-daemon.h>
#else /* what the library answers where no manager has started the program */
enum { SD_LISTEN_FDS_START = 3 };

static int sd_notify(int unset, const char *state)
{
	return (void)unset, (void)state, 0;
}

static int sd_notifyf(int unset, const char *format, ...)
{
	return (void)unset, (void)format, 0;
}

static int sd_watchdog_enabled(int unset, uint64_t *patience_us)
{
	return (void)unset, *patience_us = 0, 0;
}

static int sd_listen_fds(int unset)
{
	return (void)unset, 0;
}

static int sd_is_socket(int fd, int family, int type, int listening)
{
	return (void)fd, (void)family, (void)type, (void)listening, 0;
}
#endif

enum { FEEDS = 4 }; /* in the watchdog's time */

static uint64_t next_ms; /* when it is fed again */

void supervisor_ready(const char *status)
{
	next_ms = 0;
	(void)sd_notifyf(0, "READY=1\nSTATUS=%s", status); /* nobody may be there to hear it */
}

void supervisor_feed(uint64_t now_ms)
{
	uint64_t patience_us;

	if (now_ms < next_ms || sd_watchdog_enabled(0, &patience_us) <= 0)
		return;
	next_ms = now_ms + patience_us / 1000 / FEEDS;
	(void)sd_notify(0, "WATCHDOG=1");
}

void supervisor_reloading(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	(void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%lld\nWATCHDOG=1",
			 (long long)t.tv_sec * 1000000 + t.tv_nsec / 1000);
}

void supervisor_stopping(void)
{
	(void)sd_notify(0, "STOPPING=1");
}

int supervisor_socket(int *fd, struct err *e)
{
	int n = sd_listen_fds(0);

	*fd = -1;
	if (n <= 0)
		return 0;
	if (n > 1 || sd_is_socket(SD_LISTEN_FDS_START, AF_UNSPEC, SOCK_STREAM, 1) <= 0)
		return err_set(e, ERR_USAGE,
			       "the service manager handed over %d descriptors that will not do: "
			       "an agent takes one listening TCP socket (ListenStream= of its "
			       "socket unit)",
			       n);
	*fd = fcntl(SD_LISTEN_FDS_START, F_DUPFD_CLOEXEC, SD_LISTEN_FDS_START + 1);
	return *fd >= 0 ? 0
			: err_set(e, ERR_IO, "the service manager's socket: %s", strerror(errno));
}

/* What anybody can do who knows an agent's address: knock with keys of his own, as fast as he can.
 *
 *   knock PORT KEY COUNT FROM [silent|HEX]
 *
 * COUNT greetings to 127.0.0.1:PORT, whose key is KEY (fkge id), each with a new key; or KEY is an
 * invitation, whose secret and ticket are used.  FROM is
 * the loopback address that they come from; with a + behind it each comes from the next one.
 * Who is let through says HELLO with a new signing key; silent: nothing, until it is sent away;
 * HEX: with this signing key, which is another agent's. Prints one line, "refused R closed C left L
 * answered A last ID": how many heard that they are not on the list, were closed unread, were sent
 * away once they had a link, or were greeted as partners; and the id of the last key. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/frame.h"
#include "net/greet.h"
#include "net/ident.h"
#include "tests/hostile/hello.h"

enum outcome { REFUSED, CLOSED, LEFT, ANSWERED, OUTCOMES };

struct target {
	struct sockaddr_in to;
	uint8_t key[NET_KEY_BYTES];
	uint8_t ticket[NET_TICKET_BYTES]; /* zeros: none */
	uint8_t psk[NET_PSK_BYTES];
	uint8_t claimed[NET_SIGN_BYTES]; /* zeros: none */
	bool has_psk, silent;
};

static int fail(const char *what)
{
	perror(what);
	exit(1);
}

static int connect_from(const struct target *t, uint32_t from)
{
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(from) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	if (fd < 0)
		fail("socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&own, sizeof(own)) != 0)
		fail("bind");
	if (connect(fd, (const struct sockaddr *)&t->to, sizeof(t->to)) != 0)
		fail("connect");
	return fd;
}

static void speak(int fd, struct net_noise_cipher *tx, const struct target *t,
		  const uint8_t own[NET_KEY_BYTES])
{
	bool claims = !sodium_is_zero(t->claimed, sizeof(t->claimed));
	struct net_frame_writer w;
	struct buf out = { 0 }, hello = { 0 };

	net_frame_writer_init(&w, tx, 0);
	hello_write(&hello, own, claims ? t->claimed : NULL);
	if (net_frame_write_control(&w, FRAME_PING, NULL, &out) != 0 ||
	    (!t->silent && net_frame_write_message(&w, hello.base, hello.len, &out) != 0))
		abort();
	if (send(fd, out.base, out.len, MSG_NOSIGNAL) < 0)
		perror("send");
	buf_release(&out);
	buf_release(&hello);
	net_frame_writer_release(&w);
}

/* Until it greets us or sends us away. */
static enum outcome hear(int fd, struct net_noise_cipher *rx)
{
	static struct net_frame_reader r; /* large */
	uint8_t bytes[4096];
	const uint8_t *at = bytes;
	size_t n = 0;
	int what = FRAME_MORE;

	net_frame_reader_init(&r, rx, 0);
	while (what >= 0 && what != FRAME_MESSAGE && what != FRAME_LEFT) {
		ssize_t got = n == 0 ? recv(fd, bytes, sizeof(bytes), 0) : 0;

		if (n == 0 && got <= 0)
			break;
		if (n == 0) {
			at = bytes;
			n = (size_t)got;
		}
		what = net_frame_read(&r, &at, &n);
	}
	net_frame_reader_release(&r);
	return what == FRAME_MESSAGE ? ANSWERED : what == FRAME_LEFT ? LEFT : CLOSED;
}

/* The rest of the handshake; in, when the agent goes on talking to us. */
static enum outcome finish(int fd, struct net_noise *hs, const struct target *t,
			   const uint8_t own[NET_KEY_BYTES])
{
	uint8_t act[GREET_ACT2];
	struct timeval patience = { .tv_sec = 20 };
	struct net_noise_cipher tx, rx;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (recv(fd, act, sizeof(act), MSG_WAITALL) != (ssize_t)sizeof(act) ||
	    net_greet_finish(hs, act) != 0)
		return CLOSED;
	net_noise_split(hs, &tx, &rx, NULL);
	speak(fd, &tx, t, own);
	return hear(fd, &rx);
}

static enum outcome greet(int fd, const struct target *t, uint8_t public[NET_KEY_BYTES])
{
	uint8_t secret[NET_KEY_BYTES], ask[GREET_ASK], head[GREET_HEAD];
	struct net_greet_keys keys = { secret, t->has_psk ? t->psk : NULL, NET_VERSION };
	struct net_noise hs;
	uint16_t version;
	uint8_t status;

	randombytes_buf(secret, sizeof(secret));
	crypto_scalarmult_base(public, secret);
	if (net_greet_ask(&hs, &keys, t->key, t->ticket, NULL, ask) != 0)
		exit(1);
	if (send(fd, ask, sizeof(ask), MSG_NOSIGNAL) != (ssize_t)sizeof(ask) ||
	    recv(fd, head, sizeof(head), MSG_WAITALL) != (ssize_t)sizeof(head) ||
	    net_greet_head(head, NET_VERSION, &version, &status) != 0)
		return CLOSED;
	return status == GREET_REFUSED ? REFUSED
	       : status == GREET_OK    ? finish(fd, &hs, t, public)
				       : CLOSED;
}

/* An invitation, or an agent's id. */
static int read_target(struct target *t, const char *text)
{
	struct net_invite v;
	struct err e = { 0 };

	if (net_invite_parse(text, &v, &e) != 0)
		return net_key_parse(text, t->key, &e);
	memcpy(t->key, v.from.noise, sizeof(t->key));
	memcpy(t->psk, v.psk, sizeof(t->psk));
	memcpy(t->ticket, v.ticket, sizeof(t->ticket));
	t->has_psk = v.has_psk;
	return 0;
}

static bool read_claimed(struct target *t, const char *hex)
{
	return strlen(hex) == 2 * sizeof(t->claimed) &&
	       sodium_hex2bin(t->claimed, sizeof(t->claimed), hex, strlen(hex), NULL, NULL, NULL) ==
		       0;
}

int main(int argc, char **argv)
{
	struct target t = { .to = { .sin_family = AF_INET } };
	size_t n[OUTCOMES] = { 0 };
	uint8_t public[NET_KEY_BYTES];
	char text[NET_KEY_TEXT];
	struct in_addr from;
	bool each;

	t.silent = argc == 6 && strcmp(argv[5], "silent") == 0;
	if (argc < 5 || argc > 6 || sodium_init() < 0 || read_target(&t, argv[2]) != 0 ||
	    (argc == 6 && !t.silent && !read_claimed(&t, argv[5]))) {
		fprintf(stderr, "usage: knock PORT KEY COUNT FROM[+] [silent|HEX]\n");
		return 2;
	}
	each = argv[4][strlen(argv[4]) - 1] == '+';
	argv[4][strcspn(argv[4], "+")] = '\0';
	if (inet_pton(AF_INET, argv[4], &from) != 1)
		return 2;
	t.to.sin_port = htons((uint16_t)atoi(argv[1]));
	t.to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (uint32_t i = 0; i < (uint32_t)atoi(argv[3]); i++) {
		int fd = connect_from(&t, ntohl(from.s_addr) + (each ? i : 0));

		n[greet(fd, &t, public)]++;
		close(fd);
	}
	net_key_format(public, text);
	printf("refused %zu closed %zu left %zu answered %zu last %s\n", n[REFUSED], n[CLOSED],
	       n[LEFT], n[ANSWERED], text);
	return 0;
}

/* net/noise_internal.h - the handshake patterns of the Noise specification, section 7
 * (one-way and interactive) and appendix 18.1 (deferred), as tables.  Only
 * noise.c includes it. */
#ifndef NET_NOISE_INTERNAL_H
#define NET_NOISE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

enum noise_token {
	TOKEN_END,
	TOKEN_E,
	TOKEN_S,
	TOKEN_EE,
	TOKEN_ES,
	TOKEN_SE,
	TOKEN_SS,
	TOKEN_PSK,
};

enum { NOISE_TOKENS_MAX = 5, NOISE_MESSAGES_MAX = 4 };

struct net_noise_pattern {
	char name[5];
	bool pre[2]; /* is the static key of initiator, responder known beforehand? */
	uint8_t messages;
	uint8_t message[NOISE_MESSAGES_MAX][NOISE_TOKENS_MAX]; /* the initiator's is first */
};

/* clang-format off */
#define E TOKEN_E
#define S TOKEN_S
#define EE TOKEN_EE
#define ES TOKEN_ES
#define SE TOKEN_SE
#define SS TOKEN_SS

static const struct net_noise_pattern noise_patterns[] = {
	{"N", {false, true}, 1, {{E, ES}}},
	{"K", {true, true}, 1, {{E, ES, SS}}},
	{"X", {false, true}, 1, {{E, ES, S, SS}}},
	{"NN", {false, false}, 2, {{E}, {E, EE}}},
	{"NK", {false, true}, 2, {{E, ES}, {E, EE}}},
	{"NX", {false, false}, 2, {{E}, {E, EE, S, ES}}},
	{"XN", {false, false}, 3, {{E}, {E, EE}, {S, SE}}},
	{"XK", {false, true}, 3, {{E, ES}, {E, EE}, {S, SE}}},
	{"XX", {false, false}, 3, {{E}, {E, EE, S, ES}, {S, SE}}},
	{"KN", {true, false}, 2, {{E}, {E, EE, SE}}},
	{"KK", {true, true}, 2, {{E, ES, SS}, {E, EE, SE}}},
	{"KX", {true, false}, 2, {{E}, {E, EE, SE, S, ES}}},
	{"IN", {false, false}, 2, {{E, S}, {E, EE, SE}}},
	{"IK", {false, true}, 2, {{E, ES, S, SS}, {E, EE, SE}}},
	{"IX", {false, false}, 2, {{E, S}, {E, EE, SE, S, ES}}},
	{"NK1", {false, true}, 2, {{E}, {E, EE, ES}}},
	{"NX1", {false, false}, 3, {{E}, {E, EE, S}, {ES}}},
	{"X1N", {false, false}, 4, {{E}, {E, EE}, {S}, {SE}}},
	{"X1K", {false, true}, 4, {{E, ES}, {E, EE}, {S}, {SE}}},
	{"XK1", {false, true}, 3, {{E}, {E, EE, ES}, {S, SE}}},
	{"X1K1", {false, true}, 4, {{E}, {E, EE, ES}, {S}, {SE}}},
	{"X1X", {false, false}, 4, {{E}, {E, EE, S, ES}, {S}, {SE}}},
	{"XX1", {false, false}, 3, {{E}, {E, EE, S}, {ES, S, SE}}},
	{"X1X1", {false, false}, 4, {{E}, {E, EE, S}, {ES, S}, {SE}}},
	{"K1N", {true, false}, 3, {{E}, {E, EE}, {SE}}},
	{"K1K", {true, true}, 3, {{E, ES}, {E, EE}, {SE}}},
	{"KK1", {true, true}, 2, {{E}, {E, EE, SE, ES}}},
	{"K1K1", {true, true}, 3, {{E}, {E, EE, ES}, {SE}}},
	{"K1X", {true, false}, 3, {{E}, {E, EE, S, ES}, {SE}}},
	{"KX1", {true, false}, 3, {{E}, {E, EE, SE, S}, {ES}}},
	{"K1X1", {true, false}, 3, {{E}, {E, EE, S}, {SE, ES}}},
	{"I1N", {false, false}, 3, {{E, S}, {E, EE}, {SE}}},
	{"I1K", {false, true}, 3, {{E, ES, S}, {E, EE}, {SE}}},
	{"IK1", {false, true}, 2, {{E, S}, {E, EE, SE, ES}}},
	{"I1K1", {false, true}, 3, {{E, S}, {E, EE, ES}, {SE}}},
	{"I1X", {false, false}, 3, {{E, S}, {E, EE, S, ES}, {SE}}},
	{"IX1", {false, false}, 3, {{E, S}, {E, EE, SE, S}, {ES}}},
	{"I1X1", {false, false}, 3, {{E, S}, {E, EE, S}, {SE, ES}}},
};

#undef E
#undef S
#undef EE
#undef ES
#undef SE
#undef SS
/* clang-format on */

#endif

/* net/card.h - what a dialler shows in the first message of a handshake (net/greet.h). */
#ifndef NET_CARD_H
#define NET_CARD_H

#include <stdint.h>

#include "net/sizes.h"

/* Sealed for the acceptor; zeros: none. */
struct net_greet_card {
	uint8_t ticket[NET_TICKET_BYTES]; /* of an invitation */
	uint8_t pair_id[NET_PAIR_ID];	  /* of the pair's secret */
};

#endif

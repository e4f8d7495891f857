/* SPDX-License-Identifier: BSD-3-Clause
 * Pairs of sides, for suites with Options and a target for each side. Included by their side.h, which declares
 * everything else, behind struct Side and Options.
 */
#ifndef PAIRS_H
#define PAIRS_H

#include "sides.h"

typedef struct {
    Side *client, *server;
} Pair;

/* A side that is not open yet, with a port that no other case uses. */
Side *new_side(Peer *process);

void side_open(Side *side, Options options);

/* Opens a side with the device, the memory and the shared receive queue of another one in the same process. */
void side_open_beside(Side *side, Side *other, Options options);

/* Frees everything in order, expecting success of each call. */
void side_close(Side *side);

/* Steps of connecting: see side.h. After begin_connecting() both events are still to come. */
void listen_at(Side *server);
void begin_connecting(const Pair *pair);
void exchange_targets(const Pair *pair);

/* Connects them; each has the memory of the other as its target. */
void pair_connect(const Pair *pair);

/* Hangs up and closes both. */
void pair_close(const Pair *pair);

/* A message of no bytes: what `from` wrote before is in the memory of `to` afterwards. */
void tell(Side *from, Side *to);

/* Two open sides: the client here, the server in a helper process and listening. */
static inline Pair open_pair_of(Options client, Options server) {
    Peer *process = peer_start();
    Pair pair = {new_side(NULL), new_side(process)};
    side_open(pair.client, client);
    side_open(pair.server, server);
    listen_at(pair.server);
    return pair;
}

static inline Pair open_pair(Options options) { return open_pair_of(options, options); }

static inline Pair connected_pair_of(Options client, Options server) {
    Pair pair = open_pair_of(client, server);
    pair_connect(&pair);
    return pair;
}

static inline Pair connected_pair(Options options) { return connected_pair_of(options, options); }

#endif

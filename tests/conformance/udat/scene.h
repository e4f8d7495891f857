/* SPDX-License-Identifier: BSD-3-Clause
 * Endpoints in each state, for cases about what a call does there. Everything is in the process of the case, and stays
 * until that ends.
 */
#ifndef SCENE_H
#define SCENE_H

#include "side.h"

typedef struct {
    Pair pair;
    DAT_EP_HANDLE ep; /* the one in the state */
    DAT_RSP_HANDLE rsp;
    DAT_CR_HANDLE cr; /* the request that waits for an answer */
} Scene;

Scene scene_in(DAT_EP_STATE state);

/* The same with the IA, zone and memory of a side. */
Scene scene_beside(Side *side, DAT_EP_STATE state);

/* An endpoint of the side, connecting to a qualifier at the address of the side's IA. */
DAT_RETURN request_to(const Side *side, DAT_EP_HANDLE ep, DAT_CONN_QUAL qual);

/* A connection request that came to an EVD of this process. */
DAT_CR_HANDLE request_on(DAT_EVD_HANDLE evd);

/* A common service point at the port, with the side's EVD, or DAT_HANDLE_NULL where the library has none. */
DAT_CSP_HANDLE new_csp(const Side *side, DAT_CONN_QUAL port);

/* A connection qualifier that no other case uses and nobody listens to. */
DAT_CONN_QUAL unused_qual(void);

/* The subtype of DAT_INVALID_STATE for an endpoint in the state. */
DAT_RETURN_SUBTYPE subtype_of(DAT_EP_STATE state);

DAT_IA_ATTR ia_attributes(DAT_IA_HANDLE ia);
DAT_PROVIDER_ATTR provider_attributes(DAT_IA_HANDLE ia);

/* Whether the IA names an extension among its attributes, and not to say that it lacks it. */
bool announces(DAT_IA_HANDLE ia, const char *name);

/* A quality of service that the provider does not have, or else the case is skipped. */
DAT_QOS unsupported_qos(DAT_IA_HANDLE ia);

#endif

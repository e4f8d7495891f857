/* SPDX-License-Identifier: BSD-3-Clause
 * Endpoints in each state; scene.h tells how they are used.
 */
#include "scene.h"

#include <netinet/in.h>

#pragma weak dat_csp_create

DAT_CONN_QUAL unused_qual(void) { return new_side(NULL)->qual; }

DAT_RETURN request_to(const Side *side, DAT_EP_HANDLE ep, DAT_CONN_QUAL qual) {
    struct sockaddr_storage address = side->address;
    return dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&address, qual, long_us(), 0, NULL, DAT_QOS_BEST_EFFORT,
                          DAT_CONNECT_DEFAULT_FLAG);
}

DAT_CR_HANDLE request_on(DAT_EVD_HANDLE evd) {
    DAT_CR_HANDLE cr = WAIT_ON(evd, DAT_CONNECTION_REQUEST_EVENT).event_data.cr_arrival_event_data.cr_handle;
    CHECK(cr != DAT_HANDLE_NULL);
    return cr;
}

DAT_CSP_HANDLE new_csp(const Side *side, DAT_CONN_QUAL port) {
    DAT_COMM tcp = {AF_INET, SOCK_STREAM, IPPROTO_TCP};
    DAT_CSP_HANDLE csp = DAT_HANDLE_NULL;
    struct sockaddr_storage address = side->address;
    ((struct sockaddr_in *)&address)->sin_port = htons((uint16_t)port);
    if (dat_csp_create == NULL) return DAT_HANDLE_NULL;
    CHECK_OK(dat_csp_create(side->ia, &tcp, (DAT_IA_ADDRESS_PTR)&address, side->evds[CR], &csp));
    CHECK(csp != DAT_HANDLE_NULL);
    return csp;
}

static void reserve(Scene *scene) {
    const Side *server = scene->pair.server;
    DAT_CONN_QUAL qual = unused_qual();
    scene->ep = server->ep;
    CHECK_OK(dat_rsp_create(server->ia, qual, server->ep, server->evds[CR], &scene->rsp));
}

static void ask_for_reserved(Scene *scene) {
    const Side *server = scene->pair.server;
    DAT_CONN_QUAL qual = unused_qual();
    scene->ep = server->ep;
    CHECK_OK(dat_rsp_create(server->ia, qual, server->ep, server->evds[CR], &scene->rsp));
    CHECK_OK(request_to(server, scene->pair.client->ep, qual));
    scene->cr = request_on(server->evds[CR]);
}

static void ask_for_providers(Scene *scene) {
    const Side *server = scene->pair.server;
    DAT_CONN_QUAL qual = unused_qual();
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    DAT_CR_PARAM param;
    CHECK_OK(dat_psp_create(server->ia, qual, server->evds[CR], DAT_PSP_PROVIDER_FLAG, &psp));
    CHECK_OK(request_to(server, scene->pair.client->ep, qual));
    scene->cr = request_on(server->evds[CR]);
    CHECK_OK(dat_cr_query(scene->cr, DAT_CR_FIELD_ALL, &param));
    scene->ep = param.local_ep_handle;
}

static void ask(Scene *scene) {
    Side *server = scene->pair.server;
    scene->ep = scene->pair.client->ep;
    CHECK_OK(request_to(server, scene->ep, server->qual));
    scene->cr = request_on(server->evds[CR]);
}

/* A message that nobody receives holds a graceful disconnect up. */
static void hold_up(const Pair *pair) {
    pair_connect(pair);
    CHECK_OK(post(pair->client, (Work){.operation = SEND, .length = 64, .cookie = 1}));
    CHECK_OK(disconnect(pair->client, DAT_CLOSE_GRACEFUL_FLAG));
}

static void set(Scene *scene, DAT_EP_STATE state) {
    switch (state) {
        case DAT_EP_STATE_UNCONNECTED: return;
        case DAT_EP_STATE_RESERVED: reserve(scene); return;
        case DAT_EP_STATE_PASSIVE_CONNECTION_PENDING: ask_for_reserved(scene); return;
        case DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING: ask_for_providers(scene); return;
        case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING: ask(scene); return;
        case DAT_EP_STATE_CONNECTED: pair_connect(&scene->pair); return;
        case DAT_EP_STATE_DISCONNECTED:
            pair_connect(&scene->pair);
            pair_hang_up(&scene->pair, DAT_CLOSE_ABRUPT_FLAG);
            return;
        case DAT_EP_STATE_DISCONNECT_PENDING: hold_up(&scene->pair); return;
        default: fail(__FILE__, __LINE__, "no scene for state %d", (int)state);
    }
}

static Scene scene_of(Pair pair, DAT_EP_STATE state) {
    Scene scene = {.pair = pair, .ep = pair.client->ep};
    set(&scene, state);
    CHECK_EQ(state_of(scene.ep), state);
    return scene;
}

Scene scene_in(DAT_EP_STATE state) { return scene_of(open_pair_here((Options){0}), state); }

Scene scene_beside(Side *side, DAT_EP_STATE state) {
    const Pair pair = {new_side(NULL), new_side(NULL)};
    side_open_beside(pair.client, side, (Options){0});
    side_open_beside(pair.server, side, (Options){0});
    listen_at(pair.server);
    return scene_of(pair, state);
}

DAT_RETURN_SUBTYPE subtype_of(DAT_EP_STATE state) {
    switch (state) {
        case DAT_EP_STATE_UNCONNECTED: return DAT_INVALID_STATE_EP_UNCONNECTED;
        case DAT_EP_STATE_RESERVED: return DAT_INVALID_STATE_EP_RESERVED;
        case DAT_EP_STATE_PASSIVE_CONNECTION_PENDING: return DAT_INVALID_STATE_EP_PASSCONNPENDING;
        case DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING: return DAT_INVALID_STATE_EP_TENTCONNPENDING;
        case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING: return DAT_INVALID_STATE_EP_ACTCONNPENDING;
        case DAT_EP_STATE_CONNECTED: return DAT_INVALID_STATE_EP_CONNECTED;
        case DAT_EP_STATE_DISCONNECTED: return DAT_INVALID_STATE_EP_DISCONNECTED;
        case DAT_EP_STATE_DISCONNECT_PENDING: return DAT_INVALID_STATE_EP_DISCPENDING;
        default: fail(__FILE__, __LINE__, "no subtype for state %d", (int)state);
    }
}

DAT_IA_ATTR ia_attributes(DAT_IA_HANDLE ia) {
    DAT_IA_ATTR attributes;
    CHECK_OK(dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attributes, DAT_PROVIDER_FIELD_NONE, NULL));
    return attributes;
}

DAT_PROVIDER_ATTR provider_attributes(DAT_IA_HANDLE ia) {
    /* The matrix within is const; the provider fills it all the same. */
    union {
        char room[sizeof(DAT_PROVIDER_ATTR)];
        DAT_PROVIDER_ATTR attributes;
    } answer;
    memset(answer.room, 0, sizeof answer.room);
    CHECK_OK(dat_ia_query(ia, NULL, DAT_IA_FIELD_NONE, NULL, DAT_PROVIDER_FIELD_ALL, &answer.attributes));
    return answer.attributes;
}

bool announces(DAT_IA_HANDLE ia, const char *name) {
    DAT_PROVIDER_ATTR attributes = provider_attributes(ia);
    for (DAT_COUNT i = 0; i < attributes.num_provider_specific_attr; ++i) {
        const DAT_NAMED_ATTR *attribute = &attributes.provider_specific_attr[i];
        if (strcmp(attribute->name, name) == 0) return strcmp(attribute->value, "FALSE") != 0;
    }
    return false;
}

DAT_QOS unsupported_qos(DAT_IA_HANDLE ia) {
    const DAT_QOS supported = provider_attributes(ia).dat_qos_supported;
    CHECK(!on_loopback() || supported == DAT_QOS_BEST_EFFORT);
    const DAT_QOS known[] = {DAT_QOS_PREMIUM, DAT_QOS_ECONOMY, DAT_QOS_LOW_LATENCY, DAT_QOS_HIGH_THROUGHPUT};
    for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
        if ((supported & known[i]) == 0) return known[i];
    }
    skip("the provider has every quality of service");
}

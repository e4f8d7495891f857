/* SPDX-License-Identifier: BSD-3-Clause
 * Sides for the conformance programs: making and connecting them.
 */
#include "side.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/mman.h>

/* ---- The environment --------------------------------------------------------------------------------------------- */

DAT_NAME_PTR test_ia(void) {
    char *name = getenv("CONFORMANCE_IA");
    return name != NULL ? name : (DAT_NAME_PTR) "viaduct-lo";
}

bool on_loopback(void) {
    const char *backend = getenv("VIADUCT_BACKEND");
    return backend != NULL ? strcmp(backend, "loopback") == 0 : strcmp(test_ia(), "viaduct-lo") == 0;
}

DAT_TIMEOUT long_us(void) { return (DAT_TIMEOUT)(LONG_MS * 1000); }

/* ---- Single objects ---------------------------------------------------------------------------------------------- */

static DAT_IA_HANDLE open_ia_of(DAT_COUNT async_qlen, DAT_EVD_HANDLE *async_evd) {
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    CHECK_OK(dat_ia_open(test_ia(), async_qlen, &evd, &ia));
    CHECK(ia != DAT_HANDLE_NULL && evd != DAT_HANDLE_NULL);
    if (async_evd != NULL) *async_evd = evd;
    return ia;
}

DAT_IA_HANDLE open_ia(DAT_EVD_HANDLE *async_evd) { return open_ia_of(EVD_QLEN, async_evd); }

DAT_PZ_HANDLE new_pz(DAT_IA_HANDLE ia) {
    DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
    CHECK_OK(dat_pz_create(ia, &pz));
    CHECK(pz != DAT_HANDLE_NULL);
    return pz;
}

static DAT_EVD_HANDLE new_evd_of(DAT_IA_HANDLE ia, DAT_COUNT qlen, DAT_EVD_FLAGS flags) {
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    CHECK_OK(dat_evd_create(ia, qlen, DAT_HANDLE_NULL, flags, &evd));
    CHECK(evd != DAT_HANDLE_NULL);
    return evd;
}

DAT_EVD_HANDLE new_evd(DAT_IA_HANDLE ia, DAT_EVD_FLAGS flags) { return new_evd_of(ia, EVD_QLEN, flags); }

static DAT_LMR_HANDLE new_lmr_for(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, void *memory, DAT_VLEN length,
                                  DAT_MEM_PRIV_FLAGS privileges, DAT_LMR_CONTEXT *context,
                                  DAT_RMR_CONTEXT *rmr_context) {
    DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
    CHECK_OK(register_virtual(ia, pz, memory, length, privileges, &lmr, context, rmr_context));
    CHECK(lmr != DAT_HANDLE_NULL);
    return lmr;
}

DAT_LMR_HANDLE new_lmr(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, void *memory, DAT_VLEN length, DAT_LMR_CONTEXT *context) {
    DAT_RMR_CONTEXT rmr_context;
    return new_lmr_for(ia, pz, memory, length, DAT_MEM_PRIV_ALL_FLAG, context, &rmr_context);
}

DAT_RMR_HANDLE new_rmr(DAT_PZ_HANDLE pz) {
    DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;
    DAT_RETURN rc = dat_rmr_create(pz, &rmr);
    if (!on_loopback() && DAT_GET_TYPE(rc) == DAT_MODEL_NOT_SUPPORTED) skip("the device has no memory windows");
    CHECK_OK(rc);
    CHECK(rmr != DAT_HANDLE_NULL);
    return rmr;
}

static DAT_COUNT or_default(DAT_COUNT count, DAT_COUNT otherwise) { return count != 0 ? count : otherwise; }

DAT_EP_ATTR ep_attributes(Options options) {
    DAT_EP_ATTR attributes = attributes_for(AREA_BYTES, DTOS, or_default(options.iov_segments, IOV_SEGMENTS), 4);
    attributes.recv_completion_flags = options.recv_flags;
    attributes.request_completion_flags = options.request_flags;
    attributes.max_recv_dtos = or_default(options.recv_dtos, DTOS);
    attributes.max_request_dtos = or_default(options.request_dtos, DTOS);
    return attributes;
}

DAT_EP_HANDLE new_ep(const Side *side, Options options) {
    DAT_EP_ATTR attributes = ep_attributes(options);
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    const DAT_EVD_HANDLE *evds = side->evds;
    if (side->srq != DAT_HANDLE_NULL) {
        CHECK_OK(dat_ep_create_with_srq(side->ia, side->pz, evds[RECV], evds[REQUEST], evds[CONN], side->srq,
                                        &attributes, &ep));
    } else {
        CHECK_OK(dat_ep_create(side->ia, side->pz, evds[RECV], evds[REQUEST], evds[CONN], &attributes, &ep));
    }
    CHECK(ep != DAT_HANDLE_NULL);
    return ep;
}

DAT_EP_STATE state_of(DAT_EP_HANDLE ep) {
    DAT_EP_STATE state = DAT_EP_STATE_RESERVED;
    DAT_BOOLEAN recv_idle, request_idle;
    CHECK_OK(dat_ep_get_status(ep, &state, &recv_idle, &request_idle));
    return state;
}

/* ---- Opening and closing ----------------------------------------------------------------------------------------- */

Side *new_side(Peer *process) {
    uint16_t port;
    Side *side = blank_side(process, &port);
    side->qual = port;
    return side;
}

typedef struct {
    Side *other;
    Options options;
    DAT_CONN_QUAL qual;
} Opening;

static void ask_address(Side *side) {
    DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
    DAT_IA_ATTR attributes;
    CHECK_OK(dat_ia_query(side->ia, &async_evd, DAT_IA_FIELD_IA_ADDRESS_PTR, &attributes, 0, NULL));
    CHECK(attributes.ia_address_ptr != NULL);
    bool six = attributes.ia_address_ptr->sa_family == AF_INET6;
    memcpy(&side->address, attributes.ia_address_ptr, six ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
}

static void open_srq(Side *side, const Options *options) {
    DAT_SRQ_ATTR attributes = {or_default(options->recv_dtos, DTOS), or_default(options->iov_segments, IOV_SEGMENTS),
                               DAT_SRQ_LW_DEFAULT};
    CHECK_OK(dat_srq_create(side->ia, side->pz, &attributes, &side->srq));
}

static void open_own(Side *side, const Options *options) {
    side->ia = open_ia_of(or_default(options->evd_qlen, EVD_QLEN), &side->evds[ASYNC]);
    side->pz = new_pz(side->ia);
    void *memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    side->memory = memory;
    DAT_MEM_PRIV_FLAGS privileges = options->privileges != 0 ? options->privileges : DAT_MEM_PRIV_ALL_FLAG;
    side->lmr =
        new_lmr_for(side->ia, side->pz, memory, MEMORY_BYTES, privileges, &side->lmr_context, &side->rmr_context);
    if (options->srq) open_srq(side, options);
}

static void borrow(Side *side, const Side *other) {
    side->borrows = true;
    side->ia = other->ia;
    side->pz = other->pz;
    side->evds[ASYNC] = other->evds[ASYNC];
    side->memory = other->memory;
    side->lmr = other->lmr;
    side->lmr_context = other->lmr_context;
    side->rmr_context = other->rmr_context;
    side->srq = other->srq;
}

static void open_evds(Side *side, const Options *options) {
    static const DAT_EVD_FLAGS flags[EVDS] = {DAT_EVD_ASYNC_FLAG, DAT_EVD_CR_FLAG, DAT_EVD_CONNECTION_FLAG,
                                              DAT_EVD_DTO_FLAG, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG};
    DAT_COUNT qlen = or_default(options->evd_qlen, EVD_QLEN);
    for (int i = CR; i < EVDS; ++i) {
        if (options->one_evd && i > CR) {
            side->evds[i] = side->evds[CR];
        } else {
            side->evds[i] = new_evd_of(
                side->ia, qlen, options->one_evd ? flags[CR] | flags[CONN] | flags[RECV] | flags[REQUEST] : flags[i]);
        }
    }
}

static void do_open(Side *side, void *argument) {
    const Opening *opening = argument;
    side->qual = opening->qual;
    if (opening->other != NULL) {
        borrow(side, opening->other);
    } else {
        open_own(side, &opening->options);
    }
    ask_address(side);
    open_evds(side, &opening->options);
    side->ep = new_ep(side, opening->options);
}

void side_open_beside(Side *side, Side *other, Options options) {
    Opening opening = {other, options, side->qual};
    at(side, do_open, &opening, sizeof opening);
}

void side_open(Side *side, Options options) { side_open_beside(side, NULL, options); }

static void close_own(Side *side) {
    if (side->srq != DAT_HANDLE_NULL) CHECK_OK(dat_srq_free(side->srq));
    CHECK_OK(dat_lmr_free(side->lmr));
    CHECK_OK(dat_pz_free(side->pz));
    CHECK_OK(dat_ia_close(side->ia, DAT_CLOSE_GRACEFUL_FLAG));
    CHECK(munmap(side->memory, MEMORY_BYTES) == 0);
}

static void do_close(Side *side, void *unused) {
    (void)unused;
    if (side->ep != DAT_HANDLE_NULL) CHECK_OK(dat_ep_free(side->ep));
    if (side->psp != DAT_HANDLE_NULL) CHECK_OK(dat_psp_free(side->psp));
    for (int i = CR; i < EVDS; ++i) {
        if (i == CR || side->evds[i] != side->evds[CR]) CHECK_OK(dat_evd_free(side->evds[i]));
    }
    if (!side->borrows) close_own(side);
}

void side_close(Side *side) { at(side, do_close, NULL, 0); }

/* ---- Pairs ------------------------------------------------------------------------------------------------------- */

Pair open_pair_here(Options options) {
    Pair pair = {new_side(NULL), new_side(NULL)};
    side_open(pair.client, options);
    side_open_beside(pair.server, pair.client, options);
    listen_at(pair.server);
    return pair;
}

void begin_connecting(const Pair *pair) {
    CHECK_OK(connect_to(pair->client, pair->server, NULL, 0));
    take_request(pair->server);
    CHECK_OK(accept_request(pair->server, NULL, 0));
}

void pair_connect(const Pair *pair) {
    begin_connecting(pair);
    EXPECT_EVENT(pair->client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    EXPECT_EVENT(pair->server, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    exchange_targets(pair);
}

Pair connected_pair_here(Options options) {
    Pair pair = open_pair_here(options);
    pair_connect(&pair);
    return pair;
}

void pair_hang_up(const Pair *pair, DAT_CLOSE_FLAGS flags) {
    CHECK_OK(disconnect(pair->client, flags));
    EXPECT_EVENT(pair->client, CONN, DAT_CONNECTION_EVENT_DISCONNECTED);
    EXPECT_EVENT(pair->server, CONN, DAT_CONNECTION_EVENT_DISCONNECTED);
}

void pair_close(const Pair *pair) {
    throw_away_events(pair->client);
    throw_away_events(pair->server);
    pair_hang_up(pair, DAT_CLOSE_ABRUPT_FLAG);
    throw_away_events(pair->client);
    throw_away_events(pair->server);
    side_close(pair->server);
    side_close(pair->client);
}

/* ---- Connecting, step by step ------------------------------------------------------------------------------------ */

static void do_listen(Side *side, void *unused) {
    (void)unused;
    CHECK_OK(dat_psp_create(side->ia, side->qual, side->evds[CR], DAT_PSP_CONSUMER_FLAG, &side->psp));
}

void listen_at(Side *server) { at(server, do_listen, NULL, 0); }

typedef struct {
    DAT_RETURN rc;
    struct sockaddr_storage address;
    DAT_CONN_QUAL qual;
    DAT_COUNT size;
    uint8_t data[MAX_PDATA];
} Connecting;

static void set_data(Connecting *connecting, const void *data, DAT_COUNT size) {
    CHECK(size <= MAX_PDATA);
    connecting->size = size;
    if (size > 0) memcpy(connecting->data, data, (size_t)size);
}

static void do_connect(Side *side, void *argument) {
    Connecting *to = argument;
    to->rc = dat_ep_connect(side->ep, (DAT_IA_ADDRESS_PTR)&to->address, to->qual, DAT_TIMEOUT_INFINITE, to->size,
                            to->data, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

DAT_RETURN connect_to(Side *client, const Side *server, const void *data, DAT_COUNT size) {
    Connecting connecting = {.address = server->address, .qual = server->qual};
    set_data(&connecting, data, size);
    at(client, do_connect, &connecting, sizeof connecting);
    return connecting.rc;
}

static void keep_private_data(Side *side, const void *data, DAT_COUNT size) {
    CHECK(size >= 0 && size <= MAX_PDATA);
    side->private_data_size = size;
    if (size > 0) memcpy(side->private_data, data, (size_t)size);
}

static void do_take_request(Side *side, void *unused) {
    (void)unused;
    DAT_CR_PARAM param;
    DAT_EVENT event = WAIT_ON(side->evds[CR], DAT_CONNECTION_REQUEST_EVENT);
    side->cr = event.event_data.cr_arrival_event_data.cr_handle;
    CHECK_OK(dat_cr_query(side->cr, DAT_CR_FIELD_ALL, &param));
    keep_private_data(side, param.private_data, param.private_data_size);
}

void take_request(Side *server) { at(server, do_take_request, NULL, 0); }

static void do_accept(Side *side, void *argument) {
    Connecting *answer = argument;
    answer->rc = dat_cr_accept(side->cr, side->ep, answer->size, answer->data);
}

DAT_RETURN accept_request(Side *server, const void *data, DAT_COUNT size) {
    Connecting answer = {0};
    set_data(&answer, data, size);
    at(server, do_accept, &answer, sizeof answer);
    return answer.rc;
}

static void do_reject(Side *side, void *rc) { *(DAT_RETURN *)rc = dat_cr_reject(side->cr, 0, NULL); }

DAT_RETURN reject_request(Side *server) {
    DAT_RETURN rc = DAT_SUCCESS;
    at(server, do_reject, &rc, sizeof rc);
    return rc;
}

static void do_set_target(Side *side, void *target) { side->target = *(const Target *)target; }

static void set_target(Side *side, const Side *other) {
    Target target = {other->rmr_context, (DAT_VADDR)(uintptr_t)other->memory};
    at(side, do_set_target, &target, sizeof target);
}

void exchange_targets(const Pair *pair) {
    set_target(pair->client, pair->server);
    set_target(pair->server, pair->client);
}

typedef struct {
    DAT_RETURN rc;
    DAT_CLOSE_FLAGS flags;
} Disconnecting;

static void do_disconnect(Side *side, void *argument) {
    Disconnecting *disconnecting = argument;
    disconnecting->rc = dat_ep_disconnect(side->ep, disconnecting->flags);
}

DAT_RETURN disconnect(Side *side, DAT_CLOSE_FLAGS flags) {
    Disconnecting disconnecting = {DAT_SUCCESS, flags};
    at(side, do_disconnect, &disconnecting, sizeof disconnecting);
    return disconnecting.rc;
}

static void do_ask_state(Side *side, void *state) { *(DAT_EP_STATE *)state = state_of(side->ep); }

DAT_EP_STATE ep_state(Side *side) {
    DAT_EP_STATE state = DAT_EP_STATE_RESERVED;
    at(side, do_ask_state, &state, sizeof state);
    return state;
}

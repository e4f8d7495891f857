/* SPDX-License-Identifier: BSD-3-Clause
 * The life of a DAT connection and of a second connection that duplicates it.
 */
#include "../support/ends/dat_calls.h"
#include "sweep.h"

#include <arpa/inet.h>
#include <dat2/udat.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { MESSAGE = 64, LARGE = 256 * 1024, WRITTEN = 32 * 1024, QUEUE_LENGTH = 64, DTOS = 8 };
enum { SENDING, GREETING, ENDING }; /* cookies */
enum { REFUSAL, FIRST, SECOND };    /* the action requested in the private data of a connection request */

/* An endpoint and its connect EVD. */
typedef struct {
    DAT_EP_HANDLE ep;
    DAT_EVD_HANDLE evd;
    bool asked; /* the outcome of a request or an acceptance is pending */
} End;

static DAT_IA_HANDLE ia;
static DAT_PZ_HANDLE pz;
static DAT_CNO_HANDLE cno;
static DAT_LMR_HANDLE heap, file;
static DAT_LMR_CONTEXT heap_context;
static DAT_RMR_HANDLE rmr;
static DAT_SRQ_HANDLE srq;
static DAT_EVD_HANDLE requests, receives, sends;
static End first, second;
static DAT_PSP_HANDLE psp;
static DAT_CSP_HANDLE csp;
static DAT_CR_HANDLE request;
static int receives_posted;
static bool posted; /* a send was posted but not waited for */
static bool second_stands;

static DAT_NAME_PTR ia_name(void) {
    char* name = getenv("CONFORMANCE_IA");
    return name != NULL ? name : (DAT_NAME_PTR) "viaduct-lo";
}

/* Loads the provider in advance, because the dynamic linker reports failures without a reason. */
void prepare(void) {
    DAT_IA_HANDLE kept;
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    CHECK_EQ(dat_ia_open(ia_name(), QUEUE_LENGTH, &async, &kept), DAT_SUCCESS);
}

/* ---- Results ----------------------------------------------------------------------------------------------------- */

static Outcome outcome_of(DAT_RETURN rc, const char* call) {
    if (rc == DAT_SUCCESS) return DONE;
    if (DAT_GET_TYPE(rc) == DAT_INSUFFICIENT_RESOURCES) return REFUSED;
    return complain("%s gives 0x%x", call, (unsigned)rc);
}

/* Waits for an event. NOT_YET: there is none. */
static Outcome next(DAT_EVD_HANDLE evd, unsigned timeout_ms, DAT_EVENT* event) {
    DAT_RETURN rc = await_event(evd, timeout_ms * 1000, event);
    return DAT_GET_TYPE(rc) == DAT_TIMEOUT_EXPIRED ? NOT_YET : outcome_of(rc, "dat_evd_wait");
}

static void drain(DAT_EVD_HANDLE evd) {
    DAT_EVENT event;
    while (dat_evd_dequeue(evd, &event) == DAT_SUCCESS) continue;
}

/* ---- Objects ----------------------------------------------------------------------------------------------------- */

static Outcome open_ia(void) {
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    request = psp = DAT_HANDLE_NULL;
    csp = DAT_HANDLE_NULL;
    second_stands = posted = false;
    receives_posted = 0;
    first = second = (End){0};
    return OUTCOME(dat_ia_open(ia_name(), QUEUE_LENGTH, &async, &ia));
}

static Outcome create_pz(void) { return OUTCOME(dat_pz_create(ia, &pz)); }
static Outcome create_cno(void) { return OUTCOME(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno)); }

static Outcome register_memory(void* memory, DAT_VLEN size, DAT_LMR_HANDLE* lmr, DAT_LMR_CONTEXT* context,
                               Region* region) {
    DAT_RMR_CONTEXT remote = 0;
    DAT_RETURN rc = register_virtual(ia, pz, memory, size, DAT_MEM_PRIV_ALL_FLAG, lmr, context, &remote);
    region->address = (uintptr_t)memory;
    region->key = remote;
    return outcome_of(rc, "dat_lmr_create");
}

static Outcome register_heap(void) {
    return register_memory(heap_memory, HEAP_BYTES, &heap, &heap_context, &shared->heap[role]);
}

static Outcome register_file(void) {
    DAT_LMR_CONTEXT unused;
    return register_memory(file_memory, FILE_BYTES, &file, &unused, &shared->file[role]);
}

static Outcome create_evd(DAT_CNO_HANDLE notifier, DAT_EVD_FLAGS flags, DAT_EVD_HANDLE* evd) {
    return OUTCOME(dat_evd_create(ia, QUEUE_LENGTH, notifier, flags, evd));
}

static Outcome create_requests(void) { return create_evd(cno, DAT_EVD_CR_FLAG, &requests); }
static Outcome create_receives(void) { return create_evd(DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &receives); }
static Outcome create_sends(void) {
    return create_evd(DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG, &sends);
}
static Outcome create_first_evd(void) { return create_evd(DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &first.evd); }
static Outcome create_second_evd(void) { return create_evd(DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &second.evd); }
static Outcome resize_sends(void) { return OUTCOME(dat_evd_resize(sends, 4 * QUEUE_LENGTH)); }
static Outcome create_rmr(void) { return OUTCOME(dat_rmr_create(pz, &rmr)); }

static Outcome create_srq(void) {
    DAT_SRQ_ATTR attributes = {DTOS, 1, 0};
    return OUTCOME(dat_srq_create(ia, pz, &attributes, &srq));
}

static Outcome create_first(void) {
    DAT_EP_ATTR wanted = attributes_for(LARGE, DTOS, 1, 1);
    return OUTCOME(dat_ep_create(ia, pz, receives, sends, first.evd, &wanted, &first.ep));
}

static Outcome create_second(void) {
    DAT_EP_ATTR wanted = attributes_for(LARGE, DTOS, 1, 1);
    return OUTCOME(dat_ep_create_with_srq(ia, pz, receives, sends, second.evd, srq, &wanted, &second.ep));
}

static struct sockaddr_in address(int port) {
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port == 0 ? 0 : port_of(port)), .sin_addr = {inet_addr(host())}};
}

static DAT_COMM tcp = {AF_INET, SOCK_STREAM, IPPROTO_TCP};

static Outcome create_csp(void) {
    struct sockaddr_in at = address(1);
    return OUTCOME(dat_csp_create(ia, &tcp, (DAT_IA_ADDRESS_PTR)&at, requests, &csp));
}

static Outcome create_psp(void) {
    return OUTCOME(dat_psp_create(ia, port_of(0), requests, DAT_PSP_CONSUMER_FLAG, &psp));
}

/* ---- Work -------------------------------------------------------------------------------------------------------- */

static DAT_LMR_TRIPLET piece(DAT_SEG_LENGTH length) {
    return (DAT_LMR_TRIPLET){
        .virtual_address = (DAT_VADDR)(uintptr_t)heap_memory, .segment_length = length, .lmr_context = heap_context};
}

/* Makes an endpoint unconnected, whatever its state. */
static Outcome reset(End* end) {
    DAT_EP_STATE state = DAT_EP_STATE_UNCONNECTED;
    DAT_BOOLEAN idle;
    end->asked = false;
    Outcome outcome = ENDED(dat_ep_get_status(end->ep, &state, &idle, &idle));
    if (outcome != DONE || state == DAT_EP_STATE_UNCONNECTED) return outcome;
    if (state != DAT_EP_STATE_DISCONNECTED) outcome = ENDED(dat_ep_disconnect(end->ep, DAT_CLOSE_ABRUPT_FLAG));
    if (outcome == DONE) outcome = ENDED(dat_ep_reset(end->ep));
    drain(end->evd);
    return outcome;
}

/* Posts receives for the greeting and the end. The endpoint may have been connected before. */
static Outcome post_receives(void) {
    DAT_EP_STATE state = DAT_EP_STATE_UNCONNECTED;
    DAT_BOOLEAN idle;
    Outcome outcome = ENDED(dat_ep_get_status(first.ep, &state, &idle, &idle));
    if (outcome == DONE && state != DAT_EP_STATE_UNCONNECTED) {
        outcome = reset(&first);
        drain(receives);
        drain(sends);
        posted = second_stands = false;
        receives_posted = 0;
    }
    for (; outcome == DONE && receives_posted < 2; ++receives_posted) {
        DAT_LMR_TRIPLET into = piece(LARGE);
        const DAT_DTO_COOKIE cookie = {.as_64 = (DAT_UINT64)(GREETING + receives_posted)};
        outcome = OUTCOME(dat_ep_post_recv(first.ep, 1, &into, cookie, DAT_COMPLETION_DEFAULT_FLAG));
        if (outcome != DONE) break;
    }
    return outcome;
}

/* The connection may have ended. The effect of a failing end on the other one is not checked. */
static Outcome completed(DAT_EVD_HANDLE evd) {
    DAT_EVENT event;
    Outcome outcome = next(evd, WAIT_MS, &event);
    if (outcome == NOT_YET) return complain("no completion comes");
    if (outcome != DONE) return outcome;
    posted = evd == sends ? false : posted;
    const bool bound = event.event_number == DAT_RMR_BIND_COMPLETION_EVENT;
    DAT_DTO_COMPLETION_STATUS status =
        bound ? event.event_data.rmr_completion_event_data.status : event.event_data.dto_completion_event_data.status;
    if (status == DAT_DTO_SUCCESS) return DONE;
    if (!failing_here || status == DAT_DTO_ERR_FLUSHED || status == DAT_DTO_ERR_TRANSPORT) return BROKEN;
    if (bound && status == DAT_DTO_ERR_LOCAL_PROTECTION) return BROKEN; /* no status says that memory is lacking */
    return complain("a completion has the status %d", (int)status);
}

static Outcome finish(DAT_RETURN rc, const char* call) {
    Outcome outcome = outcome_of(rc, call);
    if (outcome != DONE) return outcome;
    posted = true;
    return completed(sends);
}

static const DAT_DTO_COOKIE sending = {.as_64 = SENDING};

/* A send that was already posted is only waited for. */
#define FINISH(call) (posted ? completed(sends) : finish((call), #call))

static Outcome greet(void) {
    DAT_LMR_TRIPLET from = piece(LARGE);
    return FINISH(dat_ep_post_send(first.ep, 1, &from, sending, DAT_COMPLETION_DEFAULT_FLAG));
}

static DAT_RMR_TRIPLET target(uintptr_t at, uint64_t key) {
    return (DAT_RMR_TRIPLET){.virtual_address = at, .segment_length = WRITTEN, .rmr_context = (DAT_RMR_CONTEXT)key};
}

static Outcome write_heap(void) {
    DAT_LMR_TRIPLET from = piece(WRITTEN);
    DAT_RMR_TRIPLET to = target(shared->heap[!role].address + HEAP_BYTES / 2, shared->heap[!role].key);
    return FINISH(dat_ep_post_rdma_write(first.ep, 1, &from, sending, &to, DAT_COMPLETION_DEFAULT_FLAG));
}

static Outcome read_heap(void) {
    DAT_LMR_TRIPLET into = piece(WRITTEN);
    DAT_RMR_TRIPLET from = target(shared->heap[!role].address + HEAP_BYTES / 2, shared->heap[!role].key);
    return FINISH(dat_ep_post_rdma_read(first.ep, 1, &into, sending, &from, DAT_COMPLETION_DEFAULT_FLAG));
}

static Outcome write_file(void) {
    DAT_LMR_TRIPLET from = piece(WRITTEN);
    DAT_RMR_TRIPLET to = target(shared->file[!role].address, shared->file[!role].key);
    return FINISH(dat_ep_post_rdma_write(first.ep, 1, &from, sending, &to, DAT_COMPLETION_DEFAULT_FLAG));
}

static Outcome bind_window(void) {
    DAT_LMR_TRIPLET shown = piece(MESSAGE);
    DAT_RMR_COOKIE cookie = {.as_64 = SENDING};
    DAT_RMR_CONTEXT context;
    return FINISH(dat_rmr_bind(rmr, heap, &shown, DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA, first.ep, cookie,
                               DAT_COMPLETION_DEFAULT_FLAG, &context));
}

static Outcome await_greeting(void) { return completed(receives); }

/* ---- Connecting -------------------------------------------------------------------------------------------------- */

/* Waits for the outcome of a request. If the server fails, the client may see various results, but must not hang. */
static Outcome asked(End* end, DAT_EVENT_NUMBER expected) {
    DAT_EVENT event;
    Outcome outcome = next(end->evd, 2 * WAIT_MS, &event);
    if (outcome != DONE && outcome != NOT_YET) return outcome;
    end->asked = false;
    if (outcome == NOT_YET || event.event_number == DAT_CONNECTION_EVENT_TIMED_OUT)
        return complain("a request waits in vain");
    if (event.event_number == expected) return DONE;
    /* The server does not listen yet, or starts again. */
    const bool rejected = event.event_number == DAT_CONNECTION_EVENT_NON_PEER_REJECTED ||
                          event.event_number == DAT_CONNECTION_EVENT_PEER_REJECTED;
    if (rejected || !failing_here) return NOT_YET;
    if (event.event_number == DAT_CONNECTION_EVENT_UNREACHABLE) return REFUSED;
    return complain("a request ends with the event 0x%x", (unsigned)event.event_number);
}

static Outcome ask(End* end, DAT_RETURN rc, const char* call) {
    end->asked = rc == DAT_SUCCESS;
    return outcome_of(rc, call);
}

#define ASK(end, call) ask((end), (call), #call)

static Outcome ask_refusal(void) {
    struct sockaddr_in to = address(1);
    Outcome outcome = DONE;
    if (!first.asked) {
        DAT_EP_PARAM wanted = {.comm = tcp};
        outcome = reset(&first);
        if (outcome == DONE) outcome = ENDED(dat_ep_modify(first.ep, DAT_EP_FIELD_COMM, &wanted));
        if (outcome == DONE)
            outcome = ASK(&first, dat_ep_common_connect(first.ep, (DAT_IA_ADDRESS_PTR)&to, WAIT_MS * 1000, 0, NULL));
    }
    if (outcome == DONE) outcome = asked(&first, DAT_CONNECTION_EVENT_PEER_REJECTED);
    if (outcome == DONE) shared->refused = true;
    return outcome;
}

static Outcome connect_first(void) {
    struct sockaddr_in to = address(0);
    uint8_t purpose = FIRST;
    Outcome outcome = DONE;
    if (!first.asked) {
        outcome = post_receives();
        if (outcome == DONE)
            outcome = ASK(&first, dat_ep_connect(first.ep, (DAT_IA_ADDRESS_PTR)&to, port_of(0), WAIT_MS * 1000, 1,
                                                 &purpose, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
    }
    return outcome == DONE ? asked(&first, DAT_CONNECTION_EVENT_ESTABLISHED) : outcome;
}

static bool is_connected(const End* end) {
    DAT_EP_STATE state = DAT_EP_STATE_UNCONNECTED;
    DAT_BOOLEAN idle;
    return dat_ep_get_status(end->ep, &state, &idle, &idle) == DAT_SUCCESS && state == DAT_EP_STATE_CONNECTED;
}

static Outcome connect_second(void) {
    uint8_t purpose = SECOND;
    Outcome outcome = DONE;
    if (!is_connected(&first)) return BROKEN;
    if (!second.asked) {
        outcome = reset(&second);
        if (outcome == DONE)
            outcome =
                ASK(&second, dat_ep_dup_connect(second.ep, first.ep, WAIT_MS * 1000, 1, &purpose, DAT_QOS_BEST_EFFORT));
    }
    if (outcome == DONE) outcome = asked(&second, DAT_CONNECTION_EVENT_ESTABLISHED);
    if (outcome == DONE) shared->second = true;
    return outcome;
}

static int purpose_of_request(void) {
    DAT_CR_PARAM param = {0};
    if (dat_cr_query(request, DAT_CR_FIELD_ALL, &param) != DAT_SUCCESS || param.private_data_size == 0) return REFUSAL;
    return *(const uint8_t*)param.private_data;
}

static Outcome take_any(void) {
    DAT_EVD_HANDLE told;
    DAT_EVENT event;
    if (request != DAT_HANDLE_NULL) return DONE;
    if (dat_evd_dequeue(requests, &event) == DAT_SUCCESS) {
        request = event.event_data.cr_arrival_event_data.cr_handle;
        return DONE;
    }
    DAT_RETURN rc = dat_cno_wait(cno, SLICE_MS * 1000, &told);
    const DAT_RETURN type = DAT_GET_TYPE(rc);
    return rc == DAT_SUCCESS || type == DAT_QUEUE_EMPTY || type == DAT_TIMEOUT_EXPIRED ? NOT_YET
                                                                                       : outcome_of(rc, "dat_cno_wait");
}

/* The client has given up its other request. */
static Outcome take_request(void) {
    Outcome outcome = take_any();
    if (outcome != DONE) return outcome;
    if (purpose_of_request() == FIRST) {
        begin_connection();
        return DONE;
    }
    outcome = OUTCOME(dat_cr_reject(request, 0, NULL));
    if (outcome == DONE) request = DAT_HANDLE_NULL;
    return outcome == DONE ? NOT_YET : outcome;
}

static Outcome take_to_refuse(void) { return shared->refused ? DONE : take_any(); }

static Outcome refuse(void) {
    if (request == DAT_HANDLE_NULL && !is_set(&shared->refused)) take_to_refuse();
    if (request == DAT_HANDLE_NULL) return shared->refused ? DONE : NOT_YET;
    Outcome outcome = OUTCOME(dat_cr_reject(request, 0, NULL));
    if (outcome == DONE) request = DAT_HANDLE_NULL;
    return outcome == DONE ? NOT_YET : outcome;
}

static Outcome accept_on(End* end) {
    DAT_EVENT event;
    Outcome outcome = DONE;
    if (!end->asked) outcome = ASK(end, dat_cr_accept(request, end->ep, 0, NULL));
    if (outcome != DONE) return outcome;
    request = DAT_HANDLE_NULL;
    outcome = next(end->evd, WAIT_MS, &event);
    if (outcome == NOT_YET) return complain("nothing comes of an acceptance");
    if (outcome != DONE) return outcome;
    end->asked = false;
    return event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED ? DONE : BROKEN;
}

static Outcome accept_first(void) { return accept_on(&first); }

/* Waits until the client's end is established, too. Until then the client may fail and connect again. */
static Outcome accept_second(void) {
    DAT_EVENT event;
    Outcome outcome = DONE;
    if (second_stands && is_set(&shared->second)) return DONE;
    if (!is_connected(&first)) return BROKEN;
    if (second_stands && dat_evd_dequeue(second.evd, &event) == DAT_SUCCESS) second_stands = false;
    if (second_stands) return NOT_YET;
    if (request == DAT_HANDLE_NULL && !second.asked) {
        outcome = reset(&second);
        if (outcome == DONE) outcome = take_any();
    }
    if (outcome == DONE && request != DAT_HANDLE_NULL && purpose_of_request() != SECOND) return BROKEN;
    if (outcome == DONE) outcome = accept_on(&second);
    second_stands = outcome == DONE;
    return outcome == DONE || outcome == BROKEN ? NOT_YET : outcome;
}

/* ---- Ends -------------------------------------------------------------------------------------------------------- */

static Outcome disconnect(void) {
    if (!is_connected(&first) || !leave()) return BROKEN;
    Outcome outcome = ENDED(dat_ep_disconnect(second.ep, DAT_CLOSE_ABRUPT_FLAG));
    return outcome == DONE ? ENDED(dat_ep_disconnect(first.ep, DAT_CLOSE_GRACEFUL_FLAG)) : outcome;
}

static Outcome await_end(void) {
    DAT_EVENT event;
    Outcome outcome = next(first.evd, WAIT_MS, &event);
    if (outcome == NOT_YET) return complain("the end of the connection does not come");
    return outcome == DONE && role == SERVER ? BROKEN : outcome;
}

static Outcome refuse_latecomers(void) {
    DAT_EVENT event;
    Outcome outcome = request != DAT_HANDLE_NULL ? ENDED(dat_cr_reject(request, 0, NULL)) : DONE;
    request = DAT_HANDLE_NULL;
    while (outcome == DONE && dat_evd_dequeue(requests, &event) == DAT_SUCCESS)
        outcome = ENDED(dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL));
    return outcome;
}

static Outcome free_csp(void) { return ENDED(dat_csp_free(csp)); }
static Outcome free_psp(void) { return ENDED(dat_psp_free(psp)); }
static Outcome free_second(void) { return ENDED(dat_ep_free(second.ep)); }
static Outcome free_first(void) { return ENDED(dat_ep_free(first.ep)); }
static Outcome free_srq(void) { return ENDED(dat_srq_free(srq)); }
static Outcome free_rmr(void) { return ENDED(dat_rmr_free(rmr)); }
static Outcome free_second_evd(void) { return ENDED(dat_evd_free(second.evd)); }
static Outcome free_first_evd(void) { return ENDED(dat_evd_free(first.evd)); }
static Outcome free_sends(void) { return ENDED(dat_evd_free(sends)); }
static Outcome free_receives(void) { return ENDED(dat_evd_free(receives)); }
static Outcome free_requests(void) { return ENDED(dat_evd_free(requests)); }
static Outcome free_file(void) { return ENDED(dat_lmr_free(file)); }
static Outcome free_heap(void) { return ENDED(dat_lmr_free(heap)); }
static Outcome free_cno(void) { return ENDED(dat_cno_free(cno)); }
static Outcome free_pz(void) { return ENDED(dat_pz_free(pz)); }
static Outcome close_ia(void) { return ENDED(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG)); }

#define BEGINNING                                                                                                      \
    STEP(open_ia), STEP(create_cno), STEP(create_pz), STEP(register_heap), STEP(register_file), STEP(create_requests), \
        STEP(create_receives), STEP(create_sends), STEP(resize_sends), STEP(create_first_evd),                         \
        STEP(create_second_evd), STEP(create_rmr), STEP(create_srq), STEP(create_first), STEP(create_second)

#define END_OF_LIFE                                                                                                   \
    STEP(free_second), STEP(free_first), STEP(free_srq), STEP(free_rmr), STEP(free_second_evd), STEP(free_first_evd), \
        STEP(free_sends), STEP(free_receives), STEP(free_requests), STEP(free_file), STEP(free_heap), STEP(free_cno), \
        STEP(free_pz), STEP(close_ia)

const Step client_steps[] =
    STEPS(BEGINNING, STEP(ask_refusal), ANCHOR(post_receives), STEP(connect_first), STEP(greet), STEP(write_heap),
          STEP(read_heap), STEP(write_file), STEP(bind_window), STEP(await_greeting), STEP(connect_second),
          STEP(disconnect), STEP(await_end), END_OF_LIFE);

const Step server_steps[] =
    STEPS(BEGINNING, STEP(create_csp), STEP(create_psp), STEP(take_to_refuse), STEP(refuse), ANCHOR(post_receives),
          STEP(take_request), STEP(accept_first), STEP(await_greeting), STEP(write_heap), STEP(read_heap),
          STEP(write_file), STEP(bind_window), STEP(greet), STEP(accept_second), STEP(await_end), STEP(free_csp),
          STEP(free_psp), STEP(refuse_latecomers), END_OF_LIFE);

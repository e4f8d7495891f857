/* SPDX-License-Identifier: BSD-3-Clause
 * The life of a librpma connection.
 */
#include "sweep.h"

#include <fcntl.h>
#include <librpma.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>

enum { MESSAGE = 64, LARGE = 256 * 1024, WRITTEN = 32 * 1024, QUEUE_LENGTH = 16 };

static struct ibv_context* device;
static struct rpma_peer* peer;
static struct rpma_mr_local *heap, *file;
static struct rpma_conn_cfg* cfg;
static struct rpma_srq* srq;
static struct rpma_ep *listener, *refuser;
static struct rpma_conn_req* req;
static struct rpma_conn* conn;
static struct rpma_mr_remote *heap_there, *file_there;
static bool posted; /* a send was posted but not waited for */

void prepare(void) { rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED); }

/* ---- Results ----------------------------------------------------------------------------------------------------- */

static Outcome outcome_of(int rc, const char* call) {
    if (rc == 0) return DONE;
    if (rc == RPMA_E_NOMEM || rc == RPMA_E_PROVIDER) return REFUSED;
    return complain("%s gives %s", call, rpma_err_2str(rc));
}

static bool readable(int fd, int timeout_ms) { return poll(&(struct pollfd){fd, POLLIN, 0}, 1, timeout_ms) == 1; }

/* ---- Objects ----------------------------------------------------------------------------------------------------- */

static Outcome find_device(void) {
    return OUTCOME(rpma_utils_get_ibv_context(host(), RPMA_UTIL_IBV_CONTEXT_LOCAL, &device));
}
static Outcome create_peer(void) { return OUTCOME(rpma_peer_new(device, &peer)); }

static const int usage = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC |
                         RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV |
                         RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;

static Outcome register_memory(void* memory, size_t size, struct rpma_mr_local** mr, Region* region) {
    Outcome outcome = OUTCOME(rpma_mr_reg(peer, memory, size, usage, mr));
    return outcome == DONE ? ENDED(rpma_mr_get_descriptor(*mr, region->descriptor)) : outcome;
}

static Outcome register_heap(void) { return register_memory(heap_memory, HEAP_BYTES, &heap, &shared->heap[role]); }
static Outcome register_file(void) { return register_memory(file_memory, FILE_BYTES, &file, &shared->file[role]); }

static Outcome create_cfg(void) {
    Outcome outcome = OUTCOME(rpma_conn_cfg_new(&cfg));
    if (outcome == DONE) outcome = ENDED(rpma_conn_cfg_set_timeout(cfg, WAIT_MS));
    return outcome == DONE ? ENDED(rpma_conn_cfg_set_rcq_size(cfg, QUEUE_LENGTH)) : outcome;
}

static Outcome create_srq(void) { return OUTCOME(rpma_srq_new(peer, NULL, &srq)); }

static const char* port(int number) {
    static char text[8];
    snprintf(text, sizeof text, "%u", (unsigned)port_of(number));
    return text;
}

/* The descriptor is non-blocking. */
static Outcome listen_at(int number, struct rpma_ep** ep) {
    int fd = -1;
    Outcome outcome = OUTCOME(rpma_ep_listen(peer, host(), port(number), ep));
    if (outcome == DONE) outcome = ENDED(rpma_ep_get_fd(*ep, &fd));
    if (outcome == DONE) CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
    return outcome;
}

static Outcome listen_to_refuse(void) { return listen_at(1, &refuser); }

static Outcome listen_to_accept(void) {
    Outcome outcome = listen_at(0, &listener);
    if (outcome == DONE) shared->listening = true;
    return outcome;
}

/* ---- Work -------------------------------------------------------------------------------------------------------- */

/* The connection may have ended. The effect of a failing end on the other one is not checked. */
static Outcome completed(bool sent) {
    struct rpma_cq* queue = NULL;
    struct ibv_wc completion;
    int fd = -1;
    Outcome outcome = ENDED(sent ? rpma_conn_get_cq(conn, &queue) : rpma_conn_get_rcq(conn, &queue));
    if (outcome == DONE) outcome = OUTCOME(rpma_cq_get_fd(queue, &fd));
    while (outcome == DONE) {
        int rc = rpma_cq_get_wc(queue, 1, &completion, NULL);
        if (rc == 0) break;
        if (rc != RPMA_E_NO_COMPLETION) return outcome_of(rc, "rpma_cq_get_wc");
        if (!readable(fd, WAIT_MS)) return complain("no completion comes");
        rc = rpma_cq_wait(queue);
        if (rc != RPMA_E_NO_COMPLETION) outcome = outcome_of(rc, "rpma_cq_wait");
    }
    if (outcome != DONE) return outcome;
    if (sent) posted = false;
    if (completion.status == IBV_WC_SUCCESS) return DONE;
    if (!failing_here || completion.status == IBV_WC_WR_FLUSH_ERR || completion.status == IBV_WC_RETRY_EXC_ERR)
        return BROKEN;
    return complain("a completion has the status %d", (int)completion.status);
}

static Outcome finish(int rc, const char* call) {
    Outcome outcome = outcome_of(rc, call);
    if (outcome != DONE) return outcome;
    posted = true;
    return completed(true);
}

/* A send that was already posted is only waited for. */
#define FINISH(call) (posted ? completed(true) : finish((call), #call))

static Outcome greet(void) { return FINISH(rpma_send(conn, heap, 0, LARGE, RPMA_F_COMPLETION_ALWAYS, NULL)); }

static Outcome await_greeting(void) { return completed(false); }

static Outcome learn(const struct rpma_mr_local* own, const Region* region, struct rpma_mr_remote** there) {
    size_t size = 0;
    if (*there != NULL) return DONE;
    Outcome outcome = ENDED(rpma_mr_get_descriptor_size(own, &size));
    return outcome == DONE ? OUTCOME(rpma_mr_remote_from_descriptor(region->descriptor, size, there)) : outcome;
}

static Outcome learn_memory(void) {
    Outcome outcome = learn(heap, &shared->heap[!role], &heap_there);
    return outcome == DONE ? learn(file, &shared->file[!role], &file_there) : outcome;
}

static Outcome write_heap(void) {
    return FINISH(rpma_write(conn, heap_there, HEAP_BYTES / 2, heap, 0, WRITTEN, RPMA_F_COMPLETION_ALWAYS, NULL));
}
static Outcome read_heap(void) {
    return FINISH(rpma_read(conn, heap, 0, heap_there, HEAP_BYTES / 2, WRITTEN, RPMA_F_COMPLETION_ALWAYS, NULL));
}
static Outcome write_file(void) {
    return FINISH(rpma_write(conn, file_there, 0, heap, 0, WRITTEN, RPMA_F_COMPLETION_ALWAYS, NULL));
}
static Outcome flush_heap(void) {
    return FINISH(rpma_flush(conn, heap_there, HEAP_BYTES / 2, WRITTEN, RPMA_FLUSH_TYPE_VISIBILITY,
                             RPMA_F_COMPLETION_ALWAYS, NULL));
}

/* ---- Connecting -------------------------------------------------------------------------------------------------- */

static Outcome delete_connection(void) {
    posted = false;
    Outcome outcome = req != NULL ? ENDED(rpma_conn_req_delete(&req)) : DONE;
    return outcome == DONE && conn != NULL ? ENDED(rpma_conn_delete(&conn)) : outcome;
}

/* Posts a receive for the greeting, also for connections whose requests arrive here. */
static Outcome post_receive(void) {
    if (req == NULL) return BROKEN;
    return OUTCOME(rpma_conn_req_recv(req, heap, 0, LARGE, NULL));
}

static Outcome request_to(int number) {
    Outcome outcome = delete_connection();
    return outcome == DONE ? OUTCOME(rpma_conn_req_new(peer, host(), port(number), cfg, &req)) : outcome;
}

static Outcome next_event(enum rpma_conn_event* event) {
    int fd = -1;
    Outcome outcome = OUTCOME(rpma_conn_get_event_fd(conn, &fd));
    if (outcome == DONE && !readable(fd, 2 * WAIT_MS)) return complain("no event comes");
    return outcome == DONE ? OUTCOME(rpma_conn_next_event(conn, event)) : outcome;
}

static long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* If the server fails, the client may see various results, but must not hang. */
static Outcome ask(enum rpma_conn_event expected) {
    const long begin = now_ms();
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    Outcome outcome = conn == NULL ? OUTCOME(rpma_conn_req_connect(&req, NULL, &conn)) : DONE;
    if (outcome == DONE) outcome = next_event(&event);
    if (outcome != DONE) return outcome;
    if (event == expected) return DONE;
    if (now_ms() - begin >= WAIT_MS) return complain("a request waits in vain");
    if (event == RPMA_CONN_REJECTED || !failing_here) return BROKEN;
    if (event == RPMA_CONN_UNREACHABLE) return delete_connection() == DONE ? REFUSED : WRONG;
    return complain("a request ends with \"%s\"", rpma_utils_conn_event_2str(event));
}

static Outcome ask_refusal(void) {
    Outcome outcome = DONE;
    if (!is_set(&shared->listening)) return NOT_YET;
    if (conn == NULL) outcome = request_to(1);
    if (outcome == DONE) outcome = ask(RPMA_CONN_REJECTED);
    if (outcome == BROKEN) outcome = delete_connection() == DONE ? NOT_YET : WRONG;
    if (outcome == DONE) shared->refused = true;
    return outcome;
}

static Outcome make_request(void) { return request_to(0); }

static Outcome connect_request(void) {
    if (req == NULL && conn == NULL) return BROKEN; /* a failure consumes it */
    return ask(RPMA_CONN_ESTABLISHED);
}

static Outcome take(struct rpma_ep* ep) {
    int fd = -1;
    Outcome outcome = ENDED(rpma_ep_get_fd(ep, &fd));
    if (outcome != DONE) return outcome;
    if (!readable(fd, SLICE_MS)) return NOT_YET;
    /* A request for which there are no resources is refused, and none comes. */
    if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0) return complain("fcntl");
    int rc = rpma_ep_next_conn_req(ep, cfg, &req);
    return rc == RPMA_E_NO_EVENT ? NOT_YET : outcome_of(rc, "rpma_ep_next_conn_req");
}

static Outcome take_to_refuse(void) { return shared->refused ? DONE : take(refuser); }

/* A rejection that fails consumes the request, too. */
static Outcome refuse(void) {
    if (req == NULL && !is_set(&shared->refused)) take_to_refuse();
    if (req == NULL) return shared->refused ? DONE : NOT_YET;
    Outcome outcome = OUTCOME(rpma_conn_req_delete(&req));
    return outcome == DONE ? NOT_YET : outcome;
}

static Outcome take_request(void) {
    Outcome outcome = delete_connection();
    if (outcome == DONE) outcome = take(listener);
    if (outcome == DONE) begin_connection();
    return outcome;
}

static Outcome accept_request(void) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    if (req == NULL && conn == NULL) return BROKEN;
    Outcome outcome = conn == NULL ? OUTCOME(rpma_conn_req_connect(&req, NULL, &conn)) : DONE;
    if (outcome == REFUSED && !failing_here) return BROKEN; /* the requester is gone */
    if (outcome == DONE) outcome = next_event(&event);
    if (outcome != DONE) return outcome;
    return event == RPMA_CONN_ESTABLISHED ? DONE : BROKEN;
}

/* ---- Ends -------------------------------------------------------------------------------------------------------- */

static Outcome disconnect(void) {
    int fd = -1;
    Outcome outcome = ENDED(rpma_conn_get_event_fd(conn, &fd));
    if (outcome != DONE) return outcome;
    if (readable(fd, 0) || !leave()) return BROKEN;
    return ENDED(rpma_conn_disconnect(conn));
}

static Outcome await_end(void) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    Outcome outcome = next_event(&event);
    return outcome == DONE && role == SERVER ? BROKEN : outcome;
}

static Outcome disconnect_too(void) { return ENDED(rpma_conn_disconnect(conn)); }
static Outcome forget_memory(void) {
    Outcome outcome = ENDED(rpma_mr_remote_delete(&heap_there));
    return outcome == DONE ? ENDED(rpma_mr_remote_delete(&file_there)) : outcome;
}
static Outcome stop_accepting(void) { return ENDED(rpma_ep_shutdown(&listener)); }
static Outcome stop_refusing(void) { return ENDED(rpma_ep_shutdown(&refuser)); }
static Outcome delete_srq(void) { return ENDED(rpma_srq_delete(&srq)); }
static Outcome delete_cfg(void) { return ENDED(rpma_conn_cfg_delete(&cfg)); }
static Outcome deregister_file(void) { return ENDED(rpma_mr_dereg(&file)); }
static Outcome deregister_heap(void) { return ENDED(rpma_mr_dereg(&heap)); }
static Outcome delete_peer(void) { return ENDED(rpma_peer_delete(&peer)); }

#define BEGINNING \
    STEP(find_device), STEP(create_peer), STEP(register_heap), STEP(register_file), STEP(create_cfg), STEP(create_srq)

#define END_OF_LIFE                                                                                          \
    STEP(delete_connection), STEP(forget_memory), STEP(delete_srq), STEP(delete_cfg), STEP(deregister_file), \
        STEP(deregister_heap), STEP(delete_peer)

const Step client_steps[] =
    STEPS(BEGINNING, STEP(ask_refusal), ANCHOR(make_request), STEP(post_receive), STEP(connect_request),
          STEP(learn_memory), STEP(greet), STEP(write_heap), STEP(read_heap), STEP(flush_heap), STEP(write_file),
          STEP(await_greeting), STEP(disconnect), STEP(await_end), END_OF_LIFE);

const Step server_steps[] =
    STEPS(BEGINNING, STEP(listen_to_refuse), STEP(listen_to_accept), STEP(take_to_refuse), STEP(refuse),
          ANCHOR(take_request), STEP(post_receive), STEP(accept_request), STEP(await_greeting), STEP(learn_memory),
          STEP(write_heap), STEP(read_heap), STEP(flush_heap), STEP(write_file), STEP(greet), STEP(await_end),
          STEP(disconnect_too), STEP(stop_accepting), STEP(stop_refusing), END_OF_LIFE);

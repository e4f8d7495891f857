/* SPDX-License-Identifier: BSD-3-Clause
 * Several threads at work at once: librpma(7), "thread safety". Everything happens in one process, so that the thread
 * sanitizer sees both sides; each buffer is used by one side only.
 */
#include "side.h"

#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 8, BYTES = 512 };

/* Devices make fewer connections in the same time, and let a message that comes before its receive wait for long. */
static int rounds(void) { return !on_loopback() ? 3 : UNDER_SANITIZER ? 15 : 50; }
static unsigned messages(void) { return on_loopback() ? 20 : 3; }

/* One side of a connection, by one thread, with nothing but its own objects. */
typedef struct {
    struct rpma_peer *peer;
    struct rpma_mr_local *out, *in; /* sends from one, receives into the other */
    struct rpma_conn *conn;
    struct rpma_cq *cq;
    uint8_t *out_bytes, *in_bytes;
} Worker;

static uint8_t byte_of(unsigned seed, size_t i) { return (uint8_t)(seed * 13 + i * 7); }

static void open_worker(Worker *worker) {
    *worker = (Worker){.peer = new_peer(), .out_bytes = calloc(1, BYTES), .in_bytes = calloc(1, BYTES)};
    CHECK(worker->out_bytes != NULL && worker->in_bytes != NULL);
    CHECK_OK(rpma_mr_reg(worker->peer, worker->out_bytes, BYTES, RPMA_MR_USAGE_SEND, &worker->out));
    CHECK_OK(rpma_mr_reg(worker->peer, worker->in_bytes, BYTES, RPMA_MR_USAGE_RECV, &worker->in));
}

static void close_worker(Worker *worker) {
    CHECK_OK(rpma_conn_delete(&worker->conn));
    CHECK_OK(rpma_mr_dereg(&worker->out));
    CHECK_OK(rpma_mr_dereg(&worker->in));
    CHECK_OK(rpma_peer_delete(&worker->peer));
    free(worker->out_bytes);
    free(worker->in_bytes);
}

static void expect_conn_event(Worker *worker, enum rpma_conn_event expected) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    CHECK_OK(rpma_conn_next_event(worker->conn, &event));
    CHECK_EQ(event, expected);
}

static void post_receive(Worker *worker) { CHECK_OK(rpma_recv(worker->conn, worker->in, 0, BYTES, worker->in)); }

static void post_message(Worker *worker, unsigned seed) {
    for (size_t i = 0; i < BYTES; ++i) worker->out_bytes[i] = byte_of(seed, i);
    CHECK_OK(rpma_send(worker->conn, worker->out, 0, BYTES, RPMA_F_COMPLETION_ALWAYS, worker->out));
}

/* Takes completions until a message was sent and one received. */
static void await_both(Worker *worker, unsigned seed) {
    for (int taken = 0; taken < 2;) {
        struct ibv_wc wc;
        int rc = rpma_cq_get_wc(worker->cq, 1, &wc, NULL);
        if (rc == RPMA_E_NO_COMPLETION) {
            CHECK_OK(rpma_cq_wait(worker->cq));
            continue;
        }
        CHECK_OK(rc);
        CHECK_EQ(wc.status, IBV_WC_SUCCESS);
        ++taken;
    }
    for (size_t i = 0; i < BYTES; ++i) CHECK_EQ(worker->in_bytes[i], byte_of(seed, i));
}

/* The first receive was posted with the request. */
static void exchange(Worker *worker) {
    for (unsigned i = 0; i < messages(); ++i) {
        post_message(worker, i);
        await_both(worker, i);
        if (i + 1 < messages()) post_receive(worker);
    }
}

static void connect_worker(Worker *worker, struct rpma_conn_req *req) {
    CHECK_OK(rpma_conn_req_recv(req, worker->in, 0, BYTES, worker->in));
    CHECK_OK(rpma_conn_req_connect(&req, NULL, &worker->conn));
    CHECK_OK(rpma_conn_get_cq(worker->conn, &worker->cq));
    expect_conn_event(worker, RPMA_CONN_ESTABLISHED);
}

/* ---- Everything made and destroyed by each thread ---------------------------------------------------------------- */

/* A client and a server, in threads of their own. */
typedef struct {
    char port[8];
    pthread_barrier_t listening;
    pthread_t threads[2];
} Duo;

static void client_round(Duo *duo) {
    Worker worker;
    struct rpma_conn_req *req = NULL;
    open_worker(&worker);
    pthread_barrier_wait(&duo->listening);
    CHECK_OK(rpma_conn_req_new(worker.peer, test_address(), duo->port, NULL, &req));
    connect_worker(&worker, req);
    exchange(&worker);
    CHECK_OK(rpma_conn_disconnect(worker.conn));
    expect_conn_event(&worker, RPMA_CONN_CLOSED);
    close_worker(&worker);
}

static void server_round(Duo *duo) {
    Worker worker;
    struct rpma_ep *ep = NULL;
    struct rpma_conn_req *req = NULL;
    open_worker(&worker);
    CHECK_OK(rpma_ep_listen(worker.peer, test_address(), duo->port, &ep));
    pthread_barrier_wait(&duo->listening);
    CHECK_OK(rpma_ep_next_conn_req(ep, NULL, &req));
    connect_worker(&worker, req);
    CHECK_OK(rpma_ep_shutdown(&ep));
    exchange(&worker);
    expect_conn_event(&worker, RPMA_CONN_CLOSED);
    CHECK_OK(rpma_conn_disconnect(worker.conn));
    close_worker(&worker);
}

static void *run_client(void *duo) {
    for (int round = 0; round < rounds(); ++round) client_round(duo);
    return NULL;
}

static void *run_server(void *duo) {
    for (int round = 0; round < rounds(); ++round) server_round(duo);
    return NULL;
}

TEST(threads__each_makes_and_destroys_everything) {
    static Duo duos[THREADS];
    for (int i = 0; i < THREADS; ++i) {
        memcpy(duos[i].port, new_side(NULL)->port, sizeof duos[i].port);
        CHECK(pthread_barrier_init(&duos[i].listening, NULL, 2) == 0);
        CHECK(pthread_create(&duos[i].threads[0], NULL, run_server, &duos[i]) == 0);
        CHECK(pthread_create(&duos[i].threads[1], NULL, run_client, &duos[i]) == 0);
    }
    for (int i = 0; i < THREADS; ++i) {
        CHECK(pthread_join(duos[i].threads[0], NULL) == 0);
        CHECK(pthread_join(duos[i].threads[1], NULL) == 0);
    }
}

/* ---- One object, many threads ------------------------------------------------------------------------------------ */

/* Runs a function in all threads at once. */
static void in_threads(void *(*function)(void *), void *argument) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; ++i) CHECK(pthread_create(&threads[i], NULL, function, argument) == 0);
    for (int i = 0; i < THREADS; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
}

static void *use_peer(void *peer) {
    static uint8_t memory[BYTES];
    for (int i = 0; i < 2 * rounds(); ++i) {
        struct rpma_mr_local *mr = NULL;
        struct rpma_srq *srq = NULL;
        struct rpma_conn_req *req = NULL;
        CHECK_OK(rpma_mr_reg(peer, memory, BYTES, ALL_USAGES, &mr));
        CHECK_OK(rpma_srq_new(peer, NULL, &srq));
        CHECK_OK(rpma_srq_recv(srq, mr, 0, BYTES, NULL));
        CHECK_OK(rpma_conn_req_new(peer, test_address(), "9", NULL, &req));
        CHECK_OK(rpma_conn_req_recv(req, mr, 0, BYTES, NULL));
        CHECK_OK(rpma_conn_req_delete(&req));
        CHECK_OK(rpma_srq_delete(&srq));
        CHECK_OK(rpma_mr_dereg(&mr));
    }
    return NULL;
}

TEST(threads__share_a_peer) {
    struct rpma_peer *peer = new_peer();
    in_threads(use_peer, peer);
    CHECK_OK(rpma_peer_delete(&peer));
}

/* Beyond what librpma promises: a configuration may be changed while others read it. */
static void *use_cfg(void *cfg) {
    for (uint32_t i = 0; i < 1000; ++i) {
        uint32_t size = 0;
        CHECK_OK(rpma_conn_cfg_set_cq_size(cfg, 10 + i));
        CHECK_OK(rpma_conn_cfg_get_cq_size(cfg, &size));
        CHECK(size >= 10 && size < 1010);
    }
    return NULL;
}

TEST(threads__share_a_configuration) {
    struct rpma_conn_cfg *cfg = NULL;
    CHECK_OK(rpma_conn_cfg_new(&cfg));
    in_threads(use_cfg, cfg);
    CHECK_OK(rpma_conn_cfg_delete(&cfg));
}

/* ---- One connection, many threads -------------------------------------------------------------------------------- */

enum { SHARE = 8 };

/* Each thread posts its share of the messages, no more at once than the queues hold. */
static void *send_share(void *side) {
    for (int i = 0; i < SHARE; ++i) CHECK_OK(post(side, (Work){.operation = SEND, .length = 32, .context = 1}));
    return NULL;
}

TEST(threads__post_on_one_connection) {
    const Options deep = {.cq_size = 2 * THREADS * SHARE, .sq_size = THREADS * SHARE, .rq_size = THREADS * SHARE};
    Pair pair = {new_side(NULL), new_side(NULL)};
    side_open(pair.client, deep);
    side_open(pair.server, deep);
    listen_at(pair.server);
    pair_connect(&pair);
    for (int round = 0; round < rounds(); ++round) {
        for (int i = 0; i < THREADS * SHARE; ++i)
            CHECK_OK(post(pair.server, (Work){.operation = RECV, .at = RECV_AT, .length = 32, .context = 2}));
        in_threads(send_share, pair.client);
        for (int i = 0; i < THREADS * SHARE; ++i) {
            EXPECT_DONE(pair.client, 1);
            EXPECT_RECEIVED(pair.server, 2);
        }
    }
    pair_close(&pair);
}

/* ---- The log ----------------------------------------------------------------------------------------------------- */

static void ignore(enum rpma_log_level level, const char *file_name, const int line_no, const char *function_name,
                   const char *message_format, ...) {
    (void)level, (void)file_name, (void)line_no, (void)function_name, (void)message_format;
}

static void *use_log(void *unused) {
    (void)unused;
    for (int i = 0; i < 200; ++i) {
        struct rpma_mr_remote *target = NULL;
        enum rpma_log_level level = RPMA_LOG_DISABLED;
        CHECK_OK(rpma_log_set_function(ignore));
        CHECK_OK(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, (enum rpma_log_level)(i % 3)));
        CHECK_OK(rpma_log_get_threshold(RPMA_LOG_THRESHOLD, &level));
        CHECK_INVAL(rpma_mr_remote_from_descriptor(&level, 1, &target)); /* which is logged */
    }
    return NULL;
}

TEST(threads__share_the_log) { in_threads(use_log, NULL); }

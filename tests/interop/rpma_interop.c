/* SPDX-License-Identifier: BSD-3-Clause
 * One end of a connection, written against librpma.h alone, for ends whose libraries are not the same:
 *   rpma_interop server|client ADDRESS PORT DIRECTORY
 * DIRECTORY is where the loaded librpma must come from. The server listens on ADDRESS, says so on its standard output,
 * and serves one client, which calls ADDRESS. After a request that is rejected the two are connected, do each kind of
 * operation once from the client and once from the server, and the client hangs up; of another connection it is the
 * server that hangs up. Every byte is checked where it arrives.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <librpma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Where the memory of an end is written from and read by the other, where messages are sent from and received, and
 * where it is written to by the other and read into. */
enum { SOURCE = 0, OUTBOX = 1 << 20, INBOX = 2 << 20, TARGET = 3 << 20, MEMORY_BYTES = 4 << 20 };
enum { MESSAGE_BYTES = 65536, RECEIVES = 2, DESCRIPTOR_BYTES = 21, PEER_CFG_BYTES = 1, PATIENCE_S = 60 };

static const char* role;

static void fail(int line, const char* what, int actual, int expected) {
    fprintf(stderr, "%s: line %d: %s is %d, not %d\n", role, line, what, actual, expected);
    exit(1);
}

#define CHECK_EQ(actual, expected) check_eq(__LINE__, #actual, (int)(actual), (int)(expected))
#define CHECK(condition) CHECK_EQ((condition) ? 1 : 0, 1)
#define OK(call) CHECK_EQ(call, 0)

static void check_eq(int line, const char* what, int actual, int expected) {
    if (actual != expected) fail(line, what, actual, expected);
}

/* ---- An end ------------------------------------------------------------------------------------------------------ */

/* What each tells the other along with the request and the answer. */
typedef struct {
    uint8_t memory[DESCRIPTOR_BYTES];
    uint8_t peer_cfg[PEER_CFG_BYTES];
    char greeting[16];
} Introduction;

typedef struct {
    const char *address, *port;
    struct rpma_peer* peer;
    struct rpma_conn_cfg* cfg;
    struct rpma_ep* ep; /* of the server */
    struct rpma_conn* conn;
    struct rpma_cq *cq, *rcq;
    uint8_t* memory;
    struct rpma_mr_local* mr;
    struct rpma_mr_remote* remote;
    Introduction own;
} End;

static void open_memory(End* end) {
    const int usage = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC |
                      RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV |
                      RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
    size_t size = 0;
    end->memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(end->memory != MAP_FAILED);
    OK(rpma_mr_reg(end->peer, end->memory, MEMORY_BYTES, usage, &end->mr));
    OK(rpma_mr_get_descriptor_size(end->mr, &size));
    CHECK_EQ(size, DESCRIPTOR_BYTES);
    OK(rpma_mr_get_descriptor(end->mr, end->own.memory));
}

/* Says that its memory may be flushed to persistence. */
static void open_peer_cfg(End* end) {
    struct rpma_peer_cfg* cfg = NULL;
    size_t size = 0;
    OK(rpma_peer_cfg_new(&cfg));
    OK(rpma_peer_cfg_set_direct_write_to_pmem(cfg, true));
    OK(rpma_peer_cfg_get_descriptor_size(cfg, &size));
    CHECK_EQ(size, PEER_CFG_BYTES);
    OK(rpma_peer_cfg_get_descriptor(cfg, end->own.peer_cfg));
    OK(rpma_peer_cfg_delete(&cfg));
}

static void open_end(End* end, enum rpma_util_ibv_context_type type) {
    struct ibv_context* device = NULL;
    OK(rpma_utils_get_ibv_context(end->address, type, &device));
    OK(rpma_peer_new(device, &end->peer));
    OK(rpma_conn_cfg_new(&end->cfg));
    OK(rpma_conn_cfg_set_rcq_size(end->cfg, 10));
    open_memory(end);
    open_peer_cfg(end);
    snprintf(end->own.greeting, sizeof end->own.greeting, "I am the %s", role);
}

static void close_end(End* end) {
    OK(rpma_ep_shutdown(&end->ep));
    OK(rpma_conn_cfg_delete(&end->cfg));
    OK(rpma_mr_dereg(&end->mr));
    OK(rpma_peer_delete(&end->peer));
    OK(munmap(end->memory, MEMORY_BYTES));
}

/* ---- Connecting and disconnecting -------------------------------------------------------------------------------- */

#define EXPECT_EVENT(end, expected) CHECK_EQ(next_event(end), expected)

static enum rpma_conn_event next_event(End* end) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    OK(rpma_conn_next_event(end->conn, &event));
    return event;
}

static size_t inbox(int slot) { return INBOX + (size_t)slot * MESSAGE_BYTES; }

/* The number of an inbox, which names its receive. */
static const void* name_of(int slot) { return (const void*)(uintptr_t)(slot + 1); }

static void start(End* end, struct rpma_conn_req* req) {
    struct rpma_conn_private_data pdata = {&end->own, sizeof end->own};
    for (int slot = 0; slot < RECEIVES; ++slot)
        OK(rpma_conn_req_recv(req, end->mr, inbox(slot), MESSAGE_BYTES, name_of(slot)));
    OK(rpma_conn_req_connect(&req, &pdata, &end->conn));
    OK(rpma_conn_get_cq(end->conn, &end->cq));
    OK(rpma_conn_get_rcq(end->conn, &end->rcq));
    EXPECT_EVENT(end, RPMA_CONN_ESTABLISHED);
}

/* The connection manager fills up with zeros. */
static void check_data(const struct rpma_conn_private_data* pdata, const char* text) {
    size_t length = strlen(text);
    CHECK(pdata->len >= length && memcmp(pdata->ptr, text, length) == 0);
    for (size_t i = length; i < pdata->len; ++i) CHECK_EQ(((const uint8_t*)pdata->ptr)[i], 0);
}

static void meet(End* end, const char* greeting) {
    struct rpma_conn_private_data pdata = {NULL, 0};
    struct rpma_peer_cfg* cfg = NULL;
    Introduction other;
    OK(rpma_conn_get_private_data(end->conn, &pdata));
    CHECK(pdata.len >= sizeof other);
    memcpy(&other, pdata.ptr, sizeof other);
    CHECK_EQ(strncmp(other.greeting, greeting, sizeof other.greeting), 0);
    OK(rpma_mr_remote_from_descriptor(other.memory, sizeof other.memory, &end->remote));
    OK(rpma_peer_cfg_from_descriptor(other.peer_cfg, sizeof other.peer_cfg, &cfg));
    OK(rpma_conn_apply_remote_peer_cfg(end->conn, cfg));
    OK(rpma_peer_cfg_delete(&cfg));
}

static void call_in_vain(End* end) {
    struct rpma_conn_private_data plea = {"reject me", 9};
    struct rpma_conn_req* req = NULL;
    OK(rpma_conn_req_new(end->peer, end->address, end->port, end->cfg, &req));
    OK(rpma_conn_req_connect(&req, &plea, &end->conn));
    EXPECT_EVENT(end, RPMA_CONN_REJECTED);
    OK(rpma_conn_delete(&end->conn));
}

static void reject(End* end) {
    struct rpma_conn_private_data pdata = {NULL, 0};
    struct rpma_conn_req* req = NULL;
    OK(rpma_ep_next_conn_req(end->ep, end->cfg, &req));
    OK(rpma_conn_req_get_private_data(req, &pdata));
    check_data(&pdata, "reject me");
    OK(rpma_conn_req_delete(&req));
}

static void call(End* end) {
    struct rpma_conn_req* req = NULL;
    OK(rpma_conn_req_new(end->peer, end->address, end->port, end->cfg, &req));
    start(end, req);
    meet(end, "I am the server");
}

static void answer(End* end) {
    struct rpma_conn_req* req = NULL;
    OK(rpma_ep_next_conn_req(end->ep, end->cfg, &req));
    start(end, req);
    meet(end, "I am the client");
}

static void part(End* end) {
    OK(rpma_mr_remote_delete(&end->remote));
    OK(rpma_conn_delete(&end->conn));
    memset(end->memory, 0, MEMORY_BYTES);
}

static void hang_up(End* end) {
    OK(rpma_conn_disconnect(end->conn));
    EXPECT_EVENT(end, RPMA_CONN_CLOSED);
    part(end);
}

static void hang_up_after_the_other(End* end) {
    EXPECT_EVENT(end, RPMA_CONN_CLOSED);
    OK(rpma_conn_disconnect(end->conn));
    part(end);
}

/* ---- Work -------------------------------------------------------------------------------------------------------- */

static uint8_t pattern(size_t seed, size_t i) { return (uint8_t)(seed * 37 + i * 7 + i / 253 + 1); }

static void fill(End* end, size_t at, size_t length, unsigned seed) {
    for (size_t i = 0; i < length; ++i) end->memory[at + i] = pattern(seed, i);
}

/* The place has the pattern, and the bytes around it are zeros, as they were; afterwards all are. */
static void check_and_clear(End* end, size_t at, size_t length, unsigned seed) {
    enum { MARGIN = 64 };
    size_t before = at >= TARGET + MARGIN ? MARGIN : 0;
    for (size_t i = 0; i < length; ++i) CHECK_EQ(end->memory[at + i], pattern(seed, i));
    memset(end->memory + at, 0, length);
    for (size_t i = at - before; i < at + length + MARGIN && i < MEMORY_BYTES; ++i) CHECK_EQ(end->memory[i], 0);
}

static struct ibv_wc await(struct rpma_cq* cq) {
    struct ibv_wc wc;
    int rc;
    while ((rc = rpma_cq_get_wc(cq, 1, &wc, NULL)) == RPMA_E_NO_COMPLETION) OK(rpma_cq_wait(cq));
    OK(rc);
    CHECK_EQ(wc.status, IBV_WC_SUCCESS);
    return wc;
}

/* Every operation posted has this context. */
static const char operation_context;

static void await_done(End* end, enum ibv_wc_opcode opcode) {
    struct ibv_wc wc = await(end->cq);
    CHECK_EQ(wc.opcode, opcode);
    CHECK(wc.wr_id == (uintptr_t)&operation_context);
}

static void send_pattern(End* end, size_t length, unsigned seed) {
    fill(end, OUTBOX, length, seed);
    OK(rpma_send(end->conn, end->mr, OUTBOX, length, RPMA_F_COMPLETION_ALWAYS, &operation_context));
    await_done(end, IBV_WC_SEND);
}

/* The inbox of a receive that is done is used again. */
static struct ibv_wc receive(End* end, size_t length, unsigned seed) {
    struct ibv_wc wc = await(end->rcq);
    int slot = (int)wc.wr_id - 1;
    CHECK(slot >= 0 && slot < RECEIVES);
    if (wc.opcode == IBV_WC_RECV) {
        CHECK_EQ(wc.byte_len, length);
        check_and_clear(end, inbox(slot), length, seed);
    }
    OK(rpma_recv(end->conn, end->mr, inbox(slot), MESSAGE_BYTES, name_of(slot)));
    return wc;
}

/* A word between both: what was done before it is in the other's memory when it arrives. */
enum { WORD_BYTES = 4, WORD_SEED = 99 };
static void say_done(End* end) { send_pattern(end, WORD_BYTES, WORD_SEED); }
static void hear_done(End* end) { CHECK_EQ(receive(end, WORD_BYTES, WORD_SEED).wc_flags & IBV_WC_WITH_IMM, 0); }

/* ---- The operations, as the one that begins them and the one at the other end ------------------------------------ */

static const size_t sizes[] = {1, 8, 64, 1000, 4096, MESSAGE_BYTES};
enum { SIZES = sizeof sizes / sizeof sizes[0], IMMEDIATE = 0x12345678 };

static void begin_send(End* end) {
    for (unsigned i = 0; i < SIZES; ++i) {
        send_pattern(end, sizes[i], i);
        hear_done(end);
    }
}

static void end_send(End* end) {
    for (unsigned i = 0; i < SIZES; ++i) {
        CHECK_EQ(receive(end, sizes[i], i).wc_flags & IBV_WC_WITH_IMM, 0);
        say_done(end);
    }
}

static void check_immediate(struct ibv_wc wc, enum ibv_wc_opcode opcode, uint32_t immediate) {
    CHECK_EQ(wc.opcode, opcode);
    CHECK_EQ(wc.wc_flags & IBV_WC_WITH_IMM, IBV_WC_WITH_IMM);
    CHECK(ntohl(wc.imm_data) == immediate);
}

static void begin_send_with_imm(End* end) {
    fill(end, OUTBOX, 100, 10);
    OK(rpma_send_with_imm(end->conn, end->mr, OUTBOX, 100, RPMA_F_COMPLETION_ALWAYS, IMMEDIATE, &operation_context));
    await_done(end, IBV_WC_SEND);
    OK(rpma_send_with_imm(end->conn, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS, UINT32_MAX, &operation_context));
    await_done(end, IBV_WC_SEND);
    hear_done(end);
}

static void end_send_with_imm(End* end) {
    check_immediate(receive(end, 100, 10), IBV_WC_RECV, IMMEDIATE);
    check_immediate(receive(end, 0, 0), IBV_WC_RECV, UINT32_MAX);
    say_done(end);
}

static const size_t places[][2] = {{0, 1}, {4096 + 3, 1000}, {65536, 500000}}; /* offset in the target, and length */
enum { PLACES = sizeof places / sizeof places[0] };

static void write_pattern(End* end, size_t to, size_t length, unsigned seed, int flags) {
    fill(end, SOURCE, length, seed);
    OK(rpma_write(end->conn, end->remote, TARGET + to, end->mr, SOURCE, length, flags, &operation_context));
}

static void begin_write(End* end) {
    for (unsigned i = 0; i < PLACES; ++i) {
        write_pattern(end, places[i][0], places[i][1], i, RPMA_F_COMPLETION_ALWAYS);
        await_done(end, IBV_WC_RDMA_WRITE);
        say_done(end);
        hear_done(end);
    }
}

static void end_write(End* end) {
    for (unsigned i = 0; i < PLACES; ++i) {
        hear_done(end);
        check_and_clear(end, TARGET + places[i][0], places[i][1], i);
        say_done(end);
    }
}

static void begin_write_with_imm(End* end) {
    fill(end, SOURCE, 3000, 20);
    OK(rpma_write_with_imm(end->conn, end->remote, TARGET + 5000, end->mr, SOURCE, 3000, RPMA_F_COMPLETION_ALWAYS,
                           IMMEDIATE, &operation_context));
    await_done(end, IBV_WC_RDMA_WRITE);
    hear_done(end);
}

static void end_write_with_imm(End* end) {
    check_immediate(receive(end, 0, 0), IBV_WC_RECV_RDMA_WITH_IMM, IMMEDIATE);
    check_and_clear(end, TARGET + 5000, 3000, 20);
    say_done(end);
}

static void begin_read(End* end) {
    hear_done(end);
    OK(rpma_read(end->conn, end->mr, TARGET + 77, end->remote, SOURCE, 500000, RPMA_F_COMPLETION_ALWAYS,
                 &operation_context));
    await_done(end, IBV_WC_RDMA_READ);
    check_and_clear(end, TARGET + 77, 500000, 30);
    say_done(end);
}

static void end_read(End* end) {
    fill(end, SOURCE, 500000, 30);
    say_done(end);
    hear_done(end);
}

static void begin_atomic_write(End* end) {
    char value[RPMA_ATOMIC_WRITE_ALIGNMENT];
    for (size_t i = 0; i < sizeof value; ++i) value[i] = (char)pattern(40, i);
    OK(rpma_atomic_write(end->conn, end->remote, TARGET + 8192, value, RPMA_F_COMPLETION_ALWAYS, &operation_context));
    await_done(end, IBV_WC_RDMA_WRITE);
    say_done(end);
    hear_done(end);
}

static void end_atomic_write(End* end) {
    hear_done(end);
    check_and_clear(end, TARGET + 8192, RPMA_ATOMIC_WRITE_ALIGNMENT, 40);
    say_done(end);
}

/* The write tells nothing of itself: it has been done when the flush has been. */
static void flush_to(End* end, enum rpma_flush_type type, size_t length) {
    write_pattern(end, 12345, 70000, 50, RPMA_F_COMPLETION_ON_ERROR);
    OK(rpma_flush(end->conn, end->remote, TARGET + 12345, length, type, RPMA_F_COMPLETION_ALWAYS, &operation_context));
    await_done(end, IBV_WC_RDMA_READ);
    say_done(end);
    hear_done(end);
}

static void begin_flush(End* end) {
    flush_to(end, RPMA_FLUSH_TYPE_VISIBILITY, 70000);
    flush_to(end, RPMA_FLUSH_TYPE_PERSISTENT, MEMORY_BYTES); /* beyond the region: the stock library takes it, too */
}

static void end_flush(End* end) {
    for (int i = 0; i < 2; ++i) {
        hear_done(end);
        check_and_clear(end, TARGET + 12345, 70000, 50);
        say_done(end);
    }
}

static const struct {
    const char* name;
    void (*begin)(End* end), (*end)(End* end);
} operations[] = {
    {"send", begin_send, end_send},    {"send with immediate", begin_send_with_imm, end_send_with_imm},
    {"write", begin_write, end_write}, {"write with immediate", begin_write_with_imm, end_write_with_imm},
    {"read", begin_read, end_read},    {"atomic write", begin_atomic_write, end_atomic_write},
    {"flush", begin_flush, end_flush},
};

/* ---- The roles --------------------------------------------------------------------------------------------------- */

static void run_client(End* end) {
    open_end(end, RPMA_UTIL_IBV_CONTEXT_REMOTE);
    call_in_vain(end);
    call(end);
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; ++i) {
        operations[i].begin(end);
        operations[i].end(end);
        printf("%s: both ways\n", operations[i].name);
    }
    hang_up(end);
    call(end);
    begin_send(end);
    hang_up_after_the_other(end);
    close_end(end);
}

static void run_server(End* end) {
    open_end(end, RPMA_UTIL_IBV_CONTEXT_LOCAL);
    OK(rpma_ep_listen(end->peer, end->address, end->port, &end->ep));
    puts("listening");
    fflush(stdout);
    reject(end);
    answer(end);
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; ++i) {
        operations[i].end(end);
        operations[i].begin(end);
    }
    hang_up_after_the_other(end);
    answer(end);
    end_send(end);
    hang_up(end);
    close_end(end);
}

/* The librpma in use must lie in the directory. */
static void check_library(const char* directory) {
    Dl_info info;
    CHECK(dladdr((void*)(uintptr_t)rpma_ep_listen, &info) != 0);
    char *found = realpath(info.dli_fname, NULL), *wanted = realpath(directory, NULL);
    CHECK(found != NULL && wanted != NULL);
    printf("%s: %s\n", role, found);
    *strrchr(found, '/') = '\0';
    CHECK_EQ(strcmp(found, wanted), 0);
    free(found);
    free(wanted);
}

int main(int argc, char** argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: %s server|client ADDRESS PORT DIRECTORY\n", argv[0]);
        return 2;
    }
    End end = {.address = argv[2], .port = argv[3]};
    role = argv[1];
    alarm(PATIENCE_S);
    check_library(argv[4]);
    if (strcmp(role, "server") == 0)
        run_server(&end);
    else
        run_client(&end);
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * What dat_ib_extensions.h has beside the operations of extensions.c: datagrams, collectives and counters of ports,
 * which adapters may lack, counters on paper, and the words for results.
 */
#define DAT_EXTENSIONS 1
#include "scene.h"

#include <dat2/dat_ib_extensions.h>

static const DAT_DTO_COOKIE none;
static const DAT_CONTEXT nothing;

/* An IA that lacks what the case is about; the case is skipped where it has it. */
static Pair pair_without(const char *name) {
    const Pair pair = open_pair_here((Options){0});
    if (announces(pair.client->ia, name)) skip("the IA has this extension");
    return pair;
}

static void close_unconnected(const Pair *pair) {
    side_close(pair->server);
    side_close(pair->client);
}

/* ---- Datagrams --------------------------------------------------------------------------------------------------- */

static DAT_RETURN send_datagram(DAT_HANDLE ep) {
    DAT_LMR_TRIPLET local = {0, 0, 0};
    DAT_IB_ADDR_HANDLE to = {0};
    return dat_ib_post_send_ud(ep, 1, &local, &to, none, DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN free_address(DAT_HANDLE ep) {
    DAT_IB_ADDR_HANDLE address = {0};
    return dat_ib_ud_ah_free(ep, &address);
}

static DAT_RETURN free_request(DAT_HANDLE ep) { return dat_ib_ud_cm_free(ep, nothing); }

TEST(datagrams__not_implemented) {
    const Pair pair = pair_without(DAT_IB_ATTR_UD);
    CHECK_SUB(send_datagram(pair.client->ep), DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);
    CHECK_SUB(free_address(pair.client->ep), DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);
    CHECK_SUB(free_request(pair.client->ep), DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);
    close_unconnected(&pair);
}

TEST(datagrams__no_endpoints_for_them) {
    const Pair pair = pair_without(DAT_IB_ATTR_UD);
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    const DAT_EVD_HANDLE *evds = pair.client->evds;
    attributes.service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD;
    CHECK_RC(dat_ep_create(pair.client->ia, pair.client->pz, evds[RECV], evds[REQUEST], evds[CONN], &attributes, &ep),
             DAT_INVALID_PARAMETER);
    close_unconnected(&pair);
}

/* Their receives are those of any endpoint. */
TEST(datagrams__receives) {
    const Pair pair = open_pair_here((Options){0});
    DAT_LMR_TRIPLET local = piece(pair.client, RECV_AT, 8);
    CHECK_OK(dat_ib_post_recv_ud(pair.client->ep, 1, &local, none, DAT_COMPLETION_DEFAULT_FLAG));
    close_unconnected(&pair);
}

TEST(datagrams__no_object__invalid_handle) {
    CHECK_BAD_HANDLES(send_datagram(bad));
    CHECK_BAD_HANDLES(free_address(bad));
    CHECK_BAD_HANDLES(free_request(bad));
}

/* ---- Collectives ------------------------------------------------------------------------------------------------- */

typedef DAT_RETURN (*Call)(DAT_HANDLE handle);

static DAT_COUNT sizes[2];
static char buffer[16];

/* A call for the group, with buffers, sizes and displacements of this program: every one of them is in of_groups
 * below. */
#define SENDER buffer, sizeof buffer
#define RECEIVER buffer, sizeof buffer
#define TAIL nothing, DAT_COMPLETION_DEFAULT_FLAG
#define SUM DAT_IB_COLLECTIVE_REDUCE_OP_SUM, DAT_IB_COLLECTIVE_TYPE_INT32
#define COLLECTIVE(name, call, ...) \
    static DAT_RETURN name(DAT_HANDLE group) { return EXPAND(call, group, __VA_ARGS__); }
#define EXPAND(macro, ...) macro(__VA_ARGS__)

COLLECTIVE(scatter, dat_ib_collective_scatter, SENDER, RECEIVER, 0, TAIL)
COLLECTIVE(scatterv, dat_ib_collective_scatterv, buffer, sizes, sizes, RECEIVER, 0, TAIL)
COLLECTIVE(gather, dat_ib_collective_gather, SENDER, RECEIVER, 0, TAIL)
COLLECTIVE(gatherv, dat_ib_collective_gatherv, SENDER, buffer, sizes, sizes, 0, TAIL)
COLLECTIVE(allgather, dat_ib_collective_allgather, SENDER, RECEIVER, TAIL)
COLLECTIVE(allgatherv, dat_ib_collective_allgatherv, SENDER, buffer, sizes, sizes, TAIL)
COLLECTIVE(alltoall, dat_ib_collective_alltoall, SENDER, RECEIVER, TAIL)
COLLECTIVE(alltoallv, dat_ib_collective_alltoallv, buffer, sizes, sizes, buffer, sizes, sizes, TAIL)
COLLECTIVE(reduce, dat_ib_collective_reduce, SENDER, RECEIVER, SUM, 0, TAIL)
COLLECTIVE(allreduce, dat_ib_collective_allreduce, SENDER, RECEIVER, SUM, TAIL)
COLLECTIVE(reduce_scatter, dat_ib_collective_reduce_scatter, SENDER, buffer, sizes, SUM, TAIL)
COLLECTIVE(scan, dat_ib_collective_scan, SENDER, RECEIVER, SUM, TAIL)
COLLECTIVE(broadcast, dat_ib_collective_broadcast, SENDER, 0, TAIL)
COLLECTIVE(barrier, dat_ib_collective_barrier, TAIL)
COLLECTIVE(set_clock, dat_ib_collective_set_clock, 7, nothing)

static DAT_RETURN read_clock(DAT_HANDLE group) {
    DAT_UINT64 clock;
    return dat_ib_collective_read_clock(group, &clock);
}

static DAT_RETURN free_group(DAT_HANDLE group) { return dat_ib_collective_free_group(group); }

static DAT_RETURN create_member(DAT_HANDLE ia) {
    DAT_IB_COLLECTIVE_MEMBER member;
    DAT_UINT32 size;
    return dat_ib_collective_create_member(ia, NULL, &member, &size);
}

static DAT_RETURN free_member(DAT_HANDLE ia) { return dat_ib_collective_free_member(ia, buffer); }

static DAT_RETURN create_group(DAT_HANDLE evd) {
    DAT_IB_COLLECTIVE_MEMBER members[1] = {buffer};
    DAT_IB_COLLECTIVE_GROUP group = {.local_size = 1};
    return dat_ib_collective_create_group(members, 1, 0, 1, &group, evd, DAT_HANDLE_NULL, nothing);
}

/* With the attribute by which an IA announces each. */
static const struct {
    Call call;
    const char *attribute;
} of_groups[] = {
    {scatter, DAT_IB_COLL_SCATTER},
    {scatterv, DAT_IB_COLL_SCATTERV},
    {gather, DAT_IB_COLL_GATHER},
    {gatherv, DAT_IB_COLL_GATHERV},
    {allgather, DAT_IB_COLL_ALLGATHER},
    {allgatherv, DAT_IB_COLL_ALLGATHERV},
    {alltoall, DAT_IB_COLL_ALLTOALL},
    {alltoallv, DAT_IB_COLL_ALLTOALLV},
    {reduce, DAT_IB_COLL_REDUCE},
    {allreduce, DAT_IB_COLL_ALLREDUCE},
    {reduce_scatter, DAT_IB_COLL_REDUCE_SCATTER},
    {scan, DAT_IB_COLL_SCAN},
    {broadcast, DAT_IB_COLL_BROADCAST},
    {barrier, DAT_IB_COLL_BARRIER},
    {set_clock, DAT_IB_COLL_SET_CLOCK},
    {read_clock, DAT_IB_COLL_READ_CLOCK},
    {free_group, DAT_IB_COLL_BARRIER},
};
enum { CALLS_OF_GROUPS = sizeof of_groups / sizeof *of_groups };

TEST(collectives__not_announced) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    for (int i = 0; i < CALLS_OF_GROUPS; ++i) CHECK(!on_loopback() || !announces(ia, of_groups[i].attribute));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST(collectives__not_implemented) {
    const Pair pair = pair_without(DAT_IB_COLL_BARRIER);
    CHECK_SUB(create_member(pair.client->ia), DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);
    CHECK_SUB(free_member(pair.client->ia), DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);
    CHECK_SUB(create_group(pair.client->evds[CONN]), DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);
    for (int i = 0; i < CALLS_OF_GROUPS; ++i)
        CHECK_SUB(of_groups[i].call(pair.client->ep), DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);
    close_unconnected(&pair);
}

TEST(collectives__no_object__invalid_handle) {
    CHECK_BAD_HANDLES(create_member(bad));
    CHECK_BAD_HANDLES(free_member(bad));
    CHECK_BAD_HANDLES(create_group(bad));
    for (int i = 0; i < CALLS_OF_GROUPS; ++i) CHECK_BAD_HANDLES(of_groups[i].call(bad));
}

/* ---- Counters ---------------------------------------------------------------------------------------------------- */

/* The counters of ports are those of hardware. */
TEST(counters_of_ports__not_implemented) {
    static const DAT_IA_COUNTER_TYPE types[] = {DCNT_IA_CM, DCNT_IA_LNK, DCNT_IA_DIAG};
    DAT_IA_HANDLE ia = open_ia(NULL);
    for (int i = 0; i < 3; ++i) {
        CHECK_SUB(dat_ib_start_counter(ia, types[i]), DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);
        CHECK_SUB(dat_ib_stop_counter(ia, types[i]), DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);
    }
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST(counters__no_object__invalid_handle) {
    DAT_UINT64 values[DCNT_IA_ALL_COUNTERS];
    CHECK_BAD_HANDLES(dat_ib_query_counters(bad, 0, values, 0));
    CHECK_BAD_HANDLES(dat_ib_query_counters(bad, 0, NULL, 0));
    CHECK_BAD_HANDLES(dat_ib_print_counters(bad, 0, 0));
    CHECK_BAD_HANDLES(dat_ib_start_counter(bad, DCNT_IA_LNK));
    CHECK_BAD_HANDLES(dat_ib_stop_counter(bad, DCNT_IA_LNK));
}

TEST(counters__objects_that_have_none__invalid_handle) {
    DAT_UINT64 values[DCNT_IA_ALL_COUNTERS];
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_PZ_HANDLE pz = new_pz(ia);
    CHECK_RC(dat_ib_query_counters(pz, 0, values, 0), DAT_INVALID_HANDLE);
    CHECK_RC(dat_ib_query_counters(pz, 0, NULL, 0), DAT_INVALID_HANDLE);
    CHECK_RC(dat_ib_print_counters(pz, 0, 0), DAT_INVALID_HANDLE);
    CHECK_OK(dat_pz_free(pz));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

/* What the call writes to standard output. */
static const char *printed(DAT_HANDLE handle, int counter, int reset) {
    static char text[8192];
    int pipe_ends[2];
    int before = dup(STDOUT_FILENO);
    CHECK(before >= 0 && fflush(stdout) == 0 && pipe(pipe_ends) == 0);
    CHECK(dup2(pipe_ends[1], STDOUT_FILENO) == STDOUT_FILENO);
    DAT_RETURN rc = dat_ib_print_counters(handle, counter, reset);
    CHECK(fflush(stdout) == 0 && dup2(before, STDOUT_FILENO) == STDOUT_FILENO);
    close(pipe_ends[1]);
    CHECK_OK(rc);
    ssize_t length = read(pipe_ends[0], text, sizeof text - 1);
    CHECK(length >= 0);
    text[length] = '\0';
    close(pipe_ends[0]);
    close(before);
    return text;
}

TEST(print_counters__one) {
    const Pair pair = connected_pair_here((Options){0});
    if (!announces(pair.client->ia, DAT_IB_ATTR_COUNTERS)) skip("the IA does not announce counters");
    const char *text = printed(pair.client->ep, DCNT_EP_CONNECT, 1);
    CHECK(strstr(text, "DCNT_EP_CONNECT = 1") != NULL);
    CHECK(strstr(text, "DCNT_EP_DISCONNECT") == NULL);
    CHECK(strstr(printed(pair.client->ep, DCNT_EP_CONNECT, 0), "DCNT_EP_CONNECT = 0") != NULL); /* was reset */
    pair_close(&pair);
}

TEST(print_counters__all) {
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia = open_ia(&evd);
    if (!announces(ia, DAT_IB_ATTR_COUNTERS)) skip("the IA does not announce counters");
    const char *text = printed(evd, DCNT_EVD_ALL_COUNTERS, 0);
    CHECK(strstr(text, "DCNT_EVD_WAIT = ") != NULL);
    CHECK(strstr(text, "DCNT_EVD_DTO_CALLBACK = ") != NULL);
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST(print_counters__that_do_not_exist) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    CHECK_SUB(dat_ib_print_counters(ia, DCNT_IA_ALL_COUNTERS + 1, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_SUB(dat_ib_print_counters(ia, -1, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

/* ---- Words ------------------------------------------------------------------------------------------------------- */

TEST(strerror_extension__errors) {
    const char *text = NULL;
    CHECK_OK(dat_strerror_extension((DAT_IB_RETURN)(DAT_CLASS_ERROR | (DAT_RETURN)DAT_IB_ERR), &text));
    CHECK(strcmp(text, "DAT_IB_ERR") == 0);
}

/* All other types are those of dat_strerror. */
TEST(strerror_extension__types_of_dat) {
    const char *text = NULL;
    CHECK_OK(dat_strerror_extension((DAT_IB_RETURN)(DAT_CLASS_ERROR | (DAT_RETURN)DAT_NOT_IMPLEMENTED), &text));
    CHECK(strcmp(text, "DAT_NOT_IMPLEMENTED") == 0);
    CHECK_RC(dat_strerror_extension((DAT_IB_RETURN)(DAT_CLASS_ERROR | 0x2FFF0000), &text), DAT_INVALID_PARAMETER);
}

TEST(strerror_ext_status__every_status) {
    const char *text = NULL;
    CHECK_OK(dat_strerror_ext_status(DAT_OP_SUCCESS, &text));
    CHECK(strcmp(text, " ") == 0);
    CHECK_OK(dat_strerror_ext_status(DAT_IB_OP_ERR, &text));
    CHECK(strcmp(text, "DAT_IB_OP_ERR") == 0);
    CHECK_OK(dat_strerror_ext_status(DAT_IB_COLL_COMP_ERR, &text));
    CHECK(strcmp(text, "DAT_IB_COLL_COMP_ERR") == 0);
    CHECK_RC(dat_strerror_ext_status((DAT_IB_STATUS)77, &text), DAT_INVALID_PARAMETER);
    CHECK(strcmp(text, "unknown extension status") == 0);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Beyond the manual pages, and beyond stock librpma: objects that are gone, or are of another kind, or never were, give
 * RPMA_E_INVAL everywhere and never a crash.
 */
#include "side.h"

/* Of all objects of a connected side, closed by now. */
typedef struct {
    struct rpma_peer *peer;
    struct rpma_conn_cfg *cfg;
    struct rpma_peer_cfg *pcfg;
    struct rpma_srq_cfg *srq_cfg;
    struct rpma_srq *srq;
    struct rpma_ep *ep;
    struct rpma_conn_req *req;
    struct rpma_conn *conn;
    struct rpma_cq *cq, *rcq;
    struct rpma_mr_local *mr;
    struct rpma_mr_remote *target;
} Objects;

static Objects stale;
static Objects living;
static Side *side;

static Objects make_objects(void) {
    Objects made = {0};
    side = new_side(NULL);
    side_open(side, (Options){.srq_without_rcq = true, .rcq_size = 10});
    listen_at(side);
    request_to(side, side);
    connect_request(side);
    made.conn = side->conn;
    CHECK_OK(rpma_conn_get_cq(made.conn, &made.cq));
    CHECK_OK(rpma_conn_get_rcq(made.conn, &made.rcq));
    request_to(side, side);
    CHECK_OK(rpma_mr_remote_from_descriptor(side->descriptor, sizeof side->descriptor, &side->target));
    CHECK_OK(rpma_peer_cfg_new(&made.pcfg));
    CHECK_OK(rpma_srq_cfg_new(&made.srq_cfg));
    made.peer = side->peer;
    made.cfg = side->cfg;
    made.srq = side->srq;
    made.ep = side->ep;
    made.req = side->req;
    made.mr = side->mr;
    made.target = side->target;
    return made;
}

static void make_stale_and_living(void) {
    stale = make_objects();
    Objects gone = stale;
    CHECK_OK(rpma_peer_cfg_delete(&gone.pcfg));
    CHECK_OK(rpma_srq_cfg_delete(&gone.srq_cfg));
    side_close(side);
    living = make_objects();
}

/* Calls with an object that is wrong. */
typedef void (*Probe)(void *wrong);

/* Wrong are: one that is gone, one of another kind, the address of something else, and a number. */
static void each_wrong(void *gone, void *other, Probe probe) {
    int something_else = 0;
    void *const values[] = {gone, other, &something_else, (void *)0x77};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; ++i) probe(values[i]);
}

static const int always = RPMA_F_COMPLETION_ALWAYS;

/* ---- Devices, peers and regions ---------------------------------------------------------------------------------- */

static void probe_device(void *wrong) {
    struct rpma_peer *peer = NULL;
    int capable = 0;
    CHECK_INVAL(rpma_peer_new(wrong, &peer));
    CHECK_INVAL(rpma_utils_ibv_context_is_odp_capable(wrong, &capable));
    CHECK(peer == NULL);
}

TEST(handles__devices) {
    make_stale_and_living();
    each_wrong(stale.peer, living.peer, probe_device);
}

static void probe_peer(void *wrong) {
    struct rpma_peer *peer = wrong;
    struct rpma_mr_local *mr = NULL;
    struct rpma_conn_req *req = NULL;
    struct rpma_ep *ep = NULL;
    struct rpma_srq *srq = NULL;
    CHECK_INVAL(rpma_mr_reg(wrong, side->memory, 8, RPMA_MR_USAGE_SEND, &mr));
    CHECK_INVAL(rpma_conn_req_new(wrong, test_address(), side->port, NULL, &req));
    CHECK_INVAL(rpma_ep_listen(wrong, test_address(), "9", &ep));
    CHECK_INVAL(rpma_srq_new(wrong, NULL, &srq));
    CHECK_INVAL(rpma_peer_delete(&peer));
    CHECK(peer == wrong && mr == NULL && req == NULL && ep == NULL && srq == NULL);
}

TEST(handles__peers) {
    make_stale_and_living();
    each_wrong(stale.peer, living.ep, probe_peer);
}

static void probe_region(void *wrong) {
    struct rpma_mr_local *mr = wrong;
    uint8_t bytes[MR_DESCRIPTOR_BYTES];
    void *start = NULL;
    size_t size = 0;
    CHECK_INVAL(rpma_mr_get_descriptor(wrong, bytes));
    CHECK_INVAL(rpma_mr_get_descriptor_size(wrong, &size));
    CHECK_INVAL(rpma_mr_get_ptr(wrong, &start));
    CHECK_INVAL(rpma_mr_get_size(wrong, &size));
    CHECK_INVAL(rpma_mr_advise(wrong, 0, 1, 0, 0));
    CHECK_INVAL(rpma_mr_dereg(&mr));
    CHECK_INVAL(rpma_send(living.conn, wrong, 0, 8, always, NULL));
    CHECK_INVAL(rpma_send_with_imm(living.conn, wrong, 0, 8, always, 1, NULL));
    CHECK_INVAL(rpma_recv(living.conn, wrong, 0, 8, NULL));
    CHECK_INVAL(rpma_conn_req_recv(living.req, wrong, 0, 8, NULL));
    CHECK_INVAL(rpma_srq_recv(living.srq, wrong, 0, 8, NULL));
    CHECK_INVAL(rpma_write(living.conn, living.target, 0, wrong, 0, 8, always, NULL));
    CHECK_INVAL(rpma_write_with_imm(living.conn, living.target, 0, wrong, 0, 8, always, 1, NULL));
    CHECK_INVAL(rpma_read(living.conn, wrong, 0, living.target, 0, 8, always, NULL));
    CHECK(mr == wrong && start == NULL && size == 0);
}

TEST(handles__regions) {
    make_stale_and_living();
    each_wrong(stale.mr, living.target, probe_region);
}

/* Stock librpma does without this check, too: rpma_mr_advise is the one function whose page does not mention NULL. */
TEST(handles__advice_without_a_region) { CHECK_INVAL(rpma_mr_advise(NULL, 0, 1, 0, 0)); }

static void probe_target(void *wrong) {
    struct rpma_mr_remote *target = wrong;
    const char value[8] = {0};
    size_t size = 0;
    int type = 0;
    CHECK_INVAL(rpma_mr_remote_get_size(wrong, &size));
    CHECK_INVAL(rpma_mr_remote_get_flush_type(wrong, &type));
    CHECK_INVAL(rpma_mr_remote_delete(&target));
    CHECK_INVAL(rpma_write(living.conn, wrong, 0, living.mr, 0, 8, always, NULL));
    CHECK_INVAL(rpma_write_with_imm(living.conn, wrong, 0, living.mr, 0, 8, always, 1, NULL));
    CHECK_INVAL(rpma_read(living.conn, living.mr, 0, wrong, 0, 8, always, NULL));
    CHECK_INVAL(rpma_atomic_write(living.conn, wrong, 0, value, always, NULL));
    CHECK_INVAL(rpma_flush(living.conn, wrong, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, always, NULL));
    CHECK(target == wrong && size == 0 && type == 0);
}

TEST(handles__remote_regions) {
    make_stale_and_living();
    each_wrong(stale.target, living.mr, probe_target);
}

/* ---- Configurations ---------------------------------------------------------------------------------------------- */

static void probe_conn_cfg(void *wrong) {
    struct rpma_conn_cfg *cfg = wrong;
    struct rpma_conn_req *req = NULL;
    struct rpma_srq *srq = NULL;
    uint32_t size = 0;
    int timeout_ms = 0;
    bool shared = false;
    CHECK_INVAL(rpma_conn_cfg_set_timeout(wrong, 1));
    CHECK_INVAL(rpma_conn_cfg_get_timeout(wrong, &timeout_ms));
    CHECK_INVAL(rpma_conn_cfg_set_cq_size(wrong, 1));
    CHECK_INVAL(rpma_conn_cfg_get_cq_size(wrong, &size));
    CHECK_INVAL(rpma_conn_cfg_set_rcq_size(wrong, 1));
    CHECK_INVAL(rpma_conn_cfg_get_rcq_size(wrong, &size));
    CHECK_INVAL(rpma_conn_cfg_set_sq_size(wrong, 1));
    CHECK_INVAL(rpma_conn_cfg_get_sq_size(wrong, &size));
    CHECK_INVAL(rpma_conn_cfg_set_rq_size(wrong, 1));
    CHECK_INVAL(rpma_conn_cfg_get_rq_size(wrong, &size));
    CHECK_INVAL(rpma_conn_cfg_set_compl_channel(wrong, true));
    CHECK_INVAL(rpma_conn_cfg_get_compl_channel(wrong, &shared));
    CHECK_INVAL(rpma_conn_cfg_set_srq(wrong, (struct rpma_srq *)0xC41D));
    CHECK_INVAL(rpma_conn_cfg_get_srq(wrong, &srq));
    CHECK_INVAL(rpma_conn_req_new(living.peer, test_address(), side->port, wrong, &req));
    CHECK_INVAL(rpma_ep_next_conn_req(living.ep, wrong, &req));
    CHECK_INVAL(rpma_conn_cfg_delete(&cfg));
    CHECK(cfg == wrong && req == NULL);
}

TEST(handles__connection_configurations) {
    make_stale_and_living();
    each_wrong(stale.cfg, living.srq_cfg, probe_conn_cfg);
}

static void probe_srq_cfg(void *wrong) {
    struct rpma_srq_cfg *cfg = wrong;
    struct rpma_srq *srq = NULL;
    uint32_t size = 0;
    CHECK_INVAL(rpma_srq_cfg_set_rq_size(wrong, 1));
    CHECK_INVAL(rpma_srq_cfg_get_rq_size(wrong, &size));
    CHECK_INVAL(rpma_srq_cfg_set_rcq_size(wrong, 1));
    CHECK_INVAL(rpma_srq_cfg_get_rcq_size(wrong, &size));
    CHECK_INVAL(rpma_srq_new(living.peer, wrong, &srq));
    CHECK_INVAL(rpma_srq_cfg_delete(&cfg));
    CHECK(cfg == wrong && srq == NULL);
}

TEST(handles__shared_receive_queue_configurations) {
    make_stale_and_living();
    each_wrong(stale.srq_cfg, living.cfg, probe_srq_cfg);
}

static void probe_peer_cfg(void *wrong) {
    struct rpma_peer_cfg *cfg = wrong;
    bool supported = false;
    size_t size = 0;
    uint8_t byte = 0;
    CHECK_INVAL(rpma_peer_cfg_set_direct_write_to_pmem(wrong, true));
    CHECK_INVAL(rpma_peer_cfg_get_direct_write_to_pmem(wrong, &supported));
    CHECK_INVAL(rpma_peer_cfg_get_descriptor(wrong, &byte));
    CHECK_INVAL(rpma_peer_cfg_get_descriptor_size(wrong, &size));
    CHECK_INVAL(rpma_conn_apply_remote_peer_cfg(living.conn, wrong));
    CHECK_INVAL(rpma_peer_cfg_delete(&cfg));
    CHECK(cfg == wrong);
}

TEST(handles__peer_configurations) {
    make_stale_and_living();
    each_wrong(stale.pcfg, living.cfg, probe_peer_cfg);
}

/* ---- Connections ------------------------------------------------------------------------------------------------- */

static void probe_ep(void *wrong) {
    struct rpma_ep *ep = wrong;
    struct rpma_conn_req *req = NULL;
    int fd = 0;
    CHECK_INVAL(rpma_ep_get_fd(wrong, &fd));
    CHECK_INVAL(rpma_ep_next_conn_req(wrong, NULL, &req));
    CHECK_INVAL(rpma_ep_shutdown(&ep));
    CHECK(ep == wrong && req == NULL);
}

TEST(handles__endpoints) {
    make_stale_and_living();
    each_wrong(stale.ep, living.peer, probe_ep);
}

static void probe_request(void *wrong) {
    struct rpma_conn_req *req = wrong;
    struct rpma_conn *conn = NULL;
    struct rpma_conn_private_data pdata;
    CHECK_INVAL(rpma_conn_req_get_private_data(wrong, &pdata));
    CHECK_INVAL(rpma_conn_req_recv(wrong, living.mr, 0, 8, NULL));
    CHECK_INVAL(rpma_conn_req_connect(&req, NULL, &conn));
    CHECK(req == wrong && conn == NULL);
    CHECK_INVAL(rpma_conn_req_delete(&req));
    CHECK(req == wrong);
}

TEST(handles__requests) {
    make_stale_and_living();
    each_wrong(stale.req, living.conn, probe_request);
}

static void probe_connection(void *wrong) {
    struct rpma_conn *conn = wrong;
    struct rpma_conn_private_data pdata;
    struct rpma_cq *cq = NULL;
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    uint32_t number = 0;
    int fd = 0;
    CHECK_INVAL(rpma_conn_get_event_fd(wrong, &fd));
    CHECK_INVAL(rpma_conn_next_event(wrong, &event));
    CHECK_INVAL(rpma_conn_get_private_data(wrong, &pdata));
    CHECK_INVAL(rpma_conn_apply_remote_peer_cfg(wrong, living.pcfg));
    CHECK_INVAL(rpma_conn_get_qp_num(wrong, &number));
    CHECK_INVAL(rpma_conn_get_cq(wrong, &cq));
    CHECK_INVAL(rpma_conn_get_rcq(wrong, &cq));
    CHECK_INVAL(rpma_conn_get_compl_fd(wrong, &fd));
    CHECK_INVAL(rpma_conn_wait(wrong, 0, &cq, NULL));
    CHECK_INVAL(rpma_conn_disconnect(wrong));
    CHECK_INVAL(rpma_conn_delete(&conn));
    CHECK(conn == wrong && cq == NULL);
}

static void probe_work_on_connection(void *wrong) {
    const char value[8] = {0};
    CHECK_INVAL(rpma_send(wrong, living.mr, 0, 8, always, NULL));
    CHECK_INVAL(rpma_send_with_imm(wrong, living.mr, 0, 8, always, 1, NULL));
    CHECK_INVAL(rpma_recv(wrong, living.mr, 0, 8, NULL));
    CHECK_INVAL(rpma_write(wrong, living.target, 0, living.mr, 0, 8, always, NULL));
    CHECK_INVAL(rpma_write_with_imm(wrong, living.target, 0, living.mr, 0, 8, always, 1, NULL));
    CHECK_INVAL(rpma_read(wrong, living.mr, 0, living.target, 0, 8, always, NULL));
    CHECK_INVAL(rpma_atomic_write(wrong, living.target, 0, value, always, NULL));
    CHECK_INVAL(rpma_flush(wrong, living.target, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, always, NULL));
}

TEST(handles__connections) {
    make_stale_and_living();
    each_wrong(stale.conn, living.req, probe_connection);
    each_wrong(stale.conn, living.req, probe_work_on_connection);
}

static void probe_cq(void *wrong) {
    struct ibv_wc wc;
    int fd = 0;
    CHECK_INVAL(rpma_cq_get_fd(wrong, &fd));
    CHECK_INVAL(rpma_cq_wait(wrong));
    CHECK_INVAL(rpma_cq_get_wc(wrong, 1, &wc, NULL));
}

TEST(handles__completion_queues) {
    make_stale_and_living();
    each_wrong(stale.cq, living.conn, probe_cq);
    each_wrong(stale.rcq, living.srq, probe_cq);
}

static void probe_srq(void *wrong) {
    struct rpma_srq *srq = wrong;
    struct rpma_cq *rcq = NULL;
    CHECK_INVAL(rpma_srq_recv(wrong, living.mr, 0, 8, NULL));
    CHECK_INVAL(rpma_srq_get_rcq(wrong, &rcq));
    CHECK_INVAL(rpma_srq_delete(&srq));
    CHECK(srq == wrong && rcq == NULL);
}

/* A configuration keeps what it is given. */
static void probe_srq_in_a_configuration(void *wrong) {
    struct rpma_conn_req *req = NULL;
    struct rpma_conn *conn = NULL;
    CHECK_OK(rpma_conn_cfg_set_srq(living.cfg, wrong));
    CHECK_INVAL(rpma_conn_req_new(living.peer, test_address(), side->port, living.cfg, &req));
    CHECK_OK(rpma_conn_req_new(living.peer, test_address(), side->port, NULL, &req));
    CHECK_OK(rpma_conn_req_connect(&req, NULL, &conn));
    CHECK_INVAL(rpma_ep_next_conn_req(living.ep, living.cfg, &req));
    CHECK(req == NULL);
    CHECK_OK(rpma_conn_delete(&conn));
}

TEST(handles__shared_receive_queues) {
    make_stale_and_living();
    each_wrong(stale.srq, living.peer, probe_srq);
    each_wrong(stale.srq, living.peer, probe_srq_in_a_configuration);
}

/* ---- What they point to ------------------------------------------------------------------------------------------ */

/* Of the largest object of stock librpma. */
enum { OBJECT_BYTES = 72 };

/* Whoever looks finds memory, while the object lives and when it is gone. */
TEST(handles__can_be_read) {
    make_stale_and_living();
    void *const objects[] = {living.peer, living.cfg,  living.pcfg, living.srq_cfg, living.srq, living.ep,
                             living.req,  living.conn, living.cq,   living.rcq,     living.mr,  living.target,
                             stale.peer,  stale.cfg,   stale.pcfg,  stale.srq_cfg,  stale.srq,  stale.ep,
                             stale.req,   stale.conn,  stale.cq,    stale.rcq,      stale.mr,   stale.target};
    uint8_t copy[OBJECT_BYTES];
    for (size_t i = 0; i < sizeof objects / sizeof objects[0]; ++i) {
        memcpy(copy, objects[i], sizeof copy);
        CHECK(memcmp(copy, objects[i], sizeof copy) == 0);
    }
}

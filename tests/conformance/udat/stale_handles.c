/* SPDX-License-Identifier: BSD-3-Clause
 * Handles that are none, that are of another kind, or that have been freed: DAT_INVALID_HANDLE from every call, with
 * all that the call needs besides.
 */
#include "scene.h"

#pragma weak dat_cno_fd_create
#pragma weak dat_cno_trigger
#pragma weak dat_rmr_create_for_ep

/* A call with everything valid except its handle. */
typedef DAT_RETURN (*Call)(DAT_HANDLE handle);

static Side *side; /* what is valid */

static DAT_RETURN ia_query(DAT_HANDLE h) {
    DAT_EVD_HANDLE evd;
    return dat_ia_query(h, &evd, 0, NULL, 0, NULL);
}
static DAT_RETURN ia_close(DAT_HANDLE h) { return dat_ia_close(h, DAT_CLOSE_GRACEFUL_FLAG); }
static DAT_RETURN pz_create(DAT_HANDLE h) {
    DAT_PZ_HANDLE pz;
    return dat_pz_create(h, &pz);
}
static DAT_RETURN evd_create(DAT_HANDLE h) {
    DAT_EVD_HANDLE evd;
    return dat_evd_create(h, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd);
}
static DAT_RETURN cno_create(DAT_HANDLE h) {
    DAT_CNO_HANDLE cno;
    return dat_cno_create(h, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno);
}
static DAT_RETURN lmr_create_in(DAT_HANDLE ia, DAT_HANDLE pz) {
    DAT_LMR_HANDLE lmr;
    DAT_LMR_CONTEXT context;
    DAT_RMR_CONTEXT rmr_context;
    return register_virtual(ia, pz, side->memory, 100, DAT_MEM_PRIV_ALL_FLAG, &lmr, &context, &rmr_context);
}
static DAT_RETURN lmr_create(DAT_HANDLE h) { return lmr_create_in(h, side->pz); }
static DAT_RETURN lmr_sync_rdma_read(DAT_HANDLE h) { return dat_lmr_sync_rdma_read(h, NULL, 0); }
static DAT_RETURN lmr_sync_rdma_write(DAT_HANDLE h) { return dat_lmr_sync_rdma_write(h, NULL, 0); }
static DAT_RETURN srq_create_in(DAT_HANDLE ia, DAT_HANDLE pz) {
    DAT_SRQ_ATTR attributes = {8, 1, 0};
    DAT_SRQ_HANDLE srq;
    return dat_srq_create(ia, pz, &attributes, &srq);
}
static DAT_RETURN srq_create(DAT_HANDLE h) { return srq_create_in(h, side->pz); }

static const Call ia_calls[] = {ia_query,   ia_close,           pz_create,           evd_create, cno_create,
                                lmr_create, lmr_sync_rdma_read, lmr_sync_rdma_write, srq_create};

static DAT_RETURN evd_query(DAT_HANDLE h) {
    DAT_EVD_PARAM param;
    return dat_evd_query(h, DAT_EVD_FIELD_ALL, &param);
}
static DAT_RETURN evd_modify_cno(DAT_HANDLE h) { return dat_evd_modify_cno(h, DAT_HANDLE_NULL); }
static DAT_RETURN evd_wait(DAT_HANDLE h) {
    DAT_EVENT event;
    DAT_COUNT more;
    return dat_evd_wait(h, 0, 1, &event, &more);
}
static DAT_RETURN evd_dequeue(DAT_HANDLE h) {
    DAT_EVENT event;
    return dat_evd_dequeue(h, &event);
}
static DAT_RETURN evd_post_se(DAT_HANDLE h) {
    DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};
    return dat_evd_post_se(h, &event);
}
static DAT_RETURN evd_resize(DAT_HANDLE h) { return dat_evd_resize(h, 2 * EVD_QLEN); }

static const Call evd_calls[] = {evd_query,
                                 evd_modify_cno,
                                 evd_wait,
                                 evd_dequeue,
                                 evd_post_se,
                                 evd_resize,
                                 dat_evd_enable,
                                 dat_evd_disable,
                                 dat_evd_set_unwaitable,
                                 dat_evd_clear_unwaitable,
                                 dat_evd_free};

static DAT_RETURN cno_query(DAT_HANDLE h) {
    DAT_CNO_PARAM param;
    return dat_cno_query(h, DAT_CNO_FIELD_ALL, &param);
}
static DAT_RETURN cno_modify_agent(DAT_HANDLE h) { return dat_cno_modify_agent(h, DAT_OS_WAIT_PROXY_AGENT_NULL); }
static DAT_RETURN cno_wait(DAT_HANDLE h) {
    DAT_EVD_HANDLE evd;
    return dat_cno_wait(h, 0, &evd);
}

static const Call cno_calls[] = {cno_query, cno_modify_agent, cno_wait, dat_cno_free};

static DAT_RETURN pz_query(DAT_HANDLE h) {
    DAT_PZ_PARAM param;
    return dat_pz_query(h, DAT_PZ_FIELD_ALL, &param);
}
static DAT_RETURN rmr_create(DAT_HANDLE h) {
    DAT_RMR_HANDLE rmr;
    return dat_rmr_create(h, &rmr);
}
static DAT_RETURN lmr_create_in_zone(DAT_HANDLE h) { return lmr_create_in(side->ia, h); }
static DAT_RETURN srq_create_in_zone(DAT_HANDLE h) { return srq_create_in(side->ia, h); }

static const Call pz_calls[] = {pz_query, rmr_create, lmr_create_in_zone, srq_create_in_zone, dat_pz_free};

static DAT_RETURN lmr_query(DAT_HANDLE h) {
    DAT_LMR_PARAM param;
    return dat_lmr_query(h, DAT_LMR_FIELD_ALL, &param);
}

static const Call lmr_calls[] = {lmr_query, dat_lmr_free};

static DAT_RETURN rmr_query(DAT_HANDLE h) {
    DAT_RMR_PARAM param;
    return dat_rmr_query(h, DAT_RMR_FIELD_ALL, &param);
}
static DAT_RETURN rmr_bind(DAT_HANDLE h) {
    DAT_LMR_TRIPLET triplet = piece(side, 0, 8);
    DAT_RMR_CONTEXT context;
    return dat_rmr_bind(h, side->lmr, &triplet, DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA, side->ep,
                        (DAT_RMR_COOKIE){.as_64 = 1}, DAT_COMPLETION_DEFAULT_FLAG, &context);
}

static const Call rmr_calls[] = {rmr_query, rmr_bind, dat_rmr_free};

static DAT_RETURN srq_query(DAT_HANDLE h) {
    DAT_SRQ_PARAM param;
    return dat_srq_query(h, DAT_SRQ_FIELD_ALL, &param);
}
static DAT_RETURN srq_post_recv(DAT_HANDLE h) {
    DAT_LMR_TRIPLET triplet = piece(side, 0, 8);
    return dat_srq_post_recv(h, 1, &triplet, (DAT_DTO_COOKIE){.as_64 = 1});
}
static DAT_RETURN srq_resize(DAT_HANDLE h) { return dat_srq_resize(h, 64); }
static DAT_RETURN srq_set_lw(DAT_HANDLE h) { return dat_srq_set_lw(h, 1); }

static const Call srq_calls[] = {srq_query, srq_post_recv, srq_resize, srq_set_lw, dat_srq_free};

static DAT_RETURN ep_recv_query(DAT_HANDLE h) {
    DAT_COUNT count, span;
    return dat_ep_recv_query(h, &count, &span);
}
static DAT_RETURN ep_set_watermark(DAT_HANDLE h) {
    return dat_ep_set_watermark(h, DAT_WATERMARK_INFINITE, DAT_WATERMARK_INFINITE);
}

static const Call ep_calls[] = {ep_recv_query, ep_set_watermark};

/* Not one of them: anything but what the calls ask for. */
static void check_all(const Call *calls, size_t count, DAT_HANDLE stale) {
    const DAT_RMR_HANDLE rmr = on_loopback() || ia_attributes(side->ia).max_rmrs > 0 ? new_rmr(side->pz) : side->lmr;
    DAT_HANDLE others[] = {side->ia,  side->pz,         side->lmr,         rmr,  side->ep,
                           side->srq, side->evds[CONN], side->evds[ASYNC], stale};
    DAT_HANDLE_TYPE wanted = (DAT_HANDLE_TYPE)-1, type;
    for (size_t i = 0; i + 1 < sizeof others / sizeof *others; ++i) {
        CHECK_OK(dat_get_handle_type(others[i], &type));
        if (calls == ia_calls) wanted = DAT_HANDLE_TYPE_IA;
        if (calls == evd_calls) wanted = DAT_HANDLE_TYPE_EVD;
        if (calls == pz_calls) wanted = DAT_HANDLE_TYPE_PZ;
        if (calls == lmr_calls) wanted = DAT_HANDLE_TYPE_LMR;
        if (calls == rmr_calls) wanted = DAT_HANDLE_TYPE_RMR;
        if (calls == srq_calls) wanted = DAT_HANDLE_TYPE_SRQ;
        if (calls == ep_calls) wanted = DAT_HANDLE_TYPE_EP;
        if (type == wanted) others[i] = stale;
    }
    for (size_t i = 0; i < count; ++i) {
        CHECK_BAD_HANDLES(calls[i](bad));
        for (size_t j = 0; j < sizeof others / sizeof *others; ++j) CHECK_RC(calls[i](others[j]), DAT_INVALID_HANDLE);
    }
    if (rmr != side->lmr) CHECK_OK(dat_rmr_free(rmr));
}

#define CHECK_ALL(calls, stale) check_all((calls), sizeof(calls) / sizeof *(calls), (stale))

static void open_side(void) {
    side = new_side(NULL);
    side_open(side, (Options){.srq = true});
}

TEST(handles__ia) {
    open_side();
    DAT_IA_HANDLE ia = open_ia(NULL);
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
    CHECK_ALL(ia_calls, ia);
    side_close(side);
}

TEST(handles__evd) {
    open_side();
    DAT_EVD_HANDLE evd = new_evd(side->ia, DAT_EVD_SOFTWARE_FLAG);
    CHECK_OK(dat_evd_free(evd));
    CHECK_ALL(evd_calls, evd);
    side_close(side);
}

TEST(handles__cno) {
    DAT_CNO_HANDLE cno;
    DAT_EVD_HANDLE evd;
    open_side();
    CHECK_OK(dat_cno_create(side->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
    CHECK_OK(dat_cno_free(cno));
    CHECK_ALL(cno_calls, cno);
    for (size_t i = 1; i < bad_handle_count; ++i) { /* none is allowed */
        CHECK_RC(dat_evd_create(side->ia, 8, bad_handles[i], DAT_EVD_DTO_FLAG, &evd), DAT_INVALID_HANDLE);
        CHECK_RC(dat_evd_modify_cno(side->evds[RECV], bad_handles[i]), DAT_INVALID_HANDLE);
    }
    CHECK_RC(dat_evd_create(side->ia, 8, cno, DAT_EVD_DTO_FLAG, &evd), DAT_INVALID_HANDLE);
    CHECK_RC(dat_evd_modify_cno(side->evds[RECV], cno), DAT_INVALID_HANDLE);
    CHECK_RC(dat_evd_modify_cno(side->evds[RECV], side->pz), DAT_INVALID_HANDLE);
    side_close(side);
}

TEST(handles__pz) {
    open_side();
    DAT_PZ_HANDLE pz = new_pz(side->ia);
    CHECK_OK(dat_pz_free(pz));
    CHECK_ALL(pz_calls, pz);
    side_close(side);
}

TEST(handles__lmr) {
    DAT_LMR_CONTEXT context;
    open_side();
    DAT_LMR_HANDLE lmr = new_lmr(side->ia, side->pz, side->memory, 100, &context);
    CHECK_OK(dat_lmr_free(lmr));
    CHECK_ALL(lmr_calls, lmr);
    side_close(side);
}

TEST(handles__rmr) {
    open_side();
    DAT_RMR_HANDLE rmr = new_rmr(side->pz);
    CHECK_OK(dat_rmr_free(rmr));
    CHECK_ALL(rmr_calls, rmr);
    side_close(side);
}

static DAT_RETURN bind_with(DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr, DAT_EP_HANDLE ep, const DAT_LMR_TRIPLET *triplet) {
    DAT_RMR_CONTEXT context;
    return dat_rmr_bind(rmr, lmr, triplet, DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA, ep,
                        (DAT_RMR_COOKIE){.as_64 = 1}, DAT_COMPLETION_DEFAULT_FLAG, &context);
}

TEST(handles__of_rmr_bind) {
    Pair pair = connected_pair_here((Options){0});
    const Side *client = pair.client;
    DAT_LMR_TRIPLET triplet = piece(client, 0, 8);
    DAT_RMR_HANDLE rmr = new_rmr(client->pz);
    CHECK_BAD_HANDLES(bind_with(rmr, client->lmr, bad, &triplet));
    CHECK_BAD_HANDLES(bind_with(rmr, bad, client->ep, &triplet));
    CHECK_RC(bind_with(rmr, client->pz, client->ep, &triplet), DAT_INVALID_HANDLE);
    CHECK_RC(bind_with(rmr, client->lmr, client->pz, &triplet), DAT_INVALID_HANDLE);
    CHECK_OK(dat_rmr_free(rmr));
    pair_close(&pair);
}

TEST(handles__srq) {
    DAT_SRQ_ATTR attributes = {8, 1, 0};
    DAT_SRQ_HANDLE srq;
    open_side();
    CHECK_OK(dat_srq_create(side->ia, side->pz, &attributes, &srq));
    CHECK_OK(dat_srq_free(srq));
    CHECK_ALL(srq_calls, srq);
    side_close(side);
}

TEST(handles__ep) {
    open_side();
    DAT_EP_HANDLE ep = new_ep(side, (Options){0});
    CHECK_OK(dat_ep_free(ep));
    CHECK_ALL(ep_calls, ep);
    side_close(side);
}

TEST(handles__calls_of_2_0) {
    NEED(dat_cno_fd_create);
    DAT_FD fd;
    DAT_CNO_HANDLE cno;
    DAT_EVD_HANDLE evd;
    DAT_RMR_HANDLE rmr;
    open_side();
    CHECK_BAD_HANDLES(dat_cno_fd_create(bad, &fd, &cno));
    CHECK_BAD_HANDLES(dat_cno_trigger(bad, &evd));
    CHECK_BAD_HANDLES(dat_rmr_create_for_ep(bad, &rmr));
    CHECK_RC(dat_cno_fd_create(side->pz, &fd, &cno), DAT_INVALID_HANDLE);
    CHECK_RC(dat_cno_trigger(side->pz, &evd), DAT_INVALID_HANDLE);
    CHECK_RC(dat_rmr_create_for_ep(side->ia, &rmr), DAT_INVALID_HANDLE);
    side_close(side);
}

/* A handle comes back late: many objects may come and go before an old one could be taken for a new one. */
TEST(handles__are_reused_late) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_PZ_PARAM param;
    DAT_PZ_HANDLE old = new_pz(ia);
    CHECK_OK(dat_pz_free(old));
    for (int i = 0; i < 30; ++i) {
        DAT_PZ_HANDLE pz = new_pz(ia);
        CHECK(pz != old);
        CHECK_RC(dat_pz_query(old, DAT_PZ_FIELD_ALL, &param), DAT_INVALID_HANDLE);
        CHECK_OK(dat_pz_free(pz));
    }
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

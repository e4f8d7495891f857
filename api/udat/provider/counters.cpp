// SPDX-License-Identifier: BSD-3-Clause
#include "api/udat/provider/counters.hpp"

#include <unistd.h>

#include <cstdio>
#include <span>

#include "api/udat/provider/ep.hpp"
#include "api/udat/provider/evd.hpp"
#include "api/udat/provider/ia.hpp"

namespace viaduct::dat {
namespace {

constexpr const char* ia_names[] = {"DCNT_IA_PZ_CREATE",
                                    "DCNT_IA_PZ_FREE",
                                    "DCNT_IA_LMR_CREATE",
                                    "DCNT_IA_LMR_FREE",
                                    "DCNT_IA_RMR_CREATE",
                                    "DCNT_IA_RMR_FREE",
                                    "DCNT_IA_PSP_CREATE",
                                    "DCNT_IA_PSP_CREATE_ANY",
                                    "DCNT_IA_PSP_FREE",
                                    "DCNT_IA_RSP_CREATE",
                                    "DCNT_IA_RSP_FREE",
                                    "DCNT_IA_EVD_CREATE",
                                    "DCNT_IA_EVD_FREE",
                                    "DCNT_IA_EP_CREATE",
                                    "DCNT_IA_EP_FREE",
                                    "DCNT_IA_SRQ_CREATE",
                                    "DCNT_IA_SRQ_FREE",
                                    "DCNT_IA_SP_CR",
                                    "DCNT_IA_SP_CR_ACCEPTED",
                                    "DCNT_IA_SP_CR_REJECTED",
                                    "DCNT_IA_MEM_ALLOC",
                                    "DCNT_IA_MEM_ALLOC_DATA",
                                    "DCNT_IA_MEM_FREE",
                                    "DCNT_IA_ASYNC_ERROR",
                                    "DCNT_IA_ASYNC_QP_ERROR",
                                    "DCNT_IA_ASYNC_CQ_ERROR",
                                    "DCNT_IA_CM_LISTEN",
                                    "DCNT_IA_CM_REQ_TX",
                                    "DCNT_IA_CM_REQ_RX",
                                    "DCNT_IA_CM_REP_TX",
                                    "DCNT_IA_CM_REP_RX",
                                    "DCNT_IA_CM_RTU_TX",
                                    "DCNT_IA_CM_RTU_RX",
                                    "DCNT_IA_CM_USER_REJ_TX",
                                    "DCNT_IA_CM_USER_REJ_RX",
                                    "DCNT_IA_CM_ACTIVE_EST",
                                    "DCNT_IA_CM_PASSIVE_EST",
                                    "DCNT_IA_CM_AH_REQ_TX",
                                    "DCNT_IA_CM_AH_REQ_RX",
                                    "DCNT_IA_CM_AH_RESOLVED",
                                    "DCNT_IA_CM_DREQ_TX",
                                    "DCNT_IA_CM_DREQ_RX",
                                    "DCNT_IA_CM_DREP_TX",
                                    "DCNT_IA_CM_DREP_RX",
                                    "DCNT_IA_CM_MRA_TX",
                                    "DCNT_IA_CM_MRA_RX",
                                    "DCNT_IA_CM_REQ_FULLQ_POLL",
                                    "DCNT_IA_CM_ERR",
                                    "DCNT_IA_CM_ERR_REQ_FULLQ",
                                    "DCNT_IA_CM_ERR_REQ_DUP",
                                    "DCNT_IA_CM_ERR_REQ_RETRY",
                                    "DCNT_IA_CM_ERR_REP_DUP",
                                    "DCNT_IA_CM_ERR_REP_RETRY",
                                    "DCNT_IA_CM_ERR_RTU_DUP",
                                    "DCNT_IA_CM_ERR_RTU_RETRY",
                                    "DCNT_IA_CM_ERR_REFUSED",
                                    "DCNT_IA_CM_ERR_RESET",
                                    "DCNT_IA_CM_ERR_TIMEOUT",
                                    "DCNT_IA_CM_ERR_REJ_TX",
                                    "DCNT_IA_CM_ERR_REJ_RX",
                                    "DCNT_IA_CM_ERR_DREQ_DUP",
                                    "DCNT_IA_CM_ERR_DREQ_RETRY",
                                    "DCNT_IA_CM_ERR_DREP_DUP",
                                    "DCNT_IA_CM_ERR_DREP_RETRY",
                                    "DCNT_IA_CM_ERR_MRA_DUP",
                                    "DCNT_IA_CM_ERR_MRA_RETRY",
                                    "DCNT_IA_CM_ERR_UNEXPECTED",
                                    "DCNT_IA_LNK_ERR_RCV",
                                    "DCNT_IA_LNK_ERR_RCV_REM_PHYS",
                                    "DCNT_IA_LNK_ERR_RCV_CONSTRAINT",
                                    "DCNT_IA_LNK_ERR_XMT_DISCARDS",
                                    "DCNT_IA_LNK_ERR_XMT_CONTRAINT",
                                    "DCNT_IA_LNK_ERR_INTEGRITY",
                                    "DCNT_IA_LNK_ERR_EXC_BUF_OVERRUN",
                                    "DCNT_IA_LNK_WARN_RCV_SW_RELAY",
                                    "DCNT_IA_LNK_WARN_XMT_WAIT",
                                    "DCNT_IA_DIAG_ERR_RQ_RAE",
                                    "DCNT_IA_DIAG_ERR_RQ_OOS",
                                    "DCNT_IA_DIAG_ERR_RQ_RIRE",
                                    "DCNT_IA_DIAG_ERR_RQ_UDSDPRD",
                                    "DCNT_IA_DIAG_ERR_SQ_RAE",
                                    "DCNT_IA_DIAG_ERR_SQ_OOS",
                                    "DCNT_IA_DIAG_ERR_SQ_RIRE",
                                    "DCNT_IA_DIAG_ERR_SQ_RREE",
                                    "DCNT_IA_DIAG_ERR_SQ_TREE"};
static_assert(std::size(ia_names) == DCNT_IA_ALL_COUNTERS);

constexpr const char* ep_names[] = {
    "DCNT_EP_CONNECT",      "DCNT_EP_DISCONNECT",        "DCNT_EP_POST_SEND",      "DCNT_EP_POST_SEND_DATA",
    "DCNT_EP_POST_SEND_UD", "DCNT_EP_POST_SEND_UD_DATA", "DCNT_EP_POST_RECV",      "DCNT_EP_POST_RECV_DATA",
    "DCNT_EP_POST_WRITE",   "DCNT_EP_POST_WRITE_DATA",   "DCNT_EP_POST_WRITE_IMM", "DCNT_EP_POST_WRITE_IMM_DATA",
    "DCNT_EP_POST_READ",    "DCNT_EP_POST_READ_DATA",    "DCNT_EP_POST_CMP_SWAP",  "DCNT_EP_POST_FETCH_ADD",
    "DCNT_EP_RECV",         "DCNT_EP_RECV_DATA",         "DCNT_EP_RECV_UD",        "DCNT_EP_RECV_UD_DATA",
    "DCNT_EP_RECV_IMM",     "DCNT_EP_RECV_IMM_DATA",     "DCNT_EP_RECV_RDMA_IMM",  "DCNT_EP_RECV_RDMA_IMM_DATA"};
static_assert(std::size(ep_names) == DCNT_EP_ALL_COUNTERS);

constexpr const char* evd_names[] = {
    "DCNT_EVD_WAIT",          "DCNT_EVD_WAIT_BLOCKED",      "DCNT_EVD_WAIT_NOTIFY",  "DCNT_EVD_DEQUEUE",
    "DCNT_EVD_DEQUEUE_FOUND", "DCNT_EVD_DEQUEUE_NOT_FOUND", "DCNT_EVD_DEQUEUE_POLL", "DCNT_EVD_DEQUEUE_POLL_FOUND",
    "DCNT_EVD_CONN_CALLBACK", "DCNT_EVD_DTO_CALLBACK"};
static_assert(std::size(evd_names) == DCNT_EVD_ALL_COUNTERS);

struct Counted {
    std::span<Counter> values;
    std::span<const char* const> names;
    Ep::CoreCounters of_core{};  // what the core has counted, to be added
};

/// Returns the counters of an object, or nothing if it has none.
Counted counters_of(DAT_HANDLE handle) noexcept {
    if (Ia* ia = resolve<Ia>(handle)) return {ia->counters.all(), ia_names};
    if (Ep* ep = resolve<Ep>(handle)) return {ep->counters.all(), ep_names, ep->core_counters()};
    if (Evd* evd = resolve<Evd>(handle)) return {evd->counters.all(), evd_names};
    return {};
}

/// Calls `use` with the number and the value of one counter, or of each counter if the number means all.
template <class Use>
DAT_RETURN for_each(const Counted& counted, int wanted, bool reset, Use use) noexcept {
    if (counted.values.empty()) return invalid_handle(DAT_NO_SUBTYPE, "the object has no counters");
    const int count = static_cast<int>(counted.values.size());
    if (wanted < 0 || wanted > count)
        return invalid_parameter(DAT_INVALID_ARG2, explain("counter %d asked for, there are %d", wanted, count));
    for (int i = 0; i < count; ++i) {
        if (wanted != i && wanted != count) continue;
        Counter& counter = counted.values[static_cast<std::size_t>(i)];
        const DAT_UINT64 of_core = static_cast<std::size_t>(i) < counted.of_core.size() ? counted.of_core[i] : 0;
        use(i, counted.names[i], counter.value() + of_core);
        if (reset) counter.set(0 - of_core);
    }
    return success;
}

}  // namespace

DAT_RETURN query_counters(DAT_HANDLE handle, int wanted, DAT_UINT64* values, bool reset) noexcept {
    const Counted counted = counters_of(handle);
    if (!counted.values.empty() && values == nullptr)
        return invalid_parameter(DAT_INVALID_ARG3, "the place for the values is null");
    return for_each(counted, wanted, reset, [&](int i, const char*, DAT_UINT64 value) { values[i] = value; });
}

DAT_RETURN print_counters(DAT_HANDLE handle, int wanted, bool reset) noexcept {
    return for_each(counters_of(handle), wanted, reset, [](int, const char* name, DAT_UINT64 value) {
        std::printf(" %d: %s = %llu\n", getpid(), name, static_cast<unsigned long long>(value));
    });
}

}  // namespace viaduct::dat

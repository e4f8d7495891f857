// SPDX-License-Identifier: BSD-3-Clause
#include "backends/verbs/queue_pair.hpp"

#include <cerrno>

namespace viaduct::verbs {
namespace {

/// The size of messages to send inline, which the device need not fetch from memory. At least atomic writes must fit.
constexpr std::uint32_t inline_bytes_wanted = 64;
constexpr std::uint32_t inline_bytes_needed = 8;

/// A receiver that is not ready requests a retry after 0.64 ms (InfiniBand's table of RNR timers). The value 0 would
/// mean 655 ms.
constexpr std::uint8_t not_ready_timer = 12;
constexpr std::uint8_t retry_for_ever = 7;

/// A lost packet is retransmitted after at most 4.096 us * 2^16, about 270 ms.
constexpr std::uint8_t max_ack_timeout = 16;

constexpr int reliable_only = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                              IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;

}  // namespace

Result<QueuePair> QueuePair::create(const QueuePairInit& init) noexcept {
    for (const std::uint32_t inline_bytes : {inline_bytes_wanted, inline_bytes_needed}) {
        ibv_qp_init_attr asked{
            .send_cq = init.send_queue,
            .recv_cq = init.receive_queue,
            .srq = init.shared_receives,
            .cap = {.max_send_wr = std::max(init.send_depth, 1u),
                    .max_recv_wr = init.shared_receives != nullptr ? 0 : std::max(init.receive_depth, 1u),
                    .max_send_sge = init.max_sges,
                    .max_recv_sge = init.shared_receives != nullptr ? 0 : init.max_sges,
                    .max_inline_data = inline_bytes},
            .qp_type = init.reliable ? IBV_QPT_RC : IBV_QPT_UC};
        QueuePairOwner queue_pair(ibv_create_qp(init.domain, &asked));
        if (queue_pair != nullptr) return QueuePair(std::move(queue_pair), init.reliable, inline_bytes);
    }
    if (errno == EOPNOTSUPP) return Status(Code::Unsupported, "ibv_create_qp", errno);
    return Status::from_errno(errno, "ibv_create_qp");
}

Status QueuePair::change(ibv_qp_attr& attributes, int mask) noexcept {
    if (!reliable_) mask &= ~reliable_only;  // the connection manager supports only reliable ones
    const int error = ibv_modify_qp(queue_pair_.get(), &attributes, mask);
    if (error != 0) return Status::from_errno(error, "ibv_modify_qp");
    return {};
}

Status QueuePair::initialize(rdma_cm_id* id, Access access, int flush_flags) noexcept {
    ibv_qp_attr attributes{.qp_state = IBV_QPS_INIT};
    int mask = 0;
    if (rdma_init_qp_attr(id, &attributes, &mask) != 0) return unanswered("rdma_init_qp_attr");
    attributes.qp_access_flags = 0;
    if (access.remote_write) attributes.qp_access_flags |= IBV_ACCESS_REMOTE_WRITE;
    if (access.remote_read && reliable_) attributes.qp_access_flags |= IBV_ACCESS_REMOTE_READ | flush_flags;
    if (access.remote_atomic && reliable_) attributes.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
    return change(attributes, mask);
}

Status QueuePair::make_ready(rdma_cm_id* id, const ConnectionTerms& terms) noexcept {
    ibv_qp_attr attributes{.qp_state = IBV_QPS_RTR};
    int mask = 0;
    if (rdma_init_qp_attr(id, &attributes, &mask) != 0) return unanswered("rdma_init_qp_attr");
    attributes.max_dest_rd_atomic = terms.reads_served;
    attributes.min_rnr_timer = not_ready_timer;
    if (const Status status = change(attributes, mask); !status.ok()) return status;

    attributes = {.qp_state = IBV_QPS_RTS};
    if (rdma_init_qp_attr(id, &attributes, &mask) != 0) return unanswered("rdma_init_qp_attr");
    attributes.max_rd_atomic = terms.reads_requested;
    attributes.rnr_retry = terms.waits_for_receiver ? retry_for_ever : 0;
    attributes.timeout = std::min(attributes.timeout, max_ack_timeout);
    return change(attributes, mask);
}

}  // namespace viaduct::verbs

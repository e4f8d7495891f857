// SPDX-License-Identifier: BSD-3-Clause
// A hardware queue pair for one connection.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/verbs/owners.hpp"
#include "core/backend.hpp"

namespace viaduct::verbs {

/// How much of what is wanted is possible.
inline std::uint8_t at_most(int supported, std::uint8_t wanted) noexcept {
    return static_cast<std::uint8_t>(std::clamp(supported, 0, static_cast<int>(wanted)));
}

struct QueuePairInit {
    ibv_pd* domain = nullptr;
    ibv_cq* send_queue = nullptr;
    ibv_cq* receive_queue = nullptr;
    ibv_srq* shared_receives = nullptr;
    std::uint32_t send_depth = 0;
    std::uint32_t receive_depth = 0;
    std::uint32_t max_sges = 1;
    bool reliable = true;
};

/// The parameters of a connection that depend on both sides.
struct ConnectionTerms {
    bool waits_for_receiver = true;
    std::uint8_t reads_served = 0;     ///< maximum number of the peer's reads in progress
    std::uint8_t reads_requested = 0;  ///< maximum number of own reads in progress
};

/// Not thread-safe. The endpoint holds the control lock.
class QueuePair {
public:
    /// Unsupported: the device does not support this kind of queue pair.
    static Result<QueuePair> create(const QueuePairInit& init) noexcept;

    ibv_qp* get() const noexcept { return queue_pair_.get(); }
    std::uint32_t number() const noexcept { return queue_pair_->qp_num; }

    /// The maximum size of a message that is sent inline.
    std::uint32_t inline_bytes() const noexcept { return inline_bytes_; }

    /// Receives may be posted after this call. `flush_flags`: those of the device.
    Status initialize(rdma_cm_id* id, Access access, int flush_flags) noexcept;

    /// Makes the queue pair ready to receive and to send. The id must know the peer's answer or request. TimedOut: the
    /// peer has given up.
    Status make_ready(rdma_cm_id* id, const ConnectionTerms& terms) noexcept;

    void stop() noexcept {
        ibv_qp_attr attributes{.qp_state = IBV_QPS_ERR};
        // Fails only if the device was removed, and then the queue pair has stopped.
        (void)ibv_modify_qp(queue_pair_.get(), &attributes, IBV_QP_STATE);
    }
    bool has_stopped() const noexcept {
        ibv_qp_attr attributes{};
        ibv_qp_init_attr init{};
        return ibv_query_qp(queue_pair_.get(), &attributes, IBV_QP_STATE, &init) != 0 ||
               attributes.qp_state == IBV_QPS_ERR;
    }

private:
    QueuePair(QueuePairOwner queue_pair, bool reliable, std::uint32_t inline_bytes) noexcept
        : queue_pair_(std::move(queue_pair)), reliable_(reliable), inline_bytes_(inline_bytes) {}
    Status change(ibv_qp_attr& attributes, int mask) noexcept;

    QueuePairOwner queue_pair_;
    bool reliable_;
    std::uint32_t inline_bytes_;
};

}  // namespace viaduct::verbs

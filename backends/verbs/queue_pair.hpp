// SPDX-License-Identifier: BSD-3-Clause
// A queue pair of the hardware, for one connection.
#pragma once

#include <cstdint>

#include "backends/verbs/owners.hpp"
#include "core/backend.hpp"

namespace viaduct::verbs {

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

/// What the two ends of a connection agree on.
struct ConnectionTerms {
    bool waits_for_receiver = true;
    std::uint8_t reads_served = 0;     ///< of the peer, at once
    std::uint8_t reads_requested = 0;  ///< of the peer, at once
};

/// Not thread-safe: its endpoint has the control lock.
class QueuePair {
public:
    /// Unsupported: the device has no queue pairs of that kind.
    static Result<QueuePair> create(const QueuePairInit& init) noexcept;

    ibv_qp* get() const noexcept { return queue_pair_.get(); }
    std::uint32_t number() const noexcept { return queue_pair_->qp_num; }

    /// How many bytes of a message may be sent inside its request.
    std::uint32_t inline_bytes() const noexcept { return inline_bytes_; }

    /// From here on receives may be posted.
    Status initialize(rdma_cm_id* id, Access access) noexcept;

    /// Ready to receive and to send; the peer's answer or request must be known to the id. TimedOut: it is no more, as
    /// the peer has given up.
    Status make_ready(rdma_cm_id* id, const ConnectionTerms& terms) noexcept;

    void stop() noexcept;
    bool has_stopped() const noexcept;

private:
    QueuePair(QueuePairOwner queue_pair, bool reliable, std::uint32_t inline_bytes) noexcept
        : queue_pair_(std::move(queue_pair)), reliable_(reliable), inline_bytes_(inline_bytes) {}
    Status change(ibv_qp_attr& attributes, int mask) noexcept;

    QueuePairOwner queue_pair_;
    bool reliable_;
    std::uint32_t inline_bytes_;
};

}  // namespace viaduct::verbs

// SPDX-License-Identifier: BSD-3-Clause
// Shared receive queues.
#pragma once

#include <atomic>
#include <memory>

#include "api/udat/provider/binds.hpp"
#include "api/udat/provider/object.hpp"
#include "api/udat/provider/pz.hpp"
#include "viaduct/completion_queue.hpp"
#include "viaduct/detail/mutex.hpp"
#include "viaduct/shared_receive_queue.hpp"

namespace viaduct::dat {

/// Discards unwanted completions to make room for others. `binds`: those of requests; null for a queue of receives.
[[gnu::cold, gnu::noinline]] void discard(CompletionQueue& queue, Binds* binds = nullptr) noexcept;

class Srq final : public Object {
public:
    static constexpr DAT_HANDLE_TYPE handle_type = DAT_HANDLE_TYPE_SRQ;

    static DAT_RETURN create(Pz& pz, const DAT_SRQ_ATTR& attr, DAT_SRQ_HANDLE& srq);

    const std::shared_ptr<SharedReceiveQueue>& queue() const noexcept { return queue_; }
    const Pz& pz() const noexcept { return *pz_; }
    DAT_COUNT max_recv_dtos() const noexcept { return max_recv_dtos_; }
    DAT_COUNT max_recv_iov() const noexcept { return max_recv_iov_; }
    /// How many completions may be in the queue of a dispatcher with one endpoint: of the receives that waited when the
    /// last ones were collected, of the message that was arriving, and of the receives posted since.
    DAT_COUNT most_completions() const noexcept { return 2 * max_recv_dtos() + 1; }

    DAT_RETURN post(DAT_DTO_COOKIE cookie, DAT_COUNT segments, const DAT_LMR_TRIPLET* iov) noexcept;
    DAT_RETURN resize(DAT_COUNT max_recv_dtos) noexcept;
    DAT_RETURN set_low_watermark(DAT_COUNT watermark) noexcept;
    void query(DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM& param) const noexcept;

    /// The queue for receives of endpoints whose consumer wants no completions of them. Each post makes room in it.
    Result<std::shared_ptr<CompletionQueue>> unwanted();
    void discard_unwanted() const noexcept {
        if (CompletionQueue* queue = to_discard_.load(std::memory_order_acquire); queue != nullptr) [[unlikely]]
            discard(*queue);
    }

private:
    Srq(Pz& pz, const DAT_SRQ_ATTR& attr);
    bool collect_completions() noexcept VIADUCT_REQUIRES(lock_);

    Use<Pz> pz_;
    const DAT_COUNT max_recv_iov_;
    std::atomic<DAT_COUNT> max_recv_dtos_;
    std::atomic<DAT_COUNT> low_watermark_{DAT_SRQ_LW_DEFAULT};
    std::shared_ptr<SharedReceiveQueue> queue_;

    Mutex lock_;
    DAT_COUNT posted_ VIADUCT_GUARDED_BY(lock_) = 0;  // since completions were collected
    std::shared_ptr<CompletionQueue> unwanted_ VIADUCT_GUARDED_BY(lock_);
    std::atomic<CompletionQueue*> to_discard_{nullptr};  // the same queue, for posts
};

}  // namespace viaduct::dat

// SPDX-License-Identifier: BSD-3-Clause
#include "api/rpma/srq.hpp"

#include "api/rpma/cfg.hpp"
#include "api/rpma/log.hpp"
#include "api/rpma/peer.hpp"
#include "core/explain.hpp"

using namespace viaduct;
using namespace viaduct::rpma;

namespace {

int make_srq(const Peer& peer, const SrqSettings& settings, rpma_srq** srq) {
    auto queue = SharedReceiveQueue::create(peer.domain(), settings.rq_size);
    if (!queue.ok()) return failed(queue.status());
    std::unique_ptr<Cq> rcq;
    if (settings.rcq_size != 0) {
        const auto& device = peer.domain()->device();
        // Not left to the core, which takes the largest number for default_depth.
        if (const auto limit = device->attributes().max_completions; settings.rcq_size > limit)
            return failed({Code::InvalidParameter, explain("rcq_size is %u, the limit of %s is %u", settings.rcq_size,
                                                           device->attributes().name.c_str(), limit)});
        auto made = Cq::create(device, std::max(settings.rcq_size, settings.rq_size));
        if (!made.ok()) return failed(made.status());
        rcq = std::move(*made);
    }
    hand_over(std::make_unique<Srq>(peer.domain(), std::move(*queue), settings.rq_size, std::move(rcq)), srq);
    return 0;
}

/// Connections keep a reference to their queue.
int check_unused_srq(const Srq& srq) noexcept {
    if (!srq.queue()->in_use()) return 0;
    return failed({Code::Busy, "the shared receive queue is still used by connections"});
}

}  // namespace

int rpma_srq_new(struct rpma_peer* peer, struct rpma_srq_cfg* cfg, struct rpma_srq** srq_ptr) {
    return Entry::on<Peer>(peer, {}, [&](const Peer& owner) {
        const SrqCfg* wanted = resolve<SrqCfg>(cfg);
        if (!failure::require({{cfg == nullptr || wanted != nullptr, SrqCfg::invalid_handle},
                               {srq_ptr != nullptr, "srq_ptr is NULL"}}))
            return RPMA_E_INVAL;
        return make_srq(owner, wanted == nullptr ? SrqSettings{} : wanted->settings(), srq_ptr);
    });
}

int rpma_srq_delete(struct rpma_srq** srq_ptr) { return destroy<Srq>(srq_ptr, check_unused_srq); }

int rpma_srq_get_rcq(const struct rpma_srq* srq, struct rpma_cq** rcq_ptr) {
    return get_value<Srq>(srq, rcq_ptr, "rcq_ptr is NULL",
                          [](const Srq& queue) { return queue.rcq() == nullptr ? nullptr : queue.rcq()->handle(); });
}

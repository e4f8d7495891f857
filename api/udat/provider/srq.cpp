// SPDX-License-Identifier: BSD-3-Clause
#include "api/udat/provider/srq.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "api/udat/provider/ep.hpp"
#include "api/udat/provider/ia.hpp"
#include "api/udat/provider/segments.hpp"
#include "api/udat/provider/table.hpp"

namespace viaduct::dat {
namespace {

DAT_RETURN too_deep(DAT_COUNT wanted, const DeviceAttributes& limits) noexcept {
    return failed(error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ),
                  explain("%d receives asked for, max_recv_per_srq is %u", wanted, limits.max_queue_depth));
}

}  // namespace

void discard(CompletionQueue& queue, Binds* binds) noexcept {
    std::array<Completion, 16> unwanted;
    for (std::size_t taken = unwanted.size(); taken == unwanted.size();) {
        taken = queue.poll(unwanted);
        for (const Completion& completion : std::span(unwanted).first(taken))
            if (completion.operation == CompletedOperation::BindWindow) (void)binds->remove(completion);
    }
}

Srq::Srq(Pz& pz, const DAT_SRQ_ATTR& attr)
    : Object(pz.ia(), pz.ia().provider(), handle_type),
      pz_(&pz),
      max_recv_iov_(attr.max_recv_iov),
      max_recv_dtos_(attr.max_recv_dtos) {}

DAT_RETURN Srq::create(Pz& pz, const DAT_SRQ_ATTR& attr, DAT_SRQ_HANDLE& srq) {
    std::unique_ptr<Srq> created(new Srq(pz, attr));
    auto queue = SharedReceiveQueue::create(pz.domain(), static_cast<std::uint32_t>(attr.max_recv_dtos),
                                            reinterpret_cast<std::uint64_t>(created->handle()));
    if (!queue.ok()) return to_return(queue.status(), DAT_RESOURCE_SRQ);
    created->queue_ = std::move(*queue);
    if (attr.low_watermark != DAT_SRQ_LW_DEFAULT)
        if (const DAT_RETURN result = created->set_low_watermark(attr.low_watermark); result != success) return result;
    srq = pz.ia().adopt(std::move(created));
    return success;
}

DAT_RETURN Srq::post(DAT_DTO_COOKIE cookie, DAT_COUNT segments, const DAT_LMR_TRIPLET* iov) noexcept {
    if (const DAT_RETURN result = check_segments(segments, iov, max_recv_iov_, "max_recv_iov"); result != success)
        return result;
    const Segments pieces(iov, segments);
    discard_unwanted();
    const LockGuard lock(lock_);
    if (posted_ >= max_recv_dtos() && !collect_completions())
        return failed(error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD),
                      "an EVD has no room for the completions of more receives");
    const Status status = queue_->post_receive({.context = cookie.as_64, .sges = pieces.span()});
    if (status.ok()) ++posted_;
    if (status.code() != Code::QueueFull) [[likely]]
        return to_return(status, DAT_RESOURCE_SRQ);
    return failed(error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY),
                  explain("the queue is full: max_recv_dtos of the SRQ is %d", max_recv_dtos()));
}

/// A consumer may post receives without dequeuing the completions of earlier ones. Their number has no limit, so they
/// must not stay in the queues of dispatchers, where they would take the places of other work.
bool Srq::collect_completions() noexcept {
    if (ia().find<Evd>([](Evd& evd) { return !evd.collect_shared(); }) != nullptr) return false;
    posted_ = 0;
    return true;
}

DAT_RETURN Srq::resize(DAT_COUNT max_recv_dtos) noexcept {
    if (const DAT_COUNT watermark = low_watermark_; max_recv_dtos < watermark)
        return failed(error(DAT_INVALID_STATE),
                      explain("%d receives asked for, low_watermark is %d", max_recv_dtos, watermark));
    const auto depth = static_cast<std::uint32_t>(max_recv_dtos);
    Status status;
    {
        const LockGuard lock(lock_);
        discard_unwanted();
        if (unwanted_ != nullptr && max_recv_dtos > max_recv_dtos_) status = unwanted_->resize(depth);
        if (status.ok()) status = queue_->resize(depth);
        if (status.ok()) max_recv_dtos_ = max_recv_dtos;
    }
    if (status.code() == Code::InvalidParameter) return too_deep(max_recv_dtos, ia().device()->attributes());
    if (!status.ok()) return to_return(status, DAT_RESOURCE_SRQ);
    (void)ia().find<Ep>([](Ep& each) {
        each.follow_depth();
        return false;
    });
    return success;
}

Result<std::shared_ptr<CompletionQueue>> Srq::unwanted() {
    const LockGuard lock(lock_);
    if (unwanted_ == nullptr) {
        const auto capacity = static_cast<std::uint32_t>(max_recv_dtos());
        auto queue = CompletionQueue::create(ia().device(), {.capacity = capacity});
        if (!queue.ok()) return queue.status();
        unwanted_ = std::move(*queue);
        to_discard_.store(unwanted_.get(), std::memory_order_release);
    }
    return unwanted_;
}

DAT_RETURN Srq::set_low_watermark(DAT_COUNT watermark) noexcept {
    const Status status = queue_->arm_limit(static_cast<std::uint32_t>(watermark));
    if (!status.ok()) return to_return(status, DAT_RESOURCE_SRQ);
    low_watermark_ = watermark;
    return success;
}

void Srq::query(DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM& param) const noexcept {
    const auto waiting = static_cast<DAT_COUNT>(queue_->outstanding());
    if ((mask & DAT_SRQ_FIELD_IA_HANDLE) != 0) param.ia_handle = ia().number();
    if ((mask & DAT_SRQ_FIELD_SRQ_STATE) != 0) param.srq_state = DAT_SRQ_STATE_OPERATIONAL;
    if ((mask & DAT_SRQ_FIELD_PZ_HANDLE) != 0) param.pz_handle = pz_.handle();
    if ((mask & DAT_SRQ_FIELD_MAX_RECV_DTO) != 0) param.max_recv_dtos = max_recv_dtos_;
    if ((mask & DAT_SRQ_FIELD_MAX_RECV_IOV) != 0) param.max_recv_iov = max_recv_iov_;
    if ((mask & DAT_SRQ_FIELD_LOW_WATERMARK) != 0) param.low_watermark = low_watermark_;
    if ((mask & DAT_SRQ_FIELD_AVAILABLE_DTO_COUNT) != 0) param.available_dto_count = waiting;
    if ((mask & DAT_SRQ_FIELD_OUTSTANDING_DTO_COUNT) != 0) param.outstanding_dto_count = DAT_VALUE_UNKNOWN;
}

// ---- Entry points -------------------------------------------------------------------------------------------------

DAT_RETURN calls::srq_create(Ia& owner, DAT_PZ_HANDLE pz, DAT_SRQ_ATTR* attr, DAT_SRQ_HANDLE* srq) {
    Pz* zone = resolve_in<Pz>(owner, pz);
    if (zone == nullptr) return foreign_pz();
    if (attr == nullptr) return invalid_parameter(DAT_INVALID_ARG3, "srq_attr is null");
    if (srq == nullptr) return invalid_parameter(DAT_INVALID_ARG4, "srq_handle is null");
    const DeviceAttributes& limits = owner.device()->attributes();
    if (attr->max_recv_dtos <= 0 || attr->max_recv_iov <= 0 || attr->low_watermark < 0 ||
        attr->low_watermark > attr->max_recv_dtos)
        return invalid_parameter(DAT_INVALID_ARG3,
                                 explain("max_recv_dtos %d, max_recv_iov %d and low_watermark %d do not agree",
                                         attr->max_recv_dtos, attr->max_recv_iov, attr->low_watermark));
    if (static_cast<std::uint32_t>(attr->max_recv_dtos) > limits.max_queue_depth)
        return too_deep(attr->max_recv_dtos, limits);
    if (static_cast<std::uint32_t>(attr->max_recv_iov) > most_segments(limits))
        return failed(error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ),
                      explain("max_recv_iov %d asked for, max_iov_segments_per_dto is %u", attr->max_recv_iov,
                              most_segments(limits)));
    return Srq::create(*zone, *attr, *srq);
}

DAT_RETURN calls::srq_resize(Srq& queue, DAT_COUNT max_recv_dtos) {
    if (max_recv_dtos <= 0)
        return invalid_parameter(DAT_INVALID_ARG2, explain("srq_max_recv_dto is %d", max_recv_dtos));
    return queue.resize(max_recv_dtos);
}

DAT_RETURN calls::srq_set_lw(Srq& queue, DAT_COUNT low_watermark) {
    if (low_watermark < 0 || low_watermark > queue.max_recv_dtos())
        return invalid_parameter(DAT_INVALID_ARG2, explain("low_watermark is %d, max_recv_dtos of the SRQ is %d",
                                                           low_watermark, queue.max_recv_dtos()));
    return queue.set_low_watermark(low_watermark);
}

DAT_RETURN calls::srq_post_recv(DAT_SRQ_HANDLE srq, DAT_COUNT segments, DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie) {
    return with_held<Srq>("dat_srq_post_recv", srq, [&](Srq& queue) { return queue.post(cookie, segments, iov); });
}

DAT_RETURN calls::srq_free(Srq& queue) {
    if (queue.users.in_use()) return invalid_state(DAT_INVALID_STATE_SRQ_IN_USE, "an endpoint uses the SRQ");
    return destroy<Srq>(queue.handle());
}

}  // namespace viaduct::dat

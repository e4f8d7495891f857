// SPDX-License-Identifier: BSD-3-Clause
#include "api/vipl/work_queue.hpp"

#include "api/vipl/cq.hpp"
#include "api/vipl/nic.hpp"
#include "api/vipl/vi.hpp"
#include "core/base/wait_until.hpp"
#include "core/frontend.hpp"

namespace viaduct::vipl {

std::uint32_t WorkQueue::outstanding() const noexcept { return vi_.endpoint().outstanding(kind_); }

bool WorkQueue::empty() const noexcept { return cq_ != nullptr ? cq_->empty(*this) : outstanding() == 0; }

const DescriptorMemory& WorkQueue::find_other_memory(VIP_MEM_HANDLE key) noexcept {
    const DescriptorMemory* memory = vi_.nic().regions.find_for_descriptor(key);
    if (memory == nullptr) return no_memory_;
    memory_.store(memory, std::memory_order_release);
    return *memory;
}

VIP_RETURN WorkQueue::done(VIP_DESCRIPTOR** descriptor) noexcept {
    return is_special_.load(std::memory_order_relaxed) ? done_specially(descriptor) : take(descriptor);
}

VIP_RETURN WorkQueue::done_specially(VIP_DESCRIPTOR** descriptor) noexcept {
    if (cq_ != nullptr) return cq_->done(*this, descriptor);
    const VIP_RETURN result = take(descriptor);
    if (result != VIP_NOT_DONE) notifier_.has_taken();
    return result;
}

inline VIP_RETURN WorkQueue::take(VIP_DESCRIPTOR** descriptor) noexcept {
    UninitializedCompletions<1> memory;
    Completion& completion = memory.first();
    while (queue_->poll(completion)) {
        *descriptor = vi_.complete(completion);
        if (*descriptor != nullptr) [[likely]]
            return result_of(completion);
    }
    if (outstanding() != 0) return VIP_NOT_DONE;
    *descriptor = nullptr;
    return VIP_DESCRIPTOR_ERROR;
}

namespace {

VIP_RETURN uses_cq() noexcept {
    return failed(VIP_ERROR_RESOURCE, "the work queue has a completion queue, which reports its descriptors");
}

}  // namespace

VIP_RETURN WorkQueue::wait(const Deadline& deadline, VIP_DESCRIPTOR** descriptor) {
    if (cq_ != nullptr) return uses_cq();
    VIP_RETURN result = VIP_NOT_DONE;
    const bool found = wait_until(*queue_, deadline, [&] { return (result = done(descriptor)) != VIP_NOT_DONE; });
    if (found && (*descriptor != nullptr || !wait_closed())) return result;
    return !found && deadline.passed() ? VIP_TIMEOUT : VIP_ERROR_RESOURCE;
}

VIP_RETURN WorkQueue::notify(VIP_PVOID context, NotifyHandler handler) {
    if (cq_ != nullptr) return uses_cq();
    if (empty()) return VIP_DESCRIPTOR_ERROR;
    const auto deliver = [this, context, handler] {
        VIP_DESCRIPTOR* descriptor = nullptr;
        if (take(&descriptor) == VIP_NOT_DONE) return false;
        handler(context, vi_.nic().handle(), vi_.handle(), descriptor);
        return true;
    };
    is_special_.store(true, std::memory_order_relaxed);
    notifier_.request(deliver, queue_->fd());
    return VIP_SUCCESS;
}

}  // namespace viaduct::vipl

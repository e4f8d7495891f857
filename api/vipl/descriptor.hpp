// SPDX-License-Identifier: BSD-3-Clause
// Descriptors: read into requests of the core when they are posted, and written back when they complete.
#pragma once

#include <cstdint>

#include "api/vipl/api.hpp"
#include "core/work.hpp"

namespace viaduct::vipl {

/// What a descriptor is held against (guide, sections 5.2 to 5.4).
struct DescriptorLimits {
    std::uint32_t segments = 0;        ///< behind the control segment
    std::uint32_t transfer_bytes = 0;  ///< of the VI
    bool rdma_read = false;            ///< at the reliability level of the VI
};

/// Requests that refer to the descriptor. Errors of the descriptor do not stop it: it takes its turn in the queue and
/// completes with the fault that the request carries.
SendRequest read_send(const VIP_DESCRIPTOR& descriptor, const DescriptorLimits& limits) noexcept;
ReceiveRequest read_receive(const VIP_DESCRIPTOR& descriptor, const DescriptorLimits& limits) noexcept;

inline VIP_DESCRIPTOR* descriptor_of(const Completion& completion) noexcept {
    return reinterpret_cast<VIP_DESCRIPTOR*>(completion.context);
}

/// Writes the outcome into the descriptor of a completion.
void write_back(const Completion& completion) noexcept;

/// What Done and Wait return for a descriptor that is complete.
inline VIP_RETURN result_of(const Completion& completion) noexcept {
    return completion.code == CompletionCode::Success ? VIP_SUCCESS : VIP_DESCRIPTOR_ERROR;
}
inline VIP_RETURN result_of(const VIP_DESCRIPTOR& descriptor) noexcept {
    return (descriptor.CS.Status & VIP_STATUS_ERROR_MASK) == 0 ? VIP_SUCCESS : VIP_DESCRIPTOR_ERROR;
}

/// Complete descriptors in order, linked through the field that is the provider's while a descriptor is in a queue.
class DescriptorList {
public:
    bool empty() const noexcept { return head_ == nullptr; }

    void push(VIP_DESCRIPTOR* descriptor) noexcept {
        descriptor->CS.Next.Address = nullptr;
        if (head_ == nullptr)
            head_ = descriptor;
        else
            tail_->CS.Next.Address = descriptor;
        tail_ = descriptor;
    }

    /// The oldest, or null.
    VIP_DESCRIPTOR* pop() noexcept {
        VIP_DESCRIPTOR* first = head_;
        if (first != nullptr) head_ = static_cast<VIP_DESCRIPTOR*>(first->CS.Next.Address);
        return first;
    }

private:
    VIP_DESCRIPTOR* head_ = nullptr;
    VIP_DESCRIPTOR* tail_ = nullptr;
};

}  // namespace viaduct::vipl

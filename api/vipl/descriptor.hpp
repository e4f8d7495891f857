// SPDX-License-Identifier: BSD-3-Clause
// Descriptors. They are converted to requests of the core when they are posted, and written back when they complete.
#pragma once

#include <cstdint>

#include "api/vipl/api.hpp"
#include "core/work.hpp"

namespace viaduct::vipl {

/// The limits that descriptors are checked against (guide, sections 5.2 to 5.4).
struct DescriptorLimits {
    std::uint32_t segments = 0;        ///< after the control segment
    std::uint32_t transfer_bytes = 0;  ///< of the VI
    bool rdma_read = false;            ///< at the reliability level of the VI
};

/// Build requests that refer to the descriptor. An invalid descriptor still takes its turn in the queue and completes
/// with the error that the request carries.
SendRequest read_send(const VIP_DESCRIPTOR& descriptor, const DescriptorLimits& limits) noexcept;
ReceiveRequest read_receive(const VIP_DESCRIPTOR& descriptor, const DescriptorLimits& limits) noexcept;

inline VIP_DESCRIPTOR* descriptor_of(const Completion& completion) noexcept {
    return reinterpret_cast<VIP_DESCRIPTOR*>(completion.context);
}

/// Writes the outcome into the descriptor of a completion.
void write_back(const Completion& completion) noexcept;

/// The result of the Done and Wait calls for a complete descriptor.
inline VIP_RETURN result_of(const Completion& completion) noexcept {
    return completion.code == CompletionCode::Success ? VIP_SUCCESS : VIP_DESCRIPTOR_ERROR;
}
inline VIP_RETURN result_of(const VIP_DESCRIPTOR& descriptor) noexcept {
    return (descriptor.CS.Status & VIP_STATUS_ERROR_MASK) == 0 ? VIP_SUCCESS : VIP_DESCRIPTOR_ERROR;
}

/// A FIFO of complete descriptors, linked through the Next field, which belongs to the provider while a descriptor is
/// queued.
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

    /// Returns the oldest descriptor, or null.
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

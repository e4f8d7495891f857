// SPDX-License-Identifier: BSD-3-Clause
// Why a call or a connection failed, in words and with the values at fault.
#pragma once

#include <array>
#include <cstddef>

#include "core/export.hpp"
#include "core/status.hpp"

namespace viaduct {

/// Formats text for Status::where(), printf-style. It belongs to the calling thread and stays valid until the thread
/// has formatted three more; Reason keeps it longer and takes it to other threads.
VIADUCT_EXPORT const char* explain(const char* format, ...) noexcept __attribute__((format(printf, 1, 2)));

/// A copy of such a text. Longer text is cut off.
class Reason {
public:
    static constexpr std::size_t capacity = 192;

    constexpr Reason() noexcept = default;
    VIADUCT_EXPORT Reason(const char* text) noexcept;  // NOLINT: implicit by intent

    /// The text of the status, and of its errno if it has one.
    VIADUCT_EXPORT Reason(const Status& status) noexcept;  // NOLINT: implicit by intent

    bool empty() const noexcept { return text_[0] == '\0'; }
    const char* c_str() const noexcept { return text_.data(); }

private:
    std::array<char, capacity> text_{};
};

}  // namespace viaduct

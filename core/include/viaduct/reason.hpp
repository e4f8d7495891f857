// SPDX-License-Identifier: BSD-3-Clause
// Why a call or a connection failed, in words and with the values at fault.
#pragma once

#include <array>
#include <cstddef>

#include "viaduct/detail/export.hpp"
#include "viaduct/status.hpp"

namespace viaduct {

/// A copy of the text of a Status, which stays valid and may go to other threads. Longer text is cut off.
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

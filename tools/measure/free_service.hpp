// SPDX-License-Identifier: BSD-3-Clause
// A service number for a server that is told to its clients, rather than known to them.
#pragma once

#include "core/base/unique_fd.hpp"
#include "tools/measure/api.hpp"

namespace viaduct::measure {

/// A number that no other FreeService of this host has while this one lives: that of a TCP port, which the system gives
/// out once.
class FreeService {
public:
    /// Throws Error.
    FreeService();

    std::uint16_t number() const noexcept { return number_; }
    Service service() const noexcept;

private:
    UniqueFd socket_;
    std::uint16_t number_ = 0;
};

}  // namespace viaduct::measure

// SPDX-License-Identifier: BSD-3-Clause
// Makes a selected call of a backend fail, so that a test can try every failure in a scenario.
#pragma once

#include <atomic>
#include <cstdint>

#include "backends/faults/plan.hpp"

namespace viaduct::testing {

/// Selects the call that fails and its status. Counts the calls that can fail, from 1.
class FailingCall final : public faults::Plan {
public:
    /// Makes call number `call` fail once with `status`; 0 means none. Resets the counter. Call it only while no call
    /// is in progress.
    void fail_call(std::uint64_t call, Status status) noexcept {
        status_ = status;
        failing_ = call;
        calls_ = 0;
    }

    std::uint64_t calls() const noexcept { return calls_; }

    Status before(faults::Call, const char*) noexcept override { return ++calls_ == failing_ ? status_ : Status(); }

private:
    std::atomic<std::uint64_t> calls_{0};
    std::uint64_t failing_ = 0;
    Status status_;
};

}  // namespace viaduct::testing

// SPDX-License-Identifier: BSD-3-Clause
// The faults that a user has asked for.
#pragma once

#include <atomic>

#include "backends/faults/plan.hpp"
#include "core/base/fault_spec.hpp"

namespace viaduct::faults {

/// Each decision depends only on the seed, the number of the object and that of the request. Logs the calls that fail.
class ChosenPlan final : public Plan {
public:
    explicit ChosenPlan(const FaultSpec& spec) noexcept : spec_(spec) {}

    Status before(Call call, const char* object) noexcept override;
    std::chrono::nanoseconds delay_of(const Turn& turn) noexcept override;
    Fault fault_of(const SendRequest& request, Reliability reliability, const Turn& turn) noexcept override;
    bool rejects(const Turn& turn) noexcept override { return draw(Draw::Reject, turn) < spec_.reject; }

private:
    enum class Draw : std::uint8_t { Delay, Drop, NoReceive, Reject };

    double draw(Draw kind, const Turn& turn) const noexcept;

    const FaultSpec spec_;
    std::atomic<std::uint64_t> allocations_{0};
    std::atomic<std::uint64_t> registrations_{0};
    std::atomic<std::uint64_t> connections_{0};
    std::atomic<std::uint64_t> posts_{0};
};

}  // namespace viaduct::faults

// SPDX-License-Identifier: BSD-3-Clause
// Wraps a backend and makes a selected call fail, so that a test can try every failure in a scenario.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "core/backend.hpp"

namespace viaduct::testing {

/// Selects the call that fails and its status. Counts the calls that can fail, from 1.
class FaultPlan {
public:
    /// Makes call number `call` fail once with `status`; 0 means none. Resets the counter.
    void fail_call(std::uint64_t call, Status status) noexcept {
        status_ = status;
        failing_ = call;
        calls_ = 0;
    }

    std::uint64_t calls() const noexcept { return calls_; }

    /// Counts a call and returns the selected status or Ok.
    Status next() noexcept { return ++calls_ == failing_ ? status_ : Status(); }

private:
    std::atomic<std::uint64_t> calls_{0};
    std::uint64_t failing_ = 0;
    Status status_;
};

/// A failing call is not passed to the inner backend. Calls that do not return a Status are passed on without counting.
class FaultProvider final : public backend::Provider {
public:
    explicit FaultProvider(backend::Provider& inner) noexcept : inner_(inner) {}

    FaultPlan plan;  ///< change it only while no call is in progress

    std::string_view name() const noexcept override { return "fault"; }
    Result<std::uint32_t> device_count() const noexcept override { return inner_.device_count(); }
    Result<std::unique_ptr<backend::Device>> open(std::uint32_t index, DeviceObserver& observer) noexcept override;
    Result<std::uint32_t> find(std::string_view device) noexcept override;
    Result<std::uint32_t> route_to(const HostAddress& host) noexcept override;
    Result<std::vector<backend::DeviceSummary>> devices() const noexcept override { return inner_.devices(); }

private:
    backend::Provider& inner_;
};

}  // namespace viaduct::testing

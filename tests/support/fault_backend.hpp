// SPDX-License-Identifier: BSD-3-Clause
// A backend around another one that makes a chosen call fail, so that a test can sweep over every failure of a
// scenario.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "core/backend.hpp"

namespace viaduct::testing {

/// Which call fails, and how. Counts every call that can fail, from 1.
class FaultPlan {
public:
    /// Call number `call` fails with `status`, once; 0 lets all succeed. Starts to count anew.
    void fail_call(std::uint64_t call, Status status) noexcept {
        status_ = status;
        failing_ = call;
        calls_ = 0;
    }

    std::uint64_t calls() const noexcept { return calls_; }

    /// Counts a call: the failure that is due, or Ok.
    Status next() noexcept { return ++calls_ == failing_ ? status_ : Status(); }

private:
    std::atomic<std::uint64_t> calls_{0};
    std::uint64_t failing_ = 0;
    Status status_;
};

/// A failing call does not reach the inner backend. Calls that report no Status are passed on and not counted.
class FaultProvider final : public backend::Provider {
public:
    explicit FaultProvider(backend::Provider& inner) noexcept : inner_(inner) {}

    FaultPlan plan;  ///< set while no call is under way

    std::string_view name() const noexcept override { return "fault"; }
    Result<std::uint32_t> device_count() const noexcept override { return inner_.device_count(); }
    Result<std::unique_ptr<backend::Device>> open(std::uint32_t index, DeviceObserver& observer) noexcept override;
    Result<std::uint32_t> find(std::string_view device) noexcept override;
    Result<std::uint32_t> route_to(const HostAddress& host) noexcept override;

private:
    backend::Provider& inner_;
};

}  // namespace viaduct::testing

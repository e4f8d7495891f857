// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>

#include "viaduct/detail/export.hpp"
#include "viaduct/endpoint_state.hpp"

namespace viaduct {

enum class EndpointTrigger : std::uint8_t;  // see core/state_machine.hpp

namespace detail {

/// The state of an endpoint, changed according to the table. Thread-safe.
class VIADUCT_EXPORT StateMachine {
public:
    explicit StateMachine(EndpointState initial = EndpointState::Unconnected) noexcept : state_(initial) {}

    EndpointState state() const noexcept { return state_.load(std::memory_order_acquire); }

    /// Changes the state; false if the trigger is not valid in the current state.
    bool apply(EndpointTrigger trigger) noexcept;

private:
    std::atomic<EndpointState> state_;
};

}  // namespace detail
}  // namespace viaduct

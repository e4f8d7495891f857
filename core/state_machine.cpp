// SPDX-License-Identifier: BSD-3-Clause
#include "core/state_machine.hpp"

#include "core/log.hpp"

namespace viaduct {

const char* to_string(EndpointState state) noexcept {
    switch (state) {
        case EndpointState::Unconnected: return "Unconnected";
        case EndpointState::Reserved: return "Reserved";
        case EndpointState::TentativePending: return "TentativePending";
        case EndpointState::PassivePending: return "PassivePending";
        case EndpointState::ActivePending: return "ActivePending";
        case EndpointState::Connected: return "Connected";
        case EndpointState::DisconnectPending: return "DisconnectPending";
        case EndpointState::Disconnected: return "Disconnected";
    }
    return "unknown state";
}

const char* to_string(EndpointTrigger trigger) noexcept {
    switch (trigger) {
        case EndpointTrigger::Reserve: return "Reserve";
        case EndpointTrigger::Release: return "Release";
        case EndpointTrigger::RequestArrived: return "RequestArrived";
        case EndpointTrigger::Connect: return "Connect";
        case EndpointTrigger::Accept: return "Accept";
        case EndpointTrigger::Established: return "Established";
        case EndpointTrigger::Refused: return "Refused";
        case EndpointTrigger::Failed: return "Failed";
        case EndpointTrigger::Disconnect: return "Disconnect";
        case EndpointTrigger::PeerDisconnected: return "PeerDisconnected";
        case EndpointTrigger::Broken: return "Broken";
        case EndpointTrigger::Reset: return "Reset";
    }
    return "unknown trigger";
}

bool StateMachine::apply(EndpointTrigger trigger) noexcept {
    auto present = state_.load(std::memory_order_acquire);
    while (true) {
        const auto next = next_state(present, trigger);
        if (!next) return false;
        if (state_.compare_exchange_weak(present, *next, std::memory_order_acq_rel)) {
            log(LogLevel::Debug, "endpoint %p: %s, %s: %s", static_cast<void*>(this), to_string(present),
                to_string(trigger), to_string(*next));
            return true;
        }
    }
}

}  // namespace viaduct

// SPDX-License-Identifier: BSD-3-Clause
#include "core/state_machine.hpp"

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
        case EndpointTrigger::Unreachable: return "Unreachable";
        case EndpointTrigger::Disconnect: return "Disconnect";
        case EndpointTrigger::PeerDisconnected: return "PeerDisconnected";
        case EndpointTrigger::Broken: return "Broken";
        case EndpointTrigger::Reset: return "Reset";
    }
    return "unknown trigger";
}

}  // namespace viaduct

// SPDX-License-Identifier: BSD-3-Clause
// Prints docs/state-machine.md from the table of endpoint states. A test compares the page with this output.
#include <cstdio>

#include "core/state_machine.hpp"

namespace {

using viaduct::EndpointState;
using viaduct::EndpointTrigger;

/// Returns the VIPL state of an endpoint (guide, section 3.7.3).
const char* vipl_state(EndpointState state) {
    switch (state) {
        case EndpointState::Unconnected:
        case EndpointState::Reserved: return "Idle";
        case EndpointState::TentativePending:
            return "Connect Pending (does not occur: a request has no VI until `VipConnectAccept`)";
        case EndpointState::PassivePending:
        case EndpointState::ActivePending: return "Connect Pending";
        case EndpointState::Connected: return "Connected";
        case EndpointState::DisconnectPending: return "Error (does not occur: `VipDisconnect` does not wait)";
        case EndpointState::Disconnected: return "Error";
    }
    return "";
}

void print_diagram() {
    std::printf("```mermaid\nstateDiagram-v2\n    [*] --> Unconnected\n");
    for (const auto& row : viaduct::detail::transitions)
        std::printf("    %s --> %s : %s\n", to_string(row.from), to_string(row.to), to_string(row.trigger));
    std::printf("```\n");
}

void print_table() {
    std::printf("| trigger |");
    for (std::size_t s = 0; s < viaduct::endpoint_state_count; ++s)
        std::printf(" %s |", to_string(static_cast<EndpointState>(s)));
    std::printf("\n|---|");
    for (std::size_t s = 0; s < viaduct::endpoint_state_count; ++s) std::printf("---|");
    std::printf("\n");
    for (std::size_t t = 0; t < viaduct::endpoint_trigger_count; ++t) {
        const auto trigger = static_cast<EndpointTrigger>(t);
        std::printf("| **%s** |", to_string(trigger));
        for (std::size_t s = 0; s < viaduct::endpoint_state_count; ++s) {
            const auto next = next_state(static_cast<EndpointState>(s), trigger);
            std::printf(" %s |", next ? to_string(*next) : "–");
        }
        std::printf("\n");
    }
}

void print_projection() {
    std::printf("| core | VIPL |\n|---|---|\n");
    for (std::size_t s = 0; s < viaduct::endpoint_state_count; ++s) {
        const auto state = static_cast<EndpointState>(s);
        std::printf("| %s | %s |\n", to_string(state), vipl_state(state));
    }
}

}  // namespace

int main() {
    std::printf(
        "# The states of an endpoint\n\n"
        "<!-- Printed by tests/unit/print_state_machine.cpp from core/state_machine.hpp; a test compares the two. "
        "-->\n\n"
        "All endpoints use one state table, in `core/state_machine.hpp`. Its states are those of DAT 2.0, which has\n"
        "more states than the other APIs. Front-ends compute the states of their API from it. Only DAT stores a\n"
        "second state, for an endpoint that belongs to a service point (Reserved, TentativePending): the core may "
        "have\n"
        "no endpoint yet, because the consumer configures it after the request has arrived. It follows the same "
        "table.\n"
        "Backends store the progress of their own protocols, such as address resolution, and report only events.\n\n"
        "A test runs programs of each API and of the core, and checks that they reach every row and no others.\n\n"
        "## Diagram\n\n");
    print_diagram();
    std::printf(
        "\n## Table\n\n"
        "Each column is a state, each row is a trigger, and each cell is the next state. A dash means: no effect.\n\n");
    print_table();
    std::printf(
        "\n## What a VIPL program sees\n\n"
        "`VipQueryVi` reports four states.\n\n");
    print_projection();
    return 0;
}

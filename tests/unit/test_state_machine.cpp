// SPDX-License-Identifier: BSD-3-Clause
// Checks the whole table: every pair of state and trigger.
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "core/state_machine.hpp"

using viaduct::EndpointState;
using viaduct::EndpointTrigger;
using viaduct::next_state;

namespace {

constexpr EndpointState state_number(std::size_t number) { return static_cast<EndpointState>(number); }
constexpr EndpointTrigger trigger_number(std::size_t number) { return static_cast<EndpointTrigger>(number); }

/// Returns the states that can be reached from a state, including itself.
std::set<EndpointState> reachable_from(EndpointState start) {
    std::set<EndpointState> seen{start};
    std::set<EndpointState> frontier{start};
    while (!frontier.empty()) {
        std::set<EndpointState> next;
        for (const EndpointState from : frontier)
            for (std::size_t t = 0; t < viaduct::endpoint_trigger_count; ++t)
                if (const auto to = next_state(from, trigger_number(t)); to && seen.insert(*to).second)
                    next.insert(*to);
        frontier = next;
    }
    return seen;
}

}  // namespace

TEST_CASE("state machine: every pair of state and trigger has the successor of its row, or none") {
    std::size_t defined = 0;
    for (std::size_t s = 0; s < viaduct::endpoint_state_count; ++s) {
        for (std::size_t t = 0; t < viaduct::endpoint_trigger_count; ++t) {
            std::size_t rows = 0;
            for (const auto& row : viaduct::detail::transitions) {
                if (row.from != state_number(s) || row.trigger != trigger_number(t)) continue;
                ++rows;
                CHECK(next_state(row.from, row.trigger) == row.to);
            }
            CAPTURE(to_string(state_number(s)), to_string(trigger_number(t)));
            CHECK(rows <= 1);
            CHECK(next_state(state_number(s), trigger_number(t)).has_value() == (rows == 1));
            defined += rows;
        }
    }
    CHECK(defined == std::size(viaduct::detail::transitions));
}

TEST_CASE("state machine: every state can be reached from Unconnected and left for it") {
    CHECK(reachable_from(EndpointState::Unconnected).size() == viaduct::endpoint_state_count);
    for (std::size_t s = 0; s < viaduct::endpoint_state_count; ++s) {
        CAPTURE(to_string(state_number(s)));
        CHECK(reachable_from(state_number(s)).contains(EndpointState::Unconnected));
    }
}

TEST_CASE("state machine: only Established leads to Connected") {
    for (const auto& row : viaduct::detail::transitions)
        if (row.to == EndpointState::Connected) CHECK(row.trigger == EndpointTrigger::Established);
}

TEST_CASE("state machine: only a reset leaves Disconnected") {
    for (std::size_t t = 0; t < viaduct::endpoint_trigger_count; ++t) {
        const auto next = next_state(EndpointState::Disconnected, trigger_number(t));
        if (trigger_number(t) == EndpointTrigger::Reset)
            CHECK(next == EndpointState::Unconnected);
        else
            CHECK(next.value_or(EndpointState::Disconnected) == EndpointState::Disconnected);
    }
}

TEST_CASE("state machine: a broken connection disconnects every pending or connected state") {
    for (const EndpointState state : {EndpointState::PassivePending, EndpointState::ActivePending,
                                      EndpointState::Connected, EndpointState::DisconnectPending})
        CHECK(next_state(state, EndpointTrigger::Broken) == EndpointState::Disconnected);
}

TEST_CASE("state machine: states and triggers have distinct names") {
    std::set<std::string> names;
    for (std::size_t s = 0; s < viaduct::endpoint_state_count; ++s) names.insert(to_string(state_number(s)));
    for (std::size_t t = 0; t < viaduct::endpoint_trigger_count; ++t) names.insert(to_string(trigger_number(t)));
    CHECK(names.size() == viaduct::endpoint_state_count + viaduct::endpoint_trigger_count);
    CHECK(std::string(to_string(state_number(viaduct::endpoint_state_count))) == "unknown state");
    CHECK(std::string(to_string(trigger_number(viaduct::endpoint_trigger_count))) == "unknown trigger");
}

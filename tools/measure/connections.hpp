// SPDX-License-Identifier: BSD-3-Clause
// Many connections at once: what each of them takes, and what those in use cost. Over the core, between two processes
// of this host.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace viaduct::measure {

struct ConnectionsParameters {
    std::uint32_t connections = 1000;
    std::uint32_t device = 0;
    std::chrono::duration<double> duration{1.0};  ///< of each measurement
    std::function<void()> on_client_start = [] {};
    std::function<void()> on_server_start = [] {};  ///< in the server's process
};

/// What one process needs for each connection that is open.
struct ConnectionCost {
    double memory_bytes = 0;  ///< resident, including shared pages
    double descriptors = 0;
};

/// Some connections that are used in turn, while all others are idle. All use one completion queue on each side.
struct ActiveConnections {
    std::uint32_t active = 0;
    double round_trip_ns = 0;           ///< of 8 bytes, with one message under way
    double round_trips_per_second = 0;  ///< with a message under way on up to 64 connections
};

struct ConnectionsFigures {
    std::uint32_t connections = 0;
    double connections_per_second = 0;
    ConnectionCost client;
    ConnectionCost server;
    std::vector<ActiveConnections> active;
    double wakeup_ns = 0;        ///< median, from the send of a message until its receiver, which slept, has it
    double registration_ns = 0;  ///< the shortest, of 4 KiB of shareable memory
};

/// Starts a server in a process of its own and connects to it. Call it before a device is open. Throws Error.
ConnectionsFigures measure_connections(const ConnectionsParameters& parameters);

void print_table(const ConnectionsFigures& figures);
/// One JSON document, with the version of the tool.
void print_json(const ConnectionsFigures& figures, const std::string& version);

}  // namespace viaduct::measure

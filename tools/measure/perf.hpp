// SPDX-License-Identifier: BSD-3-Clause
// The vi-perf measurement, for programs that want numbers and not a table: a server and a client.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tools/measure/machine.hpp"
#include "tools/measure/server.hpp"
#include "tools/measure/statistics.hpp"
#include "tools/measure/wire.hpp"

namespace viaduct::measure {

struct PerfParameters : wire::PerfTerms {
    bool keep_samples = false;     ///< each latency, besides the histogram
    std::uint64_t iterations = 0;  ///< of each connection that carries data; 0: as many as fill `duration`
    std::chrono::duration<double> duration{1.0};
    std::chrono::duration<double> interval{0};  ///< between reports of what was measured since the last one; 0: none
    std::optional<std::uint64_t> warmup;        ///< iterations; nothing: a tenth, or until the pace is known
    Timeout connect_timeout{3000};              ///< also how long to wait for a server that is not there yet

    std::uint32_t connections() const noexcept { return queues * threads; }

    /// Whether the connection on which the ends agree is also the one that carries the data.
    bool share_connection() const noexcept {
        return connections() == 1 && segments == 1 && requests_of(operation) == 1 &&
               reliability == Reliability::ReliableDelivery;
    }
};

/// Why the parameters do not go together, or nothing.
std::optional<std::string> check(const PerfParameters& parameters);

/// What was measured for one size. Fields that a test does not measure are empty.
struct Measurement {
    std::uint32_t size = 0;        ///< bytes; 0 in the connect test
    std::uint64_t iterations = 0;  ///< round trips, messages in one direction, or connections, of all threads
    double seconds = 0;
    double cpu_seconds = 0;                     ///< of this process
    double peer_cpu_seconds = 0;                ///< of the server
    std::optional<MeasuredLatency> latency;     ///< one way, of a read, or of a connection
    std::optional<double> messages_per_second;  ///< both directions together
    std::optional<double> bytes_per_second;     ///< both directions together
    std::optional<double> connections_per_second;
};

/// Told how far a measurement has come, 0 to 1.
using Progress = std::function<void(double)>;

/// Told what was measured in an interval, and how many measured seconds came before it.
using OnInterval = std::function<void(const Measurement&, double begin)>;

class PerfClient {
public:
    /// Connects and agrees with the server. Throws Error.
    PerfClient(Api& api, const Address& server, const PerfParameters& parameters);
    ~PerfClient();

    /// Warms up and measures. If `stop` becomes true, returns within about a second what was measured until then,
    /// possibly no iterations. Throws Closed or Error.
    Measurement measure(std::uint32_t size, const Progress& progress = {}, const std::atomic<bool>* stop = nullptr,
                        const OnInterval& on_interval = {});

    /// The machine of the server.
    const Machine& server() const noexcept;

private:
    class Session;
    std::unique_ptr<Session> session_;
};

/// Serves one client after the other until `stop` is set, which is seen between clients.
void serve_perf(Api& api, const Service& service, const ServerOptions& options, const std::atomic<bool>& stop);

}  // namespace viaduct::measure

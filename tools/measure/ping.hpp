// SPDX-License-Identifier: BSD-3-Clause
// The vi-ping measurement: one request at a time, its payload checked byte for byte.
//
// Send: the server sends back what it receives. Write: the client writes into the server's memory and sends an empty
// notice; the server writes the same bytes into the client's memory and sends its notice. Read: the client reads the
// server's memory, and the server does nothing.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "tools/measure/server.hpp"
#include "tools/measure/statistics.hpp"
#include "viaduct/deadline.hpp"

namespace viaduct::measure {

/// What travels: a number, as a header, and a pattern that depends on it.
using wire::ping_header_bytes;
void fill_frame(std::span<std::byte> frame, std::uint32_t sequence) noexcept;
bool frame_is_intact(std::span<const std::byte> frame, std::uint32_t sequence) noexcept;

struct PingOptions {
    Operation operation = Operation::Send;
    std::uint32_t payload_bytes = 56;
    Timeout timeout{1000};  ///< for a reply, and for the connection
    Timeout patience{200};  ///< where nobody listens: a VIPL server may be between two waits

    std::uint32_t frame_bytes() const noexcept { return payload_bytes + ping_header_bytes; }
};

struct PingOutcome {
    std::uint32_t sequence = 0;
    std::optional<double> time_us;  ///< of the round trip, where there was a reply
    std::string loss;               ///< why there was none
};

class PingClient {
public:
    PingClient(Api& api, Address server, const PingOptions& options);
    ~PingClient();

    /// One request; connects first where there is no connection. A request without an intact reply costs the
    /// connection, so that a late reply is never taken for another. Nothing: `stop` was set meanwhile; an attempt to
    /// connect goes on then, and the destructor waits for it.
    std::optional<PingOutcome> ping(std::uint32_t sequence, const std::atomic<bool>& stop,
                                    const Deadline& end = Deadline::never());

    /// Whether an attempt to connect goes on.
    bool is_connecting() const;

private:
    class Session;

    Api& api_;
    Address server_;
    PingOptions options_;
    std::unique_ptr<Session> session_;
    std::future<std::unique_ptr<Session>> connecting_;  // calls of the library that connect do not see `stop`
};

struct PingSchedule {
    std::uint64_t count = 0;  ///< requests; 0 for no limit
    std::chrono::nanoseconds interval{std::chrono::seconds(1)};
    std::optional<std::chrono::nanoseconds> deadline;  ///< for the whole
};

struct PingSummary {
    std::uint64_t transmitted = 0;
    Histogram round_trips_ns;
    std::chrono::nanoseconds time{};

    std::uint64_t received() const noexcept { return round_trips_ns.count(); }
    double loss_percent() const noexcept;
};

/// Pings as scheduled until `stop` is set, and tells each outcome.
PingSummary run_pings(PingClient& client, const PingSchedule& schedule, const std::atomic<bool>& stop,
                      const std::function<void(const PingOutcome&)>& tell);

/// Serves each client on a thread of its own, until `stop` is set.
void serve_pings(Api& api, const Service& service, const ServerOptions& options, const std::atomic<bool>& stop);

}  // namespace viaduct::measure

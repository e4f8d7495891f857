// SPDX-License-Identifier: BSD-3-Clause
// What the two ends of a vi-perf session have in common.
#pragma once

#include <span>
#include <vector>

#include "tools/measure/perf.hpp"
#include "tools/measure/stream.hpp"
#include "tools/measure/workspace.hpp"

namespace viaduct::measure {

/// Requests that a link must be able to hold, on either queue.
inline std::uint32_t depth_for(std::uint32_t window) noexcept { return window + signal_slots; }

/// Whether a latency is the time until a request completes, and not that of a message.
inline bool times_completions(const PerfParameters& terms) noexcept {
    return terms.test == Test::Latency && terms.operation != Operation::Write && !takes_receive(terms.operation);
}

/// Whether a latency is half of a round trip. If both ends send at once, each has the other's message after one.
inline bool times_round_trips(const PerfParameters& terms) noexcept {
    return terms.test == Test::Latency && !times_completions(terms) && terms.direction != Direction::Both;
}

/// Whether an end of a stream, or of a latency test in which only one end acts, posts the requests.
inline bool streams_from(const PerfParameters& terms, bool leads) noexcept {
    return terms.direction == Direction::Both || leads == (terms.direction == Direction::Forward);
}

/// A connection that carries data, with the memory at its ends.
struct Lane {
    const Workspace& workspace;
    Link& link;
    RemoteAddress remote;  ///< where writes go and reads come from
};

/// A connection besides the one on which the ends agree.
class DataConnection {
public:
    /// Ready to be connected.
    DataConnection(Api& api, const PerfParameters& terms);

    Link& link() noexcept { return *link_; }

    /// Tells the peer, once connected, where the memory of this end is, and hears of the peer's.
    Lane introduce(Timeout patience);

private:
    std::uint32_t max_size_;
    Workspace workspace_;
    std::unique_ptr<Link> link_;
    Conversation talk_;
};

/// Why an interface and its device cannot do what is asked for, or nothing.
std::optional<std::string> check(const Api& api, const PerfParameters& terms);

/// Runs the latency loop on all threads: the whole of it where this end leads or both ends do the same, and otherwise
/// what it takes to answer. `latencies`, one for each thread, is empty at the server.
void run_latency(const PerfParameters& terms, const wire::Run& run, bool leads, std::span<const Lane> lanes,
                 std::span<MeasuredLatency> latencies = {});

/// Runs the streams of all threads.
void run_streams(const PerfParameters& terms, const wire::Run& run, bool leads, std::span<const Lane> lanes);

inline bool is_write_ping_pong(const PerfParameters& terms) noexcept {
    return terms.test == Test::Latency && terms.operation == Operation::Write;
}

/// Before either side may write.
inline void prepare_ping_pong(const PerfParameters& terms, std::span<const Lane> lanes, std::uint32_t size) {
    if (!is_write_ping_pong(terms)) return;
    for (const Lane& lane : lanes) WritePingPong<Link>::prepare(lane.workspace, size);
}

/// The windows that a device can serve.
inline std::uint32_t max_window(const DeviceInfo& device) noexcept {
    return device.max_queue_depth <= signal_slots ? 0 : device.max_queue_depth - signal_slots;
}

/// Connections of the connect test: a ring of links, each closed before it is connected again.
class LinkRing {
public:
    LinkRing(Api& api, std::uint32_t count) {
        links_.reserve(count);
        for (std::uint32_t i = 0; i < count; ++i) links_.push_back(api.create_link({.bare = true}));
    }

    /// The link for connection number `index`, closed.
    Link& next(std::uint64_t index) {
        Link& link = *links_[index % links_.size()];
        if (index >= links_.size()) link.disconnect();
        return link;
    }

    void disconnect_all() {
        for (const auto& link : links_) link->disconnect();
    }

private:
    std::vector<std::unique_ptr<Link>> links_;
};

}  // namespace viaduct::measure

// SPDX-License-Identifier: BSD-3-Clause
// What the two ends of a vi-perf session have in common.
#pragma once

#include <algorithm>
#include <vector>

#include "tools/measure/any_link.hpp"
#include "tools/measure/perf.hpp"
#include "tools/measure/stream.hpp"
#include "tools/measure/workspace.hpp"

namespace viaduct::measure {

/// Requests that a link must be able to hold, on either queue.
inline std::uint32_t depth_for(std::uint32_t window) noexcept { return window + signal_slots; }

/// Whether an end of a stream, or of a latency test by reads, posts the requests.
inline bool streams_from(const PerfParameters& terms, bool leads) noexcept {
    return terms.direction == Direction::Both || leads == (terms.direction == Direction::Forward);
}

inline StreamPlan plan_of(const PerfParameters& terms, const wire::Run& run, bool leads,
                          const RemoteAddress& remote) noexcept {
    return {.operation = terms.operation,
            .mode = terms.mode,
            .size = run.size,
            .window = terms.window,
            .iterations = run.iterations,
            .rate_limit = terms.rate_limit,
            .sends = streams_from(terms, leads),
            .receives = streams_from(terms, !leads),
            .remote = remote};
}

inline bool is_write_ping_pong(const PerfParameters& terms) noexcept {
    return terms.test == Test::Latency && terms.operation == Operation::Write;
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

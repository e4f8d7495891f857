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

/// The terms of a session that both ends know, and the plans that follow from them.
struct Terms {
    Test test;
    Operation operation;
    Mode mode;
    Memory memory;
    bool bidirectional;
    std::uint32_t window;
    std::uint32_t open;

    /// Requests that a link must be able to hold, on either queue.
    static std::uint32_t depth_for(std::uint32_t window) noexcept { return window + signal_slots; }

    StreamPlan plan(const wire::Run& run, bool leads, const RemoteAddress& remote) const noexcept {
        return {.operation = operation,
                .mode = mode,
                .size = run.size,
                .window = window,
                .iterations = run.iterations,
                .sends = leads || bidirectional,
                .receives = !leads || bidirectional,
                .remote = remote};
    }

    bool is_write_ping_pong() const noexcept { return test == Test::Latency && operation == Operation::Write; }
};

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

// SPDX-License-Identifier: BSD-3-Clause
#include "tools/measure/perf_session.hpp"

#include "tools/measure/any_link.hpp"

namespace viaduct::measure {
namespace {

StreamPlan plan_of(const PerfParameters& terms, const wire::Run& run, bool leads,
                   const RemoteAddress& remote) noexcept {
    return {.operation = terms.operation,
            .size = run.size,
            .window = terms.window,
            .iterations = run.iterations,
            .rate_limit = terms.rate_limit,
            .sends = streams_from(terms, leads),
            .receives = streams_from(terms, !leads),
            .remote = remote};
}

}  // namespace

DataConnection::DataConnection(Api& api, const PerfParameters& terms)
    : max_size_(terms.max_size),
      workspace_(api, terms.memory, terms.max_size),
      link_(api.create_link({.send_depth = depth_for(terms.window), .receive_depth = depth_for(terms.window)})),
      talk_(*link_, workspace_) {
    for (std::uint32_t i = 0; i < depth_for(terms.window); ++i) talk_.post_receive();
}

Lane DataConnection::introduce(Timeout patience) {
    talk_.say(wire::Reply{.landing = workspace_.landing_for_peer()});
    const auto landing = talk_.hear_reply(patience).landing;
    if (landing.bytes < max_size_) throw Error("the peer's memory is smaller than a message");
    talk_.post_receive();
    return {.workspace = workspace_, .link = *link_, .remote = {.address = landing.address, .key = landing.key}};
}

void run_streams(const PerfParameters& terms, const wire::Run& run, bool leads, std::span<const Lane> lanes) {
    with_final_link(lanes.front().link, [&]<class L>(L&) {
        std::vector<Stream<L>> streams;
        streams.reserve(lanes.size());
        for (const Lane& lane : lanes)
            streams.emplace_back(static_cast<L&>(lane.link), lane.workspace, plan_of(terms, run, leads, lane.remote));
        run_streams(std::span(streams), terms.mode);
    });
}

}  // namespace viaduct::measure

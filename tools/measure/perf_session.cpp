// SPDX-License-Identifier: BSD-3-Clause
#include "tools/measure/perf_session.hpp"

#include <algorithm>
#include <future>

#include "tools/measure/core_api.hpp"
#include "tools/measure/dat_api.hpp"
#include "tools/measure/rpma_api.hpp"
#include "tools/measure/vipl_api.hpp"

namespace viaduct::measure {
namespace {

StreamPlan plan_of(const PerfParameters& terms, const wire::Run& run, bool leads,
                   const RemoteAddress& remote) noexcept {
    return {.operation = terms.operation,
            .size = run.size,
            .segments = terms.segments,
            .window = terms.window,
            .batch = terms.batch,
            .iterations = run.iterations,
            .rate_limit = terms.rate_limit,
            .sends = streams_from(terms, leads),
            .receives = streams_from(terms, !leads),
            .remote = remote};
}

/// Why an interface, which has the given values, lacks the wanted one, or nothing where it has it.
template <class Enum>
std::optional<std::string> missing(const Api& api, Enum wanted, const std::vector<Enum>& given) {
    if (std::ranges::find(given, wanted) != given.end()) return std::nullopt;
    std::string text = std::string(api.name()) + " has no " + std::string(text_of(wanted)) + "; it has ";
    for (const Enum value : given) text += (value == given.front() ? "" : ", ") + std::string(text_of(value));
    return text;
}

/// Calls `loop` with the link as its final class. A class that is not named here is measured through its virtual
/// functions: correct, and a little slower.
template <class Loop>
auto with_final_link(Link& link, const Loop& loop) {
    if (auto* core = dynamic_cast<CoreLink*>(&link)) return loop(*core);
    if (auto* dat = dynamic_cast<DatLink*>(&link)) return loop(*dat);
    if (auto* rpma = dynamic_cast<RpmaLink*>(&link)) return loop(*rpma);
    if (auto* vipl = dynamic_cast<ViplLink*>(&link)) return loop(*vipl);
    return loop(link);
}

/// Calls `work` at the same time for each thread of an end, with its number and its connections. Throws what a call has
/// thrown once all have returned.
template <class Work>
void on_threads(const PerfParameters& terms, std::span<const Lane> lanes, Work work) {
    const auto call = [&](std::uint32_t thread) { work(thread, lanes.subspan(thread * terms.queues, terms.queues)); };
    std::vector<std::future<void>> others;
    for (std::uint32_t thread = 1; thread < terms.threads; ++thread)
        others.push_back(std::async(std::launch::async, call, thread));
    call(0);
    for (auto& other : others) other.get();
}

void run_latency_loop(const PerfParameters& terms, const wire::Run& run, bool leads, const Lane& lane,
                      MeasuredLatency* latency) {
    const bool both = terms.direction == Direction::Both;
    Laps laps(latency);
    const auto run_loop = [&](auto loop) {
        if (both)
            loop.cross(run.iterations, laps, leads);
        else
            leads ? loop.lead(run.iterations, laps) : loop.follow(run.iterations);
    };
    with_final_link(lane.link, [&]<class L>(L& link) {
        const Piece outgoing = lane.workspace.piece(lane.workspace.outgoing(), run.size, terms.segments);
        if (takes_receive(terms.operation))
            run_loop(SendPingPong<L>(link, lane.workspace, terms.operation, outgoing, lane.remote, terms.mode));
        else if (terms.operation == Operation::Write)
            run_loop(WritePingPong<L>(link, lane.workspace, outgoing, lane.remote));
        else if (leads || both)
            complete_repeatedly(link, terms.operation, outgoing, lane.remote, terms.mode, run.iterations, laps);
    });
}

}  // namespace

DataConnection::DataConnection(Api& api, const PerfParameters& terms)
    : max_size_(terms.max_size),
      workspace_(api, terms.memory, terms.max_size),
      link_(api.create_link({.send_depth = depth_for(terms.window * requests_of(terms.operation)),
                             .receive_depth = depth_for(terms.window),
                             .segments = terms.segments,
                             .reliability = terms.reliability})),
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

std::optional<std::string> check(const Api& api, const PerfParameters& terms) {
    const DeviceInfo& device = api.device();
    const auto at_most = [&](const char* what, std::uint32_t limit) {
        return "device " + device.name + " supports " + what + " of at most " + std::to_string(limit);
    };
    if (auto fault = missing(api, terms.operation, device.operations)) return fault;
    if (auto fault = missing(api, terms.reliability, device.reliabilities)) return fault;
    if (terms.max_size > device.max_transfer_bytes)
        return "device " + device.name + " supports at most " + std::to_string(device.max_transfer_bytes) +
               " bytes per message";
    const std::uint32_t window = max_window(device) / requests_of(terms.operation);
    if (terms.window > window) return at_most("windows", window);
    if (terms.segments > 1 && device.max_segments == 1)
        return std::string(api.name()) + " has no lists of segments; its requests have one";
    if (terms.batch > 1 && device.max_batch == 1)
        return std::string(api.name()) + " has no lists of requests; they are posted one by one";
    if (terms.batch > device.max_batch) return at_most("lists of requests", device.max_batch);
    if (terms.segments > device.max_segments) return at_most("lists of segments", device.max_segments);
    return std::nullopt;
}

void run_latency(const PerfParameters& terms, const wire::Run& run, bool leads, std::span<const Lane> lanes,
                 std::span<MeasuredLatency> latencies) {
    on_threads(terms, lanes, [&](std::uint32_t thread, std::span<const Lane> own) {
        run_latency_loop(terms, run, leads, own.front(), latencies.empty() ? nullptr : &latencies[thread]);
    });
}

void run_streams(const PerfParameters& terms, const wire::Run& run, bool leads, std::span<const Lane> lanes) {
    on_threads(terms, lanes, [&](std::uint32_t, std::span<const Lane> own) {
        with_final_link(own.front().link, [&]<class L>(L&) {
            std::vector<Stream<L>> streams;
            streams.reserve(own.size());
            for (const Lane& lane : own)
                streams.emplace_back(static_cast<L&>(lane.link), lane.workspace,
                                     plan_of(terms, run, leads, lane.remote));
            run_streams(std::span(streams), terms.mode);
        });
    });
}

}  // namespace viaduct::measure

// SPDX-License-Identifier: BSD-3-Clause
// Kills a peer that streams sends, RDMA writes and RDMA reads, at 200 random points. The survivor must see exactly one
// loss, get back all posted requests, and leak nothing.
//
// To repeat a failing run, set VIADUCT_CRASH_SEED to the seed that it printed.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/provider.hpp"
#include "tests/support/processes.hpp"
#include "tests/support/rig.hpp"
#include "tests/support/traces.hpp"

using namespace viaduct;
using namespace viaduct::testing;

namespace {

constexpr int rounds = 200;
constexpr std::string_view service = "crash";
constexpr std::size_t window = 16;
constexpr std::size_t area_size = 256 * 1024;

/// The parts of each side's memory. Each has a single use, so that no part is written and read at the same time.
enum Area : std::size_t { Source, Received, Read, Target, area_count };

/// The parameters of a round, chosen by the survivor and sent to the victim.
struct Plan {
    std::uint32_t seed;
    Memory memory;
    Reliability reliability;
    std::uint32_t completions;  ///< number of completions that the survivor takes before it kills,
    std::uint32_t spins;        ///< and how long it spins then
};

template <class Engine>
Plan draw_plan(Engine& random) {
    const auto below = [&](std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); };
    return {.seed = static_cast<std::uint32_t>(random()),
            .memory = below(2) == 0 ? Memory::Heap : Memory::Shareable,
            .reliability = below(2) == 0 ? Reliability::ReliableDelivery : Reliability::ReliableReception,
            .completions = below(200),
            .spins = below(100'000)};
}

std::uint32_t seed_of_this_run() {
    const char* given = std::getenv("VIADUCT_CRASH_SEED");
    return given != nullptr ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 0)) : std::random_device()();
}

/// Keeps both work queues of a port filled with random requests, and counts posted and completed ones.
class Stream {
public:
    Stream(Port& port, const Buffer& buffer, const RemoteAddress& remote, std::uint32_t seed)
        : port_(port), remote_(remote), random_(seed), receive_(buffer.sge(Received * area_size, area_size)) {
        remote_.address += Target * area_size;
        for (const std::size_t size : {std::size_t{8}, std::size_t{3000}, std::size_t{60'000}, area_size}) {
            sources_.push_back(buffer.sge(Source * area_size, size));
            reads_.push_back(buffer.sge(Read * area_size, size));
        }
    }

    void post() {
        for (; posted_receives_ < completed_receives_ + window; ++posted_receives_)
            port_.post(receive_of(posted_receives_, receive_));
        for (; posted_sends_ < completed_sends_ + window; ++posted_sends_) port_.post(next_request());
    }

    /// Takes the available completions. Throws if they are out of order.
    std::size_t poll() {
        std::vector<Completion> taken(2 * window);
        taken.resize(port_.send_queue->poll(taken));
        for (const Completion& completion : taken) {
            require(completion.queue() == QueueKind::Send, "a receive in the send queue");
            require(completion.context == completed_sends_++, "order of the sends");
        }
        std::vector<Completion> received(2 * window);
        received.resize(port_.receive_queue->poll(received));
        for (const Completion& completion : received) {
            require(completion.queue() == QueueKind::Receive, "a send in the receive queue");
            require(completion.context == completed_receives_++, "order of the receives");
        }
        return taken.size() + received.size();
    }

    bool settled() const { return completed_sends_ == posted_sends_ && completed_receives_ == posted_receives_; }

private:
    SendRequest next_request() {
        const std::size_t size = random_() % sources_.size();
        const Sge& source = sources_[size];
        switch (random_() % 4) {
            case 0: return write_of(posted_sends_, source, remote_);
            case 1: return read_of(posted_sends_, reads_[size], remote_);
            case 2: return with_immediate(write_of(posted_sends_, source, remote_), 1);
            default: return send_of(posted_sends_, source);
        }
    }

    Port& port_;
    RemoteAddress remote_;
    std::mt19937 random_;
    Sge receive_;
    std::vector<Sge> sources_;
    std::vector<Sge> reads_;
    std::uint64_t posted_sends_ = 0;
    std::uint64_t posted_receives_ = 0;
    std::uint64_t completed_sends_ = 0;
    std::uint64_t completed_receives_ = 0;
};

/// Streams until it is killed.
void live_dangerously(backend::Provider& provider, Wire& wire) {
    const auto plan = wire.receive<Plan>();
    Node node(provider);
    const Buffer buffer(node, area_count * area_size, plan.memory);
    Port port(node, {.reliability = plan.reliability});
    connect_to(port, node.address(service));
    wire.send(buffer.remote());
    Stream stream(port, buffer, wire.receive<RemoteAddress>(), plan.seed + 1);
    while (port.endpoint->state() == EndpointState::Connected) {
        stream.post();
        stream.poll();
    }
}

void survive(Node& node, Listener& listener, Child& victim, const Plan& plan) {
    const Buffer buffer(node, area_count * area_size, plan.memory);
    Port port(node, {.reliability = plan.reliability});
    victim.wire().send(plan);
    accept_on(port, listener);
    const auto remote = victim.wire().receive<RemoteAddress>();
    victim.wire().send(buffer.remote());

    Stream stream(port, buffer, remote, plan.seed);
    const Deadline deadline = patience();
    for (std::size_t taken = 0; taken < plan.completions; taken += stream.poll()) {
        stream.post();
        require(!deadline.passed(), "the stream has stopped");
    }
    for (std::uint32_t spin = 0; spin < plan.spins; ++spin) std::atomic_signal_fence(std::memory_order_seq_cst);
    victim.kill();

    require(port.event().kind == ConnectionEventKind::Lost, "the loss");
    while (!stream.settled()) {
        stream.poll();
        require(!deadline.passed(), "work that was never flushed");
    }
    require(port.quiet(), "silence after the loss");
    require(port.endpoint->state() == EndpointState::Disconnected, "the state after the loss");
    require(port.endpoint->outstanding(QueueKind::Send) == 0, "outstanding sends");
    require(port.endpoint->outstanding(QueueKind::Receive) == 0, "outstanding receives");
}

}  // namespace

TEST_CASE("crash: a peer killed at 200 random points does not harm the survivor") {
    backend::Provider* provider = must(find_provider("loopback"));
    const std::uint32_t seed = seed_of_this_run();
    WARN("VIADUCT_CRASH_SEED=" << seed);
    std::mt19937 random(seed);

    const Traces at_first = find_traces();
    const Script survivor = [&](Wire&) {
        // A process without a device forks the victims. Each waits for its round.
        std::vector<std::unique_ptr<Child>> victims;
        for (int round = 0; round < rounds; ++round)
            victims.push_back(std::make_unique<Child>([&](Wire& wire) { live_dangerously(*provider, wire); }));
        Node node(*provider);
        const auto listener = node.listen(service);
        Traces before;
        for (int round = 0; round < rounds; ++round) {
            const Plan plan = draw_plan(random);
            survive(node, *listener, *victims[static_cast<std::size_t>(round)], plan);
            // The first round may create resources that later rounds reuse.
            if (round == 0) before = find_traces();
            const std::string left = leaked_since(before);
            require(left.empty(), "round " + std::to_string(round) + " left " + left);
        }
    };
    {
        Child child(survivor);
        CHECK_NOTHROW(child.finish());
    }
    CHECK(leaked_since(at_first).empty());
}

// SPDX-License-Identifier: BSD-3-Clause
// Completion queues with so many endpoints that a poll does not look at each of them.
#include <array>
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "tests/contract/backends.hpp"
#include "tests/support/processes.hpp"

using namespace viaduct;
using namespace viaduct::testing;

namespace {

constexpr std::size_t members = 40;
constexpr std::uint64_t goodbye = ~std::uint64_t{0};

/// Connected endpoints that receive on one queue, and send on the same queue or on one of their own.
class Crowd final : EndpointObserver {
public:
    Crowd(backend::Provider& provider, bool one_queue)
        : node_(provider),
          receives_(node_.make_queue()),
          sends_(one_queue ? receives_ : node_.make_queue()),
          outgoing_(node_, 8 * members),
          incoming_(node_, 8 * members) {
        for (std::size_t i = 0; i < members; ++i) {
            endpoints_.push_back(must(Endpoint::create({.attributes = {.max_transfer_bytes = 8},
                                                        .domain = node_.domain,
                                                        .send_queue = sends_,
                                                        .receive_queue = receives_,
                                                        .context = i,
                                                        .observer = this})));
            post_receive(i);
        }
    }

    void connect(Wire& wire) {
        for (const auto& endpoint : endpoints_) {
            wire.await();
            must(endpoint->connect(parameters_for(node_, node_.address("many"))));
            await_established();
        }
    }
    void accept(Wire& wire) {
        const auto listener = node_.listen("many");
        for (const auto& endpoint : endpoints_) {
            wire.notify();
            must(endpoint->accept(*next_request(*listener), {}));
            await_established();
        }
    }

    void post_receive(std::size_t member) {
        const Sge piece = incoming_.sge(8 * member, 8);
        must(endpoints_[member]->post_receive(receive_of(member, piece)));
    }
    void send(std::size_t member, std::uint64_t value) {
        outgoing_.store(value, 8 * member);
        const Sge piece = outgoing_.sge(8 * member, 8);
        must(endpoints_[member]->post_send(send_of(member, piece)));
    }
    std::uint64_t value(std::size_t member) const { return incoming_.load(8 * member); }

    CompletionQueue& receives() const { return *receives_; }
    CompletionQueue& sends() const { return *sends_; }
    bool one_queue() const { return sends_ == receives_; }

    /// Returns the next receive, by polling or by sleeping. Counts the sends that completed before.
    Completion next(bool sleeps) {
        while (true) {
            const Completion completion = take_from(*receives_, sleeps);
            if (completion.queue() == QueueKind::Receive) return completion;
            ++sent;
        }
    }
    void await_sends(std::size_t count, bool sleeps) {
        for (; sent < count; ++sent)
            require(take_from(*sends_, sleeps).queue() == QueueKind::Send, "only sends are expected");
    }

    /// Receives a value, sends it back and posts the receive again. Returns false after the goodbye.
    bool echo(bool sleeps) {
        const auto member = static_cast<std::size_t>(next(sleeps).context);
        const std::uint64_t received = value(member);
        post_receive(member);
        send(member, received);
        if (one_queue()) return received != goodbye;
        await_sends(sent + 1, sleeps);
        return received != goodbye;
    }
    void call(std::size_t member, std::uint64_t number, bool sleeps) {
        send(member, number);
        require(next(sleeps).context == member && value(member) == number, "the answer");
        post_receive(member);
        if (!one_queue()) await_sends(sent + 1, sleeps);
    }

    std::size_t sent = 0;

private:
    static Completion take_from(CompletionQueue& queue, bool sleeps) {
        const Deadline deadline = patience();
        Completion completion;
        while ((sleeps ? queue.wait({&completion, 1}, deadline) : queue.poll({&completion, 1})) == 0)
            require(!deadline.passed(), "a completion");
        require(completion.code == CompletionCode::Success, "success");
        return completion;
    }
    void await_established() {
        const auto event = events_.wait(patience());
        require(event && event->kind == ConnectionEventKind::Established, "a connection");
    }
    void on_connection_event(const ConnectionEvent& event) noexcept override { events_.push(event); }

    EventQueue<ConnectionEvent> events_;
    Node node_;
    std::shared_ptr<CompletionQueue> receives_;
    std::shared_ptr<CompletionQueue> sends_;
    Buffer outgoing_;
    Buffer incoming_;
    std::vector<std::unique_ptr<Endpoint>> endpoints_;
};

/// Polls so often that idle endpoints are not looked at any more.
void poll_idly(Crowd& crowd) {
    Completion completion;
    for (int i = 0; i < 50'000; ++i) {
        require(crowd.receives().poll({&completion, 1}) == 0, "nothing is due");
        if (!crowd.one_queue()) require(crowd.sends().poll({&completion, 1}) == 0, "nothing is due");
    }
}

using Part = std::function<void(Crowd& crowd, Wire& wire, bool sleeps)>;

/// Runs the parts in two connected processes, with one completion queue and with two, polling and sleeping.
void run_each_way(const BackendUnderTest& backend, const Part& server, const Part& client) {
    for (const bool one_queue : {true, false})
        for (const bool sleeps : {false, true}) {
            CAPTURE(one_queue, sleeps);
            const auto keeper = backend.provider();
            const Script accepts = [&](Wire& wire) {
                Crowd crowd(*keeper, one_queue);
                crowd.accept(wire);
                server(crowd, wire, sleeps);
            };
            const Script connects = [&](Wire& wire) {
                Crowd crowd(*keeper, one_queue);
                crowd.connect(wire);
                client(crowd, wire, sleeps);
            };
            CHECK_NOTHROW(run_processes(accepts, connects));
        }
}

}  // namespace

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "many endpoints: messages of busy and idle ones arrive") {
    const Part server = [](Crowd& crowd, Wire& wire, bool sleeps) {
        while (crowd.echo(sleeps)) continue;
        wire.await();
    };
    const Part client = [](Crowd& crowd, Wire& wire, bool sleeps) {
        std::uint64_t number = 0;
        const auto in_turn = [&](std::size_t active, int rounds) {
            for (int round = 0; round < rounds; ++round)
                for (std::size_t i = 0; i < active; ++i) crowd.call(i, ++number, sleeps);
        };
        in_turn(members, 5);
        in_turn(1, 300);
        in_turn(3, 100);
        if (crowd.one_queue()) crowd.await_sends(number, sleeps);
        poll_idly(crowd);
        in_turn(members, 5);
        in_turn(members / 2, 30);
        crowd.call(members - 1, goodbye, sleeps);
        wire.notify();
    };
    run_each_way(backend, server, client);
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "many endpoints: sends are confirmed without an answer") {
    const Part server = [](Crowd& crowd, Wire& wire, bool) {
        for (std::size_t i = 0; i < 2 * members; ++i)
            crowd.post_receive(static_cast<std::size_t>(crowd.next(false).context));
        wire.await();
    };
    const Part client = [](Crowd& crowd, Wire& wire, bool sleeps) {
        for (std::size_t i = 0; i < members; ++i) {
            crowd.send(i, i);
            crowd.await_sends(i + 1, sleeps);
        }
        for (std::size_t i = 0; i < members; ++i) crowd.send(i, i);
        crowd.await_sends(2 * members, sleeps);
        wire.notify();
    };
    run_each_way(backend, server, client);
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses,
                 "many endpoints: a message to a busy one arrives although its consumer has stopped polling") {
    const auto keeper = provider();
    const Script server = [&](Wire& wire) {
        Crowd crowd(*keeper, true);
        crowd.accept(wire);
        while (crowd.echo(false)) continue;
        crowd.await_sends(101, false);
        wire.notify();
        const Deadline deadline = patience();
        while (crowd.value(0) != 4711) require(!deadline.passed(), "the message in memory");
        wire.await();
    };
    const Script client = [&](Wire& wire) {
        Crowd crowd(*keeper, true);
        crowd.connect(wire);
        for (int i = 0; i < 100; ++i) crowd.call(0, 1, false);
        crowd.call(0, goodbye, false);
        crowd.await_sends(101, false);
        wire.await();
        crowd.send(0, 4711);
        crowd.await_sends(102, false);
        wire.notify();
    };
    CHECK_NOTHROW(run_processes(server, client));
}

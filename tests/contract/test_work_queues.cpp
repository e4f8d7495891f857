// SPDX-License-Identifier: BSD-3-Clause
// Posting requests: unsignaled requests, depths of an endpoint, long lists of requests.
#include <array>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "core/base/internals.hpp"
#include "tests/contract/backends.hpp"
#include "tests/contract/two_processes.hpp"

using namespace viaduct;
using namespace viaduct::testing;
using Kind = ConnectionEventKind;

namespace {

/// Posts when the queue has room, without polling any completion queue.
void post_when_room(Endpoint& endpoint, const SendRequest& request) {
    const Deadline deadline = patience();
    Status status;
    while ((status = endpoint.post_send(request)).code() == Code::QueueFull && !deadline.passed())
        std::this_thread::yield();
    must(status);
}

/// Unreliable connections do not support reads, and flushes on them guarantee nothing.
bool possible(Opcode opcode, Reliability level) {
    return level != Reliability::Unreliable || (opcode != Opcode::RdmaRead && opcode != Opcode::Flush);
}

}  // namespace

TEST_CASE_METHOD(EveryBackend, "unsignaled: success leaves no completion and frees the entry") {
    for (const Reliability level : all_levels) {
        for (const Opcode opcode :
             {Opcode::Send, Opcode::RdmaWrite, Opcode::RdmaRead, Opcode::AtomicWrite, Opcode::Flush}) {
            if (!possible(opcode, level)) continue;
            CAPTURE(static_cast<int>(level), static_cast<int>(opcode));
            Connection connection(near, far, {.reliability = level, .send_depth = 2});
            const Buffer mine(near, 8);
            const Buffer theirs(far, 16);
            const Sge piece = mine.sge();
            const Sge into = theirs.sge(8, 8);
            const SendRequest quiet_one =
                unsignaled(opcode == Opcode::Flush
                               ? flush_of(1, theirs.remote(), 8)
                               : SendRequest{.opcode = opcode, .remote = theirs.remote(), .sges = {&piece, 1}});
            for (std::uint64_t round = 0; round < 50; ++round) {
                if (opcode == Opcode::Send) connection.server.post(receive_of(round, into));
                connection.client.post(quiet_one);
                connection.client.post(write_of(round, piece, theirs.remote()));
                const Completion completion = connection.client.sent();
                REQUIRE(completion.context == round);
                REQUIRE(completion.operation == CompletedOperation::RdmaWrite);
                REQUIRE(completion.code == CompletionCode::Success);
                REQUIRE(connection.client.endpoint->outstanding(QueueKind::Send) == 0);
                if (opcode == Opcode::Send) REQUIRE(connection.server.received().context == round);
            }
            CHECK(connection.client.quiet());
            CHECK(connection.server.quiet());
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "unsignaled: entries become free without polling") {
    constexpr std::uint64_t count = 1000;
    for (const Reliability level : reliable_levels) {
        CAPTURE(static_cast<int>(level));
        Connection connection(near, far, {.reliability = level, .send_depth = 4});
        const Buffer mine(near, 8);
        const Buffer theirs(far, 16);
        const Sge piece = mine.sge();
        const Sge into = theirs.sge(8, 8);
        auto& client = *connection.client.endpoint;
        for (std::uint64_t i = 0; i < count; ++i) connection.server.post(receive_of(i, into));
        for (std::uint64_t i = 0; i < count; ++i) {
            mine.store(i);
            post_when_room(client, unsignaled(write_of(i, piece, theirs.remote())));
            post_when_room(client, unsignaled(send_of(i, piece)));
        }
        const auto received = take(*connection.server.receive_queue, count);
        CHECK(received.back().context == count - 1);
        post_when_room(client, write_of(7, piece, theirs.remote()));
        CHECK(connection.client.sent().context == 7);
        CHECK(client.outstanding(QueueKind::Send) == 0);
        CHECK(theirs.load() == count - 1);
        CHECK(connection.client.quiet());
    }
}

TEST_CASE_METHOD(EveryBackend, "unsignaled: only signaled requests complete, in order") {
    Connection connection(near, far);
    const Buffer mine(near, 70'000);
    const Buffer theirs(far, 70'000);
    const Sge into = theirs.sge();
    constexpr std::uint64_t count = 60;
    for (std::uint64_t i = 0; i < count; ++i) {
        const Sge piece = mine.sge(0, i % 2 == 0 ? 8 : 70'000);
        connection.server.post(receive_of(i, into));
        const SendRequest request = send_of(i, piece);
        connection.client.post(i % 3 == 2 ? request : unsignaled(request));
    }
    const auto sent = take(*connection.client.send_queue, count / 3);
    for (std::uint64_t i = 0; i < sent.size(); ++i) CHECK(sent[i].context == 3 * i + 2);
    take(*connection.server.receive_queue, count);
    CHECK(connection.client.endpoint->outstanding(QueueKind::Send) == 0);
    CHECK(connection.client.quiet());
}

TEST_CASE_METHOD(EveryBackend, "unsignaled: success needs no room in the completion queue") {
    const auto queue = near.make_queue(1);
    Port client(near, {.queue = queue});
    Port server(far);
    join(client, server);
    const Buffer mine(near, 8);
    const Buffer theirs(far, 8);
    const Sge piece = mine.sge();
    client.post(write_of(0, piece, theirs.remote()));
    for (std::uint64_t i = 1; i <= 10; ++i) client.post(unsignaled(write_of(i, piece, theirs.remote())));
    CHECK(client.sent().context == 0);
    client.post(write_of(11, piece, theirs.remote()));
    CHECK(client.sent().context == 11);
    CHECK_FALSE(near.async.try_take().has_value());
}

TEST_CASE_METHOD(EveryBackend, "unsignaled: a failure and the requests it flushes are reported") {
    for (const Reliability level : all_levels) {
        CAPTURE(static_cast<int>(level));
        Connection connection(near, far, {.reliability = level, .context = 4});
        const Buffer mine(near, 8);
        const Buffer theirs(far, 8);
        const Sge piece = mine.sge();
        std::array<SendRequest, 4> batch;
        batch.fill(unsignaled(write_of(0, piece, theirs.remote())));
        for (std::size_t i = 0; i < batch.size(); ++i) batch[i].context = i;
        batch[1].fault = Internals::faulty(CompletionCode::LocalFormat);
        std::size_t posted = 0;
        must(connection.client.endpoint->post_send(batch, posted));
        const Completion failed = connection.client.sent();
        CHECK(failed.context == 1);
        CHECK(failed.endpoint_context == 4);
        CHECK(failed.code == CompletionCode::LocalFormat);
        CHECK(failed.bytes == 0);
        if (level != Reliability::Unreliable) {
            for (const std::uint64_t context : {2u, 3u}) {
                const Completion flushed = connection.client.sent();
                CHECK(flushed.context == context);
                CHECK(flushed.code == CompletionCode::Flushed);
            }
            CHECK(connection.client.lost());
        } else {
            connection.client.post(write_of(9, piece, theirs.remote()));
            CHECK(connection.client.sent().context == 9);
        }
        CHECK(connection.client.endpoint->outstanding(QueueKind::Send) == 0);
        CHECK(connection.client.quiet());
    }
}

TEST_CASE_METHOD(EveryBackend, "unsignaled: a refusal by the peer is reported") {
    Connection connection(near, far);
    const Buffer mine(near, 8);
    const Buffer closed(far, 8, Memory::Heap, {});
    const Sge piece = mine.sge();
    connection.client.post(unsignaled(write_of(5, piece, closed.remote())));
    const Completion completion = connection.client.sent();
    CHECK(completion.context == 5);
    CHECK(completion.code == CompletionCode::RemoteProtection);
}

TEST_CASE_METHOD(EveryBackend, "unsignaled: requests flushed by a disconnect or on an idle endpoint are reported") {
    Connection connection(near, far);
    const Buffer mine(near, 8);
    const Sge piece = mine.sge();
    for (std::uint64_t i = 0; i < 3; ++i)
        connection.client.post(unsignaled(send_of(i, piece)));  // they wait for
                                                                // receives
    CHECK(connection.client.quiet());
    CHECK(connection.client.endpoint->outstanding(QueueKind::Send) == 3);
    connection.client.endpoint->disconnect();
    connection.client.post(unsignaled(send_of(3, piece)));
    for (std::uint64_t i = 0; i < 4; ++i) {
        const Completion completion = connection.client.sent();
        CHECK(completion.context == i);
        CHECK(completion.code == CompletionCode::Flushed);
    }
    CHECK(connection.client.endpoint->outstanding(QueueKind::Send) == 0);
    CHECK(connection.client.quiet());
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "unsignaled: entries become free while the target process sleeps",
                 "[hosts]") {
    for (const Path& path : paths(backend)) {
        CAPTURE(path.name);
        constexpr std::uint64_t count = 500;
        const auto initiator = [&](Wire& wire) {
            prepare(path);
            End end(*provider(), {.send_depth = 4});
            const Buffer mine(end.node, 5000);
            const Sge from = mine.sge();
            end.call(wire);
            const auto target = wire.receive<RemoteAddress>();
            for (std::uint64_t i = 0; i < count; ++i) {
                post_when_room(*end.port.endpoint, unsignaled(write_of(i, from, target)));
                post_when_room(*end.port.endpoint, unsignaled(send_of(i, from)));
            }
            post_when_room(*end.port.endpoint, write_of(count, from, target));
            require(end.port.sent().context == count, "the only completion");
            require(end.port.endpoint->outstanding(QueueKind::Send) == 0, "room");
            wire.notify();
            wire.await();
        };
        const auto target = [&](Wire& wire) {
            prepare(path);
            End end(*provider());
            const Buffer theirs(end.node, 5000, path.memory);
            const Sge into = theirs.sge();
            for (std::uint64_t i = 0; i < count; ++i) end.port.post(receive_of(i, into));
            end.serve(wire);
            wire.send(theirs.remote());
            wire.await();
            take(*end.port.receive_queue, count);
            wire.notify();
        };
        CHECK_NOTHROW(run_processes(initiator, target));
    }
}

TEST_CASE_METHOD(EveryBackend, "depths: depths over the device's limit are refused, except the full depth",
                 "[no-peer]") {
    const auto limit = near.device->attributes().max_queue_depth;
    const auto queue = near.make_queue();
    const auto code = [&](std::uint32_t send_depth, std::uint32_t receive_depth) {
        return Endpoint::create({.attributes = {},
                                 .domain = near.domain,
                                 .send_queue = queue,
                                 .receive_queue = queue,
                                 .send_depth = send_depth,
                                 .receive_depth = receive_depth})
            .status()
            .code();
    };
    CHECK(code(limit, limit) == Code::Ok);
    CHECK(code(0, 1) == Code::Ok);
    CHECK(code(default_depth, default_depth) == Code::Ok);
    CHECK(code(limit + 1, 1) == Code::InvalidParameter);
    CHECK(code(1, limit + 1) == Code::InvalidParameter);
    CHECK_FALSE(queue->in_use());
}

TEST_CASE_METHOD(EveryBackend, "depths: queues accept as many requests as their depth and lose none") {
    const std::uint32_t depth = backend.by_device ? 500 : near.device->attributes().max_queue_depth;
    Port sender(near, {.queue = near.make_queue(depth), .send_depth = depth});
    Port receiver(far, {.queue = far.make_queue(depth), .receive_depth = depth});
    join(sender, receiver);
    const Buffer mine(near, 8);
    const Buffer theirs(far, 8);
    const Sge from = mine.sge();
    const Sge into = theirs.sge();
    for (std::uint64_t i = 0; i < depth; ++i) sender.post(send_of(i, from));
    CHECK(sender.endpoint->post_send(send_of(depth, from)).code() == Code::QueueFull);
    for (std::uint64_t i = 0; i < depth; ++i) receiver.post(receive_of(i, into));
    CHECK(receiver.endpoint->outstanding(QueueKind::Receive) == depth);
    CHECK(receiver.endpoint->post_receive(receive_of(depth, into)).code() == Code::QueueFull);
    for (std::uint64_t i = 0; i < depth; ++i) require(receiver.received().context == i, "a message");
    for (std::uint64_t i = 0; i < depth; ++i) require(sender.sent().context == i, "its send");
}

TEST_CASE_METHOD(EveryBackend, "depths: a queue of depth 0 is always full, and the other one works") {
    Port sender(near, {.receive_depth = 0});
    Port receiver(far, {.send_depth = 0});
    join(sender, receiver);
    const Buffer mine(near, 8);
    const Buffer theirs(far, 8);
    const Sge from = mine.sge();
    const Sge into = theirs.sge();
    CHECK(sender.endpoint->post_receive(receive_of(1, from)).code() == Code::QueueFull);
    CHECK(receiver.endpoint->post_send(send_of(1, into)).code() == Code::QueueFull);
    receiver.post(receive_of(2, into));
    sender.post(send_of(3, from));
    CHECK(sender.sent().code == CompletionCode::Success);
    CHECK(receiver.received().code == CompletionCode::Success);
}

TEST_CASE_METHOD(EveryBackend, "depths: a queue is full exactly at its depth and has room after a poll") {
    for (const Reliability level : all_levels) {
        CAPTURE(static_cast<int>(level));
        constexpr std::uint32_t send_depth = 5;
        constexpr std::uint32_t receive_depth = 3;
        Connection connection(near, far,
                              {.reliability = level, .send_depth = send_depth, .receive_depth = receive_depth});
        const Buffer mine(near, 8);
        const Buffer theirs(far, 16);
        const Sge piece = mine.sge();
        const Sge into = theirs.sge(8, 8);
        auto& client = *connection.client.endpoint;
        auto& server = *connection.server.endpoint;
        for (int round = 0; round < 3; ++round) {
            for (std::uint32_t i = 0; i < receive_depth; ++i) connection.server.post(receive_of(i, into));
            CHECK(server.post_receive(receive_of(0, into)).code() == Code::QueueFull);
            // Each completes immediately, but stays outstanding until its completion is polled.
            for (std::uint32_t i = 0; i < send_depth; ++i)
                connection.client.post(i < receive_depth ? send_of(i, piece) : write_of(i, piece, theirs.remote()));
            CHECK(client.post_send(send_of(0, piece)).code() == Code::QueueFull);
            CHECK(client.outstanding(QueueKind::Send) == send_depth);
            CHECK(connection.client.sent().context == 0);
            connection.client.post(write_of(send_depth, piece, theirs.remote()));
            CHECK(client.post_send(send_of(0, piece)).code() == Code::QueueFull);
            take(*connection.client.send_queue, send_depth);
            CHECK(client.outstanding(QueueKind::Send) == 0);
            take(*connection.server.receive_queue, receive_depth);
            CHECK(server.outstanding(QueueKind::Receive) == 0);
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "depths: a batch stops at the depth", "[no-peer]") {
    Port port(near, {.send_depth = 3, .receive_depth = 2});
    const Buffer mine(near, 8);
    const Sge piece = mine.sge();
    const std::vector<ReceiveRequest> receives(4, receive_of(1, piece));
    std::size_t posted = 0;
    CHECK(port.endpoint->post_receive(receives, posted).code() == Code::QueueFull);
    CHECK(posted == 2);
    const std::vector<SendRequest> sends(5, send_of(1, piece));  // not connected, so each completes immediately
    CHECK(port.endpoint->post_send(sends, posted).code() == Code::QueueFull);
    CHECK(posted == 3);
    CHECK(port.endpoint->outstanding(QueueKind::Send) == 3);
}

TEST_CASE_METHOD(EveryBackend,
                 "depths: waiting sends, including unsignaled ones, fill the queue until the peer is ready") {
    for (const bool signaled : {true, false}) {
        CAPTURE(signaled);
        Connection connection(near, far, {.send_depth = 3});
        const Buffer mine(near, 8);
        const Buffer theirs(far, 8);
        const Sge piece = mine.sge();
        const Sge into = theirs.sge();
        auto request = send_of(1, piece);
        request.signaled = signaled;
        for (int i = 0; i < 3; ++i) connection.client.post(request);
        CHECK(connection.client.endpoint->post_send(request).code() == Code::QueueFull);
        CHECK(connection.client.endpoint->outstanding(QueueKind::Send) == 3);
        for (std::uint64_t i = 0; i < 4; ++i) connection.server.post(receive_of(i, into));
        take(*connection.server.receive_queue, 3);
        if (signaled) take(*connection.client.send_queue, 3);
        post_when_room(*connection.client.endpoint, request);
        CHECK(connection.server.received().context == 3);
        CHECK(connection.server.quiet());
    }
}

TEST_CASE_METHOD(EveryBackend, "transfer size: an endpoint without a limit is compatible with every peer") {
    for (const std::uint32_t client_limit : {0u, 5000u}) {
        for (const std::uint32_t server_limit : {0u, 5000u}) {
            CAPTURE(client_limit, server_limit);
            const auto listener = far.listen("service");
            Port client(near, {.max_transfer_bytes = client_limit});
            Port server(far, {.max_transfer_bytes = server_limit});
            must(client.endpoint->connect(parameters_for(near, far.address("service"))));
            const auto request = next_request(*listener);
            CHECK(request->remote_attributes().max_transfer_bytes == client_limit);
            accept(server, *request);
            const auto event = client.event();
            REQUIRE(event.kind == Kind::Established);
            CHECK(event.remote.max_transfer_bytes == server_limit);

            const Buffer mine(near, 5000);
            const Buffer theirs(far, 5000);
            const Sge from = mine.sge();
            const Sge into = theirs.sge();
            fill(mine.bytes(), 5);
            server.post(receive_of(1, into));
            client.post(send_of(2, from));
            CHECK(client.sent().code == CompletionCode::Success);
            CHECK(server.received().bytes == 5000);
            CHECK(matches(theirs.bytes(), 5));
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "transfer size: peer-to-peer endpoints without a limit connect, too") {
    if (!near.device->attributes().capabilities.peer_to_peer) return;
    const auto ask = [](Port& port, const Node& other) {
        must(port.endpoint->connect({.model = ConnectParameters::Model::PeerToPeer,
                                     .local = port.node.address("meet"),
                                     .remote = other.address("meet"),
                                     .private_data = {},
                                     .deadline = patience()}));
    };
    Port one(near, {.max_transfer_bytes = 0});
    Port other(far, {.max_transfer_bytes = 1000});
    ask(one, far);
    ask(other, near);
    CHECK(one.event().kind == Kind::Established);
    CHECK(other.event().kind == Kind::Established);
}

TEST_CASE_METHOD(EveryBackend, "transfer size: without an endpoint limit, the device's limit applies") {
    Connection connection(near, far, {.max_transfer_bytes = 0});
    const auto& attributes = near.device->attributes();
    const Buffer mine(near, 16u << 20);
    const Buffer theirs(far, 8);
    // Uses the same memory repeatedly to reach the size.
    const std::size_t count = attributes.max_transfer_bytes / mine.bytes().size() + 1;
    REQUIRE(count <= attributes.max_sges);
    const std::vector<Sge> pieces(count, mine.sge());
    connection.client.post(SendRequest{.context = 1, .opcode = Opcode::Send, .sges = pieces});
    const Completion completion = connection.client.sent();
    CHECK(completion.context == 1);
    CHECK(completion.code == CompletionCode::LocalLength);
}

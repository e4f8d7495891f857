// SPDX-License-Identifier: BSD-3-Clause
// Properties of messages: size, SGEs, immediate data.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <random>
#include <vector>

#include "tests/contract/backends.hpp"
#include "tests/contract/two_processes.hpp"

using namespace viaduct;
using namespace viaduct::testing;
using namespace std::chrono_literals;

namespace {

/// Divides a buffer into `count` SGEs of different lengths in random order.
std::vector<Sge> cut(const Buffer& buffer, std::size_t count, std::uint32_t seed) {
    std::mt19937 random(seed);
    const std::size_t size = buffer.bytes().size();
    std::vector<std::size_t> marks{0, size};
    while (marks.size() < count + 1) marks.push_back(random() % (size + 1));
    std::ranges::sort(marks);
    std::vector<Sge> pieces;
    for (std::size_t i = 0; i < count; ++i) pieces.push_back(buffer.sge(marks[i], marks[i + 1] - marks[i]));
    std::ranges::shuffle(pieces, random);
    return pieces;
}

/// Fills the SGEs with the pattern, in their order.
void fill_pieces(const std::vector<Sge>& pieces, std::size_t total, std::uint32_t seed) {
    std::vector<std::byte> pattern(total);
    fill(pattern, seed);
    std::size_t done = 0;
    for (const Sge& piece : pieces) {
        std::copy_n(pattern.begin() + static_cast<std::ptrdiff_t>(done), piece.length,
                    static_cast<std::byte*>(piece.address));
        done += piece.length;
    }
}

bool pieces_match(const std::vector<Sge>& pieces, std::uint32_t seed) {
    std::vector<std::byte> bytes;
    for (const Sge& piece : pieces) {
        const auto* from = static_cast<const std::byte*>(piece.address);
        bytes.insert(bytes.end(), from, from + piece.length);
    }
    return matches(bytes, seed);
}

std::vector<std::size_t> sizes_for(const Node& node) {
    std::vector<std::size_t> sizes = sizes_around_thresholds(node);
    sizes.push_back(node.bytes_up_to(16u << 20));
    return sizes;
}

}  // namespace

TEST_CASE_METHOD(EveryBackend, "messages: sends of 1 byte to 16 MiB arrive complete") {
    for (const Memory memory : {Memory::Heap, Memory::Shareable}) {
        Connection connection(near, far);
        for (const std::size_t size : sizes_for(near)) {
            CAPTURE(static_cast<int>(memory), size);
            const auto seed = static_cast<std::uint32_t>(size);
            const Buffer mine(near, size, memory);
            const Buffer theirs(far, size + 1, memory);
            const Sge from = mine.sge();
            const Sge into = theirs.sge();
            fill(mine.bytes(), seed);
            connection.server.post(receive_of(1, into));
            connection.client.post(send_of(2, from));
            const Completion received = connection.server.received();
            REQUIRE(received.code == CompletionCode::Success);
            REQUIRE(received.bytes == size);
            REQUIRE(matches(theirs.bytes().first(size), seed));
            REQUIRE(theirs.bytes()[size] == std::byte{0});
            REQUIRE(connection.client.sent().bytes == size);
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "messages: RDMA of 1 byte to 16 MiB transfers all bytes") {
    for (const Memory memory : {Memory::Heap, Memory::Shareable}) {
        Connection connection(near, far);
        for (const std::size_t size : sizes_for(near)) {
            CAPTURE(static_cast<int>(memory), size);
            const auto seed = static_cast<std::uint32_t>(size);
            const Buffer mine(near, size);
            const Buffer back(near, size);
            const Buffer theirs(far, size + 2, memory);
            const Sge from = mine.sge();
            const Sge into = back.sge();
            fill(mine.bytes(), seed);
            connection.client.post(write_of(1, from, theirs.remote(1)));
            connection.client.post(read_of(2, into, theirs.remote(1)));
            const auto done = take(*connection.client.send_queue, 2);
            REQUIRE(done[0].code == CompletionCode::Success);
            REQUIRE(done[1].code == CompletionCode::Success);
            REQUIRE(done[1].bytes == size);
            REQUIRE(matches(theirs.bytes().subspan(1, size), seed));
            REQUIRE(theirs.bytes().front() == std::byte{0});
            REQUIRE(theirs.bytes().back() == std::byte{0});
            REQUIRE(matches(back.bytes(), seed));
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "messages: empty messages arrive, with and without SGEs") {
    Connection connection(near, far);
    const Buffer mine(near, 8);
    const Buffer theirs(far, 8);
    const Sge nothing = mine.sge(4, 0);
    const Sge nowhere{};
    const Sge into = theirs.sge();
    connection.server.post(receive_of(1, into));
    connection.server.post(ReceiveRequest{.context = 2});
    connection.server.post(ReceiveRequest{.context = 3});
    connection.server.post(receive_of(4, nowhere));
    connection.client.post(SendRequest{.context = 11});
    connection.client.post(send_of(12, nothing));
    connection.client.post(with_immediate(SendRequest{.context = 13}, 77));
    connection.client.post(send_of(14, nowhere));
    for (std::uint64_t i = 1; i <= 4; ++i) {
        const Completion received = connection.server.received();
        CHECK(received.code == CompletionCode::Success);
        CHECK(received.context == i);
        CHECK(received.bytes == 0);
        CHECK(received.with_immediate == (i == 3));
        CHECK(connection.client.sent().context == i + 10);
    }
}

TEST_CASE_METHOD(EveryBackend, "messages: lists of up to 252 SGEs are gathered and scattered") {
    const std::size_t most = near.pieces_up_to(252);
    Connection connection(near, far);
    for (const std::size_t size : {std::size_t{252}, std::size_t{30'000}, std::size_t{3u << 20}}) {
        for (const auto& [gathered, scattered] :
             {std::pair<std::size_t, std::size_t>{most, most}, {1, most}, {most, 1}, {17, most - 2}, {2, 3}}) {
            CAPTURE(size, gathered, scattered);
            const Buffer mine(near, size);
            const Buffer theirs(far, size);
            const auto from = cut(mine, gathered, 1);
            const auto into = cut(theirs, scattered, 2);
            fill_pieces(from, size, 3);
            connection.server.post(ReceiveRequest{.context = 1, .sges = into});
            connection.client.post(SendRequest{.context = 2, .sges = from});
            REQUIRE(connection.server.received().bytes == size);
            REQUIRE(pieces_match(into, 3));
            connection.client.sent();
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "messages: RDMA gathers its source and scatters read data") {
    for (const Memory memory : {Memory::Heap, Memory::Shareable}) {
        Connection connection(near, far);
        for (const std::size_t size : {std::size_t{252}, std::size_t{30'000}, std::size_t{3u << 20}}) {
            CAPTURE(static_cast<int>(memory), size);
            const Buffer mine(near, size);
            const Buffer back(near, size);
            const Buffer theirs(far, size, memory);
            const auto from = cut(mine, near.pieces_up_to(252), 4);
            const auto into = cut(back, near.pieces_up_to(252), 5);
            fill_pieces(from, size, 6);
            connection.client.post(
                SendRequest{.context = 1, .opcode = Opcode::RdmaWrite, .remote = theirs.remote(), .sges = from});
            connection.client.post(
                SendRequest{.context = 2, .opcode = Opcode::RdmaRead, .remote = theirs.remote(), .sges = into});
            take(*connection.client.send_queue, 2);
            REQUIRE(matches(theirs.bytes(), 6));
            REQUIRE(pieces_match(into, 6));
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "messages: more SGEs than the device allows are refused immediately") {
    Connection connection(near, far);
    const Buffer mine(near, 8);
    const std::vector<Sge> pieces(near.device->attributes().max_sges + 1, mine.sge(0, 0));
    auto& endpoint = *connection.client.endpoint;
    CHECK(endpoint.post_send(SendRequest{.context = 1, .sges = pieces}).code() == Code::InvalidParameter);
    CHECK(endpoint.post_receive(ReceiveRequest{.context = 1, .sges = pieces}).code() == Code::InvalidParameter);
    CHECK(endpoint.outstanding(QueueKind::Send) == 0);
    CHECK(endpoint.outstanding(QueueKind::Receive) == 0);
    CHECK(connection.client.quiet());
}

TEST_CASE_METHOD(EveryBackend, "messages: immediate data goes with sends and RDMA writes") {
    for (const std::size_t size : {std::size_t{0}, std::size_t{8}, std::size_t{100'000}}) {
        CAPTURE(size);
        Connection connection(near, far);
        const Buffer mine(near, size + 8);
        const Buffer theirs(far, size + 8);
        const Buffer target(far, size + 8);
        const Sge from = mine.sge(0, size);
        const Sge into = theirs.sge();
        fill(mine.bytes(), 8);
        for (std::uint64_t i = 1; i <= 3; ++i) connection.server.post(receive_of(i, into));
        connection.client.post(with_immediate(send_of(1, from), 0xdeadbeef));
        connection.client.post(with_immediate(write_of(2, from, target.remote()), 0));
        connection.client.post(send_of(3, from));

        const Completion first = connection.server.received();
        CHECK(first.operation == CompletedOperation::Receive);
        CHECK(first.with_immediate);
        CHECK(first.immediate == 0xdeadbeef);
        CHECK(first.bytes == size);
        const Completion second = connection.server.received();
        CHECK(second.operation == CompletedOperation::ReceiveRdmaWrite);
        CHECK(second.with_immediate);
        CHECK(second.immediate == 0);
        CHECK(second.bytes == size);
        CHECK(matches(target.bytes().first(size), 8));
        const Completion third = connection.server.received();
        CHECK_FALSE(third.with_immediate);
        take(*connection.client.send_queue, 3);
    }
}

TEST_CASE_METHOD(EveryBackend, "messages: an RDMA write without immediate data consumes no receive") {
    Connection connection(near, far);
    const Buffer mine(near, 8);
    const Buffer theirs(far, 8);
    const Sge from = mine.sge();
    const Sge into = theirs.sge();
    connection.server.post(receive_of(1, into));
    connection.client.post(write_of(1, from, theirs.remote()));
    connection.client.sent();
    CHECK(connection.server.quiet());
    CHECK(connection.server.endpoint->outstanding(QueueKind::Receive) == 1);
}

TEST_CASE_METHOD(EveryBackend, "messages: posting copies the SGE list of a request") {
    Connection connection(near, far);
    const Buffer mine(near, 8);
    const Buffer theirs(far, 8);
    mine.store(5);
    Sge into = theirs.sge();
    Sge from = mine.sge();
    connection.client.post(send_of(1, from));  // waits for a receive
    from = {};
    connection.server.post(receive_of(2, into));
    into = {};
    CHECK(connection.server.received().code == CompletionCode::Success);
    CHECK(theirs.load() == 5);
    CHECK(connection.client.sent().code == CompletionCode::Success);
}

TEST_CASE_METHOD(EveryBackend, "messages: a batch keeps its order") {
    constexpr std::uint64_t count = 300;
    Connection connection(near, far);
    const Buffer mine(near, 8 * count);
    const Buffer theirs(far, 8 * count);
    std::vector<Sge> from;
    std::vector<Sge> into;
    std::vector<SendRequest> sends;
    std::vector<ReceiveRequest> receives;
    for (std::uint64_t i = 0; i < count; ++i) {
        mine.store(i, 8 * i);
        from.push_back(mine.sge(8 * i, 8));
        into.push_back(theirs.sge(8 * i, 8));
    }
    for (std::uint64_t i = 0; i < count; ++i) {
        sends.push_back(send_of(i, from[i]));
        receives.push_back(receive_of(i, into[i]));
    }
    std::size_t posted = 0;
    must(connection.server.endpoint->post_receive(receives, posted));
    CHECK(posted == count);
    must(connection.client.endpoint->post_send(sends, posted));
    CHECK(posted == count);
    const auto received = take(*connection.server.receive_queue, count);
    for (std::uint64_t i = 0; i < count; ++i) {
        REQUIRE(received[i].context == i);
        REQUIRE(theirs.load(8 * i) == i);
    }
    take(*connection.client.send_queue, count);
}

TEST_CASE_METHOD(EveryBackend, "messages: both directions simultaneously") {
    constexpr std::uint64_t count = 200;
    Connection connection(near, far);
    const Buffer mine(near, 40'000);
    const Buffer theirs(far, 40'000);
    const Sge from_here = mine.sge(0, 20'000);
    const Sge into_here = mine.sge(20'000);
    const Sge from_there = theirs.sge(0, 20'000);
    const Sge into_there = theirs.sge(20'000);
    for (std::uint64_t i = 0; i < count; ++i) {
        connection.client.post(receive_of(i, into_here));
        connection.server.post(receive_of(i, into_there));
    }
    for (std::uint64_t i = 0; i < count; ++i) {
        connection.client.post(send_of(i, from_here));
        connection.server.post(send_of(i, from_there));
    }
    for (Port* port : {&connection.client, &connection.server}) {
        CHECK(take(*port->send_queue, count).back().context == count - 1);
        CHECK(take(*port->receive_queue, count).back().context == count - 1);
    }
}

TEST_CASE_METHOD(EveryBackend, "messages: large ones on many connections do not keep each other waiting") {
    constexpr std::size_t pairs = 20;  // together they offer more than a device keeps in memory of its own
    const std::size_t size = near.bytes_up_to(4u << 20);
    const Buffer mine(near, size);
    const Buffer theirs(far, size);
    const Sge from = mine.sge();
    const Sge into = theirs.sge();
    fill(mine.bytes(), 5);
    std::vector<std::unique_ptr<Connection>> connections;
    for (std::size_t i = 0; i < pairs; ++i) connections.push_back(std::make_unique<Connection>(near, far));
    for (const auto& connection : connections) connection->client.post(send_of(1, from));

    const auto expect = [&](Connection& connection) {
        std::ranges::fill(theirs.bytes(), std::byte{0});
        connection.server.post(receive_of(2, into));
        REQUIRE(connection.server.received().bytes == size);
        REQUIRE(matches(theirs.bytes(), 5));
        REQUIRE(connection.client.sent().code == CompletionCode::Success);
    };
    for (std::size_t i = pairs; i > 0; --i) expect(*connections[i - 1]);  // the others have no receives yet
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "messages: a burst arrives although its sender polls no more",
                 "[hosts]") {
    constexpr std::uint64_t count = 100;
    const auto receiver = [&](Wire& wire) {
        End end(*provider());
        const Buffer buffer(end.node, count * 8);
        for (std::uint64_t i = 0; i < count; ++i) {
            const Sge piece = buffer.sge(i * 8, 8);
            end.port.post(receive_of(i, piece));
        }
        end.serve(wire);
        for (std::uint64_t i = 0; i < count; ++i) {
            require(end.port.received().context == i, "in order");
            require(buffer.load(i * 8) == i, "what was sent");
        }
        wire.notify();
    };
    const auto sender = [&](Wire& wire) {
        End end(*provider());
        const Buffer buffer(end.node, count * 8);
        end.call(wire);
        // A backend may take a program that polls so much for one that goes on polling.
        for (const Deadline end_of_polling = Deadline::after(10ms); !end_of_polling.passed();)
            require(end.port.quiet(), "nothing to do yet");
        for (std::uint64_t i = 0; i < count; ++i) {
            buffer.store(i, i * 8);
            const Sge piece = buffer.sge(i * 8, 8);
            end.port.post(send_of(i, piece));
        }
        wire.await();
        for (std::uint64_t i = 0; i < count; ++i) require(end.port.sent().context == i, "all complete");
    };
    CHECK_NOTHROW(run_processes(receiver, sender));
}

TEST_CASE_METHOD(EveryBackend, "messages: a long one-way stream arrives complete although the receiver rarely polls") {
    if (backend.by_device) return;        // slots are counted in memory that processes share
    constexpr std::uint64_t batch = 300;  // more than can be in progress
    constexpr std::uint64_t total = 240 * batch;
    for (const RefusedWrite errors : {RefusedWrite::Silent, RefusedWrite::Reported}) {
        CAPTURE(static_cast<int>(errors));
        Connection connection(near, far, {.reliability = Reliability::ReliableDelivery, .refused_write = errors});
        auto& [client, server] = connection;
        const Buffer mine(near, batch * 8);
        const Buffer theirs(far, batch * 8);
        for (std::uint64_t first = 0; first < total; first += batch) {
            for (std::uint64_t i = 0; i < batch; ++i) {
                const Sge into = theirs.sge(i * 8, 8);
                server.post(receive_of(first + i, into));
            }
            for (std::uint64_t i = 0; i < batch; ++i) {
                mine.store(first + i, i * 8);
                const Sge from = mine.sge(i * 8, 8);
                client.post(send_of(first + i, from));
            }
            for (std::uint64_t i = 0; i < batch; ++i) {
                const Completion received = server.received();
                REQUIRE(received.context == first + i);
                REQUIRE(theirs.load(i * 8) == first + i);
                REQUIRE(client.sent().context == first + i);
            }
        }
    }
}

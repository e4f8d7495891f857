// SPDX-License-Identifier: BSD-3-Clause
// Errors of requests at each reliability level (guide, sections 1.2.3 and 3.8).
#include <array>
#include <catch2/catch.hpp>
#include <vector>

#include "core/base/internals.hpp"
#include "tests/contract/backends.hpp"

using namespace viaduct;
using namespace viaduct::testing;
using Kind = ConnectionEventKind;

namespace {

/// A new connection for each failure, with memory on both sides.
struct Stage {
    Stage(Node& near, Node& far, Reliability level, Access server_access = {.remote_write = true, .remote_read = true})
        : reliability(level),
          client(near, {.reliability = level,
                        .receiver_not_ready = ReceiverNotReady::Break,
                        .refused_write = RefusedWrite::Silent,
                        .context = 1}),
          server(far, {.reliability = level,
                       .receiver_not_ready = ReceiverNotReady::Break,
                       .refused_write = RefusedWrite::Silent,
                       .access = server_access,
                       .context = 2}),
          mine(near, 64),
          theirs(far, 64) {
        join(client, server);
    }

    bool reliable() const { return reliability != Reliability::Unreliable; }

    /// Returns the sender's completion code for a failure at the peer.
    CompletionCode told(CompletionCode code) const {
        return reliability == Reliability::ReliableReception ? code : CompletionCode::Success;
    }

    /// Checks that a reliable connection is broken at both ends, and that an unreliable one still works. `by_peer`: the
    /// server is told that the client has caused the loss.
    void check_aftermath(bool by_peer = false) {
        if (reliable()) {
            CHECK(client.lost());
            CHECK((by_peer ? server.lost_peer() : server.lost()));
            CHECK(client.endpoint->state() == EndpointState::Disconnected);
        } else {
            const Sge from = mine.sge();
            const Sge into = theirs.sge();
            server.post(receive_of(90, into));
            client.post(send_of(91, from));
            CHECK(client.sent().code == CompletionCode::Success);
            CHECK(server.received().code == CompletionCode::Success);
        }
        CHECK(client.quiet());
        CHECK(server.quiet());
    }

    Reliability reliability;
    Port client;
    Port server;
    Buffer mine;
    Buffer theirs;
};

}  // namespace

TEST_CASE_METHOD(EveryBackend, "errors: a local fault completes its request, and breaks reliable connections") {
    const testing::Buffer other_buffer(near, 64);
    const auto other_domain = must(ProtectionDomain::create(near.device));
    char raw[64] = {};
    const auto foreign = must(MemoryRegion::create(other_domain, raw, sizeof raw, {}));
    for (const Reliability level : all_levels) {
        const auto check = [&](const char* what, const auto& make_piece, CompletionCode expected) {
            CAPTURE(what, static_cast<int>(level));
            Stage stage(near, far, level);
            const Sge piece = make_piece(stage);
            const Sge into = stage.theirs.sge();
            stage.server.post(receive_of(5, into));
            stage.client.post(send_of(7, piece));
            const Completion completion = stage.client.sent();
            CHECK(completion.code == expected);
            CHECK(completion.context == 7);
            CHECK(completion.endpoint_context == 1);
            CHECK(completion.bytes == 0);
            if (stage.reliable()) {
                CHECK(stage.server.received().code == CompletionCode::Flushed);
                stage.check_aftermath();
            } else {
                CHECK(stage.client.endpoint->state() == EndpointState::Connected);
                CHECK(stage.server.endpoint->outstanding(QueueKind::Receive) == 1);
            }
        };
        check(
            "unknown key",
            [](Stage& stage) {
                Sge piece = stage.mine.sge();
                piece.key ^= 0x5a5a5a5a;
                return piece;
            },
            CompletionCode::LocalProtection);
        check(
            "key 0",
            [](Stage& stage) {
                Sge piece = stage.mine.sge();
                piece.key = 0;
                return piece;
            },
            CompletionCode::LocalProtection);
        check(
            "past the end",
            [](Stage& stage) {
                Sge piece = stage.mine.sge();
                piece.length += 1;
                return piece;
            },
            CompletionCode::LocalProtection);
        check(
            "before the begin",
            [](Stage& stage) {
                Sge piece = stage.mine.sge();
                piece.address = static_cast<std::byte*>(piece.address) - 1;
                return piece;
            },
            CompletionCode::LocalProtection);
        check(
            "region of another address",
            [&](Stage& stage) {
                Sge piece = stage.mine.sge();
                piece.key = other_buffer.region().key();
                return piece;
            },
            CompletionCode::LocalProtection);
        check(
            "region of another protection domain",
            [&](Stage&) { return Sge{.address = raw, .key = foreign->key(), .length = sizeof raw}; },
            CompletionCode::LocalProtection);
    }
}

TEST_CASE_METHOD(EveryBackend, "errors: a deregistered region protects the memory") {
    Stage stage(near, far, Reliability::ReliableReception);
    const Sge into = stage.theirs.sge();
    Sge piece;
    {
        const Buffer gone(near, 64);
        piece = gone.sge();
        stage.server.post(receive_of(1, into));
        stage.client.post(send_of(1, piece));
        CHECK(stage.client.sent().code == CompletionCode::Success);
    }
    stage.server.post(receive_of(2, into));
    stage.client.post(send_of(2, piece));
    CHECK(stage.client.sent().code == CompletionCode::LocalProtection);
}

TEST_CASE_METHOD(EveryBackend, "errors: a region moved to another protection domain is unusable in the old one") {
    Stage stage(near, far, Reliability::ReliableReception);
    const Sge into = stage.theirs.sge();
    const auto other = must(ProtectionDomain::create(near.device));
    const Buffer moved(near, 64);
    const Sge before = moved.sge();
    stage.server.post(receive_of(1, into));
    stage.client.post(send_of(1, before));
    CHECK(stage.client.sent().code == CompletionCode::Success);
    must(moved.region().modify(other, {}));
    const Sge after = moved.sge();
    stage.server.post(receive_of(2, into));
    stage.client.post(send_of(2, after));
    CHECK(stage.client.sent().code == CompletionCode::LocalProtection);
}

TEST_CASE_METHOD(EveryBackend, "errors: a message over the maximum transfer size is refused") {
    Port client(near, {.max_transfer_bytes = 100});
    Port server(far, {.max_transfer_bytes = 100});
    join(client, server);
    const Buffer mine(near, 101);
    const Buffer theirs(far, 101);
    const Sge into = theirs.sge();
    const Sge fits = mine.sge(0, 100);
    const Sge exceeds = mine.sge();
    server.post(receive_of(1, into));
    client.post(send_of(2, fits));
    CHECK(client.sent().code == CompletionCode::Success);
    CHECK(server.received().bytes == 100);
    client.post(send_of(3, exceeds));
    CHECK(client.sent().code == CompletionCode::LocalLength);
    CHECK(client.lost());
}

TEST_CASE_METHOD(EveryBackend, "errors: a fault found by the front-end is reported in order") {
    for (const Reliability level : all_levels) {
        for (const auto& [opcode, fault] : {std::pair{Opcode::Send, CompletionCode::LocalFormat},
                                            {Opcode::Send, CompletionCode::LocalLength},
                                            {Opcode::AtomicWrite, CompletionCode::LocalFormat}}) {
            CAPTURE(static_cast<int>(level), static_cast<int>(opcode), static_cast<int>(fault));
            Stage stage(near, far, level);
            const Sge into = stage.theirs.sge();
            const Sge from = stage.mine.sge();
            stage.server.post(receive_of(1, into));
            stage.client.post(send_of(1, from));
            stage.client.post(SendRequest{.context = 2, .opcode = opcode, .fault = Internals::faulty(fault)});
            CHECK(stage.client.sent().code == CompletionCode::Success);
            const Completion faulty = stage.client.sent();
            CHECK(faulty.context == 2);
            CHECK(faulty.code == fault);
            CHECK(stage.server.received().code == CompletionCode::Success);
            stage.check_aftermath();
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "errors: after a fault on a reliable connection, later requests are flushed") {
    Stage stage(near, far, Reliability::ReliableDelivery);
    const Sge here = stage.mine.sge();
    const Sge there = stage.theirs.sge();
    stage.client.post(receive_of(10, here));
    stage.server.post(receive_of(20, there));
    std::vector<SendRequest> batch(4, send_of(0, here));
    batch[1].fault = Internals::faulty(CompletionCode::LocalFormat);
    for (std::size_t i = 0; i < batch.size(); ++i) batch[i].context = i;
    std::size_t posted = 0;
    must(stage.client.endpoint->post_send(batch, posted));
    CHECK(posted == batch.size());
    const auto sent = take(*stage.client.send_queue, batch.size());
    CHECK(sent[0].code == CompletionCode::Success);
    CHECK(sent[1].code == CompletionCode::LocalFormat);
    CHECK(sent[2].code == CompletionCode::Flushed);
    CHECK(sent[3].code == CompletionCode::Flushed);
    CHECK(stage.client.received().code == CompletionCode::Flushed);
    CHECK(stage.server.received().code == CompletionCode::Success);
    stage.check_aftermath();
}

TEST_CASE_METHOD(EveryBackend, "errors: an unsuitable receive fails, and the sender may be informed") {
    for (const Reliability level : all_levels) {
        const auto check = [&](const char* what, const auto& spoil, CompletionCode expected) {
            CAPTURE(what, static_cast<int>(level));
            Stage stage(near, far, level);
            Sge into = stage.theirs.sge();
            ReceiveRequest request = receive_of(5, into);
            spoil(request, into);
            stage.server.post(request);
            const Sge from = stage.mine.sge();
            fill(stage.mine.bytes(), 1);
            stage.client.post(send_of(6, from));
            const Completion received = stage.server.received();
            CHECK(received.code == expected);
            CHECK(received.context == 5);
            CHECK(received.bytes == 0);
            const CompletionCode sent = stage.client.sent().code;
            if (expected == CompletionCode::LocalLength && level == Reliability::ReliableReception)
                CHECK(says_too_long(sent));
            else
                CHECK(sent == stage.told(CompletionCode::RemoteOperation));
            if (stage.reliable() || far.able().survives_bad_receives)
                stage.check_aftermath();
            else
                CHECK(stage.server.lost());
        };
        check(
            "too small", [](ReceiveRequest&, Sge& into) { into.length -= 1; }, CompletionCode::LocalLength);
        check(
            "no pieces", [](ReceiveRequest& request, Sge&) { request.sges = {}; }, CompletionCode::LocalLength);
        check(
            "unknown key", [](ReceiveRequest&, Sge& into) { into.key ^= 0x5a5a5a5a; }, CompletionCode::LocalProtection);
        check(
            "fault",
            [](ReceiveRequest& request, Sge&) { request.fault = Internals::faulty(CompletionCode::LocalFormat); },
            CompletionCode::LocalFormat);
    }
}

TEST_CASE_METHOD(EveryBackend, "errors: how a failed receive is reported to the sender does not depend on the size") {
    for (const std::size_t size : sizes_around_thresholds(near))
        for (const Reliability level : reliable_levels)
            for (const RefusedWrite errors : {RefusedWrite::Reported, RefusedWrite::Silent})
                for (const bool too_long : {true, false}) {
                    CAPTURE(size, static_cast<int>(level), static_cast<int>(errors), too_long);
                    Connection connection(near, far, {.reliability = level, .refused_write = errors});
                    auto& [client, server] = connection;
                    const testing::Buffer mine(near, size);
                    const testing::Buffer theirs(far, size);
                    Sge into = theirs.sge(0, too_long ? size - 1 : size);
                    if (!too_long) into.key ^= 0x5a5a5a5a;
                    const Sge from = mine.sge();
                    server.post(receive_of(1, into));
                    client.post(send_of(2, from));
                    CHECK(server.received().code ==
                          (too_long ? CompletionCode::LocalLength : CompletionCode::LocalProtection));
                    const bool told = level == Reliability::ReliableReception || errors == RefusedWrite::Reported;
                    const CompletionCode sent = client.sent().code;
                    if (told && too_long)
                        CHECK(says_too_long(sent));
                    else
                        CHECK(sent == (told ? CompletionCode::RemoteOperation : CompletionCode::Success));
                    CHECK(server.lost());
                    CHECK(client.lost());
                }

    // If the program is not told, the refusal is not taken for that of a message behind it, which is still under way.
    const std::size_t more_than_is_buffered = near.bytes_up_to(4u << 20);
    Connection connection(near, far,
                          {.reliability = Reliability::ReliableDelivery, .refused_write = RefusedWrite::Silent});
    const Buffer mine(near, more_than_is_buffered);
    const Buffer theirs(far, more_than_is_buffered);
    const Sge too_small = theirs.sge(0, 4);
    const Sge large_enough = theirs.sge();
    const Sge head = mine.sge(0, 8);
    const Sge all = mine.sge();
    connection.server.post(receive_of(1, too_small));
    connection.server.post(receive_of(2, large_enough));
    std::size_t posted = 0;
    must(connection.client.endpoint->post_send(std::array{send_of(3, head), send_of(4, all)}, posted));
    CHECK(connection.client.sent().code == CompletionCode::Success);
    const Completion unsent = connection.client.sent();
    CHECK(unsent.code != CompletionCode::Success);
    CHECK(unsent.bytes == 0);
    CHECK(connection.server.received().code == CompletionCode::LocalLength);
    CHECK(connection.server.received().code == CompletionCode::Flushed);
}

TEST_CASE_METHOD(EveryBackend, "errors: RDMA that the target does not allow is refused, and the target is informed") {
    const auto other_domain = must(ProtectionDomain::create(far.device));
    char raw[64] = {};
    const auto foreign = must(MemoryRegion::create(other_domain, raw, sizeof raw, {true, true}));
    const Buffer closed(far, 64, Memory::Heap, {});
    for (const Reliability level : all_levels) {
        for (const Opcode opcode : {Opcode::RdmaWrite, Opcode::RdmaRead, Opcode::AtomicWrite}) {
            const bool reads = opcode == Opcode::RdmaRead;
            if (reads && level == Reliability::Unreliable) continue;
            const auto check = [&](const char* what, const auto& target, Access access = {true, true}) {
                CAPTURE(what, static_cast<int>(level), static_cast<int>(opcode));
                if (level == Reliability::Unreliable) access.remote_read = false;
                Stage stage(near, far, level, access);
                const Sge piece = stage.mine.sge(0, 8);
                fill(stage.mine.bytes(), 1);
                const RemoteAddress remote = target(stage);
                stage.client.post(SendRequest{.context = 3, .opcode = opcode, .remote = remote, .sges = {&piece, 1}});
                const Completion completion = stage.client.sent();
                // Atomic writes may be answered at every level, like reads.
                const auto code = CompletionCode::RemoteProtection;
                const auto expected = reads ? code : stage.told(code);
                CHECK((completion.code == expected || (opcode == Opcode::AtomicWrite && completion.code == code)));
                CHECK(
                    far.hears(reads ? AsyncEventKind::RemoteReadProtection : AsyncEventKind::RemoteWriteProtection, 2));
                CHECK(stage.theirs.load() == 0);
                stage.check_aftermath();
            };
            check("unknown key", [](Stage& stage) {
                RemoteAddress remote = stage.theirs.remote();
                remote.key ^= 0x5a5a5a5a;
                return remote;
            });
            check("key 0", [](Stage& stage) {
                RemoteAddress remote = stage.theirs.remote();
                remote.key = 0;
                return remote;
            });
            check("past the end", [](Stage& stage) { return stage.theirs.remote(64); });
            check("wrapping", [](Stage& stage) {
                RemoteAddress remote = stage.theirs.remote();
                remote.address = ~std::uint64_t{7};
                return remote;
            });
            check("region without the right", [&](Stage&) { return closed.remote(); });
            check("region of another protection domain", [&](Stage&) {
                return RemoteAddress{.address = reinterpret_cast<std::uintptr_t>(raw), .key = foreign->key()};
            });
            check(
                "endpoint without the right", [](Stage& stage) { return stage.theirs.remote(); }, Access{});
        }
    }
    CHECK(std::ranges::all_of(raw, [](char byte) { return byte == 0; }));
}

TEST_CASE_METHOD(EveryBackend, "errors: why a connection is lost does not depend on who polls first") {
    for (const bool long_message : {false, true}) {
        for (const bool polls_first : {false, true}) {
            CAPTURE(long_message, polls_first);
            Stage stage(near, far, Reliability::ReliableReception, {});
            const Sge from = stage.mine.sge();
            const Sge into = stage.theirs.sge(0, 8);
            stage.server.post(receive_of(1, into));
            if (!long_message)
                stage.client.post(write_of(2, from, stage.theirs.remote()));
            else
                stage.client.post(send_of(2, from));
            const auto completions = [&] {
                CHECK(stage.client.sent().code != CompletionCode::Success);
                CHECK(stage.server.received().code ==
                      (long_message ? CompletionCode::LocalLength : CompletionCode::Flushed));
            };
            if (polls_first) completions();
            const ConnectionEvent at_client = stage.client.event();
            const ConnectionEvent at_server = stage.server.event();
            if (!polls_first) completions();
            CHECK(at_server.kind == Kind::Lost);
            CHECK(at_server.reason == (long_message ? Code::Ok : Code::Unreachable));
            if (at_client.kind == Kind::Disconnected) continue;  // RDMA: the disconnect overtook the refusal
            CHECK(at_client.kind == Kind::Lost);
            CHECK(at_client.reason == Code::Ok);
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "errors: a refused RDMA write with immediate data fails the receive it consumed") {
    for (const Reliability level : all_levels) {
        if (level == Reliability::Unreliable && !far.able().tells_target) continue;  // the write is lost
        CAPTURE(static_cast<int>(level));
        Stage stage(near, far, level);
        const Sge from = stage.mine.sge();
        const Sge into = stage.theirs.sge();
        stage.server.post(receive_of(5, into));
        RemoteAddress remote = stage.theirs.remote();
        remote.key ^= 0x5a5a5a5a;
        stage.client.post(with_immediate(write_of(6, from, remote), 1));
        const Completion received = stage.server.received();
        CHECK(received.context == 5);
        if (far.able().tells_target) {
            CHECK(received.operation == CompletedOperation::ReceiveRdmaWrite);
            CHECK((received.code == CompletionCode::LocalProtection ||
                   received.code == CompletionCode::RemoteProtection));
        } else {
            CHECK((received.code == CompletionCode::LocalProtection || received.code == CompletionCode::Flushed));
        }
        CHECK(stage.client.sent().code == stage.told(CompletionCode::RemoteProtection));
        stage.check_aftermath(far.able().tells_target);
        CHECK_FALSE(far.async.try_take().has_value());
    }
}

TEST_CASE_METHOD(EveryBackend, "errors: a refused write is reported as the initiator's attributes say") {
    for (const Reliability level : all_levels) {
        for (const RefusedWrite choice : {RefusedWrite::Reported, RefusedWrite::Silent}) {
            for (const bool immediate : {false, true}) {
                CAPTURE(static_cast<int>(level), static_cast<int>(choice), immediate);
                const bool told = level == Reliability::ReliableReception ||
                                  (level == Reliability::ReliableDelivery && choice == RefusedWrite::Reported);
                // Only the initiator's attribute counts; the target has the other value.
                const auto other = choice == RefusedWrite::Silent ? RefusedWrite::Reported : RefusedWrite::Silent;
                Port client(near, {.reliability = level, .refused_write = choice});
                Port server(far, {.reliability = level, .refused_write = other});
                join(client, server);
                const Buffer mine(near, 64);
                const Buffer closed(far, 64, Memory::Heap, {});
                const Sge from = mine.sge();
                const Sge into = closed.sge();
                server.post(receive_of(1, into));
                const SendRequest request = write_of(2, from, closed.remote());
                client.post(immediate ? with_immediate(request, 5) : request);
                const Completion completion = client.sent();
                CHECK(completion.context == 2);
                CHECK(completion.code == (told ? CompletionCode::RemoteProtection : CompletionCode::Success));
                if (level != Reliability::Unreliable) {
                    CHECK(client.lost());
                    CHECK(server.lost());
                }
            }
        }
    }

    // A silent refusal is not taken for that of a request behind it, which the peer has to answer.
    for (const Opcode opcode : {Opcode::AtomicWrite, Opcode::RdmaRead}) {
        CAPTURE(static_cast<int>(opcode));
        Connection connection(near, far,
                              {.reliability = Reliability::ReliableDelivery, .refused_write = RefusedWrite::Silent});
        const Buffer mine(near, 64);
        const Buffer closed(far, 64, Memory::Heap, {});
        const Buffer theirs(far, 64);
        const Sge from = mine.sge();
        const Sge word = mine.sge(0, 8);
        std::size_t posted = 0;
        must(connection.client.endpoint->post_send(
            std::array{write_of(1, from, closed.remote()),
                       SendRequest{.context = 2, .opcode = opcode, .remote = theirs.remote(), .sges = {&word, 1}}},
            posted));
        CHECK(connection.client.sent().code == CompletionCode::Success);
        CHECK(connection.client.sent().code == CompletionCode::Flushed);
        CHECK(connection.client.lost());
    }
}

TEST_CASE_METHOD(EveryBackend, "errors: an unsignaled write that is refused silently leaves no completion") {
    Connection connection(near, far,
                          {.reliability = Reliability::ReliableDelivery, .refused_write = RefusedWrite::Silent});
    const Buffer mine(near, 64);
    const Buffer closed(far, 64, Memory::Heap, {});
    const Sge from = mine.sge();
    connection.client.post(unsignaled(write_of(1, from, closed.remote())));
    CHECK(connection.client.lost());
    CHECK(connection.client.quiet());
    CHECK(connection.client.endpoint->outstanding(QueueKind::Send) == 0);
}

TEST_CASE_METHOD(EveryBackend, "errors: an RDMA write with immediate data needs a receive") {
    for (const Reliability level : all_levels) {
        CAPTURE(static_cast<int>(level));
        Stage stage(near, far, level);
        const Sge from = stage.mine.sge();
        stage.client.post(with_immediate(write_of(6, from, stage.theirs.remote()), 1));
        CHECK(stage.client.sent().code == stage.told(CompletionCode::RemoteOperation));
        CHECK(far.hears(AsyncEventKind::ReceiveQueueEmpty, 2));
        stage.check_aftermath();
    }
}

TEST_CASE_METHOD(EveryBackend, "errors: unreliable connections do not support RDMA read") {
    Stage stage(near, far, Reliability::Unreliable);
    const Sge piece = stage.mine.sge();
    stage.client.post(read_of(1, piece, stage.theirs.remote()));
    CHECK(stage.client.sent().code == CompletionCode::LocalFormat);
    stage.check_aftermath();
    const auto queue = near.make_queue();
    const auto endpoint = Endpoint::create({.attributes = {.reliability = Reliability::Unreliable,
                                                           .max_transfer_bytes = 100,
                                                           .access = {.remote_read = true}},
                                            .domain = near.domain,
                                            .send_queue = queue,
                                            .receive_queue = queue});
    CHECK(endpoint.status().code() == Code::InvalidRdmaRead);
}

TEST_CASE_METHOD(EveryBackend, "errors: fail() flushes this side and breaks the peer") {
    Connection connection(near, far);
    const Buffer mine(near, 8);
    const Buffer theirs(far, 8);
    const Sge here = mine.sge();
    const Sge there = theirs.sge();
    connection.client.post(receive_of(1, here));
    connection.server.post(receive_of(2, there));
    Internals::fail(*connection.client.endpoint);
    CHECK(connection.client.received().code == CompletionCode::Flushed);
    CHECK(connection.server.received().code == CompletionCode::Flushed);
    CHECK(connection.server.lost());
    connection.client.post(receive_of(3, here));
    CHECK(connection.client.received().code == CompletionCode::Flushed);
    connection.client.post(send_of(4, here));
    CHECK(connection.client.sent().code == CompletionCode::Flushed);
    CHECK(connection.client.quiet());
    CHECK(connection.server.quiet());
}

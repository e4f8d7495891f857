// SPDX-License-Identifier: BSD-3-Clause
// Memory windows: messages that invalidate a window of the receiver.
#include "tests/contract/windows.hpp"

using namespace viaduct;
using namespace viaduct::testing;

namespace {

SendRequest invalidate_of(std::uint64_t context, const Sge& piece, std::uint32_t key) {
    SendRequest request = send_of(context, piece);
    request.opcode = Opcode::SendInvalidate;
    request.remote.key = key;
    return request;
}

}  // namespace

TEST_CASE_METHOD(EveryBackend, "windows: a send with invalidate ends the receiver's binding") {
    if (!near.able().invalidates) return;
    for (const std::size_t size : {0u, 8u, 1000u, 3000u, 100'000u}) {
        for (const bool shared : {false, true}) {
            if (shared && !far.able().shared_receive_queues) continue;
            CAPTURE(size, shared);
            const auto receives = shared ? far.make_shared_receives() : nullptr;
            Stage stage(near, far, WindowScope::Endpoint, {.shared_receives = nullptr});
            Port client(near);
            Port server(far, {.shared_receives = receives});
            join(client, server);
            const Buffer from(near, size + 1);
            const Buffer into(far, size + 1);
            fill(from.bytes(), 4);
            const Sge message = from.sge(0, size);
            const Sge landing = into.sge();
            for (std::uint64_t round = 0; round < 3; ++round) {
                must(server.endpoint->bind(*stage.window, part_of(1, stage.theirs, 64, 64)));
                CHECK(server.sent().code == CompletionCode::Success);
                const RemoteAddress shown = stage.at(64);
                CHECK(stage.write(client, shown) == CompletionCode::Success);
                if (shared)
                    post(*receives, receive_of(round, landing));
                else
                    server.post(receive_of(round, landing));
                client.post(invalidate_of(3, message, shown.key));
                const Completion received = server.received();
                CHECK(received.code == CompletionCode::Success);
                CHECK(received.operation == CompletedOperation::Receive);
                CHECK(received.context == round);
                CHECK(received.bytes == size);
                CHECK(received.invalidated);
                CHECK(!received.with_immediate);
                CHECK(received.immediate == shown.key);
                CHECK(matches(into.bytes().first(size), 4));
                const Completion sent = client.sent();
                CHECK(sent.code == CompletionCode::Success);
                CHECK(sent.operation == CompletedOperation::Send);
                CHECK(sent.bytes == size);
                if (round == 2) CHECK(stage.write(client, shown) == CompletionCode::RemoteProtection);
            }
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "windows: requests after a send with invalidate find the binding ended") {
    if (!near.able().invalidates) return;
    Stage stage(near, far, WindowScope::Endpoint);
    const RemoteAddress shown = stage.show();
    const Sge piece = stage.mine.sge(0, 8);
    const Sge landing = stage.theirs.sge(0, 8);
    stage.client().post(write_of(1, piece, shown));
    stage.client().post(invalidate_of(2, piece, shown.key));
    stage.client().post(write_of(3, piece, shown));
    stage.server().post(receive_of(4, landing));
    CHECK(stage.client().sent().code == CompletionCode::Success);
    CHECK(stage.client().sent().code == CompletionCode::Success);
    CHECK(stage.client().sent().code == CompletionCode::RemoteProtection);
    CHECK(stage.server().received().invalidated);
}

TEST_CASE_METHOD(EveryBackend, "windows: a send with invalidate of an invalid key breaks the connection") {
    if (!near.able().invalidates) return;
    const auto fails = [&](const auto& key_of) {
        Stage stage(near, far, WindowScope::Domain);
        const std::uint32_t key = key_of(stage);
        const Sge piece = stage.mine.sge(0, 8);
        const Sge landing = stage.theirs.sge(0, 8);
        stage.server().post(receive_of(1, landing));
        stage.client().post(invalidate_of(2, piece, key));
        const Completion received = stage.server().received();
        CHECK(received.code != CompletionCode::Success);
        CHECK(!received.invalidated);
        const CompletionCode told = stage.client().sent().code;
        if (!backend.by_device) CHECK(told == CompletionCode::RemoteOperation);
        CHECK(stage.client().lost());
        CHECK(stage.server().lost());
    };
    fails([](Stage&) { return 0xdead00u; });
    if (!near.able().memory_windows) return;
    fails([](Stage& stage) { return stage.show().key; });
    fails([](Stage& stage) { return stage.theirs.region().key(); });
}

TEST_CASE_METHOD(EveryBackend, "windows: a send with invalidate requires a reliable connection and no immediate data") {
    if (!near.able().invalidates) return;
    {
        Stage stage(near, far, WindowScope::Endpoint);
        const Sge piece = stage.mine.sge(0, 8);
        stage.client().post(with_immediate(invalidate_of(1, piece, stage.show().key), 5));
        CHECK(stage.client().sent().code == CompletionCode::LocalFormat);
    }
    if (!near.able().unreliable) return;
    Stage stage(near, far, WindowScope::Endpoint, {.reliability = Reliability::Unreliable});
    const RemoteAddress shown = stage.show(write_only);
    const Sge piece = stage.mine.sge(0, 8);
    stage.client().post(invalidate_of(1, piece, shown.key));
    CHECK(stage.client().sent().code == CompletionCode::LocalFormat);
}

// SPDX-License-Identifier: BSD-3-Clause
// Memory windows: binding and rebinding.
#include <algorithm>
#include <set>

#include "tests/contract/windows.hpp"

using namespace viaduct;
using namespace viaduct::testing;

TEST_CASE_METHOD(EveryBackend, "windows: a bind completes as a bind and counts as a request") {
    for (const WindowScope scope : scopes_of(near)) {
        CAPTURE(static_cast<int>(scope));
        Stage stage(near, far, scope, {.context = 77});
        must(stage.server().endpoint->bind(*stage.window, part_of(5, stage.theirs, 0, 256)));
        CHECK(stage.server().endpoint->outstanding(QueueKind::Send) == 1);
        const Completion completion = stage.server().sent();
        CHECK(completion.code == CompletionCode::Success);
        CHECK(completion.operation == CompletedOperation::BindWindow);
        CHECK(completion.queue() == QueueKind::Send);
        CHECK(completion.context == 5);
        CHECK(completion.endpoint_context == 77);
        CHECK(completion.bytes == 0);
        CHECK(stage.server().endpoint->outstanding(QueueKind::Send) == 0);

        BindRequest silent = part_of(6, stage.theirs, 64, 64);
        silent.signaled = false;
        must(stage.server().endpoint->bind(*stage.window, silent));
        const Completion next = stage.bind(part_of(7, stage.theirs, 64, 64));
        CHECK(next.context == 7);
        CHECK(stage.write(stage.at(64)) == CompletionCode::Success);
    }
}

TEST_CASE_METHOD(EveryBackend, "windows: each bind returns a unique key") {
    for (const WindowScope scope : scopes_of(near)) {
        CAPTURE(static_cast<int>(scope));
        Stage stage(near, far, scope);
        std::set<std::uint32_t> keys{stage.theirs.region().key(), 0};
        CHECK(keys.insert(stage.window->key()).second);
        for (int i = 0; i < 100; ++i) {
            must(stage.server().endpoint->bind(*stage.window, part_of(1, stage.theirs, 64, 64)));
            CHECK(keys.insert(stage.window->key()).second);
            CHECK(stage.server().sent().code == CompletionCode::Success);
        }
        CHECK(stage.write(stage.at(64)) == CompletionCode::Success);
    }
}

TEST_CASE_METHOD(EveryBackend, "windows: a message after a bind arrives when the key is valid") {
    for (const WindowScope scope : scopes_of(near)) {
        CAPTURE(static_cast<int>(scope));
        Stage stage(near, far, scope);
        const Sge into = stage.mine.sge(128, 64);
        const Sge word = stage.theirs.sge(0, 8);
        for (std::uint64_t round = 0; round < 20; ++round) {
            stage.client().post(receive_of(round, into));
            must(stage.server().endpoint->bind(*stage.window, part_of(1, stage.theirs, 64, 64)));
            stage.theirs.store(stage.window->key());
            stage.server().post(send_of(2, word));
            CHECK(stage.client().received().code == CompletionCode::Success);
            const auto key = static_cast<std::uint32_t>(stage.mine.load(128));
            CHECK(stage.write({stage.theirs.remote(64).address, key}) == CompletionCode::Success);
            CHECK(stage.server().sent().operation == CompletedOperation::BindWindow);
            CHECK(stage.server().sent().operation == CompletedOperation::Send);
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "windows: a message behind a bind and another message arrives without a poll") {
    for (const WindowScope scope : scopes_of(near)) {
        CAPTURE(static_cast<int>(scope));
        Stage stage(near, far, scope, {.reliability = Reliability::ReliableDelivery});
        const Sge into = stage.mine.sge(128, 64);
        const Sge word = stage.theirs.sge(0, 8);
        for (int round = 0; round < 20; ++round) {
            for (const std::uint64_t context : {1, 2}) stage.client().post(receive_of(context, into));
            stage.server().post(send_of(3, word));
            must(stage.server().endpoint->bind(*stage.window, part_of(4, stage.theirs, 64, 64)));
            stage.server().post(send_of(5, word));
            for (const std::uint64_t context : {1, 2}) CHECK(stage.client().received().context == context);
            for (const std::uint64_t context : {3, 4, 5}) CHECK(stage.server().sent().context == context);
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "windows: a key ends with the next bind or with the window") {
    const auto ends = [&](const auto& how) {
        for (const WindowScope scope : scopes_of(near)) {
            CAPTURE(static_cast<int>(scope));
            Stage stage(near, far, scope);
            const RemoteAddress shown = stage.show();
            CHECK(stage.write(shown) == CompletionCode::Success);
            how(stage);
            CHECK(stage.write(shown) == CompletionCode::RemoteProtection);
        }
    };
    ends([](Stage& stage) { stage.show(); });
    ends([](Stage& stage) { CHECK(stage.bind(nothing(2)).code == CompletionCode::Success); });
    ends([](Stage& stage) { stage.window.reset(); });
}

TEST_CASE_METHOD(EveryBackend, "windows: a window may be destroyed before its bind is executed") {
    for (const WindowScope scope : scopes_of(near)) {
        CAPTURE(static_cast<int>(scope));
        Stage stage(near, far, scope);
        const Buffer much(near, 1 << 20);
        const Buffer copy(far, 1 << 20);
        const Sge piece = copy.sge();
        stage.server().post(read_of(1, piece, much.remote()));
        BindRequest request = part_of(2, stage.theirs, 64, 64);
        request.fence = true;  // behind the read
        must(stage.server().endpoint->bind(*stage.window, request));
        const RemoteAddress shown = stage.at(64);
        stage.window.reset();
        CHECK(stage.server().sent().code == CompletionCode::Success);
        const Completion bound = stage.server().sent();
        CHECK(bound.context == 2);
        CHECK(bound.code == CompletionCode::Success);
        exchange(stage.client(), stage.server());
        CHECK(stage.write(shown) == CompletionCode::RemoteProtection);
    }
}

TEST_CASE_METHOD(EveryBackend, "windows: can be bound again after they were unbound") {
    for (const WindowScope scope : scopes_of(near)) {
        CAPTURE(static_cast<int>(scope));
        Stage stage(near, far, scope);
        for (int i = 0; i < 2; ++i) {
            CHECK(stage.bind(nothing(1)).code == CompletionCode::Success);
            CHECK(stage.bind(nothing(2)).code == CompletionCode::Success);
            CHECK(stage.write(stage.show()) == CompletionCode::Success);
        }
        CHECK(stage.bind(nothing(3)).code == CompletionCode::Success);
        CHECK(stage.write(stage.at(64)) == CompletionCode::RemoteProtection);
    }
}

TEST_CASE_METHOD(EveryBackend, "windows: an invalid bind completes as a protection error and breaks the connection") {
    const auto fails = [&](const auto& request_of) {
        for (const WindowScope scope : scopes_of(near)) {
            CAPTURE(static_cast<int>(scope));
            Stage stage(near, far, scope);
            const Completion completion = stage.bind(request_of(stage));
            CHECK(completion.code == CompletionCode::LocalProtection);
            CHECK(completion.operation == CompletedOperation::BindWindow);
            CHECK(stage.server().lost());
            CHECK(stage.client().lost());
        }
    };
    fails([](Stage& stage) { return part_of(1, stage.theirs, 193, 64); });
    fails([](Stage& stage) { return part_of(2, stage.theirs, 256, 1); });
    fails([](Stage& stage) { return part_of(3, stage.theirs, 0, 257); });
    fails([](Stage& stage) { return part_of(4, stage.theirs, 64, ~std::uint64_t{0}); });
    const auto other = must(ProtectionDomain::create(far.device));
    std::byte memory[64];
    const auto foreign = must(MemoryRegion::create(other, memory, sizeof memory, open));
    const auto sealed = must(MemoryRegion::create(far.domain, memory, sizeof memory,
                                                  {.remote_write = true, .remote_read = true, .local_write = false}));
    const auto whole = [&](const MemoryRegion& region, Access access) {
        BindRequest request;
        request.region = &region;
        request.address = memory;
        request.length = sizeof memory;
        request.access = access;
        return request;
    };
    fails([&](Stage&) { return whole(*foreign, read_only); });
    fails([&](Stage&) { return whole(*sealed, write_only); });
    fails([&](Stage& stage) {
        stage.window = must(MemoryWindow::create(other, stage.window->scope()));
        return whole(*foreign, read_only);
    });
    for (const WindowScope scope : scopes_of(near)) {
        Stage stage(near, far, scope);
        CHECK(stage.bind(whole(*sealed, read_only)).code == CompletionCode::Success);
        CHECK(stage.bind(nothing(5)).code == CompletionCode::Success);
    }
}

TEST_CASE_METHOD(EveryBackend, "windows: only bind() binds") {
    Connection connection(near, far);
    SendRequest request;
    request.opcode = Opcode::BindWindow;
    connection.client.post(request);
    CHECK(connection.client.sent().code == CompletionCode::LocalFormat);
}

TEST_CASE_METHOD(EveryBackend, "windows: without a connection a bind is flushed and does not change the window") {
    for (const WindowScope scope : scopes_of(near)) {
        CAPTURE(static_cast<int>(scope));
        Stage stage(near, far, scope);
        Port idle(far);
        must(idle.endpoint->bind(*stage.window, part_of(1, stage.theirs, 64, 64)));
        const Completion flushed = idle.sent();
        CHECK(flushed.code == CompletionCode::Flushed);
        CHECK(flushed.operation == CompletedOperation::BindWindow);
        CHECK(stage.write(stage.show()) == CompletionCode::Success);
    }
}

TEST_CASE_METHOD(EveryBackend, "windows: binds without a connection use up no keys") {
    constexpr std::uint32_t enough = 1u << 17;  // hardware may support millions
    for (const WindowScope scope : scopes_of(near)) {
        CAPTURE(static_cast<int>(scope));
        Stage stage(near, far, scope);
        Port idle(far);
        for (std::uint32_t i = 0; i <= std::min(far.device->attributes().max_regions, enough); ++i) {
            must(idle.endpoint->bind(*stage.window, part_of(1, stage.theirs, 64, 64)));
            require(idle.sent().code == CompletionCode::Flushed, "a flushed bind");
        }
        CHECK(stage.write(stage.show()) == CompletionCode::Success);
    }
}

TEST_CASE_METHOD(EveryBackend, "windows: a bind after a failure is flushed and does not change the window") {
    for (const WindowScope scope : scopes_of(near)) {
        CAPTURE(static_cast<int>(scope));
        auto window = must(MemoryWindow::create(far.domain, scope));
        {
            Stage stage(near, far, scope);
            stage.window.swap(window);
            stage.show();
            const Sge piece = stage.theirs.sge(0, 8);
            stage.server().post(write_of(1, piece, {.address = 8, .key = 0}));
            must(stage.server().endpoint->bind(*stage.window, part_of(2, stage.theirs, 64, 64)));
            CHECK(stage.server().sent().code == CompletionCode::RemoteProtection);
            CHECK(stage.server().sent().code == CompletionCode::Flushed);
            CHECK(stage.server().lost());
            stage.window.swap(window);
        }
        Stage stage(near, far, scope);
        stage.window.swap(window);
        CHECK(stage.write(stage.show()) == CompletionCode::Success);
    }
}

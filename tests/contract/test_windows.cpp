// SPDX-License-Identifier: BSD-3-Clause
// Memory windows: what peers see through them, when, and how that ends.
#include <catch2/catch.hpp>
#include <cstring>
#include <set>

#include "tests/contract/backends.hpp"
#include "tests/contract/two_processes.hpp"

using namespace viaduct;
using namespace viaduct::testing;

namespace {

constexpr Access closed{};
constexpr Access open{.remote_write = true, .remote_read = true};
constexpr Access read_only{.remote_write = false, .remote_read = true};
constexpr Access write_only{.remote_write = true, .remote_read = false};

std::vector<WindowScope> scopes_of(const Node& node) {
    std::vector<WindowScope> scopes;
    if (node.able().memory_windows) scopes.push_back(WindowScope::Domain);
    if (node.able().invalidates) scopes.push_back(WindowScope::Endpoint);
    return scopes;
}

BindRequest part_of(std::uint64_t context, const Buffer& buffer, std::size_t offset, std::size_t length,
                    Access access = open) {
    BindRequest request;
    request.context = context;
    request.region = &buffer.region().backend();
    request.address = buffer.bytes().data() + offset;
    request.length = length;
    request.access = access;
    return request;
}

BindRequest nothing(std::uint64_t context) {
    BindRequest request;
    request.context = context;
    return request;
}

/// A connection whose far end shows memory, which is closed without a window.
struct Stage {
    Stage(Node& near, Node& far, WindowScope scope, const PortOptions& options = {}, Memory memory = Memory::Heap)
        : connection(near, far, options),
          mine(near, 256),
          theirs(far, 256, memory, closed),
          window(must(MemoryWindow::create(far.domain, scope))) {
        fill(theirs.bytes(), 1);
        fill(mine.bytes(), 2);
    }

    Port& client() { return connection.client; }
    Port& server() { return connection.server; }

    Completion bind(const BindRequest& request) {
        must(server().endpoint->bind(*window, request));
        return server().sent();
    }

    /// Shows bytes 64 to 128 and gives their address.
    RemoteAddress show(Access access = open) {
        CHECK(bind(part_of(1, theirs, 64, 64, access)).code == CompletionCode::Success);
        return at(64);
    }
    RemoteAddress at(std::size_t offset) const { return {theirs.remote(offset).address, window->key()}; }

    CompletionCode write(const RemoteAddress& to, std::size_t length = 8) { return write(client(), to, length); }
    CompletionCode read(const RemoteAddress& from, std::size_t length = 8) {
        const Sge piece = mine.sge(0, length);
        client().post(read_of(3, piece, from));
        return client().sent().code;
    }

    /// By another endpoint.
    CompletionCode write(Port& port, const RemoteAddress& to, std::size_t length = 8) {
        const Sge piece = mine.sge(0, length);
        port.post(write_of(2, piece, to));
        return port.sent().code;
    }

    Connection connection;
    Buffer mine;
    Buffer theirs;
    std::unique_ptr<MemoryWindow> window;
};

SendRequest invalidate_of(std::uint64_t context, const Sge& piece, std::uint32_t key) {
    SendRequest request = send_of(context, piece);
    request.opcode = Opcode::SendInvalidate;
    request.remote.key = key;
    return request;
}

}  // namespace

TEST_CASE_METHOD(EveryBackend, "windows: devices without them say so") {
    for (const auto& [scope, able] : {std::pair{WindowScope::Domain, near.able().memory_windows},
                                      std::pair{WindowScope::Endpoint, near.able().invalidates}})
        CHECK(MemoryWindow::create(near.domain, scope).status().code() == (able ? Code::Ok : Code::Unsupported));
}

TEST_CASE_METHOD(EveryBackend, "windows: use their protection domain") {
    for (const WindowScope scope : scopes_of(near)) {
        const auto domain = must(ProtectionDomain::create(near.device));
        auto window = must(MemoryWindow::create(domain, scope));
        CHECK(window->scope() == scope);
        CHECK(window->domain() == domain);
        CHECK(domain->in_use());
        window.reset();
        CHECK(!domain->in_use());
    }
}

TEST_CASE_METHOD(EveryBackend, "windows: peers reach what is shown, and nothing beside it") {
    for (const WindowScope scope : scopes_of(near)) {
        for (const Memory memory : {Memory::Heap, Memory::Shareable}) {
            CAPTURE(static_cast<int>(scope), static_cast<int>(memory));
            {
                Stage stage(near, far, scope, {}, memory);
                const std::vector<std::byte> before(stage.theirs.bytes().begin(), stage.theirs.bytes().end());
                const RemoteAddress shown = stage.show();
                CHECK(stage.write(shown, 64) == CompletionCode::Success);
                CHECK(same(stage.theirs.bytes().subspan(64, 64), stage.mine.bytes().first(64)));
                CHECK(same(stage.theirs.bytes().first(64), std::span(before).first(64)));
                CHECK(same(stage.theirs.bytes().subspan(128), std::span(before).subspan(128)));
                CHECK(stage.write({shown.address + 56, shown.key}) == CompletionCode::Success);
                std::memset(stage.mine.bytes().data(), 0, 64);
                CHECK(stage.read(shown, 64) == CompletionCode::Success);
                CHECK(same(stage.theirs.bytes().subspan(64, 64), stage.mine.bytes().first(64)));
            }
            for (const auto& [offset, length] : {std::pair{56, 8}, {60, 8}, {124, 8}, {128, 8}, {64, 65}}) {
                if (!near.able().bounds_windows) continue;
                CAPTURE(offset, length);
                Stage stage(near, far, scope, {}, memory);
                const RemoteAddress shown = stage.show();
                const auto address = shown.address - 64 + static_cast<std::uint64_t>(offset);
                CHECK(stage.write({address, shown.key}, static_cast<std::size_t>(length)) ==
                      CompletionCode::RemoteProtection);
                CHECK(matches(stage.theirs.bytes(), 1));
            }
            Stage stage(near, far, scope, {}, memory);
            stage.show();
            CHECK(stage.write(stage.theirs.remote(64)) == CompletionCode::RemoteProtection);  // the region stays closed
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "windows: have rights of their own") {
    for (const WindowScope scope : scopes_of(near)) {
        CAPTURE(static_cast<int>(scope));
        {
            Stage stage(near, far, scope);
            const RemoteAddress shown = stage.show(read_only);
            CHECK(stage.read(shown) == CompletionCode::Success);
            CHECK(stage.write(shown) == CompletionCode::RemoteProtection);
        }
        {
            Stage stage(near, far, scope);
            const RemoteAddress shown = stage.show(write_only);
            CHECK(stage.write(shown) == CompletionCode::Success);
            CHECK(stage.read(shown) == CompletionCode::RemoteProtection);
        }
        {
            Stage stage(near, far, scope, {.access = read_only});  // the endpoint's rights count as well
            CHECK(stage.write(stage.show()) == CompletionCode::RemoteProtection);
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "windows: every way to write and to flush leads through them") {
    for (const WindowScope scope : scopes_of(near)) {
        for (const Memory memory : {Memory::Heap, Memory::Shareable}) {
            CAPTURE(static_cast<int>(scope), static_cast<int>(memory));
            Stage stage(near, far, scope, {}, memory);
            const RemoteAddress shown = stage.show();
            const Sge word = stage.mine.sge(0, 8);
            const Sge landing = stage.theirs.sge(0, 8);
            stage.client().post(atomic_of(1, word, shown));
            CHECK(stage.client().sent().code == CompletionCode::Success);
            CHECK(stage.theirs.load(64) == stage.mine.load());
            stage.server().post(receive_of(2, landing));
            stage.client().post(with_immediate(write_of(3, word, {shown.address + 8, shown.key}), 7));
            CHECK(stage.client().sent().code == CompletionCode::Success);
            CHECK(stage.server().received().immediate == 7);
            CHECK(stage.theirs.load(72) == stage.mine.load());
            for (const FlushTarget target : {FlushTarget::Visibility, FlushTarget::Persistence}) {
                stage.client().post(flush_of(4, shown, 64, target));
                CHECK(stage.client().sent().code == CompletionCode::Success);
            }
            const std::uint64_t beyond = near.able().bounds_windows ? 65 : 193;  // of the window, or of the region
            stage.client().post(flush_of(5, shown, beyond));
            CHECK(stage.client().sent().code == CompletionCode::RemoteProtection);
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "windows: let peers do atomics where they are meant to") {
    if (!near.able().atomics) return;
    constexpr Access atomics_only{.remote_atomic = true};
    for (const WindowScope scope : scopes_of(near)) {
        CAPTURE(static_cast<int>(scope));
        Stage stage(near, far, scope, {.access = {.remote_write = true, .remote_atomic = true}});
        const RemoteAddress shown = stage.show(atomics_only);
        const std::uint64_t before = stage.theirs.load(64);
        const Sge old = stage.mine.sge(0, 8);
        stage.client().post(fetch_add_of(1, old, shown, 5));
        CHECK(stage.client().sent().code == CompletionCode::Success);
        CHECK(stage.mine.load() == before);
        CHECK(stage.theirs.load(64) == before + 5);
        const RemoteAddress other = stage.show(write_only);
        CHECK(stage.write(other) == CompletionCode::Success);
        stage.client().post(fetch_add_of(2, old, other, 5));
        CHECK(stage.client().sent().code == CompletionCode::RemoteProtection);
    }
}

TEST_CASE_METHOD(EveryBackend, "windows: a bind completes as what it is, and counts as a request") {
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

TEST_CASE_METHOD(EveryBackend, "windows: each bind gives a key that is no other's") {
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

TEST_CASE_METHOD(EveryBackend, "windows: a message behind a bind finds the key in force at the peer") {
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

TEST_CASE_METHOD(EveryBackend, "windows: the next bind ends a key, and so does the end of the window") {
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

TEST_CASE_METHOD(EveryBackend, "windows: show something again after they showed nothing") {
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

TEST_CASE_METHOD(EveryBackend, "windows: many of them show parts of one region") {
    for (const WindowScope scope : scopes_of(near)) {
        CAPTURE(static_cast<int>(scope));
        Stage stage(near, far, scope);
        std::vector<std::unique_ptr<MemoryWindow>> windows;
        for (std::size_t i = 0; i < 32; ++i) {
            windows.push_back(must(MemoryWindow::create(far.domain, scope)));
            must(stage.server().endpoint->bind(*windows[i], part_of(i, stage.theirs, 8 * i, 8)));
        }
        for (const Completion& completion : take(*stage.server().send_queue, 32))
            CHECK(completion.code == CompletionCode::Success);
        for (std::size_t i = 0; i < 32; ++i)
            CHECK(stage.write({stage.theirs.remote(8 * i).address, windows[i]->key()}) == CompletionCode::Success);
        if (!near.able().bounds_windows) continue;
        CHECK(stage.write({stage.theirs.remote(8).address, windows[0]->key()}) == CompletionCode::RemoteProtection);
    }
}

TEST_CASE_METHOD(EveryBackend, "windows: what does not fit completes as a protection error and breaks the connection") {
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
        request.region = &region.backend();
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

TEST_CASE_METHOD(EveryBackend, "windows: without a connection a bind is flushed, and the window is as good as before") {
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

TEST_CASE_METHOD(EveryBackend, "windows: a bind behind a failure is flushed, and the window is as good as before") {
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

TEST_CASE_METHOD(EveryBackend, "windows: of a domain serve all its endpoints, and outlive the one that bound them") {
    if (!near.able().memory_windows) return;
    Stage stage(near, far, WindowScope::Domain);
    RemoteAddress shown;
    {
        Connection passing(near, far);
        must(passing.server.endpoint->bind(*stage.window, part_of(1, stage.theirs, 64, 64)));
        CHECK(passing.server.sent().code == CompletionCode::Success);
        shown = stage.at(64);
        CHECK(stage.write(shown) == CompletionCode::Success);
        CHECK(stage.write(passing.client, shown) == CompletionCode::Success);
    }
    CHECK(stage.write(shown) == CompletionCode::Success);
    CHECK(stage.write(stage.show()) == CompletionCode::Success);
    CHECK(stage.write(shown) == CompletionCode::RemoteProtection);
}

TEST_CASE_METHOD(EveryBackend, "windows: of an endpoint serve its peer alone") {
    if (!near.able().invalidates) return;
    Stage stage(near, far, WindowScope::Endpoint);
    Connection other(near, far);
    const RemoteAddress shown = stage.show();
    CHECK(stage.write(shown) == CompletionCode::Success);
    CHECK(stage.write(other.client, shown) == CompletionCode::RemoteProtection);
    CHECK(stage.write(shown) == CompletionCode::Success);
}

TEST_CASE_METHOD(EveryBackend, "windows: of an endpoint end with its connection, and can be bound through the next") {
    if (!near.able().invalidates) return;
    Stage stage(near, far, WindowScope::Endpoint);
    RemoteAddress shown;
    for (int round = 0; round < 3; ++round) {
        Connection passing(near, far);
        if (round != 0) {
            Connection victim(near, far);
            CHECK(stage.write(victim.client, shown) == CompletionCode::RemoteProtection);
        }
        must(passing.server.endpoint->bind(*stage.window, part_of(1, stage.theirs, 64, 64)));
        CHECK(passing.server.sent().code == CompletionCode::Success);
        shown = stage.at(64);
        CHECK(stage.write(passing.client, shown) == CompletionCode::Success);
    }
}

TEST_CASE_METHOD(EveryBackend, "windows: work on unreliable connections") {
    if (!near.able().unreliable) return;
    for (const WindowScope scope : scopes_of(near)) {
        CAPTURE(static_cast<int>(scope));
        Stage stage(near, far, scope, {.reliability = Reliability::Unreliable});
        CHECK(stage.bind(part_of(1, stage.theirs, 0, 257)).code == CompletionCode::LocalProtection);
        const RemoteAddress shown = stage.show(write_only);
        const Sge word = stage.mine.sge(0, 8);
        const Sge landing = stage.theirs.sge(0, 8);
        stage.server().post(receive_of(2, landing));
        stage.client().post(with_immediate(write_of(3, word, shown), 9));
        CHECK(stage.server().received().code == CompletionCode::Success);
        CHECK(stage.theirs.load(64) == stage.mine.load());
    }
}

TEST_CASE_METHOD(EveryBackend, "windows: a message ends what its receiver shows to the sender") {
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

TEST_CASE_METHOD(EveryBackend, "windows: what stands behind the message that ends one finds it gone") {
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

TEST_CASE_METHOD(EveryBackend,
                 "windows: a message that would end what is no window of its receiver breaks the connection") {
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

TEST_CASE_METHOD(EveryBackend, "windows: a message that ends one has no immediate data, and a reliable connection") {
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

TEST_CASE_METHOD(EveryBackendBetweenProcesses,
                 "windows: lead to a process that sleeps, whatever the way to its memory") {
    if (!able().memory_windows) return;
    for (const Path& path : paths(backend)) {
        for (const std::size_t size : {std::size_t{8}, std::size_t{100'000}}) {
            CAPTURE(path.name, size);
            const auto initiator = [&](Wire& wire) {
                prepare(path);
                End end(*provider());
                const Buffer mine(end.node, size);
                end.call(wire);
                const auto shown = wire.receive<RemoteAddress>();
                const Sge from = mine.sge();
                const Sge word = mine.sge(0, 8);
                fill(mine.bytes(), 3);
                end.port.post(write_of(1, from, shown));
                require(end.port.sent().code == CompletionCode::Success, "write");
                end.port.post(atomic_of(2, word, shown));
                require(end.port.sent().code == CompletionCode::Success, "atomic write");
                end.port.post(read_of(3, from, shown));
                require(end.port.sent().code == CompletionCode::Success, "read");
                require(matches(mine.bytes(), 3), "what was read");
                wire.notify();
                wire.await();
                end.port.post(write_of(4, from, shown));
                require(end.port.sent().code == CompletionCode::RemoteProtection, "write with a stale key");
                wire.notify();
                wire.await();
            };
            const auto target = [&](Wire& wire) {
                prepare(path);
                End end(*provider());
                const Buffer theirs(end.node, size + 64, path.memory, closed);
                const auto window = must(MemoryWindow::create(end.node.domain));
                end.serve(wire);
                must(end.port.endpoint->bind(*window, part_of(1, theirs, 64, size)));
                require(end.port.sent().code == CompletionCode::Success, "bind");
                wire.send(RemoteAddress{theirs.remote(64).address, window->key()});
                wire.await();
                require(matches(theirs.bytes().subspan(64), 3), "what was written");
                must(end.port.endpoint->bind(*window, nothing(2)));
                require(end.port.sent().code == CompletionCode::Success, "unbind");
                wire.notify();
                wire.await();
                wire.notify();
            };
            CHECK_NOTHROW(run_processes(initiator, target));
        }
    }
}

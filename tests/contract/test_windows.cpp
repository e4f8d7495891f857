// SPDX-License-Identifier: BSD-3-Clause
// Memory windows: access of peers.
#include <cstring>

#include "tests/contract/windows.hpp"

using namespace viaduct;
using namespace viaduct::testing;

TEST_CASE_METHOD(EveryBackend, "windows: devices without windows report it", "[no-peer]") {
    for (const auto& [scope, able] : {std::pair{WindowScope::Domain, near.able().memory_windows},
                                      std::pair{WindowScope::Endpoint, near.able().invalidates}})
        CHECK(MemoryWindow::create(near.domain, scope).status().code() == (able ? Code::Ok : Code::Unsupported));
}

TEST_CASE_METHOD(EveryBackend, "windows: use their protection domain", "[no-peer]") {
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

TEST_CASE_METHOD(EveryBackend, "windows: peers can access only the bound range") {
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
            CHECK(stage.write(stage.theirs.remote(64)) == CompletionCode::RemoteProtection);  // the region itself
                                                                                              // remains inaccessible
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "windows: have their own access rights") {
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
            Stage stage(near, far, scope, {.access = read_only});  // the endpoint's attributes also limit access
            CHECK(stage.write(stage.show()) == CompletionCode::RemoteProtection);
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "windows: every type of write and flush works through them") {
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
            const std::uint64_t beyond = near.able().bounds_windows ? 65 : 193;  // beyond the window or, on some
                                                                                 // devices, the region
            const std::uint64_t first = near.able().bounds_flushes ? 0 : beyond - 8;
            stage.client().post(flush_of(5, {shown.address + first, shown.key}, beyond - first));
            CHECK(stage.client().sent().code == CompletionCode::RemoteProtection);
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "windows: allow atomics if bound with that right") {
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

TEST_CASE_METHOD(EveryBackend, "windows: many windows may be bound to parts of one region") {
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

TEST_CASE_METHOD(EveryBackend,
                 "windows: windows of a domain serve all its endpoints and outlive the one that bound them") {
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

TEST_CASE_METHOD(EveryBackend, "windows: windows of an endpoint serve only its peer") {
    if (!near.able().invalidates) return;
    Stage stage(near, far, WindowScope::Endpoint);
    Connection other(near, far);
    const RemoteAddress shown = stage.show();
    CHECK(stage.write(shown) == CompletionCode::Success);
    CHECK(stage.write(other.client, shown) == CompletionCode::RemoteProtection);
    CHECK(stage.write(shown) == CompletionCode::Success);
}

TEST_CASE_METHOD(EveryBackend, "windows: windows of an endpoint end with its connection and can be bound again") {
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

TEST_CASE_METHOD(EveryBackend, "windows: also work on unreliable connections") {
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

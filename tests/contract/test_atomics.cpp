// SPDX-License-Identifier: BSD-3-Clause
// FetchAdd and CompareSwap: results, atomicity and access checks.
#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <thread>
#include <vector>

#include "tests/contract/backends.hpp"
#include "tests/contract/two_processes.hpp"

using namespace viaduct;
using namespace viaduct::testing;

namespace {

constexpr Access atomics_only{.remote_atomic = true};
constexpr Access all_rights{.remote_write = true, .remote_read = true, .remote_atomic = true};

/// A connection to an endpoint that makes no calls, with a word in its memory.
struct Counter {
    Counter(Node& near, Node& far, Reliability level = Reliability::ReliableReception, Memory memory = Memory::Heap)
        : connection(near, far, {.reliability = level, .access = all_rights}),
          client(connection.client),
          mine(near, 64),
          theirs(far, 64, memory, all_rights) {}

    Sge old() const { return mine.sge(0, 8); }

    /// Returns the previous value.
    std::uint64_t run(const SendRequest& request) {
        mine.store(~std::uint64_t{0});
        client.post(request);
        const Completion completion = client.sent();
        CHECK(completion.code == CompletionCode::Success);
        CHECK(completion.bytes == 8);
        CHECK(completion.context == request.context);
        CHECK(completion.operation ==
              (request.opcode == Opcode::FetchAdd ? CompletedOperation::FetchAdd : CompletedOperation::CompareSwap));
        return mine.load();
    }

    Connection connection;
    Port& client;
    Buffer mine;
    Buffer theirs;
};

/// Adds 1 to a word repeatedly and checks that each previous value is greater than the one before.
void add_ones(Port& port, const Buffer& scratch, const RemoteAddress& target, std::uint64_t count) {
    const Sge old = scratch.sge(0, 8);
    std::uint64_t last = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        port.post(fetch_add_of(i, old, target, 1));
        require(port.sent().code == CompletionCode::Success, "fetch and add");
        require(i == 0 || scratch.load() > last, "the word has not grown");
        last = scratch.load();
    }
}

/// Adds 1 with compare-and-swap until that has succeeded `count` times.
void swap_ones(Port& port, const Buffer& scratch, const RemoteAddress& target, std::uint64_t count) {
    const Sge old = scratch.sge(0, 8);
    std::uint64_t guess = 0;
    for (std::uint64_t done = 0; done < count;) {
        port.post(compare_swap_of(done, old, target, guess, guess + 1));
        require(port.sent().code == CompletionCode::Success, "compare and swap");
        const std::uint64_t seen = scratch.load();
        if (seen == guess) ++done;
        guess = seen == guess ? guess + 1 : seen;
    }
}

}  // namespace

TEST_CASE_METHOD(EveryBackend, "atomics: fetch and add returns the old value") {
    if (!far.able().atomics) return;
    for (const Reliability level : reliable_levels) {
        for (const Memory memory : {Memory::Heap, Memory::Shareable}) {
            CAPTURE(static_cast<int>(level), static_cast<int>(memory));
            Counter counter(near, far, level, memory);
            counter.theirs.store(5, 8);
            const RemoteAddress word = counter.theirs.remote(8);
            CHECK(counter.run(fetch_add_of(1, counter.old(), word, 37)) == 5);
            CHECK(counter.run(fetch_add_of(2, counter.old(), word, ~std::uint64_t{0})) == 42);
            CHECK(counter.run(fetch_add_of(3, counter.old(), word, 0)) == 41);
            CHECK(counter.theirs.load(8) == 41);
            CHECK(counter.theirs.load(0) == 0);
            CHECK(counter.theirs.load(16) == 0);
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "atomics: compare and swap writes if the value matches") {
    if (!far.able().atomics) return;
    for (const Memory memory : {Memory::Heap, Memory::Shareable}) {
        CAPTURE(static_cast<int>(memory));
        Counter counter(near, far, Reliability::ReliableReception, memory);
        constexpr std::uint64_t large = 0x0123456789abcdef;
        counter.theirs.store(large);
        const RemoteAddress word = counter.theirs.remote();
        CHECK(counter.run(compare_swap_of(1, counter.old(), word, 1, 2)) == large);
        CHECK(counter.theirs.load() == large);
        CHECK(counter.run(compare_swap_of(2, counter.old(), word, large, 3)) == large);
        CHECK(counter.theirs.load() == 3);
        CHECK(counter.run(compare_swap_of(3, counter.old(), word, 3, large + 1)) == 3);
        CHECK(counter.theirs.load() == large + 1);
    }
}

TEST_CASE_METHOD(EveryBackend, "atomics: they execute in order with other requests") {
    if (!far.able().atomics) return;
    Counter counter(near, far);
    const Buffer results(near, 64);
    const RemoteAddress word = counter.theirs.remote();
    counter.mine.store(100, 8);
    const std::array pieces{counter.mine.sge(8, 8), results.sge(0, 8), results.sge(8, 8), results.sge(16, 8)};
    counter.client.post(write_of(1, pieces[0], word));
    counter.client.post(fetch_add_of(2, pieces[1], word, 1));
    counter.client.post(unsignaled(compare_swap_of(3, pieces[2], word, 101, 500)));
    SendRequest last = read_of(4, pieces[3], word);
    last.fence = true;
    counter.client.post(last);
    for (const std::uint64_t expected : {1, 2, 4}) CHECK(counter.client.sent().context == expected);
    CHECK(results.load(0) == 100);
    CHECK(results.load(8) == 101);
    CHECK(results.load(16) == 500);
    CHECK(counter.client.quiet());
}

TEST_CASE_METHOD(EveryBackend, "atomics: many at once complete in order") {
    if (!far.able().atomics) return;
    constexpr std::uint64_t count = 200;
    Counter counter(near, far);
    const Buffer results(near, count * 8);
    for (std::uint64_t i = 0; i < count; ++i) {
        const Sge old = results.sge(8 * i, 8);
        counter.client.post(fetch_add_of(i, old, counter.theirs.remote(), i + 1));
    }
    for (std::uint64_t i = 0; i < count; ++i) REQUIRE(counter.client.sent().context == i);
    for (std::uint64_t i = 0; i < count; ++i) REQUIRE(results.load(8 * i) == i * (i + 1) / 2);
    CHECK(counter.theirs.load() == count * (count + 1) / 2);
}

TEST_CASE_METHOD(EveryBackend, "rule 12: atomic operations of several connections on one word lose no update") {
    if (!far.able().atomics) return;
    constexpr std::uint64_t each = 300;
    constexpr std::size_t adders = 3;
    for (const Memory memory : {Memory::Heap, Memory::Shareable}) {
        CAPTURE(static_cast<int>(memory));
        const Buffer target(far, 8, memory, atomics_only);
        std::vector<std::unique_ptr<Connection>> connections;
        std::vector<std::unique_ptr<Buffer>> scratch;
        for (std::size_t i = 0; i <= adders; ++i) {
            connections.push_back(std::make_unique<Connection>(near, far, PortOptions{.access = all_rights}));
            scratch.push_back(std::make_unique<Buffer>(near, 8));
        }
        std::atomic<int> failed{0};
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i <= adders; ++i)
            threads.emplace_back([&, i] {
                const auto run = i < adders ? add_ones : swap_ones;
                try {
                    run(connections[i]->client, *scratch[i], target.remote(), each);
                } catch (const std::exception&) {
                    ++failed;
                }
            });
        // The owner of the memory also uses atomics if that is allowed.
        std::uint64_t own = 0;
        if (far.able().atomic_write)
            for (; own < each; ++own) __atomic_fetch_add(reinterpret_cast<std::uint64_t*>(target.bytes().data()), 1, 5);
        for (std::thread& thread : threads) thread.join();
        CHECK(failed == 0);
        CHECK(target.load() == (adders + 1) * each + own);
    }
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses,
                 "rule 12: atomic operations of several processes on one word lose no update", "[hosts]") {
    const Capabilities abilities = able();
    if (!abilities.atomics) return;
    constexpr std::uint64_t each = 500;
    for (const Path& path : paths(backend)) {
        CAPTURE(path.name);
        const auto adder = [&](Wire& wire) {
            prepare(path);
            End end(*provider(), {.access = all_rights});
            const Buffer scratch(end.node, 8);
            end.call(wire);
            const auto target = wire.receive<RemoteAddress>();
            add_ones(end.port, scratch, target, each);
            swap_ones(end.port, scratch, target, each);
            wire.notify();
            wire.await();
        };
        // Modifies the word directly and over a connection within its own process.
        const auto owner = [&](Wire& wire) {
            prepare(path);
            End end(*provider(), {.access = all_rights});
            const Buffer word(end.node, 8, path.memory, atomics_only);
            const Buffer scratch(end.node, 8);
            end.serve(wire);
            Connection inner(end.node, end.node, {.access = all_rights});
            wire.send(word.remote());
            std::uint64_t own = 0;
            if (abilities.atomic_write)
                for (; own < each; ++own)
                    __atomic_fetch_add(reinterpret_cast<std::uint64_t*>(word.bytes().data()), 1, 5);
            add_ones(inner.client, scratch, word.remote(), each);
            wire.await();  // blocks in a system call
            require(word.load() == 3 * each + own, "an operation was lost");
            wire.notify();
        };
        CHECK_NOTHROW(run_processes(adder, owner));
    }
}

TEST_CASE_METHOD(EveryBackend, "atomics: operations that the target does not allow are refused and change nothing") {
    if (!far.able().atomics) return;
    const auto other_domain = must(ProtectionDomain::create(far.device));
    alignas(8) char raw[64] = {};
    const auto foreign = must(MemoryRegion::create(other_domain, raw, sizeof raw, all_rights));
    const Buffer closed(far, 64, Memory::Heap, {.remote_write = true, .remote_read = true});
    const Buffer open(far, 64, Memory::Heap, all_rights);
    const auto check = [&](const char* what, const RemoteAddress& target, Access accepted = all_rights) {
        for (const Opcode opcode : {Opcode::FetchAdd, Opcode::CompareSwap}) {
            CAPTURE(what, static_cast<int>(opcode));
            Port client(near, {.context = 1});
            Port server(far, {.access = accepted, .context = 2});
            join(client, server);
            const Buffer mine(near, 8);
            const Sge old = mine.sge();
            client.post(opcode == Opcode::FetchAdd ? fetch_add_of(3, old, target, 7)
                                                   : compare_swap_of(3, old, target, 0, 7));
            const Completion completion = client.sent();
            CHECK(completion.code == CompletionCode::RemoteProtection);
            CHECK(completion.bytes == 0);
            CHECK(far.hears(AsyncEventKind::RemoteWriteProtection, 2));
            CHECK(client.lost());
            CHECK(server.lost());
        }
        for (const Buffer* buffer : {&closed, &open})
            for (std::size_t at = 0; at < 64; at += 8) CHECK(buffer->load(at) == 0);
        CHECK(std::ranges::all_of(raw, [](char byte) { return byte == 0; }));
    };
    const auto shifted = [](RemoteAddress remote, std::uint64_t offset) {
        remote.address += offset;
        return remote;
    };
    RemoteAddress unknown = open.remote();
    unknown.key ^= 0x5a5a5a5a;
    check("unknown key", unknown);
    check("region without the right", closed.remote());
    check("endpoint without the right", open.remote(), {.remote_write = true, .remote_read = true});
    check("another domain", {.address = reinterpret_cast<std::uintptr_t>(raw), .key = foreign->key()});
    check("beyond the end", shifted(open.remote(), 64));
    check("not aligned", shifted(open.remote(), 4));
}

TEST_CASE_METHOD(EveryBackend, "atomics: the only SGE has 8 writable bytes") {
    if (!far.able().atomics) return;
    const Buffer sealed(near, 8, Memory::Heap, {.local_write = false});
    const auto check = [&](const char* what, const auto& make_pieces, CompletionCode expected) {
        CAPTURE(what);
        Counter counter(near, far);
        const std::vector<Sge> pieces = make_pieces(counter.mine);
        SendRequest request{
            .context = 1, .opcode = Opcode::FetchAdd, .remote = counter.theirs.remote(), .sges = pieces};
        request.add = 1;
        counter.client.post(request);
        CHECK(counter.client.sent().code == expected);
        CHECK(counter.client.lost());
    };
    using Pieces = std::vector<Sge>;
    check(
        "none", [](const Buffer&) { return Pieces{}; }, CompletionCode::LocalLength);
    check(
        "two",
        [](const Buffer& mine) {
            return Pieces{mine.sge(0, 4), mine.sge(4, 4)};
        },
        CompletionCode::LocalLength);
    check(
        "short", [](const Buffer& mine) { return Pieces{mine.sge(0, 4)}; }, CompletionCode::LocalLength);
    check(
        "long", [](const Buffer& mine) { return Pieces{mine.sge(0, 16)}; }, CompletionCode::LocalLength);
    check(
        "sealed", [&](const Buffer&) { return Pieces{sealed.sge()}; }, CompletionCode::LocalProtection);
    CHECK(sealed.load() == 0);
}

TEST_CASE_METHOD(EveryBackend, "atomics: unreliable endpoints do not support them") {
    if (!far.able().atomics || !far.able().unreliable) return;
    Port port(far, {.reliability = Reliability::Unreliable});
    EndpointAttributes attributes = port.endpoint->attributes();
    attributes.access.remote_atomic = true;
    CHECK(port.endpoint->modify(attributes, far.domain).code() == Code::InvalidRdmaRead);
    Connection connection(near, far, {.reliability = Reliability::Unreliable});
    const Buffer mine(near, 8);
    const Buffer theirs(far, 8, Memory::Heap, atomics_only);
    const Sge old = mine.sge();
    connection.client.post(fetch_add_of(1, old, theirs.remote(), 1));
    CHECK(connection.client.sent().code == CompletionCode::LocalFormat);
    CHECK(theirs.load() == 0);
}

// SPDX-License-Identifier: BSD-3-Clause
// Flushes: where the data are when a flush completes, and access checks.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "core/base/internals.hpp"
#include "tests/contract/backends.hpp"
#include "tests/contract/two_processes.hpp"
#include "tests/support/mapped_file.hpp"

using namespace viaduct;
using namespace viaduct::testing;
using Kind = ConnectionEventKind;

namespace {

constexpr std::array targets{FlushTarget::Visibility, FlushTarget::Persistence};
constexpr Access full_access{.remote_write = true, .remote_read = true};

}  // namespace

TEST_CASE_METHOD(EveryBackend, "flush: completes after earlier writes are in the target's memory") {
    for (const Reliability level : reliable_levels) {
        for (const FlushTarget target : targets) {
            for (const Memory memory : {Memory::Heap, Memory::Shareable}) {
                for (const std::size_t size : {std::size_t{8}, std::size_t{1} << 20}) {
                    CAPTURE(static_cast<int>(level), static_cast<int>(target), static_cast<int>(memory), size);
                    Connection connection(near, far, {.reliability = level, .context = 4});
                    const Buffer mine(near, size);
                    const Buffer theirs(far, size, memory);
                    const Sge from = mine.sge();
                    for (std::uint32_t round = 1; round <= 5; ++round) {
                        fill(mine.bytes(), round);
                        connection.client.post(unsignaled(write_of(1, from, theirs.remote())));
                        connection.client.post(flush_of(round, theirs.remote(), size, target));
                        const Completion flushed = connection.client.sent();
                        CHECK(flushed.context == round);
                        CHECK(flushed.endpoint_context == 4);
                        CHECK(flushed.code == CompletionCode::Success);
                        CHECK(flushed.operation == CompletedOperation::Flush);
                        CHECK(flushed.queue() == QueueKind::Send);
                        CHECK(flushed.bytes == 0);
                        REQUIRE(matches(theirs.bytes(), round));
                    }
                    CHECK(connection.client.quiet());
                    CHECK(connection.server.quiet());
                }
            }
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "flush: completes in order") {
    Connection connection(near, far);
    const Buffer mine(near, 100'000);
    const Buffer theirs(far, 100'000);
    const Buffer inbox(far, 100'000);  // separate memory, because RDMA may overtake a message that has not been
                                       // received (ADR 6)
    const Buffer copy(near, 100'000);
    const Sge from = mine.sge();
    const Sge into = inbox.sge();
    connection.client.post(send_of(0, from));  // waits for a receive
    connection.client.post(flush_of(1, theirs.remote(), 8, FlushTarget::Persistence));
    connection.client.post(write_of(2, from, theirs.remote()));
    connection.client.post(flush_of(3, theirs.remote(), 8));
    connection.client.post(read_of(4, copy.sge(), theirs.remote()));
    connection.client.post(unsignaled(flush_of(9, theirs.remote(), 8, FlushTarget::Persistence)));
    connection.client.post(flush_of(5, theirs.remote(), 8, FlushTarget::Persistence));
    CHECK(connection.client.quiet());
    connection.server.post(receive_of(1, into));
    const auto sent = take(*connection.client.send_queue, 6);
    for (std::uint64_t i = 0; i < sent.size(); ++i) {
        CHECK(sent[i].context == i);
        CHECK(sent[i].code == CompletionCode::Success);
    }
    CHECK(connection.client.quiet());
}

TEST_CASE_METHOD(EveryBackend, "flush: the mapped file has the data") {
    constexpr std::size_t size = std::size_t{5} * 4096;
    const MappedFile file(size);
    for (const Reliability level : reliable_levels) {
        Connection connection(near, far, {.reliability = level});
        // Neither the start nor the end is page-aligned.
        const auto bytes = file.bytes().subspan(1000, 9000);
        const auto region = must(MemoryRegion::create(far.domain, bytes.data(), bytes.size(), full_access));
        const RemoteAddress remote{.address = reinterpret_cast<std::uintptr_t>(bytes.data()), .key = region->key()};
        const Buffer mine(near, bytes.size());
        const Sge from = mine.sge();
        for (std::uint32_t round = 1; round <= 3; ++round) {
            fill(mine.bytes(), round);
            connection.client.post(unsignaled(write_of(1, from, remote)));
            connection.client.post(flush_of(2, remote, bytes.size(), FlushTarget::Persistence));
            CHECK(connection.client.sent().code == CompletionCode::Success);
            CHECK(same(file.content(1000, bytes.size()), mine.bytes()));
        }
        connection.client.post(
            flush_of(3, {.address = remote.address + 5000, .key = remote.key}, 1, FlushTarget::Persistence));
        CHECK(connection.client.sent().code == CompletionCode::Success);
    }
}

TEST_CASE_METHOD(EveryBackend, "flush: may exceed the transfer size and may be empty") {
    Connection connection(near, far, {.max_transfer_bytes = 100});
    const Buffer theirs(far, 1u << 20);
    for (const FlushTarget target : targets) {
        for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 20}) {
            CAPTURE(static_cast<int>(target), bytes);
            connection.client.post(flush_of(bytes, theirs.remote(), bytes, target));
            const Completion completion = connection.client.sent();
            CHECK(completion.context == bytes);
            CHECK(completion.code == CompletionCode::Success);
        }
        connection.client.post(flush_of(1, theirs.remote(1u << 20), 0, target));
        CHECK(connection.client.sent().code == CompletionCode::Success);
    }
}

TEST_CASE_METHOD(EveryBackend, "flush: region and endpoint must both allow writes or both allow reads") {
    struct Case {
        Access region;
        Access endpoint;
        bool allowed;
    };
    constexpr Access write{.remote_write = true};
    constexpr Access read{.remote_read = true};
    constexpr Case cases[] = {
        {.region = write, .endpoint = full_access, .allowed = true},
        {.region = read, .endpoint = full_access, .allowed = true},
        {.region = full_access, .endpoint = write, .allowed = true},
        {.region = full_access, .endpoint = read, .allowed = true},
        {.region = write, .endpoint = read, .allowed = false},
        {.region = read, .endpoint = write, .allowed = false},
        {.region = {}, .endpoint = full_access, .allowed = false},
        {.region = full_access, .endpoint = {}, .allowed = false},
    };
    for (const Case& one : cases) {
        for (const FlushTarget target : targets) {
            CAPTURE(&one - cases, static_cast<int>(target));
            Port client(near);
            Port server(far, {.access = one.endpoint});
            join(client, server);
            const Buffer theirs(far, 64, Memory::Heap, one.region);
            client.post(flush_of(1, theirs.remote(), 64, target));
            const bool reads = one.region.remote_read && one.endpoint.remote_read;
            const bool allowed = far.able().flush_by_write ? one.allowed : reads;
            CHECK(client.sent().code == (allowed ? CompletionCode::Success : CompletionCode::RemoteProtection));
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "flush: inaccessible memory is refused, and the connection breaks") {
    const auto other_domain = must(ProtectionDomain::create(far.device));
    char raw[64] = {};
    const auto foreign = must(MemoryRegion::create(other_domain, raw, sizeof raw, full_access));
    const Buffer theirs(far, 64);
    const auto check = [&](const char* what, const RemoteAddress& remote, std::uint64_t bytes) {
        for (const Reliability level : reliable_levels) {
            for (const FlushTarget target : targets) {
                CAPTURE(what, static_cast<int>(level), static_cast<int>(target));
                Connection connection(near, far, {.reliability = level});
                connection.client.post(unsignaled(flush_of(3, remote, bytes, target)));
                const Completion completion = connection.client.sent();
                CHECK(completion.context == 3);
                CHECK(completion.operation == CompletedOperation::Flush);
                CHECK(completion.code == CompletionCode::RemoteProtection);
                CHECK(connection.client.lost());
                CHECK(connection.server.lost());
                CHECK(connection.client.quiet());
                CHECK(connection.server.quiet());
            }
        }
    };
    const RemoteAddress good = theirs.remote();
    check("unknown key", {.address = good.address, .key = good.key ^ 0x5a5a5a5a}, 64);
    check("key 0", {.address = good.address, .key = 0}, 64);
    if (near.able().bounds_flushes) {
        check("too long", good, 65);
        check("far too long", good, ~std::uint64_t{0});
    }
    check("before the begin", {.address = good.address - 1, .key = good.key}, 8);
    check("past the end", theirs.remote(64), 1);
    check("wrapping", {.address = ~std::uint64_t{7}, .key = good.key}, 64);
    check("region of another protection domain",
          {.address = reinterpret_cast<std::uintptr_t>(raw), .key = foreign->key()}, 64);
}

TEST_CASE_METHOD(EveryBackend, "flush: a deregistered region is refused") {
    Connection connection(near, far);
    RemoteAddress gone;
    {
        const Buffer theirs(far, 64);
        gone = theirs.remote();
        connection.client.post(flush_of(1, gone, 64));
        CHECK(connection.client.sent().code == CompletionCode::Success);
    }
    connection.client.post(flush_of(2, gone, 64));
    CHECK(connection.client.sent().code == CompletionCode::RemoteProtection);
}

TEST_CASE_METHOD(EveryBackend, "flush: has no SGEs") {
    Connection connection(near, far);
    const Buffer mine(near, 8);
    const Buffer theirs(far, 8);
    const Sge piece = mine.sge();
    SendRequest request = flush_of(1, theirs.remote(), 8);
    request.sges = {&piece, 1};
    connection.client.post(request);
    CHECK(connection.client.sent().code == CompletionCode::LocalFormat);
    CHECK(connection.client.lost());
}

TEST_CASE_METHOD(EveryBackend, "flush: on an endpoint that is not connected it is itself flushed", "[no-peer]") {
    Port port(near);
    const auto check = [&](std::uint64_t context) {
        const Completion completion = port.sent();
        CHECK(completion.context == context);
        CHECK(completion.code == CompletionCode::Flushed);
        CHECK(completion.operation == CompletedOperation::Flush);
    };
    port.post(flush_of(1, {}, 8));
    check(1);
    port.post(unsignaled(flush_of(2, {}, 8, FlushTarget::Persistence)));
    check(2);
    Internals::fail(*port.endpoint);
    port.post(flush_of(3, {}, 8));
    check(3);
    CHECK(port.quiet());
}

TEST_CASE_METHOD(EveryBackend, "flush: regions and connections may be destroyed during a flush") {
    constexpr std::size_t size = 4u << 20;
    for (int round = 0; round < 20; ++round) {
        CAPTURE(round);
        auto file = std::make_unique<MappedFile>(size);
        auto region = must(MemoryRegion::create(far.domain, file->bytes().data(), size, full_access));
        const RemoteAddress remote{.address = reinterpret_cast<std::uintptr_t>(file->bytes().data()),
                                   .key = region->key()};
        std::ranges::fill(file->bytes(), std::byte{1});
        Connection connection(near, far);
        for (std::uint64_t i = 0; i < 8; ++i)
            connection.client.post(flush_of(i, remote, size, FlushTarget::Persistence));
        if (round % 4 == 0) connection.client.endpoint->disconnect();
        if (round % 4 == 1) connection.server.endpoint->disconnect();
        region.reset();
        file.reset();
        bool failed = false;
        for (std::uint64_t i = 0; i < 8; ++i) {
            const Completion completion = connection.client.sent();
            CHECK(completion.context == i);
            CHECK((!failed || completion.code != CompletionCode::Success));
            failed = failed || completion.code != CompletionCode::Success;
        }
    }
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "flush: completes after the writes while the target process sleeps",
                 "[hosts]") {
    for (const Path& path : paths(backend)) {
        for (const FlushTarget to : targets) {
            CAPTURE(path.name, static_cast<int>(to));
            constexpr std::size_t size = 300'000;
            const auto initiator = [&](Wire& wire) {
                prepare(path);
                End end(*provider());
                const Buffer mine(end.node, size);
                end.call(wire);
                const auto process = wire.receive<pid_t>();
                const auto target = wire.receive<RemoteAddress>();
                const Sge from = mine.sge();
                std::vector<std::byte> seen(size);
                for (std::uint32_t round = 1; round <= 5; ++round) {
                    fill(mine.bytes(), round);
                    end.port.post(unsignaled(write_of(1, from, target)));
                    end.port.post(flush_of(2, target, size, to));
                    const Completion flushed = end.port.sent();
                    require(flushed.context == 2 && flushed.code == CompletionCode::Success, "flush");
                    if (peek(process, target.address, seen)) require(matches(seen, round), "flushed data");
                }
                wire.notify();
                wire.await();
            };
            const auto target = [&](Wire& wire) {
                prepare(path);
                End end(*provider());
                const Buffer theirs(end.node, size, path.memory);
                end.serve(wire);
                wire.send(getpid());
                wire.send(theirs.remote());
                wire.await();
                require(matches(theirs.bytes(), 5), "flushed data");
                wire.notify();
            };
            CHECK_NOTHROW(run_processes(initiator, target));
        }
    }
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "flush: another process finds the data in the file", "[hosts]") {
    for (const Path& path : paths(backend)) {
        if (path.memory == Memory::Shareable) continue;  // here the memory is a mapping of the file
        CAPTURE(path.name);
        constexpr std::size_t size = std::size_t{3} * 4096;
        const MappedFile file(size);
        const auto initiator = [&](Wire& wire) {
            prepare(path);
            End end(*provider());
            const Buffer mine(end.node, size);
            end.call(wire);
            const auto target = wire.receive<RemoteAddress>();
            const Sge from = mine.sge();
            for (std::uint32_t round = 1; round <= 5; ++round) {
                fill(mine.bytes(), round);
                end.port.post(unsignaled(write_of(1, from, target)));
                end.port.post(flush_of(2, target, size, FlushTarget::Persistence));
                require(end.port.sent().code == CompletionCode::Success, "flush");
                require(matches(file.content(0, size), round), "data in the file");
            }
            wire.notify();
        };
        const auto target = [&](Wire& wire) {
            prepare(path);
            End end(*provider());
            const auto region = must(MemoryRegion::create(end.node.domain, file.bytes().data(), size, full_access));
            end.serve(wire);
            wire.send(
                RemoteAddress{.address = reinterpret_cast<std::uintptr_t>(file.bytes().data()), .key = region->key()});
            wire.await();
        };
        CHECK_NOTHROW(run_processes(initiator, target));
    }
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "flush: also refused by another process", "[hosts]") {
    for (const Path& path : paths(backend)) {
        for (const FlushTarget to : targets) {
            CAPTURE(path.name, static_cast<int>(to));
            const auto initiator = [&](Wire& wire) {
                prepare(path);
                End end(*provider());
                end.call(wire);
                const auto target = wire.receive<RemoteAddress>();
                end.port.post(flush_of(1, target, 64, to));
                require(end.port.sent().code == CompletionCode::RemoteProtection, "refusal");
                require(end.port.lost(), "the loss");
                wire.notify();
            };
            const auto target = [&](Wire& wire) {
                prepare(path);
                End end(*provider());
                const Buffer closed(end.node, 64, path.memory, {});
                end.serve(wire);
                wire.send(closed.remote());
                wire.await();
                require(end.port.lost(), "the loss");
            };
            CHECK_NOTHROW(run_processes(initiator, target));
        }
    }
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "flush: the death of the target ends pending flushes in order",
                 "[hosts]") {
    constexpr std::uint64_t count = 200;
    const MappedFile file(16u << 20);
    const auto initiator = [&](Wire& wire) {
        End end(*provider(), {.max_transfer_bytes = 0});
        end.call(wire);
        const auto target = wire.receive<RemoteAddress>();
        for (std::uint64_t i = 0; i < count; ++i)
            end.port.post(flush_of(i, target, file.bytes().size(), FlushTarget::Persistence));
        wire.notify();
        const auto sent = take(*end.port.send_queue, count);
        bool flushed = false;
        for (std::uint64_t i = 0; i < count; ++i) {
            require(sent[i].context == i, "order");
            flushed = flushed || sent[i].code != CompletionCode::Success;
            require(!flushed || sent[i].code == CompletionCode::Flushed || sent[i].code == CompletionCode::Transport,
                    "flush after the loss");
        }
        require(end.port.lost(), "the loss");
        require(end.port.quiet(), "silence");
    };
    const auto target = [&](Wire& wire) {
        End end(*provider(), {.max_transfer_bytes = 0});
        const auto bytes = file.bytes();
        const auto region = must(MemoryRegion::create(end.node.domain, bytes.data(), bytes.size(), full_access));
        std::ranges::fill(bytes, std::byte{1});
        end.serve(wire);
        wire.send(RemoteAddress{.address = reinterpret_cast<std::uintptr_t>(bytes.data()), .key = region->key()});
        wire.await();
        die();
    };
    CHECK_NOTHROW(run_processes(initiator, target));
}

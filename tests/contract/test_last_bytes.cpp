// SPDX-License-Identifier: BSD-3-Clause
// Rule 15: programs poll the last bytes of a buffer that their peer writes. These bytes become visible after all
// others.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "tests/contract/backends.hpp"
#include "tests/contract/two_processes.hpp"

using namespace viaduct;
using namespace viaduct::testing;

namespace {

constexpr int rounds = 100;
constexpr std::size_t offsets[] = {0, 1, 60};
constexpr std::size_t room = 64 * 1024 + 64;

/// Sizes with more than 8 bytes, up to the size of a fragment and beyond.
std::vector<std::size_t> polled_sizes() {
    std::vector<std::size_t> sizes = sizes_around_thresholds();
    std::erase_if(sizes, [](std::size_t size) { return size <= 8 || size > 64 * 1024; });
    sizes.push_back(64 * 1024);
    return sizes;
}

std::byte mark_of(int round) { return static_cast<std::byte>(round % 250 + 1); }

// Polling deliberately races with the writer, so the thread sanitizer is disabled.
[[gnu::no_sanitize_thread]] bool all_are(std::span<const std::byte> bytes, std::byte mark) {
    const auto* at = reinterpret_cast<const volatile std::byte*>(bytes.data());
    for (std::size_t i = 0; i < bytes.size(); ++i)
        if (at[i] != mark) return false;
    return true;
}

/// Polls memory, without calling the library, until the last 8 bytes have arrived.
[[gnu::no_sanitize_thread]] void await_last(std::span<const std::byte> bytes, std::byte mark) {
    const auto* last = reinterpret_cast<const volatile std::byte*>(bytes.data() + bytes.size() - 8);
    for (const Deadline deadline = patience(); !deadline.passed(); std::this_thread::yield()) {
        for (int looks = 0; looks < 100'000; ++looks) {
            if (last[7] != mark || last[0] != mark) continue;
            std::atomic_thread_fence(std::memory_order_acquire);
            return;
        }
    }
    require(false, "the last bytes come");
}

}  // namespace

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "rule 15: the last bytes of an RDMA write are visible last", "[hosts]") {
    if (backend.by_device) return;  // the order of writes is specified by the device
    for (const Path& path : paths(backend)) {
        CAPTURE(path.name);
        const int count = path.memory == Memory::Shareable && path.process_vm ? rounds : 20;
        const auto initiator = [&](Wire& wire) {
            prepare(path);
            End end(*provider());
            const Buffer mine(end.node, room);
            end.call(wire);
            const auto target = wire.receive<RemoteAddress>();
            for (const std::size_t size : polled_sizes())
                for (const std::size_t offset : offsets) {
                    const Sge piece = mine.sge(0, size);
                    for (int round = 0; round < count; ++round) {
                        std::ranges::fill(mine.bytes(), mark_of(round));
                        end.port.post(write_of(1, piece, {.address = target.address + offset, .key = target.key}));
                        require(end.port.sent().code == CompletionCode::Success, "write");
                        wire.await();
                    }
                }
            wire.notify();
        };
        const auto target = [&](Wire& wire) {
            End end(*provider());
            const Buffer buffer(end.node, room, path.memory);
            end.serve(wire);
            wire.send(buffer.remote());
            for (const std::size_t size : polled_sizes())
                for (const std::size_t offset : offsets)
                    for (int round = 0; round < count; ++round) {
                        const auto bytes = buffer.bytes().subspan(offset, size);
                        await_last(bytes, mark_of(round));
                        require(all_are(bytes, mark_of(round)), "all other bytes are there when the last ones are");
                        wire.notify();
                    }
            wire.await();  // the last write may be visible before it is confirmed
        };
        CHECK_NOTHROW(run_processes(initiator, target));
    }
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "rule 15: a message arrives in memory without a call by the receiver",
                 "[hosts]") {
    for (const std::size_t size : polled_sizes()) {
        CAPTURE(size);
        const auto sender = [&](Wire& wire) {
            End end(*provider(), {.reliability = Reliability::ReliableDelivery});
            const Buffer mine(end.node, size);
            const Sge piece = mine.sge();
            end.call(wire);
            for (int round = 0; round < 3; ++round) {
                wire.await();
                std::ranges::fill(mine.bytes(), mark_of(round));
                end.port.post(send_of(1, piece));
                require(end.port.sent().code == CompletionCode::Success, "send");
            }
            wire.await();
        };
        const auto receiver = [&](Wire& wire) {
            End end(*provider(), {.reliability = Reliability::ReliableDelivery});
            const Buffer buffer(end.node, size);
            const Sge piece = buffer.sge();
            end.serve(wire);
            for (int round = 0; round < 3; ++round) {
                end.port.post(receive_of(1, piece));
                wire.notify();
                await_last(buffer.bytes(), mark_of(round));
                require(all_are(buffer.bytes(), mark_of(round)), "the message");
                require(end.port.received().code == CompletionCode::Success, "its completion waits");
            }
            wire.notify();
        };
        CHECK_NOTHROW(run_processes(sender, receiver));
    }
}

TEST_CASE_METHOD(EveryBackend, "receives: memory beyond the message need not be mapped") {
    if (backend.by_device) return;  // see tests/conformance/rpma/unfit.c for devices
    for (const std::size_t size : {std::size_t{0}, std::size_t{8}, std::size_t{64}}) {
        CAPTURE(size);
        Connection connection(near, far);
        auto& [client, server] = connection;
        const Buffer mine(near, 64);
        const Buffer theirs(far, 64);
        const Sge from = mine.sge(0, size);
        Sge into = theirs.sge();
        into.length = 128;  // exceeds the region
        server.post(receive_of(1, into));
        client.post(send_of(2, from));
        const Completion completion = server.received();
        CHECK(completion.code == CompletionCode::Success);
        CHECK(completion.bytes == size);
    }
}

// SPDX-License-Identifier: BSD-3-Clause
// Short requests and messages, mostly of 8 bytes, on queues that one thread uses all the time, with polls for one
// completion. Backends may have a shorter way for them.
#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/internals.hpp"
#include "tests/contract/backends.hpp"

using namespace viaduct;
using namespace viaduct::testing;

namespace {

constexpr int many = 200;  // more calls than make the thread the owner of the queue's lock
constexpr std::size_t word = 8;

Completion poll(CompletionQueue& queue) {
    const Deadline deadline = patience();
    Completion completion;
    while (!queue.poll(completion))
        if (deadline.passed()) FAIL("no completion came");
    return completion;
}

/// Two connected endpoints that have exchanged many words.
struct Busy {
    Busy(Node& near, Node& far, const PortOptions& options = {})
        : pair(near, far, options), mine(near, 4096), theirs(far, 4096) {
        for (int i = 0; i < many; ++i) {
            exchange(i);
            CHECK(write(mine.sge(0, word), theirs.remote()) == CompletionCode::Success);
        }
    }

    /// Sends a value, with `i` as the context of the receive, and returns the completion of the receive.
    Completion exchange(int i) {
        mine.store(static_cast<std::uint64_t>(i) * 1000003);
        pair.server.post(receive_of(static_cast<std::uint64_t>(i), theirs.sge(64, 64)));
        pair.client.post(send_of(1, mine.sge(0, word)));
        const Completion completion = poll(*pair.server.receive_queue);
        CHECK(completion.code == CompletionCode::Success);
        CHECK(completion.context == static_cast<std::uint64_t>(i));
        CHECK(completion.operation == CompletedOperation::Receive);
        CHECK(completion.bytes == word);
        CHECK_FALSE(completion.with_immediate);
        CHECK(theirs.load(64) == static_cast<std::uint64_t>(i) * 1000003);
        const Completion sent = poll(*pair.client.send_queue);
        CHECK(sent.code == CompletionCode::Success);
        CHECK(sent.operation == CompletedOperation::Send);
        return completion;
    }

    CompletionCode write(const Sge& piece, const RemoteAddress& remote) {
        pair.client.post(write_of(2, piece, remote));
        return poll(*pair.client.send_queue).code;
    }
    CompletionCode read(const Sge& piece, const RemoteAddress& remote) {
        pair.client.post(read_of(3, piece, remote));
        return poll(*pair.client.send_queue).code;
    }
    CompletionCode send(const Sge& piece) {
        pair.client.post(send_of(4, piece));
        return poll(*pair.client.send_queue).code;
    }

    Connection pair;
    Buffer mine;
    Buffer theirs;
};

/// What a program sees in memory; its address is the context of a request.
struct Seen {
    std::uint64_t other = 0;
    std::uint32_t bytes = 0;
    std::uint32_t status = 0;
};
constexpr CompletionRecord record{.offset = offsetof(Seen, bytes), .status = {11, 12, 13}};

bool observe(const Completion& completion) noexcept {
    if (completion.queue() == QueueKind::Send && completion.code == CompletionCode::Success)
        record.write(completion.context, completion.operation, completion.bytes);
    return true;
}

}  // namespace

TEST_CASE_METHOD(EveryBackend, "words: messages arrive in order, also among others") {
    for (const Reliability reliability : all_levels) {
        CAPTURE(static_cast<int>(reliability));
        Busy busy(near, far, {.reliability = reliability});
        auto& [pair, mine, theirs] = busy;
        constexpr std::array<std::size_t, 8> sizes{8, 8, 0, 8, 1000, 8, 7, 8};
        for (std::size_t i = 0; i < sizes.size(); ++i) pair.server.post(receive_of(i, theirs.sge(i * 8 % 64, 1024)));
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            SendRequest request = send_of(i, mine.sge(0, sizes[i]));
            const Sge piece = mine.sge(0, sizes[i]);
            request.sges = {&piece, 1};
            if (i % 3 == 1) request = with_immediate(request, static_cast<std::uint32_t>(i) + 100);
            pair.client.post(request);
        }
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            const Completion completion = poll(*pair.server.receive_queue);
            CHECK(completion.code == CompletionCode::Success);
            CHECK(completion.context == i);
            CHECK(completion.bytes == sizes[i]);
            CHECK(completion.with_immediate == (i % 3 == 1));
            if (completion.with_immediate) CHECK(completion.immediate == i + 100);
        }
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            const Completion completion = poll(*pair.client.send_queue);
            CHECK(completion.code == CompletionCode::Success);
            CHECK(completion.context == i);
        }
        CHECK(pair.client.quiet());
        CHECK(pair.server.quiet());
    }
}

TEST_CASE_METHOD(EveryBackend, "words: RDMA moves them, and unsignaled requests cause no completion") {
    Busy busy(near, far);
    auto& [pair, mine, theirs] = busy;
    mine.store(0x1122334455667788, 16);
    CHECK(busy.write(mine.sge(16, word), theirs.remote(24)) == CompletionCode::Success);
    CHECK(theirs.load(24) == 0x1122334455667788);
    theirs.store(0x99aabbccddeeff00, 32);
    const Sge target = mine.sge(40, word);
    CHECK(busy.read(target, theirs.remote(32)) == CompletionCode::Success);
    CHECK(mine.load(40) == 0x99aabbccddeeff00);
    const Sge piece = mine.sge(40, word);
    pair.client.post(unsignaled(write_of(5, piece, theirs.remote(48))));
    pair.client.post(write_of(6, piece, theirs.remote(56)));
    CHECK(poll(*pair.client.send_queue).context == 6);
    CHECK(theirs.load(48) == 0x99aabbccddeeff00);
    CHECK(pair.client.quiet());
}

TEST_CASE_METHOD(EveryBackend, "words: requests of every short length move their bytes and no others") {
    constexpr std::size_t at = 5;  // misaligned, at both ends
    constexpr std::size_t most = 80;
    constexpr std::byte untouched{0xEE};
    Busy busy(near, far);
    auto& [pair, mine, theirs] = busy;
    const auto prepare = [&](std::size_t seed) {
        for (std::size_t i = 0; i < 256; ++i) {
            mine.bytes()[i] = static_cast<std::byte>(seed + i);
            theirs.bytes()[i] = untouched;
        }
    };
    const auto check = [&](std::size_t length, std::size_t first) {
        bool right = true;
        for (std::size_t i = 0; i < 256; ++i) {
            const bool moved = i >= at && i < at + length;
            right = right && theirs.bytes()[i] == (moved ? static_cast<std::byte>(first + i - at) : untouched);
        }
        CHECK(right);
    };
    for (std::size_t length = 0; length <= most; ++length) {
        CAPTURE(length);
        prepare(length);
        CHECK(busy.write(mine.sge(3, length), theirs.remote(at)) == CompletionCode::Success);
        check(length, length + 3);
        prepare(length + 1);
        const Sge into = theirs.sge(at, most);
        pair.server.post(receive_of(1, into));
        CHECK(busy.send(mine.sge(3, length)) == CompletionCode::Success);
        CHECK(poll(*pair.server.receive_queue).bytes == length);
        check(length, length + 4);
        std::ranges::fill(mine.bytes().first(256), untouched);
        for (std::size_t i = 0; i < length; ++i) theirs.bytes()[i] = static_cast<std::byte>(length + i);
        CHECK(busy.read(mine.sge(at, length), theirs.remote()) == CompletionCode::Success);
        bool right = true;
        for (std::size_t i = 0; i < 256; ++i) {
            const bool moved = i >= at && i < at + length;
            right = right && mine.bytes()[i] == (moved ? static_cast<std::byte>(length + i - at) : untouched);
        }
        CHECK(right);
    }
}

TEST_CASE_METHOD(EveryBackend, "words: own memory outside of a region is refused") {
    for (const int kind : {0, 1, 2, 3, 4, 5}) {
        CAPTURE(kind);
        Busy busy(near, far);
        auto& [pair, mine, theirs] = busy;
        Sge piece = mine.sge(0, word);
        if (kind < 3) piece.key += 1000;
        if (kind == 3) piece = {.address = mine.bytes().data() + 4089, .key = piece.key, .length = word};
        if (kind == 4) piece = {.address = mine.bytes().data() - 1, .key = piece.key, .length = word};
        if (kind == 5) piece.address = reinterpret_cast<void*>(~std::uintptr_t{3});
        pair.server.post(receive_of(1, theirs.sge(64, 64)));
        const CompletionCode code = kind == 0   ? busy.read(piece, theirs.remote())
                                    : kind == 1 ? busy.send(piece)
                                                : busy.write(piece, theirs.remote());
        CHECK(code == CompletionCode::LocalProtection);
    }
}

TEST_CASE_METHOD(EveryBackend, "words: memory of the peer outside of a region is refused") {
    for (const int kind : {0, 1, 2, 3}) {
        CAPTURE(kind);
        Busy busy(near, far);
        auto& [pair, mine, theirs] = busy;
        RemoteAddress remote = theirs.remote();
        if (kind <= 1) remote.key += 1000;
        if (kind == 2) remote.address += 4089;
        if (kind == 3) remote.address = ~std::uint64_t{3};
        const Sge piece = mine.sge(0, word);
        const CompletionCode code = kind == 0 ? busy.read(piece, remote) : busy.write(piece, remote);
        CHECK(code == CompletionCode::RemoteProtection);
    }
}

TEST_CASE_METHOD(EveryBackend, "words: a region that was used is refused when it is deregistered") {
    for (const int kind : {0, 1, 2, 3}) {
        CAPTURE(kind);
        Busy busy(near, far);
        auto& [pair, mine, theirs] = busy;
        const auto own = std::make_unique<Buffer>(near, 64);
        auto other = std::make_unique<Buffer>(far, 64);
        auto gone = std::make_unique<Buffer>(near, 64);
        const Sge piece = gone->sge(0, word);
        const RemoteAddress remote = other->remote();
        for (int i = 0; i < 3; ++i) {
            CHECK(busy.write(piece, remote) == CompletionCode::Success);
            CHECK(busy.read(piece, remote) == CompletionCode::Success);
        }
        pair.server.post(receive_of(1, theirs.sge(64, 64)));
        if (kind < 3) {
            gone.reset();
            const CompletionCode code = kind == 0   ? busy.read(piece, remote)
                                        : kind == 1 ? busy.send(piece)
                                                    : busy.write(piece, remote);
            CHECK(code == CompletionCode::LocalProtection);
        } else {
            other.reset();
            CHECK(busy.write(piece, remote) == CompletionCode::RemoteProtection);
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "words: a receive without room, or whose region is gone, fails") {
    for (const bool is_gone : {false, true}) {
        CAPTURE(is_gone);
        Busy busy(near, far);
        auto& [pair, mine, theirs] = busy;
        auto gone = std::make_unique<Buffer>(far, 64);
        const Sge piece = gone->sge(0, is_gone ? 64 : 7);
        pair.server.post(receive_of(1, piece));
        if (is_gone) gone.reset();
        pair.client.post(send_of(2, mine.sge(0, word)));
        const CompletionCode code = poll(*pair.server.receive_queue).code;
        CHECK(code == (is_gone ? CompletionCode::LocalProtection : CompletionCode::LocalLength));
        CHECK(poll(*pair.client.send_queue).code != CompletionCode::Success);
    }
}

TEST_CASE_METHOD(EveryBackend, "words: a full queue takes no more, and its completions come in order") {
    Busy busy(near, far, {.send_depth = 16});
    auto& [pair, mine, theirs] = busy;
    const Sge piece = mine.sge(0, word);
    for (std::uint64_t round = 0; round < 3; ++round) {
        for (std::uint64_t i = 0; i < 16; ++i) pair.client.post(write_of(i, piece, theirs.remote()));
        CHECK(pair.client.endpoint->outstanding(QueueKind::Send) == 16);
        CHECK(pair.client.endpoint->post_send(write_of(16, piece, theirs.remote())).code() == Code::QueueFull);
        for (std::uint64_t i = 0; i < 16; ++i) CHECK(poll(*pair.client.send_queue).context == i);
        CHECK(pair.client.endpoint->outstanding(QueueKind::Send) == 0);
    }
}

TEST_CASE_METHOD(EveryBackend, "words: the record of a completion that was observed is in memory") {
    const auto queue = must(Internals::create_queue<CompletionQueue>(
        near.device, CompletionQueueConfig{.capacity = 1024}, observe, &record));
    Port client(near, {.queue = queue});
    Port server(far);
    join(client, server);
    const Buffer mine(near, 4096), theirs(far, 4096);
    const Sge piece = mine.sge(0, word), large = mine.sge(0, 1000), into = theirs.sge(0, 2048);
    const bool observes = backend.name == "loopback";
    for (int i = 0; i < many; ++i) {
        const Sge& what = i % 8 == 7 ? large : piece;
        server.post(receive_of(1, into));
        const auto check = [&](SendRequest request, std::uint32_t status) {
            Seen seen;
            request.context = reinterpret_cast<std::uint64_t>(&seen);
            client.post(request);
            const Completion completion = poll(*queue);
            CHECK(completion.code == CompletionCode::Success);
            CHECK(completion.context == request.context);
            const bool is_write = completion.operation == CompletedOperation::RdmaWrite;
            if (observes && is_write) CHECK(completion.observed);
            if (!completion.observed) return;
            CHECK(seen.other == 0);
            CHECK(seen.bytes == what.length);
            CHECK(seen.status == status);
        };
        check(send_of(0, what), 11);
        check(write_of(0, what, theirs.remote(2048)), 12);
        check(read_of(0, what, theirs.remote(2048)), 13);
        CHECK(poll(*server.receive_queue).code == CompletionCode::Success);
    }
}

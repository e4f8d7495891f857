// SPDX-License-Identifier: BSD-3-Clause
// Internals::send_one(), write_one(), read_one() and receive_one(): they post what post_send() and post_receive() post.
#include <atomic>
#include <thread>
#include <vector>

#include "core/base/internals.hpp"
#include "tests/contract/backends.hpp"

using namespace viaduct;
using namespace viaduct::testing;

namespace {

Code code_of(const Status* failure) { return failure == nullptr ? Code::Ok : failure->code(); }

}  // namespace

TEST_CASE_METHOD(EveryBackend, "single posts: messages arrive in order, also among others") {
    constexpr std::uint32_t depth = 100;
    constexpr std::uint64_t rounds = 300;  // more than the queues have places
    for (const Reliability level : all_levels) {
        CAPTURE(static_cast<int>(level));
        Connection pair(near, far, {.reliability = level, .send_depth = depth, .receive_depth = depth});
        const Buffer mine(near, 1024);
        const Buffer theirs(far, 1024);
        auto& client = *pair.client.endpoint;
        auto& server = *pair.server.endpoint;
        for (std::uint64_t i = 0; i < rounds; ++i) {
            CAPTURE(i);
            const std::size_t size = i % 4 == 2 ? 1000 : i % 4 == 3 ? 0 : 8;
            const Sge from = mine.sge(0, size);
            const Sge into = theirs.sge();
            const bool other = i % 5 > 2;  // posted in the other way
            fill(mine.bytes(), static_cast<std::uint32_t>(i));
            if (i % 3 == 0)
                pair.server.post(receive_of(i, into));
            else
                REQUIRE(Internals::receive_one(server, i, into) == nullptr);
            if (other)
                pair.client.post(with_immediate(send_of(i + 1000, from), static_cast<std::uint32_t>(i)));
            else
                REQUIRE(Internals::send_one(client, i + 1000, from) == nullptr);
            const Completion received = pair.server.received();
            REQUIRE(received.code == CompletionCode::Success);
            REQUIRE(received.operation == CompletedOperation::Receive);
            REQUIRE(received.context == i);
            REQUIRE(received.bytes == size);
            REQUIRE(received.with_immediate == other);
            if (other) REQUIRE(received.immediate == i);
            REQUIRE(std::equal(mine.bytes().begin(), mine.bytes().begin() + static_cast<std::ptrdiff_t>(size),
                               theirs.bytes().begin()));
            const Completion sent = pair.client.sent();
            REQUIRE(sent.code == CompletionCode::Success);
            REQUIRE(sent.operation == CompletedOperation::Send);
            REQUIRE(sent.context == i + 1000);
            REQUIRE(sent.bytes == size);
            REQUIRE_FALSE(sent.with_immediate);
        }
        CHECK(client.outstanding(QueueKind::Send) == 0);
        CHECK(server.outstanding(QueueKind::Receive) == 0);
    }
}

TEST_CASE_METHOD(EveryBackend, "single posts: RDMA writes and reads reach the addresses that they name") {
    Connection pair(near, far);
    const Buffer mine(near, 4096);
    const Buffer theirs(far, 4096);
    auto& client = *pair.client.endpoint;
    mine.store(0x1122334455667788, 16);
    theirs.store(0x99aabbccddeeff00, 32);
    REQUIRE(Internals::write_one(client, 1, mine.sge(16, 8), theirs.remote(24)) == nullptr);
    const Completion written = pair.client.sent();
    CHECK(written.code == CompletionCode::Success);
    CHECK(written.operation == CompletedOperation::RdmaWrite);
    CHECK(written.context == 1);
    CHECK(theirs.load(24) == 0x1122334455667788);
    REQUIRE(Internals::read_one(client, 2, mine.sge(40, 8), theirs.remote(32)) == nullptr);
    const Completion read = pair.client.sent();
    CHECK(read.code == CompletionCode::Success);
    CHECK(read.operation == CompletedOperation::RdmaRead);
    CHECK(read.context == 2);
    CHECK(mine.load(40) == 0x99aabbccddeeff00);
    CHECK(pair.client.quiet());
}

TEST_CASE_METHOD(EveryBackend, "single posts: a full queue is reported, and has room after a poll") {
    constexpr std::uint32_t depth = 4;
    Connection pair(near, far, {.send_depth = depth, .receive_depth = depth});
    const Buffer mine(near, 8);
    const Buffer theirs(far, 16);
    auto& client = *pair.client.endpoint;
    auto& server = *pair.server.endpoint;
    for (int round = 0; round < 3; ++round) {
        for (std::uint32_t i = 0; i < depth; ++i)
            REQUIRE(Internals::receive_one(server, i, theirs.sge(8, 8)) == nullptr);
        CHECK(code_of(Internals::receive_one(server, depth, theirs.sge(8, 8))) == Code::QueueFull);
        for (std::uint32_t i = 0; i < depth; ++i) REQUIRE(Internals::send_one(client, i, mine.sge()) == nullptr);
        CHECK(code_of(Internals::send_one(client, depth, mine.sge())) == Code::QueueFull);
        CHECK(code_of(Internals::write_one(client, depth, mine.sge(), theirs.remote())) == Code::QueueFull);
        CHECK(code_of(Internals::read_one(client, depth, mine.sge(), theirs.remote())) == Code::QueueFull);
        for (std::uint32_t i = 0; i < depth; ++i) {
            CHECK(pair.server.received().context == i);
            CHECK(pair.client.sent().context == i);
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "single posts: memory outside of a region is refused, at this side and at the peer") {
    for (const int kind : {0, 1, 2, 3, 4}) {
        CAPTURE(kind);
        Connection pair(near, far);
        const Buffer mine(near, 4096);
        const Buffer theirs(far, 4096);
        auto& client = *pair.client.endpoint;
        Sge piece = mine.sge(0, 8);
        RemoteAddress place = theirs.remote();
        REQUIRE(Internals::write_one(client, 1, piece, place) == nullptr);  // so that the region is known
        CHECK(pair.client.sent().code == CompletionCode::Success);
        if (kind == 4)
            place.key += 1000;
        else if (kind == 3)
            piece.address = mine.bytes().data() + 4089;
        else
            piece.key += 1000;
        pair.server.post(receive_of(1, theirs.sge()));
        REQUIRE((kind == 0   ? Internals::send_one(client, 2, piece)
                 : kind == 1 ? Internals::read_one(client, 2, piece, place)
                             : Internals::write_one(client, 2, piece, place)) == nullptr);
        CHECK(pair.client.sent().code ==
              (kind == 4 ? CompletionCode::RemoteProtection : CompletionCode::LocalProtection));
    }
}

TEST_CASE_METHOD(EveryBackend, "single posts: without a connection, sends are flushed and receives are kept") {
    Port client(near);
    Port server(far);
    const Buffer mine(near, 8);
    const Buffer theirs(far, 8);
    REQUIRE(Internals::send_one(*client.endpoint, 1, mine.sge()) == nullptr);
    REQUIRE(Internals::write_one(*client.endpoint, 2, mine.sge(), {}) == nullptr);
    for (const std::uint64_t context : {1, 2}) {
        const Completion completion = client.sent();
        CHECK(completion.code == CompletionCode::Flushed);
        CHECK(completion.context == context);
    }
    REQUIRE(Internals::receive_one(*server.endpoint, 3, theirs.sge()) == nullptr);
    join(client, server);
    REQUIRE(Internals::send_one(*client.endpoint, 4, mine.sge()) == nullptr);
    const Completion received = server.received();
    CHECK(received.code == CompletionCode::Success);
    CHECK(received.context == 3);
    CHECK(client.sent().context == 4);
}

TEST_CASE_METHOD(EveryBackend, "single posts: two threads post to one queue") {
    constexpr std::uint64_t each = 300;
    constexpr std::uint64_t posters = 2;
    Connection pair(near, far, {.send_depth = 8});
    const Buffer mine(near, 8);
    const Buffer theirs(far, 8);
    const RemoteAddress place = theirs.remote();
    std::atomic<bool> failed{false};
    std::vector<std::thread> threads;
    for (std::uint64_t poster = 0; poster < posters; ++poster)
        threads.emplace_back([&, poster] {
            for (std::uint64_t i = 0; i < each && !failed; ++i) {
                Code code = Code::QueueFull;
                while (code == Code::QueueFull && !failed) {
                    code = code_of(Internals::write_one(*pair.client.endpoint, poster * each + i, mine.sge(), place));
                    if (code == Code::QueueFull) std::this_thread::yield();
                }
                if (code != Code::Ok) failed = true;
            }
        });
    std::vector<std::uint64_t> next{0, each};  // of each thread
    const Deadline deadline = patience();
    for (std::uint64_t taken = 0; taken < posters * each && !failed;) {
        Completion completion;
        if (!pair.client.send_queue->poll(completion)) {
            failed = failed || deadline.passed();
            continue;
        }
        const std::uint64_t poster = completion.context / each;
        if (completion.code != CompletionCode::Success || poster >= posters || completion.context != next[poster]++)
            failed = true;
        ++taken;
    }
    CHECK_FALSE(failed);
    for (auto& thread : threads) thread.join();
    CHECK(pair.client.quiet());
}

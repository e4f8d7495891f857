// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "backends/support/flusher.hpp"
#include "tests/support/mapped_file.hpp"

using viaduct::support::Flusher;
using viaduct::support::FlushJob;

namespace {

/// The connections for which flushes are done, in order.
class Done {
public:
    void add(std::uint32_t connection) {
        const std::lock_guard lock(mutex_);
        connections_.push_back(connection);
        news_.notify_all();
    }
    std::vector<std::uint32_t> await(std::size_t count) {
        std::unique_lock lock(mutex_);
        news_.wait(lock, [&] { return connections_.size() >= count; });
        return connections_;
    }

private:
    std::mutex mutex_;
    std::condition_variable news_;
    std::vector<std::uint32_t> connections_;
};

}  // namespace

TEST_CASE("flusher: runs jobs in order and tells how they ended") {
    const viaduct::testing::MappedFile file(8192);
    const auto begin = reinterpret_cast<std::uint64_t>(file.bytes().data());
    constexpr std::uint64_t nowhere = 4096;  // the system maps nothing at the lowest addresses

    Done done;
    Flusher flusher([&done](std::uint32_t connection) { done.add(connection); });
    const auto good = flusher.start(begin + 100, 5000, 3);  // not aligned
    const auto bad = flusher.start(nowhere, 101, 2);
    CHECK(done.await(2) == std::vector<std::uint32_t>{3, 2});
    CHECK(good->state == FlushJob::State::Done);
    CHECK(bad->state == FlushJob::State::Failed);
}

TEST_CASE("flusher: ends without a job and while jobs wait") {
    const Flusher idle([](std::uint32_t) {});
    const viaduct::testing::MappedFile file(4096);
    const auto begin = reinterpret_cast<std::uint64_t>(file.bytes().data());
    Flusher busy([](std::uint32_t) {});
    for (std::uint32_t i = 0; i < 100; ++i) (void)busy.start(begin, 4096, i);
}

// SPDX-License-Identifier: BSD-3-Clause
// The library's threads: they ignore signals and may end themselves.
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <thread>

#include "core/base/thread.hpp"

using viaduct::end_thread;
using viaduct::start_thread;

namespace {

bool blocks(int number) {
    sigset_t set;
    sigemptyset(&set);
    pthread_sigmask(SIG_SETMASK, nullptr, &set);
    return sigismember(&set, number) == 1;
}

}  // namespace

TEST_CASE("thread: blocks signals and does not change the creator's mask") {
    const bool before = blocks(SIGUSR1);
    std::atomic<bool> deaf{false};
    std::thread thread = start_thread([&] { deaf = blocks(SIGUSR1) && blocks(SIGTERM) && blocks(SIGALRM); });
    CHECK(blocks(SIGUSR1) == before);
    end_thread(thread);
    CHECK_FALSE(thread.joinable());
    CHECK(deaf);
    end_thread(thread);  // has already ended
}

TEST_CASE("thread: accepts move-only functions") {
    auto value = std::make_unique<int>(7);
    int seen = 0;
    std::thread thread = start_thread([value = std::move(value), &seen] { seen = *value; });
    end_thread(thread);
    CHECK(seen == 7);
}

TEST_CASE("thread: a thread that destroys its own object continues detached") {
    std::thread thread;
    std::atomic<bool> ready{false};
    std::atomic<bool> done{false};
    thread = start_thread([&] {
        while (!ready) std::this_thread::yield();
        end_thread(thread);
        done = true;
    });
    ready = true;
    while (!done) std::this_thread::yield();
    CHECK_FALSE(thread.joinable());
}

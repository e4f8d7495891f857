// SPDX-License-Identifier: BSD-3-Clause
// The handles of a process, and which thread may end their objects.
#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <thread>
#include <vector>

#include "api/support/handles.hpp"

using viaduct::claim;
using viaduct::resolve;

namespace {

constinit viaduct::HandleSlots<8> slots;

struct Juice {
    long glasses;
};

struct Apple : viaduct::WithHandle<Apple, void, slots, 1> {};
struct Taste {
    virtual ~Taste() = default;
};
struct Pear final : Taste, viaduct::WithHandle<Pear, Juice, slots, 2, Juice> {};

}  // namespace

TEST_CASE("handles: find their objects as long as these exist") {
    void* handle = nullptr;
    {
        Apple apple;
        handle = apple.handle();
        CHECK(handle != nullptr);
        CHECK(resolve<Apple>(handle) == &apple);
        const Apple other;
        CHECK(other.handle() != handle);
        CHECK(resolve<Apple>(handle) == &apple);
    }
    CHECK(resolve<Apple>(handle) == nullptr);
    const Apple successor;
    CHECK(successor.handle() != handle);
    CHECK(resolve<Apple>(handle) == nullptr);
}

TEST_CASE("handles: other kinds, null and addresses of objects are refused") {
    const auto apple = std::make_unique<Apple>();
    CHECK(resolve<Pear>(apple->handle()) == nullptr);
    const void* nothing = nullptr;
    CHECK(resolve<Apple>(nothing) == nullptr);
    CHECK(resolve<Apple>(apple.get()) == nullptr);
}

TEST_CASE("handles: only one call revokes, and it is told so") {
    Apple apple;
    void* const handle = apple.handle();
    CHECK(apple.revoke());
    CHECK(resolve<Apple>(handle) == nullptr);
    CHECK_FALSE(apple.revoke());
    CHECK(apple.handle() == handle);  // the handle has a value but is invalid
}

TEST_CASE("handles: if several threads revoke, one succeeds") {
    for (int round = 0; round < 200; ++round) {
        Apple apple;
        std::atomic<int> winners{0};
        std::vector<std::thread> threads;
        threads.reserve(3);
        for (int i = 0; i < 3; ++i)
            threads.emplace_back([&] {
                if (Apple* found = resolve<Apple>(apple.handle())) winners += found->revoke();
            });
        for (auto& thread : threads) thread.join();
        REQUIRE(winners == 1);
    }
}

TEST_CASE("handles: a claimed object is the caller's") {
    auto made = std::make_unique<Pear>();
    Pear* const pear = made.release();
    Juice* const handle = pear->handle();
    CHECK(resolve<Pear>(handle) == pear);
    CHECK(claim<Apple>(handle) == nullptr);
    const auto claimed = claim<Pear>(handle);
    CHECK(claimed.get() == pear);
    CHECK(claim<Pear>(handle) == nullptr);
}

TEST_CASE("handles: programs read the fields of an object through its handle") {
    Pear pear;
    CHECK(pear.handle()->glasses == 0);
    pear.fields().glasses = 3;
    CHECK(pear.handle()->glasses == 3);
}

// SPDX-License-Identifier: BSD-3-Clause
// The handles of a process, and which thread may end their objects.
#include <atomic>
#include <catch2/catch.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "api/support/handles.hpp"

using viaduct::Registration;
using viaduct::resolve;

namespace {

struct Apple;
struct Pear;

}  // namespace

// Kinds that no front-end uses.
template <>
inline constexpr std::uint8_t viaduct::handle_kind<Apple> = 0xf1;
template <>
inline constexpr std::uint8_t viaduct::handle_kind<Pear> = 0xf2;

namespace {

struct Apple {
    Registration<Apple> registration{this};
};

struct Pear {
    Registration<Pear> registration{this};
};

}  // namespace

TEST_CASE("handles: find their objects as long as these exist") {
    void* handle = nullptr;
    {
        Apple apple;
        handle = apple.registration.handle();
        CHECK(handle != nullptr);
        CHECK(resolve<Apple>(handle) == &apple);
        CHECK(resolve<Apple>(apple.registration.value()) == &apple);
        CHECK(reinterpret_cast<std::uint64_t>(handle) == apple.registration.value());
        const Apple other;
        CHECK(other.registration.handle() != handle);
        CHECK(resolve<Apple>(handle) == &apple);
    }
    CHECK(resolve<Apple>(handle) == nullptr);
    const Apple successor;
    CHECK(successor.registration.handle() != handle);
    CHECK(resolve<Apple>(handle) == nullptr);
}

TEST_CASE("handles: other kinds, null and addresses of objects are refused") {
    Apple apple;
    CHECK(resolve<Pear>(apple.registration.handle()) == nullptr);
    CHECK(resolve<Apple>(nullptr) == nullptr);
    CHECK(resolve<Apple>(std::uint64_t{0}) == nullptr);
    CHECK(resolve<Apple>(&apple) == nullptr);
}

TEST_CASE("handles: only one call revokes, and it is told so") {
    Apple apple;
    void* const handle = apple.registration.handle();
    CHECK(apple.registration.revoke());
    CHECK(resolve<Apple>(handle) == nullptr);
    CHECK_FALSE(apple.registration.revoke());
    CHECK(apple.registration.handle() == handle);  // the handle has a value but is invalid
}

TEST_CASE("handles: destroying a revoked one does not affect the next object in its slot") {
    std::optional<Apple> first(std::in_place);
    CHECK(first->registration.revoke());
    const Apple second;  // in the freed slot
    first.reset();
    CHECK(resolve<Apple>(second.registration.handle()) == &second);
}

TEST_CASE("handles: if several threads revoke, one succeeds") {
    for (int round = 0; round < 200; ++round) {
        Apple apple;
        std::atomic<int> winners{0};
        std::vector<std::thread> threads;
        threads.reserve(3);
        for (int i = 0; i < 3; ++i)
            threads.emplace_back([&] {
                if (Apple* found = resolve<Apple>(apple.registration.handle())) winners += found->registration.revoke();
            });
        for (auto& thread : threads) thread.join();
        REQUIRE(winners == 1);
    }
}

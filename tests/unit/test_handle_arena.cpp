// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>
#include <catch2/catch.hpp>
#include <set>
#include <thread>
#include <vector>

#include "core/handle_arena.hpp"

using viaduct::HandleArena;

namespace {

constexpr std::uint8_t kind = 201;
constexpr std::uint8_t other_kind = 202;
const int table = 0;

HandleArena& arena() { return HandleArena::instance(); }

}  // namespace

TEST_CASE("handle arena: a handle begins with its table and finds its object until it ends") {
    int object = 0;
    void* handle = arena().insert(&table, kind, &object);
    CHECK(*static_cast<const void* const*>(handle) == &table);
    CHECK(arena().find(handle, kind) == &object);
    CHECK(arena().find(handle, other_kind) == nullptr);
    CHECK(arena().kind_of(handle) == kind);
    CHECK(arena().table_of(handle) == &table);

    CHECK_FALSE(arena().erase(handle, other_kind));
    CHECK(arena().erase(handle, kind));
    CHECK_FALSE(arena().erase(handle, kind));
    CHECK(arena().find(handle, kind) == nullptr);
    CHECK(arena().kind_of(handle) == 0);
    CHECK(arena().table_of(handle) == nullptr);
    CHECK(*static_cast<const void* const*>(handle) == &table);
}

TEST_CASE("handle arena: what is not a handle is found out without being read") {
    int object = 0;
    void* handle = arena().insert(&table, kind, &object);
    CHECK(arena().contains(handle));
    for (const std::uintptr_t forged :
         {std::uintptr_t{0}, std::uintptr_t{1}, ~std::uintptr_t{0}, reinterpret_cast<std::uintptr_t>(&object)}) {
        CHECK_FALSE(arena().contains(reinterpret_cast<void*>(forged)));
        CHECK(arena().find(reinterpret_cast<void*>(forged), kind) == nullptr);
    }
    CHECK(arena().find(static_cast<char*>(handle) + 8, kind) == nullptr);
    arena().erase(handle, kind);
}

TEST_CASE("handle arena: a handle that ended is not soon used again") {
    int object = 0;
    std::set<void*> seen;
    for (int round = 0; round < 4096; ++round) {
        void* handle = arena().insert(&table, kind, &object);
        CHECK(seen.insert(handle).second);
        arena().erase(handle, kind);
    }
}

TEST_CASE("handle arena: of several threads that end a handle one does") {
    int object = 0;
    for (int round = 0; round < 200; ++round) {
        void* handle = arena().insert(&table, kind, &object);
        std::atomic<int> ended{0};
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; ++i) threads.emplace_back([&] { ended += arena().erase(handle, kind) ? 1 : 0; });
        for (auto& thread : threads) thread.join();
        CHECK(ended == 1);
    }
}

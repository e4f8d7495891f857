// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>
#include <catch2/catch.hpp>
#include <set>
#include <thread>
#include <vector>

#include "api/support/handle_arena.hpp"

using viaduct::HandleArena;

namespace {

constexpr std::uint8_t type = 201;
constexpr std::uint8_t other_type = 202;
const int table = 0;

HandleArena& arena() { return HandleArena::instance(); }

}  // namespace

TEST_CASE("handle arena: a handle starts with its table and finds its object until it ends") {
    int object = 0;
    void* handle = arena().insert(&table, type, &object);
    CHECK(*static_cast<const void* const*>(handle) == &table);
    CHECK(arena().find(handle, type) == &object);
    CHECK(arena().find(handle, other_type) == nullptr);
    CHECK(arena().find_any(handle) == &object);
    CHECK(HandleArena::table_of_held(handle) == &table);

    CHECK_FALSE(arena().end(handle, other_type, &object));
    CHECK(arena().end(handle, type, &object));
    CHECK_FALSE(arena().end(handle, type, &object));
    CHECK(arena().find(handle, type) == nullptr);
    CHECK(arena().find_any(handle) == nullptr);
    CHECK(HandleArena::table_of_held(handle) == &table);
}

TEST_CASE("handle arena: invalid handles are detected without reading them") {
    int object = 0;
    void* handle = arena().insert(&table, type, &object);
    CHECK(arena().contains(handle));
    CHECK(arena().holds(handle));
    for (const std::uintptr_t forged :
         {std::uintptr_t{0}, std::uintptr_t{1}, ~std::uintptr_t{0}, reinterpret_cast<std::uintptr_t>(&object)}) {
        CHECK_FALSE(arena().contains(reinterpret_cast<void*>(forged)));
        CHECK_FALSE(arena().holds(reinterpret_cast<void*>(forged)));
        CHECK(arena().find(reinterpret_cast<void*>(forged), type) == nullptr);
    }
    char* const inside = static_cast<char*>(handle) + 8;
    CHECK(arena().contains(inside));
    CHECK_FALSE(arena().holds(inside));
    CHECK(arena().find(inside, type) == nullptr);
    arena().end(handle, type, &object);
    CHECK(arena().holds(handle));
}

TEST_CASE("handle arena: an ended handle is not reused soon") {
    int object = 0;
    std::set<void*> seen;
    for (int round = 0; round < 4096; ++round) {
        void* handle = arena().insert(&table, type, &object);
        CHECK(seen.insert(handle).second);
        arena().end(handle, type, &object);
    }
}

TEST_CASE("handle arena: if several threads end a handle, one succeeds") {
    int object = 0;
    for (int round = 0; round < 200; ++round) {
        void* handle = arena().insert(&table, type, &object);
        std::atomic<int> ended{0};
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; ++i) threads.emplace_back([&] { ended += arena().end(handle, type, &object) ? 1 : 0; });
        for (auto& thread : threads) thread.join();
        CHECK(ended == 1);
    }
}

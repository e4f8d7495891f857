// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>
#include <catch2/catch.hpp>
#include <set>
#include <thread>
#include <vector>

#include "api/support/handle_arena.hpp"

using viaduct::HandleArena;

namespace {

constexpr std::uint8_t kind = 201;
constexpr std::uint8_t other_kind = 202;
const int table = 0;

HandleArena& arena() { return HandleArena::instance(); }

}  // namespace

TEST_CASE("handle arena: a handle starts with its table and finds its object until it ends") {
    int object = 0;
    void* handle = arena().insert(&table, kind, &object);
    CHECK(*static_cast<const void* const*>(handle) == &table);
    CHECK(arena().find(handle, kind) == &object);
    CHECK(arena().find(handle, other_kind) == nullptr);
    CHECK(arena().kind_of(handle) == kind);
    CHECK(HandleArena::table_of_held(handle) == &table);

    CHECK_FALSE(arena().erase(handle, other_kind));
    CHECK(arena().erase(handle, kind));
    CHECK_FALSE(arena().erase(handle, kind));
    CHECK(arena().find(handle, kind) == nullptr);
    CHECK(arena().kind_of(handle) == 0);
    CHECK(HandleArena::table_of_held(handle) == &table);
}

TEST_CASE("handle arena: invalid handles are detected without reading them") {
    int object = 0;
    void* handle = arena().insert(&table, kind, &object);
    CHECK(arena().contains(handle));
    CHECK(arena().holds(handle));
    for (const std::uintptr_t forged :
         {std::uintptr_t{0}, std::uintptr_t{1}, ~std::uintptr_t{0}, reinterpret_cast<std::uintptr_t>(&object)}) {
        CHECK_FALSE(arena().contains(reinterpret_cast<void*>(forged)));
        CHECK_FALSE(arena().holds(reinterpret_cast<void*>(forged)));
        CHECK(arena().find(reinterpret_cast<void*>(forged), kind) == nullptr);
    }
    char* const inside = static_cast<char*>(handle) + 8;
    CHECK(arena().contains(inside));
    CHECK_FALSE(arena().holds(inside));
    CHECK(arena().find(inside, kind) == nullptr);
    arena().erase(handle, kind);
    CHECK(arena().holds(handle));
}

TEST_CASE("handle arena: an ended handle is not reused soon") {
    int object = 0;
    std::set<void*> seen;
    for (int round = 0; round < 4096; ++round) {
        void* handle = arena().insert(&table, kind, &object);
        CHECK(seen.insert(handle).second);
        arena().erase(handle, kind);
    }
}

TEST_CASE("handle arena: if several threads end a handle, one succeeds") {
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

TEST_CASE("handle slots: the face is initially zero and remains readable after the handle ends") {
    static constinit viaduct::HandleSlots<100> slots;
    int object = 0;
    unsigned sum = 0;
    void* handle = slots.insert(kind, &object, [&](void* face) {
        for (int i = 0; i < 100; ++i) sum += static_cast<unsigned char*>(face)[i];
        static_cast<char*>(face)[99] = 'x';
    });
    CHECK(sum == 0);
    CHECK(slots.take(handle, other_kind) == nullptr);
    CHECK(slots.take(handle, kind) == &object);
    CHECK(slots.take(handle, kind) == nullptr);
    CHECK(static_cast<char*>(handle)[99] == 'x');
}

TEST_CASE("handle slots: memory before the first and after the last used slot is no handle") {
    static constinit viaduct::HandleSlots<100> slots;
    int object = 0;
    auto* const first = static_cast<char*>(slots.insert(kind, &object, [](void*) {}));
    auto* const second = static_cast<char*>(slots.insert(kind, &object, [](void*) {}));
    const std::ptrdiff_t size = second - first;
    for (char* const outside : {first - size, first - 1, second + size, second + 2 * size}) {
        CHECK_FALSE(slots.holds(outside));
        CHECK_FALSE(slots.contains(outside));
    }
    CHECK(slots.holds(second));
}

TEST_CASE("handle slots: a view finds what existed when it was made, as long as that is valid") {
    using Slots = viaduct::HandleSlots<100>;
    static constinit Slots slots;
    int object = 0;
    const auto no_face = [](void*) {};
    CHECK(Slots::View(slots).find(nullptr, kind) == nullptr);
    void* handle = slots.insert(kind, &object, no_face);
    void* ended = slots.insert(kind, &object, no_face);
    const Slots::View view(slots);
    CHECK(view.find(handle, kind) == &object);
    CHECK(view.find(handle, other_kind) == nullptr);
    CHECK(view.find(static_cast<char*>(handle) + 1, kind) == nullptr);
    slots.end(ended, kind, &object);
    CHECK(view.find(ended, kind) == nullptr);
    void* later = slots.insert(kind, &object, no_face);
    CHECK(view.find(later, kind) == nullptr);
    CHECK(Slots::View(slots).find(later, kind) == &object);
}

TEST_CASE("handle slots: ending an ended handle does not affect the slot's next owner") {
    static constinit viaduct::HandleSlots<100> slots;
    int object = 0;
    int other = 0;
    const auto no_face = [](void*) {};
    void* handle = slots.insert(kind, &object, no_face);
    const std::uint32_t number = slots.number_of(handle);
    CHECK(slots.take(handle, kind) == &object);
    void* next = nullptr;
    while (next != handle) {
        if (next != nullptr) slots.end(next, kind, &other);
        next = slots.insert(kind, &other, no_face);
        CHECK((next == handle) == (slots.number_of(next) == number));
    }
    slots.end(handle, kind, &object);
    CHECK(slots.find(handle, kind) == &other);
}

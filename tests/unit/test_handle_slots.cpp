// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <random>
#include <thread>
#include <vector>

#include "api/support/handle_slots.hpp"

namespace {

constexpr std::uint8_t slot_type = 201;
constexpr std::uint8_t other_slot_type = 202;

}  // namespace

TEST_CASE("handle slots: the face is initially zero and remains readable after the handle ends") {
    static constinit viaduct::HandleSlots<100> slots;
    int object = 0;
    unsigned sum = 0;
    void* handle = slots.insert(slot_type, &object, [&](void* face) {
        for (int i = 0; i < 100; ++i) sum += static_cast<unsigned char*>(face)[i];
        static_cast<char*>(face)[99] = 'x';
    });
    CHECK(sum == 0);
    CHECK_FALSE(slots.end(handle, other_slot_type, &object));
    CHECK_FALSE(slots.end(handle, slot_type, &sum));
    CHECK(slots.end(handle, slot_type, &object));
    CHECK_FALSE(slots.end(handle, slot_type, &object));
    CHECK(static_cast<char*>(handle)[99] == 'x');
}

TEST_CASE("handle slots: memory before the first and after the last used slot is no handle") {
    static constinit viaduct::HandleSlots<100> slots;
    int object = 0;
    auto* const first = static_cast<char*>(slots.insert(slot_type, &object, [](void*) {}));
    auto* const second = static_cast<char*>(slots.insert(slot_type, &object, [](void*) {}));
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
    const void* nothing = nullptr;
    CHECK(Slots::View(slots).find(nothing, slot_type) == nullptr);
    void* handle = slots.insert(slot_type, &object, no_face);
    void* ended = slots.insert(slot_type, &object, no_face);
    const Slots::View view(slots);
    CHECK(view.find(handle, slot_type) == &object);
    CHECK(view.find(handle, other_slot_type) == nullptr);
    CHECK(view.find(static_cast<char*>(handle) + 1, slot_type) == nullptr);
    slots.end(ended, slot_type, &object);
    CHECK(view.find(ended, slot_type) == nullptr);
    void* later = slots.insert(slot_type, &object, no_face);
    CHECK(Slots::View(slots).find(later, slot_type) == &object);
}

TEST_CASE("handle slots: ending an ended handle does not affect the slot's next owner") {
    static constinit viaduct::HandleSlots<100> slots;
    int object = 0;
    int other = 0;
    const auto no_face = [](void*) {};
    void* handle = slots.insert(slot_type, &object, no_face);
    const std::uint32_t number = slots.number_of(handle);
    const std::uint32_t use = slots.use_of(handle);
    CHECK(slots.end(handle, slot_type, &object));
    CHECK(slots.use_of(handle) == use);
    void* next = nullptr;
    while (next != handle) {
        if (next != nullptr) slots.end(next, slot_type, &other);
        next = slots.insert(slot_type, &other, no_face);
        CHECK((next == handle) == (slots.number_of(next) == number));
    }
    CHECK(slots.use_of(handle) != use);
    slots.end(handle, slot_type, &object);
    CHECK(slots.find(handle, slot_type) == &other);
}

TEST_CASE("handle slots: forged handles are refused, whether or not there are slots") {
    static constinit viaduct::HandleSlots<0> slots;
    int object = 0;
    const auto find = [](std::uint64_t guess) { return slots.find(reinterpret_cast<void*>(guess), slot_type); };
    const auto check = [&](std::uint64_t handle) {
        CHECK(find(~std::uint64_t{0}) == nullptr);
        for (std::uint64_t number = 0; number < 1000; ++number) REQUIRE(find(number) == nullptr);
        for (unsigned bit = 0; bit < 64; ++bit) CHECK(find(handle ^ std::uint64_t{1} << bit) == nullptr);
        std::mt19937_64 random(20011);
        for (int i = 0; i < 100000; ++i) REQUIRE(find(random()) == nullptr);
    };
    check(reinterpret_cast<std::uint64_t>(&object));
    void* const handle = slots.insert(slot_type, &object, [](void*) {});
    check(reinterpret_cast<std::uint64_t>(handle));
    CHECK(slots.find(handle, slot_type) == &object);
}

TEST_CASE("handle slots: if all are in use there is no handle until one ends") {
    static constinit viaduct::HandleSlots<0> slots;
    constexpr std::size_t places = std::size_t{1024} * 1024;
    int object = 0;
    void* last = nullptr;
    const auto insert = [&] { return slots.insert(slot_type, &object, [](void*) {}); };
    for (std::size_t i = 0; i < places; ++i) last = insert();
    CHECK(slots.find(last, slot_type) == &object);
    CHECK(insert() == nullptr);
    CHECK(slots.end(last, slot_type, &object));
    CHECK(insert() == last);
}

TEST_CASE("handle slots: lookups run concurrently with insertions and removals") {
    static constinit viaduct::HandleSlots<0> slots;
    int stable = 0;
    void* const kept = slots.insert(slot_type, &stable, [](void*) {});
    std::atomic<bool> stop{false};
    std::atomic<void*> shown{nullptr};
    std::atomic<int> wrong{0};
    std::array<int, 2> objects{};
    std::vector<std::thread> threads;
    for (int& object : objects) {
        threads.emplace_back([&] {
            for (int i = 0; i < 20000; ++i) {
                void* const handle = slots.insert(slot_type, &object, [](void*) {});
                shown = handle;
                if (slots.find(handle, slot_type) != &object) ++wrong;
                if (!slots.end(handle, slot_type, &object)) ++wrong;
                if (slots.find(handle, slot_type) == &object) ++wrong;
            }
        });
    }
    threads.emplace_back([&] {
        while (!stop) {
            if (slots.find(kept, slot_type) != &stable) ++wrong;
            const void* found = slots.find(shown, slot_type);
            if (found != nullptr && found != &objects[0] && found != &objects[1]) ++wrong;
        }
    });
    threads[0].join();
    threads[1].join();
    stop = true;
    threads[2].join();
    CHECK(wrong == 0);
}

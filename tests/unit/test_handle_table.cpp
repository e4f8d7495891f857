// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "api/support/handle_table.hpp"

using viaduct::HandleTable;

namespace {

constexpr std::uint8_t table_kind = 7;

}  // namespace

TEST_CASE("handle table: a handle finds its object until it is erased") {
    HandleTable<int> table(table_kind);
    int one = 1;
    int two = 2;
    const auto first = table.insert(&one);
    const auto second = table.insert(&two);
    CHECK(first != 0);
    CHECK(first != second);
    CHECK(table.find(first) == &one);
    CHECK(table.find(second) == &two);
    CHECK(table.erase(first) == &one);
    CHECK(table.find(first) == nullptr);
    CHECK(table.erase(first) == nullptr);
    CHECK(table.find(second) == &two);
}

TEST_CASE("handle table: a stale handle differs from the one that reuses its slot") {
    HandleTable<int> table(table_kind);
    int object = 0;
    std::set<std::uint64_t> seen;
    for (int round = 0; round < 1000; ++round) {
        const auto handle = table.insert(&object);
        CHECK(seen.insert(handle).second);
        for (const auto old : seen) REQUIRE((table.find(old) != nullptr) == (old == handle));
        REQUIRE(table.erase(handle) == &object);
        if (seen.size() == 50) seen.clear();
    }
}

TEST_CASE("handle table: handles of another table are refused") {
    HandleTable<int> table(table_kind);
    HandleTable<int> other(table_kind + 1);
    int object = 0;
    const auto handle = table.insert(&object);
    CHECK(other.find(handle) == nullptr);
    const auto foreign = other.insert(&object);
    CHECK(foreign != handle);
    CHECK(table.find(foreign) == nullptr);
    CHECK(table.erase(foreign) == nullptr);
    CHECK(table.find(handle) == &object);
}

TEST_CASE("handle table: forged handles are refused") {
    HandleTable<int> table(table_kind);
    int object = 0;
    const auto handle = table.insert(&object);
    CHECK(table.find(0) == nullptr);
    CHECK(table.find(~std::uint64_t{0}) == nullptr);
    for (unsigned bit = 0; bit < 64; ++bit) {
        CHECK(table.find(handle ^ std::uint64_t{1} << bit) == nullptr);
        CHECK(table.erase(handle ^ std::uint64_t{1} << bit) == nullptr);
    }
    std::mt19937_64 random(20011);
    for (int i = 0; i < 100000; ++i) {
        const auto guess = random();
        REQUIRE((guess == handle || table.find(guess) == nullptr));
    }
    CHECK(table.find(handle) == &object);
}

TEST_CASE("handle table: small numbers are no handles, whether or not the table has slots") {
    HandleTable<int> table(table_kind);
    int object = 0;
    const auto check = [&] {
        for (std::uint64_t number = 0; number < 1000; ++number) {
            REQUIRE(table.find(number) == nullptr);
            REQUIRE(table.erase(number) == nullptr);
        }
    };
    check();
    const auto handle = table.insert(&object);
    check();
    CHECK(table.erase(handle) == &object);
    check();
}

TEST_CASE("handle table: an erased slot of a fresh table is not handle 0") {
    HandleTable<int> table(0);
    int object = 0;
    const auto handle = table.insert(&object);
    CHECK(handle != 0);
    CHECK(table.erase(handle) == &object);
    CHECK(table.find(0) == nullptr);
    CHECK(table.erase(0) == nullptr);
}

TEST_CASE("handle table: grows and keeps earlier handles") {
    HandleTable<int> table(table_kind);
    std::vector<int> objects(5000);
    std::vector<std::uint64_t> handles;
    for (int& object : objects) handles.push_back(table.insert(&object));
    for (std::size_t i = 0; i < objects.size(); ++i) REQUIRE(table.find(handles[i]) == &objects[i]);
}

TEST_CASE("handle table: a full table reports it and accepts more when a slot is free") {
    constexpr std::size_t places = std::size_t{1024} * 1024 - 1;
    HandleTable<int> table(table_kind);
    int object = 0;
    std::uint64_t last = 0;
    for (std::size_t i = 0; i < places; ++i) last = table.insert(&object);
    CHECK(last != 0);
    CHECK(table.insert(&object) == 0);
    CHECK(table.erase(last) == &object);
    CHECK(table.insert(&object) != 0);
}

TEST_CASE("handle table: lookups run concurrently with insertions and removals") {
    HandleTable<int> table(table_kind);
    int stable = 0;
    const auto kept = table.insert(&stable);
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> shown{0};
    std::atomic<int> wrong{0};
    std::array<int, 2> objects{};
    std::vector<std::thread> threads;
    for (int& object : objects) {
        threads.emplace_back([&] {
            for (int i = 0; i < 20000; ++i) {
                const auto handle = table.insert(&object);
                shown = handle;
                if (table.find(handle) != &object) ++wrong;
                if (table.erase(handle) != &object) ++wrong;
                if (table.find(handle) != nullptr) ++wrong;
            }
        });
    }
    threads.emplace_back([&] {
        while (!stop) {
            if (table.find(kept) != &stable) ++wrong;
            const int* found = table.find(shown);
            if (found != nullptr && found != &objects[0] && found != &objects[1]) ++wrong;
        }
    });
    threads[0].join();
    threads[1].join();
    stop = true;
    threads[2].join();
    CHECK(wrong == 0);
}

TEST_CASE("handle table: of several concurrent removals one succeeds") {
    HandleTable<int> table(table_kind);
    int object = 0;
    for (int round = 0; round < 500; ++round) {
        const auto handle = table.insert(&object);
        std::atomic<int> winners{0};
        std::vector<std::thread> threads;
        for (int i = 0; i < 3; ++i) threads.emplace_back([&] { winners += table.erase(handle) != nullptr; });
        for (auto& thread : threads) thread.join();
        REQUIRE(winners == 1);
    }
}

// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <catch2/catch.hpp>

#include "backends/loopback/region_cache.hpp"

using namespace viaduct;
using namespace viaduct::loopback;

namespace {

constexpr std::uint32_t cached_domain = 5;
constexpr unsigned a_use = 1;
constexpr unsigned other_use = 2;

/// A table with a region, and a cache that counts how often it reads the table.
struct Setup {
    Setup() : key(add(memory)) { cache.follow(table.table()); }

    std::uint32_t add(std::array<std::byte, 4096>& what) {
        return table
            .add(what.data(), what.size(), {.writable = true}, cached_domain,
                 {.remote_write = true, .local_write = true})
            .value();
    }

    bool allows(std::uint32_t which, std::uint64_t offset = 0, std::uint64_t bytes = 4096, unsigned uses = a_use) {
        return cache.allows(which, reinterpret_cast<std::uint64_t>(memory.data()) + offset, bytes, uses,
                            [this](const RegionView& region) {
                                ++reads;
                                return region.domain == cached_domain ? a_use : 0u;
                            });
    }

    OwnRegionTable table = std::move(*OwnRegionTable::create());
    alignas(4096) std::array<std::byte, 4096> memory{};
    alignas(4096) std::array<std::byte, 4096> other{};
    RegionCache cache;
    int reads = 0;
    std::uint32_t key;
};

}  // namespace

TEST_CASE("region cache: a region is read once") {
    Setup setup;
    for (int i = 0; i < 10; ++i) CHECK(setup.allows(setup.key));
    CHECK(setup.reads == 1);
    (void)setup.add(setup.other);  // a new key invalidates none
    CHECK(setup.allows(setup.key));
    CHECK(setup.reads == 1);
}

TEST_CASE("region cache: only the range and the uses of the region are allowed") {
    Setup setup;
    CHECK(setup.allows(setup.key, 0, 0));
    CHECK(setup.allows(setup.key, 4095, 1));
    CHECK(setup.allows(setup.key, 4096, 0));
    CHECK_FALSE(setup.allows(setup.key, 4096, 1));
    CHECK_FALSE(setup.allows(setup.key, 1, 4096));
    CHECK_FALSE(setup.allows(setup.key, ~std::uint64_t{0}, 1));
    CHECK_FALSE(setup.allows(setup.key, 0, ~std::uint64_t{0}));
    CHECK_FALSE(setup.allows(setup.key, 0, 1, other_use));
    CHECK_FALSE(setup.allows(setup.key, 0, 1, a_use | other_use));
}

TEST_CASE("region cache: a removed region is not allowed any more") {
    Setup setup;
    CHECK(setup.allows(setup.key));
    setup.table.remove(setup.key);
    CHECK_FALSE(setup.allows(setup.key));
    CHECK_FALSE(setup.allows(0));
    const std::uint32_t next = setup.add(setup.memory);
    CHECK(setup.allows(next));
    CHECK_FALSE(setup.allows(setup.key));
}

TEST_CASE("region cache: new rights take effect at once") {
    Setup setup;
    CHECK(setup.allows(setup.key));
    setup.table.set_rights(setup.key, cached_domain + 1, {});
    CHECK_FALSE(setup.allows(setup.key));
    setup.table.set_rights(setup.key, cached_domain, {});
    CHECK(setup.allows(setup.key));
}

TEST_CASE("region cache: a key that becomes valid is found") {
    Setup setup;
    const std::uint32_t window = setup.table.add_window(cached_domain, WindowScope::Domain).value();
    const std::uint32_t key = setup.table
                                  .prepare({.window = window,
                                            .region = setup.key,
                                            .base = reinterpret_cast<std::uint64_t>(setup.memory.data()),
                                            .length = 4096,
                                            .access = {.remote_write = true}})
                                  .value();
    CHECK_FALSE(setup.allows(key));
    CHECK(setup.table.bind(key, cached_domain, 0) == CompletionCode::Success);
    CHECK(setup.allows(key));
    setup.table.remove_window(window);
    CHECK_FALSE(setup.allows(key));
}

TEST_CASE("region cache: nothing is allowed at first or after follow()") {
    Setup setup;
    CHECK_FALSE(setup.allows(0, 0, 0));
    CHECK(setup.allows(setup.key));
    setup.cache.follow(setup.table.table());
    CHECK(setup.allows(setup.key));
    CHECK(setup.reads == 2);
}

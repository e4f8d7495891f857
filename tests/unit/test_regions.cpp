// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <catch2/catch.hpp>
#include <set>

#include "backends/software/regions.hpp"
#include "tests/support/rig.hpp"

using namespace viaduct;
using software::Regions;
using software::RemoteUse;

namespace {

constexpr std::uint32_t domain = 3;
constexpr std::uint32_t connection = 0;  // the smallest number
const support::MemoryInfo writable{.writable = true};
constexpr Access all_access{.remote_write = true, .remote_read = true, .remote_atomic = true};

struct OneRegion {
    alignas(8) std::array<std::byte, 64> memory{};
    Regions regions;
    const std::uint64_t base = reinterpret_cast<std::uint64_t>(memory.data());
    const std::uint32_t key = testing::must(regions.add(memory.data(), memory.size(), writable, domain, all_access));

    std::uint32_t prepare(std::uint32_t window, std::uint64_t offset, std::uint64_t length,
                          Access access = {.remote_read = true}) {
        return testing::must(regions.prepare(
            {.window = window, .region = key, .base = base + offset, .length = length, .access = access}));
    }
    bool reads(std::uint32_t with, std::uint64_t offset, std::uint64_t bytes, std::uint32_t through = connection) {
        const auto* view = regions.find(with);
        return view != nullptr && view->allows(RemoteUse::Read, all_access, domain, through, base + offset, bytes);
    }
};

}  // namespace

TEST_CASE("regions: a key is valid until its region is removed") {
    OneRegion one;
    CHECK(one.key != 0);
    CHECK(one.reads(one.key, 0, 64));
    CHECK_FALSE(one.reads(one.key, 1, 64));
    CHECK_FALSE(one.reads(one.key + 1, 0, 1));
    CHECK(one.regions.find(0) == nullptr);
    one.regions.set_rights(one.key, domain, {.remote_write = true});
    CHECK_FALSE(one.reads(one.key, 0, 64));
    one.regions.set_rights(one.key, domain + 1, all_access);
    CHECK_FALSE(one.reads(one.key, 0, 64));
    one.regions.set_rights(one.key, domain, all_access);
    CHECK(one.reads(one.key, 0, 64));
    one.regions.remove(one.key);
    CHECK(one.regions.find(one.key) == nullptr);
}

TEST_CASE("regions: keys do not follow from each other") {
    OneRegion one;
    std::set<std::uint32_t> keys{one.key};
    std::set<std::uint32_t> distances;
    for (std::uint32_t last = one.key; keys.size() < 100;) {
        const std::uint32_t next = testing::must(one.regions.add(one.memory.data(), 64, writable, domain, all_access));
        REQUIRE(keys.insert(next).second);
        distances.insert(next - last);
        last = next;
    }
    CHECK(distances.size() > 90);
}

TEST_CASE("regions: memory that is not writable") {
    OneRegion one;
    const std::uint32_t key = testing::must(one.regions.add(one.memory.data(), 64, {}, domain, all_access));
    CHECK_FALSE(one.regions.find(key)->is_usable(true));
    CHECK_FALSE(one.regions.find(key)->permits(RemoteUse::Write, all_access, domain, connection));
}

TEST_CASE("regions: a window gives access once it is bound, with one key at a time") {
    OneRegion one;
    const std::uint32_t window = testing::must(one.regions.add_window(domain, WindowScope::Domain));
    const std::uint32_t first = one.prepare(window, 8, 16);
    const std::uint32_t second = one.prepare(window, 32, 8);
    CHECK(one.regions.find(first) == nullptr);
    REQUIRE(one.regions.bind(first, domain, connection) == CompletionCode::Success);
    CHECK(one.reads(first, 8, 16));
    CHECK(one.reads(first, 8, 16, connection + 1));
    CHECK_FALSE(one.reads(first, 7, 8));
    CHECK_FALSE(one.regions.find(first)->permits(RemoteUse::Write, all_access, domain, connection));
    CHECK_FALSE(one.regions.find(first)->is_usable(false));
    REQUIRE(one.regions.bind(second, domain, connection) == CompletionCode::Success);
    CHECK_FALSE(one.reads(first, 8, 16));
    CHECK(one.reads(second, 32, 8));
    CHECK(one.regions.bind(second, domain, connection) == CompletionCode::LocalFormat);  // used up
    REQUIRE(one.regions.bind(one.prepare(window, 0, 0), domain, connection) == CompletionCode::Success);
    CHECK_FALSE(one.reads(second, 32, 8));
}

TEST_CASE("regions: what cannot be bound") {
    OneRegion one;
    const std::uint32_t window = testing::must(one.regions.add_window(domain, WindowScope::Domain));
    const auto bind = [&](std::uint32_t key, std::uint32_t of_domain = domain) {
        return one.regions.bind(key, of_domain, connection);
    };
    CHECK(bind(one.prepare(window, 0, 65)) == CompletionCode::LocalProtection);
    CHECK(bind(one.prepare(window, 0, 8), domain + 1) == CompletionCode::LocalProtection);
    const std::uint32_t foreign = testing::must(one.regions.add_window(domain + 1, WindowScope::Domain));
    CHECK(bind(one.prepare(foreign, 0, 8)) == CompletionCode::LocalProtection);
    CHECK(bind(one.prepare(one.key, 0, 8)) == CompletionCode::LocalProtection);  // no window
    one.regions.set_rights(one.key, domain, {.remote_read = true, .local_write = false});
    CHECK(bind(one.prepare(window, 0, 8, {.remote_write = true})) == CompletionCode::LocalProtection);
    CHECK(bind(one.prepare(window, 0, 8)) == CompletionCode::Success);
    const std::uint32_t forgotten = one.prepare(window, 0, 8);
    one.regions.forget(forgotten);
    CHECK(bind(forgotten) == CompletionCode::LocalFormat);
    const std::uint32_t late = one.prepare(window, 0, 8);
    one.regions.remove(one.key);
    CHECK(bind(late) == CompletionCode::LocalProtection);
}

TEST_CASE("regions: a window of an endpoint serves one connection") {
    OneRegion one;
    const std::uint32_t window = testing::must(one.regions.add_window(domain, WindowScope::Endpoint));
    const auto bind = [&] {
        const std::uint32_t key = one.prepare(window, 0, 8);
        REQUIRE(one.regions.bind(key, domain, connection) == CompletionCode::Success);
        return key;
    };
    std::uint32_t key = bind();
    CHECK(one.reads(key, 0, 8));
    CHECK_FALSE(one.reads(key, 0, 8, connection + 1));
    CHECK_FALSE(one.regions.invalidate(key, connection + 1));
    CHECK_FALSE(one.regions.invalidate(one.key, connection));
    CHECK(one.regions.invalidate(key, connection));
    CHECK_FALSE(one.reads(key, 0, 8));
    CHECK_FALSE(one.regions.invalidate(key, connection));

    key = bind();
    one.regions.end_windows_of(connection + 1);
    CHECK(one.reads(key, 0, 8));
    one.regions.end_windows_of(connection);
    CHECK_FALSE(one.reads(key, 0, 8));

    key = bind();
    const std::uint32_t late = one.prepare(window, 0, 8);
    one.regions.remove_window(window);
    CHECK_FALSE(one.reads(key, 0, 8));
    CHECK(one.regions.bind(late, domain, connection) == CompletionCode::Success);
    CHECK_FALSE(one.reads(late, 0, 8));
}

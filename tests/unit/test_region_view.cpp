// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <catch2/catch.hpp>

#include "backends/support/region_view.hpp"

using viaduct::Access;
using viaduct::support::RegionView;
using viaduct::support::RemoteUse;
namespace flags = viaduct::support::region_flags;

namespace {

constexpr Access everything{.remote_write = true, .remote_read = true, .remote_atomic = true};
constexpr std::array uses{RemoteUse::Write, RemoteUse::Read, RemoteUse::Flush, RemoteUse::Atomic};

/// A digit for each use that is permitted, in order of `uses`.
std::string permitted(const RegionView& region, Access accepted, std::uint32_t domain = 1, std::uint32_t through = 4) {
    std::string digits;
    for (const RemoteUse use : uses) digits += region.permits(use, accepted, domain, through) ? '1' : '0';
    return digits;
}

RegionView region_with(Access access, std::uint32_t memory = flags::writable_pages) {
    return {.base = 0x1000,
            .length = 0x100,
            .domain = 1,
            .flags = viaduct::support::flags_of_region(memory, access),
            .only_through = 0};
}

}  // namespace

TEST_CASE("region_view: covers exactly its range") {
    const RegionView region = region_with(everything);
    CHECK(region.covers(0x1000, 0x100));
    CHECK(region.covers(0x10FF, 1));
    CHECK(region.covers(0x1100, 0));
    CHECK_FALSE(region.covers(0xFFF, 1));
    CHECK_FALSE(region.covers(0x1100, 1));
    CHECK_FALSE(region.covers(0x1001, 0x100));
    CHECK_FALSE(region.covers(0x1001, ~std::uint64_t{0}));
    CHECK_FALSE(region.covers(0, 0x2000));
}

TEST_CASE("region_view: peers need the permission of the region and of the endpoint") {
    CHECK(permitted(region_with(everything), everything) == "1111");
    CHECK(permitted(region_with({}), everything) == "0000");
    CHECK(permitted(region_with(everything), {}) == "0000");
    CHECK(permitted(region_with({.remote_write = true}), everything) == "1010");
    CHECK(permitted(region_with({.remote_read = true}), everything) == "0110");
    CHECK(permitted(region_with(everything), {.remote_atomic = true}) == "0001");
    CHECK(permitted(region_with({.remote_write = true}), {.remote_read = true}) == "0000");
    CHECK(permitted(region_with(everything, 0), everything) == "0110");  // the pages are not writable
    CHECK(permitted(region_with(everything), everything, 2) == "0000");
    RegionView of_one_peer = region_with(everything);
    of_one_peer.only_through = 5;
    CHECK(permitted(of_one_peer, everything) == "1111");
    CHECK(permitted(of_one_peer, everything, 1, 5) == "0000");
}

TEST_CASE("region_view: only atomic operations need an aligned address") {
    const RegionView region = region_with(everything);
    for (const RemoteUse use : uses) {
        CHECK(region.allows(use, everything, 1, 4, 0x1008, 8));
        CHECK(region.allows(use, everything, 1, 4, 0x1004, 8) == (use != RemoteUse::Atomic));
        CHECK_FALSE(region.allows(use, everything, 1, 4, 0x10FC, 8));
    }
}

TEST_CASE("region_view: the owner may use regions, and write to those that permit it") {
    CHECK(region_with({}).is_usable(true));
    CHECK(region_with({.local_write = false}).is_usable(false));
    CHECK_FALSE(region_with({.local_write = false}).is_usable(true));
    CHECK_FALSE(region_with({}, 0).is_usable(true));
}

TEST_CASE("region_view: a window has the rights of its binding, and none for the owner") {
    RegionView window = region_with({}, flags::writable_pages | flags::file | flags::mappable);
    CHECK_FALSE(window.is_mappable());  // no peer may use it
    window.flags = viaduct::support::flags_of_window(window.flags, {.remote_write = true});
    CHECK(permitted(window, everything) == "1010");
    CHECK(window.has_file());
    CHECK_FALSE(window.is_usable(false));
    CHECK_FALSE(window.is_mappable());
    CHECK(region_with(everything, flags::mappable).is_mappable());
}

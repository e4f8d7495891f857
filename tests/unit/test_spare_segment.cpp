// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <span>
#include <utility>

#include "backends/loopback/doorbell.hpp"
#include "backends/loopback/layout.hpp"
#include "backends/loopback/spare_segment.hpp"
#include "tests/support/descriptors.hpp"

using namespace viaduct;
using namespace viaduct::loopback;
using viaduct::testing::without_descriptors;

namespace {

ino_t inode_of(const SharedMemory& segment) {
    struct stat info {};
    REQUIRE(fstat(segment.fd.get(), &info) == 0);
    return info.st_ino;
}

}  // namespace

TEST_CASE("spare segment: a new segment has a header and is otherwise zero") {
    SpareSegment spare;
    const bool prepared = GENERATE(false, true);
    CAPTURE(prepared);
    if (prepared) spare.prepare();
    auto segment = spare.take();
    REQUIRE(segment.ok());
    CHECK(is_sealed_memfd(segment->fd.get(), sizeof(wire::Segment)));
    auto& memory = *segment->mapping.as<wire::Segment>();
    CHECK(memory.magic == wire::magic);
    CHECK(memory.version == wire::version);
    CHECK(memory.handshake.load() == wire::Handshake::Offered);
    for (const unsigned number : {0, 1}) {
        CHECK(memory.directions[number].wakeup.need_wakeup.exchange(0) == 1);
        CHECK(memory.directions[number].consumer.consumed.exchange(0) == wire::first_position[number]);
    }
    memory.magic = memory.version = 0;
    const std::span<const std::byte> bytes(segment->mapping.as<std::byte>(), sizeof(wire::Segment));
    CHECK(std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST_CASE("spare segment: each segment is returned once") {
    SpareSegment spare;
    spare.prepare();
    spare.prepare();
    auto first = spare.take();
    auto second = spare.take();
    spare.prepare();
    auto third = spare.take();
    REQUIRE((first.ok() && second.ok() && third.ok()));
    CHECK(inode_of(*first) != inode_of(*second));
    CHECK(inode_of(*second) != inode_of(*third));
    CHECK(inode_of(*first) != inode_of(*third));
}

TEST_CASE("spare segment: one that was prepared needs no further descriptor") {
    SpareSegment spare;
    spare.prepare();
    const auto [first, second] = without_descriptors([&] { return std::pair{spare.take().ok(), spare.take().ok()}; });
    CHECK(first);
    CHECK_FALSE(second);
}

TEST_CASE("spare segment: if it cannot be prepared, take() tries again") {
    SpareSegment spare;
    const bool taken = without_descriptors([&] {
        spare.prepare();
        return spare.take().ok();
    });
    CHECK_FALSE(taken);
    CHECK(spare.take().ok());
}

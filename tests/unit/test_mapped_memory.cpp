// SPDX-License-Identifier: BSD-3-Clause
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>

#include "backends/loopback/region_table.hpp"
#include "backends/support/mapped_memory.hpp"
#include "backends/support/memory_map.hpp"
#include "tests/support/descriptors.hpp"
#include "tests/support/mapped_file.hpp"
#include "tests/support/rig.hpp"
#include "viaduct/shareable_memory.hpp"

using namespace viaduct;
namespace support = viaduct::support;

namespace {

/// Four pages, of which a test takes some away.
class Pages {
public:
    Pages() : begin_(map()) {}
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;
    ~Pages() { munmap(begin_, 4 * size); }

    std::byte* at(std::size_t offset) const noexcept { return begin_ + offset; }
    void unmap(std::size_t page) const { REQUIRE(munmap(at(page * size), size) == 0); }
    void protect(std::size_t page, int protection) const { REQUIRE(mprotect(at(page * size), size, protection) == 0); }

    const std::size_t size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

private:
    std::byte* map() const {
        void* memory = mmap(nullptr, 4 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(memory != MAP_FAILED);
        return static_cast<std::byte*>(memory);
    }

    std::byte* const begin_;
};

}  // namespace

TEST_CASE("mapped_memory: counts the bytes before the first page that cannot be used") {
    const Pages pages;
    const std::size_t size = pages.size;
    const auto usable = [](std::initializer_list<Sge> pieces, support::Probe probe = support::Probe::Reading) {
        return support::usable_bytes({pieces.begin(), pieces.size()}, probe);
    };
    const auto piece = [&](std::size_t offset, std::size_t length) {
        return Sge{.address = pages.at(offset), .key = 1, .length = static_cast<std::uint32_t>(length)};
    };
    CHECK(usable({piece(0, 4 * size)}) == 4 * size);
    CHECK(usable({}) == 0);
    pages.unmap(2);
    CHECK(usable({piece(0, 4 * size)}) == 2 * size);
    CHECK(usable({piece(100, 4 * size - 100)}) == 2 * size - 100);
    CHECK(usable({piece(0, 2 * size)}) == 2 * size);
    CHECK(usable({piece(2 * size, 1)}) == 0);
    CHECK(usable({piece(2 * size + 100, 10)}) == 0);
    CHECK(usable({piece(2 * size, 0)}) == 0);
    CHECK(usable({piece(3 * size, 10), piece(size, 2 * size), piece(0, 10)}) == 10 + size);
    pages.protect(1, PROT_NONE);
    CHECK(usable({piece(0, 2 * size)}) == size);
    pages.protect(1, PROT_READ);
    CHECK(usable({piece(0, 2 * size)}) == 2 * size);
    CHECK(usable({piece(0, 2 * size)}, support::Probe::Writing) == size);
}

TEST_CASE("memory_map: tells what a range consists of") {
    const Pages pages;
    const std::size_t size = pages.size;
    const auto info = [&](std::size_t offset, std::size_t length) {
        return support::inspect_memory(pages.at(offset), length);
    };
    REQUIRE(info(1, 4 * size - 1).ok());
    CHECK(info(1, 4 * size - 1)->writable);
    CHECK_FALSE(info(0, size)->has_file);
    CHECK_FALSE(info(0, size)->one_memfd);
    pages.protect(1, PROT_READ);
    CHECK(info(0, size)->writable);
    CHECK_FALSE(info(0, size + 1)->writable);
    pages.protect(1, PROT_NONE);
    CHECK(info(0, size).ok());
    CHECK(info(0, size + 1).status().code() == Code::InvalidParameter);
    pages.unmap(2);
    CHECK(info(2 * size, 1).status().code() == Code::InvalidParameter);
    CHECK(info(3 * size, size).ok());
}

TEST_CASE("memory_map: distinguishes files") {
    const testing::MappedFile file(4096);
    auto of_file = support::inspect_memory(file.bytes().data(), 4096);
    REQUIRE(of_file.ok());
    CHECK(of_file->has_file);
    CHECK_FALSE(of_file->one_memfd);

    const auto shareable = testing::must(ShareableMemory::allocate(4096));
    auto of_memfd = support::inspect_memory(shareable.bytes().data(), 4096);
    REQUIRE(of_memfd.ok());
    CHECK(of_memfd->one_memfd);
    CHECK(support::is_memfd(of_memfd->first));

    // That no descriptor is free does not mean that a region has no file.
    auto regions = testing::must(loopback::OwnRegionTable::create());
    const std::uint32_t key = testing::must(regions.add(shareable.data(), 4096, *of_memfd, 1, {.remote_read = true}));
    CHECK_FALSE(testing::without_descriptors([&] { return regions.backing(key).has_value(); }));
    CHECK(regions.backing(key).has_value());
}

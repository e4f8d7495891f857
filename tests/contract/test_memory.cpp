// SPDX-License-Identifier: BSD-3-Clause
// Memory registration: what can be registered, and the effect of changes on users of a region.
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <set>

#include "tests/contract/backends.hpp"
#include "tests/support/traces.hpp"
#include "viaduct/shareable_memory.hpp"

using namespace viaduct;
using namespace viaduct::testing;

namespace {

/// Anonymous pages with the given access.
class Pages {
public:
    Pages(std::size_t count, int rights)
        : size_(count * static_cast<std::size_t>(getpagesize())),
          data_(mmap(nullptr, size_, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
        require(data_ != MAP_FAILED, "mmap");
    }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;
    ~Pages() { munmap(data_, size_); }

    void* data() const { return data_; }
    std::size_t size() const { return size_; }

private:
    std::size_t size_;
    void* data_;
};

Code register_code(const Node& node, void* address, std::uint64_t length) {
    return MemoryRegion::create(node.domain, address, length, {}).status().code();
}

}  // namespace

TEST_CASE_METHOD(EveryBackend, "memory: unmapped ranges are refused", "[no-peer]") {
    char memory[64];
    CHECK(register_code(near, memory, 0) == Code::InvalidParameter);
    CHECK(register_code(near, nullptr, 64) == Code::InvalidParameter);
    CHECK(register_code(near, memory, ~std::uint64_t{0}) == Code::InvalidParameter);
    auto* in_page_zero = reinterpret_cast<char*>(64);  // never mapped, because it is below the kernel's mmap_min_addr
    CHECK(register_code(near, in_page_zero, 8) == Code::InvalidParameter);
    // A reserved hole. An unmapped one could be used by another thread's memory at any time.
    const Pages pages(3, PROT_READ | PROT_WRITE);
    auto* middle = static_cast<char*>(pages.data()) + getpagesize();
    REQUIRE(mprotect(middle, static_cast<std::size_t>(getpagesize()), PROT_NONE) == 0);
    CHECK(register_code(near, pages.data(), pages.size()) == Code::InvalidParameter);
    CHECK(register_code(near, middle, 8) == Code::InvalidParameter);
    CHECK(register_code(near, pages.data(), static_cast<std::uint64_t>(getpagesize())) == Code::Ok);
}

TEST_CASE_METHOD(EveryBackend, "memory: keys are never 0 and differ", "[no-peer]") {
    char memory[64];
    std::vector<std::unique_ptr<MemoryRegion>> regions;
    std::set<std::uint32_t> keys;
    for (int i = 0; i < 3000; ++i) {
        regions.push_back(must(MemoryRegion::create(near.domain, memory, sizeof memory, {})));
        CHECK(regions.back()->key() != 0);
        CHECK(keys.insert(regions.back()->key()).second);
    }
}

TEST_CASE_METHOD(EveryBackend, "memory: registration of shareable memory takes no descriptor", "[no-peer]") {
    auto memory = must(ShareableMemory::allocate(64));
    const std::size_t before = find_traces().descriptors.size();
    const auto region = must(MemoryRegion::create(near.domain, memory.data(), memory.size(), {.remote_write = true}));
    CHECK(find_traces().descriptors.size() == before);
}

TEST_CASE_METHOD(EveryBackend, "memory: regions may overlap, and each keeps its own rights") {
    Connection connection(near, far);
    const Buffer mine(near, 8);
    alignas(8) std::byte memory[64] = {};
    const auto open = must(MemoryRegion::create(far.domain, memory, sizeof memory, {.remote_write = true}));
    const auto closed = must(MemoryRegion::create(far.domain, memory, sizeof memory, {}));
    const Sge piece = mine.sge();
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    connection.client.post(write_of(1, piece, {.address = address, .key = open->key()}));
    CHECK(connection.client.sent().code == CompletionCode::Success);
    connection.client.post(write_of(2, piece, {.address = address, .key = closed->key()}));
    CHECK(connection.client.sent().code == CompletionCode::RemoteProtection);
}

TEST_CASE_METHOD(EveryBackend, "memory: read-only pages can be sent and read, and are never written to") {
    const Pages pages(1, PROT_READ);
    const auto mine = must(MemoryRegion::create(near.domain, pages.data(), pages.size(), {true, true}));
    const auto theirs = must(MemoryRegion::create(far.domain, pages.data(), pages.size(), {true, true}));
    const RemoteAddress remote{.address = reinterpret_cast<std::uintptr_t>(pages.data()), .key = theirs->key()};
    const Sge local{.address = pages.data(), .key = mine->key(), .length = 64};
    const Sge at_server{.address = pages.data(), .key = theirs->key(), .length = 64};
    const Buffer writable(near, 64);
    const Buffer landing(far, 64);
    const Sge into = landing.sge();
    const Sge free_piece = writable.sge();
    {
        Connection connection(near, far);
        connection.server.post(receive_of(1, into));
        connection.client.post(send_of(2, local));
        CHECK(connection.client.sent().code == CompletionCode::Success);
        CHECK(connection.server.received().code == CompletionCode::Success);
        connection.client.post(read_of(3, free_piece, remote));
        CHECK(connection.client.sent().code == CompletionCode::Success);
        connection.client.post(write_of(4, free_piece, remote));
        CHECK(connection.client.sent().code == CompletionCode::RemoteProtection);
    }
    {
        Connection connection(near, far);
        connection.client.post(read_of(5, local, landing.remote()));
        CHECK(connection.client.sent().code == CompletionCode::LocalProtection);
    }
    {
        Connection connection(near, far);
        connection.server.post(receive_of(6, at_server));
        connection.client.post(send_of(7, free_piece));
        CHECK(connection.server.received().code == CompletionCode::LocalProtection);
        CHECK(connection.client.sent().code == CompletionCode::RemoteOperation);
    }
}

TEST_CASE_METHOD(EveryBackend, "memory: receives and RDMA reads require local write access") {
    const Access sealed{.remote_write = true, .remote_read = true, .local_write = false};
    const auto check = [&](Memory memory, std::size_t size, const auto& change) {
        CAPTURE(static_cast<int>(memory), size);
        const Buffer mine(near, size, memory, sealed);
        const Buffer theirs(far, size, memory, sealed);
        const Buffer source(far, size);
        const Buffer landing(far, size);
        change(mine, theirs);
        const Sge here = mine.sge();
        const Sge there = theirs.sge();
        const Sge into = landing.sge();
        fill(mine.bytes(), 1);
        {
            Connection connection(near, far);
            connection.server.post(receive_of(1, into));
            connection.client.post(send_of(2, here));  // read access suffices for sending
            CHECK(connection.client.sent().code == CompletionCode::Success);
            CHECK(connection.server.received().code == CompletionCode::Success);
            connection.client.post(write_of(3, here, theirs.remote()));  // the access of peers is independent
            CHECK(connection.client.sent().code == CompletionCode::Success);
            CHECK(matches(theirs.bytes(), 1));
            connection.client.post(read_of(4, here, source.remote()));
            CHECK(connection.client.sent().code == CompletionCode::LocalProtection);
            CHECK(matches(mine.bytes(), 1));
        }
        {
            Connection connection(near, far);
            fill(mine.bytes(), 2);
            connection.server.post(receive_of(5, there));
            connection.client.post(send_of(6, here));
            CHECK(connection.server.received().code == CompletionCode::LocalProtection);
            CHECK(connection.client.sent().code == CompletionCode::RemoteOperation);
            CHECK(matches(theirs.bytes(), 1));
        }
    };
    for (const Memory memory : {Memory::Heap, Memory::Shareable}) {
        for (const std::size_t size : {std::size_t{64}, std::size_t{100'000}}) {
            check(memory, size, [](const Buffer&, const Buffer&) {});
            check(memory, size, [&](const Buffer& one, const Buffer& other) {
                must(one.region().modify(near.domain, {}));
                must(one.region().modify(near.domain, sealed));
                must(other.region().modify(far.domain, {}));
                must(other.region().modify(far.domain, sealed));
            });
        }
    }
    Connection connection(near, far);
    const Buffer opened(near, 64, Memory::Heap, sealed);
    const Buffer source(far, 64);
    must(opened.region().modify(near.domain, {.local_write = true}));
    const Sge piece = opened.sge();
    connection.client.post(read_of(1, piece, source.remote()));
    CHECK(connection.client.sent().code == CompletionCode::Success);
}

TEST_CASE_METHOD(EveryBackend, "memory: changed access rights apply to the next operation") {
    for (const Memory memory : {Memory::Heap, Memory::Shareable}) {
        Connection connection(near, far);
        const Buffer mine(near, 8);
        const Buffer theirs(far, 8, memory, {});
        const Sge piece = mine.sge();
        must(theirs.region().modify(far.domain, {.remote_write = true}));
        connection.client.post(write_of(1, piece, theirs.remote()));
        CHECK(connection.client.sent().code == CompletionCode::Success);
        must(theirs.region().modify(far.domain, {}));
        connection.client.post(write_of(2, piece, theirs.remote()));
        CHECK(connection.client.sent().code == CompletionCode::RemoteProtection);
    }
}

TEST_CASE_METHOD(EveryBackend, "memory: a changed protection domain applies to the next operation") {
    const auto other = must(ProtectionDomain::create(far.device));
    Connection connection(near, far);
    const Buffer mine(near, 8);
    const Buffer theirs(far, 8);
    const Sge piece = mine.sge();
    connection.client.post(write_of(1, piece, theirs.remote()));
    CHECK(connection.client.sent().code == CompletionCode::Success);
    must(theirs.region().modify(other, {true, true}));
    connection.client.post(write_of(2, piece, theirs.remote()));
    CHECK(connection.client.sent().code == CompletionCode::RemoteProtection);
}

TEST_CASE_METHOD(EveryBackend, "memory: a deregistered region is refused, and its key is not reused soon") {
    for (const Memory memory : {Memory::Heap, Memory::Shareable}) {
        Connection connection(near, far);
        const Buffer mine(near, 8);
        const Sge piece = mine.sge();
        RemoteAddress gone;
        {
            const Buffer theirs(far, 8, memory);
            gone = theirs.remote();
            connection.client.post(write_of(1, piece, gone));
            CHECK(connection.client.sent().code == CompletionCode::Success);
        }
        const Buffer successor(far, 8, memory);
        CHECK(successor.region().key() != gone.key);
        connection.client.post(write_of(2, piece, gone));
        CHECK(connection.client.sent().code == CompletionCode::RemoteProtection);
    }
}

TEST_CASE_METHOD(EveryBackend, "memory: a shared file mapping works like other memory") {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
    REQUIRE(file != nullptr);
    constexpr std::size_t size = 3 * 4096;
    REQUIRE(ftruncate(fileno(file.get()), size) == 0);
    void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file.get()), 0);
    REQUIRE(data != MAP_FAILED);
    {
        Connection connection(near, far);
        // Neither the start nor the end is page-aligned.
        auto* begin = static_cast<std::byte*>(data) + 1000;
        const auto region = must(MemoryRegion::create(far.domain, begin, 9000, {true, true}));
        const Buffer mine(near, 9000);
        const Buffer back(near, 9000);
        fill(mine.bytes(), 1);
        const Sge from = mine.sge();
        const Sge into = back.sge();
        const RemoteAddress remote{.address = reinterpret_cast<std::uintptr_t>(begin), .key = region->key()};
        connection.client.post(write_of(1, from, remote));
        connection.client.post(read_of(2, into, remote));
        CHECK(take(*connection.client.send_queue, 2).back().code == CompletionCode::Success);
        CHECK(matches({begin, 9000}, 1));
        CHECK(matches(back.bytes(), 1));
        CHECK(begin[-1] == std::byte{0});
        CHECK(begin[9000] == std::byte{0});
    }
    munmap(data, size);
}

// SPDX-License-Identifier: BSD-3-Clause
// What survives a loss of power.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

#include "backends/support/persistence.hpp"
#include "core/base/guarded_memory.hpp"
#include "tests/support/mapped_file.hpp"

using namespace viaduct;
using support::Persistence;

namespace {

constexpr std::size_t size = 16384;
constexpr std::byte before{1};
constexpr std::byte after{2};

std::uint64_t address_of(const void* memory) { return reinterpret_cast<std::uint64_t>(memory); }

void watch(Persistence& persistence, std::span<std::byte> memory) {
    auto info = support::inspect_memory(memory.data(), memory.size());
    REQUIRE(info.ok());
    persistence.watch(memory.data(), memory.size(), *info);
}

/// How many of the words have the new value. Fails if one has parts of both.
std::size_t new_words(std::span<const std::byte> memory) {
    std::size_t count = 0;
    for (std::size_t at = 0; at < memory.size(); at += 8) {
        const auto word = memory.subspan(at, 8);
        REQUIRE(std::ranges::all_of(word, [&](std::byte part) { return part == word[0]; }));
        count += word[0] == after ? 1 : 0;
    }
    return count;
}

/// Writes whole words: a process that is killed meanwhile leaves none of which only a part is written.
void fill_words(std::span<std::byte> memory, std::byte value) {
    std::uint64_t word = 0;
    std::memset(&word, static_cast<int>(value), sizeof word);
    for (std::size_t at = 0; at < memory.size(); at += sizeof word)
        *reinterpret_cast<volatile std::uint64_t*>(&memory[at]) = word;
}

/// Runs `program` in a process, which is to be killed. Returns whether it was.
template <class Program>
bool is_killed(Program program) {
    const pid_t child = fork();
    if (child == 0) {
        program();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

}  // namespace

TEST_CASE("persistence: what was flushed survives, and a random part of the other words") {
    const testing::MappedFile file(size);
    const auto memory = file.bytes();
    std::ranges::fill(memory, before);
    Persistence persistence({.cuts = false, .flush = 0, .seed = 7});
    watch(persistence, memory.subspan(4096 + 64, 8192));
    std::ranges::fill(memory, after);
    persistence.flush(address_of(&memory[8000]), 400);  // across a page
    persistence.lose_unflushed();
    CHECK(new_words(memory.subspan(8000, 400)) == 50);
    CHECK(new_words(memory.first(4096)) == 512);  // not watched
    const std::size_t lucky =
        new_words(memory.subspan(4096, 8000 - 4096)) + new_words(memory.subspan(8400, 12288 - 8400));
    CHECK(lucky > 350);
    CHECK(lucky < 630);
}

TEST_CASE("persistence: a flush persists its bytes and no others of the word") {
    const testing::MappedFile file(size);
    const auto memory = file.bytes();
    std::set<std::vector<std::byte>> words;
    for (std::uint64_t seed = 0; seed < 32; ++seed) {
        std::ranges::fill(memory, before);
        Persistence persistence({.cuts = false, .flush = 0, .seed = seed});
        watch(persistence, memory);
        std::ranges::fill(memory.first(8), after);
        persistence.flush(address_of(&memory[3]), 2);
        persistence.lose_unflushed();
        words.emplace(memory.begin(), memory.begin() + 8);
    }
    CHECK(words == std::set<std::vector<std::byte>>{std::vector(8, after),
                                                    {before, before, before, after, after, before, before, before}});
}

TEST_CASE("persistence: a file stays watched when it is unmapped and registered at another address") {
    const testing::MappedFile file(size);
    const auto memory = file.bytes();
    std::ranges::fill(memory, before);
    Persistence persistence({});
    void* const first = mremap(memory.data(), 0, size, MREMAP_MAYMOVE);
    watch(persistence, {static_cast<std::byte*>(first), size});
    std::ranges::fill(memory, after);
    munmap(first, size);
    watch(persistence, memory);  // does not count as persistent now
    persistence.flush(address_of(memory.data()), 8);
    persistence.lose_unflushed();
    CHECK(memory[0] == after);
    CHECK(new_words(memory) < size / 8 * 3 / 4);
}

TEST_CASE("persistence: the same seed leaves the same words") {
    std::set<std::vector<std::byte>> outcomes;
    const auto lose = [&](std::uint64_t seed) {
        const testing::MappedFile file(size);
        std::ranges::fill(file.bytes(), before);
        Persistence persistence({.cuts = false, .flush = 0, .seed = seed});
        watch(persistence, file.bytes());
        std::ranges::fill(file.bytes(), after);
        persistence.lose_unflushed();
        outcomes.insert(file.content(0, size));
    };
    lose(3);
    lose(3);
    CHECK(outcomes.size() == 1);
    lose(4);
    CHECK(outcomes.size() == 2);
}

TEST_CASE("persistence: memory without a file, or of a file that became shorter") {
    Persistence persistence({});
    std::vector<std::byte> heap(size, before);
    watch(persistence, heap);
    persistence.flush(address_of(heap.data()), size);
    std::ranges::fill(heap, after);
    persistence.lose_unflushed();
    CHECK(new_words(heap) == size / 8);

    if (!catches_faults) return;
    std::FILE* const file = std::tmpfile();
    REQUIRE(file != nullptr);
    REQUIRE(ftruncate(fileno(file), size) == 0);
    void* const mapping = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    watch(persistence, {static_cast<std::byte*>(mapping), size});
    REQUIRE(ftruncate(fileno(file), size / 2) == 0);
    persistence.flush(address_of(mapping), size);
    persistence.lose_unflushed();
    munmap(mapping, size);
    std::fclose(file);
}

TEST_CASE("persistence: the power fails before the flush, after it or later") {
    bool seen[2] = {};
    bool loses = false;  // at times; a thread may write until the process is gone
    for (std::uint64_t seed = 0; seed < 32; ++seed) {
        const testing::MappedFile file(size);
        const auto memory = file.bytes();
        const PmemSetting setting{.cuts = true, .flush = 2, .seed = seed};
        CHECK(is_killed([&] {
            Persistence persistence(setting);
            watch(persistence, memory);
            for (const std::size_t begin : {0, 4096, 8192}) {
                fill_words(memory.subspan(begin, 4096), after);
                persistence.flush(address_of(&memory[begin]), 4096);
            }
        }));
        CHECK(new_words(memory.first(4096)) == 512);
        seen[new_words(memory.subspan(4096, 4096)) == 512 ? 1 : 0] = true;
        loses = loses || new_words(memory.subspan(8192, 4096)) < 512;
    }
    CHECK(seen[0]);
    CHECK(seen[1]);
    CHECK(loses);
    const testing::MappedFile file(size);
    CHECK_FALSE(is_killed([&] {
        Persistence persistence({.cuts = true, .flush = 2, .seed = 0});
        watch(persistence, file.bytes());
        persistence.flush(address_of(file.bytes().data()), size);
    }));
}

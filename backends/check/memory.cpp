// SPDX-License-Identifier: BSD-3-Clause
#include "backends/check/memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <csignal>
#include <cstring>
#include <new>
#include <utility>

#include "core/base/guarded_memory.hpp"
#include "core/base/memory_file.hpp"
#include "core/base/waiting.hpp"

namespace viaduct::check {
namespace {

constexpr std::size_t page_bytes = 4096;

/// Four sums at once, which a processor adds up at the same time.
class Sum {
public:
    void add(const std::byte* bytes, std::size_t length) noexcept {
        std::size_t i = 0;
        for (; i + sizeof(Words) <= length; i += sizeof(Words)) {
            Words words;
            std::memcpy(&words, bytes + i, sizeof words);
            for (std::size_t lane = 0; lane < words.size(); ++lane) mix(lane, words[lane]);
        }
        for (std::size_t lane = 0; i < length; ++lane) {
            const std::size_t rest = std::min(length - i, sizeof(std::uint64_t));
            std::uint64_t word = rest;
            std::memcpy(&word, bytes + i, rest);
            mix(lane, word);
            i += rest;
        }
    }
    std::uint64_t value() const noexcept {
        return lanes_[0] ^ std::rotl(lanes_[1], 13) ^ std::rotl(lanes_[2], 29) ^ std::rotl(lanes_[3], 47);
    }

private:
    using Words = std::array<std::uint64_t, 4>;
    void mix(std::size_t lane, std::uint64_t word) noexcept {
        constexpr std::uint64_t factor = 0x9e3779b97f4a7c15;
        lanes_[lane] = std::rotl((lanes_[lane] ^ word) * factor, 23);
    }

    Words lanes_{1, 2, 3, 4};
};

bool add_guarded(Sum& sum, const std::byte* memory, std::uint32_t length) noexcept {
    std::array<std::byte, 4096> copy;
    for (std::uint32_t done = 0; done < length;) {
        const std::uint32_t part = std::min<std::uint32_t>(length - done, copy.size());
        if (!copy_guarded(copy.data(), memory + done, part)) return false;
        sum.add(copy.data(), part);
        done += part;
    }
    return true;
}

/// Memory that peers can map, if they could map that of the program.
void* map_shareable(std::uint64_t bytes) noexcept {
    auto file = create_memory_file("viaduct-check", bytes);
    if (!file.ok()) return MAP_FAILED;
    fcntl(file->get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->get(), 0);
}

// ---- Pages ----------------------------------------------------------------------------------------------------------

/// Read by a signal handler, so that it is a table of atomic values.
struct ProtectedPages {
    std::atomic<std::uintptr_t> begin{0};  // 0: unused
    std::atomic<std::size_t> bytes{0};
};
std::array<ProtectedPages, 1024> protected_pages;
std::atomic<std::uint64_t> unprotections{0};
/// Their number when this thread last had a fault elsewhere.
thread_local constinit std::uint64_t known_unprotections [[gnu::tls_model("initial-exec")]] = 0;
std::atomic<OnTouch> touched{nullptr};

bool permit(std::uintptr_t begin, std::size_t bytes) noexcept {
    return mprotect(reinterpret_cast<void*>(begin), bytes, PROT_READ | PROT_WRITE) == 0;
}

bool permit_touch(const siginfo_t& fault, void* context) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(fault.si_addr);
    for (ProtectedPages& pages : protected_pages) {
        const std::uintptr_t begin = pages.begin.load(std::memory_order_acquire);
        if (begin == 0 || address < begin || address - begin >= pages.bytes.load(std::memory_order_relaxed)) continue;
        const bool permitted = permit(begin, pages.bytes.load(std::memory_order_relaxed)) ||
                               permit(address / page_bytes * page_bytes, page_bytes);  // others may have gone
#ifdef __x86_64__
        constexpr greg_t write_bit = 2;
        const bool writes = (static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & write_bit) != 0;
#else
        const bool writes = false;
#endif
        touched.load(std::memory_order_acquire)(fault.si_addr, writes);
        return permitted;
    }
    // The message may have arrived since the fault.
    const std::uint64_t now = unprotections.load(std::memory_order_acquire);
    return fault.si_code == SEGV_ACCERR && std::exchange(known_unprotections, now) != now;
}

}  // namespace

std::optional<std::uint64_t> sum_of(const std::byte* memory, std::uint32_t length) noexcept {
    Sum sum;
    constexpr std::uint32_t half = most_summed / 2;
    const bool whole = length <= most_summed;
    if (!add_guarded(sum, memory, whole ? length : half)) return std::nullopt;
    if (!whole && !add_guarded(sum, memory + length - half, half)) return std::nullopt;
    return sum.value();
}

Shadows::~Shadows() {
    for (const Slab& slab : memory_) munmap(slab.memory, slab.bytes);
}

Shadow Shadows::take(std::uint64_t bytes) noexcept {
    if (bytes == 0 || bytes > most_bytes) return {};
    constexpr std::uint64_t least = 64;
    const auto order = static_cast<std::size_t>(std::bit_width(std::max(bytes, least) - 1));
    do {
        const LockGuard lock(memory_lock);
        if (free_[order].empty()) continue;
        const Shadow shadow = free_[order].back();
        free_[order].pop_back();
        return shadow;
    } while (grow(order));
    return {};
}

void Shadows::give_back(const Shadow& shadow) noexcept {
    const LockGuard lock(memory_lock);
    shadow.owner->free_[static_cast<std::size_t>(std::bit_width(shadow.bytes) - 1)].push_back(
        shadow);  // has room for all
}

/// Adds buffers of a size. The backend is called without the lock, which its observers need.
bool Shadows::grow(std::size_t order) noexcept try {
    const CancellationHold hold;
    constexpr std::uint64_t slab_bytes = 256 * 1024;
    const std::uint64_t each = std::uint64_t{1} << order;
    const std::uint64_t bytes = std::max(slab_bytes, each);
    {
        const LockGuard lock(memory_lock);
        if (bytes_ + bytes > most_in_all) return false;
        bytes_ += bytes;
    }
    void* const memory = map_shareable(bytes);
    if (memory == MAP_FAILED) return false;
    auto region = device_.register_memory(domain_, memory, bytes, {});
    const LockGuard lock(memory_lock);
    memory_.push_back({static_cast<std::byte*>(memory), bytes});
    if (!region.ok()) return false;
    const std::uint32_t key = region.value()->key();
    slabs_.push_back(std::move(*region));
    free_[order].reserve(bytes_ / each);
    for (std::uint64_t offset = 0; offset < bytes; offset += each)
        free_[order].push_back({memory_.back().memory + offset, key, static_cast<std::uint32_t>(each), this});
    return true;
} catch (const std::bad_alloc&) {
    return false;
}

Pages protect(std::byte* memory, std::uint32_t length, OnTouch on_touch) noexcept {
    const auto first = (reinterpret_cast<std::uintptr_t>(memory) + page_bytes - 1) / page_bytes * page_bytes;
    const auto end = (reinterpret_cast<std::uintptr_t>(memory) + length) / page_bytes * page_bytes;
    if (end <= first || !catches_faults) return {};
    touched.store(on_touch, std::memory_order_release);
    first_look.store(permit_touch, std::memory_order_release);
    catch_faults();
    const LockGuard lock(memory_lock);
    ProtectedPages* vacant = nullptr;
    for (ProtectedPages& pages : protected_pages) {
        const std::uintptr_t begin = pages.begin.load(std::memory_order_relaxed);
        if (begin == 0)
            vacant = &pages;
        else if (begin < end && first < begin + pages.bytes.load(std::memory_order_relaxed))
            return {};
    }
    if (vacant == nullptr) return {};
    vacant->bytes.store(end - first, std::memory_order_relaxed);
    vacant->begin.store(first, std::memory_order_release);
    const Pages pages{reinterpret_cast<std::byte*>(first), end - first};
    if (mprotect(pages.begin, pages.bytes, PROT_NONE) == 0) return pages;
    vacant->begin.store(0);
    return {};
}

void unprotect(const Pages& wanted) noexcept {
    const LockGuard lock(memory_lock);
    const auto begin = reinterpret_cast<std::uintptr_t>(wanted.begin);
    if (!permit(begin, wanted.bytes))
        for (std::size_t offset = 0; offset < wanted.bytes; offset += page_bytes) permit(begin + offset, page_bytes);
    ++unprotections;
    for (ProtectedPages& pages : protected_pages)
        if (pages.begin.load(std::memory_order_relaxed) == begin) pages.begin.store(0, std::memory_order_release);
}

}  // namespace viaduct::check

// SPDX-License-Identifier: BSD-3-Clause
// Simulates a loss of power (VIADUCT_PMEM=strict): knows what of the registered files has been flushed to persistence,
// and can end the process with the files as a host with volatile caches may leave them. docs/power-cuts.md describes
// it.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <random>
#include <tuple>

#include "backends/support/memory_map.hpp"
#include "core/base/fork.hpp"
#include "core/base/settings.hpp"
#include "viaduct/detail/export.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::support {

class Persistence {
public:
    explicit Persistence(const PmemSetting& setting);
    ~Persistence() { mutex_.retire(); }
    Persistence(const Persistence&) = delete;
    Persistence& operator=(const Persistence&) = delete;

    /// The one of this process; null unless VIADUCT_PMEM asks for it.
    static Persistence* of_process() noexcept;

    /// Watches the memory of a region. What a file contains when it is first watched counts as persistent, and it stays
    /// watched when the region is gone. Without effect on memory without a file. Throws std::bad_alloc.
    void watch(const void* address, std::uint64_t length, const MemoryInfo& memory);

    /// A flush of a range to persistence takes effect, or the power fails.
    void flush(std::uint64_t address, std::uint64_t length) noexcept;

    /// Leaves in the files what was flushed, and each other 8-byte word or what was persistent there before, by chance.
    void lose_unflushed() noexcept {
        const LockGuard lock(mutex_);
        lose_unflushed_locked();
    }

private:
    static constexpr std::uint64_t page_bytes = 4096;
    using Page = std::array<std::byte, page_bytes>;
    using PageKey = std::tuple<dev_t, ino_t, std::uint64_t>;  // the last one is the offset in the file
    enum class Moment : std::uint8_t { BeforeEffect, BeforeAnswer, AfterAnswer };

    /// A watched part of a file. It is mapped a second time, because the program may unmap its memory.
    struct Mapping {
        std::uint64_t begin;  ///< of the program's memory, in whole pages; 0 if other memory has replaced it
        std::uint64_t length;
        dev_t device;
        ino_t inode;
        std::uint64_t offset;
        std::byte* own;

        PageKey key(std::uint64_t distance) const noexcept { return {device, inode, offset + distance}; }
        bool overlaps(std::uint64_t address, std::uint64_t bytes) const noexcept {
            return address < begin + length && begin < address + bytes;
        }
    };

    void forget_replaced(const Mapping& replacement) noexcept VIADUCT_REQUIRES(mutex_);
    void add_pages(const Mapping& mapping) VIADUCT_REQUIRES(mutex_);
    void persist(const Mapping& mapping, std::uint64_t address, std::uint64_t length) noexcept VIADUCT_REQUIRES(mutex_);
    void lose_words(const Mapping& mapping) noexcept VIADUCT_REQUIRES(mutex_);
    void lose_unflushed_locked() noexcept VIADUCT_REQUIRES(mutex_);
    void cut_later() noexcept VIADUCT_REQUIRES(mutex_);
    [[noreturn]] void cut() noexcept VIADUCT_REQUIRES(mutex_);

    ProcessMutex mutex_;
    std::mt19937_64 random_ VIADUCT_GUARDED_BY(mutex_);
    std::uint64_t cut_at_ VIADUCT_GUARDED_BY(mutex_) = 0;  // the number of a flush; 0: none
    Moment moment_ VIADUCT_GUARDED_BY(mutex_) = Moment::BeforeEffect;
    std::uint64_t flushes_ VIADUCT_GUARDED_BY(mutex_) = 0;
    bool cut_is_due_ VIADUCT_GUARDED_BY(mutex_) = false;
    std::list<Mapping> mappings_ VIADUCT_GUARDED_BY(mutex_);    // the newest first
    std::map<PageKey, Page> pages_ VIADUCT_GUARDED_BY(mutex_);  // what is persistent
};

/// Tells of an msync(2) of the program. Called by the library that vi-run --power-cut preloads.
extern "C" VIADUCT_EXPORT void viaduct_synced(const void* address, std::size_t length) noexcept;

}  // namespace viaduct::support

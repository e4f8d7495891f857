// SPDX-License-Identifier: BSD-3-Clause
// The memory of requests: whether it has changed, and where messages go while their receives are posted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/backend.hpp"
#include "core/base/fork.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::check {

/// A lock of the checker. What its holder frees is no memory of the program.
class VIADUCT_LOCK Lock {
public:
    constexpr explicit Lock(void (*renew)(void*) noexcept = nullptr, void* state = nullptr) noexcept
        : mutex_(renew, state) {}

    void lock() VIADUCT_ACQUIRE() {
        mutex_.lock();
        ++held_;
    }
    bool try_lock() noexcept VIADUCT_TRY_ACQUIRE(true) {
        if (!mutex_.try_lock()) return false;
        ++held_;
        return true;
    }
    void unlock() noexcept VIADUCT_RELEASE() {
        --held_;
        mutex_.unlock();
    }

    /// Whether this thread holds one.
    static bool is_held() noexcept { return held_ != 0; }

private:
    ProcessMutex mutex_;
    static inline thread_local constinit int held_ = 0;
};

/// Guards the shadows and the regions of all devices. May be taken while the lock of the tracker is held.
inline constinit Lock memory_lock;

/// A checksum of memory of the program, or nothing if the memory is not there. Of long memory, only both ends count.
inline constexpr std::uint32_t most_summed = 64 * 1024;
std::optional<std::uint64_t> sum_of(const std::byte* memory, std::uint32_t length) noexcept;

class Shadows;

/// A buffer of the checker, which takes a message in place of the buffer of the program.
struct Shadow {
    std::byte* memory = nullptr;  ///< null: none
    std::uint32_t key = 0;
    std::uint32_t bytes = 0;  ///< a power of two
    Shadows* owner = nullptr;
};

/// The shadows of a protection domain. Their memory exists as long as the object, but is registered only up to
/// withdraw(). Thread-safe.
class Shadows {
public:
    /// Longer buffers, and more of them, have no shadows.
    static constexpr std::uint32_t most_bytes = 16 << 20;
    static constexpr std::uint64_t most_in_all = std::uint64_t{256} << 20;

    Shadows(backend::Device& device, const backend::ProtectionDomain& domain) noexcept
        : device_(device), domain_(domain) {}
    ~Shadows();
    Shadows(const Shadows&) = delete;
    Shadows& operator=(const Shadows&) = delete;

    /// Calls the backend.
    Shadow take(std::uint64_t bytes) noexcept;
    /// Does not.
    static void give_back(const Shadow& shadow) noexcept;
    /// Destroys the regions. No request that is posted may have a shadow.
    void withdraw() noexcept { slabs_.clear(); }

private:
    struct Slab {
        std::byte* memory;
        std::uint64_t bytes;
    };
    bool grow(std::size_t order) noexcept;

    backend::Device& device_;
    const backend::ProtectionDomain& domain_;
    // The lock guards the members below.
    std::array<std::vector<Shadow>, 32> free_{};  // by the logarithm of their size
    std::vector<std::unique_ptr<backend::MemoryRegion>> slabs_;
    std::vector<Slab> memory_;
    std::uint64_t bytes_ = 0;
};

/// Whole pages of receive buffers that cannot be accessed while they are posted.
struct Pages {
    std::byte* begin = nullptr;
    std::size_t bytes = 0;
};

/// What is called where the program touches such pages, which can be accessed from then on.
using OnTouch = void (*)(const void* address, bool writes) noexcept;

/// Returns no pages if there are none, or if some are protected already.
Pages protect(std::byte* memory, std::uint32_t length, OnTouch on_touch) noexcept;
void unprotect(const Pages& pages) noexcept;

}  // namespace viaduct::check

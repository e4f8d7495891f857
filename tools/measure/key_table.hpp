// SPDX-License-Identifier: BSD-3-Clause
// Memory by key, for interfaces that name memory otherwise where it is their own.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "tools/measure/error.hpp"

namespace viaduct::measure {

/// What an interface calls the memory that peers know by a key. Links look there, from any thread.
template <class Memory>
class KeyTable {
public:
    void add(std::uint32_t key, const Memory& memory) {
        const std::lock_guard lock(mutex_);
        memory_[key] = memory;
    }

    void remove(std::uint32_t key) {
        const std::lock_guard lock(mutex_);
        memory_.erase(key);
    }

    /// Throws Error where no memory has the key.
    Memory find(std::uint32_t key) const {
        const std::lock_guard lock(mutex_);
        const auto found = memory_.find(key);
        if (found == memory_.end()) throw Error("no memory is registered under this key");
        return found->second;
    }

private:
    mutable std::mutex mutex_;
    std::unordered_map<std::uint32_t, Memory> memory_;
};

}  // namespace viaduct::measure

// SPDX-License-Identifier: BSD-3-Clause
// Memory that other processes on this host can map. If it is registered with the loopback backend, peers read and write
// it directly. The same is true for any MAP_SHARED mapping of a memfd that is sealed against shrinking.
#pragma once

#include <cstddef>
#include <span>

#include "viaduct/detail/export.hpp"
#include "viaduct/status.hpp"

namespace viaduct {

/// Page-aligned, zeroed memory without a name in a file system, freed with the object. After fork(), the child shares
/// it with its parent.
class VIADUCT_EXPORT ShareableMemory {
public:
    /// InvalidParameter: size 0. NoResources: out of memory or descriptors.
    static Result<ShareableMemory> allocate(std::size_t size) noexcept;

    ShareableMemory(ShareableMemory&& other) noexcept;
    ShareableMemory& operator=(ShareableMemory&& other) noexcept;
    ~ShareableMemory();

    void* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    std::span<std::byte> bytes() const noexcept { return {static_cast<std::byte*>(data_), size_}; }

private:
    ShareableMemory(void* data, std::size_t size, int fd) noexcept : data_(data), size_(size), fd_(fd) {}

    void* data_ = nullptr;
    std::size_t size_ = 0;
    int fd_ = -1;  // kept open, so that a device that registers the memory finds its file
};

}  // namespace viaduct

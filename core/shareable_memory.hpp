// SPDX-License-Identifier: BSD-3-Clause
// Memory that another process of this host can map: registered with the loopback backend, peers write and read it
// directly. Any MAP_SHARED mapping of a memfd that is sealed against shrinking has that property; this is the
// convenient one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/export.hpp"
#include "core/status.hpp"

namespace viaduct {

/// Page-aligned, zeroed, without a name in any file system; freed with the object. Not inherited as a copy by fork():
/// the child shares it.
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
    int fd_ = -1;  // kept open: how a device that registers the memory finds the file behind it
};

}  // namespace viaduct

// SPDX-License-Identifier: BSD-3-Clause
// Owns a memory mapping.
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <memory>

#include "viaduct/status.hpp"

namespace viaduct::loopback {

/// A MAP_SHARED view of a file.
class Mapping {
public:
    static Result<Mapping> map(int fd, std::size_t size, int protection, off_t offset = 0) noexcept {
        void* data = mmap(nullptr, size, protection, MAP_SHARED, fd, offset);
        if (data == MAP_FAILED) return Status::from_errno(errno, "mmap of a shared segment");
        Mapping mapping;
        mapping.data_ = {data, Unmap{size}};
        return mapping;
    }

    template <class T>
    T* as() const noexcept {
        return static_cast<T*>(data_.get());
    }

private:
    struct Unmap {
        std::size_t size;
        void operator()(void* data) const noexcept { munmap(data, size); }
    };
    std::unique_ptr<void, Unmap> data_;
};

}  // namespace viaduct::loopback

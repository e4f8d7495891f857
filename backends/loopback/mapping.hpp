// SPDX-License-Identifier: BSD-3-Clause
// Owns a memory mapping.
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <utility>

#include "viaduct/status.hpp"

namespace viaduct::loopback {

/// A MAP_SHARED view of a file.
class Mapping {
public:
    Mapping() noexcept = default;
    Mapping(Mapping&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    Mapping& operator=(Mapping&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~Mapping() {
        if (data_ != nullptr) munmap(data_, size_);
    }

    static Result<Mapping> map(int fd, std::size_t size, int protection, off_t offset = 0) noexcept {
        void* data = mmap(nullptr, size, protection, MAP_SHARED, fd, offset);
        if (data == MAP_FAILED) return Status::from_errno(errno, "mmap of a shared segment");
        Mapping mapping;
        mapping.data_ = data;
        mapping.size_ = size;
        return mapping;
    }

    template <class T>
    T* as() const noexcept {
        return static_cast<T*>(data_);
    }
    std::size_t size() const noexcept { return size_; }

private:
    void* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace viaduct::loopback

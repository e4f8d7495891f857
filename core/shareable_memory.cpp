// SPDX-License-Identifier: BSD-3-Clause
#include "viaduct/shareable_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/base/memory_file.hpp"

namespace viaduct {

Result<ShareableMemory> ShareableMemory::allocate(std::size_t size) noexcept {
    if (size == 0) return Status(Code::InvalidParameter, "the size of shareable memory must not be 0");
    auto file = create_memory_file("viaduct-memory", size);
    if (!file.ok()) return file.status();
    // Peers map the memory, so it must not shrink.
    fcntl(file->get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file->get(), 0);
    if (data == MAP_FAILED) return Status::from_errno(errno, "mmap of shareable memory");
    return ShareableMemory(data, size, file->release());
}

ShareableMemory::ShareableMemory(ShareableMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      fd_(std::exchange(other.fd_, -1)) {}

ShareableMemory& ShareableMemory::operator=(ShareableMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(fd_, other.fd_);
    return *this;
}

ShareableMemory::~ShareableMemory() {
    if (data_ == nullptr) return;
    munmap(data_, size_);
    close(fd_);
}

}  // namespace viaduct

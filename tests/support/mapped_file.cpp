// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/mapped_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/rig.hpp"

namespace viaduct::testing {

MappedFile::MappedFile(std::size_t size) : file_(std::tmpfile(), std::fclose) {
    require(file_ != nullptr && ftruncate(fileno(file_.get()), static_cast<off_t>(size)) == 0, "a temporary file");
    void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file_.get()), 0);
    require(data != MAP_FAILED, "a shared mapping");
    bytes_ = {static_cast<std::byte*>(data), size};
}

MappedFile::~MappedFile() { munmap(bytes_.data(), bytes_.size()); }

std::vector<std::byte> MappedFile::content(std::size_t offset, std::size_t size) const {
    std::vector<std::byte> read(size);
    const ssize_t count = pread(fileno(file_.get()), read.data(), size, static_cast<off_t>(offset));
    require(count == static_cast<ssize_t>(size), "reading the file");
    return read;
}

}  // namespace viaduct::testing

// SPDX-License-Identifier: BSD-3-Clause
// A shared mapping of an unnamed file: memory that belongs to storage.
#pragma once

#include <cstddef>
#include <cstdio>
#include <memory>
#include <span>
#include <vector>

namespace viaduct::testing {

/// Processes forked later share it. The constructor throws on failure.
class MappedFile {
public:
    explicit MappedFile(std::size_t size);
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile();

    std::span<std::byte> bytes() const noexcept { return bytes_; }

    /// Reads the contents of the file.
    std::vector<std::byte> content(std::size_t offset, std::size_t size) const;

private:
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
    std::span<std::byte> bytes_;
};

}  // namespace viaduct::testing

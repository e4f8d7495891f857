// SPDX-License-Identifier: BSD-3-Clause
// Page-aligned, zeroed memory to measure with: from the heap, or shareable with other processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>

#include "tools/measure/names.hpp"
#include "viaduct/shareable_memory.hpp"

namespace viaduct::measure {

enum class Memory : std::uint8_t { Shareable, Heap };
template <>
inline constexpr std::array<std::string_view, 2> names<Memory>{"shareable", "heap"};

constexpr std::size_t round_up(std::size_t size, std::size_t unit) noexcept { return (size + unit - 1) / unit * unit; }

class Buffer {
public:
    static constexpr std::size_t alignment = 4096;

    Buffer(Memory memory, std::size_t size);

    std::byte* data() const noexcept { return bytes_.data(); }
    std::size_t size() const noexcept { return bytes_.size(); }
    std::span<std::byte> bytes() const noexcept { return bytes_; }

private:
    struct Free {
        void operator()(void* memory) const noexcept { std::free(memory); }
    };

    std::unique_ptr<void, Free> heap_;
    std::optional<ShareableMemory> shareable_;
    std::span<std::byte> bytes_;
};

}  // namespace viaduct::measure

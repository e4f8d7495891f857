// SPDX-License-Identifier: BSD-3-Clause
// Page-aligned, zeroed memory to measure with: from the heap, or shareable with other processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>

#include "tools/measure/error.hpp"
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

    Buffer(Memory memory, std::size_t size) {
        if (memory == Memory::Shareable) {
            auto allocated = ShareableMemory::allocate(size);
            if (!allocated.ok()) throw Error("cannot allocate shareable memory of " + std::to_string(size) + " bytes");
            shareable_.emplace(std::move(*allocated));
            // Touched before it is measured, as heap memory is below.
            std::memset(shareable_->data(), 0, size);
            bytes_ = shareable_->bytes();
            return;
        }
        const std::size_t rounded = round_up(size, alignment);
        heap_.reset(std::aligned_alloc(alignment, rounded));
        if (heap_ == nullptr) throw std::bad_alloc();
        std::memset(heap_.get(), 0, rounded);
        bytes_ = {static_cast<std::byte*>(heap_.get()), size};
    }

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

// SPDX-License-Identifier: BSD-3-Clause
#include "tools/measure/buffer.hpp"

#include <cstring>
#include <new>

#include "tools/measure/error.hpp"

namespace viaduct::measure {

Buffer::Buffer(Memory memory, std::size_t size) {
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

}  // namespace viaduct::measure

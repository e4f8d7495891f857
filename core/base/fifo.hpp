// SPDX-License-Identifier: BSD-3-Clause
// A FIFO whose memory can be reserved in advance, where an allocation failure can still be reported.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace viaduct {

/// Grows in powers of two and never shrinks. Removed elements keep their place and their resources for reuse.
template <class T>
class Fifo {
public:
    Fifo() noexcept = default;
    /// Creates a FIFO with room for `size` elements. Throws std::bad_alloc.
    explicit Fifo(std::size_t size) {
        if (!reserve(size)) throw std::bad_alloc();
    }

    std::size_t size() const noexcept { return end_ - begin_; }
    bool empty() const noexcept { return begin_ == end_; }

    /// The number of elements for which there is room, in total and still.
    std::size_t capacity() const noexcept { return mask_ + 1; }
    std::size_t room() const noexcept { return capacity() - size(); }

    /// Makes room for a total of `size` elements. Returns false, without changing anything, if memory runs out.
    bool reserve(std::size_t size) noexcept {
        if (size <= mask_ + 1) [[likely]]
            return true;
        return grow(size);
    }

    /// Returns the place of the next element, which contains a removed element; commit() appends it. There must be
    /// room.
    [[gnu::always_inline]] T& vacant() noexcept { return at(end_); }
    void commit() noexcept { ++end_; }
    [[gnu::always_inline]] void push(const T& item) noexcept(std::is_nothrow_copy_assignable_v<T>) {
        vacant() = item;
        commit();
    }

    /// Indexes from the front.
    T& operator[](std::size_t index) noexcept { return at(begin_ + index); }
    const T& operator[](std::size_t index) const noexcept { return items_[(begin_ + index) & mask_]; }
    [[gnu::always_inline]] T& front() noexcept { return at(begin_); }
    void pop(std::size_t count = 1) noexcept { begin_ += count; }

private:
    static constexpr std::size_t smallest = 4;

    [[gnu::noinline]] bool grow(std::size_t size) noexcept {
        static_assert(std::is_nothrow_default_constructible_v<T> && std::is_nothrow_move_assignable_v<T>);
        if (size > std::numeric_limits<std::size_t>::max() / 4 / sizeof(T)) return false;
        const std::size_t capacity = std::bit_ceil(std::max(size, smallest));
        std::unique_ptr<T[]> items(new (std::nothrow) T[capacity]());
        if (items == nullptr) return false;
        for (std::size_t i = begin_; i != end_; ++i) items[i & (capacity - 1)] = std::move(at(i));
        items_ = std::move(items);
        mask_ = capacity - 1;
        return true;
    }

    [[gnu::always_inline]] T& at(std::size_t position) noexcept { return items_[position & mask_]; }

    std::unique_ptr<T[]> items_;
    std::size_t mask_ = ~std::size_t{0};  // the capacity - 1; the capacity is a power of two, or 0
    std::size_t begin_ = 0;               // positions increase forever
    std::size_t end_ = 0;
};

}  // namespace viaduct

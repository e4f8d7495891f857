// SPDX-License-Identifier: BSD-3-Clause
// A queue whose memory is asked for ahead of time, by those who can still say no.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>

namespace viaduct::verbs {

template <class T>
class Fifo {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    std::size_t size() const noexcept { return end_ - begin_; }
    bool empty() const noexcept { return begin_ == end_; }

    /// How many more can be pushed.
    std::size_t room() const noexcept { return capacity_ - size(); }

    /// Makes room for so many more. False: there is no memory, and nothing has changed.
    bool reserve(std::size_t more) noexcept {
        if (more <= room()) return true;
        const std::size_t capacity = std::bit_ceil(std::max(size() + more, smallest));
        std::unique_ptr<T[]> items(new (std::nothrow) T[capacity]);
        if (items == nullptr) return false;
        for (std::size_t i = begin_; i != end_; ++i) items[i & (capacity - 1)] = at(i);
        items_ = std::move(items);
        capacity_ = capacity;
        return true;
    }

    /// There is room.
    void push(const T& item) noexcept { at(end_++) = item; }
    const T& front() const noexcept { return items_[begin_ & (capacity_ - 1)]; }
    void pop() noexcept { ++begin_; }

    template <class Visit>
    void for_each(Visit visit) noexcept {
        for (std::size_t i = begin_; i != end_; ++i) visit(at(i));
    }

private:
    static constexpr std::size_t smallest = 16;

    T& at(std::size_t position) noexcept { return items_[position & (capacity_ - 1)]; }

    std::unique_ptr<T[]> items_;
    std::size_t capacity_ = 0;  // a power of two, or 0
    std::size_t begin_ = 0;     // positions count on for ever
    std::size_t end_ = 0;
};

}  // namespace viaduct::verbs

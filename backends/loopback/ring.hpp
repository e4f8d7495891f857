// SPDX-License-Identifier: BSD-3-Clause
// A first-in first-out buffer that grows in powers of two and keeps its elements (and what they own) for reuse.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace viaduct::loopback {

template <class T>
class Ring {
public:
    /// Throws std::bad_alloc.
    Ring() : items_(std::make_unique<T[]>(initial_capacity)) {}

    bool empty() const noexcept { return head_ == tail_; }
    std::size_t size() const noexcept { return tail_ - head_; }

    /// Counts from the front.
    T& operator[](std::size_t index) noexcept { return items_[(head_ + index) & (capacity_ - 1)]; }
    T& front() noexcept { return (*this)[0]; }
    T& back() noexcept { return (*this)[size() - 1]; }

    /// The place of the next element, which still holds what it held when it was last used; commit() appends it.
    /// Throws std::bad_alloc.
    T& vacant() {
        if (size() == capacity_) grow();
        return items_[tail_ & (capacity_ - 1)];
    }
    void commit() noexcept { ++tail_; }

    /// Makes room for `size` elements, so that push() does not throw before there are more. Throws std::bad_alloc.
    void reserve(std::size_t size) {
        while (capacity_ < size) [[unlikely]] grow();
    }

    T& push() {
        T& item = vacant();
        commit();
        return item;
    }
    void pop() noexcept { ++head_; }

private:
    [[gnu::noinline]] void grow() {
        const std::size_t capacity = capacity_ * 2;
        auto items = std::make_unique<T[]>(capacity);
        for (std::size_t i = 0; i < size(); ++i) items[i] = std::move((*this)[i]);
        tail_ = size();
        head_ = 0;
        items_ = std::move(items);
        capacity_ = capacity;
    }

    static constexpr std::size_t initial_capacity = 16;

    std::unique_ptr<T[]> items_;
    std::size_t capacity_ = initial_capacity;
    std::size_t head_ = 0;
    std::size_t tail_ = 0;
};

}  // namespace viaduct::loopback

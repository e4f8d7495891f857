// SPDX-License-Identifier: BSD-3-Clause
// One traced call. The generated wrappers use it, in the order of its functions.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "tools/run/trace/board.hpp"

namespace viaduct::trace {

/// A kind of object; records name its handles "vi#1", "vi#2" in the order in which they appear.
struct Kind {
    const char* name;
};

/// A library, and the version of its symbols.
struct Library {
    const char* soname;
    const char* version;
};

/// The function that the program would have called. Ends the process if there is none, as the dynamic linker would.
void* find_function(const char* name, const Library& library);

template <typename F>
class Function {
public:
    constexpr Function(const char* name, const Library& library) : name_(name), library_(library) {}

    F get() {
        void* found = found_.load(std::memory_order_acquire);
        if (found == nullptr) {
            found = find_function(name_, library_);
            found_.store(found, std::memory_order_release);
        }
        return reinterpret_cast<F>(found);
    }

private:
    const char* name_;
    const Library& library_;
    std::atomic<void*> found_{nullptr};
};

/// The bits of a handle, number or constant, to be compared with others.
template <typename T>
constexpr std::uint64_t as_bits(T value) {
    if constexpr (std::is_pointer_v<T>)
        return reinterpret_cast<std::uintptr_t>(value);
    else if constexpr (std::is_enum_v<T>)
        return static_cast<std::uint64_t>(static_cast<std::underlying_type_t<T>>(value));
    else
        return static_cast<std::uint64_t>(value);
}

/// The mask of structures that are written whole.
inline constexpr std::uint64_t all_fields = ~std::uint64_t{0};

/// Copies memory of the program, whose pointers may lead anywhere. Whether all of it could be read.
bool peek(const void* from, void* to, std::size_t bytes);

struct Thread;

class Record {
public:
    /// `caller` is where the call returns to: only calls of the program are recorded, not those of the libraries.
    Record(std::uint32_t call, const void* caller);
    ~Record();

    bool wanted() const { return thread_ != nullptr; }
    bool detailed() const { return detailed_; }
    Text& text() { return text_; }

    /// `show` writes the arguments. Calls that may be folded are, if their keys are equal; the arguments of those that
    /// cannot wait are written afterwards, if at all.
    template <typename F>
    void begin(const F& show, bool may_fold, bool may_wait, std::uint64_t key = 0) {
        key_ = key;
        if (detailed_ && !may_fold) flush();
        if (detailed_ && may_wait) {
            this->show(show);
            publish();
        }
        start_call();
    }
    void end();
    void judge(bool good, bool empty);
    template <typename F>
    void show(const F& show) {
        if (!std::exchange(shown_, true)) show();
    }
    void write();

    // ---- Values ----

    void handle(const Kind& kind, std::uint64_t bits);
    /// A handle of any of these kinds.
    void handle(std::span<const Kind* const> kinds, std::uint64_t bits);

    /// The handle is of a new object, whatever object had it before.
    void rename(const Kind& kind, std::uint64_t bits);

    /// If the call succeeds, the object is gone.
    void forget(const Kind& kind, std::uint64_t bits);

    void string(const char* text);
    void string(const char* text, std::size_t size);
    void bytes(const void* memory, std::int64_t count);

    template <typename T, typename F>
    void follow(T* pointer, const F& show) {
        using Value = std::remove_const_t<T>;
        alignas(Value) std::array<std::byte, sizeof(Value)> copy;
        if (peek(pointer, copy.data(), sizeof(Value)))
            show(reinterpret_cast<Value*>(copy.data()));
        else
            text_.address(pointer);
    }

    template <typename T>
    T pointed(T* pointer, T otherwise = T{}) {
        T value{};
        return peek(pointer, &value, sizeof value) ? value : otherwise;
    }

    template <typename T, typename F>
    void list(T* first, std::int64_t count, const F& show) {
        constexpr std::int64_t most = 16;
        if (first == nullptr || count < 0) return text_.address(first);
        text_.open('[');
        for (std::int64_t number = 0; number < count && number < most; ++number) {
            text_.next();
            follow(first + number, show);
        }
        if (count > most) {
            text_.next();
            text_.word("...");
        }
        text_.close(']');
    }

private:
    void publish();
    void flush();
    void start_call();
    bool fold();

    Thread* thread_ = nullptr;
    bool detailed_ = false;
    bool shown_ = false;
    bool empty_ = false;
    bool failed_ = false;
    std::uint32_t call_;
    std::uint32_t pid_ = 0;
    int error_ = 0;
    std::uint64_t key_ = 0;
    std::uint64_t start_ns_ = 0;
    std::uint64_t call_start_ns_ = 0;
    std::uint64_t call_end_ns_ = 0;
    std::unique_ptr<char[]> own_buffer_;  // of a call inside of another one
    Text text_{{}, Format::Text};
    std::size_t head_length_ = 0;
    const Kind* forgotten_kind_ = nullptr;
    std::uint64_t forgotten_ = 0;
    std::uint64_t forgotten_number_ = 0;
};

}  // namespace viaduct::trace

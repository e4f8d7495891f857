// SPDX-License-Identifier: BSD-3-Clause
// What the fuzz targets share. Each target is a program with LLVMFuzzerTestOneInput(); with the preset `fuzz` libFuzzer
// makes the inputs, otherwise main.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <source_location>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace viaduct::fuzz {

using Octets = std::vector<std::byte>;

/// Ends the process if the tested code is wrong.
inline void expect(bool condition, const std::source_location& where = std::source_location::current()) {
    if (condition) return;
    std::fprintf(stderr, "%s:%u: an expectation of the target does not hold\n", where.file_name(), where.line());
    std::abort();
}

/// The bytes of an input, which are taken from the front.
class Input {
public:
    Input(const std::uint8_t* data, std::size_t size) : rest_(std::as_bytes(std::span(data, size))) {}

    bool empty() const { return rest_.empty(); }
    std::span<const std::byte> rest() const { return rest_; }
    std::string_view text() const { return {reinterpret_cast<const char*>(rest_.data()), rest_.size()}; }

    /// At most so many bytes.
    std::span<const std::byte> take(std::size_t most) {
        const auto taken = rest_.first(std::min(most, rest_.size()));
        rest_ = rest_.subspan(taken.size());
        return taken;
    }

    /// A value whose bytes are those of the input; zeros where it ends.
    template <class Value>
    Value take() {
        static_assert(std::is_trivially_copyable_v<Value>);
        Value value{};
        const auto bytes = take(sizeof value);
        if (!bytes.empty()) std::memcpy(static_cast<void*>(&value), bytes.data(), bytes.size());
        return value;
    }

private:
    std::span<const std::byte> rest_;
};

/// A copy on the heap that is exactly as long, where the address sanitizer finds overruns.
inline Octets copy_of(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace viaduct::fuzz

// SPDX-License-Identifier: BSD-3-Clause
// Changes inputs at random, the same in each run with the same seed.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <span>

#include "tests/fuzz/target.hpp"

namespace viaduct::fuzz {

class Mutator {
public:
    explicit Mutator(unsigned seed) : random_(seed) {}

    /// A number below `limit`, which is not 0.
    std::size_t below(std::size_t limit) { return random_() % limit; }

    /// Makes 1 to 4 changes. `other` is an input to take parts from.
    void mutate(Octets& input, std::span<const std::byte> other) {
        for (std::size_t changes = 1 + below(4); changes > 0; --changes) change(input, other);
    }

private:
    /// Numbers at the limits of types and of fields.
    static constexpr std::array<std::uint32_t, 16> limits{
        0,      1,      2,       0x7F,       0x80,       0xFF,       0x100,      0x101,
        0x7FFF, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF0, 0xFFFFFFFE, 0xFFFFFFFF};

    void change(Octets& input, std::span<const std::byte> other) {
        if (input.empty()) return input.push_back(random_byte());
        const std::size_t at = below(input.size());
        const auto position = input.begin() + static_cast<std::ptrdiff_t>(at);
        const auto part = other.subspan(other.empty() ? 0 : below(other.size()));
        switch (below(8)) {
            case 0: input[at] ^= std::byte{1} << below(8); break;
            case 1: input[at] = random_byte(); break;
            case 2: put(input, at, limits[below(limits.size())]); break;
            case 3: input.resize(at); break;
            case 4: input.insert(position, 1 + below(40), random_byte()); break;
            case 5: input.erase(position, position + static_cast<std::ptrdiff_t>(1 + below(input.size() - at))); break;
            case 6: std::ranges::copy(part.first(std::min(part.size(), input.size() - at)), position); break;
            default: input.insert(position, part.begin(), part.end());
        }
    }

    /// As much of a number as has room, in 1, 2 or 4 bytes.
    void put(Octets& input, std::size_t at, std::uint32_t value) {
        const std::size_t size = std::min(std::size_t{1} << below(3), input.size() - at);
        for (std::size_t i = 0; i < size; ++i) input[at + i] = static_cast<std::byte>(value >> (8 * i));
    }

    std::byte random_byte() { return static_cast<std::byte>(random_()); }

    std::mt19937 random_;
};

}  // namespace viaduct::fuzz

// SPDX-License-Identifier: BSD-3-Clause
// Changes messages at random, the same in each run with the same seed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "core/base/settings.hpp"

namespace viaduct::fuzz {

using Octets = std::vector<std::byte>;

/// The number of messages to try; by default as many as take a few seconds.
inline unsigned rounds() { return number_setting({.variable = "VIADUCT_FUZZ_ROUNDS"}).value_or(50000); }

class Mutator {
public:
    Mutator() : random_(number_setting({.variable = "VIADUCT_FUZZ_SEED"}).value_or(1)) {}

    /// A number below `limit`, which is not 0.
    std::size_t below(std::size_t limit) { return random_() % limit; }
    bool one_in(std::size_t count) { return below(count) == 0; }

    template <class Values>
    const auto& pick(const Values& values) {
        return values[below(values.size())];
    }

    /// Makes some changes; none at times. `other` is a message to take parts from.
    void mutate(Octets& message, std::span<const std::byte> other, std::size_t max_size) {
        for (std::size_t changes = below(4); changes > 0; --changes) change(message, other);
        if (message.size() > max_size) message.resize(max_size);
    }

private:
    /// Numbers at the limits of types and of fields.
    static constexpr std::array<std::uint32_t, 16> limits{
        0,      1,      2,       0x7F,       0x80,       0xFF,       0x100,      0x101,
        0x7FFF, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF0, 0xFFFFFFFE, 0xFFFFFFFF};

    void change(Octets& message, std::span<const std::byte> other) {
        if (message.empty()) return message.push_back(random_byte());
        const std::size_t at = below(message.size());
        const auto position = message.begin() + static_cast<std::ptrdiff_t>(at);
        switch (below(7)) {
            case 0: message[at] ^= std::byte{1} << below(8); break;
            case 1: message[at] = random_byte(); break;
            case 2: put(message, at, pick(limits)); break;
            case 3: message.resize(at); break;
            case 4: message.insert(position, 1 + below(40), random_byte()); break;
            case 5:
                message.erase(position, position + static_cast<std::ptrdiff_t>(1 + below(message.size() - at)));
                break;
            default:
                if (!other.empty()) {
                    const auto part = other.subspan(below(other.size()));
                    std::ranges::copy(part.first(std::min(part.size(), message.size() - at)), position);
                }
        }
    }

    /// As much of a number as has room, in 1, 2 or 4 bytes.
    void put(Octets& message, std::size_t at, std::uint32_t value) {
        const std::size_t size = std::min(std::size_t{1} << below(3), message.size() - at);
        for (std::size_t i = 0; i < size; ++i) message[at + i] = static_cast<std::byte>(value >> (8 * i));
    }

    std::byte random_byte() { return static_cast<std::byte>(random_()); }

    std::mt19937 random_;
};

}  // namespace viaduct::fuzz

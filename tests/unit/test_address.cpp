// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <catch2/catch.hpp>
#include <numeric>

#include "viaduct/address.hpp"

using viaduct::Address;
using viaduct::Bytes;

namespace {

std::array<std::uint8_t, 100> counting() {
    std::array<std::uint8_t, 100> bytes{};
    std::iota(bytes.begin(), bytes.end(), std::uint8_t{1});
    return bytes;
}

}  // namespace

TEST_CASE("address: bytes are stored unchanged") {
    const auto source = counting();
    for (std::size_t size = 0; size <= Address::max_service; ++size) {
        const auto part = std::span(source).first(size);
        const Bytes<Address::max_service> bytes(part);
        CHECK(bytes.size() == size);
        CHECK(bytes.empty() == (size == 0));
        CHECK(std::ranges::equal(bytes.span(), part));
    }
}

TEST_CASE("address: longer input is truncated") {
    const auto source = counting();
    const Bytes<4> bytes(source);
    CHECK(bytes.size() == 4);
    CHECK(std::ranges::equal(bytes.span(), std::span(source).first(4)));
}

TEST_CASE("address: equality compares length and content") {
    const auto source = counting();
    const std::span all(source);
    CHECK(Bytes<8>(all.first(3)) == Bytes<8>(all.first(3)));
    CHECK_FALSE(Bytes<8>(all.first(3)) == Bytes<8>(all.first(4)));
    CHECK_FALSE(Bytes<8>(all.first(3)) == Bytes<8>(all.subspan(1, 3)));
    const Bytes<8> nothing;
    CHECK(nothing == Bytes<8>(all.first(0)));
    const std::array<std::uint8_t, 2> zeros{};
    const std::span all_zeros(zeros);
    CHECK_FALSE(Bytes<8>(all_zeros.first(1)) == Bytes<8>(all_zeros));
}

TEST_CASE("address: equality compares host and service") {
    const auto source = counting();
    const std::span all(source);
    const Address one{Bytes<16>(all.first(4)), Bytes<64>(all.first(2))};
    CHECK(one == Address{Bytes<16>(all.first(4)), Bytes<64>(all.first(2))});
    CHECK_FALSE(one == Address{Bytes<16>(all.first(5)), Bytes<64>(all.first(2))});
    CHECK_FALSE(one == Address{Bytes<16>(all.first(4)), Bytes<64>(all.first(3))});
}

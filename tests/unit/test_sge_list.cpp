// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <string_view>
#include <vector>

#include "backends/support/sge_list.hpp"
#include "core/base/internals.hpp"

using viaduct::Sge;
namespace support = viaduct::support;

namespace {

std::vector<Sge> pieces_of(std::span<char> text, std::initializer_list<std::uint32_t> lengths) {
    std::vector<Sge> pieces;
    for (const std::uint32_t length : lengths) {
        pieces.push_back({.address = text.data(), .key = 7, .length = length});
        text = text.subspan(length);
    }
    return pieces;
}

bool equal(std::span<const Sge> one, std::span<const Sge> other) {
    return std::ranges::equal(one, other, [](const Sge& a, const Sge& b) {
        return a.address == b.address && a.key == b.key && a.length == b.length;
    });
}

}  // namespace

TEST_CASE("sge_list: holds a copy of each length, also after others") {
    std::array<char, 16> text{};
    support::SgeList list;
    CHECK(list.span().empty());
    for (const auto& lengths : {std::initializer_list<std::uint32_t>{1, 2, 3, 4}, {5}, {6, 7}, {1, 1, 1}, {}, {2, 0}}) {
        auto pieces = pieces_of(text, lengths);
        list.assign(pieces);
        CHECK((list.single() != nullptr) == (pieces.size() == 1));
        const auto expected = pieces;
        std::ranges::fill(pieces, Sge{});
        CHECK(equal(list.span(), expected));
    }
}

TEST_CASE("sge_list: a receive has room for all of its pieces") {
    std::array<char, 16> text{};
    const auto pieces = pieces_of(text, {3, 0, 5});
    support::Receive receive;
    receive.assign(
        {.context = 9, .fault = viaduct::Internals::faulty(viaduct::CompletionCode::LocalFormat), .sges = pieces});
    CHECK(receive.context == 9);
    CHECK(receive.fault == viaduct::CompletionCode::LocalFormat);
    CHECK(receive.room() == 8);
}

TEST_CASE("sge_list: a stretch covers exactly its bytes") {
    std::array<char, 10> text{'0', '1', '2', '3', '4', '5', '6', '7', '8', '9'};
    const auto pieces = pieces_of(text, {3, 0, 1, 6});
    for (std::uint64_t skip = 0; skip <= text.size(); ++skip) {
        for (std::uint64_t length = 0; skip + length <= text.size(); ++length) {
            CAPTURE(skip, length);
            std::array<char, 10> gathered{};
            REQUIRE(support::gather(pieces, skip, reinterpret_cast<std::byte*>(gathered.data()), length));
            REQUIRE(std::string_view(gathered.data(), length) == std::string_view(text.data() + skip, length));

            std::array<iovec, 4> vectors{};
            std::uint64_t bytes = 0;
            for (std::size_t i = support::to_iovecs(pieces, skip, length, vectors); i > 0; --i) {
                CHECK(vectors[i - 1].iov_len != 0);
                bytes += vectors[i - 1].iov_len;
            }
            REQUIRE(bytes == length);

            std::array<char, 10> target{};
            REQUIRE(support::scatter(pieces_of(target, {3, 0, 1, 6}), skip,
                                     reinterpret_cast<const std::byte*>(text.data()) + skip, length));
            std::array<char, 10> expected{};
            std::memcpy(expected.data() + skip, text.data() + skip, length);
            REQUIRE(target == expected);
        }
    }
}

TEST_CASE("sge_list: pieces of any length are delivered whole") {
    std::array<std::byte, 300> source{};
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i + 1);
    for (std::size_t length = 0; length <= source.size(); ++length) {
        std::array<std::byte, 301> target{};
        REQUIRE(support::deliver_piece(target.data(), source.data(), length));
        CHECK(std::equal(source.begin(), source.begin() + static_cast<std::ptrdiff_t>(length), target.begin()));
        CHECK(target[length] == std::byte{});
    }
}

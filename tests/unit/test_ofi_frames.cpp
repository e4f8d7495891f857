// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <vector>

#include "backends/ofi/frames.hpp"

using namespace viaduct::ofi;

namespace {

std::vector<std::byte> frame_of(FrameHeader header, std::size_t payload) {
    std::vector<std::byte> bytes(sizeof header + payload);
    std::memcpy(bytes.data(), &header, sizeof header);
    for (std::size_t i = 0; i < payload; ++i) bytes[sizeof header + i] = static_cast<std::byte>(i + 1);
    return bytes;
}

}  // namespace

TEST_CASE("ofi frames: each kind has a payload of its own length") {
    struct Row {
        FrameKind kind;
        std::size_t bytes;
    };
    constexpr std::array rows{
        Row{FrameKind::Open, 0},         Row{FrameKind::Acknowledge, 0},     Row{FrameKind::Read, 0},
        Row{FrameKind::AtomicWrite, 8},  Row{FrameKind::FetchAdd, 8},        Row{FrameKind::CompareSwap, 16},
        Row{FrameKind::FlushVisible, 8}, Row{FrameKind::FlushPersistent, 8}, Row{FrameKind::Refused, 0}};
    for (const Row& row : rows) {
        for (const std::size_t bytes : {0, 7, 8, 9, 15, 16, 17}) {
            CAPTURE(static_cast<int>(row.kind), bytes);
            CHECK(parse_frame(frame_of({.kind = row.kind, .total = 100}, bytes)).has_value() == (bytes == row.bytes));
        }
    }
}

TEST_CASE("ofi frames: a fragment is at most as long as its operation") {
    for (const FrameKind kind : {FrameKind::Message, FrameKind::Write, FrameKind::Data}) {
        CHECK(parse_frame(frame_of({.kind = kind, .total = 0}, 0)));
        CHECK(parse_frame(frame_of({.kind = kind, .total = 9}, 9)));
        CHECK_FALSE(parse_frame(frame_of({.kind = kind, .total = 9}, 10)));
        CHECK(parse_frame(frame_of({.kind = kind, .total = 1 << 30}, fragment_bytes)));
        CHECK_FALSE(parse_frame(frame_of({.kind = kind, .total = 1 << 30}, fragment_bytes + 1)));
    }
}

TEST_CASE("ofi frames: an offer is for a part of its operation, and not larger than a block") {
    const auto parses = [](Offer offer, FrameHeader header, std::size_t payload = sizeof(Offer)) {
        header.flags = frame_flags::offered | frame_flags::more;
        auto bytes = frame_of(header, payload);
        std::memcpy(bytes.data() + sizeof header, &offer, std::min(payload, sizeof offer));
        return parse_frame(bytes).has_value();
    };
    const std::uint32_t most = max_offer_bytes;
    for (const FrameKind kind : {FrameKind::Message, FrameKind::Write, FrameKind::Data}) {
        const FrameHeader header{.kind = kind, .total = 1 << 30};
        CHECK(parses({.bytes = 1}, header));
        CHECK(parses({.bytes = most}, header));
        CHECK_FALSE(parses({.bytes = 0}, header));
        CHECK_FALSE(parses({.bytes = most + 1}, header));
        CHECK_FALSE(parses({.bytes = 1, .reserved = 1}, header));
        CHECK_FALSE(parses({.bytes = 1}, header, sizeof(Offer) - 1));
        CHECK_FALSE(parses({.bytes = 1}, header, sizeof(Offer) + 1));
        CHECK(parses({.bytes = 100}, {.kind = kind, .total = 100}));
        CHECK_FALSE(parses({.bytes = 101}, {.kind = kind, .total = 100}));
    }
}

TEST_CASE("ofi frames: only fragments have offers") {
    for (unsigned kind = 1; kind <= 12; ++kind)
        for (const std::size_t payload : {std::size_t{0}, std::size_t{8}, std::size_t{16}, sizeof(Offer)}) {
            CAPTURE(kind, payload);
            const FrameHeader header{.kind = static_cast<FrameKind>(kind), .flags = frame_flags::offered, .total = 100};
            const auto bytes = frame_of(header, payload);
            const auto frame = parse_frame(bytes);
            CHECK((!frame || offer_in(*frame)));
        }
}

TEST_CASE("ofi frames: what is no frame is refused") {
    const auto good = frame_of({.kind = FrameKind::Open}, 0);
    REQUIRE(parse_frame(good));
    for (std::size_t size = 0; size < good.size(); ++size) CHECK_FALSE(parse_frame(std::span(good).first(size)));
    CHECK_FALSE(parse_frame(frame_of({.kind = FrameKind::Open, .reserved = 1}, 0)));
    for (unsigned kind = 0; kind < 256; ++kind) {
        const bool known = kind >= 1 && kind <= 12;
        const bool parsed = parse_frame(frame_of({.kind = static_cast<FrameKind>(kind), .total = 16}, 0)) ||
                            parse_frame(frame_of({.kind = static_cast<FrameKind>(kind), .total = 16}, 8)) ||
                            parse_frame(frame_of({.kind = static_cast<FrameKind>(kind), .total = 16}, 16));
        CHECK(parsed == known);
    }
}

TEST_CASE("ofi frames: the layout is that of docs/ofi-wire.md") {
    std::array<std::uint8_t, 64> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i + 1);
    bytes[24] = 8;              // CompareSwap
    bytes[26] = bytes[27] = 0;  // reserved
    const auto frame = parse_frame(std::as_bytes(std::span(bytes)));
    REQUIRE(frame);
    CHECK(frame->header.token == 0x0807060504030201);
    CHECK(frame->header.connection == 0x0C0B0A09);
    CHECK(frame->header.sequence == 0x100F0E0D);
    CHECK(frame->header.executed == 0x14131211);
    CHECK(frame->header.handled == 0x18171615);
    CHECK(frame->header.kind == FrameKind::CompareSwap);
    CHECK(frame->header.flags == 0x1A);
    CHECK(frame->header.immediate == 0x201F1E1D);
    CHECK(frame->header.total == 0x24232221);
    CHECK(frame->header.key == 0x28272625);
    CHECK(frame->header.address == 0x302F2E2D2C2B2A29);
    CHECK(word_at(frame->payload, 0) == 0x3837363534333231);
    CHECK(word_at(frame->payload, 1) == 0x403F3E3D3C3B3A39);
}

TEST_CASE("ofi frames: numbers wrap around") {
    CHECK(reaches(5, 5));
    CHECK(reaches(6, 5));
    CHECK_FALSE(reaches(5, 6));
    CHECK(reaches(2, 0xFFFFFFFE));
    CHECK_FALSE(reaches(0xFFFFFFFE, 2));
}

TEST_CASE("ofi frames: only requests and responses are numbered") {
    CHECK_FALSE(has_sequence(FrameKind::Open));
    CHECK_FALSE(has_sequence(FrameKind::Acknowledge));
    CHECK(has_sequence(FrameKind::Message));
    CHECK(has_sequence(FrameKind::Refused));
    CHECK_FALSE(is_response(FrameKind::FlushPersistent));
    CHECK(is_response(FrameKind::Data));
    CHECK(is_response(FrameKind::Refused));
}

// SPDX-License-Identifier: BSD-3-Clause
// Senders of the loopback backend that send slots which do not form valid messages. The receiver must end the
// connection without touching unchecked memory, and must be able to connect again.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <vector>

#include "tests/crash/hostile.hpp"

using namespace viaduct;
using namespace viaduct::testing;
using loopback::wire::External;
using loopback::wire::fragment_bytes;
using loopback::wire::SlotKind;
namespace slot_flags = viaduct::loopback::wire::slot_flags;

namespace {

constexpr std::uint32_t total = 2 * fragment_bytes;
constexpr std::uint8_t last = slot_flags::external;
constexpr std::uint8_t first = last | slot_flags::more;

Slot fragment(std::uint8_t with, std::uint32_t number, std::uint32_t announced) {
    return {.kind = SlotKind::Message,
            .flags = with,
            .length = fragment_bytes,
            .external = {.offset = number * fragment_bytes, .total = announced}};
}

/// The receive has room for `room` bytes. The memory after it is not registered. Of the slots, the data
/// of the first `sound_slots` are accepted.
void check_refused(std::uint32_t room, const std::vector<Slot>& slots, int sound_slots) {
    const bool shared = GENERATE(false, true);
    CAPTURE(shared);
    const auto receiver = [&](Wire& wire) {
        Honest honest(wire, shared);
        const Buffer checked(honest.node, total);
        std::vector<std::byte> gone(total);
        const std::uint32_t gone_key =
            must(MemoryRegion::create(honest.node.domain, gone.data(), gone.size(), {}))->key();
        const std::array pieces{checked.sge(0, room), Sge{.address = gone.data(), .key = gone_key, .length = total}};
        honest.post_receive({.context = 1, .sges = pieces});
        honest.be_connected();
        wire.await();
        const auto expected = sound_slots == 0 ? CompletionCode::Flushed : CompletionCode::PartialMessage;
        require(honest.port.received().code == expected, "the receive ends with the connection");
        require(honest.port.lost(), "the loss");
        require(honest.port.quiet(), "nothing else");
        const auto untouched = [](std::span<const std::byte> bytes) {
            return static_cast<std::size_t>(std::ranges::count(bytes, std::byte{})) == bytes.size();
        };
        require(untouched(gone) && untouched(checked.bytes().subspan(room)), "no more is written than was checked");

        honest.port.endpoint->disconnect();
        honest.post_receive({.context = 2, .sges = std::span(pieces).first(1)});
        honest.be_connected();
        wire.await();
        const Completion whole = honest.port.received();
        require(whole.code == CompletionCode::Success && whole.context == 2 && whole.bytes == room, "a message");
        require(matches(checked.bytes().first(room), 1), "its bytes");
        wire.notify();
    };
    const auto sender = [&](Wire& wire) {
        const Hostile hostile(wire);
        const auto say = [&](const std::vector<Slot>& what) {
            Talk talk = hostile.await_request();
            fill(talk.segment().area[1], 1);
            hostile.accept(talk);
            talk.say(what);
            wire.notify();
            return talk;
        };
        const Talk broken = say(slots);
        std::vector<Slot> sound{fragment(first, 0, room), fragment(last, 1, room)};
        sound[1].length = room - fragment_bytes;
        const Talk whole = say(sound);
        wire.await();
    };
    CHECK_NOTHROW(run_processes(receiver, sender));
}

}  // namespace

TEST_CASE("hostile: a notice inside a message ends the connection") {
    for (const SlotKind kind : {SlotKind::WriteNotice, SlotKind::RefusedNotice, SlotKind::NoticeAborted}) {
        CAPTURE(static_cast<int>(kind));
        const Slot notice{.kind = kind, .flags = slot_flags::immediate, .length = 8, .external = {}};
        check_refused(total, {fragment(first, 0, total), notice, fragment(last, 1, total)}, 1);
    }
}

TEST_CASE("hostile: a message longer than announced ends the connection") {
    constexpr std::uint32_t less = total - 1;
    check_refused(less, {fragment(first, 0, less), fragment(last, 1, less)}, 1);
    check_refused(total, {fragment(first, 0, total), fragment(last, 1, less)}, 1);
    check_refused(total, {fragment(last, 0, fragment_bytes - 1)}, 0);
}

TEST_CASE("hostile: a message shorter than announced ends the connection") {
    check_refused(total, {fragment(last, 0, total)}, 1);
    Slot shorter = fragment(last, 1, total);
    --shorter.length;
    check_refused(total, {fragment(first, 0, total), shorter}, 1);
}

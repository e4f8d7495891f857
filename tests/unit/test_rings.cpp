// SPDX-License-Identifier: BSD-3-Clause
// The two ends of a ring, in the memory of a connection that has both of them in this process.
#include <fcntl.h>
#include <sys/epoll.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <set>

#include "backends/loopback/ring_producer.hpp"

using viaduct::UniqueFd;
using namespace viaduct::loopback;
using wire::SlotKind;

namespace {

constexpr std::uint32_t a_number = 77;

UniqueFd duplicate(int fd) { return UniqueFd(fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

/// A doorbell of this process, which counts how often it was rung since the last call.
class Bell {
public:
    Bell()
        : owner_(std::move(*Doorbells::create(epoll_.get()))),
          board_(std::move(*owner_->board_for(0))),
          remote_(std::move(*RemoteDoorbell::open(duplicate(board_->memory_fd()), duplicate(board_->event_fd())))) {}

    const RemoteDoorbell& remote() const { return remote_; }

    bool was_rung() {
        std::set<std::uint32_t> numbers;
        owner_->take([&](std::uint32_t number) { numbers.insert(number); });
        CHECK(numbers.size() <= 1);
        if (!numbers.empty()) CHECK(*numbers.begin() == a_number);
        return !numbers.empty();
    }

private:
    UniqueFd epoll_{epoll_create1(EPOLL_CLOEXEC)};
    std::unique_ptr<Doorbells> owner_;
    std::shared_ptr<DoorbellBoard> board_;
    RemoteDoorbell remote_;
};

/// Both ends of both directions: this side produces into direction 0.
struct Rings {
    Rings() {
        for (const unsigned number : {0, 1})
            segment->directions[number].consumer.consumed = wire::first_position[number];
        consumer.advertise(ring(0), 0);
        consumer.attach(ring(0));
        opposite.advertise(ring(1), 0);
        opposite.attach(ring(1));
        producer.attach(ring(0), opposite);
        answers.attach(ring(1), consumer);
    }

    Ring ring(unsigned direction) {
        return {.direction = &segment->directions[direction],
                .slots = segment->slots(direction),
                .first = wire::first_position[direction],
                .area = segment->area[direction],
                .doorbell = &bell.remote(),
                .peer_number = a_number};
    }

    void send(std::uint32_t value = 0) {
        producer.publish(producer.next(), SlotKind::Message, wire::slot_flags::solicited, value, value + 1);
    }

    void add_receive() {
        if (consumer.add_receive() && consumer.is_attached()) consumer.ring_producer();
    }

    /// Consumes a slot, which has so many bytes in the area. Returns its length field.
    std::uint32_t receive(std::uint32_t in_area = 0) {
        const wire::Slot& slot = consumer.front();
        REQUIRE(consumer.has_arrived(slot));
        const std::uint32_t value = slot.length;
        consumer.note(slot);
        owes = in_area == 0 ? consumer.pop() : consumer.pop_with_area(in_area);
        return value;
    }

    /// Sends a slot in the other direction, which this side consumes.
    void answer() {
        REQUIRE(answers.find_slot());
        answers.publish(answers.next(), SlotKind::Message, 0, 0, 0);
        const wire::Slot& slot = opposite.front();
        REQUIRE(opposite.has_arrived(slot));
        opposite.note(slot);
        opposite.pop();
    }

    std::unique_ptr<wire::Segment> segment = std::make_unique<wire::Segment>();
    Bell bell;
    RingConsumer consumer;  // of direction 0, at the peer
    RingConsumer opposite;  // of direction 1, here
    bool owes = false;      // whether the last receive() makes the consumer owe a confirmation
    RingProducer producer;  // of direction 0, here
    RingProducer answers;   // of direction 1, at the peer
};

}  // namespace

TEST_CASE("rings: a doorbell is an eventfd") {
    const UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
    const auto owner = std::move(*Doorbells::create(epoll.get()));
    const auto board = std::move(*owner->board_for(0));
    std::array<int, 2> ends{};
    REQUIRE(pipe(ends.data()) == 0);
    const UniqueFd unread(ends[0]);
    CHECK_FALSE(RemoteDoorbell::open(duplicate(board->memory_fd()), UniqueFd(ends[1])).ok());
    CHECK_FALSE(RemoteDoorbell::open(duplicate(board->memory_fd()), duplicate(board->memory_fd())).ok());
    CHECK_FALSE(RemoteDoorbell::open(duplicate(board->memory_fd()), UniqueFd()).ok());
    CHECK(RemoteDoorbell::open(duplicate(board->memory_fd()), duplicate(board->event_fd())).ok());
}

TEST_CASE("rings: slots arrive in order, with what was published, lap after lap") {
    Rings rings;
    for (std::uint32_t i = 0; i < 5 * wire::slot_count; ++i) {
        CHECK_FALSE(rings.consumer.has_arrived(rings.consumer.front()));
        REQUIRE(rings.producer.find_slot());
        rings.send(i);
        const wire::Slot& slot = rings.consumer.front();
        REQUIRE(rings.consumer.has_arrived(slot));
        CHECK(slot.kind == SlotKind::Message);
        CHECK(slot.flags == wire::slot_flags::solicited);
        CHECK(slot.immediate == i + 1);
        CHECK(rings.receive() == i);
        if (rings.owes) rings.consumer.confirm();
    }
    CHECK_FALSE(rings.bell.was_rung());
}

TEST_CASE("rings: a full ring has no slot; the producer is rung when the consumer confirms") {
    Rings rings;
    for (std::uint32_t i = 0; i < wire::slot_count; ++i) {
        REQUIRE(rings.producer.has_slot());
        rings.send(i);
    }
    CHECK_FALSE(rings.producer.has_slot());
    CHECK_FALSE(rings.producer.find_slot());
    CHECK(rings.segment->directions[0].producer.waiting == 1);
    CHECK(rings.bell.was_rung());  // once per slot that needs room
    CHECK_FALSE(rings.producer.find_slot());
    CHECK_FALSE(rings.bell.was_rung());

    CHECK(rings.receive() == 0);
    CHECK_FALSE(rings.producer.find_slot());  // not confirmed yet
    rings.consumer.confirm();
    CHECK(rings.bell.was_rung());
    CHECK(rings.producer.find_slot());
    CHECK(rings.producer.is_consumed(1));
    CHECK_FALSE(rings.producer.is_consumed(2));

    rings.producer.set_waiting(false);
    rings.receive();
    rings.consumer.confirm();
    CHECK_FALSE(rings.bell.was_rung());
}

TEST_CASE("rings: a confirmation that nobody awaits may be left to the next slot of the other direction") {
    Rings rings;
    rings.send();
    rings.receive();
    rings.consumer.confirm_if_awaited(false);
    CHECK(rings.segment->directions[0].consumer.consumed == 0);
    rings.producer.read_consumed();
    CHECK_FALSE(rings.producer.is_consumed(1));
    rings.answer();
    rings.producer.read_consumed();
    CHECK(rings.producer.is_consumed(1));

    rings.send();
    rings.receive();
    rings.consumer.confirm_if_awaited(true);
    CHECK(rings.segment->directions[0].consumer.consumed == 2);

    rings.send();
    rings.receive();
    rings.producer.set_waiting(true);
    rings.consumer.confirm_if_awaited(false);
    CHECK(rings.segment->directions[0].consumer.consumed == 3);
    CHECK(rings.bell.was_rung());
}

TEST_CASE("rings: the producer should know of a quarter of the ring and of so many bytes of the area") {
    Rings rings;
    const auto slots_until_due = [&rings](std::uint32_t in_area) {
        std::uint32_t slots = 0;
        do {
            REQUIRE(rings.producer.find_slot());
            rings.send();
            rings.receive(in_area);
            ++slots;
        } while (!rings.owes);
        rings.consumer.confirm();
        return slots;
    };
    CHECK(slots_until_due(0) == wire::slot_count / 4);
    CHECK(slots_until_due(1) == wire::slot_count / 4);
    CHECK(slots_until_due(wire::fragment_bytes / 8) == 8);
    CHECK(slots_until_due(wire::fragment_bytes - 1) == 2);
    CHECK(slots_until_due(wire::fragment_bytes) == 1);
    CHECK(slots_until_due(0) == wire::slot_count / 4);  // a confirmation covers the area, too
}

TEST_CASE("rings: a slot that has arrived but is not consumed yet confirms, too") {
    Rings rings;
    rings.send();
    rings.receive();
    rings.answers.publish(rings.answers.next(), SlotKind::Message, 0, 0, 0);
    rings.producer.read_consumed();
    CHECK(rings.producer.is_consumed(1));
}

TEST_CASE("rings: 16-bit counts in slots confirm more than 2^16 slots") {
    Rings rings;
    for (std::uint32_t i = 1; i <= 70'000; ++i) {
        REQUIRE(rings.producer.find_slot());
        rings.send(i);
        rings.receive();
        if (i % 100 == 0) rings.answer();
        if (i % 100 == 0) {
            rings.producer.read_consumed();
            REQUIRE(rings.producer.is_consumed(i));
            REQUIRE_FALSE(rings.producer.is_consumed(i + 1));
        }
    }
    CHECK(rings.segment->directions[0].consumer.consumed == 0);  // the line was never needed

    // After as many slots in one direction, those of the other one soon suffice again.
    const auto send_one = [&] {
        REQUIRE(rings.producer.find_slot());
        rings.send();
        rings.receive();
        if (rings.owes) rings.consumer.confirm();
    };
    for (std::uint32_t i = 0; i < 200'000; ++i) send_one();
    for (std::uint32_t i = 0; i < 3 * wire::slot_count; ++i) {
        send_one();
        rings.answer();
        rings.producer.read_consumed();
    }
    send_one();
    CHECK_FALSE(rings.producer.read_all_consumed());
    rings.answer();
    CHECK(rings.producer.read_all_consumed());
}

TEST_CASE("rings: one ring begins near its end; the first slots of both are in the page of the control lines") {
    Rings rings;
    const auto page_of = [&](const void* address) {
        return (static_cast<const std::byte*>(address) - reinterpret_cast<const std::byte*>(rings.segment.get())) /
               4096;
    };
    const auto control_page = page_of(&rings.segment->directions);
    for (std::uint32_t i = 1; i <= 3 * wire::slot_count; ++i) {
        const wire::Slot& slot = rings.answers.next();
        CHECK((page_of(&slot) == control_page) == ((i - 1) % wire::slot_count < wire::near_slots));
        CHECK((page_of(&rings.producer.next()) == control_page) == ((i - 1) % wire::slot_count < wire::near_slots));
        rings.answer();
        rings.opposite.confirm();
        rings.answers.read_consumed();
        REQUIRE(rings.answers.is_consumed(rings.answers.end()));
        REQUIRE_FALSE(rings.answers.is_corrupt());
        rings.send();
        rings.receive();
        rings.consumer.confirm();
        REQUIRE(rings.producer.find_slot());
    }
}

TEST_CASE("rings: an impossible count of the peer is not used") {
    Rings rings;
    rings.send();
    rings.segment->directions[0].consumer.consumed = 1u << 31;
    rings.producer.read_consumed();
    CHECK(rings.producer.is_corrupt());
    CHECK_FALSE(rings.producer.is_consumed(1));
    rings.producer.attach(rings.ring(0), rings.opposite);
    CHECK_FALSE(rings.producer.is_corrupt());
}

TEST_CASE("rings: messages take the receives that the peer has posted") {
    Rings rings;
    CHECK_FALSE(rings.producer.has_credit());
    rings.add_receive();
    rings.add_receive();
    CHECK(rings.producer.has_credit());
    rings.producer.take_credit();
    CHECK(rings.producer.has_credit());
    rings.producer.take_credit();
    CHECK_FALSE(rings.producer.has_credit());
    rings.producer.return_credit();
    CHECK(rings.producer.has_credit());
}

TEST_CASE("rings: slots of the other direction tell how many receives are posted") {
    Rings rings;
    rings.add_receive();
    rings.answer();
    rings.segment->directions[0].credit.posted = 0;  // what is told must suffice
    CHECK(rings.producer.has_credit());
    rings.producer.take_credit();
    CHECK_FALSE(rings.producer.has_credit());
}

TEST_CASE("rings: posting a receive rings a producer that waits for one") {
    Rings rings;
    rings.add_receive();
    CHECK_FALSE(rings.bell.was_rung());
    rings.producer.set_waiting(true);
    rings.add_receive();
    CHECK(rings.bell.was_rung());
}

TEST_CASE("rings: receives are announced before slots are consumed, and no longer after the end") {
    Rings rings;
    rings.consumer.detach();
    CHECK_FALSE(rings.consumer.advertises());
    CHECK_FALSE(rings.consumer.is_attached());
    CHECK(rings.consumer.posted() == 0);
    rings.consumer.advertise(rings.ring(0), 3);
    CHECK(rings.consumer.advertises());
    CHECK_FALSE(rings.consumer.is_attached());
    rings.add_receive();
    CHECK(rings.segment->directions[0].credit.posted == 4);
    rings.consumer.withdraw();
    CHECK_FALSE(rings.consumer.advertises());
}

TEST_CASE("rings: only a consumer that does not poll is rung for each slot") {
    Rings rings;
    rings.send();
    if (rings.producer.must_ring()) rings.producer.ring();
    CHECK_FALSE(rings.bell.was_rung());
    rings.consumer.set_need_wakeup(true);
    rings.send();
    if (rings.producer.must_ring()) rings.producer.ring();
    CHECK(rings.bell.was_rung());
    rings.consumer.set_need_wakeup(false);
    rings.send();
    if (rings.producer.must_ring()) rings.producer.ring();
    CHECK_FALSE(rings.bell.was_rung());
}

TEST_CASE("rings: the consumer's fault reaches the producer with what was consumed before it") {
    Rings rings;
    CHECK(rings.producer.fault() == wire::Fault::None);
    rings.send();
    rings.send();
    rings.receive();
    rings.consumer.report(wire::Fault::Length);
    CHECK(rings.producer.fault() == wire::Fault::Length);
    CHECK(rings.producer.is_fault_since(1));
    CHECK_FALSE(rings.producer.is_fault_since(2));
    rings.producer.read_consumed();
    CHECK(rings.producer.is_consumed(1));
    CHECK_FALSE(rings.producer.is_consumed(2));
}

TEST_CASE("rings: ranges of the area do not overlap and are free again when their slots are consumed") {
    Rings rings;
    constexpr std::uint32_t size = wire::fragment_bytes;
    constexpr std::uint32_t fit = wire::area_bytes / size;
    std::set<std::uint32_t> offsets;
    std::uint32_t offset = 0;
    for (std::uint32_t i = 0; i < fit; ++i) {
        REQUIRE(rings.producer.place(size, offset));
        CHECK(offset % size == 0);
        CHECK(offset + size <= wire::area_bytes);
        CHECK(offsets.insert(offset).second);
        CHECK(rings.producer.area(offset) == rings.segment->area[0] + offset);
        rings.send();
    }
    CHECK_FALSE(rings.producer.place(1, offset));
    CHECK(rings.bell.was_rung());

    rings.receive();
    rings.consumer.confirm();
    CHECK(rings.producer.place(1, offset));  // the first range
    CHECK(offset == 0);
    rings.send();
    CHECK(rings.producer.place(1, offset));  // ranges are aligned to cache lines
    CHECK(offset == 64);
}

TEST_CASE("rings: slots without ranges free none") {
    constexpr std::uint32_t half = wire::area_bytes / 2;
    Rings rings;
    std::uint32_t offset = 0;
    REQUIRE(rings.producer.place(half, offset));
    rings.send();
    rings.send();  // without a range
    REQUIRE(rings.producer.place(half, offset));
    CHECK(offset == half);
    rings.send();
    const auto is_free = [&] {
        rings.receive();
        rings.consumer.confirm();
        rings.producer.read_consumed();
        return rings.producer.place(half, offset);
    };
    REQUIRE(is_free());
    CHECK(offset == 0);
    rings.send();
    CHECK_FALSE(is_free());
    REQUIRE(is_free());
    CHECK(offset == half);
}

TEST_CASE("rings: a range is not split at the end of the area, and an empty area starts at its beginning") {
    Rings rings;
    std::uint32_t offset = 0;
    const auto pass = [&](std::uint32_t length) {
        REQUIRE(rings.producer.place(length, offset));
        rings.send();
    };
    const auto consume = [&] {
        rings.receive();
        rings.consumer.confirm();
        rings.producer.read_consumed();
    };
    pass(wire::area_bytes - 1000);
    pass(64);
    consume();
    pass(2000);  // does not fit between the second range and the end
    CHECK(offset == 0);
    consume();
    consume();
    pass(64);
    CHECK(offset == 0);
}

TEST_CASE("rings: a range of the area that is taken back is free again") {
    Rings rings;
    std::uint32_t first = 0;
    std::uint32_t offset = 0;
    REQUIRE(rings.producer.place(64, first));
    rings.send();
    for (int i = 0; i < 2; ++i) {
        REQUIRE(rings.producer.place(wire::area_bytes - 64, offset));
        CHECK(offset == 64);
        rings.producer.unplace(offset);
    }
    rings.send();  // without a range
    rings.receive();
    rings.receive();
    rings.consumer.confirm();
    rings.producer.read_consumed();
    CHECK(rings.producer.place(wire::area_bytes, offset));
}

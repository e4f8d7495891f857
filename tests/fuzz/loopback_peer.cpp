// SPDX-License-Identifier: BSD-3-Clause
// A hostile peer of the loopback backend. It accepts a connection with any message, and writes anything into the shared
// memory (slots, area, control lines, region table, doorbell board) while the victim reads it, polls and posts
// requests.
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <csignal>
#include <thread>

#include "backends/loopback/doorbell.hpp"
#include "tests/crash/hostile.hpp"
#include "tests/fuzz/victim.hpp"

using namespace viaduct;
using namespace viaduct::testing;
using namespace viaduct::fuzz;
using loopback::MapMessage;
using loopback::MessageType;
namespace wire = viaduct::loopback::wire;

namespace {

/// What the victim may access in the process of the peer.
alignas(page) std::array<std::byte, 16 * page> place;

/// Listens in another process, which the victim therefore takes for the peer. It is a copy of this one.
UniqueSocket listen_elsewhere(const Address& address) {
    std::array<int, 2> ends{};
    expect(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
    const UniqueFd here(ends[0]);
    const UniqueFd there(ends[1]);
    const char byte = 0;
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        const UniqueSocket listening = must(loopback::listen_on(loopback::service_name(address, 0)));
        must(loopback::send_message(there.get(), &byte, sizeof byte, std::array{listening.get()}));
        while (true) pause();
    }
    char heard = 0;
    auto received = must(loopback::receive_message(here.get(), &heard, sizeof heard));
    return UniqueSocket::made_by([&] { return received.descriptors.all()[0].release(); });
}

/// Where the peer is; made before the victim starts threads.
struct Attacker {
    Attacker() { speaker.listen(listen_elsewhere(address)); }

    Speaker speaker;
    const Address address{.host = HostAddress(std::array<std::uint8_t, 4>{127, 0, 0, 1}),
                          .service = Service(std::bit_cast<std::array<std::uint8_t, 4>>(getpid()))};
    const UniqueFd file = make_memfd("hostile-file", place.size(), true);
    const UniqueFd other_file = make_memfd("hostile-file", place.size(), false);
};

struct Victim {
    Node node{loopback_provider()};
    std::shared_ptr<CompletionQueue> queue = node.make_queue(4096);
    const Buffer target{node, 8 * page, Memory::Shareable};
    const Buffer large{node, 32 * page};
    const Buffer hidden{node, page, Memory::Heap, {}};
};

class Session {
public:
    Session(Attacker& hostile, Victim& victim, std::uint8_t options)
        : hostile_(hostile), victim_(victim), program_(victim.node, victim.queue, options) {
        auto parameters = parameters_for(victim.node, hostile.address);
        parameters.deadline = Deadline::after(std::chrono::seconds(2));
        must(program_.port.endpoint->connect(parameters));
        talk_ = hostile.speaker.await_request();
    }

    ~Session() {
        program_.port.endpoint->disconnect();
        program_.poll();
        for (const std::byte byte : victim_.hidden.bytes()) expect(byte == std::byte{});
    }

    /// Accepts with a message in which some bytes are changed. Returns whether the victim is connected.
    bool be_connected(Input& input) {
        loopback::HandshakeMessage message = hostile_.speaker.acceptance(talk_);
        for (auto changes = input.take<std::uint8_t>() % 8; changes > 0; --changes)
            write(&message, sizeof message, input.take<std::uint16_t>(), input.take(4));
        hostile_.speaker.accept(talk_, message);
        const bool connected = program_.port.event().kind == ConnectionEventKind::Established;
        const auto& descriptors = talk_.heard.descriptors;
        if (!connected) return false;
        board_ =
            must(loopback::Mapping::map(descriptors[1].get(), sizeof(wire::DoorbellBoard), PROT_READ | PROT_WRITE));
        bell_ = must(loopback::RemoteDoorbell::open(descriptors[1], UniqueFd(dup(descriptors[2].get()))));
        return true;
    }

    void step(Input& input) {
        const auto what = input.take<std::uint8_t>();
        switch (what % 16) {
            case 0: write_control(input); break;
            case 1: write_area(input); break;
            case 2: consume(input); break;
            case 3: publish(input); break;
            case 4: ring(input); break;
            case 5: say_map_message(input); break;
            case 6: program_.receive(input, victim_.large); break;
            case 7: race(input); break;
            case 8:
            case 9:
            case 10: program_.post(input, victim_.large, remote(input)); break;
            default: say_slot(input); break;
        }
        if ((what & 0x80) == 0) program_.poll();
    }

private:
    static void write(void* to, std::size_t size, std::size_t at, std::span<const std::byte> bytes) {
        at %= size;
        bytes = bytes.first(std::min(bytes.size(), size - at));
        if (!bytes.empty()) std::memcpy(static_cast<std::byte*>(to) + at, bytes.data(), bytes.size());
    }

    /// The lines between the slots and the slots, but not the handshake.
    void write_control(Input& input) {
        const auto at = input.take<std::uint16_t>();
        write(talk_.segment().closing, offsetof(wire::Segment, area) - offsetof(wire::Segment, closing), at,
              input.take(input.take<std::uint8_t>() % 16));
    }
    void write_area(Input& input) {
        const auto at = input.take<std::uint32_t>();
        write(talk_.segment().area, sizeof(wire::Segment::area), at, input.take(input.take<std::uint8_t>()));
    }

    /// As the consumer of what the victim produces.
    void consume(Input& input) {
        wire::Direction& direction = talk_.segment().directions[0];
        direction.credit.posted += input.take<std::uint8_t>();
        direction.consumer.consumed += input.take<std::int8_t>();
        direction.consumer.fault_slot = direction.consumer.consumed + input.take<std::uint8_t>();
        direction.consumer.fault = static_cast<wire::Fault>(input.take<std::uint8_t>() % 5);
        direction.wakeup.need_wakeup = input.take<std::uint8_t>();
    }

    void publish(Input& input) {
        const auto where = input.take<std::uint8_t>();
        const std::uint64_t base = (where & 1) != 0 ? 64 : reinterpret_cast<std::uint64_t>(place.data());
        const std::uint64_t length = (where & 2) != 0 ? input.take<std::uint64_t>() : place.size();
        hostile_.speaker.publish(hostile_key + where % 4, base, length, input.take<std::uint8_t>());
    }

    static RemoteAddress remote(Input& input) {
        const auto where = input.take<std::uint8_t>();
        return {.address = reinterpret_cast<std::uint64_t>(place.data()) + where % 16 * 4u,
                .key = hostile_key + where / 16 % 4u};
    }

    void ring(Input& input) {
        write(board_.as<wire::DoorbellBoard>(), sizeof(wire::DoorbellBoard), input.take<std::uint16_t>(),
              input.take(input.take<std::uint8_t>() % 16));
        const auto number = input.take<std::uint16_t>();
        bell_.ring(number % 4 == 0 ? talk_.heard.instance.connection : number % wire::max_connections);
    }

    void say_map_message(Input& input) {
        const auto how = input.take<std::uint8_t>();
        MapMessage message{.type = (how & 1) != 0 ? MessageType::MapRequest : MessageType::MapReply,
                           .key = (how & 1) != 0 ? victim_.target.remote().key : hostile_key + (how >> 6),
                           .base = reinterpret_cast<std::uint64_t>(place.data()),
                           .length = place.size(),
                           .offset = 0};
        write(&message, sizeof message, input.take<std::uint8_t>(), input.take((how & 2) != 0 ? 8 : 0));
        const std::array file{((how & 4) != 0 ? hostile_.other_file : hostile_.file).get()};
        (void)loopback::send_message(talk_.socket.get(), &message,
                                     (how & 8) != 0 ? how % sizeof message : sizeof message,
                                     std::span(file).first((how & 16) != 0 ? 0 : 1));
    }

    /// The next slot, with a length, a place in the area or a request to the agent that may be right.
    wire::Slot& fill_slot(Input& input) {
        wire::Slot& slot = talk_.segment().slots(1)[sequence_ & wire::slot_mask];
        slot.kind = static_cast<wire::SlotKind>(input.take<std::uint8_t>() % 17);
        slot.flags = input.take<std::uint8_t>();
        const auto where = input.take<std::uint8_t>();
        slot.length = (where & 1) != 0 ? input.take<std::uint32_t>() : input.take<std::uint8_t>();
        slot.consumed = static_cast<std::uint16_t>(talk_.segment().directions[0].consumer.consumed +
                                                   ((where & 2) != 0 ? input.take<std::uint8_t>() : 0));
        slot.credit = talk_.segment().directions[0].credit.posted;
        const RemoteAddress remote = ((where & 4) != 0 ? victim_.hidden : victim_.target).remote();
        slot.immediate = (where & 8) != 0 ? remote.key : 7;
        if (slot.kind < wire::SlotKind::AgentWrite) {
            const wire::External external{.offset = input.take<std::uint16_t>() * 16u, .total = slot.length};
            std::memcpy(slot.payload, &external, sizeof external);
        } else {
            const wire::AgentTransfer transfer{.address = remote.address + input.take<std::uint16_t>(),
                                               .value = input.take<std::uint16_t>(),
                                               .compare = 0,
                                               .key = remote.key,
                                               .offset = input.take<std::uint16_t>() * 16u};
            std::memcpy(slot.payload, &transfer, sizeof transfer);
        }
        if ((where & 16) != 0) write(slot.payload, sizeof slot.payload, input.take<std::uint8_t>(), input.take(8));
        return slot;
    }

    void say_slot(Input& input) {
        wire::Slot& slot = fill_slot(input);
        slot.sequence = ++sequence_;
    }

    /// Changes the slot while the victim reads it.
    void race(Input& input) {
        wire::Slot& slot = fill_slot(input);
        std::array<std::byte, sizeof slot> other{};
        const auto bytes = input.take(sizeof other - sizeof slot.sequence);
        std::ranges::copy(bytes, other.begin() + sizeof slot.sequence);
        std::array<std::byte, sizeof slot> one{};
        std::memcpy(one.data(), static_cast<void*>(&slot), sizeof one);
        slot.sequence = ++sequence_;
        std::atomic<bool> stopped = false;
        std::thread writer([&] {
            constexpr std::size_t at = sizeof slot.sequence;
            while (!stopped)
                for (const auto& content : {other, one})
                    std::memcpy(reinterpret_cast<std::byte*>(&slot) + at, content.data() + at, sizeof one - at);
        });
        for (int i = 0; i < 8; ++i) program_.poll();
        stopped = true;
        writer.join();
    }

    Attacker& hostile_;
    Victim& victim_;
    Program program_;
    Talk talk_;
    loopback::Mapping board_;
    loopback::RemoteDoorbell bell_;
    std::uint32_t sequence_ = wire::first_position[1];
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    [[maybe_unused]] static const bool prepared = setenv("VIADUCT_LOG", "error", 0) == 0;
    static auto& hostile = *new Attacker;
    static auto& victim = *new Victim;
    Input input(data, size);
    Session session(hostile, victim, input.take<std::uint8_t>());
    if (!session.be_connected(input)) return 0;
    while (!input.empty()) session.step(input);
    return 0;
}

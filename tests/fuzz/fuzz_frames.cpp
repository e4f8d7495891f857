// SPDX-License-Identifier: BSD-3-Clause
// Whatever frames a peer of the ofi backend sends, it accesses only the memory that it may access, and each connection
// either goes on or ends.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "core/provider.hpp"
#include "tests/fuzz/frame_speaker.hpp"
#include "tests/fuzz/mutator.hpp"
#include "tests/support/mapped_file.hpp"
#include "tests/support/rig.hpp"

using namespace viaduct;
using namespace viaduct::ofi;
using fuzz::Octets;
using testing::must;
using testing::require;

namespace {

// Before the first device is opened and the first message is logged.
[[maybe_unused]] const bool prepared =
    setenv("VIADUCT_OFI_INTERFACES", "lo", 1) == 0 && setenv("VIADUCT_LOG", "error", 0) == 0;

constexpr std::string_view secret = "not for the peer";
constexpr Access all_access{.remote_write = true, .remote_read = true, .remote_atomic = true};

/// A part of an arena with a region, and memory after it that no peer may access.
struct Part {
    std::span<std::byte> open;
    std::span<std::byte> guard;
    std::unique_ptr<MemoryRegion> region;

    RemoteAddress at(std::uint64_t offset) const noexcept {
        return {.address = reinterpret_cast<std::uint64_t>(open.data()) + offset, .key = region->key()};
    }
    Sge sge(std::uint32_t length) const noexcept {
        return {.address = open.data(), .key = region->key(), .length = length};
    }
};

void conceal(std::span<std::byte> bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(secret[i % secret.size()]);
}

bool is_concealed(std::span<const std::byte> bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i)
        if (bytes[i] != static_cast<std::byte>(secret[i % secret.size()])) return false;
    return true;
}

/// The process that is attacked.
class Target {
public:
    explicit Target(backend::Provider& provider)
        : node(provider), stranger_(must(ProtectionDomain::create(node.device))) {
        writable = add(65536, all_access, node.domain);
        readable = add(4096, {.remote_read = true}, node.domain);
        inbox = add(20000, {}, node.domain);
        hidden = add(4096, all_access, stranger_);
        conceal(hidden.open);
        stored = must(MemoryRegion::create(node.domain, file_.bytes().data(), file_.bytes().size(), all_access));
        for (const Reliability level : testing::all_levels)
            ports.push_back(std::make_unique<testing::Port>(
                node, testing::PortOptions{.reliability = level,
                                           .access = {.remote_write = true,
                                                      .remote_read = level != Reliability::Unreliable,
                                                      .remote_atomic = level != Reliability::Unreliable}}));
    }

    /// Posts receives of several lengths and requests whose answers the peer may send.
    void post(testing::Port& port, fuzz::Mutator& random) {
        const std::array lengths{0u, 300u, 20000u, 20000u, 20000u, 20000u, 20000u, 20000u};
        for (std::uint64_t i = 0; i < 64; ++i) {
            const Sge piece = inbox.sge(random.pick(lengths));
            port.post(testing::receive_of(i, piece));
        }
    }
    void ask(testing::Port& port) {
        const Sge word = inbox.sge(8);
        const Sge block = inbox.sge(256);
        port.post(testing::read_of(1, block, {.address = 0x1000, .key = 1}));
        port.post(testing::fetch_add_of(2, word, {.address = 0x1000, .key = 1}, 1));
        port.post(testing::send_of(3, block));
    }

    /// Ends the connection, and takes all completions and events.
    void clean(testing::Port& port) {
        port.endpoint->disconnect();
        std::array<Completion, 64> completions;
        while (port.receive_queue->poll(completions) + port.send_queue->poll(completions) != 0) {
        }
        port.events.clear();
        node.async.clear();
    }

    bool is_intact() const {
        return is_concealed(hidden.open) &&
               std::ranges::all_of(readable.open, [](std::byte byte) { return byte == std::byte{}; }) &&
               std::ranges::all_of(std::array{&writable, &readable, &inbox, &hidden},
                                   [](const Part* part) { return is_concealed(part->guard); });
    }

    testing::Node node;
    Part writable;
    Part readable;
    Part inbox;
    Part hidden;  // in another protection domain
    std::unique_ptr<MemoryRegion> stored;
    std::vector<std::unique_ptr<testing::Port>> ports;

private:
    Part add(std::size_t bytes, Access access, const std::shared_ptr<ProtectionDomain>& domain) {
        constexpr std::size_t guard = 4096;
        arenas_.push_back(std::make_unique<std::vector<std::byte>>(bytes + guard));
        const std::span all(*arenas_.back());
        Part part{.open = all.first(bytes), .guard = all.subspan(bytes), .region = nullptr};
        conceal(part.guard);
        part.region = must(MemoryRegion::create(domain, part.open.data(), bytes, access));
        return part;
    }

    std::shared_ptr<ProtectionDomain> stranger_;
    std::vector<std::unique_ptr<std::vector<std::byte>>> arenas_;
    testing::MappedFile file_{4096};
};

/// Makes frames of an operation that is mostly valid.
class Maker {
public:
    Maker(const Target& target, fuzz::Mutator& random, fuzz::FrameSpeaker& speaker)
        : target_(target), random_(random), speaker_(speaker) {}

    FrameHeader header(FrameKind kind) {
        FrameHeader header{.kind = kind};
        if (random_.one_in(3)) header.flags |= frame_flags::immediate;
        if (random_.one_in(4)) header.flags |= frame_flags::solicited;
        if (random_.one_in(2)) header.flags |= frame_flags::confirm;
        if (random_.one_in(100)) header.flags |= frame_flags::invalidate;
        if (random_.one_in(100)) header.flags |= frame_flags::aborted;
        header.immediate = static_cast<std::uint32_t>(random_.below(1000));
        const RemoteAddress where = place();
        header.key = where.key;
        header.address = where.address;
        return header;
    }

    std::vector<Octets> operation() {
        switch (random_.below(60)) {
            case 58: return fragments(FrameKind::Data, random_.one_in(2) ? 256 : 8);
            case 59: return {frame(header(FrameKind::Refused), 0)};
            default: break;
        }
        switch (random_.below(11)) {
            case 0:
            case 1:
            case 2: return fragments(FrameKind::Message, random_.pick(lengths));
            case 3:
            case 4: return fragments(FrameKind::Write, random_.pick(lengths));
            case 5: {
                FrameHeader read = header(FrameKind::Read);
                read.total = random_.pick(lengths);
                return {frame(read, 0)};
            }
            case 6: return {frame(header(FrameKind::AtomicWrite), 8)};
            case 7: return {frame(header(FrameKind::FetchAdd), 8)};
            case 8: return {frame(header(FrameKind::CompareSwap), 16)};
            case 9: return {flush()};
            default: return {frame(header(FrameKind::Acknowledge), 0)};
        }
    }

private:
    static constexpr std::array<std::uint32_t, 8> lengths{0, 1, 8, 64, 300, 4096, 17000, 40000};

    RemoteAddress place() {
        const std::uint64_t offset = random_.one_in(10) ? random_.below(66000) : 8 * random_.below(500);
        switch (random_.below(50)) {
            case 0: return target_.readable.at(offset);
            case 1: return target_.inbox.at(offset);
            case 2: return target_.hidden.at(offset);
            case 3: return {.address = 0, .key = 0};
            default: return target_.writable.at(offset);
        }
    }

    static Octets frame(FrameHeader header, std::size_t payload) {
        Octets bytes(sizeof header + payload, std::byte{'w'});
        std::memcpy(bytes.data(), &header, sizeof header);
        return bytes;
    }

    std::vector<Octets> fragments(FrameKind kind, std::uint32_t total) {
        std::vector<Octets> frames;
        FrameHeader each = header(kind);
        each.total = total;
        const std::size_t largest = random_.one_in(2) ? fragment_bytes : 1 + total / 2;
        for (std::size_t left = total; true;) {
            const std::size_t bytes = std::min(left, largest);
            left -= bytes;
            FrameHeader one = each;
            if (left != 0)
                one.flags = static_cast<std::uint8_t>((one.flags & ~frame_flags::aborted) | frame_flags::more);
            const auto offer = bytes != 0 && random_.one_in(4) ? speaker_.offer(bytes) : std::nullopt;
            frames.push_back(offer ? offering(one, *offer) : frame(one, bytes));
            each.address += bytes;
            if (left == 0) return frames;
        }
    }

    /// Mostly with the right stamp. A wrong key would break libfabric's connection to the other process.
    Octets offering(FrameHeader header, Offer offer) {
        header.flags |= frame_flags::offered;
        if (random_.one_in(50)) ++offer.stamp;
        if (random_.one_in(50)) offer.bytes = 1 + static_cast<std::uint32_t>(random_.below(max_offer_bytes));
        Octets bytes = frame(header, sizeof offer);
        std::memcpy(bytes.data() + sizeof header, &offer, sizeof offer);
        return bytes;
    }

    Octets flush() {
        const bool stored = random_.one_in(8);
        FrameHeader flush = header(stored ? FrameKind::FlushPersistent : FrameKind::FlushVisible);
        if (stored) {
            flush.key = target_.stored->key();
            flush.address = reinterpret_cast<std::uint64_t>(target_.stored->address());
        }
        Octets bytes = frame(flush, 8);
        const std::uint64_t length = random_.one_in(20) ? ~std::uint64_t{0} >> random_.below(64) : random_.below(5000);
        std::memcpy(bytes.data() + sizeof flush, &length, sizeof length);
        return bytes;
    }

    const Target& target_;
    fuzz::Mutator& random_;
    fuzz::FrameSpeaker& speaker_;
};

bool offers(const Octets& bytes) {
    const auto frame = parse_frame(bytes);
    return frame && is_offered(frame->header);
}

/// Puts the addressee, the number and the counters into a frame.
void address_to_peer(Octets& frame, const fuzz::FrameSpeaker& speaker) {
    if (frame.size() < sizeof(FrameHeader)) return;
    FrameHeader header;
    std::memcpy(&header, frame.data(), sizeof header);
    const FrameHeader next = speaker.next_header(is_response(header.kind));
    header.token = next.token;
    header.connection = next.connection;
    header.sequence = next.sequence;
    header.executed = next.executed;
    header.handled = next.handled;
    std::memcpy(frame.data(), &header, sizeof header);
}

bool contains_secret(std::span<const std::byte> bytes) {
    const auto of_secret = std::as_bytes(std::span(secret));
    return !std::ranges::search(bytes, of_secret).empty();
}

}  // namespace

TEST_CASE("fuzz: frames access only what they may, and a connection goes on or ends") {
    backend::Provider* provider = must(find_provider("ofi"));
    REQUIRE(provider != nullptr);
    std::unique_ptr<Target> target;
    try {
        target = std::make_unique<Target>(*provider);
    } catch (const std::exception& error) {
        WARN("no device of the ofi backend can be opened: " << error.what());  // CMakeLists.txt knows this sentence
        return;
    }
    fuzz::Mutator random;
    fuzz::FrameSpeaker speaker(target->node.device->attributes().host);
    Maker maker(*target, random, speaker);
    const Address address = target->node.address("speaker");
    speaker.listen(address.service);

    testing::Port spectator(target->node);
    must(spectator.endpoint->connect(testing::parameters_for(target->node, address)));
    speaker.accept();
    speaker.keep();
    REQUIRE(spectator.event().kind == ConnectionEventKind::Established);

    std::vector<Octets> corpus{Octets(200, std::byte{0xFF})};
    unsigned sent = 0;
    unsigned confirmed = 0;
    unsigned connections = 0;
    unsigned ended = 0;
    while (sent < fuzz::rounds()) {
        CAPTURE(sent, connections);
        testing::Port& port = *random.pick(target->ports);
        target->post(port, random);
        must(port.endpoint->connect(testing::parameters_for(target->node, address)));
        speaker.accept();
        REQUIRE(port.event().kind == ConnectionEventKind::Established);
        if (port.endpoint->attributes().reliability != Reliability::Unreliable) target->ask(port);
        ++connections;
        for (std::size_t operations = 1 + random.below(40); operations > 0 && !speaker.has_ended(); --operations) {
            for (Octets& frame : maker.operation()) {
                const bool may_change = !offers(frame);  // see Maker::offering()
                if (may_change && corpus.size() < 500) corpus.push_back(frame);
                if (may_change && random.one_in(200)) {  // changed completely
                    random.mutate(frame, random.pick(corpus), max_frame_bytes);
                } else {
                    if (may_change && random.one_in(10)) random.mutate(frame, random.pick(corpus), max_frame_bytes);
                    address_to_peer(frame, speaker);
                }
                if (may_change && offers(frame)) continue;  // its key would be wrong
                if (!speaker.send(frame)) break;
                ++sent;
            }
        }
        REQUIRE(speaker.settle());
        confirmed += speaker.confirmed();
        ended += speaker.has_ended();
        REQUIRE_FALSE(contains_secret(speaker.take_data()));
        target->clean(port);
        speaker.hang_up();
        REQUIRE(target->is_intact());
    }
    CAPTURE(sent, confirmed, connections, ended);
    // The changes reach everything.
    CHECK(confirmed > sent / 10);
    CHECK(ended > connections / 10);
    CHECK(ended < connections);

    CHECK(spectator.quiet());
    testing::Port client(target->node);
    testing::Port server(target->node);
    testing::join(client, server);
    const Sge piece = target->inbox.sge(256);
    server.post(testing::receive_of(1, piece));
    client.post(testing::send_of(2, piece));
    CHECK(server.received().code == CompletionCode::Success);
    CHECK(client.sent().code == CompletionCode::Success);
}

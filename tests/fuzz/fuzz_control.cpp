// SPDX-License-Identifier: BSD-3-Clause
// Whatever a peer of the ofi backend sends to a control socket, it is read, decoded and refused in bounds.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>

#include "backends/ofi/session.hpp"
#include "tests/fuzz/mutator.hpp"

using namespace viaduct;
using namespace viaduct::ofi;
using control::Message;
using fuzz::Octets;

namespace {

template <class Field>
Field filled(std::size_t size) {
    return Field(std::vector<std::uint8_t>(size, 'f'));
}

std::vector<Message> messages() {
    const control::End end{.provider = filled<control::ProviderName>(3),
                           .address = filled<control::FabricAddress>(16),
                           .connection = 7,
                           .token = 0x0123456789ABCDEF};
    const Address address{.host = filled<HostAddress>(4), .service = filled<Service>(2)};
    return {control::Challenge{},
            control::Request{.end = end, .local = address, .remote = address, .private_data = filled<PrivateData>(8)},
            control::Request{.end = end, .local = address, .remote = address, .private_data = filled<PrivateData>(256)},
            control::Accepted{.end = end, .private_data = filled<PrivateData>(24)},
            control::Rejected{.private_data = filled<PrivateData>(5)},
            control::NoListener{},
            control::Conflict{},
            control::ProviderMismatch{.provider = filled<control::ProviderName>(11)},
            control::AuthenticationFailed{},
            control::Closing{},
            control::NoResources{}};
}

Octets octets(const control::EncodedFrame& frame) { return {frame.bytes().begin(), frame.bytes().end()}; }

/// Makes the length of a frame true, so that its body is decoded.
void correct_length(Octets& frame) {
    for (std::size_t i = 0; i < std::min<std::size_t>(4, frame.size()); ++i)
        frame[i] = static_cast<std::byte>(frame.size() >> (8 * i));
}

/// Passes the bytes to a reader in pieces of random sizes, and each frame to `use`. Returns why the reader gave up.
template <class Use>
std::optional<Status> read(std::span<const std::byte> bytes, fuzz::Mutator& random, Use use) {
    const auto reader = std::make_unique<control::FrameReader>();  // on the heap, where overruns are found
    while (true) {
        auto frame = reader->next();
        if (!frame.ok()) {
            CHECK(frame.status().code() == Code::InvalidParameter);
            CHECK_FALSE(reader->next().ok());
            return frame.status();
        }
        if (frame->has_value()) {
            // A copy, so that reading beyond the frame is found.
            const Octets covered((*frame)->covered.begin(), (*frame)->covered.end());
            const Octets mac((*frame)->mac.begin(), (*frame)->mac.end());
            use(control::Frame{.type = (*frame)->type, .covered = covered, .mac = mac});
            continue;
        }
        if (bytes.empty()) return std::nullopt;
        const auto space = reader->space();
        REQUIRE_FALSE(space.empty());
        const std::size_t size = 1 + random.below(std::min(space.size(), bytes.size()));
        std::ranges::copy(bytes.first(size), space.begin());
        reader->add(size);
        bytes = bytes.subspan(size);
    }
}

}  // namespace

TEST_CASE("fuzz: control messages are decoded as they are encoded, or refused") {
    fuzz::Mutator random;
    std::vector<Octets> corpus;
    for (const Message& message : messages()) corpus.push_back(octets(control::encode(message)));
    std::map<control::Type, unsigned> decoded;
    unsigned refused_bodies = 0;
    unsigned refused_frames = 0;
    for (unsigned round = 0; round < fuzz::rounds(); ++round) {
        CAPTURE(round);
        Octets stream;
        for (std::size_t frames = 1 + random.below(3); frames > 0; --frames) {
            Octets frame = random.pick(corpus);
            random.mutate(frame, random.pick(corpus), control::max_frame_bytes + 50);
            if (!random.one_in(4)) correct_length(frame);
            stream.insert(stream.end(), frame.begin(), frame.end());
        }
        const auto given_up = read(stream, random, [&](const control::Frame& frame) {
            auto message = control::decode(frame);
            if (!message.ok()) {
                const Code code = message.status().code();
                CHECK((code == Code::InvalidParameter || code == Code::Unsupported));
                ++refused_bodies;
                return;
            }
            ++decoded[frame.type];
            // The same length and content, except for attributes that this version does not know.
            const control::EncodedFrame again = control::encode(*message);
            REQUIRE(again.covered().size() == frame.covered.size());
            auto same = control::decode({.type = frame.type, .covered = again.covered(), .mac = {}});
            REQUIRE(same.ok());
            REQUIRE(*same == *message);
        });
        refused_frames += given_up.has_value();
    }
    // The mutations reach everything.
    for (const Message& message : messages())
        CHECK(decoded[std::visit([](const auto& body) { return body.type; }, message)] > fuzz::rounds() / 50);
    CHECK(refused_bodies > fuzz::rounds() / 10);
    CHECK(refused_frames > fuzz::rounds() / 10);
}

TEST_CASE("fuzz: no changed control message is authentic") {
    fuzz::Mutator random;
    auto policy = Policy::from_environment();
    REQUIRE(policy.ok());
    std::vector<Octets> corpus;
    for (const Message& message : messages()) corpus.push_back(octets(control::encode(message)));
    unsigned accepted = 0;
    unsigned refused = 0;
    for (unsigned round = 0; round < fuzz::rounds(); ++round) {
        CAPTURE(round);
        const auto requester = std::make_unique<Session>(*policy, Role::Requester);
        const auto responder = std::make_unique<Session>(*policy, Role::Responder);
        // One side changes nothing, the other some of what it sends.
        const auto pass = [&](Session& sender, const Message& message, Session& receiver) {
            auto sealed = sender.seal(message);
            REQUIRE(sealed.ok());
            const Octets sent = octets(*sealed);
            Octets changed = sent;
            random.mutate(changed, random.pick(corpus), control::max_frame_bytes);
            if (!random.one_in(4)) correct_length(changed);
            bool good = false;
            (void)read(changed, random, [&](const control::Frame& frame) {
                if (good || !receiver.open(frame).ok()) return;
                good = true;
                if (frame.type == control::Type::Challenge) return;  // has no MAC
                Octets whole(frame.covered.begin(), frame.covered.end());
                whole.insert(whole.end(), frame.mac.begin(), frame.mac.end());
                REQUIRE(whole == sent);
            });
            ++(good ? accepted : refused);
            return good;
        };
        if (!pass(*responder, control::Challenge{}, *requester)) continue;
        if (!pass(*requester, random.one_in(2) ? messages()[1] : messages()[2], *responder)) continue;
        Message answer = random.pick(messages());
        while (std::holds_alternative<control::Challenge>(answer) || std::holds_alternative<control::Request>(answer) ||
               std::holds_alternative<control::AuthenticationFailed>(answer))
            answer = random.pick(messages());
        pass(*responder, answer, *requester);
    }
    CHECK(accepted > fuzz::rounds() / 4);
    CHECK(refused > fuzz::rounds() / 4);
}

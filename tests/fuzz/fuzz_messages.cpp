// SPDX-License-Identifier: BSD-3-Clause
// Whatever a peer of the tcp backend sends in a message, it is decoded and refused in bounds.
#include <catch2/catch.hpp>
#include <tuple>

#include "backends/software/messages.hpp"
#include "tests/fuzz/mutator.hpp"

using namespace viaduct;
using namespace viaduct::software;
using fuzz::Octets;

namespace {

template <class Field>
Field filled(std::size_t size) {
    return Field(std::vector<std::uint8_t>(size, 'f'));
}

auto messages() {
    const End end{.connection = 7};
    const Address address{.host = filled<HostAddress>(4), .service = filled<Service>(2)};
    return std::tuple(Connect{.end = end, .local = address, .remote = address, .private_data = filled<PrivateData>(8)},
                      Accepted{.end = end, .private_data = filled<PrivateData>(24)},
                      Rejected{.private_data = filled<PrivateData>(5)}, Conflict{}, Closing{});
}

template <class Message>
Octets octets(const Message& message) {
    const Encoded encoded = encode(message);
    return {encoded.bytes().begin(), encoded.bytes().end()};
}

}  // namespace

TEST_CASE("fuzz: messages are decoded as they are encoded, or refused") {
    fuzz::Mutator random;
    std::vector<Octets> corpus;
    std::apply([&](const auto&... message) { (corpus.push_back(octets(message)), ...); }, messages());
    const auto attempt = [&]<class Message>(const Message& good) {
        unsigned decoded = 0;
        unsigned refused = 0;
        for (unsigned round = 0; round < fuzz::rounds() / 5; ++round) {
            CAPTURE(round);
            Octets changed = octets(good);
            random.mutate(changed, random.pick(corpus), max_message_bytes);
            const Octets body(changed);  // on the heap and of this size, where overruns are found
            Message message;
            if (const Status status = decode(body, message); !status.ok()) {
                REQUIRE(status.code() == Code::InvalidParameter);
                ++refused;
                continue;
            }
            ++decoded;
            // The same length and content, except for attributes that this version does not know.
            const Octets again = octets(message);
            REQUIRE(again.size() == body.size());
            Message same;
            REQUIRE(decode(again, same).ok());
            REQUIRE(same == message);
        }
        CHECK(decoded > fuzz::rounds() / 50);
        CHECK(refused > fuzz::rounds() / 50);
    };
    std::apply([&](const auto&... message) { (attempt(message), ...); }, messages());
}

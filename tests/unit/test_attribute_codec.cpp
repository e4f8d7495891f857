// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "backends/support/attribute_codec.hpp"

using namespace viaduct;
using support::decode;
using support::encode;

TEST_CASE("attribute codec: decoding restores what was encoded") {
    for (const auto reliability :
         {Reliability::Unreliable, Reliability::ReliableDelivery, Reliability::ReliableReception})
        for (unsigned bits = 0; bits < 64; ++bits) {
            CAPTURE(static_cast<int>(reliability), bits);
            const EndpointAttributes told{
                .reliability = reliability,
                .receiver_not_ready = (bits & 1) != 0 ? ReceiverNotReady::Break : ReceiverNotReady::Wait,
                .refused_write = (bits & 2) != 0 ? RefusedWrite::Silent : RefusedWrite::Reported,
                .any_reliable = (bits & 32) != 0,
                .max_transfer_bytes = bits * 0x1234567,
                .access = {.remote_write = (bits & 4) != 0,
                           .remote_read = (bits & 8) != 0,
                           .remote_atomic = (bits & 16) != 0}};
            CHECK(decode(encode(told)) == told);
        }
}

TEST_CASE("attribute codec: the encoding is that of the wire format") {
    CHECK(encode({.reliability = Reliability::Unreliable}).flags == 0);
    CHECK(encode({.reliability = Reliability::ReliableDelivery}).flags == 1);
    CHECK(encode({.reliability = Reliability::ReliableReception,
                  .receiver_not_ready = ReceiverNotReady::Break,
                  .access = {.remote_read = true}})
              .flags == (2 | 4 | 32));
    CHECK(encode({.reliability = Reliability::Unreliable,
                  .refused_write = RefusedWrite::Silent,
                  .access = {.remote_write = true, .remote_atomic = true}})
              .flags == (8 | 16 | 64));
    CHECK(encode({.reliability = Reliability::ReliableDelivery, .any_reliable = true}).flags == (1 | 128));
}

TEST_CASE("attribute codec: unknown reliability levels are not decoded") {
    CHECK_FALSE(decode({.flags = 3, .max_transfer_bytes = 0}).has_value());
    CHECK_FALSE(decode({.flags = 255, .max_transfer_bytes = 0}).has_value());
}

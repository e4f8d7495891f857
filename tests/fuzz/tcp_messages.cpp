// SPDX-License-Identifier: BSD-3-Clause
// Bodies of the messages of the tcp backend: decoded in bounds, and as they are encoded, or refused.
#include "backends/software/messages.hpp"
#include "tests/fuzz/target.hpp"

using namespace viaduct;
using namespace viaduct::software;
using namespace viaduct::fuzz;

namespace {

template <class Message>
void check(const Octets& body) {
    Message message;
    if (const Status status = decode(body, message); !status.ok()) {
        expect(status.code() == Code::InvalidParameter || status.code() == Code::Unsupported);
        return;
    }
    // The same content, and length except for a Hello, which later versions may extend.
    const Encoded again = encode(message);
    expect(again.size == body.size() || Message::kind == FrameKind::Hello);
    Message same;
    expect(decode(again.bytes(), same).ok() && same == message);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input input(data, size);
    const auto kind = input.take<std::uint8_t>() % 6;
    const Octets body = copy_of(input.rest());
    if (body.size() > max_message_bytes) return 0;
    constexpr void (*checks[])(const Octets&) = {check<Hello>,    check<Connect>,  check<Accepted>,
                                                 check<Rejected>, check<Conflict>, check<Closing>};
    checks[kind](body);
    return 0;
}

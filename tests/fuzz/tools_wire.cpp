// SPDX-License-Identifier: BSD-3-Clause
// What vi-ping and vi-perf say to each other.
#include "tools/measure/wire.hpp"

#include "tests/fuzz/target.hpp"
#include "tools/measure/machine.hpp"

using namespace viaduct::measure;
using namespace viaduct::fuzz;

namespace {

constexpr wire::Limits limits{.max_transfer_bytes = 1 << 20, .max_window = 256};

template <class Message>
std::optional<Message> heard(const Octets& bytes) {
    std::string reason;
    const auto message = wire::read<Message>(bytes, reason);
    expect(message.has_value() == reason.empty());
    return message;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const Octets bytes = copy_of(std::as_bytes(std::span(data, size)));
    if (const auto hello = heard<wire::PingHello>(bytes); hello && !wire::check(*hello, limits))
        expect(hello->frame_bytes <= limits.max_transfer_bytes && hello->landing.bytes >= hello->frame_bytes);
    if (const auto hello = heard<wire::PerfHello>(bytes); hello && !wire::check(*hello, limits))
        expect(hello->terms.max_size <= hello->landing.bytes && hello->terms.window <= limits.max_window);
    (void)heard<wire::Run>(bytes);
    if (const auto reply = heard<wire::Reply>(bytes)) {
        const Machine machine = Machine::of_text({reply->text, sizeof reply->text - 1});
        for (const std::string& text : {machine.version, machine.host, machine.processor})
            expect(std::ranges::none_of(text, [](unsigned char c) { return c < ' ' || c == 0x7F; }));
    }
    return 0;
}

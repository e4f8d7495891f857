// SPDX-License-Identifier: BSD-3-Clause
// Requests to a listener of the loopback backend: any message, with any descriptors; and names of sockets.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>

#include "tests/crash/hostile.hpp"
#include "tests/fuzz/victim.hpp"

using namespace viaduct;
using namespace viaduct::testing;
using namespace viaduct::fuzz;
namespace wire = viaduct::loopback::wire;

namespace {

struct Victim {
    Node node{loopback_provider()};
    std::shared_ptr<CompletionQueue> queue = node.make_queue(4096);
    std::unique_ptr<Listener> listener = node.listen("fuzz");
    const std::string name = loopback::service_name(node.address("fuzz"), 0);
    Program program{node, queue, 2};
};

/// The four descriptors of a request, and others.
std::array<UniqueFd, 10> make_descriptors() {
    std::array<UniqueFd, 10> made{make_memfd("segment", sizeof(wire::Segment), true),
                                  make_memfd("board", sizeof(wire::DoorbellBoard), true),
                                  UniqueFd(eventfd(0, EFD_CLOEXEC)),
                                  make_memfd("table", sizeof(wire::RegionTable), true),
                                  make_memfd("segment", sizeof(wire::Segment), false),
                                  make_memfd("small", 8, true),
                                  UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC)),
                                  UniqueFd(open("/", O_PATH | O_CLOEXEC)),
                                  UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)),
                                  UniqueFd(open("/proc/self/exe", O_RDONLY | O_CLOEXEC))};
    return made;
}

void request(Victim& victim, Input& input) {
    static auto& descriptors = *new auto(make_descriptors());
    const auto how = input.take<std::uint8_t>();
    loopback::HandshakeMessage message = make_handshake(
        loopback::MessageType::Connect, {.instance_id = 1, .canary_address = 64, .connection = 3, .domain = 1},
        {.reliability = Reliability::ReliableDelivery, .access = {.remote_write = true, .remote_read = true}}, {});
    set_bytes(message.local_host, victim.node.address("fuzz").host.span());
    set_bytes(message.remote_host, victim.node.address("fuzz").host.span());
    if ((how & 1) != 0) descriptors[0] = make_memfd("segment", sizeof(wire::Segment), true);
    std::array<int, loopback::max_descriptors> sent{};
    for (std::size_t i = 0; i < sent.size(); ++i) {
        const std::size_t other = (how & 2) != 0 ? input.take<std::uint8_t>() : i;
        sent[i] = descriptors[other % descriptors.size()].get();
    }
    const std::size_t count = (how & 4) != 0 ? input.take<std::uint8_t>() % (sent.size() + 1) : sent.size();
    const std::size_t bytes = (how & 8) != 0 ? input.take<std::uint16_t>() % sizeof message : sizeof message;
    while (!input.empty()) {
        const std::size_t at = input.take<std::uint16_t>() % sizeof message;
        const auto part = input.take(std::min<std::size_t>(input.take<std::uint8_t>() % 16, sizeof message - at));
        std::ranges::copy(part, reinterpret_cast<std::byte*>(&message) + at);
    }
    const UniqueSocket socket = must(loopback::connect_to(victim.name));
    must(loopback::send_message(socket.get(), &message, std::max<std::size_t>(bytes, 1), std::span(sent).first(count)));
    auto request = victim.listener->next_request();
    if (!request.ok()) return;
    Program& program = victim.program;
    if ((how & 16) != 0) return (void)request.value()->reject({});
    if (!program.port.endpoint->accept(*request.value(), {}).ok()) return;
    program.poll();
    program.port.endpoint->disconnect();
    program.poll();
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    [[maybe_unused]] static const bool prepared = setenv("VIADUCT_LOG", "error", 0) == 0;
    static auto& victim = *new Victim;
    Input input(data, size);
    if (input.take<std::uint8_t>() % 4 != 0) {
        request(victim, input);
    } else if (const auto name = loopback::parse_service_name(input.text())) {
        expect(name->service_text.size() <= input.text().size());
    }
    return 0;
}

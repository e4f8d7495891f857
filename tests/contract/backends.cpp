// SPDX-License-Identifier: BSD-3-Clause
#include "tests/contract/backends.hpp"
#include "core/provider.hpp"

#include <cstdlib>
#include <vector>

#include "tests/support/memory_backend.hpp"
#include "tests/support/processes.hpp"

namespace viaduct::testing {
namespace {

std::shared_ptr<backend::Provider> make_memory() { return std::make_shared<MemoryProvider>(); }

/// Returns a backend of the library, which keeps ownership. Null if it is not part of this build.
std::shared_ptr<backend::Provider> borrow(const char* name) {
    const auto provider = find_provider(name);
    return {provider.ok() ? provider.value() : nullptr, [](backend::Provider*) {}};
}

constexpr BackendUnderTest backends[] = {
    {.name = "memory", .counts = false, .provider = make_memory},
    {.name = "loopback", .several_processes = true, .provider = [] { return borrow("loopback"); }},
    {.name = "tcp",
     .by_default = false,
     .several_processes = true,
     .lives_by_descriptors = true,
     .provider = [] { return borrow("tcp"); }},
    {.name = "verbs", .several_processes = true, .by_device = true, .provider = [] { return borrow("verbs"); }},
};

/// VIADUCT_BACKEND selects one of them. Otherwise the tests run on each backend that has a device, except those that
/// need a network of their own: the suite hosts makes one for tcp, because some tests call hosts that must not be
/// called.
std::vector<const BackendUnderTest*> backends_here() {
    const char* only = std::getenv("VIADUCT_BACKEND");
    std::vector<const BackendUnderTest*> chosen;
    for (const BackendUnderTest& backend : backends) {
        if (only != nullptr ? backend.name != only : !backend.by_default) continue;
        const auto provider = backend.provider();
        if (provider != nullptr && must(provider->device_count()) != 0) chosen.push_back(&backend);
    }
    require(!chosen.empty(), "no such backend has a device");
    return chosen;
}

const BackendUnderTest& next_backend() { return *GENERATE(from_range(backends_here())); }

const BackendUnderTest& next_backend_between_processes() {
    auto chosen = backends_here();
    std::erase_if(chosen, [](const BackendUnderTest* backend) { return !backend->several_processes; });
    // CMakeLists.txt knows the sentence: CTest takes the case as skipped.
    require(!chosen.empty(), "the backend reaches no other process");
    return *GENERATE_COPY(from_range(chosen));
}

/// Returns the number of a device other than the first one that can reach it, or 0 if there is none. An address of IPv4
/// does not reach one of IPv6.
std::uint32_t second_device(const Node& first) {
    const auto& hosts = first.device->attributes().local_hosts;
    for (std::uint32_t index = 1; index < hosts.size(); ++index)
        if (hosts[index].size() == hosts[0].size()) return index;
    return 0;
}

Catch::ScopedMessage note_on(const BackendUnderTest& backend) {
    return Catch::ScopedMessage(Catch::MessageBuilder("INFO", CATCH_INTERNAL_LINEINFO, Catch::ResultWas::Info)
                                << "backend " << std::string(backend.name));
}

}  // namespace

EveryBackend::EveryBackend()
    : backend(next_backend()),
      note_(note_on(backend)),
      provider(backend.provider()),
      near(*provider),
      far(*provider, second_device(near)) {}

bool EveryBackend::is_length(std::size_t received, std::size_t sent) const {
    const DeviceAttributes& device = far.device->attributes();
    const bool is_software = backend.by_device && !device.capabilities.bounds_windows;  // only Soft-RoCE does not
    return received == sent || (is_software && received > sent && (received - sent) % device.native_mtu_bytes == 0);
}

Connection::Connection(Node& client_node, Node& server_node, const PortOptions& options)
    : client(client_node, options), server(server_node, options) {
    join(client, server);
}

EveryBackendBetweenProcesses::EveryBackendBetweenProcesses()
    : backend(next_backend_between_processes()), note_(note_on(backend)) {}

Capabilities EveryBackendBetweenProcesses::able() const {
    Child child([this](Wire& wire) { wire.send(Node(*provider()).able()); });
    const auto able = child.wire().receive<Capabilities>();
    child.finish();
    return able;
}

void exchange(Port& one, Port& other) {
    const Buffer mine(one.node, 8);
    const Buffer theirs(other.node, 8);
    const Sge from = mine.sge();
    const Sge into = theirs.sge();
    mine.store(4711);
    other.post(receive_of(1, into));
    one.post(send_of(2, from));
    CHECK(other.received().code == CompletionCode::Success);
    CHECK(one.sent().code == CompletionCode::Success);
    CHECK(theirs.load() == 4711);
}

}  // namespace viaduct::testing

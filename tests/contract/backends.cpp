// SPDX-License-Identifier: BSD-3-Clause
#include "tests/contract/backends.hpp"
#include "core/provider.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <vector>

#include "tests/support/fake_backend.hpp"
#include "tests/support/processes.hpp"

namespace viaduct::testing {
namespace {

std::shared_ptr<backend::Provider> make_fake() { return std::make_shared<FakeProvider>(); }

/// Returns a backend of the library, which keeps ownership. Null if it is not part of this build.
std::shared_ptr<backend::Provider> borrow(const char* name) {
    const auto provider = find_provider(name);
    return {provider.ok() ? provider.value() : nullptr, [](backend::Provider*) {}};
}

constexpr BackendUnderTest backends[] = {
    {.name = "fake", .several_processes = false, .by_device = false, .provider = make_fake},
    {.name = "loopback", .several_processes = true, .by_device = false, .provider = [] { return borrow("loopback"); }},
    {.name = "verbs", .several_processes = true, .by_device = true, .provider = [] { return borrow("verbs"); }},
};

/// VIADUCT_BACKEND selects one of them. Otherwise the tests run on each backend that has a device.
std::vector<const BackendUnderTest*> backends_that(bool (*wanted)(const BackendUnderTest&)) {
    const char* only = std::getenv("VIADUCT_BACKEND");
    std::vector<const BackendUnderTest*> chosen;
    for (const BackendUnderTest& backend : backends) {
        if (only != nullptr && backend.name != only) continue;
        const auto provider = backend.provider();
        if (wanted(backend) && provider != nullptr && must(provider->device_count()) != 0) chosen.push_back(&backend);
    }
    return chosen;
}

const BackendUnderTest& next_backend() {
    return *GENERATE(from_range(backends_that([](const BackendUnderTest&) { return true; })));
}

const BackendUnderTest& next_backend_between_processes() {
    return *GENERATE(
        from_range(backends_that([](const BackendUnderTest& backend) { return backend.several_processes; })));
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
      far(*provider, must(provider->device_count()) > 1 ? 1 : 0) {}

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

}  // namespace viaduct::testing

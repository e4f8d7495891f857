// SPDX-License-Identifier: BSD-3-Clause
// libfabric is loaded by programs that open a device of the ofi backend, not by others, and installs no signal
// handlers.
#include <link.h>
#include <signal.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "core/provider.hpp"
#include "tests/support/processes.hpp"
#include "tests/support/rig.hpp"

using namespace viaduct;
using namespace viaduct::testing;

namespace {

bool is_libfabric_loaded() {
    return dl_iterate_phdr(
               [](dl_phdr_info* library, std::size_t, void*) {
                   return static_cast<int>(std::strstr(library->dlpi_name, "libfabric") != nullptr);
               },
               nullptr) != 0;
}

using Handlers = std::array<void (*)(int), 65>;

/// Without those for faults, of which ours is one.
Handlers signal_handlers() {
    Handlers handlers{};
    for (std::size_t number = 1; number < handlers.size(); ++number) {
        struct sigaction action {};
        if (number == SIGSEGV || number == SIGBUS) continue;
        if (sigaction(static_cast<int>(number), nullptr, &action) == 0) handlers[number] = action.sa_handler;
    }
    return handlers;
}

backend::Provider& provider_named(const char* name) {
    backend::Provider* provider = must(find_provider(name));
    if (provider == nullptr) throw std::runtime_error(name);
    return *provider;
}

}  // namespace

TEST_CASE("ofi library: programs that use another backend do not load it") {
    Child child([](Wire&) {
        const Handlers before = signal_handlers();
        Node node(provider_named("loopback"));
        Port client(node);
        Port server(node);
        join(client, server);
        require(must(provider_named("ofi").device_count()) != 0, "a network interface");
        require(provider_named("ofi").route_to(node.device->attributes().host).ok(), "a route");
        require(!is_libfabric_loaded(), "libfabric is not loaded");
        require(signal_handlers() == before, "no signal handlers");
    });
    CHECK_NOTHROW(child.finish());
}

TEST_CASE("ofi library: it installs no signal handlers") {
    Child child([](Wire& wire) {
        for (const char* name : {"IPATH_NO_BACKTRACE", "HFI_NO_BACKTRACE"}) unsetenv(name);
        setenv("VIADUCT_OFI_INTERFACES", "lo", 1);
        const Handlers before = signal_handlers();
        std::unique_ptr<Node> node;
        try {
            node = std::make_unique<Node>(provider_named("ofi"));
        } catch (const std::exception&) {
            return wire.send(false);
        }
        require(is_libfabric_loaded(), "libfabric is loaded");
        require(signal_handlers() == before, "no signal handlers");
        wire.send(true);
    });
    REQUIRE_NOTHROW(child.finish());
    if (!child.wire().receive<bool>()) WARN("libfabric cannot be used on this machine");
}

// SPDX-License-Identifier: BSD-3-Clause
// Listeners: which services exist, who may share a service, and which listener gets a request.
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "tests/contract/backends.hpp"

using namespace viaduct;
using namespace viaduct::testing;
using Kind = ConnectionEventKind;

TEST_CASE_METHOD(EveryBackend, "connection: listeners share a service, and each request goes to one of them") {
    const auto first = far.listen("service");
    const auto second = far.listen("service");
    constexpr std::size_t clients = 6;
    std::vector<std::unique_ptr<Port>> ports;
    for (std::size_t i = 0; i < clients; ++i) {
        ports.push_back(std::make_unique<Port>(near));
        must(ports.back()->endpoint->connect(parameters_for(near, far.address("service"))));
    }
    std::size_t answered = 0;
    const Deadline deadline = patience();
    while (answered < clients && !deadline.passed()) {
        for (const auto* listener : {&first, &second}) {
            auto request = (*listener)->next_request();
            if (!request.ok()) continue;
            must((*request)->reject({}));
            ++answered;
        }
    }
    CHECK(answered == clients);
    for (auto& port : ports) CHECK(port->event().kind == Kind::Rejected);
    CHECK(first->next_request().status().code() == Code::WouldBlock);
    CHECK(second->next_request().status().code() == Code::WouldBlock);
}

TEST_CASE_METHOD(EveryBackend, "connection: if a listener is destroyed, the other one continues") {
    auto first = far.listen("service");
    auto second = far.listen("service");
    for (auto* gone : {&first, &second}) {
        const bool last = gone == &second;
        gone->reset();
        Port client(near);
        if (last) {
            CHECK(attempt(client, parameters_for(near, far.address("service"))) == Code::NoListener);
            break;
        }
        must(client.endpoint->connect(parameters_for(near, far.address("service"))));
        must(next_request(*second)->reject({}));
        CHECK(client.event().kind == Kind::Rejected);
    }
}

TEST_CASE_METHOD(EveryBackend, "connection: an exclusive listener requires that there is no other listener") {
    const auto listen = [&](Sharing sharing) { return far.device->listen(far.address("alone"), sharing); };
    {
        const auto listener = must(listen(Sharing::Exclusive));
        CHECK(listen(Sharing::Exclusive).status().code() == Code::Busy);
        // The existing listener keeps working, and other services are not affected.
        CHECK(far.device->listen(far.address("another"), Sharing::Exclusive).ok());
        if (near.device->attributes().host != far.device->attributes().host)
            CHECK(near.device->listen(near.address("alone"), Sharing::Exclusive).ok());
        Port client(near);
        Port server(far);
        must(client.endpoint->connect(parameters_for(near, far.address("alone"))));
        accept_on(server, *listener);
        CHECK(client.event().kind == Kind::Established);
    }
    CHECK(listen(Sharing::Exclusive).ok());
    auto first = must(listen(Sharing::Shared));
    auto second = must(listen(Sharing::Shared));
    CHECK(listen(Sharing::Exclusive).status().code() == Code::Busy);
    first.reset();
    CHECK(listen(Sharing::Exclusive).status().code() == Code::Busy);
    second.reset();
    CHECK(listen(Sharing::Exclusive).ok());
}

TEST_CASE_METHOD(EveryBackend, "connection: services are bytes of every length up to the limit") {
    const auto limit = near.device->attributes().max_service_bytes;
    REQUIRE(limit >= 12);
    std::vector<std::unique_ptr<Listener>> listeners;
    std::vector<std::string> services;
    for (std::size_t length = 0; length <= limit; ++length) {
        services.push_back(std::string(length, '\0'));
        if (length != 0) services.back().back() = '\xff';
    }
    services.insert(services.end(), {std::string(1, '\0'), std::string(2, '\0'), std::string(8, '\xff')});
    for (const std::string& service : services) listeners.push_back(far.listen_at(far.exact_address(service)));
    for (std::size_t i = 0; i < services.size(); ++i) {
        CAPTURE(services[i].size());
        Port client(near);
        auto parameters = parameters_for(near, far.exact_address(services[i]));
        parameters.local = near.exact_address(services[i]);
        must(client.endpoint->connect(parameters));
        const auto request = next_request(*listeners[i]);
        CHECK(request->remote_address() == near.exact_address(services[i]));
        must(request->reject({}));
        const auto event = client.event();
        CHECK(event.kind == Kind::Rejected);
        CHECK(event.reason == Code::Ok);
    }
}

TEST_CASE_METHOD(EveryBackend, "connection: services that differ in one byte are different") {
    const auto limit = near.device->attributes().max_service_bytes;
    const std::string service(limit, 'a');
    const auto listener = far.listen_at(far.exact_address(service));
    for (const std::size_t position : {std::size_t{0}, std::size_t{15}, std::size_t{16}, std::size_t{limit - 1}}) {
        std::string other = service;
        other[position] = 'b';
        Port client(near);
        CHECK(attempt(client, parameters_for(near, far.exact_address(other))) == Code::NoListener);
    }
}

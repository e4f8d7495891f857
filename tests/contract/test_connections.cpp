// SPDX-License-Identifier: BSD-3-Clause
// Client/server connections.
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "core/base/internals.hpp"
#include "tests/contract/backends.hpp"
#include "tests/support/traces.hpp"

using namespace viaduct;
using namespace viaduct::testing;
using namespace std::chrono_literals;
using Kind = ConnectionEventKind;

namespace {

/// Signals every millisecond, whose handler does not restart system calls.
class Alarms {
public:
    Alarms() {
        struct sigaction action {};
        action.sa_handler = [](int) {};
        require(sigaction(SIGALRM, &action, &before_) == 0, "sigaction");
        set(1000);
    }
    ~Alarms() {
        set(0);
        sigaction(SIGALRM, &before_, nullptr);
    }

private:
    static void set(suseconds_t interval) {
        const itimerval timer{.it_interval = {0, interval}, .it_value = {0, interval}};
        setitimer(ITIMER_REAL, &timer, nullptr);
    }

    struct sigaction before_ {};
};

/// The number of ids of the RDMA connection manager that the kernel holds for this process.
std::ptrdiff_t count_ids() {
    const std::unique_ptr<FILE, int (*)(FILE*)> output(popen("rdma -j resource show cm_id 2>/dev/null", "r"), pclose);
    const auto ids = nlohmann::json::parse(output.get(), nullptr, false);  // discarded if there is no rdma(8)
    return ids.is_discarded()
               ? 0
               : std::ranges::count_if(ids, [](const auto& id) { return id.value("pid", 0) == getpid(); });
}

}  // namespace

TEST_CASE_METHOD(EveryBackend, "connection: both sides learn each other's address, attributes and private data") {
    const auto listener = far.listen("service");
    Port client(near, {.reliability = Reliability::ReliableDelivery, .max_transfer_bytes = 5000});
    Port server(far, {.reliability = Reliability::ReliableDelivery,
                      .max_transfer_bytes = 5000,
                      .access = {.remote_write = false, .remote_read = true, .remote_atomic = true}});
    auto parameters = parameters_for(near, far.address("service"));
    parameters.private_data = private_data_of("hello");
    must(client.endpoint->connect(parameters));

    CHECK(readable(listener->fd(), patience()));
    const auto request = next_request(*listener);
    CHECK(request->remote_address() == near.address("client"));
    CHECK(compatible(request->remote_attributes(), client.endpoint->attributes()).ok());
    CHECK(request->remote_attributes().access == client.endpoint->attributes().access);
    CHECK(request->private_data() == private_data_of("hello"));
    accept(server, *request, private_data_of("welcome"));
    CHECK(server.endpoint->state() == EndpointState::Connected);

    const auto event = client.event();
    CHECK(event.kind == Kind::Established);
    CHECK(event.remote_address == far.address("service"));
    CHECK(event.remote.access == server.endpoint->attributes().access);
    CHECK(event.remote.max_transfer_bytes == 5000);
    CHECK(event.remote.reliability == Reliability::ReliableDelivery);
    CHECK(event.private_data == private_data_of("welcome"));

    CHECK(client.quiet());
    CHECK(server.quiet());
}

TEST_CASE_METHOD(EveryBackend, "connection: each side learns all attributes of the other") {
    for (const bool first : {true, false}) {
        const auto listener = far.listen("attributes");
        Port client(near, {.reliability = Reliability::ReliableDelivery,
                           .receiver_not_ready = first ? ReceiverNotReady::Break : ReceiverNotReady::Wait,
                           .refused_write = first ? RefusedWrite::Reported : RefusedWrite::Silent,
                           .any_reliable = first,
                           .max_transfer_bytes = 4096,
                           .access = {.remote_write = first, .remote_read = !first, .remote_atomic = first}});
        Port server(far, {.reliability = Reliability::ReliableDelivery,
                          .receiver_not_ready = first ? ReceiverNotReady::Wait : ReceiverNotReady::Break,
                          .refused_write = first ? RefusedWrite::Silent : RefusedWrite::Reported,
                          .any_reliable = !first,
                          .max_transfer_bytes = 4096,
                          .access = {.remote_write = !first, .remote_read = first, .remote_atomic = !first}});
        must(client.endpoint->connect(parameters_for(near, far.address("attributes"))));
        const auto request = next_request(*listener);
        CHECK(request->remote_attributes() == client.endpoint->attributes());
        accept(server, *request);
        CHECK(client.event().remote == server.endpoint->attributes());
    }
}

TEST_CASE_METHOD(EveryBackend, "connection: private data may be as long as the device says") {
    const auto limit = near.device->attributes().max_private_data_bytes;
    const PrivateData data = private_data_of(std::string(limit, 'x'));
    const Address service = far.exact_address("pd");
    const auto listener = far.listen_at(service);
    Port client(near);
    auto parameters = parameters_for(near, service);
    parameters.private_data = data;
    parameters.framing = Framing::Bare;
    must(client.endpoint->connect(parameters));
    const auto request = next_request(*listener);
    CHECK(request->private_data() == data);
    must(request->reject(data));
    const auto event = client.event();
    CHECK(event.kind == Kind::Rejected);
    // Answers to bare requests may be padded with zeros.
    const auto answer = event.private_data.span();
    REQUIRE(answer.size() >= limit);
    CHECK(std::ranges::equal(answer.first(limit), data.span()));
    CHECK(std::ranges::all_of(answer.subspan(limit), [](std::uint8_t byte) { return byte == 0; }));
}

TEST_CASE_METHOD(EveryBackend, "connection: too long private data is refused, and the endpoint stays idle") {
    const auto& attributes = near.device->attributes();
    const auto listener = far.listen("service");
    Port client(near);
    auto parameters = parameters_for(near, far.address("service"));
    parameters.local = near.exact_address(std::string(attributes.max_service_bytes, 's'));
    parameters.private_data = private_data_of(std::string(attributes.max_private_data_bytes, 'x'));
    const Status status = client.endpoint->connect(parameters);
    if (!status.ok()) {
        CHECK(status.code() == Code::InvalidParameter);
        CHECK(client.endpoint->state() == EndpointState::Unconnected);
        CHECK(client.quiet());
        parameters.private_data = {};
        must(client.endpoint->connect(parameters));
    }
    const auto request = next_request(*listener);
    CHECK(request->remote_address() == parameters.local);
    CHECK(request->private_data() == parameters.private_data);
    must(request->reject({}));
    CHECK(client.event().kind == Kind::Rejected);
}

TEST_CASE_METHOD(EveryBackend, "connection: a client is not rejected without the private data, if they are too long") {
    for (const Framing framing : {Framing::Full, Framing::Bare}) {
        const Address service = far.exact_address("pr");
        const auto listener = far.listen_at(service);
        Port client(near);
        auto parameters = parameters_for(near, service);
        parameters.framing = framing;
        must(client.endpoint->connect(parameters));
        const auto request = next_request(*listener);
        PrivateData data = private_data_of(std::string(PrivateData::capacity, 'x'));
        if (const Status status = request->reject(data); !status.ok()) {
            CHECK(status.code() == Code::InvalidParameter);
            CHECK(client.quiet());
            data = private_data_of("no");
            must(request->reject(data));
        }
        const auto event = client.event();
        CHECK(event.kind == Kind::Rejected);
        CHECK(event.reason == Code::Ok);
        const auto answer = event.private_data.span();
        REQUIRE(answer.size() >= data.size());
        CHECK(std::ranges::equal(answer.first(data.size()), data.span()));
    }
}

TEST_CASE_METHOD(EveryBackend, "connection: a device knows the addresses of the other devices by number", "[no-peer]") {
    const auto& hosts = near.device->attributes().local_hosts;
    REQUIRE(hosts.size() == must(provider->device_count()));
    CHECK(hosts.front() == near.device->attributes().host);
    CHECK(std::ranges::count(hosts, far.device->attributes().host) == 1);
}

TEST_CASE_METHOD(EveryBackend, "connection: the device on the route to a host reaches it") {
    const std::uint32_t number = must(provider->route_to(far.device->attributes().host));
    REQUIRE(number < must(provider->device_count()));
    Node on_the_route(*provider, number);
    const auto listener = far.listen("service");
    Port client(on_the_route);
    must(client.endpoint->connect(parameters_for(on_the_route, far.address("service"))));
    must(next_request(*listener)->reject({}));
    CHECK(client.event().kind == Kind::Rejected);
}

TEST_CASE_METHOD(EveryBackend, "connection: there is no route to a host that no device has", "[no-peer]") {
    const std::array<std::uint8_t, 4> documentation{203, 0, 113, 1};
    CHECK(provider->route_to(HostAddress(documentation)).status().code() == Code::Unreachable);
    CHECK(provider->route_to({}).status().code() == Code::Unreachable);
}

TEST_CASE_METHOD(EveryBackend, "connection: signals do not keep an endpoint from connecting") {
    Port client(near);
    Port server(far);
    for (int round = 0; round < (backend.by_device ? 50 : 200); ++round) {
        const auto listener = far.listen("service");
        {
            const Alarms alarms;
            must(client.endpoint->connect(parameters_for(near, far.address("service"))));
        }
        accept_on(server, *listener);
        REQUIRE(client.event().kind == Kind::Established);
        client.endpoint->disconnect();
        REQUIRE(server.event().kind == Kind::Disconnected);
        server.endpoint->disconnect();
    }
}

TEST_CASE_METHOD(EveryBackend, "connection: a client may connect again from the same port at once") {
    const Address service = far.exact_address("lp");
    const auto listener = far.listen_at(service);
    Port client(near);
    Port server(far);
    auto parameters = parameters_for(near, service);
    parameters.framing = Framing::Bare;
    parameters.local.service = service_of(static_cast<std::uint16_t>(1024 + getpid() % 15000));
    for (int round = 0; round < 3; ++round) {
        must(client.endpoint->connect(parameters));
        if (round != 0) {
            CHECK(server.event().kind == Kind::Disconnected);
            server.endpoint->disconnect();
        }
        accept_on(server, *listener);
        CHECK(client.event().kind == Kind::Established);
        client.endpoint->disconnect();
    }
}

TEST_CASE_METHOD(EveryBackend, "connection: nobody listens") {
    Port client(near);
    CHECK(attempt(client, parameters_for(near, far.address("nobody"))) == Code::NoListener);
    CHECK(client.endpoint->state() == EndpointState::Unconnected);
    { const auto listener = far.listen("nobody"); }
    CHECK(attempt(client, parameters_for(near, far.address("nobody"))) == Code::NoListener);
    CHECK(client.quiet());
}

TEST_CASE_METHOD(EveryBackend, "connection: with a grace period, a client reaches a later listener") {
    Port client(near);
    Port server(far);
    auto parameters = parameters_for(near, far.address("late"));
    parameters.grace = 10s;
    must(client.endpoint->connect(parameters));
    CHECK(client.endpoint->state() == EndpointState::ActivePending);
    CHECK(client.quiet());
    const auto listener = far.listen("late");
    accept_on(server, *listener);
    CHECK(client.event().kind == Kind::Established);
}

TEST_CASE_METHOD(EveryBackend, "connection: a listener is found soon, however late it comes") {
    bool soon = false;
    for (int round = 0; round < 8 && !soon; ++round) {  // on a busy machine, none of the first may be soon
        Port client(near);
        Port server(far);
        auto parameters = parameters_for(near, far.address("late"));
        parameters.grace = 10s;
        must(client.endpoint->connect(parameters));
        const auto late = Deadline::after(520ms);  // after nine attempts, if the pause were always doubled
        bool quiet = true;
        while (!late.passed()) quiet = client.quiet() && quiet;
        CHECK(quiet);
        const auto listener = far.listen("late");
        const auto start = std::chrono::steady_clock::now();
        accept_on(server, *listener);
        CHECK(client.event().kind == Kind::Established);
        soon = std::chrono::steady_clock::now() - start < 300ms;
    }
    CHECK(soon);
}

TEST_CASE_METHOD(EveryBackend, "connection: in the grace period, a listener may close and return") {
    if (backend.name != "loopback") return;  // elsewhere a listener that closes refuses the request
    for (int round = 0; round < 20; ++round) {
        Port client(near);
        Port server(far);
        auto parameters = parameters_for(near, far.address("restarted"));
        parameters.grace = 10s;
        auto first = far.listen("restarted");
        // The request may be on its way, or the client may spin for the answer.
        std::thread close([&] {
            readable(first->fd(), Deadline::after(10s));
            first.reset();
        });
        must(client.endpoint->connect(parameters));
        close.join();
        const auto second = far.listen("restarted");
        accept_on(server, *second);
        CHECK(client.event().kind == Kind::Established);
    }
}

TEST_CASE_METHOD(EveryBackend, "connection: without a listener, connecting fails after the grace period") {
    Port client(near);
    auto parameters = parameters_for(near, far.address("nobody"));
    parameters.grace = 30ms;
    const auto start = std::chrono::steady_clock::now();
    CHECK(attempt(client, parameters) == Code::NoListener);
    CHECK(std::chrono::steady_clock::now() - start >= parameters.grace);
    CHECK(client.endpoint->state() == EndpointState::Unconnected);
    CHECK(client.quiet());
}

TEST_CASE_METHOD(EveryBackend, "connection: the deadline ends the grace period") {
    Port client(near);
    auto parameters = parameters_for(near, far.address("nobody"));
    parameters.grace = 1h;
    parameters.deadline = Deadline::after(100ms);
    must(client.endpoint->connect(parameters));
    const auto event = client.event();
    CHECK((event.reason == Code::NoListener || (backend.by_device && event.kind == Kind::TimedOut)));
    CHECK(client.endpoint->state() == EndpointState::Unconnected);
    CHECK(client.quiet());
}

TEST_CASE_METHOD(EveryBackend, "connection: a client that gives up in the grace period gets no event") {
    Port client(near);
    auto parameters = parameters_for(near, far.address("late"));
    parameters.grace = 1h;
    must(client.endpoint->connect(parameters));
    client.endpoint->disconnect();
    CHECK(client.endpoint->state() == EndpointState::Unconnected);
    const auto listener = far.listen("late");
    CHECK(client.quiet());
    // On RDMA devices the request may still be in transit.
    CHECK((backend.by_device || listener->next_request().status().code() == Code::WouldBlock));
}

TEST_CASE_METHOD(EveryBackend, "connection: a host that no device has is unreachable", "[no-peer]") {
    Port client(near);
    const std::array<std::uint8_t, 4> documentation{203, 0, 113, 1};
    Address address = far.address("service");
    address.host = Bytes<Address::max_host>(documentation);
    CHECK(attempt(client, parameters_for(near, address)) == Code::Unreachable);
    CHECK(client.endpoint->state() == EndpointState::Disconnected);
    CHECK(client.quiet());
}

TEST_CASE_METHOD(EveryBackend, "connection: a service of one device is not one of another") {
    if (near.device->attributes().host == far.device->attributes().host) return;
    const auto listener = near.listen("service");
    Port client(near);
    CHECK(attempt(client, parameters_for(near, far.address("service"))) == Code::NoListener);
}

TEST_CASE_METHOD(EveryBackend, "connection: a rejected client is idle, keeps its receives and may retry") {
    const auto listener = far.listen("service");
    Port client(near);
    const Buffer buffer(near, 8);
    const Sge into = buffer.sge();
    client.post(receive_of(1, into));
    must(client.endpoint->connect(parameters_for(near, far.address("service"))));
    must(next_request(*listener)->reject(private_data_of("no")));
    const auto event = client.event();
    CHECK(event.kind == Kind::Rejected);
    CHECK(event.reason == Code::Ok);
    CHECK(event.private_data == private_data_of("no"));
    CHECK(client.quiet());
    CHECK(client.endpoint->outstanding(QueueKind::Receive) == 1);

    Port server(far);
    must(client.endpoint->connect(parameters_for(near, far.address("service"))));
    accept_on(server, *listener);
    CHECK(client.event().kind == Kind::Established);
    const Buffer source(far, 8);
    const Sge from = source.sge();
    source.store(99);
    server.post(send_of(2, from));
    CHECK(client.received().context == 1);
    CHECK(buffer.load() == 99);
}

TEST_CASE_METHOD(EveryBackend, "connection: the accepting side gets its event before the peer can act") {
    Connection first(near, far);
    const auto listener = far.listen("service");
    Port client(near);
    Port server(far);
    must(client.endpoint->connect(parameters_for(near, far.address("service"))));
    const auto request = next_request(*listener);
    auto accepted = std::async(std::launch::async, [&] { return server.endpoint->accept(*request, {}); });
    CHECK(client.event().kind == Kind::Established);
    first.client.endpoint->disconnect();
    CHECK(first.server.event().kind == Kind::Disconnected);
    // RDMA devices deliver messages of different connections in any order.
    const auto event = server.events.wait(backend.by_device ? patience() : Deadline::now());
    CHECK((event && event->kind == Kind::Established));
    must(accepted.get());
}

TEST_CASE_METHOD(EveryBackend, "connection: a silent server makes the client time out") {
    const auto listener = far.listen("service");
    Port client(near);
    Port server(far);
    auto parameters = parameters_for(near, far.address("service"));
    parameters.deadline = Deadline::after(500ms);  // long enough to take the request
    must(client.endpoint->connect(parameters));
    const auto request = next_request(*listener);
    CHECK(client.event().kind == Kind::TimedOut);
    CHECK(client.endpoint->state() == EndpointState::Unconnected);
    CHECK(server.endpoint->accept(*request, {}).code() == Code::TimedOut);
    CHECK(request->reject({}).ok());
    CHECK(server.endpoint->state() == EndpointState::Unconnected);
    CHECK(client.quiet());
    CHECK(server.quiet());
}

TEST_CASE_METHOD(EveryBackend, "connection: a request that is dropped unanswered times out at the client") {
    const auto listener = far.listen("service");
    Port client(near);
    auto parameters = parameters_for(near, far.address("service"));
    parameters.deadline = Deadline::after(500ms);
    must(client.endpoint->connect(parameters));
    next_request(*listener).reset();
    CHECK(client.event().kind == Kind::TimedOut);
    CHECK(client.quiet());
}

TEST_CASE_METHOD(EveryBackend, "connection: dropped requests leave nothing behind when their clients have given up") {
    const auto listener = far.listen("service");
    Port client(near);
    const auto drop = [&](int count) {
        for (int i = 0; i < count; ++i) {
            must(client.endpoint->connect(parameters_for(near, far.address("service"))));
            next_request(*listener).reset();
            client.endpoint->disconnect();
        }
    };
    drop(20);
    const auto before = find_traces();
    const auto ids = count_ids();
    drop(200);
    CHECK(leaked_since(before).empty());
    CHECK(count_ids() < ids + 40);
}

TEST_CASE_METHOD(EveryBackend, "connection: requests of clients that have given up keep nobody out") {
    const auto listener = far.listen("service");
    Port impatient(near);
    for (int i = 0; i < 1100; ++i) {
        must(impatient.endpoint->connect(parameters_for(near, far.address("service"))));
        impatient.endpoint->disconnect();
    }
    Port client(near);
    Port server(far);
    auto last = parameters_for(near, far.address("service"));
    last.private_data = private_data_of("the patient one");
    last.grace = std::chrono::seconds(5);  // the queue of a socket is full until the server looks at it
    must(client.endpoint->connect(last));
    auto request = next_request(*listener);
    while (request->private_data().empty()) request = next_request(*listener);  // that others have gone is not known
    accept(server, *request);
    CHECK(client.event().kind == Kind::Established);
}

TEST_CASE_METHOD(EveryBackend, "connection: unanswered requests of a destroyed listener end as NoListener") {
    auto listener = far.listen("service");
    Port client(near);
    must(client.endpoint->connect(parameters_for(near, far.address("service"))));
    listener.reset();
    const auto event = client.event();
    CHECK(event.kind == Kind::Rejected);
    CHECK(event.reason == Code::NoListener);
    CHECK(client.endpoint->state() == EndpointState::Unconnected);
}

TEST_CASE_METHOD(EveryBackend, "connection: a refused request ends as NoListener") {
    const auto listener = far.listen("service");
    Port client(near);
    must(client.endpoint->connect(parameters_for(near, far.address("service"))));
    must(Internals::refuse(*next_request(*listener)));
    const auto event = client.event();
    CHECK(event.kind == Kind::Rejected);
    CHECK(event.reason == Code::NoListener);
    CHECK(client.endpoint->state() == EndpointState::Unconnected);
    CHECK(client.quiet());
}

TEST_CASE_METHOD(EveryBackend, "connection: a conflict of the attributes is told to a client of either framing") {
    const Address service = far.exact_address("cf");
    const auto listener = far.listen_at(service);
    const EndpointAttributes unreliable{.reliability = Reliability::Unreliable};
    for (const Framing framing : {Framing::Full, Framing::Bare}) {
        Port client(near, {.any_reliable = true});
        auto parameters = parameters_for(near, service);
        parameters.framing = framing;
        must(client.endpoint->connect(parameters));
        const auto request = next_request(*listener);
        CHECK(request->remote_attributes().any_reliable);
        must(request->conflict(unreliable));
        const auto event = client.event();
        CHECK(event.kind == Kind::Conflict);
        CHECK(event.reason == Code::InvalidReliability);
        CHECK(event.remote == unreliable);
        CHECK(client.endpoint->state() == EndpointState::Unconnected);
        CHECK(client.quiet());

        Port server(far);
        CHECK(server.endpoint->accept(*request, {}).code() == Code::TimedOut);
        CHECK(request->reject({}).ok());
        must(client.endpoint->connect(parameters));
        accept_on(server, *listener);
        CHECK(client.event().kind == Kind::Established);
    }
}

TEST_CASE_METHOD(EveryBackend, "connection: a client that sees no conflict was rejected") {
    const auto listener = far.listen("service");
    Port client(near);
    must(client.endpoint->connect(parameters_for(near, far.address("service"))));
    must(next_request(*listener)->conflict(client.endpoint->attributes()));
    CHECK(client.event().kind == Kind::Rejected);
}

TEST_CASE_METHOD(EveryBackend, "connection: an endpoint that joins any reliable level joins both") {
    for (const Reliability level : {Reliability::ReliableDelivery, Reliability::ReliableReception}) {
        const PortOptions any{.reliability = Reliability::ReliableDelivery, .any_reliable = true};
        const PortOptions vi{
            .reliability = level, .receiver_not_ready = ReceiverNotReady::Break, .refused_write = RefusedWrite::Silent};
        for (const bool asks : {true, false}) {
            const auto listener = far.listen("service");
            Port client(near, asks ? any : vi);
            Port server(far, asks ? vi : any);
            must(client.endpoint->connect(parameters_for(near, far.address("service"))));
            const auto request = next_request(*listener);
            CHECK(compatible(server.endpoint->attributes(), request->remote_attributes()).ok());
            accept(server, *request);
            const auto event = client.event();
            CHECK(event.kind == Kind::Established);
            CHECK(compatible(client.endpoint->attributes(), event.remote).ok());
            exchange(client, server);
            exchange(server, client);
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "connection: a client learns which service answered") {
    const auto listener = far.listen("service");
    const Bytes<Address::max_service> other = far.address("other").service;
    Port client(near);
    Port server(far);
    must(client.endpoint->connect(parameters_for(near, far.address("service"))));
    const auto request = next_request(*listener);
    Internals::redirect(*request, other);
    accept(server, *request, {});
    const auto event = client.event();
    CHECK(event.kind == Kind::Established);
    CHECK(event.remote_address.service == (backend.by_device ? far.address("service").service : other));
}

TEST_CASE_METHOD(EveryBackend, "connection: a client that gives up ends its request without an event") {
    const auto listener = far.listen("service");
    Port client(near);
    Port server(far);
    must(client.endpoint->connect(parameters_for(near, far.address("service"))));
    const auto request = next_request(*listener);
    client.endpoint->disconnect();
    CHECK(client.endpoint->state() == EndpointState::Unconnected);
    CHECK(server.endpoint->accept(*request, {}).code() == Code::TimedOut);
    CHECK(client.quiet());
    CHECK(server.quiet());
}

TEST_CASE_METHOD(EveryBackend, "connection: a client that gives up while it is accepted has disconnected") {
    for (int round = 0; round < (backend.by_device ? 2 : 200); ++round) {
        Port client(near);
        Port server(far);
        const auto listener = far.listen("undecided");
        must(client.endpoint->connect(parameters_for(near, far.address("undecided"))));
        const auto request = next_request(*listener);
        must(server.endpoint->accept(*request, {}));
        client.endpoint->disconnect();
        REQUIRE(server.event().kind == ConnectionEventKind::Established);
        REQUIRE(server.event().kind == ConnectionEventKind::Disconnected);
    }
}

TEST_CASE_METHOD(EveryBackend, "connection: of threads that answer a request, one answers it") {
    for (int round = 0; round < (backend.by_device ? 2 : 200); ++round) {
        Port client(near);
        std::array<Port, 2> servers{Port(far), Port(far)};
        const auto listener = far.listen("decided twice");
        must(client.endpoint->connect(parameters_for(near, far.address("decided twice"))));
        const auto request = next_request(*listener);
        std::array<Status, 2> accepted;
        Status rejected;
        std::thread other([&] { accepted[0] = servers[0].endpoint->accept(*request, {}); });
        std::thread refuser([&] { rejected = request->reject({}); });
        accepted[1] = servers[1].endpoint->accept(*request, {});
        other.join();
        refuser.join();
        CHECK(rejected.ok());
        const bool connects = accepted[0].ok() || accepted[1].ok();
        CHECK(!(accepted[0].ok() && accepted[1].ok()));
        for (const Status& status : accepted) CHECK((status.ok() || status.code() == Code::TimedOut));
        REQUIRE(client.event().kind == (connects ? Kind::Established : Kind::Rejected));
    }
}

TEST_CASE_METHOD(EveryBackend, "connection: if the endpoint is not idle, accept may be retried with another") {
    Connection busy(near, far);
    const auto listener = far.listen("service");
    Port client(near);
    Port server(far);
    must(client.endpoint->connect(parameters_for(near, far.address("service"))));
    const auto request = next_request(*listener);
    CHECK(busy.server.endpoint->accept(*request, {}).code() == Code::InvalidState);
    accept(server, *request);
    CHECK(client.event().kind == Kind::Established);
    CHECK(busy.client.quiet());
}

TEST_CASE_METHOD(EveryBackend, "connection: an endpoint that is not idle cannot connect") {
    const auto listener = far.listen("service");
    Port client(near);
    const auto parameters = parameters_for(near, far.address("service"));
    must(client.endpoint->connect(parameters));
    CHECK(client.endpoint->connect(parameters).code() == Code::InvalidState);
    Connection connection(near, far);
    CHECK(connection.client.endpoint->connect(parameters).code() == Code::InvalidState);
    connection.server.endpoint->disconnect();
    CHECK(connection.client.event().kind == Kind::Disconnected);
    CHECK(connection.client.endpoint->connect(parameters).code() == Code::InvalidState);
    connection.client.endpoint->disconnect();
    CHECK(connection.client.endpoint->connect(parameters).ok());
}

TEST_CASE_METHOD(EveryBackend, "connection: a disconnect flushes both sides, and only the peer gets an event") {
    Connection connection(near, far);
    const Buffer mine(near, 8);
    const Buffer theirs(far, 8);
    const Sge here = mine.sge();
    const Sge there = theirs.sge();
    connection.server.post(receive_of(9, there));
    for (std::uint64_t i = 1; i <= 3; ++i) connection.client.post(receive_of(i, here));
    connection.client.post(send_of(9, here));
    CHECK(connection.client.sent().code == CompletionCode::Success);
    CHECK(connection.server.received().code == CompletionCode::Success);
    for (std::uint64_t i = 1; i <= 3; ++i) connection.client.post(send_of(i + 20, here));  // they wait for receives
    connection.client.endpoint->disconnect();
    for (std::uint64_t i = 1; i <= 3; ++i) {
        const Completion sent = connection.client.sent();
        CHECK(sent.code == CompletionCode::Flushed);
        CHECK(sent.context == i + 20);
        CHECK(sent.bytes == 0);
        const Completion received = connection.client.received();
        CHECK(received.code == CompletionCode::Flushed);
        CHECK(received.context == i);
    }
    CHECK(connection.server.event().kind == Kind::Disconnected);
    CHECK(connection.server.quiet());
    CHECK(connection.client.quiet());
}

TEST_CASE_METHOD(EveryBackend, "connection: after the peer has gone, work is flushed until the endpoint is reset") {
    Connection connection(near, far);
    auto& server = connection.server;
    const Buffer theirs(far, 8);
    const Sge there = theirs.sge();
    server.post(receive_of(1, there));
    connection.client.endpoint->disconnect();
    CHECK(server.event().kind == Kind::Disconnected);
    CHECK(server.received().code == CompletionCode::Flushed);
    server.post(receive_of(2, there));
    CHECK(server.received().code == CompletionCode::Flushed);
    server.post(send_of(3, there));
    CHECK(server.sent().code == CompletionCode::Flushed);
    server.endpoint->disconnect();
    server.post(receive_of(4, there));
    CHECK(server.quiet());
    CHECK(server.endpoint->outstanding(QueueKind::Receive) == 1);
}

TEST_CASE_METHOD(EveryBackend, "connection: messages sent before a disconnect arrive") {
    Connection connection(near, far);
    const Buffer mine(near, 50'000);
    const Buffer theirs(far, 50'000);
    const Sge from = mine.sge();
    const Sge into = theirs.sge();
    fill(mine.bytes(), 1);
    connection.server.post(receive_of(1, into));
    connection.client.post(send_of(2, from));
    CHECK(connection.client.sent().code == CompletionCode::Success);
    connection.client.endpoint->disconnect();
    CHECK(connection.server.event().kind == Kind::Disconnected);
    const Completion received = connection.server.received();
    CHECK(received.code == CompletionCode::Success);
    CHECK(received.bytes == 50'000);
    CHECK(matches(theirs.bytes(), 1));
}

TEST_CASE_METHOD(EveryBackend, "connection: a disconnect of an idle endpoint flushes its receives", "[no-peer]") {
    Port port(near);
    const Buffer mine(near, 8);
    const Sge piece = mine.sge();
    port.post(receive_of(1, piece));
    CHECK(port.quiet());
    port.endpoint->disconnect();
    CHECK(port.received().code == CompletionCode::Flushed);
    CHECK(port.quiet());
}

TEST_CASE_METHOD(EveryBackend, "connection: sends on an endpoint without one are flushed") {
    Port port(near);
    const Buffer mine(near, 8);
    const Sge piece = mine.sge();
    port.post(send_of(1, piece));
    CHECK(port.sent().code == CompletionCode::Flushed);
    const auto listener = far.listen("service");
    must(port.endpoint->connect(parameters_for(near, far.address("service"))));
    port.post(send_of(2, piece));
    CHECK(port.sent().code == CompletionCode::Flushed);
    port.post(receive_of(3, piece));
    CHECK(port.quiet());
}

TEST_CASE_METHOD(EveryBackend, "connection: both ends may disconnect at once") {
    for (int round = 0; round < 50; ++round) {
        Connection connection(near, far);
        std::thread other([&] { connection.server.endpoint->disconnect(); });
        connection.client.endpoint->disconnect();
        other.join();
        CHECK(connection.client.endpoint->state() != EndpointState::Connected);
        CHECK(connection.server.endpoint->state() != EndpointState::Connected);
    }
}

TEST_CASE_METHOD(EveryBackend, "connection: an endpoint may be connected many times over") {
    Port client(near);
    Port server(far);
    const Buffer mine(near, 8);
    const Buffer theirs(far, 8);
    const Sge from = mine.sge();
    const Sge into = theirs.sge();
    for (std::uint64_t round = 1; round <= 100; ++round) {
        server.post(receive_of(round, into));
        join(client, server);
        mine.store(round);
        client.post(send_of(round, from));
        REQUIRE(client.sent().context == round);
        REQUIRE(server.received().context == round);
        REQUIRE(theirs.load() == round);
        client.endpoint->disconnect();
        REQUIRE(server.event().kind == Kind::Disconnected);
        server.endpoint->disconnect();
    }
    CHECK(client.quiet());
    CHECK(server.quiet());
}

TEST_CASE_METHOD(EveryBackend, "connection: setup and close leave nothing behind") {
    const auto round = [&] {
        Connection connection(near, far);
        const Buffer mine(near, 5000);
        const Buffer theirs(far, 5000, Memory::Shareable);
        const Sge from = mine.sge();
        connection.client.post(write_of(1, from, theirs.remote()));
        CHECK(connection.client.sent().code == CompletionCode::Success);
    };
    round();
    const auto before = find_traces();
    for (int i = 0; i < 100; ++i) round();
    CHECK(leaked_since(before).empty());
}

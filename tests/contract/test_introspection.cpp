// SPDX-License-Identifier: BSD-3-Clause
// What processes tell about themselves, and to whom.
#include "viaduct/introspection.hpp"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "core/base/abstract_socket.hpp"
#include "core/base/unique_fd.hpp"
#include "tests/contract/two_processes.hpp"

using namespace viaduct;
using namespace viaduct::testing;
using Json = nlohmann::json;

namespace {

bool is_found(pid_t pid) {
    return std::ranges::any_of(find_processes(), [pid](const ProcessInfo& process) { return process.pid == pid; });
}

Json ask(pid_t pid) { return Json::parse(must(ask_process(pid, std::chrono::minutes(1)))); }

UniqueFd connect_to(const std::string& name) {
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const AbstractAddress address(name);
    if (!socket || connect(socket.get(), address.get(), address.size()) != 0) return {};
    return socket;
}

std::string socket_of(pid_t pid) { return "viaduct/info/" + std::to_string(geteuid()) + '/' + std::to_string(pid); }

std::vector<std::unique_ptr<Port>> ports_of(Node& node, std::size_t count) {
    std::vector<std::unique_ptr<Port>> ports;
    const auto queue = node.make_queue();
    for (std::size_t i = 0; i < count; ++i)
        ports.push_back(std::make_unique<Port>(node, PortOptions{.queue = queue, .send_depth = 4, .receive_depth = 4}));
    return ports;
}

}  // namespace

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "introspection: a process tells what it has open and what it has done") {
    const auto server = [&](Wire& wire) {
        End end(*provider());
        Buffer target(end.node, 64);
        for (std::uint64_t i = 0; i < 3; ++i) end.port.post(receive_of(i, target.sge()));
        end.serve(wire);
        (void)end.port.received();
        const auto listener = end.node.listen("another one");
        wire.notify();
        wire.await();
    };
    const auto client = [&](Wire& wire) {
        End end(*provider());
        end.call(wire);
        Buffer source(end.node, 64);
        end.port.post(send_of(1, source.sge(0, 48)));
        (void)end.port.sent();
        wire.await();
        if (own_host() == 0) {
            const pid_t other = getppid() == 0 ? 0 : end.port.endpoint->peer_process();
            std::vector<pid_t> pids;
            for (const ProcessInfo& process : find_processes()) pids.push_back(process.pid);
            require(std::ranges::count(pids, getpid()) == 1, "this process is found once");
            if (other != 0) {
                const Json peer = ask(other);
                require(peer.at("pid") == other && peer.at("uid") == geteuid(), "who the peer is");
                require(peer.at("listeners").size() == 1, "its listener");
                const Json endpoint = peer.at("endpoints").at(0);
                require(endpoint.at("state") == "Connected", "the state of its endpoint");
                require(endpoint.at("peer_process") == getpid(), "its peer");
                require(endpoint.at("receive_queue").at("outstanding") == 2, "its receives");
                const Json traffic = endpoint.at("counters").at("traffic").at(0);
                require(traffic.at("operation") == "receive" && traffic.at("bytes") == 48, "what it has received");
            }
        }
        const Json own = Json::parse(describe_this_process());
        require(own.at("devices").size() == 1 && own.at("endpoint_count") == 1, "what this process has");
        require(own.at("devices").at(0).at("api") == "core", "the API");
        require(own.at("backends") == Json::array({std::string(backend.name)}), "the backend");
        const Json endpoint = own.at("endpoints").at(0);
        const std::string_view name = end.node.device->attributes().name;
        require(endpoint.at("device") == name && endpoint.at("remote").contains("host"), "the endpoint");
        const Json traffic = endpoint.at("counters").at("traffic").at(0);
        require(traffic.at("operation") == "send" && traffic.at("messages") == 1, "what was sent");
        wire.notify();
    };
    CHECK_NOTHROW(run_processes(server, client));
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "introspection: only processes with an open device are found") {
    const auto script = [&](Wire&) {
        require(!is_found(getpid()), "without a device");
        require(ask_process(getpid()).status().code() == Code::NoListener, "an answer without a device");
        auto shared = provider();
        {
            Node first(*shared);
            require(is_found(getpid()), "with a device");
            auto second = std::make_unique<Node>(*shared);
            require(ask(getpid()).at("devices").size() == 2, "both devices");
            second.reset();
            require(ask(getpid()).at("devices").size() == 1, "the first device");
        }
        require(!is_found(getpid()), "after the devices were closed");
        auto first = std::make_unique<Node>(*shared);
        Node second(*shared);
        first.reset();
        require(ask(getpid()).at("devices").size() == 1, "the second device answers after the first one is closed");
    };
    CHECK_NOTHROW(run_processes(script, [](Wire&) {}));
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "introspection: other users are refused") {
    if (geteuid() != 0 || own_host() != 0) return;  // requires the privilege to change the user
    const auto owner = [&](Wire& wire) {
        wire.send(getpid());
        wire.await();
        Node node(*provider());
        wire.notify();
        wire.await();
        require(ask(getpid()).at("devices").size() == 1, "an answer to this user");
    };
    const auto stranger = [](Wire& wire) {
        const auto pid = wire.receive<pid_t>();
        const AbstractAddress name(socket_of(pid));
        const ProcessInfo process{.pid = pid, .name = socket_of(pid) + ".1"};
        become_nobody();
        const UniqueFd taken(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        require(bind(taken.get(), name.get(), name.size()) == 0 && listen(taken.get(), 8) == 0, "the name");
        wire.notify();
        wire.await();
        require(find_processes().empty(), "processes of this user");
        require(ask_process(process).status().code() == Code::PermissionDenied, "a question to another user");
        const UniqueFd socket = connect_to(process.name);
        char byte = 0;
        require(recv(socket.get(), &byte, 1, 0) <= 0, "an answer to another user");
        wire.notify();
    };
    CHECK_NOTHROW(run_processes(owner, stranger));
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "introspection: hostile processes do not keep others from asking") {
    const auto script = [&](Wire&) {
        Node node(*provider());
        const auto ports = ports_of(node, backend.by_device ? 20 : 400);
        std::vector<UniqueFd> hostile;
        const std::string garbage(100'000, '\xff');
        for (int i = 0; i < 900; ++i) {  // a process may have 1024 descriptors
            hostile.push_back(connect_to(socket_of(getpid())));
            require(bool(hostile.back()), "a connection");
            if (i % 10 == 0)
                (void)!send(hostile.back().get(), garbage.data(), garbage.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        }
        const Json answer = ask(getpid());
        require(answer.at("endpoint_count") == ports.size(), "the whole answer");
        require(answer.at("endpoints").size() == ports.size(), "all endpoints");
    };
    CHECK_NOTHROW(run_processes(script, [](Wire&) {}));
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "introspection: a process that does not read the answer is hung up on") {
    if (backend.by_device) return;  // too few endpoints for an answer that does not fit into a socket
    const auto script = [&](Wire&) {
        Node node(*provider());
        const auto ports = ports_of(node, 3000);
        require(describe_this_process().size() > 500'000, "an answer that does not fit into a socket");
        const UniqueFd lazy = connect_to(socket_of(getpid()));
        pollfd look{.fd = lazy.get(), .events = POLLRDHUP, .revents = 0};
        require(poll(&look, 1, patience().poll_timeout_ms()) == 1, "the hang-up");
        require((look.revents & (POLLHUP | POLLRDHUP)) != 0, "the kind of event");
    };
    CHECK_NOTHROW(run_processes(script, [](Wire&) {}));
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "introspection: a forked child does not answer for its parent") {
    const auto parent = [&](Wire& wire) {
        Node node(*provider());
        Port port(node);
        Child child([](Wire& parent) {
            parent.await();
            const Json own = Json::parse(describe_this_process());
            require(own.at("devices").empty() && own.at("endpoints").empty(), "the devices of the parent");
            require(!is_found(getpid()), "the child");
            parent.notify();
            sleep_until_hangup(parent);
        });
        child.wire().notify();
        child.wire().await();
        require(ask(getpid()).at("devices").size() == 1, "the parent answers");
        wire.send(getpid());
        wire.send(child.pid());
        wire.await();
        die();
    };
    const auto observer = [](Wire& wire) {
        const auto process = wire.receive<pid_t>();
        const auto child = wire.receive<pid_t>();
        require(ask(process).at("endpoint_count") == 1, "the answer of the parent");
        require(kill(child, SIGSTOP) == 0, "the child must live longer");
        const UniqueFd end(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
        wire.notify();
        pollfd look{.fd = end.get(), .events = POLLIN, .revents = 0};
        require(poll(&look, 1, patience().poll_timeout_ms()) == 1, "the end of the parent");
        const bool found = is_found(process);
        kill(child, SIGKILL);
        require(!found, "the parent that has died");
    };
    CHECK_NOTHROW(run_processes(parent, observer));
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "introspection: names may contain any bytes") {
    const auto script = [&](Wire&) {
        std::string name = "a \"quoted\\ name\n\x01 \xff\xc3";
        program_invocation_short_name = name.data();
        Node node(*provider());
        const Json answer = ask(getpid());
        require(answer.at("program").get<std::string>().starts_with("a \"quoted\\ name\n\x01 "), "the name");
    };
    CHECK_NOTHROW(run_processes(script, [](Wire&) {}));
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "introspection: a process works if it cannot be asked") {
    const auto script = [&](Wire&) {
        std::vector<UniqueFd> taken;
        for (int i = 0; i < 8; ++i) {
            const AbstractAddress address(socket_of(getpid()) + (i == 0 ? "" : '.' + std::to_string(i)));
            UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
            require(bind(socket.get(), address.get(), address.size()) == 0, "bind");
            taken.push_back(std::move(socket));
        }
        Node node(*provider());
        Port port(node);
        require(ask_process(getpid()).status().code() == Code::NoListener, "no answer");
        taken.clear();
        Node second(*provider());  // opening another device tries again
        require(ask(getpid()).at("devices").size() == 2, "an answer");
    };
    CHECK_NOTHROW(run_processes(script, [](Wire&) {}));
}

// SPDX-License-Identifier: BSD-3-Clause
// Two processes: data path rules that need two processes, the methods of access to a peer's memory, and other users.
// Scripts fail by throwing.
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/contract/backends.hpp"
#include "tests/contract/two_processes.hpp"

using namespace viaduct;
using namespace viaduct::testing;
using namespace std::chrono_literals;
using Kind = ConnectionEventKind;

namespace {

/// Returns the names of the library's abstract Unix sockets on this machine.
std::vector<std::string> abstract_sockets() {
    std::vector<std::string> names;
    std::ifstream sockets("/proc/net/unix");
    for (std::string line; std::getline(sockets, line);)
        if (const auto at = line.find("@viaduct"); at != std::string::npos) names.push_back(line.substr(at + 1));
    return names;
}

/// Connects to an abstract socket. Returns -1 on failure.
int connect_abstract(const std::string& name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    REQUIRE(fd >= 0);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0) return fd;
    close(fd);
    return -1;
}

/// More descriptors in messages that nobody has received than the process may have open. The system then lets users
/// without privileges send no more (unix(7), ETOOMANYREFS).
class DescriptorsInFlight {
public:
    DescriptorsInFlight() {
        REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends_.data()) == 0);
        const rlimit limit{most_open, most_open};
        REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
        alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int) * (most_open + 1))> control{};
        std::byte byte{};
        iovec piece{.iov_base = &byte, .iov_len = 1};
        msghdr message{};
        message.msg_iov = &piece;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        cmsghdr* const header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * (most_open + 1));
        std::fill_n(reinterpret_cast<int*>(CMSG_DATA(header)), most_open + 1, STDERR_FILENO);
        REQUIRE(sendmsg(ends_[0], &message, 0) == 1);
    }
    DescriptorsInFlight(const DescriptorsInFlight&) = delete;
    DescriptorsInFlight& operator=(const DescriptorsInFlight&) = delete;
    ~DescriptorsInFlight() {
        for (const int end : ends_) close(end);
    }

private:
    static constexpr std::size_t most_open = 100;
    std::array<int, 2> ends_{};
};

}  // namespace

TEST_CASE_METHOD(EveryBackendBetweenProcesses,
                 "rule 1: RDMA completes while the target process sleeps, on every path to its memory", "[hosts]") {
    for (const Path& path : paths(backend)) {
        for (const std::size_t size : {std::size_t{8}, std::size_t{5000}, std::size_t{1} << 20}) {
            CAPTURE(path.name, size);
            const auto initiator = [&](Wire& wire) {
                prepare(path);
                End end(*provider());
                const Buffer mine(end.node, size);
                const Buffer back(end.node, size);
                end.call(wire);
                const auto target = wire.receive<RemoteAddress>();
                const Sge from = mine.sge();
                const Sge into = back.sge();
                for (std::uint32_t round = 1; round <= 5; ++round) {
                    fill(mine.bytes(), round);
                    end.port.post(write_of(1, from, target));
                    require(end.port.sent().code == CompletionCode::Success, "write");
                    end.port.post(read_of(2, into, target));
                    const Completion read = end.port.sent();
                    require(read.code == CompletionCode::Success && read.bytes == size, "read");
                    require(matches(back.bytes(), round), "what was read");
                }
                mine.store(0x0123456789abcdef);
                const Sge word = mine.sge(0, 8);
                end.port.post(atomic_of(3, word, {.address = target.address + size, .key = target.key}));
                require(end.port.sent().code == CompletionCode::Success, "atomic write");
                wire.notify();
                wire.await();
            };
            const auto target = [&](Wire& wire) {
                prepare(path);
                End end(*provider());
                const Buffer theirs(end.node, size + 8, path.memory);
                end.serve(wire);
                wire.send(theirs.remote());
                wire.await();  // blocks in a system call until everything is done
                require(theirs.load(size) == 0x0123456789abcdef, "the atomic write");
                require(matches(theirs.bytes().first(size), 5), "the write");
                wire.notify();
            };
            CHECK_NOTHROW(run_processes(initiator, target));
        }
    }
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "rule 2: a send completes while the receiving process sleeps",
                 "[hosts]") {
    for (const Path& path : paths(backend)) {
        for (const Reliability reliability :
             {Reliability::Unreliable, Reliability::ReliableDelivery, Reliability::ReliableReception}) {
            for (const std::size_t size : {8u, 4000u, 100'000u, 1u << 20}) {
                CAPTURE(path.name, static_cast<int>(reliability), size);
                const PortOptions options{.reliability = reliability};
                const auto sender = [&](Wire& wire) {
                    prepare(path);
                    End end(*provider(), options);
                    const Buffer mine(end.node, size);
                    end.call(wire);
                    const auto address = wire.receive<RemoteAddress>().address;
                    const auto process = wire.receive<pid_t>();
                    const Sge from = mine.sge();
                    fill(mine.bytes(), 6);
                    end.port.post(send_of(1, from));
                    require(end.port.sent().code == CompletionCode::Success, "send");
                    std::vector<std::byte> seen(size);
                    if (reliability == Reliability::ReliableReception && peek(process, address, seen))
                        require(matches(seen, 6), "data at the completion of a reliable reception");
                    wire.notify();
                    wire.await();
                };
                const auto receiver = [&](Wire& wire) {
                    prepare(path);
                    End end(*provider(), options);
                    const Buffer theirs(end.node, size, path.memory);
                    const Sge into = theirs.sge();
                    end.port.post(receive_of(1, into));
                    end.serve(wire);
                    wire.send(theirs.remote());
                    wire.send(getpid());
                    wire.await();
                    require(end.port.received().bytes == size, "receive");
                    require(matches(theirs.bytes(), 6), "received data");
                    wire.notify();
                };
                CHECK_NOTHROW(run_processes(sender, receiver));
            }
        }
    }
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "rule 4: another process sees a send after the written data",
                 "[hosts]") {
    for (const Path& path : paths(backend)) {
        for (const std::size_t size : {std::size_t{8}, std::size_t{70'000}}) {
            CAPTURE(path.name, size);
            constexpr std::uint32_t rounds = 300;
            const auto writer = [&](Wire& wire) {
                prepare(path);
                End end(*provider());
                const Buffer mine(end.node, size);
                end.call(wire);
                const auto target = wire.receive<RemoteAddress>();
                const Sge from = mine.sge();
                const Sge word = mine.sge(0, 8);
                for (std::uint32_t round = 1; round <= rounds; ++round) {
                    fill(mine.bytes(), round);
                    end.port.post(write_of(round, from, target));
                    end.port.post(send_of(round, word));
                    take(*end.port.send_queue, 2);
                    wire.await();
                }
            };
            const auto reader = [&](Wire& wire) {
                prepare(path);
                End end(*provider());
                const Buffer theirs(end.node, size, path.memory);
                const Buffer notice(end.node, 8);
                const Sge into = notice.sge();
                end.port.post(receive_of(1, into));
                end.serve(wire);
                wire.send(theirs.remote());
                for (std::uint32_t round = 1; round <= rounds; ++round) {
                    end.port.received();
                    require(matches(theirs.bytes(), round), "written data at the receive");
                    end.port.post(receive_of(1, into));
                    wire.notify();
                }
            };
            CHECK_NOTHROW(run_processes(writer, reader));
        }
    }
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "rule 5: posted sends arrive while the sending process sleeps",
                 "[hosts]") {
    for (const bool process_vm : {true, false}) {
        CAPTURE(process_vm);
        constexpr std::size_t size = 200'000;
        constexpr std::uint64_t count = 20;
        const Path path{.name = "", .memory = Memory::Heap, .process_vm = process_vm};
        const auto sender = [&](Wire& wire) {
            prepare(path);
            End end(*provider());
            const Buffer mine(end.node, size);
            end.call(wire);
            const Sge from = mine.sge();
            fill(mine.bytes(), 7);
            for (std::uint64_t i = 0; i < count; ++i) end.port.post(send_of(i, from));
            wire.notify();
            wire.await();
            take(*end.port.send_queue, count);
        };
        const auto receiver = [&](Wire& wire) {
            prepare(path);
            End end(*provider());
            end.serve(wire);
            const Buffer theirs(end.node, size);
            const Sge into = theirs.sge();
            wire.await();
            for (std::uint64_t i = 0; i < count; ++i) {
                std::ranges::fill(theirs.bytes(), std::byte{0});
                end.port.post(receive_of(i, into));
                require(end.port.received().context == i, "order");
                require(matches(theirs.bytes(), 7), "data");
            }
            wire.notify();
        };
        CHECK_NOTHROW(run_processes(sender, receiver));
    }
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "rule 7: an idle connection uses no CPU time in either process",
                 "[hosts]") {
    const auto cpu_time = [] {
        timespec time{};
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
        return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
    };
    constexpr auto idle = 300ms;
    const auto wait_idle = [&](Port& port) {
        const auto begin = cpu_time();
        Completion completion;
        require(port.receive_queue->wait({&completion, 1}, Deadline::after(idle)) == 0, "idle");
        require(cpu_time() - begin < idle / 3, "processor time of an idle wait");
    };
    // A backend may still be preparing buffers when a connection is established, but not after a message each way.
    const auto exchange = [](Port& port, Wire& wire) {
        const Sge none{};
        port.post(receive_of(1, none));
        wire.notify();
        wire.await();
        port.post(send_of(2, none));
        require(port.received().code == CompletionCode::Success, "a message arrives");
        require(port.sent().code == CompletionCode::Success, "a message is sent");
        wire.notify();
        wire.await();
    };
    const auto client = [&](Wire& wire) {
        End end(*provider());
        end.call(wire);
        exchange(end.port, wire);
        wait_idle(end.port);
        wire.notify();
        wire.await();
    };
    const auto server = [&](Wire& wire) {
        End end(*provider());
        end.serve(wire);
        exchange(end.port, wire);
        wait_idle(end.port);
        wire.notify();
        wire.await();
    };
    CHECK_NOTHROW(run_processes(client, server));
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "rule 8: an observer in the target never sees part of an atomic write",
                 "[hosts]") {
    if (!able().atomic_write) return;
    for (const Path& path : paths(backend)) {
        CAPTURE(path.name);
        const auto writer = [&](Wire& wire) {
            prepare(path);
            End end(*provider());
            const Buffer mine(end.node, 16);
            mine.store(~std::uint64_t{0}, 8);
            end.call(wire);
            const auto target = wire.receive<RemoteAddress>();
            const std::array pieces{mine.sge(0, 8), mine.sge(8, 8)};
            for (std::uint64_t i = 0; i < 2000; ++i) {
                end.port.post(atomic_of(i, pieces[i % 2], target));
                require(end.port.sent().code == CompletionCode::Success, "atomic write");
            }
            wire.notify();
            wire.await();
        };
        const auto observer = [&](Wire& wire) {
            prepare(path);
            End end(*provider());
            const Buffer theirs(end.node, 8, path.memory);
            end.serve(wire);
            wire.send(theirs.remote());
            std::atomic<bool> stop{false};
            std::atomic<int> torn{0};
            std::thread thread([&] {
                while (!stop) {
                    const std::uint64_t seen = theirs.load();
                    torn += seen != 0 && seen != ~std::uint64_t{0};
                }
            });
            const std::shared_ptr<void> at_end(nullptr, [&](void*) {
                stop = true;
                thread.join();
            });
            wire.await();
            require(torn == 0, "a torn write");
            wire.notify();
        };
        CHECK_NOTHROW(run_processes(writer, observer));
    }
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses,
                 "processes: messages of every size in both directions, with both sides polling", "[hosts]") {
    for (const Path& path : paths(backend)) {
        CAPTURE(path.name);
        const auto side = [&](bool serves, Wire& wire) {
            prepare(path);
            End end(*provider());
            if (serves)
                end.serve(wire);
            else
                end.call(wire);
            std::vector<std::size_t> sizes = sizes_around_thresholds(end.node);
            sizes.push_back(end.node.bytes_up_to(16u << 20));
            for (const std::size_t size : sizes) {
                const Buffer out(end.node, size, path.memory);
                const Buffer in(end.node, size, path.memory);
                const Sge from = out.sge();
                const Sge into = in.sge();
                fill(out.bytes(), static_cast<std::uint32_t>(size));
                end.port.post(receive_of(1, into));
                end.port.post(send_of(2, from));
                require(end.port.received().bytes == size, "size");
                require(matches(in.bytes(), static_cast<std::uint32_t>(size)), "data");
                require(end.port.sent().bytes == size, "sent");
            }
            wire.notify();
            wire.await();
        };
        CHECK_NOTHROW(run_processes([&](Wire& wire) { side(false, wire); }, [&](Wire& wire) { side(true, wire); }));
    }
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "processes: lists of 252 SGEs on every path to the memory", "[hosts]") {
    for (const Path& path : paths(backend)) {
        CAPTURE(path.name);
        constexpr std::size_t gap = 8;
        constexpr std::size_t length = 700;
        const auto list = [](const Buffer& buffer) {
            std::vector<Sge> pieces;
            for (std::size_t i = 0; i < buffer.bytes().size(); i += length + gap)
                pieces.push_back(buffer.sge(i, length));
            return pieces;
        };
        const auto initiator = [&](Wire& wire) {
            prepare(path);
            End end(*provider());
            const std::size_t count = end.node.pieces_up_to(252);
            const Buffer mine(end.node, count * (length + gap));
            const Buffer back(end.node, count * (length + gap));
            fill(mine.bytes(), 8);
            const auto from = list(mine);
            const auto into = list(back);
            end.call(wire);
            const auto target = wire.receive<RemoteAddress>();
            end.port.post(SendRequest{.context = 1, .sges = from});
            end.port.post(SendRequest{.context = 2, .opcode = Opcode::RdmaWrite, .remote = target, .sges = from});
            end.port.post(SendRequest{.context = 3, .opcode = Opcode::RdmaRead, .remote = target, .sges = into});
            for (const Completion& done : take(*end.port.send_queue, 3))
                require(done.code == CompletionCode::Success && done.bytes == count * length, "completion");
            for (std::size_t i = 0; i < count; ++i) {
                const auto at = i * (length + gap);
                require(same(back.bytes().subspan(at, length), mine.bytes().subspan(at, length)), "read");
                require(back.bytes()[at + length] == std::byte{0}, "between the pieces");
            }
            wire.notify();
            wire.await();
        };
        const auto target = [&](Wire& wire) {
            prepare(path);
            End end(*provider());
            const std::size_t count = end.node.pieces_up_to(252);
            const Buffer scattered(end.node, count * (length + gap), path.memory);
            const Buffer written(end.node, count * length, path.memory);
            const auto into = list(scattered);
            end.port.post(ReceiveRequest{.context = 1, .sges = into});
            end.serve(wire);
            wire.send(written.remote());
            require(end.port.received().bytes == count * length, "receive");
            wire.await();
            for (std::size_t i = 0; i < count; ++i)
                require(same(scattered.bytes().subspan(i * (length + gap), length),
                             written.bytes().subspan(i * length, length)),
                        "scattered and written");
            wire.notify();
        };
        CHECK_NOTHROW(run_processes(initiator, target));
    }
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "processes: two matching peer-to-peer attempts connect", "[hosts]") {
    if (!able().peer_to_peer) return;
    const auto side = [&](std::uint32_t mine, std::uint32_t theirs, Wire& wire) {
        Node node(*provider(), mine);
        Node other(*provider(), theirs);
        for (int round = 0; round < 30; ++round) {
            Port port(node);
            wire.notify();
            wire.await();
            must(port.endpoint->connect({.model = ConnectParameters::Model::PeerToPeer,
                                         .local = node.address("meet"),
                                         .remote = own_host() == 0 ? other.address("meet") : node.peer_address("meet"),
                                         .private_data = {},
                                         .deadline = patience()}));
            require(port.event().kind == Kind::Established, "meeting");
            wire.notify();
            wire.await();
        }
    };
    CHECK_NOTHROW(run_processes([&](Wire& wire) { side(0, 1, wire); }, [&](Wire& wire) { side(1, 0, wire); }));
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "processes: a peer that accepts and disconnects at once", "[hosts]") {
    constexpr int rounds = 200;
    const PortOptions options{.reliability = Reliability::Unreliable};
    const auto client = [&](Wire& wire) {
        End end(*provider(), options);
        const Buffer mine(end.node, 8);
        const Sge piece = mine.sge();
        wire.await();
        for (int round = 0; round < rounds; ++round) {
            end.port.post(receive_of(1, piece));
            must(end.port.endpoint->connect(parameters_for(end.node, end.node.peer_address("short"))));
            require(end.port.event().kind == Kind::Established, "connected");
            require(end.port.event().kind == Kind::Disconnected, "disconnected");
            const Completion received = end.port.received();
            // Only shared memory is certain to keep an unreliable message.
            require(received.code == CompletionCode::Success || backend.by_device, "the message arrives");
            require(received.code != CompletionCode::Success || mine.load() == 7, "the data");
            mine.store(0);
            require(end.port.endpoint->state() == EndpointState::Disconnected, "the state");
            end.port.endpoint->disconnect();
            require(end.port.quiet(), "one event of each kind");
        }
        wire.notify();
    };
    const auto server = [&](Wire& wire) {
        End end(*provider(), options);
        const Buffer mine(end.node, 8);
        const Sge piece = mine.sge();
        mine.store(7);
        const auto listener = end.node.listen("short");
        wire.notify();
        for (int round = 0; round < rounds; ++round) {
            accept_on(end.port, *listener);
            end.port.post(send_of(2, piece));
            require(end.port.sent().code == CompletionCode::Success, "sent");
            end.port.endpoint->disconnect();
        }
        wire.await();
    };
    CHECK_NOTHROW(run_processes(client, server));
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses,
                 "processes: an exclusive service is busy for others until it is released") {
    for (const bool dies : {false, true}) {
        CAPTURE(dies);
        const auto first = [&](Wire& wire) {
            Node node(*provider());
            auto listener = must(node.device->listen(node.address("alone"), Sharing::Exclusive));
            wire.notify();
            wire.await();
            listener.reset();
            listener = must(node.device->listen(node.address("alone"), Sharing::Exclusive));
            listener.reset();
            listener = must(node.device->listen(node.address("alone"), Sharing::Shared));
            wire.notify();
            wire.await();
            listener.reset();
            listener = must(node.device->listen(node.address("alone"), Sharing::Exclusive));
            if (dies) die();
            listener.reset();
            wire.notify();
            sleep_until_hangup(wire);
        };
        const auto second = [&](Wire& wire) {
            Node node(*provider());
            const auto code = [&](Sharing sharing) {
                return node.device->listen(node.address("alone"), sharing).status().code();
            };
            wire.await();
            require(code(Sharing::Exclusive) == Code::Busy, "exclusive beside exclusive");
            wire.notify();
            wire.await();
            require(code(Sharing::Exclusive) == Code::Busy, "exclusive beside shared");
            require(code(Sharing::Shared) == (node.able().shares_services ? Code::Ok : Code::Busy),
                    "shared beside shared");
            wire.notify();
            sleep_until_hangup(wire);
            const Deadline deadline = patience();  // the kernel may close the descriptors of a dead process with a
                                                   // delay
            while (dies && code(Sharing::Exclusive) == Code::Busy && !deadline.passed()) std::this_thread::yield();
            require(code(Sharing::Exclusive) == Code::Ok, "the service is free");
        };
        CHECK_NOTHROW(run_processes(first, second));
    }
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses,
                 "processes: refused writes are reported as requested on every path to the memory", "[hosts]") {
    for (const Path& path : paths(backend)) {
        for (const RefusedWrite choice : {RefusedWrite::Reported, RefusedWrite::Silent}) {
            for (const std::size_t size : {std::size_t{8}, std::size_t{100'000}}) {
                CAPTURE(path.name, static_cast<int>(choice), size);
                const PortOptions options{.reliability = Reliability::ReliableDelivery, .refused_write = choice};
                const auto initiator = [&](Wire& wire) {
                    prepare(path);
                    End end(*provider(), options);
                    const Buffer mine(end.node, size);
                    end.call(wire);
                    const auto target = wire.receive<RemoteAddress>();
                    const Sge from = mine.sge();
                    end.port.post(write_of(1, from, target));
                    const auto expected =
                        choice == RefusedWrite::Reported ? CompletionCode::RemoteProtection : CompletionCode::Success;
                    require(end.port.sent().code == expected, "what the initiator learns");
                    require(end.port.lost(), "the loss");
                    wire.notify();
                };
                const auto target = [&](Wire& wire) {
                    prepare(path);
                    End end(*provider(), options);
                    const Buffer closed(end.node, size, path.memory, {.remote_read = true});
                    end.serve(wire);
                    wire.send(closed.remote());
                    wire.await();
                    require(end.port.lost(), "the loss");
                    require(closed.load() == 0, "untouched memory");
                };
                CHECK_NOTHROW(run_processes(initiator, target));
            }
        }
    }
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "processes: a request that the system does not pass on is refused") {
    if (geteuid() != 0 || backend.name != "loopback") return;  // others pass no descriptors; root may pass any number
    const auto client = [&](Wire& wire) {
        become_nobody();
        End end(*provider());
        wire.await();
        {
            const DescriptorsInFlight many;
            auto parameters = parameters_for(end.node, end.node.address("many"));
            require(end.port.endpoint->connect(parameters).code() == Code::NoResources, "no resources");
            parameters.grace = 200ms;  // it tries again, also if the first attempt takes long
            must(end.port.endpoint->connect(parameters));
            const ConnectionEvent event = end.port.event();
            require(event.kind == Kind::Unreachable && event.reason == Code::NoResources, "no resources in time");
        }
        connect_to(end.port, end.node.address("many"));
        wire.notify();
    };
    const auto server = [&](Wire& wire) {
        become_nobody();
        End end(*provider());
        const auto listener = end.node.listen("many");
        wire.notify();
        accept_on(end.port, *listener);
        wire.await();
    };
    CHECK_NOTHROW(run_processes(client, server));
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "processes: requests to a listener that changes its user pause") {
    if (geteuid() != 0 || backend.name != "loopback") return;
    const auto client = [&](Wire& wire) {
        End end(*provider());
        wire.await();
        auto parameters = parameters_for(end.node, end.node.address("changed"));
        parameters.deadline = Deadline::after(1s);
        must(end.port.endpoint->connect(parameters));
        require(end.port.event().kind == Kind::TimedOut, "the deadline");
        const auto retries = end.port.endpoint->counters().retries;
        require(retries > 0 && retries <= 1000, "one pause at a time");
        wire.notify();
    };
    const auto server = [&](Wire& wire) {
        End end(*provider());
        const auto listener = end.node.listen("changed");
        become_nobody();
        wire.notify();
        while (!readable(wire.fd(), Deadline::now())) (void)listener->next_request();
    };
    CHECK_NOTHROW(run_processes(client, server));
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "processes: another user's listener is not found") {
    if (geteuid() != 0 || !able().own_user_only) return;  // requires the privilege to change the user
    const auto owner = [&](Wire& wire) {
        End end(*provider());
        const auto listener = end.node.listen("mine alone");
        wire.notify();
        wire.await();
        require(listener->next_request().status().code() == Code::WouldBlock, "a request of another user");
    };
    const auto stranger = [&](Wire& wire) {
        become_nobody();
        wire.await();
        End end(*provider());
        const Code code = attempt(end.port, parameters_for(end.node, end.node.address("mine alone")));
        require(code == Code::NoListener, "refusal");
        wire.notify();
    };
    CHECK_NOTHROW(run_processes(owner, stranger));
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "streams of large writes leave each other room", "[hosts]") {
    constexpr std::size_t streams = 2;
    constexpr std::size_t large = 1 << 20;
    constexpr std::size_t rounds = 400;  // of which each has to get some
    const auto initiator = [&](Wire& wire) {
        Node node(*provider());
        const Buffer mine(node, large);
        std::array<std::unique_ptr<Port>, streams + 1> ports;  // the last one does not stream
        for (auto& port : ports) {
            port = std::make_unique<Port>(node);
            wire.await();
            connect_to(*port, node.peer_address("streams"));
        }
        const auto target = wire.receive<RemoteAddress>();
        const auto piece = [&](std::size_t i) { return mine.sge(0, i == streams ? large / 16 : large); };
        const auto write = [&](std::size_t i) {
            const Sge from = piece(i);
            ports[i]->post(write_of(i, from, target));
        };
        for (std::size_t i = 0; i <= streams; ++i)
            for (int depth = i == streams ? 1 : 8; depth != 0; --depth) write(i);
        std::array<std::size_t, streams + 1> written{};
        while (std::ranges::min(written) < 2 && written[0] + written[1] < rounds) {
            for (std::size_t i = 0; i <= streams; ++i) {
                Completion completion;
                if (ports[i]->send_queue->poll({&completion, 1}) == 0) continue;
                require(completion.code == CompletionCode::Success, "write");
                ++written[i];
                write(i);
            }
        }
        require(std::ranges::min(written) >= 2, "a stream takes all the room");
        wire.notify();
    };
    const auto target = [&](Wire& wire) {
        Node node(*provider());
        const Buffer theirs(node, large);
        const auto listener = node.listen("streams");
        std::array<std::unique_ptr<Port>, streams + 1> ports;
        for (auto& port : ports) {
            port = std::make_unique<Port>(node);
            wire.notify();
            accept_on(*port, *listener);
        }
        wire.send(theirs.remote());
        wire.await();
    };
    CHECK_NOTHROW(run_processes(initiator, target));
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "processes: another user who knows the socket's name is refused") {
    if (geteuid() != 0 || !able().own_user_only) return;  // requires the privilege to change the user
    const auto owner = [&](Wire& wire) {
        End end(*provider());
        const auto listener = end.node.listen("mine alone");
        wire.notify();
        wire.await();
        require(listener->next_request().status().code() == Code::WouldBlock, "a request of another user");
        wire.notify();
        wire.await();
    };
    const auto stranger = [&](Wire& wire) {
        become_nobody();
        wire.await();
        std::vector<int> sockets;
        for (const std::string& name : abstract_sockets())
            if (const int fd = connect_abstract(name); fd >= 0) sockets.push_back(fd);
        wire.notify();
        wire.await();
        for (const int fd : sockets) {
            char byte = 0;
            require(::recv(fd, &byte, 1, 0) <= 0, "an answer to another user");
            close(fd);
        }
        wire.notify();
    };
    CHECK_NOTHROW(run_processes(owner, stranger));
}

// SPDX-License-Identifier: BSD-3-Clause
// Programs that remove the memory of their requests: they unmap a source or deregister the memory of a receive. RDMA
// devices pin the pages of registered memory, so there the whole message is sent.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <thread>

#include "core/base/guarded_memory.hpp"
#include "tests/contract/backends.hpp"
#include "tests/contract/two_processes.hpp"

using namespace viaduct;
using namespace viaduct::testing;

namespace {

constexpr std::size_t large = 1u << 20;

/// Returns memory below a large gap of the address space. The system places new mappings at the upper end of a gap, so
/// what other threads map does not fill the hole when part of the memory is unmapped.
std::byte* map_below_gap(std::size_t size) {
    constexpr std::size_t gap = std::size_t{1} << 30;
    constexpr std::size_t page = 4096;
    size = (size + page - 1) / page * page;
    void* const reserved = mmap(nullptr, size + gap, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    require(reserved != MAP_FAILED, "mmap");
    auto* const memory = static_cast<std::byte*>(reserved);
    require(mprotect(memory, size, PROT_READ | PROT_WRITE) == 0, "mprotect");
    require(munmap(memory + size, gap) == 0, "munmap");
    return memory;
}

/// Registered memory in one mapping, part of which can be unmapped.
class Mapped {
public:
    Mapped(const Node& node, std::size_t size, Access access = {.remote_write = true, .remote_read = true})
        : size_(size),
          memory_(map_below_gap(size)),
          region_(must(MemoryRegion::create(node.domain, memory_, size, access))) {}
    ~Mapped() { munmap(memory_, size_); }
    Mapped(const Mapped&) = delete;
    Mapped& operator=(const Mapped&) = delete;

    std::span<std::byte> bytes() const noexcept { return {memory_, size_}; }
    Sge sge() const noexcept {
        return {.address = memory_, .key = region_->key(), .length = static_cast<std::uint32_t>(size_)};
    }
    void unmap_from(std::size_t offset) const { require(munmap(memory_ + offset, size_ - offset) == 0, "munmap"); }
    void protect_from(std::size_t offset, int protection) const {
        require(mprotect(memory_ + offset, size_ - offset, protection) == 0, "mprotect");
    }
    /// What a program does to the second half, or to all of less than two pages.
    void lose(bool unmapping) const {
        const std::size_t kept = size_ / 2 / 4096 * 4096;
        if (unmapping) return unmap_from(kept);
        protect_from(kept, PROT_READ);
    }
    /// All of it cannot be read any more.
    void lose_source(bool unmapping) const { unmapping ? unmap_from(0) : protect_from(0, PROT_NONE); }
    RemoteAddress remote() const noexcept {
        return {.address = reinterpret_cast<std::uintptr_t>(memory_), .key = region_->key()};
    }
    void deregister() { region_.reset(); }

private:
    const std::size_t size_;
    std::byte* const memory_;
    std::unique_ptr<MemoryRegion> region_;
};

/// The expected results on both sides when half of a source is unmapped.
struct HalfGone {
    Reliability level;
    Path path;
    bool immediate;
};

void require_end_of_sender(End& end, Reliability level) {
    const Completion completion = end.port.sent();
    require(completion.code == CompletionCode::LocalProtection, "the sender's own memory is at fault");
    require(completion.bytes != 0 && completion.bytes < large, "a part had left");
    if (level != Reliability::Unreliable) require(end.port.lost(), "the connection breaks");
}

const PortOptions target_options{.reliability = Reliability::ReliableDelivery, .context = 7};

/// The target of an operation on memory that it has lost meanwhile.
void lose_and_refuse(End& end, Wire& wire, const Mapped& memory, bool unmapping) {
    end.serve(wire);
    memory.lose(unmapping);
    wire.send(memory.remote());
    require(end.node.hears(AsyncEventKind::RemoteWriteProtection, target_options.context), "the target is told");
    const ConnectionEvent end_of_connection = end.port.event();
    require(end_of_connection.kind == ConnectionEventKind::Lost, "the connection breaks");
    require(end_of_connection.reason == Code::Unreachable, "the peer has caused that");
    wire.await();
}

}  // namespace

TEST_CASE_METHOD(EveryBackendBetweenProcesses,
                 "lost memory: a message whose source is half unmapped is received as partial", "[hosts]") {
    if (!catches_faults || backend.by_device) return;
    for (const Reliability level : all_levels) {
        CAPTURE(static_cast<int>(level));
        const auto receiver = [&](Wire& wire) {
            End end(*provider(), {.reliability = level});
            const Buffer buffer(end.node, large);
            const Sge piece = buffer.sge();
            end.port.post(receive_of(1, piece));
            end.serve(wire);
            const Completion completion = end.port.received();
            require(completion.code == CompletionCode::PartialMessage, "the receive is told that a part came");
            require(completion.context == 1 && completion.bytes == 0, "completion");
            if (level != Reliability::Unreliable) require(end.port.lost(), "the connection breaks");
            wire.await();
        };
        const auto sender = [&](Wire& wire) {
            End end(*provider(), {.reliability = level});
            const Mapped source(end.node, large);
            end.call(wire);
            source.unmap_from(large / 2);
            const Sge piece = source.sge();
            end.port.post(send_of(2, piece));
            require_end_of_sender(end, level);
            wire.notify();
        };
        CHECK_NOTHROW(run_processes(receiver, sender));
    }
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "lost memory: a write whose source is half unmapped fails on both ends",
                 "[hosts]") {
    if (!catches_faults || backend.by_device) return;
    for (const Path& path : paths(backend))
        for (const Reliability level : all_levels)
            for (const bool immediate : {false, true}) {
                CAPTURE(path.name, static_cast<int>(level), immediate);
                const auto target = [&](Wire& wire) {
                    End end(*provider(), {.reliability = level, .context = 7});
                    const Buffer buffer(end.node, large, path.memory);
                    const Sge none{};
                    end.port.post(receive_of(1, none));
                    end.serve(wire);
                    wire.send(buffer.remote());
                    if (immediate) {
                        const Completion completion = end.port.received();
                        require(completion.code == CompletionCode::PartialMessage, "the receive is told");
                        require(completion.operation == CompletedOperation::ReceiveRdmaWrite, "operation");
                    } else {
                        require(end.node.hears(AsyncEventKind::RemoteWriteAborted, 7), "the target is told");
                    }
                    if (level != Reliability::Unreliable) require(end.port.lost(), "the connection breaks");
                    wire.await();
                };
                const auto initiator = [&](Wire& wire) {
                    prepare(path);
                    End end(*provider(), {.reliability = level});
                    const Mapped source(end.node, large);
                    end.call(wire);
                    const auto remote = wire.receive<RemoteAddress>();
                    source.unmap_from(large / 2);
                    const Sge piece = source.sge();
                    const SendRequest write = write_of(2, piece, remote);
                    end.port.post(immediate ? with_immediate(write, 5) : write);
                    require_end_of_sender(end, level);
                    wire.notify();
                };
                CHECK_NOTHROW(run_processes(target, initiator));
            }
}

TEST_CASE_METHOD(EveryBackend, "lost memory: a source that cannot be read is a local fault, and nothing is sent") {
    if (!catches_faults || backend.by_device || backend.name == "memory") return;
    for (const bool unmapping : {true, false})
        for (const Reliability level : all_levels)
            for (const std::size_t size : sizes_around_thresholds(near)) {
                if (size == 0) continue;
                CAPTURE(unmapping, static_cast<int>(level), size);
                Connection connection(near, far, {.reliability = level});
                auto& [client, server] = connection;
                const Mapped source(near, size);
                const Buffer buffer(far, size);
                const Sge into = buffer.sge();
                const Sge from = source.sge();
                server.post(receive_of(1, into));
                source.lose_source(unmapping);
                client.post(send_of(2, from));
                const Completion completion = client.sent();
                CHECK(completion.code == CompletionCode::LocalProtection);
                CHECK(completion.bytes == 0);
                if (level == Reliability::Unreliable) {
                    const Buffer mine(near, size);
                    const Sge other = mine.sge();
                    client.post(send_of(3, other));
                    CHECK(server.received().code == CompletionCode::Success);
                } else {
                    CHECK(server.received().code == CompletionCode::Flushed);
                    CHECK(server.lost());
                }
                CHECK(server.quiet());
            }
}

TEST_CASE_METHOD(EveryBackend, "lost memory: a source that is lost while its message waits is a local fault") {
    if (!catches_faults || backend.by_device || backend.name == "memory") return;
    constexpr std::size_t more_than_is_buffered = 16 * large;
    const Buffer first(near, more_than_is_buffered);
    const Buffer target(far, more_than_is_buffered);
    for (const bool unmapping : {true, false})
        for (const std::size_t size : sizes_around_thresholds(near)) {
            if (size == 0) continue;
            CAPTURE(unmapping, size);
            Connection connection(near, far, {.reliability = Reliability::ReliableDelivery});
            auto& [client, server] = connection;
            const Mapped source(near, size);
            const Sge waited_for = first.sge();
            const Sge into = target.sge();
            const Sge from = source.sge();
            client.post(send_of(1, waited_for));  // no receive is posted yet
            client.post(send_of(2, from));
            source.lose_source(unmapping);
            server.post(receive_of(3, into));
            server.post(receive_of(4, into));
            CHECK(client.sent().code == CompletionCode::Success);
            const Completion completion = client.sent();
            CHECK(completion.code == CompletionCode::LocalProtection);
            CHECK(completion.bytes == 0);
            CHECK(server.received().code == CompletionCode::Success);
            CHECK(server.received().code == CompletionCode::Flushed);
            CHECK(server.lost());
        }
}

TEST_CASE_METHOD(EveryBackend, "lost memory: an atomic whose own word cannot be accessed is a local fault") {
    if (!catches_faults || backend.by_device || backend.name == "memory") return;
    const Access access{.remote_write = true, .remote_atomic = true};
    Connection connection(near, far, {.reliability = Reliability::ReliableDelivery, .access = access});
    const Mapped source(near, 8);
    const Buffer target(far, 8, Memory::Heap, access);
    const Sge from = source.sge();
    SendRequest write = write_of(1, from, target.remote());
    write.opcode = Opcode::AtomicWrite;
    source.lose_source(true);
    connection.client.post(write);
    CHECK(connection.client.sent().code == CompletionCode::LocalProtection);
    CHECK(connection.client.lost());

    // An addition is executed once, even if it cannot fail yet because a message in front of it waits for its receive.
    const auto receives = far.make_shared_receives();
    Port client(near, {.reliability = Reliability::ReliableDelivery});
    Port server(far, {.reliability = Reliability::ReliableDelivery, .access = access, .shared_receives = receives});
    join(client, server);
    const Buffer message(near, 8);
    const Buffer room(far, 8);
    const Mapped result(near, 8);
    const Sge waiting = message.sge();
    const Sge into = room.sge();
    const Sge old = result.sge();
    client.post(send_of(2, waiting));
    result.lose(false);
    client.post(fetch_add_of(3, old, target.remote(), 1));
    for (int i = 0; i < 5; ++i) CHECK(client.quiet());
    post(*receives, receive_of(4, into));
    CHECK(client.sent().code == CompletionCode::Success);
    CHECK(client.sent().code == CompletionCode::LocalProtection);
    CHECK(client.lost());
    CHECK(target.load() == 1);
}

TEST_CASE_METHOD(EveryBackend, "lost memory: a receive whose memory is deregistered and unmapped fails") {
    for (const std::size_t size : sizes_around_thresholds(near)) {
        CAPTURE(size);
        Connection connection(near, far, {.reliability = Reliability::ReliableDelivery});
        auto& [client, server] = connection;
        const Buffer mine(near, size);
        Mapped theirs(far, size);
        const Sge from = mine.sge();
        const Sge into = theirs.sge();
        server.post(receive_of(1, into));
        theirs.deregister();
        theirs.unmap_from(0);
        client.post(send_of(2, from));
        CHECK(server.received().code == CompletionCode::LocalProtection);
        CHECK(server.lost());
    }
}

TEST_CASE_METHOD(EveryBackend, "lost memory: a receive fails if its memory is not there or cannot be written") {
    if (!catches_faults || backend.by_device || backend.name == "memory") return;
    for (const bool unmapping : {true, false})
        for (const Reliability level : {Reliability::Unreliable, Reliability::ReliableDelivery})
            for (const std::size_t size : sizes_around_thresholds(near)) {
                if (size == 0) continue;
                CAPTURE(unmapping, static_cast<int>(level), size);
                Connection connection(near, far, {.reliability = level});
                auto& [client, server] = connection;
                const Buffer mine(near, size);
                const Mapped theirs(far, size);
                const Sge from = mine.sge();
                const Sge into = theirs.sge();
                server.post(receive_of(1, into));
                theirs.lose(unmapping);
                client.post(send_of(2, from));
                CHECK(server.received().code == CompletionCode::LocalProtection);
                if (level != Reliability::Unreliable) {
                    CHECK(server.lost());
                    continue;
                }
                const Buffer others(far, size);
                const Sge next = others.sge();
                server.post(receive_of(3, next));
                client.post(send_of(4, from));
                CHECK(server.received().code == CompletionCode::Success);
            }
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses,
                 "lost memory: a write to what is not there or cannot be written is refused", "[hosts]") {
    if (!catches_faults || backend.by_device) return;
    for (const Path& path : paths(backend))
        for (const bool unmapping : {true, false})
            for (const std::size_t size : {std::size_t{8}, std::size_t{100}, std::size_t{40000}, large}) {
                CAPTURE(path.name, unmapping, size);
                const auto target = [&](Wire& wire) {
                    End end(*provider(), target_options);
                    lose_and_refuse(end, wire, Mapped(end.node, size), unmapping);
                };
                const auto initiator = [&](Wire& wire) {
                    prepare(path);
                    End end(*provider(), {.reliability = Reliability::ReliableDelivery});
                    const Buffer buffer(end.node, size);
                    end.call(wire);
                    const auto remote = wire.receive<RemoteAddress>();
                    const Sge piece = buffer.sge();
                    end.port.post(write_of(2, piece, remote));
                    require(end.port.lost(), "the connection breaks");
                    wire.notify();
                };
                CHECK_NOTHROW(run_processes(target, initiator));
            }
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "lost memory: an atomic on what is not there is refused", "[hosts]") {
    if (!catches_faults || backend.by_device) return;
    const auto target = [&](Wire& wire) {
        const Access access{.remote_write = true, .remote_read = true, .remote_atomic = true};
        PortOptions options = target_options;
        options.access = access;
        End end(*provider(), options);
        lose_and_refuse(end, wire, Mapped(end.node, 8, access), true);
    };
    const auto initiator = [&](Wire& wire) {
        End end(*provider(), {.reliability = Reliability::ReliableDelivery});
        const Buffer buffer(end.node, 8);
        end.call(wire);
        const auto remote = wire.receive<RemoteAddress>();
        const Sge piece = buffer.sge();
        SendRequest add = write_of(2, piece, remote);
        add.opcode = Opcode::FetchAdd;
        end.port.post(add);
        require(end.port.sent().code == CompletionCode::RemoteProtection, "the initiator is told");
        wire.notify();
    };
    CHECK_NOTHROW(run_processes(target, initiator));
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "lost memory: what is read cannot be written: a fault of the initiator",
                 "[hosts]") {
    if (!catches_faults || backend.by_device) return;
    for (const Path& path : paths(backend))
        for (const bool unmapping : {true, false})
            for (const std::size_t size : {std::size_t{8}, std::size_t{100}, std::size_t{40000}, large})
                for (const bool atomic : {false, true}) {
                    if (atomic && size != 8) continue;
                    CAPTURE(path.name, unmapping, size, atomic);
                    const auto target = [&](Wire& wire) {
                        const Access access{.remote_read = true, .remote_atomic = true};
                        End end(*provider(), {.reliability = Reliability::ReliableDelivery, .access = access});
                        const Buffer buffer(end.node, size, path.memory, access);
                        end.serve(wire);
                        wire.send(buffer.remote());
                        require(end.port.lost(), "the connection breaks");
                        wire.await();
                    };
                    const auto initiator = [&](Wire& wire) {
                        prepare(path);
                        End end(*provider(), {.reliability = Reliability::ReliableDelivery});
                        const Mapped memory(end.node, size);
                        end.call(wire);
                        const auto remote = wire.receive<RemoteAddress>();
                        const Sge piece = memory.sge();
                        const SendRequest read = atomic ? fetch_add_of(2, piece, remote, 1) : read_of(2, piece, remote);
                        end.port.post(read);  // which may find the way that the next one takes
                        require(end.port.sent().code == CompletionCode::Success, "the first read");
                        memory.lose(unmapping);
                        end.port.post(read);
                        require(end.port.sent().code == CompletionCode::LocalProtection, "its memory is at fault");
                        wire.notify();
                    };
                    CHECK_NOTHROW(run_processes(target, initiator));
                }
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses,
                 "lost memory: unresolved page faults of the sender affect only the sender", "[hosts]") {
    if (backend.by_device) return;  // the pages are pinned when they are registered
    const int faults = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK));
    if (faults < 0) {
        WARN("userfaultfd(2) is not allowed here");
        return;
    }
    close(faults);
    const auto receiver = [&](Wire& wire) {
        End end(*provider());
        const Buffer buffer(end.node, large);
        const Sge piece = buffer.sge();
        end.port.post(receive_of(1, piece));
        end.serve(wire);
        // Polls during the sender's page fault, and serves another connection afterwards.
        for (bool fault_pending = false; !fault_pending;) {
            require(end.port.quiet(), "no message");
            pollfd news{.fd = wire.fd(), .events = POLLIN, .revents = 0};
            fault_pending = ::poll(&news, 1, 0) == 1;
        }
        wire.await();
        Connection connection(end.node, end.node);
        const Buffer mine(end.node, large);
        const Sge from = mine.sge();
        connection.server.post(receive_of(2, piece));
        connection.client.post(send_of(3, from));
        require(connection.server.received().code == CompletionCode::Success, "another message");
        require(end.port.quiet(), "no message still");
        end.port.endpoint->disconnect();
        wire.notify();
    };
    const auto sender = [&](Wire& wire) {
        End end(*provider());
        const Mapped source(end.node, large);
        end.call(wire);
        const int uffd = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK));
        uffdio_api api{.api = UFFD_API, .features = 0, .ioctls = 0};
        require(ioctl(uffd, UFFDIO_API, &api) == 0, "UFFDIO_API");
        uffdio_register range{};
        range.range = {.start = reinterpret_cast<std::uint64_t>(source.bytes().data()), .len = large};
        range.mode = UFFDIO_REGISTER_MODE_MISSING;
        require(ioctl(uffd, UFFDIO_REGISTER, &range) == 0, "UFFDIO_REGISTER");
        std::thread poster([&] {
            const Sge piece = source.sge();
            end.port.post(send_of(2, piece));  // may block, because its own pages are missing
            for (Completion completion;; (void)end.port.send_queue->poll({&completion, 1})) std::this_thread::yield();
        });
        pollfd fault{.fd = uffd, .events = POLLIN, .revents = 0};
        require(::poll(&fault, 1, -1) == 1, "a page fault");
        wire.notify();
        wire.await();
        die();  // the thread cannot be joined
    };
    CHECK_NOTHROW(run_processes(receiver, sender));
}

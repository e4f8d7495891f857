// SPDX-License-Identifier: BSD-3-Clause
// Memory windows with initiators in other processes.
#include "tests/contract/two_processes.hpp"
#include "tests/contract/windows.hpp"

using namespace viaduct;
using namespace viaduct::testing;

TEST_CASE_METHOD(EveryBackendBetweenProcesses,
                 "windows: work while the target process sleeps, on every path to its memory", "[hosts]") {
    if (!able().memory_windows) return;
    for (const Path& path : paths(backend)) {
        for (const std::size_t size : {std::size_t{8}, std::size_t{100'000}}) {
            CAPTURE(path.name, size);
            const auto initiator = [&](Wire& wire) {
                prepare(path);
                End end(*provider());
                const Buffer mine(end.node, size);
                end.call(wire);
                const auto shown = wire.receive<RemoteAddress>();
                const Sge from = mine.sge();
                const Sge word = mine.sge(0, 8);
                fill(mine.bytes(), 3);
                end.port.post(write_of(1, from, shown));
                require(end.port.sent().code == CompletionCode::Success, "write");
                end.port.post(atomic_of(2, word, shown));
                require(end.port.sent().code == CompletionCode::Success, "atomic write");
                end.port.post(read_of(3, from, shown));
                require(end.port.sent().code == CompletionCode::Success, "read");
                require(matches(mine.bytes(), 3), "what was read");
                wire.notify();
                wire.await();
                end.port.post(write_of(4, from, shown));
                require(end.port.sent().code == CompletionCode::RemoteProtection, "write with a stale key");
                wire.notify();
                wire.await();
            };
            const auto target = [&](Wire& wire) {
                prepare(path);
                End end(*provider());
                const Buffer theirs(end.node, size + 64, path.memory, closed);
                const auto window = must(MemoryWindow::create(end.node.domain));
                end.serve(wire);
                must(end.port.endpoint->bind(*window, part_of(1, theirs, 64, size)));
                require(end.port.sent().code == CompletionCode::Success, "bind");
                wire.send(RemoteAddress{theirs.remote(64).address, window->key()});
                wire.await();
                require(matches(theirs.bytes().subspan(64), 3), "what was written");
                must(end.port.endpoint->bind(*window, nothing(2)));
                require(end.port.sent().code == CompletionCode::Success, "unbind");
                wire.notify();
                wire.await();
                wire.notify();
            };
            CHECK_NOTHROW(run_processes(initiator, target));
        }
    }
}

// SPDX-License-Identifier: BSD-3-Clause
// Shared by the tests of memory windows.
#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "tests/contract/backends.hpp"

namespace viaduct::testing {

inline constexpr Access closed{};
inline constexpr Access open{.remote_write = true, .remote_read = true};
inline constexpr Access read_only{.remote_write = false, .remote_read = true};
inline constexpr Access write_only{.remote_write = true, .remote_read = false};

inline std::vector<WindowScope> scopes_of(const Node& node) {
    std::vector<WindowScope> scopes;
    if (node.able().memory_windows) scopes.push_back(WindowScope::Domain);
    if (node.able().invalidates) scopes.push_back(WindowScope::Endpoint);
    return scopes;
}

inline BindRequest part_of(std::uint64_t context, const Buffer& buffer, std::size_t offset, std::size_t length,
                           Access access = open) {
    BindRequest request;
    request.context = context;
    request.region = &buffer.region();
    request.address = buffer.bytes().data() + offset;
    request.length = length;
    request.access = access;
    return request;
}

inline BindRequest nothing(std::uint64_t context) {
    BindRequest request;
    request.context = context;
    return request;
}

/// A connection to an endpoint with a window onto memory that is otherwise inaccessible.
struct Stage {
    Stage(Node& near, Node& far, WindowScope scope, const PortOptions& options = {}, Memory memory = Memory::Heap)
        : connection(near, far, options),
          mine(near, 256),
          theirs(far, 256, memory, closed),
          window(must(MemoryWindow::create(far.domain, scope))) {
        fill(theirs.bytes(), 1);
        fill(mine.bytes(), 2);
    }

    Port& client() { return connection.client; }
    Port& server() { return connection.server; }

    Completion bind(const BindRequest& request) {
        must(server().endpoint->bind(*window, request));
        return server().sent();
    }

    /// Binds the window to bytes 64 to 128 and returns their address.
    RemoteAddress show(Access access = open) {
        CHECK(bind(part_of(1, theirs, 64, 64, access)).code == CompletionCode::Success);
        return at(64);
    }
    RemoteAddress at(std::size_t offset) const { return {theirs.remote(offset).address, window->key()}; }

    CompletionCode write(const RemoteAddress& to, std::size_t length = 8) { return write(client(), to, length); }
    CompletionCode read(const RemoteAddress& from, std::size_t length = 8) {
        const Sge piece = mine.sge(0, length);
        client().post(read_of(3, piece, from));
        return client().sent().code;
    }

    /// Writes with another endpoint.
    CompletionCode write(Port& port, const RemoteAddress& to, std::size_t length = 8) {
        const Sge piece = mine.sge(0, length);
        port.post(write_of(2, piece, to));
        return port.sent().code;
    }

    Connection connection;
    Buffer mine;
    Buffer theirs;
    std::unique_ptr<MemoryWindow> window;
};

}  // namespace viaduct::testing

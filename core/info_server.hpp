// SPDX-License-Identifier: BSD-3-Clause
// Answers questions of other processes of the same user; see introspection.hpp.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "core/base/fork.hpp"
#include "core/base/unique_fd.hpp"
#include "viaduct/deadline.hpp"
#include "viaduct/status.hpp"

namespace viaduct {

/// The beginning of the names of the sockets of this user, without the NUL of abstract names.
std::string info_socket_prefix();

/// Never blocks. Whoever connects gets a document and is hung up on. Those that do not read it in time are dropped, and
/// so is the one that has waited longest if there are too many.
class InfoServer {
public:
    /// Binds the socket. Errors of the system; the process is then not found by others.
    Status open() noexcept;
    void close() noexcept;

    /// Readable when serve() has something to do.
    int fd() const noexcept { return epoll_.get(); }
    void serve() noexcept;

private:
    struct Client {
        UniqueFd socket;
        std::shared_ptr<const std::string> document;
        std::size_t written = 0;
        Deadline until = Deadline::never();
    };

    void close_locked() noexcept;
    static void close_inherited(void* server) noexcept { static_cast<InfoServer*>(server)->close_locked(); }
    Status listen();  // throws std::bad_alloc
    bool watch(int fd, std::uint32_t events, std::uint64_t number) noexcept;
    void accept_clients();
    void greet(UniqueFd socket, const std::shared_ptr<const std::string>& document);
    void write(Client& client) noexcept;
    void drop_late() noexcept;
    void pause() noexcept;

    ProcessMutex mutex_{close_inherited, this};  // guards the members below
    UniqueFd epoll_;
    UniqueFd listener_;
    UniqueFd timer_;
    bool paused_ = false;  // the listener is not watched
    std::array<Client, 16> clients_;
};

InfoServer& info_server();

}  // namespace viaduct

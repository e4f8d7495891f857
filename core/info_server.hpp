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
    int fd() noexcept {
        const LockGuard guard(mutex_);
        return epoll_.get();
    }
    void serve() noexcept;

private:
    struct Client {
        UniqueFd socket;
        std::shared_ptr<const std::string> document;
        std::size_t written = 0;
        Deadline until = Deadline::never();
    };

    void close_locked() noexcept VIADUCT_REQUIRES(mutex_);
    static void close_inherited(void* server) noexcept;
    Status listen() VIADUCT_REQUIRES(mutex_);  // throws std::bad_alloc
    bool watch(int fd, std::uint32_t events, std::uint64_t number) noexcept VIADUCT_REQUIRES(mutex_);
    void accept_clients() VIADUCT_REQUIRES(mutex_);
    void greet(UniqueFd socket, const std::shared_ptr<const std::string>& document) VIADUCT_REQUIRES(mutex_);
    void write(Client& client) noexcept VIADUCT_REQUIRES(mutex_);
    void drop_late() noexcept VIADUCT_REQUIRES(mutex_);
    void pause() noexcept VIADUCT_REQUIRES(mutex_);

    ProcessMutex mutex_{close_inherited, this};
    UniqueFd epoll_ VIADUCT_GUARDED_BY(mutex_);
    UniqueFd listener_ VIADUCT_GUARDED_BY(mutex_);
    UniqueFd timer_ VIADUCT_GUARDED_BY(mutex_);
    bool paused_ VIADUCT_GUARDED_BY(mutex_) = false;  // the listener is not watched
    std::array<Client, 16> clients_ VIADUCT_GUARDED_BY(mutex_);
};

InfoServer& info_server();

}  // namespace viaduct

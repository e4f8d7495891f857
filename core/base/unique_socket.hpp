// SPDX-License-Identifier: BSD-3-Clause
// Ownership of a socket.
#pragma once

#include <cerrno>

#include "core/base/fork.hpp"
#include "core/base/unique_fd.hpp"

namespace viaduct {

/// Owns the descriptor of a socket, which no forked child keeps. Otherwise the peer would not notice the end of this
/// process while a child lives.
class UniqueSocket {
public:
    UniqueSocket() noexcept = default;
    /// Calls open(), which returns a descriptor, or -1 and sets errno. If the result is empty, errno says why.
    static UniqueSocket made_by(auto open) noexcept {
        const ForkHold hold;
        UniqueSocket made;
        made.fd_ = UniqueFd(open());
        if (!made.fd_) return made;
        made.in_children_ = ClosedInChildren(hold, made.fd_.get());
        if (made.in_children_) return made;
        made.fd_.reset();
        errno = ENOMEM;
        return made;
    }
    UniqueSocket(UniqueSocket&&) noexcept = default;
    UniqueSocket& operator=(UniqueSocket&&) noexcept = default;  // swaps
    ~UniqueSocket() { reset(); }

    /// -1: none.
    int get() const noexcept { return fd_.get(); }
    explicit operator bool() const noexcept { return static_cast<bool>(fd_); }
    void reset() noexcept {
        if (!fd_) return;
        const ForkHold hold;
        in_children_.reset(hold);
        fd_.reset();
    }

private:
    UniqueFd fd_;
    ClosedInChildren in_children_;
};

}  // namespace viaduct

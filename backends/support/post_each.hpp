// SPDX-License-Identifier: BSD-3-Clause
// Posting several requests, or one as if it were several.
#pragma once

#include <cstddef>
#include <span>

#include "core/backend.hpp"
#include "viaduct/detail/mutex.hpp"
#include "viaduct/status.hpp"

namespace viaduct::support {

/// Calls `post` with each request, until one cannot be posted. Unchecked: the caller holds the locks that `post` needs.
/// `posted`: see backend::Endpoint::post_send().
template <class Request, class Post>
[[gnu::always_inline]] inline Status post_each(std::span<const Request> requests, std::size_t& posted,
                                               Post post) VIADUCT_UNCHECKED {
    posted = 0;
    for (const Request& request : requests) {
        if (const Status status = post(request); !status.ok()) return status;
        ++posted;
    }
    return {};
}

/// Posts a request by the function of the queue that posts several. The result: as backend::kept().
template <class Queue, class Request>
[[gnu::noinline]] const Status* post_generally(Queue& queue, const Request& request) noexcept {
    std::size_t posted = 0;
    return backend::kept(queue.post(std::span(&request, 1), posted));
}

/// The same for a request of one piece. `remote`: the address and the key of an RDMA operation; none for a send.
template <Opcode opcode, class Queue, class... Remote>
[[gnu::noinline]] const Status* post_one_generally(Queue& queue, std::uint64_t context, void* address,
                                                   std::uint32_t length, std::uint32_t key, Remote... remote) noexcept {
    const Sge piece{address, key, length};
    return post_generally(
        queue, SendRequest{.context = context, .opcode = opcode, .remote = {remote...}, .sges = {&piece, 1}});
}

template <class Queue>
[[gnu::noinline]] const Status* receive_one_generally(Queue& queue, std::uint64_t context, void* address,
                                                      std::uint32_t length, std::uint32_t key) noexcept {
    const Sge piece{address, key, length};
    return post_generally(queue, ReceiveRequest{.context = context, .sges = {&piece, 1}});
}

}  // namespace viaduct::support

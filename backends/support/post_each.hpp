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

}  // namespace viaduct::support

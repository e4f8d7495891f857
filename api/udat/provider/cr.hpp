// SPDX-License-Identifier: BSD-3-Clause
// Pending connection requests.
#pragma once

#include <vector>

#include "api/udat/provider/ep.hpp"
#include "api/udat/provider/object.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::dat {

class Cr final : public Object {
public:
    static constexpr DAT_HANDLE_TYPE handle_type = DAT_HANDLE_TYPE_CR;

    /// `local_port` is that of the service point.
    Cr(Ia& ia, const ConnectionRequest& request, std::uint16_t local_port);

    /// Stores the request. Called last, when nothing can fail any more.
    void keep(Owned<ConnectionRequest> request) noexcept { request_ = std::move(request); }

    /// Sets the only endpoint that may accept the request. Null, the initial value: the consumer provides one.
    void reserve(Ep* ep) noexcept { ep_ = Use<Ep>(ep); }

    /// Called when the request was answered, so that the consumer may free the endpoint.
    void let_go() noexcept { ep_ = {}; }

    ConnectionRequest& request() noexcept { return *request_; }
    Ep* ep() const noexcept { return ep_.get(); }
    const sockaddr_storage& remote() const noexcept { return remote_; }
    DAT_PORT_QUAL remote_port() const noexcept { return remote_port_; }
    std::uint16_t local_port() const noexcept { return local_port_; }
    void query(DAT_CR_PARAM_MASK mask, DAT_CR_PARAM& param) noexcept;

    /// Calls a function that answers the request, which one thread at a time does. Once it has succeeded, all others
    /// get DAT_INVALID_HANDLE.
    DAT_RETURN answer(auto function) {
        const LockGuard answering(answering_);
        if (request_ == nullptr)
            return invalid_handle(DAT_INVALID_HANDLE_CR, "another thread has answered the request");
        const DAT_RETURN result = function(*this);
        if (result == success) (void)release();
        return result;
    }

    /// Releases the request, for another service point, and the endpoint that was reserved for it.
    Owned<ConnectionRequest> release() noexcept;

    /// Refuses the request, if nobody has answered it, as if the service had no listener.
    void refuse(const char* why) noexcept;
    void close() noexcept override;

private:
    Mutex answering_;                   // held while the request is answered
    Owned<ConnectionRequest> request_;  // null when it is answered
    Use<Ep> ep_;
    sockaddr_storage remote_;
    DAT_PORT_QUAL remote_port_;
    const std::uint16_t local_port_;
    std::vector<std::uint8_t> private_data_;  // the consumer may write to it
};

}  // namespace viaduct::dat

// SPDX-License-Identifier: BSD-3-Clause
// Service points, which listen for connection requests. Public ones accept any number of requests, reserved ones accept
// one request for a given endpoint, and common ones are identified by a socket address.
#pragma once

#include <memory>

#include "api/udat/provider/ep.hpp"
#include "api/udat/provider/evd.hpp"
#include "api/udat/provider/object.hpp"

namespace viaduct::dat {

/// Logs why a request was refused or rejected.
void log_refusal(const ConnectionRequest& request, const char* why) noexcept;

/// Refuses a request of which the consumer will not learn, because its event is lost.
void refuse_unheard(DAT_CR_HANDLE cr, const char* why) noexcept;

class ServicePoint : public Object {
public:
    int fd() const noexcept { return listener_->fd(); }
    DAT_CONN_QUAL conn_qual() const noexcept { return conn_qual_; }
    DAT_EVD_HANDLE evd() const noexcept { return evd_.handle(); }

    /// Creates a service point. DAT_CONN_QUAL_IN_USE: the port is already in use.
    template <class T>
    static DAT_RETURN launch(std::unique_ptr<T> point, DAT_HANDLE& handle);

    enum class Answer : std::uint8_t {
        Taken,
        Later,     ///< a request is pending but cannot be taken now
        Lost,      ///< the device was removed
        Finished,  ///< a reserved service point has reported its request; finish() is next
    };

    /// Takes the pending requests and reports each of them. Called by the acceptor, which drops the service point if it
    /// is lost or finished.
    Answer on_request() noexcept;

    /// Destroys a finished service point, unless the consumer frees it at the same time.
    void finish() noexcept;

    /// Reports a request that arrived here or was handed off. If that fails, refuses it and returns false.
    bool receive(Owned<ConnectionRequest> request) noexcept;

protected:
    ServicePoint(Ia& ia, DAT_HANDLE_TYPE type, DAT_CONN_QUAL qual, Evd& evd);

    /// Creates an endpoint for a request.
    Ep* make_endpoint();

    /// Stops taking requests. Must be called by the destructors of derived classes.
    void stop() noexcept;

private:
    DAT_RETURN listen();

    /// Returns the endpoint for the next request, or null if the consumer provides one.
    virtual Ep* provide_endpoint() { return nullptr; }
    virtual DAT_SP_HANDLE sp_handle() const noexcept = 0;
    void report(DAT_CR_HANDLE cr) noexcept;

    const DAT_CONN_QUAL conn_qual_;
    Use<Evd> evd_;
    std::unique_ptr<Listener> listener_;
};

class Psp final : public ServicePoint {
public:
    static constexpr DAT_HANDLE_TYPE handle_type = DAT_HANDLE_TYPE_PSP;

    Psp(Ia& ia, DAT_CONN_QUAL qual, Evd& evd, DAT_PSP_FLAGS flags)
        : ServicePoint(ia, handle_type, qual, evd), flags_(flags) {}
    ~Psp() override { stop(); }
    void query(DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM& param) const noexcept;

private:
    Ep* provide_endpoint() override;
    DAT_SP_HANDLE sp_handle() const noexcept override { return {.psp_handle = handle()}; }

    const DAT_PSP_FLAGS flags_;
};

/// Destroyed by its first request. The event contains no service point (dat_rsp_create(3DAT)).
class Rsp final : public ServicePoint {
public:
    static constexpr DAT_HANDLE_TYPE handle_type = DAT_HANDLE_TYPE_RSP;

    /// `ep`: null if the provider creates an endpoint for the request.
    Rsp(Ia& ia, DAT_CONN_QUAL qual, DAT_EP_HANDLE ep, Evd& evd)
        : ServicePoint(ia, handle_type, qual, evd), ep_handle_(ep) {}
    ~Rsp() override;
    /// Reserves the endpoint, before the service point is launched.
    DAT_RETURN reserve(Ep* ep);
    void query(DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM& param) const noexcept;

private:
    Ep* provide_endpoint() override;
    DAT_SP_HANDLE sp_handle() const noexcept override { return {.rsp_handle = DAT_HANDLE_NULL}; }

    const DAT_EP_HANDLE ep_handle_;
    Use<Ep> ep_;  // until the request takes it
};

class Csp final : public ServicePoint {
public:
    static constexpr DAT_HANDLE_TYPE handle_type = DAT_HANDLE_TYPE_CSP;

    Csp(Ia& ia, const DAT_COMM& comm, std::uint16_t port, Evd& evd);
    ~Csp() override { stop(); }
    void query(DAT_CSP_PARAM_MASK mask, DAT_CSP_PARAM& param) noexcept;

private:
    DAT_SP_HANDLE sp_handle() const noexcept override { return {.csp_handle = handle()}; }

    DAT_COMM comm_;
    sockaddr_storage address_;
};

}  // namespace viaduct::dat

// SPDX-License-Identifier: BSD-3-Clause
// How connections are made: what a client asks for, and the listeners and requests of a server.
#pragma once

#include <chrono>
#include <cstdint>

#include "viaduct/attributes.hpp"
#include "viaduct/deadline.hpp"
#include "viaduct/detail/owned.hpp"
#include "viaduct/events.hpp"
#include "viaduct/status.hpp"

namespace viaduct {

namespace backend {
class Endpoint;
}

/// What an RDMA device sends with a connection request and with the reply. The backends loopback and tcp always send
/// everything.
enum class Framing : std::uint8_t {
    Full,  ///< attributes, addresses and private data
    Bare,  ///< private data only, for peers that use the RDMA connection manager directly; services are two bytes long
};

/// Whom to connect to, and how.
struct ConnectParameters {
    enum class Model : std::uint8_t {
        ClientServer,  ///< the remote service has a listener
        PeerToPeer,    ///< both sides connect to each other
    };
    Model model = Model::ClientServer;
    Address local;   ///< sent to the peer; the host is that of the device, or left empty
    Address remote;  ///< the host and the service to connect to
    PrivateData private_data;
    Deadline deadline = Deadline::never();
    Framing framing = Framing::Full;
    /// If the server drops the request without an answer and the device notices it: whether the attempt ends at once,
    /// as Unreachable, instead of at the deadline.
    bool ends_if_dropped = false;
    /// How long to repeat the request if the service has no listener yet, unless VIADUCT_CONNECT_RETRY_MS is set. The
    /// deadline applies as well.
    std::chrono::milliseconds grace{0};
};

/// Whether a service may have several listeners.
enum class Sharing : std::uint8_t {
    Shared,     ///< yes, in one or several processes; each request goes to one of them
    Exclusive,  ///< no: listen() fails if the service has a listener
};

/// A connection request from a peer. It is answered at most once: by Endpoint::accept(), reject() or conflict(). If it
/// is destroyed without an answer, the peer waits until its deadline (but see ends_if_dropped); if the process ends,
/// the peer may also be refused. A request may outlive its listener, but not its device. Thread-safe.
class ConnectionRequest {
public:
    virtual ~ConnectionRequest() = default;

    /// The `local` address of the peer.
    virtual const Address& remote_address() const noexcept = 0;

    /// The attributes of the peer's endpoint; the defaults if its framing is Bare.
    virtual const EndpointAttributes& remote_attributes() const noexcept = 0;

    /// What the peer sent as private data. With the framing Bare, zeros may follow it.
    virtual const PrivateData& private_data() const noexcept = 0;

    /// Refuses the request: the peer gets Rejected with `private_data`. Returns Ok even if the peer has given up or the
    /// request has been answered. NoResources: the request is not answered, and the call can be repeated.
    /// InvalidParameter: the same; the device cannot send that much private data with an answer.
    virtual Status reject(const PrivateData& private_data) noexcept = 0;

    /// Refuses the request because compatible() says that the attributes of the peer do not match `own`: the peer gets
    /// Conflict. If there is no conflict in its view, it gets Rejected. Errors as reject().
    virtual Status conflict(const EndpointAttributes& own) noexcept = 0;

private:
    friend struct Internals;

    /// Refuses the request as if the service had no listener: the peer gets Rejected with the reason NoListener. If its
    /// framing is Bare, it gets Rejected without a reason. Errors as reject().
    virtual Status refuse() noexcept = 0;

    /// Names another service as the one that accepts the request. The peer finds it in `remote_address` of the event
    /// Established. Without effect if the framing is Bare.
    virtual void redirect(const Service& service) noexcept = 0;

    /// What Endpoint::accept() calls. Connects an idle endpoint. The observer of the endpoint gets Established, without
    /// attributes of the peer, before this function returns, and before any other event of the connection. If the
    /// device does not order the messages of different connections, an event that the peer causes at another endpoint
    /// may be reported before it. TimedOut: the peer has given up, or the request has been answered. InvalidState:
    /// the endpoint is not idle; the request can still be accepted with another endpoint.
    virtual Status accept(backend::Endpoint& endpoint, const PrivateData& private_data) noexcept = 0;
};

/// Receives the requests for one service as long as it exists. Requests that are left when it is destroyed are refused:
/// their peers get Rejected with the reason NoListener. A listener must not outlive its device. Thread-safe.
class VIADUCT_EXPORT Listener {
public:
    virtual ~Listener() = default;

    /// For poll(2) and epoll(7): becomes readable when a request may be waiting. Owned by the listener.
    virtual int fd() const noexcept = 0;

    /// Takes the next request; never blocks. A child that is forked later does not refuse it. WouldBlock: none is
    /// waiting; with EINPROGRESS, a peer has connected and has yet to send its request. Unreachable: the device is
    /// gone, and no further request will arrive.
    virtual Result<Owned<ConnectionRequest>> next_request() noexcept = 0;

    /// Waits for it. TimedOut: the deadline has passed. Unreachable: as above.
    virtual Result<Owned<ConnectionRequest>> next_request(const Deadline& deadline);
};

}  // namespace viaduct

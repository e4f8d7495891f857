// SPDX-License-Identifier: BSD-3-Clause
#include "tools/measure/rpma_api.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "core/base/event_channel.hpp"
#include "core/base/wait_until.hpp"
#include "tools/measure/core_api.hpp"
#include "tools/measure/target.hpp"

namespace viaduct::measure {
namespace {

/// Calls a function of librpma that makes an object.
template <class Owner, class Create>
Owner make(const char* call, Create create) {
    typename Owner::pointer object = nullptr;
    check_rpma(call, create(&object));
    return Owner(object);
}

constexpr int flush_usage = RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;

/// The descriptor of a region (rpma_mr_get_descriptor(3)): 21 bytes, little endian.
class RegionDescriptor {
public:
    explicit RegionDescriptor(const rpma_mr_local* region) {
        check_rpma("rpma_mr_get_descriptor", rpma_mr_get_descriptor(region, bytes_.data()));
    }

    /// Memory of a peer that told no more than where it is. Whether an operation stays within it, the peer checks.
    explicit RegionDescriptor(const RemoteAddress& place) {
        store(address_at, place.address);
        store(size_at, std::uint64_t{std::numeric_limits<std::uint32_t>::max()});
        store(key_at, place.key);
        store(usage_at, std::uint8_t{RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST | flush_usage});
    }

    std::uint32_t key() const noexcept {
        std::uint32_t key = 0;
        for (std::size_t i = sizeof key; i-- != 0;) key = key << 8 | bytes_[key_at + i];
        return key;
    }

    const std::array<std::uint8_t, 21>& bytes() const noexcept { return bytes_; }

private:
    static constexpr std::size_t address_at = 0, size_at = 8, key_at = 16, usage_at = 20;

    template <class Integer>
    void store(std::size_t at, Integer value) noexcept {
        for (std::size_t i = 0; i < sizeof value; ++i) bytes_[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
    }

    std::array<std::uint8_t, 21> bytes_{};
};

const char* reason_of(ibv_wc_status status) {
    switch (status) {
        case IBV_WC_LOC_LEN_ERR: return "length error";
        case IBV_WC_LOC_PROT_ERR: return "protection error";
        case IBV_WC_REM_ACCESS_ERR: return "protection error at the peer";
        case IBV_WC_REM_INV_REQ_ERR: return "the peer had no suitable receive";
        case IBV_WC_LOC_QP_OP_ERR: return "malformed request";
        default: return "unknown error";
    }
}

/// The port that is a service.
std::string port_text(const Service& service) {
    const auto bytes = service.span();
    if (bytes.size() != sizeof(std::uint16_t)) throw Error("librpma services must be numbers from 0 to 65535");
    return std::to_string(bytes[0] << 8 | bytes[1]);
}

class RpmaListener final : public Listener {
public:
    RpmaListener(const RpmaApi& api, const Service& service) {
        const std::string host = text_of(api.device().host);
        const std::string port = port_text(service);
        endpoint_ = make<RpmaEndpoint>("rpma_ep_listen", [&](rpma_ep** endpoint) {
            return rpma_ep_listen(api.peer(), host.c_str(), port.c_str(), endpoint);
        });
        check_rpma("rpma_ep_get_fd", rpma_ep_get_fd(endpoint_.get(), &fd_));
        // A request may be withdrawn between the look at the descriptor and the call that takes it.
        fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) | O_NONBLOCK);
    }

    bool accept(Link& link, Timeout timeout) override {
        EventPoller idle;
        return await_readable_soon(fd_, Deadline::after(timeout), idle) &&
               static_cast<RpmaLink&>(link).accept(endpoint_.get());
    }

private:
    RpmaEndpoint endpoint_;
    int fd_ = -1;
};

}  // namespace

void fail_rpma(const char* call, int result) { throw Error(std::string(call) + ": " + rpma_err_2str(result)); }

// What a device can do is not told by librpma.
RpmaApi::RpmaApi(std::uint32_t device) : Api("rpma", CoreApi(device).device()) {
    info_.max_service_bytes = sizeof(std::uint16_t);
    info_.max_segments = 1;
    info_.max_batch = 1;
    info_.reliabilities = {Reliability::ReliableDelivery};
    std::erase_if(info_.operations, is_fetching);
    rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
    ibv_context* context = nullptr;
    check_rpma("rpma_utils_get_ibv_context",
               rpma_utils_get_ibv_context(text_of(info_.host).c_str(), RPMA_UTIL_IBV_CONTEXT_LOCAL, &context));
    peer_ = make<RpmaPeer>("rpma_peer_new", [&](rpma_peer** peer) { return rpma_peer_new(context, peer); });
}

std::unique_ptr<Region> RpmaApi::register_memory(std::span<std::byte> memory) {
    constexpr int usage = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC |
                          RPMA_MR_USAGE_WRITE_DST | flush_usage | RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV;
    auto region = std::make_unique<RpmaRegion>();
    region->object = make<RpmaMemory>("rpma_mr_reg", [&](rpma_mr_local** object) {
        return rpma_mr_reg(peer(), memory.data(), memory.size(), usage, object);
    });
    region->begin = memory.data();
    region->key = RegionDescriptor(region->object.get()).key();
    return region;
}

std::unique_ptr<Link> RpmaApi::create_link(const LinkOptions& options) {
    return std::make_unique<RpmaLink>(*this, options);
}

std::unique_ptr<Listener> RpmaApi::listen(const Service& service) {
    return std::make_unique<RpmaListener>(*this, service);
}

RpmaLink::RpmaLink(RpmaApi& api, const LinkOptions& options)
    : api_(api),
      configuration_(make<RpmaConfiguration>("rpma_conn_cfg_new", rpma_conn_cfg_new)),
      has_receive_queue_(!options.bare) {
    const std::uint32_t sends = options.bare ? 1 : options.send_depth;
    const std::uint32_t receives = options.bare ? 1 : options.receive_depth;
    rpma_conn_cfg* configuration = configuration_.get();
    check_rpma("rpma_conn_cfg_set_sq_size", rpma_conn_cfg_set_sq_size(configuration, sends));
    check_rpma("rpma_conn_cfg_set_rq_size", rpma_conn_cfg_set_rq_size(configuration, receives));
    check_rpma("rpma_conn_cfg_set_cq_size", rpma_conn_cfg_set_cq_size(configuration, sends));
    if (has_receive_queue_)
        check_rpma("rpma_conn_cfg_set_rcq_size", rpma_conn_cfg_set_rcq_size(configuration, receives));
}

void RpmaLink::connect(const Address& remote, Timeout timeout) {
    const std::string host = text_of(remote.host);
    const std::string port = port_text(remote.service);
    const auto deadline = Deadline::after(timeout);
    const auto timeout_ms = std::clamp<Timeout::rep>(timeout.count(), 1, std::numeric_limits<int>::max());
    check_rpma("rpma_conn_cfg_set_timeout",
               rpma_conn_cfg_set_timeout(configuration_.get(), static_cast<int>(timeout_ms)));
    auto request = make<RpmaRequest>("rpma_conn_req_new", [&](rpma_conn_req** made) {
        return rpma_conn_req_new(api_.peer(), host.c_str(), port.c_str(), configuration_.get(), made);
    });
    check_rpma("rpma_conn_req_connect", start(std::move(request)));
    const auto event = next_event();
    if (event == RPMA_CONN_ESTABLISHED) return open_inboxes();
    connection_.reset();
    if (event == RPMA_CONN_REJECTED) throw NoListener("there is no listener, or the server refused the connection");
    if (event == RPMA_CONN_LOST || event == RPMA_CONN_CLOSED)
        throw Error("the server became unreachable during connection setup");
    if (!deadline.passed()) throw Error(not_reached);
    throw TimedOut("no answer in time");
}

bool RpmaLink::accept(rpma_ep* endpoint) {
    rpma_conn_req* request = nullptr;
    const int taken = rpma_ep_next_conn_req(endpoint, configuration_.get(), &request);
    if (taken == RPMA_E_NO_EVENT) return false;
    check_rpma("rpma_ep_next_conn_req", taken);
    const int started = start(RpmaRequest(request));
    if (started == RPMA_E_PROVIDER) return false;
    check_rpma("rpma_conn_req_connect", started);
    if (next_event() != RPMA_CONN_ESTABLISHED) {
        connection_.reset();
        return false;
    }
    open_inboxes();
    return true;
}

/// Posts the receives that came before, and begins to connect; returns the result of rpma_conn_req_connect.
int RpmaLink::start(RpmaRequest request) {
    for (const Piece& piece : early_receives_)
        check_rpma("rpma_conn_req_recv",
                   rpma_conn_req_recv(request.get(), local(piece), offset_of(piece), piece.length, nullptr));
    rpma_conn_req* consumed = request.release();
    rpma_conn* connection = nullptr;
    const int result = rpma_conn_req_connect(&consumed, nullptr, &connection);
    connection_.reset(connection);
    return result;
}

/// One comes, because the library limits the time of an attempt on both sides. RPMA_CONN_UNDEFINED: a signal came
/// first.
rpma_conn_event RpmaLink::next_event() const {
    rpma_conn_event event = RPMA_CONN_UNDEFINED;
    const int taken = rpma_conn_next_event(connection_.get(), &event);
    if (taken != RPMA_E_NO_EVENT) check_rpma("rpma_conn_next_event", taken);
    return event;
}

void RpmaLink::open_inboxes() {
    early_receives_.clear();
    check_rpma("rpma_conn_get_cq", rpma_conn_get_cq(connection_.get(), &sends_.queue));
    // What is measured is the flush, whether or not the peer's memory is persistent.
    const auto peer = make<RpmaPeerConfiguration>("rpma_peer_cfg_new", rpma_peer_cfg_new);
    check_rpma("rpma_peer_cfg_set_direct_write_to_pmem", rpma_peer_cfg_set_direct_write_to_pmem(peer.get(), true));
    check_rpma("rpma_conn_apply_remote_peer_cfg", rpma_conn_apply_remote_peer_cfg(connection_.get(), peer.get()));
    if (has_receive_queue_) check_rpma("rpma_conn_get_rcq", rpma_conn_get_rcq(connection_.get(), &receives_.queue));
}

void RpmaLink::disconnect() noexcept {
    if (connection_ == nullptr) return;
    rpma_conn_disconnect(connection_.get());
    connection_.reset();
    for (Inbox* inbox : {&sends_, &receives_}) {
        inbox->queue = nullptr;
        inbox->fd = -1;
    }
}

const ibv_wc* RpmaLink::await(Inbox& inbox, Timeout timeout) {
    const auto deadline = Deadline::after(timeout);
    const auto spin_end = std::min(Deadline::Clock::now() + spin_time(), deadline.point());
    do {
        if (const ibv_wc* completion = take(inbox)) return completion;
    } while (Deadline::Clock::now() < spin_end);
    while (sleep(inbox, deadline))
        if (const ibv_wc* completion = take(inbox)) return completion;
    return nullptr;
}

/// Sleeps until the queue may have completions. False: the time is up.
bool RpmaLink::sleep(Inbox& inbox, const Deadline& deadline) {
    // rpma_cq_wait(3) knows no timeout.
    if (inbox.fd == -1) check_rpma("rpma_cq_get_fd", rpma_cq_get_fd(inbox.queue, &inbox.fd));
    if (!await_readable(inbox.fd, deadline)) return !deadline.passed();
    const int result = rpma_cq_wait(inbox.queue);
    if (result != RPMA_E_NO_COMPLETION) check_rpma("rpma_cq_wait", result);
    return true;
}

void RpmaLink::learn_remote(const RemoteAddress& place) {
    const RegionDescriptor descriptor(place);
    remote_ = make<RpmaRemoteMemory>("rpma_mr_remote_from_descriptor", [&](rpma_mr_remote** remote) {
        return rpma_mr_remote_from_descriptor(descriptor.bytes().data(), descriptor.bytes().size(), remote);
    });
    remote_address_ = place;
}

void RpmaLink::fail(ibv_wc_status status) {
    if (status == IBV_WC_WR_FLUSH_ERR || status == IBV_WC_RETRY_EXC_ERR) throw Closed("the connection is closed");
    throw Error(std::string("a request failed: ") + reason_of(status));
}

}  // namespace viaduct::measure

// SPDX-License-Identifier: BSD-3-Clause
#include "api/rpma/conn.hpp"

#include "api/rpma/translate.hpp"
#include "core/explain.hpp"
#include "core/frontend.hpp"
#include "core/request_terms.hpp"

namespace viaduct::rpma {
namespace {

/// How long InfiniBand's connection manager waits for an answer before it gives up.
constexpr std::chrono::seconds patience(67);

/// The length of private data is a uint8_t.
constexpr std::size_t max_private_data = 255;

/// Checks that the device supports these sizes.
Status check_sizes(const ConnSettings& settings, const DeviceAttributes& device) noexcept {
    struct Size {
        const char* name;
        std::uint32_t wanted;
        std::uint32_t limit;
    };
    if (settings.cq_size == 0) return {Code::InvalidParameter, "cq_size is 0"};
    for (const Size& size : {Size{"cq_size", settings.cq_size, device.max_completions},
                             Size{"rcq_size", settings.rcq_size, device.max_completions},
                             Size{"sq_size", settings.sq_size, device.max_queue_depth},
                             Size{"rq_size", settings.rq_size, device.max_queue_depth}})
        if (size.wanted > size.limit)
            return {Code::InvalidParameter, explain("%s is %u, the limit of %s is %u", size.name, size.wanted,
                                                    device.name.c_str(), size.limit)};
    return {};
}

}  // namespace

Conn::Conn(std::shared_ptr<ProtectionDomain> domain, const ConnSettings& settings)
    : domain_(std::move(domain)), timeout_ms_(settings.timeout_ms), qp_number_(handles.number_of(handle()) + 1) {}

int Conn::create(const std::shared_ptr<ProtectionDomain>& domain, const ConnSettings& settings,
                 std::unique_ptr<Conn>& conn) {
    const Srq* srq = resolve<Srq>(settings.srq);
    if (settings.srq != nullptr && srq == nullptr)
        return failed(RPMA_E_INVAL, "the configuration has a queue that was deleted");
    if (srq != nullptr && srq->rcq() != nullptr && settings.shared_channel)
        return failed(RPMA_E_INVAL,
                      "a shared channel cannot be used with a shared receive queue that has a completion queue");
    if (srq != nullptr && srq->domain() != domain)
        return failed({Code::InvalidParameter, "the shared receive queue belongs to another peer"});
    if (const Status status = check_sizes(settings, domain->device()->attributes()); !status.ok())
        return failed(status);
    std::unique_ptr<Conn> created(new Conn(domain, settings));
    if (const Status status = created->create_queues(settings, srq); !status.ok()) return failed(status);
    if (const Status status = created->create_endpoint(settings, srq); !status.ok()) return failed(status);
    conn = std::move(created);
    return 0;
}

/// Creates queues that are large enough to lose nothing if the program takes completions late.
Status Conn::create_queues(const ConnSettings& settings, const Srq* srq) {
    const auto& device = domain_->device();
    const bool srq_has_queue = srq != nullptr && srq->rcq() != nullptr;
    const bool separate = settings.rcq_size != 0 && !srq_has_queue;
    const std::uint32_t receives = srq == nullptr ? settings.rq_size : srq->depth();
    const std::uint32_t in_main = settings.sq_size + (separate || srq_has_queue ? 0 : receives);
    std::shared_ptr<CompletionChannel> channel;
    if (settings.shared_channel) {
        auto made = make_channel(device);
        if (!made.ok()) return made.status();
        channel = std::move(*made);
    }
    auto cq = Cq::create(device, std::max(settings.cq_size, in_main), channel);
    if (!cq.ok()) return cq.status();
    cq_ = std::move(*cq);
    cq_->follow(end_reported_);
    if (!separate) return {};
    auto rcq = Cq::create(device, std::max(settings.rcq_size, receives), channel);
    if (!rcq.ok()) return rcq.status();
    rcq_ = std::move(*rcq);
    rcq_->follow(end_reported_);
    return {};
}

Status Conn::create_endpoint(const ConnSettings& settings, const Srq* srq) {
    const Cq& receive_cq = srq != nullptr && srq->rcq() != nullptr ? *srq->rcq() : rcq_ != nullptr ? *rcq_ : *cq_;
    auto endpoint = Endpoint::create({
        .attributes = attributes,
        .domain = domain_,
        .send_queue = cq_->queue(),
        .receive_queue = receive_cq.queue(),
        .shared_receives = srq == nullptr ? nullptr : srq->queue(),
        .send_depth = settings.sq_size,
        .receive_depth = settings.rq_size,
        .max_sges = 1,
        .context = qp_number_,
        .observer = this,
        .after_refusal = EndpointState::Disconnected,
    });
    if (!endpoint.ok()) return endpoint.status();
    endpoint_ = std::move(*endpoint);
    return {};
}

/// Calls must not see the work that the end of the endpoint flushes.
Conn::~Conn() {
    for (Cq* queue : {cq_.get(), rcq_.get()})
        if (queue != nullptr) queue->end_calls();
}

int Conn::connect(const Address& remote, const PrivateData& private_data) noexcept {
    const Address local{.host = device().attributes().host, .service = {}};
    const Status status = endpoint_->connect({
        .local = local,
        .remote = remote,
        .private_data = private_data,
        .deadline =
            timeout_ms_ < 0 ? Deadline::after(patience) : Deadline::after(std::chrono::milliseconds(timeout_ms_)),
        .framing = Framing::Bare,
        .ends_if_dropped = true,
        .grace = short_grace,
    });
    return status.ok() ? 0 : failed(status);
}

int Conn::accept(ConnectionRequest& request, const PrivateData& private_data) noexcept {
    const Status status = endpoint_->accept(request, private_data);
    return status.ok() ? 0 : failed(status);
}

int Conn::disconnect() noexcept {
    log(RPMA_LOG_LEVEL_NOTICE, {}, "disconnecting\n");
    end_reported_ = true;
    endpoint_->terminate();
    if (ended_.exchange(true)) return 0;
    events_.discard_if([](const Event& event) { return event.kind == RPMA_CONN_LOST; });
    events_.push({.kind = RPMA_CONN_CLOSED, .why = "this side disconnected"});
    return 0;
}

int Conn::not_connected(const Call& call) const noexcept {
    return not_posted(Code::InvalidState, "the connection is not established", 0, handle(), call);
}

void Conn::on_connection_event(const ConnectionEvent& event) noexcept {
    const rpma_conn_event told = to_event(event);
    const bool established = told == RPMA_CONN_ESTABLISHED;
    const bool lost = told == RPMA_CONN_LOST;  // the program has yet to disconnect
    if (established) {
        if (!private_data_known_) private_data_ = event.private_data;
        established_ = endpoint_.get();
    }
    if (!established && !lost && ended_.exchange(true)) return;
    events_.push({.kind = told, .why = event.why});
    if (!established) end_reported_ = true;
}

int Conn::next_event(rpma_conn_event& event) {
    while (true) {
        if (const auto taken = events_.try_take()) {
            process_event(*taken);
            event = taken->kind;
            return 0;
        }
        const int fd = events_.fd();
        if (fd < 0) return failed({Code::SystemError, "cannot create a descriptor"});
        if (!await_readable_soon(fd, Internals::poller(*domain_->device())).ok()) return RPMA_E_NO_EVENT;
    }
}

RequestTerms Conn::terms_of(const FailedRequest& request) const noexcept {
    const auto call = [&] {
        switch (request.operation) {
            case CompletedOperation::Send: return "rpma_send";
            case CompletedOperation::RdmaWrite: return "rpma_write";
            case CompletedOperation::RdmaRead: return "rpma_read";
            case CompletedOperation::AtomicWrite: return "rpma_atomic_write";
            case CompletedOperation::Flush: return "rpma_flush";
            default: return "rpma_recv";
        }
    };
    return {.call = call(),
            .object = "connection",
            .handle = handle(),
            .context = "op_context",
            .piece = "piece",
            .code = to_wc_status(request.code).name,
            .value = request.context};
}

void Conn::process_event(const Event& event) noexcept {
    const bool established = event.kind == RPMA_CONN_ESTABLISHED;
    const char* const separator = event.why.empty() ? "" : ": ";
    log(RPMA_LOG_LEVEL_NOTICE, {}, "%s%s%s\n", rpma_utils_conn_event_2str(event.kind), separator, event.why.c_str());
    viaduct::log(established ? LogLevel::Debug : LogLevel::Info, "connection %p: %s%s%s", static_cast<void*>(handle()),
                 rpma_utils_conn_event_2str(event.kind), separator, event.why.c_str());
    if (established) private_data_known_.store(true, std::memory_order_release);
    Internals::flush(*endpoint_);
}

void Conn::set_private_data(const PrivateData& data) noexcept {
    private_data_ = data;
    private_data_known_.store(true, std::memory_order_release);
}

rpma_conn_private_data Conn::private_data() const noexcept {
    if (!private_data_known_.load(std::memory_order_acquire) || private_data_.empty())
        return {.ptr = nullptr, .len = 0};
    const auto bytes = private_data_.span();
    return {.ptr = const_cast<std::uint8_t*>(bytes.data()),
            .len = static_cast<std::uint8_t>(std::min(bytes.size(), max_private_data))};
}

}  // namespace viaduct::rpma

using namespace viaduct;
using namespace viaduct::rpma;

int rpma_conn_next_event(struct rpma_conn* conn, enum rpma_conn_event* event) {
    return Entry::wait<Conn>(conn, {{event != nullptr, "event is NULL"}},
                             [&](Conn& connection) { return connection.next_event(*event); });
}

int rpma_conn_get_event_fd(const struct rpma_conn* conn, int* fd) {
    return Entry::on<Conn>(conn, {{fd != nullptr, "fd is NULL"}}, [&](Conn& connection) {
        const int descriptor = connection.event_fd();
        if (descriptor < 0) return failed({Code::SystemError, "cannot create a descriptor"});
        *fd = descriptor;
        return 0;
    });
}

int rpma_conn_get_private_data(const struct rpma_conn* conn, struct rpma_conn_private_data* pdata) {
    return get_value<Conn>(conn, pdata, "pdata is NULL", &Conn::private_data);
}

int rpma_conn_apply_remote_peer_cfg(struct rpma_conn* conn, const struct rpma_peer_cfg* pcfg) {
    return Entry::on<Conn>(conn, {}, [&](Conn& connection) {
        const PeerCfg* cfg = resolve<PeerCfg>(pcfg);
        if (!failure::require({{cfg != nullptr, "cfg is NULL"}})) return RPMA_E_INVAL;
        connection.direct_write_to_pmem = cfg->fields().direct_write_to_pmem.load();
        return 0;
    });
}

int rpma_conn_get_qp_num(const struct rpma_conn* conn, uint32_t* qp_num) {
    return get_value<Conn>(conn, qp_num, "qp_num is NULL", &Conn::qp_number);
}

int rpma_conn_get_cq(const struct rpma_conn* conn, struct rpma_cq** cq_ptr) {
    return get_value<Conn>(conn, cq_ptr, "cq_ptr is NULL",
                           [](const Conn& connection) { return connection.cq().handle(); });
}

int rpma_conn_get_rcq(const struct rpma_conn* conn, struct rpma_cq** rcq_ptr) {
    return get_value<Conn>(conn, rcq_ptr, "rcq_ptr is NULL", [](const Conn& connection) {
        return connection.rcq() == nullptr ? nullptr : connection.rcq()->handle();
    });
}

int rpma_conn_wait(struct rpma_conn* conn, int flags, struct rpma_cq** cq, bool* is_rcq) {
    return Entry::wait<Conn>(conn, {{cq != nullptr, "cq is NULL"}}, [&](const Conn& connection) {
        (void)flags;  // has no meaning in librpma either
        CompletionChannel* channel = connection.shared_channel();
        if (channel == nullptr) return RPMA_E_NOT_SHARED_CHNL;
        Cq* found = nullptr;
        if (const int result = channel->wait(found); result != 0) return result;
        *cq = found->handle();
        if (is_rcq != nullptr) *is_rcq = found == connection.rcq();
        return 0;
    });
}

int rpma_conn_get_compl_fd(const struct rpma_conn* conn, int* fd) {
    return Entry::on<Conn>(conn, {{fd != nullptr, "fd is NULL"}}, [&](const Conn& connection) {
        if (connection.shared_channel() == nullptr) return RPMA_E_NOT_SHARED_CHNL;
        return connection.cq().get_fd(*fd);
    });
}

int rpma_conn_disconnect(struct rpma_conn* conn) {
    return Entry::on<Conn>(conn, {}, [](Conn& connection) { return connection.disconnect(); });
}

int rpma_conn_delete(struct rpma_conn** conn_ptr) { return destroy<Conn>(conn_ptr); }

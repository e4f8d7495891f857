// SPDX-License-Identifier: BSD-3-Clause
#include "tools/measure/core_api.hpp"

#include <algorithm>
#include <cstring>

#include "tools/measure/error.hpp"

namespace viaduct::measure {
namespace {

[[noreturn]] void fail_call(const char* what, Status status) {
    std::string text = std::string(what) + ": " + to_string(status.code());
    if (*status.where() != '\0') text += std::string(" (") + status.where() + ")";
    if (status.sys_errno() != 0) text += std::string(": ") + std::strerror(status.sys_errno());
    if (status.code() == Code::TimedOut) throw TimedOut("no answer in time");
    throw Error(text);
}

template <class T>
T take_value(const char* what, Result<T> result) {
    if (!result.ok()) fail_call(what, result.status());
    return std::move(*result);
}

const char* text_of(CompletionCode code) {
    switch (code) {
        case CompletionCode::Success: return "success";
        case CompletionCode::LocalFormat: return "malformed request";
        case CompletionCode::LocalLength: return "length error";
        case CompletionCode::LocalProtection: return "protection error";
        case CompletionCode::RemoteProtection: return "protection error at the peer";
        case CompletionCode::RemoteOperation:
        case CompletionCode::RemoteLength: return "the peer had no suitable receive";
        case CompletionCode::Transport: return "transport error";
        case CompletionCode::PartialMessage: return "the message was truncated";
        case CompletionCode::Flushed: return "flushed";
    }
    return "unknown error";
}

Opcode opcode_of(Operation operation) noexcept {
    switch (operation) {
        case Operation::Send:
        case Operation::SendImmediate: return Opcode::Send;
        case Operation::Read: return Opcode::RdmaRead;
        case Operation::AtomicWrite: return Opcode::AtomicWrite;
        case Operation::FetchAdd: return Opcode::FetchAdd;
        case Operation::CompareSwap: return Opcode::CompareSwap;
        default: return Opcode::RdmaWrite;
    }
}

struct CoreRegion final : Region {
    std::unique_ptr<MemoryRegion> object;
};

class CoreListener final : public Listener {
public:
    explicit CoreListener(std::unique_ptr<viaduct::Listener> listener) : listener_(std::move(listener)) {}

    bool accept(Link& link, Timeout timeout) override {
        auto request = listener_->next_request(Deadline::after(timeout));
        if (request.ok()) return static_cast<CoreLink&>(link).accept(**request);
        if (request.status().code() != Code::TimedOut) fail_call("listen", request.status());
        return false;
    }

private:
    std::unique_ptr<viaduct::Listener> listener_;
};

}  // namespace

CoreApi::CoreApi(std::uint32_t device)
    : Api("core"),
      device_(take_value("cannot open the device", Device::open(device))),
      domain_(take_value("cannot create a protection domain", ProtectionDomain::create(device_))) {
    const DeviceAttributes& attributes = device_->attributes();
    info_ = {.name = attributes.name,
             .host = attributes.host,
             .max_transfer_bytes = attributes.max_transfer_bytes,
             .max_queue_depth = attributes.default_queue_depth,
             .max_service_bytes = attributes.max_service_bytes,
             .max_segments = std::min(attributes.max_sges, max_segments),
             .max_batch = measure::max_batch,
             .operations = {Operation::Send, Operation::Write, Operation::Read, Operation::SendImmediate,
                            Operation::WriteImmediate, Operation::Flush, Operation::FlushPersistent,
                            Operation::AtomicWrite}};
    info_.reliabilities.push_back(Reliability::ReliableReception);
    if (attributes.capabilities.unreliable) info_.reliabilities.push_back(Reliability::Unreliable);
    if (attributes.capabilities.atomics)
        info_.operations.insert(info_.operations.end(), {Operation::FetchAdd, Operation::CompareSwap});
}

Access CoreApi::access(Reliability reliability) const noexcept {
    const bool reliable = reliability != Reliability::Unreliable;
    return {.remote_write = true,
            .remote_read = reliable,
            .remote_atomic = reliable && device_->attributes().capabilities.atomics};
}

EndpointAttributes CoreApi::endpoint_attributes(Reliability reliability) const noexcept {
    return {.reliability = reliability,
            .refused_write = RefusedWrite::Silent,
            .max_transfer_bytes = info_.max_transfer_bytes,
            .access = access(reliability)};
}

std::unique_ptr<Region> CoreApi::register_memory(std::span<std::byte> memory) {
    auto region = std::make_unique<CoreRegion>();
    region->object =
        take_value("cannot register memory", MemoryRegion::create(domain_, memory.data(), memory.size(), access()));
    region->key = region->object->key();
    return region;
}

std::shared_ptr<CompletionQueue> CoreApi::create_queue(std::uint32_t depth) {
    return take_value("cannot create a completion queue", CompletionQueue::create(device_, {.capacity = depth}));
}

std::unique_ptr<Link> CoreApi::create_link(const LinkOptions& options) {
    if (options.bare) {
        if (bare_queue_ == nullptr) bare_queue_ = create_queue(1);
        return std::make_unique<CoreLink>(*this, options, bare_queue_, bare_queue_);
    }
    return std::make_unique<CoreLink>(*this, options, create_queue(options.send_depth),
                                      create_queue(options.receive_depth));
}

std::unique_ptr<Listener> CoreApi::listen(const Service& service) {
    auto listener = device_->listen({.host = info_.host, .service = service});
    return std::make_unique<CoreListener>(take_value("cannot listen", std::move(listener)));
}

CoreLink::CoreLink(const CoreApi& api, const LinkOptions& options, std::shared_ptr<CompletionQueue> sends,
                   std::shared_ptr<CompletionQueue> receives, std::uint64_t context) {
    sends_.queue = std::move(sends);
    receives_.queue = std::move(receives);
    endpoint_ = take_value("cannot create an endpoint",
                           Endpoint::create({.attributes = api.endpoint_attributes(options.reliability),
                                             .domain = api.domain(),
                                             .send_queue = sends_.queue,
                                             .receive_queue = receives_.queue,
                                             .shared_receives = nullptr,
                                             .context = context}));
    local_.host = api.device().host;
}

void CoreLink::connect(const Address& remote, Timeout timeout) {
    const auto deadline = Deadline::after(timeout);
    const Status status =
        endpoint_->connect({.local = local_, .remote = remote, .private_data = {}, .deadline = deadline});
    if (!status.ok()) fail_call("cannot connect", status);
    auto event = endpoint_->next_event(Deadline::never());
    if (!event.ok()) fail_call("cannot connect", event.status());
    switch (event->kind) {
        case ConnectionEventKind::Established: return;
        case ConnectionEventKind::TimedOut: throw TimedOut("no answer in time");
        case ConnectionEventKind::Rejected:
            if (event->reason == Code::NoListener) throw NoListener("there is no listener");
            throw Error("the server refused the connection");
        default: throw Error(not_reached);
    }
}

bool CoreLink::accept(viaduct::ConnectionRequest& request) {
    if (!compatible(endpoint_->attributes(), request.remote_attributes()).ok()) {
        // The client learns nothing more from a failure here than from this one.
        (void)request.reject({});
        return false;
    }
    const Status status = endpoint_->accept(request, {});
    if (status.code() == Code::TimedOut) return false;
    if (!status.ok()) fail_call("cannot accept", status);
    return true;
}

void CoreLink::disconnect() noexcept {
    endpoint_->disconnect();
    for (Inbox* inbox : {&sends_, &receives_}) {
        while (inbox->queue->poll(inbox->batch) != 0) continue;
        inbox->fill(0);
    }
}

void CoreLink::post_list(Operation operation, Piece piece, RemoteAddress remote, std::uint32_t count) {
    std::array<Sge, max_segments> parts;
    for (std::uint32_t i = 0; i < piece.segments; ++i) parts[i] = sge_of(part_of(piece, i));
    SendRequest request{.opcode = opcode_of(operation), .remote = remote, .sges = {parts.data(), piece.segments}};
    request.with_immediate = operation == Operation::SendImmediate || operation == Operation::WriteImmediate;
    request.signaled = !is_flush(operation);
    if (operation == Operation::FetchAdd) request.add = 1;
    if (operation == Operation::CompareSwap) request.compare = 0, request.swap = 1;
    SendRequest flush{.opcode = Opcode::Flush, .remote = remote, .sges = {}};
    flush.flush_to = operation == Operation::Flush ? FlushTarget::Visibility : FlushTarget::Persistence;
    flush.flush_bytes = piece.length;
    list_.clear();
    for (std::uint32_t i = 0; i < count; ++i) {
        list_.push_back(request);
        if (is_flush(operation)) list_.push_back(flush);
    }
    std::size_t posted = 0;
    check_posted(endpoint_->post_send(list_, posted));
}

void CoreLink::fail(CompletionCode code) {
    switch (code) {
        case CompletionCode::Flushed:
        case CompletionCode::Transport:
        case CompletionCode::PartialMessage: throw Closed("the connection is closed");
        default: throw Error(std::string("a request failed: ") + text_of(code));
    }
}

void CoreLink::fail_post(Status status) { fail_call("cannot post", status); }

}  // namespace viaduct::measure

// SPDX-License-Identifier: BSD-3-Clause
#include "tools/measure/dat_api.hpp"

#include <dat2/dat_ib_extensions.h>

#include <algorithm>
#include <utility>

#include "core/base/socket_address.hpp"
#include "tools/measure/core_api.hpp"
#include "tools/measure/error.hpp"

namespace viaduct::measure {
namespace {

constexpr DAT_EVENT_NUMBER no_event{};

DAT_COUNT count_of(std::uint32_t number) { return static_cast<DAT_COUNT>(number); }

DAT_TIMEOUT microseconds_to(const Deadline& deadline) noexcept {
    const auto left = std::chrono::ceil<std::chrono::microseconds>(deadline.point() - Deadline::Clock::now()).count();
    return static_cast<DAT_TIMEOUT>(std::clamp<long long>(left, 0, DAT_TIMEOUT_INFINITE - 1));
}

DAT_RETURN wait(DAT_EVD_HANDLE dispatcher, const Deadline& deadline, DAT_EVENT& event) noexcept {
    DAT_RETURN result = DAT_SUCCESS;
    do {
        DAT_COUNT more = 0;
        result = dat_evd_wait(dispatcher, microseconds_to(deadline), 1, &event, &more);
    } while (DAT_GET_TYPE(result) == DAT_INTERRUPTED_CALL);
    return result;
}

/// False: no event came in time.
bool wait_for_event(DAT_EVD_HANDLE dispatcher, const Deadline& deadline, DAT_EVENT& event) {
    const DAT_RETURN result = wait(dispatcher, deadline, event);
    if (DAT_GET_TYPE(result) == DAT_TIMEOUT_EXPIRED) return false;
    check_dat("dat_evd_wait", result);
    return true;
}

/// The connection qualifier that is a service.
DAT_CONN_QUAL qualifier_of(const Service& service) {
    const auto bytes = service.span();
    if (bytes.size() != sizeof(std::uint16_t)) throw Error("DAT services must be numbers from 0 to 65535");
    return static_cast<DAT_CONN_QUAL>(bytes[0] << 8 | bytes[1]);
}

const char* reason_of(DAT_DTO_COMPLETION_STATUS status) {
    switch (status) {
        case DAT_DTO_ERR_LOCAL_LENGTH: return "length error";
        case DAT_DTO_ERR_LOCAL_EP: return "malformed request";
        case DAT_DTO_ERR_LOCAL_PROTECTION: return "protection error";
        case DAT_DTO_ERR_REMOTE_ACCESS: return "protection error at the peer";
        case DAT_DTO_ERR_BAD_RESPONSE:
        case DAT_DTO_ERR_REMOTE_RESPONDER:
        case DAT_DTO_ERR_RECEIVER_NOT_READY: return "the peer had no suitable receive";
        default: return "unknown error";
    }
}

/// Whether an adapter has a part of the extension for InfiniBand.
bool announces(DAT_IA_HANDLE adapter, std::string_view part) {
    DAT_PROVIDER_ATTR attributes{};
    check_dat("dat_ia_query",
              dat_ia_query(adapter, nullptr, 0, nullptr,
                           DAT_PROVIDER_FIELD_PROVIDER_SPECIFIC_ATTR | DAT_PROVIDER_FIELD_NUM_PROVIDER_SPECIFIC_ATTR,
                           &attributes));
    const std::span named(attributes.provider_specific_attr,
                          static_cast<std::size_t>(attributes.num_provider_specific_attr));
    return std::ranges::any_of(named, [&](const DAT_NAMED_ATTR& attribute) {
        return attribute.name == part && std::string_view(attribute.value) != "FALSE";
    });
}

class DatListener final : public Listener {
public:
    DatListener(const DatApi& api, const Service& service) : requests_(api.create_queue(DAT_EVD_CR_FLAG, backlog)) {
        DAT_PSP_HANDLE service_point = DAT_HANDLE_NULL;
        check_dat("dat_psp_create", dat_psp_create(api.adapter(), qualifier_of(service), requests_.get(),
                                                   DAT_PSP_CONSUMER_FLAG, &service_point));
        service_point_.reset(service_point);
    }

    bool accept(Link& link, Timeout timeout) override {
        DAT_EVENT event;
        if (!wait_for_event(requests_.get(), Deadline::after(timeout), event)) return false;
        return static_cast<DatLink&>(link).accept(event.event_data.cr_arrival_event_data.cr_handle);
    }

private:
    static constexpr std::uint32_t backlog = 128;

    DatQueue requests_;
    DatObject<dat_psp_free> service_point_;
};

}  // namespace

void fail_dat(const char* call, DAT_RETURN result) {
    const char *type = "unknown result", *subtype = "";
    dat_strerror(result, &type, &subtype);
    std::string text = std::string(call) + ": " + type;
    if (DAT_GET_SUBTYPE(result) != DAT_NO_SUBTYPE) text += std::string(", ") + subtype;
    throw Error(text);
}

// The adapters of DAT bear the names of the devices; how deep their queues are by default is not told by DAT.
DatApi::DatApi(std::uint32_t device) : Api("dat", CoreApi(device).device()) {
    constexpr DAT_COUNT async_events = 8;
    DAT_EVD_HANDLE async_queue = DAT_HANDLE_NULL;
    DAT_IA_HANDLE adapter = DAT_HANDLE_NULL;
    check_dat("dat_ia_openv", dat_ia_openv(info_.name.data(), async_events, &async_queue, &adapter, DAT_VERSION_MAJOR,
                                           DAT_VERSION_MINOR, DAT_TRUE));
    adapter_.reset(adapter);
    check_dat("dat_ia_query", dat_ia_query(adapter, &async_queue, DAT_IA_FIELD_ALL, &attributes_, 0, nullptr));
    info_.host = host_of(attributes_.ia_address_ptr);
    info_.max_transfer_bytes = std::min(attributes_.max_message_size, attributes_.max_rdma_size);
    info_.max_queue_depth = std::min(info_.max_queue_depth, static_cast<std::uint32_t>(attributes_.max_dto_per_ep));
    info_.max_service_bytes = sizeof(std::uint16_t);
    const auto segments = std::min({attributes_.max_iov_segments_per_dto, attributes_.max_iov_segments_per_rdma_read,
                                    attributes_.max_iov_segments_per_rdma_write});
    info_.max_segments = std::min(static_cast<std::uint32_t>(segments), max_segments);
    info_.max_batch = 1;
    info_.reliabilities = {Reliability::ReliableDelivery};
    info_.operations = {Operation::Send, Operation::Write, Operation::Read};
    if (announces(adapter, DAT_IB_ATTR_IMMED_DATA)) info_.operations.push_back(Operation::WriteImmediate);
    if (announces(adapter, DAT_IB_ATTR_FETCH_AND_ADD)) info_.operations.push_back(Operation::FetchAdd);
    if (announces(adapter, DAT_IB_ATTR_CMP_AND_SWAP)) info_.operations.push_back(Operation::CompareSwap);
    check_dat("dat_pz_create", dat_pz_create(adapter, &zone_));
}

DAT_EP_ATTR DatApi::endpoint_attributes(const LinkOptions& options) const noexcept {
    DAT_EP_ATTR attributes{};
    attributes.service_type = DAT_SERVICE_TYPE_RC;
    attributes.max_message_size = attributes.max_rdma_size = info_.max_transfer_bytes;
    attributes.max_recv_dtos = count_of(options.receive_depth);
    attributes.max_request_dtos = count_of(options.send_depth);
    attributes.max_recv_iov = 1;
    attributes.max_request_iov = count_of(options.segments);
    attributes.max_rdma_read_in = attributes_.max_rdma_read_per_ep_in;
    attributes.max_rdma_read_out = attributes_.max_rdma_read_per_ep_out;
    attributes.max_rdma_read_iov = attributes.max_rdma_write_iov = count_of(options.segments);
    return attributes;
}

DatQueue DatApi::create_queue(DAT_EVD_FLAGS events, std::uint32_t depth) const {
    DAT_EVD_HANDLE queue = DAT_HANDLE_NULL;
    check_dat("dat_evd_create", dat_evd_create(adapter(), count_of(depth), DAT_HANDLE_NULL, events, &queue));
    return DatQueue(queue, DatFree<dat_evd_free>());
}

std::unique_ptr<Region> DatApi::register_memory(std::span<std::byte> memory) {
    auto region = std::make_unique<DatRegion>();
    const int atomic = info_.has(Operation::FetchAdd) ? int{DAT_IB_MEM_PRIV_REMOTE_ATOMIC} : 0;
    const auto privileges = static_cast<DAT_MEM_PRIV_FLAGS>(DAT_MEM_PRIV_ALL_FLAG | atomic);
    DAT_LMR_HANDLE object = DAT_HANDLE_NULL;
    DAT_VLEN size = 0;
    DAT_VADDR address = 0;
    check_dat("dat_lmr_create",
              dat_lmr_create(adapter(), DAT_MEM_TYPE_VIRTUAL, {.for_va = memory.data()}, memory.size(), zone_,
                             privileges, DAT_VA_TYPE_VA, &object, &region->context, &region->key, &size, &address));
    region->object.reset(object);
    return region;
}

std::unique_ptr<Link> DatApi::create_link(const LinkOptions& options) {
    if (options.bare) {
        if (bare_queue_ == nullptr) bare_queue_ = create_queue(DAT_EVD_DTO_FLAG, 1);
        return std::make_unique<DatLink>(*this, LinkOptions{.send_depth = 1, .receive_depth = 1}, bare_queue_,
                                         bare_queue_);
    }
    return std::make_unique<DatLink>(*this, options, create_queue(DAT_EVD_DTO_FLAG, options.send_depth),
                                     create_queue(DAT_EVD_DTO_FLAG, options.receive_depth));
}

std::unique_ptr<Listener> DatApi::listen(const Service& service) {
    return std::make_unique<DatListener>(*this, service);
}

DatLink::DatLink(DatApi& api, const LinkOptions& options, DatQueue sends, DatQueue receives)
    : events_(api.create_queue(DAT_EVD_CONNECTION_FLAG, 4)) {
    sends_.queue = std::move(sends);
    receives_.queue = std::move(receives);
    const DAT_EP_ATTR attributes = api.endpoint_attributes(options);
    DAT_EP_HANDLE endpoint = DAT_HANDLE_NULL;
    check_dat("dat_ep_create", dat_ep_create(api.adapter(), api.zone(), receives_.queue.get(), sends_.queue.get(),
                                             events_.get(), &attributes, &endpoint));
    endpoint_.reset(endpoint);
}

void DatLink::connect(const Address& remote, Timeout timeout) {
    SocketAddress address(remote.host, 0);
    check_dat("dat_ep_connect", dat_ep_connect(endpoint_.get(), address.get(), qualifier_of(remote.service),
                                               microseconds_to(Deadline::after(timeout)), 0, nullptr,
                                               DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
    switch (finish_connecting(Deadline::after(timeout + event_grace))) {
        case DAT_CONNECTION_EVENT_ESTABLISHED: return;
        case DAT_CONNECTION_EVENT_PEER_REJECTED: throw Error("the server refused the connection");
        case DAT_CONNECTION_EVENT_NON_PEER_REJECTED:
            throw NoListener("there is no listener, or the server refused the connection");
        case DAT_CONNECTION_EVENT_UNREACHABLE: throw Error(not_reached);
        case DAT_CONNECTION_EVENT_DISCONNECTED:  // by this end
        case DAT_CONNECTION_EVENT_TIMED_OUT: throw TimedOut("no answer in time");
        default: throw Error("the server became unreachable during connection setup");
    }
}

bool DatLink::accept(DAT_CR_HANDLE request) {
    const DAT_RETURN result = dat_cr_accept(request, endpoint_.get(), 0, nullptr);
    if (result != DAT_SUCCESS) {
        dat_cr_reject(request, 0, nullptr);
        return false;
    }
    constexpr auto patience = std::chrono::seconds(5);
    return finish_connecting(Deadline::after(patience)) == DAT_CONNECTION_EVENT_ESTABLISHED;
}

/// Waits for the outcome of an attempt, and gives up what takes too long. After a failure the link may be tried again.
DAT_EVENT_NUMBER DatLink::finish_connecting(const Deadline& deadline) {
    auto outcome = next_event(deadline);
    connected_ = outcome == DAT_CONNECTION_EVENT_ESTABLISHED;
    if (connected_) {
        early_receives_.clear();
        return outcome;
    }
    if (outcome == no_event) {
        dat_ep_disconnect(endpoint_.get(), DAT_CLOSE_ABRUPT_FLAG);
        outcome = next_event(Deadline::after(event_grace));
    }
    reset();
    for (const Piece& piece : std::exchange(early_receives_, {})) post_receive(piece);
    return outcome;
}

/// no_event: none came in time.
DAT_EVENT_NUMBER DatLink::next_event(const Deadline& deadline) const {
    DAT_EVENT event;
    return wait_for_event(events_.get(), deadline, event) ? event.event_number : no_event;
}

void DatLink::disconnect() noexcept {
    if (!connected_) return;
    connected_ = false;
    dat_ep_disconnect(endpoint_.get(), DAT_CLOSE_ABRUPT_FLAG);
    const auto deadline = Deadline::after(event_grace);
    DAT_EVENT event;
    (void)wait(events_.get(), deadline, event);  // of this disconnection, or of the peer's before
    for (Inbox* inbox : {&sends_, &receives_})
        while (inbox->outstanding != 0 && wait(inbox->queue.get(), deadline, event) == DAT_SUCCESS)
            --inbox->outstanding;
    reset();
}

/// Makes a disconnected link fit to be connected anew; what was posted is gone.
void DatLink::reset() noexcept {
    dat_ep_reset(endpoint_.get());
    for (Inbox* inbox : {&sends_, &receives_}) {
        while (dat_evd_dequeue(inbox->queue.get(), &inbox->event) == DAT_SUCCESS) continue;
        inbox->outstanding = 0;
    }
}

const DAT_DTO_COMPLETION_EVENT_DATA* DatLink::await(Inbox& inbox, Timeout timeout) {
    return wait_for_event(inbox.queue.get(), Deadline::after(timeout), inbox.event) ? completion_of(inbox) : nullptr;
}

void DatLink::fail(DAT_DTO_COMPLETION_STATUS status) {
    if (status == DAT_DTO_ERR_FLUSHED || status == DAT_DTO_ERR_TRANSPORT) throw Closed("the connection is closed");
    throw Error(std::string("a request failed: ") + reason_of(status));
}

void DatLink::post_extension(Operation operation, DAT_COUNT count, DAT_LMR_TRIPLET* parts,
                             const DAT_RMR_TRIPLET& there) {
    constexpr auto flags = DAT_COMPLETION_DEFAULT_FLAG;
    constexpr DAT_DTO_COOKIE cookie{};
    switch (operation) {
        case Operation::WriteImmediate:
            return check_posted("dat_ib_post_rdma_write_immed",
                                dat_ib_post_rdma_write_immed(endpoint_.get(), count, parts, cookie, &there, 0, flags));
        case Operation::FetchAdd:
            return check_posted("dat_ib_post_fetch_and_add",
                                dat_ib_post_fetch_and_add(endpoint_.get(), 1, parts, cookie, &there, flags));
        case Operation::CompareSwap:
            return check_posted("dat_ib_post_cmp_and_swap",
                                dat_ib_post_cmp_and_swap(endpoint_.get(), 0, 1, parts, cookie, &there, flags));
        default: throw Error("DAT has no such operation");
    }
}

void DatLink::fail_post(const char* call, DAT_RETURN result) {
    if (DAT_GET_TYPE(result) == DAT_INVALID_STATE) throw Closed("the connection is closed");
    fail_dat(call, result);
}

}  // namespace viaduct::measure

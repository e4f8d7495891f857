// SPDX-License-Identifier: BSD-3-Clause
#include "tools/measure/vipl_api.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "api/vipl/return_name.hpp"
#include "tools/measure/error.hpp"

namespace viaduct::measure {
namespace {

/// A VIP_NET_ADDRESS with room for the longest address of ours.
class NetAddress {
public:
    NetAddress(const Host& host, const Service& service) {
        address()->HostAddressLen = static_cast<VIP_UINT16>(host.size());
        address()->DiscriminatorLen = static_cast<VIP_UINT16>(service.size());
        auto* bytes = storage_ + offsetof(VIP_NET_ADDRESS, HostAddress);
        std::ranges::copy(host.span(), bytes);
        std::ranges::copy(service.span(), bytes + host.size());
    }

    VIP_NET_ADDRESS* address() noexcept { return reinterpret_cast<VIP_NET_ADDRESS*>(storage_); }

private:
    alignas(
        VIP_NET_ADDRESS) VIP_UINT8 storage_[sizeof(VIP_NET_ADDRESS) + Address::max_host + Address::max_service] = {};
};

VIP_ULONG milliseconds(Timeout timeout) { return static_cast<VIP_ULONG>(std::max<Timeout::rep>(timeout.count(), 1)); }

VIP_RELIABILITY_LEVEL level_of(Reliability reliability) {
    constexpr std::array<VIP_RELIABILITY_LEVEL, names<Reliability>.size()> levels{
        VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY, VIP_SERVICE_RELIABLE_RECEPTION};
    return levels[static_cast<std::size_t>(reliability)];
}

/// From one descriptor to the next: each has an address segment besides those of the data.
std::uint32_t stride_of(const LinkOptions& options) {
    const std::size_t bytes = offsetof(VIP_DESCRIPTOR, DS) + (options.segments + 1) * sizeof(VIP_DESCRIPTOR_SEGMENT);
    return static_cast<std::uint32_t>(round_up(bytes, VIP_DESCRIPTOR_ALIGNMENT));
}

class ViplRegion final : public Region {
public:
    ViplRegion(ViplApi& api, std::span<std::byte> memory) : api_(api), address_(memory.data()) {
        key = api.register_range(memory.data(), memory.size(), true);
    }
    ~ViplRegion() override { VipDeregisterMem(api_.nic(), address_, key); }

private:
    ViplApi& api_;
    void* address_;
};

class ViplListener final : public Listener {
public:
    /// It listens only while it waits: the first wait finds out whether it can.
    ViplListener(ViplApi& api, const Service& service) : api_(api), local_(api.device().host, service) {
        (void)wait(Timeout(0));
    }

    bool accept(Link& link, Timeout timeout) override {
        if (!wait(timeout)) return false;
        const VIP_CONN_HANDLE connection = std::exchange(request_, nullptr);
        const VIP_RETURN accepted = VipConnectAccept(connection, static_cast<ViplLink&>(link).vi());
        if (accepted == VIP_SUCCESS) return true;
        if (accepted != VIP_TIMEOUT) VipConnectReject(connection);
        return false;
    }

private:
    bool wait(Timeout timeout) {
        if (request_ != nullptr) return true;
        NetAddress remote{{}, {}};
        VIP_VI_ATTRIBUTES remote_attributes;
        const VIP_RETURN waited = VipConnectWait(api_.nic(), local_.address(), milliseconds(timeout), remote.address(),
                                                 &remote_attributes, &request_);
        if (waited == VIP_TIMEOUT) return false;
        check_vipl("VipConnectWait", waited);
        return true;
    }

    ViplApi& api_;
    NetAddress local_;
    VIP_CONN_HANDLE request_ = nullptr;
};

}  // namespace

void fail_vipl(const char* call, VIP_RETURN result) { throw Error(std::string(call) + ": " + vipl::name_of(result)); }

ViplApi::ViplApi(std::uint32_t device) : Api("vipl") {
    const std::string name = VINICBASENAME + std::to_string(device);
    VIP_NIC_HANDLE nic = nullptr;
    check_vipl("VipOpenNic", VipOpenNic(name.c_str(), &nic));
    nic_.reset(nic);
    VIP_NIC_ATTRIBUTES attributes;
    check_vipl("VipQueryNic", VipQueryNic(nic_.get(), &attributes));
    info_ = {.name = attributes.Name,
             .host = Host({attributes.LocalNicAddress, attributes.NicAddressLen}),
             .max_transfer_bytes = static_cast<std::uint32_t>(attributes.MaxTransferSize),
             .max_queue_depth = static_cast<std::uint32_t>(attributes.MaxDescriptorsPerQueue),
             .max_service_bytes = attributes.MaxDiscriminatorLen,
             .max_segments = std::min(static_cast<std::uint32_t>(attributes.MaxSegmentsPerDesc) - 1, max_segments),
             .operations = {Operation::Send, Operation::Write, Operation::Read, Operation::SendImmediate,
                            Operation::WriteImmediate}};
    for (const Reliability level : {Reliability::ReliableReception, Reliability::Unreliable})
        if ((attributes.ReliabilityLevelSupport & level_of(level)) != 0) info_.reliabilities.push_back(level);
    check_vipl("VipCreatePtag", VipCreatePtag(nic_.get(), &ptag_));
    // Whatever goes wrong shows in the descriptors; without a handler the library would log it besides.
    check_vipl("VipErrorCallback", VipErrorCallback(nic_.get(), nullptr, [](VIP_PVOID, VIP_ERROR_DESCRIPTOR*) {}));
}

VIP_MEM_HANDLE ViplApi::register_range(void* address, std::size_t size, bool remote) {
    VIP_MEM_ATTRIBUTES attributes{.Ptag = ptag_, .EnableRdmaWrite = remote, .EnableRdmaRead = remote};
    VIP_MEM_HANDLE handle = 0;
    check_vipl("VipRegisterMem", VipRegisterMem(nic_.get(), address, size, &attributes, &handle));
    return handle;
}

VIP_VI_HANDLE ViplApi::create_vi(VIP_CQ_HANDLE queue, Reliability reliability) {
    VIP_VI_ATTRIBUTES attributes{.ReliabilityLevel = level_of(reliability),
                                 .MaxTransferSize = info_.max_transfer_bytes,
                                 .QoS = nullptr,
                                 .Ptag = ptag_,
                                 .EnableRdmaWrite = VIP_TRUE,
                                 .EnableRdmaRead = reliability != Reliability::Unreliable};
    VIP_VI_HANDLE vi = nullptr;
    check_vipl("VipCreateVi", VipCreateVi(nic_.get(), &attributes, queue, queue, &vi));
    return vi;
}

std::unique_ptr<Region> ViplApi::register_memory(std::span<std::byte> memory) {
    return std::make_unique<ViplRegion>(*this, memory);
}

std::unique_ptr<Link> ViplApi::create_link(const LinkOptions& options) {
    if (options.bare && bare_queue_ == nullptr) check_vipl("VipCreateCQ", VipCreateCQ(nic_.get(), 1, &bare_queue_));
    return std::make_unique<ViplLink>(*this, options, options.bare ? bare_queue_ : nullptr);
}

std::unique_ptr<Listener> ViplApi::listen(const Service& service) {
    return std::make_unique<ViplListener>(*this, service);
}

ViplLink::ViplLink(ViplApi& api, const LinkOptions& options, VIP_CQ_HANDLE queue)
    : api_(api), memory_(Memory::Heap, (options.send_depth + options.receive_depth) * stride_of(options)) {
    const std::uint32_t stride = stride_of(options);
    sends_ = {.descriptors = memory_.data(), .stride = stride, .depth = options.send_depth};
    receives_ = {.descriptors = memory_.data() + std::size_t{options.send_depth} * stride,
                 .stride = stride,
                 .depth = options.receive_depth};
    vi_ = api.create_vi(queue, options.reliability);
    if (!options.bare) descriptors_ = api.register_range(memory_.data(), memory_.size(), false);
}

ViplLink::~ViplLink() {
    disconnect();
    VipDestroyVi(vi_);
    if (descriptors_ != 0) VipDeregisterMem(api_.nic(), memory_.data(), descriptors_);
}

void ViplLink::connect(const Address& remote, Timeout timeout) {
    NetAddress local{api_.device().host, {}};
    NetAddress server{remote.host, remote.service};
    VIP_VI_ATTRIBUTES remote_attributes;
    const VIP_RETURN result =
        VipConnectRequest(vi_, local.address(), server.address(), milliseconds(timeout), &remote_attributes);
    switch (result) {
        case VIP_SUCCESS: return;
        case VIP_NO_MATCH: throw NoListener("there is no listener");
        case VIP_TIMEOUT: throw TimedOut("no answer in time");
        case VIP_REJECT: throw Error("the server refused the connection");
        default: fail_vipl("VipConnectRequest", result);
    }
}

void ViplLink::disconnect() noexcept {
    VipDisconnect(vi_);
    VIP_DESCRIPTOR* flushed = nullptr;
    for (; sends_.outstanding != 0; --sends_.outstanding) VipSendDone(vi_, &flushed);
    for (; receives_.outstanding != 0; --receives_.outstanding) VipRecvDone(vi_, &flushed);
}

bool ViplLink::wait_send(Timeout timeout) { return take<VipSendWait>(sends_, milliseconds(timeout)) != nullptr; }

std::optional<std::uint32_t> ViplLink::wait_receive(Timeout timeout) {
    return length_of(take<VipRecvWait>(receives_, milliseconds(timeout)));
}

void ViplLink::write_list(VIP_DESCRIPTOR& descriptor, std::uint32_t first, const Piece& piece) noexcept {
    descriptor.CS.SegCount = static_cast<VIP_UINT16>(first + piece.segments);
    VIP_DESCRIPTOR_SEGMENT* data = descriptor.DS + first;
    for (std::uint32_t i = 0; i < piece.segments; ++i) data[i].Local = segment_of(part_of(piece, i));
}

void ViplLink::fail(VIP_RETURN result, const VIP_DESCRIPTOR* done) {
    if (result != VIP_DESCRIPTOR_ERROR || done == nullptr) fail_vipl("completion", result);
    const VIP_UINT32 status = done->CS.Status;
    constexpr VIP_UINT32 ended = VIP_STATUS_DESC_FLUSHED_ERROR | VIP_STATUS_TRANSPORT_ERROR | VIP_STATUS_PARTIAL_ERROR;
    if (status & ended) throw Closed("the connection is closed");
    if (status & VIP_STATUS_LENGTH_ERROR) throw Error("a request failed: length error");
    if (status & VIP_STATUS_PROTECTION_ERROR) throw Error("a request failed: protection error");
    if (status & VIP_STATUS_RDMA_PROT_ERROR) throw Error("a request failed: protection error at the peer");
    if (status & VIP_STATUS_REMOTE_DESC_ERROR) throw Error("a request failed: the peer had no suitable receive");
    throw Error("a request failed: malformed request");
}

}  // namespace viaduct::measure

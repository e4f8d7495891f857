// SPDX-License-Identifier: BSD-3-Clause
#include "backends/ofi/engine.hpp"

#include <rdma/fi_errno.h>

#include "core/log.hpp"

namespace viaduct::ofi {
namespace {

template <class Object>
FabricPointer<Object> owned(Object* object) noexcept {
    return FabricPointer<Object>(object);
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::open(const HostAddress& host) {
    const auto library = Library::get();
    if (!library.ok()) return library.status();
    std::unique_ptr<Engine> engine(new Engine(*library.value()));
    if (const Status status = engine->start(host); !status.ok()) return status;
    return engine;
}

Status Engine::start(const HostAddress& host) {
    auto info = library_.find(host);
    if (!info.ok()) return info.status();
    info_ = std::move(*info);
    const char* name = info_->fabric_attr->prov_name;
    provider_ = control::ProviderName({reinterpret_cast<const std::uint8_t*>(name), std::strlen(name)});

    auto fabric = library_.open_fabric(*info_->fabric_attr);
    if (!fabric.ok()) return fabric.status();
    fabric_ = owned(fabric.value());

    fid_domain* domain = nullptr;
    if (const int error = fi_domain(fabric_.get(), info_.get(), &domain, nullptr); error != 0)
        return library_.failure(error, "fi_domain");
    domain_ = owned(domain);

    fi_cq_attr of_queue{};
    of_queue.size = 4 * buffers;
    of_queue.format = FI_CQ_FORMAT_MSG;
    of_queue.wait_obj = FI_WAIT_FD;
    fid_cq* completions = nullptr;
    if (const int error = fi_cq_open(domain_.get(), &of_queue, &completions, nullptr); error != 0)
        return library_.failure(error, "fi_cq_open");
    completions_ = owned(completions);
    if (const int error = fi_control(&completions_->fid, FI_GETWAIT, &fd_); error != 0)
        return library_.failure(error, "fi_control(FI_GETWAIT)");

    fi_av_attr of_addresses{};
    of_addresses.type = FI_AV_TABLE;
    fid_av* addresses = nullptr;
    if (const int error = fi_av_open(domain_.get(), &of_addresses, &addresses, nullptr); error != 0)
        return library_.failure(error, "fi_av_open");
    addresses_ = owned(addresses);

    fid_ep* endpoint = nullptr;
    if (const int error = fi_endpoint(domain_.get(), info_.get(), &endpoint, nullptr); error != 0)
        return library_.failure(error, "fi_endpoint");
    endpoint_ = owned(endpoint);
    if (const int error = fi_ep_bind(endpoint_.get(), &completions_->fid, FI_TRANSMIT | FI_RECV); error != 0)
        return library_.failure(error, "fi_ep_bind");
    if (const int error = fi_ep_bind(endpoint_.get(), &addresses_->fid, 0); error != 0)
        return library_.failure(error, "fi_ep_bind");
    if (const int error = fi_enable(endpoint_.get()); error != 0) return library_.failure(error, "fi_enable");

    std::array<std::uint8_t, control::FabricAddress::capacity> bytes{};
    std::size_t size = bytes.size();
    if (const int error = fi_getname(&endpoint_->fid, bytes.data(), &size); error != 0)
        return library_.failure(error, "fi_getname");
    address_ = control::FabricAddress(std::span(bytes).first(size));
    return allocate();
}

Status Engine::allocate() {
    constexpr std::size_t bytes = 2 * buffers * max_frame_bytes;
    memory_.reset(static_cast<std::byte*>(::operator new(bytes, std::align_val_t(4096))));
    if ((info_->domain_attr->mr_mode & FI_MR_LOCAL) != 0) {
        fid_mr* registered = nullptr;
        if (const int error =
                fi_mr_reg(domain_.get(), memory_.get(), bytes, FI_SEND | FI_RECV, 0, 1, 0, &registered, nullptr);
            error != 0)
            return library_.failure(error, "fi_mr_reg");
        registered_ = owned(registered);
        descriptor_ = fi_mr_desc(registered);
    }
    all_.resize(2 * buffers);
    free_.reserve(buffers);
    missing_.reserve(buffers);
    for (std::size_t i = 0; i < all_.size(); ++i) {
        Buffer& buffer = all_[i];
        buffer.bytes = memory_.get() + i * max_frame_bytes;
        buffer.receives = i < buffers;
        if (!buffer.receives)
            free_.push_back(&buffer);
        else if (!post(buffer))
            return {Code::SystemError, "fi_recv"};
    }
    return {};
}

bool Engine::post(Buffer& buffer) noexcept {
    return fi_recv(endpoint_.get(), buffer.bytes, max_frame_bytes, descriptor_, FI_ADDR_UNSPEC, &buffer.context) == 0;
}

void Engine::post_missing() noexcept {
    while (!missing_.empty() && post(*missing_.back())) missing_.pop_back();
}

Result<fi_addr_t> Engine::add_peer(const control::FabricAddress& address) noexcept {
    if (address.size() != address_.size()) return Status(Code::InvalidParameter, "a fabric address of another format");
    fi_addr_t peer = FI_ADDR_NOTAVAIL;
    if (fi_av_insert(addresses_.get(), address.span().data(), 1, &peer, 0, nullptr) != 1)
        return Status(Code::NoResources, "fi_av_insert");
    return peer;
}

Engine::Sent Engine::send(Buffer& buffer, std::size_t bytes, fi_addr_t peer) noexcept {
    const ssize_t error = fi_send(endpoint_.get(), buffer.bytes, bytes, descriptor_, peer, &buffer.context);
    if (error == 0) return Sent::Yes;
    if (error == -FI_EAGAIN) return Sent::NotNow;
    log(LogLevel::Info, "fi_send: %s", library_.describe(static_cast<int>(error)));
    return Sent::Failed;
}

/// Takes an operation that failed. Returns its buffer if it is one to send from.
Engine::Buffer* Engine::failed() noexcept {
    fi_cq_err_entry error{};
    if (fi_cq_readerr(completions_.get(), &error, 0) <= 0 || error.op_context == nullptr) return nullptr;
    auto* buffer = static_cast<Buffer*>(error.op_context);
    if (error.err != FI_ECANCELED)
        log(LogLevel::Info, "libfabric: a %s failed: %s", buffer->receives ? "receive" : "send",
            library_.describe(error.err));
    if (!buffer->receives) return buffer;
    missing_.push_back(buffer);
    return nullptr;
}

bool Engine::may_sleep() noexcept {
    fid* queue = &completions_->fid;
    return fi_trywait(fabric_.get(), &queue, 1) == 0;
}

}  // namespace viaduct::ofi

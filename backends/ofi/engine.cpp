// SPDX-License-Identifier: BSD-3-Clause
#include "backends/ofi/engine.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <atomic>

#include "backends/support/random.hpp"
#include "core/base/settings.hpp"
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

Engine::Engine(const Library& library) noexcept
    : library_(library), next_stamp_(support::random_number<std::uint64_t>()) {}

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

    const auto lanes = number_setting(ofi_lanes_setting).value_or(1);
    while (lanes_.size() < lanes)
        if (const Status status = add_lane(); !status.ok()) return status;
    endpoint_ = lanes_.front().get();

    std::array<std::uint8_t, control::FabricAddress::capacity> bytes{};
    std::size_t size = bytes.size();
    if (const int error = fi_getname(&endpoint_->fid, bytes.data(), &size); error != 0)
        return library_.failure(error, "fi_getname");
    address_ = control::FabricAddress(std::span(bytes).first(size));
    return allocate();
}

Status Engine::add_lane() {
    fid_ep* endpoint = nullptr;
    lanes_.reserve(lanes_.size() + 1);
    if (const int error = fi_endpoint(domain_.get(), info_.get(), &endpoint, nullptr); error != 0)
        return library_.failure(error, "fi_endpoint");
    lanes_.push_back(owned(endpoint));
    if (const int error = fi_ep_bind(endpoint, &completions_->fid, FI_TRANSMIT | FI_RECV); error != 0)
        return library_.failure(error, "fi_ep_bind");
    if (const int error = fi_ep_bind(endpoint, &addresses_->fid, 0); error != 0)
        return library_.failure(error, "fi_ep_bind");
    if (const int error = fi_enable(endpoint); error != 0) return library_.failure(error, "fi_enable");
    return {};
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
        buffer.use = i < buffers ? Use::Receive : Use::Send;
        if (buffer.use == Use::Send)
            free_.push_back(&buffer);
        else if (!post(buffer))
            return {Code::SystemError, "fi_recv"};
    }
    return {};
}

bool Engine::post(Buffer& buffer) noexcept {
    return fi_recv(endpoint_, buffer.bytes, max_frame_bytes, descriptor_, FI_ADDR_UNSPEC, &buffer.context) == 0;
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
    return sent(fi_send(endpoint_, buffer.bytes, bytes, descriptor_, peer, &buffer.context), "fi_send");
}

Engine::Sent Engine::sent(ssize_t error, const char* call) const noexcept {
    if (error == 0) return Sent::Yes;
    if (error == -FI_EAGAIN) return Sent::NotNow;
    log(LogLevel::Info, "%s: %s", call, library_.describe(static_cast<int>(error)));
    return Sent::Failed;
}

// ---- Offers ------------------------------------------------------------------------------------------------------

Engine::Block* Engine::take_block(BlockUse use) noexcept {
    if (use == BlockUse::Offer && offered_blocks_ == max_offered_blocks) return nullptr;
    Block* const block = free_blocks_.empty() ? make_block() : free_blocks_.back();
    if (block == nullptr) return nullptr;
    free_blocks_.pop_back();
    block->block_use = use;
    if (use == BlockUse::Offer) ++offered_blocks_;
    return block;
}

/// Returns null if there are enough or resources are short.
Engine::Block* Engine::make_block() noexcept try {
    constexpr std::size_t bytes = max_offer_bytes + sizeof(Offer::stamp);
    if ((info_->caps & FI_RMA) == 0 || blocks_.size() == max_blocks) return nullptr;
    blocks_.reserve(blocks_.size() + 1);
    free_blocks_.reserve(blocks_.size() + 1);
    auto block = std::make_unique<Block>();
    block->bytes.reset(new std::byte[bytes]);
    auto key = support::random_number<std::uint64_t>();
    if (const std::size_t size = info_->domain_attr->mr_key_size; size < sizeof key)
        key &= (std::uint64_t{1} << (8 * size)) - 1;
    fid_mr* registered = nullptr;
    if (const int error = fi_mr_reg(domain_.get(), block->bytes.get(), bytes, FI_READ | FI_REMOTE_READ, 0, key, 0,
                                    &registered, nullptr);
        error != 0) {
        log(LogLevel::Info, "fi_mr_reg: %s", library_.describe(error));
        return nullptr;
    }
    block->registered = owned(registered);
    blocks_.push_back(std::move(block));
    free_blocks_.push_back(blocks_.back().get());
    return free_blocks_.back();
} catch (const std::bad_alloc&) {
    return nullptr;
}

/// A peer that was given up may still read the block later. It notices by the stamp, which changes before the data do.
/// The block stays registered, because a key that is no longer valid would break the connection of libfabric.
void Engine::give_back(Block& block) noexcept {
    std::memset(block.bytes.get() + block.offer.bytes, 0, sizeof block.offer.stamp);
    std::atomic_thread_fence(std::memory_order_release);
    if (block.block_use == BlockUse::Offer) --offered_blocks_;
    free_blocks_.push_back(&block);  // has room for all
}

const Offer& Engine::offer(Block& block, std::size_t bytes) noexcept {
    const bool by_address = (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
    block.offer = {.address = by_address ? reinterpret_cast<std::uint64_t>(block.bytes.get()) : 0,
                   .key = fi_mr_key(block.registered.get()),
                   .stamp = ++next_stamp_,
                   .bytes = static_cast<std::uint32_t>(bytes)};
    std::memcpy(block.bytes.get() + bytes, &block.offer.stamp, sizeof block.offer.stamp);
    return block.offer;
}

bool Engine::is_intact(const Block& block) noexcept {
    return std::memcmp(block.bytes.get() + block.offer.bytes, &block.offer.stamp, sizeof block.offer.stamp) == 0;
}

Engine::Sent Engine::read(Block& block, const Offer& offer, fi_addr_t peer) noexcept {
    block.offer = offer;
    block.arrived = false;
    fid_ep* const lane = lanes_[next_lane_++ % lanes_.size()].get();
    return sent(fi_read(lane, block.bytes.get(), offer.bytes + sizeof offer.stamp, fi_mr_desc(block.registered.get()),
                        peer, offer.address, offer.key, &block.context),
                "fi_read");
}

/// Takes an operation that failed, unless it is a receive.
Engine::Operation* Engine::failed() noexcept {
    fi_cq_err_entry error{};
    if (fi_cq_readerr(completions_.get(), &error, 0) <= 0 || error.op_context == nullptr) return nullptr;
    constexpr std::array names{"receive", "send", "read"};
    auto* operation = static_cast<Operation*>(error.op_context);
    if (error.err != FI_ECANCELED)
        log(LogLevel::Info, "libfabric: a %s failed: %s", names[static_cast<std::size_t>(operation->use)],
            library_.describe(error.err));
    if (operation->use != Use::Receive) return operation;
    missing_.push_back(static_cast<Buffer*>(operation));
    return nullptr;
}

bool Engine::may_sleep() noexcept {
    fid* queue = &completions_->fid;
    forget_error();
    return fi_trywait(fabric_.get(), &queue, 1) == 0;
}

}  // namespace viaduct::ofi

// SPDX-License-Identifier: BSD-3-Clause
// The libfabric objects of a device: an unconnected endpoint that exchanges frames with those of other processes. Only
// memory of the engine is ever given to libfabric, so that programs may free theirs at any time.
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>

#include <array>
#include <cerrno>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "backends/ofi/control.hpp"
#include "backends/ofi/frames.hpp"
#include "backends/ofi/library.hpp"

namespace viaduct::ofi {

struct CloseFabric {
    template <class Object>
    void operator()(Object* object) const noexcept {
        fi_close(&object->fid);
    }
};
template <class Object>
using FabricPointer = std::unique_ptr<Object, CloseFabric>;

/// Not thread-safe, except fd().
class Engine {
public:
    /// What libfabric may be doing with a piece of memory.
    enum class Use : std::uint8_t { Receive, Send, Read };

    /// Memory of the engine, and the connection of this process that sends or reads with it.
    struct Operation {
        fi_context2 context{};  // first, because libfabric returns its address
        Use use = Use::Receive;
        std::uint32_t connection = 0;
        std::uint64_t token = 0;
    };

    /// Memory for one frame.
    struct Buffer : Operation {
        std::byte* bytes = nullptr;
    };

    /// Memory for what a frame offers, at either end.
    enum class BlockUse : std::uint8_t { Offer, Read };
    struct Block : Operation {
        Block() noexcept { use = Use::Read; }
        std::unique_ptr<std::byte[]> bytes;
        FabricPointer<fid_mr> registered;
        Offer offer;               ///< what it holds, or is to hold
        std::uint64_t number = 0;  ///< of the frame
        BlockUse block_use = BlockUse::Read;
        bool of_response = false;
        bool arrived = false;

        std::span<const std::byte> data() const noexcept { return {bytes.get(), offer.bytes}; }
    };

    /// Opens an endpoint at an address of this host. Throws std::bad_alloc. Errors as Library::get() and find().
    static Result<std::unique_ptr<Engine>> open(const HostAddress& host);

    const control::ProviderName& provider() const noexcept { return provider_; }
    const control::FabricAddress& address() const noexcept { return address_; }

    Result<fi_addr_t> add_peer(const control::FabricAddress& address) noexcept;
    void remove_peer(fi_addr_t peer) noexcept { (void)fi_av_remove(addresses_.get(), &peer, 1, 0); }

    /// Returns a buffer to send from, or null if all are in use.
    Buffer* take() noexcept {
        if (free_.empty()) return nullptr;
        Buffer* buffer = free_.back();
        free_.pop_back();
        return buffer;
    }
    void give_back(Buffer& buffer) noexcept { free_.push_back(&buffer); }  // has room for all

    /// Returns memory to offer to a peer, or to read an offer into, or null if there is none. Offers never take all.
    Block* take_block(BlockUse use) noexcept;
    void give_back(Block& block) noexcept;

    /// Offers the first bytes of a block, which must not change until it is given back.
    const Offer& offer(Block& block, std::size_t bytes) noexcept;

    enum class Sent : std::uint8_t { Yes, NotNow, Failed };
    /// Unless the result is Yes, the buffer is still the caller's.
    Sent send(Buffer& buffer, std::size_t bytes, fi_addr_t peer) noexcept;

    /// Reads what a peer offers. Likewise.
    Sent read(Block& block, const Offer& offer, fi_addr_t peer) noexcept;

    /// Makes progress. Calls `on_frame(bytes)` for each frame that has arrived, `on_failure(operation)` for each one
    /// that was not sent, and `on_read(block, intact)` for each block that was read; the block is the caller's again.
    /// Returns whether anything has arrived.
    template <class OnFrame, class OnFailure, class OnRead>
    bool poll(OnFrame on_frame, OnFailure on_failure, OnRead on_read) noexcept;

    /// Reports whether buffers could not be posted for receives. poll() tries again.
    bool lacks_receives() const noexcept { return !missing_.empty(); }
    /// Reports whether a block can be taken when others are given back.
    bool has_blocks() const noexcept { return !blocks_.empty(); }

    /// For poll(2): readable if poll() should be called. Valid only if may_sleep() returned true before.
    int fd() const noexcept { return fd_; }
    bool may_sleep() noexcept;

private:
    explicit Engine(const Library& library) noexcept;
    Status start(const HostAddress& host);
    Status add_lane();
    Status allocate();
    bool post(Buffer& buffer) noexcept;
    void post_missing() noexcept;
    Block* make_block() noexcept;
    Operation* failed() noexcept;
    Sent sent(ssize_t error, const char* call) const noexcept;
    static bool is_intact(const Block& block) noexcept;
    /// Called before libfabric reads sockets. When a stranger hangs up, the provider `tcp` of libfabric 2.1 looks at
    /// errno although no call failed: with an old EAGAIN it would keep that connection, which wakes the agent for ever.
    static void forget_error() noexcept { errno = 0; }

    static constexpr std::size_t buffers = 128;     // for each direction
    static constexpr std::size_t max_blocks = 256;  // they are made when they are needed, and kept
    static constexpr std::size_t max_offered_blocks = max_blocks / 2;
    struct FreeMemory {
        void operator()(std::byte* memory) const noexcept { ::operator delete(memory, std::align_val_t(4096)); }
    };

    const Library& library_;
    InfoPointer info_{nullptr, nullptr};
    std::unique_ptr<std::byte, FreeMemory> memory_;
    std::vector<Buffer> all_;
    FabricPointer<fid_fabric> fabric_;
    FabricPointer<fid_domain> domain_;
    FabricPointer<fid_mr> registered_;  // null if the provider does not need it
    std::vector<std::unique_ptr<Block>> blocks_;
    std::vector<Block*> free_blocks_;
    std::size_t offered_blocks_ = 0;
    std::uint64_t next_stamp_;
    FabricPointer<fid_av> addresses_;
    FabricPointer<fid_cq> completions_;
    /// Endpoints that take turns to read what peers offer. Each has a TCP connection of its own to each peer, because
    /// some networks limit the speed of each connection. The first one carries all frames.
    std::vector<FabricPointer<fid_ep>> lanes_;
    std::size_t next_lane_ = 0;
    fid_ep* endpoint_ = nullptr;  // the first lane
    control::ProviderName provider_;
    control::FabricAddress address_;
    void* descriptor_ = nullptr;  // of the registered memory
    int fd_ = -1;
    std::vector<Buffer*> free_;
    std::vector<Buffer*> missing_;  // to be posted again
};

template <class OnFrame, class OnFailure, class OnRead>
bool Engine::poll(OnFrame on_frame, OnFailure on_failure, OnRead on_read) noexcept {
    if (!missing_.empty()) [[unlikely]]
        post_missing();
    std::array<fi_cq_msg_entry, 16> entries;
    forget_error();
    const ssize_t count = fi_cq_read(completions_.get(), entries.data(), entries.size());
    if (count < 0) {
        Operation* const operation = count == -FI_EAVAIL ? failed() : nullptr;
        if (operation == nullptr) return false;
        if (operation->use == Use::Read) {
            on_read(static_cast<Block&>(*operation), false);
        } else {
            on_failure(*operation);
            give_back(static_cast<Buffer&>(*operation));
        }
        return true;
    }
    bool arrived = false;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
        auto& operation = *static_cast<Operation*>(entries[i].op_context);
        arrived = arrived || operation.use != Use::Send;
        switch (operation.use) {
            case Use::Send: give_back(static_cast<Buffer&>(operation)); break;
            case Use::Read: {
                auto& block = static_cast<Block&>(operation);
                on_read(block, is_intact(block));
                break;
            }
            case Use::Receive:
                auto& buffer = static_cast<Buffer&>(operation);
                on_frame(std::span<const std::byte>(buffer.bytes, entries[i].len));
                if (!post(buffer)) missing_.push_back(&buffer);  // has room for all
                break;
        }
    }
    return arrived;
}

}  // namespace viaduct::ofi

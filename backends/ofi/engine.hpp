// SPDX-License-Identifier: BSD-3-Clause
// The libfabric objects of a device: an unconnected endpoint that exchanges frames with those of other processes. Only
// memory of the engine is ever given to libfabric, so that programs may free theirs at any time.
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>

#include <array>
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
    /// Memory for one frame. The engine owns it.
    struct Buffer {
        fi_context2 context{};  // first, because libfabric returns its address
        std::byte* bytes = nullptr;
        bool receives = false;
        std::uint32_t connection = 0;  ///< of this process, if it sends
        std::uint64_t token = 0;       ///< likewise
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

    enum class Sent : std::uint8_t { Yes, NotNow, Failed };
    /// Unless the frame was sent, the buffer is still the caller's.
    Sent send(Buffer& buffer, std::size_t bytes, fi_addr_t peer) noexcept;

    /// Makes progress. Calls `on_frame(bytes)` for each frame that has arrived and `on_failure(buffer)` for each one
    /// that was not sent. Returns the number of frames that have arrived.
    template <class OnFrame, class OnFailure>
    std::size_t poll(OnFrame on_frame, OnFailure on_failure) noexcept;

    /// For poll(2): readable if poll() should be called. Valid only if may_sleep() returned true before.
    int fd() const noexcept { return fd_; }
    bool may_sleep() noexcept;

private:
    explicit Engine(const Library& library) noexcept : library_(library) {}
    Status start(const HostAddress& host);
    Status allocate();
    bool post(Buffer& buffer) noexcept;
    void post_missing() noexcept;
    Buffer* failed() noexcept;

    static constexpr std::size_t buffers = 256;  // for each direction
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
    FabricPointer<fid_av> addresses_;
    FabricPointer<fid_cq> completions_;
    FabricPointer<fid_ep> endpoint_;
    control::ProviderName provider_;
    control::FabricAddress address_;
    void* descriptor_ = nullptr;  // of the registered memory
    int fd_ = -1;
    std::vector<Buffer*> free_;
    std::vector<Buffer*> missing_;  // to be posted again
};

template <class OnFrame, class OnFailure>
std::size_t Engine::poll(OnFrame on_frame, OnFailure on_failure) noexcept {
    if (!missing_.empty()) [[unlikely]]
        post_missing();
    std::array<fi_cq_msg_entry, 16> entries;
    const ssize_t count = fi_cq_read(completions_.get(), entries.data(), entries.size());
    if (count < 0) {
        if (count == -FI_EAVAIL)
            if (Buffer* buffer = failed()) {
                on_failure(*buffer);
                give_back(*buffer);
            }
        return 0;
    }
    std::size_t frames = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
        Buffer& buffer = *static_cast<Buffer*>(entries[i].op_context);
        if (!buffer.receives) {
            give_back(buffer);
            continue;
        }
        ++frames;
        on_frame(std::span<const std::byte>(buffer.bytes, entries[i].len));
        if (!post(buffer)) missing_.push_back(&buffer);  // has room for all
    }
    return frames;
}

}  // namespace viaduct::ofi

// SPDX-License-Identifier: BSD-3-Clause
// VIPL as a programming interface to measure: through vipl.h alone, as any program would use it.
#pragma once

#include <vipl.h>

#include "tools/measure/api.hpp"
#include "tools/measure/buffer.hpp"

namespace viaduct::measure {

/// Throws an Error that names the call and its result.
[[noreturn]] void fail_vipl(const char* call, VIP_RETURN result);

inline void check_vipl(const char* call, VIP_RETURN result) {
    if (result != VIP_SUCCESS) [[unlikely]]
        fail_vipl(call, result);
}

class ViplApi final : public Api {
public:
    explicit ViplApi(std::uint32_t device);

    std::unique_ptr<Region> register_memory(std::span<std::byte> memory) override;
    std::unique_ptr<Link> create_link(const LinkOptions& options) override;
    std::unique_ptr<Listener> listen(const Service& service) override;

    VIP_NIC_HANDLE nic() const noexcept { return nic_.get(); }
    VIP_MEM_HANDLE register_range(void* address, std::size_t size, bool remote);
    VIP_VI_HANDLE create_vi(VIP_CQ_HANDLE queue, Reliability reliability);

private:
    struct CloseNic {
        void operator()(VIP_NIC_HANDLE nic) const noexcept { VipCloseNic(nic); }
    };

    std::unique_ptr<void, CloseNic> nic_;  // frees with it all that was made on it
    VIP_PROTECTION_HANDLE ptag_ = nullptr;
    VIP_CQ_HANDLE bare_queue_ = nullptr;
};

class ViplLink final : public Link {
public:
    ViplLink(ViplApi& api, const LinkOptions& options, VIP_CQ_HANDLE queue);
    ~ViplLink() override;

    void connect(const Address& remote, Timeout timeout) override;
    void disconnect() noexcept override;
    VIP_VI_HANDLE vi() const noexcept { return vi_; }

    void post_receive(const Piece& piece) override {
        VIP_DESCRIPTOR& descriptor = receives_.next();
        write_control(descriptor.CS, VIP_CONTROL_OP_SENDRECV, 1, piece);
        descriptor.DS[0].Local = segment_of(piece);
        check_vipl("VipPostRecv", VipPostRecv(vi_, &descriptor, descriptors_));
        ++receives_.outstanding;
    }

    void post(Operation operation, const Piece& piece, const RemoteAddress& remote) override {
        VIP_DESCRIPTOR& descriptor = sends_.next();
        switch (operation) {
            case Operation::Send: write_message(descriptor, VIP_CONTROL_OP_SENDRECV, piece); break;
            case Operation::SendImmediate:
                write_message(descriptor, VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE, piece);
                break;
            case Operation::Write: write_rdma(descriptor, VIP_CONTROL_OP_RDMAWRITE, piece, remote); break;
            case Operation::WriteImmediate:
                write_rdma(descriptor, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, piece, remote);
                break;
            default: write_rdma(descriptor, VIP_CONTROL_OP_RDMAREAD, piece, remote);
        }
        check_vipl("VipPostSend", VipPostSend(vi_, &descriptor, descriptors_));
        ++sends_.outstanding;
    }

    bool poll_send() override { return take<VipSendDone>(sends_) != nullptr; }
    std::optional<std::uint32_t> poll_receive() override { return length_of(take<VipRecvDone>(receives_)); }
    bool wait_send(Timeout timeout) override;
    std::optional<std::uint32_t> wait_receive(Timeout timeout) override;

private:
    /// Descriptors in the order of posting, which is also that of completion.
    struct Ring {
        std::byte* descriptors = nullptr;
        std::uint32_t stride = 0;
        std::uint32_t depth = 0;
        std::uint32_t head = 0;
        std::uint32_t outstanding = 0;

        /// The first one, if none is outstanding: one that has just been used is in the cache.
        VIP_DESCRIPTOR& next() noexcept {
            if (outstanding == 0) head = 0;
            auto& descriptor = *reinterpret_cast<VIP_DESCRIPTOR*>(descriptors + std::size_t{head} * stride);
            head = head + 1 == depth ? 0 : head + 1;
            return descriptor;
        }
    };

    /// In its place, as programs do it: a copy of what was just written would have to wait for it.
    static void write_control(VIP_CONTROL_SEGMENT& segment, VIP_UINT16 operation, VIP_UINT16 segments,
                              const Piece& piece) noexcept {
        segment = {};
        segment.Control = operation;
        segment.SegCount = segments;
        segment.Length = piece.length;
    }

    static VIP_DATA_SEGMENT segment_of(const Piece& piece) noexcept {
        return {.Data = {.Address = piece.address}, .Handle = piece.region->key, .Length = piece.length};
    }

    [[gnu::always_inline]] static void write_message(VIP_DESCRIPTOR& descriptor, VIP_UINT16 control,
                                                     const Piece& piece) noexcept {
        write_control(descriptor.CS, control, 1, piece);
        descriptor.DS[0].Local = segment_of(piece);
        if (piece.segments != 1) [[unlikely]]
            write_list(descriptor, 0, piece);
    }

    [[gnu::always_inline]] static void write_rdma(VIP_DESCRIPTOR& descriptor, VIP_UINT16 control, const Piece& piece,
                                                  const RemoteAddress& remote) noexcept {
        write_control(descriptor.CS, control, 2, piece);
        descriptor.DS[0].Remote = {.Data = {.AddressBits = remote.address}, .Handle = remote.key, .Reserved = 0};
        descriptor.DS[1].Local = segment_of(piece);
        if (piece.segments != 1) [[unlikely]]
            write_list(descriptor, 1, piece);
    }

    /// Replaces the one segment of data by those of the piece.
    static void write_list(VIP_DESCRIPTOR& descriptor, std::uint32_t first, const Piece& piece) noexcept;

    /// The descriptor that a Done or Wait call takes, or null.
    template <auto call, class... Wait>
    const VIP_DESCRIPTOR* take(Ring& ring, Wait... timeout) {
        if (ring.outstanding == 0) return nullptr;
        VIP_DESCRIPTOR* done = nullptr;
        const VIP_RETURN result = call(vi_, timeout..., &done);
        if (result == VIP_NOT_DONE || result == VIP_TIMEOUT) return nullptr;
        if (result != VIP_SUCCESS) [[unlikely]]
            fail(result, done);
        --ring.outstanding;
        return done;
    }

    static std::optional<std::uint32_t> length_of(const VIP_DESCRIPTOR* done) noexcept {
        return done == nullptr ? std::nullopt : std::optional(done->CS.Length);
    }

    [[noreturn]] static void fail(VIP_RETURN result, const VIP_DESCRIPTOR* done);

    ViplApi& api_;
    Buffer memory_;
    VIP_MEM_HANDLE descriptors_ = 0;
    VIP_VI_HANDLE vi_ = nullptr;
    Ring sends_;
    Ring receives_;
};

}  // namespace viaduct::measure

// SPDX-License-Identifier: BSD-3-Clause
// DAT 2.0 as a programming interface to measure: through udat.h alone, as any program would use it.
#pragma once

#include <dat2/udat.h>

#include <vector>

#include "tools/measure/api.hpp"
#include "viaduct/deadline.hpp"

namespace viaduct::measure {

/// Throws an Error that names the call and its result.
[[noreturn]] void fail_dat(const char* call, DAT_RETURN result);

inline void check_dat(const char* call, DAT_RETURN result) {
    if (result != DAT_SUCCESS) [[unlikely]]
        fail_dat(call, result);
}

/// Owns an object of DAT; `destroy` is the function that ends it.
template <auto destroy>
struct DatFree {
    void operator()(DAT_HANDLE object) const noexcept { destroy(object); }
};
template <auto destroy>
using DatObject = std::unique_ptr<void, DatFree<destroy>>;

struct DatRegion final : Region {
    DatObject<dat_lmr_free> object;
    DAT_LMR_CONTEXT context = 0;
};

/// An event dispatcher, which several links may share.
using DatQueue = std::shared_ptr<void>;

class DatApi final : public Api {
public:
    explicit DatApi(std::uint32_t device);

    std::unique_ptr<Region> register_memory(std::span<std::byte> memory) override;
    std::unique_ptr<Link> create_link(const LinkOptions& options) override;
    std::unique_ptr<Listener> listen(const Service& service) override;

    DAT_IA_HANDLE adapter() const noexcept { return adapter_.get(); }
    DAT_PZ_HANDLE zone() const noexcept { return zone_; }
    DAT_EP_ATTR endpoint_attributes(const LinkOptions& options) const noexcept;
    DatQueue create_queue(DAT_EVD_FLAGS events, std::uint32_t depth) const;

private:
    struct Close {
        void operator()(DAT_IA_HANDLE adapter) const noexcept { dat_ia_close(adapter, DAT_CLOSE_ABRUPT_FLAG); }
    };

    DAT_IA_ATTR attributes_{};
    std::unique_ptr<void, Close> adapter_;  // frees with it all that was made on it
    DAT_PZ_HANDLE zone_ = DAT_HANDLE_NULL;
    DatQueue bare_queue_;
};

class DatLink final : public Link {
public:
    DatLink(DatApi& api, const LinkOptions& options, DatQueue sends, DatQueue receives);
    ~DatLink() override { disconnect(); }

    void connect(const Address& remote, Timeout timeout) override;
    void disconnect() noexcept override;

    /// Consumes the request. False: its sender has given up.
    bool accept(DAT_CR_HANDLE request);

    void post_receive(const Piece& piece) override {
        if (!connected_) [[unlikely]]
            early_receives_.push_back(piece);
        auto triplet = local(piece);
        check_posted("dat_ep_post_recv",
                     dat_ep_post_recv(endpoint_.get(), 1, &triplet, {}, DAT_COMPLETION_DEFAULT_FLAG));
        ++receives_.outstanding;
    }

    void post(Operation operation, const Piece& piece, const RemoteAddress& remote) override {
        std::array<DAT_LMR_TRIPLET, max_segments> parts;
        const DAT_COUNT count = fill(parts, piece);
        const DAT_RMR_TRIPLET there{
            .virtual_address = remote.address, .segment_length = piece.length, .rmr_context = remote.key};
        switch (operation) {
            case Operation::Send:
                check_posted("dat_ep_post_send",
                             dat_ep_post_send(endpoint_.get(), count, parts.data(), {}, DAT_COMPLETION_DEFAULT_FLAG));
                break;
            case Operation::Write:
                check_posted("dat_ep_post_rdma_write", dat_ep_post_rdma_write(endpoint_.get(), count, parts.data(), {},
                                                                              &there, DAT_COMPLETION_DEFAULT_FLAG));
                break;
            case Operation::Read:
                check_posted("dat_ep_post_rdma_read", dat_ep_post_rdma_read(endpoint_.get(), count, parts.data(), {},
                                                                            &there, DAT_COMPLETION_DEFAULT_FLAG));
                break;
            default: post_extension(operation, count, parts.data(), there);
        }
        ++sends_.outstanding;
    }

    bool poll_send() override { return take(sends_) != nullptr; }
    std::optional<std::uint32_t> poll_receive() override { return length_of(take(receives_)); }
    bool wait_send(Timeout timeout) override { return await(sends_, timeout) != nullptr; }
    std::optional<std::uint32_t> wait_receive(Timeout timeout) override { return length_of(await(receives_, timeout)); }

private:
    /// A dispatcher of completions and what was taken from it last.
    struct Inbox {
        DatQueue queue;
        std::uint32_t outstanding = 0;  ///< posted and not completed
        DAT_EVENT event;
    };

    static DAT_LMR_TRIPLET local(const Piece& piece) noexcept {
        return {.virtual_address = reinterpret_cast<std::uintptr_t>(piece.address),
                .segment_length = piece.length,
                .lmr_context = static_cast<const DatRegion*>(piece.region)->context};
    }

    void post_extension(Operation operation, DAT_COUNT count, DAT_LMR_TRIPLET* parts, const DAT_RMR_TRIPLET& there);

    static DAT_COUNT fill(std::span<DAT_LMR_TRIPLET, max_segments> parts, const Piece& piece) noexcept {
        parts[0] = local(piece);
        if (piece.segments != 1) [[unlikely]]
            for (std::uint32_t i = 0; i < piece.segments; ++i) parts[i] = local(part_of(piece, i));
        return static_cast<DAT_COUNT>(piece.segments);
    }

    static const DAT_DTO_COMPLETION_EVENT_DATA* take(Inbox& inbox) {
        const DAT_RETURN result = dat_evd_dequeue(inbox.queue.get(), &inbox.event);
        if (DAT_GET_TYPE(result) == DAT_QUEUE_EMPTY) return nullptr;
        check_dat("dat_evd_dequeue", result);
        return completion_of(inbox);
    }

    static const DAT_DTO_COMPLETION_EVENT_DATA* completion_of(Inbox& inbox) {
        --inbox.outstanding;
        const auto& completion = inbox.event.event_data.dto_completion_event_data;
        if (completion.status != DAT_DTO_SUCCESS) [[unlikely]]
            fail(completion.status);
        return &completion;
    }

    static std::optional<std::uint32_t> length_of(const DAT_DTO_COMPLETION_EVENT_DATA* completion) noexcept {
        return completion == nullptr ? std::nullopt : std::optional(completion->transfered_length);
    }

    static void check_posted(const char* call, DAT_RETURN result) {
        if (result != DAT_SUCCESS) [[unlikely]]
            fail_post(call, result);
    }

    static const DAT_DTO_COMPLETION_EVENT_DATA* await(Inbox& inbox, Timeout timeout);
    DAT_EVENT_NUMBER finish_connecting(const Deadline& deadline);
    DAT_EVENT_NUMBER next_event(const Deadline& deadline) const;
    void reset() noexcept;
    [[noreturn]] static void fail(DAT_DTO_COMPLETION_STATUS status);
    [[noreturn]] static void fail_post(const char* call, DAT_RETURN result);

    Inbox sends_;
    Inbox receives_;
    DatQueue events_;  // of the connection
    DatObject<dat_ep_free> endpoint_;
    bool connected_ = false;
    std::vector<Piece> early_receives_;  // posted before there was a connection: an attempt that fails loses them
};

}  // namespace viaduct::measure

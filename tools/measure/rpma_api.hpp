// SPDX-License-Identifier: BSD-3-Clause
// librpma as a programming interface to measure: through librpma.h alone, as any program would use it.
#pragma once

#include <librpma.h>

#include <vector>

#include "tools/measure/api.hpp"
#include "tools/measure/error.hpp"
#include "viaduct/deadline.hpp"

namespace viaduct::measure {

/// Throws an Error that names the call and its result.
[[noreturn]] void fail_rpma(const char* call, int result);

inline void check_rpma(const char* call, int result) {
    if (result != 0) [[unlikely]]
        fail_rpma(call, result);
}

/// Owns an object of librpma; `destroy` is the function that ends it.
template <auto destroy>
struct RpmaDelete {
    template <class T>
    void operator()(T* object) const noexcept {
        destroy(&object);
    }
};
template <class T, auto destroy>
using RpmaPtr = std::unique_ptr<T, RpmaDelete<destroy>>;

using RpmaPeer = RpmaPtr<rpma_peer, rpma_peer_delete>;
using RpmaMemory = RpmaPtr<rpma_mr_local, rpma_mr_dereg>;
using RpmaRemoteMemory = RpmaPtr<rpma_mr_remote, rpma_mr_remote_delete>;
using RpmaPeerConfiguration = RpmaPtr<rpma_peer_cfg, rpma_peer_cfg_delete>;
using RpmaConfiguration = RpmaPtr<rpma_conn_cfg, rpma_conn_cfg_delete>;
using RpmaEndpoint = RpmaPtr<rpma_ep, rpma_ep_shutdown>;
using RpmaRequest = RpmaPtr<rpma_conn_req, rpma_conn_req_delete>;
using RpmaConnection = RpmaPtr<rpma_conn, rpma_conn_delete>;

struct RpmaRegion final : Region {
    RpmaMemory object;
    std::byte* begin = nullptr;
};

class RpmaApi final : public Api {
public:
    explicit RpmaApi(std::uint32_t device);

    std::unique_ptr<Region> register_memory(std::span<std::byte> memory) override;
    std::unique_ptr<Link> create_link(const LinkOptions& options) override;
    std::unique_ptr<Listener> listen(const Service& service) override;

    rpma_peer* peer() const noexcept { return peer_.get(); }

private:
    RpmaPeer peer_;
};

class RpmaLink final : public Link {
public:
    RpmaLink(RpmaApi& api, const LinkOptions& options);

    void connect(const Address& remote, Timeout timeout) override;
    void disconnect() noexcept override;

    /// Takes the next request of an endpoint. False: there is none, or its sender has given up.
    bool accept(rpma_ep* endpoint);

    void post_receive(const Piece& piece) override {
        if (connection_ == nullptr) [[unlikely]]
            return early_receives_.push_back(piece);
        check_rpma("rpma_recv", rpma_recv(connection_.get(), local(piece), offset_of(piece), piece.length, nullptr));
    }

    void post(Operation operation, const Piece& piece, const RemoteAddress& place) override {
        rpma_conn* connection = connection_.get();
        constexpr int flags = RPMA_F_COMPLETION_ALWAYS;
        switch (operation) {
            case Operation::Send:
                return check_rpma("rpma_send",
                                  rpma_send(connection, local(piece), offset_of(piece), piece.length, flags, nullptr));
            case Operation::Write:
                return check_rpma("rpma_write", rpma_write(connection, remote(place), 0, local(piece), offset_of(piece),
                                                           piece.length, flags, nullptr));
            case Operation::SendImmediate:
                return check_rpma("rpma_send_with_imm", rpma_send_with_imm(connection, local(piece), offset_of(piece),
                                                                           piece.length, flags, 0, nullptr));
            case Operation::WriteImmediate:
                return check_rpma("rpma_write_with_imm",
                                  rpma_write_with_imm(connection, remote(place), 0, local(piece), offset_of(piece),
                                                      piece.length, flags, 0, nullptr));
            case Operation::Flush: return write_and_flush(piece, place, RPMA_FLUSH_TYPE_VISIBILITY);
            case Operation::FlushPersistent: return write_and_flush(piece, place, RPMA_FLUSH_TYPE_PERSISTENT);
            case Operation::AtomicWrite:
                return check_rpma("rpma_atomic_write",
                                  rpma_atomic_write(connection, remote(place), 0,
                                                    reinterpret_cast<const char*>(piece.address), flags, nullptr));
            case Operation::FetchAdd:
            case Operation::CompareSwap: throw Error("librpma has no such operation");
            case Operation::Read:
                return check_rpma("rpma_read", rpma_read(connection, local(piece), offset_of(piece), remote(place), 0,
                                                         piece.length, flags, nullptr));
        }
    }

    bool poll_send() override { return take(sends_) != nullptr; }
    std::optional<std::uint32_t> poll_receive() override { return length_of(take(receives_)); }
    bool wait_send(Timeout timeout) override { return await(sends_, timeout) != nullptr; }
    std::optional<std::uint32_t> wait_receive(Timeout timeout) override { return length_of(await(receives_, timeout)); }

private:
    /// A completion queue and what was taken from it last.
    struct Inbox {
        rpma_cq* queue = nullptr;
        int fd = -1;  ///< once somebody has waited
        ibv_wc completion;
    };

    static rpma_mr_local* local(const Piece& piece) noexcept {
        return static_cast<const RpmaRegion*>(piece.region)->object.get();
    }
    static std::size_t offset_of(const Piece& piece) noexcept {
        return static_cast<std::size_t>(piece.address - static_cast<const RpmaRegion*>(piece.region)->begin);
    }

    rpma_mr_remote* remote(const RemoteAddress& place) {
        if (place.key != remote_address_.key || place.address != remote_address_.address) [[unlikely]]
            learn_remote(place);
        return remote_.get();
    }

    void write_and_flush(const Piece& piece, const RemoteAddress& place, rpma_flush_type type) {
        check_rpma("rpma_write", rpma_write(connection_.get(), remote(place), 0, local(piece), offset_of(piece),
                                            piece.length, RPMA_F_COMPLETION_ON_ERROR, nullptr));
        check_rpma("rpma_flush", rpma_flush(connection_.get(), remote(place), 0, piece.length, type,
                                            RPMA_F_COMPLETION_ALWAYS, nullptr));
    }

    static const ibv_wc* take(Inbox& inbox) {
        const int result = rpma_cq_get_wc(inbox.queue, 1, &inbox.completion, nullptr);
        if (result == RPMA_E_NO_COMPLETION) return nullptr;
        check_rpma("rpma_cq_get_wc", result);
        if (inbox.completion.status != IBV_WC_SUCCESS) [[unlikely]]
            fail(inbox.completion.status);
        return &inbox.completion;
    }

    static std::optional<std::uint32_t> length_of(const ibv_wc* completion) noexcept {
        return completion == nullptr ? std::nullopt : std::optional(completion->byte_len);
    }

    static const ibv_wc* await(Inbox& inbox, Timeout timeout);
    static bool sleep(Inbox& inbox, const Deadline& deadline);
    void learn_remote(const RemoteAddress& place);
    int start(RpmaRequest request);
    rpma_conn_event next_event() const;
    void open_inboxes();
    [[noreturn]] static void fail(ibv_wc_status status);

    RpmaApi& api_;
    RpmaConfiguration configuration_;
    bool has_receive_queue_;
    std::vector<Piece> early_receives_;  // posted before there was a connection to post them to
    RpmaConnection connection_;
    Inbox sends_;
    Inbox receives_;
    RemoteAddress remote_address_;  // of the last write or read
    RpmaRemoteMemory remote_;
};

}  // namespace viaduct::measure

// SPDX-License-Identifier: BSD-3-Clause
// The core as a programming interface to measure.
#pragma once

#include <array>

#include "tools/measure/api.hpp"
#include "viaduct/endpoint.hpp"

namespace viaduct::measure {

class CoreApi final : public Api {
public:
    explicit CoreApi(std::uint32_t device);

    std::unique_ptr<Region> register_memory(std::span<std::byte> memory) override;
    std::unique_ptr<Link> create_link(const LinkOptions& options) override;
    std::unique_ptr<Listener> listen(const Service& service) override;

    /// What every endpoint is made with, so that both ends agree.
    EndpointAttributes endpoint_attributes(Reliability reliability) const noexcept;
    std::shared_ptr<CompletionQueue> create_queue(std::uint32_t depth);
    const std::shared_ptr<ProtectionDomain>& domain() const noexcept { return domain_; }

private:
    Access access(Reliability reliability = Reliability::ReliableDelivery) const noexcept;

    std::shared_ptr<Device> device_;
    std::shared_ptr<ProtectionDomain> domain_;
    std::shared_ptr<CompletionQueue> bare_queue_;
};

class CoreLink final : public Link {
public:
    /// `context` is returned in completions.
    CoreLink(const CoreApi& api, const LinkOptions& options, std::shared_ptr<CompletionQueue> sends,
             std::shared_ptr<CompletionQueue> receives, std::uint64_t context = 0);

    void connect(const Address& remote, Timeout timeout) override;
    void disconnect() noexcept override;

    /// False: the client has given up.
    bool accept(viaduct::ConnectionRequest& request);

    void post_receive(const Piece& piece) override {
        const Sge sge = sge_of(piece);
        check_posted(endpoint_->post_receive(ReceiveRequest{.sges = {&sge, 1}}));
    }
    void post(Operation operation, const Piece& piece, const RemoteAddress& remote) override {
        if (piece.segments != 1) [[unlikely]]
            return post_list(operation, piece, remote, 1);
        switch (operation) {
            case Operation::Send: return post_one(Opcode::Send, piece, {});
            case Operation::Write: return post_one(Opcode::RdmaWrite, piece, remote);
            case Operation::Read: return post_one(Opcode::RdmaRead, piece, remote);
            default: return post_list(operation, piece, remote, 1);
        }
    }

    void post_list(Operation operation, Piece piece, RemoteAddress remote, std::uint32_t count) override;

    bool poll_send() override { return take(sends_) != nullptr; }
    std::optional<std::uint32_t> poll_receive() override { return length_of(take(receives_)); }
    bool wait_send(Timeout timeout) override { return await(sends_, timeout) != nullptr; }
    std::optional<std::uint32_t> wait_receive(Timeout timeout) override { return length_of(await(receives_, timeout)); }

private:
    /// A completion queue and what was taken from it in one go.
    struct Inbox {
        std::shared_ptr<CompletionQueue> queue;
        std::array<Completion, 32> batch;
        std::size_t next = 0;
        std::size_t end = 0;

        void fill(std::size_t count) noexcept {
            next = 0;
            end = count;
        }
    };

    static Sge sge_of(const Piece& piece) noexcept { return {piece.address, piece.region->key, piece.length}; }

    /// Compiled for each opcode: the library reads it together with its neighbours, which must have been written so.
    [[gnu::always_inline]] void post_one(Opcode opcode, const Piece& piece, const RemoteAddress& remote) {
        const Sge sge = sge_of(piece);
        check_posted(endpoint_->post_send({.opcode = opcode, .remote = remote, .sges = {&sge, 1}}));
    }

    const Completion* take(Inbox& inbox) {
        if (inbox.next == inbox.end) {
            inbox.fill(inbox.queue->poll(inbox.batch));
            if (inbox.end == 0) return nullptr;
        }
        const Completion& completion = inbox.batch[inbox.next++];
        if (completion.code != CompletionCode::Success) [[unlikely]]
            fail(completion.code);
        return &completion;
    }

    const Completion* await(Inbox& inbox, Timeout timeout) {
        if (inbox.next == inbox.end) inbox.fill(inbox.queue->wait(inbox.batch, Deadline::after(timeout)));
        return inbox.end == 0 ? nullptr : take(inbox);
    }

    static std::optional<std::uint32_t> length_of(const Completion* completion) noexcept {
        return completion == nullptr ? std::nullopt : std::optional(completion->bytes);
    }

    static void check_posted(Status status) {
        if (!status.ok()) [[unlikely]]
            fail_post(status);
    }

    [[noreturn]] static void fail(CompletionCode code);
    [[noreturn]] static void fail_post(Status status);

    Address local_;
    std::vector<SendRequest> list_;  // the last one posted
    Inbox sends_;
    Inbox receives_;
    std::unique_ptr<Endpoint> endpoint_;
};

}  // namespace viaduct::measure

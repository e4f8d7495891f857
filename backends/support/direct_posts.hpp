// SPDX-License-Identifier: BSD-3-Clause
// The calls of an endpoint that post requests, for backends whose queues have a short path for one of a common kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/backend.hpp"

namespace viaduct::support {

/// The base of an endpoint, `Self`, which makes this class a friend and has the queues send_ and receive_.
template <class Self>
class DirectPosts : public backend::Endpoint {
public:
    Status post_send(std::span<const SendRequest> requests, std::size_t& posted) noexcept override {
        return self().send_.post(requests, posted);
    }
    Status post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept override {
        return self().receive_.post(requests, posted);
    }
    const Status* post_send(const SendRequest& request) noexcept override { return self().send_.post(request); }
    const Status* post_receive(const ReceiveRequest& request) noexcept override {
        return self().receive_.post(request);
    }
    const Status* send_one(std::uint64_t context, void* address, std::uint32_t length,
                           std::uint32_t key) noexcept override {
        return self().send_.send_one(context, address, length, key);
    }
    const Status* write_one(std::uint64_t context, void* address, std::uint32_t length, std::uint32_t key,
                            std::uint64_t remote_address, std::uint32_t remote_key) noexcept override {
        return self().send_.write_one(context, address, length, key, remote_address, remote_key);
    }
    const Status* read_one(std::uint64_t context, void* address, std::uint32_t length, std::uint32_t key,
                           std::uint64_t remote_address, std::uint32_t remote_key) noexcept override {
        return self().send_.read_one(context, address, length, key, remote_address, remote_key);
    }
    const Status* receive_one(std::uint64_t context, void* address, std::uint32_t length,
                              std::uint32_t key) noexcept override {
        return self().receive_.receive_one(context, address, length, key);
    }

private:
    friend Self;
    template <class, class, class>
    friend class EndpointBase;
    DirectPosts() = default;

    Self& self() noexcept { return static_cast<Self&>(*this); }
};

}  // namespace viaduct::support

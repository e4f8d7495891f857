// SPDX-License-Identifier: BSD-3-Clause
// The core for cycles.c.
#include <unistd.h>

#include <array>
#include <string>

#include "tests/bench/cycles.h"
#include "viaduct/endpoint.hpp"

namespace {

using namespace viaduct;

constexpr std::uint16_t first_service = 22000;
constexpr std::uint16_t services = 40000;

void check(const char* call, Status status) {
    if (!status.ok()) [[unlikely]]
        fail(call, to_string(status.code()));
}

template <class T>
T checked(const char* call, Result<T> result) {
    check(call, result.status());
    return std::move(*result);
}

class End {
public:
    explicit End(Memory& memory)
        : device_(checked("Device::open", Device::open(0))),
          domain_(checked("ProtectionDomain::create", ProtectionDomain::create(device_))),
          region_(checked("MemoryRegion::create", MemoryRegion::create(domain_, &memory, sizeof memory, access))),
          key_(region_->key()),
          sends_(checked("CompletionQueue::create", CompletionQueue::create(device_, {.capacity = queue_size}))),
          receives_(checked("CompletionQueue::create", CompletionQueue::create(device_, {.capacity = queue_size}))),
          endpoint_(checked("Endpoint::create",
                            Endpoint::create({.attributes = {.max_transfer_bytes = max_size, .access = access},
                                              .domain = domain_,
                                              .send_queue = sends_,
                                              .receive_queue = receives_}))) {}

    Device& device() noexcept { return *device_; }
    const Bytes<Address::max_host>& host() const noexcept { return device_->attributes().host; }
    std::uint32_t key() const noexcept { return key_; }
    Endpoint& endpoint() noexcept { return *endpoint_; }
    CompletionQueue& sends() noexcept { return *sends_; }
    CompletionQueue& receives() noexcept { return *receives_; }

    void await_established() {
        const auto event = checked("next_event", endpoint_->next_event(Deadline::never()));
        if (event.kind != ConnectionEventKind::Established) fail("connect", event.why.c_str());
    }

private:
    static constexpr Access access{.remote_write = true, .remote_read = true};
    std::shared_ptr<Device> device_;
    std::shared_ptr<ProtectionDomain> domain_;
    std::unique_ptr<MemoryRegion> region_;
    std::uint32_t key_;
    std::shared_ptr<CompletionQueue> sends_;
    std::shared_ptr<CompletionQueue> receives_;
    std::unique_ptr<Endpoint> endpoint_;
};

std::array<std::unique_ptr<End>, end_count> ends;

Sge piece(int end, void* start, std::size_t size) {
    return {.address = start, .key = ends[end]->key(), .length = static_cast<std::uint32_t>(size)};
}

void post(int end, Opcode opcode, const Sge& local, const RemoteAddress& remote) {
    check("post_send", ends[end]->endpoint().post_send({.opcode = opcode, .remote = remote, .sges = {&local, 1}}));
}

inline void take(CompletionQueue& queue, unsigned& counter) {
    Completion completion;
    if (!queue.poll(completion)) return;
    if (completion.code != CompletionCode::Success) fail("poll", "a failed completion");
    ++counter;
}

RemoteAddress remote(int end, const void* start) {
    return {.address = reinterpret_cast<std::uintptr_t>(start), .key = ends[1 - end]->key()};
}

}  // namespace

void open_ends(char* const*) {
    for (int end = 0; end < end_count; ++end) {
        ends[end] = std::make_unique<End>(memory[end]);
        for (int i = 0; i < receives_ahead; ++i) post_receive(end);
    }
    const auto number = static_cast<std::uint16_t>(first_service + getpid() % services);
    const std::array<std::uint8_t, 2> bytes{static_cast<std::uint8_t>(number >> 8), static_cast<std::uint8_t>(number)};
    const Address address{.host = ends[1]->host(), .service = Service(bytes)};
    const auto listener = checked("listen", ends[1]->device().listen(address));
    check("connect", ends[0]->endpoint().connect({.local = {.host = ends[0]->host(), .service = {}},
                                                  .remote = address,
                                                  .private_data = {},
                                                  .deadline = Deadline::never()}));
    const auto request = checked("next_request", listener->next_request(Deadline::never()));
    check("accept", ends[1]->endpoint().accept(*request));
    for (const auto& end : ends) end->await_established();
}

void close_ends() {
    for (auto& end : ends) end.reset();
}

void post_receive(int end) {
    const Sge local = piece(end, memory[end].incoming, max_size);
    check("post_receive", ends[end]->endpoint().post_receive(ReceiveRequest{.sges = {&local, 1}}));
}

void post_send(int end, std::size_t size) { post(end, Opcode::Send, piece(end, memory[end].outgoing, size), {}); }

void post_write(int end, std::size_t size) {
    post(end, Opcode::RdmaWrite, piece(end, memory[end].outgoing, size), remote(end, memory[1 - end].incoming));
}

void post_read(int end, std::size_t size) {
    post(end, Opcode::RdmaRead, piece(end, memory[end].incoming, size), remote(end, memory[1 - end].outgoing));
}

void poll_sends(int end) { take(ends[end]->sends(), sent[end]); }

void poll_receives(int end) { take(ends[end]->receives(), received[end]); }

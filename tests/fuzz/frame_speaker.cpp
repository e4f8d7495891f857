// SPDX-License-Identifier: BSD-3-Clause
#include "tests/fuzz/frame_speaker.hpp"

#include <thread>

#include "backends/support/services.hpp"
#include "tests/support/rig.hpp"

namespace viaduct::fuzz {

using namespace ofi;
using testing::must;
using testing::patience;
using testing::require;

namespace {

constexpr std::uint32_t number = 77;  // of each connection, at this end

}  // namespace

FrameSpeaker::FrameSpeaker(const HostAddress& host)
    : policy_(must(Policy::from_environment())), engine_(must(Engine::open(host))), host_(host) {}

void FrameSpeaker::listen(const Service& service) {
    service_ = service;
    listening_ = must(ControlSocket::listen(host_, support::port_for(service)));
}

std::optional<control::Message> FrameSpeaker::receive_message() {
    require(testing::readable(socket_.fd(), patience()), "a control message");
    return must(socket_.receive());
}

/// Passes over those that ask whose port it is, as vi-info does.
control::Request FrameSpeaker::next_request() {
    while (true) {
        require(testing::readable(listening_.get(), patience()), "a client");
        socket_ = must(ControlSocket::accept(policy_, listening_.get()));
        must(socket_.send(control::Challenge{}));
        std::optional<control::Message> message;
        while (!message) message = receive_message();
        const auto& request = std::get<control::Request>(*message);
        if (request.remote.service == service_) return request;
        must(socket_.send(control::NoListener{}));
    }
}

void FrameSpeaker::accept() {
    remote_ = next_request().end;

    if (!peer_) peer_ = must(engine_->add_peer(remote_.address));
    ended_ = false;
    requests_ = {};
    responses_ = {};
    executed_ = handled_ = told_ = 0;
    data_.clear();
    const control::End own{.provider = engine_->provider(),
                           .address = engine_->address(),
                           .connection = number,
                           .token = ++token_,
                           .attributes = remote_.attributes};
    must(socket_.send(control::Accepted{.end = own}));
    const bool sends_first = std::ranges::lexicographical_compare(engine_->address().span(), remote_.address.span());
    const FrameHeader open{.token = remote_.token, .connection = remote_.connection, .kind = FrameKind::Open};
    if (sends_first && !open_) open_ = send(std::as_bytes(std::span(&open, 1)));
    for (const Deadline deadline = patience(); !open_ && !ended_;) {
        require(!deadline.passed(), "the first frame");
        poll();
    }
}

void FrameSpeaker::hang_up() noexcept {
    socket_.close();
    for (Engine::Block* const block : std::exchange(offered_, {})) engine_->give_back(*block);
}

std::optional<Offer> FrameSpeaker::offer(std::size_t bytes) {
    constexpr std::size_t most = 8;  // the engine keeps so many, so that their keys remain valid
    Engine::Block* const block = offered_.size() < most ? engine_->take_block(Engine::BlockUse::Offer) : nullptr;
    if (block == nullptr) return std::nullopt;
    offered_.push_back(block);
    std::memset(block->bytes.get(), 'o', bytes);
    return engine_->offer(*block, bytes);
}

FrameHeader FrameSpeaker::next_header(bool response) const noexcept {
    const Sent& sent = response ? responses_ : requests_;
    return {.token = remote_.token,
            .connection = remote_.connection,
            .sequence = sent.in_turn + 1,
            .executed = executed_,
            .handled = handled_};
}

void FrameSpeaker::Sent::add(std::uint32_t sequence) {
    if (sequence - in_turn - 1 < 64) ahead.insert(sequence);
    while (ahead.erase(in_turn + 1) != 0) ++in_turn;
}

bool FrameSpeaker::send(std::span<const std::byte> bytes) {
    for (const Deadline deadline = patience(); !deadline.passed() && !ended_; poll()) {
        Engine::Buffer* buffer = engine_->take();
        if (buffer == nullptr) continue;
        std::ranges::copy(bytes, buffer->bytes);
        const Engine::Sent sent = engine_->send(*buffer, bytes.size(), *peer_);
        if (sent != Engine::Sent::Yes) engine_->give_back(*buffer);
        if (sent == Engine::Sent::Failed) return false;
        if (sent == Engine::Sent::NotNow) continue;
        const auto frame = parse_frame(bytes);
        if (!frame || frame->header.token != remote_.token || frame->header.connection != remote_.connection)
            return true;
        if (has_sequence(frame->header.kind))
            (is_response(frame->header.kind) ? responses_ : requests_).add(frame->header.sequence);
        return true;
    }
    return false;
}

void FrameSpeaker::hear(std::span<const std::byte> bytes) {
    const auto frame = parse_frame(bytes);
    require(frame.has_value(), "a valid frame");
    if (frame->header.token != token_) return;  // of an earlier connection
    open_ = true;
    if (reaches(frame->header.executed, requests_.confirmed)) requests_.confirmed = frame->header.executed;
    if (reaches(frame->header.handled, responses_.confirmed)) responses_.confirmed = frame->header.handled;
    if (!has_sequence(frame->header.kind)) return;
    std::uint32_t& count = is_response(frame->header.kind) ? handled_ : executed_;
    require(frame->header.sequence == ++count, "frames in turn");
    if (frame->header.kind == FrameKind::Data) data_.insert(data_.end(), frame->payload.begin(), frame->payload.end());
}

void FrameSpeaker::poll() {
    while (engine_->poll([this](std::span<const std::byte> bytes) { hear(bytes); }, [](const Engine::Operation&) {},
                         [](Engine::Block&, bool) {}))
        if (executed_ + handled_ - told_ >= 16) acknowledge();
    if (!socket_) return;
    // Whatever the peer tells after Accepted is that it ends the connection.
    auto message = socket_.receive();
    if (!message.ok() || *message) ended_ = true;
}

void FrameSpeaker::acknowledge() {
    told_ = executed_ + handled_;
    FrameHeader header = next_header(false);
    header.kind = FrameKind::Acknowledge;
    header.sequence = 0;
    Engine::Buffer* buffer = engine_->take();
    if (buffer == nullptr) return;
    std::memcpy(buffer->bytes, &header, sizeof header);
    if (engine_->send(*buffer, sizeof header, *peer_) != Engine::Sent::Yes) engine_->give_back(*buffer);
}

bool FrameSpeaker::settle() {
    for (const Deadline deadline = patience(); !ended_; poll()) {
        if (requests_.is_settled() && responses_.is_settled()) return true;
        if (deadline.passed()) return false;
        if (told_ != executed_ + handled_) acknowledge();
        std::this_thread::yield();
    }
    return true;
}

}  // namespace viaduct::fuzz

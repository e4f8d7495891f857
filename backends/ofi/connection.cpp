// SPDX-License-Identifier: BSD-3-Clause
#include "backends/ofi/connection.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "backends/ofi/endpoint.hpp"
#include "backends/ofi/node.hpp"
#include "backends/support/guarded.hpp"
#include "backends/support/random.hpp"
#include "core/log.hpp"

namespace viaduct::ofi {
namespace {

using namespace std::chrono_literals;

/// How long a connection waits for the frames that its peer sent before it ended the connection, or for the peer to
/// notice the end.
constexpr auto closing_time = 2s;

/// How long the end of the peer's process may take to show, after libfabric could not reach it. A process closes its
/// sockets one after the other, for which a busy machine takes time.
constexpr auto failure_time = 1s;

/// How often a connection that breaks looks for frames that its peer has sent before. Other peers may send more all the
/// time.
constexpr int last_rounds = 64;

/// After so many frames a receiver acknowledges even if the sender does not wait.
constexpr std::uint32_t acknowledge_after = Connection::window / 4;

}  // namespace

// ---- Peers -------------------------------------------------------------------------------------------------------

Peer::Peer(Node& node, const control::FabricAddress& address, fi_addr_t number) noexcept
    : node_(node),
      address_(address),
      number_(number),
      sends_first_(std::ranges::lexicographical_compare(node.engine().address().span(), address.span()) ||
                   node.engine().address() == address) {}

Peer::~Peer() { node_.engine().remove_peer(number_); }

// ---- Life --------------------------------------------------------------------------------------------------------

Connection::Connection(Node& node) : node_(node), token_(support::random_number<std::uint64_t>()) {
    requests_.offers.reserve(max_offers);
    responses_.offers.reserve(max_offers);
}

Connection::~Connection() {
    for (Incoming* stream : {&requested_, &responded_}) drop_all(*stream);
    for (Outgoing* stream : {&requests_, &responses_}) {
        stream->confirmed = stream->next - 1;
        withdraw_offers(*stream);
    }
    if (socket_) node_.agent().unwatch(socket_.fd());
    if (has_number_) node_.remove(number_);
}

Result<std::shared_ptr<Connection>> Connection::create(Node& node) {
    auto connection = std::make_shared<Connection>(node);
    const auto number = node.add(connection);
    if (!number.ok()) return number.status();
    connection->number_ = number.value();
    connection->has_number_ = true;
    return connection;
}

control::End Connection::describe(const Endpoint& endpoint) const noexcept {
    return {.provider = node_.engine().provider(),
            .address = node_.engine().address(),
            .connection = number_,
            .token = token_,
            .shares_receives = endpoint.shares_receives(),
            .attributes = endpoint.attributes()};
}

Status Connection::open(Endpoint& owner, const control::End& peer, ControlSocket socket) {
    auto found = node_.find_peer(peer.address);
    if (!found.ok()) return found.status();
    if (const Status status = node_.agent().watch(socket.fd(), self()); !status.ok()) return status;
    peer_ = std::move(*found);
    socket_ = std::move(socket);
    peer_number_ = peer.connection;
    peer_token_ = peer.token;
    peer_shares_receives_ = peer.shares_receives;
    remote_attributes_ = peer.attributes;
    owner_ = &owner;
    if (greeted_) peer_->opened();
    greets_ = peer_->sends_first();  // the other process may have forgotten this one since the last connection
    if (greets_) greet();
    return {};
}

void Connection::end(bool on_purpose, CompletionCode code) noexcept {
    if (owner_ == nullptr) return;
    owner_ = nullptr;
    ended_ = true;
    drop_all(requested_);
    drop_all(responded_);
    const Status told = closing_ ? Status()
                                 : socket_.send(control::Closing{.on_purpose = on_purpose,
                                                                 .code = code,
                                                                 .executed = requested_.count(),
                                                                 .last_request = requests_.next - 1,
                                                                 .last_response = responses_.next - 1});
    if (closing_ || !told.ok()) return release();
    try {
        end_within(closing_time);
        node_.keep_closing(self());
    } catch (const std::exception&) {
        release();
    }
}

/// The peer has some time to close its end. Throws std::bad_alloc.
void Connection::end_within(std::chrono::milliseconds time) {
    node_.agent().cancel_call(close_by_, weak_from_this());
    close_by_ = Deadline::after(time);
    node_.agent().call_at(close_by_, self());
}

/// Nothing is expected of the peer any more.
void Connection::release() noexcept {
    const auto keep = self();
    node_.agent().cancel_call(close_by_, weak_from_this());
    if (socket_) node_.agent().unwatch(socket_.fd());
    socket_.close();
    node_.forget_closing(*this);
}

/// The connection breaks without the peer having ended it.
void Connection::lose(bool by_peer) noexcept {
    if (owner_ != nullptr)
        owner_->connection_lost(*this, by_peer);
    else
        release();
}

// ---- Sending -----------------------------------------------------------------------------------------------------

void Connection::wait_for_engine() noexcept { node_.wait_for_engine(self()); }

/// Makes libfabric connect the engines.
void Connection::greet() noexcept {
    greets_ = !send({.kind = FrameKind::Open});
    if (greets_) return wait_for_engine();
    peer_->opened();
}

/// Returns a buffer for a frame, or null if it has to wait.
Engine::Buffer* Connection::prepare(FrameHeader& header) noexcept {
    if (!peer_->is_open() && header.kind != FrameKind::Open) {
        wait_for_engine();
        return nullptr;
    }
    if (has_sequence(header.kind)) {
        const Outgoing& stream = outgoing(header.kind);
        if (stream.is_full()) return nullptr;  // resumed by the acknowledgment
        header.sequence = stream.next;
    }
    Engine::Buffer* buffer = node_.engine().take();
    if (buffer == nullptr) wait_for_engine();
    return buffer;
}

void Connection::give_back(Engine::Buffer& buffer) noexcept { node_.engine().give_back(buffer); }

bool Connection::submit(Engine::Buffer& buffer, const FrameHeader& frame, std::size_t bytes) noexcept {
    FrameHeader header = frame;
    header.token = peer_token_;
    header.connection = peer_number_;
    header.executed = requested_.count();
    header.handled = responded_.count();
    std::memcpy(buffer.bytes, &header, sizeof header);
    buffer.connection = number_;
    buffer.token = token_;
    switch (node_.engine().send(buffer, sizeof header + bytes, peer_->number())) {
        case Engine::Sent::Yes: break;
        case Engine::Sent::NotNow:
            give_back(buffer);
            wait_for_engine();
            return false;
        case Engine::Sent::Failed:
            give_back(buffer);
            on_failure();
            return false;
    }
    requested_.told = header.executed;
    responded_.told = header.handled;
    if (has_sequence(header.kind)) ++outgoing(header.kind).next;
    return true;
}

bool Connection::send(FrameHeader header, std::span<const std::byte> payload) noexcept {
    return send(header, payload.size(), [&](std::byte* memory) {
        std::ranges::copy(payload, memory);
        return true;
    });
}

void Connection::acknowledge() noexcept {
    if (peer_ == nullptr || !socket_) return;
    if (requested_.told == requested_.count() && responded_.told == responded_.count()) return;
    if (!send({.kind = FrameKind::Acknowledge})) wait_for_engine();
}

void Connection::resume() noexcept {
    if (greets_) greet();
    if (owner_ == nullptr) return acknowledge();
    owner_->progress();
    for (Incoming* stream : {&responded_, &requested_}) {
        read_offers(*stream);
        handle_held(*stream);
    }
    acknowledge();
}

Engine::Block* Connection::take_block() noexcept { return node_.engine().take_block(Engine::BlockUse::Offer); }

void Connection::write_offer(Engine::Block& block, std::size_t bytes, std::byte* payload) noexcept {
    std::memcpy(payload, &node_.engine().offer(block, bytes), sizeof(Offer));
}

void Connection::keep_offer(Outgoing& stream, Engine::Block& block, bool sent) noexcept {
    if (!sent) return node_.engine().give_back(block);
    block.number = stream.next - 1;
    stream.offers.push_back(&block);
}

/// Uses the memory of confirmed offers again.
void Connection::withdraw_offers(Outgoing& stream) noexcept {
    std::erase_if(stream.offers, [&](Engine::Block* block) {
        const bool confirmed = reaches(stream.confirmed, static_cast<std::uint32_t>(block->number));
        if (confirmed) node_.engine().give_back(*block);
        return confirmed;
    });
}

// ---- Receiving ---------------------------------------------------------------------------------------------------

/// Takes a counter of the peer. Returns false if it is invalid.
bool Connection::confirm(Outgoing& stream, std::uint32_t count) noexcept {
    if (!reaches(stream.next - 1, count)) return false;
    if (reaches(count, stream.confirmed)) stream.confirmed = count;  // frames may overtake each other
    if (!stream.offers.empty()) withdraw_offers(stream);
    return true;
}

void Connection::on_frame(const Frame& frame) noexcept {
    const FrameHeader& header = frame.header;
    if (header.token != token_) return;  // of an earlier connection with this number, or forged
    greeted_ = true;
    if (peer_ != nullptr) peer_->opened();
    const std::uint32_t executed = requests_.confirmed;
    const std::uint32_t handled = responses_.confirmed;
    if (!confirm(requests_, header.executed) || !confirm(responses_, header.handled)) {
        log(LogLevel::Warning, "ofi: a peer acknowledges frames that were not sent");
        return lose();
    }
    if (owner_ != nullptr && requests_.confirmed != executed) owner_->progress();
    if (owner_ != nullptr && responses_.confirmed != handled) handle_held(requested_);  // a response may have waited
    if (!has_sequence(header.kind) || ended_) return;
    Incoming& stream = is_response(header.kind) ? responded_ : requested_;
    const std::uint32_t distance = header.sequence - stream.count() - 1;
    if (distance >= window) {
        log(LogLevel::Warning, "ofi: a peer sends frames out of turn");
        return lose();
    }
    if (distance != 0 || !stream.held.empty() || handling_ || owner_ == nullptr || is_offered(header) ||
        !handle(frame)) {
        try {
            hold(stream, frame);
        } catch (const std::bad_alloc&) {
            log(LogLevel::Error, "ofi: out of memory: a connection is lost");
            return lose();
        }
        read_offers(stream);
        handle_held(stream);
    } else {
        finished(frame, stream);
    }
    if (closing_) end_if_complete();
}

/// Executes a request or handles a response. Returns false if it has to wait.
bool Connection::handle(const Frame& frame) noexcept {
    handling_ = true;
    const bool done = owner_->handle(frame);
    handling_ = false;
    return done;
}

void Connection::finished(const Frame& frame, Incoming& stream) noexcept {
    ++stream.done;
    const bool awaited = (frame.header.flags & frame_flags::confirm) != 0;
    const bool many = stream.count() - stream.told >= acknowledge_after || is_offered(frame.header);
    if (many && owner_ != nullptr) acknowledge();
    if (awaited || stream.count() != stream.told) node_.owes(self());
}

void Connection::hold(Incoming& stream, const Frame& frame) {
    const std::uint64_t number = stream.done + (frame.header.sequence - stream.count());
    Held held{.bytes = std::vector<std::byte>(sizeof frame.header + frame.payload.size()),
              .offered = is_offered(frame.header)};
    std::memcpy(held.bytes.data(), &frame.header, sizeof frame.header);
    std::ranges::copy(frame.payload, held.bytes.begin() + sizeof frame.header);
    stream.held.try_emplace(number, std::move(held));
}

Frame Connection::Held::frame() const noexcept {
    Frame frame;
    std::memcpy(&frame.header, bytes.data(), sizeof frame.header);
    frame.payload = block != nullptr ? block->data() : std::span(bytes).subspan(sizeof frame.header);
    return frame;
}

void Connection::handle_held(Incoming& stream) noexcept {
    while (owner_ != nullptr && !handling_ && !stream.held.empty()) {
        const auto first = stream.held.begin();
        if (first->first != stream.done + 1 || !first->second.is_complete()) return;
        const Frame frame = first->second.frame();
        if (!handle(frame)) return;
        finished(frame, stream);
        drop(stream, first);
        read_offers(stream);
    }
}

void Connection::drop(Incoming& stream, std::map<std::uint64_t, Held>::iterator held) noexcept {
    Engine::Block* const block = held->second.block;
    if (block != nullptr && block->arrived) node_.engine().give_back(*block);  // otherwise on_read() does
    stream.held.erase(held);
}

void Connection::drop_all(Incoming& stream) noexcept {
    while (!stream.held.empty()) drop(stream, stream.held.begin());
}

/// Reads what the peer has offered, a few blocks at a time.
void Connection::read_offers(Incoming& stream) noexcept {
    if (owner_ == nullptr) return;
    std::size_t blocks = 0;
    for (auto& [number, held] : stream.held) {
        if (!held.offered) continue;
        if (++blocks > max_offers) return;
        if (held.block != nullptr) continue;
        Engine::Block* block = node_.engine().take_block(Engine::BlockUse::Read);
        if (block == nullptr && is_waiting && &stream == &requested_) return;  // a consumer resumes it
        if (block == nullptr && number == stream.done + 1) block = node_.take_block_of_waiting();
        if (block == nullptr) return node_.engine().has_blocks() ? wait_for_engine() : owner_->request_break();
        block->connection = number_;
        block->token = token_;
        block->number = number;
        block->of_response = &stream == &responded_;
        const Engine::Sent sent = node_.engine().read(*block, *offer_in(held.frame()), peer_->number());
        if (sent == Engine::Sent::Yes) {
            held.block = block;
            continue;
        }
        node_.engine().give_back(*block);
        if (sent == Engine::Sent::NotNow) return wait_for_engine();
        return on_failure();
    }
}

bool Connection::give_up_block() noexcept {
    if (!is_waiting || handling_) return false;
    for (auto& [number, held] : requested_.held)
        if (held.block != nullptr && held.block->arrived) {
            node_.engine().give_back(*std::exchange(held.block, nullptr));
            return true;
        }
    return false;
}

void Connection::on_read(Engine::Block& block, bool intact) noexcept {
    Incoming& stream = block.of_response ? responded_ : requested_;
    const auto found = stream.held.find(block.number);
    if (found == stream.held.end() || found->second.block != &block) return node_.engine().give_back(block);
    if (!intact) {
        log(LogLevel::Info, "ofi: what the peer has offered cannot be read");
        node_.engine().give_back(*std::exchange(found->second.block, nullptr));
        return on_failure();
    }
    block.arrived = true;
    handle_held(stream);
    if (closing_) end_if_complete();
}

bool Connection::Incoming::has_all(std::uint32_t last) const noexcept {
    return held.size() == last - count() &&
           std::ranges::all_of(held, [](const auto& frame) { return frame.second.is_complete(); });
}

void Connection::on_failure() noexcept {
    if (owner_ == nullptr || std::exchange(failed_, true)) return;
    const Status awaited = support::guarded([this]() -> Status {
        if (!closing_) end_within(failure_time);
        return {};
    });
    if (closing_ || !awaited.ok()) owner_->request_break();
}

// ---- The end -----------------------------------------------------------------------------------------------------

void Connection::on_ready() noexcept {
    const auto keep = self();
    const Status status = support::guarded([this]() -> Status {
        while (socket_) {
            auto message = socket_.receive();
            if (!message.ok()) return message.status();
            if (!message.value()) return {};
            const auto* closing = std::get_if<control::Closing>(&*message.value());
            if (closing == nullptr) return {Code::InvalidParameter, "an unexpected control message"};
            on_closing(*closing);
        }
        return {};
    });
    if (status.ok()) return;
    node_.agent().unwatch(socket_.fd());
    if (ended_) return release();
    if (closing_) return;  // what the peer sent before will arrive
    const int error = status.sys_errno();
    log(LogLevel::Info, "ofi: connection lost: %s (errno %d)", status.where(), error);
    for (int round = 0; round < last_rounds && node_.progress(); ++round) continue;
    socket_.close();  // nobody is there to take a last message
    node_.forget(*peer_);
    lose(error == 0 || error == ECONNRESET);
}

void Connection::on_closing(const control::Closing& closing) {
    if (ended_) return release();
    closing_ = closing;
    end_within(closing_time);
    end_if_complete();
}

/// Ends the connection as soon as all that the peer has sent is here. Requests that would have to wait are dropped.
void Connection::end_if_complete() noexcept {
    if (owner_ == nullptr || !requested_.has_all(closing_->last_request) ||
        !responded_.has_all(closing_->last_response))
        return;
    const control::Closing closing = *closing_;
    (void)confirm(requests_, closing.executed);
    owner_->peer_ended(*this, closing.on_purpose, closing.code);
}

void Connection::on_deadline() noexcept {
    if (ended_) return release();
    if (owner_ == nullptr) return;
    if (closing_) return lose();
    on_ready();  // on a busy machine, the end of the peer's process may be older than the thread's list of events
    if (owner_ != nullptr && !closing_) owner_->request_break();
}

}  // namespace viaduct::ofi

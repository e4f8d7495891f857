// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/rig.hpp"
#include "core/provider.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <string>

#include "backends/loopback/layout.hpp"
#include "backends/software/frames.hpp"
#include "tests/conformance/support/message_sizes.h"
#include "tests/support/processes.hpp"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

/// The process that started this test run. Its children share its services; concurrent runs have different ones.
const pid_t run = getpid();

std::span<const std::uint8_t> octets(std::string_view text) noexcept {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

/// As tests/hosts/hosts.py assigns the addresses.
HostAddress other_host() noexcept {
    const std::array<std::uint8_t, 4> address{10, 0, 0, static_cast<std::uint8_t>(3 - own_host())};
    return HostAddress(address);
}

std::byte pattern(std::size_t position, std::uint32_t seed) noexcept {
    const std::uint64_t mixed = (position + 1) * 0x9e3779b97f4a7c15u + seed * 0xbf58476d1ce4e5b9u;
    return static_cast<std::byte>(mixed >> 56);
}

constexpr std::size_t message_sizes[] = {MESSAGE_SIZES};
static_assert(message_sizes[0] == 0);

constexpr bool straddled(std::size_t threshold) {
    return std::ranges::search(message_sizes, std::array{SIZES_AROUND(threshold)}).size() == 3;
}
static_assert(straddled(loopback::wire::inline_bytes) && straddled(loopback::wire::fragment_bytes) &&
              straddled(loopback::wire::area_bytes));
static_assert(straddled(software::fragment_bytes) && straddled(software::most_copied));
static_assert(straddled(64), "what verbs asks a device to take inline");

}  // namespace

void require(bool condition, std::string_view what, const Where& where) {
    if (condition) return;
    const std::string_view file = where.file_name();
    throw std::runtime_error(std::string(file.substr(file.rfind('/') + 1)) + ":" + std::to_string(where.line()) + ": " +
                             std::string(what));
}

void must(const Status& status, const Where& where) {
    require(
        status.ok(),
        std::string(to_string(status.code())) + " (" + status.where() + ", " + std::strerror(status.sys_errno()) + ")",
        where);
}

Node::Node(backend::Provider& provider, std::uint32_t index)
    : device(must(open_device(provider, own_host() == 0 ? index : must(provider.route_to(other_host())), this))),
      domain(must(ProtectionDomain::create(device))) {}

Address Node::address(std::string_view service) const {
    return exact_address(std::to_string(run) + "/" + std::string(service));
}

Address Node::peer_address(std::string_view service) const {
    Address there = address(service);
    if (own_host() != 0) there.host = other_host();
    return there;
}

Address Node::exact_address(std::string_view service) const {
    return {.host = device->attributes().host, .service = Bytes<Address::max_service>(octets(service))};
}

std::unique_ptr<Listener> Node::listen_at(const Address& address) const {
    const Deadline deadline = patience();
    while (true) {
        auto listener = device->listen(address);
        if (listener.status().code() != Code::Busy || deadline.passed()) return must(std::move(listener));
        std::this_thread::sleep_for(1ms);
    }
}

std::shared_ptr<CompletionQueue> Node::make_queue(std::uint32_t capacity, std::uint64_t context,
                                                  std::shared_ptr<Channel> channel) const {
    return must(
        CompletionQueue::create(device, {.capacity = capacity, .context = context, .channel = std::move(channel)}));
}

bool Node::hears(AsyncEventKind kind, std::uint64_t endpoint_context) {
    if (!able().tells_target) return !async.try_take().has_value();
    const auto event = async.wait(patience());
    return event.has_value() && event->kind == kind && event->endpoint_context == endpoint_context;
}

Port::Port(Node& node, const PortOptions& options)
    : node(node),
      send_queue(options.queue ? options.queue : node.make_queue()),
      receive_queue(options.queue ? options.queue : node.make_queue()) {
    Access access = options.access;
    if (options.reliability == Reliability::Unreliable) access.remote_read = false;
    endpoint = must(Endpoint::create(
        {.attributes = {.reliability = options.reliability,
                        .receiver_not_ready = options.receiver_not_ready,
                        .refused_write = options.refused_write,
                        .any_reliable = options.any_reliable,
                        .max_transfer_bytes = static_cast<std::uint32_t>(node.bytes_up_to(options.max_transfer_bytes)),
                        .qos = 0,
                        .access = access},
         .domain = node.domain,
         .send_queue = send_queue,
         .receive_queue = receive_queue,
         .shared_receives = options.shared_receives,
         .send_depth = options.send_depth,
         .receive_depth = options.receive_depth,
         .context = options.context,
         .observer = this}));
}

ConnectionEvent Port::event(const Where& where) {
    const Deadline deadline = patience();
    while (!deadline.passed()) {
        if (const auto event = events.wait(Deadline::after(2ms))) return *event;
        send_queue->poll({});
    }
    require(false, "no connection event came", where);
    return {};
}

bool Port::lost(const Where& where) {
    const ConnectionEventKind kind = event(where).kind;
    return kind == ConnectionEventKind::Lost || (kind == ConnectionEventKind::Disconnected && !node.able().tells_loss);
}

bool Port::lost_peer(const Where& where) {
    const ConnectionEvent loss = event(where);
    if (loss.kind == ConnectionEventKind::Disconnected && !node.able().tells_loss) return true;
    const bool by_peer = loss.kind == ConnectionEventKind::Lost && loss.reason == Code::Unreachable;
    require(by_peer, std::string("the peer was lost, but the event says: ") + loss.why.c_str(), where);
    return by_peer;
}

bool Port::quiet() {
    Completion completion;
    return send_queue->poll({&completion, 1}) == 0 && receive_queue->poll({&completion, 1}) == 0 &&
           !events.try_take().has_value();
}

std::vector<Completion> take(CompletionQueue& queue, std::size_t count, const Where& where) {
    std::vector<Completion> taken;
    while (taken.size() < count) taken.push_back(must(queue.wait(patience()), where));
    return taken;
}

Buffer::Buffer(const Node& node, std::size_t size, Memory memory, Access access) {
    if (memory == Memory::Shareable) {
        shareable_ = std::make_unique<ShareableMemory>(must(ShareableMemory::allocate(size)));
        bytes_ = shareable_->bytes();
    } else {
        heap_.resize(size);
        bytes_ = heap_;
    }
    region_ = must(MemoryRegion::create(node.domain, bytes_.data(), bytes_.size(), access));
}

Sge Buffer::sge(std::size_t offset, std::size_t length) const noexcept {
    return {.address = bytes_.data() + offset, .key = region_->key(), .length = static_cast<std::uint32_t>(length)};
}

RemoteAddress Buffer::remote(std::size_t offset) const noexcept {
    return {.address = reinterpret_cast<std::uintptr_t>(bytes_.data()) + offset, .key = region_->key()};
}

// The functions below access memory that peers access, too. The thread sanitizer does not see the synchronization
// through messages of other processes and through shared memory that is mapped twice.

[[gnu::no_sanitize("thread")]] std::uint64_t Buffer::load(std::size_t offset) const noexcept {
    return __atomic_load_n(reinterpret_cast<std::uint64_t*>(bytes_.data() + offset), __ATOMIC_SEQ_CST);
}

[[gnu::no_sanitize("thread")]] void Buffer::store(std::uint64_t value, std::size_t offset) const noexcept {
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(bytes_.data() + offset), value, __ATOMIC_SEQ_CST);
}

[[gnu::no_sanitize("thread")]] void fill(std::span<std::byte> bytes, std::uint32_t seed) noexcept {
    std::byte* const data = bytes.data();
    const std::size_t size = bytes.size();
    for (std::size_t i = 0; i < size; ++i) data[i] = pattern(i, seed);
}

[[gnu::no_sanitize("thread")]] bool matches(std::span<const std::byte> bytes, std::uint32_t seed) noexcept {
    const std::byte* const data = bytes.data();
    const std::size_t size = bytes.size();
    for (std::size_t i = 0; i < size; ++i)
        if (data[i] != pattern(i, seed)) return false;
    return true;
}

[[gnu::no_sanitize("thread")]] bool same(std::span<const std::byte> one, std::span<const std::byte> other) noexcept {
    const std::byte* const first = one.data();
    const std::byte* const second = other.data();
    const std::size_t size = std::min(one.size(), other.size());
    for (std::size_t i = 0; i < size; ++i)
        if (first[i] != second[i]) return false;
    return one.size() == other.size();
}

std::vector<std::size_t> sizes_around_thresholds() {
    return {std::begin(message_sizes) + 1, std::end(message_sizes)};  // buffers are never empty
}

std::vector<std::size_t> sizes_around_thresholds(const Node& node) {
    std::vector<std::size_t> sizes = sizes_around_thresholds();
    std::erase_if(sizes, [&](std::size_t size) { return size != node.bytes_up_to(size); });
    return sizes;
}

SendRequest fetch_add_of(std::uint64_t context, const Sge& piece, const RemoteAddress& remote,
                         std::uint64_t add) noexcept {
    SendRequest request = request_of<Opcode::FetchAdd>(context, piece, remote);
    request.add = add;
    return request;
}

SendRequest compare_swap_of(std::uint64_t context, const Sge& piece, const RemoteAddress& remote, std::uint64_t compare,
                            std::uint64_t swap) noexcept {
    SendRequest request = request_of<Opcode::CompareSwap>(context, piece, remote);
    request.compare = compare;
    request.swap = swap;
    return request;
}

SendRequest flush_of(std::uint64_t context, const RemoteAddress& remote, std::uint64_t bytes,
                     FlushTarget target) noexcept {
    return {.context = context, .opcode = Opcode::Flush, .flush_to = target, .flush_bytes = bytes, .remote = remote};
}

ReceiveRequest receive_of(std::uint64_t context, const Sge& piece) noexcept {
    return {.context = context, .sges = {&piece, 1}};
}

SendRequest with_immediate(SendRequest request, std::uint32_t immediate) noexcept {
    request.with_immediate = true;
    request.immediate = immediate;
    return request;
}

SendRequest unsignaled(SendRequest request) noexcept {
    request.signaled = false;
    return request;
}

Owned<ConnectionRequest> next_request(Listener& listener, const Where& where) {
    const Deadline deadline = patience();
    while (!deadline.passed()) {
        auto request = listener.next_request();
        if (request.ok()) return std::move(*request);
        if (request.status().code() != Code::WouldBlock) must(request.status(), where);
        (void)readable(listener.fd(), deadline);
    }
    require(false, "no connection request came", where);
    return nullptr;
}

ConnectParameters parameters_for(const Node& node, const Address& remote) {
    return {.model = ConnectParameters::Model::ClientServer,
            .local = node.address("client"),
            .remote = remote,
            .private_data = {},
            .deadline = patience()};
}

PrivateData private_data_of(std::string_view text) { return PrivateData(octets(text)); }

Code attempt(Port& port, const ConnectParameters& parameters, const Where& where) {
    must(port.endpoint->connect(parameters), where);
    const ConnectionEvent event = port.event(where);
    if (event.kind == ConnectionEventKind::Unreachable) return Code::Unreachable;
    require(event.kind == ConnectionEventKind::Rejected, "neither accepted nor refused", where);
    return event.reason == Code::Ok ? Code::Rejected : event.reason;
}

void connect_to(Port& port, const Address& remote, const Where& where) {
    must(port.endpoint->connect(parameters_for(port.node, remote)), where);
    require(port.event(where).kind == ConnectionEventKind::Established, "the connection was not established", where);
}

void accept(Port& port, ConnectionRequest& request, const PrivateData& private_data, const Where& where) {
    must(port.endpoint->accept(request, private_data), where);
    const auto event = port.events.try_take();
    require(event && event->kind == ConnectionEventKind::Established, "no event tells of the connection", where);
}

void join(Port& client, Port& server, const Where& where) {
    const auto listener = server.node.listen("join");
    must(client.endpoint->connect(parameters_for(client.node, server.node.address("join"))), where);
    accept_on(server, *listener, where);
    require(client.event(where).kind == ConnectionEventKind::Established, "the connection was not established", where);
}

}  // namespace viaduct::testing

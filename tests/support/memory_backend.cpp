// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/memory_backend.hpp"

#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "backends/software/connection.hpp"
#include "backends/software/device.hpp"
#include "backends/software/listener.hpp"
#include "backends/support/guarded.hpp"
#include "core/base/address_text.hpp"
#include "core/base/event_channel.hpp"
#include "core/base/guarded_memory.hpp"

namespace viaduct::testing {
namespace {

using software::FrameHeader;
using software::Node;

constexpr std::uint32_t number_of_devices = 8;

std::string name_of(std::uint32_t index) { return "memory" + std::to_string(index); }

HostAddress host_of(std::uint32_t index) noexcept {
    // Reserved for documentation, so not an address of this host.
    return HostAddress(std::array<std::uint8_t, 4>{198, 51, 100, static_cast<std::uint8_t>(index + 1)});
}

/// Calls `matches` for the devices in order.
template <class Matches>
Result<std::uint32_t> find_device(Matches matches, const Status& otherwise) {
    for (std::uint32_t index = 0; index < number_of_devices; ++index)
        if (matches(index)) return index;
    return otherwise;
}

Result<std::uint32_t> device_at(const HostAddress& host) noexcept {
    return find_device([&host](std::uint32_t index) { return host == host_of(index); },
                       {Code::Unreachable, "no device has that address"});
}

/// One direction of a link. Its two ends are used with the locks of different nodes.
class Pipe {
public:
    int fd() const noexcept {
        const std::lock_guard lock(mutex_);
        return arrived_.fd();
    }

    void write(const FrameHeader& header, std::span<const std::byte> payload) {
        const std::lock_guard lock(mutex_);
        const auto* const bytes = reinterpret_cast<const std::byte*>(&header);
        bytes_.insert(bytes_.end(), bytes, bytes + sizeof header);
        bytes_.insert(bytes_.end(), payload.begin(), payload.end());
        arrived_.set(true);
    }

    void close() noexcept {
        const std::lock_guard lock(mutex_);
        closed_ = true;
        arrived_.set(true);
    }

    /// Takes all that has arrived. Returns false if no more will come.
    bool read(std::vector<std::byte>& to) noexcept {
        const std::lock_guard lock(mutex_);
        if (!closed_) arrived_.set(false);
        to = std::exchange(bytes_, {});
        return !closed_;
    }

private:
    mutable std::mutex mutex_;
    std::vector<std::byte> bytes_;
    bool closed_ = false;
    mutable ReadableFlag arrived_;
};

/// The two directions, as one end sees them.
struct Ends {
    std::shared_ptr<Pipe> in = std::make_shared<Pipe>();
    std::shared_ptr<Pipe> out = std::make_shared<Pipe>();
};

class MemoryLink final : public software::Link {
public:
    MemoryLink(Node& node, Side side, const HostAddress& remote, std::uint16_t port, Ends ends) noexcept
        : Link(node, side, remote, port), ends_(std::move(ends)) {}
    ~MemoryLink() override { ends_.out->close(); }

    int fd() const noexcept override { return ends_.in->fd(); }
    bool is_closed() const noexcept override { return closed_; }

    std::size_t send(std::span<const FrameHeader> headers, std::span<const iovec> payload, software::Connection&,
                     bool& there) noexcept override {
        std::vector<std::byte> bytes;
        for (const iovec& piece : payload) {
            bytes.resize(bytes.size() + piece.iov_len);
            std::byte* const copy = bytes.data() + bytes.size() - piece.iov_len;
            there = copy_guarded(copy, static_cast<const std::byte*>(piece.iov_base), piece.iov_len);
            if (!there) return 0;
        }
        std::span<const std::byte> rest = bytes;
        for (const FrameHeader& header : headers) {
            ends_.out->write(header, rest.first(header.bytes));
            rest = rest.subspan(header.bytes);
        }
        return headers.size();
    }
    void send_message(const FrameHeader& header, std::span<const std::byte> body) noexcept override {
        ends_.out->write(header, body);
    }

    bool work() noexcept override {
        if (closed_ || std::exchange(working_, true)) return false;
        const auto keep = self();
        std::vector<std::byte> bytes;
        const bool goes_on = ends_.in->read(bytes);
        for (std::size_t at = 0; at != bytes.size() && !closed_;) {
            FrameHeader header;
            std::memcpy(&header, bytes.data() + at, sizeof header);
            const auto payload = std::span(bytes).subspan(at + sizeof header, header.bytes);
            at += size_of(header);
            if (is_message(header.kind))
                (void)take_message(header, payload);
            else if (const auto connection = receiver(header))
                connection->on_frame({header, payload}, true);
        }
        working_ = false;
        if (!goes_on && !closed_) {
            close();
            end_users({Code::Unreachable, "the peer has closed the link"});
        }
        return !bytes.empty();
    }
    void close() noexcept override {
        if (std::exchange(closed_, true)) return;
        ends_.out->close();
        node_.forget(*this);
    }

private:
    const Ends ends_;
    bool closed_ = false;
    bool working_ = false;
};

}  // namespace

/// What the nodes of a provider share. Its lock is taken after those of nodes.
struct MemoryProvider::World {
    /// Clients that the node of a port has not seen yet.
    struct Door {
        std::vector<std::pair<HostAddress, Ends>> clients;
        ReadableFlag knocked;
    };
    class Port;
    class Transport;

    std::mutex mutex;  // guards the doors
    std::map<std::pair<std::string, std::uint16_t>, std::shared_ptr<Door>> doors;
    software::Nodes nodes;
};

class MemoryProvider::World::Port final : public software::Port {
public:
    Port(World& world, Node& node, std::uint16_t number, std::shared_ptr<Door> door) noexcept
        : software::Port(node, number), world_(world), door_(std::move(door)) {}
    ~Port() override { node_.agent().unwatch(door_->knocked.fd()); }

private:
    void on_readable(int) noexcept override {
        const std::lock_guard lock(world_.mutex);
        door_->knocked.set(false);
        for (const auto& [host, ends] : std::exchange(door_->clients, {})) {
            const auto link = std::make_shared<MemoryLink>(node_, software::Link::Side::Accepts, host, number(), ends);
            (void)node_.add(link);  // otherwise it ends here
        }
    }
    void closes() noexcept override {
        on_readable(-1);
        const std::lock_guard lock(world_.mutex);
        std::erase_if(world_.doors, [this](const auto& entry) { return entry.second == door_; });
    }

    World& world_;
    const std::shared_ptr<Door> door_;
};

class MemoryProvider::World::Transport final : public software::Transport {
public:
    explicit Transport(World& world) noexcept : world_(world) {}

    const char* name() const noexcept override { return "memory"; }
    Status find_route(const HostAddress& to) const noexcept override { return device_at(to).status(); }
    Result<std::shared_ptr<software::Link>> connect(Node& node, const HostAddress& to, std::uint16_t port) override {
        if (const Status route = find_route(to); !route.ok()) return route;
        const Ends ends;
        {
            const std::lock_guard lock(world_.mutex);
            const auto door = world_.doors.find({text_of(to).c_str(), port});
            if (door == world_.doors.end()) return Status(Code::NoListener, "nobody listens");
            door->second->clients.emplace_back(node.host(), Ends{.in = ends.out, .out = ends.in});
            door->second->knocked.set(true);
        }
        const auto link = std::make_shared<MemoryLink>(node, software::Link::Side::Connects, to, port, ends);
        if (const Status status = node.add(link); !status.ok()) return status;
        return std::shared_ptr<software::Link>(link);
    }
    Result<std::shared_ptr<software::Port>> listen(Node& node, std::uint16_t number) override {
        const auto door = std::make_shared<Door>();
        const auto port = std::make_shared<Port>(world_, node, number, door);
        if (const Status status = node.agent().watch(door->knocked.fd(), port); !status.ok()) return status;
        const std::lock_guard lock(world_.mutex);
        world_.doors[{text_of(node.host()).c_str(), number}] = door;
        return std::shared_ptr<software::Port>(port);
    }

private:
    World& world_;
};

MemoryProvider::MemoryProvider() : world_(std::make_unique<World>()) { catch_faults(); }
MemoryProvider::~MemoryProvider() = default;

Result<std::unique_ptr<backend::Device>> MemoryProvider::open(std::uint32_t index, DeviceObserver& observer) noexcept {
    return support::make_as<backend::Device>([&]() -> Result<std::unique_ptr<software::Device>> {
        if (index >= number_of_devices) return Status(Code::InvalidParameter, "no such device");
        auto node = world_->nodes.open(host_of(index), [this]() -> Result<std::unique_ptr<software::Transport>> {
            return std::unique_ptr<software::Transport>(std::make_unique<World::Transport>(*world_));
        });
        if (!node.ok()) return node.status();
        DeviceAttributes attributes = software::attributes_of(name_of(index), host_of(index));
        attributes.capabilities = capabilities;
        for (std::uint32_t i = 0; i < number_of_devices; ++i) attributes.local_hosts.push_back(host_of(i));
        return std::make_unique<software::Device>(std::move(*node), std::move(attributes), observer);
    });
}

Result<std::uint32_t> MemoryProvider::find(std::string_view device) noexcept {
    return find_device([device](std::uint32_t index) { return device == name_of(index); },
                       {Code::InvalidParameter, "no device has that name"});
}

Result<std::uint32_t> MemoryProvider::route_to(const HostAddress& host) noexcept { return device_at(host); }

Result<std::vector<backend::DeviceSummary>> MemoryProvider::devices() const noexcept {
    std::vector<backend::DeviceSummary> devices;
    for (std::uint32_t index = 0; index < number_of_devices; ++index)
        devices.push_back({name_of(index), host_of(index)});
    return devices;
}

bool MemoryProvider::is_in_use() const noexcept { return world_->nodes.any(); }

}  // namespace viaduct::testing

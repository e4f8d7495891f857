// SPDX-License-Identifier: BSD-3-Clause
// The choice of backends and devices, with providers that open nothing.
#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "core/provider.hpp"
#include "tests/support/memory_backend.hpp"
#include "tests/support/rig.hpp"
#include "viaduct/device.hpp"

using namespace viaduct;
using viaduct::testing::MemoryProvider;
using viaduct::testing::must;

namespace {

HostAddress net(std::uint8_t network, std::uint8_t number) {
    const std::array<std::uint8_t, 4> bytes{10, network, 0, number};
    return HostAddress(bytes);
}

/// Reaches networks through devices with names.
class MapProvider final : public backend::Provider {
public:
    MapProvider(std::string_view name, std::vector<std::pair<std::string, std::uint8_t>> devices)
        : name_(name), devices_(std::move(devices)) {}

    std::string_view name() const noexcept override { return name_; }
    Result<std::unique_ptr<backend::Device>> open(std::uint32_t, DeviceObserver&) noexcept override {
        return Status(Code::SystemError, "opens nothing");
    }
    Result<std::uint32_t> find(std::string_view device) noexcept override {
        if (!failure.ok()) return failure;
        for (std::uint32_t i = 0; i < devices_.size(); ++i)
            if (devices_[i].first == device) return i;
        return Status(Code::InvalidParameter, "no such device");
    }
    Result<std::uint32_t> route_to(const HostAddress& host) noexcept override {
        if (!failure.ok()) return failure;
        for (std::uint32_t i = 0; i < devices_.size(); ++i)
            if (devices_[i].second == 0 || devices_[i].second == host.span()[1]) return i;
        return Status(Code::Unreachable, "no such network");
    }
    Result<std::vector<backend::DeviceSummary>> devices() const noexcept override {
        if (!failure.ok()) return failure;
        std::vector<backend::DeviceSummary> all;
        for (std::uint32_t i = 0; i < devices_.size(); ++i)
            all.push_back({devices_[i].first, net(devices_[i].second, 1)});
        return all;
    }

    Status failure;  ///< of all calls

private:
    std::string_view name_;
    std::vector<std::pair<std::string, std::uint8_t>> devices_;  // name, reachable network (0: all)
};

/// A host with a card in network 1, shared memory for network 2, and a backend that reaches everything.
class Backends {
public:
    Backends() {
        unset();
        use_providers(list_);
    }
    ~Backends() {
        unset();
        use_providers({});
    }

    void set(const char* variable, const char* value) { setenv(variable, value, 1); }
    void unset() {
        unsetenv("VIADUCT_BACKEND");
        unsetenv("VIADUCT_DEVICE");
    }

    MapProvider card{"card", {{"x-eth1", 1}}};
    MapProvider shared{"shared", {{"x-lo0", 3}, {"x-lo1", 2}}};
    MapProvider any{"any", {{"x-eth0", 7}, {"x-eth1", 0}}};

private:
    std::array<backend::Provider*, 3> list_{&card, &shared, &any};
};

Result<DeviceId> towards(const HostAddress& host) {
    const auto route = find_route({&host, 1});
    if (!route.ok()) return route.status();
    CHECK(route.value().host == host);
    return route.value().device;
}

}  // namespace

TEST_CASE("provider: each destination has the first backend that reaches it") {
    Backends host;
    CHECK(must(towards(net(1, 9))) == DeviceId{&host.card, 0});
    CHECK(must(towards(net(2, 9))) == DeviceId{&host.shared, 1});
    CHECK(must(towards(net(3, 9))) == DeviceId{&host.shared, 0});
    CHECK(must(towards(net(7, 9))) == DeviceId{&host.any, 0});
    CHECK(must(towards(net(8, 9))) == DeviceId{&host.any, 1});
}

TEST_CASE("provider: a host with several addresses is reached by the preferred backend") {
    Backends host;
    const std::array addresses{net(8, 1), net(2, 1), net(1, 1)};
    const Route route = must(find_route(addresses));
    CHECK(route.device == DeviceId{&host.card, 0});
    CHECK(route.host == net(1, 1));
    const Route second = must(find_route(std::span(addresses).first(2)));
    CHECK(second.device == DeviceId{&host.shared, 1});
    CHECK(second.host == net(2, 1));
    CHECK(must(find_route(addresses, host.any)).host == net(8, 1));
    CHECK(must(find_route(addresses, host.any)).device == DeviceId{&host.any, 1});
}

TEST_CASE("provider: a host that no backend reaches is unreachable") {
    Backends host;
    host.any.failure = Status(Code::Unreachable, "no network");
    CHECK(towards(net(8, 9)).status().code() == Code::Unreachable);
    CHECK(find_route({}).status().code() == Code::Unreachable);
    CHECK(find_route({}, host.card).status().code() == Code::Unreachable);
}

TEST_CASE("provider: VIADUCT_BACKEND selects the backend of all destinations and names") {
    Backends host;
    host.set("VIADUCT_BACKEND", "any");
    CHECK(must(towards(net(1, 9))) == DeviceId{&host.any, 1});
    CHECK(must(find_device("x-eth1")) == DeviceId{&host.any, 1});
    CHECK(find_device("x-lo0").status().code() == Code::InvalidParameter);
    CHECK(must(default_device()) == DeviceId{&host.any, 0});
    host.set("VIADUCT_BACKEND", "card");
    CHECK(towards(net(2, 9)).status().code() == Code::Unreachable);
    host.set("VIADUCT_BACKEND", "none");
    CHECK(towards(net(1, 9)).status().code() == Code::InvalidParameter);
    CHECK(find_device("x-eth1").status().code() == Code::InvalidParameter);
    CHECK(default_device().status().code() == Code::InvalidParameter);
}

TEST_CASE("provider: VIADUCT_DEVICE selects the default device and the backend") {
    Backends host;
    host.set("VIADUCT_DEVICE", "x-lo1");
    CHECK(must(default_device()) == DeviceId{&host.shared, 1});
    CHECK(must(towards(net(3, 9))) == DeviceId{&host.shared, 0});
    CHECK(towards(net(1, 9)).status().code() == Code::Unreachable);
    CHECK(find_device("x-eth1").status().code() == Code::InvalidParameter);
    host.set("VIADUCT_DEVICE", "x-eth1");
    CHECK(must(default_device()) == DeviceId{&host.card, 0});
    host.set("VIADUCT_BACKEND", "any");
    CHECK(must(default_device()) == DeviceId{&host.any, 1});
}

TEST_CASE("provider: a name means the device of the preferred backend") {
    Backends host;
    CHECK(must(find_device("x-eth1")) == DeviceId{&host.card, 0});
    CHECK(must(find_device("x-lo1")) == DeviceId{&host.shared, 1});
    CHECK(must(find_device("x-eth0")) == DeviceId{&host.any, 0});
    CHECK(find_device("x-nonesuch").status().code() == Code::InvalidParameter);
    CHECK(must(default_device()) == DeviceId{&host.card, 0});
}

TEST_CASE("provider: lack of resources does not lead to another device") {
    Backends host;
    host.card.failure = Status(Code::NoResources, "out of descriptors");
    CHECK(towards(net(2, 9)).status().code() == Code::NoResources);
    CHECK(find_device("x-lo1").status().code() == Code::NoResources);
    CHECK(default_device().status().code() == Code::NoResources);
    const std::array addresses{net(1, 1), net(2, 1)};
    CHECK(find_route(addresses, host.card).status().code() == Code::NoResources);
    host.set("VIADUCT_BACKEND", "shared");  // the other backend does not matter
    CHECK(must(towards(net(2, 9))) == DeviceId{&host.shared, 1});
}

TEST_CASE("provider: a backend that is broken does not hide the others") {
    Backends host;
    host.card.failure = Status(Code::SystemError, "no such file");
    CHECK(must(towards(net(1, 9))) == DeviceId{&host.any, 1});
    CHECK(must(find_device("x-eth1")) == DeviceId{&host.any, 1});
}

TEST_CASE("provider: one process opens devices of several backends by address and by name") {
    unsetenv("VIADUCT_BACKEND");
    unsetenv("VIADUCT_DEVICE");
    MemoryProvider memory;
    const std::array list{must(find_provider("loopback")), static_cast<backend::Provider*>(&memory)};
    use_providers(list);
    {
        const std::array<std::uint8_t, 4> here{127, 0, 0, 2};
        const auto near = must(Device::open_towards(HostAddress(here)));
        const auto far = must(Device::open_towards(must(memory.devices())[2].host));
        CHECK(near->attributes().name == "viaduct-lo1");
        CHECK(far->attributes().name == "memory2");
        CHECK(must(Device::open_named("memory4"))->attributes().name == "memory4");
        CHECK(must(Device::open_named("viaduct-lo3"))->attributes().name == "viaduct-lo3");
        CHECK(must(Device::open(0))->attributes().name == "viaduct-lo0");
        CHECK(Device::open_named("viaduct-nonesuch").status().code() == Code::InvalidParameter);
        CHECK(Device::open_towards(net(9, 9)).status().code() == Code::Unreachable);
    }
    use_providers({});
    CHECK(must(find_provider("loopback")) == list[0]);
    CHECK(find_provider("memory").status().code() == Code::InvalidParameter);
}

TEST_CASE("provider: an address of this host has the device with this address, whatever the route is") {
    Backends host;
    const auto of = [](const std::vector<HostAddress>& addresses) { return find_own_device(addresses); };
    CHECK(must(of({net(1, 1)})) == DeviceId{&host.card, 0});
    CHECK(must(of({net(2, 1)})) == DeviceId{&host.shared, 1});
    CHECK(must(of({net(2, 9)})) == DeviceId{&host.shared, 1});
    CHECK(must(of({net(0, 1)})) == DeviceId{&host.any, 1});
    CHECK(must(of({net(7, 9)})) == DeviceId{&host.any, 0});
    CHECK(must(of({net(7, 9), net(0, 1)})) == DeviceId{&host.any, 1});
    CHECK(must(of({net(8, 9), net(2, 1)})) == DeviceId{&host.shared, 1});
    host.card.failure = Status(Code::NoResources, "out of descriptors");
    CHECK(of({net(2, 1)}).status().code() == Code::NoResources);
}

TEST_CASE("provider: the summaries of devices agree with open devices") {
    MemoryProvider memory;
    for (backend::Provider* provider : {static_cast<backend::Provider*>(&memory), must(find_provider("loopback"))}) {
        const auto devices = must(provider->devices());
        REQUIRE(devices.size() == must(provider->device_count()));
        for (std::uint32_t i = 0; i < devices.size(); ++i) {
            const auto device = must(open_device({provider, i}));
            CHECK(device->attributes().name == devices[i].name);
            CHECK(device->attributes().host == devices[i].host);
            CHECK(must(provider->find(devices[i].name)) == i);
        }
    }
}

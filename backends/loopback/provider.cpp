// SPDX-License-Identifier: BSD-3-Clause
// The entry point of the loopback backend.
#include "backends/loopback/device.hpp"
#include "backends/loopback/handshake.hpp"
#include "backends/loopback/local_listeners.hpp"
#include "backends/providers.hpp"
#include "backends/support/guarded.hpp"

namespace viaduct::loopback {
namespace {

class Provider final : public backend::Provider {
public:
    std::string_view name() const noexcept override { return "loopback"; }

    Result<std::unique_ptr<backend::Device>> open(std::uint32_t index, DeviceObserver& observer) noexcept override {
        return support::make_as<backend::Device>([&] { return Device::open(index, observer); });
    }

    Result<std::uint32_t> find(std::string_view device) noexcept override {
        return support::guarded([&]() -> Result<std::uint32_t> {
            if (device == name_prefix) return std::uint32_t{0};
            for (std::uint32_t index = 0; index < loopback::device_count; ++index)
                if (device == name_of(index)) return index;
            return Status(Code::InvalidParameter, "no loopback device with that name");
        });
    }

    Result<std::uint32_t> route_to(const HostAddress& host) noexcept override {
        return support::guarded([&]() -> Result<std::uint32_t> {
            if (const auto index = index_of(host)) return *index;
            return not_on_this_host(host);
        });
    }

    Result<std::vector<backend::DeviceSummary>> devices() const noexcept override {
        return support::guarded([]() -> Result<std::vector<backend::DeviceSummary>> {
            std::vector<backend::DeviceSummary> devices;
            for (std::uint32_t index = 0; index < loopback::device_count; ++index)
                devices.push_back({name_of(index), host_of(index)});
            return devices;
        });
    }

    Result<std::vector<backend::ListenerSummary>> listeners(const char* tables,
                                                            const Service* service) const noexcept override {
        return support::guarded(
            [&]() -> Result<std::vector<backend::ListenerSummary>> { return find_listeners(tables, service); });
    }

    /// Connects without sending a request, which the listener takes for a client that has died.
    Status probe(std::uint32_t, const Address& listener, const Deadline&) noexcept override {
        return support::guarded([&] { return connect_to_service(listener).status(); });
    }
};

}  // namespace

backend::Provider& provider() noexcept {
    static Provider instance;
    return instance;
}

}  // namespace viaduct::loopback

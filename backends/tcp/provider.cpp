// SPDX-License-Identifier: BSD-3-Clause
// The backend for ordinary networks: sockets and TLS.
#include "backends/providers.hpp"
#include "backends/software/device.hpp"
#include "backends/support/guarded.hpp"
#include "backends/support/interfaces.hpp"
#include "backends/tcp/places.hpp"
#include "backends/tcp/probe.hpp"
#include "backends/tcp/transport.hpp"

namespace viaduct::tcp {
namespace {

class Provider final : public backend::Provider {
public:
    std::string_view name() const noexcept override { return "tcp"; }

    Result<std::unique_ptr<backend::Device>> open(std::uint32_t index, DeviceObserver& observer) noexcept override {
        return support::make_as<backend::Device>([&]() -> Result<std::unique_ptr<software::Device>> {
            const auto places = find_places();
            if (index >= places.size()) return Status(Code::InvalidParameter, "no such network interface");
            const HostAddress& host = places[index].host;
            auto node = nodes_.open(host, [&host] { return Transport::create(host); });
            if (!node.ok()) return node.status();
            DeviceAttributes attributes = software::attributes_of(places[index].name, host);
            attributes.capabilities.shares_services = false;
            attributes.capabilities.own_user_only = false;
            for (const backend::DeviceSummary& place : places) attributes.local_hosts.push_back(place.host);
            return std::make_unique<software::Device>(std::move(*node), std::move(attributes), observer);
        });
    }

    Result<std::uint32_t> find(std::string_view device) noexcept override {
        return find_if([device](const backend::DeviceSummary& place) { return place.name == device; },
                       Code::InvalidParameter);
    }

    Result<std::uint32_t> route_to(const HostAddress& host) noexcept override {
        const auto source = support::source_for(host);
        if (!source.ok()) return source.status();
        return find_if([&source](const backend::DeviceSummary& place) { return place.host == source.value(); },
                       Code::Unreachable);
    }

    Result<std::vector<backend::DeviceSummary>> devices() const noexcept override {
        return support::guarded([]() -> Result<std::vector<backend::DeviceSummary>> { return find_places(); });
    }

    Result<std::vector<backend::ListenerSummary>> listeners(const char* tables,
                                                            const Service* service) const noexcept override {
        return support::guarded([&]() -> Result<std::vector<backend::ListenerSummary>> {
            std::vector<backend::ListenerSummary> found;
            for (const char* table : {"/tcp", "/tcp6"}) add_listeners(std::string(tables) + table, service, found);
            return found;
        });
    }

    Status probe(std::uint32_t index, const Address& listener, const Deadline& deadline) noexcept override {
        return support::guarded([&]() -> Status {
            const auto places = find_places();
            if (index >= places.size()) return {Code::InvalidParameter, "no such network interface"};
            return tcp::probe(places[index].host, listener, deadline);
        });
    }

private:
    template <class Predicate>
    static Result<std::uint32_t> find_if(Predicate predicate, Code otherwise) noexcept {
        return support::guarded([&]() -> Result<std::uint32_t> {
            const auto places = find_places();
            for (std::uint32_t index = 0; index < places.size(); ++index)
                if (predicate(places[index])) return index;
            return places.empty() ? Status(otherwise, "no network interface")
                                  : Status(otherwise, "no network interface with that name or route");
        });
    }

    software::Nodes nodes_;
};

}  // namespace

backend::Provider& provider() noexcept {
    static Provider instance;
    return instance;
}

}  // namespace viaduct::tcp

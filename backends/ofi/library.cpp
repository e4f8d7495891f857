// SPDX-License-Identifier: BSD-3-Clause
#include "backends/ofi/library.hpp"

#include <dlfcn.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>

#include <cstdlib>
#include <cstring>
#include <optional>

#include "backends/ofi/environment.hpp"
#include "core/base/fork.hpp"
#include "core/base/socket_address.hpp"
#include "core/log.hpp"

namespace viaduct::ofi {
namespace {

constexpr const char* soname = "libfabric.so.1";

/// The version of the interface that this file is written for.
constexpr std::uint32_t interface_version = FI_VERSION(1, 17);

/// From this version on, the provider "tcp" has unconnected endpoints of its own. They do not interoperate with those
/// of the layered provider.
constexpr std::uint32_t native_tcp_version = FI_VERSION(1, 18);
constexpr const char* layered_tcp = "tcp;ofi_rxm";
constexpr const char* native_tcp = "tcp";

}  // namespace

Status Library::load() {
    prepare_environment();
    void* handle = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        log(LogLevel::Error, "the ofi backend needs libfabric: %s", dlerror());
        return {Code::Unsupported, "libfabric is not installed"};
    }
    const auto find = [handle](auto& function, const char* name, const char* version) {
        void* found = dlvsym(handle, name, version);
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
        if (found == nullptr) log(LogLevel::Error, "%s has no %s@%s", soname, name, version);
        return found != nullptr;
    };
    decltype(&::fi_version) version = nullptr;
    if (!find(getinfo_, "fi_getinfo", "FABRIC_1.3") || !find(freeinfo_, "fi_freeinfo", "FABRIC_1.3") ||
        !find(dupinfo_, "fi_dupinfo", "FABRIC_1.3") || !find(fabric_, "fi_fabric", "FABRIC_1.1") ||
        !find(strerror_, "fi_strerror", "FABRIC_1.0") || !find(version, "fi_version", "FABRIC_1.0"))
        return {Code::Unsupported, "libfabric is too old"};
    const char* wanted = std::getenv("VIADUCT_OFI_PROVIDER");
    const char* usual = version() < native_tcp_version ? layered_tcp : native_tcp;
    provider_ = wanted != nullptr && *wanted != '\0' ? wanted : usual;
    log(LogLevel::Info, "libfabric %u.%u, provider %s", FI_MAJOR(version()), FI_MINOR(version()), provider_.c_str());
    return {};
}

Result<const Library*> Library::get() noexcept try {
    static constinit ProcessMutex mutex;
    static Library library;
    static std::optional<Status> loaded;
    const std::lock_guard lock(mutex);
    if (!loaded) loaded = library.load();
    if (!loaded->ok()) return *loaded;
    return &library;
} catch (const std::exception&) {
    return Status(Code::NoResources, "out of memory");
}

Result<InfoPointer> Library::find(const HostAddress& host) const {
    const InfoPointer hints(dupinfo_(nullptr), freeinfo_);
    if (hints == nullptr) throw std::bad_alloc();
    hints->caps = FI_MSG | FI_RMA;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->tx_attr->op_flags = FI_INJECT_COMPLETE;
    hints->fabric_attr->prov_name = strdup(provider_.c_str());
    SocketAddress address(host, 0);
    if (!address.valid()) return Status(Code::Unreachable, "the address is neither IPv4 nor IPv6");
    const std::size_t bytes = host.size() == 4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    const bool is_tcp = provider_.starts_with(native_tcp);
    if (is_tcp) {
        hints->addr_format = host.size() == 4 ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
        hints->src_addr = std::malloc(bytes);
        if (hints->src_addr == nullptr) throw std::bad_alloc();
        std::memcpy(hints->src_addr, address.get(), bytes);
        hints->src_addrlen = bytes;
    }
    fi_info* found = nullptr;
    int error = getinfo_(interface_version, nullptr, nullptr, 0, hints.get(), &found);
    if (error == -FI_ENODATA) {
        hints->caps = FI_MSG;  // enough, but slower
        error = getinfo_(interface_version, nullptr, nullptr, 0, hints.get(), &found);
    }
    if (error == -FI_ENODATA) {
        log(LogLevel::Error, "libfabric's provider %s is missing or does not serve this address", provider_.c_str());
        return Status(Code::Unreachable, "libfabric has no such provider for the address");
    }
    if (error != 0) return failure(error, "fi_getinfo");
    return InfoPointer(found, freeinfo_);
}

Result<fid_fabric*> Library::open_fabric(fi_fabric_attr& attributes) const noexcept {
    fid_fabric* fabric = nullptr;
    if (const int error = fabric_(&attributes, &fabric, nullptr); error != 0) return failure(error, "fi_fabric");
    return fabric;
}

Status Library::failure(int error, const char* call) const noexcept {
    log(LogLevel::Error, "%s: %s", call, describe(error));
    if (error == -FI_ENOMEM) return {Code::NoResources, call, ENOMEM};
    return Status::from_errno(-error, call);
}

}  // namespace viaduct::ofi

// SPDX-License-Identifier: BSD-3-Clause
// libfabric, which is loaded when a device of this backend is first opened. Linking it would install signal handlers in
// every program that uses Viaduct.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <memory>
#include <string>

#include "core/address.hpp"
#include "core/status.hpp"

namespace viaduct::ofi {

using InfoPointer = std::unique_ptr<fi_info, void (*)(fi_info*)>;

class Library {
public:
    /// Loads the library once. Unsupported: it is missing or too old; the log says why.
    static Result<const Library*> get() noexcept;

    /// Finds the provider for an address of this host: the one that VIADUCT_OFI_PROVIDER names, by default TCP.
    /// Unreachable: it does not serve the address.
    Result<InfoPointer> find(const HostAddress& host) const;

    Result<fid_fabric*> open_fabric(fi_fabric_attr& attributes) const noexcept;

    /// Translates a negative error number and logs it with the name of the call.
    Status failure(int error, const char* call) const noexcept;
    const char* describe(int error) const noexcept { return strerror_(error < 0 ? -error : error); }

private:
    Library() noexcept = default;
    Status load();

    decltype(&::fi_getinfo) getinfo_ = nullptr;
    decltype(&::fi_freeinfo) freeinfo_ = nullptr;
    decltype(&::fi_dupinfo) dupinfo_ = nullptr;
    decltype(&::fi_fabric) fabric_ = nullptr;
    decltype(&::fi_strerror) strerror_ = nullptr;
    std::string provider_;
};

}  // namespace viaduct::ofi

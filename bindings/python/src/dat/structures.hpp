// SPDX-License-Identifier: BSD-3-Clause
// Converts DAT structures to dictionaries whose keys are the C names of the fields, and back.
#pragma once

#include <string_view>

#include "dat.hpp"

namespace viaduct::python::dat {

py::object address_of(const DAT_SOCK_ADDR* address);  // (host, port), or None
py::bytes bytes_of(const void* data, DAT_COUNT size);

// Private data in the form of call arguments.
inline DAT_COUNT size_of(std::string_view data) noexcept { return static_cast<DAT_COUNT>(data.size()); }
inline DAT_PVOID data_of(std::string_view data) noexcept { return const_cast<char*>(data.data()); }

/// A socket address from (host, port), where host is a numeric address.
class SocketAddress {
public:
    /// Throws ValueError if the address is invalid.
    explicit SocketAddress(const py::tuple& address);
    DAT_IA_ADDRESS_PTR get() noexcept { return reinterpret_cast<DAT_IA_ADDRESS_PTR>(&storage_); }

private:
    sockaddr_storage storage_{};
};

py::dict to_dict(const DAT_PROVIDER_INFO& info);
py::dict to_dict(const DAT_IA_ATTR& attributes);
py::dict to_dict(const DAT_PROVIDER_ATTR& attributes);
py::dict to_dict(const DAT_PZ_PARAM& param);
py::dict to_dict(const DAT_LMR_PARAM& param);
py::dict to_dict(const DAT_RMR_PARAM& param);
py::dict to_dict(const DAT_EP_ATTR& attributes);
py::dict to_dict(const DAT_EP_PARAM& param);
py::dict to_dict(const DAT_SRQ_PARAM& param);
py::dict to_dict(const DAT_PSP_PARAM& param);
py::dict to_dict(const DAT_RSP_PARAM& param);
py::dict to_dict(const DAT_CSP_PARAM& param);
py::dict to_dict(const DAT_CR_PARAM& param);
py::dict to_dict(const DAT_EVD_PARAM& param);

// Missing fields are 0. TypeError: the dictionary has an unknown key, or a value has a wrong type. OverflowError: a
// number does not fit into its field.
DAT_PROVIDER_INFO provider_info_of(const py::dict& fields);
DAT_EP_ATTR ep_attr_of(const py::dict& fields);
DAT_EP_PARAM ep_param_of(const py::dict& fields);
DAT_SRQ_ATTR srq_attr_of(const py::dict& fields);
DAT_COMM comm_of(const py::dict& fields);

}  // namespace viaduct::python::dat

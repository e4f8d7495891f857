// SPDX-License-Identifier: BSD-3-Clause
// What the files of viaduct._vipl share. Handles and addresses are integers in Python, 0 is NULL, and so is None where
// a structure is asked for.
#pragma once

#include <vipl.h>

#include <cstdint>
#include <string>

#include "common.hpp"

namespace viaduct::python {

using Handle = std::uintptr_t;

inline void* to_pointer(Handle handle) noexcept { return reinterpret_cast<void*>(handle); }
inline Handle to_handle(const void* pointer) noexcept { return reinterpret_cast<Handle>(pointer); }

/// Raises what viaduct.vipl makes of a failure. Needs the GIL.
inline void check(const char* name, VIP_RETURN code) {
    if (code != VIP_SUCCESS) raise_error("viaduct.vipl", name, code);
}

/// Makes a call without the GIL: it may take its time, or wait for a handler that needs it.
template <class Call>
void call_unlocked(const char* name, Call call) {
    VIP_RETURN code = VIP_SUCCESS;
    {
        const GilReleased unlocked;
        code = call();
    }
    check(name, code);
}

/// A time-out in milliseconds, rounded up.
VIP_ULONG to_milliseconds(Seconds timeout);

/// A VIP_NET_ADDRESS with the memory behind it.
class NetAddress {
public:
    /// Room for so many bytes of each, all of them zero.
    NetAddress(std::size_t host_bytes, std::size_t discriminator_bytes);
    NetAddress(const std::string& host, const std::string& discriminator);

    VIP_NET_ADDRESS* get() noexcept { return reinterpret_cast<VIP_NET_ADDRESS*>(block_.data()); }
    const VIP_NET_ADDRESS& header() const noexcept { return *reinterpret_cast<const VIP_NET_ADDRESS*>(block_.data()); }

    /// Host and discriminator.
    py::bytes bytes() const;

private:
    std::string block_;
};

inline VIP_NET_ADDRESS* get(NetAddress* address) noexcept { return address == nullptr ? nullptr : address->get(); }

/// The attributes of a NIC, and its address, which would go with it.
struct NicAttributes {
    VIP_NIC_ATTRIBUTES fields;
    std::string address;
};

void define_constants(py::module_& module);
void define_structures(py::module_& module);
void define_objects(py::module_& module);
void define_connections(py::module_& module);
void define_transfers(py::module_& module);
void define_queries(py::module_& module);

}  // namespace viaduct::python

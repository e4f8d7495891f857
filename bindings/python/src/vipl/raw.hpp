// SPDX-License-Identifier: BSD-3-Clause
// What the files of viaduct._vipl share. Handles and addresses are integers in Python, 0 is NULL, and so is None where
// a structure is asked for.
#pragma once

#include <vipl.h>

#include <string>

#include "common.hpp"
#include "occupancy.hpp"

namespace viaduct::python {

inline void* to_pointer(Handle handle) noexcept { return reinterpret_cast<void*>(handle); }
inline Handle to_handle(const void* pointer) noexcept { return reinterpret_cast<Handle>(pointer); }

/// Raises what viaduct.vipl makes of a failure. Needs the GIL.
inline void check(const char* name, VIP_RETURN code) {
    if (code != VIP_SUCCESS) raise_error("viaduct.vipl.errors", name, code);
}

/// A registration of memory as an object of calls; its handle is a number of 32 bits, which is that of another one on
/// another NIC: calls that end one have to say that they do so at once, or calls for the other would be refused.
inline Handle registration(VIP_MEM_HANDLE memory) noexcept { return ~Handle{memory}; }

/// The protection tag that attributes name.
Handle ptag_in(const auto* attributes) noexcept { return attributes == nullptr ? 0 : to_handle(attributes->Ptag); }

/// Threads that are left when Python ends have no use for results, and nobody for their errors: they rest instead. Not
/// the one that ends it.
void rest_after_python();

/// Makes a call in which nobody ends its objects. Without the GIL.
template <class Call>
VIP_RETURN undisturbed(const Objects& objects, Call call) {
    rest_after_python();
    VIP_RETURN code = VIP_INVALID_PARAMETER;
    {
        const Stay stay(objects);
        if (stay.enter()) code = call();
    }
    rest_after_python();
    return code;
}

/// The same with the GIL, without which the call is made: it may take its time, or wait for a handler that needs it.
template <class Call>
VIP_RETURN unlocked(const Objects& objects, Call call) {
    const GilReleased released;
    return undisturbed(objects, call);
}

/// The same for a call that takes less time than to let other threads run. It does where some thread ends an object.
template <class Call>
VIP_RETURN quick(const Objects& objects, Call call) {
    return Stay::nobody_ends() ? call() : unlocked(objects, call);
}

/// Makes a call that ends objects.
template <class Call>
VIP_RETURN end(const Objects& objects, Call call) {
    return call_ending(objects, call, VIP_INVALID_PARAMETER);
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

// SPDX-License-Identifier: BSD-3-Clause
// Shared by the files of viaduct._vipl. In Python, handles and addresses are integers, and 0 is NULL, as is None for a
// structure.
#pragma once

#include <vipl.h>

#include <string>

#include "common.hpp"
#include "occupancy.hpp"

namespace viaduct::python {

inline void* to_pointer(Handle handle) noexcept { return reinterpret_cast<void*>(handle); }
inline Handle to_handle(const void* pointer) noexcept { return reinterpret_cast<Handle>(pointer); }

/// Raises the exception of viaduct.vipl for a failure. Requires the GIL.
inline void check(const char* name, VIP_RETURN code) {
    if (code != VIP_SUCCESS) raise_error("viaduct.vipl.errors", name, static_cast<int>(code), failure::last(code));
}

/// Represents a memory registration as an object of calls. Its handle is a 32-bit number that may also be used on
/// another NIC. A call that ends one must say that it does so immediately, because otherwise calls for the other would
/// be refused.
inline Handle registration(VIP_MEM_HANDLE memory) noexcept { return ~Handle{memory}; }

/// Returns the protection tag in the attributes.
Handle ptag_in(const auto* attributes) noexcept { return attributes == nullptr ? 0 : to_handle(attributes->Ptag); }

/// Puts threads to sleep that are left when Python exits, because their results cannot be used and their errors cannot
/// be reported. Does not apply to the thread that exits.
void rest_after_python();

/// Makes a call during which no thread ends its objects. Requires that the GIL is not held.
template <class Call>
VIP_RETURN undisturbed(const Objects& objects, Call call) {
    rest_after_python();
    VIP_RETURN code = VIP_SUCCESS;
    {
        const Stay stay(objects);
        code = stay.enter() ? call() : not_made(VIP_INVALID_PARAMETER);
    }
    rest_after_python();
    return code;
}

/// The same with the GIL held. The GIL is released during the call, which may take long or wait for a handler that
/// needs the GIL.
template <class Call>
VIP_RETURN unlocked(const Objects& objects, Call call) {
    const GilReleased released;
    return undisturbed(objects, call);
}

/// The same for a call that is shorter than releasing the GIL. The GIL is released only if another thread is ending an
/// object.
template <class Call>
VIP_RETURN quick(const Objects& objects, Call call) {
    return Stay::nobody_ends() ? call() : unlocked(objects, call);
}

/// Makes a call that ends objects.
template <class Call>
VIP_RETURN end(const Objects& objects, Call call) {
    return call_ending(objects, call, VIP_INVALID_PARAMETER);
}

/// Returns the limits of a NIC; zeros if it does not exist, which the call that needs them will report.
inline VIP_NIC_ATTRIBUTES limits_of(Handle nic) {
    VIP_NIC_ATTRIBUTES limits{};
    (void)quick({.used = {nic}}, [&] { return VipQueryNic(to_pointer(nic), &limits); });
    return limits;
}

/// Returns a timeout in milliseconds, rounded up.
inline VIP_ULONG to_milliseconds(Seconds timeout) { return units_of(timeout, 1000, VIP_INFINITE); }

/// A VIP_NET_ADDRESS with its memory.
class NetAddress {
public:
    /// Zeroed memory for host and discriminator.
    NetAddress(std::size_t host_bytes, std::size_t discriminator_bytes);
    NetAddress(const std::string& host, const std::string& discriminator);

    VIP_NET_ADDRESS* get() noexcept { return reinterpret_cast<VIP_NET_ADDRESS*>(block_.data()); }
    const VIP_NET_ADDRESS& header() const noexcept { return *reinterpret_cast<const VIP_NET_ADDRESS*>(block_.data()); }

    /// Returns host and discriminator.
    py::bytes bytes() const;

private:
    std::string block_;
};

inline VIP_NET_ADDRESS* get(NetAddress* address) noexcept { return address == nullptr ? nullptr : address->get(); }

/// The attributes of a NIC, and its address, which is not valid after the NIC is closed.
struct NicAttributes : VIP_NIC_ATTRIBUTES {
    std::string address;
};

void define_structures(py::module_& module);
void define_objects(py::module_& module);
void define_connections(py::module_& module);
void define_transfers(py::module_& module);
void define_queries(py::module_& module);

}  // namespace viaduct::python

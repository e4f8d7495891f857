// SPDX-License-Identifier: BSD-3-Clause
// Converts DAT structures to dictionaries whose keys are the C names of the fields, and back.
#pragma once

#include <string_view>
#include <tuple>
#include <utility>

#include "core/base/socket_address.hpp"
#include "dat.hpp"

namespace viaduct::python::dat {

py::object address_of(const DAT_SOCK_ADDR* address);  // (host, port), or None
py::bytes bytes_of(const void* data, DAT_COUNT size);

// Private data in the form of call arguments.
inline DAT_COUNT size_of(std::string_view data) noexcept { return static_cast<DAT_COUNT>(data.size()); }
inline DAT_PVOID data_of(std::string_view data) noexcept { return const_cast<char*>(data.data()); }

/// Returns the address of (host, port), where host is a numeric address. Throws ValueError if it is none.
SocketAddress socket_address(const py::tuple& address);

/// Returns the fields of a structure.
template <class Structure>
py::dict to_dict(const Structure& structure);

/// Returns a structure with these fields. Missing fields are 0. TypeError: the dictionary has an unknown key, or a
/// value has a wrong type. OverflowError: a number does not fit into its field.
template <class Structure>
Structure from_dict(const py::dict& fields);

/// Converts an output of a call.
template <class Output>
auto output_to_python(const Output& output) {
    if constexpr (std::is_class_v<Output>)
        return to_dict(output);
    else if constexpr (std::is_same_v<Output, DAT_BOOLEAN>)
        return output != DAT_FALSE;
    else if constexpr (std::is_enum_v<Output>)
        return static_cast<int>(output);
    else if constexpr (std::is_same_v<Output, DAT_HANDLE>)
        return to_python(output);
    else
        return output;
}

/// Defines a call that writes its results, which may refer to its objects, through its last arguments. It returns one,
/// or a tuple of several.
template <std::size_t count = 1, class... Arguments>
void def_output(py::module_& module, const char* name, DAT_RETURN (*function)(Arguments...)) {
    using All = std::tuple<Arguments...>;
    constexpr std::size_t first = sizeof...(Arguments) - count;
    [&]<std::size_t... i, std::size_t... o>(std::index_sequence<i...>, std::index_sequence<o...>) {
        module.def(name, [name, function](Plain<std::tuple_element_t<i, All>>... inputs) {
            std::tuple<std::remove_pointer_t<std::tuple_element_t<first + o, All>>...> outputs{};
            const KeepingCall keeping(name, objects_among(to_argument<std::tuple_element_t<i, All>>(inputs)...), [&] {
                return function(to_argument<std::tuple_element_t<i, All>>(inputs)..., &std::get<o>(outputs)...);
            });
            if constexpr (count == 1)
                return output_to_python(std::get<0>(outputs));
            else
                return py::make_tuple(output_to_python(std::get<o>(outputs))...);
        });
    }
    (std::make_index_sequence<first>(), std::make_index_sequence<count>());
}

}  // namespace viaduct::python::dat

// SPDX-License-Identifier: BSD-3-Clause
#include "structures.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <type_traits>

#include "core/base/address_text.hpp"

namespace viaduct::python::dat {
namespace {

// ---- Values of fields ---------------------------------------------------------------------------------------------

template <class Number>
requires std::is_arithmetic_v<Number> || std::is_enum_v<Number> py::object value_of(const Number& number) {
    if constexpr (std::is_enum_v<Number>)
        return py::int_(static_cast<std::underlying_type_t<Number>>(number));
    else
        return py::int_(number);
}
py::object value_of(const DAT_BOOLEAN& flag) { return py::bool_(flag != DAT_FALSE); }
py::object value_of(const DAT_HANDLE& handle) { return py::int_(to_python(handle)); }
py::object value_of(const DAT_IA_ADDRESS_PTR& address) { return address_of(address); }
py::object value_of(const char (&text)[DAT_NAME_MAX_LENGTH]) { return py::str(text, strnlen(text, sizeof text)); }
py::object value_of(const DAT_LMR_TRIPLET& triplet) {
    return py::make_tuple(triplet.virtual_address, triplet.segment_length, triplet.lmr_context);
}
py::object value_of(const DAT_COMM& comm) { return to_dict(comm); }
py::object value_of(const DAT_EP_ATTR& attributes) { return to_dict(attributes); }

py::list named(DAT_COUNT count, const DAT_NAMED_ATTR* attributes) {
    py::list pairs;
    for (DAT_COUNT i = 0; i < count; ++i) pairs.append(py::make_tuple(attributes[i].name, attributes[i].value));
    return pairs;
}

[[noreturn]] void throw_misfit(const char* name, py::handle value) {
    if (!PyLong_Check(value.ptr())) throw py::type_error(std::string(name) + " must be an int");
    PyErr_Format(PyExc_OverflowError, "%R does not fit into %s", value.ptr(), name);
    throw py::error_already_set();
}

template <class Number>
requires std::is_arithmetic_v<Number> || std::is_enum_v<Number>
void assign(Number& field, const char* name, py::handle value) {
    if constexpr (std::is_enum_v<Number>) {
        std::underlying_type_t<Number> number{};
        assign(number, name, value);
        field = static_cast<Number>(number);
    } else {
        py::detail::make_caster<Number> caster;
        if (!caster.load(value, true)) throw_misfit(name, value);
        field = caster;
    }
}
void assign(DAT_HANDLE& field, const char* name, py::handle value) {
    Handle handle = 0;
    assign(handle, name, value);
    field = to_dat(handle);
}
void assign(char (&field)[DAT_NAME_MAX_LENGTH], const char* name, py::handle value) {
    const auto text = py::str(value).cast<std::string>();
    if (text.size() >= sizeof field) throw py::value_error(std::string(name) + " is too long");
    std::memcpy(field, text.c_str(), text.size() + 1);
}
void assign(DAT_COMM& field, const char*, py::handle value) { field = from_dict<DAT_COMM>(value.cast<py::dict>()); }
void assign(DAT_EP_ATTR& field, const char*, py::handle value) {
    field = from_dict<DAT_EP_ATTR>(value.cast<py::dict>());
}

// ---- Fields -------------------------------------------------------------------------------------------------------

struct Field {
    const char* name;
    py::object (*get)(const void* structure);
    void (*set)(void* structure, const char* name, py::handle value);  // null if programs cannot set it
};

template <class Structure, auto member>
py::object value_in(const Structure& structure) {
    return value_of(structure.*member);
}

template <class Structure, auto member>
constexpr Field field(const char* name) {
    Field result{name,
                 [](const void* from) { return value_in<Structure, member>(*static_cast<const Structure*>(from)); }};
    if constexpr (requires(Structure & to) { assign(to.*member, "", py::handle()); })
        result.set = [](void* to, const char* called, py::handle value) {
            assign(static_cast<Structure*>(to)->*member, called, value);
        };
    return result;
}

py::tuple merging_of(const DAT_PROVIDER_ATTR& attributes) {
    constexpr std::size_t streams = std::extent_v<decltype(attributes.evd_stream_merging_supported)>;
    py::tuple rows(streams);
    for (std::size_t i = 0; i < streams; ++i) {
        py::tuple row(streams);
        for (std::size_t j = 0; j < streams; ++j) row[j] = value_of(attributes.evd_stream_merging_supported[i][j]);
        rows[i] = row;
    }
    return rows;
}

/// Returns the member of the union that the memory type selects; for shared memory its address.
py::int_ described(const DAT_LMR_PARAM& param) {
    return py::int_(
        to_python(param.mem_type == DAT_MEM_TYPE_LMR ? param.region_desc.for_lmr_handle : param.region_desc.for_va));
}

// clang-format off
/// A field whose value is an expression of the structure `s`.
#define COMPUTED(structure, field, expression)                              \
    template <>                                                             \
    py::object value_in<structure, &structure::field>(const structure& s) { \
        return expression;                                                  \
    }
// clang-format on

COMPUTED(DAT_IA_ATTR, transport_attr, named(s.num_transport_attr, s.transport_attr))
COMPUTED(DAT_IA_ATTR, vendor_attr, named(s.num_vendor_attr, s.vendor_attr))
COMPUTED(DAT_PROVIDER_ATTR, evd_stream_merging_supported, merging_of(s))
COMPUTED(DAT_PROVIDER_ATTR, provider_specific_attr, named(s.num_provider_specific_attr, s.provider_specific_attr))
COMPUTED(DAT_LMR_PARAM, region_desc, described(s))
COMPUTED(DAT_EP_ATTR, ep_transport_specific, named(s.ep_transport_specific_count, s.ep_transport_specific))
COMPUTED(DAT_EP_ATTR, ep_provider_specific, named(s.ep_provider_specific_count, s.ep_provider_specific))
COMPUTED(DAT_CSP_PARAM, comm, s.comm == nullptr ? py::object(py::none()) : value_of(*s.comm))
COMPUTED(DAT_CR_PARAM, private_data, bytes_of(s.private_data, s.private_data_size))

/// The fields of a structure. Those of the headers are in dat_structures.inc, without lengths of other fields.
template <class Structure>
constexpr auto fields_of = nullptr;

#define FIELD(structure, name) field<structure, &structure::name>(#name)
#define STRUCTURE(structure, ...) \
    template <>                   \
    constexpr auto fields_of<structure> = std::array{__VA_ARGS__};
#include "dat_structures.inc"
#undef STRUCTURE

}  // namespace

// ---- Addresses and bytes ------------------------------------------------------------------------------------------

py::object address_of(const DAT_SOCK_ADDR* address) {
    const HostAddress host = host_of(address);
    if (host.empty()) return py::none();
    return py::make_tuple(text_of(host).c_str(), port_of(address));
}

SocketAddress socket_address(const py::tuple& address) {
    const auto [host, port] = address.cast<std::pair<std::string, std::uint16_t>>();
    std::array<std::uint8_t, sizeof(in6_addr)> bytes{};
    if (inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1) return {HostAddress(bytes), port};
    if (inet_pton(AF_INET, host.c_str(), bytes.data()) != 1) throw py::value_error("not an address: " + host);
    return {HostAddress(std::span(bytes).first<sizeof(in_addr)>()), port};
}

py::bytes bytes_of(const void* data, DAT_COUNT size) {
    if (data == nullptr || size <= 0) return {};
    return {static_cast<const char*>(data), static_cast<std::size_t>(size)};
}

// ---- Structures ---------------------------------------------------------------------------------------------------

template <class Structure>
py::dict to_dict(const Structure& structure) {
    py::dict values;
    for (const Field& field : fields_of<Structure>) values[field.name] = field.get(&structure);
    return values;
}

template <class Structure>
Structure from_dict(const py::dict& fields) {
    Structure structure{};
    for (const auto& [key, value] : fields) {
        const auto name = py::str(key).cast<std::string>();
        const auto* found = std::ranges::find(fields_of<Structure>, name, &Field::name);
        if (found == fields_of<Structure>.end() || found->set == nullptr)
            throw py::type_error(name + " is not a field that can be set");
        found->set(&structure, found->name, value);
    }
    return structure;
}

#define STRUCTURE(structure, ...)                \
    template py::dict to_dict(const structure&); \
    template structure from_dict(const py::dict&);
#include "dat_structures.inc"

}  // namespace viaduct::python::dat

// SPDX-License-Identifier: BSD-3-Clause
#include "structures.hpp"

#include <arpa/inet.h>

#include <cstring>
#include <span>
#include <string>
#include <type_traits>

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
py::object value_of(const DAT_COMM& comm);
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
void assign(DAT_COMM& field, const char*, py::handle value) { field = comm_of(value.cast<py::dict>()); }
void assign(DAT_EP_ATTR& field, const char*, py::handle value) { field = ep_attr_of(value.cast<py::dict>()); }

// ---- Fields -------------------------------------------------------------------------------------------------------

struct Field {
    const char* name;
    py::object (*get)(const void* structure);
    void (*set)(void* structure, const char* name, py::handle value) = nullptr;
};

template <class Member>
struct OwnerOf;
template <class Owner, class Value>
struct OwnerOf<Value Owner::*> {
    using Type = Owner;
};

template <auto member>
py::object get(const void* structure) {
    return value_of(static_cast<const typename OwnerOf<decltype(member)>::Type*>(structure)->*member);
}

template <auto member>
void set(void* structure, const char* name, py::handle value) {
    assign(static_cast<typename OwnerOf<decltype(member)>::Type*>(structure)->*member, name, value);
}

template <auto member>
constexpr Field read_only(const char* name) {
    return {name, get<member>};
}

template <auto member>
constexpr Field settable(const char* name) {
    return {name, get<member>, set<member>};
}

#define READ_ONLY(structure, field) read_only<(&structure::field)>(#field)
#define SETTABLE(structure, field) settable<(&structure::field)>(#field)

// clang-format off
/// A field whose value is an expression of the structure `s`.
#define COMPUTED(structure, field, expression)                          \
    Field{#field, [](const void* fields) -> py::object {                \
        const auto& s = *static_cast<const structure*>(fields);         \
        return expression;                                              \
    }}
// clang-format on

py::dict read(std::span<const Field> fields, const void* structure) {
    py::dict values;
    for (const Field& field : fields) values[field.name] = field.get(structure);
    return values;
}

template <class Structure>
Structure write(std::span<const Field> fields, const py::dict& values) {
    Structure structure{};
    for (const auto& [key, value] : values) {
        const auto name = py::str(key).cast<std::string>();
        const Field* found = nullptr;
        for (const Field& field : fields)
            if (name == field.name) found = &field;
        if (found == nullptr || found->set == nullptr) throw py::type_error(name + " is not a field that can be set");
        found->set(&structure, found->name, value);
    }
    return structure;
}

constexpr Field comm_fields[] = {SETTABLE(DAT_COMM, domain), SETTABLE(DAT_COMM, type), SETTABLE(DAT_COMM, protocol)};

py::object value_of(const DAT_COMM& comm) { return read(comm_fields, &comm); }

constexpr Field provider_info_fields[] = {
    SETTABLE(DAT_PROVIDER_INFO, ia_name), SETTABLE(DAT_PROVIDER_INFO, dapl_version_major),
    SETTABLE(DAT_PROVIDER_INFO, dapl_version_minor), SETTABLE(DAT_PROVIDER_INFO, is_thread_safe)};

constexpr Field ia_attr_fields[] = {
    READ_ONLY(DAT_IA_ATTR, adapter_name),
    READ_ONLY(DAT_IA_ATTR, vendor_name),
    READ_ONLY(DAT_IA_ATTR, hardware_version_major),
    READ_ONLY(DAT_IA_ATTR, hardware_version_minor),
    READ_ONLY(DAT_IA_ATTR, firmware_version_major),
    READ_ONLY(DAT_IA_ATTR, firmware_version_minor),
    READ_ONLY(DAT_IA_ATTR, ia_address_ptr),
    READ_ONLY(DAT_IA_ATTR, max_eps),
    READ_ONLY(DAT_IA_ATTR, max_dto_per_ep),
    READ_ONLY(DAT_IA_ATTR, max_rdma_read_per_ep_in),
    READ_ONLY(DAT_IA_ATTR, max_rdma_read_per_ep_out),
    READ_ONLY(DAT_IA_ATTR, max_evds),
    READ_ONLY(DAT_IA_ATTR, max_evd_qlen),
    READ_ONLY(DAT_IA_ATTR, max_iov_segments_per_dto),
    READ_ONLY(DAT_IA_ATTR, max_lmrs),
    READ_ONLY(DAT_IA_ATTR, max_lmr_block_size),
    READ_ONLY(DAT_IA_ATTR, max_lmr_virtual_address),
    READ_ONLY(DAT_IA_ATTR, max_pzs),
    READ_ONLY(DAT_IA_ATTR, max_message_size),
    READ_ONLY(DAT_IA_ATTR, max_rdma_size),
    READ_ONLY(DAT_IA_ATTR, max_rmrs),
    READ_ONLY(DAT_IA_ATTR, max_rmr_target_address),
    READ_ONLY(DAT_IA_ATTR, max_srqs),
    READ_ONLY(DAT_IA_ATTR, max_ep_per_srq),
    READ_ONLY(DAT_IA_ATTR, max_recv_per_srq),
    READ_ONLY(DAT_IA_ATTR, max_iov_segments_per_rdma_read),
    READ_ONLY(DAT_IA_ATTR, max_iov_segments_per_rdma_write),
    READ_ONLY(DAT_IA_ATTR, max_rdma_read_in),
    READ_ONLY(DAT_IA_ATTR, max_rdma_read_out),
    READ_ONLY(DAT_IA_ATTR, max_rdma_read_per_ep_in_guaranteed),
    READ_ONLY(DAT_IA_ATTR, max_rdma_read_per_ep_out_guaranteed),
    READ_ONLY(DAT_IA_ATTR, zb_supported),
    READ_ONLY(DAT_IA_ATTR, extension_supported),
    READ_ONLY(DAT_IA_ATTR, extension_version),
    COMPUTED(DAT_IA_ATTR, transport_attr, named(s.num_transport_attr, s.transport_attr)),
    COMPUTED(DAT_IA_ATTR, vendor_attr, named(s.num_vendor_attr, s.vendor_attr))};

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

constexpr Field provider_attr_fields[] = {
    READ_ONLY(DAT_PROVIDER_ATTR, provider_name),
    READ_ONLY(DAT_PROVIDER_ATTR, provider_version_major),
    READ_ONLY(DAT_PROVIDER_ATTR, provider_version_minor),
    READ_ONLY(DAT_PROVIDER_ATTR, dapl_version_major),
    READ_ONLY(DAT_PROVIDER_ATTR, dapl_version_minor),
    READ_ONLY(DAT_PROVIDER_ATTR, lmr_mem_types_supported),
    READ_ONLY(DAT_PROVIDER_ATTR, iov_ownership_on_return),
    READ_ONLY(DAT_PROVIDER_ATTR, dat_qos_supported),
    READ_ONLY(DAT_PROVIDER_ATTR, completion_flags_supported),
    READ_ONLY(DAT_PROVIDER_ATTR, is_thread_safe),
    READ_ONLY(DAT_PROVIDER_ATTR, max_private_data_size),
    READ_ONLY(DAT_PROVIDER_ATTR, supports_multipath),
    READ_ONLY(DAT_PROVIDER_ATTR, ep_creator),
    READ_ONLY(DAT_PROVIDER_ATTR, pz_support),
    READ_ONLY(DAT_PROVIDER_ATTR, optimal_buffer_alignment),
    COMPUTED(DAT_PROVIDER_ATTR, evd_stream_merging_supported, merging_of(s)),
    READ_ONLY(DAT_PROVIDER_ATTR, srq_supported),
    READ_ONLY(DAT_PROVIDER_ATTR, srq_watermarks_supported),
    READ_ONLY(DAT_PROVIDER_ATTR, srq_ep_pz_difference_supported),
    READ_ONLY(DAT_PROVIDER_ATTR, srq_info_supported),
    READ_ONLY(DAT_PROVIDER_ATTR, ep_recv_info_supported),
    READ_ONLY(DAT_PROVIDER_ATTR, lmr_sync_req),
    READ_ONLY(DAT_PROVIDER_ATTR, dto_async_return_guaranteed),
    READ_ONLY(DAT_PROVIDER_ATTR, rdma_write_for_rdma_read_req),
    READ_ONLY(DAT_PROVIDER_ATTR, rdma_read_lmr_rmr_context_exposure),
    READ_ONLY(DAT_PROVIDER_ATTR, rmr_scope_supported),
    READ_ONLY(DAT_PROVIDER_ATTR, is_signal_safe),
    READ_ONLY(DAT_PROVIDER_ATTR, ha_supported),
    READ_ONLY(DAT_PROVIDER_ATTR, ha_loadbalancing),
    COMPUTED(DAT_PROVIDER_ATTR, provider_specific_attr, named(s.num_provider_specific_attr, s.provider_specific_attr))};

constexpr Field pz_param_fields[] = {READ_ONLY(DAT_PZ_PARAM, ia_handle)};

/// Returns the member of the union that the memory type selects; for shared memory its address.
py::int_ described(const DAT_LMR_PARAM& param) {
    return py::int_(
        to_python(param.mem_type == DAT_MEM_TYPE_LMR ? param.region_desc.for_lmr_handle : param.region_desc.for_va));
}

constexpr Field lmr_param_fields[] = {READ_ONLY(DAT_LMR_PARAM, ia_handle),
                                      READ_ONLY(DAT_LMR_PARAM, mem_type),
                                      COMPUTED(DAT_LMR_PARAM, region_desc, described(s)),
                                      READ_ONLY(DAT_LMR_PARAM, length),
                                      READ_ONLY(DAT_LMR_PARAM, pz_handle),
                                      READ_ONLY(DAT_LMR_PARAM, mem_priv),
                                      READ_ONLY(DAT_LMR_PARAM, va_type),
                                      READ_ONLY(DAT_LMR_PARAM, lmr_context),
                                      READ_ONLY(DAT_LMR_PARAM, rmr_context),
                                      READ_ONLY(DAT_LMR_PARAM, registered_size),
                                      READ_ONLY(DAT_LMR_PARAM, registered_address)};

constexpr Field rmr_param_fields[] = {READ_ONLY(DAT_RMR_PARAM, ia_handle),   READ_ONLY(DAT_RMR_PARAM, pz_handle),
                                      READ_ONLY(DAT_RMR_PARAM, lmr_triplet), READ_ONLY(DAT_RMR_PARAM, mem_priv),
                                      READ_ONLY(DAT_RMR_PARAM, rmr_context), READ_ONLY(DAT_RMR_PARAM, rmr_scope),
                                      READ_ONLY(DAT_RMR_PARAM, va_type)};

constexpr Field ep_attr_fields[] = {
    SETTABLE(DAT_EP_ATTR, service_type),
    SETTABLE(DAT_EP_ATTR, max_message_size),
    SETTABLE(DAT_EP_ATTR, max_rdma_size),
    SETTABLE(DAT_EP_ATTR, qos),
    SETTABLE(DAT_EP_ATTR, recv_completion_flags),
    SETTABLE(DAT_EP_ATTR, request_completion_flags),
    SETTABLE(DAT_EP_ATTR, max_recv_dtos),
    SETTABLE(DAT_EP_ATTR, max_request_dtos),
    SETTABLE(DAT_EP_ATTR, max_recv_iov),
    SETTABLE(DAT_EP_ATTR, max_request_iov),
    SETTABLE(DAT_EP_ATTR, max_rdma_read_in),
    SETTABLE(DAT_EP_ATTR, max_rdma_read_out),
    SETTABLE(DAT_EP_ATTR, srq_soft_hw),
    SETTABLE(DAT_EP_ATTR, max_rdma_read_iov),
    SETTABLE(DAT_EP_ATTR, max_rdma_write_iov),
    COMPUTED(DAT_EP_ATTR, ep_transport_specific, named(s.ep_transport_specific_count, s.ep_transport_specific)),
    COMPUTED(DAT_EP_ATTR, ep_provider_specific, named(s.ep_provider_specific_count, s.ep_provider_specific))};

constexpr Field ep_param_fields[] = {SETTABLE(DAT_EP_PARAM, ia_handle),
                                     SETTABLE(DAT_EP_PARAM, ep_state),
                                     SETTABLE(DAT_EP_PARAM, comm),
                                     READ_ONLY(DAT_EP_PARAM, local_ia_address_ptr),
                                     SETTABLE(DAT_EP_PARAM, local_port_qual),
                                     READ_ONLY(DAT_EP_PARAM, remote_ia_address_ptr),
                                     SETTABLE(DAT_EP_PARAM, remote_port_qual),
                                     SETTABLE(DAT_EP_PARAM, pz_handle),
                                     SETTABLE(DAT_EP_PARAM, recv_evd_handle),
                                     SETTABLE(DAT_EP_PARAM, request_evd_handle),
                                     SETTABLE(DAT_EP_PARAM, connect_evd_handle),
                                     SETTABLE(DAT_EP_PARAM, srq_handle),
                                     SETTABLE(DAT_EP_PARAM, ep_attr)};

constexpr Field srq_attr_fields[] = {SETTABLE(DAT_SRQ_ATTR, max_recv_dtos), SETTABLE(DAT_SRQ_ATTR, max_recv_iov),
                                     SETTABLE(DAT_SRQ_ATTR, low_watermark)};

constexpr Field srq_param_fields[] = {
    READ_ONLY(DAT_SRQ_PARAM, ia_handle),           READ_ONLY(DAT_SRQ_PARAM, srq_state),
    READ_ONLY(DAT_SRQ_PARAM, pz_handle),           READ_ONLY(DAT_SRQ_PARAM, max_recv_dtos),
    READ_ONLY(DAT_SRQ_PARAM, max_recv_iov),        READ_ONLY(DAT_SRQ_PARAM, low_watermark),
    READ_ONLY(DAT_SRQ_PARAM, available_dto_count), READ_ONLY(DAT_SRQ_PARAM, outstanding_dto_count)};

constexpr Field psp_param_fields[] = {READ_ONLY(DAT_PSP_PARAM, ia_handle), READ_ONLY(DAT_PSP_PARAM, conn_qual),
                                      READ_ONLY(DAT_PSP_PARAM, evd_handle), READ_ONLY(DAT_PSP_PARAM, psp_flags)};

constexpr Field rsp_param_fields[] = {READ_ONLY(DAT_RSP_PARAM, ia_handle), READ_ONLY(DAT_RSP_PARAM, conn_qual),
                                      READ_ONLY(DAT_RSP_PARAM, evd_handle), READ_ONLY(DAT_RSP_PARAM, ep_handle)};

constexpr Field csp_param_fields[] = {
    READ_ONLY(DAT_CSP_PARAM, ia_handle),
    COMPUTED(DAT_CSP_PARAM, comm, s.comm == nullptr ? py::object(py::none()) : value_of(*s.comm)),
    READ_ONLY(DAT_CSP_PARAM, address_ptr), READ_ONLY(DAT_CSP_PARAM, evd_handle)};

constexpr Field cr_param_fields[] = {
    READ_ONLY(DAT_CR_PARAM, remote_ia_address_ptr), READ_ONLY(DAT_CR_PARAM, remote_port_qual),
    COMPUTED(DAT_CR_PARAM, private_data, bytes_of(s.private_data, s.private_data_size)),
    READ_ONLY(DAT_CR_PARAM, local_ep_handle)};

constexpr Field evd_param_fields[] = {READ_ONLY(DAT_EVD_PARAM, ia_handle), READ_ONLY(DAT_EVD_PARAM, evd_qlen),
                                      READ_ONLY(DAT_EVD_PARAM, evd_state), READ_ONLY(DAT_EVD_PARAM, cno_handle),
                                      READ_ONLY(DAT_EVD_PARAM, evd_flags)};

}  // namespace

// ---- Addresses and bytes ------------------------------------------------------------------------------------------

py::object address_of(const DAT_SOCK_ADDR* address) {
    char host[INET6_ADDRSTRLEN] = "";
    if (address == nullptr) return py::none();
    if (address->sa_family == AF_INET) {
        const auto* four = reinterpret_cast<const sockaddr_in*>(address);
        inet_ntop(AF_INET, &four->sin_addr, host, sizeof host);
        return py::make_tuple(host, ntohs(four->sin_port));
    }
    if (address->sa_family == AF_INET6) {
        const auto* six = reinterpret_cast<const sockaddr_in6*>(address);
        inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host);
        return py::make_tuple(host, ntohs(six->sin6_port));
    }
    return py::none();
}

SocketAddress::SocketAddress(const py::tuple& address) {
    const auto [host, port] = address.cast<std::pair<std::string, std::uint16_t>>();
    auto* four = reinterpret_cast<sockaddr_in*>(&storage_);
    auto* six = reinterpret_cast<sockaddr_in6*>(&storage_);
    if (inet_pton(AF_INET, host.c_str(), &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons(port);
    } else if (inet_pton(AF_INET6, host.c_str(), &six->sin6_addr) == 1) {
        six->sin6_family = AF_INET6;
        six->sin6_port = htons(port);
    } else {
        throw py::value_error("not an address: " + host);
    }
}

py::bytes bytes_of(const void* data, DAT_COUNT size) {
    if (data == nullptr || size <= 0) return {};
    return {static_cast<const char*>(data), static_cast<std::size_t>(size)};
}

// ---- Structures ---------------------------------------------------------------------------------------------------

py::dict to_dict(const DAT_PROVIDER_INFO& info) { return read(provider_info_fields, &info); }
py::dict to_dict(const DAT_IA_ATTR& attributes) { return read(ia_attr_fields, &attributes); }
py::dict to_dict(const DAT_PROVIDER_ATTR& attributes) { return read(provider_attr_fields, &attributes); }
py::dict to_dict(const DAT_PZ_PARAM& param) { return read(pz_param_fields, &param); }
py::dict to_dict(const DAT_LMR_PARAM& param) { return read(lmr_param_fields, &param); }
py::dict to_dict(const DAT_RMR_PARAM& param) { return read(rmr_param_fields, &param); }
py::dict to_dict(const DAT_EP_ATTR& attributes) { return read(ep_attr_fields, &attributes); }
py::dict to_dict(const DAT_EP_PARAM& param) { return read(ep_param_fields, &param); }
py::dict to_dict(const DAT_SRQ_PARAM& param) { return read(srq_param_fields, &param); }
py::dict to_dict(const DAT_PSP_PARAM& param) { return read(psp_param_fields, &param); }
py::dict to_dict(const DAT_RSP_PARAM& param) { return read(rsp_param_fields, &param); }
py::dict to_dict(const DAT_CSP_PARAM& param) { return read(csp_param_fields, &param); }
py::dict to_dict(const DAT_CR_PARAM& param) { return read(cr_param_fields, &param); }
py::dict to_dict(const DAT_EVD_PARAM& param) { return read(evd_param_fields, &param); }

DAT_PROVIDER_INFO provider_info_of(const py::dict& fields) {
    return write<DAT_PROVIDER_INFO>(provider_info_fields, fields);
}
DAT_EP_ATTR ep_attr_of(const py::dict& fields) { return write<DAT_EP_ATTR>(ep_attr_fields, fields); }
DAT_EP_PARAM ep_param_of(const py::dict& fields) { return write<DAT_EP_PARAM>(ep_param_fields, fields); }
DAT_SRQ_ATTR srq_attr_of(const py::dict& fields) { return write<DAT_SRQ_ATTR>(srq_attr_fields, fields); }
DAT_COMM comm_of(const py::dict& fields) { return write<DAT_COMM>(comm_fields, fields); }

}  // namespace viaduct::python::dat

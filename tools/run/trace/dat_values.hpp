// SPDX-License-Identifier: BSD-3-Clause
// How values of DAT 1.2 and 2.0 are written that the tables cannot describe. Included by the generated wrappers.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>

namespace viaduct::trace {
namespace {

[[maybe_unused]] void show_timeout(Record& record, DAT_TIMEOUT timeout) {
    if (timeout == DAT_TIMEOUT_INFINITE)
        record.text().word("DAT_TIMEOUT_INFINITE");
    else
        record.text().decimal(timeout);
}

const char* name_of(std::span<const Constant> constants, std::uint64_t value) {
    for (const auto& constant : constants)
        if (constant.value == value) return constant.name;
    return nullptr;
}

/// The type, and the subtype in parentheses: "DAT_INVALID_HANDLE(DAT_INVALID_HANDLE_EP)".
[[maybe_unused]] void show_DAT_RETURN(Record& record, DAT_RETURN result) {
    Text& text = record.text();
    const char* type = name_of(constants_return_type, DAT_GET_TYPE(result));
    if (type == nullptr) return text.hexadecimal(result);
    const std::uint64_t subtype = DAT_GET_SUBTYPE(result);
    const char* detail = subtype == 0 ? nullptr : name_of(constants_return_subtype, subtype);
    if (detail == nullptr) return text.word(type);
    text.word(type, "(", detail, ")");
}

[[maybe_unused]] void show_DAT_IA_ADDRESS_PTR(Record& record, const sockaddr* address) {
    sockaddr_storage copy{};
    Text& text = record.text();
    if (!peek(address, &copy, sizeof(sockaddr))) return text.address(address);
    std::array<char, INET6_ADDRSTRLEN> words{};
    const bool is_v6 = copy.ss_family == AF_INET6 && peek(address, &copy, sizeof(sockaddr_in6));
    const void* host = is_v6 ? static_cast<const void*>(&reinterpret_cast<sockaddr_in6*>(&copy)->sin6_addr)
                             : &reinterpret_cast<sockaddr_in*>(&copy)->sin_addr;
    if (!is_v6 && copy.ss_family != AF_INET) return record.bytes(address, sizeof(sockaddr));
    inet_ntop(is_v6 ? AF_INET6 : AF_INET, host, words.data(), words.size());
    text.word(words.data());
}

[[maybe_unused]] void show_DAT_CONTEXT(Record& record, DAT_CONTEXT context) {
    record.text().hexadecimal(context.as_64);
}
[[maybe_unused]] void show_DAT_DTO_COOKIE(Record& record, DAT_CONTEXT cookie) { show_DAT_CONTEXT(record, cookie); }
[[maybe_unused]] void show_DAT_RMR_COOKIE(Record& record, DAT_CONTEXT cookie) { show_DAT_CONTEXT(record, cookie); }

[[maybe_unused]] void show_DAT_CNO_PARAM(Record& record, const DAT_CNO_PARAM& param) {
    Text& text = record.text();
    text.open('{');
    text.field("ia_handle");
    record.handle(kind_ia, as_bits(param.ia_handle));
    text.close('}');
}

[[maybe_unused]] void show_region(Record& record, const DAT_REGION_DESCRIPTION& region, DAT_MEM_TYPE type) {
    if (type == DAT_MEM_TYPE_LMR)
        record.handle(kind_lmr, as_bits(region.for_lmr_handle));
    else
        record.text().address(region.for_va);
}

/// The event, and the member of its union that belongs to its number.
[[maybe_unused]] void show_DAT_EVENT(Record& record, const DAT_EVENT& event) {
    constexpr std::uint64_t kinds = ~std::uint64_t{0xfff};
    Text& text = record.text();
    text.open('{');
    text.field("event_number").constant(constants_event_number, as_bits(event.event_number));
    text.field("evd_handle");
    record.handle(kind_evd, as_bits(event.evd_handle));
    const auto& data = event.event_data;
    switch (as_bits(event.event_number) & kinds) {
        case as_bits(DAT_DTO_COMPLETION_EVENT) & kinds:
            text.field("dto_completion_event_data");
            show_DAT_DTO_COMPLETION_EVENT_DATA(record, data.dto_completion_event_data);
            break;
        case as_bits(DAT_RMR_BIND_COMPLETION_EVENT) & kinds:
            text.field("rmr_completion_event_data");
            show_DAT_RMR_BIND_COMPLETION_EVENT_DATA(record, data.rmr_completion_event_data);
            break;
        case as_bits(DAT_CONNECTION_REQUEST_EVENT) & kinds:
            text.field("conn_qual").decimal(data.cr_arrival_event_data.conn_qual);
            text.field("cr_handle");
            record.handle(kind_cr, as_bits(data.cr_arrival_event_data.cr_handle));
            break;
        case as_bits(DAT_CONNECTION_EVENT_ESTABLISHED) & kinds:
            text.field("connect_event_data");
            show_DAT_CONNECTION_EVENT_DATA(record, data.connect_event_data);
            break;
        case as_bits(DAT_ASYNC_ERROR_EVD_OVERFLOW) & kinds:
            text.field("dat_handle");
            record.handle(any_kind, as_bits(data.asynch_error_event_data.dat_handle));
            text.field("reason").number(data.asynch_error_event_data.reason);
            break;
        case as_bits(DAT_SOFTWARE_EVENT) & kinds:
            text.field("pointer").address(data.software_event_data.pointer);
            break;
        default: break;
    }
    text.close('}');
}

}  // namespace
}  // namespace viaduct::trace

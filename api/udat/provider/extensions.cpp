// SPDX-License-Identifier: BSD-3-Clause
// The InfiniBand extension: immediate data, atomics, and queries of unopened adapters.
#include <arpa/inet.h>

#include "api/udat/provider/counters.hpp"
#include "api/udat/provider/ep.hpp"
#include "api/udat/provider/ia.hpp"
#include "api/udat/provider/providers.hpp"
#include "api/udat/provider/table.hpp"

namespace viaduct::dat {
namespace {

DAT_RETURN write_with_immediate(Ep& ep, va_list arguments) noexcept {
    const auto segments = va_arg(arguments, DAT_COUNT);
    const auto* iov = va_arg(arguments, DAT_LMR_TRIPLET*);
    const auto cookie = va_arg(arguments, DAT_DTO_COOKIE);
    const auto* remote = va_arg(arguments, const DAT_RMR_TRIPLET*);
    const auto immediate = va_arg(arguments, DAT_UINT32);  // sent in host byte order, as in other implementations
    const auto flags = static_cast<DAT_COMPLETION_FLAGS>(va_arg(arguments, int));  // promoted
    return ep.post_any_rdma(
        {.context = cookie.as_64, .opcode = Opcode::RdmaWrite, .with_immediate = true, .immediate = htonl(immediate)},
        segments, iov, remote, flags);
}

DAT_RETURN post_atomic(Ep& ep, SendRequest& request, va_list arguments) noexcept {
    const auto* iov = va_arg(arguments, DAT_LMR_TRIPLET*);
    const auto cookie = va_arg(arguments, DAT_DTO_COOKIE);
    const auto* remote = va_arg(arguments, const DAT_RMR_TRIPLET*);
    const auto flags = static_cast<DAT_COMPLETION_FLAGS>(va_arg(arguments, int));  // promoted
    if (!ep.ia().device()->attributes().capabilities.atomics)
        return failed(error(DAT_MODEL_NOT_SUPPORTED), "the adapter has no atomic operations");
    request.context = cookie.as_64;
    return ep.post_any_rdma(SendRequest(request), 1, iov, remote, flags);
}

DAT_RETURN fetch_and_add(Ep& ep, va_list arguments) noexcept {
    SendRequest request{.opcode = Opcode::FetchAdd};
    request.add = va_arg(arguments, DAT_UINT64);
    return post_atomic(ep, request, arguments);
}

DAT_RETURN compare_and_swap(Ep& ep, va_list arguments) noexcept {
    SendRequest request{.opcode = Opcode::CompareSwap};
    request.compare = va_arg(arguments, DAT_UINT64);
    request.swap = va_arg(arguments, DAT_UINT64);
    return post_atomic(ep, request, arguments);
}

DAT_RETURN query(DAT_HANDLE handle, va_list arguments) noexcept {
    const int wanted = va_arg(arguments, int);
    auto* values = va_arg(arguments, DAT_UINT64*);
    return query_counters(handle, wanted, values, va_arg(arguments, int) != 0);
}

DAT_RETURN print(DAT_HANDLE handle, va_list arguments) noexcept {
    const int wanted = va_arg(arguments, int);
    return print_counters(handle, wanted, va_arg(arguments, int) != 0);
}

DAT_RETURN close(DAT_IA_HANDLE ia) {
    return with<Ia>(ia, [](Ia& opened) { return calls::ia_close(opened, DAT_CLOSE_ABRUPT_FLAG); });
}

/// Returns the attributes of an IA that the consumer has not opened.
DAT_RETURN open_query(const DAT_NAME_PTR name, va_list arguments) {
    auto* ia = va_arg(arguments, DAT_IA_HANDLE*);
    const auto ia_mask = va_arg(arguments, DAT_IA_ATTR_MASK);
    auto* ia_attr = va_arg(arguments, DAT_IA_ATTR*);
    const auto provider_mask = va_arg(arguments, DAT_PROVIDER_ATTR_MASK);
    auto* provider_attr = va_arg(arguments, DAT_PROVIDER_ATTR*);
    DAT_EVD_HANDLE none = DAT_EVD_ASYNC_EXISTS;
    DAT_IA_HANDLE opened = DAT_HANDLE_NULL;
    // A registry prefers an entry that does not say that it is thread-safe, because it does not ask for that.
    const bool thread_safe = name != nullptr && find_named_provider(name, false) == nullptr;
    if (const DAT_RETURN result = calls::ia_open(thread_safe, name, 1, &none, &opened); result != success)
        return result;
    const DAT_RETURN result = with<Ia>(
        opened, [&](Ia& it) { return calls::ia_query(it, nullptr, ia_mask, ia_attr, provider_mask, provider_attr); });
    if (result == success && ia != nullptr)
        *ia = opened;
    else
        (void)close(opened);
    return result;
}

DAT_RETURN run(DAT_HANDLE handle, DAT_EXTENDED_OP operation, va_list arguments) {
    switch (operation) {
        case DAT_IB_RDMA_WRITE_IMMED_OP:
            return with<Ep>(handle, [&](Ep& ep) { return write_with_immediate(ep, arguments); });
        case DAT_IB_FETCH_AND_ADD_OP: return with<Ep>(handle, [&](Ep& ep) { return fetch_and_add(ep, arguments); });
        case DAT_IB_CMP_AND_SWAP_OP: return with<Ep>(handle, [&](Ep& ep) { return compare_and_swap(ep, arguments); });
        case DAT_IB_OPEN_QUERY_OP:
            return guarded([&] { return open_query(static_cast<DAT_NAME_PTR>(handle), arguments); });
        case DAT_IB_CLOSE_QUERY_OP: return guarded([&] { return close(handle); });
        case DAT_IB_QUERY_COUNTERS_OP: return query(handle, arguments);
        case DAT_IB_PRINT_COUNTERS_OP: return print(handle, arguments);
        // The sampled counters are counters of ports, which no device has.
        default:
            return failed(error(DAT_NOT_IMPLEMENTED),
                          explain("there is no operation 0x%x", static_cast<unsigned>(operation)));
    }
}

}  // namespace

DAT_RETURN calls::extended_op(DAT_HANDLE handle, DAT_EXTENDED_OP operation, va_list arguments) {
    const DAT_RETURN result = run(handle, operation, arguments);
    return result == success ? success : report_failure("dat_extension_op", handle, result);
}

}  // namespace viaduct::dat

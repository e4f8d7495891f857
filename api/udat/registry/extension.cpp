// SPDX-License-Identifier: BSD-3-Clause
// Calls of extensions. To query an adapter that is not open, the registry has to find its provider first.
#include <cstdarg>
#include <map>

#include "api/udat/registry/dispatch.hpp"
#include "core/base/fork.hpp"
#include "viaduct/detail/mutex.hpp"

using namespace viaduct::dat;

namespace {

constexpr const char* call_name = "dat_extension_op";

/// The providers of queried adapters, by the providers' handles.
struct Queries {
    viaduct::ProcessMutex mutex;
    std::map<DAT_HANDLE, Provider> open VIADUCT_GUARDED_BY(mutex);
};

Queries& queries() {
    static auto& instance = *new Queries;  // never destroyed, like the registry
    return instance;
}

/// The arguments are the name of the adapter and the place for its handle. The provider gets the name instead of a
/// handle.
DAT_RETURN open_query(DAT_EXTENDED_OP operation, va_list arguments) {
    char* const name = va_arg(arguments, char*);
    if (name == nullptr) return invalid_parameter(DAT_INVALID_ARG3, "the name of the adapter is null");
    va_list further;
    va_copy(further, arguments);
    const DAT_HANDLE* const handle = va_arg(further, DAT_HANDLE*);
    va_end(further);
    if (handle == nullptr) return invalid_parameter(DAT_INVALID_ARG4, "the place for the handle is null");
    Provider provider;
    DAT_RETURN result = Registry::instance().open({name, DAT_VERSION_MAJOR, DAT_VERSION_MINOR, false}, provider);
    if (result != DAT_SUCCESS) return result;
    const auto function = provider.table().handle_extendedop_func;
    if (function == nullptr) return failed(error(DAT_NOT_IMPLEMENTED), "the provider has no extensions");
    std::map<DAT_HANDLE, Provider> query;  // allocated first, because a successful open must be recorded
    query.emplace(DAT_HANDLE_NULL, std::move(provider));
    result = function(name, operation, arguments);
    if (result != DAT_SUCCESS) return result;
    note_provider_of(*handle);
    auto node = query.extract(query.begin());
    node.key() = *handle;
    const viaduct::LockGuard lock(queries().mutex);
    queries().open.insert(std::move(node));
    return DAT_SUCCESS;
}

DAT_RETURN close_query(DAT_HANDLE handle, DAT_EXTENDED_OP operation, va_list arguments) {
    const DAT_RETURN result =
        call<DAT_INVALID_HANDLE_IA>(call_name, &DAT_PROVIDER::handle_extendedop_func, handle, operation, arguments);
    if (result != DAT_SUCCESS) return result;
    viaduct::UniqueLock lock(queries().mutex);
    const auto query = queries().open.extract(handle);
    lock.unlock();  // before the library is unloaded
    return DAT_SUCCESS;
}

DAT_RETURN dispatch(DAT_HANDLE handle, DAT_EXTENDED_OP operation, va_list arguments) {
    if ((operation & DAT_OPEN_EXTENSION_BASE) != 0)
        return enter(call_name, [&] { return open_query(operation, arguments); });
    if ((operation & DAT_CLOSE_EXTENSION_BASE) != 0) return close_query(handle, operation, arguments);
    return call_number_or_handle<any_object>(call_name, &DAT_PROVIDER::handle_extendedop_func, handle, operation,
                                             arguments);
}

}  // namespace

DAT_RETURN dat_extension_op(DAT_HANDLE handle, DAT_EXTENDED_OP operation, ...) {
    va_list arguments;
    va_start(arguments, operation);
    const DAT_RETURN result = dispatch(handle, operation, arguments);
    va_end(arguments);
    return result;
}

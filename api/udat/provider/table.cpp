// SPDX-License-Identifier: BSD-3-Clause
#include "api/udat/provider/table.hpp"

#include <bit>

#include "api/support/failure.hpp"
#include "api/udat/provider/cno.hpp"
#include "api/udat/provider/cr.hpp"
#include "api/udat/provider/ia.hpp"
#include "api/udat/provider/rmr.hpp"
#include "api/udat/provider/service_point.hpp"
#include "core/base/waiting.hpp"

namespace viaduct::dat {
namespace {

/// Runs the body of a call on a handle, and reports its failure.
DAT_RETURN reporting(const char* name, DAT_HANDLE handle, auto&& body) {
    const CancellationHold hold;
    failure::clear();
    const DAT_RETURN result = body();
    return result == success ? success : report_failure(name, handle, result);
}

/// The function of a registry's table for a call.
template <CallName name, auto call>
struct Entry;

template <CallName name, class T, class... Arguments, DAT_RETURN (*call)(T&, Arguments...)>
struct Entry<name, call> {
    static DAT_RETURN function(DAT_HANDLE handle, Arguments... arguments) {
        return reporting(name.text, handle, [&] {
            return guarded([&] { return with<T>(handle, [&](T& object) { return call(object, arguments...); }); });
        });
    }
};

template <CallName name, class... Arguments, DAT_RETURN (*call)(DAT_HANDLE, Arguments...)>
struct Entry<name, call> {
    static DAT_RETURN function(DAT_HANDLE handle, Arguments... arguments) {
        return reporting(name.text, handle, [&] { return call(handle, arguments...); });
    }
};

/// The same for the query of an object. The mask is an integer or an enumeration, whose fields are
/// all bits up to the last one in `all`: DAT_CNO_FIELD_ALL has no other.
template <CallName name, class T, class Mask, class Param, std::uint64_t all>
struct Query {
    static DAT_RETURN function(DAT_HANDLE handle, Mask mask, Param* param) {
        return reporting(name.text, handle, [&] {
            return with<T>(handle, [&](T& object) {
                if (const std::uint64_t unknown = mask & ~(std::bit_ceil(all + 1) - 1); unknown != 0)
                    return invalid_parameter(DAT_INVALID_ARG2, explain("the mask has unknown bits 0x%llx",
                                                                       static_cast<unsigned long long>(unknown)));
                if (param == nullptr) return invalid_parameter(DAT_INVALID_ARG3, "the parameters are null");
                object.query(mask, *param);
                return success;
            });
        });
    }
};

/// Adds the check of the handle to a call of the data path. Such a call reports its failures itself.
template <CallName name, class T, auto call>
struct Checking;
template <CallName name, class T, class... Arguments, DAT_RETURN (*call)(DAT_HANDLE, Arguments...)>
struct Checking<name, T, call> {
    static DAT_RETURN function(DAT_HANDLE handle, Arguments... arguments) {
        return HandleArena::instance().holds(handle)
                   ? call(handle, arguments...)
                   : report_failure(name.text, handle, invalid_handle(invalid_subtype<T>));
    }
};

template <bool thread_safe>
DAT_RETURN open_ia(const DAT_NAME_PTR name, DAT_COUNT async_qlen, DAT_EVD_HANDLE* async_evd, DAT_IA_HANDLE* ia) {
    return reporting("dat_ia_openv", DAT_HANDLE_NULL, [&] {
        return guarded([&] { return calls::ia_open(thread_safe, name, async_qlen, async_evd, ia); });
    });
}

}  // namespace

ProviderTables make_tables(const char* ia_name, bool thread_safe) noexcept {
    ProviderTables tables{};
    DAT_PROVIDER& table = tables.checking;
    table.device_name = ia_name;
    table.ia_open_func = thread_safe ? open_ia<true> : open_ia<false>;
    table.ia_close_func = Entry<"dat_ia_close", calls::ia_close>::function;
    table.ia_ha_related_func = calls::ia_ha_related;
    table.handle_extendedop_func = calls::extended_op;
#define CALL(in_1, object, name, parameters, arguments) table.name##_func = Entry<"dat_" #name, calls::name>::function;
#define DATA_CALL(in_1, object, name, parameters, arguments) \
    table.name##_func = Checking<"dat_" #name, object, calls::name>::function;
#define QUERY_CALL(in_1, object, name, prefix) \
    table.name##_query_func =                  \
        Query<"dat_" #name "_query", object, prefix##_PARAM_MASK, prefix##_PARAM, prefix##_FIELD_ALL>::function;
#include "api/udat/calls.inc"
    tables.trusting = table;
#define CALL(in_1, object, name, parameters, arguments)
#define DATA_CALL(in_1, object, name, parameters, arguments) tables.trusting.name##_func = calls::name;
#define QUERY_CALL(in_1, object, name, prefix)
#include "api/udat/calls.inc"
    return tables;
}

}  // namespace viaduct::dat

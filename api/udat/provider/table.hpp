// SPDX-License-Identifier: BSD-3-Clause
// The provider's function tables, through which a registry makes its calls. Every handle starts with a pointer to them.
#pragma once

#include <cstdarg>

#include "api/udat/provider/api.hpp"
#include "api/udat/provider_tables.hpp"

namespace viaduct::dat {

/// Returns the function tables for an IA of that name. The caller owns the name. Their function that opens it gets the
/// name, but not the rest of the entry: there are two, for entries that say that they are thread-safe and for others.
ProviderTables make_tables(const char* ia_name, bool thread_safe) noexcept;

class Object;
class Ia;
class Pz;
class Lmr;
class Rmr;
class Ep;
class Srq;
class Psp;
class Rsp;
class Csp;
class Cr;
class Evd;
class Cno;

/// The calls. Each has the arguments, results and errors of its dat_ function, and gets its first object instead of a
/// handle if calls.inc does not say otherwise. Calls that the manual marks as safe may be made by several threads at
/// the same time.
namespace calls {

// Those of the data path trust that HandleArena::holds() has confirmed the handle.
#define CALL(in_1, object, name, parameters, arguments) DAT_RETURN name(object& REST parameters);  // NOLINT: a type
#define HANDLE_CALL(in_1, object, name, parameters, arguments) DAT_RETURN name(DAT_HANDLE REST parameters);
#define DATA_CALL HANDLE_CALL
#define QUERY_CALL(in_1, object, name, prefix)
#include "api/udat/calls.inc"

// The registry has more to do for these.
DAT_RETURN ia_open(bool thread_safe, const DAT_NAME_PTR name, DAT_COUNT async_qlen, DAT_EVD_HANDLE* async_evd,
                   DAT_IA_HANDLE* ia);
DAT_RETURN ia_close(Ia& ia, DAT_CLOSE_FLAGS flags);
DAT_RETURN ia_ha_related(DAT_IA_HANDLE ia, const DAT_NAME_PTR provider, DAT_BOOLEAN* answer);
DAT_RETURN extended_op(DAT_HANDLE handle, DAT_EXTENDED_OP operation, va_list arguments);

}  // namespace calls
}  // namespace viaduct::dat

// SPDX-License-Identifier: BSD-3-Clause
// The calls that are forwarded to the provider of their first handle. The provider checks all other arguments.
#include "api/udat/registry/dispatch.hpp"

using namespace viaduct::dat;

namespace {

// The error subtype if the first handle is invalid. For the calls on an EVD, there is one subtype for all kinds of
// EVDs.
constexpr auto Object = any_object;
constexpr auto Ia = DAT_INVALID_HANDLE_IA;
constexpr auto Pz = DAT_INVALID_HANDLE_PZ;
constexpr auto Lmr = DAT_INVALID_HANDLE_LMR;
constexpr auto Rmr = DAT_INVALID_HANDLE_RMR;
constexpr auto Ep = DAT_INVALID_HANDLE_EP;
constexpr auto Srq = DAT_INVALID_HANDLE_SRQ;
constexpr auto Psp = DAT_INVALID_HANDLE_PSP;
constexpr auto Rsp = DAT_INVALID_HANDLE_RSP;
constexpr auto Csp = DAT_INVALID_HANDLE_CSP;
constexpr auto Cr = DAT_INVALID_HANDLE_CR;
constexpr auto Evd = DAT_INVALID_HANDLE_EVD_REQUEST;
constexpr auto Cno = DAT_INVALID_HANDLE_CNO;

}  // namespace

#define CALL(in_1, object, name, parameters, arguments)                                                    \
    DAT_RETURN dat_##name(DAT_HANDLE handle REST parameters) {                                             \
        return call_number_or_handle<object>(__func__, &DAT_PROVIDER::name##_func, handle REST arguments); \
    }
#include "api/udat/calls.inc"

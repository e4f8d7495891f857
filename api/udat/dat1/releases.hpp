// SPDX-License-Identifier: BSD-3-Clause
// Declares both releases of DAT: 1.2 as programs see it, and 2.0 in namespace dat2 with its calls named dat2_*.
#pragma once

// Headers that the 2.0 headers include, so that they are not included inside the namespace.
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>

// The order matters.
// clang-format off
#include "dat2_names.hpp"
namespace dat2 {
#include <dat2/dat_registry.h>
inline constexpr DAT_UINT32 version_major = DAT_VERSION_MAJOR;
inline constexpr DAT_UINT32 version_minor = DAT_VERSION_MINOR;
inline constexpr DAT_IA_ATTR_MASK last_ia_field = DAT_IA_FIELD_IA_VENDOR_ATTR;
inline constexpr DAT_PROVIDER_ATTR_MASK last_provider_field = DAT_PROVIDER_FIELD_PROVIDER_SPECIFIC_ATTR;
inline constexpr DAT_EP_PARAM_MASK last_ep_field = DAT_EP_FIELD_SRQ_HANDLE;
}  // namespace dat2
#include "dat2_forget.hpp"
#pragma GCC visibility push(default)  // the symbols that libdat.map exports
#include <dat/dat_registry.h>
#pragma GCC visibility pop
// clang-format on

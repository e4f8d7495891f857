// SPDX-License-Identifier: BSD-3-Clause
// The calls that are the same in both releases except for the numeric values of their results, and for triplets.
#include "triplets.hpp"

using namespace viaduct::dat1;

#define CALL_SAME(name, parameters, arguments) \
    DAT_RETURN dat_##name(DAT_HANDLE handle REST parameters) { return pass(dat2::dat2_##name, handle REST arguments); }
#define CALL_POSTS(name, parameters, arguments)                                       \
    DAT_RETURN dat_##name(DAT_HANDLE handle REST parameters) {                        \
        return post_segments<"dat_" #name>(dat2::dat2_##name, handle REST arguments); \
    }
#define CALL_DIFFERS(name, parameters, arguments)
#define CALL(in_1, object, name, parameters, arguments) CALL_##in_1(name, parameters, arguments)
#include "api/udat/calls.inc"

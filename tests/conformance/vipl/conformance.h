/* SPDX-License-Identifier: BSD-3-Clause
 * What every conformance program of VIPL includes: the harness, the header under test, and checks of return codes.
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include "../support/harness.h"

#include <vipl.h>

void check_return(const char *file, int line, const char *what, VIP_RETURN actual, VIP_RETURN expected);

#define CHECK_RC(call, expected) check_return(__FILE__, __LINE__, #call, (call), (expected))

const char *return_name(VIP_RETURN code);

/* For ../support/sweep.h. */
typedef VIP_RETURN Return;
#define NO_MEMORY VIP_ERROR_RESOURCE
#define NO_DESCRIPTORS VIP_ERROR_RESOURCE
#define IS_UNCLEAR(rc, expected) 0

#endif

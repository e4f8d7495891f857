/* SPDX-License-Identifier: BSD-3-Clause
 * What every conformance program of librpma includes: the harness, the header under test, and checks of return codes.
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include "../support/harness.h"

#include <librpma.h>

void check_return(const char *file, int line, const char *what, int actual, int expected);

#define CHECK_RC(call, expected) check_return(__FILE__, __LINE__, #call, (call), (expected))
#define CHECK_OK(call) CHECK_RC(call, 0)
#define CHECK_INVAL(call) CHECK_RC(call, RPMA_E_INVAL)

const char *return_name(int code);

#endif

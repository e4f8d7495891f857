/* SPDX-License-Identifier: BSD-3-Clause
 * Included by every conformance program of DAT 1.2: the harness, the header under test, and checks of return codes.
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include "../support/harness.h"

#include <stdbool.h>

#include <dat/udat.h>

void check_type(const char *file, int line, const char *what, DAT_RETURN actual, DAT_RETURN expected);
void check_return(const char *file, int line, const char *what, DAT_RETURN actual, DAT_RETURN expected);

/* CHECK_RC compares the type, for example DAT_INVALID_PARAMETER. CHECK_SUB also compares the subtype. */
#define CHECK_RC(call, type) check_type(__FILE__, __LINE__, #call, (call), (DAT_RETURN)(type))
#define CHECK_SUB(call, type, subtype) \
    check_return(__FILE__, __LINE__, #call, (call), DAT_CLASS_ERROR | (DAT_RETURN)(type) | (DAT_RETURN)(subtype))
#define CHECK_OK(call) check_return(__FILE__, __LINE__, #call, (call), DAT_SUCCESS)

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * What every conformance program of DAT 2.0 includes: the harness, the header under test, and checks of return codes.
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include "../support/harness.h"

#include <stdbool.h>

#include <dat2/udat.h>

void check_type(const char *file, int line, const char *what, DAT_RETURN actual, DAT_RETURN expected);
void check_either(const char *file, int line, const char *what, DAT_RETURN actual, DAT_RETURN one, DAT_RETURN other);
void check_return(const char *file, int line, const char *what, DAT_RETURN actual, DAT_RETURN expected);

/* CHECK_RC compares the type, for instance DAT_INVALID_PARAMETER; CHECK_SUB the class and the subtype, too.
 * CHECK_EITHER takes `other` only over devices, where the stock library may run or the device decide. */
#define CHECK_RC(call, type) check_type(__FILE__, __LINE__, #call, (call), (DAT_RETURN)(type))
#define CHECK_EITHER(call, one, other) \
    check_either(__FILE__, __LINE__, #call, (call), (DAT_RETURN)(one), (DAT_RETURN)(other))
#define CHECK_SUB(call, type, subtype) \
    check_return(__FILE__, __LINE__, #call, (call), DAT_CLASS_ERROR | (DAT_RETURN)(type) | (DAT_RETURN)(subtype))
#define CHECK_OK(call) check_return(__FILE__, __LINE__, #call, (call), DAT_SUCCESS)

/* For ../support/sweep.h. */
typedef DAT_RETURN Return;
#define NO_MEMORY DAT_INSUFFICIENT_RESOURCES
#define NO_DESCRIPTORS DAT_INSUFFICIENT_RESOURCES
#define IS_UNCLEAR(rc, expected) false

/* What ends with a timeout takes that long, and not much longer; what comes at once does not wait. The upper bound
 * grows with CONFORMANCE_PATIENCE. const DAT_TIMEOUT start = clock_us();
 *   ...
 *   CHECK_TOOK(start, SHORT_US); */
DAT_TIMEOUT clock_us(void);
void check_took(const char *file, int line, DAT_TIMEOUT start_us, DAT_TIMEOUT timeout_us);
#define CHECK_TOOK(start_us, timeout_us) check_took(__FILE__, __LINE__, (start_us), (timeout_us))
#define CHECK_AT_ONCE(start_us) CHECK_TOOK((start_us), 0)

/* A call that the headers declare and that not every library exports. A program that names one also says
 *   #pragma weak dat_cno_trigger
 * and each of its cases that calls it begins with NEED(dat_cno_trigger). */
#define NEED(function) ((function) != NULL ? (void)0 : skip("the library has no " #function))

/* Something that is no handle of any kind: NULL, and addresses that are this program's own. */
extern const DAT_HANDLE bad_handles[];
extern const size_t bad_handle_count;

/* CHECK_BAD_HANDLES(dat_pz_free(bad)): DAT_INVALID_HANDLE for each of them. */
#define CHECK_BAD_HANDLES(call)                                  \
    do {                                                         \
        for (size_t bad_ = 0; bad_ < bad_handle_count; ++bad_) { \
            DAT_HANDLE bad = bad_handles[bad_];                  \
            CHECK_RC(call, DAT_INVALID_HANDLE);                  \
        }                                                        \
    } while (0)

#endif

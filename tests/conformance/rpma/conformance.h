/* SPDX-License-Identifier: BSD-3-Clause
 * What every conformance program of librpma includes: the harness, the header under test, and checks of return codes.
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include "../support/harness.h"

#include <stdbool.h>

#include <librpma.h>

void check_return(const char *file, int line, const char *what, int actual, int expected);

#define CHECK_RC(call, expected) check_return(__FILE__, __LINE__, #call, (call), (expected))
#define CHECK_OK(call) CHECK_RC(call, 0)
#define CHECK_INVAL(call) CHECK_RC(call, RPMA_E_INVAL)

const char *return_name(int code);

/* Whether the address of the tests is software on this host, which knows more than a device: who died, and what a queue
 * really holds. */
bool on_loopback(void);

/* For ../support/sweep.h. The libraries of a device may take either for the other. */
typedef int Return;
#define NO_MEMORY RPMA_E_NOMEM
#define NO_DESCRIPTORS RPMA_E_PROVIDER
#define IS_UNCLEAR(rc, expected) (!on_loopback() && (rc) != (expected) && ((rc) == NO_MEMORY || (rc) == NO_DESCRIPTORS))

/* Milliseconds of the steady clock, and whether as many have passed as a timeout asks for: no fewer, and not many
 * more; or none to speak of. */
uint64_t clock_ms(void);
void check_time(const char *file, int line, uint64_t begin_ms, uint64_t timeout_ms);

#define CHECK_TIMED_OUT(begin_ms, timeout_ms) check_time(__FILE__, __LINE__, (begin_ms), (timeout_ms))
#define CHECK_AT_ONCE(begin_ms) CHECK_TIMED_OUT(begin_ms, 0)

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * Return codes of DAT 2.0 in the messages of the harness, and things that are no handles.
 */
#include "side.h"

#include <time.h>

static const char *type_name(DAT_RETURN rc) {
    switch (DAT_GET_TYPE(rc)) {
        case DAT_SUCCESS: return "DAT_SUCCESS";
        case DAT_ABORT: return "DAT_ABORT";
        case DAT_CONN_QUAL_IN_USE: return "DAT_CONN_QUAL_IN_USE";
        case DAT_INSUFFICIENT_RESOURCES: return "DAT_INSUFFICIENT_RESOURCES";
        case DAT_INTERNAL_ERROR: return "DAT_INTERNAL_ERROR";
        case DAT_INVALID_HANDLE: return "DAT_INVALID_HANDLE";
        case DAT_INVALID_PARAMETER: return "DAT_INVALID_PARAMETER";
        case DAT_INVALID_STATE: return "DAT_INVALID_STATE";
        case DAT_LENGTH_ERROR: return "DAT_LENGTH_ERROR";
        case DAT_MODEL_NOT_SUPPORTED: return "DAT_MODEL_NOT_SUPPORTED";
        case DAT_PROVIDER_NOT_FOUND: return "DAT_PROVIDER_NOT_FOUND";
        case DAT_PRIVILEGES_VIOLATION: return "DAT_PRIVILEGES_VIOLATION";
        case DAT_PROTECTION_VIOLATION: return "DAT_PROTECTION_VIOLATION";
        case DAT_QUEUE_EMPTY: return "DAT_QUEUE_EMPTY";
        case DAT_QUEUE_FULL: return "DAT_QUEUE_FULL";
        case DAT_TIMEOUT_EXPIRED: return "DAT_TIMEOUT_EXPIRED";
        case DAT_PROVIDER_ALREADY_REGISTERED: return "DAT_PROVIDER_ALREADY_REGISTERED";
        case DAT_PROVIDER_IN_USE: return "DAT_PROVIDER_IN_USE";
        case DAT_INVALID_ADDRESS: return "DAT_INVALID_ADDRESS";
        case DAT_INTERRUPTED_CALL: return "DAT_INTERRUPTED_CALL";
        case DAT_CONN_QUAL_UNAVAILABLE: return "DAT_CONN_QUAL_UNAVAILABLE";
        case DAT_PORT_IN_USE: return "DAT_PORT_IN_USE";
        case DAT_COMM_NOT_SUPPORTED: return "DAT_COMM_NOT_SUPPORTED";
        case DAT_NOT_IMPLEMENTED: return "DAT_NOT_IMPLEMENTED";
        default: return "no type of DAT";
    }
}

void check_type(const char *file, int line, const char *what, DAT_RETURN actual, DAT_RETURN expected) {
    if (DAT_GET_TYPE(actual) != DAT_GET_TYPE(expected))
        fail(file, line, "%s gives %s (0x%x), not %s", what, type_name(actual), actual, type_name(expected));
}

void check_either(const char *file, int line, const char *what, DAT_RETURN actual, DAT_RETURN one, DAT_RETURN other) {
    if (on_loopback() || DAT_GET_TYPE(actual) != DAT_GET_TYPE(other)) check_type(file, line, what, actual, one);
}

void check_return(const char *file, int line, const char *what, DAT_RETURN actual, DAT_RETURN expected) {
    check_type(file, line, what, actual, expected);
    if (actual != expected)
        fail(file, line, "%s gives %s as 0x%x, not 0x%x", what, type_name(actual), actual, expected);
}

static char not_an_object[4096] __attribute__((aligned(64)));

const DAT_HANDLE bad_handles[] = {DAT_HANDLE_NULL, not_an_object, not_an_object + 1, (DAT_HANDLE)(uintptr_t)0x10,
                                  (DAT_HANDLE)UINTPTR_MAX};
const size_t bad_handle_count = sizeof bad_handles / sizeof *bad_handles;

DAT_TIMEOUT clock_us(void) {
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (DAT_TIMEOUT)((uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000);
}

void check_took(const char *file, int line, DAT_TIMEOUT start_us, DAT_TIMEOUT timeout_us) {
    const DAT_TIMEOUT took = clock_us() - start_us; /* a difference, so that the clock may wrap */
    if (took < timeout_us) fail(file, line, "%u us passed, not %u", (unsigned)took, (unsigned)timeout_us);
    if (took > timeout_us + 5000000u * patience()) fail(file, line, "%u us passed", (unsigned)took);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Return codes of librpma in the messages of the harness.
 */
#include "conformance.h"

#include <time.h>

void check_return(const char *file, int line, const char *what, int actual, int expected) {
    if (actual != expected) fail(file, line, "%s gives %s, not %s", what, return_name(actual), return_name(expected));
}

uint64_t clock_ms(void) {
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void check_time(const char *file, int line, uint64_t begin_ms, uint64_t timeout_ms) {
    uint64_t elapsed_ms = clock_ms() - begin_ms;
    if (elapsed_ms < timeout_ms || elapsed_ms > timeout_ms + LONG_MS / 3)
        fail(file, line, "it takes %llu ms, not %llu", (unsigned long long)elapsed_ms, (unsigned long long)timeout_ms);
}

const char *return_name(int code) {
    switch (code) {
        case 0: return "0";
        case RPMA_E_UNKNOWN: return "RPMA_E_UNKNOWN";
        case RPMA_E_NOSUPP: return "RPMA_E_NOSUPP";
        case RPMA_E_PROVIDER: return "RPMA_E_PROVIDER";
        case RPMA_E_NOMEM: return "RPMA_E_NOMEM";
        case RPMA_E_INVAL: return "RPMA_E_INVAL";
        case RPMA_E_NO_COMPLETION: return "RPMA_E_NO_COMPLETION";
        case RPMA_E_NO_EVENT: return "RPMA_E_NO_EVENT";
        case RPMA_E_AGAIN: return "RPMA_E_AGAIN";
        case RPMA_E_SHARED_CHANNEL: return "RPMA_E_SHARED_CHANNEL";
        case RPMA_E_NOT_SHARED_CHNL: return "RPMA_E_NOT_SHARED_CHNL";
        default: return "no code of librpma";
    }
}

/* SPDX-License-Identifier: BSD-3-Clause
 * Return codes of VIPL in the messages of the harness.
 */
#include "conformance.h"

void check_return(const char *file, int line, const char *what, VIP_RETURN actual, VIP_RETURN expected) {
    if (actual != expected) fail(file, line, "%s gives %s, not %s", what, return_name(actual), return_name(expected));
}

const char *return_name(VIP_RETURN code) {
    static const char *const names[] = {"VIP_SUCCESS",
                                        "VIP_NOT_DONE",
                                        "VIP_INVALID_PARAMETER",
                                        "VIP_ERROR_RESOURCE",
                                        "VIP_TIMEOUT",
                                        "VIP_REJECT",
                                        "VIP_INVALID_RELIABILITY_LEVEL",
                                        "VIP_INVALID_MTU",
                                        "VIP_INVALID_QOS",
                                        "VIP_INVALID_PTAG",
                                        "VIP_INVALID_RDMAREAD",
                                        "VIP_DESCRIPTOR_ERROR",
                                        "VIP_INVALID_STATE",
                                        "VIP_ERROR_NAMESERVICE",
                                        "VIP_NO_MATCH",
                                        "VIP_NOT_REACHABLE",
                                        "VIP_ERROR_NOT_SUPPORTED",
                                        "VIP_INVALID_ADDRESS"};
    return (size_t)code < sizeof names / sizeof names[0] ? names[code] : "no VIP_RETURN";
}

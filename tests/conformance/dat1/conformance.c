/* SPDX-License-Identifier: BSD-3-Clause
 * Names of the return codes of DAT 1.2 for the messages of the harness.
 */
#include "conformance.h"

#define CLASS_MASK (DAT_CLASS_ERROR | DAT_CLASS_WARNING)

void check_type(const char *file, int line, const char *what, DAT_RETURN actual, DAT_RETURN expected) {
    const DAT_RETURN class = DAT_GET_TYPE(expected) == DAT_SUCCESS ? DAT_CLASS_SUCCESS : DAT_CLASS_ERROR;
    if (DAT_GET_TYPE(actual) != DAT_GET_TYPE(expected) || (actual & CLASS_MASK) != class)
        fail(file, line, "%s gives 0x%x, not type 0x%x", what, actual, DAT_GET_TYPE(expected));
}

void check_return(const char *file, int line, const char *what, DAT_RETURN actual, DAT_RETURN expected) {
    if (actual != expected)
        fail(file, line, "%s gives 0x%x (subtype %u), not 0x%x (subtype %u)", what, actual, DAT_GET_SUBTYPE(actual),
             expected, DAT_GET_SUBTYPE(expected));
}

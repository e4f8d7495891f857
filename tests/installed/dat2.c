/* SPDX-License-Identifier: BSD-3-Clause
 * A minimal uDAPL program: opens and closes an interface adapter.
 */
#include <dat2/udat.h>

int main(void) {
    DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia;
    const char* type;
    const char* subtype;
    DAT_RETURN result = dat_ia_open("viaduct-lo", 8, &async_evd, &ia);
    if (result == DAT_SUCCESS) result = dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
    dat_strerror(result, &type, &subtype);
    if (result != DAT_SUCCESS) fprintf(stderr, "uDAPL: %s %s\n", type, subtype);
    return result != DAT_SUCCESS;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * HEADER compiles on its own, when included twice, as C11 and as C++17. Also a program that uses the macros of
 * <dat/udat_redirection.h>, as providers and some programs did.
 */
#include HEADER

/* including it again must have no effect */
#include HEADER

#include <dat/dat_registry.h>

extern DAT_EP_POST_SEND_FUNC use_of_the_header;
DAT_EP_POST_SEND_FUNC use_of_the_header = DAT_EP_POST_SEND;

static DAT_RETURN open_it(DAT_NAME_PTR name, DAT_EVD_HANDLE *async_evd, DAT_IA_HANDLE *ia) {
    return dat_ia_open(name, 8, async_evd, ia);
}

extern DAT_RETURN (*use_of_a_macro)(DAT_NAME_PTR name, DAT_EVD_HANDLE *async_evd, DAT_IA_HANDLE *ia);
DAT_RETURN (*use_of_a_macro)(DAT_NAME_PTR name, DAT_EVD_HANDLE *async_evd, DAT_IA_HANDLE *ia) = open_it;

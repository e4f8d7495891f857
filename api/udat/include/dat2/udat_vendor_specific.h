/*
 * udat_vendor_specific.h - reserved for vendors' additions to uDAPL; Viaduct has none
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef DAT2_UDAT_VENDOR_SPECIFIC_H
#define DAT2_UDAT_VENDOR_SPECIFIC_H 1

#include <dat2/dat_vendor_specific.h>

#endif

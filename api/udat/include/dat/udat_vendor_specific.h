/*
 * udat_vendor_specific.h - reserved for vendors' additions to uDAPL; Viaduct has none
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef DAT1_UDAT_VENDOR_SPECIFIC_H
#define DAT1_UDAT_VENDOR_SPECIFIC_H 1

#include <dat/dat_vendor_specific.h>

#endif

/*
 * dat_vendor_specific.h - reserved for vendors' additions to DAT; Viaduct has none
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef DAT1_DAT_VENDOR_SPECIFIC_H
#define DAT1_DAT_VENDOR_SPECIFIC_H 1

#endif

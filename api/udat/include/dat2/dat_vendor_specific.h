/*
 * dat_vendor_specific.h - reserved for vendors' additions to DAT; Viaduct has none
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef DAT2_DAT_VENDOR_SPECIFIC_H
#define DAT2_DAT_VENDOR_SPECIFIC_H 1

#endif

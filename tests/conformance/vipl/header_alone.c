/* SPDX-License-Identifier: BSD-3-Clause
 * <vipl.h> compiles alone, twice, and as C89, C11 and C++17.
 */
#include <vipl.h>

/* the second time it must add nothing */
#include <vipl.h>

extern VIP_RETURN (*use_of_the_header)(const VIP_CHAR *, VIP_NIC_HANDLE *);
VIP_RETURN (*use_of_the_header)(const VIP_CHAR *, VIP_NIC_HANDLE *) = VipOpenNic;

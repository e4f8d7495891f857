/* SPDX-License-Identifier: BSD-3-Clause
 * <vipl.h> compiles alone, twice, and as C89, C11 and C++17.
 */
#include <vipl.h>

/* the second time it must add nothing */
#include <vipl.h>

#ifdef VIP_KERNEL
#ifdef VIP_INFINITE
#error VIP_INFINITE is for programs and the library alone: guide, appendix A
#endif
#elif !defined(VIP_INFINITE)
#error VIP_INFINITE is missing
#endif

/* An initializer without names, as the guide's structures allow it. */
#ifdef VIPL095
extern VIP_DESCRIPTOR initialized;
VIP_DESCRIPTOR initialized = {{{0}, 0, 1, VIP_CONTROL_OP_SENDRECV, 0, 0, 64, 0}, {{{{0}, 0, 0}}}};
#endif

extern VIP_RETURN (*use_of_the_header)(const VIP_CHAR *, VIP_NIC_HANDLE *);
VIP_RETURN (*use_of_the_header)(const VIP_CHAR *, VIP_NIC_HANDLE *) = VipOpenNic;

/* SPDX-License-Identifier: BSD-3-Clause
 * Each header compiles alone, twice, and as C11 and C++17: -DHEADER='<dat2/NAME.h>'.
 */
#include HEADER

/* the second time it must add nothing */
#include HEADER

extern int the_header_compiles;

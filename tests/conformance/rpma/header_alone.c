/* SPDX-License-Identifier: BSD-3-Clause
 * <librpma.h> compiles alone, twice, and as C11 and C++17; the types of verbs come with it.
 */
#include <librpma.h>

/* the second time it must add nothing */
#include <librpma.h>

extern int (*use_of_the_header)(struct rpma_cq *, int, struct ibv_wc *, int *);
int (*use_of_the_header)(struct rpma_cq *, int, struct ibv_wc *, int *) = rpma_cq_get_wc;

/* SPDX-License-Identifier: BSD-3-Clause
 * Where descriptors and data lie in the memory of an endpoint.
 */
#ifndef ENDPOINT_LAYOUT_H
#define ENDPOINT_LAYOUT_H

#include "endpoint.h"

enum {
    SLOT_BYTES = (sizeof(Work) + VIP_DESCRIPTOR_ALIGNMENT - 1) / VIP_DESCRIPTOR_ALIGNMENT * VIP_DESCRIPTOR_ALIGNMENT
};

#define DATA_START ((size_t)1 << 19) /* behind two queues of SLOTS descriptors, on a page */
#define ARENA_BYTES (DATA_START + DATA_BYTES)

_Static_assert((size_t)2 * SLOTS * SLOT_BYTES <= DATA_START, "the descriptors lie before the data");

#endif

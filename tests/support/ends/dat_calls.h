/* SPDX-License-Identifier: BSD-3-Clause
 * Wrappers for DAT calls of which tests of all kinds use only a few arguments: of DAT 2.0, or of DAT 1.2 if
 * DAT_END_DAT1 is defined. The caller checks the results.
 */
#ifndef DAT_CALLS_H
#define DAT_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef DAT_END_DAT1
#include <dat/udat.h>
#define DAT_END_VA_TYPE
#else
#include <dat2/udat.h>
#define DAT_END_VA_TYPE DAT_VA_TYPE_VA,
#endif

/* Registers memory of this process. A region that does not cover it is an internal error. */
static inline DAT_RETURN register_virtual(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, void* memory, DAT_VLEN size,
                                          DAT_MEM_PRIV_FLAGS privileges, DAT_LMR_HANDLE* lmr, DAT_LMR_CONTEXT* context,
                                          DAT_RMR_CONTEXT* remote) {
    const DAT_REGION_DESCRIPTION region = {.for_va = memory};
    DAT_VLEN registered_length = 0;
    DAT_VADDR registered_address = 0;
    const DAT_RETURN result =
        dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, size, pz, privileges, DAT_END_VA_TYPE lmr, context, remote,
                       &registered_length, &registered_address);
    const bool covered =
        registered_address <= (uintptr_t)memory && registered_address + registered_length >= (uintptr_t)memory + size;
    return result == DAT_SUCCESS && !covered ? DAT_CLASS_ERROR | DAT_INTERNAL_ERROR : result;
}

/* Returns the attributes of an endpoint with these limits: the size of messages and RDMA, the number of requests and
 * of receives, the number of segments, and the number of RDMA reads in progress. */
static inline DAT_EP_ATTR attributes_for(DAT_VLEN bytes, DAT_COUNT dtos, DAT_COUNT segments, DAT_COUNT reads) {
    return (DAT_EP_ATTR){.service_type = DAT_SERVICE_TYPE_RC,
                         .max_message_size = bytes,
                         .max_rdma_size = bytes,
                         .qos = DAT_QOS_BEST_EFFORT,
                         .max_recv_dtos = dtos,
                         .max_request_dtos = dtos,
                         .max_recv_iov = segments,
                         .max_request_iov = segments,
                         .max_rdma_read_in = reads,
                         .max_rdma_read_out = reads,
                         .srq_soft_hw = DAT_HW_DEFAULT,
                         .max_rdma_read_iov = 1,
                         .max_rdma_write_iov = segments};
}

static inline DAT_RETURN await_event(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout_us, DAT_EVENT* event) {
    DAT_COUNT more = 0;
    return dat_evd_wait(evd, timeout_us, 1, event, &more);
}

#endif

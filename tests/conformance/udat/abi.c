/* SPDX-License-Identifier: BSD-3-Clause
 * Sizes, offsets and values of <dat2/udat.h> and its companions on an LP64 system. All is checked by the compiler; that
 * this program exists is the test. abi_test.py compares whole headers with those of stock libdapl where it is
 * installed.
 */
#include <netinet/in.h> /* the stock extension header takes it for granted */

#include "conformance.h"

#include <dat2/dat_ib_extensions.h>
#include <dat2/dat_registry.h>

#define SAME(left, right) _Static_assert((left) == (right), #left " is " #right)
#define AT(type, member, offset) SAME(offsetof(type, member), offset)

/* Results */
SAME(DAT_GET_TYPE(DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP), DAT_INVALID_HANDLE);
SAME(DAT_GET_SUBTYPE(DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP), DAT_INVALID_HANDLE_EP);
SAME(DAT_ABORT, 0x00010000);
SAME(DAT_INVALID_PARAMETER, 0x00060000);
SAME(DAT_COMM_NOT_SUPPORTED, 0x00170000);
SAME(DAT_NOT_IMPLEMENTED, 0x3FFF0000);
SAME(DAT_INVALID_HANDLE_IA, 11);
SAME(DAT_INVALID_ARG1, 37);
SAME(DAT_INVALID_STATE_EP_UNCONNECTED, 47);
SAME(DAT_PRIVILEGES_READ, 89);
SAME(DAT_THREAD_SAFETY_NOT_FOUND, 103);

/* Types that others are made of */
SAME(sizeof(DAT_RETURN), 4);
SAME(sizeof(DAT_CONTEXT), 8);
SAME(sizeof(DAT_LMR_TRIPLET), 16);
AT(DAT_LMR_TRIPLET, segment_length, 8);
AT(DAT_LMR_TRIPLET, lmr_context, 12);
SAME(sizeof(DAT_RMR_TRIPLET), 16);
AT(DAT_RMR_TRIPLET, segment_length, 8);
AT(DAT_RMR_TRIPLET, rmr_context, 12);
SAME(sizeof(DAT_NAMED_ATTR), 16);

/* Attributes and parameters */
SAME(sizeof(DAT_PROVIDER_INFO), 268);
AT(DAT_PROVIDER_INFO, dapl_version_major, 256);
AT(DAT_PROVIDER_INFO, is_thread_safe, 264);
SAME(sizeof(DAT_IA_ATTR), 688);
AT(DAT_IA_ATTR, ia_address_ptr, 528);
AT(DAT_IA_ATTR, max_lmr_virtual_address, 576);
AT(DAT_IA_ATTR, extension_supported, 648);
AT(DAT_IA_ATTR, vendor_attr, 680);
SAME(sizeof(DAT_PROVIDER_ATTR), 520);
AT(DAT_PROVIDER_ATTR, max_private_data_size, 292);
AT(DAT_PROVIDER_ATTR, evd_stream_merging_supported, 312);
AT(DAT_PROVIDER_ATTR, provider_specific_attr, 512);
SAME(sizeof(DAT_EP_ATTR), 88);
AT(DAT_EP_ATTR, max_recv_dtos, 24);
AT(DAT_EP_ATTR, ep_transport_specific, 64);
SAME(sizeof(DAT_EP_PARAM), 184);
AT(DAT_EP_PARAM, remote_port_qual, 48);
AT(DAT_EP_PARAM, ep_attr, 96);
SAME(sizeof(DAT_CR_PARAM), 40);
SAME(sizeof(DAT_PSP_PARAM), 32);
SAME(sizeof(DAT_RSP_PARAM), 32);
SAME(sizeof(DAT_CSP_PARAM), 32);
SAME(sizeof(DAT_PZ_PARAM), 8);
SAME(sizeof(DAT_LMR_PARAM), 80);
SAME(sizeof(DAT_RMR_PARAM), 48);
SAME(sizeof(DAT_SRQ_ATTR), 12);
SAME(sizeof(DAT_SRQ_PARAM), 48);
SAME(sizeof(DAT_EVD_PARAM), 32);
SAME(sizeof(DAT_CNO_PARAM), 32);
SAME(sizeof(DAT_REGION_DESCRIPTION), 16);
SAME(DAT_HANDLE_TYPE_CSP, 11);
SAME(DAT_EP_STATE_CONNECTED, 9);
SAME(DAT_IA_FIELD_ALL, 0x3FFFFFFFFF);
SAME(DAT_EP_FIELD_ALL, 0x7FFFFFFF);
SAME(DAT_PROVIDER_FIELD_ALL, 0x7FFFFFFF);

/* Events */
SAME(sizeof(DAT_DTO_COMPLETION_EVENT_DATA), 32);
AT(DAT_DTO_COMPLETION_EVENT_DATA, user_cookie, 8);
AT(DAT_DTO_COMPLETION_EVENT_DATA, status, 16);
AT(DAT_DTO_COMPLETION_EVENT_DATA, transfered_length, 20);
AT(DAT_DTO_COMPLETION_EVENT_DATA, operation, 24);
AT(DAT_DTO_COMPLETION_EVENT_DATA, rmr_context, 28);
SAME(sizeof(DAT_RMR_BIND_COMPLETION_EVENT_DATA), 24);
SAME(sizeof(DAT_CR_ARRIVAL_EVENT_DATA), 40);
AT(DAT_CR_ARRIVAL_EVENT_DATA, cr_handle, 24);
SAME(sizeof(DAT_CONNECTION_EVENT_DATA), 24);
AT(DAT_CONNECTION_EVENT_DATA, private_data, 16);
SAME(sizeof(DAT_ASYNCH_ERROR_EVENT_DATA), 16);
SAME(sizeof(DAT_EVENT), 120);
AT(DAT_EVENT, evd_handle, 8);
AT(DAT_EVENT, event_data, 16);
AT(DAT_EVENT, event_extension_data, 56);
SAME(sizeof(DAT_IB_EXTENSION_EVENT_DATA), 64);
AT(DAT_IB_EXTENSION_EVENT_DATA, val, 8);
AT(DAT_IB_EXTENSION_EVENT_DATA, context, 56);
SAME(DAT_CONNECTION_EVENT_ESTABLISHED, 0x4001);
SAME(DAT_CONNECTION_EVENT_UNREACHABLE, 0x4008);
SAME(DAT_IB_DTO_EVENT, 0x40000);
SAME(DAT_DTO_BIND_MW, 5);
SAME(DAT_IB_DTO_RDMA_WRITE_IMMED, 8);
SAME(DAT_DTO_ERR_LOCAL_MM_ERROR, 12);

/* The table of a provider: functions are only ever added at the end */
SAME(sizeof(DAT_PROVIDER), 648);
AT(DAT_PROVIDER, ia_open_func, 16);
AT(DAT_PROVIDER, cno_create_func, 64);
AT(DAT_PROVIDER, cr_query_func, 104);
AT(DAT_PROVIDER, evd_create_func, 136);
AT(DAT_PROVIDER, ep_create_func, 216);
AT(DAT_PROVIDER, lmr_create_func, 312);
AT(DAT_PROVIDER, rmr_create_func, 336);
AT(DAT_PROVIDER, psp_create_func, 368);
AT(DAT_PROVIDER, rsp_create_func, 392);
AT(DAT_PROVIDER, pz_create_func, 416);
AT(DAT_PROVIDER, lmr_sync_rdma_read_func, 472);
AT(DAT_PROVIDER, srq_create_func, 512);
AT(DAT_PROVIDER, csp_create_func, 560);
AT(DAT_PROVIDER, handle_extendedop_func, 640);

TEST(sizes_offsets_and_values) { CHECK(DAT_HANDLE_NULL == NULL); }

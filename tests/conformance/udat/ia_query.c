/* SPDX-License-Identifier: BSD-3-Clause
 * dat_ia_query: every attribute of the IA and of its provider, asked for alone and together.
 */
#include "side.h"

static DAT_IA_ATTR ia_attributes(DAT_IA_HANDLE ia, DAT_IA_ATTR_MASK mask) {
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    DAT_IA_ATTR attributes;
    memset(&attributes, 0xa5, sizeof attributes);
    CHECK_OK(dat_ia_query(ia, &evd, mask, &attributes, 0, NULL));
    return attributes;
}

/* The matrix of streams is const in the structure, which can be filled by the provider only. */
static void ask_provider(DAT_IA_HANDLE ia, DAT_PROVIDER_ATTR_MASK mask, DAT_PROVIDER_ATTR *attributes) {
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    memset((void *)attributes, 0xa5, sizeof *attributes);
    CHECK_OK(dat_ia_query(ia, &evd, 0, NULL, mask, attributes));
}

static void check_named(const DAT_NAMED_ATTR *attributes, DAT_COUNT count) {
    CHECK(count >= 0);
    for (DAT_COUNT i = 0; i < count; ++i) {
        CHECK(attributes[i].name != NULL && attributes[i].name[0] != '\0');
        CHECK(attributes[i].value != NULL);
    }
}

TEST(ia_query__all_attributes_of_the_ia) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_IA_ATTR attributes = ia_attributes(ia, DAT_IA_FIELD_ALL);
    CHECK(memchr(attributes.adapter_name, 0, DAT_NAME_MAX_LENGTH) != NULL);
    CHECK(memchr(attributes.vendor_name, 0, DAT_NAME_MAX_LENGTH) != NULL);
    CHECK(attributes.ia_address_ptr != NULL);
    CHECK(attributes.ia_address_ptr->sa_family == AF_INET || attributes.ia_address_ptr->sa_family == AF_INET6);
    CHECK(attributes.max_eps > 0 && attributes.max_dto_per_ep > 0);
    CHECK(attributes.max_rdma_read_per_ep_in > 0 && attributes.max_rdma_read_per_ep_out > 0);
    CHECK(attributes.max_evds > 0 && attributes.max_evd_qlen > 0);
    CHECK(attributes.max_iov_segments_per_dto > 0);
    CHECK(attributes.max_lmrs > 0 && attributes.max_lmr_block_size > 0 && attributes.max_lmr_virtual_address > 0);
    CHECK(attributes.max_pzs > 0);
    CHECK(attributes.max_message_size > 0 && attributes.max_rdma_size > 0);
    CHECK(attributes.max_rmrs >= 0);
    CHECK(attributes.max_iov_segments_per_rdma_read > 0 && attributes.max_iov_segments_per_rdma_write > 0);
    CHECK(attributes.max_rdma_read_in >= attributes.max_rdma_read_per_ep_in);
    CHECK(attributes.max_rdma_read_out >= attributes.max_rdma_read_per_ep_out);
    check_named(attributes.transport_attr, attributes.num_transport_attr);
    check_named(attributes.vendor_attr, attributes.num_vendor_attr);
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST(ia_query__the_adapter_bears_its_name) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    CHECK(strcmp(ia_attributes(ia, DAT_IA_FIELD_IA_ADAPTER_NAME).adapter_name, test_ia()) == 0);
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

#define SAME(field) CHECK(memcmp(&one.field, &all.field, sizeof all.field) == 0)
#define SAME_TEXT(field) CHECK(strcmp(one.field, all.field) == 0)

/* One bit at a time: the attribute asked for is the one that a query of all gives. */
TEST(ia_query__each_attribute_of_the_ia_alone) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_IA_ATTR one, all = ia_attributes(ia, DAT_IA_FIELD_ALL);
#define ALONE(bit, field) (one = ia_attributes(ia, DAT_IA_FIELD_IA_##bit), SAME(field))
    one = ia_attributes(ia, DAT_IA_FIELD_IA_ADAPTER_NAME);
    SAME_TEXT(adapter_name);
    one = ia_attributes(ia, DAT_IA_FIELD_IA_VENDOR_NAME);
    SAME_TEXT(vendor_name);
    ALONE(HARDWARE_MAJOR_VERSION, hardware_version_major);
    ALONE(HARDWARE_MINOR_VERSION, hardware_version_minor);
    ALONE(FIRMWARE_MAJOR_VERSION, firmware_version_major);
    ALONE(FIRMWARE_MINOR_VERSION, firmware_version_minor);
    one = ia_attributes(ia, DAT_IA_FIELD_IA_ADDRESS_PTR);
    CHECK_EQ(one.ia_address_ptr->sa_family, all.ia_address_ptr->sa_family);
    ALONE(MAX_EPS, max_eps);
    ALONE(MAX_DTO_PER_EP, max_dto_per_ep);
    ALONE(MAX_RDMA_READ_PER_EP_IN, max_rdma_read_per_ep_in);
    ALONE(MAX_RDMA_READ_PER_EP_OUT, max_rdma_read_per_ep_out);
    ALONE(MAX_EVDS, max_evds);
    ALONE(MAX_EVD_QLEN, max_evd_qlen);
    ALONE(MAX_IOV_SEGMENTS_PER_DTO, max_iov_segments_per_dto);
    ALONE(MAX_LMRS, max_lmrs);
    ALONE(MAX_LMR_BLOCK_SIZE, max_lmr_block_size);
    ALONE(MAX_LMR_VIRTUAL_ADDRESS, max_lmr_virtual_address);
    ALONE(MAX_PZS, max_pzs);
    ALONE(MAX_MESSAGE_SIZE, max_message_size);
    ALONE(MAX_RDMA_SIZE, max_rdma_size);
    ALONE(MAX_RMRS, max_rmrs);
    ALONE(MAX_RMR_TARGET_ADDRESS, max_rmr_target_address);
    ALONE(MAX_SRQS, max_srqs);
    ALONE(MAX_EP_PER_SRQ, max_ep_per_srq);
    ALONE(MAX_RECV_PER_SRQ, max_recv_per_srq);
    ALONE(MAX_IOV_SEGMENTS_PER_RDMA_READ, max_iov_segments_per_rdma_read);
    ALONE(MAX_IOV_SEGMENTS_PER_RDMA_WRITE, max_iov_segments_per_rdma_write);
    ALONE(MAX_RDMA_READ_IN, max_rdma_read_in);
    ALONE(MAX_RDMA_READ_OUT, max_rdma_read_out);
    ALONE(MAX_RDMA_READ_PER_EP_IN_GUARANTEED, max_rdma_read_per_ep_in_guaranteed);
    ALONE(MAX_RDMA_READ_PER_EP_OUT_GUARANTEED, max_rdma_read_per_ep_out_guaranteed);
    ALONE(ZB_SUPPORTED, zb_supported);
    ALONE(EXTENSION, extension_supported);
    ALONE(EXTENSION_VERSION, extension_version);
    ALONE(NUM_TRANSPORT_ATTR, num_transport_attr);
    ALONE(NUM_VENDOR_ATTR, num_vendor_attr);
#undef ALONE
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST(ia_query__all_attributes_of_the_provider) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_PROVIDER_ATTR attributes;
    ask_provider(ia, DAT_PROVIDER_FIELD_ALL, &attributes);
    CHECK(memchr(attributes.provider_name, 0, DAT_NAME_MAX_LENGTH) != NULL);
    CHECK_EQ(attributes.dapl_version_major, 2);
    CHECK(attributes.iov_ownership_on_return <= DAT_IOV_PROVIDER_MOD);
    CHECK(attributes.completion_flags_supported & DAT_COMPLETION_SUPPRESS_FLAG);
    CHECK(attributes.completion_flags_supported & DAT_COMPLETION_UNSIGNALLED_FLAG);
    CHECK(attributes.completion_flags_supported & DAT_COMPLETION_SOLICITED_WAIT_FLAG);
    CHECK(attributes.completion_flags_supported & DAT_COMPLETION_BARRIER_FENCE_FLAG);
    CHECK(attributes.is_thread_safe == DAT_TRUE || attributes.is_thread_safe == DAT_FALSE);
    CHECK(attributes.ep_creator <= DAT_PSP_CREATES_EP_ALWAYS);
    CHECK(attributes.pz_support <= DAT_PZ_SHAREABLE);
    CHECK(attributes.optimal_buffer_alignment > 0);
    CHECK_EQ(DAT_OPTIMAL_ALIGNMENT % attributes.optimal_buffer_alignment, 0);
    for (int i = 0; i < 6; ++i) {
        CHECK(attributes.evd_stream_merging_supported[i][i] == DAT_TRUE);
        for (int j = 0; j < 6; ++j)
            CHECK_EQ(attributes.evd_stream_merging_supported[i][j], attributes.evd_stream_merging_supported[j][i]);
    }
    CHECK(attributes.rmr_scope_supported <= DAT_RMR_SCOPE_ANY);
    check_named(attributes.provider_specific_attr, attributes.num_provider_specific_attr);
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

/* At least 64 bytes; the connection manager of RDMA devices leaves 56 of a request. */
TEST(ia_query__private_data) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_PROVIDER_ATTR attributes;
    ask_provider(ia, DAT_PROVIDER_FIELD_MAX_PRIVATE_DATA_SIZE, &attributes);
    CHECK(attributes.max_private_data_size >= (on_loopback() ? 64 : 56));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST(ia_query__all_memory_types) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_PROVIDER_ATTR attributes;
    ask_provider(ia, DAT_PROVIDER_FIELD_LMR_MEM_TYPE_SUPPORTED, &attributes);
    CHECK_EQ(attributes.lmr_mem_types_supported,
             (unsigned)DAT_MEM_TYPE_VIRTUAL | (unsigned)DAT_MEM_TYPE_LMR | (unsigned)DAT_MEM_TYPE_SHARED_VIRTUAL);
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST(ia_query__all_streams_can_be_merged) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_PROVIDER_ATTR attributes;
    ask_provider(ia, DAT_PROVIDER_FIELD_EVD_STREAM_MERGING_SUPPORTED, &attributes);
    for (int i = 0; i < 6; ++i) {
        for (int j = 0; j < 6; ++j) CHECK_EQ(attributes.evd_stream_merging_supported[i][j], DAT_TRUE);
    }
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST(ia_query__each_attribute_of_the_provider_alone) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_PROVIDER_ATTR one, all;
    ask_provider(ia, DAT_PROVIDER_FIELD_ALL, &all);
#define ALONE(bit, field) (ask_provider(ia, DAT_PROVIDER_FIELD_##bit, &one), SAME(field))
    ask_provider(ia, DAT_PROVIDER_FIELD_PROVIDER_NAME, &one);
    SAME_TEXT(provider_name);
    ALONE(PROVIDER_VERSION_MAJOR, provider_version_major);
    ALONE(PROVIDER_VERSION_MINOR, provider_version_minor);
    ALONE(DAPL_VERSION_MAJOR, dapl_version_major);
    ALONE(DAPL_VERSION_MINOR, dapl_version_minor);
    ALONE(LMR_MEM_TYPE_SUPPORTED, lmr_mem_types_supported);
    ALONE(IOV_OWNERSHIP, iov_ownership_on_return);
    ALONE(DAT_QOS_SUPPORTED, dat_qos_supported);
    ALONE(COMPLETION_FLAGS_SUPPORTED, completion_flags_supported);
    ALONE(IS_THREAD_SAFE, is_thread_safe);
    ALONE(MAX_PRIVATE_DATA_SIZE, max_private_data_size);
    ALONE(SUPPORTS_MULTIPATH, supports_multipath);
    ALONE(EP_CREATOR, ep_creator);
    ALONE(PZ_SUPPORT, pz_support);
    ALONE(OPTIMAL_BUFFER_ALIGNMENT, optimal_buffer_alignment);
    ALONE(EVD_STREAM_MERGING_SUPPORTED, evd_stream_merging_supported);
    ALONE(SRQ_SUPPORTED, srq_supported);
    ALONE(SRQ_WATERMARKS_SUPPORTED, srq_watermarks_supported);
    ALONE(SRQ_EP_PZ_DIFFERENCE_SUPPORTED, srq_ep_pz_difference_supported);
    ALONE(SRQ_INFO_SUPPORTED, srq_info_supported);
    ALONE(EP_RECV_INFO_SUPPORTED, ep_recv_info_supported);
    ALONE(LMR_SYNC_REQ, lmr_sync_req);
    ALONE(DTO_ASYNC_RETURN_GUARANTEED, dto_async_return_guaranteed);
    ALONE(RDMA_WRITE_FOR_RDMA_READ_REQ, rdma_write_for_rdma_read_req);
    ALONE(RDMA_READ_LMR_RMR_CONTEXT_EXPOSURE, rdma_read_lmr_rmr_context_exposure);
    ALONE(RMR_SCOPE_SUPPORTED, rmr_scope_supported);
    ALONE(IS_SIGNAL_SAFE, is_signal_safe);
    ALONE(HA_SUPPORTED, ha_supported);
    ALONE(HA_LB, ha_loadbalancing);
    ALONE(NUM_PROVIDER_SPECIFIC_ATTR, num_provider_specific_attr);
#undef ALONE
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST(ia_query__nothing_asked_for) {
    DAT_EVD_HANDLE evd, asked = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia = open_ia(&evd);
    CHECK_OK(dat_ia_query(ia, &asked, 0, NULL, 0, NULL));
    CHECK(asked == evd);
    CHECK_OK(dat_ia_query(ia, NULL, 0, NULL, 0, NULL));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST(ia_query__unknown_attributes) {
    DAT_EVD_HANDLE evd;
    DAT_IA_ATTR attributes;
    DAT_PROVIDER_ATTR provider_attributes;
    DAT_IA_HANDLE ia = open_ia(NULL);
    CHECK_SUB(dat_ia_query(ia, &evd, DAT_IA_FIELD_ALL + 1, &attributes, 0, NULL), DAT_INVALID_PARAMETER,
              DAT_INVALID_ARG3);
    CHECK_SUB(dat_ia_query(ia, &evd, 0, NULL, DAT_PROVIDER_FIELD_ALL + 1, &provider_attributes), DAT_INVALID_PARAMETER,
              DAT_INVALID_ARG5);
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST(ia_query__no_place_for_attributes) {
    DAT_EVD_HANDLE evd;
    DAT_IA_HANDLE ia = open_ia(NULL);
    CHECK_SUB(dat_ia_query(ia, &evd, DAT_IA_FIELD_ALL, NULL, 0, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
    CHECK_SUB(dat_ia_query(ia, &evd, 0, NULL, DAT_PROVIDER_FIELD_ALL, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

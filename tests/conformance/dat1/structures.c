/* SPDX-License-Identifier: BSD-3-Clause
 * Attributes and parameters: each member of 1.2 is passed to and from the provider's member of the same name, masks
 * have the bits of 2.0, and members that exist only in 1.2 or have another meaning are translated.
 */
#include "scene.h"

#define WELL(member) \
    if (!HAS(found, member)) fail(__FILE__, __LINE__, "%s is not what it was", #member);
#define GIVE(member) PUT(given, member)

/* clang-format off */
#define IA_ATTR(_) \
    _(adapter_name) _(vendor_name) _(hardware_version_major) _(hardware_version_minor) _(firmware_version_major) \
    _(firmware_version_minor) _(ia_address_ptr) _(max_eps) _(max_dto_per_ep) _(max_rdma_read_per_ep_in) \
    _(max_rdma_read_per_ep_out) _(max_evds) _(max_evd_qlen) _(max_iov_segments_per_dto) _(max_lmrs) \
    _(max_lmr_block_size) _(max_lmr_virtual_address) _(max_pzs) _(max_message_size) _(max_rdma_size) _(max_rmrs) \
    _(max_rmr_target_address) _(max_srqs) _(max_ep_per_srq) _(max_recv_per_srq) \
    _(max_iov_segments_per_rdma_read) _(max_iov_segments_per_rdma_write) _(max_rdma_read_in) \
    _(max_rdma_read_out) _(max_rdma_read_per_ep_in_guaranteed) _(max_rdma_read_per_ep_out_guaranteed) \
    _(num_transport_attr) _(transport_attr) _(num_vendor_attr) _(vendor_attr)
#define PROVIDER_ATTR(_) \
    _(provider_name) _(provider_version_major) _(provider_version_minor) _(lmr_mem_types_supported) \
    _(iov_ownership_on_return) _(dat_qos_supported) _(completion_flags_supported) _(max_private_data_size) \
    _(supports_multipath) _(ep_creator) _(optimal_buffer_alignment) _(evd_stream_merging_supported) \
    _(srq_supported) _(srq_watermarks_supported) _(srq_ep_pz_difference_supported) _(srq_info_supported) \
    _(ep_recv_info_supported) _(lmr_sync_req) _(dto_async_return_guaranteed) _(rdma_write_for_rdma_read_req) \
    _(num_provider_specific_attr) _(provider_specific_attr)
#define EP_ATTR(_) \
    _(service_type) _(max_message_size) _(max_rdma_size) _(qos) _(recv_completion_flags) \
    _(request_completion_flags) _(max_recv_dtos) _(max_request_dtos) _(max_recv_iov) _(max_request_iov) \
    _(max_rdma_read_in) _(max_rdma_read_out) _(srq_soft_hw) _(max_rdma_read_iov) _(max_rdma_write_iov) \
    _(ep_transport_specific_count) _(ep_transport_specific) _(ep_provider_specific_count) \
    _(ep_provider_specific)
#define EP_PARAM(_) \
    _(ia_handle) _(local_ia_address_ptr) _(local_port_qual) _(remote_ia_address_ptr) _(remote_port_qual) \
    _(pz_handle) _(recv_evd_handle) _(request_evd_handle) _(connect_evd_handle) _(srq_handle)
#define LMR_PARAM(_) \
    _(mem_type) _(region_desc.for_va) _(length) _(pz_handle) _(mem_priv) _(lmr_context) _(rmr_context) \
    _(registered_size) _(registered_address)
#define RMR_PARAM(_) \
    _(pz_handle) _(lmr_triplet.virtual_address) _(lmr_triplet.segment_length) _(lmr_triplet.lmr_context) \
    _(mem_priv) _(rmr_context)
#define SRQ_PARAM(_) \
    _(ia_handle) _(pz_handle) _(max_recv_dtos) _(max_recv_iov) _(low_watermark) _(available_dto_count) \
    _(outstanding_dto_count)
/* clang-format on */

/* Values that have different numbers in 2.0 */
enum {
    IN_2_PZ_SHAREABLE = 1,
    IN_2_CONNECTED_SINGLE_PATH = 13,
    IN_2_CONNECTED_MULTI_PATH = 14,
    IN_2_SRQ_ERROR = 0,
    IN_2_SRQ_OPERATIONAL = 1,
    IN_2_PROXY_NONE = 0,
    IN_2_PROXY_AGENT = 1
};

#define IN_2_IA_FIELD_VENDOR_ATTR 0x2000000000UL
#define IN_2_PROVIDER_FIELD_SPECIFIC 0x40000000UL

TEST(ia_query) {
    DAT_IA_HANDLE ia = open_fake();
    DAT_EVD_HANDLE evd;
    DAT_IA_ATTR found;
    ANSWER(DAT_SUCCESS, DAT_NO_SUBTYPE);
    CHECK_OK(dat_ia_query(ia, &evd, DAT_IA_FIELD_ALL, &found, 0, NULL));
    IA_ATTR(WELL)
    CHECK_EQ(fake()->arguments[1], WORD(&evd));
    CHECK_EQ(fake()->arguments[2], 0x3C7FFFFFFFUL); /* all except the three new ones of 2.0 */
    CHECK_OK(dat_ia_query(ia, &evd, DAT_IA_FIELD_IA_VENDOR_ATTR, &found, 0, NULL));
    CHECK_EQ(fake()->arguments[2], IN_2_IA_FIELD_VENDOR_ATTR);
    CHECK_OK(dat_ia_query(ia, &evd, DAT_IA_FIELD_NONE, NULL, DAT_PROVIDER_FIELD_NONE, NULL));
    FAILS(ia_query, dat_ia_query(ia, &evd, DAT_IA_FIELD_ALL, &found, 0, NULL));
    CHECK_SUB(dat_ia_query(ia, &evd, DAT_IA_FIELD_ALL + 1, &found, 0, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
}

TEST(ia_query_of_the_provider) {
    DAT_IA_HANDLE ia = open_fake();
    DAT_EVD_HANDLE evd;
    DAT_PROVIDER_ATTR found;
    ANSWER(DAT_SUCCESS, DAT_NO_SUBTYPE);
    fake()->state = IN_2_PZ_SHAREABLE;
    CHECK_OK(dat_ia_query(ia, &evd, 0, NULL, DAT_PROVIDER_FIELD_ALL, &found));
    PROVIDER_ATTR(WELL)
    CHECK_EQ(found.dapl_version_major, 1);
    CHECK_EQ(found.dapl_version_minor, 2);
    CHECK_EQ(found.pz_support, DAT_PZ_SHAREABLE);
    CHECK_EQ(fake()->arguments[4], 0x60FFFFFFUL); /* all except the five new ones of 2.0 */
    CHECK_OK(dat_ia_query(ia, &evd, 0, NULL, DAT_PROVIDER_FIELD_PROVIDER_SPECIFIC_ATTR, &found));
    CHECK_EQ(fake()->arguments[4], IN_2_PROVIDER_FIELD_SPECIFIC);
    CHECK_SUB(dat_ia_query(ia, &evd, 0, NULL, DAT_PROVIDER_FIELD_ALL + 1, &found), DAT_INVALID_PARAMETER,
              DAT_INVALID_ARG5);
}

/* ---- Endpoints --------------------------------------------------------------------------------------------------- */

static DAT_EP_ATTR some_attributes(void) {
    DAT_EP_ATTR given;
    memset(&given, 0, sizeof given);
    EP_ATTR(GIVE)
    return given;
}

TEST(ep_create) {
    DAT_IA_HANDLE ia = open_fake();
    DAT_EP_HANDLE ep;
    DAT_EP_ATTR attributes = some_attributes();
    PASSES(ep_create, dat_ep_create(ia, OBJECT, &attributes, &ep, ia, &attributes, &ep), WORD(OBJECT), WORD(OBJECT),
           WORD(&attributes), WORD(&ep), WORD(ia));
    PASSES(ep_create, dat_ep_create(ia, OBJECT, NULL, NULL, NULL, NULL, &ep), WORD(OBJECT), WORD(OBJECT), 0, 0, 0, 0,
           WORD(&ep));
    attributes.max_message_size = 1ULL << 32; /* more than 2.0 can represent */
    CHECK_SUB(dat_ep_create(ia, OBJECT, NULL, NULL, NULL, &attributes, &ep), DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
    attributes = some_attributes();
    attributes.max_rdma_size = 1ULL << 32;
    CHECK_SUB(dat_ep_create(ia, OBJECT, NULL, NULL, NULL, &attributes, &ep), DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
}

TEST(ep_create_with_srq) {
    DAT_IA_HANDLE ia = open_fake();
    DAT_EP_HANDLE ep;
    DAT_EP_ATTR attributes = some_attributes();
    PASSES(ep_create_with_srq, dat_ep_create_with_srq(ia, OBJECT, &attributes, &ep, ia, OBJECT, &attributes, &ep),
           WORD(OBJECT), WORD(OBJECT), WORD(&attributes), WORD(&ep), WORD(ia), WORD(OBJECT));
    attributes.max_rdma_size = 1ULL << 32;
    CHECK_SUB(dat_ep_create_with_srq(ia, OBJECT, NULL, NULL, NULL, OBJECT, &attributes, &ep), DAT_INVALID_PARAMETER,
              DAT_INVALID_ARG7);
}

TEST(ep_query) {
    open_fake();
    DAT_EP_PARAM param;
    ANSWER(DAT_SUCCESS, DAT_NO_SUBTYPE);
    fake()->state = IN_2_CONNECTED_MULTI_PATH;
    CHECK_OK(dat_ep_query(OBJECT, DAT_EP_FIELD_ALL, &param));
    {
        DAT_EP_PARAM found = param;
        EP_PARAM(WELL)
    }
    {
        DAT_EP_ATTR found = param.ep_attr;
        EP_ATTR(WELL)
    }
    CHECK_EQ(param.ep_state, DAT_EP_STATE_CONNECTED);
    CHECK_EQ(fake()->arguments[1], 0x7FFFFFFB); /* all except the communicator */
    FAILS(ep_query, dat_ep_query(OBJECT, DAT_EP_FIELD_ALL, &param));
    CHECK_SUB(dat_ep_query(OBJECT, DAT_EP_FIELD_SRQ_HANDLE << 1, &param), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_SUB(dat_ep_query(OBJECT, DAT_EP_FIELD_ALL, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
}

TEST(ep_modify) {
    open_fake();
    DAT_EP_PARAM given;
    memset(&given, 0, sizeof given);
    EP_PARAM(GIVE)
    given.ep_attr = some_attributes();
    PASSES(ep_modify, dat_ep_modify(OBJECT, DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_EP_ATTR_QOS, &given), WORD(OBJECT),
           0x8080);
    PASSES(ep_modify, dat_ep_modify(OBJECT, DAT_EP_FIELD_SRQ_HANDLE, &given), WORD(OBJECT), 0x800);
    given.ep_attr.max_rdma_size = 1ULL << 32;
    CHECK_SUB(dat_ep_modify(OBJECT, DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE, &given), DAT_INVALID_PARAMETER,
              DAT_INVALID_ARG3);
    CHECK_SUB(dat_ep_modify(OBJECT, 0x80000000, &given), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_SUB(dat_ep_modify(OBJECT, DAT_EP_FIELD_PZ_HANDLE, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
}

TEST(ep_get_status) {
    open_fake();
    DAT_BOOLEAN recv_idle, request_idle;
    DAT_EP_STATE state;
    ANSWER(DAT_SUCCESS, DAT_NO_SUBTYPE);
    for (int32_t in_2 = 0; in_2 <= IN_2_CONNECTED_MULTI_PATH; ++in_2) {
        fake()->state = in_2;
        CHECK_OK(dat_ep_get_status(OBJECT, &state, &recv_idle, &request_idle));
        CHECK_EQ(state, in_2 >= IN_2_CONNECTED_SINGLE_PATH ? DAT_EP_STATE_CONNECTED : (DAT_EP_STATE)in_2);
    }
    CHECK_EQ(fake()->arguments[2], WORD(&recv_idle));
    CHECK_EQ(fake()->arguments[3], WORD(&request_idle));
    CHECK_OK(dat_ep_get_status(OBJECT, NULL, &recv_idle, &request_idle));
    FAILS(ep_get_status, dat_ep_get_status(OBJECT, &state, &recv_idle, &request_idle));
}

TEST(srq_query) {
    open_fake();
    DAT_SRQ_PARAM found;
    ANSWER(DAT_SUCCESS, DAT_NO_SUBTYPE);
    fake()->state = IN_2_SRQ_OPERATIONAL;
    CHECK_OK(dat_srq_query(OBJECT, DAT_SRQ_FIELD_ALL, &found));
    SRQ_PARAM(WELL)
    CHECK_EQ(found.srq_state, DAT_SRQ_STATE_OPERATIONAL);
    fake()->state = IN_2_SRQ_ERROR;
    CHECK_OK(dat_srq_query(OBJECT, DAT_SRQ_FIELD_ALL, &found));
    CHECK_EQ(found.srq_state, DAT_SRQ_STATE_ERROR);
    FAILS(srq_query, dat_srq_query(OBJECT, DAT_SRQ_FIELD_ALL, &found));
    CHECK_SUB(dat_srq_query(OBJECT, DAT_SRQ_FIELD_ALL, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
}

/* ---- Memory and notification ------------------------------------------------------------------------------------- */

TEST(lmr_query) {
    DAT_IA_HANDLE ia = open_fake();
    DAT_LMR_PARAM found;
    ANSWER(DAT_SUCCESS, DAT_NO_SUBTYPE);
    CHECK_OK(dat_lmr_query(OBJECT, DAT_LMR_FIELD_ALL, &found));
    LMR_PARAM(WELL)
    CHECK(found.ia_handle == ia);
    CHECK_EQ((uint32_t)fake()->arguments[1], 0x7BF); /* all except the address type */
    CHECK_OK(dat_lmr_query(OBJECT, DAT_LMR_FIELD_LMR_CONTEXT, &found));
    CHECK_EQ((uint32_t)fake()->arguments[1], 0x80);
    FAILS(lmr_query, dat_lmr_query(OBJECT, DAT_LMR_FIELD_ALL, &found));
    CHECK_SUB(dat_lmr_query(OBJECT, 0x400, &found), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_SUB(dat_lmr_query(OBJECT, DAT_LMR_FIELD_ALL, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
}

TEST(rmr_query) {
    DAT_IA_HANDLE ia = open_fake();
    DAT_RMR_PARAM found;
    ANSWER(DAT_SUCCESS, DAT_NO_SUBTYPE);
    CHECK_OK(dat_rmr_query(OBJECT, DAT_RMR_FIELD_ALL, &found));
    RMR_PARAM(WELL)
    CHECK(found.ia_handle == ia);
    CHECK_EQ((uint32_t)fake()->arguments[1], 0x1F);
    FAILS(rmr_query, dat_rmr_query(OBJECT, DAT_RMR_FIELD_ALL, &found));
    CHECK_SUB(dat_rmr_query(OBJECT, 0x20, &found), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_SUB(dat_rmr_query(OBJECT, DAT_RMR_FIELD_ALL, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
}

TEST(cno_query) {
    open_fake();
    DAT_CNO_PARAM found;
    ANSWER(DAT_SUCCESS, DAT_NO_SUBTYPE);
    fake()->state = IN_2_PROXY_AGENT;
    CHECK_OK(dat_cno_query(OBJECT, DAT_CNO_FIELD_ALL, &found));
    WELL(ia_handle)
    WELL(agent.instance_data)
    WELL(agent.proxy_agent_func)
    fake()->state = IN_2_PROXY_NONE;
    CHECK_OK(dat_cno_query(OBJECT, DAT_CNO_FIELD_AGENT, &found));
    CHECK(found.agent.instance_data == NULL && found.agent.proxy_agent_func == NULL);
    FAILS(cno_query, dat_cno_query(OBJECT, DAT_CNO_FIELD_ALL, &found));
    CHECK_SUB(dat_cno_query(OBJECT, 0x4, &found), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_SUB(dat_cno_query(OBJECT, DAT_CNO_FIELD_ALL, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
}

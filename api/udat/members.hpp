// SPDX-License-Identifier: BSD-3-Clause
// The members that structures have in both releases, at different offsets and partly with different sizes. Each
// structure has a table that applies its argument to every member. Members of only one release, and members whose
// values have different meanings, are not listed; the users of the tables handle them.
#pragma once

// clang-format off

#define IA_ATTR_MEMBERS(_) \
    _(adapter_name) _(vendor_name) \
    _(hardware_version_major) _(hardware_version_minor) _(firmware_version_major) _(firmware_version_minor) \
    _(ia_address_ptr) _(max_eps) _(max_dto_per_ep) _(max_rdma_read_per_ep_in) _(max_rdma_read_per_ep_out) \
    _(max_evds) _(max_evd_qlen) _(max_iov_segments_per_dto) \
    _(max_lmrs) _(max_lmr_block_size) _(max_lmr_virtual_address) _(max_pzs) _(max_message_size) _(max_rdma_size) \
    _(max_rmrs) _(max_rmr_target_address) _(max_srqs) _(max_ep_per_srq) _(max_recv_per_srq) \
    _(max_iov_segments_per_rdma_read) _(max_iov_segments_per_rdma_write) _(max_rdma_read_in) _(max_rdma_read_out) \
    _(max_rdma_read_per_ep_in_guaranteed) _(max_rdma_read_per_ep_out_guaranteed) \
    _(num_transport_attr) _(transport_attr) _(num_vendor_attr) _(vendor_attr)

#define PROVIDER_ATTR_MEMBERS(_) \
    _(provider_name) _(provider_version_major) _(provider_version_minor) \
    _(lmr_mem_types_supported) _(iov_ownership_on_return) _(dat_qos_supported) _(completion_flags_supported) \
    _(is_thread_safe) _(max_private_data_size) _(supports_multipath) _(ep_creator) _(optimal_buffer_alignment) \
    _(evd_stream_merging_supported) _(srq_supported) _(srq_watermarks_supported) \
    _(srq_ep_pz_difference_supported) _(srq_info_supported) _(ep_recv_info_supported) _(lmr_sync_req) \
    _(dto_async_return_guaranteed) _(rdma_write_for_rdma_read_req) \
    _(num_provider_specific_attr) _(provider_specific_attr)

#define EP_ATTR_MEMBERS(_) \
    _(service_type) _(max_message_size) _(max_rdma_size) _(qos) \
    _(recv_completion_flags) _(request_completion_flags) \
    _(max_recv_dtos) _(max_request_dtos) _(max_recv_iov) _(max_request_iov) \
    _(max_rdma_read_in) _(max_rdma_read_out) _(srq_soft_hw) _(max_rdma_read_iov) _(max_rdma_write_iov) \
    _(ep_transport_specific_count) _(ep_transport_specific) \
    _(ep_provider_specific_count) _(ep_provider_specific)

#define EP_PARAM_MEMBERS(_) \
    _(ia_handle) _(local_ia_address_ptr) _(local_port_qual) _(remote_ia_address_ptr) _(remote_port_qual) \
    _(pz_handle) _(recv_evd_handle) _(request_evd_handle) _(connect_evd_handle) _(srq_handle)

#define LMR_PARAM_MEMBERS(_) \
    _(ia_handle) _(mem_type) _(region_desc) _(length) _(pz_handle) _(mem_priv) \
    _(lmr_context) _(rmr_context) _(registered_size) _(registered_address)

#define RMR_PARAM_MEMBERS(_) \
    _(ia_handle) _(pz_handle) _(mem_priv) _(rmr_context)

#define SRQ_PARAM_MEMBERS(_) \
    _(ia_handle) _(pz_handle) _(max_recv_dtos) _(max_recv_iov) _(low_watermark) \
    _(available_dto_count) _(outstanding_dto_count)

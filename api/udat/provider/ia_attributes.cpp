// SPDX-License-Identifier: BSD-3-Clause
// The attributes of an IA and its provider.
#include <algorithm>
#include <cstring>
#include <limits>

#include "api/udat/provider/ia.hpp"
#include "api/udat/provider/segments.hpp"
#include "api/udat/provider/translate.hpp"

namespace viaduct::dat {
namespace {

constexpr DAT_UINT32 version_major = 0;
constexpr DAT_UINT32 version_minor = 1;

void write_name(char (&out)[DAT_NAME_MAX_LENGTH], const char* name) noexcept {
    std::memset(out, 0, sizeof(out));
    std::strncpy(out, name, sizeof(out) - 1);
}

const char* to_text(bool able) noexcept { return able ? "TRUE" : "FALSE"; }

}  // namespace

void Ia::query_attributes(DAT_IA_ATTR& attributes) noexcept {
    const DeviceAttributes& device = device_->attributes();
    const DAT_COUNT pieces = to_count(most_segments(device));
    std::memset(static_cast<void*>(&attributes), 0, sizeof(attributes));
    write_name(attributes.adapter_name, provider_.device_name);
    write_name(attributes.vendor_name, "Viaduct");
    attributes.ia_address_ptr = address();
    attributes.max_eps = to_count(device.max_endpoints);
    attributes.max_dto_per_ep = to_count(device.max_queue_depth);
    attributes.max_rdma_read_per_ep_in = rdma_reads_per_ep;
    attributes.max_rdma_read_per_ep_out = rdma_reads_per_ep;
    attributes.max_evds = to_count(device.max_completion_queues);
    attributes.max_evd_qlen = to_count(device.max_completions);
    attributes.max_iov_segments_per_dto = pieces;
    attributes.max_lmrs = to_count(device.max_regions);
    attributes.max_lmr_block_size = static_cast<DAT_SEG_LENGTH>(
        std::min<std::uint64_t>(device.max_region_bytes, std::numeric_limits<DAT_SEG_LENGTH>::max()));
    attributes.max_lmr_virtual_address = std::numeric_limits<DAT_VADDR>::max();
    attributes.max_pzs = to_count(device.max_protection_domains);
    attributes.max_message_size = device.max_transfer_bytes;
    attributes.max_rdma_size = device.max_transfer_bytes;
    attributes.max_rmrs = device.capabilities.memory_windows ? to_count(device.max_regions) : 0;
    attributes.max_rmr_target_address = std::numeric_limits<DAT_VADDR>::max();
    attributes.max_srqs = device.capabilities.shared_receive_queues ? to_count(device.max_endpoints) : 0;
    attributes.max_ep_per_srq = to_count(device.max_endpoints);
    attributes.max_recv_per_srq = to_count(device.max_queue_depth);
    attributes.max_iov_segments_per_rdma_read = pieces;
    attributes.max_iov_segments_per_rdma_write = pieces;
    attributes.max_rdma_read_in = rdma_reads_per_ep;
    attributes.max_rdma_read_out = rdma_reads_per_ep;
    attributes.max_rdma_read_per_ep_in_guaranteed = DAT_TRUE;
    attributes.max_rdma_read_per_ep_out_guaranteed = DAT_TRUE;
    attributes.zb_supported = DAT_FALSE;
    attributes.extension_supported = DAT_EXTENSION_IB;
    attributes.extension_version = DAT_IB_EXTENSION_VERSION;
}

void Ia::name_attributes() {
    const DeviceAttributes& device = device_->attributes();
    mtu_text_ = std::to_string(std::min<std::uint32_t>(device.native_mtu_bytes, 4096));
    named_attributes_ = {
        {"DAT_IB_PROVIDER_NAME", "viaduct"},
        {"DAT_IB_DEVICE_NAME", device.name.c_str()},
        {"DAT_IB_CONNECTIVITY_MODE", "DIRECT"},
        {"DAT_IB_RDMA_READ", "TRUE"},
        {"DAT_IB_TRANSPORT_MTU", mtu_text_.c_str()},
        {"DAT_IB_PORT_STATUS", "PORT_ACTIVE"},
        {"DAT_IB_PORT_NUMBER", "1"},
        {"DAT_EXTENSION_INTERFACE", "TRUE"},
        {DAT_IB_ATTR_FETCH_AND_ADD, to_text(device.capabilities.atomics)},
        {DAT_IB_ATTR_CMP_AND_SWAP, to_text(device.capabilities.atomics)},
        {DAT_IB_ATTR_IMMED_DATA, "TRUE"},
        {DAT_IB_ATTR_COUNTERS, "TRUE"},
    };
}

DAT_RETURN Ia::query_provider(DAT_PROVIDER_ATTR& attributes) {
    const DeviceAttributes& device = device_->attributes();
    std::memset(static_cast<void*>(&attributes), 0, sizeof(attributes));
    write_name(attributes.provider_name, provider_.device_name);
    attributes.provider_version_major = version_major;
    attributes.provider_version_minor = version_minor;
    attributes.dapl_version_major = DAT_VERSION_MAJOR;
    attributes.dapl_version_minor = DAT_VERSION_MINOR;
    attributes.lmr_mem_types_supported =
        static_cast<DAT_MEM_TYPE>(DAT_MEM_TYPE_VIRTUAL | DAT_MEM_TYPE_LMR | DAT_MEM_TYPE_SHARED_VIRTUAL);
    attributes.iov_ownership_on_return = DAT_IOV_CONSUMER;
    attributes.dat_qos_supported = DAT_QOS_BEST_EFFORT;
    attributes.completion_flags_supported = static_cast<DAT_COMPLETION_FLAGS>(
        DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG | DAT_COMPLETION_UNSIGNALLED_FLAG |
        DAT_COMPLETION_BARRIER_FENCE_FLAG | DAT_COMPLETION_EVD_THRESHOLD_FLAG);
    attributes.is_thread_safe = thread_safe_ ? DAT_TRUE : DAT_FALSE;
    attributes.max_private_data_size = to_count(device.max_private_data_bytes);
    attributes.supports_multipath = DAT_FALSE;
    attributes.ep_creator = DAT_PSP_CREATES_EP_IFASKED;
    attributes.pz_support = DAT_PZ_UNIQUE;
    attributes.optimal_buffer_alignment = DAT_OPTIMAL_ALIGNMENT;
    // The matrix is declared const for consumers, but this is the consumer's memory.
    auto* merging = const_cast<DAT_BOOLEAN*>(&attributes.evd_stream_merging_supported[0][0]);
    std::fill_n(merging, sizeof(attributes.evd_stream_merging_supported) / sizeof(DAT_BOOLEAN), DAT_TRUE);
    attributes.srq_supported = device.capabilities.shared_receive_queues ? DAT_TRUE : DAT_FALSE;
    attributes.srq_watermarks_supported = 1;  // the low watermark only
    attributes.srq_ep_pz_difference_supported = DAT_FALSE;
    attributes.srq_info_supported = 1;
    attributes.ep_recv_info_supported = 1;  // the number of receives, but not their span
    attributes.lmr_sync_req = DAT_FALSE;
    attributes.dto_async_return_guaranteed = DAT_TRUE;
    attributes.rdma_write_for_rdma_read_req = DAT_FALSE;
    attributes.rdma_read_lmr_rmr_context_exposure = DAT_FALSE;
    attributes.rmr_scope_supported = DAT_RMR_SCOPE_ANY;
    attributes.is_signal_safe = DAT_FALSE;
    attributes.ha_supported = DAT_FALSE;
    attributes.ha_loadbalancing = DAT_HA_LB_NONE;
    attributes.num_provider_specific_attr = to_count(named_attributes_.size());
    attributes.provider_specific_attr = named_attributes_.data();
    return success;
}

}  // namespace viaduct::dat

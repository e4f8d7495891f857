/* SPDX-License-Identifier: BSD-3-Clause
 * The provider of fake_provider.h: a shared library, which a dat.conf names.
 */
#include "fake_provider.h"

#include <dat2/udat.h>
/* the stock registry's header requires the other one first */
#include <dat2/dat_registry.h>

/* Every libdat2 exports it for its providers: returns the consumer's handle of an adapter. */
DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE ia, DAT_IA_HANDLE *handle);

/* Only in 1.2 */
#define DAT_INVALID_RO_COOKIE 0

/* ---- Members of 2.0 ---------------------------------------------------------------------------------------------- */

/* clang-format off */
#define IA_ATTR(_) \
    _(adapter_name) _(vendor_name) _(hardware_version_major) _(hardware_version_minor) _(firmware_version_major) \
    _(firmware_version_minor) _(ia_address_ptr) _(max_eps) _(max_dto_per_ep) _(max_rdma_read_per_ep_in) \
    _(max_rdma_read_per_ep_out) _(max_evds) _(max_evd_qlen) _(max_iov_segments_per_dto) _(max_lmrs) \
    _(max_lmr_block_size) _(max_lmr_virtual_address) _(max_pzs) _(max_message_size) _(max_rdma_size) _(max_rmrs) \
    _(max_rmr_target_address) _(max_srqs) _(max_ep_per_srq) _(max_recv_per_srq) \
    _(max_iov_segments_per_rdma_read) _(max_iov_segments_per_rdma_write) _(max_rdma_read_in) \
    _(max_rdma_read_out) _(max_rdma_read_per_ep_in_guaranteed) _(max_rdma_read_per_ep_out_guaranteed) \
    _(zb_supported) _(extension_version) _(num_transport_attr) _(transport_attr) _(num_vendor_attr) \
    _(vendor_attr)
#define PROVIDER_ATTR(_) \
    _(provider_name) _(provider_version_major) _(provider_version_minor) _(lmr_mem_types_supported) \
    _(iov_ownership_on_return) _(dat_qos_supported) _(completion_flags_supported) _(max_private_data_size) \
    _(supports_multipath) _(ep_creator) _(optimal_buffer_alignment) _(evd_stream_merging_supported) \
    _(srq_supported) _(srq_watermarks_supported) _(srq_ep_pz_difference_supported) _(srq_info_supported) \
    _(ep_recv_info_supported) _(lmr_sync_req) _(dto_async_return_guaranteed) _(rdma_write_for_rdma_read_req) \
    _(rdma_read_lmr_rmr_context_exposure) _(rmr_scope_supported) _(is_signal_safe) _(ha_supported) \
    _(ha_loadbalancing) _(num_provider_specific_attr) _(provider_specific_attr)
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
    _(mem_type) _(region_desc.for_va) _(length) _(pz_handle) _(mem_priv) _(va_type) _(lmr_context) \
    _(rmr_context) _(registered_size) _(registered_address)
#define RMR_PARAM(_) \
    _(pz_handle) _(lmr_triplet.virtual_address) _(lmr_triplet.segment_length) _(lmr_triplet.lmr_context) \
    _(mem_priv) _(rmr_context) _(rmr_scope) _(va_type)
#define SRQ_PARAM(_) \
    _(ia_handle) _(pz_handle) _(max_recv_dtos) _(max_recv_iov) _(low_watermark) _(available_dto_count) \
    _(outstanding_dto_count)

/* Calls that are only recorded, and calls that do more. */
#define PLAIN_CALLS(_) \
    _(set_consumer_context) _(get_consumer_context) _(get_handle_type) _(cno_create) _(cno_modify_agent) \
    _(cno_free) _(cno_wait) _(cr_query) _(cr_accept) _(cr_reject) _(cr_handoff) _(evd_create) _(evd_query) \
    _(evd_modify_cno) _(evd_enable) _(evd_disable) _(evd_resize) _(evd_free) _(ep_connect) _(ep_dup_connect) \
    _(ep_disconnect) _(ep_free) _(lmr_free) _(rmr_create) _(rmr_free) _(psp_create) _(psp_query) _(psp_free) \
    _(rsp_create) _(rsp_query) _(rsp_free) _(pz_create) _(pz_query) _(pz_free) _(psp_create_any) _(ep_reset) \
    _(evd_set_unwaitable) _(evd_clear_unwaitable) _(ep_recv_query) _(ep_set_watermark) _(srq_create) _(srq_free) \
    _(srq_resize) _(srq_set_lw)
#define SPECIAL_CALLS(_) \
    _(cno_query) _(evd_wait) _(evd_post_se) _(evd_dequeue) _(ep_create) _(ep_query) _(ep_modify) _(ep_post_send) \
    _(ep_post_recv) _(ep_post_rdma_read) _(ep_post_rdma_write) _(ep_get_status) _(lmr_create) _(lmr_query) \
    _(rmr_query) _(rmr_bind) _(lmr_sync_rdma_read) _(lmr_sync_rdma_write) _(ep_create_with_srq) _(srq_post_recv) \
    _(srq_query)
/* clang-format on */

/* ---- Records ----------------------------------------------------------------------------------------------------- */

static DAT_PROVIDER table;
static struct { DAT_PROVIDER *provider; } object = {&table};
static Fake state = {.object = &object};

Fake *fake(void) { return &state; }

#define TYPE(name, value) {#name, name},
#define SUBTYPE(name, value) {#name, name},
#define SIZE(type, size)
#define OFFSET(type, member, offset)
#define VALUE(name, value)
static const struct {
    const char *name;
    uint32_t number;
} codes[] = {
#include "facts.txt"
};

uint32_t fake_code(const char *name) {
    for (size_t at = 0; at < sizeof codes / sizeof *codes; ++at)
        if (strcmp(codes[at].name, name) == 0) return codes[at].number;
    return 0;
}

static DAT_RETURN note(const char *call, const unsigned long *arguments) {
    state.called = call;
    memcpy(state.arguments, arguments, sizeof state.arguments);
    return state.result;
}

#define FILL(member) PUT(*out, member)
#define COMPARE(member) \
    if (!HAS(*in, member)) state.wrong = #member;

static void compare_triplet(const DAT_LMR_TRIPLET *in) {
    COMPARE(virtual_address) COMPARE(segment_length) COMPARE(lmr_context)
}

static void compare_target(const DAT_RMR_TRIPLET *in) {
    if (!has_member(&in->virtual_address, sizeof in->virtual_address, "target_address")) state.wrong = "target_address";
    COMPARE(segment_length) COMPARE(rmr_context)
}

static void compare_attributes(const DAT_EP_ATTR *in) { EP_ATTR(COMPARE) }
/* ---- Calls ------------------------------------------------------------------------------------------------------- */

/* All arguments of DAT calls are integers and pointers. Whatever their types, they are passed in a fixed number of
 * registers and then in words on the stack, so each function here takes them as words. Words after the arguments are
 * recorded, too, but not checked.
 */
#define WORDS                                                                                             \
    unsigned long a, unsigned long b, unsigned long c, unsigned long d, unsigned long e, unsigned long f, \
        unsigned long g, unsigned long h, unsigned long i, unsigned long j, unsigned long k, unsigned long l
#define NOTE(name) note(#name, (const unsigned long[FAKE_ARGUMENTS]){a, b, c, d, e, f, g, h, i, j, k, l})

#define CALL(name, behavior)                  \
    static DAT_RETURN name(WORDS) {           \
        const DAT_RETURN result = NOTE(name); \
        if (result == DAT_SUCCESS) {          \
            behavior                          \
        }                                     \
        return result;                        \
    }
#define OUTPUT(type, word) type *out = (type *)(word);
#define INPUT(type, word) const type *in = (const type *)(word);

static void hand_out(DAT_EVENT *out) {
    memset(out, 0xee, sizeof *out);
    out->event_number = (DAT_EVENT_NUMBER)state.event;
    PUT(*out, evd_handle)
    switch (state.event) {
        case DAT_DTO_COMPLETION_EVENT:
        case DAT_IB_EXTENSION_RANGE_BASE:
            PUT(out->event_data, dto_completion_event_data.ep_handle)
            PUT(out->event_data, dto_completion_event_data.user_cookie)
            PUT(out->event_data, dto_completion_event_data.status)
            PUT(out->event_data, dto_completion_event_data.transfered_length)
            PUT(out->event_data, dto_completion_event_data.operation)
            break;
        case DAT_RMR_BIND_COMPLETION_EVENT:
            PUT(out->event_data, rmr_completion_event_data.rmr_handle)
            PUT(out->event_data, rmr_completion_event_data.user_cookie)
            PUT(out->event_data, rmr_completion_event_data.status)
            break;
        case DAT_CONNECTION_REQUEST_EVENT:
            PUT(out->event_data, cr_arrival_event_data.sp_handle.psp_handle)
            PUT(out->event_data, cr_arrival_event_data.local_ia_address_ptr)
            PUT(out->event_data, cr_arrival_event_data.conn_qual)
            PUT(out->event_data, cr_arrival_event_data.cr_handle)
            break;
        case DAT_SOFTWARE_EVENT: PUT(out->event_data, software_event_data.pointer) break;
        default:
            if ((state.event & 0x8000) != 0) {
                PUT(out->event_data, asynch_error_event_data.dat_handle)
                PUT(out->event_data, asynch_error_event_data.reason)
            } else {
                PUT(out->event_data, connect_event_data.ep_handle)
                PUT(out->event_data, connect_event_data.private_data_size)
                PUT(out->event_data, connect_event_data.private_data)
            }
    }
}

#define PLAIN(name) CALL(name, )
PLAIN_CALLS(PLAIN)
CALL(evd_wait, hand_out((DAT_EVENT *)d);)
CALL(evd_dequeue, hand_out((DAT_EVENT *)b);)
CALL(evd_post_se, INPUT(DAT_EVENT, b) COMPARE(evd_handle) COMPARE(event_data.software_event_data.pointer)
                      state.event = (int32_t)in->event_number;)
CALL(cno_query, OUTPUT(DAT_CNO_PARAM, c) FILL(ia_handle) out->proxy_type = (DAT_PROXY_TYPE)state.state;
     FILL(proxy.agent.instance_data) FILL(proxy.agent.proxy_agent_func))
CALL(ep_create, if (f != 0) compare_attributes((const DAT_EP_ATTR *)f);)
CALL(ep_create_with_srq, if (g != 0) compare_attributes((const DAT_EP_ATTR *)g);)
CALL(ep_query, OUTPUT(DAT_EP_PARAM, c) EP_PARAM(FILL) out->ep_state = (DAT_EP_STATE)state.state;
     {OUTPUT(DAT_EP_ATTR, &((DAT_EP_PARAM *)c)->ep_attr) EP_ATTR(FILL)})
CALL(ep_modify, INPUT(DAT_EP_PARAM, c) EP_PARAM(COMPARE) compare_attributes(&in->ep_attr);)
CALL(ep_get_status, OUTPUT(DAT_EP_STATE, b) *out = (DAT_EP_STATE)state.state;)
CALL(ep_post_send, for (unsigned long at = 0; at < (unsigned)b; ++at) compare_triplet((const DAT_LMR_TRIPLET *)c + at);)
CALL(ep_post_recv, for (unsigned long at = 0; at < (unsigned)b; ++at) compare_triplet((const DAT_LMR_TRIPLET *)c + at);)
CALL(ep_post_rdma_read, compare_triplet((const DAT_LMR_TRIPLET *)c); compare_target((const DAT_RMR_TRIPLET *)e);)
CALL(ep_post_rdma_write, compare_triplet((const DAT_LMR_TRIPLET *)c); compare_target((const DAT_RMR_TRIPLET *)e);)
CALL(srq_post_recv, compare_triplet((const DAT_LMR_TRIPLET *)c);)
CALL(lmr_sync_rdma_read, compare_triplet((const DAT_LMR_TRIPLET *)b);)
CALL(lmr_sync_rdma_write, compare_triplet((const DAT_LMR_TRIPLET *)b);)
CALL(lmr_query, OUTPUT(DAT_LMR_PARAM, c) LMR_PARAM(FILL) dats_get_ia_handle(&object, &out->ia_handle);)
CALL(rmr_query, OUTPUT(DAT_RMR_PARAM, c) RMR_PARAM(FILL) dats_get_ia_handle(&object, &out->ia_handle);)
CALL(rmr_bind, compare_triplet((const DAT_LMR_TRIPLET *)c);)
CALL(srq_query, OUTPUT(DAT_SRQ_PARAM, c) SRQ_PARAM(FILL) out->srq_state = (DAT_SRQ_STATE)state.state;)

/* Region descriptions and agents are structures of two words. */
CALL(lmr_create, *(DAT_LMR_HANDLE *)i = &object; put_member((void *)j, sizeof(DAT_LMR_CONTEXT), "lmr_context");)

/* ---- The provider ------------------------------------------------------------------------------------------------ */

static DAT_RETURN ia_open(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *async_evd, DAT_IA_HANDLE *ia) {
    note("ia_open", (const unsigned long[FAKE_ARGUMENTS]){(unsigned long)name, (unsigned long)qlen});
    *async_evd = &object;
    *ia = &object;
    return DAT_SUCCESS;
}

static DAT_RETURN ia_close(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags) {
    return note("ia_close", (const unsigned long[FAKE_ARGUMENTS]){(unsigned long)ia, (unsigned long)flags});
}

/* The registry itself also queries, and checks what it has registered. */
static DAT_RETURN ia_query(DAT_IA_HANDLE ia, DAT_EVD_HANDLE *async_evd, DAT_IA_ATTR_MASK ia_mask, DAT_IA_ATTR *ia_attr,
                           DAT_PROVIDER_ATTR_MASK provider_mask, DAT_PROVIDER_ATTR *provider_attr) {
    const DAT_RETURN result =
        note("ia_query", (const unsigned long[FAKE_ARGUMENTS]){(unsigned long)ia, (unsigned long)async_evd, ia_mask,
                                                               (unsigned long)ia_attr, provider_mask,
                                                               (unsigned long)provider_attr});
    if (result != DAT_SUCCESS) return result;
    if (ia_attr != NULL) {
        DAT_IA_ATTR *out = ia_attr;
        IA_ATTR(FILL)
        out->extension_supported = DAT_EXTENSION_NONE;
    }
    if (provider_attr != NULL) {
        DAT_PROVIDER_ATTR *out = provider_attr;
        PROVIDER_ATTR(FILL)
        out->dapl_version_major = DAT_VERSION_MAJOR;
        out->dapl_version_minor = DAT_VERSION_MINOR;
        out->is_thread_safe = DAT_FALSE;
        out->pz_support = (DAT_PZ_SUPPORT)state.state;
    }
    return DAT_SUCCESS;
}

#define ENTER(name)                                             \
    {                                                           \
        DAT_RETURN (*const function)(WORDS) = name;             \
        memcpy(&table.name##_func, &function, sizeof function); \
    }

void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *instance_data);
void dat_provider_fini(const DAT_PROVIDER_INFO *info);

void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *instance_data) {
    (void)instance_data;
    PLAIN_CALLS(ENTER)
    SPECIAL_CALLS(ENTER)
    table.device_name = "fake";
    table.ia_open_func = ia_open;
    table.ia_close_func = ia_close;
    table.ia_query_func = ia_query;
    dat_registry_add_provider(&table, info);
}

void dat_provider_fini(const DAT_PROVIDER_INFO *info) { dat_registry_remove_provider(&table, info); }

// SPDX-License-Identifier: BSD-3-Clause
// Events, which are larger in 2.0, and CNOs, which have file descriptors in 2.0.
#include "pass.hpp"

using namespace viaduct::dat1;

namespace {

// Except for DTO completions, the event data of 1.2 have the same layout as in 2.0.
static_assert(offsetof(DAT_CR_ARRIVAL_EVENT_DATA, cr_handle) == offsetof(dat2::DAT_CR_ARRIVAL_EVENT_DATA, cr_handle));
static_assert(sizeof(DAT_CONNECTION_EVENT_DATA) == sizeof(dat2::DAT_CONNECTION_EVENT_DATA));
static_assert(sizeof(DAT_RMR_BIND_COMPLETION_EVENT_DATA) == sizeof(dat2::DAT_RMR_BIND_COMPLETION_EVENT_DATA));
static_assert(sizeof(DAT_ASYNCH_ERROR_EVENT_DATA) == sizeof(dat2::DAT_ASYNCH_ERROR_EVENT_DATA));
static_assert(sizeof(DAT_EVENT_DATA) <= sizeof(dat2::DAT_EVENT_DATA));

/// In 2.0 some completions are events of an extension, for example a receive completed by a peer's RDMA write with
/// immediate data. They carry the same data.
DAT_EVENT_NUMBER number_of(dat2::DAT_EVENT_NUMBER number) noexcept {
    return number == dat2::DAT_IB_EXTENSION_RANGE_BASE ? DAT_DTO_COMPLETION_EVENT : same<DAT_EVENT_NUMBER>(number);
}

inline void tell(DAT_EVENT& to, const dat2::DAT_EVENT& from) noexcept {
    to.event_number = number_of(from.event_number);
    COPY(evd_handle)
    if (to.event_number == DAT_DTO_COMPLETION_EVENT) {
        COPY(event_data.dto_completion_event_data.ep_handle)
        COPY(event_data.dto_completion_event_data.user_cookie)
        COPY(event_data.dto_completion_event_data.status)
        COPY(event_data.dto_completion_event_data.transfered_length)
    } else {
        std::memcpy(&to.event_data, &from.event_data, sizeof to.event_data);
    }
}

void tell(DAT_CNO_PARAM& to, const dat2::DAT_CNO_PARAM& from) noexcept {
    const bool has_agent = from.proxy_type == dat2::DAT_PROXY_TYPE_AGENT;
    to.ia_handle = from.ia_handle;
    to.agent = has_agent ? same<DAT_OS_WAIT_PROXY_AGENT>(from.proxy.agent) : DAT_OS_WAIT_PROXY_AGENT{};
}

}  // namespace

DAT_RETURN dat_evd_wait(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout, DAT_COUNT threshold, DAT_EVENT* event,
                        DAT_COUNT* nmore) {
    if (event == nullptr) return bad_argument(__func__, evd, 4, "event is null");
    dat2::DAT_EVENT found;
    const DAT_RETURN result = pass(dat2::dat2_evd_wait, evd, timeout, threshold, &found, nmore);
    if (result == DAT_SUCCESS) tell(*event, found);
    return result;
}

DAT_RETURN dat_evd_dequeue(DAT_EVD_HANDLE evd, DAT_EVENT* event) {
    if (event == nullptr) return bad_argument(__func__, evd, 2, "event is null");
    dat2::DAT_EVENT found;
    const DAT_RETURN result = pass(dat2::dat2_evd_dequeue, evd, &found);
    if (result == DAT_SUCCESS) tell(*event, found);
    return result;
}

DAT_RETURN dat_evd_post_se(DAT_EVD_HANDLE evd, const DAT_EVENT* event) {
    if (event == nullptr) return bad_argument(__func__, evd, 2, "event is null");
    const DAT_EVENT& from = *event;
    dat2::DAT_EVENT to{};
    COPY(event_number)
    COPY(evd_handle)
    COPY(event_data.software_event_data.pointer)
    return pass(dat2::dat2_evd_post_se, evd, &to);
}

DAT_RETURN dat_cno_query(DAT_CNO_HANDLE cno, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM* param) {
    return query(__func__, dat2::dat2_cno_query, cno, mask & ~DAT_CNO_FIELD_ALL, dat2::DAT_CNO_FIELD_ALL, param, tell);
}

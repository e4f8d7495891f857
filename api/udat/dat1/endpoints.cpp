// SPDX-License-Identifier: BSD-3-Clause
// Endpoints. In 1.2 their attributes contain 64-bit lengths; 2.0 has more parameters and states.
#include "api/udat/members.hpp"
#include "triplets.hpp"

using namespace viaduct;
using namespace viaduct::dat1;

namespace {

template <class To, class From>
To attributes(const From& from) noexcept {
    To to{};
    EP_ATTR_MEMBERS(COPY)
    return to;
}

bool fits(const DAT_EP_ATTR& attr) noexcept {
    return attr.max_message_size <= max_length && attr.max_rdma_size <= max_length;
}

DAT_EP_STATE state_of(dat2::DAT_EP_STATE state) noexcept {
    const bool new_in_2 = state > dat2::DAT_EP_STATE_COMPLETION_PENDING;  // connected, possibly over several paths
    return new_in_2 ? DAT_EP_STATE_CONNECTED : same<DAT_EP_STATE>(state);
}

void tell(DAT_EP_PARAM& to, const dat2::DAT_EP_PARAM& from) noexcept {
    EP_PARAM_MEMBERS(COPY)
    to.ep_state = state_of(from.ep_state);
    to.ep_attr = attributes<DAT_EP_ATTR>(from.ep_attr);
}

void tell(DAT_SRQ_PARAM& to, const dat2::DAT_SRQ_PARAM& from) noexcept {
    SRQ_PARAM_MEMBERS(COPY)
    const bool operational = from.srq_state == dat2::DAT_SRQ_STATE_OPERATIONAL;
    to.srq_state = operational ? DAT_SRQ_STATE_OPERATIONAL : DAT_SRQ_STATE_ERROR;
}

/// Leaves out the state, which programs cannot change.
dat2::DAT_EP_PARAM param_in_2(const DAT_EP_PARAM& from) noexcept {
    dat2::DAT_EP_PARAM to{};
    EP_PARAM_MEMBERS(COPY)
    to.ep_attr = attributes<dat2::DAT_EP_ATTR>(from.ep_attr);
    return to;
}

/// In 2.0 the communicator comes before the local address. The bits of the attributes are the same.
constexpr dat2::DAT_EP_PARAM_MASK mask_in_2(DAT_EP_PARAM_MASK mask) noexcept {
    return with_gap(mask & ~DAT_EP_FIELD_EP_ATTR_ALL, DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR, 1) |
           (mask & DAT_EP_FIELD_EP_ATTR_ALL);
}
static_assert(mask_in_2(DAT_EP_FIELD_SRQ_HANDLE) == dat2::last_ep_field);

constexpr const char* too_large = "max_message_size or max_rdma_size is 4 GiB or more";

/// Calls `create` with the attributes, argument number `place`, converted to 2.0.
template <dat::CallName name, class Create>
DAT_RETURN with_attributes(DAT_IA_HANDLE ia, const DAT_EP_ATTR* attr, unsigned place, Create&& create) noexcept {
    if (attr == nullptr) return create(nullptr);
    if (!fits(*attr)) return bad_argument(name.text, ia, place, too_large);
    const auto translated = attributes<dat2::DAT_EP_ATTR>(*attr);
    return create(&translated);
}

}  // namespace

DAT_RETURN dat_ep_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv_evd, DAT_EVD_HANDLE request_evd,
                         DAT_EVD_HANDLE connect_evd, const DAT_EP_ATTR* attr, DAT_EP_HANDLE* ep) {
    return with_attributes<"dat_ep_create">(ia, attr, 6, [&](const dat2::DAT_EP_ATTR* translated) {
        return pass(dat2::dat2_ep_create, ia, pz, recv_evd, request_evd, connect_evd, translated, ep);
    });
}

DAT_RETURN dat_ep_create_with_srq(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv_evd,
                                  DAT_EVD_HANDLE request_evd, DAT_EVD_HANDLE connect_evd, DAT_SRQ_HANDLE srq,
                                  const DAT_EP_ATTR* attr, DAT_EP_HANDLE* ep) {
    return with_attributes<"dat_ep_create_with_srq">(ia, attr, 7, [&](const dat2::DAT_EP_ATTR* translated) {
        return pass(dat2::dat2_ep_create_with_srq, ia, pz, recv_evd, request_evd, connect_evd, srq, translated, ep);
    });
}

DAT_RETURN dat_ep_query(DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK mask, DAT_EP_PARAM* param) {
    return query(__func__, dat2::dat2_ep_query, ep, mask & ~DAT_EP_FIELD_ALL, mask_in_2(mask), param, tell);
}

DAT_RETURN dat_ep_modify(DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM* param) {
    if ((mask & ~DAT_EP_FIELD_ALL) != 0) return bad_argument(__func__, ep, 2, "the mask has unknown bits");
    if (param == nullptr) return bad_argument(__func__, ep, 3, "the parameters are null");
    constexpr DAT_EP_PARAM_MASK lengths = DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE | DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE;
    if ((mask & lengths) != 0 && !fits(param->ep_attr)) return bad_argument(__func__, ep, 3, too_large);
    const auto translated = param_in_2(*param);
    return pass(dat2::dat2_ep_modify, ep, mask_in_2(mask), &translated);
}

DAT_RETURN dat_ep_get_status(DAT_EP_HANDLE ep, DAT_EP_STATE* state, DAT_BOOLEAN* recv_idle, DAT_BOOLEAN* request_idle) {
    dat2::DAT_EP_STATE found{};
    const DAT_RETURN result = pass(dat2::dat2_ep_get_status, ep, &found, recv_idle, request_idle);
    if (result == DAT_SUCCESS && state != nullptr) *state = state_of(found);
    return result;
}

DAT_RETURN dat_srq_query(DAT_SRQ_HANDLE srq, DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM* param) {
    return query(__func__, dat2::dat2_srq_query, srq, 0, mask, param, tell);
}

DAT_RETURN dat_cr_reject(DAT_CR_HANDLE cr) { return pass(dat2::dat2_cr_reject, cr, 0, nullptr); }

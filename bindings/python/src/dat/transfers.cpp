// SPDX-License-Identifier: BSD-3-Clause
// Posting data transfers, including those of the InfiniBand extension.
#include "triplets.hpp"

namespace viaduct::python::dat {
namespace {

DAT_COUNT count_of(const LmrTriplets& pieces) noexcept { return static_cast<DAT_COUNT>(pieces.size()); }

DAT_COMPLETION_FLAGS flags_of(int flags) noexcept { return static_cast<DAT_COMPLETION_FLAGS>(flags); }

void post_recv(Handle ep, LmrTriplets pieces, DAT_UINT64 cookie, int flags) {
    VIADUCT_DAT_QUICK_CALL(dat_ep_post_recv, to_dat(ep), count_of(pieces), pieces.data(), cookie_of(cookie),
                           flags_of(flags));
}

void post_send(Handle ep, LmrTriplets pieces, DAT_UINT64 cookie, int flags) {
    VIADUCT_DAT_QUICK_CALL(dat_ep_post_send, to_dat(ep), count_of(pieces), pieces.data(), cookie_of(cookie),
                           flags_of(flags));
}

void post_send_with_invalidate(Handle ep, LmrTriplets pieces, DAT_UINT64 cookie, int flags, bool invalidate,
                               DAT_RMR_CONTEXT context) {
    VIADUCT_DAT_QUICK_CALL(dat_ep_post_send_with_invalidate, to_dat(ep), count_of(pieces), pieces.data(),
                           cookie_of(cookie), flags_of(flags), invalidate ? DAT_TRUE : DAT_FALSE, context);
}

void post_rdma_write(Handle ep, LmrTriplets pieces, DAT_UINT64 cookie, DAT_RMR_TRIPLET remote, int flags) {
    VIADUCT_DAT_QUICK_CALL(dat_ep_post_rdma_write, to_dat(ep), count_of(pieces), pieces.data(), cookie_of(cookie),
                           &remote, flags_of(flags));
}

void post_rdma_read(Handle ep, LmrTriplets pieces, DAT_UINT64 cookie, DAT_RMR_TRIPLET remote, int flags) {
    VIADUCT_DAT_QUICK_CALL(dat_ep_post_rdma_read, to_dat(ep), count_of(pieces), pieces.data(), cookie_of(cookie),
                           &remote, flags_of(flags));
}

void post_rdma_read_to_rmr(Handle ep, DAT_RMR_TRIPLET local, DAT_UINT64 cookie, DAT_RMR_TRIPLET remote, int flags) {
    VIADUCT_DAT_QUICK_CALL(dat_ep_post_rdma_read_to_rmr, to_dat(ep), &local, cookie_of(cookie), &remote,
                           flags_of(flags));
}

void post_srq_recv(Handle srq, LmrTriplets pieces, DAT_UINT64 cookie) {
    VIADUCT_DAT_QUICK_CALL(dat_srq_post_recv, to_dat(srq), count_of(pieces), pieces.data(), cookie_of(cookie));
}

void post_fetch_and_add(Handle ep, DAT_UINT64 add, DAT_LMR_TRIPLET local, DAT_UINT64 cookie, DAT_RMR_TRIPLET remote,
                        int flags) {
    VIADUCT_DAT_QUICK_CALL(dat_ib_post_fetch_and_add, to_dat(ep), add, &local, cookie_of(cookie), &remote, flags);
}

void post_cmp_and_swap(Handle ep, DAT_UINT64 compare, DAT_UINT64 swap, DAT_LMR_TRIPLET local, DAT_UINT64 cookie,
                       DAT_RMR_TRIPLET remote, int flags) {
    VIADUCT_DAT_QUICK_CALL(dat_ib_post_cmp_and_swap, to_dat(ep), compare, swap, &local, cookie_of(cookie), &remote,
                           flags);
}

void post_rdma_write_immed(Handle ep, LmrTriplets pieces, DAT_UINT64 cookie, DAT_RMR_TRIPLET remote,
                           DAT_UINT32 immediate, int flags) {
    VIADUCT_DAT_QUICK_CALL(dat_ib_post_rdma_write_immed, to_dat(ep), count_of(pieces), pieces.data(), cookie_of(cookie),
                           &remote, immediate, flags_of(flags));
}

}  // namespace

void add_transfers(py::module_& module) {
    module.def("dat_ep_post_recv", &post_recv);
    module.def("dat_ep_post_send", &post_send);
    module.def("dat_ep_post_send_with_invalidate", &post_send_with_invalidate);
    module.def("dat_ep_post_rdma_write", &post_rdma_write);
    module.def("dat_ep_post_rdma_read", &post_rdma_read);
    module.def("dat_ep_post_rdma_read_to_rmr", &post_rdma_read_to_rmr);
    module.def("dat_srq_post_recv", &post_srq_recv);
    module.def("dat_ib_post_fetch_and_add", &post_fetch_and_add);
    module.def("dat_ib_post_cmp_and_swap", &post_cmp_and_swap);
    module.def("dat_ib_post_rdma_write_immed", &post_rdma_write_immed);
}

}  // namespace viaduct::python::dat

// SPDX-License-Identifier: BSD-3-Clause
// Posting data transfers, including those of the InfiniBand extension.
#include "triplets.hpp"

namespace viaduct::python::dat {
namespace {

/// Defines a call that posts a transfer of pieces of memory. `Rest` are the parameters behind these.
template <class... Rest>
void def_post(py::module_& module, const char* name,
              DAT_RETURN (*function)(DAT_HANDLE, DAT_COUNT, DAT_LMR_TRIPLET*, Rest...)) {
    module.def(name, [name, function](Handle object, std::vector<DAT_LMR_TRIPLET> pieces, Plain<Rest>... rest) {
        const auto post = [&] {
            return function(to_dat(object), static_cast<DAT_COUNT>(pieces.size()), pieces.data(),
                            to_argument<Rest>(rest)...);
        };
        const bool is_long = are_long(pieces, &DAT_LMR_TRIPLET::segment_length);
        check(name, is_long ? unlocked({.used = {object}}, post) : quick({.used = {object}}, post));
    });
}

// The calls of the extension are macros.

DAT_RETURN post_fetch_and_add(DAT_EP_HANDLE ep, DAT_UINT64 add, DAT_LMR_TRIPLET* local, DAT_DTO_COOKIE cookie,
                              DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags) {
    return dat_ib_post_fetch_and_add(ep, add, local, cookie, remote, flags);
}

DAT_RETURN post_cmp_and_swap(DAT_EP_HANDLE ep, DAT_UINT64 compare, DAT_UINT64 swap, DAT_LMR_TRIPLET* local,
                             DAT_DTO_COOKIE cookie, DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags) {
    return dat_ib_post_cmp_and_swap(ep, compare, swap, local, cookie, remote, flags);
}

DAT_RETURN post_rdma_write_immed(DAT_EP_HANDLE ep, DAT_COUNT count, DAT_LMR_TRIPLET* pieces, DAT_DTO_COOKIE cookie,
                                 DAT_RMR_TRIPLET* remote, DAT_UINT32 immediate, DAT_COMPLETION_FLAGS flags) {
    return dat_ib_post_rdma_write_immed(ep, count, pieces, cookie, remote, immediate, flags);
}

}  // namespace

void add_transfers(py::module_& module) {
    def_post(module, "dat_ep_post_recv", &dat_ep_post_recv);
    def_post(module, "dat_ep_post_send", &dat_ep_post_send);
    def_post(module, "dat_ep_post_send_with_invalidate", &dat_ep_post_send_with_invalidate);
    def_post(module, "dat_ep_post_rdma_write", &dat_ep_post_rdma_write);
    def_post(module, "dat_ep_post_rdma_read", &dat_ep_post_rdma_read);
    def_call(module, "dat_ep_post_rdma_read_to_rmr", &dat_ep_post_rdma_read_to_rmr);
    def_post(module, "dat_srq_post_recv", &dat_srq_post_recv);
    def_call<true>(module, "dat_ib_post_fetch_and_add", &post_fetch_and_add);
    def_call<true>(module, "dat_ib_post_cmp_and_swap", &post_cmp_and_swap);
    def_post(module, "dat_ib_post_rdma_write_immed", &post_rdma_write_immed);
}

}  // namespace viaduct::python::dat

// SPDX-License-Identifier: BSD-3-Clause
// Posting data transfers, including those of the InfiniBand extension.
#include "triplets.hpp"

namespace viaduct::python::dat {
namespace {

/// The arguments that all posts have, in DAT's types.
struct Post {
    Post(Handle queue_owner, const Triplets& pieces, DAT_UINT64 number, int completion_flags)
        : queue(to_dat(queue_owner)),
          iov(to_triplets<DAT_LMR_TRIPLET>(pieces)),
          cookie(cookie_of(number)),
          flags(static_cast<DAT_COMPLETION_FLAGS>(completion_flags)) {}

    DAT_COUNT count() const noexcept { return static_cast<DAT_COUNT>(iov.size()); }

    Object queue;  // an endpoint, or an SRQ
    std::vector<DAT_LMR_TRIPLET> iov;
    DAT_DTO_COOKIE cookie;
    DAT_COMPLETION_FLAGS flags;
};

void post_recv(Handle ep, const Triplets& pieces, DAT_UINT64 cookie, int flags) {
    Post post(ep, pieces, cookie, flags);
    VIADUCT_DAT_QUICK_CALL(dat_ep_post_recv, post.queue, post.count(), post.iov.data(), post.cookie, post.flags);
}

void post_send(Handle ep, const Triplets& pieces, DAT_UINT64 cookie, int flags) {
    Post post(ep, pieces, cookie, flags);
    VIADUCT_DAT_QUICK_CALL(dat_ep_post_send, post.queue, post.count(), post.iov.data(), post.cookie, post.flags);
}

void post_send_with_invalidate(Handle ep, const Triplets& pieces, DAT_UINT64 cookie, int flags, bool invalidate,
                               DAT_RMR_CONTEXT context) {
    Post post(ep, pieces, cookie, flags);
    VIADUCT_DAT_QUICK_CALL(dat_ep_post_send_with_invalidate, post.queue, post.count(), post.iov.data(), post.cookie,
                           post.flags, invalidate ? DAT_TRUE : DAT_FALSE, context);
}

void post_rdma_write(Handle ep, const Triplets& pieces, DAT_UINT64 cookie, const Triplet& target, int flags) {
    Post post(ep, pieces, cookie, flags);
    const auto remote = to_triplet<DAT_RMR_TRIPLET>(target);
    VIADUCT_DAT_QUICK_CALL(dat_ep_post_rdma_write, post.queue, post.count(), post.iov.data(), post.cookie, &remote,
                           post.flags);
}

void post_rdma_read(Handle ep, const Triplets& pieces, DAT_UINT64 cookie, const Triplet& source, int flags) {
    Post post(ep, pieces, cookie, flags);
    const auto remote = to_triplet<DAT_RMR_TRIPLET>(source);
    VIADUCT_DAT_QUICK_CALL(dat_ep_post_rdma_read, post.queue, post.count(), post.iov.data(), post.cookie, &remote,
                           post.flags);
}

void post_rdma_read_to_rmr(Handle ep, const Triplet& target, DAT_UINT64 cookie, const Triplet& source, int flags) {
    const auto local = to_triplet<DAT_RMR_TRIPLET>(target);
    const auto remote = to_triplet<DAT_RMR_TRIPLET>(source);
    VIADUCT_DAT_QUICK_CALL(dat_ep_post_rdma_read_to_rmr, to_dat(ep), &local, cookie_of(cookie), &remote,
                           static_cast<DAT_COMPLETION_FLAGS>(flags));
}

void post_srq_recv(Handle srq, const Triplets& pieces, DAT_UINT64 cookie) {
    Post post(srq, pieces, cookie, DAT_COMPLETION_DEFAULT_FLAG);
    VIADUCT_DAT_QUICK_CALL(dat_srq_post_recv, post.queue, post.count(), post.iov.data(), post.cookie);
}

void post_fetch_and_add(Handle ep, DAT_UINT64 add, const Triplet& result, DAT_UINT64 cookie, const Triplet& word,
                        int flags) {
    auto local = to_triplet<DAT_LMR_TRIPLET>(result);
    auto remote = to_triplet<DAT_RMR_TRIPLET>(word);
    VIADUCT_DAT_QUICK_CALL(dat_ib_post_fetch_and_add, to_dat(ep), add, &local, cookie_of(cookie), &remote, flags);
}

void post_cmp_and_swap(Handle ep, DAT_UINT64 compare, DAT_UINT64 swap, const Triplet& result, DAT_UINT64 cookie,
                       const Triplet& word, int flags) {
    auto local = to_triplet<DAT_LMR_TRIPLET>(result);
    auto remote = to_triplet<DAT_RMR_TRIPLET>(word);
    VIADUCT_DAT_QUICK_CALL(dat_ib_post_cmp_and_swap, to_dat(ep), compare, swap, &local, cookie_of(cookie), &remote,
                           flags);
}

void post_rdma_write_immed(Handle ep, const Triplets& pieces, DAT_UINT64 cookie, const Triplet& target,
                           DAT_UINT32 immediate, int flags) {
    Post post(ep, pieces, cookie, flags);
    auto remote = to_triplet<DAT_RMR_TRIPLET>(target);
    VIADUCT_DAT_QUICK_CALL(dat_ib_post_rdma_write_immed, post.queue, post.count(), post.iov.data(), post.cookie,
                           &remote, immediate, post.flags);
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

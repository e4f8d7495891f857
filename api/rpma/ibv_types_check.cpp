// SPDX-License-Identifier: BSD-3-Clause
// Compares our definitions of the libibverbs types (include/viaduct/ibv_types.h) with the real ones, if these are
// available.
#include <cstddef>
#include <cstdint>

#if __has_include(<infiniband/verbs.h>)
#include <infiniband/verbs.h>

namespace ours {
#include "api/rpma/include/viaduct/ibv_types.h"
}

#define CONSTANT(name) static_assert(static_cast<int>(ours::name) == static_cast<int>(::name));
#include "ibv_types.inc"

#define SAME_PLACE(field)                                                       \
    static_assert(offsetof(ours::ibv_wc, field) == offsetof(::ibv_wc, field) && \
                  sizeof(ours::ibv_wc::field) == sizeof(::ibv_wc::field))
static_assert(sizeof(ours::ibv_wc) == sizeof(::ibv_wc));
SAME_PLACE(wr_id);
SAME_PLACE(status);
SAME_PLACE(opcode);
SAME_PLACE(vendor_err);
SAME_PLACE(byte_len);
SAME_PLACE(imm_data);
SAME_PLACE(invalidated_rkey);
SAME_PLACE(qp_num);
SAME_PLACE(src_qp);
SAME_PLACE(wc_flags);
SAME_PLACE(pkey_index);
SAME_PLACE(slid);
SAME_PLACE(sl);
SAME_PLACE(dlid_path_bits);
#endif

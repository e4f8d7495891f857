// SPDX-License-Identifier: BSD-3-Clause
#include "api/rpma/srq_cfg.hpp"

#include "api/rpma/cfg_field.hpp"

using namespace viaduct;
using namespace viaduct::rpma;

int rpma_srq_cfg_new(struct rpma_srq_cfg** cfg_ptr) {
    return Entry::run(nullptr, [&] { return make_cfg<SrqCfg>(cfg_ptr); });
}

int rpma_srq_cfg_delete(struct rpma_srq_cfg** cfg_ptr) {
    return Entry::run(nullptr, [&] { return destroy<SrqCfg>(cfg_ptr); });
}

int rpma_srq_cfg_set_rq_size(struct rpma_srq_cfg* cfg, uint32_t rq_size) {
    return set_field<SrqCfg>(cfg, &SrqCfg::Fields::rq_size, rq_size);
}

int rpma_srq_cfg_get_rq_size(const struct rpma_srq_cfg* cfg, uint32_t* rq_size) {
    return get_field<SrqCfg>(cfg, &SrqCfg::Fields::rq_size, rq_size);
}

int rpma_srq_cfg_set_rcq_size(struct rpma_srq_cfg* cfg, uint32_t rcq_size) {
    return set_field<SrqCfg>(cfg, &SrqCfg::Fields::rcq_size, rcq_size);
}

int rpma_srq_cfg_get_rcq_size(const struct rpma_srq_cfg* cfg, uint32_t* rcq_size) {
    return get_field<SrqCfg>(cfg, &SrqCfg::Fields::rcq_size, rcq_size);
}

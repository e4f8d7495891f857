// SPDX-License-Identifier: BSD-3-Clause
#include "api/rpma/srq_cfg.hpp"

#include "api/rpma/cfg_field.hpp"

using namespace viaduct;
using namespace viaduct::rpma;

CFG(srq_cfg, SrqCfg)
CFG_FIELD(srq_cfg, SrqCfg, rq_size, uint32_t)
CFG_FIELD(srq_cfg, SrqCfg, rcq_size, uint32_t)

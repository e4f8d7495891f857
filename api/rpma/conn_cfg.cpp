// SPDX-License-Identifier: BSD-3-Clause
#include "api/rpma/conn_cfg.hpp"

#include "api/rpma/cfg_field.hpp"

namespace viaduct::rpma {

bool read_settings(const rpma_conn_cfg* cfg, ConnSettings& settings) noexcept {
    if (cfg == nullptr) return true;
    const ConnCfg* from = resolve<ConnCfg>(cfg);
    if (from == nullptr) return false;
    settings = from->settings();
    return true;
}

}  // namespace viaduct::rpma

using namespace viaduct;
using namespace viaduct::rpma;

CFG(conn_cfg, ConnCfg)
CFG_FIELD(conn_cfg, ConnCfg, cq_size, uint32_t)
CFG_FIELD(conn_cfg, ConnCfg, rcq_size, uint32_t)
CFG_FIELD(conn_cfg, ConnCfg, sq_size, uint32_t)
CFG_FIELD(conn_cfg, ConnCfg, rq_size, uint32_t)
CFG_FIELD(conn_cfg, ConnCfg, compl_channel, bool)

int rpma_conn_cfg_set_timeout(struct rpma_conn_cfg* cfg, int timeout_ms) {
    return Entry::on<ConnCfg>(cfg, {{timeout_ms >= 0, "timeout_ms is negative"}}, [&](ConnCfg& settings) {
        settings.set_timeout(timeout_ms);
        return 0;
    });
}

int rpma_conn_cfg_get_timeout(const struct rpma_conn_cfg* cfg, int* timeout_ms) {
    return get_field<ConnCfg>(cfg, &ConnCfg::Fields::timeout_ms, timeout_ms);
}

/// Does not check that the pointer is a queue; the call that uses the configuration does. Tests may pass a made-up
/// pointer.
int rpma_conn_cfg_set_srq(struct rpma_conn_cfg* cfg, struct rpma_srq* srq) {
    return Entry::on<ConnCfg>(cfg, {{srq != nullptr, "the place for srq is NULL"}}, [&](const ConnCfg& settings) {
        settings.fields().srq = srq;
        return 0;
    });
}

int rpma_conn_cfg_get_srq(const struct rpma_conn_cfg* cfg, struct rpma_srq** srq_ptr) {
    return get_field<ConnCfg>(cfg, &ConnCfg::Fields::srq, srq_ptr);
}

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

int rpma_conn_cfg_new(struct rpma_conn_cfg** cfg_ptr) {
    return Entry::run(nullptr, [&] { return make_cfg<ConnCfg>(cfg_ptr); });
}

int rpma_conn_cfg_delete(struct rpma_conn_cfg** cfg_ptr) {
    return Entry::run(nullptr, [&] { return destroy<ConnCfg>(cfg_ptr); });
}

int rpma_conn_cfg_set_timeout(struct rpma_conn_cfg* cfg, int timeout_ms) {
    return Entry::run(cfg, [&] {
        if (timeout_ms < 0) return failed(RPMA_E_INVAL, "timeout_ms is negative");
        ConnCfg* settings = resolve<ConnCfg>(cfg);
        if (!failure::require({{settings != nullptr, "cfg is not a configuration of connections"}}))
            return RPMA_E_INVAL;
        settings->set_timeout(timeout_ms);
        return 0;
    });
}

int rpma_conn_cfg_get_timeout(const struct rpma_conn_cfg* cfg, int* timeout_ms) {
    return get_field<ConnCfg>(cfg, &ConnCfg::Fields::timeout_ms, timeout_ms);
}

int rpma_conn_cfg_set_cq_size(struct rpma_conn_cfg* cfg, uint32_t cq_size) {
    return set_field<ConnCfg>(cfg, &ConnCfg::Fields::cq_size, cq_size);
}

int rpma_conn_cfg_get_cq_size(const struct rpma_conn_cfg* cfg, uint32_t* cq_size) {
    return get_field<ConnCfg>(cfg, &ConnCfg::Fields::cq_size, cq_size);
}

int rpma_conn_cfg_set_rcq_size(struct rpma_conn_cfg* cfg, uint32_t rcq_size) {
    return set_field<ConnCfg>(cfg, &ConnCfg::Fields::rcq_size, rcq_size);
}

int rpma_conn_cfg_get_rcq_size(const struct rpma_conn_cfg* cfg, uint32_t* rcq_size) {
    return get_field<ConnCfg>(cfg, &ConnCfg::Fields::rcq_size, rcq_size);
}

int rpma_conn_cfg_set_sq_size(struct rpma_conn_cfg* cfg, uint32_t sq_size) {
    return set_field<ConnCfg>(cfg, &ConnCfg::Fields::sq_size, sq_size);
}

int rpma_conn_cfg_get_sq_size(const struct rpma_conn_cfg* cfg, uint32_t* sq_size) {
    return get_field<ConnCfg>(cfg, &ConnCfg::Fields::sq_size, sq_size);
}

int rpma_conn_cfg_set_rq_size(struct rpma_conn_cfg* cfg, uint32_t rq_size) {
    return set_field<ConnCfg>(cfg, &ConnCfg::Fields::rq_size, rq_size);
}

int rpma_conn_cfg_get_rq_size(const struct rpma_conn_cfg* cfg, uint32_t* rq_size) {
    return get_field<ConnCfg>(cfg, &ConnCfg::Fields::rq_size, rq_size);
}

int rpma_conn_cfg_set_compl_channel(struct rpma_conn_cfg* cfg, bool shared) {
    return set_field<ConnCfg>(cfg, &ConnCfg::Fields::shared_channel, shared);
}

int rpma_conn_cfg_get_compl_channel(const struct rpma_conn_cfg* cfg, bool* shared) {
    return get_field<ConnCfg>(cfg, &ConnCfg::Fields::shared_channel, shared);
}

int rpma_conn_cfg_set_srq(struct rpma_conn_cfg* cfg, struct rpma_srq* srq) {
    return Entry::run(cfg, [&] {
        // Does not check that the pointer is a queue; the call that uses the configuration does. Tests may pass a
        // made-up pointer.
        if (!failure::require({{srq != nullptr, "the place for srq is NULL"}})) return RPMA_E_INVAL;
        return set_field<ConnCfg>(cfg, &ConnCfg::Fields::srq, srq);
    });
}

int rpma_conn_cfg_get_srq(const struct rpma_conn_cfg* cfg, struct rpma_srq** srq_ptr) {
    return get_field<ConnCfg>(cfg, &ConnCfg::Fields::srq, srq_ptr);
}

// SPDX-License-Identifier: BSD-3-Clause
#include "api/rpma/cfg.hpp"

namespace viaduct::rpma {
namespace {

/// Creates a configuration with default values.
template <class Cfg, class Opaque>
int make_cfg(Opaque** handle) {
    if (handle == nullptr) return failed(RPMA_E_INVAL, "the place for the handle is NULL");
    hand_over(std::make_unique<Cfg>(), handle);
    return 0;
}

/// The entry points that read and write a field.
template <class Cfg, class Value>
int set_field(void* handle, std::atomic<Value> Cfg::Fields::*field, Value value, const Call& call = {}) {
    const auto set = [&](const Cfg& cfg) {
        cfg.fields().*field = value;
        return 0;
    };
    return Entry::on<Cfg>(handle, {}, set, call);
}
template <class Cfg, class Value>
int get_field(const void* handle, std::atomic<Value> Cfg::Fields::*field, Value* value, const Call& call = {}) {
    return get_value<Cfg>(
        handle, value, "the place for the value is NULL",
        [field](const Cfg& cfg) { return (cfg.fields().*field).load(); }, call);
}

}  // namespace

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

// The functions of librpma for a kind of configuration, and for a field of the same name.

#define CFG(cfg, Class)                                                       \
    int rpma_##cfg##_new(struct rpma_##cfg** cfg_ptr) {                       \
        return Entry::run(nullptr, [&] { return make_cfg<Class>(cfg_ptr); }); \
    }                                                                         \
    int rpma_##cfg##_delete(struct rpma_##cfg** cfg_ptr) { return destroy<Class>(cfg_ptr); }

// NOLINTBEGIN(bugprone-macro-parentheses): types
#define CFG_FIELD(cfg, Class, field, Value)                                       \
    int rpma_##cfg##_set_##field(struct rpma_##cfg* handle, Value value) {        \
        return set_field<Class>(handle, &Class::Fields::field, value);            \
    }                                                                             \
    int rpma_##cfg##_get_##field(const struct rpma_##cfg* handle, Value* value) { \
        return get_field<Class>(handle, &Class::Fields::field, value);            \
    }
// NOLINTEND(bugprone-macro-parentheses)

CFG(peer_cfg, PeerCfg)
CFG_FIELD(peer_cfg, PeerCfg, direct_write_to_pmem, bool)

int rpma_peer_cfg_get_descriptor(const struct rpma_peer_cfg* pcfg, void* desc) {
    return Entry::on<PeerCfg>(pcfg, {{desc != nullptr, "desc is NULL"}}, [&](const PeerCfg& cfg) {
        *static_cast<std::uint8_t*>(desc) = cfg.fields().direct_write_to_pmem ? 1 : 0;
        return 0;
    });
}

int rpma_peer_cfg_get_descriptor_size(const struct rpma_peer_cfg* pcfg, size_t* desc_size) {
    return get_value<PeerCfg>(pcfg, desc_size, "desc_size is NULL",
                              [](const PeerCfg&) { return sizeof(std::uint8_t); });
}

int rpma_peer_cfg_from_descriptor(const void* desc, size_t desc_size, struct rpma_peer_cfg** pcfg_ptr) {
    return Entry::run(nullptr, [&] {
        if (desc == nullptr || desc_size < sizeof(std::uint8_t))
            return failed(RPMA_E_INVAL, "desc is NULL, or desc_size is 0");
        const bool supported = *static_cast<const std::uint8_t*>(desc) != 0;
        if (const int result = make_cfg<PeerCfg>(pcfg_ptr); result != 0) return result;
        return rpma_peer_cfg_set_direct_write_to_pmem(*pcfg_ptr, supported);
    });
}

CFG(srq_cfg, SrqCfg)
CFG_FIELD(srq_cfg, SrqCfg, rq_size, uint32_t)
CFG_FIELD(srq_cfg, SrqCfg, rcq_size, uint32_t)

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

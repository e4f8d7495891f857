// SPDX-License-Identifier: BSD-3-Clause
#include "api/rpma/peer_cfg.hpp"

#include "api/rpma/cfg_field.hpp"

using namespace viaduct;
using namespace viaduct::rpma;

int rpma_peer_cfg_new(struct rpma_peer_cfg** pcfg_ptr) {
    return Entry::run(nullptr, [&] { return make_cfg<PeerCfg>(pcfg_ptr); });
}

int rpma_peer_cfg_delete(struct rpma_peer_cfg** pcfg_ptr) {
    return Entry::run(nullptr, [&] { return destroy<PeerCfg>(pcfg_ptr); });
}

int rpma_peer_cfg_set_direct_write_to_pmem(struct rpma_peer_cfg* pcfg, bool supported) {
    return set_field<PeerCfg>(pcfg, &PeerCfg::Fields::direct_write_to_pmem, supported);
}

int rpma_peer_cfg_get_direct_write_to_pmem(const struct rpma_peer_cfg* pcfg, bool* supported) {
    return get_field<PeerCfg>(pcfg, &PeerCfg::Fields::direct_write_to_pmem, supported);
}

int rpma_peer_cfg_get_descriptor(const struct rpma_peer_cfg* pcfg, void* desc) {
    return Entry::on<PeerCfg>(pcfg, {{desc != nullptr, "desc is NULL"}}, [&](const PeerCfg& cfg) {
        *static_cast<std::uint8_t*>(desc) = cfg.fields().direct_write_to_pmem ? 1 : 0;
        return 0;
    });
}

int rpma_peer_cfg_get_descriptor_size(const struct rpma_peer_cfg* pcfg, size_t* desc_size) {
    return Entry::run(pcfg, [&] {
        if (!failure::require({{resolve<PeerCfg>(pcfg) != nullptr, "pcfg is not valid"},
                               {desc_size != nullptr, "desc_size is NULL"}}))
            return RPMA_E_INVAL;
        *desc_size = sizeof(std::uint8_t);
        return 0;
    });
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

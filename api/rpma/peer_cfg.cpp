// SPDX-License-Identifier: BSD-3-Clause
#include "api/rpma/peer_cfg.hpp"

#include "api/rpma/cfg_field.hpp"

using namespace viaduct;
using namespace viaduct::rpma;

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

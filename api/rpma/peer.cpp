// SPDX-License-Identifier: BSD-3-Clause
#include "api/rpma/peer.hpp"

#include "api/rpma/context.hpp"
#include "api/rpma/log.hpp"

using namespace viaduct;
using namespace viaduct::rpma;

namespace {

int make_peer(const DeviceId& id, rpma_peer** peer) {
    auto device = rpma::open_device(id);
    if (!device.ok()) return failed(device.status());
    auto domain = ProtectionDomain::create(std::move(*device));
    if (!domain.ok()) return failed(domain.status());
    hand_over(std::make_unique<Peer>(std::move(*domain), id), peer);
    return 0;
}

/// Objects created with a deleted peer stay valid because they share its domain.
int check_unused_peer(const Peer& peer) noexcept {
    if (!peer.domain()->in_use()) return 0;
    return failed({Code::Busy, "the peer is still in use"});
}

}  // namespace

int rpma_peer_new(struct ibv_context* ibv_ctx, struct rpma_peer** peer_ptr) {
    return Entry::run(ibv_ctx, [&] {
        const auto id = device_of(ibv_ctx);
        if (!failure::require({{id.has_value(), no_context}, {peer_ptr != nullptr, "peer_ptr is NULL"}}))
            return RPMA_E_INVAL;
        return make_peer(*id, peer_ptr);
    });
}

int rpma_peer_delete(struct rpma_peer** peer_ptr) { return destroy<Peer>(peer_ptr, check_unused_peer); }

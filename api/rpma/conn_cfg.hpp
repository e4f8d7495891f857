// SPDX-License-Identifier: BSD-3-Clause
// Configurations of connections.
#pragma once

#include <atomic>

#include "api/rpma/handles.hpp"

namespace viaduct::rpma {

/// A configuration at the moment of its use.
struct ConnSettings {
    int timeout_ms = -1;  ///< negative: the program has set none
    std::uint32_t cq_size = 10;
    std::uint32_t rcq_size = 0;  ///< 0: no queue for receives alone
    std::uint32_t sq_size = 10;
    std::uint32_t rq_size = 10;
    bool shared_channel = false;
    rpma_srq* srq = nullptr;
};

class ConnCfg {
public:
    ConnCfg() : registration_(this) {}
    rpma_conn_cfg* handle() const noexcept { return static_cast<rpma_conn_cfg*>(registration_.handle()); }

    ConnSettings settings() const noexcept {
        return {.timeout_ms = timeout_ms,
                .cq_size = cq_size,
                .rcq_size = rcq_size,
                .sq_size = sq_size,
                .rq_size = rq_size,
                .shared_channel = shared_channel,
                .srq = srq};
    }

    std::atomic<int> timeout_ms{ConnSettings{}.timeout_ms};
    std::atomic<std::uint32_t> cq_size{ConnSettings{}.cq_size};
    std::atomic<std::uint32_t> rcq_size{ConnSettings{}.rcq_size};
    std::atomic<std::uint32_t> sq_size{ConnSettings{}.sq_size};
    std::atomic<std::uint32_t> rq_size{ConnSettings{}.rq_size};
    std::atomic<bool> shared_channel{ConnSettings{}.shared_channel};
    std::atomic<rpma_srq*> srq{ConnSettings{}.srq};

private:
    Registration<ConnCfg> registration_;
};

/// What a program asks for: the defaults where it passes NULL. False: not a configuration.
bool read_settings(const rpma_conn_cfg* cfg, ConnSettings& settings) noexcept;

}  // namespace viaduct::rpma

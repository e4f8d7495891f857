// SPDX-License-Identifier: BSD-3-Clause
// Connection configurations.
#pragma once

#include <atomic>
#include <cstddef>

#include "api/rpma/handles.hpp"

namespace viaduct::rpma {

/// A copy of a configuration, taken when it is used.
struct ConnSettings {
    int timeout_ms = -1;  ///< negative: not set by the program
    std::uint32_t cq_size = 10;
    std::uint32_t rcq_size = 0;  ///< 0: no separate completion queue for receives
    std::uint32_t sq_size = 10;
    std::uint32_t rq_size = 10;
    bool shared_channel = false;
    rpma_srq* srq = nullptr;
};

/// The layout of stock librpma.
struct ConnFields {
    std::atomic<int> timeout_ms{RPMA_DEFAULT_TIMEOUT_MS};
    std::atomic<std::uint32_t> cq_size{ConnSettings{}.cq_size};
    std::atomic<std::uint32_t> rcq_size{ConnSettings{}.rcq_size};
    std::atomic<std::uint32_t> sq_size{ConnSettings{}.sq_size};
    std::atomic<std::uint32_t> rq_size{ConnSettings{}.rq_size};
    std::atomic<bool> compl_channel{ConnSettings{}.shared_channel};
    std::atomic<rpma_srq*> srq{ConnSettings{}.srq};
};

class ConnCfg final : public WithHandle<ConnCfg, rpma_conn_cfg, 5, ConnFields> {
public:
    static constexpr const char* invalid_handle = no_cfg;

    void set_timeout(int timeout_ms) noexcept {
        fields().timeout_ms = timeout_ms;
        timeout_set_ = true;
    }

    ConnSettings settings() const noexcept {
        const Fields& now = fields();
        return {.timeout_ms = timeout_set_ ? now.timeout_ms.load() : ConnSettings{}.timeout_ms,
                .cq_size = now.cq_size,
                .rcq_size = now.rcq_size,
                .sq_size = now.sq_size,
                .rq_size = now.rq_size,
                .shared_channel = now.compl_channel,
                .srq = now.srq};
    }

private:
    std::atomic<bool> timeout_set_{false};
};
static_assert(offsetof(ConnCfg::Fields, rq_size) == 16 && offsetof(ConnCfg::Fields, compl_channel) == 20 &&
              offsetof(ConnCfg::Fields, srq) == 24);

/// Reads a configuration, or the defaults if the program passes NULL. Returns false if the pointer is not a
/// configuration.
bool read_settings(const rpma_conn_cfg* cfg, ConnSettings& settings) noexcept;

}  // namespace viaduct::rpma

// SPDX-License-Identifier: BSD-3-Clause
// Configurations. Their fields are visible to programs, with the layout of stock librpma. Each field is atomic, so that
// threads may share a configuration. Settings are a copy of a configuration, taken when it is used.
#pragma once

#include <atomic>
#include <cstddef>

#include "api/rpma/handles.hpp"

namespace viaduct::rpma {

struct PeerFields {
    std::atomic<bool> direct_write_to_pmem{false};
};

/// A configuration that peers send each other.
class PeerCfg final : public WithHandle<PeerCfg, rpma_peer_cfg, 2, PeerFields> {
public:
    static constexpr const char* invalid_handle = "pcfg is not a configuration of a peer";
};

struct SrqSettings {
    std::uint32_t rq_size = 20;
    std::uint32_t rcq_size = 20;  ///< 0: no completion queue
};

struct SrqFields {
    std::atomic<std::uint32_t> rq_size{SrqSettings{}.rq_size};
    std::atomic<std::uint32_t> rcq_size{SrqSettings{}.rcq_size};
};

/// A configuration of shared receive queues.
class SrqCfg final : public WithHandle<SrqCfg, rpma_srq_cfg, 6, SrqFields> {
public:
    static constexpr const char* invalid_handle = "cfg is not a configuration of shared receive queues";

    SrqSettings settings() const noexcept { return {.rq_size = fields().rq_size, .rcq_size = fields().rcq_size}; }
};

struct ConnSettings {
    int timeout_ms = -1;  ///< negative: not set by the program
    std::uint32_t cq_size = 10;
    std::uint32_t rcq_size = 0;  ///< 0: no separate completion queue for receives
    std::uint32_t sq_size = 10;
    std::uint32_t rq_size = 10;
    bool shared_channel = false;
    rpma_srq* srq = nullptr;
};

struct ConnFields {
    std::atomic<int> timeout_ms{RPMA_DEFAULT_TIMEOUT_MS};
    std::atomic<std::uint32_t> cq_size{ConnSettings{}.cq_size};
    std::atomic<std::uint32_t> rcq_size{ConnSettings{}.rcq_size};
    std::atomic<std::uint32_t> sq_size{ConnSettings{}.sq_size};
    std::atomic<std::uint32_t> rq_size{ConnSettings{}.rq_size};
    std::atomic<bool> compl_channel{ConnSettings{}.shared_channel};
    std::atomic<rpma_srq*> srq{ConnSettings{}.srq};
};

/// A configuration of connections.
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

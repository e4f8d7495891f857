// SPDX-License-Identifier: BSD-3-Clause
// Decides which calls of a backend fail and which requests are lost.
#pragma once

#include <chrono>
#include <cstdint>

#include "viaduct/attributes.hpp"
#include "viaduct/status.hpp"
#include "viaduct/work.hpp"

namespace viaduct::faults {

/// The kinds of calls that can fail.
enum class Call : std::uint8_t {
    Open,      ///< opens a device
    Create,    ///< creates another object, except memory regions
    Register,  ///< of memory
    Connect,   ///< connects an endpoint or accepts a request
    Post,      ///< of one request
    Other,
};

/// Counts what happens to an endpoint or a listener, from 1.
struct Turn {
    std::uint32_t object = 0;           ///< the number of the endpoint, or of the listener
    std::uint64_t number = 0;           ///< of the request, of all of the object
    std::uint64_t since_connected = 0;  ///< endpoints only: of the requests since the last call that connects
};

/// What happens to a request instead of its execution.
struct Fault {
    CompletionCode code = CompletionCode::Success;  ///< see SendRequest::fault; Success: nothing
    const char* name = "";
};

/// Thread-safe.
class Plan {
public:
    virtual ~Plan() = default;

    /// Called before each call that can fail. If this returns an error, so does the call, without any effect. `object`
    /// is what a call of the kind Open or Create creates.
    virtual Status before(Call call, const char* object) noexcept = 0;

    /// How long to wait before a request is posted to a send queue. `turn` is the same until it has been posted.
    virtual std::chrono::nanoseconds delay_of(const Turn& turn) noexcept {
        (void)turn;
        return {};
    }

    /// What happens to this request; called as delay_of(). The request has no fault.
    virtual Fault fault_of(const SendRequest& request, Reliability reliability, const Turn& turn) noexcept {
        (void)request, (void)reliability, (void)turn;
        return {};
    }

    /// Whether a connection request is rejected, as if by the program.
    virtual bool rejects(const Turn& turn) noexcept {
        (void)turn;
        return false;
    }
};

}  // namespace viaduct::faults

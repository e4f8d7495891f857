// SPDX-License-Identifier: BSD-3-Clause
// How the measuring library reports failures: exceptions whose text is fit to be shown to the user.
#pragma once

#include <stdexcept>

namespace viaduct::measure {

struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The peer ended the connection, or it broke.
struct Closed : Error {
    using Error::Error;
};

/// It was worth waiting for the failure to go away.
struct PassingError : Error {
    using Error::Error;
};

/// The host answers, and nobody listens on the service.
struct NoListener : PassingError {
    using PassingError::PassingError;
};

/// The server serves another client.
struct Busy : PassingError {
    using PassingError::PassingError;
};

/// The peer did not answer in time.
struct TimedOut : PassingError {
    using PassingError::PassingError;
};

/// What an attempt says that ends before its time. Only the log tells a peer with another key from a missing route.
inline constexpr const char* not_reached =
    "the server cannot be reached, or does not accept this peer (VIADUCT_LOG=info tells more)";

}  // namespace viaduct::measure

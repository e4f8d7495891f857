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

}  // namespace viaduct::measure

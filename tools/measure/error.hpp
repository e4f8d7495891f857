// SPDX-License-Identifier: BSD-3-Clause
// How the measuring library reports failures: exceptions whose text is fit to be shown to the user.
#pragma once

#include <stdexcept>

namespace viaduct::measure {

class Error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;

    /// Whether it was worth waiting for the failure to go away.
    virtual bool might_pass() const noexcept { return false; }
};

/// The peer ended the connection, or it broke.
class Closed : public Error {
public:
    using Error::Error;
};

/// The host answers, and nobody listens on the service.
class NoListener : public Error {
public:
    using Error::Error;
    bool might_pass() const noexcept override { return true; }
};

/// The server serves another client.
class Busy : public Error {
public:
    using Error::Error;
    bool might_pass() const noexcept override { return true; }
};

/// The peer did not answer in time.
class TimedOut : public Error {
public:
    using Error::Error;
    bool might_pass() const noexcept override { return true; }
};

}  // namespace viaduct::measure

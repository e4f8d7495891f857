// SPDX-License-Identifier: BSD-3-Clause
// A server in a process of its own, for a measurement on this host.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

#include "core/base/unique_fd.hpp"
#include "tools/measure/error.hpp"

namespace viaduct::measure {

/// Ends with this object, or with this process.
class ServerProcess {
public:
    /// Calls `serve`, which throws nothing, in the process, with a descriptor to report through.
    template <class Serve>
    explicit ServerProcess(Serve serve) {
        std::array<int, 2> ends{};
        if (pipe(ends.data()) != 0) throw Error(std::string("pipe: ") + std::strerror(errno));
        const pid_t parent = getpid();
        child_ = fork();
        if (child_ < 0) throw Error(std::string("fork: ") + std::strerror(errno));
        if (child_ == 0) {
            close(ends[0]);
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (const int stop : {SIGINT, SIGTERM}) (void)signal(stop, SIG_IGN);  // the client ends the measurement
            if (getppid() == parent) serve(ends[1]);
            _exit(0);
        }
        close(ends[1]);
        report_ = UniqueFd(ends[0]);
    }
    ~ServerProcess() {
        kill(child_, SIGKILL);
        waitpid(child_, nullptr, 0);
    }

    /// What it reports, or nothing once it has ended.
    template <class Value>
    std::optional<Value> hear() {
        Value value{};
        return read(report_.get(), &value, sizeof value) == sizeof value ? std::optional(value) : std::nullopt;
    }

private:
    pid_t child_ = -1;
    UniqueFd report_;
};

}  // namespace viaduct::measure

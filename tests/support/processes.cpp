// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/processes.hpp"

#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace viaduct::testing {
namespace {

constexpr unsigned patience_seconds = 240;
constexpr uid_t nobody = 65534;

/// The network namespace of host 2: a file that tests/hosts/hosts.py names.
const char* const host_2 = std::getenv("VIADUCT_TEST_HOST_2");
int host = host_2 == nullptr ? 0 : 1;

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

std::pair<Wire, Wire> make_wire() {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) fail("socketpair");
    return {Wire(ends[0]), Wire(ends[1])};
}

std::string read_text(int fd) {
    std::string text;
    std::array<char, 512> part{};
    for (ssize_t size = 0; (size = ::read(fd, part.data(), part.size())) > 0;)
        text.append(part.data(), static_cast<std::size_t>(size));
    return text;
}

/// Runs in the child until it exits. Skips exit handlers, which belong to the parent's test runner.
[[noreturn]] void live(const Script& script, Wire& wire, int report) noexcept {
    alarm(patience_seconds);  // terminates a script that hangs
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // The test runner's handlers would report the failures of the parent's test case again.
    for (const int number : {SIGINT, SIGILL, SIGFPE, SIGSEGV, SIGTERM, SIGABRT}) ::signal(number, SIG_DFL);
    try {
        script(wire);
    } catch (const std::exception& error) {
        const std::string text = error.what();
        _exit(::write(report, text.data(), text.size()) > 0 ? 1 : 2);
    }
    _exit(0);
}

void move_to_host_2() {
    if (host_2 == nullptr) return;
    const int network = open(host_2, O_RDONLY | O_CLOEXEC);
    if (network < 0 || setns(network, CLONE_NEWNET) != 0) fail(host_2);
    close(network);
    host = 2;
}

std::string describe(int status) {
    if (WIFSIGNALED(status)) return "killed by signal " + std::to_string(WTERMSIG(status));
    return "exit status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

Wire::Wire(Wire&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Wire& Wire::operator=(Wire&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
}

Wire::~Wire() { close(); }

void Wire::close() noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

void Wire::write_all(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const char*>(data);
    for (std::size_t done = 0; done < size;) {
        const ssize_t count = ::send(fd_, bytes + done, size - done, MSG_NOSIGNAL);
        if (count <= 0) throw std::runtime_error("the other process has hung up (write)");
        done += static_cast<std::size_t>(count);
    }
}

void Wire::read_all(void* data, std::size_t size) {
    auto* bytes = static_cast<char*>(data);
    for (std::size_t done = 0; done < size;) {
        const ssize_t count = ::recv(fd_, bytes + done, size - done, 0);
        if (count <= 0) throw std::runtime_error("the other process has hung up (read)");
        done += static_cast<std::size_t>(count);
    }
}

Child::Child(const Script& script) : wire_(-1), report_(-1), pid_(-1) {
    auto [parent_end, child_end] = make_wire();
    std::array<int, 2> report{};
    if (pipe(report.data()) != 0) fail("pipe");
    std::fflush(nullptr);
    pid_ = fork();
    if (pid_ < 0) fail("fork");
    if (pid_ == 0) {
        parent_end.close();
        ::close(report[0]);
        live(script, child_end, report[1]);
    }
    ::close(report[1]);
    report_ = report[0];
    wire_ = std::move(parent_end);
}

Child::~Child() {
    kill();
    ::close(report_);
}

void Child::kill() noexcept {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    wait();
}

int Child::wait() noexcept {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
}

void Child::finish() {
    const std::string text = read_text(report_);
    const int status = wait();
    if (!text.empty()) throw std::runtime_error(text);
    const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (status != 0 && !killed) throw std::runtime_error("a test process ended by " + describe(status));
}

int own_host() noexcept { return host; }

void run_processes(const Script& first, const Script& second) {
    // The parent only creates the wire: each child inherits one end and closes the other.
    auto [first_end, second_end] = make_wire();
    Wire* const ends[] = {&first_end, &second_end};
    Child one([&](Wire&) {
        ends[1]->close();
        first(*ends[0]);
    });
    first_end.close();
    Child two([&](Wire&) {
        move_to_host_2();
        second(*ends[1]);
    });
    second_end.close();
    std::string failures;
    for (Child* child : {&one, &two}) {
        try {
            child->finish();
        } catch (const std::exception& error) {
            failures += (failures.empty() ? "" : "; ") + std::string(error.what());
        }
    }
    if (!failures.empty()) throw std::runtime_error(failures);
}

void die() noexcept {
    ::kill(getpid(), SIGKILL);
    _exit(3);
}

void sleep_until_hangup(Wire& wire) noexcept {
    try {
        wire.await();
    } catch (const std::exception&) {
        return;  // the hang-up
    }
}

void forbid_process_vm() {
    constexpr auto number = static_cast<unsigned>(offsetof(seccomp_data, nr));
    std::array filter{
        sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, number),
        sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_process_vm_readv, 1, 0),
        sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_process_vm_writev, 0, 1),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{.len = static_cast<unsigned short>(filter.size()), .filter = filter.data()};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("PR_SET_NO_NEW_PRIVS");
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) fail("seccomp");
}

void become_nobody() {
    if (setgroups(0, nullptr) != 0) fail("setgroups");
    if (setgid(nobody) != 0) fail("setgid");
    if (setuid(nobody) != 0) fail("setuid");
}

}  // namespace viaduct::testing

// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/trace/tracer.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace viaduct::trace {
namespace {

Tracer* the_tracer = nullptr;
pthread_key_t thread_key;
thread_local Thread* current_thread __attribute__((tls_model("initial-exec"))) = nullptr;

/// Writes to a closed pipe, and past a limit of file sizes, would end the program with a signal.
class BlockedSignals {
public:
    BlockedSignals() {
        sigset_t pending;
        sigemptyset(&ours_);
        sigaddset(&ours_, SIGPIPE);
        sigaddset(&ours_, SIGXFSZ);
        sigpending(&pending);
        was_pending_ = sigismember(&pending, SIGPIPE) == 1 || sigismember(&pending, SIGXFSZ) == 1;
        pthread_sigmask(SIG_BLOCK, &ours_, &before_);
    }

    ~BlockedSignals() {
        const timespec at_once{};
        if (!was_pending_)
            while (sigtimedwait(&ours_, nullptr, &at_once) > 0) continue;
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }

    BlockedSignals(const BlockedSignals&) = delete;
    BlockedSignals& operator=(const BlockedSignals&) = delete;

private:
    sigset_t ours_;
    sigset_t before_;
    bool was_pending_;
};

/// The system calls of the tracer would cancel threads in calls that are no cancellation points.
class DisabledCancellation {
public:
    DisabledCancellation() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
    ~DisabledCancellation() { pthread_setcancelstate(before_, nullptr); }
    DisabledCancellation(const DisabledCancellation&) = delete;
    DisabledCancellation& operator=(const DisabledCancellation&) = delete;

private:
    int before_ = PTHREAD_CANCEL_ENABLE;
};

/// A descriptor of vi-run, from this process.
int open_descriptor(std::uint32_t process, std::int32_t descriptor, int flags) {
    std::array<char, 64> path{};
    std::snprintf(path.data(), path.size(), "/proc/%u/fd/%d", process, descriptor);
    return open(path.data(), flags | O_CLOEXEC | O_NOCTTY);
}

/// Out of the way of programs that count on the lowest descriptors.
int move_up(int fd) {
    constexpr int lowest = 200;
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, lowest);
    if (moved < 0) return fd;
    close(fd);
    return moved;
}

}  // namespace

Output::Output(Board& board) : board_(board) { open(); }

void Output::open() {
    fd_ = -1;  // the number may be that of the program's own file
    if (board_.output < 0) return;
    int fd = open_descriptor(board_.vi_run, board_.output, O_WRONLY | O_APPEND);
    if (fd < 0 && board_.output == STDERR_FILENO) fd = dup(STDERR_FILENO);  // sockets have no path
    if (fd < 0) return give_up(errno);
    fd_ = move_up(fd);
    fstat(fd_, &identity_);
}

/// Programs close descriptors that they do not know, and get the numbers for their own files.
bool Output::is_still_open() const {
    struct stat status {};
    return fd_ >= 0 && fstat(fd_, &status) == 0 && status.st_dev == identity_.st_dev &&
           status.st_ino == identity_.st_ino;
}

void Output::write(std::string_view text) {
    if (board_.gave_up.load(std::memory_order_relaxed) != 0) return;
    const DisabledCancellation disabled;
    int fd = -1;
    {
        const std::lock_guard guard(mutex_);
        if (!is_still_open()) open();
        fd = fd_;
    }
    if (fd < 0) return;
    const BlockedSignals blocked;
    if (const int error = write_all(fd, text); error != 0) give_up(error);
}

void Output::give_up(int reason) {
    if (board_.gave_up.exchange(1) != 0) return;
    std::array<char, 256> text{};
    const int length =
        std::snprintf(text.data(), text.size(), "vi-run: cannot write the trace: %s; the program goes on untraced\n",
                      strerrordesc_np(reason));
    const BlockedSignals blocked;
    (void)!::write(STDERR_FILENO, text.data(), static_cast<std::size_t>(length));
}

Tracer::Tracer(Board& board)
    : board_(board), output_(board), pid_(static_cast<std::uint32_t>(getpid())), announced_(new std::once_flag) {
    salvage(board_, pid_, [&](std::string_view text) { output_.write(text); });  // of the program before execve()
}

void Tracer::claim_slot(Thread& thread) {
    for (std::size_t number = 0; number < Board::slots; ++number) {
        std::uint32_t nobody = 0;
        if (board_.owner[number].load(std::memory_order_relaxed) != 0) continue;
        if (!board_.owner[number].compare_exchange_strong(nobody, pid_)) continue;
        thread.slot_number = static_cast<int>(number);
        thread.slot = &board_.slot[number];
        return;
    }
    thread.own_slot.reset(new (std::nothrow) Slot);
    thread.slot = thread.own_slot.get();
}

Thread* Tracer::thread() {
    if (current_thread != nullptr) return current_thread;
    auto* thread = new (std::nothrow) Thread;
    if (thread == nullptr) return nullptr;
    claim_slot(*thread);
    if (thread->slot == nullptr) {
        delete thread;
        return nullptr;
    }
    thread->slot->tid = static_cast<std::uint32_t>(syscall(SYS_gettid));
    thread->slot->pending.store(0);
    thread->slot->fold_count.store(0);
    pthread_setspecific(thread_key, thread);
    return current_thread = thread;
}

void Tracer::flush(Thread& thread) {
    write_folds(board_, *thread.slot, pid_, [this](std::string_view text) { output_.write(text); });
}

void Tracer::release(Thread& thread) {
    if (thread.slot_number >= 0) board_.owner[static_cast<std::size_t>(thread.slot_number)].store(0);
}

void Tracer::announce() {
    std::call_once(*announced_, [&] {
        const DisabledCancellation disabled;
        constexpr std::size_t most = 256, longest_escape = 6, rest = 512;
        std::array<char, most> command{};
        const int fd = ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
        ssize_t length = fd < 0 ? 0 : std::max<ssize_t>(0, read(fd, command.data(), command.size()));
        if (fd >= 0) close(fd);
        while (length > 0 && command[static_cast<std::size_t>(length) - 1] == '\0') --length;
        std::replace(command.begin(), command.begin() + length, '\0', ' ');
        std::array<char, longest_escape * most + rest> buffer{};
        std::array<char, most + rest / 2> words{};
        Text detail(words, Format::Text);
        detail.raw(std::string_view(command.data(), static_cast<std::size_t>(length)));
        if (forked_from_ != 0) detail.raw(" (forked from ", forked_from_, ")");
        Text text(buffer, board_.format);
        write_event(text, board_, pid_, started, detail.view());
        output_.write(text.view());
    });
}

/// Of the threads only the one that forked exists, and its slot belongs to the parent.
void Tracer::after_fork() {
    forked_from_ = pid_;
    pid_ = static_cast<std::uint32_t>(getpid());
    current_thread = nullptr;
    pthread_setspecific(thread_key, nullptr);
    announced_ = new std::once_flag;
}

Tracer* tracer() { return the_tracer; }

void end_thread(void* thread) {
    const std::unique_ptr<Thread> ended(static_cast<Thread*>(thread));
    the_tracer->flush(*ended);
    the_tracer->release(*ended);
    current_thread = nullptr;
}

void lock_names();
void unlock_names();

namespace {

void before_fork() {
    lock_names();
    the_tracer->output().lock();
}

void after_fork() {
    the_tracer->output().unlock();
    unlock_names();
}

void after_fork_in_child() {
    after_fork();
    the_tracer->after_fork();
}

/// The descriptor and the process of the variable: "PROCESS:DESCRIPTOR".
void* map_board() {
    const char* variable = std::getenv(board_variable);
    unsigned process = 0;
    int descriptor = 0;
    if (variable == nullptr || std::sscanf(variable, "%u:%d", &process, &descriptor) != 2) return MAP_FAILED;
    const int fd = open_descriptor(process, descriptor, O_RDWR);
    if (fd < 0) return MAP_FAILED;  // vi-run has ended
    void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return memory;
}

__attribute__((constructor)) void start_tracing() {
    void* memory = map_board();
    if (memory == MAP_FAILED) return;
    auto& board = *static_cast<Board*>(memory);
    if (board.version != Board::current_version || pthread_key_create(&thread_key, end_thread) != 0) return;
    the_tracer = new (std::nothrow) Tracer(board);
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

__attribute__((destructor)) void stop_tracing() {
    if (the_tracer != nullptr && current_thread != nullptr) the_tracer->flush(*current_thread);
}

}  // namespace
}  // namespace viaduct::trace

/* SPDX-License-Identifier: BSD-3-Clause
 * The harness of the conformance programs; see harness.h.
 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

enum { GUARD_S = 60, SKIPPED = 77, MAX_PEERS = 4, MAX_WHY = 400 };

unsigned patience(void) {
    const char *text = getenv("CONFORMANCE_PATIENCE");
    const int factor = text != NULL ? atoi(text) : 1;
    return factor > 0 ? (unsigned)factor : 1;
}

static unsigned guard_s(void) { return GUARD_S * patience(); }

static TestCase *cases;
static int report_fd = -1; /* the runner reads from it why a case failed */

void register_case(TestCase *test_case) {
    TestCase **end = &cases;
    while (*end != NULL) end = &(*end)->next;
    *end = test_case;
}

#ifdef __SANITIZE_THREAD__
/* Every case has its own processes. Without this, each would wait a second for late reports before it exits. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "atexit_sleep_ms=0"; }
#endif

#ifdef __SANITIZE_ADDRESS__
/* Each process of each case would search for leaks at its end, which takes longer than most cases. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return getenv("CONFORMANCE_IGNORE_LEAKS") != NULL; }
#endif

/* ---- Checks ------------------------------------------------------------------------------------------------------ */

void fail(const char *file, int line, const char *format, ...) {
    char why[MAX_WHY];
    const char *base = strrchr(file, '/');
    int length = snprintf(why, sizeof why, "%s:%d: ", base != NULL ? base + 1 : file, line);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why + length, sizeof why - (size_t)length, format, arguments);
    va_end(arguments);
    if (write(report_fd, why, strlen(why) + 1) < 0) perror(why);
    kill(0, SIGKILL); /* all processes of the case */
    _exit(1);
}

bool lacks(const char *what) {
    const char *list = getenv("VIADUCT_TEST_LACKS");
    return list != NULL && strstr(list, what) != NULL;
}

void skip(const char *why) {
    if (write(report_fd, why, strlen(why) + 1) < 0) perror(why);
    _exit(SKIPPED);
}

void check_equal(const char *file, int line, const char *what, unsigned long long actual, unsigned long long expected) {
    if (actual != expected)
        fail(file, line, "%s is %llu (0x%llx), not %llu (0x%llx)", what, actual, actual, expected, expected);
}

/* As the kernel has it: the letter behind the name, which is in parentheses. */
static char state_of_thread(pid_t thread) {
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    FILE *file = fopen(path, "r");
    if (file == NULL) return '?';
    char *read = fgets(line, sizeof line, file);
    fclose(file);
    char *end = read != NULL ? strrchr(line, ')') : NULL;
    return end != NULL ? end[2] : '?';
}

int thread_sleeps(pid_t thread) {
    const struct timespec pause = {0, 1000000};
    for (int seen = 0; seen < 10; ++seen) {
        if (state_of_thread(thread) != 'S') return 0;
        nanosleep(&pause, NULL);
    }
    return 1;
}

/* ---- Helper processes -------------------------------------------------------------------------------------------- */

struct Peer {
    pid_t pid;
    int fd;
};

typedef struct {
    PeerFunction function;
    size_t size;
} Request;

static Peer peers[MAX_PEERS];
static int peer_count;

/* Reads or writes all bytes. Returns 0 if the other end is gone. */
static int move_all(int fd, void *data, size_t size, int writing) {
    char *at = data;
    while (size > 0) {
        ssize_t moved = writing ? send(fd, at, size, MSG_NOSIGNAL) : read(fd, at, size);
        if (moved < 0 && errno == EINTR) continue;
        if (moved <= 0) return 0;
        at += moved;
        size -= (size_t)moved;
    }
    return 1;
}

static void serve_case(int fd) {
    Request request;
    while (move_all(fd, &request, sizeof request, 0)) {
        void *argument = calloc(1, request.size + 1);
        CHECK(argument != NULL && move_all(fd, argument, request.size, 0));
        request.function(argument);
        CHECK(move_all(fd, argument, request.size, 1));
        free(argument);
    }
}

Peer *peer_start(void) {
    CHECK(peer_count < MAX_PEERS);
    Peer *peer = &peers[peer_count++];
    int fds[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    peer->pid = fork();
    CHECK(peer->pid >= 0);
    peer->fd = fds[0];
    if (peer->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 0; i < peer_count; ++i) close(peers[i].fd);
        peer_count = 0;
        serve_case(fds[1]);
        exit(0);
    }
    close(fds[1]);
    return peer;
}

void begin_on_peer(Peer *peer, PeerFunction function, const void *argument, size_t size) {
    Request request = {function, size};
    CHECK(move_all(peer->fd, &request, sizeof request, 1));
    CHECK(move_all(peer->fd, (void *)(uintptr_t)argument, size, 1));
}

void finish_on_peer(Peer *peer, void *argument, size_t size) {
    int status = 0;
    if (move_all(peer->fd, argument, size, 0)) return;
    waitpid(peer->pid, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) _exit(SKIPPED); /* it has reported the reason */
    fail(__FILE__, __LINE__, "the peer process ended, with wait status 0x%x", (unsigned)status);
}

void on_peer(Peer *peer, PeerFunction function, void *argument, size_t size) {
    begin_on_peer(peer, function, argument, size);
    finish_on_peer(peer, argument, size);
}

void peer_kill(Peer *peer) {
    CHECK(kill(peer->pid, SIGKILL) == 0);
    CHECK(waitpid(peer->pid, NULL, 0) == peer->pid);
    close(peer->fd);
    peer->pid = 0;
}

void peer_stop(Peer *peer) {
    int status;
    CHECK(kill(peer->pid, SIGSTOP) == 0);
    CHECK(waitpid(peer->pid, &status, WUNTRACED) == peer->pid && WIFSTOPPED(status));
}

void peer_continue(Peer *peer) { CHECK(kill(peer->pid, SIGCONT) == 0); }

/* Every peer must exit without a crash. */
static void peers_join(void) {
    for (int i = 0; i < peer_count; ++i) {
        int status = 0;
        if (peers[i].pid == 0) continue;
        close(peers[i].fd);
        CHECK(waitpid(peers[i].pid, &status, 0) == peers[i].pid);
        CHECK_EQ(status, 0);
    }
}

/* ---- The runner -------------------------------------------------------------------------------------------------- */

static void run_in_this_process(const TestCase *test_case) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(guard_s());
    test_case->run();
    peers_join();
    exit(0);
}

/* Describes why a case failed: the message of its check, or how its process ended. */
static void explain(int fd, int status, char why[MAX_WHY]) {
    ssize_t length = read(fd, why, MAX_WHY - 1);
    if (length > 0) {
        why[length] = '\0';
    } else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
        snprintf(why, MAX_WHY, "still running after %u s", guard_s());
    } else if (WIFSIGNALED(status)) {
        snprintf(why, MAX_WHY, "ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else {
        snprintf(why, MAX_WHY, "exit status %d", WEXITSTATUS(status));
    }
}

/* Runs a case and returns whether it passed. */
static int run_case(const TestCase *test_case) {
    int report[2];
    int status = 0;
    char why[MAX_WHY] = "";
    if (pipe2(report, O_CLOEXEC | O_NONBLOCK) != 0) return 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        report_fd = report[1];
        run_in_this_process(test_case);
    }
    waitpid(pid, &status, 0);
    kill(-pid, SIGKILL); /* processes that a failed case left behind */
    explain(report[0], status, why);
    close(report[0]);
    close(report[1]);
    int skipped = WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED;
    int passed = skipped || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
    if (skipped) {
        printf("ok %s # skip %s\n", test_case->name, why);
    } else if (passed) {
        printf("ok %s\n", test_case->name);
    } else {
        printf("not ok %s: %s\n", test_case->name, why);
    }
    return passed;
}

static const TestCase *find_case(const char *name) {
    for (const TestCase *each = cases; each != NULL; each = each->next) {
        if (strcmp(each->name, name) == 0) return each;
    }
    return NULL;
}

int main(int argc, char **argv) {
    int failed = 0;
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (const TestCase *each = cases; each != NULL; each = each->next) puts(each->name);
        return 0;
    }
    for (int i = 1; i < argc; ++i) {
        const TestCase *test_case = find_case(argv[i]);
        if (test_case == NULL) {
            fprintf(stderr, "%s: no case %s\n", argv[0], argv[i]);
            return 2;
        }
        failed += !run_case(test_case);
    }
    for (const TestCase *each = argc > 1 ? NULL : cases; each != NULL; each = each->next) failed += !run_case(each);
    return failed != 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * A sweep over failing calls; see sweep.h.
 */
#include "sweep.h"

#include "../support/failing_calls.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { NOTHING = -1, WARM_UP = -2 }; /* not steps: no call fails; the same, to load what stays loaded */
/* There may be more repeats than the backend tcp keeps idle links. */
enum { FIRST_PORT = 20000, PORT_BLOCKS = 6000, MAX_TRIES = 3, MAX_STEPS = 64, MAX_REPEATS = 20 };
enum { STEP_S = 15, LIFE_MS = 15000 }; /* what takes longer hangs */

Shared* shared;
Role role;
bool failing_here;
uint8_t* heap_memory;
uint8_t* file_memory;

/* The failure in a life. */
typedef struct {
    int step;
    CallKind kind;
    long nth;
    bool onwards;
} Failure;

static Failure failure;
static atomic_int* complaints; /* of both processes */
static pid_t case_process;
static const char* running; /* the step */
static long lives;          /* in which calls failed */

/* The state of the connection that both processes know. */
typedef enum { NONE, STANDING, LEFT } ConnectionState;

/* ---- Functions for steps ----------------------------------------------------------------------------------------- */

uint16_t port_of(int number) { return (uint16_t)(FIRST_PORT + case_process % PORT_BLOCKS * 2 + number); }

const char* host(void) {
    const char* address = getenv("CONFORMANCE_ADDRESS");
    return address != NULL ? address : "127.0.0.1";
}

static void pause_for(long microseconds) {
    const struct timespec pause = {0, microseconds * 1000};
    nanosleep(&pause, NULL);
}

bool is_set(atomic_bool* flag) {
    for (int waited = 0; !*flag && waited < SLICE_MS * 10; ++waited) pause_for(100);
    return *flag;
}

void begin_connection(void) { shared->connection = STANDING; }

bool leave(void) {
    int state = STANDING;
    return atomic_compare_exchange_strong(&shared->connection, &state, LEFT) || state == LEFT;
}

/* Returns whether the client has left the connection. If it has not, it no longer can. */
static bool was_left(void) {
    int state = STANDING;
    return role == SERVER && !atomic_compare_exchange_strong(&shared->connection, &state, NONE) && state == LEFT;
}

static const Step* steps(void) { return role == CLIENT ? client_steps : server_steps; }

static const char* life_text(void) {
    static char text[200];
    if (failure.step < 0) return "nothing fails";
    const Step* failing = (role == CLIENT) == failing_here ? client_steps : server_steps;
    snprintf(text, sizeof text, "%s %ld%s fails at the %s in '%s'", call_name(failure.kind), failure.nth,
             failure.onwards ? " and on" : "", failing == client_steps ? "client" : "server",
             failing[failure.step].name);
    return text;
}

Outcome complain(const char* format, ...) {
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s: %s: %s\n", life_text(), role == CLIENT ? "client" : "server", text);
    ++*complaints;
    return WRONG;
}

/* Says in which step a call hangs. */
static void on_alarm(int number) {
    (void)number;
    fail(__FILE__, __LINE__, "%s: %s hangs in '%s'", life_text(), role == CLIENT ? "client" : "server", running);
}

/* ---- Resources of a process -------------------------------------------------------------------------------------- */

typedef struct {
    long descriptors, mappings, threads, blocks; /* blocks of memory */
} Holdings;

static int count_entries(const char* directory) {
    int count = 0;
    DIR* entries = opendir(directory);
    CHECK(entries != NULL);
    while (readdir(entries) != NULL) ++count;
    closedir(entries);
    return count;
}

/* Counts mappings of files and memfds. Those of stacks and heaps may remain. */
static int count_mappings(void) {
    static char text[256 * 1024];
    int count = 0;
    size_t length = 0;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    for (ssize_t got; (got = read(fd, text + length, sizeof text - 1 - length)) > 0;) length += (size_t)got;
    close(fd);
    text[length] = '\0';
    for (const char* at = text; (at = strchr(at, '/')) != NULL; at = strchr(at, '\n')) {
        ++count;
    }
    return count;
}

static Holdings holdings(void) {
    return (Holdings){count_entries("/proc/self/fd"), count_mappings(), count_entries("/proc/self/task"),
                      heap_blocks()};
}

static bool has_grown(const Holdings* before, const Holdings* now) {
    return now->descriptors > before->descriptors || now->mappings > before->mappings ||
           now->threads > before->threads || now->blocks > before->blocks;
}

/* Returns whether the process holds more than before. Threads may release their resources shortly after they were told
   to. The library may keep something for later use, but not more each time that the same happens. */
static bool grows(Holdings before, bool last_time) {
    Holdings now = holdings();
    for (int tries = 0; tries < 100 && has_grown(&before, &now); ++tries) {
        pause_for(5000);
        now = holdings();
    }
    if (!has_grown(&before, &now)) return false;
    if (last_time)
        complain("each time, %ld descriptors, %ld mappings, %ld threads, %ld blocks of memory are left over",
                 now.descriptors - before.descriptors, now.mappings - before.mappings, now.threads - before.threads,
                 now.blocks - before.blocks);
    return true;
}

/* ---- Lives ------------------------------------------------------------------------------------------------------- */

static long failures_seen;
static long counts[MAX_STEPS][CALL_NONE]; /* number of calls in each step */

static Outcome run_step(int index, bool fails) {
    running = steps()[index].name;
    alarm(STEP_S * patience());
    if (!fails) return steps()[index].run();
    fail_calls(failure.kind, failure.nth, failure.onwards);
    Outcome outcome = steps()[index].run();
    long failed = restore_calls();
    failures_seen += failed;
    for (int kind = 0; kind < CALL_NONE; ++kind) counts[index][kind] += calls_made((CallKind)kind);
    if (outcome == REFUSED && failed == 0) complain("'%s' is refused though no call failed", steps()[index].name);
    return outcome;
}

static int anchor(void) {
    int index = 0;
    while (!steps()[index].anchor) ++index;
    return index;
}

static long long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* `counting`: counts the calls of every step. */
static void live(bool counting) {
    const Holdings before = holdings();
    const long long end = now_ms() + LIFE_MS * patience();
    int refusals = 0;
    failures_seen = 0;
    for (int index = 0; steps()[index].name != NULL;) {
        const bool fails = counting || (failing_here && index == failure.step && failures_seen == 0);
        Outcome outcome = run_step(index, fails);
        if (now_ms() > end) {
            complain("'%s' does not end", steps()[index].name);
            fail(__FILE__, __LINE__, "a life does not end: %s", life_text());
        }
        switch (outcome) {
            case DONE:
                ++index;
                refusals = 0;
                break;
            case NOT_YET: pause_for(200); break;
            case BROKEN: index = was_left() ? index + 1 : anchor(); break;
            case REFUSED:
                if (!fails) complain("'%s' is refused when tried again", steps()[index].name);
                /* fall through */
            case WRONG:
                if (++refusals > MAX_TRIES)
                    fail(__FILE__, __LINE__, "'%s' never succeeds: %s", steps()[index].name, life_text());
                break;
        }
    }
    if (failure.step != WARM_UP && grows(before, shared->repeats == MAX_REPEATS)) shared->grown = true;
}

static void live_as_partner(void* argument) {
    failure = *(Failure*)argument;
    live(false);
}

/* A life after which something is left over is repeated. */
static void run_life(Peer* partner, bool counting) {
    for (int repeats = 0; repeats <= MAX_REPEATS; ++repeats) {
        memset(shared, 0, sizeof *shared);
        shared->repeats = repeats;
        begin_on_peer(partner, live_as_partner, &failure, sizeof failure);
        live(counting);
        finish_on_peer(partner, &failure, sizeof failure);
        lives += failures_seen > 0;
        if (!shared->grown) return;
    }
}

/* ---- Sweeps ------------------------------------------------------------------------------------------------------ */

static void* map_shared(size_t size, int flags, int fd) {
    void* memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

static void prepare_process(void* partner_role) {
    if (partner_role != NULL) {
        role = *(Role*)partner_role;
        failing_here = false;
    }
    int fd = memfd_create("target", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK(fd >= 0 && ftruncate(fd, FILE_BYTES) == 0);
    CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
    file_memory = map_shared(FILE_BYTES, MAP_SHARED, fd);
    heap_memory = map_shared(HEAP_BYTES, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    signal(SIGALRM, on_alarm);
    prepare();
}

static long number_or(const char* text, long fallback) { return text != NULL ? atol(text) : fallback; }

static long percent = 100; /* of the failures are tried */

/* Whether this failure is among those to try. The choice depends only on the seed. */
static bool is_chosen(Role failing_role) {
    uint64_t hash = (uint64_t)number_or(getenv("VIADUCT_SWEEP_SEED"), 1);
    const long parts[] = {failing_role, failure.step, failure.kind, failure.nth, failure.onwards};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i)
        hash = (hash ^ (uint64_t)parts[i] ^ hash >> 29) * 0x9e3779b97f4a7c15U;
    return (long)((hash >> 32) % 100) < percent;
}

/* Goes on for as long as calls fail: there may be more of them than were counted. */
static void sweep_step(Peer* partner, int step, CallKind kind, long calls) {
    for (int onwards = 0; onwards <= 1; ++onwards) {
        failure = (Failure){step, kind, 1, onwards};
        for (failures_seen = 1; failures_seen > 0 || failure.nth <= calls; ++failure.nth) {
            failures_seen = 0;
            if (is_chosen(role)) run_life(partner, false);
        }
    }
}

/* Lets calls of some kinds fail. */
static void sweep(Role failing_role, CallKind first, CallKind last) {
    if (UNDER_SANITIZER && last == CALL_malloc) skip("a sanitizer has taken malloc");
    CHECK(setenv("VIADUCT_BACKEND", "loopback", 0) == 0);      /* searching for other backends would allocate, too */
    CHECK(setenv("VIADUCT_CONNECT_RETRY_MS", "2000", 1) == 0); /* the other one may start again, on a busy machine */
    case_process = getpid();
    shared = map_shared(sizeof *shared, MAP_SHARED | MAP_ANONYMOUS, -1);
    complaints = map_shared(sizeof *complaints, MAP_SHARED | MAP_ANONYMOUS, -1);
    Peer* partner = peer_start();
    Role other = failing_role == CLIENT ? SERVER : CLIENT;
    role = failing_role;
    failing_here = true;
    prepare_process(NULL);
    on_peer(partner, prepare_process, &other, sizeof other);

    failure = (Failure){WARM_UP, CALL_NONE, 0, false};
    run_life(partner, false);
    failure.step = NOTHING;
    run_life(partner, true);
    CHECK_EQ(*complaints, 0);
    long calls[MAX_STEPS][CALL_NONE], sum = 0;
    memcpy(calls, counts, sizeof calls);
    for (int step = 0; steps()[step].name != NULL; ++step) {
        for (CallKind kind = first; kind <= last; ++kind) {
            sum += calls[step][kind];
            if (calls[step][kind] > 0) sweep_step(partner, step, kind, calls[step][kind]);
        }
    }
    alarm(0);
    printf("%ld lives with a failure, %d complaints\n", lives, *complaints);
    fflush(stdout);
    CHECK_EQ(*complaints, 0);
    if (sum == 0) skip("no step makes such a call");
}

/* A part of the failures of all kinds. */
static void sweep_sample(Role failing_role) {
    percent = number_or(getenv("VIADUCT_SWEEP_PERCENT"), 2);
    sweep(failing_role, 0, CALL_NONE - 1);
}

TEST(client__sample) { sweep_sample(CLIENT); }
TEST(server__sample) { sweep_sample(SERVER); }

#define X(kind, result, code)                                         \
    TEST(client__##kind) { sweep(CLIENT, CALL_##kind, CALL_##kind); } \
    TEST(server__##kind) { sweep(SERVER, CALL_##kind, CALL_##kind); }
CALL_KINDS(X)
#undef X

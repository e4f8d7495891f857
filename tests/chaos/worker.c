/* SPDX-License-Identifier: BSD-3-Clause
 * A process of `./dev chaos` and `./dev soak`, compiled for each API. Each of its sessions is a thread with an end
 * (end.h) that connects again and again, as a client or a server, and exchanges messages, RDMA writes and RDMA reads
 * with a session of another worker, or of this one. Every byte is checked. Meanwhile the worker forks, takes resources
 * away from itself, interrupts its calls with signals and cancels threads that wait.
 *
 * usage: NAME BOARD WORKER SEED DISTURBED AT HOST SESSION...
 *
 * BOARD is the descriptor of a memory file that is shared with the script (board.py describes it), WORKER the number of
 * this worker there, DISTURBED a number: 0 if there is to be no chaos. AT is the device, HOST its address. A SESSION is
 * INDEX:TRAFFIC:s:PORT for a server and INDEX:TRAFFIC:c:PORT:HOST for a client of it, where INDEX is its number on the
 * board, and TRAFFIC that of what the two exchange.
 */
#include "end.h"

#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { connect_timeout_ms = 5000, sessions_of_a_worker = 16 };

/* What a client and a server exchange. */
typedef struct {
    unsigned window;  /* messages on their way in each direction */
    unsigned payload; /* at most, in bytes; also what peers may access */
    unsigned most;    /* messages of the client in a connection */
    bool streams;     /* only messages, of which the server answers the last one of a window; or all, and RDMA */
} Traffic;

static const Traffic traffics[] = {{4, 64 * 1024, 10, false}, {256, 64, 20000, true}};

/* ---- The board --------------------------------------------------------------------------------------------------- */

typedef enum { APART, CONNECTING, CONNECTED } State;
typedef enum { RUN, FINISH, EXECUTE, PAUSE } Order; /* of the script; clients that pause do not connect */

/* Only its own worker writes to it. Times are those of CLOCK_MONOTONIC, in nanoseconds. */
typedef struct {
    char call[24];          /* in which the session is */
    _Atomic uint64_t since; /* when it was made; 0 if it may last */
    _Atomic uint64_t state;
    _Atomic uint64_t connections;
    _Atomic uint64_t ended;    /* when the session noticed that its last connection had ended */
    _Atomic uint64_t progress; /* when the last message arrived */
    _Atomic uint64_t messages, bytes, opened, losses, cancelled, round_trips_ns;
} SessionBoard;

typedef struct {
    _Atomic uint64_t order;
    _Atomic uint64_t scarce; /* until when resources were or are scarce */
    _Atomic uint64_t forks, storms, shortages;
} WorkerBoard;

enum { board_sessions_at = 4096, board_bytes = 16384 };

static char* shared;
static WorkerBoard* board; /* of this worker, in it */

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void pause_us(long us) { nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL); }

/* ---- Sessions ---------------------------------------------------------------------------------------------------- */

typedef enum { SEND, WRITE, READ } Operation;

/* The beginning of each message. */
typedef struct {
    uint64_t number, operation, length; /* of this message and of the data that it tells of */
    uint64_t pattern;                   /* what they are made of */
    uint64_t asks, last;                /* for an answer, after which the client may end the connection */
    uint64_t area_pattern;
    Key key; /* of the memory */
} Header;

typedef struct {
    Header header;
    uint8_t payload[];
} Message;

typedef struct {
    End end;
    const Traffic* traffic;
    uint8_t* memory; /* places; peers may access it */
    SessionBoard* shown;
    pthread_t thread;
    int index;
    bool is_server;
    char port[8], host[16]; /* of the server */
    uint64_t random;
    char problem[200];             /* the first failure since the last wait */
    bool opened, listening, told;  /* told: a completion or event says that the connection has ended */
    unsigned sends, receives;      /* that are not completed */
    uint64_t shortages;            /* of the worker when the connection began */
    uint64_t own_area, peers_area; /* the patterns of what may be read */
} Session;

static Session* sessions[sessions_of_a_worker];
static size_t session_count;
static bool disturbed;
static const char *device, *own_host;
static _Thread_local Session* me;

static uint64_t next(uint64_t* state) { /* splitmix64 */
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static unsigned below(uint64_t* state, unsigned limit) { return (unsigned)(next(state) % limit); }

static bool leaving(void) { return board->order == FINISH; }

static void say(const char* format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char* format, ...) {
    char line[400];
    va_list arguments;
    va_start(arguments, format);
    const int size = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    const int end = size < (int)sizeof line - 1 ? size : (int)sizeof line - 2;
    line[end] = '\n';
    while (write(STDOUT_FILENO, line, (size_t)end + 1) < 0)
        if (errno != EINTR) _exit(2);
}

void fail(const char* call, const char* why) {
    if (me == NULL)
        say("problem: %s: %s", call, why);
    else if (me->problem[0] == '\0')
        snprintf(me->problem, sizeof me->problem, "%s: %s", call, why);
}

static void begin(const char* call, bool may_last) {
    strncpy(me->shown->call, call, sizeof me->shown->call - 1);
    me->shown->since = may_last ? 0 : now();
}

/* Shows on the board in which call the session is. */
#define DO(function, ...) (begin(#function, false), function(__VA_ARGS__))

/* ---- Waiting ----------------------------------------------------------------------------------------------------- */

typedef enum { TAKE, EVENT, SENT, RECEIVED } Kind;

typedef struct {
    Session* session;
    Kind kind;
    bool succeeded;
    Done done;
    const char* event;
} Wait;

static void* wait_once(void* argument) {
    Wait* const wait = argument;
    End* const end = &wait->session->end;
    me = wait->session;
    switch (wait->kind) {
        case TAKE: wait->succeeded = end_take(end); break;
        case EVENT: wait->succeeded = (wait->event = end_event(end)) != NULL; break;
        case SENT: wait->succeeded = end_await_send(end, &wait->done); break;
        case RECEIVED: wait->succeeded = end_await_receive(end, &wait->done); break;
    }
    return NULL;
}

static bool ends_within(pthread_t thread, long us, void** result) {
    const uint64_t end = now() + (uint64_t)us * 1000;
    const struct timespec deadline = {(time_t)(end / 1000000000), (long)(end % 1000000000)};
    return pthread_clockjoin_np(thread, result, CLOCK_MONOTONIC, &deadline) == 0;
}

/* Waits in a thread that is cancelled after some time: servers wait for clients until the worker leaves. Returns false
 * if nothing was taken, so that another wait has to find all that the first one would have found. */
static bool wait_in_thread(Wait* wait, long patience_us) {
    pthread_t thread;
    void* result = NULL;
    if (pthread_create(&thread, NULL, wait_once, wait) != 0) { /* threads are scarce */
        pause_us(1000);
        return false;
    }
    bool ended = ends_within(thread, patience_us, &result);
    while (wait->kind == TAKE && !ended && !leaving()) ended = ends_within(thread, 10000, &result);
    if (!ended) {
        pthread_cancel(thread);
        pthread_join(thread, &result);
    }
    if (result == PTHREAD_CANCELED) ++me->shown->cancelled;
    return result != PTHREAD_CANCELED;
}

static bool interrupted(const char* problem) {
    return strstr(problem, "DAT_INTERRUPTED_CALL") != NULL || strstr(problem, "No next event available") != NULL ||
           strstr(problem, "No next completion available") != NULL;
}

/* Waits until there is a result, whatever disturbs it. A server that is to leave takes no client. */
static bool wait_for(Wait* wait) {
    static const char* const calls[] = {"end_take", "end_event", "end_await_send", "end_await_receive"};
    wait->session = me;
    begin(calls[wait->kind], wait->kind == TAKE);
    do {
        if (wait->kind == TAKE && leaving()) return false;
        me->problem[0] = '\0';
        if (wait->kind != TAKE && !(disturbed && below(&me->random, 64) == 0))
            wait_once(wait);
        else if (!wait_in_thread(wait, below(&me->random, 3000)))
            continue;
        if (wait->succeeded || !interrupted(me->problem)) break;
    } while (true);
    begin("between calls", false);
    return wait->succeeded;
}

static bool expect_event(const char* expected, const char* or) {
    Wait wait = {.kind = EVENT};
    if (!wait_for(&wait)) return false;
    const bool fits = strcmp(wait.event, expected) == 0 || strcmp(wait.event, or) == 0;
    if (!fits) fail("event", wait.event);
    return fits;
}

/* For VIPL, a connection that the peer closes is lost. */
static bool await_end(void) { return expect_event("closed", "lost"); }

static bool await_work(Kind kind, Done* done) {
    Wait wait = {.kind = kind};
    if (!wait_for(&wait)) return false;
    --*(kind == SENT ? &me->sends : &me->receives);
    *done = wait.done;
    if (!done->succeeded) me->told = true;
    return true;
}

/* ---- Data -------------------------------------------------------------------------------------------------------- */

static void fill(uint8_t* at, size_t length, uint64_t pattern) {
    for (size_t i = 0; i < length; i += sizeof pattern) {
        pattern = pattern * 6364136223846793005 + 1442695040888963407;
        memcpy(at + i, &pattern, length - i < sizeof pattern ? length - i : sizeof pattern);
    }
}

static void check_data(const char* what, uint64_t number, const uint8_t* at, size_t length, uint64_t pattern) {
    for (size_t i = 0; i < length; i += sizeof pattern) {
        pattern = pattern * 6364136223846793005 + 1442695040888963407;
        if (memcmp(at + i, &pattern, length - i < sizeof pattern ? length - i : sizeof pattern) == 0) continue;
        say("corrupt: session %d: %s %llu of %zu bytes differs from byte %zu on", me->index, what,
            (unsigned long long)number, length, i);
        _exit(3);
    }
}

/* ---- Places in the memory ---------------------------------------------------------------------------------------- */

static size_t message_bytes(const Traffic* traffic) { return sizeof(Header) + traffic->payload; }

static size_t sent_at(uint64_t number) { return number % me->traffic->window * message_bytes(me->traffic); }

static size_t received_at(uint64_t number) {
    return me->traffic->window * message_bytes(me->traffic) + sent_at(number);
}

/* For the peer's writes. */
static size_t target_at(uint64_t number) {
    return received_at(0) + me->traffic->window * message_bytes(me->traffic) +
           number % me->traffic->window * me->traffic->payload;
}

/* For the peer's reads, and what such reads have fetched. */
static size_t area_at(void) { return target_at(0) + me->traffic->window * (size_t)me->traffic->payload; }
static size_t fetched_at(void) { return area_at() + me->traffic->payload; }

static size_t memory_bytes(const Traffic* traffic) {
    return 2 * traffic->window * message_bytes(traffic) + (traffic->window + 2) * (size_t)traffic->payload;
}

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

static size_t draw_length(void) {
    const unsigned limits[] = {64, 64, 64, 64, 4096, 4096, 4096, UINT_MAX};
    const unsigned limit = limits[below(&me->random, 8)], most = me->traffic->payload;
    return 1 + below(&me->random, limit < most ? limit : most);
}

static bool await_sends(unsigned left) {
    Done done;
    while (me->sends > left)
        if (!await_work(SENT, &done) || !done.succeeded) return false;
    return true;
}

static bool post_receive(uint64_t number) {
    if (!DO(end_post_receive, &me->end, received_at(number), message_bytes(me->traffic), number)) return false;
    ++me->receives;
    return true;
}

static bool fetch(uint64_t number) {
    const size_t length = draw_length(); /* the pattern is checked from its beginning */
    uint8_t* const fetched = me->memory + fetched_at();
    if (!DO(end_post_read, &me->end, fetched_at(), area_at(), length, number)) return false;
    ++me->sends;
    if (!await_sends(0)) return false;
    check_data("the read before message", number, fetched, length, me->peers_area);
    memset(fetched, 0, length);
    return true;
}

static Message* message_at(size_t place) { return (Message*)(void*)(me->memory + place); }

/* Sends a message, perhaps after a write or a read of which it tells. */
static bool send_message(uint64_t number, bool asks, bool last) {
    Message* const message = message_at(sent_at(number));
    const Operation operation = number == 0 || me->traffic->streams ? SEND : (Operation)below(&me->random, 3);
    if (!await_sends(me->traffic->window - 1)) return false; /* the message before, in the same place, has left */
    message->header = (Header){.number = number,
                               .operation = operation,
                               .length = operation == READ ? 0 : draw_length(),
                               .pattern = next(&me->random),
                               .asks = asks,
                               .last = last,
                               .area_pattern = me->own_area};
    const size_t length = message->header.length;
    DO(end_describe, &me->end, &message->header.key);
    fill(message->payload, length, message->header.pattern);
    if (operation == READ && !fetch(number)) return false;
    if (operation == WRITE) {
        if (!DO(end_post_write, &me->end, sent_at(number) + sizeof *message, target_at(number), length, number))
            return false;
        ++me->sends;
    }
    const size_t size = sizeof message->header + (operation == SEND ? length : 0);
    if (!DO(end_post_send, &me->end, sent_at(number), size, number)) return false;
    ++me->sends;
    me->shown->bytes += length;
    return true;
}

/* Returns the next message, which is in its place until the next one of its place is expected. */
static const Header* receive_message(uint64_t number) {
    Message* const message = message_at(received_at(number));
    Done done;
    if (!await_work(RECEIVED, &done) || !done.succeeded) return NULL;
    const Header* const header = &message->header;
    const bool carries = header->operation == SEND;
    if (header->number != number || done.length != sizeof *header + (carries ? header->length : 0)) {
        say("corrupt: session %d: message %llu with %zu bytes arrives in place of message %llu", me->index,
            (unsigned long long)header->number, done.length, (unsigned long long)number);
        _exit(3);
    }
    check_data(carries ? "message" : "the write before message", number,
               carries ? message->payload : me->memory + target_at(number), header->length, header->pattern);
    if (number == 0) {
        DO(end_learn, &me->end, &header->key);
        me->peers_area = header->area_pattern;
    }
    ++me->shown->messages;
    me->shown->progress = now();
    return header;
}

/* ---- A connection ------------------------------------------------------------------------------------------------ */

static bool talk_as_client(void) {
    const unsigned window = me->traffic->window;
    const uint64_t count = 1 + below(&me->random, me->traffic->most);
    uint64_t sent = 0, answered = 0;
    for (uint64_t batch = 1; sent < count; batch = 1 + below(&me->random, window)) {
        const uint64_t start = now(), end = sent + batch < count ? sent + batch : count;
        const uint64_t answers = answered + (me->traffic->streams ? 1 : end - sent);
        for (; sent < end; ++sent)
            if (!send_message(sent, !me->traffic->streams || sent + 1 == end, sent + 1 == count)) return false;
        for (; answered < answers; ++answered)
            if (receive_message(answered) == NULL || !post_receive(answered + window)) return false;
        me->shown->round_trips_ns += now() - start;
    }
    return await_sends(0);
}

static bool talk_as_server(void) {
    bool last = false;
    for (uint64_t number = 0, answers = 0; !last; ++number) {
        const Header* const header = receive_message(number);
        if (header == NULL) return false;
        const bool asks = header->asks;
        last = header->last;
        if (!post_receive(number + me->traffic->window)) return false;
        if (asks && !send_message(answers++, false, false)) return false;
    }
    return await_sends(0);
}

/* After its end, all work that was posted must complete. */
static bool settle(void) {
    Done done;
    while (me->receives > 0)
        if (!await_work(RECEIVED, &done)) return false;
    while (me->sends > 0)
        if (!await_work(SENT, &done)) return false;
    return true;
}

/* The client hangs up, and both are told of it once. */
static bool hang_up(void) {
    me->problem[0] = '\0';
    const bool told = !me->is_server && DO(end_hang_up, &me->end, true) != NULL;
    if (!told && ((!me->is_server && !interrupted(me->problem)) || !await_end())) return false;
    me->shown->ended = now();
    return settle();
}

/* Whether resources have been scarce since `shortages` were counted. */
static bool excused(uint64_t shortages) { return shortages % 2 == 1 || board->shortages != shortages; }

static void report(const char* what) {
    if (me->problem[0] == '\0') snprintf(me->problem, sizeof me->problem, "told by a completion");
    say("%s %d %llu %llu %s%s in %s: %s", what, me->index, (unsigned long long)now(),
        (unsigned long long)me->shown->connections, excused(me->shortages) ? "scarce " : "",
        me->is_server ? "server" : "client", me->shown->call, me->problem);
}

/* If a completion has told of the end, an event does, too, and all other work completes. */
static void lose(void) {
    me->shown->ended = now();
    ++me->shown->losses;
    report("lost");
    if (!me->told) return;
    if (!await_end() || !settle()) report("failed");
}

static bool post_first_receives(void) {
    for (uint64_t number = 0; number < me->traffic->window; ++number) {
        if (!DO(end_early_receive, &me->end, received_at(number), message_bytes(me->traffic), number)) return false;
        ++me->receives;
    }
    return true;
}

static bool establish(void) {
    bool ready = false;
    if (me->is_server) {
        Wait wait = {.kind = TAKE};
        me->listening = me->listening || DO(end_listen, &me->end, own_host, me->port);
        if (!me->listening || !wait_for(&wait)) return false;
    }
    me->shown->state = CONNECTING;
    ready = DO(end_prepare, &me->end) && (me->is_server || DO(end_call, &me->end, me->host, me->port)) &&
            post_first_receives() && DO(end_connect, &me->end, NULL, 0) && expect_event("established", "");
    begin("between calls", false);
    return ready;
}

/* Returns whether the end can be used again. */
static bool connect_once(void) {
    bool good = false;
    me->sends = me->receives = 0;
    me->told = false;
    me->problem[0] = '\0';
    me->shortages = board->shortages;
    if (!establish()) { /* nobody may be there yet, or any more: what counts is that it works in the end */
        pause_us(5000);
    } else {
        ++me->shown->connections;
        me->shown->state = CONNECTED;
        good = (me->is_server ? talk_as_server() : talk_as_client()) && hang_up();
        if (!good) lose();
    }
    me->shown->state = APART;
    if (good) DO(end_part, &me->end);
    return good;
}

static bool open_device(void) {
    const Setup setup = {.at = device,
                         .memory = me->memory,
                         .bytes = memory_bytes(me->traffic),
                         .for_peers = true,
                         .depth = 4 * me->traffic->window,
                         .timeout_ms = connect_timeout_ms};
    me->problem[0] = '\0';
    me->shortages = board->shortages;
    me->listening = false;
    const bool opened = DO(end_open, &me->end, &setup);
    if (opened) ++me->shown->opened;
    if (!opened) report("unopened");
    return opened;
}

static void close_device(void) {
    DO(end_close, &me->end);
    begin("between calls", false);
    me->problem[0] = '\0';
}

static void await_turn(void) {
    while (board->order == PAUSE) pause_us(10000);
}

static void* run_session(void* argument) {
    me = argument;
    while (!leaving()) {
        await_turn();
        if (open_device())
            while (connect_once() && !leaving() && below(&me->random, 8) != 0) await_turn();
        else
            pause_us(5000);
        close_device();
    }
    begin("done", true);
    return NULL;
}

/* ---- What a worker does to itself -------------------------------------------------------------------------------- */

static void on_alarm(int number) { (void)number; }

/* Interrupts the sessions at short intervals; with SA_RESTART, calls have to go on. */
static void storm(uint64_t* random) {
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = below(random, 2) == 0 ? SA_RESTART : 0};
    const long interval_us = 300 + below(random, 5000);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, interval_us}, {0, interval_us}}, NULL);
    ++board->storms;
    for (const uint64_t end = now() + 100000000; now() < end;) pause_us(5000); /* which the signals cut short */
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
}

static rlim_t in_use(int resource) {
    unsigned long pages = 0;
    if (resource == RLIMIT_NPROC) return 0; /* it counts those of all processes of the user */
    if (resource == RLIMIT_NOFILE) {
        const int lowest = dup(STDOUT_FILENO);
        if (lowest >= 0) close(lowest);
        return (rlim_t)lowest;
    }
    FILE* const file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%lu", &pages) != 1) pages = RLIM_INFINITY / 4096;
    if (file != NULL) fclose(file);
    return (rlim_t)pages * 4096;
}

/* Resources run out for some milliseconds. */
static void starve(uint64_t* random) {
    static const int resources[] = {RLIMIT_NOFILE, RLIMIT_AS, RLIMIT_NPROC};
    const int resource = resources[below(random, 3)];
    struct rlimit before, less;
    getrlimit(resource, &before);
    less = before;
    less.rlim_cur = in_use(resource) + (resource == RLIMIT_NOFILE ? below(random, 8)
                                        : resource == RLIMIT_AS   ? below(random, 1 << 22)
                                                                  : 0);
    board->scarce = UINT64_MAX;
    ++board->shortages;
    if (setrlimit(resource, &less) != 0) say("problem: setrlimit: %s", strerror(errno));
    pause_us(1000 + below(random, 50000));
    setrlimit(resource, &before);
    ++board->shortages;
    board->scarce = now();
}

/* A child that ends, lives on, becomes another program, or opens a device of its own. Sessions of the parent may be
 * missing there: their ends have registered memory. */
static void live_as_child(unsigned kind, int index, SessionBoard* shown) {
    static Session own;
    static uint8_t memory[4096];
    const Setup setup = {.at = device, .memory = memory, .bytes = sizeof memory, .depth = 16};
    if (kind == 1) pause_us(300000);
    if (kind == 2) execlp("sleep", "sleep", "0.3", (char*)NULL);
    if (kind == 3) {
        own = (Session){.index = index, .shown = shown, .shortages = board->shortages};
        me = &own;
        if (!end_open(&own.end, &setup) || !end_prepare(&own.end)) report("unopened");
        end_close(&own.end);
    }
    _exit(0);
}

static void fork_child(uint64_t* random) {
    const unsigned kind = below(random, 4);
    const int index = sessions[0]->index;
    SessionBoard* const shown = sessions[0]->shown;
    const pid_t child = fork();
    if (child == 0) live_as_child(kind, index, shown);
    ++board->forks;
}

static void reap(int options) {
    int status = 0;
    while (waitpid(-1, &status, options) > 0)
        if (status != 0) say("problem: a child ended with status %#x", (unsigned)status);
}

/* The same program starts anew in this process. What peers had with it has ended, as if it had been killed. */
static void execute(char** argv) {
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    signal(SIGALRM, SIG_IGN);
    execv("/proc/self/exe", argv);
    say("problem: execv: %s", strerror(errno));
    _exit(2);
}

static void disturb(uint64_t* random) {
    const unsigned kind = below(random, 8);
    if (kind == 0)
        storm(random);
    else if (kind == 1)
        starve(random);
    else if (kind < 4)
        fork_child(random);
    pause_us(1000 + below(random, 40000));
}

/* A crash says where it was. */
static void on_crash(int number) {
    void* frames[40];
    say("problem: signal %d", number);
    backtrace_symbols_fd(frames, backtrace(frames, sizeof frames / sizeof *frames), STDOUT_FILENO);
    signal(number, SIG_DFL);
    raise(number);
}

/* ---- From beginning to end --------------------------------------------------------------------------------------- */

/* What must not be left: descriptors, mappings of files, threads. */
static const char* const traces[] = {"/proc/self/fd", "/proc/self/map_files", "/proc/self/task"};
enum { trace_count = 3 };

/* librdmacm keeps each RDMA device open that was used once; that does not count. */
static int count(const char* directory, bool saying) {
    int entries = 0;
    DIR* const opened = opendir(directory);
    const int at = opened != NULL ? dirfd(opened) : -1;
    for (struct dirent* entry; at >= 0 && (entry = readdir(opened)) != NULL;) {
        char target[100] = "";
        if (readlinkat(at, entry->d_name, target, sizeof target - 1) > 0 && strstr(target, "infiniband") != NULL)
            continue;
        ++entries;
        if (saying) say("there: %s", target);
    }
    if (opened != NULL) closedir(opened);
    return entries;
}

/* Threads of the library may still be ending. */
static bool is_left(int kind, int before) {
    int entries = count(traces[kind], false);
    for (int i = 0; i < 200 && entries > before; ++i, entries = count(traces[kind], false)) pause_us(10000);
    if (entries > before) {
        say("left: %d entries of %s instead of %d", entries, traces[kind], before);
        count(traces[kind], true);
    }
    return entries > before;
}

/* The memory of every second session is a mapping of a file that peers may map, too. */
static void* new_memory(size_t bytes, bool shareable) {
    int file = -1;
    if (shareable) {
        file = memfd_create("chaos", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (ftruncate(file, (off_t)bytes) != 0 || fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK) != 0) _exit(2);
    }
    void* const memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, shareable ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, file, 0);
    if (memory == MAP_FAILED) _exit(2);
    if (file >= 0) close(file);
    return memory;
}

static void add_session(char* text, uint64_t* random) {
    Session* const session = new_memory(sizeof *session, false);
    unsigned traffic = 0;
    char role = 0;
    if (sscanf(text, "%d:%u:%c:%7[0-9]:%15s", &session->index, &traffic, &role, session->port, session->host) < 4 ||
        traffic >= sizeof traffics / sizeof *traffics)
        _exit(2);
    session->traffic = &traffics[traffic];
    session->is_server = role == 's';
    session->random = next(random);
    session->memory = new_memory(memory_bytes(session->traffic), below(random, 2) == 0);
    session->shown = (SessionBoard*)(void*)(shared + board_sessions_at) + session->index;
    session->own_area = next(random);
    me = session;
    fill(session->memory + area_at(), session->traffic->payload, session->own_area);
    me = NULL;
    session->shown->state = APART;
    session->shown->progress = now();
    sessions[session_count++] = session;
}

static void* cancel_me(void* argument) {
    pause_us(1000000000);
    return argument;
}

/* What is loaded once, for the first device or the first thread that is cancelled, is no leak. */
static void warm_up(void) {
    pthread_t thread;
    void* frame = NULL;
    backtrace(&frame, 1);
    if (pthread_create(&thread, NULL, cancel_me, NULL) != 0) _exit(2);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    me = sessions[0];
    for (bool opened = false; !opened && !leaving(); close_device()) {
        opened = open_device();
        if (!opened) pause_us(20000);
    }
    me = NULL;
}

int main(int argc, char** argv) {
    if (argc < 8) return 2;
    shared = mmap(NULL, board_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(argv[1]), 0);
    if (shared == MAP_FAILED) return 2;
    board = (WorkerBoard*)(void*)shared + atoi(argv[2]);
    uint64_t random = strtoull(argv[3], NULL, 10);
    disturbed = atoi(argv[4]) != 0;
    board->shortages += board->shortages % 2; /* a predecessor may have been killed during one */
    device = argv[5], own_host = argv[6];
    signal(SIGALRM, SIG_IGN);
    signal(SIGABRT, on_crash);
    signal(SIGSEGV, on_crash);
    for (int i = 7; i < argc; ++i) add_session(argv[i], &random);
    warm_up();
    int before[trace_count], left = 0;
    for (int i = 0; i < trace_count; ++i) before[i] = count(traces[i], false);
    say("running");
    uint64_t executed = EXECUTE; /* now that there is no other program to become */
    atomic_compare_exchange_strong(&board->order, &executed, RUN);
    for (size_t i = 0; i < session_count; ++i)
        if (pthread_create(&sessions[i]->thread, NULL, run_session, sessions[i]) != 0) return 2;
    while (!leaving()) {
        if (disturbed)
            disturb(&random);
        else
            pause_us(20000);
        reap(WNOHANG);
        if (board->order == EXECUTE) execute(argv);
    }
    for (size_t i = 0; i < session_count; ++i) pthread_join(sessions[i]->thread, NULL);
    reap(0);
    for (int i = 0; i < trace_count; ++i) left += is_left(i, before[i]);
    return left;
}

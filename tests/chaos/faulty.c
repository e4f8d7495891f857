/* SPDX-License-Identifier: BSD-3-Clause
 * Preloaded into the workers of chaos.py and soak.py, it gives the library a fault, so that faulty.py can see that they
 * find such faults. The variable FAULTY has its name:
 *
 *   leak  some memory is not freed
 *   race  some writes and reads of another process's memory go on after the call that makes them has returned
 *   hang  some notifications of a waiting thread are lost
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { late_us = 1000 };

/* Defined by glibc. */
extern void __libc_free(void* block); /* NOLINT(bugprone-reserved-identifier) */

/* Whether this fault is to happen in this call: in one of `often`. */
static bool strikes(const char* fault, atomic_uint* calls, unsigned often) {
    const char* const chosen = getenv("FAULTY");
    return chosen != NULL && strcmp(chosen, fault) == 0 && (*calls)++ % often == often - 1;
}

void free(void* block) {
    static atomic_uint calls;
    if (!strikes("leak", &calls, 8)) __libc_free(block);
}

int eventfd_write(int fd, uint64_t value) {
    static atomic_uint calls;
    if (strikes("hang", &calls, 200)) return 0;
    return write(fd, &value, sizeof value) == sizeof value ? 0 : -1;
}

enum { most_pieces = 64 };

typedef struct {
    long number; /* of the system call */
    pid_t process;
    unsigned long local_count, remote_count;
    struct iovec local[most_pieces], remote[most_pieces];
} Transfer;

static ssize_t transfer(long number, pid_t process, const struct iovec* local, unsigned long local_count,
                        const struct iovec* remote, unsigned long remote_count) {
    return syscall(number, process, local, local_count, remote, remote_count, 0UL);
}

static void* transfer_late(void* argument) {
    const Transfer* const rest = argument;
    nanosleep(&(struct timespec){0, late_us * 1000}, NULL);
    transfer(rest->number, rest->process, rest->local, rest->local_count, rest->remote, rest->remote_count);
    free(argument);
    return NULL;
}

/* Leaves all but the first piece, by which the library knows the peer, to a thread. */
static bool begin_late(Transfer rest) {
    pthread_t thread;
    Transfer* const kept = malloc(sizeof *kept);
    if (kept == NULL) return false;
    *kept = rest;
    const bool begun = pthread_create(&thread, NULL, transfer_late, kept) == 0;
    if (begun)
        pthread_detach(thread);
    else
        free(kept);
    return begun;
}

static ssize_t begin(long number, pid_t process, const struct iovec* local, unsigned long local_count,
                     const struct iovec* remote, unsigned long remote_count) {
    static atomic_uint calls;
    if (local_count < 2 || local_count > most_pieces || remote_count < 2 || remote_count > most_pieces ||
        !strikes("race", &calls, 4))
        return transfer(number, process, local, local_count, remote, remote_count);
    Transfer rest = {number, process, local_count - 1, remote_count - 1, {{0}}, {{0}}};
    memcpy(rest.local, local + 1, rest.local_count * sizeof *local);
    memcpy(rest.remote, remote + 1, rest.remote_count * sizeof *remote);
    ssize_t length = transfer(number, process, local, 1, remote, 1);
    if (length < 0 || !begin_late(rest)) return transfer(number, process, local, local_count, remote, remote_count);
    for (unsigned long i = 0; i < rest.local_count; ++i) length += (ssize_t)rest.local[i].iov_len;
    return length;
}

ssize_t process_vm_readv(pid_t process, const struct iovec* local, unsigned long local_count,
                         const struct iovec* remote, unsigned long remote_count, unsigned long flags) {
    (void)flags; /* always 0 */
    return begin(SYS_process_vm_readv, process, local, local_count, remote, remote_count);
}

ssize_t process_vm_writev(pid_t process, const struct iovec* local, unsigned long local_count,
                          const struct iovec* remote, unsigned long remote_count, unsigned long flags) {
    (void)flags;
    return begin(SYS_process_vm_writev, process, local, local_count, remote, remote_count);
}

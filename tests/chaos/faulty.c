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

typedef struct {
    long number; /* of the system call */
    pid_t process;
    struct iovec local, remote;
} Transfer;

static ssize_t transfer(const Transfer* made) {
    return syscall(made->number, made->process, &made->local, 1UL, &made->remote, 1UL, 0UL);
}

static void* transfer_late(void* argument) {
    nanosleep(&(struct timespec){0, late_us * 1000}, NULL);
    transfer(argument); /* fails if the memory is no more */
    free(argument);
    return NULL;
}

static ssize_t begin(Transfer made) {
    static atomic_uint calls;
    pthread_t thread;
    Transfer* const late = strikes("race", &calls, 50) ? malloc(sizeof *late) : NULL;
    if (late == NULL) return transfer(&made);
    *late = made;
    if (pthread_create(&thread, NULL, transfer_late, late) != 0) {
        free(late);
        return transfer(&made);
    }
    pthread_detach(thread);
    return (ssize_t)made.local.iov_len;
}

/* The library passes one piece at a time. */
ssize_t process_vm_readv(pid_t process, const struct iovec* local, unsigned long pieces, const struct iovec* remote,
                         unsigned long remote_pieces, unsigned long flags) {
    if (pieces != 1 || remote_pieces != 1)
        return syscall(SYS_process_vm_readv, process, local, pieces, remote, remote_pieces, flags);
    return begin((Transfer){SYS_process_vm_readv, process, *local, *remote});
}

ssize_t process_vm_writev(pid_t process, const struct iovec* local, unsigned long pieces, const struct iovec* remote,
                          unsigned long remote_pieces, unsigned long flags) {
    if (pieces != 1 || remote_pieces != 1)
        return syscall(SYS_process_vm_writev, process, local, pieces, remote, remote_pieces, flags);
    return begin((Transfer){SYS_process_vm_writev, process, *local, *remote});
}

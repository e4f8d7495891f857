/* SPDX-License-Identifier: BSD-3-Clause
 * A program for vi-run to trace: makes calls of VIPL in ways that are hard to trace. traced MODE [ARGUMENT] */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vipl.h>

enum { THREADS = 4, ROUNDS = 25 };

static VIP_NIC_HANDLE nic;

static void check(VIP_RETURN result, VIP_RETURN wanted, const char* call) {
    if (result == wanted) return;
    printf("%s returned %d\n", call, (int)result);
    exit(1);
}

static void open_nic(void) { check(VipOpenNic("VINIC0", &nic), VIP_SUCCESS, "VipOpenNic"); }
static void close_nic(void) { check(VipCloseNic(nic), VIP_SUCCESS, "VipCloseNic"); }

static VIP_CQ_HANDLE create_cq(VIP_ULONG entries) {
    VIP_CQ_HANDLE cq;
    check(VipCreateCQ(nic, entries, &cq), VIP_SUCCESS, "VipCreateCQ");
    return cq;
}

static void poll_cq(VIP_CQ_HANDLE cq, int times) {
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN receive;
    for (int time = 0; time < times; ++time) check(VipCQDone(cq, &vi, &receive), VIP_NOT_DONE, "VipCQDone");
}

/* Two queues in turn, and then one of them. */
static void polls(void) {
    VIP_CQ_HANDLE one, other;
    open_nic();
    one = create_cq(8);
    other = create_cq(9);
    for (int round = 0; round < ROUNDS; ++round) {
        poll_cq(one, 1);
        poll_cq(other, 1);
    }
    check(VipDestroyCQ(other), VIP_SUCCESS, "VipDestroyCQ");
    poll_cq(one, 1);
    check(VipDestroyCQ(one), VIP_SUCCESS, "VipDestroyCQ");
    close_nic();
}

static void wait_forever(void) {
    struct {
        VIP_NET_ADDRESS address;
        char bytes[256];
    } local, remote;
    VIP_NIC_ATTRIBUTES attributes;
    VIP_VI_ATTRIBUTES peer;
    VIP_CONN_HANDLE connection;
    open_nic();
    poll_cq(create_cq(8), 3);
    check(VipQueryNic(nic, &attributes), VIP_SUCCESS, "VipQueryNic");
    poll_cq(create_cq(8), 5);
    memset(&local, 0, sizeof local);
    local.address.HostAddressLen = attributes.NicAddressLen;
    memcpy(local.address.HostAddress, attributes.LocalNicAddress, attributes.NicAddressLen);
    local.address.DiscriminatorLen = 6;
    memcpy(local.address.HostAddress + attributes.NicAddressLen, "nobody", 6);
    puts("waiting");
    fflush(stdout);
    VipConnectWait(nic, &local.address, VIP_INFINITE, &remote.address, &peer, &connection);
}

static void poll_forever(void) {
    VIP_CQ_HANDLE cq;
    open_nic();
    cq = create_cq(8);
    poll_cq(cq, 10);
    puts("polling");
    fflush(stdout);
    for (;;) poll_cq(cq, 1);
}

static void forks(void) {
    int status = 0;
    pid_t child;
    open_nic();
    child = fork();
    if (child == 0) {
        open_nic(); /* its own: that of the parent cannot be used */
        close_nic();
        _exit(0);
    }
    waitpid(child, &status, 0);
    check((VIP_RETURN)status, VIP_SUCCESS, "the child");
    close_nic();
}

static void* use_queues(void* unused) {
    for (int round = 0; round < ROUNDS; ++round) check(VipDestroyCQ(create_cq(8)), VIP_SUCCESS, "VipDestroyCQ");
    return unused;
}

static void threads(void) {
    pthread_t thread[THREADS];
    open_nic();
    for (int number = 0; number < THREADS; ++number) pthread_create(&thread[number], NULL, use_queues, NULL);
    for (int number = 0; number < THREADS; ++number) pthread_join(thread[number], NULL);
    close_nic();
}

/* Ends, although its cancellation is pending: it makes no call that waits. */
static void* make_calls(void* unused) {
    pthread_cancel(pthread_self());
    open_nic();
    poll_cq(create_cq(8), ROUNDS);
    return unused;
}

static void cancel_thread(void) {
    pthread_t thread;
    void* returned = NULL;
    pthread_create(&thread, NULL, make_calls, NULL);
    pthread_join(thread, &returned);
    if (returned == PTHREAD_CANCELED) puts("cancelled");
}

/* Closes what it did not open, as daemons do, and gets the same numbers for its own file. */
static void close_descriptors(const char* victim) {
    enum { HIGHEST = 512 };
    open_nic();
    close_nic();
    for (int fd = STDERR_FILENO + 1; fd < HIGHEST; ++fd) close(fd);
    for (int fd = STDERR_FILENO + 1; fd < HIGHEST; ++fd) open(victim, O_WRONLY | O_CREAT | O_APPEND, 0600);
    open_nic();
    close_nic();
}

/* As a daemon, that outlives what started it: until its standard input ends, at least. */
static void become_daemon(const char* victim) {
    if (fork() != 0) _exit(0);
    getchar();
    close_descriptors(victim);
}

/* Pointers that lead nowhere: the library dies of the last one. */
static void wild_pointers(void) {
    VIP_VI_HANDLE vi;
    char* page = (char*)16;
    open_nic();
    check(VipCloseNic(page), VIP_INVALID_PARAMETER, "VipCloseNic");
    check(VipNSInit(nic, NULL), VIP_SUCCESS, "VipNSInit");
    check(VipDeregisterMem(nic, page, 7), VIP_INVALID_PARAMETER, "VipDeregisterMem");
    VipCreateVi(nic, (VIP_VI_ATTRIBUTES*)page, NULL, NULL, &vi);
}

/* A handler that calls the library while the library calls it, and errno. */
static void errors(void) {
    open_nic();
    errno = E2BIG;
    check(VipDestroyCQ(NULL), VIP_INVALID_PARAMETER, "VipDestroyCQ");
    check(errno == E2BIG ? VIP_SUCCESS : VIP_ERROR_RESOURCE, VIP_SUCCESS, "errno");
    close_nic();
}

static void execute(const char* self) {
    open_nic();
    poll_cq(create_cq(8), 2);
    execl(self, self, "polls", (char*)NULL);
}

int main(int count, char** words) {
    const char* mode = count > 1 ? words[1] : "";
    if (strcmp(mode, "polls") == 0) polls();
    if (strcmp(mode, "wait") == 0) wait_forever();
    if (strcmp(mode, "poll") == 0) poll_forever();
    if (strcmp(mode, "fork") == 0) forks();
    if (strcmp(mode, "threads") == 0) threads();
    if (strcmp(mode, "cancel") == 0) cancel_thread();
    if (strcmp(mode, "close") == 0) close_descriptors(words[2]);
    if (strcmp(mode, "daemon") == 0) become_daemon(words[2]);
    if (strcmp(mode, "wild") == 0) wild_pointers();
    if (strcmp(mode, "errors") == 0) errors();
    if (strcmp(mode, "exec") == 0) execute(words[0]);
    puts("done");
    return 0;
}

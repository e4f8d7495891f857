/* SPDX-License-Identifier: BSD-3-Clause
 * VipOpenNic and VipCloseNic: guide, sections 3.1 and 6.5.
 */
#include "endpoint.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static VIP_NIC_HANDLE opened(const char *name) {
    VIP_NIC_HANDLE nic = NULL;
    VIP_RETURN rc = VipOpenNic(name, &nic);
    if (rc != VIP_SUCCESS || nic == NULL) fail(__FILE__, __LINE__, "\"%s\" gives %s", name, return_name(rc));
    return nic;
}

TEST(opens_the_recommended_name) { CHECK_RC(VipCloseNic(opened(VINICBASENAME)), VIP_SUCCESS); }

TEST(opens_numbered_names) {
    char name[32];
    const VIP_ULONG count = count_nics();
    VIP_NIC_HANDLE nic;
    for (VIP_ULONG i = 0; i < count; ++i) {
        snprintf(name, sizeof name, "VINIC%lu", i);
        CHECK_RC(VipCloseNic(opened(name)), VIP_SUCCESS);
    }
    snprintf(name, sizeof name, "VINIC%lu", count);
    CHECK_RC(VipOpenNic(name, &nic), VIP_INVALID_PARAMETER);
}

TEST(vinic_is_vinic0) {
    VIP_NIC_ATTRIBUTES plain, numbered, second;
    need_two_nics();
    VIP_NIC_HANDLE nic = opened("VINIC0"), other = opened("VINIC1");
    CHECK_RC(VipQueryNic(opened("VINIC"), &plain), VIP_SUCCESS);
    CHECK_RC(VipQueryNic(nic, &numbered), VIP_SUCCESS);
    CHECK_RC(VipQueryNic(other, &second), VIP_SUCCESS);
    CHECK_EQ(plain.NicAddressLen, numbered.NicAddressLen);
    CHECK(memcmp(plain.LocalNicAddress, numbered.LocalNicAddress, plain.NicAddressLen) == 0);
    CHECK(memcmp(second.LocalNicAddress, numbered.LocalNicAddress, second.NicAddressLen) != 0);
}

TEST(opens_historical_names) {
    static const char *const names[] = {"/dev/via_lo", "/dev/via_eth0", "/dev/via_eth1", "/dev/clanvi0",
                                        "/dev/clanvi1"};
    need_two_nics();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) CHECK_RC(VipCloseNic(opened(names[i])), VIP_SUCCESS);
}

/* Whether two names lead to NICs of the same address. */
static int same_nic(const char *name, const char *other) {
    VIP_NIC_ATTRIBUTES attribs, others;
    CHECK_RC(VipQueryNic(opened(name), &attribs), VIP_SUCCESS);
    CHECK_RC(VipQueryNic(opened(other), &others), VIP_SUCCESS);
    return memcmp(attribs.LocalNicAddress, others.LocalNicAddress, attribs.NicAddressLen) == 0;
}

/* What programs and manuals of the time call the first device, in any case of letters. */
TEST(opens_names_of_the_time) {
    static const char *const names[] = {"/dev/via0",   "nic0", "VIA0",      "/dev/vinic0", "clanvi0",   "ClanVI0",
                                        "/DEV/VIA_LO", "via0", "/dev/nic0", "vinic",       "vinic0",    "via_eth0",
                                        "VI0",         "vi0",  "via_lo",    "/etc/via_lo", "\\\\.\\VI0"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i)
        if (!same_nic(names[i], "VINIC0")) fail(__FILE__, __LINE__, "\"%s\" is another device", names[i]);
    need_two_nics();
    CHECK(same_nic("/dev/via1", "VINIC1"));
    CHECK(same_nic("nic1", "VINIC1"));
    CHECK(same_nic("\\\\.\\VI1", "VINIC1"));
}

/* Beyond the guide: devices have names of their own, and the environment says which one unchanged programs get. */
TEST(opens_names_of_devices) {
    Endpoint *end = new_endpoint(NULL);
    endpoint_open(end, (Options){0});
    if (is_hardware(end)) skip("devices are named after network interfaces");
    need_two_nics();
    VIP_NIC_HANDLE nic;
    /* That of 127.0.0.2: a loopback device, or the second address of the network interface. */
    const char *second = VipOpenNic("viaduct-lo1", &nic) == VIP_SUCCESS ? "viaduct-lo1" : "viaduct-lo.2";
    CHECK(same_nic("viaduct-lo", "VINIC"));
    CHECK(same_nic(second, "VINIC1"));
    CHECK(setenv("VIADUCT_DEVICE", second, 1) == 0);
    CHECK(same_nic("VINIC", second));
    CHECK(same_nic("VINIC0", second));
    CHECK(same_nic("/dev/via_eth0", second));
    CHECK(setenv("VIADUCT_DEVICE", "viaduct-nonesuch", 1) == 0);
    CHECK_RC(VipOpenNic("VINIC", &nic), VIP_INVALID_PARAMETER);
}

TEST(opening_twice_gives_two_handles) {
    VIP_NIC_HANDLE first = opened("VINIC"), second = opened("VINIC");
    VIP_NIC_ATTRIBUTES attribs;
    CHECK(first != second);
    CHECK_RC(VipCloseNic(first), VIP_SUCCESS);
    CHECK_RC(VipQueryNic(first, &attribs), VIP_INVALID_PARAMETER);
    CHECK_RC(VipQueryNic(second, &attribs), VIP_SUCCESS);
}

TEST(unknown_names_are_invalid) {
    static const char *const names[] = {"",
                                        "nonesuch",
                                        "VINIC99999",
                                        "VINIC99999999999999999999",
                                        "VINICX",
                                        "VINIC-1",
                                        "VINIC 0",
                                        "VINIC0x",
                                        "viaduct-",
                                        "viaduct-nonesuch",
                                        "/dev/null",
                                        "/dev/via_eth",
                                        "/dev/clanvi",
                                        "/dev/via",
                                        "nic",
                                        "/dev/nic99999",
                                        "/dev/",
                                        "0",
                                        "xnic0"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
        VIP_NIC_HANDLE nic;
        VIP_RETURN rc = VipOpenNic(names[i], &nic);
        if (rc != VIP_INVALID_PARAMETER) fail(__FILE__, __LINE__, "\"%s\" gives %s", names[i], return_name(rc));
    }
}

/* The log, which goes to standard error unless VIADUCT_LOG says less, tells what there is. */
TEST(an_unknown_name_lists_the_devices) {
    VIP_NIC_HANDLE nic;
    char text[2048];
    int ends[2];
    CHECK(unsetenv("VIADUCT_LOG") == 0);
    CHECK(pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    CHECK_RC(VipOpenNic("nonesuch", &nic), VIP_INVALID_PARAMETER);
    CHECK(close(ends[1]) == 0 && close(STDERR_FILENO) == 0);
    ssize_t length = read(ends[0], text, sizeof text - 1);
    CHECK(length > 0);
    text[length] = '\0';
    CHECK(strstr(text, "nonesuch") != NULL && strstr(text, "VINIC0") != NULL && strstr(text, "viaduct-") != NULL);
}

TEST(null_name_is_invalid) {
    VIP_NIC_HANDLE nic;
    CHECK_RC(VipOpenNic(NULL, &nic), VIP_INVALID_PARAMETER);
}

TEST(null_handle_pointer_is_invalid) { CHECK_RC(VipOpenNic("VINIC", NULL), VIP_INVALID_PARAMETER); }

TEST(opening_without_file_descriptors_is_a_resource_error) {
    VIP_NIC_HANDLE nic;
    struct rlimit limit;
    if (UNDER_SANITIZER) skip("a sanitizer wants file descriptors of its own");
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = 0;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK_RC(VipOpenNic("VINIC", &nic), VIP_ERROR_RESOURCE);
    limit.rlim_cur = limit.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK_RC(VipOpenNic("VINIC", &nic), VIP_SUCCESS);
}

TEST(closes) { CHECK_RC(VipCloseNic(opened("VINIC")), VIP_SUCCESS); }

TEST(closing_an_invalid_handle_is_refused) {
    VIP_NIC_HANDLE nic = opened("VINIC");
    VIP_PROTECTION_HANDLE ptag;
    int not_a_nic = 0;
    CHECK_RC(VipCreatePtag(nic, &ptag), VIP_SUCCESS);
    CHECK_RC(VipCloseNic(NULL), VIP_INVALID_PARAMETER);
    CHECK_RC(VipCloseNic(&not_a_nic), VIP_INVALID_PARAMETER);
    CHECK_RC(VipCloseNic((VIP_NIC_HANDLE)(uintptr_t)0xdeadbeefUL), VIP_INVALID_PARAMETER);
    CHECK_RC(VipCloseNic(ptag), VIP_INVALID_PARAMETER);
    CHECK_RC(VipCloseNic(nic), VIP_SUCCESS);
}

TEST(closing_twice_is_refused) {
    VIP_NIC_HANDLE nic = opened("VINIC");
    CHECK_RC(VipCloseNic(nic), VIP_SUCCESS);
    CHECK_RC(VipCloseNic(nic), VIP_INVALID_PARAMETER);
}

/* Whatever is on the NIC goes with it, and its handles are good no more. */
TEST(closing_destroys_what_is_on_the_nic) {
    Endpoint *end = new_endpoint(NULL);
    endpoint_open(end, (Options){.send_on_cq = VIP_TRUE});
    VIP_DESCRIPTOR *descriptor;
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN recv;
    VIP_MEM_ATTRIBUTES attribs;
    CHECK_RC(VipCloseNic(end->nic), VIP_SUCCESS);
    CHECK_RC(VipRecvDone(end->vi, &descriptor), VIP_INVALID_PARAMETER);
    CHECK_RC(VipDestroyVi(end->vi), VIP_INVALID_PARAMETER);
    CHECK_RC(VipCQDone(end->cq, &vi, &recv), VIP_INVALID_PARAMETER);
    CHECK_RC(VipDestroyCQ(end->cq), VIP_INVALID_PARAMETER);
    CHECK_RC(VipQueryMem(end->nic, end->memory, end->handle, &attribs), VIP_INVALID_PARAMETER);
    CHECK_RC(VipDestroyPtag(end->nic, end->ptag), VIP_INVALID_PARAMETER);
}

/* So do requests that were found and not answered: their handles are invalid. Returns what the client gets. */
static VIP_RETURN request_left_unanswered(Pair *pair, VIP_ULONG timeout_ms) {
    *pair = open_pair((Options){0});
    Task task;
    Listening waiting = listening(pair->server, LONG_MS);
    Request request = request_to(pair->client, pair->server, timeout_ms);
    begin(&task, pair->client, do_request, &request, sizeof request);
    CHECK_RC(wait_request(pair->server, &waiting), VIP_SUCCESS);
    __atomic_store_n(&request.retry, VIP_FALSE, __ATOMIC_RELEASE); /* the request has arrived */
    endpoint_close_nic(pair->server);
    CHECK_RC(reject_request(pair->server), VIP_INVALID_PARAMETER);
    finish(&task);
    CHECK_EQ(state_of(pair->client), VIP_STATE_IDLE);
    return request.rc;
}

TEST(closing_leaves_requests_unanswered) {
    Pair pair;
    const VIP_UINT64 began = steady_ns();
    const VIP_RETURN rc = request_left_unanswered(&pair, MEDIUM_MS);
    if (is_hardware(pair.client)) {
        CHECK_RC(rc, VIP_NO_MATCH); /* what a process leaves behind is refused */
    } else {
        CHECK_RC(rc, VIP_TIMEOUT);
        check_time(__FILE__, __LINE__, began, MEDIUM_MS);
    }
}

/* A client that would wait for ever is told that nobody is there. */
TEST(closing_ends_requests_without_a_time_limit) {
    Pair pair;
    const VIP_UINT64 began = steady_ns();
    CHECK_RC(request_left_unanswered(&pair, VIP_INFINITE), VIP_NO_MATCH);
    check_time(__FILE__, __LINE__, began, 0);
}

static int count_entries(const char *directory) {
    int count = 0;
    DIR *stream = opendir(directory);
    CHECK(stream != NULL);
    while (readdir(stream) != NULL) ++count;
    closedir(stream);
    return count;
}

static void unused_handler(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN recv) {
    (void)context, (void)nic, (void)vi, (void)recv;
}

static void open_use_and_close(void) {
    Pair pair = {new_endpoint(NULL), new_endpoint(NULL)};
    endpoint_open(pair.client, (Options){.recv_on_cq = VIP_TRUE});
    endpoint_open(pair.server, (Options){.recv_on_cq = VIP_TRUE});
    pair_connect(&pair);
    post_simple_recv(pair.server, 0, 64);
    post_simple_send(pair.client, 0, 64);
    CHECK_RC(VipCQNotify(pair.client->cq, NULL, unused_handler), VIP_SUCCESS);
    endpoint_close_nic(pair.client);
    endpoint_close_nic(pair.server);
}

/* The first round may start what lasts as long as the process; a further one must leave nothing behind. */
TEST(closing_frees_threads_and_file_descriptors) {
    open_use_and_close();
    int threads = count_entries("/proc/self/task"), files = count_entries("/proc/self/fd");
    open_use_and_close();
    open_use_and_close();
    while (count_entries("/proc/self/task") > threads) sched_yield(); /* those that end stay listed for a moment */
    CHECK_EQ(count_entries("/proc/self/fd"), files);
}

/* A process may end without closing anything. */
TEST(a_process_may_end_with_an_open_nic) {
    Pair pair = open_pair((Options){0});
    pair_connect(&pair);
    post_simple_recv(pair.client, 0, 64);
}

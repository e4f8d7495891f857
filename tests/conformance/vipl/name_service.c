/* SPDX-License-Identifier: BSD-3-Clause
 * VipNSInit, VipNSGetHostByName, VipNSGetHostByAddr, VipNSShutdown: guide, section 3.9.
 */
#include "endpoint.h"

#include <stdio.h>
#include <stdlib.h>

static VIP_NIC_HANDLE nic;
static VIP_NIC_ATTRIBUTES attribs;

static void open_nic(void) {
    CHECK_RC(VipOpenNic("VINIC", &nic), VIP_SUCCESS);
    CHECK_RC(VipQueryNic(nic, &attribs), VIP_SUCCESS);
}

static char file_name[] = "/tmp/vipl-hosts-XXXXXX";

/* A hosts-style file with these lines, removed again as soon as the name service has read it. */
static VIP_RETURN init_from(const char *text) {
    int fd = mkstemp(file_name);
    CHECK(fd >= 0);
    CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    VIP_RETURN rc = VipNSInit(nic, file_name);
    CHECK(unlink(file_name) == 0);
    return rc;
}

static VIP_RETURN by_name(const char *name, VIP_ULONG index, NetAddress *found) {
    memset(found, 0, sizeof *found);
    found->address.HostAddressLen = attribs.NicAddressLen;
    return VipNSGetHostByName(nic, (VIP_CHAR *)(uintptr_t)name, &found->address, index);
}

static void expect_address(const char *name, VIP_ULONG index, const char *dotted) {
    NetAddress found;
    char text[32];
    VIP_RETURN rc = by_name(name, index, &found);
    if (rc != VIP_SUCCESS) fail(__FILE__, __LINE__, "\"%s\", index %lu: %s", name, index, return_name(rc));
    const VIP_UINT8 *host = found.bytes + offsetof(VIP_NET_ADDRESS, HostAddress);
    CHECK_EQ(found.address.HostAddressLen, 4);
    snprintf(text, sizeof text, "%d.%d.%d.%d", host[0], host[1], host[2], host[3]);
    if (strcmp(text, dotted) != 0) fail(__FILE__, __LINE__, "\"%s\", index %lu is %s", name, index, text);
}

static void expect_unknown(const char *name, VIP_ULONG index) {
    NetAddress found;
    VIP_RETURN rc = by_name(name, index, &found);
    if (rc != VIP_ERROR_NAMESERVICE) fail(__FILE__, __LINE__, "\"%s\", index %lu: %s", name, index, return_name(rc));
}

/* ---- VipNSInit, VipNSShutdown ------------------------------------------------------------------------------------ */

TEST(init_and_shutdown) {
    open_nic();
    for (int round = 0; round < 3; ++round) {
        CHECK_RC(VipNSInit(nic, NULL), VIP_SUCCESS);
        CHECK_RC(VipNSShutdown(nic), VIP_SUCCESS);
    }
}

TEST(init_twice) {
    open_nic();
    CHECK_RC(VipNSInit(nic, NULL), VIP_SUCCESS);
    CHECK_RC(VipNSInit(nic, NULL), VIP_ERROR_NAMESERVICE);
    CHECK_RC(init_from("10.0.0.1 a\n"), VIP_ERROR_NAMESERVICE);
    CHECK_RC(VipNSShutdown(nic), VIP_SUCCESS);
    CHECK_RC(VipNSShutdown(nic), VIP_ERROR_NAMESERVICE);
}

TEST(each_nic_handle_has_its_name_service) {
    VIP_NIC_HANDLE other;
    open_nic();
    CHECK_RC(VipOpenNic("VINIC", &other), VIP_SUCCESS);
    CHECK_RC(VipNSInit(nic, NULL), VIP_SUCCESS);
    CHECK_RC(VipNSShutdown(other), VIP_ERROR_NAMESERVICE);
    CHECK_RC(VipNSInit(other, NULL), VIP_SUCCESS);
}

TEST(init_with_invalid_arguments_is_refused) {
    open_nic();
    CHECK_RC(VipNSInit(NULL, NULL), VIP_INVALID_PARAMETER);
    CHECK_RC(VipNSInit(&nic, NULL), VIP_INVALID_PARAMETER);
    CHECK_RC(VipNSInit(nic, (VIP_PVOID)(uintptr_t) "/nonexistent/hosts"), VIP_INVALID_PARAMETER);
    CHECK_RC(VipNSInit(nic, (VIP_PVOID)(uintptr_t) "/tmp"), VIP_INVALID_PARAMETER); /* a directory */
    CHECK_RC(VipNSInit(nic, (VIP_PVOID)(uintptr_t) ""), VIP_INVALID_PARAMETER);
    CHECK_RC(VipNSInit(nic, NULL), VIP_SUCCESS); /* the failures left nothing behind */
}

TEST(shutdown_with_invalid_nic_is_refused) {
    open_nic();
    CHECK_RC(VipNSShutdown(NULL), VIP_INVALID_PARAMETER);
    CHECK_RC(VipNSShutdown(&nic), VIP_INVALID_PARAMETER);
    CHECK_RC(VipNSShutdown(nic), VIP_ERROR_NAMESERVICE); /* never initialized */
}

/* The name and the address of this host are as unknown as any. */
static void expect_no_name_service(void) {
    NetAddress address;
    char name[256];
    VIP_ULONG length = sizeof name;
    expect_unknown("localhost", 0);
    memset(&address, 0, sizeof address);
    address.address.HostAddressLen = attribs.NicAddressLen;
    memcpy(address.bytes + offsetof(VIP_NET_ADDRESS, HostAddress), attribs.LocalNicAddress, attribs.NicAddressLen);
    CHECK_RC(VipNSGetHostByAddr(nic, &address.address, name, &length), VIP_ERROR_NAMESERVICE);
}

TEST(not_initialized) {
    open_nic();
    expect_no_name_service();
    CHECK_RC(VipNSInit(nic, NULL), VIP_SUCCESS);
    CHECK_RC(VipNSShutdown(nic), VIP_SUCCESS);
    expect_no_name_service();
}

/* ---- VipNSGetHostByName: the default ----------------------------------------------------------------------------- */

static void open_with_default(void) {
    open_nic();
    CHECK_RC(VipNSInit(nic, NULL), VIP_SUCCESS);
}

/* The address of a NIC by its number. */
static void expect_nic(const char *name, VIP_ULONG index, VIP_ULONG number) {
    char device[32], dotted[32];
    VIP_NIC_HANDLE other;
    VIP_NIC_ATTRIBUTES others;
    snprintf(device, sizeof device, "VINIC%lu", number);
    CHECK_RC(VipOpenNic(device, &other), VIP_SUCCESS);
    CHECK_RC(VipQueryNic(other, &others), VIP_SUCCESS);
    const VIP_UINT8 *host = others.LocalNicAddress;
    snprintf(dotted, sizeof dotted, "%d.%d.%d.%d", host[0], host[1], host[2], host[3]);
    CHECK_RC(VipCloseNic(other), VIP_SUCCESS);
    expect_address(name, index, dotted);
}

/* A name that means this host names all its NICs, one for each index. */
static void expect_this_host(const char *name) {
    const VIP_ULONG count = count_nics();
    for (VIP_ULONG i = 0; i < count; ++i) expect_nic(name, i, i);
    expect_unknown(name, count);
    expect_unknown(name, ~(VIP_ULONG)0);
}

TEST(localhost_is_this_host) {
    open_with_default();
    expect_this_host("localhost");
    expect_this_host("LocalHost");
    expect_this_host("127.0.0.1");
}

TEST(the_host_name_is_this_host) {
    char name[256];
    open_with_default();
    CHECK(gethostname(name, sizeof name) == 0);
    expect_this_host(name);
}

TEST(device_names_are_addresses) {
    char name[32];
    const VIP_ULONG count = count_nics();
    open_with_default();
    expect_nic("VINIC", 0, 0);
    expect_nic("VINIC0", 0, 0);
    snprintf(name, sizeof name, "vinic%lu", count - 1);
    expect_nic(name, 0, count - 1);
    expect_unknown(name, 1);
    snprintf(name, sizeof name, "VINIC%lu", count);
    expect_unknown(name, 0);
}

TEST(a_name_that_resolves_elsewhere) {
    open_with_default();
    expect_address("192.0.2.17", 0, "192.0.2.17"); /* a number needs no resolver */
    expect_unknown("192.0.2.17", 1);
}

TEST(an_unknown_name) {
    open_with_default();
    expect_unknown("no-such-host.invalid", 0);
    expect_unknown("", 0);
}

/* What the name service gives is what VipConnectRequest takes. */
TEST(a_name_leads_to_a_connection) {
    Pair pair = open_pair((Options){0});
    nic = pair.client->nic;
    CHECK_RC(VipQueryNic(nic, &attribs), VIP_SUCCESS);
    CHECK_RC(VipNSInit(nic, NULL), VIP_SUCCESS);
    Task task;
    NetAddress host;
    Listening waiting = listening(pair.server, LONG_MS);
    Request request = request_to(pair.client, pair.server, LONG_MS);
    CHECK_RC(by_name("localhost", 0, &host), VIP_SUCCESS);
    memcpy(request.remote.bytes + offsetof(VIP_NET_ADDRESS, HostAddress),
           host.bytes + offsetof(VIP_NET_ADDRESS, HostAddress), host.address.HostAddressLen);
    begin(&task, pair.server, do_wait_and_accept, &waiting, sizeof waiting);
    CHECK_RC(request_connection(pair.client, &request), VIP_SUCCESS);
    finish(&task);
    CHECK_RC(waiting.rc, VIP_SUCCESS);
}

TEST(by_name_keeps_what_is_behind_the_host_address) {
    NetAddress found;
    open_with_default();
    memset(&found, 0x5a, sizeof found);
    found.address.HostAddressLen = (VIP_UINT16)(attribs.NicAddressLen + 10); /* more room than needed */
    CHECK_RC(VipNSGetHostByName(nic, (VIP_CHAR *)(uintptr_t) "localhost", &found.address, 0), VIP_SUCCESS);
    CHECK_EQ(found.address.HostAddressLen, attribs.NicAddressLen);
    CHECK_EQ(found.address.DiscriminatorLen, 0x5a5a);
    for (size_t i = offsetof(VIP_NET_ADDRESS, HostAddress) + attribs.NicAddressLen; i < sizeof found; ++i) {
        CHECK_EQ(found.bytes[i], 0x5a);
    }
}

/* Beyond the guide, for programs of the time that fill the whole structure with zeros: a length of 0 stands for as much
 * room as the address needs. */
TEST(by_name_with_length_zero) {
    NetAddress found;
    VIP_CHAR name[] = "localhost";
    open_with_default();
    memset(&found, 0, sizeof found);
    CHECK_RC(VipNSGetHostByName(nic, name, &found.address, 0), VIP_SUCCESS);
    CHECK_EQ(found.address.HostAddressLen, attribs.NicAddressLen);
    CHECK(memcmp(found.address.HostAddress, attribs.LocalNicAddress, attribs.NicAddressLen) == 0);
}

TEST(by_name_with_invalid_arguments_is_refused) {
    NetAddress found;
    VIP_CHAR name[] = "localhost";
    open_with_default();
    memset(&found, 0, sizeof found);
    found.address.HostAddressLen = attribs.NicAddressLen;
    CHECK_RC(VipNSGetHostByName(NULL, name, &found.address, 0), VIP_INVALID_PARAMETER);
    CHECK_RC(VipNSGetHostByName(&nic, name, &found.address, 0), VIP_INVALID_PARAMETER);
    CHECK_RC(VipNSGetHostByName(nic, NULL, &found.address, 0), VIP_INVALID_PARAMETER);
    CHECK_RC(VipNSGetHostByName(nic, name, NULL, 0), VIP_INVALID_PARAMETER);
    found.address.HostAddressLen = (VIP_UINT16)(attribs.NicAddressLen - 1); /* too little room */
    CHECK_RC(VipNSGetHostByName(nic, name, &found.address, 0), VIP_INVALID_PARAMETER);
}

/* ---- VipNSGetHostByName: a hosts-style file ---------------------------------------------------------------------- */

static const char hosts[] =
    "# a comment\n"
    "\n"
    "10.1.2.3\tnode1 Node1.Example.COM   n1 # and another one\n"
    "   10.1.2.4  node2\n"
    "10.1.2.5 node1\n"
    "not-an-address node9\n"
    "10.1.2.6\n"
    "10.1.2.7 last";

TEST(file_names_and_aliases) {
    open_nic();
    CHECK_RC(init_from(hosts), VIP_SUCCESS);
    expect_address("node1", 0, "10.1.2.3");
    expect_address("n1", 0, "10.1.2.3");
    expect_address("node2", 0, "10.1.2.4");
    expect_address("last", 0, "10.1.2.7");
    expect_unknown("and", 0);
    expect_unknown("node3", 0);
    expect_unknown("node", 0);
    expect_unknown("localhost", 0); /* the file stands in place of the resolver */
}

TEST(file_names_ignore_case) {
    open_nic();
    CHECK_RC(init_from(hosts), VIP_SUCCESS);
    expect_address("NODE2", 0, "10.1.2.4");
    expect_address("node1.example.com", 0, "10.1.2.3");
}

/* One name on several lines has several NICs. */
TEST(file_names_with_several_addresses) {
    open_nic();
    CHECK_RC(init_from(hosts), VIP_SUCCESS);
    expect_address("node1", 0, "10.1.2.3");
    expect_address("Node1", 1, "10.1.2.5");
    expect_unknown("node1", 2);
    expect_unknown("node2", 1);
}

/* "An address in the context of the specified VI NIC": those of the other family are of no use there. */
TEST(file_addresses_of_the_family_of_the_nic) {
    static const VIP_UINT8 expected[16] = {0xfd, [15] = 7};
    static const char both[] = "10.1.2.3 node1\nfd00::7 node1\n10.1.2.4 node4\nfd00::8 node6\n";
    NetAddress found;
    open_nic();
    CHECK_RC(init_from(both), VIP_SUCCESS);
    expect_address("node1", 0, "10.1.2.3");
    expect_unknown("node1", 1);
    expect_unknown("node6", 0);
    if (VipOpenNic("viaduct-lo-v6", &nic) != VIP_SUCCESS) skip("no NIC has IPv6 addresses");
    CHECK_RC(VipQueryNic(nic, &attribs), VIP_SUCCESS);
    CHECK_EQ(attribs.NicAddressLen, 16);
    memset(strrchr(file_name, '-') + 1, 'X', 6);
    CHECK_RC(init_from(both), VIP_SUCCESS);
    CHECK_RC(by_name("node1", 0, &found), VIP_SUCCESS);
    CHECK_EQ(found.address.HostAddressLen, 16);
    CHECK(memcmp(found.bytes + offsetof(VIP_NET_ADDRESS, HostAddress), expected, 16) == 0);
    expect_unknown("node1", 1);
    expect_unknown("node4", 0);
}

TEST(an_empty_file_knows_no_name) {
    open_nic();
    CHECK_RC(init_from(""), VIP_SUCCESS);
    expect_unknown("node1", 0);
}

/* ---- VipNSGetHostByAddr ------------------------------------------------------------------------------------------ */

static NetAddress address_of(VIP_UINT8 a, VIP_UINT8 b, VIP_UINT8 c, VIP_UINT8 d) {
    const VIP_UINT8 host[4] = {a, b, c, d};
    NetAddress address;
    memset(&address, 0, sizeof address);
    address.address.HostAddressLen = 4;
    memcpy(address.bytes + offsetof(VIP_NET_ADDRESS, HostAddress), host, 4);
    return address;
}

TEST(by_addr_in_a_file) {
    char name[64];
    VIP_ULONG length = sizeof name;
    NetAddress first = address_of(10, 1, 2, 3), unknown = address_of(10, 9, 9, 9);
    open_nic();
    CHECK_RC(init_from(hosts), VIP_SUCCESS);
    CHECK_RC(VipNSGetHostByAddr(nic, &first.address, name, &length), VIP_SUCCESS);
    CHECK(strcmp(name, "node1") == 0);
    CHECK_EQ(length, 5); /* without the NUL */
    length = sizeof name;
    CHECK_RC(VipNSGetHostByAddr(nic, &unknown.address, name, &length), VIP_ERROR_NAMESERVICE);
}

TEST(by_addr_tells_the_room_it_needs) {
    char name[64] = "untouched";
    NetAddress address = address_of(10, 1, 2, 3);
    open_nic();
    CHECK_RC(init_from(hosts), VIP_SUCCESS);
    for (VIP_ULONG room = 0; room <= 5; ++room) {
        VIP_ULONG length = room;
        CHECK_RC(VipNSGetHostByAddr(nic, &address.address, name, &length), VIP_INVALID_PARAMETER);
        CHECK_EQ(length, 6);
    }
    CHECK(strcmp(name, "untouched") == 0);
    VIP_ULONG length = 6;
    CHECK_RC(VipNSGetHostByAddr(nic, &address.address, name, &length), VIP_SUCCESS);
    CHECK(strcmp(name, "node1") == 0);
    CHECK_EQ(length, 5);
}

TEST(by_addr_of_this_host) {
    char expected[256], name[256];
    VIP_ULONG length = sizeof name;
    NetAddress address;
    open_with_default();
    CHECK(gethostname(expected, sizeof expected) == 0);
    CHECK_RC(by_name("localhost", count_nics() - 1, &address), VIP_SUCCESS);
    CHECK_RC(VipNSGetHostByAddr(nic, &address.address, name, &length), VIP_SUCCESS);
    CHECK(strcmp(name, expected) == 0);
    CHECK_EQ(length, strlen(expected));
    length = sizeof name;
    address = address_of(192, 0, 2, 17);
    CHECK_RC(VipNSGetHostByAddr(nic, &address.address, name, &length), VIP_ERROR_NAMESERVICE);
}

TEST(by_addr_with_invalid_arguments_is_refused) {
    char name[64];
    VIP_ULONG length = sizeof name;
    NetAddress address = address_of(10, 1, 2, 3);
    open_nic();
    CHECK_RC(init_from(hosts), VIP_SUCCESS);
    CHECK_RC(VipNSGetHostByAddr(NULL, &address.address, name, &length), VIP_INVALID_PARAMETER);
    CHECK_RC(VipNSGetHostByAddr(&nic, &address.address, name, &length), VIP_INVALID_PARAMETER);
    CHECK_RC(VipNSGetHostByAddr(nic, NULL, name, &length), VIP_INVALID_PARAMETER);
    CHECK_RC(VipNSGetHostByAddr(nic, &address.address, NULL, &length), VIP_INVALID_PARAMETER);
    CHECK_RC(VipNSGetHostByAddr(nic, &address.address, name, NULL), VIP_INVALID_PARAMETER);
    address.address.HostAddressLen = 3;
    CHECK_RC(VipNSGetHostByAddr(nic, &address.address, name, &length), VIP_INVALID_PARAMETER);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * VipRegisterMem and VipDeregisterMem: guide, sections 3.4.3 and 3.4.4.
 */
#include "endpoint.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>

static VIP_UINT8 buffer[64 * 1024];

static Endpoint *opened(void) {
    Endpoint *end = new_endpoint(NULL);
    endpoint_open(end, (Options){0});
    return end;
}

static VIP_RETURN enrol(const Endpoint *end, void *address, VIP_ULONG length, VIP_MEM_HANDLE *handle) {
    VIP_MEM_ATTRIBUTES attribs = {end->ptag, VIP_FALSE, VIP_FALSE};
    *handle = 0x5a5a5a5a;
    return VipRegisterMem(end->nic, address, length, &attribs, handle);
}

/* A failed registration gives handle 0. */
static void refused(const Endpoint *end, void *address, VIP_ULONG length, VIP_RETURN expected) {
    VIP_MEM_HANDLE handle;
    CHECK_RC(enrol(end, address, length, &handle), expected);
    CHECK_EQ(handle, 0);
}

TEST(registers_any_alignment_and_length) {
    Endpoint *end = opened();
    for (size_t offset = 0; offset < 9; ++offset) {
        for (VIP_ULONG length = 1; length < 10000; length = length * 3 + 1) {
            VIP_MEM_HANDLE handle;
            CHECK_RC(enrol(end, buffer + offset, length, &handle), VIP_SUCCESS);
            CHECK(handle != 0);
            CHECK_RC(VipDeregisterMem(end->nic, buffer + offset, handle), VIP_SUCCESS);
        }
    }
}

TEST(registers_overlapping_regions) {
    Endpoint *end = opened();
    VIP_MEM_HANDLE first, second, third;
    CHECK_RC(enrol(end, buffer, 1000, &first), VIP_SUCCESS);
    CHECK_RC(enrol(end, buffer, 1000, &second), VIP_SUCCESS);
    CHECK_RC(enrol(end, buffer + 500, 1000, &third), VIP_SUCCESS);
    CHECK(first != second && second != third && first != third);
    CHECK_RC(VipDeregisterMem(end->nic, buffer, first), VIP_SUCCESS);
    CHECK_RC(VipDeregisterMem(end->nic, buffer, second), VIP_SUCCESS);
    CHECK_RC(VipDeregisterMem(end->nic, buffer + 500, third), VIP_SUCCESS);
}

TEST(contents_stay) {
    Endpoint *end = opened();
    VIP_MEM_HANDLE handle;
    memset(buffer, 0xa5, sizeof buffer);
    CHECK_RC(enrol(end, buffer, sizeof buffer, &handle), VIP_SUCCESS);
    CHECK_RC(VipDeregisterMem(end->nic, buffer, handle), VIP_SUCCESS);
    for (size_t i = 0; i < sizeof buffer; ++i) CHECK_EQ(buffer[i], 0xa5);
}

TEST(length_zero_is_invalid) { refused(opened(), buffer, 0, VIP_INVALID_PARAMETER); }

TEST(null_address_is_invalid) { refused(opened(), NULL, 100, VIP_INVALID_PARAMETER); }

TEST(a_range_that_wraps_is_invalid) {
    Endpoint *end = opened();
    refused(end, (void *)(UINTPTR_MAX - 10), 100, VIP_INVALID_PARAMETER);
}

/* Two pages with a hole between them. What other threads map meanwhile goes to the space left free above. */
static VIP_UINT8 *pages_around_a_hole(void) {
    const size_t room = (size_t)64 << 20, page = 4096;
    VIP_UINT8 *pages = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED);
    CHECK(munmap(pages + 3 * page, room - 3 * page) == 0);
    CHECK(munmap(pages + page, page) == 0);
    return pages;
}

TEST(unmapped_memory_is_invalid) {
    Endpoint *end = opened();
    VIP_UINT8 *pages = pages_around_a_hole();
    refused(end, pages + 4096, 10, VIP_INVALID_PARAMETER);
    refused(end, pages, 4097, VIP_INVALID_PARAMETER);
    refused(end, pages + 4095, 4098, VIP_INVALID_PARAMETER);
    VIP_MEM_HANDLE handle;
    CHECK_RC(enrol(end, pages, 4096, &handle), VIP_SUCCESS);
}

TEST(invalid_arguments_are_refused) {
    Endpoint *end = opened();
    VIP_MEM_HANDLE handle = 1;
    VIP_MEM_ATTRIBUTES attribs = {end->ptag, VIP_FALSE, VIP_FALSE};
    CHECK_RC(VipRegisterMem(NULL, buffer, 100, &attribs, &handle), VIP_INVALID_PARAMETER);
    CHECK_EQ(handle, 0);
    CHECK_RC(VipRegisterMem(end->vi, buffer, 100, &attribs, &handle), VIP_INVALID_PARAMETER);
    CHECK_RC(VipRegisterMem(end->nic, buffer, 100, NULL, &handle), VIP_INVALID_PARAMETER);
    CHECK_RC(VipRegisterMem(end->nic, buffer, 100, &attribs, NULL), VIP_INVALID_PARAMETER);
}

/* The choice of docs/conformance.md on section 3.4.3: memory that no device reads by itself need not be locked, so that
 * no limit of locked memory stands in the way. */
TEST(registering_locks_no_pages) {
    Endpoint *end = opened();
    VIP_MEM_HANDLE handle;
    VIP_MEM_ATTRIBUTES attribs = {end->ptag, VIP_FALSE, VIP_FALSE};
    struct rlimit none = {0, 0};
    if (is_hardware(end)) skip("a device wants its memory pinned");
    CHECK(setrlimit(RLIMIT_MEMLOCK, &none) == 0);
    if (geteuid() == 0 && setuid(65534) != 0) CHECK_EQ(errno, EINVAL); /* root may lock, but not that of a namespace */
    CHECK_RC(VipRegisterMem(end->nic, end->memory, 4096, &attribs, &handle), VIP_SUCCESS);
    CHECK_RC(VipDeregisterMem(end->nic, end->memory, handle), VIP_SUCCESS);
}

TEST(an_unknown_tag_is_refused) {
    Endpoint *end = opened();
    VIP_NIC_HANDLE other;
    VIP_MEM_HANDLE handle = 1;
    VIP_MEM_ATTRIBUTES attribs = {NULL, VIP_FALSE, VIP_FALSE};
    CHECK_RC(VipRegisterMem(end->nic, buffer, 100, &attribs, &handle), VIP_INVALID_PTAG);
    CHECK_EQ(handle, 0);
    attribs.Ptag = end->vi;
    CHECK_RC(VipRegisterMem(end->nic, buffer, 100, &attribs, &handle), VIP_INVALID_PTAG);
    CHECK_RC(VipOpenNic("VINIC", &other), VIP_SUCCESS);
    CHECK_RC(VipCreatePtag(other, &attribs.Ptag), VIP_SUCCESS);
    CHECK_RC(VipRegisterMem(end->nic, buffer, 100, &attribs, &handle), VIP_INVALID_PTAG);
    CHECK_RC(VipDestroyPtag(other, attribs.Ptag), VIP_SUCCESS);
    CHECK_RC(VipRegisterMem(other, buffer, 100, &attribs, &handle), VIP_INVALID_PTAG);
}

TEST(a_block_that_is_too_large_is_a_resource_error) {
    Endpoint *end = opened();
    VIP_ULONG length = end->limits.MaxRegisterBlockBytes + 1;
    if (is_hardware(end) && (length == 0 || (uintptr_t)buffer + length < length))
        skip("no address space holds more than MaxRegisterBlockBytes");
    refused(end, buffer, length, VIP_ERROR_RESOURCE);
}

TEST(too_many_regions_are_a_resource_error) {
    Endpoint *end = opened();
    VIP_ULONG count = 1; /* the endpoint's own */
    VIP_MEM_HANDLE handle, last = 0;
    VIP_RETURN rc;
    need_limit(end, end->limits.MaxRegisterRegions);
    while ((rc = enrol(end, buffer, 64, &handle)) == VIP_SUCCESS && count <= end->limits.MaxRegisterRegions) {
        last = handle;
        ++count;
    }
    CHECK_RC(rc, VIP_ERROR_RESOURCE);
    CHECK_EQ(handle, 0);
    CHECK_EQ(count, end->limits.MaxRegisterRegions);
    CHECK_RC(VipDeregisterMem(end->nic, buffer, last), VIP_SUCCESS);
    CHECK_RC(enrol(end, buffer, 64, &handle), VIP_SUCCESS);
}

TEST(deregister_wants_the_registered_address_and_handle) {
    Endpoint *end = opened();
    VIP_NIC_HANDLE other;
    VIP_MEM_HANDLE handle, another;
    CHECK_RC(enrol(end, buffer, 1000, &handle), VIP_SUCCESS);
    CHECK_RC(enrol(end, buffer + 100, 1000, &another), VIP_SUCCESS);
    CHECK_RC(VipOpenNic("VINIC", &other), VIP_SUCCESS);
    CHECK_RC(VipDeregisterMem(end->nic, buffer, another), VIP_INVALID_PARAMETER);
    CHECK_RC(VipDeregisterMem(end->nic, buffer + 100, handle), VIP_INVALID_PARAMETER);
    CHECK_RC(VipDeregisterMem(NULL, buffer, handle), VIP_INVALID_PARAMETER);
    CHECK_RC(VipDeregisterMem(other, buffer, handle), VIP_INVALID_PARAMETER);
    CHECK_RC(VipDeregisterMem(end->nic, buffer + 1, handle), VIP_INVALID_PARAMETER);
    CHECK_RC(VipDeregisterMem(end->nic, NULL, handle), VIP_INVALID_PARAMETER);
    CHECK_RC(VipDeregisterMem(end->nic, buffer, 0), VIP_INVALID_PARAMETER);
    CHECK_RC(VipDeregisterMem(end->nic, buffer, ~handle), VIP_INVALID_PARAMETER);
    CHECK_RC(VipDeregisterMem(end->nic, buffer, handle), VIP_SUCCESS);
    CHECK_RC(VipDeregisterMem(end->nic, buffer, handle), VIP_INVALID_PARAMETER);
}

/* ---- Registered memory in use ------------------------------------------------------------------------------------ */

static Work send_from(const Endpoint *end, void *address, VIP_UINT32 length, VIP_MEM_HANDLE handle) {
    Work work = send_work(end, 0, length);
    work.DS[0].Local.Data.Address = address;
    work.DS[0].Local.Handle = handle;
    return work;
}

TEST(deregistered_memory_cannot_be_sent) {
    Pair pair = connected_pair(VIP_SERVICE_UNRELIABLE);
    VIP_MEM_HANDLE handle;
    CHECK_RC(enrol(pair.client, buffer, 1000, &handle), VIP_SUCCESS);
    for (int slot = 0; slot < 2; ++slot) post_simple_recv(pair.server, slot, 64);
    CHECK_RC(post_send(pair.client, 0, send_from(pair.client, buffer, 64, handle)), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, SENT);
    CHECK_RC(VipDeregisterMem(pair.client->nic, buffer, handle), VIP_SUCCESS);
    CHECK_RC(post_send(pair.client, 1, send_from(pair.client, buffer, 64, handle)), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 1, SENT | VIP_STATUS_PROTECTION_ERROR);
}

TEST(deregistered_memory_cannot_receive) {
    Pair pair = connected_pair(VIP_SERVICE_UNRELIABLE);
    VIP_MEM_HANDLE handle;
    memset(buffer, 0x11, 64);
    CHECK_RC(enrol(pair.client, buffer, 1000, &handle), VIP_SUCCESS);
    CHECK_RC(post_recv(pair.client, 0, send_from(pair.client, buffer, 64, handle)), VIP_SUCCESS);
    CHECK_RC(VipDeregisterMem(pair.client->nic, buffer, handle), VIP_SUCCESS);
    fill(pair.server, SEND_AT(0), 64, 0x80);
    post_simple_send(pair.server, 0, 64);
    EXPECT_RECV(pair.client, 0, RECEIVED | VIP_STATUS_PROTECTION_ERROR);
    for (size_t i = 0; i < 64; ++i) CHECK_EQ(buffer[i], 0x11);
}

TEST(deregistering_one_of_two_regions_leaves_the_other) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_MEM_HANDLE first, second;
    CHECK_RC(enrol(pair.client, buffer, 1000, &first), VIP_SUCCESS);
    CHECK_RC(enrol(pair.client, buffer + 100, 1000, &second), VIP_SUCCESS);
    CHECK_RC(VipDeregisterMem(pair.client->nic, buffer, first), VIP_SUCCESS);
    post_simple_recv(pair.server, 0, 64);
    CHECK_RC(post_send(pair.client, 0, send_from(pair.client, buffer + 200, 64, second)), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, SENT);
    EXPECT_RECV(pair.server, 0, RECEIVED);
}

TEST(a_region_is_good_to_its_last_byte) {
    Pair pair = connected_pair(VIP_SERVICE_UNRELIABLE);
    VIP_MEM_HANDLE handle;
    CHECK_RC(enrol(pair.client, buffer + 3, 1000, &handle), VIP_SUCCESS);
    for (int slot = 0; slot < 3; ++slot) post_simple_recv(pair.server, slot, 2000);
    CHECK_RC(post_send(pair.client, 0, send_from(pair.client, buffer + 3, 1000, handle)), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, SENT);
    CHECK_RC(post_send(pair.client, 1, send_from(pair.client, buffer + 3, 1001, handle)), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 1, SENT | VIP_STATUS_PROTECTION_ERROR);
    CHECK_RC(post_send(pair.client, 2, send_from(pair.client, buffer + 2, 10, handle)), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 2, SENT | VIP_STATUS_PROTECTION_ERROR);
}

static VIP_UINT8 *read_only_page(void) {
    VIP_UINT8 *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    memset(page, 0x77, 4096);
    CHECK(mprotect(page, 4096, PROT_READ) == 0);
    return page;
}

TEST(a_read_only_page_can_be_sent) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_MEM_HANDLE handle;
    VIP_UINT8 *page = read_only_page();
    CHECK_RC(enrol(pair.client, page, 4096, &handle), VIP_SUCCESS);
    post_simple_recv(pair.server, 0, 4096);
    CHECK_RC(post_send(pair.client, 0, send_from(pair.client, page, 4096, handle)), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, SENT);
    CHECK_EQ(EXPECT_RECV(pair.server, 0, RECEIVED).length, 4096);
}

TEST(a_read_only_page_is_never_written) {
    Pair pair = connected_pair(VIP_SERVICE_UNRELIABLE);
    VIP_MEM_HANDLE handle;
    VIP_UINT8 *page = read_only_page();
    CHECK_RC(enrol(pair.client, page, 4096, &handle), VIP_SUCCESS);
    CHECK_RC(post_recv(pair.client, 0, send_from(pair.client, page, 4096, handle)), VIP_SUCCESS);
    post_simple_send(pair.server, 0, 64);
    CHECK_EQ(EXPECT_RECV(pair.client, 0, RECEIVED | VIP_STATUS_PROTECTION_ERROR).length, 0);
    for (size_t i = 0; i < 4096; ++i) CHECK_EQ(page[i], 0x77);
}

/* The NIC that owns the memory is the NIC of the VI: another NIC's handle does not do. */
TEST(a_region_of_another_nic_is_refused) {
    Pair pair = connected_pair(VIP_SERVICE_UNRELIABLE);
    VIP_NIC_HANDLE other;
    VIP_MEM_HANDLE handle, unused;
    VIP_MEM_ATTRIBUTES attribs = {NULL, VIP_FALSE, VIP_FALSE};
    CHECK_RC(VipOpenNic("VINIC", &other), VIP_SUCCESS);
    CHECK_RC(VipCreatePtag(other, &attribs.Ptag), VIP_SUCCESS);
    for (int i = 0; i < 50; ++i) CHECK_RC(VipRegisterMem(other, buffer, 50, &attribs, &unused), VIP_SUCCESS);
    CHECK_RC(VipRegisterMem(other, buffer, 1000, &attribs, &handle), VIP_SUCCESS);
    CHECK_RC(post_send(pair.client, 0, send_from(pair.client, buffer, 64, handle)), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, SENT | VIP_STATUS_PROTECTION_ERROR);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * VipQueryNic, VipSetViAttributes, VipQueryVi, VipSetMemAttributes, VipQueryMem, VipQuerySystemManagementInfo:
 * guide, section 3.7.
 */
#include "endpoint.h"

static Endpoint *opened(void) {
    Endpoint *end = new_endpoint(NULL);
    endpoint_open(end, (Options){0});
    return end;
}

/* ---- VipQueryNic ------------------------------------------------------------------------------------------------- */

TEST(nic_attributes_are_sound) {
    Endpoint *end = opened();
    const VIP_NIC_ATTRIBUTES *nic = &end->limits;
    CHECK(memchr(nic->Name, '\0', sizeof nic->Name) != NULL && nic->Name[0] != '\0');
    CHECK(nic->NicAddressLen > 0 && nic->LocalNicAddress != NULL);
    CHECK_EQ(nic->ThreadSafe, VIP_TRUE);
    CHECK(nic->MaxDiscriminatorLen >= 16);
    CHECK(nic->MaxSegmentsPerDesc >= (is_hardware(end) ? 2 : 252)); /* an RDMA operation has at least two */
    CHECK(nic->MaxPtags >= nic->MaxVI);
    CHECK(nic->MaxRegisterBytes > 0 && nic->MaxRegisterRegions > 0 && nic->MaxRegisterBlockBytes > 0);
    CHECK(nic->MaxVI > 0 && nic->MaxDescriptorsPerQueue > 0 && nic->MaxCQ > 0 && nic->MaxCQEntries > 0);
    CHECK(nic->MaxTransferSize > 0 && nic->NativeMTU > 0);
    CHECK(nic->ReliabilityLevelSupport != 0);
    CHECK_EQ(nic->RDMAReadSupport & ~nic->ReliabilityLevelSupport, 0);
}

TEST(nic_attributes_are_constant) {
    Endpoint *end = opened();
    const VIP_NIC_ATTRIBUTES *first = &end->limits;
    VIP_NIC_ATTRIBUTES again;
    memset(&again, 0, sizeof again);
    CHECK_RC(VipQueryNic(end->nic, &again), VIP_SUCCESS);
    CHECK(strcmp(again.Name, first->Name) == 0);
    CHECK_EQ(again.HardwareVersion, first->HardwareVersion);
    CHECK_EQ(again.ProviderVersion, first->ProviderVersion);
    CHECK_EQ(again.NicAddressLen, first->NicAddressLen);
    CHECK_EQ(again.ThreadSafe, first->ThreadSafe);
    CHECK_EQ(again.MaxDiscriminatorLen, first->MaxDiscriminatorLen);
    CHECK_EQ(again.MaxRegisterBytes, first->MaxRegisterBytes);
    CHECK_EQ(again.MaxRegisterRegions, first->MaxRegisterRegions);
    CHECK_EQ(again.MaxRegisterBlockBytes, first->MaxRegisterBlockBytes);
    CHECK_EQ(again.MaxVI, first->MaxVI);
    CHECK_EQ(again.MaxDescriptorsPerQueue, first->MaxDescriptorsPerQueue);
    CHECK_EQ(again.MaxSegmentsPerDesc, first->MaxSegmentsPerDesc);
    CHECK_EQ(again.MaxCQ, first->MaxCQ);
    CHECK_EQ(again.MaxCQEntries, first->MaxCQEntries);
    CHECK_EQ(again.MaxTransferSize, first->MaxTransferSize);
    CHECK_EQ(again.NativeMTU, first->NativeMTU);
    CHECK_EQ(again.MaxPtags, first->MaxPtags);
    CHECK_EQ(again.ReliabilityLevelSupport, first->ReliabilityLevelSupport);
    CHECK_EQ(again.RDMAReadSupport, first->RDMAReadSupport);
    CHECK(memcmp(again.LocalNicAddress, end->host, again.NicAddressLen) == 0);
}

TEST(query_nic_with_invalid_arguments_is_refused) {
    Endpoint *end = opened();
    VIP_NIC_ATTRIBUTES attribs;
    CHECK_RC(VipQueryNic(NULL, &attribs), VIP_INVALID_PARAMETER);
    CHECK_RC(VipQueryNic(end->vi, &attribs), VIP_INVALID_PARAMETER);
    CHECK_RC(VipQueryNic(end->nic, NULL), VIP_INVALID_PARAMETER);
}

/* ---- VipQueryVi -------------------------------------------------------------------------------------------------- */

static void check_attribs(const VIP_VI_ATTRIBUTES *actual, const VIP_VI_ATTRIBUTES *expected) {
    CHECK_EQ(actual->ReliabilityLevel, expected->ReliabilityLevel);
    CHECK_EQ(actual->MaxTransferSize, expected->MaxTransferSize);
    CHECK(actual->QoS == expected->QoS);
    CHECK(actual->Ptag == expected->Ptag);
    CHECK_EQ(actual->EnableRdmaWrite, expected->EnableRdmaWrite);
    CHECK_EQ(actual->EnableRdmaRead, expected->EnableRdmaRead);
}

TEST(vi_attributes_are_as_created) {
    Endpoint *end = opened();
    ViQuery query = query_vi(end);
    check_attribs(&query.attribs, &end->attribs);
}

TEST(vi_states) {
    Pair pair = open_pair((Options){0});
    CHECK_EQ(state_of(pair.client), VIP_STATE_IDLE);
    Request request = request_to(pair.client, pair.client, VIP_INFINITE);
    CHECK_RC(peer_request(pair.client, &request), VIP_SUCCESS);
    CHECK_EQ(state_of(pair.client), VIP_STATE_CONNECT_PENDING);
    CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
    pair_connect(&pair);
    CHECK_EQ(state_of(pair.client), VIP_STATE_CONNECTED);
    CHECK_RC(disconnect(pair.server), VIP_SUCCESS);
    await_error(pair.client, VIP_ERROR_CONN_LOST);
    CHECK_EQ(state_of(pair.client), VIP_STATE_ERROR);
    CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
    CHECK_EQ(state_of(pair.client), VIP_STATE_IDLE);
}

TEST(vi_queues_are_empty_or_not) {
    Endpoint *end = opened();
    post_simple_recv(end, 0, 64);
    CHECK(query_vi(end).send_empty && !query_vi(end).recv_empty);
    CHECK_RC(disconnect(end), VIP_SUCCESS);
    CHECK(!query_vi(end).recv_empty); /* complete, but still on the queue */
    EXPECT_RECV(end, 0, RECEIVED | FLUSHED);
    CHECK(query_vi(end).recv_empty);
    post_simple_send(end, 0, 64);
    CHECK(!query_vi(end).send_empty && query_vi(end).recv_empty);
    EXPECT_SEND(end, 0, SENT | FLUSHED);
    CHECK(query_vi(end).send_empty);
}

TEST(query_vi_with_invalid_arguments_is_refused) {
    Endpoint *end = opened();
    ViQuery q;
    CHECK_RC(VipQueryVi(NULL, &q.state, &q.attribs, &q.send_empty, &q.recv_empty), VIP_INVALID_PARAMETER);
    CHECK_RC(VipQueryVi(end->nic, &q.state, &q.attribs, &q.send_empty, &q.recv_empty), VIP_INVALID_PARAMETER);
    CHECK_RC(VipQueryVi(end->vi, NULL, &q.attribs, &q.send_empty, &q.recv_empty), VIP_INVALID_PARAMETER);
    CHECK_RC(VipQueryVi(end->vi, &q.state, NULL, &q.send_empty, &q.recv_empty), VIP_INVALID_PARAMETER);
    CHECK_RC(VipQueryVi(end->vi, &q.state, &q.attribs, NULL, &q.recv_empty), VIP_INVALID_PARAMETER);
    CHECK_RC(VipQueryVi(end->vi, &q.state, &q.attribs, &q.send_empty, NULL), VIP_INVALID_PARAMETER);
}

/* ---- VipSetViAttributes ------------------------------------------------------------------------------------------ */

TEST(set_vi_changes_every_attribute) {
    Endpoint *end = opened();
    VIP_VI_ATTRIBUTES next = {.ReliabilityLevel = VIP_SERVICE_RELIABLE_RECEPTION, .MaxTransferSize = 4096};
    CHECK_RC(VipCreatePtag(end->nic, &next.Ptag), VIP_SUCCESS);
    CHECK_RC(VipSetViAttributes(end->vi, &next), VIP_SUCCESS);
    ViQuery query = query_vi(end);
    check_attribs(&query.attribs, &next);
}

/* Good new attributes, of which a case spoils one. */
static VIP_VI_ATTRIBUTES other_attribs(const Endpoint *end) {
    VIP_VI_ATTRIBUTES next = end->attribs;
    next.EnableRdmaWrite = VIP_FALSE;
    next.EnableRdmaRead = VIP_FALSE;
    next.MaxTransferSize = 4096;
    return next;
}

/* Nothing changes. */
static void set_vi_refused(Endpoint *end, VIP_VI_ATTRIBUTES wrong, VIP_RETURN expected) {
    CHECK_RC(VipSetViAttributes(end->vi, &wrong), expected);
    ViQuery query = query_vi(end);
    check_attribs(&query.attribs, &end->attribs);
}

TEST(set_vi_checks_the_reliability_level) {
    static const VIP_RELIABILITY_LEVEL wrong[] = {0, 0x03, 0x05, 0x06, 0x07, 0x08, 0xffff};
    Endpoint *end = opened();
    VIP_VI_ATTRIBUTES next = other_attribs(end);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
        next.ReliabilityLevel = wrong[i];
        set_vi_refused(end, next, VIP_INVALID_RELIABILITY_LEVEL);
    }
}

TEST(set_vi_checks_the_transfer_size) {
    Endpoint *end = opened();
    VIP_VI_ATTRIBUTES next = other_attribs(end);
    next.MaxTransferSize = end->limits.MaxTransferSize + 1;
    set_vi_refused(end, next, VIP_INVALID_MTU);
    next.MaxTransferSize = 0;
    set_vi_refused(end, next, VIP_INVALID_MTU);
}

TEST(set_vi_accepts_no_quality_of_service) {
    Endpoint *end = opened();
    VIP_VI_ATTRIBUTES next = other_attribs(end);
    next.QoS = end;
    set_vi_refused(end, next, VIP_INVALID_QOS);
}

TEST(set_vi_checks_the_protection_tag) {
    Endpoint *end = opened();
    VIP_NIC_HANDLE other;
    VIP_VI_ATTRIBUTES next = other_attribs(end);
    next.Ptag = end;
    set_vi_refused(end, next, VIP_INVALID_PTAG);
    next.Ptag = NULL;
    set_vi_refused(end, next, VIP_INVALID_PTAG);
    CHECK_RC(VipOpenNic("VINIC", &other), VIP_SUCCESS);
    CHECK_RC(VipCreatePtag(other, &next.Ptag), VIP_SUCCESS);
    set_vi_refused(end, next, VIP_INVALID_PTAG);
}

TEST(set_vi_refuses_rdma_read_where_it_is_not_supported) {
    Endpoint *end = opened();
    VIP_VI_ATTRIBUTES next = other_attribs(end);
    next.ReliabilityLevel = VIP_SERVICE_UNRELIABLE;
    next.EnableRdmaRead = VIP_TRUE;
    set_vi_refused(end, next, VIP_INVALID_RDMAREAD);
}

TEST(set_vi_with_invalid_arguments_is_refused) {
    Endpoint *end = opened();
    CHECK_RC(VipSetViAttributes(NULL, &end->attribs), VIP_INVALID_PARAMETER);
    CHECK_RC(VipSetViAttributes(end->nic, &end->attribs), VIP_INVALID_PARAMETER);
    CHECK_RC(VipSetViAttributes(end->vi, NULL), VIP_INVALID_PARAMETER);
}

TEST(set_vi_wants_an_idle_vi) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_VI_ATTRIBUTES next = pair.client->attribs;
    next.EnableRdmaWrite = VIP_FALSE;
    CHECK_RC(VipSetViAttributes(pair.client->vi, &next), VIP_INVALID_STATE);
    ViQuery query = query_vi(pair.client);
    check_attribs(&query.attribs, &pair.client->attribs);
    CHECK_RC(disconnect(pair.server), VIP_SUCCESS);
    await_error(pair.client, VIP_ERROR_CONN_LOST);
    CHECK_RC(VipSetViAttributes(pair.client->vi, &next), VIP_INVALID_STATE);
    CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
    CHECK_RC(VipSetViAttributes(pair.client->vi, &next), VIP_SUCCESS);
    Request request = request_to(pair.client, pair.server, LONG_MS);
    CHECK_RC(peer_request(pair.client, &request), VIP_SUCCESS);
    CHECK_RC(VipSetViAttributes(pair.client->vi, &next), VIP_INVALID_STATE);
}

/* ---- VipQueryMem, VipSetMemAttributes ---------------------------------------------------------------------------- */

TEST(mem_attributes_are_as_registered_and_as_set) {
    Endpoint *end = opened();
    VIP_MEM_ATTRIBUTES found, next = {NULL, VIP_FALSE, VIP_TRUE};
    CHECK_RC(VipQueryMem(end->nic, end->memory, end->handle, &found), VIP_SUCCESS);
    CHECK(found.Ptag == end->ptag && found.EnableRdmaWrite == VIP_TRUE && found.EnableRdmaRead == VIP_TRUE);
    CHECK_RC(VipCreatePtag(end->nic, &next.Ptag), VIP_SUCCESS);
    set_mem_attributes(end, end->memory, end->handle, next);
    CHECK_RC(VipQueryMem(end->nic, end->memory, end->handle, &found), VIP_SUCCESS);
    CHECK(found.Ptag == next.Ptag && found.EnableRdmaWrite == VIP_FALSE && found.EnableRdmaRead == VIP_TRUE);
}

TEST(set_mem_changes_all_or_nothing) {
    Endpoint *end = opened();
    VIP_NIC_HANDLE other;
    VIP_MEM_ATTRIBUTES found, wrong = {NULL, VIP_FALSE, VIP_FALSE};
    CHECK_RC(VipSetMemAttributes(end->nic, end->memory, end->handle, &wrong), VIP_INVALID_PTAG);
    CHECK_RC(VipOpenNic("VINIC", &other), VIP_SUCCESS);
    CHECK_RC(VipCreatePtag(other, &wrong.Ptag), VIP_SUCCESS);
    CHECK_RC(VipSetMemAttributes(end->nic, end->memory, end->handle, &wrong), VIP_INVALID_PTAG);
    CHECK_RC(VipQueryMem(end->nic, end->memory, end->handle, &found), VIP_SUCCESS);
    CHECK(found.Ptag == end->ptag && found.EnableRdmaWrite == VIP_TRUE && found.EnableRdmaRead == VIP_TRUE);
}

/* Both calls want the base address of the region, its handle, and the NIC it belongs to. */
static void both_refuse(VIP_NIC_HANDLE nic, void *address, VIP_MEM_HANDLE handle, VIP_MEM_ATTRIBUTES *attribs) {
    CHECK_RC(VipQueryMem(nic, address, handle, attribs), VIP_INVALID_PARAMETER);
    CHECK_RC(VipSetMemAttributes(nic, address, handle, attribs), VIP_INVALID_PARAMETER);
}

TEST(mem_calls_with_invalid_arguments_are_refused) {
    Endpoint *end = opened();
    VIP_NIC_HANDLE other;
    VIP_MEM_ATTRIBUTES attribs = {end->ptag, VIP_TRUE, VIP_TRUE};
    VIP_MEM_HANDLE another;
    CHECK_RC(VipOpenNic("VINIC", &other), VIP_SUCCESS);
    CHECK_RC(VipRegisterMem(end->nic, end->memory + 64, 64, &attribs, &another), VIP_SUCCESS);
    both_refuse(end->nic, end->memory, another, &attribs); /* each belongs to a region, but not to the same one */
    both_refuse(end->nic, end->memory + 64, end->handle, &attribs);
    both_refuse(NULL, end->memory, end->handle, &attribs);
    both_refuse(other, end->memory, end->handle, &attribs);
    both_refuse(end->nic, end->memory + 1, end->handle, &attribs);
    both_refuse(end->nic, NULL, end->handle, &attribs);
    both_refuse(end->nic, end->memory, 0, &attribs);
    both_refuse(end->nic, end->memory, ~end->handle, &attribs);
    both_refuse(end->nic, end->memory, end->handle, NULL);
    CHECK_RC(VipDeregisterMem(end->nic, end->memory, end->handle), VIP_SUCCESS);
    both_refuse(end->nic, end->memory, end->handle, &attribs);
}

/* ---- VipQuerySystemManagementInfo -------------------------------------------------------------------------------- */

enum { ROOM = 64 };

typedef struct {
    NetAddress addresses[ROOM];
    VIP_NET_ADDRESS *pointers[ROOM];
    VIP_AUTODISCOVERY_LIST list;
} Discovery;

static void prepare(const Endpoint *end, Discovery *discovery, VIP_ULONG hops, VIP_ULONG room) {
    memset(discovery, 0, sizeof *discovery);
    for (int i = 0; i < ROOM; ++i) {
        discovery->addresses[i].address.HostAddressLen = end->limits.NicAddressLen;
        discovery->pointers[i] = &discovery->addresses[i].address;
    }
    discovery->list = (VIP_AUTODISCOVERY_LIST){hops, discovery->pointers, room};
}

static VIP_RETURN discover(const Endpoint *end, Discovery *discovery) {
    return VipQuerySystemManagementInfo(end->nic, VIP_SMI_AUTODISCOVERY, &discovery->list);
}

static int contains(const Discovery *discovery, const VIP_UINT8 *host, size_t length) {
    for (VIP_ULONG i = 0; i < discovery->list.NumAdAddrs; ++i) {
        const VIP_NET_ADDRESS *found = discovery->pointers[i];
        if (found->HostAddressLen == length && memcmp(found->HostAddress, host, length) == 0) return 1;
    }
    return 0;
}

TEST(autodiscovery_finds_the_nics_of_the_host) {
    static Discovery discovery;
    need_two_nics();
    Endpoint *end = opened(), *other = new_endpoint(NULL);
    endpoint_open(other, (Options){.device = "VINIC1"});
    for (VIP_ULONG hops = 1; hops <= 3; ++hops) {
        prepare(end, &discovery, hops, ROOM);
        CHECK_RC(discover(end, &discovery), VIP_SUCCESS);
        CHECK_EQ(discovery.list.NumAdAddrs, count_nics());
        CHECK(contains(&discovery, end->host, end->limits.NicAddressLen));
        CHECK(contains(&discovery, other->host, other->limits.NicAddressLen));
    }
}

TEST(autodiscovery_of_depth_zero_finds_the_nic_itself) {
    static Discovery discovery;
    Endpoint *end = opened();
    prepare(end, &discovery, 0, ROOM);
    CHECK_RC(discover(end, &discovery), VIP_SUCCESS);
    CHECK_EQ(discovery.list.NumAdAddrs, 1);
    CHECK(contains(&discovery, end->host, end->limits.NicAddressLen));
}

TEST(autodiscovery_tells_the_room_it_needs) {
    static Discovery discovery;
    Endpoint *end = opened();
    prepare(end, &discovery, 1, ROOM);
    CHECK_RC(discover(end, &discovery), VIP_SUCCESS);
    VIP_ULONG needed = discovery.list.NumAdAddrs;
    prepare(end, &discovery, 1, 1);
    CHECK_RC(discover(end, &discovery), VIP_ERROR_RESOURCE);
    CHECK_EQ(discovery.list.NumAdAddrs, needed);
    prepare(end, &discovery, 1, 0);
    discovery.list.ADAddrArray = NULL; /* no room, no array */
    CHECK_RC(discover(end, &discovery), VIP_ERROR_RESOURCE);
    CHECK_EQ(discovery.list.NumAdAddrs, needed);
    prepare(end, &discovery, 1, needed);
    CHECK_RC(discover(end, &discovery), VIP_SUCCESS);
}

TEST(autodiscovery_wants_room_for_each_address) {
    static Discovery discovery;
    Endpoint *end = opened();
    prepare(end, &discovery, 1, ROOM);
    discovery.addresses[0].address.HostAddressLen = (VIP_UINT16)(end->limits.NicAddressLen - 1);
    CHECK_RC(discover(end, &discovery), VIP_INVALID_PARAMETER);
    prepare(end, &discovery, 1, ROOM);
    discovery.addresses[0].address.HostAddressLen = 200; /* more room than needed */
    CHECK_RC(discover(end, &discovery), VIP_SUCCESS);
    CHECK_EQ(discovery.addresses[0].address.HostAddressLen, end->limits.NicAddressLen);
}

TEST(smi_with_invalid_arguments_is_refused) {
    static Discovery discovery;
    Endpoint *end = opened();
    prepare(end, &discovery, 1, ROOM);
    CHECK_RC(VipQuerySystemManagementInfo(NULL, VIP_SMI_AUTODISCOVERY, &discovery.list), VIP_INVALID_PARAMETER);
    CHECK_RC(VipQuerySystemManagementInfo(end->vi, VIP_SMI_AUTODISCOVERY, &discovery.list), VIP_INVALID_PARAMETER);
    CHECK_RC(VipQuerySystemManagementInfo(end->nic, VIP_SMI_AUTODISCOVERY, NULL), VIP_INVALID_PARAMETER);
    discovery.list.ADAddrArray = NULL;
    CHECK_RC(discover(end, &discovery), VIP_INVALID_PARAMETER);
}

TEST(smi_of_another_type_is_not_supported) {
    static Discovery discovery;
    Endpoint *end = opened();
    prepare(end, &discovery, 1, ROOM);
    CHECK_RC(VipQuerySystemManagementInfo(end->nic, 0, &discovery.list), VIP_ERROR_NOT_SUPPORTED);
    CHECK_RC(VipQuerySystemManagementInfo(end->nic, 99, &discovery.list), VIP_ERROR_NOT_SUPPORTED);
}

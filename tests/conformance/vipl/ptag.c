/* SPDX-License-Identifier: BSD-3-Clause
 * VipCreatePtag and VipDestroyPtag: guide, sections 3.4.1 and 3.4.2.
 */
#include "endpoint.h"

static Endpoint *opened(void) {
    Endpoint *end = new_endpoint(NULL);
    endpoint_open(end, (Options){0});
    return end;
}

TEST(creates_different_tags) {
    Endpoint *end = opened();
    VIP_PROTECTION_HANDLE first = NULL, second = NULL;
    CHECK_RC(VipCreatePtag(end->nic, &first), VIP_SUCCESS);
    CHECK_RC(VipCreatePtag(end->nic, &second), VIP_SUCCESS);
    CHECK(first != NULL && second != NULL && first != second);
    CHECK_RC(VipDestroyPtag(end->nic, first), VIP_SUCCESS);
    CHECK_RC(VipDestroyPtag(end->nic, second), VIP_SUCCESS);
}

TEST(create_with_invalid_arguments_is_refused) {
    Endpoint *end = opened();
    VIP_PROTECTION_HANDLE ptag;
    CHECK_RC(VipCreatePtag(NULL, &ptag), VIP_INVALID_PARAMETER);
    CHECK_RC(VipCreatePtag(end->vi, &ptag), VIP_INVALID_PARAMETER);
    CHECK_RC(VipCreatePtag(end->nic, NULL), VIP_INVALID_PARAMETER);
}

/* One for each VI at least: guide, section 4.5. */
TEST(create_more_than_max_ptags_is_a_resource_error) {
    Endpoint *end = opened();
    VIP_ULONG count = 1; /* the endpoint's own */
    VIP_PROTECTION_HANDLE ptag, last = NULL;
    VIP_RETURN rc;
    CHECK(end->limits.MaxPtags >= end->limits.MaxVI);
    need_limit(end, end->limits.MaxPtags);
    while ((rc = VipCreatePtag(end->nic, &ptag)) == VIP_SUCCESS && count <= end->limits.MaxPtags) {
        last = ptag;
        ++count;
    }
    CHECK_RC(rc, VIP_ERROR_RESOURCE);
    CHECK_EQ(count, end->limits.MaxPtags);
    CHECK_RC(VipDestroyPtag(end->nic, last), VIP_SUCCESS);
    CHECK_RC(VipCreatePtag(end->nic, &last), VIP_SUCCESS);
}

TEST(destroy_of_an_invalid_tag_is_refused) {
    Endpoint *end = opened();
    VIP_NIC_HANDLE other;
    VIP_PROTECTION_HANDLE ptag;
    CHECK_RC(VipCreatePtag(end->nic, &ptag), VIP_SUCCESS);
    CHECK_RC(VipDestroyPtag(NULL, ptag), VIP_INVALID_PARAMETER);
    CHECK_RC(VipDestroyPtag(end->nic, NULL), VIP_INVALID_PARAMETER);
    CHECK_RC(VipDestroyPtag(end->nic, end), VIP_INVALID_PARAMETER);
    CHECK_RC(VipOpenNic("VINIC", &other), VIP_SUCCESS);
    CHECK_RC(VipDestroyPtag(other, ptag), VIP_INVALID_PARAMETER);
    CHECK_RC(VipDestroyPtag(end->nic, ptag), VIP_SUCCESS);
    CHECK_RC(VipDestroyPtag(end->nic, ptag), VIP_INVALID_PARAMETER);
}

TEST(destroy_of_a_tag_that_a_vi_uses_is_refused) {
    Endpoint *end = opened();
    VIP_VI_ATTRIBUTES attribs = end->attribs;
    VIP_VI_HANDLE vi;
    CHECK_RC(VipCreatePtag(end->nic, &attribs.Ptag), VIP_SUCCESS);
    CHECK_RC(VipCreateVi(end->nic, &attribs, NULL, NULL, &vi), VIP_SUCCESS);
    CHECK_RC(VipDestroyPtag(end->nic, attribs.Ptag), VIP_ERROR_RESOURCE);
    CHECK_RC(VipDestroyVi(vi), VIP_SUCCESS);
    CHECK_RC(VipDestroyPtag(end->nic, attribs.Ptag), VIP_SUCCESS);
}

TEST(destroy_of_a_tag_that_a_region_uses_is_refused) {
    Endpoint *end = opened();
    VIP_MEM_ATTRIBUTES attribs = {NULL, VIP_FALSE, VIP_FALSE};
    VIP_MEM_HANDLE handle;
    CHECK_RC(VipCreatePtag(end->nic, &attribs.Ptag), VIP_SUCCESS);
    CHECK_RC(VipRegisterMem(end->nic, end->memory, 100, &attribs, &handle), VIP_SUCCESS);
    CHECK_RC(VipDestroyPtag(end->nic, attribs.Ptag), VIP_ERROR_RESOURCE);
    CHECK_RC(VipDeregisterMem(end->nic, end->memory, handle), VIP_SUCCESS);
    CHECK_RC(VipDestroyPtag(end->nic, attribs.Ptag), VIP_SUCCESS);
}

/* Changing the attributes frees the old tag and takes the new one. */
TEST(changing_attributes_moves_the_use_of_a_tag) {
    Endpoint *end = opened();
    VIP_PROTECTION_HANDLE next;
    VIP_VI_ATTRIBUTES vi_attribs = end->attribs;
    VIP_MEM_ATTRIBUTES mem_attribs = {NULL, VIP_TRUE, VIP_TRUE};
    CHECK_RC(VipCreatePtag(end->nic, &next), VIP_SUCCESS);
    vi_attribs.Ptag = mem_attribs.Ptag = next;
    CHECK_RC(VipSetViAttributes(end->vi, &vi_attribs), VIP_SUCCESS);
    CHECK_RC(VipDestroyPtag(end->nic, end->ptag), VIP_ERROR_RESOURCE); /* the region still uses it */
    set_mem_attributes(end, end->memory, end->handle, mem_attribs);
    CHECK_RC(VipDestroyPtag(end->nic, end->ptag), VIP_SUCCESS);
    CHECK_RC(VipDestroyPtag(end->nic, next), VIP_ERROR_RESOURCE);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * dat_lmr_create, dat_lmr_query, dat_lmr_free, dat_lmr_sync_rdma_read, dat_lmr_sync_rdma_write.
 */
#include "side.h"

#include <sys/mman.h>

enum { BYTES = 8192 };

static DAT_IA_HANDLE ia;
static DAT_PZ_HANDLE pz;
static uint8_t memory[BYTES];

/* What dat_lmr_create gives. */
typedef struct {
    DAT_LMR_HANDLE handle;
    DAT_LMR_CONTEXT context;
    DAT_RMR_CONTEXT rmr_context;
    DAT_VLEN size;
    DAT_VADDR address;
} Region;

static void open_zone(void) {
    ia = open_ia(NULL);
    pz = new_pz(ia);
}

static void close_zone(void) {
    CHECK_OK(dat_pz_free(pz));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

static DAT_RETURN create(Region *region, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION description, DAT_VLEN length,
                         DAT_MEM_PRIV_FLAGS privileges, DAT_VA_TYPE va_type) {
    memset(region, 0, sizeof *region);
    return dat_lmr_create(ia, type, description, length, pz, privileges, va_type, &region->handle, &region->context,
                          &region->rmr_context, &region->size, &region->address);
}

static DAT_RETURN create_virtual(Region *region, void *address, DAT_VLEN length, DAT_MEM_PRIV_FLAGS privileges) {
    return create(region, DAT_MEM_TYPE_VIRTUAL, (DAT_REGION_DESCRIPTION){.for_va = address}, length, privileges,
                  DAT_VA_TYPE_VA);
}

static Region whole(void) {
    Region region;
    CHECK_OK(create_virtual(&region, memory, BYTES, DAT_MEM_PRIV_ALL_FLAG));
    return region;
}

static DAT_LMR_PARAM query(DAT_LMR_HANDLE lmr, DAT_LMR_PARAM_MASK mask) {
    DAT_LMR_PARAM param;
    memset(&param, 0xa5, sizeof param);
    CHECK_OK(dat_lmr_query(lmr, mask, &param));
    return param;
}

TEST(lmr_create__virtual_memory) {
    open_zone();
    Region region = whole(), second = whole();
    CHECK(region.handle != DAT_HANDLE_NULL && region.handle != second.handle);
    CHECK(region.context != second.context);
    CHECK(region.address <= (DAT_VADDR)(uintptr_t)memory);
    CHECK(region.address + region.size >= (DAT_VADDR)(uintptr_t)memory + BYTES);
    CHECK_OK(dat_lmr_free(second.handle));
    CHECK_OK(dat_lmr_free(region.handle));
    close_zone();
}

TEST(lmr_create__unaligned_memory) {
    Region region;
    open_zone();
    CHECK_OK(create_virtual(&region, memory + 3, 17, DAT_MEM_PRIV_ALL_FLAG));
    CHECK(region.address <= (DAT_VADDR)(uintptr_t)memory + 3);
    CHECK(region.address + region.size >= (DAT_VADDR)(uintptr_t)memory + 20);
    CHECK_OK(dat_lmr_free(region.handle));
    close_zone();
}

/* Devices want peers to write only where the owner may. */
TEST(lmr_create__each_privilege) {
    Region region;
    open_zone();
    for (int flags = 0; flags <= DAT_MEM_PRIV_ALL_FLAG; ++flags) {
        const bool written = (flags & DAT_MEM_PRIV_REMOTE_WRITE_FLAG) != 0;
        if ((flags & ~DAT_MEM_PRIV_ALL_FLAG) != 0) continue;
        if (!on_loopback() && written && (flags & DAT_MEM_PRIV_LOCAL_WRITE_FLAG) == 0) continue;
        CHECK_OK(create_virtual(&region, memory, BYTES, (DAT_MEM_PRIV_FLAGS)flags));
        CHECK_EQ(query(region.handle, DAT_LMR_FIELD_MEM_PRIV).mem_priv, flags);
        CHECK_OK(dat_lmr_free(region.handle));
    }
    close_zone();
}

TEST(lmr_create__no_context_for_peers_without_remote_privileges) {
    Region region;
    open_zone();
    CHECK_OK(create_virtual(&region, memory, BYTES, DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG));
    CHECK_EQ(region.rmr_context, 0);
    CHECK_OK(dat_lmr_free(region.handle));
    CHECK_OK(create_virtual(&region, memory, BYTES, DAT_MEM_PRIV_ALL_FLAG));
    CHECK(region.rmr_context != 0);
    CHECK_OK(dat_lmr_free(region.handle));
    close_zone();
}

TEST(lmr_create__over_another) {
    Region second;
    open_zone();
    Region first = whole();
    DAT_PZ_HANDLE first_zone = pz;
    pz = new_pz(ia);
    CHECK_OK(create(&second, DAT_MEM_TYPE_LMR, (DAT_REGION_DESCRIPTION){.for_lmr_handle = first.handle}, 0,
                    DAT_MEM_PRIV_LOCAL_READ_FLAG, DAT_VA_TYPE_VA));
    CHECK(second.handle != first.handle);
    CHECK(second.address == first.address && second.size == first.size);
    DAT_LMR_PARAM param = query(second.handle, DAT_LMR_FIELD_ALL);
    CHECK_EQ(param.mem_type, DAT_MEM_TYPE_LMR);
    CHECK(param.pz_handle == pz);
    CHECK_EQ(param.mem_priv, DAT_MEM_PRIV_LOCAL_READ_FLAG);
    CHECK_OK(dat_lmr_free(first.handle)); /* it needs the other no more */
    CHECK(query(second.handle, DAT_LMR_FIELD_IA_HANDLE).ia_handle == ia);
    CHECK_OK(dat_lmr_free(second.handle));
    CHECK_OK(dat_pz_free(first_zone));
    close_zone();
}

TEST(lmr_create__over_none) {
    Region region;
    open_zone();
    for (size_t i = 0; i < bad_handle_count; ++i) {
        CHECK_RC(create(&region, DAT_MEM_TYPE_LMR, (DAT_REGION_DESCRIPTION){.for_lmr_handle = bad_handles[i]}, BYTES,
                        DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA),
                 DAT_INVALID_HANDLE);
    }
    CHECK_RC(create(&region, DAT_MEM_TYPE_LMR, (DAT_REGION_DESCRIPTION){.for_lmr_handle = pz}, BYTES,
                    DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA),
             DAT_INVALID_HANDLE);
    close_zone();
}

TEST(lmr_create__shared_memory) {
    char cookie[DAT_LMR_COOKIE_SIZE] = "not only\0text";
    Region first, second;
    open_zone();
    void *shared = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    DAT_REGION_DESCRIPTION description = {
        .for_shared_memory = {.virtual_address = shared, .shared_memory_id = &cookie}};
    CHECK_OK(create(&first, DAT_MEM_TYPE_SHARED_VIRTUAL, description, BYTES, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA));
    CHECK_EQ(query(first.handle, DAT_LMR_FIELD_MEM_TYPE).mem_type, DAT_MEM_TYPE_SHARED_VIRTUAL);
    CHECK_OK(create(&second, DAT_MEM_TYPE_SHARED_VIRTUAL, description, BYTES, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA));
    CHECK_OK(dat_lmr_free(first.handle));
    CHECK_OK(dat_lmr_free(second.handle));
    CHECK(munmap(shared, BYTES) == 0);
    close_zone();
}

TEST(lmr_create__unknown_type) {
    Region region;
    open_zone();
    CHECK_SUB(create(&region, (DAT_MEM_TYPE)7, (DAT_REGION_DESCRIPTION){.for_va = memory}, BYTES, DAT_MEM_PRIV_ALL_FLAG,
                     DAT_VA_TYPE_VA),
              DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    close_zone();
}

TEST(lmr_create__unknown_privileges) {
    Region region;
    open_zone();
    CHECK_SUB(create_virtual(&region, memory, BYTES, (DAT_MEM_PRIV_FLAGS)0x8000), DAT_INVALID_PARAMETER,
              DAT_INVALID_ARG6);
    close_zone();
}

TEST(lmr_create__addresses_from_zero) {
    DAT_EVD_HANDLE evd;
    DAT_IA_ATTR attributes;
    Region region;
    open_zone();
    CHECK_OK(dat_ia_query(ia, &evd, DAT_IA_FIELD_IA_ZB_SUPPORTED, &attributes, 0, NULL));
    DAT_RETURN rc = create(&region, DAT_MEM_TYPE_VIRTUAL, (DAT_REGION_DESCRIPTION){.for_va = memory}, BYTES,
                           DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_ZB);
    if (attributes.zb_supported == DAT_TRUE) {
        CHECK_OK(rc);
        CHECK_EQ(query(region.handle, DAT_LMR_FIELD_VA_TYPE).va_type, DAT_VA_TYPE_ZB);
        CHECK_OK(dat_lmr_free(region.handle));
    } else {
        CHECK_RC(rc, DAT_MODEL_NOT_SUPPORTED);
    }
    close_zone();
}

TEST(lmr_create__no_memory_there) {
    Region region;
    open_zone();
    CHECK_SUB(create_virtual(&region, memory, 0, DAT_MEM_PRIV_ALL_FLAG), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
    CHECK_RC(create_virtual(&region, NULL, BYTES, DAT_MEM_PRIV_ALL_FLAG), DAT_INVALID_PARAMETER);
    CHECK_RC(create_virtual(&region, memory, (DAT_VLEN)1 << 62, DAT_MEM_PRIV_ALL_FLAG), DAT_INVALID_PARAMETER);
    CHECK_RC(create_virtual(&region, memory, ~(DAT_VLEN)0, DAT_MEM_PRIV_ALL_FLAG), DAT_INVALID_PARAMETER);
    close_zone();
}

TEST(lmr_create__no_place_for_the_handle) {
    DAT_LMR_CONTEXT context;
    DAT_RMR_CONTEXT rmr_context;
    DAT_VLEN size;
    DAT_VADDR address;
    open_zone();
    CHECK_RC(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, (DAT_REGION_DESCRIPTION){.for_va = memory}, BYTES, pz,
                            DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, NULL, &context, &rmr_context, &size, &address),
             DAT_INVALID_PARAMETER);
    close_zone();
}

static void check_query(DAT_LMR_HANDLE lmr, const DAT_LMR_PARAM *all, DAT_LMR_PARAM_MASK mask) {
    const DAT_LMR_PARAM param = query(lmr, mask);
    const int wanted = (int)mask;
    if ((wanted & DAT_LMR_FIELD_IA_HANDLE) != 0) CHECK(param.ia_handle == all->ia_handle);
    if ((wanted & DAT_LMR_FIELD_MEM_TYPE) != 0) CHECK_EQ(param.mem_type, all->mem_type);
    if ((wanted & DAT_LMR_FIELD_REGION_DESC) != 0) CHECK(param.region_desc.for_va == all->region_desc.for_va);
    if ((wanted & DAT_LMR_FIELD_LENGTH) != 0) CHECK_EQ(param.length, all->length);
    if ((wanted & DAT_LMR_FIELD_PZ_HANDLE) != 0) CHECK(param.pz_handle == all->pz_handle);
    if ((wanted & DAT_LMR_FIELD_MEM_PRIV) != 0) CHECK_EQ(param.mem_priv, all->mem_priv);
    if ((wanted & DAT_LMR_FIELD_VA_TYPE) != 0) CHECK_EQ(param.va_type, all->va_type);
    if ((wanted & DAT_LMR_FIELD_LMR_CONTEXT) != 0) CHECK_EQ(param.lmr_context, all->lmr_context);
    if ((wanted & DAT_LMR_FIELD_RMR_CONTEXT) != 0) CHECK_EQ(param.rmr_context, all->rmr_context);
    if ((wanted & DAT_LMR_FIELD_REGISTERED_SIZE) != 0) CHECK_EQ(param.registered_size, all->registered_size);
    if ((wanted & DAT_LMR_FIELD_REGISTERED_ADDRESS) != 0) CHECK_EQ(param.registered_address, all->registered_address);
}

TEST(lmr_query__every_set_of_parameters) {
    open_zone();
    Region region = whole();
    const DAT_LMR_PARAM all = query(region.handle, DAT_LMR_FIELD_ALL);
    for (int mask = 0; mask <= DAT_LMR_FIELD_ALL; ++mask) check_query(region.handle, &all, (DAT_LMR_PARAM_MASK)mask);
    CHECK_OK(dat_lmr_free(region.handle));
    close_zone();
}

TEST(lmr_query__each_parameter) {
    open_zone();
    Region region = whole();
    DAT_LMR_PARAM param = query(region.handle, DAT_LMR_FIELD_ALL);
    CHECK(param.ia_handle == ia && param.pz_handle == pz);
    CHECK(param.ia_handle == query(region.handle, DAT_LMR_FIELD_IA_HANDLE).ia_handle);
    CHECK_EQ(param.mem_type, DAT_MEM_TYPE_VIRTUAL);
    CHECK_EQ(query(region.handle, DAT_LMR_FIELD_MEM_TYPE).mem_type, DAT_MEM_TYPE_VIRTUAL);
    CHECK(param.region_desc.for_va == memory);
    CHECK(query(region.handle, DAT_LMR_FIELD_REGION_DESC).region_desc.for_va == memory);
    CHECK_EQ(param.length, BYTES);
    CHECK_EQ(query(region.handle, DAT_LMR_FIELD_LENGTH).length, BYTES);
    CHECK(query(region.handle, DAT_LMR_FIELD_PZ_HANDLE).pz_handle == pz);
    CHECK_EQ(param.mem_priv, DAT_MEM_PRIV_ALL_FLAG);
    CHECK_EQ(query(region.handle, DAT_LMR_FIELD_MEM_PRIV).mem_priv, DAT_MEM_PRIV_ALL_FLAG);
    CHECK_EQ(param.va_type, DAT_VA_TYPE_VA);
    CHECK_EQ(query(region.handle, DAT_LMR_FIELD_VA_TYPE).va_type, DAT_VA_TYPE_VA);
    CHECK_EQ(param.lmr_context, region.context);
    CHECK_EQ(query(region.handle, DAT_LMR_FIELD_LMR_CONTEXT).lmr_context, region.context);
    CHECK_EQ(param.rmr_context, region.rmr_context);
    CHECK_EQ(query(region.handle, DAT_LMR_FIELD_RMR_CONTEXT).rmr_context, region.rmr_context);
    CHECK_EQ(param.registered_size, region.size);
    CHECK_EQ(query(region.handle, DAT_LMR_FIELD_REGISTERED_SIZE).registered_size, region.size);
    CHECK_EQ(param.registered_address, region.address);
    CHECK_EQ(query(region.handle, DAT_LMR_FIELD_REGISTERED_ADDRESS).registered_address, region.address);
    CHECK_OK(dat_lmr_free(region.handle));
    close_zone();
}

TEST(lmr_query__unknown_parameter) {
    DAT_LMR_PARAM param;
    open_zone();
    Region region = whole();
    CHECK_SUB(dat_lmr_query(region.handle, (DAT_LMR_PARAM_MASK)0x800, &param), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_OK(dat_lmr_free(region.handle));
    close_zone();
}

TEST(lmr_query__no_place_for_parameters) {
    open_zone();
    Region region = whole();
    CHECK_SUB(dat_lmr_query(region.handle, DAT_LMR_FIELD_ALL, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    CHECK_OK(dat_lmr_free(region.handle));
    close_zone();
}

typedef DAT_RETURN (*Sync)(DAT_IA_HANDLE, const DAT_LMR_TRIPLET *, DAT_VLEN);

static const Sync syncs[] = {dat_lmr_sync_rdma_read, dat_lmr_sync_rdma_write};

TEST(lmr_sync__segments) {
    open_zone();
    Region first = whole(), second = whole();
    DAT_LMR_TRIPLET segments[] = {{first.address, 100, first.context},
                                  {second.address + 5, BYTES - 5, second.context},
                                  {0, 0, 0}}; /* an empty one is what it is */
    for (int i = 0; i < 2; ++i) {
        CHECK_OK(syncs[i](ia, segments, 3));
        CHECK_OK(syncs[i](ia, segments, 0));
        CHECK_OK(syncs[i](ia, NULL, 0));
    }
    CHECK_OK(dat_lmr_free(first.handle));
    CHECK_OK(dat_lmr_free(second.handle));
    close_zone();
}

TEST(lmr_sync__invalid_segments) {
    open_zone();
    Region region = whole();
    DAT_LMR_TRIPLET beyond[] = {{region.address, 8, region.context},
                                {region.address + region.size - 4, 8, region.context}};
    DAT_LMR_TRIPLET before = {region.address - 1, 8, region.context};
    DAT_LMR_TRIPLET unknown = {region.address, 8, region.context + 0x1000};
    for (int i = 0; i < 2; ++i) {
        CHECK_RC(syncs[i](ia, beyond, 2), DAT_INVALID_PARAMETER);
        CHECK_RC(syncs[i](ia, &before, 1), DAT_INVALID_PARAMETER);
        CHECK_RC(syncs[i](ia, &unknown, 1), DAT_INVALID_PARAMETER);
        CHECK_RC(syncs[i](ia, NULL, 1), DAT_INVALID_PARAMETER);
    }
    CHECK_OK(dat_lmr_free(region.handle));
    close_zone();
}

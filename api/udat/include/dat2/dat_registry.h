/*
 * dat_registry.h - the interface between registry and providers
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A provider is a shared library that the registry loads when an adapter of a matching entry is opened. It exports
 * the two functions below and registers a function table for each adapter.
 */
#ifndef DAT2_DAT_REGISTRY_H
#define DAT2_DAT_REGISTRY_H 1

#include <dat2/udat_redirection.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Called after the library was loaded for the entry `info`, and before it is unloaded. `instance_data` is the
 * ia_params field of the entry's line in dat.conf. */
typedef void(DAT_API* DAT_PROVIDER_INIT_FUNC)(const DAT_PROVIDER_INFO* info, const char* instance_data);
typedef void(DAT_API* DAT_PROVIDER_FINI_FUNC)(const DAT_PROVIDER_INFO* info);
#define DAT_PROVIDER_INIT_FUNC_NAME dat_provider_init
#define DAT_PROVIDER_FINI_FUNC_NAME dat_provider_fini
#define DAT_PROVIDER_INIT_FUNC_STR "dat_provider_init"
#define DAT_PROVIDER_FINI_FUNC_STR "dat_provider_fini"

/* Called by a provider. The provider owns the table, which must exist until it is removed. */
DAT_RETURN DAT_API dat_registry_add_provider(const DAT_PROVIDER* provider, const DAT_PROVIDER_INFO* info);
DAT_RETURN DAT_API dat_registry_remove_provider(const DAT_PROVIDER* provider, const DAT_PROVIDER_INFO* info);

/* Whether two adapters reach the same memory and network, so that one can replace the other. */
typedef enum dat_ha_relationship {
    DAT_HA_FALSE,
    DAT_HA_TRUE,
    DAT_HA_UNKNOWN,
    DAT_HA_CONFLICTING, /* the providers disagree */
    DAT_HA_EXTENSION_BASE
} DAT_HA_RELATIONSHIP;

DAT_RETURN DAT_API dat_registry_providers_related(const DAT_NAME_PTR name, const DAT_NAME_PTR other_name,
                                                  DAT_HA_RELATIONSHIP* relationship);

#ifdef __cplusplus
}
#endif

#endif

/*
 * dat_registry.h - DAT 1.2 between the registry and providers
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * For source compatibility: providers of DAT 1.x do not work here, and both calls tell so (DAT_NOT_IMPLEMENTED).
 * Programs of DAT 1.2 use the providers of DAT 2.0.
 */
#ifndef DAT1_DAT_REGISTRY_H
#define DAT1_DAT_REGISTRY_H 1

#include <dat/udat.h>
#include <dat/udat_redirection.h>

#ifdef __cplusplus
extern "C" {
#endif

DAT_RETURN dat_registry_add_provider(DAT_PROVIDER* provider, const DAT_PROVIDER_INFO* info);
DAT_RETURN dat_registry_remove_provider(DAT_PROVIDER* provider, const DAT_PROVIDER_INFO* info);

/* What a registry looks for in a provider's library. */
#define DAT_PROVIDER_INIT_FUNC_NAME dat_provider_init
#define DAT_PROVIDER_FINI_FUNC_NAME dat_provider_fini
#define DAT_PROVIDER_INIT_FUNC_STR "dat_provider_init"
#define DAT_PROVIDER_FINI_FUNC_STR "dat_provider_fini"

typedef void (*DAT_PROVIDER_INIT_FUNC)(const DAT_PROVIDER_INFO* info, const char* instance_data);
typedef void (*DAT_PROVIDER_FINI_FUNC)(const DAT_PROVIDER_INFO* info);

#ifdef __cplusplus
}
#endif

#endif

/*
 * dat_registry.h - the interface between registry and providers in DAT 1.2
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * For source compatibility only: providers of DAT 1.x are not supported, and both calls return DAT_NOT_IMPLEMENTED.
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

/* The functions that a registry looks up in a provider's library. */
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

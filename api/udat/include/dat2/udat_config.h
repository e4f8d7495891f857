/*
 * udat_config.h - the version and configuration of uDAPL
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef DAT2_UDAT_CONFIG_H
#define DAT2_UDAT_CONFIG_H 1

/* The release of the specification that these headers declare, which dat_ia_open() requests. */
#define DAT_VERSION_MAJOR 2
#define DAT_VERSION_MINOR 0

/* The thread safety that dat_ia_open() requests: DAT_TRUE if threads share objects. Programs may define it before
 * including this header. A thread-safe provider satisfies both values. */
#ifndef DAT_THREADSAFE
#define DAT_THREADSAFE DAT_FALSE
#endif

/* The types and calls that extensions such as <dat2/dat_ib_extensions.h> need are always declared. */
#ifndef DAT_EXTENSIONS
#define DAT_EXTENSIONS 1
#endif

#endif

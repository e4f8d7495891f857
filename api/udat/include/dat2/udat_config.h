/*
 * udat_config.h - which uDAPL this is
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef DAT2_UDAT_CONFIG_H
#define DAT2_UDAT_CONFIG_H 1

/* The release of the specification that these headers declare; dat_ia_open() asks for a provider of it. */
#define DAT_VERSION_MAJOR 2
#define DAT_VERSION_MINOR 0

/* What dat_ia_open() asks of a provider: DAT_TRUE where threads share objects. Define it before to choose. A
 * thread-safe provider serves both. */
#ifndef DAT_THREADSAFE
#define DAT_THREADSAFE DAT_FALSE
#endif

/* The values and calls on which extensions such as <dat2/dat_ib_extensions.h> build are always declared. */
#ifndef DAT_EXTENSIONS
#define DAT_EXTENSIONS 1
#endif

#endif

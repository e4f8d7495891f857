/* SPDX-License-Identifier: BSD-3-Clause
 * Sizes on both sides of every size at which a backend changes its method for messages or RDMA.
 * tests/support/rig.cpp asserts that none is missing.
 */
#ifndef MESSAGE_SIZES_H
#define MESSAGE_SIZES_H

#define SIZES_AROUND(size) (size) - 1, (size), (size) + 1

/* For array initializers. */
#define MESSAGE_SIZES                                                                               \
    0, 1, 7, 8, 9, SIZES_AROUND(44), SIZES_AROUND(64), SIZES_AROUND(4096), SIZES_AROUND(32 * 1024), \
        SIZES_AROUND(64 * 1024), SIZES_AROUND(256 * 1024), SIZES_AROUND(512 * 1024), SIZES_AROUND(1024 * 1024)

/* The maximum message size in tests. */
#define LARGEST_MESSAGE (8 * 1024 * 1024)

#endif

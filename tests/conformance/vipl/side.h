/* SPDX-License-Identifier: BSD-3-Clause
 * For ../support/sides.c: the sides of this suite are its endpoints.
 */
#include "endpoint_layout.h"

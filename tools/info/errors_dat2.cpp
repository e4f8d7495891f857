// SPDX-License-Identifier: BSD-3-Clause
// The codes of DAT 2.0.
#include <dat2/udat.h>

#define VIADUCT_DAT_CODES dat2_codes
#define VIADUCT_DAT_2
#include "tools/info/errors_dat.inc"

// SPDX-License-Identifier: BSD-3-Clause
// The codes of DAT 1.2. Its header cannot be included together with that of DAT 2.0.
#include <dat/udat.h>

#define VIADUCT_DAT_CODES dat1_codes
#include "tools/info/errors_dat.inc"

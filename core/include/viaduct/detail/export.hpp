// SPDX-License-Identifier: BSD-3-Clause
// Marks what libviaduct shows to the front-ends and tools; everything else is hidden.
#pragma once

#define VIADUCT_EXPORT __attribute__((visibility("default")))

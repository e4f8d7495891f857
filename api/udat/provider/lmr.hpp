// SPDX-License-Identifier: BSD-3-Clause
// Local memory regions.
#pragma once

#include <memory>

#include "api/udat/provider/object.hpp"
#include "api/udat/provider/pz.hpp"

namespace viaduct::dat {

class Lmr final : public Object {
public:
    static constexpr DAT_HANDLE_TYPE handle_type = DAT_HANDLE_TYPE_LMR;

    struct Description {
        DAT_MEM_TYPE type = DAT_MEM_TYPE_VIRTUAL;
        DAT_REGION_DESCRIPTION region{};
        DAT_MEM_PRIV_FLAGS privileges{};
    };

    Lmr(Pz& pz, const Description& description, std::unique_ptr<MemoryRegion> region);

    MemoryRegion& region() noexcept { return *region_; }
    const Pz& pz() const noexcept { return *pz_; }
    DAT_MEM_PRIV_FLAGS privileges() const noexcept { return description_.privileges; }
    void query(DAT_LMR_PARAM_MASK mask, DAT_LMR_PARAM& param) const noexcept;

private:
    Use<Pz> pz_;
    Description description_;
    std::unique_ptr<MemoryRegion> region_;
};

}  // namespace viaduct::dat

// SPDX-License-Identifier: BSD-3-Clause
// Remote memory regions: windows that are bound to parts of local regions.
#pragma once

#include <memory>
#include <optional>

#include "api/udat/provider/binds.hpp"
#include "api/udat/provider/object.hpp"

namespace viaduct::dat {

class Rmr final : public Object {
public:
    static constexpr DAT_HANDLE_TYPE handle_type = DAT_HANDLE_TYPE_RMR;

    Rmr(Pz& pz, DAT_RMR_SCOPE scope, std::unique_ptr<MemoryWindow> window);
    ~Rmr() override;

    const Pz& pz() const noexcept { return *pz_; }

    /// Binds the window to a part of a region, or to nothing if `lmr` is null.
    DAT_RETURN bind(Lmr* lmr, const DAT_LMR_TRIPLET& triplet, DAT_MEM_PRIV_FLAGS privileges, Ep& ep,
                    DAT_RMR_COOKIE cookie, DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT& context);

    /// Returns the context of the region that contains a part of the window, or nothing if the part is not in the
    /// window.
    std::optional<DAT_LMR_CONTEXT> find(const DAT_RMR_TRIPLET& part) const noexcept;

    void query(DAT_RMR_PARAM_MASK mask, DAT_RMR_PARAM& param) const noexcept;

private:
    Use<Pz> pz_;
    const DAT_RMR_SCOPE scope_;
    std::unique_ptr<MemoryWindow> window_;
    const std::shared_ptr<WindowBindings> bindings_;
};

}  // namespace viaduct::dat

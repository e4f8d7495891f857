// SPDX-License-Identifier: BSD-3-Clause
#include "api/udat/provider/rmr.hpp"

#include "api/udat/provider/ep.hpp"
#include "api/udat/provider/ia.hpp"
#include "api/udat/provider/table.hpp"
#include "api/udat/provider/translate.hpp"

namespace viaduct::dat {
namespace {

DAT_RETURN create(Pz& zone, DAT_RMR_SCOPE scope, DAT_RMR_HANDLE* rmr) {
    if (rmr == nullptr) return invalid_parameter(DAT_INVALID_ARG2, "rmr_handle is null");
    const bool for_ep = scope == DAT_RMR_SCOPE_EP;
    auto window = MemoryWindow::create(zone.domain(), for_ep ? WindowScope::Endpoint : WindowScope::Domain);
    if (!window.ok()) return to_return(window.status(), DAT_RESOURCE_MEMORY_REGION);
    *rmr = zone.ia().adopt(std::make_unique<Rmr>(zone, scope, std::move(*window)));
    return success;
}

/// Checks that the privileges for peers are a subset of the region's privileges (dat_rmr_bind(3DAT)).
bool allows(const Lmr& lmr, int privileges) noexcept {
    constexpr int writing = DAT_MEM_PRIV_REMOTE_WRITE_FLAG | int{DAT_IB_MEM_PRIV_REMOTE_ATOMIC};
    const int own = lmr.privileges();
    if ((privileges & DAT_MEM_PRIV_REMOTE_READ_FLAG) != 0 && (own & DAT_MEM_PRIV_LOCAL_READ_FLAG) == 0) return false;
    return (privileges & writing) == 0 || (own & DAT_MEM_PRIV_LOCAL_WRITE_FLAG) != 0;
}

}  // namespace

Rmr::Rmr(Pz& pz, DAT_RMR_SCOPE scope, std::unique_ptr<MemoryWindow> window)
    : Object(pz.ia(), pz.ia().provider(), handle_type),
      pz_(&pz),
      scope_(scope),
      window_(std::move(window)),
      bindings_(std::make_shared<WindowBindings>(window_->key())) {}

Rmr::~Rmr() {
    window_ = nullptr;
    bindings_->clear();  // binds that have not completed may refer to it
}

DAT_RETURN Rmr::bind(Lmr* lmr, const DAT_LMR_TRIPLET& triplet, DAT_MEM_PRIV_FLAGS privileges, Ep& ep,
                     DAT_RMR_COOKIE cookie, DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT& context) {
    Binds& binds = ep.binds();
    const std::uint64_t in_bindings =
        bindings_->add(ep, lmr, {.exists = lmr != nullptr, .triplet = triplet, .privileges = privileges});
    std::uint64_t number = 0;
    try {
        if (scope_ == DAT_RMR_SCOPE_EP) ep.add_window(bindings_);
        number = binds.add({.rmr = handle(),
                            .cookie = cookie,
                            .suppressed = (flags & DAT_COMPLETION_SUPPRESS_FLAG) != 0,
                            .quiet = (flags & DAT_COMPLETION_UNSIGNALLED_FLAG) != 0,
                            .bindings = bindings_,
                            .number = in_bindings});
    } catch (const std::bad_alloc&) {
        bindings_->settle(in_bindings, false);
        throw;
    }
    const DAT_RETURN result = ep.bind(*window_,
                                      {.context = number,
                                       .region = lmr == nullptr ? nullptr : &lmr->region(),
                                       .address = reinterpret_cast<void*>(triplet.virtual_address),
                                       .length = lmr == nullptr ? 0 : triplet.segment_length,
                                       .access = to_access(privileges & ~DAT_MEM_PRIV_LOCAL_WRITE_FLAG)},
                                      flags);
    if (result != success) {
        (void)binds.remove(number, false);
        return result;
    }
    context = window_->key();
    bindings_->set_context(in_bindings, context);
    return success;
}

std::optional<DAT_LMR_CONTEXT> Rmr::find(const DAT_RMR_TRIPLET& part) const noexcept {
    const Binding now = bindings_->newest();
    const DAT_LMR_TRIPLET& whole = now.triplet;
    const DAT_VADDR offset = part.virtual_address - whole.virtual_address;
    const bool inside = offset <= whole.segment_length && part.segment_length <= whole.segment_length - offset;
    if (!now.exists || part.rmr_context != now.context || !inside) return std::nullopt;
    return whole.lmr_context;
}

void Rmr::query(DAT_RMR_PARAM_MASK mask, DAT_RMR_PARAM& param) const noexcept {
    const Binding now = bindings_->newest();
    if ((mask & DAT_RMR_FIELD_IA_HANDLE) != 0) param.ia_handle = ia().number();
    if ((mask & DAT_RMR_FIELD_PZ_HANDLE) != 0) param.pz_handle = pz_.handle();
    if ((mask & DAT_RMR_FIELD_LMR_TRIPLET) != 0) param.lmr_triplet = now.triplet;
    if ((mask & DAT_RMR_FIELD_MEM_PRIV) != 0) param.mem_priv = now.privileges;
    if ((mask & DAT_RMR_FIELD_RMR_CONTEXT) != 0) param.rmr_context = now.context;
    if ((mask & DAT_RMR_FIELD_RMR_SCOPE) != 0) param.rmr_scope = scope_;
    if ((mask & DAT_RMR_FIELD_VA_TYPE) != 0) param.va_type = DAT_VA_TYPE_VA;
}

DAT_RETURN calls::rmr_create(Pz& zone, DAT_RMR_HANDLE* rmr) { return create(zone, DAT_RMR_SCOPE_PZ, rmr); }

DAT_RETURN calls::rmr_create_for_ep(Pz& zone, DAT_RMR_HANDLE* rmr) { return create(zone, DAT_RMR_SCOPE_EP, rmr); }

DAT_RETURN calls::rmr_bind(Rmr& region, DAT_LMR_HANDLE lmr, const DAT_LMR_TRIPLET* triplet,
                           DAT_MEM_PRIV_FLAGS privileges, DAT_VA_TYPE va_type, DAT_EP_HANDLE ep, DAT_RMR_COOKIE cookie,
                           DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT* context) {
    Lmr* memory = resolve<Lmr>(lmr);
    Ep* endpoint = resolve<Ep>(ep);
    if (triplet == nullptr) return invalid_parameter(DAT_INVALID_ARG3, "lmr_triplet is null");
    const bool unbinds = triplet->segment_length == 0;
    if (memory == nullptr && !unbinds) return invalid_handle(DAT_INVALID_HANDLE_LMR, "lmr_handle is no region");
    if (endpoint == nullptr) return invalid_handle(DAT_INVALID_HANDLE_EP, "ep_handle is no endpoint");
    if ((privileges & ~all_privileges) != 0)
        return invalid_parameter(DAT_INVALID_ARG4, explain("mem_priv is 0x%x", unsigned{privileges}));
    if (const DAT_RETURN result = check_va_type(va_type, DAT_INVALID_ARG5); result != success) return result;
    if (context == nullptr) return invalid_parameter(DAT_INVALID_ARG9, "rmr_context is null");
    if (!unbinds) {
        const MemoryRegion& whole = memory->region();
        if (triplet->lmr_context != whole.key() ||
            !whole.covers(reinterpret_cast<void*>(triplet->virtual_address), triplet->segment_length))
            return invalid_parameter(
                DAT_INVALID_ARG3,
                explain("%u bytes at 0x%llx are not in the region, which has the context 0x%x", triplet->segment_length,
                        static_cast<unsigned long long>(triplet->virtual_address), whole.key()));
        if (&memory->pz() != &region.pz())
            return failed(error(DAT_PROTECTION_VIOLATION), "the LMR and the RMR are in different protection zones");
        if (!allows(*memory, privileges))
            return failed(error(DAT_PRIVILEGES_VIOLATION),
                          explain("mem_priv is 0x%x, the privileges of the LMR are 0x%x", unsigned{privileges},
                                  unsigned{memory->privileges()}));
    }
    if (endpoint->pz() != &region.pz())
        return failed(error(DAT_PROTECTION_VIOLATION), "the EP and the RMR are in different protection zones");
    return region.bind(unbinds ? nullptr : memory, *triplet, privileges, *endpoint, cookie, flags, *context);
}

DAT_RETURN calls::rmr_free(DAT_RMR_HANDLE rmr) { return destroy<Rmr>(rmr); }

}  // namespace viaduct::dat

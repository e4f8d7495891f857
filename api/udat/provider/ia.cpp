// SPDX-License-Identifier: BSD-3-Clause
#include "api/udat/provider/ia.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <random>
#include <utility>

#include "api/support/failure.hpp"
#include "api/udat/provider/cno.hpp"
#include "api/udat/provider/ep.hpp"
#include "api/udat/provider/providers.hpp"
#include "api/udat/provider/table.hpp"
#include "core/base/internals.hpp"
#include "core/provider.hpp"

namespace viaduct::dat {
namespace {

bool is_set(const char* variable) noexcept {
    const char* value = std::getenv(variable);
    return value != nullptr && *value != '\0';
}

/// Opens the device that an entry of the registry names, with or without the prefix "viaduct-". The environment may
/// replace the loopback device, and devices that its backend does not have.
Result<std::shared_ptr<Device>> open_device(const std::string& name, DeviceObserver* observer) {
    const bool has_substitute = is_set("VIADUCT_DEVICE");
    const bool overridden = has_substitute || is_set("VIADUCT_BACKEND");
    if (!has_substitute || name != "lo") {
        for (const std::string& candidate : {name, "viaduct-" + name}) {
            const auto device = find_device(candidate);
            if (device.ok()) return open_device(device.value(), observer);
            if (device.status().code() == Code::NoResources) return device.status();
        }
    }
    if (!overridden) return Status(Code::InvalidParameter, "no device with that name");
    return Device::open_default(observer);
}

}  // namespace

Ia::Ia(const NamedProvider& provider)
    : Object(*this, provider.tables.checking, handle_type),
      provider_(provider.tables.checking),
      thread_safe_(provider.thread_safe) {}

Ia::~Ia() {
    revoke();
    for (const DAT_HANDLE_TYPE type : {DAT_HANDLE_TYPE_RSP, DAT_HANDLE_TYPE_PSP, DAT_HANDLE_TYPE_CSP})
        destroy_children(type);
    acceptor_.await_quiet();  // a service point that destroys itself is no longer a child
    for (const DAT_HANDLE_TYPE type :
         {DAT_HANDLE_TYPE_CR, DAT_HANDLE_TYPE_EP, DAT_HANDLE_TYPE_RMR, DAT_HANDLE_TYPE_LMR, DAT_HANDLE_TYPE_SRQ,
          DAT_HANDLE_TYPE_EVD, DAT_HANDLE_TYPE_CNO, DAT_HANDLE_TYPE_PZ})
        destroy_children(type);
}

DAT_RETURN Ia::open(const NamedProvider& provider, DAT_COUNT async_qlen, AsyncEvd wanted, Evd* shared,
                    std::unique_ptr<Ia>& ia) {
    std::unique_ptr<Ia> created(new Ia(provider));
    auto opened = open_device(provider.device, created.get());
    if (opened.status().code() == Code::NoResources) return to_return(opened.status(), DAT_RESOURCE_DEVICE);
    if (!opened.ok()) return failed(error(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED), opened.status());
    created->device_ = std::move(*opened);
    Internals::set_api(*created->device_, "DAT");
    created->address_ = SocketAddress(created->device_->attributes().host, 0).storage;
    created->name_attributes();
    if (wanted == AsyncEvd::Made) {
        DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
        if (const DAT_RETURN result = Evd::create(*created, async_qlen, nullptr, DAT_EVD_ASYNC_FLAG, evd);
            result != success)
            return result;
        shared = resolve<Evd>(evd);
    }
    created->async_evd_ = EvdLink(shared);
    ia = std::move(created);
    return success;
}

DAT_IA_HANDLE Ia::number() const noexcept {
    DAT_IA_HANDLE number = handle();  // its own handle if no registry has opened it
    (void)dats_get_ia_handle(handle(), &number);
    return number;
}

std::uint16_t Ia::next_port() {
    constexpr std::uint32_t first = 32768;
    constexpr std::uint32_t count = 49152 - first;
    static std::atomic<std::uint32_t> next{std::random_device()()};
    constexpr std::uint32_t apart = 257;  // forked processes begin at different ports
    return static_cast<std::uint16_t>(first +
                                      (next.fetch_add(1) + apart * static_cast<std::uint32_t>(getpid())) % count);
}

void Ia::disown(Object& object) noexcept {
    const LockGuard lock(children_lock_);
    children_[object.type()].erase(&object);
    count(object.type(), false);
}

void Ia::count(DAT_HANDLE_TYPE type, bool created) noexcept {
    switch (type) {
        case DAT_HANDLE_TYPE_PZ: return counters.add(created ? DCNT_IA_PZ_CREATE : DCNT_IA_PZ_FREE);
        case DAT_HANDLE_TYPE_LMR: return counters.add(created ? DCNT_IA_LMR_CREATE : DCNT_IA_LMR_FREE);
        case DAT_HANDLE_TYPE_RMR: return counters.add(created ? DCNT_IA_RMR_CREATE : DCNT_IA_RMR_FREE);
        case DAT_HANDLE_TYPE_PSP: return counters.add(created ? DCNT_IA_PSP_CREATE : DCNT_IA_PSP_FREE);
        case DAT_HANDLE_TYPE_RSP: return counters.add(created ? DCNT_IA_RSP_CREATE : DCNT_IA_RSP_FREE);
        case DAT_HANDLE_TYPE_EVD: return counters.add(created ? DCNT_IA_EVD_CREATE : DCNT_IA_EVD_FREE);
        case DAT_HANDLE_TYPE_EP: return counters.add(created ? DCNT_IA_EP_CREATE : DCNT_IA_EP_FREE);
        case DAT_HANDLE_TYPE_SRQ: return counters.add(created ? DCNT_IA_SRQ_CREATE : DCNT_IA_SRQ_FREE);
        case DAT_HANDLE_TYPE_CR:
            if (created) counters.add(DCNT_IA_SP_CR);
            return;
        default: return;
    }
}

bool Ia::in_use() const noexcept {
    const auto is_of_consumer = [this](const Object* child) {
        switch (child->type()) {
            case DAT_HANDLE_TYPE_CR: return false;
            case DAT_HANDLE_TYPE_EP: {
                const auto& ep = *static_cast<const Ep*>(child);
                return !ep.provider_made() || ep.state() != EndpointState::TentativePending;
            }
            default: return child != async_evd_.get();
        }
    };
    const LockGuard lock(children_lock_);
    return std::ranges::any_of(children_,
                               [&](const auto& objects) { return std::ranges::any_of(objects, is_of_consumer); });
}

void Ia::settle_binds() noexcept {
    (void)find<Ep>([](const Ep& ep) {
        ep.settle_binds();
        return false;
    });
    (void)find<Evd>([](Evd& evd) {
        (void)evd.collect_suppressed();
        return false;
    });
}

/// Other threads may free children meanwhile; revoke() decides which thread destroys a child.
void Ia::destroy_children(DAT_HANDLE_TYPE type) noexcept {
    if (type == DAT_HANDLE_TYPE_EVD) async_evd_ = {};
    while (true) {
        std::unique_ptr<Object> child;
        {
            const LockGuard lock(children_lock_);
            auto& objects = children_[type];
            if (objects.empty()) return;
            Object* first = *objects.begin();
            objects.erase(objects.begin());
            if (!first->revoke()) continue;  // another thread frees it
            child.reset(first);
        }
        child->close();
    }
}

// ---- Asynchronous events ------------------------------------------------------------------------------------------

DAT_EVD_HANDLE Ia::async_evd() const noexcept { return async_evd_ ? async_evd_.handle() : DAT_EVD_OUT_OF_SCOPE; }

void Ia::report(DAT_EVENT_NUMBER number, DAT_HANDLE about, DAT_COUNT reason) noexcept {
    if (about == async_evd_.handle()) return;
    DAT_EVENT event{};
    event.event_number = number;
    event.event_data.asynch_error_event_data.dat_handle = about;
    event.event_data.asynch_error_event_data.reason = reason;
    (void)async_evd_.try_post(event);
}

void Ia::report_lost_device() noexcept {
    if (!std::exchange(device_is_lost_, true))
        report(DAT_ASYNC_ERROR_IA_CATASTROPHIC, number(), DAT_IA_CATASTROPHIC_ERROR);
}

void Ia::on_async_event(const AsyncEvent& event) noexcept {
    switch (event.kind) {
        case AsyncEventKind::CompletionQueueOverrun:
            if (Evd* evd = resolve<Evd>(reinterpret_cast<DAT_HANDLE>(event.completion_queue_context)))
                evd->report_overflow();
            return;
        case AsyncEventKind::SharedReceiveQueueLimit:
            if (const Object* srq = resolve<Object>(reinterpret_cast<DAT_HANDLE>(event.shared_receive_queue_context)))
                report(DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, srq->handle(), DAT_SRQ_LOW_WATERMARK_EVENT);
            return;
        // Errors that the peer caused are reported by the end of the connection.
        case AsyncEventKind::ReceiveQueueEmpty:
        case AsyncEventKind::RemoteWriteProtection:
        case AsyncEventKind::RemoteWriteAborted:
        case AsyncEventKind::RemoteReadProtection: return;
    }
}

// ---- Entry points -------------------------------------------------------------------------------------------------

DAT_RETURN calls::ia_open(bool thread_safe, const DAT_NAME_PTR name, DAT_COUNT async_qlen, DAT_EVD_HANDLE* async_evd,
                          DAT_IA_HANDLE* ia) {
    if (name == nullptr) return invalid_parameter(DAT_INVALID_ARG1, "ia_name is null");
    if (async_evd == nullptr) return invalid_parameter(DAT_INVALID_ARG3, "async_evd_handle is null");
    if (ia == nullptr) return invalid_parameter(DAT_INVALID_ARG4, "ia_handle is null");
    const NamedProvider* provider = find_named_provider(name, thread_safe);
    if (provider == nullptr)
        return failed(error(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED),
                      explain("this provider was not loaded for an adapter %s", name));
    const bool exists = *async_evd == DAT_EVD_ASYNC_EXISTS;
    Evd* shared = nullptr;
    if (!exists && *async_evd != DAT_HANDLE_NULL) {
        shared = resolve<Evd>(*async_evd);
        if (shared == nullptr || !shared->takes(DAT_EVD_ASYNC_FLAG))
            return invalid_handle(DAT_INVALID_HANDLE_EVD_ASYNC,
                                  "async_evd_handle is no EVD that was created with DAT_EVD_ASYNC_FLAG");
    }
    const auto wanted = exists ? Ia::AsyncEvd::None : shared == nullptr ? Ia::AsyncEvd::Made : Ia::AsyncEvd::Shared;
    if (wanted == Ia::AsyncEvd::Made && async_qlen <= 0)
        return invalid_parameter(DAT_INVALID_ARG2, explain("async_evd_min_qlen is %d", async_qlen));
    std::unique_ptr<Ia> created;
    if (const DAT_RETURN result = Ia::open(*provider, async_qlen, wanted, shared, created); result != success)
        return result;
    if (wanted == Ia::AsyncEvd::Made) *async_evd = created->async_evd();
    *ia = created.release()->handle();
    return success;
}

DAT_RETURN calls::ia_query(Ia& adapter, DAT_EVD_HANDLE* async_evd, DAT_IA_ATTR_MASK ia_mask, DAT_IA_ATTR* ia_attr,
                           DAT_PROVIDER_ATTR_MASK provider_mask, DAT_PROVIDER_ATTR* provider_attr) {
    if ((ia_mask & ~DAT_IA_FIELD_ALL) != 0) return invalid_parameter(DAT_INVALID_ARG3, "ia_mask has unknown bits");
    if (ia_mask != 0 && ia_attr == nullptr) return invalid_parameter(DAT_INVALID_ARG4, "ia_attributes is null");
    if ((provider_mask & ~DAT_PROVIDER_FIELD_ALL) != 0)
        return invalid_parameter(DAT_INVALID_ARG5, "provider_mask has unknown bits");
    if (provider_mask != 0 && provider_attr == nullptr)
        return invalid_parameter(DAT_INVALID_ARG6, "provider_attributes is null");
    if (async_evd != nullptr) *async_evd = adapter.async_evd();
    if (ia_mask != 0) adapter.query_attributes(*ia_attr);
    return provider_mask == 0 ? success : adapter.query_provider(*provider_attr);
}

DAT_RETURN calls::ia_close(Ia& adapter, DAT_CLOSE_FLAGS flags) {
    if (flags != DAT_CLOSE_ABRUPT_FLAG && flags != DAT_CLOSE_GRACEFUL_FLAG)
        return invalid_parameter(DAT_INVALID_ARG2, explain("ia_flags is 0x%x", unsigned{flags}));
    adapter.acceptor().await_quiet();
    if (flags == DAT_CLOSE_GRACEFUL_FLAG && adapter.in_use())
        return invalid_state(DAT_INVALID_STATE_IA_IN_USE, "objects of the adapter exist");
    if (!adapter.revoke()) return invalid_handle(DAT_INVALID_HANDLE_IA);
    delete &adapter;  // NOLINT(cppcoreguidelines-owning-memory): the handle had it
    return success;
}

DAT_RETURN calls::ia_ha_related(DAT_IA_HANDLE ia, const DAT_NAME_PTR provider, DAT_BOOLEAN* answer) {
    if (resolve<Ia>(ia) == nullptr) return invalid_handle(DAT_INVALID_HANDLE_IA);
    if (provider == nullptr) return invalid_parameter(DAT_INVALID_ARG2, "the name is null");
    if (answer == nullptr) return invalid_parameter(DAT_INVALID_ARG3, "the place for the answer is null");
    *answer = DAT_FALSE;
    return success;
}

}  // namespace viaduct::dat

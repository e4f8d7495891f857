// SPDX-License-Identifier: BSD-3-Clause
#include "api/vipl/nic.hpp"

#include <strings.h>

#include <cstdio>

#include "api/vipl/translate.hpp"
#include "core/base/guarded_memory.hpp"
#include "core/base/internals.hpp"
#include "core/base/numbers.hpp"
#include "core/log.hpp"

namespace viaduct::vipl {
namespace {

std::span<const std::byte> memory_of(const MemoryRegion& region) noexcept {
    return {static_cast<const std::byte*>(region.address()), region.length()};
}

/// Returns the name by which VipOpenNic finds the device: by number if numbers select devices of its backend.
std::string name_of(const DeviceId& id, const DeviceAttributes& attributes) {
    const auto selected = selected_provider();
    const bool by_number = selected.ok() && selected.value() == id.provider;
    return by_number ? VINICBASENAME + std::to_string(id.number) : attributes.name;
}

}  // namespace

Nic::Nic(const DeviceId& id) : errors([this](const VIP_ERROR_DESCRIPTOR& error) { return contain(error); }), id_(id) {}

Result<std::unique_ptr<Nic>> Nic::open(const DeviceId& id) {
    std::unique_ptr<Nic> nic(new Nic(id));
    catch_faults();
    auto device = open_device(id, nic.get());
    if (!device.ok()) return device.status();
    nic->device_ = std::move(*device);
    Internals::set_api(*nic->device_, "VIPL");
    nic->name_ = name_of(id, nic->attributes());
    return nic;
}

/// Until it has returned, a handler may be in a call for any object of the NIC, and wait for it.
Nic::~Nic() {
    end_calls();
    const auto last_cqs = cqs.take();
    const auto last_vis = vis.take();  // destroyed before the completion queues
    for (const auto& [vi, owner] : last_vis) vi->end_calls();
    for (const auto& [cq, owner] : last_cqs) cq->end_calls();
    (void)connections.take();  // destroyed at once, which waits for threads that accept one with a VI
    errors.stop();
    for (const auto& [vi, owner] : last_vis) vi->end_handlers();
    for (const auto& [cq, owner] : last_cqs) cq->end_handlers();
}

/// Each VI may use two completion queues of its own; these are the remaining ones.
std::size_t Nic::max_cqs() const noexcept {
    return attributes().max_completion_queues - std::size_t{2} * attributes().max_endpoints;
}

VIP_NIC_ATTRIBUTES Nic::vipl_attributes() const noexcept {
    const DeviceAttributes& device = attributes();
    constexpr VIP_RELIABILITY_LEVEL reliable = VIP_SERVICE_RELIABLE_DELIVERY | VIP_SERVICE_RELIABLE_RECEPTION;
    VIP_NIC_ATTRIBUTES nic{};
    std::snprintf(nic.Name, sizeof nic.Name, "%s", name_.c_str());
    nic.ProviderVersion = VIPL_PROVIDER_VERSION;
    nic.NicAddressLen = static_cast<VIP_UINT16>(device.host.size());
    nic.LocalNicAddress = device.host.span().data();
    nic.ThreadSafe = VIP_TRUE;
    nic.MaxDiscriminatorLen = static_cast<VIP_UINT16>(device.max_service_bytes);
    nic.MaxRegisterBytes = device.max_region_bytes;
    nic.MaxRegisterRegions = device.max_regions;
    nic.MaxRegisterBlockBytes = device.max_region_bytes;
    nic.MaxVI = device.max_endpoints;
    nic.MaxDescriptorsPerQueue = device.default_queue_depth;
    nic.MaxSegmentsPerDesc = device.max_sges;
    nic.MaxCQ = max_cqs();
    nic.MaxCQEntries = device.max_completions;
    nic.MaxTransferSize = device.max_transfer_bytes;
    nic.NativeMTU = device.native_mtu_bytes;
    nic.MaxPtags = device.max_protection_domains;
    nic.ReliabilityLevelSupport = reliable;
    if (device.capabilities.unreliable) nic.ReliabilityLevelSupport |= VIP_SERVICE_UNRELIABLE;
    nic.RDMAReadSupport = reliable;
    return nic;
}

Result<VIP_PROTECTION_HANDLE> Nic::add_ptag() {
    auto domain = ProtectionDomain::create(device_);
    if (!domain.ok()) return domain.status();
    return ptags.add(std::make_unique<Ptag>(*this, std::move(*domain))).handle();
}

Result<VIP_PROTECTION_HANDLE> Nic::create_ptag() {
    const LockGuard lock(default_ptag_mutex_);
    const bool is_default = default_ptag_ == nullptr;
    if (!is_default && !default_ptag_is_known_) {
        default_ptag_is_known_ = true;
        return default_ptag_;
    }
    const auto created = add_ptag();
    if (created.ok() && is_default) {
        default_ptag_ = created.value();
        default_ptag_is_known_ = true;
    }
    return created;
}

Result<VIP_PROTECTION_HANDLE> Nic::default_ptag() {
    const LockGuard lock(default_ptag_mutex_);
    if (default_ptag_ != nullptr) return default_ptag_;
    const auto created = add_ptag();
    if (!created.ok()) return created;
    default_ptag_ = created.value();
    default_ptag_is_known_ = false;
    return created;
}

bool Nic::destroy_ptag(Ptag& ptag) noexcept {
    const LockGuard lock(default_ptag_mutex_);
    if (ptag.handle() == default_ptag_) default_ptag_ = nullptr;
    return ptags.remove(ptag) != nullptr;
}

VIP_PROTECTION_HANDLE Nic::ptag_of(const ProtectionDomain& domain) const noexcept {
    VIP_PROTECTION_HANDLE found = nullptr;
    ptags.for_each([&](const Ptag& ptag) {
        if (ptag.domain().get() == &domain) found = ptag.handle();
    });
    return found;
}

void Nic::on_async_event(const AsyncEvent& event) noexcept {
    if (event.kind == AsyncEventKind::CompletionQueueOverrun) {  // no memory, or MaxCQEntries wait
        if (Vi* vi = resolve_context<Vi>(event.endpoint_context); vi != nullptr)
            vi->lose(VIP_ERROR_CATASTROPHIC, nullptr, event.operation);
        return;
    }
    errors.report({.NicHandle = handle(),
                   .ViHandle = reinterpret_cast<VIP_VI_HANDLE>(event.endpoint_context),
                   .OpCode = to_operation_bits(event.operation),
                   .ResourceCode = VIP_RESOURCE_VI,
                   .ErrorCode = to_error_code(event.kind)});
}

/// Forgets revoked memory when all descriptors that were posted when it was revoked have completed. Each work queue
/// completes them in order.
void Nic::forget_revoked() noexcept {
    const auto for_each_queue = [this](auto visit) {
        vis.for_each([&visit](Vi& vi) {
            visit(vi.queue(QueueKind::Send));
            visit(vi.queue(QueueKind::Receive));
        });
    };
    while (!revoked.empty()) {
        bool passed = true;
        for_each_queue([&passed](const WorkQueue& queue) { passed = passed && queue.has_passed_mark(); });
        if (!passed) return;
        revoked.forget_old();
        for_each_queue([](WorkQueue& queue) { queue.set_mark(); });
    }
}

void Nic::register_region(std::unique_ptr<MemoryRegion> region) {
    const LockGuard lock(region_attributes);
    forget_revoked();
    revoked.reserve(regions.size() + 1);
    const std::span<const std::byte> memory = memory_of(*region);
    regions.insert(std::move(region));
    revoked.remove(memory);
}

bool Nic::deregister_region(VIP_MEM_HANDLE key) noexcept {
    RegionTable::Erased erased;  // destroyed without the lock
    const LockGuard lock(region_attributes);
    erased = regions.erase(key);
    if (erased.region == nullptr) return false;
    if (erased.held_descriptors) revoked.add(memory_of(*erased.region));
    forget_revoked();
    return true;
}

bool Nic::contain(const VIP_ERROR_DESCRIPTOR& error) noexcept {
    if (error.CQHandle != nullptr) {
        vis.for_each([&error](Vi& vi) {
            if (vi.uses(error.CQHandle)) vi.contain("its completion queue has overflowed");
        });
    }
    const WaitOn<Vi> call(error.ViHandle, Api::on_signal);
    if (Vi* const vi = call.object(); vi != nullptr) {
        if (error.ErrorCode == VIP_ERROR_COMP_PROT)
            vi->contain("the memory of a descriptor was deregistered or cannot be written");
        if (error.ErrorCode == VIP_ERROR_CATASTROPHIC) vi->contain("there was no room for a completion");
        if (error.ErrorCode == unreachable_error) vi->flush_if_unreachable();
    }
    return error.ErrorCode != unreachable_error;
}

namespace {

/// Removes a prefix, ignoring case. Returns false if the name does not start with it.
bool skip(std::string_view& name, std::string_view prefix) noexcept {
    if (name.size() < prefix.size() || strncasecmp(name.data(), prefix.data(), prefix.size()) != 0) return false;
    name.remove_prefix(prefix.size());
    return true;
}

/// Returns the number in a name that the guide or an old program uses.
std::optional<std::uint32_t> number_in(std::string_view name) noexcept {
    for (const std::string_view directory : {"/dev/", "/etc/", R"(\\.\)"})
        if (skip(name, directory)) break;
    for (const std::string_view base : {VINICBASENAME, "via_lo"})
        if (std::string_view rest = name; skip(rest, base) && rest.empty()) return 0;
    for (const std::string_view base : {VINICBASENAME, "via_eth", "via", "clanvi", "nic", "vi"}) {
        std::string_view digits = name;
        if (!skip(digits, base)) continue;
        if (const auto number = whole_number<std::uint32_t>(digits)) return number;
    }
    return std::nullopt;
}

/// Logs the available devices when a program asks for one that does not exist.
void log_devices(const char* wanted) {
    std::string there;
    const auto selected = selected_provider();
    for (backend::Provider* provider : providers()) {
        const auto devices = provider->devices();
        if (!devices.ok()) continue;
        const bool by_number = selected.ok() && selected.value() == provider;
        for (std::size_t number = 0; number < devices.value().size(); ++number) {
            const std::string& name = devices.value()[number].name;
            if (!by_number && !find_device(name).ok()) continue;  // the environment excludes it
            there += there.empty() ? "available: " : ", ";
            there += by_number ? VINICBASENAME + std::to_string(number) + " (" + name + ")" : name;
        }
    }
    log(LogLevel::Warning, "no NIC with the name \"%s\"; %s", wanted,
        there.empty() ? "none are available" : there.c_str());
}

}  // namespace

Result<DeviceId> device_with_name(std::string_view name) {
    if (!name.starts_with(VINICBASENAME)) {
        const auto device = find_device(name);  // an exact match takes precedence over historical names
        if (device.status().code() != Code::InvalidParameter) return device;
    }
    const auto number = number_in(name);
    if (!number)
        return Status(Code::InvalidParameter,
                      explain("no NIC with that name: %.*s", static_cast<int>(name.size()), name.data()));
    if (*number == 0) return default_device();
    return selected_provider().and_then([&](auto* provider) { return Result(DeviceId{provider, *number}); });
}

}  // namespace viaduct::vipl

using namespace viaduct;
using namespace viaduct::vipl;

VIP_RETURN VipOpenNic(const VIP_CHAR* DeviceName, VIP_NIC_HANDLE* NicHandle) {
    return Entry::run(nullptr, [&] {
        if (!failure::require(
                {{DeviceName != nullptr, "DeviceName is NULL"}, {NicHandle != nullptr, "NicHandle is NULL"}}))
            return VIP_INVALID_PARAMETER;
        const auto device = device_with_name(DeviceName);
        auto nic = device.ok() ? Nic::open(device.value()) : device.status();
        if (!nic.ok()) {
            const VIP_RETURN result = to_return(nic.status());  // before the texts of other devices
            if (nic.status().code() == Code::InvalidParameter) log_devices(DeviceName);
            return result;
        }
        *NicHandle = (*nic).release()->handle();  // owned by the program until VipCloseNic
        return VIP_SUCCESS;
    });
}

VIP_RETURN VipCloseNic(VIP_NIC_HANDLE NicHandle) {
    return Entry::on<Nic>(NicHandle, {}, [&](Nic& nic) {
        delete &nic;  // NOLINT(cppcoreguidelines-owning-memory): the handle had it
        return VIP_SUCCESS;
    });
}

VIP_RETURN VipQueryNic(VIP_NIC_HANDLE NicHandle, VIP_NIC_ATTRIBUTES* NicAttribs) {
    return Entry::on<Nic>(NicHandle, {{NicAttribs != nullptr, "NicAttribs is NULL"}}, [&](const Nic& nic) {
        *NicAttribs = nic.vipl_attributes();  // NOLINT: on() has checked it
        return VIP_SUCCESS;
    });
}

// SPDX-License-Identifier: BSD-3-Clause
#include "backends/verbs/nic.hpp"

#include <sys/utsname.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/verbs/endpoint.hpp"
#include "backends/verbs/listener.hpp"
#include "backends/verbs/queue_pair.hpp"
#include "backends/verbs/shared_receive_queue.hpp"
#include "core/base/numbers.hpp"
#include "core/base/socket_address.hpp"

namespace viaduct::verbs {
namespace {

struct Place {
    std::string device;
    std::uint8_t port = 1;
};

/// Returns the device and port that the connection manager uses for an address.
Result<Place> find_place(const HostAddress& host) {
    const auto created = create_id(nullptr);
    if (!created.ok()) return created.status();
    const IdOwner& id = created.value();
    SocketAddress address(host, 0);
    errno = 0;
    const bool bound = address.valid() && rdma_bind_addr(id.get(), address.get()) == 0;
    if (const Status status = Status::from_errno(errno, "rdma_bind_addr"); !bound && status.code() == Code::NoResources)
        return status;
    if (!bound || id->verbs == nullptr) return Status(Code::Unreachable, "no RDMA device at the address", errno);
    return Place{.device = ibv_get_device_name(id->verbs->device), .port = id->port_num};
}

/// Since Linux 5.13, fork(2) copies what devices may access. ibv_fork_init() would find that out, too, but not if
/// descriptors or memory are short at that moment: then it hides registered pages from children for ever, and takes a
/// lock for each registration that stays locked in a child which is forked meanwhile.
bool copies_registered_pages() noexcept {
    utsname system{};
    if (uname(&system) != 0) return false;
    std::string_view release = system.release;
    int major = 0;
    int minor = 0;
    return take_number(release, major) && take_text(release, ".") && take_number(release, minor) &&
           std::pair(major, minor) >= std::pair(5, 13);
}

/// Opens a context of our own. That of the connection manager stays open forever, and a forked child would inherit it.
ContextOwner open_context(const std::string& name, ClosedInChildren& in_children) {
    int count = 0;
    const std::unique_ptr<ibv_device*[], void (*)(ibv_device**)> list(ibv_get_device_list(&count),
                                                                      ibv_free_device_list);
    if (list == nullptr) return nullptr;
    for (int i = 0; i < count; ++i)
        if (ibv_get_device_name(list[static_cast<std::size_t>(i)]) == name) {
            const ForkHold hold;
            ContextOwner context(ibv_open_device(list[static_cast<std::size_t>(i)]));
            if (context == nullptr) return nullptr;
            in_children = ClosedInChildren(hold, context->cmd_fd);
            if (in_children) return context;
            errno = ENOMEM;
            return nullptr;
        }
    errno = ENODEV;
    return nullptr;
}

/// Devices that know only the older call have no on-demand paging and no flush.
int query_limits(ibv_context* context, ibv_device_attr_ex& limits) noexcept {
    const verbs_context* const extended = verbs_get_ctx_op(context, query_device_ex);
    const int error =
        extended == nullptr ? EOPNOTSUPP : extended->query_device_ex(context, nullptr, &limits, sizeof limits);
    return error == EOPNOTSUPP || error == ENOSYS ? ibv_query_device(context, &limits.orig_attr) : error;
}

/// The capabilities have no names in libibverbs.
int flush_flags_of(std::uint64_t capabilities) noexcept {
    constexpr std::uint64_t device_flush_global = std::uint64_t{1} << 38;
    constexpr std::uint64_t device_flush_persistent = std::uint64_t{1} << 39;
    return ((capabilities & device_flush_global) != 0 ? access_flush_global : 0) |
           ((capabilities & device_flush_persistent) != 0 ? access_flush_persistent : 0);
}

}  // namespace

Result<std::shared_ptr<Nic>> Nic::open(const Interface& interface) {
    // Never destroyed: the process may fork, or open a device, while it exits.
    static auto& open_ones = *new std::vector<std::weak_ptr<Nic>>;
    static constinit ProcessMutex mutex([](void*) noexcept { open_ones.clear(); });
    const LockGuard lock(mutex);
    std::erase_if(open_ones, [](const auto& nic) { return nic.expired(); });
    for (const auto& nic : open_ones)
        if (auto found = nic.lock();
            found != nullptr && found->host() == interface.host && !found->agent().lost_device())
            return found;
    std::shared_ptr<Nic> nic(new Nic(interface));
    if (const Status status = nic->open_device(); !status.ok()) return status;
    open_ones.push_back(nic);
    return nic;
}

Nic::Nic(const Interface& interface) noexcept : host_(interface.host) {}

Nic::~Nic() = default;

Status Nic::open_device() {
    if (!copies_registered_pages()) {
        if (const int error = ibv_fork_init(); error != 0) return Status::from_errno(error, "ibv_fork_init");
    }
    const auto place = find_place(host_);
    if (!place.ok()) return place.status();
    context_ = open_context(place.value().device, in_children_);
    if (context_ == nullptr) return Status::from_errno(errno, "ibv_open_device");
    ibv_device_attr_ex limits{};
    if (const int error = query_limits(context_.get(), limits); error != 0)
        return Status::from_errno(error, "ibv_query_device");
    limits_ = limits.orig_attr;
    pages_on_demand_ = (limits.odp_caps.general_caps & IBV_ODP_SUPPORT) != 0;
    flush_flags_ = flush_flags_of(limits.device_cap_flags_ex);
    auto* const port = reinterpret_cast<_compat_ibv_port_attr*>(&port_);
    if (const int error = ibv_query_port(context_.get(), place.value().port, port); error != 0)
        return Status::from_errno(error, "ibv_query_port");
    has_unreliable_ = probe_unreliable();
    auto agent = Agent::start(*this);
    if (!agent.ok()) return agent.status();
    agent_ = std::move(*agent);
    return {};
}

bool Nic::probe_unreliable() noexcept {
    const DomainOwner domain(ibv_alloc_pd(context_.get()));
    const CompletionQueueOwner queue(ibv_create_cq(context_.get(), 1, nullptr, nullptr, 0));
    if (domain == nullptr || queue == nullptr) return false;
    return QueuePair::create({.domain = domain.get(),
                              .send_queue = queue.get(),
                              .receive_queue = queue.get(),
                              .send_depth = 1,
                              .receive_depth = 1,
                              .reliable = false})
        .ok();
}

void Nic::progress(std::uint32_t queue_pair) noexcept {
    const LockGuard lock(control());
    if (const auto found = endpoints_.find(queue_pair); found != endpoints_.end())
        (void)found->second->outstanding(QueueKind::Send);
}

void Nic::on_async_event(ibv_event_type type, std::uint32_t queue_pair, void* queue) noexcept {
    if (type == IBV_EVENT_DEVICE_FATAL || type == IBV_EVENT_CQ_ERR || type == IBV_EVENT_SRQ_ERR) {
        for (auto next = endpoints_.begin(); next != endpoints_.end();) {
            Endpoint& endpoint = *next->second;
            ++next;  // first, because its queue pair may be replaced, and the entry with it
            if (type == IBV_EVENT_DEVICE_FATAL || endpoint.uses(queue)) endpoint.on_hardware_event(type);
        }
        return;
    }
    if (type == IBV_EVENT_SRQ_LIMIT_REACHED) {
        // A queue that was destroyed meanwhile needs no event.
        const auto found = shared_queues_.find(static_cast<SharedReceiveQueue*>(queue));
        if (found != shared_queues_.end()) (*found)->on_limit();
        return;
    }
    if (const auto found = endpoints_.find(queue_pair); found != endpoints_.end())
        found->second->on_hardware_event(type);
}

}  // namespace viaduct::verbs

// SPDX-License-Identifier: BSD-3-Clause
// The kernel shows the ids of the connection manager to every user, device by device: NETLINK_RDMA, as rdma(8) uses it.
#include "backends/verbs/local_listeners.hpp"

#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <rdma/rdma_netlink.h>

#include <cstdlib>
#include <new>
#include <utility>

#include "backends/support/services.hpp"
#include "backends/support/shared_library.hpp"
#include "backends/verbs/owners.hpp"
#include "core/base/socket_address.hpp"
#include "core/log.hpp"

// clang-format off
#define VIADUCT_LIBNL(DO) \
    DO(nl_connect) DO(nl_recv) DO(nl_send_auto) DO(nl_socket_alloc) DO(nl_socket_free) DO(nla_data) \
    DO(nla_get_string) DO(nla_get_u32) DO(nla_get_u8) DO(nla_len) DO(nla_memcpy) DO(nla_next) DO(nla_ok) \
    DO(nla_parse_nested) DO(nla_put_u32) DO(nlmsg_alloc_simple) DO(nlmsg_data) DO(nlmsg_datalen) DO(nlmsg_free) \
    DO(nlmsg_next) DO(nlmsg_ok) DO(nlmsg_parse)
// clang-format on

namespace viaduct::verbs {
namespace {

// As in rdma_core.hpp.
#define VIADUCT_POINTER(NAME) constinit decltype(&::NAME) NAME = nullptr;  // NOLINT(bugprone-macro-parentheses)
VIADUCT_LIBNL(VIADUCT_POINTER)
#undef VIADUCT_POINTER

using NetlinkOwner = Owner<nl_sock, nl_socket_free>;
using MessageOwner = Owner<nl_msg, nlmsg_free>;
using BufferOwner = Owner<unsigned char, std::free>;

/// RDMA_CM_LISTEN of the kernel's enum rdma_cm_state, which no header of the system contains.
constexpr std::uint8_t listening_state = 8;

/// The attributes of a message or of a nested one, by type. Null if absent.
struct Attributes {
    nlattr* at[RDMA_NLDEV_ATTR_MAX] = {};

    const nlattr* operator[](rdma_nldev_attr type) const noexcept { return at[type]; }
};

Status unsupported() noexcept { return {Code::Unsupported, "the kernel does not show listeners of RDMA devices"}; }

/// Whether the message ends a list because of an error.
bool is_failure(nlmsghdr* message) noexcept {
    if (message->nlmsg_type != NLMSG_DONE) return message->nlmsg_type == NLMSG_ERROR;
    return nlmsg_datalen(message) >= static_cast<int>(sizeof(int)) && *static_cast<int*>(nlmsg_data(message)) < 0;
}

/// Requests a list and calls `take` with the attributes of each message of the answer. The list is about all devices,
/// or about the one with this index.
template <class Take>
Status dump(nl_sock* socket, rdma_nldev_command command, const std::uint32_t* device, Take take) {
    const MessageOwner request(nlmsg_alloc_simple(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command), NLM_F_DUMP));
    if (request == nullptr) throw std::bad_alloc();
    if (device != nullptr && nla_put_u32(request.get(), RDMA_NLDEV_ATTR_DEV_INDEX, *device) != 0)
        throw std::bad_alloc();
    if (nl_send_auto(socket, request.get()) < 0) return unsupported();
    while (true) {
        sockaddr_nl from{};
        unsigned char* received = nullptr;
        int left = nl_recv(socket, &from, &received, nullptr);
        const BufferOwner buffer(received);
        if (left <= 0) return unsupported();
        for (auto* message = reinterpret_cast<nlmsghdr*>(received); nlmsg_ok(message, left) != 0;
             message = nlmsg_next(message, &left)) {
            if (is_failure(message)) return unsupported();
            if (message->nlmsg_type == NLMSG_DONE) return {};
            Attributes attributes;
            if (nlmsg_parse(message, 0, attributes.at, RDMA_NLDEV_ATTR_MAX - 1, nullptr) == 0) take(attributes);
        }
    }
}

std::uint32_t number_in(const nlattr* attribute) noexcept { return attribute == nullptr ? 0 : nla_get_u32(attribute); }

/// Adds an id of the connection manager if it listens in the port space that Viaduct and the stock libraries use.
void add(const Attributes& id, const Service* service, std::vector<backend::ProcessListener>& found) {
    const nlattr* const state = id[RDMA_NLDEV_ATTR_RES_STATE];
    const nlattr* const source = id[RDMA_NLDEV_ATTR_RES_SRC_ADDR];
    if (state == nullptr || nla_get_u8(state) != listening_state ||
        number_in(id[RDMA_NLDEV_ATTR_RES_PS]) != RDMA_PS_TCP)
        return;
    sockaddr_storage address{};
    if (source == nullptr || nla_memcpy(&address, source, sizeof address) < static_cast<int>(sizeof(sockaddr_in)))
        return;
    const auto* const local = reinterpret_cast<const sockaddr*>(&address);
    const std::uint16_t port = port_of(local);
    if (service != nullptr && support::port_for(*service) != port) return;
    const nlattr* const kernel = id[RDMA_NLDEV_ATTR_RES_KERN_NAME];
    found.push_back({.address = {host_of(local), service != nullptr ? *service : service_of(port)},
                     .thread = static_cast<pid_t>(number_in(id[RDMA_NLDEV_ATTR_RES_PID])),
                     .kernel_name = kernel == nullptr ? "" : nla_get_string(kernel)});
}

/// libibverbs depends on it, too.
bool load_libnl() noexcept {
    static const bool loaded = [] {
        support::SharedLibrary library("libnl-3.so.200");
#define VIADUCT_FIND(NAME) library.find(NAME, #NAME);
        VIADUCT_LIBNL(VIADUCT_FIND)
#undef VIADUCT_FIND
        if (library.error() != nullptr)
            log(LogLevel::Error, "verbs: the listeners cannot be read: %s", library.error());
        return library.error() == nullptr;
    }();
    return loaded;
}

}  // namespace

/// A device may be removed meanwhile, so that only those that answer count.
Result<std::vector<backend::ProcessListener>> find_listeners(const Service* service) {
    if (!load_libnl()) return unsupported();
    const NetlinkOwner socket(nl_socket_alloc());
    if (socket == nullptr) throw std::bad_alloc();
    if (nl_connect(socket.get(), NETLINK_RDMA) != 0) return unsupported();

    std::vector<std::uint32_t> devices;
    const Status listed = dump(socket.get(), RDMA_NLDEV_CMD_GET, nullptr, [&devices](const Attributes& device) {
        devices.push_back(number_in(device[RDMA_NLDEV_ATTR_DEV_INDEX]));
    });
    if (!listed.ok()) return listed;

    std::vector<backend::ProcessListener> found;
    bool has_answer = devices.empty();
    for (const std::uint32_t device : devices) {
        const Status answer = dump(socket.get(), RDMA_NLDEV_CMD_RES_CM_ID_GET, &device, [&](const Attributes& message) {
            if (message[RDMA_NLDEV_ATTR_RES_CM_ID] == nullptr) return;
            nlattr* entry = nullptr;
            int left = 0;
            nla_for_each_nested(entry, message[RDMA_NLDEV_ATTR_RES_CM_ID], left) {
                Attributes id;
                if (nla_parse_nested(id.at, RDMA_NLDEV_ATTR_MAX - 1, entry, nullptr) == 0) add(id, service, found);
            }
        });
        has_answer = has_answer || answer.ok();
    }
    return has_answer ? Result(std::move(found)) : unsupported();
}

}  // namespace viaduct::verbs

// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/local_listeners.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>

#include "backends/loopback/handshake.hpp"
#include "backends/loopback/layout.hpp"
#include "core/base/address_text.hpp"
#include "core/explain.hpp"
#include "core/log.hpp"

namespace viaduct::loopback {
namespace {

namespace fs = std::filesystem;

/// The number of network namespaces that are searched at most.
constexpr std::size_t max_spaces = 64;

/// Reads a line of /proc/net/unix. Returns nothing for a socket that is not that of a listener.
std::optional<backend::ListenerSummary> parse_socket(const std::string& line, const Service* service) {
    constexpr unsigned long accepts = 1 << 16;  // __SO_ACCEPTCON of the kernel
    std::istringstream fields(line);
    std::string skipped;
    std::string path;
    unsigned long flags = 0;
    std::uint64_t inode = 0;
    fields >> skipped >> skipped >> skipped >> std::hex >> flags >> skipped >> skipped >> std::dec >> inode >> path;
    if (!fields || (flags & accepts) == 0 || !path.starts_with('@')) return std::nullopt;
    const auto name = parse_service_name(std::string_view(path).substr(1));
    if (!name || (service != nullptr && name->service_text != service_text(*service))) return std::nullopt;
    return backend::ListenerSummary{
        .address = {name->address.host, service != nullptr ? *service : name->address.service},
        .user = name->user,
        .version = name->version,
        .compatible = name->version == wire::version,
        .socket = inode};
}

/// Looks in this network namespace.
const char* search_here(const Address& remote) {
    const auto found = find_listeners("/proc/net", &remote.service);
    if (found.empty()) return nullptr;
    const auto at_host = std::ranges::find(found, remote.host, [](const auto& one) { return one.address.host; });
    if (at_host == found.end()) return "it has a listener at another device of this host";
    if (at_host->user != geteuid())
        return explain(
            "the listener belongs to user %u, this process to user %u, and the loopback backend connects "
            "processes of one user only",
            at_host->user, geteuid());
    if (!at_host->compatible)
        return explain("the listener uses version %u of the protocol, another one than this process", at_host->version);
    return "its queue of requests is full, or it was created just now";
}

/// Looks in the other network namespaces, as far as this user may see them.
const char* search_elsewhere(const Address& remote) {
    std::error_code error;
    std::set<fs::path> seen{fs::read_symlink("/proc/self/ns/net", error)};
    for (const auto& process : fs::directory_iterator("/proc", error)) {
        const auto space = fs::read_symlink(process.path() / "ns/net", error);
        if (error || !seen.insert(space).second) continue;
        if (seen.size() > max_spaces) break;
        const auto found = find_listeners(process.path() / "net", &remote.service);
        if (std::ranges::any_of(found, [&](const auto& one) { return one.address.host == remote.host; }))
            return explain("process %s listens on it in another network namespace", process.path().filename().c_str());
    }
    return nullptr;
}

}  // namespace

std::vector<backend::ListenerSummary> find_listeners(const std::string& tables, const Service* service) {
    std::vector<backend::ListenerSummary> found;
    std::ifstream table(tables + "/unix");
    for (std::string line; std::getline(table, line);)
        if (const auto listener = parse_socket(line, service)) found.push_back(*listener);
    return found;
}

Status missing_listener(const Address& remote) noexcept {
    const char* found = nullptr;
    if (is_logged(LogLevel::Info)) try {
            found = search_here(remote);
            if (found == nullptr) found = search_elsewhere(remote);
        } catch (const std::exception&) {  // out of memory, or a process that has just ended
        }
    return {Code::NoListener, explain("%s has no listener%s%s", text_of(remote).c_str(), found == nullptr ? "" : ": ",
                                      found == nullptr ? "" : found)};
}

}  // namespace viaduct::loopback

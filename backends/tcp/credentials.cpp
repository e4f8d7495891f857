// SPDX-License-Identifier: BSD-3-Clause
#include "backends/tcp/credentials.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "backends/support/random.hpp"
#include "core/base/settings.hpp"
#include "core/log.hpp"

namespace viaduct::tcp {
namespace {

constexpr const char* key_variable = "VIADUCT_TCP_KEY_FILE";
constexpr const char* level_variable = "VIADUCT_TCP_SECURITY";
constexpr std::array<const char*, 3> certificate_variables{"VIADUCT_TCP_CERT", "VIADUCT_TCP_KEY", "VIADUCT_TCP_CA"};

constexpr std::size_t host_key_bytes = 32;

Status refuse_key(const char* path, const char* reason, Code code = Code::PermissionDenied) noexcept {
    const bool usual = code == Code::NoResources;  // the caller goes on
    log(usual ? LogLevel::Info : LogLevel::Error, "tcp: cannot use the key %s: %s", path, reason);
    return {code, "the key cannot be used"};
}

Status refuse_key(const char* path, int error) noexcept {
    const bool exhausted = Status::from_errno(error, "").code() == Code::NoResources;
    return refuse_key(path, std::strerror(error), exhausted ? Code::NoResources : Code::PermissionDenied);
}

/// In a user namespace, the user id outside of it, so that a process in the namespace and one outside find the same
/// file.
uid_t outer_user() noexcept {
    const uid_t user = geteuid();
    std::FILE* const map = std::fopen("/proc/self/uid_map", "re");
    if (map == nullptr) return user;
    std::uint32_t inside = 0;
    std::uint32_t outside = 0;
    std::uint32_t count = 0;
    uid_t outer = user;
    while (std::fscanf(map, "%" SCNu32 " %" SCNu32 " %" SCNu32, &inside, &outside, &count) == 3)
        if (user >= inside && user - inside < count) outer = outside + (user - inside);
    std::fclose(map);
    return outer;
}

/// Creates the file with random content under this name at once, so that nobody reads a part of it. Does nothing if
/// there is such a file.
const char* create_host_key(const char* path) noexcept {
    std::array<char, 256> text;  // first the directory, then the name of the descriptor
    const std::string_view directory = std::string_view(path).substr(0, std::string_view(path).rfind('/'));
    if (directory.size() >= text.size()) return "its name is too long";
    *std::ranges::copy(directory, text.begin()).out = '\0';
    const UniqueFd file(open(text.data(), O_TMPFILE | O_WRONLY | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (!file) return std::strerror(errno);
    std::array<std::byte, host_key_bytes> key;
    if (!support::fill_random(key).ok()) return "the system has no random bytes";
    const bool written = fchmod(file.get(), S_IRUSR | S_IWUSR) == 0 &&
                         write(file.get(), key.data(), key.size()) == static_cast<ssize_t>(key.size());
    explicit_bzero(key.data(), key.size());
    if (!written) return std::strerror(errno);
    std::snprintf(text.data(), text.size(), "/proc/self/fd/%d", file.get());
    if (linkat(AT_FDCWD, text.data(), AT_FDCWD, path, AT_SYMLINK_FOLLOW) != 0 && errno != EEXIST)
        return std::strerror(errno);
    return nullptr;
}

/// Returns the reason if a file is no key, or if others may know or change its content.
const char* flaw_of(const struct stat& file, bool trusts_root) noexcept {
    const bool of_root = trusts_root && file.st_uid == 0;
    if (!S_ISREG(file.st_mode)) return "it is not a regular file";
    if (file.st_uid != geteuid() && !of_root) return "it belongs to another user";
    // As for the keys of other servers, root may give one to a group.
    if ((file.st_mode & (S_IRWXO | S_IWGRP | (of_root ? 0 : S_IRGRP))) != 0)
        return "other users may read or write it; use chmod 600";
    if (file.st_size < static_cast<off_t>(SharedKey::min_bytes)) return "it is shorter than 16 bytes";
    if (file.st_size > static_cast<off_t>(SharedKey::max_bytes)) return "it is longer than 4096 bytes";
    return nullptr;
}

}  // namespace

HostKeyPath host_key_path() noexcept {
    // A memory file system, so that the key is neither stored nor on several hosts.
    HostKeyPath path;
    std::snprintf(path.data(), path.size(), "/dev/shm/viaduct-%u.key", outer_user());
    return path;
}

SharedKey::~SharedKey() { explicit_bzero(bytes_.data(), bytes_.size()); }

Result<SharedKey> SharedKey::read_from(const UniqueFd& file, const char* path, bool trusts_root) noexcept {
    struct stat status {};
    if (!file || fstat(file.get(), &status) != 0) return refuse_key(path, errno);
    if (const char* flaw = flaw_of(status, trusts_root)) return refuse_key(path, flaw);
    SharedKey key;
    for (const auto size = static_cast<std::size_t>(status.st_size); key.size_ < size;) {
        const ssize_t count = read(file.get(), key.bytes_.data() + key.size_, size - key.size_);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return refuse_key(path, errno);
        if (count == 0) return refuse_key(path, "it became shorter while it was read");
        key.size_ += static_cast<std::size_t>(count);
    }
    return key;
}

Result<SharedKey> SharedKey::load(const char* path) noexcept {
    // Not to wait for the writer of a FIFO.
    return read_from(UniqueFd(open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)), path, true);
}

Result<SharedKey> SharedKey::of_host(const char* path) noexcept {
    const auto open_it = [path] { return UniqueFd(open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)); };
    UniqueFd file = open_it();
    const char* error = nullptr;
    if (!file && errno == ENOENT) {
        error = create_host_key(path);
        if (error == nullptr) file = open_it();
    }
    auto key = error == nullptr ? read_from(file, path, false) : refuse_key(path, error);
    if (key.status().code() == Code::PermissionDenied)
        log(LogLevel::Error, "tcp: remove that file, or set %s to a file of your own", key_variable);
    return key;
}

Result<Policy> Policy::from_environment() {
    const std::string path(setting(key_variable));
    const bool has_file = is_set(key_variable);  // an empty name is a mistake
    Certificate certificate{.chain = std::string(setting(certificate_variables[0])),
                            .key = std::string(setting(certificate_variables[1])),
                            .authority = std::string(setting(certificate_variables[2]))};
    const bool some = !certificate.chain.empty() || !certificate.key.empty() || !certificate.authority.empty();
    const bool all = !certificate.chain.empty() && !certificate.key.empty() && !certificate.authority.empty();
    const bool insecure = number_setting(tcp_insecure_setting) == 1;
    if (some && !all) {
        log(LogLevel::Error, "tcp: set all of %s, %s and %s, or none", certificate_variables[0],
            certificate_variables[1], certificate_variables[2]);
        return Status(Code::PermissionDenied, "the certificate cannot be used");
    }
    if (insecure && (all || has_file))
        log(LogLevel::Warning, "tcp: %s is set, so %s has no effect", all ? certificate_variables[0] : key_variable,
            tcp_insecure_setting.variable);
    Policy policy(all        ? Authentication::Certificate
                  : has_file ? Authentication::SharedKey
                  : insecure ? Authentication::None
                             : Authentication::HostKey);
    policy.choose_levels();
    if (all) policy.certificate_ = std::move(certificate);
    if (all || policy.authentication_ == Authentication::None) return policy;
    if (!has_file) policy.host_key_path_ = host_key_path();
    auto key = has_file ? SharedKey::load(path.c_str()) : SharedKey::of_host(policy.host_key_path_.data());
    if (!key.ok()) return key.status();
    policy.key_ = *key;
    return policy;
}

void Policy::choose_levels() {
    const std::string_view level = setting(level_variable);
    if (level == "encrypted")
        encrypts_here_ = true;
    else if (level == "authenticated")
        encrypts_elsewhere_ = false;
    else if (!level.empty())
        warn_of_setting(level_variable, "encrypted, authenticated");
}

Result<SharedKey> Policy::key() const noexcept {
    if (authentication_ != Authentication::HostKey) return *key_;
    // It may be another one now: some systems remove the file when its user logs out.
    const auto key = SharedKey::of_host(host_key_path_.data());
    if (!key.ok() && key.status().code() != Code::NoResources) return key.status();
    return key.ok() ? key.value() : *key_;
}

const char* Policy::advice() const noexcept {
    switch (authentication_) {
        case Authentication::None: return "it authenticates, and this process does not (VIADUCT_TCP_INSECURE)";
        case Authentication::HostKey:
            return "without VIADUCT_TCP_KEY_FILE, only processes of the same user on the same host may connect";
        case Authentication::SharedKey: return "its VIADUCT_TCP_KEY_FILE has another content";
        case Authentication::Certificate: return "its certificate is of another authority (VIADUCT_TCP_CA)";
    }
    return "";
}

const char* Policy::advice_for_another_kind() const noexcept {
    switch (authentication_) {
        case Authentication::None: break;
        case Authentication::HostKey:
            return "the peer requires a key or a certificate: set VIADUCT_TCP_KEY_FILE or VIADUCT_TCP_CERT as it does";
        case Authentication::SharedKey: return "the peer has no key: set VIADUCT_TCP_KEY_FILE there, too";
        case Authentication::Certificate: return "the peer has no certificate: set VIADUCT_TCP_CERT there, too";
    }
    return "the peer has closed the socket, maybe because it authenticates: set VIADUCT_TCP_INSECURE on both or none";
}

Status Policy::why_closed() const noexcept {
    if (authentication_ == Authentication::None) return {Code::PermissionDenied, advice_for_another_kind(), ECONNRESET};
    return {Code::Unreachable, "the peer has closed the socket", ECONNRESET};
}

}  // namespace viaduct::tcp

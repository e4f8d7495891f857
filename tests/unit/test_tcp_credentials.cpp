// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "backends/tcp/credentials.hpp"
#include "backends/tcp/tls.hpp"

using namespace viaduct;
using namespace viaduct::tcp;

namespace {

std::string text_of(const SharedKey& key) {
    return {reinterpret_cast<const char*>(key.bytes().data()), key.bytes().size()};
}

/// In memory, like the key of the host.
class Directory {
public:
    Directory() { REQUIRE(mkdtemp(path_.data()) != nullptr); }
    ~Directory() { std::filesystem::remove_all(path_); }
    Directory(const Directory&) = delete;
    Directory& operator=(const Directory&) = delete;

    std::string file(const std::string& name) const { return path_ + "/" + name; }
    std::string write(const std::string& name, const std::string& content, mode_t mode = 0600) const {
        std::ofstream(file(name)) << content;
        REQUIRE(chmod(file(name).c_str(), mode) == 0);
        return file(name);
    }

private:
    std::string path_ = "/dev/shm/viaduct-test-XXXXXX";
};

/// Sets a variable as long as it exists.
class Variable {
public:
    Variable(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
    ~Variable() { unsetenv(name_); }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

private:
    const char* name_;
};

constexpr std::string_view key_text = "0123456789abcdef0123456789abcdef";

}  // namespace

TEST_CASE("tcp credentials: key files are private files of some length") {
    const Directory directory;
    const auto is_accepted = [](const std::string& path) { return SharedKey::load(path.c_str()).ok(); };
    const std::string key(key_text);
    auto loaded = SharedKey::load(directory.write("good", key).c_str());
    REQUIRE(loaded.ok());
    CHECK(text_of(*loaded) == key);

    CHECK(is_accepted(directory.write("read-only", key, 0400)));
    for (const mode_t mode : {0604, 0602, 0601, 0620}) CHECK_FALSE(is_accepted(directory.write("open", key, mode)));
    CHECK(is_accepted(directory.write("group", key, 0640)) == (geteuid() == 0));
    CHECK(is_accepted(directory.write("shortest", std::string(16, 'k'))));
    CHECK_FALSE(is_accepted(directory.write("too-short", std::string(15, 'k'))));
    CHECK_FALSE(is_accepted(directory.write("empty", "")));
    CHECK(is_accepted(directory.write("longest", std::string(4096, 'k'))));
    CHECK_FALSE(is_accepted(directory.write("too-long", std::string(4097, 'k'))));

    CHECK_FALSE(is_accepted(directory.file("missing")));
    CHECK_FALSE(is_accepted(directory.file("")));
    CHECK_FALSE(is_accepted(""));
    REQUIRE(mkfifo(directory.file("fifo").c_str(), 0600) == 0);
    CHECK_FALSE(is_accepted(directory.file("fifo")));
    std::filesystem::create_symlink("good", directory.file("link"));
    CHECK(is_accepted(directory.file("link")));
    // Only root can give it away, and not in all user namespaces.
    if (chown(directory.file("good").c_str(), 12345, 0) == 0) CHECK_FALSE(is_accepted(directory.file("good")));
}

TEST_CASE("tcp credentials: the key of the host is created once") {
    const Directory directory;
    const std::string path = directory.file("host.key");
    std::string previous;
    for (int round = 0; round < 50; ++round) {
        std::array<std::string, 4> keys;
        std::latch start(keys.size());
        std::vector<std::jthread> threads;
        for (std::string& key : keys)
            threads.emplace_back([&key, &path, &start] {
                start.arrive_and_wait();
                if (auto made = SharedKey::of_host(path.c_str()); made.ok()) key = text_of(*made);
            });
        threads.clear();
        REQUIRE(keys[0].size() == 32);
        for (const std::string& key : keys) REQUIRE(key == keys[0]);
        REQUIRE(keys[0] != previous);
        previous = keys[0];
        struct stat file {};
        REQUIRE(stat(path.c_str(), &file) == 0);
        REQUIRE((file.st_mode & 07777) == 0600);
        REQUIRE(std::distance(std::filesystem::directory_iterator(directory.file("")), {}) == 1);
        std::filesystem::remove(path);
    }
}

TEST_CASE("tcp credentials: a file of others is no key of the host") {
    const Directory directory;
    const auto is_accepted = [](const std::string& path) { return SharedKey::of_host(path.c_str()).ok(); };
    CHECK(is_accepted(directory.write("good", std::string(key_text))));
    CHECK_FALSE(is_accepted(directory.write("group", std::string(key_text), 0640)));
    std::filesystem::create_symlink("good", directory.file("link"));
    CHECK_FALSE(is_accepted(directory.file("link")));
    CHECK_FALSE(is_accepted(directory.file("missing/key")));
    // Only root can give it away, and not in all user namespaces.
    if (chown(directory.file("good").c_str(), 12345, 0) == 0) CHECK_FALSE(is_accepted(directory.file("good")));
}

TEST_CASE("tcp credentials: namespaces of a host share its key") {
    std::uint32_t inside = 0;
    std::uint32_t first = 0;
    std::ifstream("/proc/self/uid_map") >> inside >> first;
    if (inside != first) {
        WARN("skipped: in a user namespace, which does not share the key with those in it");
        return;
    }
    auto outside = SharedKey::of_host(host_key_path().data());
    REQUIRE(outside.ok());
    const std::string map = "4321 " + std::to_string(geteuid()) + " 1\n";
    const std::string expected = text_of(*outside);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        // 77: the system allows no namespaces.
        if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) _exit(77);
        const UniqueFd file(open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC));
        if (!file || write(file.get(), map.data(), map.size()) != static_cast<ssize_t>(map.size())) _exit(77);
        auto inside = SharedKey::of_host(host_key_path().data());
        _exit(geteuid() == 4321 && inside.ok() && text_of(*inside) == expected ? 0 : 1);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        WARN("skipped: user namespaces are not available");
        return;
    }
    CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("tcp credentials: the environment chooses the policy") {
    unsetenv("VIADUCT_TCP_KEY_FILE");
    unsetenv("VIADUCT_TCP_INSECURE");
    const auto chosen = [] {
        auto policy = Policy::from_environment();
        REQUIRE(policy.ok());
        return policy->authentication();
    };
    const Directory directory;
    CHECK(chosen() == Authentication::HostKey);
    {
        const Variable insecure("VIADUCT_TCP_INSECURE", "1");
        CHECK(chosen() == Authentication::None);
        const Variable key("VIADUCT_TCP_KEY_FILE", directory.write("key", std::string(key_text)));
        CHECK(chosen() == Authentication::SharedKey);
    }
    {
        const Variable insecure("VIADUCT_TCP_INSECURE", "0");
        CHECK(chosen() == Authentication::HostKey);
    }
    // A key that cannot be used does not make the device less safe.
    const Variable insecure("VIADUCT_TCP_INSECURE", "1");
    for (const char* const variable : {"VIADUCT_TCP_KEY_FILE", "VIADUCT_OFI_KEY_FILE"}) {
        const Variable empty(variable, "");
        CHECK(Policy::from_environment().status().code() == Code::PermissionDenied);
    }
    const Variable key("VIADUCT_TCP_KEY_FILE", "/nonesuch");
    CHECK(Policy::from_environment().status().code() == Code::PermissionDenied);
}

TEST_CASE("tcp credentials: the level is chosen for this host and for others") {
    const Variable insecure("VIADUCT_TCP_INSECURE", "1");
    const auto levels = [] {
        auto policy = Policy::from_environment();
        REQUIRE(policy.ok());
        return std::pair(policy->encrypts(true), policy->encrypts(false));
    };
    CHECK(levels() == std::pair(false, true));
    {
        const Variable level("VIADUCT_TCP_SECURITY", "encrypted");
        CHECK(levels() == std::pair(true, true));
    }
    {
        const Variable level("VIADUCT_TCP_SECURITY", "authenticated");
        CHECK(levels() == std::pair(false, false));
    }
    const Variable level("VIADUCT_TCP_SECURITY", "sometimes");
    CHECK(levels() == std::pair(false, true));
}

TEST_CASE("tcp credentials: a certificate needs its key and its authority") {
    const Variable chain("VIADUCT_TCP_CERT", "/nonesuch");
    CHECK(Policy::from_environment().status().code() == Code::PermissionDenied);
    const Variable key("VIADUCT_TCP_KEY", "/nonesuch");
    const Variable authority("VIADUCT_TCP_CA", "/nonesuch");
    auto policy = Policy::from_environment();
    REQUIRE(policy.ok());
    CHECK(policy->authentication() == Authentication::Certificate);
    CHECK(make_tls_context(*policy).status().code() == Code::PermissionDenied);
}

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

#include "backends/ofi/authentication.hpp"
#include "backends/ofi/hmac.hpp"

using namespace viaduct;
using namespace viaduct::ofi;
using control::Authentication;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string hex(std::span<const std::byte> bytes) {
    std::string text;
    for (const std::byte byte : bytes) {
        std::array<char, 3> digits;
        std::snprintf(digits.data(), digits.size(), "%02x", std::to_integer<unsigned>(byte));
        text += digits.data();
    }
    return text;
}

std::string text_of(const SharedKey& key) {
    return {reinterpret_cast<const char*>(key.bytes().data()), key.bytes().size()};
}

control::Nonce nonce_from(int first) {
    control::Nonce nonce;
    for (std::size_t i = 0; i < nonce.size(); ++i) nonce[i] = static_cast<std::byte>(first + static_cast<int>(i));
    return nonce;
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

Authenticator authenticator(std::string_view key_text, int challenge = 1, int request = 101) {
    const Directory directory;
    auto key = SharedKey::load(directory.write("key", std::string(key_text)).c_str());
    REQUIRE(key.ok());
    auto made = Authenticator::make(*key, nonce_from(challenge), nonce_from(request));
    REQUIRE(made.ok());
    return *made;
}

constexpr std::string_view key_text = "0123456789abcdef0123456789abcdef";

/// A signed frame as the peer receives it; `change` changes it on its way.
template <class Change>
Status received(const Authenticator& signer, const Authenticator& verifier, const control::Message& message,
                Change change) {
    control::EncodedFrame encoded = control::encode(message);
    REQUIRE(signer.sign(encoded, Role::Requester).ok());
    control::FrameReader reader;
    std::ranges::copy(encoded.bytes(), reader.space().begin());
    change(reader.space().first(encoded.bytes().size()));
    reader.add(encoded.bytes().size());
    auto frame = reader.next();
    REQUIRE(frame.ok());
    REQUIRE(frame->has_value());
    return verifier.verify(**frame, Role::Requester);
}

Status received(const Authenticator& signer, const Authenticator& verifier, const control::Message& message) {
    return received(signer, verifier, message, [](auto) {});
}

}  // namespace

TEST_CASE("ofi authentication: HMAC-SHA256 of RFC 4231") {
    const auto mac = [](std::string_view key, std::initializer_list<std::span<const std::byte>> parts) {
        auto result = hmac_sha256(bytes_of(key), parts);
        REQUIRE(result.ok());
        return hex(*result);
    };
    CHECK(mac(std::string(20, '\x0b'), {bytes_of("Hi There")}) ==
          "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    CHECK(mac("Jefe", {bytes_of("what do ya "), {}, bytes_of("want for nothing?")}) ==
          "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    CHECK(mac(std::string(131, '\xaa'), {bytes_of("Test Using Larger Than Block-Size Key - Hash Key First")}) ==
          "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_CASE("ofi authentication: MACs are compared as a whole") {
    control::Mac mac;
    mac.fill(std::byte{7});
    for (std::size_t i = 0; i < mac.size(); ++i) {
        control::Mac other = mac;
        CHECK(equal_in_constant_time(mac, other));
        other[i] ^= std::byte{0x80};
        CHECK_FALSE(equal_in_constant_time(mac, other));
    }
    CHECK_FALSE(equal_in_constant_time(mac, std::span(mac).first(31)));
    CHECK_FALSE(equal_in_constant_time(mac, {}));
}

TEST_CASE("ofi authentication: MACs are those that other versions compute") {
    // Computed with Python: the key of the connection is HMAC(key, "Viaduct ofi 1 connection" + challenge + request),
    // and a MAC is HMAC(that, role + frame).
    std::string key;
    for (int i = 0; i < 32; ++i) key += static_cast<char>(i);
    const Authenticator both = authenticator(key);
    const auto mac = [&both](Role sender) {
        control::EncodedFrame frame = control::encode(control::NoListener{});
        REQUIRE(both.sign(frame, sender).ok());
        return hex(frame.bytes().last(sizeof(control::Mac)));
    };
    CHECK(mac(Role::Requester) == "8d73b3b17d90468f04d41cca52aaa048f78a47061c2e8ac52166c5fea8bf8c70");
    CHECK(mac(Role::Responder) == "b9cc69a16190d4c11e6227e805e8af5c1581d6f91049c245c51c962e397cfeb2");
}

TEST_CASE("ofi authentication: a message is authentic only as it was sent") {
    const control::Message message = control::Rejected{.private_data = PrivateData(std::array<std::uint8_t, 3>{1, 2})};
    const Authenticator one = authenticator(key_text);
    CHECK(received(one, authenticator(key_text), message).ok());
    const std::size_t size = control::encode(message).bytes().size();
    // Changes of the length and the type give no frame, or another.
    for (std::size_t i = control::header_bytes; i < size; ++i) {
        const Status status =
            received(one, one, message, [i](std::span<std::byte> frame) { frame[i] ^= std::byte{1}; });
        CHECK(status.code() == Code::PermissionDenied);
    }
    const Status other_type = received(one, one, control::NoListener{}, [](std::span<std::byte> frame) {
        frame[4] = std::byte(control::Type::Closing);
    });
    CHECK(other_type.code() == Code::PermissionDenied);
}

TEST_CASE("ofi authentication: key, nonces and role must be the same") {
    const control::Message message = control::NoListener{};
    const Authenticator one = authenticator(key_text);
    CHECK(received(one, authenticator("another key, as long"), message).code() == Code::PermissionDenied);
    CHECK(received(one, authenticator(key_text, 2), message).code() == Code::PermissionDenied);
    CHECK(received(one, authenticator(key_text, 1, 102), message).code() == Code::PermissionDenied);
    // The nonces in the other order.
    CHECK(received(one, authenticator(key_text, 101, 1), message).code() == Code::PermissionDenied);
    CHECK(received(one, Authenticator(), message).code() == Code::PermissionDenied);
    CHECK(received(Authenticator(), one, message).code() == Code::PermissionDenied);
    CHECK(received(Authenticator(), Authenticator(), message).ok());

    control::EncodedFrame sent = control::encode(message);
    REQUIRE(one.sign(sent, Role::Requester).ok());
    const control::Frame reflected{
        .type = control::Type::NoListener, .covered = sent.covered(), .mac = sent.bytes().last(sizeof(control::Mac))};
    CHECK(one.verify(reflected, Role::Requester).ok());
    CHECK(one.verify(reflected, Role::Responder).code() == Code::PermissionDenied);
}

TEST_CASE("ofi authentication: messages without a MAC are never authentic") {
    for (const control::Message& message :
         {control::Message(control::Challenge{}), control::Message(control::AuthenticationFailed{})}) {
        CHECK(received(authenticator(key_text), authenticator(key_text), message).code() == Code::PermissionDenied);
        CHECK(received(Authenticator(), Authenticator(), message).code() == Code::PermissionDenied);
    }
}

TEST_CASE("ofi authentication: key files are private files of some length") {
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

TEST_CASE("ofi authentication: the key of the host is created once") {
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

TEST_CASE("ofi authentication: a file of others is no key of the host") {
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

TEST_CASE("ofi authentication: namespaces of a host share its key") {
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

TEST_CASE("ofi authentication: the environment chooses the policy") {
    unsetenv("VIADUCT_OFI_KEY_FILE");
    unsetenv("VIADUCT_OFI_INSECURE");
    const auto chosen = [] {
        auto policy = Policy::from_environment();
        REQUIRE(policy.ok());
        return policy->authentication();
    };
    const Directory directory;
    CHECK(chosen() == Authentication::HostKey);
    {
        const Variable insecure("VIADUCT_OFI_INSECURE", "1");
        CHECK(chosen() == Authentication::None);
        const Variable key("VIADUCT_OFI_KEY_FILE", directory.write("key", std::string(key_text)));
        CHECK(chosen() == Authentication::SharedKey);
    }
    {
        const Variable insecure("VIADUCT_OFI_INSECURE", "0");
        CHECK(chosen() == Authentication::HostKey);
    }
    // A key that cannot be used does not make the device less safe.
    for (const char* path : {"", "/nonesuch"}) {
        const Variable insecure("VIADUCT_OFI_INSECURE", "1");
        const Variable key("VIADUCT_OFI_KEY_FILE", path);
        CHECK(Policy::from_environment().status().code() == Code::PermissionDenied);
    }
}

TEST_CASE("ofi authentication: peers must authenticate in the same way") {
    const Directory directory;
    const std::string path = directory.write("key", std::string(key_text));
    const auto policy = [&path](Authentication authentication) {
        std::optional<Variable> variable;
        if (authentication == Authentication::None) variable.emplace("VIADUCT_OFI_INSECURE", "1");
        if (authentication == Authentication::SharedKey) variable.emplace("VIADUCT_OFI_KEY_FILE", path);
        return Policy::from_environment();
    };
    constexpr std::array all{Authentication::None, Authentication::HostKey, Authentication::SharedKey};
    for (const Authentication client : all)
        for (const Authentication server : all) {
            CAPTURE(static_cast<int>(client), static_cast<int>(server));
            auto one = policy(client);
            auto other = policy(server);
            REQUIRE((one.ok() && other.ok()));
            auto challenge = other->challenge();
            REQUIRE(challenge.ok());
            const Status status = one->accepts(*challenge);
            CHECK(status.ok() == (client == server));
            if (client != server) {
                CHECK(status.code() == Code::PermissionDenied);
                CHECK(std::strstr(status.where(), "VIADUCT_OFI_") != nullptr);
                continue;
            }
            auto signer = one->authenticator(challenge->nonce, nonce_from(5));
            auto verifier = other->authenticator(challenge->nonce, nonce_from(5));
            REQUIRE((signer.ok() && verifier.ok()));
            CHECK(received(*signer, *verifier, control::NoListener{}).ok());
            CHECK(received(Authenticator(), *verifier, control::NoListener{}).ok() == (client == Authentication::None));
            CHECK(std::strstr(other->advice(), "VIADUCT_OFI_") != nullptr);
        }
}

TEST_CASE("ofi authentication: no two challenges are the same") {
    const Variable insecure("VIADUCT_OFI_INSECURE", "1");
    auto policy = Policy::from_environment();
    REQUIRE(policy.ok());
    CHECK(policy->challenge()->nonce != policy->challenge()->nonce);
}

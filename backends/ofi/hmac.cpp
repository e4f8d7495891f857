// SPDX-License-Identifier: BSD-3-Clause
#include "backends/ofi/hmac.hpp"

#include <dlfcn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/opensslv.h>
#include <openssl/params.h>

#include <array>
#include <memory>

#include "core/log.hpp"

#define VIADUCT_TEXT_OF(macro) VIADUCT_TEXT(macro)
#define VIADUCT_TEXT(text) #text

namespace viaduct::ofi {
namespace {

constexpr const char* library_name = "libcrypto.so." VIADUCT_TEXT_OF(OPENSSL_SHLIB_VERSION);

class Crypto {
public:
    Crypto() noexcept {
        void* const library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) {
            log(LogLevel::Error, "ofi: cannot authenticate peers: %s", dlerror());
            return;
        }
        const bool found = find(library, "OPENSSL_init_crypto", init_crypto) &&
                           find(library, "OSSL_LIB_CTX_new", new_library_context) &&
                           find(library, "OSSL_PARAM_construct_utf8_string", text_parameter) &&
                           find(library, "OSSL_PARAM_construct_end", last_parameter) &&
                           find(library, "EVP_MAC_fetch", fetch) && find(library, "EVP_MAC_CTX_new", new_context) &&
                           find(library, "EVP_MAC_CTX_free", free_context) && find(library, "EVP_MAC_init", init) &&
                           find(library, "EVP_MAC_update", update) && find(library, "EVP_MAC_final", final);
        // Without a handler at exit, which would take away what other threads use. The context of our own keeps
        // settings for the program's use of OpenSSL out of ours.
        if (found && init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr) == 1) {
            OSSL_LIB_CTX* const context = new_library_context();
            if (context != nullptr) hmac = fetch(context, "HMAC", nullptr);
        }
        if (hmac == nullptr) log(LogLevel::Error, "ofi: cannot authenticate peers: %s has no HMAC", library_name);
    }

    static const Crypto& get() noexcept {
        static const Crypto crypto;
        return crypto;
    }

    EVP_MAC* hmac = nullptr;  ///< null: there is no usable libcrypto
    decltype(&OPENSSL_init_crypto) init_crypto = nullptr;
    decltype(&OSSL_LIB_CTX_new) new_library_context = nullptr;
    decltype(&OSSL_PARAM_construct_utf8_string) text_parameter = nullptr;
    decltype(&OSSL_PARAM_construct_end) last_parameter = nullptr;
    decltype(&EVP_MAC_fetch) fetch = nullptr;
    decltype(&EVP_MAC_CTX_new) new_context = nullptr;
    decltype(&EVP_MAC_CTX_free) free_context = nullptr;
    decltype(&EVP_MAC_init) init = nullptr;
    decltype(&EVP_MAC_update) update = nullptr;
    decltype(&EVP_MAC_final) final = nullptr;

private:
    template <class Function>
    static bool find(void* library, const char* name, Function& function) noexcept {
        function = reinterpret_cast<Function>(dlsym(library, name));
        return function != nullptr;
    }
};

}  // namespace

Status load_crypto() noexcept {
    if (Crypto::get().hmac == nullptr) return {Code::Unsupported, "there is no usable libcrypto"};
    return {};
}

Result<control::Mac> hmac_sha256(std::span<const std::byte> key,
                                 std::initializer_list<std::span<const std::byte>> parts) noexcept {
    if (const Status status = load_crypto(); !status.ok()) return status;
    const auto bytes = [](std::span<const std::byte> part) {
        return reinterpret_cast<const unsigned char*>(part.data());
    };
    const Crypto& crypto = Crypto::get();
    const std::unique_ptr<EVP_MAC_CTX, decltype(crypto.free_context)> context(crypto.new_context(crypto.hmac),
                                                                              crypto.free_context);
    std::array<char, 7> digest{"SHA256"};
    const std::array parameters{crypto.text_parameter(OSSL_MAC_PARAM_DIGEST, digest.data(), 0),
                                crypto.last_parameter()};
    bool done = context != nullptr && crypto.init(context.get(), bytes(key), key.size(), parameters.data()) == 1;
    for (const auto part : parts) done = done && crypto.update(context.get(), bytes(part), part.size()) == 1;
    control::Mac mac{};
    std::size_t size = 0;
    done = done && crypto.final(context.get(), reinterpret_cast<unsigned char*>(mac.data()), &size, mac.size()) == 1 &&
           size == mac.size();
    if (!done) return Status(Code::NoResources, "libcrypto cannot compute a MAC");
    return mac;
}

bool equal_in_constant_time(std::span<const std::byte> one, std::span<const std::byte> other) noexcept {
    if (one.size() != other.size()) return false;
    volatile unsigned char difference = 0;  // volatile: the compiler must not end the loop early
    for (std::size_t i = 0; i < one.size(); ++i)
        difference = difference | std::to_integer<unsigned char>(one[i] ^ other[i]);
    return difference == 0;
}

}  // namespace viaduct::ofi

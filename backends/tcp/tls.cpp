// SPDX-License-Identifier: BSD-3-Clause
#include "backends/tcp/tls.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/opensslv.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>

#include "backends/support/shared_library.hpp"
#include "core/base/fork.hpp"
#include "core/base/unique_fd.hpp"
#include "core/log.hpp"

#define VIADUCT_TEXT_OF(macro) VIADUCT_TEXT(macro)
#define VIADUCT_TEXT(text) #text

// The functions of OpenSSL that are used here.
// clang-format off
#define VIADUCT_OPENSSL(DO) \
    DO(BIO_clear_flags) DO(BIO_get_data) DO(BIO_meth_new) \
    DO(BIO_meth_set_ctrl) DO(BIO_meth_set_read) DO(BIO_meth_set_write) \
    DO(BIO_new) DO(BIO_set_data) DO(BIO_set_flags) \
    DO(BIO_set_init) DO(ERR_clear_error) DO(ERR_peek_error) \
    DO(ERR_reason_error_string) DO(EVP_Digest) DO(EVP_sha256) DO(OPENSSL_init_ssl) \
    DO(OPENSSL_thread_stop) DO(ERR_get_error) DO(OSSL_LIB_CTX_free) DO(OSSL_LIB_CTX_new) DO(SSL_CIPHER_find) \
    DO(SSL_CTX_ctrl) DO(SSL_CTX_free) DO(SSL_CTX_load_verify_file) \
    DO(SSL_CTX_new_ex) DO(SSL_CTX_set_alpn_select_cb) DO(SSL_CTX_set_ciphersuites) \
    DO(SSL_CTX_set_default_passwd_cb) DO(SSL_CTX_set_default_passwd_cb_userdata) DO(SSL_CTX_set_info_callback) \
    DO(SSL_CTX_set_num_tickets) DO(SSL_CTX_set_psk_find_session_callback) DO(SSL_CTX_set_psk_use_session_callback) \
    DO(SSL_set_session_id_context) DO(SSL_CTX_set_verify) DO(SSL_CTX_use_PrivateKey_file) \
    DO(SSL_CTX_use_certificate_chain_file) DO(SSL_SESSION_free) DO(SSL_SESSION_new) \
    DO(SSL_SESSION_set1_master_key) DO(SSL_SESSION_set_cipher) DO(SSL_SESSION_set_protocol_version) \
    DO(SSL_do_handshake) DO(SSL_free) DO(SSL_get0_alpn_selected) \
    DO(SSL_get_error) DO(SSL_get_ex_data) DO(SSL_has_pending) DO(SSL_key_update) \
    DO(SSL_new) DO(SSL_read) DO(SSL_session_reused) \
    DO(SSL_set_accept_state) DO(SSL_set_alpn_protos) DO(SSL_set_bio) \
    DO(SSL_set_connect_state) DO(SSL_set_ex_data) \
    DO(SSL_set_read_ahead) DO(SSL_write) DO(TLS_method) DO(X509_STORE_CTX_set_error) \
    DO(SSL_CTX_get_cert_store) DO(X509_STORE_set_flags)
// clang-format on

namespace viaduct::tcp {
namespace {

constexpr const char* library_name = "libssl.so." VIADUCT_TEXT_OF(OPENSSL_SHLIB_VERSION);

/// The hash of a pre-shared key is that of the cipher, so that both ciphers have the same.
constexpr const char* ciphers = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";
constexpr std::array<unsigned char, 2> first_cipher{0x13, 0x01};
constexpr std::size_t key_bytes = 32;

/// Separates the keys from other uses of the same file.
constexpr std::string_view key_label = "Viaduct tcp 1 pre-shared key";

/// The application protocols (RFC 7301), which say whether both sides encrypt once hands are shaken.
constexpr std::string_view encrypting = "viaduct/1/encrypted";
constexpr std::string_view authenticating = "viaduct/1/authenticated";

constexpr const char* no_memory = "OpenSSL is out of memory";

/// The first message of a handshake is shorter. OpenSSL would accept, and keep, 128 KiB from anybody.
constexpr std::uint32_t most_in_first_message = 4096;

/// After so many records of one direction comes a new key. AES-GCM needs one before 2^24.5 (RFC 8446, section 5.5).
constexpr std::uint32_t records_of_a_key = 1 << 18;

/// OpenSSL takes three to five steps for a new key of the peer, and accepts any number of keys. A peer of Viaduct sends
/// more data than these with each.
constexpr std::uint32_t free_steps = 64;
constexpr std::uint64_t bytes_of_a_step = 1 << 20;

struct OpenSsl {
#define VIADUCT_MEMBER(NAME) decltype(&::NAME) NAME = nullptr;  // NOLINT(bugprone-macro-parentheses): it is declared
    VIADUCT_OPENSSL(VIADUCT_MEMBER)
#undef VIADUCT_MEMBER
    BIO_METHOD* sockets = nullptr;

    /// Only if it cannot be used.
    ~OpenSsl() {
        if (has_key_) pthread_key_delete(threads_);
    }
    OpenSsl(const OpenSsl&) = delete;
    OpenSsl& operator=(const OpenSsl&) = delete;

    /// Null: it cannot be used, for instance because memory or descriptors have run out.
    static const OpenSsl* load() noexcept {
        const LockGuard lock(mutex_);  // no child inherits a half of it
        if (loaded_ != nullptr) return loaded_;
        std::unique_ptr<OpenSsl> made(new (std::nothrow) OpenSsl);
        if (made != nullptr && made->sockets != nullptr) loaded_ = made.release();
        return loaded_;
    }

    /// Once it has been loaded. A thread calls it before it has a SharedForkHold, which it needs for calls that may
    /// take one of OpenSSL's locks of the whole process, such as that of the engines. Reading and writing after the
    /// handshake take none.
    static const OpenSsl* get() noexcept VIADUCT_UNCHECKED {
        if (pthread_getspecific(loaded_->threads_) == nullptr) loaded_->begin_thread();
        return loaded_;
    }

    /// Calls make(), which makes a context of TLS in a library context, and shakes hands with it if that is new. What
    /// OpenSSL cannot make when a library context first needs it, it never tries to make again; so that one is kept
    /// only if make() has succeeded. Each kind of credentials has its own, because it needs other things.
    template <class Make>
    Result<TlsContext> in_library(Authentication kind, Make make) const {
        const LockGuard lock(mutex_);
        OSSL_LIB_CTX*& kept = libraries_.at(static_cast<std::size_t>(kind));
        std::unique_ptr<OSSL_LIB_CTX, decltype(OSSL_LIB_CTX_free)> fresh(kept == nullptr ? OSSL_LIB_CTX_new() : nullptr,
                                                                         OSSL_LIB_CTX_free);
        OSSL_LIB_CTX* const library = kept != nullptr ? kept : fresh.get();
        if (library == nullptr) return Status(Code::NoResources, no_memory);
        auto made = make(library, fresh != nullptr);
        if (made.ok() && fresh != nullptr) kept = fresh.release();
        return made;
    }

private:
    /// OpenSSL takes a lock of the whole process to make what it keeps of a thread, and to destroy it.
    void begin_thread() const noexcept {
        const SharedForkHold hold;
        ERR_clear_error();
        (void)pthread_setspecific(threads_, thread_mark());  // else OpenSSL destroys it, without the hold
    }
    static void end_thread(void* mark) noexcept VIADUCT_UNCHECKED {
        if (mark != thread_mark()) return;  // that of the parent's thread, with its library context
        // A child that is forked during the wait for the hold gives this thread's stack to its next one. The C library
        // clears what is specific to the thread only if something was set since its destructors have begun.
        (void)pthread_setspecific(loaded_->threads_, mark);
        {
            const SharedForkHold hold;
            loaded_->OPENSSL_thread_stop();
        }
        (void)pthread_setspecific(loaded_->threads_, nullptr);
    }
    static void* thread_mark() noexcept { return reinterpret_cast<void*>(std::uintptr_t{forks()} + 1); }

    OpenSsl() noexcept;

    /// A forked child makes a library context of its own: in that of the parent, other threads may have held locks.
    static void forget_library(void*) noexcept {
        mutex_.assume_held();
        libraries_ = {};
    }

    static long control(BIO*, int command, long, void*) noexcept { return command == BIO_CTRL_FLUSH ? 1 : 0; }

    bool has_key_ = false;
    pthread_key_t threads_{};  // not thread_local: the process would end if there were no memory for its destructor
    static inline constinit ProcessMutex mutex_{forget_library};
    static inline const OpenSsl* loaded_ VIADUCT_GUARDED_BY(mutex_) = nullptr;
    static inline std::array<OSSL_LIB_CTX*, 4> libraries_ VIADUCT_GUARDED_BY(mutex_){};  // by Authentication
};

using Session = std::unique_ptr<SSL_SESSION, decltype(&::SSL_SESSION_free)>;

/// The form in which OpenSSL takes a pre-shared key.
SSL_SESSION* session_for(SSL* ssl, const SharedKey& key) noexcept {
    const OpenSsl& openssl = *OpenSsl::get();
    std::array<std::byte, key_label.size() + SharedKey::max_bytes> text;
    const auto end =
        std::ranges::copy(key.bytes(), std::ranges::copy(std::as_bytes(std::span(key_label)), text.begin()).out).out;
    std::array<unsigned char, key_bytes> derived;
    Session session(openssl.SSL_SESSION_new(), openssl.SSL_SESSION_free);
    const bool made =
        session != nullptr &&
        openssl.EVP_Digest(text.data(), static_cast<std::size_t>(end - text.begin()), derived.data(), nullptr,
                           openssl.EVP_sha256(), nullptr) == 1 &&
        openssl.SSL_SESSION_set1_master_key(session.get(), derived.data(), derived.size()) == 1 &&
        openssl.SSL_SESSION_set_cipher(session.get(), openssl.SSL_CIPHER_find(ssl, first_cipher.data())) == 1 &&
        openssl.SSL_SESSION_set_protocol_version(session.get(), TLS1_3_VERSION) == 1;
    explicit_bzero(text.data(), text.size());
    explicit_bzero(derived.data(), derived.size());
    return made ? session.release() : nullptr;
}

}  // namespace

/// What OpenSSL calls.
struct TlsCallbacks {
    // OpenSSL's own functions for sockets would raise SIGPIPE.
    static int transfer(BIO* bio, auto call, int direction) noexcept {
        const OpenSsl& openssl = *OpenSsl::get();
        openssl.BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
        Tls& tls = *static_cast<Tls*>(openssl.BIO_get_data(bio));
        const ssize_t count = call(tls);
        if (count < 0 && (errno == EAGAIN || errno == EINTR))
            openssl.BIO_set_flags(bio, direction | BIO_FLAGS_SHOULD_RETRY);
        else if (count == 0 || (count < 0 && errno != ENOMEM && errno != ENOBUFS))
            tls.ended_ = true;
        return static_cast<int>(count);
    }
    static int receive(BIO* bio, char* to, int size) noexcept {
        const auto call = [&](const Tls& tls) -> ssize_t {
            if (tls.looked_ && !tls.has_too_many_keys()) return recv(tls.fd_, to, static_cast<std::size_t>(size), 0);
            errno = tls.looked_ ? EPROTO : EAGAIN;  // see look_at_first_bytes()
            return -1;
        };
        return transfer(bio, call, BIO_FLAGS_READ);
    }
    static int send(BIO* bio, const char* from, int size) noexcept {
        const auto call = [&](const Tls& tls) {
            return ::send(tls.fd_, from, static_cast<std::size_t>(size), MSG_NOSIGNAL);
        };
        return transfer(bio, call, BIO_FLAGS_WRITE);
    }

    static Tls& of(const SSL* ssl) noexcept { return *static_cast<Tls*>(OpenSsl::get()->SSL_get_ex_data(ssl, 0)); }

    static void on_state(const SSL* ssl, int where, int value) noexcept {
        if (where == SSL_CB_WRITE_ALERT && (value & UINT8_MAX) == SSL_AD_INTERNAL_ERROR) of(ssl).failed_ = true;
        if ((where & SSL_CB_LOOP) != 0) ++of(ssl).steps_;
    }

    static int use_key(SSL* ssl, const EVP_MD*, const unsigned char** identity, std::size_t* size,
                       SSL_SESSION** session) noexcept {
        Tls& tls = of(ssl);
        const std::string_view name = tls.policy_.identity();
        if (!tls.find_session(session)) return 0;
        *identity = reinterpret_cast<const unsigned char*>(name.data());
        *size = name.size();
        return 1;
    }

    static int find_key(SSL* ssl, const unsigned char* identity, std::size_t size, SSL_SESSION** session) noexcept {
        Tls& tls = of(ssl);
        *session = nullptr;
        if (std::string_view(reinterpret_cast<const char*>(identity), size) != tls.policy_.identity()) {
            tls.refusal_ = {Code::PermissionDenied, tls.policy_.advice_for_another_kind()};
            return 1;
        }
        return tls.find_session(session) ? 1 : 0;
    }

    /// A side without certificates accepts none, and tells the peer that it has another kind of credentials, as a side
    /// that has no certificate for the peer does.
    static int refuse_certificate(int, X509_STORE_CTX* context) noexcept {
        OpenSsl::get()->X509_STORE_CTX_set_error(context, X509_V_ERR_APPLICATION_VERIFICATION);  // handshake_failure
        return 0;
    }

    static int choose_protocol(SSL* ssl, const unsigned char** chosen, unsigned char* size,
                               const unsigned char* offered, unsigned offered_size, void*) noexcept {
        Tls& tls = of(ssl);
        const std::string_view list(reinterpret_cast<const char*>(offered), offered_size);
        for (std::size_t at = 0; at < list.size(); at += 1 + static_cast<unsigned char>(list[at])) {
            const std::string_view name = list.substr(at + 1, static_cast<unsigned char>(list[at]));
            if (name != encrypting && (name != authenticating || tls.encrypts_)) continue;
            tls.encrypts_ = name == encrypting;
            *chosen = reinterpret_cast<const unsigned char*>(name.data());
            *size = static_cast<unsigned char>(name.size());
            return SSL_TLSEXT_ERR_OK;
        }
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
};

namespace {

OpenSsl::OpenSsl() noexcept {
    // Before OpenSSL has a key of its own, unless the program uses OpenSSL, too: the C library calls the
    // destructors in this order.
    has_key_ = pthread_key_create(&threads_, end_thread) == 0;
    support::SharedLibrary library(library_name);
#define VIADUCT_FIND(NAME) library.find(NAME, #NAME);
    VIADUCT_OPENSSL(VIADUCT_FIND)
#undef VIADUCT_FIND
    if (library.error() != nullptr) {
        log(LogLevel::Error, "tcp: cannot authenticate peers: %s", library.error());
        return;
    }
    // Without a handler at exit, which would take away what other threads use. The context of our own keeps
    // settings for the program's use of OpenSSL out of ours.
    if (has_key_ && OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr) == 1) sockets = BIO_meth_new(BIO_TYPE_SOCKET, "");
    if (sockets != nullptr) {
        BIO_meth_set_read(sockets, TlsCallbacks::receive);
        BIO_meth_set_write(sockets, TlsCallbacks::send);
        BIO_meth_set_ctrl(sockets, control);
    } else {
        log(LogLevel::Error, "tcp: cannot authenticate peers: %s lacks what is needed", library_name);
    }
}

/// OpenSSL has no text for an error of the system.
const char* text_of(unsigned long error) noexcept {
    if (ERR_SYSTEM_ERROR(error)) return std::strerror(ERR_GET_REASON(error));
    const char* const text = OpenSsl::get()->ERR_reason_error_string(error);
    return text != nullptr ? text : "unknown error";
}

Result<TlsContext> make_context(OSSL_LIB_CTX* library, const Policy& policy) {
    const OpenSsl& openssl = *OpenSsl::get();
    openssl.ERR_clear_error();
    const auto free = [](SSL_CTX* context) {
        const OpenSsl& openssl = *OpenSsl::get();
        const SharedForkHold hold;
        openssl.SSL_CTX_free(context);
    };
    const TlsContext context(openssl.SSL_CTX_new_ex(library, nullptr, openssl.TLS_method()), free);
    if (context == nullptr) return Status(Code::NoResources, no_memory);
    SSL_CTX* const raw = context.get();
    openssl.SSL_CTX_ctrl(raw, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION, nullptr);
    openssl.SSL_CTX_ctrl(raw, SSL_CTRL_MODE, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER,
                         nullptr);
    openssl.SSL_CTX_ctrl(raw, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, nullptr);
    if (openssl.SSL_CTX_set_ciphersuites(raw, ciphers) != 1) return Status(Code::NoResources, no_memory);
    openssl.SSL_CTX_set_num_tickets(raw, 0);  // nothing follows the handshake
    openssl.SSL_CTX_set_alpn_select_cb(raw, TlsCallbacks::choose_protocol, nullptr);
    openssl.SSL_CTX_set_info_callback(raw, TlsCallbacks::on_state);
    openssl.SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                               policy.certificate() != nullptr ? nullptr : TlsCallbacks::refuse_certificate);
    if (const Certificate* const certificate = policy.certificate()) {
        bool needs_password = false;  // for which OpenSSL would ask on the terminal
        openssl.SSL_CTX_set_default_passwd_cb_userdata(raw, &needs_password);
        openssl.SSL_CTX_set_default_passwd_cb(raw, [](char*, int, int, void* needed) {
            *static_cast<bool*>(needed) = true;
            return -1;
        });
        const char* const chain = certificate->chain.c_str();
        const char* const key = certificate->key.c_str();
        const char* const authority = certificate->authority.c_str();
        const char* const unusable = openssl.SSL_CTX_use_certificate_chain_file(raw, chain) != 1            ? chain
                                     : openssl.SSL_CTX_use_PrivateKey_file(raw, key, SSL_FILETYPE_PEM) != 1 ? key
                                     : openssl.SSL_CTX_load_verify_file(raw, authority) != 1                ? authority
                                                                                                            : nullptr;
        openssl.SSL_CTX_set_default_passwd_cb_userdata(raw, nullptr);
        // The authority is trusted as it is: another one need not have signed it.
        openssl.X509_STORE_set_flags(openssl.SSL_CTX_get_cert_store(raw), X509_V_FLAG_PARTIAL_CHAIN);
        if (unusable == nullptr) return context;
        log(LogLevel::Error, "tcp: cannot use %s: %s", unusable,
            needs_password ? "the key is encrypted" : text_of(openssl.ERR_peek_error()));
        return Status(Code::PermissionDenied, "the certificate cannot be used");
    }
    openssl.SSL_CTX_set_psk_use_session_callback(raw, TlsCallbacks::use_key);
    openssl.SSL_CTX_set_psk_find_session_callback(raw, TlsCallbacks::find_key);
    return context;
}

/// Shakes hands with itself. That the certificate of this side is not valid, for instance, is not said here, but where
/// a peer does not accept it.
Status rehearse(const TlsContext& context, const Policy& policy) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0)
        return Status::from_errno(errno, "socketpair");
    const UniqueFd near(ends[0]);
    const UniqueFd far(ends[1]);
    const auto client = Tls::start(context, policy, near.get(), Role::Client, true);
    if (!client.ok()) return client.status();
    const auto server = Tls::start(context, policy, far.get(), Role::Server, true);
    if (!server.ok()) return server.status();
    Status at_client(Code::WouldBlock, "");
    Status at_server = at_client;
    constexpr int flights = 3;
    for (int flight = 0; flight < flights; ++flight) {
        if (at_client.code() == Code::WouldBlock) at_client = client.value()->shake_hands();
        if (at_server.code() == Code::WouldBlock) at_server = server.value()->shake_hands();
    }
    for (const Status& status : {at_client, at_server})
        if (status.code() == Code::NoResources) return status;
    const bool ok = at_client.ok() && at_server.ok();
    return ok || policy.certificate() != nullptr || !policy.key().ok() ? Status()
                                                                       : Status(Code::NoResources, no_memory);
}

}  // namespace

Result<TlsContext> make_tls_context(const Policy& policy) {
    if (policy.authentication() == Authentication::None) return TlsContext();
    if (OpenSsl::load() == nullptr) return Status(Code::Unsupported, "there is no usable libssl");
    const auto make = [&](OSSL_LIB_CTX* library, bool is_new) -> Result<TlsContext> {
        auto context = make_context(library, policy);
        if (!context.ok() || !is_new) return context;
        if (const Status status = rehearse(context.value(), policy); !status.ok()) return status;
        return context;
    };
    return OpenSsl::get()->in_library(policy.authentication(), make);
}

namespace {

std::string alpn_list(std::initializer_list<std::string_view> names) {
    std::string list;
    for (const std::string_view name : names) (list += static_cast<char>(name.size())) += name;
    return list;
}

bool is_writable(int fd) noexcept {
    pollfd look{.fd = fd, .events = POLLOUT, .revents = 0};
    return ::poll(&look, 1, 0) == 1 && (look.revents & POLLOUT) != 0;
}

}  // namespace

Result<std::unique_ptr<Tls>> Tls::start(const TlsContext& context, const Policy& policy, int fd, Role role,
                                        bool encrypt) {
    const OpenSsl& openssl = *OpenSsl::get();
    const auto exhausted = [] { return Status(Code::NoResources, no_memory); };
    std::unique_ptr<Tls> tls(new Tls(policy, fd, role, encrypt));
    const SharedForkHold hold;  // released before a failure destroys the object
    openssl.ERR_clear_error();
    tls->ssl_ = openssl.SSL_new(context.get());
    if (tls->ssl_ == nullptr) return exhausted();
    BIO* const bio = openssl.BIO_new(openssl.sockets);
    if (bio == nullptr) return exhausted();
    openssl.BIO_set_data(bio, tls.get());
    openssl.BIO_set_init(bio, 1);
    openssl.SSL_set_bio(tls->ssl_, bio, bio);
    if (openssl.SSL_set_ex_data(tls->ssl_, 0, tls.get()) != 1) return exhausted();
    if (role == Role::Server) {
        // Without it, a server that asks for certificates accepts no pre-shared key; a client must have none.
        openssl.SSL_set_session_id_context(tls->ssl_, reinterpret_cast<const unsigned char*>("viaduct"), 7);
        openssl.SSL_set_accept_state(tls->ssl_);
        return tls;
    }
    const std::string offered = encrypt ? alpn_list({encrypting}) : alpn_list({authenticating, encrypting});
    if (openssl.SSL_set_alpn_protos(tls->ssl_, reinterpret_cast<const unsigned char*>(offered.data()),
                                    static_cast<unsigned>(offered.size())) != 0)
        return exhausted();
    openssl.SSL_set_connect_state(tls->ssl_);
    return tls;
}

Tls::~Tls() {
    if (ssl_ == nullptr) return;
    const OpenSsl& openssl = *OpenSsl::get();
    const SharedForkHold hold;
    openssl.SSL_free(ssl_);
}

/// Makes the session of this side's key, or remembers why there is none.
bool Tls::find_session(SSL_SESSION** session) noexcept {
    const auto key = policy_.key();
    *session = key.ok() ? session_for(ssl_, key.value()) : nullptr;
    if (*session == nullptr) refusal_ = key.ok() ? Status(Code::NoResources, no_memory) : key.status();
    return *session != nullptr;
}

/// Reads nothing. What is not TLS may be a peer that does not authenticate, or one of an earlier version.
Status Tls::look_at_first_bytes() noexcept {
    std::array<char, 12> first{};
    const ssize_t count = recv(fd_, first.data(), first.size(), MSG_PEEK | MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN) return {};  // it has said nothing yet
    if (count < 0 && errno == ENOMEM) return Status::from_errno(errno, "recv");
    if (count < 0) return {Code::Unreachable, "the peer cannot be reached", errno};
    if (count == 0) return {Code::Unreachable, "the peer has closed the socket"};
    looked_ = true;
    constexpr char handshake = 22;
    constexpr char alert = 21;
    constexpr char fatal = 2;
    constexpr ssize_t headers = 9;  // of the record, and of the message: its kind and its length
    if (first[0] == alert && first[5] == fatal) return {};
    if (first[0] == handshake) {
        const auto number = [&first](std::size_t at, std::size_t bytes) {
            std::uint32_t value = 0;
            for (const std::size_t end = at + bytes; at < end; ++at)
                value = value << 8 | static_cast<unsigned char>(first.at(at));
            return value;
        };
        if (count < headers || number(3, 2) < 4 || number(6, 3) > most_in_first_message)
            return {Code::InvalidParameter, "the first message of the peer is too long, or cut into pieces"};
        return {};
    }
    if (std::string_view(first.data() + 8, 4) == "VIDO")
        return {Code::Unsupported, "the peer is Viaduct 0.1, whose protocol is another one"};
    const auto is_zero = [](char byte) { return byte == 0; };
    if (count == static_cast<ssize_t>(first.size()) &&
        std::all_of(first.begin(), first.begin() + 8, is_zero))  // a Hello
        return {Code::PermissionDenied, "the peer does not authenticate: set VIADUCT_TCP_INSECURE on both or none"};
    return {Code::InvalidParameter, "the peer does not speak the protocol of Viaduct"};
}

Status Tls::shake_hands() noexcept {
    const OpenSsl& openssl = *OpenSsl::get();
    if (!looked_)
        if (const Status status = look_at_first_bytes(); !status.ok()) return status;
    const SharedForkHold hold;
    wants_to_write_ = false;
    openssl.ERR_clear_error();
    if (const int done = openssl.SSL_do_handshake(ssl_); done != 1) {
        switch (openssl.SSL_get_error(ssl_, done)) {
            case SSL_ERROR_WANT_WRITE: wants_to_write_ = true; [[fallthrough]];
            case SSL_ERROR_WANT_READ: return {Code::WouldBlock, "the handshake goes on"};
            case SSL_ERROR_ZERO_RETURN: ended_ = true; [[fallthrough]];  // the peer said so
            default: return why_failed();
        }
    }
    if (policy_.certificate() == nullptr && openssl.SSL_session_reused(ssl_) != 1)
        return {Code::PermissionDenied, policy_.advice()};
    const unsigned char* name = nullptr;
    unsigned size = 0;
    openssl.SSL_get0_alpn_selected(ssl_, &name, &size);
    const std::string_view chosen(reinterpret_cast<const char*>(name), size);
    if (chosen != encrypting && (chosen != authenticating || (role_ == Role::Client && encrypts_)))
        return {Code::Unsupported, "the peer speaks another version of the protocol"};
    encrypts_ = chosen == encrypting;
    steps_ = 0;
    if (!encrypts_) return {};  // what follows is not for OpenSSL
    openssl.SSL_set_read_ahead(ssl_, 1);
    return {};
}

Status Tls::failure() noexcept {
    (void)OpenSsl::get();
    const SharedForkHold hold;
    return why_failed();
}

Status Tls::why_failed() noexcept {
    const OpenSsl& openssl = *OpenSsl::get();
    unsigned long error = 0;
    bool failed = failed_;  // OpenSSL itself, for instance without memory
    while (const unsigned long next = openssl.ERR_get_error()) {
        error = next;
        failed = failed || ERR_GET_LIB(error) != ERR_LIB_SSL || ERR_COMMON_ERROR(error);
    }
    if (error == 0 && ended_) return {Code::Unreachable, "the peer has closed the socket during the handshake"};
    failed = failed || error == 0;  // without memory, OpenSSL may keep no error
    const char* const text = openssl.ERR_reason_error_string(error);
    log(LogLevel::Debug, "tcp: handshake: %s", text_of(error));
    if (!refusal_.ok()) return refusal_;
    if (failed && ERR_GET_REASON(error) != SSL_R_CERTIFICATE_VERIFY_FAILED)
        return {Code::NoResources, text != nullptr ? text : no_memory};
    constexpr int alert = 1000;  // added by OpenSSL to the numbers of alerts
    switch (ERR_GET_REASON(error)) {
        case alert + 40:   // handshake_failure: the peer does not know this kind of credentials
        case alert + 116:  // certificate_required
        case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:  // of the certificate that this side does not have
            return {Code::PermissionDenied, policy_.advice_for_another_kind()};
        case alert + 47:  // illegal_parameter: the peer has verified the key
        case alert + 51:  // decrypt_error
        case SSL_R_BINDER_DOES_NOT_VERIFY: return {Code::PermissionDenied, policy_.advice()};
        case alert + 80:
            return {Code::Unreachable, "the peer cannot authenticate now, for instance because it is out of memory"};
        case alert + 45: return {Code::PermissionDenied, "the certificate of this side has expired"};
        case alert + 48: return {Code::PermissionDenied, "the peer does not know the authority of this certificate"};
        case alert + 70:
        case alert + 120:
        case SSL_R_NO_APPLICATION_PROTOCOL:
            return {Code::Unsupported, "the peer speaks another version of the protocol"};
        case SSL_R_CERTIFICATE_VERIFY_FAILED:
            if (policy_.certificate() == nullptr) return {Code::PermissionDenied, policy_.advice_for_another_kind()};
            return {Code::PermissionDenied, "the certificate of the peer is not valid, or of another authority"};
        default: return {Code::PermissionDenied, text != nullptr ? text : "the handshake failed"};
    }
}

std::ptrdiff_t Tls::result(int done) noexcept {
    if (done > 0) return done;
    switch (OpenSsl::get()->SSL_get_error(ssl_, done)) {
        case SSL_ERROR_WANT_READ:
        case SSL_ERROR_WANT_WRITE: errno = EAGAIN; return -1;
        case SSL_ERROR_ZERO_RETURN: return 0;
        case SSL_ERROR_SYSCALL:
            if (errno == 0) return 0;
            return -1;
        default: errno = EBADMSG; return -1;  // somebody has changed what was sent
    }
}

bool Tls::has_too_many_keys() const noexcept { return steps_ > free_steps + transferred_ / bytes_of_a_step; }

std::ptrdiff_t Tls::read(std::span<std::byte> to) noexcept {
    const OpenSsl& openssl = *OpenSsl::get();
    openssl.ERR_clear_error();
    errno = 0;
    const std::ptrdiff_t count = result(openssl.SSL_read(ssl_, to.data(), static_cast<int>(to.size())));
    if (count > 0) transferred_ += static_cast<std::uint64_t>(count);
    return count;
}

bool Tls::has_more() const noexcept { return OpenSsl::get()->SSL_has_pending(ssl_) == 1; }

std::ptrdiff_t Tls::write(std::span<const std::byte> from) noexcept {
    const OpenSsl& openssl = *OpenSsl::get();
    const bool is_next = !std::exchange(must_repeat_, false);
    // Until the message about a new key has been sent, nothing is read: it begins only if there is room for it.
    if (is_next && records_ >= records_of_a_key && is_writable(fd_) &&
        openssl.SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED) == 1)
        records_ = 0;
    openssl.ERR_clear_error();
    errno = 0;
    const int done = openssl.SSL_write(ssl_, from.data(), static_cast<int>(from.size()));
    if (done <= 0 && openssl.SSL_get_error(ssl_, done) == SSL_ERROR_WANT_READ) {
        errno = EPROTO;  // the peer has begun a message about keys, and not ended it
        return -1;
    }
    const std::ptrdiff_t written = result(done);
    must_repeat_ = written < 0;
    if (written <= 0) return written;
    records_ += 1 + static_cast<std::uint32_t>(written / SSL3_RT_MAX_PLAIN_LENGTH);
    transferred_ += static_cast<std::uint64_t>(written);
    return written;
}

}  // namespace viaduct::tcp

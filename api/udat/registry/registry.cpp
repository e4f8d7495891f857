// SPDX-License-Identifier: BSD-3-Clause
#include "api/udat/registry/registry.hpp"

#include <dlfcn.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <filesystem>
#include <system_error>

#include "core/base/unique_fd.hpp"
#include "core/log.hpp"

namespace viaduct::dat {
namespace {

const Offer& offer_of_entry(const Entry& entry) noexcept { return entry.offer; }
const Offer& offer_of_registered(const std::shared_ptr<const Registered>& each) noexcept { return each->offer; }

Offer offer_of(const DAT_PROVIDER_INFO& info) {
    const std::string_view name(info.ia_name, sizeof info.ia_name - 1);
    return {std::string(name.substr(0, name.find('\0'))), info.dapl_version_major, info.dapl_version_minor,
            info.is_thread_safe != DAT_FALSE};
}

/// Returns the most severe mismatch between an offer and the requirements, or DAT_NO_SUBTYPE. A later minor version is
/// acceptable (dat_registry_list_providers), and a thread-safe provider is acceptable for a program that does not
/// require it.
DAT_RETURN_SUBTYPE lacking(const Offer& offer, const Offer& wanted) noexcept {
    if (offer.ia_name != wanted.ia_name) return DAT_NAME_NOT_REGISTERED;
    if (offer.major != wanted.major) return DAT_MAJOR_NOT_FOUND;
    if (offer.minor < wanted.minor) return DAT_MINOR_NOT_FOUND;
    if (wanted.thread_safe && !offer.thread_safe) return DAT_THREAD_SAFETY_NOT_FOUND;
    return DAT_NO_SUBTYPE;
}

/// Returns the acceptable offers: exact matches first, otherwise in their order. `offer` converts an element to an
/// Offer.
template <class T>
std::vector<T> serving(const std::vector<T>& offers, const Offer& wanted, auto offer) {
    std::vector<T> found;
    std::ranges::copy_if(offers, std::back_inserter(found),
                         [&](const T& each) { return lacking(offer(each), wanted) == DAT_NO_SUBTYPE; });
    std::ranges::stable_sort(found, {}, [&](const T& each) {
        const Offer& it = offer(each);
        return std::pair(it.minor, it.thread_safe != wanted.thread_safe);
    });
    return found;
}

template <class Function>
Function function_of(void* library, const char* name) noexcept {
    return reinterpret_cast<Function>(dlsym(library, name));
}

/// A library without a directory in its name is first searched in the directory of this library, whatever the program's
/// search path.
void* open_library(const std::string& name) {
    Dl_info own{};
    if (name.find('/') == std::string::npos && dladdr(reinterpret_cast<void*>(&open_library), &own) != 0) {
        const auto beside = std::filesystem::path(own.dli_fname).parent_path() / name;
        if (std::error_code error; std::filesystem::exists(beside, error)) return dlopen(beside.c_str(), RTLD_NOW);
    }
    return dlopen(name.c_str(), RTLD_NOW);
}

/// The library whose dat_provider_init() this thread is in.
thread_local const LoadedLibrary* initialized = nullptr;

/// Throws std::system_error if no descriptor is left, which dlopen(3) tells only in words.
void require_descriptor() {
    if (const UniqueFd another(eventfd(0, EFD_CLOEXEC)); !another)
        throw std::system_error(errno, std::generic_category());
}

}  // namespace

std::unique_ptr<Library> Library::load(const Entry& entry) {
    void* const library = open_library(entry.library);
    if (library == nullptr) {
        log(LogLevel::Warning, "cannot load the provider of %s: %s", entry.offer.ia_name.c_str(), dlerror());
        require_descriptor();  // the library may exist
        return nullptr;
    }
    const auto init = function_of<DAT_PROVIDER_INIT_FUNC>(library, DAT_PROVIDER_INIT_FUNC_STR);
    if (init == nullptr) {
        log(LogLevel::Warning, "%s, the provider of %s, does not define " DAT_PROVIDER_INIT_FUNC_STR,
            entry.library.c_str(), entry.offer.ia_name.c_str());
        dlclose(library);
        return nullptr;
    }
    std::unique_ptr<Library> loaded(new Library(entry, library));
    log(LogLevel::Info, "loaded %s for %s", entry.library.c_str(), entry.offer.ia_name.c_str());
    init(&loaded->info_, loaded->entry_.ia_params.c_str());
    return loaded;
}

Library::Library(const Entry& entry, void* library) : entry_(entry), info_(info_of(entry.offer)), library_(library) {}

Library::~Library() {
    const auto fini = function_of<DAT_PROVIDER_FINI_FUNC>(library_, DAT_PROVIDER_FINI_FUNC_STR);
    if (fini != nullptr) fini(&info_);
    dlclose(library_);
    log(LogLevel::Info, "unloaded %s for %s", entry_.library.c_str(), entry_.offer.ia_name.c_str());
}

Provider::~Provider() {
    if (library_ == nullptr) return;
    registered_.reset();  // first: a provider in use cannot be removed
    Registry::instance().release(*library_);
}

Registry& Registry::instance() {
    static auto& registry = *new Registry;
    return registry;
}

Registry::Registry() : entries_(read_conf()) {}

/// The threads that load or unload a library, and those that wait for them, are those of the parent.
void Registry::renew(void* registry) noexcept {
    auto& own = *static_cast<Registry*>(registry);
    own.mutex_.assume_held();
    for (LoadedLibrary& library : own.libraries_) library.changer = {};
}

DAT_RETURN Registry::add(const DAT_PROVIDER* table, const DAT_PROVIDER_INFO& info) {
    auto added = std::make_shared<const Registered>(Registered{offer_of(info), table, initialized});
    const LockGuard lock(mutex_);
    if (std::ranges::find(registered_, added->offer, offer_of_registered) != registered_.end())
        return failed(error(DAT_PROVIDER_ALREADY_REGISTERED), info.ia_name);
    registered_.push_back(std::move(added));
    return DAT_SUCCESS;
}

DAT_RETURN Registry::remove(const DAT_PROVIDER_INFO& info) {
    const LockGuard lock(mutex_);
    const auto found = std::ranges::find(registered_, offer_of(info), offer_of_registered);
    if (found == registered_.end()) return failed(error(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED), info.ia_name);
    if (found->use_count() > 1) return failed(error(DAT_PROVIDER_IN_USE), "an adapter of the provider is open");
    registered_.erase(found);
    return DAT_SUCCESS;
}

/// The file decides about the order. Of equal lines, which differ in their libraries, the first one counts.
std::vector<Offer> Registry::offers() const {
    std::vector<Offer> offers;
    for (const Entry& entry : entries_)
        if (std::ranges::find(offers, entry.offer) == offers.end()) offers.push_back(entry.offer);
    for (Entry& entry : built_in_entries()) {
        const auto has_its_name = [&](const Entry& line) { return line.offer.ia_name == entry.offer.ia_name; };
        if (std::ranges::none_of(entries_, has_its_name)) offers.push_back(std::move(entry.offer));
    }
    return offers;
}

/// Returns the lines of dat.conf with that name, or a built-in entry if there are none.
std::vector<Entry> Registry::entries_for(const std::string& ia_name) const {
    std::vector<Entry> entries;
    std::ranges::copy_if(entries_, std::back_inserter(entries),
                         [&](const Entry& entry) { return entry.offer.ia_name == ia_name; });
    return entries.empty() ? built_in_entries(ia_name) : entries;
}

DAT_RETURN Registry::open(const Offer& wanted, Provider& provider) {
    const auto entries = entries_for(wanted.ia_name);
    for (const Entry& entry : serving(entries, wanted, offer_of_entry)) {
        LoadedLibrary* const library = load(entry);
        if (library == nullptr) continue;
        provider = Provider(library, nullptr);
        provider.registered_ = find(wanted, library);
        if (provider) return DAT_SUCCESS;
    }
    provider = Provider(nullptr, find(wanted, nullptr));
    if (provider) return DAT_SUCCESS;
    const DAT_RETURN_SUBTYPE lacking = lacking_everywhere(entries, wanted);
    return failed(error(DAT_PROVIDER_NOT_FOUND, lacking), describe(lacking, wanted, !entries.empty()));
}

/// Says why there is no provider. `known`: an entry has this name.
const char* Registry::describe(DAT_RETURN_SUBTYPE lacking, const Offer& wanted, bool known) const {
    const char* const name = wanted.ia_name.c_str();
    if (lacking == DAT_THREAD_SAFETY_NOT_FOUND) return explain("the provider of %s is not thread-safe", name);
    if (lacking != DAT_NAME_NOT_REGISTERED && wanted.major == 1) {
        const char* const reason = explain(
            "the program was built with <dat/udat.h>, the headers of DAT 1.%u, and linked with libdat2.so.2, the "
            "library of DAT 2.0: link it with -ldat",
            wanted.minor);
        log(LogLevel::Warning, "dat_ia_open: %s", reason);
        return reason;
    }
    if (lacking != DAT_NAME_NOT_REGISTERED)
        return explain("%s has no provider of version %u.%u", name, wanted.major, wanted.minor);
    if (known) return explain("the provider of %s cannot be loaded", name);
    std::string names;  // those of the file last: a distribution's may fill the text
    const auto add = [&names](const Entry& entry) { names += (names.empty() ? "" : ", ") + entry.offer.ia_name; };
    std::ranges::for_each(built_in_entries(), add);
    std::ranges::for_each(entries_, add);
    return explain("no adapter %s, there are %s", name, names.c_str());
}

/// Null: it cannot be loaded.
LoadedLibrary* Registry::load(const Entry& entry) {
    const std::thread::id self = std::this_thread::get_id();
    UniqueLock lock(mutex_);
    auto found = std::ranges::find(libraries_, entry, &LoadedLibrary::entry);
    if (found == libraries_.end()) found = libraries_.insert(found, {.entry = entry});
    LoadedLibrary& wanted = *found;
    if (wanted.changer == self) return nullptr;  // asked for by its own dat_provider_init()
    while (wanted.changer != std::thread::id()) {
        const std::uint32_t seen = changes_.load();
        lock.unlock();
        changes_.wait(seen);
        lock.lock();
    }
    if (wanted.library == nullptr) {
        wanted.changer = self;
        lock.unlock();
        std::unique_ptr<Library> library;
        std::exception_ptr failure;
        const auto outer = std::exchange(initialized, &wanted);
        try {
            library = Library::load(entry);
        } catch (...) {
            failure = std::current_exception();
        }
        initialized = outer;
        lock.lock();
        wanted.library = std::move(library);
        changed(wanted);
        if (failure != nullptr) std::rethrow_exception(failure);
    }
    if (wanted.library == nullptr) return nullptr;
    ++wanted.users;
    return &wanted;
}

void Registry::release(LoadedLibrary& library) noexcept {
    UniqueLock lock(mutex_);
    if (--library.users != 0) return;
    library.changer = std::this_thread::get_id();
    auto unused = std::move(library.library);
    lock.unlock();
    unused.reset();
    lock.lock();
    changed(library);
}

void Registry::changed(LoadedLibrary& library) noexcept {
    library.changer = {};
    ++changes_;
    changes_.notify_all();
}

std::shared_ptr<const Registered> Registry::find(const Offer& wanted, const LoadedLibrary* library) const {
    const LockGuard lock(mutex_);
    const auto found = serving(registered_, wanted, offer_of_registered);
    const auto first = std::ranges::find(found, library, [](const auto& each) { return each->library; });
    return first == found.end() ? nullptr : *first;
}

/// Returns the mismatch of the best offer. An offer that matches, but whose library cannot be loaded, does not count.
DAT_RETURN_SUBTYPE Registry::lacking_everywhere(const std::vector<Entry>& entries, const Offer& wanted) const {
    DAT_RETURN_SUBTYPE best = DAT_NAME_NOT_REGISTERED;
    const auto consider = [&](const Offer& offer) { best = std::max(best, lacking(offer, wanted)); };
    std::ranges::for_each(entries, consider, offer_of_entry);
    const LockGuard lock(mutex_);
    std::ranges::for_each(registered_, consider, offer_of_registered);
    return best;
}

}  // namespace viaduct::dat

// SPDX-License-Identifier: BSD-3-Clause
#include "api/udat/registry/registry.hpp"

#include <algorithm>

namespace viaduct::dat {
namespace {

const Offer& offer_of_entry(const Entry& entry) noexcept { return entry.offer; }
const Offer& offer_of_registered(const std::shared_ptr<const Registered>& each) noexcept { return each->offer; }

}  // namespace

Provider::~Provider() {
    if (library_ == nullptr) return;
    const std::lock_guard lock(Library::loading);
    registered_.reset();  // first: a provider in use cannot be removed
    library_.reset();
}

Registry& Registry::instance() {
    static auto& registry = *new Registry;
    return registry;
}

Registry::Registry() : entries_(read_conf()) {}

DAT_RETURN Registry::add(const DAT_PROVIDER* table, const DAT_PROVIDER_INFO& info) {
    auto added = std::make_shared<const Registered>(Registered{offer_of(info), table});
    const std::lock_guard lock(mutex_);
    if (std::ranges::find(registered_, added->offer, offer_of_registered) != registered_.end())
        return failed(error(DAT_PROVIDER_ALREADY_REGISTERED), info.ia_name);
    registered_.push_back(std::move(added));
    return DAT_SUCCESS;
}

DAT_RETURN Registry::remove(const DAT_PROVIDER_INFO& info) {
    const std::lock_guard lock(mutex_);
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
    const std::lock_guard lock(Library::loading);
    for (const Entry& entry : serving(entries, wanted, offer_of_entry)) {
        auto library = load(entry);
        if (library == nullptr) continue;
        provider = Provider(std::move(library), find(wanted));
        if (provider) return DAT_SUCCESS;
    }
    provider = Provider(nullptr, find(wanted));  // registered by the program itself
    if (provider) return DAT_SUCCESS;
    const DAT_RETURN_SUBTYPE lacking = lacking_everywhere(entries, wanted);
    return failed(error(DAT_PROVIDER_NOT_FOUND, lacking), describe(lacking, wanted, !entries.empty()));
}

/// Says why there is no provider. `known`: an entry has this name.
const char* Registry::describe(DAT_RETURN_SUBTYPE lacking, const Offer& wanted, bool known) const {
    const char* const name = wanted.ia_name.c_str();
    if (lacking == DAT_THREAD_SAFETY_NOT_FOUND) return explain("the provider of %s is not thread-safe", name);
    if (lacking != DAT_NAME_NOT_REGISTERED)
        return explain("%s has no provider of version %u.%u", name, wanted.major, wanted.minor);
    if (known) return explain("the provider of %s cannot be loaded", name);
    std::string names;  // those of the file last: a distribution's may fill the text
    const auto add = [&names](const Entry& entry) { names += (names.empty() ? "" : ", ") + entry.offer.ia_name; };
    std::ranges::for_each(built_in_entries(), add);
    std::ranges::for_each(entries_, add);
    return explain("no adapter %s, there are %s", name, names.c_str());
}

std::shared_ptr<Library> Registry::load(const Entry& entry) {
    std::erase_if(loaded_, [](const auto& library) { return library.expired(); });
    for (const auto& each : loaded_) {
        auto library = each.lock();
        if (library != nullptr && library->entry() == entry) return library;
    }
    auto library = Library::load(entry);
    if (library != nullptr) loaded_.push_back(library);
    return library;
}

std::shared_ptr<const Registered> Registry::find(const Offer& wanted) const {
    const std::lock_guard lock(mutex_);
    const auto found = serving(registered_, wanted, offer_of_registered);
    return found.empty() ? nullptr : found.front();
}

/// Returns the mismatch of the best offer. An offer that matches, but whose library cannot be loaded, does not count.
DAT_RETURN_SUBTYPE Registry::lacking_everywhere(const std::vector<Entry>& entries, const Offer& wanted) const {
    DAT_RETURN_SUBTYPE best = DAT_NAME_NOT_REGISTERED;
    const auto consider = [&](const Offer& offer) { best = std::max(best, lacking(offer, wanted)); };
    std::ranges::for_each(entries, consider, offer_of_entry);
    const std::lock_guard lock(mutex_);
    std::ranges::for_each(registered_, consider, offer_of_registered);
    return best;
}

}  // namespace viaduct::dat

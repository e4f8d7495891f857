// SPDX-License-Identifier: BSD-3-Clause
#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "api/udat/registry/conf.hpp"
#include "tools/info/info.hpp"

namespace viaduct::info {
namespace {

struct Backend {
    std::string_view name;
    const char* use;
    const char* needs;    ///< to be part of a build
    const char* lacking;  ///< what it means if there is no device
};

constexpr Backend backends[] = {
    {"verbs", "RDMA devices", "libibverbs and librdmacm",
     "no RDMA device has a network interface with an address (ibv_devices, rdma link)"},
    {"loopback", "processes of one user on this host", "nothing", ""},
    {"tcp", "other hosts", "the headers of OpenSSL",
     "no network interface is up and has an address, or VIADUCT_TCP_INTERFACES excludes them all"},
};

/// The device to open for the limits and abilities of a backend: if possible, one that no other host can reach.
std::uint32_t sample(const std::vector<backend::DeviceSummary>& devices) {
    const auto is_internal = [](const backend::DeviceSummary& device) {
        return device.host.size() == 4 && device.host.span()[0] == 127;
    };
    const auto found = std::ranges::find_if(devices, is_internal);
    return found == devices.end() ? 0 : static_cast<std::uint32_t>(found - devices.begin());
}

Json describe_provider(backend::Provider& provider, const char* lacking) {
    Json described;
    const auto devices = provider.devices();
    if (!devices.ok()) return {{"state", "error"}, {"reason", text_of(devices.status())}};
    if (devices.value().empty()) return {{"state", "no device"}, {"reason", lacking}};
    const auto opened = open_device(provider, sample(devices.value()));
    described["state"] = opened.ok() ? "ok" : "error";
    if (!opened.ok()) described["reason"] = text_of(opened.status());
    for (std::size_t number = 0; number < devices.value().size(); ++number) {
        const auto& device = devices.value()[number];
        described["devices"].push_back(
            {{"number", number}, {"name", device.name}, {"host", text_of_host(device.host)}});
    }
    if (!opened.ok()) return described;
    const Json attributes = describe_attributes(opened.value()->attributes());
    described["limits"] = attributes["limits"];
    described["abilities"] = attributes["abilities"];
    return described;
}

Json describe_backends() {
    Json described = Json::array();
    const auto by_default = default_device();
    for (const auto& [name, use, needs, lacking] : backends) {
        Json backend = {{"name", name}, {"use", use}, {"default", false}};
        const auto provider = find_provider(name);
        if (provider.ok()) {
            backend.update(describe_provider(*provider.value(), lacking));
            backend["default"] = by_default.ok() && by_default.value().provider == provider.value();
        } else {
            backend["state"] = "missing";
            backend["reason"] = fmt::format("not part of this build, which needs {} for it", needs);
        }
        described.push_back(std::move(backend));
    }
    return described;
}

/// Why the library of an adapter cannot be loaded; nothing if it can.
std::string why_absent(const std::string& library) {
    void* const handle = dlopen(library.c_str(), RTLD_LAZY);
    if (handle == nullptr) return dlerror();
    dlclose(handle);
    return "";
}

Json describe_adapters() {
    const dat::ConfFile conf = dat::read_conf_file();
    Json adapters = Json::array();
    Json ignored = Json::array();
    for (const auto& [number, entry] : conf.lines) {
        if (!entry.ok())
            ignored.push_back({{"line", number}, {"reason", entry.status().where()}});
        else if (!entry.value().applies)
            ignored.push_back({{"line", number},
                               {"name", entry.value().offer.ia_name},
                               {"reason", "it is for the kernel or marked \"nondefault\""}});
        else
            adapters.push_back({{"name", entry.value().offer.ia_name},
                                {"line", number},
                                {"library", entry.value().library},
                                {"parameters", entry.value().ia_params},
                                {"absent", why_absent(entry.value().library)}});
    }
    for (const dat::Entry& entry : dat::built_in_entries()) {
        const auto has_its_name = [&](const Json& adapter) { return adapter["name"] == entry.offer.ia_name; };
        if (std::ranges::none_of(adapters, has_its_name))
            adapters.push_back({{"name", entry.offer.ia_name},
                                {"library", entry.library},
                                {"parameters", entry.ia_params},
                                {"absent", ""}});
    }
    return {{"file", conf.path},
            {"from_DAT_OVERRIDE", conf.overrides},
            {"readable", conf.readable},
            {"adapters", adapters},
            {"ignored_lines", ignored}};
}

/// The version that a library tells or, if it has no call for that, nothing.
std::string version_of(const std::string& file) {
    for (const std::string_view own : {"libviaduct", "libvipl", "libdat2", "libdaplviaduct"})
        if (file.starts_with(own)) return VIADUCT_VERSION;
    return "";
}

/// The libraries of the APIs and of the backends that this process has loaded.
Json describe_libraries() {
    Json libraries = Json::array();
    const auto add = [](dl_phdr_info* info, std::size_t, void* list) {
        const std::filesystem::path path(info->dlpi_name);
        const std::string file = path.filename();
        for (const std::string_view name :
             {"libviaduct", "libvipl", "libdat2", "libdaplviaduct", "librpma", "libssl", "libibverbs", "librdmacm"}) {
            if (!file.starts_with(std::string(name) + ".so")) continue;
            std::error_code error;
            const std::string real = std::filesystem::canonical(path, error);
            static_cast<Json*>(list)->push_back(
                {{"name", file}, {"version", version_of(file)}, {"path", error ? path.string() : real}});
        }
        return 0;
    };
    dl_iterate_phdr(add, &libraries);
    return libraries;
}

Json describe_settings() {
    Json settings = Json::array();
    for (const Setting& setting : find_settings()) {
        Json described = {{"name", setting.name}, {"value", setting.value}};
        if (!setting.problem.empty()) described["problem"] = setting.problem;
        settings.push_back(std::move(described));
    }
    return settings;
}

void print_backend(const Json& backend) {
    const bool by_default = backend["default"].get<bool>();
    fmt::print("  {:<10}{}{}", text(backend["name"]), text(backend["use"]), by_default ? ", the default" : "");
    if (backend.contains("reason")) fmt::print(": {}: {}", text(backend["state"]), text(backend["reason"]));
    fmt::print("\n");
    if (!backend.contains("devices")) return;
    for (const Json& device : backend["devices"])
        fmt::print("    {:<4}{:<22}{}\n", device["number"].get<unsigned>(), text(device["name"]), text(device["host"]));
    if (!backend.contains("limits")) return;
    const Json& limits = backend["limits"];
    fmt::print("    {} endpoints; queues of {} requests, {} by default; transfers of {} bytes; {} regions\n",
               limits["endpoints"].get<std::uint64_t>(), limits["queue_depth"].get<std::uint64_t>(),
               limits["default_queue_depth"].get<std::uint64_t>(), limits["transfer_bytes"].get<std::uint64_t>(),
               limits["regions"].get<std::uint64_t>());
    std::string lacking;
    for (const auto& [name, value] : backend["abilities"].items())
        if (!value.get<bool>()) lacking += (lacking.empty() ? "" : ", ") + name;
    fmt::print("    abilities: {}\n", lacking.empty() ? "all" : "all except " + lacking);
}

void print_adapters(const Json& conf) {
    fmt::print("\nadapters of DAT ({}{}{})\n", conf["from_DAT_OVERRIDE"].get<bool>() ? "DAT_OVERRIDE: " : "",
               text(conf["file"]), conf["readable"].get<bool>() ? "" : ": not readable");
    for (const Json& adapter : conf["adapters"])
        fmt::print("  {:<24}{} \"{}\"{}{}\n", text(adapter["name"]), text(adapter["library"]),
                   text(adapter["parameters"]),
                   adapter.contains("line") ? fmt::format(", line {}", adapter["line"].get<unsigned>()) : ", built in",
                   text(adapter["absent"]).empty() ? "" : ": cannot be opened: " + text(adapter["absent"]));
    for (const Json& line : conf["ignored_lines"])
        fmt::print("  line {} is ignored: {}\n", line["line"].get<unsigned>(), text(line["reason"]));
}

}  // namespace

Json describe_installation() {
    Json installation = {{"tool", "vi-info"}, {"version", VIADUCT_VERSION}, {"backends", describe_backends()}};
    const Json libraries = describe_libraries();  // before those of adapters are tried
    installation["dat"] = describe_adapters();
    installation["libraries"] = libraries;
    installation["settings"] = describe_settings();
    return installation;
}

void print_installation(const Json& installation) {
    fmt::print("Viaduct {}\n\nbackends, in the order in which they are tried\n", text(installation["version"]));
    for (const Json& backend : installation["backends"]) print_backend(backend);
    print_adapters(installation["dat"]);
    fmt::print("\nlibraries\n");
    for (const Json& library : installation["libraries"])
        fmt::print("  {:<22}{:<8}{}\n", text(library["name"]), text(library["version"]), text(library["path"]));
    fmt::print("\nsettings\n");
    for (const Json& setting : installation["settings"])
        fmt::print("  {}={}{}\n", text(setting["name"]), text(setting["value"]),
                   setting.contains("problem") ? ": " + text(setting["problem"]) : "");
    if (installation["settings"].empty()) fmt::print("  none is set\n");
}

}  // namespace viaduct::info

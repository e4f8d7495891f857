// SPDX-License-Identifier: BSD-3-Clause
// The registry, adapters, and calls that work on any object.
#include <dat2/dat_registry.h>

#include <string>
#include <vector>

#include "structures.hpp"
#include "triplets.hpp"

/// Provided by every registry but declared in no public header: convert between the handle of an IA and the number that
/// consumers have.
extern "C" DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE* other);

namespace viaduct::python::dat {
namespace {

py::list list_providers(DAT_COUNT max_to_return) {
    constexpr DAT_COUNT usual = 64;  // programs that want all ask for many more than there are
    std::vector<DAT_PROVIDER_INFO> infos;
    DAT_COUNT count = 0;
    for (DAT_COUNT room = std::min(max_to_return, usual);; room = room > max_to_return / 2 ? max_to_return : 2 * room) {
        infos.resize(static_cast<std::size_t>(std::max(room, 1)));
        std::vector<DAT_PROVIDER_INFO*> pointers(infos.size());
        std::ranges::transform(infos, pointers.begin(), [](DAT_PROVIDER_INFO& info) { return &info; });
        VIADUCT_DAT_CALL(dat_registry_list_providers, room, &count, pointers.data());
        if (count < room || room >= max_to_return) break;
    }
    py::list providers;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) providers.append(to_dict(infos[i]));
    return providers;
}

py::tuple open(Text name, DAT_COUNT async_evd_min_qlen, Handle async_evd, DAT_UINT32 major, DAT_UINT32 minor,
               bool thread_safety) {
    DAT_EVD_HANDLE evd = to_dat(async_evd);
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    check("dat_ia_openv", unlocked({.used = {async_evd}}, [&] {
              return dat_ia_openv(name.data(), async_evd_min_qlen, &evd, &ia, major, minor,
                                  thread_safety ? DAT_TRUE : DAT_FALSE);
          }));
    return py::make_tuple(to_python(evd), to_python(ia));
}

/// The attributes of a provider have a const member, which the provider fills nevertheless.
struct ProviderAttributes {
    DAT_PROVIDER_ATTR* get() noexcept { return reinterpret_cast<DAT_PROVIDER_ATTR*>(room); }
    alignas(DAT_PROVIDER_ATTR) char room[sizeof(DAT_PROVIDER_ATTR)] = {};
};

py::tuple query(Handle ia, DAT_IA_ATTR_MASK ia_mask, DAT_PROVIDER_ATTR_MASK provider_mask) {
    DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
    DAT_IA_ATTR attributes{};
    ProviderAttributes provider;
    const KeepingCall keeping("dat_ia_query", {.used = {ia}}, [&] {
        return dat_ia_query(to_dat(ia), &async_evd, ia_mask, &attributes, provider_mask, provider.get());
    });
    return py::make_tuple(to_python(async_evd), to_dict(attributes), to_dict(*provider.get()));
}

py::tuple open_query(Text name, DAT_IA_ATTR_MASK ia_mask, DAT_PROVIDER_ATTR_MASK provider_mask) {
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    DAT_IA_ATTR attributes{};
    ProviderAttributes provider;
    // Equivalent to the macro of that name, whose casts are not valid in C++.
    check("dat_ib_open_query", unlocked({}, [&] {
              return dat_extension_op(DAT_HANDLE_NULL, DAT_IB_OPEN_QUERY_OP, name.data(), &ia, ia_mask, &attributes,
                                      provider_mask, provider.get());
          }));
    return py::make_tuple(to_python(ia), to_dict(attributes), to_dict(*provider.get()));
}

/// Closing an adapter also destroys the EVD of its asynchronous events, if that was created with it.
Objects ended_with(Handle ia) {
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    (void)quick({.used = {ia}}, [&] { return dat_ia_query(to_dat(ia), &evd, 0, nullptr, 0, nullptr); });
    return {.ended = {ia, to_python(evd)}};
}

}  // namespace

void add_adapters(py::module_& module) {
    module.def("dat_registry_list_providers", &list_providers);
    module.def("dat_registry_add_provider", [](Handle provider, const py::dict& fields) {
        const DAT_PROVIDER_INFO info = from_dict<DAT_PROVIDER_INFO>(fields);
        VIADUCT_DAT_CALL(dat_registry_add_provider, reinterpret_cast<const DAT_PROVIDER*>(provider), &info);
    });
    module.def("dat_registry_remove_provider", [](Handle provider, const py::dict& fields) {
        const DAT_PROVIDER_INFO info = from_dict<DAT_PROVIDER_INFO>(fields);
        VIADUCT_DAT_CALL(dat_registry_remove_provider, reinterpret_cast<const DAT_PROVIDER*>(provider), &info);
    });
    module.def("dat_registry_providers_related", [](Text name, Text other) {
        DAT_HA_RELATIONSHIP relationship{};
        VIADUCT_DAT_CALL(dat_registry_providers_related, name.data(), other.data(), &relationship);
        return static_cast<int>(relationship);
    });

    module.def("dat_ia_openv", &open);
    module.def("dat_ia_query", &query);
    module.def("dat_ia_close", [](Handle ia, int flags) {
        const auto close = [&] { return dat_ia_close(to_dat(ia), static_cast<DAT_CLOSE_FLAGS>(flags)); };
        check("dat_ia_close", end(ended_with(ia), close));
        forget_agents_of_the_gone();
    });
    module.def("dat_ib_open_query", &open_query);
    module.def("dat_ib_close_query", [](Handle ia) {
        check("dat_ib_close_query", end(ended_with(ia), [&] { return dat_ib_close_query(to_dat(ia)); }));
    });
    def_output(module, "dats_get_ia_handle", &dats_get_ia_handle);

    def_output(module, "dat_get_handle_type", &dat_get_handle_type);
    def_call(module, "dat_set_consumer_context", &dat_set_consumer_context);
    def_output(module, "dat_get_consumer_context", &dat_get_consumer_context);
    def_output<2>(module, "dat_strerror", &dat_strerror);
}

}  // namespace viaduct::python::dat

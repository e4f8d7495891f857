# SPDX-License-Identifier: BSD-3-Clause
"""The registry of adapters and their providers."""
from __future__ import annotations

from viaduct import _dat
from viaduct._arguments import checked
from viaduct.dat.constants import HaRelationship, IaAttrMask, ProviderAttrMask
from viaduct.dat.structures import IaAttr, ProviderAttr, ProviderInfo

DEFAULT_IA = "viaduct-lo"  # on this host, unless VIADUCT_BACKEND or VIADUCT_DEVICE select another


@checked
def registry_list_providers(max_to_return: int | None = None) -> list[ProviderInfo]:
    """Returns the adapters that can be opened, those of dat.conf and Viaduct's own: all, or the first `max_to_return`.
    """
    room = (1 << 31) - 1 if max_to_return is None else max_to_return
    return [ProviderInfo._of(entry) for entry in _dat.dat_registry_list_providers(room)]


@checked
def registry_add_provider(provider: int, info: ProviderInfo) -> None:
    """Registers a provider: the address of its DAT_PROVIDER, which must stay valid until it is removed. Raises
    Error(PROVIDER_ALREADY_REGISTERED)."""
    _dat.dat_registry_add_provider(provider, vars(info))


@checked
def registry_remove_provider(provider: int, info: ProviderInfo) -> None:
    """Removes a provider from the registry. Raises Error: PROVIDER_NOT_FOUND, PROVIDER_IN_USE."""
    _dat.dat_registry_remove_provider(provider, vars(info))


@checked
def registry_providers_related(name: str, other_name: str) -> HaRelationship:
    """Returns whether one adapter can replace another."""
    return HaRelationship(_dat.dat_registry_providers_related(name, other_name))


@checked
def get_ia_handle(ia: int) -> int:
    """Returns the provider's handle of the adapter with this number, or the number of the one with this handle
    (dats_get_ia_handle)."""
    return _dat.dats_get_ia_handle(ia)


@checked
def ib_open_query(name: str = DEFAULT_IA, ia_mask: IaAttrMask = IaAttrMask.ALL,
                  provider_mask: ProviderAttrMask = ProviderAttrMask.ALL) -> tuple[IaAttr, ProviderAttr]:
    """Returns the attributes of an adapter and of its provider, without opening it (dat_ib_open_query,
    dat_ib_close_query). Raises Error(PROVIDER_NOT_FOUND) if there is none of this name."""
    handle, ia_attr, provider_attr = _dat.dat_ib_open_query(name, ia_mask, provider_mask)
    _dat.dat_ib_close_query(handle)
    return IaAttr._of(ia_attr), ProviderAttr._of(provider_attr)

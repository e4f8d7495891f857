# SPDX-License-Identifier: BSD-3-Clause
"""DAT 2.0, the user's Direct Access Programming Library (uDAPL).

A server and a client, each in its own process:

    with dat.ia_open() as ia:
        evd = ia.evd_create(16)                                 # takes all events but software events
        pz = ia.pz_create()
        lmr = ia.lmr_create(bytearray(64), pz)
        ep = ia.ep_create(pz, evd, evd, evd)
        ep.post_recv(lmr[:], cookie=1)
        psp = ia.psp_create(7204, evd)
        evd.wait(timeout=5).cr.accept(ep)
        evd.wait(timeout=5)                                     # CONNECTION_EVENT_ESTABLISHED
        received = evd.wait(timeout=5)
        print(bytes(lmr.view[:received.transfered_length]))

    with dat.ia_open() as ia:
        evd = ia.evd_create(16)
        pz = ia.pz_create()
        lmr = ia.lmr_create(b"hello, receiver", pz)
        ep = ia.ep_create(pz, evd, evd, evd)
        ep.connect("127.0.0.1", 7204, timeout=5)
        evd.wait(timeout=5)
        ep.post_send(lmr[:])
        evd.wait(timeout=5)

A call of the API is a method of the object that is its first argument, without "dat_" and the object in its name:
dat_evd_wait() is Evd.wait(), dat_ep_create() Ia.ep_create(). Structures keep the field names of C. Constants are
members of enumerations: DAT_EP_STATE_CONNECTED is EpState.CONNECTED. help(dat.EpState) lists the members. The
enumerations:

    results         ReturnType, ReturnSubtype
    adapters        Extension, HaLb, HaRelationship, IaCounterType, IovOwnership, PzSupport
    memory          MemPrivFlags, MemType, RmrScope, VaType
    endpoints       CloseFlags, ConnectFlags, EpState, Qos, ServiceType, SrqState
    service points  EpCreatorForPsp, PspFlags
    transfers       CompletionFlags, Dtos, DtoCompletionStatus, IbExtType, IbOp, IbStatus
    events          EventNumber, EvdFlags, EvdState, ProxyType, HandleType, and reasons: EpAsyncErrorReason ...
    queries         which fields to return, for each structure: EpParamMask ...

The module viaduct._dat contains the calls under their C names.

Lengths are in bytes, queues in entries. Calls that fail raise Error, whose `code` is a ReturnType. Every call may
raise INVALID_HANDLE (the object is closed), INVALID_PARAMETER and INSUFFICIENT_RESOURCES.

Calls with a timeout, in seconds, wait: None waits forever, 0 does not wait. The timeout of Ep.connect() is an
exception: that call returns immediately. Calls whose name ends in _async wait without blocking the asyncio loop. All
other calls return without waiting for a peer. Several threads may use an object at the same time; exceptions are
documented.
"""
from viaduct.dat.adapters import EVD_ASYNC_EXISTS, Ia, ia_open
from viaduct.dat.constants import *
from viaduct.dat.dispatchers import Agent, Cno, Evd
from viaduct.dat.endpoints import Ep, Srq
from viaduct.dat.errors import ConnectionFailed, Error, TimeoutError, strerror
from viaduct.dat.events import (AsynchErrorEvent, ConnectionEvent, CrArrivalEvent, DtoCompletionEvent, Event,
                                IbDtoEvent, RmrBindCompletionEvent, SoftwareEvent)
from viaduct.dat.memory import Lmr, Pz, Rmr
from viaduct.dat.objects import DatObject
from viaduct.dat.registry import (DEFAULT_IA, get_ia_handle, ib_open_query, registry_add_provider,
                                  registry_list_providers, registry_providers_related, registry_remove_provider)
from viaduct.dat.service_points import Cr, Csp, Psp, Rsp
from viaduct.dat.structures import (Address, CnoParam, Comm, CrParam, CspParam, EpAttr, EpParam, EvdParam, IaAttr,
                                    LmrParam, LmrTriplet, ProviderAttr, ProviderInfo, PspParam, PzParam, RmrParam,
                                    RmrTriplet, RspParam, SrqParam)
from viaduct.memory import Buffer as Buffer

__all__ = ["Address", "Agent", "AsynchErrorEvent", "Cno", "CnoParam", "Comm", "ConnectionEvent", "ConnectionFailed",
           "Cr", "CrArrivalEvent", "CrParam", "Csp", "CspParam", "DEFAULT_IA", "DatObject", "DtoCompletionEvent",
           "EVD_ASYNC_EXISTS", "Ep", "EpAttr", "EpParam", "Error", "Evd", "EvdParam", "Event", "Ia", "IaAttr",
           "IbDtoEvent", "Lmr", "LmrParam", "LmrTriplet", "ProviderAttr", "ProviderInfo", "Psp", "PspParam", "Pz",
           "PzParam", "Rmr", "RmrBindCompletionEvent", "RmrParam", "RmrTriplet", "Rsp", "RspParam", "SoftwareEvent",
           "Srq", "SrqParam", "TimeoutError", "get_ia_handle", "ia_open", "ib_open_query", "registry_add_provider",
           "registry_list_providers", "registry_providers_related", "registry_remove_provider",
           "strerror"]  # enumerations have pages of their own: help(dat.EpState)

# SPDX-License-Identifier: BSD-3-Clause
"""The enumerations and structures of viaduct.dat: see cmake/constants.py."""
ENUMERATIONS = [
    ("HandleType", "IntEnum", "DAT_HANDLE_TYPE_(.*)", "Kinds of objects."),
    ("Extension", "IntEnum", "DAT_EXTENSION: DAT_EXTENSION_(.*)", "The extension that an adapter has."),
    ("IovOwnership", "IntEnum", "DAT_IOV_OWNERSHIP: DAT_IOV_(.*)",
     "The owner of an array of triplets until its operation has completed."),
    ("EpCreatorForPsp", "IntEnum", "DAT_PSP_CREATES_EP_(.*)", "Whether public service points can create endpoints."),
    ("CloseFlags", "IntEnum", "DAT_CLOSE_FLAGS: DAT_CLOSE_(.*)", "How to close an adapter, or to end a connection."),
    ("MemPrivFlags", "IntFlag", "DAT_MEM_PRIV_FLAGS: DAT_MEM_PRIV_(.*) | DAT_MEM_PRIV_(READ|WRITE)_FLAG | "
     "DAT_IB_MEM_PRIV_(.*)", "Who has which access to memory."),
    ("VaType", "IntEnum", "DAT_VA_TYPE_(.*)",
     "Whether the addresses of a region are virtual addresses (VA), or begin at zero (ZB)."),
    ("MemType", "IntEnum", "DAT_MEM_TYPE: DAT_MEM_TYPE_(.*)", "The kind of memory of an LMR."),
    ("RmrScope", "IntEnum", "DAT_RMR_SCOPE_(.*)", "The endpoints whose peers may use an RMR."),
    ("CompletionFlags", "IntFlag", "DAT_COMPLETION_FLAGS: DAT_COMPLETION_(.*)",
     "Options of an operation and its completion."),
    ("Dtos", "IntEnum", "DAT_DTOS: DAT_DTO_(.*) | DAT_IB_DTOS: DAT_(.*)", "The operation that a completion reports."),
    ("DtoCompletionStatus", "IntEnum", "DAT_DTO_COMPLETION_STATUS: DAT_(?:DTO_)?(.*)",
     "The outcome of an operation or of binding an RMR."),
    ("Qos", "IntFlag", "DAT_QOS_(.*)", "Quality of service; a hint."),
    ("ConnectFlags", "IntFlag", "DAT_CONNECT_FLAGS: DAT_CONNECT_(.*)", "How to connect."),
    ("ServiceType", "IntEnum", "DAT_(?:IB_)?SERVICE_TYPE_(.*)", "Kinds of connections."),
    ("EpState", "IntEnum", "DAT_EP_STATE: DAT_EP_STATE_(.*)", "States of endpoints."),
    ("SrqState", "IntEnum", "DAT_SRQ_STATE_(.*)", "States of shared receive queues."),
    ("PspFlags", "IntEnum", "DAT_PSP_FLAGS: DAT_PSP_(.*)",
     "Who creates the endpoints for a public service point: the program (CONSUMER) or the library (PROVIDER)."),
    ("EvdFlags", "IntFlag", "DAT_EVD_FLAGS: DAT_EVD_(.*)",
     "The kinds of events that an EVD takes. DEFAULT: all but software events."),
    ("EvdState", "IntFlag", "DAT_EVD_STATE_(.*)",
     "The state of an EVD: one value of each pair, and at most one of the CONFIG values."),
    ("EventNumber", "IntEnum", "DAT_EVENT_NUMBER: DAT_(.*) | DAT_IB_EVENT_NUMBER: DAT_(.*)", "Kinds of events."),
    *((f"{name}AsyncErrorReason", "IntEnum",
       f"DAT_{name.upper()}_ASYNC_ERROR_REASON: (?:DAT_{name.upper()}_)?(.*)",
       f"What an asynchronous event reports about {about}.")
      for name, about in (("Ia", "an adapter"), ("Ep", "an endpoint"), ("Evd", "an EVD"),
                          ("Srq", "a shared receive queue"), ("Lmr", "an LMR"), ("Rmr", "an RMR"),
                          ("Pz", "a protection zone"))),
    ("PzSupport", "IntEnum", "DAT_PZ_SUPPORT: DAT_PZ_(.*)", "Whether protection zones can be shared."),
    ("ProxyType", "IntEnum", "DAT_PROXY_TYPE_(.*)", "The proxy of a CNO: none, an agent, or a file descriptor."),
    ("HaLb", "IntEnum", "DAT_HA_LB_(.*)", "How a provider distributes connections over related adapters."),
    ("HaRelationship", "IntEnum", "DAT_HA_RELATIONSHIP: DAT_HA_(.*)", "Whether one adapter can replace another."),
    ("IbOp", "IntEnum", "DAT_IB_OP: DAT_IB_(.*)", "Operations of the InfiniBand extension."),
    ("IbExtType", "IntEnum", "DAT_IB_EXT_TYPE: DAT_IB_(.*)", "What an event of the InfiniBand extension reports."),
    ("IbStatus", "IntEnum", "DAT_IB_STATUS: DAT_(?:IB_)?(.*)", "The status of an event of the InfiniBand extension."),
    ("IaCounterType", "IntEnum", "DAT_IA_COUNTER_TYPE: DCNT_IA_(.*)",
     "The counters of an adapter that can be started and stopped."),
    ("ReturnType", "IntEnum", "DAT_RETURN_TYPE: DAT_(.*) | DAT_IB_RETURN: DAT_(.*)",
     "The reason why a call failed: DAT_GET_TYPE of its result."),
    ("ReturnSubtype", "IntEnum", "DAT_RETURN_SUBTYPE: DAT_(.*)",
     "The argument, state or resource that was the reason: DAT_GET_SUBTYPE of the result."),

    # Masks that select the fields of a query.
    ("IaAttrMask", "IntFlag", "DAT_IA_FIELD_((?!IA_MAX_(?:MTU_SIZE|DTO_PER_OP)).*)", "Fields of IaAttr."),
    ("ProviderAttrMask", "IntFlag", "DAT_PROVIDER_FIELD_(.*)", "Fields of ProviderAttr."),
    ("EpParamMask", "IntFlag", "DAT_EP_FIELD_(.*)", "Fields of EpParam, and of the EpAttr in it."),
    *((f"{name}ParamMask", "IntFlag", f"DAT_{name.upper()}_FIELD_(.*)", f"Fields of {name}Param.")
      for name in ("Pz", "Lmr", "Rmr", "Srq", "Psp", "Rsp", "Csp", "Cr", "Evd", "Cno")),
]

BASE = ["Address", "CnoParam", "LmrTriplet", "NamedAttr", "RmrTriplet", "Structure"]
FIELDS = {
    "DAT_BOOLEAN": "bool = False",
    "DAT_COMPLETION_FLAGS": "CompletionFlags = CompletionFlags.DEFAULT",
    "DAT_EVD_FLAGS": "EvdFlags = EvdFlags.DEFAULT",
    "DAT_IA_ADDRESS_PTR": "Address | None = None",
    "DAT_LMR_TRIPLET": "tuple[int, int, int] = (0, 0, 0)",
    "DAT_NAMED_ATTR": "list[NamedAttr] = dataclasses.field(default_factory=list)",
    "DAT_SRQ_STATE": "SrqState = SrqState.OPERATIONAL",
    "char": 'str = ""',
}
STRUCTURES = [
    ("ProviderInfo", "An entry of the registry: the name of an adapter, and the version of DAT of its provider.",
     {"dapl_version_major": "int = _dat.DAT_VERSION_MAJOR", "dapl_version_minor": "int = _dat.DAT_VERSION_MINOR",
      "is_thread_safe": "bool = True"}),
    ("IaAttr", "The attributes and limits of an adapter. Sizes are in bytes.", {}),
    ("ProviderAttr", """The attributes of a provider.

evd_stream_merging_supported[a][b]: one EVD takes events of the kinds a and b (software, connection request, DTO,
connection, RMR bind, asynchronous). provider_specific_attr: among others, what the InfiniBand extension supports;
the names are constants of viaduct._dat (DAT_IB_ATTR_IMMED_DATA).
""", {"lmr_mem_types_supported": "int = 0", "evd_stream_merging_supported": "tuple[tuple[bool, ...], ...] = ()"}),
    ("PzParam", "The parameters of a protection zone.", {}),
    ("LmrParam", "The parameters of a local memory region. region_desc: an address, or the handle of another region.",
     {}),
    ("RmrParam", "The parameters of a remote memory region. lmr_triplet: (address, length, LMR context).", {}),
    ("Comm", "A communicator: the arguments of socket(2).", {}),
    ("EpAttr", """\
The attributes of an endpoint. Sizes are in bytes (0: no limit), lengths of queues in operations, lists of memory
pieces in pieces.""",
     {"max_recv_dtos": "int = 16", "max_request_dtos": "int = 16", "max_recv_iov": "int = 4",
      "max_request_iov": "int = 4", "max_rdma_read_in": "int = 4", "max_rdma_read_out": "int = 4",
      "srq_soft_hw": "int = _dat.DAT_HW_DEFAULT", "max_rdma_read_iov": "int = 1"}),
    ("EpParam", "The parameters of an endpoint and of its connection.", {}),
    ("SrqParam", "The parameters of a shared receive queue. Counts that the provider does not maintain are "
     "DAT_VALUE_UNKNOWN.", {}),
    ("PspParam", "The parameters of a public service point.", {}),
    ("RspParam", "The parameters of a reserved service point.", {}),
    ("CspParam", "The parameters of a common service point.", {}),
    ("CrParam", "The parameters of a connection request. private_data: over RDMA devices it may be padded with zeros.",
     {"private_data": 'bytes = b""'}),
    ("EvdParam", "The parameters of an event dispatcher.", {}),
]

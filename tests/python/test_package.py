# SPDX-License-Identifier: BSD-3-Clause
"""The structure of the package: the names it exports, and the imports between its modules."""
import __future__
import ast
import graphlib
import importlib
import importlib.metadata
import inspect
import json
import os
import pathlib
import pickle
import re
import socket
import subprocess
import sys
import traceback
import types

import pytest
import viaduct
from rpma_pair import ADDRESS
from viaduct import core, dat, rpma, vipl

PACKAGE = pathlib.Path(viaduct.__file__).parent
ROOT = pathlib.Path(__file__).resolve().parents[2]

# Programs rely on these names, whatever module defines them.
NAMES = {
    "core": """
        Access AsyncEvent AsyncEventKind Buffer Code Completion CompletionCode CompletionQueue ConnectionEvent
        ConnectionEventKind ConnectionRequest Counters Device DeviceCounters Endpoint Error Listener MemoryRegion
        MemoryWindow Operation Piece Pieces ProtectionDomain Reliability Remote RequestError Service SharedReceiveQueue
        State TimeoutError Traffic alloc backend devices resolve
    """,
    "vipl": """
        Buffer CompletionQueue ConnectionRequest Control CqEntry Descriptor DescriptorError Discriminator Error
        ErrorCode ErrorDescriptor MemAttributes NetAddress Nic NicAttributes Operation Ptag Region ReliabilityLevel
        Remote ResourceCode ReturnCode Segment Segments State Status StatusOperation TimeoutError Vi ViAttributes
        ViInfo alloc open_nic
    """,
    "dat": """
        Address Agent AsynchErrorEvent Buffer CloseFlags Cno CnoParam CnoParamMask Comm CompletionFlags ConnectFlags
        ConnectionEvent ConnectionFailed Cr CrArrivalEvent CrParam CrParamMask Csp CspParam CspParamMask DEFAULT_IA
        DatObject DtoCompletionEvent DtoCompletionStatus Dtos EVD_ASYNC_EXISTS Ep EpAsyncErrorReason EpAttr
        EpCreatorForPsp EpParam EpParamMask EpState Error Evd EvdAsyncErrorReason EvdFlags EvdParam EvdParamMask
        EvdState Event EventNumber Extension HaLb HaRelationship HandleType Ia IaAsyncErrorReason IaAttr IaAttrMask
        IaCounterType IbDtoEvent IbExtType IbOp IbStatus IovOwnership Lmr LmrAsyncErrorReason LmrParam LmrParamMask
        LmrTriplet MemPrivFlags MemType ProviderAttr ProviderAttrMask ProviderInfo ProxyType Psp PspFlags PspParam
        PspParamMask Pz PzAsyncErrorReason PzParam PzParamMask PzSupport Qos ReturnSubtype ReturnType Rmr
        RmrAsyncErrorReason RmrBindCompletionEvent RmrParam RmrParamMask RmrScope RmrTriplet Rsp RspParam
        RspParamMask ServiceType SoftwareEvent Srq SrqAsyncErrorReason SrqParam SrqParamMask SrqState TimeoutError
        VaType get_ia_handle ia_open ib_open_query registry_add_provider registry_list_providers
        registry_providers_related registry_remove_provider strerror
    """,
    "rpma": """
        AdviseMr AdviseMrFlags Buffer Completion Conn ConnCfg ConnEvent ConnReq ConnectError Cq DEFAULT_TIMEOUT_MS
        Ep Error ErrorCode Flags FlushType IbvContextType LogFunction LogLevel LogThreshold MrLocal MrRemote MrUsage
        Peer PeerCfg Piece RequestError Srq SrqCfg TimeoutError WcFlags WcOpcode WcStatus alloc conn_event_2str
        err_2str get_ibv_context ibv_context_is_odp_capable log_get_threshold log_set_function log_set_threshold
    """,
}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the wheel is for Python 3.11 and later")
def test_version_and_metadata(tmp_path):
    """What pip shows of the wheel; test_wheel.py builds it."""
    build = f"import wheel_backend; print(wheel_backend.prepare_metadata_for_build_wheel({str(tmp_path)!r}))"
    name = subprocess.run([sys.executable, "-c", build], cwd=ROOT / "bindings/python", text=True, check=True,
                          stdout=subprocess.PIPE).stdout.strip()
    distribution = importlib.metadata.Distribution.at(tmp_path / name)
    version, = re.findall(r"^project\(Viaduct VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text("utf-8"), re.M)
    assert viaduct.__version__ == distribution.version == version
    assert name == f"viaduct-{version}.dist-info"
    assert (distribution.metadata["Name"], distribution.metadata["License"]) == ("viaduct", "BSD-3-Clause")
    assert distribution.metadata["Requires-Python"] == ">=3.11"
    assert distribution.read_text("LICENSE") == (ROOT / "LICENSE").read_text("utf-8")
    plugin, = distribution.entry_points
    assert plugin.group == "pytest11" and plugin.load() is sys.modules[plugin.name]


@pytest.mark.parametrize("api", NAMES)
def test_names_are_what_they_were(api):
    module = importlib.import_module(f"viaduct.{api}")
    values = {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
    shown = {name for name, value in values.items()
             if not isinstance(value, (types.ModuleType, __future__._Feature))}
    assert shown == set(NAMES[api].split())
    assert set(module.__all__) <= shown


def modules():
    """Returns the Python modules by name, with their syntax trees."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if not path.exists():  # a link left by an earlier build
            continue
        name = ".".join(("viaduct", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
        yield name, ast.parse(path.read_text(encoding="utf-8"))


def imported_by(statements):
    """Returns the modules that top-level statements of a module import when it is loaded."""
    for statement in statements:
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            yield statement.module
            yield from (f"{statement.module}.{alias.name}" for alias in statement.names)


def test_modules_import_downwards():
    trees = dict(modules())
    graph = {name: {other for other in imported_by(tree.body) if other in trees and other != "viaduct"}
             for name, tree in trees.items()}
    list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError if there is a cycle
    apis = {f"viaduct.{api}" for api in NAMES}
    assert apis < set(trees)
    upwards = [(name, other) for name in graph for other in graph[name] & apis if name.startswith(other + ".")]
    assert not upwards


def test_functions_import_nothing():
    found = [f"{name}:{inner.lineno}" for name, tree in modules() for outer in ast.walk(tree)
             if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) for inner in ast.walk(outer)
             if isinstance(inner, (ast.Import, ast.ImportFrom))]
    assert not found


@pytest.mark.parametrize("api", NAMES)
def test_what_is_shown_can_be_found_under_the_name_it_gives(api):
    module = importlib.import_module(f"viaduct.{api}")
    for name in NAMES[api].split():
        value = getattr(module, name)
        if isinstance(value, (type, types.FunctionType)) and value.__module__.startswith("viaduct"):
            assert value.__module__.startswith(f"viaduct.{api}.") or name in ("alloc", "Buffer"), value
            assert pickle.loads(pickle.dumps(value)) is value


def members_of(kind):
    """Returns the public methods and properties that a class defines."""
    for name, value in vars(kind).items():
        value = getattr(value, "__func__", value)
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
            yield f"{kind.__module__}.{kind.__name__}.{name}", value


@pytest.mark.parametrize("api", [*NAMES, "pytest_plugin"])
def test_what_is_shown_is_described(api):
    module = importlib.import_module(f"viaduct.{api}")
    shown = {name: getattr(module, name) for name in [*NAMES.get(api, "").split(), *module.__all__]}
    described = {name: value for name, value in shown.items() if inspect.isclass(value) or inspect.isfunction(value)}
    for value in list(described.values()):
        if inspect.isclass(value) and value.__module__.startswith("viaduct."):
            described.update(members_of(value))
    assert [name for name, value in described.items() if not value.__doc__] == []
    # Each description is complete: help() shows one at a time.
    short = re.compile(r"\blike \w+(\.\w+)?\(\)", re.I)
    assert [name for name, value in described.items() if short.search(value.__doc__)] == []


def raised_by(call, *arguments):
    with pytest.raises(viaduct.Error) as raised:
        call(*arguments)
    return raised.value


@pytest.fixture
def errors():
    """An error of each API, and errors that are created differently."""
    with vipl.open_nic() as nic:
        return [raised_by(dat.ia_open, "no such adapter"), raised_by(vipl.open_nic, "no such NIC"),
                raised_by(nic.create_vi().send_done), raised_by(core.Device, "no such device"),
                raised_by(rpma.get_ibv_context, "192.0.2.1"),
                core.RequestError("wait_send", core.Completion(1, core.Operation.SEND, core.CompletionCode.FLUSHED, 0,
                                                               None, False, 0))]


def test_errors_survive_pickling_and_have_names_in_tracebacks(errors):
    for error in errors:
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
        kind = type(error)
        assert traceback.format_exception_only(kind, error)[-1].startswith(f"{kind.__module__}.{kind.__name__}: ")
        assert kind.__module__.endswith(".errors")


def about_this_process():
    """What it tells other processes: docs/introspection.md."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(f"\0viaduct/info/{os.geteuid()}/{os.getpid()}")
        with asking.makefile() as answer:
            return json.load(answer)


def test_a_process_tells_which_apis_it_uses():
    with vipl.open_nic(), dat.ia_open(), core.Device(), rpma.Peer(rpma.get_ibv_context(ADDRESS)):
        told = about_this_process()
        assert {device["api"] for device in told["devices"]} == {"VIPL", "DAT", "core", "librpma"}
        assert told["endpoints"] == []

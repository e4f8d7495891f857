#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs vi-info as a user would: test_vi_info.py PATH_OF_VI_INFO"""
import json
import os
import pathlib
import re
import tempfile

from command_line import Tool, check, finish, forget_settings

ROOT = pathlib.Path(__file__).resolve().parents[2]
SETTINGS = re.compile(r'"(VIADUCT_[A-Z_]+)"')


def document(tool, *options, **variables):
    return json.loads(tool.run("--json", *options, **variables).stdout)


def enumerators(header, enumeration):
    """Returns names and values of an enumeration in a header."""
    text = (ROOT / "api" / header).read_text()
    body = re.search(r"enum\s*\w*\s*\{([^}]*)\}\s*" + enumeration, text).group(1)
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL)
    values, value = {}, -1
    for item in filter(None, (part.strip() for part in body.split(","))):
        name, _, given = (part.strip() for part in item.partition("="))
        value = values.get(given, None) if given in values else int(given, 0) if given else value + 1
        values[name] = value
    check(len(values) > 5, f"{header}: {enumeration} has only {values}")
    return values


def explain(tool, api, code):
    explanations = document(tool, "--error", api, str(code))["explanations"]
    for each in explanations:
        check(each["meaning"].endswith(".") and each["section"], f"{code}: {each}")
    return {each["name"]: each["code"] for each in explanations}


def check_codes(tool, api, codes, aliases=()):
    for name, value in codes.items():
        if name in aliases:
            continue
        check(explain(tool, api, name) == {name: value}, f"{api} {name}: {explain(tool, api, name)}")


def test_information(tool):
    check(tool.run("--version").stdout.startswith("vi-info (Viaduct) "), "version")
    check("--why" in tool.run("--help").stdout, "help")


def test_bad_options(tool):
    tool.refuses([
        (["--no-such-option"], "no-such-option"),
        (["viaduct-lo0", "another"], "'another' is one argument too many"),
        (["--listeners", "--why", "localhost"], "cannot be used together"),
        (["--listeners", "viaduct-lo0"], "'viaduct-lo0' is one argument too many"),
        (["--why", "localhost", "7471"], "'7471' is one argument too many"),
        (["--why", "localhost:70000"], "above 65535"),
        (["--why", ":7471"], "the host is empty"),
        (["--why", "localhost:"], "the service is empty"),
        (["--why", "::1:7471"], "in brackets"),
        (["--why", "[::1"], "expected [ADDRESS]:SERVICE"),
        (["--error", "vipl"], "needs an API and a code"),
        (["--error", "mpi", "1"], "unknown API 'mpi'"),
        (["--error", "vipl", "VIP_NOMATCH"], "did you mean VIP_NO_MATCH?"),
        (["--error", "vipl", "12345"], "no code '12345'"),
        (["--error", "dat", "0x7fffffff0000"], "no code"),
        (["--error", "rpma", "-5"], "no code '-5'"),
        (["viaduct-nowhere"], "device 'viaduct-nowhere'"),
        (["99"], "device '99'"),
    ])


def test_installation(tool):
    found = document(tool)
    backends = {backend["name"]: backend for backend in found["backends"]}
    check(set(backends) == {"verbs", "loopback", "tcp"}, str(backends))
    devices = [device["host"] for device in backends["loopback"]["devices"]]
    check(devices == [f"127.0.0.{number}" for number in range(1, 9)], str(devices))
    check(backends["loopback"]["limits"]["default_queue_depth"] == 8192, str(backends["loopback"]))
    check(backends["loopback"]["abilities"]["own_user_only"], str(backends["loopback"]))
    for backend in backends.values():
        check(backend["state"] == "ok" or backend["reason"], f"no reason: {backend}")
    check(any(library["name"].startswith("libviaduct.so.") for library in found["libraries"]), str(found["libraries"]))
    text = tool.run().stdout
    check("viaduct-lo7" in text and "127.0.0.8" in text and "adapters of DAT" in text, text)


def test_a_backend_without_a_device(tool):
    tcp = next(each for each in document(tool, VIADUCT_TCP_INTERFACES="none")["backends"] if each["name"] == "tcp")
    check(tcp["state"] == "missing" or "VIADUCT_TCP_INTERFACES" in tcp["reason"], str(tcp))


def test_a_device(tool):
    found = document(tool, "viaduct-lo2")
    check((found["host"], found["backend"], found["number"]) == ("127.0.0.3", "loopback", 2), str(found))
    check(document(tool, "2", VIADUCT_BACKEND="loopback") == found, "by number")
    check("shares_services" in tool.run("viaduct-lo2").stdout, "text")
    check("did you mean viaduct-lo2?" in tool.run("lo2", status=2).stderr, "the name of the interface")
    check("vi-info lists the devices" in tool.run("lo99", status=2).stderr, "no such device")


def test_adapters(tool):
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as conf:
        conf.write("# a comment\n\nib0 u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 \"ib0 0\" \"\"\n"
                   "kernel k2.0 threadsafe default lib.so dapl.2.0 \"\" \"\"\nbroken u2.0 maybe default l v.1.0 a b\n"
                   "gone u2.0 nonthreadsafe default libno_such.so.2 dapl.2.0 \"\" \"\"\n")
        conf.flush()
        dat = document(tool, DAT_OVERRIDE=conf.name)["dat"]
        text = tool.run(DAT_OVERRIDE=conf.name).stdout
    check(dat["file"] == conf.name and dat["from_DAT_OVERRIDE"] and dat["readable"], str(dat))
    names = {adapter["name"]: adapter for adapter in dat["adapters"]}
    check(names["ib0"]["line"] == 3 and names["ib0"]["library"] == "libdaplofa.so.2", str(names))
    check("line" not in names["viaduct-lo"] and "kernel" not in names, str(names))
    check([line["line"] for line in dat["ignored_lines"]] == [4, 5], str(dat["ignored_lines"]))
    check("line 5 is ignored: the third field" in text, text)
    check("libno_such.so.2" in names["gone"]["absent"] and not names["viaduct-lo"]["absent"], str(names))
    check("line 6: cannot be opened: libno_such.so.2" in text, text)
    check(not document(tool, DAT_OVERRIDE="/no/such/file")["dat"]["readable"], "a file that does not exist")


def problem(tool, name, value):
    settings = {setting["name"]: setting for setting in document(tool, **{name: value})["settings"]}
    check(settings[name]["value"] == value, str(settings))
    return settings[name].get("problem", "")


def test_settings(tool):
    for name, value, expected in [
        ("VIADUCT_BACKEND", "loopback", ""),
        ("VIADUCT_BACKEND", "ether", "'ether' is none of"),
        ("VIADUCT_BACKEND", "ofi", "it means tcp"),
        ("VIADUCT_DEVICE", "viaduct-lo3", ""),
        ("VIADUCT_DEVICE", "viaduct-eth99", "no device 'viaduct-eth99'"),
        ("VIADUCT_LOG", "loud", "'loud' is none of error, warning, info, debug"),
        ("VIADUCT_FAULTS", "drop=1%;seed=7", ""),
        ("VIADUCT_FAULTS", "drop=1", "'drop=1' cannot be used, only a list of"),
        ("VIADUCT_CHECK", "sends,pages", ""),
        ("VIADUCT_CHECK", "luck", "'luck' cannot be used, only 1, or a list of sends, "),
        ("VIADUCT_SPIN_US", "10", ""),
        ("VIADUCT_SPIN_US", "10us", "'10us' is not a number from 0 to 4294967295"),
        ("VIADUCT_CONNECT_RETRY_MS", "-1", "'-1' is not a number from 0 to 4294967295"),
        ("VIADUCT_TCP_KEY_FILE", "/no/such/key", "cannot be read"),
        ("VIADUCT_TCP_CA", "/no/such/authority", "cannot be read"),
        ("VIADUCT_TCP_CERT", __file__, "no tcp device can be opened without VIADUCT_TCP_KEY and VIADUCT_TCP_CA"),
        ("VIADUCT_OFI_CA", __file__, "without VIADUCT_TCP_CERT and VIADUCT_TCP_KEY"),
        ("VIADUCT_TCP_SECURITY", "encrypted", ""),
        ("VIADUCT_TCP_SECURITY", "none", "'none' is none of encrypted, authenticated"),
        ("VIADUCT_TCP_INTERFACES", "lo,eth99", "no network interface 'eth99'"),
        ("VIADUCT_OFI_TIMEOUT_MS", "10", "it is VIADUCT_TCP_TIMEOUT_MS now"),
        ("VIADUCT_OFI_TIMEOUT_MS", "0", "; '0' is not a number from 1"),
        ("VIADUCT_BACKND", "loopback", "did you mean VIADUCT_BACKEND?"),
        ("VIADUCT_WINGS", "2", "no such setting"),
    ]:
        found = problem(tool, name, value)
        check(expected in found and bool(expected) == bool(found), f"{name}={value}: '{found}'")
    certificate = dict.fromkeys(("VIADUCT_TCP_CERT", "VIADUCT_TCP_KEY", "VIADUCT_TCP_CA"), __file__)
    check(not any("problem" in setting for setting in document(tool, **certificate)["settings"]), "all of them")


def test_every_setting_is_known(tool):
    names = set()
    for directory in "core", "backends", "api":
        for source in (ROOT / directory).rglob("*.[ch]pp"):
            names.update(SETTINGS.findall(source.read_text()))
    check({"VIADUCT_BACKEND", "VIADUCT_TCP_SECURITY", "VIADUCT_SPIN_US"} <= names, str(names))
    for setting in document(tool, **{name: "1" for name in names})["settings"]:
        check("no such setting" not in setting.get("problem", ""), f"vi-info does not know {setting['name']}")


def test_every_vipl_code_is_explained(tool):
    header = "vipl/include/vipl.h"
    check_codes(tool, "vipl", enumerators(header, "VIP_RETURN"), {"VIP_ERROR"})
    check_codes(tool, "vipl", enumerators(header, "VIP_ERROR_CODE"))
    check("VIP_NO_MATCH" in explain(tool, "vipl", 14), "by number")
    check("VIP_NO_MATCH" in explain(tool, "vipl", "vip_no_match"), "in lower case")


def test_every_rpma_code_is_explained(tool):
    header = (ROOT / "api/rpma/include/librpma.h").read_text()
    codes = {name: int(value) for name, value in re.findall(r"#define (RPMA_E_\w+) \((-\d+)\)", header)}
    check(len(codes) == 10, str(codes))
    check_codes(tool, "rpma", codes)
    for name, value in codes.items():
        check(explain(tool, "rpma", value) == {name: value}, f"{value}")
    check(explain(tool, "rpma", 0) == {"success": 0, "RPMA_CONN_ESTABLISHED": 0, "IBV_WC_SUCCESS": 0}, "0")
    check("IBV_WC_WR_FLUSH_ERR" in explain(tool, "rpma", 5), "a status of completions")


def test_every_dat_code_is_explained(tool):
    for api, header in ("dat", "udat/include/dat2/dat_error.h"), ("dat1", "udat/include/dat/dat_error.h"):
        check_codes(tool, api, enumerators(header, "DAT_RETURN_TYPE"))
        subtypes = enumerators(header, "DAT_RETURN_SUBTYPE")
        check_codes(tool, api, subtypes)
        value = subtypes["DAT_INVALID_ARG5"]
        check(explain(tool, api, 0x80060000 | value) == {"DAT_INVALID_PARAMETER": 0x60000, "DAT_INVALID_ARG5": value},
              "a whole DAT_RETURN")
    events = enumerators("udat/include/dat2/dat.h", "DAT_EVENT_NUMBER")
    check_codes(tool, "dat", {name: value for name, value in events.items() if name.startswith("DAT_CONNECTION_EVENT")})
    for api, header in ("dat", "udat/include/dat2/dat.h"), ("dat1", "udat/include/dat/dat.h"):
        check_codes(tool, api, enumerators(header, "DAT_DTO_COMPLETION_STATUS"))
    check(set(explain(tool, "dat", 1)) == {"DAT_DTO_COMPLETION_EVENT", "DAT_DTO_ERR_FLUSHED"}, "an event or a status")


def test_classes_of_dat(tool):
    for code, expected in (0x80060029, "ERROR"), (0x40060000, "WARNING"), (0x000D0000, "SUCCESS"):
        check(document(tool, "--error", "dat", hex(code))["class"] == f"DAT_CLASS_{expected}", hex(code))
    bits = [each["name"] for each in document(tool, "--error", "vipl", "0x20003")["explanations"]]
    check(bits == ["VIP_STATUS_DONE", "VIP_STATUS_FORMAT_ERROR", "VIP_STATUS_OP_RDMA_WRITE"], str(bits))
    for number in ["-2147090391"], ["--", "-2147090391"]:
        check(document(tool, "--error", "dat", *number)["class"] == "DAT_CLASS_ERROR", "as a signed number")
    text = tool.run("--error", "dat", "0x80060029").stdout
    check("DAT_INVALID_PARAMETER" in text and "DAT_INVALID_ARG5" in text, text)


forget_settings()
os.environ["VIADUCT_TCP_INTERFACES"] = "lo"  # opens no port to a network
finish(globals(), Tool("vi-info"))

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_table.py CONFORMANCE.MD PROGRAM_DIRECTORY

Checks the VIPL table of docs/conformance.md: every return code that the guide gives to a call, every asynchronous error
and every status bit has a row; a row names test cases that exist, or says why the code is not produced.
"""
import pathlib
import re
import subprocess
import sys

BASIC = "SUCCESS INVALID_PARAMETER"
BOTH = BASIC + " ERROR_RESOURCE"
ATTRIBUTES = "INVALID_RELIABILITY_LEVEL INVALID_MTU INVALID_QOS"
PEER = BOTH + " " + ATTRIBUTES + " TIMEOUT INVALID_STATE NOT_REACHABLE"

# The "Returns" paragraphs of section 3 of the guide, without the prefix VIP_.
RETURNS = {
    "VipOpenNic": BOTH,
    "VipCloseNic": BASIC,
    "VipCreateVi": BOTH + " " + ATTRIBUTES + " INVALID_PTAG INVALID_RDMAREAD",
    "VipDestroyVi": BOTH + " INVALID_STATE",
    "VipConnectWait": BOTH + " TIMEOUT",
    "VipConnectAccept": BOTH + " " + ATTRIBUTES + " TIMEOUT INVALID_STATE NOT_REACHABLE",
    "VipConnectReject": BOTH + " NOT_REACHABLE",
    "VipConnectRequest": BOTH + " TIMEOUT REJECT NO_MATCH INVALID_STATE NOT_REACHABLE",
    "VipDisconnect": BOTH + " NOT_REACHABLE",
    "VipConnectPeerRequest": BOTH + " INVALID_STATE",
    "VipConnectPeerDone": PEER + " NOT_DONE",
    "VipConnectPeerWait": PEER,
    "VipCreatePtag": BOTH,
    "VipDestroyPtag": BOTH,
    "VipRegisterMem": BOTH + " INVALID_PTAG INVALID_RDMAREAD",
    "VipDeregisterMem": BOTH,
    "VipPostSend": BASIC,
    "VipSendDone": BASIC + " DESCRIPTOR_ERROR NOT_DONE",
    "VipSendWait": BOTH + " DESCRIPTOR_ERROR TIMEOUT",
    "VipPostRecv": BASIC,
    "VipRecvDone": BASIC + " DESCRIPTOR_ERROR NOT_DONE",
    "VipRecvWait": BOTH + " DESCRIPTOR_ERROR TIMEOUT",
    "VipCQDone": BASIC + " NOT_DONE",
    "VipCQWait": BOTH + " TIMEOUT",
    "VipSendNotify": BOTH + " DESCRIPTOR_ERROR",
    "VipRecvNotify": BOTH + " DESCRIPTOR_ERROR",
    "VipCQNotify": BOTH,
    "VipCreateCQ": BOTH,
    "VipDestroyCQ": BOTH,
    "VipResizeCQ": BOTH,
    "VipQueryNic": BOTH,
    "VipSetViAttributes": BOTH + " " + ATTRIBUTES + " INVALID_STATE INVALID_PTAG INVALID_RDMAREAD",
    "VipQueryVi": BOTH,
    "VipSetMemAttributes": BOTH + " INVALID_PTAG INVALID_RDMAREAD",
    "VipQueryMem": BOTH,
    "VipQuerySystemManagementInfo": BOTH,
    "VipErrorCallback": BOTH,
    "VipNSInit": BOTH + " ERROR_NAMESERVICE",
    "VipNSGetHostByName": BOTH + " ERROR_NAMESERVICE",
    "VipNSGetHostByAddr": BOTH + " ERROR_NAMESERVICE",
    "VipNSShutdown": BOTH + " ERROR_NAMESERVICE",
    # section 3.8.1
    "asynchronous": "ERROR_POST_DESC ERROR_CONN_LOST ERROR_RECVQ_EMPTY ERROR_VI_OVERRUN ERROR_RDMAW_PROT"
                    " ERROR_RDMAW_DATA ERROR_RDMAW_ABORT ERROR_RDMAR_PROT ERROR_COMP_PROT ERROR_RDMA_TRANSPORT"
                    " ERROR_CATASTROPHIC",
    # section 5.2
    "status": "STATUS_DONE STATUS_FORMAT_ERROR STATUS_PROTECTION_ERROR STATUS_LENGTH_ERROR STATUS_PARTIAL_ERROR"
              " STATUS_DESC_FLUSHED_ERROR STATUS_TRANSPORT_ERROR STATUS_RDMA_PROT_ERROR STATUS_REMOTE_DESC_ERROR"
              " STATUS_OP_SEND STATUS_OP_RECEIVE STATUS_OP_RDMA_WRITE STATUS_OP_REMOTE_RDMA_WRITE"
              " STATUS_OP_RDMA_READ STATUS_IMMEDIATE",
}

ROW = re.compile(r"^\| `?(\w+)`? \| `VIP_(\w+)` \| (.*?) \| (.*?) \|$")


def rows_of(page):
    """(call, code, when, tests) of each row of the tables."""
    for line in page.read_text(encoding="utf-8").splitlines():
        match = ROW.match(line)
        if match:
            call, code, when, tests = match.groups()
            yield call, code, when, re.findall(r"`([\w:]+)`", tests)


def cases_of(directory, program, known={}):
    if program not in known:
        path = directory / program
        known[program] = set()
        if path.is_file():
            listed = subprocess.run([path, "--list"], check=True, text=True, capture_output=True)
            known[program] = set(listed.stdout.split())
    return known[program]


def problems(page, directory):
    found = set()
    for call, code, when, tests in rows_of(page):
        found.add((call, code))
        if not tests and not when.startswith("Not produced: "):
            yield f"{call} {code}: neither a test nor a reason"
        for test in tests:
            program, _, case = test.partition(":")
            if case not in cases_of(directory, program):
                yield f"{call} {code}: there is no case {test}"
    for call, codes in RETURNS.items():
        for code in codes.split():
            if (call, code) not in found:
                yield f"{call} {code}: no row"


def main():
    page, directory = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    wrong = list(problems(page, directory))
    for problem in wrong:
        print(problem)
    print(f"{sum(1 for _ in rows_of(page))} rows, {len(wrong)} problems")
    return bool(wrong)


sys.exit(main())

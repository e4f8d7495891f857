#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Kills a peer during traffic and checks the state of the surviving process.

A second process connects and sends messages, and is killed with SIGKILL after some of them. The survivor must be
notified of the loss soon, must get a completion for every request that it has posted, either successful or flushed, and
must have as many descriptors and mappings as before. Exits with 1 if one of these checks fails.
"""
from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import time

from viaduct import core

SIZE = 4096
DEPTH = 16  # outstanding requests in each direction
TIMEOUT = 60.0


def send_until_killed(service: int) -> None:
    """The victim: sends and receives until it is killed."""
    with core.Device() as device:
        endpoint = device.endpoint()
        memory = device.register(2 * SIZE)
        for _ in range(DEPTH):
            endpoint.post_receive(memory[:SIZE])
        endpoint.connect(device.host, service, timeout=TIMEOUT)
        while True:
            endpoint.post_send(memory[SIZE:])
            endpoint.wait_send(TIMEOUT)
            for _ in endpoint.receive_queue.poll():
                endpoint.post_receive(memory[:SIZE])


class Survivor:
    """The surviving end. It counts its requests: every posted request must complete."""

    def __init__(self, device: core.Device) -> None:
        self.device = device
        self.endpoint = device.endpoint()
        self.memory = device.register(2 * SIZE)
        self.posted = self.done = self.flushed = self.received = 0
        for _ in range(DEPTH):
            self.post_receive()

    def post_receive(self) -> None:
        self.endpoint.post_receive(self.memory[:SIZE])
        self.posted += 1

    def post_send(self) -> None:
        self.endpoint.post_send(self.memory[SIZE:])
        self.posted += 1

    def count(self, completions: list[core.Completion]) -> None:
        """Counts a completion. A request that was outstanding when the peer died may have any error."""
        for completion in completions:
            self.done += completion.ok
            self.flushed += not completion.ok
            self.received += completion.ok and completion.operation == core.Operation.RECEIVE

    def exchange(self, messages: int) -> None:
        """Sends, and receives the given number of messages."""
        while self.received < messages:
            if self.endpoint.outstanding() < DEPTH:
                self.post_send()
            self.count(self.endpoint.send_queue.poll())
            completions = self.endpoint.receive_queue.poll()
            self.count(completions)
            for _ in completions:
                self.post_receive()

    def loss(self, bound: float) -> core.ConnectionEvent:
        """Returns the event that reports the death. On some RDMA devices it looks like a disconnect."""
        event = self.endpoint.next_event(bound)
        if event is None:
            raise SystemExit(f"after {bound} s, the loss was not reported")
        if event.kind != core.ConnectionEventKind.LOST and self.device.capabilities["tells_loss"]:
            raise SystemExit(f"the loss was reported as {event.kind.name}")
        return event

    def collect(self, bound: float) -> None:
        """Collects the completions of all posted requests."""
        for queue, receives in ((self.endpoint.send_queue, False), (self.endpoint.receive_queue, True)):
            while self.endpoint.outstanding(receives=receives):
                self.count(queue.wait(timeout=bound))


def kill_one(device: core.Device, service: int, messages: int, bound: float) -> str:
    """Starts and kills one peer; returns a line about what the survivor saw."""
    survivor = Survivor(device)
    with device.listen(service) as listener, survivor.endpoint, survivor.memory:
        with subprocess.Popen([sys.executable, __file__, "--service", str(service), "--victim"]) as victim:
            try:
                listener.accept(survivor.endpoint, timeout=TIMEOUT)
                survivor.exchange(messages)
            finally:
                victim.kill()
            killed = time.monotonic()
            event = survivor.loss(bound)
        delay = time.monotonic() - killed
        survivor.collect(bound)
        if survivor.done + survivor.flushed != survivor.posted:
            raise SystemExit(f"of {survivor.posted} requests only {survivor.done} + {survivor.flushed} came back")
    return (f"{event.kind.name} after {1000 * delay:.0f} ms; of {survivor.posted} requests {survivor.done} were done, "
            f"{survivor.flushed} flushed")


def belongings() -> tuple[int, int]:
    """Returns the number of file descriptors and mappings of this process."""
    gc.collect()
    with open("/proc/self/maps", encoding="ascii") as maps:
        return len(os.listdir("/proc/self/fd")), sum(1 for _ in maps)


def exceeds(after: tuple[int, int], before: tuple[int, int]) -> bool:
    """Whether there are more than before, apart from changes by the memory allocator."""
    return after[0] > before[0] or after[1] > before[1] + 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="peers to kill (%(default)s)")
    parser.add_argument("--messages", type=int, default=100, metavar="N", help="messages before a kill (%(default)s)")
    parser.add_argument("--bound", type=float, default=5.0, metavar="SECONDS", help="report within (%(default)s)")
    parser.add_argument("--service", type=int, default=7208, help="service number (%(default)s)")
    parser.add_argument("--victim", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.victim:
        send_until_killed(arguments.service)
    with core.Device() as device:
        print(kill_one(device, arguments.service, arguments.messages, arguments.bound))
        before = belongings()  # after objects that are created only once
        for _ in range(arguments.rounds - 1):
            print(kill_one(device, arguments.service, arguments.messages, arguments.bound))
        end = time.monotonic() + arguments.bound
        while exceeds(after := belongings(), before):  # a library thread frees the rest of a connection
            if time.monotonic() > end:
                raise SystemExit(f"descriptors and mappings before {before}, after {after}")
            time.sleep(0.01)
    print(f"nothing is left behind: {after[0]} descriptors, {before[0]} before")


if __name__ == "__main__":
    main()

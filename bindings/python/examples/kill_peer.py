#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Kills a peer in the middle of its traffic, and looks at what the survivor is left with.

A second process connects and sends; after some messages it is killed with SIGKILL. The survivor has to be told of the
loss soon, to get back each request that it had posted, either done or flushed, and to have as many descriptors and
mappings as before. Ends with 1 if anything of that is missing.
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
DEPTH = 16  # requests posted at once, in each direction
TIMEOUT = 60.0


def send_until_killed(service: int) -> None:
    """The victim: sends without end, and takes what comes."""
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
    """One end, which counts its requests: what it has posted has to come back."""

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
        """A request that was under way when the peer died may have any error."""
        for completion in completions:
            self.done += completion.ok
            self.flushed += not completion.ok
            self.received += completion.ok and completion.operation == core.Operation.RECEIVE

    def exchange(self, messages: int) -> None:
        """Sends, and receives so many messages."""
        while self.received < messages:
            if self.endpoint.outstanding() < DEPTH:
                self.post_send()
            self.count(self.endpoint.send_queue.poll())
            completions = self.endpoint.receive_queue.poll()
            self.count(completions)
            for _ in completions:
                self.post_receive()

    def loss(self, bound: float) -> core.ConnectionEvent:
        """What tells of the peer's death. Over some RDMA devices, it looks as if the peer had disconnected."""
        event = self.endpoint.next_event(bound)
        if event is None:
            raise SystemExit(f"after {bound} s, nobody has told of the loss")
        if event.kind != core.ConnectionEventKind.LOST and self.device.capabilities["tells_loss"]:
            raise SystemExit(f"the loss came as {event.kind.name}")
        return event

    def collect(self, bound: float) -> None:
        """Takes back what was posted."""
        for queue, receives in ((self.endpoint.send_queue, False), (self.endpoint.receive_queue, True)):
            while self.endpoint.outstanding(receives=receives):
                self.count(queue.wait(timeout=bound))


def kill_one(device: core.Device, service: int, messages: int, bound: float) -> str:
    """One peer's life and death; what the survivor saw."""
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
    """How many descriptors and mappings this process has."""
    gc.collect()
    with open("/proc/self/maps", encoding="ascii") as maps:
        return len(os.listdir("/proc/self/fd")), sum(1 for _ in maps)


def exceeds(after: tuple[int, int], before: tuple[int, int]) -> bool:
    """Whether there are more; the allocator's arenas come and go."""
    return after[0] > before[0] or after[1] > before[1] + 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="peers to kill (%(default)s)")
    parser.add_argument("--messages", type=int, default=100, metavar="N", help="before each is killed (%(default)s)")
    parser.add_argument("--bound", type=float, default=5.0, metavar="SECONDS", help="the loss is told in (%(default)s)")
    parser.add_argument("--service", type=int, default=7208, help="where the peers connect (%(default)s)")
    parser.add_argument("--victim", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.victim:
        send_until_killed(arguments.service)
    with core.Device() as device:
        print(kill_one(device, arguments.service, arguments.messages, arguments.bound))
        before = belongings()  # now that what is made once has been made
        for _ in range(arguments.rounds - 1):
            print(kill_one(device, arguments.service, arguments.messages, arguments.bound))
        end = time.monotonic() + arguments.bound
        while exceeds(after := belongings(), before):  # a thread of the library gives back the last of a connection
            if time.monotonic() > end:
                raise SystemExit(f"descriptors and mappings before {before}, after {after}")
            time.sleep(0.01)
    print(f"nothing is left behind: {after[0]} descriptors, {before[0]} before")


if __name__ == "__main__":
    main()

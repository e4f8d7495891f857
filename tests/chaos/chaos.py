#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""chaos.py BUILD SECONDS SEED [guest]: processes of random APIs connect to each other over loopback and tcp and
exchange checked data, while they are stopped and killed, fork and become other programs, run out of resources, and lose
their links. docs/reliability.md says what is checked. All choices are made from the seed. With `guest`, which is for
the virtual machine of tests/vm, there are connections over verbs, too, but the links stay as they are."""
import collections
import pathlib
import random
import signal
import sys
import threading
import time

from fleet import APIS, CONNECTED, EXECUTE, FINISH, MIXED, RUN, STREAM, Failed, Fleet
from hosts import DEVICES, FAR, NEAR, Guest, Hosts, become_ordinary, enter

PLACES = [("loopback", NEAR)] * 3 + [("tcp", NEAR)] * 2 + [("tcp", FAR)] * 2
GUEST_PLACES = [("loopback", NEAR)] * 2 + [(backend, host) for backend in ("tcp", "verbs") for host in (NEAR, FAR)]
PAIRS, GUEST_PAIRS = 5, 2  # of each backend
NOTICE_NS = {"loopback": 100_000_000, "tcp": 100_000_000, "verbs": 1_000_000_000}  # the death of a peer
BUSY_NS = 5_000_000_000  # for so long, a peer whose threads run or wait for a processor may not notice it
CALL_NS = 12_000_000_000  # a call that takes longer hangs; connecting may take 5 s
STUCK_NS = 20_000_000_000  # a pair that exchanges nothing for so long is stuck
HELD_NS = 1_000_000_000  # a process that sleeps for a moment runs again by then
SPARED_S = 30  # for so long, this script does nothing to a pair, which might end a call that hangs
GUEST_FACTOR = 4  # its processors are emulated
TCP_TIMEOUT_MS = 2000  # VIADUCT_TCP_TIMEOUT_MS
LINK_NS = (TCP_TIMEOUT_MS + 1500) * 1_000_000  # until a link that is down is noticed
BAD_LINES = (["netem", "delay", "2ms", "1ms", "loss", "1%", "reorder", "5%"],
             ["tbf", "rate", "400mbit", "burst", "20kb", "limit", "30kb"])
S = 1_000_000_000


def now():
    return time.monotonic_ns()


class Chaos:
    def __init__(self, workers, seed, in_guest):
        self.fleet, self.random = workers, random.Random(seed)
        self.links_change, self.pairs = not in_guest, GUEST_PAIRS if in_guest else PAIRS
        self.slowness = GUEST_FACTOR if in_guest else 1
        self.counts, self.slowest = collections.Counter(), collections.Counter()
        self.later = []  # what is to be done at a time
        self.line = None  # of BAD_LINES
        self.lines = [line for line in BAD_LINES if self.links_change and self.add_line(line)]
        self.link_until = 0  # until when the link is no excuse
        self.cut_since = None
        self.spared = []  # workers of one pair
        self.holds = []  # when a thread of this script did not run until, and for how long
        threading.Thread(target=self.record_holds, daemon=True).start()

    # ---- Beginning ---------------------------------------------------------------------------------------------------

    def begin(self):
        for backend in sorted({worker.backend for worker in self.fleet.workers}):
            workers = [worker for worker in self.fleet.workers if worker.backend == backend]
            for number in range(self.pairs):
                traffic = MIXED if number else STREAM
                self.fleet.pair(self.random.choice(workers), self.random.choice(workers), traffic)
        for worker in self.fleet.workers:
            self.launch(worker)

    def launch(self, worker):
        if worker.sessions:
            worker.launch(self.random.choice(APIS), self.random.getrandbits(63), True)
            self.counts[worker.api] += 1

    def alive(self):
        return [worker for worker in self.fleet.workers if worker.process and worker.process.poll() is None]

    # ---- What is done to them ----------------------------------------------------------------------------------------

    def act(self):
        workers = [worker for worker in self.fleet.workers if worker.sessions and worker not in self.spared]
        links_change = self.links_change and all(worker.backend == "loopback" for worker in self.spared)
        kind = self.random.choices(["kill", "stop", "execute", "leave", "cut", "sever", "spoil"],
                                   [8, 5, 3, 1] + ([1, 0.25, 1] if links_change else [0, 0, 0]))[0]
        getattr(self, kind)(self.random.choice(workers))

    def spare(self):
        session = self.random.choice(self.fleet.sessions)
        self.spared = [session.worker, session.peer.worker]
        self.counts["spared pairs"] += 1
        self.at(self.slowness * SPARED_S, self.spare_nobody)

    def spare_nobody(self):
        self.spared = []
        self.at(self.slowness * SPARED_S, self.spare)

    def at(self, seconds, action, *arguments):
        self.later.append((now() + int(seconds * S), action, arguments))

    def kill(self, worker):
        if worker.stopped or worker.process.poll() is not None:
            return
        self.counts["kills"] += 1
        end = self.watch_end(worker)
        worker.process.kill()
        end()
        if worker.process.returncode == -signal.SIGKILL:  # or it has just left
            self.at(self.random.uniform(0, 0.3), self.launch, worker)

    def execute(self, worker):
        """Peers see the end of the program, although the process goes on."""
        if worker.stopped or worker.process.poll() is not None or worker.order != RUN:
            return
        self.counts["execs"] += 1
        worker.calm_since = now()
        worker.set("order", EXECUTE)
        self.excuse_executed(worker)

    def excuse_executed(self, worker):
        """The new program takes the order back when it runs."""
        going_on = worker.process.poll() is None and worker.order == EXECUTE
        if going_on:
            self.doom(worker)
        self.excuse(worker, 60 * S if going_on else S)
        if going_on:
            self.at(0.05, self.excuse_executed, worker)

    def stop(self, worker):
        if worker.stopped or worker.process.poll() is not None:
            return
        self.counts["stops"] += 1
        worker.process.send_signal(signal.SIGSTOP)
        worker.stopped = now()
        self.at(self.random.uniform(0.01, 1), self.go_on, worker, worker.process)

    def go_on(self, worker, process):
        """For how long it was stopped does not count."""
        process.send_signal(signal.SIGCONT)
        if worker.process is process:
            for session in worker.sessions:
                if session.excused > worker.stopped:
                    session.excused += now() - worker.stopped
            worker.stopped, worker.calm_since = None, now()

    def leave(self, worker):
        """It closes everything in order, without a loss at either end."""
        if worker.stopped or worker.process.poll() is not None or worker.order != RUN:
            return
        self.counts["restarts"] += 1
        worker.set("order", FINISH)

    def cut(self, _):
        """The link is back before anybody gives up, and nothing is lost."""
        self.cut_for(self.random.uniform(0.05, 0.4))

    def sever(self, _):
        self.cut_for(LINK_NS / S)

    def cut_for(self, seconds):
        if self.cut_since or self.line:
            return
        self.counts["cuts"] += 1
        self.cut_since = now()
        self.link_until = now() + int((seconds + LINK_NS / S) * S)
        self.fleet.hosts.cut()
        if seconds * S >= LINK_NS:
            self.at(seconds, self.await_severed, [(session, session.connections) for session in self.across()])
        else:
            self.at(seconds, self.repair)

    def across(self):
        return [session for session in self.fleet.sessions
                if session.worker.host != session.peer.worker.host and session.state == CONNECTED]

    def await_severed(self, sessions):
        """The link is back when all have noticed that it is down. What is said of deaths holds here, too: a worker may
        be kept from noticing for some time."""
        unaware = [session for session, connections in sessions if self.is_unaware(session, connections)]
        for worker in {session.worker for session in unaware}:
            late = now() - self.cut_since - LINK_NS
            if late > BUSY_NS or not (worker.is_runnable() or worker.scarce + S > now()):
                raise worker.failure(f"does not notice within {(now() - self.cut_since) / S:.1f} s that the link is "
                                     f"down: {', '.join(map(str, unaware))}", True)
        if unaware:
            self.at(0.02, self.await_severed, sessions)
        else:
            self.repair()

    def is_unaware(self, session, connections):
        worker = session.worker
        return session.state == CONNECTED and session.connections == connections and session.ended < self.cut_since \
            and worker in self.alive() and not worker.stopped and worker.calm_since < self.cut_since

    def repair(self):
        self.fleet.hosts.repair()
        self.cut_since, self.link_until = None, now() + LINK_NS
        for worker in self.fleet.workers:
            if worker.backend == "tcp":
                worker.calm_since = now()

    def spoil(self, _):
        if self.cut_since or self.line or not self.lines:
            return
        self.counts["bad lines"] += 1
        self.line = self.random.choice(self.lines)
        self.add_line(self.line, keep=True)
        self.link_until = now() + 4 * S
        self.at(self.random.uniform(0.2, 1.5), self.mend)

    def add_line(self, line, keep=False):
        hosts = self.fleet.hosts
        added = hosts.attempt(NEAR, "tc", "qdisc", "add", "dev", DEVICES[NEAR], "root", *line).returncode == 0
        if added and not keep:
            hosts.run(NEAR, "tc", "qdisc", "del", "dev", DEVICES[NEAR], "root")
        return added

    def mend(self):
        self.fleet.hosts.run(NEAR, "tc", "qdisc", "del", "dev", DEVICES[NEAR], "root")
        self.line, self.link_until = None, now() + LINK_NS

    # ---- What is expected of the others ------------------------------------------------------------------------------

    @staticmethod
    def excuse(worker, for_ns):
        for session in worker.sessions:
            session.excused = session.peer.excused = now() + for_ns

    @staticmethod
    def doom(worker):
        """What its peers have with it now will be lost, however long they are kept from noticing that."""
        for session in worker.sessions:
            session.peer.doomed = session.peer.connections

    def watch_end(self, worker):
        """Returns a function that waits until the peers of a worker that has just been killed know of its end."""
        witnesses = []
        for session in worker.sessions:
            peer, other = session.peer, session.peer.worker
            able = other is not worker and other in self.alive() and not other.stopped and other.order != EXECUTE
            if able and session.state == peer.state == CONNECTED and other.scarce < now():
                witnesses.append((peer, peer.connections, other.run_delays(), other.calm_since))
        start = now()
        self.doom(worker)

        def wait():
            worker.process.wait()
            dead = now()
            for peer, connections, delay, calm_since in witnesses:
                self.await_notice(worker, peer, connections, start, dead, delay, calm_since)
            self.excuse(worker, S)
        return wait

    def await_notice(self, worker, peer, connections, start, dead, delay, calm_since):
        """Time for which its threads, or children of the dead, wait for a processor is not that of the library. What
        a thread that still waits has waited is not known yet."""
        by_link = peer.worker.host != worker.host and (self.line or self.cut_since or now() < self.link_until)
        limit = LINK_NS if by_link else NOTICE_NS[worker.backend]
        while peer.ended < start and peer.state == CONNECTED and peer.connections == connections:
            late = now() - dead - limit
            if peer.worker.scarce > start or peer.worker.calm_since != calm_since:
                return
            if late > 0 and late > peer.worker.delayed_since(delay) and not self.is_busy(peer, late):
                raise peer.worker.failure(f"session {peer.index}, in {peer.call}, does not notice within "
                                          f"{limit // 10**6} ms that {worker.name()} has been killed: after "
                                          f"{(now() - dead) // 10**6} ms, of which its threads have waited for "
                                          f"{peer.worker.delayed_since(delay) // 10**6} ms", True)
            time.sleep(0.0005)  # looks at what the worker writes to shared memory
        self.counts["notices"] += 1
        if not by_link and peer.ended >= start:
            self.slowest[worker.backend] = max(self.slowest[worker.backend], peer.ended - dead)

    def is_busy(self, peer, late):
        return late < BUSY_NS and (peer.worker.is_runnable() or self.fleet.newborns())

    def watch(self):
        """Judges what the workers say. All pipes are read first, because a worker waits while its pipe is full."""
        said = [(worker, worker.read()) for worker in self.fleet.workers if worker.process]
        for worker, lines in said:
            status = worker.process.poll()
            for line in lines + (worker.read() if status is not None else []):
                self.judge(worker, line)
            if status is not None and status != -signal.SIGKILL:
                if status != 0 or worker.order != FINISH:
                    raise worker.failure(f"ended with {status}")
                self.launch(worker)

    def judge(self, worker, line):
        kind, *words = line.split()
        is_error = line.startswith("viaduct: error") and worker.scarce + S < now()
        if line == "running" or line.startswith("viaduct: ") and not is_error:
            return
        if kind not in ("lost", "failed", "unopened"):
            raise worker.failure(line)
        session, when, connection = self.fleet.sessions[int(words[0])], int(words[1]), int(words[2])
        peer = session.peer.worker
        by_link = worker.host != peer.host or kind == "unopened" and worker.host == FAR
        link = by_link and (self.cut_since or when < self.link_until)
        by_peer = when < session.excused or kind != "unopened" and connection == session.doomed
        if "scarce" in words or link or by_peer or kind == "lost" and peer.scarce + S > when:
            self.counts["explained " + kind] += 1
            return
        raise worker.failure(f"nothing explains '{line}'")

    def check_calls(self):
        for worker in self.alive():
            if not worker.stopped and not self.cut_since:
                for session in worker.sessions:
                    self.check_call(session)

    def check_call(self, session):
        worker, peer = session.worker, session.peer.worker
        if peer.stopped:
            return
        since, progress = session.since, session.progress  # the worker changes them
        calm = max(worker.calm_since, peer.calm_since)
        if since and self.lasts(max(since, calm)) > self.slowness * CALL_NS:
            raise worker.failure(f"session {session.index} has been in {session.call} for "
                                 f"{self.lasts(since) / S:.0f} s", True)
        if peer in self.alive() and self.lasts(max(progress, calm)) > self.slowness * STUCK_NS:
            raise worker.failure(f"session {session.index}, in {session.call}, has received nothing for "
                                 f"{self.lasts(progress) / S:.0f} s", True)

    def record_holds(self):
        while True:
            begin = now()
            time.sleep(0.1)
            if now() - begin > HELD_NS:
                self.holds.append((now(), now() - begin))

    def lasts(self, since):
        """Without the time for which this script did not run: perhaps the machine did not, either."""
        return now() - since - sum(min(length, end - since) for end, length in self.holds if end > since)

    # ---- From beginning to end ---------------------------------------------------------------------------------------

    def run(self, seconds):
        self.begin()
        self.at(self.slowness * SPARED_S, self.spare)
        end, next_act, last_check = now() + int(seconds * S), now() + S, now()
        while now() < end:
            self.watch()
            if now() - last_check < HELD_NS:  # after that, workers may have waited for this script, or with it
                self.check_calls()
            last_check = now()
            for item in [item for item in self.later if item[0] <= now()]:
                self.later.remove(item)
                item[1](*item[2])
            if now() >= next_act:
                self.act()
                next_act = now() + int(self.slowness * self.random.uniform(0.02, 0.4) * S)
            time.sleep(0.01)  # between looks at the board
        self.end()

    def end(self):
        for _, action, arguments in sorted(self.later, key=lambda item: item[0]):
            if action in (self.go_on, self.mend, self.repair):
                action(*arguments)
        for worker in self.fleet.workers:
            if worker.process and worker.process.poll() == -signal.SIGKILL:
                self.launch(worker)
        self.watch()
        self.fleet.workers = [worker for worker in self.fleet.workers if worker.process]
        self.fleet.finish()

    def summary(self, seed):
        of_sessions = {name: self.fleet.total(name, self.fleet.sessions)
                       for name in ("connections", "messages", "bytes", "losses", "cancelled")}
        of_workers = {name: self.fleet.total(name, self.fleet.workers) for name in ("forks", "storms", "shortages")}
        slowest = ", ".join(f"{value / 1e6:.1f} ms over {name}" for name, value in sorted(self.slowest.items()))
        processes = ", ".join(f"{self.counts[api]} {api}" for api in APIS)
        return (f"chaos: seed {seed}: {processes} processes, {of_sessions['connections'] // 2} connections, "
                f"{of_sessions['messages']} messages, {of_sessions['bytes'] / 1e6:.0f} MB; "
                + ", ".join(f"{self.counts[name]} {name}"
                            for name in ("kills", "execs", "stops", "restarts", "cuts", "bad lines", "spared pairs"))
                + f", {of_workers['forks']} forks, {of_sessions['cancelled']} cancelled threads, "
                f"{of_workers['shortages'] // 2} shortages, {of_workers['storms']} signal storms; "
                f"{of_sessions['losses']} losses, all explained; "
                f"{self.counts['notices']} deaths noticed, the slowest after {slowest}"
                + "".join(f"; this script was held for {length / S:.1f} s" for _, length in self.holds))


def main():
    build, seconds, seed = pathlib.Path(sys.argv[1]).resolve(), float(sys.argv[2]), int(sys.argv[3])
    in_guest = sys.argv[4:] == ["guest"]
    if not in_guest:
        become_ordinary(build / "tests/chaos/vipl_worker")
        enter()
    print(f"chaos: seed {seed}", flush=True)
    with Guest() if in_guest else Hosts() as hosts:
        hosts.settings["VIADUCT_TCP_TIMEOUT_MS"] = str(TCP_TIMEOUT_MS)
        with Fleet(build, hosts, GUEST_PLACES if in_guest else PLACES) as workers:
            chaos = Chaos(workers, seed, in_guest)
            try:
                chaos.run(seconds)
            except Failed as failure:
                print(f"{failure}\nuntil then: {chaos.summary(seed)}\n"
                      f"chaos: FAILED; to repeat: ./dev chaos {'vm ' * in_guest}{seconds:g} {seed}")
                return 1
            print(chaos.summary(seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())

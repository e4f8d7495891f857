# SPDX-License-Identifier: BSD-3-Clause
"""What the ends of all APIs have in common."""
import os

PATIENCE_S = 20 * int(os.environ.get("CONFORMANCE_PATIENCE", "1"))  # reached only if something hangs
LOOK_S = 0.1   # between two looks for a word of the other end
RECEIVE_SIZE = 64
SIZE = 4096    # of the registered memory of an end: a receive, a send, and at TARGET what peers access


class BaseEnd:
    TARGET = 1024
    OLD, NEW = b"12345678", b"ABCDEFGH"  # what is there first, and what an atomic operation writes
    peer_data = b""
    peer_level = ()  # VIPL: the level that the peer is said to have

    def no_request(self, wire):
        """The word while the other end tries in vain, until it has told."""
        word = self.request(LOOK_S)
        while not wire.has_word():
            word = self.request(LOOK_S)
        wire.hear()
        return word

    def broken(self):
        """The words of an end whose connection an error breaks."""
        return [self.ended()]

    def keys_to_read(self):
        """The keys of memory that peers can only read."""
        self.other_memory = self.register(writable=False)
        return self.keys_of(self.other_memory)

    def keys_to_nothing(self):
        """The keys of memory that is no longer registered."""
        gone = self.register(writable=True)
        keys = self.keys_of(gone)
        gone.close()
        return keys

    def keys(self):
        return self.keys_of(self.region)

    def prepare(self):
        self.memory[self.TARGET:self.TARGET + len(self.OLD)] = self.OLD

    def target(self, length):
        return bytes(self.memory[self.TARGET:self.TARGET + length])


def received(word, data, immediate=None):
    """What a receive or a read says, with what it got."""
    if not word.endswith("SUCCESS"):
        return word
    text = bytes(data).decode("ascii", "backslashreplace")
    got = [word, f"\"{text}\"" if text else "", "" if immediate is None else f"immediate data {immediate:#x}"]
    return ", ".join(part for part in got if part)

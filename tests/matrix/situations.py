# SPDX-License-Identifier: BSD-3-Clause
"""What happens between a client and a server. A situation is a client and a server: functions that return the words of
this end's API, in the order in which they are said.

They get the class of their end, a Wire to the other end (two_ends.py), the number of a service, and the name of the
other end's API.
"""
import dataclasses
import typing

import two_ends
from ends import PATIENCE_S, RECEIVE_SIZE

SHORT_S = 2  # the time-out of a client that gives up
HELLO, WELCOME, NO = b"hello", b"welcome", b"no"
IMMEDIATE = 0x1234
SENDS_IMMEDIATE = ("vipl", "rpma")
HAS_ATOMICS = ("dat", "rpma")


@dataclasses.dataclass
class Situation:
    client: typing.Callable
    server: typing.Callable
    applies: typing.Callable[[str, str], bool] = lambda client, server: True
    deadly: bool = False  # an end dies


SITUATIONS = {}


def situation(name, **options):
    """Registers the functions `client` and `server` of a class."""
    def register(pair):
        SITUATIONS[name] = Situation(pair.client, pair.server, **options)
        return pair
    return register


def serve(end, wire, service, data=b""):
    """Accepts the first request, and returns the words."""
    end.listen(service)
    wire.tell("listening")
    word = end.request()
    return [word, end.accept(data)]


def call(end, wire, service, data=b"", timeout=PATIENCE_S):
    wire.hear()
    return [end.connect(service, data, timeout)]


def seen(data):
    """Devices pad private data with zeros."""
    text = bytes(data).rstrip(b"\0").decode()
    return f"private data \"{text}\"" if text else "no private data"


def join(end, wire, service, is_server):
    """Connects. The words are those of another situation."""
    (serve if is_server else call)(end, wire, service)
    meet(wire, "connected")


def meet(wire, word):
    """Waits until the other end is here, too."""
    wire.tell(word)
    assert wire.hear() == word


def with_vipl(client, server):
    return "vipl" in (client, server)


# ---- Connecting ------------------------------------------------------------------------------------------------------

@situation("connect")
class _:
    def client(End, wire, service, peer):
        end = End()
        return call(end, wire, service, HELLO) + [seen(end.peer_data)]

    def server(End, wire, service, peer):
        end = End()
        end.listen(service)
        wire.tell()
        words = [end.request(), seen(end.peer_data)]
        return words + [end.accept(WELCOME)]


@situation("reject")
class _:
    def client(End, wire, service, peer):
        end = End()
        return call(end, wire, service)

    def server(End, wire, service, peer):
        end = End()
        end.listen(service)
        wire.tell()
        return [end.request(), end.reject()]


@situation("reject_with_data")
class _:
    def client(End, wire, service, peer):
        end = End()
        return call(end, wire, service) + [seen(end.peer_data)]

    def server(End, wire, service, peer):
        end = End()
        end.listen(service)
        wire.tell()
        return [end.request(), end.reject(NO)]


@situation("time_out")
class _:
    def client(End, wire, service, peer):
        end = End()
        words = call(end, wire, service, timeout=SHORT_S)
        wire.tell("gave up")
        return words

    def server(End, wire, service, peer):
        end = End()
        end.listen(service)
        wire.tell()
        words = [end.request()]
        wire.hear()
        return words + [end.accept()]


@situation("no_listener")
class _:
    def client(End, wire, service, peer):
        return [End().connect(service)]

    def server(End, wire, service, peer):
        return []


@situation("server_dies_before_it_answers", deadly=True)
class _:
    def client(End, wire, service, peer):
        end = End()
        return call(end, wire, service)

    def server(End, wire, service, peer):
        end = End()
        end.listen(service)
        wire.tell()
        end.request()
        two_ends.die()


# ---- Attributes ------------------------------------------------------------------------------------------------------

def of_vipl(End, **attributes):
    """An end with these attributes in VIPL; other APIs do not have them."""
    return End(**attributes) if End.__module__ == "vipl_end" else End()


def time_for(End, peer):
    """Between two VIs a conflict lasts until the client gives up."""
    return SHORT_S if End.__module__ == "vipl_end" and peer == "vipl" else PATIENCE_S


def try_level(End, wire, service, peer, is_server, level):
    end = of_vipl(End, level=level)
    if not is_server:
        words = call(end, wire, service, timeout=time_for(End, peer))
        wire.tell("done")
        return words
    end.listen(service)
    wire.tell()
    if End.__module__ != "vipl_end":
        return [end.no_request(wire)]
    words = [end.request(), end.accept()]
    wire.hear()
    return words


@situation("unreliable_client", applies=lambda client, server: client == "vipl")
class _:
    def client(End, wire, service, peer):
        return try_level(End, wire, service, peer, False, "UNRELIABLE")

    def server(End, wire, service, peer):
        return try_level(End, wire, service, peer, True, "RELIABLE_DELIVERY")


@situation("unreliable_server", applies=lambda client, server: server == "vipl")
class _:
    def client(End, wire, service, peer):
        return try_level(End, wire, service, peer, False, "RELIABLE_DELIVERY")

    def server(End, wire, service, peer):
        return try_level(End, wire, service, peer, True, "UNRELIABLE")


@situation("transfer_size", applies=with_vipl)
class _:
    def client(End, wire, service, peer):
        end = of_vipl(End, max_transfer=4096)
        words = call(end, wire, service, timeout=time_for(End, peer))
        wire.tell("done")
        return words

    def server(End, wire, service, peer):
        end = of_vipl(End, max_transfer=8192)
        words = serve(end, wire, service)
        wire.hear()
        return words


@situation("reliable_reception", applies=with_vipl)
class _:
    def client(End, wire, service, peer):
        end = of_vipl(End, level="RELIABLE_RECEPTION")
        words = call(end, wire, service) + list(end.peer_level)
        wire.hear()
        end.send(HELLO)
        return words + [end.sent(), end.receive()]

    def server(End, wire, service, peer):
        end = of_vipl(End, level="RELIABLE_RECEPTION")
        words = serve(end, wire, service) + list(end.peer_level)
        wire.tell("connected")
        words.append(end.receive())
        end.send(WELCOME)
        return words + [end.sent()]


# ---- Messages --------------------------------------------------------------------------------------------------------

@situation("send")
class _:
    def client(End, wire, service, peer):
        end = End()
        join(end, wire, service, False)
        end.send(HELLO)
        return [end.sent(), end.receive()]

    def server(End, wire, service, peer):
        end = End()
        join(end, wire, service, True)
        words = [end.receive()]
        end.send(WELCOME)
        return words + [end.sent()]


@situation("send_immediate", applies=lambda client, server: client in SENDS_IMMEDIATE)
class _:
    def client(End, wire, service, peer):
        end = End()
        join(end, wire, service, False)
        end.send(HELLO, IMMEDIATE)
        return [end.sent()]

    def server(End, wire, service, peer):
        end = End()
        join(end, wire, service, True)
        return [end.receive()]


@situation("no_receive")
class _:
    """The message of a VI breaks the connection; others wait for the receive."""

    def client(End, wire, service, peer):
        end = End(receives=0)
        join(end, wire, service, False)
        end.send(HELLO)
        wire.tell("sent")
        if End.__module__ == "vipl_end":
            return [end.sent(), end.ended()]
        return [end.sent()]

    def server(End, wire, service, peer):
        end = End(receives=0)
        join(end, wire, service, True)
        wire.hear()
        if peer == "vipl":
            return end.broken()
        end.post_receive()
        return [end.receive()]


@situation("long_message")
class _:
    def client(End, wire, service, peer):
        end = End()
        join(end, wire, service, False)
        end.send(bytes(2 * RECEIVE_SIZE))
        words = [end.sent(), end.ended()]
        meet(wire, "done")
        return words

    def server(End, wire, service, peer):
        end = End()
        join(end, wire, service, True)
        words = [end.receive()] + end.broken()
        meet(wire, "done")
        return words


# ---- Memory of the peer ----------------------------------------------------------------------------------------------

def owner(End, wire, service, then):
    """The end whose memory is accessed. `then` returns its words when the other end is done."""
    end = End()
    end.prepare()
    join(end, wire, service, True)
    wire.tell(" ".join(map(str, end.keys())))
    return then(end, wire)


def user(End, wire, service, act):
    end = End()
    join(end, wire, service, False)
    keys = tuple(map(int, wire.hear().split()))
    words = act(end, keys)
    wire.tell("done")
    return words


def shown(end, wire):
    """The memory, when the other end is done."""
    wire.hear()
    return [f"memory \"{end.target(8).decode('ascii', 'backslashreplace')}\""]


@situation("write")
class _:
    def client(End, wire, service, peer):
        # A write of a VI may complete before the data arrive, but a read is executed after it.
        return user(End, wire, service, lambda end, keys: [end.write(keys, HELLO), end.read(keys, 8)])

    def server(End, wire, service, peer):
        return owner(End, wire, service, shown)


@situation("write_immediate")
class _:
    def client(End, wire, service, peer):
        return user(End, wire, service, lambda end, keys: [end.write(keys, HELLO, IMMEDIATE)])

    def server(End, wire, service, peer):
        return owner(End, wire, service, lambda end, wire: [end.receive(with_data=False)] + shown(end, wire))


def be_refused(End, wire, service):
    """A client that writes where it may not."""
    end = End()
    join(end, wire, service, False)
    keys = tuple(map(int, wire.hear().split()))
    words = [end.write(keys, HELLO), end.ended()]
    meet(wire, "done")
    return words


def refuse(End, wire, service, keys_of):
    """The server, which lets the client have the keys that `keys_of` returns."""
    end = End()
    join(end, wire, service, True)
    wire.tell(" ".join(map(str, keys_of(end))))
    words = end.broken()
    meet(wire, "done")
    return words


@situation("write_without_right")
class _:
    def client(End, wire, service, peer):
        return be_refused(End, wire, service)

    def server(End, wire, service, peer):
        return refuse(End, wire, service, lambda end: end.keys_to_read())


@situation("write_to_gone_memory")
class _:
    def client(End, wire, service, peer):
        return be_refused(End, wire, service)

    def server(End, wire, service, peer):
        return refuse(End, wire, service, lambda end: end.keys_to_nothing())


@situation("read")
class _:
    def client(End, wire, service, peer):
        return user(End, wire, service, lambda end, keys: [end.read(keys, 8)])

    def server(End, wire, service, peer):
        return owner(End, wire, service, shown)


@situation("atomic", applies=lambda client, server: client in HAS_ATOMICS)
class _:
    def client(End, wire, service, peer):
        return user(End, wire, service, lambda end, keys: [end.atomic(keys)])

    def server(End, wire, service, peer):
        return owner(End, wire, service, shown)


# ---- The end of a connection -----------------------------------------------------------------------------------------

def leave(End, wire, service, is_server):
    end = End()
    join(end, wire, service, is_server)
    words = [end.disconnect(), end.receive()]
    wire.tell("left")
    return words


def be_left(End, wire, service, is_server):
    end = End()
    join(end, wire, service, is_server)
    words = [end.ended(), end.receive()]
    wire.hear()
    return words


def die(End, wire, service, is_server):
    end = End()
    join(end, wire, service, is_server)
    two_ends.die()


@situation("client_disconnects")
class _:
    def client(End, wire, service, peer):
        return leave(End, wire, service, False)

    def server(End, wire, service, peer):
        return be_left(End, wire, service, True)


@situation("server_disconnects")
class _:
    def client(End, wire, service, peer):
        return be_left(End, wire, service, False)

    def server(End, wire, service, peer):
        return leave(End, wire, service, True)


@situation("client_dies", deadly=True)
class _:
    def client(End, wire, service, peer):
        die(End, wire, service, False)

    def server(End, wire, service, peer):
        return be_left(End, wire, service, True)


@situation("server_dies", deadly=True)
class _:
    def client(End, wire, service, peer):
        return be_left(End, wire, service, False)

    def server(End, wire, service, peer):
        die(End, wire, service, True)


@situation("reconnect")
class _:
    def client(End, wire, service, peer):
        end = End()
        join(end, wire, service, False)
        end.disconnect()
        wire.hear()
        end.renew()
        words = call(end, wire, service)
        end.send(HELLO)
        return words + [end.sent()]

    def server(End, wire, service, peer):
        end = End()
        join(end, wire, service, True)
        end.ended()
        end.renew()
        wire.tell("ready")
        wire.tell("listening")
        return [end.request(), end.accept(), end.receive()]

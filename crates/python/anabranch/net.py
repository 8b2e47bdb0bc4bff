"""The transport on the network, for asyncio: connections and streams over UDP, encrypted.

    async with await ab.net.listen("127.0.0.1:0") as server:
        print(server.ticket)
        async for connection in server:
            ...

    async with await ab.net.connect(ticket) as connection:
        stream = await connection.open()

Nothing is lost when a task is cancelled: a cancelled read, accept or open has taken nothing, and a cancelled write has written a part, which
`stream.written` counts.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any, Iterable, Literal, Mapping, TypedDict, Union

from ._native import Error, net as _net

Key = _net.Key
PublicKey = _net.PublicKey
Ticket = _net.Ticket

if TYPE_CHECKING:
    import os
    from types import TracebackType

    from typing_extensions import Self, Unpack

    _Bytes = Union[bytes, bytearray, memoryview]
    _Law = Union[str, Mapping[str, Any]]

    class _Settings(TypedDict, total=False):
        timeout: float
        idle_timeout: float
        keep_alive: float | None
        connections_max: int
        connections_per_key: int
        connections_per_address: int
        streams: int
        paths: int
        receive_buffer: int
        receive_buffer_max: int
        send_buffer: int
        send_buffer_max: int
        send_memory: int
        datagram_send_buffer: int
        datagram_receive_buffer: int
        rate_max: str | None
        scheduling: str
        socket_buffer: int
        qlog: str | os.PathLike[str] | None

__all__ = [
    "BindError",
    "ClosedError",
    "ConnectError",
    "Connection",
    "DatagramError",
    "IncompleteReadError",
    "InvalidKeyError",
    "Key",
    "LostError",
    "NetError",
    "PathError",
    "PublicKey",
    "ReceiveStream",
    "Relay",
    "ResetError",
    "SendStream",
    "Server",
    "StoppedError",
    "Stream",
    "Ticket",
    "TicketError",
    "TooLongError",
    "connect",
    "listen",
    "relay",
]

# The default limit of a `read` to the end, so that a peer cannot fill this end's memory.
_LIMIT = 1 << 26

# The limit of bytes in one step of an iteration.
_CHUNK = 1 << 16

# The addresses of a relay's name that are asked.
_RELAY_ADDRESSES = 4

# Operations that may complete in a row without a turn of the loop. Other tasks, timers and Ctrl-C wait for no more than these.
_IN_A_ROW = 16


class NetError(Error):
    """The base of all exceptions of the transport, except Python's own."""


class BindError(NetError, OSError):
    """No socket can be bound, or the settings cannot work."""


class ConnectError(NetError, ConnectionError):
    """Nobody answers, or the peer refuses."""


class InvalidKeyError(NetError):
    """A key, or a file of one, cannot be used."""


class TicketError(NetError):
    """The text is not a valid ticket."""


class PathError(NetError):
    """A path cannot be added, changed or removed."""


class ClosedError(NetError):
    """This handle, or the connection, is closed for this operation."""


class LostError(NetError, ConnectionError):
    """The connection is lost; `reason` is `reset`, `gave_way`, `port_closed`, `timed_out`, `stalled`, `aborted`, `misbehaved` or `endpoint_gone`."""

    reason: Literal["reset", "gave_way", "port_closed", "timed_out", "stalled", "aborted", "misbehaved", "endpoint_gone"]

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message, reason)
        self.reason = reason  # type: ignore[assignment]

    def __str__(self) -> str:
        return self.args[0]


class _CodeError(NetError):
    def __init__(self, message: str, code: int) -> None:
        super().__init__(message, code)
        self.code = code

    def __str__(self) -> str:
        return self.args[0]


class StoppedError(_CodeError):
    """The peer has refused the rest of a stream, with a code of its application."""


class ResetError(_CodeError):
    """The peer has reset a stream, with a code of its application: the received data is incomplete."""


class DatagramError(NetError):
    """A datagram cannot be sent: it has more than `max_size` bytes, or that is 0, as an end takes no datagrams."""

    def __init__(self, message: str, max_size: int) -> None:
        super().__init__(message, max_size)
        self.max_size = max_size

    def __str__(self) -> str:
        return self.args[0]


class IncompleteReadError(NetError, EOFError):
    """The stream ended before the requested number of bytes."""


class TooLongError(NetError):
    """A stream is longer than the limit."""


class _Thread(threading.local):
    """The state of a thread for the loop that it ran last."""

    loop = staticmethod(lambda: None)
    bell = None
    left = _IN_A_ROW


_thread = _Thread()
_bells: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def _bell():
    """The bell of the running loop."""
    loop = asyncio.get_running_loop()
    if _thread.loop() is not loop:
        bell = _bells.get(loop)
        if bell is None:
            bell = _net.Bell()
            try:
                loop.add_reader(bell.fileno(), bell.ring)
            except NotImplementedError:
                raise NetError(
                    "this event loop cannot watch a socket: run a SelectorEventLoop, "
                    "on Windows by asyncio.WindowsSelectorEventLoopPolicy"
                ) from None
            _bells[loop] = bell
        _thread.loop, _thread.bell = weakref.ref(loop), bell
    return _thread.bell


async def _finish(start, *args):
    """Runs an operation. If this is cancelled, the operation has had no effect; else its result is returned."""
    if _thread.left <= 0:
        # The turn of the loop comes before the operation: a cancellation after it would lose the result.
        await asyncio.sleep(0)
        _thread.left = _IN_A_ROW
    _thread.left -= 1
    operation = start(_bell(), *args)
    try:
        while operation.poll():
            future = asyncio.get_running_loop().create_future()
            operation.wait(future)
            await future
            _thread.left = _IN_A_ROW
        return operation.result()
    finally:
        operation.close()


def _immutable(data):
    return data if type(data) is bytes else memoryview(data).tobytes()


class _Block:
    """What an `async with` block is for: `_leave` is called at its end."""

    __slots__ = ()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._leave(kind)

    async def _leave(self, failure: type[BaseException] | None) -> None:
        raise NotImplementedError


class _Sends(_Block):
    """The methods of streams to the peer."""

    __slots__ = ()
    _send: Any

    async def write(self, data: _Bytes) -> None:
        """Writes all of `data`, and waits while there is no room for it."""
        await _finish(self._send.write, _immutable(data))

    async def finish(self) -> None:
        """Ends the stream after what has been written, which is still delivered."""
        self._send.finish()

    async def stopped(self) -> int | None:
        """Waits until the peer has received the finished stream and returns None, or returns the code with which the peer refused it."""
        return await _finish(self._send.stopped)

    def reset(self, code: int = 0) -> None:
        """Drops what has not been sent; the peer reads the code."""
        self._send.reset(code)

    def set_priority(self, level: int, weight: int = 1) -> None:
        """Streams of a lower level, 0 to 7, go first; those of a level share it by weight. A new stream has level 3 and weight 1."""
        self._send.set_priority(level, weight)

    @property
    def written(self) -> int:
        """Bytes that the stream has accepted, also from cancelled writes."""
        return self._send.written


class _Receives(_Block):
    """The methods of streams from the peer."""

    __slots__ = ()
    _receive: Any

    async def read(self, n: int = -1, *, limit: int = _LIMIT) -> bytes:
        """At least one byte and at most `n`, or b"" at the end. Without `n` everything up to the end, at most `limit` bytes."""
        if n < 0:
            return await _finish(self._receive.read_all, limit)
        return await _finish(self._receive.read, n)

    async def read_exactly(self, n: int) -> bytes:
        """Exactly `n` bytes."""
        return await _finish(self._receive.read_exactly, n)

    def stop(self, code: int = 0) -> None:
        """Refuses the rest with a code of the application, or 0 if it has not begun; what has arrived is dropped."""
        self._receive.stop(code)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        chunk = await _finish(self._receive.read, _CHUNK)
        if not chunk:
            raise StopAsyncIteration
        return chunk


class SendStream(_Sends):
    """A stream to the peer. One that is given up before `finish` is reset, so that the peer does not take it for complete."""

    __slots__ = ("_send", "__weakref__")

    def __init__(self, send: Any) -> None:
        self._send = send

    async def _leave(self, failure: type[BaseException] | None) -> None:
        _end(self._send, failure)


class ReceiveStream(_Receives):
    """A stream of the peer. One that is given up before its end is stopped."""

    __slots__ = ("_receive", "__weakref__")

    def __init__(self, receive: Any) -> None:
        self._receive = receive

    async def _leave(self, failure: type[BaseException] | None) -> None:
        self.stop()


class Stream(_Sends, _Receives):
    """A pair of streams, one in each direction."""

    __slots__ = ("_send", "_receive", "__weakref__")

    def __init__(self, pair: Any) -> None:
        self._send, self._receive = pair

    async def _leave(self, failure: type[BaseException] | None) -> None:
        _end(self._send, failure)
        self.stop()


def _end(send, failure):
    """Ends a stream after an `async with` block: finishes it, or resets it if the block failed."""
    if failure is None:
        try:
            send.finish()
        except (ClosedError, StoppedError):
            pass
    else:
        send.reset(0)


class Connection(_Block):
    """A connection. Its streams come in pairs (`open`, `accept`, `async for`) or singly (`open_stream`, `accept_stream`, messages)."""

    __slots__ = ("_inner", "_ticket", "_begun", "__weakref__")

    def __init__(self, inner: Any, ticket: Ticket | str | None = None) -> None:
        self._inner = inner
        self._ticket = ticket
        # Messages that a cancelled task has read in part.
        self._begun: deque[ReceiveStream] = deque()

    @property
    def peer(self) -> PublicKey:
        """The peer's public key."""
        return self._inner.peer

    async def open(self) -> Stream:
        """Opens a pair of streams. The peer learns of it at once."""
        return Stream(await _finish(self._inner.open))

    async def accept(self) -> Stream:
        """Waits for a pair that the peer has opened."""
        return Stream(await _finish(self._inner.accept))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Stream:
        try:
            return await self.accept()
        except ClosedError:
            raise StopAsyncIteration from None

    async def open_stream(self) -> SendStream:
        """Opens a stream to the peer, which learns of it from its first bytes or its end."""
        return SendStream(await _finish(self._inner.open_stream))

    async def accept_stream(self) -> ReceiveStream:
        """Waits for a stream that the peer has opened."""
        return ReceiveStream(await _finish(self._inner.accept_stream))

    async def send_message(self, data: _Bytes) -> None:
        """Sends a message as a stream of its own. If this is cancelled, the peer gets all of it or an error."""
        async with await self.open_stream() as stream:
            await stream.write(data)

    async def accept_message(self, *, limit: int = _LIMIT) -> bytes:
        """Waits for a message of the peer, of at most `limit` bytes, in the order in which they begin."""
        stream = self._begun.popleft() if self._begun else await self.accept_stream()
        try:
            return await stream.read(limit=limit)
        except asyncio.CancelledError:
            self._begun.append(stream)
            raise

    def send_datagram(self, data: _Bytes, *, within: float | None = None, urgent: bool = False) -> None:
        """Sends a datagram of at most `max_datagram_size` bytes without waiting. It arrives once or not at all; with `within`, it is dropped if it has not
        left in so many seconds. Without room in the send buffer, the oldest that wait are dropped. An urgent one goes before
        others, and over several paths on the one on which it arrives first."""
        self._inner.send_datagram(_immutable(data), within, urgent)

    async def read_datagram(self) -> bytes:
        """Waits for the next datagram, in the order of arrival. Of datagrams that nobody reads, the oldest are dropped."""
        return await _finish(self._inner.read_datagram)

    @property
    def max_datagram_size(self) -> int:
        """The bytes of the largest datagram that can be sent now. It grows when the paths are found to carry larger packets, and may shrink again."""
        return self._inner.max_datagram_size

    def set_rate_max(self, rate: str | None) -> None:
        """Limits the rate at which this end sends from now on, such as "20Mbit/s", or takes the limit away."""
        self._inner.set_rate_max(rate)

    async def close(self) -> None:
        """Finishes all streams and waits until the peer has received everything. The peer may still send."""
        await _finish(self._inner.close)

    async def closed(self) -> None:
        """Waits until both ends have closed and have received everything."""
        await _finish(self._inner.closed)

    def abort(self) -> None:
        """Ends the connection at once. What has not been delivered is lost."""
        self._inner.abort()

    def stats(self) -> dict[str, Any]:
        """Counters of this end, what limits it, and for how long each limit did; zeros when the connection is over."""
        return self._inner.stats()

    def paths(self) -> list[dict[str, Any]]:
        """The paths, each a dict."""
        return self._inner.paths()

    async def add_path(self, local: str, remote: str) -> int:
        """Sets up a path from a local IP address to an address of the peer, and waits until it carries data. Returns its id."""
        return await _finish(self._inner.add_path, local, remote)

    async def add_paths(self, ticket: Ticket | str | None = None) -> int:
        """Sets up a path for each interface of this computer that has none. Returns how many are new."""
        ticket = self._ticket if ticket is None else ticket
        if ticket is None:
            raise PathError("who accepted the connection needs a ticket to know the peer's addresses")
        return await _finish(self._inner.add_paths, ticket)

    def remove_path(self, path: int) -> None:
        """Abandons a path. Its data in flight is sent again on the other paths."""
        self._inner.remove_path(path)

    def set_path_status(self, path: int, status: Literal["active", "standby"]) -> None:
        """Sets the status of a path: "active", or "standby" for a backup."""
        self._inner.set_path_status(path, status)

    async def _leave(self, failure: type[BaseException] | None) -> None:
        if failure is None:
            await self.close()
        else:
            self.abort()


class Server(_Block):
    """An endpoint that accepts connections. They go on when it is closed."""

    __slots__ = ("_inner", "__weakref__")

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    @property
    def ticket(self) -> Ticket:
        """What a client needs to connect: the addresses and the public key."""
        return self._inner.ticket

    @property
    def addresses(self) -> list[str]:
        """The addresses of its sockets."""
        return self._inner.addresses

    @property
    def key(self) -> PublicKey:
        """Its public key."""
        return self._inner.key

    def add_address(self, address: str) -> str:
        """Binds another socket, for more paths. Returns its address."""
        return self._inner.add_address(address)

    async def accept(self) -> Connection:
        """Waits for a connection."""
        return Connection(await _finish(self._inner.accept))

    async def join(self, relay: Ticket | str) -> None:
        """Joins a relay, so that clients reach this server through it, also behind a NAT; from then on the ticket names it. A relay is its ticket,
        or `HOST:PORT`, or `KEY@HOST:PORT` where somebody else could answer in its place."""
        await _finish(self._inner.join, await _ticket_of_relay(self._inner, relay))

    async def connect(self, ticket: Ticket | str) -> Connection:
        """Connects from the sockets and with the key of this endpoint."""
        return Connection(await _finish(self._inner.connect, ticket), ticket)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Connection:
        try:
            return await self.accept()
        except ClosedError:
            raise StopAsyncIteration from None

    async def wait_idle(self) -> None:
        """Waits until no connection is left: the end that closes first keeps it for two seconds, in case the peer has missed the end."""
        await _finish(self._inner.wait_idle)

    def close(self) -> None:
        """Accepts no more connections."""
        self._inner.close()

    async def _leave(self, failure: type[BaseException] | None) -> None:
        self.close()


async def listen(
    *addresses: str,
    key: Key | None = None,
    keys: Iterable[PublicKey | str] | None = None,
    relay: Ticket | str | None = None,
    cc: _Law | None = None,
    **settings: Unpack[_Settings],
) -> Server:
    """Accepts connections at these addresses, or at all local addresses, from every client with the ticket, or only from the owners of `keys`.
    With `relay`, also through it: see `Server.join`."""
    server = Server(_net.Endpoint(addresses, key, keys, cc, settings, accepts=True))
    if relay is not None:
        try:
            await server.join(relay)
        except BaseException:
            server.close()
            raise
    return server


async def connect(
    ticket: Ticket | str,
    *,
    addresses: Iterable[str] = (),
    key: Key | None = None,
    cc: _Law | None = None,
    **settings: Unpack[_Settings],
) -> Connection:
    """Connects to the endpoint of a ticket, from these local addresses or from any."""
    endpoint = _net.Endpoint(addresses, key, None, cc, settings, accepts=False)
    return Connection(await _finish(endpoint.connect, ticket), ticket)


class Relay(_Block):
    """A relay, at which ends meet that cannot reach each other, such as two behind NATs. It reads nothing of what it forwards."""

    __slots__ = ("_inner",)

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    @property
    def ticket(self) -> Ticket:
        """What `listen` needs to join."""
        return self._inner.ticket

    def close(self) -> None:
        """Ends it. Connections that had found a direct way go on."""
        self._inner.close()

    async def _leave(self, failure: type[BaseException] | None) -> None:
        self.close()


async def relay(
    address: str = "[::]:4477",
    *,
    key: Key | None = None,
    keys: Iterable[PublicKey | str] | None = None,
    tcp: str | None = None,
) -> Relay:
    """Serves a relay at this address, for everybody or for the owners of `keys`; with `tcp`, also at that address over TCP, for networks that block UDP."""
    return Relay(_net.Relay(address, key, keys, tcp))


async def _ticket_of_relay(endpoint: Any, relay: Ticket | str) -> Ticket:
    if not isinstance(relay, str):
        return relay
    key, _, at = relay.rpartition("@")
    host, colon, port = at.rpartition(":")
    if not colon and not key:
        return Ticket(relay)
    if not host or not port.isdecimal():
        raise TicketError(f"{relay!r} is no relay: give its ticket, HOST:PORT, or KEY@HOST:PORT")
    found = await asyncio.get_running_loop().getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)
    ips = [str(where[0]) for *_, where in found]
    addresses = [f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}" for ip in ips]
    if key:
        return Ticket.of(key, addresses[:_RELAY_ADDRESSES])
    return await _finish(endpoint.find_relay, addresses[:_RELAY_ADDRESSES])

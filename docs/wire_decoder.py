#!/usr/bin/env python3
"""Decodes what anabranch says on a network. Written from wire.md alone, with nothing but Python's standard library.

    wire_decoder.py vectors wire.md     checks the vectors of the page against what the page says about them
    wire_decoder.py capture FILE        decodes a capture of sealed datagrams with the secrets that are in it

It is slow, and it leaks its keys to whoever measures its time: it is for reading, not for use.

A capture is a text file, a word and hexadecimal digits on each line:

    initiator KEY       the initiator's static secret key
    responder KEY       the responder's
    ephemeral KEY       a secret ephemeral key of the initiator, as many as there were handshakes
    > DATAGRAM          from the initiator
    < DATAGRAM          from the responder

The order of datagrams is that in which they came. A datagram that cannot be decoded is an error.
"""

import hashlib
import hmac
import re
import struct
import sys

from wire_ciphers import BASE, CIPHERS, ChaCha20Poly1305, Wrong, check, x25519


# --- Noise (sec. 3.2) ----------------------------------------------------------------------------------------------

def hash_of(*parts):
    return hashlib.blake2s(b"".join(parts)).digest()


def hmac_of(key, *parts):
    return hmac.new(key, b"".join(parts), hashlib.blake2s).digest()


def mac(key, *parts):
    return hmac_of(key, *parts)[:16]


class Noise:
    """Noise_IK_25519_ChaChaPoly_BLAKE2s, as somebody sees it who has all secrets but the responder's ephemeral one."""

    def __init__(self, prologue, initiator, responder):
        self.h = self.ck = hash_of(b"Noise_IK_25519_ChaChaPoly_BLAKE2s")
        self.initiator, self.responder = initiator, responder
        self.responder_public = x25519(responder, BASE)
        self.mix_hash(prologue)
        self.mix_hash(self.responder_public)

    def mix_hash(self, text):
        self.h = hash_of(self.h, text)

    def expand(self, text):
        key = hmac_of(self.ck, text)
        first = hmac_of(key, b"\1")
        return first, hmac_of(key, first, b"\2")

    def mix_key(self, text):
        self.ck, self.key = self.expand(text)
        self.count = 0

    def decrypt(self, sealed):
        text = ChaCha20Poly1305(self.key).open(bytes(4) + struct.pack("<Q", self.count), self.h, sealed)
        self.count += 1
        self.mix_hash(sealed)
        return text

    def first(self, message):
        """Message 1; and the payload."""
        ephemeral, static, payload = message[:32], message[32:80], message[80:]
        self.initiator_ephemeral = ephemeral
        self.mix_hash(ephemeral)
        self.mix_key(x25519(self.responder, ephemeral))
        public = self.decrypt(static)
        check(public == x25519(self.initiator, BASE), "it is another initiator's")
        self.mix_key(x25519(self.responder, public))
        return self.decrypt(payload)

    def second(self, message, ephemerals):
        """Message 2; and the payload."""
        secret = ephemerals.get(self.initiator_ephemeral)
        check(secret is not None, "the initiator's ephemeral key is not known")
        ephemeral, payload = message[:32], message[32:]
        self.mix_hash(ephemeral)
        self.mix_key(x25519(secret, ephemeral))
        self.mix_key(x25519(self.initiator, ephemeral))
        return self.decrypt(payload)

    def split(self):
        return self.expand(b"")


# --- The sealed form (sec. 3) --------------------------------------------------------------------------------------

class Session:
    """The keys of one handshake, those of the initiator's direction first."""

    def __init__(self, noise, cipher, indices):
        self.binding, self.cipher = noise.h, cipher
        # The index by which each end is named: a datagram of the initiator names the responder's.
        self.indices = indices
        make = CIPHERS[cipher]
        keys = [hmac_of(key, b"anabranch data key", bytes([cipher, 1]))[:make.key_len] for key in noise.split()]
        self.ciphers = {">": make(keys[0]), "<": make(keys[1])}
        self.seen = set()


class Connection:
    """All datagrams of one connection, in the order in which they came."""

    def __init__(self, initiator, responder, ephemerals):
        self.initiator, self.responder = initiator, responder
        self.ephemerals = {x25519(secret, BASE): secret for secret in ephemerals}
        self.public = x25519(responder, BASE)
        self.sessions, self.asked = [], {}
        self.noise = self.initiation = self.cookie = None
        self.parts = {}
        # The reset token of each index of the responder.
        self.tokens = {}
        # Those of the initiator's later addresses.
        self.later_tokens = {}

    def decode(self, side, datagram):
        """What a datagram is, as a dictionary."""
        check(len(datagram) >= 8, "it has no header")
        kind, index = datagram[0], struct.unpack(">I", datagram[4:8])[0]
        check(kind == 4 or datagram[1:4] == bytes(3), "the first four bytes are none of ours")
        if kind == 1 and side == ">":
            return self.decode_initiation(datagram, index)
        if kind == 2 and side == "<":
            return self.decode_response(datagram, index)
        if kind == 3 and side == "<":
            return self.decode_cookie(datagram, index)
        if kind == 5 and side == "<":
            return self.decode_reset(datagram, index)
        check(kind == 4, f"the kind {kind} is none of ours from this side")
        return self.decode_data(side, datagram, index)

    def decode_initiation(self, datagram, index):
        message, mac1, mac2 = datagram[8:-32], datagram[-32:-16], datagram[-16:]
        check(mac1 == mac(hash_of(b"anabranch mac1", self.public), datagram[:-32]), "mac1 is wrong")
        if any(mac2):
            check(self.cookie is not None, "there was no cookie")
            check(mac2 == mac(self.cookie + bytes(16), datagram[:-16]), "mac2 is wrong")
        noise = Noise(b"anabranch seal 2" + datagram[4:8], self.initiator, self.responder)
        payload = noise.first(message)
        if self.noise is None:
            self.noise, self.initiation = noise, (index, datagram[:-16])
        check(self.initiation == (index, datagram[:-16]), "an initiation that is sent again is another one")
        count = payload[0]
        offer, timestamp, rest = payload[1:1 + count], payload[1 + count:13 + count], payload[13 + count:]
        check(1 in offer, "ChaCha20-Poly1305 is not offered")
        self.offer = offer
        seconds, nanos = struct.unpack(">QI", timestamp)
        return {"kind": "initiation", "sender": index, "offer": [number for number in offer if number & 15 != 15],
                "has cookie": any(mac2), "time": (seconds - 2**62 - 10, nanos), "segment": counted(rest)}

    def decode_response(self, datagram, index):
        check(self.initiation is not None and index == self.initiation[0], "it answers another initiation")
        if self.sessions:
            check(datagram == self.response, "a response that is sent again is another one")
            return {"kind": "response", "again": True}
        payload = self.noise.second(datagram[8:], self.ephemerals)
        self.response = datagram
        sender, cipher = struct.unpack(">IB", payload[:5])
        check(cipher in CIPHERS and cipher in self.offer, f"the cipher {cipher} was not offered")
        self.sessions.append(Session(self.noise, cipher, {">": sender, "<": index}))
        segment = counted(payload[5:])
        (length,) = struct.unpack(">H", payload[5:7])
        self.tokens[sender] = payload[7 + length:23 + length]
        return {"kind": "response", "sender": sender, "cipher": cipher, "segment": segment}

    def decode_cookie(self, datagram, index):
        check(len(datagram) == 40, "a cookie has 40 bytes")
        check(self.initiation is not None and index == self.initiation[0], "it answers another initiation")
        cookie, tag = datagram[8:24], datagram[24:]
        mac1 = self.initiation[1][-16:]
        check(tag == mac(hash_of(b"anabranch cookie", self.public), mac1, cookie), "its mac is wrong")
        self.cookie = cookie
        return {"kind": "cookie", "cookie": cookie}

    def decode_reset(self, datagram, index):
        check(len(datagram) == 24, "a reset has 24 bytes")
        given = [self.tokens.get(index), *self.later_tokens.get(index, [])]
        check(datagram[8:] in given, "its token is wrong")
        return {"kind": "reset", "sender": index}

    def decode_data(self, side, datagram, index):
        path, (counter,) = datagram[1], struct.unpack(">Q", datagram[8:16])
        check(path < 16, f"there is no path {path}")
        session = next((session for session in self.sessions if session.indices[side] == index), None)
        check(session is not None, f"there is no session {index:08x}")
        number = (side, path, counter)
        nonce = struct.pack(">IQ", path, counter)
        plain = session.ciphers[side].open(nonce, datagram[:16], datagram[16:])
        check(number not in session.seen, f"{number} came before")
        session.seen.add(number)
        decoded = {"kind": "data", "session": self.sessions.index(session), "path": path, "counter": counter}
        return {**decoded, **self.decode_plain(side, session, plain)}

    def decode_plain(self, side, session, plain):
        (word,) = struct.unpack(">I", plain[:4])
        if word & 0xFFFFF0FF == 0:
            return {"segment": decode_segment(plain)}
        if word == 1:
            return self.decode_request(side, session, plain)
        if word == 2:
            return self.decode_answer(side, plain)
        if word == 3:
            (length,) = struct.unpack(">H", plain[4:6])
            check(8 + length <= len(plain), "a padded segment ends behind its datagram")
            check(not any(plain[8 + length:]), "the padding is not zero")
            return {"padding": len(plain) - 8 - length, "segment": decode_segment(plain[8:8 + length])}
        if word == 4:
            return self.decode_fragment(side, plain)
        if word == 5:
            return self.decode_token(side, session, plain)
        check(word & 0xFF0F0F0F == 0x0A0A0A0A, f"version 2 has no {word:08x}")
        return {"grease": f"{word:08x}"}

    def decode_request(self, side, session, plain):
        check(side == ">", "the responder asks for no keys")
        (sender,) = struct.unpack(">I", plain[4:8])
        noise = Noise(b"anabranch rekey 2" + session.binding, self.initiator, self.responder)
        check(noise.first(plain[8:104]) == b"", "a request has no payload")
        self.asked.setdefault(sender, (noise, session.cipher))
        return {"request": sender}

    def decode_answer(self, side, plain):
        check(side == "<", "the initiator gives no keys")
        sender, receiver = struct.unpack(">II", plain[4:12])
        check(receiver in self.asked, "nobody asked")
        noise, cipher = self.asked[receiver]
        if cipher is not None:
            check(noise.second(plain[12:60], self.ephemerals) == b"", "an answer has no payload")
            self.sessions.append(Session(noise, cipher, {">": sender, "<": receiver}))
            self.asked[receiver] = (noise, None)
            self.tokens[sender] = plain[60:76]
        return {"answer": sender}

    def decode_token(self, side, session, plain):
        check(side == "<", "the initiator gives no tokens")
        (index,) = struct.unpack(">I", plain[4:8])
        check(index == session.indices[">"], "the token is of another session")
        check(len(plain) >= 24, "a token has 16 bytes")
        self.later_tokens.setdefault(index, []).append(plain[8:24])
        return {"token": index}

    def decode_fragment(self, side, plain):
        number, offset, total = struct.unpack(">IHH", plain[4:12])
        text = plain[12:]
        check(text and offset + len(text) <= total, "a fragment ends behind its segment")
        parts = self.parts.setdefault((side, number), {})
        parts[offset] = text
        whole = b"".join(parts[at] for at in sorted(parts))
        decoded = {"fragment": number, "offset": offset, "total": total}
        if len(whole) == total:
            decoded["segment"] = decode_segment(whole)
            del self.parts[side, number]
        return decoded


def counted(text):
    (length,) = struct.unpack(">H", text[:2])
    check(2 + length <= len(text), "a segment ends behind its payload")
    return decode_segment(text[2:2 + length])


# --- The TCP form (sec. 1) -----------------------------------------------------------------------------------------

FLAGS = {0x200: "MSE", 0x10: "ACK", 8: "PSH", 4: "RST", 2: "SYN", 1: "FIN"}
MULTISTREAM = b"\x4d\x53"
VOID, DATAGRAM = 4094, 4095
RECORDS = {1: "finish", 2: "reset", 3: "stop", 4: "max stream data", 5: "acknowledge each"}


def decode_segment(text):
    """A segment in TCP form as a dictionary. Its checksum is not looked at; without ports it is a sealed one, which has nonces instead."""
    check(len(text) >= 20, "it has no TCP header")
    source, target, seq, ack, bits, window, total, nonce = struct.unpack(">HHIIHHHH", text[:20])
    end = (bits >> 12) * 4
    check(20 <= end <= len(text), "the data offset is wrong")
    flags = [name for bit, name in FLAGS.items() if bits & bit]
    # A sealed segment has no ports, and there the upper bits of a stream's name.
    page = target >> 8 if source == 0 and target & 0xF0FF == 0 else 0
    target &= 0xF0FF if page else 0xFFFF
    segment = {"source": source, "target": target, "seq": seq, "ack": ack, "flags": flags, "window": window}
    if source == target == 0:
        segment.update({name: value for name, value in (("nonce", nonce), ("sum", total)) if value})
    segment.update(decode_options(text[20:end], "SYN" in flags))
    segment.update(decode_content(text[end:], flags, page))
    if "expected" in segment and "sid" not in segment:
        stream, ssn = segment["expected"]
        segment["expected"] = page << 8 | stream, ssn
    return segment


def decode_options(text, is_syn):
    options = {}
    while text:
        kind = text[0]
        if kind == 0:
            break
        if kind == 1:
            text = text[1:]
            continue
        check(len(text) >= 2 and 2 <= text[1] <= len(text), f"the option {kind} does not end in the header")
        value, text = text[2:text[1]], text[text[1]:]
        if kind == 2 and is_syn:
            (options["mss"],) = struct.unpack(">H", value)
        elif kind == 3 and is_syn:
            (options["shift"],) = value
        elif kind == 4 and is_syn:
            check(not value, "SACK permitted has no value")
            options["sack permitted"] = True
        elif kind == 5 and not is_syn:
            edges = struct.unpack(f">{len(value) // 4}I", value)
            options["sack"] = list(zip(edges[::2], edges[1::2]))
        elif kind == 8:
            options["timestamps"] = struct.unpack(">II", value)
        elif kind == 253 and value[:2] == MULTISTREAM:
            options.update(decode_multistream(value[2:], is_syn))
    return options


def decode_multistream(value, is_syn):
    if is_syn:
        return {"multistream": tuple(value)} if len(value) == 4 else {}
    if len(value) == 9 and value[0] in (1, 2, 3):
        return {("challenge", "response", "leave")[value[0] - 1]: value[1:]}
    if len(value) == 5 and value[0] == 4:
        return {"extent": struct.unpack(">HH", value[1:])}
    if len(value) not in (4, 6, 12):
        return {}
    options = {"expected": (value[0], int.from_bytes(value[1:4], "big"))}
    if len(value) > 4:
        # In units of 8 us.
        options["delay"] = int.from_bytes(value[4:6], "big")
    if len(value) > 6:
        options["counts"] = struct.unpack(">HHH", value[6:])
    return options


def decode_content(text, flags, page):
    if not text:
        return {}
    if "MSE" not in flags or "SYN" in flags:
        return {"data": text}
    check(len(text) >= 4, "there is no stream header")
    sid, ssn = page << 8 | text[0], int.from_bytes(text[1:4], "big")
    if sid == VOID:
        check(len(text) == 4, "there is content after a void")
        return {"sid": sid, "void": ssn}
    if sid == DATAGRAM:
        return {"sid": sid, "data": text[4:]}
    check(len(text) >= 5, "there is no content after the stream header")
    if sid:
        return {"sid": sid, "ssn": ssn, "data": text[4:]}
    check(len(text) in (12, 20, 28, 36), "there are one to four records of eight bytes")
    records = []
    for kind, stream, code, number in struct.iter_unpack(">BBHI", text[4:]):
        check(kind in RECORDS, f"there is no record of kind {kind}")
        if kind < 4:
            stream, number = (number >> 24 & 15) << 8 | stream, number & 0xFFFFFF
        elif kind == 4:
            # What stands in the place of the code is how many streams of this name are over.
            stream, code = (code & 15) << 8 | stream, code >> 8
        records.append((RECORDS[kind], stream, code, number))
    return {"sid": 0, "ssn": ssn, "records": records}


def sum_is_right(text, source, target):
    """TCP's checksum, over the pseudo header of IPv4 or IPv6."""
    if len(source) == 4:
        pseudo = source + target + struct.pack(">BBH", 0, 6, len(text))
    else:
        pseudo = source + target + struct.pack(">II", len(text), 6)
    whole = pseudo + text + bytes(len(text) % 2)
    total = sum(struct.unpack(f">{len(whole) // 2}H", whole))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total == 0xFFFF


# --- The vectors (sec. 4): what the page says about each, in its words ---------------------------------------------

V4 = bytes([192, 0, 2, 1]), bytes([198, 51, 100, 2])
V6 = bytes.fromhex("20010db8" + "0" * 23 + "1"), bytes.fromhex("20010db8" + "0" * 23 + "2")
THERE, BACK = {"source": 50000, "target": 443}, {"source": 443, "target": 50000}
USUAL = {**THERE, "seq": 1010, "ack": 2000, "flags": ["MSE", "ACK"], "window": 512}
HELLO = {**THERE, "seq": 1001, "ack": 0, "flags": ["MSE", "ACK"], "window": 512, "sid": 3, "ssn": 258, "data": b"hello"}
UNSENT = {"source": 0, "target": 0, "seq": 1001, "ack": 0, "flags": ["MSE", "ACK"], "window": 512}
EMPTY = {**UNSENT, "sid": 4095, "data": b""}
SYN = {"mss": 1460, "shift": 10, "sack permitted": True, "window": 65535}
FINISH, CREDIT = ("finish", 3, 0, 260), ("max stream data", 255, 2, 4294967040)
TOKEN = bytes([1, 2, 3, 4, 5, 6, 7, 8])

SEGMENTS = {
    "syn": {**THERE, **SYN, "seq": 1000, "ack": 0, "flags": ["MSE", "SYN"], "multistream": (2, 16, 1, 20)},
    "syn-ack": {**BACK, **SYN, "seq": 4294967295, "ack": 1001, "flags": ["MSE", "ACK", "SYN"],
                "multistream": (2, 8, 0, 20), "timestamps": (16909060, 84281096)},
    "data": HELLO,
    "data-v6": HELLO,
    "plain": {**THERE, "seq": 1001, "ack": 0, "flags": ["ACK"], "window": 512, "data": b"hello"},
    "acknowledgement": {**USUAL, "sack": [(3000, 4000), (5000, 6000)], "expected": (3, 259), "timestamps": (1, 2)},
    "nonce": {**HELLO, "source": 0, "target": 0, "nonce": 43981, "sum": 4660},
    "sums": {**USUAL, "source": 0, "target": 0, "nonce": 65535, "sum": 1, "sack": [(3000, 4000), (5000, 6000)],
             "expected": (3, 259), "timestamps": (1, 2)},
    "many-streams": {**SYN, "source": 0, "target": 0, "seq": 1000, "ack": 0, "flags": ["MSE", "SYN"], "multistream": (2, 255, 7, 20)},
    "far-data": {**HELLO, "source": 0, "target": 0, "sid": 300},
    "far-acknowledgement": {**USUAL, "source": 0, "target": 0, "expected": (300, 258)},
    "far-records": {**USUAL, "source": 0, "target": 0, "sid": 0, "ssn": 5,
                    "records": [("finish", 300, 0, 260), ("max stream data", 4080, 255, 4294967040)]},
    "datagrams": {**SYN, "source": 0, "target": 0, "seq": 1000, "ack": 0, "flags": ["MSE", "SYN"], "multistream": (2, 255, 23, 20)},
    "datagram": {**EMPTY, "data": b"hello", "nonce": 43981, "sum": 4660},
    "void": {**UNSENT, "sid": 4094, "void": 5, "nonce": 43981, "sum": 4660},
    "empty-datagram": EMPTY,
    "datagram-acknowledgement": {**USUAL, "source": 0, "target": 0, "expected": (4095, 0)},
    "late-acknowledgement": {**USUAL, "expected": (3, 259), "delay": 125},
    "counting-acknowledgement": {**USUAL, "sack": [(3000, 4000), (5000, 6000)], "expected": (3, 259), "delay": 0,
                                 "counts": (1, 65535, 0)},
    "finish": {**USUAL, "sid": 0, "ssn": 0, "records": [FINISH]},
    "reset": {**USUAL, "sid": 0, "ssn": 1, "records": [("reset", 4, 7, 16777215)]},
    "stop": {**USUAL, "sid": 0, "ssn": 2, "records": [("stop", 5, 65535, 9)]},
    "credit": {**USUAL, "sid": 0, "ssn": 3, "records": [CREDIT]},
    "acknowledge-each": {**USUAL, "sid": 0, "ssn": 4, "records": [("acknowledge each", 16, 3125, 0)]},
    "finish-and-credit": {**USUAL, "sid": 0, "ssn": 4, "records": [FINISH, CREDIT]},
    "challenge": {**USUAL, "challenge": TOKEN},
    "response": {**USUAL, "response": TOKEN},
    "leave": {**USUAL, "leave": TOKEN},
}

INNER = {"source": 0, "target": 0}
INNER_SYN = {**INNER, "seq": 100, "ack": 0, "flags": ["SYN"], "window": 65535, "sack permitted": True}
INNER_SYN_ACK = {**INNER_SYN, "seq": 200, "ack": 101, "flags": ["ACK", "SYN"]}
INNER_DATA = {**INNER, "seq": 101, "ack": 201, "flags": ["ACK"], "window": 512, "data": b"hello"}
INNER_BACK = {**INNER_DATA, "seq": 201, "ack": 101}
INITIATION = {"kind": "initiation", "sender": 0x701, "offer": [1], "has cookie": False,
              "time": (1700000000, 250000000), "segment": INNER_SYN}
DATA = {"kind": "data", "session": 0, "path": 0, "counter": 0}
OWN = {"kind": "data", "session": 0, "path": 15, "counter": 0}

DATAGRAMS = [
    ("initiation", ">", INITIATION),
    ("cookie", "<", {"kind": "cookie", "cookie": b"\xaa" * 16}),
    ("initiation-with-cookie", ">", {**INITIATION, "has cookie": True}),
    ("sealed-response", "<", {"kind": "response", "sender": 0x900, "cipher": 1, "segment": INNER_SYN_ACK}),
    ("sealed-data", ">", {**DATA, "segment": INNER_DATA}),
    ("sealed-data-back", "<", {**DATA, "segment": INNER_BACK}),
    ("padded", ">", {**DATA, "path": 1, "padding": 47, "segment": INNER_DATA}),
    ("fragment-1", ">", {**DATA, "path": 1, "counter": 1, "fragment": 0, "offset": 0, "total": 100}),
    ("fragment-2", ">", {**DATA, "path": 1, "counter": 2, "fragment": 0, "offset": 64, "total": 100,
                         "segment": {**INNER_DATA, "data": b"hello, fragments! " * 4 + b"hello, f"}}),
    ("request", ">", {**OWN, "request": 0x702}),
    ("answer", "<", {**OWN, "answer": 0x901}),
    ("sealed-data-rekeyed", ">", {**DATA, "session": 1, "segment": INNER_DATA}),
    ("stateless-reset", "<", {"kind": "reset", "sender": 0x901}),
    ("token", "<", {**OWN, "session": 1, "token": 0x901}),
    ("stateless-reset-elsewhere", "<", {"kind": "reset", "sender": 0x901}),
]

# The same data, with the other ciphers.
OTHERS = {"aes-128": 2, "aes-256": 3, "aegis": 4}


def vectors_of(page):
    blocks = re.findall(r"```vector (\S+)\n(.*?)\n```", page, re.DOTALL)
    return {name: bytes.fromhex(re.sub(r"\s", "", text)) for name, text in blocks}


def compare(name, found, expected):
    check(found == expected, f"{name}: the page says\n  {expected}\nbut the bytes are\n  {found}")
    print(f"{name}: {found}")


def check_vectors(path):
    with open(path, encoding="utf-8") as file:
        vectors = vectors_of(file.read())
    for name, expected in SEGMENTS.items():
        text = vectors.pop(name)
        ends = V6 if name == "data-v6" else V4
        if expected["source"]:
            check(sum_is_right(text, *(ends[::-1] if name == "syn-ack" else ends)), f"{name}: the checksum is wrong")
        compare(name, decode_segment(text), expected)
    publics, secrets = vectors.pop("public-keys"), vectors.pop("ephemeral-keys")
    initiator, responder = b"\1" * 32, b"\2" * 32
    check(publics == x25519(initiator, BASE) + x25519(responder, BASE), "public-keys: they are others")
    ephemerals = [secrets[at:at + 32] for at in range(0, len(secrets), 32)]
    connection = Connection(initiator, responder, [ephemerals[0], ephemerals[2]])
    for name, side, expected in DATAGRAMS:
        datagram = vectors.pop(name)
        compare(name, connection.decode(side, datagram), expected)
        if name == "sealed-response":
            check(datagram[8:40] == x25519(ephemerals[1], BASE), "the second ephemeral key is another one")
    # The initiator's address is ::1 and its port 1; later it is ::3, and the port 3.
    key = hmac_of(responder, b"anabranch reset")
    given = [(index, 1, token) for index, token in connection.tokens.items()]
    given += [(index, 3, token) for index, tokens in connection.later_tokens.items() for token in tokens]
    check(len(given) == 3, "there are two indices, and a later address")
    for index, end, token in given:
        check(token == hmac_of(key, struct.pack(">IQQH", index, 0, end, end))[:16], f"the token of {index:08x} is another one")
    for name, cipher in OTHERS.items():
        connection = Connection(initiator, responder, [ephemerals[0]])
        for part, side in (("initiation", ">"), ("response", "<"), ("data", ">")):
            decoded = connection.decode(side, vectors.pop(f"{name}-{part}"))
            expected = {
                "initiation": {**INITIATION, "offer": [cipher, 1]},
                "response": {"kind": "response", "sender": 0x900, "cipher": cipher, "segment": INNER_SYN_ACK},
                "data": {**DATA, "segment": INNER_DATA},
            }[part]
            compare(f"{name}-{part}", decoded, expected)
    check(not vectors, f"nothing is known about {sorted(vectors)}")


# --- Captures ------------------------------------------------------------------------------------------------------

def read_capture(path):
    with open(path, encoding="ascii") as file:
        lines = [line.split() for line in file if line.strip()]
    keys = {"initiator": [], "responder": [], "ephemeral": []}
    datagrams = []
    for number, (word, digits) in enumerate(lines, 1):
        check(word in keys or word in "<>", f"line {number}: {word!r} is no word of a capture")
        if word in keys:
            keys[word].append(bytes.fromhex(digits))
        else:
            datagrams.append((number, word, bytes.fromhex(digits)))
    check(len(keys["initiator"]) == len(keys["responder"]) == 1, "each end has one secret key")
    return Connection(keys["initiator"][0], keys["responder"][0], keys["ephemeral"]), datagrams


class Proofs:
    """The nonces of what each side has sent (sec. 2.6), and how many acknowledgements had the right sum of them."""

    def __init__(self):
        self.first, self.offers, self.sent, self.right = {}, {}, {">": {}, "<": {}}, 0

    def see(self, side, segment):
        if not segment:
            return
        if "SYN" in segment["flags"]:
            self.first[side] = segment["seq"]
            self.offers[side] = segment.get("multistream", (0, 0, 0, 0))[2]
            return
        if "RST" in segment["flags"] or not (len(self.offers) == 2 and self.offers[">"] & self.offers["<"] & 2):
            return
        size = len(segment.get("data", b"")) + segment.get("void", 0) + 8 * len(segment.get("records", ())) + 4 * ("sid" in segment) + ("FIN" in segment["flags"])
        if size:
            place = (segment["seq"] - self.first[side]) % 2**32
            nonce = self.sent[side].setdefault(place, (size, segment.get("nonce", 0)))
            check(nonce == (size, segment.get("nonce", 0)), "it comes again with another nonce or length")
        other = "<" if side == ">" else ">"
        below = (segment["ack"] - self.first[other]) % 2**32
        total = sum(nonce for place, (size, nonce) in self.sent[other].items() if place + size <= below) % 2**16
        check(total == segment.get("sum", 0), f"its sum is {segment.get('sum', 0)}, but {total} is right")
        if not size and "sack" in segment:
            blocks = [tuple((edge - self.first[other]) % 2**32 for edge in block) for block in segment["sack"]]
            (left, right), second = blocks[0], blocks[1] if len(blocks) > 1 else (0, 0)
            if right <= below or second[0] <= left and right <= second[1]:
                blocks = blocks[1:]
            inside = [nonce for place, (size, nonce) in self.sent[other].items()
                      if any(left <= place and place + size <= right for left, right in blocks)]
            check(sum(inside) % 2**16 == segment.get("nonce", 0), "the sum of its blocks is wrong")
        self.right += 1


def decode_capture(path):
    connection, datagrams = read_capture(path)
    streams, proofs = {}, Proofs()
    for line, side, datagram in datagrams:
        try:
            decoded = connection.decode(side, datagram)
        except Wrong as wrong:
            raise Wrong(f"line {line}: {wrong}") from None
        print(side, describe(decoded))
        segment = decoded.get("segment", {})
        try:
            proofs.see(side, segment)
        except Wrong as wrong:
            raise Wrong(f"line {line}: {wrong}") from None
        if "data" in segment and "ssn" in segment:
            parts = streams.setdefault((side, segment["sid"]), {})
            before = parts.setdefault(segment["ssn"], segment["data"])
            check(before == segment["data"], f"line {line}: a segment comes again with other data")
    print(f"acknowledgements with the right sum: {proofs.right}")
    for (side, sid), parts in sorted(streams.items()):
        check(sorted(parts) == list(range(len(parts))), f"{side} {sid}: segments are missing")
        text = b"".join(parts[ssn] for ssn in sorted(parts))
        print(f"stream {side} {sid}: {len(text)} bytes in {len(parts)} segments, BLAKE2s {hash_of(text).hex()}")


def describe(decoded):
    words = []
    for name, value in decoded.items():
        if name == "segment":
            words.append("{" + describe(value) + "}")
        elif name == "data":
            words.append(f"data={len(value)} bytes")
        else:
            words.append(f"{name}={value.hex() if isinstance(value, bytes) else value}")
    return " ".join(words)


def main(arguments):
    commands = {"vectors": check_vectors, "capture": decode_capture}
    if len(arguments) != 2 or arguments[0] not in commands:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        commands[arguments[0]](arguments[1])
    except Wrong as wrong:
        print(f"{arguments[1]}: {wrong}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The ciphers and the key exchange of wire_decoder.py, each from its specification. They are slow, and leak their keys to whoever measures their time: for reading, not for use."""

import struct


class Wrong(Exception):
    """What is decoded is not as the page says."""


def check(condition, message):
    if not condition:
        raise Wrong(message)


# --- X25519 (RFC 7748) ---------------------------------------------------------------------------------------------

P25519 = 2**255 - 19
BASE = (9).to_bytes(32, "little")


def x25519(secret, public):
    k = int.from_bytes(secret, "little")
    k = (k & ~7 & (2**255 - 1)) | 2**254
    u = int.from_bytes(public, "little") & (2**255 - 1)
    x2, z2, x3, z3, swap = 1, 0, u, 1, 0
    for bit in range(254, -1, -1):
        now = k >> bit & 1
        if swap ^ now:
            x2, x3, z2, z3 = x3, x2, z3, z2
        swap = now
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        da, cb, aa, bb = d * a % P25519, c * b % P25519, a * a % P25519, b * b % P25519
        e = aa - bb
        x3, z3 = (da + cb) ** 2 % P25519, u * (da - cb) ** 2 % P25519
        x2, z2 = aa * bb % P25519, e * (aa + 121665 * e) % P25519
    if swap:
        x2, z2 = x3, z3
    product = (x2 * pow(z2, P25519 - 2, P25519) % P25519).to_bytes(32, "little")
    check(any(product), "X25519 makes zero: the public key is none")
    return product


# --- ChaCha20-Poly1305 (RFC 8439) ----------------------------------------------------------------------------------

M32 = 0xFFFFFFFF
QUARTERS = [(0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
            (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)]


def chacha20_block(key, counter, nonce):
    start = struct.unpack("<16I", b"expand 32-byte k" + key + struct.pack("<I", counter) + nonce)
    x = list(start)
    for _ in range(10):
        for a, b, c, d in QUARTERS:
            x[a] = x[a] + x[b] & M32
            x[d] ^= x[a]
            x[d] = (x[d] << 16 | x[d] >> 16) & M32
            x[c] = x[c] + x[d] & M32
            x[b] ^= x[c]
            x[b] = (x[b] << 12 | x[b] >> 20) & M32
            x[a] = x[a] + x[b] & M32
            x[d] ^= x[a]
            x[d] = (x[d] << 8 | x[d] >> 24) & M32
            x[c] = x[c] + x[d] & M32
            x[b] ^= x[c]
            x[b] = (x[b] << 7 | x[b] >> 25) & M32
    return struct.pack("<16I", *(a + b & M32 for a, b in zip(x, start)))


def poly1305(key, text):
    r = int.from_bytes(key[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    total = 0
    for at in range(0, len(text), 16):
        total = (total + int.from_bytes(text[at:at + 16] + b"\1", "little")) * r % (2**130 - 5)
    return (total + int.from_bytes(key[16:], "little") & 2**128 - 1).to_bytes(16, "little")


def xor(one, other):
    count = min(len(one), len(other))
    number = int.from_bytes(one[:count], "big") ^ int.from_bytes(other[:count], "big")
    return number.to_bytes(count, "big")


def padded16(text):
    return text + bytes(-len(text) % 16)


class ChaCha20Poly1305:
    key_len = 32

    def __init__(self, key):
        self.key = key

    def open(self, nonce, header, sealed):
        text, tag = sealed[:-16], sealed[-16:]
        key = chacha20_block(self.key, 0, nonce)[:32]
        sums = padded16(header) + padded16(text) + struct.pack("<QQ", len(header), len(text))
        check(poly1305(key, sums) == tag, "the tag is wrong")
        blocks = range(1, (len(text) + 63) // 64 + 1)
        return xor(text, b"".join(chacha20_block(self.key, number, nonce) for number in blocks))


# --- AES-GCM (FIPS 197, NIST SP 800-38D) ---------------------------------------------------------------------------

def aes_tables():
    sbox, power, inverse = [0] * 256, [0] * 255, [0] * 256
    value = 1
    for exponent in range(255):
        power[exponent] = value
        value ^= value << 1 ^ (0x11B if value & 0x80 else 0)
    logarithm = {value: exponent for exponent, value in enumerate(power)}
    for value in range(256):
        inverse = power[-logarithm[value] % 255] if value else 0
        turned = inverse
        for _ in range(4):
            inverse = (inverse << 1 | inverse >> 7) & 0xFF
            turned ^= inverse
        sbox[value] = turned ^ 0x63
    double = [value << 1 ^ (0x11B if value & 0x80 else 0) for value in range(256)]
    first = [double[s] << 24 | s << 16 | s << 8 | double[s] ^ s for s in sbox]
    rotated = [[(word >> 8 * turn | word << 32 - 8 * turn) & M32 for word in first] for turn in range(4)]
    return sbox, rotated


SBOX, MIXED = aes_tables()


class AesGcm:
    def __init__(self, key):
        words = list(struct.unpack(f">{len(key) // 4}I", key))
        size, constant = len(words), 1
        self.rounds = size + 6
        while len(words) < 4 * (self.rounds + 1):
            word = words[-1]
            if len(words) % size == 0:
                word = self.substitute((word << 8 | word >> 24) & M32) ^ constant << 24
                constant = constant << 1 ^ (0x11B if constant & 0x80 else 0)
            elif size > 6 and len(words) % size == 4:
                word = self.substitute(word)
            words.append(words[-size] ^ word)
        self.words = words
        h = int.from_bytes(self.block(bytes(16)), "big")
        # h times x^n, and what each byte of a block adds.
        multiples = []
        for _ in range(128):
            multiples.append(h)
            h = h >> 1 ^ (0xE1 << 120 if h & 1 else 0)
        self.products = []
        for place in range(16):
            row = [0] * 256
            for value in range(1, 256):
                low = value & -value
                row[value] = row[value ^ low] ^ multiples[8 * place + 8 - low.bit_length()]
            self.products.append(row)

    @staticmethod
    def substitute(word):
        return (SBOX[word >> 24] << 24 | SBOX[word >> 16 & 255] << 16 | SBOX[word >> 8 & 255] << 8 | SBOX[word & 255])

    def block(self, text):
        t0, t1, t2, t3 = MIXED
        w = self.words
        a, b, c, d = (x ^ y for x, y in zip(struct.unpack(">4I", text), w))
        for at in range(4, 4 * self.rounds, 4):
            a, b, c, d = (
                t0[a >> 24] ^ t1[b >> 16 & 255] ^ t2[c >> 8 & 255] ^ t3[d & 255] ^ w[at],
                t0[b >> 24] ^ t1[c >> 16 & 255] ^ t2[d >> 8 & 255] ^ t3[a & 255] ^ w[at + 1],
                t0[c >> 24] ^ t1[d >> 16 & 255] ^ t2[a >> 8 & 255] ^ t3[b & 255] ^ w[at + 2],
                t0[d >> 24] ^ t1[a >> 16 & 255] ^ t2[b >> 8 & 255] ^ t3[c & 255] ^ w[at + 3],
            )
        last = []
        for number, (p, q, r, s) in enumerate([(a, b, c, d), (b, c, d, a), (c, d, a, b), (d, a, b, c)]):
            mixed = SBOX[p >> 24] << 24 | SBOX[q >> 16 & 255] << 16 | SBOX[r >> 8 & 255] << 8 | SBOX[s & 255]
            last.append(mixed ^ w[4 * self.rounds + number])
        return struct.pack(">4I", *last)

    def ghash(self, text):
        total = 0
        for at in range(0, len(text), 16):
            total ^= int.from_bytes(text[at:at + 16], "big")
            total_bytes = total.to_bytes(16, "big")
            total = 0
            for row, byte in zip(self.products, total_bytes):
                total ^= row[byte]
        return total.to_bytes(16, "big")

    def open(self, nonce, header, sealed):
        text, tag = sealed[:-16], sealed[-16:]
        sums = padded16(header) + padded16(text) + struct.pack(">QQ", 8 * len(header), 8 * len(text))
        check(xor(self.ghash(sums), self.block(nonce + b"\0\0\0\1")) == tag, "the tag is wrong")
        blocks = range(2, (len(text) + 15) // 16 + 2)
        return xor(text, b"".join(self.block(nonce + struct.pack(">I", number)) for number in blocks))


class Aes128Gcm(AesGcm):
    key_len = 16


class Aes256Gcm(AesGcm):
    key_len = 32


# --- AEGIS-128L (draft-irtf-cfrg-aegis-aead, sec. 2) ------------------------------------------------------------------

class Aegis128L:
    key_len = 16
    C0, C1 = (int(digits, 16) for digits in ("000101020305080d1522375990e97962", "db3d18556dc22ff12011314273b528dd"))

    def __init__(self, key):
        self.key = int.from_bytes(key, "big")

    @staticmethod
    def round(state, added):
        t0, t1, t2, t3 = MIXED
        words = [state >> shift & M32 for shift in (96, 64, 32, 0)]
        mixed = 0
        for a, b, c, d in (words[at:] + words[:at] for at in range(4)):
            mixed = mixed << 32 | t0[a >> 24] ^ t1[b >> 16 & 255] ^ t2[c >> 8 & 255] ^ t3[d & 255]
        return mixed ^ added

    def update(self, first, second):
        s = self.state
        added = [s[0] ^ first, *s[1:4], s[4] ^ second, *s[5:]]
        self.state = [self.round(s[at - 1], added[at]) for at in range(8)]

    def absorb(self, text):
        for at in range(0, len(text), 32):
            block = int.from_bytes(text[at:at + 32].ljust(32, b"\0"), "big")
            self.update(block >> 128, block & 2**128 - 1)

    def open(self, nonce, header, sealed):
        text, tag = sealed[:-16], sealed[-16:]
        key, nonce = self.key, int.from_bytes(nonce + bytes(4), "big")
        self.state = [key ^ nonce, self.C1, self.C0, self.C1, key ^ nonce, key ^ self.C0, key ^ self.C1, key ^ self.C0]
        for _ in range(10):
            self.update(nonce, key)
        self.absorb(header)
        plain = b""
        for at in range(0, len(text), 32):
            s = self.state
            stream = (s[6] ^ s[1] ^ s[2] & s[3]) << 128 | s[2] ^ s[5] ^ s[6] & s[7]
            block = xor(text[at:at + 32], stream.to_bytes(32, "big"))
            self.absorb(block)
            plain += block
        sums = int.from_bytes(struct.pack("<QQ", 8 * len(header), 8 * len(text)), "big") ^ self.state[2]
        for _ in range(7):
            self.update(sums, sums)
        found = 0
        for part in self.state[:7]:
            found ^= part
        check(found.to_bytes(16, "big") == tag, "the tag is wrong")
        return plain


CIPHERS = {1: ChaCha20Poly1305, 2: Aes128Gcm, 3: Aes256Gcm, 4: Aegis128L}

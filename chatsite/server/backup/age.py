"""Encryption with a passphrase in the format of age.

The format is age-encryption.org/v1, so `age -d` can decrypt the file. A header contains the file key,
encrypted with a key that scrypt derives from the passphrase. Chunks of 64 KB follow, each authenticated
together with its number and a flag for the last one, so that changed, missing or truncated chunks are
detected.
"""

import base64
import hashlib
import hmac
import secrets
from typing import IO, Any, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

MAGIC = b"age-encryption.org/v1\n"
WORK_FACTOR = 18  # base-2 logarithm of scrypt's work factor; takes about a second and 256 MB
MAX_WORK_FACTOR = 20
PIECE_BYTES = 65_536
TAG_BYTES = 16
MAX_LINE_BYTES = 200


class WrongPassphrase(Exception):
    """The passphrase does not decrypt the file key."""


class Damaged(Exception):
    """The file was changed or truncated, or is not encrypted with a passphrase in this format."""


class Sink(Protocol):
    def write(self, data: bytes, /) -> Any: ...


class Writer:
    """A file object that encrypts to `target`; `close` writes the last chunk."""

    def __init__(self, target: Sink, passphrase: str) -> None:
        self._target = target
        key, salt, nonce = secrets.token_bytes(16), secrets.token_bytes(16), secrets.token_bytes(16)
        lock = ChaCha20Poly1305(_stretched(passphrase, salt, WORK_FACTOR))
        header = MAGIC + b"-> scrypt %s %d\n%s\n---" % (
            _encoded(salt),
            WORK_FACTOR,
            _encoded(lock.encrypt(bytes(12), key, None)),
        )
        target.write(header + b" " + _encoded(_mac(key, header)) + b"\n" + nonce)
        self._cipher = ChaCha20Poly1305(_derived(key, nonce, b"payload"))
        self._number = 0
        self._held = bytearray()

    def write(self, data: bytes) -> int:
        self._held += data
        while len(self._held) > PIECE_BYTES:  # keep a chunk until more data follows: it may be the last one
            self._put(bytes(self._held[:PIECE_BYTES]), last=False)
            del self._held[:PIECE_BYTES]
        return len(data)

    def close(self) -> None:
        self._put(bytes(self._held), last=True)

    def _put(self, piece: bytes, *, last: bool) -> None:
        self._target.write(self._cipher.encrypt(_nonce(self._number, last), piece, None))
        self._number += 1


class Reader:
    """A file object that decrypts what a Writer wrote. Raises WrongPassphrase, Damaged."""

    def __init__(self, source: IO[bytes], passphrase: str) -> None:
        self._source = source
        lines = [source.readline(MAX_LINE_BYTES) for _ in range(4)]
        words = lines[1].split()
        if lines[0] != MAGIC or words[:2] != [b"->", b"scrypt"] or len(words) != 4:
            raise Damaged("It is not encrypted with a passphrase.")
        factor = int(words[3]) if words[3].isdigit() else MAX_WORK_FACTOR + 1
        if not 0 < factor <= MAX_WORK_FACTOR:
            raise Damaged("Its passphrase would take too long to try.")
        try:
            lock = ChaCha20Poly1305(_stretched(passphrase, _decoded(words[2]), factor))
            key = lock.decrypt(bytes(12), _decoded(lines[2].strip()), None)
        except InvalidTag:
            raise WrongPassphrase from None
        expected = b"--- " + _encoded(_mac(key, b"".join(lines[:3]) + b"---")) + b"\n"
        if not hmac.compare_digest(lines[3], expected):
            raise Damaged("Its header was changed.")
        self._cipher = ChaCha20Poly1305(_derived(key, self._exactly(16), b"payload"))
        self._number = 0
        self._ahead = source.read(PIECE_BYTES + TAG_BYTES)
        self._held = b""
        self._ended = False

    def read(self, size: int = -1) -> bytes:
        """Read `size` bytes, fewer only at the end; everything if `size` is negative."""
        parts = [self._held]
        have = len(self._held)
        while not self._ended and (size < 0 or have < size):
            parts.append(self._next())
            have += len(parts[-1])
        whole = b"".join(parts)
        size = len(whole) if size < 0 else size
        self._held = whole[size:]
        return whole[:size]

    def _next(self) -> bytes:
        piece, self._ahead = self._ahead, self._source.read(PIECE_BYTES + TAG_BYTES)
        self._ended = not self._ahead
        try:
            text = self._cipher.decrypt(_nonce(self._number, self._ended), piece, None)
        except (InvalidTag, ValueError):
            raise Damaged("It was changed, or its end is missing.") from None
        self._number += 1
        return text

    def _exactly(self, size: int) -> bytes:
        data = self._source.read(size)
        if len(data) != size:
            raise Damaged("Its end is missing.")
        return data


def _stretched(passphrase: str, salt: bytes, factor: int) -> bytes:
    label = b"age-encryption.org/v1/scrypt"
    return Scrypt(salt=label + salt, length=32, n=2**factor, r=8, p=1).derive(passphrase.encode())


def _derived(key: bytes, salt: bytes, info: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=salt, info=info).derive(key)


def _mac(key: bytes, header: bytes) -> bytes:
    return hmac.digest(_derived(key, b"", b"header"), header, hashlib.sha256)


def _nonce(number: int, last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([last])


def _encoded(data: bytes) -> bytes:
    return base64.b64encode(data).rstrip(b"=")


def _decoded(text: bytes) -> bytes:
    try:
        return base64.b64decode(text + b"=" * (-len(text) % 4), validate=True)
    except ValueError:
        raise Damaged("Its header was changed.") from None

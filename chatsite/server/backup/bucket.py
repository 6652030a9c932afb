"""An object in a bucket of an S3-compatible server, as a backup is written to and read from it: streamed.

Needs boto3 of the extra `s3`. Server, region and keys come from the variables that all programs for buckets
know (AWS_ENDPOINT_URL_S3, AWS_DEFAULT_REGION, AWS_ACCESS_KEY_ID, ...), a profile or a role: a key for backups
need not be that of the site's files.
"""

import errno
import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from typing import IO, Any, Literal, Self, cast

from django.core.management.base import CommandError

from ingestion.storage.ranged import Body, RangedReader

try:
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError
except ImportError:
    INSTALLED = False
    FAULTS: tuple[type[Exception], ...] = ()
else:
    INSTALLED = True
    FAULTS = (BotoCoreError, ClientError)

SCHEME = "s3://"
PART_BYTES = 32_000_000  # held in memory, of an upload; all but the last part have the same size
MAX_PARTS = 10_000  # of an upload, by the protocol
BUFFER_BYTES = 1_000_000
MISSING = frozenset({"404", "NoSuchKey", "NotFound"})
REASONS = {
    "NoSuchBucket": (errno.ENOENT, "there is no such bucket"),
    "InvalidAccessKeyId": (errno.EACCES, "the server does not know the access key"),
    "SignatureDoesNotMatch": (errno.EACCES, "the secret key is wrong"),
    "AccessDenied": (errno.EACCES, "the access key may not do that"),
    "403": (errno.EACCES, "the access key may not do that"),
    "PreconditionFailed": (errno.EEXIST, "another object has taken its place meanwhile"),
    "412": (errno.EEXIST, "another object has taken its place meanwhile"),
}

log = logging.getLogger(__name__)


class BucketError(OSError):
    """What the server refused, or that it cannot be reached."""

    def __str__(self) -> str:
        return str(self.strerror)


class BucketObject:
    """An object by its address, s3://BUCKET/KEY. Raises CommandError for an address that names none."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._bucket, _, self._key = address.removeprefix(SCHEME).partition("/")
        if not self._bucket or not self._key or self._key.endswith("/"):
            raise CommandError(f"{address} names no object: write s3://BUCKET/NAME.")
        if not INSTALLED:
            raise CommandError("A bucket needs the package boto3 of the extra “s3” (docs/deploy.md).")
        self._known: tuple[int, str] | None = None

    def __str__(self) -> str:
        return self._address

    def exists(self) -> bool:
        """Whether it is there, as far as the access key may know: one that may only write may not."""
        try:
            self._head()
        except FileNotFoundError:
            return False
        except BucketError as error:
            if error.errno == errno.EACCES:
                return False
            raise
        return True

    def open(self, mode: Literal["rb"] = "rb") -> IO[bytes]:
        """The object from its beginning. Each reading is of the same version of it. Raises OSError."""
        if self._known is None:
            self._known = self._head()
        size, version = self._known
        return cast(
            IO[bytes], io.BufferedReader(RangedReader(partial(self._begin, version), size), BUFFER_BYTES)
        )

    @contextmanager
    def writing(self) -> Iterator["Upload"]:
        """What is written in the block is there as a whole when it has ended well, else not at all."""
        with Upload(self._s3, self._bucket, self._key) as upload:
            yield upload

    def _head(self) -> tuple[int, str]:
        with translated():
            found = self._s3.head_object(Bucket=self._bucket, Key=self._key)
        return found["ContentLength"], found["ETag"]

    def _begin(self, version: str, position: int) -> Body:
        with translated():
            found = self._s3.get_object(
                Bucket=self._bucket, Key=self._key, Range=f"bytes={position}-", IfMatch=version
            )
        return _Body(found["Body"])

    @cached_property
    def _s3(self) -> Any:
        return client()


class Upload:
    """An upload in parts, one of them in memory. Leaves no object where the block fails."""

    def __init__(self, s3: Any, bucket: str, key: str) -> None:
        self._s3, self._place = s3, {"Bucket": bucket, "Key": key}
        self._held = bytearray()
        self._parts: list[dict[str, Any]] = []
        self._size = 0

    def __enter__(self) -> Self:
        with translated():
            self._place["UploadId"] = self._s3.create_multipart_upload(**self._place)["UploadId"]
        return self

    def write(self, data: bytes) -> int:
        """Raises OSError."""
        self._held += data
        self._size += len(data)
        while len(self._held) >= PART_BYTES:
            self._send(bytes(memoryview(self._held)[:PART_BYTES]))
            del self._held[:PART_BYTES]
        return len(data)

    def tell(self) -> int:
        return self._size

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if kind is None:
                self._send(bytes(self._held))
                self._complete()
                return
        except BaseException:
            self._abort()
            raise
        self._abort()

    def _send(self, part: bytes) -> None:
        number = len(self._parts) + 1
        if number > MAX_PARTS:
            raise BucketError(errno.EFBIG, f"it is larger than {MAX_PARTS * PART_BYTES / 1e9:.0f} GB")
        with translated():
            sent = self._s3.upload_part(**self._place, PartNumber=number, Body=part)
        self._parts.append({"PartNumber": number, "ETag": sent["ETag"]})

    def _complete(self) -> None:
        with translated():
            self._s3.complete_multipart_upload(
                **self._place, MultipartUpload={"Parts": self._parts}, IfNoneMatch="*"
            )

    def _abort(self) -> None:
        try:
            self._s3.abort_multipart_upload(**self._place)
        except FAULTS as error:  # a rule of the bucket removes such parts; no object is made of them
            log.warning("Parts of %s are left in the bucket: %s", self._place["Key"], error)


class _Body:
    """A body whose errors are OSErrors."""

    def __init__(self, body: Body) -> None:
        self._body = body

    def read(self, size: int, /) -> bytes:
        with translated():
            return self._body.read(size)

    def close(self) -> None:
        self._body.close()


def client() -> Any:
    limits = Config(
        connect_timeout=5,
        read_timeout=60,
        retries={"total_max_attempts": 5},
        # Checksums in trailers are unknown to many servers; the archive has its own.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    try:
        with translated():
            return boto3.client("s3", config=limits)
    except ValueError as error:
        raise BucketError(errno.EINVAL, f"the server's address is wrong ({error})") from error


@contextmanager
def translated() -> Iterator[None]:
    """Raise what boto3 raises as BucketError, or FileNotFoundError, with one line."""
    try:
        yield
    except FAULTS as error:
        said: dict[str, Any] = getattr(error, "response", {}).get("Error", {})
        code = str(said.get("Code", ""))
        if code in MISSING:
            raise FileNotFoundError(errno.ENOENT, "there is no such object") from error
        words = " ".join(str(said.get("Message") or error).split())
        raise BucketError(*REASONS.get(code, (errno.EIO, words))) from error

"""Streams a backup to or from an object in an S3-compatible bucket.

This needs boto3, which the extra `s3` installs. Endpoint, region and credentials come from boto3's standard
variables (AWS_ENDPOINT_URL_S3, AWS_DEFAULT_REGION, AWS_ACCESS_KEY_ID, ...), a profile or a role, so that
backups need not use the credentials for the site's files.
"""

import errno
import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO, Any, Literal, Self, cast

from django.core.management.base import CommandError
from django.utils.functional import cached_property

from ingestion.storage.ranged import Body, RangedReader

try:
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError, ConnectTimeoutError, ReadTimeoutError
except ImportError:
    INSTALLED = False
    FAULTS: tuple[type[Exception], ...] = ()
    UNANSWERED: tuple[type[Exception], ...] = ()
else:
    INSTALLED = True
    FAULTS = (BotoCoreError, ClientError)
    UNANSWERED = (ConnectTimeoutError, ReadTimeoutError)

SCHEME = "s3://"
PART_BYTES = 32_000_000  # size of a part, which is held in memory; all but the last part have the same size
MAX_PARTS = 10_000  # parts of an upload, limited by the protocol
BUFFER_BYTES = 1_000_000
CONNECT_SECONDS = 5
# A request to a server that hangs is given up after ANSWER_SECONDS; it is sent up to ATTEMPTS times, and each
# repetition is logged.
ANSWER_SECONDS = 20
ATTEMPTS = 4
MISSING = frozenset({"404", "NoSuchKey", "NotFound"})
REASONS = {
    "NoSuchBucket": (errno.ENOENT, "there is no such bucket"),
    "InvalidAccessKeyId": (errno.EACCES, "the server does not know the access key"),
    "SignatureDoesNotMatch": (errno.EACCES, "the secret key is wrong"),
    "AccessDenied": (errno.EACCES, "the access key may not do that"),
    "403": (errno.EACCES, "the access key may not do that"),
    "PreconditionFailed": (errno.EEXIST, "another object has replaced it meanwhile"),
    "412": (errno.EEXIST, "another object has replaced it meanwhile"),
}

log = logging.getLogger(__name__)


class BucketError(OSError):
    """The server refused the request or cannot be reached."""

    def __str__(self) -> str:
        return str(self.strerror)


class NoAnswer(BucketError):
    """The server did not respond to any attempt."""


class BucketObject:
    """An object by its URL, s3://BUCKET/KEY.

    Raises CommandError for a URL without a key, or if boto3 is not installed.
    """

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
        """Whether the object exists; False also if the credentials do not allow reading."""
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
        """Open the object for reading; each call reads the version that the first one found.

        Raises OSError.
        """
        if self._known is None:
            self._known = self._head()
        size, version = self._known
        return cast(
            IO[bytes], io.BufferedReader(RangedReader(partial(self._begin, version), size), BUFFER_BYTES)
        )

    @contextmanager
    def writing(self) -> Iterator["Upload"]:
        """Write an object that appears only if the block succeeds."""
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
    """A multipart upload with one part in memory. Leaves no object if the block fails."""

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
        """Add data to the upload. Raises OSError."""
        self._held += data
        self._size += len(data)
        while len(self._held) >= PART_BYTES:
            self._send(bytes(memoryview(self._held)[:PART_BYTES]))
            del self._held[:PART_BYTES]
        return len(data)

    def tell(self) -> int:
        return self._size

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, *rest: object) -> None:
        try:
            if kind is None:
                self._send(bytes(self._held))
                self._complete()
                return
        except BaseException as error:
            self._abort(error)
            raise
        self._abort(fault)

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

    def _abort(self, reason: BaseException | None) -> None:
        # A server that did not respond is not asked again, because that would take as long again.
        fault: BaseException | None = reason if isinstance(reason, NoAnswer) else None
        if fault is None:
            try:
                self._s3.abort_multipart_upload(**self._place)
            except FAULTS as error:
                fault = error
        # Parts that are left never become an object; a lifecycle rule of the bucket should remove them.
        if fault is not None:
            log.warning("Parts of %s are left in the bucket: %s", self._place["Key"], fault)


class _Body:
    """A response body whose errors are OSErrors."""

    def __init__(self, body: Body) -> None:
        self._body = body

    def read(self, size: int, /) -> bytes:
        with translated():
            return self._body.read(size)

    def close(self) -> None:
        self._body.close()


def client() -> Any:
    limits = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=ANSWER_SECONDS,
        retries={"total_max_attempts": ATTEMPTS},
        # Many servers do not support checksums in trailers, and the archive has its own.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    try:
        with translated():
            made = boto3.client("s3", config=limits)
    except ValueError as error:
        raise BucketError(errno.EINVAL, f"the server's address is wrong ({error})") from error
    made.meta.events.register("needs-retry.s3", _say_retry)
    return made


def _say_retry(operation: Any, attempts: int, caught_exception: Exception | None, **other: object) -> None:
    """Log that the server did not respond and is asked again: boto3 retries without a message."""
    if isinstance(caught_exception, UNANSWERED) and attempts < ATTEMPTS:
        log.warning(
            "The server of the bucket does not respond (%s); attempt %s of %s follows.",
            operation.name,
            attempts + 1,
            ATTEMPTS,
        )


@contextmanager
def translated() -> Iterator[None]:
    """Translate errors of boto3 into BucketError or FileNotFoundError, with a message of one line."""
    try:
        yield
    except FAULTS as error:
        # Connection errors also have the attribute `response`, which is None.
        said: dict[str, Any] = (getattr(error, "response", None) or {}).get("Error", {})
        code = str(said.get("Code", ""))
        if code in MISSING:
            raise FileNotFoundError(errno.ENOENT, "there is no such object") from error
        words = " ".join(str(said.get("Message") or error).split()).removesuffix(".")
        if isinstance(error, UNANSWERED):
            raise NoAnswer(errno.ETIMEDOUT, "the server does not respond") from error
        raise BucketError(*REASONS.get(code, (errno.EIO, words))) from error

"""Files in a bucket of an S3-compatible server. Needs the extra `s3`; loaded only where it is configured."""

import io
from contextlib import closing
from typing import Any

from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError
from django.core.files import File
from storages.backends.s3 import S3Storage
from storages.utils import clean_name

BUFFER_BYTES = 256 * 1024


class BucketStorage(S3Storage):  # type: ignore[misc]
    """Like django-storages', but what is opened is read where it is wanted, and never held as a whole."""

    def __init__(self, **options: Any) -> None:
        patience = Config(connect_timeout=5, read_timeout=30, retries={"total_max_attempts": 3})
        super().__init__(**{"client_config": patience} | options)
        self.transfer_config = TransferConfig(use_threads=False)  # one part of an upload in memory, not ten

    def _open(self, name: str, mode: str = "rb") -> "File[bytes]":
        key = self._normalize_name(clean_name(name))
        try:
            head = self.connection.meta.client.head_object(Bucket=self.bucket_name, Key=key)
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] == 404:
                raise FileNotFoundError(name) from None
            raise
        raw = _Object(self.connection.meta.client, self.bucket_name, key, head["ContentLength"])
        return File(io.BufferedReader(raw, BUFFER_BYTES), name)


class _Object(io.RawIOBase):
    """An object of a bucket as a file: each place where reading begins is one request, streamed."""

    def __init__(self, client: Any, bucket: str, key: str, size: int) -> None:
        self._client, self._bucket, self._key, self._size = client, bucket, key, size
        self._position = 0
        self._body: Any = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if base + offset != self._position:
            self._stop()
        self._position = max(0, base + offset)
        return self._position

    def readinto(self, buffer: Any) -> int:
        if self._position >= self._size:
            return 0
        if self._body is None:
            wanted = f"bytes={self._position}-"
            found = self._client.get_object(Bucket=self._bucket, Key=self._key, Range=wanted)
            self._body = found["Body"]
        data = self._body.read(len(buffer))
        if not data:
            raise OSError("The object ended early.")
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def close(self) -> None:
        self._stop()
        super().close()

    def _stop(self) -> None:
        if self._body is not None:
            with closing(self._body):
                self._body = None

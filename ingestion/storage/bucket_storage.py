"""Files in an S3-compatible bucket. Needs the extra `s3`; imported only if configured."""

import io
from functools import partial
from typing import Any

from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError
from django.core.files import File
from storages.backends.s3 import S3Storage
from storages.utils import clean_name, safe_join

from .ranged import (
    Body,
    RangedReader,
)

BUFFER_BYTES = 256 * 1024
# A person may be waiting, so each attempt ends if the server does not accept the connection within
# CONNECT_SECONDS, or sends nothing for READ_SECONDS.
CONNECT_SECONDS = 3
READ_SECONDS = 8
ATTEMPTS = 2


class BucketStorage(S3Storage):  # type: ignore[misc]
    """django-storages' S3 storage.

    Files are streamed in ranges and never loaded completely.
    """

    def __init__(self, **options: Any) -> None:
        time_limits = Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            retries={"total_max_attempts": ATTEMPTS},
        )
        super().__init__(**{"client_config": time_limits} | options)
        # Keeps one part of an upload in memory instead of ten.
        self.transfer_config = TransferConfig(use_threads=False)

    def _open(self, name: str, mode: str = "rb") -> "File[bytes]":
        key = safe_join(self.location, clean_name(name))
        try:
            head = self.connection.meta.client.head_object(Bucket=self.bucket_name, Key=key)
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] == 404:
                raise FileNotFoundError(name) from None
            raise
        raw = RangedReader(partial(self._begin, key), head["ContentLength"])
        return File(io.BufferedReader(raw, BUFFER_BYTES), name)

    def _begin(self, key: str, position: int) -> Body:
        client = self.connection.meta.client
        found = client.get_object(Bucket=self.bucket_name, Key=key, Range=f"bytes={position}-")
        body: Body = found["Body"]
        return body

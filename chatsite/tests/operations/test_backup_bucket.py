"""A backup in a bucket is encrypted, arrives completely or not at all, and is restored like a file."""

import io
import json
import os
from unittest import mock

import pytest
from django.core.management import CommandError, call_command
from django.test import SimpleTestCase

from chatsite.server.backup import age, backup_bucket, backup_file, database
from chatsite.tests.operations.test_backup import FEW, PASSPHRASE, Site

pytestmark = pytest.mark.slow

ADDRESS = "s3://backups/site.age"
PART_BYTES = 20_000


class Fault(Exception):
    """An error of boto3 for a server's refusal."""

    def __init__(self, code, message="It was refused."):
        super().__init__(message)
        self.response = {"Error": {"Code": code, "Message": message}}


class Hanging(Fault):
    """An error of boto3 for a server that does not respond."""

    def __init__(self):
        super().__init__("", "Read timeout")
        self.response = None


class Bucket:
    """The calls of boto3's client that a backup needs, on objects in memory."""

    def __init__(self):
        self.objects = {}
        self.uploads = {}
        self.sent = []
        self.versions = 0
        self.fail_at = None  # the number of a part, and the fault
        self.denied = set()

    def head_object(self, Bucket, Key):
        if "head" in self.denied:
            raise Fault("403", "Forbidden")
        if Key not in self.objects:
            raise Fault("404", "Not Found")
        data, version = self.objects[Key]
        return {"ContentLength": len(data), "ETag": version}

    def get_object(self, Bucket, Key, Range, IfMatch):
        data, version = self.objects[Key]
        if version != IfMatch:
            raise Fault("PreconditionFailed")
        start = int(Range.removeprefix("bytes=").removesuffix("-"))
        return {"Body": io.BytesIO(data[start:])}

    def create_multipart_upload(self, Bucket, Key):
        if Bucket != "backups":
            raise Fault("NoSuchBucket")
        self.uploads["1"] = {}
        return {"UploadId": "1"}

    def upload_part(self, Bucket, Key, UploadId, PartNumber, Body):
        if self.fail_at and self.fail_at[0] == PartNumber:
            raise self.fail_at[1]
        self.uploads[UploadId][PartNumber] = Body
        self.sent.append(len(Body))
        return {"ETag": f"{PartNumber}"}

    def complete_multipart_upload(self, Bucket, Key, UploadId, MultipartUpload, IfNoneMatch):
        if Key in self.objects:
            raise Fault("PreconditionFailed")
        parts = self.uploads.pop(UploadId)
        self.put(Key, b"".join(parts[part["PartNumber"]] for part in MultipartUpload["Parts"]))

    def abort_multipart_upload(self, Bucket, Key, UploadId):
        if "abort" in self.denied:
            raise Fault("503")
        del self.uploads[UploadId]

    def put(self, key, data):
        self.versions += 1
        self.objects[key] = data, f"{self.versions}"


class Addresses(SimpleTestCase):
    def test_an_address_without_an_object_is_refused(self):
        for address in ("s3://", "s3://backups", "s3://backups/", "s3:///site", "s3://backups/nights/"):
            with self.subTest(address), self.assertRaisesMessage(CommandError, "names no object"):
                backup_file.location_of(address)

    def test_a_missing_package_is_named(self):
        with (
            mock.patch.object(backup_bucket, "INSTALLED", False),
            self.assertRaisesMessage(CommandError, "boto3"),
        ):
            backup_file.location_of(ADDRESS)


class BucketMixin:
    def setUp(self):
        super().setUp()
        self.bucket = Bucket()
        for module, name, value in (
            (backup_bucket, "INSTALLED", True),
            (backup_bucket, "FAULTS", (Fault,)),
            (backup_bucket, "PART_BYTES", PART_BYTES),
            (backup_bucket, "client", lambda: self.bucket),
            (age, "WORK_FACTOR", FEW),
        ):
            patched = mock.patch.object(module, name, value)
            patched.start()
            self.addCleanup(patched.stop)


class Streaming(BucketMixin, SimpleTestCase):
    """Archives of one file, without a site."""

    def write(self, address=ADDRESS, size=3 * PART_BYTES):
        with backup_file.written(backup_file.location_of(address), PASSPHRASE) as target:
            target.add(backup_file.HEAD, json.dumps({"format": backup_file.FORMAT}).encode())
            target.add(backup_file.SECRET, os.urandom(size))
        return target.size

    def refusal(self, **options):
        with self.assertRaises(OSError) as raised:
            self.write(**options)
        self.assertNotIn("\n", raised.exception.strerror)
        return raised.exception.strerror

    def test_only_one_part_is_in_memory_and_parts_have_the_same_size(self):
        size = self.write()
        self.assertGreater(len(self.bucket.sent), 3)
        self.assertEqual(set(self.bucket.sent[:-1]), {PART_BYTES})
        self.assertEqual(size, sum(self.bucket.sent))
        self.assertEqual(
            backup_file.checked(backup_file.location_of(ADDRESS), PASSPHRASE), {"format": backup_file.FORMAT}
        )

    def test_a_failure_leaves_no_object_and_is_reported_in_one_line(self):
        for code, said, words in (
            (
                "XMinioStorageFull",
                "The storage has\nreached its limit.",
                "The storage has reached its limit",
            ),
            ("AccessDenied", "", "the access key may not do that"),
            ("SignatureDoesNotMatch", "", "the secret key is wrong"),
        ):
            with self.subTest(code):
                self.bucket.fail_at = 2, Fault(code, said)
                self.assertEqual(self.refusal(), words)
                self.assertEqual((self.bucket.objects, self.bucket.uploads), ({}, {}))
        self.assertEqual(self.refusal(address="s3://other/site.age"), "there is no such bucket")

    def test_a_server_that_hangs_is_not_asked_again_to_remove_the_parts(self):
        self.bucket.fail_at = 2, Hanging()
        with (
            mock.patch.object(backup_bucket, "UNANSWERED", (Hanging,)),
            self.assertLogs(backup_bucket.log, "WARNING") as logged,
        ):
            self.assertEqual(self.refusal(), "the server does not respond")
            for attempt in range(1, backup_bucket.ATTEMPTS + 1):
                backup_bucket._say_retry(mock.Mock(), attempt, Hanging())
            backup_bucket._say_retry(mock.Mock(), 1, None)
        self.assertEqual((self.bucket.objects, [*self.bucket.uploads]), ({}, ["1"]))
        self.assertEqual(len(logged.output), 1 + backup_bucket.ATTEMPTS - 1)

    def test_an_interrupt_leaves_no_object(self):
        self.bucket.fail_at = 2, KeyboardInterrupt()
        with self.assertRaises(KeyboardInterrupt):
            self.write()
        self.assertEqual((self.bucket.objects, self.bucket.uploads), ({}, {}))

    def test_parts_that_cannot_be_removed_are_named_and_not_an_object(self):
        self.bucket.fail_at = 2, Fault("500", "Gone away")
        self.bucket.denied = {"abort"}
        with self.assertLogs(backup_bucket.log, "WARNING"):
            self.assertEqual(self.refusal(), "Gone away")
        self.assertEqual(self.bucket.objects, {})

    def test_an_existing_object_is_never_overwritten_even_without_read_permission(self):
        self.bucket.put("site.age", b"kept")
        self.assertTrue(backup_file.location_of(ADDRESS).exists())
        self.bucket.denied = {"head"}
        self.assertFalse(backup_file.location_of(ADDRESS).exists())
        self.assertIn("another object", self.refusal())
        self.assertEqual(self.bucket.objects["site.age"][0], b"kept")
        self.assertEqual(self.bucket.uploads, {})

    def test_a_backup_beyond_the_upload_limit_leaves_no_object(self):
        with mock.patch.object(backup_bucket, "MAX_PARTS", 2):
            self.assertIn("larger than", self.refusal())
        self.assertEqual((self.bucket.objects, self.bucket.uploads), ({}, {}))

    def test_no_two_versions_are_mixed(self):
        self.write()
        source = backup_file.location_of(ADDRESS)
        backup_file.checked(source, PASSPHRASE)
        self.bucket.put("site.age", self.bucket.objects["site.age"][0])
        with self.assertRaisesRegex(OSError, "another object"):
            backup_file.checked(source, PASSPHRASE)


class InABucket(BucketMixin, Site):
    def backup(self, **options):
        said = io.StringIO()
        call_command("backup", ADDRESS, stdout=said, **options)
        return said.getvalue()

    def restore(self, **options):
        return super().restore(file=ADDRESS, passphrase_file=self.passphrase, **options)

    def assert_unchanged(self):
        with database.connect() as session:
            self.assertTrue(database.is_empty(session))
        self.assertEqual([*(self.folder / "media").glob("**/*")], [])

    def test_a_site_is_restored_only_from_its_object_in_the_bucket(self):
        with self.assertRaisesMessage(CommandError, "must be encrypted"):
            self.backup()
        self.assertEqual((self.bucket.objects, self.bucket.sent), ({}, []))
        self.assertIn(f"{ADDRESS}: ", self.backup(passphrase_file=self.passphrase))
        with self.assertRaisesMessage(CommandError, "exists"):
            self.backup(passphrase_file=self.passphrase)
        whole, _ = self.bucket.objects["site.age"]
        self.assertTrue(whole.startswith(age.MAGIC))
        self.assertIn("is complete", self.restore(verify=True))
        self.elsewhere()
        for data in (whole[: len(whole) // 2], whole[:-1], b""):
            with self.subTest(len(data)):
                self.bucket.put("site.age", data)
                self.assertIn("backup", self.refusal())
                self.assert_unchanged()
        self.bucket.put("site.age", whole)
        self.passphrase.write_text("another passphrase")
        self.assertEqual(self.refusal(), "The passphrase is wrong. Nothing was changed.")
        self.passphrase.write_text(PASSPHRASE)
        broken = mock.Mock(read=mock.Mock(side_effect=Fault("", "Connection broken")))
        with mock.patch.object(self.bucket, "get_object", return_value={"Body": broken}):
            self.assertIn("Connection broken", self.refusal())
        self.assert_unchanged()
        self.assertIn("Restored", self.restore())
        ((name,),) = self.asked("SELECT file FROM ingestion_document")
        self.assertEqual((self.folder / "media" / name).read_text(), "# Leave\n\nFive days.")

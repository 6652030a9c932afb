"""Creates the bucket if it does not exist.

Runs once before the site starts, because the site itself does not create buckets.
"""

import boto3
from botocore.exceptions import ClientError

from chatsite import environment

region = environment.text("CHATSITE_S3_REGION")
client = boto3.client(
    "s3",
    endpoint_url=environment.text("CHATSITE_S3_ENDPOINT"),
    region_name=region or None,
    aws_access_key_id=environment.text("CHATSITE_S3_ACCESS_KEY"),
    aws_secret_access_key=environment.text("CHATSITE_S3_SECRET_KEY"),
)
# S3 requires a location for every region except us-east-1, for which it refuses one.
elsewhere = {"CreateBucketConfiguration": {"LocationConstraint": region}}
options = elsewhere if region not in ("", "us-east-1") else {}
try:
    client.create_bucket(Bucket=environment.text("CHATSITE_S3_BUCKET"), **options)
except ClientError as error:
    if error.response["Error"]["Code"] not in {"BucketAlreadyOwnedByYou", "BucketAlreadyExists"}:
        raise

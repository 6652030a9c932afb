"""Makes the bucket where there is none: once, before the site starts. The site itself never makes one."""

import os

import boto3
from botocore.exceptions import ClientError

client = boto3.client(
    "s3",
    endpoint_url=os.environ["CHATSITE_S3_ENDPOINT"],
    region_name=os.environ.get("CHATSITE_S3_REGION") or None,
    aws_access_key_id=os.environ["CHATSITE_S3_ACCESS_KEY"],
    aws_secret_access_key=os.environ["CHATSITE_S3_SECRET_KEY"],
)
try:
    client.create_bucket(Bucket=os.environ["CHATSITE_S3_BUCKET"])
except ClientError as error:
    if error.response["Error"]["Code"] not in {"BucketAlreadyOwnedByYou", "BucketAlreadyExists"}:
        raise

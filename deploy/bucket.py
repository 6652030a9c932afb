"""Creates the bucket if it does not exist.

Runs once before the site starts, because the site itself creates none.
"""

import boto3
from botocore.exceptions import ClientError

from chatsite import environment

client = boto3.client(
    "s3",
    endpoint_url=environment.text("CHATSITE_S3_ENDPOINT"),
    region_name=environment.text("CHATSITE_S3_REGION") or None,
    aws_access_key_id=environment.text("CHATSITE_S3_ACCESS_KEY"),
    aws_secret_access_key=environment.text("CHATSITE_S3_SECRET_KEY"),
)
try:
    client.create_bucket(Bucket=environment.text("CHATSITE_S3_BUCKET"))
except ClientError as error:
    if error.response["Error"]["Code"] not in {"BucketAlreadyOwnedByYou", "BucketAlreadyExists"}:
        raise

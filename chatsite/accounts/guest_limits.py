"""Limits on new guests and their questions per minute.

There are limits for one address, for one IPv6 site, and in total. Each count is one row with the timestamps
of the last minute. One statement checks and changes it, so that concurrent processes wait for each other.
Refused and rolled-back requests do not count.
"""

from django.conf import settings
from django.db import connection, transaction
from django.utils.crypto import salted_hmac

from chatsite.http.address_limit import IPV6_PREFIX, IPV6_SITE_PREFIX, subscriber

from .models import User

DIGEST_CHARACTERS = 31  # 124 bits; two fit into the column of a guest's address
SITE_FACTOR = 4  # the limit of an IPv6 site (65,536 networks) is this multiple of the limit of one address

# Add a timestamp at `key`; returns no row if `key` already has `most` timestamps of the last minute.
COUNT = """
    INSERT INTO accounts_guestrate AS rate (key, moments) VALUES (%(key)s, ARRAY[clock_timestamp()])
    ON CONFLICT (key) DO UPDATE SET moments = ARRAY(
        SELECT moment FROM unnest(rate.moments) AS moment
        WHERE moment > clock_timestamp() - interval '1 minute'
    ) || clock_timestamp()
    WHERE %(most)s > (
        SELECT count(*) FROM unnest(rate.moments) AS moment
        WHERE moment > clock_timestamp() - interval '1 minute'
    )
    RETURNING key
"""
# Seconds until `key` has fewer than `most` timestamps of the last minute.
WAIT = """
    SELECT extract(epoch FROM moment + interval '1 minute' - clock_timestamp())
    FROM accounts_guestrate, unnest(moments) AS moment
    WHERE key = %(key)s ORDER BY moment DESC OFFSET %(most)s - 1 LIMIT 1
"""
PURGE = """
    DELETE FROM accounts_guestrate
    WHERE NOT EXISTS (SELECT FROM unnest(moments) AS m WHERE m > clock_timestamp() - interval '1 minute')
"""


def address_digest(address: str) -> str:
    """Keyed hashes of a guest's address, which are stored instead of the address.

    For IPv6, these are hashes of its network and of its site.
    """
    networks = dict.fromkeys(subscriber(address, prefix) for prefix in (IPV6_PREFIX, IPV6_SITE_PREFIX))
    return " ".join(
        salted_hmac("chatsite.accounts.guest_limits", network, algorithm="sha256").hexdigest()[
            :DIGEST_CHARACTERS
        ]
        for network in networks
    )


def count_guest(digest: str) -> float:
    """Count a new guest from an address.

    Returns 0, or, if the guest is refused, the seconds until one is admitted.
    """
    return _count("guests", digest, settings.GUESTS_PER_ADDRESS, settings.GUESTS_PER_MINUTE)


def count_question(user_id: int) -> float:
    """Count a guest's question at the address where the guest was created.

    Returns 0, or, if the question is refused, the seconds until one is accepted.
    """
    digest = User.objects.filter(pk=user_id).values_list("guest_address", flat=True).first()
    return _count(
        "questions", digest or "", settings.GUEST_QUESTIONS_PER_ADDRESS, settings.GUEST_QUESTIONS_PER_MINUTE
    )


def purge_counts() -> None:
    """Remove rows without current timestamps."""
    with connection.cursor() as cursor:
        cursor.execute(PURGE)


def _count(kind: str, digest: str, address_limit: int, limit: int) -> float:
    """Count for the address, its IPv6 site and the total; return 0, or the seconds to wait.

    The rows are changed in this order, so that concurrent calls cannot deadlock.
    """
    address, _, site = digest.partition(" ")
    limits = [(f"{kind} {address}", address_limit), (kind, limit)]
    if site:
        limits.insert(1, (f"{kind} {site}", SITE_FACTOR * address_limit))
    with transaction.atomic(), connection.cursor() as cursor:
        for key, most in limits:
            parameters: dict[str, str | int] = {"key": key, "most": most}
            cursor.execute(COUNT, parameters)
            if cursor.fetchone() is None:
                cursor.execute(WAIT, parameters)
                found = cursor.fetchone()
                transaction.set_rollback(True)
                return max(1.0, float(found[0]) if found else 1.0)
    return 0.0

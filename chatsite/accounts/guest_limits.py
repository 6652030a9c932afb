"""How many guests may come, and how much they may ask, in a minute: from one address, and in all.

Each count is one row with the moments of the last minute, changed by one statement: processes that count at
the same time wait for its row. What is refused is not counted, and neither is what is rolled back.
"""

import ipaddress

from django.conf import settings
from django.db import connection, transaction
from django.utils.crypto import salted_hmac

from .models import User

# One more moment at `key`; no row where there are `most` of them within the last minute already.
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
# Seconds until fewer than `most` moments at `key` lie within the last minute.
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
    """Return what is kept of a guest's address: a keyed hash, of IPv6 only the network."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        network = address
    else:
        mapped = getattr(parsed, "ipv4_mapped", None) or parsed
        network = str(ipaddress.ip_network((mapped, 64 if mapped.version == 6 else 32), strict=False))
    return salted_hmac("chatsite.accounts.guest_limits", network, algorithm="sha256").hexdigest()


def count_guest(digest: str) -> float:
    """Count a new guest from an address: 0, or in how many seconds the next one may come."""
    return _count("guests", digest, settings.GUESTS_PER_ADDRESS, settings.GUESTS_PER_MINUTE)


def count_question(user_id: int) -> float:
    """Count a guest's question, at the address that the guest came from: 0, or the seconds until the next."""
    digest = User.objects.filter(pk=user_id).values_list("guest_address", flat=True).first()
    return _count(
        "questions", digest or "", settings.GUEST_QUESTIONS_PER_ADDRESS, settings.GUEST_QUESTIONS_PER_MINUTE
    )


def purge_counts() -> None:
    """Remove the rows in which nothing counts any more."""
    with connection.cursor() as cursor:
        cursor.execute(PURGE)


def _count(kind: str, digest: str, address_limit: int, limit: int) -> float:
    """Always the address first, then all: so that two who count never wait for each other."""
    with transaction.atomic(), connection.cursor() as cursor:
        for key, most in ((f"{kind} {digest}", address_limit), (kind, limit)):
            parameters: dict[str, str | int] = {"key": key, "most": most}
            cursor.execute(COUNT, parameters)
            if cursor.fetchone() is None:
                cursor.execute(WAIT, parameters)
                found = cursor.fetchone()
                transaction.set_rollback(True)
                return max(1.0, float(found[0]) if found else 1.0)
    return 0.0

"""Models of accounts, API keys, identities, devices, webhooks, and the audit log."""

from .audit_log import (
    AuditDelivery,
    AuditEntry,
    AuditSeal,
    Look,
)
from .identities import (
    ExternalIdentity,
    FormerIdentity,
    GroupMapping,
    ManagedMembership,
)
from .keys import (
    EXPIRY_WARNING,
    ApiKey,
    ApiKeyQuerySet,
)
from .people import (
    MAX_WISH,
    Device,
    GuestRate,
    SignInAttempt,
    User,
)
from .webhooks import (
    WebhookDelivery,
    WebhookEndpoint,
    WebhookEndpointQuerySet,
)

__all__ = [
    "EXPIRY_WARNING",
    "MAX_WISH",
    "ApiKey",
    "ApiKeyQuerySet",
    "AuditDelivery",
    "AuditEntry",
    "AuditSeal",
    "Device",
    "ExternalIdentity",
    "FormerIdentity",
    "GroupMapping",
    "GuestRate",
    "Look",
    "ManagedMembership",
    "SignInAttempt",
    "User",
    "WebhookDelivery",
    "WebhookEndpoint",
    "WebhookEndpointQuerySet",
]

"""Settings.

Everything that an operator may change is read from the environment; see docs/configuration.md.
"""

from pathlib import Path
from typing import Any

from chatsite.db.threads import default_reader
from chatsite.server import embedded_postgres

from . import environment

BASE_DIR = Path(__file__).resolve().parent.parent
# In a checkout, templates and static files are beside the packages; if installed, in the package chatsite.
FILES_DIR = BASE_DIR if (BASE_DIR / "manage.py").exists() else BASE_DIR / "chatsite"
DATA_DIR = environment.path("CHATSITE_DATA_DIR", BASE_DIR / ".data")

SITE_NAME = environment.text("CHATSITE_NAME", "chatsite")
DEBUG = environment.flag("CHATSITE_DEBUG", False)
HTTPS = environment.flag("CHATSITE_HTTPS", False)
SECRET_KEY = environment.text("CHATSITE_SECRET_KEY") or embedded_postgres.secret_key(DATA_DIR)
ALLOWED_HOSTS = environment.words("CHATSITE_ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]")
CORS_ORIGINS = environment.words("CHATSITE_CORS_ORIGINS")
CSRF_TRUSTED_ORIGINS = environment.words("CHATSITE_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "chatsite.admin.admin_config.SiteAdminConfig",
    "chatsite.accounts",  # before django.contrib.auth, whose commands it overrides
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "chatsite",  # before staticfiles, because both have a runserver command and the first one is used
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "channels",
    "rest_framework",
    "procrastinate.contrib.django",
    "servestatic",
    "drf_spectacular_sidecar",
    "ingestion",
    "history",
    "chat",
]

MIDDLEWARE = [
    "chatsite.http.middleware.RequestIdMiddleware",
    "chatsite.http.middleware.SecurityMiddleware",
    "servestatic.middleware.ServeStaticMiddleware",
    "chatsite.http.middleware.ContentSecurityPolicyMiddleware",
    "chatsite.accounts.middleware.SessionMiddleware",
    "chatsite.http.middleware.LocaleMiddleware",
    "chatsite.http.middleware.CommonMiddleware",
    "chatsite.http.middleware.CsrfViewMiddleware",
    "chatsite.http.middleware.AuthenticationMiddleware",
    "chatsite.accounts.middleware.ReaderMiddleware",
    "chatsite.accounts.guests.GuestMiddleware",
    "chatsite.http.middleware.MessageMiddleware",
    "chatsite.http.middleware.XFrameOptionsMiddleware",
    "chatsite.http.middleware.ErrorPageMiddleware",
]
# These checks look for Django's SecurityMiddleware, XFrameOptionsMiddleware and CsrfViewMiddleware by name,
# and overlook their subclasses above. test_https tests the subclasses.
SILENCED_SYSTEM_CHECKS = ["security.W001", "security.W002", "security.W003"]

ROOT_URLCONF = "chatsite.urls"
ASGI_APPLICATION = "chatsite.asgi.application"
APPEND_SLASH = False  # a redirect would lose the body of a POST

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [FILES_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "chatsite.context_processors.site",
            ],
        },
    },
]

# --- Database ---

EMBEDDED_DATABASE = not environment.text("DATABASE_URL")
DATABASE_THREADS = environment.integer("CHATSITE_DATABASE_THREADS", 8, least=1, most=1_000)
# PostgreSQL ends a statement after STATEMENT_SECONDS. A request waits for the database for at most
# DATABASE_SECONDS in total.
STATEMENT_SECONDS = 20
DATABASE_SECONDS = environment.number("CHATSITE_DATABASE_SECONDS", 2.5, least=1)
# How long to wait for a lock. In web processes this is less than DATABASE_SECONDS, so that PostgreSQL reports
# the lock before the request gives up.
LOCK_SECONDS = 5 if default_reader() else min(5, 0.8 * DATABASE_SECONDS)
# Over TCP, the site notices within half a minute that the database's machine has vanished, unless the URL of
# the database sets other values.
KEEP_ALIVE = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
}
# Settings of each session. The last one is only a marker that shows whether a connection pooler has dropped
# the settings.
SESSION = {
    "application_name": "chatsite",
    "connect_timeout": 5,
    "options": f"-c statement_timeout={STATEMENT_SECONDS}s -c lock_timeout={1000 * LOCK_SECONDS:.0f}ms"
    " -c idle_in_transaction_session_timeout=30s -c jit=off -c client_connection_check_interval=1s"
    " -c chatsite.session=own",
}
_database = environment.database_url("DATABASE_URL") or embedded_postgres.connection_parameters(DATA_DIR)
_direct = environment.database_url("DATABASE_DIRECT_URL")
# DATABASE_URL may lead to a pooler in transaction mode if DATABASE_DIRECT_URL is set: everything that needs a
# session of its own then uses DATABASE_DIRECT_URL. Only web processes use the pooler: commands and workers
# have few sessions, and keep locks in them.
TRANSACTION_POOLING = _direct is not None and not default_reader()
DATABASE_DIRECT = KEEP_ALIVE | (_direct or _database) | SESSION  # parameters of libpq
DATABASES = {
    "default": environment.django_database(
        KEEP_ALIVE | (_database if TRANSACTION_POOLING else _direct or _database)
    )
    | {
        "CONN_HEALTH_CHECKS": False,  # chatsite.db.backend checks sessions itself, without the pool's pauses
        "TEST": {"NAME": environment.text("CHATSITE_TEST_DATABASE", "test_chatsite")},
    }
}
DATABASES["default"]["OPTIONS"] |= {
    # The pool tries for about a second to replace a lost connection, and after that only on demand. By
    # default, it would wait ever longer between attempts, and not notice for seconds that PostgreSQL is back.
    "pool": {"min_size": 1, "max_size": DATABASE_THREADS + 12, "timeout": 3, "reconnect_timeout": 1},
    "transaction_pooling": TRANSACTION_POOLING,
    **SESSION,
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Accounts ---

AUTH_USER_MODEL = "accounts.User"
LOGIN_URL = "accounts:sign-in"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "accounts:sign-in"
LOGIN_REQUIRED = environment.flag("CHATSITE_LOGIN_REQUIRED", True)
GUEST_HOURS = environment.number("CHATSITE_GUEST_HOURS", 24, least=1)
GUESTS_PER_MINUTE = environment.integer("CHATSITE_GUESTS_PER_MINUTE", 200, least=1)
GUESTS_PER_ADDRESS = environment.integer("CHATSITE_GUESTS_PER_ADDRESS", 20, least=1)
GUEST_QUESTIONS_PER_MINUTE = environment.integer("CHATSITE_GUEST_QUESTIONS_PER_MINUTE", 300, least=1)
GUEST_QUESTIONS_PER_ADDRESS = environment.integer("CHATSITE_GUEST_QUESTIONS_PER_ADDRESS", 30, least=1)
GUEST_REFUSAL_VIEW = "chatsite.http.error_pages.guest_refused"
OIDC_ISSUER = environment.text("OIDC_ISSUER")
OIDC_AUDIENCE = environment.text("OIDC_AUDIENCE")  # the client's id at the provider
OIDC_CLIENT_SECRET = environment.text("OIDC_CLIENT_SECRET")
OIDC_NAME = environment.text("OIDC_NAME", "your organisation")
OIDC_DISCOVERY_URL = environment.text("OIDC_DISCOVERY_URL")
OIDC_JWKS_URL = environment.text("OIDC_JWKS_URL")
OIDC_GROUPS_CLAIM = environment.text("OIDC_GROUPS_CLAIM", "groups")
OIDC_GROUPS_BY_NAME = environment.flag("OIDC_GROUPS_BY_NAME", False)
OIDC_SUBJECT_CLAIM = environment.one_of("OIDC_SUBJECT_CLAIM", "SUB", ("SUB", "OID")).lower()
OIDC_SCOPES = environment.text("OIDC_SCOPES", "openid profile")
MCP_AUDIENCE = environment.text("CHATSITE_MCP_AUDIENCE")  # the audience of access tokens for /mcp
API_KEY_DAYS = environment.integer("CHATSITE_API_KEY_DAYS", 365)
AUDIT_SYSLOG = environment.text("CHATSITE_AUDIT_SYSLOG")
AUDIT_WEBHOOK = environment.text("CHATSITE_AUDIT_WEBHOOK")
WEBHOOK_NETWORKS = environment.networks("CHATSITE_WEBHOOK_NETWORKS")
LOOK_NOTICE_DAYS = environment.integer("CHATSITE_LOOK_NOTICE_DAYS", 30)
AUDIT_DAYS = environment.integer("CHATSITE_AUDIT_DAYS", 0)
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "chatsite.accounts.guests.GuestBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
DEMO = environment.flag("CHATSITE_DEMO", True)

# Browsers accept a cookie with this prefix only from this host, so that no subdomain can set one.
COOKIE_PREFIX = "__Host-" if HTTPS else ""
SESSION_COOKIE_NAME = f"{COOKIE_PREFIX}sessionid"
CSRF_COOKIE_NAME = f"{COOKIE_PREFIX}csrftoken"
DEVICE_COOKIE_NAME = f"{COOKIE_PREFIX}device"
SESSION_DAYS = environment.number("CHATSITE_SESSION_DAYS", 14, least=1)
SESSION_IDLE_HOURS = environment.number("CHATSITE_SESSION_IDLE_HOURS", 72, least=1)
ADMIN_IDLE_MINUTES = environment.number("CHATSITE_ADMIN_IDLE_MINUTES", 30, least=1)
SESSION_COOKIE_AGE = int(min(SESSION_IDLE_HOURS * 3_600, SESSION_DAYS * 86_400))
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
CSRF_FAILURE_VIEW = "chatsite.http.error_pages.csrf_failure"
SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
TRUSTED_PROXIES = environment.words("CHATSITE_TRUSTED_PROXIES")  # proxies whose X-Forwarded-For is trusted
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "chatsite.accounts.api.authentication.BearerAuthentication",
        "chatsite.accounts.api.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": [
        "chatsite.accounts.api.permissions.IsKnown",
        "chatsite.accounts.api.permissions.HasScopes",
    ],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
    "COERCE_DECIMAL_TO_STRING": False,
    "DEFAULT_SCHEMA_CLASS": "chatsite.http.api_description.ResourceSchema",
    "DEFAULT_METADATA_CLASS": "chatsite.http.options.NoMetadata",
}
SPECTACULAR_SETTINGS = {
    "OAS_VERSION": "3.1.0",
    "COMPONENT_SPLIT_REQUEST": True,
    "COMPONENT_SPLIT_PATCH": False,  # members of a PATCH body can be required here
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "SCHEMA_PATH_PREFIX": "/",
    "ENUM_NAME_OVERRIDES": {
        "SearchModeEnum": ["hybrid", "text", "vectors"],
        "DocumentStatusEnum": "ingestion.models.Document.Status",
        "ShareStateEnum": ["open", "expired", "revoked"],
        "DeliveryStateEnum": "chatsite.accounts.models.WebhookDelivery.State",
    },
}

# --- Files ---

MEDIA_ROOT = environment.path("CHATSITE_MEDIA_ROOT", DATA_DIR / "files")
STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [FILES_DIR / "static"]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "chatsite.finders.UsedFilesFinder",
]
STORAGE = environment.one_of("CHATSITE_STORAGE", "FILESYSTEM", ("FILESYSTEM", "S3"))
S3_BUCKET = environment.text("CHATSITE_S3_BUCKET")
S3_ENDPOINT = environment.text("CHATSITE_S3_ENDPOINT")
S3_REGION = environment.text("CHATSITE_S3_REGION")
S3_ACCESS_KEY = environment.text("CHATSITE_S3_ACCESS_KEY")
S3_SECRET_KEY = environment.text("CHATSITE_S3_SECRET_KEY")
S3_PREFIX = environment.text("CHATSITE_S3_PREFIX")
STORAGES: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "ingestion.storage.durable.DurableStorage"}
    if STORAGE == "FILESYSTEM"
    else {
        "BACKEND": "ingestion.storage.bucket_storage.BucketStorage",
        "OPTIONS": {
            "bucket_name": S3_BUCKET,
            "endpoint_url": S3_ENDPOINT or None,
            "region_name": S3_REGION or None,
            "access_key": S3_ACCESS_KEY or None,
            "secret_key": S3_SECRET_KEY or None,
            "location": S3_PREFIX,
        },
    },
    "staticfiles": {"BACKEND": "chatsite.joined_files.JoinedStaticFilesStorage"},
}
FILE_UPLOAD_PERMISSIONS = 0o600
FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o700
DATA_UPLOAD_MAX_MEMORY_SIZE = 1_000_000  # bytes of a body without files; the longest message has 400 KB
BODY_LIMIT = 1_000_000  # bytes of a request body, except at the URLs below
UPLOAD_BODY_LIMIT = environment.integer("CHATSITE_UPLOAD_BODY_LIMIT", 220_000_000, least=1_000_000)
UPLOAD_PATHS = (
    r"^/documents/add/$",
    r"^/((c|projects)/[^/]+/)?attach$",
    r"^/admin/ingestion/document/",
    r"^/api/documents/[^/]+/?$",
)
ATTACHMENT_BODY_LIMIT = 12_000_000  # bytes of the body of a question with images
ATTACHMENT_PATHS = (r"^/(chat|ask|api/chat)/?(/?stream/?)?$",)
IMAGE_PATHS = (r"^/v1//?(chat/completions|responses)/?$",)  # URLs that accept images within JSON

# --- Reading documents ---

DOCUMENT_MAX_BYTES = environment.integer("CHATSITE_DOCUMENT_MAX_BYTES", 100_000_000, least=1)
DOCUMENT_MAX_PAGES = environment.integer("CHATSITE_DOCUMENT_MAX_PAGES", 5_000, least=1)
DOCUMENT_MAX_CHARACTERS = environment.integer("CHATSITE_DOCUMENT_MAX_CHARACTERS", 20_000_000, least=1)
DOCUMENT_MAX_UNPACKED_BYTES = environment.integer(
    "CHATSITE_DOCUMENT_MAX_UNPACKED_BYTES", 500_000_000, least=1
)
USER_MAX_BYTES = environment.integer("CHATSITE_USER_MAX_BYTES", 5_000_000_000)
USER_MAX_DOCUMENTS = environment.integer("CHATSITE_USER_MAX_DOCUMENTS", 5_000)
KEPT_VERSIONS = environment.integer("CHATSITE_KEPT_VERSIONS", 5)
KEPT_VERSION_DAYS = environment.integer("CHATSITE_KEPT_VERSION_DAYS", 365)
READING_SECONDS = environment.number("CHATSITE_READING_SECONDS", 60, least=1)
READING_MEMORY_BYTES = environment.integer("CHATSITE_READING_MEMORY_BYTES", 1_000_000_000, least=200_000_000)
OCR_LANGUAGES = environment.optional_text("CHATSITE_OCR_LANGUAGES", "eng")
OCR_SECONDS = environment.number("CHATSITE_OCR_SECONDS", 1_800, least=1)

# --- Models ---

OPENAI_API_KEY = environment.text("OPENAI_API_KEY")
OPENAI_BASE_URL = environment.text("OPENAI_BASE_URL")
CHAT_MODEL = environment.text("CHAT_MODEL")
CHAT_BACKEND = "chat.llm.remote.RemoteModel" if CHAT_MODEL else "chat.quoting.quoting_model.QuotingModel"
DOCUMENT_QUESTIONS = environment.flag("CHATSITE_DOCUMENT_QUESTIONS", True)
QUESTION_WRITER = "chat.llm.document_questions.write" if CHAT_MODEL and DOCUMENT_QUESTIONS else ""
# How many citations of an answer, at most, the model checks again because their wording differs from the
# source; 0 for none.
SECOND_LOOK: int = environment.integer("CHATSITE_SECOND_LOOK", 8, most=50)
CHAT_MODEL_READS_IMAGES: bool = environment.flag("CHAT_MODEL_IMAGES", False) and bool(CHAT_MODEL)
PRICE_PROMPT = environment.number("CHATSITE_PRICE_PROMPT", 0)  # price of a million tokens
PRICE_COMPLETION = environment.number("CHATSITE_PRICE_COMPLETION", 0)
PRICE_CURRENCY = environment.text("CHATSITE_PRICE_CURRENCY", "EUR")
RERANK_MODEL = environment.text("RERANK_MODEL")
RERANK_BASE_URL = environment.text("RERANK_BASE_URL") or OPENAI_BASE_URL
# A key is only sent to the server that it belongs to.
RERANK_API_KEY = environment.text("RERANK_API_KEY") or (
    OPENAI_API_KEY if RERANK_BASE_URL == OPENAI_BASE_URL else ""
)
EMBEDDING_MODEL = environment.text("EMBEDDING_MODEL")
EMBEDDING_DIMENSIONS = environment.integer("EMBEDDING_DIMENSIONS", 256, least=1, most=4_000)
EMBEDDING_MODEL_DIR = environment.text("EMBEDDING_MODEL_DIR")
EMBEDDING_QUESTION_SECONDS = environment.number("CHATSITE_EMBEDDING_QUESTION_SECONDS", 5, least=0.01)
DICTIONARY = environment.text("CHATSITE_DICTIONARY")

# --- Answers ---

MESSAGE_MAX_CHARACTERS = 32_000
ANSWER_MAX_CHARACTERS = environment.integer("CHATSITE_ANSWER_MAX_CHARACTERS", 200_000, least=1)
ANSWER_CONNECT_SECONDS = environment.number("CHATSITE_ANSWER_CONNECT_SECONDS", 5, least=0.01)
ANSWER_FIRST_TOKEN_SECONDS = environment.number("CHATSITE_ANSWER_FIRST_TOKEN_SECONDS", 30, least=0.01)
ANSWER_IDLE_SECONDS = environment.number("CHATSITE_ANSWER_IDLE_SECONDS", 30, least=0.01)
MODEL_REST_SECONDS = environment.number("CHATSITE_MODEL_REST_SECONDS", 10, least=0.01)
ANSWER_TOTAL_SECONDS = environment.number("CHATSITE_ANSWER_TOTAL_SECONDS", 300, least=0.01)
JOURNAL_FLUSH_SECONDS = environment.number("CHATSITE_JOURNAL_FLUSH_SECONDS", 0.2, least=0.01, most=1)
USER_CONCURRENT_ANSWERS = environment.integer("CHATSITE_USER_CONCURRENT_ANSWERS", 20, least=1)
USER_EMBEDDINGS_PER_MINUTE = environment.integer("CHATSITE_USER_EMBEDDINGS_PER_MINUTE", 120, least=1)
USER_QUESTIONS_PER_MINUTE = environment.integer("CHATSITE_USER_QUESTIONS_PER_MINUTE", 120, least=1)
USER_CONNECTIONS = environment.integer("CHATSITE_USER_CONNECTIONS", 100, least=1)
ADDRESS_CONCURRENT_REQUESTS = environment.integer("CHATSITE_ADDRESS_CONCURRENT_REQUESTS", 8)
CALLER_CONCURRENT_REQUESTS = environment.integer("CHATSITE_CALLER_CONCURRENT_REQUESTS", 4)
PROCESS_ANSWERS = environment.integer("CHATSITE_PROCESS_ANSWERS", 500, least=1)
READER_SECONDS = environment.number("CHATSITE_READER_SECONDS", 60, least=0.1, most=2_000_000)
LEASE_SECONDS = environment.number("CHATSITE_LEASE_SECONDS", 10, least=1)
GRACE_SECONDS = environment.number("CHATSITE_GRACE_SECONDS", 25)
THOUGHTS_RESTRICTED = environment.flag("CHATSITE_THOUGHTS_RESTRICTED", False)
RAG_CHAT_VERSION = environment.one_of("CHATSITE_RAG_CHAT_VERSION", "2025", ("2025", "2026"))
AGENT_COORDINATOR = environment.flag("CHATSITE_AGENT_COORDINATOR", False)
AGENT_TURNS = environment.integer("CHATSITE_AGENT_TURNS", 6, least=1, most=100)
QUOTING_WORDS_PER_SECOND = environment.number("CHATSITE_QUOTING_WORDS_PER_SECOND", 0, least=0)

# --- Channels ---

REDIS_URL = environment.text("REDIS_URL")
CHANNEL_LAYERS: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "channels_redis.core.RedisChannelLayer", "CONFIG": {"hosts": [REDIS_URL]}}
    if REDIS_URL
    else {"BACKEND": "channels.layers.InMemoryChannelLayer"}
}

# --- Language, time, logs ---

LANGUAGES = [("en", "English"), ("de", "Deutsch")]
LANGUAGE_CODE = environment.one_of("CHATSITE_LANGUAGE", "EN", ("EN", "DE")).lower()
TIME_ZONE = environment.time_zone("CHATSITE_TIME_ZONE", "UTC")
LOOP_WATCHDOG_SECONDS = environment.number("CHATSITE_LOOP_WATCHDOG_SECONDS", 0)

USE_I18N = True
FORMAT_MODULE_PATH = "chatsite.formats"
USE_TZ = True
LOCALE_PATHS = [FILES_DIR / "locale"]

ACCESS_LOG = environment.flag("CHATSITE_ACCESS_LOG", False)
ERASED_LIST = environment.path("CHATSITE_ERASED_LIST", DATA_DIR / "erased.jsonl")
METRICS_TOKEN = environment.text("CHATSITE_METRICS_TOKEN")
METRICS_ADDRESSES = environment.words("CHATSITE_METRICS_ADDRESSES")
METRICS = bool(METRICS_TOKEN or METRICS_ADDRESSES)
TRACES_ENDPOINT = environment.text("OTEL_EXPORTER_OTLP_ENDPOINT")  # the exporter reads this variable too
SENTRY_DSN = environment.text("SENTRY_DSN")
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {
        "request_id": {"()": "chatsite.logs.RequestIdFilter"},
        "outage": {"()": "chatsite.logs.OutageFilter"},
        "cut": {"()": "chatsite.logs.CutFilter"},
        "hostile": {"()": "chatsite.logs.HostileRequestFilter"},
    },
    "formatters": {"json": {"()": "chatsite.logs.JsonFormatter"}},
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "filters": ["request_id", "outage", "cut", "hostile"],
            "formatter": "json",
        },
    },
    "root": {"handlers": ["stderr"], "level": environment.one_of("CHATSITE_LOG_LEVEL", "INFO", LOG_LEVELS)},
    "loggers": {
        "django": {"level": "WARNING"},
        "django.security.DisallowedHost": {"level": "CRITICAL"},  # otherwise scanners would fill the log
        "uvicorn.access": {"level": "WARNING"},
        "chatsite.access": {"level": "INFO"},  # CHATSITE_ACCESS_LOG enables it
        "procrastinate": {"level": "WARNING"},
        # At lower levels these loggers write prompts, addresses and headers.
        **{name: {"level": "WARNING"} for name in ("botocore", "httpx2", "httpcore2", "openai")},
        "aiohttp": {"level": "ERROR"},  # its warnings quote the server's cookies
        "psycopg.pool": {"level": "ERROR"},
    },
}

"""A sign-in provider on this machine: discovery, keys, authorization and token endpoint.

with FakeProvider() as provider:
    with override_settings(**provider.settings):
        token = provider.token(groups=["staff"])
"""

import base64
import contextlib
import hashlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from django.contrib.auth.models import Group

from chatsite.accounts.models import GroupMapping

SLOW_BYTES, SLOW_PAUSE = 300, 0.01  # seconds
CLIENT, SECRET = "chatsite-client", "a:secret/with+signs"
KEY = rsa.generate_private_key(
    public_exponent=65537, key_size=2048
)  # one for all tests: they are slow to make
OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def public_jwk(key, identifier, algorithm="RS256"):
    return json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key())) | {
        "kid": identifier,
        "use": "sig",
        "alg": algorithm,
    }


def public_pem(key):
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


class FakeProvider:
    """`keys` and `discovery` may be changed; `asked` counts requests by path; `status` breaks everything."""

    def __init__(self):
        self.keys = [public_jwk(KEY, "k1")]
        self.discovery = {}
        self.asked = {}
        self.status = 200
        self.codes = {}
        self.claims = {}  # of the next person who signs in
        self.slow = ""  # "head" or "body": which part of an answer the token endpoint sends byte by byte

    def __enter__(self):
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.issuer = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *exception):
        self.server.shutdown()
        self.server.server_close()

    @property
    def settings(self):
        return {
            "OIDC_ISSUER": self.issuer,
            "OIDC_AUDIENCE": CLIENT,
            "OIDC_CLIENT_SECRET": SECRET,
            "OIDC_NAME": "Example Works",
            "OIDC_DISCOVERY_URL": "",
            "OIDC_JWKS_URL": "",
            "OIDC_GROUPS_CLAIM": "groups",
            "OIDC_GROUPS_BY_NAME": False,
            "OIDC_SUBJECT_CLAIM": "sub",
        }

    def mapped_group(self, value):
        """A group of that name, and the mapping that leads to it."""
        group = Group.objects.create(name=value)
        GroupMapping.objects.create(issuer=self.issuer, value=value, group=group)
        return group

    def payload(self, **claims):
        """Valid claims with these changes; None removes a claim."""
        now = int(time.time())
        good = {"iss": self.issuer, "aud": CLIENT, "sub": "s-1", "iat": now, "exp": now + 300}
        return {name: value for name, value in (good | claims).items() if value is not None}

    def token(self, *, key=KEY, algorithm="RS256", headers=None, **claims):
        return jwt.encode(
            self.payload(**claims), key, algorithm=algorithm, headers={"kid": "k1"} | (headers or {})
        )

    def count(self, path):
        return self.asked.get(path, 0)

    def answer(self, path, query, body, authorization):
        """(status, headers, JSON) of a request."""
        if self.status != 200:
            return self.status, {}, {}
        if path == "/.well-known/openid-configuration":
            document = {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys"}
            document |= {"authorization_endpoint": f"{self.issuer}/authorize?tenant=1"}
            document |= {"token_endpoint": f"{self.issuer}/token"}
            return 200, {}, document | self.discovery
        if path == "/keys":
            return 200, {}, {"keys": self.keys}
        if path == "/authorize":
            code = f"code-{len(self.codes)}"
            self.codes[code] = query
            parameters = urlencode({"code": code, "state": query["state"], "iss": self.issuer})
            return 302, {"Location": f"{query['redirect_uri']}?{parameters}"}, {}
        if path == "/token":
            return self._exchange(body, authorization)
        return 404, {}, {}

    def _exchange(self, body, authorization):
        asked = self.codes.pop(body.get("code"), None)
        expected = base64.b64encode(f"{CLIENT}:{'a%3Asecret%2Fwith%2Bsigns'}".encode()).decode()
        challenge = hashlib.sha256(body.get("code_verifier", "").encode()).digest()
        fits = asked and asked["code_challenge"] == base64.urlsafe_b64encode(challenge).rstrip(b"=").decode()
        if not fits or authorization != f"Basic {expected}" or body["redirect_uri"] != asked["redirect_uri"]:
            return 400, {}, {"error": "invalid_grant"}
        return 200, {}, {"id_token": self.token(**({"nonce": asked["nonce"]} | self.claims))}

    def _handler(provider):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self._answer({})

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                self._answer(flat(body))

            def _answer(self, body):
                parts = urlsplit(self.path)
                provider.asked[parts.path] = provider.asked.get(parts.path, 0) + 1
                status, headers, value = provider.answer(
                    parts.path, flat(parts.query), body, self.headers.get("Authorization")
                )
                slow = provider.slow if parts.path == "/token" else ""
                data = json.dumps(value).encode()
                if slow == "body":
                    data = b" " * SLOW_BYTES + data
                self.send_response(status)
                for name, text in headers.items():
                    self.send_header(name, text)
                self.send_header("Content-Length", str(len(data)))
                if slow == "head":
                    self.flush_headers()
                    self._send_slowly(b"X-Slow: " + b"x" * SLOW_BYTES + b"\r\n")
                self.end_headers()
                if slow == "body":
                    self._send_slowly(data)
                else:
                    self.wfile.write(data)

            def _send_slowly(self, data):
                with contextlib.suppress(OSError):  # the site hangs up
                    for byte in data:
                        self.wfile.write(bytes([byte]))
                        time.sleep(SLOW_PAUSE)

            def log_message(self, *arguments):
                pass

        return Handler


def flat(query):
    return {name: values[0] for name, values in parse_qs(query).items()}

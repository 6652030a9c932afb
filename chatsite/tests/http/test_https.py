"""Headers and cookies of a site behind HTTPS. Django's checks do not know subclasses of its middleware."""

import json
import os
import subprocess
import sys

import pytest
from django.conf import settings
from django.test import SimpleTestCase

pytestmark = pytest.mark.slow

ASKED = """
import django, json
django.setup()
from django.http import HttpResponse
from django.middleware.csrf import get_token
from django.test import Client
from django.urls import path
from chatsite import urls

def page(request):
    get_token(request)
    return HttpResponse()

urls.urlpatterns.insert(0, path("page", page))
asked = {"SERVER_NAME": "chat.example", "HTTP_X_FORWARDED_PROTO": "https"}
plain = Client().get("/page", SERVER_NAME="chat.example")
safe = Client().get("/page", **asked)
forged = Client(enforce_csrf_checks=True).post("/page", **asked)
cookie = safe.cookies["__Host-csrftoken"]
secure = [cookie["secure"], cookie["path"], cookie["domain"]]
print(json.dumps([plain.status_code, plain["Location"], dict(safe.items()), secure, forged.status_code]))
"""


class HttpsTests(SimpleTestCase):
    def test_a_site_behind_https_says_so_to_browsers_and_keeps_its_cookies_there(self):
        environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "chatsite.settings",
            "CHATSITE_HTTPS": "1",
            "CHATSITE_SECRET_KEY": "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUV",
            "CHATSITE_ALLOWED_HOSTS": "chat.example",
        }
        told = subprocess.check_output([sys.executable, "-c", ASKED], cwd=settings.BASE_DIR, env=environment)
        status, place, headers, secure, forged = json.loads(told.splitlines()[-1])
        self.assertEqual((status, place), (301, "https://chat.example/page"))
        self.assertEqual(headers["Strict-Transport-Security"], "max-age=31536000; includeSubDomains; preload")
        self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
        self.assertEqual(headers["X-Frame-Options"], "DENY")
        self.assertEqual(headers["Referrer-Policy"], "same-origin")
        self.assertIn("default-src", headers["Content-Security-Policy"])
        self.assertEqual(secure, [True, "/", ""])  # required by browsers for the prefix
        self.assertEqual(forged, 403)

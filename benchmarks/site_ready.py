"""Importing this module sets up Django with the tests' embedded PostgreSQL and without a model."""

import os
import sys
from importlib import import_module
from pathlib import Path

import django

ROOT = Path(__file__).resolve().parent.parent
MODEL_FOLDER = os.environ.get("EMBEDDING_MODEL_DIR", "")  # the tests' settings remove this variable
sys.path.insert(0, str(ROOT))
os.environ.setdefault("CHATSITE_TEST_DATABASE", "benchmark_chatsite")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"}  # as in a web process
import_module("chatsite.tests.plugins.database")  # starts PostgreSQL, and stops it at exit
django.setup()

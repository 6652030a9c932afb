"""Unanswered questions, which the worker judges and the admin lists as far as managers may see them."""

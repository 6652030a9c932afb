"""Unanswered questions.

The worker judges them, and the admin lists them as far as a manager may see them.
"""

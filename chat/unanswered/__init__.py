"""Unanswered questions: judged by the worker, listed in the admin as far as a manager may see them."""

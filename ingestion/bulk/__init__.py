"""Changing many documents at once: chosen in the admin, done by a worker, each with its own result."""

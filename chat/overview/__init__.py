"""Usage figures, which the worker counts and the start page of the admin shows."""

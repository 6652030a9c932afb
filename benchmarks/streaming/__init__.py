"""The parts of bench_streaming.py: a model's server, a bare relay, a client, and measured processes."""

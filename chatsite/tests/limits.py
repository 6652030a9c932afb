"""The time limits of tests. They are fixed: none depends on how busy the machine is.

What a promise allows is asserted as the promise plus `MARGIN_SECONDS`, which must still tell it from the
fault that the test is about. Other waits end after `HANG_SECONDS`, which only a fault reaches.
"""

HANG_SECONDS = 120
LONG_SECONDS = 600  # `pytest.mark.timeout` of modules with a test that works for a minute; others have 180
MARGIN_SECONDS = 3.0  # a test's request, its answer and their threads on two cores beside a load of 8

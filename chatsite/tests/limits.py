"""The time limits of tests. They are fixed: none depends on how busy the machine is.

A promised time is asserted as the promise plus `MARGIN_SECONDS`, which must still be less than the time with
the fault. Other waits end after `HANG_SECONDS`, which is reached only on a fault.
"""

HANG_SECONDS = 120
LONG_SECONDS = 600  # `pytest.mark.timeout` of modules with a test that takes a minute; others have 300
MARGIN_SECONDS = 3.0  # a test's request, its answer and their threads on two cores beside a load of 8

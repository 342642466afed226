from __future__ import annotations

# An inner run forgets what it imports. What is imported here it finds: that saves time, trustme's native
# parts cannot be loaded twice, and blocks before and after an inner run see the same classes.
import aio_pika  # noqa: F401
import pika  # noqa: F401
import trustme  # noqa: F401

import fakeamqp
import fakeamqp.faults

for name in fakeamqp.__all__:
    getattr(fakeamqp, name)

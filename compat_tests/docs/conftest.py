from __future__ import annotations

# An inner run forgets what it imports. What is imported here it finds: that saves time, and trustme's native
# parts cannot be loaded twice.
import aio_pika  # noqa: F401
import pika  # noqa: F401
import trustme  # noqa: F401

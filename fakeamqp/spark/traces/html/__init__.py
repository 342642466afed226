"""What traces answer, as one self-contained page without scripts.

Whatever a peer has sent reaches the page as text alone, and a content security policy lets nothing load or
run.
"""

from __future__ import annotations

from fakeamqp.spark.traces.html.page import page

__all__ = ["page"]

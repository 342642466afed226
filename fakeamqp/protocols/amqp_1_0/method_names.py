"""The names of all performatives and SASL frames, known without loading the codec."""

from __future__ import annotations

METHOD_NAMES = (
    *("open", "begin", "attach", "flow", "transfer", "disposition", "detach", "end", "close"),
    *("sasl-mechanisms", "sasl-init", "sasl-challenge", "sasl-response", "sasl-outcome"),
)

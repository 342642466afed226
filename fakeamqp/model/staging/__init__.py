"""Staging: a content is sent in advance, under an identifier chosen by the sender, and published later.

Either peer may be the sender. It opens the content, receives how much of it the other peer has already, and
stages the rest. A stage has no identifier: it belongs to the oldest open without a stage. An interrupted
sender continues where it stopped (file.open/identifier). `uploads` are contents that a client stages,
`downloads` those that the broker stages to a client.
"""

from __future__ import annotations

from fakeamqp.model.staging.downloads import Download, Downloads, FileClient
from fakeamqp.model.staging.staged import Description, Staged
from fakeamqp.model.staging.uploads import Upload, Uploads

__all__ = ["Description", "Download", "Downloads", "FileClient", "Staged", "Upload", "Uploads"]

"""Staging: a content is sent ahead, under an identifier of the sender's choice, to be named later.

Either peer may be the sender. It opens the content, is told how much of it is there already, and stages the
rest; since a stage does not say what it is of, it is the answer to the oldest open that had none. A sender
that is broken off goes on where it was (file.open/identifier). `uploads` is what a client stages, `downloads`
what the broker stages to it.
"""

from __future__ import annotations

from fakeamqp.model.staging.downloads import Download, Downloads, FileClient
from fakeamqp.model.staging.staged import Description, Staged
from fakeamqp.model.staging.uploads import Upload, Uploads

__all__ = ["Description", "Download", "Downloads", "FileClient", "Staged", "Upload", "Uploads"]

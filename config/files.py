"""Settings of the folders in which chats keep files."""

from __future__ import annotations

from pydantic import Field

from config.terms import Count, Section


class FilesSettings(Section):
    """How much a chat may keep in its folder, below `home`."""

    quota_megabytes: Count = Field(default=50, ge=1, le=1_048_576)
    """All files of one chat together."""
    most_files: Count = Field(default=1000, ge=1, le=100_000)
    """Files and folders of one chat."""
    file_kilobytes: Count = Field(default=1024, ge=1, le=65_536)
    """The longest file that is read or written."""

"""Values of derived types, as libraries and Enums have them."""

from __future__ import annotations

from enum import Enum


class Text(str):
    __slots__ = ()


class Blob(bytes):
    __slots__ = ()


class Whole(int):
    __slots__ = ()


class Real(float):
    __slots__ = ()


class Mode(str, Enum):  # noqa: UP042, many have it so
    PREVIEW = "preview"

"""The suite's assertions are explained like those of any test."""

import pytest

pytest.register_assert_rewrite("fairway.testing.conformance")

"""What the tests of bucket queues share."""

import pytest

pytest.register_assert_rewrite("fairway.testing.bucket.conformance")

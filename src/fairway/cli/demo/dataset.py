"""The data set of the demo and the work on it: orders of one whale and many small tenants, to be pseudonymised.

The work is written twice, for the queue as a function of an Arrow table, for plain Spark as SQL: so comparing the
results row for row compares two programs.
Guards: the sizes add up to the chunks asked for; one seed gives one data set.
"""

from __future__ import annotations

from hashlib import sha256
from random import Random
from typing import TYPE_CHECKING, Final

from fairway import BadArgument
from fairway.cli.demo.story import WHALE

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

SMALL_TENANTS: Final = 15  # with the whale 16, so that a batch of 32 chunks is two for each
CHUNKS_MIN: Final = 80  # with fewer the smallest tenants have nothing
CHUNKS_MAX: Final = 100_000  # hours
CHUNK_ROWS: Final = 250
ROUNDS: Final = 50  # of hashing: slow on purpose, so that a name cannot be guessed
RESULT: Final = "tenant string, id long, person string, net_cents long"


def sizes(chunks: int, seed: int) -> list[tuple[str, int]]:
    """(tenant, chunks): the whale with four fifths of the work, then the small ones, most of them very small."""
    if not CHUNKS_MIN <= chunks <= CHUNKS_MAX:
        raise BadArgument(f"--chunks must be from {CHUNKS_MIN} to {CHUNKS_MAX} on Spark, not {chunks}")
    dice = Random(seed)
    parts = [dice.uniform(0.8, 1.2) / rank for rank in range(1, SMALL_TENANTS + 1)]
    small = [max(1, round(chunks / 5 * part / sum(parts))) for part in parts]
    dice.shuffle(small)
    return [(WHALE, chunks - sum(small)), *((f"small {i:02}", size) for i, size in enumerate(small, 1))]


def orders(spark: SparkSession, tenants: list[tuple[str, int]], seed: int) -> DataFrame:
    """The orders of some tenants: tenant, id, email, cents."""
    rows = spark.createDataFrame(tenants, "tenant string, chunks long")
    numbered = rows.selectExpr("tenant", f"explode(sequence(0L, chunks * {CHUNK_ROWS} - 1)) as id")
    return numbered.selectExpr(
        "tenant",
        "id",
        "concat('user', id, '@', replace(tenant, ' ', '-'), '.example') as email",
        f"pmod(xxhash64(tenant, id, {int(seed)}L), 100000) as cents",
    )


def pseudonymise(table: pyarrow.Table) -> pyarrow.Table:
    """The work of one chunk: a person's address becomes a hash of hashes, tax leaves the price."""
    import pyarrow as pa

    people = []
    for email in table["email"].to_pylist():
        for _ in range(ROUNDS):
            email = sha256(email.encode()).hexdigest()
        people.append(email)
    net = [cents - cents * 19 // 119 for cents in table["cents"].to_pylist()]
    columns = {
        "tenant": table["tenant"],
        "id": table["id"],
        "person": pa.array(people, pa.string()),
        "net_cents": pa.array(net, pa.int64()),
    }
    return pa.table(columns)


def in_plain_spark(rows: DataFrame) -> DataFrame:
    """The same in Spark SQL, without a queue and without Python."""
    return rows.selectExpr(
        "tenant",
        "id",
        f"aggregate(sequence(1, {ROUNDS}), email, (hash, i) -> sha2(hash, 256)) as person",
        "cents - cents * 19 div 119 as net_cents",
    )

"""The pipeline on Spark: produce a DataFrame into a queue, process it chunk by chunk, collect, compare."""

import pyarrow as pa
import pyarrow.compute as pc

import fairway.spark

spark = fairway.spark.session("local[2]")
orders = spark.range(10_000).selectExpr("if(id % 10 < 9, 'whale', concat('shop', id % 7)) shop", "id cents")


def taxed(chunk: pa.Table) -> pa.Table:
    """Runs on the executors, once per chunk."""
    return chunk.append_column("tax", pc.divide(chunk["cents"], 5))


made = fairway.spark.produce(orders, "orders.db", tenant_column="shop", chunk_rows=500, token="orders-1")
fairway.spark.process(spark, "orders.db", fn=taxed, strategy="Fair", progress=False)
results = fairway.spark.collect(spark, "orders.db")
same = results.exceptAll(orders.selectExpr("shop", "cents", "cents div 5 tax")).count() == 0
print(len(made), "submissions,", results.count(), "rows, equal to plain Spark:", same)
fairway.spark.release()
spark.stop()

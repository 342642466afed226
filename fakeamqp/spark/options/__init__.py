"""The options of the source and the sink: declared in `table`, read and checked by `reading`."""

from fakeamqp.spark.options.reading import read_options, write_options
from fakeamqp.spark.options.table import ConnectionOptions, ReadOptions, WriteOptions

__all__ = ["ConnectionOptions", "ReadOptions", "WriteOptions", "read_options", "write_options"]

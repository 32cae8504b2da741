"""A batch that brokers take and aiokafka cannot decode: some clients write header names that are no text."""

from typing import Any

from aiokafka.record.util import calc_crc32c


def spoil(batch: Any) -> bytes:
    """Fill an empty batch with three records, the second of which has such a header; return it as it is sent."""
    for number in range(3):
        batch.append(timestamp=None, key=b"k", value=b"%d" % number, headers=[("name", b"")] if number == 1 else [])
    batch.close()
    raw = bytearray(batch._build().replace(b"name", b"\xff\xff\xff\xff"))
    raw[17:21] = calc_crc32c(memoryview(raw)[21:]).to_bytes(4, "big")
    batch._buffer = raw
    return bytes(raw)
